/* Which parts a quantised model has, where their bytes come from, and how it is declared. Tests:
 * test_encode.c, tests/cli/convert. */
#include "convert/quantise.h"

#include "base/error.h"
#include "base/job.h"
#include "base/json.h"
#include "convert/computed.h"
#include "convert/conversion.h"
#include "convert/dropped.h"
#include "convert/ignoring.h"
#include "convert/targets.h"
#include "keys/digest_keys.h"
#include "safetensors_report.h"
#include "set/image.h"

#include <string.h>

/* ── A model ── */

typedef struct quantise_row {
    uint8_t action; /* sfti_quantise_action */
    const char *why;
    sfti_encoded matrix;
    sft_part values; /* F32 */
} quantise_row;

/* A part that is made: of a row, or a text. */
typedef struct quantise_output {
    sfti_quantising *of;
    size_t row, part;
    sft_span text;
    sft_source source;
} quantise_output;

struct sfti_quantising {
    sfti_arena arena;
    sft_allocator alloc;
    sfti_quantise_options options;
    const sft_set *set;
    sft_conversion *values; /* of quantised tensors, F32 */
    sft_conversion *plain;  /* all floats as F32 */
    sft_conversion *spared; /* of quantised tensors, BF16; NULL: none is needed */
    sfti_encoding how;
    sfti_encoder encoder;
    quantise_row *rows;
    sft_source *files;
    sft_part *parts;
    uint32_t *shard;
    size_t count;
    quantise_output *outputs;
    size_t output_count;
    sft_pair *pairs;
    size_t pair_count;
    unsigned dropped;
    sft_buffer config;
    uint64_t before, after;
};

static sft_code output_read(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                            sft_error *err) {
    quantise_output *output = ctx;
    sfti_quantising *q = output->of;
    quantise_row *row = &q->rows[output->row];
    *got = len;
    if (output->text.data) {
        memcpy(into, output->text.data + offset, len);
        return SFT_OK;
    }
    if (q->encoder.matrix != &row->matrix)
        sfti_encoder_begin(&q->encoder, &q->how, &row->matrix,
                           sft_set_tensor_at(q->set, output->row)->name, row->values.source,
                           row->values.begin);
    sft_code code = sfti_encoder_read(&q->encoder, output->part, offset, into, len, err);
    const sfti_encoded *m = &row->matrix;
    /* Values of F64 can be lost before they are F32. */
    bool lost = m->counted == m->all_rows && !(m->power > 0)
             && sft_conversion_lost(q->plain, output->row, SFT_LOSS_ZERO) > 0;
    return !code && lost ? sfti_encoded_lost(q->encoder.name, err) : code;
}

static uint32_t output_mode(void *ctx) {
    return sft_set_output_mode(((const quantise_output *)ctx)->of->set, NULL);
}

static const sft_source_vtable output_source = { sizeof(sft_source_vtable), output_read, NULL,
                                                 NULL, output_mode };

static bool is_encoded(const sft_part *part) {
    return part->source && part->source->vtable == &output_source;
}

/* ── What becomes of each tensor ── */

/* A plain cast to few bits is a quantisation, too. */
static bool is_plain_code(const sft_tensor *tensor) {
    const sft_dtype_info *info = sft_dtype_describe(tensor->dtype);
    return info->kind == SFT_KIND_FLOAT && info->bits <= 8 && tensor->rank >= 2;
}

