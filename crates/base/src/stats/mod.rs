//! Statistics: each declared once, with unit and description.

mod distribution;

pub use crate::of_distribution;
pub use distribution::{Distribution, Latency};

/// What kind of number a statistic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Something counted; adds up over phases.
    Count,
    /// A largest or final value.
    Gauge,
    /// Derived from others: a mean, a rate, a percentile.
    Ratio,
    /// A digest of bytes, printed in hexadecimal.
    Digest,
}

/// Declaration of one statistic.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// Its name; `core*.x` stands for one per core, `bank*.x` for one per bank.
    pub name: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// Kind of number.
    pub kind: Kind,
    /// What it means.
    pub description: &'static str,
}

/// Declares a set of plain counters: name, kind of number, unit, and what each means.
#[macro_export]
macro_rules! counters {
    ($(#[doc = $sdoc:literal])* pub struct $set:ident {
        $($(#[doc = $doc:literal])+ $name:ident: $kind:ident, $unit:literal;)*
    }) => {
        $(#[doc = $sdoc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $set { $($(#[doc = $doc])+ pub $name: u64,)* }

        impl $set {
            /// Their declarations, in order.
            pub const DECLARATIONS: &'static [$crate::stats::Declaration] = &[$($crate::stats::Declaration {
                name: stringify!($name),
                unit: $unit,
                kind: $crate::stats::Kind::$kind,
                description: concat!($($doc),+).trim_ascii(),
            },)*];

            /// The values, in the order of `DECLARATIONS`.
            pub fn values(&self) -> Vec<u64> {
                vec![$(self.$name),*]
            }
        }
    };
}

/// The declaration of a statistic that is derived from others.
pub const fn derived(
    name: &'static str,
    unit: &'static str,
    description: &'static str,
) -> Declaration {
    Declaration { name, unit, kind: Kind::Ratio, description }
}

/// Energy, summed in femtojoule so that the order of additions cannot matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Energy {
    femtojoule: u64,
}

impl Energy {
    /// The energy of one bit, from a parameter in pJ/bit.
    pub fn per_bit(pj: f64) -> Energy {
        Energy { femtojoule: (pj * 1000.0).round() as u64 }
    }

    /// So many femtojoule.
    pub const fn femtojoule(femtojoule: u64) -> Energy {
        Energy { femtojoule }
    }

    /// So many times as much.
    #[inline]
    pub const fn times(self, n: u64) -> Energy {
        Energy { femtojoule: self.femtojoule * n }
    }

    /// Both.
    #[inline]
    pub const fn and(self, other: Energy) -> Energy {
        Energy { femtojoule: self.femtojoule + other.femtojoule }
    }

    /// Adds `bits` times the energy of one bit.
    #[inline]
    pub fn add_bits(&mut self, per_bit: Energy, bits: u64) {
        self.femtojoule += per_bit.femtojoule * bits;
    }

    /// In picojoule.
    pub fn pj(self) -> f64 {
        self.femtojoule as f64 / 1000.0
    }
}

/// One value of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Count(u64),
    /// A derived number.
    Number(f64),
    /// Hexadecimal text.
    Digest(u64),
}
