"""Files: refused before a run, or written whole."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections import namedtuple
from pathlib import Path

import click
import pytest
from conftest import ENVIRONMENT, HERE

from graven.basics import output
from graven.results import formats

Usage = namedtuple("Usage", "total used free")


def test_a_full_disk_is_refused_before_the_run(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 30, 1 << 30, 1000))
    with pytest.raises(output.OutputError, match=r"not enough free space: 0\.0 MB free, 8\.0 MB"):
        output.check([tmp_path / "results.json"], 8 << 20)


def test_a_quota_is_found_by_taking_the_space(monkeypatch, tmp_path):
    def refuse(*_):
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(output.OutputError, match="Disk quota exceeded"):
        output.check([tmp_path / "results.json"], 100)


def test_a_check_leaves_nothing_behind(tmp_path):
    folder = tmp_path / "deep" / "new"
    output.check([folder / "results.json"], 100, make=folder)
    assert list(folder.iterdir()) == []


def test_a_refused_folder_is_not_left_behind(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 30, 1 << 30, 1000))
    folder = tmp_path / "new"
    with pytest.raises(output.OutputError, match="not enough free space"):
        output.check([folder / "results.json"], 8 << 20, make=folder)
    assert not folder.exists()


def test_only_the_folder_of_results_is_made(tmp_path):
    with pytest.raises(output.OutputError, match="No such file or directory"):
        output.check([tmp_path / "new" / "report.html"], 100, make=tmp_path / "other")


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(output.OutputError, match="it is a folder"):
        output.check([tmp_path], 100)


def test_a_write_that_fails_keeps_the_old_content(monkeypatch, tmp_path):
    path = tmp_path / "results.json"
    path.write_text("old")

    def refuse(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(output.OutputError, match="No space left on device"):
        output.write(path, b"new")
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["results.json"]


def test_a_write_replaces_the_whole_file(tmp_path):
    path = tmp_path / "results.json"
    path.write_text("something longer than the new content")
    output.write(path, b"new")
    assert path.read_bytes() == b"new"
    assert [item.name for item in tmp_path.iterdir()] == ["results.json"]


@pytest.mark.parametrize(
    ("out", "names"),
    [
        ("x.json", ["x.json"]),
        ("x.CSV", ["x.CSV"]),
        ("x", ["results.json", "results.csv", "results.parquet", "report.html"]),
    ],
)
def test_the_name_says_the_format(tmp_path, out, names):
    assert [target.path.name for target in formats.targets(tmp_path / out, None)] == names


# ---- where it goes -------------------------------------------------------------------------------


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file").write_text("old")
    (tmp_path / "link").symlink_to("folder/file")
    (tmp_path / "chain").symlink_to("link")
    output.write(tmp_path / "chain", b"new")
    with output.growing(tmp_path / "link") as place:
        assert place.parent == tmp_path / "folder", "it grows beside the file that it becomes"
        place.write_bytes(b"newer")
    assert (tmp_path / "chain").is_symlink()
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder/file").read_bytes() == b"newer"


def test_a_link_to_what_is_not_there_yet_is_followed(tmp_path):
    (tmp_path / "link").symlink_to("new")
    output.check([tmp_path / "link"], 100)
    output.write(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "new").read_bytes() == b"new"


def test_a_circle_of_links_is_refused(tmp_path):
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(
        output.OutputError, match=r"cannot write .*one: Too many levels of symbolic"
    ):
        output.check([tmp_path / "one"], 100)


def test_a_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "results.json"
    path.write_text("old")
    path.chmod(0o640)
    output.write(path, b"new")
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_device_is_written_to_and_stays_one():
    for path in (Path("/dev/null"), Path("/dev/../dev/null")):
        output.check([path], 1 << 60)
        output.write(path, b"gone")
        with output.growing(path) as place:
            place.write_bytes(b"gone, too")
        assert stat.S_ISCHR(path.stat().st_mode)


def test_a_device_that_is_full_is_an_error():
    with pytest.raises(output.OutputError, match="cannot write /dev/full: No space left on device"):
        output.write(Path("/dev/full"), b"new")
    with (
        pytest.raises(output.OutputError, match="cannot write /dev/full: No space left on device"),
        output.growing(Path("/dev/full")) as place,
    ):
        place.write_bytes(b"new")
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)


def read_all(path, found):
    found.append(path.read_bytes())


@pytest.mark.parametrize("grows", [False, True])
def test_a_pipe_with_a_name_is_written_to_and_stays_one(tmp_path, grows):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found = []
    reader = threading.Thread(target=read_all, args=(pipe, found))
    reader.start()
    content = bytes(range(256)) * 1000
    output.check([pipe], 100)
    if grows:
        with output.growing(pipe) as place:
            place.write_bytes(content)
    else:
        output.write(pipe, content)
    reader.join()
    assert found == [content]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert [item.name for item in tmp_path.iterdir()] == ["pipe"]


def in_shell(shell, script, folder):
    """Runs a script, which has the command as "$PYTHON" "$GRAVEN"; it has to end well."""
    done = subprocess.run(
        [shell, "-c", script],
        cwd=folder,
        env={**ENVIRONMENT, "PYTHON": sys.executable, "GRAVEN": str(HERE / "engine_hook.py")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("redirected", ["file", "pipe"])
def test_standard_output_is_written_to_where_it_is(tmp_path, name, redirected):
    run = ("--design", "silo", "--workload", "btree", "--transactions", "10")
    quoted = " ".join([*run, "--bank-loads", name, "--format", "csv"])
    out = "> out" if redirected == "file" else "| cat > out"
    script = f'{{ echo before; "$PYTHON" "$GRAVEN" run {quoted}; echo after; }} {out}'
    in_shell("sh", script, tmp_path)
    lines = (tmp_path / "out").read_text().splitlines()
    assert (lines[0], lines[1][:11], lines[-1]) == ("before", "cycle,bank0", "after")
    assert lines[2].startswith("design,workload")
    assert not (tmp_path / "-").exists()


def test_what_a_shell_gives_for_a_command_is_written_to(tmp_path):
    compare = '"$PYTHON" "$GRAVEN" compare --workloads array --designs base,silo'
    script = f"{compare} --report >(wc -c > count)"
    in_shell("bash", script + "; wait; sleep 0.2", tmp_path)
    assert int((tmp_path / "count").read_text()) > 10_000


OPTIONS = [
    ("run", "--design", "silo", "--workload", "btree", "--request-trace"),
    ("run", "--design", "silo", "--workload", "btree", "--bank-loads"),
    ("compare", "--workloads", "array", "--designs", "base,silo", "--report"),
    ("trace", "record", "--design", "silo", "--workload", "btree", "--transactions", "10"),
]


@pytest.mark.parametrize("command", OPTIONS)
@pytest.mark.parametrize("device", ["/dev/full", "/dev/null"])
def test_no_option_replaces_a_device(quick, command, device):
    done = quick(*command, device)
    assert stat.S_ISCHR(Path(device).stat().st_mode)
    if device == "/dev/full":
        assert done.returncode == 1
        assert "cannot write /dev/full: No space left on device" in done.stderr
    else:
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", OPTIONS)
def test_no_option_replaces_a_link(quick, tmp_path, command):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/file")
    done = quick(*command, "link")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder/file").stat().st_size > 0


def linked(file, kind):
    """Another path of a file."""
    other = file.with_name(f"other{file.suffix}")
    if kind == "symbolic":
        other.symlink_to(file)
    elif kind == "hard":
        other.hardlink_to(file)
    return file if kind == "path" else other


LINKS = pytest.mark.parametrize("kind", ["path", "symbolic", "hard"])


@LINKS
def test_a_file_is_written_once_and_not_while_it_is_read(tmp_path, kind):
    file = tmp_path / "file.json"
    file.write_text("{}")
    other = linked(file, kind)
    with pytest.raises(output.OutputRefusedError, match="a and b: both name "):
        output.apart([("a", file), ("b", other)])
    with pytest.raises(output.OutputRefusedError, match=r"a: .* would take the place of what is"):
        output.apart([("a", other)], [("b", file)])
    output.apart([("a", other)], [("b", tmp_path / "another.json")])
    output.apart([], [("a", file), ("b", other)])


def test_a_file_that_is_not_there_yet_is_the_same_by_all_its_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder", target_is_directory=True)
    (tmp_path / "to").symlink_to("folder/new")
    for other in ("folder/../folder/new", "link/new", tmp_path / "folder/new", "to"):
        with pytest.raises(output.OutputRefusedError, match="both name"):
            output.apart([("a", Path("folder/new")), ("b", Path(other))])
    output.apart([("a", Path("folder/new")), ("b", Path("folder/newer"))])


def test_what_is_no_regular_file_takes_no_files_place():
    for path in ("/dev/null", "-", "/dev/stdout", "/dev/fd/2"):
        output.apart([("a", Path(path)), ("b", Path(path))], [("c", Path(path))])


RUN = ("run", "--design", "silo", "--workload")

READING = [
    (*RUN, "btree", "--machine", "in.toml", "--request-trace"),
    (*RUN, "btree", "--machine", "in.toml", "--bank-loads"),
    (*RUN, "in.gvt", "--timeline"),
    ("trace", "record", "--design", "silo", "--workload", "in.gvt"),
    ("trace", "record", "--design", "silo", "--workload", "hash", "--machine", "in.toml"),
    ("trace", "convert", "in.gvt", "--to"),
    ("trace", "convert", "a.xz", "in.xz", "--to"),
    ("compare", "--machine", "in.toml", "--report"),
    ("compare", "--workloads", "array,in.gvt", "--report"),
    ("compare", "--with", "in.json", "--out"),
    ("sweep", "in.json", "--out"),
    ("diff", "a.json", "in.json", "--report"),
    ("plot", "banks", "in.svg", "--out"),
    ("plot", "timeline", "in.pdf", "--out"),
    ("plot", "bars", "--machine", "in.toml", "--out"),
    ("plot", "traffic", "--style", "in.mplstyle", "--out"),
    ("crash", "--machine", "in.toml", "--replay"),
    ("capture", "--pm-file", "in.db", "program", "--to"),
    ("capture", "./in.sh", "--to"),
]


@LINKS
@pytest.mark.parametrize("command", READING)
def test_no_command_takes_the_place_of_what_it_reads(quick, tmp_path, command, kind):
    (tmp_path / "a.xz").write_text("other")
    [name] = {word.split(",")[-1] for word in command if "in." in word}
    file = tmp_path / name
    file.write_text("content")
    if "capture" in command:
        command = (command[0], "--to", str(linked(file, kind)), *command[1:-1])
    else:
        command = (*command, str(linked(file, kind)))
    done = quick(*command)
    assert done.returncode == 2
    assert "would take the place of what is read" in done.stderr
    assert file.read_text() == "content"


@LINKS
def test_no_function_takes_the_place_of_what_it_reads(tmp_path, kind):
    import graven
    from graven.capture import capture

    machine, program = tmp_path / "m.toml", tmp_path / "program"
    machine.write_text("[pm]\n")
    program.write_text("content")
    to_machine, to_program = linked(machine, kind), linked(program, kind)
    for function, arguments, options in [
        (graven.run, ("silo", "btree"), {"machine": machine, "timeline": to_machine}),
        (graven.run, ("silo", "btree"), {"machine": machine, "request_trace": to_machine}),
        (graven.record_trace, (to_machine, "silo", "btree"), {"machine": machine}),
        (capture, ([str(program)], to_program), {"transactions": ["durable"]}),
        (capture, (["true"], to_program), {"pm_files": [str(program)]}),
    ]:
        with pytest.raises(graven.OutputError, match="would take the place of what is read"):
            function(*arguments, **options)
    assert (machine.read_text(), program.read_text()) == ("[pm]\n", "content")


@pytest.mark.parametrize(
    "command",
    [
        (*RUN, "btree", "--request-trace", "x", "--timeline", "x"),
        (*RUN, "btree", "--bank-loads", "x", "--timeline", "./x"),
        ("compare", "--out", "x.json", "--report", "x.json"),
        ("compare", "--designs", "silo", "--out", "x", "--report", "x/results.json"),
        ("adversary", "--state", "x", "--replay", "x"),
    ],
)
def test_no_command_writes_one_file_twice(quick, tmp_path, command):
    done = quick(*command)
    assert done.returncode == 2
    assert "both name x" in done.stderr
    assert list(tmp_path.iterdir()) == []


READ = {
    "capture --sysroot",
    "compare --with",
    "hygiene --suppress",
    "hygiene --sysroot",
    "litmus files",
    "memory trace",
    "mutants --programs",
    "plot banks file",
    "plot timeline file",
    "powerfail --sysroot",
    "sweep file",
    "trace convert sources",
    "trace info path",
    "trace print path",
    "trace replay path",
}
"""Files that commands read; all others are written."""


def commands(command, name=""):
    """All commands of a group, loaded."""
    from graven.cli.group import Unloaded

    if isinstance(command, Unloaded):
        command = command.load()
    if isinstance(command, click.Group):
        for each in command.commands.values():
            yield from commands(each, f"{name} {each.name}".strip())
    else:
        yield name, command


def test_every_file_that_a_command_writes_is_compared_with_those_that_it_reads():
    from graven.cli.files import Writer, Written
    from graven.cli.group import cli

    read = set()
    for name, command in commands(cli):
        for param in command.params:
            if isinstance(param.type, Written):
                assert isinstance(command, Writer), name
            elif isinstance(param.type, click.Path) and param.type.file_okay:
                read.add(f"{name} {param.opts[0]}")
    assert read == READ
