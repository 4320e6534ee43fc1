/* Differences of models as adapters. Tests: tests/adapter/factors.py, test_adapter_factors.c. */
#include "adapter/factored.h"

#include "base/error.h"
#include "base/number.h"
#include "set/aliases.h"

#include <stdlib.h>
#include <string.h>

#define EXTRACT_CHUNK 2048 /* elements at a time, on the stack of a thread */
#define EXTRACT_WHOLE (UINT64_C(1) << 24) /* elements of a norm or bias */

/* Rows of a tensor that both models have. */
typedef struct extract_item {
    uint32_t tuned, base;
    uint64_t row, rows;
    sft_span name; /* in BASE: metadata of the tuned model may tell that it is a tensor's there */
} extract_item;

typedef struct extract {
    sft_adapter_factors *f;
    const sft_set *tuned, *base;
    extract_item *items;
    size_t count, capacity;
    uint32_t to; /* sft_adapter_format */
    bool two_encoders, diffusers_names;
    bool *tied; /* tensors of the tuned model that are others of BASE by its metadata */
    sfti_lora_naming naming;
    sfti_lora_ways *ways; /* of the tensor that is named */
} extract;

/* ── Differences ── */

static uint32_t number_in_set(const sft_set *set, const sft_tensor *tensor, size_t shard) {
    size_t number = sft_file_tensor_index(sft_set_shard_at(set, shard), tensor);
    for (size_t s = 0; s < shard; s++)
        number += sft_file_tensor_count(sft_set_shard_at(set, s));
    return (uint32_t)number;
}

static sft_tensor tensor_as(const extract *x, const extract_item *item) {
    sft_tensor tensor = *sft_set_tensor_at(x->tuned, item->tuned);
    tensor.name = item->name;
    return tensor;
}

static sft_code read_both(const extract *x, const extract_item *item, uint64_t first,
                         uint64_t count, float *into, size_t *blames, sft_error *err) {
    float base[EXTRACT_CHUNK];
    *blames = 0;
    sft_code code = sfti_lora_read(x->tuned, sft_set_tensor_at(x->tuned, item->tuned), first, count,
                                   into, err);
    for (uint64_t at = 0; !code && at < count; at += EXTRACT_CHUNK) {
        uint64_t n = count - at < EXTRACT_CHUNK ? count - at : EXTRACT_CHUNK;
        *blames = 1;
        code = sfti_lora_read(x->base, sft_set_tensor_at(x->base, item->base), first + at, n, base,
                              err);
        for (uint64_t i = 0; !code && i < n; i++) into[at + i] -= base[i];
    }
    return code;
}

typedef struct extract_rows {
    const extract *x;
    const extract_item *item;
    uint64_t cols;
    float most;
    size_t *blames;
} extract_rows;

static sft_code read_difference(void *ctx, uint64_t first, uint64_t count, float *into,
                                sft_error *err) {
    extract_rows *rows = ctx;
    sft_code code = read_both(rows->x, rows->item, (rows->item->row + first) * rows->cols,
                             count * rows->cols, into, rows->blames, err);
    for (uint64_t i = 0; !code && i < count * rows->cols; i++) {
        float size = into[i] < 0 ? -into[i] : into[i];
        if (size > rows->most) rows->most = size;
    }
    return code;
}

/* ── --clamp-quantile ── */

