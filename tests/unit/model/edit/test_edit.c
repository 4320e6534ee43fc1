/* Editing: what changes in the header's text and what stays, each way to the disk, refusals,
 * and files whose edit was interrupted. Faults and crashes are in tests/faults. */
#define _GNU_SOURCE
#include "safetensors.h"
#include "safetensors_edit.h"
#include "safetensors_io.h"
#include "safetensors_scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/make_file.h"
#include "unit/make_journal.h"
#include "unit/stat_times.h"
#include "unit/temp_dir.h"

#include <fcntl.h>
#include <sys/file.h>

#define FILE_NAME "m.safetensors"
#define JOURNAL ".m.safetensors.sft-journal"
#define TENSOR(name, begin, end) \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[" #begin "," #end "]}"
#define A_B TENSOR("a", 0, 4) "," TENSOR("b", 4, 8)

static char found[1 << 17];
static long found_len;
static size_t header_size; /* N of the last file put */

static void put_file(const char *header, size_t data) {
    test_file f = make_file(header, NULL, data);
    header_size = strlen(header);
    temp_write(FILE_NAME, f.bytes, f.len);
    free_file(&f);
}

static void read_back(void) {
    found_len = temp_read(FILE_NAME, found, sizeof found);
    assert_true(found_len >= 8);
}

/* The header, with as many spaces behind as it takes, and the data. */
static void expect_header(const char *header, size_t data) {
    char padded[1024];
    size_t len = strlen(header);
    while (header[len - 1] == ' ') len--;
    assert_true(len <= header_size && header_size < sizeof padded);
    memset(padded, ' ', sizeof padded);
    memcpy(padded, header, len);
    padded[header_size] = '\0';
    test_file f = make_file(padded, NULL, data);
    read_back();
    if ((size_t)found_len != f.len || memcmp(found, f.bytes, f.len) != 0)
        print_error("expected %s\nfound    %.*s\n", header, (int)found_len - 8, found + 8);
    assert_int_equal(found_len, f.len);
    assert_memory_equal(found, f.bytes, f.len);
    free_file(&f);
}

static sft_edit *open_edit(const sft_edit_options *options) {
    sft_edit *edit = NULL;
    sft_error err = SFT_ERROR_INIT;
    if (sft_edit_open(temp_path(FILE_NAME), options, &edit, &err) != SFT_OK)
        print_error("%s\n", err.message);
    assert_non_null(edit);
    return edit;
}

static void set(sft_edit *edit, const char *key, const char *value) {
    assert_int_equal(sft_edit_set(edit, sft_span_cstr(key), sft_span_cstr(value), NULL), SFT_OK);
}

static void drop(sft_edit *edit, const char *key) {
    assert_int_equal(sft_edit_remove(edit, sft_span_cstr(key), NULL), SFT_OK);
}

static sft_code name(sft_edit *edit, const char *from, const char *to) {
    return sft_edit_rename(edit, sft_span_cstr(from), sft_span_cstr(to), NULL);
}

static sft_edit_report apply(sft_edit *edit) {
    sft_edit_report report, plan;
    sft_error err = SFT_ERROR_INIT;
    memset(&report, 0, sizeof report);
    memset(&plan, 0, sizeof plan);
    assert_int_equal(sft_edit_plan(edit, &plan, &err), SFT_OK);
    sft_code code = sft_edit_apply(edit, NULL, &report, &err);
    if (code != SFT_OK) print_error("%s\n", err.message);
    assert_int_equal(code, SFT_OK);
    assert_memory_equal(&plan, &report, sizeof plan);
    sft_edit_close(edit);
    return report;
}

/* ── The text ── */

/* Words: "+key=value" sets, "-key" removes, "old>new" renames. */
typedef struct text_case {
    const char *before, *words, *after;
} text_case;

#define PAD16 "                "

