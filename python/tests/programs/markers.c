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
    pthread_t threads[3];
    for (long i = 0; i < 3; i++)
        check(pthread_create(&threads[i], NULL, works, (void *)i) == 0, "pthread_create");
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
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

// A marker with operands, which the plugin reads from registers.
static void operands(void) {
    one(0);
    volatile uint64_t address = 0x123456789000, bytes = 4242;
    GRAVEN_MARK_(5, address, bytes);
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
    {"locked", locked},   {"operands", operands}, {"harmless", harmless},
    {NULL, NULL},
};

int main(int count, char **arguments) {
    return run(count, arguments, PROGRAMS);
}