static sft_code decide_row(sfti_quantising *q, size_t i, sft_error *err) {
    quantise_row *row = &q->rows[i];
    const sft_tensor *tensor = sft_set_tensor_at(q->set, i);
    sft_convert_action before = sft_conversion_action(q->values, i, NULL);
    bool coded = before == SFT_CONVERT_DEQUANTIZE;
    bool computed = q->options.computed && q->options.computed[i];
    *row = (quantise_row){ .action = SFTI_QUANTISE_LEFT };
    if (before == SFT_CONVERT_DROP) row->action = SFTI_QUANTISE_GONE;
    if (!q->options.from_quantised && (coded || is_plain_code(tensor))) {
        sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, tensor->name,
                         "expected a model that is not quantised, found %s%s",
                         sft_dtype_describe(tensor->dtype)->name, coded ? " with scales" : "");
        sfti_hint(err, SFT_HINT_NONE);
        return SFT_CAST_DTYPE;
    }
    if (before == SFT_CONVERT_DROP) return SFT_OK;
    row->values = sft_conversion_part(coded ? q->values : q->plain, i);
    const sft_spec *spec = &row->values.spec;
    row->why = q->options.spares(q->options.ctx, i, spec);
    if (!row->why && (spec->rank != 2 || spec->dtype != SFT_F32)) row->why = "no floats";
    if (!row->why)
        row->why = sfti_encoded_begin(&q->how, spec->shape[0], spec->shape[1], &row->matrix);
    if (!row->why) row->action = SFTI_QUANTISE_CODES;
    else if (coded || computed) row->action = SFTI_QUANTISE_VALUES;
    return SFT_OK;
}

/* ── Parts ── */

/* How many tensors are written for one that is quantised: parts, and ComfyUI's declaration. */
static size_t outputs_each(const sfti_quantising *q) {
    return sfti_encoded_parts(&q->how) + (q->how.layout->comfy.len > 0);
}

/* The first of a part's names, but "scale" before "scale_inv" and the like. */
static sft_code name_part(sfti_quantising *q, sft_span names, sft_span tensor, sft_span *name,
                          sft_error *err) {
    char buffer[SFTI_PART_NAME];
    sft_span one = { "", 0 }, other, stem = tensor;
    while (sfti_layout_word(&names, '|', &other))
        if (one.len == 0 || sft_span_equal(other, sft_span_cstr("*_scale"))) one = other;
    if (!q->how.layout->result.len) (void)sfti_layout_stem(q->how.layout, tensor, &stem);
    *name = sfti_layout_name(one, stem, buffer);
    if (name->len == 0) {
        sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, tensor,
                         "expected a name short enough for those of its scales, found a longer "
                         "one");
        sfti_hint(err, SFT_HINT_CHOOSE_TENSORS);
        return SFT_CAST_DTYPE;
    }
    char *copy = sfti_arena_copy(&q->arena, name->data, name->len);
    *name = (sft_span){ copy, name->len };
    return copy ? SFT_OK : sfti_fail_memory(err, name->len);
}

/* {"format":"nvfp4","orig_shape":[33,70]} */
static sft_code declare_layer(sfti_quantising *q, const sfti_encoded *m, sft_span *out,
                              sft_error *err) {
    sft_buffer text = { .alloc = q->alloc };
    sft_sink sink = sft_sink_memory(&text);
    sfti_json_writer w;
    sfti_json_write(&w, &sink, 0, err);
    sfti_json_open(&w, '{');
    sfti_json_put_text(&w, "format", q->how.layout->comfy);
    if (q->how.rows == 1 && q->how.columns == 0) sfti_json_put_bool(&w, "per_row", true);
    if (m->rotate) sfti_json_put_bool(&w, "convrot", true);
    if (m->rotate) sfti_json_put_uint(&w, "convrot_groupsize", m->rotate);
    if (m->all_rows != m->rows || m->all_columns != m->columns)
        sfti_json_put_shape(&w, "orig_shape", (uint64_t[]){ m->rows, m->columns }, 2);
    sfti_json_close(&w, '}');
    sft_code code = sfti_json_done(&w);
    if (!code) {
        char *copy = sfti_arena_copy(&q->arena, text.data, text.len);
        *out = (sft_span){ copy, text.len };
        if (!copy) code = sfti_fail_memory(err, text.len);
    }
    sft_buffer_free(&text);
    return code;
}

static uint32_t shard_of(const sfti_quantising *q, size_t i) {
    return q->options.shard_of ? q->options.shard_of[i] : (uint32_t)sft_set_tensor_shard(q->set, i);
}

