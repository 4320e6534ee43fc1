/* Commits at once: by locks, by conditional puts, and where there is neither. */
#define _GNU_SOURCE
#include "unit/commit_case.h"

/* ── Where nothing can be moved or locked ── */

static sft_storage bare_storage(void) {
    sft_storage s = ds_storage;
    storage_own(&s)->move = NULL;
    storage_own(&s)->sync_folder = NULL;
    storage_own(&s)->lock = NULL;
    storage_own(&s)->unlock = NULL;
    storage_own(&s)->move_new = NULL;
    return s;
}

/* Fails before anything is written, unless the caller guarantees a single writer. */
static void unguarded(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_dataset_options *single = ds_options("name_col=id", "single_writer=true", NULL);
    sft_storage s = bare_storage();
    sft_commit_options how = SFT_COMMIT_OPTIONS_INIT;
    sft_commit *c = NULL;
    (void)state;
    assert_int_equal(sft_commit_open(o, &s, NULL, &how, &c, &err), SFT_DATASET_UNGUARDED);
    assert_non_null(strstr(err.message, "expected a storage with locks or conditional writes"));
    assert_int_equal(err.hint, SFT_HINT_SINGLE_WRITER);
    assert_null(c);
    assert_int_equal(ds_count("part-"), 0);
    c = begin_on(single, &s, SFT_COMMIT_NEW);
    assert_string_equal(sft_commit_job_folder(c), "");
    ds_kv_on(c, &s, 0, 0, "a", 1);
    assert_int_equal(ds_count("part-"), 1);
    assert_int_equal(prepare(c), SFT_OK);
    assert_int_equal(publish(c, NULL), SFT_OK);
    sft_commit_close(c);
    dataset_is(1, 1, 1);
    sft_buffer text = { .alloc = sfti_allocator(NULL) };
    sft_sink sink = sft_sink_memory(&text);
    assert_int_equal(sft_dataset_compact_json(&s, NULL, "d", &sink, NULL, &err),
                     SFT_DATASET_UNGUARDED);
    s.single_writer = true;
    assert_int_equal(sft_dataset_compact_json(&s, NULL, "d", &sink, NULL, &err), SFT_OK);
    sft_sink_abandon(&sink);
    c = begin_on(o, &s, SFT_COMMIT_APPEND);
    ds_kv_on(c, &s, 0, 0, "b", 1);
    assert_int_equal(prepare(c), SFT_OK);
    assert_int_equal(publish(c, NULL), SFT_OK);
    sft_commit_close(c);
    dataset_is(2, 2, 2);
    sft_dataset_options_free(single);
    sft_dataset_options_free(o);
}

/* ── Conditional puts ── */

static size_t put_count;
static sft_code put_fails;  /* and was done nevertheless */

static sft_code fetch_tagged(void *ctx, const char *name, uint64_t most, sft_buffer *bytes,
                             char tag[SFT_STORED_TAG], sft_error *e) {
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sft_span text;
    sft_storage *s = &ds_storage;
    (void)ctx;
    sft_code code = sfti_ds_read_all(s, name, most, &arena, &text, e);
    if (code == SFT_OK) {
        assert_true(sfti_buffer_put(bytes, text.data, text.len));
        const char *commit = strstr(text.data, "\"commit\":\"");
        assert_non_null(commit);
        (void)snprintf(tag, SFT_STORED_TAG, "%.36s", commit + 10);
    }
    sfti_arena_free(&arena);
    return code;
}

static sft_code put_tagged(void *ctx, const char *name, const char *tag, sft_span bytes,
                           sft_error *e) {
    sft_buffer now = { .alloc = sfti_allocator(NULL) };
    char is[SFT_STORED_TAG] = { 0 };
    sft_code code = fetch_tagged(ctx, name, UINT64_MAX, &now, is, e);
    sft_buffer_free(&now);
    assert_true(code == SFT_OK || code == SFT_NOT_FOUND);
    if (strcmp(is, tag) != 0) return sft_error_set(e, SFT_DATASET_CHANGED, 0, "another");
    put_count++;
    code = sfti_ds_put(&ds_storage, name, bytes, e);
    sft_code fails = put_fails;
    put_fails = SFT_OK;
    return code || !fails ? code : sft_error_set(e, fails, 0, "it failed");
}

