/* Comparing the values of two tensors. Tests: test_diff.c. */
#include "base/endian.h"
#include "base/job.h"
#include "base/number.h"
#include "set/diff.h"

#include <math.h>
#include <string.h>

/* `count` elements of both tensors: from element `from` of the tensors, which is element `at` of
 * the windows. */
typedef struct data_stretch {
    sft_dtype dtype[2];
    const uint8_t *bytes[2];
    uint64_t from;
    size_t at, count;
} data_stretch;

#define DATA_INFINITE (1e308 * 10)

static double data_abs(double value) {
    return value < 0 ? -value : value;
}

/* ── Values ── */

/* A batch, in loops simple enough for a compiler to vectorise. NaN compares as false with
 * everything. */
typedef struct data_batch {
    const double *a, *b;
    double *distance, *relative; /* as long */
    size_t count;
} data_batch;

/* The quotient of halves is that of numbers whose distance is beyond F64. */
static void data_distances(const data_batch *batch) {
    for (size_t i = 0; i < batch->count; i++) {
        double a = batch->a[i], b = batch->b[i], size = data_abs(b), distance = data_abs(a - b);
        double relative = distance < DATA_INFINITE ? distance / size
                                                   : data_abs(a / 2 - b / 2) / (size / 2);
        batch->distance[i] = distance;
        batch->relative[i] = size > 0 ? relative : 0;
    }
}

static bool data_is_wide(sft_dtype dtype) { return dtype == SFT_I64 || dtype == SFT_U64; }

/* What a 64-bit integer has more than the F64 next to it. */
static double data_rest(sft_dtype dtype, uint64_t word, double value) {
    double end = dtype == SFT_I64 ? 9223372036854775808.0 : 18446744073709551616.0;
    uint64_t turn = dtype == SFT_I64 ? UINT64_C(1) << 63 : 0, whole = 0;
    if (value < end) whole = turn ? (uint64_t)(int64_t)value : (uint64_t)value;
    else whole = turn; /* 2^64, of which nothing is left, is 0 */
    uint64_t less = whole - word, more = word - whole; /* one of them is at most 1024 */
    return more <= less ? (double)more : -(double)less;
}

/* Distances to or between 64-bit integers, which are not all numbers of F64. */
static void data_exact(const data_stretch *s, const data_batch *batch) {
    for (size_t i = 0; i < batch->count; i++) {
        const double values[2] = { batch->a[i], batch->b[i] };
        double rest[2] = { 0, 0 };
        for (int k = 0; k < 2; k++)
            if (data_is_wide(s->dtype[k]))
                rest[k] = data_rest(s->dtype[k], sfti_get_u64(s->bytes[k] + 8 * (s->at + i)),
                                    values[k]);
        double size = data_abs(values[1] + rest[1]);
        double distance = data_abs(values[0] - values[1] + (rest[0] - rest[1]));
        batch->distance[i] = distance;
        batch->relative[i] = size > 0 ? distance / size : 0;
    }
}

static void data_counts(const data_batch *batch, const sft_diff_options *options,
                        sft_diff_tensor *out) {
    double atol = options->atol, rtol = options->rtol;
    uint64_t unequal = 0, nan = 0, alike = 0;
    for (size_t i = 0; i < batch->count; i++) {
        double a = batch->a[i], b = batch->b[i], distance = batch->distance[i];
        double most = atol + rtol * data_abs(b);
        unequal += (a < b) | (a > b) | (distance > 0);
        nan += (a != a) ^ (b != b);
        alike += (distance > 0) & (distance <= most) & (distance < DATA_INFINITE);
    }
    out->differing += unequal + nan;
    out->nan += nan;
    out->beyond += unequal + nan - alike;
}

/* Four maxima at a time: a comparison waits for the one before it in its own chain only. */
static double data_greatest(const double *values, size_t count, double greatest) {
    double most[4] = { greatest, greatest, greatest, greatest };
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        most[0] = values[i] > most[0] ? values[i] : most[0];
        most[1] = values[i + 1] > most[1] ? values[i + 1] : most[1];
        most[2] = values[i + 2] > most[2] ? values[i + 2] : most[2];
        most[3] = values[i + 3] > most[3] ? values[i + 3] : most[3];
    }
    for (; i < count; i++) most[0] = values[i] > most[0] ? values[i] : most[0];
    for (i = 1; i < 4; i++) most[0] = most[i] > most[0] ? most[i] : most[0];
    return most[0];
}

