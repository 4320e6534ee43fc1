/* Each public function that takes an options struct, called once with the one given. */
#ifndef OPTIONS_CASE_H
#define OPTIONS_CASE_H

#include "dataset_case.h"
#include "unit/adapter_case.h"
#include "safetensors_convert.h"
#include "safetensors_diff.h"
#include "safetensors_edit.h"
#include "safetensors_import.h"
#include "safetensors_index.h"
#include "safetensors_info.h"
#include "safetensors_layout.h"
#include "safetensors_merge.h"
#include "safetensors_read.h"
#include "safetensors_remote.h"
#include "safetensors_report.h"
#include "safetensors_scan.h"
#include "safetensors_stats.h"

/* ── What the functions work on ── */

#define MODEL "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}  "

static sft_error err;
static const uint64_t shape_of_two[] = { 2 };
static const char model_bytes[] = "\x38\0\0\0\0\0\0\0" MODEL "01234567";

static const char *model(const char *name) {
    const char *path = temp_path(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(model_bytes, 1, sizeof model_bytes - 1, file), sizeof model_bytes - 1);
    assert_int_equal(fclose(file), 0);
    return path;
}

static const char *index_of_model(void) {
    static const char text[] = "{\"metadata\":{},\"weight_map\":{\"a\":\"m.safetensors\"}}";
    const char *path = temp_path("m.safetensors.index.json");
    FILE *file = fopen(path, "wb");
    (void)model("m.safetensors");
    assert_non_null(file);
    assert_int_equal(fputs(text, file) >= 0 && fclose(file) == 0, 1);
    return path;
}

static sft_set *set_of_model(void) {
    sft_set *set;
    assert_int_equal(sft_set_open(model("m.safetensors"), NULL, &set, NULL), SFT_OK);
    return set;
}

static sft_part a_part(void) {
    static sft_source zeros;
    zeros = sft_source_memory("01234567", 8);
    return (sft_part){ { { "a", 1 }, SFT_F32, 1, shape_of_two }, &zeros, 0 };
}

static sft_sink a_sink(void) {
    static sft_buffer buffer;
    sft_buffer_free(&buffer);
    return sft_sink_memory(&buffer);
}

static void end_sink(sft_sink *sink) {
    sft_sink_abandon(sink);
}

/* ── Files ── */

static sft_code run_sink_path(const void *given) {
    sft_sink sink = { .ctx = NULL };
    sft_code code = sft_sink_path(temp_path("new"), given, &sink, &err);
    if (code == SFT_OK) end_sink(&sink);
    return code;
}

static sft_code run_copy(const void *given) {
    sft_source source = sft_source_memory("0123", 4);
    return sft_copy(&source, 0, 4, a_sink(), given, &err);
}

static sft_code run_open(const void *given) {
    sft_file *file;
    sft_code code = sft_open(model("m"), given, &file, &err);
    sft_close(file);
    return code;
}

static sft_code run_open_fd(const void *given) {
    sft_file *file;
    FILE *stream = fopen(model("m"), "rb");
    assert_non_null(stream);
    sft_code code = sft_open_fd(fileno(stream), given, &file, &err);
    sft_close(file);
    fclose(stream);
    return code;
}

static sft_code run_open_memory(const void *given) {
    sft_file *file;
    sft_code code = sft_open_memory(model_bytes, sizeof model_bytes - 1, given, &file, &err);
    sft_close(file);
    return code;
}

static sft_code run_open_source(const void *given) {
    sft_file *file;
    sft_source source = sft_source_memory(model_bytes, sizeof model_bytes - 1);
    sft_code code = sft_open_source(source, given, &file, &err);
    sft_close(file);
    return code;
}

static sft_code run_source_path(const void *given) {
    sft_source source;
    sft_code code = sft_source_path(model("m"), given, &source, &err);
    sft_source_close(&source);
    return code;
}

