//! A guarantee, and a decision about an image.
//!
//! A [`Promise`] is a guarantee as data: a persistency model, or what a design says of its transactions. It makes a [`Judge`] for
//! a run. The judge is told of all events, and decides at any instant if an image may be the one that recovery finds.

use graven_base::memory::{Addr, Image};

use crate::happening::{Happening, Seq};

/// A guarantee about the bytes that a power failure leaves.
pub trait Promise: Sync {
    /// The name on command lines and in files.
    fn name(&self) -> &'static str;

    /// Makes a judge of one run.
    fn judge(&self) -> Box<dyn Judge>;
}

/// The judge of one run.
pub trait Judge {
    /// Takes in an event. Events come in the order of visibility, with rising numbers.
    fn saw(&mut self, at: Seq, happening: &Happening);

    /// Decides if power may fail now and leave these words.
    ///
    /// # Errors
    /// The first word that contradicts the promise.
    fn judge(&self, found: &dyn Words) -> Result<(), Broken>;
}

/// The words that recovery finds.
pub trait Words {
    /// The word at an address.
    fn word(&self, addr: Addr) -> u64;
}

impl Words for Image {
    fn word(&self, addr: Addr) -> u64 {
        self.load(addr)
    }
}

/// A promise that an image breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Broken {
    /// The contradiction, as a sentence.
    pub what: String,
    /// The word that contradicts.
    pub addr: Option<Addr>,
    /// The store that had to be durable, and the event that made it so.
    pub edge: Option<(Seq, Seq)>,
}
