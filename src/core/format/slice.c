/* Slices: index expressions resolved against shapes, and the byte runs they select.
 * Tests: test_slice.c. */
#include "base/checked.h"
#include "base/error.h"
#include "format/format.h"

#include <string.h>

#define PARTS_MAX (SFT_MAX_RANK + 1) /* every dimension and an ellipsis */

static uint64_t magnitude(int64_t value) {
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

/* ── Resolving ───────────────────────────────────────────────────────────── */

/* Elements of a dimension that lie before index `value`, 0 to dim. */
static uint64_t elements_before(int64_t value, uint64_t dim) {
    uint64_t size = magnitude(value);
    if (value < 0) return size > dim ? 0 : dim - size;
    return size < dim ? size : dim;
}

/* Elements up to and including index `value`: for walking backwards. */
static uint64_t elements_through(int64_t value, uint64_t dim) {
    uint64_t size = magnitude(value);
    if (value < 0) return size > dim ? 0 : dim - size + 1;
    return size < dim ? size + 1 : dim;
}

static sft_code resolve_range(const sft_slice_part *part, uint32_t d, uint64_t dim,
                              sft_range *out, sft_error *err) {
    out->step = part->has_step ? part->step : 1;
    if (out->step == 0)
        return sfti_fail(err, SFT_SLICE_STEP, "expected a step other than 0 in dimension %u",
                         (unsigned)d);
    bool forward = out->step > 0;
    uint64_t start = forward ? 0 : dim, stop = forward ? dim : 0;
    if (part->has_start)
        start = forward ? elements_before(part->start, dim) : elements_through(part->start, dim);
    if (part->has_stop)
        stop = forward ? elements_before(part->stop, dim) : elements_through(part->stop, dim);
    uint64_t low = forward ? start : stop, high = forward ? stop : start;
    out->count = low < high ? (high - low - 1) / magnitude(out->step) + 1 : 0;
    out->start = out->count ? start - !forward : 0;
    return SFT_OK;
}

static sft_code resolve_int(const sft_slice_part *part, uint32_t d, uint64_t dim,
                            sft_range *out, sft_error *err) {
    uint64_t size = magnitude(part->value);
    if (part->value < 0 ? size > dim : size >= dim)
        return sfti_fail(err, SFT_SLICE_BOUNDS,
                         "expected an index inside dimension %u of %llu elements, found %lld",
                         (unsigned)d, (unsigned long long)dim, (long long)part->value);
    out->start = part->value < 0 ? dim - size : size;
    out->count = 1;
    out->step = 1;
    return SFT_OK;
}

static void whole_ranges(const uint64_t *shape, uint32_t from, uint32_t to, sft_slice *out) {
    for (uint32_t d = from; d < to; d++) out->range[d] = (sft_range){ 0, shape[d], 1 };
}

/* Counts the parts that stand for one dimension each; at most one part may be an ellipsis. */
static sft_code count_parts(const sft_slice_part *parts, size_t count, uint32_t rank,
                            uint32_t *given, sft_error *err) {
    size_t ellipses = 0;
    for (size_t i = 0; i < count; i++) {
        if ((unsigned)parts[i].kind > SFT_SLICE_PART_ELLIPSIS)
            return sfti_misuse(err, "expected a known kind in part %zu of the index, found %u", i,
                               (unsigned)parts[i].kind);
        ellipses += parts[i].kind == SFT_SLICE_PART_ELLIPSIS;
    }
    if (ellipses > 1)
        return sfti_fail(err, SFT_SLICE_SYNTAX, "expected at most one ellipsis, found %zu",
                         ellipses);
    if (count - ellipses > rank)
        return sfti_fail(err, SFT_SLICE_RANK,
                         "expected at most %u indexes, one for each dimension, found %zu",
                         (unsigned)rank, count - ellipses);
    *given = (uint32_t)(count - ellipses);
    return SFT_OK;
}

static sft_code check_rank(uint32_t rank, sft_error *err) {
    if (rank <= SFT_MAX_RANK) return SFT_OK;
    return sfti_fail(err, SFT_SLICE_RANK, "expected at most %u dimensions in a slice, found %u",
                     (unsigned)SFT_MAX_RANK, (unsigned)rank);
}

static sft_code resolve_parts(const uint64_t *shape, const sft_slice_part *parts, size_t count,
                              uint32_t given, sft_slice *out, sft_error *err) {
    uint32_t d = 0;
    sft_code code = SFT_OK;
    for (size_t i = 0; i < count && !code; i++) {
        const sft_slice_part *part = &parts[i];
        if (part->kind == SFT_SLICE_PART_ELLIPSIS) {
            whole_ranges(shape, d, d + out->rank - given, out);
            d += out->rank - given;
        } else if (part->kind == SFT_SLICE_PART_INDEX) {
            code = resolve_int(part, d, shape[d], &out->range[d], err);
            out->dropped |= UINT64_C(1) << d++;
        } else {
            code = resolve_range(part, d, shape[d], &out->range[d], err);
            d++;
        }
    }
    if (!code) whole_ranges(shape, d, out->rank, out);
    return code;
}

sft_code sft_slice_resolve(const uint64_t *shape, uint32_t rank, const sft_slice_part *parts,
                           size_t count, sft_slice *out, sft_error *err) {
    if (!out || (!shape && rank) || (!parts && count))
        return sfti_misuse(err, "expected a shape, index parts and a slice to fill, found NULL");
    memset(out, 0, sizeof *out);
    uint32_t given = 0;
    sft_code code = check_rank(rank, err);
    if (!code) code = count_parts(parts, count, rank, &given, err);
    if (code) return code;
    out->rank = rank;
    code = resolve_parts(shape, parts, count, given, out, err);
    if (code) memset(out, 0, sizeof *out);
    return code;
}

/* ── Text ────────────────────────────────────────────────────────────────── */

typedef struct slice_text {
    const char *text;
    size_t at, end;
    sft_error *err;
} slice_text;

static bool slice_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The next byte that is not blank, or NUL at the end (a NUL in the text is a syntax error). */
static char slice_peek(slice_text *t) {
    while (t->at < t->end && slice_blank(t->text[t->at])) t->at++;
    return t->at < t->end ? t->text[t->at] : '\0';
}

/* c is not NUL. */
static bool slice_take(slice_text *t, char c) {
    if (slice_peek(t) != c) return false;
    t->at++;
    return true;
}

static sft_code slice_syntax(slice_text *t, const char *expected) {
    (void)slice_peek(t);
    if (t->at == t->end)
        return sfti_fail_byte(t->err, SFT_SLICE_SYNTAX, t->at, "expected %s, found the end",
                              expected);
    return sfti_fail_byte(t->err, SFT_SLICE_SYNTAX, t->at, "expected %s, found '%.*s'", expected, 1,
                          t->text + t->at);
}

static bool slice_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool slice_number_ahead(slice_text *t) {
    char c = slice_peek(t);
    return slice_digit(c) || c == '-' || c == '+';
}

/* A signed integer. One beyond int64 becomes the limit and sets *cut: ranges clamp it to the
 * dimension anyway. */
static sft_code slice_number(slice_text *t, int64_t *out, bool *cut) {
    bool negative = slice_peek(t) == '-';
    if (negative || slice_peek(t) == '+') t->at++;
    if (!slice_digit(slice_peek(t))) return slice_syntax(t, "a digit");
    uint64_t limit = (uint64_t)INT64_MAX + negative, value = 0;
    *cut = false;
    for (; t->at < t->end && slice_digit(t->text[t->at]); t->at++) {
        uint64_t digit = (uint64_t)(t->text[t->at] - '0');
        if (!*cut && value <= (limit - digit) / 10) value = value * 10 + digit;
        else *cut = true;
    }
    if (*cut) value = limit;
    *out = (int64_t)(negative ? 0 - value : value);
    return SFT_OK;
}

static sft_code slice_bound(slice_text *t, int64_t *out, bool *has) {
    bool cut;
    if (!slice_number_ahead(t)) return SFT_OK;
    *has = true;
    return slice_number(t, out, &cut);
}

/* What follows "start" in a range: ":stop:step", both numbers optional. */
static sft_code slice_range_rest(slice_text *t, sft_slice_part *out) {
    out->kind = SFT_SLICE_PART_RANGE;
    t->at++;
    sft_code code = slice_bound(t, &out->stop, &out->has_stop);
    if (!code && slice_take(t, ':')) code = slice_bound(t, &out->step, &out->has_step);
    return code;
}

static sft_code slice_int_or_range(slice_text *t, sft_slice_part *out) {
    bool cut;
    size_t at = t->at;
    sft_code code = slice_number(t, &out->value, &cut);
    if (code) return code;
    if (slice_peek(t) == ':') {
        out->start = out->value;
        out->has_start = true;
        return slice_range_rest(t, out);
    }
    out->kind = SFT_SLICE_PART_INDEX;
    if (!cut) return SFT_OK;
    return sfti_fail_byte(t->err, SFT_SLICE_BOUNDS, at,
                          "expected an index inside its dimension, found a number beyond 2^63");
}

/* Strips the brackets if there are both. */
static sft_code slice_brackets(slice_text *t) {
    if (!slice_take(t, '[')) return SFT_OK;
    while (t->end > t->at && slice_blank(t->text[t->end - 1])) t->end--;
    if (t->end > t->at && t->text[t->end - 1] == ']') {
        t->end--;
        return SFT_OK;
    }
    t->at = t->end;
    return slice_syntax(t, "']'");
}

static sft_code slice_parts(slice_text *t, uint32_t rank, sft_slice_part *parts, size_t *count) {
    bool ellipsis = false;
    do {
        (void)slice_peek(t);
        if (*count && t->at == t->end) break; /* a trailing comma, as in Python */
        if (*count == PARTS_MAX)
            return sfti_fail_byte(t->err, SFT_SLICE_RANK, t->at,
                                  "expected at most %u indexes, one for each dimension, found more",
                                  (unsigned)rank);
        sft_slice_part *part = &parts[(*count)++];
        size_t at = t->at;
        sft_code code = SFT_OK;
        *part = (sft_slice_part){ 0 };
        if (slice_number_ahead(t)) {
            code = slice_int_or_range(t, part);
        } else if (slice_peek(t) == ':') {
            code = slice_range_rest(t, part);
        } else if (t->end - t->at < 3 || memcmp(t->text + t->at, "...", 3) != 0) {
            code = slice_syntax(t, "an index, a range or '...'");
        } else {
            t->at += 3;
            part->kind = SFT_SLICE_PART_ELLIPSIS;
        }
        if (code) return code;
        if (part->kind == SFT_SLICE_PART_ELLIPSIS && ellipsis) {
            t->at = at;
            return slice_syntax(t, "at most one ellipsis");
        }
        ellipsis |= part->kind == SFT_SLICE_PART_ELLIPSIS;
    } while (slice_take(t, ','));
    (void)slice_peek(t);
    return t->at == t->end ? SFT_OK : slice_syntax(t, "',' or the end");
}

sft_code sft_slice_parse(const uint64_t *shape, uint32_t rank, sft_span text, sft_slice *out,
                         sft_error *err) {
    if (!out || (!shape && rank) || (!text.data && text.len))
        return sfti_misuse(err, "expected a shape, a text and a slice to fill, found NULL");
    memset(out, 0, sizeof *out);
    slice_text t = { text.len ? text.data : "", 0, text.len, err };
    sft_slice_part parts[PARTS_MAX];
    size_t count = 0;
    sft_code code = check_rank(rank, err);
    if (!code) code = slice_brackets(&t);
    if (!code) code = slice_parts(&t, rank, parts, &count);
    if (code) return code;
    return sft_slice_resolve(shape, rank, parts, count, out, err);
}

/* ── Facts of the result ─────────────────────────────────────────────────── */

uint32_t sft_slice_shape(const sft_slice *slice, uint64_t *out) {
    uint32_t rank = 0;
    for (uint32_t d = 0; d < slice->rank && d < SFT_MAX_RANK; d++)
        if (!(slice->dropped >> d & 1)) out[rank++] = slice->range[d].count;
    return rank;
}

static sft_code slice_overflow(sft_error *err) {
    return sfti_fail(err, SFT_SIZE_OVERFLOW,
                     "expected a slice of at most 2^64 - 1 bits, found more");
}

static sft_code slice_partial(const sft_dtype_info *info, sft_error *err) {
    return sfti_fail(err, SFT_SLICE_PARTIAL_BYTE, "expected runs of whole bytes, found a run of %s "
                     "(%u bits an element) that begins or ends inside a byte", info->name,
                     (unsigned)info->bits);
}

static const sft_dtype_info *slice_dtype(sft_dtype dtype, sft_error *err) {
    const sft_dtype_info *info = sft_dtype_describe(dtype);
    if (!info)
        (void)sfti_misuse(err, "expected a dtype, found %u", (unsigned)dtype);
    return info;
}

sft_code sft_slice_size(const sft_slice *slice, sft_dtype dtype, uint64_t *elements,
                        uint64_t *bytes, sft_error *err) {
    if (elements) *elements = 0;
    if (bytes) *bytes = 0;
    if (!slice) return sfti_misuse(err, "expected a slice, found NULL");
    const sft_dtype_info *info = slice_dtype(dtype, err);
    if (!info) return SFT_BAD_ARGUMENT;
    sft_code code = check_rank(slice->rank, err);
    if (code) return code;
    uint64_t count = 1, bits;
    for (uint32_t d = 0; d < slice->rank; d++)
        if (!sfti_mul(count, slice->range[d].count, &count)) return slice_overflow(err);
    if (!sfti_mul(count, info->bits, &bits)) return slice_overflow(err);
    if (bits % 8 != 0) return slice_partial(info, err);
    if (elements) *elements = count;
    if (bytes) *bytes = bits / 8;
    return SFT_OK;
}

/* ── Runs ────────────────────────────────────────────────────────────────── */

/* Whether every element of the range lies inside the dimension. */
static bool range_inside(const sft_range *range, uint64_t dim) {
    if (range->count == 0) return true;
    if (range->start >= dim) return false;
    uint64_t cap = range->step < 0 ? range->start : dim - 1 - range->start, reach;
    return sfti_mul(range->count - 1, magnitude(range->step), &reach) && reach <= cap &&
           (range->count == 1 || range->step != 0);
}

static sft_code check_ranges(const sft_tensor *tensor, const sft_slice *slice, bool *empty,
                             sft_error *err) {
    *empty = false;
    for (uint32_t d = 0; d < slice->rank; d++) {
        const sft_range *range = &slice->range[d];
        if (!range_inside(range, tensor->shape[d]))
            return sfti_fail_tensor(err, SFT_SLICE_BOUNDS, SFT_NO_OFFSET, tensor->name,
                                    "expected a range inside dimension %u of %llu elements, "
                                    "found %llu from %llu by %lld",
                                    (unsigned)d, (unsigned long long)tensor->shape[d],
                                    (unsigned long long)range->count,
                                    (unsigned long long)range->start, (long long)range->step);
        *empty |= range->count == 0;
    }
    return SFT_OK;
}

/* Adds a loop around those of `out`; the innermost is number 0. The range lies inside the tensor,
 * which has under 2^64 bits, so no product overflows and a distance in bytes fits an int64. A
 * loop that continues where the one inside it ends is merged with it. */
static bool runs_push(sft_runs *out, const sft_range *range, uint64_t stride) {
    uint64_t jump = stride * magnitude(range->step);
    if (jump % 8 != 0) return false;
    int64_t bytes = range->step < 0 ? -(int64_t)(jump / 8) : (int64_t)(jump / 8);
    uint32_t last = out->rank - 1;
    if (out->rank && (bytes < 0) == (out->stride[last] < 0) &&
        magnitude(out->stride[last]) * out->count[last] == jump / 8) {
        out->count[last] *= range->count;
        return true;
    }
    out->count[out->rank] = range->count;
    out->stride[out->rank++] = bytes;
    return true;
}

/* Innermost dimension first: it is merged into the run, skipped, or looped over. Only the product
 * for the whole dimension is checked: that for a range inside it is smaller. */
static sft_code plan_runs(const sft_tensor *tensor, const sft_slice *slice, sft_runs *out,
                          sft_error *err) {
    const sft_dtype_info *info = slice_dtype(tensor->dtype, err);
    if (!info) return SFT_BAD_ARGUMENT;
    uint64_t run = info->bits, position = 0; /* bits of a run; bit of the first one */
    uint64_t stride = info->bits, whole; /* bits from one element of a dimension to the next */
    for (uint32_t d = slice->rank; d-- > 0; stride = whole) {
        const sft_range *range = &slice->range[d];
        if (!sfti_mul(stride, tensor->shape[d], &whole)) return slice_overflow(err);
        position += range->start * stride;
        if (range->count <= 1) continue;
        if (range->step == 1 && stride == run) run *= range->count;
        else if (!runs_push(out, range, stride)) return slice_partial(info, err);
    }
    if (run % 8 != 0 || position % 8 != 0) return slice_partial(info, err);
    out->run_bytes = run / 8;
    out->position = position / 8;
    out->left = 1;
    for (uint32_t d = 0; d < out->rank; d++) out->left *= out->count[d];
    return SFT_OK;
}

sft_code sft_runs_begin(const sft_tensor *tensor, const sft_slice *slice, sft_runs *out,
                        sft_error *err) {
    if (!tensor || !slice || !out)
        return sfti_misuse(err, "expected a tensor, a slice and runs to fill, found NULL");
    memset(out, 0, sizeof *out);
    sft_code code = check_rank(slice->rank, err);
    if (code) return code;
    if (slice->rank != tensor->rank)
        return sfti_fail_tensor(err, SFT_SLICE_RANK, SFT_NO_OFFSET, tensor->name,
                                "expected a slice of rank %u, found rank %u",
                                (unsigned)tensor->rank, (unsigned)slice->rank);
    bool empty;
    code = check_ranges(tensor, slice, &empty, err);
    if (!code && !empty) code = plan_runs(tensor, slice, out, err);
    if (code) memset(out, 0, sizeof *out);
    return code;
}

/* Steps over n runs of the innermost loop, which has at least as many left. With negative strides
 * positions wrap around modulo 2^64, which is well defined. While any runs are left, some outer
 * loop has a step left, so the carry stops there. */
static void runs_advance(sft_runs *runs, uint64_t n) {
    runs->left -= n;
    if (runs->left == 0) return;
    runs->at[0] += n;
    runs->position += (uint64_t)runs->stride[0] * n;
    for (uint32_t d = 0; runs->at[d] == runs->count[d]; d++) {
        runs->at[d] = 0;
        runs->at[d + 1]++;
        runs->position -= (uint64_t)runs->stride[d] * runs->count[d];
        runs->position += (uint64_t)runs->stride[d + 1];
    }
}

/* The last run of one row may touch the first of the next: 0,2 3,5 of [:, ::2]. */
bool sft_runs_next(sft_runs *runs, sft_run *out) {
    if (runs->left == 0) return false;
    out->offset = runs->position;
    out->len = 0;
    do {
        out->len += runs->run_bytes;
        runs_advance(runs, 1);
    } while (runs->left && runs->position == out->offset + out->len);
    return true;
}

bool sfti_runs_row(sft_runs *runs, uint64_t most, sfti_row *out) {
    if (runs->left == 0 || most == 0) return false;
    uint64_t ahead = runs->rank ? runs->count[0] - runs->at[0] : 1;
    out->offset = runs->position;
    out->stride = runs->rank ? runs->stride[0] : 0;
    out->count = ahead < most ? ahead : most;
    runs_advance(runs, out->count);
    return true;
}

/* ── Picking ─────────────────────────────────────────────────────────────── */

#define PICK(width) \
    for (size_t i = 0; i < count; i++) \
        memcpy(dst + i * (width), src + (ptrdiff_t)i * stride, (width))

/* count runs of `run` bytes from src, src + stride, … packed into dst. */
static void pick_row(char *restrict dst, const char *restrict src, ptrdiff_t stride,
                     size_t count, size_t run) {
    switch (run) {
    case 1: PICK(1); return;
    case 2: PICK(2); return;
    case 4: PICK(4); return;
    case 8: PICK(8); return;
    case 16: PICK(16); return;
    case 32: PICK(32); return;
    default: PICK(run); return;
    }
}

void sfti_runs_pick(sft_runs *runs, uint64_t count, const void *block, uint64_t first,
                    void *dst) {
    size_t run = (size_t)runs->run_bytes;
    char *to = dst;
    sfti_row row;
    for (; count > 0; count -= row.count) {
        if (sfti_never(!sfti_runs_row(runs, count, &row))) return; /* count runs are left */
        const char *from = (const char *)block + (ptrdiff_t)(row.offset - first);
        pick_row(to, from, (ptrdiff_t)row.stride, (size_t)row.count, run);
        to += run * (size_t)row.count;
    }
}
