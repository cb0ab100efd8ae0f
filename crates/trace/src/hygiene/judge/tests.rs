//! Histories of a few entries. Bug class: a rule of persistence is taken for another, so that a mistake is not seen or an innocent
//! line is blamed.

use std::io::Cursor;

use graven_machine::program::Ptr;
use serde_json::json;

use super::*;
use crate::program::{Header, History, Line as SourceLine, Origin, Site, Writer};

/// First byte of the only region.
const START: u64 = 2 << 20;
/// Bytes of it.
const BYTES: u64 = 1 << 20;

/// A program of some threads. Each call is on a line of its own, whose number is that of the entry, from 1.
struct Script {
    writer: Writer<Vec<u8>>,
    history: History,
    operations: Vec<u64>,
    atomic: Vec<u32>,
}

impl Script {
    fn new(threads: u32) -> Script {
        let report = json!({"regions": [{"start": START, "bytes": BYTES}]});
        let header = Header {
            capture: Some(json!({ "report": report })),
            ..Header::without_machine(Origin::Program, threads, START)
        };
        let mut writer = Writer::new(Vec::new(), &header).expect("a header");
        writer.picture(&Image::new()).expect("no words");
        let operations = vec![0; threads as usize];
        Script { writer, history: History::default(), operations, atomic: Vec::new() }
    }

    fn entry(&mut self, thread: u32, what: Happened) {
        let site = self.history.sites.len() as u32;
        let line = SourceLine {
            function: Some("work".into()),
            file: Some("work.c".into()),
            line: Some(site + 1),
        };
        let is_atomic = self.atomic.contains(&site);
        let module = Some("/home/work".into());
        let lines = vec![line];
        let address = u64::from(site);
        self.history.sites.push(Site { module, address, is_atomic, calls: None, lines });
        let operation = self.operations[thread as usize];
        self.history.push(&Happening { thread, operation, site, stack: 0, what });
    }

    fn operation(&mut self, thread: u32, op: Op, what: Happened) {
        self.entry(thread, what);
        self.writer.push(thread, op).expect("an operation");
        self.operations[thread as usize] += 1;
    }

    fn store_how(&mut self, thread: u32, at: u64, value: u64, how: How) -> &mut Script {
        let ptr = Ptr::known(Addr(START + at));
        let op = match how {
            How::NonTemporal => Op::StoreNonTemporal { at: ptr, value },
            _ => Op::Store { at: ptr, value },
        };
        self.operation(thread, op, Happened::Store { how, is_joined: false });
        self
    }

    fn store(&mut self, thread: u32, at: u64) -> &mut Script {
        self.store_how(thread, at, 7, How::Plain)
    }

    fn load(&mut self, thread: u32, at: u64) -> &mut Script {
        self.load_of(thread, at, u8::MAX)
    }

    fn load_of(&mut self, thread: u32, at: u64, bytes: u8) -> &mut Script {
        let op = Op::Load { at: Ptr::known(Addr(START + at)) };
        self.operation(thread, op, Happened::Load { bytes });
        self
    }

    fn flush_by(&mut self, thread: u32, at: u64, flush: Flush) -> &mut Script {
        self.entry(thread, Happened::Flush(flush, Place::Persistent(START + at)));
        self
    }

    fn flush(&mut self, thread: u32, at: u64) -> &mut Script {
        self.flush_by(thread, at, Flush::Clwb)
    }

    fn fence(&mut self, thread: u32, fence: Fence) -> &mut Script {
        self.entry(thread, Happened::Fence(fence));
        self
    }

    fn call(
        &mut self,
        thread: u32,
        asked: Asked,
        (at, bytes): (u64, u64),
        flags: u64,
    ) -> &mut Script {
        self.call_of(thread, asked, (at, bytes), flags, true)
    }

    fn call_of(
        &mut self,
        thread: u32,
        asked: Asked,
        (at, bytes): (u64, u64),
        flags: u64,
        is_over: bool,
    ) -> &mut Script {
        let place = Place::Persistent(START + at);
        let (result, path) = (0, String::new());
        self.entry(
            thread,
            Happened::Call(Call { asked, is_over, place, bytes, flags, result, path }),
        );
        self
    }

    /// The findings: class and line.
    fn found(&mut self) -> Vec<(Class, u32)> {
        self.judged()
            .findings
            .iter()
            .map(|f| (f.class, f.place.source.line.expect("a line")))
            .collect()
    }

    fn judged(&mut self) -> Hygiene {
        let empty = Script::new(self.operations.len() as u32);
        let Script { mut writer, history, operations, .. } = std::mem::replace(self, empty);
        for thread in 0..operations.len() as u32 {
            writer.push(thread, Op::Done).expect("an end");
        }
        writer.history(&history).expect("a history");
        let trace = writer.finish().expect("a trace");
        let reader = Reader::open(Cursor::new(trace)).expect("it is whole");
        judge(&reader, &Control::default()).expect("it can be judged")
    }
}

