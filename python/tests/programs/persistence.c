// Programs that do something for the persistence of what they store: by instructions of all kinds, and by system calls.
#include "pm.h"

#include <emmintrin.h>
#include <sys/socket.h>

#define LINE(number) (&pm[8 * (number)])

static inline void clwb(volatile void *at) {
    __asm__ volatile("clwb %0" : "+m"(*(volatile char *)at));
}

// The loop's address is in a register that it changes; the compiler may keep it wherever it likes.
APART void persist(volatile void *from, size_t bytes) {
    for (uintptr_t at = (uintptr_t)from & ~63ul; at < (uintptr_t)from + bytes; at += 64)
        clwb((void *)at);
    _mm_sfence();
}

APART void put(int line) {
    *LINE(line) = 1;
    persist(LINE(line), 8);
}

static void kinds(void) {
    *LINE(0) = 1;
    clwb(LINE(0));
    _mm_sfence();
    *LINE(1) = 1;
    __asm__ volatile("clflushopt %0; mfence" : "+m"(*LINE(1)));
    *LINE(2) = 1;
    __asm__ volatile("clflush %0" : "+m"(*LINE(2)));
    __atomic_fetch_add(LINE(3), 1, __ATOMIC_SEQ_CST);
    // The second locked instruction has nothing to order.
    uint64_t outside = 0;
    __atomic_fetch_add(&outside, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&outside, 1, __ATOMIC_SEQ_CST);
    _mm_stream_si64((long long *)LINE(4), 1);
    _mm_sfence();
    // A vector, a word over an edge, a string.
    __asm__ volatile("pcmpeqb %%xmm0, %%xmm0; movups %%xmm0, %0" : "=m"(*(__int128 *)LINE(5))::"xmm0");
    *(uint64_t *)((char *)LINE(6) + 4) = -1;
    void *to = (void *)LINE(7);
    size_t bytes = 24;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(1) : "memory");
}

// Addresses of flushes from registers, memory, arithmetic within the block, and a stack that is not mapped memory.
static void operands(void) {
    *LINE(0) = 1;
    volatile uint64_t *kept = LINE(3);
    volatile uint64_t *volatile in_memory = kept;
    __asm__ volatile("mov %0, %%rax; clwb (%%rax); add $64, %%rax; clwb (%%rax); lea 64(%%rax), %%rcx; clflushopt 8(%%rcx)"
                     :
                     : "m"(in_memory)
                     : "rax", "rcx", "memory");
    __asm__ volatile("push %0; pop %%rdx; and $-64, %%rdx; clflush 128(%%rdx,%1,8)"
                     :
                     : "r"(LINE(4) + 3), "r"(8L)
                     : "rdx", "memory");
    clwb(&in_memory);
    // The product is none of what the plugin follows.
    __asm__ volatile("mov $1, %%eax; imul %0, %%rax; clwb (%%rax)" : : "r"(LINE(9)) : "rax", "memory");
    persist(LINE(10), 200);
}

static void stacks(void) {
    put(1);
    for (int i = 2; i < 4; i++)
        put(i);
}

static jmp_buf away;

APART void jumps(void) {
    *LINE(1) = 1;
    longjmp(away, 1);
}

APART void left(void) {
    if (!setjmp(away))
        jumps();
    put(2);
}

static void unwound(void) {
    left();
    put(3);
}

static void calls(void) {
    char name[400], other[400];
    snprintf(name, sizeof name, "%s.new", pool_path);
    snprintf(other, sizeof other, "%s.old", pool_path);
    *LINE(0) = 1;
    msync((void *)pm, 100, MS_SYNC);
    msync((char *)pm + 8, 100, MS_ASYNC);
    check(pwrite(pool, "abc", 3, 5000) == 3, "pwrite");
    fsync(pool);
    fdatasync(pool);
    sync_file_range(pool, 4096, 4096, SYNC_FILE_RANGE_WRITE);
    int durable = open(pool_path, O_RDWR | O_DSYNC);
    check(pwrite(durable, "abc", 3, 6000) == 3, "pwrite");
    int file = open(name, O_RDWR | O_CREAT, 0600);
    check(write(file, "abc", 3) == 3, "write");
    fsync(file);
    rename(name, other);
    unlink(other);
    int pair[2];
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && write(pair[0], "told", 4) == 4, "socket");
    check(ftruncate(pool, 2 * POOL_BYTES) == 0 && posix_fallocate(pool, 0, 2 * POOL_BYTES) == 0, "grow");
    munmap((void *)&pm[512], 4096);
}

static void aborts(void) {
    put(1);
    put(2);
    abort();
}

static void *reads(void *unused) {
    (void)unused;
    *LINE(9) = *LINE(1);
    return NULL;
}

static void threads(void) {
    put(1);
    run_threads(1, reads);
    put(2);
}

static const struct program PROGRAMS[] = {
    {"kinds", kinds}, {"operands", operands}, {"stacks", stacks},   {"unwound", unwound},
    {"calls", calls}, {"aborts", aborts},     {"threads", threads}, {NULL, NULL},
};

int main(int count, char **arguments) {
    return run(count, arguments, PROGRAMS);
}
