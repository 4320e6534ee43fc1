/* Each public function of datasets that takes an options struct, called once with the one given. */
#ifndef OPTIONS_DATASET_CASE_H
#define OPTIONS_DATASET_CASE_H

#include "arrow_make.h"
#include "unit/options_case.h"

static sft_code begin_commit(const sft_commit_options *options) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_commit *commit = NULL;
    sft_code code = sft_commit_open(o, &ds_storage, NULL, options, &commit, &err);
    sft_commit_close(commit);
    sft_dataset_options_free(o);
    return code;
}

static sft_code run_commit_begin(const void *given) { return begin_commit(given); }

static sft_code run_commit_begin_open(const void *given) {
    sft_commit_options options = SFT_COMMIT_OPTIONS_INIT;
    options.open = given;
    return begin_commit(&options);
}

static sft_code publish(const sft_job *prepare, const sft_job *job) {
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_commit *commit = ds_begin(o, SFT_COMMIT_NEW);
    ds_kv(commit, 0, 0, "a,b");
    sft_code code = sft_commit_prepare(commit, prepare, &err);
    if (code == SFT_OK) code = sft_commit_publish(commit, NULL, ds_warn, NULL, job, &err);
    sft_commit_close(commit);
    sft_dataset_options_free(o);
    return code;
}

static sft_code run_commit_prepare(const void *given) { return publish(given, NULL); }

static sft_code run_commit_publish(const void *given) { return publish(NULL, given); }

static sft_code write_rows(const sft_job *append, const sft_job *close) {
    static const int32_t ends[] = { 0, 1, 2 };
    static const int64_t numbers[] = { 1, 2 };
    sft_dataset_options *o = ds_options("name_col=id", NULL);
    sft_commit *commit = ds_begin(o, SFT_COMMIT_NEW);
    struct ArrowSchema *type = am_of(am_of(am_type("+s", ""), am_type("u", "id")),
                                     am_type("l", "n"));
    struct ArrowArray *rows = am_make(2, 0, NULL);
    am_with(am_with(rows, am_make(2, 0, NULL, ends, "ab")), am_make(2, 0, NULL, numbers));
    struct ArrowArray batch = am_give(rows);
    sft_shard_writer *writer;
    sft_buffer receipts = { .data = NULL };
    assert_int_equal(sft_shard_writer_begin(o, &ds_storage, sft_commit_job(commit), 0, type, NULL,
                                            &writer, NULL),
                     SFT_OK);
    sft_code code = sft_shard_writer_append(writer, &batch, append, &err);
    if (code == SFT_OK) code = sft_shard_writer_finish(writer, &receipts, close, &err);
    else sft_shard_writer_abandon(writer);
    sft_buffer_free(&receipts);
    sft_commit_close(commit);
    sft_dataset_options_free(o);
    return code;
}

static sft_code run_shard_writer_append(const void *given) { return write_rows(given, NULL); }

static sft_code run_shard_writer_close(const void *given) { return write_rows(NULL, given); }

static sft_code run_dataset_shard_open(const void *given) {
    sft_file *file;
    assert_int_equal(publish(NULL, NULL), SFT_OK);
    sft_dataset *dataset = ds_open();
    sft_code code = sft_dataset_shard_open(dataset, 0, given, &file, &err);
    sft_close(file);
    sft_dataset_close(dataset);
    return code;
}

static sft_code run_dataset_find_replaced(const void *given) {
    sft_dataset_replaced *replaced;
    assert_int_equal(publish(NULL, NULL), SFT_OK);
    sft_dataset *dataset = ds_open();
    sft_code code = sft_dataset_find_replaced(dataset, given, &replaced, &err);
    sft_dataset_replaced_free(replaced);
    sft_dataset_close(dataset);
    return code;
}

static sft_code run_dataset_ls_json(const void *given) {
    sft_sink sink = a_sink();
    assert_int_equal(publish(NULL, NULL), SFT_OK);
    sft_dataset *dataset = ds_open();
    sft_code code = sft_dataset_ls_json(dataset, given, "d", NULL, NULL, &sink, &err);
    sft_dataset_close(dataset);
    end_sink(&sink);
    return code;
}

static sft_code dataset_verify(const sft_open_options *open, const sft_job *job, bool as_tree) {
    sft_sink sink = a_sink();
    sft_tree *tree;
    assert_int_equal(publish(NULL, NULL), SFT_OK);
    assert_int_equal(sft_tree_new(NULL, &tree, NULL), SFT_OK);
    sft_code code =
        as_tree ? sft_dataset_verify_tree(&ds_storage, true, open, "d", tree, NULL, job, &err)
                : sft_dataset_verify_json(&ds_storage, true, open, "d", &sink, NULL, job, &err);
    sft_tree_free(tree);
    end_sink(&sink);
    return code;
}

static sft_code run_dataset_verify_json(const void *given) {
    return dataset_verify(NULL, given, false);
}

static sft_code run_dataset_verify_tree(const void *given) {
    return dataset_verify(NULL, given, true);
}

static sft_code run_dataset_verify_json_open(const void *given) {
    return dataset_verify(given, NULL, false);
}

static sft_code run_dataset_verify_tree_open(const void *given) {
    return dataset_verify(given, NULL, true);
}