static const text_case text_cases[] = {
    { "{\"__metadata__\":{\"k\":\"v\"}," A_B "}" PAD16, "+k=longer",
      "{\"__metadata__\":{\"k\":\"longer\"}," A_B "}" },
    { "{\"__metadata__\":{\"k\":\"longer\"}," A_B "}", "+k=v",
      "{\"__metadata__\":{\"k\":\"v\"}," A_B "}" },
    { "{\"__metadata__\":{\"a\":\"1\",\"b\":\"2\"}," A_B "}" PAD16, "+c=3",
      "{\"__metadata__\":{\"a\":\"1\",\"b\":\"2\",\"c\":\"3\"}," A_B "}" },
    { "{\"__metadata__\":{\"a\":\"1\",\"b\":\"2\"}," A_B "}", "-a",
      "{\"__metadata__\":{\"b\":\"2\"}," A_B "}" },
    { "{\"__metadata__\":{\"a\":\"1\",\"b\":\"2\"}," A_B "}", "-b",
      "{\"__metadata__\":{\"a\":\"1\"}," A_B "}" },
    { "{\"__metadata__\":{\"a\":\"1\", \"b\" : \"2\" , \"c\":\"3\"}," A_B "}", "-b",
      "{\"__metadata__\":{\"a\":\"1\" , \"c\":\"3\"}," A_B "}" },
    { "{\"__metadata__\":{\"a\":\"1\",\"b\":\"2\"}," A_B "}", "-a -b",
      "{\"__metadata__\":{}," A_B "}" },
    { "{\"__metadata__\":{\"a\":\"1\",\"b\":\"2\"}," A_B "}", "-a -b +c=3",
      "{\"__metadata__\":{\"c\":\"3\"}," A_B "}" },
    { "{\"__metadata__\":{\"a\":\"1\",\"b\":\"2\",\"c\":\"3\"}," A_B "}", "-a -b",
      "{\"__metadata__\":{\"c\":\"3\"}," A_B "}" },
    { "{\"__metadata__\":{\"a\":\"1\",\"b\":\"2\",\"c\":\"3\"}," A_B "}", "-b -c +d=4",
      "{\"__metadata__\":{\"a\":\"1\",\"d\":\"4\"}," A_B "}" },
    { "{\"__metadata__\":{ }," A_B "}" PAD16, "+k=v",
      "{\"__metadata__\":{\"k\":\"v\" }," A_B "}" },
    { "{\"__metadata__\": null ," A_B "}" PAD16, "+k=v",
      "{\"__metadata__\": {\"k\":\"v\"} ," A_B "}" },
    { "{\"__metadata__\": null ," A_B "}" PAD16, "-k",
      "{\"__metadata__\": null ," A_B "}" PAD16 },
    { "{" A_B "}" PAD16 PAD16, "+k=v",
      "{\"__metadata__\":{\"k\":\"v\"}," A_B "}" },
    { " {\n" A_B " }" PAD16 PAD16, "+k=v",
      " {\"__metadata__\":{\"k\":\"v\"},\n" A_B " }        " },
    { "{\"__metadata__\":{\"k\":\"\\u0041\\/\",\"l\":\"x\"}," A_B "}" PAD16, "+l=y",
      "{\"__metadata__\":{\"k\":\"\\u0041\\/\",\"l\":\"y\"}," A_B "}" PAD16 },
    { "{\"__metadata__\":{\"\\u006b\":\"v\"}," A_B "}" PAD16, "+k=w",
      "{\"__metadata__\":{\"\\u006b\":\"w\"}," A_B "}" PAD16 },
    { "{\"__metadata__\":{\"k\":\"v\"}," A_B "}\t\n" PAD16, "+k=ww",
      "{\"__metadata__\":{\"k\":\"ww\"}," A_B "}\n" PAD16 },
    { "{\"__metadata__\":{\"k\":\"v\"}," A_B "}" PAD16, "+k=a +k=b -k +k=c",
      "{\"__metadata__\":{\"k\":\"c\"}," A_B "}" PAD16 },
    { "{" A_B "}" PAD16, "a>long.name",
      "{" TENSOR("long.name", 0, 4) "," TENSOR("b", 4, 8) "}" },
    { "{" A_B "}", "a>b b>a", "{" TENSOR("b", 0, 4) "," TENSOR("a", 4, 8) "}" },
    { "{" A_B "}", "a>c a>d", "{" TENSOR("d", 0, 4) "," TENSOR("b", 4, 8) "}" },
    { "{\"x\\u0079\" : {\"shape\":[4], \"extra\":[{}], \"dtype\":\"U8\",\"data_offsets\":[0,4]}, "
      TENSOR("b", 4, 8) "}", "xy>z",
      "{\"z\" : {\"shape\":[4], \"extra\":[{}], \"dtype\":\"U8\",\"data_offsets\":[0,4]}, "
      TENSOR("b", 4, 8) "}" },
    { "{" TENSOR("b", 4, 8) ",\"__metadata__\":{\"k\":\"v\"}," TENSOR("a", 0, 4) "}" PAD16,
      "b>bb +k=w a>aa",
      "{" TENSOR("bb", 4, 8) ",\"__metadata__\":{\"k\":\"w\"}," TENSOR("aa", 0, 4)
      "}" },
};

