// A count of blocks that is stored before the second file grows. The line of the count may be written back at any time, while
// the file's length changes with the call: there is an instant with the new count and the old length.
#include "kind.h"

#define BLOCKS 4

struct pool {
    uint64_t blocks OWN_LINE;
};

static int open_blocks(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s.blocks", pool_path);
    return open(path, O_RDWR | O_CREAT, 0600);
}

static void grow(volatile struct pool *pool, int file) {
    uint64_t blocks = pool->blocks + 1;
    if (IS_REPAIRED && ftruncate(file, blocks * PAGE))
        exit(9);
    pool->blocks = blocks; // PRESENT
    if (!IS_REPAIRED && ftruncate(file, blocks * PAGE)) // MISSING
        exit(9);
    persist(&pool->blocks, 8);
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
