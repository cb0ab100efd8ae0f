#!/usr/bin/env bash
# LMDB with MDB_WRITEMAP (lmdb 1.4.1 from PyPI, which contains LMDB 0.9): the map is neither all that is written, nor synced
# by what was changed.
#
# A database that is opened with `writemap` is changed by stores to a shared map, and a commit makes them durable by msync.
# Expected: every byte of the file comes from stores to the map, and a commit of 100 bytes syncs the few pages that it changed.
# Seen: 1. A new file's first two pages (8,192 bytes, the meta pages) are written by pwrite, before the file is mapped: the
#          stores to the map alone do not give the file.
#       2. Each commit syncs the whole map, 1 MB here, then the page of the new meta data: the size of the map, which is meant
#          to be generous (address space), decides what a commit of 100 bytes asks of the kernel.
#
# Needs: Python 3 with venv, strace, a package index. Everything is made in a temporary folder.
set -euo pipefail
command -v strace >/dev/null || { echo "strace is missing" >&2; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check lmdb==1.4.1

cat > commits.py <<'PY'
import lmdb

env = lmdb.open("db", writemap=True, map_size=1 << 20)
for number in range(3):
    with env.begin(write=True) as transaction:
        transaction.put(b"key%d" % number, b"v" * 100)
env.close()
PY
strace -qq -f -y -e trace=pwrite64,pwritev,write,msync -o calls venv/bin/python commits.py

echo "lmdb 1.4.1, writemap, a map of 1,048,576 bytes, three commits of 100 bytes:"
grep -E 'data\.mdb|msync' calls | sed -E 's/^[0-9]+ +//; s/"[^"]*"\.*/.../; s/0x[0-9a-f]+/ADDRESS/; s/<[^>]*>//' | uniq -c
writes=$(grep -c 'pwrite64(.*data\.mdb.* = 8192$' calls || true)
whole=$(grep -c 'msync(0x[0-9a-f]*, 1048576, MS_SYNC) = 0' calls || true)
meta=$(grep -c 'msync(0x[0-9a-f]*, 4096, MS_SYNC) = 0' calls || true)
[ "$writes" = 1 ] || { echo "expected one pwrite of 8,192 bytes, found $writes" >&2; exit 1; }
[ "$whole" = 3 ] || { echo "expected three msync of the whole map, found $whole" >&2; exit 1; }
[ "$meta" = 3 ] || { echo "expected three msync of a page, found $meta" >&2; exit 1; }
