"""`graven serve`: the store in the browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from graven._engine import ConfigError
from graven.basics import signals
from graven.cli import options
from graven.cli.terminal import note

HELP = """Show the store in the browser.

Choose designs, workloads, machines and metrics, and see the plot, the numbers and each simulation;
what a page shows is in its address, by which it is shared. Commands that are running are shown with
their progress. Nothing is simulated and nothing is written: where results are missing, the page has
the command that makes them.

\b
Examples:
  graven serve --open
  graven serve --store elsewhere/graven-results/store
  graven serve --port 0                        any free port; the address is printed
  ssh -L 8321:localhost:8321 HOST graven serve   the store of another host

It listens on the loopback address, which other hosts do not reach. --host names another address
of this host; whoever reaches that one sees everything that is in the store. Ctrl-C ends it.
"""

PORT = 8321

SOON_READ_BYTES = 64 << 20
"""Bytes that are read within a few seconds, of which no note is made."""


@click.command(help=HELP)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="The address of this host to listen on; 0.0.0.0 is all of them.",
)
@options.number("--port", "The port; 0 takes one that is free.", least=0, most=65535, default=PORT)
@click.option("--open", "opens", is_flag=True, help="Open it in the browser.")
@options.store
def serve(host: str, port: int, opens: bool, folder: Path) -> int:
    """Listens until Ctrl-C."""
    from graven.serve.contents import Stock
    from graven.serve.server import listen
    from graven.store.store import unindexed_bytes

    if (size := unindexed_bytes(folder)) > SOON_READ_BYTES:
        note(f"no command of this host has read {folder} yet: {size / (1 << 20):,.0f} MB are read")
    stock = Stock(folder, note)
    if not stock.is_there and folder.exists() and any(folder.iterdir()):
        raise ConfigError(
            f"--store: {folder} is a folder with something else than results; a store has a file "
            "store.json"
        )
    click.get_current_context().call_on_close(stock.close)
    listening = listen(stock, host, port)
    print(listening.url, flush=True)
    note("Ctrl-C ends it")
    if opens:
        webbrowser.open(listening.url)
    listening.server.serve_forever()
    code = signals.exit_code()
    return 0 if code == signals.INTERRUPTED else code
