"""Files that commands write: none twice, and none that the command reads.

A command with an option or argument of the type `Written` is a `Writer`, which compares the files
named there with each other and with all that the command is given besides, before it does anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from graven.basics.output import apart
from graven.cli.terminal import refusing


class Written(click.Path):
    """The path of a file that a command writes."""

    def __init__(self, **more: Any) -> None:  # noqa: ANN401 - click's own arguments
        super().__init__(path_type=Path, **more)


class Writer(click.Command):
    """A command that writes files."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's own signature
        """Runs the command if its files are all different ones."""
        outputs, inputs = [], []
        for param in self.get_params(ctx):
            value = ctx.params.get(param.name or "")
            if isinstance(param.type, Written):
                paths = [path for path in _flat(value) if isinstance(path, Path)]
                outputs += [(_name(param), path) for path in dict.fromkeys(paths)]
            elif not isinstance(param.type, click.Path) or param.type.file_okay:
                inputs += [(_name(param), path) for path in _files(value)]
        with refusing():
            apart(outputs, inputs)
        return super().invoke(ctx)


class Writers(click.Group):
    """A group of commands that write files."""

    command_class = Writer


def _name(param: click.Parameter) -> str:
    return param.opts[0] if isinstance(param, click.Option) else param.human_readable_name


def _flat(value: object) -> Iterator[object]:
    if isinstance(value, tuple | list):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def _files(value: object) -> Iterator[Path]:
    """Paths among what was given: also machines, workloads and arguments of programs, in lists."""
    for item in _flat(value):
        if isinstance(item, Path):
            yield item
        elif isinstance(item, str):
            words = (word.strip() for word in item.split(","))
            yield from (Path(word) for word in words if "/" in word or Path(word).suffix)
