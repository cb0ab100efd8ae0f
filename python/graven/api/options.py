"""Arguments that several functions take: names, settings, executors, observers, stores."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from types import EllipsisType
from typing import TypeAlias, cast

from graven._engine import ConfigError
from graven.basics import arguments
from graven.basics.folders import store_folder
from graven.engine.catalogue import catalogue
from graven.engine.choice import Choice
from graven.engine.machine import Machine
from graven.engine.variants import NO_VARIANTS, OPTION, Variant
from graven.running.job import Job
from graven.running.pool import Observer
from graven.running.work import Executor, Keep

Names: TypeAlias = str | Iterable[str] | None
"""One name, a list separated by commas, several names, or nothing for the default."""

Variations: TypeAlias = Mapping[str, str | Iterable[object]] | None
"""Values by `SECTION.KEY`, several or a list separated by commas; or nothing for the default."""

Variants: TypeAlias = Mapping[str, Variant | tuple[str, Mapping[str, object]]] | None
"""Designs of the caller's making, by name; or nothing."""

Folder: TypeAlias = str | PathLike[str] | EllipsisType | None
"""A folder with a store of results, `...` for that of the command (`graven-results/store`, or what
`GRAVEN_STORE` names), or nothing, and then no result is kept or found."""


def checked_job(
    design: object,
    workload: str,
    machine: str | PathLike[str],
    threads: object,
    transactions: object,
    seed: object,
    settings: tuple[tuple[str, str], ...],
) -> Job:
    """A job of arguments that are as they were given, but for the workload and the settings.

    Raises:
        ConfigError: one is refused.
    """
    return Job(
        arguments.text("design", design),
        workload,
        Machine.find(machine),
        arguments.integer_or_none("threads", threads),
        arguments.integer_or_none("transactions", transactions),
        arguments.seed(seed),
        settings,
    )


def observer(observe: object) -> Observer | None:
    """Who is told of the progress: the function that is given, or a bar in a notebook.

    Raises:
        ConfigError: it is no function.
    """
    from graven.running.progress import of_notebook

    arguments.function_or_none("observe", observe)
    return of_notebook() if observe is None else cast("Observer", observe)


def executor_of(on: object, jobs: object) -> Executor:
    """The executor of simulations.

    Raises:
        ConfigError: there is no such place, or `jobs` is no number.
    """
    from graven.executors.named import executor

    return executor(arguments.text("on", on), arguments.integer_or_none("jobs", jobs))


def workload_text(given: object) -> str:
    """A name, or a program trace: by its path, too."""
    if not isinstance(given, PathLike):
        given = arguments.text("workload", given)
    return arguments.path("workload", given)


def keeper_of(store: Folder, *, fresh: bool) -> Keep | None:
    """The keeper of results in a folder, which warns of damage there."""
    if store is None:
        return None
    from graven.store import Store
    from graven.store.keeper import Keeper

    is_default = isinstance(store, EllipsisType)
    folder = store_folder() if is_default else Path(arguments.path("store", store))
    fresh = arguments.flag("fresh", fresh)
    return Keeper(Store(folder, warn), fresh=fresh)


def warn(text: str) -> None:
    """Warns of damage in a store."""
    warnings.warn(text, RuntimeWarning, stacklevel=2)


def choose(
    designs: Names,
    workloads: Names,
    machine: Machine,
    settings: Mapping[str, str],
    vary: Variations,
    *,
    threads: Iterable[int] | None = None,
    transactions: int | None = None,
    metrics: Names = None,
    variants: Mapping[str, Variant] = NO_VARIANTS,
) -> Choice:
    """Decides what is compared: as given, else as the machine says, else the default.

    Raises:
        ConfigError: the machine, a setting, a variation or an empty list is refused, or a variant
            sets what is varied. Unknown names are found when the simulations are prepared.
    """
    said = machine.comparison(settings, None if vary is None else _variation_texts(vary))
    names = design_names(said.designs if designs is None else designs)
    names += [name for name in variants if name not in names]
    for item in said.vary or ():
        for name, variant in variants.items():
            if item.key in variant.settings:
                raise ConfigError(
                    f"{OPTION} {name}: `{item.key}` does not fit: {item.origin} varies it"
                )
    counts = said.threads if threads is None else tuple(threads)
    return Choice(
        names,
        workload_names(said.workloads if workloads is None else workloads),
        (None,) if counts is None else counts,
        said.transactions if transactions is None else transactions,
        said.baseline if said.baseline in names else None,
        said.vary or (),
        said.metrics if metrics is None else tuple(_unique("stats", split_names(metrics))),
        variants,
    )


def _variation_texts(vary: Mapping[str, str | Iterable[object]]) -> dict[str, list[str]]:
    found = {}
    for key, values in arguments.mapping("vary", vary).items():
        several = values.split(",") if isinstance(values, str) else values
        if not isinstance(several, Iterable):
            raise ConfigError(f"vary, {key}: {values!r} is one value; give a list")
        found[key] = [arguments.setting_text(value) for value in several]
    return found


def sound_designs() -> list[str]:
    """Designs that are to keep their guarantee, as far as is known."""
    return [design.name for design in catalogue().designs if design.safe]


def design_names(given: Names) -> list[str]:
    """Designs by name; `all` stands for every design, nothing for those compared by default."""
    known = catalogue().designs
    if given is None:
        return [design.name for design in known if design.default]
    groups = {"all": [design.name for design in known]}
    return _unique("designs", [n for name in split_names(given) for n in groups.get(name, [name])])


def workload_names(given: Names) -> list[str]:
    """Workloads by name or group; nothing stands for `micro`."""
    groups = catalogue().workload_groups()
    names = split_names("micro" if given is None else given)
    for name in names:
        if name in groups and not groups[name]:
            raise ConfigError(f"workloads: the group `{name}` has no members yet")
    return _unique("workloads", [n for name in names for n in groups.get(name, [name])])


def split_names(given: str | Iterable[str]) -> list[str]:
    """Names of a list, of several lists, or of one in which commas separate them."""
    texts = [given] if isinstance(given, str) else list(given)
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def _unique(what: str, names: Iterable[str]) -> list[str]:
    found = list(dict.fromkeys(names))
    if not found:
        raise ConfigError(f"{what}: the list is empty; `graven list {what}` shows the names")
    return found


def setting_texts(
    settings: Mapping[str, object] | None, overrides: Mapping[str, object] | None = None
) -> dict[str, str]:
    """Settings as the texts that `--set` would take, by `SECTION.KEY`."""
    merged = arguments.mapping("settings", settings)
    merged |= {key.replace("__", ".", 1): value for key, value in (overrides or {}).items()}
    return {key: arguments.setting_text(value) for key, value in merged.items()}
