/* Replacing a manifest without locks: numbered commit files. */
#define _GNU_SOURCE
#include "unit/dataset_case.h"
#include "dataset/commit/swap.h"
#include "unit/storage_table.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

static sft_error err = SFT_ERROR_INIT;

static sft_code no_lock(void *ctx, uint64_t wait_ms, sft_error *e) {
    (void)ctx, (void)wait_ms;
    return sft_error_set(e, SFT_DATASET_UNGUARDED, 0, "no locks here");
}

static sft_code silent_lock(void *ctx, uint64_t wait_ms, sft_error *e) {
    (void)ctx, (void)wait_ms, (void)e;
    return SFT_DATASET_BUSY;
}

static void no_unlock(void *ctx) { (void)ctx; fail(); }

static sft_storage lockless(const sft_storage *over) {
    sft_storage s = *over;
    storage_own(&s)->lock = no_lock;
    storage_own(&s)->unlock = no_unlock;
    return s;
}

static sft_commit *begin(const sft_dataset_options *o, const sft_storage *s, sft_commit_mode how) {
    sft_commit_options options = SFT_COMMIT_OPTIONS_INIT;
    sft_commit *c = NULL;
    options.mode = how;
    if (sft_commit_open(o, s, NULL, &options, &c, &err)) fail_msg("%s", err.message);
    return c;
}

static sft_code publish(sft_commit *c) {
    sft_code code = sft_commit_prepare(c, NULL, &err);
    return code ? code : sft_commit_publish(c, NULL, ds_warn, NULL, NULL, &err);
}

static void append(const sft_dataset_options *o, const sft_storage *s, const char *names) {
    sft_commit *c = begin(o, s, SFT_COMMIT_APPEND);
    ds_kv_on(c, s, 0, 0, names, 1);
    if (publish(c)) fail_msg("%s", err.message);
    sft_commit_close(c);
}

static void samples_are(uint64_t samples, uint64_t version) {
    char text[40];
    sft_dataset *d = ds_open();
    assert_int_equal(sft_dataset_samples(d), samples);
    (void)snprintf(text, sizeof text, "\"version\":%llu,", (unsigned long long)version);
    sft_span manifest = sft_dataset_manifest(d);
    char *copy = calloc(1, manifest.len + 1);
    assert_non_null(copy);
    memcpy(copy, manifest.data, manifest.len);
    if (!strstr(copy, text)) fail_msg("expected %s in %s", text, copy);
    free(copy);
    for (size_t i = 0; i < sft_dataset_shard_count(d); i++) {
        sft_file *file;
        if (sft_dataset_shard_open(d, i, NULL, &file, &err)) fail_msg("%s", err.message);
        sft_close(file);
    }
    sft_dataset_close(d);
}

