/* Commits on a storage that fails at one function: what stays, what is warned of. */
#define _GNU_SOURCE
#include "unit/commit_case.h"

/* ── A storage that fails at one function ── */

static struct {
    const char *call;
    size_t nth;
    bool after; /* it is done nevertheless */
    bool broken; /* and nothing can be read afterwards */
    bool killed; /* the process is */
} failing;

static bool fails_now(const char *call) {
    if (!failing.call || strcmp(failing.call, call) != 0) return false;
    if (failing.nth == 0 || --failing.nth) return false;
    if (failing.killed) _exit(0);
    return true;
}

static sft_code it_failed(sft_error *e) {
    if (failing.after && failing.broken) failing.call = "open", failing.nth = 0;
    if (e) *e = (sft_error)SFT_ERROR_INIT;
    return sft_error_set(e, SFT_IO_WRITE, 0, "it failed");
}

static sft_code put_finish(void *ctx, sft_error *e) {
    sft_sink *inner = ctx;
    sft_sink sink = *inner;
    free(inner);
    if (!fails_now("put")) return sft_sink_finish(&sink, e);
    if (failing.after) (void)!sft_sink_finish(&sink, e);
    else sft_sink_abandon(&sink);
    return it_failed(e);
}

static sft_code put_write(void *ctx, uint64_t at, const void *bytes, size_t len, sft_error *e) {
    sft_sink *inner = ctx;
    return sft_sink_write(inner, at, bytes, len, e);
}

static void put_abandon(void *ctx) {
    sft_sink *inner = ctx;
    sft_sink_abandon(inner);
    free(inner);
}

static const sft_sink_vtable write_sink_vtable = {
    sizeof(sft_sink_vtable), NULL, put_write, put_finish, put_abandon, NULL, NULL
};

static sft_code failing_create(void *ctx, const char *name, bool replace, sft_sink *out,
                               sft_error *e) {
    sft_code code = ds_storage.vtable->create(ctx, name, replace, out, e);
    if (code || strcmp(name, SFTI_DATASET_MANIFEST) != 0) return code;
    sft_sink *inner = malloc(sizeof *inner);
    assert_non_null(inner);
    *inner = *out;
    *out = (sft_sink){ inner, &write_sink_vtable, out->seekable };
    return SFT_OK;
}

static sft_code failing_open(void *ctx, const char *name, sft_source *out, sft_error *e) {
    if (failing.broken && failing.call && strcmp(failing.call, "open") == 0) {
        if (e) *e = (sft_error)SFT_ERROR_INIT;
        return sft_error_set(e, SFT_IO_READ, 0, "it failed");
    }
    return ds_storage.vtable->open(ctx, name, out, e);
}

static sft_code failing_move(void *ctx, const char *from, const char *to, sft_error *e) {
    return fails_now("move") ? it_failed(e) : ds_storage.vtable->move(ctx, from, to, e);
}

static sft_code failing_settle(void *ctx, const char *folder, sft_error *e) {
    return fails_now("settle") ? it_failed(e) : ds_storage.vtable->sync_folder(ctx, folder, e);
}

static sft_code failing_remove(void *ctx, const char *name, bool folder, sft_error *e) {
    return fails_now("remove") ? it_failed(e) : ds_storage.vtable->remove(ctx, name, folder, e);
}

static sft_storage failing_storage(void) {
    sft_storage s = ds_storage;
    memset(&failing, 0, sizeof failing);
    storage_own(&s)->create = failing_create;
    storage_own(&s)->open = failing_open;
    storage_own(&s)->move = failing_move;
    storage_own(&s)->sync_folder = failing_settle;
    storage_own(&s)->remove = failing_remove;
    return s;
}

