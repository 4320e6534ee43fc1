/* Result objects, byte for byte, and the totals they come from. */
#define _GNU_SOURCE
#include "base/json.h"
#include "safetensors_report.h"
#include "safetensors_scan.h"
#include "safetensors_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/temp_model.h"

static temp_folder temp;

static int set_up(void **state) {
    (void)state;
    temp_begin(&temp);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    temp_end(&temp);
    return 0;
}

/* ── Output into memory ── */

static sft_buffer out;
static sft_sink sink;

static sft_sink *sink_begin(void) {
    sft_buffer_free(&out);
    memset(&out, 0, sizeof out);
    sink = sft_sink_memory(&out);
    return &sink;
}

/* The text is one JSON value, and this one. $T in want stands for the folder. */
static void assert_json(sft_code code, const char *want) {
    static char full[8192];
    sfti_json json;
    size_t at = 0;
    assert_int_equal(code, SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, NULL), SFT_OK);
    for (; *want; want++) {
        bool folder = want[0] == '$' && want[1] == 'T';
        at += (size_t)snprintf(full + at, sizeof full - at, "%.*s",
                               folder ? (int)sizeof temp.path : 1, folder ? temp.path : want);
        want += folder;
    }
    if (out.len != at || memcmp(out.data, full, at) != 0)
        fail_msg("expected\n%s\nfound\n%.*s", full, (int)out.len, out.data);
    sfti_json_begin(&json, out.data, out.len);
    while (sfti_json_next(&json) > SFTI_JSON_END) {}
    assert_int_equal(json.type, SFTI_JSON_END);
    sft_buffer_free(&out);
}

static sft_set *open_set(const char *path) {
    sft_error err = SFT_ERROR_INIT;
    sft_set *set;
    if (sft_set_open(path, NULL, &set, &err)) fail_msg("%s: %s", path, err.message);
    return set;
}

/* 8 + 256 bytes, so that the data begins at an odd multiple of 8. */
static const char *mixed_model(void) {
    char header[512];
    snprintf(header, sizeof header, "%-256s",
             "{\"__metadata__\":{\"format\":\"pt\",\"z\\u0000\":\"\\u202e\\\"\"},"
             "\"b\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[0,12]},"
             "\"a\\n\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[13,17]},"
             "\"c\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[12,13]}}");
    return temp_model(&temp, "m.safetensors", header, "0123456789abcdefg", 17);
}

static const char *sharded_model(void) {
    temp_model(&temp, "s-1.safetensors",
               "{\"__metadata__\":{\"format\":\"pt\",\"one\":\"1\"},"
               "\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", "ab", 2);
    temp_model(&temp, "s-2.safetensors",
               "{\"__metadata__\":{\"format\":\"tf\",\"two\":\"2\"},"
               "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", "c", 1);
    return temp_text(&temp, "s.safetensors.index.json",
                     "{\"weight_map\":{\"a\":\"s-1.safetensors\",\"b\":\"s-2.safetensors\"}}");
}

/* ── info ── */

static void info_of_a_file(void **state) {
    sft_set *set = open_set(mixed_model());
    (void)state;
    sft_code code = sft_set_json(set, "dir/m.safetensors", 0, sink_begin(), NULL);
    assert_json(code,
                "{\"path\":\"dir/m.safetensors\",\"ok\":true,"
                "\"complete\":true,\"file\":{\"bytes\":281,\"header_bytes\":256,"
                "\"data_offset\":264,\"data_bytes\":17,\"tensors\":3,\"parameters\":8,"
                "\"alignment\":8,\"unaligned\":1,\"dtypes\":{"
                "\"BOOL\":{\"tensors\":1,\"parameters\":1,\"bytes\":1},"
                "\"F16\":{\"tensors\":1,\"parameters\":6,\"bytes\":12},"
                "\"F32\":{\"tensors\":1,\"parameters\":1,\"bytes\":4}}},"
                "\"metadata\":{\"format\":\"pt\",\"z\\u0000\":\"\\u202e\\\"\"}}");
    sft_set_close(set);
}

static void info_of_nothing(void **state) {
    sft_set *set = open_set(temp_model(&temp, "e", "{}", NULL, 0));
    (void)state;
    assert_json(sft_set_json(set, NULL, 0, sink_begin(), NULL),
                "{\"path\":null,\"ok\":true,\"complete\":true,\"file\":{\"bytes\":10,"
                "\"header_bytes\":2,\"data_offset\":10,\"data_bytes\":0,\"tensors\":0,"
                "\"parameters\":0,\"alignment\":2,\"unaligned\":0,\"dtypes\":{}},"
                "\"metadata\":{}}");
    sft_set_close(set);
}

