// A second file that grows by a block, and the count of its blocks, which is durable before the file's new length.
#include "kind.h"

#define BLOCKS 4

struct pool {
    uint64_t blocks OWN_PAGE;
};

static int open_blocks(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s.blocks", pool_path);
    return open(path, O_RDWR | O_CREAT, 0600);
}

static void grow(volatile struct pool *pool, int file) {
    uint64_t blocks = pool->blocks + 1;
    if (ftruncate(file, blocks * PAGE)) // MISSING
        exit(9);
    if (IS_REPAIRED)
        fsync(file);
    pool->blocks = blocks; // PRESENT
    msync((void *)pool, PAGE, MS_SYNC);
}

static void run(volatile struct pool *pool) {
    int file = open_blocks();
    if (mmap(NULL, BLOCKS * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) == MAP_FAILED)
        exit(9);
    for (uint64_t i = 0; i < BLOCKS; i++)
        grow(pool, file);
}

static const char *check(volatile struct pool *pool) {
    int file = open_blocks();
    off_t length = lseek(file, 0, SEEK_END);
    close(file);
    return length < (off_t)(pool->blocks * PAGE) ? "the file is shorter than its blocks" : NULL;
}

int main(int count, char **arguments) {
    return main_of(&(struct kind){.bytes = sizeof(struct pool), .run = run, .check = check}, count, arguments);
}
