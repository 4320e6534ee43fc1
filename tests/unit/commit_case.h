/* What tests of commits share: a dataset as it was published, and a storage that fails. */
#ifndef COMMIT_CASE_H
#define COMMIT_CASE_H

#include "unit/dataset_case.h"

#include "dataset/commit/commit.h"
#include "unit/storage_table.h"

#include <inttypes.h>
#include <pthread.h>
#include <sys/wait.h>

static sft_error err;

#define FOLDER_TEST(name) cmocka_unit_test_setup_teardown(name, ds_make, ds_remove)

/* ── What was published ── */

static inline void text_has(const char *part, bool there) {
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    assert_true(temp_read(SFTI_DATASET_MANIFEST, text, (1 << 20) - 1) > 0);
    if ((strstr(text, part) != NULL) != there)
        fail_msg("%s %s\nin %s", there ? "expected" : "unexpected", part, text);
    free(text);
}

/* The tensor "name" is in the dataset, in the shard that wins, with these bytes. */
static inline void key_is(const sft_dataset *d, const char *key, char fill) {
    const sft_tensor *found = NULL;
    sft_file *file = NULL;
    char bytes[8] = { 0 };
    for (size_t i = sft_dataset_shard_count(d); i-- > 0 && !found;) {
        assert_int_equal(sft_dataset_shard_open(d, i, NULL, &file, &err), SFT_OK);
        found = sft_file_find_cstr(file, key);
        if (!found) sft_close(file);
    }
    if (!found) fail_msg("%s is not there", key);
    sft_source source = sft_file_source(file);
    size_t got = 0;
    assert_int_equal(sft_source_read(&source, found->offset, bytes, 8, &got, &err), SFT_OK);
    for (int i = 0; i < 8; i++) assert_int_equal(bytes[i], fill);
    sft_close(file);
}

static inline void dataset_is(uint64_t version, size_t shards, uint64_t samples) {
    char version_text[64];
    sft_dataset *d = ds_open();
    assert_int_equal(sft_dataset_shard_count(d), shards);
    assert_int_equal(sft_dataset_samples(d), samples);
    (void)snprintf(version_text, sizeof version_text, "\"version\":%" PRIu64 ",", version);
    text_has(version_text, true);
    for (size_t i = 0; i < shards; i++) {
        sft_file *file;
        if (sft_dataset_shard_open(d, i, NULL, &file, &err)) fail_msg("%s", err.message);
        sft_close(file);
    }
    sft_dataset_close(d);
    assert_int_equal(ds_count("part-"), shards);
    assert_int_equal(ds_count("_job-"), 0);
}

static inline sft_code prepare(sft_commit *c) { return sft_commit_prepare(c, NULL, &err); }

static inline sft_code publish(sft_commit *c, const char *index) {
    return sft_commit_publish(c, index, ds_warn, NULL, NULL, &err);
}

/* A KV dataset of these names, one shard each part; '|' separates parts. */
static inline void make_kv(const sft_dataset_options *o, sft_commit_mode how, const char *parts,
                    char fill) {
    sft_commit *c = ds_begin(o, how);
    char one[400];
    uint64_t partition = 0;
    for (const char *at = parts; at && *at;) {
        const char *bar = strchr(at, '|');
        (void)snprintf(one, sizeof one, "%.*s", (int)(bar ? bar - at : (long)strlen(at)), at);
        ds_kv_on(c, &ds_storage, partition++, 0, one, fill);
        at = bar ? bar + 1 : NULL;
    }
    ds_end(c);
}

/* ── A storage that fails at one function ── */

static inline sft_commit *begin_on(const sft_dataset_options *o, const sft_storage *storage,
                            sft_commit_mode how) {
    sft_commit_options options = SFT_COMMIT_OPTIONS_INIT;
    sft_commit *c;
    options.mode = how;
    if (sft_commit_open(o, storage, NULL, &options, &c, &err)) fail_msg("%s", err.message);
    return c;
}

#endif
