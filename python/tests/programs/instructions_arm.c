// Instructions of AArch64 that reach memory in ways of their own. Each program is one transaction.
#include "instructions.h"

#include <arm_neon.h>

static void neon(void) {
    for (int i = 0; i < 10; i++)
        vst1q_u64((uint64_t *)pm + 2 * i, (uint64x2_t){i + 1, ~i});
    vst1q_u8((uint8_t *)pm + 4096 - 7, vdupq_n_u8(5));
    pm[600] = vgetq_lane_u64(vreinterpretq_u64_u8(vld1q_u8((uint8_t *)pm + 4096 - 9)), 0);
}

// Elements of several vectors in turn, all of them or one.
static void interleaved(void) {
    uint8x16x4_t four = {{vdupq_n_u8(1), vdupq_n_u8(2), vdupq_n_u8(3), vdupq_n_u8(4)}};
    vst4q_u8((uint8_t *)pm + 3, four);
    vst2q_lane_u16((uint16_t *)(pm + 20), (uint16x8x2_t){{vdupq_n_u16(7), vdupq_n_u16(8)}}, 3);
    uint32x4x3_t three = vld3q_u32((uint32_t *)pm);
    vst3q_u32((uint32_t *)(pm + 30), three);
    vst1_u64((uint64_t *)pm + 40, vld1_dup_u64((uint64_t *)pm));
    uint8x16x4_t all = vld1q_u8_x4((uint8_t *)pm + 1);
    vst1q_u8_x4((uint8_t *)pm + 4096 - 30, all);
}

// Pairs, of registers of all sizes, with the address changed before and behind.
static void pairs(void) {
    volatile char *at = (volatile char *)pm;
    __asm__ volatile("stp %1, %2, [%0], #16; stp %w1, %w2, [%0, #8]!; ldp x4, x5, [%0, #-16]; "
                     "stp x5, x4, [%0, #40]; stp xzr, x4, [%0, #56]; ldpsw x4, x5, [%0]; "
                     "stp x4, x5, [%0, #80]; ldp q2, q3, [%0]; stp q3, q2, [%0, #96]; "
                     "stp d2, d3, [%0, #128]; stp s2, s3, [%0, #144]; str b2, [%0, #1000]; "
                     "str h3, [%0, #1002]"
                     : "+r"(at)
                     : "r"(0x1111222233334444), "r"(0x5555666677778888)
                     : "x4", "x5", "v2", "v3", "memory");
}

static void streaming(void) {
    for (int i = 0; i < 4; i++)
        __asm__ volatile("stnp %1, %2, [%0]" ::"r"(pm + 2 * i), "r"(i), "r"(~i) : "memory");
    __asm__ volatile("stnp w1, w2, [%0]; stnp q0, q1, [%0, #64]; stnp d0, d1, [%0, #128]; "
                     "ldnp x3, x4, [%0]; stp x3, x4, [%0, #160]; dsb st"
                     ::"r"(pm + 8)
                     : "x3", "x4", "memory");
}

