//! A program that executes more instructions, or fewer, between its accesses to memory (`workload.compute_scale`).

use crate::program::{Op, Program};

/// A program whose computations are scaled; what is lost to rounding is made up for by the next.
pub struct Scaled {
    program: Box<dyn Program>,
    scale: f64,
    /// Part of an instruction that is still owed.
    rest: f64,
}

impl Scaled {
    /// The program as it is, or scaled.
    pub fn of(program: Box<dyn Program>, scale: f64) -> Box<dyn Program> {
        if scale == 1.0 { program } else { Box::new(Scaled { program, scale, rest: 0.0 }) }
    }
}

impl Program for Scaled {
    fn next(&mut self, value: u64) -> Op {
        let mut op = self.program.next(value);
        while let Op::Compute { instructions } = op {
            let wanted = f64::from(instructions) * self.scale + self.rest;
            let scaled = wanted.floor().min(f64::from(u32::MAX));
            self.rest = wanted - scaled;
            if scaled > 0.0 {
                return Op::Compute { instructions: scaled as u32 };
            }
            op = self.program.next(0);
        }
        op
    }

    fn step(&self) -> Option<usize> {
        self.program.step()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Program of these computations, then the end.
    struct Computes(Vec<u32>);

    impl Program for Computes {
        fn next(&mut self, _: u64) -> Op {
            self.0.pop().map_or(Op::Done, |instructions| Op::Compute { instructions })
        }
    }

    fn executed(computations: &[u32], scale: f64) -> Vec<u32> {
        let inner = Computes(computations.iter().rev().copied().collect());
        let mut program = Scaled::of(Box::new(inner), scale);
        let mut found = Vec::new();
        while let Op::Compute { instructions } = program.next(0) {
            found.push(instructions);
        }
        found
    }

    #[test]
    fn computations_are_scaled_and_nothing_is_lost_to_rounding() {
        assert_eq!(executed(&[3, 5], 1.0), [3, 5]);
        assert_eq!(executed(&[3, 5], 10.0), [30, 50]);
        assert_eq!(executed(&[1, 1, 1, 1, 1], 0.5), [1, 1], "each second one");
        assert_eq!(executed(&[1; 8], 1.25).iter().sum::<u32>(), 10);
    }
}
