// Programs whose persistent memory is no file: what malloc gives, variables, ranges.
#include "pm.h"

#include <dirent.h>
#include <malloc.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

uint64_t table[512] = {1, 2, 3};
uint64_t zeros[512];

static unsigned seed = 1;

static unsigned draw(unsigned below) {
    seed = seed * 1103515245u + 12345u;
    return (seed >> 8) % below;
}

// Looks at all bytes, so that each is loaded.
APART uint64_t sum(const void *at, size_t bytes) {
    uint64_t sum = 0;
    for (size_t byte = 0; byte < bytes; byte++)
        sum += ((const volatile uint8_t *)at)[byte];
    return sum;
}

static void small(void) {
    struct node {
        struct node *next;
        uint64_t value;
    } *list = NULL;
    for (int number = 0; number < 100; number++) {
        tx_begin(0);
        struct node *node = malloc(sizeof *node);
        *node = (struct node){list, number};
        list = node;
        tx_commit();
    }
    while (list) {
        tx_begin(0);
        struct node *next = list->next;
        free(list);
        list = next;
        tx_commit();
    }
}

// Pieces of all sizes come and go, grow and shrink: by the break, by mappings of their own, moved by the kernel.
static void pieces(void) {
    static uint8_t *all[64];
    static size_t sizes[64];
    for (int step = 0; step < 1000; step++) {
        unsigned which = draw(64);
        size_t bytes = 1 + draw(1 << draw(19));
        tx_begin(0);
        switch (draw(4)) {
        case 0:
            free(all[which]);
            all[which] = calloc(1, bytes);
            check(sum(all[which], bytes < 9000 ? bytes : 9000) == 0, "calloc");
            break;
        case 1:
            free(all[which]);
            check(posix_memalign((void **)&all[which], 4096, bytes) == 0, "memalign");
            break;
        case 2:
            all[which] = realloc(all[which], bytes);
            break;
        default:
            free(all[which]);
            all[which] = malloc(bytes);
        }
        for (size_t at = 0; at < bytes; at += 1 + draw(4096))
            all[which][at] = step;
        sizes[which] = bytes;
        tx_commit();
        which = draw(64);
        sum(all[which], all[which] ? sizes[which] < 512 ? 0 : 512 : 0);
    }
    malloc_trim(0);
}

static void moves(void) {
    size_t bytes = 1 << 18;
    uint8_t *at = malloc(bytes);
    memset(at, 7, bytes);
    for (int step = 0; step < 4; step++) {
        tx_begin(0);
        // Something in the way, so that it must move.
        void *way = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        at = realloc(at, bytes << 1);
        memset(at + bytes, step, bytes);
        bytes <<= 1;
        munmap(way, 4096);
        tx_commit();
        check(at[0] == 7 && at[bytes - 1] == step, "moved");
    }
    at = realloc(at, 300000);
    sum(at, 300000);
    free(at);
}

static void breaks(void) {
    uint8_t *start = sbrk(0);
    for (int step = 1; step < 40; step++) {
        tx_begin(0);
        size_t bytes = 1000 * draw(60);
        check(brk(start + bytes) == 0, "brk");
        sum(start, bytes);
        memset(start, step, bytes);
        tx_commit();
    }
}

// Memory that is reserved first, and accessed when that is allowed; given back without being unmapped.
static void reserved(void) {
    size_t bytes = 64 << 20;
    uint8_t *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    check(at != MAP_FAILED, "mmap");
    for (int step = 0; step < 20; step++) {
        tx_begin(0);
        check(mprotect(at, 8192u * (step + 1), PROT_READ | PROT_WRITE) == 0, "mprotect");
        memset(at, step + 1, 8192u * (step + 1));
        tx_commit();
    }
    check(madvise(at + 4096, 16384, MADV_DONTNEED) == 0, "madvise");
    check(sum(at + 4096, 16384) == 0, "zero");
    check(mmap(at + 65536, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
               -1, 0) == at + 65536, "fixed");
    check(sum(at + 65536, 4096) == 0, "zero");
    at[65536] = 1;
    munmap(at + 8192, 4096);
    sum(at + 12288, 100);
}

