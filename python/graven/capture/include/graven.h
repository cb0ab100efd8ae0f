/* Markers for `graven capture`: what a program says of itself to the one who traces it. C and C++; no library is needed.
 *
 *     cc -I"$(graven capture --include-path)" -o program program.c
 *
 * A marker is a jump to the next instruction and an instruction that does nothing with a number that nobody else has: ten bytes
 * on x86-64, eight on AArch64. Under `graven capture` it is an event; otherwise, and on other processors, it does nothing. The
 * compiler moves no access to memory over one. */
#ifndef GRAVEN_H
#define GRAVEN_H

/* The jump has a block of QEMU's begin behind it: only then are the operands, in the registers of a function's first two arguments,
 * where the plugin looks for them. */
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
/* nopl 0x677276NN(%rax,%rax), in bytes so that any assembler's dialect has it. */
#define GRAVEN_MARK_(number, first, second)                                                           \
    __asm__ __volatile__(".byte 0xeb, 0x00, 0x0f, 0x1f, 0x84, 0x00, " #number ", 0x76, 0x72, 0x67" \
                         :                                                                            \
                         : "D"(first), "S"(second)                                                    \
                         : "memory")
#elif defined(__aarch64__) && defined(__AARCH64EL__) && (defined(__GNUC__) || defined(__clang__))
/* movn xzr, #0x67NN, lsl #48: what it gives goes nowhere. */
#define GRAVEN_MARK_(number, first, second)                                            \
    do {                                                                               \
        register unsigned long first_ __asm__("x0") = (unsigned long)(first);          \
        register unsigned long second_ __asm__("x1") = (unsigned long)(second);        \
        __asm__ __volatile__(".inst 0x14000001, 0x92ece01f | (" #number " << 5)"       \
                             :                                                         \
                             : "r"(first_), "r"(second_)                               \
                             : "memory");                                              \
    } while (0)
#else
#define GRAVEN_MARK_(number, first, second) ((void)(first), (void)(second))
#endif

/* A transaction of this thread begins; within another it is part of that. */
static __inline__ void graven_tx_begin(void) {
    GRAVEN_MARK_(0, 0L, 0L);
}

/* It is over, and what it stored is to be durable, all of it. Without one that is open it says nothing. */
static __inline__ void graven_tx_commit(void) {
    GRAVEN_MARK_(1, 0L, 0L);
}

/* It is over, and the program has undone what it stored, by stores. */
static __inline__ void graven_tx_abort(void) {
    GRAVEN_MARK_(2, 0L, 0L);
}

/* The trace begins here, if it has not: what was stored before is there when it does. */
static __inline__ void graven_region_begin(void) {
    GRAVEN_MARK_(3, 0L, 0L);
}

/* The trace ends here, if it has begun. */
static __inline__ void graven_region_end(void) {
    GRAVEN_MARK_(4, 0L, 0L);
}

/* So many bytes are persistent memory from now on, as they are, and whatever is mapped there later. */
static __inline__ void graven_pm(const void *address, unsigned long bytes) {
    GRAVEN_MARK_(5, address, bytes);
}

/* They are so no longer: before memory is freed that was made persistent so. */
static __inline__ void graven_no_pm(const void *address, unsigned long bytes) {
    GRAVEN_MARK_(6, address, bytes);
}

#endif
