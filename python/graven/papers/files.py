"""Reads `papers/PAPER/experiments.toml` and `papers/PAPER/claims.toml`.

Whatever is not as `docs/guides/reproduce.md` has it is refused with its place.
"""

from __future__ import annotations

import itertools
import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from graven import _engine
from graven._engine import ConfigError
from graven.basics.toml import Table
from graven.engine.selection import Variation
from graven.papers.data import (
    ABOUT,
    BOUNDS,
    FORMS,
    KINDS,
    MEANS,
    SEEDS,
    SHAPES,
    SHARES,
    AllAnswer,
    Answer,
    Claim,
    CostAnswer,
    Figure,
    MachineAnswer,
    Measure,
    NoAnswer,
    NumberAnswer,
    OpenKey,
    OrderAnswer,
    Paper,
    Printed,
    Study,
    TestAnswer,
    TrendAnswer,
    as_number,
)
from graven.papers.measures import expression
from graven.papers.parts import parts
from graven.papers.readings import Reading, questions, readings

FOLDER_VARIABLE = "GRAVEN_PAPERS"
"""Names a folder whose files take the place of those that ship with Graven, for who edits them."""


def _texts() -> dict[str, dict[str, str]]:
    raw: dict[str, dict[str, str]] = json.loads(_engine.papers())
    if FOLDER_VARIABLE not in os.environ:
        return raw
    folder = Path(os.environ[FOLDER_VARIABLE])
    kinds = ("experiments", "claims")
    try:
        return {n: {k: (folder / n / f"{k}.toml").read_text("utf-8") for k in kinds} for n in raw}
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError(f"{FOLDER_VARIABLE}: {error.filename}: {reason}") from None


@cache
def papers() -> dict[str, Paper]:
    """All papers, in the order in which they are listed.

    Raises:
        ConfigError: a file is not as agreed; the message says where.
    """
    raw = _texts()
    return {name: parse(name, item["experiments"], item["claims"]) for name, item in raw.items()}


def paper(name: str) -> Paper:
    """The paper of a name.

    Raises:
        ConfigError: there is none.
    """
    known = papers()
    if name not in known:
        raise ConfigError(f"unknown paper `{name}`; known are {', '.join(known)}, all")
    return known[name]


def claim_of(claim_id: str) -> tuple[Paper, Claim]:
    """A claim that simulations answer, and its paper.

    Raises:
        ConfigError: there is no such claim, or nothing is simulated for it.
    """
    for item in papers().values():
        for claim in item.claims:
            if claim.id == claim_id:
                if not claim.measures:
                    raise ConfigError(f"nothing is simulated for {claim_id}: nothing moves it")
                return item, claim
    raise ConfigError(f"unknown claim `{claim_id}`; `graven reproduce --claims --stored` shows all")


def parse(name: str, experiments: str, claims: str) -> Paper:
    """Reads the two files of a paper.

    Raises:
        ConfigError: they are not as agreed; the message says where.
    """
    text = _file(experiments, f"papers/{name}/experiments.toml")
    opened = {key: _open_key(key, table) for key, table in text.inner("open").named()}
    asked = questions(text.inner("questions"))
    known = readings(text.inner("readings"), asked)
    studies = _by_id(text.tables("experiment"), lambda table: _study(table, opened, known))
    _check_readings(name, known, studies)
    figures = _by_id(text.tables("figure"), lambda table: _figure(table, studies))
    found = Paper(
        name=name,
        title=text.text("title"),
        machine=text.text("machine"),
        assumed=text.texts("assumed") or (),
        open=opened,
        questions=asked,
        readings=known,
        studies=studies,
        figures=figures,
        claims=(),
    )
    text.end()
    said = _file(claims, f"papers/{name}/claims.toml")
    all_claims = _by_id(said.tables("claim"), lambda table: _claim(table, found))
    for claim in all_claims.values():
        if claim.restates is not None and claim.restates not in all_claims:
            raise ConfigError(
                f"papers/{name}/claims.toml: {claim.id} restates `{claim.restates}`, which is no "
                "claim of the paper"
            )
    said.end()
    return replace(found, claims=tuple(all_claims.values()))


