// A part of a program: what it does before, in and behind it.
#include "pm.h"

static void one(uint64_t at) {
    tx_begin(0);
    pm[at] = at + 1;
    pm[at + 1] = at + 2;
    tx_commit();
}

static void some(uint64_t at, int count) {
    for (int i = 0; i < count; i++)
        one(at + 2 * i);
}

APART void work(int depth) {
    pm[100] += 1;
    some(10, 2);
    if (depth > 0)
        work(depth - 1);
    pm[101] += 1;
}

APART void rest(void) {
    pm[110] += 1;
    some(20, 1);
}

APART void unused(void) {
    __asm__ volatile("" ::: "memory");
}

static void plain(void) {
    some(0, 3);
    for (int i = 0; i < 2; i++) {
        work(0);
        some(30, 1);
        rest();
        pm[120] += 1;
    }
}

static void again(void) {
    some(0, 3);
    work(3);
    some(30, 1);
}

static void *works(void *argument) {
    work(0);
    return argument;
}

// The one begins on a thread, and the other is on another.
static void threads(void) {
    pthread_t thread;
    some(0, 1);
    check(pthread_create(&thread, NULL, works, NULL) == 0, "pthread_create");
    pthread_join(thread, NULL);
    rest();
    some(40, 5);
}

static void killed(void) {
    work(0);
    some(0, 1);
    kill(getpid(), SIGKILL);
}

APART void killed_in(void) {
    some(0, 1);
    kill(getpid(), SIGKILL);
}

static void ends_within(void) {
    work(0);
    killed_in();
}

static const struct program PROGRAMS[] = {
    {"plain", plain},   {"again", again},
    {"threads", threads}, {"killed", killed},
    {"ends_within", ends_within},
    {NULL, NULL},
};

int main(int count, char **arguments) {
    return run(count, arguments, PROGRAMS);
}
