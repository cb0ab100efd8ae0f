#!/bin/sh
# journald: journalctl's check of all objects, hash chains and entries.
journalctl --no-pager --quiet --verify --file="$1"
