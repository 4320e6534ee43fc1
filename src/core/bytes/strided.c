/* A source of elements that lie apart in memory. Tests: test_strided.c. */
#include "base/checked.h"
#include "base/mem.h"
#include "bytes/source.h"
#include "safetensors_io.h"

#include <string.h>

/* Elements in memory at distances, as one row of packed bytes. Dimensions that follow one
 * another without a hole are one; those of one element are none. */
typedef struct strided {
    sft_allocator alloc;
    const char *base;
    uint64_t run; /* bytes that lie together, at the innermost */
    uint32_t rank;
    uint64_t count[SFT_MAX_RANK];
    int64_t stride[SFT_MAX_RANK]; /* bytes */
} strided;

/* Where run number n begins. */
static const char *run_at(const strided *s, uint64_t n) {
    const char *at = s->base;
    for (uint32_t d = s->rank; d-- > 0; n /= s->count[d])
        at += (ptrdiff_t)(n % s->count[d]) * (ptrdiff_t)s->stride[d];
    return at;
}

#define PACK_RUNS(width) \
    for (uint64_t i = 0; i < count; i++) memcpy(to + i * (width), at + (ptrdiff_t)i * step, (width))

static sft_code read_strided(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                             sft_error *err) {
    const strided *s = ctx;
    (void)err;
    for (*got = 0; *got < len;) {
        char *to = (char *)into + *got;
        uint64_t n = (offset + *got) / s->run, inside = (offset + *got) % s->run;
        const char *at = run_at(s, n);
        if (inside != 0 || len - *got < s->run) {
            /* A piece of one run, to begin or to end with. */
            uint64_t left = s->run - inside;
            size_t piece = left < len - *got ? (size_t)left : len - *got;
            memcpy(to, at + inside, piece);
            *got += piece;
            continue;
        }
        /* Runs that lie in one row of the innermost dimension. */
        uint64_t inner = s->rank ? s->count[s->rank - 1] : 1, whole = (len - *got) / s->run;
        uint64_t count = inner - n % inner;
        ptrdiff_t step = s->rank ? (ptrdiff_t)s->stride[s->rank - 1] : 0;
        if (count > whole) count = whole;
        switch (s->run) {
        case 1: PACK_RUNS(1); break;
        case 2: PACK_RUNS(2); break;
        case 4: PACK_RUNS(4); break;
        case 8: PACK_RUNS(8); break;
        default: PACK_RUNS((size_t)s->run); break;
        }
        *got += (size_t)(count * s->run);
    }
    return SFT_OK;
}

static void close_strided(void *ctx) {
    strided *s = ctx;
    sft_allocator alloc = s->alloc;
    sfti_release(&alloc, s, sizeof *s);
}

/* Innermost first: a dimension whose stride is what the inner ones fill becomes part of the
 * run, or of the dimension before. */
static void strided_fold(strided *s, const uint64_t *shape, const int64_t *strides,
                         uint32_t rank) {
    uint32_t at = SFT_MAX_RANK;
    for (uint32_t d = rank; d-- > 0;) {
        bool inner = at == SFT_MAX_RANK;
        if (shape[d] == 1) continue;
        if (inner && strides[d] >= 0 && (uint64_t)strides[d] == s->run) {
            s->run *= shape[d];
        } else if (!inner && (uint64_t)strides[d] == (uint64_t)s->stride[at] * s->count[at]) {
            s->count[at] *= shape[d];
        } else {
            s->count[--at] = shape[d];
            s->stride[at] = strides[d];
        }
    }
    s->rank = SFT_MAX_RANK - at;
    memmove(s->count, s->count + at, s->rank * sizeof *s->count);
    memmove(s->stride, s->stride + at, s->rank * sizeof *s->stride);
}

static sft_code check_strided(sft_dtype dtype, const uint64_t *shape, uint32_t rank,
                              const void *base, const int64_t *strides, uint64_t *bytes,
                              sft_error *err) {
    if (rank > SFT_MAX_RANK || (rank > 0 && (!shape || !strides)))
        return sfti_misuse(err, "expected a shape and strides of at most 64 dimensions, found %s",
                           rank > SFT_MAX_RANK ? "more" : "NULL");
    sft_code code = sft_shape_size(dtype, shape, rank, NULL, bytes, err);
    if (code) return code;
    if (sft_dtype_describe(dtype)->bits % 8 != 0)
        return sfti_misuse(err, "expected elements of whole bytes to have strides, found %s",
                           sft_dtype_describe(dtype)->name);
    if (*bytes == 0) return SFT_OK;
    if (!base) return sfti_misuse(err, "expected memory, found NULL");
    /* Each distance from the first element is one that a pointer can have. */
    uint64_t reach = 0, far;
    bool fits = true;
    for (uint32_t d = 0; d < rank && fits; d++) {
        uint64_t step = strides[d] < 0 ? 0 - (uint64_t)strides[d] : (uint64_t)strides[d];
        fits = sfti_mul(shape[d] - 1, step, &far) && sfti_add(reach, far, &reach);
    }
    if (fits && sfti_fits_size(reach)) return SFT_OK;
    return sfti_fail(err, SFT_ADDRESS_SPACE,
                     "expected strides within the address space, found larger ones");
}

static const sft_source_vtable strided_source_vtable = {
    sizeof(sft_source_vtable), read_strided, close_strided, NULL, NULL
};

sft_code sft_source_strided(sft_dtype dtype, const uint64_t *shape, uint32_t rank,
                            const void *base, const int64_t *strides,
                            const sft_allocator *alloc, sft_source *out, sft_error *err) {
    sft_allocator own = sfti_allocator(alloc);
    uint64_t bytes = 0;
    if (!out) return sfti_misuse(err, "expected a place for the source, found NULL");
    memset(out, 0, sizeof *out);
    sft_code code = check_strided(dtype, shape, rank, base, strides, &bytes, err);
    if (code) return code;
    strided *s = sfti_take(&own, sizeof *s);
    if (!s) return sfti_fail_memory(err, sizeof *s);
    memset(s, 0, sizeof *s);
    s->alloc = own;
    s->base = base;
    s->run = sft_dtype_describe(dtype)->bits / 8;
    if (bytes > 0) strided_fold(s, shape, strides, rank);
    sft_source source = { s, &strided_source_vtable, bytes, s->run == bytes ? base : NULL, false };
    *out = source;
    return SFT_OK;
}
