// A list that is right after a power failure, and a number of the next free node that is too small: the next operation
// overwrites a node of the list. The twin stores the number first.
#include "kind.h"

#define NODES 5

struct pool {
    uint64_t used OWN_LINE; // nodes that were ever taken
    uint64_t head OWN_LINE; // number of the newest node, from 1
    struct {
        uint64_t value OWN_LINE;
        uint64_t next;
    } nodes[NODES + 2];
};

static void push(volatile struct pool *pool, uint64_t value) {
    uint64_t number = pool->used + 1;
    if (IS_REPAIRED) {
        pool->used = number;
        persist(&pool->used, 8);
    }
    pool->nodes[number].value = value;
    pool->nodes[number].next = pool->head;
    persist(&pool->nodes[number], 16);
    pool->head = number; // PRESENT
    persist(&pool->head, 8);
    if (!IS_REPAIRED) {
        pool->used = number; // MISSING
        persist(&pool->used, 8);
    }
}

static void run(volatile struct pool *pool) {
    for (uint64_t i = 1; i <= NODES; i++)
        push(pool, 100 + i);
}

// Values fall by one along the list, down to 101.
static const char *check(volatile struct pool *pool) {
    uint64_t at = pool->head, expected = at && at <= NODES + 1 ? pool->nodes[at].value : 0;
    for (; at != 0; at = pool->nodes[at].next, expected--)
        if (at > NODES + 1 || expected <= 100 || pool->nodes[at].value != expected)
            return "the list leads to a wrong node";
    return expected == 100 || expected == 0 ? NULL : "the list has lost nodes";
}

static const char *next(volatile struct pool *pool) {
    uint64_t value = pool->head ? pool->nodes[pool->head].value + 1 : 101;
    push(pool, value);
    return check(pool) ? "the next push has overwritten a node" : NULL;
}

int main(int count, char **arguments) {
    struct kind kind = {.bytes = sizeof(struct pool), .run = run, .check = check, .next = next};
    return main_of(&kind, count, arguments);
}
