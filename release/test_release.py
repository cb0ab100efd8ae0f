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
from . import agreement, archives, building, wheels
from .building import PLUGIN, ROOT, run
from .problems import ReleaseError

VERSION = agreement.version_of(ROOT)

DECLARING = ("Cargo.toml", "Cargo.lock", "pyproject.toml", "CITATION.cff", "CHANGELOG.md")


@pytest.fixture
def checkout(tmp_path):
    """What declares versions, as a commit of its own."""
    members = [
        path for folder in ("crates", "benches") for path in ROOT.glob(f"{folder}/**/*.toml")
    ]
    for path in (*map(ROOT.joinpath, DECLARING), *members, ROOT / "python/Cargo.toml"):
        target = tmp_path / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    run("git", "init", "--quiet", folder=tmp_path)
    commit(tmp_path)
    return tmp_path


def commit(folder):
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    run("git", "add", "--all", folder=folder)
    run("git", *who, "commit", "--quiet", "--allow-empty", "-m", "x", folder=folder)


def mutate(path, before, after):
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))


def test_this_tree_agrees_with_itself(checkout):
    assert agreement.problems(checkout, rehearsal=True) == []


@pytest.mark.parametrize(
    ("file", "before", "after", "said"),
    [
        ("CITATION.cff", f"version: {VERSION}", "version: 9.9.9", "CITATION.cff: version is 9.9.9"),
        ("CITATION.cff", f"version: {VERSION}\n", "", "CITATION.cff: version is missing"),
        ("Cargo.toml", f'version = "{VERSION}"', 'version = "9.9"', "those like 1.2.0"),
        ("Cargo.toml", f'"={VERSION}"', '"=9.9.9"', f'not version = "={VERSION}"'),
        ("Cargo.toml", f', version = "={VERSION}"', "", "has version None"),
        ("Cargo.lock", f'"graven"\nversion = "{VERSION}"', '"graven"\nversion = "9.9"', "is 9.9"),
        ("crates/lab/Cargo.toml", "version.workspace = true", 'version = "9.9"', "lab/Cargo.toml"),
        ("pyproject.toml", 'dynamic = ["version"]', 'version = "9.9.9"', "is not dynamic"),
        ("CHANGELOG.md", "## Unreleased", "## 9.9.9", "allowed are `## Unreleased` and"),
        ("CHANGELOG.md", "## Unreleased", "## 9.9.9 - 2026-02-30", "allowed are `## Unreleased`"),
        ("CHANGELOG.md", "### Added", "### News", "heading `### News`, allowed are Added"),
    ],
)  # fmt: skip
def test_what_disagrees_is_said_with_its_place(checkout, file, before, after, said):
    mutate(checkout / file, before, after)
    commit(checkout)
    found = agreement.problems(checkout, rehearsal=True)
    assert any(said in problem for problem in found), found
    assert all(str(checkout) in problem for problem in found)


def test_a_release_needs_a_section_of_its_version_and_a_rehearsal_does_not(checkout):
    [missing] = agreement.problems(checkout, rehearsal=False)
    assert f"a section `## {VERSION} - YYYY-MM-DD` is needed" in missing
    mutate(checkout / "CHANGELOG.md", "## Unreleased", f"## {VERSION} - 2026-01-31")
    commit(checkout)
    assert agreement.problems(checkout, rehearsal=False) == []
    changes = agreement.changes_of(checkout, VERSION, rehearsal=False)
    assert changes.startswith("### Added")
    assert agreement.problems(checkout, rehearsal=True) != []


def test_an_empty_section_is_none(checkout):
    mutate(
        checkout / "CHANGELOG.md", "## Unreleased", f"## {VERSION} - 2026-01-31\n\n## Unreleased"
    )
    commit(checkout)
    [missing] = agreement.problems(checkout, rehearsal=False)
    assert f"nothing is said of {VERSION}" in missing


def test_a_tree_with_changes_is_refused(checkout):
    (checkout / "new.py").touch()
    mutate(checkout / "CITATION.cff", "Graven", "graven")
    found = agreement.problems(checkout, rehearsal=True)
    assert {problem.split()[0] for problem in found} == {"new.py", "CITATION.cff"}


METADATA = f"""Metadata-Version: 2.4
Name: graven
Version: {VERSION}
Summary: x
Keywords: x
Classifier: x
License-Expression: MIT
License-File: LICENSE
Requires-Python: >=3.11

# Graven
"""

INFO = f"graven-{VERSION}.dist-info"

TAGS = "cp311-abi3-manylinux_2_17_x86_64"


