/* The header's text against its verdict at each level, by both ways of reading. */
#include "base/error.h"
#include "format/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define T1 "{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[0,8]}"
#define LONG "0123456789012345678901234567890123456789012345678901234567890123456789"
#define ENTRY(d, s, o) "{\"t\":{\"dtype\":" d ",\"shape\":" s ",\"data_offsets\":" o "}}"

static sft_code read_text(sft_span text, uint64_t data, sft_level level, bool slow, bool legacy,
                          sfti_arena *arena, sfti_model *model, sft_error *err) {
    const uint64_t seed[2] = { 11, 22 };
    sfti_limits limits;
    memset(&limits, 0, sizeof limits);
    limits.level = level;
    limits.slow = slow;
    limits.legacy = legacy;
    memset(arena, 0, sizeof *arena);
    arena->alloc = sfti_allocator(NULL);
    uint64_t size = data == SFT_SIZE_UNKNOWN ? data : SFTI_PREFIX + text.len + data;
    return sfti_model_read(text, size, &limits, seed, NULL, arena, model, err);
}

/* Code of both ways of reading, which must agree in everything. */
static sft_code verdict(const char *text, uint64_t data, sft_level level) {
    sft_error fast = SFT_ERROR_INIT, slow = SFT_ERROR_INIT;
    sfti_arena a, b;
    sfti_model m, n;
    sft_span span = sft_span_cstr(text);
    sft_code code = read_text(span, data, level, false, false, &a, &m, &fast);
    assert_int_equal(read_text(span, data, level, true, false, &b, &n, &slow), code);
    assert_string_equal(fast.message, slow.message);
    assert_int_equal(fast.offset, slow.offset);
    if (code) assert_int_equal(fast.code, code);
    sfti_arena_free(&a);
    sfti_arena_free(&b);
    return code;
}

