/* Slices against a naive loop. Input: dtype, rank, dimensions, parts of an index; then text. */
#include "fuzz.h"
#include "plain_slice.h"

#include <string.h>

typedef struct { const uint8_t *at, *end; } input;

static uint8_t take(input *in) { return in->at < in->end ? *in->at++ : 0; }

static int64_t number(input *in) {
    static const int64_t far[] = { INT64_MIN, INT64_MIN + 1, INT64_MAX, -1000, 1000 };
    uint8_t b = take(in);
    return b >= 251 ? far[b - 251] : (int64_t)(b % 23) - 11;
}

static sft_slice_part take_part(input *in) {
    uint8_t k = take(in);
    sft_slice_part_kind kind = k % 8 > 2 ? SFT_SLICE_PART_RANGE
                               : k % 8   ? SFT_SLICE_PART_INDEX
                                         : SFT_SLICE_PART_ELLIPSIS;
    sft_slice_part p = { kind, number(in), 0, 0, 0, k & 8, k & 16, k & 32 };
    p.start = number(in), p.stop = number(in), p.step = number(in);
    return p;
}

static void check_resolved(const sft_slice *s, const sft_slice_part *parts, size_t count,
                           const uint64_t *shape) {
    for (size_t i = 0; i < count && parts[i].kind != SFT_SLICE_PART_ELLIPSIS; i++) {
        FUZZ_CHECK((s->dropped >> i & 1) == (parts[i].kind == SFT_SLICE_PART_INDEX));
        if (parts[i].kind != SFT_SLICE_PART_RANGE) continue;
        sft_range want = plain_range(&parts[i], (int64_t)shape[i]), have = s->range[i];
        FUZZ_CHECK(have.count == want.count && have.step == want.step);
        FUZZ_CHECK(!want.count || have.start == want.start);
    }
}

static void check_runs(const sft_tensor *t, const sft_slice *s, const uint8_t *data,
                       const uint8_t *want, uint64_t bytes, sft_code code) {
    sft_runs runs;
    sft_run run;
    uint64_t sum = 0;
    FUZZ_CHECK(sft_runs_begin(t, s, &runs, NULL) == code);
    for (; !code && sft_runs_next(&runs, &run); sum += run.len) {
        FUZZ_CHECK(run.offset + run.len <= t->end - t->begin && sum + run.len <= bytes);
        FUZZ_CHECK(!memcmp(data + run.offset, want + sum, run.len));
    }
    FUZZ_CHECK(code || sum == bytes);
}

static void check_read(const sft_file *file, const sft_slice *s, const uint8_t *data) {
    const sft_tensor *t = sft_file_tensor_at(file, 0);
    uint64_t bytes;
    if (sft_slice_size(s, t->dtype, NULL, &bytes, NULL)) return;
    uint8_t *want = calloc(1, (size_t)bytes + 1), *have = calloc(1, (size_t)bytes + 1);
    sft_code code = sft_slice_read(file, t, s, have, (size_t)bytes, NULL);
    FUZZ_CHECK(code == SFT_OK || code == SFT_SLICE_PARTIAL_BYTE);
    plain_copy(s, t->shape, sft_dtype_describe(t->dtype)->bits, data, want);
    FUZZ_CHECK(code || !memcmp(want, have, (size_t)bytes));
    check_runs(t, s, data, want, bytes, code);
    free(want), free(have);
}

/* A file of one tensor, its bytes all different modulo 251. */
static sft_file *make_file(char *at, sft_dtype dtype, const uint64_t *s, uint32_t rank,
                           uint64_t bytes) {
    static const char *const shapes[] = { "", "%u", "%u,%u", "%u,%u,%u", "%u,%u,%u,%u" };
    static const char form[] = "{\"t\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[0,%u]}}";
    char shape[32];
    sft_file *file;
    unsigned a = (unsigned)s[0], b = (unsigned)s[1], c = (unsigned)s[2], d = (unsigned)s[3];
    snprintf(shape, sizeof shape, shapes[rank], a, b, c, d);
    int n = snprintf(at + 8, 120, form, sft_dtype_describe(dtype)->name, shape, (unsigned)bytes);
    memset(at, 0, 8);
    at[0] = (char)n;
    for (uint64_t i = 0; i < bytes; i++) at[8 + n + (int)i] = (char)(i * 7 % 251);
    FUZZ_CHECK(!sft_open_memory(at, 8 + (size_t)n + (size_t)bytes, NULL, &file, NULL));
    return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char buffer[8 + 128 + 8 * 9 * 9 * 9 * 9];
    input in = { data, data + size };
    sft_dtype dtype = (sft_dtype)(take(&in) % SFT_DTYPE_COUNT);
    uint64_t shape[PLAIN_RANK] = { 0 }, len;
    uint32_t rank = take(&in) % (PLAIN_RANK + 1);
    for (uint32_t d = 0; d < rank; d++) shape[d] = take(&in) % 9;
    if (sft_shape_size(dtype, shape, rank, NULL, &len, NULL)) return 0;
    sft_slice_part parts[6];
    size_t count = take(&in) % 6;
    for (size_t i = 0; i < count; i++) parts[i] = take_part(&in);
    sft_file *file = make_file(buffer, dtype, shape, rank, len);
    const uint8_t *body = (uint8_t *)buffer + sft_file_data_offset(file);
    sft_slice slice;
    bool whole = !sft_slice_resolve(shape, rank, parts, count, &slice, NULL);
    if (whole) check_resolved(&slice, parts, count, shape);
    if (whole) check_read(file, &slice, body);
    sft_span text = { (const char *)in.at, (size_t)(in.end - in.at) };
    if (!sft_slice_parse(shape, rank, text, &slice, NULL)) check_read(file, &slice, body);
    sft_close(file);
    return 0;
}
