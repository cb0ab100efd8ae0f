//! Effects of an operator on batteries, registers and recovery.
//!
//! Recovery is a function of bytes and registers: it runs on changed bytes, or what it wrote is taken back and written in
//! another way, as far as power lasts.

use super::{Interference, Operator, Region, low_bits};
use graven_base::memory::Addr;
use graven_base::surviving::{SurvivingImage, Written};

/// Bits that a value needs.
fn bits_of(value: u64) -> u8 {
    (64 - value.leading_zeros()) as u8
}

impl Interference {
    /// Undoes what batteries have saved after the given number of writes.
    pub fn saved(&mut self, image: &mut SurvivingImage, before: usize) {
        let saved = image.written()[before..].to_vec();
        match self.operator {
            None => self.profile.saved = self.profile.saved.max(saved.len()),
            Some(Operator::NotSaved(which)) => {
                image.rewind(before);
                let all = saved.iter().enumerate();
                let kept = all.filter(|&(at, _)| !which.is(at, saved.len()));
                kept.for_each(|(_, w)| image.store(w.addr, w.new));
            }
            Some(_) => {}
        }
    }

    /// Registers as power leaves them.
    pub fn registers(&mut self, registers: &mut [u64]) {
        match self.operator {
            None => {
                let known = &mut self.profile.registers;
                known.resize(known.len().max(registers.len()), 0);
                for (most, &value) in known.iter_mut().zip(registers.iter()) {
                    *most = bits_of(value).max(*most);
                }
            }
            Some(Operator::RegisterBits(register, bits)) => {
                if let Some(value) = registers.get_mut(usize::from(register)) {
                    *value = low_bits(*value, bits);
                }
            }
            Some(_) => {}
        }
    }

    /// Recovers; the log region is `[log_start, log_end)`.
    pub fn recover<R>(
        &mut self,
        image: &mut SurvivingImage,
        (log_start, log_end): (Addr, Addr),
        recover: impl FnOnce(&mut SurvivingImage) -> R,
    ) -> R {
        let power = image.power();
        image.set_power(None);
        let before = image.written().len();
        self.show_other_bytes(image, (log_start, log_end));
        let changed = image.written().len();
        let report = recover(image);
        let written = image.written()[changed..].to_vec();
        image.rewind(before);
        image.set_power(power);
        let of = |w: &Written| usize::from(w.addr >= log_start);
        let counts = [Region::Home, Region::Log]
            .map(|region| written.iter().filter(|w| of(w) == region as usize).count());
        if self.operator.is_none() {
            let known = self.profile.recovered.iter_mut().zip(counts);
            known.for_each(|(most, words)| *most = words.max(*most));
        }
        for w in self.rewritten(written, counts, of) {
            image.store(w.addr, w.new);
        }
        report
    }

    /// Has recovery see other bytes.
    fn show_other_bytes(&mut self, image: &mut SurvivingImage, (start, end): (Addr, Addr)) {
        let words = |image: &SurvivingImage| -> Vec<(Addr, u64)> {
            image.image().nonzero_words_in(start, end).collect()
        };
        match self.operator {
            None => {
                let bits = image.image().bits_in(start.line(), end.line());
                for (most, bits) in self.profile.log_bits.iter_mut().zip(bits) {
                    *most = bits_of(bits).max(*most);
                }
            }
            Some(Operator::RecoveryReads(word, bits)) => {
                let (lines, lost) = ((start.line(), end.line()), !low_bits(u64::MAX, bits));
                let cut: Vec<_> = image.image().marked_in(lines, word.into(), lost).collect();
                cut.into_iter().for_each(|(addr, held)| image.store(addr, low_bits(held, bits)));
            }
            Some(Operator::RecoveryReadsHalf) => {
                let words = words(image);
                words[words.len() / 2..].iter().for_each(|&(addr, _)| image.store(addr, 0));
            }
            Some(_) => {}
        }
    }

    /// Changes the writes of recovery in the way of the operator.
    fn rewritten(
        &self,
        mut written: Vec<Written>,
        counts: [usize; 2],
        of: impl Fn(&Written) -> usize,
    ) -> Vec<Written> {
        match self.operator {
            Some(Operator::RecoverySkips(region, which)) => {
                let (region, mut next) = (region as usize, 0);
                written.retain(|w| {
                    if of(w) != region {
                        return true;
                    }
                    next += 1;
                    !which.is(next - 1, counts[region])
                });
            }
            Some(Operator::RecoveryReversed) => {
                let homes: Vec<Written> = written.iter().filter(|w| of(w) == 0).copied().collect();
                let places = written.iter_mut().filter(|w| of(w) == 0);
                places.zip(homes.into_iter().rev()).for_each(|(place, w)| *place = w);
            }
            Some(Operator::RecoveryLogFirst) => written.sort_by_key(|w| of(w) == 0),
            _ => {}
        }
        written
    }
}
