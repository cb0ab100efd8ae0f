"""Views of the plot explorer: the address of a page has all of its view, and shares it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from urllib.parse import urlencode

from werkzeug.datastructures import MultiDict

from graven._engine import ConfigError
from graven.basics.arguments import SEED_MAX, known
from graven.drawing.figures.comparisons import KINDS
from graven.drawing.figures.style import THEMES, WIDTHS, Look
from graven.engine.catalogue import catalogue
from graven.running.job import is_trace
from graven.serve.contents import Entry, Part, Stock, counts, narrowed, preferred_build, settings_of
from graven.store.keeper import build

ABSOLUTE = "absolute"
"""In place of a baseline: values with their units."""

CURRENT = "current"
"""The build of the engine that is in use."""


@dataclass(frozen=True)
class View:
    """Choices of a view, by their names in the address; an empty value stands for the usual one.

    Attributes:
        transactions: Transactions of each simulation.
        seed: Seeds, of which the mean is shown.
        set: Settings, one or more of which are compared; an empty text is none.
        metric: A statistic; empty for the usual one of the kind.
        baseline: A design; `absolute`; or empty for what is usual.
        over: Axis of lines.
        width: `column`, `text`, inches, or empty for as wide as there is room.
        theme: `light`, `dark`, or empty for the reader's.
    """

    kind: str
    machine: str
    design: tuple[str, ...]
    workload: tuple[str, ...]
    threads: tuple[int, ...]
    transactions: int
    seed: tuple[int, ...]
    set: tuple[str, ...]
    build: str
    metric: str = ""
    baseline: str = ""
    over: str = ""
    width: str = ""
    theme: str = ""

    @staticmethod
    def of(asked: MultiDict[str, str], stock: Stock) -> View | None:
        """Reads an address; choices that it leaves open are as of the newest result.

        Returns:
            Nothing if there are no simulations.

        Raises:
            ConfigError: it asks for something that is not allowed.
        """
        check_names(asked, NAMES)
        return _Reader(asked, stock).view() if stock.simulations.entries else None

    def query(self, **changes: str) -> str:
        """The part of the address that says all of this, with some of it changed."""
        pairs: list[tuple[str, str]] = []
        changed = replace(self, **changes)  # type: ignore[arg-type]
        for name in NAMES:
            value = getattr(changed, name)
            if isinstance(value, tuple):
                pairs += [(name, str(item)) for item in value]
            elif value != "":
                pairs.append((name, str(value)))
        return urlencode(pairs)

    @property
    def look(self) -> Look:
        """Look of the picture where it stands alone.

        Raises:
            ConfigError: the width or the theme is not allowed.
        """
        width = self.width or "text"
        try:
            inches: str | float = width if width in WIDTHS else float(width)
        except ValueError:
            inches = width
        return Look.of(inches, self.theme or "light")

    @property
    def is_current(self) -> bool:
        """True if results are of the build in use, which can make those that are missing."""
        return self.build == build()


NAMES = tuple(field.name for field in fields(View))


def check_names(asked: MultiDict[str, str], allowed: Sequence[str]) -> None:
    """Refuses what an address says under a name that the page does not know.

    Raises:
        ConfigError: there is such a name.
    """
    _check("parameter of the address", asked, allowed)


class _Reader:
    """Reads one address."""

    def __init__(self, asked: MultiDict[str, str], stock: Stock) -> None:
        self.asked = asked
        self.stock = stock

    def view(self) -> View:
        kind = self._one("kind", "bars", KINDS)
        every = self.stock.simulations
        newest = every.entries[0]
        presets = [preset.name for preset in catalogue().machines]
        machines = _names(every, "machine", presets)
        machine = self._one("machine", str(newest.machine), machines)
        build = self._build(narrowed(every.entries, machine=machine))
        of_build = self.stock.part(machine, build).entries or every.entries
        [transactions] = self._numbers("transactions", [of_build[0].transactions or 0], 0, one=True)
        of_size = [
            entry
            for entry in of_build
            if entry.transactions == transactions or is_trace(entry.workload or "")
        ]
        settings = self._settings(of_size)
        chosen = [entry for entry in of_size if entry.settings in settings] or of_size or of_build
        newest = chosen[0]
        there = Part(chosen)
        seeds = self._numbers("seed", [newest.seed or 0], 0, most=SEED_MAX)
        usual = [newest.threads or 1]
        if kind == "lines":
            usual = [int(str(count)) for count in there.counts("threads")]
        threads = self._numbers("threads", usual, 1)
        known_designs = _names(every, "design", [d.name for d in catalogue().designs])
        known_workloads = _names(every, "workload", catalogue().workload_names)
        _check("baseline", self._given("baseline"), [ABSOLUTE, *known_designs])
        view = View(
            kind,
            machine,
            self._several("design", there.counts("design"), known_designs),
            self._several("workload", there.counts("workload"), known_workloads),
            tuple(threads),
            transactions,
            tuple(seeds),
            tuple(settings),
            build,
            self._text("metric"),
            self._text("baseline"),
            self._text("over"),
            self._text("width"),
            self._text("theme"),
        )
        assert view.look, "it is checked as it is made"
        return view

    def _given(self, name: str) -> list[str]:
        """Returns the values that the address has under a name; empty ones are none."""
        return [text for value in self.asked.getlist(name) if (text := value.strip())]

    def _text(self, name: str) -> str:
        """Returns the value under a name, of which there is one at most; empty without one."""
        given = self.asked.getlist(name)
        if len(given) > 1:
            raise ConfigError(f"{name}: one value is allowed; the address has {len(given)}")
        return given[0].strip() if given else ""

    def _one(self, name: str, usual: str, allowed: Iterable[str]) -> str:
        text = self._text(name) or usual
        _check(name, [text], allowed)
        return text

    def _several(
        self, name: str, usual: Iterable[object], allowed: Iterable[str]
    ) -> tuple[str, ...]:
        given = self._given(name)
        _check(name, given, allowed)
        return tuple(dict.fromkeys(given or map(str, usual)))

    def _numbers(
        self, name: str, usual: Sequence[int], least: int, *, most: int = 1 << 62, one: bool = False
    ) -> list[int]:
        found: dict[int, None] = {}
        for text in self._given(name):
            # Not any digit that Unicode has, nor more than an integer of the engine.
            number = int(text) if text.isascii() and text.isdecimal() and len(text) < 21 else -1
            if not least <= number <= most:
                raise ConfigError(
                    f"{name}: `{text}` is not allowed; a whole number, at least {least}, is"
                )
            found[number] = None
        if one and len(found) > 1:
            raise ConfigError(f"{name}: one value is allowed; the address has {len(found)}")
        return list(found) or list(usual)

    def _build(self, entries: Sequence[Entry]) -> str:
        there = [CURRENT, *map(str, counts(entries, "build"))]
        given = self._text("build") or preferred_build(entries) or CURRENT
        if given != build():
            _check("build", [given], there)
        return build() if given == CURRENT else given

    def _settings(self, entries: Sequence[Entry]) -> list[str]:
        given = [text.strip() for text in self.asked.getlist("set")]
        for text in given:
            for key, value in settings_of(text).items():
                catalogue().check_key(key)
                if not value:
                    raise ConfigError(
                        f"set: `{text}` is not of the form SECTION.KEY=VALUE, several separated by "
                        "semicolons"
                    )
        usual = [
            "; ".join(f"{key}={value}" for key, value in sorted(settings_of(text).items()))
            for text in given
        ]
        if usual or not entries:
            return list(dict.fromkeys(usual or [""]))
        there = [entry.settings for entry in entries]
        return ["" if "" in there else there[0]]


def _check(name: str, given: Iterable[str], allowed: Iterable[str]) -> None:
    """Refuses values that are not allowed.

    Raises:
        ConfigError: there is one.
    """
    names = list(allowed)
    for text in given:
        if text not in names:
            raise known(name, text, names)


def _names(part: Part, field: str, more: Iterable[str]) -> list[str]:
    """What results have, and then what there is besides."""
    return list(dict.fromkeys([*map(str, part.counts(field)), *more]))


OFFERED = 64
"""Largest number of values of a field that are offered, unless more are chosen."""


@dataclass(frozen=True)
class Choice:
    """An option of a field: its value in the address, its title, and its simulations if known."""

    value: str
    title: str
    count: int | None
    chosen: bool


def choices(view: View, stock: Stock) -> Mapping[str, list[Choice]]:
    """Returns the choices of the form: chosen values, and those of the machine's results."""
    every = stock.simulations
    of_machine = Part(narrowed(every.entries, machine=view.machine))
    of_build = stock.part(view.machine, view.build)
    found = {"machine": _offered(every, "machine", [view.machine])}
    found["build"] = _offered(of_machine, "build", [view.build])
    found["set"] = _offered(of_build, "settings", view.set, {"": "as the machine has it"})
    for name in ("design", "workload", "threads", "transactions", "seed"):
        value = getattr(view, name)
        chosen = [str(item) for item in value] if isinstance(value, tuple) else [str(value)]
        found[name] = _offered(of_build, name, chosen)
    found["kind"] = [Choice(kind, kind, None, kind == view.kind) for kind in KINDS]
    found["theme"] = [
        Choice(theme, theme or "as the screen", None, theme == view.theme)
        for theme in ("", *THEMES)
    ]
    return found


def _offered(
    part: Part,
    field: str,
    chosen: Sequence[str],
    titles: Mapping[str, str] | None = None,
) -> list[Choice]:
    found = {str(value): count for value, count in part.counts(field).items()}
    found |= {value: 0 for value in chosen if value not in found}
    # Of very many, those that are chosen and the first of the others.
    room = max(0, OFFERED - len(chosen))
    others = list(islice((value for value in found if value not in chosen), room))
    shown = {*chosen, *others}
    return [
        Choice(value, (titles or {}).get(value, value), count, value in chosen)
        for value, count in found.items()
        if value in shown
    ]
