/* What tests of maintenance share: its calls, and datasets to damage. */
#ifndef MAINTAIN_CASE_H
#define MAINTAIN_CASE_H

#include "unit/dataset_case.h"
#include "unit/storage_table.h"

#include <inttypes.h>
#include <sys/time.h>
#include <time.h>

static sft_error err;
static sft_buffer out; /* the last result, with NUL */
static bool whole;

#define FOLDER_TEST(name) cmocka_unit_test_setup_teardown(name, ds_make, ds_remove)

/* ── Results ── */

static inline void finish(sft_sink *sink, sft_code code) {
    if (code) {
        sft_sink_abandon(sink);
        fail_msg("%s", err.message);
    }
    assert_int_equal(sft_sink_finish(sink, &err), SFT_OK);
    assert_true(sfti_buffer_put(&out, "", 1));
}

static inline void verify(bool deep) {
    sft_sink sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_verify_json(&ds_storage, deep, NULL, "d", &sink, &whole, NULL, &err));
    assert_int_equal(whole, strstr(out.data, "\"ok\":true") != NULL);
}

static inline void has(const char *part) {
    if (!strstr(out.data, part)) fail_msg("expected %s\nin %s", part, out.data);
}

static inline void has_not(const char *part) {
    if (strstr(out.data, part)) fail_msg("unexpected %s\nin %s", part, out.data);
}

static inline void verify_whole(bool deep) {
    verify(deep);
    if (!whole) fail_msg("%s", out.data);
    has("\"findings\":[]");
}

static inline void gc(uint64_t grace, bool remove) {
    sft_sink sink = sft_sink_memory(&out);
    finish(&sink, sft_dataset_gc_json(&ds_storage, gc_how(grace, remove), "d", &sink, &err));
}

/* ── Damage ── */

static char manifest[1 << 16];

static inline void read_manifest(void) {
    memset(manifest, 0, sizeof manifest);
    assert_true(temp_read(SFTI_DATASET_MANIFEST, manifest, sizeof manifest - 1) > 0);
}

/* Replaces the first occurrence in the manifest. */
static inline void edit(const char *from, const char *to) {
    static char text[1 << 16];
    read_manifest();
    char *at = strstr(manifest, from);
    if (!at) fail_msg("no %s in %s", from, manifest);
    (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - manifest), manifest, to,
                   at + strlen(from));
    temp_write(SFTI_DATASET_MANIFEST, text, strlen(text));
}

static char shard[4][200]; /* names, in the order of samples */

static inline void keep_names(void) {
    sft_dataset *d = ds_open();
    for (size_t i = 0; i < 4 && i < sft_dataset_shard_count(d); i++)
        (void)snprintf(shard[i], sizeof shard[0], "%s", sft_dataset_shard_at(d, i)->name);
    sft_dataset_close(d);
}

static inline void age(const char *name, time_t seconds) {
    time_t then = time(NULL) - seconds;
    struct timeval times[2] = { { then, 0 }, { then, 0 } };
    assert_int_equal(utimes(temp_path(name), times), 0);
}

static inline void make_batch(void) {
    ds_batches();
    keep_names();
}

static inline void make_kv(void) {
    sft_dataset_options *o = ds_options("name_col=id", "duplicatesStrategy=lastWin", NULL);
    sft_commit *c = ds_begin(o, SFT_COMMIT_OVERWRITE);
    ds_kv_on(c, &ds_storage, 0, 0, "a,b,c", 1);
    ds_kv_on(c, &ds_storage, 1, 0, "d,b", 2);
    ds_kv_on(c, &ds_storage, 2, 0, "e,f", 3);
    ds_end(c);
    sft_dataset_options_free(o);
    keep_names();
}

/* ── gc ── */

#define UUID "01234567-89ab-4def-8123-456789abcdef"
#define ORPHAN "part-00009-0000-" UUID ".safetensors"

static inline void orphan(const char *name, bool marked) {
    ds_tensor tensor = { "x", SFT_F32, 1, { 3 }, 1 };
    ds_put(&ds_storage, name, &tensor, 1, "kv", marked ? "1" : NULL, NULL);
}

static inline void foreign(void) {
    orphan("mine.safetensors", false);
    orphan("model-00001-of-00002.safetensors", true); /* with the mark, but not our name */
    orphan("part-00008-0000-" UUID ".safetensors", false); /* with our name, but without the mark */
    temp_write("part-00007-0000-" UUID ".safetensors", "not one", 7);
    temp_write("README", "x", 1);
    assert_int_equal(mkdir(temp_path("_job-mine"), 0777), 0);
    assert_int_equal(mkdir(temp_path("sub"), 0777), 0);
    temp_write("sub/" ORPHAN, "x", 1);
    static const char *const all[] = { "mine.safetensors", "model-00001-of-00002.safetensors",
                                       "part-00008-0000-" UUID ".safetensors",
                                       "part-00007-0000-" UUID ".safetensors", "README",
                                       "_job-mine", "sub" };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) age(all[i], 1000000);
}

static inline void foreign_there(void) {
    assert_true(ds_exists("mine.safetensors") && ds_exists("README") && ds_exists("_job-mine"));
    assert_true(ds_exists("model-00001-of-00002.safetensors") && ds_exists("sub/" ORPHAN));
    assert_true(ds_exists("part-00008-0000-" UUID ".safetensors"));
    assert_true(ds_exists("part-00007-0000-" UUID ".safetensors"));
    assert_true(ds_exists(SFTI_DATASET_MANIFEST));
}

#endif
