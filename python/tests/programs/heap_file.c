/* A list whose nodes lie in the file of graven_heap.c: each run adds nodes with its number, and counts all. */
#include <assert.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "graven_heap.h"

struct node {
    struct node *next;
    char *text;
};

struct list {
    struct node *first;
    int runs;
};

static struct list *list;

static int is_in_file(const void *block) { return (size_t)block >> 44 == 1; }

__attribute__((noinline)) void add(const char *text) {
    graven_heap_begin();
    struct node *node = malloc(sizeof *node);
    node->text = strdup(text);
    graven_heap_end();
    node->next = list->first;
    list->first = node;
}

static void *in_thread(void *text) {
    add(text);
    return 0;
}

static void kinds(void) {
    void *block = malloc(8);
    assert(!is_in_file(block));
    graven_heap_begin();
    block = realloc(block, 5000);
    assert(!is_in_file(block));
    free(block);
    char *zeros = calloc(5, 3);
    for (int i = 0; i < 15; i++) assert(is_in_file(zeros) && !zeros[i]);
    assert(!posix_memalign(&block, 4096, 1) && is_in_file(block) && (size_t)block % 4096 == 0);
    assert((size_t)memalign(256, 1) % 256 == 0 && (size_t)aligned_alloc(64, 64) % 64 == 0);
    char *text = strcpy(realloc(NULL, 6), "text"), *moved = realloc(text, 600);
    assert(moved != text && !strcmp(moved, "text"));
    graven_heap_begin();
    graven_heap_end();
    assert(is_in_file(malloc(1)));
    graven_heap_end();
    assert(!is_in_file(malloc(1)) && is_in_file(moved = realloc(moved, 700)));
    free(moved);
}

int main(void) {
    list = *graven_heap_root();
    if (!list) {
        kinds();
        graven_heap_begin();
        list = calloc(1, sizeof *list);
        graven_heap_end();
        *graven_heap_root() = list;
    }
    char text[20];
    snprintf(text, sizeof text, "run %d", ++list->runs);
    for (int i = 0; i < 10; i++) add(text);
    pthread_t thread;
    pthread_create(&thread, 0, in_thread, "a thread");
    pthread_join(thread, 0);
    int count = 0;
    for (struct node *node = list->first; node; node = node->next) count += strlen(node->text) > 4;
    printf("%d nodes in %d runs\n", count, list->runs);
    return 0;
}
