//! Mutants: single-point changes for the worse, by which the laboratory is tested.

use std::marker::PhantomData;

/// Set of the design's mutants that are in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MutantSet(u64);

impl MutantSet {
    /// None.
    pub const NONE: MutantSet = MutantSet(0);

    /// The one at this place of [`DesignInfo::mutants`](crate::design::DesignInfo::mutants).
    pub const fn only(index: usize) -> MutantSet {
        MutantSet(1 << index)
    }

    /// Both sets.
    pub const fn and(self, other: MutantSet) -> MutantSet {
        MutantSet(self.0 | other.0)
    }

    /// Returns true if a mutant is in force.
    #[inline]
    pub fn has(self, mutant: impl Into<usize>) -> bool {
        self.0 >> mutant.into() & 1 != 0
    }
}

/// Those of one design's mutants `M` that are in force.
#[derive(Debug)]
pub struct Mutants<M> {
    set: MutantSet,
    of: PhantomData<fn(M)>,
}

impl<M> Clone for Mutants<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Mutants<M> {}

impl<M: Into<usize>> Mutants<M> {
    /// Those of a set.
    pub fn of(set: MutantSet) -> Mutants<M> {
        Mutants { set, of: PhantomData }
    }

    /// Returns true if a mutant is in force.
    #[inline]
    pub fn has(self, mutant: M) -> bool {
        self.set.has(mutant)
    }

    /// Returns true if any is in force.
    pub fn any(self) -> bool {
        self.set != MutantSet::NONE
    }
}

/// Declares a design's mutants: single-point changes for the worse, each of which the laboratory must
/// violate. The enum's order is that of `NAMED`, for [`DesignInfo::mutants`](crate::design::DesignInfo::mutants).
#[macro_export]
macro_rules! mutants {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal;)+) => {
        /// Single-point changes for the worse.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Mutant {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Mutant {
            const NAMED: &'static [$crate::design::Named] = &[$($crate::design::Named {
                name: $name,
                summary: concat!($($doc),+),
            },)+];
        }

        impl Mutant {
            /// Several, as a set.
            #[allow(dead_code, reason = "only a literal variant has several at once")]
            const fn all(of: &[Mutant]) -> $crate::design::MutantSet {
                let (mut set, mut i) = ($crate::design::MutantSet::NONE, 0);
                while i < of.len() {
                    set = set.and($crate::design::MutantSet::only(of[i] as usize));
                    i += 1;
                }
                set
            }
        }

        impl From<Mutant> for usize {
            fn from(mutant: Mutant) -> usize {
                mutant as usize
            }
        }
    };
}
