// Threads that access the same persistent memory: some race, and some only seem to.
#include "pm.h"

#include <semaphore.h>

#define ROUNDS 100

static pthread_barrier_t start;
static void *(*first)(void *), *(*second)(void *);

static void *starts(void *argument) {
    pthread_barrier_wait(&start);
    return argument ? second(argument) : first(argument);
}

// Both begin at the same time; nothing else orders them.
static void both(void *(*of_first)(void *), void *(*of_second)(void *)) {
    pthread_barrier_init(&start, NULL, 2);
    first = of_first, second = of_second;
    run_threads(2, starts);
}

static void *stores(void *argument) {
    tx_begin(0);
    pm[1] = (long)argument;
    tx_commit();
    return NULL;
}

static void *loads(void *argument) {
    pm[9] = pm[1];
    return argument;
}

static void two_stores(void) {
    both(stores, stores);
}

static void store_and_load(void) {
    both(stores, loads);
}

static void *only_loads(void *argument) {
    return (void *)(pm[1] + (long)argument);
}

static void two_loads(void) {
    both(only_loads, only_loads);
}

// Each of its own bytes of one word.
static void *stores_a_half(void *argument) {
    for (int i = 0; i < ROUNDS; i++)
        ((volatile uint32_t *)pm)[2 + (argument != NULL)] += i;
    return NULL;
}

static void neighbours(void) {
    both(stores_a_half, stores_a_half);
}

static void *stores_over_an_edge(void *argument) {
    *(volatile uint32_t *)((char *)pm + 14 + 2 * (argument != NULL)) = 7;
    return NULL;
}

static void overlap(void) {
    both(stores_over_an_edge, stores_over_an_edge);
}

static pthread_mutex_t mutexes[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

static void *adds_under(pthread_mutex_t *mutex, int is_tried) {
    for (int i = 0; i < ROUNDS; i++) {
        if (!is_tried)
            pthread_mutex_lock(mutex);
        else
            while (pthread_mutex_trylock(mutex))
                sched_yield();
        pm[1] += 1;
        pthread_mutex_unlock(mutex);
    }
    return NULL;
}

static void *adds(void *argument) {
    return adds_under(&mutexes[0], argument != NULL);
}

static void tried(void) {
    both(adds, adds);
}

static void *adds_under_its_own(void *argument) {
    return adds_under(&mutexes[argument != NULL], 0);
}

static void two_mutexes(void) {
    both(adds_under_its_own, adds_under_its_own);
}

static pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;

static void *stores_as_a_reader(void *argument) {
    for (int i = 0; i < ROUNDS; i++) {
        pthread_rwlock_rdlock(&gate);
        pm[1] = (long)argument;
        pthread_rwlock_unlock(&gate);
    }
    return NULL;
}

static void readers_that_store(void) {
    both(stores_as_a_reader, stores_as_a_reader);
}

static pthread_spinlock_t spin;

static void *adds_spinning(void *argument) {
    for (int i = 0; i < ROUNDS; i++) {
        pthread_spin_lock(&spin);
        pm[1] += 1;
        pthread_spin_unlock(&spin);
    }
    return argument;
}

static void spin_lock(void) {
    pthread_spin_init(&spin, 0);
    both(adds_spinning, adds_spinning);
}

static sem_t turns;

static void *posts(void *argument) {
    pm[1] = 1;
    sem_post(&turns);
    return argument;
}

static void *takes(void *argument) {
    while (sem_trywait(&turns))
        sched_yield();
    pm[1] += 1;
    return argument;
}

static void semaphore(void) {
    sem_init(&turns, 0, 0);
    both(posts, takes);
}

// Both have one of two that there are.
static void *takes_and_posts(void *argument) {
    sem_wait(&turns);
    pm[1] = (long)argument;
    sem_post(&turns);
    return NULL;
}

static void *takes_and_keeps(void *argument) {
    sem_wait(&turns);
    pm[1] = (long)argument;
    return NULL;
}

static void semaphore_of_two(void) {
    sem_init(&turns, 0, 2);
    both(takes_and_keeps, takes_and_keeps);
}

static void semaphore_as_a_lock(void) {
    sem_init(&turns, 0, 1);
    both(takes_and_posts, takes_and_posts);
}

static pthread_barrier_t middle;

static void *stores_before(void *argument) {
    pm[1] = 1;
    pthread_barrier_wait(&middle);
    return argument;
}

static void *stores_after(void *argument) {
    pthread_barrier_wait(&middle);
    pm[1] = 2;
    return argument;
}

static void barrier(void) {
    pthread_barrier_init(&middle, NULL, 2);
    both(stores_before, stores_after);
}

static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int is_changed;

static void *changes(void *argument) {
    pm[1] = 1;
    pthread_mutex_lock(&mutexes[0]);
    is_changed = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutexes[0]);
    return argument;
}

