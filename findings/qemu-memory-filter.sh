#!/usr/bin/env bash
# QEMU 7.2 (Debian 12, qemu-user 1:7.2+dfsg-7+deb12u18+b3): the filter of a plugin's memory callbacks is off by one.
#
# A plugin asks for callbacks of loads (QEMU_PLUGIN_MEM_R), of stores (QEMU_PLUGIN_MEM_W) or of both (QEMU_PLUGIN_MEM_RW).
# Expected: who asks for loads gets loads, who asks for stores gets stores.
# Seen: who asks for loads gets stores and no load; who asks for stores gets loads and stores, as with both.
# A tracer that trusts the filter takes stores for loads. The way out: ask for both, and test qemu_plugin_mem_is_store.
#
# Needs: a Debian 12 with its package sources, gcc. Everything is made in a temporary folder.
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
static int filter;
static unsigned long loads, stores;

static void access(unsigned cpu, meminfo_t info, uint64_t address, void *data) {
    if (qemu_plugin_mem_is_store(info)) stores++; else loads++;
}

static void translated(uint64_t id, struct qemu_plugin_tb *block) {
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++)
        qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(block, i), access, 0, filter, NULL);
}

static void ended(uint64_t id, void *data) {
    fprintf(stderr, "%s %s\n", loads >= 500000 ? "loads" : "no-loads", stores >= 500000 ? "stores" : "no-stores");
}

int qemu_plugin_install(uint64_t id, const void *info, int count, char **arguments) {
    filter = arguments[0][strlen("filter=")] - '0';
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
C
gcc -shared -fPIC -o plugin.so plugin.c

# A program of a million loads and a million stores.
cat > program.c <<'C'
volatile long from[64], to[64];
int main(void) {
    for (long i = 0; i < 1000000; i++) to[i % 64] = from[i % 64];
    return 0;
}
C
gcc -O1 -static -o program program.c

failed=0
expect() {
    found=$(./qemu/usr/bin/qemu-x86_64 -plugin "./plugin.so,filter=$2" ./program 2>&1)
    echo "asked for $1: $found"
    [ "$found" = "$3" ] || { echo "  expected here: $3" >&2; failed=1; }
}
echo "qemu-user $version"
expect "loads (R = 1)" 1 "no-loads stores"
expect "stores (W = 2)" 2 "loads stores"
expect "both (RW = 3)" 3 "loads stores"
exit "$failed"
