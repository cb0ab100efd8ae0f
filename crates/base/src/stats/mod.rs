//! Statistics: each declared once, with unit and description.

mod distribution;

pub use crate::of_distribution;
pub use distribution::{Distribution, Latency};

/// Kinds of numbers.
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

impl Kind {
    /// The value of a counter over two runs that counted this and that.
    ///
    /// # Panics
    /// If counters are not of this kind.
    #[inline]
    pub fn join(self, one: u64, other: u64) -> u64 {
        match self {
            Kind::Count => one + other,
            Kind::Gauge => one.max(other),
            Kind::Ratio | Kind::Digest => unreachable!("counters count, or keep the largest value"),
        }
    }
}

/// Declaration of one statistic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// Name; `core*.x` stands for one per core, `bank*.x` for one per bank.
    pub name: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// Kind of number.
    pub kind: Kind,
    /// Meaning.
    pub description: &'static str,
}

impl Declaration {
    /// Declares a statistic.
    pub const fn new(
        name: &'static str,
        unit: &'static str,
        kind: Kind,
        description: &'static str,
    ) -> Declaration {
        Declaration { name, unit, kind, description }
    }
}

/// Declares statistics in a table: name, kind of number, unit, and what each means.
///
/// ```
/// use graven_base::stats::{Declaration, Kind};
/// const ALL: &[Declaration] = graven_base::declarations! {
///     /// Instructions per cycle, summed over cores.
///     "ipc": Ratio, "instructions/cycle";
/// };
/// assert_eq!((ALL[0].name, ALL[0].kind), ("ipc", Kind::Ratio));
/// assert_eq!(ALL[0].description, "Instructions per cycle, summed over cores.");
/// ```
#[macro_export]
macro_rules! declarations {
    ($($(#[doc = $doc:literal])+ $name:literal: $kind:ident, $unit:literal;)*) => {
        &[$($crate::stats::Declaration {
            name: $name,
            unit: $unit,
            kind: $crate::stats::Kind::$kind,
            description: concat!($($doc),+).trim_ascii(),
        },)*]
    };
}

/// A set of plain counters, as [`counters!`](crate::counters) declares it.
pub trait CounterSet: Clone + std::fmt::Debug + Default + 'static {
    /// Their declarations, in order.
    fn declarations() -> Vec<&'static Declaration>;

    /// The values, in the order of [`CounterSet::declarations`].
    fn values(&self) -> Vec<u64>;

    /// Adds what another run has counted; of largest and final values the larger one stays.
    fn join(&mut self, other: &Self);

    /// Declarations with values.
    fn counts(&self) -> Counts {
        Counts(Self::declarations().into_iter().zip(self.values()).collect())
    }
}

/// Declares a set of plain counters: name, kind of number, unit, and what each means. A set may include those of the
/// mechanisms that its owner is built from; they are reached by `AsMut`, too.
///
/// ```
/// graven_base::counters! {
///     /// What a scan counts.
///     pub struct Scans {
///         /// Complete scans of the caches.
///         scans: Count, "scans";
///     }
/// }
/// graven_base::counters! {
///     /// What the design counts, its scans included.
///     pub struct Logs {
///         /// Log entries created.
///         log_entries: Count, "entries";
///     }
///     includes { scans: Scans }
/// }
/// use graven_base::stats::CounterSet;
/// let mut logs = Logs::default();
/// logs.log_entries += 2;
/// AsMut::<Scans>::as_mut(&mut logs).scans += 1;
/// assert_eq!(logs.counts()["scans"], 1);
/// assert_eq!(logs.values(), [2, 1]);
/// logs.join(&logs.clone());
/// assert_eq!(logs.values(), [4, 2]);
/// ```
#[macro_export]
macro_rules! counters {
    (
        $(#[doc = $sdoc:literal])* $seen:vis struct $set:ident {
            $($(#[doc = $doc:literal])+ $name:ident: $kind:ident, $unit:literal;)*
        }
        $(includes { $($part:ident: $Part:ty),+ $(,)? })?
    ) => {
        $(#[doc = $sdoc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        $seen struct $set {
            $($(#[doc = $doc])+ pub $name: u64,)*
            $($(#[doc = concat!("Those of ", stringify!($Part), ".")] pub $part: $Part,)+)?
        }

        impl $set {
            /// Declarations of its own counters, in order.
            pub const DECLARATIONS: &'static [$crate::stats::Declaration] = &[$($crate::stats::Declaration {
                name: stringify!($name),
                unit: $unit,
                kind: $crate::stats::Kind::$kind,
                description: concat!($($doc),+).trim_ascii(),
            },)*];
        }

        impl $crate::stats::CounterSet for $set {
            fn declarations() -> ::std::vec::Vec<&'static $crate::stats::Declaration> {
                #[allow(unused_mut, reason = "most sets include no others")]
                let mut all: ::std::vec::Vec<_> = Self::DECLARATIONS.iter().collect();
                $($(all.extend(<$Part as $crate::stats::CounterSet>::declarations());)+)?
                all
            }

            fn values(&self) -> ::std::vec::Vec<u64> {
                #[allow(unused_mut, reason = "most sets include no others")]
                let mut all = ::std::vec![$(self.$name),*];
                $($(all.extend($crate::stats::CounterSet::values(&self.$part));)+)?
                all
            }

            #[allow(unused_variables, reason = "some sets are empty")]
            fn join(&mut self, other: &Self) {
                $(self.$name = $crate::stats::Kind::$kind.join(self.$name, other.$name);)*
                $($($crate::stats::CounterSet::join(&mut self.$part, &other.$part);)+)?
            }
        }

        impl ::std::convert::AsMut<$set> for $set {
            fn as_mut(&mut self) -> &mut $set {
                self
            }
        }

        $($(impl ::std::convert::AsMut<$Part> for $set {
            fn as_mut(&mut self) -> &mut $Part {
                &mut self.$part
            }
        })+)?
    };
}

counters! {
    /// The counters of what counts nothing.
    pub struct NoCounters {}
}

/// Counters by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts(Vec<(&'static Declaration, u64)>);

impl Counts {
    /// The value of a counter, if there is one of this name.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.find(name).copied()
    }

    fn find(&self, name: &str) -> Option<&u64> {
        self.0.iter().find(|(declaration, _)| declaration.name == name).map(|(_, value)| value)
    }

    /// `a` over `b`; 0 if that is 0.
    ///
    /// # Panics
    /// If there is no such counter.
    pub fn ratio(&self, a: &str, b: &str) -> f64 {
        ratio(self[a], self[b])
    }

    /// Adds other counters, which have other names.
    pub fn extend(&mut self, others: Counts) {
        self.0.extend(others.0);
    }

    /// Takes away what had been counted before, in the same order; largest and final values stay.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn subtract(&mut self, before: &[u64]) {
        assert_eq!(self.0.len(), before.len(), "the same counters");
        for ((declaration, value), before) in self.0.iter_mut().zip(before) {
            if declaration.kind == Kind::Count {
                *value -= before;
            }
        }
    }

    /// Adds what another run has counted, in the same order; of largest and final values the larger one stays.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn join(&mut self, other: &Counts) {
        assert_eq!(self.0.len(), other.0.len(), "the same counters");
        for ((declaration, value), (_, other)) in self.0.iter_mut().zip(&other.0) {
            *value = declaration.kind.join(*value, *other);
        }
    }

    /// All, in the order of their declarations.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Declaration, u64)> {
        self.0.iter().copied()
    }
}

impl std::ops::Index<&str> for Counts {
    type Output = u64;

    /// The value of a counter.
    ///
    /// # Panics
    /// If there is no such counter.
    fn index(&self, name: &str) -> &u64 {
        self.find(name).unwrap_or_else(|| panic!("no counter is called {name}"))
    }
}

/// `a` over `b`; 0 if that is 0.
pub fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

/// A statistic that is derived from counters when a record is made.
#[derive(Clone, Copy, Debug)]
pub struct Derived {
    /// Declaration.
    pub declaration: Declaration,
    /// Value; the machine's counters are given beside those of its owner.
    pub of: fn(&Counts) -> f64,
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

    /// Energy of `femtojoule` fJ.
    pub const fn femtojoule(femtojoule: u64) -> Energy {
        Energy { femtojoule }
    }

    /// Returns `n` times the energy.
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

    /// In femtojoule.
    pub const fn in_femtojoule(self) -> u64 {
        self.femtojoule
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
