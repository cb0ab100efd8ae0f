"""The committed mapping from recorded documents to those that a later build is expected to give.

`mapping.toml` describes the rules. A document is an object with `run`, `kind`, `spec`, and either
`result` or `error` and `message`.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from .store import Json

if TYPE_CHECKING:
    from .compare import Difference


class MappingError(ValueError):
    """The file does not say what a mapping may say."""


@dataclass(frozen=True)
class Rule:
    """Something that is expected to differ.

    Attributes:
        label: Name of the rule in messages.
        runs: Glob of the runs that it is for.
        without: Globs of the runs that it is not for.
    """

    label: str
    runs: str
    without: Sequence[str]

    def is_for(self, run: str) -> bool:
        """Returns True if the rule applies to a run."""
        excluded = any(fnmatchcase(run, pattern) for pattern in self.without)
        return fnmatchcase(run, self.runs) and not excluded


@dataclass(frozen=True)
class Replace(Rule):
    """Text of the recorded document, as JSON, that another one replaces."""

    pattern: re.Pattern[str]
    to: str


@dataclass(frozen=True)
class Expect(Rule):
    """Difference that is expected at a path; the globs are of the texts of both sides."""

    path: re.Pattern[str]
    recorded: str
    now: str


@dataclass(frozen=True)
class Mapping:
    """Rules in the order of the file."""

    replacements: Sequence[Replace] = ()
    expected: Sequence[Expect] = ()

    @staticmethod
    def read(path: Path) -> Mapping:
        """Reads a file.

        Raises:
            MappingError: A table, or something in it, is unknown, missing or not understood.
        """
        return Mapping.parse(path.read_text(encoding="utf-8"))

    @staticmethod
    def parse(text: str) -> Mapping:
        """Reads the text of a file; raises what `read` raises."""
        try:
            tables = tomllib.loads(text)
            replacements = _entries(tables, "replace", {"from", "to"}, {})
            expected = _entries(tables, "expect", {"path"}, {"recorded": "*", "now": "*"})
            if tables:
                raise MappingError(f"there is no [[{next(iter(tables))}]]")
            return Mapping(
                [Replace(*rule, re.compile(of["from"]), of["to"]) for rule, of in replacements],
                [
                    Expect(*rule, path_pattern(of["path"]), of["recorded"], of["now"])
                    for rule, of in expected
                ],
            )
        except (tomllib.TOMLDecodeError, AttributeError, TypeError, re.error) as error:
            raise MappingError(str(error)) from None

    @property
    def labels(self) -> list[str]:
        """Names of all rules."""
        return [rule.label for rule in (*self.replacements, *self.expected)]

    def apply(self, document: Json) -> tuple[Json, set[str]]:
        """Returns the expected document, and the labels of the rules that changed something.

        Raises:
            MappingError: A rule leaves no JSON.
        """
        head = {key: document[key] for key in ("run", "kind")}
        body = {key: value for key, value in document.items() if key not in head}
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        used = set()
        for rule in self.replacements:
            if rule.is_for(document["run"]):
                text, times = rule.pattern.subn(rule.to, text)
                used |= {rule.label} if times else set()
        try:
            return (head | json.loads(text) if used else document), used
        except ValueError as error:
            raise MappingError(f"{', '.join(sorted(used))}: no JSON is left: {error}") from None

    def expects(self, run: str, difference: Difference) -> str | None:
        """Returns the label of the rule that expects a difference."""
        for rule in self.expected:
            if (
                rule.is_for(run)
                and rule.path.fullmatch(difference.place)
                and fnmatchcase(difference.recorded, rule.recorded)
                and fnmatchcase(difference.now, rule.now)
            ):
                return rule.label
        return None


def path_pattern(path: str) -> re.Pattern[str]:
    """Compiles a path: steps between slashes; `*` in a step is any text, `**` any steps."""
    pattern = re.escape(path)
    for wildcard, meaning in (
        (r"/\*\*/", "/(?:[^/]*/)*"),
        (r"\*\*/", "(?:[^/]*/)*"),
        (r"/\*\*", "(?:/[^/]*)*"),
        (r"\*\*", ".*"),
        (r"\*", "[^/]*"),
    ):
        pattern = pattern.replace(wildcard, meaning)
    return re.compile(pattern)


def _entries(
    tables: Json, name: str, needed: set[str], others: dict[str, str]
) -> list[tuple[tuple[str, str, Sequence[str]], dict[str, str]]]:
    """Takes all rules of a table; returns what every rule has, and the rest."""
    found = []
    for number, given in enumerate(tables.pop(name, []), start=1):
        label, rest = f"[[{name}]] {number}", dict(given)
        rule = (label, rest.pop("runs", "*"), rest.pop("without", ()))
        if missing := needed - rest.keys():
            raise MappingError(f"{label} has no {', '.join(sorted(missing))}")
        if unknown := rest.keys() - needed - others.keys():
            raise MappingError(f"{label} has {', '.join(sorted(unknown))}, which means nothing")
        found.append((rule, others | rest))
    return found
