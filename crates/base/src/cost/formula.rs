//! Formulas over named quantities: parsed from text, written with names or with numbers, and evaluated.

/// A function of one quantity, or of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// Rounds up to a whole number.
    Ceil,
    /// Rounds down to a whole number.
    Floor,
    /// Counts the bits that distinguish the numbers from 0 to the argument.
    BitsFor,
    /// Takes the largest argument.
    Max,
    /// Takes the smallest argument.
    Min,
    /// Raises two to the power of the argument.
    PowerOfTwo,
    /// Raises the argument to the power of two thirds: the face of a cube of that volume.
    CubeFace,
}

const FUNCTIONS: [(&str, Function); 7] = [
    ("ceil", Function::Ceil),
    ("floor", Function::Floor),
    ("bits-for", Function::BitsFor),
    ("max", Function::Max),
    ("min", Function::Min),
    ("two-to-the", Function::PowerOfTwo),
    ("cube-face", Function::CubeFace),
];

impl Function {
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

/// Uses additions, multiplications and divisions alone: these are the same on every computer, and `powf` need not be.
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

/// An operator between two quantities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Adds.
    Plus,
    /// Subtracts.
    Minus,
    /// Multiplies.
    Times,
    /// Divides.
    Over,
}

impl Operator {
    fn parse(token: &str) -> Option<Operator> {
        match token {
            "+" => Some(Operator::Plus),
            "-" => Some(Operator::Minus),
            "*" => Some(Operator::Times),
            "/" => Some(Operator::Over),
            _ => None,
        }
    }

    fn sign(self) -> char {
        match self {
            Operator::Plus => '+',
            Operator::Minus => '-',
            Operator::Times => '×',
            Operator::Over => '/',
        }
    }

    fn of(self, left: f64, right: f64) -> f64 {
        match self {
            Operator::Plus => left + right,
            Operator::Minus => left - right,
            Operator::Times => left * right,
            Operator::Over => left / right,
        }
    }

    /// Rank by which operators bind: the higher, the closer.
    fn rank(self) -> u8 {
        if matches!(self, Operator::Plus | Operator::Minus) { 1 } else { 2 }
    }

    /// Rank that the right operand must have to stand without parentheses.
    fn rank_on_the_right(self) -> u8 {
        self.rank() + u8::from(matches!(self, Operator::Minus | Operator::Over))
    }
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Formula {
    /// A number that needs no name.
    Number(f64),
    /// A parameter (`SECTION.KEY`), a field's width, a constant of a model, or another item.
    Named(String, f64),
    /// Two operands.
    Binary(Operator, Box<(Formula, Formula)>),
    /// A function of its arguments.
    Call(Function, Vec<Formula>),
}

impl Formula {
    /// Parses a text in which `+`, `-`, `*`, `/` stand between spaces; `find` gives the meaning of a name.
    ///
    /// # Panics
    /// If the text is no formula, or `find` does not know a name: formulas are part of a design's source.
    pub fn parse(text: &str, find: &dyn Fn(&str) -> Option<Formula>) -> Formula {
        let spaced = text.replace('(', " ( ").replace(')', " ) ").replace(',', " , ");
        let tokens = spaced.split_whitespace().collect();
        let mut parser = Parser { text, tokens, next: 0, find };
        let formula = parser.expression(0);
        assert_eq!(parser.next, parser.tokens.len(), "{text}: more than a formula");
        formula
    }

    /// Returns the value of the formula.
    pub fn value(&self) -> f64 {
        match self {
            Formula::Number(value) | Formula::Named(_, value) => *value,
            Formula::Binary(operator, of) => operator.of(of.0.value(), of.1.value()),
            Formula::Call(function, of) => {
                function.of(&of.iter().map(Formula::value).collect::<Vec<_>>())
            }
        }
    }

    /// Writes the formula in terms of names.
    pub fn names(&self) -> String {
        self.text(0, true)
    }

    /// Writes the formula with numbers in place of names.
    pub fn numbers(&self) -> String {
        self.text(0, false)
    }

    /// Writes the formula, in parentheses if it binds less than `rank`.
    fn text(&self, rank: u8, names: bool) -> String {
        match self {
            Formula::Named(name, _) if names => name.clone(),
            Formula::Number(value) | Formula::Named(_, value) => number_text(*value),
            Formula::Binary(operator, of) => {
                let left = of.0.text(operator.rank(), names);
                let right = of.1.text(operator.rank_on_the_right(), names);
                let text = format!("{left} {} {right}", operator.sign());
                if operator.rank() < rank { format!("({text})") } else { text }
            }
            Formula::Call(function, of) => {
                let known = FUNCTIONS.iter().find(|(_, known)| known == function);
                let (name, _) = known.expect("every function is listed");
                let arguments: Vec<String> = of.iter().map(|part| part.text(0, names)).collect();
                format!("{name}({})", arguments.join(", "))
            }
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<&'a str>,
    next: usize,
    find: &'a dyn Fn(&str) -> Option<Formula>,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.next).copied()
    }

    fn take(&mut self) -> &'a str {
        let token = self.peek().unwrap_or_else(|| panic!("{}: the formula ends early", self.text));
        self.next += 1;
        token
    }