static int compare_floats(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The quantile of all values of both factors together, with a straight line between two of them,
 * as torch.quantile has it. */
static sft_code quantile_of(const sfti_lowrank *factors, double quantile, sfti_arena *arena,
                            float *out, sft_error *err) {
    size_t ups = (size_t)(factors->up.rows * factors->up.cols);
    size_t all = ups + (size_t)(factors->down.rows * factors->down.cols);
    float *values = sfti_arena_array(arena, all, sizeof *values);
    if (!values) return sfti_fail_memory(err, all * sizeof *values);
    memcpy(values, factors->up.at, ups * sizeof *values);
    memcpy(values + ups, factors->down.at, (all - ups) * sizeof *values);
    qsort(values, all, sizeof *values, compare_floats);
    double place = quantile * (double)(all - 1);
    size_t below = (size_t)place;
    double part = place - (double)below, low = (double)values[below];
    double high = (double)values[below + 1 < all ? below + 1 : below];
    *out = (float)(low + (high - low) * part);
    return SFT_OK;
}

static void clamp_matrix(const sfti_matrix *m, float most) {
    for (size_t i = 0; i < (size_t)(m->rows * m->cols); i++)
        m->at[i] = m->at[i] > most ? most : m->at[i] < -most ? -most : m->at[i];
}

/* The norm of what the factors leave of the matrix, which is read once more. */
static sft_code measure_loss(const sfti_row_matrix *all, sfti_lowrank *factors, sfti_arena *arena,
                             sft_error *err) {
    size_t cols = (size_t)all->cols, rank = (size_t)factors->up.cols;
    float *row = sfti_arena_array(arena, all->cols, sizeof *row);
    double *made = sfti_arena_array(arena, all->cols, sizeof *made), sum = 0;
    if (!row || !made) return sfti_fail_memory(err, all->cols * sizeof *made);
    for (uint64_t r = 0; r < all->rows; r++) {
        sft_code code = all->read(all->ctx, r, 1, row, err);
        if (code) return code;
        memset(made, 0, cols * sizeof *made);
        for (size_t k = 0; k < rank; k++) {
            double up = (double)factors->up.at[(size_t)r * rank + k];
            const float *down = factors->down.at + k * cols;
            for (size_t i = 0; i < cols; i++) made[i] += up * (double)down[i];
        }
        for (size_t i = 0; i < cols; i++) {
            double off = (double)row[i] - made[i];
            sum += off * off;
        }
    }
    factors->lost = sfti_root(sum);
    return SFT_OK;
}

/* As kohya's script does it, which costs error. */
static sft_code clamp_factors(const extract *x, const sfti_row_matrix *all, sfti_arena *arena,
                              sfti_lowrank *factors, sft_error *err) {
    float most = 0;
    sft_code code = quantile_of(factors, x->f->options.clamp_quantile, arena, &most, err);
    if (code) return code;
    if (most < 0) most = 0;
    clamp_matrix(&factors->up, most);
    clamp_matrix(&factors->down, most);
    return measure_loss(all, factors, arena, err);
}

static sft_code extract_layer(sft_adapter_factors *f, sfti_factor *layer,
                              const sfti_rank_rule *rule, sfti_arena *arena, sfti_lowrank *out,
                              sft_error *err) {
    const extract *x = f->ctx;
    const extract_item *item = &x->items[layer->number];
    uint64_t rows, cols = 1;
    (void)sfti_lora_shape(sft_set_tensor_at(x->tuned, item->tuned), &rows, &cols);
    extract_rows ctx = { x, item, cols, 0, &layer->blames };
    sfti_row_matrix all = { item->rows, cols, read_difference, &ctx };
    sft_code code = sfti_lowrank_of_rows(&all, rule, arena, out, err);
    if (!code && x->f->options.clamp_quantile > 0) code = clamp_factors(x, &all, arena, out, err);
    layer->told.left_out = !code && !((double)ctx.most > x->f->options.min_diff);
    return code;
}

/* Whether any element any_differs; stops at the first. */
static sft_code any_differs(const extract *x, const extract_item *item, bool *out, sft_error *err) {
    float difference[EXTRACT_CHUNK];
    uint64_t rows = 0, cols = 0;
    *out = false;
    if (!sfti_lora_shape(sft_set_tensor_at(x->tuned, item->tuned), &rows, &cols)) return SFT_OK;
    for (uint64_t at = 0; !*out && at < rows * cols; at += EXTRACT_CHUNK) {
        uint64_t n = rows * cols - at < EXTRACT_CHUNK ? rows * cols - at : EXTRACT_CHUNK;
        sft_code code = read_both(x, item, at, n, difference, &x->f->blames, err);
        if (code) return code;
        for (uint64_t i = 0; i < n; i++) *out = *out || difference[i] < 0 || difference[i] > 0;
    }
    return SFT_OK;
}

/* ── Names ── */

static bool any_begins(const sft_set *set, const char *const *words, size_t count) {
    for (size_t i = 0; i < sft_set_tensor_count(set); i++)
        for (size_t k = 0; k < count; k++)
            if (sfti_begins(sft_set_tensor_at(set, i)->name, words[k])) return true;
    return false;
}

/* What most programs write for such a model. */
static void choose_names(extract *x) {
    static const char *const language[] = { "model.layers.", "model.language_model.",
                                            "transformer.h.", "language_model.",
                                            "model.embed_tokens." };
    static const char *const second[] = { "conditioner.embedders.1.", "text_encoders.clip_g.",
                                          "text_encoder_2.", "text_encoders.t5xxl." };
    static const char *const first[] = { "cond_stage_model." };
    x->two_encoders = any_begins(x->tuned, second, SFTI_COUNT(second));
    x->diffusers_names = any_begins(x->tuned, first, SFTI_COUNT(first)); /* SD 1 and 2 */
    if (x->to == SFT_ADAPTER_USUAL)
        x->to = any_begins(x->tuned, language, SFTI_COUNT(language)) ? SFT_ADAPTER_PEFT
                                                                     : SFT_ADAPTER_KOHYA;
}

static const char *extract_prefix(const extract *x, unsigned parts) {
    bool comfy = x->to == SFT_ADAPTER_COMFY;
    if (parts & 1u << SFTI_PART_MAIN) return comfy ? "diffusion_model." : "lora_unet_";
    if (parts & 1u << SFTI_PART_TE3) return comfy ? "text_encoders.t5xxl.transformer."
                                                  : "lora_te3_";
    if (parts == 1u << SFTI_PART_TE2) return comfy ? "text_encoders.clip_g.transformer."
                                                   : "lora_te2_";
    if (comfy) return "text_encoders.clip_l.transformer.";
    return x->two_encoders ? "lora_te1_" : "lora_te_";
}

static bool is_whole(const sfti_lora_way *way) {
    return way->rows == 0;
}

/* The way that leaves out most of the tensor's own name, and, where programs know its layers by
 * other names, those. Returns how many ways are in `out`, all of one part. */
static size_t choose_ways(const extract *x, sft_span name, const sfti_lora_way **out) {
    const sfti_lora_ways *ways = x->ways;
    const sfti_lora_way *own = NULL;
    static const char *const unet[] = { "down_blocks.", "up_blocks.", "mid_block.", "conv_in",
                                        "conv_out", "time_embedding.", "add_embedding." };
    size_t count = 0;
    bool main = false;
    for (size_t i = 0; i < ways->count; i++) {
        const sfti_lora_way *way = &ways->ways[i];
        sft_span end = sfti_from(name, way->path.len < name.len ? name.len - way->path.len : 0);
        bool same = is_whole(way) && sft_span_equal(end, way->path);
        if (same && (!own || way->path.len < own->path.len)) own = way;
    }
    if (!own) return 0;
    main = own->parts & 1u << SFTI_PART_MAIN;
    for (size_t i = 0; i < ways->count; i++) {
        const sfti_lora_way *way = &ways->ways[i];
        if (sfti_ends(way->path, ".weight")) continue; /* a tensor's name, no layer's */
        bool known = !main ? sfti_begins(way->path, "text_model.")
                           : x->diffusers_names && is_whole(way)
                                 && SFTI_ONE_OF(way->path, unet, sfti_begins);
        if (known && way->parts == own->parts) out[count++] = way;
    }
    if (main && count > 1) count = 1; /* "to_out.0" and "to_out" */
    if (count == 0) out[count++] = own;
    return count;
}

static sft_span name_layer(extract *x, const char *prefix, sft_span path) {
    char *text = sfti_arena_join(&x->f->arena, sft_span_cstr(prefix), path);
    size_t len = text ? strlen(text) : 0;
    if (text && x->to == SFT_ADAPTER_KOHYA)
        for (size_t i = 0; i < len; i++)
            if (text[i] == '.') text[i] = '_';
    return (sft_span){ text, len };
}

/* ── Layers ── */

/* Rows that are looked up: PEFT's factors of them have names and an order of their own. */
static bool is_embedding(const sft_tensor *tensor) {
    static const char words[] = "embed_tokens wte wpe word_embeddings shared embed_in "
                                "token_embedding tok_embeddings embed_tokens_per_layer "
                                "position_embedding embed_positions position_embeddings "
                                "token_type_embeddings relative_attention_bias";
    sft_span layer = sfti_lora_layer(tensor->name), above = sfti_lora_layer(layer);
    sft_span last = sfti_from(layer, above.len + (above.len > 0));
    return tensor->rank == 2 && sfti_number_among(words, last) >= 0;
}

/* A tensor with a row for each input: its rows are PEFT's A, and the down matrix of others. */
static bool name_turned(extract *x, sfti_factor *layer, sft_span name, bool embedding) {
    bool peft = x->to == SFT_ADAPTER_PEFT;
    layer->up = sfti_arena_join(&x->f->arena, name, sft_span_cstr(
        embedding ? ".lora_embedding_A" : peft ? ".lora_A.weight" : ".lora_down.weight"));
    layer->down = sfti_arena_join(&x->f->arena, name, sft_span_cstr(
        embedding ? ".lora_embedding_B" : peft ? ".lora_B.weight" : ".lora_up.weight"));
    layer->turned = true;
    layer->up_shape[1] = layer->up_shape[0];
    layer->down_shape[0] = layer->down_shape[1];
    return layer->up && layer->down;
}

static sft_code add_layer(extract *x, const extract_item *item, sft_span name, bool transposed,
                          sft_error *err) {
    const sft_tensor named = tensor_as(x, item), *tensor = &named;
    extract_item *items = sfti_arena_grow(&x->f->arena, x->items, x->count, 1, &x->capacity,
                                          sizeof *items);
    if (items) x->items = items;
    sfti_factor *layer = name.data && items ? sfti_factor_add(x->f) : NULL;
    if (!layer) return sfti_fail_memory(err, sizeof *items);
    layer->number = x->count;
    items[x->count++] = *item;
    layer->dtype = sfti_factored_dtype(x->f, tensor->dtype);
    bool peft = x->to == SFT_ADAPTER_PEFT, embedding = peft && is_embedding(tensor);
    sfti_stored stored = peft ? sfti_lora_stored(x->tuned, tensor) : SFTI_STORED_PLAIN;
    if (stored == SFTI_STORED_UNKNOWN)
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, tensor->offset, tensor->name,
                                "expected a model that tells by other layers of this block "
                                "(c_attn, c_fc) whether this one has a row for each output, found "
                                "none of another shape");
    bool turned = transposed || embedding || stored == SFTI_STORED_TURNED;
    if (sfti_factor_named(x->f, layer, name, peft, item->rows, tensor->shape[1],
                          tensor->shape + 2, tensor->rank - 2)
        && (!turned || name_turned(x, layer, name, embedding)))
        return SFT_OK;
    return sfti_fail_memory(err, name.len);
}

