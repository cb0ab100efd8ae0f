/* SQLite with its database in a mapped file: FILE KIND COUNT. sqlite3_deserialize has it read and write pages there.
 * insert: rows with random keys. update: of COUNT / 4 rows, which are inserted first, in one statement. */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES (64L << 20)

static sqlite3 *db;

static void must(int code, const char *what)
{
    if (code != SQLITE_OK && code != SQLITE_DONE && code != SQLITE_ROW) {
        fprintf(stderr, "%s: %s\n", what, sqlite3_errmsg(db));
        exit(1);
    }
}

static unsigned long long state = 88172645463325252ULL;

static long long drawn(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (long long)(state >> 1);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: %s FILE insert|update COUNT\n", argv[0]);
        return 2;
    }
    int is_update = !strcmp(argv[2], "update");
    long count = atol(argv[3]), known = is_update ? count / 4 : 0;
    int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || ftruncate(fd, BYTES)) {
        perror(argv[1]);
        return 1;
    }
    unsigned char *map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    must(sqlite3_open(":memory:", &db), "open");
    must(sqlite3_exec(db, "CREATE TABLE kv (k INTEGER PRIMARY KEY, v TEXT)", 0, 0, 0), "create");
    sqlite3_int64 bytes;
    unsigned char *empty = sqlite3_serialize(db, "main", &bytes, 0);
    memcpy(map, empty, bytes);
    sqlite3_free(empty);
    must(sqlite3_deserialize(db, "main", map, bytes, BYTES, 0), "deserialize");
    if (known) {
        char text[300];
        snprintf(text, sizeof text,
                 "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %ld) "
                 "INSERT INTO kv SELECT i, 'before ' || i FROM n",
                 known - 1);
        must(sqlite3_exec(db, text, 0, 0, 0), "fill");
    }
    sqlite3_stmt *statement;
    const char *sql = is_update ? "UPDATE kv SET v = ?2 WHERE k = ?1" : "INSERT OR REPLACE INTO kv VALUES (?1, ?2)";
    must(sqlite3_prepare_v2(db, sql, -1, &statement, 0), "prepare");
    for (long i = 0; i < count; i++) {
        char text[64];
        int length = snprintf(text, sizeof text, "row %ld with some text of its own", i);
        must(sqlite3_bind_int64(statement, 1, known ? drawn() % known : drawn()), "bind");
        must(sqlite3_bind_text(statement, 2, text, length, SQLITE_TRANSIENT), "bind");
        must(sqlite3_step(statement), "step");
        must(sqlite3_reset(statement), "reset");
    }
    must(sqlite3_finalize(statement), "finalize");
    must(sqlite3_close(db), "close");
    return 0;
}
