// Critical sections, as locks of all kinds make them.
#include "pm.h"

#define THREADS 4
#define ROUNDS 100

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void *adds(void *argument) {
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&mutex);
        pm[0] += 1;
        pm[8 + (long)argument] = pm[0];
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void mutexes(void) {
    run_threads(THREADS, adds);
    check(pm[0] == THREADS * ROUNDS, "all were added");
}

static void within(void) {
    for (int i = 0; i < 10; i++) {
        pthread_mutex_lock(&mutex);
        pm[0] += 1;
        pthread_mutex_lock(&other);
        pm[1] += 1;
        pthread_mutex_unlock(&other);
        pm[2] += 1;
        pthread_mutex_unlock(&mutex);
        // No persistent memory here.
        pthread_mutex_lock(&other);
        pthread_mutex_unlock(&other);
    }
}

static void recursive(void) {
    pthread_mutexattr_t kind;
    pthread_mutex_t again;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&again, &kind);
    for (int i = 0; i < 10; i++) {
        pthread_mutex_lock(&again);
        pthread_mutex_lock(&again);
        pm[0] += 1;
        pthread_mutex_unlock(&again);
        pm[1] += 1;
        pthread_mutex_unlock(&again);
    }
}

// A list of nodes, each with a lock, that is gone through hand over hand: all in one direction.
static pthread_mutex_t nodes[5];

static void *goes_through(void *argument) {
    for (int i = 0; i < ROUNDS / 4; i++) {
        pthread_mutex_lock(&nodes[0]);
        for (int at = 0; at < 5; at++) {
            pm[at] += 1;
            if (at + 1 < 5)
                pthread_mutex_lock(&nodes[at + 1]);
            pthread_mutex_unlock(&nodes[at]);
        }
    }
    return argument;
}

static void hand_over_hand(void) {
    for (int i = 0; i < 5; i++)
        pthread_mutex_init(&nodes[i], NULL);
    run_threads(THREADS, goes_through);
    check(pm[4] == THREADS * (ROUNDS / 4), "all went through");
}

static void *tries(void *argument) {
    check(pthread_mutex_trylock(&mutex) == EBUSY, "another thread has it");
    pm[10] = 1;
    return argument;
}

// Two threads whose locks are in a circle, hand over hand: neither ever waits with a lock that the other waits for. If both
// held all of their locks to the end, they would.
static void *goes_round(void *argument) {
    int first = argument ? 2 : 0;
    for (int i = 0; i < 4 * ROUNDS; i++) {
        pthread_mutex_lock(&nodes[first]);
        pm[first] += 1;
        pthread_mutex_lock(&nodes[first + 1]);
        pthread_mutex_unlock(&nodes[first]);
        pm[first + 1] += 1;
        pthread_mutex_lock(&nodes[(first + 2) % 4]);
        pthread_mutex_unlock(&nodes[first + 1]);
        pm[(first + 2) % 4] += 1;
        pthread_mutex_unlock(&nodes[(first + 2) % 4]);
    }
    return NULL;
}

static void circle(void) {
    for (int i = 0; i < 5; i++)
        pthread_mutex_init(&nodes[i], NULL);
    run_threads(2, goes_round);
}

static void attempts(void) {
    pthread_t thread;
    pthread_mutex_lock(&mutex);
    pm[0] = 1;
    check(pthread_create(&thread, NULL, tries, NULL) == 0, "pthread_create");
    pthread_join(thread, NULL);
    pthread_mutex_unlock(&mutex);
    check(pthread_mutex_trylock(&mutex) == 0, "nobody has it");
    pm[1] = 1;
    pthread_mutex_unlock(&mutex);
}

static int turn;

// A section before each wait, and one behind it.
static void *takes_turns(void *argument) {
    for (int i = 0; i < ROUNDS / 4; i++) {
        pthread_mutex_lock(&mutex);
        pm[8 + (long)argument] += 1;
        while (turn != (long)argument)
            pthread_cond_wait(&changed, &mutex);
        pm[0] += 1;
        turn = (turn + 1) % THREADS;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void waits(void) {
    run_threads(THREADS, takes_turns);
}

// Exactly one wait, which ends by its time.
static void one_wait(void) {
    struct timespec soon;
    pthread_mutex_lock(&mutex);
    pm[0] = 1;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec = (soon.tv_nsec + 1000000) % 1000000000;
    check(pthread_cond_timedwait(&changed, &mutex, &soon) == ETIMEDOUT, "nobody signals");
    pm[1] = 1;
    pthread_mutex_unlock(&mutex);
}

static void *leaves_it_locked(void *argument) {
    pthread_mutex_lock((pthread_mutex_t *)argument);
    pm[0] += 1;
    return NULL;
}

static void ends_with_a_lock(void) {
    pthread_t thread;
    check(pthread_create(&thread, NULL, leaves_it_locked, &mutex) == 0, "pthread_create");
    pthread_join(thread, NULL);
    check(pthread_mutex_trylock(&mutex) == EBUSY, "it is locked for ever");
    pthread_mutex_lock(&other);
    pm[1] = pm[0];
    pthread_mutex_unlock(&other);
    pm[2] = 1;
}

static void other_locks(void) {
    pthread_spinlock_t spin;
    pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    for (int i = 0; i < 5; i++) {
        pthread_spin_lock(&spin);
        pm[0] += 1;
        pthread_spin_unlock(&spin);
        pthread_rwlock_wrlock(&gate);
        pm[1] += 1;
        pthread_rwlock_unlock(&gate);
        // A reader has no section.
        pthread_rwlock_rdlock(&gate);
        pm[2] += pm[1];
        pthread_rwlock_unlock(&gate);
    }
}

static const struct program PROGRAMS[] = {
    {"mutexes", mutexes},
    {"within", within},
    {"recursive", recursive},
    {"hand_over_hand", hand_over_hand},
    {"circle", circle},
    {"attempts", attempts},
    {"waits", waits},
    {"one_wait", one_wait},
    {"ends_with_a_lock", ends_with_a_lock},
    {"other_locks", other_locks},
    {NULL, NULL},
};

int main(int count, char **arguments) {
    return run(count, arguments, PROGRAMS);
}
