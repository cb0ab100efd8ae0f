//! The log in PM: where its segments lie, how a transaction is laid out in one, and how it is read back.

use super::{LsmConfig, Rules};
use crate::fields::HOME;
use graven_base::memory::{Addr, Field, LINE_BYTES, LineAddr, MEDIA_LINE_BYTES, WORD_BYTES};
use graven_base::surviving::SurvivingImage;
use graven_machine::design::DesignContext;

/// Words of a log line that hold entries; its first word holds a commit record or nothing.
pub(super) const PAYLOAD_WORDS: u64 = 7;
/// Words of the entries, in a commit record. A transaction fits a segment.
const PAYLOAD: Field = Field::new("words of the entries", 20, 0);
pub(super) const SEQUENCE: Field = PAYLOAD.then("commit sequence number", 44);
/// Number of words, in an entry, behind the home address of its first word.
const LENGTH: Field = HOME.then("number of words", 16);

/// The order in which transactions commit, from 1; 0 is no record.
pub(super) type Sequence = u64;

/// A payload word of the log: consecutive numbers within a transaction.
pub(super) type Position = u64;

/// The word that makes a transaction in the log a committed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommitRecord {
    pub(super) sequence: Sequence,
    /// Words of its entries.
    pub(super) payload: u64,
}

impl CommitRecord {
    pub(super) fn word(self) -> u64 {
        SEQUENCE.put(self.sequence) | PAYLOAD.put(self.payload)
    }

    fn parse(word: u64) -> Option<CommitRecord> {
        let record = CommitRecord { sequence: SEQUENCE.get(word), payload: PAYLOAD.get(word) };
        (record.payload > 0).then_some(record)
    }

    fn lines(self) -> u64 {
        self.payload.div_ceil(PAYLOAD_WORDS)
    }
}

/// Consecutive words that a transaction has written, and where they lie in its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) home: Addr,
    pub(super) words: u64,
    /// Payload words before its data.
    pub(super) offset: u64,
}

/// Splits words, which are sorted by address, into runs of consecutive ones of a bounded length.
pub(super) fn runs(words: impl IntoIterator<Item = Addr>, length_max: usize, out: &mut Vec<Run>) {
    out.clear();
    for addr in words {
        let payload = match out.last_mut() {
            Some(run)
                if run.home.plus(run.words * WORD_BYTES) == addr
                    && run.words < LENGTH.max().min(length_max as u64) =>
            {
                run.words += 1;
                continue;
            }
            Some(run) => run.offset + run.words,
            None => 0,
        };
        out.push(Run { home: addr, words: 1, offset: payload + 1 });
    }
}

/// The entries of a transaction, as they lie in the log.
pub(super) fn encode(words: &[(Addr, u64)], runs: &[Run], out: &mut Vec<u64>) {
    out.clear();
    let mut data = words.iter().map(|&(_, value)| value);
    for run in runs {
        out.push(HOME.put(run.home.0) | LENGTH.put(run.words));
        out.extend(data.by_ref().take(run.words as usize));
    }
}

/// A word that a committed transaction wrote, as the log has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Logged {
    pub(super) sequence: Sequence,
    pub(super) home: Addr,
    pub(super) value: u64,
}

/// Places in the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Log {
    start: Addr,
    pub(super) segments: usize,
    /// Lines of a segment.
    pub(super) lines: u64,
}

impl Log {
    pub(super) fn of(context: &DesignContext) -> Log {
        let config = context.config.get::<LsmConfig>();
        let room = context.log_bytes().saturating_sub(MEDIA_LINE_BYTES);
        let bytes = if config.log_bytes.0 == 0 { room } else { config.log_bytes.0.min(room) };
        let asked = config.segment_bytes.0;
        // Less than a media line is a segment for small programs.
        let unit = if asked < MEDIA_LINE_BYTES { LINE_BYTES } else { MEDIA_LINE_BYTES };
        let segment = asked / unit * unit;
        Log {
            start: context.log_start,
            segments: (bytes / segment) as usize,
            lines: segment / LINE_BYTES,
        }
    }

