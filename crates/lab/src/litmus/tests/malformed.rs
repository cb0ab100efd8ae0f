//! Refusals of programs that are malformed: where, and in which words.

use super::*;

/// Programs and their refusals, in the format that the file explains.
const REFUSED: &str = include_str!("malformed.txt");

/// Reads the cases of [`REFUSED`]: the text of a program, and its refusal.
fn cases() -> impl Iterator<Item = (String, String)> {
    let mut lines = REFUSED.lines();
    std::iter::from_fn(move || {
        let around = lines.find(|line| !line.is_empty() && !line.starts_with('#'))?;
        let mut text: Vec<&str> = Vec::new();
        let refusal = loop {
            let line = lines.next().expect("a case ends with its refusal");
            match line.strip_prefix("-> ") {
                Some(refusal) => break refusal,
                None => text.push(line),
            }
        };
        let text = text.join("\n");
        let text = match around {
            "whole" => text,
            "program" => program(&text),
            "thread" => thread(&text),
            "sequence" => in_order(&text),
            other => panic!("`{other}` is around no program"),
        };
        let (place, message) = refusal.split_once(' ').expect("a place and a message");
        let (line, column) = place.split_once(':').expect("a line and a column");
        Some((text, format!("line {line}, column {column}: {message}")))
    })
}

/// Cases whose texts are long, or end with spaces.
fn generated() -> [(String, String); 4] {
    let many_words: String = (10..24).map(|n| format!("V{n} = 0\n")).collect();
    let cases = [
        (
            "# graven\n  \n".into(),
            "line 2, column 3: expected `graven litmus 1`, found the end of the text",
        ),
        (
            program(&"thread\n".repeat(65)),
            "line 67, column 1: one thread too many; a program has at most 64",
        ),
        (
            program(&format!("machine \"{}\"", "ä".repeat(50))),
            "line 3, column 9: expected the name of a machine, found `\"äääääääääääääääääääääääääääääääääääääää…`",
        ),
        (
            program(&format!("{many_words}thread\nload D")),
            "line 18, column 6: `D` is not a variable; defined are V10, V11, V12, V13, V14, V15, V16, V17, V18, V19, V20, V21 and 2 more",
        ),
    ];
    cases.map(|(text, refusal)| (text, refusal.into()))
}

#[test]
fn it_refuses_what_is_malformed() {
    let wrong: Vec<String> = cases()
        .chain(generated())
        .filter_map(|(text, expected)| match parse(&text) {
            Err(error) if error.to_string() == expected => None,
            found => Some(format!("{text}\nexpected {expected}\nfound    {found:?}")),
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
