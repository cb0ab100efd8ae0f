//! Requests of a block in columns. All numbers are little endian.
//!
//! | bytes | content |
//! |---|---|
//! | 4 each | lengths of the columns of cycles, of lines, and of threads |
//! | 1 each | kinds: bit 0 a write; bits 1 and 2: 0 no content, 1 new content, 2 old and new; bit 3 another thread than before |
//! | … | cycles, each less the one before, zigzag, in LEB128 |
//! | … | numbers of lines (addresses by 64), each less the one before, zigzag, in LEB128 |
//! | … | threads that are others than before, in LEB128 |
//! | 1 or 2 each | masks of requests with content: words of the new content that are not zero; then, of those with old content, words in which that differs |
//! | 8 each | the words of these masks, in the order of masks and addresses |
//!
//! Before the first request of a block cycle, line and thread are 0.

use super::{Content, Request};
use crate::framing::Numbers;
use graven_base::memory::{LINE_BYTES, LineAddr, LineData, WORD_BYTES};
use graven_capture::numbers::{leb128, read_leb128, unzigzag, zigzag};

/// Cycles are below.
pub const CYCLE_END: u64 = 1 << 62;
/// Numbers of lines are below: addresses have 64 bits.
pub const LINE_END: u64 = (u64::MAX / LINE_BYTES) + 1;

/// Bytes before the columns.
const LENGTHS_BYTES: usize = 12;
/// Most bytes that a request can take.
const REQUEST_BYTES_MAX: u32 = 1 + 10 + 10 + 10 + 2 + 2 * LINE_BYTES as u32;

const WRITE: u8 = 1;
const CONTENT_SHIFT: u8 = 1;
const CONTENT: u8 = 3;
const ANOTHER_THREAD: u8 = 8;

/// The most bytes of a payload with `requests`.
pub const fn bytes_max(requests: u32) -> u32 {
    LENGTHS_BYTES as u32 + requests * REQUEST_BYTES_MAX
}

/// The request from which the next one differs.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    cycle: u64,
    line: u64,
    thread: u32,
}

/// The requests of a block that grows.
#[derive(Debug, Default)]
pub struct Columns {
    before: Before,
    kinds: Vec<u8>,
    cycles: Vec<u8>,
    lines: Vec<u8>,
    threads: Vec<u8>,
    masks: Vec<u8>,
    words: Vec<u8>,
}

impl Columns {
    /// The number of requests.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Adds a request, or says what of it has no place in a trace.
    pub fn push(&mut self, request: &Request) -> Result<(), &'static str> {
        if request.cycle >= CYCLE_END {
            return Err("a cycle of 2^62 or more");
        }
        if request.line.0 >= LINE_END {
            return Err("an address of 2^64 or more");
        }
        let before = self.before;
        let mut kind = u8::from(request.write);
        let cycles = zigzag(request.cycle.wrapping_sub(before.cycle) as i64);
        leb128(cycles, |byte| self.cycles.push(byte));
        let lines = zigzag(request.line.0.wrapping_sub(before.line) as i64);
        leb128(lines, |byte| self.lines.push(byte));
        if request.thread != before.thread {
            kind |= ANOTHER_THREAD;
            leb128(request.thread.into(), |byte| self.threads.push(byte));
        }
        match request.content {
            Content::Unknown => {}
            Content::New(new) => {
                kind |= 1 << CONTENT_SHIFT;
                self.differing(&new, &LineData::default());
            }
            Content::OldAndNew { old, new } => {
                kind |= 2 << CONTENT_SHIFT;
                self.differing(&new, &LineData::default());
                self.differing(&old, &new);
            }
        }
        self.kinds.push(kind);
        self.before = Before { cycle: request.cycle, line: request.line.0, thread: request.thread };
        Ok(())
    }

    /// Words of a line that are others than in another line.
    fn differing(&mut self, line: &LineData, other: &LineData) {
        let mut mask = 0;
        for (number, (word, other)) in line.iter().zip(other).enumerate() {
            if word != other {
                mask |= 1 << number;
                self.words.extend(word.to_le_bytes());
            }
        }
        self.masks.push(mask);
    }

    /// Appends the payload, and begins anew.
    pub fn write(&mut self, out: &mut Vec<u8>) {
        for length in [self.cycles.len(), self.lines.len(), self.threads.len()] {
            out.extend((length as u32).to_le_bytes());
        }
        let columns = [
            &mut self.kinds,
            &mut self.cycles,
            &mut self.lines,
            &mut self.threads,
            &mut self.masks,
            &mut self.words,
        ];
        for column in columns {
            out.append(column);
        }
        self.before = Before::default();
    }
}