static void verdicts_by_level(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t data;
        sft_code compat, normal, strict;
    } rows[] = {
        { "{}", 0, SFT_OK, SFT_OK, SFT_OK },
        { "{}      ", 0, SFT_OK, SFT_OK, SFT_OK },
        { "{\"t\":" T1 "}", 8, SFT_OK, SFT_OK, SFT_OK },
        { " {\"t\":" T1 "}", 8, SFT_OK, SFT_OK, SFT_STRICT_FIRST_BYTE },
        { "{\"t\":" T1 "}\n", 8, SFT_OK, SFT_OK, SFT_STRICT_PADDING },
        { "{\"t\":" T1 "} x", 8, SFT_JSON_TRAILING, SFT_JSON_TRAILING, SFT_JSON_TRAILING },
        { "{\"t\":" T1 ",\"t\":" T1 "}", 8, SFT_OK, SFT_TENSOR_DUPLICATE,
          SFT_TENSOR_DUPLICATE },
        { "{\"t\":" T1 ",\"\\u0074\":" T1 "}", 8, SFT_OK, SFT_TENSOR_DUPLICATE,
          SFT_TENSOR_DUPLICATE },
        { "{\"t\":[\"I32\",[2],[0,8]]}", 8, SFT_OK, SFT_ENTRY_NOT_OBJECT, SFT_ENTRY_NOT_OBJECT },
        { "{\"t\":[\"I32\",[2],[0,8],1]}", 8, SFT_ENTRY_TYPE, SFT_ENTRY_NOT_OBJECT,
          SFT_ENTRY_NOT_OBJECT },
        { "{\"t\":[\"I32\",[2]]}", 8, SFT_FIELD_MISSING, SFT_ENTRY_NOT_OBJECT,
          SFT_ENTRY_NOT_OBJECT },
        { "{\"t\":[\"I32\",nope]}", 8, SFT_JSON_SYNTAX, SFT_ENTRY_NOT_OBJECT,
          SFT_ENTRY_NOT_OBJECT },
        { ENTRY("{\"I32\":null}", "[2]", "[0,8]"), 8, SFT_OK, SFT_DTYPE_NOT_STRING,
          SFT_DTYPE_NOT_STRING },
        { ENTRY("\"I\\u00332\"", "[2]", "[0,8]"), 8, SFT_OK, SFT_OK, SFT_OK },
        { "{\"t\":{\"x\":[{}],\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1, SFT_OK,
          SFT_OK, SFT_STRICT_FIELD },
        { "{\"t\":{\"" LONG LONG "\":0,\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}",
          1, SFT_OK, SFT_OK, SFT_STRICT_FIELD },
        { "{\"t\":{\"offsets\":7,\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1,
          SFT_OK, SFT_OK, SFT_STRICT_FIELD },
        { ENTRY("{\"X9\":null}", "[2]", "[0,8]"), 8, SFT_DTYPE_UNKNOWN, SFT_DTYPE_NOT_STRING,
          SFT_DTYPE_NOT_STRING },
        /* Too many bits, were it not for the dimension of 0. */
        { ENTRY("\"U8\"", "[2305843009213693952,0]", "[0,0]"), 0, SFT_OK, SFT_OK, SFT_OK },
        { "{\"a\\u0000b\":" T1 "}", 8, SFT_OK, SFT_OK, SFT_STRICT_NAME },
        { "{\"a\xc2\x85\":" T1 "}", 8, SFT_OK, SFT_OK, SFT_STRICT_NAME },
        { "{\"a\xc2\xa0\":" T1 "}", 8, SFT_OK, SFT_OK, SFT_OK },
        { "{\"__metadata__\":null}", 0, SFT_OK, SFT_OK, SFT_STRICT_METADATA },
        { "{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, SFT_OK, SFT_METADATA_KEY_DUPLICATE,
          SFT_METADATA_KEY_DUPLICATE },
        { "{\"__metadata__\":{\"" LONG LONG "\":\"1\",\"" LONG LONG "\":\"2\"}}", 0, SFT_OK,
          SFT_METADATA_KEY_DUPLICATE, SFT_METADATA_KEY_DUPLICATE },
        { "{\"__metadata__\":{\"\":\"1\",\"\":\"2\"}}", 0, SFT_OK, SFT_METADATA_KEY_DUPLICATE,
          SFT_METADATA_KEY_DUPLICATE },
        { "{\"__metadata__\":{},\"__metadata__\":{}}", 0, SFT_METADATA_DUPLICATE,
          SFT_METADATA_DUPLICATE, SFT_METADATA_DUPLICATE },
        { "{\"__metadata__\":{\"a\":1}}", 0, SFT_METADATA_VALUE, SFT_METADATA_VALUE,
          SFT_METADATA_VALUE },
        { "{\"__metadata__\":[]}", 0, SFT_METADATA_TYPE, SFT_METADATA_TYPE, SFT_METADATA_TYPE },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(verdict(rows[i].text, rows[i].data, SFT_LEVEL_COMPAT), rows[i].compat);
        assert_int_equal(verdict(rows[i].text, rows[i].data, SFT_LEVEL_DEFAULT), rows[i].normal);
        assert_int_equal(verdict(rows[i].text, rows[i].data, SFT_LEVEL_STRICT), rows[i].strict);
    }
}

