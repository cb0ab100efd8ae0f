#!/bin/sh
# Berkeley DB: its own check of all pages. Debian's program has the version in its name, too.
if command -v db_verify >/dev/null; then db_verify "$1"; else db5.3_verify "$1"; fi
