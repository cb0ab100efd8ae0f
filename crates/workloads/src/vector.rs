//! `vector`: entries appended to a vector, and random ones updated.
//!
//! Models Vector of HOOP (Table III: "insert/update entries", 8 stores per transaction, no reads but
//! for what these need; 64 B and 1 KB items). An insertion appends the first version of an entry and
//! then moves the length, as `push_back` does where there is room. An update writes the next version
//! of an entry in place. **What is not an insertion is an update**, removals of the workload section
//! included: a vector of which nothing is taken out is what the paper names.
//!
//! | bytes of a partition | |
//! |---|---|
//! | 64 | root: word 0 is the length |
//! | rest | entries, packed; zero from the length on |
//!
//! Of a 64 B entry an update stores 8 words, Table III's count, and an insertion 9: the entry's 8,
//! and the length.
//!
//! There is room for all that the run may append; a vector that outgrows its room and is copied as a
//! whole is left out. Entry i has the i-th of its vector's keys, whoever appended it, and its place
//! follows from i: nothing waits for a pointer.
//!
//! Private: a vector per thread, no locks; a thread updates any entry of its own. Shared: one vector;
//! appending is under a lock of its own, which covers the length and all appended entries, and
//! updates are of the populated entries, of which entry i is under lock i modulo 64.

use rand::RngExt;
use rand_pcg::Pcg64;

use super::layout::{Placed, Plan};
use super::locking::STRIPES;
use super::operations::{self, Operations};
use super::structures::Element;
use super::structures::keys::{Draw, Numbering, generator};
use graven_base::config::ConfigError;
use graven_base::memory::{Addr, Image, LINE_BYTES, WORD_BYTES};
use graven_machine::program::{Direct, Load, LockId, Memory, Program, Ptr, Thread};
use graven_machine::workload::{BrokenInvariant, Checked, Extent, Request, Workload};

/// The lock of the length and of what has been appended.
const TAIL_LOCK: LockId = STRIPES;

pub(super) fn build(request: &Request) -> Result<Box<dyn Workload>, ConfigError> {
    let plan = Plan::new("vector", request, |element| element.words * WORD_BYTES)?;
    let vectors = if plan.is_shared() { 1 } else { u64::from(request.threads) };
    let mut number = 0;
    let Placed { parts: vectors, extent } = plan.lay_out(|layout, share| {
        let capacity = share.total_max();
        let entries = capacity.saturating_mul(plan.element.words * WORD_BYTES);
        let vector = Vector {
            root: layout.take_growing(LINE_BYTES.saturating_add(entries)),
            element: plan.element,
            population: share.threads.len() as u64 * plan.population,
            capacity,
            number,
            vectors,
            numbering: Numbering::new(request.seed),
        };
        number += 1;
        vector
    })?;
    // What is removed elsewhere is updated here: nothing is used again.
    let allocated_percent = request.config.insert_percent;
    let updated_bytes = plan.updated_bytes();
    let extent = Extent { allocated_percent, updated_bytes, ..extent };
    Ok(Box::new(VectorWorkload { plan, vectors, extent }))
}

/// One vector.
#[derive(Clone, Copy, Debug)]
struct Vector {
    root: Addr,
    element: Element,
    /// Entries of the initial population.
    population: u64,
    /// Entries that there is room for.
    capacity: u64,
    /// Number of this vector out of `vectors`, no two of which share a key.
    number: u64,
    vectors: u64,
    numbering: Numbering,
}

impl Vector {
    fn length(&self) -> Ptr {
        Ptr::known(self.root)
    }

    fn entry(&self, index: u64) -> Ptr {
        Ptr::known(self.root.plus(LINE_BYTES)).word(index * self.element.words)
    }

    fn key(&self, index: u64) -> u64 {
        self.numbering.key(index * self.vectors + self.number)
    }

    fn populate<M: Memory>(&self, m: &mut M) {
        for index in 0..self.population {
            self.element.create(m, self.entry(index), self.key(index));
        }
        m.store(self.length(), self.population);
    }

    fn append<M: Memory>(&self, m: &mut M) {
        let length = m.load(self.length());
        assert!(length < self.capacity, "the vector at {} was sized too small", self.root);
        self.element.create(m, self.entry(length), self.key(length));
        m.store(self.length(), length + 1);
    }

