//! A thread of the program. Each is touched by the thread itself alone, and by the end of the process.

use std::cell::Cell;
use std::ffi::c_uint;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use graven_capture::{Accessed, Event, Left, Persistence, Volatile};

use crate::calls::Call;
use crate::exclusive::Exclusive;
use crate::flow::Flow;
use crate::operands::Operands;
use crate::origins::Origins;
use crate::registers::Registers;
use crate::repeated::{Place, Run, parts};
use crate::setup::Followed;
use crate::stack::Calls;
use crate::stream::Stream;
use crate::tracer::tracer;
use crate::turns::{BLOCKS, Seat};

/// Most processors of QEMU's, which are threads of the program that live at the same time.
const THREADS_MAX: usize = 4096;

static THREADS: [AtomicPtr<Thread>; THREADS_MAX] =
    [const { AtomicPtr::new(ptr::null_mut()) }; THREADS_MAX];

/// Threads that have begun.
static BEGUN: AtomicU32 = AtomicU32::new(0);

/// Events of all threads.
static EVENTS: AtomicU64 = AtomicU64::new(0);

/// Nothing is traced of this process: it is one that the program has made by fork, or all of its trace is written.
pub static IS_UNTRACED: AtomicBool = AtomicBool::new(false);

/// Some thread's registers are where they should be.
static HAS_REGISTERS: AtomicBool = AtomicBool::new(false);

/// On another stack, a frame may be as far away as this, and not more.
const STACK_BYTES: u64 = 64 << 20;

/// No function waits for its return.
const NOWHERE: u64 = u64::MAX;

/// A function that was entered.
struct Entered {
    function: u32,
    /// The address of the function.
    begin: u64,
    /// The stack pointer then.
    stack: u64,
    return_address: u64,
    synchronises: bool,
}

impl Entered {
    /// Tells whether the call has returned when the program continues at an address.
    fn has_returned_to(&self, address: u64, registers: Registers) -> bool {
        self.return_address == address && registers.stack_returned(self.stack) == registers.stack()
    }

    /// Tells whether it is gone although the stack is as it was when it was entered: another call has been made since, and not by
    /// itself.
    fn is_over(&self, registers: Registers) -> bool {
        self.stack == registers.stack()
            && registers.link().is_some_and(|link| {
                link != self.return_address && !tracer().functions.has(self.begin, link)
            })
    }
}

/// Something that is known of an instruction only when it is done, and that is the last one of its block.
struct Unfinished {
    /// The address at which the program continues if it is done.
    address: u64,
    /// The action then, and its datum.
    then: fn(&mut Thread, data: u64),
    data: u64,
    /// Blocks to the end of the thread's turn.
    blocks_left: u64,
}

/// A thread that is about to be made.
#[derive(Clone, Copy)]
pub struct Child {
    /// The thread that makes it.
    pub by: u32,
    /// The address at which the kernel tells its end.
    pub end: Option<u64>,
}

thread_local! {
    /// The thread that QEMU's thread is about to make: it does all up to the first instruction of the new one.
    pub static CHILD: Cell<Option<Child>> = const { Cell::new(None) };
}

/// The counts of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Instructions.
    pub instructions: u64,
    /// Loads, wherever.
    pub loads: u64,
    /// Stores, wherever.
    pub stores: u64,
    /// Instructions that write lines back.
    pub flushes: u64,
    /// Fences.
    pub fences: u64,
    /// Calls of msync.
    pub syncs: u64,
}

/// A thread.
pub struct Thread {
    /// None in a process that the program has made.
    stream: Option<Stream>,
    /// The number of the stream.
    pub number: u32,
    /// Accesses were recorded since the last event.
    is_behind: bool,
    /// A store to persistent memory or a flush was recorded since the last fence.
    is_unfenced: bool,
    /// The kernel may write for the present system call, whose site is not recorded yet.
    may_write: bool,
    /// The calls that the thread is in.
    pub calls: Calls,
    /// The registers of the present block, if it has a flush.
    pub operands: Operands,
    /// The place at which the thread waits for its turn.
    seat: Arc<Seat>,
    /// Blocks to the end of its turn; at 0 it is looked whether it has one.
    blocks_left: u64,
    has_turn: bool,
    /// The address at which the kernel tells its end.
    end: Option<u64>,
    /// The registers of the processor on which it runs.
    pub registers: Registers,
    /// That they are where they should be, tested with a system call.
    registers_are_right: bool,
    /// The loads whose values its registers contain.
    origins: Origins,
    /// Instructions before the present block, and in it.
    instructions: u64,
    of_block: u64,
    /// Functions that were entered and have not returned, the innermost last.
    entered: Vec<Entered>,
    /// If the stack pointer is above this, the innermost may have returned, or be gone.
    returns_above: u64,
    /// The number of those that synchronise.
    synchronising: u32,
    /// A system call is under way.
    pub is_calling: bool,
    /// The system call that is under way, or was last; none: its number is not known.
    pub call: Option<Call>,
    /// The arguments of the present system call.
    pub arguments: [u64; 6],
    /// Persistent memory that is being moved: where it was, its positions, and how many bytes.
    pub moving: Vec<(u64, u64, u64)>,
    /// The memory that it has loaded exclusively.
    pub exclusive: Exclusive,
    /// The action that is due when the next block begins.
    unfinished: Option<Unfinished>,
    /// The address of the present block.
    block_at: u64,
    /// The address of the repeated instruction that it has executed last, and the number of the block in which it did.
    repeating: Option<(u64, u64)>,
    pub counts: Counts,
}

