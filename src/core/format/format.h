/* The format itself, pure: spans in, values out, memory from the arena handed in (a plan's, from
 * the allocator of its options). No system call, clock or global. Three steps: frame (8 bytes ->
 * N), header (text -> entries with positions), model (entries -> validated tensors in offset
 * order). */
#ifndef SFTI_FORMAT_H
#define SFTI_FORMAT_H

#include "base/mem.h"
#include "base/names.h"
#include "safetensors.h"
#include "safetensors_scan.h"

#define SFTI_PREFIX 8 /* bytes before the header */

typedef struct sfti_limits {
    sft_level level;
    bool legacy;
    bool slow; /* for tests: every entry by the general path */
    uint64_t max_header_bytes, max_tensors, max_name_bytes, max_metadata; /* 0: none,
                                                    but SFT_MAX_HEADER_BYTES of the header */
} sfti_limits;

/* Step 1. size is the file's, or SFT_SIZE_UNKNOWN. On SFT_OK *header_bytes is at most
 * SFTI_MOST_HEADER, which any host of 32 bits or more can hold. */
sft_code sfti_frame(const uint8_t prefix[SFTI_PREFIX], uint64_t size,
                    const sfti_limits *limits, uint64_t *header_bytes, sft_error *err);

/* Tensors in chunks: no array grows, none is sized from a guess. While a header is read,
 * `offset` holds the hash of the name. */
#define SFTI_CHUNK 128
typedef struct sfti_tensors {
    sft_tensor **chunk;
    uint32_t *order; /* offset order -> position, or NULL when they are the same */
    size_t count;
} sfti_tensors;

static inline sft_tensor *sfti_tensor_at(const sfti_tensors *t, size_t i) {
    return &t->chunk[i / SFTI_CHUNK][i % SFTI_CHUNK];
}

/* One metadata pair, in a quarter of the bytes of two spans: where its strings begin in the
 * text, each up to the next quote; or with the high bit set, where they begin in what was
 * decoded, each after its length in 4 bytes. Headers are shorter than 2 GiB. */
#define SFTI_DECODED (UINT32_C(1) << 31)
#define SFTI_MOST_HEADER (UINT64_C(0x7FFFFFFF))
typedef struct sfti_pair {
    uint32_t key, value;
} sfti_pair;

/* A validated header. All of it lives in the arena, or in text. */
typedef struct sfti_model {
    sft_span text; /* the N header bytes */
    uint64_t data_offset, data_bytes;
    sfti_tensors tensors;
    sfti_names names; /* entry = position in header order */
    bool has_metadata;
    sfti_pair *metadata;
    const char *decoded;
    size_t metadata_count;
    sfti_names keys;
} sfti_model;

/* Told of everything in a header that is looked at rather than opened: each finding at
 * the level, remarks, and each entry as spelled. Reading goes on after a finding wherever
 * the grammar allows it. */
typedef struct sfti_watch {
    void *ctx;
    void (*finding)(void *ctx, const sft_error *error);
    void (*note)(void *ctx, const char *name, const sft_error *error);
    void (*entry)(void *ctx, const sft_scan_entry *entry);
} sfti_watch;

/* Steps 2 and 3 over the header's text. size as in sfti_frame; seed keys the tables;
 * watch NULL when opening. The first failure is returned in either case. */
sft_code sfti_model_read(sft_span text, uint64_t size, const sfti_limits *limits,
                         const uint64_t seed[2], const sfti_watch *watch,
                         sfti_arena *arena, sfti_model *out, sft_error *err);
/* The entry whose name begins at that byte of the text, which a watch was told of. */
sft_scan_entry sfti_entry_spelled(sft_span text, size_t at);
/* i in offset order. */
const sft_tensor *sfti_model_tensor(const sfti_model *model, size_t i);
/* The index of a tensor of this model, by identity; SIZE_MAX if it is not one. */
size_t sfti_model_index(const sfti_model *model, const sft_tensor *tensor);
/* By name; NULL when there is none. */
const sft_tensor *sfti_model_find(const sfti_model *model, sft_span name);
sft_pair sfti_model_pair(const sfti_model *model, size_t i);
/* Index of the pair, or SIZE_MAX. */
size_t sfti_model_metadata_find(const sfti_model *model, sft_span key);

/* Equal runs (of runs->run_bytes) at equal distances, in result order. */
typedef struct sfti_row {
    uint64_t offset, count;
    int64_t stride;
} sfti_row;
/* Take what is left of the innermost loop, at most `most` runs; false at the end. */
bool sfti_runs_row(sft_runs *runs, uint64_t most, sfti_row *out);
/* Copy the next `count` runs, packed, out of a block that holds the tensor's bytes from `first` on.
 * There are as many left. */
void sfti_runs_pick(sft_runs *runs, uint64_t count, const void *block, uint64_t first, void *dst);

/* Bytes [low, high) of a tensor, which one read takes: they hold the next `runs` runs. */
typedef struct sfti_window {
    uint64_t low, high, runs;
} sfti_window;

/* The most bytes of a window, unless a single run is longer, and whether runs with a gap between
 * them belong in one; NULL: all do. */
typedef struct sfti_window_rule {
    uint64_t span;
    bool (*joins)(uint64_t gap, uint64_t run);
} sfti_window_rule;

/* How many runs of the innermost loop fit in a window. */
uint64_t sfti_window_row(const sft_runs *runs, const sfti_window_rule *rule);
/* The window of the next runs, at most `most` of them; empty at the end. */
sfti_window sfti_window_next(const sft_runs *runs, const sfti_window_rule *rule, uint64_t most);

/* ── Plans: what a writer needs of them beyond the public calls ── */

/* As sft_plan_new for the specs of parts, which outlive the plan: nothing of them is copied. */
sft_code sfti_plan_parts(const sft_part *parts, size_t count, const sft_pair *metadata,
                         size_t metadata_count, const sft_plan_options *options, sft_plan **out,
                         sft_error *err);

/* The allocator the plan was made with, for what is made for the plan. */
const sft_allocator *sfti_plan_allocator(const sft_plan *plan);
/* Bytes of a tensor's entry in the header's text, without a comma. */
uint64_t sfti_plan_entry(const sft_tensor *tensor);

#endif
