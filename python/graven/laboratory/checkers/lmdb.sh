#!/bin/sh
# LMDB: statistics of all databases, then a compacting copy, which reads each page that the trees reach. `-n`: the image is the
# file, not its folder.
mdb_stat -n -e -a "$1" && mdb_copy -n -c "$1" >/dev/null
