/* Which tensors of the models belong together, and what each becomes. Names are the same, or differ
 * by what stands before those of a part of a model. Tests: tests/merge. */
#include "merge/work.h"

#include "base/error.h"

#include <string.h>

#define SMALL_INTEGERS 4096 /* elements: positions, counters; more are tables or codes */
#define COMPARE_SIZE 4096

typedef struct row_finder {
    const sfti_merge_plan *plan;
    sfti_arena *arena;
    sfti_merge_rows *out;
    uint32_t **taken;  /* of each model's tensors: the row that has it, + 1 */
    size_t **firsts;   /* of each model's shards: the number of its first tensor */
    size_t *blame;
} row_finder;

/* ── Layers ── */

typedef struct stack_names {
    sft_span *names;
    uint64_t *layers;
} stack_names;

static sft_span stack_name(const void *ctx, uint32_t entry) {
    return ((const stack_names *)ctx)->names[entry];
}

static sft_code count_layers(const row_finder *f, sft_error *err) {
    sfti_merge_rows *out = f->out;
    stack_names all = { sfti_arena_array(f->arena, out->count, sizeof *all.names),
                        sfti_arena_array(f->arena, out->count, sizeof *all.layers) };
    sfti_names table;
    uint32_t count = 0;
    sft_span stack;
    if (!all.names || !all.layers
        || !sfti_names_draw(&table, out->count, stack_name, &all, f->arena))
        return sfti_fail_memory(err, out->count * sizeof *all.names);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < out->count; i++) {
            sfti_merge_row *row = &out->rows[i];
            if (!sfti_merge_layer(row->spec.name, &stack, &row->layer)) continue;
            uint32_t at = sfti_names_find(&table, stack);
            if (at == SFTI_NO_NAME) {
                at = count++;
                all.names[at] = stack;
                all.layers[at] = 0;
                (void)sfti_names_add(&table, stack, at);
            }
            if (all.layers[at] <= row->layer) all.layers[at] = row->layer + 1;
            if (pass > 0) row->layers = all.layers[at];
        }
    return SFT_OK;
}

/* ── Names ── */

/* What stands before the names of a part in files of one part and of all, in each row. */
static const char *const part_prefixes[][6] = {
    { "model.diffusion_model.", "diffusion_model.", "transformer.", "unet.", "net.", "" },
    { "first_stage_model.", "vae.", "" },
    { "model.language_model.", "language_model.model.", "model.", "" },
    { "language_model.lm_head.", "lm_head." },
};

static uint32_t tensor_number(const row_finder *f, size_t model, sft_span name) {
    size_t shard;
    const sft_set *set = f->plan->models[model].set;
    const sft_tensor *found = sft_set_find(set, name, &shard);
    if (!found) return SFTI_MERGE_ALL;
    return (uint32_t)(f->firsts[model][shard]
                      + sft_file_tensor_index(sft_set_shard_at(set, shard), found));
}

/* SFT_TENSOR_DUPLICATE: several fit. */
static sft_code find_renamed(const row_finder *f, size_t model, sft_span name, uint32_t *out,
                             sft_error *err) {
    char text[SFTI_MERGE_NAME];
    *out = SFTI_MERGE_ALL;
    for (size_t g = 0; g < SFTI_COUNT(part_prefixes); g++) {
        bool begins = false;
        for (size_t p = 0; p < SFTI_COUNT(*part_prefixes) && part_prefixes[g][p]; p++) {
            size_t cut = strlen(part_prefixes[g][p]);
            if (!sfti_begins(name, part_prefixes[g][p]) || name.len - cut > sizeof text - 64
                || (begins && cut == 0))
                continue;
            begins = true;
            for (size_t q = 0; q < SFTI_COUNT(*part_prefixes) && part_prefixes[g][q]; q++) {
                size_t len = strlen(part_prefixes[g][q]);
                memcpy(text, part_prefixes[g][q], len);
                memcpy(text + len, name.data + cut, name.len - cut);
                uint32_t found = tensor_number(f, model, (sft_span){ text, len + name.len - cut });
                if (found == SFTI_MERGE_ALL || found == *out) continue;
                if (*out != SFTI_MERGE_ALL)
                    return sfti_fail_tensor(err, SFT_TENSOR_DUPLICATE, SFT_NO_OFFSET, name,
                                            "expected one tensor for it in each model, found "
                                            "several whose names fit");
                *out = found;
            }
        }
    }
    return SFT_OK;
}

