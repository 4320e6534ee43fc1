/* The texts of NESTED columns' types, as sfti_arrow_type_put writes them. Tests:
 * test_dataset_nested.c. */
#include "base/error.h"
#include "base/number.h"
#include "dataset/dataset.h"

#include <string.h>

typedef struct type_reader {
    sft_span left;
    sfti_arena *arena;
    sfti_ds_inner *all;
    size_t count, cap;
    bool full; /* out of memory */
} type_reader;

static bool type_take(type_reader *r, const char *text) {
    const size_t len = strlen(text);
    if (r->left.len < len || memcmp(r->left.data, text, len) != 0) return false;
    r->left.data += len;
    r->left.len -= len;
    return true;
}

static bool type_word(char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static uint64_t type_number(type_reader *r) {
    size_t len = 0;
    uint64_t value = UINT64_MAX;
    while (len < r->left.len && r->left.data[len] >= '0' && r->left.data[len] <= '9') len++;
    if (!sfti_text_uint((sft_span){ r->left.data, len }, &value)) value = UINT64_MAX;
    r->left.data += len;
    r->left.len -= len;
    return value;
}

/* ── Values ── */

static bool type_until(type_reader *r, char end) {
    const char *at = memchr(r->left.data, end, r->left.len);
    if (!at) return false;
    r->left.len -= (size_t)(at + 1 - r->left.data);
    r->left.data = at + 1;
    return true;
}

static const struct type_value {
    const char *text;
    sft_dtype dtype;
    uint64_t width;
    char end; /* of its parameters; 0: none */
} type_values[] = {
    { "timestamp[", SFT_I64, 0, ']' },    { "date32[", SFT_I32, 0, ']' },
    { "date64[", SFT_I64, 0, ']' },       { "time32[", SFT_I32, 0, ']' },
    { "time64[", SFT_I64, 0, ']' },       { "duration[", SFT_I64, 0, ']' },
    { "decimal32(", SFT_I32, 0, ')' },    { "decimal64(", SFT_I64, 0, ')' },
    { "decimal128(", SFT_U8, 16, ')' },   { "decimal256(", SFT_U8, 32, ')' },
};

static bool type_value_read(type_reader *r, sfti_ds_inner *out) {
    static const char *const bytes[] = { "string", "large_string", "string_view", "binary",
                                         "large_binary", "binary_view" };
    out->form = SFTI_FORM_PLAIN;
    for (size_t i = 0; i < sizeof type_values / sizeof *type_values; i++)
        if (type_take(r, type_values[i].text)) {
            out->dtype = type_values[i].dtype;
            out->width = type_values[i].width;
            return type_until(r, type_values[i].end);
        }
    if (type_take(r, "fixed_size_binary[")) {
        out->dtype = SFT_U8;
        out->width = type_number(r);
        return out->width != UINT64_MAX && type_take(r, "]");
    }
    size_t len = 0;
    while (len < r->left.len && type_word(r->left.data[len])) len++;
    const sft_span word = { r->left.data, len };
    r->left.data += len;
    r->left.len -= len;
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        if (sft_span_equal(word, sft_span_cstr(bytes[i]))) {
            out->form = SFTI_FORM_BYTES;
            out->dtype = SFT_U8;
            out->text = i < 3;
            return true;
        }
    for (int d = 0; d < SFT_DTYPE_COUNT; d++)
        if (sft_span_equal(word, sft_span_cstr(sfti_ds_type_name((sft_dtype)d)))) {
            out->dtype = (sft_dtype)d;
            return true;
        }
    return false;
}

/* ── Names ── */

/* "<of>.<name>", whose name is a word, or in quotes. False: neither, or out of memory. */
static bool type_name_read(type_reader *r, sft_span of, sft_span *out) {
    size_t len = 0, made;
    const bool quoted = type_take(r, "\"");
    while (len < r->left.len &&
           (quoted ? r->left.data[len] != '"' : type_word(r->left.data[len])))
        len += quoted && r->left.data[len] == '\\' ? 2 : 1;
    if (len > r->left.len || (!quoted && !len)) return false;
    char *text = sfti_arena_take(r->arena, of.len + len + 1);
    r->full = !text;
    if (!text) return false;
    if (of.len) memcpy(text, of.data, of.len);
    text[of.len] = '.';
    made = of.len + 1;
    for (size_t i = 0; i < len; i++) {
        const char *at = r->left.data + i;
        if (*at != '\\') {
            text[made++] = *at;
        } else if (at[1] != 'u') {
            text[made++] = at[1];
            i++;
        } else { /* "\u001f" */
            if (len - i < 6) return false;
            const char digit = at[5];
            text[made++] = (char)((at[4] - '0') * 16 +
                                  (digit <= '9' ? digit - '0' : digit - 'a' + 10));
            i += 5;
        }
    }
    r->left.data += len;
    r->left.len -= len;
    *out = (sft_span){ text, made };
    return !quoted || type_take(r, "\"");
}

static bool type_item(type_reader *r, sft_span of, sft_span *out) {
    type_reader one = { .left = sft_span_cstr("item"), .arena = r->arena };
    const bool good = type_name_read(&one, of, out);
    r->full = one.full;
    return good;
}

/* ── All ── */

/* The next type; *open: it has others in it. */
static bool type_next(type_reader *r, sft_span name, size_t parent, bool *open) {
    static const char *const lists[] = { "list<", "large_list<", "list_view<", "large_list_view<",
                                         "fixed_size_list<" };
    sfti_ds_inner *all = sfti_arena_grow(r->arena, r->all, r->count, 1, &r->cap, sizeof *all);
    r->full = !all;
    if (!all) return false;
    r->all = all;
    sfti_ds_inner *one = &all[r->count++];
    memset(one, 0, sizeof *one);
    one->name = name;
    one->parent = parent;
    *open = true;
    one->form = SFTI_FORM_STRUCT;
    if (type_take(r, "struct<")) return true;
    one->form = SFTI_FORM_LIST;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (type_take(r, lists[i])) {
            one->fixed = i == 4;
            return true;
        }
    *open = false;
    return type_value_read(r, one);
}

static bool type_all(type_reader *r, sft_span name) {
    size_t parent = SIZE_MAX;
    bool open = false;
    if (!type_next(r, name, parent, &open)) return false;
    if (open) parent = 0;
    while (parent != SIZE_MAX) {
        sfti_ds_inner *around = &r->all[parent];
        const bool first = r->count == parent + 1;
        const bool fields = around->form == SFTI_FORM_STRUCT;
        if (!first && type_take(r, ">")) {
            parent = around->parent;
            if (!around->fixed) continue;
            if (!type_take(r, "[")) return false;
            around->size = type_number(r);
            if (around->size == UINT64_MAX || !type_take(r, "]")) return false;
            continue;
        }
        if (!first && !(fields && type_take(r, ", "))) return false;
        if (fields ? !type_name_read(r, around->name, &name) || !type_take(r, ": ")
                   : !type_item(r, around->name, &name))
            return false;
        const size_t at = r->count;
        if (!type_next(r, name, parent, &open)) return false;
        if (open) parent = at;
    }
    return r->left.len == 0;
}

sft_code sfti_ds_type_parse(sft_span column, sft_span type, sfti_arena *arena,
                            sfti_ds_inner **out, size_t *count, sft_error *err) {
    type_reader r = { .left = type, .arena = arena };
    bool good = type_all(&r, column);
    *out = r.all;
    *count = r.count;
    if (r.full) return sfti_fail_memory(err, r.count * sizeof *r.all);
    return good ? SFT_OK
                : sfti_misuse(err, "column %.*s: expected a type, found %.*s",
                              SFTI_CLIP(column, 100), SFTI_CLIP(type, 200));
}
