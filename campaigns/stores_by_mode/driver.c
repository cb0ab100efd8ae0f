/* Driver of a store: puts records, prints all of them, and goes on with files that a power failure has left.
 *
 * run FILE MODE COUNT    makes the store, and puts COUNT times; each call of `operation` is an operation
 * dump FILE MODE         opens it as its users do after a crash, and prints its records
 * later FILE MODE        on a copy: if it can be read, one more record is put; it and the others must then be there
 * version                prints the library's version
 */
#include "store.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KEYS = 12, RECORDS_MAX = 4096, VALUE_MAX = 1800, REFUSED = 3, DAMAGED = 4, LATER = 5, UNSOUND = 6, UNSOUND_LATER = 7 };

/* Reading takes milliseconds, unless it hangs. */
enum { MICROSECONDS = 500000 };

static char *records[RECORDS_MAX];
static size_t count;
static int is_check;

void refuse(const char *what, const char *why)
{
    printf("%s: %s\n", what, why);
    fflush(stdout);
    _exit(is_check ? UNSOUND : REFUSED);
}

char *text_of(const void *bytes, size_t size)
{
    char *text = malloc(size + 1);
    memcpy(text, bytes, size);
    text[size] = 0;
    return text;
}

/* Ends the process by SIGALRM if it takes too long. */
static void limit(void)
{
    struct itimerval after = {{0, 0}, {0, MICROSECONDS}};
    setitimer(ITIMER_REAL, &after, NULL);
}

static void damaged(const char *what, const char *key)
{
    printf("damaged: %s: %s\n", what, key);
    fflush(stdout);
    _exit(DAMAGED);
}

/* The record of an operation: most keys are put again with another length, every sixth time one goes. */
static void chosen(int number, char *key, char *value, int *goes)
{
    snprintf(key, 16, "key%02d", number * 5 % KEYS);
    *goes = number % 6 == 5;
    int length = 40 + number * 397 % (VALUE_MAX - 40);
    int begun = sprintf(value, "value %d ", number);
    memset(value + begun, 'a' + number % 26, length - begun);
    value[length] = 0;
}

__attribute__((noinline)) void operation(int number)
{
    char key[16], value[VALUE_MAX + 1];
    int goes;
    chosen(number, key, value, &goes);
    if (goes) {
        /* The key that was put two operations before. */
        snprintf(key, sizeof key, "key%02d", (number - 2) * 5 % KEYS);
    }
    store_put(key, goes ? NULL : value);
}

static void run(const char *path, const char *mode, int operations)
{
    store_open(path, mode, 1);
    for (int number = 0; number < operations; number++)
        operation(number);
    /* Without store_close: the process ends as in a kill. */
    fflush(stdout);
    _exit(0);
}

static void take(const void *key, size_t key_bytes, const void *value, size_t value_bytes)
{
    if (count == RECORDS_MAX)
        damaged("there are more records than were ever put", "");
    char *line = malloc(key_bytes + value_bytes + 2);
    memcpy(line, key, key_bytes);
    line[key_bytes] = '=';
    memcpy(line + key_bytes + 1, value, value_bytes);
    line[key_bytes + value_bytes + 1] = 0;
    records[count++] = line;
}

static int compare(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Reads all records, and looks each key up that may be there. */
static void read_all(void)
{
    count = 0;
    store_each(take);
    qsort(records, count, sizeof *records, compare);
    for (int number = 0; number < KEYS + 1; number++) {
        char key[16];
        snprintf(key, sizeof key, number < KEYS ? "key%02d" : "later", number);
        char *found = store_get(key);
        const char *listed = NULL;
        for (size_t at = 0; at < count; at++)
            if (!strncmp(records[at], key, strlen(key)) && records[at][strlen(key)] == '=')
                listed = records[at] + strlen(key) + 1;
        if (found && !listed)
            damaged("a key is found and not listed", key);
        if (!found && listed)
            damaged("a key is listed and not found", key);
        if (found && strcmp(found, listed))
            damaged("a key is found with another value than it is listed with", key);
        free(found);
    }
    is_check = 1;
    store_check();
    is_check = 0;
}

static void copy(const char *from, const char *to)
{
    char block[1 << 16];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    if (!in || !out)
        refuse(from, "it cannot be copied");
    for (size_t got; (got = fread(block, 1, sizeof block, in)) > 0;)
        fwrite(block, 1, got, out);
    fclose(in);
    fclose(out);
}

/* Runs a step in a process of its own, in silence if it may fail: what it does must not reach the next step. */
static int step(void (*what)(const char *, const char *), const char *path, const char *mode, int is_silent)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        limit();
        if (is_silent && !freopen("/dev/null", "w", stdout))
            _exit(1);
        what(path, mode);
        fflush(stdout);
        _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return status;
}

static void can_be_read(const char *path, const char *mode)
{
    store_open(path, mode, 0);
    read_all();
    store_close();
}

static void put_one_more(const char *path, const char *mode)
{
    store_open(path, mode, 0);
    read_all();
    char *before[RECORDS_MAX];
    size_t known = count;
    memcpy(before, records, known * sizeof *records);
    char value[VALUE_MAX + 1];
    memset(value, 'z', VALUE_MAX);
    value[VALUE_MAX] = 0;
    store_put("later", value);
    store_close();
    store_open(path, mode, 0);
    read_all();
    if (count != known + 1)
        damaged("another number of records after one more was put", "later");
    for (size_t at = 0, old = 0; at < count; at++) {
        if (!strncmp(records[at], "later=", 6)) {
            if (strcmp(records[at] + 6, value))
                damaged("the record that was put has another value", "later");
        } else if (old == known || strcmp(records[at], before[old++])) {
            damaged("a record is another one after one more was put", records[at]);
        }
    }
    store_close();
}

static int later(const char *path, const char *mode)
{
    char one[4096], two[4096];
    snprintf(one, sizeof one, "%s.one", path);
    snprintf(two, sizeof two, "%s.two", path);
    copy(path, one);
    copy(path, two);
    if (step(can_be_read, one, mode, 1))
        return 0; /* It cannot be read: that is what `dump` says. */
    int status = step(put_one_more, two, mode, 0);
    if (status && WIFSIGNALED(status))
        printf("one more put ends with signal %d\n", WTERMSIG(status));
    if (status && WIFEXITED(status) && WEXITSTATUS(status) == UNSOUND)
        return UNSOUND_LATER;
    return status ? LATER : 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "version"))
        return puts(store_version()) < 0;
    if (argc == 5 && !strcmp(argv[1], "run"))
        run(argv[2], argv[3], atoi(argv[4]));
    if (argc == 4 && !strcmp(argv[1], "later"))
        return later(argv[2], argv[3]);
    if (argc != 4 || strcmp(argv[1], "dump")) {
        fprintf(stderr, "usage: %s run FILE MODE COUNT | dump FILE MODE | later FILE MODE | version\n", argv[0]);
        return 2;
    }
    limit();
    store_open(argv[2], argv[3], 0);
    read_all();
    for (size_t at = 0; at < count; at++)
        puts(records[at]);
    store_close();
    return 0;
}