static void say_word(sft_edit *edit, char *word) {
    char *equals = strchr(word, '='), *arrow = strchr(word, '>');
    if (word[0] == '-') {
        drop(edit, word + 1);
    } else if (word[0] == '+') {
        *equals = '\0';
        set(edit, word + 1, equals + 1);
    } else {
        *arrow = '\0';
        assert_int_equal(name(edit, word, arrow + 1), SFT_OK);
    }
}

static void say_words(sft_edit *edit, const char *text) {
    char words[128];
    memcpy(words, text, strlen(text) + 1);
    for (char *word = words, *next; word; word = next) {
        next = strchr(word, ' ');
        if (next) *next++ = '\0';
        say_word(edit, word);
    }
}

static void test_text(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof text_cases / sizeof *text_cases; i++) {
        const text_case *row = &text_cases[i];
        put_file(row->before, 8);
        sft_edit *edit = open_edit(NULL);
        say_words(edit, row->words);
        sft_edit_report report = apply(edit);
        bool same = strcmp(row->before, row->after) == 0;
        assert_int_equal(report.method, same ? SFT_EDIT_NONE : SFT_EDIT_PLACE);
        expect_header(row->after, 8);
        assert_int_equal(temp_dir_count(), 1);
    }
}

static void test_spelling(void **state) {
    static const char odd[] = "\"\\/\b\f\n\r\t\x01\x1f\x7f\xc3\xa9\xe2\x80\xa8";
    (void)state;
    put_file("{" A_B "}" PAD16 PAD16 PAD16 PAD16 PAD16, 8);
    sft_edit *edit = open_edit(NULL);
    set(edit, odd, "");
    assert_int_equal(sft_edit_set(edit, (sft_span){ "n\0l", 3 }, (sft_span){ NULL, 0 }, NULL),
                     SFT_OK);
    assert_int_equal(apply(edit).method, SFT_EDIT_PLACE);
    read_back();
    static const char wanted[] =
        "{\"__metadata__\":{\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f"
        "\x7f\xc3\xa9\xe2\x80\xa8\":\"\","
        "\"n\\u0000l\":\"\"}," A_B "}";
    assert_memory_equal(found + 8, wanted, sizeof wanted - 1);
}

static void test_empty_model(void **state) {
    (void)state;
    put_file("{}" PAD16 PAD16, 0);
    sft_edit *edit = open_edit(NULL);
    set(edit, "k", "v");
    sft_edit_report report = apply(edit);
    assert_int_equal(report.spare, 8);
    expect_header("{\"__metadata__\":{\"k\":\"v\"}}         ", 0);
}

/* ── Refusals ── */

