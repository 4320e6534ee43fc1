/* Tables of functions of an older program, which are shorter, and of a newer one. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "safetensors_dataset.h"
#include "safetensors_io.h"
#include "unit/temp_dir.h"

static size_t calls;

static sft_code read_abcd(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                          sft_error *err) {
    (void)ctx, (void)err;
    memcpy(into, &"abcd"[offset], len);
    *got = len;
    return SFT_OK;
}

static void count_close(void *ctx) {
    (void)ctx;
    calls++;
}

static sft_code count_expect(void *ctx, uint64_t total, sft_error *err) {
    (void)ctx, (void)total, (void)err;
    calls++;
    return SFT_OK;
}

static sft_code count_finish(void *ctx, sft_error *err) {
    (void)ctx, (void)err;
    calls++;
    return SFT_OK;
}

static sft_code count_write(void *ctx, uint64_t offset, const void *bytes, size_t len,
                            sft_error *err) {
    (void)ctx, (void)offset, (void)bytes, (void)len, (void)err;
    calls++;
    return SFT_OK;
}

static void count_runs(void *ctx, const sft_run *runs, size_t count) {
    (void)ctx, (void)runs;
    calls += count;
}

/* What a source will be asked for is told to a table that has expect. */
static void expecting_sources(void **state) {
    const sft_run runs[] = { { 0, 1 }, { 2, 2 } };
    sft_source_vtable table = { sizeof table, read_abcd, NULL, count_runs, NULL };
    sft_source source = { NULL, &table, 4, NULL, false };
    (void)state;
    calls = 0;
    sft_source_expect(&source, runs, 2);
    assert_int_equal(calls, 2);
    sft_source_expect(&source, runs, 0);
    table.size = offsetof(sft_source_vtable, expect);
    sft_source_expect(&source, runs, 2);
    table.size = sizeof table;
    table.expect = NULL;
    sft_source_expect(&source, runs, 2);
    source.vtable = NULL;
    sft_source_expect(&source, runs, 2);
    assert_int_equal(calls, 2);
}

static uint32_t some_mode(void *ctx) {
    (void)ctx;
    return 0640;
}

