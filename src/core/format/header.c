/* Reads a header's text: its top level and __metadata__, entries in the official spelling directly,
 * others through entry.c. Tests: test_header.c. */
#include "format/header.h"

#include "base/checked.h"
#include "base/endian.h"
#include "base/error.h"
#include "base/utf8.h"

#include <string.h>

/* ── The official writer's spelling, without white space or escapes ── */

static inline bool plain_word(const char **p, const char *end, const char *word, size_t len) {
    if ((size_t)(end - *p) < len || memcmp(*p, word, len) != 0) return false;
    *p += len;
    return true;
}

static const uint32_t power10[] = { 1,      10,      100,      1000,     10000,
                                    100000, 1000000, 10000000, 100000000 };

/* Up to 19 digits, read without a bound where sfti_header_read found that to be safe. Eight bytes,
 * then the next eight, are looked at as one little-endian word: the digits at its front are moved
 * to its end, then joined by pairs, fours and eight. */
static inline bool plain_uint(const char **p, const char *end, uint64_t *out) {
    const char *at = *p;
    uint64_t value = 0;
    unsigned count = 8;
    for (int half = 0; half < 2 && count == 8 && end - *p >= 16; half++) {
        uint64_t digits = sfti_get_u64(at) ^ UINT64_C(0x3030303030303030);
        uint64_t others = ((digits + UINT64_C(0x7676767676767676)) | digits)
                          & UINT64_C(0x8080808080808080);
#if defined(__GNUC__)
        count = others ? (unsigned)__builtin_ctzll(others) / 8 : 8;
#else
        for (count = 0; count < 8 && !(others >> (8 * count + 7) & 1);) count++;
#endif
        if (count == 0) break;
        digits <<= 64 - 8 * count;
        digits = (digits & UINT64_C(0x0F0F0F0F0F0F0F0F)) * 2561 >> 8;
        digits = (digits & UINT64_C(0x00FF00FF00FF00FF)) * 6553601 >> 16;
        digits = (digits & UINT64_C(0x0000FFFF0000FFFF)) * UINT64_C(42949672960001) >> 32;
        value = value * power10[count] + digits;
        at += count;
    }
    if (count == 8)
        while (sfti_lex_digit(*at)) value = value * 10 + (uint64_t)(*at++ - '0');
    if (at == *p || at - *p > 19 || (**p == '0' && at - *p > 1)) return false;
    *p = at;
    *out = value;
    return true;
}

/* Whether p begins with a word of 1 to 16 bytes; 16 bytes can be read at both, and p has
 * more than those. */
static inline bool plain_same(const char *p, const char *end, sft_span word) {
    if (word.len == 0 || word.len > 16 || end - p <= 16) return false;
#if defined(__SSE2__)
    __m128i a = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i b = _mm_loadu_si128((const __m128i *)(const void *)word.data);
    unsigned unlike = ~(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(a, b));
    return (unlike & ((1U << word.len) - 1)) == 0;
#else
    return memcmp(p, word.data, word.len) == 0;
#endif
}

/* True when the value at the cursor has that spelling; the cursor stays otherwise, and *t may have
 * been written. */
static bool plain_entry(sfti_parser *r, uint64_t *dims, sft_tensor *t) {
    const char *p = r->lex.at, *end = r->lex.end;
    uint32_t rank = 0;

    if (!plain_word(&p, end, "{\"dtype\":\"", 10)) return false;
    if (plain_same(p, end, r->last_dtype_text)) {
        p += r->last_dtype_text.len;
    } else {
        const char *quote = memchr(p, '"', (size_t)(end - p < 16 ? end - p : 16));
        sft_span text = { p, quote ? (size_t)(quote - p) : 0 };
        if (!quote || !sft_dtype_parse(text, &r->last_dtype)) return false;
        r->last_dtype_text = (sft_span){ p, text.len + 1 }; /* with its quote */
        p = quote + 1;
    }
    t->dtype = r->last_dtype;

    if (!plain_word(&p, end, ",\"shape\":[", 10)) return false;
    if (*p == ']') {
        p++;
    } else {
        do {
            if (rank == SFT_MAX_RANK || !plain_uint(&p, end, &dims[rank])) return false;
            rank++;
        } while (*p++ == ',');
        if (p[-1] != ']') return false;
    }
    t->rank = rank;

    /* The entry's begin is spelled like the end before it, as a rule. What was read before
     * stands before p, so 16 bytes can be read there too. */
    if (!plain_word(&p, end, ",\"data_offsets\":[", 17)) return false;
    size_t last = r->last_end_text.len;
    if (plain_same(p, end, r->last_end_text) && p[last] == ',') {
        p += last;
        t->begin = r->last_end;
    } else if (!plain_uint(&p, end, &t->begin)) {
        return false;
    }
    if (!plain_word(&p, end, ",", 1)) return false;
    r->last_end_text = (sft_span){ p, 0 };
    if (!plain_uint(&p, end, &t->end)) return false;
    r->last_end_text.len = (size_t)(p - r->last_end_text.data);
    r->last_end = t->end;
    if (!plain_word(&p, end, "]}", 2)) return false;
    r->lex.at = p;
    return true;
}

