"""Power failures of a program as it is: what may be left of its files, and whether it copes.

The engine explores what the rules of a processor, or of the page cache, allow to be missing, and
asks the user's commands. Here traces meet their model, violations their words, and recoveries,
which are captured, power failures of their own.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path, PurePath
from typing import Any, Protocol

from graven import _engine
from graven._engine import ConfigError
from graven.basics.errors import CaptureError
from graven.basics.numbers import exact
from graven.laboratory.hygiene import place_of, where
from graven.laboratory.state_file import StateFile
from graven.running.pool import Observer, Pool, failures_text, kind_of

PAGE_CACHE = "page-cache"
"""Model of stores to a mapped file on an ordinary disk."""

MODELS = ("x86-adr", "x86-adr-amd", "x86-eadr", "arm-pop", "arm-podp", PAGE_CACHE)
"""Models, by name."""

ACKNOWLEDGED = ("return", "never")
"""When an operation's effects must survive: when it has returned, or never."""

FLUSHES = ("clwb", "clflushopt", "clflush")
CLEANS = ("dc cvap", "dc cvadp", "dc cvac", "dc civac")
SYNCS = ("msync", "fsync", "fdatasync", "sync_file_range", "sync")

SHELL = frozenset({"&&", "||", "|", ";", "<", ">", ">>", "2>", "&"})
"""Words that only a shell understands."""

QUESTION = ("model", "sector", "acknowledges", "verify", "kept", "dump", "serve", "ask")
"""Parts of a question by which an image is judged."""

ROOM = 1 << 20
"""Bytes that a state needs at least."""

PROTOCOLS = ("redis", "memcached")
"""Protocols of servers, for `Asked.ask`."""

PLACES = ("{image}", "{folder}")
"""Words of a command that stand for files."""

RECOVERIES = 6
"""Recoveries in which power fails, too, of images from all over the run."""

REPAIRS = {
    "flush-and-fence": "flush the line of {missing} and execute a fence before {present}",
    "fence": "execute a fence between the flush of the line of {missing} and {present}",
    "sync": "synchronise the page of {missing} (msync with MS_SYNC) before {present}",
    "later-store": "let {missing} store first, and make that durable before {present}",
    "together": "no flush or fence orders the two so that both orders are safe: they must become "
    "durable together, in one aligned store of 8 bytes or by a log",
}
"""Repairs, in words."""


