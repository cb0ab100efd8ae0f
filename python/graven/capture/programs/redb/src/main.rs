//! redb with its database in memory: `insert` or `update`, and how many transactions.

use std::env;
use std::hint::black_box;

use redb::backends::InMemoryBackend;
use redb::{Database, TableDefinition};

const TABLE: TableDefinition<u64, &[u8]> = TableDefinition::new("kv");
const VALUE_BYTES: usize = 64;

/// Each call is a transaction: one put.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn put(database: &Database, key: u64, round: u8) {
    let transaction = database.begin_write().expect("a transaction");
    let mut table = transaction.open_table(TABLE).expect("the table");
    table.insert(key, [round; VALUE_BYTES].as_slice()).expect("an insertion");
    drop(table);
    transaction.commit().expect("a commit");
}

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let [_, mode, count] = &arguments[..] else { panic!("MODE COUNT") };
    let count: u64 = count.parse().expect("a number");
    let database = Database::builder()
        .set_cache_size(1 << 20)
        .create_with_backend(InMemoryBackend::new())
        .expect("a database");
    let keys = if mode == "update" { 200 } else { u64::MAX };
    for number in 0..count {
        // Keys in no order, and always the same.
        let key = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % keys;
        put(black_box(&database), key, number as u8);
    }
}
