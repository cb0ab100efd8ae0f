//! The functions that QEMU calls.

use std::collections::HashSet;
use std::ffi::{c_uint, c_void};
use std::fs;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, Once};

use graven_capture::{Fence, Flush};

use crate::accesses;
use crate::afterwards::Afterwards;
use crate::architecture::{AARCH64, X86_64, of_guest};
use crate::calls::Call;
use crate::flow::{Flow, Reading};
use crate::functions::Part;
use crate::guest::{Readable, readable};
use crate::instruction::{Ending, Kind};
use crate::kernel_writes;
use crate::markers;
use crate::operands::Steps;
use crate::qemu;
use crate::registers::Registers;
use crate::thread::{self, Counts, IS_UNTRACED};
use crate::tracer::tracer;
use crate::{mappings, persistence, system_calls};

/// The datum of a block's hook. Lives as long as the process, like the code that QEMU makes of the block.
struct Block {
    address: u64,
    instructions: u64,
    flow: Flow,
    /// The manner in which it ends, and the site of its last instruction.
    ending: Ending,
    last: u32,
    /// The instructions, if one of them is a flush whose address must be computed.
    steps: Option<Steps>,
}

/// The bits of a function's hook's datum that say which function it is; above them is its address.
const FUNCTION_BITS: u32 = 16;

/// Counts of threads that have ended.
static ENDED: Mutex<Vec<Counts>> = Mutex::new(Vec::new());

/// Has QEMU call.
pub fn register(id: u64) {
    // SAFETY: the hooks have the types that QEMU calls them with.
    unsafe {
        qemu::qemu_plugin_register_vcpu_init_cb(id, thread_begins);
        qemu::qemu_plugin_register_vcpu_exit_cb(id, thread_ends);
        qemu::qemu_plugin_register_atexit_cb(id, process_ends, std::ptr::null_mut());
        qemu::qemu_plugin_register_vcpu_tb_trans_cb(id, translates);
        qemu::qemu_plugin_register_vcpu_syscall_cb(id, call_begins);
        qemu::qemu_plugin_register_vcpu_syscall_ret_cb(id, call_ends);
    }
}

extern "C" fn thread_begins(_id: u64, vcpu: c_uint) {
    thread::begin(vcpu);
}

extern "C" fn thread_ends(_id: u64, vcpu: c_uint) {
    let counts = thread::end(vcpu);
    ENDED.lock().expect("nobody panics with it").extend(counts);
}

/// The process has ended, and by no call of its own: what is not known yet is written.
extern "C" fn process_ends(_id: u64, _data: *mut c_void) {
    process_is_over();
}

/// This thread is about to end the process, while the others wait for their turn: afterwards, QEMU has them continue until the
/// process is over.
fn process_is_over() {
    if !IS_UNTRACED.load(Ordering::Relaxed) {
        let tracer = tracer();
        if !thread::some_has_registers() {
            eprintln!(
                "graven: this QEMU has the program's registers somewhere else than the plugin looks for them: \
                 no function was followed"
            );
        }
        if let Err(error) = tracer.regions.copy_all(&tracer.setup.folder) {
            eprintln!("graven: the end of the trace cannot be written: {error}");
        }
        // The kernel may do a call meanwhile, or have done it while its thread waits for its turn to go on.
        write_counts(thread::stop_all(|thread| {
            for (position, bytes) in kernel_writes::under_way(thread) {
                tracer.regions.correct(&tracer.setup.folder, position, &bytes);
            }
        }));
        IS_UNTRACED.store(true, Ordering::Relaxed);
    }
}

/// Writes what was counted.
fn write_counts(counts: Vec<Counts>) {
    let mut all = ENDED.lock().expect("nobody panics with it");
    all.extend(counts);
    let sum = |of: fn(&Counts) -> u64| all.iter().map(of).sum::<u64>();
    let text = format!(
        "instructions {}\nloads {}\nstores {}\nflushes {}\nfences {}\nsyncs {}\n",
        sum(|c| c.instructions),
        sum(|c| c.loads),
        sum(|c| c.stores),
        sum(|c| c.flushes),
        sum(|c| c.fences),
        sum(|c| c.syncs),
    );
    if let Err(error) = fs::write(tracer().setup.folder.join("counts"), text) {
        eprintln!("graven: the end of the trace cannot be written: {error}");
    }
}

/// The program and its loader were mapped before anybody was called.
fn look_into_what_is_mapped() {
    let thread = thread::thread(0);
    let mut seen = HashSet::new();
    // QEMU maps the program's code without the right to execute it: the first part of each file says where all lie.
    for Readable { addresses, offset, path } in readable() {
        if let Some(path) = &path {
            tracer().sites.module(path, addresses.start, addresses.end, offset);
        }
        if let Some(path) = path.filter(|path| seen.insert(path.clone())) {
            mappings::look_into(thread, &path, addresses.start, offset, Part::First);
        }
    }
    for &(start, bytes) in &tracer().setup.ranges {
        mappings::range(thread, start, bytes);
    }
}

