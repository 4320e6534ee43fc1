/* Other bytes for tensors of a file that is there: in place and by a new file, alone and with
 * other changes; what is refused; and files whose data were torn. */
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
#include <time.h>

#define FILE_NAME "m.safetensors"
#define JOURNAL ".m.safetensors.sft-journal"
#define HEADER \
    "{\"__metadata__\":{\"k\":\"v\"},\"a\":{\"dtype\":\"U8\",\"shape\":[10],\"data_offsets\":" \
    "[0,10]},\"b\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[10,16]},\"n\":{\"dtype\":" \
    "\"F32\",\"shape\":[0],\"data_offsets\":[16,16]},\"c\":{\"dtype\":\"U8\",\"shape\":[4]," \
    "\"data_offsets\":[16,20]}}"
#define PAD "                "
#define DATA 20

static unsigned char before[4096], found[1 << 16];
static long before_len, found_len;

static void put_file(const char *header) {
    test_file f = make_file(header, NULL, DATA);
    temp_write(FILE_NAME, f.bytes, f.len);
    memcpy(before, f.bytes, f.len);
    before_len = (long)f.len;
    free_file(&f);
}

static unsigned char *data_of(unsigned char *bytes, long len) {
    return bytes + len - DATA;
}

/* The file before, but for `len` bytes of the data. */
static void expect_data(const char *name, size_t at, const void *bytes, size_t len) {
    if (len) memcpy(data_of(before, before_len) + at, bytes, len);
    found_len = temp_read(name, (char *)found, sizeof found);
    assert_int_equal(found_len, before_len);
    assert_memory_equal(found, before, (size_t)found_len);
}

static sft_edit *open_edit(const sft_edit_options *options) {
    sft_edit *edit = NULL;
    sft_error err = SFT_ERROR_INIT;
    if (sft_edit_open(temp_path(FILE_NAME), options, &edit, &err)) print_error("%s\n", err.message);
    assert_non_null(edit);
    return edit;
}

static sft_code put(sft_edit *edit, const char *name, const char *text) {
    sft_source source = sft_source_memory(text, strlen(text));
    return sft_edit_put(edit, sft_span_cstr(name), &source, NULL);
}

static sft_edit_method apply(sft_edit *edit) {
    sft_edit_report report, plan;
    sft_error err = SFT_ERROR_INIT;
    assert_int_equal(sft_edit_plan(edit, &plan, &err), SFT_OK);
    sft_code code = sft_edit_apply(edit, NULL, &report, &err);
    if (code != SFT_OK) print_error("%s\n", err.message);
    assert_int_equal(code, SFT_OK);
    assert_int_equal(report.method, plan.method);
    assert_int_equal(report.file_after, plan.file_after);
    sft_edit_close(edit);
    return report.method;
}

static ino_t inode(void) {
    struct stat st;
    assert_int_equal(stat(temp_path(FILE_NAME), &st), 0);
    return st.st_ino;
}

static bool is_new_file(sft_edit_method method) {
    return method == SFT_EDIT_COPY || method == SFT_EDIT_REFLINK;
}

/* ── Ways to the disk ── */

static void test_in_place(void **state) {
    (void)state;
    put_file(HEADER);
    ino_t was = inode();
    sft_edit *edit = open_edit(NULL);
    assert_int_equal(put(edit, "b", "BBBBBB"), SFT_OK);
    assert_int_equal(apply(edit), SFT_EDIT_PLACE);
    expect_data(FILE_NAME, 10, "BBBBBB", 6);
    edit = open_edit(NULL);
    assert_int_equal(put(edit, "c", "old!"), SFT_OK);
    assert_int_equal(put(edit, "a", "0123456789"), SFT_OK);
    assert_int_equal(put(edit, "c", "CCCC"), SFT_OK); /* goes before the first */
    assert_int_equal(apply(edit), SFT_EDIT_PLACE);
    expect_data(FILE_NAME, 0, "0123456789BBBBBBCCCC", 20);
    assert_int_equal(inode(), was);
    assert_int_equal(temp_dir_count(), 1);
}

