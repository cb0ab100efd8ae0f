"""Litmus programs: those that come with Graven, those of files, and how they are run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from graven import _engine
from graven._engine import ConfigError
from graven.laboratory.crashes import CampaignResult, judging
from graven.laboratory.reports import LitmusReport, parse_litmus_report
from graven.running.requests import Asked, run_asked
from graven.running.work import How

PROGRAMS = Path(__file__).with_name("litmus_programs")
"""The litmus programs that come with Graven, in a folder for each family of designs."""


@dataclass(frozen=True)
class Program:
    """A litmus program: its text, and what messages call it."""

    file: str
    text: str

    @staticmethod
    def read(path: str | PathLike[str]) -> Program:
        """The program in a file; those that come with Graven are called by their names.

        Raises:
            ConfigError: the file cannot be read.
        """
        is_ours = Path(path).is_relative_to(PROGRAMS)
        name = Path(path).relative_to(PROGRAMS).as_posix() if is_ours else fspath(path)
        try:
            return Program(name, Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"{name}: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise ConfigError(f"{name} is not UTF-8 text") from None

    @staticmethod
    def read_or_why(path: Path) -> Program | ConfigError:
        """The program in a file, or the error that says why it cannot be read."""
        try:
            return Program.read(path)
        except ConfigError as error:
            return error

    @property
    def name(self) -> str:
        """Name without its ending."""
        return self.file.removesuffix(".litmus")

    @property
    def title(self) -> str:
        """Title in its text."""
        found = re.search(r'^title\s+"?(.*?)"?$', self.text, re.MULTILINE)
        return found[1] if found is not None else ""

    @property
    def designs(self) -> list[str]:
        """The designs that are to keep their guarantee in it; if it names none, all."""
        named = re.findall(r"^design\s+(.*)$", self.text, re.MULTILINE)
        return [name for line in named for name in line.split()]

    def said(self, word: str) -> str:
        """The text of a statement: what is in its quotes, or what stands after the word."""
        found = re.search(rf'^[ \t]*{word}[ \t]+"?(.*?)"?[ \t]*$', self.text, re.MULTILINE)
        return found[1] if found is not None else ""

    @property
    def models(self) -> list[str]:
        """The persistency models that it is for; none if it is for designs."""
        named = re.search(r"^[ \t]*model[ \t]+([^=\n#]*)", self.text, re.MULTILINE)
        return named[1].split() if named is not None else []

    def asked(self, designs: Sequence[str] = (), models: Sequence[str] = ()) -> Asked:
        """Hands it to the engine, which checks it.

        Where its file is makes no difference to its result.

        Args:
            designs: Designs instead of those that it names.
            models: Persistency models instead of those that it names.

        Raises:
            ConfigError: the engine refuses it; a syntax error begins with FILE:LINE:COLUMN.
        """
        spec = {"file": self.file, "text": self.text, "designs": list(designs)}
        spec |= {"models": list(models)} if models else {}
        task = _engine.Campaign("litmus", json.dumps(spec))
        asked = {"workload": Path(self.file).name, "text": self.text, "designs": list(designs)}
        if models:
            asked["models"] = list(models)
        return Asked("litmus", self.file, task, asked)


def own_programs() -> list[Program]:
    """The programs that come with Graven, in the order of their names."""
    return [Program.read(path) for path in program_files([PROGRAMS])]


def program_file(path: str | PathLike[str]) -> Path:
    """A file or a folder; if there is none, the litmus programs of that name that come with Graven.

    `silo/undo-order` is one of these, `silo` and `any` are folders of them, `all` is all of them.
    """
    given = Path(path)
    if given.exists() or given.is_absolute() or ".." in given.parts:
        return given
    if given == Path("all"):
        return PROGRAMS
    ours = PROGRAMS / given
    return next((p for p in (ours, ours.with_name(f"{ours.name}.litmus")) if p.exists()), given)


def program_files(paths: Iterable[Path]) -> list[Path]:
    """Files, and of folders the litmus programs anywhere in them; also those with Graven's names.

    Raises:
        ConfigError: a folder without any.
    """
    found: list[Path] = []
    for path in map(program_file, paths):
        inside = sorted(path.rglob("*.litmus")) if path.is_dir() else [path]
        if not inside:
            raise ConfigError(f"{path}: there is no *.litmus in this folder")
        found += inside
    return list(dict.fromkeys(found))


def of_kind(
    programs: Sequence[Program | ConfigError], designs: Sequence[str], models: Sequence[str]
) -> Sequence[Program | ConfigError]:
    """The programs for these designs or persistency models; all if none of either are given.

    A model takes programs for all models of its architecture, since these have its instructions.
    All programs are returned if none is of that kind, so that the engine says why.
    """
    if not designs and not models:
        return programs
    asked = {model.partition("-")[0] for model in models}

    def fits(program: Program | ConfigError) -> bool:
        if isinstance(program, ConfigError):
            return True
        kind = {model.partition("-")[0] for model in program.models}
        return bool(kind & asked) or kind == asked

    found = list(filter(fits, programs))
    return found if any(isinstance(program, Program) for program in found) else programs


def run_programs(programs: Sequence[Asked], how: How) -> CampaignResult[LitmusReport]:
    """Runs litmus programs that the engine has checked and that have no result."""
    campaigns = [item.task for item in programs if isinstance(item.task, _engine.Campaign)]
    ran = run_asked(programs, judging(how, campaigns))
    return CampaignResult.of(ran, lambda at, text: parse_litmus_report(text, programs[at].label))
