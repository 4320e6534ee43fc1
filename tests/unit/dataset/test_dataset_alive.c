/* A job that is older than gc's grace period and still under way. */
#define _GNU_SOURCE
#include "unit/dataset_case.h"

#include "unit/storage_table.h"

#include <sys/time.h>
#include <time.h>

#define FOLDER_TEST(name) cmocka_unit_test_setup_teardown(name, ds_make, ds_remove)
#define DAY (24 * 60 * 60)

static sft_error err;

static void older(const char *path) {
    const struct timeval then = { .tv_sec = time(NULL) - 2 * DAY }, times[2] = { then, then };
    if (utimes(path, times)) fail_msg("%s", path);
}

static int older_one(const char *path, const struct stat *st, int flag, struct FTW *at) {
    (void)st, (void)flag, (void)at;
    older(path);
    return 0;
}

static void all_older(void) { assert_int_equal(nftw(temp_dir, older_one, 8, FTW_DEPTH), 0); }

static void collect(const sft_storage *s) {
    sft_buffer out = { .alloc = sfti_allocator(NULL) };
    sft_sink sink = sft_sink_memory(&out);
    if (sft_dataset_gc_json(s, gc_how(DAY, true), "d", &sink, &err)) fail_msg("%s", err.message);
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    sft_buffer_free(&out);
}

/* Shards in the folder, and 100 for a job's. */
static int entries(void) { return ds_count("part-") + 100 * ds_count("_job-"); }

static void under_way(void **state) {
    sft_dataset_options *o = ds_options("batch_size=4", NULL);
    (void)state;
    for (int flat = 0; flat < 2; flat++) {
        sft_storage s = ds_storage;
        sft_commit_options how = SFT_COMMIT_OPTIONS_INIT;
        sft_commit *c = NULL;
        how.mode = SFT_COMMIT_APPEND;
        if (flat) { /* an object store */
            s.single_writer = true;
            storage_own(&s)->move = NULL;
            storage_own(&s)->move_new = NULL;
            storage_own(&s)->lock = NULL;
        }
        ds_end(ds_begin(o, SFT_COMMIT_OVERWRITE));
        for (int renewed = 1; renewed >= 0; renewed--) {
            int before = ds_count("part-");
            assert_int_equal(sft_commit_open(o, &s, NULL, &how, &c, &err), SFT_OK);
            ds_batch(c, 0, 0, 4, 4);
            if (!renewed) assert_int_equal(sft_commit_renew(&s, sft_commit_job(c), &err), SFT_OK);
            all_older();
            if (renewed) assert_int_equal(sft_commit_renew(&s, sft_commit_job(c), &err), SFT_OK);
            collect(&s);
            if (renewed) {
                assert_int_equal(entries(), before + (flat ? 101 : 100));
                ds_end(c);
                assert_int_equal(entries() % 100, before + 1);
            } else {
                assert_int_equal(entries(), before);
                sft_commit_close(c);
            }
            if (!renewed) continue;
            all_older();
            collect(&s);
            assert_int_equal(ds_count("_job-"), 0);
        }
    }
    sft_dataset_options_free(o);
}

static void wrong_jobs(void **state) {
    (void)state;
    assert_int_equal(sft_commit_renew(&ds_storage, sft_span_cstr("../x"), &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_commit_renew(NULL, sft_span_cstr("../x"), &err), SFT_BAD_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = { FOLDER_TEST(under_way), FOLDER_TEST(wrong_jobs) };
    return cmocka_run_group_tests_name("jobs under way", tests, NULL, NULL);
}