static sft_code dataset_compact(const sft_compact_options *how, const sft_job *job, bool as_tree) {
    sft_sink sink = a_sink();
    sft_tree *tree;
    assert_int_equal(publish(NULL, NULL), SFT_OK);
    assert_int_equal(sft_tree_new(NULL, &tree, NULL), SFT_OK);
    sft_code code = as_tree ? sft_dataset_compact_tree(&ds_storage, how, "d", tree, job, &err)
                            : sft_dataset_compact_json(&ds_storage, how, "d", &sink, job, &err);
    sft_tree_free(tree);
    end_sink(&sink);
    return code;
}

static sft_code compact_open(const sft_open_options *open, bool as_tree) {
    sft_compact_options how = SFT_COMPACT_OPTIONS_INIT;
    how.open = open;
    return dataset_compact(&how, NULL, as_tree);
}

static sft_code run_dataset_compact_tree(const void *given) {
    return dataset_compact(NULL, given, true);
}

static sft_code run_dataset_compact(const void *given) {
    return dataset_compact(NULL, given, false);
}

static sft_code run_dataset_compact_tree_how(const void *given) {
    return dataset_compact(given, NULL, true);
}

static sft_code run_dataset_compact_how(const void *given) {
    return dataset_compact(given, NULL, false);
}

static sft_code dataset_delete(const void *how, const void *job, bool as_tree) {
    sft_sink sink = a_sink();
    sft_tree *tree;
    assert_int_equal(publish(NULL, NULL), SFT_OK);
    assert_int_equal(sft_tree_new(NULL, &tree, NULL), SFT_OK);
    sft_code code = as_tree ? sft_dataset_delete_tree(&ds_storage, how, "d", tree, job, &err)
                            : sft_dataset_delete_json(&ds_storage, how, "d", &sink, job, &err);
    sft_tree_free(tree);
    end_sink(&sink);
    return code;
}

static sft_code delete_open(const void *given, bool as_tree) {
    sft_delete_options how = SFT_DELETE_OPTIONS_INIT;
    how.open = given;
    return dataset_delete(&how, NULL, as_tree);
}

static sft_code run_dataset_delete_tree(const void *given) {
    return dataset_delete(NULL, given, true);
}

static sft_code run_dataset_delete(const void *given) {
    return dataset_delete(NULL, given, false);
}

static sft_code run_dataset_delete_tree_how(const void *given) {
    return dataset_delete(given, NULL, true);
}

static sft_code run_dataset_delete_how(const void *given) {
    return dataset_delete(given, NULL, false);
}

static sft_code run_dataset_delete_tree_open(const void *given) {
    return delete_open(given, true);
}

static sft_code run_dataset_delete_open(const void *given) {
    return delete_open(given, false);
}

static sft_code dataset_add(const void *how, const void *job, bool as_tree) {
    sft_sink sink = a_sink();
    sft_storage values;
    sft_tree *tree;
    ds_batches();
    ds_values(7, 4, &values);
    assert_int_equal(sft_tree_new(NULL, &tree, NULL), SFT_OK);
    sft_code code =
        as_tree ? sft_dataset_add_tree(&ds_storage, &values, how, "d", tree, job, &err)
                : sft_dataset_add_json(&ds_storage, &values, how, "d", &sink, job, &err);
    sft_tree_free(tree);
    end_sink(&sink);
    sft_storage_close(&values);
    return code;
}

static sft_code add_open(const void *given, bool as_tree) {
    sft_add_options how = SFT_ADD_OPTIONS_INIT;
    how.open = given;
    return dataset_add(&how, NULL, as_tree);
}

static sft_code run_dataset_add(const void *given) { return dataset_add(NULL, given, false); }

static sft_code run_dataset_add_tree(const void *given) { return dataset_add(NULL, given, true); }

static sft_code run_dataset_add_how(const void *given) { return dataset_add(given, NULL, false); }

static sft_code run_dataset_add_tree_how(const void *given) {
    return dataset_add(given, NULL, true);
}

static sft_code run_dataset_add_open(const void *given) { return add_open(given, false); }

static sft_code run_dataset_add_tree_open(const void *given) { return add_open(given, true); }

static sft_code run_dataset_place_open(const void *given) {
    sft_file *file = NULL;
    size_t count;
    assert_int_equal(dataset_add(NULL, NULL, false), SFT_OK);
    sft_dataset *d = ds_open();
    const sft_dataset_place *of = sft_dataset_shard_places(d, 0, &count);
    assert_int_equal(count, 1);
    sft_code code = sft_dataset_place_open(d, of, given, &file, &err);
    sft_close(file);
    sft_dataset_close(d);
    return code;
}

static sft_code dataset_gc(const void *given, bool as_tree) {
    sft_sink sink = a_sink();
    sft_tree *tree;
    assert_int_equal(publish(NULL, NULL), SFT_OK);
    assert_int_equal(sft_tree_new(NULL, &tree, NULL), SFT_OK);
    sft_code code = as_tree ? sft_dataset_gc_tree(&ds_storage, given, "d", tree, &err)
                            : sft_dataset_gc_json(&ds_storage, given, "d", &sink, &err);
    sft_tree_free(tree);
    end_sink(&sink);
    return code;
}

static sft_code run_dataset_gc_tree(const void *given) { return dataset_gc(given, true); }

static sft_code run_dataset_gc(const void *given) { return dataset_gc(given, false); }

static sft_code run_dataset_compact_tree_open(const void *given) {
    return compact_open(given, true);
}

static sft_code run_dataset_compact_open(const void *given) {
    return compact_open(given, false);
}

#endif
