// An operation that returns while its flush has no fence: what it has acknowledged may be lost.
#include "kind.h"

#define VALUES 5

struct pool {
    uint64_t value OWN_LINE;
};

APART void set(volatile struct pool *pool, uint64_t value) {
    pool->value = value; // MISSING
    flush(&pool->value);
    if (IS_REPAIRED)
        fence();
}

static void run(volatile struct pool *pool) {
    for (uint64_t i = 1; i <= VALUES; i++)
        set(pool, i);
}

static const char *check(volatile struct pool *pool) {
    return pool->value > VALUES ? "a value that was never set" : NULL;
}

static void dump(volatile struct pool *pool) {
    printf("%lu\n", pool->value);
}

int main(int count, char **arguments) {
    struct kind kind = {.bytes = sizeof(struct pool), .run = run, .check = check, .dump = dump};
    return main_of(&kind, count, arguments);
}
