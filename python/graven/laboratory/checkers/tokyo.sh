#!/bin/sh
# Tokyo Cabinet has no checker: a list of all records, by the type in byte 32 of the file, must have as many as the head says.
type=$(od -An -tu1 -j32 -N1 "$1" | tr -d ' ')
case $type in
0) tool=tchmgr ;;
1) tool=tcbmgr ;;
2) tool=tcfmgr ;;
3) tool=tctmgr ;;
*) echo "byte 32 is $type: no hash (0), tree (1), fixed-length (2) or table database (3)"; exit 1 ;;
esac
said=$("$tool" inform -nl "$1" 2>&1)
code=$?
printf '%s\n' "$said"
[ "$code" = 0 ] || exit 1
expected=$(printf '%s\n' "$said" | sed -n 's/^record number: //p')
listed=$({ "$tool" list -nl -px -pv "$1" || echo "failed"; } | wc -l)
echo "records listed: $listed"
[ "$listed" = "$expected" ]