static void refusals_at_every_level(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t data;
        sft_code code;
    } rows[] = {
        { "", 0, SFT_JSON_SYNTAX },
        { "[]", 0, SFT_HEADER_NOT_OBJECT },
        { "nul", 0, SFT_HEADER_NOT_OBJECT },
        { "false", 0, SFT_HEADER_NOT_OBJECT },
        { "true", 0, SFT_HEADER_NOT_OBJECT },
        { "-1", 0, SFT_HEADER_NOT_OBJECT },
        { "7", 0, SFT_HEADER_NOT_OBJECT },
        { "\"\"", 0, SFT_HEADER_NOT_OBJECT },
        { "x", 0, SFT_JSON_SYNTAX },
        { "{\"t\":" T1 ",\t", 8, SFT_JSON_SYNTAX },
        { "{\"t\":" T1 ",\r", 8, SFT_JSON_SYNTAX },
        { ENTRY("\"" LONG LONG "\"", "[2]", "[0,8]"), 8, SFT_DTYPE_UNKNOWN },
        { "{\"t\":{\"dtype\":\"I32\",\"shape\":[2],\"offsets\":[0,8]}}", 8, SFT_LEGACY_LAYOUT },
        /* An end, and a begin that only begins like it. */
        { "{\"s\":" T1 ",\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[80,81]}}"
          "                ", 81, SFT_OFFSETS_GAP },
        { "{\"t\":{\"offsets\":[}]}}", 0, SFT_JSON_SYNTAX },
        /* The text ends where the spelling of the entry before would go on. */
        { "{\"s\":" T1 ",\"t\":{\"dtype\":\"}", 8, SFT_JSON_SYNTAX },
        { "{\"s\":" T1 ",\"t\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[}", 8,
          SFT_JSON_SYNTAX },
        { "{\"t\":" T1 ",}", 8, SFT_JSON_SYNTAX },
        { "{\"t\":" T1, 8, SFT_JSON_SYNTAX },
        { "{\"t\" " T1 "}", 8, SFT_JSON_SYNTAX },
        { "{\"\xff\":" T1 "}", 8, SFT_HEADER_UTF8 },
        { "{\"a\nb\":" T1 "}", 8, SFT_JSON_STRING },
        { "{\"\\ud800\":" T1 "}", 8, SFT_JSON_STRING },
        { "{\"t\":3}", 0, SFT_ENTRY_TYPE },
        { "{\"t\":{}}", 0, SFT_FIELD_MISSING },
        { "{\"t\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0, SFT_FIELD_DUPLICATE },
        { ENTRY("3", "[2]", "[0,8]"), 8, SFT_DTYPE_TYPE },
        { ENTRY("\"X\"", "[2]", "[0,8]"), 8, SFT_DTYPE_UNKNOWN },
        { ENTRY("\"int32\"", "[2]", "[0,8]"), 8, SFT_LEGACY_LAYOUT },
        { ENTRY("\"I32\"", "[2.0]", "[0,8]"), 8, SFT_SHAPE_TYPE },
        { ENTRY("\"I32\"", "[-2]", "[0,8]"), 8, SFT_SHAPE_TYPE },
        { ENTRY("\"I32\"", "[18446744073709551616]", "[0,8]"), 8, SFT_SHAPE_TYPE },
        { ENTRY("\"I32\"", "[02]", "[0,8]"), 8, SFT_JSON_NUMBER },
        { ENTRY("\"I32\"", "[1e999]", "[0,8]"), 8, SFT_JSON_NUMBER },
        { ENTRY("\"I32\"", "{}", "[0,8]"), 8, SFT_SHAPE_TYPE },
        { ENTRY("\"I32\"", "[2]", "[0]"), 8, SFT_OFFSETS_TYPE },
        { ENTRY("\"I32\"", "[2]", "[0,8,8]"), 8, SFT_OFFSETS_TYPE },
        { ENTRY("\"I32\"", "[2]", "[1,9]"), 9, SFT_OFFSETS_GAP },
        { ENTRY("\"I32\"", "[2]", "[0,4]"), 4, SFT_SIZE_MISMATCH },
        { ENTRY("\"I32\"", "[2]", "[0,8]"), 7, SFT_DATA_TRUNCATED },
        { ENTRY("\"I32\"", "[2]", "[0,8]"), 9, SFT_DATA_TRAILING },
        { ENTRY("\"F4\"", "[3]", "[0,2]"), 2, SFT_SIZE_PARTIAL_BYTE },
        { ENTRY("\"U8\"", "[4294967296,4294967296]", "[0,0]"), 0, SFT_SIZE_OVERFLOW },
        { "{\"a\":" T1 ",\"b\":" T1 "}", 8, SFT_OFFSETS_OVERLAP },
        { ENTRY("\"I32\"", "[2]", "[16,8]"), 16, SFT_OFFSETS_REVERSED }, /* no gap before it */
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
          "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
          "\"c\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,0]}}", 1,
          SFT_OFFSETS_REVERSED },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int level = SFT_LEVEL_COMPAT; level <= SFT_LEVEL_STRICT; level++)
            if (verdict(rows[i].text, rows[i].data, (sft_level)level) != rows[i].code)
                fail_msg("%s at level %d", rows[i].text, level);
}

static void nest(char *text, int levels) {
    size_t n = (size_t)levels;
    memcpy(text, "{\"t\":{\"x\":", 10);
    memset(text + 10, '[', n);
    memset(text + 10 + n, ']', n);
    (void)snprintf(text + 10 + 2 * n, 100, ",%s", &T1[1]);
    memcpy(text + 10 + 2 * n + strlen(T1), "}", 2);
}

static void depth_is_127(void **state) {
    (void)state;
    char text[600];
    nest(text, 125);
    assert_int_equal(verdict(text, 8, SFT_LEVEL_COMPAT), SFT_OK);
    nest(text, 126);
    assert_int_equal(verdict(text, 8, SFT_LEVEL_COMPAT), SFT_JSON_DEPTH);
}