static void info_of_shards(void **state) {
    sft_set *set = open_set(sharded_model());
    (void)state;
    assert_json(sft_set_json(set, "s", 0, sink_begin(), NULL),
                "{\"path\":\"s\",\"ok\":true,\"complete\":true,\"file\":{\"bytes\":207,"
                "\"header_bytes\":188,\"data_offset\":null,\"data_bytes\":3,\"tensors\":2,"
                "\"parameters\":3,\"alignment\":2,\"unaligned\":0,\"dtypes\":{"
                "\"U8\":{\"tensors\":2,\"parameters\":3,\"bytes\":3}}},"
                "\"metadata\":{\"format\":\"pt\",\"one\":\"1\",\"two\":\"2\"},"
                "\"shards\":[{\"path\":\"$T/s-1.safetensors\",\"bytes\":104,\"tensors\":1},"
                "{\"path\":\"$T/s-2.safetensors\",\"bytes\":103,\"tensors\":1}]}");
    sft_set_close(set);
}

/* Headers alone may promise more than there can be: sums of several sets stop, too. */
static void info_of_impossible_sets(void **state) {
    sft_open_options open = SFT_OPEN_OPTIONS_INIT;
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    const char *path = temp_model(&temp, "h.safetensors",
                                  "{\"a\":{\"dtype\":\"U8\",\"shape\":[2305843009213693951],"
                                  "\"data_offsets\":[0,2305843009213693951]}}", NULL, 0);
    sft_set *sets[9];
    (void)state;
    open.header_only = true;
    options.open = &open;
    assert_int_equal(sft_set_open(path, &options, &sets[0], NULL), SFT_OK);
    for (size_t i = 1; i < 9; i++) sets[i] = sets[0];
    const sft_set *const *all = (const sft_set *const *)sets;
    assert_json(sft_sets_json(all, 9, "p", sink_begin(), NULL),
                "{\"path\":\"p\",\"ok\":true,\"complete\":false,\"file\":{\"bytes\":873,"
                "\"header_bytes\":801,\"data_offset\":null,"
                "\"data_bytes\":18446744073709551615,\"tensors\":9,"
                "\"parameters\":18446744073709551615,\"alignment\":1,\"unaligned\":0,"
                "\"dtypes\":{\"U8\":{\"tensors\":9,\"parameters\":18446744073709551615,"
                "\"bytes\":18446744073709551615}}},\"metadata\":{},\"metadata_cut\":{}}");
    sft_set_close(sets[0]);
}

typedef struct pipe_bytes {
    const char *data;
    size_t len;
} pipe_bytes;

static sft_code pipe_read(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                          sft_error *err) {
    const pipe_bytes *p = ctx;
    (void)err;
    *got = offset >= p->len ? 0 : p->len - (size_t)offset;
    if (*got > len) *got = len;
    memcpy(into, p->data + offset, *got);
    return SFT_OK;
}

static const sft_source_vtable pipe_vtable = { .size = sizeof(sft_source_vtable),
    .read = pipe_read };

static void info_of_a_pipe(void **state) {
    pipe_bytes p = { "\x02\0\0\0\0\0\0\0{}", 10 };
    sft_source source = { .ctx = &p, .vtable = &pipe_vtable,
                          .size = SFT_SIZE_UNKNOWN };
    sft_file *file;
    sft_set *set;
    (void)state;
    assert_int_equal(sft_open_source(source, NULL, &file, NULL), SFT_OK);
    assert_int_equal(sft_set_from_file(file, "-", &set, NULL), SFT_OK);
    assert_json(sft_set_json(set, "-", 0, sink_begin(), NULL),
                "{\"path\":\"-\",\"ok\":true,\"complete\":false,\"file\":{\"bytes\":null,"
                "\"header_bytes\":2,\"data_offset\":10,\"data_bytes\":0,\"tensors\":0,"
                "\"parameters\":0,\"alignment\":2,\"unaligned\":0,\"dtypes\":{}},"
                "\"metadata\":{}}");
    assert_json(sft_set_ls_json(set, "-", SFT_ORDER_NAME, NULL, NULL, sink_begin(), NULL),
                "{\"path\":\"-\",\"ok\":true,\"complete\":false,\"tensors\":[]}");
    sft_set_close(set);
}