/// The thread on a processor.
#[inline]
pub fn thread(vcpu: c_uint) -> &'static mut Thread {
    let thread = THREADS[vcpu as usize].load(Ordering::Relaxed);
    assert!(!thread.is_null(), "a thread begins before it executes");
    // SAFETY: QEMU calls for a processor on the thread that runs it; it lives until `end`.
    unsafe { &mut *thread }
}

/// The thread on a processor waits for its turn, outside translated code. It is not held meanwhile: the process may end.
pub fn take_turn(vcpu: c_uint) {
    let turns = &tracer().turns;
    if !turns.are_needed() || thread(vcpu).has_turn || IS_UNTRACED.load(Ordering::Relaxed) {
        return;
    }
    let seat = Arc::clone(&thread(vcpu).seat);
    turns.take(&seat, None);
    let thread = thread(vcpu);
    (thread.has_turn, thread.blocks_left) = (true, BLOCKS);
}

/// One begins.
pub fn begin(vcpu: c_uint) {
    let number = BEGUN.fetch_add(1, Ordering::Relaxed);
    let stream = (!IS_UNTRACED.load(Ordering::Relaxed)).then(|| new_stream(number));
    let child = CHILD.take();
    let mut thread = Thread {
        stream,
        number,
        is_behind: false,
        is_unfenced: false,
        may_write: false,
        calls: Calls::default(),
        operands: Operands::default(),
        seat: Arc::default(),
        blocks_left: 1,
        has_turn: false,
        end: child.and_then(|child| child.end),
        registers: Registers::NONE,
        registers_are_right: false,
        origins: Origins::default(),
        instructions: 0,
        of_block: 0,
        entered: Vec::new(),
        returns_above: NOWHERE,
        synchronising: 0,
        is_calling: false,
        call: None,
        arguments: [0; 6],
        moving: Vec::new(),
        exclusive: Exclusive::default(),
        unfinished: None,
        block_at: 0,
        repeating: None,
        counts: Counts::default(),
    };
    thread.event(&Event::Began { by: child.map(|child| child.by) });
    THREADS[vcpu as usize].store(Box::into_raw(Box::new(thread)), Ordering::Release);
}

fn new_stream(number: u32) -> Stream {
    let path = tracer().setup.folder.join(format!("thread-{number}"));
    Stream::create(&path).unwrap_or_else(|error| {
        eprintln!("graven: {}: {error}", path.display());
        std::process::abort();
    })
}

/// Ends a thread; returns its counts.
pub fn end(vcpu: c_uint) -> Option<Counts> {
    let thread = THREADS[vcpu as usize].swap(ptr::null_mut(), Ordering::AcqRel);
    if thread.is_null() {
        return None;
    }
    // SAFETY: it was made by `begin`, and nobody has it any more.
    let mut thread = unsafe { Box::from_raw(thread) };
    let counts = thread.ends();
    if IS_UNTRACED.load(Ordering::Relaxed) {
        // It is the parent's, who goes on writing to it.
        std::mem::forget(thread.stream.take());
    }
    Some(counts)
}

/// The process ends, and this thread, which alone executes, ends it; returns what was counted of all that are left. They stay, for
/// they may be called again. `last` is called for each before its end is written.
pub fn stop_all(mut last: impl FnMut(&mut Thread)) -> Vec<Counts> {
    let stop = |thread: &AtomicPtr<Thread>| {
        // SAFETY: a thread that is there lives until `end`; all but this one wait for their turn, or for the kernel.
        let thread = unsafe { thread.load(Ordering::Acquire).as_mut() }?;
        last(thread);
        Some(thread.ends())
    };
    THREADS.iter().filter_map(stop).collect()
}

