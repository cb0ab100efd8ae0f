// Programs that are careless about persistence in one way each, and repaired twins (`MODE`, and `MODE-repaired`).
// Lines with a finding have a comment with its class.
#include "pm.h"

#include <emmintrin.h>
#include <sys/socket.h>

#define LINE(number) (&pm[8 * (number)])

static int is_repaired;

static inline void clwb(volatile void *at) {
    __asm__ volatile("clwb %0" : "+m"(*(volatile char *)at));
}

static inline void fence(void) {
    _mm_sfence();
}

static void persist(volatile void *at) {
    clwb(at);
    fence();
}

static void never_flushed(void) {
    for (int i = 0; i < 3; i++) {
        *LINE(i) = 7; // never-flushed
        if (is_repaired)
            persist(LINE(i));
    }
    *LINE(9) = 1;
    persist(LINE(9));
}

// The store is memcpy's.
static void copied(void) {
    char text[40] = "longer than what a compiler stores";
    memcpy((void *)LINE(1), text, strlen(text) + is_repaired); // never-flushed
    if (is_repaired)
        persist(LINE(1));
    *LINE(9) = 1;
    persist(LINE(9));
}

static void never_fenced(void) {
    *LINE(1) = 7;
    clwb(LINE(1)); // never-fenced
    if (is_repaired)
        fence();
}

static void stored_after_flush(void) {
    *LINE(1) = 1;
    if (is_repaired)
        *(LINE(1) + 1) = 2;
    clwb(LINE(1));
    if (!is_repaired)
        *(LINE(1) + 1) = 2; // stored-after-flush
    fence();
    *LINE(2) = 1;
    persist(LINE(2));
}

// The flush is of the pointer's own copy.
static void other_memory(void) {
    volatile uint64_t *node = LINE(1);
    *node = 7; // never-flushed
    if (is_repaired)
        clwb(node);
    else
        clwb(&node); // flush-of-other-memory
    fence();
    *LINE(2) = 1;
    persist(LINE(2));
}

static void flushed_twice(void) {
    *LINE(1) = 1;
    clwb(LINE(1));
    if (!is_repaired)
        clwb(LINE(1)); // flushed-twice
    fence();
}

static void clean_flush(void) {
    *LINE(1) = 1;
    persist(LINE(1));
    if (!is_repaired)
        clwb(LINE(1)); // clean-flush
    *LINE(2) = 1;
    persist(LINE(2));
}

static void idle_fence(void) {
    *LINE(1) = 1;
    clwb(LINE(1));
    fence();
    if (!is_repaired)
        _mm_sfence(); // idle-fence
}

static void mixed_stores(void) {
    _mm_stream_si64((long long *)LINE(1), 1);
    if (is_repaired)
        fence();
    *(LINE(1) + 1) = 2; // store-after-non-temporal
    clwb(LINE(1));
    fence();
}

static void sync_failed(void) {
    *LINE(1) = 1;
    // The address must be a page's.
    msync((char *)pm + (is_repaired ? 0 : 64), 64, MS_SYNC); // sync-failed
    if (!is_repaired)
        fdatasync(pool);
}

static void sync_misses(void) {
    *LINE(1) = 1;
    pm[3 * 512] = 1; // sync-misses
    msync((void *)pm, is_repaired ? 4 * 4096 : 4096, MS_SYNC);
}

static void wide_sync(void) {
    check(ftruncate(pool, 1 << 22) == 0, "ftruncate");
    volatile uint64_t *wide = map(pool, 1 << 22, 0);
    wide[512] = 1;
    msync((void *)(wide + 512), is_repaired ? 4096 : (1 << 22) - 4096, MS_SYNC); // wide-sync
}

