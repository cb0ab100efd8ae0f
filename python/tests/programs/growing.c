/* A file that grows, of which much more is mapped: transaction i makes it i + 1 pages long, by a call or by writing behind its
   end, fills the new page, and counts. It has as many pages as the count says, and one. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 256, GROWN = 12 };

static volatile long *words;
static int file;

__attribute__((noinline)) void tx(long i, int writes) {
    if (writes)
        pwrite(file, "", 1, (i + 1) * PAGE - 1);
    else
        ftruncate(file, (i + 1) * PAGE);
    for (int j = 0; j < 16; j++)
        words[i * PAGE / 8 + j] = i;
    words[0] = i;
}

/* What is no longer counted is cut off. */
__attribute__((noinline)) void cut(long i) {
    words[0] = i;
    ftruncate(file, (i + 1) * PAGE);
}

int main(int count, char **arguments) {
    int is_check = !strcmp(arguments[2], "check");
    file = open(arguments[1], is_check ? O_RDONLY : O_RDWR | O_CREAT, 0644);
    if (is_check) {
        struct stat of;
        long n = -1;
        fstat(file, &of);
        pread(file, &n, sizeof n, 0);
        if (of.st_size != (n + 1) * PAGE) {
            printf("count %ld, %ld bytes\n", n, (long)of.st_size);
            return 1;
        }
        return 0;
    }
    ftruncate(file, PAGE);
    words = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (long i = 1; i <= GROWN; i++)
        tx(i, !strcmp(arguments[2], "write"));
    cut(3);
    tx(4, 0);
    return 0;
}
