/* Arenas and growing arrays over a caller's allocator. Tests: test_mem.c. */
#include "base/mem.h"

#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

static void *libc_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    (void)ctx;
    (void)old_size;
    if (new_size > 0) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

sft_allocator sfti_allocator(const sft_allocator *alloc) {
    sft_allocator libc = { libc_resize, NULL };
    return alloc && alloc->resize ? *alloc : libc;
}

/* ── Arena ── */

struct sfti_block {
    sfti_block *before;
    size_t size; /* with this head */
};

#define ARENA_FIRST 4096
#define ARENA_MOST ((size_t)1 << 20)
/* In builds for tests each piece is an allocation of its own, which can fail and has an end. */
#if defined(SFT_ARENA_ALONE)
#define ARENA_ALONE true
#else
#define ARENA_ALONE false
#endif

bool sfti_arena_reserve(sfti_arena *arena, size_t size) {
    uint64_t whole;
    if (!sfti_add(size, sizeof(sfti_block), &whole) || !sfti_fits_size(whole)) return false;
    sfti_block *block = sfti_take(&arena->alloc, (size_t)whole);
    if (!block) return false;
    block->size = (size_t)whole;
    block->before = arena->last;
    arena->last = block;
    arena->bytes += whole;
    arena->at = (char *)(block + 1);
    arena->end = arena->at + size;
    return true;
}

void *sfti_arena_take_more(sfti_arena *arena, size_t size) {
    if (size > SIZE_MAX - 7) return NULL;
    if (size == 0) size = 1;
    size = (size + 7) & ~(size_t)7;
    char *at = arena->at, *end = arena->end;
    if (size <= (size_t)(end - at)) {
        arena->at += size;
        return at;
    }
    /* Blocks grow with the arena, an eighth at a time, so that little is ever left over. */
    uint64_t eighth = arena->bytes / 8;
    size_t block = eighth < ARENA_MOST ? (size_t)eighth & ~(size_t)7 : ARENA_MOST;
    if (block < ARENA_FIRST) block = ARENA_FIRST;
    bool own = ARENA_ALONE || size > block / 2; /* its own block; the current one stays in use */
    if (!sfti_arena_reserve(arena, own ? size : block)) return NULL;
    char *fresh = arena->at;
    arena->at = own ? at : fresh + size;
    if (own) arena->end = end;
    return fresh;
}

void *sfti_arena_array(sfti_arena *arena, uint64_t count, size_t each) {
    uint64_t bytes;
    if (!sfti_mul(count, each, &bytes) || !sfti_fits_size(bytes)) return NULL;
    return sfti_arena_take_more(arena, (size_t)bytes);
}

char *sfti_arena_copy(sfti_arena *arena, const void *bytes, size_t len) {
    char *copy = len < SIZE_MAX ? sfti_arena_take(arena, len + 1) : NULL;
    if (!copy) return NULL;
    if (len > 0) memcpy(copy, bytes, len);
    copy[len] = '\0';
    return copy;
}

char *sfti_arena_join(sfti_arena *arena, sft_span a, sft_span b) {
    bool fits = a.len < SIZE_MAX / 4 && b.len < SIZE_MAX / 4;
    char *text = fits ? sfti_arena_take(arena, a.len + b.len + 1) : NULL;
    if (!text) return NULL;
    if (a.len > 0) memcpy(text, a.data, a.len);
    if (b.len > 0) memcpy(text + a.len, b.data, b.len);
    text[a.len + b.len] = '\0';
    return text;
}

/* Capacity for `more` items behind `count`; 0 when so many are not addressable. */
static size_t grown_cap(size_t count, size_t more, size_t cap, size_t each) {
    uint64_t want, bytes, grown = cap ? cap : 16;
    if (!sfti_add(count, more, &want)) return 0;
    while (grown < want && grown <= SIZE_MAX / 2) grown *= 2;
    if (grown < want || !sfti_mul(grown, each, &bytes) || !sfti_fits_size(bytes)) return 0;
    return (size_t)grown;
}

void *sfti_arena_grow(sfti_arena *arena, const void *items, size_t count, size_t more,
                      size_t *cap, size_t each) {
    if (more <= *cap - count) return (void *)(uintptr_t)items;
    size_t grown = grown_cap(count, more, *cap, each);
    void *all = grown ? sfti_arena_array(arena, grown, each) : NULL;
    if (!all) return NULL;
    if (count > 0) memcpy(all, items, count * each);
    *cap = grown;
    return all;
}

void *sfti_grow(const sft_allocator *a, void *items, size_t count, size_t more, size_t *cap,
                size_t each) {
    if (more <= *cap - count) return items;
    size_t grown = grown_cap(count, more, *cap, each);
    void *all = grown ? a->resize(a->ctx, items, *cap * each, grown * each) : NULL;
    if (all) *cap = grown;
    return all;
}

void sfti_arena_free(sfti_arena *arena) {
    for (sfti_block *block = arena->last; block;) {
        sfti_block *before = block->before;
        sfti_release(&arena->alloc, block, block->size);
        block = before;
    }
    arena->last = NULL;
    arena->at = arena->end = NULL;
    arena->bytes = 0;
}

/* ── Buffer ── */

bool sfti_buffer_reserve(sft_buffer *buffer, size_t more) {
    if (more <= buffer->cap - buffer->len) return true;
    uint64_t want, cap = buffer->cap;
    buffer->alloc = sfti_allocator(&buffer->alloc);
    if (!sfti_add(buffer->len, more, &want) || !sfti_fits_size(want)) return false;
    if (cap < 256) cap = 256;
    while (cap < want) cap += cap / 2;
    if (!sfti_fits_size(cap)) cap = want;
    char *data = buffer->alloc.resize(buffer->alloc.ctx, buffer->data, buffer->cap,
                                      (size_t)cap);
    if (!data) return false;
    buffer->data = data;
    buffer->cap = (size_t)cap;
    return true;
}

bool sfti_buffer_put(sft_buffer *buffer, const void *bytes, size_t len) {
    if (!sfti_buffer_reserve(buffer, len)) return false;
    if (len > 0) memcpy(buffer->data + buffer->len, bytes, len);
    buffer->len += len;
    return true;
}
