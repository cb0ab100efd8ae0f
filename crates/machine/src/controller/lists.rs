//! The requests of a queue by slot, and the lists that they are in.
//!
//! | list | what asks for it |
//! |---|---|
//! | all, in the order in which they came | who looks at writes one by one; the on-PM buffer, which takes the oldest |
//! | those that wait for a bank, and those of the on-PM buffer, in that order, too | the scheduler |
//! | those of a media line, in that order, too | who looks for a line |
//!
//! Requests leave from anywhere, so lists are linked and nothing moves. Of each bank the request that goes first is remembered
//! until its list or its row changes: the scheduler looks at banks, not at requests.

use graven_base::bits::ones;
use graven_base::memory::LineAddr;
use graven_base::slots::{Links, List, NONE};

use crate::device::{Bank, Banks, LINES_PER_MEDIA_LINE, LineIndex};
use crate::request::Place;

/// Why a request goes before others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Wants another row of a bank whose row has been hit as often as it may be.
    Starved,
    /// Has its row open, or is served by the on-PM buffer.
    Hit,
    /// Neither.
    Miss,
}

/// A request that may go.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Class, and below it the number of requests that came to the queue earlier: one number, so
    /// that one comparison is enough.
    rank: u64,
    /// Slot of the request.
    pub slot: u32,
}

/// The bits of a rank that have no class.
const NUMBER_BITS: u32 = 62;

impl Candidate {
    /// Nothing may go: whatever may goes before it.
    pub const NOTHING: Candidate = Candidate { rank: u64::MAX, slot: NONE };

    /// Returns the first of two candidates of a queue.
    #[inline]
    pub fn or_before(self, other: Candidate) -> Candidate {
        if other.rank < self.rank { other } else { self }
    }

    /// Returns the candidate, or `None` for `NOTHING`.
    #[inline]
    pub fn something(self) -> Option<Candidate> {
        (self.slot != NONE).then_some(self)
    }

    #[inline]
    fn new(class: Class, number: u64, slot: u32) -> Candidate {
        Candidate { rank: (class as u64) << NUMBER_BITS | number, slot }
    }

    /// Why it goes before others, by its number among the classes.
    #[inline]
    pub fn class(self) -> u64 {
        self.rank >> NUMBER_BITS
    }
}

/// Resources that the requests of a queue wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// One of this number of banks, unless the on-PM buffer serves them.
    Banks(usize),
    /// One of this number of banks, those of a line one after the other.
    BanksInOrder(usize),
    /// The on-PM buffer, all of them: those of which it has the media line are listed, and no others.
    Buffer,
}

/// Stands for none of the lists of banks and of the on-PM buffer: of those that were given to their banks, and of those that
/// wait for a place in the on-PM buffer.
const NO_GROUP: u32 = u32::MAX;

/// The group of free slots.
const FREE: u32 = u32::MAX - 1;

/// Target of a request, and its neighbours in the lists.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Target line.
    pub line: LineAddr,
    /// Row of the bank.
    pub row: u64,
    /// Bank.
    pub bank: u32,
    /// List of banks or of the on-PM buffer that it is in.
    group: u32,
    /// Number of requests that came before it.
    number: u64,
    /// Among all. The next free slot is the newer of one that is free.
    of_all: Links,
    /// In its group.
    of_group: Links,
}

fn of_all(request: &mut Request) -> &mut Links {
    &mut request.of_all
}

fn of_group(request: &mut Request) -> &mut Links {
    &mut request.of_group
}

/// The group of those of the on-PM buffer.
const BUFFER: u32 = u32::MAX - 2;

/// The requests that wait for a bank.
#[derive(Clone, Copy, Debug)]
struct OfBank {
    list: List,
    /// First candidate, if it is known.
    first: Candidate,
    /// State of the bank when that was found out.
    state: BankState,
    /// Number of requests for a row of each residue. Mostly none wants the open row, and a count of
    /// zero tells so without a search.
    rows: [u16; ROWS],
}

/// Residues of rows that are counted apart: a power of two, and several times the requests that mostly wait for a bank.
const ROWS: usize = 64;

/// Nothing waits for a bank.
const NO_REQUESTS: OfBank = OfBank {
    list: List::EMPTY,
    first: Candidate::NOTHING,
    state: BankState { open_row: None, is_worn: false },
    rows: [0; ROWS],
};

