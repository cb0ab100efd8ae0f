//! `skip-list`: random insertions, updates and removals in a skip list, whose nodes come from a slab allocator.
//!
//! What it adds to the workloads that ship: paths of many dependent loads before few stores, stores to links that are
//! spread over several lines, and an allocator whose metadata lie apart from its objects, so that an insertion of a node
//! of height `h` stores to `h` other nodes, a slab's header, and the roots of list and allocator.
//!
//! | pages of a part | |
//! |---|---|
//! | first | roots of the list and of the allocator, in lines of their own |
//! | rest | slabs |
//!
//! Of the parameters of all workloads it uses `workload.element_bytes` (a value), `workload.footprint_bytes` (nodes at
//! first), `workload.sharing` (a part for each thread, or one under a lock), `workload.insert_percent`,
//! `workload.remove_percent` and `workload.operations_per_transaction`. Keys are drawn evenly from twice as many as
//! there are nodes at first. An insertion of a key that is there updates its value; a removal of one that is not finds
//! nothing to do. Operations that are neither update what they find.

use graven::config::{ConfigError, Section};
use graven::memory::{Addr, Image, LINE_BYTES, WORD_BYTES, spread};
use graven::program::{Direct, Load, Program, spawn};
use graven::section;
use graven::workload::{BrokenInvariant, Request, Sharing, Workload, WorkloadInfo};

use crate::list::{HEIGHT_MAX, List, ROOT_WORDS};
use crate::slabs::{SLAB_BYTES, Slabs};

section! {
    /// A skip list with nodes from a slab allocator.
    pub struct SkipListConfig("skip_list") {
        /// One node in so many of a level is in the next level, too.
        branching: u32 = 4, 2..=64, "nodes";
        /// Instructions of an operation beside those of its search.
        instructions: u32 = 40, 0..=1_000_000, "instructions";
    }
}

/// What users name.
pub static INFO: WorkloadInfo = WorkloadInfo {
    name: "skip-list",
    group: "micro",
    summary: "insertions, updates and removals in a skip list with a slab allocator",
    sections: &[|| Box::new(SkipListConfig::default()) as Box<dyn Section>],
    settings: &[],
    build: |request| Ok(Box::new(SkipList::new(request)?)),
};

/// An operation on a key.
#[derive(Clone, Copy)]
enum Operation {
    Put,
    Remove,
    Update,
}

struct SkipList {
    request: Request,
    config: SkipListConfig,
    /// A list for each thread, or one for all.
    parts: Vec<List>,
    /// Keys of a part.
    keys: u64,
}

impl SkipList {
    fn new(request: &Request) -> Result<SkipList, ConfigError> {
        let config = request.whole.get::<SkipListConfig>().clone();
        let shared = &request.config;
        let whole = &request.whole;
        if shared.insert_percent + shared.remove_percent > 100 {
            let keys = ["workload.insert_percent", "workload.remove_percent"];
            return Err(whole.inconsistent(&keys, "together they exceed 100 %".into()));
        }
        let value_words = shared.element_bytes.0.div_ceil(WORD_BYTES);
        let object_words = List::node_words(value_words);
        if Slabs::objects_per_slab(object_words, HEIGHT_MAX - 1) == 0 {
            let why = format!("a node of the skip list does not fit a slab of {SLAB_BYTES} B");
            return Err(whole.inconsistent(&["workload.element_bytes"], why));
        }
        let count = if shared.sharing == Sharing::Shared { 1 } else { request.threads };
        let branching = u64::from(config.branching);
        let nodes = shared.footprint_bytes.0 / u64::from(count) / (object_words * WORD_BYTES);
        let keys = 2 * nodes.max(1);
        let bytes = SLAB_BYTES + slabs_for(keys, object_words, branching) * SLAB_BYTES;
        let start = request.start.0.next_multiple_of(SLAB_BYTES);
        let end = start + u64::from(count) * bytes;
        if end > request.end.0 {
            let why = format!("skip lists of {keys} keys need {} B more", end - request.end.0);
            return Err(whole.inconsistent(&["workload.footprint_bytes"], why));
        }
        let parts = (0..u64::from(count)).map(|part| {
            let root = Addr(start + part * bytes);
            let slabs = Slabs {
                root: root.plus((ROOT_WORDS * WORD_BYTES).next_multiple_of(LINE_BYTES)),
                start: root.plus(SLAB_BYTES),
                end: root.plus(bytes),
                object_words,
                classes: HEIGHT_MAX,
            };
            List { root, slabs, value_words, branching }
        });
        Ok(SkipList { parts: parts.collect(), request: request.clone(), config, keys })
    }

    /// The list of a thread, and whether it has it to itself.
    fn part(&self, thread: u32) -> (List, bool) {
        let own = self.parts.len() > 1 || self.request.threads == 1;
        (self.parts[if own { thread as usize } else { 0 }], own)
    }
}

/// Slabs that hold the nodes of all keys, whichever are there.
fn slabs_for(keys: u64, object_words: u64, branching: u64) -> u64 {
    let mut nodes = [0; HEIGHT_MAX as usize];
    (0..keys).for_each(|key| nodes[List::height(key, branching) as usize - 1] += 1);
    let slabs =
        |(nodes, class): (u64, u64)| nodes.div_ceil(Slabs::objects_per_slab(object_words, class));
    nodes.into_iter().zip(0..).map(slabs).sum()
}

impl Workload for SkipList {
    /// Every second key is there at first.
    fn populate(&self, image: &mut Image) {
        for part in &self.parts {
            let mut memory = Direct::new(image);
            part.slabs.format(&mut memory);
            part.format(&mut memory);
            (0..self.keys).step_by(2).for_each(|key| part.put(&mut memory, key));
        }
    }

    fn program(&self, thread: u32) -> Box<dyn Program> {
        let ((list, own), keys) = (self.part(thread), self.keys);
        let config = self.request.config.clone();
        let (transactions, instructions) =
            (self.request.transactions_of(thread), self.config.instructions);
        let seed = spread(self.request.seed, u64::from(thread));
        let mut drawn = 0;
        let mut draw = move |below: u64| {
            drawn += 1;
            spread(seed, drawn) % below
        };
        spawn(move |memory| {
            for _ in 0..transactions {
                if !own {
                    memory.lock(0);
                }
                memory.tx_begin();
                for _ in 0..config.operations_per_transaction {
                    let (key, percent) = (draw(keys), draw(100) as u32);
                    memory.compute(instructions);
                    let removes =
                        config.insert_percent..config.insert_percent + config.remove_percent;
                    let operation = match percent {
                        p if p < config.insert_percent => Operation::Put,
                        p if removes.contains(&p) => Operation::Remove,
                        _ => Operation::Update,
                    };
                    match operation {
                        Operation::Put => list.put(memory, key),
                        Operation::Remove => list.remove(memory, key),
                        Operation::Update => {
                            if list.get(memory, key).is_some() {
                                list.put(memory, key);
                            }
                        }
                    }
                }
                memory.tx_end();
                if !own {
                    memory.unlock(0);
                }
            }
        })
    }

    fn check(&self, image: &Image) -> Result<(), BrokenInvariant> {
        for (part, list) in self.parts.iter().enumerate() {
            list.check(image)
                .map_err(|what| BrokenInvariant { structure: format!("skip list {part}"), what })?;
        }
        Ok(())
    }
}
