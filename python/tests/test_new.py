"""`graven new`: crates of one's own.

Bug class: a crate that cannot be built, or a folder of somebody's that is written over.
"""

import os
import re
import shlex
import subprocess
import tomllib

import pytest
from conftest import HERE, python

from graven import __version__

ROOT = HERE.parent.parent

TUTORIAL = "## Start with a crate"

EXAMPLES = ["proteus", "hops", "bbb", "atom", "picl", "skip-list"]


# The crates that a new one depends on are those beside the package.
@pytest.mark.checkout
@pytest.mark.parametrize("kind", ["design", "workload"])
def test_a_crate_is_written_whole(quick, tmp_path, kind):
    done = quick("new", kind, "my-log")
    assert done.returncode == 0, done.stderr
    files = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")}
    assert {f"my-log/src/{kind}.rs", "my-log/src/lib.rs", "my-log/tests/contract.rs"} <= files
    assert (tmp_path / "my-log/Cargo.lock").read_bytes() == (ROOT / "Cargo.lock").read_bytes()
    cargo = tomllib.loads((tmp_path / "my-log/Cargo.toml").read_text())
    assert cargo["package"]["name"] == "graven-my-log"
    assert cargo["dependencies"]["graven"]["path"].endswith("crates/graven")
    project = tomllib.loads((tmp_path / "my-log/pyproject.toml").read_text())
    points = project["project"]["entry-points"]["graven.engines"]
    assert points == {"graven_my_log": project["tool"]["maturin"]["module-name"]}
    text = "".join(path.read_text() for path in (tmp_path / "my-log").rglob("*.*"))
    assert "{{" not in text
    assert "}}" not in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("design", "My_Log"), "'My_Log' is no name; allowed are lower-case letters"),
        (("design", "silo"), "there is a design silo"),
        (("table", "my-log"), "'table' is not one of 'design', 'workload', 'engine'"),
        (("engine", "both"), "an engine, and nothing else, has crates that --with names"),
        (("design", "my-log", "--with", "."), "an engine, and nothing else, has crates"),
        (("engine", "both", "--with", "."), "--with: . is no crate with a library"),
    ],
)
def test_what_cannot_be_is_refused(quick, tmp_path, arguments, message):
    done = quick("new", *arguments)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert not list(tmp_path.iterdir())


def test_a_folder_that_exists_is_left_alone(quick, tmp_path):
    (tmp_path / "my-log").mkdir()
    done = quick("new", "design", "my-log")
    assert done.returncode == 2
    assert "exists already" in done.stderr
    assert not list((tmp_path / "my-log").iterdir())


CRATES = {
    "crates/graven/Cargo.toml": "",
    "Cargo.toml": f'[workspace.package]\nversion = "{__version__}"\n',
    "Cargo.lock": "version = 4\n",
}
"""As much of Graven's sources as is looked at."""


def sources(folder, **changed):
    for path, text in {**CRATES, **changed}.items():
        if text is not None:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    return folder / "crates"


def test_a_crate_depends_on_the_crates_that_are_named(quick, tmp_path):
    crates = sources(tmp_path / "graven")
    done = quick("new", "design", "my-log", "--graven", str(crates), "--into", "some/where")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "some/where/my-log"
    cargo = tomllib.loads((folder / "Cargo.toml").read_text())
    path = cargo["dependencies"]["graven"]["path"]
    assert path == "../../../graven/crates/graven", "it moves with the crate"
    assert (folder / path).resolve() == (crates / "graven").resolve()
    assert (folder / "Cargo.lock").read_text() == CRATES["Cargo.lock"]
    assert [path.name for path in folder.parent.iterdir()] == ["my-log"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"crates/graven/Cargo.toml": None, "crates/x": ""}, "has no crate `graven`"),
        ({"Cargo.toml": None}, "which says the version of the crates, cannot be read"),
        ({"Cargo.toml": "version = 1"}, "which says the version of the crates, cannot be read"),
        ({"Cargo.toml": '[workspace.package]\nversion = "9.9.9"'}, "are of version 9.9.9, this is"),
    ],
)
def test_crates_of_something_else_are_refused(quick, tmp_path, changed, message):
    crates = sources(tmp_path / "graven", **changed)
    done = quick("new", "design", "my-log", "--graven", str(crates))
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert not (tmp_path / "my-log").exists()


def test_a_folder_that_cannot_be_written_is_not_there_in_part(quick, tmp_path):
    (tmp_path / "file").touch()
    crates = sources(tmp_path / "graven")
    done = quick("new", "design", "my-log", "--graven", str(crates), "--into", "file/deep")
    assert done.returncode == 1
    assert "cannot write file/deep/my-log" in done.stderr
    assert (tmp_path / "file").is_file()


def crate(folder, lib="pub fn register(registry: &mut Registry) {}"):
    """A crate of somebody's."""
    (folder / "src").mkdir(parents=True)
    (folder / "Cargo.toml").write_text(f'[package]\nname = "my-{folder.name}"\n')
    (folder / "src/lib.rs").write_text(lib)
    return str(folder)


