"""Which native module simulates.

Bug class: a plug-in that is installed is not used, or one that is broken is used silently.
"""

import subprocess
import sys
import textwrap

import pytest

ENGINE = """
import json
__version__ = "9.9"
class ConfigError(ValueError): pass
class TraceError(ValueError): pass
class SimulationError(RuntimeError): pass
class Cancelled(RuntimeError): pass
class Simulation: pass
class Campaign: pass
class MemoryReplay: pass
class TraceReplay: pass
class Conversion: pass
def catalogue(): return json.dumps({})
"""


def version(folder, **environment):
    """What `graven.__version__` is in a process of its own, or its error."""
    import graven

    package = str(next(iter(graven.__path__)) + "/..")
    code = f"import sys; sys.path[:0] = [{package!r}]; import graven; print(graven.__version__)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "PATH": "", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def installed(folder, name, value):
    """An installed distribution with an entry point."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[graven.engines]\n{name} = {value}\n")


@pytest.fixture
def folder(tmp_path):
    for name in ("mine", "theirs"):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(ENGINE))
    (tmp_path / "nothing.py").write_text("")
    return tmp_path


def test_a_module_that_is_named_simulates(folder):
    assert version(folder, GRAVEN_ENGINE="mine") == "9.9"


def test_a_module_that_is_installed_simulates(folder):
    installed(folder, "mine", "mine")
    assert version(folder) == "9.9"


def test_of_several_one_must_be_named(folder):
    installed(folder, "mine", "mine")
    installed(folder, "theirs", "theirs")
    assert version(folder).startswith(
        "ImportError: 2 engines are installed: mine, theirs; set GRAVEN_ENGINE to one of them"
    )
    assert version(folder, GRAVEN_ENGINE="theirs") == "9.9"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent", "ImportError: the engine absent cannot be imported: No module named 'absent'"),
        ("nothing", "ImportError: nothing is no engine of Graven: it has no function `catalogue`"),
    ],
)
def test_what_is_no_engine_is_refused(folder, name, message):
    assert version(folder, GRAVEN_ENGINE=name) == message