def _file(text: str, name: str) -> Table:
    try:
        return Table(tomllib.loads(text), name)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name}: {error}") from None


def _check_readings(
    paper_name: str, known: Mapping[str, Reading], studies: Mapping[str, Study]
) -> None:
    """Refuses readings of experiments that are not there, or that fix one of their keys."""
    for reading in known.values():
        where = f"papers/{paper_name}/experiments.toml, readings, {reading.name}"
        for old, new in reading.metrics.items():
            expression(old)
            expression(new)
        for name in reading.studies or ():
            if name not in studies:
                raise ConfigError(
                    f"{where}: `experiments`: unknown experiment `{name}`; "
                    f"known are {', '.join(studies)}"
                )
            study = studies[name]
            fixed = {one.key for one in study.vary}
            if not reading.programs:
                fixed |= {key for key, _ in study.settings}
            for key in sorted(reading.keys & fixed):
                raise ConfigError(f"{where}: the experiment `{name}` sets or varies `{key}`")


def _by_id(tables: Sequence[Table], read: Any) -> dict[str, Any]:  # noqa: ANN401 - any kind
    found: dict[str, Any] = {}
    for table in tables:
        item = read(table)
        table.end()
        if item.id in found:
            raise ConfigError(f"{table.where}: the id is there before")
        found[item.id] = item
    return found


def _open_key(key: str, table: Table) -> OpenKey:
    found = OpenKey(key, table.texts("values") or (), table.text("why"))
    table.end()
    return found


def _out_of(
    table: Table, section: str, known: Mapping[str, object], what: str
) -> tuple[str, ...] | None:
    """What a table has under the name of a section: some of what that section has."""
    value = table.any(section)
    if value is None:
        return None
    if not isinstance(value, list) or any(name not in known for name in value):
        allowed = f"a list of {what} out of [{section}]: {', '.join(known)}"
        raise table.refusal(section, allowed)
    return tuple(value)


def _study(
    table: Table, known: Mapping[str, OpenKey], readings_known: Mapping[str, Reading]
) -> Study:
    designs, workloads = table.texts("designs"), table.texts("workloads")
    transactions = table.count("transactions")
    if designs is None or workloads is None or transactions is None:
        raise ConfigError(f"{table.where}: designs, workloads and transactions must be there")
    opened = _out_of(table, "open", known, "keys")
    vary = Variation.read(table) or ()
    study = Study(
        id=table.text("id"),
        what=table.text("what"),
        designs=designs,
        workloads=workloads,
        threads=table.counts("threads") or (None,),
        transactions=transactions,
        baseline=table.optional_text("baseline") or designs[0],
        settings=table.settings(),
        vary=vary,
        open=tuple(known) if opened is None else opened,
        seeds=table.count("seeds") or SEEDS,
        readings=_out_of(table, "readings", readings_known, "names"),
        parts=parts(table, workloads, vary),
    )
    if study.baseline not in designs:
        raise table.refusal("baseline", f"one of {', '.join(designs)}")
    return replace(study, quick=_quick(table.table("quick"), study, known, readings_known))


def _quick(
    table: Table | None,
    study: Study,
    known: Mapping[str, OpenKey],
    readings_known: Mapping[str, Reading],
) -> dict[str, Any]:
    if table is None:
        return {}
    found: dict[str, Any] = {
        "designs": table.texts("designs"),
        "workloads": table.texts("workloads"),
        "threads": table.counts("threads"),
        "transactions": table.count("transactions"),
        "settings": table.settings() if table.has("set") else None,
        "vary": Variation.read(table),
        "open": _out_of(table, "open", known, "keys"),
        "seeds": table.count("seeds"),
        "readings": _out_of(table, "readings", readings_known, "names"),
    }
    table.end()
    for key in ("designs", "workloads", "threads"):
        given, all_of = found[key] or (), getattr(study, key)
        if any(value not in all_of for value in given):
            raise table.refusal(key, f"some of {', '.join(map(str, all_of))}")
    return {key: value for key, value in found.items() if value is not None}


