//! Bounds of what the adversary draws: named numbers with defaults, which a campaign may change and its verdict states.

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A bound of what is drawn.
#[derive(Clone, Copy, Debug)]
pub struct DrawRange {
    /// The name in requests.
    pub name: &'static str,
    /// The bounded quantity, as a verdict has it after its number.
    pub summary: &'static str,
    /// The number of a request without this setting.
    pub default: u64,
    /// The least and the most that are allowed.
    pub allowed: (u64, u64),
    get: fn(&mut Draws) -> &mut u64,
}

macro_rules! draws {
    ($($(#[doc = $doc:literal])+ $field:ident: $name:literal = $default:literal, $from:literal..=$to:expr, $summary:literal;)+) => {
        /// Bounds of what is drawn.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
        pub struct Draws {
            $($(#[doc = $doc])+ pub $field: u64,)+
        }

        impl Default for Draws {
            fn default() -> Draws {
                Draws { $($field: $default,)+ }
            }
        }

        /// All bounds, in the order in which verdicts state them.
        pub const DRAW_RANGES: &[DrawRange] = &[$(DrawRange {
            name: $name,
            summary: $summary,
            default: $default,
            allowed: ($from, $to),
            get: |draws| &mut draws.$field,
        },)+];
    };
}

draws! {
    /// Most threads.
    threads: "threads" = 64, 1..=64, "threads";
    /// Most locks.
    locks: "locks" = 6, 1..=64, "locks";
    /// Most transactions of a thread.
    transactions: "transactions" = 48, 1..=4096, "transactions of a thread";
    /// Most transactions without stores in a row.
    empty_transactions: "empty-transactions" = 255, 0..=65_535, "transactions without stores in a row";
    /// Most transactions of one store in a row.
    small_transactions: "small-transactions" = 1023, 0..=65_535, "transactions of one store in a row";
    /// Most stores of a transaction, but for arrays that are filled.
    stores: "stores" = 600, 1..=65_536, "stores of a transaction";
    /// For a hundred places before and after transactions, those at which the thread stores outside them.
    outside: "outside" = 0, 0..=100, "% of the places around transactions with stores outside";
    /// Most variables besides the array.
    variables: "variables" = 8, 2..=256, "variables";
    /// Most words of the array.
    array_words: "array-words" = 400, 80..=65_536, "words of an array";
    /// Bits of the values that are stored.
    value_bits: "value-bits" = 64, 1..=64, "bits of a value";
    /// Most lives.
    lives: "lives" = 3, 1..=16, "lives";
    /// PM over which variables are spread, in GB; 0: that of the cramped machine.
    pm_gb: "pm-gb" = 300, 0..=300, "GB of PM";
    /// Schedules of a hundred that vary an earlier one, as far as there are such.
    varied: "varied" = 40, 0..=100, "% variations of schedules that reached something new";
}

/// Why a bound is not what it was to be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DrawsError {
    /// There is none of this name.
    #[error("draw: `{name}` is not a bound of what is drawn; there are {known}")]
    Unknown {
        /// As given.
        name: String,
        /// All of them.
        known: String,
    },
    /// The number is out of its range.
    #[error("draw: {name} = {value} is not allowed; {least} to {most}")]
    Range {
        /// The name.
        name: &'static str,
        /// As given.
        value: u64,
        /// The least that is allowed.
        least: u64,
        /// The most.
        most: u64,
    },
}

impl Draws {
    /// With some bounds changed.
    ///
    /// # Errors
    /// Names what there is, or what is allowed.
    pub fn with(pairs: &[(String, u64)]) -> Result<Draws, DrawsError> {
        let mut draws = Draws::default();
        for (name, value) in pairs {
            let found = DRAW_RANGES.iter().find(|range| range.name == name);
            let range = found.ok_or_else(|| DrawsError::Unknown {
                name: name.clone(),
                known: DRAW_RANGES.iter().map(|range| range.name).collect::<Vec<_>>().join(", "),
            })?;
            let (least, most) = range.allowed;
            if !(least..=most).contains(value) {
                return Err(DrawsError::Range { name: range.name, value: *value, least, most });
            }
            *(range.get)(&mut draws) = *value;
        }
        Ok(draws)
    }
}

impl Display for Draws {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut draws = *self;
        f.write_str("up to ")?;
        for (at, range) in DRAW_RANGES.iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            write!(f, "{separator}{} {}", (range.get)(&mut draws), range.summary)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_changed_by_name_within_their_ranges() {
        let with = |name: &str, value| Draws::with(&[(name.into(), value)]);
        assert_eq!(Draws::with(&[]), Ok(Draws::default()));
        for range in DRAW_RANGES {
            for value in [range.allowed.0, range.allowed.1] {
                let mut draws = with(range.name, value).expect("it is allowed");
                assert_eq!(*(range.get)(&mut draws), value, "{}", range.name);
                assert!(draws.to_string().contains(&format!("{value} {}", range.summary)));
            }
            let over = with(range.name, range.allowed.1 + 1).expect_err("it is not").to_string();
            assert!(over.contains(range.name) && over.contains(&range.allowed.1.to_string()));
        }
        let unknown = with("thread", 2).expect_err("there is none").to_string();
        assert!(unknown.contains("`thread`") && unknown.contains("threads, locks"), "{unknown}");
    }
}