static void test_refused(void **state) {
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    put_file("{" A_B "}" PAD16, 8);
    sft_edit *edit = open_edit(NULL);
    assert_int_equal(name(edit, "c", "d"), SFT_TENSOR_NOT_FOUND);
    assert_int_equal(name(edit, "a", "__metadata__"), SFT_NAME_RESERVED);
    assert_int_equal(name(edit, "a", "\xff"), SFT_HEADER_UTF8);
    assert_int_equal(sft_edit_set(edit, sft_span_cstr("\xff"), sft_span_cstr(""), &err),
                     SFT_HEADER_UTF8);
    assert_int_equal(sft_edit_set(edit, sft_span_cstr("k"), sft_span_cstr("\xc3"), &err),
                     SFT_HEADER_UTF8);
    assert_int_equal(sft_edit_set(edit, (sft_span){ NULL, 3 }, sft_span_cstr(""), &err),
                     SFT_BAD_ARGUMENT);
    assert_int_equal(name(edit, "a", "b"), SFT_OK);
    assert_int_equal(sft_edit_apply(edit, NULL, NULL, &err), SFT_TENSOR_DUPLICATE);
    assert_string_equal(err.tensor, "b");
    assert_int_equal(name(edit, "b", "b"), SFT_OK);
    assert_int_equal(sft_edit_apply(edit, NULL, NULL, &err), SFT_TENSOR_DUPLICATE);
    assert_int_equal(name(edit, "b", "c"), SFT_OK);
    assert_int_equal(sft_edit_apply(edit, NULL, NULL, &err), SFT_OK);
    assert_int_equal(sft_edit_apply(edit, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    sft_edit_close(edit);
    expect_header("{" TENSOR("b", 0, 4) "," TENSOR("c", 4, 8) "}" PAD16, 8);
    assert_int_equal(sft_edit_open(NULL, NULL, &edit, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_edit_open(temp_path("none"), NULL, &edit, &err), SFT_NOT_FOUND);
    assert_int_equal(sft_edit_open(temp_dir, NULL, &edit, &err), SFT_IO_NOT_FILE);
    assert_null(edit);
    temp_write("page", "<!DOCTYPE html><html>", 21);
    assert_int_equal(sft_edit_open(temp_path("page"), NULL, &edit, &err), SFT_FOUND_HTML);
}

/* What the level or a limit would refuse to read is not written. */
static void test_limits(void **state) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    sft_open_options open = SFT_OPEN_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    put_file("{" A_B "}" PAD16, 8);
    options.open = &open;
    open.level = SFT_LEVEL_STRICT;
    sft_edit *edit = open_edit(&options);
    assert_int_equal(name(edit, "a", "a\x07"), SFT_OK);
    assert_int_equal(sft_edit_apply(edit, NULL, NULL, &err), SFT_STRICT_NAME);
    sft_edit_close(edit);
    open.level = SFT_LEVEL_DEFAULT;
    open.max_header_bytes = 200;
    edit = open_edit(&options);
    set(edit, "a key", "a value that does not fit");
    assert_int_equal(sft_edit_apply(edit, NULL, NULL, &err), SFT_HEADER_TOO_LARGE);
    sft_edit_close(edit);
    expect_header("{" A_B "}" PAD16, 8);
}

static void test_names_of_file(void **state) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    put_file("{" A_B "}" PAD16 PAD16, 8);
    assert_int_equal(link(temp_path(FILE_NAME), temp_path("other")), 0);
    sft_edit *edit = open_edit(NULL);
    set(edit, "k", "v");
    assert_int_equal(sft_edit_plan(edit, &(sft_edit_report){ 0 }, &err), SFT_HARD_LINKS);
    assert_int_equal(sft_edit_apply(edit, NULL, NULL, &err), SFT_HARD_LINKS);
    sft_edit_close(edit);
    options.force = true;
    edit = open_edit(&options);
    set(edit, "k", "v");
    assert_int_equal(apply(edit).method, SFT_EDIT_PLACE);
    char other[1024];
    read_back();
    assert_int_equal(temp_read("other", other, sizeof other), found_len);
    assert_memory_equal(other, found, (size_t)found_len);
}

static void test_links(void **state) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_edit *edit;
    struct stat st;
    (void)state;
    put_file("{" A_B "}" PAD16 PAD16, 8);
    assert_int_equal(rename(temp_path(FILE_NAME), temp_path("real")), 0);
    assert_int_equal(symlink("real", temp_path(FILE_NAME)), 0);
    options.link = SFT_LINK_REFUSE;
    assert_int_equal(sft_edit_open(temp_path(FILE_NAME), &options, &edit, &err), SFT_IS_LINK);
    assert_non_null(strstr(err.message, "real"));
    options.link = SFT_LINK_FOLLOW;
    edit = open_edit(&options);
    set(edit, "k", "v");
    assert_int_equal(apply(edit).method, SFT_EDIT_PLACE);
    assert_int_equal(lstat(temp_path(FILE_NAME), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    options.link = SFT_LINK_REPLACE;
    edit = open_edit(&options);
    set(edit, "k", "w");
    sft_edit_method method = apply(edit).method;
    assert_true(method == SFT_EDIT_COPY || method == SFT_EDIT_REFLINK);
    assert_int_equal(lstat(temp_path(FILE_NAME), &st), 0);
    assert_true(S_ISREG(st.st_mode));
    expect_header("{\"__metadata__\":{\"k\":\"w\"}," A_B "}", 8);
    assert_int_equal(rename(temp_path("real"), temp_path(FILE_NAME)), 0);
    expect_header("{\"__metadata__\":{\"k\":\"v\"}," A_B "}", 8);
}

static void test_cache_link(void **state) {
    static const char blob[] = "0123456789abcdef0123456789abcdef01234567";
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_edit *edit;
    char path[600];
    (void)state;
    assert_int_equal(mkdir(temp_path("blobs"), 0755), 0);
    (void)snprintf(path, sizeof path, "%s/%s", temp_path("blobs"), blob);
    put_file("{}", 0);
    assert_int_equal(rename(temp_path(FILE_NAME), path), 0);
    assert_int_equal(symlink(path, temp_path(FILE_NAME)), 0);
    options.link = SFT_LINK_REFUSE;
    assert_int_equal(sft_edit_open(temp_path(FILE_NAME), &options, &edit, &err), SFT_IS_LINK);
    assert_int_equal(err.hint, SFT_HINT_HUB_CACHE);
    assert_int_equal(unlink(path), 0);
}

/* ── Ways to the disk ── */

#define BIG "{\"a\":{\"dtype\":\"U8\",\"shape\":[100000],\"data_offsets\":[0,100000]}}" \
    PAD16 PAD16 PAD16 PAD16 PAD16

#define LONG_KEY "a key for which there is no room in the padding of the header"

/* Method by method: what comes out is the same. */
static void expect_grown(uint64_t spare) {
    sft_file *file = NULL;
    sft_span value;
    unsigned char byte;
    assert_int_equal(sft_open(temp_path(FILE_NAME), NULL, &file, NULL), SFT_OK);
    assert_true(sft_file_metadata_get_cstr(file, LONG_KEY, &value));
    assert_int_equal(value.len, 1);
    assert_int_equal(sft_file_data_offset(file) % 4096, 8 + sizeof BIG - 1);
    sft_span header = sft_file_header(file);
    for (uint64_t i = 0; i < spare; i++) assert_int_equal(header.data[header.len - 1 - i], ' ');
    for (uint64_t i = 0; i < 100000; i += 997) {
        assert_int_equal(sft_read_bytes(file, sft_file_data_offset(file) + i, &byte, 1, NULL),
                         SFT_OK);
        assert_int_equal(byte, (unsigned char)(i * 7 + 3));
    }
    sft_close(file);
}

static sft_edit_method grow(sft_edit_options *options) {
    struct stat st;
    put_file(BIG, 100000);
    assert_int_equal(chmod(temp_path(FILE_NAME), 0640), 0);
    sft_edit *edit = open_edit(options);
    set(edit, LONG_KEY, "v");
    set(edit, "another", LONG_KEY);
    sft_edit_report report = apply(edit);
    assert_true(report.spare >= 4096);
    assert_int_equal((report.header_after - report.header_before) % 4096, 0);
    expect_grown(report.spare);
    assert_int_equal(temp_mode(FILE_NAME), 0640);
    assert_int_equal(stat(temp_path(FILE_NAME), &st), 0);
    assert_int_equal(st.st_size, report.file_after);
    assert_int_equal(temp_dir_count(), 1);
    return report.method;
}

static void test_grow(void **state) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    (void)state;
    sft_edit_method method = grow(NULL);
    assert_true(method == SFT_EDIT_COPY || method == SFT_EDIT_REFLINK);
    options.spare = 100000;
    (void)grow(&options);
    options.safe = true;
    options.min_insert_bytes = 1;
    method = grow(&options);
    assert_true(method == SFT_EDIT_COPY || method == SFT_EDIT_REFLINK);
    options.safe = false;
    options.no_sync = true;
    method = grow(&options);
    if (method == SFT_EDIT_INSERT) print_message("this file system takes blocks in\n");
}

static void test_method_names(void **state) {
    static const char *const names[] = { "none", "in place", "reflink", "insert", "copy" };
    (void)state;
    for (int method = SFT_EDIT_NONE; method <= SFT_EDIT_COPY; method++)
        assert_string_equal(sft_edit_method_name((sft_edit_method)method), names[method]);
    assert_string_equal(sft_edit_method_name((sft_edit_method)-1), "unknown");
    assert_string_equal(sft_edit_method_name((sft_edit_method)5), "unknown");
}

/* The file of an edit stays as it was opened, whatever is requested. */
static void test_file_before(void **state) {
    sft_span value;
    (void)state;
    put_file("{\"__metadata__\":{\"k\":\"old\"}," A_B "}", 8);
    sft_edit *edit = open_edit(NULL);
    set(edit, "k", "new");
    const sft_file *before = sft_edit_file(edit);
    assert_int_equal(sft_file_tensor_count(before), 2);
    assert_true(sft_file_metadata_get(before, sft_span_cstr("k"), &value));
    assert_true(sft_span_equal(value, sft_span_cstr("old")));
    sft_edit_close(edit);
}

/* Somebody has it open: blocks do not come in. */
static void test_grow_open(void **state) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    (void)state;
    put_file(BIG, 100000);
    int fd = open(temp_path(FILE_NAME), O_RDONLY);
    assert_true(fd >= 0);
    options.min_insert_bytes = 1;
    sft_edit *edit = open_edit(&options);
    sft_edit_report report;
    set(edit, LONG_KEY, "v");
    set(edit, "another", LONG_KEY);
    assert_int_equal(sft_edit_apply(edit, NULL, &report, NULL), SFT_OK);
    sft_edit_close(edit);
    assert_int_not_equal(report.method, SFT_EDIT_INSERT);
    expect_grown(4096);
    char byte;
    /* who has it open sees the old one */
    assert_int_equal(pread(fd, &byte, 1, 8 + sizeof BIG - 1), 1);
    assert_int_equal(byte, 3);
    close(fd);
}

