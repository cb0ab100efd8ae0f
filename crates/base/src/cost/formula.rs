//! Formulas over named quantities: one expression is the text with names, the text with numbers, and the value.

use std::ops::{Add, Div, Mul, Sub};

/// A named function of one quantity, or of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// The next whole number.
    Ceil,
    /// The whole number before.
    Floor,
    /// Bits that distinguish the numbers from 0 up to this one.
    BitsFor,
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// Two to the power.
    PowerOfTwo,
    /// The power of two thirds: from a volume to the face of the cube.
    CubeFace,
}

impl Function {
    fn name(self) -> &'static str {
        match self {
            Function::Ceil => "ceil",
            Function::Floor => "floor",
            Function::BitsFor => "bits-for",
            Function::Max => "max",
            Function::Min => "min",
            Function::PowerOfTwo => "two-to-the",
            Function::CubeFace => "cube-face",
        }
    }

    fn of(self, values: &[f64]) -> f64 {
        let first = values[0];
        match self {
            Function::Ceil => first.ceil(),
            Function::Floor => first.floor(),
            Function::BitsFor => f64::from(u64::BITS - (first as u64).leading_zeros()),
            Function::Max => values.iter().copied().fold(first, f64::max),
            Function::Min => values.iter().copied().fold(first, f64::min),
            Function::PowerOfTwo => (1u128 << first as u32) as f64,
            Function::CubeFace => {
                let edge = cube_root(first);
                edge * edge
            }
        }
    }
}

