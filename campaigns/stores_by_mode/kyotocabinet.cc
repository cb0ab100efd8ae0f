// Kyoto Cabinet's HashDB. synchronize(true) makes it durable; OAUTOSYNC does so after each update.
#include "store.h"

#include <cstring>
#include <kchashdb.h>
#include <string>

static kyotocabinet::HashDB db;
static bool syncs;

static void must(bool is_good, const char *what)
{
    if (!is_good)
        refuse(what, db.error().message());
}

extern "C" const char *store_version(void)
{
    return kyotocabinet::VERSION;
}

extern "C" void store_open(const char *path, const char *mode, int is_new)
{
    using kyotocabinet::HashDB;
    uint32_t flags = HashDB::OWRITER | (is_new ? HashDB::OCREATE : 0);
    if (strstr(mode, "autosync"))
        flags |= HashDB::OAUTOSYNC;
    if (strstr(mode, "autotran"))
        flags |= HashDB::OAUTOTRAN;
    syncs = strstr(mode, "+sync");
    if (is_new)
        must(db.tune_buckets(31), "tune_buckets");
    must(db.open(path, flags), "open");
}

static bool is_absent()
{
    return db.error() == kyotocabinet::BasicDB::Error::NOREC;
}

extern "C" void store_put(const char *key, const char *value)
{
    if (value)
        must(db.set(key, value), "set");
    else
        must(db.remove(key) || is_absent(), "remove");
    if (syncs)
        must(db.synchronize(true), "synchronize");
}

extern "C" char *store_get(const char *key)
{
    std::string value;
    if (db.get(key, &value))
        return text_of(value.data(), value.size());
    must(is_absent(), "get");
    return nullptr;
}

extern "C" void store_each(void (*each)(const void *, size_t, const void *, size_t))
{
    kyotocabinet::DB::Cursor *cursor = db.cursor();
    std::string key, value;
    bool is_one = cursor->jump();
    must(is_one || is_absent(), "jump");
    while (is_one && cursor->get(&key, &value, true))
        each(key.data(), key.size(), value.data(), value.size());
    must(is_absent(), "get of a cursor");
    delete cursor;
}

extern "C" void store_check(void)
{
    // Kyoto Cabinet has no such function.
}

extern "C" void store_close(void)
{
    must(db.close(), "close");
}