static void test_safe_in_place(void **state) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    struct stat before, after;
    (void)state;
    put_file("{" A_B "}" PAD16 PAD16, 8);
    assert_int_equal(stat(temp_path(FILE_NAME), &before), 0);
    options.safe = true;
    sft_edit *edit = open_edit(&options);
    set(edit, "k", "v");
    assert_int_not_equal(apply(edit).method, SFT_EDIT_PLACE);
    assert_int_equal(stat(temp_path(FILE_NAME), &after), 0);
    assert_int_not_equal(before.st_ino, after.st_ino);
    expect_header("{\"__metadata__\":{\"k\":\"v\"}," A_B "}", 8);
}

static void test_mtime(void **state) {
    static const struct timespec times[2] = { { 0, UTIME_OMIT }, { 1000000007, 123456700 } };
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    struct stat st;
    (void)state;
    options.keep_mtime = true;
    for (int safe = 0; safe < 2; safe++) {
        put_file("{" A_B "}" PAD16 PAD16, 8);
        assert_int_equal(utimensat(AT_FDCWD, temp_path(FILE_NAME), times, 0), 0);
        options.safe = safe != 0;
        sft_edit *edit = open_edit(&options);
        set(edit, "k", "v");
        (void)apply(edit);
        assert_int_equal(stat(temp_path(FILE_NAME), &st), 0);
        assert_int_equal(st.st_mtim.tv_sec, 1000000007);
        assert_int_equal(st.st_mtim.tv_nsec, 123456700);
    }
}