/// The rest of a payload: columns from one place of it to another.
#[derive(Debug, Default)]
pub struct Rest {
    before: Before,
    kinds: [usize; 2],
    cycles: [usize; 2],
    lines: [usize; 2],
    threads: [usize; 2],
    masks: [usize; 2],
    words: [usize; 2],
}

impl Rest {
    /// All of a payload with `requests`; the error, if its columns are not as long as they say.
    pub fn of(payload: &[u8], requests: u32) -> Result<Rest, &'static str> {
        let requests = requests as usize;
        let (lengths, _) =
            payload.split_first_chunk::<LENGTHS_BYTES>().ok_or("the lengths of three columns")?;
        let mut numbers = Numbers(lengths);
        let mut end = LENGTHS_BYTES;
        let mut column = |bytes: usize| {
            let begin = end;
            end = begin.saturating_add(bytes);
            if end > payload.len() { Err("columns within the payload") } else { Ok([begin, end]) }
        };
        let kinds = column(requests)?;
        let [cycles, lines, threads] = [numbers.u32(), numbers.u32(), numbers.u32()];
        let cycles = column(cycles as usize)?;
        let lines = column(lines as usize)?;
        let threads = column(threads as usize)?;
        let mut count = 0;
        for &kind in &payload[kinds[0]..kinds[1]] {
            let content = kind >> CONTENT_SHIFT & CONTENT;
            if kind >= 2 * ANOTHER_THREAD || content == 3 {
                return Err("kinds of requests up to 13, without content of the kind 3");
            }
            count += usize::from(content);
        }
        let masks = column(count)?;
        let bits: u32 = payload[masks[0]..masks[1]].iter().map(|mask| mask.count_ones()).sum();
        let words = column(bits as usize * WORD_BYTES as usize)?;
        if end != payload.len() {
            return Err("the end of the payload behind its words");
        }
        Ok(Rest { before: Before::default(), kinds, cycles, lines, threads, masks, words })
    }

    /// Tells whether there is no other request.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.kinds[0] == self.kinds[1]
    }

    /// Reads the next request, or says what should be there.
    ///
    /// # Panics
    /// If there is none, or the payload is another.
    #[inline]
    pub fn next(&mut self, payload: &[u8], request: &mut Request) -> Result<(), &'static str> {
        let kind = payload[self.kinds[0]];
        self.kinds[0] += 1;
        let Before { cycle, line, thread } = self.before;
        let step = number(payload, &mut self.cycles).ok_or("a cycle in LEB128")?;
        let cycle = cycle.wrapping_add(unzigzag(step) as u64);
        let step = number(payload, &mut self.lines).ok_or("a line in LEB128")?;
        let line = line.wrapping_add(unzigzag(step) as u64);
        if cycle >= CYCLE_END {
            return Err("a cycle below 2^62");
        }
        if line >= LINE_END {
            return Err("a line below 2^58");
        }
        let thread = if kind & ANOTHER_THREAD == 0 {
            thread
        } else {
            let thread = number(payload, &mut self.threads);
            thread.and_then(|t| u32::try_from(t).ok()).ok_or("a thread of 32 bits in LEB128")?
        };
        request.content = match kind >> CONTENT_SHIFT & CONTENT {
            0 => Content::Unknown,
            1 => Content::New(self.line(payload, LineData::default())),
            _ => {
                let new = self.line(payload, LineData::default());
                Content::OldAndNew { old: self.line(payload, new), new }
            }
        };
        if self.is_empty() {
            let columns = [self.cycles, self.lines, self.threads];
            if columns.iter().any(|[begin, end]| begin != end) {
                return Err("columns without bytes behind the last request's");
            }
        }
        self.before = Before { cycle, line, thread };
        (request.cycle, request.line, request.thread) = (cycle, LineAddr(line), thread);
        request.write = kind & WRITE != 0;
        Ok(())
    }

    /// A line with the words of the next mask put into it.
    #[inline]
    fn line(&mut self, payload: &[u8], mut line: LineData) -> LineData {
        let mask = payload[self.masks[0]];
        self.masks[0] += 1;
        // Most are one of these two.
        if mask == 0 {
            return line;
        }
        if mask == u8::MAX {
            let words: Option<&[[u8; 8]; 8]> = payload[self.words[0]..].as_chunks().0.first_chunk();
            self.words[0] += LINE_BYTES as usize;
            return words.expect("masks have as many words").map(u64::from_le_bytes);
        }
        let mut words = Numbers(&payload[self.words[0]..self.words[1]]);
        for (number, word) in line.iter_mut().enumerate() {
            if mask >> number & 1 != 0 {
                *word = words.u64();
            }
        }
        self.words[0] += mask.count_ones() as usize * WORD_BYTES as usize;
        line
    }
}

