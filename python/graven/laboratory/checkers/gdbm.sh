#!/bin/sh
# GDBM has no checker: a dump reads the key and the value of each record, and must have as many as it counts.
code=$({ gdbm_dump "$1" -; echo "exit $?" >&3; } 3>&1 >/dev/null 2>&2)
[ "$code" = "exit 0" ] && gdbmtool --norc --quiet --read-only "$1" count
