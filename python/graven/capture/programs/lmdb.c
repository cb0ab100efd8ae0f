/* LMDB in map-write mode: FILE KIND COUNT. Keys of 8 bytes, values of 64; a transaction for each operation.
 * insert: random keys. update: of COUNT / 4 keys, which are inserted first, in one transaction. mixed: half of the
 * operations are lookups, a quarter updates, the rest inserts and deletions. */
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(call)                                                                   \
    do {                                                                             \
        int code = (call);                                                           \
        if (code) {                                                                  \
            fprintf(stderr, "%s: %s\n", #call, mdb_strerror(code));                  \
            exit(1);                                                                 \
        }                                                                            \
    } while (0)

static unsigned long long state = 88172645463325252ULL;

static unsigned long long drawn(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void put(MDB_txn *txn, MDB_dbi dbi, unsigned long long key, long number)
{
    char text[64] = {0};
    snprintf(text, sizeof text, "value %ld of %llx", number, key);
    MDB_val of_key = {sizeof key, &key}, value = {sizeof text, text};
    MUST(mdb_put(txn, dbi, &of_key, &value, 0));
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: %s FILE insert|update|mixed COUNT\n", argv[0]);
        return 2;
    }
    const char *kind = argv[2];
    long count = atol(argv[3]), known = strcmp(kind, "insert") ? count / 4 : 0;
    unsigned long long *keys = calloc(known + 1, sizeof *keys);
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    MUST(mdb_env_create(&env));
    MUST(mdb_env_set_mapsize(env, 64UL << 20));
    MUST(mdb_env_open(env, argv[1], MDB_WRITEMAP | MDB_NOSUBDIR, 0644));
    MUST(mdb_txn_begin(env, NULL, 0, &txn));
    MUST(mdb_dbi_open(txn, NULL, 0, &dbi));
    for (long i = 0; i < known; i++)
        put(txn, dbi, keys[i] = drawn(), i);
    MUST(mdb_txn_commit(txn));
    for (long i = 0; i < count; i++) {
        unsigned long long draw = drawn();
        int is_lookup = !strcmp(kind, "mixed") && draw % 2;
        MUST(mdb_txn_begin(env, NULL, is_lookup ? MDB_RDONLY : 0, &txn));
        if (!strcmp(kind, "insert")) {
            put(txn, dbi, draw, i);
        } else if (is_lookup) {
            MDB_val key = {sizeof *keys, &keys[draw / 2 % known]}, value;
            mdb_get(txn, dbi, &key, &value);
        } else if (!strcmp(kind, "update") || draw / 2 % 2) {
            put(txn, dbi, keys[draw / 4 % known], i);
        } else if (draw / 4 % 2) {
            put(txn, dbi, draw, i);
        } else {
            MDB_val key = {sizeof *keys, &keys[draw / 8 % known]};
            mdb_del(txn, dbi, &key, NULL);
        }
        MUST(mdb_txn_commit(txn));
    }
    mdb_env_close(env);
    return 0;
}