static sft_code run_read_many(const void *given) {
    sft_file *file;
    char bytes[8];
    assert_int_equal(sft_open(model("m"), NULL, &file, NULL), SFT_OK);
    sft_read read = { sft_file_tensor_at(file, 0), bytes, sizeof bytes };
    sft_code code = sft_read_many(file, &read, 1, given, &err);
    sft_close(file);
    return code;
}

static sft_code read_planned(const sft_read_plan_options *options, const sft_job *job) {
    sft_file *file;
    sft_read_plan *plan;
    char bytes[8];
    sft_read_block block = { bytes, sizeof bytes };
    assert_int_equal(sft_open(model("m"), NULL, &file, NULL), SFT_OK);
    sft_read_part part = { file, sft_file_tensor_at(file, 0), NULL, 0, 0 };
    sft_code code = sft_read_plan_new(&part, 1, &block, 1, options, &plan, &err);
    if (code == SFT_OK) code = sft_read_plan_run(plan, job, &err);
    sft_read_plan_free(plan);
    sft_close(file);
    return code;
}

static sft_code run_read_plan_new(const void *given) {
    return read_planned(given, NULL);
}

static sft_code run_read_plan_run(const void *given) {
    return read_planned(NULL, given);
}

static sft_code run_scan_path(const void *given) {
    sft_scan *scan;
    sft_code code = sft_scan_open(model("m"), given, &scan, &err);
    sft_scan_close(scan);
    return code;
}

static sft_code run_scan_source(const void *given) {
    sft_scan *scan;
    sft_source source = sft_source_memory(model_bytes, sizeof model_bytes - 1);
    sft_code code = sft_scan_open_source(source, given, &scan, &err);
    sft_scan_close(scan);
    return code;
}

static sft_code run_repair_open(const void *given) {
    sft_repair *repair;
    sft_code code = sft_repair_open(model("m"), given, &repair, &err);
    sft_repair_close(repair);
    return code;
}

static sft_code run_repair_write(const void *given) {
    sft_repair *repair;
    assert_int_equal(sft_repair_open(model("m"), NULL, &repair, NULL), SFT_OK);
    sft_code code = sft_repair_write(repair, a_sink(), given, &err);
    sft_repair_close(repair);
    return code;
}

/* ── Writing ── */

static sft_code run_plan_new(const void *given) {
    sft_plan *plan;
    sft_part part = a_part();
    sft_code code = sft_plan_new(&part.spec, 1, NULL, 0, given, &plan, &err);
    sft_plan_free(plan);
    return code;
}

static sft_code run_writer_open(const void *given) {
    sft_writer *writer;
    sft_code code = sft_writer_begin_unplanned(given, a_sink(), &writer, &err);
    sft_writer_abandon(writer);
    return code;
}

static sft_code run_writer_copy(const void *given) {
    sft_plan *plan;
    sft_writer *writer;
    sft_part part = a_part();
    assert_int_equal(sft_plan_new(&part.spec, 1, NULL, 0, NULL, &plan, NULL), SFT_OK);
    assert_int_equal(sft_writer_begin(plan, a_sink(), &writer, NULL), SFT_OK);
    sft_code code = sft_writer_copy(writer, 0, part.source, 0, 8, given, &err);
    sft_writer_abandon(writer);
    sft_plan_free(plan);
    return code;
}

static sft_code save_parts(const sft_plan_options *options, const sft_job *job) {
    sft_part part = a_part();
    return sft_save_parts(&part, 1, NULL, 0, options, a_sink(), job, &err);
}

static sft_code run_save_parts(const void *given) { return save_parts(given, NULL); }

static sft_code run_save_parts_job(const void *given) { return save_parts(NULL, given); }

static sft_code save_arrays(const sft_path_options *options, const sft_job *job) {
    const uint64_t eight[] = { 8 };
    const sft_array array = { { SFT_SPAN_INIT("w"), SFT_U8, 1, eight }, "01234567", 8 };
    return sft_save_arrays(temp_path("new"), &array, 1, NULL, 0, options, job, &err);
}

static sft_code run_save_arrays(const void *given) { return save_arrays(given, NULL); }

static sft_code run_save_arrays_job(const void *given) { return save_arrays(NULL, given); }