/* ── Shapes ── */

/* Rows are words: with unlike vocabularies those that all have are merged. */
static bool is_vocabulary(sft_span name) {
    static const char *const ends[] = {
        "embed_tokens.weight", "lm_head.weight", "lm_head.bias", "wte.weight",
        "word_embeddings.weight", "shared.weight", "embed_in.weight", "embed_out.weight",
        "token_embedding.weight", "tok_embeddings.weight", "embed_tokens_per_layer.weight",
    };
    return SFTI_ONE_OF(name, ends, sfti_ends) || sfti_is(name, "output.weight");
}

/* Equal but for dimensions of 1 at the end, as of a convolution that is a matrix elsewhere. */
static bool same_from(const sft_tensor *a, const sft_tensor *b, uint32_t first) {
    uint32_t most = a->rank > b->rank ? a->rank : b->rank;
    for (uint32_t d = first; d < most; d++) {
        uint64_t one = d < a->rank ? a->shape[d] : 1, other = d < b->rank ? b->shape[d] : 1;
        if (one != other) return false;
    }
    return true;
}

static sft_code refuse_shape(const sft_tensor *ref, const sft_tensor *other, sft_error *err) {
    char want[160], found[160];
    (void)sft_shape_text(ref->shape, ref->rank, want, sizeof want);
    (void)sft_shape_text(other->shape, other->rank, found, sizeof found);
    return sfti_fail_tensor(err, SFT_SIZE_MISMATCH, other->offset, ref->name,
                            "expected the shape %s that it has in the other model, found %s: "
                            "models of unlike architectures?", want, found);
}

/* ── Tensors ── */

bool sfti_merge_takes(sft_dtype dtype) {
    const sft_dtype_info *info = sft_dtype_describe(dtype);
    return info->kind == SFT_KIND_FLOAT && info->bits >= 8 && dtype != SFT_F8_E8M0;
}

/* Numbers that are no floats are those of the reference; others should be the same. */
static sft_code compare_integers(const row_finder *f, const sfti_merge_row *row, size_t model,
                                 bool *unlike, sft_error *err) {
    uint8_t a[COMPARE_SIZE], b[COMPARE_SIZE];
    const sft_set *sets[2] = { f->plan->models[row->from].set,
                               f->plan->models[model].set };
    const sft_tensor *one = sft_set_tensor_at(sets[0], row->tensor);
    const sft_tensor *other = sft_set_tensor_at(sets[1], row->of[model]);
    uint64_t size = one->end - one->begin;
    bool same = one->dtype == other->dtype && size == other->end - other->begin;
    const sft_file *files[2] = {
        sft_set_shard_at(sets[0], sft_set_tensor_shard(sets[0], row->tensor)),
        sft_set_shard_at(sets[1], sft_set_tensor_shard(sets[1], row->of[model])) };
    for (uint64_t at = 0; same && at < size; at += COMPARE_SIZE) {
        size_t n = size - at < COMPARE_SIZE ? (size_t)(size - at) : COMPARE_SIZE;
        sft_code code = sft_read_bytes(files[0], one->offset + at, a, n, err);
        if (!code) code = sft_read_bytes(files[1], other->offset + at, b, n, err);
        if (code) return code;
        same = memcmp(a, b, n) == 0;
    }
    if (same) return SFT_OK;
    if (row->elements > SMALL_INTEGERS)
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, other->offset, other->name,
                                "expected the same integers in all models, for they cannot be "
                                "merged, found others");
    *unlike = true;
    return SFT_OK;
}

