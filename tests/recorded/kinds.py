"""The kinds of runs: what is done with a run's spec, and what of it is recorded.

Files are written into a folder that is thrown away. Of a file that the engine writes, a digest is
recorded. No result has a path in it.
"""

from __future__ import annotations

import hashlib
import random
import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from . import engine
from .store import Json


def perform(kind: str, spec: Json) -> Json:
    """Does what a run says.

    Returns:
        An object with either `result`, or `error` and `message`.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return _outcome(lambda: _KINDS[kind](spec, folder), folder)


def _outcome(action: Callable[[], Json], folder: Path) -> Json:
    try:
        return {"result": action()}
    except engine.REFUSALS as error:
        message = str(error).replace(f"{folder}/", "")
        return {"error": type(error).__name__, "message": message}


def _memory(spec: Json, folder: Path) -> Json:
    """A replay of a request trace; `trace` says how it is drawn, or gives its lines."""
    trace = spec["trace"]
    text = "\n".join(trace["lines"]) + "\n" if "lines" in trace else _requests(**trace)
    path = folder / "requests.nvt"
    path.write_text(text, encoding="ascii")
    record = engine.memory_replay({**spec, "trace": str(path)})
    return {"trace": _digest(text.encode("ascii")), "record": record}


def _requests(layout: str, requests: int, seed: int) -> str:
    """Draws a request trace: bursts, some of them in one row, over a few lines.

    Args:
        layout: `NVMV0`, `NVMV1` (with old data), both of NVMain, or `DRAMsim3`.
        requests: How many.
        seed: Seed of everything that is drawn.
    """
    draw = random.Random(seed).getrandbits
    held: dict[int, bytes] = {}
    lines = [] if layout == "DRAMsim3" else [layout]
    cycle, line = 0, 0
    for _ in range(requests):
        cycle += draw(3) if draw(2) else 40 + draw(8)
        line = line + 1 if draw(1) else draw(9) * 7
        write, address = draw(2) < 3, 0x10000 + 64 * line
        if layout == "DRAMsim3":
            lines.append(f"0x{address:X} {'WRITE' if write else 'READ'} {cycle}")
            continue
        old = held.get(line, bytes(64))
        new = bytearray(old)
        if write:
            at = 8 * draw(3)
            new[at : at + 8] = draw(64).to_bytes(8, "little")
            held[line] = bytes(new)
        data = [new.hex(), old.hex()] if layout == "NVMV1" else [new.hex()]
        lines.append(" ".join([str(cycle), "RW"[write], hex(address), *data, str(draw(2))]))
    return "\n".join(lines) + "\n"


def _recording(spec: Json, folder: Path) -> Json:
    """A simulation with all its files, and what can be done with them.

    `simulation` is the simulation's spec; `replays` are specs of program-trace replays; `memory`
    is the spec of a replay of its requests; `export` and `import` are specs of conversions, and
    `imported` are replays of what has been imported. Names of files are put in here.
    """
    names = ("requests.nvt", "program.gvt", "loads.csv", "champsim.bin", "imported.gvt")
    requests, program, loads, champsim, imported = (folder / name for name in names)
    files = {
        "request_trace": str(requests),
        "program_trace": str(program),
        "bank_loads": str(loads),
    }
    found = {"record": engine.simulation({**spec["simulation"], **files})}
    found["requests"] = _digest(requests.read_bytes())
    found["bank_loads"] = loads.read_text(encoding="utf-8").splitlines()
    found["program"] = _program(program)

    def replay(trace: Path, replay_spec: Json) -> Json:
        whole = {**replay_spec, "trace": str(trace)}
        return _outcome(lambda: engine.trace_replay(whole), folder)

    found["replays"] = [replay(program, each) for each in spec["replays"]]
    memory = {**spec["memory"], "trace": str(requests)}
    found["memory"] = _outcome(lambda: engine.memory_replay(memory), folder)
    out = BytesIO()
    found["export"] = engine.trace_export({**spec["export"], "trace": str(program)}, out)
    found["exported"] = _digest(out.getvalue())
    champsim.write_bytes(out.getvalue())
    with champsim.open("rb") as file:
        info = engine.trace_import({**spec["import"], "out": str(imported)}, [file])
    found["import"] = _without_header_bytes(info, imported)
    found["imported"] = _program(imported)
    found["imported_replays"] = [replay(imported, each) for each in spec["imported"]]
    return found


def _digest(content: bytes) -> Json:
    return {
        "bytes": len(content),
        "lines": content.count(b"\n"),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _program(path: Path) -> Json:
    """What is in a program trace: its header as parsed, and a digest of all blocks.

    The header's text has names in it that may be renamed, and moves what comes after it; so it is
    in no digest, and its length is in no number.
    """
    content = path.read_bytes()
    header_end = _header_end(content)
    index = int.from_bytes(content[-32:-24], "little")
    blocks = content[header_end:index]
    return {**_without_header_bytes(engine.trace_info(str(path)), path), "blocks": _digest(blocks)}


def _header_end(content: bytes) -> int:
    return 20 + int.from_bytes(content[12:16], "little")


def _without_header_bytes(info: Json, path: Path) -> Json:
    length = info.pop("bytes")
    return {"info": {**info, "bytes_after_header": length - _header_end(path.read_bytes())}}


_KINDS: dict[str, Callable[[Json, Path], Json]] = {
    "simulation": lambda spec, _: engine.simulation(spec),
    "run-campaign": lambda spec, _: engine.run_campaign(spec),
    "adversary-campaign": lambda spec, _: engine.adversary_campaign(spec),
    "litmus-campaign": lambda spec, _: engine.litmus_campaign(spec),
    "memory": _memory,
    "recording": _recording,
    "cost": lambda spec, _: engine.cost(spec),
    "comparison": lambda spec, _: engine.comparison(spec),
    "catalogue": lambda _spec, _: engine.catalogue(),
}