static void test_new_file(void **state) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    (void)state;
    for (int way = 0; way < 2; way++) {
        put_file(HEADER);
        assert_int_equal(chmod(temp_path(FILE_NAME), 0640), 0);
        options.safe = way == 0;
        options.max_place_bytes = way == 1 ? 5 : 0;
        ino_t was = inode();
        sft_edit *edit = open_edit(&options);
        assert_int_equal(put(edit, "b", "BBBBBB"), SFT_OK);
        assert_true(is_new_file(apply(edit)));
        expect_data(FILE_NAME, 10, "BBBBBB", 6);
        assert_int_not_equal(inode(), was);
        assert_int_equal(temp_mode(FILE_NAME), 0640);
        assert_int_equal(temp_dir_count(), 1);
    }
    options.max_place_bytes = 6;
    sft_edit *edit = open_edit(&options);
    assert_int_equal(put(edit, "b", "bbbbbb"), SFT_OK);
    assert_int_equal(apply(edit), SFT_EDIT_PLACE);
}

static const unsigned char *after_header(const char *key, const char *tensor, size_t *n) {
    sft_file *file = NULL;
    sft_span value;
    assert_int_equal(sft_open(temp_path(FILE_NAME), NULL, &file, NULL), SFT_OK);
    assert_true(sft_file_metadata_get_cstr(file, key, &value));
    assert_non_null(sft_file_find_cstr(file, tensor));
    *n = (size_t)sft_file_data_offset(file);
    sft_close(file);
    found_len = temp_read(FILE_NAME, (char *)found, sizeof found);
    assert_int_equal((size_t)found_len, *n + DATA);
    return found + *n;
}

/* Together with metadata and names, which may make the header grow: all at once. */
static void test_together(void **state) {
    static const char text[] = "a value for which there is no room in the padding of this header";
    (void)state;
    for (int grows = 0; grows < 2; grows++) {
        size_t n;
        sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
        options.min_insert_bytes = 1;
        put_file(HEADER PAD);
        sft_edit *edit = open_edit(&options);
        assert_int_equal(put(edit, "b", "BBBBBB"), SFT_OK);
        assert_int_equal(sft_edit_rename(edit, sft_span_cstr("b"), sft_span_cstr("a"), NULL), 0);
        assert_int_equal(sft_edit_rename(edit, sft_span_cstr("a"), sft_span_cstr("b"), NULL), 0);
        sft_span value = grows ? sft_span_cstr(text) : sft_span_cstr("w");
        assert_int_equal(sft_edit_set(edit, sft_span_cstr("k"), value, NULL), 0);
        assert_int_equal(put(edit, "a", "0123456789"), SFT_OK); /* by the name it has now */
        sft_edit_method method = apply(edit);
        assert_true(grows ? is_new_file(method) : method == SFT_EDIT_PLACE);
        const unsigned char *data = after_header("k", "a", &n);
        assert_memory_equal(data, "0123456789BBBBBB", 16);
        assert_memory_equal(data + 16, data_of(before, before_len) + 16, 4);
        assert_int_equal(temp_dir_count(), 1);
    }
}

/* Digests of the data go with it, unless the edit sets them; an edit of nothing keeps them. */
static void test_digests(void **state) {
    (void)state;
    put_file("{\"__metadata__\":{\"sshs_model_hash\":\"1\",\"k\":\"v\",\"sshs_legacy_hash\":\"2\","
             "\"modelspec.hash_sha256\":\"3\"},\"a\":{\"dtype\":\"U8\",\"shape\":[20],"
             "\"data_offsets\":[0,20]}}");
    sft_edit *edit = open_edit(NULL);
    assert_int_equal(apply(edit), SFT_EDIT_NONE);
    edit = open_edit(NULL);
    assert_int_equal(put(edit, "a", "01234567890123456789"), SFT_OK);
    assert_int_equal(sft_edit_set(edit, sft_span_cstr("sshs_model_hash"), sft_span_cstr("new"),
                                  NULL), SFT_OK);
    assert_int_equal(apply(edit), SFT_EDIT_PLACE);
    sft_file *file = NULL;
    assert_int_equal(sft_open(temp_path(FILE_NAME), NULL, &file, NULL), SFT_OK);
    assert_int_equal(sft_file_metadata_count(file), 2);
    assert_true(sft_span_equal(sft_file_metadata_at(file, 0).key,
                               sft_span_cstr("sshs_model_hash")));
    assert_true(sft_span_equal(sft_file_metadata_at(file, 0).value, sft_span_cstr("new")));
    assert_true(sft_span_equal(sft_file_metadata_at(file, 1).key, sft_span_cstr("k")));
    sft_close(file);
}

