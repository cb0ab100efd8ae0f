// An msync that covers the page of the count, and not that of the entry.
#include "kind.h"

#define ENTRIES 4

struct pool {
    uint64_t count OWN_PAGE;
    struct {
        uint64_t value OWN_PAGE;
    } entries[ENTRIES];
};

static void append(volatile struct pool *pool, uint64_t value) {
    uint64_t at = pool->count;
    pool->entries[at].value = value; // MISSING
    msync((void *)pool, IS_REPAIRED ? sizeof *pool : PAGE, MS_SYNC);
    pool->count = at + 1; // PRESENT
    msync((void *)&pool->count, PAGE, MS_SYNC);
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
