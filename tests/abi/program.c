/* A program as its author built it with the header of an earlier release: it reads, slices, scans,
 * writes, edits and converts, with options, and is right about every number. Exit status: the
 * number of the line that was not. usage: program EMPTY_FOLDER */
#include "safetensors_stable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(what)                                                    \
    do {                                                              \
        if (!(what)) {                                                \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #what, err.message); \
            exit(1);                                                  \
        }                                                             \
    } while (0)

static sft_error err = SFT_ERROR_INIT;
static uint64_t ticks;
static const char *folder;

static const char *in(const char *name) {
    static char paths[4][4096];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static bool tick(void *ctx, uint64_t done, uint64_t total) {
    MUST(ctx == &ticks && done <= total);
    ticks++;
    return true;
}

/* ── A source of the program's own ── */

static const float numbers[6] = { 0, 1, 2, 3, 4, 5 };

static sft_code read_numbers(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                             sft_error *e) {
    (void)e;
    *got = len < sizeof numbers - offset ? len : sizeof numbers - (size_t)offset;
    memcpy(into, (const char *)ctx + offset, *got);
    return SFT_OK;
}

static void write_model(void) {
    static const uint64_t shape[2] = { 2, 3 }, four = 4;
    static const sft_source_vtable table = { sizeof(sft_source_vtable), read_numbers, NULL };
    union { const float *from; void *ctx; } all = { numbers };
    sft_source mine = { all.ctx, &table, sizeof numbers, NULL, false };
    sft_source bytes = sft_source_memory("abcd", 4);
    sft_part parts[2] = { { { { "w", 1 }, SFT_F32, 2, shape }, &mine, 0 },
                          { { { "b", 1 }, SFT_U8, 1, &four }, &bytes, 0 } };
    sft_pair pair = { { "key", 3 }, { "value", 5 } };
    sft_plan_options options = SFT_PLAN_OPTIONS_INIT;
    sft_path_options path = SFT_PATH_OPTIONS_INIT;
    sft_job job = SFT_JOB_INIT;
    sft_sink sink;
    options.align = 64;
    path.mode = 0600;
    job.tick = tick;
    job.ctx = &ticks;
    MUST(!sft_sink_path(in("m.safetensors"), &path, &sink, &err));
    MUST(!sft_save_parts(parts, 2, &pair, 1, &options, sink, &job, &err));
    MUST(ticks > 0);
}

static void plan_and_write(void) {
    static const uint64_t two = 2;
    sft_spec spec = { { "x", 1 }, SFT_F16, 1, &two };
    sft_plan *plan;
    sft_writer *writer;
    sft_buffer out = { 0 };
    MUST(!sft_plan_new(&spec, 1, NULL, 0, NULL, &plan, &err));
    MUST(sft_plan_tensor_count(plan) == 1 && sft_plan_tensor_at(plan, 0)->end == 4);
    MUST(!sft_writer_begin(plan, sft_sink_memory(&out), &writer, &err));
    MUST(!sft_writer_put(writer, 0, "1234", 4, &err) && !sft_writer_finish(writer, &err));
    MUST(out.len == sft_plan_total(plan) && !memcmp(out.data + out.len - 4, "1234", 4));
    sft_plan_free(plan);
    sft_buffer_free(&out);
}

/* ── Reading ── */

static void read_tensors(const sft_file *file) {
    const sft_tensor *w = sft_file_find_cstr(file, "w"), *b = sft_file_find_cstr(file, "b");
    float got[6], column[2];
    sft_read reads[2] = { { w, got, sizeof got }, { b, column, 4 } };
    sft_job job = SFT_JOB_INIT;
    sft_slice slice;
    sft_loan loan;
    job.threads = 2;
    MUST(w && b && w->rank == 2 && w->shape[0] == 2 && w->shape[1] == 3 && w->dtype == SFT_F32);
    MUST(w->name.len == 1 && w->end - w->begin == sizeof got && b->dtype == SFT_U8);
    MUST(w->offset == sft_file_data_offset(file) + w->begin && sft_tensor_aligned(w));
    MUST(!sft_read_many(file, reads, 2, &job, &err) && !memcmp(got, numbers, sizeof got));
    MUST(!memcmp(column, "abcd", 4));
    MUST(!sft_slice_parse(w->shape, w->rank, sft_span_cstr("[:, 1]"), &slice, &err));
    MUST(slice.rank == 2 && slice.dropped == 2 && slice.range[1].start == 1);
    MUST(!sft_slice_read(file, w, &slice, column, sizeof column, &err));
    MUST(column[0] > 0.5f && column[0] < 1.5f && column[1] > 3.5f && column[1] < 4.5f);
    MUST(!sft_borrow(file, w, &loan, &err) && loan.len == sizeof got);
    MUST(!memcmp(loan.data, numbers, sizeof got));
    sft_return(file, &loan);
}

static void open_model(void) {
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    sft_file *file;
    sft_span value;
    options.level = SFT_LEVEL_STRICT;
    options.mode = SFT_MAP;
    options.max_tensors = 2;
    MUST(!sft_open(in("m.safetensors"), &options, &file, &err));
    MUST(sft_file_tensor_count(file) == 2 && sft_file_is_mapped(file));
    MUST(sft_file_level(file) == SFT_LEVEL_STRICT && sft_file_alignment(file) >= 64);
    MUST(sft_file_metadata_get_cstr(file, "key", &value) && sft_span_equal(value,
                                                                           sft_span_cstr("value")));
    read_tensors(file);
    sft_close(file);
    options.max_tensors = 1;
    MUST(sft_open(in("m.safetensors"), &options, &file, &err) == SFT_TOO_MANY_TENSORS && !file);
    MUST(err.code == SFT_TOO_MANY_TENSORS && err.message[0] && err.tensor_len == SFT_NO_TENSOR);
    MUST(sft_open(in("absent"), NULL, &file, &err) == SFT_NOT_FOUND && err.os_errno);
    MUST(!strcmp(sft_code_describe(err.code)->name, "not_found"));
    MUST(sft_dtype_describe(SFT_BF16)->bits == 16);
    MUST(!strcmp(sft_dtype_describe(SFT_BF16)->name, "BF16"));
}

static void scan_bad(void) {
    static const char bytes[] = "\x3c\0\0\0\0\0\0\0"
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}      0123";
    sft_scan *scan;
    sft_scan_entry entry;
    MUST(!sft_scan_open_source(sft_source_memory(bytes, sizeof bytes - 1), NULL, &scan, &err));
    MUST(sft_scan_error(scan) && sft_scan_error(scan)->code == SFT_DATA_TRUNCATED);
    MUST(sft_scan_finding_count(scan) == 1
         && sft_scan_finding_at(scan, 0)->error.code == SFT_DATA_TRUNCATED);
    entry = sft_scan_entry_at(scan, 0);
    MUST(entry.name_begin == 9 && entry.value_end > entry.value_begin && entry.dtype.len == 5);
    sft_scan_close(scan);
}

