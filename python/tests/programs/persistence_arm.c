// The same for AArch64, with what QEMU 7.2 has of it.
#include "pm.h"

#define LINE(number) (&pm[8 * (number)])

APART void persist(volatile void *from, size_t bytes) {
    for (uintptr_t at = (uintptr_t)from & ~63ul; at < (uintptr_t)from + bytes; at += 64)
        __asm__ volatile("dc cvac, %0" : : "r"(at) : "memory");
    __asm__ volatile("dsb ish" : : : "memory");
}

static void kinds(void) {
    *LINE(0) = 1;
    persist(LINE(0), 100);
    *LINE(2) = 1;
    __asm__ volatile("dc civac, %0; dmb ishst; dsb ld" : : "r"(LINE(2)) : "memory");
}

static const struct program PROGRAMS[] = {{"kinds", kinds}, {NULL, NULL}};

int main(int count, char **arguments) {
    return run(count, arguments, PROGRAMS);
}