static sft_code name_tensor(extract *x, extract_item item, sft_error *err) {
    const sft_tensor named = tensor_as(x, &item), *tensor = &named;
    const sfti_lora_way *chosen[SFTI_LORA_WAYS];
    sft_span name = tensor->name;
    if (sfti_ends(name, ".weight")) name.len -= strlen(".weight");
    if (x->to == SFT_ADAPTER_PEFT)
        return add_layer(x, &item, name_layer(x, "base_model.model.", name), false, err);
    sfti_lora_ways_of(&x->naming, tensor, x->ways);
    size_t count = choose_ways(x, name, chosen);
    if (count == 0)
        return sfti_fail_tensor(err, SFT_TENSOR_NOT_FOUND, tensor->offset, tensor->name,
                                "expected a layer that adapters have a name for, found another");
    for (size_t i = 0; i < count; i++) {
        extract_item part = item;
        if (!is_whole(chosen[i])) {
            if (chosen[i]->from != 0) continue; /* a piece of a larger module */
            part.row = chosen[i]->row;
            part.rows = chosen[i]->rows;
        }
        sft_code code = add_layer(x, &part, name_layer(x, extract_prefix(x, chosen[i]->parts),
                                                       chosen[i]->path),
                                  chosen[i]->transposed, err);
        if (code) return code;
    }
    return SFT_OK;
}