/// Tells whether any thread's registers were in their places.
pub fn some_has_registers() -> bool {
    HAS_REGISTERS.load(Ordering::Relaxed)
}

impl Thread {
    /// Instructions executed, up to this one of the present block.
    #[inline]
    pub fn now(&self, instruction: u64) -> u64 {
        self.instructions + if instruction == 0 { self.of_block } else { instruction }
    }

    /// A block begins, of `instructions`, with this stack pointer.
    #[inline]
    pub fn block(
        &mut self,
        instructions: u64,
        address: u64,
        flow: &'static Flow,
        registers: Registers,
        stack: u64,
    ) {
        self.origins.begin(flow);
        self.instructions += self.of_block;
        self.of_block = instructions;
        self.block_at = address;
        self.registers = registers;
        self.blocks_left = self.blocks_left.saturating_sub(1);
        if self.blocks_left == 0 {
            self.looks_around(instructions, address);
        }
        if stack > self.returns_above {
            self.may_have_returned(address);
        }
    }

    /// The rare actions at the beginning of a block.
    #[cold]
    fn looks_around(&mut self, instructions: u64, address: u64) {
        if let Some(unfinished) = self.unfinished.take() {
            self.blocks_left = unfinished.blocks_left;
            if unfinished.address == address {
                // It is of the block before.
                let of_block = std::mem::take(&mut self.of_block);
                (unfinished.then)(self, unfinished.data);
                self.of_block = of_block;
            }
        }
        // A block of one instruction may be one that QEMU executes alone, while who has the turn next would wait for its end: an
        // atomic instruction over the edge of a line.
        if self.blocks_left == 0 && instructions > 1 {
            self.turn_is_over();
        }
    }

    /// Sets an action for when the program continues at an address, which is behind the last instruction of this block.
    pub fn finishes_at(&mut self, address: u64, then: fn(&mut Thread, u64), data: u64) {
        let blocks_left = self.blocks_left;
        self.unfinished = Some(Unfinished { address, then, data, blocks_left });
        self.blocks_left = 0;
    }

    /// Number and arguments of a system call, which must be where registers are believed to be.
    pub fn test_registers(&mut self, number: i64, arguments: &[u64]) {
        if !self.registers_are_right && self.registers.have(number, arguments) {
            self.registers_are_right = true;
            HAS_REGISTERS.store(true, Ordering::Relaxed);
        }
    }

    /// Tells whether the registers were found.
    pub fn has_registers(&self) -> bool {
        self.registers_are_right
    }

    /// A load or store of persistent memory by this instruction of the present block.
    #[inline]
    pub fn access(
        &mut self,
        (instruction, site): (u64, u32),
        position: u64,
        bytes: &[u8],
        how: Accessed,
    ) {
        let is_store = matches!(how, Accessed::Stored | Accessed::StoredNonTemporally);
        self.is_unfenced |= is_store;
        // What one thread loads of its own matters to nobody.
        if self.calls.is_changed() && (is_store || tracer().turns.are_needed()) {
            self.tells_calls();
        }
        self.is_behind |= self.record(instruction, is_store, |stream, at, origin| {
            stream.access(at, position, bytes, how, (origin, site));
        });
    }

    /// The stream gets the stack of calls as it is.
    #[cold]
    fn tells_calls(&mut self) {
        if let (Some(stream), false) = (&mut self.stream, IS_UNTRACED.load(Ordering::Relaxed)) {
            stream.stack(self.instructions, &mut self.calls);
        }
    }

    /// Something that the thread does for persistence, by the instruction of this site.
    pub fn persists(&mut self, site: u32, what: &Persistence) {
        if self.calls.is_changed() {
            self.tells_calls();
        }
        if let (Some(stream), false) = (&mut self.stream, IS_UNTRACED.load(Ordering::Relaxed)) {
            stream.persistence(self.instructions, site, what);
            self.is_behind = true;
        }
        match what {
            Persistence::Flush(..) => self.is_unfenced = true,
            Persistence::Fence(_) => self.is_unfenced = false,
            Persistence::Call(_) => {}
        }
    }

    /// Tells whether a fence has something to order: a store to persistent memory, or a flush.
    pub fn is_unfenced(&self) -> bool {
        self.is_unfenced
    }

    /// Returns the site of the system call that the thread makes, which ends a block.
    pub fn call_site(&self) -> u32 {
        self.calls.last_site()
    }

    /// The kernel may have written for the system call that has just returned.
    pub fn may_write_for_call(&mut self) {
        self.may_write = true;
    }