/* Two appends: the one that loses is prepared again. An overwrite that loses is lost. */
static void conditional(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_storage s = bare_storage();
    (void)state;
    storage_own(&s)->fetch = fetch_tagged;
    storage_own(&s)->put_if = put_tagged;
    put_count = 0;
    sft_commit *x = begin_on(o, &s, SFT_COMMIT_APPEND), *y = begin_on(o, &s, SFT_COMMIT_APPEND);
    ds_kv_on(x, &s, 0, 0, "a", 1);
    ds_kv_on(y, &s, 0, 0, "b", 1);
    assert_int_equal(prepare(x), SFT_OK);
    assert_int_equal(prepare(y), SFT_OK);
    assert_int_equal(publish(x, NULL), SFT_OK);
    assert_int_equal(publish(y, NULL), SFT_DATASET_CHANGED);
    assert_int_equal(prepare(y), SFT_OK);
    assert_int_equal(publish(y, NULL), SFT_OK);
    sft_commit_close(x);
    sft_commit_close(y);
    assert_int_equal(put_count, 2);
    dataset_is(2, 2, 2);
    x = begin_on(o, &s, SFT_COMMIT_OVERWRITE);
    y = begin_on(o, &s, SFT_COMMIT_APPEND);
    ds_kv_on(x, &s, 0, 0, "c", 1);
    ds_kv_on(y, &s, 0, 0, "d", 1);
    assert_int_equal(prepare(x), SFT_OK);
    assert_int_equal(prepare(y), SFT_OK);
    assert_int_equal(publish(y, NULL), SFT_OK);
    assert_int_equal(publish(x, NULL), SFT_DATASET_CHANGED);
    assert_int_equal(sft_commit_abort(x, &err), SFT_OK);
    assert_int_equal(prepare(x), SFT_OUT_OF_ORDER);
    sft_commit_close(x);
    sft_commit_close(y);
    dataset_is(3, 3, 3);
    assert_int_equal(ds_count("part-"), 3);
    /* The response to a put is lost, and the put was done. */
    x = begin_on(o, &s, SFT_COMMIT_APPEND);
    ds_kv_on(x, &s, 0, 0, "e", 1);
    assert_int_equal(prepare(x), SFT_OK);
    put_fails = SFT_IO_PUBLISH;
    assert_int_equal(publish(x, NULL), SFT_OK);
    sft_commit_close(x);
    dataset_is(4, 4, 4);
    sft_dataset_options_free(o);
}

/* A manifest with the size of one version and the bytes of the next. */
static size_t torn_reads;

static sft_code torn_open(void *ctx, const char *name, sft_source *out, sft_error *e) {
    sft_code code = ds_storage.vtable->open(ctx, name, out, e);
    if (code == SFT_OK && strcmp(name, SFTI_DATASET_MANIFEST) == 0 && torn_reads)
        out->size = --torn_reads % 2 ? out->size - 7 : out->size + 7;
    return code;
}

static void torn(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_storage s = bare_storage();
    sft_dataset *d = NULL;
    (void)state;
    make_kv(o, SFT_COMMIT_NEW, "a", 1);
    storage_own(&s)->open = torn_open;
    for (torn_reads = 1; torn_reads <= 4; torn_reads++) {
        size_t times = torn_reads;
        assert_int_equal(sft_dataset_open(&s, NULL, NULL, NULL, &d, &err), SFT_OK);
        assert_int_equal(torn_reads, 0);
        assert_int_equal(sft_dataset_samples(d), 1);
        sft_dataset_close(d);
        torn_reads = times;
    }
    torn_reads = 1000; /* bounded */
    assert_int_not_equal(sft_dataset_open(&s, NULL, NULL, NULL, &d, &err), SFT_OK);
    assert_true(torn_reads > 900);
    torn_reads = 0; /* damage is reported without many retries */
    temp_write(SFTI_DATASET_MANIFEST, "{", 1);
    assert_int_equal(sft_dataset_open(&s, NULL, NULL, NULL, &d, &err), SFT_MANIFEST_TYPE);
    sft_dataset_options_free(o);
}