static void test_save(void **state) {
    sft_edit_report report;
    (void)state;
    put_file(HEADER);
    sft_edit *edit = open_edit(NULL);
    assert_int_equal(put(edit, "b", "BBBBBB"), SFT_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(sft_edit_save(edit, temp_path("out"), NULL, NULL, &report, NULL), SFT_OK);
    sft_edit_close(edit);
    assert_true(is_new_file(report.method));
    expect_data(FILE_NAME, 0, NULL, 0);
    expect_data("out", 10, "BBBBBB", 6);
}

static void test_mtime(void **state) {
    static const struct timespec times[2] = { { 0, UTIME_OMIT }, { 1000000007, 123456700 } };
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    struct stat st;
    (void)state;
    options.keep_mtime = true;
    put_file(HEADER);
    assert_int_equal(utimensat(AT_FDCWD, temp_path(FILE_NAME), times, 0), 0);
    sft_edit *edit = open_edit(&options);
    assert_int_equal(put(edit, "b", "BBBBBB"), SFT_OK);
    assert_int_equal(apply(edit), SFT_EDIT_PLACE);
    assert_int_equal(stat(temp_path(FILE_NAME), &st), 0);
    assert_int_equal(st.st_mtim.tv_sec, 1000000007);
    assert_int_equal(st.st_mtim.tv_nsec, 123456700);
}

#define LARGE ((size_t)3 << 20)

/* Larger than any piece of the journal; the middle of a file. */
static void test_large(void **state) {
    char header[256];
    unsigned char *other = malloc(LARGE), *bytes = malloc(3 * LARGE + 1024);
    (void)state;
    assert_true(other && bytes);
    (void)snprintf(header, sizeof header,
                   "{\"a\":{\"dtype\":\"U8\",\"shape\":[%zu],\"data_offsets\":[0,%zu]},\"b\":"
                   "{\"dtype\":\"U8\",\"shape\":[%zu],\"data_offsets\":[%zu,%zu]},\"c\":{\"dtype\":"
                   "\"U8\",\"shape\":[%zu],\"data_offsets\":[%zu,%zu]}}",
                   LARGE, LARGE, LARGE, LARGE, 2 * LARGE, LARGE, 2 * LARGE, 3 * LARGE);
    test_file f = make_file(header, NULL, 3 * LARGE);
    for (size_t i = 0; i < LARGE; i++) other[i] = (unsigned char)(i * 13 + i / 1000);
    sft_source source = sft_source_memory(other, LARGE);
    for (int safe = 0; safe < 2; safe++) {
        sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
        options.safe = safe != 0;
        temp_write(FILE_NAME, f.bytes, f.len);
        sft_edit *edit = open_edit(&options);
        assert_int_equal(sft_edit_put(edit, sft_span_cstr("b"), &source, NULL), SFT_OK);
        sft_edit_method method = apply(edit);
        assert_true(safe ? is_new_file(method) : method == SFT_EDIT_PLACE);
        assert_int_equal(temp_read(FILE_NAME, (char *)bytes, 3 * LARGE + 1024), f.len);
        assert_memory_equal(bytes, f.bytes, f.data + LARGE);
        assert_memory_equal(bytes + f.data + LARGE, other, LARGE);
        assert_memory_equal(bytes + f.data + 2 * LARGE, f.bytes + f.data + 2 * LARGE, LARGE);
    }
    free(other);
    free(bytes);
    free_file(&f);
}

/* ── Sources ── */

static const char many[] = "0123456789abcdef";

/* A pipe of so many bytes for tensor b, which has six. */
static sft_code put_pipe(size_t len, bool safe, sft_error *err) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    test_file f = { (unsigned char *)(uintptr_t)many, len, 0 };
    test_source pipe = make_source(&f);
    sft_source source = source_of(&pipe, SFT_SIZE_UNKNOWN);
    options.safe = safe;
    pipe.forward_only = true;
    sft_edit *edit = open_edit(&options);
    assert_int_equal(sft_edit_put(edit, sft_span_cstr("b"), &source, err), SFT_OK);
    assert_int_equal(sft_edit_plan(edit, &(sft_edit_report){ 0 }, err), SFT_OK);
    assert_int_equal(pipe.reads, 0); /* a plan reads nothing */
    sft_code code = sft_edit_apply(edit, NULL, NULL, err);
    sft_edit_close(edit);
    assert_int_equal(pipe.closed, 0);
    assert_int_equal(temp_dir_count(), 1);
    return code;
}

