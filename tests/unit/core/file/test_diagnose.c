/* What a file that failed to open is said to be: code, words, hint. */
#define _GNU_SOURCE
#include "file/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/make_file.h"

#include "safetensors_edit.h"
#include "safetensors_set.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Open bytes, and expect failure, which is diagnosed: the same way of a source, and no better by
 * a second diagnosis. */
static sft_error diagnosed(const void *bytes, size_t len, sft_code code) {
    sft_source source = sft_source_memory(bytes, len);
    sft_file *file;
    sft_error err = SFT_ERROR_INIT, other = SFT_ERROR_INIT;
    assert_int_equal(sft_open_memory(bytes, len, NULL, &file, &err), code);
    assert_int_equal(sft_open_memory(bytes, len, NULL, &file, NULL), code);
    assert_int_equal(sft_open_source(source, NULL, &file, &other), code);
    assert_string_equal(other.message, err.message);
    sft_diagnose(&source, &other);
    assert_int_equal(other.code, code);
    assert_string_equal(other.message, err.message);
    return err;
}

#define LFS                                                                                   \
    "version https://git-lfs.github.com/spec/v1\n"                                            \
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize "

#define ROW(bytes, code, words) { bytes, sizeof(bytes) - 1, code, words }

static const struct {
    const char *bytes;
    size_t len;
    sft_code code;
    const char *words; /* in the message */
} foreign[] = {
    ROW(LFS "4219876543\n", SFT_FOUND_GIT_LFS,
        "found text: this is a Git LFS pointer, not the model (4.2 GB elsewhere)"),
    ROW(LFS "12\n", SFT_FOUND_GIT_LFS, "(12 bytes elsewhere)"),
    ROW(LFS "1999\n", SFT_FOUND_GIT_LFS, "(1.9 KB elsewhere)"),
    ROW(LFS "99999999999999999999999\n", SFT_FOUND_GIT_LFS, "not the model"),
    ROW(LFS "18446744073709551619\n", SFT_FOUND_GIT_LFS, "not the model"),
    ROW(LFS "17000000000000000000", SFT_FOUND_GIT_LFS, "(17.0 EB elsewhere)"),
    ROW(LFS, SFT_FOUND_GIT_LFS, "not the model"),
    ROW("version https://git-lfs.github.com/spec/v1\n", SFT_FOUND_GIT_LFS, "not the model"),
    ROW("# xet version 0\nfilesize = 2500000\nhash = 'ab'\n", SFT_FOUND_XET, "(2.5 MB elsewhere)"),
    ROW("<!DOCTYPE html><html><body>Sign in", SFT_FOUND_HTML, "this is an HTML page"),
    ROW(" \r\n\t<HTML lang=\"en\">", SFT_FOUND_HTML, "this is an HTML page"),
    ROW("\xEF\xBB\xBF<!doctype HTML>", SFT_FOUND_HTML, "this is an HTML page"),
    ROW("<head><title>404", SFT_FOUND_HTML, "this is an HTML page"),
    ROW("<body>Not found", SFT_FOUND_HTML, "this is an HTML page"),
    ROW("<!-- saved from --><html>", SFT_FOUND_HTML, "this is an HTML page"),
    ROW("<?xml version=\"1.0\"?>\n<html xmlns=\"x\">", SFT_FOUND_HTML, "this is an HTML page"),
    ROW("PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0archive/data.pkl",
        SFT_FOUND_TORCH, "PyTorch"),
    ROW("PK\3\4\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0a.txt", SFT_FOUND_ZIP,
        "ZIP archive"),
    ROW("PK\3\4\x2d\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\x14\0a.npyextra", SFT_FOUND_NPY,
        "NumPy"),
    ROW("PK\3\4\x2d\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x06\0\0\0a.npyx", SFT_FOUND_ZIP,
        "ZIP archive"),
    ROW("PK\3\4\x2d\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\xff\0\0a.npy", SFT_FOUND_ZIP,
        "ZIP archive"),
    ROW("PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", SFT_FOUND_ZIP, "ZIP archive"),
    ROW("\x80\x02\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19.\x80\x02", SFT_FOUND_TORCH,
        "PyTorch"),
    ROW("\x80\x02}q\x00X\x01\x00\x00\x00", SFT_FOUND_PICKLE, "pickle"),
    ROW("\x80\x05\x95\x10\0\0\0\0\0\0\0}", SFT_FOUND_PICKLE, "pickle"),
    ROW("GGUF\3\0\0\0\0\0\0\0", SFT_FOUND_GGUF, "GGUF"),
    ROW("\x89HDF\r\n\x1A\n\0\0\0", SFT_FOUND_HDF5, "HDF5"),
    ROW("\x1F\x8B\x08\x00\x12\x34\x56\x78\0\3", SFT_FOUND_GZIP, "gzip"),
    ROW("\x1F\x8B\x08\x00\0\0\0\0\0\3", SFT_FOUND_GZIP, "gzip"),
    ROW("\x28\xB5\x2F\xFD\x04\x58\x11\0\0", SFT_FOUND_ZSTD, "zstd"),
    ROW("\x93NUMPY\1\0v\0{'descr'", SFT_FOUND_NPY, "NumPy"),
    ROW("{\"metadata\":{\"total_size\":1},\"weight_map\":{\"a\":\"m-1.safetensors\"}}",
        SFT_FOUND_INDEX, "index of a sharded model"),
};

