// How transactions begin and end, and how they do not.
#include "pm.h"

static void one(uint64_t at) {
    tx_begin(0);
    pm[at] = at + 1;
    pm[at + 1] = at + 2;
    tx_commit();
}

// A log of the program's own, which also loads.
APART void add_to_log(int entry) {
    pm[100 + entry] = pm[entry] + 1;
    pm[200] = entry;
}

APART void log_both(int entry) {
    add_to_log(entry);
    add_to_log(entry + 1);
}

static void logged(void) {
    for (int i = 0; i < 10; i += 2) {
        tx_begin(0);
        log_both(i);
        pm[i] = i;
        pm[i + 1] = pm[200];
        tx_commit();
    }
}

// A table that is not persistent is looked through in each transaction.
static volatile uint64_t table[8 * 512];

static void beside(void) {
    for (int at = 0; at < 8 * 512; at++)
        table[at] = at;
    for (int i = 0; i < 5; i++) {
        tx_begin(0);
        uint64_t sum = 0;
        for (int at = 0; at < 8 * 512; at++)
            sum += table[at];
        pm[i] = sum;
        tx_commit();
    }
}

// Each line has the place of another one; they are gone through by these places, or one after the other.
enum { LINES = 4000 };

static void link_lines(void) {
    for (uint64_t at = 0; at < LINES; at++)
        pm[8 * at] = (at * 1021 + 1) % LINES * 8;
}

static void chase(void) {
    link_lines();
    tx_begin(0);
    uint64_t at = 0;
    for (int i = 0; i < LINES; i++)
        at = pm[at];
    pm[8 * LINES] = at;
    tx_commit();
}

static void sweep(void) {
    link_lines();
    tx_begin(0);
    uint64_t sum = 0;
    for (uint64_t at = 0; at < LINES; at++)
        sum += pm[at * 1021 % LINES * 8];
    pm[8 * LINES] = sum;
    tx_commit();
}

static void ten(void) {
    for (int i = 0; i < 10; i++)
        one(2 * i);
}

// Between transactions, and of words that transactions store, too.
static void between(void) {
    for (int i = 0; i < 10; i++) {
        one(2 * i);
        for (int word = 100; word < 120; word++)
            pm[word] += i + 1;
        pm[2 * i] = 1000 + i;
    }
    one(200);
}

// A transaction stores again what is there, stored outside.
static void again(void) {
    one(10);
    pm[0] = 5;
    tx_begin(0);
    pm[0] = 5;
    tx_commit();
    one(20);
}

static void nested(void) {
    for (int i = 0; i < 3; i++) {
        tx_begin(0);
        pm[0] += 1;
        one(10);
        one(20);
        pm[1] += 1;
        tx_commit();
    }
    pm[2] = 1;
}

static void failing(void) {
    for (int i = 0; i < 4; i++)
        if (tx_begin(i % 2 ? EAGAIN : 0) == 0) {
            pm[i] = 1;
            pm[i + 1] = 2;
            tx_commit();
        }
}

static void aborted(void) {
    one(0);
    tx_begin(0);
    uint64_t before = pm[0];
    pm[0] = 99;
    pm[0] = before;
    tx_abort();
    one(2);
}

static jmp_buf back;

APART static void deep(int levels) {
    volatile char room[500];
    room[0] = (char)levels;
    if (levels > 0)
        deep(levels - 1);
    else if (pm[0])
        longjmp(back, 1);
    room[1] = room[0];
}

static void jump(void) {
    for (int i = 0; i < 3; i++) {
        tx_begin(0);
        if (setjmp(back) == 0) {
            pm[0] = i + 1;
            deep(5);
        } else {
            pm[0] = 0;
            tx_abort();
        }
        one(10 + 2 * i);
    }
}

// A function that ends a transaction, or does not.
APART int tx_end(int jumps) {
    pm[5] += 1;
    if (jumps)
        longjmp(back, 1);
    return 0;
}

APART static void deeper(int levels) {
    volatile char room[500];
    room[0] = (char)levels;
    if (levels > 0) {
        deeper(levels - 1);
    } else {
        tx_begin(0);
        pm[6] += 1;
        tx_end(0);
    }
    room[1] = room[0];
}

static void jump_out_of_the_end(void) {
    if (setjmp(back) == 0) {
        tx_begin(0);
        pm[0] = 1;
        tx_end(1);
    }
    for (int i = 0; i < 3; i++)
        deeper(i);
}

static void handler(int number) {
    pm[30] = number;
    pm[31] += 1;
}

static void signals(void) {
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 5; i++) {
        tx_begin(0);
        pm[i] = 1;
        raise(SIGUSR1);
        pm[31] += 1;
        tx_commit();
    }
    stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    action.sa_flags = SA_ONSTACK;
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    one(40);
}

static void killed(void) {
    ten();
    tx_begin(0);
    pm[50] = 1;
    kill(getpid(), SIGKILL);
}

static void waits(void) {
    ten();
    tx_begin(0);
    pm[50] = 1;
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}

static void unfinished(void) {
    one(0);
    tx_begin(0);
    pm[2] = 1;
}

// So much code that an address that is a page off is code, too.
APART static void code_of_some_pages(void) {
    __asm__ volatile(".rept 16384; nop; .endr" ::: "memory");
}

static void much_code(void) {
    ten();
    code_of_some_pages();
    ten();
}

APART static int own_begin(void) {
    __asm__ volatile("" ::: "memory");
    return 0;
}

APART static int own_commit(void) {
    __asm__ volatile("" ::: "memory");
    return 0;
}

static void of_its_own(void) {
    for (int i = 0; i < 4; i++) {
        own_begin();
        pm[2 * i] = 1;
        pm[2 * i + 1] = pm[2 * i];
        own_commit();
    }
}

#if defined(__aarch64__)
// A function that ends a transaction, and calls another before it does: it keeps in a register where it returns to, and takes nothing
// of the stack.
__attribute__((noinline, used)) void stores_for_it(void) {
    pm[7] += 1;
}

void tx_kept(void);
__asm__(".text; .global tx_kept; .type tx_kept, %function; tx_kept: mov x19, x30; bl stores_for_it;"
        "mov x30, x19; ret; .size tx_kept, . - tx_kept");

static void kept(void) {
    for (int i = 0; i < 5; i++) {
        tx_begin(0);
        pm[0] = i;
        __asm__ volatile("bl tx_kept" ::: "x0", "x1", "x2", "x3", "x19", "x30", "memory");
        pm[1] = i;
    }
}
#endif

static void nothing(void) {
}

static const struct program PROGRAMS[] = {
    {"ten", ten}, {"logged", logged},
    {"between", between}, {"beside", beside}, {"chase", chase}, {"sweep", sweep},
    {"again", again},
    {"nested", nested},
    {"failing", failing},
    {"aborted", aborted},
    {"jump", jump},
    {"jump_out_of_the_end", jump_out_of_the_end},
    {"signals", signals},
    {"killed", killed},
    {"waits", waits},
    {"unfinished", unfinished},
    {"much_code", much_code},
    {"of_its_own", of_its_own},
    {"nothing", nothing},
#if defined(__aarch64__)
    {"kept", kept},
#endif
    {NULL, NULL},
};

int main(int count, char **arguments) {
    return run(count, arguments, PROGRAMS);
}
