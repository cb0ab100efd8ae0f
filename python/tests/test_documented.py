"""Every public name has an example, and every example in the documentation works.

The class of bug: a name that users see without an example of how it is used, or an example that
does not do any more what it shows. Examples are run in a folder of their own.
"""

from __future__ import annotations

import ast
import dataclasses
import doctest
import functools
import io
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import HERE, PACKAGE

import graven

NAMES = [name for name in graven.__all__ if not name.startswith("_")]

ENGINE = {"Cancelled", "ConfigError", "SimulationError", "TraceError"}
"""Names of the native module, which are documented in its stub."""

LONG = {"explain", "Explanation", "Moved"}
"""Examples that take a minute or more: all changes of a claim are tried."""

FIGURE = [pytest.mark.long, pytest.mark.xdist_group("figures")]
"""Marks of tests that simulate a paper's figure: one process runs all, and simulates it once.

A notebook's test is among them.
"""


@dataclass(frozen=True)
class Docstring:
    """A docstring of the package.

    Attributes:
        path: What it is of, in the package: module, class, name.
        file: Where it is.
        line: Where its text begins, from 0.
        text: As it is written.
    """

    path: str
    file: Path
    line: int
    text: str

    @property
    def examples(self):
        return doctest.DocTestParser().get_examples(self.text, self.path)


def docstrings():
    """Every docstring of the package, by what it is of: those of constants and stubs, too."""
    found = {}
    for file in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")]):
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        module = ".".join(part for part in parts if part != "__init__")
        for path, node in strings(ast.parse(file.read_text()), (module,)):
            name = ".".join(path)
            found[name] = Docstring(name, file, node.lineno - 1, node.value)
    return found


def strings(node, path):
    """The strings that document a module, a class or a function, and what is in it."""
    before = node
    for child in node.body:
        match before, child:
            case _, ast.Expr(value=ast.Constant(str()) as text) if before is node:
                yield path, text
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(str()) as text),
            ):
                yield (*path, name), text
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            yield from strings(child, (*path, child.name))
        before = child


DOCSTRINGS = docstrings()
WITH_EXAMPLES = {path: found for path, found in DOCSTRINGS.items() if found.examples}


def home(name):
    """Where the docstring of a public name is."""
    item = getattr(graven, name)
    if name in ENGINE:
        return f"graven._engine.{name}"
    if getattr(item, "__module__", "") == "graven":
        return f"graven.basics.errors.{name}"
    if isinstance(item, tuple):
        return f"graven.{graven._HOMES[name]}.{name}"
    return f"{item.__module__}.{item.__qualname__}"


def members(kind):
    """Public methods and properties of a class, by name: the class that has each."""
    found = {}
    for of in kind.__mro__:
        if of.__module__.split(".")[0] != "graven":
            continue
        fields = {field.name for field in dataclasses.fields(kind)} if is_record(kind) else ()
        for name in vars(of):
            if not name.startswith("_") and name not in fields:
                found.setdefault(name, of)
    return found


def is_record(kind):
    return dataclasses.is_dataclass(kind)


