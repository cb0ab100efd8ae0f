"""What the module that is built by a profile needs, and what is simulated for the profile."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from . import optimised
from .building import ROOT, ReleaseError, run

RUSTC = "rustc 1.95.0\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\nLLVM version: 22.1.2\n"


def program(path: Path, version: str = "22.1.8") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho 'Debian LLVM version {version}'\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_the_tool_of_the_compiler_is_taken_before_the_distributions(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    sysroot = tmp_path / "rust"
    program(tmp_path / "bin" / "llvm-profdata")
    assert optimised.merger(RUSTC, sysroot) == "llvm-profdata"
    program(tmp_path / "bin" / "llvm-profdata-22")
    program(tmp_path / "bin" / "llvm-profdata-21")
    assert optimised.merger(RUSTC, sysroot) == "llvm-profdata-22"
    own = program(sysroot / "lib/rustlib/x86_64-unknown-linux-gnu/bin/llvm-profdata")
    assert optimised.merger(RUSTC, sysroot) == own


def test_a_tool_that_is_missing_is_named_with_its_version(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ReleaseError, match=r"LLVM 22 is not installed: .*llvm-tools.*llvm-22"):
        optimised.merger(RUSTC, tmp_path)


def test_a_tool_of_another_version_is_not_taken_and_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    program(tmp_path / "llvm-profdata", version="14.0.6")
    with pytest.raises(ReleaseError, match=r"not installed: llvm-profdata is of LLVM 14; `rustup"):
        optimised.merger(RUSTC, tmp_path / "rust")


@pytest.mark.parametrize(
    ("what", "names"), [("machines", optimised.MACHINES), ("workloads", optimised.WORKLOADS)]
)
def test_what_is_simulated_for_the_profile_is_there(what, names):
    listed = run(sys.executable, "-m", "graven", "list", what, folder=ROOT).split()
    assert set(names) <= set(listed)