@pytest.mark.checkout
def test_an_engine_has_the_crates_that_are_named(quick, tmp_path):
    first, second = (crate(tmp_path / "crates" / name) for name in ["one", "two"])
    done = quick("new", "engine", "both", "--with", first, "--with", second)
    assert done.returncode == 0, done.stderr
    cargo = tomllib.loads((tmp_path / "both/Cargo.toml").read_text())
    assert cargo["dependencies"]["my-one"] == {"path": "../crates/one"}
    assert cargo["dependencies"]["my-two"] == {"path": "../crates/two"}
    library = (tmp_path / "both/src/lib.rs").read_text()
    assert "    my_one::register(registry);\n    my_two::register(registry);\n}" in library
    readme = (tmp_path / "both/README.md").read_text()
    assert "| `my-one` | `../crates/one` |\n| `my-two` | `../crates/two` |\n\n" in readme


def test_crates_that_an_engine_cannot_have_are_refused(quick, tmp_path):
    one = crate(tmp_path / "crates/one")
    for folder, message in [
        (crate(tmp_path / "crates/two", lib=""), "has no function `register` in src/lib.rs"),
        (crate(tmp_path / "others/one"), "two crates have a library my_one"),
    ]:
        done = quick("new", "engine", "both", "--with", one, "--with", folder)
        assert done.returncode == 2
        assert message in " ".join(done.stderr.split())
        assert not (tmp_path / "both").exists()


@pytest.mark.long
@pytest.mark.checkout
@pytest.mark.xdist_group("out-of-tree")
def test_designs_of_several_crates_are_used_together(quick, tmp_path, out_of_tree):
    examples = [argument for name in EXAMPLES for argument in ("--with", ROOT / "examples" / name)]
    done = quick("new", "engine", "all", *map(str, examples))
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "all"
    for command in [["test", "--release"], ["build", "--release"]]:
        done = cargo(*command, cwd=folder, built=out_of_tree)
        assert done.returncode == 0, done.stdout + done.stderr
    (folder / "graven_all.so").symlink_to(out_of_tree / "release/libgraven_all.so")
    compared = python(
        *shlex.split("-m graven compare --designs base,picl,hops-undo --workloads skip-list"),
        *shlex.split("--transactions 200 --from-start"),
        cwd=folder,
        GRAVEN_ENGINE="graven_all",
        PYTHONPATH=f"{ROOT / 'python'}{os.pathsep}{folder}",
    )
    assert compared.returncode == 0, compared.stderr
    assert "hops-undo" in compared.stdout


def commands_of(section):
    """The commands of the first block of a section of docs/guides/designs.md, without their
    comments."""
    text = (ROOT / "docs/guides/designs.md").read_text()
    block = re.search(rf"{re.escape(section)}\n.*?\n\n((?:    [^\n]*\n)+)", text, re.DOTALL)
    assert block is not None
    return [shlex.split(line, comments=True) for line in block[1].splitlines()]


def cargo(*arguments, cwd, built):
    environment = {**os.environ, "CARGO_TARGET_DIR": str(built), "NO_COLOR": "1"}
    return subprocess.run(
        ["cargo", *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long
@pytest.mark.checkout
@pytest.mark.xdist_group("out-of-tree")
@pytest.mark.parametrize("kind", ["design", "workload"])
def test_the_tutorial_works_to_the_letter(kind, tmp_path, out_of_tree):
    """Its commands, in its order; the crates that it depends on are built once for both kinds."""
    folder = tmp_path / "my-log"
    ran = []
    for command in commands_of(TUTORIAL):
        cwd = folder if folder.exists() else tmp_path
        match command:
            case ["graven", "new", "design", name]:
                done = python("-m", "graven", "new", kind, name, cwd=cwd)
            case ["cd", name]:
                assert (tmp_path / name).is_dir()
                continue
            case ["cargo", *arguments]:
                done = cargo(*arguments, cwd=cwd, built=out_of_tree)
            case ["maturin", "develop", *_]:
                # Not into the environment of the other tests: a folder on the path does as well.
                done = cargo("build", "--release", cwd=cwd, built=out_of_tree)
                library = out_of_tree / "release/libgraven_my_log.so"
                (folder / "graven_my_log.so").symlink_to(library)
            case ["graven", *arguments]:
                if kind == "workload":
                    arguments = ["run", "--design", "silo", "--workload", "my-log"]
                done = python(
                    "-m",
                    "graven",
                    *arguments,
                    *(["--transactions", "200"] if arguments[0] == "compare" else []),
                    cwd=cwd,
                    GRAVEN_ENGINE="graven_my_log",
                    PYTHONPATH=f"{ROOT / 'python'}{os.pathsep}{folder}",
                )
                assert "my-log" in done.stdout
            case _:
                pytest.fail(f"nobody expected {command}")
        assert done.returncode == 0, done.stdout + done.stderr
        ran.append(command[0])
    assert ran == ["graven", "cargo", "maturin", "graven", "graven"]