    /// An instruction with a flush behind it in its block has accessed memory.
    pub fn before_flush(&mut self, number: u64, at: (u64, usize), is_store: bool) {
        let registers = self.registers;
        self.operands.accessed(registers, number, at, is_store);
    }

    /// A load or store of volatile memory by this instruction of the present block, which is recorded or not.
    #[inline]
    pub fn volatile(&mut self, instruction: u64, address: u64, size: u8, is_store: bool) {
        if !tracer().records_volatile() {
            if !is_store {
                self.origins.loaded_unrecorded(instruction);
            }
            return;
        }
        self.record(instruction, is_store, |stream, at, origin| {
            stream.volatile(at, Volatile { address, size, origin, is_store });
        });
    }

    /// An access follows of the repeated instruction at this address. QEMU executes each repetition in a block of its own, or all
    /// in one.
    pub fn repeats(&mut self, address: u64) {
        let block = self.origins.blocks();
        let goes_on = self.repeating.is_some_and(|(of, last)| {
            of == address && (last == block || last + 1 == block && self.block_at == address)
        });
        self.repeating = Some((address, block));
        if let Some(stream) = &mut self.stream
            && !goes_on
            && !IS_UNTRACED.load(Ordering::Relaxed)
        {
            stream.ends_repetition();
            // Within the repetition it would cut the runs.
            if self.calls.is_changed() && !tracer().regions.are_none() {
                stream.stack(self.instructions, &mut self.calls);
            }
        }
    }

    /// An element that a repeated instruction loads or stores; of volatile memory, any bytes will do.
    pub fn repeated(
        &mut self,
        (instruction, site): (u64, u32),
        place: Place,
        bytes: &[u8],
        is_store: bool,
    ) {
        let is_persistent = matches!(place, Place::Persistent(_));
        if !is_persistent && !tracer().records_volatile() {
            if !is_store {
                self.origins.loaded_unrecorded(instruction);
            }
            return;
        }
        let is_traced = !IS_UNTRACED.load(Ordering::Relaxed);
        // Downwards, the upper word is the one that is continued.
        let goes_downwards = |stream: &Stream| stream.goes_downwards(place, bytes.len(), is_store);
        let is_downwards = self.stream.as_ref().is_some_and(goes_downwards);
        let (now, origins) = (self.now(instruction), &mut self.origins);
        let mut stream = self.stream.as_mut().filter(|_| is_traced);
        self.is_behind |= is_persistent && stream.is_some();
        self.is_unfenced |= is_persistent && is_store;
        let mut take = |(place, from, to): (Place, usize, usize)| {
            let load = origins.load_of_address(instruction, is_store);
            let element = Run::new(place, &bytes[from..to], is_store, load);
            let stream = stream.as_deref_mut();
            let by = (origins.loads(), site);
            let begins = stream.is_none_or(|stream| stream.repeated(now, by, element));
            match (is_store, begins) {
                (true, _) => {}
                (false, true) => origins.loaded(instruction),
                (false, false) => origins.loaded_more(instruction),
            }
        };
        let parts = parts(place, bytes.len());
        if is_downwards { parts.rev().for_each(&mut take) } else { parts.for_each(&mut take) }
    }

    /// A load or store, written by `put`, which is told how many instructions have been executed, and how many loads ago the address
    /// was loaded; returns whether it was.
    #[inline]
    fn record(
        &mut self,
        instruction: u64,
        is_store: bool,
        put: impl FnOnce(&mut Stream, u64, u16),
    ) -> bool {
        let (at, origin) = (self.now(instruction), self.origins.of(instruction, is_store));
        if !is_store {
            self.origins.loaded(instruction);
        }
        let stream = self.stream.as_mut().filter(|_| !IS_UNTRACED.load(Ordering::Relaxed));
        let is_recorded = stream.is_some();
        if let Some(stream) = stream {
            put(stream, at, origin);
        }
        is_recorded
    }

    /// The thread has accessed memory: if it did so out of turn, since QEMU wanted it to continue, the access comes before those
    /// that others make from now on.
    #[inline]
    pub fn closes_access(&mut self) {
        if !self.has_turn && self.is_behind {
            self.is_behind = false;
            self.event(&Event::Ordered);
        }
    }

    /// The thread accesses a place by which threads synchronise; accesses of a function of synchronisation are the function's.
    #[cold]
    pub fn synchronises(&mut self, event: &Event) {
        if self.synchronising == 0 {
            self.event(event);
        }
    }

    /// The accesses of this thread come before those of threads to which the kernel has told its end.
    pub fn tells_its_end(&mut self) {
        match self.end {
            Some(place) => {
                self.event(&Event::Synchronised {
                    place,
                    bytes: 4,
                    acquires: false,
                    releases: true,
                    is_atomic: false,
                });
            }
            None => self.event(&Event::Ordered),
        }
    }

