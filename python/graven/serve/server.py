"""Listens for the explorer: on the loopback address unless told otherwise."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass

from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from graven._engine import ConfigError
from graven.serve.app import Explorer
from graven.serve.contents import Stock

NAMES_OF_LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""Names under which a browser of this host asks for it."""

IDLE_SECONDS = 60.0
"""Longest silence of a connection, in seconds."""


class _Quiet(WSGIRequestHandler):
    """Answers requests and says nothing about them."""

    timeout = IDLE_SECONDS

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Says nothing."""

    def log_error(self, format: str, *args: object) -> None:
        """Says nothing of a browser that has gone."""


@dataclass(frozen=True)
class Listening:
    """A server that has its port, and the address of the explorer."""

    url: str
    server: BaseWSGIServer


def listen(stock: Stock, host: str, port: int) -> Listening:
    """Takes a port and gets ready to answer there.

    Args:
        stock: What the explorer shows.
        host: A name or an address of this host.
        port: Its port; 0 for any that is free.

    Raises:
        ConfigError: the host is not this one, or the port is in use.
    """
    try:
        [(family, kind, _, _, address), *_] = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"--host: `{host}` is no name or address of this host: {reason}"
        ) from None
    with socket.socket(family, kind) as listener:
        # A port whose last connections are still ending is free; one on which somebody listens not.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen(128)
        except OSError as error:
            raise ConfigError(
                f"--port: cannot listen on {host}, port {port}: {error.strerror or error}; "
                "--port 0 takes one that is free"
            ) from None
        own = ipaddress.ip_address(str(address[0]).partition("%")[0])
        bound = int(listener.getsockname()[1])
        shown = f"[{host}]" if ":" in host else host
        names = {*NAMES_OF_LOOPBACK, host.lower()} if own.is_loopback else None
        explorer = Explorer(stock, names)
        server = make_server(
            str(address[0]),
            bound,
            explorer,
            threaded=True,
            request_handler=_Quiet,
            fd=listener.fileno(),
        )
    return Listening(f"http://{shown}:{bound}/", server)
