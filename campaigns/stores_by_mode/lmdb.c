/* LMDB. Without MDB_NOSYNC, MDB_MAPASYNC and MDB_NOMETASYNC a commit is durable; otherwise mdb_env_sync makes it so. */
#include "store.h"

#include <lmdb.h>
#include <stdlib.h>
#include <string.h>

#define MUST(call)                                                                   \
    do {                                                                             \
        int code = (call);                                                           \
        if (code)                                                                    \
            refuse(#call, mdb_strerror(code));                                       \
    } while (0)

static MDB_env *env;
static MDB_dbi dbi;
static int syncs;

static const struct {
    const char *mode;
    unsigned flags;
    int syncs;
} modes[] = {
    {"default", 0, 0},
    {"nometasync", MDB_NOMETASYNC, 0},
    {"nometasync+sync", MDB_NOMETASYNC, 1},
    {"nosync", MDB_NOSYNC, 0},
    {"nosync+sync", MDB_NOSYNC, 1},
    {"writemap", MDB_WRITEMAP, 0},
    {"writemap-nometasync", MDB_WRITEMAP | MDB_NOMETASYNC, 0},
    {"writemap-mapasync", MDB_WRITEMAP | MDB_MAPASYNC, 0},
    {"writemap-mapasync+sync", MDB_WRITEMAP | MDB_MAPASYNC, 1},
    {"writemap-nosync", MDB_WRITEMAP | MDB_NOSYNC, 0},
    {"writemap-nosync+sync", MDB_WRITEMAP | MDB_NOSYNC, 1},
};

const char *store_version(void)
{
    return mdb_version(NULL, NULL, NULL);
}

void store_open(const char *path, const char *mode, int is_new)
{
    (void)is_new;
    MDB_txn *txn;
    size_t at = 0;
    while (strcmp(modes[at].mode, mode))
        at++;
    syncs = modes[at].syncs;
    MUST(mdb_env_create(&env));
    MUST(mdb_env_set_mapsize(env, 1UL << 20));
    MUST(mdb_env_open(env, path, modes[at].flags | MDB_NOSUBDIR, 0644));
    MUST(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
    MUST(mdb_dbi_open(txn, NULL, 0, &dbi));
    MUST(mdb_txn_commit(txn));
}

static MDB_val text(const char *of)
{
    MDB_val value = {strlen(of), (void *)of};
    return value;
}

void store_put(const char *key, const char *value)
{
    MDB_txn *txn;
    MDB_val of_key = text(key), of_value = text(value ? value : "");
    MUST(mdb_txn_begin(env, NULL, 0, &txn));
    if (value) {
        MUST(mdb_put(txn, dbi, &of_key, &of_value, 0));
    } else {
        int code = mdb_del(txn, dbi, &of_key, NULL);
        if (code != MDB_NOTFOUND)
            MUST(code);
    }
    MUST(mdb_txn_commit(txn));
    if (syncs)
        MUST(mdb_env_sync(env, 1));
}

char *store_get(const char *key)
{
    MDB_txn *txn;
    MDB_val of_key = text(key), value;
    MUST(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
    int code = mdb_get(txn, dbi, &of_key, &value);
    char *copy = code ? NULL : text_of(value.mv_data, value.mv_size);
    mdb_txn_abort(txn);
    if (code != MDB_NOTFOUND)
        MUST(code);
    return copy;
}

void store_each(void (*each)(const void *, size_t, const void *, size_t))
{
    MDB_txn *txn;
    MDB_cursor *cursor;
    MDB_val key, value;
    int code;
    MUST(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
    MUST(mdb_cursor_open(txn, dbi, &cursor));
    while (!(code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)))
        each(key.mv_data, key.mv_size, value.mv_data, value.mv_size);
    if (code != MDB_NOTFOUND)
        MUST(code);
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
}

void store_check(void)
{
    /* LMDB has no such function. */
}

void store_close(void)
{
    mdb_env_close(env);
}
