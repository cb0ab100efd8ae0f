/* What the examples of PMDK have in common and Debian's package does not have. */
#pragma once
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>
#define CREATE_MODE_RW (S_IWUSR | S_IRUSR)
#ifndef MIN
#define MIN(a, b) (((a) < (b)) ? (a) : (b))
#endif
static inline int file_exists(const char *file) { return access(file, F_OK); }
static inline int find_last_set_64(uint64_t word) { return 63 - __builtin_clzll(word); }
