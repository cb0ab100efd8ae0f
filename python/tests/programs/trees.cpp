// Transactions that are left by exceptions, and structures of the standard library.
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" {
__attribute__((noinline, used)) void tx_begin() { __asm__ volatile("" ::: "memory"); }
__attribute__((noinline, used)) void tx_commit() { __asm__ volatile("" ::: "memory"); }
__attribute__((noinline, used)) void tx_abort() { __asm__ volatile("" ::: "memory"); }
}

static std::map<std::string, std::vector<int>> tree;

static void put(int number) {
    tx_begin();
    auto &values = tree["key " + std::to_string(number % 40)];
    if (number % 10 == 9) throw std::runtime_error("a tenth of them fails");
    values.push_back(number);
    tx_commit();
}

int main() {
    int failed = 0;
    for (int number = 0; number < 200; number++) {
        try {
            put(number);
        } catch (const std::exception &) {
            tx_abort();
            failed++;
        }
    }
    int sum = 0;
    for (const auto &[key, values] : tree)
        for (int value : values) sum += value + key.size();
    return failed == 20 && sum > 0 ? 0 : 1;
}