/* A table that has the place for a function, and none in it; and one that ends before it. */
static void empty_places(void **state) {
    sft_source_vtable from = { .size = sizeof from };
    sft_source source = { "wxyz", &from, 4, NULL, false };
    sft_source mapped = { NULL, NULL, 4, "abcd", false };
    sft_sink_vtable to = { .size = sizeof to };
    sft_sink sink = { NULL, &to, true };
    sft_error err = SFT_ERROR_INIT;
    char into[4];
    size_t got = 9;
    (void)state;
    assert_int_equal(sft_source_mode(&source), 0);
    assert_int_equal(sft_source_mode(&mapped), 0);
    from.mode = some_mode;
    assert_int_equal(sft_source_mode(&source), 0640);
    from.size = offsetof(sft_source_vtable, mode);
    assert_int_equal(sft_source_mode(&source), 0);
    from.size = sizeof from;
    assert_int_equal(sft_source_read(&source, 0, into, 4, &got, &err), SFT_BAD_ARGUMENT);
    assert_string_equal(err.message, "expected a source with read, found none");
    assert_int_equal(got, 0);
    assert_int_equal(sft_source_read(&source, 0, into, 0, &got, &err), SFT_OK); /* of nothing */
    assert_int_equal(sft_source_read(&source, 4, into, 4, &got, &err), SFT_OK);
    assert_int_equal(got, 0);
    sft_source_close(&source);
    assert_int_equal(sft_source_read(&mapped, 1, into, 9, &got, &err), SFT_OK);
    assert_int_equal(got, 3);
    assert_memory_equal(into, "bcd", 3);
    mapped.size = SFT_SIZE_UNKNOWN; /* nobody knows where it ends */
    assert_int_equal(sft_source_read(&mapped, 0, into, 4, &got, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_sink_expect(&sink, 1, &err), SFT_OK);
    assert_int_equal(sft_sink_write(&sink, 0, "", 1, &err), SFT_BAD_ARGUMENT);
    assert_string_equal(err.message, "expected a sink with write, found none");
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    assert_int_equal(sft_sink_limit_mode(&sink, 0600, &err), SFT_OK);
    to.size = offsetof(sft_sink_vtable, limit_mode);
    assert_int_equal(sft_sink_limit_mode(&sink, 0600, &err), SFT_OK);
    sink.vtable = NULL;
    assert_int_equal(sft_sink_limit_mode(&sink, 0600, &err), SFT_OK);
    assert_int_equal(sft_sink_expect(&sink, 1, &err), SFT_OK);
    sft_sink_abandon(&sink);
    sink.vtable = &to;
    sft_sink_abandon(&sink);
    sft_sink_abandon(NULL);
}

static bool claim_all(void *ctx, const char *path) {
    (void)ctx, (void)path;
    return true;
}

static sft_code give_source(void *ctx, const char *path, const char *beneath, sft_source *out,
                            sft_error *err) {
    (void)path, (void)beneath, (void)err;
    *out = *(const sft_source *)ctx;
    return SFT_OK;
}

/* Files of a program that open what is no source of known size; it is closed. */
static void files_that_open_none(void **state) {
    sft_source_vtable from = { sizeof from, NULL, count_close, NULL, NULL };
    sft_source source = { NULL, &from, 4, NULL, false };
    sft_files_vtable table = { .size = sizeof table, .claims = claim_all };
    sft_files files = { &source, &table };
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_file *file;
    (void)state;
    options.files = &files;
    calls = 0;
    assert_int_equal(sft_open("a", &options, &file, &err), SFT_BAD_ARGUMENT);
    assert_string_equal(err.message, "expected files with open, found none");
    table.open = give_source;
    assert_int_equal(sft_open("a", &options, &file, &err), SFT_BAD_ARGUMENT);
    assert_string_equal(err.message, "expected files that open a source, found one without read");
    from.read = read_abcd;
    source.size = SFT_SIZE_UNKNOWN;
    assert_int_equal(sft_open("a", &options, &file, &err), SFT_BAD_ARGUMENT);
    assert_string_equal(err.message,
                        "expected files that open a source, found one of unknown size");
    assert_int_equal(calls, 2);
    source.size = 4;
    assert_int_equal(sft_open("a", &options, &file, &err), SFT_HEADER_TOO_SMALL);
    assert_int_equal(calls, 3);
    assert_null(file);
}

/* Of a table that ends before close, close is not called. */
static void shorter_sources(void **state) {
    sft_source_vtable table = { offsetof(sft_source_vtable, close), read_abcd, count_close,
                                NULL, NULL };
    sft_source source = { NULL, &table, 4, NULL, false };
    sft_error err = SFT_ERROR_INIT;
    char into[4];
    size_t got;
    (void)state;
    calls = 0;
    assert_int_equal(sft_source_read(&source, 1, into, 9, &got, &err), SFT_OK);
    assert_int_equal(got, 3);
    assert_memory_equal(into, "bcd", 3);
    sft_source_close(&source);
    assert_int_equal(calls, 0);
    assert_null(source.vtable);
    source = (sft_source){ NULL, &table, 4, NULL, false };
    table.size = offsetof(sft_source_vtable, read);
    assert_int_equal(sft_source_read(&source, 0, into, 1, &got, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(got, 0);
    source.vtable = NULL;
    assert_int_equal(sft_source_read(&source, 0, into, 1, &got, &err), SFT_BAD_ARGUMENT);
    sft_source_close(&source);
    sft_source_close(NULL);
}

static void longer_sources(void **state) {
    struct {
        sft_source_vtable known;
        void (*newer)(void);
    } table = { { sizeof table, read_abcd, count_close, NULL, NULL }, NULL };
    sft_source source = { NULL, &table.known, 4, NULL, false }, copy = source;
    char into[4];
    size_t got;
    (void)state;
    calls = 0;
    assert_int_equal(sft_source_read(&source, 0, into, 4, &got, NULL), SFT_OK);
    copy.borrowed = true;
    sft_source_close(&copy);
    assert_int_equal(calls, 0);
    sft_source_close(&source);
    sft_source_close(&source);
    assert_int_equal(calls, 1);
}

static void shorter_sinks(void **state) {
    sft_sink_vtable table = { sizeof table, count_expect, count_write, count_finish, count_close,
                              NULL, NULL };
    sft_sink sink = { NULL, &table, true };
    (void)state;
    calls = 0;
    table.size = offsetof(sft_sink_vtable, finish);
    assert_int_equal(sft_sink_expect(&sink, 1, NULL), SFT_OK);
    assert_int_equal(sft_sink_write(&sink, 0, "", 1, NULL), SFT_OK);
    assert_int_equal(calls, 2);
    assert_int_equal(sft_sink_finish(&sink, NULL), SFT_OK);
    sft_sink_abandon(&sink);
    assert_int_equal(calls, 2);
    table.size = offsetof(sft_sink_vtable, expect);
    assert_int_equal(sft_sink_expect(&sink, 1, NULL), SFT_OK);
    assert_int_equal(sft_sink_write(&sink, 0, "", 1, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(calls, 2);
    sink.vtable = NULL;
    assert_int_equal(sft_sink_write(&sink, 0, "", 1, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_sink_finish(&sink, NULL), SFT_OK);
    sft_sink_abandon(&sink);
}

/* A storage whose table ends before move_new is one without it, and so on down; one without
 * what every storage has is refused. */
static void shorter_storages(void **state) {
    sft_storage_vtable table;
    sft_storage local, older;
    sft_dataset *dataset;
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    assert_int_equal(sft_storage_local(temp_dir, true, NULL, &local, &err), SFT_OK);
    table = *local.vtable;
    older = (sft_storage){ local.ctx, &table, false };
    table.size = offsetof(sft_storage_vtable, move_new);
    assert_int_equal(sft_dataset_open(&older, NULL, NULL, NULL, &dataset, &err),
                     SFT_MANIFEST_MISSING);
    table.size = offsetof(sft_storage_vtable, remove);
    assert_int_equal(sft_dataset_open(&older, NULL, NULL, NULL, &dataset, &err),
                     SFT_BAD_ARGUMENT);
    assert_int_equal(sft_dataset_open(NULL, NULL, NULL, NULL, &dataset, &err), SFT_BAD_ARGUMENT);
    table.size = offsetof(sft_storage_vtable, close);
    sft_storage_close(&older);
    assert_null(older.vtable);
    sft_storage_close(&local);
    sft_storage_close(&local);
    sft_storage_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shorter_sources),
        cmocka_unit_test(longer_sources),
        cmocka_unit_test(expecting_sources), cmocka_unit_test(empty_places),
        cmocka_unit_test(files_that_open_none),
        cmocka_unit_test(shorter_sinks),
        cmocka_unit_test(shorter_storages),
    };
    return cmocka_run_group_tests(tests, temp_dir_make, temp_dir_remove);
}
