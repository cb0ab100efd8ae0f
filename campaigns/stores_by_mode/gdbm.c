/* GDBM. gdbm_sync returns when the file is as the database is; GDBM_SYNC does so after each operation. */
#include "store.h"

#include <gdbm.h>
#include <stdlib.h>
#include <string.h>

static GDBM_FILE file;
static int syncs;

static void must(int code, const char *what)
{
    if (code)
        refuse(what, gdbm_strerror(gdbm_errno));
}

const char *store_version(void)
{
    return gdbm_version;
}

void store_open(const char *path, const char *mode, int is_new)
{
    int flags = is_new ? GDBM_NEWDB : GDBM_WRITER;
    if (strstr(mode, "always"))
        flags |= GDBM_SYNC;
    if (strstr(mode, "numsync") && is_new)
        flags |= GDBM_NUMSYNC;
    syncs = strstr(mode, "+sync") != NULL;
    file = gdbm_open(path, 512, flags, 0644, NULL);
    if (!file)
        refuse("gdbm_open", gdbm_strerror(gdbm_errno));
}

static datum text(const char *of)
{
    datum data = {(char *)of, (int)strlen(of)};
    return data;
}

void store_put(const char *key, const char *value)
{
    if (value)
        must(gdbm_store(file, text(key), text(value), GDBM_REPLACE), "gdbm_store");
    else if (gdbm_exists(file, text(key)))
        must(gdbm_delete(file, text(key)), "gdbm_delete");
    if (syncs)
        must(gdbm_sync(file), "gdbm_sync");
}

char *store_get(const char *key)
{
    datum found = gdbm_fetch(file, text(key));
    if (!found.dptr && gdbm_errno != GDBM_ITEM_NOT_FOUND)
        refuse("gdbm_fetch", gdbm_strerror(gdbm_errno));
    char *copy = found.dptr ? text_of(found.dptr, found.dsize) : NULL;
    free(found.dptr);
    return copy;
}

void store_each(void (*each)(const void *, size_t, const void *, size_t))
{
    datum key = gdbm_firstkey(file);
    while (key.dptr) {
        datum value = gdbm_fetch(file, key);
        if (!value.dptr)
            refuse("gdbm_fetch", gdbm_strerror(gdbm_errno));
        each(key.dptr, key.dsize, value.dptr, value.dsize);
        datum next = gdbm_nextkey(file, key);
        free(value.dptr);
        free(key.dptr);
        key = next;
    }
    if (gdbm_errno != GDBM_ITEM_NOT_FOUND)
        refuse("gdbm_nextkey", gdbm_strerror(gdbm_errno));
}

void store_check(void)
{
    must(gdbm_avail_verify(file), "gdbm_avail_verify");
}

void store_close(void)
{
    must(gdbm_close(file), "gdbm_close");
}
