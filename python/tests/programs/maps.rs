//! A program in Rust: structures of the standard library, threads, a panic that is caught.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn tx_begin() -> u32 {
    std::hint::black_box(1)
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn tx_commit() -> u32 {
    std::hint::black_box(2)
}

fn main() {
    let all = Mutex::new((BTreeMap::new(), HashMap::new()));
    for number in 0..100u64 {
        tx_begin();
        let (ordered, hashed) = &mut *all.lock().unwrap();
        ordered.insert(number.wrapping_mul(0x9e37_79b9_7f4a_7c15), vec![number; number as usize % 50]);
        hashed.insert(format!("key {number}"), Box::new(number));
        tx_commit();
    }
    std::panic::set_hook(Box::new(|_| {}));
    let caught = std::panic::catch_unwind(|| panic!("{}", "as expected".repeat(100)));
    let threads = std::thread::spawn(move || {
        let (ordered, hashed) = all.into_inner().unwrap();
        ordered.values().map(Vec::len).sum::<usize>() + hashed.len()
    });
    let found = threads.join().unwrap();
    std::process::exit(i32::from(caught.is_ok() || found != 2550));
}
