/* Files that a manifest names by their SHA-256, as strangers may write them: masks, places and
 * segments. */
#define _GNU_SOURCE
#include "unit/dataset_case.h"
#include "unit/storage_table.h"
#include "dataset/commit/addressed.h"
#include "dataset/read/segment.h"

static sft_error err;
static sfti_arena arena;

static int set_up(void **state) {
    arena = (sfti_arena){ .alloc = sfti_allocator(NULL) };
    return ds_make(state);
}

static int tear_down(void **state) {
    sfti_arena_free(&arena);
    return ds_remove(state);
}

/* ── A file of such a kind ── */

typedef struct stranger {
    const char *header; /* of tensors */
    const char *data;
    size_t len;
    const char *says; /* NULL: is one */
} stranger;

static uint64_t put(const stranger *s, const char *kind, char sha256[65]) {
    char bytes[4096] = { 0 }, name[SFTI_SEGMENT_FILE_NAME];
    const size_t len = strlen(s->header), padded = (len + 7) / 8 * 8;
    const sft_allocator alloc = sfti_allocator(NULL);
    assert_true(8 + padded + s->len <= sizeof bytes);
    bytes[0] = (char)(padded & 255);
    bytes[1] = (char)(padded >> 8);
    memset(bytes + 8, ' ', padded);
    memcpy(bytes + 8, s->header, len);
    memcpy(bytes + 8 + padded, s->data, s->len);
    const sft_span all = { bytes, 8 + padded + s->len };
    assert_int_equal(sfti_ds_digest(all, &alloc, sha256, &err), SFT_OK);
    sfti_ds_addressed_name(kind, sha256, name);
    temp_write(name, all.data, all.len);
    return all.len;
}

static void is(sft_code code, const stranger *s, size_t i) {
    if (!s->says && code) fail_msg("%zu: %s", i, err.message);
    if (!s->says) return;
    if (code != SFT_DATASET_SHARD || !strstr(err.message, s->says))
        fail_msg("%zu: expected %s, found %d %s", i, s->says, (int)code, err.message);
}

#define T(name, dtype, shape, from, to) "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape \
    "],\"data_offsets\":[" from "," to "]}"
#define E "\0\0\0\0\0\0\0"
#define DATA(text) text, sizeof(text) - 1

/* ── Masks ── */

#define BITS(shape, to) T("bits", "U64", shape, "0", to)
#define MASKS(names, end) "{" BITS("2", "16") "," T("deleted", "U64", "2", "16", "32") "," \
    T("masks", "U8", "2", "32", "34") "," T("names", "U8", names, "34", end) "}"
#define TWO "\4" E "\4" E "\1" E "\1" E "\1\2"

