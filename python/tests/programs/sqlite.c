// SQLite's transactions, of one statement and of several. The database is in the pool, where sqlite3_deserialize has it.
#include "pm.h"

#include <sqlite3.h>

static sqlite3 *db;

static void must(int code) {
    if (code != SQLITE_OK) {
        fprintf(stderr, "%s\n", sqlite3_errmsg(db));
        exit(9);
    }
}

static void run_statement(const char *text) {
    must(sqlite3_exec(db, text, NULL, NULL, NULL));
}

static void open_database(void) {
    sqlite3_int64 bytes;
    must(sqlite3_open(":memory:", &db));
    run_statement("CREATE TABLE kv (k INTEGER PRIMARY KEY, v TEXT)");
    unsigned char *empty = sqlite3_serialize(db, "main", &bytes, 0);
    memcpy((void *)pm, empty, bytes);
    must(sqlite3_deserialize(db, "main", (unsigned char *)pm, bytes, POOL_BYTES, 0));
    run_statement("INSERT INTO kv (v) VALUES ('the first')");
}

static void alone(void) {
    open_database();
    for (int i = 0; i < 10; i++)
        run_statement("INSERT INTO kv (v) VALUES ('another')");
}

static void several(void) {
    open_database();
    run_statement("BEGIN");
    for (int i = 0; i < 10; i++)
        run_statement("INSERT INTO kv (v) VALUES ('another')");
    run_statement("COMMIT");
}

static void many_pages(const char *may_spill) {
    open_database();
    run_statement("PRAGMA cache_size = 10");
    run_statement(may_spill);
    run_statement("BEGIN");
    for (int i = 0; i < 20; i++)
        run_statement("INSERT INTO kv (v) VALUES (zeroblob(6000))");
    run_statement("COMMIT");
}

// More pages than the cache has: some are written before the transaction commits.
static void spilled(void) {
    many_pages("PRAGMA cache_spill = on");
}

static void unspilled(void) {
    many_pages("PRAGMA cache_spill = off");
}

// A statement that is reset before it is done.
static void reset(void) {
    sqlite3_stmt *statement;
    open_database();
    must(sqlite3_prepare_v2(db, "INSERT INTO kv (v) VALUES ('x') RETURNING k", -1, &statement, NULL));
    sqlite3_step(statement);
    sqlite3_reset(statement);
    sqlite3_finalize(statement);
    run_statement("SELECT 1");
}

static const struct program PROGRAMS[] = {
    {"alone", alone}, {"several", several}, {"spilled", spilled},
    {"unspilled", unspilled}, {"reset", reset}, {NULL, NULL},
};

int main(int count, char **arguments) {
    return run(count, arguments, PROGRAMS);
}
