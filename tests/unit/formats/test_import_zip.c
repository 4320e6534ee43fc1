/* Deflated bytes read in any order and by several threads, the checksum shift that archives of
 * arrays use, and damaged archives in memory; tests/import/zip_cases.py has the rules. */
#define _GNU_SOURCE
#include "base/crc32.h"
#include "base/endian.h"
#include "formats/parts/state.h"
#include "formats/zip/zip.h"
#include "os/os.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static uint64_t random_state = 88172645463325252u;

static uint64_t draw(uint64_t below) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % below;
}

static uint32_t crc_of(const void *bytes, size_t len) {
    sfti_crc32_table table;
    sfti_crc32_begin(&table, false);
    return sfti_crc32_add(&table, 0, bytes, len);
}

/* ── Checksums ── */

static void test_shift(void **state) {
    uint8_t bytes[300];
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)draw(256);
    for (size_t cut = 0; cut <= sizeof bytes; cut++) {
        uint32_t whole = crc_of(bytes, sizeof bytes), head = crc_of(bytes, cut);
        uint32_t tail = crc_of(bytes + cut, sizeof bytes - cut);
        assert_int_equal(whole, sfti_crc32_shift(head, sizeof bytes - cut) ^ tail);
    }
    /* Zeros by the terabyte: shifting is additive. */
    uint64_t far = UINT64_C(1) << 40;
    assert_int_equal(sfti_crc32_shift(sfti_crc32_shift(77, far), 3), sfti_crc32_shift(77, far + 3));
    assert_int_equal(sfti_crc32_shift(77, 0), 77);
    assert_int_equal(sfti_crc32_shift(0, far), 0);
}

/* ── Deflated bytes ── */

#define SOURCES 20 /* more than there are decompressors */
#define BYTES ((size_t)200000)

/* Random bytes as blocks that are stored, which any inflate reads, one behind the other. */
typedef struct deflated_case {
    sft_error err;
    sft_import im;
    sft_source archive;
    sfti_inflater *inflater;
    uint8_t *plain[SOURCES], *stored;
    size_t stored_len;
    sfti_deflated bytes[SOURCES];
    const sft_source *sources[SOURCES];
} deflated_case;

static void store(deflated_case *c, size_t i) {
    uint8_t *at = c->stored + c->stored_len;
    c->bytes[i].begin = c->stored_len;
    for (size_t done = 0; done < BYTES;) {
        size_t len = 1 + (size_t)draw(40000);
        if (len > BYTES - done) len = BYTES - done;
        *at++ = done + len == BYTES;
        *at++ = (uint8_t)len;
        *at++ = (uint8_t)(len >> 8);
        *at++ = (uint8_t)~len;
        *at++ = (uint8_t)(~len >> 8);
        memcpy(at, c->plain[i] + done, len);
        at += len;
        done += len;
    }
    c->stored_len = (size_t)(at - c->stored);
    c->bytes[i].stored = c->stored_len - c->bytes[i].begin;
    c->bytes[i].size = BYTES;
    c->bytes[i].crc32 = crc_of(c->plain[i], BYTES);
}

static int deflated_begin(void **state) {
    deflated_case *c = calloc(1, sizeof *c);
    if (!strstr(sft_build_info(), "zlib: 1.")) {
        free(c);
        return 0; /* the tests are skipped */
    }
    c->im = (sft_import){ .arena = { .alloc = sfti_allocator(NULL) },
                          .alloc = sfti_allocator(NULL), .err = &c->err };
    c->stored = malloc(2 * SOURCES * BYTES);
    for (size_t i = 0; i < SOURCES; i++) {
        c->plain[i] = malloc(BYTES);
        for (size_t k = 0; k < BYTES; k++) c->plain[i][k] = (uint8_t)draw(256);
        store(c, i);
    }
    c->archive = sft_source_memory(c->stored, c->stored_len);
    if (sfti_inflater_new(&c->im, &c->archive, &c->inflater)) return -1;
    for (size_t i = 0; i < SOURCES; i++)
        if (sfti_inflate_source(&c->im, c->inflater, &c->bytes[i], &c->sources[i])) return -1;
    *state = c;
    return 0;
}