static void masks(void **state) {
    static const char others[] = "masks of as many rows as the manifest says, found others";
    static const stranger all[] = {
        { MASKS("4", "38"), DATA(TWO "a\0b\0"), NULL },
        { MASKS("3", "37"), DATA(TWO "a\0b"), others },         /* a name without its end */
        { MASKS("5", "39"), DATA(TWO "a\0b\0c"), others },      /* more than names */
        { MASKS("4", "38"), DATA(TWO "b\0a\0"), others },       /* not in order */
        { MASKS("4", "38"), DATA(TWO "a\0a\0"), others },
        { MASKS("3", "37"), DATA(TWO "a\0\0"), others },        /* no name */
        { MASKS("4", "38"), DATA("\4" E "\20" E "\1" E "\1" E "\1\2a\0b\0"), others }, /* 16 bits */
        { MASKS("4", "38"), DATA("\4" E "\0" E "\1" E "\0" E "\1\2a\0b\0"), others },
        { "{" BITS("2", "16") "," T("deleted", "U64", "1", "16", "24") ","
          T("masks", "U8", "2", "24", "26") "," T("names", "U8", "4", "26", "30") "}",
          DATA("\4" E "\4" E "\1" E "\1\2a\0b\0"), others },
        { "{" BITS("1", "8") "," T("deleted", "U64", "2", "8", "24") ","
          T("masks", "U8", "2", "24", "26") "," T("names", "U8", "4", "26", "30") "}",
          DATA("\4" E "\1" E "\1" E "\1\2a\0b\0"), others },
        { "{" T("bits", "I64", "2", "0", "16") "," T("deleted", "U64", "2", "16", "32") ","
          T("masks", "U8", "2", "32", "34") "," T("names", "U8", "4", "34", "38") "}",
          DATA(TWO "a\0b\0"), others },
        { "{" BITS("2,1", "16") "," T("deleted", "U64", "2", "16", "32") ","
          T("masks", "U8", "2", "32", "34") "," T("names", "U8", "4", "34", "38") "}",
          DATA(TWO "a\0b\0"), others },
        { "{" BITS("2", "16") "}", DATA("\4" E "\4" E), others },
        { "{" BITS("2", "16") "," T("deleted", "U64", "2", "16", "32") "}",
          DATA("\4" E "\4" E "\1" E "\1" E), others },
        { "{" BITS("2", "16") "," T("deleted", "U64", "2", "16", "32") ","
          T("masks", "U8", "2", "32", "34") "}", DATA(TWO), others },
        { "no header", DATA(""), "expected a safetensors file, found" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        sfti_ds_masks m = { .shards = 2, .deleted = 2 };
        m.bytes = put(&all[i], SFTI_MASKS_FILE, m.sha256);
        is(sfti_ds_masks_read(&ds_storage, &arena, &m, &err), &all[i], i);
        if (all[i].says) continue;
        assert_true(sfti_ds_mask_has(&m.mask[0], 0) && sfti_ds_mask_has(&m.mask[1], 1));
        assert_false(sfti_ds_mask_has(&m.mask[0], 1) || sfti_ds_mask_has(&m.mask[0], 4));
        assert_false(sfti_ds_mask_has(NULL, 0));
        m.deleted = 3;
        assert_int_equal(sfti_ds_masks_read(&ds_storage, &arena, &m, &err), SFT_DATASET_SHARD);
        m.deleted = 2;
        m.shards = UINT64_MAX; /* sizes no memory */
        assert_int_equal(sfti_ds_masks_read(&ds_storage, &arena, &m, &err), SFT_DATASET_SHARD);
        assert_non_null(strstr(err.message, others));
        for (int less = 0; less < 2; less++) {
            m.bytes += less ? 2 : (uint64_t)-1;
            assert_int_equal(sfti_ds_masks_read(&ds_storage, &arena, &m, &err), SFT_DATASET_SHARD);
            assert_non_null(strstr(err.message, "expected the masks that the manifest names, found "
                                                "another size"));
        }
    }
}

/* ── Places ── */

#define SHARD "part-00000-0000-01234567-89ab-4cde-8f01-23456789abcd.safetensors"
#define FILE_OF(n) ".part-0000" n "-0000-11234567-89ab-4cde-8f01-23456789abcd.safetensors"
#define PLACES(names, end) "{" T("bytes", "U64", "1", "0", "8") "," \
    T("sha256", "U8", "1,32", "8", "40") "," T("names", "U8", names, "40", end) "}"
#define DIGEST "0123456789abcdef0123456789abcdef"
#define ZEROS E "\0" E "\0" E "\0" E "\0"

static void places(void **state) {
    static const char others[] = "as many places as the manifest says, found others";
    static const stranger all[] = {
        { PLACES("133", "173"), DATA("\4" E DIGEST SHARD "\0y\0" FILE_OF("0") "\0"), NULL },
        { PLACES("69", "109"), DATA("\0" E ZEROS SHARD "\0y\0\0\0"), others },    /* more behind */
        { PLACES("68", "108"), DATA("\0" E ZEROS SHARD "\0y\0\0"), NULL },        /* nowhere */
        { PLACES("68", "108"), DATA("\1" E ZEROS SHARD "\0y\0\0"), others },
        { PLACES("68", "108"), DATA("\0" E DIGEST SHARD "\0y\0\0"), others },
        { PLACES("133", "173"), DATA("\4" E ZEROS SHARD "\0y\0" FILE_OF("0") "\0"), others },
        { PLACES("133", "173"), DATA("\4" E DIGEST SHARD "\0y\0" FILE_OF("1") "\0"), others },
        { PLACES("73", "113"), DATA("\4" E DIGEST SHARD "\0y\0other\0"), others },
        { PLACES("72", "112"), DATA("\4" E DIGEST "s\0y\0" FILE_OF("0") "\0\0\0"), others },
        { PLACES("7", "47"), DATA("\0" E ZEROS "a/b\0y\0\0"), others },
        { PLACES("3", "43"), DATA("\0" E ZEROS "abc"), others },
        { PLACES("3", "43"), DATA("\0" E ZEROS "a\0c"), others },
        { PLACES("5", "45"), DATA("\0" E ZEROS "a\0c\0d"), others },
        { "{" T("bytes", "U64", "1", "0", "8") "," T("sha256", "U8", "1,32", "8", "40") "}",
          DATA("\0" E ZEROS), others },
        { "{" T("bytes", "U64", "1", "0", "8") "," T("names", "U8", "32", "8", "40") "}",
          DATA("\0" E ZEROS), others },
        { "{" T("sha256", "U8", "1,32", "0", "32") "}", DATA(ZEROS), others },
        { "{" T("bytes", "U64", "2", "0", "16") "," T("sha256", "U8", "1,32", "16", "48") ","
          T("names", "U8", "5", "48", "53") "}", DATA("\0" E "\0" E ZEROS "a\0c\0\0"), others },
        { "{" T("bytes", "U64", "1", "0", "8") "," T("sha256", "U8", "2,32", "8", "72") ","
          T("names", "U8", "5", "72", "77") "}", DATA("\0" E ZEROS ZEROS "a\0c\0\0"), others },
        { "{" T("bytes", "U64", "1", "0", "8") "," T("sha256", "U8", "1,33", "8", "41") ","
          T("names", "U8", "5", "41", "46") "}", DATA("\0" E ZEROS "\0a\0c\0\0"), others },
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        sfti_ds_places p = { .count = 1 };
        p.bytes = put(&all[i], SFTI_PLACES_FILE, p.sha256);
        is(sfti_ds_places_read(&ds_storage, &arena, &p, &err), &all[i], i);
        if (all[i].says) continue;
        assert_string_equal(p.place[0].shard, SHARD);
        assert_string_equal(p.place[0].column, "y");
        if (i) assert_null(p.place[0].file);
        else assert_string_equal(p.place[0].sha256, "3031323334353637383961626364656630313233343536"
                                                    "373839616263646566");
        for (uint64_t count = 0; count < 2; count++) { /* none, and more than fit into the file */
            p.count = count ? UINT64_MAX : 0;
            assert_int_equal(sfti_ds_places_read(&ds_storage, &arena, &p, &err),
                             SFT_DATASET_SHARD);
            assert_non_null(strstr(err.message, others));
        }
    }
}

/* Places of two columns of two shards. */
static void two_places(void **state) {
    static const struct {
        const char *names;
        size_t len;
        bool good;
    } all[] = {
        { DATA("a\0x\0\0a\0y\0\0"), true },  { DATA("a\0x\0\0b\0x\0\0"), true },
        { DATA("a\0y\0\0a\0x\0\0"), false }, { DATA("a\0x\0\0a\0x\0\0"), false },
        { DATA("b\0x\0\0a\0x\0\0"), false },
    };
    char data[90] = { 0 };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const stranger s = { "{" T("bytes", "U64", "2", "0", "16") ","
                             T("sha256", "U8", "2,32", "16", "80") ","
                             T("names", "U8", "10", "80", "90") "}", data, 90,
                             all[i].good ? NULL : "found others" };
        sfti_ds_places p = { .count = 2 };
        assert_int_equal(all[i].len, 10);
        memcpy(data + 80, all[i].names, 10);
        p.bytes = put(&s, SFTI_PLACES_FILE, p.sha256);
        is(sfti_ds_places_read(&ds_storage, &arena, &p, &err), &s, i);
    }
}

