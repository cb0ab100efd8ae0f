"""`graven new`: crates of one's own.

Bug class: a crate that cannot be built, or a folder of somebody's that is written over.
"""

import tomllib

import pytest


@pytest.mark.parametrize("kind", ["design", "workload"])
def test_a_crate_is_written_whole(graven, tmp_path, kind):
    done = graven("new", kind, "my-log")
    assert done.returncode == 0, done.stderr
    files = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")}
    assert {f"my-log/src/{kind}.rs", "my-log/src/lib.rs", "my-log/tests/contract.rs"} <= files
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
        (("table", "my-log"), "'table' is not one of 'design', 'workload'"),
    ],
)
def test_what_cannot_be_is_refused(graven, tmp_path, arguments, message):
    done = graven("new", *arguments)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert not list(tmp_path.iterdir())


def test_a_folder_that_exists_is_left_alone(graven, tmp_path):
    (tmp_path / "my-log").mkdir()
    done = graven("new", "design", "my-log")
    assert done.returncode == 2
    assert "exists already" in done.stderr
    assert not list((tmp_path / "my-log").iterdir())