    fn update<M: Memory>(&self, m: &mut M, index: u64) {
        self.element.update(m, self.entry(index));
    }

    /// Every entry below the length is whole and in its place, and there is nothing behind them.
    fn check(&self, image: &Image) -> Checked {
        let broken = |what| BrokenInvariant { structure: format!("vector at {}", self.root), what };
        let (length, allowed) = (image.load(self.root), self.population..=self.capacity);
        if !allowed.contains(&length) {
            return Err(broken(format!("its length is {length}, not in {allowed:?}")));
        }
        for index in 0..length {
            let expected = self.key(index);
            match self.element.check(image, self.entry(index).addr) {
                Ok(key) if key == expected => {}
                Ok(key) => {
                    return Err(broken(format!("entry {index} has key {key}, not {expected}")));
                }
                Err(torn) => return Err(broken(format!("entry {index}: {torn}"))),
            }
        }
        let (end, room) = (self.entry(length).addr, self.entry(self.capacity).addr);
        match image.first_difference(&Image::new(), end, room) {
            None => Ok(()),
            Some((at, ..)) => {
                Err(broken(format!("it has {length} entries, but the word at {at} is set")))
            }
        }
    }
}

struct VectorWorkload {
    plan: Plan,
    vectors: Vec<Vector>,
    extent: Extent,
}

impl Workload for VectorWorkload {
    fn populate(&self, image: &mut Image) {
        for vector in &self.vectors {
            vector.populate(&mut Direct::new(image));
        }
    }

    fn program(&self, thread: u32) -> Box<dyn Program> {
        let request = &self.plan.request;
        let vector = self.vectors[self.plan.part_of(thread)];
        let run = Run {
            vector,
            random: generator(request.seed, thread),
            draw: Draw::new(&request.config, vector.population),
            insert_percent: request.config.insert_percent,
            known: vector.population,
            shared: self.plan.is_shared(),
        };
        operations::program(run, request, thread)
    }

    fn check(&self, image: &Image) -> Checked {
        self.vectors.iter().try_for_each(|vector| vector.check(image))
    }

    fn extent(&self) -> Option<Extent> {
        Some(self.extent)
    }
}

/// One elementary operation.
#[derive(Clone, Copy, Debug)]
enum Action {
    Append,
    /// Writes a new version of this entry.
    Update(u64),
}

/// State of a thread.
struct Run {
    vector: Vector,
    random: Pcg64,
    draw: Draw,
    insert_percent: u32,
    /// Entries that the thread knows to be there, and updates.
    known: u64,
    shared: bool,
}

impl Operations for Run {
    type Operation = Action;

    fn draw(&mut self, thread: &mut Thread<'_>) -> Action {
        thread.compute(self.draw.instructions);
        if self.random.random_range(0..100) < self.insert_percent {
            // Where others append as well, it does not know which entry is its own.
            self.known += u64::from(!self.shared);
            return Action::Append;
        }
        Action::Update(self.draw.below(self.known, &mut self.random))
    }

    fn lock(&self, _: &mut Thread<'_>, action: Action, locks: &mut Vec<LockId>) {
        locks.push(match action {
            Action::Append => TAIL_LOCK,
            Action::Update(index) => (index % u64::from(STRIPES)) as LockId,
        });
    }