static void totals_of_a_set(void **state) {
    sft_set *set = open_set(mixed_model());
    sft_dtype_sum sums[4] = { [2] = { .tensors = 77 } };
    (void)state;
    assert_int_equal(sft_set_file_bytes(set), 281);
    assert_int_equal(sft_set_data_bytes(set), 17);
    assert_int_equal(sft_set_header_bytes(set), 281 - 8 - 17);
    assert_int_equal(sft_set_unaligned_count(set), 1);
    assert_int_equal(sft_set_alignment(set), 8);
    assert_int_equal(sft_set_parameters(set), 8);
    assert_int_equal(sft_set_dtypes(set, sums, 2), 3);
    assert_int_equal(sums[0].dtype, SFT_BOOL);
    assert_int_equal(sums[1].dtype, SFT_F16);
    assert_int_equal(sums[1].parameters, 6);
    assert_int_equal(sums[2].tensors, 77);
    assert_int_equal(sft_set_dtypes(set, sums, 4), 3);
    assert_int_equal(sums[2].dtype, SFT_F32);
    assert_int_equal(sums[2].bytes, 4);
    assert_int_equal(sft_set_dtypes(set, NULL, 0), 3);
    sft_set_close(set);
}

/* ── ls ── */

static bool not_b(void *ctx, const sft_tensor *tensor) {
    ++*(int *)ctx;
    return tensor->name.data[0] != 'b';
}

#define LS_A "{\"name\":\"a\\n\",\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[13,17]," \
             "\"file_offsets\":[277,281],\"bytes\":4}"
#define LS_B "{\"name\":\"b\",\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[0,12]," \
             "\"file_offsets\":[264,276],\"bytes\":12}"
#define LS_C "{\"name\":\"c\",\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[12,13]," \
             "\"file_offsets\":[276,277],\"bytes\":1}"

static void ls_of_a_file(void **state) {
    sft_set *set = open_set(mixed_model());
    int calls = 0;
    (void)state;
    assert_json(sft_set_ls_json(set, "m", SFT_ORDER_OFFSET, NULL, NULL, sink_begin(), NULL),
                "{\"path\":\"m\",\"ok\":true,\"complete\":true,"
                "\"tensors\":[" LS_B "," LS_C "," LS_A "]}");
    assert_json(sft_set_ls_json(set, "m", SFT_ORDER_NAME, NULL, NULL, sink_begin(), NULL),
                "{\"path\":\"m\",\"ok\":true,\"complete\":true,"
                "\"tensors\":[" LS_A "," LS_B "," LS_C "]}");
    assert_json(sft_set_ls_json(set, "m", SFT_ORDER_HEADER, not_b, &calls, sink_begin(), NULL),
                "{\"path\":\"m\",\"ok\":true,\"complete\":true,\"tensors\":[" LS_A "," LS_C "]}");
    assert_int_equal(calls, 3);
    sft_set_close(set);
}

static void ls_of_shards(void **state) {
    sft_set *set = open_set(sharded_model());
    (void)state;
    assert_json(sft_set_ls_json(set, "s", SFT_ORDER_NATURAL, NULL, NULL, sink_begin(), NULL),
                "{\"path\":\"s\",\"ok\":true,\"complete\":true,\"tensors\":["
                "{\"name\":\"a\",\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2],"
                "\"file_offsets\":[102,104],\"bytes\":2,\"shard\":\"$T/s-1.safetensors\"},"
                "{\"name\":\"b\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],"
                "\"file_offsets\":[102,103],\"bytes\":1,\"shard\":\"$T/s-2.safetensors\"}]}");
    sft_set_close(set);
}

/* ── Paths and errors ── */

static void errors_in_full(void **state) {
    sft_error error = SFT_ERROR_INIT;
    (void)state;
    error.code = SFT_DATA_TRUNCATED;
    error.offset = 1234;
    error.tensor_len = 8;
    memcpy(error.tensor, "a.weight", 8);
    strcpy(error.message, "expected 5, found \\x1b");
    error.hint = SFT_HINT_TRY_LATER;
    assert_json(sft_error_json(&error, "p", sink_begin(), NULL),
                "{\"path\":\"p\",\"ok\":false,\"error\":{"
                "\"code\":\"data_truncated\",\"offset\":1234,\"tensor\":\"a.weight\","
                "\"message\":\"expected 5, found \\\\x1b\","
                "\"hint\":\"try again when it is done\"}}");
}

static const char *hurry(void *ctx, sft_hint hint) {
    return ctx == &out && hint == SFT_HINT_TRY_LATER ? "hurry" : NULL;
}

static const char *be_patient(void *ctx, sft_hint hint) {
    return ctx == &out && hint == SFT_HINT_TRY_LATER ? "be patient" : NULL;
}

