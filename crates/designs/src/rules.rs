//! The rules of a protocol, and the mutants that break them.
//!
//! A protocol says what the paper says: `if self.rules.merge_clears_flush_bit() { … }`. Which mutant breaks a rule
//! stands in the design's file `rules.rs` alone.

use graven_machine::design::{MutantSet, Named};

/// Declares `Rules`, the rules of a design's protocol, each with the mutant that breaks it: what the mutant does, the
/// rule, and the mutant's name. `Rules::MUTANTS` is for [`DesignInfo::mutants`](graven_machine::design::DesignInfo::mutants).
macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $rule:ident, or $name:literal;)+) => {
        /// The rules of the protocol. Each holds unless its mutant is in force.
        #[derive(Clone, Copy, Debug, Default)]
        pub struct Rules(graven_machine::design::MutantSet);

        /// The places of mutants, in the order in which they are listed.
        #[allow(non_camel_case_types, reason = "a place has the name of its rule")]
        enum Place {
            $($rule,)+
        }

        impl Rules {
            /// The mutants, in the order in which they are listed.
            pub const MUTANTS: &'static [graven_machine::design::Named] =
                &[$(graven_machine::design::Named { name: $name, summary: concat!($($doc),+) },)+];

            /// The rules in a context.
            pub fn of(context: &graven_machine::design::DesignContext) -> Rules {
                Rules(context.mutants)
            }

            /// Holds if no mutant is in force.
            #[allow(dead_code, reason = "few protocols assert what a mutant may break")]
            pub fn all_hold(self) -> bool {
                self.0 == graven_machine::design::MutantSet::NONE
            }

            $(
                #[doc = concat!("Holds unless `", $name, "` is in force.")]
                #[inline]
                pub fn $rule(self) -> bool {
                    !self.0.has(Place::$rule as usize)
                }
            )+
        }
    };
}

/// The set of the mutants of these names: what a literal variant does.
///
/// # Panics
/// There is no mutant of a name; so does the compiler, where the set is a constant.
pub const fn named(mutants: &[Named], names: &[&str]) -> MutantSet {
    let (mut set, mut i) = (MutantSet::NONE, 0);
    while i < names.len() {
        set = set.and(MutantSet::only(place_of(mutants, names[i])));
        i += 1;
    }
    set
}

/// The mutants before the one of a name: those of a variant to which it and the later ones do no harm.
///
/// # Panics
/// There is no mutant of the name; so does the compiler, where the list is a constant.
pub const fn before(mutants: &'static [Named], name: &str) -> &'static [Named] {
    mutants.split_at(place_of(mutants, name)).0
}

const fn place_of(mutants: &[Named], name: &str) -> usize {
    let mut place = 0;
    while !is_same(mutants[place].name, name) {
        place += 1;
    }
    place
}

const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut i = 0;
    while i < one.len() && i < other.len() && one[i] == other[i] {
        i += 1;
    }
    i == one.len() && i == other.len()
}

pub(crate) use rules;
