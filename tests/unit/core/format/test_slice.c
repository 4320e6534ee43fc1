/* Slices against a naive loop that follows the definition of Python's slice.indices. */
#include "format/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define MOST 4096 /* elements of the largest shape tried */

/* ── The naive loop ── */

typedef struct naive {
    uint64_t element[MOST]; /* positions in the tensor, in result order */
    size_t count;
    uint32_t rank;
    uint64_t shape[SFT_MAX_RANK];
} naive;

typedef struct naive_dim {
    int64_t at[64];
    size_t count;
} naive_dim;

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t naive_bound(bool has, int64_t value, int64_t missing, int64_t dim, int64_t lower,
                           int64_t upper) {
    if (!has) return missing;
    return value < 0 ? larger(value + dim, lower) : smaller(value, upper);
}

static void naive_range(const sft_slice_part *p, int64_t dim, naive_dim *out) {
    int64_t step = p->has_step ? p->step : 1;
    int64_t lower = step < 0 ? -1 : 0, upper = step < 0 ? dim - 1 : dim;
    int64_t start =
        naive_bound(p->has_start, p->start, step < 0 ? upper : lower, dim, lower, upper);
    int64_t stop = naive_bound(p->has_stop, p->stop, step < 0 ? lower : upper, dim, lower, upper);
    out->count = 0;
    for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step)
        out->at[out->count++] = i;
}

static void naive_walk(const uint64_t *shape, uint32_t rank, const naive_dim *dims, uint32_t d,
                       uint64_t base, naive *out) {
    if (d == rank) {
        assert_true(out->count < MOST);
        out->element[out->count++] = base;
        return;
    }
    for (size_t i = 0; i < dims[d].count; i++)
        naive_walk(shape, rank, dims, d + 1, base * shape[d] + (uint64_t)dims[d].at[i], out);
}

/* parts: one for each dimension; an INT must be inside. */
static void naive_slice(const uint64_t *shape, uint32_t rank, const sft_slice_part *parts,
                        naive *out) {
    static naive_dim dims[8];
    out->count = 0;
    out->rank = 0;
    for (uint32_t d = 0; d < rank; d++) {
        if (parts[d].kind == SFT_SLICE_PART_INDEX) {
            int64_t v = parts[d].value;
            dims[d].count = 1;
            dims[d].at[0] = v < 0 ? v + (int64_t)shape[d] : v;
            continue;
        }
        naive_range(&parts[d], (int64_t)shape[d], &dims[d]);
        out->shape[out->rank++] = dims[d].count;
    }
    naive_walk(shape, rank, dims, 0, 0, out);
}

/* ── Comparing ── */

static sft_tensor tensor_of(const uint64_t *shape, uint32_t rank, sft_dtype dtype) {
    sft_tensor t;
    memset(&t, 0, sizeof t);
    t.name = sft_span_cstr("t");
    t.shape = shape;
    t.rank = rank;
    t.dtype = dtype;
    return t;
}

/* The longest runs of the naive elements, in bits; returns whether all are whole bytes. */
static bool naive_runs(const naive *n, uint64_t bits, sft_run *runs, size_t *count) {
    bool whole = true;
    *count = 0;
    for (size_t i = 0; i < n->count; i++) {
        uint64_t at = n->element[i] * bits;
        if (*count && runs[*count - 1].offset + runs[*count - 1].len == at)
            runs[*count - 1].len += bits;
        else
            runs[(*count)++] = (sft_run){ at, bits };
    }
    for (size_t i = 0; i < *count; i++) whole &= runs[i].offset % 8 == 0 && runs[i].len % 8 == 0;
    return whole;
}

static void compare_rows(const sft_runs *begun, const naive *n, uint64_t bits, uint64_t most) {
    sft_runs it = *begun;
    sfti_row row;
    uint64_t per = it.run_bytes * 8 / bits;
    size_t e = 0;
    while (sfti_runs_row(&it, most, &row)) {
        assert_true(row.count >= 1 && row.count <= most);
        for (uint64_t i = 0; i < row.count; i++, e += per)
            assert_int_equal((row.offset + (uint64_t)row.stride * i) * 8, n->element[e] * bits);
    }
    assert_int_equal(e, n->count);
}