/* Four sums at a time, as above. What is not finite is left out. */
static void data_sum(const data_batch *batch, sfti_diff_sums *sums) {
    double aa[4] = { 0 }, bb[4] = { 0 }, ab[4] = { 0 }, dd[4] = { 0 };
    uint64_t count = 0;
    for (size_t i = 0; i < batch->count; i++) {
        size_t lane = i % 4;
        bool fine = data_abs(batch->a[i]) < DATA_INFINITE
                    && data_abs(batch->b[i]) < DATA_INFINITE;
        double a = fine ? batch->a[i] : 0, b = fine ? batch->b[i] : 0;
        double distance = fine ? batch->distance[i] : 0;
        aa[lane] += a * a;
        bb[lane] += b * b;
        ab[lane] += a * b;
        dd[lane] += distance * distance;
        count += fine;
    }
    sums->aa += aa[0] + aa[1] + (aa[2] + aa[3]);
    sums->bb += bb[0] + bb[1] + (bb[2] + bb[3]);
    sums->ab += ab[0] + ab[1] + (ab[2] + ab[3]);
    sums->dd += dd[0] + dd[1] + (dd[2] + dd[3]);
    sums->count += count;
}

/* Values of both tensors, or with `alike` of the first as those of both. */
static data_batch data_load(sfti_diff_run *run, const data_stretch *s, bool alike) {
    size_t each = s->dtype[0] == SFT_C64 ? 2 : 1, count = each * s->count;
    data_batch batch = { run->values[0], alike ? run->values[0] : run->values[1],
                         run->values[2], run->values[3], count };
    sfti_to_doubles(s->dtype[0], s->bytes[0], s->at, s->count, run->values[0]);
    if (!alike) sfti_to_doubles(s->dtype[1], s->bytes[1], s->at, s->count, run->values[1]);
    if (alike || !(data_is_wide(s->dtype[0]) || data_is_wide(s->dtype[1]))) data_distances(&batch);
    else data_exact(s, &batch);
    data_sum(&batch, &run->sums);
    return batch;
}

static void data_doubles(const sfti_diff_run *run, const data_stretch *s, const data_batch *batch,
                         sft_diff_tensor *out) {
    size_t each = s->dtype[0] == SFT_C64 ? 2 : 1;
    uint64_t before = out->differing;
    data_counts(batch, run->options, out);
    out->max_abs = data_greatest(batch->distance, batch->count, out->max_abs);
    out->max_rel = data_greatest(batch->relative, batch->count, out->max_rel);
    if (before > 0 || out->differing == 0) return;
    const double *a = batch->a, *b = batch->b, *distance = batch->distance;
    size_t i = 0;
    while (i < batch->count && ((a[i] == b[i] && !(distance[i] > 0))
                                || (a[i] != a[i] && b[i] != b[i]))) i++;
    out->first = each * s->from + i;
}

/* 64-bit integers of one dtype: the distance is computed exactly, as an integer. */
static void data_integers(const sfti_diff_run *run, const data_stretch *s, sft_diff_tensor *out) {
    uint64_t turn = s->dtype[0] == SFT_I64 ? UINT64_C(1) << 63 : 0;
    for (size_t i = 0; i < s->count; i++) {
        uint64_t a = sfti_get_u64(s->bytes[0] + 8 * (s->at + i)) ^ turn;
        uint64_t b = sfti_get_u64(s->bytes[1] + 8 * (s->at + i)) ^ turn;
        uint64_t size = b > turn ? b - turn : turn - b;
        if (a == b) continue;
        double distance = (double)(a > b ? a - b : b - a), whole = (double)size;
        if (out->differing++ == 0) out->first = s->from + i;
        if (distance > out->max_abs) out->max_abs = distance;
        if (whole > 0 && distance > out->max_rel * whole) out->max_rel = distance / whole;
        if (distance > run->options->atol + run->options->rtol * whole) out->beyond++;
    }
}

static size_t data_bytes(sft_dtype dtype, size_t elements) {
    return elements * sft_dtype_describe(dtype)->bits / 8;
}

/* A C64 can be compared only with another C64. */
static bool data_has_values(sft_dtype a, sft_dtype b) {
    return (a == SFT_C64) == (b == SFT_C64);
}

#define DATA_BATCH (SFTI_DIFF_VALUES / 2)

/* Compares count elements of both windows; only sums those with equal bytes. */
static void data_window(sfti_diff_run *run, data_stretch *s, size_t count,
                        sft_diff_tensor *out) {
    bool wide = data_is_wide(s->dtype[0]);
    bool alike = s->dtype[0] == s->dtype[1];
    for (s->at = 0; s->at < count; s->at += s->count, s->from += s->count) {
        s->count = count - s->at < DATA_BATCH ? count - s->at : DATA_BATCH;
        size_t begin = data_bytes(s->dtype[0], s->at), len = data_bytes(s->dtype[0], s->count);
        bool same = alike && memcmp(s->bytes[0] + begin, s->bytes[1] + begin, len) == 0;
        data_batch batch = data_load(run, s, same);
        if (same) continue;
        if (wide && alike) data_integers(run, s, out);
        else data_doubles(run, s, &batch, out);
    }
}