/* ── Editing ── */

static sft_code edit_with(const sft_edit_options *options) {
    sft_edit *edit;
    sft_code code = sft_edit_open(model("m"), options, &edit, &err);
    sft_edit_close(edit);
    return code;
}

static sft_code run_edit_open(const void *given) { return edit_with(given); }

static sft_code run_edit_open_open(const void *given) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    options.open = given;
    return edit_with(&options);
}

static sft_code run_edit_recover(const void *given) {
    return sft_edit_recover(model("m"), given, NULL, &err);
}

static sft_code run_edit_recover_open(const void *given) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    options.open = given;
    return sft_edit_recover(model("m"), &options, NULL, &err);
}

static sft_edit *an_edit(void) {
    sft_edit *edit;
    assert_int_equal(sft_edit_open(model("m"), NULL, &edit, NULL), SFT_OK);
    assert_int_equal(sft_edit_rename(edit, (sft_span){ "a", 1 }, (sft_span){ "b", 1 }, NULL),
                     SFT_OK);
    return edit;
}

static sft_code run_edit_apply(const void *given) {
    sft_edit *edit = an_edit();
    sft_code code = sft_edit_apply(edit, given, NULL, &err);
    sft_edit_close(edit);
    return code;
}

static sft_code save_edit(const sft_path_options *options, const sft_job *job) {
    sft_edit *edit = an_edit();
    sft_code code = sft_edit_save(edit, temp_path("new"), options, job, NULL, &err);
    sft_edit_close(edit);
    return code;
}

static sft_code run_edit_save(const void *given) { return save_edit(given, NULL); }

static sft_code run_edit_save_job(const void *given) { return save_edit(NULL, given); }

/* ── Sets ── */

static sft_code open_set(const sft_set_options *options) {
    sft_set *set;
    sft_code code = sft_set_open(model("m.safetensors"), options, &set, &err);
    sft_set_close(set);
    return code;
}

static sft_code open_list(const sft_set_options *options) {
    sft_set *set;
    const char *path = model("m.safetensors");
    sft_code code = sft_set_open_list(&path, 1, options, &set, &err);
    sft_set_close(set);
    return code;
}

static sft_code read_index(const sft_set_options *options) {
    sft_index *names;
    sft_code code = sft_index_open(index_of_model(), options, &names, &err);
    sft_index_close(names);
    return code;
}

static sft_set_options set_options(const sft_open_options *open) {
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    options.open = open;
    return options;
}

#define RUN_SET(name, function)                                                  \
    static sft_code run_##name(const void *given) { return function(given); }    \
    static sft_code run_##name##_open(const void *given) {                       \
        sft_set_options options = set_options(given);                            \
        return function(&options);                                               \
    }
RUN_SET(set_open, open_set)
RUN_SET(set_open_list, open_list)
RUN_SET(index_read, read_index)

static sft_code save_set(const sft_save_set_options *options, const sft_job *job) {
    static const uint32_t shard_of = 0;
    sft_part part = a_part();
    return sft_save_set(temp_path("folder"), &part, &shard_of, 1, 1, NULL, 0, options, job, &err);
}

static sft_code run_save_set(const void *given) { return save_set(given, NULL); }

static sft_code run_save_set_job(const void *given) { return save_set(NULL, given); }

static sft_code run_save_set_plan(const void *given) {
    sft_save_set_options options = SFT_SAVE_SET_OPTIONS_INIT;
    options.plan = given;
    return save_set(&options, NULL);
}

static sft_code run_index_rewrite(const void *given) {
    return sft_index_rewrite(index_of_model(), given, NULL, NULL, NULL, &err);
}

static sft_code run_index_rewrite_path(const void *given) {
    return sft_index_rewrite(index_of_model(), NULL, temp_path("to"), given, NULL, &err);
}

static sft_code diff(const sft_diff_options *options, const sft_job *job) {
    sft_set *set = set_of_model();
    sft_diff *out;
    sft_code code = sft_diff_new(set, set, options, job, &out, &err);
    sft_diff_free(out);
    sft_set_close(set);
    return code;
}