static void compare_runs(const uint64_t *shape, uint32_t rank, const sft_slice *slice,
                         const naive *n, sft_dtype dtype) {
    static sft_run expected[MOST];
    size_t count, seen = 0;
    uint64_t bits = sft_dtype_describe(dtype)->bits;
    bool whole = naive_runs(n, bits, expected, &count);
    sft_tensor t = tensor_of(shape, rank, dtype);
    sft_runs runs;
    sft_error err = SFT_ERROR_INIT;
    sft_code code = sft_runs_begin(&t, slice, &runs, &err);
    assert_int_equal(code, whole ? SFT_OK : SFT_SLICE_PARTIAL_BYTE);
    if (!whole) {
        assert_int_equal(err.code, SFT_SLICE_PARTIAL_BYTE);
        return;
    }
    compare_rows(&runs, n, bits, UINT64_MAX);
    compare_rows(&runs, n, bits, 2);
    for (sft_run run; sft_runs_next(&runs, &run); seen++) {
        assert_true(seen < count);
        assert_int_equal(run.offset * 8, expected[seen].offset);
        assert_int_equal(run.len * 8, expected[seen].len);
    }
    assert_int_equal(seen, count);
}

static void compare_facts(const sft_slice *slice, const naive *n, sft_dtype dtype) {
    uint64_t shape[SFT_MAX_RANK], elements, bytes;
    assert_int_equal(sft_slice_shape(slice, shape), n->rank);
    assert_memory_equal(shape, n->shape, n->rank * sizeof *shape);
    uint64_t bits = sft_dtype_describe(dtype)->bits * (uint64_t)n->count;
    sft_code code = sft_slice_size(slice, dtype, &elements, &bytes, NULL);
    assert_int_equal(code, bits % 8 ? SFT_SLICE_PARTIAL_BYTE : SFT_OK);
    assert_int_equal(elements, code ? 0 : n->count);
    assert_int_equal(bytes, code ? 0 : bits / 8);
}

static void compare(const uint64_t *shape, uint32_t rank, const sft_slice_part *parts) {
    static const sft_dtype dtypes[] = { SFT_F4, SFT_F6_E2M3, SFT_U8, SFT_F16, SFT_F64 };
    static naive n;
    sft_slice slice;
    naive_slice(shape, rank, parts, &n);
    assert_int_equal(sft_slice_resolve(shape, rank, parts, rank, &slice, NULL), SFT_OK);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        compare_facts(&slice, &n, dtypes[i]);
        compare_runs(shape, rank, &slice, &n, dtypes[i]);
    }
}

/* ── Cases ── */

static void one_dimension_exhaustively(void **state) {
    (void)state;
    size_t cases = 0;
    for (uint64_t dim = 0; dim <= 5; dim++)
        for (int64_t start = -8; start <= 8; start++)
            for (int64_t stop = -8; stop <= 8; stop++)
                for (int64_t step = -4; step <= 4; step++) {
                    sft_slice_part p = { SFT_SLICE_PART_RANGE, 0,          start,    stop, step,
                                    start != 8,      stop != 8, step != 0 };
                    compare(&dim, 1, &p);
                    cases++;
                }
    assert_int_equal(cases, 6 * 17 * 17 * 9);
}

static uint64_t lcg_state = 12345;
static uint64_t lcg(uint64_t below) {
    lcg_state = lcg_state * 6364136223846793005u + 1442695040888963407u;
    return (lcg_state >> 33) % below;
}

static sft_slice_part random_part(uint64_t dim) {
    sft_slice_part p = { 0 };
    if (dim && lcg(4) == 0) {
        p.kind = SFT_SLICE_PART_INDEX;
        p.value = (int64_t)lcg(2 * dim) - (int64_t)dim;
        return p;
    }
    p.kind = SFT_SLICE_PART_RANGE;
    p.has_start = lcg(3) == 0;
    p.has_stop = lcg(3) == 0;
    p.has_step = lcg(3) == 0;
    p.start = (int64_t)lcg(2 * dim + 5) - (int64_t)dim - 2;
    p.stop = (int64_t)lcg(2 * dim + 5) - (int64_t)dim - 2;
    p.step = (int64_t)lcg(4) + 1;
    if (lcg(2)) p.step = -p.step;
    return p;
}

