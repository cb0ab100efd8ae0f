// A thread makes durable what it has computed from another thread's store, before that store is durable: the effect may
// survive without its cause.
#include "kind.h"

#define ROUNDS 4

struct pool {
    struct {
        uint64_t cause OWN_LINE;
        uint64_t effect OWN_LINE;
    } rounds[ROUNDS];
};

static volatile struct pool *shared;
static pthread_barrier_t is_stored, is_read;

static void *write_causes(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        shared->rounds[i].cause = 100 + i; // MISSING
        if (IS_REPAIRED)
            persist(&shared->rounds[i].cause, 8);
        pthread_barrier_wait(&is_stored);
        pthread_barrier_wait(&is_read);
        if (!IS_REPAIRED)
            persist(&shared->rounds[i].cause, 8);
    }
    return unused;
}

static void *write_effects(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&is_stored);
        shared->rounds[i].effect = shared->rounds[i].cause; // PRESENT
        persist(&shared->rounds[i].effect, 8);
        pthread_barrier_wait(&is_read);
    }
    return unused;
}

static void run(volatile struct pool *pool) {
    pthread_t threads[2];
    shared = pool;
    pthread_barrier_init(&is_stored, NULL, 2);
    pthread_barrier_init(&is_read, NULL, 2);
    pthread_create(&threads[0], NULL, write_causes, NULL);
    pthread_create(&threads[1], NULL, write_effects, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

static const char *check(volatile struct pool *pool) {
    for (int i = 0; i < ROUNDS; i++)
        if (pool->rounds[i].effect && pool->rounds[i].effect != pool->rounds[i].cause)
            return "an effect has no cause";
    return NULL;
}

int main(int count, char **arguments) {
    return main_of(&(struct kind){.bytes = sizeof(struct pool), .run = run, .check = check}, count, arguments);
}
