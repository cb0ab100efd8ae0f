//! Recovery (§III-F), on several threads, from the region's bytes alone.
//!
//! 1. The blocks that the index has, in use or full, are dealt to the threads, which read their address memory
//!    slices. What is not older than its block is a record.
//! 2. With several controllers, a prepared record counts if any controller has a committed one of its
//!    transaction.
//! 3. The records, in commit order, are dealt round robin. Each thread goes through its own from the latest back,
//!    follows their chains, and keeps the newest version of each word, by parts of the home region.
//! 4. Each thread merges the versions of one part by commit order, and writes the newest home.
//! 5. The decisions of step 2 are noted where they were missing, the sequence number to go on with is
//!    written, and the index is cleared, the oldest block first.
//!
//! A failure in between finds either all records, or the youngest of each region: replaying them again leaves the
//! same. The paper's master thread merges alone; here each thread has a part of the homes.

use rustc_hash::{FxHashMap, FxHashSet};

use super::layout::{
    BlockState, Geometry, Header, Record, SLICE_BYTES, Sequence, Slice, is_indexed, tx_of_head,
};
use super::{HoopConfig, Mutant};
use graven_base::bits::ones;
use graven_base::memory::{Addr, LINE_BYTES, WORD_BYTES, WORDS_PER_LINE};
use graven_base::surviving::{Reader, SurvivingImage, Work as Computation};
use graven_machine::design::{DesignContext, RecoveryReport};

/// Fewer records than this are not worth another thread.
const RECORDS_PER_THREAD: usize = 64;

/// The region is cleared before it is put to use.
pub fn format(context: &DesignContext, image: &mut SurvivingImage) {
    if !context.mutants().has(Mutant::RegionNotCleared) {
        image.clear(context.log_start, context.log_end);
    }
}

/// What a recovery had to do, from which its time on a given memory can be derived ([`super::recovery_ns`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Bytes of index, headers and address memory slices.
    pub record_bytes: u64,
    /// Commit records found.
    pub records: u64,
    /// Data memory slices read.
    pub slices: u64,
    /// Words written home.
    pub words: u64,
    /// Lines of the home region that they lie in.
    pub lines: u64,
}

/// A record, and where it stands.
#[derive(Clone, Copy, Debug)]
struct Found {
    record: Record,
    at: Addr,
    /// The transaction, where anybody asks for it.
    tx: u32,
    /// Commits since the region's oldest block was opened.
    commit: u64,
    /// Which region.
    region: usize,
}

/// What is left of a region.
struct Survey {
    geometry: Geometry,
    /// Blocks that the index has: their numbers, with what they were opened with; the oldest first.
    blocks: Vec<(u32, Sequence)>,
    /// The sequence number to go on with; none: the region has not been used.
    next: Option<Sequence>,
}

/// Words of a piece of the home region for which versions are kept together.
const PIECE_WORDS: usize = u64::BITS as usize;

/// A version of a word.
#[derive(Clone, Copy)]
struct Version {
    /// Its place in commit order, from 1.
    commit: u64,
    word: u64,
}

/// The newest versions of the words of a piece.
struct Piece {
    /// Of which words one is known, as bits.
    known: u64,
    /// By word; of no account where none is known.
    versions: [Version; PIECE_WORDS],
}

impl Piece {
    const EMPTY: Piece =
        Piece { known: 0, versions: [Version { commit: 0, word: 0 }; PIECE_WORDS] };

    /// Takes a version, if none is known that is as new.
    #[inline]
    fn keep(&mut self, at: usize, version: Version) {
        if self.known >> at & 1 == 0 || version.commit > self.versions[at].commit {
            self.known |= 1 << at;
            self.versions[at] = version;
        }
    }

    /// The known versions, each with its word's place.
    fn known(&self) -> impl Iterator<Item = (usize, Version)> + '_ {
        ones(self.known).map(|at| (at as usize, self.versions[at as usize]))
    }
}

