/* cat: one tensor, or a slice of it. */
#include "cli.h"

#include "base/json.h"
#include "os/os.h"
#include "pieces.h"
#include "values.h"
#include "words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct selection {
    cli *c;
    const sft_file *file;
    const sft_tensor *tensor;
    sft_slice slice;
    uint32_t rank;                /* of the result */
    uint64_t shape[SFT_MAX_RANK]; /* of the result */
    uint64_t at[SFT_MAX_RANK];    /* place of the next element */
    uint64_t elements, bytes;
} selection;

/* ── Which tensor ── */

/* The longest beginning of text that names a tensor and is followed by `[` or the end. */
static const sft_tensor *find_tensor(const sft_set *set, sft_span text, size_t *shard,
                                     sft_span *rest) {
    sft_span name = text;
    const sft_tensor *tensor = sft_set_find(set, name, shard);
    while (!tensor && name.len > 0) {
        do name.len--;
        while (name.len > 0 && text.data[name.len] != '[');
        if (text.data[name.len] == '[') tensor = sft_set_find(set, name, shard);
    }
    if (tensor) *rest = (sft_span){ text.data + name.len, text.len - name.len };
    return tensor;
}

#define NEAR_TENSORS 20000

static const sft_tensor *nearest_tensor(const sft_set *set, sft_span text) {
    const sft_tensor *best = NULL;
    size_t least = SIZE_MAX, count = sft_set_count(set);
    for (size_t i = 0; i < count && i < NEAR_TENSORS; i++) {
        const sft_tensor *tensor = sft_set_tensor(set, i);
        size_t distance = cli_distance(tensor->name, text);
        if (distance < least) {
            least = distance;
            best = tensor;
        }
    }
    return best && cli_is_near(least, text.len) ? best : NULL;
}

static sft_code no_tensor(const sft_set *set, sft_span text, sft_error *err) {
    const char *bracket = memchr(text.data, '[', text.len);
    sft_span name = { text.data, bracket ? (size_t)(bracket - text.data) : text.len };
    const sft_tensor *near = nearest_tensor(set, name);
    sft_code code = sfti_fail_tensor(
        err, SFT_TENSOR_NOT_FOUND, SFT_NO_OFFSET, name,
        near ? "there is no tensor of that name: did you mean \"%.*s\"?"
             : "there is no tensor of that name%.*s",
        near ? (int)near->name.len : 0, near ? near->name.data : "");
    return code;
}

static sft_code select_slice(selection *s, sft_span text, sft_error *err) {
    sft_slice *slice = &s->slice;
    sft_code code = text.len == 0
        ? sft_slice_resolve(s->tensor->shape, s->tensor->rank, NULL, 0, slice, err)
        : sft_slice_parse(s->tensor->shape, s->tensor->rank, text, slice, err);
    if (code) return code;
    s->rank = sft_slice_shape(slice, s->shape);
    return sft_slice_size(slice, s->tensor->dtype, &s->elements, &s->bytes, err);
}

/* ── raw and npy ── */

static sft_code put_raw(void *ctx, const void *bytes, size_t len, uint64_t elements,
                        sft_error *err) {
    selection *s = ctx;
    (void)elements;
    cli_put(&s->c->out, bytes, len);
    if (cli_is_over(s->c)) return sfti_fail(err, SFT_CANCELLED, SFT_NO_OFFSET, "stopped");
    return SFT_OK;
}

static sft_code cat_raw(selection *s, sft_error *err) {
    return cli_read_pieces(s->c, s->file, s->tensor, &s->slice, put_raw, s, err);
}

#define NPY_ROOM 2048

/* The dictionary with its newline, padded so that the data begins at a multiple of 64. */
static size_t npy_dictionary(const selection *s, char room[NPY_ROOM]) {
    size_t n = (size_t)snprintf(room, NPY_ROOM,
                                "{'descr': '%s', 'fortran_order': False, 'shape': (",
                                cli_numpy_code(s->tensor->dtype));
    for (uint32_t d = 0; d < s->rank; d++) {
        const char *comma = d + 1 < s->rank ? ", " : s->rank == 1 ? "," : "";
        n += (size_t)snprintf(room + n, 26, "%" PRIu64 "%s", s->shape[d], comma);
    }
    n += (size_t)snprintf(room + n, 8, "), }");
    while ((10 + n + 1) % 64) room[n++] = ' ';
    room[n++] = '\n';
    return n;
}

