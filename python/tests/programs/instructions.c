// Instructions that reach memory in ways of their own. Each program is one transaction.
#include "instructions.h"

#include <immintrin.h>

static void sse(void) {
    for (int i = 0; i < 10; i++)
        _mm_store_si128((__m128i *)(pm + 2 * i), _mm_set_epi64x(i + 1, ~i));
    _mm_storeu_si128((__m128i *)((char *)pm + 4096 - 7), _mm_set1_epi8(5));
    pm[600] = _mm_cvtsi128_si64(_mm_loadu_si128((__m128i *)((char *)pm + 4096 - 9)));
}

__attribute__((target("avx2"))) static void avx(void) {
    for (int i = 0; i < 10; i++)
        _mm256_store_si256((__m256i *)(pm + 4 * i), _mm256_set_epi64x(i + 1, 2, ~i, 4));
    _mm256_storeu_si256((__m256i *)((char *)pm + 4096 - 13), _mm256_set1_epi8(7));
    __m256i back = _mm256_loadu_si256((__m256i *)((char *)pm + 4096 - 17));
    pm[600] = _mm256_extract_epi64(back, 1);
}

// What is not selected must not be stored: the last lanes are beyond the pool.
__attribute__((target("avx2"))) static void masked(void) {
    char *end = (char *)pm + POOL_BYTES;
    _mm256_maskstore_epi32((int *)pm, _mm256_set_epi32(0, -1, 0, -1, 0, 0, -1, 0),
                           _mm256_set1_epi32(0x01020304));
    _mm256_maskstore_epi64((long long *)(end - 16), _mm256_set_epi64x(0, 0, -1, -1),
                           _mm256_set1_epi64x(77));
    __m256i back = _mm256_maskload_epi64((long long *)(end - 32), _mm256_set_epi64x(0, -1, 0, 0));
    pm[600] = _mm256_extract_epi64(back, 2);
    _mm_maskmoveu_si128(_mm_set1_epi8(9), _mm_set_epi64x(0x80, 0x8000008000000080), (char *)&pm[64]);
}

__attribute__((target("avx2"))) static void gathered(void) {
    for (int i = 0; i < 64; i++)
        pm[i] = i * 3;
    __m256i found = _mm256_i64gather_epi64((long long *)pm, _mm256_set_epi64x(60, 3, 17, 5), 8);
    _mm256_storeu_si256((__m256i *)(pm + 100), found);
}

static void x87(void) {
    volatile long double *numbers = (volatile long double *)((char *)pm + 4096 - 24);
    numbers[0] = 1.25L;
    numbers[1] = numbers[0] * 3;
    numbers[2] += numbers[1];
    *(volatile float *)(pm + 20) = (float)numbers[1];
    *(volatile double *)((char *)pm + 8192 - 4) = (double)numbers[2];
}

static void strings(void) {
    void *to = (char *)pm + 5, *from = (char *)pm + 3;
    size_t count = 5000;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(0x5a) : "memory");
    to = (char *)pm + 8000, count = 3000;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count)::"memory");
    to = (char *)pm + 16384, count = 100;
    __asm__ volatile("rep stosq" : "+D"(to), "+c"(count) : "a"(-2l) : "memory");
    // Backwards, over itself.
    to = (char *)pm + 16384 + 799, from = (char *)pm + 16384 + 790, count = 300;
    __asm__ volatile("std; rep movsb; cld" : "+D"(to), "+S"(from), "+c"(count)::"memory");
    __asm__ volatile("push %1; pop %0" : "=m"(pm[3000]) : "m"(pm[1000]));
}

static void streaming(void) {
    for (int i = 0; i < 8; i++)
        _mm_stream_si64((long long *)pm + i, i);
    _mm_stream_si32((int *)(pm + 8), 8);
    for (int i = 0; i < 4; i++)
        _mm_stream_si128((__m128i *)(pm + 16 + 2 * i), _mm_set1_epi64x(i));
    _mm_stream_pd((double *)(pm + 32), _mm_set1_pd(1.5));
    _mm_sfence();
}

__attribute__((target("avx"))) static void streaming_avx(void) {
    for (int i = 0; i < 4; i++)
        _mm256_stream_si256((__m256i *)(pm + 4 * i), _mm256_set1_epi64x(i));
    _mm_sfence();
}

static void atomics(void) {
    volatile uint64_t *p = pm;
    __atomic_fetch_add(p, 5, __ATOMIC_SEQ_CST);
    __atomic_fetch_sub(p, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_or(p + 1, 0xf0, __ATOMIC_SEQ_CST);
    __atomic_fetch_xor(p + 1, 0xff, __ATOMIC_SEQ_CST);
    __atomic_exchange_n(p + 2, 7, __ATOMIC_SEQ_CST);
    uint64_t expected = 7;
    check(__atomic_compare_exchange_n(p + 2, &expected, 8, 0, 5, 5), "cmpxchg");
    check(!__atomic_compare_exchange_n(p + 2, &expected, 9, 0, 5, 5), "cmpxchg that fails");
    __asm__ volatile("lock incb %0; lock btsl $3, %1; lock negw %2"
                     : "+m"(*(char *)(p + 3)), "+m"(*(int *)(p + 4)), "+m"(*(short *)(p + 5)));
    // 16 bytes: once as it expects, once not.
    uint64_t low = 0, high = 0;
    for (int i = 0; i < 2; i++)
        __asm__ volatile("lock cmpxchg16b %0"
                         : "+m"(*(__int128 *)(p + 6)), "+a"(low), "+d"(high)
                         : "b"(0x1111ul), "c"(0x2222ul)
                         : "memory", "cc");
    check(low == 0x1111 && high == 0x2222, "cmpxchg16b");
    // Over the end of a line, and of a page.
    __atomic_fetch_add((uint64_t *)((char *)p + 4096 - 3), 0x0102030405060708, __ATOMIC_SEQ_CST);
}

static void flushes(void) {
    for (int i = 0; i < 5; i++) {
        pm[8 * i] = 1;
        __asm__ volatile("clwb %0" : "+m"(pm[8 * i]));
        _mm_sfence();
    }
    __asm__ volatile("clflushopt %0; clflush %0; mfence" : "+m"(pm[0]));
}

static const struct program PROGRAMS[] = {
    {"sse", sse},           {"avx", avx},
    {"masked", masked},     {"gathered", gathered},
    {"fields", fields},     {"unaligned", unaligned},
    {"x87", x87},           {"strings", strings},
    {"streaming", streaming}, {"streaming_avx", streaming_avx},
    {"atomics", atomics},   {"structures", structures},
    {"copies", copies},     {"flushes", flushes},
    {NULL, NULL},
};

int main(int count, char **arguments) {
    return run_one(count, arguments, PROGRAMS);
}
