// A value and a flag in one page and two sectors, written back by one msync: the page may be torn between its sectors. In
// one sector both survive together or in order, so the twin is right.
#include "kind.h"

#define SLOTS 4

struct slot {
    uint64_t value OWN_PAGE;
    uint64_t padding[IS_REPAIRED ? 8 : 64];
    uint64_t is_full;
};

struct pool {
    struct slot slots[SLOTS];
};

static void fill(volatile struct slot *slot, uint64_t value) {
    slot->value = value; // MISSING
    slot->is_full = 1;   // PRESENT
    msync((void *)slot, sizeof *slot, MS_SYNC);
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
