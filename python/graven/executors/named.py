"""Executors by name: `local`, `local:N`, `dask://HOST:PORT`, `slurm`."""

from __future__ import annotations

import re

from graven._engine import ConfigError
from graven.executors.local import LongestFirst
from graven.running.work import Executor

ALLOWED = "local, local:N, dask://HOST:PORT or slurm"

_LOCAL = re.compile(r"local(:(?P<workers>[1-9][0-9]*))?")
_DASK = re.compile(r"dask://(?P<address>(\[[0-9A-Fa-f:]+\]|[^\s:/\[\]]+):[0-9]{1,5})")


def executor(on: str, workers: int | None = None, name: str = "--on") -> Executor:
    """The executor of a name.

    Args:
        on: The name.
        workers: Simulations at a time on this host; not with another executor.
        name: Name of the argument in messages.

    Raises:
        ConfigError: it is something else.
    """
    if found := _LOCAL.fullmatch(on):
        said = found["workers"]
        if said is not None and workers is not None and int(said) != workers:
            raise ConfigError(f"{name}: `{on}` and --jobs {workers} contradict each other")
        return LongestFirst(workers if said is None else int(said))
    if workers is not None and (on == "slurm" or on.startswith("dask")):
        raise ConfigError(f"--jobs: simulations at a time on this host; not with {name} {on}")
    if found := _DASK.fullmatch(on):
        from graven.executors.dask import Dask

        return Dask(found["address"])
    if on == "slurm":
        from graven.executors.slurm import Slurm

        return Slurm()
    raise ConfigError(f"{name}: `{on}` is not allowed; {ALLOWED}")
