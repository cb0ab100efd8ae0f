//! The nine tables (clause 1.3): columns, and where they lie in a row.
//!
//! A row is its columns in the specification's order, each on a word of its own. Numbers, dates and amounts of money
//! (in cents; rates in hundredths of a percent) are one word, two's complement. A text takes its whole length, rounded
//! up to words, and zeros behind its last character. Null is 0. Rows lie in whole lines.

use crate::costs;
use crate::structures::element::copy_line;
use graven_base::memory::WORD_BYTES;
use graven_machine::program::{Load, Memory, Ptr};

/// Place of a column in its row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    /// First word.
    pub(super) at: u64,
    /// Length in bytes.
    pub(super) bytes: u64,
}

impl Column {
    const fn nth(bytes: &[u64], number: usize) -> Self {
        let (mut at, mut i) = (0, 0);
        while i < number {
            at += bytes[i].div_ceil(WORD_BYTES);
            i += 1;
        }
        Column { at, bytes: bytes[number] }
    }

    pub(super) const fn words(self) -> u64 {
        self.bytes.div_ceil(WORD_BYTES)
    }

    pub(super) const fn end(self) -> u64 {
        self.at + self.words()
    }
}

/// Declares a table: its columns, and their lengths in bytes.
macro_rules! table {
    ($(#[$doc:meta])* $table:ident: $($column:ident $bytes:literal,)+) => {
        $(#[$doc])*
        pub(super) mod $table {
            use super::Column;

            #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
            #[derive(Clone, Copy)]
            enum Number { $($column,)+ }
            const BYTES: &[u64] = &[$($bytes,)+];
            $(#[allow(dead_code)] pub(in super::super) const $column: Column =
                Column::nth(BYTES, Number::$column as usize);)+
            /// Words of a row.
            pub(in super::super) const WORDS: usize =
                Column::nth(BYTES, BYTES.len() - 1).end() as usize;
        }
    };
}

table! {
    /// One row per warehouse.
    warehouse:
    W_ID 8, W_NAME 10, W_STREET_1 20, W_STREET_2 20, W_CITY 20, W_STATE 2, W_ZIP 9, W_TAX 8, W_YTD 8,
}

table! {
    /// Ten rows per warehouse.
    district:
    D_ID 8, D_W_ID 8, D_NAME 10, D_STREET_1 20, D_STREET_2 20, D_CITY 20, D_STATE 2, D_ZIP 9, D_TAX 8, D_YTD 8,
    D_NEXT_O_ID 8,
}

table! {
    /// 3,000 rows per district.
    customer:
    C_ID 8, C_D_ID 8, C_W_ID 8, C_FIRST 16, C_MIDDLE 2, C_LAST 16, C_STREET_1 20, C_STREET_2 20, C_CITY 20, C_STATE 2,
    C_ZIP 9, C_PHONE 16, C_SINCE 8, C_CREDIT 2, C_CREDIT_LIM 8, C_DISCOUNT 8, C_BALANCE 8, C_YTD_PAYMENT 8,
    C_PAYMENT_CNT 8, C_DELIVERY_CNT 8, C_DATA 500,
}

table! {
    /// A row per payment.
    history:
    H_C_ID 8, H_C_D_ID 8, H_C_W_ID 8, H_D_ID 8, H_W_ID 8, H_DATE 8, H_AMOUNT 8, H_DATA 24,
}

table! {
    /// A row per order that is still to be delivered.
    new_order:
    NO_O_ID 8, NO_D_ID 8, NO_W_ID 8,
}

table! {
    /// A row per order.
    order:
    O_ID 8, O_D_ID 8, O_W_ID 8, O_C_ID 8, O_ENTRY_D 8, O_CARRIER_ID 8, O_OL_CNT 8, O_ALL_LOCAL 8,
}

table! {
    /// 5 to 15 rows per order.
    order_line:
    OL_O_ID 8, OL_D_ID 8, OL_W_ID 8, OL_NUMBER 8, OL_I_ID 8, OL_SUPPLY_W_ID 8, OL_DELIVERY_D 8, OL_QUANTITY 8,
    OL_AMOUNT 8, OL_DIST_INFO 24,
}

table! {
    /// 100,000 rows.
    item:
    I_ID 8, I_IM_ID 8, I_NAME 24, I_PRICE 8, I_DATA 50,
}

table! {
    /// A row per item and warehouse.
    stock:
    S_I_ID 8, S_W_ID 8, S_QUANTITY 8, S_DIST_01 24, S_DIST_02 24, S_DIST_03 24, S_DIST_04 24, S_DIST_05 24,
    S_DIST_06 24, S_DIST_07 24, S_DIST_08 24, S_DIST_09 24, S_DIST_10 24, S_YTD 8, S_ORDER_CNT 8, S_REMOTE_CNT 8,
    S_DATA 50,
}

/// `S_DIST_xx` of a district.
pub(super) fn s_dist(district: u64) -> Column {
    let first = stock::S_DIST_01;
    Column { at: first.at + (district - 1) * first.words(), ..first }
}

/// A row, in volatile memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row<const N: usize>(pub(super) [u64; N]);

impl<const N: usize> Row<N> {
    /// All columns null.
    pub(super) fn new() -> Self {
        Row([0; N])
    }

    pub(super) fn set(&mut self, column: Column, value: u64) -> &mut Self {
        self.0[column.at as usize] = value;
        self
    }

    /// Writes a text, cut off at the column's length.
    pub(super) fn text(&mut self, column: Column, text: &[u8]) -> &mut Self {
        let text = &text[..text.len().min(column.bytes as usize)];
        for (word, bytes) in self.0[column.at as usize..].iter_mut().zip(text.chunks(8)) {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(eight);
        }
        self
    }

    /// Copies the row to `at`.
    pub(super) fn store<M: Memory>(&self, m: &mut M, at: Ptr) {
        for (i, &word) in (0..).zip(&self.0) {
            copy_line(m, i, N as u64);
            m.store(at.word(i), word);
        }
    }
}

pub(super) fn get<M: Load>(m: &mut M, row: Ptr, column: Column) -> u64 {
    m.load(row.word(column.at))
}

pub(super) fn set<M: Memory>(m: &mut M, row: Ptr, column: Column, value: u64) {
    m.store(row.word(column.at), value);
}

/// Adds to a column, and returns what it held.
pub(super) fn add<M: Memory>(m: &mut M, row: Ptr, column: Column, more: u64) -> u64 {
    let old = get(m, row, column);
    set(m, row, column, old.wrapping_add(more));
    old
}

/// Copies a column into volatile memory.
pub(super) fn read<M: Load>(m: &mut M, row: Ptr, column: Column, mut word: impl FnMut(u64)) {
    m.compute(costs::WORD * column.words() as u32);
    for i in column.at..column.end() {
        word(m.load(row.word(i)));
    }
}

/// The same, of several columns that the terminal is shown.
pub(super) fn show<M: Load>(m: &mut M, row: Ptr, columns: &[Column]) {
    columns.iter().for_each(|&column| read(m, row, column, |_| ()));
}
