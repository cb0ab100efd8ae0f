// A non-temporal store with no fence behind it, and the store of the count. It needs no flush; the twin fences it.
#include "kind.h"

#define ENTRIES 6

struct pool {
    uint64_t count OWN_LINE;
    struct {
        uint64_t value OWN_LINE;
    } entries[ENTRIES];
};

static inline void store_non_temporally(volatile uint64_t *to, uint64_t value) {
    __asm__ volatile("movnti %1, %0" : "=m"(*to) : "r"(value)); // MISSING
}

static void append(volatile struct pool *pool, uint64_t value) {
    uint64_t at = pool->count;
    store_non_temporally(&pool->entries[at].value, value);
    if (IS_REPAIRED)
        fence();
    pool->count = at + 1; // PRESENT
    persist(&pool->count, 8);
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