// By one instruction where the processor has one, by exclusive loads and stores, or by a library that chooses.
static void atomics(void) {
    volatile uint64_t *p = pm;
    __atomic_fetch_add(p, 5, __ATOMIC_SEQ_CST);
    __atomic_fetch_sub(p, 1, __ATOMIC_RELAXED);
    __atomic_fetch_or(p + 1, 0xf0, __ATOMIC_ACQUIRE);
    __atomic_fetch_xor(p + 1, 0xff, __ATOMIC_RELEASE);
    __atomic_exchange_n(p + 2, 7, __ATOMIC_SEQ_CST);
    uint64_t expected = 7;
    check(__atomic_compare_exchange_n(p + 2, &expected, 8, 0, 5, 5), "compare and swap");
    check(!__atomic_compare_exchange_n(p + 2, &expected, 9, 0, 5, 5), "one that fails");
    __atomic_fetch_add((char *)(p + 3) + 5, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_and((short *)(p + 4) + 1, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_nand((int *)(p + 5), 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(p + 6, __atomic_load_n(p, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
    check(p[0] == 4 && p[1] == 0x0f && p[2] == 8 && p[3] == 1ull << 40, "atomics");
}

// An exclusive store that nothing came before stores nothing, and so does one whose word is another now.
static void exclusives(void) {
    uint64_t failed[4], old;
    pm[0] = 3;
    __asm__ volatile("clrex; stxr %w0, %1, [%2]" : "=&r"(failed[0]) : "r"(8ul), "r"(pm) : "memory");
    __asm__ volatile("ldxr %1, [%3]; stxr %w0, %2, [%3]"
                     : "=&r"(failed[1]), "=&r"(old)
                     : "r"(9ul), "r"(pm)
                     : "memory");
    __asm__ volatile("ldxp x4, x5, [%2]; stxp %w0, %1, x4, [%2]"
                     : "=&r"(failed[2])
                     : "r"(11ul), "r"(pm + 2)
                     : "x4", "x5", "memory");
    __asm__ volatile("ldxp w4, w5, [%2]; stlxp %w0, %w1, w4, [%2]"
                     : "=&r"(failed[3])
                     : "r"(0x1234567812345678ul), "r"(pm + 4)
                     : "x4", "x5", "memory");
    check(failed[0] == 1 && !failed[1] && !failed[2] && !failed[3] && old == 3, "exclusives");
    check(pm[0] == 9 && pm[2] == 11 && pm[3] == 0 && pm[4] == 0x12345678, "exclusives");
}

static uint64_t zeroed_bytes(void) {
    uint64_t it;
    __asm__("mrs %0, dczid_el0" : "=r"(it));
    check(!(it & 16), "dc zva");
    return 4 << (it & 15);
}

// By a library.
static void zeros(void) {
    memset((char *)pm, 0x77, 200000);
    memset((char *)pm + 5, 0, 10000);
    memset((char *)pm + 20000 - 9, 0, 70000);
}

// By the instruction with which it does that; the register is another behind it, or what follows loads what is zero.
static void blocks(void) {
    uint64_t bytes = zeroed_bytes(), found;
    check(bytes == 512, "blocks of the processor that QEMU is asked for");
    for (uint64_t i = 0; i < 10; i += 2)
        __asm__ volatile("mov x1, %0; dc zva, x1; mov x1, #0" ::"r"((char *)pm + (i + 1) * bytes - 1)
                         : "x1", "memory");
    __asm__ volatile("mov x1, %1; dc zva, x1; ldr %0, [x1], #-8; ldr x1, [x1]"
                     : "=&r"(found)
                     : "r"((char *)pm + 12 * bytes)
                     : "x1", "memory");
    check(!found, "a block");
}

// By the last instruction of a page of code, behind which QEMU begins another block.
APART void zero_at_the_end(void *at) {
    __asm__ volatile("mov x1, %0; b 1f; .balign 4096; .rept 1022; nop; .endr;"
                     "1: nop; dc zva, x1; mov x1, #0" ::"r"(at)
                     : "x1", "memory");
}

static sigjmp_buf back;

// The block may not be stored to: what the instruction would have done is not done, or is when it is executed again.
static void refused(int number) {
    static int times;
    if (times++ == 0)
        siglongjmp(back, number);
    mprotect((void *)pm, POOL_BYTES, PROT_READ | PROT_WRITE);
}

static void zeros_at_the_end_of_a_page(void) {
    uint64_t bytes = zeroed_bytes();
    memset((char *)pm, 0x77, 16 * bytes);
    for (int i = 0; i < 5; i++)
        zero_at_the_end((char *)pm + (2 * i + 1) * bytes + 3);
    signal(SIGSEGV, refused);
    mprotect((void *)pm, POOL_BYTES, PROT_READ);
    if (!sigsetjmp(back, 1))
        zero_at_the_end((char *)pm + 12 * bytes);
    zero_at_the_end((char *)pm + 14 * bytes);
    for (int i = 0; i < 16; i++)
        check((pm[i * bytes / 8] == 0) == (i == 14 || (i < 10 && i % 2)), "blocks");
}

static void flushes(void) {
    for (int i = 0; i < 5; i++) {
        pm[8 * i] = 1;
        __asm__ volatile("dc cvac, %0; dsb ish" ::"r"(pm + 8 * i) : "memory");
    }
    __asm__ volatile("dc civac, %0; dc cvac, %0; dmb ishst; isb" ::"r"(pm) : "memory");
}

// An instruction that this processor does not have.
static void scalable(void) {
    pm[0] = 1;
    __asm__ volatile(".inst 0x2518e3e0");
}

static const struct program PROGRAMS[] = {
    {"neon", neon},
    {"interleaved", interleaved},
    {"fields", fields},
    {"unaligned", unaligned},
    {"pairs", pairs},
    {"streaming", streaming},
    {"atomics", atomics},
    {"exclusives", exclusives},
    {"structures", structures},
    {"copies", copies},
    {"zeros", zeros},
    {"blocks", blocks},
    {"zeros_at_the_end_of_a_page", zeros_at_the_end_of_a_page},
    {"flushes", flushes},
    {"scalable", scalable},
    {NULL, NULL},
};

int main(int count, char **arguments) {
    return run_one(count, arguments, PROGRAMS);
}
