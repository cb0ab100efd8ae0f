"""Records of results, and their form in a file.

A line of a file is a record, in three columns with a tab between them, all ASCII: the SHA-256 of
the other two in hexadecimal digits; what is known of the result, as one JSON object; and the
result, as the engine said it in JSON. The second has

    schema      1
    digest      of what was asked for, by which the result is found again
    kind        what it is: `simulation`, `crash`, and so on
    asked       what was asked for: configuration, programs, version, build; the digest is of this
    written_at  when, in UTC; it orders nothing
    host_s      how long it took, in seconds; null if that is not known

What is asked for is all that a result depends on, so two records of one digest have one result.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

SCHEMA = 1
"""The newest schema that this version reads, and the one that it writes."""

DIGEST_DIGITS = 32
"""Hexadecimal digits of a digest."""


class DamagedRecord(Exception):
    """A line is not what was written; the message says how that shows."""


class NewerRecord(Exception):
    """A record is of a schema that this version does not know."""


@dataclass(frozen=True)
class Request:
    """Request that a result answers.

    Attributes:
        kind: What sort of result it is.
        asked: All that the result depends on.
    """

    kind: str
    asked: Mapping[str, Any]

    @cached_property
    def digest(self) -> str:
        """The digest that the result is found by: the same if the same is asked for."""
        return digest_of(self.kind, self.asked)


def digest_of(kind: str, asked: Mapping[str, Any]) -> str:
    """The digest of what is asked for."""
    text = json.dumps({"kind": kind, "asked": asked}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_DIGITS]


@dataclass(frozen=True)
class StoredRecord:
    """A record, as it is in a store."""

    request: Request
    written_at: str
    host_s: float | None
    result: str

    @staticmethod
    def now(request: Request, result: str, host_s: float | None) -> StoredRecord:
        """A record of a result that has just come."""
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        return StoredRecord(request, moment, None if host_s is None else round(host_s, 3), result)

    def line(self) -> bytes:
        """The record as a line, with its end."""
        known = {
            "schema": SCHEMA,
            "digest": self.request.digest,
            "kind": self.request.kind,
            "asked": self.request.asked,
            "written_at": self.written_at,
            "host_s": self.host_s,
        }
        head = json.dumps(known, separators=(",", ":"))
        # The result stands there as it came: numbers keep their digits.
        body = f"{head}\t{one_line(self.result)}".encode("ascii")
        return b"%s\t%s\n" % (_checksum(body), body)

    @staticmethod
    def parse(line: bytes) -> StoredRecord:
        """The record in a line.

        Raises:
            DamagedRecord: the line is not what was written.
            NewerRecord: it is of a schema that this version does not know.
        """
        if not line.endswith(b"\n"):
            raise DamagedRecord("its end is missing")
        checksum, _, body = line[:-1].partition(b"\t")
        if checksum != _checksum(body):
            raise DamagedRecord("its checksum is of something else")
        try:
            return StoredRecord._of(body)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            # Nobody who writes records has written this, for all that its checksum is right.
            raise DamagedRecord("it has not what a record has") from None

    @staticmethod
    def _of(body: bytes) -> StoredRecord:
        head, _, result = body.decode("ascii").partition("\t")
        known = json.loads(head)
        if known["schema"] > SCHEMA:
            raise NewerRecord(f"its schema is {known['schema']}; this version knows {SCHEMA}")
        kind, asked, moment, host_s = (
            known[name] for name in ("kind", "asked", "written_at", "host_s")
        )
        datetime.fromisoformat(moment)
        if not isinstance(kind, str) or not isinstance(asked, dict):
            raise TypeError(kind)
        if not isinstance(host_s, int | float | None):
            raise TypeError(host_s)
        request = Request(kind, asked)
        if known["digest"] != request.digest:
            raise DamagedRecord("its digest is of something else")
        return StoredRecord(request, moment, host_s, result)


def one_line(result: str) -> str:
    """A result as one line in ASCII without tabs, as JSON can always be written; else as it is."""
    return _NOT_IN_LINE.sub(_escaped, result)


_NOT_IN_LINE = re.compile(r"[\n\r\t]|[^\x00-\x7f]")


def _escaped(character: re.Match[str]) -> str:
    """A space for what separates, which strings of JSON do not have; all else is in strings."""
    if character[0].isspace() and character[0].isascii():
        return " "
    units = character[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()