static void other_formats(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        sft_error err = diagnosed(foreign[i].bytes, foreign[i].len, foreign[i].code);
        if (err.code != foreign[i].code || !strstr(err.message, foreign[i].words))
            fail_msg("row %zu: code %d: %s", i, (int)err.code, err.message);
        assert_int_equal(err.offset, 0);
        assert_int_equal(err.hint, sft_code_describe(err.code)->hint);
        assert_int_equal(strncmp(err.message, "expected a header length, found ", 32), 0);
    }
}

/* All functions that open a file by its path or descriptor say the same. */
static void by_path_and_descriptor(void **state) {
    static const char index[] = "{\"metadata\":{},\"weight_map\":{\"a\":\"b.safetensors\"}}";
    static const char html[] = "<!DOCTYPE html><html><body>Sign in</body></html>";
    const struct { const char *bytes; sft_code code; } rows[] = {
        { LFS "4219876543\n", SFT_FOUND_GIT_LFS }, { html, SFT_FOUND_HTML },
        { index, SFT_FOUND_INDEX },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[] = "/tmp/sft-diagnose-XXXXXX";
        sft_error err[5] = { SFT_ERROR_INIT, SFT_ERROR_INIT, SFT_ERROR_INIT, SFT_ERROR_INIT,
                             SFT_ERROR_INIT };
        sft_file *file;
        sft_edit *edit;
        sft_scan *scan;
        const char *paths[] = { path };
        sft_set *set;
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, rows[i].bytes, strlen(rows[i].bytes)), strlen(rows[i].bytes));
        assert_int_equal(close(fd), 0); /* Windows' mkstemp shares with nobody */
        fd = open(path, O_RDONLY);
        assert_int_equal(sft_open(path, NULL, &file, &err[0]), rows[i].code);
        assert_int_equal(sft_open_fd(fd, NULL, &file, &err[1]), rows[i].code);
        assert_int_equal(sft_edit_open(path, NULL, &edit, &err[2]), rows[i].code);
        assert_int_equal(sft_scan_open(path, NULL, &scan, &err[3]), SFT_OK);
        assert_int_equal(sft_scan_error(scan)->code, rows[i].code);
        err[3] = *sft_scan_error(scan);
        sft_scan_close(scan);
        assert_int_equal(sft_set_open_list(paths, 1, NULL, &set, &err[4]), rows[i].code);
        for (int k = 1; k < 4; k++) assert_string_equal(err[k].message, err[0].message);
        assert_non_null(strstr(err[4].message, err[0].message));
        (void)close(fd);
        (void)unlink(path);
    }
}

static void hdf5_after_a_user_block(void **state) {
    (void)state;
    for (size_t at = 512; at <= 2048; at *= 2) {
        char bytes[4096];
        memset(bytes, 0xAB, sizeof bytes);
        memcpy(bytes + at, "\x89HDF\r\n\x1A\n", 8);
        sft_error err = diagnosed(bytes, sizeof bytes, SFT_FOUND_HDF5);
        assert_int_equal(err.code, SFT_FOUND_HDF5);
    }
}

