//! Requests to the adversary, and its chunks: stretches of seeds that begin at the same seeds however many host
//! threads there are and however often a campaign was interrupted, so that sums are the same, too.

use serde::Deserialize;
use thiserror::Error;

use crate::adversary::{Draws, DrawsError, FAMILY_SCHEDULES};
use crate::minimise::RUNS;

/// Schedules of a chunk; a design's last may have fewer. With the first seed 1, a chunk is a family of the adversary's.
pub const CHUNK_SCHEDULES: u64 = FAMILY_SCHEDULES;

/// Most schedules of a design.
const SEEDS_MAX: u64 = 1 << 40;

/// Why something cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// A number out of its range.
    #[error("{name}: {value} is not allowed; {allowed}")]
    Number {
        /// The name.
        name: &'static str,
        /// As given.
        value: u64,
        /// The accepted values.
        allowed: String,
    },
    /// No design.
    #[error("designs: the list is empty")]
    NoDesigns,
    /// Bounds of what is drawn.
    #[error(transparent)]
    Draws(#[from] DrawsError),
    /// A design more than once.
    #[error("designs: `{0}` is there twice")]
    Twice(String),
}

/// The request of a campaign of the adversary. As JSON the settings are `set`, a list of pairs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdversaryRequest {
    /// Designs, each with all schedules.
    pub designs: Vec<String>,
    /// Schedules of each.
    pub seeds: u64,
    /// Seed of the first.
    pub first_seed: u64,
    /// A mutant of the designs that is enabled.
    pub mutant: Option<String>,
    /// Configuration on top of what is drawn, by `SECTION.KEY`.
    #[serde(rename = "set")]
    pub settings: Vec<(String, String)>,
    /// Bounds of what is drawn, by name.
    #[serde(rename = "draw", default)]
    pub draws: Vec<(String, u64)>,
    /// A design's campaign ends with the chunk that has the violation of this number.
    #[serde(rename = "violations")]
    pub violations_max: usize,
    /// Most runs that minimising a violation's program takes; 0: it stays as it was drawn. If it is not given, [`RUNS`].
    #[serde(default)]
    pub minimise: Option<u32>,
}

/// Schedules that are run together, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The number among those of the design.
    pub index: u64,
    /// Seed of its first schedule.
    pub first_seed: u64,
    /// The schedules.
    pub seeds: u64,
}

impl Chunk {
    /// The seed after its last.
    pub fn end_seed(&self) -> u64 {
        self.first_seed + self.seeds
    }
}

impl AdversaryRequest {
    /// Checks what needs no design.
    ///
    /// # Errors
    /// Names what was refused and what is allowed.
    pub fn check(&self) -> Result<(), RequestError> {
        let number = |name, value, allowed: String| RequestError::Number { name, value, allowed };
        if self.seeds == 0 {
            return Err(number("seeds", 0, "at least 1".into()));
        }
        if self.seeds > SEEDS_MAX {
            return Err(number("seeds", self.seeds, format!("at most {SEEDS_MAX}")));
        }
        if self.first_seed > u64::MAX - self.seeds {
            let allowed = format!("at most {} with so many seeds", u64::MAX - self.seeds);
            return Err(number("first_seed", self.first_seed, allowed));
        }
        if self.violations_max == 0 {
            return Err(number("violations", 0, "at least 1".into()));
        }
        self.draws()?;
        if self.designs.is_empty() {
            return Err(RequestError::NoDesigns);
        }
        let twice = |(at, name): &(usize, &String)| self.designs[..*at].contains(name);
        match self.designs.iter().enumerate().find(twice) {
            Some((_, name)) => Err(RequestError::Twice(name.clone())),
            None => Ok(()),
        }
    }

    /// Bounds of what is drawn.
    ///
    /// # Errors
    /// There is none of a name, or it is out of its range.
    pub fn draws(&self) -> Result<Draws, RequestError> {
        Ok(Draws::with(&self.draws)?)
    }

