//! The tokens of one line, and where they stand.

use std::ops::RangeInclusive;

use thiserror::Error;

/// The length of an offending text in a message.
const SHOWN_CHARS: usize = 40;

/// A litmus program was refused. The message says what is wrong and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ParseError {
    /// Number of the line, from 1.
    pub line: u32,
    /// Number of the character in its line, from 1.
    pub column: u32,
    /// The error, and the accepted texts.
    pub message: String,
}

/// A position in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the line, from 1.
    pub line: u32,
    /// Number of the character in its line, from 1.
    pub column: u32,
}

impl Place {
    /// The end of a text: behind its last line.
    pub fn end_of(text: &str) -> Place {
        let last = (1..).zip(text.lines()).last();
        let (line, text) = last.unwrap_or((1, ""));
        Place { line, column: 1 }.after(text)
    }

    /// An error here.
    pub fn error(self, message: impl Into<String>) -> ParseError {
        ParseError { line: self.line, column: self.column, message: message.into() }
    }

    /// The position behind a text that begins here.
    fn after(self, text: &str) -> Place {
        Place { column: self.column + text.chars().count() as u32, ..self }
    }
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A letter or `_`, then letters, digits, `_` and `-`.
    Name,
    /// A digit, then letters, digits and `_`; whether that is a number is seen when one is wanted.
    Number,
    /// Between quotes, which are part of it.
    Quoted,
    /// A quote with none that closes, and all that follows.
    Unclosed,
    /// Any other character.
    Sign,
    /// Nothing more, or a comment.
    End,
}

/// A token of a line.
#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    /// The kind.
    pub kind: Kind,
    /// The characters.
    pub text: &'a str,
    /// The beginning; an end is where the token before it ends.
    pub place: Place,
}

impl Token<'_> {
    /// The error that something else should be here.
    pub fn instead_of(&self, expected: &str) -> ParseError {
        self.place.error(format!("expected {expected}, found {}", self.shown()))
    }

    /// The token for a message.
    pub fn shown(&self) -> String {
        if self.kind == Kind::End {
            return "the end of the line".into();
        }
        let mut shown: String = self
            .text
            .chars()
            .take(SHOWN_CHARS)
            .map(|c| if c.is_control() { '�' } else { c })
            .collect();
        if self.text.chars().nth(SHOWN_CHARS).is_some() {
            shown.push('…');
        }
        format!("`{shown}`")
    }

    /// The error that this is not `what`, and what would be.
    pub fn refused_as(&self, what: &str, allowed: &str) -> ParseError {
        match self.kind {
            Kind::End => self.instead_of(what),
            _ => self.place.error(format!("{} is not {what}; allowed are {allowed}", self.shown())),
        }
    }
}

/// The rest of a line, and its place.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    rest: &'a str,
    place: Place,
}

impl<'a> Line<'a> {
    /// Line number `number`.
    pub fn new(number: u32, text: &'a str) -> Self {
        Self { rest: text, place: Place { line: number, column: 1 } }
    }

    /// The next token, left where it is.
    pub fn peek(&self) -> Token<'a> {
        let mut ahead = *self;
        ahead.next()
    }

    /// The next token.
    pub fn next(&mut self) -> Token<'a> {
        let end = self.place;
        self.advance(self.rest.len() - self.rest.trim_start().len());
        let place = self.place;
        let (kind, length) = next_token(self.rest);
        let text = self.advance(length);
        Token { kind, text, place: if kind == Kind::End { end } else { place } }
    }

    /// Tells whether nothing but a comment is left.
    pub fn is_blank(&self) -> bool {
        self.peek().kind == Kind::End
    }

    /// Tells whether what is left begins with the name of a word and `=` or `[`, as stores and definitions do.
    pub fn is_assignment(&self) -> bool {
        let mut ahead = *self;
        ahead.next().kind == Kind::Name && matches!(ahead.next().text, "=" | "[")
    }

    /// Takes a token if it is next.
    pub fn take(&mut self, text: &str) -> bool {
        let found = self.peek().text == text;
        if found {
            self.next();
        }
        found
    }

    /// A sign that must be next.
    pub fn sign(&mut self, sign: &str) -> Result<(), ParseError> {
        let token = self.next();
        if token.text == sign { Ok(()) } else { Err(token.instead_of(&format!("`{sign}`"))) }
    }

    /// A name that must be next.
    pub fn name(&mut self, what: &str) -> Result<Token<'a>, ParseError> {
        let token = self.next();
        if token.kind == Kind::Name { Ok(token) } else { Err(token.instead_of(what)) }
    }

    /// A number that must be next. `what` is what it counts or names.
    pub fn number(&mut self, what: &str, range: RangeInclusive<u64>) -> Result<u64, ParseError> {
        let token = self.next();
        if token.kind != Kind::Number {
            return Err(token.instead_of(&format!("{what}, a number")));
        }
        let (digits, radix) = digits(token.text);
        let digits = digits.replace('_', "");
        if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
            let allowed = "decimal digits, hexadecimal ones after 0x and binary ones after 0b, with _ between them";
            return Err(token.refused_as("a number", allowed));
        }
        // The digits are right: what cannot be read is too large.
        match u64::from_str_radix(&digits, radix) {
            Ok(number) if range.contains(&number) => Ok(number),
            _ => Err(token.place.error(format!(
                "{} is out of range; {what} is a number from {} to {}",
                token.shown(),
                range.start(),
                range.end()
            ))),
        }
    }

    /// A text in quotes that must be next, without them.
    pub fn quoted(&mut self, what: &str) -> Result<String, ParseError> {
        let token = self.next();
        match token.kind {
            Kind::Quoted => unescaped(token),
            Kind::Unclosed => Err(unclosed(token)),
            _ => Err(token.instead_of(what)),
        }
    }

    /// All that is left but a comment, as it is written.
    pub fn raw(&mut self, what: &str) -> Result<&'a str, ParseError> {
        let all = self.rest;
        let mut token = self.next();
        if token.kind == Kind::End {
            return Err(token.instead_of(what));
        }
        while token.kind != Kind::End {
            if token.kind == Kind::Unclosed {
                return Err(unclosed(token));
            }
            token = self.next();
        }
        Ok(all[..all.len() - self.rest.len()].trim())
    }

    /// Nothing may follow.
    pub fn end(&self) -> Result<(), ParseError> {
        let token = self.peek();
        if token.kind == Kind::End { Ok(()) } else { Err(token.instead_of("the end of the line")) }
    }

    /// Continues by `bytes`, which are returned.
    fn advance(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        self.place = self.place.after(taken);
        taken
    }
}

