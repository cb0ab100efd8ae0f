"""What keeps a release from being made is noticed, and said with its place.

Bug class: a release that says two things, lacks something, or runs on fewer systems than it says.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import zipfile

import pytest

from . import __main__ as command
from . import building, checks
from .building import PLUGIN, ROOT, ReleaseError, run

VERSION = checks.version_of(ROOT)


@pytest.fixture
def checkout(tmp_path):
    """Files that say something of a version, as a commit of its own."""
    for name in ("Cargo.toml", "CITATION.cff", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    run("git", "init", "--quiet", folder=tmp_path)
    commit(tmp_path)
    return tmp_path


def commit(folder):
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    run("git", "add", "--all", folder=folder)
    run("git", *who, "commit", "--quiet", "--allow-empty", "-m", "x", folder=folder)


def problems(folder, section=checks.UNRELEASED):
    return list(checks.tree_problems(folder, section))


def mutate(path, before, after):
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))


def test_this_tree_agrees_with_itself(checkout):
    assert problems(checkout) == []


@pytest.mark.parametrize(
    ("file", "before", "after", "said"),
    [
        ("CITATION.cff", f"version: {VERSION}", "version: 9.9.9", "CITATION.cff: version is 9.9.9"),
        ("CITATION.cff", f"version: {VERSION}\n", "", "CITATION.cff: version is missing"),
        ("CHANGELOG.md", "## Unreleased", "## 9.9.9", "allowed are `## Unreleased` and"),
        ("CHANGELOG.md", "## Unreleased", "## 9.9.9 - 2026-02-30", "allowed are `## Unreleased`"),
        ("CHANGELOG.md", "### Added", "### News", "heading `### News`, allowed are Added"),
    ],
)
def test_what_disagrees_is_said_with_its_place(checkout, file, before, after, said):
    mutate(checkout / file, before, after)
    commit(checkout)
    found = problems(checkout)
    assert any(said in problem for problem in found), found
    assert all(str(checkout) in problem for problem in found)


def test_a_release_needs_a_section_of_its_version_that_is_not_empty(checkout):
    [missing] = problems(checkout, VERSION)
    assert f"a section `## {VERSION} - YYYY-MM-DD` is needed" in missing
    changelog, dated = checkout / "CHANGELOG.md", f"## {VERSION} - 2026-01-31"
    mutate(changelog, "## Unreleased", f"{dated}\n\n## Unreleased")
    commit(checkout)
    [missing] = problems(checkout, VERSION)
    assert f"no changes of {VERSION}" in missing
    mutate(changelog, f"{dated}\n\n## Unreleased", dated)
    commit(checkout)
    assert problems(checkout, VERSION) == []
    assert checks.changes(changelog.read_text(), VERSION).startswith("### Added")
    assert problems(checkout) != []


def test_a_tree_with_changes_is_refused(checkout):
    (checkout / "new.py").touch()
    mutate(checkout / "CITATION.cff", "Graven", "graven")
    assert {problem.split()[0] for problem in problems(checkout)} == {"new.py", "CITATION.cff"}


def packed(folder, name, names):
    """An archive with empty files of these names."""
    path = folder / name
    if path.suffix == ".whl":
        with zipfile.ZipFile(path, "w") as archive:
            for each in names:
                archive.writestr(each, "")
        return path
    top = name.removesuffix(".crate").removesuffix(".tar.gz")
    with tarfile.open(path, "w:gz") as archive:
        for each in names:
            archive.addfile(tarfile.TarInfo(f"{top}/{each}"), io.BytesIO())
    return path


ARCHIVES = {
    ".gz": f"graven-{VERSION}.tar.gz",
    ".crate": "graven-lab-1.0.0.crate",
    ".whl": f"graven-{VERSION}-cp311-abi3-{checks.PLATFORM}.whl",
}


@pytest.mark.parametrize(
    ("suffix", "more", "superfluous"),
    [
        (".gz", "crates/lab/src/litmus/tests/mod.rs", False),
        (".gz", "python/graven/cli/templates/design/tests/contract.rs.jinja", False),
        (".gz", "python/tests/test_x.py", True),
        (".gz", PLUGIN, True),
        (".gz", "python/requirements.lock", True),
        (".gz", "target/x", True),
        (".crate", "src/litmus/tests.rs", False),
        (".crate", "target/debug/x", True),
        (".whl", f"graven-{VERSION}.dist-info/METADATA", False),
        (".whl", "graven/__pycache__/x.pyc", True),
        (".whl", "python/tests/x.py", True),
    ],
)
def test_archives_have_what_is_needed_and_nothing_else(tmp_path, suffix, more, superfluous):
    needed = checks.CONTENTS[suffix].needed
    archive = packed(tmp_path, ARCHIVES[suffix], (*needed, more))
    said = [f"{archive.name}: {more} is superfluous"] if superfluous else []
    assert checks.archive_problems(archive) == said
    archive = packed(tmp_path, ARCHIVES[suffix], needed[1:])
    said = [f"{archive.name}: {name} is missing" for name in (needed[0], "x.litmus")]
    assert checks.archive_problems(archive, ["x.litmus"]) == said


@pytest.mark.parametrize(
    ("name", "needed", "said"),
    [
        (f"{VERSION}-cp311-abi3-{checks.PLATFORM}", checks.PLATFORM, 0),
        (f"{VERSION}-cp311-abi3-manylinux2014_x86_64.{checks.PLATFORM}", checks.PLATFORM, 0),
        (f"{VERSION}-cp312-cp312-{checks.PLATFORM}", checks.PLATFORM, 1),
        (f"9.9.9-cp311-abi3-{checks.PLATFORM}", checks.PLATFORM, 1),
        (f"{VERSION}-cp311-abi3-linux_x86_64", checks.PLATFORM, 1),
        (f"{VERSION}-cp311-abi3-{checks.PLATFORM}", "manylinux_2_34_x86_64", 1),
        (f"{VERSION}-cp311-abi3-manylinux_2_34_x86_64", "manylinux_2_34_x86_64", 2),
    ],
)
def test_a_wheel_is_of_the_version_and_for_the_systems_that_it_says(name, needed, said):
    found = checks.platform_problems(f"graven-{name}.whl", VERSION, needed)
    assert len(found) == said, found


def test_a_crate_is_compiled_from_its_package_of_this_commit(tmp_path):
    """For cargo, a package of a name and version that it has compiled is so for good."""

    def source(name, text, *dependencies):
        folder = tmp_path / name
        (folder / "src").mkdir(parents=True, exist_ok=True)
        (folder / "src/lib.rs").write_text(text)
        head = f'[package]\nname = "{name}"\nversion = "1.0.0"\nedition = "2024"\n[dependencies]\n'
        (folder / "Cargo.toml").write_text(head + "".join(dependencies))

    def packaged(function):
        source("lower", f"pub fn {function}() {{}}")
        upper = f"pub fn upper() {{ lower::{function}() }}"
        source("upper", upper, 'lower = { version = "1.0.0", path = "../lower" }\n')
        run("cargo", "generate-lockfile", "--offline", folder=tmp_path)
        commit, dist = building.Commit(function, 0), tmp_path / "dist"
        return building.crates(tmp_path, commit, dist, environment, verified=True)

    (tmp_path / "Cargo.toml").write_text(
        '[workspace]\nmembers = ["lower", "upper"]\nresolver = "3"\n'
    )
    folders = {"CARGO_TARGET_DIR": tmp_path / "compiled", "CARGO_HOME": tmp_path / "home"}
    environment = {**os.environ, **{name: str(path) for name, path in folders.items()}}
    for function in ("first", "second"):
        shutil.rmtree(tmp_path / "dist", ignore_errors=True)
        names = [path.name for path in packaged(function)]
        assert names == ["lower-1.0.0.crate", "upper-1.0.0.crate"]


def test_builds_that_differ_are_named(tmp_path):
    for folder, content in (("one", "a"), ("two", "b")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same").write_text("x")
        (tmp_path / folder / "differs").write_text(content)
        (tmp_path / folder / folder).touch()
    first, second = (list((tmp_path / name).iterdir()) for name in ("one", "two"))
    found = checks.differences(first, second)
    assert len(found) == 3
    assert "one was built once only" in found
    assert f"{tmp_path}/one/differs and {tmp_path}/two/differs differ" in found[2]


def test_a_folder_of_a_release_is_written_whole(tmp_path):
    wheel = tmp_path / "x.whl"
    wheel.write_text("x")
    final = command._put([wheel], "### Added\n- x", tmp_path / "release-1.0.0")
    assert {path.name for path in final.iterdir()} == {"x.whl", "CHANGES.md", "SHA256SUMS"}
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=final, check=True)


def test_a_command_that_fails_says_what_and_where(tmp_path):
    with pytest.raises(ReleaseError, match=f"(?s)git log in {tmp_path} failed .*not a git repo"):
        run("git", "log", folder=tmp_path)