/* Floats of the reference that are integers in another model: a few are copied, as integers of
 * the reference are. More may be codes. */
static sft_code take_mixed(const row_finder *f, sfti_merge_row *row, const sft_tensor *other,
                           sft_error *err) {
    const sft_dtype_info *info = sft_dtype_describe(other->dtype);
    const uint8_t *computed = f->plan->models[row->from].computed;
    bool is_float = info->kind == SFT_KIND_FLOAT || info->kind == SFT_KIND_COMPLEX;
    if (is_float || row->elements > SMALL_INTEGERS || (computed && computed[row->tensor]))
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, other->offset, other->name,
                                "expected a tensor of floats, as it is in the other model, "
                                "found %s", info->name);
    row->is_mixed = true;
    return SFT_OK;
}

static sft_code take_shape(const row_finder *f, sfti_merge_row *row, size_t model, bool *cut,
                           sft_error *err) {
    const sft_tensor *ref =
        sft_set_tensor_at(f->plan->models[row->from].set, row->tensor);
    const sft_tensor *other = sft_set_tensor_at(f->plan->models[model].set, row->of[model]);
    if (same_from(ref, other, 0)) return SFT_OK;
    bool words = ref->rank > 0 && other->rank > 0 && is_vocabulary(ref->name)
              && same_from(ref, other, 1) && ref->shape[0] > 0 && other->shape[0] > 0;
    if (!words) return refuse_shape(ref, other, err);
    uint64_t rows = other->shape[0], width = row->elements / row->spec.shape[0];
    if (f->out->notes.cut == 0 && !*cut) {
        f->out->notes.cut_name = ref->name;
        f->out->notes.cut_rows[0] = f->out->notes.cut_rows[1] = ref->shape[0];
    }
    uint64_t *seen = f->out->notes.cut_rows;
    if (f->out->notes.cut_name.data == ref->name.data) {
        if (rows < seen[0]) seen[0] = rows;
        if (rows > seen[1]) seen[1] = rows;
    }
    *cut = true;
    if (rows >= row->spec.shape[0]) return SFT_OK;
    uint64_t *shape = sfti_arena_array(f->arena, ref->rank, sizeof *shape);
    if (!shape) return sfti_fail_memory(err, ref->rank * sizeof *shape);
    memcpy(shape, row->spec.shape, ref->rank * sizeof *shape);
    shape[0] = rows;
    row->spec.shape = shape;
    row->elements = rows * width;
    return SFT_OK;
}

/* The dtype of the result: of a quantised tensor its values have none. */
static sft_code take_dtype(const row_finder *f, sfti_merge_row *row, sft_error *err) {
    const sfti_merge_plan *plan = f->plan;
    if (plan->dtype < SFT_DTYPE_COUNT) {
        row->spec.dtype = (sft_dtype)plan->dtype;
        return SFT_OK;
    }
    for (size_t i = 0; i <= plan->count; i++) {
        size_t m = i == 0 ? plan->dtype_of : i - 1;
        uint32_t number = row->of[m];
        if (number == SFTI_MERGE_ALL) continue;
        if (plan->models[m].computed && plan->models[m].computed[number]) continue;
        row->spec.dtype = sft_set_tensor_at(plan->models[m].set, number)->dtype;
        return SFT_OK;
    }
    *f->blame = plan->dtype_of;
    return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, row->spec.name,
                            "expected a dtype for the result, for it is quantised in all models, "
                            "found none");
}

static sft_code model_lacks(const row_finder *f, const sfti_merge_row *row, size_t model,
                      sft_error *err) {
    if (f->out->notes.missing++ == 0) f->out->notes.missing_name = row->spec.name;
    if (f->plan->ignore_missing) return SFT_OK;
    *f->blame = model;
    return sfti_fail_tensor(err, SFT_TENSOR_NOT_FOUND, SFT_NO_OFFSET, row->spec.name,
                            "expected it in every model, found none here");
}

