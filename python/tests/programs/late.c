/* Maps a file late, and unmaps it early: volatile memory before, meanwhile, and afterwards. Twice, if it is told so. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORDS = 512, TIMES = 200 };

static volatile uint64_t others[WORDS];

static void spin(int times) {
    for (int time = 0; time < times; time++)
        for (int at = 0; at < WORDS; at++)
            others[at] += at;
}

static void store(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 4096))
        exit(2);
    uint64_t *words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (int at = 0; at < WORDS; at++)
        words[at] += at + 1;
    spin(1);
    munmap(words, 4096);
    close(fd);
}

int main(int count, char **arguments) {
    for (int time = 1; time < count - 1; time++) {
        spin(TIMES);
        store(arguments[1]);
    }
    spin(TIMES);
}
