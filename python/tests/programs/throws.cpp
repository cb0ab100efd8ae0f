// A function that ends transactions throws instead, into who has called it.
#include <cstdint>
#include <stdexcept>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile uint64_t *pm;

extern "C" {
__attribute__((noinline, used)) void tx_begin() { asm volatile("" ::: "memory"); }

__attribute__((noinline, used)) int tx_end(bool throws) {
    pm[5] += 1;
    if (throws) throw std::runtime_error("no");
    return 0;
}
}

__attribute__((noinline)) static void one(uint64_t number) {
    tx_begin();
    pm[0] = number;
    try {
        tx_end(number % 2);
    } catch (const std::exception &) {
        pm[10] = number;
    }
    pm[11] = number;
}

int main(int, char **arguments) {
    int pool = open(arguments[1], O_RDWR | O_CREAT, 0600);
    if (pool < 0 || ftruncate(pool, 8192)) return 9;
    void *at = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, pool, 0);
    if (at == MAP_FAILED) return 9;
    pm = static_cast<volatile uint64_t *>(at);
    for (uint64_t number = 0; number < 10; number++) one(number);
    return 0;
}