bool sfti_merge_name_in(const sfti_merge_plan *plan, const sfti_merge_row *row, size_t model,
                        sft_span name, char *buffer, size_t cap, sft_span *out) {
    *out = name;
    if (row->slice == 0) return true;
    const sfti_merge_slice *slice = &plan->slices[row->slice - 1];
    for (size_t k = 0; k < slice->count; k++) {
        if (slice->sources[k].model != model) continue;
        if (row->layers == 0) return true;
        uint64_t layer = slice->sources[k].first + row->offset;
        *out = (sft_span){ buffer, sfti_merge_layer_name(name, layer, buffer, cap) };
        return true;
    }
    return false;
}

static sft_code match_row(const row_finder *f, sfti_merge_row *row, sft_error *err) {
    const sfti_merge_plan *plan = f->plan;
    const sft_tensor *ref = sft_set_tensor_at(plan->models[row->from].set, row->tensor);
    bool takes = sfti_merge_takes(ref->dtype), cut = false, unlike = false;
    sft_span name = row->slice ? row->spec.name : ref->name, there;
    char buffer[SFTI_MERGE_NAME];
    row->spec = sft_part_of(ref, NULL).spec;
    row->spec.name = name;
    sft_code code = sft_shape_size(ref->dtype, ref->shape, ref->rank, &row->elements, NULL, err);
    for (size_t m = 0; !code && m < plan->count; m++) {
        row->of[m] = SFTI_MERGE_ALL;
        if (!sfti_merge_name_in(plan, row, m, ref->name, buffer, sizeof buffer, &there)) continue;
        row->of[m] = m == row->from ? row->tensor : tensor_number(f, m, there);
        *f->blame = m;
        if (row->of[m] == SFTI_MERGE_ALL) {
            code = find_renamed(f, m, there, &row->of[m], err);
            if (!code && row->of[m] == SFTI_MERGE_ALL) code = model_lacks(f, row, m, err);
        }
        if (code || row->of[m] == SFTI_MERGE_ALL) continue;
        const sft_set *stored = plan->models[m].stored;
        f->out->notes.renamed += stored && !sft_set_find(stored, there, NULL);
        const sft_tensor *other = sft_set_tensor_at(plan->models[m].set, row->of[m]);
        uint32_t *taken = &f->taken[m][row->of[m]];
        if (*taken && !row->slice)
            code = sfti_fail_tensor(err, SFT_TENSOR_DUPLICATE, other->offset, other->name,
                                    "expected it to be one tensor of the other model, found that "
                                    "two names fit");
        *taken = row->tensor + 1;
        if (!code && takes && !sfti_merge_takes(other->dtype))
            code = take_mixed(f, row, other, err);
        else if (!code && takes) code = take_shape(f, row, m, &cut, err);
        else if (!code && m != row->from) code = compare_integers(f, row, m, &unlike, err);
    }
    if (code) return code;
    *f->blame = row->from;
    f->out->notes.cut += cut;
    if ((unlike || row->is_mixed) && f->out->notes.unlike++ == 0)
        f->out->notes.unlike_name = row->spec.name;
    const sft_dtype_info *info = sft_dtype_describe(ref->dtype);
    if (!takes && (info->kind == SFT_KIND_FLOAT || info->kind == SFT_KIND_COMPLEX)
        && plan->method->kind != SFTI_MERGE_PASS)
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, ref->offset, ref->name,
                                "expected floats of 8 to 64 bits to merge, found %s", info->name);
    if (takes && !row->is_mixed) code = take_dtype(f, row, err);
    return code;
}

/* ── All ── */

