//! The cells of a PM device: what a write programs, how long that takes, and what it costs.
//!
//! Without codec and with cells that are all alike, a write programs the bits that change. Otherwise blocks
//! are kept as the states of their cells, and a write programs the cells whose states change
//! (data-comparison write). A codec sits in the module's controller (MorLog §IV-B, Fig. 10): it codes whole
//! blocks, so a write of some words is laid over the block's content first, and what is not written by it is
//! coded by FPC.

use super::{CellArray, CellWear, TlcTable};
use crate::config::{CellKind, CoreConfig, PmConfig, TlcConfig};
use graven_base::codecs::{Block, Codec, Codings, decode, encode};
use graven_base::memory::{LineAddr, LineData, WORDS_PER_LINE, WordMask, words_in};
use graven_base::stats::Energy;
use graven_base::time::Cycle;
use graven_base::time::cycles;

/// Effort of programming.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Until the slowest cell has its state; 0 if no cell changes.
    pub latency: Cycle,
    /// Bits that change, of all cells that do.
    pub bits: u64,
    /// Cells that change.
    pub cells: u64,
    /// Energy of programming them.
    pub energy: Energy,
    /// Bits of the written words once they are coded, tags included.
    pub coded_bits: u64,
}

impl Effort {
    /// Both, at the same time.
    pub fn and(self, other: Effort) -> Effort {
        Effort {
            latency: self.latency.max(other.latency),
            bits: self.bits + other.bits,
            cells: self.cells + other.cells,
            energy: self.energy.and(other.energy),
            coded_bits: self.coded_bits + other.coded_bits,
        }
    }
}

/// Cells by their states.
#[derive(Clone, Debug)]
struct Blocks {
    array: CellArray,
    codec: Codec,
    expand: bool,
    /// Table of triple-level cells; `None`: all states cost the same.
    table: Option<TlcTable>,
    frequency_mhz: u32,
}

/// The cells of a PM device: their states and costs. Their content, the words, is in the controller's image.
#[derive(Clone, Debug)]
pub struct PmCells {
    write: Cycle,
    per_bit: Energy,
    blocks: Option<Box<Blocks>>,
}

impl PmCells {
    /// The configured cells, never written.
    pub fn new(pm: &PmConfig, tlc: &TlcConfig, core: &CoreConfig) -> PmCells {
        let is_tlc = pm.cells == CellKind::TlcRram;
        let blocks = (is_tlc || pm.codec.compresses()).then(|| {
            Box::new(Blocks {
                array: CellArray::new(tlc.wear_group_cells),
                codec: pm.codec,
                expand: is_tlc && pm.expansion,
                table: is_tlc.then(|| table(tlc, pm.write_scale)),
                frequency_mhz: core.frequency_mhz,
            })
        });
        PmCells {
            write: cycles(pm.write_ns * pm.write_scale, core.frequency_mhz),
            per_bit: Energy::per_bit(pm.array_write_pj_per_bit),
            blocks,
        }
    }

    /// Most programmings of the cells of one group; 0 where cells have no states.
    pub fn peak_wear(&self) -> u64 {
        self.blocks.as_ref().map_or(0, |blocks| blocks.array.peak_wear().into())
    }

    /// Counts the wear of cells from now on.
    pub fn forget_wear(&mut self) {
        if let Some(blocks) = &mut self.blocks {
            blocks.array.forget_wear();
        }
    }

    /// The wear of all cells at this instant; none where cells have no states.
    pub fn wear(&self) -> CellWear {
        self.blocks.as_ref().map_or_else(CellWear::default, |blocks| blocks.array.wear_of_all())
    }

    /// A line will be programmed: its cells are brought near, as far as the host is concerned.
    #[inline]
    pub fn prefetch(&self, line: LineAddr) {
        if let Some(blocks) = &self.blocks {
            blocks.array.prefetch(line.0);
        }
    }

