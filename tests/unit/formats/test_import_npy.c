/* The header of .npy files: what numpy and Python 2 wrote is read, nothing else is; and the one
 * that we write is read back. tests/import/npy_cases.py compares values with numpy's. */
#include "base/endian.h"
#include "formats/arrays/npy_head.h"
#include "safetensors_import.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define FILE_SIZE 200000

static uint8_t file_bytes[FILE_SIZE];

/* A file of that version, header and number of data bytes, 0, 1, 2, …. */
static size_t npy_file(unsigned version, const char *header, size_t header_len, size_t data) {
    size_t at = version == 1 ? 10 : 12;
    assert_true(at + header_len + data <= FILE_SIZE);
    memcpy(file_bytes, "\x93NUMPY", 6);
    file_bytes[6] = (uint8_t)version;
    file_bytes[7] = 0;
    sfti_put_u32(file_bytes + 8, (uint32_t)header_len); /* of version 1 the lower half */
    memcpy(file_bytes + at, header, header_len);
    for (size_t i = 0; i < data; i++) file_bytes[at + header_len + i] = (uint8_t)i;
    return at + header_len + data;
}

static sft_code npy_open(size_t len, sft_import **out, sft_error *err) {
    *err = (sft_error)SFT_ERROR_INIT;
    return sft_import_open_source(sft_source_memory(file_bytes, len), NULL, out, err);
}

/* The only tensor of a header, with as many data bytes. */
static sft_import *open_header(unsigned version, const char *header, size_t data, sft_part *part) {
    sft_import *import;
    sft_error err;
    size_t len = npy_file(version, header, strlen(header), data);
    if (npy_open(len, &import, &err)) fail_msg("%s: %s", header, err.message);
    assert_int_equal(sft_import_format_of(import), SFT_IMPORT_NPY);
    assert_int_equal(sft_import_tensor_count(import), 1);
    *part = sft_import_part(import, 0);
    return import;
}

static void check_refused(const char *header, sft_code expected, size_t data) {
    sft_import *import;
    sft_error err;
    sft_code code = npy_open(npy_file(1, header, strlen(header), data), &import, &err);
    if (code != expected) fail_msg("%s: expected %d, found %d: %s", header, expected, code,
                                   err.message);
    assert_int_equal(err.code, expected);
    assert_null(import);
}

/* ── Read ── */

static void test_versions(void **state) {
    (void)state;
    for (unsigned version = 1; version <= 3; version++) {
        sft_part part;
        uint8_t bytes[24];
        size_t got;
        sft_import *import = open_header(
            version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 24, &part);
        assert_int_equal(part.spec.dtype, SFT_F32);
        assert_int_equal(part.spec.rank, 2);
        assert_int_equal(part.spec.shape[0], 2);
        assert_int_equal(part.spec.shape[1], 3);
        assert_null(sft_import_note(import, 0));
        assert_int_equal(sft_import_left_count(import), 0);
        assert_int_equal(sft_source_read(part.source, part.begin, bytes, 24, &got, NULL), SFT_OK);
        for (size_t i = 0; i < 24; i++) assert_int_equal(bytes[i], i);
        sft_import_close(import);
    }
    for (unsigned version = 0; version <= 255; version++) {
        static const char header[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (), }";
        sft_import *import;
        sft_error err;
        size_t len = npy_file(version, header, sizeof header - 1, 1);
        sft_code code = npy_open(len, &import, &err);
        if (version >= 1 && version <= 3) assert_int_equal(code, SFT_OK);
        else assert_int_equal(code, SFT_FOREIGN_KIND);
        sft_import_close(import);
    }
}