static sft_code begin(row_finder *f, sft_error *err) {
    const sfti_merge_plan *plan = f->plan;
    f->taken = sfti_arena_array(f->arena, plan->count, sizeof *f->taken);
    f->firsts = sfti_arena_array(f->arena, plan->count, sizeof *f->firsts);
    if (!f->taken || !f->firsts) return sfti_fail_memory(err, plan->count * sizeof *f->taken);
    for (size_t m = 0; m < plan->count; m++) {
        const sft_set *set = plan->models[m].set;
        size_t tensors = sft_set_tensor_count(set), shards = sft_set_shard_count(set), sum = 0;
        f->taken[m] = sfti_arena_array(f->arena, tensors, sizeof **f->taken);
        f->firsts[m] = sfti_arena_array(f->arena, shards, sizeof **f->firsts);
        if (!f->taken[m] || !f->firsts[m]) return sfti_fail_memory(err, tensors * 8);
        memset(f->taken[m], 0, tensors * sizeof **f->taken);
        for (size_t s = 0; s < shards; s++) {
            f->firsts[m][s] = sum;
            sum += sft_file_tensor_count(sft_set_shard_at(set, s));
        }
    }
    return SFT_OK;
}

/* That all of a model is missing is no matter of --ignore-missing. */
static sft_code check_common(const row_finder *f, sft_error *err) {
    const sfti_merge_plan *plan = f->plan;
    for (size_t m = 0; m < plan->count; m++) {
        size_t tensors = sft_set_tensor_count(plan->models[m].set), i = 0;
        while (i < tensors && !f->taken[m][i]) i++;
        if (i < tensors) continue;
        *f->blame = m;
        return sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected tensors of the model whose names the "
                         "result has, found none in common");
    }
    return SFT_OK;
}

/* Tensors that the reference model_lacks would be lost. */
static sft_code check_extra(const row_finder *f, sft_error *err) {
    const sfti_merge_plan *plan = f->plan;
    for (size_t m = 0; m < plan->count; m++)
        for (size_t i = 0; m != plan->reference && i < sft_set_tensor_count(plan->models[m].set);
             i++) {
            const sft_tensor *tensor = sft_set_tensor_at(plan->models[m].set, i);
            if (f->taken[m][i]) continue;
            if (f->out->notes.extra++ == 0) f->out->notes.extra_name = tensor->name;
            if (plan->ignore_missing) continue;
            *f->blame = m;
            return sfti_fail_tensor(err, SFT_TENSOR_NOT_FOUND, tensor->offset, tensor->name,
                                    "expected a tensor of this name in the %s, found none",
                                    plan->base == plan->reference ? "base" : "first model");
        }
    return SFT_OK;
}

sft_code sfti_merge_rows_find(const sfti_merge_plan *plan, sfti_arena *arena, sfti_merge_rows *out,
                              size_t *blame, sft_error *err) {
    row_finder f = { .plan = plan, .arena = arena, .out = out, .blame = blame };
    size_t count = sft_set_tensor_count(plan->models[plan->reference].set);
    sft_code code = SFT_OK;
    *out = (sfti_merge_rows){ .count = count };
    if (plan->slice_count > 0)
        code = sfti_merge_slices_list(plan, arena, &out->rows, &out->count, blame, err);
    else if (!(out->rows = sfti_arena_array(arena, count, sizeof *out->rows)))
        code = sfti_fail_memory(err, count * sizeof *out->rows);
    for (size_t i = 0; !code && plan->slice_count == 0 && i < count; i++)
        out->rows[i] = (sfti_merge_row){ .from = (uint32_t)plan->reference,
                                         .tensor = (uint32_t)i };
    uint32_t *of = code ? NULL : sfti_arena_array(arena, (uint64_t)out->count * plan->count,
                                                  sizeof *of);
    if (!code && !of) code = sfti_fail_memory(err, out->count * plan->count * sizeof *of);
    if (!code) code = begin(&f, err);
    for (size_t i = 0; !code && i < out->count; i++) {
        out->rows[i].of = of + i * plan->count;
        code = match_row(&f, &out->rows[i], err);
    }
    if (!code) code = check_common(&f, err);
    if (code || plan->slice_count > 0) return code;
    code = check_extra(&f, err);
    return code ? code : count_layers(&f, err);
}