/// The residue of a row.
#[inline]
fn residue(row: u64) -> usize {
    row as usize % ROWS
}

/// State of a bank that decides between its requests.
#[derive(Clone, Copy, Debug)]
struct BankState {
    open_row: Option<u64>,
    /// The row has been hit as often as it may be.
    is_worn: bool,
}

impl BankState {
    #[inline]
    fn of(bank: &Bank, row_hit_limit: u32) -> BankState {
        let is_worn = row_hit_limit > 0 && bank.row_hits >= row_hit_limit;
        BankState { open_row: bank.open_row, is_worn }
    }

    /// The class of a request for a row.
    #[inline]
    fn class(self, row: u64) -> Class {
        match self.open_row {
            Some(open) if open == row => Class::Hit,
            Some(_) if self.is_worn => Class::Starved,
            _ => Class::Miss,
        }
    }
}

/// The requests of a queue.
#[derive(Debug)]
pub struct Lists {
    requests: Vec<Request>,
    /// The first free slot.
    free: u32,
    len: usize,
    /// Number of requests that have come.
    came: u64,
    all: List,
    /// Those of the on-PM buffer.
    of_buffer: List,
    /// Those that wait for banks, by bank.
    of_banks: Vec<OfBank>,
    /// Banks that some wait for, a bit for each.
    banks: u64,
    /// Banks of which it is known what goes first, a bit for each.
    known: u64,
    /// Their media lines.
    media_lines: LineIndex,
    wait: Wait,
}

impl Lists {
    /// Makes empty lists for at most `entries` requests.
    pub fn new(entries: usize, wait: Wait) -> Lists {
        let banks = match wait {
            Wait::Banks(banks) | Wait::BanksInOrder(banks) => banks,
            Wait::Buffer => 0,
        };
        assert!(banks <= u64::BITS as usize, "a channel has 64 banks at most");
        let none = |newer| Request {
            line: LineAddr(0),
            row: 0,
            bank: 0,
            group: FREE,
            number: 0,
            of_all: Links { older: NONE, newer },
            of_group: Links::ALONE,
        };
        let next = (1..entries as u32).chain([NONE]);
        Lists {
            requests: next.map(none).collect(),
            free: 0,
            len: 0,
            came: 0,
            all: List::EMPTY,
            of_buffer: List::EMPTY,
            of_banks: vec![NO_REQUESTS; banks],
            banks: 0,
            known: 0,
            media_lines: LineIndex::new(entries),
            wait,
        }
    }

