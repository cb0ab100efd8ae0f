// Markers: transactions and the region of interest as a program says them itself.
#include "pm.h"

#include <graven.h>

static void one(uint64_t at) {
    graven_tx_begin();
    pm[at] = at + 1;
    pm[at + 1] = at + 2;
    graven_tx_commit();
}

static void ten(void) {
    for (int i = 0; i < 10; i++)
        one(2 * i);
}

static void aborted(void) {
    one(0);
    graven_tx_begin();
    uint64_t before = pm[0];
    pm[0] = 99;
    pm[0] = before;
    graven_tx_abort();
    one(2);
}

static void nested(void) {
    for (int i = 0; i < 3; i++) {
        graven_tx_begin();
        one(10);
        pm[0] += 1;
        graven_tx_commit();
    }
}

// Beside functions: within one, and around one.
static void mixed(void) {
    tx_begin(0);
    one(0);
    tx_commit();
    graven_tx_begin();
    pm[4] = 1;
    tx_begin(0);
    pm[5] = 1;
    tx_commit();
    pm[6] = 1;
    graven_tx_commit();
}

static void region(void) {
    ten();
    graven_region_begin();
    pm[50] = 1;
    for (int i = 0; i < 3; i++)
        one(20 + 2 * i);
    pm[51] = 1;
    graven_region_end();
    pm[52] = 1;
    ten();
    graven_region_begin();
    one(60);
    graven_region_end();
}

static void *works(void *argument) {
    for (int i = 0; i < 50; i++)
        one(8 * (1 + (long)argument));
    return NULL;
}

static void threads(void) {
    run_threads(3, works);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

// With critical sections, one within the other is part of it, and neither need be within.
static void locked(void) {
    pthread_mutex_lock(&mutex);
    one(0);
    graven_tx_begin();
    pthread_mutex_unlock(&mutex);
    pm[10] = 1;
    graven_tx_commit();
    one(2);
}

// Memory that the program names, as it is, for a time; what is mapped there later is so, too.
static void ranges(void) {
    static volatile uint64_t table[600] = {7, 8, 9};
    graven_pm((const void *)&table[1], 4096);
    for (int i = 0; i < 10; i++) {
        graven_tx_begin();
        table[i] = table[i + 1] + 1;
        graven_tx_commit();
    }
    graven_no_pm((const void *)&table[5], 8);
    graven_tx_begin();
    table[4]++;
    table[5]++;
    graven_tx_commit();
    uint64_t *fixed = (uint64_t *)0x7000000000;
    graven_pm(fixed, 64);
    for (int i = 0; i < 2; i++) {
        check(mmap(fixed, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                   -1, 0) == fixed, "mmap");
        graven_tx_begin();
        fixed[7] = fixed[0] + 1;
        fixed[8] = 2;
        graven_tx_commit();
    }
}

// The registers hold what they held, and so do the flags' users.
static void harmless(void) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        graven_tx_begin();
        sum += i * i;
        pm[i % 8] = sum;
        graven_tx_commit();
    }
    check(sum == 332833500, "the sum");
}

static const struct program PROGRAMS[] = {
    {"ten", ten},         {"aborted", aborted},   {"nested", nested},
    {"mixed", mixed},     {"region", region},     {"threads", threads},
    {"locked", locked},   {"ranges", ranges}, {"harmless", harmless},
    {NULL, NULL},
};

int main(int count, char **arguments) {
    return run(count, arguments, PROGRAMS);
}
