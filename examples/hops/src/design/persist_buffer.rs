//! Persist buffers: what each thread has stored and memory has not.

use std::collections::VecDeque;

use graven::ids::ThreadId;
use graven::memory::{Addr, LineAddr, LineData, WordMask};

/// Number of an epoch of a thread.
pub(super) type Epoch = u64;

/// Stores of one epoch to one line.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Distinguishes entries of a thread.
    pub number: u64,
    pub epoch: Epoch,
    pub line: LineAddr,
    pub content: LineData,
    /// Words that were stored to.
    pub words: WordMask,
    pub sent: bool,
}

/// An epoch of another thread that must be durable first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dependence {
    /// The epoch that found it: it holds for that one and later ones.
    pub from: Epoch,
    pub thread: ThreadId,
    pub epoch: Epoch,
}

/// Who waits for a buffer, so that it flushes what it has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Urgency {
    /// Entries of epochs up to this are to be flushed.
    pub up_to: Option<Epoch>,
    /// Its thread has a store that finds no room.
    pub store_waits: bool,
    /// Its thread is at a durability fence.
    pub fence_waits: bool,
}

/// The persist buffer of a thread.
#[derive(Clone, Debug, Default)]
pub(super) struct PersistBuffer {
    /// The present epoch.
    pub epoch: Epoch,
    /// In the order of their first stores.
    pub entries: VecDeque<Entry>,
    pub dependences: Vec<Dependence>,
    pub urgency: Urgency,
    next: u64,
}

impl PersistBuffer {
    /// Returns true if all stores of the epochs up to this are durable, and no more will come.
    pub fn is_durable(&self, epoch: Epoch) -> bool {
        self.epoch > epoch && self.entries.iter().all(|entry| entry.epoch > epoch)
    }

    /// The newest epoch that has stored to a line and is not durable.
    pub fn epoch_of(&self, line: LineAddr) -> Option<Epoch> {
        self.entries.iter().rev().find(|entry| entry.line == line).map(|entry| entry.epoch)
    }

    /// The entry that a store of the present epoch to a line joins; `any_epoch`: or one of an older epoch.
    pub fn joined_by_store(&mut self, line: LineAddr, any_epoch: bool) -> Option<&mut Entry> {
        let epoch = self.epoch;
        let joins = |entry: &&mut Entry| {
            entry.line == line && !entry.sent && (any_epoch || entry.epoch == epoch)
        };
        self.entries.iter_mut().rev().find(joins)
    }

    /// A new entry of the present epoch.
    pub fn add(&mut self, addr: Addr, content: LineData) {
        self.next += 1;
        self.entries.push_back(Entry {
            number: self.next,
            epoch: self.epoch,
            line: addr.line(),
            content,
            words: 1 << addr.word_in_line(),
            sent: false,
        });
    }

    /// What the thread depends on from now on. Returns whether it did not depend on it before.
    pub fn depend(&mut self, thread: ThreadId, epoch: Epoch) -> bool {
        let known = |d: &Dependence| d.thread == thread && d.epoch >= epoch;
        if self.dependences.iter().any(known) {
            return false;
        }
        self.dependences.push(Dependence { from: self.epoch, thread, epoch });
        true
    }

    /// A write is durable: its entry leaves.
    pub fn durable(&mut self, number: u64) {
        self.entries.retain(|entry| entry.number != number);
    }

    /// Returns true if an entry's line has an older one on its way.
    pub fn line_is_under_way(&self, at: usize) -> bool {
        let line = self.entries[at].line;
        self.entries.iter().take(at).any(|entry| entry.line == line)
    }
}