static sft_code cat_npy(selection *s, sft_error *err) {
    char dictionary[NPY_ROOM];
    size_t len = npy_dictionary(s, dictionary);
    uint8_t magic[10] = { 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)len,
                          (uint8_t)(len >> 8) };
    cli_put(&s->c->out, magic, sizeof magic);
    cli_put(&s->c->out, dictionary, len);
    return cat_raw(s, err);
}

/* ── text: a row a line, a blank line between matrices ── */

/* Dimensions that are at their first place, from the last outwards. */
static uint32_t opening_dims(const selection *s) {
    uint32_t n = 0;
    while (n < s->rank && s->at[s->rank - 1 - n] == 0) n++;
    return n;
}

/* Step on; returns how many dimensions came to their end. */
static uint32_t step_on(selection *s) {
    uint32_t ended = 0;
    for (uint32_t d = s->rank; d-- > 0; ended++) {
        if (++s->at[d] < s->shape[d]) break;
        s->at[d] = 0;
    }
    return ended;
}

static sft_code put_text(void *ctx, const void *bytes, size_t len, uint64_t elements,
                         sft_error *err) {
    selection *s = ctx;
    cli_out *out = &s->c->out;
    char room[CLI_VALUE_ROOM];
    (void)len;
    for (uint64_t i = 0; i < elements; i++) {
        if (s->rank && s->at[s->rank - 1]) cli_text(out, " ");
        cli_put(out, room, cli_value_text(s->tensor->dtype, bytes, i, false, room));
        uint32_t ended = step_on(s);
        if (ended || !s->rank) cli_text(out, "\n");
        if (ended >= 2 && ended < s->rank) cli_text(out, "\n");
        if (out->error) return sfti_fail(err, SFT_CANCELLED, SFT_NO_OFFSET, "stopped");
    }
    return put_raw(s, NULL, 0, 0, err);
}

static sft_code cat_text(selection *s, sft_error *err) {
    return cli_read_pieces(s->c, s->file, s->tensor, &s->slice, put_text, s, err);
}

/* ── json ── */

static sft_code put_json(void *ctx, const void *bytes, size_t len, uint64_t elements,
                         sft_error *err) {
    selection *s = ctx;
    cli_out *out = &s->c->out;
    char room[CLI_VALUE_ROOM];
    (void)len;
    for (uint64_t i = 0; i < elements; i++) {
        uint32_t opens = opening_dims(s);
        bool first = true;
        for (uint32_t d = 0; d < s->rank; d++) first = first && s->at[d] == 0;
        if (!first) cli_text(out, ",");
        for (uint32_t d = 0; d < opens; d++) cli_text(out, "[");
        cli_put(out, room, cli_value_text(s->tensor->dtype, bytes, i, true, room));
        for (uint32_t ended = step_on(s); ended > 0; ended--) cli_text(out, "]");
        if (out->error) return sfti_fail(err, SFT_CANCELLED, SFT_NO_OFFSET, "stopped");
    }
    return put_raw(s, NULL, 0, 0, err);
}

/* A result without elements is empty brackets as deep as its first empty dimension. */
static void empty_json(selection *s) {
    uint32_t depth = 0;
    while (depth < s->rank && s->shape[depth]) depth++;
    cli_text(&s->c->out, depth == 0 ? "[]" : "null");
}

static void json_shape(selection *s) {
    char room[CLI_NUMBER_ROOM];
    cli_text(&s->c->out, ",\"shape\":[");
    for (uint32_t d = 0; d < s->rank; d++) {
        snprintf(room, sizeof room, "%s%" PRIu64, d ? "," : "", s->shape[d]);
        cli_text(&s->c->out, room);
    }
    cli_text(&s->c->out, "]");
}
