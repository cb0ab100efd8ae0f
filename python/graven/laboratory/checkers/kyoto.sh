#!/bin/sh
# Kyoto Cabinet: the check of its hash or tree database, by the type in byte 8 of the file. A file that was not closed is
# repaired first, as each program that opens it does.
type=$(od -An -c -j8 -N1 "$1" | tr -d ' ')
case $type in
0) kchashmgr check "$1" ;;
1) kctreemgr check "$1" ;;
*) echo "byte 8 is $type: neither a hash (0) nor a tree database (1)"; exit 1 ;;
esac