/* What one form of the grammar says is what all say. */
static void test_forms(void **state) {
    static const char *const forms[] = {
        "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }          \n",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3)}",
        "{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\"<i2\"}",
        "{'fortran_order': False, 'shape': (2L, 3L), 'descr': '<i2'}",
        " {\t'shape' : ( 2 , 3 , ) ,\n'descr' : '=i2' , 'fortran_order' : False } \r\n",
        "{'descr': '|i2', 'fortran_order': False, 'shape': (2, 3)}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        sft_part part;
        sft_import *import = open_header(1, forms[i], 12, &part);
        assert_int_equal(part.spec.dtype, SFT_I16);
        assert_int_equal(part.spec.rank, 2);
        assert_int_equal(part.spec.shape[0], 2);
        assert_int_equal(part.spec.shape[1], 3);
        sft_import_close(import);
    }
}

static void read_values(const char *header, const char *note, const uint8_t *expected,
                        size_t len) {
    uint8_t bytes[64];
    sft_part part;
    size_t got;
    sft_import *import = open_header(2, header, len, &part);
    assert_string_equal(sft_import_note(import, 0), note);
    assert_int_equal(sft_source_read(part.source, part.begin, bytes, len, &got, NULL), SFT_OK);
    assert_int_equal(got, len);
    assert_memory_equal(bytes, expected, len);
    sft_import_close(import);
}

static void test_orders(void **state) {
    static const uint8_t columns[] = { 0, 2, 4, 1, 3, 5 }, big[] = { 1, 0, 3, 2, 5, 4 };
    static const uint8_t both[] = { 1, 0, 5, 4, 3, 2, 7, 6 };
    static const uint8_t complex_parts[] = { 3, 2, 1, 0, 7, 6, 5, 4 };
    sft_part part;
    (void)state;
    read_values("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}", "strided", columns, 6);
    read_values("{'descr': '>i2', 'fortran_order': False, 'shape': (3,)}", "big-endian", big, 6);
    read_values("{'descr': '>u2', 'fortran_order': True, 'shape': (2, 2)}", "big-endian", both, 8);
    read_values("{'descr': '>c8', 'fortran_order': False, 'shape': ()}", "big-endian",
                complex_parts, 8);
    /* A column is a row, and one byte has no order. */
    sft_import *import = open_header(
        1, "{'descr': '>u1', 'fortran_order': True, 'shape': (5, 1)}", 5, &part);
    assert_null(sft_import_note(import, 0));
    sft_import_close(import);
}

static void test_sizes(void **state) {
    char header[1024], *at = header;
    sft_part part;
    (void)state;
    sft_import *import = open_header(
        1, "{'descr': '<f8', 'fortran_order': False, 'shape': ()}", 8, &part);
    assert_int_equal(part.spec.rank, 0);
    sft_import_close(import);
    import = open_header(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 0, 2)}", 0,
                         &part);
    assert_int_equal(part.spec.rank, 3);
    assert_int_equal(part.spec.shape[1], 0);
    sft_import_close(import);
    /* Bytes behind the array, which numpy ignores, are listed. */
    import = open_header(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (4,)}", 7, &part);
    assert_int_equal(sft_import_left_count(import), 1);
    assert_int_equal(sft_import_left_at(import, 0)->bytes, 3);
    sft_import_close(import);
    for (int rank = SFT_MAX_RANK; rank <= SFT_MAX_RANK + 1; rank++) {
        at = header + sprintf(header, "{'descr': '|u1', 'fortran_order': True, 'shape': (");
        for (int d = 0; d < rank; d++) at += sprintf(at, "1, ");
        (void)sprintf(at, ")}");
        if (rank > SFT_MAX_RANK) check_refused(header, SFT_FOREIGN_SYNTAX, 1);
        else sft_import_close(open_header(1, header, 1, &part));
    }
}

/* ── Refused ── */

