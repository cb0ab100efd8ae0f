// Programs of one transaction each, whatever the processor; and how one of them is run.
#include "pm.h"

struct fields {
    unsigned a : 3, b : 11, c : 18;
    uint64_t d : 40, e : 24;
};

static void fields(void) {
    volatile struct fields *f = (volatile struct fields *)pm;
    for (unsigned i = 0; i < 20; i++) {
        f[i].a = i;
        f[i].b = i * 31;
        f[i].c = f[i].b + 1;
        f[i].d += 0xffffffffffULL - i;
        f[i].e = f[i].a;
    }
}

static void unaligned(void) {
    for (int at = 1; at < 9; at++) {
        *(volatile uint64_t *)((char *)pm + 4096 * at - at) = 0x0102030405060708ULL * at;
        *(volatile uint32_t *)((char *)pm + 64 * at - 3) = 0xa0b0c0d0u + at;
        *(volatile uint16_t *)((char *)pm + 256 * at - 1) += 0x55aa;
    }
    pm[7000] = *(volatile uint64_t *)((char *)pm + 4096 * 3 - 5);
}

struct big {
    uint64_t words[9];
};

APART static struct big made(uint64_t seed) {
    struct big it;
    for (int i = 0; i < 9; i++)
        it.words[i] = seed * (i + 1);
    return it;
}

static void structures(void) {
    volatile struct big *all = (volatile struct big *)pm;
    all[0] = made(3);
    all[2] = all[0];
    *(struct big *)&pm[100] = made(pm[2]);
}

static void copies(void) {
    static char buffer[70000];
    for (size_t i = 0; i < sizeof buffer; i++)
        buffer[i] = (char)(i * 7);
    size_t at = 1;
    for (size_t bytes = 1; bytes < 40000; bytes = bytes * 3 + 1) {
        memcpy((char *)pm + at, buffer, bytes);
        at += bytes + 3;
    }
    memset((char *)pm + at, 0x33, 9999);
    memmove((char *)pm + at + 5, (char *)pm + at - 100, 5000);
    strcpy((char *)pm + 100000, "a text of some length, which is copied");
    check(memcmp((char *)pm + 1, buffer, 1) == 0 && strlen((char *)pm + 100000) == 38, "copies");
}

static void (*chosen)(void);

static void in_a_transaction(void) {
    tx_begin(0);
    chosen();
    tx_commit();
}

// Runs one of these, as a transaction.
static int run_one(int count, char **arguments, const struct program *programs) {
    for (const struct program *p = programs; count > 2 && p->name; p++)
        if (!strcmp(p->name, arguments[2])) {
            struct program one[] = {{p->name, in_a_transaction}, {NULL, NULL}};
            chosen = p->run;
            return run(count, arguments, one);
        }
    return 8;
}