static sft_code add_outputs(sfti_quantising *q, size_t i, sft_error *err) {
    const quantise_row *row = &q->rows[i];
    sft_span tensor = row->values.spec.name;
    size_t parts = sfti_encoded_parts(&q->how);
    for (size_t k = 0; k < outputs_each(q); k++) {
        quantise_output *output = &q->outputs[q->output_count++];
        sft_part *part = &q->parts[q->count];
        sft_span pattern = sft_span_cstr(".comfy_quant");
        uint64_t *shape = sfti_arena_array(&q->arena, 2, sizeof *shape), bytes = 0;
        if (!shape) return sfti_fail_memory(err, 2 * sizeof *shape);
        *output = (quantise_output){ .of = q, .row = i, .part = k };
        *part = (sft_part){ .spec = { .shape = shape } };
        for (size_t p = 0, at = 0; k < parts && p < q->how.layout->count; p++)
            if (q->how.layout->parts[p].role <= SFTI_PART_SCALE && at++ == k)
                pattern = q->how.layout->parts[p].names;
        sft_code code = name_part(q, pattern, tensor, &part->spec.name, err);
        if (!code && k == parts) {
            code = declare_layer(q, &row->matrix, &output->text, err);
            part->spec.dtype = SFT_U8;
            part->spec.rank = 1;
            shape[0] = output->text.len;
        } else {
            sfti_encoded_spec(&q->how, &row->matrix, k, &part->spec.dtype, shape,
                              &part->spec.rank);
        }
        if (!code)
            code = sft_shape_size(part->spec.dtype, shape, part->spec.rank, NULL, &bytes, err);
        if (code) return code;
        output->source = (sft_source){ .ctx = output, .vtable = &output_source, .size = bytes };
        part->source = &output->source;
        q->shard[q->count++] = shard_of(q, i);
        q->after += bytes;
    }
    return SFT_OK;
}

static sft_code list_parts(sfti_quantising *q, sft_error *err) {
    size_t count = sft_set_tensor_count(q->set), made = 0, kept = 0;
    for (size_t i = 0; i < count; i++) {
        made += q->rows[i].action == SFTI_QUANTISE_CODES;
        kept += q->rows[i].action == SFTI_QUANTISE_LEFT
                || q->rows[i].action == SFTI_QUANTISE_VALUES;
    }
    size_t all = made * outputs_each(q) + kept;
    q->outputs = sfti_arena_array(&q->arena, made * outputs_each(q), sizeof *q->outputs);
    q->parts = sfti_arena_array(&q->arena, all, sizeof *q->parts);
    q->shard = sfti_arena_array(&q->arena, all, sizeof *q->shard);
    if (!q->outputs || !q->parts || !q->shard) return sfti_fail_memory(err, all);
    for (size_t i = 0; i < count; i++) {
        const sft_tensor *tensor = sft_set_tensor_at(q->set, i);
        size_t shard = sft_set_tensor_shard(q->set, i);
        uint8_t action = q->rows[i].action;
        q->before += tensor->end - tensor->begin;
        if (action == SFTI_QUANTISE_CODES) {
            sft_code code = add_outputs(q, i, err);
            if (code) return code;
        } else if (action != SFTI_QUANTISE_GONE) {
            bool values = action == SFTI_QUANTISE_VALUES;
            q->shard[q->count] = shard_of(q, i);
            q->parts[q->count++] = values ? sft_conversion_part(q->spared, i)
                                          : sft_part_of(tensor, &q->files[shard]);
            q->after += values ? sft_conversion_bytes(q->spared, i) : tensor->end - tensor->begin;
        }
    }
    return SFT_OK;
}

/* ── Metadata ── */