extern "C" fn translates(_id: u64, block: *mut qemu::Block) {
    static FIRST: Once = Once::new();
    FIRST.call_once(look_into_what_is_mapped);
    // SAFETY: the block is valid during the call, and has so many instructions.
    unsafe {
        let count = qemu::qemu_plugin_tb_n_insns(block);
        let address = qemu::qemu_plugin_tb_vaddr(block);
        let mut reading = Reading::default();
        let mut before: Option<Afterwards> = None;
        let (flushes, steps) = flushes_of(block, count);
        let (mut last, mut ending) = (0, Ending::Other);
        for at in 0..count {
            let instruction = qemu::qemu_plugin_tb_get_insn(block, at);
            if let Some(before) = before.take() {
                execute(instruction, before.with_next());
            }
            let kind = (of_guest().kind)(bytes_of(instruction));
            let address = qemu::qemu_plugin_insn_vaddr(instruction);
            last = tracer().sites.add(address, kind, !IS_UNTRACED.load(Ordering::Relaxed));
            let is_before_flush = flushes.is_some_and(|flush| at < flush);
            let number = at as u64 + 1;
            before =
                translates_instruction(instruction, (number, last), is_before_flush, &mut reading);
            if at + 1 == count {
                ending = (of_guest().ending)(bytes_of(instruction));
            }
            if at + 1 == count
                && let Some(last) = before.take()
            {
                let length = qemu::qemu_plugin_insn_size(instruction) as u64;
                let behind = qemu::qemu_plugin_insn_vaddr(instruction) + length;
                execute(instruction, last.with_last(behind));
            }
        }
        let (instructions, flow) = (count as u64, reading.end());
        let data = Box::new(Block { address, instructions, flow, ending, last, steps });
        let data = std::ptr::from_mut(Box::leak(data)).cast();
        qemu::qemu_plugin_register_vcpu_tb_exec_cb(block, block_hook(), qemu::NO_REGISTERS, data);
    }
}

/// The bytes of an instruction.
///
/// # Safety
/// The instruction is valid as long as the bytes are used.
unsafe fn bytes_of<'a>(instruction: *mut qemu::Instruction) -> &'a [u8] {
    // SAFETY: it has so many bytes.
    unsafe {
        let length = qemu::qemu_plugin_insn_size(instruction);
        std::slice::from_raw_parts(qemu::qemu_plugin_insn_data(instruction), length)
    }
}

/// The index of a block's last flush that names no register, if there is one, and the block's instructions then.
///
/// # Safety
/// The block is valid, and has `count` instructions.
unsafe fn flushes_of(block: *mut qemu::Block, count: usize) -> (Option<usize>, Option<Steps>) {
    let instruction = |at| {
        // SAFETY: the caller's.
        unsafe {
            let instruction = qemu::qemu_plugin_tb_get_insn(block, at);
            (qemu::qemu_plugin_insn_vaddr(instruction), bytes_of(instruction))
        }
    };
    let is_flush =
        |&at: &usize| matches!((of_guest().kind)(instruction(at).1), Kind::Flush(_, None));
    let last = (0..count).rev().find(is_flush);
    let steps = last.map(|last| Steps::new((0..=last).map(instruction)));
    (last, steps)
}

/// Has QEMU call a hook before it executes an instruction.
///
/// # Safety
/// The instruction is valid.
unsafe fn execute(instruction: *mut qemu::Instruction, (hook, data): (qemu::ExecutionHook, u64)) {
    // SAFETY: the hook has the type that it is called with.
    unsafe {
        let data = data as *mut c_void;
        qemu::qemu_plugin_register_vcpu_insn_exec_cb(instruction, hook, qemu::NO_REGISTERS, data);
    }
}

/// Returns what is to be done when the instruction is, the one of this number in its block and of this site.
///
/// # Safety
/// The instruction is valid.
unsafe fn translates_instruction(
    instruction: *mut qemu::Instruction,
    (number, site): (u64, u32),
    is_before_flush: bool,
    reading: &mut Reading,
) -> Option<Afterwards> {
    // SAFETY: the caller's.
    let (bytes, address) =
        unsafe { (bytes_of(instruction), qemu::qemu_plugin_insn_vaddr(instruction)) };
    (of_guest().follow)(reading, bytes);
    let kind = (of_guest().kind)(bytes);
    let execute = |hook, data: u64| {
        // SAFETY: the caller's.
        unsafe { execute(instruction, (hook, data)) }
    };
    match kind {
        Kind::Flush(flush, None) => execute(flushes, flush_datum(number, flush, site)),
        Kind::Fence(fence) => execute(fences, fence_datum(fence, site)),
        Kind::Atomic if of_guest().atomics_fence => {
            execute(fences, fence_datum(Fence::Locked, site));
        }
        Kind::Marker(number) => execute(marks, number.into()),
        Kind::Pause => execute(pauses, 0),
        _ => {}
    }
    if let Some(function) = tracer().functions.at(address) {
        execute(enters, address << FUNCTION_BITS | u64::from(function));
    }
    if let Some(hook) = accesses::hook_before(kind) {
        execute(hook, 0);
    }
    let (hook, data) = accesses::hook(kind, number, (address, site), is_before_flush);
    // SAFETY: as before.
    unsafe {
        qemu::qemu_plugin_register_vcpu_mem_cb(
            instruction,
            hook,
            qemu::NO_REGISTERS,
            qemu::READS_AND_WRITES,
            data as *mut c_void,
        );
    }
    Afterwards::of(kind, number, site)
}

