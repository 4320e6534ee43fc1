/* Counting NaN and infinities of a model (check --deep). Tests: test_nonfinite.c. */
#include "base/checked.h"
#include "base/endian.h"
#include "base/error.h"
#include "base/job.h"
#include "base/number.h"
#include "base/options.h"
#include "set/set.h"
#include "safetensors_io.h"
#include "safetensors_report.h"

#include <string.h>

#define DEEP_WINDOW ((size_t)1 << 20)

/* ── Which bits are NaN or infinity ── */

/* Masked bits from first to last are NaN, inf is infinity (DEEP_NO_INF if the dtype has none).
 * bytes 0: the dtype has neither. */
typedef struct deep_bits {
    uint32_t bytes;
    uint64_t mask, first, last, inf;
} deep_bits;

#define DEEP_NO_INF UINT64_MAX

/* With the sign masked off NaN and infinity are the greatest values. */
static deep_bits deep_bits_of(sft_dtype dtype) {
    const sfti_float_form *form = sfti_float_form_of(dtype);
    unsigned bits = sfti_float_bits(form);
    deep_bits row = { 0, 0, 0, 0, DEEP_NO_INF };
    if (bits < 8 || form->specials == SFTI_NO_SPECIALS) return row;
    uint64_t all = UINT64_MAX >> (64 - bits), sign = form->sign ? all ^ all >> 1 : 0;
    row.bytes = bits / 8;
    row.mask = row.first = row.last = all ^ sign;
    if (form->specials == SFTI_NAN_IS_NEG0) {
        row.mask = all;
        row.first = row.last = sign;
    } else if (form->specials == SFTI_WITH_INF) {
        row.inf = row.mask ^ ((UINT64_C(1) << form->mantissa) - 1);
        row.first = row.inf + 1;
    }
    return row;
}

/* ── Counting, element by element ── */

static uint64_t deep_lane(const uint8_t *at, uint32_t bytes) {
    switch (bytes) {
    case 1: return *at;
    case 2: return sfti_get_u16(at);
    case 4: return sfti_get_u32(at);
    default: return sfti_get_u64(at);
    }
}

static inline bool deep_is_nan(const deep_bits *row, uint64_t bits) {
    return bits >= row->first && bits <= row->last;
}

static void deep_count_plain(const deep_bits *row, const uint8_t *at, size_t len, uint64_t *nan,
                             uint64_t *inf) {
    for (size_t i = 0; i < len; i += row->bytes) {
        uint64_t bits = deep_lane(at + i, row->bytes) & row->mask;
        *nan += deep_is_nan(row, bits);
        *inf += bits == row->inf;
    }
}

/* An element is NaN, or infinite, when one of its halves is; it may be both. */
static void deep_count_complex(const deep_bits *row, const uint8_t *at, size_t len,
                               uint64_t *nan, uint64_t *inf) {
    for (size_t i = 0; i < len; i += 8) {
        uint64_t re = sfti_get_u32(at + i) & row->mask, im = sfti_get_u32(at + i + 4) & row->mask;
        *nan += deep_is_nan(row, re) || deep_is_nan(row, im);
        *inf += re == row->inf || im == row->inf;
    }
}

/* ── Skipping blocks without NaN or infinity ── */

#define DEEP_BLOCK 64

/* A test that sets the high bit of every lane of a word that may hold a value to count. With the
 * sign masked off, NaN and infinity are the greatest values: `add` carries the least of them
 * into the high bit. If a single pattern is NaN, the XOR with it leaves a zero lane instead. */
typedef struct deep_sieve {
    uint64_t keep, add, ones, high;
    bool exact;
} deep_sieve;

static inline bool deep_block_has(const deep_sieve *sieve, const uint8_t *at) {
    uint64_t any = 0;
    for (int i = 0; i < DEEP_BLOCK; i += 8) {
        uint64_t word = sfti_get_u64(at + i);
        if (sieve->exact) {
            word ^= sieve->add;
            any |= (word - sieve->ones) & ~word;
        } else {
            any |= (word & sieve->keep) + sieve->add;
        }
    }
    return any & sieve->high;
}

/* len bytes of whole elements. */
static void deep_count(sft_dtype dtype, const uint8_t *at, size_t len, uint64_t *nan,
                       uint64_t *inf) {
    const deep_bits bits = deep_bits_of(dtype), *row = &bits;
    if (row->bytes == 0) return;
    void (*count)(const deep_bits *, const uint8_t *, size_t, uint64_t *, uint64_t *) =
        dtype == SFT_C64 ? deep_count_complex : deep_count_plain;
    uint64_t lane = UINT64_MAX >> (64 - 8 * row->bytes), top = lane ^ lane >> 1;
    uint64_t least = row->inf < row->first ? row->inf : row->first;
    deep_sieve sieve = { .ones = UINT64_MAX / lane, .exact = row->mask == lane };
    sieve.high = top * sieve.ones;
    sieve.keep = row->mask * sieve.ones;
    sieve.add = (sieve.exact ? row->first : top - least) * sieve.ones;
    while (len >= DEEP_BLOCK) {
        if (deep_block_has(&sieve, at)) count(row, at, DEEP_BLOCK, nan, inf);
        at += DEEP_BLOCK;
        len -= DEEP_BLOCK;
    }
    count(row, at, len, nan, inf);
}