@dataclass(frozen=True)
class Asked:
    """Question about a program's files.

    Attributes:
        model: Rules of what may be missing after a power failure; `None`: by the trace.
        sector: Bytes that the page cache writes as a whole.
        verify: Commands that judge, run in turn on the same files: each must end with 0.
            `{image}` is the first file, `{folder}` where all are.
        loop: Command that judges and is kept running: it reads the path of an image in each line,
            and answers with a line, `ok` or what is wrong.
        dump: Command that prints the state, which must be that before or after the operation under
            way.
        serve: Command that starts a server on the files, which listens on `{port}` of the host.
        ask: Command that asks the server and ends with 0 if it answers well; or a protocol, by
            `PROTOCOLS`, by which it must answer.
        acknowledge: When operations must survive, by `ACKNOWLEDGED`.
        recover: Command that recovers an image; power fails in it, too.
        command_seconds: Longest time of a command.
        images: Most images that are judged.
        seconds: Longest time in all.
        violations: Most violations.
        seed: Seed of what is drawn.
        jobs: Judges side by side.
        mend: Whether repairs are tried.
        state: File with the verdicts so far, to continue from.
        only: One image, by its name.
        keep: Folder where the files of the first violation, or of the one image, are kept.
    """

    model: str | None = None
    sector: int = 4096
    verify: tuple[str, ...] = ()
    loop: str | None = None
    dump: str | None = None
    serve: str | None = None
    ask: str | None = None
    acknowledge: str = "return"
    recover: str | None = None
    command_seconds: float = 20.0
    images: int = 20_000
    seconds: float = 60.0
    violations: int = 10
    seed: int = 1
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    mend: bool = True
    state: Path | None = None
    only: str | None = None
    keep: Path | None = None

    def spec(
        self, trace: str, model: str, known: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The engine's form; `known` are verdicts of before, and then all verdicts come back."""
        return {
            "known": known,
            "trace": trace,
            "model": model,
            "sector": self.sector,
            "acknowledges": self.acknowledge == ACKNOWLEDGED[0],
            "verify": list(self.verify),
            "kept": self.loop,
            "dump": self.dump,
            "serve": self.serve,
            "ask": self.ask,
            "verify_seconds": self.command_seconds,
            "images": self.images,
            "seconds": self.seconds,
            "violations": self.violations,
            "seed": self.seed,
            "workers": self.jobs,
            "mend": self.mend,
            "only": self.only,
            "keep": None if self.keep is None else str(self.keep),
        }


@dataclass(frozen=True)
class Powerfail:
    """Outcome of an exploration.

    Attributes:
        program: Arguments of the program.
        trace: Trace of its run.
        model: Rules of what may be missing.
        counts: Events, stores, crash points, images and pairs of lines; why it ended.
        violations: Violations: `missing`, `present`, `said`, `repair`, `timeline`, `image` and so
            on; `edge` and `mend` in words.
        recoveries: Recoveries in which power failed, too: image, and counts of their exploration.
        notes: Sentences about what was judged, and what was not.
    """

    program: tuple[str, ...]
    trace: str
    model: str
    counts: Mapping[str, Any]
    violations: tuple[Mapping[str, Any], ...]
    recoveries: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As a document."""
        return {
            **vars(self),
            "program": list(self.program),
            "violations": list(self.violations),
            "recoveries": list(self.recoveries),
            "notes": list(self.notes),
        }


def _history_counts(path: str) -> Mapping[str, int]:
    """How often each kind of entry is in a trace's history; all of it is read."""
    counts: dict[str, int] = json.loads(_engine.trace_history_counts(path))
    return counts


def _model_of(counts: Mapping[str, int]) -> tuple[str, str]:
    """Model that fits a history, and why: by the flushes that the program executes."""

    def has(names: Sequence[str]) -> str | None:
        return next((name for name in names if counts.get(name)), None)

    if (flush := has(FLUSHES)) is not None:
        return "x86-adr", f"the program executes {flush}"
    if (clean := has(CLEANS)) is not None:
        return "arm-pop", f"the program executes {clean}"
    if counts.get("non-temporal store"):
        return "x86-adr", "the program stores non-temporally"
    if (sync := has(SYNCS)) is not None:
        return PAGE_CACHE, f"the program calls {sync}, and flushes nothing"
    return "x86-adr", "the program neither flushes nor synchronises anything"


class Capture(Protocol):
    """`graven.capture.capture`."""

    def __call__(
        self, arguments: Sequence[str], trace: Path, *, pm_files: tuple[str, ...], only_pm: bool
    ) -> object:
        """Runs a program, and makes a trace."""


def explore(
    trace: str | PathLike[str],
    asked: Asked,
    capture: Capture,
    observe: Observer | None = None,
) -> Powerfail:
    """Explores what power failures leave of a captured program.

    Args:
        trace: The trace of `graven capture`.
        asked: The question.
        capture: Captures recoveries, for `asked.recover`.
        observe: Called several times a second.

    Raises:
        ConfigError: something was refused, or the judge refuses files that are good.
        TraceError: it is no trace of a captured program, or a broken one.
        SimulationError: the judge cannot be run, or does not say the same twice.
    """
    path = str(trace)
    if asked.recover is not None:
        _recovery(asked.recover)
    named: list[tuple[str, str | None]] = [("verify", command) for command in asked.verify]
    named += [("dump", asked.dump), ("serve", asked.serve), ("recover", asked.recover)]
    for option, command in named:
        if command is not None and not any(place in command for place in PLACES):
            raise ConfigError(
                f"--{option}: {command!r} names no files; allowed: {' or '.join(PLACES)} in it"
            )
    if asked.serve is not None and "{port}" not in asked.serve:
        raise ConfigError(f"--serve: {asked.serve!r} names no port; allowed: {{port}} in it")
    if asked.ask is not None and asked.serve is None:
        raise ConfigError("--ask goes with --serve: it asks the server")
    header = json.loads(_engine.trace_info(path))["header"]
    if header.get("capture") is None:
        raise ConfigError(f"{path}: it is no trace of a captured program")
    model, why = asked.model, None
    counts: Mapping[str, int] = {}
    if model is None or model.startswith("arm"):
        counts = _history_counts(path)
    if model is None:
        model, why = _model_of(counts)
    found = _continued(path, asked, model, observe)
    violations = [_with_words(violation, header) for violation in found.pop("violations")]
    samples = found.pop("samples")
    recoveries: list[Mapping[str, Any]] = []
    in_recovery: list[dict[str, Any]] = []
    if asked.recover is not None and found["end"] != "cancelled":
        for outcome in _in_recovery(path, asked, model, samples, capture):
            recoveries.append(outcome["recovery"])
            in_recovery.extend(outcome["violations"])
    violations.extend(_merged(in_recovery))
    notes = (
        *_notes(found, header["capture"], model, why, recoveries),
        *_cleans(counts, model),
    )
    program = tuple(header["capture"].get("arguments") or ())
    return Powerfail(program, path, model, found, tuple(violations), tuple(recoveries), notes)


def _cleans(counts: Mapping[str, int], model: str) -> Iterable[str]:
    """Says when an Arm program cleans lines to a point that its model does not take for durable."""
    if not model.startswith("arm"):
        return
    if not counts.get("dc cvap") and not counts.get("dc cvadp") and counts.get("dc cvac"):
        yield (
            "The program cleans lines to the point of coherence alone (DC CVAC), which no model "
            "takes for durable."
        )


def judge_one(trace: str | PathLike[str], asked: Asked) -> Mapping[str, Any]:
    """Judges the image that `asked.only` names: `image`, and `said`, which is none if it is good.

    Raises:
        As `explore`.
    """
    model = asked.model or _model_of(_history_counts(str(trace)))[0]
    return _explored(str(trace), asked, model, None)


def _continued(path: str, asked: Asked, model: str, observe: Observer | None) -> dict[str, Any]:
    """Explores, from the state of before if there is one, and keeps the new state."""
    if asked.state is None:
        return _explored(path, asked, model, observe)
    state = StateFile(asked.state)
    state.check(ROOM)
    question = {
        "trace": hashlib.sha256(Path(path).read_bytes()).hexdigest(),
        **{key: asked.spec(path, model)[key] for key in QUESTION},
    }
    known: dict[str, Any] = {}
    if (text := state.read()) is not None:
        before = json.loads(text)
        if before.get("question") != question:
            raise state.refused("it is of another trace, model or judge")
        known = before["verdicts"]
    found = _explored(path, asked, model, observe, known)
    state.write(json.dumps({"question": question, "verdicts": found.pop("verdicts")}))
    return found


def _explored(
    path: str,
    asked: Asked,
    model: str,
    observe: Observer | None,
    known: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    campaign = _engine.Campaign("powerfail", json.dumps(asked.spec(path, model, known)))
    outcome = Pool([(PurePath(path).name, campaign)], workers=1).run(observe)
    if outcome.failures:
        raise kind_of(outcome.failures, ConfigError, _engine.TraceError)(
            failures_text(outcome.failures)
        )
    if 0 not in outcome.texts:
        raise KeyboardInterrupt
    found: dict[str, Any] = json.loads(outcome.texts[0])
    return found


def _recovery(command: str) -> list[str]:
    """Words of a recovery's command, which runs without a shell.

    Raises:
        ConfigError: it needs one, or does not exist.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"--recover: {command!r}: {error}") from None
    operators = [word for word in words if word in SHELL]
    if operators:
        raise ConfigError(
            f"--recover: {command!r} needs a shell for {operators[0]}; allowed: a program and its "
            "arguments, or a script that runs it"
        )
    if not words or shutil.which(words[0]) is None:
        raise ConfigError(f"--recover: {command!r} is no program that can be run")
    return words


def _in_recovery(
    path: str, asked: Asked, model: str, samples: Sequence[str], capture: Capture
) -> Iterable[dict[str, Any]]:
    """Lets power fail in recoveries of some images that the judge finds good."""
    header = json.loads(_engine.trace_info(path))["header"]
    name_of_first = PurePath(header["capture"]["files"][0]).name
    step = max(1, len(samples) // RECOVERIES)
    tried = 0
    for name in [*samples[::step], *samples]:
        if tried == RECOVERIES:
            break
        with tempfile.TemporaryDirectory(prefix="graven-recovery-") as place:
            folder = Path(place) / "files"
            one = replace(asked, only=name, keep=folder, dump=None)
            if _explored(path, one, model, None)["said"] is not None:
                # It is a violation already.
                continue
            tried += 1
            yield _one_recovery(folder, name, asked, model, folder / name_of_first, capture)


def _one_recovery(
    folder: Path, name: str, asked: Asked, model: str, first: Path, capture: Capture
) -> dict[str, Any]:
    """Lets power fail in the recovery of an image whose files are in a folder."""
    command = (asked.recover or "").replace("{image}", str(first))
    command = command.replace("{folder}", str(folder))
    trace = folder.parent / "recovery.gvt"
    try:
        capture(shlex.split(command), trace, pm_files=(f"{folder}/*",), only_pm=True)
    except CaptureError as error:
        # A recovery that stores nothing cannot be interrupted.
        return {"recovery": {"image": name, "said": str(error)}, "violations": []}
    seconds = asked.seconds / RECOVERIES
    again = replace(asked, recover=None, dump=None, keep=None, seconds=seconds)
    found = _explored(str(trace), again, model, None)
    of = json.loads(_engine.trace_info(str(trace)))["header"]
    found.pop("samples")
    violations = [
        {**_with_words(violation, of), "recovery_of": name} for violation in found.pop("violations")
    ]
    return {"recovery": {"image": name, **found}, "violations": violations}


def _merged(violations: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Violations in several recoveries, those of the same lines as one."""
    merged: dict[str, dict[str, Any]] = {}
    for violation in violations:
        if (known := merged.get(violation["edge"])) is not None:
            known["count"] += violation["count"]
        else:
            merged[violation["edge"]] = violation
    return list(merged.values())


def _with_words(violation: Mapping[str, Any], header: Mapping[str, Any]) -> dict[str, Any]:
    """A violation with the words that belong to it."""
    missing, present = (
        [
            {**store, "where": where(store["place"]), "at": _at(store, header)}
            for store in violation[key]
        ]
        for key in ("missing", "present")
    )
    after = None if violation["after"] is None else where(violation["after"])
    words = {**violation, "missing": missing, "present": present, "after_where": after}
    words["timeline"] = [
        {**step, "where": where(step["place"]), "at": _at(step, header), "mark": step.get("is")}
        for step in violation["timeline"]
    ]
    words["recovery_of"] = None
    words["edge"] = _edge(missing, present, after)
    words["mend"] = _mend(violation["repair"], missing, present, violation["operations"])
    return words


def _listed(stores: Sequence[Mapping[str, Any]]) -> str:
    names = list(dict.fromkeys(store["where"] for store in stores))
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _inside(store: Mapping[str, Any]) -> Mapping[str, Any]:
    """The innermost frame of a library's own code, by the function through which it was entered."""
    own = (frame for frame in store["calls"] if "/libc.so" not in frame.get("module", ""))
    frame = next(own, store["calls"][0])
    return {**frame, "function": store["place"].get("function")}


def _what(stores: Sequence[Mapping[str, Any]], inside: bool) -> str:
    """Data that stores are of; with `inside` named by the instructions within a library."""
    places = [
        {"where": where(_inside(store))} if inside and store["calls"] else store for store in stores
    ]
    verb = "stores" if len({place["where"] for place in places}) == 1 else "store"
    return f"what {_listed(places)} {verb}"


def _edge(
    missing: Sequence[Mapping[str, Any]], present: Sequence[Mapping[str, Any]], after: str | None
) -> str:
    if not missing:
        return f"what is visible behind {after} is not consistent: a kill of the process leaves it"
    if not present:
        return f"{_what(missing, False)} is lost, though the program has continued behind it"
    # Without lines of a library both may be one function.
    alike = {store["where"] for store in missing} == {store["where"] for store in present}
    return f"{_what(present, alike)} is durable without {_what(missing, alike)}"


def _mend(
    repair: Mapping[str, Any] | None,
    missing: Sequence[Mapping[str, Any]],
    present: Sequence[Mapping[str, Any]],
    operations: int,
) -> str | None:
    if repair is None:
        return None
    end = "the end of the operation" if operations else "the end"
    there = end if repair["before_end"] or not present else _listed(present)
    text = REPAIRS[repair["kind"]].format(missing=_listed(missing), present=there)
    if not repair["images"]:
        return text
    images = f"{exact(repair['images'])} image{'' if repair['images'] == 1 else 's'}"
    if repair["helps"]:
        return f"{text}. Tried: of {images} with that change none fails so"
    return f"{text} (an order of the two was tried with {images}: some fail still)"


def _at(store: Mapping[str, Any], header: Mapping[str, Any]) -> str:
    """The place of a store or a step in a file, or in memory."""
    place = place_of(store.get("address"), header)
    if place is None:
        return "length of the file" if "what" not in store else ""
    return place


MARKS = {"missing": "missing", "present": "left", None: ""}
"""Marks of a timeline's steps."""

ENDS = {
    "all": "all images that the model allows were judged",
    "nothing-new": "no new image was drawn any more",
    "images": "as many images as --images allows were judged: there are more",
    "time": "the time of --limit was over: there are more images",
    "violations": "as many violations as --violations allows were found: there may be more",
    "cancelled": "it was interrupted",
}
"""Why an exploration ended, in words."""


def _notes(
    found: Mapping[str, Any],
    captured: Mapping[str, Any],
    model: str,
    why: str | None,
    recoveries: Sequence[Mapping[str, Any]],
) -> Iterable[str]:
    if why is not None:
        yield f"model {model}, since {why} (--model)."
    if found["points_before"]:
        yield (
            f"The judge refuses the undisturbed files of the first {exact(found['points_before'])} "
            "crash points, such as those of a store that is being made: images are judged from "
            "then on."
        )
    if found["points_left_out"]:
        yield (
            f"{exact(found['points_left_out'])} crash points were left out: too many stores are "
            "not durable at once."
        )
    if found["unsteady"]:
        yield (
            f"The judge has refused {found['unsteady']} images that it finds good when it is asked "
            "again: they are not told (a time limit of its own on a busy host?)."
        )
    if found["unknown_flushes"]:
        yield (
            f"The capture could not tell the addresses of {exact(found['unknown_flushes'])} "
            "flushes: stores that these made durable may be blamed."
        )
    report = captured["report"]
    if report.get("races"):
        yield (
            f"{exact(report['races'])} accesses race with another thread's: in another order of "
            "visibility other images may be left."
        )
    if report.get("bytes_unexplained"):
        yield (
            f"{exact(report['bytes_unexplained'])} bytes are explained by no recorded store: they "
            "are as they were when the trace began."
        )
    silent = sum("said" in recovery for recovery in recoveries)
    if silent:
        said = next(recovery["said"] for recovery in recoveries if "said" in recovery)
        yield f"{silent} of {len(recoveries)} recoveries gave nothing to interrupt: {said}."