def _figure(table: Table, studies: Mapping[str, Study]) -> Figure:
    panels = table.texts("panels") or ()
    study = studies[_known_study(table, studies)]
    figure = Figure(
        id=table.text("id"),
        where=table.text("where"),
        title=table.text("title"),
        study=study.id,
        metric=table.text("metric"),
        kind=table.choice("kind", KINDS, "bars"),
        x=table.optional_text("x"),
        panels=panels,
        relative=table.flag("relative", default=True),
        baseline=table.optional_text("baseline") or study.baseline,
        first=table.flag("first", default=False),
        mean=table.choice("mean", MEANS[:2], MEANS[0]),
        higher_is_better=_optional_flag(table, "higher_is_better"),
        note=table.optional_text("note"),
    )
    if figure.baseline not in study.designs:
        raise table.refusal("baseline", f"one of {', '.join(study.designs)}")
    axes = _axes(study)
    for axis in (*panels, *([figure.x] if figure.x else [])):
        if axis not in axes:
            raise table.refusal("x or panels", f"one of {', '.join(axes)}")
    if figure.kind == "lines" and figure.x is None:
        raise ConfigError(f"{table.where}: lines need `x`: one of {', '.join(axes)}")
    return figure


def _optional_flag(table: Table, key: str) -> bool | None:
    return table.flag(key, default=False) if table.has(key) else None


def _axes(study: Study) -> tuple[str, ...]:
    """What distinguishes results of an experiment, beside their design."""
    return ("workload", "threads", *(item.key for item in study.vary))


def _known_study(table: Table, studies: Mapping[str, Study]) -> str:
    name = table.text("experiment")
    if name not in studies:
        raise table.refusal("experiment", f"one of {', '.join(studies)}")
    return name


def _claim(table: Table, known: Paper) -> Claim:
    answer = table.table("answer")
    if answer is None:
        raise ConfigError(f"{table.where}: `answer` is missing")
    claim = Claim(
        id=table.text("id"),
        where=table.text("where"),
        says=table.text("says"),
        value=table.any("value"),
        unit=table.optional_text("unit"),
        answer=_answer(answer, table.any("value"), known),
        why=table.optional_text("why"),
        restates=table.optional_text("restates"),
        circular=table.optional_text("circular"),
    )
    answer.end()
    if not claim.id.startswith(f"{known.name}-"):
        raise table.refusal("id", f"a name that begins with {known.name}-")
    return claim


def _answer(table: Table, printed: Printed, known: Paper) -> Answer:
    if table.has("test"):
        verdict = table.choice("verdict", ("met", "contradicted"), "met")
        about = table.choice("about", ABOUT, ABOUT[0])
        return TestAnswer(table.texts("test") or (), verdict, table.optional_text("ours"), about)
    if table.has("cost"):
        return CostAnswer(table.text("cost"))
    if table.has("machine"):
        values = table.table("machine")
        assert values is not None, "it has the key"
        return MachineAnswer(dict(values.items()))
    if table.has("none"):
        return NoAnswer(table.text("none"))
    if table.has("all"):
        return _all(table, printed, known)
    if table.has("order") or table.has("rank"):
        return _order(table, known)
    if table.has("along"):
        return _trend(table, known)
    if table.has("of"):
        return _number(table, printed, known)
    raise ConfigError(
        f"{table.where}: one of test, cost, machine, none, all, order, rank, along, of is needed"
    )


