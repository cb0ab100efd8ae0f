//! A thread's stack of calls: which call instructions have led to what it executes.
//!
//! A block that ends with a call leaves a frame with the site of the call and the stack pointer with which the called function
//! begins. Frames whose part of the stack is given back are gone: a return takes away its own, and those of functions that a jump
//! over them has left (exceptions, longjmp) with it. Frames on another stack (signals, coroutines) stay until the thread is back on
//! theirs. Calls deeper than [`FRAMES_MAX`] count as part of the innermost frame.
//!
//! The stream has only what has changed since the last record that needed it, so that calls without any access to persistent memory
//! cost nothing there.

use graven_capture::CALLS_MAX;

use crate::architecture::of_guest;
use crate::instruction::Ending;

/// Most frames.
const FRAMES_MAX: usize = 256;

/// On another stack, a frame may be as far away as this, and not more.
const STACK_BYTES: u64 = 64 << 20;

/// A call that has not returned.
#[derive(Clone, Copy, Default)]
struct Frame {
    site: u32,
    /// The stack pointer when the called function begins.
    stack: u64,
}

/// The calls of a thread.
pub struct Calls {
    frames: Box<[Frame; FRAMES_MAX]>,
    depth: usize,
    /// Number of frames that the stream has; the first `kept` of them have not returned since.
    told: usize,
    kept: usize,
    /// The end of the block before, and the site of its last instruction.
    ending: Ending,
    site: u32,
    /// A function that has returned leaves the stack pointer below this distance from its frame's: 0, or 1 where a call pushes
    /// nothing.
    slack: u64,
}

impl Default for Calls {
    fn default() -> Calls {
        Calls::with_slack(u64::from(of_guest().registers.link.is_some()))
    }
}

impl Calls {
    fn with_slack(slack: u64) -> Calls {
        Calls {
            frames: Box::new([Frame::default(); FRAMES_MAX]),
            depth: 0,
            told: 0,
            kept: 0,
            ending: Ending::Other,
            site: 0,
            slack,
        }
    }

    /// Returns the site of the last instruction of the present block.
    #[inline]
    pub fn last_site(&self) -> u32 {
        self.site
    }

    /// A block begins with this stack pointer; it ends so, with the instruction of this site.
    #[inline]
    pub fn block(&mut self, stack: u64, ending: Ending, site: u32) {
        if self.ending != Ending::Other {
            self.moves(stack);
        }
        (self.ending, self.site) = (ending, site);
    }

    fn moves(&mut self, stack: u64) {
        let is_call = self.ending == Ending::Call;
        let above = stack + if is_call { 1 } else { self.slack };
        while let Some(last) = self.depth.checked_sub(1) {
            let frame = self.frames[last].stack;
            if frame >= above || above - frame > STACK_BYTES {
                break;
            }
            self.depth = last;
        }
        self.kept = self.kept.min(self.depth);
        if is_call && self.depth < FRAMES_MAX {
            self.frames[self.depth] = Frame { site: self.site, stack };
            self.depth += 1;
        }
    }

    /// Tells whether the stream has another stack than this.
    #[inline]
    pub fn is_changed(&self) -> bool {
        self.depth != self.told || self.kept != self.told
    }

    /// Tells `put` how many calls are left, and the sites of those that are entered then; more often where they are many.
    pub fn tell(&mut self, mut put: impl FnMut(u64, &mut dyn ExactSizeIterator<Item = u32>)) {
        let mut left = (self.told - self.kept) as u64;
        loop {
            let piece = &self.frames[self.kept..self.depth];
            let piece = &piece[..piece.len().min(CALLS_MAX)];
            put(left, &mut piece.iter().map(|frame| frame.site));
            self.kept += piece.len();
            left = 0;
            if self.kept == self.depth {
                break;
            }
        }
        self.told = self.depth;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stack that a stream has.
    fn follow(calls: &mut Calls, known: &mut Vec<u32>) {
        if calls.is_changed() {
            calls.tell(|left, entered| {
                known.truncate(known.len() - left as usize);
                known.extend(entered);
            });
        }
    }

    #[test]
    fn the_stream_follows_calls_and_returns() {
        let (mut calls, mut known) = (Calls::with_slack(0), Vec::new());
        calls.block(1000, Ending::Call, 1);
        calls.block(992, Ending::Call, 2);
        calls.block(900, Ending::Return, 3);
        follow(&mut calls, &mut known);
        assert_eq!(known, [1, 2]);
        // Back in the first function, which calls again.
        calls.block(908, Ending::Call, 4);
        calls.block(960, Ending::Other, 5);
        follow(&mut calls, &mut known);
        assert_eq!(known, [1, 4]);
        assert!(!calls.is_changed());
    }

    #[test]
    fn a_jump_over_functions_leaves_them() {
        let (mut calls, mut known) = (Calls::with_slack(0), Vec::new());
        for depth in 0..5 {
            calls.block(1000 - 16 * depth, Ending::Call, depth as u32);
        }
        calls.block(900, Ending::Other, 9);
        follow(&mut calls, &mut known);
        assert_eq!(known, [0, 1, 2, 3, 4]);
        // longjmp to the outermost function, which calls something else.
        calls.block(1000, Ending::Call, 7);
        calls.block(984, Ending::Other, 8);
        follow(&mut calls, &mut known);
        assert_eq!(known, [7]);
    }

    #[test]
    fn deep_recursion_is_cut_and_comes_back() {
        let (mut calls, mut known) = (Calls::with_slack(0), Vec::new());
        let all = FRAMES_MAX as u64 + 100;
        for depth in 0..=all {
            calls.block(100_000 - 16 * depth, Ending::Call, depth as u32);
        }
        follow(&mut calls, &mut known);
        assert_eq!(known.len(), FRAMES_MAX);
        calls.block(1, Ending::Return, 0);
        for depth in (1..=all).rev() {
            calls.block(100_000 - 16 * depth + 8, Ending::Return, 0);
        }
        follow(&mut calls, &mut known);
        assert_eq!(known, [0u32; 0]);
    }
}
