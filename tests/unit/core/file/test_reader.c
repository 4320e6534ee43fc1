/* Opening by every door, what an open file tells, and every allocation failing once. */
#define _GNU_SOURCE
#include "file/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/make_file.h"
#include "unit/temp_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#define TWO                                                                                  \
    "{\"__metadata__\":{\"k\":\"v\",\"a\":\"b\"},"                                            \
    "\"layer.10\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]},"                 \
    "\"layer.2\":{\"dtype\":\"I16\",\"shape\":[2,1],\"data_offsets\":[0,4]}}"

static void expect_two(const sft_file *file, const test_file *bytes) {
    assert_int_equal(sft_file_tensor_count(file), 2);
    const sft_tensor *first = sft_file_tensor_at(file, 0), *last = sft_file_tensor_at(file, 1);
    assert_memory_equal(first->name.data, "layer.2", 7);
    assert_int_equal(first->dtype, SFT_I16);
    assert_int_equal(first->rank, 2);
    assert_int_equal(first->shape[0], 2);
    assert_int_equal(first->offset, bytes->data);
    assert_int_equal(last->begin, 4);
    assert_int_equal(last->end, 12);
    assert_null(sft_file_tensor_at(file, 2));
    assert_ptr_equal(sft_file_find_cstr(file, "layer.10"), last);
    assert_null(sft_file_find_cstr(file, "layer.1"));
    assert_ptr_equal(sft_file_find(file, (sft_span){ "layer.2", 7 }), first);
    assert_null(sft_file_find(file, (sft_span){ "layer.2", 8 })); /* with its NUL */
    assert_int_equal(sft_file_header_bytes(file), strlen(TWO));
    assert_int_equal(sft_file_data_offset(file), bytes->data);
    assert_int_equal(sft_file_data_bytes(file), 12);
    assert_int_equal(sft_file_header(file).len, strlen(TWO));
    assert_memory_equal(sft_file_header(file).data, TWO, strlen(TWO));
    assert_int_equal(sft_file_level(file), SFT_LEVEL_DEFAULT);
}

static void expect_metadata(const sft_file *file) {
    sft_span value = { NULL, 0 };
    assert_true(sft_file_has_metadata(file));
    assert_int_equal(sft_file_metadata_count(file), 2);
    assert_memory_equal(sft_file_metadata_at(file, 1).key.data, "a", 1);
    assert_null(sft_file_metadata_at(file, 2).key.data);
    assert_true(sft_file_metadata_get_cstr(file, "k", &value));
    assert_int_equal(value.len, 1);
    assert_memory_equal(value.data, "v", 1);
    assert_false(sft_file_metadata_get_cstr(file, "v", &value));
    assert_memory_equal(value.data, "v", 1);
}

static void from_memory(void **state) {
    (void)state;
    test_file f = make_file(TWO, NULL, 12);
    sft_file *file;
    assert_int_equal(sft_open_memory(f.bytes, f.len, NULL, &file, NULL), SFT_OK);
    expect_two(file, &f);
    expect_metadata(file);
    assert_true(sft_file_is_mapped(file));
    assert_true(sft_file_complete(file));
    assert_int_equal(sft_file_size(file), f.len);
    assert_ptr_equal(sft_file_header(file).data, f.bytes + 8);
    sft_close(file);
    free_file(&f);
}

static void every_mode(void **state) {
    (void)state;
    test_file f = make_file(TWO, NULL, 12);
    temp_write("two", f.bytes, f.len);
    for (int mode = SFT_READ; mode <= SFT_AUTO; mode++) {
        sft_open_options o = SFT_OPEN_OPTIONS_INIT;
        o.mode = (sft_mode)mode;
        sft_file *file;
        assert_int_equal(sft_open(temp_path("two"), &o, &file, NULL), SFT_OK);
        expect_two(file, &f);
        assert_int_equal(sft_file_is_mapped(file), mode != SFT_READ);
        assert_int_equal(sft_file_size(file), f.len);
        sft_close(file);
        int fd = open(temp_path("two"), O_RDONLY);
        assert_int_equal(sft_open_fd(fd, &o, &file, NULL), SFT_OK);
        expect_two(file, &f);
        sft_close(file);
        assert_int_equal(close(fd), 0); /* it stayed ours */
    }
    free_file(&f);
}