/// The next number of a column.
#[inline]
fn number(payload: &[u8], column: &mut [usize; 2]) -> Option<u64> {
    let mut bytes = &payload[column[0]..column[1]];
    let number = read_leb128(&mut bytes)?;
    column[0] = column[1] - bytes.len();
    Some(number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    fn read(payload: &[u8], requests: u32) -> Result<Vec<Request>, &'static str> {
        let mut rest = Rest::of(payload, requests)?;
        let mut read = Vec::new();
        while !rest.is_empty() {
            let mut request = Request::NONE;
            rest.next(payload, &mut request)?;
            read.push(request);
        }
        Ok(read)
    }

    fn payload_of(requests: &[Request]) -> Vec<u8> {
        let mut columns = Columns::default();
        requests.iter().for_each(|request| columns.push(request).expect("it has a place"));
        let mut payload = Vec::new();
        columns.write(&mut payload);
        payload
    }

    fn any_request() -> impl Strategy<Value = Request> {
        let word = || prop_oneof![Just(0), any::<u64>()];
        let line = move || proptest::array::uniform8(word());
        let content = prop_oneof![
            Just(Content::Unknown),
            line().prop_map(Content::New),
            (line(), line()).prop_map(|(old, new)| Content::OldAndNew { old, new }),
        ];
        (0..CYCLE_END, 0..LINE_END, any::<bool>(), content, 0..3u32).prop_map(
            |(cycle, line, write, content, thread)| {
                let line = LineAddr(line);
                Request { cycle, line, write, content, thread }
            },
        )
    }

    proptest! {
        #[test]
        fn requests_come_back_from_no_more_bytes_than_they_may_take(
            requests in proptest::collection::vec(any_request(), 1..20),
        ) {
            let payload = payload_of(&requests);
            prop_assert!(payload.len() <= bytes_max(requests.len() as u32) as usize);
            prop_assert_eq!(read(&payload, requests.len() as u32), Ok(requests));
        }

        #[test]
        fn what_is_nearly_a_payload_is_refused_or_is_one(
            requests in proptest::collection::vec(any_request(), 1..8),
            changes in proptest::collection::vec((any::<Index>(), any::<u8>()), 0..4),
            cut in any::<Index>(),
            more in 0u32..2,
        ) {
            let mut payload = payload_of(&requests);
            for (at, byte) in changes {
                let at = at.index(payload.len());
                payload[at] = byte;
            }
            let count = requests.len() as u32 + more;
            let _ = read(&payload[..cut.index(payload.len())], count);
            if let Ok(requests) = read(&payload, count) {
                // Masks may name words that need not be there, and numbers be longer than they need to be.
                let again = payload_of(&requests);
                prop_assert_eq!(read(&again, count), Ok(requests));
            }
        }
    }
}
