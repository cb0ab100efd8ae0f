"""Rules of prose, and the findings that they give on a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

COLUMNS = 100
"""Longest line of Markdown."""

WIDTH, FIRST_WORD, PHRASE = "width", "first-word", "phrase"
"""Names of the rules."""

FIRST_WORDS = re.compile(r"(what|whether|where|of|its|it|which|how)\b", re.IGNORECASE)
"""Words that no description begins with: they describe a thing in place of naming it."""

CLAUSE_ENDS = r"(?=\s*(?:[.,;:)|]|\n\s*\n|\Z))"

NOUNS = r"(?:the|an?|its|their|one|top|each|both|every|disk)\b"
"""Words after which `go on` has an object: counters go on the bus."""

PHRASES = tuple(
    (re.compile(pattern.replace(" ", r"\s+"), re.IGNORECASE), wanted)
    for pattern, wanted in (
        # Good text has `so many … that`: so many writes that the queue fills.
        (r"\bso many\b(?! (?:\w+ ){0,3}that\b)", "name the number: `N writes`, `at most N`"),
        (r"\bso-many\b", "name the number: `the first N`"),
        (r"\b(?:somebody|nobody)\b", "name who acts: the controller, a reader, no design"),
        # Good text has `is said to`, which defines.
        (r"\b(?:is|are|was|were) said\b(?! to\b)", "name who says it, or state it"),
        (
            rf"\b(?:is|are|was|were) there\b{CLAUSE_ENDS}",
            "name the place: `is in the store`, `is installed`; or `exists`",
        ),
        (rf"\b(?:go|goes|going|went) on\b(?! {NOUNS})", "`continues`, `proceeds`"),
        (r"\bsee there\b", "state it, or link to it"),
    )
)
"""Phrases that leave open who acts, where or how often, and what stands in their place."""

CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)|\"[^\"]{1,400}\"", re.DOTALL)
"""Code, and words of a paper or a message between quotation marks."""


@dataclass(frozen=True)
class Text:
    """Passage of one file: a paragraph, a docstring, a help text, a doc comment.

    Attributes:
        path: File, relative to the root of the repository, with slashes.
        lines: Lines of the passage with their numbers in the file.
        describes: True if the passage describes a name, so that its first word matters.
    """

    path: str
    lines: tuple[tuple[int, str], ...]
    describes: bool = False


@dataclass(frozen=True, order=True)
class Finding:
    """Place that breaks a rule."""

    path: str
    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def findings(text: Text) -> Iterator[Finding]:
    """Yields phrases of a passage, and its first word if that is one that describes nothing."""
    if not text.lines:
        return
    whole = CODE.sub(_masked, "\n".join(line for _, line in text.lines))
    first = FIRST_WORDS.match(whole.lstrip())
    if text.describes and first:
        line = next(number for number, line in text.lines if line.strip())
        message = f"begins with `{first[0]}`; begin with a noun or a verb that names the thing"
        yield Finding(text.path, line, FIRST_WORD, message)
    for pattern, wanted in PHRASES:
        for match in pattern.finditer(whole):
            line = text.lines[whole.count("\n", 0, match.start())][0]
            phrase = " ".join(match[0].split())
            yield Finding(text.path, line, PHRASE, f"`{phrase}`; {wanted}")


def too_wide(path: str, number: int, line: str) -> Iterator[Finding]:
    """Yields a line of Markdown that is too long, unless no space is left to break it at."""
    if len(line) > COLUMNS and re.search(r"\S\s+\S", UNBREAKABLE.sub(_masked, _content(line))):
        message = f"{len(line)} columns, at most {COLUMNS}; break the line"
        yield Finding(path, number, WIDTH, message)


UNBREAKABLE = re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\([^()]*(?:\([^()]*\)[^()]*)*\)")
"""Links and images of Markdown."""


def _content(line: str) -> str:
    return re.sub(r"^\s*(?:>\s*)?(?:[-*+]\s+|\d+[.)]\s+)?", "", line)


def _masked(match: re.Match[str]) -> str:
    """Returns signs in place of code and quotations, which no rule reads; lines stay."""
    return re.sub(r"[^\n]", "§", match[0])
