/* verify compares an index with the dataset, by the Parquet footer alone. */
#define _GNU_SOURCE
#include "unit/dataset_case.h"
#include "unit/parquet_footer.h"
#include "dataset/read/manifest.h"

static sft_error err;
static sft_buffer out;
static char shard[2][SFTI_DATASET_NAME], commit[37];

/* ── A dataset ── */

static void make(void) {
    static const char none[] = "\"index\":null";
    char text[1 << 14] = { 0 }, manifest[(1 << 14) + 40];
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    sft_commit *c = ds_begin(o, SFT_COMMIT_OVERWRITE);
    ds_batch(c, 0, 0, 4, 4);
    ds_batch(c, 1, 0, 4, 4);
    ds_end(c);
    sft_dataset_options_free(o);
    assert_true(temp_read(SFTI_DATASET_MANIFEST, text, sizeof text - 1) > 0);
    char *at = strstr(text, none);
    assert_non_null(at);
    (void)snprintf(manifest, sizeof manifest, "%.*s\"index\":\"" SFTI_DATASET_INDEX "\"%s",
                   (int)(at - text), text, at + sizeof none - 1);
    temp_write(SFTI_DATASET_MANIFEST, manifest, strlen(manifest));
    sft_dataset *d = ds_open();
    for (size_t i = 0; i < 2; i++)
        (void)snprintf(shard[i], sizeof *shard, "%s", sft_dataset_shard_at(d, i)->name);
    sft_span text_of = sft_dataset_manifest(d);
    memcpy(commit, (char *)memmem(text_of.data, text_of.len, "\"commit\":\"", 10) + 10, 36);
    sft_dataset_close(d);
}

