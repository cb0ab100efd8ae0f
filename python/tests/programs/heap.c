// A heap in a mapped file, to be loaded before a program that has none: what it allocates is in persistent memory.
// Nothing is freed.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HEAP_BYTES (256UL << 20)
#define UNIT 16

static char *heap;
static _Atomic size_t used;

static char *start(void) {
    const char *path = getenv("HEAP");
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || ftruncate(file, HEAP_BYTES))
        _exit(70);
    heap = mmap(NULL, HEAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return heap;
}

// Before each part are its bytes.
void *memalign(size_t alignment, size_t bytes) {
    size_t room = alignment > UNIT ? alignment : UNIT;
    char *from = heap ? heap : start();
    size_t at = used += (bytes + 2 * room + UNIT - 1) / UNIT * UNIT;
    if (at > HEAP_BYTES)
        return NULL;
    uintptr_t end = (uintptr_t)from + at - bytes;
    char *part = (char *)(end / room * room);
    ((size_t *)part)[-1] = bytes;
    return part;
}

void *malloc(size_t bytes) {
    return memalign(UNIT, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    return memalign(alignment, bytes);
}

int posix_memalign(void **part, size_t alignment, size_t bytes) {
    *part = memalign(alignment, bytes);
    return *part ? 0 : ENOMEM;
}

void free(void *part) {
    (void)part;
}

size_t malloc_usable_size(void *part) {
    return part ? ((size_t *)part)[-1] : 0;
}

void *calloc(size_t count, size_t bytes) {
    return malloc(count * bytes);
}

void *realloc(void *part, size_t bytes) {
    size_t before = malloc_usable_size(part);
    void *other = malloc(bytes);
    return other && part ? memcpy(other, part, before < bytes ? before : bytes) : other;
}
