/* A heap in a file, for indexes whose persistent memory is that of malloc.

       include=$(graven capture --include-path)
       cc -g -no-pie -I$include -o driver driver.c index.c $include/graven_heap.c
       GRAVEN_HEAP=/dev/shm/heap ./driver

   It may also be a library (cc -fPIC -shared) that is linked, or preloaded. Without -no-pie pointers to code, such as those to tables
   of virtual functions, do not hold in a later run.

   Rule: what a thread allocates between graven_heap_begin and graven_heap_end (malloc, calloc, realloc, posix_memalign, memalign,
   aligned_alloc, and through them operator new) lies in the file that GRAVEN_HEAP names, mapped shared at a fixed address; all
   else is the C library's. A run that finds the file not empty opens it: pointers in it hold. Nothing but the program's own
   stores, and zeros, is in the file: sizes of blocks are kept in volatile memory, no block is used twice, there is no flush, no
   fence and no locked instruction here, and a later run allocates behind all data, in the file's second half.

   GRAVEN_HEAP_BYTES: the size of a new file (64 MB). Each thread allocates from a sixteenth of a half. */
#define _GNU_SOURCE
#include "graven_heap.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BASE ((char *)0x100000000000)
#define THREADS 16

void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static size_t bytes, first;    /* of the file; where this run's blocks begin */
static uint32_t *sizes, taken; /* of blocks of this run, by their address / 16; threads */
static __thread size_t next, end;
static __thread int within __attribute__((tls_model("initial-exec")));

static void fail(const char *what) {
    fprintf(stderr, "graven_heap: %s: %s\n", what, strerror(errno));
    abort();
}

static void open_heap(void) {
    struct stat status;
    const char *path = getenv("GRAVEN_HEAP"), *size = getenv("GRAVEN_HEAP_BYTES");
    int file = path ? open(path, O_RDWR | O_CREAT, 0666) : (errno = EINVAL, -1);
    if (file < 0 || fstat(file, &status)) fail("GRAVEN_HEAP");
    first = 4096;
    if (!(bytes = status.st_size)) {
        bytes = (size ? strtoull(size, 0, 0) : 64 << 20) & ~0xfffffull;
        if (ftruncate(file, bytes)) fail("ftruncate");
    } else {
        first = bytes / 2;
        for (off_t data; (data = lseek(file, first, SEEK_DATA)) >= 0;) first = lseek(file, data, SEEK_HOLE);
    }
    int flags = MAP_SHARED | MAP_FIXED_NOREPLACE;
    if (mmap(BASE, bytes, PROT_READ | PROT_WRITE, flags, file, 0) != BASE) fail("mmap");
    sizes = mmap(0, bytes / 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    close(file);
}

static int in_file(const void *block) { return (size_t)((char *)block - BASE) < bytes; }

static void *allocate(size_t alignment, size_t size) {
    if (alignment < 16) alignment = 16;
    size_t at = (next + alignment - 1) & -alignment;
    next = (at + (size ? size : 1) + 15) & ~15ul;
    if (next > end || next < at) errno = ENOMEM, fail("this thread's part of the file is full (GRAVEN_HEAP_BYTES)");
    sizes[at / 16] = size;
    return BASE + at;
}

void **graven_heap_root(void) {
    if (!bytes) open_heap();
    return (void **)BASE;
}

void graven_heap_begin(void) {
    graven_heap_root();
    if (!end) {
        size_t part = ((first < bytes / 2 ? bytes / 2 : bytes) - first) / THREADS & ~4095ul;
        uint32_t thread = __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
        if (thread >= THREADS) errno = EAGAIN, fail("more than 16 threads");
        next = first + thread * part, end = next + part;
    }
    within++;
}

void graven_heap_end(void) { within--; }

void *memalign(size_t alignment, size_t size) {
    return within ? allocate(alignment, size) : __libc_memalign(alignment, size);
}

void *malloc(size_t size) { return within ? allocate(16, size) : __libc_malloc(size); }

void *calloc(size_t count, size_t size) { /* what is in the file and was never used is zero */
    return within ? allocate(16, count * size) : __libc_calloc(count, size);
}

void free(void *block) {
    if (!in_file(block)) __libc_free(block);
}

void *realloc(void *block, size_t size) {
    if (block ? !in_file(block) : !within) return __libc_realloc(block, size);
    size_t old = block ? sizes[((char *)block - BASE) / 16] : 0, left = block ? bytes - ((char *)block - BASE) : 0;
    if (block && !old) old = size < left ? size : left; /* a block of an earlier run */
    void *moved = allocate(16, size);
    return block ? memcpy(moved, block, old < size ? old : size) : moved;
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **block, size_t alignment, size_t size) {
    *block = memalign(alignment, size);
    return *block ? 0 : ENOMEM;
}