static sft_code run_diff_sets(const void *given) { return diff(given, NULL); }

static sft_code run_diff_sets_job(const void *given) { return diff(NULL, given); }

static sft_code run_check_deep(const void *given) {
    sft_set *set = set_of_model();
    sft_deep_counts deep;
    sft_code code = sft_set_check_deep(set, &deep, given, &err);
    sft_set_close(set);
    return code;
}

/* ── Casts, digests, facts ── */

static sft_code run_cast(const void *given) {
    char from[4] = { 0 }, to[2];
    return sft_cast(SFT_F32, from, SFT_F16, to, 1, given, NULL, &err);
}

static sft_code run_stats_of(const sft_statistics_options *options, const sft_job *job) {
    sft_statistics *statistics;
    sft_code code = sft_statistics_new(NULL, 0, options, job, &statistics, &err);
    sft_statistics_free(statistics);
    return code;
}

static sft_code run_statistics(const void *given) { return run_stats_of(given, NULL); }

static sft_code run_statistics_job(const void *given) { return run_stats_of(NULL, given); }

/* ── Adapters ── */

static sft_code run_adapter_open(const void *given) {
    test_file f = adapter_file(false);
    sft_set *set = adapter_set(&f, NULL);
    sft_adapter *adapter;
    sft_code code = sft_adapter_open(set, given, &adapter, &err);
    sft_adapter_close(adapter);
    sft_set_close(set);
    free_file(&f);
    return code;
}

/* A part of Z-Image, which is removed again where it was written. */
static sft_code convert_part(const sft_layout_options *options, const sft_save_set_options *folder,
                             bool single, const sft_job *job) {
    static const float values[13] = { 0 };
    test_file f = make_file(
        "{" ADAPTER_F32("layers.0.attention.qkv.weight", "[3,2]", 0, 24) ","
        ADAPTER_F32("layers.0.adaLN_modulation.0.weight", "[1]", 48, 52) ","
        ADAPTER_F32("noise_refiner.0.attention.qkv.weight", "[3,2]", 24, 48) "}", values, 52);
    sft_set *set = adapter_set(&f, NULL);
    const sft_set *sets[1] = { set };
    sft_layout_options one_file = SFT_LAYOUT_OPTIONS_INIT;
    sft_layout_conversion *conversion;
    one_file.to = SFT_LAYOUT_SINGLE;
    sft_code code = sft_layout_conversion_new(sets, 1, single ? &one_file : options, &conversion,
                                              NULL, &err);
    if (!code && single) code = sft_layout_conversion_save(conversion, a_sink(), job, &err);
    else if (!code)
        code = sft_layout_conversion_save_folder(conversion, temp_path("parts"), folder, job, &err);
    sft_layout_conversion_free(conversion);
    (void)unlink(temp_path("parts/transformer/diffusion_pytorch_model.safetensors"));
    (void)unlink(temp_path("parts/transformer/config.json"));
    (void)unlink(temp_path("parts/model_index.json"));
    (void)rmdir(temp_path("parts/transformer"));
    (void)rmdir(temp_path("parts"));
    sft_set_close(set);
    free_file(&f);
    return code;
}

static sft_code run_layout_new(const void *given) {
    return convert_part(given, NULL, false, NULL);
}

static sft_code run_layout_save(const void *given) {
    return convert_part(NULL, NULL, true, given);
}

static sft_code run_layout_folder(const void *given) {
    return convert_part(NULL, given, false, NULL);
}

static sft_code run_layout_folder_job(const void *given) {
    return convert_part(NULL, NULL, false, given);
}

static sft_code merge_both(const sft_merge_options *options, const sft_job *job) {
    test_file f = adapter_model();
    sft_set *set = adapter_set(&f, NULL);
    sft_merge_options linear = SFT_MERGE_OPTIONS_INIT;
    sft_merge *merge;
    linear.method = "linear";
    sft_code code = sft_merge_new(options ? options : &linear, &merge, &err);
    for (int i = 0; !code && i < 2; i++) code = sft_merge_add(merge, set, NULL, NULL, &err);
    if (!code) code = sft_merge_save(merge, a_sink(), job, &err);
    sft_merge_free(merge);
    sft_set_close(set);
    free_file(&f);
    return code;
}