static bool whole(void) {
    bool good = false;
    sft_buffer text = { .alloc = sfti_allocator(NULL) };
    sft_sink sink = sft_sink_memory(&text);
    assert_int_equal(sft_dataset_verify_json(&ds_storage, true, NULL, "d", &sink, &good, NULL,
                                             &err), SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    if (!good) fprintf(stderr, "%.*s\n", (int)text.len, text.data);
    sft_buffer_free(&text);
    return good;
}

/* ── Names ── */

static void names(void **state) {
    char name[SFTI_COMMIT_FILE_NAME], other[SFTI_COMMIT_FILE_NAME];
    sft_allocator alloc = sfti_allocator(NULL);
    sft_span none = { NULL, 0 };
    uint64_t number = 0;
    (void)state;
    assert_int_equal(sfti_ds_commit_file(none, 0, &alloc, name, &err), SFT_OK);
    assert_string_equal(name, ".dataset_manifest.commit-1-none");
    assert_true(sfti_ds_is_commit_file(sft_span_cstr(name), &number) && number == 1);
    assert_int_equal(sfti_ds_commit_file(sft_span_cstr("a"), 41, &alloc, name, &err), SFT_OK);
    assert_int_equal(sfti_ds_commit_file(sft_span_cstr("b"), 41, &alloc, other, &err), SFT_OK);
    assert_string_not_equal(name, other);
    assert_true(sfti_ds_is_commit_file(sft_span_cstr(name), &number) && number == 42);
    assert_int_equal(sfti_ds_commit_file(none, UINT64_MAX, &alloc, name, &err),
                     SFT_SIZE_OVERFLOW);
    static const char *const others[] = { ".dataset_manifest.commit-", ".dataset_manifest.commit-1",
                                          ".dataset_manifest.commit-1-", "dataset_manifest.json",
                                          ".dataset_manifest.commit-1-zz",
                                          ".dataset_manifest.commit-x-none",
                                          ".dataset_manifest.commit-1-0123456789abcdef0",
                                          ".dataset_manifest.commit-99999999999999999999-none" };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(sfti_ds_is_commit_file(sft_span_cstr(others[i]), &number));
}

/* ── Two at once ── */

static void loser_again(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_storage s = lockless(&ds_storage);
    (void)state;
    append(o, &s, "a");
    assert_int_equal(ds_count(".dataset_manifest.commit-1-"), 1);
    sft_commit *x = begin(o, &s, SFT_COMMIT_APPEND), *y = begin(o, &s, SFT_COMMIT_APPEND);
    sft_commit *z = begin(o, &s, SFT_COMMIT_OVERWRITE);
    ds_kv_on(x, &s, 0, 0, "b", 1);
    ds_kv_on(y, &s, 0, 0, "c", 1);
    ds_kv_on(z, &s, 0, 0, "d", 1);
    assert_int_equal(sft_commit_prepare(x, NULL, &err), SFT_OK);
    assert_int_equal(sft_commit_prepare(y, NULL, &err), SFT_OK);
    assert_int_equal(sft_commit_prepare(z, NULL, &err), SFT_OK);
    assert_int_equal(sft_commit_publish(x, NULL, ds_warn, NULL, NULL, &err), SFT_OK);
    assert_int_equal(sft_commit_publish(y, NULL, ds_warn, NULL, NULL, &err),
                     SFT_DATASET_CHANGED);
    assert_int_equal(sft_commit_publish(z, NULL, ds_warn, NULL, NULL, &err),
                     SFT_DATASET_CHANGED);
    assert_int_equal(sft_commit_abort(z, &err), SFT_OK);
    assert_int_equal(ds_count("part-"), 2);
    assert_int_equal(publish(y), SFT_OK);
    sft_commit_close(x);
    sft_commit_close(y);
    sft_commit_close(z);
    samples_are(3, 3);
    assert_int_equal(ds_count("part-"), 3);
    assert_int_equal(ds_count("_job-"), 0);
    assert_true(whole());
    assert_int_equal(ds_warn_count, 0);
    sft_dataset_options_free(o);
}

/* A storage that returns a code and says nothing of it. */
static void silent_storage(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_storage s = ds_storage;
    sft_buffer text = { .alloc = sfti_allocator(NULL) };
    sft_sink sink = sft_sink_memory(&text);
    (void)state;
    storage_own(&s)->lock = silent_lock;
    sft_commit *c = begin(o, &s, SFT_COMMIT_APPEND);
    ds_kv_on(c, &s, 0, 0, "a", 1);
    assert_int_equal(sft_commit_prepare(c, NULL, &err), SFT_DATASET_BUSY);
    assert_int_equal(err.code, SFT_DATASET_BUSY);
    assert_string_equal(err.message, sft_code_describe(SFT_DATASET_BUSY)->sentence);
    assert_int_equal(err.hint, SFT_HINT_TRY_LATER);
    memset(&err, 0, sizeof err);
    assert_int_equal(sft_dataset_gc_json(&s, gc_how(0, true), "d", &sink, &err), SFT_DATASET_BUSY);
    assert_int_equal(err.code, SFT_DATASET_BUSY);
    sft_buffer_free(&text);
    sft_commit_close(c);
    sft_dataset_options_free(o);
}

/* ── Killed, slow ── */

/* Killed between the commit file and the manifest: it is published for readers and for the next
 * commit. */
static void killed_behind(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_storage s = lockless(&ds_storage);
    char old[8192];
    (void)state;
    append(o, &s, "a");
    long len = temp_read(SFTI_DATASET_MANIFEST, old, sizeof old);
    append(o, &s, "b");
    temp_write(SFTI_DATASET_MANIFEST, old, (size_t)len);
    samples_are(2, 2);
    assert_true(whole());
    assert_int_equal(unlink(temp_path(SFTI_DATASET_MANIFEST)), 0); /* and without any */
    samples_are(2, 2);
    temp_write(SFTI_DATASET_MANIFEST, old, (size_t)len);
    append(o, &ds_storage, "c"); /* a writer with a lock uses them, too */
    samples_are(3, 3);
    assert_int_equal(ds_count(".dataset_manifest.commit-"), 3);
    len = temp_read(SFTI_DATASET_MANIFEST, old, sizeof old);
    assert_non_null(strstr(old, "\"version\":3,"));
    sft_dataset_options_free(o);
}

static size_t overtaken;
static const sft_dataset_options *overtaking;

/* Another commit happens between the commit file and the manifest, which is then put back. */
static sft_code slow_create(void *ctx, const char *name, bool replace, sft_sink *out,
                            sft_error *e) {
    if (strcmp(name, SFTI_DATASET_MANIFEST) == 0 && overtaken++ == 0) {
        sft_storage s = lockless(&ds_storage);
        append(overtaking, &s, "x");
    }
    return ds_storage.vtable->create(ctx, name, replace, out, e);
}

static void slow(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_storage s = lockless(&ds_storage);
    char text[8192];
    (void)state;
    append(o, &s, "a");
    overtaking = o;
    overtaken = 0;
    storage_own(&s)->create = slow_create;
    append(o, &s, "b");
    assert_true(overtaken >= 2);
    samples_are(3, 3);
    assert_true(temp_read(SFTI_DATASET_MANIFEST, text, sizeof text) > 0);
    assert_non_null(strstr(text, "\"version\":3,"));
    assert_true(whole());
    sft_dataset_options_free(o);
}

/* A writer that stopped until the commit file of its version was removed has lost, and removes its
 * own. */
static void stood_still(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_storage s = lockless(&ds_storage);
    char name[SFTI_COMMIT_FILE_NAME], text[8192] = { 0 };
    (void)state;
    append(o, &s, "a");
    long len = temp_read(SFTI_DATASET_MANIFEST, text, sizeof text);
    append(o, &s, "b");
    append(o, &s, "c");
    sft_allocator alloc = sfti_allocator(NULL);
    sft_span first = { text, (size_t)len };
    assert_int_equal(sfti_ds_commit_file(first, 1, &alloc, name, &err), SFT_OK);
    assert_int_equal(unlink(temp_path(name)), 0);
    sfti_ds_swap w = { .storage = &s, .alloc = alloc, .old = first, .old_version = 1,
                       .text = first, .commit = "01234567-89ab-4def-8123-456789abcdef",
                       .folder = "_job-01234567-89ab-4def-8123-456789abcdef" };
    sfti_ds_outcome outcome;
    assert_int_equal(sfti_ds_guard_take(&w, 1, &err), SFT_OK);
    assert_int_equal(w.guard, SFTI_GUARD_NUMBER);
    assert_int_equal(sfti_ds_swap_claim(&w, &outcome, &err), SFT_DATASET_CHANGED);
    assert_int_equal(outcome, SFTI_SWAP_FAILED);
    assert_false(ds_exists(name));
    samples_are(3, 3);
    sft_dataset_options_free(o);
}

static void age(const char *name, time_t seconds) {
    struct utimbuf times = { time(NULL) - seconds, time(NULL) - seconds };
    assert_int_equal(utime(temp_path(name), &times), 0);
}

/* The next commit removes those that are an hour older; gc those that are left. */
static void old_files(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_storage s = lockless(&ds_storage);
    sft_buffer text = { .alloc = sfti_allocator(NULL) };
    (void)state;
    append(o, &s, "a");
    append(o, &s, "b");
    assert_int_equal(ds_count(".dataset_manifest.commit-"), 2);
    age(".dataset_manifest.commit-1-none", SFTI_COMMIT_FILE_S - 60);
    append(o, &s, "c");
    assert_int_equal(ds_count(".dataset_manifest.commit-"), 3);
    age(".dataset_manifest.commit-1-none", SFTI_COMMIT_FILE_S + 60);
    append(o, &s, "d");
    assert_int_equal(ds_count(".dataset_manifest.commit-"), 3);
    assert_false(ds_exists(".dataset_manifest.commit-1-none"));
    samples_are(4, 4);
    sft_sink sink = sft_sink_memory(&text);
    assert_int_equal(sft_dataset_gc_json(&s, gc_how(0, true), "d", &sink, &err), SFT_OK);
    sft_sink_abandon(&sink);
    assert_int_equal(ds_count(".dataset_manifest.commit-"), 3);
    samples_are(4, 4);
    sft_dataset_options_free(o);
}

/* ── Another user's ── */

/* In a sticky folder, where only its owner may replace the manifest. */
static void planted(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_storage s = lockless(&ds_storage);
    char text[8192], name[SFTI_COMMIT_FILE_NAME];
    (void)state;
    if (geteuid() != 0) skip(); /* needs files of another user */
    append(o, &s, "a");
    long len = temp_read(SFTI_DATASET_MANIFEST, text, sizeof text);
    sft_allocator own = sfti_allocator(NULL);
    assert_int_equal(sfti_ds_commit_file((sft_span){ text, (size_t)len }, 1, &own, name, &err),
                     SFT_OK);
    append(o, &s, "b");
    temp_write(SFTI_DATASET_MANIFEST, text, (size_t)len);
    assert_int_equal(chown(temp_path(name), 65534, 65534), 0);
    assert_int_equal(chmod(temp_path("."), 0777), 0);
    samples_are(2, 2); /* root may do this, too */
    assert_int_equal(chmod(temp_path("."), 01777), 0);
    samples_are(1, 1);
    assert_int_equal(chown(temp_path(SFTI_DATASET_MANIFEST), 65534, 65534), 0);
    samples_are(2, 2);
    assert_int_equal(chown(temp_path(SFTI_DATASET_MANIFEST), 0, 0), 0);
    assert_int_equal(chown(temp_path("."), 65534, 65534), 0);
    samples_are(2, 2);
    assert_int_equal(chown(temp_path("."), 0, 0), 0);
    sft_dataset_options_free(o);
}

/* ── Neither locks nor exclusive names ── */

static sft_code no_move_new(void *ctx, const char *from, const char *to, sft_error *e) {
    (void)ctx, (void)from, (void)to;
    return sft_error_set(e, SFT_DATASET_UNGUARDED, 0, "no such thing");
}

static void neither(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_dataset_options *single = ds_options("name_col=id", "single_writer=true", NULL);
    sft_storage s = lockless(&ds_storage);
    (void)state;
    storage_own(&s)->move_new = no_move_new;
    sft_commit *c = begin(o, &s, SFT_COMMIT_APPEND);
    ds_kv_on(c, &s, 0, 0, "a", 1);
    assert_int_equal(publish(c), SFT_DATASET_UNGUARDED);
    assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
    sft_commit_close(c);
    assert_int_equal(ds_count("part-"), 0);
    assert_int_equal(ds_count("_job-"), 0);
    append(single, &s, "a");
    samples_are(1, 1);
    sft_dataset_options_free(single);
    sft_dataset_options_free(o);
}

/* ── A lock and processes that were forked while it was held ── */

static sft_code lock_of_another(void) {
    sft_storage other;
    assert_int_equal(sft_storage_local(temp_path("."), true, NULL, &other, &err), SFT_OK);
    sft_code code = other.vtable->lock(other.ctx, 0, &err);
    if (code == SFT_OK) other.vtable->unlock(other.ctx);
    sft_storage_close(&other);
    return code;
}

static void lock_and_fork(void **state) {
    sft_storage s;
    int ends[2], status = -1;
    (void)state;
    assert_int_equal(sft_storage_local(temp_path("."), true, NULL, &s, &err), SFT_OK);
    assert_int_equal(s.vtable->lock(s.ctx, 0, &err), SFT_OK);
    assert_int_equal(pipe(ends), 0);
    pid_t lives = fork(); /* with all descriptors of this process */
    if (lives == 0) {
        char end;
        close(ends[1]);
        _exit(read(ends[0], &end, 1) == 0 ? 0 : 1);
    }
    pid_t lets_go = fork();
    if (lets_go == 0) {
        s.vtable->unlock(s.ctx);
        sft_storage_close(&s);
        _exit(0);
    }
    assert_true(lives > 0 && lets_go > 0);
    assert_int_equal(waitpid(lets_go, &status, 0), lets_go);
    assert_int_equal(status, 0);
    assert_int_equal(lock_of_another(), SFT_DATASET_BUSY); /* it was not the child's */
    s.vtable->unlock(s.ctx);
    assert_int_equal(lock_of_another(), SFT_OK);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(waitpid(lives, &status, 0), lives);
    assert_int_equal(status, 0);
    sft_storage_close(&s);
}

/* ── With a lock: others may not take it ── */

static void lock_is_not_all(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", "generate_index=true", NULL);
    char text[8192] = { 0 }, index[200];
    (void)state;
    sft_commit *c = begin(o, &ds_storage, SFT_COMMIT_NEW);
    ds_kv_on(c, &ds_storage, 0, 0, "a", 1);
    assert_int_equal(publish(c), SFT_OK);
    sft_commit_close(c);
    c = begin(o, &ds_storage, SFT_COMMIT_OVERWRITE);
    ds_kv_on(c, &ds_storage, 0, 0, "b", 1);
    (void)snprintf(index, sizeof index, "%s/index", sft_commit_job_folder(c));
    temp_write(index, "new", 3);
    assert_int_equal(sft_commit_prepare(c, NULL, &err), SFT_OK);
    long len = temp_read(SFTI_DATASET_MANIFEST, text, sizeof text);
    memcpy(strstr(text, "\"version\":1"), "\"version\":7", 11);
    temp_write(SFTI_DATASET_MANIFEST, text, (size_t)len);
    assert_int_equal(sft_commit_publish(c, "index", ds_warn, NULL, NULL, &err),
                     SFT_DATASET_CHANGED);
    assert_int_equal(sft_commit_abort(c, &err), SFT_OK);
    sft_commit_close(c);
    samples_are(1, 7);
    assert_int_equal(ds_count("part-"), 1);
    assert_int_equal(ds_count(SFTI_DATASET_INDEX), 0); /* no orphan */
    sft_dataset_options_free(o);
}

/* ── Many processes ── */

#define WRITERS 6
#define COMMITS 12

static void writer_run(int who, int tell) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_storage own, s;
    if (sft_storage_local(temp_dir, true, NULL, &own, &err)) _exit(1);
    s = lockless(&own);
    for (int i = 0; i < COMMITS; i++) {
        sft_commit_options how = SFT_COMMIT_OPTIONS_INIT;
        sft_commit *c;
        char name[16] = { 0 };
        how.mode = SFT_COMMIT_APPEND;
        (void)snprintf(name, sizeof name, "k%d_%d", who, i);
        if (sft_commit_open(o, &s, NULL, &how, &c, &err)) _exit(2);
        ds_kv_on(c, &s, 0, 0, name, 1);
        sft_code code = publish(c);
        while (code == SFT_DATASET_CHANGED) code = publish(c);
        if (code) fprintf(stderr, "%s\n", err.message);
        if (code) _exit(3);
        sft_commit_close(c);
        if (write(tell, name, sizeof name) != sizeof name) _exit(4);
    }
    sft_storage_close(&own);
    sft_dataset_options_free(o);
    _exit(0);
}

