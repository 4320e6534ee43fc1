/* Writes a whole file from parts of sources. Tests: test_save.c. */
#include "base/announce.h"
#include "base/error.h"
#include "base/job.h"
#include "base/mem.h"
#include "base/options.h"
#include "bytes/source.h"
#include "file/file.h"
#include "safetensors_io.h"

#include <string.h>

/* A whole file being written from parts. */
typedef struct part_save {
    const sft_part *parts;
    size_t count;
    sft_plan *plan;
    uint32_t *order; /* file order -> part */
    sft_job job;
    uint64_t total;
} part_save;

sft_part sft_part_of(const sft_tensor *tensor, const sft_source *source) {
    sft_part part = { { tensor->name, tensor->dtype, tensor->rank, tensor->shape }, source,
                      tensor->offset };
    return part;
}

/* Takes from the permissions of the new file what a source does not grant. Before the first byte,
 * and again before publishing, for sources that learn of files meanwhile. */
static sft_code limit_parts(const part_save *save, const sft_sink *sink, sft_error *err) {
    const sft_source *last = NULL;
    sft_code code = SFT_OK;
    for (size_t i = 0; i < save->count && !code; i++) {
        const sft_source *source = save->parts[i].source;
        if (source != last) code = sft_sink_limit_mode(sink, sft_source_mode(source), err);
        last = source;
    }
    return code;
}

static sft_code write_parts(part_save *save, sft_sink sink, sft_error *err) {
    sfti_stages stages;
    sft_writer *writer;
    sft_code code = sft_writer_begin(save->plan, sink, &writer, err);
    if (code) return code;
    /* In the order in which they are copied. */
    sfti_announcement all = { .count = 0 };
    for (size_t i = 0; i < save->count; i++) {
        const sft_tensor *tensor = sft_plan_tensor_at(save->plan, i);
        const sft_part *part = &save->parts[save->order[i]];
        sfti_announce(&all, part->source, part->begin, tensor->end - tensor->begin);
    }
    sfti_announce_end(&all);
    sfti_stages_begin(&stages, &save->job, save->total);
    for (size_t i = 0; i < save->count && !code; i++) {
        const sft_tensor *tensor = sft_plan_tensor_at(save->plan, i);
        const sft_part *part = &save->parts[save->order[i]];
        uint64_t bytes = tensor->end - tensor->begin;
        code = sft_writer_copy(writer, i, part->source, part->begin, bytes, &stages.job, err);
        /* What went wrong with a source is told with the tensor it was for. */
        if (code && code != SFT_CANCELLED && err && err->tensor_len == SFT_NO_TENSOR)
            sfti_error_tensor(err, part->spec.name);
        stages.done += bytes;
    }
    if (!code) code = sfti_job_tick(&save->job, save->total, save->total, err);
    if (!code) code = limit_parts(save, &sink, err);
    if (!code) return sft_writer_finish(writer, err);
    sft_writer_abandon(writer);
    return code;
}

sft_code sft_save_parts(const sft_part *parts, size_t count, const sft_pair *metadata,
                        size_t metadata_count, const sft_plan_options *options, sft_sink sink,
                        const sft_job *job, sft_error *err) {
    part_save save = { .parts = parts, .count = count };
    sft_plan_options own;
    sft_code code = sfti_take_plan(options, &own, err);
    if (!code) code = sfti_take_job(job, &save.job, err);
    sft_allocator alloc = sfti_allocator(own.alloc);
    size_t order_bytes = count * sizeof *save.order;
    if (!code && count > 0 && !parts)
        code = sfti_misuse(err, "expected an array of parts, found NULL");
    for (size_t i = 0; i < count && !code; i++)
        if (!parts[i].source || !sfti_source_usable(parts[i].source))
            code = sfti_fail_tensor(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET, parts[i].spec.name,
                                    "expected a source for the tensor, found NULL");
    if (!code && count > 0) {
        save.order = count < UINT32_MAX ? sfti_take(&alloc, order_bytes) : NULL;
        if (!save.order) code = sfti_fail_memory(err, order_bytes);
    }
    if (!code)
        code = sfti_plan_parts(parts, count, metadata, metadata_count, &own, &save.plan, err);
    if (!code) {
        for (size_t i = 0; i < count; i++)
            save.order[sft_plan_position(save.plan, i)] = (uint32_t)i;
        if (count > 0) save.total = sft_plan_tensor_at(save.plan, count - 1)->end;
        code = limit_parts(&save, &sink, err);
    }
    if (!code) code = write_parts(&save, sink, err);
    else sft_sink_abandon(&sink);
    sft_plan_free(save.plan);
    sfti_release(&alloc, save.order, order_bytes);
    return code;
}

/* ── From memory ── */

static sft_code array_check(const sft_array *array, sft_error *err) {
    const sft_spec *spec = &array->spec;
    uint64_t bytes;
    sft_code code = sft_shape_size(spec->dtype, spec->shape, spec->rank, NULL, &bytes, err);
    if (!code && bytes != array->len)
        code = sfti_fail(err, SFT_BUFFER_SIZE, "expected %llu bytes, found %zu",
                         (unsigned long long)bytes, array->len);
    if (!code && array->len > 0 && !array->data)
        code = sfti_misuse(err, "expected data of the tensor, found NULL");
    if (code) sfti_error_tensor(err, spec->name);
    return code;
}

sft_code sft_save_arrays(const char *path, const sft_array *arrays, size_t count,
                         const sft_pair *metadata, size_t metadata_count,
                         const sft_path_options *options, const sft_job *job, sft_error *err) {
    sft_path_options own;
    sft_job checked;
    sft_plan_options plan = SFT_PLAN_OPTIONS_INIT;
    sft_sink sink;
    sft_part *parts = NULL;
    sft_source *sources = NULL;
    sft_code code = sfti_take_path(options, &own, err);
    if (!code) code = sfti_take_job(job, &checked, err);
    if (!code && (!path || (count > 0 && !arrays)))
        code = sfti_misuse(err, "expected a path and an array of arrays, found NULL");
    for (size_t i = 0; i < count && !code; i++) code = array_check(&arrays[i], err);
    if (code) return code;

    sft_allocator alloc = sfti_allocator(own.alloc);
    size_t each = sizeof *parts + sizeof *sources;
    if (count > 0) {
        parts = count < SIZE_MAX / each ? sfti_take(&alloc, count * each) : NULL;
        if (!parts) return sfti_fail_memory(err, count * each);
        sources = (sft_source *)(void *)(parts + count);
    }
    for (size_t i = 0; i < count; i++) {
        sources[i] = sft_source_memory(arrays[i].data, arrays[i].len);
        parts[i] = (sft_part){ arrays[i].spec, &sources[i], 0 };
    }
    plan.alloc = own.alloc;
    code = sft_sink_path(path, options, &sink, err);
    if (!code)
        code = sft_save_parts(parts, count, metadata, metadata_count, &plan, sink, job, err);
    sfti_release(&alloc, parts, count * each);
    return code;
}