static void test_save(void **state) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    sft_edit_report report;
    sft_error err = SFT_ERROR_INIT;
    char copy[1024];
    (void)state;
    put_file("{" A_B "}" PAD16 PAD16, 8);
    sft_edit *edit = open_edit(NULL);
    set(edit, "k", "v");
    assert_int_equal(sft_edit_save(edit, temp_path("out"), NULL, NULL, &report, &err), SFT_OK);
    assert_true(report.method == SFT_EDIT_COPY || report.method == SFT_EDIT_REFLINK);
    options.no_clobber = true;
    assert_int_equal(sft_edit_save(edit, temp_path("out"), &options, NULL, NULL, &err),
                     SFT_EXISTS);
    sft_edit_close(edit);
    expect_header("{" A_B "}" PAD16 PAD16, 8);
    assert_int_equal(temp_read("out", copy, sizeof copy), found_len);
    static const char after[] = "{\"__metadata__\":{\"k\":\"v\"}," A_B "}       ";
    assert_int_equal(found_len, 8 + sizeof after - 1 + 8);
    assert_memory_equal(copy + 8, after, sizeof after - 1);
    assert_memory_equal(copy + found_len - 8, found + found_len - 8, 8);
}

static bool stop_at_once(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx, (void)done, (void)total;
    return false;
}

static void test_cancelled(void **state) {
    sft_job job = SFT_JOB_INIT;
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    (void)state;
    put_file("{" A_B "}" PAD16 PAD16, 8);
    options.safe = true;
    job.tick = stop_at_once;
    sft_edit *edit = open_edit(&options);
    set(edit, "k", "v");
    sft_code code = sft_edit_apply(edit, &job, NULL, NULL);
    assert_int_equal(code, SFT_CANCELLED);
    sft_edit_close(edit);
    expect_header("{" A_B "}" PAD16 PAD16, 8);
    assert_int_equal(temp_dir_count(), 1);
}

/* ── Others at work ── */

static void test_changed_since(void **state) {
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    for (int way = 0; way < 3; way++) {
        put_file("{" A_B "}" PAD16, 8);
        sft_edit *edit = open_edit(NULL);
        set(edit, "k", way == 2 ? LONG_KEY : "v");
        if (way != 1) {
            assert_int_equal(rename(temp_path(FILE_NAME), temp_path("gone")), 0);
        }
        put_file("{" A_B "}" PAD16 PAD16 PAD16, 8);
        assert_int_equal(sft_edit_apply(edit, NULL, NULL, &err), SFT_EDIT_BUSY);
        sft_edit_close(edit);
        expect_header("{" A_B "}" PAD16 PAD16 PAD16, 8);
    }
}