    #[inline(always)]
    fn perform(&self, thread: &mut Thread<'_>, action: Action) {
        match action {
            Action::Append => self.vector.append(thread),
            Action::Update(index) => self.vector.update(thread, index),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Check, populated, request, run};
    use graven_base::config::Size;
    use graven_machine::workload::{Sharing, WorkloadConfig};
    use proptest::prelude::*;

    crate::testing::contract!(super::build);

    fn vector(element_bytes: u64) -> Vector {
        let element = Element::of_bytes(element_bytes);
        let numbering = Numbering::new(1);
        let (root, vectors) = (Addr(4096), 3);
        Vector { root, element, population: 4, capacity: 60, number: 1, vectors, numbering }
    }

    fn filled(vector: &Vector) -> Image {
        let mut image = Image::new();
        vector.populate(&mut Direct::new(&mut image));
        image
    }

    proptest! {
        #[test]
        fn it_behaves_as_a_vector(
            steps in prop::collection::vec(prop::option::of(0..60u64), 0..50),
            element_bytes in prop_oneof![Just(8), Just(64), Just(200)],
        ) {
            let vector = vector(element_bytes);
            let mut image = filled(&vector);
            let mut versions = vec![1; 4];
            for step in steps {
                let mut m = Direct::new(&mut image);
                match step {
                    None => {
                        vector.append(&mut m);
                        versions.push(1);
                    }
                    Some(index) => {
                        let index = index % versions.len() as u64;
                        vector.update(&mut m, index);
                        versions[index as usize] += 1;
                    }
                }
                prop_assert_eq!(vector.check(&image), Ok(()));
            }
            prop_assert_eq!(image.load(vector.root), versions.len() as u64);
            let stamp = |index| image.load(vector.entry(index).addr);
            let found: Vec<u64> = (0..versions.len() as u64).map(|i| stamp(i) >> 40).collect();
            prop_assert_eq!(found, versions);
        }
    }

    #[test]
    fn an_update_stores_the_entry_and_an_insertion_the_length_besides() {
        for (insert_percent, loads, stores) in [(0, 1, 8), (100, 1, 9)] {
            let config = WorkloadConfig { insert_percent, ..WorkloadConfig::default() };
            let request = request(config, 2, 30);
            let (workload, image) = populated(build, &request);
            let (_, counts) = run(workload.as_ref(), &request, image, |_, _, _| {});
            assert_eq!((counts.loads, counts.stores), (30 * loads, 30 * stores));
        }
    }

    #[test]
    fn threads_that_share_append_to_one_vector_and_update_each_others_entries() {
        let config = WorkloadConfig {
            insert_percent: 50,
            sharing: Sharing::Shared,
            footprint_bytes: Size::kb(64),
            element_bytes: Size::kb(8),
            ..WorkloadConfig::default()
        };
        let request = request(config, 4, 400);
        let (workload, image) = populated(build, &request);
        let root = request.start;
        assert_eq!(image.load(root), 8);
        let mut appended = [0; 4];
        let mut updated = [0; 4];
        let (image, _) = run(workload.as_ref(), &request, image, |thread, _, writes| {
            let appends = writes.iter().any(|&(at, _)| at == root);
            let of = if appends { &mut appended } else { &mut updated };
            of[thread as usize] += 1;
        });
        assert_eq!(image.load(root), 8 + appended.iter().sum::<u64>());
        assert!(appended.iter().chain(&updated).all(|&n| n > 30), "{appended:?}, {updated:?}");
        let versions = (0..8).map(|i| image.load(root.plus(64 + i * 8192)) >> 40);
        assert_eq!(versions.sum::<u64>(), 8 + updated.iter().sum::<u64>());
    }

    #[test]
    fn each_broken_invariant_is_named() {
        let vector = vector(64);
        let mut image = filled(&vector);
        vector.append(&mut Direct::new(&mut image));
        let mut check = Check::of(&mut image, |image| vector.check(image));
        check.finds(vector.length().addr, 3, "its length is 3, not in 4..=60");
        check.finds(vector.length().addr, 61, "its length is 61, not in 4..=60");
        check.finds(vector.length().addr, u64::MAX, "not in 4..=60");
        // An entry whose length was lost, and a length whose entry was.
        check.finds(vector.length().addr, 4, "it has 4 entries, but the word at 0x1140 is set");
        check.finds(vector.length().addr, 6, "entry 5: element at 0x1180 is torn: word 1 of key 0");
        check.finds(vector.entry(2).word(3).addr, 0, "entry 2: element at 0x10c0 is torn: word 3");
        check.finds(
            vector.entry(59).word(7).addr,
            9,
            "it has 5 entries, but the word at 0x1f38 is set",
        );
        let mut image = filled(&vector);
        let twin = image.load_line(vector.entry(1).addr.line());
        for (i, word) in (0..).zip(twin) {
            image.store(vector.entry(3).word(i).addr, word);
        }
        let found = vector.check(&image).expect_err("an entry is there twice").what;
        let (one, three) = (vector.key(1), vector.key(3));
        assert_eq!(found, format!("entry 3 has key {one}, not {three}"));
    }
}
