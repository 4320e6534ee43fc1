/* The footer of a Parquet file: a struct in Thrift's compact protocol, its length, "PAR1". Only the
 * facts of sfti_ds_index are taken from it; no data is read. */
#include "base/endian.h"
#include "base/error.h"
#include "base/order.h"
#include "bytes/source.h"
#include "dataset/read/manifest.h"

#include <string.h>

#define FOOTER_MOST (UINT32_C(64) << 20)
#define FOOTER_DEPTH 16

typedef enum footer_type {
    FOOTER_STOP = 0,
    FOOTER_TRUE = 1,
    FOOTER_FALSE = 2,
    FOOTER_BYTE = 3,
    FOOTER_I16 = 4,
    FOOTER_I32 = 5,
    FOOTER_I64 = 6,
    FOOTER_DOUBLE = 7,
    FOOTER_BINARY = 8,
    FOOTER_LIST = 9,
    FOOTER_SET = 10,
    FOOTER_MAP = 11,
    FOOTER_STRUCT = 12
} footer_type;

/* A struct, or a list whose elements are all of one type. */
typedef struct footer_level {
    bool list;
    int32_t field;  /* the current one of a struct; 0 in a list */
    unsigned type;  /* of the list's elements */
    uint64_t left;  /* of them */
} footer_level;

typedef struct footer_walk {
    const uint8_t *at, *end;
    footer_level level[FOOTER_DEPTH];
    int depth; /* levels that are open */
    bool broken;
    sft_span key, column; /* the last one of a pair, of a column chunk's path */
    sfti_ds_index *out;
} footer_walk;

/* ── Numbers ── */

static uint8_t footer_byte(footer_walk *w) {
    w->broken = w->at == w->end; /* no byte is asked for after that */
    return w->broken ? 0 : *w->at++;
}

static uint64_t footer_varint(footer_walk *w) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = footer_byte(w);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    w->broken = true;
    return 0;
}

