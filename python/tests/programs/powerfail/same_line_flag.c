// A flag that is stored behind its value, with no fence between them. In one line they survive in this order, so the twin
// is right; in two lines the flag may survive alone.
#include "kind.h"

#define SLOTS 6

struct slot {
    uint64_t value OWN_LINE;
#if !IS_REPAIRED
    uint64_t padding[7];
#endif
    uint64_t is_full;
};

struct pool {
    struct slot slots[SLOTS];
};

static void fill(volatile struct slot *slot, uint64_t value) {
    slot->value = value; // MISSING
    slot->is_full = 1;   // PRESENT
    flush(&slot->value);
    flush(&slot->is_full);
    fence();
}

static void run(volatile struct pool *pool) {
    for (uint64_t i = 0; i < SLOTS; i++)
        fill(&pool->slots[i], 100 + i);
}

static const char *check(volatile struct pool *pool) {
    for (uint64_t i = 0; i < SLOTS; i++)
        if (pool->slots[i].is_full && pool->slots[i].value != 100 + i)
            return "a full slot has no value";
    return NULL;
}

int main(int count, char **arguments) {
    return main_of(&(struct kind){.bytes = sizeof(struct pool), .run = run, .check = check}, count, arguments);
}