/* The modules whose weights are written. */
static sft_code list_modules(sfti_quantising *q, sfti_ignoring *out, sft_error *err) {
    size_t count = sft_set_tensor_count(q->set);
    out->modules = sfti_arena_array(&q->arena, count, sizeof *out->modules);
    if (!out->modules) return sfti_fail_memory(err, count * sizeof *out->modules);
    for (size_t i = 0; i < count; i++) {
        const quantise_row *row = &q->rows[i];
        sft_span name = row->values.spec.name;
        if (row->action == SFTI_QUANTISE_GONE || !sfti_name_ends(name, ".weight")) continue;
        name.len -= strlen(".weight");
        out->modules[out->count++] = (sfti_ignoring_module){
            .name = name, .codes = row->action == SFTI_QUANTISE_CODES,
            .spared = row->why && *row->why };
    }
    return SFT_OK;
}

static sft_code write_config(sfti_quantising *q, sft_error *err) {
    sft_sink sink = sft_sink_memory(&q->config);
    sfti_json_writer w;
    sft_span lines = q->options.target->members, text, rest, members;
    char *all = sfti_arena_take(&q->arena, lines.len);
    if (lines.len == 0) return SFT_OK;
    if (!all) return sfti_fail_memory(err, lines.len);
    members = (sft_span){ all, 0 };
    while (sfti_layout_line(&lines, "members", &text, &rest)) {
        memcpy(all + members.len, text.data, text.len);
        members.len += text.len;
    }
    sfti_json_write(&w, &sink, 0, err);
    sfti_json_open(&w, '{');
    sfti_json_put_text(&w, "quant_method", q->options.target->layout);
    sfti_json_raw(&w, members);
    sfti_json_put_open(&w, "ignore", '[');
    sfti_ignoring modules = { .layout = q->options.target->layout, .alloc = q->arena.alloc };
    sft_code code = list_modules(q, &modules, err);
    if (!code) code = sfti_ignoring_write(&modules, &q->values->declared.layouts.rows[0], &w, err);
    if (code) return code;
    sfti_json_close(&w, ']');
    sfti_json_close(&w, '}');
    return sfti_json_done(&w);
}

static sft_code list_pairs(sfti_quantising *q, sft_error *err) {
    size_t count = sfti_conversion_pairs(q->values);
    sft_code code = write_config(q, err);
    q->pairs = sfti_arena_array(&q->arena, (uint64_t)count + 1, sizeof *q->pairs);
    if (code || !q->pairs) return code ? code : sfti_fail_memory(err, count * sizeof *q->pairs);
    q->dropped = sfti_conversion_dropped(q->values);
    for (size_t i = 0; i < count; i++) {
        sft_pair pair = sfti_conversion_pair(q->values, i);
        unsigned digest = sfti_digest_key_of(pair.key) & SFTI_DIGESTS_OF_DATA;
        bool ended = sft_span_equal(pair.key, sft_span_cstr(SFTI_QUANTISER_KEY))
                  || sft_span_equal(pair.key, sft_span_cstr("_quantization_metadata"));
        q->dropped |= digest;
        if (!digest && !ended) q->pairs[q->pair_count++] = pair;
    }
    if (q->config.len)
        q->pairs[q->pair_count++] = (sft_pair){ sft_span_cstr(SFTI_QUANTISER_KEY),
                                                { q->config.data, q->config.len } };
    return SFT_OK;
}

/* ── Proof ── */

static void close_proof(void *owner) { sfti_arena_free(owner); }
static uint32_t proof_mode(const void *owner) {
    (void)owner;
    return 0;
}