    /// Number of requests.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if a slot is free.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.free != NONE
    }

    /// The request in a slot.
    #[inline]
    pub fn get(&self, slot: u32) -> &Request {
        &self.requests[slot as usize]
    }

    /// The oldest, for the on-PM buffer.
    #[inline]
    pub fn oldest(&self) -> Candidate {
        match self.all.oldest {
            NONE => Candidate::NOTHING,
            oldest => self.candidate(oldest, Class::Hit),
        }
    }

    /// The one in a slot, of a class.
    #[inline]
    pub fn candidate(&self, slot: u32, class: Class) -> Candidate {
        Candidate::new(class, self.get(slot).number, slot)
    }

    /// Class of the request in a slot, by the row of its bank.
    pub fn class(&self, slot: u32, state: &Bank, row_hit_limit: u32) -> Class {
        BankState::of(state, row_hit_limit).class(self.get(slot).row)
    }

    /// All slots that are taken, oldest first.
    pub fn oldest_first(&self) -> impl Iterator<Item = u32> {
        let of = |slot: u32| (slot != NONE).then_some(slot);
        std::iter::successors(of(self.all.oldest), move |&slot| of(self.get(slot).of_all.newer))
    }

    /// Those of a line, oldest first.
    #[inline]
    pub fn of_line(&self, line: LineAddr) -> impl Iterator<Item = u32> {
        let of_media_line = self.media_lines.oldest_first(media_line(line));
        of_media_line.filter(move |&slot| self.get(slot).line == line)
    }

    /// Those of a line, newest first.
    #[inline]
    pub fn of_line_newest_first(&self, line: LineAddr) -> impl Iterator<Item = u32> {
        let of_media_line = self.media_lines.newest_first(media_line(line));
        of_media_line.filter(move |&slot| self.get(slot).line == line)
    }

    /// Returns true if an older request for the line of a slot is queued.
    #[inline]
    pub fn has_older(&self, slot: u32) -> bool {
        let line = self.get(slot).line;
        self.media_lines.before(slot).any(|before| self.get(before).line == line)
    }

    /// Banks that requests wait for, a bit for each. (Those of the on-PM buffer wait for none.)
    #[inline]
    pub fn banks(&self) -> u64 {
        self.banks
    }

    /// The oldest of those of the on-PM buffer.
    #[inline]
    pub fn oldest_buffered(&self) -> Candidate {
        match self.of_buffer.oldest {
            NONE => Candidate::NOTHING,
            oldest => self.candidate(oldest, Class::Hit),
        }
    }

    /// Returns true if any request belongs to the on-PM buffer.
    #[inline]
    pub fn has_buffered(&self) -> bool {
        self.of_buffer.oldest != NONE
    }

    /// Those of the on-PM buffer, oldest first.
    #[inline]
    pub fn buffered(&self) -> impl Iterator<Item = &Request> {
        let of = |slot: u32| (slot != NONE).then(|| self.get(slot));
        let first = of(self.of_buffer.oldest);
        std::iter::successors(first, move |request| of(request.of_group.newer))
    }

    /// Returns true if the request in a slot belongs to the on-PM buffer.
    pub fn is_buffered(&self, slot: u32) -> bool {
        self.get(slot).group == BUFFER
    }

    /// Returns true if the request in a slot was given to its bank.
    #[inline]
    pub fn is_issued(&self, slot: u32) -> bool {
        self.get(slot).group == NO_GROUP && self.wait != Wait::Buffer
    }

    /// The list of a group, and the requests.
    #[inline]
    fn list(&mut self, group: u32) -> (&mut List, &mut [Request]) {
        let list = match group {
            BUFFER => &mut self.of_buffer,
            bank => &mut self.of_banks[bank as usize].list,
        };
        (list, &mut self.requests)
    }

    /// One comes, and waits for its bank, or for the on-PM buffer.
    ///
    /// # Panics
    /// There is no slot.
    #[inline]
    pub fn insert(&mut self, line: LineAddr, place: &Place, buffered: bool) -> u32 {
        let slot = self.free;
        let group = self.group(place.bank, buffered);
        let request =
            self.requests.get_mut(slot as usize).expect("a request enters where there is a place");
        self.free = request.of_all.newer;
        *request = Request {
            line,
            row: place.row,
            bank: place.bank,
            group,
            number: self.came,
            of_all: Links::ALONE,
            of_group: Links::ALONE,
        };
        self.came += 1;
        self.len += 1;
        self.all.append(&mut self.requests, of_all, slot);
        self.media_lines.insert(slot, media_line(line));
        if group != NO_GROUP {
            let newest = self.list(group).0.newest;
            self.link(slot, group, newest);
        }
        slot
    }

    /// The group of a request for a bank, or for the on-PM buffer.
    #[inline]
    fn group(&self, bank: u32, buffered: bool) -> u32 {
        match self.wait {
            _ if buffered => BUFFER,
            Wait::Buffer => NO_GROUP,
            Wait::Banks(_) | Wait::BanksInOrder(_) => bank,
        }
    }

    /// The one in a slot leaves.
    #[inline]
    pub fn remove(&mut self, slot: u32) -> Request {
        let request = *self.get(slot);
        assert!(request.group != FREE, "a request leaves once");
        if request.group != NO_GROUP {
            self.unlink(slot);
        }
        self.all.remove(&mut self.requests, of_all, slot);
        self.media_lines.remove(slot);
        if self.is_in_order() && self.of_line(request.line).next().is_some() {
            // The next of its line may go now.
            self.known &= !(1 << request.bank);
        }
        let left = &mut self.requests[slot as usize];
        left.group = FREE;
        left.of_all.newer = std::mem::replace(&mut self.free, slot);
        self.len -= 1;
        request
    }

    /// The one in a slot is given to its bank, and stays.
    #[inline]
    pub fn issue(&mut self, slot: u32) {
        assert!(self.get(slot).group < BUFFER, "a request is given to its bank once");
        self.unlink(slot);
        self.requests[slot as usize].group = NO_GROUP;
    }

    /// The on-PM buffer has taken, spilled or dropped parts of a media line. `buffered` says of a line whether requests for it
    /// are the buffer's now.
    #[inline]
    pub fn buffer_changed(&mut self, media_line: u64, buffered: impl Fn(LineAddr) -> bool) {
        let mut next = self.media_lines.oldest_first(media_line).next();
        while let Some(slot) = next {
            let Request { line, bank, group, .. } = *self.get(slot);
            let wanted = self.group(bank, buffered(line));
            if group != wanted && !self.is_issued(slot) {
                self.regroup(slot, wanted);
            }
            next = self.media_lines.after(slot).next();
        }
    }

    /// The one in a slot waits for something else from now on.
    fn regroup(&mut self, slot: u32, wanted: u32) {
        let Request { group, number, .. } = *self.get(slot);
        if group != NO_GROUP {
            self.unlink(slot);
        }
        self.requests[slot as usize].group = wanted;
        if wanted != NO_GROUP {
            let mut older = self.list(wanted).0.newest;
            while older != NONE && self.get(older).number > number {
                older = self.get(older).of_group.older;
            }
            self.link(slot, wanted, older);
        }
    }

    /// These banks, a bit for each, have another row open, or have hit it once more.
    #[inline]
    pub fn banks_changed(&mut self, banks: u64) {
        self.known &= !banks;
    }

    /// The request for a bank that goes first; nothing if none waits for it, or all wait for older ones of their lines. Each
    /// change of the bank has been told ([`Lists::banks_changed`]).
    #[inline]
    fn first(&mut self, bank: u32, state: &Bank, row_hit_limit: u32) -> Candidate {
        if self.known >> bank & 1 == 0 {
            self.learn_first(bank, BankState::of(state, row_hit_limit));
        }
        self.of_banks[bank as usize].first
    }

    /// Returns the first of the requests that wait for free banks.
    #[inline(always)]
    pub fn first_of_free(&mut self, banks: &Banks, row_hit_limit: u32) -> Candidate {
        let mut first = Candidate::NOTHING;
        for bank in ones(self.banks & banks.free()) {
            first = first.or_before(self.first(bank, banks.get(bank), row_hit_limit));
        }
        first
    }

    fn learn_first(&mut self, bank: u32, state: BankState) {
        let first = self.find_first(bank, state);
        let of_bank = &mut self.of_banks[bank as usize];
        (of_bank.first, of_bank.state) = (first, state);
        self.known |= 1 << bank;
    }

    fn find_first(&self, bank: u32, state: BankState) -> Candidate {
        let of_bank = &self.of_banks[bank as usize];
        let mut slot = of_bank.list.oldest;
        while slot != NONE && !self.may_go(slot) {
            slot = self.get(slot).of_group.newer;
        }
        let oldest = slot;
        if let Some(open) = state.open_row
            && (state.is_worn || of_bank.rows[residue(open)] > 0)
        {
            // What goes before the oldest: what finds its row open or, if that is worn, what does not.
            while slot != NONE {
                let request = self.get(slot);
                if (request.row == open) != state.is_worn && self.may_go(slot) {
                    break;
                }
                slot = request.of_group.newer;
            }
        }
        let first = if slot == NONE { oldest } else { slot };
        match first {
            NONE => Candidate::NOTHING,
            first => self.candidate(first, state.class(self.get(first).row)),
        }
    }

    /// Returns true if a request for a bank waits for older ones of its line.
    #[inline]
    fn is_in_order(&self) -> bool {
        matches!(self.wait, Wait::BanksInOrder(_))
    }

    #[inline]
    fn may_go(&self, slot: u32) -> bool {
        !self.is_in_order() || !self.has_older(slot)
    }

    /// Puts one into its group, behind another or first.
    #[inline]
    fn link(&mut self, slot: u32, group: u32, older: u32) {
        let (list, requests) = self.list(group);
        list.insert(requests, of_group, slot, older);
        if group != BUFFER {
            self.banks |= 1 << group;
            let row = self.get(slot).row;
            self.of_banks[group as usize].rows[residue(row)] += 1;
            self.joins(slot, group);
        }
    }

    /// One has come to its bank: it may go first from now on.
    #[inline]
    fn joins(&mut self, slot: u32, bank: u32) {
        if self.known >> bank & 1 == 0 {
            return;
        }
        let OfBank { first, state, .. } = &self.of_banks[bank as usize];
        let candidate = self.candidate(slot, state.class(self.get(slot).row));
        if candidate.rank < first.rank && self.may_go(slot) {
            self.of_banks[bank as usize].first = candidate;
        }
    }

    /// Takes one out of its group.
    #[inline]
    fn unlink(&mut self, slot: u32) {
        let Request { group, row, .. } = *self.get(slot);
        let (list, requests) = self.list(group);
        list.remove(requests, of_group, slot);
        if group != BUFFER {
            let of_bank = &mut self.of_banks[group as usize];
            of_bank.rows[residue(row)] -= 1;
            self.banks &= !(u64::from(of_bank.list.oldest == NONE) << group);
            self.known &= !(u64::from(of_bank.first.slot == slot) << group);
        }
    }
}