static void many_dimensions_at_random(void **state) {
    (void)state;
    for (int i = 0; i < 40000; i++) {
        uint64_t shape[5];
        sft_slice_part parts[5];
        uint32_t rank = (uint32_t)lcg(6);
        for (uint32_t d = 0; d < rank; d++) {
            shape[d] = lcg(20) == 0 ? 0 : 1 + lcg(5);
            parts[d] = random_part(shape[d]);
        }
        compare(shape, rank, parts);
    }
}

static size_t put_number(char *out, size_t cap, bool has, int64_t value) {
    return has ? (size_t)snprintf(out, cap, "%lld", (long long)value) : 0;
}

static size_t put_part(const sft_slice_part *p, char *out, size_t cap) {
    if (p->kind == SFT_SLICE_PART_ELLIPSIS) return (size_t)snprintf(out, cap, " ... ");
    if (p->kind == SFT_SLICE_PART_INDEX) return put_number(out, cap, true, p->value);
    size_t n = put_number(out, cap, p->has_start, p->start);
    out[n++] = ':';
    n += put_number(out + n, cap - n, p->has_stop, p->stop);
    if (!p->has_step && lcg(2)) return n;
    out[n++] = ':';
    return n + put_number(out + n, cap - n, p->has_step, p->step);
}

/* Text, with an ellipsis put in at random, resolves to what the parts resolve to. */
static void text_equals_parts(void **state) {
    (void)state;
    for (int i = 0; i < 20000; i++) {
        uint64_t shape[4];
        sft_slice_part parts[5];
        char text[256];
        size_t n = 0, count = 0;
        uint32_t rank = 1 + (uint32_t)lcg(4), gap = (uint32_t)lcg(6);
        for (uint32_t d = 0; d < rank; d++) {
            shape[d] = 1 + lcg(5);
            if (d == gap) parts[count++] = (sft_slice_part){ .kind = SFT_SLICE_PART_ELLIPSIS };
            if (d == gap && lcg(2)) continue;
            parts[count++] = random_part(shape[d]);
        }
        bool brackets = lcg(2);
        if (brackets) text[n++] = '[';
        for (size_t p = 0; p < count; p++) {
            if (p) text[n++] = ',';
            if (lcg(4) == 0) text[n++] = ' ';
            n += put_part(&parts[p], text + n, sizeof text - n);
        }
        if (brackets) text[n++] = ']';
        sft_slice a, b;
        assert_int_equal(sft_slice_resolve(shape, rank, parts, count, &a, NULL), SFT_OK);
        assert_int_equal(sft_slice_parse(shape, rank, (sft_span){ text, n }, &b, NULL), SFT_OK);
        assert_memory_equal(&a, &b, sizeof a);
    }
}

static const struct {
    const char *text;
    sft_code code;
    uint64_t column;
} bad_text[] = {
    { "", SFT_SLICE_SYNTAX, 0 },
    { "[]", SFT_SLICE_SYNTAX, 1 },
    { "[1", SFT_SLICE_SYNTAX, 2 },
    { "[ ", SFT_SLICE_SYNTAX, 1 },
    { "1]", SFT_SLICE_SYNTAX, 1 },
    { "[1]]", SFT_SLICE_SYNTAX, 2 },
    { ",", SFT_SLICE_SYNTAX, 0 },
    { "1,,2", SFT_SLICE_SYNTAX, 2 },
    { "1 2", SFT_SLICE_SYNTAX, 2 },
    { "1:2:3:4", SFT_SLICE_SYNTAX, 5 },
    { "1\v", SFT_SLICE_SYNTAX, 1 },
    { "a", SFT_SLICE_SYNTAX, 0 },
    { "0x1", SFT_SLICE_SYNTAX, 1 },
    { "1.5", SFT_SLICE_SYNTAX, 1 },
    { "--1", SFT_SLICE_SYNTAX, 1 },
    { "-", SFT_SLICE_SYNTAX, 1 },
    { "1:-", SFT_SLICE_SYNTAX, 3 },
    { "..", SFT_SLICE_SYNTAX, 0 },
    { "....", SFT_SLICE_SYNTAX, 3 },
    { "..., ...", SFT_SLICE_SYNTAX, 5 },
    { "None", SFT_SLICE_SYNTAX, 0 },
    { "0,0,0,0", SFT_SLICE_RANK, SFT_NO_OFFSET },
    { "0,0,0,...,0", SFT_SLICE_RANK, SFT_NO_OFFSET },
    { "2", SFT_SLICE_BOUNDS, SFT_NO_OFFSET },
    { "2,0", SFT_SLICE_BOUNDS, SFT_NO_OFFSET },
    { "-3", SFT_SLICE_BOUNDS, SFT_NO_OFFSET },
    { "0,-9223372036854775808", SFT_SLICE_BOUNDS, SFT_NO_OFFSET },
    { "0, 9223372036854775808", SFT_SLICE_BOUNDS, 3 },
    { "::0", SFT_SLICE_STEP, SFT_NO_OFFSET },
};