    /// The word that says which transactions have gone home: all with a lower sequence number.
    pub(super) fn head(&self) -> Addr {
        self.start
    }

    pub(super) fn line(&self, segment: usize, line: u64) -> LineAddr {
        let lines = segment as u64 * self.lines + line;
        self.start.plus(MEDIA_LINE_BYTES + lines * LINE_BYTES).line()
    }

    /// The first payload word of a line of a segment.
    pub(super) fn position(&self, segment: usize, line: u64) -> Position {
        (segment as u64 * self.lines + line) * PAYLOAD_WORDS
    }

    /// Address of a payload word.
    pub(super) fn place(&self, position: Position) -> Addr {
        self.line(0, position / PAYLOAD_WORDS).word(1 + (position % PAYLOAD_WORDS) as usize)
    }

    pub(super) fn segment_of(&self, position: Position) -> usize {
        (position / PAYLOAD_WORDS / self.lines) as usize
    }

    /// The segment that a word of the log lies in.
    pub(super) fn segment_at(&self, addr: Addr) -> usize {
        ((addr.line().0 - self.line(0, 0).0) / self.lines) as usize
    }

    /// Payload words of a segment.
    pub(super) fn payload_max(&self) -> u64 {
        self.lines * PAYLOAD_WORDS
    }

    /// Reads a segment: what its committed transactions wrote that have not gone home (`head`), in the order of
    /// commit. `read` gives a word of a line of the segment. Returns how many transactions and lines those are.
    pub(super) fn read_segment(
        &self,
        head: Sequence,
        mut read: impl FnMut(u64, usize) -> u64,
        mut visit: impl FnMut(Logged),
    ) -> (u64, u64) {
        let (mut transactions, mut line) = (0, 0);
        while line < self.lines {
            let Some(record) = CommitRecord::parse(read(line, 0)) else { break };
            if record.sequence < head || line + record.lines() > self.lines {
                break;
            }
            let mut payload =
                |at: u64| read(line + at / PAYLOAD_WORDS, 1 + (at % PAYLOAD_WORDS) as usize);
            let mut at = 0;
            while at < record.payload {
                let header = payload(at);
                let (home, length) = (Addr(HOME.get(header)), LENGTH.get(header));
                if length == 0 || at + length >= record.payload {
                    break;
                }
                for i in 0..length {
                    let (home, value) = (home.plus(i * WORD_BYTES), payload(at + 1 + i));
                    visit(Logged { sequence: record.sequence, home, value });
                }
                at += 1 + length;
            }
            transactions += 1;
            line += record.lines();
        }
        (transactions, line)
    }
}

