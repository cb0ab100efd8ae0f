/* SQLite with PRAGMA mmap_size: the database is mapped to be read, and written by pwrite. A statement that ends is durable. */
#include "store.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

static sqlite3 *db;

static void must(int code, const char *what)
{
    if (code != SQLITE_OK && code != SQLITE_DONE && code != SQLITE_ROW)
        refuse(what, sqlite3_errmsg(db));
}

static void ask(const char *sql)
{
    must(sqlite3_exec(db, sql, NULL, NULL, NULL), sql);
}

const char *store_version(void)
{
    return sqlite3_libversion();
}

void store_open(const char *path, const char *mode, int is_new)
{
    must(sqlite3_open(path, &db), "sqlite3_open");
    ask("PRAGMA mmap_size = 1048576");
    ask("PRAGMA synchronous = FULL");
    ask(strstr(mode, "wal") ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = DELETE");
    if (strstr(mode, "off"))
        ask("PRAGMA journal_mode = OFF");
    if (is_new)
        ask("CREATE TABLE records (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID");
}

static sqlite3_stmt *prepared(const char *sql, const char *key, const char *value)
{
    sqlite3_stmt *statement;
    must(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), sql);
    if (key)
        sqlite3_bind_text(statement, 1, key, -1, SQLITE_TRANSIENT);
    if (value)
        sqlite3_bind_text(statement, 2, value, -1, SQLITE_TRANSIENT);
    return statement;
}

void store_put(const char *key, const char *value)
{
    const char *put = "INSERT OR REPLACE INTO records VALUES (?, ?)";
    sqlite3_stmt *statement = prepared(value ? put : "DELETE FROM records WHERE key = ?", key, value);
    must(sqlite3_step(statement), "sqlite3_step");
    sqlite3_finalize(statement);
}

char *store_get(const char *key)
{
    sqlite3_stmt *statement = prepared("SELECT value FROM records WHERE key = ?", key, NULL);
    int code = sqlite3_step(statement);
    must(code, "SELECT");
    const void *found = code == SQLITE_ROW ? sqlite3_column_text(statement, 0) : NULL;
    char *copy = found ? text_of(found, sqlite3_column_bytes(statement, 0)) : NULL;
    sqlite3_finalize(statement);
    return copy;
}

void store_each(void (*each)(const void *, size_t, const void *, size_t))
{
    sqlite3_stmt *statement = prepared("SELECT key, value FROM records", NULL, NULL);
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        const void *key = sqlite3_column_text(statement, 0), *value = sqlite3_column_text(statement, 1);
        each(key, sqlite3_column_bytes(statement, 0), value, sqlite3_column_bytes(statement, 1));
    }
    must(code, "SELECT");
    sqlite3_finalize(statement);
}

void store_check(void)
{
    sqlite3_stmt *statement = prepared("PRAGMA integrity_check", NULL, NULL);
    must(sqlite3_step(statement), "PRAGMA integrity_check");
    const char *said = (const char *)sqlite3_column_text(statement, 0);
    if (!said || strcmp(said, "ok"))
        refuse("PRAGMA integrity_check", said ? said : "nothing");
    sqlite3_finalize(statement);
}

void store_close(void)
{
    must(sqlite3_close(db), "sqlite3_close");
}
