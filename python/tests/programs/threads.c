// Threads that share persistent memory as locks and other means order them.
#include "pm.h"

#include <semaphore.h>

#define THREADS 4
#define ROUNDS 200

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;

static void *adds(void *argument) {
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&mutex);
        tx_begin(0);
        pm[0] += 1;
        pm[8 + (long)argument] = pm[0];
        tx_commit();
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void mutexes(void) {
    run_threads(THREADS, adds);
    check(pm[0] == THREADS * ROUNDS, "all were added");
}

static void *adds_inside(void *argument) {
    for (int i = 0; i < ROUNDS; i++) {
        tx_begin(0);
        pthread_mutex_lock(&mutex);
        pm[0] += 1;
        pm[8 + (long)argument] = pm[0];
        pthread_mutex_unlock(&mutex);
        tx_commit();
    }
    return NULL;
}

static void inside(void) {
    run_threads(THREADS, adds_inside);
}

static void *reads_and_writes(void *argument) {
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 4 == (long)argument) {
            pthread_rwlock_wrlock(&gate);
            tx_begin(0);
            pm[0] += 1;
            pm[1] = pm[0];
            tx_commit();
        } else {
            pthread_rwlock_rdlock(&gate);
            check(pm[0] == pm[1], "a reader");
        }
        pthread_rwlock_unlock(&gate);
    }
    return NULL;
}

static void readers(void) {
    run_threads(THREADS, reads_and_writes);
}

// Each finds what the one before has stored; nothing but their beginnings and ends orders them.
static void *follows(void *argument) {
    tx_begin(0);
    pm[1] = pm[0] + 1;
    pm[0] = pm[1];
    tx_commit();
    for (int i = 0; i < 500; i++)
        pm[100 + i] += pm[0];
    return argument;
}

static void one_by_one(void) {
    pthread_t thread;
    for (int i = 0; i < 7; i++) {
        for (int j = 0; j < 500; j++)
            pm[100 + j] += 1;
        pm[0] += 1;
        check(pthread_create(&thread, NULL, follows, NULL) == 0, "pthread_create");
        pthread_join(thread, NULL);
        check(pm[0] == 2 * (uint64_t)(i + 1), "a thread");
    }
}

static int turn;

static void *takes_turns(void *argument) {
    for (int i = 0; i < ROUNDS / 4; i++) {
        pthread_mutex_lock(&mutex);
        while (turn != (long)argument)
            pthread_cond_wait(&changed, &mutex);
        tx_begin(0);
        pm[0] += 1;
        pm[1] = pm[0] + pm[1];
        tx_commit();
        turn = (turn + 1) % THREADS;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void conditions(void) {
    run_threads(THREADS, takes_turns);
}

// It stores before it waits, with nothing between that and the waiting.
static void *stores_and_waits(void *argument) {
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < ROUNDS; i++) {
        pm[0] += 1;
        pm[1] = pm[0];
        turn = !turn;
        pthread_cond_signal(&changed);
        int mine = turn;
        while (turn == mine && i < ROUNDS - 1)
            pthread_cond_wait(&changed, &mutex);
    }
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
    return argument;
}

static void ping_pong(void) {
    run_threads(2, stores_and_waits);
    tx_begin(0);
    tx_commit();
}

static sem_t full, empty;

static void *produces(void *argument) {
    for (int i = 0; i < ROUNDS; i++) {
        sem_wait(&empty);
        pm[i % 4] = i;
        sem_post(&full);
    }
    return argument;
}

static void *consumes(void *argument) {
    for (int i = 0; i < ROUNDS; i++) {
        sem_wait(&full);
        tx_begin(0);
        pm[10 + i % 4] = pm[i % 4];
        tx_commit();
        sem_post(&empty);
    }
    return argument;
}

static void semaphores(void) {
    pthread_t producer, consumer;
    sem_init(&full, 0, 0);
    sem_init(&empty, 0, 4);
    check(pthread_create(&producer, NULL, produces, NULL) == 0, "pthread_create");
    check(pthread_create(&consumer, NULL, consumes, NULL) == 0, "pthread_create");
    pthread_join(producer, NULL);
    pthread_join(consumer, NULL);
}

static pthread_barrier_t barrier;

static void *meets(void *argument) {
    long number = (long)argument;
    for (int i = 0; i < ROUNDS / 4; i++) {
        tx_begin(0);
        pm[number] = i;
        tx_commit();
        pthread_barrier_wait(&barrier);
        pm[10 + number] += pm[(number + 1) % THREADS];
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void barriers(void) {
    pthread_barrier_init(&barrier, NULL, THREADS);
    run_threads(THREADS, meets);
}

static volatile int goes_on = 1;

static void *waits_for_nobody(void *argument) {
    for (uint64_t i = 0; goes_on; i++)
        pm[8 + (long)argument] = i;
    return NULL;
}

static void *waits_for_a_signal(void *argument) {
    pthread_mutex_lock(&mutex);
    pthread_cond_wait(&changed, &mutex);
    return argument;
}

// The process ends while its threads execute, and wait.
static void left_alone(void) {
    pthread_t thread;
    for (long i = 0; i < THREADS; i++)
        check(pthread_create(&thread, NULL, waits_for_nobody, (void *)i) == 0, "pthread_create");
    check(pthread_create(&thread, NULL, waits_for_a_signal, NULL) == 0, "pthread_create");
    while (!pm[8 + THREADS - 1])
        sched_yield();
}

// A thread makes processes while others execute; these end at once.
static void *forks(void *argument) {
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        check(child > 0 && waitpid(child, NULL, 0) == child, "fork");
    }
    goes_on = 0;
    return argument;
}

static void forks_among_others(void) {
    pthread_t threads[3];
    for (long i = 0; i < 3; i++)
        check(pthread_create(&threads[i], NULL, i ? waits_for_nobody : forks, (void *)i) == 0,
              "pthread_create");
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

static void *handled(void *argument) {
    for (int i = 0; i < ROUNDS; i++) {
        pm[8 + (long)argument] += 1;
        raise(SIGUSR1);
    }
    return NULL;
}

static void adds_one(int number) {
    (void)number;
    __atomic_fetch_add(pm, 1, __ATOMIC_SEQ_CST);
}

static void signals(void) {
    signal(SIGUSR1, adds_one);
    run_threads(THREADS, handled);
    check(pm[0] == THREADS * ROUNDS, "all signals were handled");
}

static const struct program PROGRAMS[] = {
    {"mutexes", mutexes},       {"inside", inside},
    {"readers", readers},       {"one_by_one", one_by_one},
    {"conditions", conditions}, {"ping_pong", ping_pong},
    {"semaphores", semaphores}, {"barriers", barriers},
    {"left_alone", left_alone}, {"forks_among_others", forks_among_others},
    {"signals", signals},
    {NULL, NULL},
};

int main(int count, char **arguments) {
    return run(count, arguments, PROGRAMS);
}
