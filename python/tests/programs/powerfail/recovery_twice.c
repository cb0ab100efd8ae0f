// A recovery that moves deposits from a journal to the balance. It adds amounts, and adds them again if power fails before
// the journal is empty; the twin's journal has totals, which may be stored as often as one likes.
#include "kind.h"

#define DEPOSITS 5

struct pool {
    uint64_t balance OWN_LINE;
    uint64_t count OWN_LINE; // entries of the journal
    struct {
        uint64_t amount OWN_LINE;
        uint64_t total;
    } journal[DEPOSITS];
};

static void deposit(volatile struct pool *pool, uint64_t amount) {
    uint64_t at = pool->count;
    pool->journal[at].amount = amount;
    pool->journal[at].total = amount + (at ? pool->journal[at - 1].total : pool->balance);
    persist(&pool->journal[at], 16);
    pool->count = at + 1;
    persist(&pool->count, 8);
}

static void run(volatile struct pool *pool) {
    for (uint64_t i = 0; i < DEPOSITS; i++)
        deposit(pool, 1u << i);
}

static void recover(volatile struct pool *pool) {
    uint64_t sum = 0, count = pool->count;
    if (count == 0)
        return;
    for (uint64_t i = 0; i < count; i++)
        sum += pool->journal[i].amount;
    if (IS_REPAIRED)
        pool->balance = pool->journal[count - 1].total;
    else
        pool->balance += sum; // PRESENT
    persist(&pool->balance, 8);
    pool->count = 0; // MISSING
    persist(&pool->count, 8);
}

// Deposits are 1, 2, 4, …: a balance is right if it is 1 less than a power of two.
static const char *check(volatile struct pool *pool) {
    recover(pool);
    if (pool->balance >= 1u << DEPOSITS || (pool->balance & (pool->balance + 1)))
        return "the balance is no sum of the first deposits";
    return NULL;
}

int main(int count, char **arguments) {
    struct kind kind = {.bytes = sizeof(struct pool), .run = run, .check = check, .recover = recover};
    return main_of(&kind, count, arguments);
}