static void text_and_nothing(void **state) {
    (void)state;
    sft_error err = diagnosed("Entry not found\n", 16, SFT_HEADER_TOO_LARGE);
    assert_string_equal(err.message,
                        "expected a header length, found text: Entry not found\\n");
    err = diagnosed("", 0, SFT_HEADER_TOO_SMALL);
    assert_string_equal(err.message, "expected a header length, found an empty file");
    assert_int_equal(err.hint, SFT_HINT_DOWNLOAD_AGAIN);
    err = diagnosed("abc", 3, SFT_HEADER_TOO_SMALL);
    assert_string_equal(err.message, "expected the 8 bytes of a header length, found 3");
    err = diagnosed("<?xml version=\"1.0\"?>", 21, SFT_HEADER_TOO_LARGE);
    assert_int_equal(err.code, SFT_HEADER_TOO_LARGE);
    assert_non_null(strstr(err.message, "found text: <?xml"));
    err = diagnosed("\x80\x06\x95\x10\0\0\0\0\0\0", 10, SFT_HEADER_TOO_LARGE);
    assert_int_equal(err.code, SFT_HEADER_TOO_LARGE);
    err = diagnosed("\x80\x01\x95\x10\0\0\0\0\0\0", 10, SFT_HEADER_TOO_LARGE);
    assert_int_equal(err.code, SFT_HEADER_TOO_LARGE);
    char zeros[5000] = { 0 };
    err = diagnosed(zeros, sizeof zeros, SFT_JSON_SYNTAX);
    assert_int_equal(err.code, SFT_JSON_SYNTAX);
    assert_non_null(strstr(err.message, "found 3072 zero bytes"));
}

#define T8 "{\"t\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[0,8]}}"

static void cut_downloads(void **state) {
    (void)state;
    test_file f = make_file(T8, NULL, 8);
    size_t n = strlen(T8);
    char words[200];
    for (size_t len = 8; len < f.len; len++) {
        bool header = len < 8 + n;
        sft_error err =
            diagnosed(f.bytes, len, header ? SFT_HEADER_TRUNCATED : SFT_DATA_TRUNCATED);
        size_t whole = header ? 8 + n : 16 + n, missing = whole - len;
        snprintf(words, sizeof words,
                 "expected %s%zu bytes, found %zu: the download is cut short by %s%zu byte%s "
                 "(%zu.%zu %%)",
                 header ? "at least " : "", whole, len, header ? "at least " : "", missing,
                 missing == 1 ? "" : "s", missing * 1000 / whole / 10, missing * 1000 / whole % 10);
        assert_string_equal(err.message, words);
        assert_int_equal(err.code, header ? SFT_HEADER_TRUNCATED : SFT_DATA_TRUNCATED);
    }
    free_file(&f);
}