/// The hook of a block, by where the state of the guest's processor has the stack pointer.
fn block_hook() -> qemu::ExecutionHook {
    const fn with<const STACK: usize>() -> (usize, qemu::ExecutionHook) {
        (STACK, block_begins::<STACK>)
    }
    const HOOKS: [(usize, qemu::ExecutionHook); 2] =
        [with::<{ X86_64.registers.stack_at() }>(), with::<{ AARCH64.registers.stack_at() }>()];
    let at = of_guest().registers.stack_at();
    HOOKS.into_iter().find(|&(stack, _)| stack == at).expect("there is one for each guest").1
}

/// A translated block calls this. The state of the guest's processor is in the register that QEMU's code reserves for
/// it, which the functions between here and there leave alone: there are none.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn block_begins<const STACK: usize>(_vcpu: c_uint, _data: *mut c_void) {
    core::arch::naked_asm!(
        "mov rdx, rbp",
        "mov rcx, [rbp + 8 * {stack}]",
        "jmp {begins}",
        stack = const STACK,
        begins = sym begins
    )
}

#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn block_begins<const STACK: usize>(_vcpu: c_uint, _data: *mut c_void) {
    core::arch::naked_asm!(
        "mov x2, x19",
        "ldr x3, [x19, #8 * {stack}]",
        "b {begins}",
        stack = const STACK,
        begins = sym begins
    )
}

extern "C" fn begins(vcpu: c_uint, data: *const Block, state: *const u64, stack: u64) {
    // SAFETY: it was leaked when the block was translated.
    let &Block { address, instructions, ref flow, ending, last, ref steps } = unsafe { &*data };
    let (thread, registers) = (thread::thread(vcpu), Registers::at(state));
    thread.block(instructions, address, flow, registers, stack);
    thread.calls.block(stack, ending, last);
    if let Some(steps) = steps {
        thread.operands.begin(steps, registers);
    }
}

unsafe extern "C" fn enters(vcpu: c_uint, data: *mut c_void) {
    let thread = thread::thread(vcpu);
    if thread.has_registers() {
        let (function, address) =
            (data as u64 & ((1 << FUNCTION_BITS) - 1), data as u64 >> FUNCTION_BITS);
        let function = function as u32;
        thread.enters(function, address, tracer().functions.followed(function));
    }
}

unsafe extern "C" fn marks(vcpu: c_uint, number: *mut c_void) {
    markers::executed(thread::thread(vcpu), number as usize as u8);
}

/// The bits of a flush's number in its datum, above those of its instruction's number; above them, from bit 32 on, is its site.
const FLUSH_BITS: u32 = 16;

fn flush_datum(number: u64, flush: Flush, site: u32) -> u64 {
    number | (flush as u64) << FLUSH_BITS | u64::from(site) << 32
}

unsafe extern "C" fn flushes(vcpu: c_uint, data: *mut c_void) {
    let (thread, data) = (thread::thread(vcpu), data as u64);
    let number = data & ((1 << FLUSH_BITS) - 1);
    let flush = Flush::ALL[(data >> FLUSH_BITS & 0xffff) as usize];
    let address = thread.has_registers().then(|| thread.operands.address(number)).flatten();
    persistence::flushes(thread, (data >> 32) as u32, flush, address);
}

fn fence_datum(fence: Fence, site: u32) -> u64 {
    fence as u64 | u64::from(site) << 32
}

unsafe extern "C" fn fences(vcpu: c_uint, data: *mut c_void) {
    let (number, site) = (data as u64 & 0xffff, data as u64 >> 32);
    persistence::fences(thread::thread(vcpu), site as u32, Fence::ALL[number as usize]);
}

unsafe extern "C" fn pauses(vcpu: c_uint, _data: *mut c_void) {
    thread::thread(vcpu).gives_way();
}

extern "C" fn call_begins(
    _id: u64,
    vcpu: c_uint,
    number: i64,
    a1: u64,
    a2: u64,
    a3: u64,
    a4: u64,
    a5: u64,
    a6: u64,
    _a7: u64,
    _a8: u64,
) {
    let (call, arguments) = (of_guest().call(number), [a1, a2, a3, a4, a5, a6]);
    thread::thread(vcpu).test_registers(number, &arguments);
    match call {
        Some(Call::exit_group) => process_is_over(),
        _ => system_calls::begins(thread::thread(vcpu), call, arguments),
    }
}

extern "C" fn call_ends(_id: u64, vcpu: c_uint, number: i64, result: i64) {
    let call = of_guest().call(number);
    if system_calls::is_new_process(thread::thread(vcpu), call, result) {
        IS_UNTRACED.store(true, Ordering::Relaxed);
    }
    thread::take_turn(vcpu);
    system_calls::ends(thread::thread(vcpu), call, result);
}
