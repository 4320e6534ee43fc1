/* Reading rows of quantised layouts. Tests: test_quant.c. */
#include "quant/layouts.h"

#include "base/number.h"

#include <string.h>

/* data/quantised.layouts (cmake/embed.cmake, tools/bundle.py) */
extern const unsigned char sfti_layouts_text[];
extern const size_t sfti_layouts_size;

bool sfti_layout_word(sft_span *rest, char end, sft_span *word) {
    while (rest->len > 0 && (*rest->data == ' ' || *rest->data == end)) rest->data++, rest->len--;
    size_t len = 0;
    while (len < rest->len && rest->data[len] != ' ' && rest->data[len] != end) len++;
    *word = (sft_span){ rest->data, len };
    rest->data += len;
    rest->len -= len;
    return len > 0;
}

static bool word_is(sft_span word, const char *text) {
    return sft_span_equal(word, sft_span_cstr(text));
}

/* "NAME=VALUE" */
static bool word_has(sft_span word, const char *name, sft_span *value) {
    size_t len = strlen(name);
    if (word.len <= len || memcmp(word.data, name, len) != 0 || word.data[len] != '=') return false;
    *value = (sft_span){ word.data + len + 1, word.len - len - 1 };
    return true;
}

static bool read_number(sft_span text, uint32_t *out) {
    uint64_t value;
    if (word_is(text, "?")) {
        *out = SFTI_BLOCK_ANY;
        return true;
    }
    if (!sfti_text_uint(text, &value) || value > 65536) return false;
    *out = (uint32_t)value;
    return true;
}

static bool read_dtypes(sft_span text, uint32_t *dtypes) {
    sft_span word;
    while (sfti_layout_word(&text, '|', &word)) {
        uint32_t before = *dtypes;
        for (int i = 0; i < SFT_DTYPE_COUNT; i++) {
            const sft_dtype_info *info = sft_dtype_describe((sft_dtype)i);
            bool is_float = info->kind == SFT_KIND_FLOAT;
            if (word_is(word, info->name) || word_is(word, "any")
                || (is_float && word_is(word, "float"))
                || (is_float && info->bits >= 16 && word_is(word, "wide")))
                *dtypes |= 1u << i;
        }
        if (*dtypes == before) return false;
    }
    return true;
}

