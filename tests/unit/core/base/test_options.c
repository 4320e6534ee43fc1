/* Options structs of older and newer callers: every public function that takes one, with each
 * struct it takes, those within others too. tests/headers.py holds the table against the headers.
 *
 * Each struct ends where a page ends that nothing may be read behind. */
#define _GNU_SOURCE
#include "unit/options_dataset_case.h"

#include <sys/mman.h>

/* ── The table ── */

/* A struct as its _INIT makes it, and where it ended in its first release. */
typedef struct options_struct {
    const char *name;
    size_t least, size;
    const void *init;
} options_struct;

#define STRUCT(type, INIT, last) \
    { #type, offsetof(type, last) + sizeof ((type *)0)->last, sizeof(type), &(const type)INIT }

static const options_struct structs[] = {
    STRUCT(sft_job, SFT_JOB_INIT, threads),
    STRUCT(sft_path_options, SFT_PATH_OPTIONS_INIT, alloc),
    STRUCT(sft_open_options, SFT_OPEN_OPTIONS_INIT, alloc),
    STRUCT(sft_plan_options, SFT_PLAN_OPTIONS_INIT, alloc),
    STRUCT(sft_writer_options, SFT_WRITER_OPTIONS_INIT, alloc),
    STRUCT(sft_edit_options, SFT_EDIT_OPTIONS_INIT, open),
    STRUCT(sft_set_options, SFT_SET_OPTIONS_INIT, open),
    STRUCT(sft_save_set_options, SFT_SAVE_SET_OPTIONS_INIT, plan),
    STRUCT(sft_index_changes, SFT_INDEX_CHANGES_INIT, dry_run),
    STRUCT(sft_diff_options, SFT_DIFF_OPTIONS_INIT, alloc),
    STRUCT(sft_cast_options, SFT_CAST_OPTIONS_INIT, saturate),
    STRUCT(sft_convert_options, SFT_CONVERT_OPTIONS_INIT, alloc),
    STRUCT(sft_adapter_options, SFT_ADAPTER_OPTIONS_INIT, alloc),
    STRUCT(sft_layout_options, SFT_LAYOUT_OPTIONS_INIT, alloc),
    STRUCT(sft_merge_options, SFT_MERGE_OPTIONS_INIT, alloc),
    STRUCT(sft_adapter_merge_options, SFT_ADAPTER_MERGE_OPTIONS_INIT, alloc),
    STRUCT(sft_adapter_use, SFT_ADAPTER_USE_INIT, name),
    STRUCT(sft_adapter_factors_options, SFT_ADAPTER_FACTORS_OPTIONS_INIT, alloc),
    STRUCT(sft_adapter_conversion_options, SFT_ADAPTER_CONVERSION_OPTIONS_INIT, alloc),
    STRUCT(sft_statistics_options, SFT_STATISTICS_OPTIONS_INIT, alloc),
    STRUCT(sft_import_options, SFT_IMPORT_OPTIONS_INIT, alloc),
    STRUCT(sft_read_plan_options, SFT_READ_PLAN_OPTIONS_INIT, slot_bytes),
    STRUCT(sft_remote_options, SFT_REMOTE_OPTIONS_INIT, exchange_ctx),
    STRUCT(sft_remote_request, SFT_REMOTE_REQUEST_INIT, same_host),
    STRUCT(sft_export_options, SFT_EXPORT_OPTIONS_INIT, alloc),
    STRUCT(sft_hash_options, SFT_HASH_OPTIONS_INIT, cache),
    STRUCT(sft_info_options, SFT_INFO_OPTIONS_INIT, alloc),
    STRUCT(sft_commit_options, SFT_COMMIT_OPTIONS_INIT, open),
    STRUCT(sft_compact_options, SFT_COMPACT_OPTIONS_INIT, open),
    STRUCT(sft_delete_options, SFT_DELETE_OPTIONS_INIT, open),
    STRUCT(sft_add_options, SFT_ADD_OPTIONS_INIT, open),
    STRUCT(sft_gc_options, SFT_GC_OPTIONS_INIT, older_s),
};

typedef struct options_row {
    const char *function, *type;
    sft_code (*run)(const void *given);
} options_row;

/* function, struct, how it is called here: read by tests/headers.py */
#define ROW(function, type, run) { #function, #type, run }

static const options_row rows[] = {
    ROW(sft_sink_path, sft_path_options, run_sink_path),
    ROW(sft_copy, sft_job, run_copy),
    ROW(sft_open, sft_open_options, run_open),
    ROW(sft_open_fd, sft_open_options, run_open_fd),
    ROW(sft_open_memory, sft_open_options, run_open_memory),
    ROW(sft_open_source, sft_open_options, run_open_source),
    ROW(sft_source_path, sft_open_options, run_source_path),
    ROW(sft_read_many, sft_job, run_read_many),
    ROW(sft_read_plan_new, sft_read_plan_options, run_read_plan_new),
    ROW(sft_read_plan_run, sft_job, run_read_plan_run),
    ROW(sft_scan_open, sft_open_options, run_scan_path),
    ROW(sft_scan_open_source, sft_open_options, run_scan_source),
    ROW(sft_repair_open, sft_open_options, run_repair_open),
    ROW(sft_repair_write, sft_job, run_repair_write),
    ROW(sft_plan_new, sft_plan_options, run_plan_new),
    ROW(sft_writer_begin_unplanned, sft_writer_options, run_writer_open),
    ROW(sft_writer_copy, sft_job, run_writer_copy),
    ROW(sft_save_parts, sft_plan_options, run_save_parts),
    ROW(sft_save_parts, sft_job, run_save_parts_job),
    ROW(sft_save_arrays, sft_path_options, run_save_arrays),
    ROW(sft_save_arrays, sft_job, run_save_arrays_job),
    ROW(sft_edit_open, sft_edit_options, run_edit_open),
    ROW(sft_edit_open, sft_open_options, run_edit_open_open),
    ROW(sft_edit_recover, sft_edit_options, run_edit_recover),
    ROW(sft_edit_recover, sft_open_options, run_edit_recover_open),
    ROW(sft_edit_apply, sft_job, run_edit_apply),
    ROW(sft_edit_save, sft_path_options, run_edit_save),
    ROW(sft_edit_save, sft_job, run_edit_save_job),
    ROW(sft_set_open, sft_set_options, run_set_open),
    ROW(sft_set_open, sft_open_options, run_set_open_open),
    ROW(sft_set_open_list, sft_set_options, run_set_open_list),
    ROW(sft_set_open_list, sft_open_options, run_set_open_list_open),
    ROW(sft_index_open, sft_set_options, run_index_read),
    ROW(sft_index_open, sft_open_options, run_index_read_open),
    ROW(sft_save_set, sft_save_set_options, run_save_set),
    ROW(sft_save_set, sft_plan_options, run_save_set_plan),
    ROW(sft_save_set, sft_job, run_save_set_job),
    ROW(sft_index_rewrite, sft_index_changes, run_index_rewrite),
    ROW(sft_index_rewrite, sft_path_options, run_index_rewrite_path),
    ROW(sft_diff_new, sft_diff_options, run_diff_sets),
    ROW(sft_diff_new, sft_job, run_diff_sets_job),
    ROW(sft_set_check_deep, sft_job, run_check_deep),
    ROW(sft_cast, sft_cast_options, run_cast),
    ROW(sft_conversion_new, sft_convert_options, run_conversion_new),
    ROW(sft_conversion_save, sft_job, run_conversion_save),
    ROW(sft_conversion_save_shard, sft_job, run_conversion_save_shard),
    ROW(sft_conversion_save_set, sft_save_set_options, run_conversion_save_set),
    ROW(sft_conversion_save_set, sft_job, run_conversion_save_set_job),
    ROW(sft_layout_conversion_new, sft_layout_options, run_layout_new),
    ROW(sft_layout_conversion_save, sft_job, run_layout_save),
    ROW(sft_layout_conversion_save_folder, sft_save_set_options, run_layout_folder),
    ROW(sft_layout_conversion_save_folder, sft_job, run_layout_folder_job),
    ROW(sft_merge_new, sft_merge_options, run_models_new),
    ROW(sft_merge_save, sft_job, run_models_save),
    ROW(sft_mixture_new, sft_job, run_mixture),
    ROW(sft_adapter_open, sft_adapter_options, run_adapter_open),
    ROW(sft_adapter_merge_new, sft_adapter_merge_options, run_merge_new),
    ROW(sft_adapter_merge_add, sft_adapter_use, run_merge_add),
    ROW(sft_adapter_merge_save, sft_job, run_merge_save),
    ROW(sft_adapter_merge_save_set, sft_save_set_options, run_merge_save_set),
    ROW(sft_adapter_merge_save_set, sft_job, run_merge_save_set_job),
    ROW(sft_adapter_factors_new, sft_adapter_factors_options, run_factors_new),
    ROW(sft_adapter_factors_add, sft_adapter_use, run_factors_add),
    ROW(sft_adapter_factors_compute, sft_job, run_factors_compute),
    ROW(sft_adapter_factors_save, sft_job, run_factors_save),
    ROW(sft_adapter_conversion_new, sft_adapter_conversion_options, run_renamed_new),
    ROW(sft_adapter_conversion_save, sft_job, run_renamed_save),
    ROW(sft_statistics_new, sft_statistics_options, run_statistics),
    ROW(sft_statistics_new, sft_job, run_statistics_job),
    ROW(sft_hash_paths, sft_hash_options, run_hash_paths),
    ROW(sft_hash_paths, sft_open_options, run_hash_paths_open),
    ROW(sft_hash_paths, sft_job, run_hash_paths_job),
    ROW(sft_hash_path, sft_hash_options, run_hash_path),
    ROW(sft_hash_path, sft_open_options, run_hash_path_open),
    ROW(sft_hash_path, sft_job, run_hash_path_job),
    ROW(sft_hash_set, sft_job, run_hash_set),
    ROW(sft_remote_open, sft_remote_options, run_remote_open),
    ROW(sft_remote_fetch, sft_remote_request, run_remote_fetch),
    ROW(sft_import_open, sft_import_options, run_import_open),
    ROW(sft_import_open_source, sft_import_options, run_import_source),
    ROW(sft_import_open_set, sft_open_options, run_import_open_set),
    ROW(sft_import_save, sft_plan_options, run_import_save),
    ROW(sft_import_save, sft_job, run_import_save_job),
    ROW(sft_import_verify, sft_job, run_import_verify),
    ROW(sft_export_npz, sft_export_options, run_export_npz),
    ROW(sft_export_npz, sft_job, run_export_npz_job),
    ROW(sft_export_pt, sft_export_options, run_export_pt),
    ROW(sft_export_pt, sft_job, run_export_pt_job),
    ROW(sft_info_open, sft_info_options, run_info_open),
    ROW(sft_info_open_components, sft_info_options, run_info_open_parts),
    ROW(sft_commit_open, sft_commit_options, run_commit_begin),
    ROW(sft_commit_open, sft_open_options, run_commit_begin_open),
    ROW(sft_commit_prepare, sft_job, run_commit_prepare),
    ROW(sft_commit_publish, sft_job, run_commit_publish),
    ROW(sft_shard_writer_append, sft_job, run_shard_writer_append),
    ROW(sft_shard_writer_finish, sft_job, run_shard_writer_close),
    ROW(sft_dataset_shard_open, sft_open_options, run_dataset_shard_open),
    ROW(sft_dataset_verify_json, sft_job, run_dataset_verify_json),
    ROW(sft_dataset_verify_tree, sft_job, run_dataset_verify_tree),
    ROW(sft_dataset_verify_json, sft_open_options, run_dataset_verify_json_open),
    ROW(sft_dataset_verify_tree, sft_open_options, run_dataset_verify_tree_open),
    ROW(sft_dataset_find_replaced, sft_open_options, run_dataset_find_replaced),
    ROW(sft_dataset_ls_json, sft_open_options, run_dataset_ls_json),
    ROW(sft_dataset_gc_json, sft_gc_options, run_dataset_gc),
    ROW(sft_dataset_gc_tree, sft_gc_options, run_dataset_gc_tree),
    ROW(sft_dataset_compact_json, sft_job, run_dataset_compact),
    ROW(sft_dataset_compact_json, sft_compact_options, run_dataset_compact_how),
    ROW(sft_dataset_compact_json, sft_open_options, run_dataset_compact_open),
    ROW(sft_dataset_compact_tree, sft_job, run_dataset_compact_tree),
    ROW(sft_dataset_compact_tree, sft_compact_options, run_dataset_compact_tree_how),
    ROW(sft_dataset_compact_tree, sft_open_options, run_dataset_compact_tree_open),
    ROW(sft_dataset_delete_json, sft_job, run_dataset_delete),
    ROW(sft_dataset_delete_json, sft_delete_options, run_dataset_delete_how),
    ROW(sft_dataset_delete_json, sft_open_options, run_dataset_delete_open),
    ROW(sft_dataset_delete_tree, sft_job, run_dataset_delete_tree),
    ROW(sft_dataset_delete_tree, sft_delete_options, run_dataset_delete_tree_how),
    ROW(sft_dataset_delete_tree, sft_open_options, run_dataset_delete_tree_open),
    ROW(sft_dataset_add_json, sft_job, run_dataset_add),
    ROW(sft_dataset_add_json, sft_add_options, run_dataset_add_how),
    ROW(sft_dataset_add_json, sft_open_options, run_dataset_add_open),
    ROW(sft_dataset_add_tree, sft_job, run_dataset_add_tree),
    ROW(sft_dataset_add_tree, sft_add_options, run_dataset_add_tree_how),
    ROW(sft_dataset_add_tree, sft_open_options, run_dataset_add_tree_open),
    ROW(sft_dataset_place_open, sft_open_options, run_dataset_place_open),
};

/* ── Callers, older and newer ── */

static char *page_end; /* what is read from here on ends the program */

static int map_pages(void **state) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    if (pages == MAP_FAILED) return -1;
    page_end = pages + page;
    return mprotect(page_end, page, PROT_NONE);
}

