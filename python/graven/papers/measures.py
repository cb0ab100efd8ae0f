"""Numbers of results: a statistic or an expression of several, over another, with a mean."""

from __future__ import annotations

import ast
import math
import operator
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from graven._engine import ConfigError
from graven.basics.numbers import Value, exact
from graven.engine.catalogue import catalogue
from graven.papers.data import SHARES, Measure
from graven.papers.samples import Sample
from graven.results.intervals import geometric_mean
from graven.results.record import Record

_OPERATORS: Mapping[type, Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@dataclass(frozen=True)
class Expression:
    """Statistics, numbers, `+ - * /` and brackets."""

    text: str
    tree: ast.expr

    def value(self, record: Record) -> float | None:
        """The value in one result; `None` if a statistic has none, or a divisor is 0.

        Of a region in steady state statistics are estimates; what adds up is per transaction.
        """
        try:
            return _value(self.tree, record)
        except (KeyError, ZeroDivisionError):
            return None


def _value(tree: ast.expr, record: Record) -> float:
    if isinstance(tree, ast.Name):
        found = record.value(tree.id)
        if found is None:
            raise KeyError(tree.id)
        return found
    if isinstance(tree, ast.BinOp):
        combine = _OPERATORS[type(tree.op)]
        return combine(_value(tree.left, record), _value(tree.right, record))
    assert isinstance(tree, ast.Constant), "expressions are checked when they are read"
    return float(str(tree.value))


@cache
def expression(text: str) -> Expression:
    """Reads an expression.

    Raises:
        ConfigError: it is none, or there is no such statistic.
    """
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        raise ConfigError(f"metric `{text}` is no expression of statistics") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if all(item.name != node.id for item in catalogue().stats):
                raise ConfigError(f"metric `{text}`: unknown statistic `{node.id}`")
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, bool) or not isinstance(node.value, int | float):
                raise ConfigError(f"metric `{text}`: {node.value!r} is no number")
        elif not isinstance(node, ast.BinOp | ast.operator | ast.expr_context) or (
            isinstance(node, ast.BinOp) and type(node.op) not in _OPERATORS
        ):
            raise ConfigError(f"metric `{text}` is no expression of statistics")
    return Expression(text, tree)


def coordinate(record: Record, axis: str) -> Value:
    """The place of a result on an axis: `design`, `workload`, `threads`, or a varied key."""
    own: dict[str, Value] = {
        "design": record.design,
        "workload": record.workload,
        "threads": record.threads,
    }
    return own[axis] if axis in own else record.varied.get(axis)


def same(value: object, given: object) -> bool:
    """Tells whether a configured value is the one that a file names, as text or number."""
    if isinstance(given, list | tuple):
        return any(same(value, one) for one in given)
    if isinstance(value, bool) or isinstance(given, bool):
        return str(value).lower() == str(given).lower()
    if str(value) == str(given):
        return True
    try:
        return float(str(value)) == float(str(given))
    except ValueError:
        return False


def matching(records: Sequence[Record], at: Mapping[str, Any]) -> list[Record]:
    """The results with these coordinates."""
    return [r for r in records if all(same(coordinate(r, axis), v) for axis, v in at.items())]


def coordinates(records: Sequence[Record], axis: str) -> list[Value]:
    """The values of an axis, in the order of the experiment."""
    return list(dict.fromkeys(coordinate(record, axis) for record in records))


def sample(measure: Measure, *experiments: Sequence[Record]) -> Sample | None:
    """The number over the results of one or several experiments, one value for each seed.

    `None` if a result is missing. A share of cases is one number, over the seeds' means of each.
    """
    seeds = sorted({record.seed for records in experiments for record in records})
    if measure.mean in SHARES:
        return _share(measure, experiments, seeds)
    values = []
    for seed in seeds:
        of_seed = [[r for r in records if r.seed == seed] for records in experiments]
        value = mean([v for records in of_seed for _, v in cells(measure, records)], measure.mean)
        if value is None:
            return None
        values.append(value)
    return Sample(tuple(values)) if values else None


def _share(
    measure: Measure, experiments: Sequence[Sequence[Record]], seeds: Sequence[int]
) -> Sample | None:
    """How many of the ratios are above 1, or below it; those within the spread are neither."""
    cases: dict[tuple[Value, ...], list[float]] = {}
    for number, records in enumerate(experiments):
        for seed in seeds:
            for record, value in cells(measure, [r for r in records if r.seed == seed]):
                if value is None:
                    return None
                place = (number, record.design, record.workload, record.threads)
                cases.setdefault((*place, *record.varied.values()), []).append(value)
    sides = [Sample(tuple(values)).against(1.0) for values in cases.values()]
    if not sides:
        return None
    right = sides.count(1 if measure.mean == "above" else -1)
    return Sample((right / len(sides),), tied=sides.count(0) / len(sides))


