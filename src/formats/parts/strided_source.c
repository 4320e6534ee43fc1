/* Tensors whose elements stand at strides, big-endian, or are to be conjugated or negated: blocks
 * of up to SFTI_WORK_BYTES are put together in the workspace and served from there.
 *
 * A block is a box of the tensor: one index of each outer dimension, `rows` of dimension `split`,
 * and all of the inner ones. Its elements are read in the order in which they are stored (runs of
 * the dimension with the least stride) into work.in, and put in row-major order into work.out.
 * Tests: test_import_view.c. */
#include "base/announce.h"
#include "formats/parts/state.h"

#include <string.h>

#define GAP_BYTES 512 /* elements nearer than this are read with what stands between them */

typedef struct view_source {
    const sft_source *from; /* first: see sfti_mode_inner */
    sfti_import *im;
    uint64_t begin;
    uint32_t rank;          /* of dimensions larger than 1 */
    uint64_t *count, *stride; /* elements */
    uint32_t width;         /* bytes of an element */
    uint32_t part_width;    /* of a half of a complex number, else the same */
    uint32_t split;
    uint64_t rows;          /* of dimension split in a block */
    uint64_t block;         /* bytes of a full block */
    uint64_t inner;         /* bytes of one row */
    uint8_t swap;
    bool conj, neg, is_integer;
} view_source;

/* A block as it lies in work.in: along each dimension `count` elements, `in` bytes apart. */
typedef struct view_box {
    uint64_t count[SFT_MAX_RANK], in[SFT_MAX_RANK];
    uint64_t from;  /* byte of the source where its first element is */
    uint64_t bytes; /* of work.in that are used */
} view_box;

/* ── Reading the box ── */

/* Order of reading: dims[0] is the innermost. Those of stride 0 are not read again. */
static uint32_t order_dimensions(const view_source *v, const view_box *box, uint32_t *dims) {
    uint64_t done = 0;
    uint32_t count = 0;
    for (;; count++) {
        uint32_t best = v->rank; /* the least stride of those that are not read yet */
        for (uint32_t d = v->split; d < v->rank; d++) {
            if (done >> d & 1 || box->count[d] == 1 || v->stride[d] == 0) continue;
            if (best == v->rank || v->stride[d] < v->stride[best]) best = d;
        }
        if (best == v->rank) return count;
        dims[count] = best;
        done |= UINT64_C(1) << best;
    }
}

/* How many of dims can be read at once, `gaps` allowing for what stands between their elements;
 * *run their bytes. box->in is set for them. */
static uint32_t melt(const view_source *v, view_box *box, const uint32_t *dims, uint32_t count,
                     bool gaps, uint64_t *run) {
    uint32_t melted = 0;
    *run = v->width;
    for (; melted < count; melted++) {
        uint32_t d = dims[melted];
        uint64_t step = v->stride[d] * v->width, span;
        bool near = step == *run || (gaps && (step <= *run + GAP_BYTES || step <= *run * 2));
        if (!near || !sfti_mul(box->count[d] - 1, step, &span) || !sfti_add(span, *run, &span)
            || span > SFTI_WORK_BYTES)
            break;
        box->in[d] = step;
        *run = span;
    }
    return melted;
}

/* Lays the box out in work.in: `melted` of dims are one run. Without gaps it takes as many bytes
 * as its elements have. */
static uint32_t lay_box(const view_source *v, view_box *box, const uint32_t *dims, uint32_t count,
                        bool gaps, uint64_t *run) {
    uint32_t melted = melt(v, box, dims, count, gaps, run);
    box->bytes = *run;
    for (uint32_t i = melted; i < count; i++) {
        box->in[dims[i]] = box->bytes;
        if (!sfti_mul(box->bytes, box->count[dims[i]], &box->bytes)) box->bytes = UINT64_MAX;
    }
    return melted;
}

/* ── Packing it ── */

