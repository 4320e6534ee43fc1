/* verify holds an index against the dataset, by the Parquet footer alone. */
#define _GNU_SOURCE
#include "dataset_case.h"

static sft_error err;
static sft_buffer out;
static char shard[2][SFTI_DATASET_NAME], commit[37];

/* ── A footer ── */

typedef struct parquet {
    uint8_t bytes[1024];
    size_t len;
} parquet;

static void put(parquet *p, const void *bytes, size_t len) {
    assert_true(len <= sizeof p->bytes - p->len);
    memcpy(p->bytes + p->len, bytes, len);
    p->len += len;
}
#define PUT(p, text) put(p, text, sizeof(text) - 1)

static void put_text(parquet *p, const char *text) {
    uint8_t len = (uint8_t)strlen(text);
    put(p, &len, 1);
    put(p, text, len);
}

/* rows, below 64; files: least and greatest, or NULL; commit, or NULL; the fourth column. */
static parquet footer(uint8_t rows, const char *least, const char *most, const char *of,
                      const char *fourth) {
    parquet p = { { 0 }, 0 };
    uint8_t twice = (uint8_t)(2 * rows), len[8] = { 0, 0, 0, 0, 'P', 'A', 'R', '1' };
    PUT(&p, "PAR1\x16\x02\x19\x5c\x48\x06schema\x16\x08\x00\x48\x0atensor_key\x00"
            "\x48\x09" "file_name\x00\x48\x05shape\x00\x48");
    put_text(&p, fourth);
    PUT(&p, "\x00\x16");
    put(&p, &twice, 1);
    PUT(&p, "\x19\x1c\x19");
    if (least) {
        PUT(&p, "\x1c\x26\x08\x1c\x16\x0c\x29\x18\x09" "file_name\x26\x06\x7c\x36\x00\x28");
        put_text(&p, most);
        PUT(&p, "\x18");
        put_text(&p, least);
        PUT(&p, "\x11\x12\x00\x00\x00");
    } else {
        PUT(&p, "\x0c");
    }
    PUT(&p, "\x16\x00\x16\x06\x00");
    if (of) {
        PUT(&p, "\x19\x2c\x18\x05other\x18\x04text\x00\x18\x06" "commit\x18");
        put_text(&p, of);
        PUT(&p, "\x00");
    }
    PUT(&p, "\x00");
    len[0] = (uint8_t)(p.len - 4);
    len[1] = (uint8_t)((p.len - 4) >> 8);
    put(&p, len, 8);
    return p;
}

/* ── A dataset ── */

static void make(void) {
    static const char none[] = "\"index\":null";
    char text[1 << 14] = { 0 }, told[(1 << 14) + 40];
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    sft_commit *c = ds_begin(o, SFT_COMMIT_OVERWRITE);
    ds_batch(c, 0, 0, 4, 4);
    ds_batch(c, 1, 0, 4, 4);
    ds_end(c);
    sft_dataset_options_free(o);
    assert_true(temp_read(SFTI_DATASET_MANIFEST, text, sizeof text - 1) > 0);
    char *at = strstr(text, none);
    assert_non_null(at);
    (void)snprintf(told, sizeof told, "%.*s\"index\":\"" SFTI_DATASET_INDEX "\"%s",
                   (int)(at - text), text, at + sizeof none - 1);
    temp_write(SFTI_DATASET_MANIFEST, told, strlen(told));
    sft_dataset *d = ds_open();
    for (size_t i = 0; i < 2; i++)
        (void)snprintf(shard[i], sizeof *shard, "%s", sft_dataset_shard_at(d, i)->name);
    memcpy(commit, strstr(sft_dataset_manifest(d).data, "\"commit\":\"") + 10, 36);
    sft_dataset_close(d);
}

static bool verify(void) {
    bool whole = false;
    sft_sink sink = sft_sink_memory(&out);
    assert_int_equal(sft_dataset_verify_json(&ds_storage, false, "d", NULL, &sink, &whole, NULL,
                                             &err), SFT_OK);
    assert_int_equal(sink.finish(sink.ctx, &err), SFT_OK);
    assert_true(sfti_buffer_put(&out, "", 1));
    return whole;
}

static void finds(parquet p, const char *message) {
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
    finds(footer(2, shard[0], shard[1], commit, "dtype"), NULL);
    finds(footer(2, NULL, NULL, commit, "dtype"), NULL);
    finds(footer(3, shard[0], shard[1], commit, "dtype"),
          "expected a row for each of 2 tensors, found 3");
    finds(footer(2, "part-", shard[1], commit, "dtype"),
          "expected names of the manifest's shards, found part-\"");
    finds(footer(2, shard[0], "z", commit, "dtype"),
          "expected names of the manifest's shards, found z\"");
    finds(footer(2, shard[0], shard[1], other, "dtype"),
          "expected the index of this commit, found 00000000-0000-4000-8000-000000000000");
    finds(footer(2, shard[0], shard[1], NULL, "dtype"), "found one that tells none");
    finds(footer(2, shard[0], shard[1], commit, "dtypes"), "found others");
}

/* Nothing is read past its end, whatever a byte says; the sanitizers look on. */
static void a_broken_footer(void **state) {
    (void)state;
    make();
    parquet good = footer(2, shard[0], shard[1], commit, "dtype");
    for (size_t i = 4; i < good.len; i++) {
        parquet bad = good;
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
    parquet deep = { { 0 }, 0 };
    PUT(&deep, "PAR1");
    for (int i = 0; i < 100; i++) PUT(&deep, "\x1c");
    PUT(&deep, "\x64\x00\x00\x00PAR1");
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