// What the kernel writes to the heap.
static void kernel(void) {
    tx_begin(0);
    struct stat *of = malloc(sizeof *of);
    check(stat("/", of) == 0 && sum(of, sizeof *of), "stat");
    struct utsname *name = malloc(sizeof *name);
    check(uname(name) == 0 && sum(name, sizeof *name), "uname");
    struct rusage *usage = malloc(sizeof *usage);
    check(getrusage(RUSAGE_SELF, usage) == 0, "getrusage");
    sum(usage, sizeof *usage);
    struct rlimit *limit = malloc(sizeof *limit);
    check(getrlimit(RLIMIT_NOFILE, limit) == 0 && sum(limit, sizeof *limit), "getrlimit");
    char *folder = getcwd(NULL, 0);
    sum(folder, strlen(folder));
    DIR *root = opendir("/");
    for (struct dirent *entry; (entry = readdir(root));)
        sum(entry->d_name, strlen(entry->d_name));
    closedir(root);
    FILE *file = fopen("/proc/self/status", "r");
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, file) > 0)
        sum(line, strlen(line));
    fclose(file);
    tx_commit();
    tx_begin(0);
    int *both = malloc(2 * sizeof *both);
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, both) == 0, "socketpair");
    check(write(both[0], "abcdefgh", 8) == 8, "write");
    struct pollfd *polls = calloc(2, sizeof *polls);
    polls[0] = (struct pollfd){.fd = both[1], .events = POLLIN};
    check(poll(polls, 1, 100) == 1 && polls[0].revents == POLLIN, "poll");
    int epoll = epoll_create1(0);
    struct epoll_event *event = calloc(4, sizeof *event);
    *event = (struct epoll_event){.events = EPOLLIN, .data.u64 = 77};
    check(epoll_ctl(epoll, EPOLL_CTL_ADD, both[1], event) == 0, "epoll_ctl");
    event->data.u64 = 0;
    check(epoll_wait(epoll, event, 4, 100) == 1 && event->data.u64 == 77, "epoll_wait");
    char *text = calloc(1, 64);
    struct iovec *parts = malloc(2 * sizeof *parts);
    parts[0] = (struct iovec){text, 3}, parts[1] = (struct iovec){text + 32, 3};
    struct msghdr *message = calloc(1, sizeof *message);
    message->msg_iov = parts, message->msg_iovlen = 2;
    check(recvmsg(both[1], message, 0) == 6 && sum(text, 64) && !message->msg_flags, "recvmsg");
    check(recv(both[1], text + 48, 16, 0) == 2 && sum(text, 64), "recv");
    // A call of which nobody here has heard.
    unsigned *number = calloc(1, 64);
    check(syscall(SYS_getcpu, number + 3, number + 7, NULL) == 0, "getcpu");
    sum(number, 64);
    siginfo_t *info = calloc(1, sizeof *info);
    pid_t child = fork();
    if (child == 0)
        _exit(3);
    check(waitid(P_PID, child, info, WEXITED) == 0 && info->si_status == 3, "waitid");
    sum(info, sizeof *info);
    tx_commit();
}

static volatile int signals;

static void on_signal(int number) { signals += number; }

// The kernel's frame of a signal goes to memory of malloc's.
static void alternate_stack(void) {
    stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    check(sigaltstack(&stack, NULL) == 0, "sigaltstack");
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    uint64_t *at = malloc(800);
    for (int step = 0; step < 100; step++) {
        tx_begin(0);
        at[step] = step;
        raise(SIGUSR1);
        tx_commit();
    }
    check(signals == 100 * SIGUSR1, "signals");
}

static void *one_thread(void *lock) {
    uint8_t *all[16] = {0};
    for (int step = 0; step < 300; step++) {
        uint8_t **piece = &all[step % 16];
        free(*piece);
        *piece = malloc(1 + step * 7 % 5000);
        **piece = step;
        pthread_mutex_lock(lock);
        tx_begin(0);
        (*piece)[0] += 1;
        table[step]++;
        tx_commit();
        pthread_mutex_unlock(lock);
    }
    for (int piece = 0; piece < 16; piece++)
        free(all[piece]);
    return NULL;
}

// Each thread has a heap of its own, which it gives back when it ends.
static void threads(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_t all[3];
    for (int round = 0; round < 2; round++) {
        for (int thread = 0; thread < 3; thread++)
            check(pthread_create(&all[thread], NULL, one_thread, &lock) == 0, "thread");
        for (int thread = 0; thread < 3; thread++)
            pthread_join(all[thread], NULL);
    }
}

static void variables(void) {
    for (int step = 0; step < 50; step++) {
        tx_begin(0);
        table[step] += step;
        zeros[step] = table[step + 1];
        tx_commit();
    }
}

// A range that is persistent whenever something is there.
static void fixed(void) {
    uint64_t *at = (uint64_t *)0x7000000000;
    for (int round = 0; round < 3; round++) {
        void *mapped = mmap(at, 16384, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        check(mapped == at && at[100] == 0, "mmap");
        for (int step = 0; step < 40; step++) {
            tx_begin(0);
            at[step * 31] = step + 1;
            tx_commit();
        }
        munmap(at, 16384);
    }
}

// Files into which others are copied, that are cut off, and that get holes.
static void copied(void) {
    uint64_t *pool_words = (uint64_t *)pm;
    char name[] = "/tmp/graven-XXXXXX";
    int other = mkstemp(name);
    unlink(name);
    check(other >= 0 && write(other, "0123456789abcdef", 16) == 16, "other");
    tx_begin(0);
    off_t from = 4, to = 8192 + 3;
    check(copy_file_range(other, &from, pool, &to, 8, 0) == 8, "copy_file_range");
    check(sum(pool_words, 3 * 4096), "sum");
    pool_words[2000] = 5;
    tx_commit();
    tx_begin(0);
    memset(pool_words, 9, POOL_BYTES);
    check(fallocate(pool, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 8192) == 0, "hole");
    check(sum(pool_words + 512, 8192) == 0, "hole");
    check(ftruncate(pool, 5 * 4096 + 100) == 0, "ftruncate");
    check(ftruncate(pool, POOL_BYTES) == 0, "ftruncate");
    check(sum(pool_words + 4096, 4096) == 0, "cut off");
    pool_words[9000] = 3;
    tx_commit();
}

int main(int count, char **arguments) {
    static const struct program programs[] = {
        {"small", small},         {"pieces", pieces},
        {"moves", moves},         {"breaks", breaks},
        {"reserved", reserved},   {"kernel", kernel},
        {"signals", alternate_stack}, {"threads", threads},
        {"variables", variables}, {"fixed", fixed},
        {"copied", copied},       {0},
    };
    return run(count, arguments, programs);
}
