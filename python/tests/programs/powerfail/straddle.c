// Records whose last store completes them, because stores to one line survive in order. Of records of 24 bytes, the third
// and the sixth of eight straddle two lines; those of the twin lie in one.
#include "kind.h"

#define RECORDS 8

struct record {
    uint64_t value;
    uint64_t reserved;
    uint64_t is_complete;
#if IS_REPAIRED
    uint64_t padding;
#endif
};

struct pool {
    struct record records[RECORDS] OWN_LINE;
};

static void append(volatile struct pool *pool, uint64_t at) {
    volatile struct record *record = &pool->records[at];
    record->value = 100 + at; // MISSING
    record->is_complete = 1;  // PRESENT
    persist(record, sizeof *record);
}

static void run(volatile struct pool *pool) {
    for (uint64_t i = 0; i < RECORDS; i++)
        append(pool, i);
}

static const char *check(volatile struct pool *pool) {
    for (uint64_t i = 0; i < RECORDS; i++)
        if (pool->records[i].is_complete && pool->records[i].value != 100 + i)
            return "a complete record has no value";
    return NULL;
}

int main(int count, char **arguments) {
    return main_of(&(struct kind){.bytes = sizeof(struct pool), .run = run, .check = check}, count, arguments);
}
