"""A client of PMDK's key-value server (`kv_server.c` of libpmemobj's examples).

python kv_client.py PORT REQUESTS KEYS     inserts, then inserts, lookups and removals in turns
python kv_client.py PORT kill              ends the server
"""

import random
import socket
import sys


def main() -> None:
    """Asks one thing after the other, and waits for each answer."""
    port, what, *rest = sys.argv[1:]
    with socket.create_connection(("127.0.0.1", int(port))) as connection:
        stream = connection.makefile("rw", newline="\n")
        if what == "kill":
            stream.write("KILL\n")
            stream.flush()
            return
        requests, keys = int(what), int(rest[0])
        drawn = random.Random(7)
        for number in range(requests):
            key = f"key{drawn.randrange(keys)}"
            # The first half fills the store.
            kind = "INSERT" if number < requests // 2 else ("INSERT", "GET", "REMOVE")[number % 3]
            value = f" value{number:06}{'x' * drawn.randrange(100)}" if kind == "INSERT" else ""
            stream.write(f"{kind} {key}{value}\n")
            stream.flush()
            if not stream.readline():
                sys.exit("the server has closed the connection")


main()
