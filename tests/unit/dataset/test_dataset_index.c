/* verify compares an index with the dataset, by the Parquet footer alone. */
#define _GNU_SOURCE
#include "unit/dataset_case.h"
#include "unit/parquet_footer.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_index, ds_make, ds_remove),
        cmocka_unit_test_setup_teardown(a_broken_footer, ds_make, ds_remove),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sft_buffer_free(&out);
    return failed;
}
