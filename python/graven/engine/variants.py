"""Variants: designs under names of their own, with settings that other designs do not have.

`mine=silo,silo.log_buffer_entries=64` at the command line is `{"mine": ("silo",
{"silo.log_buffer_entries": 64})}` in Python, and a table `[variants.mine]` in a sweep. A variant is
compared, shown and stored as any design; its records say which design it is, and what it sets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from graven._engine import ConfigError
from graven.basics.arguments import known, mapping, setting_text, text
from graven.engine.catalogue import Catalogue, catalogue

OPTION = "--design-as"
"""The option that defines one, as messages call it."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
_NEXT = re.compile(r",(?=\s*[a-z][\w-]*\.\w+\s*=)")
"""A comma before the next key; any other belongs to a value."""

NO_VARIANTS: Mapping[str, Variant] = {}

RESERVED = ("all", "mean")
"""Names that stand for something else in lists of designs and in tables."""


@dataclass(frozen=True)
class Variant:
    """A design with settings of its own, to be compared under a name of its own.

    Attributes:
        design: The design that it is.
        settings: What it sets, by `SECTION.KEY`.

    Examples:
        >>> large = graven.Variant("silo", {"silo.log_buffer_entries": 64})
        >>> result = graven.compare(
        ...     "base,silo", "hash", transactions=200, variants={"large": large}, from_start=True
        ... )
        >>> result.designs
        ['base', 'silo', 'large']
        >>> record = result.find("large", "hash", threads=8)
        >>> record.simulated, record.variant
        ('silo', {'silo.log_buffer_entries': 64})
    """

    design: str
    settings: Mapping[str, object] = field(default_factory=dict)


def pairs_of(variant: Variant) -> tuple[tuple[str, str], ...]:
    """The settings of a variant as `--set` takes them."""
    return tuple((key, setting_text(value)) for key, value in variant.settings.items())


def checked(name: str, variant: Variant) -> Variant:
    """Returns the variant, if it may have that name.

    Raises:
        ConfigError: the name is not allowed or taken, the design is not known, or it does not read
            a key. The engine checks values when simulations are prepared.
    """
    known_names = catalogue()
    where = f"{OPTION} {name}"
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{OPTION}: `{name}` is not allowed as a name; letters, digits and _ . + - are"
        )
    if name in known_names.design_names:
        raise ConfigError(f"{where}: the name is taken by a design; choose another")
    if name in RESERVED:
        raise ConfigError(f"{where}: the name stands for something else; choose another")
    if variant.design not in known_names.design_names:
        raise ConfigError(f"{where}: {known('design', variant.design, known_names.design_names)}")
    for key in variant.settings:
        _check_read(known_names, where, variant.design, key)
    return variant


def _check_read(names: Catalogue, where: str, design: str, key: str) -> None:
    """Refuses a key that is another design's: setting it would change nothing."""
    members = names.members(design)
    if key in names.parameters and not any(names.reads(member, key) for member in members):
        own = sorted({key for member in members for key in names.design(member).keys})
        there = f"its own are {', '.join(own)}" if own else "it has none of its own"
        raise ConfigError(f"{where}: {design} does not read `{key}`; {there}")


def parsed(text_: str) -> tuple[str, Variant]:
    """Reads `NAME=DESIGN[,SECTION.KEY=VALUE...]`; a comma within a value belongs to it.

    Raises:
        ConfigError: it is not of that form, or not allowed.
    """
    name, equals, rest = (part.strip() for part in text_.partition("="))
    design, *pairs = _NEXT.split(rest)
    settings: dict[str, object] = {}
    for pair in pairs:
        key, _, value = (part.strip() for part in pair.partition("="))
        if key in settings:
            raise ConfigError(f"{OPTION} {name}: `{key}` is set twice")
        if not value:
            raise ConfigError(f"{OPTION} {name}: `{key}` has no value")
        settings[key] = value
    if not equals or not name or not design.strip() or "=" in design or "," in design:
        raise ConfigError(
            f"{OPTION}: `{text_}` is not of the form NAME=DESIGN,SECTION.KEY=VALUE,…, as in "
            "mine=silo,silo.log_buffer_entries=64"
        )
    return name, checked(name, Variant(design.strip(), settings))


def all_parsed(texts: Iterable[str]) -> dict[str, Variant]:
    """Variants by name, of several options.

    Raises:
        ConfigError: one is refused, or two have one name.
    """
    found: dict[str, Variant] = {}
    for item in texts:
        name, variant = parsed(item)
        if name in found:
            raise ConfigError(f"{OPTION} {name}: the name is taken by another variant")
        found[name] = variant
    return found


def given(variants: object) -> dict[str, Variant]:
    """Variants as Python gives them: by name, a `Variant`, or a design and its settings.

    Raises:
        ConfigError: they are something else, or one is refused.
    """
    found = {}
    for name, value in mapping("variants", variants).items():
        item = value
        if isinstance(item, tuple) and len(item) == 2:
            item = Variant(
                text(f"variants, {name}", item[0]), mapping(f"variants, {name}", item[1])
            )
        if not isinstance(item, Variant):
            raise ConfigError(
                f"variants, {name}: {value!r} is not a graven.Variant, nor a design with its "
                "settings, as in ('silo', {'silo.log_buffer_entries': 64})"
            )
        found[name] = checked(name, item)
    return found


def option_text(name: str, design: str, settings: Mapping[str, object]) -> str:
    """A variant as the option takes it."""
    return ",".join([f"{name}={design}", *(f"{k}={setting_text(v)}" for k, v in settings.items())])