/// Keeps what came into a slot of a queue, beside its lists: slots are taken in their order at first.
#[inline]
pub fn keep<T>(kept: &mut Vec<T>, slot: usize, came: T) {
    match kept.get_mut(slot) {
        Some(place) => *place = came,
        None => {
            assert_eq!(slot, kept.len(), "slots are taken in their order at first");
            kept.push(came);
        }
    }
}

/// The media line that a line is part of.
#[inline]
fn media_line(line: LineAddr) -> u64 {
    line.0 / LINES_PER_MEDIA_LINE as u64
}

#[cfg(test)]
mod tests {
    //! Bug classes: a request that goes before its turn or never; one that is remembered as the first of its bank and is not.

    use super::*;
    use proptest::prelude::*;

    const BANKS: u32 = 3;
    const ENTRIES: usize = 7;

    #[derive(Clone, Debug)]
    enum Step {
        /// A request for a line comes, for the on-PM buffer or not.
        Insert {
            line: u64,
            buffered: bool,
        },
        /// One of those that are here leaves, or is given to its bank.
        Remove(prop::sample::Index),
        Issue(prop::sample::Index),
        /// The on-PM buffer has, or has not, these of the lines of a media line.
        Change {
            media_line: u64,
            has: u8,
        },
        /// A bank's row, and how often it was hit.
        Open {
            bank: u32,
            row: Option<u64>,
            hits: u32,
        },
    }

