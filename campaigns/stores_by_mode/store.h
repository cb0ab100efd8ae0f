/* A store as driver.c uses it. Each source file beside this one is a store.
 *
 * What fails calls `refuse`: the driver ends, and says why on standard output. */
#ifndef STORE_H
#define STORE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Text of the library that gives its version. */
const char *store_version(void);

/* Opens the file as users of the store do, after a crash, too. `mode` is a name of modes.toml. */
void store_open(const char *path, const char *mode, int is_new);

/* Puts a record, or takes it away (`value` is null), and makes it durable as the mode's manual says. */
void store_put(const char *key, const char *value);

/* Looks a record up: a copy that the caller frees, or null. */
char *store_get(const char *key);

/* Calls `each` with all records, in any order. */
void store_each(void (*each)(const void *key, size_t key_bytes, const void *value, size_t value_bytes));

/* Asks the store itself whether its file is sound, where it has such a function. */
void store_check(void);

void store_close(void);

/* Ends the driver: exit code 3, in store_check 6. */
void refuse(const char *what, const char *why) __attribute__((noreturn));

/* A copy of bytes, with a 0 behind. */
char *text_of(const void *bytes, size_t count);

#ifdef __cplusplus
}
#endif

#endif
