// What the kernel does to mappings and to what is in them. No transactions.
#include "pm.h"

#include <spawn.h>

static char text[20000];

static void fill(void) {
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 13 + 1);
}

// From a file that is no persistent memory.
static void reads(void) {
    fill();
    FILE *other = tmpfile();
    int fd = fileno(other);
    check(write(fd, text, sizeof text) == sizeof text, "write");
    char *to = (char *)pm;
    lseek(fd, 0, SEEK_SET);
    check(read(fd, to + 3, 5000) == 5000, "read");
    check(pread(fd, to + 8190, 3000, 17) == 3000, "pread");
    struct iovec parts[] = {{to + 12000, 10}, {text, 10}, {to + 13001, 600}};
    check(readv(fd, parts, 3) == 620, "readv");
    check(preadv(fd, parts, 3, 19900) == 100, "preadv, which comes to the end");
    pm[7000] = pm[1024] + pm[1500];
}

static void writes(void) {
    fill();
    check(lseek(pool, 100, SEEK_SET) == 100, "lseek");
    check(write(pool, text, 5000) == 5000, "write");
    check(write(pool, text + 7, 5) == 5, "write");
    check(pwrite(pool, text, 3000, 20001) == 3000, "pwrite");
    struct iovec parts[] = {{text + 12000, 10}, {(char *)pm + 100, 700}};
    check(writev(pool, parts, 2) == 710, "writev");
    check(pwritev(pool, parts, 2, 40000) == 710, "pwritev");
    pm[0] = pm[20] + pm[2600] + pm[5010];
}

static void results(void) {
    clock_gettime(CLOCK_REALTIME, (struct timespec *)pm);
    gettimeofday((struct timeval *)(pm + 2), NULL);
    check(getrandom((char *)pm + 33, 100, 0) == 100, "getrandom");
    pm[100] = pm[0] + pm[1] + pm[5];
}

static void pipes(void) {
    int ends[2];
    check(pipe(ends) == 0, "pipe");
    check(write(ends[1], "through a pipe", 14) == 14, "write");
    check(read(ends[0], (void *)pm, 14) == 14, "read");
    pm[5] = pm[0];
}