/* ── Members of an object ── */

/* SFT_OK: the lexer has said what is wrong. Always false. */
static bool lex_failed(sfti_parser *r, sft_code code, const char *expected) {
    if (code) sfti_lex_fail(&r->lex, code, expected);
    sfti_report_at(r, r->lex.code, r->lex.at, NULL, r->lex.why);
    r->fatal = true;
    return false;
}

/* What an object has under a name. */
typedef struct object_member {
    sft_span name; /* as spelled */
    bool escaped;
    char value; /* first byte of the value, on which the cursor is; 0 at the end of the text */
} object_member;

/* From behind an opening brace, or behind a member, to the next one. False: the object has ended,
 * or reading has (r->fatal). */
static bool next_member(sfti_parser *r, const char *const expected[2], object_member *out) {
    sfti_lex *lex = &r->lex;
    bool first = lex->at[-1] == '{'; /* no value ends so */
    char c = sfti_lex_space(lex);
    if (c == '}') {
        lex->at++;
        return false;
    }
    if (!first) {
        if (c != ',') return lex_failed(r, SFT_JSON_SYNTAX, "',' or '}'");
        lex->at++;
        c = sfti_lex_space(lex);
    }
    if (c != '"') return lex_failed(r, SFT_JSON_SYNTAX, expected[0]);
    if (!sfti_lex_string(lex, &out->name, &out->escaped)) return lex_failed(r, SFT_OK, NULL);
    if (sfti_lex_space(lex) != ':') return lex_failed(r, SFT_JSON_SYNTAX, expected[1]);
    lex->at++;
    out->value = sfti_lex_space(lex);
    return true;
}

/* ── __metadata__ ── */

/* The value at the cursor, which is of no use: told with a code, unless that is SFT_OK, and passed.
 * depth: objects that are open there. */
static bool pass_value(sfti_parser *r, uint32_t depth, sft_code code, const char *expected) {
    sfti_json json;
    sft_error error;
    sfti_value_begin(r, depth, &json);
    bool sound = sfti_json_next(&json) != SFTI_JSON_ERROR;
    if (sound && code) sfti_report_at(r, code, json.begin + json.start, NULL, expected);
    if (r->fatal) return false;
    sound = sound && sfti_json_skip(&json) != SFTI_JSON_ERROR;
    r->lex.at = json.at;
    if (sound) return true;
    sfti_json_fail(&json, SFTI_PREFIX, &error);
    sfti_report(r, &error);
    r->fatal = true;
    return false;
}

/* What the first walk over the pairs counts, and where the second puts them. */
typedef struct pair_walk {
    sfti_pair *pairs; /* NULL: only count */
    char *decoded;
    size_t count, decoded_bytes;
} pair_walk;

/* The place of a string, decoded if it has escapes. An escape is longer than what it stands for, so
 * that places of decoded strings stay below 2^31, lengths and all. */