/* A norm or a bias, as a whole. */
static sft_code extract_whole(extract *x, const extract_item *item, sft_error *err) {
    const sft_tensor named = tensor_as(x, item), *tensor = &named;
    const sfti_lora_way *chosen[SFTI_LORA_WAYS];
    bool bias = sfti_ends(tensor->name, ".bias");
    sft_span layer = tensor->name;
    if (bias) layer.len -= strlen(".bias");
    sft_tensor weight = *tensor;
    char *as_weight = sfti_arena_join(&x->f->arena, layer, sft_span_cstr(".weight"));
    if (!as_weight) return sfti_fail_memory(err, layer.len);
    if (bias) weight.name = sft_span_cstr(as_weight);
    else if (sfti_ends(layer, ".weight")) layer.len -= strlen(".weight");
    sfti_lora_ways_of(&x->naming, &weight, x->ways);
    size_t count = x->to == SFT_ADAPTER_PEFT ? 0 : choose_ways(x, layer, chosen);
    if (count != 1 || !is_whole(chosen[0])) {
        x->f->notes[SFT_ADAPTER_LEFT_OTHERS]++;
        return SFT_OK;
    }
    uint64_t rows = 0, cols = 0;
    (void)sfti_lora_shape(tensor, &rows, &cols);
    if (rows * cols > EXTRACT_WHOLE) {
        x->f->notes[SFT_ADAPTER_LEFT_OTHERS]++;
        return SFT_OK;
    }
    sft_span name = name_layer(x, extract_prefix(x, chosen[0]->parts), chosen[0]->path);
    char *whole = name.data ? sfti_arena_join(&x->f->arena, name,
                                              sft_span_cstr(bias ? ".diff_b" : ".diff")) : NULL;
    float *values = sfti_arena_array(&x->f->arena, rows * cols, sizeof *values);
    sft_source *source = sfti_arena_array(&x->f->arena, 1, sizeof *source);
    if (!whole || !values || !source) return sfti_fail_memory(err, rows * cols * sizeof *values);
    sft_code code = read_both(x, item, 0, rows * cols, values, &x->f->blames, err);
    if (code) return code;
    sfti_floats_turn(values, rows * cols);
    *source = sft_source_memory(values, (size_t)(rows * cols) * sizeof *values);
    sft_part part = { { sft_span_cstr(whole), SFT_F32, tensor->rank, tensor->shape }, source, 0 };
    return sfti_factored_keep_part(x->f, part, err);
}