static void bad_paths(void **state) {
    (void)state;
    sft_file *file = (sft_file *)1;
    sft_error err = SFT_ERROR_INIT;
    assert_int_equal(sft_open(temp_path("none"), NULL, &file, &err), SFT_NOT_FOUND);
    assert_null(file);
    assert_int_equal(err.os_errno, ENOENT);
    assert_int_equal(sft_open(temp_dir, NULL, &file, NULL), SFT_IO_NOT_FILE);
    assert_int_equal(sft_open(NULL, NULL, &file, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_open("x", NULL, NULL, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_open_fd(-1, NULL, &file, NULL), SFT_IO_OPEN);
    assert_int_equal(sft_open_memory(NULL, 4, NULL, &file, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_open_memory(NULL, 0, NULL, &file, NULL), SFT_HEADER_TOO_SMALL);
    temp_write("empty", "", 0);
    assert_int_equal(sft_open(temp_path("empty"), NULL, &file, NULL), SFT_HEADER_TOO_SMALL);
    sft_close(NULL);
}

static void bad_options(void **state) {
    (void)state;
    test_file f = make_file("{}", NULL, 0);
    struct {
        sft_open_options o;
        unsigned char tail[16];
    } newer = { SFT_OPEN_OPTIONS_INIT, { 0 } };
    sft_file *file;
    newer.o.size = sizeof newer;
    assert_int_equal(sft_open_memory(f.bytes, f.len, &newer.o, &file, NULL), SFT_OK);
    sft_close(file);
    newer.tail[15] = 1;
    assert_int_equal(sft_open_memory(f.bytes, f.len, &newer.o, &file, NULL), SFT_BAD_ARGUMENT);
    newer.o.size = 0;
    assert_int_equal(sft_open_memory(f.bytes, f.len, &newer.o, &file, NULL), SFT_BAD_ARGUMENT);
    sft_open_options o = SFT_OPEN_OPTIONS_INIT;
    o.level = (sft_level)3;
    assert_int_equal(sft_open_memory(f.bytes, f.len, &o, &file, NULL), SFT_BAD_ARGUMENT);
    o.level = SFT_LEVEL_COMPAT;
    o.mode = (sft_mode)4;
    assert_int_equal(sft_open_memory(f.bytes, f.len, &o, &file, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_open_fd(-1, &o, &file, NULL), SFT_BAD_ARGUMENT);
    test_source s = make_source(&f);
    assert_int_equal(sft_open_source(source_of(&s, f.len), &o, &file, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(s.closed, 1);
    o.mode = SFT_MAP_COW;
    assert_int_equal(sft_open_memory(f.bytes, f.len, &o, &file, NULL), SFT_BAD_ARGUMENT);
    sft_tensor strange = { .dtype = (sft_dtype)99, .offset = 7 };
    assert_true(sft_tensor_aligned(&strange));
    free_file(&f);
}

/* A caller of the first release, when the struct ended with `alloc`, keeps the defaults of
 * the rest. */
static void older_options(void **state) {
    (void)state;
    test_file f = make_file("{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]},"
                            "\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}",
                            NULL, 1);
    sft_open_options o;
    memset(&o, 0xFF, sizeof o);
    memcpy(&o, &(sft_open_options)SFT_OPEN_OPTIONS_INIT, offsetof(sft_open_options, reserved));
    o.size = offsetof(sft_open_options, reserved);
    o.level = SFT_LEVEL_COMPAT;
    sft_file *file;
    assert_int_equal(sft_open_memory(f.bytes, f.len, &o, &file, NULL), SFT_OK);
    assert_int_equal(sft_file_level(file), SFT_LEVEL_COMPAT);
    sft_close(file);
    assert_int_equal(sft_open_memory(f.bytes, f.len, NULL, &file, NULL), SFT_TENSOR_DUPLICATE);
    free_file(&f);
}

static void limits(void **state) {
    (void)state;
    test_file f = make_file(TWO, NULL, 12);
    sft_file *file;
    sft_error err;
    sft_open_options o = SFT_OPEN_OPTIONS_INIT;
    o.max_header_bytes = strlen(TWO) - 1;
    assert_int_equal(sft_open_memory(f.bytes, f.len, &o, &file, NULL), SFT_HEADER_TOO_LARGE);
    o.max_header_bytes = strlen(TWO);
    o.max_tensors = 1;
    assert_int_equal(sft_open_memory(f.bytes, f.len, &o, &file, &err), SFT_TOO_MANY_TENSORS);
    assert_string_equal(err.message, "expected a tensor count of at most 1, found more than 1");
    o.max_tensors = 2;
    o.max_name_bytes = 7;
    assert_int_equal(sft_open_memory(f.bytes, f.len, &o, &file, &err), SFT_NAME_TOO_LONG);
    assert_string_equal(err.message, "expected a name length in bytes of at most 7, found 8");
    o.max_name_bytes = 8;
    o.max_metadata = 1;
    assert_int_equal(sft_open_memory(f.bytes, f.len, &o, &file, &err), SFT_TOO_MANY_METADATA);
    assert_string_equal(err.message, "expected a count of metadata pairs of at most 1, found 2");
    o.max_metadata = 2;
    assert_int_equal(sft_open_memory(f.bytes, f.len, &o, &file, NULL), SFT_OK);
    sft_close(file);
    free_file(&f);
}

/* Keys have the limit of names: spelled as they are, or with escapes, whose characters count. */
static void limit_of_keys(void **state) {
    static const struct {
        const char *key;
        uint64_t most, offset; /* offset 0: taken */
    } rows[] = {
        { "abcd", 4, 0 }, { "abcd", 3, 8 + 19 }, { "", 1, 0 }, { "a\\u0062c", 3, 0 },
        { "a\\u0062c", 2, 8 }, { "\xC3\xA4", 1, 8 + 19 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char header[128];
        sft_open_options o = SFT_OPEN_OPTIONS_INIT;
        sft_error err;
        sft_file *file;
        snprintf(header, sizeof header, "{\"__metadata__\":{ \"%s\":\"a long value\"}}",
                 rows[i].key);
        test_file f = make_file(header, NULL, 0);
        o.max_name_bytes = rows[i].most;
        sft_code code = sft_open_memory(f.bytes, f.len, &o, &file, &err);
        assert_int_equal(code, rows[i].offset ? SFT_NAME_TOO_LONG : SFT_OK);
        if (code) assert_int_equal(err.offset, rows[i].offset);
        else sft_close(file);
        free_file(&f);
    }
}

static void from_source(void **state) {
    (void)state;
    test_file f = make_file(TWO, NULL, 12);
    test_source s = make_source(&f);
    sft_file *file;
    sft_open_options o = SFT_OPEN_OPTIONS_INIT;
    assert_int_equal(sft_open_source(source_of(&s, f.len), NULL, &file, NULL), SFT_OK);
    expect_two(file, &f);
    assert_int_equal(s.reads, 2);
    assert_false(sft_file_is_mapped(file));
    sft_source again = sft_file_source(file);
    assert_int_equal(again.size, f.len);
    assert_true(again.borrowed);
    sft_close(file);
    assert_int_equal(s.closed, 1);
    o.mode = SFT_MAP;
    assert_int_equal(sft_open_source(source_of(&s, f.len), &o, &file, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(s.closed, 2);
    s.fail_at = 9;
    sft_error err = SFT_ERROR_INIT;
    assert_int_equal(sft_open_source(source_of(&s, f.len), NULL, &file, &err), SFT_IO_READ);
    assert_string_equal(err.message, "the test says so");
    assert_int_equal(err.os_errno, 5);
    assert_int_equal(s.closed, 3);
    static const sft_source_vtable mute = { sizeof mute, NULL, close_test_source, NULL, NULL };
    sft_source useless = { &s, &mute, 8, f.bytes, false };
    assert_int_equal(sft_open_source(useless, NULL, &file, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(s.closed, 4);
    s.fail_at = UINT64_MAX;
    s.ends_at = 20; /* shrank since its size was told */
    assert_int_equal(sft_open_source(source_of(&s, f.len), NULL, &file, NULL), SFT_IO_SHRUNK);
    free_file(&f);
}

/* A map that changes under our eyes must not change the header that was checked. */
static void source_with_base_is_copied(void **state) {
    (void)state;
    test_file f = make_file(TWO, NULL, 12);
    sft_file *file;
    assert_int_equal(sft_open_source(sft_source_memory(f.bytes, f.len), NULL, &file, NULL), SFT_OK);
    memset(f.bytes + 8, 'x', f.data - 8);
    expect_two(file, &f);
    assert_true(sft_file_is_mapped(file));
    sft_close(file);
    free_file(&f);
}

static void unknown_size(void **state) {
    (void)state;
    test_file f = make_file(TWO, NULL, 12);
    test_source s = make_source(&f);
    s.forward_only = true;
    sft_file *file;
    sft_error err = SFT_ERROR_INIT;
    s.ends_at = f.data; /* no data at all: nobody asks */
    assert_int_equal(sft_open_source(source_of(&s, SFT_SIZE_UNKNOWN), NULL, &file, NULL), SFT_OK);
    expect_two(file, &f);
    assert_false(sft_file_complete(file));
    assert_int_equal(sft_file_size(file), SFT_SIZE_UNKNOWN);
    sft_close(file);
    for (size_t end = 0; end < f.data; end++) {
        s.position = 0;
        s.ends_at = end;
        sft_code want = end < 8 ? SFT_HEADER_TOO_SMALL : SFT_HEADER_TRUNCATED;
        assert_int_equal(sft_open_source(source_of(&s, SFT_SIZE_UNKNOWN), NULL, &file, &err), want);
        assert_int_equal(err.code, want);
    }
    free_file(&f);
}

static void from_pipe(void **state) {
    (void)state;
    test_file f = make_file(TWO, NULL, 12);
    int ends[2];
    sft_file *file;
    sft_open_options o = SFT_OPEN_OPTIONS_INIT;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], f.bytes, f.len), f.len);
    assert_int_equal(sft_open_fd(ends[0], NULL, &file, NULL), SFT_OK);
    expect_two(file, &f);
    assert_false(sft_file_complete(file));
    uint32_t float_bits[2];
    const sft_tensor *t = sft_file_find_cstr(file, "layer.10");
    assert_int_equal(sft_read_into(file, t, float_bits, 8, NULL), SFT_OK);
    assert_memory_equal(float_bits, f.bytes + t->offset, 8);
    sft_close(file);
    assert_int_equal(write(ends[1], f.bytes, f.len), f.len);
    o.mode = SFT_MAP;
    assert_int_equal(sft_open_fd(ends[0], &o, &file, NULL), SFT_IO_MAP);
    close(ends[1]);
    close(ends[0]);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], f.bytes, f.len), f.len);
    o.mode = SFT_AUTO; /* reads where there is nothing to map */
    assert_int_equal(sft_open_fd(ends[0], &o, &file, NULL), SFT_OK);
    assert_false(sft_file_is_mapped(file));
    sft_close(file);
    close(ends[1]);
    close(ends[0]);
    free_file(&f);
}

/* A pipe that promises 100,000,000 bytes and ends must not cost them. */
static void false_promise_is_cheap(void **state) {
    (void)state;
    test_file f = make_file("{\"a\":", NULL, 100000);
    memcpy(f.bytes, "\x00\xE1\xF5\x05\0\0\0\0", 8);
    test_source s = make_source(&f);
    test_memory m = { 0 };
    sft_allocator alloc = { resize_test_memory, &m };
    sft_open_options o = SFT_OPEN_OPTIONS_INIT;
    o.alloc = &alloc;
    sft_file *file;
    assert_int_equal(sft_open_source(source_of(&s, SFT_SIZE_UNKNOWN), &o, &file, NULL),
                     SFT_HEADER_TRUNCATED);
    assert_true(m.peak < 400000);
    assert_int_equal(m.held, 0);
    m.peak = 0;
    assert_int_equal(sft_open_source(source_of(&s, f.len), &o, &file, NULL), SFT_HEADER_TRUNCATED);
    assert_true(m.peak < 10000);
    assert_int_equal(m.held, 0);
    free_file(&f);
}

static void header_only(void **state) {
    (void)state;
    test_file f = make_file(TWO, NULL, 4);
    sft_file *file;
    sft_open_options o = SFT_OPEN_OPTIONS_INIT;
    assert_int_equal(sft_open_memory(f.bytes, f.len, NULL, &file, NULL), SFT_DATA_TRUNCATED);
    o.header_only = true;
    assert_int_equal(sft_open_memory(f.bytes, f.len, &o, &file, NULL), SFT_OK);
    assert_false(sft_file_complete(file));
    const void *view;
    assert_int_equal(sft_view(file, sft_file_tensor_at(file, 0), &view, NULL), SFT_OK);
    assert_ptr_equal(view, f.bytes + f.data);
    assert_int_equal(sft_view(file, sft_file_tensor_at(file, 1), &view, NULL), SFT_DATA_TRUNCATED);
    assert_null(view);
    sft_close(file);
    free_file(&f);
}

static void orders(void **state) {
    (void)state;
    static const uint32_t expected[][4] = {
        { 0, 1, 2, 3 }, /* offset: a10 a9 b1 a1 */
        { 3, 0, 1, 2 }, /* a1 a10 a9 b1 */
        { 3, 1, 0, 2 }, /* a1 a9 a10 b1 */
        { 1, 3, 0, 2 }, /* header: a9 a1 a10 b1 */
    };
    test_file f = make_file("{\"a9\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[9,9]},"
                            "\"a1\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[8,9]},"
                            "\"a9\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[2,5]},"
                            "\"a1\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[8,9]},"
                            "\"a10\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
                            "\"b1\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[5,8]}}",
                            NULL, 9);
    sft_open_options o = SFT_OPEN_OPTIONS_INIT;
    o.level = SFT_LEVEL_COMPAT; /* the last of two names counts */
    sft_file *file;
    assert_int_equal(sft_open_memory(f.bytes, f.len, &o, &file, NULL), SFT_OK);
    assert_int_equal(sft_file_tensor_count(file), 4);
    for (int order = SFT_ORDER_OFFSET; order <= SFT_ORDER_HEADER; order++) {
        uint32_t found[5] = { 9, 9, 9, 9, 9 };
        assert_int_equal(sft_file_order(file, (sft_order)order, found, NULL), SFT_OK);
        assert_memory_equal(found, expected[order], sizeof expected[order]);
        assert_int_equal(found[4], 9);
    }
    assert_int_equal(sft_file_order(file, (sft_order)4, NULL, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_file_order(file, SFT_ORDER_NAME, NULL, NULL), SFT_BAD_ARGUMENT);
    sft_close(file);
    free_file(&f);
    f = make_file("{}", NULL, 0);
    const sft_allocator none = { NULL, NULL };
    o.alloc = &none; /* libc's */
    assert_int_equal(sft_open_memory(f.bytes, f.len, &o, &file, NULL), SFT_OK);
    assert_int_equal(sft_file_order(file, SFT_ORDER_HEADER, NULL, NULL), SFT_OK);
    sft_close(file);
    free_file(&f);
}

static void alignment(void **state) {
    (void)state;
    static const struct {
        size_t pad;
        uint32_t align;
        bool aligned;
    } rows[] = { { 0, 1, false }, { 1, 2, false }, { 3, 4, true }, { 11, 4, true }, { 7, 8, true },
                 { 15, 16, true } };
    static const char head[] = "{\"c\":{\"dtype\":\"C64\",\"shape\":[],\"data_offsets\":[0,8]}}";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char header[128];
        size_t n = sizeof head - 1, pad = (rows[i].pad + 32 - (8 + n - 1) % 16) % 16;
        memcpy(header, head, n);
        memset(header + n, ' ', pad);
        header[n + pad] = '\0';
        test_file f = make_file(header, NULL, 8);
        sft_file *file;
        assert_int_equal(sft_open_memory(f.bytes, f.len, NULL, &file, NULL), SFT_OK);
        uint32_t align = sft_file_alignment(file);
        assert_int_equal(f.data % align, 0);
        assert_true(f.data % (2 * (uint64_t)align) != 0);
        if (rows[i].align < 16) assert_int_equal(align, rows[i].align);
        assert_int_equal(sft_tensor_aligned(sft_file_tensor_at(file, 0)), rows[i].aligned);
        sft_close(file);
        free_file(&f);
    }
}

/* Of many tensors without bytes, which share an offset, each has its index: in a sorted header, and
 * in one whose first entry stands behind all others. */
static void indexes_of_empty(void **state) {
    (void)state;
    enum { MANY = 60000 };
    for (int sorted = 0; sorted < 2; sorted++) {
        char *text = malloc(MANY * 80 + 256), *at = text;
        sft_file *file;
        const int place = sorted ? 12 : 8;
        at += snprintf(at, 128, "{\"z\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[%d,12]}",
                       sorted ? 12 : 4, sorted ? 0 : 8);
        if (!sorted)
            at += snprintf(at, 128,
                           ",\"y\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}");
        for (int i = 0; i < MANY; i++)
            at += snprintf(at, 128,
                           ",\"%d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[%d,%d]}", i,
                           place, place);
        memcpy(at, "}", 2);
        test_file f = make_file(text, NULL, 12);
        assert_int_equal(sft_open_memory(f.bytes, f.len, NULL, &file, NULL), SFT_OK);
        for (size_t i = 0; i < sft_file_tensor_count(file); i++)
            assert_int_equal(sft_file_tensor_index(file, sft_file_tensor_at(file, i)), i);
        sft_close(file);
        free_file(&f);
        free(text);
    }
}

/* A tensor's index, in headers that are sorted and not; empty tensors share an offset. */
static void indexes(void **state) {
    (void)state;
    static const char *const headers[] = {
        TWO, "{\"w\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}}",
        "{\"c\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[4,4]},"
        "\"b\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[4,12]},"
        "\"d\":{\"dtype\":\"U8\",\"shape\":[0,9],\"data_offsets\":[4,4]},"
        "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}"
    };
    sft_file *file, *other;
    for (size_t k = 0; k < 3; k++) {
        test_file f = make_file(headers[k], NULL, 12);
        assert_int_equal(sft_open_memory(f.bytes, f.len, NULL, &file, NULL), SFT_OK);
        assert_int_equal(sft_open_memory(f.bytes, f.len, NULL, &other, NULL), SFT_OK);
        for (size_t i = 0; i < sft_file_tensor_count(file); i++) {
            const sft_tensor *t = sft_file_tensor_at(file, i);
            assert_int_equal(sft_file_tensor_index(file, t), i);
            assert_int_equal(sft_file_tensor_index(other, t), SIZE_MAX);
            sft_tensor renamed = *t;
            renamed.name = sft_span_cstr("of no file");
            assert_int_equal(sft_file_tensor_index(file, &renamed), SIZE_MAX);
            assert_int_equal(sft_tensor_bytes(t), t->end - t->begin);
            assert_int_equal(sft_tensor_elements(t) * sft_dtype_describe(t->dtype)->bits,
                             8 * sft_tensor_bytes(t));
        }
        sft_close(other);
        sft_close(file);
        free_file(&f);
    }
}

/* Too few descriptors: the error says what to do. */
static void descriptors(void **state) {
    (void)state;
    test_file f = make_file(TWO, NULL, 12);
    struct rlimit old, low;
    sft_error err = SFT_ERROR_INIT;
    sft_file *file;
    temp_write("two", f.bytes, f.len);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    low = old;
    low.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    sft_code code = sft_open(temp_path("two"), NULL, &file, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(code, SFT_IO_OPEN);
    assert_int_equal(err.os_errno, EMFILE);
    assert_int_equal(err.hint, SFT_HINT_OPEN_FILES);
    free_file(&f);
}

/* The n-th allocation fails, for every n: nothing is kept, the code is right. */
static void every_allocation_fails(void **state) {
    (void)state;
    test_file f = make_file(TWO, NULL, 12);
    temp_write("two", f.bytes, f.len);
    test_memory m = { 0 };
    sft_allocator alloc = { resize_test_memory, &m };
    sft_open_options o = SFT_OPEN_OPTIONS_INIT;
    o.alloc = &alloc;
    o.mode = SFT_MAP;
    sft_file *file = NULL;
    sft_code code = SFT_OUT_OF_MEMORY;
    uint32_t order[2];
    for (m.fail_on = 1; m.fail_on < 100; m.fail_on++) {
        m.calls = 0;
        code = sft_open(temp_path("two"), &o, &file, NULL);
        if (code == SFT_OK) code = sft_file_order(file, SFT_ORDER_NAME, order, NULL);
        sft_close(file);
        assert_int_equal(m.held, 0);
        if (code == SFT_OK) break;
        assert_int_equal(code, SFT_OUT_OF_MEMORY);
    }
    assert_int_equal(code, SFT_OK);
    assert_true(m.fail_on > 5);
    assert_int_equal(order[0], 1);
    free_file(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_memory),
        cmocka_unit_test(every_mode),
        cmocka_unit_test(bad_paths),
        cmocka_unit_test(bad_options),
        cmocka_unit_test(older_options),
        cmocka_unit_test(limits),
        cmocka_unit_test(limit_of_keys),
        cmocka_unit_test(from_source),
        cmocka_unit_test(source_with_base_is_copied),
        cmocka_unit_test(unknown_size),
        cmocka_unit_test(from_pipe),
        cmocka_unit_test(false_promise_is_cheap),
        cmocka_unit_test(header_only),
        cmocka_unit_test(orders),
        cmocka_unit_test(alignment),
        cmocka_unit_test(indexes),
        cmocka_unit_test(indexes_of_empty),
        cmocka_unit_test(descriptors),
        cmocka_unit_test(every_allocation_fails),
    };
    return cmocka_run_group_tests(tests, temp_dir_make, temp_dir_remove);
}