    fn step() -> impl Strategy<Value = Step> {
        let index = any::<prop::sample::Index>;
        prop_oneof![
            5 => (0..24u64, any::<bool>()).prop_map(|(line, buffered)| Step::Insert { line, buffered }),
            3 => index().prop_map(Step::Remove),
            1 => index().prop_map(Step::Issue),
            1 => (0..6u64, any::<u8>()).prop_map(|(media_line, has)| Step::Change { media_line, has }),
            2 => (0..BANKS, prop::option::of(0..3u64), 0..4u32)
                .prop_map(|(bank, row, hits)| Step::Open { bank, row, hits }),
        ]
    }

    /// Place of a line: lines of a media line have the same bank and row.
    fn place(line: u64) -> Place {
        Place { channel: 0, bank: (line / 4 % u64::from(BANKS)) as u32, row: line / 4 / 3 }
    }

    /// A request as it is in a plain list, oldest first.
    #[derive(Clone, Copy, Debug)]
    struct Plain {
        slot: u32,
        line: u64,
        buffered: bool,
        issued: bool,
    }

    fn class(line: u64, bank: &Bank, limit: u32) -> Class {
        match bank.open_row {
            Some(open) if open == place(line).row => Class::Hit,
            Some(_) if limit > 0 && bank.row_hits >= limit => Class::Starved,
            _ => Class::Miss,
        }
    }

