//! A table of a database in PM: rows in hash chains, found by an integer key.
//!
//! Every row belongs to an *owner*, the entity whose lock covers it: a subscriber, a customer. The key
//! is the owner's number with a few bits below it that distinguish the owner's rows. Stripes, buckets
//! and chains are those of [`chains`]. Row, one block:
//!
//! | word | content |
//! |---|---|
//! | 0 | next row of the chain, or 0 |
//! | 1 | key |
//! | 2.. | the columns, as the owner packs them |
//!
//! An owner's rows are in the stripe of its number modulo the number of stripes, so that the owner's
//! lock covers their chains and count. Which of the stripe's buckets follows from the key, of which
//! the low `shared_bits` have no say: rows that differ in those alone share a chain, and are found
//! together in one walk.

use super::allocator::{Arena, Census, Class, block_bytes};
use super::chains::{self, Chains};
use crate::costs;
use graven_base::memory::{Addr, WORD_BYTES, mix};
use graven_machine::program::{Load, Memory, Ptr};
use graven_machine::workload::Checked;

const KEY: u64 = chains::HEADER_WORDS;

/// The first column of a row, as a word of it.
pub const COLUMNS: u64 = KEY + 1;

/// Meaning of a table's keys, and the blocks that its rows take.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    /// Size class of a row's block.
    pub class: Class,
    /// Low bits of a key that distinguish an owner's rows.
    pub row_bits: u32,
    /// Number of the lowest of these bits that do not decide on the chain.
    pub shared_bits: u32,
}

/// The handle of a table.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    chains: Chains,
    schema: Schema,
}

/// The bucket, out of `chains`, of a hash of one of `owner`'s rows.
pub(super) fn bucket(chains: &Chains, owner: u64, hash: u64) -> u64 {
    let each = chains.buckets() / chains.stripes();
    let index = (u128::from(hash) * u128::from(each)) >> 64;
    owner % chains.stripes() + index as u64 * chains.stripes()
}

impl Table {
    /// The table of `schema` whose stripes and buckets begin at `root`. Each stripe has
    /// `buckets_per_stripe` buckets.
    pub fn new(root: Addr, stripes: u32, buckets_per_stripe: u64, schema: Schema) -> Self {
        assert!(schema.shared_bits <= schema.row_bits, "rows that share a chain have one owner");
        let buckets = buckets_per_stripe * u64::from(stripes);
        Self { chains: Chains::new(root, stripes, buckets), schema }
    }

    /// The same table, to be used with a key that was loaded: as returned by the load of `told`.
    pub fn told_by(self, told: Ptr) -> Self {
        Self { chains: self.chains.told_by(told), ..self }
    }

    /// Bytes of PM that stripes and buckets take (saturating).
    pub fn root_bytes(stripes: u32, buckets_per_stripe: u64) -> u64 {
        Chains::root_bytes(stripes, buckets_per_stripe.saturating_mul(stripes.into()))
    }

    /// Bytes of a row of `columns` words of columns.
    pub const fn row_bytes(columns: u64) -> u64 {
        block_bytes(COLUMNS + columns)
    }

    fn bucket_of(&self, key: u64) -> u64 {
        let hash = mix((key >> self.schema.shared_bits).wrapping_add(0x9e37_79b9_7f4a_7c15));
        bucket(&self.chains, key >> self.schema.row_bits, hash)
    }

    /// Makes the table empty.
    pub fn format<M: Memory>(&self, m: &mut M) {
        self.chains.format(m);
    }

    fn search<L: Load>(&self, m: &mut L, key: u64) -> (Ptr, Ptr) {
        m.compute(costs::HASH);
        self.chains.find(m, self.bucket_of(key), |m, row| {
            m.compute(costs::COMPARE);
            m.load(row.word(KEY)) == key
        })
    }

    /// The row of `key`, or null.
    pub fn find<L: Load>(&self, m: &mut L, key: u64) -> Ptr {
        self.search(m, key).0
    }

    /// Visits all rows whose keys differ from `key` in the shared bits at most: key and row.
    pub fn each<L: Load>(&self, m: &mut L, key: u64, mut visit: impl FnMut(&mut L, u64, Ptr)) {
        m.compute(costs::HASH);
        self.chains.find(m, self.bucket_of(key), |m, row| {
            m.compute(costs::COMPARE);
            let found = m.load(row.word(KEY));
            if found >> self.schema.shared_bits == key >> self.schema.shared_bits {
                visit(m, found, row);
            }
            false
        });
    }

    /// Inserts a row, which `fill` writes the columns of, if its key is absent. Returns whether it was.
    pub fn insert<M: Memory>(
        &self,
        m: &mut M,
        arena: &Arena,
        key: u64,
        fill: impl FnOnce(&mut M, Ptr),
    ) -> bool {
        if !self.find(m, key).is_null() {
            return false;
        }
        self.chains.insert(m, (arena, self.schema.class), self.bucket_of(key), |m, row| {
            m.store(row.word(KEY), key);
            fill(m, row);
        });
        true
    }

    /// Removes the row of `key`, if present. Returns whether it was.
    pub fn remove<M: Memory>(&self, m: &mut M, arena: &Arena, key: u64) -> bool {
        let found = self.search(m, key);
        if found.0.is_null() {
            return false;
        }
        self.chains.remove(m, (arena, self.schema.class), self.bucket_of(key), found);
        true
    }