    /// Begins to program the words of `mask`, which lie over `old`.
    pub fn program(
        &mut self,
        old: &LineData,
        line: LineAddr,
        mask: WordMask,
        data: &LineData,
        codings: &Codings,
    ) -> Effort {
        let Some(blocks) = &mut self.blocks else {
            let bits = changed_bits(old, data, mask);
            return Effort {
                latency: if bits > 0 { self.write } else { 0 },
                bits,
                cells: bits,
                energy: self.per_bit.times(bits),
                coded_bits: u64::from(mask.count_ones()) * 64,
            };
        };
        blocks.program(line, (old, data, mask), codings, self.write, self.per_bit)
    }
}

impl Blocks {
    fn program(
        &mut self,
        line: LineAddr,
        (old, data, mask): (&LineData, &LineData, WordMask),
        codings: &Codings,
        write: Cycle,
        per_bit: Energy,
    ) -> Effort {
        let compress = self.codec.compresses();
        assert!(codings.dldc() == 0 || self.codec.has_dldc(), "only SLDE knows DLDC");
        if self.array.get(line.0).is_none() && *old != [0; WORDS_PER_LINE] {
            // The content of a populated image.
            let (block, _) = encode(old, &Codings::default(), compress, self.expand);
            self.array.set(line.0, &block);
        }
        let mut content = *old;
        overlay(&mut content, data, mask);
        let (block, size) = encode(&content, codings, compress, self.expand);
        debug_assert_eq!(decode(&block, codings), content, "what is coded can be read");
        let before = self.array.get(line.0).copied().unwrap_or_default();
        let table = self.table.as_ref().unwrap_or(&TlcTable::MORLOG);
        let programming = self.array.program(line.0, &block, table);
        let bits = changed_plane_bits(&before, &block);
        let (latency, energy) = match self.table {
            _ if programming.cells == 0 => (0, Energy::default()),
            Some(_) => {
                let ns = f64::from(programming.latency_ps) / 1000.0;
                (cycles(ns, self.frequency_mhz), Energy::femtojoule(programming.energy_fj))
            }
            None => (write, per_bit.times(bits)),
        };
        let cells = programming.cells.into();
        Effort { latency, bits, cells, energy, coded_bits: size.bits.into() }
    }
}

/// Bits in which the cells of two blocks differ, as far as the second uses them.
fn changed_plane_bits(old: &Block, new: &Block) -> u64 {
    let used = new.used();
    let plane = |bit: usize| {
        (0..3)
            .map(|j| ((old.planes()[bit][j] ^ new.planes()[bit][j]) & used[j]).count_ones())
            .sum::<u32>()
    };
    (0..3).map(plane).sum::<u32>().into()
}

fn table(tlc: &TlcConfig, scale: f64) -> TlcTable {
    let ps = |ns: f64| (ns * scale * 1000.0).round() as u32;
    let fj = |pj: f64| (pj * 1000.0).round() as u64;
    TlcTable {
        latency_ps: [
            ps(tlc.latency_000_ns),
            ps(tlc.latency_001_ns),
            ps(tlc.latency_010_ns),
            ps(tlc.latency_011_ns),
            ps(tlc.latency_100_ns),
            ps(tlc.latency_101_ns),
            ps(tlc.latency_110_ns),
            ps(tlc.latency_111_ns),
        ],
        energy_fj: [
            fj(tlc.energy_000_pj),
            fj(tlc.energy_001_pj),
            fj(tlc.energy_010_pj),
            fj(tlc.energy_011_pj),
            fj(tlc.energy_100_pj),
            fj(tlc.energy_101_pj),
            fj(tlc.energy_110_pj),
            fj(tlc.energy_111_pj),
        ],
    }
}

/// Bits that would change if `data` under `mask` were written over `old`.
#[inline]
fn changed_bits(old: &LineData, data: &LineData, mask: WordMask) -> u64 {
    let mut bits = 0;
    for i in 0..WORDS_PER_LINE {
        let written = u64::from(mask >> i & 1).wrapping_neg();
        let changed = (old[i] ^ data[i]) & written;
        // Most words do not change, and counting takes longer than looking.
        if changed != 0 {
            bits += changed.count_ones();
        }
    }
    bits.into()
}

/// Copies the words of `mask` from `data` into `line`.
#[inline]
pub fn overlay(line: &mut LineData, data: &LineData, mask: WordMask) {
    if mask == WordMask::MAX {
        *line = *data;
        return;
    }
    for word in words_in(mask) {
        line[word] = data[word];
    }
}
