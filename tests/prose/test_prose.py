"""Rules, passages of Markdown, Python and Rust, and the check as a whole."""

import shutil
import subprocess
from pathlib import Path

import pytest

from . import baseline
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
    """A repository with a finding in a crate, which its baseline allows."""
    source = tmp_path / "crates/base/src/lib.rs"
    source.parent.mkdir(parents=True)
    source.write_text("/// What it has.\nstruct One;\n")
    table = tmp_path / "baseline.toml"
    assert main(["--update"], tmp_path, table) == 0
    return tmp_path, source, table


def test_the_check_fails_when_a_count_rises(checkout, capsys):
    root, source, table = checkout
    assert main([], root, table) == 0
    capsys.readouterr()
    source.write_text(source.read_text() + "\n/// Which it has.\nstruct Two;\n")
    assert main([], root, table) == 1
    printed = capsys.readouterr().out
    assert "crates/base/src/lib.rs:4: begins with `Which`; begin with a noun or a verb" in printed
    assert "crates/base: first-word: 2 found, 1 allowed" in printed


def git(root, *arguments):
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(("git", *identity, *arguments), cwd=root, check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_findings_that_are_newer_than_the_baseline_are_shown_alone(checkout, capsys):
    root, source, table = checkout
    git(root, "init", "--quiet")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "first")
    source.write_text(source.read_text() + "\n/// Which it has.\nstruct Two;\n")
    assert main([], root, table) == 1
    printed = capsys.readouterr().out
    assert "lib.rs:4:" in printed
    assert "lib.rs:1:" not in printed
    source.with_name("new.rs").write_text("/// Where it is.\n")
    assert main([], root, table) == 1
    printed = capsys.readouterr().out
    assert "lib.rs:4:" in printed
    assert "new.rs:1:" in printed
    assert "lib.rs:1:" not in printed


def test_a_page_without_findings_has_no_allowance(checkout, capsys):
    root, _, table = checkout
    (root / "README.md").write_text("Nobody reads.\n")
    assert main([], root, table) == 1
    assert "README.md:1: `Nobody`; name who acts" in capsys.readouterr().out


def test_a_count_that_has_fallen_is_to_be_lowered(checkout, capsys):
    root, source, table = checkout
    source.write_text("/// One thing.\nstruct One;\n")
    assert main([], root, table) == 0
    assert "python -m tests.prose --update" in capsys.readouterr().err
    assert main(["--update"], root, table) == 0
    assert "crates/base: first-word: 0 found, fallen from 1" in capsys.readouterr().out
    assert baseline.read(table) == {}


def test_a_baseline_with_marks_of_a_conflict_is_written_anew(checkout, capsys):
    root, _, table = checkout
    before = table.read_text()
    table.write_text(f"<<<<<<< ours\n{before}=======\n{before}>>>>>>> theirs\n")
    assert main([], root, table) == 2
    assert "--update" in capsys.readouterr().err
    assert main(["--update"], root, table) == 0
    assert table.read_text() == before


def test_findings_beneath_a_path_are_listed(checkout, capsys):
    root, source, table = checkout
    assert main([str(source.parent)], root, table) == 1
    assert capsys.readouterr().out.count("\n") == 1
    assert main([str(root / "docs")], root, table) == 0


def test_files_count_for_their_crate_their_package_or_themselves():
    assert baseline.unit("crates/base/src/memory/image.rs") == "crates/base"
    assert baseline.unit("crates/base/README.md") == "crates/base/README.md"
    assert baseline.unit("python/graven/cli/run.py") == "python/graven/cli"
    assert baseline.unit("python/graven/drawing/figures/bars.py") == "python/graven/drawing"
    assert baseline.unit("python/graven/__init__.py") == "python/graven"
    assert baseline.unit("docs/guides/store.md") == "docs/guides/store.md"


def test_the_committed_baseline_is_understood():
    assert all(count > 0 for count in baseline.read().values())
    assert Path(baseline.PATH).read_text().startswith(baseline.HEAD)
