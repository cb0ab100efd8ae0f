//! A hash table in PM that keeps the last versions of each key's value.
//!
//! [`Buckets`] has the table of its stripes and buckets. What chains hold is one table of versions per key, a block of
//! three lines (192 B):
//!
//! | word | content |
//! |---|---|
//! | 0 | next table of the chain, or 0 |
//! | 1 | key |
//! | 2 | versions of the key so far (at least 1) |
//! | 4.. | the last four versions: version v, from 0, is entry v modulo 4 |
//!
//! Version:
//!
//! | word | content |
//! |---|---|
//! | 0 | address of the value (an element, a block), or 0: the key was deleted |
//! | 1 | number of the version |
//! | 2 | timestamp of the commit that it is from; rises from version to version |
//! | 3 | that commit: its number among those of its thread, and in the lowest byte the thread |
//!
//! A version that is overwritten gives its value back. Keys stay in the table when they are deleted.

use super::allocator::{Arena, Census, Class, block_bytes};
use super::buckets::Buckets;
use super::element::{Element, VERSIONS};
use crate::costs;
use graven_base::memory::Addr;
use graven_machine::program::{LockId, Memory, Ptr};
use graven_machine::workload::Checked;

const COUNT: u64 = 2;
const ENTRIES: u64 = 4;

const VALUE: u64 = 0;
const NUMBER: u64 = 1;
const TIMESTAMP: u64 = 2;
const COMMIT: u64 = 3;
const ENTRY_WORDS: u64 = 4;

/// Versions that are kept of each key.
const KEPT: u64 = 4;

const TABLE: Class = 0;
const ELEMENT: Class = 1;

/// Bits of a commit's number that are the thread.
const THREAD_BITS: u32 = 8;

/// Commit that a version is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Commit {
    /// The thread that made it.
    pub thread: u32,
    /// Number among those of the thread, from 1.
    pub number: u64,
}

impl Commit {
    fn word(self) -> u64 {
        assert!(self.thread < 1 << THREAD_BITS, "a machine has fewer threads");
        self.number << THREAD_BITS | u64::from(self.thread)
    }

    fn of_word(word: u64) -> Self {
        let thread = (word % (1 << THREAD_BITS)) as u32;
        Self { thread, number: word >> THREAD_BITS }
    }
}

/// One version of a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The value; null if the key was deleted.
    pub value: Ptr,
    /// When it was committed.
    pub timestamp: u64,
    /// By what.
    pub commit: Commit,
}

/// The handle of a table of versions.
#[derive(Clone, Copy, Debug)]
pub struct Versions {
    buckets: Buckets,
    element: Element,
}

/// The words of version `number` in the table of versions `table`.
fn entry(table: Ptr, number: u64) -> Ptr {
    table.word(ENTRIES + number % KEPT * ENTRY_WORDS)
}

fn write<M: Memory>(m: &mut M, table: Ptr, number: u64, version: Version) {
    let at = entry(table, number);
    m.store_ptr(at.word(VALUE), version.value);
    m.store(at.word(NUMBER), number);
    m.store(at.word(TIMESTAMP), version.timestamp);
    m.store(at.word(COMMIT), version.commit.word());
    m.store(table.word(COUNT), number + 1);
}

impl Versions {
    /// Bytes of one key's table of versions.
    pub const TABLE_BYTES: u64 = block_bytes(ENTRIES + KEPT * ENTRY_WORDS);

    /// The table whose stripes and buckets begin at `root`.
    pub fn new(root: Addr, stripes: u32, buckets: u64, element: Element) -> Self {
        Self { buckets: Buckets::new(root, stripes, buckets), element }
    }

    /// Bytes of the block of one value.
    pub fn value_bytes(element: Element) -> u64 {
        block_bytes(element.words)
    }

    /// Makes the table empty.
    pub fn format<M: Memory>(&self, m: &mut M) {
        self.buckets.format(m);
    }

    /// Address, for messages.
    pub fn root(&self) -> Addr {
        self.buckets.root()
    }