static int deflated_end(void **state) {
    deflated_case *c = *state;
    if (!c) return 0;
    for (sfti_held *held = c->im.held; held; held = held->next) sft_source_close(&held->source);
    sfti_arena_free(&c->im.arena);
    for (size_t i = 0; i < SOURCES; i++) free(c->plain[i]);
    free(c->stored);
    free(c);
    return 0;
}

/* Ranges anywhere, also backwards, of sources that take turns. */
static void test_any_order(void **state) {
    deflated_case *c = *state;
    if (!c) skip();
    uint8_t *into = malloc(BYTES);
    for (int round = 0; round < 300; round++) {
        size_t i = (size_t)draw(SOURCES), got;
        uint64_t at = draw(BYTES);
        size_t len = 1 + (size_t)draw(draw(4) == 0 ? BYTES : 2000);
        assert_int_equal(sft_source_read(c->sources[i], at, into, len, &got, &c->err), SFT_OK);
        assert_int_equal(got, len < BYTES - at ? len : BYTES - at);
        assert_memory_equal(into, c->plain[i] + at, got);
    }
    free(into);
}

static void read_all(void *ctx) {
    deflated_case *c = ctx;
    uint8_t into[5000];
    for (uint64_t at = 0; at < BYTES; at += sizeof into)
        for (size_t i = 0; i < 4; i++) {
            size_t got;
            assert_int_equal(sft_source_read(c->sources[i], at, into, sizeof into, &got, NULL),
                             SFT_OK);
            assert_memory_equal(into, c->plain[i] + at, got);
        }
}

static void test_threads(void **state) {
    os_thread threads[3];
    if (!*state) skip();
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(sfti_os_thread_start(&threads[i], read_all, *state), 0);
    read_all(*state);
    for (size_t i = 0; i < 3; i++) sfti_os_thread_join(&threads[i]);
}

static sft_code read_as(deflated_case *c, sfti_deflated bytes, size_t len) {
    const sft_source *source;
    uint8_t *into = malloc(BYTES + 8);
    size_t got;
    assert_int_equal(sfti_inflate_source(&c->im, c->inflater, &bytes, &source), SFT_OK);
    sft_code code = sft_source_read(source, 0, into, len, &got, &c->err);
    free(into);
    return code;
}

/* Whoever reads the last byte is told. */
static void test_lies(void **state) {
    deflated_case *c = *state;
    if (!c) skip();
    sfti_deflated bytes = c->bytes[0];
    bytes.crc32 ^= 1;
    assert_int_equal(read_as(c, bytes, BYTES - 1), SFT_OK);
    assert_int_equal(read_as(c, bytes, BYTES), SFT_FOREIGN_CHECKSUM);
    assert_int_equal(c->err.offset, bytes.begin);
    bytes = c->bytes[0];
    bytes.size++;
    assert_int_equal(read_as(c, bytes, BYTES), SFT_OK);
    assert_int_equal(read_as(c, bytes, BYTES + 1), SFT_FOREIGN_SIZE);
    bytes.size = BYTES - 1;
    assert_int_equal(read_as(c, bytes, BYTES - 1), SFT_FOREIGN_SIZE);
    bytes = c->bytes[0];
    bytes.stored++; /* the next one's first byte */
    assert_int_equal(read_as(c, bytes, BYTES), SFT_FOREIGN_SIZE);
    bytes.stored = 10;
    assert_int_equal(read_as(c, bytes, BYTES), SFT_FOREIGN_SIZE);
    bytes = c->bytes[0];
    bytes.begin += 1;
    sft_code code = read_as(c, bytes, BYTES);
    assert_true(code == SFT_FOREIGN_SYNTAX || code == SFT_FOREIGN_SIZE);
    bytes = c->bytes[SOURCES - 1];
    bytes.stored += 10; /* beyond the archive */
    assert_int_equal(read_as(c, bytes, BYTES), SFT_FOREIGN_TRUNCATED);
}

/* ── Damaged archives ── */

#define NPY_TEXT "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }         \n"
#define NPY_LEN (10 + sizeof NPY_TEXT - 1 + 8)