static void acknowledged(void) {
    int pair[2];
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
    *LINE(1) = 1;
    msync((void *)pm, 4096, is_repaired ? MS_SYNC : MS_ASYNC); // async-acknowledged
    check(write(pair[0], "stored", 6) == 6, "write");
    msync((void *)pm, 4096, MS_SYNC);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t stored, read_;

static void *writes(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    *LINE(1) = 7;
    if (is_repaired)
        persist(LINE(1));
    pthread_mutex_unlock(&lock);
    pthread_barrier_wait(&stored);
    pthread_barrier_wait(&read_);
    if (!is_repaired)
        persist(LINE(1));
    return NULL;
}

static void *reads(void *unused) {
    (void)unused;
    pthread_barrier_wait(&stored);
    pthread_mutex_lock(&lock);
    uint64_t found = *LINE(1); // dirty-read
    *LINE(2) = found;
    persist(LINE(2));
    pthread_mutex_unlock(&lock);
    pthread_barrier_wait(&read_);
    return NULL;
}

static void *either(void *number) {
    return number ? reads(NULL) : writes(NULL);
}

static void dirty_read(void) {
    pthread_barrier_init(&stored, NULL, 2);
    pthread_barrier_init(&read_, NULL, 2);
    run_threads(2, either);
}

// The reader loads another byte of the word, and a text that ends before a word that is not durable.
static void *beside(void *number) {
    volatile char *bytes = (volatile char *)LINE(1);
    char *text = (char *)LINE(4) - 8;
    if (number) {
        pthread_barrier_wait(&stored);
        *LINE(2) = bytes[4] + strlen(text);
        persist(LINE(2));
        pthread_barrier_wait(&read_);
        return NULL;
    }
    bytes[4] = 7;
    strcpy(text, "durable");
    persist(bytes);
    persist(text);
    bytes[0] = 7;
    *LINE(4) = 7;
    pthread_barrier_wait(&stored);
    pthread_barrier_wait(&read_);
    persist(bytes);
    persist(LINE(4));
    return NULL;
}

static void read_beside(void) {
    pthread_barrier_init(&stored, NULL, 2);
    pthread_barrier_init(&read_, NULL, 2);
    run_threads(2, beside);
}

// Locks of its own in persistent memory, which nobody flushes; they order what else it does.
static void *locked(void *number) {
    for (int i = 0; i < 50; i++) {
        uint32_t *own = (uint32_t *)LINE(0), is_free = 0;
        while (!__atomic_compare_exchange_n(own, &is_free, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            is_free = 0;
        *LINE(2 + (long)number) += *LINE(1);
        *LINE(1) += 1;
        persist(LINE(1));
        persist(LINE(2 + (long)number));
        __atomic_store_n(own, 0, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void own_locks(void) {
    run_threads(2, locked);
}

// The lock lies beside what it protects, which is flushed while the lock is held.
static void held_lock(void) {
    static uint64_t outside;
    uint64_t *own = is_repaired ? &outside : (uint64_t *)LINE(1), is_free = 0;
    check(__atomic_compare_exchange_n(own, &is_free, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST), "lock");
    *(LINE(1) + 1) = 7;
    persist(LINE(1));
    __atomic_store_n(own, 0, __ATOMIC_RELEASE); // held-lock
}

// The kernel stores.
static void read_into(void) {
    int ends[2];
    check(pipe(ends) == 0 && write(ends[1], "sixteen letters", 16) == 16, "pipe");
    check(read(ends[0], (void *)LINE(1), 16) == 16, "read"); // never-flushed
    if (is_repaired)
        persist(LINE(1));
    *LINE(2) = 1;
    persist(LINE(2));
}

// Locked instructions in place of fences: those of a mutex.
static void *locks(void *unused) {
    for (int i = 0; i < 3; i++) {
        *LINE(i) = 1;
        clwb(LINE(i));
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

// With one thread, the C library locks without locked instructions.
static void locks_fence(void) {
    run_threads(1, locks);
}

static void nothing(void) {
    *LINE(1) = 1;
}

// The heap is persistent; what the C library keeps there is its own.
static void heaped(void) {
    for (int i = 0; i < 3; i++) {
        uint64_t *node = aligned_alloc(64, 64);
        node[0] = i + 1; // never-flushed
        if (i < 2)
            persist(node);
    }
    printf("done\n");
}

static void reads_only(void) {
    check(*LINE(1) == 0, "empty");
}

// Code that no file has: mov [rdi],rsi; ret
static void compiled(void) {
    unsigned char code[] = {0x48, 0x89, 0x37, 0xc3};
    void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(at != MAP_FAILED, "mmap");
    memcpy(at, code, sizeof code);
    ((void (*)(volatile uint64_t *, uint64_t))at)(LINE(1), 7);
    *LINE(2) = 1;
    persist(LINE(2));
}

static const struct program PROGRAMS[] = {
    {"never_flushed", never_flushed}, {"copied", copied},
    {"never_fenced", never_fenced},   {"stored_after_flush", stored_after_flush},
    {"other_memory", other_memory},   {"flushed_twice", flushed_twice},
    {"clean_flush", clean_flush},     {"idle_fence", idle_fence},
    {"mixed_stores", mixed_stores},   {"sync_failed", sync_failed},
    {"sync_misses", sync_misses},     {"wide_sync", wide_sync},
    {"acknowledged", acknowledged},   {"dirty_read", dirty_read},
    {"own_locks", own_locks},         {"locks_fence", locks_fence},
    {"nothing", nothing},             {"reads_only", reads_only},
    {"compiled", compiled},           {"heaped", heaped},
    {"read_beside", read_beside},     {"held_lock", held_lock},
    {"read_into", read_into},
    {NULL, NULL},
};

int main(int count, char **arguments) {
    char *end = count > 2 ? strstr(arguments[2], "-repaired") : NULL;
    if (end) {
        is_repaired = 1;
        *end = 0;
    }
    return run(count, arguments, PROGRAMS);
}