#define PACK(type)                                                                            \
    for (uint64_t i = 0; i < rows; i++)                                                       \
        for (uint64_t j = 0; j < columns; j++)                                                \
            memcpy(out + i * out_step + j * sizeof(type), in + i * row + j * column,          \
                   sizeof(type))

/* A tile of a plane. */
static void pack_tile(uint8_t *out, uint64_t out_step, const uint8_t *in, uint64_t row,
                      uint64_t column, uint64_t rows, uint64_t columns, uint32_t width) {
    switch (width) {
    case 1: PACK(uint8_t); break;
    case 2: PACK(uint16_t); break;
    case 4: PACK(uint32_t); break;
    default: PACK(uint64_t); break;
    }
}

#define TILE ((uint64_t)32)

/* rows x columns elements: the last dimension of the tensor, and the one whose elements stand
 * nearest in work.in. */
static void pack_plane(const view_source *v, uint8_t *out, uint64_t out_step, const uint8_t *in,
                       uint64_t row, uint64_t column, uint64_t rows, uint64_t columns) {
    if (column == v->width) {
        for (uint64_t i = 0; i < rows; i++)
            memcpy(out + i * out_step, in + i * row, (size_t)(columns * v->width));
        return;
    }
    for (uint64_t i = 0; i < rows; i += TILE) {
        for (uint64_t j = 0; j < columns; j += TILE) {
            uint64_t m = rows - i < TILE ? rows - i : TILE;
            uint64_t n = columns - j < TILE ? columns - j : TILE;
            pack_tile(out + i * out_step + j * v->width, out_step, in + i * row + j * column, row,
                      column, m, n, v->width);
        }
    }
}

static void pack_box(const view_source *v, const view_box *box) {
    uint32_t last = v->rank - 1, plane = v->rank;
    for (uint32_t d = v->split; d < last; d++) /* the nearest in work.in */
        if (box->count[d] > 1 && (plane == v->rank || box->in[d] < box->in[plane])) plane = d;
    uint64_t step[SFT_MAX_RANK], at[SFT_MAX_RANK] = { 0 }, planes = 1, in = 0, out = 0;
    uint64_t bytes = v->width;
    for (uint32_t d = v->rank; d-- > v->split;) {
        step[d] = bytes;
        bytes *= box->count[d];
        if (d != last && d != plane) planes *= box->count[d];
    }
    for (uint64_t n = 0; n < planes; n++) {
        bool rows = plane < v->rank;
        pack_plane(v, v->im->work.out + out, rows ? step[plane] : 0, v->im->work.in + in,
                   rows ? box->in[plane] : 0, box->in[last], rows ? box->count[plane] : 1,
                   box->count[last]);
        for (uint32_t d = v->rank; d-- > v->split;) {
            if (d == last || d == plane) continue;
            in += box->in[d];
            out += step[d];
            if (++at[d] < box->count[d]) break;
            in -= box->in[d] * at[d];
            out -= step[d] * at[d];
            at[d] = 0;
        }
    }
}

/* ── What becomes of elements ── */

static void swap_bytes(uint8_t *bytes, size_t len, uint8_t width) {
    for (size_t i = 0; i + width <= len; i += width)
        for (uint8_t a = 0, b = (uint8_t)(width - 1); a < b; a++, b--) {
            uint8_t kept = bytes[i + a];
            bytes[i + a] = bytes[i + b];
            bytes[i + b] = kept;
        }
}

/* The sign of every float of `width` bytes, or of the second half of each pair. */
static void flip_signs(uint8_t *bytes, size_t len, uint32_t width, bool second) {
    for (size_t i = second ? width : 0; i + width <= len; i += second ? 2 * width : width)
        bytes[i + width - 1] ^= 0x80;
}

static void negate_integers(uint8_t *bytes, size_t len, uint32_t width) {
    for (size_t i = 0; i + width <= len; i += width) {
        unsigned carry = 1;
        for (uint32_t b = 0; b < width; b++) {
            carry += (unsigned)(uint8_t)~bytes[i + b];
            bytes[i + b] = (uint8_t)carry;
            carry >>= 8;
        }
    }
}

