// What the programs share: a file that is mapped, and functions that begin and end transactions.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define POOL_BYTES (64 * 4096)

struct program {
    const char *name;
    void (*run)(void);
};

// The pool, its file, and the name of that.
static volatile uint64_t *pm;
static int pool = -1;
static const char *pool_path;

#define APART __attribute__((noinline, noclone, used))

static void check(int is_right, const char *what) {
    if (!is_right) {
        perror(what);
        exit(9);
    }
}

APART int tx_begin(int result) {
    __asm__ volatile("" ::: "memory");
    return result;
}

APART int tx_commit(void) {
    __asm__ volatile("" ::: "memory");
    return 0;
}

APART int tx_abort(void) {
    __asm__ volatile("" ::: "memory");
    return 0;
}

static void *map(int fd, size_t bytes, off_t offset) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
    check(at != MAP_FAILED, "mmap");
    return at;
}

static void open_pool(void) {
    pool = open(pool_path, O_RDWR | O_CREAT, 0600);
    check(pool >= 0 && ftruncate(pool, POOL_BYTES) == 0, pool_path);
    pm = map(pool, POOL_BYTES, 0);
}

// So many threads, with their numbers; all have ended when it returns.
__attribute__((unused)) static void run_threads(int count, void *(*of)(void *)) {
    pthread_t threads[count];
    for (long i = 0; i < count; i++)
        check(pthread_create(&threads[i], NULL, of, (void *)i) == 0, "pthread_create");
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

// POOL MODE: maps the pool, runs what is so called.
static int run(int count, char **arguments, const struct program *programs) {
    pool_path = count > 2 ? arguments[1] : "pool";
    for (; count > 2 && programs->name; programs++)
        if (!strcmp(programs->name, arguments[2])) {
            open_pool();
            programs->run();
            return 0;
        }
    return 8;
}