static void rank_is_bounded_from_default(void **state) {
    (void)state;
    for (int rank = 64; rank <= 65; rank++) {
        char text[400] = "{\"t\":{\"dtype\":\"U8\",\"shape\":[1";
        for (int i = 1; i < rank; i++) strcat(text, ",1");
        strcat(text, "],\"data_offsets\":[0,1]}}");
        assert_int_equal(verdict(text, 1, SFT_LEVEL_COMPAT), SFT_OK);
        assert_int_equal(verdict(text, 1, SFT_LEVEL_DEFAULT),
                         rank > 64 ? SFT_RANK_TOO_LARGE : SFT_OK);
    }
}

#define U8(name, dim, begin, end) \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" dim "],\"data_offsets\":[" begin "," end "]}"

/* Entries that adjoin as they stand, of which one does not count. */
static void duplicates_leave_gaps(void **state) {
    (void)state;
    static const char gap[] = "{" U8("t", "2", "0", "2") "," U8("t", "1", "2", "3") "}";
    static const char none[] = "{" U8("t", "0", "0", "0") "," U8("u", "1", "0", "1") ","
                               U8("t", "2", "1", "3") "}";
    static const char far[] = "{" U8("t", "0", "18446744073709551615", "18446744073709551615") "}";
    sfti_arena arena;
    sfti_model m;
    assert_int_equal(verdict(gap, 3, SFT_LEVEL_COMPAT), SFT_OFFSETS_GAP);
    assert_int_equal(verdict(gap, 3, SFT_LEVEL_DEFAULT), SFT_TENSOR_DUPLICATE);
    assert_int_equal(verdict(far, 0, SFT_LEVEL_COMPAT), SFT_OFFSETS_GAP);
    assert_int_equal(read_text(sft_span_cstr(none), 3, SFT_LEVEL_COMPAT, false, false, &arena, &m,
                               NULL), SFT_OK);
    assert_int_equal(m.tensors.count, 2);
    assert_int_equal(m.data_bytes, 3);
    for (size_t i = 0; i < 2; i++) {
        const sft_tensor *t = sfti_model_tensor(&m, i);
        assert_int_equal(t->begin, i);
        assert_int_equal(t->offset, 8 + strlen(none) + i);
    }
    sfti_arena_free(&arena);
}

static void model_is_in_offset_order(void **state) {
    (void)state;
    static const char text[] =
        "{\"c\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[2,5]},"
        "\"z\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[2,2]},"
        "\"__metadata__\":{\"k\":\"v\\n\",\"\":\"\"},"
        "\"\\u0061\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,2]}}";
    sfti_arena arena;
    sfti_model m;
    sft_error err = SFT_ERROR_INIT;
    assert_int_equal(read_text(sft_span_cstr(text), 5, SFT_LEVEL_STRICT, false, false, &arena,
                               &m, &err), SFT_OK);
    static const char *const names[] = { "a", "z", "c" };
    assert_int_equal(m.tensors.count, 3);
    for (size_t i = 0; i < 3; i++) {
        const sft_tensor *t = sfti_model_tensor(&m, i);
        assert_true(sft_span_equal(t->name, sft_span_cstr(names[i])));
        assert_ptr_equal(sfti_model_find(&m, t->name), t);
        assert_int_equal(t->offset, 8 + strlen(text) + t->begin);
    }
    assert_null(sfti_model_find(&m, sft_span_cstr("b")));
    assert_int_equal(m.data_bytes, 5);
    assert_true(m.has_metadata);
    assert_int_equal(m.metadata_count, 2);
    assert_true(sft_span_equal(sfti_model_pair(&m, 0).value, sft_span_cstr("v\n")));
    assert_int_equal(sfti_model_metadata_find(&m, sft_span_cstr("")), 1);
    assert_int_equal(sfti_model_metadata_find(&m, sft_span_cstr("x")), SIZE_MAX);
    sfti_arena_free(&arena);
}

