"""What a shell completes, asked as bash asks; and in a real bash."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from conftest import ENVIRONMENT


@pytest.fixture
def completed(real):
    """The completions of the last word of a line."""

    def ask(line):
        words = line.split(" ")
        done = real(
            _GRAVEN_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=str(len(words) - 1)
        )
        assert done.returncode == 0, done.stderr
        return [text.partition(",")[2] for text in done.stdout.splitlines()]

    return ask


@pytest.mark.parametrize(
    ("line", "among", "never"),
    [
        ("graven ru", ["run"], ["sweep"]),
        ("graven run --des", ["--design"], []),
        ("graven run --design si", ["silo", "silo-literal"], ["fwb"]),
        ("graven run --workload bt", ["btree"], ["hash"]),
        ("graven run --machine la", ["lalea"], ["silo"]),
        ("graven run --set pm.wr", ["pm.write_ns="], ["pm.read_ns="]),
        ("graven run --set silo.log_b", ["silo.log_buffer_entries="], []),
        ("graven compare --designs base,si", ["base,silo"], ["silo", "base,base"]),
        ("graven compare --workloads ma", ["macro"], ["micro"]),
        ("graven compare --designs silo,si", ["silo,silo-literal"], ["silo,silo"]),
        ("graven check al", ["all"], []),
        ("graven reproduce sil", ["silo"], ["fwb"]),
        ("graven reproduce silo fig1", ["fig11", "fig12"], ["fig4"]),
        ("graven explain silo-throughput", ["silo-throughput-vs-fwb"], ["fwb-energy"]),
        ("graven litmus silo/u", ["silo/undo-order"], ["silo/twin-entries"]),
        ("graven completion z", ["zsh"], ["bash"]),
    ],
)
def test_names_are_completed(completed, line, among, never):
    found = completed(line)
    assert set(among) <= set(found)
    assert not set(never) & set(found)
    last = line.rpartition(" ")[2]
    assert all(name.startswith(last) for name in found)


def test_what_no_name_begins_with_is_a_file(real):
    line = "graven run --machine ./m"
    done = real(_GRAVEN_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD="3")
    assert done.stdout == "file,./m\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_is_printed(real, shell):
    done = real("completion", shell)
    assert done.returncode == 0
    assert f"_GRAVEN_COMPLETE={shell}_complete" in done.stdout
    assert "graven" in done.stdout


def test_another_shell_is_refused(real):
    done = real("completion", "csh")
    assert done.returncode == 2
    assert "'bash', 'zsh', 'fish'" in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_takes_its_script(real, tmp_path, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    script = tmp_path / "script"
    before = "autoload -Uz compinit; compinit -D; " if shell == "zsh" else ""
    script.write_text(before + real("completion", shell).stdout)
    done = subprocess.run(
        [shell, str(script)], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