def by_workload(measure: Measure, *experiments: Sequence[Record]) -> dict[str, float]:
    """The number of each workload alone, over all seeds; those with nothing missing."""
    found: dict[str, list[float | None]] = {}
    for records in experiments:
        for seed in sorted({record.seed for record in records}):
            for record, value in cells(measure, [r for r in records if r.seed == seed]):
                found.setdefault(record.workload, []).append(value)
    kind = measure.mean if measure.mean in ("geometric", "arithmetic") else "arithmetic"
    means = {workload: mean(values, kind) for workload, values in found.items()}
    return {workload: value for workload, value in means.items() if value is not None}


def cells(measure: Measure, records: Sequence[Record]) -> list[tuple[Record, float | None]]:
    """The results that a mean is taken of, of one seed, with the number of each."""
    metric = expression(measure.metric)
    near = _near(measure, records)
    own = matching(near, {**measure.at, "design": measure.of})
    return [(record, _cell(metric, measure, record, near)) for record in own]


def _near(measure: Measure, records: Sequence[Record]) -> Sequence[Record]:
    """The results of the designs that a measure is of, or is divided by."""
    over = measure.over.get("design", ())
    designs = {*measure.of, *([over] if isinstance(over, str) else over)}
    return [record for record in records if record.design in designs]


def renamed(measure: Measure, metrics: Mapping[str, str]) -> Measure:
    """The same measure of other statistics."""
    if not metrics:
        return measure
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, metrics)) + r")\b")
    return replace(measure, metric=pattern.sub(lambda m: metrics[m[1]], measure.metric))


def _best(records: Sequence[Record]) -> Record:
    """The one with the highest throughput, as papers choose the better of several."""
    return max(records, key=lambda record: record.value("throughput_tx_per_s") or 0.0)


def _cell(
    metric: Expression, measure: Measure, record: Record, records: Sequence[Record]
) -> float | None:
    value = metric.value(record)
    if not measure.over or value is None:
        return value
    axes = ["design", "workload", "threads", *record.varied]
    place = {axis: coordinate(record, axis) for axis in axes} | dict(measure.over)
    others = matching(records, place)
    design = measure.over.get("design")
    if len(others) < (len(design) if isinstance(design, list) else 1):
        return None
    reference = metric.value(_best(others))
    return value / reference if reference else None


def mean(values: Sequence[float | None], kind: str) -> float | None:
    """A mean, an extreme or a share; `None` if there is nothing, or something is missing."""
    known = [value for value in values if value is not None]
    if not known or len(known) != len(values):
        return None
    if kind == "max":
        return max(known)
    if kind == "min":
        return min(known)
    if kind == "median":
        return statistics.median(known)
    if kind in SHARES:
        return sum(value > 1.0 if kind == "above" else value < 1.0 for value in known) / len(known)
    if kind == "geometric":
        positive = geometric_mean(known)
        if positive is not None:
            return positive
    return math.fsum(known) / len(known)


def series(
    measure: Measure, along: str, records: Sequence[Record]
) -> list[tuple[Value, Sample | None]]:
    """The number at each value of an axis, in the order of the experiment."""
    near = _near(measure, records)
    own = matching(near, {**measure.at, "design": measure.of})
    return [
        (value, sample(replace(measure, at={**measure.at, along: value}), near))
        for value in coordinates(own, along)
    ]


def describe(measure: Measure) -> str:
    """The number in words, for a person."""
    parts = [_ratio(measure), measure.metric, _place(measure), _several(measure.studies)]
    return ", ".join(part for part in parts if part)


def brief(measure: Measure) -> str:
    """The same where metric and experiment are known; several experiments are named."""
    extreme = {"max": "the largest", "min": "the smallest"}.get(measure.mean, "")
    where = _several(measure.studies) if len(measure.studies) > 1 else ""
    parts = [_ratio(measure), _place(measure), where, extreme]
    return ", ".join(part for part in parts if part)


def _ratio(measure: Measure) -> str:
    over = ", ".join(
        f"best of {_several(value)}" if isinstance(value, list) else str(value)
        for value in measure.over.values()
    )
    of = _several(measure.of)
    return f"{of} / {over}" if over else of


def _place(measure: Measure) -> str:
    return ", ".join(
        f"{_several(value)} thread{'' if value == 1 else 's'}"
        if axis == "threads"
        else _several(value)
        for axis, value in measure.at.items()
    )


def _several(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return exact(value) if isinstance(value, int | float | str) else str(value)
