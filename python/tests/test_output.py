"""Files: refused before a run, or written whole."""

from __future__ import annotations

import errno
import os
import shutil
from collections import namedtuple

import pytest

from graven import output

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
    assert [target.path.name for target in output.targets(tmp_path / out, None)] == names