/* A matrix of an encoder whose layer other layouts call NAME.weight: OpenCLIP's projection, which
 * is its transpose, and positions. */
static bool is_bare_layer(extract *x, const sft_tensor *tensor) {
    const sfti_lora_way *chosen[SFTI_LORA_WAYS];
    if (x->to == SFT_ADAPTER_PEFT || tensor->rank != 2) return false;
    sfti_lora_ways_of(&x->naming, tensor, x->ways);
    if (choose_ways(x, tensor->name, chosen) == 0) return false;
    const sfti_lora_way *way = chosen[0];
    size_t above = way->path.len < tensor->name.len ? tensor->name.len - way->path.len : 0;
    bool own = sft_span_equal(sfti_from(tensor->name, above), way->path);
    return is_whole(way) && !(way->parts & 1u << SFTI_PART_MAIN) && (way->transposed || !own);
}

static bool same_shape(const sft_tensor *a, const sft_tensor *b) {
    return a->rank == b->rank
        && (a->rank == 0 || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0);
}

/* name: of the tensor in BASE. */
static sft_code consider(extract *x, uint32_t i, sft_span name, sft_error *err) {
    const sft_tensor named = tensor_as(x, &(extract_item){ .tuned = i, .name = name });
    const sft_tensor *tensor = &named;
    size_t shard;
    const sft_tensor *base = sft_set_find(x->base, name, &shard);
    uint64_t rows = 0, cols = 0, kernel = 1;
    bool differ = false;
    if (!sfti_lora_shape(tensor, &rows, &cols)) return SFT_OK;
    bool readable = sfti_factored_readable(x->f, 0, x->tuned, i);
    if (!readable && tensor->rank < 2) return SFT_OK; /* positions, counters */
    if (!base && sft_span_equal(name, sft_set_tensor_at(x->tuned, i)->name)) {
        if (x->tied[i]) return SFT_OK; /* by BASE's name */
        sft_span of = sfti_set_alias_of(x->base, name);
        base = of.data ? sft_set_find(x->base, of, &shard) : NULL;
    }
    if (!base || !same_shape(tensor, base)) {
        return tensor->rank >= 2 ? sfti_factored_unmatched(x->f, tensor->name, err) : SFT_OK;
    }
    uint32_t number = number_in_set(x->base, base, shard);
    if (tensor->dtype == SFT_I64 && base->dtype == SFT_I64) return SFT_OK; /* positions */
    x->f->blames = readable;
    if (!readable || !sfti_factored_readable(x->f, 1, x->base, number))
        return sfti_factored_not_readable(tensor, err);
    x->f->blames = 0;
    extract_item item = { i, number, 0, rows, name };
    for (uint32_t k = 2; k < tensor->rank; k++) kernel *= tensor->shape[k];
    bool weight = sfti_ends(tensor->name, ".weight") || sfti_ends(tensor->name, ".in_proj_weight");
    bool layer = tensor->rank >= 2 && rows > 1 && cols > 1
              && (weight || is_bare_layer(x, tensor));
    if (layer && (kernel == 1 || x->f->rule.most_conv)) return name_tensor(x, item, err);
    sft_code code = any_differs(x, &item, &differ, err);
    if (code || !differ) return code;
    if (layer) x->f->notes[SFT_ADAPTER_LEFT_CONVS]++;
    else if (tensor->rank == 1 && x->f->options.norms) return extract_whole(x, &item, err);
    else x->f->notes[SFT_ADAPTER_LEFT_OTHERS]++;
    return SFT_OK;
}

