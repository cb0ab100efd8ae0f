"""The committed mapping from recorded documents to what a later build is expected to give.

`mapping.toml` describes the rules. A document is an object with `run`, `kind`, `spec`, and either
`result` or `error` and `message`. Rules speak of the recorded document: paths and names on their
left side are the old ones, whatever other rules do.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from .store import Json

if TYPE_CHECKING:
    from .compare import Difference

STATISTICS = "**/stats"
"""The objects whose keys are names of statistics."""

STATISTICS_NAMED = ("**/stats/*/name", "**/metrics/*")
"""The texts that are names of statistics."""


class MappingError(ValueError):
    """The file does not say what a mapping may say."""


@dataclass(frozen=True)
class MayGo:
    """A number that a later build need not have, because it is zero and of another design."""

    value: int | float


@dataclass(frozen=True)
class Rule:
    """Something that is expected to differ.

    Attributes:
        label: How the rule is called in messages.
        runs: Glob of the runs that it is for.
        path: Where it applies: steps between slashes. `*` in a step is any text, `**` any steps.
    """

    label: str
    runs: str
    path: str

    def is_for(self, path: str) -> bool:
        """Whether it applies to a place: keys and indices of lists between slashes."""
        return _path_pattern(self.path).fullmatch(path) is not None


@cache
def _path_pattern(path: str) -> re.Pattern[str]:
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


@dataclass(frozen=True)
class KeyRule(Rule):
    """A key of the objects at the path has another name; `*` stands for digits, or for itself."""

    old: str
    new: str

    def renamed(self, key: str) -> str | None:
        """The new name of a key, if this is about it."""
        if "*" not in self.old:
            return self.new if key == self.old else None
        found = re.fullmatch(re.escape(self.old).replace(r"\*", r"(\d+|\*)"), key)
        if found is None:
            return None
        parts = iter(found.groups())
        return re.sub(r"\*", lambda _: next(parts), self.new)


@dataclass(frozen=True)
class ValueRule(Rule):
    """A whole text at the path is another one."""

    old: str
    new: str


@dataclass(frozen=True)
class TextRule(Rule):
    """A part of the texts at the path is replaced, wherever it is."""

    pattern: re.Pattern[str]
    new: str


@dataclass(frozen=True)
class ConfigValueRule(TextRule):
    """A value of a key of the configuration has another name, also in texts: KEY = VALUE."""

    key: str
    old: str
    value: str


@dataclass(frozen=True)
class AbsentRule(Rule):
    """Statistics that may be absent under designs that do not own them, if they were zero."""

    keys: tuple[str, ...]
    owners: tuple[str, ...]

    def allows(self, key: str, value: Json, design: str) -> bool:
        """Whether a key of an object at the path may go."""
        is_zero = isinstance(value, int | float) and not isinstance(value, bool) and value == 0
        return (
            is_zero
            and any(fnmatchcase(key, pattern) for pattern in self.keys)
            and not any(fnmatchcase(design, owner) for owner in self.owners)
        )


@dataclass(frozen=True)
class AddedRule(Rule):
    """Keys that the objects at the path have now, and had not when they were recorded."""

    keys: tuple[str, ...]


@dataclass(frozen=True)
class ReorderedRule(Rule):
    """The items of the list at the path, known by their names, have another order now."""


@dataclass(frozen=True)
class Renames:
    """A mapping: sections and keys of the configuration, and all other rules in their order."""

    sections: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    rules: Sequence[Rule] = ()

    @staticmethod
    def read(path: Path) -> Renames:
        """Reads a file.

        Raises:
            MappingError: something in it is not understood.
        """
        return Renames.parse(path.read_text(encoding="utf-8"))

    @staticmethod
    def parse(text: str) -> Renames:
        """Reads a file's text.

        Raises:
            MappingError: something in it is not understood.
        """
        try:
            tables = tomllib.loads(text)
            config: dict[str, str] = tables.pop("config", {})
            for old, new in config.items():
                if old.count(".") != new.count("."):
                    raise MappingError(f"[config] {old} and {new}: a section, and a key of one")
            return Renames(
                {old: new for old, new in config.items() if "." not in old},
                {old: new for old, new in config.items() if "." in old},
                list(_rules(tables)),
            )
        except (tomllib.TOMLDecodeError, AttributeError, TypeError, re.error) as error:
            raise MappingError(str(error)) from None

    @property
    def labels(self) -> list[str]:
        """The names of all rules."""
        config = [_config_label(name) for name in (*self.sections, *self.keys)]
        return list(dict.fromkeys([*config, *(rule.label for rule in self.rules)]))

    def expects(self, run: str, difference: Difference) -> str | None:
        """The label of the rule that expects what, or an order that, was not recorded."""
        *above, last = difference.steps
        for rule in self.rules:
            if not fnmatchcase(run, rule.runs):
                continue
            if isinstance(rule, AddedRule) and difference.is_new and last in rule.keys:
                found = rule.is_for("/".join(above))
            elif isinstance(rule, ReorderedRule) and difference.is_order:
                found = rule.is_for("/".join(difference.steps))
            else:
                found = False
            if found:
                return rule.label
        return None

    def apply(self, document: Json) -> tuple[Json, set[str]]:
        """Maps a document; numbers that need not be there any more become `MayGo`.

        Returns:
            The expected document, and the labels of the rules that did something.
        """
        if not (self.sections or self.keys or self.rules):
            return document, set()
        walk = _Walk(self, document["run"])
        design = document["spec"].get("design") or ""
        mapped = {
            key: value if key in ("run", "kind") else walk.node(value, key, design)
            for key, value in document.items()
        }
        return mapped, walk.used


class _Walk:
    """One document on its way through the rules."""

    def __init__(self, renames: Renames, run: str) -> None:
        self.renames = renames
        self.used: set[str] = set()
        rules = [rule for rule in renames.rules if fnmatchcase(run, rule.runs)]
        self.keys = [rule for rule in rules if isinstance(rule, KeyRule)]
        self.values = [rule for rule in rules if isinstance(rule, ValueRule)]
        self.config_values = [rule for rule in rules if isinstance(rule, ConfigValueRule)]
        self.texts = [rule for rule in rules if type(rule) is TextRule]
        self.absent = [rule for rule in rules if isinstance(rule, AbsentRule)]
        self.config = _config_pattern(renames)

    def node(self, node: Json, path: str, design: str) -> Json:
        """Maps whatever is there."""
        if isinstance(node, dict):
            own = node.get("design")
            design = own if isinstance(own, str) else design
            if path.endswith("/config"):
                return self.configuration(node, path)
            return self.object(node, path, design)
        if isinstance(node, list):
            if path.split("/")[-2:-1] in (["set"], ["vary"]) and isinstance(node[1], str):
                node = [node[0], self.config_value(node[0], node[1]), *node[2:]]
            return [self.node(item, f"{path}/{at}", design) for at, item in enumerate(node)]
        return self.text(node, path) if isinstance(node, str) else node

    def object(self, node: Mapping[str, Json], path: str, design: str) -> Json:
        """An object with names of any kind as keys."""
        keys = [rule for rule in self.keys if rule.is_for(path)]
        absent = [rule for rule in self.absent if rule.is_for(path)]
        out: dict[str, Json] = {}
        for key, value in node.items():
            name = key
            for key_rule in keys:
                renamed = key_rule.renamed(key)
                if renamed is not None:
                    self.used.add(key_rule.label)
                    name = renamed
                    break
            out[name] = self.node(value, f"{path}/{key}", design)
            for absent_rule in absent:
                if absent_rule.allows(key, value, design):
                    self.used.add(absent_rule.label)
                    out[name] = MayGo(value)
        return out

    def configuration(self, node: Mapping[str, Json], path: str) -> Json:
        """An object of sections, each an object of keys."""
        out: dict[str, dict[str, Json]] = {}
        for section, values in node.items():
            for key, value in values.items():
                there, _, name = self.config_name(section, key).partition(".")
                if isinstance(value, str):
                    value = self.config_value(f"{section}.{key}", value)
                    value = self.text(value, f"{path}/{section}/{key}")
                elif type(value) is int:
                    value = int(self.config_value(f"{section}.{key}", str(value)))
                out.setdefault(there, {})[name] = value
        return out

    def config_name(self, section: str, key: str) -> str:
        """The new name of a key, its section included."""
        name = f"{section}.{key}"
        if name in self.renames.keys:
            self.used.add(_config_label(name))
            return self.renames.keys[name]
        if section in self.renames.sections:
            self.used.add(_config_label(section))
            return f"{self.renames.sections[section]}.{key}"
        return name

    def config_value(self, key: str, value: str) -> str:
        """The new name of a key's value."""
        for rule in self.config_values:
            if (rule.key, rule.old) == (key, value):
                self.used.add(rule.label)
                return rule.value
        return value

    def text(self, text: str, path: str) -> str:
        """A text that may be a name, or have names in it."""
        for value_rule in self.values:
            if value_rule.old == text and value_rule.is_for(path):
                self.used.add(value_rule.label)
                return value_rule.new
        # Values before their keys, which they are found by.
        for config_rule in self.config_values:
            text = self.replaced(config_rule, text)
        if self.config is not None:
            text = self.config.sub(self.config_found, text)
        for text_rule in self.texts:
            if text_rule.is_for(path):
                text = self.replaced(text_rule, text)
        return text

    def replaced(self, rule: TextRule, text: str) -> str:
        """A text after one rule."""
        text, times = rule.pattern.subn(rule.new, text)
        if times:
            self.used.add(rule.label)
        return text

    def config_found(self, found: re.Match[str]) -> str:
        """What replaces a key of the configuration, or its section, in a text."""
        name = found.group()
        self.used.add(_config_label(name))
        return self.renames.keys[name] if found["key"] else self.renames.sections[name]