/* Before the manifest each failure leaves the old dataset, index and all. */
static void fails_before(void **state) {
    static const struct {
        const char *call;
        size_t nth;
    } rows[] = { { "move", 1 }, { "move", 2 }, { "settle", 1 }, { "put", 1 }, { "move", 3 },
                 { "move", 4 } }; /* the last two: a folder and the index in its place */
    sft_dataset_options *o = ds_options("name_col=id", "generate_index=true", NULL);
    sft_storage s = failing_storage();
    (void)state;
    for (int folder = 0; folder < 2; folder++)
        for (size_t i = 0; i < (folder ? sizeof rows / sizeof *rows : 4); i++) {
            char index[200], text[16] = { 0 };
            make_kv(o, SFT_COMMIT_OVERWRITE, "a", 1);
            if (folder) {
                assert_int_equal(mkdir(temp_path(SFTI_DATASET_INDEX), 0777), 0);
                temp_write(SFTI_DATASET_INDEX "/part-0.parquet", "old", 3);
            } else {
                temp_write(SFTI_DATASET_INDEX, "old", 3);
            }
            sft_commit *c = begin_on(o, &s, SFT_COMMIT_OVERWRITE);
            ds_kv(c, 0, 0, "b");
            ds_kv(c, 1, 0, "c");
            assert_int_equal(prepare(c), SFT_OK);
            (void)snprintf(index, sizeof index, "%s/index", sft_commit_job_folder(c));
            temp_write(index, "new", 3);
            failing.call = rows[i].call;
            failing.nth = rows[i].nth;
            failing.after = false;
            assert_int_equal(publish(c, "index"), SFT_IO_WRITE);
            assert_string_equal(err.message, "it failed");
            failing.call = NULL;
            assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
            sft_commit_close(c);
            assert_true(temp_read(folder ? SFTI_DATASET_INDEX "/part-0.parquet"
                                         : SFTI_DATASET_INDEX,
                                  text, 15) == 3);
            assert_string_equal(text, "old");
            sft_dataset *d = ds_open();
            key_is(d, "a__v", 1);
            sft_dataset_close(d);
            assert_int_equal(ds_count("part-"), 1);
            assert_int_equal(ds_count("_job-"), 0);
        }
    sft_dataset_options_free(o);
}

/* A kill before the commit point leaves the old index; after it the index of another commit, which
 * readers ignore, is replaced, or stays with a warning. */
static void index_behind(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", "generate_index=true", NULL);
    sft_storage s = failing_storage();
    char index[200], text[16] = { 0 };
    (void)state;
    make_kv(o, SFT_COMMIT_NEW, "a", 1);
    temp_write(SFTI_DATASET_INDEX, "old", 3);
    for (int way = 0; way < 3; way++) {
        sft_commit *c = begin_on(o, &s, SFT_COMMIT_OVERWRITE);
        ds_kv(c, 0, 0, "b");
        assert_int_equal(prepare(c), SFT_OK);
        (void)snprintf(index, sizeof index, "%s/index", sft_commit_job_folder(c));
        temp_write(index, "new", 3);
        failing.call = way == 0 ? "put" : way == 1 ? "move" : NULL;
        failing.nth = way == 0 ? 1 : 2;
        failing.killed = way == 0;
        ds_warn_count = 0;
        pid_t child = way == 0 ? fork() : -1;
        if (child == 0) _exit(publish(c, "index") == SFT_OK ? 2 : 1);
        int status = -1;
        if (way == 0) assert_int_equal(waitpid(child, &status, 0), child);
        else assert_int_equal(publish(c, "index"), SFT_OK);
        assert_true(way != 0 || status == 0);
        failing.call = NULL;
        assert_int_equal(ds_warn_count, way == 1);
        if (way == 0) assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
        sft_commit_close(c);
        assert_int_equal(temp_read(SFTI_DATASET_INDEX, text, 15), 3);
        assert_string_equal(text, way == 2 ? "new" : "old");
        sft_dataset *d = ds_open();
        key_is(d, way == 0 ? "a__v" : "b__v", 1);
        sft_dataset_close(d);
    }
    sft_dataset_options_free(o);
}