/// The piece of a home address, and the word's place in it.
#[inline]
fn piece_of(home: Addr) -> (u64, usize) {
    let word = home.0 / WORD_BYTES;
    (word / PIECE_WORDS as u64, (word % PIECE_WORDS as u64) as usize)
}

/// The newest version of each word, piece by piece: by parts of the home region, or one part as several threads
/// know it.
type Newest = Vec<FxHashMap<u64, Box<Piece>>>;

/// The entry's recovery.
pub fn recover(
    context: &DesignContext,
    _registers: &[u64],
    image: &mut SurvivingImage,
) -> RecoveryReport {
    let threads = context.config.get::<HoopConfig>().recovery_threads as usize;
    let work = recover_measured(context, image, threads);
    RecoveryReport { records_scanned: work.records, words_redone: work.words, words_undone: 0 }
}

/// Recovery on so many threads at most.
pub fn recover_measured(
    context: &DesignContext,
    image: &mut SurvivingImage,
    threads: usize,
) -> Work {
    let mut work = Work::default();
    let controllers = context.config.get::<HoopConfig>().controllers;
    let (mut surveys, mut found) = (Vec::new(), Vec::new());
    for region in 0..controllers {
        let geometry = Geometry::of(context, region);
        let (survey, records) =
            survey(context, image, geometry, region as usize, threads, &mut work);
        surveys.push(survey);
        found.extend(records);
    }
    let unaccepted = decide(context, image, &surveys, &mut found);
    work.records = found.len() as u64;
    let early = context.mutants().has(Mutant::ClearedBeforeHome);
    if early {
        clear(context, image, &surveys);
    }
    image.work_of_sort(found.len());
    let order = |f: &Found| match context.mutants().has(Mutant::ReplayedByTransaction) {
        true => f.tx.into(),
        false => f.commit,
    };
    found.sort_by_key(order);
    let threads = worthwhile(image, threads, found.len() / RECORDS_PER_THREAD + 1);
    let batches = newest(image, &surveys, &found, threads, &mut work);
    image.note(|| format!("recovery: {} words of {} records go home", work.words, work.records));
    image.store_parallel(&batches);
    image.fence();
    image.barrier();
    if !context.mutants().has(Mutant::DecisionNotNoted) {
        for (at, record) in unaccepted {
            image.store(at, Record { committed: true, ..record }.word());
        }
        image.fence();
    }
    if !early {
        clear(context, image, &surveys);
    }
    work
}

/// How many of the threads have enough to do for a thread of the host. The machine that executes recovery has them all.
fn worthwhile(image: &SurvivingImage, threads: usize, enough: usize) -> usize {
    if image.keeps_steps() { threads } else { threads.min(enough) }
}