static uint32_t place_string(const sfti_parser *r, sft_span text, bool escaped, pair_walk *walk) {
    if (!escaped) return (uint32_t)(text.data - r->text.data);
    uint32_t place = (uint32_t)walk->decoded_bytes, len = (uint32_t)text.len;
    if (walk->decoded) {
        char *at = walk->decoded + place;
        len = (uint32_t)sfti_json_decode(text, at + sizeof len);
        memcpy(at, &len, sizeof len);
    }
    walk->decoded_bytes += sizeof len + len;
    return place | SFTI_DECODED;
}

/* A value that is no string is told once, by the walk that counts; the second walk fails nowhere.
 * first: byte of the value. */
static bool read_metadata(sfti_parser *r, char first) {
    static const char *const expected[] = { "a key in quotes", "':'" };
    uint64_t most = r->limits->max_metadata ? r->limits->max_metadata : UINT32_MAX - 1;
    const char *at = r->lex.at;
    pair_walk walk = { NULL, NULL, 0, 0 };
    object_member m;
    if (r->seen_metadata)
        return sfti_report_at(r, SFT_METADATA_DUPLICATE, at, NULL, "one __metadata__")
            && pass_value(r, 1, SFT_OK, NULL);
    r->seen_metadata = true;
    if (first == 'n' && r->limits->level == SFT_LEVEL_STRICT)
        return pass_value(r, 1, SFT_STRICT_METADATA, "an object");
    if (first == 'n') {
        if (!pass_value(r, 1, SFT_OK, NULL)) return false;
        sfti_remark(r, "metadata_null", at, NULL, "__metadata__ is null");
        return true;
    }
    if (first != '{') return pass_value(r, 1, SFT_METADATA_TYPE, "an object");
    for (;;) {
        r->lex.at = at + 1;
        while (next_member(r, expected, &m)) {
            sft_span value;
            sfti_pair pair = { .key = place_string(r, m.name, m.escaped, &walk) };
            if (m.value != '"') {
                if (!pass_value(r, 2, walk.pairs ? SFT_OK : SFT_METADATA_VALUE, "a string"))
                    return false;
                continue;
            }
            if (!sfti_lex_string(&r->lex, &value, &m.escaped))
                return lex_failed(r, SFT_OK, NULL);
            pair.value = place_string(r, value, m.escaped, &walk);
            if (walk.pairs) walk.pairs[walk.count] = pair;
            walk.count++;
        }
        if (r->fatal) return false;
        if (walk.pairs) break;
        if (walk.count > most)
            return sfti_report_limit(r, SFT_TOO_MANY_METADATA, r->lex.at - 1, NULL,
                                     "a count of metadata pairs", most, walk.count);
        walk.pairs = sfti_arena_array(r->arena, walk.count, sizeof *walk.pairs);
        if (!walk.pairs) return sfti_report_memory(r, walk.count * sizeof *walk.pairs);
        walk.decoded = sfti_arena_array(r->arena, walk.decoded_bytes, 1);
        if (!walk.decoded) return sfti_report_memory(r, walk.decoded_bytes);
        walk.count = walk.decoded_bytes = 0;
    }
    r->model->has_metadata = true;
    r->model->metadata = walk.pairs;
    r->model->decoded = walk.decoded;
    r->model->metadata_count = walk.count;
    return true;
}

/* ── The top level ── */

static bool read_tensor(sfti_parser *r, sft_span name, sft_span raw) {
    uint64_t dims[SFT_MAX_RANK], most = r->limits->max_name_bytes;
    sft_tensor plain;
    bool strict = r->limits->level == SFT_LEVEL_STRICT;
    const char *at = raw.data - 1;
    if (most && name.len > most) {
        if (!sfti_report_limit(r, SFT_NAME_TOO_LONG, at, &name, "a name length in bytes", most,
                               name.len))
            return false;
    } else if ((strict || r->watch) && sfti_utf8_has_control(name)) {
        if (strict && !sfti_report_at(r, SFT_STRICT_NAME, at, &name,
                                      "a name without control characters"))
            return false;
        if (!strict)
            sfti_remark(r, "name_control", at, &name, "the name holds control characters");
    }

    if (r->watch || r->limits->slow || !plain_entry(r, dims, &plain))
        return sfti_entry_read(r, name, raw);
    size_t bytes = plain.rank * sizeof *dims;
    uint64_t *shape = bytes ? sfti_arena_take(r->arena, bytes) : NULL;
    if (bytes && !shape) return sfti_report_memory(r, bytes);
    if (bytes) memcpy(shape, dims, bytes);
    plain.shape = shape;
    return sfti_keep(r, &plain, name);
}