/* A copy over a file is no more open than either. */
static void test_saved_mode(void **state) {
    static const struct mode_row { mode_t from, to; int made; } rows[] = {
        { 0600, 0644, 0600 }, { 0644, 0600, 0600 }, { 0644, 0666, 0644 }, { 0640, 0604, 0600 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put_file("{" A_B "}", 8);
        temp_write("out", "", 0);
        assert_int_equal(chmod(temp_path(FILE_NAME), rows[i].from), 0);
        assert_int_equal(chmod(temp_path("out"), rows[i].to), 0);
        sft_edit *edit = open_edit(NULL);
        assert_int_equal(sft_edit_save(edit, temp_path("out"), NULL, NULL, NULL, NULL), SFT_OK);
        sft_edit_close(edit);
        assert_int_equal(temp_mode("out"), rows[i].made);
        assert_int_equal(unlink(temp_path("out")), 0);
    }
}

static void test_locked(void **state) {
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    put_file("{" A_B "}" PAD16 PAD16, 8);
    int fd = open(temp_path(FILE_NAME), O_RDONLY);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    sft_edit *edit = open_edit(NULL);
    set(edit, "k", "v");
    assert_int_equal(sft_edit_apply(edit, NULL, NULL, &err), SFT_EDIT_BUSY);
    sft_edit_close(edit);
    close(fd);
    expect_header("{" A_B "}" PAD16 PAD16, 8);
    assert_int_equal(temp_dir_count(), 1);
}

/* ── Interrupted edits ── */

/* The journal of a change from one header to another. */
static void put_journal(const char *old, const char *new, uint64_t size, uint64_t inode_more) {
    test_journal journal = { .old = old, .new = new, .size = size, .inode_more = inode_more };
    (void)make_journal(&journal, FILE_NAME, JOURNAL);
}

#define OLD "{" TENSOR("aaaa", 0, 4) "}"
#define NEW "{" TENSOR("zzzz", 0, 4) "}"
#define MIX "{" TENSOR("aazz", 0, 4) "}"
#define ALIEN "{" TENSOR("aazy", 0, 4) "}"
#define SIZE (8 + sizeof OLD - 1 + 4)

static void expect_verdict(sft_code wanted) {
    sft_file *file = NULL;
    sft_scan *scan = NULL;
    sft_error err = SFT_ERROR_INIT;
    assert_int_equal(sft_open(temp_path(FILE_NAME), NULL, &file, &err), wanted);
    sft_close(file);
    if (wanted != SFT_OK) assert_int_equal(err.hint, SFT_HINT_RECOVER);
    assert_int_equal(sft_edit_check(temp_path(FILE_NAME), NULL, &err), wanted);
    assert_int_equal(sft_scan_open(temp_path(FILE_NAME), NULL, &scan, &err), SFT_OK);
    const sft_error *verdict = sft_scan_error(scan);
    assert_int_equal(verdict ? verdict->code : SFT_OK, wanted);
    sft_scan_close(scan);
}

static sft_edit_found recover(void) {
    sft_edit_found state;
    sft_error err = SFT_ERROR_INIT;
    sft_code code = sft_edit_recover(temp_path(FILE_NAME), NULL, &state, &err);
    if (code != SFT_OK) print_error("%s\n", err.message);
    assert_int_equal(code, SFT_OK);
    assert_int_equal(temp_dir_count(), 1);
    return state;
}

static void test_recover(void **state) {
    static const struct {
        const char *found, *after;
        sft_code open;
        sft_edit_found state;
    } rows[] = {
        { OLD, OLD, SFT_OK, SFT_EDIT_OLD },
        { NEW, NEW, SFT_OK, SFT_EDIT_NEW },
        { MIX, NEW, SFT_EDIT_INTERRUPTED, SFT_EDIT_NEW },
    };
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        put_file(rows[i].found, 4);
        put_journal(OLD, NEW, SIZE, 0);
        expect_verdict(rows[i].open);
        assert_int_equal(recover(), rows[i].state);
        expect_header(rows[i].after, 4);
        expect_verdict(SFT_OK);
    }
    assert_int_equal(recover(), SFT_EDIT_CLEAN);
    put_file(MIX, 4);
    put_journal(OLD, NEW, SIZE, 0);
    sft_edit *edit = open_edit(NULL); /* recovers first */
    assert_int_equal(apply(edit).method, SFT_EDIT_NONE);
    expect_header(NEW, 4);
    assert_int_equal(temp_dir_count(), 1);
}

