"""`graven completion`: what makes a shell complete commands, options and names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

HELP = """Print what makes SHELL complete commands, options and the names of designs, workloads,
machines, configuration keys, figures and claims.

\b
For bash (4.4 or newer), in ~/.bashrc:    eval "$(graven completion bash)"
For zsh, in ~/.zshrc after compinit:      eval "$(graven completion zsh)"
For fish, in ~/.config/fish/config.fish:  graven completion fish | source
"""

VARIABLE = "_GRAVEN_COMPLETE"
"""The environment variable by which a shell asks."""


@click.command(help=HELP)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Prints the shell's part."""
    found = get_completion_class(shell)
    assert found is not None, "click has those that are allowed"
    click.echo(found(context.find_root().command, {}, "graven", VARIABLE).source())
    return 0