/* ── Concurrent commits ── */

static void busy(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_commit_options how = SFT_COMMIT_OPTIONS_INIT;
    sft_storage other;
    sft_commit *a = ds_begin(o, SFT_COMMIT_APPEND), *b;
    (void)state;
    assert_int_equal(prepare(a), SFT_OK);
    how.mode = SFT_COMMIT_APPEND;
    how.lock_wait_ms = 50;
    assert_int_equal(sft_storage_local(temp_dir, true, NULL, &other, &err), SFT_OK);
    assert_int_equal(sft_commit_open(o, &other, NULL, &how, &b, &err), SFT_OK);
    assert_int_equal(prepare(b), SFT_DATASET_BUSY);
    sft_commit_close(a); /* lets go */
    assert_int_equal(prepare(b), SFT_OK);
    assert_int_equal(publish(b, NULL), SFT_OK);
    sft_commit_close(b);
    sft_storage_close(&other);
    sft_dataset_options_free(o);
}

#define APPENDERS 4
#define APPENDS 5

static void append_some(int who) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_storage own;
    sft_error e = SFT_ERROR_INIT;
    if (sft_storage_local(temp_dir, true, NULL, &own, &e)) abort();
    for (int i = 0; i < APPENDS; i++) {
        sft_commit_options how = SFT_COMMIT_OPTIONS_INIT;
        sft_commit *c;
        char name[32];
        how.mode = SFT_COMMIT_APPEND;
        (void)snprintf(name, sizeof name, "k%d_%d", who, i);
        if (sft_commit_open(o, &own, NULL, &how, &c, &e)) fail_msg("%s", e.message);
        ds_kv_on(c, &own, 0, 0, name, 1);
        if (sft_commit_prepare(c, NULL, &e) || sft_commit_publish(c, NULL, NULL, NULL, NULL, &e))
            fail_msg("%s", e.message);
        sft_commit_close(c);
    }
    sft_storage_close(&own);
    sft_dataset_options_free(o);
}

static void all_appended(void) {
    dataset_is(APPENDERS * APPENDS, APPENDERS * APPENDS, APPENDERS * APPENDS);
    sft_dataset *d = ds_open();
    for (int who = 0; who < APPENDERS; who++)
        for (int i = 0; i < APPENDS; i++) {
            char key[32];
            (void)snprintf(key, sizeof key, "k%d_%d__v", who, i);
            key_is(d, key, 1);
        }
    for (size_t i = 0; i < APPENDERS * APPENDS; i++) {
        char prefix[16];
        (void)snprintf(prefix, sizeof prefix, "part-%05zu-", i);
        assert_int_equal(strncmp(sft_dataset_shard_at(d, i)->name, prefix, 11), 0);
    }
    sft_dataset_close(d);
}

static void *append_thread(void *ctx) {
    append_some(*(int *)ctx);
    return NULL;
}

static void in_threads(void **state) {
    pthread_t threads[APPENDERS];
    int who[APPENDERS];
    (void)state;
    for (int i = 0; i < APPENDERS; i++) {
        who[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, append_thread, &who[i]), 0);
    }
    for (int i = 0; i < APPENDERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    all_appended();
}

static void in_processes(void **state) {
    pid_t children[APPENDERS];
    (void)state;
    for (int i = 0; i < APPENDERS; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            append_some(i);
            _exit(0);
        }
    }
    for (int i = 0; i < APPENDERS; i++) {
        int status = 1;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    all_appended();
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        FOLDER_TEST(unguarded), FOLDER_TEST(conditional), FOLDER_TEST(torn), FOLDER_TEST(busy),
        FOLDER_TEST(in_threads), FOLDER_TEST(in_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