static size_t put_entry(uint8_t *at, bool central, uint32_t offset, const uint8_t *data) {
    size_t head = central ? 46 : 30, gap = central ? 2 : 0;
    memset(at, 0, head);
    sfti_put_u32(at, central ? 0x02014b50 : 0x04034b50);
    sfti_put_u32(at + 14 + gap, crc_of(data, NPY_LEN));
    sfti_put_u32(at + 18 + gap, NPY_LEN);
    sfti_put_u32(at + 22 + gap, NPY_LEN);
    at[26 + gap] = 5;
    if (central) sfti_put_u32(at + 42, offset);
    memcpy(at + head, offset ? "b.npy" : "a.npy", 5);
    return head + 5;
}

/* Two arrays; the length of the archive. */
static size_t make_archive(uint8_t *out) {
    uint8_t data[NPY_LEN];
    memcpy(data, "\x93NUMPY\1\0", 8);
    data[8] = sizeof NPY_TEXT - 1;
    data[9] = 0;
    memcpy(data + 10, NPY_TEXT, sizeof NPY_TEXT - 1);
    memcpy(data + NPY_LEN - 8, "12345678", 8);
    size_t at = 0, second, directory;
    at += put_entry(out + at, false, 0, data);
    memcpy(out + at, data, NPY_LEN);
    second = at += NPY_LEN;
    at += put_entry(out + at, false, 1, data);
    memcpy(out + at, data, NPY_LEN);
    directory = at += NPY_LEN;
    at += put_entry(out + at, true, 0, data);
    at += put_entry(out + at, true, (uint32_t)second, data);
    memset(out + at, 0, 22);
    sfti_put_u32(out + at, 0x06054b50);
    out[at + 8] = out[at + 10] = 2;
    sfti_put_u32(out + at + 12, (uint32_t)(at - directory));
    sfti_put_u32(out + at + 16, (uint32_t)directory);
    return at + 22;
}

/* Opened and verified; the tensors, if it is what it was. */
static sft_code open_archive(const uint8_t *bytes, size_t len, size_t *tensors) {
    sft_error err = SFT_ERROR_INIT;
    sft_import *im;
    *tensors = 0;
    sft_code code = sft_import_open_source(sft_source_memory(bytes, len), NULL, &im, &err);
    if (code) {
        assert_int_equal(err.code, code);
        return code;
    }
    *tensors = sft_import_tensor_count(im);
    code = sft_import_verify(im, NULL, &err);
    sft_import_close(im);
    return code;
}

/* Whatever is changed or cut: an answer, and nothing read beyond the bytes there are. */
static void test_damaged(void **state) {
    uint8_t whole[1024];
    size_t len = make_archive(whole), tensors, fine = 0;
    (void)state;
    assert_int_equal(open_archive(whole, len, &tensors), SFT_OK);
    assert_int_equal(tensors, 2);
    for (size_t at = 0; at < len; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            uint8_t *bytes = malloc(len);
            memcpy(bytes, whole, len);
            bytes[at] ^= (uint8_t)(1u << bit);
            fine += open_archive(bytes, len, &tensors) == SFT_OK;
            free(bytes);
        }
        uint8_t *bytes = malloc(at + 1);
        memcpy(bytes, whole, at);
        assert_int_not_equal(open_archive(bytes, at, &tensors), SFT_OK);
        free(bytes);
    }
    /* Versions, times, attributes; a name, where both headers have the same one, has one byte. */
    assert_in_range(fine, 100, 600);
}

/* A name with a NUL is compared by its length: ASan sees a step past the end of a pattern. */
static void test_nul_in_name(void **state) {
    static const char *const names[] = { "x.npy", "m/data.pkl", "saved_model.pb", "x.bin",
                                         "MAR-INF/MANIFEST.json", "models/x.json" };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t nuls = 1; nuls < 20; nuls++) {
            char name[64] = { 0 };
            size_t len = strlen(names[i]);
            memcpy(name, names[i], len);
            sfti_zip_entry entry = { .name = { name, len + nuls } };
            sfti_zip zip = { .entries = &entry, .count = 1 };
            const char *what = NULL;
            assert_int_equal(sfti_zip_tell(&zip, &what), SFT_IMPORT_NONE);
            assert_string_equal(what, "a zip archive of other files");
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shift),
        cmocka_unit_test_setup_teardown(test_any_order, deflated_begin, deflated_end),
        cmocka_unit_test_setup_teardown(test_threads, deflated_begin, deflated_end),
        cmocka_unit_test_setup_teardown(test_lies, deflated_begin, deflated_end),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_nul_in_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