static bool read_code(sft_span text, sfti_layout_part *part) {
    static const struct { const char *name; uint8_t code; } codes[] = {
        { "int", SFTI_CODE_INT }, { "uint", SFTI_CODE_UINT }, { "offset", SFTI_CODE_OFFSET },
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (word_is(text, codes[i].name)) {
            part->code = codes[i].code;
            return true;
        }
    uint32_t one = 0;
    if (!read_dtypes(text, &one) || (one & (one - 1)) != 0) return false;
    while (!(one >> part->as & 1)) part->as++;
    part->bits = (uint8_t)sft_dtype_describe((sft_dtype)part->as)->bits;
    return true;
}

static bool read_flag(sft_span word, sfti_layout_part *part) {
    const struct { const char *name; bool *flag; } flags[] = {
        { "high", &part->high }, { "awq", &part->awq }, { "across", &part->across },
        { "split", &part->split },
        { "words", &part->words }, { "tiled", &part->tiled }, { "flat", &part->flat },
        { "joined", &part->joined }, { "planes", &part->planes },
        { "divides", &part->divides }, { "to-int8", &part->to_int8 }, { "then", &part->then },
        { "middle", &part->middle }, { "optional", &part->optional }, { "0", &part->is_zero },
        { "one", &part->is_one }, { "wider", &part->wider },
        { "scaled", &part->scaled },
    };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (word_is(word, flags[i].name)) return *flags[i].flag = true;
    sft_span value;
    uint32_t number;
    if (word_has(word, "as", &value)) {
        part->as = 0;
        if (!read_code(value, part)) return false;
        if (part->code != SFTI_CODE_DTYPE) part->as = SFT_DTYPE_COUNT;
        return true;
    }
    if (word_has(word, "blocks", &value))
        return read_number(value, &part->rows) && read_number(value, &part->columns);
    if (word_has(word, "rows", &value)) return read_number(value, &part->rows);
    if (word_has(word, "columns", &value)) {
        if (part->rows == SFTI_BLOCK_ALL) part->rows = 1;
        return read_number(value, &part->columns);
    }
    if (word_has(word, "bits", &value) && read_number(value, &number) && number <= 8) {
        part->bits = (uint8_t)number;
        return true;
    }
    if (word_has(word, "in", &part->in)) return true;
    if (!word_has(word, "plus", &value) || !read_number(value, &number) || number > 8) return false;
    part->plus = (uint8_t)number;
    return true;
}

static const char *const part_roles[SFTI_PART_ROLES] = {
    [SFTI_PART_CODES] = "codes", [SFTI_PART_SCALE] = "scale", [SFTI_PART_ZERO] = "zero",
    [SFTI_PART_ADD] = "add", [SFTI_PART_NESTED] = "nested", [SFTI_PART_GROUP] = "group",
    [SFTI_PART_BOOK] = "book", [SFTI_PART_NESTED_BOOK] = "nested-book",
    [SFTI_PART_SHAPE] = "shape", [SFTI_PART_STATE] = "state", [SFTI_PART_DROP] = "drop",
    [SFTI_PART_OTHERS] = "others",
};

static bool read_layout_part(sfti_quant_layout *layout, uint8_t role, sft_span rest) {
    sft_span word;
    if (layout->count == SFTI_LAYOUT_PARTS) return false;
    sfti_layout_part *part = &layout->parts[layout->count++];
    *part = (sfti_layout_part){ .role = role, .as = SFT_DTYPE_COUNT };
    if (!sfti_layout_word(&rest, ' ', &part->names)) return false;
    if (role == SFTI_PART_CODES || role == SFTI_PART_ADD) part->rows = part->columns = 1;
    if (role < SFTI_PART_SHAPE
        && (!sfti_layout_word(&rest, ' ', &word) || !read_dtypes(word, &part->dtypes)))
        return false;
    while (sfti_layout_word(&rest, ' ', &word))
        if (!read_flag(word, part)) return false;
    return role != SFTI_PART_CODES || !part->across || part->words || part->bits == 4;
}

static bool read_layout_line(sfti_quant_layout *layout, sft_span line) {
    sft_span word, rest = line, value = { NULL, 0 };
    if (!sfti_layout_word(&rest, ' ', &word)) return false;
    for (uint8_t role = 0; role < SFTI_PART_ROLES; role++)
        if (part_roles[role] && word_is(word, part_roles[role]))
            return read_layout_part(layout, role, rest);
    if (word_is(word, "alone")) return layout->alone = true;
    sft_span *lines = word_is(word, "config") ? &layout->configs
                    : word_is(word, "torchao") ? &layout->torchao
                    : word_is(word, "write") || word_is(word, "members") ? &layout->writes
                    : word_is(word, "tied") ? &layout->ties
                    : word_is(word, "apart") || word_is(word, "moved") ? &layout->aparts : NULL;
    if (lines) {
        if (!lines->data) lines->data = line.data;
        lines->len = (size_t)(line.data + line.len - lines->data);
        return true;
    }
    if (word_is(word, "refused")) {
        while (rest.len > 0 && *rest.data == ' ') rest.data++, rest.len--;
        layout->refused = rest;
        return true;
    }
    if (!sfti_layout_word(&rest, ' ', &value)) return false;
    if (word_is(word, "comfy")) layout->comfy = value;
    else if (word_is(word, "result")) layout->result = value;
    else if (word_is(word, "odd")) layout->odd = value;
    else if (word_is(word, "pad")) return read_number(value, &layout->pad);
    else if (word_is(word, "share")) return read_number(value, &layout->group);
    else if (word_is(word, "over")) return read_number(value, &layout->over);
    else if (word_is(word, "rotate")) {
        layout->rotate_if_told = sfti_layout_word(&rest, ' ', &word) && word_is(word, "if-told");
        return read_number(value, &layout->rotate);
    } else return false;
    return true;
}

bool sfti_layouts_parse(sft_span text, sfti_arena *arena, sfti_layouts *out, size_t *line) {
    size_t most = 0, at = 0;
    for (size_t i = 0; i + 7 <= text.len; i++) most += memcmp(text.data + i, "layout ", 7) == 0;
    *out = (sfti_layouts){ sfti_arena_array(arena, most + 1, sizeof *out->rows), 0 };
    *line = 0;
    if (!out->rows) return false;
    while (text.len > 0) {
        const char *end = memchr(text.data, '\n', text.len);
        sft_span rest = { text.data, end ? (size_t)(end - text.data) : text.len }, one = rest, word;
        at++;
        text.data += rest.len + (end != NULL);
        text.len -= rest.len + (end != NULL);
        if (!sfti_layout_word(&one, ' ', &word) || *word.data == '#') continue;
        bool good = true;
        if (*rest.data != ' ' && out->count == SFTI_LAYOUTS_MOST) {
            good = false;
        } else if (*rest.data != ' ') {
            sfti_quant_layout *layout = &out->rows[out->count++];
            memset(layout, 0, sizeof *layout);
            good = word_is(word, "layout") && sfti_layout_word(&one, ' ', &layout->id);
        } else {
            good = out->count > 0 && read_layout_line(&out->rows[out->count - 1], rest);
        }
        if (!good) {
            *line = at;
            return true;
        }
    }
    return true;
}

bool sfti_layouts_read(sfti_arena *arena, sfti_layouts *out) {
    size_t line;
    sft_span text = { (const char *)sfti_layouts_text, sfti_layouts_size };
    return sfti_layouts_parse(text, arena, out, &line);
}

bool sfti_layout_line(sft_span *lines, const char *word, sft_span *first, sft_span *rest) {
    sft_span found;
    while (lines->len > 0) {
        const char *end = memchr(lines->data, '\n', lines->len);
        *rest = (sft_span){ lines->data, end ? (size_t)(end - lines->data) : lines->len };
        lines->data += rest->len + (end != NULL);
        lines->len -= rest->len + (end != NULL);
        if (sfti_layout_word(rest, ' ', &found) && word_is(found, word)
            && sfti_layout_word(rest, ' ', first))
            return true;
    }
    return false;
}

/* ── Names ── */

bool sfti_layout_stem(const sfti_quant_layout *layout, sft_span tensor, sft_span *stem) {
    sft_span names = layout->count ? layout->parts[0].names : (sft_span){ "", 0 }, name;
    while (sfti_layout_word(&names, '|', &name)) {
        if (*name.data == '*') name.data++, name.len--;
        if (tensor.len <= name.len
            || (name.len > 0
                && memcmp(tensor.data + tensor.len - name.len, name.data, name.len) != 0))
            continue;
        *stem = (sft_span){ tensor.data, tensor.len - (*layout->parts[0].names.data == '*'
                                                       ? name.len : 0) };
        return true;
    }
    return false;
}

bool sfti_module_ends(sft_span module, sft_span end) {
    return module.len >= end.len
        && memcmp(module.data + module.len - end.len, end.data, end.len) == 0
        && (module.len == end.len || module.data[module.len - end.len - 1] == '.');
}

bool sfti_layout_inside(const sfti_layout_part *part, sft_span tensor) {
    sft_span modules = part->in, one;
    if (modules.len == 0) return true;
    while (tensor.len > 0 && tensor.data[tensor.len - 1] != '.') tensor.len--;
    if (tensor.len > 0) tensor.len--;
    while (sfti_layout_word(&modules, '|', &one))
        if (sfti_module_ends(tensor, one)) return true;
    return false;
}

sft_span sfti_layout_name(sft_span pattern, sft_span stem, char *buffer) {
    bool has_stem = pattern.len > 0 && *pattern.data == '*';
    if (has_stem) {
        pattern.data++, pattern.len--;
    } else {
        while (stem.len > 0 && stem.data[stem.len - 1] != '.') stem.len--;
        if (stem.len == 0) return stem;
        stem.len--;
    }
    if (stem.len + pattern.len > SFTI_PART_NAME) return (sft_span){ buffer, 0 };
    if (stem.len > 0) memcpy(buffer, stem.data, stem.len);
    if (pattern.len > 0) memcpy(buffer + stem.len, pattern.data, pattern.len);
    return (sft_span){ buffer, stem.len + pattern.len };
}
