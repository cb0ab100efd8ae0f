// A value of 16 bytes that is stored in place by one instruction: only 8 bytes survive together.
#include "kind.h"

#define VALUES 5

struct pool {
    uint64_t chosen OWN_LINE; // the copy that counts
    struct {
        uint64_t amount OWN_LINE;
        uint64_t inverse;
    } copies[2];
};

static inline void store_both(volatile void *at, uint64_t amount) {
    __m128i both = _mm_set_epi64x(~amount, amount);
    __asm__ volatile("movdqa %1, %0" : "=m"(*(volatile __m128i *)at) : "x"(both)); // MISSING PRESENT
}

APART void set(volatile struct pool *pool, uint64_t amount) {
    uint64_t to = IS_REPAIRED ? !pool->chosen : 0;
    store_both(&pool->copies[to], amount);
    persist(&pool->copies[to], 16);
    if (IS_REPAIRED) {
        pool->chosen = to;
        persist(&pool->chosen, 8);
    }
}

static void run(volatile struct pool *pool) {
    for (uint64_t i = 1; i <= VALUES; i++)
        set(pool, i);
}

static const char *check(volatile struct pool *pool) {
    volatile uint64_t *at = &pool->copies[pool->chosen & 1].amount;
    return (at[0] || at[1]) && at[1] != ~at[0] ? "half of the value is another's" : NULL;
}

static void dump(volatile struct pool *pool) {
    volatile uint64_t *at = &pool->copies[pool->chosen & 1].amount;
    printf("%lu %lu\n", at[0], at[1]);
}

int main(int count, char **arguments) {
    struct kind kind = {.bytes = sizeof(struct pool), .run = run, .check = check, .dump = dump};
    return main_of(&kind, count, arguments);
}
