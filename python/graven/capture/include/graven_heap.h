/* A heap in a file, for indexes whose persistent memory is that of malloc. graven_heap.c says how. */
#ifndef GRAVEN_HEAP_H
#define GRAVEN_HEAP_H

#ifdef __cplusplus
extern "C" {
#endif

/* What this thread allocates from now on, until as many calls of graven_heap_end, lies in the file. */
void graven_heap_begin(void);
void graven_heap_end(void);

/* The first word of the file: a pointer that a later run finds its data by. Zero in a new file. */
void **graven_heap_root(void);

#ifdef __cplusplus
}
#endif

#endif
