/* Memory: the caller's allocator or libc, and arenas over it. */
#ifndef SFTI_MEM_H
#define SFTI_MEM_H

#include "safetensors.h"

/* *alloc, or libc's when NULL (or its resize is NULL). */
sft_allocator sfti_allocator(const sft_allocator *alloc);

static inline void *sfti_take(const sft_allocator *a, size_t size) {
    return a->resize(a->ctx, NULL, 0, size);
}

static inline void sfti_release(const sft_allocator *a, void *ptr, size_t size) {
    if (ptr) (void)a->resize(a->ctx, ptr, size, 0);
}

/* Blocks freed together. Zeroed but for alloc, it is empty. */
typedef struct sfti_block sfti_block;
typedef struct sfti_arena {
    sft_allocator alloc;
    sfti_block *last;
    char *at, *end;
    uint64_t bytes; /* got from the allocator */
} sfti_arena;

/* The part of sfti_arena_take that asks the allocator. */
void *sfti_arena_take_more(sfti_arena *arena, size_t size);

/* size bytes aligned to 8 (0 too has a place of its own), NULL when out of memory. What
 * is larger than half a block gets one of exactly its own size. */
static inline void *sfti_arena_take(sfti_arena *arena, size_t size) {
    size_t whole = (size + 7) & ~(size_t)7; /* 0 for 0 and on overflow */
    if (whole == 0 || whole > (size_t)(arena->end - arena->at))
        return sfti_arena_take_more(arena, size);
    void *at = arena->at;
    arena->at += whole;
    return at;
}

/* count items of `each` bytes; NULL also when so many are not addressable. */
void *sfti_arena_array(sfti_arena *arena, uint64_t count, size_t each);
/* A copy with a NUL behind it. */
char *sfti_arena_copy(sfti_arena *arena, const void *bytes, size_t len);
/* Two texts, one behind the other, with a NUL behind them. */
char *sfti_arena_join(sfti_arena *arena, sft_span a, sft_span b);
/* Arrays that grow by doubling: items of which `count` are in use, with room for `more`. The array,
 * which may have moved and has *cap items: keep it, whatever else fails; NULL: out of memory. */
void *sfti_arena_grow(sfti_arena *arena, const void *items, size_t count, size_t more,
                      size_t *cap, size_t each);
void *sfti_grow(const sft_allocator *a, void *items, size_t count, size_t more, size_t *cap,
                size_t each);
/* Make sure the next size bytes come from one new block. */
bool sfti_arena_reserve(sfti_arena *arena, size_t size);
void sfti_arena_free(sfti_arena *arena);

/* Growable bytes; false when out of memory. */
bool sfti_buffer_reserve(sft_buffer *buffer, size_t more);
bool sfti_buffer_put(sft_buffer *buffer, const void *bytes, size_t len);

#endif