    /// The lock that covers a key: its versions, and the chain that they are in.
    pub fn lock_of(&self, key: u64) -> LockId {
        self.buckets.lock_of(key)
    }

    /// Writes the value of `key` that the commit of this number puts, which no version points at yet.
    pub fn new_value<M: Memory>(&self, m: &mut M, arena: &Arena, key: u64, number: u64) -> Ptr {
        let value = arena.allocate(m, ELEMENT);
        self.element.create_version(m, value, key, number);
        value
    }

    /// The versions of `key`; null if it was never there.
    pub fn find<M: Memory>(&self, m: &mut M, key: u64) -> Ptr {
        self.buckets.search(m, key).0
    }

    /// The timestamp of the last of these versions.
    pub fn newest<M: Memory>(&self, m: &mut M, table: Ptr) -> u64 {
        let count = m.load(table.word(COUNT));
        m.load(entry(table, count - 1).word(TIMESTAMP))
    }

    /// Adds a version to those of `key`, which [`Versions::find`] has returned.
    pub fn add<M: Memory>(
        &self,
        m: &mut M,
        arena: &Arena,
        (key, table): (u64, Ptr),
        version: Version,
    ) {
        if table.is_null() {
            self.buckets.insert(m, (arena, TABLE), key, |m, table| write(m, table, 0, version));
            return;
        }
        m.compute(costs::COMPARE);
        let number = m.load(table.word(COUNT));
        if number >= KEPT {
            let old = m.load_ptr(entry(table, number).word(VALUE));
            if !old.is_null() {
                arena.free(m, ELEMENT, old);
            }
        }
        write(m, table, number, version);
    }

    /// Walks all tables of versions, checks their invariants and accounts for each block; `visit` gets each key with
    /// each of its versions, the oldest first.
    ///
    /// # Errors
    /// The first violation. Ends on any image.
    pub fn walk(
        &self,
        census: &mut Census<'_>,
        visit: &mut dyn FnMut(u64, Version) -> Result<(), String>,
    ) -> Checked {
        self.buckets.walk(census, TABLE, &mut |census, table, key| {
            let table = Ptr::known(table);
            let count = census.load(table.word(COUNT).addr);
            census.ensure(count > 0, || format!("key {key} has no version"))?;
            let mut before = None;
            for number in count.saturating_sub(KEPT)..count {
                let version = self.version(census, (key, table), number)?;
                census.ensure(before.is_none_or(|before| before < version.timestamp), || {
                    format!("version {number} of key {key} is not younger than the one before")
                })?;
                before = Some(version.timestamp);
                visit(key, version).map_err(|what| {
                    census.broken(format!("version {number} of key {key}: {what}"))
                })?;
            }
            Ok(())
        })
    }