static void last_duplicate_wins_at_compat(void **state) {
    (void)state;
    static const char text[] =
        "{\"t\":{\"dtype\":\"U8\",\"shape\":[9],\"data_offsets\":[5,14]},"
        "\"u\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]},"
        "\"t\":{\"dtype\":\"I8\",\"shape\":[2],\"data_offsets\":[0,2]},"
        "\"__metadata__\":{\"a\":\"1\",\"b\":\"2\",\"a\":\"3\"}}";
    sfti_arena arena;
    sfti_model m;
    assert_int_equal(read_text(sft_span_cstr(text), 3, SFT_LEVEL_COMPAT, false, false, &arena,
                               &m, NULL), SFT_OK);
    assert_int_equal(m.tensors.count, 2);
    assert_int_equal(sfti_model_tensor(&m, 0)->dtype, SFT_I8);
    assert_ptr_equal(sfti_model_find(&m, sft_span_cstr("t")), sfti_model_tensor(&m, 0));
    assert_int_equal(m.metadata_count, 2);
    assert_true(sft_span_equal(sfti_model_pair(&m, 0).value, sft_span_cstr("3")));
    sfti_arena_free(&arena);
}

static void layout_of_2022_by_option(void **state) {
    (void)state;
    static const char text[] =
        "{\"t\":{\"dtype\":\"float16\",\"shape\":[2],\"offsets\":[0,4]}}";
    sfti_arena arena;
    sfti_model m;
    sft_error err = SFT_ERROR_INIT;
    assert_int_equal(verdict(text, 4, SFT_LEVEL_COMPAT), SFT_LEGACY_LAYOUT);
    assert_int_equal(read_text(sft_span_cstr(text), 4, SFT_LEVEL_DEFAULT, false, true, &arena,
                               &m, &err), SFT_OK);
    assert_int_equal(sfti_model_tensor(&m, 0)->dtype, SFT_F16);
    assert_int_equal(sfti_model_tensor(&m, 0)->end, 4);
    sfti_arena_free(&arena);
    static const char twice[] = "{\"t\":{\"dtype\":\"float16\",\"shape\":[2],\"offsets\":[0,4],"
                                "\"offsets\":[0,4]}}";
    assert_int_equal(read_text(sft_span_cstr(twice), 4, SFT_LEVEL_DEFAULT, false, true, &arena,
                               &m, &err), SFT_FIELD_DUPLICATE);
    sfti_arena_free(&arena);
}

/* Every cut of a header, in memory that ends where the text does (for ASan). */
static void every_cut_is_refused(void **state) {
    (void)state;
    static const char text[] = "{\"t\":" T1 ",\"__metadata__\":{\"k\\n\":\"v\"}}";
    sft_allocator alloc = sfti_allocator(NULL);
    for (size_t len = 0; len < sizeof text - 1; len++) {
        char *copy = sfti_take(&alloc, len + 1);
        sft_span cut = { copy + 1, len };
        sfti_arena arena;
        sfti_model m;
        memcpy(copy + 1, text, len);
        for (int slow = 0; slow < 2; slow++) {
            assert_int_equal(read_text(cut, SFT_SIZE_UNKNOWN, SFT_LEVEL_COMPAT, slow, false,
                                       &arena, &m, NULL), SFT_JSON_SYNTAX);
            sfti_arena_free(&arena);
        }
        sfti_release(&alloc, copy, len + 1);
    }
}

/* Dimensions of 1 to 20 digits, also right before the end of the text. */
static void numbers_of_every_length(void **state) {
    (void)state;
    static const char digits[] = "98765432109876543210";
    for (size_t len = 1; len <= 19; len++) {
        char text[200];
        uint64_t want = 0;
        (void)snprintf(text, sizeof text, "{\"t\":{\"dtype\":\"U8\",\"shape\":[0,%.*s,0,7],"
                       "\"data_offsets\":[0,0]}}", (int)len, digits);
        for (size_t i = 0; i < len; i++) want = want * 10 + (uint64_t)(digits[i] - '0');
        for (int slow = 0; slow < 2; slow++) {
            sfti_arena arena;
            sfti_model m;
            assert_int_equal(read_text(sft_span_cstr(text), 0, SFT_LEVEL_STRICT, slow, false,
                                       &arena, &m, NULL), SFT_OK);
            assert_int_equal(sfti_model_tensor(&m, 0)->shape[1], want);
            assert_int_equal(sfti_model_tensor(&m, 0)->shape[3], 7);
            sfti_arena_free(&arena);
        }
    }
    assert_int_equal(verdict(ENTRY("\"U8\"", "[0,18446744073709551615]", "[0,0]"), 0,
                             SFT_LEVEL_STRICT), SFT_OK);
    assert_int_equal(verdict(ENTRY("\"U8\"", "[0,98765432109876543210]", "[0,0]"), 0,
                             SFT_LEVEL_STRICT), SFT_SHAPE_TYPE);
}

