// A block that is taken and linked nowhere yet: after a power failure it is lost for ever. The twin keeps the block's
// number while it is between the two, and recovery gives it back.
#include "kind.h"

#define BLOCKS 6

struct pool {
    uint64_t taken OWN_LINE;   // a bit for each block
    uint64_t pending OWN_LINE; // the bit of the block that is being linked
    uint64_t head OWN_LINE;    // number of the newest block, from 1
    struct {
        uint64_t next OWN_LINE;
    } blocks[BLOCKS + 1];
};

static void store_pending(volatile struct pool *pool, uint64_t bit) {
    pool->pending = bit;
    persist(&pool->pending, 8);
}

static void push(volatile struct pool *pool, uint64_t number) {
    if (IS_REPAIRED)
        store_pending(pool, 1u << number);
    pool->blocks[number].next = pool->head;
    persist(&pool->blocks[number], 8);
    pool->taken |= 1u << number; // PRESENT
    persist(&pool->taken, 8);
    pool->head = number; // MISSING
    persist(&pool->head, 8);
    if (IS_REPAIRED)
        store_pending(pool, 0);
}

static void run(volatile struct pool *pool) {
    for (uint64_t i = 1; i <= BLOCKS; i++)
        push(pool, i);
}

static uint64_t linked(volatile struct pool *pool) {
    uint64_t found = 0;
    for (uint64_t at = pool->head; at && at <= BLOCKS && !(found & 1u << at); at = pool->blocks[at].next)
        found |= 1u << at;
    return found;
}

static const char *check(volatile struct pool *pool) {
    if (pool->pending & ~linked(pool)) {
        pool->taken &= ~pool->pending;
        persist(&pool->taken, 8);
    }
    store_pending(pool, 0);
    if (linked(pool) & ~pool->taken)
        return "a block is linked and not taken";
    return pool->taken & ~linked(pool) ? "a block is taken and linked nowhere" : NULL;
}

int main(int count, char **arguments) {
    return main_of(&(struct kind){.bytes = sizeof(struct pool), .run = run, .check = check}, count, arguments);
}