static void moves(void) {
    pm[0] = 1;
    pm[511] = 2;
    char *room = mmap(NULL, 1 << 22, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    check(room != MAP_FAILED, "mmap");
    volatile uint64_t *moved = mremap((void *)pm, POOL_BYTES, POOL_BYTES,
                                      MREMAP_MAYMOVE | MREMAP_FIXED, room + (1 << 20));
    check(moved != MAP_FAILED, "mremap");
    moved[0] += 1;
    moved[1] = moved[511];
    // What is at the old place now is no persistent memory.
    uint64_t *other = mmap((void *)pm, 4096, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    other[0] = 77;
    other[1] = 78;
    // A hole, and the file's end in it.
    check(munmap((char *)moved + 8192, 4096) == 0, "munmap");
    volatile uint64_t *page = mmap((char *)moved + 8192, 4096, PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_FIXED, pool, POOL_BYTES - 4096);
    page[0] = 5;
    moved[3 * 512] = page[0] + moved[1];
    // Half of it, and grown again to twice the file.
    check(munmap((void *)page, 4096) == 0, "munmap");
    moved = mremap((char *)moved + 12288, 8192, 4096, 0);
    moved[1] = 6;
    check(ftruncate(pool, 2 * POOL_BYTES) == 0, "ftruncate");
    moved = mremap((void *)moved, 4096, 2 * POOL_BYTES - 12288, MREMAP_MAYMOVE);
    check(moved != MAP_FAILED, "mremap");
    moved[(2 * POOL_BYTES - 12288) / 8 - 1] = moved[1];
}

// One file mapped twice, in whole and in part, and two mappings side by side.
static void twice(void) {
    volatile uint64_t *again = map(pool, POOL_BYTES, 0);
    int fd = open(pool_path, O_RDWR);
    volatile uint64_t *part = map(fd, 8192, 8192);
    pm[1024] = 3;
    again[1025] = pm[1024] + part[0];
    part[2] = pm[1025] + again[1024];
    pm[0] = part[2];
    char *room = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (int i = 0; i < 2; i++)
        check(mmap(room + 4096 * i, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, pool,
                   4096 * (8 - i)) != MAP_FAILED, "mmap");
    *(volatile uint64_t *)(room + 4096 - 3) = 0x1122334455667788;
    pm[3] = *(volatile uint64_t *)(room + 4096 - 5);
}

static void unlinked(void) {
    pm[0] = 1;
    check(unlink(pool_path) == 0, "unlink");
    pm[1] = pm[0] + 1;
    // Another file of the same name is another region.
    open_pool();
    pm[2] = 7;
    pm[3] = pm[0];
}

static void private(void) {
    volatile uint64_t *own = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, pool, 0);
    pm[0] = 1;
    own[0] = 2;
    own[1] = 3;
    pm[2] = pm[0];
}

static void *nothing(void *argument) {
    return argument;
}

static void threads_begin_and_end(void) {
    pthread_t thread;
    for (int i = 0; i < 3; i++) {
        check(pthread_create(&thread, NULL, nothing, NULL) == 0, "pthread_create");
        pthread_join(thread, NULL);
    }
}

static void forks(void) {
    char path[4000];
    snprintf(path, sizeof path, "%s", pool_path);
    pm[0] = 1;
    pid_t child = fork();
    if (child == 0) {
        // Nothing of this is the parent's, except what it stores.
        pm[100] = 2;
        threads_begin_and_end();
        memcpy(path + strlen(path) - 4, "also", 4);
        int also = open(path, O_RDWR | O_CREAT, 0600);
        check(ftruncate(also, 4096) == 0, "ftruncate");
        *(volatile uint64_t *)map(also, 4096, 0) = 1;
        exit(0);
    }
    int status;
    check(waitpid(child, &status, 0) == child && status == 0, "the child");
    threads_begin_and_end();
    for (int i = 0; i < 2000; i++)
        pm[i % 50] = i + pm[0];
}

// The child comes to its end while the parent has long gone on.
static void fork_is_late(void) {
    int ends[2];
    check(pipe(ends) == 0, "pipe");
    pid_t child = fork();
    if (child == 0) {
        char byte;
        check(read(ends[0], &byte, 1) == 1, "read");
        threads_begin_and_end();
        exit(0);
    }
    for (int i = 0; i < 2000; i++)
        pm[i % 50] = i + pm[0];
    check(write(ends[1], "x", 1) == 1, "write");
    int status;
    check(waitpid(child, &status, 0) == child && status == 0, "the child");
    pm[60] = pm[5];
}

static void spawns(void) {
    extern char **environ;
    pm[0] = 1;
    check(system("exit 0") == 0, "system");
    pm[1] = pm[0];
    pid_t child;
    char *arguments[] = {"true", NULL};
    check(posix_spawnp(&child, "true", NULL, NULL, arguments, environ) == 0, "posix_spawn");
    int status;
    check(waitpid(child, &status, 0) == child && status == 0, "the child");
    for (int i = 0; i < 500; i++)
        pm[2 + i % 50] = i + pm[0];
}

static void replaces(void) {
    pm[0] = 1;
    execl("/no/such/program", "program", NULL);
    pm[1] = pm[0];
    execl("/bin/true", "true", NULL);
}

static const struct program PROGRAMS[] = {
    {"reads", reads},       {"writes", writes},
    {"results", results},   {"pipes", pipes},
    {"moves", moves},       {"twice", twice},
    {"unlinked", unlinked}, {"private", private},
    {"forks", forks},       {"fork_is_late", fork_is_late},
    {"spawns", spawns},     {"replaces", replaces},
    {NULL, NULL},
};

int main(int count, char **arguments) {
    return run(count, arguments, PROGRAMS);
}
