// A list whose head is stored before the node behind it is durable: one fence for the flushes of both lines.
#include "kind.h"

#define NODES 6

struct pool {
    uint64_t head OWN_LINE; // number of the newest node, from 1
    struct {
        uint64_t value OWN_LINE;
        uint64_t next;
    } nodes[NODES + 1];
};

static void push(volatile struct pool *pool, uint64_t number) {
    pool->nodes[number].value = 100 + number; // MISSING
    pool->nodes[number].next = pool->head; // MISSING
    if (IS_REPAIRED)
        persist(&pool->nodes[number], 16);
    pool->head = number; // PRESENT
    flush(&pool->nodes[number]);
    persist(&pool->head, 8);
}

static void run(volatile struct pool *pool) {
    for (uint64_t i = 1; i <= NODES; i++)
        push(pool, i);
}

static const char *check(volatile struct pool *pool) {
    for (uint64_t at = pool->head, left = at; at != 0; at = pool->nodes[at].next, left--)
        if (at > NODES || at != left || pool->nodes[at].value != 100 + at || pool->nodes[at].next != at - 1)
            return "the head leads to a node that is not there";
    return NULL;
}

int main(int count, char **arguments) {
    return main_of(&(struct kind){.bytes = sizeof(struct pool), .run = run, .check = check}, count, arguments);
}