    /// Version `number` of a key, whose value is accounted for.
    fn version(
        &self,
        census: &mut Census<'_>,
        (key, table): (u64, Ptr),
        number: u64,
    ) -> Checked<Version> {
        let image = census.image();
        let word = |word| image.load(entry(table, number).word(word).addr);
        census.ensure(word(NUMBER) == number, || {
            format!("version {number} of key {key} says that it is {}", word(NUMBER))
        })?;
        let commit = Commit::of_word(word(COMMIT));
        let value = Ptr::known(Addr(word(VALUE)));
        if !value.is_null() {
            census.claim(value.addr, ELEMENT, "value")?;
            self.element.check_of(image, value.addr, key).map_err(|what| census.broken(what))?;
            let written = self.element.version(image, value.addr);
            if written != commit.number % VERSIONS {
                return Err(census.broken(format!(
                    "version {number} of key {key} is from {commit:?}, but its value from number {written}"
                )));
            }
        }
        Ok(Version { value, timestamp: word(TIMESTAMP), commit })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::testing::Check;
    use graven_base::memory::Image;
    use graven_machine::program::Direct;
    use proptest::prelude::*;

    fn table(buckets: u64) -> (Versions, Arena) {
        let element = Element::of_bytes(64);
        let sizes = [Versions::TABLE_BYTES, Versions::value_bytes(element)];
        let arena = Arena::new(Addr(65536), Addr(65600), Addr(1 << 22), sizes);
        (Versions::new(Addr(4096), 4, buckets, element), arena)
    }

    fn put(table: &Versions, arena: &Arena, image: &mut Image, key: u64, number: u64, there: bool) {
        let mut m = Direct::new(image);
        let value = if there { table.new_value(&mut m, arena, key, number) } else { Ptr::NULL };
        let versions = table.find(&mut m, key);
        let commit = Commit { thread: 3, number };
        let version = Version { value, timestamp: number * 10, commit };
        table.add(&mut m, arena, (key, versions), version);
    }

    fn empty(buckets: u64) -> (Versions, Arena, Image) {
        let (table, arena) = table(buckets);
        let mut image = Image::new();
        arena.format(&mut Direct::new(&mut image));
        table.format(&mut Direct::new(&mut image));
        (table, arena, image)
    }

    /// Commits of each key, with true for those that put a value.
    type Contents = BTreeMap<u64, Vec<(u64, bool)>>;

    fn contents(table: &Versions, arena: &Arena, image: &Image) -> Checked<Contents> {
        let mut census = Census::begin("test".into(), image, &[*arena])?;
        let mut found = Contents::new();
        table.walk(&mut census, &mut |key, version| {
            assert_eq!(version.timestamp, version.commit.number * 10);
            let put = (version.commit.number, !version.value.is_null());
            found.entry(key).or_default().push(put);
            Ok(())
        })?;
        census.finish()?;
        Ok(found)
    }

    proptest! {
        #[test]
        fn it_keeps_the_last_four_versions(
            puts in prop::collection::vec((0..30u64, prop::bool::ANY), 0..300),
            buckets in 1..40u64,
        ) {
            let (table, arena, mut image) = empty(buckets);
            let mut model = Contents::new();
            for (number, &(key, there)) in (1..).zip(&puts) {
                put(&table, &arena, &mut image, key, number, there);
                let versions = model.entry(key).or_default();
                versions.push((number, there));
                if versions.len() > 4 {
                    versions.remove(0);
                }
                let mut m = Direct::new(&mut image);
                let at = table.find(&mut m, key);
                prop_assert_eq!(table.newest(&mut m, at), number * 10);
            }
            prop_assert_eq!(contents(&table, &arena, &image), Ok(model));
        }
    }

    #[test]
    fn each_broken_invariant_is_named() {
        let (table, arena, mut image) = empty(1);
        (1..=6).for_each(|number| put(&table, &arena, &mut image, 7, number, true));
        let at = table.find(&mut Direct::new(&mut image), 7);
        // Versions 2 to 5 are left: number 4 is the first entry.
        let (fourth, fifth) = (entry(at, 4), entry(at, 5));
        let value = Addr(image.load(fourth.addr));
        let mut check = Check::of(&mut image, |image| contents(&table, &arena, image));
        check.finds(at.word(COUNT).addr, 0, "key 7 has no version");
        check.finds(at.word(COUNT).addr, 5, "version 1 of key 7 says that it is 5");
        check.finds(at.word(COUNT).addr, 7, "version 6 of key 7 says that it is 2");
        check.finds(fourth.word(NUMBER).addr, 0, "version 4 of key 7 says that it is 0");
        check.finds(
            fifth.word(TIMESTAMP).addr,
            50,
            "version 5 of key 7 is not younger than the one before",
        );
        check.finds(fifth.word(COMMIT).addr, 5 << 8 | 3, "its value from number 6");
        check.finds(fifth.word(VALUE).addr, value.0, "overlaps a block met before");
        check.finds(fifth.word(VALUE).addr, 0, "has leaked");
        check.finds(Ptr::known(value).word(3).addr, 0, "is torn: word 3 of key 7");
    }
}