    proptest! {
        #[test]
        fn requests_go_as_from_a_list_that_is_searched(
            steps in prop::collection::vec(step(), 0..100),
            wait in prop_oneof![
                Just(Wait::Banks(BANKS as usize)),
                Just(Wait::BanksInOrder(BANKS as usize)),
                Just(Wait::Buffer),
            ],
            limit in prop_oneof![Just(0), Just(2u32)],
        ) {
            let mut lists = Lists::new(ENTRIES, wait);
            let mut list: Vec<Plain> = Vec::new();
            let mut banks = [Bank::default(); BANKS as usize];
            for step in steps {
                match step {
                    Step::Insert { line, buffered } if list.len() < ENTRIES => {
                        let slot = lists.insert(LineAddr(line), &place(line), buffered);
                        prop_assert!(list.iter().all(|other| other.slot != slot));
                        list.push(Plain { slot, line, buffered, issued: false });
                    }
                    Step::Remove(at) if !list.is_empty() => {
                        let plain = list.remove(at.index(list.len()));
                        prop_assert_eq!(lists.remove(plain.slot).line, LineAddr(plain.line));
                    }
                    Step::Issue(at) if !list.is_empty() => {
                        let at = at.index(list.len());
                        if !list[at].issued && !list[at].buffered && wait != Wait::Buffer {
                            list[at].issued = true;
                            lists.issue(list[at].slot);
                        }
                    }
                    Step::Change { media_line, has } => {
                        let has = |line: u64| has >> (line % 4) & 1 == 1;
                        lists.buffer_changed(media_line, |line| has(line.0));
                        let of_media_line = list.iter_mut().filter(|p| p.line / 4 == media_line);
                        of_media_line.filter(|p| !p.issued).for_each(|p| p.buffered = has(p.line));
                    }
                    Step::Open { bank, row, hits } => {
                        banks[bank as usize].open_row = row;
                        banks[bank as usize].row_hits = hits;
                        lists.banks_changed(1 << bank);
                    }
                    Step::Insert { .. } | Step::Remove(_) | Step::Issue(_) => {}
                }
                prop_assert_eq!((lists.len(), lists.has_room()), (list.len(), list.len() < ENTRIES));
                prop_assert!(lists.oldest_first().eq(list.iter().map(|p| p.slot)));
                let slot = |candidate: Candidate| candidate.something().map(|c| c.slot);
                prop_assert_eq!(slot(lists.oldest()), list.first().map(|p| p.slot));
                let oldest_buffered = list.iter().find(|p| p.buffered).map(|p| p.slot);
                prop_assert_eq!(slot(lists.oldest_buffered()), oldest_buffered);
                prop_assert_eq!(lists.has_buffered(), oldest_buffered.is_some());
                prop_assert_eq!(lists.buffered().count(), list.iter().filter(|p| p.buffered).count());
                for (at, plain) in list.iter().enumerate() {
                    let of_line = list.iter().filter(|p| p.line == plain.line).map(|p| p.slot);
                    let line = LineAddr(plain.line);
                    prop_assert!(lists.of_line(line).eq(of_line.clone()));
                    prop_assert!(lists.of_line_newest_first(line).eq(of_line.rev()));
                    let has_older = list[..at].iter().any(|p| p.line == plain.line);
                    prop_assert_eq!(lists.has_older(plain.slot), has_older);
                    prop_assert_eq!(lists.is_issued(plain.slot), plain.issued);
                    prop_assert_eq!(lists.is_buffered(plain.slot), plain.buffered);
                }
                let banks_asked = if wait == Wait::Buffer { 0 } else { BANKS };
                for bank in 0..banks_asked {
                    let waits = |p: &Plain| !p.issued && !p.buffered && place(p.line).bank == bank;
                    prop_assert_eq!(ones(lists.banks()).any(|b| b == bank), list.iter().any(waits));
                    let is_in_order = matches!(wait, Wait::BanksInOrder(_));
                    let older = |at: usize| list[..at].iter().any(|p| p.line == list[at].line);
                    let may_go = (0..list.len()).filter(|&at| waits(&list[at]) && !(is_in_order && older(at)));
                    let state = &banks[bank as usize];
                    let first = may_go.min_by_key(|&at| (class(list[at].line, state, limit), at));
                    let found = lists.first(bank, state, limit);
                    prop_assert_eq!(slot(found), first.map(|at| list[at].slot));
                    let of_first = first.map(|at| class(list[at].line, state, limit) as u64);
                    prop_assert_eq!(found.something().map(Candidate::class), of_first);
                }
            }
        }
    }
}