static void test_pipe(void **state) {
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    for (int safe = 0; safe < 2; safe++) {
        put_file(HEADER);
        assert_int_equal(put_pipe(5, safe, &err), SFT_BUFFER_SIZE);
        assert_non_null(strstr(err.message, "expected 6 bytes for the tensor, found 5"));
        assert_string_equal(err.tensor, "b");
        assert_int_equal(put_pipe(0, safe, &err), SFT_BUFFER_SIZE);
        assert_int_equal(put_pipe(7, safe, &err), SFT_BUFFER_SIZE);
        assert_non_null(strstr(err.message, "found more than 6"));
        expect_data(FILE_NAME, 0, NULL, 0);
        assert_int_equal(put_pipe(6, safe, &err), SFT_OK);
        expect_data(FILE_NAME, 10, many, 6);
    }
}

static void test_refused(void **state) {
    sft_error err = SFT_ERROR_INIT;
    test_file f = { (unsigned char *)(uintptr_t)many, 6, 0 };
    test_source broken = make_source(&f), none = make_source(&f);
    sft_source source = source_of(&broken, 6), unknown = source_of(&none, SFT_SIZE_UNKNOWN);
    sft_source unread = { NULL, NULL, 6, NULL, false };
    (void)state;
    put_file(HEADER);
    sft_edit *edit = open_edit(NULL);
    assert_int_equal(put(edit, "nosuch", "xxxx"), SFT_TENSOR_NOT_FOUND);
    assert_int_equal(put(edit, "b", "short"), SFT_BUFFER_SIZE);
    assert_int_equal(put(edit, "b", "toolong"), SFT_BUFFER_SIZE);
    assert_int_equal(put(edit, "n", "x"), SFT_BUFFER_SIZE);
    assert_int_equal(put(edit, "n", ""), SFT_OK);
    assert_int_equal(sft_edit_put(edit, sft_span_cstr("n"), &unknown, &err), SFT_BUFFER_SIZE);
    assert_int_equal(sft_edit_put(edit, sft_span_cstr("b"), NULL, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_edit_put(edit, sft_span_cstr("b"), &unread, &err), SFT_BAD_ARGUMENT);
    sft_edit_report report;
    assert_int_equal(sft_edit_plan(edit, &report, &err), SFT_OK);
    assert_int_equal(report.method, SFT_EDIT_NONE);
    broken.fail_at = 3;
    assert_int_equal(sft_edit_put(edit, sft_span_cstr("b"), &source, &err), SFT_OK);
    assert_int_equal(sft_edit_apply(edit, NULL, NULL, &err), SFT_IO_READ);
    assert_non_null(strstr(err.message, "the test says so"));
    sft_edit_close(edit);
    expect_data(FILE_NAME, 0, NULL, 0);
    assert_int_equal(temp_dir_count(), 1);
}

typedef struct ticker {
    uint64_t last, total;
    unsigned ticks, stop_at;
} ticker;

static bool tick(void *ctx, uint64_t done, uint64_t total) {
    ticker *t = ctx;
    assert_true(done >= t->last && done <= total);
    assert_true(t->total == 0 || t->total == total);
    t->last = done;
    t->total = total;
    return ++t->ticks != t->stop_at;
}

static void test_job(void **state) {
    (void)state;
    for (int way = 0; way < 4; way++) {
        ticker t = { 0, 0, 0, way & 1 ? 2 : 0 };
        sft_job job = SFT_JOB_INIT;
        sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
        options.safe = way > 1;
        job.tick = tick;
        job.ctx = &t;
        put_file(HEADER);
        sft_edit *edit = open_edit(&options);
        assert_int_equal(put(edit, "b", "BBBBBB"), SFT_OK);
        assert_int_equal(put(edit, "c", "CCCC"), SFT_OK);
        sft_code code = sft_edit_apply(edit, &job, NULL, NULL);
        sft_edit_close(edit);
        assert_int_equal(code, way & 1 ? SFT_CANCELLED : SFT_OK);
        if (!(way & 1)) assert_int_equal(t.last, t.total);
        expect_data(FILE_NAME, 10, "BBBBBBCCCC", way & 1 ? 0 : 10);
        assert_int_equal(temp_dir_count(), 1);
    }
}

/* The file is changed while the bytes come. */
static sft_code read_and_change(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                                sft_error *err) {
    (void)ctx, (void)offset, (void)err;
    int fd = open(temp_path(FILE_NAME), O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
    memset(into, 'B', len);
    *got = len;
    return SFT_OK;
}

static const sft_source_vtable and_change_source_vtable = {
    sizeof(sft_source_vtable), read_and_change, NULL, NULL, NULL
};

static void test_changed_meanwhile(void **state) {
    sft_error err = SFT_ERROR_INIT;
    sft_source source = { NULL, &and_change_source_vtable, 6, NULL, false };
    (void)state;
    put_file(HEADER);
    sft_edit *edit = open_edit(NULL);
    assert_int_equal(sft_edit_put(edit, sft_span_cstr("b"), &source, &err), SFT_OK);
    assert_int_equal(sft_edit_apply(edit, NULL, NULL, &err), SFT_EDIT_BUSY);
    sft_edit_close(edit);
    assert_int_equal(truncate(temp_path(FILE_NAME), before_len), 0);
    expect_data(FILE_NAME, 0, NULL, 0);
    assert_int_equal(temp_dir_count(), 1);
}

/* ── Torn data ── */

static test_journal torn_journal(void) {
    return (test_journal){ .old = HEADER, .new = HEADER, .size = (uint64_t)before_len,
                           .at = (uint64_t)before_len - DATA, .len = 10,
                           .old_bytes = "oooooooooo", .new_bytes = "nnnnnnnnnn" };
}

/* The file with these bytes in tensor a, and its journal. */
static void tear(const char *bytes, uint64_t inode_more) {
    put_file(HEADER);
    memcpy(data_of(before, before_len), bytes, 10);
    temp_write(FILE_NAME, before, (size_t)before_len);
    test_journal journal = torn_journal();
    journal.inode_more = inode_more;
    (void)make_journal(&journal, FILE_NAME, JOURNAL);
}

static void expect_verdict_at(const char *path, sft_code wanted) {
    static const sft_mode modes[] = { SFT_READ, SFT_MAP, SFT_MAP_COW };
    sft_file *file = NULL;
    sft_scan *scan = NULL;
    sft_error err = SFT_ERROR_INIT;
    for (int i = 0; i < 3; i++) {
        sft_open_options options = SFT_OPEN_OPTIONS_INIT;
        options.mode = modes[i];
        assert_int_equal(sft_open(path, &options, &file, &err), wanted);
        if (wanted != SFT_OK)
            assert_true(err.hint == SFT_HINT_RECOVER || err.hint == SFT_HINT_RECOVER_COPY);
        sft_close(file);
    }
    assert_int_equal(sft_edit_check(path, NULL, &err), wanted);
    assert_int_equal(sft_scan_open(path, NULL, &scan, &err), SFT_OK);
    const sft_error *verdict = sft_scan_error(scan);
    assert_int_equal(verdict ? verdict->code : SFT_OK, wanted);
    sft_scan_close(scan);
}

static void test_torn(void **state) {
    static const struct {
        const char *bytes;
        sft_code open, recover;
        sft_edit_found found;
    } rows[] = {
        { "oooooooooo", SFT_OK, SFT_OK, SFT_EDIT_OLD },
        { "nnnnnnnnnn", SFT_OK, SFT_OK, SFT_EDIT_NEW },
        { "nnnnoooooo", SFT_EDIT_INTERRUPTED, SFT_OK, SFT_EDIT_NEW },
        { "onoooooooo", SFT_EDIT_INTERRUPTED, SFT_OK, SFT_EDIT_NEW },
        { "nnnnnnnnnx", SFT_EDIT_INTERRUPTED, SFT_EDIT_INTERRUPTED, SFT_EDIT_CLEAN },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sft_edit_found what = SFT_EDIT_CLEAN;
        tear(rows[i].bytes, 0);
        expect_verdict_at(temp_path(FILE_NAME), rows[i].open);
        sft_code code = sft_edit_recover(temp_path(FILE_NAME), NULL, &what, NULL);
        assert_int_equal(code, rows[i].recover);
        assert_int_equal(what, rows[i].found);
        bool redone = what == SFT_EDIT_NEW;
        expect_data(FILE_NAME, 0, "nnnnnnnnnn", redone ? 10 : 0);
        assert_int_equal(temp_dir_count(), code == SFT_OK ? 1 : 2);
    }
    tear("nnnnoooooo", 0);
    assert_int_equal(apply(open_edit(NULL)), SFT_EDIT_NONE); /* recovers first */
    expect_data(FILE_NAME, 0, "nnnnnnnnnn", 10);
}

/* Who comes by a link is told too. */
static void test_torn_by_link(void **state) {
    (void)state;
    tear("nnnnoooooo", 0);
    assert_int_equal(mkdir(temp_path("d"), 0755), 0);
    assert_int_equal(symlink("../" FILE_NAME, temp_path("d/l")), 0);
    assert_int_equal(symlink("d/l", temp_path("l")), 0);
    expect_verdict_at(temp_path("l"), SFT_EDIT_INTERRUPTED);
    expect_verdict_at(temp_path("d/l"), SFT_EDIT_INTERRUPTED);
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    sft_edit *edit;
    options.link = SFT_LINK_REPLACE; /* the link's own file would be made from the torn one */
    assert_int_equal(sft_edit_open(temp_path("l"), &options, &edit, NULL), SFT_EDIT_INTERRUPTED);
    options.link = SFT_LINK_FOLLOW;
    assert_int_equal(sft_edit_open(temp_path("l"), &options, &edit, NULL), SFT_OK);
    sft_edit_close(edit);
    expect_verdict_at(temp_path("l"), SFT_OK);
    assert_int_equal(unlink(temp_path("d/l")), 0);
    assert_int_equal(rmdir(temp_path("d")), 0);
}

/* A folder copied in the middle of an edit: the journal names another inode. */
static void test_torn_copy(void **state) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_edit_found what;
    sft_edit *edit;
    (void)state;
    tear("oooooooooo", 1);
    expect_verdict_at(temp_path(FILE_NAME), SFT_OK);
    tear("nnnnnnnnnx", 1); /* another model of that name and length */
    expect_verdict_at(temp_path(FILE_NAME), SFT_OK);
    options.force = true;
    assert_int_equal(sft_edit_recover(temp_path(FILE_NAME), &options, &what, &err),
                     SFT_EDIT_INTERRUPTED);
    tear("nnnnoooooo", 1);
    expect_verdict_at(temp_path(FILE_NAME), SFT_EDIT_INTERRUPTED);
    assert_int_equal(sft_edit_recover(temp_path(FILE_NAME), NULL, &what, &err),
                     SFT_EDIT_INTERRUPTED);
    assert_int_equal(err.hint, SFT_HINT_RECOVER_OR_REMOVE);
    assert_int_equal(sft_edit_open(temp_path(FILE_NAME), NULL, &edit, &err),
                     SFT_EDIT_INTERRUPTED);
    expect_data(FILE_NAME, 0, NULL, 0);
    assert_int_equal(sft_edit_recover(temp_path(FILE_NAME), &options, &what, &err), SFT_OK);
    assert_int_equal(what, SFT_EDIT_NEW);
    expect_data(FILE_NAME, 0, "nnnnnnnnnn", 10);
}

/* ── Journals that are none ── */

static void expect_refused(sft_code open) {
    sft_edit *edit;
    expect_verdict_at(temp_path(FILE_NAME), open);
    assert_int_equal(sft_edit_recover(temp_path(FILE_NAME), NULL, NULL, NULL),
                     SFT_EDIT_INTERRUPTED);
    assert_int_equal(sft_edit_open(temp_path(FILE_NAME), NULL, &edit, NULL),
                     SFT_EDIT_INTERRUPTED);
    expect_data(FILE_NAME, 0, NULL, 0);
    assert_int_equal(temp_dir_count(), 2);
}

static void expect_hint(const char *part) {
    sft_error err = SFT_ERROR_INIT;
    assert_int_equal(sft_edit_recover(temp_path(FILE_NAME), NULL, NULL, &err),
                     SFT_EDIT_INTERRUPTED);
    if (!strstr(err.message, part)) print_error("%s\n", err.message);
    assert_non_null(strstr(err.message, part));
    assert_int_equal(err.hint, SFT_HINT_JOURNAL_REMOVE);
}

/* Of this file by its words, and yet unknown: nobody can say that the file is whole. */
static void test_odd_journals(void **state) {
    static char text[1 << 14];
    sft_file *file;
    (void)state;
    for (uint64_t version = 1; version <= 3; version += 2) {
        tear("nnnnoooooo", 0);
        test_journal journal = torn_journal();
        journal.version = version;
        (void)make_journal(&journal, FILE_NAME, JOURNAL);
        expect_hint("another version");
        journal.inode_more = 1;
        (void)make_journal(&journal, FILE_NAME, JOURNAL);
        expect_refused(SFT_OK);
    }
    for (size_t cut = 48; cut < 500; cut += 37) {
        tear("nnnnoooooo", 0);
        long len = temp_read(JOURNAL, text, sizeof text);
        temp_write(JOURNAL, text, cut < (size_t)len ? cut : (size_t)len - 1);
        assert_int_equal(sft_open(temp_path(FILE_NAME), NULL, &file, NULL), SFT_EDIT_INTERRUPTED);
        expect_hint(cut < 88 ? "length" : "another length");
    }
    for (size_t at = 96; at < 400; at += 41) { /* one bit */
        tear("nnnnoooooo", 0);
        long len = temp_read(JOURNAL, text, sizeof text);
        text[at] = (char)(text[at] ^ 4);
        temp_write(JOURNAL, text, (size_t)len);
        assert_int_equal(sft_open(temp_path(FILE_NAME), NULL, &file, NULL), SFT_EDIT_INTERRUPTED);
        expect_hint("checksum");
    }
}

/* Ranges that the file has not, with a right checksum. */
static void test_wrong_ranges(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        tear("nnnnoooooo", 0);
        test_journal journal = torn_journal();
        journal.at = i == 0 ? 8 : i == 1 ? (uint64_t)before_len - 9 : UINT64_MAX - 4;
        (void)make_journal(&journal, FILE_NAME, JOURNAL);
        expect_hint("bytes that the file has not");
        expect_data(FILE_NAME, 0, NULL, 0);
    }
}