def used(paths):
    """What examples look up with a dot."""
    return {
        node.attr
        for path in paths
        if path in WITH_EXAMPLES
        for example in WITH_EXAMPLES[path].examples
        for node in ast.walk(ast.parse(example.source))
        if isinstance(node, ast.Attribute)
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_an_example(name):
    path = home(name)
    assert path in WITH_EXAMPLES, (
        f"graven.{name} has no example: its docstring ({path}) needs a section `Examples:` "
        "with lines that begin with `>>>`"
    )
    assert re.search(r"^ *Examples:$", DOCSTRINGS[path].text, re.MULTILINE), path
    assert any(example.want for example in WITH_EXAMPLES[path].examples), f"{path} shows no result"


CLASSES = [name for name in NAMES if isinstance(getattr(graven, name), type)]


@pytest.mark.parametrize("name", CLASSES)
def test_methods_and_properties_are_in_an_example(name):
    kind = getattr(graven, name)
    classes = [f"{of.__module__}.{of.__qualname__}" for of in kind.__mro__]
    missing = [
        member
        for member, of in members(kind).items()
        if member not in used([*classes, f"{of.__module__}.{of.__qualname__}.{member}"])
    ]
    assert not missing, (
        f"no example of graven.{name} uses {', '.join(missing)}: one in the docstring of the class "
        "or of the method itself has to"
    )


# ---- they work ---------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _in_an_empty_folder(unhooked, reproduced, tmp_path, monkeypatch):  # noqa: ARG001
    (tmp_path / "graven-results").mkdir()
    (tmp_path / "graven-results" / "reproduce").symlink_to(reproduced)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")


OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run(text, names, name, file, line):
    """Runs the lines with `>>>`: how many there were, and a report of what they show wrongly."""
    test = doctest.DocTestParser().get_doctest(text, names, name, file, line)
    said = io.StringIO()
    runner = doctest.DocTestRunner(verbose=False, optionflags=OPTIONS)
    tried = runner.run(test, out=said.write, clear_globs=False).attempted
    names.update(test.globs)
    return tried, said.getvalue()


def parameter(path, name):
    is_long = name.rpartition(".")[2] in LONG
    return pytest.param(path, id=name, marks=FIGURE if is_long else [])


LIBRARIES = ("pandas", "polars", "xarray")
"""What some methods need, and who installs Graven need not have."""


def needed(path):
    """What has to be installed for a docstring's examples."""
    return [library for library in LIBRARIES if path.endswith(f".to_{library}")]


@pytest.mark.parametrize(
    "path",
    [
        parameter(path, path.removeprefix("graven.").partition(".")[2] or path)
        for path in WITH_EXAMPLES
    ],
)
def test_examples_show_what_comes_out(path):
    for library in needed(path):
        pytest.importorskip(library)
    found = WITH_EXAMPLES[path]
    tried, failed = run(found.text, {"graven": graven}, path, str(found.file), found.line)
    assert (tried, failed) == (len(found.examples), ""), failed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (">>> 1 + 1\n3", "Expected:"),
        (">>> graven.run('silo', 'hash', threads=0)", "graven.ConfigError: threads: 0"),
        (">>> graven.nothing", "AttributeError"),
    ],
)
def test_an_example_that_does_not_work_is_noticed(text, said):
    tried, failed = run(text, {"graven": graven}, "wrong", "a.py", 41)
    assert tried == 1
    assert 'File "a.py", line 42, in wrong' in failed
    assert said in failed


def test_docstrings_of_all_kinds_are_found():
    kinds = {
        "graven",
        "graven.api.simulations.run",
        "graven.results.comparison.METRICS",
        "graven._engine.ConfigError",
    }
    assert kinds | {"graven.results.frames.Frames.to_pandas"} <= set(WITH_EXAMPLES)


ROOT = HERE.parents[1]
PAGES = sorted(
    str(page.relative_to(ROOT))
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if page.exists() and "```python" in page.read_text()
)


FIGURES = {"docs/guides/plots.md", "docs/guides/comparing.md"}
"""Pages that have papers' figures simulated, which takes minutes."""

BRIEF = {
    "workload__footprint_bytes": "1 MB",
    "region__fast_forward_transactions": 500,
    "region__warm_up_transactions": 200,
    "region__transactions_max": 1000,
}
"""Sizes of runs and comparisons, where a page does not say them."""

SMALL = {"transactions": 200, **BRIEF}
"""The same of pages that do not look for runs of the usual number of transactions."""


@pytest.mark.checkout
@pytest.mark.parametrize(
    ("page", "sizes"),
    [
        *(pytest.param(page, SMALL, id=f"{page}-small") for page in PAGES if page not in FIGURES),
        *(pytest.param(page, BRIEF, id=page, marks=FIGURE) for page in sorted(FIGURES)),
    ],
)
def test_the_code_of_a_page_runs(page, sizes, monkeypatch):
    """Block by block; what they print is not compared, unless they show it."""
    text = (ROOT / page).read_text()
    for library in LIBRARIES:
        if f"to_{library}(" in text:
            pytest.importorskip(library)
    for name in ("run", "compare"):
        monkeypatch.setattr(graven, name, functools.partial(getattr(graven, name), **sizes))
    names = {"graven": graven}
    for block in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        line = text.count("\n", 0, block.start(1))
        if ">>>" in block[1]:
            _, failed = run(block[1], names, page, page, line)
            assert failed == "", failed
        else:
            exec(compile("\n" * line + block[1], page, "exec"), names)