typedef struct caller {
    const char *name;
    size_t size, there; /* what it says, and bytes that are there */
    unsigned char last; /* byte */
    bool bad;
} caller;

static void call(const options_row *row, const options_struct *s, const caller *c) {
    char *given = page_end - c->there;
    size_t known = c->there < s->size ? c->there : s->size;
    memset(given, 0, c->there);
    memcpy(given, s->init, known);
    if (c->last) given[c->there - 1] = (char)c->last;
    memcpy(given, &c->size, sizeof c->size);
    err = (sft_error)SFT_ERROR_INIT;
    assert_int_equal(ds_make(NULL), 0);
    sft_code code = row->run(given);
    assert_int_equal(ds_remove(NULL), 0);
    bool told = code == SFT_BAD_ARGUMENT && strstr(err.message, row->type);
    if (c->bad ? !told : code != SFT_OK)
        fail_msg("%s, %s, %s: %d %s", row->function, row->type, c->name, (int)code, err.message);
}

static const options_struct *struct_of(const options_row *row) {
    for (size_t i = 0; i < sizeof structs / sizeof *structs; i++)
        if (strcmp(structs[i].name, row->type) == 0) return &structs[i];
    fail_msg("no struct %s", row->type);
    return NULL;
}

static void all_callers(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const options_struct *s = struct_of(&rows[i]);
        size_t word = sizeof(size_t), oldest = (s->least + word - 1) / word * word;
        const caller callers[] = {
            { "its own header", s->size, s->size, 0, false },
            { "the first release", oldest, oldest, 0, false },
            { "a newer one", s->size + 64, s->size + 64, 0, false },
            { "a newer one that asks for more", s->size + 64, s->size + 64, 1, true },
            { "older than the first", (s->least - 1) / word * word, oldest - word, 0, true },
            { "no size", 0, word, 0, true },
            { "a size cut within a member", s->size + 1, s->size, 0, true },
            { "an absurd size", (size_t)1 << 20, s->size, 0, true },
            { "the most absurd size", SIZE_MAX - word + 1, word, 0, true },
        };
        for (size_t c = 0; c < sizeof callers / sizeof *callers; c++)
            call(&rows[i], s, &callers[c]);
    }
}

/* NULL is the defaults, everywhere. */
static void no_options(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(ds_make(NULL), 0);
        err = (sft_error)SFT_ERROR_INIT;
        if (rows[i].run(NULL)) fail_msg("%s, %s: %s", rows[i].function, rows[i].type, err.message);
        assert_int_equal(ds_remove(NULL), 0);
    }
}

/* What an older caller could not say has its default; what it said counts. */
static void older_words_count(void **state) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    sft_sink sink;
    struct stat st;
    (void)state;
    options.size = offsetof(sft_path_options, has_mtime);
    options.mode = 0640;
    options.has_mtime = true;
    options.mtime_ns = 1000000000;
    assert_int_equal(sft_sink_path(temp_path("x"), &options, &sink, &err), SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    assert_int_equal(stat(temp_path("x"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_true(st.st_mtime > 1000000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_callers),
        cmocka_unit_test(no_options),
        cmocka_unit_test_setup_teardown(older_words_count, ds_make, ds_remove),
    };
    return cmocka_run_group_tests(tests, map_pages, NULL);
}