static void many_writers(void **state) {
    int ends[2];
    char name[16];
    size_t reported = 0;
    (void)state;
    assert_int_equal(pipe(ends), 0);
    for (int i = 0; i < WRITERS; i++)
        if (fork() == 0) writer_run(i, ends[1]);
    close(ends[1]);
    sft_dataset *d = NULL;
    for (ssize_t got = read(ends[0], name, sizeof name); got == sizeof name; reported++)
        got = read(ends[0], name, sizeof name);
    for (int i = 0; i < WRITERS; i++) {
        int status = -1;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    close(ends[0]);
    assert_int_equal(reported, WRITERS * COMMITS);
    samples_are(WRITERS * COMMITS, WRITERS * COMMITS);
    assert_true(whole());
    d = ds_open();
    assert_int_equal(ds_count("part-"), (int)sft_dataset_shard_count(d));
    sft_dataset_close(d);
}

#define FOLDER_TEST(name) cmocka_unit_test_setup_teardown(name, ds_make, ds_remove)

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),    FOLDER_TEST(loser_again), FOLDER_TEST(killed_behind),
        FOLDER_TEST(slow),          FOLDER_TEST(stood_still), FOLDER_TEST(old_files),
        FOLDER_TEST(neither),       FOLDER_TEST(lock_is_not_all), FOLDER_TEST(many_writers),
        FOLDER_TEST(lock_and_fork), FOLDER_TEST(planted),   FOLDER_TEST(silent_storage),
    };
    int failed = cmocka_run_group_tests_name("whole manifests", tests, NULL, NULL);
    ds_form = "segments";
    return failed + cmocka_run_group_tests_name("manifests of segments", tests, NULL, NULL);
}