/// Clears what may be taken for a commit record, so that none is there but those that are written.
pub(super) fn format(context: &DesignContext, image: &mut SurvivingImage) {
    if !Rules::of(context).log_is_cleared() {
        return;
    }
    let log = Log::of(context);
    image.store(log.head(), 0);
    for line in 0..log.segments as u64 * log.lines {
        image.store(log.line(0, line).addr(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn log() -> Log {
        Log { start: Addr(1 << 20), segments: 4, lines: 8 }
    }

    #[test]
    fn every_bit_lies_where_the_table_says() {
        let record = CommitRecord { sequence: 0xabc_dead_beef, payload: 0x54321 };
        assert_eq!(record.word(), 0xabcd_eadb_eef5_4321);
        assert_eq!(CommitRecord::parse(record.word()), Some(record));
        assert_eq!(CommitRecord::parse(0), None);
        let words = [(Addr(0x1234_5678_9ab8), 7), (Addr(0x1234_5678_9ac0), 8), (Addr(64), 9)];
        let (mut split, mut payload) = (Vec::new(), Vec::new());
        runs(words.iter().map(|w| w.0), 512, &mut split);
        encode(&words, &split, &mut payload);
        assert_eq!(payload, [0x2_1234_5678_9ab8, 7, 8, 1 << 48 | 64, 9]);
    }

    #[test]
    fn payload_words_leave_the_first_word_of_each_line_alone() {
        let log = log();
        let at: Vec<u64> = [0, 6, 7, 8 * 7, 9 * 7 + 1].map(|p| log.place(p).0 - (1 << 20)).into();
        assert_eq!(at, [256 + 8, 256 + 56, 256 + 72, 256 + 512 + 8, 256 + 576 + 16]);
        assert_eq!((log.segment_of(8 * 7 - 1), log.segment_of(8 * 7)), (0, 1));
        assert_eq!(log.position(1, 1), 9 * 7);
        assert_eq!(log.line(1, 1), log.place(9 * 7).line());
    }

    /// Lays transactions into a segment, one after the other.
    fn lay(log: &Log, transactions: &[(Sequence, Vec<(Addr, u64)>)]) -> Vec<[u64; 8]> {
        let mut lines = vec![[0; 8]; log.lines as usize];
        let (mut split, mut payload, mut line) = (Vec::new(), Vec::new(), 0);
        for (sequence, words) in transactions {
            runs(words.iter().map(|w| w.0), 4, &mut split);
            encode(words, &split, &mut payload);
            let record = CommitRecord { sequence: *sequence, payload: payload.len() as u64 };
            lines[line][0] = record.word();
            for (i, &word) in payload.iter().enumerate() {
                lines[line + i / 7][1 + i % 7] = word;
            }
            line += record.lines() as usize;
        }
        lines
    }

    fn read(log: &Log, head: Sequence, lines: &[[u64; 8]]) -> (Vec<Logged>, (u64, u64)) {
        let mut found = Vec::new();
        let read = |line: u64, word: usize| lines[line as usize][word];
        let count = log.read_segment(head, read, |logged| found.push(logged));
        (found, count)
    }

    #[test]
    fn a_segment_is_read_up_to_the_first_transaction_that_is_not_committed() {
        let log = log();
        let words = |n: u64, value| (0..n).map(|i| (Addr(i * 16), value + i)).collect::<Vec<_>>();
        let mut lines = lay(&log, &[(5, words(4, 100)), (7, words(3, 200)), (9, words(1, 300))]);
        let (found, count) = read(&log, 5, &lines);
        assert_eq!((found.len(), count), (8, (3, 4)));
        assert_eq!(found[4], Logged { sequence: 7, home: Addr(0), value: 200 });
        lines[2][0] = CommitRecord { sequence: 4, payload: 6 }.word();
        assert_eq!(
            read(&log, 5, &lines).1,
            (1, 2),
            "an older one's, from before the segment's reuse"
        );
        assert_eq!(read(&log, 6, &lines).1, (0, 0), "all have gone home");
    }

    proptest! {
        #[test]
        fn transactions_come_back_from_their_words(
            sizes in prop::collection::vec(prop::collection::btree_map(0u64..40, any::<u64>(), 1..6), 1..4),
        ) {
            let log = log();
            let transactions: Vec<(Sequence, Vec<(Addr, u64)>)> = (1..)
                .zip(&sizes)
                .map(|(n, words)| (n, words.iter().map(|(&at, &v)| (Addr(at * 8), v)).collect()))
                .collect();
            let (found, count) = read(&log, 1, &lay(&log, &transactions));
            let expected: Vec<Logged> = transactions
                .iter()
                .flat_map(|(sequence, words)| {
                    words.iter().map(|&(home, value)| Logged { sequence: *sequence, home, value })
                })
                .collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(count.0, transactions.len() as u64);
        }

        #[test]
        fn noise_is_read_without_going_astray(words in prop::collection::vec(any::<u64>(), 64)) {
            let log = log();
            let read = |line: u64, word: usize| words[line as usize * 8 + word];
            let (_, lines) = log.read_segment(1, read, |_| {});
            prop_assert!(lines <= log.lines);
        }
    }
}
