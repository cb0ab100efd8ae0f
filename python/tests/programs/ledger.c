/* Transaction i stores its number to the count, word 0, and 1 to word i: word j is 1 exactly if 1 <= j <= count. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS = 1024 };

static volatile long *words;

__attribute__((noinline)) void tx(long i) { words[0] = i; words[i] = 1; }

/* A symbol that is never entered: it is inlined in its caller, as -O2 does with any such function. */
extern inline __attribute__((always_inline)) void inlined(long i) { words[0] = i; words[i] = 1; }

int main(int count, char **arguments) {
    int is_check = count < 3 || !strcmp(arguments[2], "check");
    int file = open(arguments[1], is_check ? O_RDONLY : O_RDWR | O_CREAT, 0644);
    struct stat of;
    if (!is_check)
        ftruncate(file, WORDS * sizeof *words);
    if (fstat(file, &of) || of.st_size != WORDS * sizeof *words) {
        printf("%ld bytes\n", (long)of.st_size);
        return 1;
    }
    words = mmap(0, of.st_size, is_check ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (!strcmp(count < 3 ? "" : arguments[2], "wait"))
        sleep(60);
    for (long j = 1; is_check && j < WORDS; j++)
        if (words[j] != (j <= words[0])) {
            printf("word %ld is %ld, count is %ld\n", j, words[j], words[0]);
            return 1;
        }
    for (long i = 1; !is_check && i <= atol(arguments[2]); i++)
        count > 3 ? inlined(i) : tx(i);
    return 0;
}