static int64_t footer_zigzag(footer_walk *w) {
    uint64_t value = footer_varint(w);
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static sft_span footer_bytes(footer_walk *w, uint64_t len) {
    sft_span text = { (const char *)w->at, 0 };
    w->broken = w->broken || len > (uint64_t)(w->end - w->at);
    if (w->broken) return text;
    text.len = (size_t)len;
    w->at += len;
    return text;
}

/* ── What is taken ── */

/* Whether these fields lead to the current value; 0 is a list's element. */
static bool footer_is(const footer_walk *w, const int32_t *fields, int count) {
    if (w->depth != count) return false;
    for (int i = 0; i < count; i++)
        if (w->level[i].field != fields[i]) return false;
    return true;
}
#define FOOTER_IS(w, ...)                                          \
    footer_is(w, (const int32_t[]){ __VA_ARGS__ },                 \
              (int)(sizeof((const int32_t[]){ __VA_ARGS__ }) / sizeof(int32_t)))

/* The least and greatest file_name of all row groups. */
static void footer_bound(footer_walk *w, sft_span text, bool greatest) {
    sft_span *bound = greatest ? &w->out->last : &w->out->first;
    if (!sft_span_equal(w->column, sft_span_cstr("file_name"))) return;
    int order = bound->data ? sfti_bytes_compare(text, *bound) : 0;
    if (!bound->data || (greatest ? order > 0 : order < 0)) *bound = text;
}

static void footer_text(footer_walk *w, sft_span text) {
    static const char *const names[] = { "tensor_key", "file_name", "shape", "dtype" };
    if (w->broken) return;
    for (unsigned i = 0; i < 4 && FOOTER_IS(w, 2, 0, 4); i++)
        if (sft_span_equal(text, sft_span_cstr(names[i]))) w->out->columns |= 1u << i;
    if (FOOTER_IS(w, 5, 0, 1)) w->key = text;
    else if (FOOTER_IS(w, 5, 0, 2) && sft_span_equal(w->key, sft_span_cstr("commit")))
        w->out->commit = text;
    else if (FOOTER_IS(w, 4, 0, 1, 0, 3, 3, 0)) w->column = text;
    else if (FOOTER_IS(w, 4, 0, 1, 0, 3, 12, 5)) footer_bound(w, text, true);
    else if (FOOTER_IS(w, 4, 0, 1, 0, 3, 12, 6)) footer_bound(w, text, false);
}

/* ── Walking ── */

static void footer_open(footer_walk *w, footer_level level) {
    w->broken = w->broken || w->depth == FOOTER_DEPTH;
    if (!w->broken) w->level[w->depth++] = level;
}

static void footer_value(footer_walk *w, unsigned type) {
    int64_t number;
    uint64_t count;
    uint8_t head;
    switch (type) {
    case FOOTER_TRUE:
    case FOOTER_FALSE: /* the type is a field's value; a list's element has a byte */
        if (w->level[w->depth - 1].list) (void)footer_byte(w);
        break;
    case FOOTER_BYTE: (void)footer_byte(w); break;
    case FOOTER_I16:
    case FOOTER_I32:
    case FOOTER_I64:
        number = footer_zigzag(w);
        if (!FOOTER_IS(w, 3)) break;
        w->broken = w->broken || number < 0;
        w->out->rows = (uint64_t)number;
        w->out->has_rows = true;
        break;
    case FOOTER_DOUBLE: (void)footer_bytes(w, 8); break;
    case FOOTER_BINARY: footer_text(w, footer_bytes(w, footer_varint(w))); break;
    case FOOTER_LIST:
    case FOOTER_SET:
        head = footer_byte(w);
        count = head >> 4 == 15 ? footer_varint(w) : head >> 4;
        footer_open(w, (footer_level){ true, 0, head & 15u, count });
        break;
    case FOOTER_STRUCT: footer_open(w, (footer_level){ .list = false }); break;
    default: w->broken = true; /* Parquet's footer has no maps */
    }
}

static void footer_step(footer_walk *w) {
    footer_level *top = &w->level[w->depth - 1];
    if (top->list) {
        if (top->left == 0) w->depth--;
        else top->left--, footer_value(w, top->type);
        return;
    }
    uint8_t head = footer_byte(w);
    if ((head & 15) == FOOTER_STOP) {
        w->depth--;
        return;
    }
    int64_t field = head >> 4 ? top->field + (head >> 4) : footer_zigzag(w);
    w->broken = w->broken || field < 1 || field > INT16_MAX;
    top->field = w->broken ? 0 : (int32_t)field;
    if (!w->broken) footer_value(w, head & 15u);
}

/* ── The file ── */

static sft_code footer_fail(sft_error *err, const char *found) {
    return sfti_fail(err, SFT_DATASET_SHARD, "expected a Parquet file, found %s", found);
}

static sft_code footer_read(const sft_source *source, sfti_arena *arena, sft_span *out,
                            sft_error *err) {
    uint8_t tail[8];
    if (source->size < 12) return footer_fail(err, "too few bytes");
    sft_code code = sfti_source_all(source, source->size - 8, tail, 8, err);
    if (code) return code;
    uint32_t len = sfti_get_u32(tail);
    if (memcmp(tail + 4, "PAR1", 4) != 0) return footer_fail(err, "another end");
    if (len > source->size - 12 || len > FOOTER_MOST) return footer_fail(err, "a footer too long");
    char *buffer = sfti_arena_take(arena, len);
    if (!buffer) return sfti_fail_memory(err, len);
    *out = (sft_span){ buffer, len };
    return sfti_source_all(source, source->size - 8 - len, buffer, len, err);
}

sft_code sfti_ds_index_read(const sft_storage *storage, const char *name, sfti_arena *arena,
                            sfti_ds_index *out, sft_error *err) {
    sft_source source;
    sft_span text = { NULL, 0 };
    memset(out, 0, sizeof *out);
    sft_code code = sfti_call(storage, open, name, &source, err);
    if (code) return code;
    code = footer_read(&source, arena, &text, err);
    sft_source_close(&source);
    if (code) return code;
    footer_walk w = { .at = (const uint8_t *)text.data, .out = out, .depth = 1 };
    w.end = w.at + text.len;
    while (w.depth && !w.broken) footer_step(&w);
    return w.broken || !out->has_rows ? footer_fail(err, "a footer that cannot be read") : SFT_OK;
}
