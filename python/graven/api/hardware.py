"""Hardware cost from Python."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING

from graven.api.options import setting_texts
from graven.basics import arguments
from graven.engine.machine import Machine

if TYPE_CHECKING:
    from graven.results.costs import Cost


@arguments.in_python
def cost(
    design: str,
    *,
    machine: str | PathLike[str] | None = None,
    settings: Mapping[str, object] | None = None,
    **overrides: object,
) -> Cost:
    """Derives what a design's hardware costs, beside what its paper prints.

    Args:
        design: Name of a design.
        machine: Name of a preset, or path of a TOML file; that of the design's paper if not given.
        settings: Configuration by `SECTION.KEY`.
        **overrides: Configuration by `SECTION__KEY`.

    Raises:
        ConfigError: something was refused.

    Examples:
        >>> cost = graven.cost("silo")
        >>> cost["log-buffer"].value, cost["log-buffer"].unit
        (680, 'B')
        >>> cost["log-buffer"].formula
        'silo.log_buffer_entries × (log-entry + log-address)'

        Bytes that the design adds to the controller, with the buffer of its paper and with one of
        40 entries:

        >>> cost.totals["controller"]
        5440
        >>> graven.cost("silo", silo__log_buffer_entries=40).totals["controller"]
        10880
    """
    from graven.results.costs import derive

    where = None if machine is None else Machine.find(machine)
    return derive(arguments.text("design", design), where, setting_texts(settings, overrides))