static void bad_text_is_refused(void **state) {
    (void)state;
    static const uint64_t shape[] = { 2, 3, 4 };
    for (size_t i = 0; i < sizeof bad_text / sizeof *bad_text; i++) {
        sft_slice slice;
        sft_error err = SFT_ERROR_INIT;
        sft_span text = sft_span_cstr(bad_text[i].text);
        sft_code code = sft_slice_parse(shape, 3, text, &slice, &err);
        if (code != bad_text[i].code || err.offset != bad_text[i].column)
            fail_msg("%s: code %d column %lld: %s", bad_text[i].text, (int)code,
                     (long long)err.offset, err.message);
        assert_int_equal(err.code, code);
        assert_int_equal(slice.rank, 0);
    }
}

static void nul_in_text_is_refused(void **state) {
    (void)state;
    static const uint64_t shape[] = { 2 };
    sft_slice slice;
    sft_error err = SFT_ERROR_INIT;
    sft_span text = { "1\0", 2 };
    assert_int_equal(sft_slice_parse(shape, 1, text, &slice, &err), SFT_SLICE_SYNTAX);
    assert_int_equal(err.offset, 1);
}

static void good_text(void **state) {
    (void)state;
    static const uint64_t shape[] = { 10, 20, 30 };
    sft_slice s;
    sft_span text = sft_span_cstr(" [ +1 :\t3 ,\n... ,\r-1 , ] ");
    assert_int_equal(sft_slice_parse(shape, 3, text, &s, NULL), SFT_OK);
    assert_int_equal(s.rank, 3);
    assert_int_equal(s.dropped, 4);
    assert_int_equal(s.range[0].start, 1);
    assert_int_equal(s.range[0].count, 2);
    assert_int_equal(s.range[1].count, 20);
    assert_int_equal(s.range[2].start, 29);
    text = sft_span_cstr("99999999999999999999:-99999999999999999999:-99999999999999999999");
    assert_int_equal(sft_slice_parse(shape, 3, text, &s, NULL), SFT_OK);
    assert_int_equal(s.range[0].start, 9);
    assert_int_equal(s.range[0].count, 1);
    assert_int_equal(sft_slice_parse(NULL, 0, sft_span_cstr("..."), &s, NULL), SFT_OK);
    assert_int_equal(s.rank, 0);
}

/* Dimensions over 2^63 exist in tensors without elements, and steps reach INT64_MIN. */
static void huge_values(void **state) {
    (void)state;
    uint64_t shape[] = { UINT64_MAX, 0 };
    sft_slice_part p = { .kind = SFT_SLICE_PART_RANGE, .has_step = true, .step = INT64_MIN };
    sft_slice s;
    assert_int_equal(sft_slice_resolve(shape, 2, &p, 1, &s, NULL), SFT_OK);
    assert_int_equal(s.range[0].start, UINT64_MAX - 1);
    assert_int_equal(s.range[0].count, 2);
    sft_tensor t = tensor_of(shape, 2, SFT_F64);
    sft_runs runs;
    sft_run run;
    assert_int_equal(sft_runs_begin(&t, &s, &runs, NULL), SFT_OK);
    assert_false(sft_runs_next(&runs, &run));
    p = (sft_slice_part){ .kind = SFT_SLICE_PART_RANGE, .has_start = true, .start = INT64_MIN };
    assert_int_equal(sft_slice_resolve(shape, 2, &p, 1, &s, NULL), SFT_OK);
    assert_int_equal(s.range[0].start, UINT64_MAX - (UINT64_C(1) << 63));
    assert_int_equal(s.range[0].count, UINT64_C(1) << 63);
}