/// By additions, multiplications and divisions alone: these are the same on every computer, and `powf` need not be.
fn cube_root(of: f64) -> f64 {
    if of <= 0.0 {
        return 0.0;
    }
    let mut root = of.max(1.0);
    loop {
        let next = (2.0 * root + of / (root * root)) / 3.0;
        // From above, so that it falls until it is the root, to the last bit.
        if next >= root {
            return root;
        }
        root = next;
    }
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Formula {
    /// A number that needs no name.
    Number(f64),
    /// A parameter (`SECTION.KEY`), a field's width, a constant of a model, or another item.
    Named(String, f64),
    /// All of them together.
    Sum(Vec<Formula>),
    /// The first less the second.
    Difference(Box<(Formula, Formula)>),
    /// One times the other.
    Product(Vec<Formula>),
    /// The first by the second.
    Quotient(Box<(Formula, Formula)>),
    /// A function of them.
    Call(Function, Vec<Formula>),
}

impl Formula {
    /// A quantity with a name.
    pub fn named(name: impl Into<String>, value: impl Into<f64>) -> Formula {
        Formula::Named(name.into(), value.into())
    }

    /// A width, a count or a size that code lays out by.
    ///
    /// # Panics
    /// If it is larger than the largest exactly represented number (2^53).
    pub fn constant(name: &str, value: u64) -> Formula {
        Formula::named(name, whole(value))
    }

    /// A function of this.
    #[must_use]
    pub fn call(self, function: Function) -> Formula {
        Formula::Call(function, vec![self])
    }

    /// The next whole number.
    #[must_use]
    pub fn ceil(self) -> Formula {
        self.call(Function::Ceil)
    }

    /// What it amounts to.
    pub fn value(&self) -> f64 {
        match self {
            Formula::Number(value) | Formula::Named(_, value) => *value,
            Formula::Sum(parts) => parts.iter().map(Formula::value).sum(),
            Formula::Difference(parts) => parts.0.value() - parts.1.value(),
            Formula::Product(parts) => parts.iter().map(Formula::value).product(),
            Formula::Quotient(parts) => parts.0.value() / parts.1.value(),
            Formula::Call(function, of) => {
                function.of(&of.iter().map(Formula::value).collect::<Vec<_>>())
            }
        }
    }

    /// In terms of names.
    pub fn names(&self) -> String {
        self.text(true)
    }

    /// The same with numbers.
    pub fn numbers(&self) -> String {
        self.text(false)
    }

    /// Names and values of all that it is made of.
    pub fn quantities(&self) -> Vec<(&str, f64)> {
        match self {
            Formula::Number(_) => Vec::new(),
            Formula::Named(name, value) => vec![(name, *value)],
            Formula::Sum(of) | Formula::Product(of) | Formula::Call(_, of) => {
                of.iter().flat_map(Formula::quantities).collect()
            }
            Formula::Difference(of) | Formula::Quotient(of) => {
                [&of.0, &of.1].into_iter().flat_map(Formula::quantities).collect()
            }
        }
    }

    fn text(&self, names: bool) -> String {
        let join = |parts: &[Formula], by: &str, within: u8| {
            let texts: Vec<String> = parts.iter().map(|p| p.text_within(within, names)).collect();
            texts.join(by)
        };
        match self {
            Formula::Named(name, _) if names => name.clone(),
            Formula::Number(value) | Formula::Named(_, value) => number_text(*value),
            Formula::Sum(parts) => join(parts, " + ", 1),
            Formula::Difference(parts) => {
                let (from, less) = (parts.0.text_within(1, names), parts.1.text_within(2, names));
                format!("{from} - {less}")
            }
            Formula::Product(parts) => join(parts, " × ", 2),
            Formula::Quotient(parts) => {
                let (above, below) = (parts.0.text_within(2, names), parts.1.text_within(3, names));
                format!("{above} / {below}")
            }
            Formula::Call(function, of) => format!("{}({})", function.name(), join(of, ", ", 0)),
        }
    }

    /// In parentheses, if it binds less than what is around it.
    fn text_within(&self, around: u8, names: bool) -> String {
        let binds = match self {
            Formula::Sum(parts) if parts.len() > 1 => 1,
            Formula::Product(parts) if parts.len() > 1 => 2,
            Formula::Difference(_) => 1,
            Formula::Quotient(_) => 2,
            _ => 4,
        };
        let text = self.text(names);
        if binds < around { format!("({text})") } else { text }
    }
}

/// A count as a number that formulas calculate with.
///
/// # Panics
/// If it is larger than the largest exactly represented number (2^53).
pub fn whole(value: u64) -> f64 {
    assert!(value <= 1 << 53, "{value} cannot be told from its neighbours");
    value as f64
}

/// A number for people: whole, or with six digits that count.
pub fn number_text(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    let rounded: f64 = format!("{value:.5e}").parse().expect("what is written as a number is one");
    if rounded.abs() < 1e-3 { format!("{rounded:e}") } else { rounded.to_string() }
}

impl From<u64> for Formula {
    fn from(value: u64) -> Formula {
        Formula::Number(whole(value))
    }
}

impl From<f64> for Formula {
    fn from(value: f64) -> Formula {
        Formula::Number(value)
    }
}

impl<T: Into<Formula>> Add<T> for Formula {
    type Output = Formula;
    fn add(self, other: T) -> Formula {
        match (self, other.into()) {
            (Formula::Sum(mut parts), other) => {
                parts.push(other);
                Formula::Sum(parts)
            }
            (one, other) => Formula::Sum(vec![one, other]),
        }
    }
}

impl<T: Into<Formula>> Sub<T> for Formula {
    type Output = Formula;
    fn sub(self, other: T) -> Formula {
        Formula::Difference(Box::new((self, other.into())))
    }
}

impl<T: Into<Formula>> Mul<T> for Formula {
    type Output = Formula;
    fn mul(self, other: T) -> Formula {
        match (self, other.into()) {
            (Formula::Product(mut parts), other) => {
                parts.push(other);
                Formula::Product(parts)
            }
            (one, other) => Formula::Product(vec![one, other]),
        }
    }
}

impl<T: Into<Formula>> Div<T> for Formula {
    type Output = Formula;
    fn div(self, other: T) -> Formula {
        Formula::Quotient(Box::new((self, other.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, value: u64) -> Formula {
        Formula::constant(name, value)
    }

    #[test]
    fn one_expression_is_two_texts_and_a_value() {
        let formula = named("n", 16) * (named("head", 74) + 64 * 2) / 8;
        assert_eq!(formula.names(), "n × (head + 128) / 8");
        assert_eq!(formula.numbers(), "16 × (74 + 128) / 8");
        assert_eq!(formula.value(), 404.0);
        assert_eq!(formula.quantities(), [("n", 16.0), ("head", 74.0)]);
    }

    #[test]
    fn what_binds_less_stands_in_parentheses() {
        let sum = named("a", 1) + named("b", 2);
        assert_eq!((named("c", 6) / sum.clone()).names(), "c / (a + b)");
        assert_eq!((named("c", 6) / (named("a", 1) * 2)).names(), "c / (a × 2)");
        assert_eq!((named("c", 6) / 3 / 2).names(), "c / 3 / 2");
        assert_eq!((sum.clone() * 3 + 1).names(), "(a + b) × 3 + 1");
        assert_eq!((named("c", 6) * (named("a", 1) / 2)).names(), "c × a / 2");
        assert_eq!((named("d", 8) / (named("a", 6) / 3)).value(), 4.0);
        assert_eq!((named("d", 8) / (named("a", 6) / 3)).names(), "d / (a / 3)");
        assert_eq!((named("d", 8) - sum.clone()).names(), "d - (a + b)");
        assert_eq!((named("d", 8) - named("a", 1) - 2).value(), 5.0);
        assert_eq!(((named("d", 8) - 1) * 2).names(), "(d - 1) × 2");
        assert_eq!((sum.ceil() * 2).numbers(), "ceil(1 + 2) × 2");
    }

    #[test]
    fn functions_are_what_they_are_called() {
        let of = |function, value: f64| Formula::from(value).call(function).value();
        assert_eq!((of(Function::Ceil, 25.125), of(Function::Floor, 14.2)), (26.0, 14.0));
        let bits = [0.0, 1.0, 7.0, 8.0, 511.0, 512.0].map(|n| of(Function::BitsFor, n));
        assert_eq!(bits, [0.0, 1.0, 3.0, 4.0, 9.0, 10.0]);
        assert_eq!(of(Function::PowerOfTwo, 40.0), 1_099_511_627_776.0);
        for volume in [1e-9_f64, 0.0017, 0.54, 1.0, 8.0, 151.0, 1e9] {
            let face = of(Function::CubeFace, volume);
            assert!((face / volume.powf(2.0 / 3.0) - 1.0).abs() < 1e-12, "{volume}: {face}");
        }
    }

    #[test]
    fn numbers_have_six_digits_at_most() {
        let texts =
            [680.0, 61.080_32, 0.169_667_555, 0.000_212_084, 1e-4, 10_496.0, 0.0].map(number_text);
        assert_eq!(texts, ["680", "61.0803", "0.169668", "2.12084e-4", "1e-4", "10496", "0"]);
    }
}
