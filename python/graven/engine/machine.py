"""Machines: a preset's name, or a TOML file of the user's."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from graven import _engine
from graven._engine import ConfigError
from graven.basics import arguments
from graven.engine.catalogue import MachineValue, catalogue
from graven.engine.selection import Selection

DEFAULT = "silo"

COMPARISON = "comparison"
"""The table of a file that says what is compared on the machine."""


@dataclass(frozen=True)
class Machine:
    """A machine to simulate; `text` is the content of its file at `path`, `None` for a preset."""

    name: str
    text: str | None = None
    path: Path | None = field(default=None, compare=False, repr=False)

    @staticmethod
    def find(given: str | PathLike[str]) -> Machine:
        """A preset by name, or a file by anything that looks like a path.

        A file is known by its last component alone, so that results do not depend on the folder
        in which a command was run.

        Raises:
            ConfigError: the file cannot be read.
        """
        if isinstance(given, PathLike):
            given = Path(arguments.path("machine", given))
        else:
            given = arguments.text("machine", given)
        path = Path(given)
        looks_like_path = not isinstance(given, str) or len(path.parts) > 1
        if not looks_like_path and path.suffix != ".toml":
            return Machine(fspath(given))
        try:
            return Machine(path.name, path.read_text(encoding="utf-8"), path)
        except OSError as error:
            reason = error.strerror or error
            raise ConfigError(f"--machine: cannot read {path}: {reason}") from None
        except UnicodeDecodeError:
            raise ConfigError(f"--machine: {path} is not UTF-8 text") from None

    def spec(self) -> dict[str, str]:
        """As the engine takes it."""
        if self.text is None:
            return {"preset": self.name}
        return {"file": self.name, "text": self.text}

    def comparison(
        self, settings: Mapping[str, str], vary: Mapping[str, Sequence[str]] | None
    ) -> Selection:
        """The comparison on it; `vary`, if there is any, takes the place of what it varies.

        Raises:
            ConfigError: the machine, a setting or a variation is refused.
        """
        spec = {
            "machine": self.spec(),
            "set": [list(pair) for pair in settings.items()],
            "vary": None if vary is None else [[key, list(vary[key])] for key in vary],
        }
        return Selection.parse(json.loads(_engine.comparison(json.dumps(spec))))

    def values(self) -> dict[str, MachineValue]:
        """Values with their sources, as far as known, by `SECTION.KEY`."""
        if self.text is None:
            return _preset_values(self.name)
        try:
            file = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError:
            return {}
        values: dict[str, MachineValue] = {}
        extends = file.get("extends", [])
        for name in extends if isinstance(extends, list) else [extends]:
            values.update(_preset_values(str(name)))
        for section, table in file.items():
            if isinstance(table, dict) and section != COMPARISON:
                for key, value in table.items():
                    found = _annotated(f"{section}.{key}", value, self.name)
                    values[found.key] = found
        return values


def _preset_values(name: str) -> dict[str, MachineValue]:
    for preset in (*catalogue().machines, *catalogue().parts):
        if preset.name == name:
            return {value.key: value for value in preset.values}
    return {}


def _annotated(key: str, value: object, file: str) -> MachineValue:
    """A file's value: plain, or a table with `value` and `source` or `assumed`."""
    table: Mapping[str, Any] = value if isinstance(value, dict) else {"value": value}
    source, assumed = table.get("source"), table.get("assumed")
    if source is None and assumed is None:
        source = file
    return MachineValue(key, table.get("value"), "", "", source, assumed)