static sft_code frame(uint64_t n, uint64_t most, uint64_t *found) {
    const sfti_limits limits = { .max_header_bytes = most };
    uint8_t prefix[SFTI_PREFIX];
    for (int i = 0; i < SFTI_PREFIX; i++) prefix[i] = (uint8_t)(n >> (8 * i));
    return sfti_frame(prefix, SFT_SIZE_UNKNOWN, &limits, found, NULL);
}

/* No limit stands for the official one, and none goes beyond 2^31 - 1. */
static void frame_has_a_limit(void **state) {
    (void)state;
    uint64_t found = 0;
    assert_int_equal(frame(SFT_MAX_HEADER_BYTES, 0, &found), SFT_OK);
    assert_int_equal(found, SFT_MAX_HEADER_BYTES);
    assert_int_equal(frame(SFT_MAX_HEADER_BYTES + 1, 0, &found), SFT_HEADER_TOO_LARGE);
    assert_int_equal(found, 0);
    assert_int_equal(frame(SFTI_MOST_HEADER, UINT64_MAX, &found), SFT_OK);
    assert_int_equal(found, SFTI_MOST_HEADER);
    assert_int_equal(frame(SFTI_MOST_HEADER + 1, UINT64_MAX, &found), SFT_HEADER_TOO_LARGE);
}

static void *refuse_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    (void)ctx, (void)ptr, (void)old_size, (void)new_size;
    return NULL;
}

static void ignore_finding(void *ctx, const sft_error *error) {
    (void)ctx, (void)error;
}

static void ignore_note(void *ctx, const char *name, const sft_error *error) {
    (void)ctx, (void)name, (void)error;
}

static void ignore_entry(void *ctx, const sft_scan_entry *entry) {
    (void)ctx, (void)entry;
}

static const sfti_watch ignoring = { NULL, ignore_finding, ignore_note, ignore_entry };

/* In so much memory and no more. */
static sft_code read_within(const char *text, size_t size, bool slow, const sfti_watch *watch,
                            sfti_model *model, sft_error *err) {
    static _Alignas(8) char buffer[1 << 16];
    const uint64_t seed[2] = { 11, 22 };
    const sfti_limits limits = { .level = SFT_LEVEL_COMPAT, .slow = slow };
    sfti_arena arena = { .alloc = { refuse_resize, NULL }, .at = buffer, .end = buffer + size };
    assert_true(size <= sizeof buffer);
    return sfti_model_read(sft_span_cstr(text), SFT_SIZE_UNKNOWN, &limits, seed, watch, &arena,
                           model, err);
}

/* A name that was decoded has no place in the file, wherever memory put it. */
static void decoded_names_have_no_place(void **state) {
    (void)state;
    static struct {
        char before[256];
        _Alignas(8) char buffer[4096];
        char after[256];
    } memory;
    static const char text[] = "{\"\\u0074\":" T1 ",\"\\u0074\":" T1 "}";
    char *const places[] = { memory.before, memory.after };
    const uint64_t seed[2] = { 1, 2 };
    const sfti_limits limits = { .level = SFT_LEVEL_DEFAULT };
    for (int i = 0; i < 2; i++) {
        sfti_arena arena = { .alloc = { refuse_resize, NULL }, .at = memory.buffer,
                             .end = memory.buffer + sizeof memory.buffer };
        const sft_span span = { places[i], sizeof text - 1 };
        sft_error err = SFT_ERROR_INIT;
        sfti_model m;
        memcpy(places[i], text, sizeof text);
        assert_int_equal(sfti_model_read(span, SFT_SIZE_UNKNOWN, &limits, seed, NULL, &arena, &m,
                                         &err), SFT_TENSOR_DUPLICATE);
        assert_true(err.offset == SFT_NO_OFFSET);
        assert_int_equal(err.tensor_len, 1);
    }
}

static void count_finding(void *ctx, const sft_error *error) {
    *(unsigned *)ctx |= error->code == SFT_OFFSETS_GAP ? 1U
                        : error->code == SFT_SIZE_OVERFLOW ? 2U : 4U;
}