/* What the reader makes of part k, which is tensor i of it, must be what it is written as. */
static sft_code prove_part(const sfti_quantising *q, size_t k, const sft_conversion *read,
                           size_t i, sft_error *err) {
    const sft_part *part = &q->parts[k];
    bool made = is_encoded(part);
    const quantise_output *output = made ? part->source->ctx : NULL;
    bool codes = made && output->part == 0 && !output->text.data;
    sft_convert_action action = sft_conversion_action(read, i, NULL);
    if (action == SFT_CONVERT_REFUSED) return sft_conversion_refusal(read, i, NULL, err);
    if (action != (codes ? SFT_CONVERT_DEQUANTIZE : made ? SFT_CONVERT_DROP : SFT_CONVERT_OTHER)) {
        sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, part->spec.name,
                         "expected no tensor that a reader would take for a part of a quantised "
                         "matrix, found this one");
        return SFT_CAST_DTYPE;
    }
    if (!codes) return SFT_OK;
    const sft_spec *wanted = &q->rows[output->row].values.spec, *got = &read->quants[i]->spec;
    bool same = sft_span_equal(read->quants[i]->layout->id, q->how.layout->id)
             && sft_span_equal(got->name, wanted->name) && got->rank == 2
             && got->shape[0] == wanted->shape[0] && got->shape[1] == wanted->shape[1];
    if (same) return SFT_OK;
    return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, wanted->name,
                            "expected a matrix that would be read as it is written, found another "
                            "layout or shape");
}

/* Reads what will be written, but for codes and scales: what stands beside a matrix may change what
 * it means, and then it is not written. */
static sft_code prove_parts(const sfti_quantising *q, sft_error *err) {
    sfti_arena work = { .alloc = q->alloc };
    sft_plan_options plan = SFT_PLAN_OPTIONS_INIT;
    sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
    sft_set *image;
    sft_conversion *read;
    for (size_t k = 0; k < q->count; k++) {
        sft_span name = q->parts[k].spec.name;
        uint32_t i = sfti_names_find(&q->values->search.names, name);
        bool kept = i != SFTI_NO_NAME && q->rows[i].action == SFTI_QUANTISE_LEFT;
        if (kept && is_encoded(&q->parts[k]))
            return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, name,
                                    "expected no tensor of the name of what belongs to a quantised "
                                    "matrix, found one");
    }
    plan.alloc = options.alloc = &q->alloc;
    plan.has_metadata = q->pair_count > 0;
    options.dequantize = options.partial = true;
    sfti_image_of of = { .parts = q->parts, .count = q->count, .metadata = q->pairs,
                         .metadata_count = q->pair_count, .plan = &plan, .arena = &work,
                         .owner = &work, .close = close_proof, .mode = proof_mode };
    sft_code code = sfti_image_set(&of, NULL, &image, err);
    if (code) return code;
    code = sft_conversion_new(image, SFT_F32, &options, &read, err);
    for (size_t k = 0; !code && k < q->count; k++)
        code = prove_part(q, k, read, sfti_names_find(&read->search.names, q->parts[k].spec.name),
                          err);
    sft_conversion_free(read);
    sft_set_close(image);
    return code;
}

/* ── All together ── */

static sft_code open_values(sfti_quantising *q, sft_error *err) {
    sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
    options.alloc = &q->alloc;
    options.files = q->options.files;
    sft_code code = sft_conversion_new(q->set, SFT_F32, &options, &q->plain, err);
    options.dequantize = true;
    if (!code) code = sft_conversion_new(q->set, SFT_F32, &options, &q->values, err);
    bool may_spare = q->options.computed
                  || (q->values && sft_conversion_count(q->values, SFT_CONVERT_DEQUANTIZE) > 0);
    if (!code && may_spare)
        code = sfti_conversion_new(q->set, SFT_BF16, &options, q->options.computed, &q->spared,
                                   err);
    bool shares = err && err->hint == SFT_HINT_IMPORT_SHARED;
    if (code == SFT_CAST_DTYPE && !shares) sfti_hint(err, SFT_HINT_NONE);
    return code;
}