/* Words belong to who takes the bytes: two users, and the library's where there are none. */
static void hints_in_words_of_the_sink(void **state) {
    static const struct row {
        const char *(*words)(void *ctx, sft_hint hint);
        sft_hint hint;
        const char *json;
    } rows[] = {
        { hurry, SFT_HINT_TRY_LATER, "\"hurry\"" },
        { be_patient, SFT_HINT_TRY_LATER, "\"be patient\"" },
        { NULL, SFT_HINT_TRY_LATER, "\"try again when it is done\"" },
        { hurry, SFT_HINT_REPLACE, "\"the options can allow replacing it\"" },
        { hurry, SFT_HINT_NONE, "null" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sft_error error = SFT_ERROR_INIT;
        sft_sink_vtable table = *sink_begin()->vtable;
        char want[256];
        table.words = rows[i].words;
        sink.vtable = &table;
        error.code = SFT_NOT_FOUND;
        error.hint = rows[i].hint;
        (void)snprintf(want, sizeof want, "{\"path\":\"p\",\"ok\":false,\"error\":{\"code\":"
                       "\"not_found\",\"offset\":null,\"tensor\":null,\"message\":\"\","
                       "\"hint\":%s}}", rows[i].json);
        assert_json(sft_error_json(&error, "p", &sink, NULL), want);
    }
}

static void errors_with_nothing_known(void **state) {
    sft_error error = SFT_ERROR_INIT;
    (void)state;
    error.code = SFT_NOT_FOUND;
    assert_json(sft_error_json(&error, NULL, sink_begin(), NULL),
                "{\"path\":null,\"ok\":false,\"error\":{\"code\":\"not_found\",\"offset\":null,"
                "\"tensor\":null,\"message\":\"\",\"hint\":null}}");
    error.tensor_len = 0; /* a tensor of no name is not no tensor */
    assert_json(sft_error_json(&error, "", sink_begin(), NULL),
                "{\"path\":\"\",\"ok\":false,\"error\":{\"code\":\"not_found\",\"offset\":null,"
                "\"tensor\":\"\",\"message\":\"\",\"hint\":null}}");
}

static void paths_of_any_bytes(void **state) {
    sft_error error = SFT_ERROR_INIT;
    (void)state;
    error.code = SFT_NOT_FOUND;
#define REST ",\"ok\":false,\"error\":{\"code\":\"not_found\",\"offset\":null,\"tensor\":null," \
             "\"message\":\"\",\"hint\":null}}"
    assert_json(sft_error_json(&error, "d\xc3\xa9/x", sink_begin(), NULL),
                "{\"path\":\"d\xc3\xa9/x\"" REST);
    assert_json(sft_error_json(&error, "A-z_0.9~/%\xff \xc3\xa9", sink_begin(), NULL),
                "{\"path\":\"A-z_0.9~/%\xef\xbf\xbd \xc3\xa9\","
                "\"path_bytes\":\"A-z_0.9~/%25%FF%20%C3%A9\"" REST);
}

/* ── check ── */

static sft_scan *scan_of(const char *path, sft_level level) {
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    sft_scan *scan;
    options.level = level;
    assert_int_equal(sft_scan_open(path, &options, &scan, NULL), SFT_OK);
    return scan;
}

static void check_of_a_good_file(void **state) {
    sft_deep_counts deep = { 1, 2, 3, 4, 1, 0, 0, UINT64_MAX };
    char header[64];
    (void)state;
    snprintf(header, sizeof header, "%-8s", "{}");
    sft_scan *scan = scan_of(temp_model(&temp, "e", header, NULL, 0), SFT_LEVEL_STRICT);
    assert_json(sft_scan_json(scan, "e", NULL, sink_begin(), NULL),
                "{\"path\":\"e\",\"ok\":true,"
                "\"level\":\"strict\",\"error\":null,\"findings\":[],\"notes\":[],\"deep\":null}");
    assert_json(sft_scan_json(scan, "e", &deep, sink_begin(), NULL),
                "{\"path\":\"e\",\"ok\":true,\"level\":\"strict\",\"error\":null,\"findings\":[],"
                "\"notes\":[],\"deep\":{\"tensors\":1,\"values\":2,\"nan\":3,\"inf\":4,"
                "\"tensors_with_nan\":1,\"tensors_with_inf\":0,\"first_nan_tensor\":0,"
                "\"first_inf_tensor\":null}}");
    sft_scan_close(scan);
}

/* The parts are the scan's business; that each is there, and where, is this one's. */
static bool has(const char *text) {
    return memmem(out.data, out.len, text, strlen(text)) != NULL;
}

static void check_of_a_bad_file(void **state) {
    sft_scan *scan = scan_of(
        temp_model(&temp, "bad", "{\"t\":{\"dtype\":\"F32\",\"shape\":[2],"
                                 "\"data_offsets\":[0,4]}}  ", "1234", 4), SFT_LEVEL_COMPAT);
    (void)state;
    assert_int_equal(sft_scan_json(scan, "bad", NULL, sink_begin(), NULL), SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, NULL), SFT_OK);
    assert_true(has("{\"path\":\"bad\",\"ok\":false,\"level\":\"compat\",\"error\":{"
                    "\"code\":\"size_mismatch\",\"offset\":"));
    assert_true(has("\"findings\":[{\"code\":\"size_mismatch\",\"rule\":\"R37\",\"offset\":"));
    assert_true(has("\"tensor\":\"t\""));
    assert_true(has("],\"notes\":["));
    assert_true(has("],\"deep\":null}"));
    sft_buffer_free(&out);
    sft_scan_close(scan);
}