/* A watched reading goes on, to numbers that an opened file never has. */
static void offsets_beyond_all(void **state) {
    (void)state;
    static const char *const texts[] = {
        ENTRY("\"U8\"", "[5]", "[18446744073709551615,5]"),
        ENTRY("\"U8\"", "[5]", "[18446744073709551610,18446744073709551615]"),
    };
    const uint64_t seed[2] = { 1, 2 };
    const sfti_limits limits = { .level = SFT_LEVEL_COMPAT };
    for (int i = 0; i < 2; i++) {
        unsigned seen = 0;
        const sfti_watch watch = { &seen, count_finding, ignore_note, ignore_entry };
        sfti_arena arena = { 0 };
        sfti_model m;
        arena.alloc = sfti_allocator(NULL);
        assert_int_equal(sfti_model_read(sft_span_cstr(texts[i]), SFT_SIZE_UNKNOWN, &limits, seed,
                                         &watch, &arena, &m, NULL),
                         i == 0 ? SFT_OFFSETS_REVERSED : SFT_OFFSETS_GAP);
        assert_int_equal(seen, i == 0 ? 6 : 3);
        sfti_arena_free(&arena);
    }
}

/* A shape of `rank` dimensions, all 1 but every seventh, spelled with `space` behind each. */
static void spell_shape(char *text, size_t cap, uint32_t rank, const char *space) {
    size_t n = (size_t)snprintf(text, cap, "{\"t\":{\"dtype\":\"U8\",\"shape\":[");
    for (uint32_t d = 0; d < rank; d++)
        n += (size_t)snprintf(text + n, cap - n, "%s%d%s", d ? "," : "", d % 7 ? 1 : 0, space);
    (void)snprintf(text + n, cap - n, "],\"data_offsets\":[0,0]}}");
}

static void tally_finding(void *ctx, const sft_error *error) {
    (void)error;
    ++*(size_t *)ctx;
}

/* Who goes on with a shape that is too long has all of it, as short ones with many spaces. */
static void long_shapes_are_whole(void **state) {
    (void)state;
    static const uint32_t ranks[] = { 1, 20, 64, 65, 66, 300 };
    static char text[4000];
    const uint64_t seed[2] = { 1, 2 };
    for (size_t i = 0; i < 3 * sizeof ranks / sizeof *ranks; i++) {
        uint32_t rank = ranks[i / 3];
        spell_shape(text, sizeof text, rank, i % 3 == 0 ? "" : i % 3 == 1 ? " " : "     ");
        for (int watched = 0; watched < 2; watched++) {
            size_t count = 0;
            sfti_watch watch = { &count, tally_finding, ignore_note, ignore_entry };
            sfti_limits limits = { .level = watched ? SFT_LEVEL_DEFAULT : SFT_LEVEL_COMPAT };
            sfti_arena arena = { .alloc = sfti_allocator(NULL) };
            sfti_model m;
            sft_span span = sft_span_cstr(text);
            sft_code code = sfti_model_read(span, SFTI_PREFIX + span.len, &limits, seed,
                                            watched ? &watch : NULL, &arena, &m, NULL);
            assert_int_equal(code, watched && rank > 64 ? SFT_RANK_TOO_LARGE : SFT_OK);
            assert_int_equal(count, watched && rank > 64);
            assert_int_equal(m.tensors.count, 1);
            const sft_tensor *t = sfti_model_tensor(&m, 0);
            assert_int_equal(t->rank, rank);
            for (uint32_t d = 0; d < rank; d++) assert_int_equal(t->shape[d], d % 7 ? 1 : 0);
            sfti_arena_free(&arena);
        }
    }
    (void)snprintf(text, sizeof text, ENTRY("\"U8\"", "[%300s]", "[0,1]"), ""); /* of none */
    assert_int_equal(verdict(text, 1, SFT_LEVEL_COMPAT), SFT_OK);
    assert_int_equal(verdict("{\"t\":{\"dtype\":\"U8\",\"shape\":[", 0, SFT_LEVEL_COMPAT),
                     SFT_JSON_SYNTAX);
    spell_shape(text, sizeof text, 100, "");
    memcpy(strchr(text, '0') + 8, "x", 1);
    assert_int_equal(verdict(text, 0, SFT_LEVEL_COMPAT), SFT_JSON_SYNTAX);
    assert_int_equal(verdict(text, 0, SFT_LEVEL_DEFAULT), SFT_JSON_SYNTAX);
}