def _all(table: Table, printed: Printed, known: Paper) -> AllAnswer:
    names, found = [], []
    for item in table.tables("all", "name"):
        names.append(item.optional_text("name") or "")
        answer = _answer(item, printed, known)
        item.end()
        if not isinstance(answer, NumberAnswer | OrderAnswer | TrendAnswer):
            raise ConfigError(f"{item.where}: one of order, rank, along, of must be there")
        found.append(answer)
    if len(found) < 2:
        raise table.refusal("all", "at least two answers")
    return AllAnswer(tuple(names), tuple(found))


def _measure(table: Table, known: Paper, of: str | None = None) -> Measure:
    names = _names(table, "experiment")
    if not names or any(name not in known.studies for name in names):
        raise table.refusal("experiment", f"some of {', '.join(known.studies)}")
    studies = [known.studies[name] for name in names]
    over = table.any("over")
    if isinstance(over, str | list):
        over = {"design": over}
    at = table.any("at") or {}
    designs = _names(table, "of") if of is None else (of,)
    axes = [axis for axis in _axes(studies[0]) if all(axis in _axes(item) for item in studies)]
    for key, allowed in (("over", ("design", *axes)), ("at", axes)):
        given = {"over": over or {}, "at": at}[key]
        if not isinstance(given, dict) or any(axis not in allowed for axis in given):
            raise table.refusal(key, f"a table with some of {', '.join(allowed)}")
    reference = (over or {}).get("design", ())
    needed = (*designs, *([reference] if isinstance(reference, str) else reference))
    for name, study in itertools.product(needed, studies):
        if name not in study.designs:
            raise ConfigError(
                f"{table.where}: `{name}` is not among the designs of `{study.id}`: "
                + ", ".join(study.designs)
            )
    return Measure(
        names, table.text("metric"), designs, over or {}, at, table.choice("mean", MEANS, MEANS[0])
    )


def _names(table: Table, key: str) -> tuple[str, ...]:
    """A name, or several."""
    if isinstance(table.any(key), str):
        return (table.text(key),)
    return table.texts(key) or ()


def _number(table: Table, printed: Printed, known: Paper) -> NumberAnswer:
    measure = _measure(table, known)
    shared = measure.mean in SHARES
    form = table.choice("form", FORMS, "cases" if shared else "times" if measure.over else "value")
    expect = 1.0 if shared else table.number("expect")
    if expect is None:
        if isinstance(printed, bool) or not isinstance(printed, int | float):
            raise ConfigError(f"{table.where}: `expect` is missing, as `value` is no number")
        expect = as_number(float(printed), form)
    return NumberAnswer(measure, expect, form, table.choice("bound", BOUNDS, "about"))


def _order(table: Table, known: Paper) -> OrderAnswer:
    names = table.texts("order")
    if names is not None:
        measures = [_measure(table, known, of=name) for name in names]
        return OrderAnswer(names, tuple(measures))
    found = []
    for item in table.tables("rank", "name"):
        found.append((item.text("name"), _measure(item, known)))
        item.end()
    if len(found) < 2:
        raise table.refusal("rank", "at least two measures")
    return OrderAnswer(tuple(name for name, _ in found), tuple(one for _, one in found))


def _trend(table: Table, known: Paper) -> TrendAnswer:
    measure = _measure(table, known)
    along = table.text("along")
    if len(measure.studies) > 1:
        raise table.refusal("experiment", "one experiment, where there is `along`")
    axes = _axes(known.studies[measure.studies[0]])
    if along not in axes or along in measure.at:
        raise table.refusal("along", f"one of {', '.join(axes)} that `at` does not fix")
    between = table.any("between")
    if between is not None and (not isinstance(between, list) or len(between) != 2):
        raise table.refusal("between", "two numbers")
    return TrendAnswer(
        measure,
        along,
        table.choice("shape", SHAPES),
        table.number("within") or 0.05,
        None if between is None else (float(between[0]), float(between[1])),
    )
