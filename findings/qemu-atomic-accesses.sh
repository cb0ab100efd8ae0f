#!/usr/bin/env bash
# QEMU 7.2 (Debian 12, qemu-user 1:7.2+dfsg-7+deb12u18+b3): plugins are told other accesses of locked instructions once a
# program has had a second thread, and a compare-and-exchange that fails is told as a store.
#
# A plugin counts loads and stores of one word by its memory callbacks (asking for both, QEMU_PLUGIN_MEM_RW).
# Expected: `lock cmpxchg` that finds another value is a load, as the word stays as it is; `lock xadd` is a load and a store.
# Neither depends on whether the program has ever had a thread beside its first.
# Seen: before there is a second thread, both are a load and a store. Afterwards each is one store, and no load is told. A
# trace of a program with locks has stores that never took place, and none of the loads by which it synchronises.
#
# Needs: an x86-64 Debian 12 with its package sources, gcc. Everything is made in a temporary folder.
set -euo pipefail
version='1:7.2+dfsg-7+deb12u18+b3'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get download -qq "qemu-user=$version" 2>/dev/null || { echo "qemu-user $version is not to be had here" >&2; exit 2; }
dpkg-deb -x qemu-user_*.deb qemu

cat > plugin.c <<'C'
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The part of QEMU's plugin interface (version 1) that is used here. */
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef uint32_t meminfo_t;
extern void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t, void (*)(uint64_t, struct qemu_plugin_tb *));
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *,
    void (*)(unsigned, meminfo_t, uint64_t, void *), int flags, int rw, void *);
extern _Bool qemu_plugin_mem_is_store(meminfo_t);
extern void qemu_plugin_register_atexit_cb(uint64_t, void (*)(uint64_t, void *), void *);

int qemu_plugin_version = 1;
static uint64_t word;
static unsigned long loads, stores;

static void access(unsigned cpu, meminfo_t info, uint64_t address, void *data) {
    if (address == word) { if (qemu_plugin_mem_is_store(info)) stores++; else loads++; }
}

static void translated(uint64_t id, struct qemu_plugin_tb *block) {
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++)
        qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(block, i), access, 0, 3, NULL);
}

static void ended(uint64_t id, void *data) { fprintf(stderr, "%lu loads, %lu stores\n", loads, stores); }

int qemu_plugin_install(uint64_t id, const void *info, int count, char **arguments) {
    word = strtoull(arguments[0] + strlen("word="), NULL, 16);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
C
gcc -shared -fPIC -o plugin.so plugin.c

cat > program.c <<'C'
#include <pthread.h>

long word = 7;
static void *nothing(void *argument) { return argument; }
int main(int count, char **arguments) {
    pthread_t thread;
    if (arguments[2][0] == 't' && (pthread_create(&thread, 0, nothing, 0) || pthread_join(thread, 0)))
        return 2;
    for (int i = 0; i < 1000; i++) {
        long expected = 5;
        if (arguments[1][0] == 'c')
            __asm__ volatile("lock cmpxchg %2, %1" : "+a"(expected), "+m"(word) : "r"(9L) : "memory");
        else
            __asm__ volatile("lock xadd %0, %1" : "+r"(expected), "+m"(word) : : "memory");
    }
    return arguments[1][0] == 'c' && *(volatile long *)&word != 7;
}
C
gcc -O1 -static -no-pie -pthread -o program program.c
address=$(nm program | awk '$3 == "word" { print $1 }')

failed=0
expect() {
    found=$(./qemu/usr/bin/qemu-x86_64 -plugin "./plugin.so,word=$address" ./program "$1" "$2" 2>&1)
    echo "1,000 times lock $1, $2: $found"
    [[ $found =~ $3 ]] || { echo "  expected here: $3" >&2; failed=1; }
}
echo "qemu-user $version; every cmpxchg finds another value"
# The program itself looks at the word once more after cmpxchg.
expect cmpxchg "alone" '^100[01] loads, 1000 stores$'
expect cmpxchg "thread before" '^[01] loads, 1000 stores$'
expect xadd "alone" '^1000 loads, 1000 stores$'
expect xadd "thread before" '^0 loads, 1000 stores$'
exit "$failed"