/* What stands behind the object is padding to a repair if it is white space and NULs. */
static void padding_that_is_repaired(void **state) {
    (void)state;
    static const struct {
        sft_span text;
        sft_hint hint;
    } rows[] = {
        { { "{}\0 \t\r\n\0", 8 }, SFT_HINT_REPAIR_PADDING },
        { { "{}\0\0\0\0", 6 }, SFT_HINT_REPAIR_PADDING },
        { { "{}\0 x", 5 }, SFT_HINT_BROKEN_WRITER },
        { { "{}x\0", 4 }, SFT_HINT_BROKEN_WRITER },
    };
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        sft_error err = SFT_ERROR_INIT;
        sfti_arena arena;
        sfti_model m;
        assert_int_equal(read_text(rows[i / 2].text, 0, SFT_LEVEL_COMPAT, i % 2, false, &arena, &m,
                                   &err), SFT_JSON_TRAILING);
        assert_int_equal(err.hint, rows[i / 2].hint);
        assert_int_equal(err.offset, 8 + 2);
        sfti_arena_free(&arena);
    }
}

/* A null as metadata is none, and what only begins like it is no JSON. */
static void metadata_that_is_null(void **state) {
    (void)state;
    assert_int_equal(verdict("{\"__metadata__\":null}", 0, SFT_LEVEL_DEFAULT), SFT_OK);
    assert_int_equal(verdict("{\"__metadata__\":null}", 0, SFT_LEVEL_STRICT), SFT_STRICT_METADATA);
    for (int level = SFT_LEVEL_COMPAT; level <= SFT_LEVEL_STRICT; level++)
        assert_int_equal(verdict("{\"__metadata__\":nulL}", 0, (sft_level)level), SFT_JSON_SYNTAX);
}

static void memory_may_end_anywhere(void **state) {
    (void)state;
    static const char text[] =
        "{\"__metadata__\":{\"k\\n\":\"v\",\"l\":\"w\\u00e9\"},"
        "\"c\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[2,5]},"
        "\"\\u0061\":{\"shape\":[1,1],\"dtype\":\"F16\",\"data_offsets\":[0,2]},"
        "\"c\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}";
    for (int way = 0; way < 3; way++) {
        const sfti_watch *watch = way == 2 ? &ignoring : NULL;
        sft_error err = SFT_ERROR_INIT;
        sfti_model m;
        size_t size = 0;
        while (read_within(text, size, way == 1, watch, &m, &err) != SFT_OK) {
            assert_int_equal(read_within(text, size, way == 1, watch, &m, NULL),
                             SFT_OUT_OF_MEMORY);
            assert_int_equal(err.code, SFT_OUT_OF_MEMORY);
            sfti_error_clear(&err);
            size += 8;
        }
        assert_true(size > 3 * sizeof(sft_tensor));
        assert_int_equal(m.tensors.count, 2);
        assert_int_equal(m.metadata_count, 2);
        assert_int_equal(m.data_bytes, 6);
    }
    static char longest[4000];
    sft_error err = SFT_ERROR_INIT;
    sfti_model m;
    spell_shape(longest, sizeof longest, 300, "");
    for (size_t size = 0; size < 300 * sizeof(uint64_t); size += 8)
        assert_int_equal(read_within(longest, size, false, NULL, &m, &err), SFT_OUT_OF_MEMORY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_every_length),
        cmocka_unit_test(verdicts_by_level),
        cmocka_unit_test(refusals_at_every_level),
        cmocka_unit_test(depth_is_127),
        cmocka_unit_test(rank_is_bounded_from_default),
        cmocka_unit_test(long_shapes_are_whole),
        cmocka_unit_test(duplicates_leave_gaps),
        cmocka_unit_test(model_is_in_offset_order),
        cmocka_unit_test(last_duplicate_wins_at_compat),
        cmocka_unit_test(layout_of_2022_by_option),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(frame_has_a_limit),
        cmocka_unit_test(padding_that_is_repaired),
        cmocka_unit_test(metadata_that_is_null),
        cmocka_unit_test(decoded_names_have_no_place),
        cmocka_unit_test(offsets_beyond_all),
        cmocka_unit_test(memory_may_end_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