/* Where there was no index a failed commit leaves none. */
static void no_orphan_index(void **state) {
    static const char *const calls[] = { "settle", "put" };
    sft_dataset_options *o = ds_options("name_col=id", "generate_index=true", NULL);
    sft_storage s = failing_storage();
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char index[200];
        sft_commit *c = begin_on(o, &s, SFT_COMMIT_NEW);
        ds_kv(c, 0, 0, "a");
        assert_int_equal(prepare(c), SFT_OK);
        (void)snprintf(index, sizeof index, "%s/" SFTI_DATASET_INDEX, sft_commit_job_folder(c));
        temp_write(index, "new", 3);
        failing.call = calls[i];
        failing.nth = 1;
        assert_int_equal(publish(c, SFTI_DATASET_INDEX), SFT_IO_WRITE);
        failing.call = NULL;
        assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
        sft_commit_close(c);
        assert_int_equal(ds_count("_"), 0);
        assert_int_equal(ds_count("part-"), 0);
    }
    sft_dataset_options_free(o);
}

/* After the commit point nothing fails: what could not be removed is a warning, and the data is
 * new. */
static void fails_after(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_storage s = failing_storage();
    (void)state;
    make_kv(o, SFT_COMMIT_NEW, "a|b", 1);
    for (size_t nth = 1; nth <= 4; nth++) {
        sft_commit *c = begin_on(o, &s, SFT_COMMIT_OVERWRITE);
        ds_kv(c, 0, 0, "c");
        if (nth % 2) ds_kv(c, 1, 0, "d"); /* the next commit replaces two again, or one */
        assert_int_equal(prepare(c), SFT_OK);
        ds_warn_count = 0;
        if (nth == 1) temp_write(SFTI_DATASET_INDEX, "x", 1);
        failing.call = "remove";
        failing.nth = nth == 4 ? 3 : nth; /* index, shards, the job's folder */
        assert_int_equal(publish(c, NULL), SFT_OK);
        failing.call = NULL;
        assert_int_equal(ds_warn_count, 1);
        assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
        sft_commit_close(c);
        sft_dataset *d = ds_open();
        key_is(d, "c__v", 1);
        assert_int_equal(sft_dataset_shard_count(d), nth % 2 ? 2 : 1);
        sft_dataset_close(d);
    }
    sft_dataset_options_free(o);
}

/* The put reports a failure after it succeeded. */
static void unsure(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_storage s = failing_storage();
    (void)state;
    make_kv(o, SFT_COMMIT_NEW, "a", 1);
    sft_commit *c = begin_on(o, &s, SFT_COMMIT_OVERWRITE);
    ds_kv_on(c, &ds_storage, 0, 0, "b", 2);
    assert_int_equal(prepare(c), SFT_OK);
    failing.call = "put";
    failing.nth = 1;
    failing.after = true;
    assert_int_equal(publish(c, NULL), SFT_OK);
    assert_int_equal(ds_warn_count, 1);
    sft_commit_close(c);
    sft_dataset *d = ds_open();
    key_is(d, "b__v", 2);
    sft_dataset_close(d);
    /* What it replaced stays for gc: the manifest may not be durable yet. */
    assert_int_equal(ds_count("part-"), 2);
    /* And when the state is unknown nothing is removed. */
    failing_storage();
    c = begin_on(o, &s, SFT_COMMIT_OVERWRITE);
    ds_kv_on(c, &ds_storage, 0, 0, "c", 3);
    assert_int_equal(prepare(c), SFT_OK);
    failing.call = "put";
    failing.nth = 1;
    failing.after = failing.broken = true;
    assert_int_equal(publish(c, NULL), SFT_IO_WRITE);
    assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
    failing_storage();
    d = ds_open();
    key_is(d, "c__v", 3);
    sft_dataset_close(d);
    assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
    sft_commit_close(c);
    d = ds_open();
    key_is(d, "c__v", 3);
    sft_dataset_close(d);
    sft_dataset_options_free(o);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        FOLDER_TEST(fails_before), FOLDER_TEST(fails_after), FOLDER_TEST(no_orphan_index),
        FOLDER_TEST(index_behind), FOLDER_TEST(unsure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