/// The kind and the length of the first token of a text that does not begin with white space.
fn next_token(text: &str) -> (Kind, usize) {
    let Some(first) = text.chars().next() else { return (Kind::End, 0) };
    let run =
        |belongs: fn(u8) -> bool| text.bytes().position(|b| !belongs(b)).unwrap_or(text.len());
    match first {
        '#' => (Kind::End, 0),
        '"' => match closing_quote(text) {
            Some(at) => (Kind::Quoted, at + 1),
            None => (Kind::Unclosed, text.trim_end().len()),
        },
        'a'..='z' | 'A'..='Z' | '_' => {
            (Kind::Name, run(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'))
        }
        '0'..='9' => (Kind::Number, run(|b| b.is_ascii_alphanumeric() || b == b'_')),
        other => (Kind::Sign, other.len_utf8()),
    }
}

/// The closing quote of a text that begins with one.
fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().enumerate().skip(1).find_map(|(at, byte)| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes.then_some(at)
    })
}

fn unclosed(token: Token<'_>) -> ParseError {
    token.place.error("the text that begins here is not closed; a `\"` must end it in this line")
}

/// A token in quotes as the text that it stands for.
fn unescaped(token: Token<'_>) -> Result<String, ParseError> {
    let mut text = String::new();
    let mut place = token.place;
    let mut chars = token.text[1..token.text.len() - 1].chars();
    while let Some(char) = chars.next() {
        place.column += 1;
        if char != '\\' {
            text.push(char);
            continue;
        }
        // The closing quote is not escaped, so something follows.
        let escaped = chars.next().unwrap_or_default();
        if !matches!(escaped, '"' | '\\') {
            let message = format!("`\\{escaped}` is not an escape; allowed are `\\\"` and `\\\\`");
            return Err(place.error(message));
        }
        text.push(escaped);
        place.column += 1;
    }
    Ok(text)
}

/// The digits of a number and their radix.
fn digits(text: &str) -> (&str, u32) {
    let prefixed = |prefix| text.strip_prefix(prefix);
    match (prefixed("0x"), prefixed("0b")) {
        (Some(digits), _) => (digits, 16),
        (_, Some(digits)) => (digits, 2),
        _ => (text, 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_stand_where_they_stand() {
        let mut line = Line::new(3, "  A-1[0x2]=\"ä # \\\"b\"é  # the end");
        let mut tokens = Vec::new();
        while !line.is_blank() {
            let token = line.next();
            assert_eq!(token.place.line, 3);
            tokens.push((token.kind, token.text, token.place.column));
        }
        let expected = [
            (Kind::Name, "A-1", 3),
            (Kind::Sign, "[", 6),
            (Kind::Number, "0x2", 7),
            (Kind::Sign, "]", 10),
            (Kind::Sign, "=", 11),
            (Kind::Quoted, "\"ä # \\\"b\"", 12),
            (Kind::Sign, "é", 21),
        ];
        assert_eq!(tokens, expected);
        assert_eq!(line.next().place.column, 22, "the end is behind the last token");
    }

    #[test]
    fn numbers_of_every_spelling() {
        for (text, number) in [
            ("0", 0),
            ("007", 7),
            ("1_000", 1000),
            ("0xdead_BEEF", 0xdead_beef),
            ("0b1010_1", 21),
            ("18_446_744_073_709_551_615", u64::MAX),
            ("0x000_00000_00000_ffff", 0xffff),
        ] {
            assert_eq!(Line::new(1, text).number("it", 0..=u64::MAX), Ok(number), "{text}");
        }
        for wrong in ["0x", "0b_", "0b2", "1a", "0X5", "-1", "_1", "18446744073709551616"] {
            assert!(Line::new(1, wrong).number("it", 0..=u64::MAX).is_err(), "{wrong}");
        }
    }

    #[test]
    fn texts_end_at_a_quote_that_is_not_escaped() {
        let quoted = |text| Line::new(1, text).quoted("a text");
        assert_eq!(quoted(r#""a \"b\" \\" # c"#).as_deref(), Ok(r#"a "b" \"#));
        assert!(quoted(r#""a \""#).is_err());
        assert_eq!(Line::new(1, r##" "#" + 2  # c"##).raw("a value"), Ok(r##""#" + 2"##));
    }
}