/* The defaults are no merge: there is neither a method nor a recipe. */
static sft_code run_models_new(const void *given) {
    const sft_merge_options *options = given;
    sft_code code = merge_both(options, NULL);
    bool told = code == SFT_BAD_ARGUMENT && strstr(err.message, "expected a method or a recipe");
    return told ? SFT_OK : code;
}

static sft_code run_models_save(const void *given) { return merge_both(NULL, given); }

static sft_code run_mixture(const void *given) {
    test_file f = adapter_model();
    sft_set *set = adapter_set(&f, NULL);
    const sft_set *models[1] = { set };
    sft_mixture *mixture;
    sft_code code = sft_mixture_new(set, models, 1, given, NULL, &mixture, NULL, &err);
    sft_mixture_free(mixture);
    sft_set_close(set);
    free_file(&f);
    return code;
}

static sft_code merge_adapter(const sft_adapter_merge_options *options, const sft_adapter_use *use,
                              const sft_save_set_options *folder, bool saves, const sft_job *job) {
    test_file f = adapter_model(), g = adapter_file(false);
    sft_set *model_set = adapter_set(&f, NULL), *set = adapter_set(&g, NULL);
    sft_adapter_merge *merge;
    sft_code code = sft_adapter_merge_new(model_set, options, &merge, &err);
    if (!code) code = sft_adapter_merge_add(merge, set, use, &err);
    if (!code && saves) code = sft_adapter_merge_save(merge, a_sink(), job, &err);
    if (!code && !saves)
        code = sft_adapter_merge_save_set(merge, temp_path("merged"), folder, job, &err);
    sft_adapter_merge_free(merge);
    sft_set_close(model_set);
    sft_set_close(set);
    free_file(&f);
    free_file(&g);
    return code;
}

static sft_code run_merge_new(const void *given) {
    return merge_adapter(given, NULL, NULL, true, NULL);
}

static sft_code run_merge_add(const void *given) {
    return merge_adapter(NULL, given, NULL, true, NULL);
}

static sft_code run_merge_save(const void *given) {
    return merge_adapter(NULL, NULL, NULL, true, given);
}

static sft_code run_merge_save_set(const void *given) {
    return merge_adapter(NULL, NULL, given, false, NULL);
}

static sft_code run_merge_save_set_job(const void *given) {
    return merge_adapter(NULL, NULL, NULL, false, given);
}

static sft_code factor_adapter(const sft_adapter_factors_options *options,
                               const sft_adapter_use *use, const sft_job *computes,
                               const sft_job *saves) {
    test_file f = adapter_file(false);
    sft_set *set = adapter_set(&f, NULL);
    sft_adapter_factors *factors;
    sft_code code = sft_adapter_factors_new(SFT_ADAPTER_STACK, options, &factors, &err);
    if (!code) code = sft_adapter_factors_add(factors, set, use, &err);
    if (!code && computes) code = sft_adapter_factors_compute(factors, computes, &err);
    if (!code && !computes) code = sft_adapter_factors_save(factors, a_sink(), saves, &err);
    sft_adapter_factors_free(factors);
    sft_set_close(set);
    free_file(&f);
    return code;
}

static sft_code run_factors_new(const void *given) {
    return factor_adapter(given, NULL, NULL, NULL);
}

static sft_code run_factors_add(const void *given) {
    return factor_adapter(NULL, given, NULL, NULL);
}

static sft_code run_factors_compute(const void *given) {
    return factor_adapter(NULL, NULL, given, NULL);
}

static sft_code run_factors_save(const void *given) {
    return factor_adapter(NULL, NULL, NULL, given);
}