static void test_not_recovered(void **state) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_edit *edit;
    char byte = 'x';
    (void)state;
    put_file(ALIEN, 4);
    put_journal(OLD, NEW, SIZE, 0);
    expect_verdict(SFT_EDIT_INTERRUPTED);
    assert_int_equal(sft_edit_recover(temp_path(FILE_NAME), NULL, NULL, &err),
                     SFT_EDIT_INTERRUPTED);
    assert_int_equal(sft_edit_open(temp_path(FILE_NAME), NULL, &edit, &err),
                     SFT_EDIT_INTERRUPTED);
    put_file(MIX, 4);
    put_journal(OLD, NEW, SIZE, 1); /* another inode */
    assert_int_equal(sft_edit_recover(temp_path(FILE_NAME), NULL, NULL, &err),
                     SFT_EDIT_INTERRUPTED);
    put_journal(OLD, NEW, SIZE + 1, 0); /* another length */
    assert_int_equal(sft_edit_recover(temp_path(FILE_NAME), NULL, NULL, &err),
                     SFT_EDIT_INTERRUPTED);
    put_journal(OLD, NEW, SIZE, 0);
    int fd = open(temp_path(JOURNAL), O_WRONLY);
    assert_int_equal(pwrite(fd, &byte, 1, 100), 1); /* a wrong checksum */
    close(fd);
    assert_int_equal(sft_edit_recover(temp_path(FILE_NAME), NULL, NULL, &err),
                     SFT_EDIT_INTERRUPTED);
    temp_write(JOURNAL, "", 0);
    assert_int_equal(sft_edit_recover(temp_path(FILE_NAME), NULL, NULL, &err),
                     SFT_EDIT_INTERRUPTED);
    expect_header(MIX, 4);
    assert_int_equal(temp_dir_count(), 2);
    put_journal(OLD, NEW, SIZE, 0);
    options.no_recover = true;
    assert_int_equal(sft_edit_open(temp_path(FILE_NAME), &options, &edit, &err),
                     SFT_EDIT_INTERRUPTED);
    expect_header(MIX, 4);
}

/* Blocks of 16 bytes came in, or did not, or only in the middle. */
static void test_recover_insert(void **state) {
    static const char grown[] = NEW "                ";
    unsigned char bytes[256];
    sft_error err = SFT_ERROR_INIT;
    test_file f = make_file(OLD, NULL, 4);
    (void)state;
    put_file(OLD, 4);
    put_journal(OLD, grown, SIZE, 0);
    assert_int_equal(recover(), SFT_EDIT_OLD);
    for (size_t written = 0; written < sizeof grown + 7; written += 13) {
        test_file g = make_file(grown, NULL, 4);
        memset(bytes, 0, 16);
        memcpy(bytes + 16, f.bytes, f.len);
        memcpy(bytes, g.bytes, written);
        temp_write(FILE_NAME, bytes, f.len + 16);
        put_journal(OLD, grown, SIZE, 0);
        expect_verdict(SFT_EDIT_INTERRUPTED);
        assert_int_equal(recover(), SFT_EDIT_NEW);
        header_size = sizeof grown - 1;
        expect_header(grown, 4);
        free_file(&g);
    }
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, f.bytes, f.len);
    temp_write(FILE_NAME, bytes, f.len + 16);
    put_journal(OLD, grown, SIZE, 0);
    assert_int_equal(sft_edit_recover(temp_path(FILE_NAME), NULL, NULL, &err),
                     SFT_EDIT_INTERRUPTED);
    assert_int_equal(err.hint, SFT_HINT_RECOVER_HOLE);
    assert_non_null(strstr(err.message, "a hole of 16 bytes at byte "));
    assert_int_equal(truncate(temp_path(FILE_NAME), (off_t)f.len), 0);
    assert_int_equal(recover(), SFT_EDIT_OLD);
    header_size = sizeof OLD - 1;
    expect_header(OLD, 4);
    free_file(&f);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, temp_dir_make, temp_dir_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_DIR(test_text),        IN_DIR(test_spelling),      IN_DIR(test_empty_model),
        IN_DIR(test_refused),     IN_DIR(test_limits),        IN_DIR(test_names_of_file),
        IN_DIR(test_links),       IN_DIR(test_cache_link),    IN_DIR(test_grow),
        IN_DIR(test_grow_open),   IN_DIR(test_safe_in_place), IN_DIR(test_mtime),
        IN_DIR(test_save),        IN_DIR(test_cancelled),     IN_DIR(test_changed_since),
        IN_DIR(test_locked),      IN_DIR(test_saved_mode),    IN_DIR(test_recover),
        IN_DIR(test_not_recovered), IN_DIR(test_file_before),
        cmocka_unit_test(test_method_names),
        IN_DIR(test_recover_insert),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
