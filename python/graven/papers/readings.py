"""Readings: where a paper's text leaves something open or says two things, each choice by name.

A question has a default choice, which is what the machine's file and the experiments have, and one
reading or more beside it. A reading quotes the sentence or the row of a table that allows it, and
says which keys it sets. Those that belong to the methodology that the paper describes are the
authors', and are tried together as well as alone.

A reading may also name real programs that stand in for those of the paper (`programs`). It is tried
by its name alone, and decides no verdict, since a paper did not measure these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from graven._engine import ConfigError
from graven.basics.toml import Table
from graven.capture.recipes import recipes


@dataclass(frozen=True)
class Question:
    """A question to which a paper's text allows more than one reading.

    Attributes:
        name: Name in readings.
        asks: The question, as a person asks it.
        default: The default choice.
        quote: The sentence or the row of a table for it, as printed; `None` if it is assumed.
        where: Place of that in the paper.
        assumed: Reason for the choice, where nothing is printed for it.
        known_before: True if results of the other choices were known when it was chosen.
    """

    name: str
    asks: str
    default: str
    quote: str | None
    where: str | None
    assumed: str | None
    known_before: bool


@dataclass(frozen=True)
class Reading:
    """A choice that is not the default, with the sentence that allows it.

    Attributes:
        name: Name in verdicts and at the command line.
        question: The question that it answers.
        what: It, in one sentence.
        quote: The sentence or the row of a table that allows it, as printed.
        where: Place of that in the paper.
        settings: SECTION.KEY and value, for all designs; a design's own key for that design alone.
        metrics: Statistics that take the place of others in claims and figures.
        studies: The experiments that it is about; `None` for all. One that sets or varies one of
            its keys is left alone.
        workloads: The workloads that it is about; `None` for all.
        authors: True if it belongs to the combination that the methodology describes.
        known_before: True if its outcome was known before it was written down.
        quick: True if it is tried at quick sizes, too, when all readings are, and not by its name
            alone or for one claim.
        programs: Recipes of real programs that run in place of the paper's; mostly none.
        in_place_of: By workload, the programs of which its numbers are then.
        per_thread: True if the number of transactions is that of each thread.
    """

    name: str
    question: str
    what: str
    quote: str
    where: str
    settings: tuple[tuple[str, str], ...]
    metrics: Mapping[str, str]
    studies: tuple[str, ...] | None
    workloads: tuple[str, ...] | None
    authors: bool
    known_before: bool
    quick: bool = True
    programs: tuple[str, ...] = ()
    in_place_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    per_thread: bool = False

    @property
    def keys(self) -> set[str]:
        """The keys that it sets."""
        return {key for key, _ in self.settings}

    @property
    def changes(self) -> str:
        """All that it sets, for a person."""
        pairs = [f"{key} = {value}" for key, value in self.settings]
        others = [f"{new} for {old}" for old, new in self.metrics.items()]
        programs = [f"programs: {', '.join(self.programs)}"] if self.programs else []
        each = ["as many transactions for each thread"] if self.per_thread else []
        return ", ".join(pairs + others + programs + each)


def questions(table: Table) -> dict[str, Question]:
    """The table `[questions]`.

    Raises:
        ConfigError: one is not as agreed.
    """
    return {item.name: item for item in (_question(*pair) for pair in table.named())}


def readings(table: Table, known: Mapping[str, Question]) -> dict[str, Reading]:
    """The table `[readings]`, of these questions.

    Raises:
        ConfigError: one is not as agreed; a question has no reading beside its default; the authors
            have two of one question, or two that set the same key.
    """
    found = {item.name: item for item in (_reading(*pair, known) for pair in table.named())}
    for name in known:
        if all(reading.question != name for reading in found.values()):
            raise ConfigError(f"questions, {name}: no reading answers it")
    chosen = [reading for reading in found.values() if reading.authors]
    for number, reading in enumerate(chosen):
        for other in chosen[:number]:
            if reading.question == other.question or reading.keys & other.keys:
                raise ConfigError(
                    f"readings, {reading.name}: `authors` = true is not allowed; "
                    f"{other.name}, which answers the same question or sets the same key, is theirs"
                )
    return found


def _question(name: str, table: Table) -> Question:
    found = Question(
        name=name,
        asks=table.text("asks"),
        default=table.text("default"),
        quote=table.optional_text("quote"),
        where=table.optional_text("where"),
        assumed=table.optional_text("assumed"),
        known_before=table.flag("known_before", default=False),
    )
    table.end()
    if (found.quote is None) != (found.where is None) or (found.quote is None) == (
        found.assumed is None
    ):
        raise ConfigError(f"{table.where}: either `quote` and `where` or `assumed` must be there")
    return found


def _reading(name: str, table: Table, known: Mapping[str, Question]) -> Reading:
    metrics, places = table.inner("metric"), table.inner("in_place_of")
    found = Reading(
        name=name,
        question=table.choice("question", list(known)),
        what=table.text("what"),
        quote=table.text("quote"),
        where=table.text("where"),
        settings=table.settings(),
        metrics={key: str(new) for key, new in metrics.items()},
        studies=table.texts("experiments"),
        workloads=table.texts("workloads"),
        authors=table.flag("authors", default=False),
        known_before=table.flag("known_before", default=False),
        quick=table.flag("quick", default=True),
        programs=table.texts("programs") or (),
        in_place_of={name: places.texts(name) or () for name, _ in places.items()},
        per_thread=table.flag("per_thread", default=False),
    )
    table.end()
    if not (found.settings or found.metrics or found.programs or found.per_thread):
        raise ConfigError(
            f"{table.where}: `set`, `metric`, `programs` or `per_thread` must be there"
        )
    _check_programs(found, table)
    return found


def _check_programs(found: Reading, table: Table) -> None:
    """Refuses programs that there are not, and what goes with no programs.

    Raises:
        ConfigError: that.
    """
    unknown = [name for name in found.programs if name not in recipes()]
    if unknown:
        raise table.refusal("programs", f"some of {', '.join(recipes())}")
    for name, programs in found.in_place_of.items():
        if any(program not in found.programs for program in programs):
            raise ConfigError(
                f"{table.where}, in_place_of: `{name}`: some of `programs` must be there"
            )
    if found.programs and (found.metrics or found.workloads or found.authors):
        raise ConfigError(
            f"{table.where}: `metric`, `workloads` and `authors` do not go with `programs`"
        )
    if found.programs and found.studies is None:
        raise ConfigError(f"{table.where}: `experiments` must be there, with `programs`")
