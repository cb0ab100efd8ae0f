"""Passages of prose in Markdown, Python and Rust."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from .rules import Finding, Text, too_wide

# ---- Markdown ----------------------------------------------------------------------------------

FENCE = re.compile(r"\s*(```+|~~~+)")
ITEM = re.compile(r"(\s*(?:[-*+]|\d+[.)])\s+)\S")
BLOCK = re.compile(r"<!-- (table|excerpt|listing)\b")
"""Begin of a block that a program writes; `<!-- end of table -->` ends it."""


def markdown(path: str, content: str) -> Iterator[Text | Finding]:
    """Yields the paragraphs of a page that are written by hand, and its lines that are too long.

    Code, blocks that programs write, and the widths of tables and headings are left out.
    """
    paragraph: list[tuple[int, str]] = []
    until: re.Pattern[str] | None = None
    blank, indent = True, 0
    for number, line in enumerate(content.splitlines(), 1):
        if until is not None:
            until = None if until.match(line) else until
            continue
        fence, block, item = FENCE.match(line), BLOCK.match(line), ITEM.match(line)
        own = len(line) - len(line.lstrip())
        if line.strip() and blank and not item and own < indent:
            indent = 0
        code = blank and own >= indent + 4 and line.strip()
        if fence or block or code or not line.strip() or item or line.startswith("#"):
            yield Text(path, tuple(paragraph))
            paragraph = []
        if fence:
            until = re.compile(rf"\s*{fence[1]}")
        elif block:
            until = re.compile(f"<!-- end of {block[1]} -->")
        elif code:
            continue  # `blank` stays, for the next line of code
        elif line.lstrip().startswith(("|", "#")):
            yield Text(path, ((number, line),))
        elif line.strip():
            indent = len(item[1]) if item else indent
            if not line.lstrip().startswith(">"):  # a quotation has the words of others
                paragraph.append((number, line))
            yield from too_wide(path, number, line)
        blank = not line.strip()
    yield Text(path, tuple(paragraph))


# ---- Python ------------------------------------------------------------------------------------

Body = list[ast.stmt]


def python(path: str, content: str) -> Iterator[Text]:
    """Yields the docstrings of public names, and in the package `cli` the help texts of options."""
    tree = ast.parse(content)
    for node in _docstrings(tree.body):
        yield Text(path, _lines(node), describes=True)
    if "/cli/" in path:
        for node in _help_texts(tree):
            yield Text(path, _lines(node), describes=True)


def _docstrings(body: Body) -> Iterator[ast.expr]:
    """Yields docstrings of a module or class, of its public members, and of constants."""
    documents = True
    for node in body:
        if isinstance(node, ast.Expr) and _is_text(node.value) and documents:
            yield node.value
        names = list(_assigned(node))
        documents = bool(names) and not any(name.startswith("_") for name in names)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _docstrings(node.body)
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if function and not node.name.startswith("_"):
            yield from _docstrings(node.body[:1])


def _assigned(node: ast.stmt) -> Iterator[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return (each.id for each in targets if isinstance(each, ast.Name))


def _help_texts(tree: ast.Module) -> Iterator[ast.expr]:
    """Yields values of `help=`, texts of constants named HELP, and sentences in decorators."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "help" and _is_text(node.value):
            yield node.value
        elif isinstance(node, ast.Assign) and any("HELP" in name for name in _assigned(node)):
            yield from (each for each in (node.value,) if _is_text(each))
        elif isinstance(node, ast.FunctionDef):
            for call in node.decorator_list:
                if isinstance(call, ast.Call):
                    yield from (each for each in call.args if _is_text(each) and " " in _text(each))


def _is_text(node: ast.expr) -> bool:
    constant = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return constant or isinstance(node, ast.JoinedStr)


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(each) for each in node.values)
    return str(node.value) if isinstance(node, ast.Constant) else "§"


def _lines(node: ast.expr) -> tuple[tuple[int, str], ...]:
    """Returns the lines of a text, without those of examples."""
    lines = enumerate(_text(node).splitlines(), node.lineno)
    return tuple((n, "" if re.match(r"\s*(>>>|\.\.\. )", line) else line) for n, line in lines)


# ---- Rust --------------------------------------------------------------------------------------

COMMENT = re.compile(r"\s*(//[/!])(?!/)\s?(.*)")


def rust(path: str, content: str) -> Iterator[Text]:
    """Yields the doc comments of a file, without their code."""
    comment: list[tuple[int, str]] = []
    kind = ""
    fenced = False
    for number, line in enumerate(content.splitlines(), 1):
        match = COMMENT.match(line) if "//" in line else None
        if match is None or match[1] != kind:
            if comment:
                yield Text(path, tuple(comment), describes=True)
            comment, fenced = [], False
        kind = match[1] if match else ""
        if match:
            fence = match[2].startswith("```")
            comment.append((number, "" if fenced or fence else match[2]))
            fenced ^= fence
    if comment:
        yield Text(path, tuple(comment), describes=True)


READERS = {".md": markdown, ".py": python, ".rs": rust}


def passages(path: str, content: str) -> Iterable[Text | Finding]:
    """Returns the passages of a file, by its ending."""
    return READERS["." + path.rpartition(".")[2]](path, content)
