//! What keeps something through a power failure: the energy to move it to PM, and the volume and area of what stores
//! that energy (Silo §VI-E, Table IV).
//!
//! Silo prints the energy per byte that its own log buffer takes, 11.228 nJ, and the energy densities. The columns of
//! eADR and BBB in its Table IV follow if bytes from an L1 take 11.839 nJ; the paper does not print that number, which is
//! of the model that it cites, and with 11.228 nJ alone neither column comes out.

use super::{Formula, Function};

/// What stores the energy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A supercapacitor.
    Capacitor,
    /// A lithium thin-film battery.
    Lithium,
}

impl Source {
    /// Energy density in Wh/cm³.
    fn density(self) -> Formula {
        match self {
            Source::Capacitor => Formula::named("capacitor-density", 1e-4),
            Source::Lithium => Formula::named("lithium-density", 1e-2),
        }
    }

    /// Volume in mm³ for an energy in µJ: 3,600 J are a Wh, and a µJ/mm³ is a thousandth of a J/cm³.
    pub fn volume(self, energy: Formula) -> Formula {
        energy / (self.density() * 3600 * 1000)
    }

    /// Area in mm² of a cube of a volume in mm³.
    pub fn area(volume: Formula) -> Formula {
        volume.call(Function::CubeFace)
    }
}

/// From where bytes are moved to PM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supply {
    /// A buffer of the controller, or a cache behind the L1.
    Controller,
    /// An L1, or a buffer beside it.
    L1,
}

impl Supply {
    /// Energy in nJ for a byte.
    pub fn energy_per_byte(self) -> Formula {
        match self {
            Supply::Controller => Formula::named("energy-per-byte", 11.228),
            Supply::L1 => Formula::named("l1-energy-per-byte", 11.839),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Silo Table IV by the printed energies, which are rounded: 54,377, 194 and 62 µJ.
    #[test]
    fn the_printed_energies_have_the_printed_volumes_and_areas() {
        let sizes = |energy: f64| {
            let volumes = [Source::Capacitor, Source::Lithium].map(|s| s.volume(energy.into()));
            volumes.map(|volume| (volume.value(), Source::area(volume).value()))
        };
        for (energy, [cap, lithium]) in [
            (54_377.0, [(151.0, 28.4), (1.51, 1.32)]),
            (194.0, [(0.54, 0.66), (0.0054, 0.031)]),
            (62.0, [(0.17, 0.31), (0.0017, 0.014)]),
        ] {
            for ((volume, area), printed) in sizes(energy).into_iter().zip([cap, lithium]) {
                assert!((volume / printed.0 - 1.0).abs() < 0.03, "{energy}: {volume} mm³");
                assert!((area / printed.1 - 1.0).abs() < 0.03, "{energy}: {area} mm²");
            }
        }
    }
}
