"""The recorded documents in files: one file for each group, one line of JSON for each run."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Json = Any
"""A value as `json.loads` gives it."""

FOLDER = Path(__file__).parent / "records"
SUFFIX = ".jsonl.xz"


def groups() -> list[str]:
    """The groups that are recorded."""
    return sorted(path.name.removesuffix(SUFFIX) for path in FOLDER.glob(f"*{SUFFIX}"))


def read(group: str) -> Iterator[Json]:
    """The documents of a group, in their order."""
    with lzma.open(FOLDER / f"{group}{SUFFIX}", "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def write(group: str, documents: Iterable[Json]) -> int:
    """Writes a group; the same documents give the same bytes. Returns how many there are."""
    lines = [json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in documents]
    content = "".join(f"{line}\n" for line in lines).encode("utf-8")
    FOLDER.mkdir(exist_ok=True)
    packed = lzma.compress(content, check=lzma.CHECK_CRC64, preset=9 | lzma.PRESET_EXTREME)
    (FOLDER / f"{group}{SUFFIX}").write_bytes(packed)
    return len(lines)