static void bad_arguments(void **state) {
    (void)state;
    uint64_t shape[65] = { 0 };
    sft_slice_part p = { .kind = (sft_slice_part_kind)3 };
    sft_slice s;
    sft_runs runs;
    uint64_t bytes;
    assert_int_equal(sft_slice_resolve(shape, 65, NULL, 0, &s, NULL), SFT_SLICE_RANK);
    assert_int_equal(sft_slice_parse(shape, 65, sft_span_cstr("0"), &s, NULL), SFT_SLICE_RANK);
    assert_int_equal(sft_slice_resolve(shape, 1, &p, 1, &s, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_slice_resolve(NULL, 1, NULL, 0, &s, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_slice_resolve(shape, 1, NULL, 1, &s, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_slice_resolve(shape, 1, NULL, 0, NULL, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_slice_parse(shape, 1, sft_span_cstr("0"), NULL, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_slice_parse(NULL, 1, sft_span_cstr("0"), &s, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_slice_parse(shape, 1, (sft_span){ NULL, 1 }, &s, NULL),
                     SFT_BAD_ARGUMENT);
    assert_int_equal(sft_slice_parse(shape, 1, (sft_span){ NULL, 0 }, &s, NULL),
                     SFT_SLICE_SYNTAX);
    assert_int_equal(sft_runs_begin(NULL, &s, &runs, NULL), SFT_BAD_ARGUMENT);
    char many[200] = "0";
    for (int i = 0; i < 65; i++) strcat(many, ",0");
    assert_int_equal(sft_slice_parse(shape, 64, sft_span_cstr(many), &s, NULL), SFT_SLICE_RANK);
    assert_int_equal(sft_slice_size(NULL, SFT_U8, NULL, NULL, NULL), SFT_BAD_ARGUMENT);
    sft_slice_part twice[] = { { .kind = SFT_SLICE_PART_ELLIPSIS },
                               { .kind = SFT_SLICE_PART_ELLIPSIS } };
    assert_int_equal(sft_slice_resolve(shape, 3, twice, 2, &s, NULL), SFT_SLICE_SYNTAX);
    assert_int_equal(sft_slice_resolve(shape, 2, NULL, 0, &s, NULL), SFT_OK);
    assert_int_equal(sft_slice_size(&s, (sft_dtype)99, NULL, NULL, NULL), SFT_BAD_ARGUMENT);
    sft_tensor t = tensor_of(shape, 1, SFT_U8);
    assert_int_equal(sft_runs_begin(&t, &s, &runs, NULL), SFT_SLICE_RANK);
    assert_int_equal(sft_runs_begin(&t, NULL, &runs, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_runs_begin(&t, &s, NULL, NULL), SFT_BAD_ARGUMENT);
    s.rank = 65;
    t.rank = 65;
    assert_int_equal(sft_runs_begin(&t, &s, &runs, NULL), SFT_SLICE_RANK);
    assert_int_equal(sft_slice_size(&s, SFT_U8, NULL, &bytes, NULL), SFT_SLICE_RANK);
    uint64_t result[SFT_MAX_RANK];
    assert_int_equal(sft_slice_shape(&s, result), 64);
    s = (sft_slice){ 1, 0, { { 0, UINT64_MAX, 1 } } };
    assert_int_equal(sft_slice_size(&s, SFT_F16, NULL, &bytes, NULL), SFT_SIZE_OVERFLOW);
    s = (sft_slice){ 2, 0, { { 0, UINT64_MAX, 1 }, { 0, 2, 1 } } };
    assert_int_equal(sft_slice_size(&s, SFT_U8, NULL, &bytes, NULL), SFT_SIZE_OVERFLOW);
    s = (sft_slice){ 1, 0, { { 0, 7, 1 } } };
    assert_int_equal(sft_slice_size(&s, SFT_U8, NULL, NULL, NULL), SFT_OK);
}

/* Tensors that no file has: too large, or of no dtype. */
static void impossible_tensors(void **state) {
    (void)state;
    static const sft_slice slices[] = {
        { 2, 0, { { 1, 1, 1 }, { 0, 1, 1 } } },
        { 2, 0, { { 0, 2, 1 }, { 0, UINT64_C(1) << 61, 1 } } },
        { 2, 0, { { 1, 2, -1 }, { 0, 2, INT64_C(1) << 60 } } },
    };
    const uint64_t shape[] = { 2, UINT64_C(1) << 61 };
    sft_tensor t = tensor_of(shape, 2, SFT_U8);
    sft_runs runs;
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++)
        assert_int_equal(sft_runs_begin(&t, &slices[i], &runs, NULL), SFT_SIZE_OVERFLOW);
    t.dtype = (sft_dtype)99;
    assert_int_equal(sft_runs_begin(&t, &slices[0], &runs, NULL), SFT_BAD_ARGUMENT);
}

/* The largest tensor there can be: 2^64 - 8 bits, every second byte of it. */
static void largest_tensor(void **state) {
    (void)state;
    const uint64_t shape[] = { (UINT64_C(1) << 61) - 1 };
    const sft_slice slice = { 1, 0, { { shape[0] - 1, UINT64_C(1) << 60, -2 } } };
    sft_tensor t = tensor_of(shape, 1, SFT_U8);
    sft_runs runs;
    sft_run run;
    sfti_row row;
    assert_int_equal(sft_runs_begin(&t, &slice, &runs, NULL), SFT_OK);
    assert_int_equal(runs.left, UINT64_C(1) << 60);
    assert_true(sft_runs_next(&runs, &run));
    assert_int_equal(run.offset, shape[0] - 1);
    assert_int_equal(run.len, 1);
    assert_false(sfti_runs_row(&runs, 0, &row));
    assert_true(sfti_runs_row(&runs, UINT64_MAX, &row));
    assert_int_equal(row.count, (UINT64_C(1) << 60) - 1);
    assert_int_equal(row.offset, shape[0] - 3);
    assert_int_equal(row.stride, -2);
    assert_false(sfti_runs_row(&runs, 1, &row));
}

static void ranges_outside_are_refused(void **state) {
    (void)state;
    static const sft_range bad[] = {
        { 4, 1, 1 },  { 0, 5, 1 },          { 3, 2, 1 },           { 0, 2, -1 },
        { 2, 3, -2 }, { 0, 2, 0 },          { 0, 3, INT64_MAX },   { 3, UINT64_MAX, INT64_MIN },
        { 1, 2, 3 },  { UINT64_MAX, 1, 1 }, { 3, UINT64_MAX, -1 },
    };
    static const sft_range good[] = { { 9, 0, 7 }, { 3, 1, 0 }, { 3, 4, -1 }, { 0, 2, 3 } };
    uint64_t shape[] = { 4 };
    sft_tensor t = tensor_of(shape, 1, SFT_U8);
    sft_runs runs;
    sft_slice s = { 1, 0, { { 0, 0, 0 } } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        s.range[0] = bad[i];
        assert_int_equal(sft_runs_begin(&t, &s, &runs, NULL), SFT_SLICE_BOUNDS);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        s.range[0] = good[i];
        assert_int_equal(sft_runs_begin(&t, &s, &runs, NULL), SFT_OK);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_dimension_exhaustively),
        cmocka_unit_test(many_dimensions_at_random),
        cmocka_unit_test(text_equals_parts),
        cmocka_unit_test(bad_text_is_refused),
        cmocka_unit_test(nul_in_text_is_refused),
        cmocka_unit_test(good_text),
        cmocka_unit_test(huge_values),
        cmocka_unit_test(bad_arguments),
        cmocka_unit_test(ranges_outside_are_refused),
        cmocka_unit_test(impossible_tensors),
        cmocka_unit_test(largest_tensor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
