// A value of 8 bytes over the edge of two words, stored by one instruction: its halves survive apart, even in one line.
#include "kind.h"

#define VALUES 5

struct pool {
    char before[IS_REPAIRED ? 8 : 4] OWN_LINE;
    uint64_t value;
} __attribute__((packed));

static void set(volatile struct pool *pool, uint64_t half) {
    pool->value = half << 32 | half; // MISSING PRESENT
    persist(pool, sizeof *pool);
}

static void run(volatile struct pool *pool) {
    for (uint64_t i = 1; i <= VALUES; i++)
        set(pool, i);
}

static const char *check(volatile struct pool *pool) {
    uint64_t value = pool->value;
    return value >> 32 != (uint32_t)value ? "the halves of the value differ" : NULL;
}

int main(int count, char **arguments) {
    return main_of(&(struct kind){.bytes = sizeof(struct pool), .run = run, .check = check}, count, arguments);
}