    /// Most runs that minimising a violation's program takes.
    pub(super) fn minimising_runs(&self) -> u32 {
        self.minimise.unwrap_or(RUNS)
    }

    /// Chunks of each design.
    pub fn chunks(&self) -> u64 {
        self.seeds.div_ceil(CHUNK_SCHEDULES)
    }

    /// One of them.
    ///
    /// # Panics
    /// There is none of that number.
    pub fn chunk(&self, index: u64) -> Chunk {
        assert!(index < self.chunks(), "chunk {index} of {}", self.chunks());
        let before = index * CHUNK_SCHEDULES;
        let seeds = CHUNK_SCHEDULES.min(self.seeds - before);
        let chunk = Chunk { index, first_seed: self.first_seed + before, seeds };
        assert!(chunk.seeds > 0 && chunk.end_seed() <= self.first_seed + self.seeds);
        chunk
    }

    /// Chunks that are done when `schedules` from the first on are; the last of them may have ended early.
    pub(super) fn chunks_in(&self, schedules: u64) -> u64 {
        assert!(schedules <= self.seeds, "{schedules} of {} schedules", self.seeds);
        schedules.div_ceil(CHUNK_SCHEDULES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(first_seed: u64, seeds: u64) -> AdversaryRequest {
        AdversaryRequest {
            designs: vec!["a".into(), "b".into()],
            seeds,
            first_seed,
            mutant: None,
            settings: Vec::new(),
            draws: Vec::new(),
            violations_max: 1,
            minimise: None,
        }
    }

    #[test]
    fn chunks_are_all_seeds_once_in_order() {
        for seeds in [1, 249, 250, 251, 500, 1001] {
            let request = request(8, seeds);
            let chunks: Vec<Chunk> = (0..request.chunks()).map(|n| request.chunk(n)).collect();
            assert_eq!(chunks[0].first_seed, 8);
            assert!(chunks.windows(2).all(|pair| pair[0].end_seed() == pair[1].first_seed));
            assert_eq!(chunks.iter().map(|chunk| chunk.seeds).sum::<u64>(), seeds);
            assert!(chunks.iter().all(|chunk| (1..=CHUNK_SCHEDULES).contains(&chunk.seeds)));
        }
    }

    #[test]
    fn what_cannot_be_asked_is_named() {
        let said = |change: &dyn Fn(&mut AdversaryRequest)| {
            let mut request = request(1, 600);
            change(&mut request);
            request.check().expect_err("refused").to_string()
        };
        assert_eq!(request(1, 600).check(), Ok(()));
        assert_eq!(request(u64::MAX - 600, 600).check(), Ok(()));
        assert_eq!(said(&|r| r.seeds = 0), "seeds: 0 is not allowed; at least 1");
        assert_eq!(said(&|r| r.violations_max = 0), "violations: 0 is not allowed; at least 1");
        assert!(said(&|r| r.seeds = u64::MAX).ends_with("at most 1099511627776"));
        assert!(said(&|r| r.first_seed = u64::MAX).starts_with("first_seed: 18446744073709551615"));
        assert_eq!(said(&|r| r.designs.clear()), "designs: the list is empty");
        assert_eq!(said(&|r| r.designs.push("a".into())), "designs: `a` is there twice");
    }

    #[test]
    fn a_request_is_json_and_nothing_else_is() {
        let text = r#"{"designs": ["a", "b"], "seeds": 600, "first_seed": 1, "mutant": null,
            "set": [["pm.banks", "2"]], "violations": 1}"#;
        let mut wanted = request(1, 600);
        wanted.settings = vec![("pm.banks".into(), "2".into())];
        assert_eq!(serde_json::from_str::<AdversaryRequest>(text).ok(), Some(wanted));
        for (from, to) in [("600", "-1"), ("600", "1.5"), ("\"set\"", "\"sets\""), ("}", "")] {
            let text = text.replacen(from, to, 1);
            assert!(serde_json::from_str::<AdversaryRequest>(&text).is_err(), "{text}");
        }
    }
}