/* Tensors of BASE that metadata of the tuned model record as other names of its tensors; mark: only
 * which of the tuned model's. */
static sft_code consider_tied(extract *x, bool mark, sft_error *err) {
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < sft_set_tensor_count(x->base); i++) {
        sft_span name = sft_set_tensor_at(x->base, i)->name;
        sft_span of = sfti_set_alias_of(x->tuned, name);
        size_t shard;
        const sft_tensor *tied = of.data ? sft_set_find(x->tuned, of, &shard) : NULL;
        if (!tied) continue;
        uint32_t number = number_in_set(x->tuned, tied, shard);
        if (mark) x->tied[number] = true;
        else code = consider(x, number, name, err);
    }
    return code;
}

/* ── All ── */

sft_code sfti_plan_extract(sft_adapter_factors *f, sft_error *err) {
    extract *x = sfti_arena_array(&f->arena, 1, sizeof *x);
    if (!x) return sfti_fail_memory(err, sizeof *x);
    *x = (extract){ .f = f, .tuned = f->inputs[0]->set, .base = f->inputs[1]->set,
                    .to = f->options.names };
    choose_names(x);
    size_t count = sft_set_tensor_count(x->tuned);
    uint32_t *order = sfti_arena_array(&f->arena, count, sizeof *order);
    x->ways = sfti_arena_array(&f->arena, 1, sizeof *x->ways);
    x->tied = sfti_arena_array(&f->arena, count, sizeof *x->tied);
    if (!order || !x->ways || !x->tied) return sfti_fail_memory(err, count * sizeof *order);
    memset(x->tied, 0, count * sizeof *x->tied);
    (void)consider_tied(x, true, err);
    sft_code code = sfti_factored_scales(f, 0, x->tuned, err);
    if (!code) code = sfti_factored_scales(f, 1, x->base, err);
    if (!code) code = sfti_lora_naming_open(&f->arena, x->tuned, &x->naming, err);
    if (!code) code = sft_set_order(x->tuned, SFT_ORDER_NATURAL, order, err);
    for (size_t i = 0; !code && i < count; i++)
        code = consider(x, order[i], sft_set_tensor_at(x->tuned, order[i])->name, err);
    if (!code) code = consider_tied(x, false, err);
    f->ctx = x;
    f->is_network = x->to == SFT_ADAPTER_KOHYA;
    f->compute = extract_layer;
    return code;
}