/* ── Walking ── */

typedef struct deep_walk {
    sft_deep_counts *out;
    const sft_job *job;
    uint8_t *window; /* bytes [from, from + len) of one file's data */
    size_t cap;
    uint64_t from;
    size_t len;
    uint64_t done, total;
    uint64_t nan, inf; /* counts of the current tensor */
    sft_error *err;
} deep_walk;

static sft_code deep_tick(const deep_walk *walk) {
    return sfti_job_tick(walk->job, walk->done, walk->total, walk->err);
}

static sft_code deep_tensor(deep_walk *walk, const sft_file *file, const sft_tensor *tensor,
                            uint64_t index) {
    uint64_t at = tensor->begin;
    walk->nan = walk->inf = 0;
    while (at < tensor->end) {
        uint64_t end = walk->from + walk->len, need = tensor->end - at < 8 ? tensor->end - at : 8;
        if (at < walk->from || at + need > end) {
            uint64_t left = sft_file_data_bytes(file) - at;
            walk->from = at;
            walk->len = left < walk->cap ? (size_t)left : walk->cap;
            sft_code code = sft_read_bytes(file, sft_file_data_offset(file) + at, walk->window,
                                           walk->len, walk->err);
            if (!code) code = deep_tick(walk);
            if (code) return code;
            end = walk->from + walk->len;
        }
        /* Whole elements, to the end of the window. */
        uint64_t part = (tensor->end < end ? tensor->end : end) - at;
        if (at + part < tensor->end) part &= ~UINT64_C(7);
        deep_count(tensor->dtype, walk->window + (at - walk->from), (size_t)part, &walk->nan,
                   &walk->inf);
        at += part;
        walk->done += part;
    }
    sft_deep_counts *out = walk->out;
    sft_kind kind = sft_dtype_describe(tensor->dtype)->kind;
    uint64_t values = 0;
    if (kind != SFT_KIND_FLOAT && kind != SFT_KIND_COMPLEX) return SFT_OK;
    if (sft_shape_size(tensor->dtype, tensor->shape, tensor->rank, &values, NULL, NULL))
        values = 0;
    out->tensors++;
    sfti_total_add(&out->values, values);
    out->nan += walk->nan;
    out->inf += walk->inf;
    out->tensors_with_nan += walk->nan > 0;
    out->tensors_with_inf += walk->inf > 0;
    if (walk->nan > 0 && out->first_nan_tensor == UINT64_MAX) out->first_nan_tensor = index;
    if (walk->inf > 0 && out->first_inf_tensor == UINT64_MAX) out->first_inf_tensor = index;
    return SFT_OK;
}

static sft_code deep_file(deep_walk *walk, const sft_file *file, uint64_t *index) {
    sft_source source = sft_file_source(file);
    sft_run all = { sft_file_data_offset(file), sft_file_data_bytes(file) };
    sft_source_expect(&source, &all, all.len > 0);
    walk->from = 0;
    walk->len = 0;
    for (size_t i = 0; i < sft_file_tensor_count(file); i++) {
        sft_code code = deep_tensor(walk, file, sft_file_tensor_at(file, i), (*index)++);
        if (code) return code;
    }
    return SFT_OK;
}

static void deep_clear(sft_deep_counts *out) {
    memset(out, 0, sizeof *out);
    out->first_nan_tensor = out->first_inf_tensor = UINT64_MAX;
}

sft_code sft_set_check_deep(const sft_set *set, sft_deep_counts *out, const sft_job *job,
                            sft_error *err) {
    const sft_allocator *alloc = &set->arena.alloc;
    sft_job own;
    deep_walk walk = { .out = out, .job = &own, .cap = DEEP_BLOCK, .err = err };
    uint64_t index = 0;
    deep_clear(out);
    sft_code code = sfti_take_job(job, &own, err);
    if (code) return code;
    for (size_t s = 0; s < set->shard_count; s++) {
        uint64_t bytes = sft_file_data_bytes(set->files[s]);
        walk.total += bytes;
        if (bytes > walk.cap) walk.cap = bytes < DEEP_WINDOW ? (size_t)bytes : DEEP_WINDOW;
    }
    walk.window = sfti_take(alloc, walk.cap);
    if (!walk.window) return sfti_fail_memory(err, walk.cap);
    for (size_t s = 0; !code && s < set->shard_count; s++)
        code = deep_file(&walk, set->files[s], &index);
    if (!code) code = deep_tick(&walk);
    sfti_release(alloc, walk.window, walk.cap);
    if (code) deep_clear(out);
    return code;
}
