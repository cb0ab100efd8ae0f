"""Commands as text: the `graven compare` that makes some results."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

from graven.engine.variants import OPTION, Variant, option_text
from graven.results.record import KIND, STEADY


def compare_command(
    options: Mapping[str, object],
    *,
    settings: Mapping[str, object] | None = None,
    vary: Mapping[str, Iterable[object]] | None = None,
    variants: Mapping[str, Variant] | None = None,
    flags: Iterable[str] = (),
) -> str:
    """The command with these options, as a shell takes it.

    Args:
        options: By name; several values in a list or a tuple, and nothing of what is `None`.
        settings: By `SECTION.KEY`. Without a region in steady state among them, the command is that
            of whole runs.
        vary: The same with several values each.
        variants: Variants by name.
        flags: Options that have no value.
    """
    words = ["graven", "compare"]
    for name, value in options.items():
        if value is not None:
            words += [
                f"--{name}",
                _listed(value) if isinstance(value, list | tuple) else str(value),
            ]
    set_for_all = dict(settings or {})
    if set_for_all.pop(KIND, None) != STEADY:
        flags = ["from-start", *flags]
    for key, value in set_for_all.items():
        words += ["--set", f"{key}={_plain(value)}"]
    for key, values in (vary or {}).items():
        words += ["--vary", f"{key}={_listed(values)}"]
    for name, variant in (variants or {}).items():
        words += [OPTION, option_text(name, variant.design, variant.settings)]
    return shlex.join([*words, *(f"--{flag}" for flag in flags)])


def _listed(values: Iterable[object]) -> str:
    return ",".join(map(_plain, values))


def _plain(value: object) -> str:
    """A value as `--set` takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
