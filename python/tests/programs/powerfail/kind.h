// What programs of one kind of mistake share: a mapped file, flushes and fences, and the modes that the command line names.
//
// A program keeps a `struct pool` in a file: `run FILE` operates on a file of zeros; `check FILE` opens the file as after
// a power failure and says what is inconsistent; `loop` does so for each path on its input. With -DREPAIRED a program is
// its twin without the mistake. Comments mark the stores of a violation: `// MISSING` one that did not survive, `// PRESENT`
// one that did.
#define _GNU_SOURCE
#include <fcntl.h>
#include <emmintrin.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096
#define OWN_LINE __attribute__((aligned(64)))
#define OWN_PAGE __attribute__((aligned(PAGE)))
// A function that keeps its symbol, for --tx.
#define APART __attribute__((noinline, noclone, used))

#ifdef REPAIRED
#define IS_REPAIRED 1
#else
#define IS_REPAIRED 0
#endif

// A file's contents. Its fields are volatile, so that the compiler keeps every store, at its line, in order.
struct pool;

struct kind {
    size_t bytes;
    void (*run)(volatile struct pool *);
    // Gives the inconsistency as a sentence, or NULL. Recovers first, where the kind has a recovery.
    const char *(*check)(volatile struct pool *);
    // Prints the state.
    void (*dump)(volatile struct pool *);
    // Does one more operation, and judges what it has left.
    const char *(*next)(volatile struct pool *);
    void (*recover)(volatile struct pool *);
};

static inline void flush(volatile void *at) {
    __asm__ volatile("clflushopt %0" : "+m"(*(volatile char *)at));
}

static inline void fence(void) {
    __asm__ volatile("sfence" ::: "memory");
}

__attribute__((unused)) static void persist(volatile void *from, size_t bytes) {
    for (uintptr_t at = (uintptr_t)from & ~63ul; at < (uintptr_t)from + bytes; at += 64)
        flush((void *)at);
    fence();
}

// Of the file that is open.
static const char *pool_path;

static volatile struct pool *open_pool(const char *path, size_t bytes) {
    int file = open(path, O_RDWR | O_CREAT, 0600);
    void *at = MAP_FAILED;
    pool_path = path;
    if (file >= 0 && (lseek(file, 0, SEEK_END) >= (off_t)bytes || ftruncate(file, bytes) == 0))
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) {
        perror(path);
        exit(9);
    }
    close(file);
    return at;
}

static int answer(const char *problem) {
    if (problem)
        puts(problem);
    return problem != NULL;
}

static int loop(const struct kind *kind) {
    char path[4096];
    while (fgets(path, sizeof path, stdin)) {
        path[strcspn(path, "\n")] = 0;
        volatile struct pool *pool = open_pool(path, kind->bytes);
        const char *problem = kind->check(pool);
        puts(problem ? problem : "ok");
        fflush(stdout);
        munmap((void *)pool, kind->bytes);
    }
    return 0;
}

static int main_of(const struct kind *kind, int count, char **arguments) {
    const char *mode = count > 1 ? arguments[1] : "";
    if (!strcmp(mode, "loop"))
        return loop(kind);
    if (count < 3)
        return 8;
    volatile struct pool *pool = open_pool(arguments[2], kind->bytes);
    if (!strcmp(mode, "run"))
        kind->run(pool);
    else if (!strcmp(mode, "check"))
        return answer(kind->check(pool));
    else if (!strcmp(mode, "next") && kind->next)
        return answer(kind->next(pool));
    else if (!strcmp(mode, "dump") && kind->dump)
        kind->dump(pool);
    else if (!strcmp(mode, "recover") && kind->recover)
        kind->recover(pool);
    else
        return 8;
    return 0;
}
