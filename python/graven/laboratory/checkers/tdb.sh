#!/bin/sh
# TDB: tdbtool's check of all records, chains and free lists. The exit code is 0 whatever it finds.
said=$(tdbtool "$1" check 2>&1)
printf '%s\n' "$said"
case $said in *"integrity is OK"*) ;; *) exit 1 ;; esac
