// A locked instruction that takes the place of a fence: that of a counter outside of persistent memory. Without it, nothing
// orders the flush of the entry before the store of the count.
#include "kind.h"

#define ENTRIES 6

struct pool {
    uint64_t count OWN_LINE;
    struct {
        uint64_t value OWN_LINE;
    } entries[ENTRIES];
};

static volatile uint64_t appended;

static void append(volatile struct pool *pool, uint64_t value) {
    uint64_t at = pool->count;
    pool->entries[at].value = value; // MISSING
    flush(&pool->entries[at]);
    if (IS_REPAIRED)
        __atomic_fetch_add(&appended, 1, __ATOMIC_RELAXED);
    else
        appended++;
    pool->count = at + 1; // PRESENT
    flush(&pool->count);
    if (IS_REPAIRED)
        __atomic_fetch_add(&appended, 1, __ATOMIC_RELAXED);
    else
        appended++;
}

static void run(volatile struct pool *pool) {
    for (uint64_t i = 0; i < ENTRIES; i++)
        append(pool, 100 + i);
}

static const char *check(volatile struct pool *pool) {
    if (pool->count > ENTRIES)
        return "more entries than were appended";
    for (uint64_t i = 0; i < pool->count; i++)
        if (pool->entries[i].value != 100 + i)
            return "the count covers an entry without its value";
    return NULL;
}

int main(int count, char **arguments) {
    return main_of(&(struct kind){.bytes = sizeof(struct pool), .run = run, .check = check}, count, arguments);
}