static void test_malformed(void **state) {
    static const char *const headers[] = {
        "", " ", "{", "{}", "}", "()", "None", "\xff\xfe", "{'descr'", "{'descr':", "{'descr': }",
        "{'descr': '<f4'}",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': false, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': Truely, 'shape': (1,)}",
        "{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}",
        "{'descr' '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4\", 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '\\x3cf4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': __import__('os'), 'fortran_order': False, 'shape': (1,)}",
        "{,'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4',, 'fortran_order': False, 'shape': (1,)}",
    };
    static const char *const shapes[] = {
        "1", "[1]", "(1)", "(,)", "(1,,)", "(1 1)", "(-1,)", "(+1,)", "(1.0,)", "(1e3,)", "(0x1,)",
        "(01,)", "(00,)", "(None,)", "(True,)", "(1*1,)", "(1,", "(L,)", "(1LL,)", "((1,),)",
        "('1',)", "(1,);", "(18446744073709551616,)", "(99999999999999999999999,)",
    };
    char header[200];
    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        check_refused(headers[i], SFT_FOREIGN_SYNTAX, 4);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        (void)snprintf(header, sizeof header,
                       "{'descr': '<f4', 'fortran_order': False, 'shape': %s}", shapes[i]);
        check_refused(header, SFT_FOREIGN_SYNTAX, 4);
    }
}

/* A header is refused at every byte at which it is cut or spoilt by a NUL. */
static void test_cut(void **state) {
    static const char whole[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}";
    sft_import *import;
    sft_error err;
    (void)state;
    for (size_t len = 0; len + 1 < sizeof whole; len++)
        assert_int_equal(npy_open(npy_file(1, whole, len, 4), &import, &err), SFT_FOREIGN_SYNTAX);
    for (size_t at = 0; at + 1 < sizeof whole; at++) {
        size_t len = npy_file(1, whole, sizeof whole - 1, 4);
        file_bytes[10 + at] = 0;
        assert_int_not_equal(npy_open(len, &import, &err), SFT_OK);
        assert_null(import);
    }
    for (size_t len = 6; len < 10 + sizeof whole - 1; len++) {
        (void)npy_file(1, whole, sizeof whole - 1, 4);
        assert_int_not_equal(npy_open(len, &import, &err), SFT_OK);
        assert_null(import);
    }
}

static void test_dtypes(void **state) {
    static const struct { const char *descr; sft_code code; } rows[] = {
        { "'|O'", SFT_FOREIGN_OBJECT },  { "'<U4'", SFT_FOREIGN_DTYPE },
        { "'|S4'", SFT_FOREIGN_DTYPE },  { "'<M8[s]'", SFT_FOREIGN_DTYPE },
        { "'<c16'", SFT_FOREIGN_DTYPE }, { "'<f16'", SFT_FOREIGN_DTYPE },
        { "'|V4'", SFT_FOREIGN_DTYPE },  { "'>V2'", SFT_FOREIGN_DTYPE },
        { "'f4'", SFT_FOREIGN_DTYPE },   { "'<'", SFT_FOREIGN_DTYPE },
        { "''", SFT_FOREIGN_DTYPE },     { "'float32'", SFT_FOREIGN_DTYPE },
        { "'<f4 '", SFT_FOREIGN_DTYPE }, { "'!f4'", SFT_FOREIGN_DTYPE },
        { "[('a', '<f4')]", SFT_FOREIGN_DTYPE },
        { "'<V2'", SFT_FOREIGN_OPAQUE }, { "'|V1'", SFT_FOREIGN_OPAQUE },
        { "'<f1'", SFT_FOREIGN_OPAQUE },
    };
    char header[200];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)snprintf(header, sizeof header,
                       "{'descr': %s, 'fortran_order': False, 'shape': (1,)}", rows[i].descr);
        check_refused(header, rows[i].code, 32);
    }
}

/* Sizes whose product does not fit, in either order of the dimensions. */
static void test_overflow(void **state) {
    static const struct { const char *shape; sft_code code; } rows[] = {
        { "(2,)", SFT_FOREIGN_SIZE },
        { "(18446744073709551615,)", SFT_SIZE_OVERFLOW },
        { "(2305843009213693952,)", SFT_SIZE_OVERFLOW }, /* 2^61 of 8 bytes */
        { "(4294967296, 4294967296)", SFT_SIZE_OVERFLOW },
        { "(4294967296, 4294967296, 4294967296)", SFT_SIZE_OVERFLOW },
        { "(1099511627776,)", SFT_FOREIGN_SIZE },
    };
    char header[200];
    (void)state;
    for (size_t i = 0; i < 2 * (sizeof rows / sizeof *rows); i++) {
        (void)snprintf(header, sizeof header, "{'descr': '<f8', 'fortran_order': %s, 'shape': %s}",
                       i % 2 ? "True" : "False", rows[i / 2].shape);
        check_refused(header, rows[i / 2].code, 8);
    }
}