/* Something else of that name. A reader of a good file does not mind, and never waits. */
static void test_alien_journals(void **state) {
    (void)state;
    tear("nnnnoooooo", 0);
    temp_write(JOURNAL, "not a journal at all, but long enough to be looked at as one", 60);
    expect_refused(SFT_OK);
    temp_write(JOURNAL, "", 0);
    expect_refused(SFT_OK);
    assert_int_equal(truncate(temp_path(JOURNAL), (off_t)1 << 40), 0); /* a huge one, of holes */
    expect_refused(SFT_OK);
    assert_int_equal(unlink(temp_path(JOURNAL)), 0);
    assert_int_equal(symlink("/dev/zero", temp_path(JOURNAL)), 0);
    expect_refused(SFT_OK);
    assert_int_equal(unlink(temp_path(JOURNAL)), 0);
    assert_int_equal(mkfifo(temp_path(JOURNAL), 0600), 0);
    expect_refused(SFT_OK);
    assert_int_equal(unlink(temp_path(JOURNAL)), 0);
    assert_int_equal(mkdir(temp_path(JOURNAL), 0755), 0);
    expect_refused(SFT_OK);
    assert_int_equal(rmdir(temp_path(JOURNAL)), 0);
}

/* Huge, and by its first words this file's: its length cannot be right. */
static void test_huge_journal(void **state) {
    (void)state;
    tear("nnnnoooooo", 0);
    assert_int_equal(truncate(temp_path(JOURNAL), (off_t)1 << 40), 0);
    expect_hint("another length");
    sft_file *file;
    assert_int_equal(sft_open(temp_path(FILE_NAME), NULL, &file, NULL), SFT_EDIT_INTERRUPTED);
}