def _config_label(name: str) -> str:
    return f"[config] {name}"


def _config_pattern(renames: Renames) -> re.Pattern[str] | None:
    """Keys of the configuration in a text, and sections that a key follows."""
    if not (renames.keys or renames.sections):
        return None
    keys = "|".join(map(re.escape, renames.keys)) or "(?!)"
    sections = "|".join(map(re.escape, renames.sections)) or "(?!)"
    return re.compile(
        rf"(?<![\w./-])(?:(?P<key>{keys})(?![\w-])|(?P<section>{sections})(?=\.[a-z]))"
    )


def _rules(tables: dict[str, Json]) -> Iterator[Rule]:
    """All rules but those of `[config]`.

    Raises:
        MappingError: a table, or something in it, is unknown or missing.
    """
    for old, new in tables.pop("statistics", {}).items():
        label = f"[statistics] {old}"
        yield KeyRule(label, "*", STATISTICS, old, new)
        yield from (ValueRule(label, "*", path, old, new) for path in STATISTICS_NAMED)
    for table in list(tables):
        if table not in _READERS:
            raise MappingError(f"there is no [[{table}]]")
        for number, given in enumerate(tables[table], start=1):
            entry = _Entry(f"[[{table}]] {number}", dict(given))
            yield _READERS[table](entry)
            entry.end()