/* Lengths of headers: beyond the file, beyond the limit, and of 4 GiB. */
static void test_lengths(void **state) {
    static const char header[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}";
    static char wide[FILE_SIZE / 2];
    sft_import *import;
    sft_error err;
    (void)state;
    size_t len = npy_file(2, header, sizeof header - 1, 1);
    sfti_put_u32(file_bytes + 8, UINT32_MAX);
    assert_int_equal(npy_open(len, &import, &err), SFT_FOREIGN_TRUNCATED);
    memset(wide, ' ', sizeof wide);
    memcpy(wide, header, sizeof header - 1);
    assert_int_equal(npy_open(npy_file(2, wide, 65536 - 12, 1), &import, &err), SFT_OK);
    sft_import_close(import);
    assert_int_equal(npy_open(npy_file(2, wide, 65536 - 11, 1), &import, &err),
                     SFT_FOREIGN_TABLE);
}

/* ── Written ── */

/* What is written for every dtype that NumPy has is read as that dtype and shape. */
static void test_written(void **state) {
    uint64_t shape[SFT_MAX_RANK];
    (void)state;
    for (uint32_t d = 0; d < SFT_MAX_RANK; d++) shape[d] = d + 1 == SFT_MAX_RANK ? 3 : 1;
    for (size_t i = 0; i < SFT_DTYPE_COUNT; i++) {
        const sft_dtype_info *info = sft_dtype_at(i);
        const char *code = sfti_npy_code(info->dtype);
        for (uint32_t rank = 0; code && rank <= SFT_MAX_RANK; rank++) {
            const uint64_t *sizes = shape + SFT_MAX_RANK - rank;
            char head[SFTI_NPY_SIZE];
            sft_import *import;
            sft_error err;
            size_t len = sfti_npy_head(code, sizes, rank, head);
            size_t data = (rank > 0 ? 3u : 1u) * info->bits / 8;
            assert_int_equal(len % 64, 0);
            assert_true(len <= SFTI_NPY_SIZE);
            memcpy(file_bytes, head, len);
            memset(file_bytes + len, 0, data);
            assert_int_equal(npy_open(len + data, &import, &err), SFT_OK);
            sft_part part = sft_import_part(import, 0);
            assert_int_equal(part.spec.dtype, info->dtype);
            assert_int_equal(part.spec.rank, rank);
            assert_memory_equal(part.spec.shape, sizes, rank * sizeof *sizes);
            assert_int_equal(sft_import_left_count(import), 0);
            sft_import_close(import);
        }
    }
    assert_null(sfti_npy_code(SFT_BF16));
    assert_null(sfti_npy_code((sft_dtype)SFT_DTYPE_COUNT));
}

/* The longest header fits, byte for byte as numpy.save has it: 20 digits leave one space. */
static void test_longest(void **state) {
    uint64_t shape[SFT_MAX_RANK];
    char head[SFTI_NPY_SIZE];
    (void)state;
    for (uint32_t d = 0; d < SFT_MAX_RANK; d++) shape[d] = UINT64_MAX;
    size_t len = sfti_npy_head("<f4", shape, SFT_MAX_RANK, head);
    assert_int_equal(len, 1536);
    assert_int_equal(head[len - 1], '\n');
    assert_int_equal(sfti_get_u16((const uint8_t *)head + 8), len - 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),  cmocka_unit_test(test_forms),
        cmocka_unit_test(test_orders),    cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_malformed), cmocka_unit_test(test_cut),
        cmocka_unit_test(test_dtypes),    cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_lengths),   cmocka_unit_test(test_written),
        cmocka_unit_test(test_longest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