/* ── A folder that was listed ── */

static void test_listed(void **state) {
    struct timespec times[2] = { { 0, UTIME_OMIT }, { 1000000007, 0 } };
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    sft_file *file;
    (void)state;
    SFT_OPEN_LISTED(&options, (uint64_t)time(NULL));
    tear("nnnnoooooo", 0);
    assert_int_equal(sft_open(temp_path(FILE_NAME), &options, &file, NULL), SFT_EDIT_INTERRUPTED);
    assert_int_equal(utimensat(AT_FDCWD, temp_path(FILE_NAME), times, 0), 0);
    assert_int_equal(sft_open(temp_path(FILE_NAME), &options, &file, NULL), SFT_OK);
    sft_close(file); /* believed: it was the caller who saw no journal */
    SFT_OPEN_LISTED(&options, 1000000007 + 86400);
    assert_int_equal(sft_open(temp_path(FILE_NAME), &options, &file, NULL), SFT_EDIT_INTERRUPTED);
    SFT_OPEN_LISTED(&options, 1);
    assert_int_equal(sft_open(temp_path(FILE_NAME), &options, &file, NULL), SFT_EDIT_INTERRUPTED);
    before[20] = '\t'; /* a header that is broken is looked into all the same */
    temp_write(FILE_NAME, before, (size_t)before_len);
    assert_int_equal(utimensat(AT_FDCWD, temp_path(FILE_NAME), times, 0), 0);
    SFT_OPEN_LISTED(&options, (uint64_t)time(NULL));
    assert_int_equal(sft_open(temp_path(FILE_NAME), &options, &file, NULL), SFT_EDIT_INTERRUPTED);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, temp_dir_make, temp_dir_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_DIR(test_in_place),     IN_DIR(test_new_file),     IN_DIR(test_together),
        IN_DIR(test_save),         IN_DIR(test_mtime),        IN_DIR(test_large),
        IN_DIR(test_digests),
        IN_DIR(test_pipe),         IN_DIR(test_refused),      IN_DIR(test_job),
        IN_DIR(test_changed_meanwhile), IN_DIR(test_torn),    IN_DIR(test_torn_by_link),
        IN_DIR(test_torn_copy),    IN_DIR(test_odd_journals), IN_DIR(test_wrong_ranges),
        IN_DIR(test_alien_journals), IN_DIR(test_huge_journal), IN_DIR(test_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
