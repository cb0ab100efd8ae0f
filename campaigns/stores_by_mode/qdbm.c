/* QDBM's Depot. dpsync synchronises it with the device. */
#include "store.h"

#include <depot.h>
#include <stdlib.h>
#include <string.h>

static DEPOT *depot;
static int syncs;

static void must(int is_good, const char *what)
{
    if (!is_good)
        refuse(what, dperrmsg(dpecode));
}

const char *store_version(void)
{
    return dpversion;
}

void store_open(const char *path, const char *mode, int is_new)
{
    syncs = strstr(mode, "+sync") != NULL;
    depot = dpopen(path, DP_OWRITER | (is_new ? DP_OCREAT : 0), 31);
    must(depot != NULL, "dpopen");
}

void store_put(const char *key, const char *value)
{
    if (value)
        must(dpput(depot, key, -1, value, -1, DP_DOVER), "dpput");
    else if (!dpout(depot, key, -1) && dpecode != DP_ENOITEM)
        must(0, "dpout");
    if (syncs)
        must(dpsync(depot), "dpsync");
}

char *store_get(const char *key)
{
    int size;
    char *found = dpget(depot, key, -1, 0, -1, &size);
    if (!found && dpecode != DP_ENOITEM)
        must(0, "dpget");
    char *copy = found ? text_of(found, size) : NULL;
    free(found);
    return copy;
}

void store_each(void (*each)(const void *, size_t, const void *, size_t))
{
    must(dpiterinit(depot), "dpiterinit");
    int key_bytes, value_bytes;
    for (char *key; (key = dpiternext(depot, &key_bytes));) {
        char *value = dpget(depot, key, key_bytes, 0, -1, &value_bytes);
        must(value != NULL, "dpget of a key that is listed");
        each(key, key_bytes, value, value_bytes);
        free(value);
        free(key);
    }
    if (dpecode != DP_ENOITEM)
        must(0, "dpiternext");
}

void store_check(void)
{
    /* dpfatalerror tells of errors that the functions above have met. */
    must(!dpfatalerror(depot), "dpfatalerror");
}

void store_close(void)
{
    must(dpclose(depot), "dpclose");
}
