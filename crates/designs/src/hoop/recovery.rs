//! Recovery (§III-F), on several threads, from the region's bytes alone.
//!
//! 1. The blocks that the index has, in use or full, are dealt to the threads, which read their address memory
//!    slices. What is not older than its block is a record.
//! 2. With several controllers, a prepared record counts if any controller has a committed one of its
//!    transaction.
//! 3. The records, in commit order, are dealt round robin. Each thread goes through its own from the latest back,
//!    follows their chains, and keeps the newest version of each word, by parts of the home region.
//! 4. Each thread merges the versions of one part by commit order, and writes the newest home.
//! 5. The decisions of step 2 are noted where they were missing, the sequence number to continue with is
//!    written, and the index is cleared, the oldest block first.
//!
//! A failure in between finds either all records, or the youngest of each region: replaying them again leaves the
//! same. The paper's master thread merges alone; here each thread has a part of the homes.

use rustc_hash::FxHashSet;

use super::layout::{
    BlockState, Geometry, Header, Record, SLICE_BYTES, Sequence, SliceHead, home, is_indexed,
    tx_of_head,
};
use super::{HoopConfig, Rules};
use graven_base::host;
use graven_base::memory::{Addr, LINE_BYTES, LineData, WORD_BYTES, WORDS_PER_LINE, WordMap};
use graven_base::recovery_steps::ThreadSteps;
use graven_base::surviving::{Reader, SurvivingImage, Work as Computation};
use graven_machine::design::{DesignContext, RecoveryReport, Settlement, Stores};

/// Fewer records than this are not worth another thread.
const RECORDS_PER_THREAD: usize = 64;

/// Headers that the host has under way while one is read.
const HEADERS_AHEAD: u64 = 16;

/// Words of a block before its first record.
const WORDS_TO_RECORD: usize = (SLICE_BYTES / WORD_BYTES) as usize;

/// The region is cleared before it is put to use.
pub fn format(context: &DesignContext, image: &mut SurvivingImage) {
    if Rules::of(context).region_is_cleared() {
        image.clear(context.log_start, context.log_end);
    }
}

/// Work of a recovery, from which its time on a given memory can be derived
/// ([`super::recovery_ns`]).
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
    region: usize,
}

/// Remains of a region.
struct Survey {
    geometry: Geometry,
    /// Blocks that the index has: their numbers, with what they were opened with; the oldest first.
    blocks: Vec<(u32, Sequence)>,
    /// Sequence number to continue with; none: the region has not been used.
    next: Option<Sequence>,
}

/// A version of a word.
#[derive(Clone, Copy, Default)]
struct Version {
    /// Place of its transaction in commit order, from 1, and of its slice in the transaction.
    place: (u64, u64),
    word: u64,
}

/// The newest version of each word: by parts of the home region, or one part as several threads know it.
type Newest = Vec<WordMap<Version>>;

/// Words, and pieces of memory that they lie in, for whose versions memory is allocated at once.
const VERSIONS_EXPECTED: (usize, usize) = (512, 32);

/// Nor do so many blocks that the index has.
const BLOCKS_EXPECTED: usize = 8;

/// Takes a version of a word, if none is known that is as new.
#[inline]
fn keep(newest: &mut WordMap<Version>, home: Addr, version: Version) {
    newest.update(home, |known| match known {
        Some(known) if known.place >= version.place => known,
        _ => version,
    });
}

/// The entry's recovery. Its threads are those of the machine: the host has one for it, unless steps of all are kept.
pub fn recover(
    context: &DesignContext,
    _registers: &[u64],
    image: &mut SurvivingImage,
) -> RecoveryReport {
    let threads = match image.keeps_steps() {
        true => context.config.get::<HoopConfig>().recovery_threads as usize,
        false => 1,
    };
    let work = recover_measured(context, image, threads);
    RecoveryReport { records_scanned: work.records, words_redone: work.words, words_undone: 0 }
}