/* ── The source ── */

/* The box of block n. */
static void place_box(const view_source *v, uint64_t n, view_box *box) {
    uint64_t blocks = (v->count[v->split] + v->rows - 1) / v->rows;
    uint64_t first = n % blocks * v->rows, left = v->count[v->split] - first;
    box->from = v->begin + first * v->stride[v->split] * v->width;
    n /= blocks;
    for (uint32_t d = v->split; d-- > 0; n /= v->count[d])
        box->from += n % v->count[d] * v->stride[d] * v->width;
    for (uint32_t d = v->split; d < v->rank; d++) box->count[d] = v->count[d];
    box->count[v->split] = left < v->rows ? left : v->rows;
}

/* Has the block in work.out that holds byte `offset`. */
static sft_code view_fill(view_source *v, uint64_t offset, sft_error *err) {
    sfti_workspace *work = &v->im->work;
    if (work->of == v && offset >= work->begin && offset - work->begin < work->len) return SFT_OK;
    uint64_t dimension = v->inner * v->count[v->split], outer = offset / dimension;
    uint64_t inside = offset % dimension / v->block;
    uint64_t blocks = (v->count[v->split] + v->rows - 1) / v->rows;
    view_box box;
    place_box(v, outer * blocks + inside, &box);
    work->of = NULL;

    uint32_t dims[SFT_MAX_RANK], count = order_dimensions(v, &box, dims);
    uint64_t run, at[SFT_MAX_RANK] = { 0 }, from = box.from;
    memset(box.in, 0, sizeof box.in);
    uint32_t melted = lay_box(v, &box, dims, count, true, &run);
    if (box.bytes > SFTI_WORK_BYTES) melted = lay_box(v, &box, dims, count, false, &run);
    for (uint64_t to = 0; to < box.bytes; to += run) {
        sft_code code = sfti_import_exact(v->from, from, v->im->work.in + to, (size_t)run, err);
        if (code) return code;
        for (uint32_t i = melted; i < count; i++) {
            uint32_t d = dims[i];
            uint64_t step = v->stride[d] * v->width;
            from += step;
            if (++at[d] < box.count[d]) break;
            from -= step * at[d];
            at[d] = 0;
        }
    }

    pack_box(v, &box);
    work->of = v;
    work->begin = outer * dimension + inside * v->block;
    work->len = (size_t)(box.count[v->split] * v->inner);
    if (v->swap) swap_bytes(work->out, work->len, v->swap);
    if (v->conj) flip_signs(work->out, work->len, v->part_width, true);
    if (v->neg && v->is_integer) negate_integers(work->out, work->len, v->width);
    else if (v->neg) flip_signs(work->out, work->len, v->part_width, false);
    return SFT_OK;
}

static sft_code read_view(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                          sft_error *err) {
    view_source *v = ctx;
    *got = 0;
    sft_code code = sfti_work_begin(v->im, err);
    if (code) return code;
    while (!code && *got < len) {
        const sfti_workspace *work = &v->im->work;
        code = view_fill(v, offset + *got, err);
        if (code) break;
        size_t skip = (size_t)(offset + *got - work->begin), some = work->len - skip;
        if (some > len - *got) some = len - *got;
        memcpy((char *)into + *got, work->out + skip, some);
        *got += some;
    }
    sfti_work_end(v->im);
    return code;
}

/* A tensor that is read whole: from its first element to its last, unless most of that is
 * none of it. */