/* What the file holds shows that its first 8 bytes are wrong: no download was cut short. */
static void wrong_lengths(void **state) {
    (void)state;
    static const struct {
        const char *header; /* of a file that ends with it, and says 255 */
        size_t len;
        const char *message; /* NULL: cut short */
        uint64_t offset;
    } rows[] = {
        { "\0\0\0\0\0\0\0\0", 8,
          "expected a header of 255 bytes that begins with \"{\", found byte 0x00", 8 },
        { " \n[1]", 5,
          "expected a header of 255 bytes that begins with \"{\", found byte 0x5b", 10 },
        { "{}  \0\0", 6,
          "expected a header of 255 bytes, found its end after 2: the header length is wrong", 10 },
        { " {\"}\\\"\":[{}]} x", 15,
          "expected a header of 255 bytes, found its end after 13: the header length is wrong",
          21 },
        { "", 0, NULL, 8 },
        { " ", 1, NULL, 9 },
        { "{\"a}", 4, NULL, 12 },
        { "{\"a\":[]}", 8, NULL, 16 },
        { "{\"a\":[]} \n ", 11, NULL, 19 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char bytes[64] = { '\xff' };
        memcpy(bytes + 8, rows[i].header, rows[i].len);
        sft_error err = diagnosed(bytes, 8 + rows[i].len, SFT_HEADER_TRUNCATED);
        assert_int_equal(err.code, SFT_HEADER_TRUNCATED);
        assert_int_equal(err.hint, SFT_HINT_DOWNLOAD_AGAIN);
        assert_int_equal(err.offset, rows[i].offset);
        if (rows[i].message) assert_string_equal(err.message, rows[i].message);
        else assert_non_null(strstr(err.message, "the download is cut short by at least"));
    }
}

static void little_missing_of_much(void **state) {
    (void)state;
    test_file f = make_file("{\"t\":{\"dtype\":\"U8\",\"shape\":[2000000000000000000],"
                            "\"data_offsets\":[0,2000000000000000000]}}", NULL, 3);
    sft_error err = diagnosed(f.bytes, f.len, SFT_DATA_TRUNCATED);
    assert_non_null(strstr(err.message, "(99.9 %)"));
    free_file(&f);
    f = make_file("{\"t\":{\"dtype\":\"U8\",\"shape\":[9000],\"data_offsets\":[0,9000]}}", NULL,
                  8999);
    err = diagnosed(f.bytes, f.len, SFT_DATA_TRUNCATED);
    assert_non_null(strstr(err.message, "cut short by 1 byte (under 0.1 %)"));
    free_file(&f);
}

static void nul_padding(void **state) {
    (void)state;
    static const size_t lengths[] = { 1, 7, 1024, 1025, 5000 };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t n = strlen(T8) + lengths[i];
        char *bytes = calloc(8 + n + 8, 1);
        bytes[0] = (char)(n & 255);
        bytes[1] = (char)(n >> 8);
        memcpy(bytes + 8, T8, strlen(T8));
        sft_error err = diagnosed(bytes, 8 + n + 8, SFT_JSON_TRAILING);
        char words[100];
        snprintf(words, sizeof words, "found %zu bytes%s of NUL padding", lengths[i],
                 lengths[i] > 1024 ? " that begin with 1024" : "");
        assert_int_equal(err.code, SFT_JSON_TRAILING);
        assert_int_equal(err.offset, 8 + strlen(T8));
        assert_non_null(strstr(err.message, words));
        assert_int_equal(err.hint, SFT_HINT_REPAIR_PADDING);
        free(bytes);
    }
    test_file f = make_file(T8 "x", NULL, 8);
    sft_error err = diagnosed(f.bytes, f.len, SFT_JSON_TRAILING);
    assert_null(strstr(err.message, "NUL"));
    free_file(&f);
}

static void trailing_bytes(void **state) {
    (void)state;
    static const struct {
        size_t extra, first_set;
        const char *words;
    } rows[] = {
        { 1, 9999, "found 1 more byte, all zero" },
        { 1024, 9999, "found 1024 more bytes, all zero" },
        { 1025, 9999, "found 1025 more bytes, the first 1024 of them zero" },
        { 5000, 1024, "found 5000 more bytes, the first 1024 of them zero" },
        { 10, 9, "found 10 more bytes, not all zero" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        test_file f = make_file(T8, NULL, 8 + rows[i].extra);
        memset(f.bytes + f.data + 8, 0, rows[i].extra);
        if (rows[i].first_set < rows[i].extra) f.bytes[f.data + 8 + rows[i].first_set] = 1;
        sft_error err = diagnosed(f.bytes, f.len, SFT_DATA_TRAILING);
        assert_int_equal(err.code, SFT_DATA_TRAILING);
        assert_int_equal(err.offset, f.data + 8);
        assert_non_null(strstr(err.message, rows[i].words));
        free_file(&f);
    }
}

/* The length bytes of a safetensors file may look like any magic: the frame comes first. */
static void framing_is_tried_first(void **state) {
    (void)state;
    static const unsigned lengths[] = { 0x0280, 0x088B1F, 0x9C78 };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char *header = malloc(lengths[i] + 1);
        memset(header, ' ', lengths[i]);
        memcpy(header, "{\"t\":1", 6);
        header[lengths[i] - 1] = '}';
        header[lengths[i]] = '\0';
        test_file f = make_file(header, NULL, 0);
        sft_error err = diagnosed(f.bytes, f.len, SFT_ENTRY_TYPE);
        assert_int_equal(err.code, SFT_ENTRY_TYPE);
        free_file(&f);
        free(header);
    }
}