static void *waits(void *argument) {
    pthread_mutex_lock(&mutexes[0]);
    while (!is_changed)
        pthread_cond_wait(&changed, &mutexes[0]);
    pm[1] += 1;
    pthread_mutex_unlock(&mutexes[0]);
    return argument;
}

static void condition(void) {
    both(changes, waits);
}

// A reference is given up by each, and the last one stores.
static volatile uint64_t references = 2;

static void *gives_up(void *argument) {
    pm[2 + (argument != NULL)] = 1;
    if (__atomic_sub_fetch(&references, 1, __ATOMIC_ACQ_REL) == 0)
        pm[2] = pm[3] = 5;
    return NULL;
}

static void last_reference(void) {
    both(gives_up, gives_up);
}

static volatile uint64_t ready;

static void *publishes(void *argument) {
    pm[1] = 1;
    __atomic_store_n(&ready, 1, __ATOMIC_SEQ_CST);
    return argument;
}

static void *polls(void *argument) {
    while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
        ;
    pm[1] += 1;
    return argument;
}

static void flag(void) {
    both(publishes, polls);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void makes(void) {
    pm[1] = 5;
}

static void *makes_once(void *argument) {
    pthread_once(&once, makes);
    pm[2 + (argument != NULL)] = pm[1];
    return NULL;
}

static void only_once(void) {
    both(makes_once, makes_once);
}

// A mutex that lies in persistent memory: what it does itself is no race.
static void *adds_under_persistent(void *argument) {
    (void)argument;
    return adds_under((pthread_mutex_t *)(pm + 64), 0);
}

static void persistent_mutex(void) {
    check(pthread_mutex_init((pthread_mutex_t *)(pm + 64), NULL) == 0, "pthread_mutex_init");
    both(adds_under_persistent, adds_under_persistent);
}

// What a thread does that was made comes after what its maker has done, and before its end.
static void made(void) {
    pthread_t thread;
    pm[1] = 1;
    check(pthread_create(&thread, NULL, stores, NULL) == 0, "pthread_create");
    pthread_join(thread, NULL);
    pm[1] = 2;
}

static void made_and_not_waited_for(void) {
    pthread_t thread;
    check(pthread_create(&thread, NULL, stores, NULL) == 0, "pthread_create");
    pm[1] = 2;
    pthread_join(thread, NULL);
}

static const struct program PROGRAMS[] = {
    {"two_stores", two_stores},
    {"store_and_load", store_and_load},
    {"two_loads", two_loads},
    {"neighbours", neighbours},
    {"overlap", overlap},
    {"tried", tried},
    {"two_mutexes", two_mutexes},
    {"readers_that_store", readers_that_store},
    {"spin_lock", spin_lock},
    {"semaphore", semaphore},
    {"semaphore_of_two", semaphore_of_two},
    {"semaphore_as_a_lock", semaphore_as_a_lock},
    {"barrier", barrier},
    {"condition", condition},
    {"last_reference", last_reference},
    {"flag", flag},
    {"only_once", only_once},
    {"persistent_mutex", persistent_mutex},
    {"made", made},
    {"made_and_not_waited_for", made_and_not_waited_for},
    {NULL, NULL},
};

int main(int count, char **arguments) {
    return run(count, arguments, PROGRAMS);
}
