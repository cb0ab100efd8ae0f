// A record in one line, copied with its flag by one string instruction, whose stores have no order. The twin stores the
// flag behind the copy, as Intel's manual recommends.
#include "kind.h"

#define RECORDS 4

struct record {
    uint64_t values[2] OWN_LINE;
    uint64_t is_complete;
};

struct pool {
    struct record records[RECORDS];
};

static void put(volatile struct record *to, const struct record *from) {
    size_t bytes = IS_REPAIRED ? sizeof from->values : sizeof from->values + sizeof from->is_complete;
    void *at = (void *)to;
    __asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(bytes) : : "memory"); // MISSING PRESENT
    if (IS_REPAIRED)
        to->is_complete = 1;
    persist(to, sizeof *to);
}

static void run(volatile struct pool *pool) {
    for (uint64_t i = 0; i < RECORDS; i++)
        put(&pool->records[i], &(struct record){.values = {100 + i, 200 + i}, .is_complete = 1});
}

static const char *check(volatile struct pool *pool) {
    for (uint64_t i = 0; i < RECORDS; i++) {
        volatile struct record *record = &pool->records[i];
        if (record->is_complete && (record->values[0] != 100 + i || record->values[1] != 200 + i))
            return "a complete record has not all of its values";
    }
    return NULL;
}

int main(int count, char **arguments) {
    return main_of(&(struct kind){.bytes = sizeof(struct pool), .run = run, .check = check}, count, arguments);
}