fn script(threads: u32, write: impl FnOnce(&mut Script)) -> Vec<(Class, u32)> {
    let mut script = Script::new(threads);
    write(&mut script);
    script.found()
}

#[test]
fn what_is_flushed_and_fenced_is_durable() {
    for fence in [Fence::Sfence, Fence::Mfence, Fence::Locked, Fence::Dsb, Fence::DsbStores] {
        let found = script(1, |s| {
            s.store(0, 0).store(0, 8).flush(0, 0).fence(0, fence);
        });
        assert_eq!(found, [], "{fence:?}");
    }
    for fence in [Fence::Dmb, Fence::DmbStores, Fence::DmbLoads, Fence::DsbLoads] {
        let found = script(1, |s| {
            s.store(0, 0).flush(0, 0).fence(0, fence);
        });
        assert_eq!(found, [(Class::NeverFenced, 2)], "{fence:?}");
    }
}

#[test]
fn clflush_needs_no_fence_and_clwb_does() {
    let found = script(1, |s| {
        s.store(0, 0).flush_by(0, 0, Flush::Clflush);
        s.store(0, 64).flush_by(0, 64, Flush::Clflushopt);
    });
    assert_eq!(found, [(Class::NeverFenced, 4)]);
}

#[test]
fn a_fence_is_its_threads_and_a_flush_anybodys() {
    let found = script(2, |s| {
        s.store(0, 0).flush(0, 0).fence(1, Fence::Locked);
        // The other thread flushes what this one has stored.
        s.store(0, 64).flush(1, 64).fence(1, Fence::Sfence);
    });
    assert_eq!(found, [(Class::NeverFenced, 2)]);
}

#[test]
fn the_last_store_counts_and_one_of_the_durable_value_does_not() {
    let found = script(1, |s| {
        s.store(0, 0).store_how(0, 0, 8, How::Plain).flush(0, 0).fence(0, Fence::Sfence);
        // As it was durable, without a flush.
        s.store(0, 0).store_how(0, 0, 8, How::Plain);
        // Zero is what was there.
        s.store_how(0, 128, 0, How::Plain);
    });
    assert_eq!(found, []);
}

#[test]
fn stores_that_were_overwritten_are_found_where_the_word_is_never_flushed() {
    let found = script(1, |s| {
        s.store_how(0, 0, 1, How::Plain).store_how(0, 0, 2, How::Plain);
        // A flush covers what it has overwritten.
        s.store_how(0, 64, 1, How::Plain).store_how(0, 64, 2, How::Plain);
        s.flush(0, 64).fence(0, Fence::Sfence);
        // Before the second store the word was durable.
        s.store_how(0, 128, 1, How::Plain).flush(0, 128).fence(0, Fence::Sfence);
        s.store_how(0, 128, 2, How::Plain);
    });
    let lines = [1, 2, 10].map(|line| (Class::NeverFlushed, line));
    assert_eq!(found, lines);
}

#[test]
fn a_lone_thread_needs_no_order_of_ordinary_stores() {
    for fence in [Fence::Mfence, Fence::Dsb, Fence::Sfence] {
        let found = script(1, |s| {
            s.store(0, 0).fence(0, fence).flush(0, 0).fence(0, fence);
        });
        assert_eq!(found, [(Class::IdleFence, 2)], "{fence:?}");
    }
    // Another thread sees it.
    let found = script(2, |s| {
        s.store(0, 0).fence(0, Fence::Mfence).flush(0, 0).fence(0, Fence::Mfence).load(1, 0);
    });
    assert_eq!(found, []);
}

#[test]
fn non_temporal_stores_need_a_fence_only() {
    let found = script(1, |s| {
        s.store_how(0, 0, 1, How::NonTemporal).fence(0, Fence::Sfence);
        s.store_how(0, 64, 1, How::NonTemporal);
    });
    assert_eq!(found, [(Class::NeverFenced, 3)]);
}

#[test]
fn a_store_behind_the_flush_is_seen_unless_the_next_flush_has_it() {
    let found = script(1, |s| {
        s.store(0, 0).flush(0, 0).store(0, 8).fence(0, Fence::Sfence);
        s.flush(0, 0).fence(0, Fence::Sfence);
        s.store(0, 64).flush(0, 64).store(0, 72).fence(0, Fence::Sfence);
        // Another line's flush and fence come first.
        s.store(0, 128).flush(0, 128).fence(0, Fence::Sfence);
        s.flush(0, 64).fence(0, Fence::Sfence);
    });
    assert_eq!(found, [(Class::StoredAfterFlush, 9)]);
}

