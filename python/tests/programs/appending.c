/* Threads make one file longer, page by page, each in transactions of its own: each keeps the number of its last page in a word of
   its own, and the file has all of these pages. With `shared` there is one word for all, which then counts the pages. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 256, EACH = 5, THREADS = 4 };

static volatile long *words;
static int file, is_shared;
static long pages;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) void append(long thread) {
    pthread_mutex_lock(&lock);
    long page = ++pages;
    ftruncate(file, (page + 1) * PAGE);
    words[page * PAGE / 8] = page;
    words[is_shared ? 0 : thread] = page;
    pthread_mutex_unlock(&lock);
}

static void *appends(void *thread) {
    for (int i = 0; i < EACH; i++)
        append((long)thread);
    return 0;
}

int main(int count, char **arguments) {
    is_shared = !strcmp(arguments[2], "shared");
    if (!strcmp(arguments[2], "check")) {
        struct stat of;
        long last[THREADS] = {0};
        file = open(arguments[1], O_RDONLY);
        fstat(file, &of);
        pread(file, last, sizeof last, 0);
        for (int i = 0; i < THREADS; i++)
            if (of.st_size < (last[i] + 1) * PAGE || of.st_size > (THREADS * EACH + 1) * PAGE) {
                printf("page %ld, %ld bytes\n", last[i], (long)of.st_size);
                return 1;
            }
        return 0;
    }
    file = open(arguments[1], O_RDWR | O_CREAT, 0644);
    ftruncate(file, PAGE);
    words = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(threads + i, 0, appends, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], 0);
    return 0;
}
