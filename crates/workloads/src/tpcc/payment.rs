//! Payment (clause 2.5): a customer pays, in his own district or in another.
//!
//! If the customer's credit is bad, the payment is written down in front of `C_DATA`, whose other characters move on by
//! 32, out of its 500 (clause 2.5.2.2 names the fields, not their widths):
//!
//! | characters | 0..6 | 7..9 | 10..14 | 15..17 | 18..22 | 23..30 | 31 |
//! |---|---|---|---|---|---|---|---|
//! | right-justified | C_ID | C_D_ID | C_W_ID | D_ID | W_ID | H_AMOUNT in cents | a stroke |

use super::content::BAD_CREDIT;
use super::customers::{Namesakes, Who};
use super::database::{Database, History};
use super::random::Random;
use super::schema::{
    Row, add, customer::*, district::*, get, history::*, read, show, warehouse::*,
};
use crate::costs;
use graven_base::memory::WORD_BYTES;
use graven_machine::program::{LockId, Memory, Ptr};

/// Ends of the fields of a payment in `C_DATA`.
const ENDS: [usize; 6] = [6, 9, 14, 17, 22, 30];

/// Words that a payment takes in `C_DATA`.
pub(super) const NOTE_WORDS: u64 = 4;

/// A payment in `C_DATA`: customer, its district and warehouse; district and warehouse where it was paid; amount.
pub(super) type Note = [u64; 6];

