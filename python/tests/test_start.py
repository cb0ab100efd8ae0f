"""What is imported when, so that the command and the package start at once."""

import ast
import importlib
import os
import pkgutil
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from conftest import HERE, python

import graven as package
import graven.cli
from graven.cli import group

TABLES = {"rich.console", "rich.table", "rich.progress"}
REPORTS = {"jinja2", "matplotlib", "numpy", "pyarrow", "graven.drawing.pages", "graven.papers"}
LABORATORY = {
    "graven.laboratory.crashes",
    "graven.laboratory.reports",
    "graven.laboratory.adversary",
    "graven.results.costs",
}
OTHERS = {"importlib.metadata", "gzip", "multiprocessing", "subprocess", "pandas"}

LOADED = """
import sys
sys.argv[0] = "graven"
from graven.cli import execute
code = execute()
print("LOADED", *sys.modules)
sys.exit(code)
"""


def loaded(*arguments, cwd, script=LOADED):
    """The modules that are there at the end of a script."""
    done = python("-c", script, *arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.rpartition("LOADED")[2].split())


RUN = ("run", "--design", "silo", "--workload", "btree", "--transactions", "10")


@pytest.mark.parametrize(
    ("arguments", "avoided"),
    [
        (
            ("--version",),
            TABLES
            | REPORTS
            | OTHERS
            | {"click", "graven.api.simulations", "graven.engine.catalogue"},
        ),
        (("--help",), TABLES | REPORTS | OTHERS | {"graven.api.simulations", "graven.cli.run"}),
        (("run", "--help"), TABLES | REPORTS | OTHERS | {"graven.cli.compare"}),
        (("memory", "--help"), TABLES | REPORTS | LABORATORY | OTHERS),
        ((*RUN, "--format", "json"), TABLES | REPORTS | LABORATORY | OTHERS),
        (RUN, REPORTS | OTHERS | {"rich.progress"}),
        (("list", "designs"), REPORTS | OTHERS | {"rich.progress"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_command_imports_what_it_needs(tmp_path, arguments, avoided):
    found = loaded(*arguments, cwd=tmp_path)
    assert sorted(found & avoided) == []
    assert "graven.cli" in found


def test_an_interrupt_while_the_command_starts_is_no_traceback(tmp_path):
    """The package's own imports, that is; what Python does before them is Python's."""
    slow = tmp_path / "click.py"
    slow.write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT)\n")
    (tmp_path / "graven").write_text("from graven.cli import main\nmain()\n")
    done = subprocess.run(
        [sys.executable, str(tmp_path / "graven"), "--help"],
        env={**os.environ, "PYTHONPATH": str(HERE.parent)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
    library = subprocess.run(
        [sys.executable, "-c", "import graven, signal; print(signal.getsignal(signal.SIGINT))"],
        env={**os.environ, "PYTHONPATH": str(HERE.parent)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "default_int_handler" in library.stdout, "who imports the package keeps Python's way"


def test_the_package_imports_what_is_asked_for(tmp_path):
    begin = "import sys, graven"
    end = "; print('LOADED', *sys.modules)"
    lazy = {f"graven.{module}" for module in package._MODULES}
    found = loaded(cwd=tmp_path, script=begin + end)
    assert sorted(found & (lazy | TABLES | REPORTS | OTHERS | {"click"})) == []
    found = loaded(cwd=tmp_path, script=begin + "; graven.Cost" + end)
    assert found & lazy == {"graven.results.costs", "graven.engine.catalogue"}


def test_the_package_has_all_that_it_says():
    source = Path(package.__file__).read_text(encoding="utf-8")
    [checked] = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    for_checkers = {
        node.module.removeprefix("graven."): tuple(name.name for name in node.names)
        for node in checked.body
    }
    assert for_checkers == package._MODULES
    assert set(package._HOMES) < set(package.__all__) <= set(dir(package))
    for name, module in package._HOMES.items():
        home = importlib.import_module(f"graven.{module}")
        assert getattr(package, name) is getattr(home, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        package.nothing  # noqa: B018


def test_the_group_has_every_command():
    commands = {name: unloaded.load() for name, unloaded in group.cli.commands.items()}
    assert {name: command.name for name, command in commands.items()} == {n: n for n in commands}
    modules = [
        importlib.import_module(f"graven.cli.{module.name}")
        for module in pkgutil.iter_modules(graven.cli.__path__)
        if module.name != "group"
    ]
    defined = [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, click.Command) and value.callback.__module__ == module.__name__
    ]
    of_groups = [
        command
        for group in defined
        if isinstance(group, click.Group)
        for command in group.commands.values()
    ]
    assert {id(c) for c in defined} - {id(c) for c in of_groups} == {
        id(c) for c in commands.values()
    }


def test_the_help_lists_every_command(quick):
    lines = [" ".join(line.split()) for line in quick("--help").stdout.splitlines()]
    listed = lines[lines.index("Commands:") + 1 :]
    assert listed == [f"{name} {text}" for name, (_, text) in sorted(group.COMMANDS.items())]


def test_a_command_that_is_mistyped_is_known(quick):
    done = quick("compar")
    assert done.returncode == 2
    assert "No such command 'compar'" in done.stderr
    assert "compare" in done.stderr.replace("'compar'", "")