    /// Another one's turn may come.
    #[cold]
    fn turn_is_over(&mut self) {
        let turns = &tracer().turns;
        self.blocks_left = BLOCKS;
        if !turns.are_needed() || IS_UNTRACED.load(Ordering::Relaxed) {
            return;
        }
        if self.has_turn && turns.is_wanted() {
            self.gives_turn();
        }
        if !self.has_turn {
            let registers = self.registers;
            self.has_turn = turns.take(&self.seat, Some(&|| registers.must_go_on()));
            // It tries again as soon as QEMU lets it.
            self.blocks_left = if self.has_turn { BLOCKS } else { 1 };
        }
    }

    /// The thread waits for others: they go first, if there are any.
    pub fn gives_way(&mut self) {
        if self.has_turn && tracer().turns.is_wanted() {
            self.blocks_left = 1;
        }
    }

    /// The thread gives up its turn: its accesses come before all that others make from now on.
    pub fn gives_turn(&mut self) {
        if !tracer().turns.are_needed() {
            return;
        }
        if self.is_behind {
            self.event(&Event::Ordered);
        }
        if std::mem::take(&mut self.has_turn) {
            tracer().turns.give();
        }
    }

    /// Nothing comes after this; returns what was counted.
    fn ends(&mut self) -> Counts {
        self.counts.instructions = self.now(0);
        self.event(&Event::Ended);
        self.counts
    }

    /// Something that all threads have in one order.
    pub fn event(&mut self, event: &Event) {
        if let (Some(stream), false) = (&mut self.stream, IS_UNTRACED.load(Ordering::Relaxed)) {
            self.is_behind = false;
            let is_written = matches!(
                event,
                Event::KernelWrote { .. } | Event::Found { .. } | Event::Zeroed { .. }
            );
            if is_written && std::mem::take(&mut self.may_write) {
                let site = self.calls.last_site();
                if self.calls.is_changed() {
                    stream.stack(self.instructions, &mut self.calls);
                }
                stream.at(self.instructions, site);
            }
            let number = EVENTS.fetch_add(1, Ordering::SeqCst);
            stream.event(self.instructions, number, event);
        }
    }

    /// A function that is followed is entered, at the start of a block.
    pub fn enters(&mut self, function: u32, begin: u64, followed: Followed) {
        let (stack, return_address) = (self.registers.stack(), self.registers.return_address());
        let is_jump = |e: &Entered| e.stack == stack && e.return_address == return_address;
        match self.entered.last() {
            // It goes round, and was not called again.
            Some(last) if is_jump(last) && last.function == function => return,
            // Its last act is this call: both return at the same time.
            Some(last) if is_jump(last) => {}
            _ => self.unwind(stack + 1),
        }
        let Followed { argument, synchronises, begins } = followed;
        if begins {
            tracer().begins();
        }
        self.entered.push(Entered { function, begin, stack, return_address, synchronises });
        self.synchronising += u32::from(synchronises);
        self.returns_above = self.registers.looks_above(stack);
        self.event(&Event::Entered { function, argument: self.registers.argument(argument) });
    }

    #[cold]
    fn may_have_returned(&mut self, address: u64) {
        let registers = self.registers;
        let returned = |e: &Entered| e.has_returned_to(address, registers);
        let Some(at) = self.entered.iter().rposition(returned) else {
            let stack = registers.stack();
            let is_over = self.entered.last().is_some_and(|e| e.is_over(registers));
            self.unwind(stack + u64::from(is_over));
            return;
        };
        while self.entered.len() > at + 1 {
            self.leaves(Left::Unwound);
        }
        while self.entered.last().is_some_and(returned) {
            self.leaves(Left::Returned);
        }
    }

    /// Whatever was entered deeper in the stack than this is gone without having returned.
    fn unwind(&mut self, stack: u64) {
        let is_deeper = |e: &Entered| e.stack < stack && stack - e.stack < STACK_BYTES;
        while self.entered.last().is_some_and(is_deeper) {
            self.leaves(Left::Unwound);
        }
    }

    /// The innermost function is left.
    fn leaves(&mut self, how: Left) {
        let Some(Entered { function, synchronises, .. }) = self.entered.pop() else { return };
        self.synchronising -= u32::from(synchronises);
        self.returns_above =
            self.entered.last().map_or(NOWHERE, |e| self.registers.looks_above(e.stack));
        self.event(&Event::Left { function, result: self.registers.result(), how });
    }
}
