/* Tokyo Cabinet's hash database. tchdbsync synchronises it with the device; HDBTSYNC does so with each transaction. */
#include "store.h"

#include <stdlib.h>
#include <string.h>
#include <tchdb.h>

static TCHDB *hdb;
static int syncs, has_transactions;

static void must(bool is_good, const char *what)
{
    if (!is_good)
        refuse(what, tchdberrmsg(tchdbecode(hdb)));
}

const char *store_version(void)
{
    return tcversion;
}

void store_open(const char *path, const char *mode, int is_new)
{
    int flags = HDBOWRITER | (is_new ? HDBOCREAT : 0);
    if (strstr(mode, "tsync"))
        flags |= HDBOTSYNC;
    has_transactions = strstr(mode, "transaction") != NULL;
    syncs = strstr(mode, "+sync") != NULL;
    hdb = tchdbnew();
    if (is_new)
        must(tchdbtune(hdb, 31, -1, -1, 0), "tchdbtune");
    must(tchdbopen(hdb, path, flags), "tchdbopen");
}

void store_put(const char *key, const char *value)
{
    if (has_transactions)
        must(tchdbtranbegin(hdb), "tchdbtranbegin");
    if (value)
        must(tchdbput2(hdb, key, value), "tchdbput2");
    else if (!tchdbout2(hdb, key) && tchdbecode(hdb) != TCENOREC)
        must(false, "tchdbout2");
    if (has_transactions)
        must(tchdbtrancommit(hdb), "tchdbtrancommit");
    if (syncs)
        must(tchdbsync(hdb), "tchdbsync");
}

char *store_get(const char *key)
{
    int size;
    char *found = tchdbget(hdb, key, (int)strlen(key), &size);
    if (!found && tchdbecode(hdb) != TCENOREC)
        must(false, "tchdbget");
    char *copy = found ? text_of(found, size) : NULL;
    free(found);
    return copy;
}

void store_each(void (*each)(const void *, size_t, const void *, size_t))
{
    must(tchdbiterinit(hdb), "tchdbiterinit");
    int key_bytes, value_bytes;
    for (char *key; (key = tchdbiternext(hdb, &key_bytes));) {
        char *value = tchdbget(hdb, key, key_bytes, &value_bytes);
        must(value != NULL, "tchdbget of a key that is listed");
        each(key, key_bytes, value, value_bytes);
        free(value);
        free(key);
    }
    if (tchdbecode(hdb) != TCENOREC)
        must(false, "tchdbiternext");
}

void store_check(void)
{
    /* Tokyo Cabinet has no such function. */
}

void store_close(void)
{
    must(tchdbclose(hdb), "tchdbclose");
    tchdbdel(hdb);
}