/* Columns of one file count once; a place must be of a column that the manifest has, and of a
 * shard. */
static void checks(void **state) {
    const sfti_ds_place of[] = { { .shard = "a", .column = "x", .file = "f" },
                                 { .shard = "a", .column = "y", .file = "g" },
                                 { .shard = "a", .column = "z", .file = "f" },
                                 { .shard = "a", .column = "w" } };
    const sfti_ds_column columns[] = {
        { .name = { "x", 1 }, .has_dtype = true, .has_shape = true },
        { .name = { "w", 1 }, .has_dtype = true, .has_shape = true, .nullable = true },
    };
    sfti_ds_manifest m = { .mode = SFT_DATASET_BATCH, .column_count = 2,
                           .columns = (sfti_ds_column *)(uintptr_t)columns };
    sfti_ds_place lost = { .shard = "a", .column = "x" };
    (void)state;
    assert_true(sfti_ds_place_first(of, 0) && sfti_ds_place_first(of, 1));
    assert_false(sfti_ds_place_first(of, 2) || sfti_ds_place_first(of, 3));
    assert_int_equal(sfti_ds_place_check(&of[0], &m, &err), SFT_OK);
    assert_int_equal(sfti_ds_place_check(&of[3], &m, &err), SFT_OK);
    assert_int_equal(sfti_ds_place_check(&of[1], &m, &err), SFT_DATASET_SHARD);
    assert_non_null(strstr(err.message, "a: expected places of columns of the manifest, found"));
    assert_int_equal(sfti_ds_place_check(&lost, &m, &err), SFT_DATASET_SHARD); /* not nullable */
    m.mode = SFT_DATASET_KV;
    assert_int_equal(sfti_ds_place_check(&of[0], &m, &err), SFT_DATASET_SHARD);
    m.mode = SFT_DATASET_BATCH;
    const stranger s = { PLACES("68", "108"), DATA("\0" E ZEROS SHARD "\0w\0\0"), NULL };
    m.places.count = 1;
    m.places.bytes = put(&s, SFTI_PLACES_FILE, m.places.sha256);
    assert_int_equal(sfti_ds_places_load(&ds_storage, &arena, &m, &err), SFT_DATASET_SHARD);
    assert_string_equal(err.message, SFTI_DATASET_MANIFEST ": expected places of its shards, found "
                                                           "one of " SHARD);
}