class _Entry:
    """A table of the file, whose values are taken one after the other."""

    def __init__(self, label: str, given: dict[str, Json]) -> None:
        self.label, self.given = label, given
        self.runs = self.take("runs", "*")

    def take(self, name: str, default: Json = None) -> Json:
        value = self.given.pop(name, default)
        if value is None:
            raise MappingError(f"{self.label} has no {name}")
        return value

    def end(self) -> None:
        if self.given:
            raise MappingError(f"{self.label} has {', '.join(self.given)}, which means nothing")


def _key(entry: _Entry) -> Rule:
    path, old, new = entry.take("path"), entry.take("from"), entry.take("to")
    return KeyRule(entry.label, entry.runs, path, old, new)


def _value(entry: _Entry) -> Rule:
    path, old, new = entry.take("path"), entry.take("from"), entry.take("to")
    return ValueRule(entry.label, entry.runs, path, old, new)


def _text(entry: _Entry) -> Rule:
    path, old, new = entry.take("path", "**"), entry.take("from"), entry.take("to")
    if not entry.take("regex", False):
        old, new = re.escape(old), new.replace("\\", r"\\")
    return TextRule(entry.label, entry.runs, path, re.compile(old, re.MULTILINE), new)


def _config_value(entry: _Entry) -> Rule:
    key, old, new = entry.take("key"), entry.take("from"), entry.take("to")
    there = rf"(?<![\w./-])({re.escape(key)}`?(?: = |=)\"?){re.escape(old)}(?![\w-])"
    text = r"\g<1>" + new.replace("\\", r"\\")
    pattern = re.compile(there)
    return ConfigValueRule(entry.label, entry.runs, "**", pattern, text, key, old, new)


def _absent(entry: _Entry) -> Rule:
    path, keys, owners = entry.take("path", STATISTICS), entry.take("keys"), entry.take("owners")
    return AbsentRule(entry.label, entry.runs, path, tuple(keys), tuple(owners))


def _added(entry: _Entry) -> Rule:
    return AddedRule(entry.label, entry.runs, entry.take("path"), tuple(entry.take("keys")))


def _reordered(entry: _Entry) -> Rule:
    return ReorderedRule(entry.label, entry.runs, entry.take("path"))


_READERS = {
    "key": _key,
    "value": _value,
    "text": _text,
    "config_value": _config_value,
    "absent": _absent,
    "added": _added,
    "reordered": _reordered,
}
