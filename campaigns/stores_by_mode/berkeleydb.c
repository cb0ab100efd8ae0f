/* Berkeley DB with an environment of transactions: a commit is durable. Its regions are mapped; log and database are written. */
#include "store.h"

#include <db.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static DB_ENV *env;
static DB *db;

static void must(int code, const char *what)
{
    if (code)
        refuse(what, db_strerror(code));
}

const char *store_version(void)
{
    return db_version(NULL, NULL, NULL);
}

void store_open(const char *path, const char *mode, int is_new)
{
    (void)mode;
    char home[4096];
    snprintf(home, sizeof home, "%s.env", path);
    mkdir(home, 0755);
    unsigned recovers = is_new ? 0 : DB_RECOVER;
    unsigned parts = DB_INIT_TXN | DB_INIT_LOG | DB_INIT_MPOOL | DB_INIT_LOCK;
    must(db_env_create(&env, 0), "db_env_create");
    must(env->open(env, home, DB_CREATE | parts | recovers, 0644), "DB_ENV->open");
    must(db_create(&db, env, 0), "db_create");
    must(db->open(db, NULL, "records", NULL, DB_BTREE, DB_CREATE | DB_AUTO_COMMIT, 0644), "DB->open");
}

static DBT text(const char *of)
{
    DBT of_text;
    memset(&of_text, 0, sizeof of_text);
    of_text.data = (void *)of;
    of_text.size = strlen(of);
    return of_text;
}

void store_put(const char *key, const char *value)
{
    DB_TXN *txn;
    DBT of_key = text(key), of_value = text(value ? value : "");
    must(env->txn_begin(env, NULL, &txn, 0), "txn_begin");
    int code = value ? db->put(db, txn, &of_key, &of_value, 0) : db->del(db, txn, &of_key, 0);
    must(code == DB_NOTFOUND ? 0 : code, "put");
    must(txn->commit(txn, 0), "commit");
}

char *store_get(const char *key)
{
    DBT of_key = text(key), value = text("");
    int code = db->get(db, NULL, &of_key, &value, 0);
    must(code == DB_NOTFOUND ? 0 : code, "get");
    return code ? NULL : text_of(value.data, value.size);
}

void store_each(void (*each)(const void *, size_t, const void *, size_t))
{
    DBC *cursor;
    DBT key = text(""), value = text("");
    int code;
    must(db->cursor(db, NULL, &cursor, 0), "cursor");
    while (!(code = cursor->get(cursor, &key, &value, DB_NEXT)))
        each(key.data, key.size, value.data, value.size);
    must(code == DB_NOTFOUND ? 0 : code, "cursor get");
    cursor->close(cursor);
}

void store_check(void)
{
    /* DB->verify needs a database that is not open. */
}

void store_close(void)
{
    must(db->close(db, 0), "close");
    must(env->close(env, 0), "close");
}