/* ── Segments ── */

#define NUMBERS(shape) T("bytes", "U64", shape, "0", "8") "," \
    T("samples", "U64", "1", "8", "16") "," T("valid_samples", "U64", "1", "16", "24") "," \
    T("first_sample", "U64", "1", "24", "32") "," T("tensors", "U64", "1", "32", "40") "," \
    T("shadowed", "U64", "1", "40", "48")
#define SIX "\4" E "\3" E "\2" E "\0" E "\1" E "\0" E

static void segments(void **state) {
    static const char digests[] = "expected its digests, found others",
                      names[] = "expected names of files in this folder, found ";
    static const stranger all[] = {
        { "{" NUMBERS("1") "," T("sha256", "U8", "1,32", "48", "80") ","
          T("names", "U8", "2", "80", "82") "}", DATA(SIX DIGEST "a\0"), NULL },
        { "{" NUMBERS("1,1") "," T("sha256", "U8", "1,32", "48", "80") ","
          T("names", "U8", "2", "80", "82") "}", DATA(SIX DIGEST "a\0"),
          "expected its numbers, found others" },
        { "{" NUMBERS("1") "," T("names", "U8", "2", "48", "50") "}", DATA(SIX "a\0"), digests },
        { "{" NUMBERS("1") "," T("sha256", "I8", "1,32", "48", "80") ","
          T("names", "U8", "2", "80", "82") "}", DATA(SIX DIGEST "a\0"), digests },
        { "{" NUMBERS("1") "," T("sha256", "U8", "32", "48", "80") ","
          T("names", "U8", "2", "80", "82") "}", DATA(SIX DIGEST "a\0"), digests },
        { "{" NUMBERS("1") "," T("sha256", "U8", "2,16", "48", "80") ","
          T("names", "U8", "2", "80", "82") "}", DATA(SIX DIGEST "a\0"), digests },
        { "{" NUMBERS("1") "," T("sha256", "U8", "1,16", "48", "64") ","
          T("names", "U8", "2", "64", "66") "}", DATA(SIX "0123456789abcdef" "a\0"), digests },
        { "{" NUMBERS("1") "," T("sha256", "U8", "1,32", "48", "80") ","
          T("names", "I8", "2", "80", "82") "}", DATA(SIX DIGEST "a\0"), names },
        { "{" NUMBERS("1") "," T("sha256", "U8", "1,32", "48", "80") ","
          T("names", "U8", "2,1", "80", "82") "}", DATA(SIX DIGEST "a\0"), names },
        { "{}", DATA(""), "expected its numbers, found others" },
        { "[]", DATA(""), "expected a safetensors file, found" },
    };
    static char data[80 + 1026], header[1000];
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        sfti_ds_segment s = { .shards = 1 };
        sfti_ds_shard *shards = NULL;
        s.bytes = put(&all[i], SFTI_SEGMENT_FILE, s.sha256);
        is(sfti_ds_segment_read(&ds_storage, &s, &arena, &arena, &shards, &err), &all[i], i);
        if (all[i].says) continue;
        assert_string_equal(shards[0].facts.name, "a");
        assert_int_equal(shards[0].facts.samples, 3);
        assert_int_equal(shards[0].facts.valid_samples, 2);
        assert_int_equal(shards[0].facts.bytes, 4);
    }
    for (size_t len = 1024; len < 1026; len++) { /* the longest name, and one more byte */
        (void)snprintf(header, sizeof header, "{" NUMBERS("1") "," T("sha256", "U8", "1,32", "48",
                       "80") "," T("names", "U8", "%zu", "80", "%zu") "}", len + 1, len + 81);
        memcpy(data, SIX DIGEST, 80);
        memset(data + 80, 'a', len);
        data[80 + len] = '\0';
        const stranger s = { header, data, len + 81, len == 1024 ? NULL : names };
        sfti_ds_segment one = { .shards = 1 };
        sfti_ds_shard *shards = NULL;
        one.bytes = put(&s, SFTI_SEGMENT_FILE, one.sha256);
        is(sfti_ds_segment_read(&ds_storage, &one, &arena, &arena, &shards, &err), &s, len);
    }
}