static sft_code plan_quantisation(sfti_quantising *q, sft_error *err) {
    size_t shards = sft_set_shard_count(q->set), count = sft_set_tensor_count(q->set);
    q->how = q->options.target->how;
    q->rows = sfti_arena_array(&q->arena, count, sizeof *q->rows);
    q->files = sfti_arena_array(&q->arena, shards, sizeof *q->files);
    if (!q->rows || !q->files) return sfti_fail_memory(err, count * sizeof *q->rows);
    for (size_t s = 0; s < shards; s++) q->files[s] = sft_file_source(sft_set_shard_at(q->set, s));
    sft_code code = open_values(q, err);
    for (size_t i = 0; !code && i < count; i++) code = decide_row(q, i, err);
    if (!code) code = list_parts(q, err);
    if (!code) code = list_pairs(q, err);
    if (code) return code;
    code = prove_parts(q, err);
    if (code == SFT_CAST_DTYPE) sfti_hint(err, SFT_HINT_CHOOSE_TENSORS);
    return code;
}

sft_code sfti_quantising_new(const sft_set *set, const sfti_quantise_options *options,
                               sfti_quantising **out, sft_error *err) {
    sft_allocator alloc = sfti_allocator(options->alloc);
    sfti_quantising *q = sfti_take(&alloc, sizeof *q);
    *out = NULL;
    if (!q) return sfti_fail_memory(err, sizeof *q);
    memset(q, 0, sizeof *q);
    q->alloc = q->arena.alloc = q->encoder.alloc = q->config.alloc = alloc;
    q->options = *options;
    q->set = set;
    sft_code code = plan_quantisation(q, err);
    if (code) sfti_quantising_free(q);
    else *out = q;
    return code;
}

void sfti_quantising_free(sfti_quantising *q) {
    if (!q) return;
    sft_allocator alloc = q->alloc;
    sfti_encoder_end(&q->encoder);
    sft_conversion_free(q->values);
    sft_conversion_free(q->plain);
    sft_conversion_free(q->spared);
    sft_buffer_free(&q->config);
    sfti_arena_free(&q->arena);
    sfti_release(&alloc, q, sizeof *q);
}

const sft_part *sfti_quantising_parts(const sfti_quantising *q, size_t *count,
                                        const uint32_t **shard) {
    *count = q->count;
    *shard = q->shard;
    return q->parts;
}

const sft_pair *sfti_quantising_pairs(const sfti_quantising *q, size_t *count) {
    *count = q->pair_count;
    return q->pairs;
}

unsigned sfti_quantising_dropped(const sfti_quantising *q) { return q->dropped; }

sft_span sfti_quantising_config(const sfti_quantising *q) {
    return (sft_span){ (const char *)q->config.data, q->config.len };
}

sfti_quantise_action sfti_quantising_action(const sfti_quantising *q, size_t i,
                                              const char **why) {
    *why = q->rows[i].why;
    return (sfti_quantise_action)q->rows[i].action;
}

void sfti_quantising_squares(const sfti_quantising *q, size_t i, double *error,
                               double *power) {
    *error = q->rows[i].matrix.error;
    *power = q->rows[i].matrix.power;
}

uint64_t sfti_quantising_before(const sfti_quantising *q) { return q->before; }
uint64_t sfti_quantising_after(const sfti_quantising *q) { return q->after; }

sft_code sfti_quantising_try(sfti_quantising *q, const sft_job *job, sft_error *err) {
    uint8_t bytes[8192];
    uint64_t all = 0, tried = 0;
    sft_code code = SFT_OK;
    for (size_t k = 0; k < q->output_count; k++)
        if (q->outputs[k].part == 0) all += q->outputs[k].source.size;
    for (size_t k = 0; !code && k < q->output_count; k++) {
        const sft_source *source = &q->outputs[k].source;
        size_t got;
        if (q->outputs[k].part != 0 || q->outputs[k].text.data) continue;
        for (uint64_t at = 0; !code && at < source->size; at += sizeof bytes) {
            uint64_t left = source->size - at;
            code = sft_source_read(source, at, bytes, left < sizeof bytes ? (size_t)left
                                                                          : sizeof bytes, &got,
                                   err);
            tried += left < sizeof bytes ? left : sizeof bytes;
            if (!code) code = sfti_job_tick(job, tried, all, err);
        }
    }
    return code;
}
