"""Files that `--state` names: what a campaign has done so far, to continue from.

Such a file is a JSON document: `state`, which is what the campaign gave, and `sha256`, the digest
of that as JSON with sorted keys and without spaces. A state that was changed or damaged since it
was written is refused, and the file stays as it is.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from graven._engine import ConfigError
from graven.basics import output
from graven.basics.errors import OutputError


@dataclass(frozen=True)
class StateFile:
    """A file of the user's."""

    where: Path

    def check(self, room: int) -> None:
        """Sees that it can be written, and that `room` bytes are free.

        Raises:
            OutputRefusedError: it cannot, or they are not.
        """
        output.check([self.where], room, make=self.where.parent)

    def read(self) -> str | None:
        """Reads what was written last; `None` if there is no such file.

        Raises:
            ConfigError: it is no state, or has changed since it was written.
            OutputError: it cannot be read.
        """
        try:
            text = self.where.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            raise self.refused("it is not UTF-8 text") from None
        except OSError as error:
            raise OutputError(f"cannot read {self.where}: {error.strerror or error}") from None
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self.refused(f"it is no JSON document: {error}") from None
        if not isinstance(document, dict) or set(document) != {"sha256", "state"}:
            raise self.refused("it is no state that Graven has written: no `sha256` and `state`")
        if document["sha256"] != _digest(document["state"]):
            raise self.refused("it was changed since it was written: its checksum is another")
        return json.dumps(document["state"])

    def write(self, state: str) -> None:
        """Replaces the file as a whole.

        Raises:
            OutputError: it cannot be written; what was there before stands.
        """
        output.write(self.where, sealed(json.loads(state)).encode())

    def refused(self, why: object) -> ConfigError:
        """The error to raise if it cannot be used."""
        return ConfigError(
            f"--state: {self.where}: {why}; give what it was begun with, or another file"
        )


def sealed(state: object) -> str:
    """The text of a file with that state."""
    return json.dumps({"sha256": _digest(state), "state": state}, indent=1) + "\n"


def _digest(state: object) -> str:
    text = json.dumps(state, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