fn note_words(note: &Note) -> [u64; NOTE_WORDS as usize] {
    let mut text = [b' '; (NOTE_WORDS * WORD_BYTES) as usize];
    text[31] = b'|';
    for (&field, end) in note.iter().zip(ENDS) {
        let (mut rest, mut at) = (field, end);
        loop {
            at -= 1;
            text[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
    }
    let mut words = [0; NOTE_WORDS as usize];
    for (word, bytes) in words.iter_mut().zip(text.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    }
    words
}

/// Payment that some words of `C_DATA` spell, if they do.
pub(super) fn note_of(words: [u64; NOTE_WORDS as usize]) -> Option<Note> {
    let text = words.map(u64::to_le_bytes).concat();
    let (mut note, mut first) = ([0; 6], 0);
    for (field, end) in note.iter_mut().zip(ENDS) {
        let digits = std::str::from_utf8(text.get(first..end)?).ok()?;
        *field = digits.trim_start().parse().ok()?;
        first = end;
    }
    (note_words(&note) == words).then_some(note)
}

/// Input of the terminal.
#[derive(Clone, Debug)]
pub(super) struct Input {
    place: (u64, u64),
    customer_place: (u64, u64),
    who: Who,
    amount: u64,
}

impl Input {
    pub(super) fn draw(random: &mut Random, home: u64) -> Self {
        let place = (home, random.district());
        let customer_place =
            if random.percent(85) { place } else { (random.remote(home), random.district()) };
        let who = Who::draw(random);
        Input { place, customer_place, who, amount: random.between(100, 500_000) }
    }

    pub(super) fn locks(&self, db: &Database, locks: &mut Vec<LockId>) {
        let districts = [self.place, self.customer_place].map(|place| db.district_lock(place));
        locks.push(db.warehouse_lock(self.place.0));
        locks.extend(districts);
    }

    pub(super) fn run<M: Memory>(
        &self,
        db: &Database,
        m: &mut M,
        history: &History,
        date: u64,
        namesakes: &mut Namesakes,
    ) {
        let ((w, d), (c_w, c_d), amount) = (self.place, self.customer_place, self.amount);
        let warehouse = db.warehouse(w);
        add(m, warehouse, W_YTD, amount);
        show(m, warehouse, &[W_STREET_1, W_STREET_2, W_CITY, W_STATE, W_ZIP]);
        let district = db.district(self.place);
        add(m, district, D_YTD, amount);
        show(m, district, &[D_STREET_1, D_STREET_2, D_CITY, D_STATE, D_ZIP]);

        let customer = self.who.find(db, m, self.customer_place, namesakes);
        let c = get(m, customer, C_ID);
        show(m, customer, &[C_FIRST, C_MIDDLE, C_LAST, C_STREET_1, C_STREET_2, C_CITY, C_STATE]);
        show(m, customer, &[C_ZIP, C_PHONE, C_SINCE, C_CREDIT_LIM, C_DISCOUNT]);
        add(m, customer, C_BALANCE, amount.wrapping_neg());
        add(m, customer, C_YTD_PAYMENT, amount);
        add(m, customer, C_PAYMENT_CNT, 1);
        m.compute(costs::COMPARE);
        if get(m, customer, C_CREDIT)
            == u64::from(u16::from_le_bytes([BAD_CREDIT[0], BAD_CREDIT[1]]))
        {
            write_down(m, customer, &[c, c_d, c_w, d, w, amount]);
        }

        let mut row = Row::new();
        row.set(H_C_ID, c).set(H_C_D_ID, c_d).set(H_C_W_ID, c_w).set(H_D_ID, d).set(H_W_ID, w);
        row.set(H_DATE, date).set(H_AMOUNT, amount);
        let names = [(warehouse, W_NAME), (district, D_NAME)];
        let data = names.map(|(row, column)| {
            let (mut name, mut at) = ([0; 16], 0);
            read(m, row, column, |word: u64| {
                name[at..at + 8].copy_from_slice(&word.to_le_bytes());
                at += 8;
            });
            name
        });
        row.text(H_DATA, &history_data(data));
        history.append(m, &row);
    }
}

/// `H_DATA`: the names of warehouse and district, and four spaces between them.
pub(super) fn history_data(names: [[u8; 16]; 2]) -> [u8; 24] {
    let mut data = [0; 24];
    let mut at = 0;
    for (name, between) in names.iter().zip(["    ", ""]) {
        let length = name.iter().position(|&byte| byte == 0).unwrap_or(10).min(10);
        data[at..at + length].copy_from_slice(&name[..length]);
        at += length;
        data[at..at + between.len()].copy_from_slice(between.as_bytes());
        at += between.len();
    }
    data
}

/// Mask of the part of a word of `C_DATA` that is among its 500 characters.
pub(super) fn within_data(index: u64) -> u64 {
    let bytes = (C_DATA.bytes - index * WORD_BYTES).min(WORD_BYTES);
    u64::MAX >> (64 - 8 * bytes)
}

/// Puts a payment in front of `C_DATA`.
fn write_down<M: Memory>(m: &mut M, customer: Ptr, note: &Note) {
    m.compute(costs::DIGIT * ENDS[5] as u32 + 2 * costs::WORD * C_DATA.words() as u32);
    let data = customer.word(C_DATA.at);
    for i in (NOTE_WORDS..C_DATA.words()).rev() {
        let word = m.load(data.word(i - NOTE_WORDS));
        m.store(data.word(i), word & within_data(i));
    }
    for (i, word) in (0..).zip(note_words(note)) {
        m.store(data.word(i), word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payment_is_read_as_it_was_written() {
        for note in
            [[3000, 10, 1, 10, 1, 500_000], [1, 1, 1000, 1, 7, 100], [100_000; 6].map(|_| 9)]
        {
            let words = note_words(&note);
            assert_eq!(note_of(words), Some(note));
            let mut other = words;
            other[2] ^= 1 << 9;
            assert_ne!(note_of(other), Some(note));
        }
        assert_eq!(note_of([u64::from_le_bytes(*b"abcdefgh"); 4]), None);
    }

    #[test]
    fn names_in_the_history_are_as_long_as_they_are() {
        let name = |text: &[u8]| {
            let mut name = [0; 16];
            name[..text.len()].copy_from_slice(text);
            name
        };
        let data = history_data([name(b"abcdef"), name(b"ghijklmnop")]);
        assert_eq!(&data[..20], b"abcdef    ghijklmnop");
        let data = history_data([name(b"abcdefghij"), name(b"klmnopqrst")]);
        assert_eq!(&data[..], b"abcdefghij    klmnopqrst");
    }

    #[test]
    fn the_last_word_of_c_data_is_half_a_word() {
        assert_eq!(within_data(0), u64::MAX);
        assert_eq!(within_data(62), u64::from(u32::MAX));
    }
}