/* The defaults name no model, nor does the adapter: told after all of the struct was taken. */
static sft_code run_renamed_new(const void *given) {
    test_file f = adapter_file(false);
    sft_set *set = adapter_set(&f, NULL);
    sft_adapter_conversion *conversion;
    sft_code code = sft_adapter_conversion_new(set, given, &conversion, &err);
    sft_adapter_conversion_free(conversion);
    sft_set_close(set);
    free_file(&f);
    return code == SFT_TENSOR_NOT_FOUND ? SFT_OK : code;
}

static sft_code run_renamed_save(const void *given) {
    sft_adapter_conversion_options how = SFT_ADAPTER_CONVERSION_OPTIONS_INIT;
    test_file f = adapter_of_flux();
    sft_set *set = adapter_set(&f, NULL);
    sft_adapter_conversion *conversion;
    how.architecture = "flux.1";
    sft_code code = sft_adapter_conversion_new(set, &how, &conversion, &err);
    if (!code) code = sft_adapter_conversion_save(conversion, a_sink(), given, &err);
    sft_adapter_conversion_free(conversion);
    sft_set_close(set);
    free_file(&f);
    return code;
}

/* ── Imports ── */

#define ARRAY_HEADER "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }           "
static const char array_bytes[] = "\x93NUMPY\x01\0\x45\0" ARRAY_HEADER "\n01234567";

static sft_import *import_of_array(void) {
    sft_import *import;
    sft_source source = sft_source_memory(array_bytes, sizeof array_bytes - 1);
    assert_int_equal(sft_import_open_source(source, NULL, &import, NULL), SFT_OK);
    return import;
}

static sft_code run_remote_open(const void *given) {
    sft_remote *remote;
    sft_code code = sft_remote_open(given, &remote, &err);
    sft_remote_close(remote);
    return code;
}

/* The defaults name no URL: told after all of the struct was taken. */
static sft_code run_remote_fetch(const void *given) {
    sft_remote *remote;
    sft_buffer answer = { 0 };
    int status;
    assert_int_equal(sft_remote_open(NULL, &remote, &err), SFT_OK);
    sft_code code = sft_remote_fetch(remote, given, &status, &answer, &err);
    sft_remote_close(remote);
    return code == SFT_REMOTE_URL ? SFT_OK : code;
}

static sft_code run_import_open(const void *given) {
    const char *path = temp_path("a.npy");
    sft_import *import;
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(array_bytes, 1, sizeof array_bytes - 1, file),
                     sizeof array_bytes - 1);
    assert_int_equal(fclose(file), 0);
    sft_code code = sft_import_open(path, given, &import, &err);
    sft_import_close(import);
    return code;
}

static sft_code run_import_open_set(const void *given) {
    sft_set *set;
    temp_write("set.npy", array_bytes, sizeof array_bytes - 1);
    sft_code code = sft_import_open_set(temp_path("set.npy"), given, &set, &err);
    sft_set_close(set);
    return code;
}

static sft_code run_import_source(const void *given) {
    sft_import *import;
    sft_source source = sft_source_memory(array_bytes, sizeof array_bytes - 1);
    sft_code code = sft_import_open_source(source, given, &import, &err);
    sft_import_close(import);
    return code;
}

static sft_code run_import_saving(const sft_plan_options *plan, const sft_job *job) {
    sft_import *import = import_of_array();
    sft_code code = sft_import_save(import, a_sink(), plan, job, &err);
    sft_import_close(import);
    return code;
}

static sft_code run_import_save(const void *given) { return run_import_saving(given, NULL); }

static sft_code run_import_save_job(const void *given) { return run_import_saving(NULL, given); }

static sft_code run_import_verify(const void *given) {
    sft_import *import = import_of_array();
    sft_code code = sft_import_verify(import, given, &err);
    sft_import_close(import);
    return code;
}

#define RUN_EXPORT(format)                                                  \
    static sft_code run_export_##format(const void *given) {                \
        sft_part part = a_part();                                           \
        return sft_export_##format(&part, 1, given, a_sink(), NULL, &err);  \
    }                                                                       \
    static sft_code run_export_##format##_job(const void *given) {          \
        sft_part part = a_part();                                           \
        return sft_export_##format(&part, 1, NULL, a_sink(), given, &err);  \
    }