static void check_with_notes(void **state) {
    sft_scan *scan = scan_of(mixed_model(), SFT_LEVEL_DEFAULT);
    (void)state;
    assert_int_equal(sft_scan_json(scan, "m", NULL, sink_begin(), NULL), SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, NULL), SFT_OK);
    assert_true(has("\"ok\":true,\"level\":\"default\",\"error\":null,\"findings\":[]"));
    assert_true(has("{\"code\":\"unaligned\",\"message\":\"expected data aligned"));
    assert_true(has(",\"offset\":277,\"tensor\":\"a\\n\"}"));
    sft_buffer_free(&out);
    sft_scan_close(scan);
}

static void check_of_a_set(void **state) {
    sft_error error = SFT_ERROR_INIT;
    (void)state;
    assert_json(sft_set_check_json(NULL, SFT_LEVEL_COMPAT, sft_span_cstr("{},{}"), "s", NULL,
                                   sink_begin(), NULL),
                "{\"path\":\"s\",\"ok\":true,\"level\":\"compat\",\"error\":null,"
                "\"findings\":[],\"notes\":[],\"deep\":null,\"shards\":[{},{}]}");
    error.code = SFT_INDEX_TENSOR_MISSING;
    error.offset = 7;
#define BODY "\"offset\":7,\"tensor\":null,\"message\":\"\",\"hint\":null}"
    assert_json(sft_set_check_json(&error, SFT_LEVEL_DEFAULT, sft_span_cstr(""), "s", NULL,
                                   sink_begin(), NULL),
                "{\"path\":\"s\",\"ok\":false,"
                "\"level\":\"default\",\"error\":{\"code\":\"index_tensor_missing\"," BODY ","
                "\"findings\":[{\"code\":\"index_tensor_missing\",\"rule\":\"R43\"," BODY "],"
                "\"notes\":[],\"deep\":null,\"shards\":[]}");
}

/* ── A sink that fails ── */

static sft_code write_full(void *ctx, uint64_t offset, const void *bytes, size_t len,
                        sft_error *err) {
    (void)ctx;
    (void)offset;
    (void)bytes;
    (void)len;
    return sft_error_set(err, SFT_IO_WRITE, 28, "disk full");
}

static const sft_sink_vtable full_vtable = { .size = sizeof(sft_sink_vtable),
                                             .write = write_full };

static void a_failing_sink_is_told(void **state) {
    sft_set *set = open_set(mixed_model());
    sft_sink full = { .vtable = &full_vtable };
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    assert_int_equal(sft_set_json(set, "m", 0, &full, &err), SFT_IO_WRITE);
    assert_int_equal(err.os_errno, 28);
    assert_int_equal(sft_set_ls_json(set, "m", SFT_ORDER_NAME, NULL, NULL, &full, NULL),
                     SFT_IO_WRITE);
    assert_int_equal(sft_error_json(&err, "m", &full, NULL), SFT_IO_WRITE);
    sft_set_close(set);
}

#define ROW(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        ROW(info_of_a_file),
        ROW(info_of_nothing),
        ROW(info_of_shards),
        ROW(info_of_impossible_sets),
        ROW(info_of_a_pipe),
        ROW(totals_of_a_set),
        ROW(ls_of_a_file),
        ROW(ls_of_shards),
        ROW(errors_in_full),
        ROW(hints_in_words_of_the_sink),
        ROW(errors_with_nothing_known),
        ROW(paths_of_any_bytes),
        ROW(check_of_a_good_file),
        ROW(check_of_a_bad_file),
        ROW(check_with_notes),
        ROW(check_of_a_set),
        ROW(a_failing_sink_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
