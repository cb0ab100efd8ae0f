"""SQLite's own database in memory, as a script of Python uses it: accounts, and deposits."""

import random
import sqlite3
import sys

ACCOUNTS = 500

draw = random.Random(1)
database = sqlite3.connect(":memory:", isolation_level=None)
database.execute("create table accounts (id integer primary key, owner text, balance integer)")
database.executemany(
    "insert into accounts values (?, ?, ?)",
    ((number, f"owner {number}", 1000) for number in range(ACCOUNTS)),
)
deposited = 0
for _ in range(int(sys.argv[1])):
    amount = draw.randint(1, 10)
    database.execute(
        "update accounts set balance = balance + ? where id = ?", (amount, draw.randrange(ACCOUNTS))
    )
    deposited += amount
total = database.execute("select sum(balance) from accounts").fetchone()
assert total == (1000 * ACCOUNTS + deposited,), total