static void other_errors_are_left_alone(void **state) {
    (void)state;
    sft_source source = sft_source_memory("GGUFGGUFGGUF", 12);
    sft_error err = SFT_ERROR_INIT;
    sft_diagnose(&source, &err);
    assert_int_equal(err.code, SFT_OK);
    sft_error_set(&err, SFT_IO_READ, 5, "broken disk");
    sft_diagnose(&source, &err);
    assert_int_equal(err.code, SFT_IO_READ);
    assert_string_equal(err.message, "broken disk");
    sft_error_set(&err, SFT_HEADER_TOO_LARGE, 0, "x");
    sft_diagnose(NULL, &err);
    sft_diagnose(&source, NULL);
    assert_string_equal(err.message, "x");
    sft_diagnose(&source, &err);
    assert_int_equal(err.code, SFT_FOUND_GGUF);
}

/* The error is the caller's, and may not fit the source. */
static void errors_of_other_sources(void **state) {
    (void)state;
    static const sft_code codes[] = { SFT_HEADER_TRUNCATED, SFT_DATA_TRUNCATED, SFT_DATA_TRAILING,
                                      SFT_JSON_TRAILING, SFT_HEADER_TOO_SMALL };
    test_file f = make_file(T8, NULL, 8);
    test_source s = make_source(&f);
    const sft_source sources[] = {
        source_of(&s, SFT_SIZE_UNKNOWN),
        source_of(&s, f.len),
        sft_source_memory("abc", 3),
        { &s, NULL, f.len, NULL, false },
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        for (size_t k = 0; k < sizeof sources / sizeof *sources; k++) {
            sft_error err = SFT_ERROR_INIT;
            sft_error_set(&err, codes[i], 0, "x");
            err.offset = UINT64_MAX - 1;
            sft_diagnose(&sources[k], &err);
            assert_int_equal(err.code, codes[i]);
            if (k < 2) assert_string_equal(err.message, "x");
        }
    }
    free_file(&f);
}

static sft_code fail_silently(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                              sft_error *err) {
    (void)ctx, (void)offset, (void)into, (void)len, (void)got, (void)err;
    return SFT_HEADER_TOO_SMALL;
}

/* A source of the caller's whose failure leaves no word in the error. */
static void silent_sources(void **state) {
    static const sft_source_vtable vtable = { sizeof vtable, fail_silently, NULL, NULL, NULL };
    (void)state;
    for (int i = 0; i < 2; i++) {
        sft_source source = { NULL, &vtable, 64, NULL, false };
        sft_error err = SFT_ERROR_INIT;
        sft_file *file;
        assert_int_equal(sft_open_source(source, NULL, &file, i ? &err : NULL),
                         SFT_HEADER_TOO_SMALL);
        assert_null(file);
    }
}

static void at_most_4_kib_are_read(void **state) {
    (void)state;
    test_file f = make_file(T8, NULL, 100008);
    test_source s = make_source(&f);
    sft_source source = source_of(&s, f.len);
    sft_file *file;
    sft_error err = SFT_ERROR_INIT;
    assert_int_equal(sft_open_memory(f.bytes, f.len, NULL, &file, &err), SFT_DATA_TRAILING);
    sft_diagnose(&source, &err);
    assert_true(s.read_bytes <= 4096);
    assert_int_equal(s.closed, 0);
    s.fail_at = 3;
    sft_error same = err;
    sft_diagnose(&source, &err);
    assert_memory_equal(&same, &err, sizeof err);
    free_file(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_formats),
        cmocka_unit_test(by_path_and_descriptor),
        cmocka_unit_test(hdf5_after_a_user_block),
        cmocka_unit_test(text_and_nothing),
        cmocka_unit_test(cut_downloads),
        cmocka_unit_test(wrong_lengths),
        cmocka_unit_test(little_missing_of_much),
        cmocka_unit_test(nul_padding),
        cmocka_unit_test(trailing_bytes),
        cmocka_unit_test(framing_is_tried_first),
        cmocka_unit_test(other_errors_are_left_alone),
        cmocka_unit_test(errors_of_other_sources),
        cmocka_unit_test(silent_sources),
        cmocka_unit_test(at_most_4_kib_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