/* ── Windows ── */

/* How many whole elements of both fit their windows. */
static size_t data_window_size(sft_dtype a, sft_dtype b) {
    uint32_t left = sft_dtype_describe(a)->bits, right = sft_dtype_describe(b)->bits;
    return SFTI_DIFF_WINDOW * 8 / (left > right ? left : right) / DATA_BATCH * DATA_BATCH;
}

static sft_code data_read(sfti_diff_run *run, const sft_file *const files[2],
                          const sft_tensor *const tensors[2], uint64_t from, size_t count,
                          sft_error *err) {
    for (int i = 0; i < 2; i++) {
        uint32_t bits = sft_dtype_describe(tensors[i]->dtype)->bits;
        uint64_t at = bits < 8 ? from / 8 * bits : from * (bits / 8);
        size_t len = data_bytes(tensors[i]->dtype, count);
        sft_code code = sft_read_bytes(files[i], tensors[i]->offset + at, run->window[i], len, err);
        if (code) return code;
        run->done += len;
    }
    return sfti_job_tick(run->job, run->done, run->total, err);
}

/* Sums the elements before the first window that differed, which were not yet: those of the first
 * tensor, which are also those of the second. */
static sft_code data_equal_begin(sfti_diff_run *run, const sft_file *file, const sft_tensor *a,
                                 uint64_t count, sft_error *err) {
    size_t cap = data_window_size(a->dtype, a->dtype);
    uint32_t bits = sft_dtype_describe(a->dtype)->bits;
    data_stretch s = { .dtype = { a->dtype, a->dtype },
                       .bytes = { run->window[0], run->window[0] } };
    for (uint64_t from = 0; from < count; from += cap) {
        size_t part = count - from < cap ? (size_t)(count - from) : cap;
        uint64_t at = a->offset + from / 8 * bits;
        sft_code code = sft_read_bytes(file, at, run->window[0], data_bytes(a->dtype, part), err);
        if (!code) code = sfti_job_tick(run->job, run->done, run->total, err);
        if (code) return code;
        data_window(run, &s, part, NULL);
    }
    return SFT_OK;
}

/* Whether a sum of squares is known: F64 has neither the squares of its largest numbers nor those
 * of its smallest. */
static bool data_is_known(double sum) { return sum == 0 || (sum > 1e-290 && sum < DATA_INFINITE); }

static void data_finish(const sfti_diff_sums *sums, sft_diff_tensor *out) {
    bool zero = sums->dd == 0 && out->max_abs > 0 && out->max_abs < 1e-145;
    out->rms = out->cosine = (double)NAN;
    if (sums->count > 0 && data_is_known(sums->dd) && !zero)
        out->rms = sfti_root(sums->dd / (double)sums->count);
    if (sums->aa > 0 && sums->bb > 0 && data_is_known(sums->aa) && data_is_known(sums->bb))
        out->cosine = sums->ab / (sfti_root(sums->aa) * sfti_root(sums->bb));
    if (out->cosine > 1) out->cosine = 1;
    if (out->cosine < -1) out->cosine = -1;
}

sft_code sfti_diff_data(sfti_diff_run *run, const sft_file *const files[2],
                        const sft_tensor *a, const sft_tensor *b, sft_diff_tensor *out,
                        bool *same, sft_error *err) {
    const sft_tensor *tensors[2] = { a, b };
    data_stretch s = { .dtype = { a->dtype, b->dtype }, .bytes = { run->window[0],
                                                                   run->window[1] } };
    uint64_t elements = 0, from = 0, equal = 0; /* equal: elements before the first window apart */
    size_t cap = data_window_size(a->dtype, b->dtype);
    *same = true;
    run->sums = (sfti_diff_sums){ 0, 0, 0, 0, 0 };
    out->first = UINT64_MAX;
    sft_code code = sft_shape_size(a->dtype, a->shape, a->rank, &elements, NULL, err);
    while (!code && from < elements) {
        size_t count = elements - from < cap ? (size_t)(elements - from) : cap;
        code = data_read(run, files, tensors, from, count, err);
        if (code) break;
        bool alike = a->dtype == b->dtype &&
                     memcmp(s.bytes[0], s.bytes[1], data_bytes(a->dtype, count)) == 0;
        s.from = from;
        *same = *same && alike;
        if (!*same && data_has_values(a->dtype, b->dtype)) data_window(run, &s, count, out);
        from += count;
        if (*same) equal = from;
    }
    out->compared = !*same && data_has_values(a->dtype, b->dtype);
    if (code || !out->compared) return code;
    out->values = a->dtype == SFT_C64 ? 2 * elements : elements;
    code = data_equal_begin(run, files[0], a, equal, err);
    data_finish(&run->sums, out);
    return code;
}
