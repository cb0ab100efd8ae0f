#!/bin/sh
# SQLite: its own check of all pages and indices. The exit code is 0 whatever it finds; its output must be `ok` alone.
said=$(sqlite3 -batch -init /dev/null "$1" 'pragma integrity_check' 2>&1)
code=$?
printf '%s\n' "$said"
[ "$code" = 0 ] && [ "$said" = ok ]