def wheel_of(folder, *, tags=TAGS, version=VERSION, without=(), **added):
    """A wheel as it should be, but for what is said."""
    files = {
        "graven/py.typed": "",
        "graven/_engine.pyi": "",
        "graven/_engine.abi3.so": "",
        "graven/laboratory/litmus_programs/x.litmus": "",
        f"{INFO}/METADATA": METADATA,
        f"{INFO}/licenses/LICENSE": "",
        f"{INFO}/entry_points.txt": "[console_scripts]\ngraven=graven.cli:main\n",
        **added,
    }
    path = folder / f"graven-{version}-{tags}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            if name not in without:
                archive.writestr(name, text)
    programs = folder / "programs"
    programs.mkdir()
    (programs / "x.litmus").touch()
    return wheels.problems(path, VERSION, programs)


def test_a_wheel_as_it_should_be_has_no_problem(tmp_path):
    assert wheel_of(tmp_path) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"tags": "cp312-cp312-manylinux_2_17_x86_64"}, "allowed is cp311-abi3"),
        ({"version": "9.9.9"}, f"it is graven 9.9.9, not graven {VERSION}"),
        ({"without": ("graven/py.typed",)}, "graven/py.typed is missing"),
        ({"without": ("graven/laboratory/litmus_programs/x.litmus",)}, "x.litmus is missing"),
        ({"without": (f"{INFO}/licenses/LICENSE",)}, "licenses/LICENSE is missing"),
        ({"graven/__pycache__/x.pyc": ""}, "graven/__pycache__/x.pyc does not belong there"),
        ({"python/tests/x.py": ""}, "python/tests/x.py does not belong there"),
        ({f"{INFO}/METADATA": METADATA.replace("MIT", "BSD")}, "BSD, not MIT"),
        ({f"{INFO}/METADATA": METADATA.replace("# Graven", "")}, "no description"),
        ({f"{INFO}/METADATA": METADATA.replace("Keywords: x\n", "")}, "no Keywords"),
        ({f"{INFO}/entry_points.txt": ""}, "no command graven"),
    ],
)
def test_a_wheel_that_is_not_is_refused(tmp_path, changed, said):
    found = wheel_of(tmp_path, **changed)
    assert any(said in problem for problem in found), found


@pytest.mark.parametrize(
    ("tags", "needed", "said"),
    [
        (wheels.PLATFORM, wheels.PLATFORM, 0),
        (f"manylinux2014_x86_64.{wheels.PLATFORM}", wheels.PLATFORM, 0),
        ("linux_x86_64", wheels.PLATFORM, 1),
        (wheels.PLATFORM, "manylinux_2_34_x86_64", 1),
        ("manylinux_2_34_x86_64", "manylinux_2_34_x86_64", 2),
    ],
)
def test_a_wheel_is_for_the_systems_that_it_says(tags, needed, said):
    found = wheels.platform_problems(f"graven-{VERSION}-cp311-abi3-{tags}.whl", needed)
    assert len(found) == said, found


def packed(path, names, text=""):
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            content = text.encode()
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


NEEDED = ("PKG-INFO", "Cargo.lock", "Cargo.toml", "LICENSE", "README.md", "pyproject.toml")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (NEEDED, []),
        ((*NEEDED, "crates/lab/src/litmus/tests/mod.rs"), []),
        ((*NEEDED, "python/graven/cli/templates/design/tests/contract.rs.jinja"), []),
        (NEEDED[1:], ["PKG-INFO is missing"]),
        ((*NEEDED, "python/tests/test_x.py"), ["python/tests/test_x.py is superfluous"]),
        ((*NEEDED, PLUGIN), [f"{PLUGIN} is superfluous"]),
        ((*NEEDED, "python/requirements.lock"), ["python/requirements.lock is superfluous"]),
    ],
)
def test_a_source_distribution_has_what_is_needed_and_nothing_else(tmp_path, names, said):
    top = f"graven-{VERSION}"
    archive = packed(tmp_path / f"{top}.tar.gz", [f"{top}/{name}" for name in names])
    found = archives.sdist_problems(archive, VERSION)
    assert found == [f"{archive.name}: {problem}" for problem in said]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('include_str!("../README.md")', 0),
        ('include_str!(concat!("../papers/", $name, "/machine.toml"))', 0),
        ('include_str!("../../../papers/silo/machine.toml")', 1),
        ('include_str!(concat!("../../../papers/", $name, "/machine.toml"))', 1),
    ],
)
def test_a_crate_includes_nothing_from_outside(tmp_path, text, said):
    names = ("Cargo.toml", "Cargo.lock", "LICENSE", "README.md", "src/lib.rs")
    top = "graven-x-1.0.0"
    archive = packed(tmp_path / f"{top}.crate", [f"{top}/{name}" for name in names], text)
    found = archives.crate_problems(archive)
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
    found = command.differences(first, second)
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
