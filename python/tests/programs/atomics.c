// Threads that meet by atomic instructions alone, in persistent memory and in memory that is not.
#include "pm.h"

#define THREADS 4
#define ROUNDS 5000

static pthread_barrier_t start;
static void *(*chosen)(void *);

static void *starts(void *argument) {
    pthread_barrier_wait(&start);
    return chosen(argument);
}

// So that they run at the same time.
static void start_all(void *(*of)(void *)) {
    pthread_barrier_init(&start, NULL, THREADS);
    chosen = of;
    run_threads(THREADS, starts);
}

// Each ticket is drawn once, and has a word of its own.
static void *draws(void *argument) {
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t ticket = __atomic_fetch_add(pm, 1, __ATOMIC_SEQ_CST);
        pm[16 + ticket] = (long)argument + 1;
    }
    return NULL;
}

static void tickets(void) {
    start_all(draws);
    check(pm[0] == THREADS * ROUNDS, "all were drawn");
    for (int i = 0; i < THREADS * ROUNDS; i++)
        check(pm[16 + i] != 0, "each was drawn");
}

static void *exchanges_when_equal(void *argument) {
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t old = pm[0];
        while (!__atomic_compare_exchange_n(pm, &old, old * 3 + (long)argument, 0, 5, 5))
            ;
        __atomic_fetch_add(pm + 1, 1, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

static void loops(void) {
    start_all(exchanges_when_equal);
    check(pm[1] == THREADS * ROUNDS, "all were exchanged");
}

static void pauses(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static volatile uint64_t *spin;
static volatile uint64_t in_dram;

static void *spins(void *argument) {
    for (int i = 0; i < ROUNDS / 10; i++) {
        while (__atomic_exchange_n(spin, 1, __ATOMIC_ACQUIRE))
            while (*spin)
                if (i % 2)
                    pauses();
        tx_begin(0);
        pm[8] += 1;
        pm[9 + (long)argument] = pm[8];
        tx_commit();
        __atomic_store_n(spin, 0, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void spin_lock_in_pm(void) {
    spin = pm;
    start_all(spins);
    check(pm[8] == THREADS * ROUNDS / 10, "all were added");
}

static void spin_lock_in_dram(void) {
    spin = &in_dram;
    start_all(spins);
    check(pm[8] == THREADS * ROUNDS / 10, "all were added");
}

// A stack without locks, its head with a count in 16 bytes; nodes are words: the next node's number.
typedef unsigned __int128 pair;

static int replace(uint64_t *head, uint64_t *count, uint64_t to) {
#if defined(__ARM_FEATURE_ATOMICS)
    register uint64_t old __asm__("x2") = *head, of_old __asm__("x3") = *count;
    register uint64_t new __asm__("x4") = to, of_new __asm__("x5") = *count + 1;
    uint64_t wanted = *head, of_wanted = *count;
    __asm__ volatile("caspal x2, x3, x4, x5, %2"
                     : "+r"(old), "+r"(of_old), "+Q"(*(volatile pair *)pm)
                     : "r"(new), "r"(of_new)
                     : "memory");
    *head = old, *count = of_old;
    return old == wanted && of_old == of_wanted;
#elif defined(__aarch64__)
    uint64_t old, of_old;
    int failed = 1;
    __asm__ volatile("ldaxp %0, %1, %2" : "=&r"(old), "=&r"(of_old) : "Q"(*(volatile pair *)pm));
    if (old == *head && of_old == *count)
        __asm__ volatile("stlxp %w0, %2, %3, %1"
                         : "=&r"(failed), "=Q"(*(volatile pair *)pm)
                         : "r"(to), "r"(*count + 1)
                         : "memory");
    *head = old, *count = of_old;
    return !failed;
#else
    unsigned char done;
    __asm__ volatile("lock cmpxchg16b %1; sete %0"
                     : "=q"(done), "+m"(*(volatile pair *)pm), "+a"(*head), "+d"(*count)
                     : "b"(to), "c"(*count + 1)
                     : "memory", "cc");
    return done;
#endif
}

static void push(uint64_t node) {
    uint64_t head = pm[0], count = pm[1];
    do
        __atomic_store_n(pm + 64 + node, head, __ATOMIC_RELAXED);
    while (!replace(&head, &count, node));
}

static uint64_t pop(void) {
    uint64_t head = pm[0], count = pm[1], next;
    do {
        if (!head)
            return 0;
        next = __atomic_load_n(pm + 64 + head, __ATOMIC_RELAXED);
    } while (!replace(&head, &count, next));
    return head;
}

static void *pushes_and_pops(void *argument) {
    long first = 1 + (long)argument * 64;
    for (int i = 0; i < 64; i++)
        push(first + i);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t node = pop();
        pm[1024 + node] += 1;
        if (node)
            push(node);
    }
    return NULL;
}

static void stack(void) {
    start_all(pushes_and_pops);
    int count = 0;
    for (uint64_t node = pm[0]; node; node = pm[64 + node])
        count++;
    check(count == 64 * THREADS, "no node is lost");
}

// Of one word, in all sizes; what fails stores what was there.
static void *all_sizes(void *argument) {
    volatile char *bytes = (volatile char *)(pm + 8);
    for (int i = 0; i < ROUNDS; i++) {
        __atomic_fetch_add(bytes + i % 8, 1, __ATOMIC_SEQ_CST);
        __atomic_fetch_sub((volatile uint16_t *)bytes + i % 4, 3, __ATOMIC_SEQ_CST);
        __atomic_fetch_xor((volatile uint32_t *)bytes + i % 2, 0x10101 * i, __ATOMIC_SEQ_CST);
        uint64_t wrong = 1;
        __atomic_compare_exchange_n(pm + 8, &wrong, 2, 0, 5, 5);
#if defined(__x86_64__)
        __asm__ volatile("lock btcl $5, %0; lock negw %0; lock decl %1; xchgb %b2, %3"
                         : "+m"(*(int *)(pm + 8)), "+m"(*(int *)(pm + 9)), "+q"(argument)
                         : "m"(*(char *)(pm + 10)));
#endif
    }
    return NULL;
}

static void sizes(void) {
    start_all(all_sizes);
}

// Over the edge of a line, and of a page: what processors lock the bus for.
static void *splits(void *argument) {
    for (int i = 0; i < ROUNDS / 10; i++) {
        __atomic_fetch_add((uint64_t *)((char *)pm + 4096 - 3), 0x0102030405060708, 5);
        __atomic_fetch_add((uint32_t *)((char *)pm + 64 - 1), 0x01020304, 5);
    }
    return argument;
}

static void split(void) {
    start_all(splits);
}

// The flag is stored by an exchange, and loaded by a plain load.
static void *waits(void *argument) {
    while (!__atomic_load_n(&in_dram, __ATOMIC_ACQUIRE))
        ;
    pm[1] = pm[0] + 1;
    return argument;
}

static void flag(void) {
    pthread_t thread;
    check(pthread_create(&thread, NULL, waits, NULL) == 0, "pthread_create");
    pm[0] = 5;
    __atomic_store_n(&in_dram, 1, __ATOMIC_SEQ_CST);
    pthread_join(thread, NULL);
    check(pm[1] == 6, "the thread has waited");
}

// Nothing orders them; the order of their stores and loads is what the capture must find.
static void *hurries(void *argument) {
    for (int i = 0; i < ROUNDS; i++) {
        pm[0] = pm[0] * 5 + (long)argument;
        ((volatile char *)pm)[8 + i % 16] ^= pm[0];
    }
    return NULL;
}

static void unordered(void) {
    start_all(hurries);
}

#if defined(__aarch64__)
// One thread's exclusive stores come late: another has stored to the word what they would have, or to the second word of two. They
// store nothing then.
static volatile uint64_t step;

static void *stores_late(void *argument) {
    uint64_t failed, times = 0;
    for (uint64_t i = 1; argument == 0 && i < 20; i += 2) {
        if (chosen == NULL)
            __asm__ volatile("ldaxr x9, [%1]; stlr %3, [%2]; 1: ldar x10, [%2]; cmp x10, %3; b.eq 1b;"
                             "add x9, x9, #1; stlxr %w0, x9, [%1]"
                             : "=&r"(failed)
                             : "r"(pm), "r"(&step), "r"(i)
                             : "x9", "x10", "memory", "cc");
        else
            __asm__ volatile("ldaxp x11, x9, [%1]; stlr %3, [%2]; 1: ldar x10, [%2]; cmp x10, %3;"
                             "b.eq 1b; add x9, x9, #1; stlxp %w0, x11, x9, [%1]"
                             : "=&r"(failed)
                             : "r"(pm), "r"(&step), "r"(i)
                             : "x9", "x10", "x11", "memory", "cc");
        times += failed;
    }
    for (uint64_t i = 1; argument != 0 && i < 20; i += 2) {
        while (__atomic_load_n(&step, __ATOMIC_ACQUIRE) != i)
            ;
        pm[chosen != NULL] += 1;
        __atomic_store_n(&step, i + 1, __ATOMIC_RELEASE);
    }
    check(argument != 0 || times == 10, "all came late");
    return NULL;
}

static void late(void) {
    run_threads(2, stores_late);
}

static void late_with_two(void) {
    chosen = stores_late;
    run_threads(2, stores_late);
}

// A flag that is stored and loaded in order, by instructions that say so.
static volatile uint64_t ordered;

static void *waits_in_order(void *argument) {
    while (!__atomic_load_n(&ordered, __ATOMIC_ACQUIRE))
        ;
    pm[1] = pm[0] + 1;
    return argument;
}

static void flag_in_order(void) {
    pthread_t thread;
    check(pthread_create(&thread, NULL, waits_in_order, NULL) == 0, "pthread_create");
    pm[0] = 5;
    __atomic_store_n(&ordered, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    check(pm[1] == 6, "the thread has waited");
}
#endif

static const struct program PROGRAMS[] = {
#if defined(__aarch64__)
    {"late", late},
    {"late_with_two", late_with_two},
    {"flag_in_order", flag_in_order},
#endif
    {"tickets", tickets},
    {"loops", loops},
    {"spin_lock_in_pm", spin_lock_in_pm},
    {"spin_lock_in_dram", spin_lock_in_dram},
    {"stack", stack},
    {"sizes", sizes},
    {"split", split},
    {"flag", flag},
    {"unordered", unordered},
    {NULL, NULL},
};

int main(int count, char **arguments) {
    return run(count, arguments, PROGRAMS);
}
