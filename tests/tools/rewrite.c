/* Reads files and writes them anew from their parts, for tests/compat/roundtrip.py.
 * A line of standard input: LEVEL (0 to 2), a tab, IN, a tab, OUT. What cannot be strided lies
 * packed; all else goes to OUT through sources over elements that lie in another order. A line
 * of standard output for each: "ok", "same" if what was written, opened again, is what was read,
 * or the code's name. */
#include "safetensors.h"
#include "safetensors_io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A tensor's elements, moved apart: the source packs them again. */
typedef struct strided {
    sft_source source;
    char *apart;
    bool open;
} strided;

static void *need(void *memory) {
    if (!memory) abort();
    return memory;
}

/* Element `at` of the packed ones, counted by dimensions, goes where strides say. */
static void move_apart(const sft_tensor *t, size_t each, const char *packed, char *base,
                       const int64_t *strides) {
    uint64_t *place = need(calloc(t->rank + 1, sizeof *place));
    for (uint64_t at = 0; at < (t->end - t->begin) / each; at++) {
        int64_t to = 0;
        for (uint32_t d = 0; d < t->rank; d++) to += (int64_t)place[d] * strides[d];
        memcpy(base + to, packed + at * each, each);
        for (uint32_t d = t->rank; d-- > 0;) {
            if (++place[d] < t->shape[d]) break;
            place[d] = 0;
        }
    }
    free(place);
}

/* The first dimension fastest, every other one backwards, a gap of an element between. */
static sft_code strided_source(const sft_file *file, const sft_tensor *t, strided *out,
                               sft_error *err) {
    size_t bytes = (size_t)(t->end - t->begin), each = sft_dtype_describe(t->dtype)->bits / 8;
    int64_t *strides = need(calloc(t->rank + 1, sizeof *strides)), next = (int64_t)each * 2;
    char *packed = need(malloc(bytes + 1));
    out->apart = need(malloc(2 * bytes + 1));
    char *base = out->apart;
    for (uint32_t d = 0; d < t->rank && bytes > 0; d++) {
        int64_t last = next * (int64_t)(t->shape[d] - 1);
        strides[d] = d % 2 ? -next : next;
        if (d % 2) base += last;
        next *= (int64_t)t->shape[d];
    }
    sft_code code = sft_read_into(file, t, packed, bytes, err);
    if (!code && bytes > 0) move_apart(t, each, packed, base, strides);
    if (!code)
        code = sft_source_strided(t->dtype, t->shape, t->rank, base, strides, NULL, &out->source,
                                  err);
    out->open = !code;
    free(packed);
    free(strides);
    return code;
}

static sft_code make_part(const sft_file *file, const sft_source *source, const sft_tensor *t,
                          strided *moved, sft_part *out, sft_error *err) {
    *out = sft_part_of(t, source);
    if (sft_dtype_describe(t->dtype)->bits < 8 || t->rank > SFT_MAX_RANK) return SFT_OK;
    sft_code code = strided_source(file, t, moved, err);
    out->source = &moved->source;
    out->begin = 0;
    return code;
}

static sft_code write_parts(const sft_file *file, sft_level level, const char *path,
                            sft_error *err) {
    sft_plan_options plan = SFT_PLAN_OPTIONS_INIT;
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    size_t count = sft_file_tensor_count(file), pairs = sft_file_metadata_count(file);
    sft_part *parts = need(calloc(count + 1, sizeof *parts));
    strided *moved = need(calloc(count + 1, sizeof *moved));
    sft_pair *metadata = need(calloc(pairs + 1, sizeof *metadata));
    sft_source source = sft_file_source(file);
    sft_sink sink;
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < count; i++)
        code = make_part(file, &source, sft_file_tensor_at(file, count - 1 - i), &moved[i],
                         &parts[i], err);
    for (size_t i = 0; i < pairs; i++) metadata[i] = sft_file_metadata_at(file, pairs - 1 - i);
    plan.has_metadata = sft_file_has_metadata(file);
    plan.level = level;
    options.no_sync = true;
    if (!code) code = sft_sink_path(path, &options, &sink, err);
    if (!code) code = sft_save_parts(parts, count, metadata, pairs, &plan, sink, NULL, err);
    for (size_t i = 0; i < count; i++) {
        if (moved[i].open) sft_source_close(&moved[i].source);
        free(moved[i].apart);
    }
    free(parts);
    free(moved);
    free(metadata);
    return code;
}

/* ── Is it the same? ── */

static bool same_tensor(const sft_file *a, const sft_tensor *x, const sft_file *b) {
    const sft_tensor *y = sft_file_find(b, x->name);
    size_t bytes = (size_t)(x->end - x->begin);
    if (!y || x->dtype != y->dtype || x->rank != y->rank) return false;
    if (y->end - y->begin != bytes) return false;
    for (uint32_t d = 0; d < x->rank; d++)
        if (x->shape[d] != y->shape[d]) return false;
    char *one = need(malloc(bytes + 1)), *two = need(malloc(bytes + 1));
    bool same = !sft_read_into(a, x, one, bytes, NULL) && !sft_read_into(b, y, two, bytes, NULL)
                && memcmp(one, two, bytes) == 0;
    free(one);
    free(two);
    return same;
}

static bool same_files(const sft_file *a, const sft_file *b) {
    sft_span value;
    bool same = sft_file_tensor_count(a) == sft_file_tensor_count(b)
                && sft_file_metadata_count(a) == sft_file_metadata_count(b)
                && sft_file_has_metadata(a) == sft_file_has_metadata(b);
    for (size_t i = 0; same && i < sft_file_tensor_count(a); i++)
        same = same_tensor(a, sft_file_tensor_at(a, i), b);
    for (size_t i = 0; same && i < sft_file_metadata_count(a); i++) {
        sft_pair pair = sft_file_metadata_at(a, i);
        same = sft_file_metadata_get(b, pair.key, &value) && sft_span_equal(pair.value, value);
    }
    return same;
}

static const char *rewrite(int level, const char *from, const char *to, sft_error *err) {
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    sft_file *file, *again = NULL;
    options.level = (sft_level)level;
    sft_code code = sft_open(from, &options, &file, err);
    if (!code) code = write_parts(file, options.level, to, err);
    if (!code) code = sft_open(to, &options, &again, err);
    const char *said = code ? sft_code_describe(code)->name
                            : same_files(file, again) ? "same" : "ok";
    sft_close(file);
    sft_close(again);
    return said;
}

int main(void) {
    static char line[16384];
    while (fgets(line, sizeof line, stdin)) {
        sft_error err = SFT_ERROR_INIT;
        line[strcspn(line, "\n")] = '\0';
        char *from = strchr(line, '\t'), *to = from ? strchr(from + 1, '\t') : NULL;
        if (!to) return 2;
        *from = *to = '\0';
        puts(rewrite(line[0] - '0', from + 1, to + 1, &err));
        if (err.code) fprintf(stderr, "%s: %s\n", from + 1, err.message);
    }
    return 0;
}
