/* TDB. A transaction is durable when it is committed; a store outside one has no function that makes it so. */
#include "store.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <tdb.h>

static TDB_CONTEXT *tdb;
static int has_transactions;

static void must(int code, const char *what)
{
    if (code)
        refuse(what, tdb ? tdb_errorstr(tdb) : "it failed");
}

const char *store_version(void)
{
    return "";
}

void store_open(const char *path, const char *mode, int is_new)
{
    int flags = strstr(mode, "nosync") ? TDB_NOSYNC : TDB_DEFAULT;
    has_transactions = strstr(mode, "transaction") != NULL;
    tdb = tdb_open(path, 7, flags, O_RDWR | (is_new ? O_CREAT : 0), 0644);
    if (!tdb)
        refuse("tdb_open", "it failed");
}

static TDB_DATA text(const char *of)
{
    TDB_DATA data = {(unsigned char *)of, strlen(of)};
    return data;
}

void store_put(const char *key, const char *value)
{
    if (has_transactions)
        must(tdb_transaction_start(tdb), "tdb_transaction_start");
    if (value)
        must(tdb_store(tdb, text(key), text(value), TDB_REPLACE), "tdb_store");
    else if (tdb_exists(tdb, text(key)))
        must(tdb_delete(tdb, text(key)), "tdb_delete");
    if (has_transactions)
        must(tdb_transaction_commit(tdb), "tdb_transaction_commit");
}

char *store_get(const char *key)
{
    TDB_DATA found = tdb_fetch(tdb, text(key));
    if (!found.dptr && tdb_error(tdb) != TDB_SUCCESS && tdb_error(tdb) != TDB_ERR_NOEXIST)
        refuse("tdb_fetch", tdb_errorstr(tdb));
    char *copy = found.dptr ? text_of(found.dptr, found.dsize) : NULL;
    free(found.dptr);
    return copy;
}

static int one(TDB_CONTEXT *of, TDB_DATA key, TDB_DATA value, void *each)
{
    (void)of;
    (*(void (**)(const void *, size_t, const void *, size_t))each)(key.dptr, key.dsize, value.dptr, value.dsize);
    return 0;
}

void store_each(void (*each)(const void *, size_t, const void *, size_t))
{
    must(tdb_traverse_read(tdb, one, (void *)&each) < 0, "tdb_traverse_read");
}

void store_check(void)
{
    must(tdb_check(tdb, NULL, NULL), "tdb_check");
}

void store_close(void)
{
    must(tdb_close(tdb), "tdb_close");
    tdb = NULL;
}