static bool verify(void) {
    bool whole = false;
    sft_sink sink = sft_sink_memory(&out);
    assert_int_equal(sft_dataset_verify_json(&ds_storage, false, NULL, "d", &sink, &whole, NULL,
                                             &err), SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    assert_true(sfti_buffer_put(&out, "", 1));
    return whole;
}

static void finds(pf_file p, const char *message) {
    temp_write(SFTI_DATASET_INDEX, p.bytes, p.len);
    if (verify() != !message) fail_msg("%s", out.data);
    if (message && !strstr(out.data, message))
        fail_msg("expected %s\nin %s", message, out.data);
}

/* ── Tests ── */

static void an_index(void **state) {
    static const char other[] = "00000000-0000-4000-8000-000000000000";
    (void)state;
    make();
    finds(pf_index(2, shard[0], shard[1], commit, "dtype"), NULL);
    finds(pf_index(2, NULL, NULL, commit, "dtype"), NULL);
    finds(pf_index(3, shard[0], shard[1], commit, "dtype"),
          "expected a row for each of 2 tensors, found 3");
    finds(pf_index(2, "part-", shard[1], commit, "dtype"),
          "expected names of the manifest's shards");
    finds(pf_index(2, shard[0], "z", commit, "dtype"), "expected names of the manifest's shards");
    finds(pf_index(2, shard[0], shard[1], commit, "dtypes"), "found others");
    /* Readers ignore one of another commit. */
    finds(pf_index(3, shard[0], "z", other, "dtype"), NULL);
    assert_non_null(strstr(out.data, "an index of another commit; readers ignore it"));
    finds(pf_index(2, shard[0], shard[1], NULL, "dtype"), NULL);
    assert_non_null(strstr(out.data, "\"orphan_count\":1,"));
}

/* Nothing is read past its end, whatever a byte says: for the sanitizers. */
static void a_broken_footer(void **state) {
    (void)state;
    make();
    pf_file good = pf_index(2, shard[0], shard[1], commit, "dtype");
    for (size_t i = 4; i < good.len; i++) {
        pf_file bad = good;
        for (unsigned bits = 1; bits < 256; bits = 16 * bits + 15) {
            bad.bytes[i] = good.bytes[i] ^ (uint8_t)bits;
            temp_write(SFTI_DATASET_INDEX, bad.bytes, bad.len);
            (void)verify();
        }
    }
    for (size_t len = 0; len < good.len; len++) {
        temp_write(SFTI_DATASET_INDEX, good.bytes, len);
        assert_false(verify());
        assert_non_null(strstr(out.data, "expected a Parquet file, found "));
    }
    pf_file deep = { { 0 }, 0 };
    PF_PUT(&deep, "PAR1");
    for (int i = 0; i < 100; i++) PF_PUT(&deep, "\x1c");
    PF_PUT(&deep, "\x64\x00\x00\x00PAR1");
    finds(deep, "a footer that cannot be read");
}

/* ── Footers by hand ── */

typedef struct footer {
    const char *bytes;
    size_t len;
    const char *says; /* NULL: is one, of `rows` */
    uint64_t rows;
} footer;

static sft_code read_footer(const footer *f, size_t len, sfti_arena *arena, sfti_ds_index *index) {
    pf_file p = { { 0 }, 0 };
    const uint8_t size[4] = { (uint8_t)(len & 255), (uint8_t)(len >> 8), 0, 0 };
    PF_PUT(&p, "PAR1");
    pf_put(&p, f->bytes, len);
    pf_put(&p, size, 4);
    PF_PUT(&p, "PAR1");
    temp_write("footer", p.bytes, p.len);
    return sfti_ds_index_read(&ds_storage, "footer", arena, index, &err);
}

#define DATA(text) text, sizeof(text) - 1
#define CHUNK(least, most) "\x19\x1c\x3c\x39\x18\x09" "file_name\x9c\x58\x01" most "\x18\x01" \
    least "\x00\x00\x00\x00"

static void footers(void **state) {
    static const char unread[] = "expected a Parquet file, found a footer that cannot be read";
    static const footer all[] = {
        { DATA("\x36\x04\x00"), NULL, 2 },                 /* num_rows */
        { DATA("\x06\x06\x04\x00"), NULL, 2 },             /* with its number in full */
        { DATA("\x35\x04\x00"), NULL, 2 },                 /* as 32 bits */
        { DATA("\x11\x25\x04\x00"), NULL, 2 },             /* behind a boolean */
        { DATA("\x19\x21\x01\x00\x26\x04\x00"), NULL, 2 }, /* two booleans in a list */
        { DATA("\x1a\xf3\x10" "0123456789abcdef\x26\x04\x00"), NULL, 2 }, /* 16 bytes in a set */
        { DATA("\x17" "01234567\x26\x04\x00"), NULL, 2 },   /* a double */
        { DATA("\x1c\x14\x04\x00\x26\x04\x00"), NULL, 2 }, /* 16 bits in a struct */
        { DATA("\x36\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00"), NULL, INT64_MAX },
        { DATA("\x00"), unread, 0 },                       /* without rows */
        { DATA("\x36\x01\x00"), unread, 0 },               /* -1 of them */
        { DATA("\x36\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00"), unread, 0 },
        { DATA("\x06\x01\x04\x00"), unread, 0 },           /* field -1 */
        { DATA("\x06\x00\x04\x00"), unread, 0 },           /* field 0 */
        { DATA("\x06\x80\x80\x04\x04\x00"), unread, 0 },   /* field 32768 */
        { DATA("\x1b\x00\x26\x04\x00"), unread, 0 },       /* a map */
        { DATA("\x1d\x26\x04\x00"), unread, 0 },           /* of no type */
        { DATA("\x18\x7f" "abc\x26\x04\x00"), unread, 0 },   /* a text beyond the end */
        { DATA("\x19\x10\x26\x04\x00"), unread, 0 },       /* a list of no type */
    };
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sfti_ds_index index;
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        sft_code code = read_footer(&all[i], all[i].len, &arena, &index);
        if (all[i].says) {
            assert_int_equal(code, SFT_DATASET_SHARD);
            assert_string_equal(err.message, all[i].says);
        } else {
            if (code) fail_msg("%zu: %s", i, err.message);
            assert_int_equal(index.rows, all[i].rows);
        }
        for (size_t len = 0; len < all[i].len; len++) /* cut anywhere */
            assert_int_equal(read_footer(&all[i], len, &arena, &index), SFT_DATASET_SHARD);
    }
    /* The bounds are those of all row groups. */
    static const footer groups = { DATA("\x36\x04\x19\x3c" CHUNK("m", "p") CHUNK("a", "z")
                                        CHUNK("n", "o") "\x00"), NULL, 2 };
    assert_int_equal(read_footer(&groups, groups.len, &arena, &index), SFT_OK);
    assert_true(sft_span_equal(index.first, sft_span_cstr("a")));
    assert_true(sft_span_equal(index.last, sft_span_cstr("z")));
    for (int way = 0; way < 2; way++) { /* more than the file has, and more than is read */
        static uint8_t big[1 << 10];
        const uint32_t len = way ? UINT32_C(0x7fffffff) : 200;
        memcpy(big, "PAR1", 4);
        for (int i = 0; i < 4; i++) big[sizeof big - 8 + i] = (uint8_t)(len >> 8 * i);
        memcpy(big + sizeof big - 4, "PAR1", 4);
        temp_write("footer", big + (way ? 0 : 900), sizeof big - (way ? 0 : 900));
        assert_int_equal(sfti_ds_index_read(&ds_storage, "footer", &arena, &index, &err),
                         SFT_DATASET_SHARD);
        assert_string_equal(err.message, "expected a Parquet file, found a footer too long");
    }
    /* A footer of 65 MiB, in a file that has room for it. */
    static const uint8_t tail[] = { 0, 0, 0x10, 4, 'P', 'A', 'R', '1' };
    temp_write("footer", "PAR1", 4);
    FILE *file = fopen(temp_path("footer"), "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 70 << 20, SEEK_SET), 0);
    assert_int_equal(fwrite(tail, 1, sizeof tail, file), sizeof tail);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(sfti_ds_index_read(&ds_storage, "footer", &arena, &index, &err),
                     SFT_DATASET_SHARD);
    assert_string_equal(err.message, "expected a Parquet file, found a footer too long");
    sfti_arena_free(&arena);
}

/* ── An index of several files ── */

static void a_folder(void **state) {
    (void)state;
    make();
    const pf_file one = pf_index(1, shard[0], shard[0], commit, "dtype"),
                  two = pf_index(1, shard[1], shard[1], commit, "dtype"),
                  bad = pf_index(1, "z", "z", commit, "dtype");
    assert_int_equal(mkdir(temp_path(SFTI_DATASET_INDEX), 0777), 0);
    temp_write(SFTI_DATASET_INDEX "/part-0.parquet", one.bytes, one.len);
    assert_false(verify());
    assert_non_null(strstr(out.data, "expected a row for each of 2 tensors, found 1"));
    temp_write(SFTI_DATASET_INDEX "/part-1.parquet", two.bytes, two.len);
    assert_true(verify());
    /* What else Spark leaves there is none of it. */
    temp_write(SFTI_DATASET_INDEX "/_SUCCESS.parquet", "x", 1);
    temp_write(SFTI_DATASET_INDEX "/.part-0.parquet", "x", 1);
    temp_write(SFTI_DATASET_INDEX "/part-2.crc", "x", 1);
    assert_int_equal(mkdir(temp_path(SFTI_DATASET_INDEX "/more.parquet"), 0777), 0);
    assert_true(verify());
    temp_write(SFTI_DATASET_INDEX "/part-2.parquet", bad.bytes, bad.len);
    assert_false(verify());
    assert_non_null(strstr(out.data, "expected names of the manifest's shards"));
    temp_write(SFTI_DATASET_INDEX "/part-2.parquet", "x", 1);
    assert_false(verify());
    assert_non_null(strstr(out.data, "expected a Parquet file, found too few bytes"));
}

/* Another program's manifest does not say whether the index is its own: a note, no finding. */
static void of_another_program(void **state) {
    char text[1 << 14] = { 0 };
    (void)state;
    make();
    assert_true(temp_read(SFTI_DATASET_MANIFEST, text, sizeof text - 1) > 0);
    char *at = strstr(text, "libsafetensors");
    assert_non_null(at);
    memcpy(at, "notsafetensors", 14);
    temp_write(SFTI_DATASET_MANIFEST, text, strlen(text));
    static const char stale[] = "an index of other shards; readers ignore it";
    const struct {
        pf_file p;
        bool stale;
    } all[] = {
        { pf_index(2, shard[0], shard[1], NULL, "dtype"), false },
        { pf_index(2, shard[0], shard[1], NULL, "dtypes"), true },
        { pf_index(2, shard[0], "z", NULL, "dtype"), true },
        { pf_index(3, shard[0], shard[1], NULL, "dtype"), true },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        finds(all[i].p, NULL);
        if (!strstr(out.data, stale) == all[i].stale) fail_msg("%zu: %s", i, out.data);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_index, ds_make, ds_remove),
        cmocka_unit_test_setup_teardown(a_broken_footer, ds_make, ds_remove),
        cmocka_unit_test_setup_teardown(footers, ds_make, ds_remove),
        cmocka_unit_test_setup_teardown(a_folder, ds_make, ds_remove),
        cmocka_unit_test_setup_teardown(of_another_program, ds_make, ds_remove),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sft_buffer_free(&out);
    return failed;
}