    /// Parses operands as long as the operators between them bind closer than `rank`.
    fn expression(&mut self, rank: u8) -> Formula {
        let mut left = self.operand();
        while let Some(operator) = self.peek().and_then(Operator::parse)
            && operator.rank() > rank
        {
            self.next += 1;
            let right = self.expression(operator.rank());
            left = Formula::Binary(operator, Box::new((left, right)));
        }
        left
    }

    fn operand(&mut self) -> Formula {
        let token = self.take();
        if token == "(" {
            let [inner] = <[Formula; 1]>::try_from(self.until_closed())
                .unwrap_or_else(|_| panic!("{}: a list is no operand", self.text));
            return inner;
        }
        if let Ok(number) = token.parse() {
            return Formula::Number(number);
        }
        if let Some((_, function)) = FUNCTIONS.iter().find(|(name, _)| *name == token) {
            assert_eq!(self.take(), "(", "{}: {token} has no argument", self.text);
            return Formula::Call(*function, self.until_closed());
        }
        (self.find)(token).unwrap_or_else(|| panic!("{}: there is no {token}", self.text))
    }

    /// Parses expressions between commas, and the parenthesis after them.
    fn until_closed(&mut self) -> Vec<Formula> {
        let mut list = vec![self.expression(0)];
        loop {
            match self.take() {
                ")" => return list,
                "," => list.push(self.expression(0)),
                other => panic!("{}: {other} is no operator", self.text),
            }
        }
    }
}

/// Turns a count into a number that formulas calculate with.
///
/// # Panics
/// If it is larger than the largest exactly represented number (2^53).
pub fn whole(value: u64) -> f64 {
    assert!(value <= 1 << 53, "{value} cannot be told from its neighbours");
    value as f64
}

/// Writes a number for people: whole, or with six significant digits.
pub fn number_text(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    let rounded: f64 = format!("{value:.5e}").parse().expect("what is written as a number is one");
    if rounded.abs() < 1e-3 { format!("{rounded:e}") } else { rounded.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formula(text: &str) -> Formula {
        let known = [("n", 16), ("head", 74), ("a", 1), ("b", 2), ("c", 6), ("d", 8)];
        Formula::parse(text, &|name| {
            let (name, value) = known.iter().find(|(known, _)| *known == name)?;
            Some(Formula::Named((*name).into(), whole(*value)))
        })
    }

    #[test]
    fn one_expression_is_two_texts_and_a_value() {
        let formula = formula("n * (head + 64 * 2) / 8");
        assert_eq!(formula.names(), "n × (head + 64 × 2) / 8");
        assert_eq!(formula.numbers(), "16 × (74 + 64 × 2) / 8");
        assert_eq!(formula.value(), 404.0);
    }

    #[test]
    fn what_binds_less_stands_in_parentheses() {
        for (text, names, value) in [
            ("c / (a + b)", "c / (a + b)", 2.0),
            ("c / (a * 2)", "c / (a × 2)", 3.0),
            ("c / 3 / 2", "c / 3 / 2", 1.0),
            ("((a + b)) * 3 + 1", "(a + b) × 3 + 1", 10.0),
            ("c * (a / 2)", "c × a / 2", 3.0),
            ("d / (c / 3)", "d / (c / 3)", 4.0),
            ("d - (a + b)", "d - (a + b)", 5.0),
            ("d - a - 2", "d - a - 2", 5.0),
            ("(d - 1) * 2", "(d - 1) × 2", 14.0),
            ("ceil(a + b / 8) * 2", "ceil(a + b / 8) × 2", 4.0),
            ("min(a + b, d)", "min(a + b, d)", 3.0),
        ] {
            assert_eq!((formula(text).names(), formula(text).value()), (names.into(), value));
        }
    }

    #[test]
    fn a_text_that_is_no_formula_is_refused() {
        for text in ["", "a +", "a b", "(a, b)", "(a", "ceil a", "a + e", "a+b"] {
            let parsed = std::panic::catch_unwind(|| formula(text));
            assert!(parsed.is_err(), "{text}: {parsed:?}");
        }
    }

    #[test]
    fn functions_are_what_they_are_called() {
        let of = |function: &str, value: f64| formula(&format!("{function}({value})")).value();
        assert_eq!((of("ceil", 25.125), of("floor", 14.2)), (26.0, 14.0));
        let bits = [0.0, 1.0, 7.0, 8.0, 511.0, 512.0].map(|n| of("bits-for", n));
        assert_eq!(bits, [0.0, 1.0, 3.0, 4.0, 9.0, 10.0]);
        assert_eq!(of("two-to-the", 40.0), 1_099_511_627_776.0);
        assert_eq!(formula("max(a, d, c)").value(), 8.0);
        for volume in [1e-9_f64, 0.0017, 0.54, 1.0, 8.0, 151.0, 1e9] {
            let face = of("cube-face", volume);
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