/// Deals items round robin to threads, which each do something with theirs; the results, in the order of threads.
fn deal<T: Send, R: Send>(
    image: &mut SurvivingImage,
    items: impl IntoIterator<Item = T>,
    threads: usize,
    each: impl Fn(&mut Reader<'_>, Vec<T>) -> R + Sync,
) -> Vec<R> {
    let mut hands: Vec<Vec<T>> = (0..threads).map(|_| Vec::new()).collect();
    items.into_iter().enumerate().for_each(|(i, item)| hands[i % threads].push(item));
    image.barrier();
    let run = |hand| {
        let mut reader = image.reader();
        (each(&mut reader, hand), reader.used())
    };
    let results: Vec<_> = if threads == 1 {
        hands.into_iter().map(run).collect()
    } else {
        std::thread::scope(|scope| {
            let run = &run;
            let all: Vec<_> =
                hands.into_iter().map(|hand| scope.spawn(move || run(hand))).collect();
            all.into_iter().map(|t| t.join().expect("recovery does not fail")).collect()
        })
    };
    let mut out = Vec::with_capacity(threads);
    for (thread, (result, used)) in results.into_iter().enumerate() {
        image.account(thread, used);
        out.push(result);
    }
    image.barrier();
    out
}

/// Reads index, headers and address memory slices of a region.
fn survey(
    context: &DesignContext,
    image: &mut SurvivingImage,
    geometry: Geometry,
    region: usize,
    threads: usize,
    work: &mut Work,
) -> (Survey, Vec<Found>) {
    let mut blocks = Vec::new();
    let mut next = Sequence::of_word(image.load(geometry.sequence()));
    // The blocks that were opened last: several, if lives have ended before their blocks had a record.
    let mut newest: Vec<(u32, Sequence)> = Vec::new();
    work.record_bytes += (u64::from(geometry.blocks) + 1) * 8;
    for number in 0..geometry.blocks {
        let indexed = is_indexed(image.load(geometry.index(number)));
        let start = geometry.block(number);
        let words = image.load_words::<2>(start);
        let (header, opened) = (Header::parse(words[0]), Sequence::of(words[1]));
        work.record_bytes += LINE_BYTES;
        if indexed {
            blocks.push((number, opened, header.state));
        }
        // Of a block that was never opened nothing has been written.
        let is_used =
            words != [0; 2] || Record::parse(image.load(geometry.record(number, 0))).is_some();
        let since = newest.first().map(|&(_, known)| opened.since(known));
        if is_used && since != Some(None) {
            if since != Some(Some(0)) {
                newest.clear();
            }
            newest.push((number, opened));
        }
    }
    if context.mutants().has(Mutant::NumbersOfIndexedOnly) {
        newest.clear();
    }
    if context.mutants().has(Mutant::NumbersOfOneBlock) {
        newest.drain(..newest.len().saturating_sub(1));
    }
    for &(number, opened) in &newest {
        // The records of blocks in use are read below.
        let is_read = blocks.iter().any(|b| b.0 == number && holds_records(b.2));
        let used = if is_read { opened } else { used_until(image, &geometry, number, opened) };
        next = later(next, Some(used));
    }
    // The oldest is the one that no other is older than.
    let oldest = blocks.iter().map(|b| b.1).reduce(|a, b| if b.since(a).is_none() { b } else { a });
    let Some(oldest) = oldest else {
        return (Survey { geometry, blocks: Vec::new(), next }, Vec::new());
    };
    let age = |opened: Sequence| opened.since(oldest).unwrap_or(0);
    blocks.sort_by_key(|&(_, opened, _)| age(opened));
    let with_records: Vec<(u32, Sequence)> = blocks
        .iter()
        .filter(|b| holds_records(b.2))
        .map(|&(number, opened, _)| (number, opened))
        .collect();
    work.record_bytes +=
        with_records.len() as u64 * u64::from(geometry.address_slices) * SLICE_BYTES;
    let stale = context.mutants().has(Mutant::StaleRecordsTaken);
    let needs_tx = context.config.get::<HoopConfig>().controllers > 1
        || context.mutants().has(Mutant::ReplayedByTransaction);
    let enough = with_records.len() * geometry.records() as usize / 4096 + 1;
    let enough = worthwhile(image, threads, enough);
    let all = deal(image, with_records, enough, |reader, blocks| {
        let mut found = Vec::new();
        for (number, opened) in blocks {
            for line in geometry.record_lines(number) {
                for (place, word) in reader.load_line(line).into_iter().enumerate() {
                    reader.work(Computation::Record, 1);
                    let Some(record) = Record::parse(word) else { continue };
                    let outside = u64::from(record.start) >= geometry.slices();
                    if outside || (record.sequence.since(opened).is_none() && !stale) {
                        continue;
                    }
                    let tx = if needs_tx { transaction_of(reader, &geometry, &record) } else { 0 };
                    let commit = record.sequence.since(oldest).unwrap_or(0);
                    found.push(Found { record, at: line.word(place), tx, commit, region });
                }
            }
        }
        found
    });
    let found: Vec<Found> = all.into_iter().flatten().collect();
    let latest = found.iter().max_by_key(|f| f.commit).map(|f| f.record.sequence.next());
    // An earlier recovery that was cut off may have seen more.
    let next = later(next, latest);
    let blocks = blocks.iter().map(|&(number, opened, _)| (number, opened)).collect();
    (Survey { geometry, blocks, next }, found)
}

/// The later one of two places in commit order, if there are two.
fn later(a: Option<Sequence>, b: Option<Sequence>) -> Option<Sequence> {
    match (a, b) {
        (Some(a), Some(b)) if a.since(b).is_some() => Some(a),
        (a, b) => b.or(a),
    }
}

/// Whether the records of a block in this state count.
fn holds_records(state: BlockState) -> bool {
    matches!(state, BlockState::InUse | BlockState::Full)
}

/// The sequence number after those that the records of a block bear, though they do not count. Of the blocks that were opened
/// last these are the latest of the region: they must not come again as long as such records are there.
fn used_until(
    image: &mut SurvivingImage,
    geometry: &Geometry,
    number: u32,
    opened: Sequence,
) -> Sequence {
    let mut next = opened;
    for word in geometry.record_lines(number).flat_map(|line| image.load_line(line)) {
        if let Some(record) = Record::parse(word)
            && record.sequence.since(next).is_some()
        {
            next = record.sequence.next();
        }
    }
    next
}

/// The transaction of a record, which is in its first slice: several controllers agree on it.
fn transaction_of(reader: &mut Reader<'_>, geometry: &Geometry, record: &Record) -> u32 {
    let [_, metadata] = geometry.slice_lines(record.start);
    // Which slice is in the record.
    reader.follow();
    let tx = tx_of_head(reader.load(metadata.word(5)));
    reader.addresses_known();
    tx
}

/// Keeps the records of committed transactions; returns those that did not say so by themselves.
fn decide(
    context: &DesignContext,
    image: &mut SurvivingImage,
    surveys: &[Survey],
    found: &mut Vec<Found>,
) -> Vec<(Addr, Record)> {
    let committed: FxHashSet<u32> =
        found.iter().filter(|f| f.record.committed).map(|f| f.tx).collect();
    let together = surveys.len() > 1 && !context.mutants().has(Mutant::NoConsensus);
    let all = context.mutants().has(Mutant::PreparedReplayed);
    found.retain(|f| f.record.committed || all || (together && committed.contains(&f.tx)));
    let unaccepted = found.iter().filter(|f| !f.record.committed);
    let unaccepted: Vec<(Addr, Record)> = unaccepted.map(|f| (f.at, f.record)).collect();
    if !unaccepted.is_empty() {
        image.note(|| format!("recovery: {} records committed elsewhere", unaccepted.len()));
    }
    unaccepted
}

/// The newest version of every word, in batches for as many threads.
fn newest(
    image: &mut SurvivingImage,
    surveys: &[Survey],
    found: &[Found],
    threads: usize,
    work: &mut Work,
) -> Vec<Vec<(Addr, u64)>> {
    let parts = image.image().parts(threads);
    // From the latest back; what each thread gets keeps that order.
    let backwards = (1..=found.len() as u64).rev().zip(found.iter().rev());
    let local = deal(image, backwards, threads, |reader, records| {
        let mut newest: Newest = (0..threads).map(|_| FxHashMap::default()).collect();
        let (mut slices, mut chain) = (0, Vec::new());
        for (commit, f) in records {
            read_chain(reader, &surveys[f.region].geometry, &f.record, &mut chain);
            slices += chain.len() as u64;
            let words = chain.iter().map(|slice| slice.words.len() as u64).sum();
            reader.work(Computation::Table, words);
            for slice in chain.drain(..).rev() {
                for (home, word) in slice.words {
                    let part = &mut newest[parts.of(home)];
                    let (piece, at) = piece_of(home);
                    let piece = part.entry(piece).or_insert_with(|| Box::new(Piece::EMPTY));
                    piece.keep(at, Version { commit, word });
                }
            }
        }
        (newest, slices)
    });
    let mut parts: Vec<Newest> = (0..threads).map(|_| Newest::new()).collect();
    for (newest, slices) in local {
        work.slices += slices;
        parts.iter_mut().zip(newest).for_each(|(part, known)| part.push(known));
    }
    let batches = deal(image, parts, threads, |reader, part| {
        if reader.keeps_steps() {
            reader.work(Computation::Table, part.iter().map(versions).sum());
        }
        part.into_iter().map(merge).next().expect("a part for each thread")
    });
    work.words = batches.iter().map(|b| b.len() as u64).sum();
    let lines = |batch: &Vec<(Addr, u64)>| batch.chunk_by(|a, b| a.0.line() == b.0.line()).count();
    work.lines = batches.iter().map(lines).sum::<usize>() as u64;
    batches
}

/// Reads the slices of a transaction, in order.
fn read_chain(
    reader: &mut Reader<'_>,
    geometry: &Geometry,
    record: &Record,
    chain: &mut Vec<Slice>,
) {
    let mut number = record.start;
    reader.addresses_known();
    while (chain.len() as u64) < geometry.slices() {
        let lines = geometry.slice_lines(number).map(|line| reader.load_line(line));
        reader.work(Computation::Record, 1);
        // The next slice is in this one.
        reader.follow();
        let Some(slice) = Slice::parse(&lines[0], &lines[1]) else { return };
        if slice.first != chain.is_empty() || chain.first().is_some_and(|f| f.tx != slice.tx) {
            return;
        }
        let next = slice.next;
        chain.push(slice);
        if next == 0 {
            return;
        }
        number = geometry.next(number, next);
    }
}

/// Words of which threads know a version.
fn versions(known: &Newest) -> u64 {
    let pieces = known.iter().flat_map(FxHashMap::values);
    pieces.map(|piece| u64::from(piece.known.count_ones())).sum()
}

/// One part of the home region, as the threads know it: of each word the version with the latest commit.
fn merge(known: Newest) -> Vec<(Addr, u64)> {
    let mut known = known.into_iter();
    let mut newest = known.next().unwrap_or_default();
    for other in known {
        for (number, piece) in other {
            let Some(merged) = newest.get_mut(&number) else {
                newest.insert(number, piece);
                continue;
            };
            piece.known().for_each(|(at, version)| merged.keep(at, version));
        }
    }
    let mut pieces: Vec<(u64, Box<Piece>)> = newest.into_iter().collect();
    pieces.sort_unstable_by_key(|&(number, _)| number);
    let count = pieces.iter().map(|(_, piece)| piece.known.count_ones() as usize).sum();
    let mut words = Vec::with_capacity(count);
    words.extend(pieces.iter().flat_map(|(number, piece)| {
        let start = Addr(number * PIECE_WORDS as u64 * WORD_BYTES);
        piece.known().map(move |(at, version)| (start.plus(at as u64 * WORD_BYTES), version.word))
    }));
    words
}

/// Empties the regions.
fn clear(context: &DesignContext, image: &mut SurvivingImage, surveys: &[Survey]) {
    for survey in surveys {
        if let Some(next) = survey.next.map(Sequence::word)
            && image.load(survey.geometry.sequence()) != next
        {
            image.store(survey.geometry.sequence(), next);
            image.fence();
        }
        let mut blocks: Vec<u32> = survey.blocks.iter().map(|&(number, _)| number).collect();
        if context.mutants().has(Mutant::ClearedNewestFirst) {
            blocks.reverse();
        }
        for number in blocks {
            image.store(survey.geometry.index(number), 0);
            image.fence();
        }
    }
}

const _: () = assert!(SLICE_BYTES == 2 * LINE_BYTES && WORDS_PER_LINE == 8);