#[test]
fn useless_flushes_and_fences_are_told_apart() {
    let found = script(2, |s| {
        s.flush(0, 0).fence(0, Fence::Sfence);
        s.store(0, 0).flush(0, 0).flush(0, 8).fence(0, Fence::Sfence);
        s.flush(0, 0).fence(0, Fence::Sfence);
        s.fence(0, Fence::Sfence).fence(0, Fence::Mfence).fence(0, Fence::Locked);
        // x86-64 orders stores without it; a barrier of Arm's has something to order.
        s.store(0, 8).fence(0, Fence::Sfence).flush(0, 0).fence(0, Fence::Dsb);
        s.store(0, 0).fence(0, Fence::Dsb);
        s.flush(0, 0).fence(0, Fence::Dsb).load(1, 4096);
    });
    let expected = [
        (Class::FlushedTwice, 5),
        (Class::CleanFlush, 1),
        (Class::CleanFlush, 7),
        (Class::IdleFence, 9),
        (Class::IdleFence, 10),
        (Class::IdleFence, 13),
    ];
    assert_eq!(found, expected);
}

#[test]
fn calls_make_durable_what_they_cover_and_wait_for() {
    let sync = |asked, range, flags| {
        script(1, move |s| {
            s.store(0, 0).store(0, 8192).call(0, asked, range, flags);
        })
    };
    let missed = [(Class::SyncMisses, 2)];
    assert_eq!(sync(Asked::Msync, (0, 4096), 4), missed);
    assert_eq!(sync(Asked::Msync, (0, 12_288), 4), []);
    assert_eq!(sync(Asked::Fsync, (0, u64::MAX), 0), []);
    assert_eq!(sync(Asked::Fdatasync, (0, u64::MAX), 0), []);
    assert_eq!(sync(Asked::Sync, (0, 0), 0), []);
    assert_eq!(sync(Asked::SyncFileRange, (0, 12_288), 4), []);
    // Neither waits.
    let both = [(Class::NeverFlushed, 1), (Class::NeverFlushed, 2)];
    assert_eq!(sync(Asked::Msync, (0, 12_288), 1), both);
    assert_eq!(sync(Asked::SyncFileRange, (0, 12_288), 2), both);
    // A write to a file that was opened with O_DSYNC.
    let write = |flags| {
        script(1, move |s| {
            s.store_how(0, 0, 5, How::Kernel).call(0, Asked::Write, (0, 8), flags);
            s.store(0, 64).flush(0, 64).fence(0, Fence::Sfence);
        })
    };
    assert_eq!((write(1), write(0)), (vec![], vec![(Class::NeverFlushed, 1)]));
}

#[test]
fn a_call_has_not_seen_what_others_store_meanwhile() {
    let found = script(2, |s| {
        s.store(0, 0).call_of(0, Asked::Msync, (0, 4096), 4, false);
        s.store(1, 8).call(0, Asked::Msync, (0, 4096), 4);
    });
    assert_eq!(found, [(Class::NeverFlushed, 3)]);
}

#[test]
fn a_dirty_read_matters_with_its_effect() {
    let effect = |persist: bool| {
        script(2, move |s| {
            s.store(0, 0).load(1, 0).store(1, 64);
            if persist {
                s.flush(0, 0).fence(0, Fence::Sfence);
            }
            s.flush(1, 64).fence(1, Fence::Sfence).flush(0, 0).fence(0, Fence::Sfence);
        })
    };
    assert_eq!(effect(false), [(Class::DirtyRead, 2)]);
    // It is durable before the effect is; the last flush then has nothing to do.
    assert!(effect(true).iter().all(|&(class, _)| class != Class::DirtyRead));
    // One's own stores, and locks.
    let own = script(2, |s| {
        s.store(0, 0).load(0, 0).store(0, 64).flush(0, 64).fence(0, Fence::Sfence);
        s.flush(0, 0).fence(0, Fence::Sfence);
    });
    assert_eq!(own, []);
    let mut locks = Script::new(2);
    locks.atomic = vec![0];
    locks.store(0, 0).load(1, 0).store(1, 64).flush(1, 64).fence(1, Fence::Sfence);
    let judged = locks.judged();
    assert_eq!((judged.findings.len(), judged.totals.locks), (0, 1));
}

#[test]
fn an_answer_before_the_pages_are_durable_is_blamed_on_the_call() {
    let send = |flags, again: bool| {
        script(1, move |s| {
            s.store(0, 0).call(0, Asked::Msync, (0, 4096), flags);
            if again {
                s.call(0, Asked::Fsync, (0, u64::MAX), 0);
            }
            s.call_of(0, Asked::Send, (0, 5), 0, false);
            s.call(0, Asked::Fsync, (0, u64::MAX), 0);
        })
    };
    assert_eq!(send(1, false), [(Class::AsyncAcknowledged, 2)]);
    assert_eq!((send(4, false), send(1, true)), (vec![], vec![]));
}

