//! Sanakirja as `driver.c` uses it (`store.h`). A commit is durable. Values are kept in parts, since one entry is smaller than a
//! page; all parts of a record change in one transaction.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt::Display;
use std::sync::Mutex;

use sanakirja::btree::{self, UDb};
use sanakirja::{Commit, Env, MutTxn, RootDb, Txn};

/// Most bytes of a value in one entry.
const PART: usize = 400;
/// The first byte behind a key: the number of the part follows.
const BEHIND: u8 = 0;
/// Bytes of a new file, and versions that it keeps.
const LENGTH: u64 = 1 << 18;
const VERSIONS: usize = 2;

type Db = UDb<[u8], [u8]>;
type Each = extern "C" fn(*const c_void, usize, *const c_void, usize);

static ENV: Mutex<Option<&'static Env>> = Mutex::new(None);

unsafe extern "C" {
    fn refuse(what: *const c_char, why: *const c_char) -> !;
    fn text_of(bytes: *const c_void, count: usize) -> *mut c_char;
}

fn must<T, E: Display>(result: Result<T, E>, what: &CStr) -> T {
    result.unwrap_or_else(|error| {
        let why = CString::new(error.to_string()).unwrap_or_default();
        // SAFETY: both are strings that end with 0.
        unsafe { refuse(what.as_ptr(), why.as_ptr()) }
    })
}

fn env() -> &'static Env {
    ENV.lock().unwrap().expect("store_open comes first")
}

fn key_of(key: &[u8], part: u8) -> Vec<u8> {
    [key, &[BEHIND, part]].concat()
}

/// Bytes of a string of the driver.
fn bytes<'a>(text: *const c_char) -> &'a [u8] {
    // SAFETY: the driver gives strings that end with 0, and keeps them.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}

#[unsafe(no_mangle)]
pub extern "C" fn store_version() -> *const c_char {
    c"1.4.3".as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn store_open(path: *const c_char, _mode: *const c_char, is_new: c_int) {
    let path = String::from_utf8_lossy(bytes(path)).into_owned();
    let env: &'static Env = Box::leak(Box::new(must(Env::new(path, LENGTH, VERSIONS), c"open")));
    *ENV.lock().unwrap() = Some(env);
    if is_new != 0 {
        let mut txn = must(Env::mut_txn_begin(env), c"mut_txn_begin");
        // SAFETY: it is the only database of the root.
        let db: Db = must(unsafe { btree::create_db_(&mut txn) }, c"create_db");
        txn.set_root(0, db.db.into());
        must(txn.commit(), c"commit");
    }
}

fn begin() -> (MutTxn<&'static Env, ()>, Db) {
    let txn = must(Env::mut_txn_begin(env()), c"mut_txn_begin");
    let db = must(txn.root_db(0).ok_or("there is no root"), c"root_db");
    (txn, db)
}

fn read() -> (Txn<&'static Env>, Db) {
    let txn = must(Env::txn_begin(env()), c"open: txn_begin");
    let db = must(txn.root_db(0).ok_or("there is no root"), c"root_db");
    (txn, db)
}

#[unsafe(no_mangle)]
pub extern "C" fn store_put(key: *const c_char, value: *const c_char) {
    let key = bytes(key);
    let (mut txn, mut db) = begin();
    for part in 0.. {
        if !must(btree::del(&mut txn, &mut db, &key_of(key, part)[..], None), c"del") {
            break;
        }
    }
    if !value.is_null() {
        for (part, of) in (0..).zip(bytes(value).chunks(PART)) {
            must(btree::put(&mut txn, &mut db, &key_of(key, part)[..], of), c"put");
        }
    }
    txn.set_root(0, db.db.into());
    must(txn.commit(), c"commit");
}

#[unsafe(no_mangle)]
pub extern "C" fn store_get(key: *const c_char) -> *mut c_char {
    let (txn, db) = read();
    let mut value = Vec::new();
    for part in 0.. {
        let name = key_of(bytes(key), part);
        match must(btree::get(&txn, &db, &name[..], None), c"get") {
            Some((found, of)) if *found == name[..] => value.extend_from_slice(of),
            _ => break,
        }
    }
    if value.is_empty() {
        return std::ptr::null_mut();
    }
    // SAFETY: these are as many bytes.
    unsafe { text_of(value.as_ptr().cast(), value.len()) }
}

#[unsafe(no_mangle)]
pub extern "C" fn store_each(each: Each) {
    let (txn, db) = read();
    let mut record: Option<(Vec<u8>, Vec<u8>)> = None;
    let tell = |record: &Option<(Vec<u8>, Vec<u8>)>| {
        if let Some((key, value)) = record {
            each(key.as_ptr().cast(), key.len(), value.as_ptr().cast(), value.len());
        }
    };
    for entry in must(btree::iter(&txn, &db, None), c"iter") {
        let (name, of) = must(entry, c"iter");
        let key = name.strip_suffix(&name[name.len().saturating_sub(2)..]).unwrap_or(name);
        match &mut record {
            Some((known, value)) if known == key => value.extend_from_slice(of),
            _ => {
                tell(&record);
                record = Some((key.to_vec(), of.to_vec()));
            }
        }
    }
    tell(&record);
}

#[unsafe(no_mangle)]
pub extern "C" fn store_check() {
    // Sanakirja has no such function for others; pages have checksums, which `load_page` compares.
}

#[unsafe(no_mangle)]
pub extern "C" fn store_close() {
    *ENV.lock().unwrap() = None;
}