    /// Walks the table, accounts for each row with the census, and calls `visit` with each key and row.
    /// No key is there twice.
    ///
    /// # Errors
    /// The first violation, of the table or found by `visit`. Ends on any image.
    pub fn walk(
        &self,
        census: &mut Census<'_>,
        visit: &mut dyn FnMut(u64, Addr) -> Result<(), String>,
    ) -> Checked {
        self.chains.walk(census, self.schema.class, &mut |census, row, index| {
            let key = census.load(row.plus(KEY * WORD_BYTES));
            let bucket = self.bucket_of(key);
            census.ensure(bucket == index, || {
                format!("row {row} of key {key} is in the chain of bucket {index}, not {bucket}")
            })?;
            visit(key, row).map_err(|what| census.broken(what))?;
            Ok(key)
        })
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

    const HEADER: Addr = Addr(65536);
    const START: Addr = Addr(65600);

    fn table(schema: (u32, u32), stripes: u32, each: u64) -> (Table, Arena) {
        let (row_bits, shared_bits) = schema;
        let schema = Schema { class: 1, row_bits, shared_bits };
        let sizes = [0, Table::row_bytes(2)];
        let arena = Arena::new(HEADER, START, Addr(1 << 22), sizes);
        (Table::new(Addr(4096), stripes, each, schema), arena)
    }

    /// Key and second column of all rows.
    fn rows(table: &Table, arena: &Arena, image: &Image) -> Checked<BTreeMap<u64, u64>> {
        let mut census = Census::begin("test".into(), image, &[*arena])?;
        let mut rows = BTreeMap::new();
        table.walk(&mut census, &mut |key, row| {
            rows.insert(key, image.load(row.plus((COLUMNS + 1) * 8)));
            Ok(())
        })?;
        census.finish()?;
        Ok(rows)
    }

    fn emptied(table: &Table, arena: &Arena) -> Image {
        let mut image = Image::new();
        let mut m = Direct::new(&mut image);
        table.format(&mut m);
        arena.format(&mut m);
        image
    }

    fn insert<M: Memory>(table: &Table, m: &mut M, arena: &Arena, key: u64, value: u64) -> bool {
        table.insert(m, arena, key, |m, row| m.store(row.word(COLUMNS + 1), value))
    }

    proptest! {
        #[test]
        fn it_behaves_as_a_map(
            steps in prop::collection::vec((0..8u8, 0..200u64), 0..600),
            schema in prop_oneof![Just((0, 0)), Just((2, 0)), Just((2, 2)), Just((4, 2))],
            stripes in 1..5u32,
            each in 1..30u64,
        ) {
            let (table, arena) = table(schema, stripes, each);
            let mut image = emptied(&table, &arena);
            let mut model = BTreeMap::new();
            for (batch, steps) in (0..).zip(steps.chunks(16)) {
                let mut m = Direct::new(&mut image);
                for &(kind, key) in steps {
                    match kind {
                        0..4 => {
                            let absent = !model.contains_key(&key);
                            prop_assert_eq!(insert(&table, &mut m, &arena, key, batch), absent);
                            model.entry(key).or_insert(batch);
                        }
                        4..7 => {
                            let present = model.remove(&key).is_some();
                            prop_assert_eq!(table.remove(&mut m, &arena, key), present);
                        }
                        _ => {
                            let row = table.find(&mut m, key);
                            let found = (!row.is_null()).then(|| m.load(row.word(COLUMNS + 1)));
                            prop_assert_eq!(found, model.get(&key).copied());
                            let mut together = BTreeMap::new();
                            table.each(&mut m, key, |m, key, row| {
                                together.insert(key, m.load(row.word(COLUMNS + 1)));
                            });
                            let first = key >> schema.1 << schema.1;
                            let range = first..first + (1 << schema.1);
                            prop_assert!(together.iter().eq(model.range(range)));
                        }
                    }
                }
                prop_assert_eq!(rows(&table, &arena, &image), Ok(model.clone()));
            }
        }
    }

    /// Two owners' rows under two stripes of one bucket each.
    fn filled() -> (Table, Arena, Image) {
        let (table, arena) = table((2, 2), 2, 1);
        let mut image = emptied(&table, &arena);
        let mut m = Direct::new(&mut image);
        for key in [4, 5, 6, 8, 9] {
            assert!(insert(&table, &mut m, &arena, key, key));
        }
        (table, arena, image)
    }

    #[test]
    fn each_broken_invariant_is_named() {
        let (table, arena, mut image) = filled();
        let root = table.chains.root();
        // The owner of keys 8 and 9 is of the first stripe.
        let bucket = table.chains.bucket(0).addr;
        let first = Addr(image.load(bucket));
        let mut check = Check::of(&mut image, |image| rows(&table, &arena, image));
        check.finds(root, 7, "2 elements in stripe 0, but its count says 7");
        check.finds(root.plus(64), 0, "3 elements in stripe 1, but its count says 0");
        check.finds(bucket, 0, "0 elements in stripe 0, but its count says 2");
        check.finds(first.plus(8), 4, "of key 4 is in the chain of bucket 0, not 1");
        check.finds(first.plus(8), 8, "key 8 is twice in bucket 0");
        check.finds(first, first.0, "overlaps a block met before");
        check.finds(first, 1 << 50, "outside every arena");
    }

    #[test]
    fn the_check_ends_on_any_word() {
        let (table, arena, mut image) = filled();
        let chains = 4096..4096 + Table::root_bytes(2, 1);
        let words = chains.chain(HEADER.0..START.0 + 5 * 64).step_by(8);
        Check::of(&mut image, |image| rows(&table, &arena, image))
            .ends_on_any_word(words, &[4096, START.0]);
    }
}