#[test]
fn a_program_that_does_nothing_for_persistence_is_not_blamed() {
    let mut script = Script::new(1);
    script.store(0, 0);
    let judged = script.judged();
    assert_eq!((judged.findings.len(), judged.totals.stores), (0, 1));
}

/// Bug class: a reader is blamed for bytes of a word that it has not loaded, or that are its own.
#[test]
fn a_dirty_read_is_one_of_the_bytes_that_were_changed() {
    let reads = |value, bytes| {
        script(2, move |s| {
            s.store_how(0, 0, value, How::Plain).load_of(1, 0, bytes);
            s.store(1, 64).flush(1, 64).fence(1, Fence::Sfence);
            s.flush(0, 0).fence(0, Fence::Sfence);
        })
    };
    assert_eq!(reads(0xff, 0b0000_0001), [(Class::DirtyRead, 2)]);
    assert_eq!(reads(0xff, 0b1111_1110), []);
    assert_eq!(reads(0xff00, 0b0000_0110), [(Class::DirtyRead, 2)]);
    // The other thread's store leaves the byte that this one has stored itself.
    let found = script(2, |s| {
        s.store_how(1, 0, 0xff, How::Plain).store_how(0, 0, 0xffff, How::Plain);
        s.load_of(1, 0, 0b0000_0001).store(1, 64).flush(1, 64).fence(1, Fence::Sfence);
        s.flush(0, 0).fence(0, Fence::Sfence);
    });
    assert_eq!(found, []);
}

/// An atomic store; the site is known to be atomic before.
fn atomic(s: &mut Script, thread: u32, at: u64, value: u64) {
    s.atomic.push(s.history.sites.len() as u32);
    s.store_how(thread, at, value, How::Plain);
}

/// Bug class: what the lock is in is flushed while it is held, and its release is taken for lost data.
#[test]
fn a_lock_that_is_durable_as_held_is_no_lost_store() {
    // The lock is a byte; the rest of its word is data.
    let found = script(1, |s| {
        atomic(s, 0, 0, 1);
        s.store_how(0, 0, 0x701, How::Plain).flush(0, 0).fence(0, Fence::Sfence);
        s.store_how(0, 0, 0x700, How::Plain);
    });
    assert_eq!(found, [(Class::HeldLock, 5)]);
    // What an atomic instruction changes for good is data.
    let found = script(1, |s| {
        atomic(s, 0, 0, 1);
        s.flush(0, 0).fence(0, Fence::Sfence);
        atomic(s, 0, 0, 2);
    });
    assert_eq!(found, [(Class::NeverFlushed, 4)]);
    // A slot that is claimed atomically, filled and given free is data.
    let found = script(1, |s| {
        atomic(s, 0, 0, 1);
        s.store_how(0, 0, 0x77, How::Plain).flush(0, 0).fence(0, Fence::Sfence);
        atomic(s, 0, 0, 1);
        atomic(s, 0, 0, 0x77);
        atomic(s, 0, 0, 0);
    });
    assert_eq!(found, [5, 6, 7].map(|line| (Class::NeverFlushed, line)));
}

#[test]
fn an_atomic_word_beside_data_that_nobody_flushes_is_data_unless_it_is_a_lock() {
    let found = script(1, |s| {
        s.store(0, 128).flush(0, 128).fence(0, Fence::Sfence);
        atomic(s, 0, 0, 1);
        s.store(0, 8);
    });
    assert_eq!(found, [(Class::NeverFlushed, 4), (Class::NeverFlushed, 5)]);
    let found = script(1, |s| {
        s.store(0, 128).flush(0, 128).fence(0, Fence::Sfence);
        atomic(s, 0, 0, 1);
        s.store_how(0, 0, 0, How::Plain).store(0, 8);
        atomic(s, 0, 0, 1);
    });
    assert_eq!(found, [(Class::NeverFlushed, 6)]);
}

/// Bug class: a flush without a fence of its own, and further stores before the flush and fence that end the work, are taken for a
/// store that was forgotten, because mutexes order in between.
#[test]
fn locked_instructions_do_not_end_what_a_fence_shall() {
    let found = script(1, |s| {
        s.store(0, 0).flush(0, 0).store(0, 8).fence(0, Fence::Locked);
        s.store(0, 64).flush(0, 64).fence(0, Fence::Locked);
        s.flush(0, 0).fence(0, Fence::Sfence);
    });
    assert_eq!(found, []);
    let found = script(1, |s| {
        s.store(0, 0).flush(0, 0).store(0, 8).fence(0, Fence::Locked).fence(0, Fence::Sfence);
        s.store(0, 64).flush(0, 64).fence(0, Fence::Sfence);
    });
    assert_eq!(found, [(Class::StoredAfterFlush, 3), (Class::IdleFence, 5)]);
}