/* ── Sets, edits, casts ── */

static void edit_model(void) {
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    sft_edit_report report;
    sft_edit *edit;
    options.safe = true;
    MUST(!sft_edit_open(in("m.safetensors"), &options, &edit, &err));
    MUST(!sft_edit_set(edit, sft_span_cstr("key"), sft_span_cstr("other"), &err));
    MUST(!sft_edit_apply(edit, NULL, &report, &err));
    MUST(report.method == SFT_EDIT_COPY || report.method == SFT_EDIT_REFLINK);
    MUST(report.header_after && report.file_after > report.header_after);
    sft_edit_close(edit);
}

static void convert_set(void) {
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    sft_open_options open = SFT_OPEN_OPTIONS_INIT;
    sft_convert_options how = SFT_CONVERT_OPTIONS_INIT;
    sft_conversion *conversion;
    sft_dtype_sum sums[4];
    sft_sink sink;
    sft_set *set;
    sft_span value;
    open.level = SFT_LEVEL_COMPAT;
    options.open = &open;
    MUST(!sft_set_open(in("m.safetensors"), &options, &set, &err));
    MUST(sft_set_tensor_count(set) == 2 && sft_set_shard_count(set) == 1);
    MUST(sft_file_level(sft_set_shard_at(set, 0)) == SFT_LEVEL_COMPAT);
    MUST(sft_set_dtypes(set, sums, 4) == 2 && sums[1].dtype == SFT_F32 && sums[1].bytes == 24);
    MUST(sft_file_metadata_get_cstr(sft_set_shard_at(set, 0), "key", &value) && value.len == 5
         && !memcmp(value.data, "other", 5));
    how.saturate = true;
    MUST(!sft_conversion_new(set, SFT_F16, &how, &conversion, &err));
    MUST(sft_conversion_count(conversion, SFT_CONVERT_CAST) == 1);
    MUST(sft_conversion_bytes_after(conversion) == 12 + 4);
    MUST(!sft_sink_path(in("half.safetensors"), NULL, &sink, &err));
    MUST(!sft_conversion_save(conversion, sink, NULL, &err));
    sft_conversion_free(conversion);
    sft_set_close(set);
    MUST(!sft_set_open(in("half.safetensors"), NULL, &set, &err));
    MUST(sft_set_find(set, sft_span_cstr("w"), NULL)->dtype == SFT_F16);
    sft_set_close(set);
}

int main(int argc, char **argv) {
    MUST(argc == 2);
    folder = argv[1];
    write_model();
    plan_and_write();
    open_model();
    scan_bad();
    edit_model();
    convert_set();
    puts("ok");
    return 0;
}