/* A storage that fails otherwise is not a damaged file. */
static sft_code no_open(void *ctx, const char *name, sft_source *source, sft_error *e) {
    (void)ctx, (void)name, (void)source;
    return sft_error_set(e, SFT_IO_READ, 5, "it failed");
}

static void storage_fails(void **state) {
    sft_storage s = ds_storage;
    sfti_ds_masks m = { .shards = 1, .sha256 = DIGEST DIGEST };
    sfti_ds_segment segment = { .shards = 1, .sha256 = DIGEST DIGEST };
    sfti_ds_shard *shards = NULL;
    (void)state;
    assert_int_equal(sfti_ds_masks_read(&s, &arena, &m, &err), SFT_DATASET_SHARD);
    assert_non_null(strstr(err.message, "expected the masks that the manifest names, found none"));
    storage_own(&s)->open = no_open;
    assert_int_equal(sfti_ds_masks_read(&s, &arena, &m, &err), SFT_IO_READ);
    assert_string_equal(err.message, "it failed");
    assert_int_equal(sfti_ds_segment_read(&s, &segment, &arena, &arena, &shards, &err),
                     SFT_IO_READ);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    static const struct CMUnitTest tests[] = {
        TEST(masks), TEST(places), TEST(two_places), TEST(checks), TEST(segments),
        TEST(storage_fails),
    };
    return cmocka_run_group_tests_name("dataset_addressed", tests, NULL, NULL);
}