static void expect_view(void *ctx, const sft_run *runs, size_t count) {
    const view_source *v = ctx;
    sfti_announcement all = { .count = 0 };
    uint64_t last = 0, bytes = v->width;
    for (uint32_t d = 0; d < v->rank; d++) {
        last += (v->count[d] - 1) * v->stride[d];
        bytes *= v->count[d];
    }
    uint64_t extent = (last + 1) * v->width;
    if (count > 0 && runs->offset == 0 && runs->len == bytes && extent / 2 <= bytes)
        sfti_announce(&all, v->from, v->begin, extent);
    sfti_announce_end(&all);
}

static const sft_source_vtable view_source_vtable = {
    sizeof(sft_source_vtable), read_view, NULL, expect_view, sfti_mode_inner
};

/* Dimensions of one element are none; a tensor of one element has one dimension. */
static sft_code take_dimensions(sfti_import *im, view_source *v, const sfti_item *item) {
    v->count = sfti_arena_array(&im->arena, item->rank + 1, sizeof *v->count);
    v->stride = sfti_arena_array(&im->arena, item->rank + 1, sizeof *v->stride);
    if (!v->count || !v->stride) return sfti_fail_memory(im->err, item->rank * sizeof *v->count);
    uint64_t packed = 1;
    for (uint32_t d = item->rank; d-- > 0; packed *= item->shape[d]) {
        if (item->shape[d] == 1) continue;
        v->rank++;
        v->count[item->rank - v->rank] = item->shape[d];
        v->stride[item->rank - v->rank] = item->strides ? item->strides[d] : packed;
    }
    v->count += item->rank - v->rank;
    v->stride += item->rank - v->rank;
    if (v->rank > 0) return SFT_OK;
    v->rank = 1;
    v->count[0] = v->stride[0] = 1;
    return SFT_OK;
}

sft_code sfti_view_source(sfti_import *im, const sfti_item *item, const sft_source **out) {
    const sft_dtype_info *dtype = sft_dtype_describe(item->dtype);
    view_source *v = sfti_arena_take(&im->arena, sizeof *v);
    uint64_t bytes;
    if (!v) return sfti_fail_memory(im->err, sizeof *v);
    if (dtype->bits % 8 != 0)
        return sfti_fail_tensor(im->err, SFT_FOREIGN_DTYPE, item->at, item->name,
                                "expected %s packed in row-major order, found strides",
                                dtype->name);
    sft_code code = sft_shape_size(item->dtype, item->shape, item->rank, NULL, &bytes, im->err);
    if (code) return code;
    uint32_t width = dtype->bits / 8;
    *v = (view_source){ .im = im, .from = item->source, .begin = item->begin, .width = width,
                        .swap = item->swap, .conj = item->conj, .neg = item->neg,
                        .is_integer = dtype->kind == SFT_KIND_INT || dtype->kind == SFT_KIND_UINT,
                        .part_width = dtype->kind == SFT_KIND_COMPLEX ? width / 2 : width };
    code = take_dimensions(im, v, item);
    if (code) return code;

    /* As many rows as fit into the workspace, both as they are read and as they are written. */
    view_box box = { .from = 0 };
    v->inner = v->width;
    v->split = v->rank - 1;
    while (v->split > 0 && v->inner * v->count[v->split] <= SFTI_WORK_BYTES)
        v->inner *= v->count[v->split--];
    v->rows = SFTI_WORK_BYTES / v->inner;
    if (v->rows > v->count[v->split]) v->rows = v->count[v->split];
    for (;; v->rows /= 2) {
        for (uint32_t d = v->split; d < v->rank; d++) box.count[d] = v->count[d];
        box.count[v->split] = v->rows;
        if (v->rows == 1) break;
        uint32_t dims[SFT_MAX_RANK], count = order_dimensions(v, &box, dims);
        uint64_t run;
        memset(box.in, 0, sizeof box.in);
        (void)lay_box(v, &box, dims, count, true, &run);
        if (box.bytes <= SFTI_WORK_BYTES) break;
    }
    v->block = v->rows * v->inner;

    sft_source source = { v, &view_source_vtable, bytes, NULL, false };
    return sfti_import_own(im, &source, out);
}