/// Recovers on at most `threads` threads.
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
    let early = !Rules::of(context).cleared_after_home();
    if early {
        clear(context, image, &surveys);
    }
    image.work_of_sort(found.len());
    let order = |f: &Found| match Rules::of(context).replayed_in_commit_order() {
        true => f.commit,
        false => f.tx.into(),
    };
    found.sort_by_key(order);
    let threads = worthwhile(image, threads, found.len() / RECORDS_PER_THREAD + 1);
    let batches = newest(image, &surveys, &found, threads, &mut work);
    image.note(|| format!("recovery: {} words of {} records go home", work.words, work.records));
    image.store_parallel(&batches);
    image.fence();
    image.barrier();
    if Rules::of(context).decision_is_noted() {
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

/// Records that stay at least: the newest one tells the sequence number to continue with.
const KEPT: usize = 4;

/// Replays the oldest records ahead and hides them: the words home that they have, and no record in their place. Later records have
/// later versions. With several controllers nothing is done ahead.
pub fn settle(context: &DesignContext, image: &mut SurvivingImage) -> Option<Settlement> {
    if context.config.get::<HoopConfig>().controllers > 1 {
        return None;
    }
    let geometry = Geometry::of(context, 0);
    let mut work = Work::default();
    let (survey, mut found) = survey(context, image, geometry, 0, 1, &mut work);
    found.sort_by_key(|found| found.commit);
    let settled = &found[..found.len().checked_sub(KEPT)?];
    if settled.is_empty() {
        return None;
    }
    let word = |at: Addr| at..at.plus(WORD_BYTES);
    let of_block = |&(number, _): &(u32, Sequence)| {
        let header = geometry.block(number);
        [word(geometry.index(number)), header..header.plus(2 * WORD_BYTES)]
    };
    let mut depends_on: Vec<_> = survey.blocks.iter().flat_map(of_block).collect();
    depends_on.extend(settled.iter().map(|found| word(found.at)));
    image.keep_steps();
    let batches = newest(image, &[survey], settled, 1, &mut work);
    let loaded: Vec<_> = image.take_steps().iter().flat_map(ThreadSteps::loaded).collect();
    let consecutive = loaded.chunk_by(|a, b| a.plus(WORD_BYTES) == *b);
    depends_on.extend(consecutive.map(|words| words[0]..words[words.len() - 1].plus(WORD_BYTES)));
    image.store_all(batches.into_iter().flatten());
    image.store_all(settled.iter().map(|found| (found.at, 0)));
    Some(Settlement { depends_on, stores: Stores::OfWords, hides_records: true })
}

/// Number of threads that have enough to do for a thread of the host. The machine that executes
/// recovery has them all.
fn worthwhile(image: &SurvivingImage, threads: usize, enough: usize) -> usize {
    if image.keeps_steps() { threads } else { threads.min(enough) }
}

/// Deals items round robin to threads, which each do something with theirs; the results, in the order of threads. Where steps are
/// kept, the host does the work of one after the other.
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
    let results: Vec<_> = if threads == 1 || image.keeps_steps() {
        hands.into_iter().map(run).collect()
    } else {
        std::thread::scope(|scope| {
            let run = &run;
            let part = |hand| scope.spawn(move || run(hand));
            let all: Vec<_> = hands.into_iter().map(part).collect();
            all.into_iter().map(host::joined).collect()
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

/// A block of the index: its number, the sequence number that it was opened with, and its state.
type Indexed = (u32, Sequence, BlockState);

/// Reads index, headers and address memory slices of a region.
fn survey(
    context: &DesignContext,
    image: &mut SurvivingImage,
    geometry: Geometry,
    region: usize,
    threads: usize,
    work: &mut Work,
) -> (Survey, Vec<Found>) {
    let next = Sequence::of_word(image.load(geometry.sequence()));
    work.record_bytes += (u64::from(geometry.blocks) + 1) * 8;
    work.record_bytes += u64::from(geometry.blocks) * LINE_BYTES;
    let (mut blocks, newest) = read_headers(image, &geometry);
    let next = last_used(context, image, &geometry, &blocks, (newest, next));
    // The oldest is the one that no other is older than.
    let oldest = blocks.iter().map(|b| b.1).reduce(|a, b| if b.since(a).is_none() { b } else { a });
    let Some(oldest) = oldest else {
        return (Survey { geometry, blocks: Vec::new(), next }, Vec::new());
    };
    blocks.sort_by_key(|&(_, opened, _)| opened.since(oldest).unwrap_or(0));
    let opened = |&(number, opened, _): &Indexed| (number, opened);
    let with_records: Vec<(u32, Sequence)> =
        blocks.iter().filter(|b| holds_records(b.2)).map(opened).collect();
    work.record_bytes +=
        with_records.len() as u64 * u64::from(geometry.address_slices) * SLICE_BYTES;
    let found = read_records(context, image, geometry, (region, oldest), with_records, threads);
    let latest = found.iter().max_by_key(|f| f.commit).map(|f| f.record.sequence.next());
    // An earlier recovery that was cut off may have seen more.
    let next = later(next, latest);
    (Survey { geometry, blocks: blocks.iter().map(opened).collect(), next }, found)
}

/// Reads index and headers of a region. Returns the blocks of the index, and those that were opened last: several, if lives
/// have ended before their blocks had a record.
fn read_headers(
    image: &mut SurvivingImage,
    geometry: &Geometry,
) -> (Vec<Indexed>, Vec<(u32, Sequence)>) {
    let mut blocks = Vec::with_capacity(BLOCKS_EXPECTED);
    let mut newest: Vec<(u32, Sequence)> = Vec::with_capacity(BLOCKS_EXPECTED);
    // Without a watcher, the entries of the index are looked at together.
    let index = image.unwatched_words(geometry.index(0), geometry.blocks as usize);
    let index = index.map(<[u64]>::to_vec);
    let mut start = geometry.block(0);
    for number in 0..geometry.blocks {
        let entry = match &index {
            Some(index) => {
                image.count_loads(1);
                index[number as usize]
            }
            None => image.load(geometry.index(number)),
        };
        // The host has no other way to know that a line in another page follows.
        image.expect(start.plus(HEADERS_AHEAD * geometry.block_bytes()));
        let (words, is_used) = read_header(image, start);
        start = start.plus(geometry.block_bytes());
        let opened = Sequence::of(words[1]);
        if is_indexed(entry) {
            blocks.push((number, opened, Header::parse(words[0]).state));
        }
        if !is_used {
            continue;
        }
        let since = newest.first().map(|&(_, known)| opened.since(known));
        if since != Some(None) {
            if since != Some(Some(0)) {
                newest.clear();
            }
            newest.push((number, opened));
        }
    }
    (blocks, newest)
}

/// Reads the header of the block that starts here. Returns its words, and whether anything was ever written to the block:
/// not to one that was never opened.
fn read_header(image: &mut SurvivingImage, start: Addr) -> ([u64; 2], bool) {
    let record = start.plus(WORDS_TO_RECORD as u64 * WORD_BYTES);
    match image.unwatched::<{ WORDS_TO_RECORD + 1 }>(start) {
        Some(&[0, 0, .., record]) => {
            image.count_loads(3);
            ([0; 2], Record::parse(record).is_some())
        }
        Some(&[first, second, ..]) => {
            image.count_loads(2);
            ([first, second], true)
        }
        None if image.is_absent(start) && image.is_absent(record) => {
            image.count_loads(3);
            ([0; 2], false)
        }
        None => {
            let words = image.load_words(start);
            (words, words != [0; 2] || Record::parse(image.load(record)).is_some())
        }
    }
}

/// The latest sequence number that a record may have: the one that is known, or by the blocks that were opened last.
fn last_used(
    context: &DesignContext,
    image: &mut SurvivingImage,
    geometry: &Geometry,
    blocks: &[Indexed],
    (mut newest, known): (Vec<(u32, Sequence)>, Option<Sequence>),
) -> Option<Sequence> {
    let rules = Rules::of(context);
    if !rules.numbers_of_all_blocks_count() {
        newest.clear();
    }
    if !rules.numbers_of_last_blocks_count() {
        newest.drain(..newest.len().saturating_sub(1));
    }
    newest.into_iter().fold(known, |last, (number, opened)| {
        // The records of blocks in use are read later.
        let is_read = blocks.iter().any(|b| b.0 == number && holds_records(b.2));
        let used = if is_read { opened } else { used_until(image, geometry, number, opened) };
        later(last, Some(used))
    })
}

/// Reads the records of these blocks of a region, of which the oldest was opened with the sequence number `oldest`.
fn read_records(
    context: &DesignContext,
    image: &mut SurvivingImage,
    geometry: Geometry,
    (region, oldest): (usize, Sequence),
    blocks: Vec<(u32, Sequence)>,
    threads: usize,
) -> Vec<Found> {
    let rules = Rules::of(context);
    let skips_stale = rules.stale_records_are_skipped();
    let needs_tx =
        context.config.get::<HoopConfig>().controllers > 1 || !rules.replayed_in_commit_order();
    let enough = blocks.len() * geometry.records() as usize / 4096 + 1;
    let threads = worthwhile(image, threads, enough);
    let all = deal(image, blocks, threads, |reader, blocks| {
        let mut found = Vec::new();
        let mut take = |reader: &mut Reader<'_>, opened: Sequence, (at, word): (Addr, u64)| {
            let Some(record) = Record::parse(word) else { return };
            let outside = u64::from(record.start) >= geometry.slices();
            let is_stale = record.sequence.since(opened).is_none();
            if outside || is_stale && skips_stale {
                return;
            }
            let tx = if needs_tx { transaction_of(reader, &geometry, &record) } else { 0 };
            let commit = record.sequence.since(oldest).unwrap_or(0);
            found.push(Found { record, at, tx, commit, region });
        };
        for (number, opened) in blocks {
            let (start, words) = (geometry.record(number, 0), geometry.records() as usize);
            // Most of a block has no record yet, and zero is none.
            if let Some(words) = reader.unwatched_nonzero(start, words) {
                words.into_iter().for_each(|word| take(reader, opened, word));
                continue;
            }
            for line in geometry.record_lines(number) {
                for (place, word) in reader.load_line(line).into_iter().enumerate() {
                    reader.work(Computation::Record, 1);
                    take(reader, opened, (line.word(place), word));
                }
            }
        }
        found
    });
    all.into_iter().flatten().collect()
}

/// The later one of two places in commit order, if there are two.
fn later(a: Option<Sequence>, b: Option<Sequence>) -> Option<Sequence> {
    match (a, b) {
        (Some(a), Some(b)) if a.since(b).is_some() => Some(a),
        (a, b) => b.or(a),
    }
}

/// Returns true if the records of a block in this state count.
fn holds_records(state: BlockState) -> bool {
    matches!(state, BlockState::InUse | BlockState::Full)
}

/// The sequence number after those that the records of a block bear, though they do not count. Of
/// the blocks that were opened last these are the latest of the region: they must not come again as
/// long as such records remain.
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
    let together = surveys.len() > 1 && Rules::of(context).controllers_decide_together();
    let all = !Rules::of(context).only_committed_is_replayed();
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
    let (words, pieces) = VERSIONS_EXPECTED;
    // From the latest back; what each thread gets keeps that order.
    let backwards = (1..=found.len() as u64).rev().zip(found.iter().rev());
    let local = deal(image, backwards, threads, |reader, records| {
        let mut newest: Newest =
            (0..threads).map(|_| WordMap::with_capacity(words, pieces)).collect();
        let mut slices = 0;
        for (commit, f) in records {
            let geometry = &surveys[f.region].geometry;
            let (of_chain, words) = read_chain(reader, geometry, &f.record, |slice, data| {
                let (place, homes) = slice;
                for (i, &word) in data.iter().enumerate() {
                    let home = home(homes, i);
                    let part = &mut newest[if threads == 1 { 0 } else { parts.of(home) }];
                    let home = Addr(home.0 / WORD_BYTES * WORD_BYTES);
                    keep(part, home, Version { place: (commit, place), word });
                }
            });
            slices += of_chain;
            reader.work(Computation::Table, words);
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

/// Reads the slices of a transaction, in order, and calls `each` with the place of each, its
/// metadata line and its words. Returns the numbers of slices and of words.
fn read_chain(
    reader: &mut Reader<'_>,
    geometry: &Geometry,
    record: &Record,
    mut each: impl FnMut((u64, &LineData), &[u64]),
) -> (u64, u64) {
    let (mut number, mut tx) = (record.start, None);
    let (mut slices, mut words) = (0, 0);
    reader.addresses_known();
    while slices < geometry.slices() {
        let [data, metadata] = geometry.slice_lines(number).map(|line| reader.load_line(line));
        reader.work(Computation::Record, 1);
        // The next slice is in this one.
        reader.follow();
        let Some(head) = SliceHead::parse(&metadata) else { break };
        if head.first != tx.is_none() || tx.is_some_and(|tx| tx != head.tx) {
            break;
        }
        tx = Some(head.tx);
        each((slices, &metadata), &data[..head.count]);
        slices += 1;
        words += head.count as u64;
        if head.next == 0 {
            break;
        }
        number = geometry.next(number, head.next);
    }
    (slices, words)
}

/// Words of which threads know a version.
fn versions(known: &Newest) -> u64 {
    known.iter().map(|words| words.len() as u64).sum()
}

/// One part of the home region, as the threads know it: of each word the version with the latest commit.
fn merge(known: Newest) -> Vec<(Addr, u64)> {
    let mut known = known.into_iter();
    let mut newest = known.next().unwrap_or_else(|| WordMap::with_capacity(0, 0));
    for other in known {
        other.iter().for_each(|(home, version)| keep(&mut newest, home, version));
    }
    newest.in_order(|version| version.word)
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
        if !Rules::of(context).cleared_oldest_first() {
            blocks.reverse();
        }
        for number in blocks {
            image.store(survey.geometry.index(number), 0);
            image.fence();
        }
    }
}

const _: () = assert!(SLICE_BYTES == 2 * LINE_BYTES && WORDS_PER_LINE == 8);