/* A name with escapes, decoded into the arena. data NULL: reported. */
static sft_span decoded_name(sfti_parser *r, sft_span text) {
    sft_span none = { NULL, 0 };
    char *into = sfti_arena_take(r->arena, text.len);
    if (!into) {
        sfti_report_memory(r, text.len);
        return none;
    }
    text.len = sfti_json_decode(text, into);
    text.data = into;
    return text;
}

/* `"":["U8",[],[0,0]],` is the shortest entry there is. */
#define SHORTEST_ENTRY 19

void sfti_header_read(sfti_parser *r) {
    static const char *const expected[] = { "a name in quotes", "':' after a name" };
    sfti_lex *lex = &r->lex;
    object_member m;
    const char *text = r->text.data;
    size_t len = r->text.len, bad = sfti_utf8_check(text, len);
    if (bad < len) {
        sft_error error;
        sfti_fail_byte(&error, SFT_HEADER_UTF8, SFTI_PREFIX + bad,
                       "expected UTF-8, found byte 0x%02x", (unsigned char)text[bad]);
        sfti_report(r, &error);
        return;
    }

    /* The official spelling is read without a bound at each digit: none is read past the last
     * byte if that is a brace or white space. A header that ends otherwise is broken anyway. */
    char last = len > 0 ? text[len - 1] : '\0';
    sfti_limits slow = *r->limits;
    slow.slow = true;
    if (last != '}' && last != ' ' && last != '\n' && last != '\t' && last != '\r')
        r->limits = &slow;

    r->cap = len / SHORTEST_ENTRY + 1;
    size_t chunks = r->cap / SFTI_CHUNK + 1;
    r->model->tensors.chunk = sfti_arena_array(r->arena, chunks, sizeof(sft_tensor *));
    if (!r->model->tensors.chunk) {
        sfti_report_memory(r, chunks * sizeof(sft_tensor *));
        return;
    }

    lex->at = text;
    lex->end = text + len;
    char c = sfti_lex_space(lex);
    if (lex->at > text && r->limits->level == SFT_LEVEL_STRICT
        && !sfti_report_at(r, SFT_STRICT_FIRST_BYTE, text, NULL, "'{'"))
        return;
    if (c != '{') {
        /* Another JSON value is the wrong thing; anything else is no JSON. */
        bool value = c == '[' || c == '"' || c == '-' || sfti_lex_digit(c) || c == 't'
                     || c == 'f' || c == 'n';
        sfti_report_at(r, value ? SFT_HEADER_NOT_OBJECT : SFT_JSON_SYNTAX, lex->at, NULL,
                       "a JSON object");
        return;
    }
    lex->at++;
    while (next_member(r, expected, &m)) {
        sft_span name = m.escaped ? decoded_name(r, m.name) : m.name;
        if (!name.data) return;
        bool is_metadata = name.len == 12 && memcmp(name.data, "__metadata__", 12) == 0;
        bool fine = is_metadata ? read_metadata(r, m.value) : read_tensor(r, name, m.name);
        if (!fine && r->fatal) return;
    }
    if (r->fatal) return;

    /* Behind the object stands white space, in strict spaces alone. NULs besides are what a repair
     * takes for padding. */
    const char *rest = lex->at, *p = rest, *end = lex->end;
    sfti_lex_space(lex);
    if (lex->at == end) {
        while (p < end && *p == ' ') p++;
        if (p < end && r->limits->level == SFT_LEVEL_STRICT)
            sfti_report_at(r, SFT_STRICT_PADDING, rest, NULL, "spaces only");
        return;
    }
    sft_error error;
    p = lex->at;
    sfti_fail_at(&error, SFT_JSON_TRAILING, SFTI_PREFIX, r->text, (size_t)(p - text),
                 "the end of the header");
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n' || *p == '\0')) p++;
    if (p == end) error.hint = SFT_HINT_REPAIR_PADDING;
    sfti_report(r, &error);
}
