"""Rules, passages of Markdown, Python and Rust, and the check as a whole."""

import pytest

from .__main__ import main
from .rules import Finding, Text, findings
from .texts import passages


def found(path, content):
    """Lines and rules of the findings of a file."""
    all_ = []
    for each in passages(path, content):
        all_ += [each] if isinstance(each, Finding) else findings(each)
    return [(each.line, each.rule) for each in sorted(all_)]


def rules(sentence, *, describes=False):
    lines = tuple(enumerate(sentence.splitlines(), 1))
    return [each.rule for each in findings(Text("page.md", lines, describes))]


@pytest.mark.parametrize(
    "sentence",
    [
        "Waits so many cycles.",
        "The first so-many transactions survive.",
        "Nobody reads the word.",
        "A thread waits for somebody.",
        "The default if nothing is said.",
        "What is said of a program.",
        "Skips a result that is there.",
        "Copies what is there, word by word",
        "| `fresh` | runs even if the result is there |",
        "The thread goes on.",
        "It lets a thread go on that waits.",
        "It goes\non after the wait.",
        "See there.",
    ],
)
def test_phrases_are_found(sentence):
    assert rules(sentence) == ["phrase"]


@pytest.mark.parametrize(
    "sentence",
    [
        "It writes so many lines that the queue fills.",
        "A history is said to be linearizable if it has a linearization.",
        "The case where there is a second copy.",
        "Is there a second copy?",
        "Counters go on the bus, and each goes on its own channel.",
        "The message says `nobody`.",
        'The paper writes "so many transactions".',
        "The simulation continues.",
    ],
)
def test_good_text_has_no_finding(sentence):
    assert rules(sentence) == []


@pytest.mark.parametrize("word", ["What", "Whether", "Where", "Of", "Its", "It", "Which", "How"])
def test_descriptions_begin_with_a_noun_or_a_verb(word):
    assert rules(f"{word} the reader needs.", describes=True) == ["first-word"]
    assert rules(f"{word} the reader needs.") == []
    assert rules(f"Returns {word.lower()} the reader needs.", describes=True) == []


def test_other_words_and_code_may_begin_a_description():
    assert rules("Items of a list.", describes=True) == []
    assert rules("Offset in bytes.", describes=True) == []
    assert rules("`what` of an event.", describes=True) == []


LONG = "word " * 30
LINK = f"https://example.org/{'a' * 100}"


def test_lines_of_pages_have_a_width():
    assert found("page.md", f"# Title\n\n{'a' * 49} {'b' * 50}\n") == []
    assert found("page.md", f"# Title\n\n{'a' * 49} {'b' * 51}\n") == [(3, "width")]
    assert found("page.md", f"- item\n- {LONG}\n") == [(2, "width")]


@pytest.mark.parametrize(
    "content",
    [
        f"# {LONG}\n",
        f"| {LONG} |\n|---|\n| {LONG} |\n",
        f"Text:\n\n    {LONG}\n\n    {LONG}\n",
        f"- item\n\n      {LONG}\n",
        f"```\n{LONG}\n```\n",
        f"[a link]({LINK})\n",
        f"- [a link]({LINK}).\n",
        f"![a picture with some words]({LINK})\n",
        f"<!-- table -->\n{LONG}\nnobody\n<!-- end of table -->\n",
    ],
)
def test_what_cannot_be_broken_has_no_width(content):
    assert found("page.md", content) == []


def test_text_after_code_and_blocks_is_checked():
    assert found("page.md", "```\nnobody\n```\nNobody reads.\n") == [(4, "phrase")]
    block = "<!-- table -->\nnobody\n<!-- end of table -->\nNobody reads.\n"
    assert found("page.md", block) == [(4, "phrase")]
    assert found("page.md", "- item\n\n    Nobody reads.\n") == [(3, "phrase")]
    assert found("page.md", "> Nobody reads.\n\nNobody reads.\n") == [(3, "phrase")]


PYTHON = '''\
"""What the module has."""

LIMIT = 3
"""How many are shown."""
_LIMIT = 3
"""How many are shown."""

class Kept:
    """Kept results.

    Example:
        >>> nobody
    """

    count: int
    """Of results."""

    def get(self):
        """Which is there."""

    def _get(self):
        """Which is there."""
'''


def test_docstrings_of_public_names_are_checked():
    expected = [(1, "first-word"), (4, "first-word"), (16, "first-word")]
    expected += [(19, "first-word"), (19, "phrase")]
    assert found("python/graven/store/kept.py", PYTHON) == expected


def test_help_texts_are_checked():
    content = """\
HELP = "What it runs."

@click.option("--on", help=f"Where to run: {PLACES}.")
@number("--seeds", "How many seeds.")
def run(): ...
"""
    assert [line for line, _ in found("python/graven/cli/run.py", content)] == [1, 3, 4]
    assert found("python/graven/store/run.py", content) == []


RUST = """\
//! What the file has.

/// Number of lines,
/// of which nobody has one.
pub lines: u64,
/// Its size.
///
/// ```
/// nobody();
/// ```
// nobody
fn size() {}
"""


def test_doc_comments_are_checked():
    expected = [(1, "first-word"), (4, "phrase"), (6, "first-word")]
    assert found("crates/base/src/lib.rs", RUST) == expected


@pytest.fixture
def checkout(tmp_path):
    """A folder with a finding in a crate."""
    source = tmp_path / "crates/base/src/lib.rs"
    source.parent.mkdir(parents=True)
    source.write_text("/// What it has.\nstruct One;\n")
    return tmp_path, source


def test_the_check_fails_when_a_rule_is_broken(checkout, capsys):
    root, source = checkout
    assert main([], root) == 1
    printed = capsys.readouterr().out
    assert "crates/base/src/lib.rs:1: begins with `What`; begin with a noun or a verb" in printed
    source.write_text("/// One thing.\nstruct One;\n")
    assert main([], root) == 0
    (root / "README.md").write_text("Nobody reads.\n")
    assert main([], root) == 1
    assert "README.md:1: `Nobody`; name who acts" in capsys.readouterr().out


def test_findings_beneath_a_path_are_listed(checkout, capsys):
    root, source = checkout
    (root / "README.md").write_text("Nobody reads.\n")
    assert main([str(source.parent)], root) == 1
    assert capsys.readouterr().out.count("\n") == 1
    assert main([str(root / "docs")], root) == 0