RUN_EXPORT(npz)
RUN_EXPORT(pt)

typedef struct conversion_case {
    sft_set *set;
    sft_conversion *conversion;
} conversion_case;

static sft_code convert_with(const sft_convert_options *options, conversion_case *c) {
    c->set = set_of_model();
    return sft_conversion_new(c->set, SFT_F16, options, &c->conversion, &err);
}

static sft_code convert_end(conversion_case *c, sft_code code) {
    sft_conversion_free(c->conversion);
    sft_set_close(c->set);
    return code;
}

static sft_code run_conversion_new(const void *given) {
    conversion_case c;
    return convert_end(&c, convert_with(given, &c));
}

static sft_code run_conversion_save(const void *given) {
    conversion_case c;
    assert_int_equal(convert_with(NULL, &c), SFT_OK);
    return convert_end(&c, sft_conversion_save(c.conversion, a_sink(), given, &err));
}

static sft_code run_conversion_save_shard(const void *given) {
    conversion_case c;
    assert_int_equal(convert_with(NULL, &c), SFT_OK);
    return convert_end(&c, sft_conversion_save_shard(c.conversion, 0, a_sink(), given, &err));
}

static sft_code convert_set(const sft_save_set_options *options, const sft_job *job) {
    conversion_case c;
    assert_int_equal(convert_with(NULL, &c), SFT_OK);
    const char *to = temp_path("folder");
    return convert_end(&c, sft_conversion_save_set(c.conversion, to, options, job, &err));
}

static sft_code run_conversion_save_set(const void *given) { return convert_set(given, NULL); }

static sft_code run_conversion_save_set_job(const void *given) {
    return convert_set(NULL, given);
}

static bool keep_on(void *ctx, const sft_hash_result *result) {
    (void)ctx, (void)result;
    return true;
}

static sft_code hash_many(const sft_hash_options *options, const sft_job *job) {
    sft_hash_request ask = { model("m"), SFT_HASH_ALL };
    return sft_hash_paths(&ask, 1, options, keep_on, NULL, job, &err);
}

static sft_code hash_one(const sft_hash_options *options, const sft_job *job) {
    sft_hashes hashes;
    return sft_hash_path(model("m"), SFT_HASH_ALL, options, &hashes, job, &err);
}

static sft_hash_options hash_options(const sft_open_options *open) {
    sft_hash_options options = SFT_HASH_OPTIONS_INIT;
    options.open = open;
    return options;
}

#define RUN_HASH(name, function)                                                          \
    static sft_code run_##name(const void *given) { return function(given, NULL); }       \
    static sft_code run_##name##_job(const void *given) { return function(NULL, given); } \
    static sft_code run_##name##_open(const void *given) {                                \
        sft_hash_options options = hash_options(given);                                   \
        return function(&options, NULL);                                                  \
    }
RUN_HASH(hash_paths, hash_many)
RUN_HASH(hash_path, hash_one)

static sft_code run_hash_set(const void *given) {
    sft_set *set = set_of_model();
    sft_hashes hashes;
    sft_code code = sft_hash_set(set, SFT_HASH_ALL, &hashes, given, &err);
    sft_set_close(set);
    return code;
}

static sft_code run_info_open(const void *given) {
    sft_set *set = set_of_model();
    sft_info *info;
    sft_code code = sft_info_open(set, NULL, NULL, given, &info, &err);
    sft_info_close(info);
    sft_set_close(set);
    return code;
}

static sft_code run_info_open_parts(const void *given) {
    sft_set *set = set_of_model();
    sft_info *part, *info;
    assert_int_equal(sft_info_open(set, NULL, NULL, NULL, &part, NULL), SFT_OK);
    const sft_info_component parts[] = { { "unet", set, part, "unet/m" } };
    sft_code code = sft_info_open_components(parts, 1, temp_path("model_index.json"), NULL, given,
                                             &info, &err);
    sft_info_close(info);
    sft_info_close(part);
    sft_set_close(set);
    return code;
}

#endif
