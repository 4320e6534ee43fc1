/* Plain LoRA of other methods. Tests: tests/adapter/factors.py, test_adapter_factors.c. */
#include "adapter/factored.h"

#include "base/error.h"

#include <string.h>

/* What is simplified: layer i is the module of the same number. */
typedef struct simplify {
    sft_adapter_factors *f;
    const sfti_lora *lora;
    const sft_set *model; /* NULL: without */
    const sfti_lora_map *map;
} simplify;

/* A module's change, in blocks of rows. */
typedef struct change {
    const simplify *x;
    const sfti_lora_module *module;
    sfti_arena *arena;
    uint64_t cols;
    bool by_model;
    sfti_lora_op op; /* without a model */
    float *whole;    /* all of it, where rows are not changed one by one */
    size_t *blames;
} change;

/* Its targets of the model, of which weights alone are asked for. */
static const sfti_lora_target *next_target(const simplify *x, const sfti_lora_target *at,
                                           const sfti_lora_module *m) {
    uint32_t number = at ? at->next : m->targets;
    while (number && x->map->targets[number - 1].bias) number = x->map->targets[number - 1].next;
    return number ? &x->map->targets[number - 1] : NULL;
}

/* into becomes W' - W of rows [first, first + count) of a target's tensor. */
static sft_code change_rows(const change *ch, const sfti_lora_target *target, uint64_t first,
                            uint64_t count, float *into, sft_error *err) {
    const simplify *x = ch->x;
    const sft_tensor *tensor = sft_set_tensor_at(x->model, target->tensor);
    sfti_arena arena = { .alloc = x->f->alloc };
    sfti_lora_op op = { .module = ch->module, .lora = x->lora, .tensor = tensor, .strength = 1,
                        .turned = target->turned, .transposed = target->transposed,
                        .row = target->row, .from = target->from, .rows = target->rows };
    uint64_t elements = count * ch->cols;
    float *was = sfti_arena_array(&arena, elements, sizeof *was);
    *ch->blames = 1;
    sft_code code = was ? sfti_lora_read(x->model, tensor, first * ch->cols, elements, into, err)
                        : sfti_fail_memory(err, elements * sizeof *was);
    if (!code) *ch->blames = 0;
    if (!code) memcpy(was, into, (size_t)elements * sizeof *was);
    if (!code) code = sfti_lora_op_open(&op, &arena, err);
    if (!code) code = sfti_lora_op_apply(&op, first, count, into, err);
    for (uint64_t i = 0; !code && i < elements; i++) into[i] -= was[i];
    sfti_arena_free(&arena);
    return code;
}

static sft_code read_change(void *ctx, uint64_t first, uint64_t count, float *into,
                            sft_error *err) {
    const change *ch = ctx;
    if (ch->whole) {
        memcpy(into, ch->whole + first * ch->cols, (size_t)(count * ch->cols) * sizeof *into);
        return SFT_OK;
    }
    if (!ch->by_model) return sfti_lora_op_delta(&ch->op, first, count, NULL, into, err);
    for (const sfti_lora_target *t = next_target(ch->x, NULL, ch->module); t;
         t = next_target(ch->x, t, ch->module)) {
        uint64_t begin = first > t->from ? first : t->from;
        uint64_t end = first + count < t->from + t->rows ? first + count : t->from + t->rows;
        if (begin >= end) continue;
        sft_code code = change_rows(ch, t, t->row + (begin - t->from), end - begin,
                                    into + (begin - first) * ch->cols, err);
        if (code) return code;
    }
    return SFT_OK;
}

/* The whole change of a tensor whose rows change together. */
static sft_code change_whole(change *ch, uint64_t rows, sft_error *err) {
    const sfti_lora_target *t = next_target(ch->x, NULL, ch->module);
    const sft_tensor *tensor = sft_set_tensor_at(ch->x->model, t->tensor);
    sfti_matrix all, turned;
    sft_code code = SFT_OK;
    if (t->rows != rows || next_target(ch->x, t, ch->module))
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, tensor->offset, tensor->name,
                                "expected one tensor of the model for a module whose rows change "
                                "together, found rows of another");
    code = sfti_matrix_new(ch->arena, rows, ch->cols, &all, err);
    if (!code) code = change_rows(ch, t, t->row, rows, all.at, err);
    ch->whole = all.at;
    if (code || !t->transposed) return code;
    code = sfti_matrix_take(ch->arena, rows, ch->cols, &turned, err);
    for (uint64_t i = 0; !code && i < rows * ch->cols; i++)
        turned.at[i] = all.at[i % ch->cols * rows + i / ch->cols];
    ch->whole = turned.at;
    return code;
}

static bool is_plain_lora(const sfti_lora_module *m) {
    return m->type == SFTI_TYPE_LORA && !m->slot[SFTI_SLOT_MAGNITUDE] && !m->tucker;
}

static sft_code simplify_layer(sft_adapter_factors *f, sfti_factor *layer,
                               const sfti_rank_rule *rule, sfti_arena *arena, sfti_lowrank *out,
                               sft_error *err) {
    const simplify *x = f->ctx;
    const sfti_lora_module *m = &x->lora->modules[layer->number];
    uint64_t rows = layer->up_shape[0], cols = layer->down_shape[1];
    for (uint32_t i = 2; i < layer->down_dims; i++) cols *= layer->down_shape[i];
    uint64_t shape[3] = { rows, cols / m->kernel, m->kernel };
    const sft_tensor flat = { .name = m->name, .shape = shape, .rank = 3, .dtype = SFT_F32 };
    change ch = { .x = x, .module = m, .arena = arena, .cols = cols, .by_model = x->model != NULL,
                  .blames = &layer->blames };
    ch.op = (sfti_lora_op){ .module = m, .lora = x->lora, .tensor = &flat, .strength = 1,
                            .rows = rows };
    sfti_row_matrix all = { rows, cols, read_change, &ch };
    sft_code code = SFT_OK;
    layer->told.left_out = m->has_alpha && !(m->scale < 0) && !(m->scale > 0)
                        && !m->slot[SFTI_SLOT_MAGNITUDE]; /* adds nothing */
    if (layer->told.left_out) return SFT_OK;
    if (is_plain_lora(m)) return sfti_lora_factors(x->lora, m, arena, &out->up, &out->down, err);
    const sfti_lora_target *t = x->model ? next_target(x, NULL, m) : NULL;
    if (t && (t->transposed || sfti_lora_needs_all(x->lora, m, false)))
        code = change_whole(&ch, rows, err);
    else if (!x->model) code = sfti_lora_op_open(&ch.op, arena, err);
    return code ? code : sfti_lowrank_of_rows(&all, rule, arena, out, err);
}

/* ── What is simplified ── */

static bool needs_model(const sfti_lora_module *m) {
    return m->slot[SFTI_SLOT_MAGNITUDE] || m->type == SFTI_TYPE_GLORA || m->type == SFTI_TYPE_IA3
        || m->type == SFTI_TYPE_OFT || m->type == SFTI_TYPE_BOFT;
}

static bool is_norm(const simplify *x, const sfti_lora_module *m) {
    const sft_tensor *diff = sfti_lora_tensor(x->lora, m, SFTI_SLOT_DIFF);
    return m->type == SFTI_TYPE_FULL && (!diff || diff->rank < 2);
}

static sft_code add_module(simplify *x, size_t i, sft_error *err) {
    sft_adapter_factors *f = x->f;
    const sfti_lora_module *m = &x->lora->modules[i];
    uint64_t rows = m->out, cols = m->in, channels = 0, kernel[SFTI_FACTORED_DIMS];
    uint32_t dims = 0;
    const sfti_lora_target *t = x->model ? next_target(x, NULL, m) : NULL;
    if (needs_model(m) && !x->model)
        return sfti_factored_refuse(x->lora, m, "a model, or modules that do not need a layer's "
                                    "own weight", err);
    if (x->model && !t)
        return sfti_fail_tensor(err, SFT_TENSOR_NOT_FOUND, SFT_NO_OFFSET, m->name,
                                "expected a tensor of the model for this module, found none");
    if (m->type == SFTI_TYPE_LORA && m->slot[SFTI_SLOT_BIAS])
        return sfti_factored_refuse(x->lora, m, "factors without a bias of theirs", err);
    if (t && t->turned && m->type == SFTI_TYPE_IA3 && m->slot[SFTI_SLOT_IA3_FACTOR])
        return sfti_factored_refuse(x->lora, m, "a layer with a row for each output "
                                    "(fan_in_fan_out)", err);
    for (uint32_t at = x->model ? m->targets : 0; at; at = x->map->targets[at - 1].next)
        if (x->map->targets[at - 1].bias && m->type == SFTI_TYPE_IA3)
            return sfti_factored_refuse(x->lora, m, "a change of weights and of no bias", err);
    const sft_tensor *shaped = sfti_lora_tensor(x->lora, m, SFTI_SLOT_DIFF);
    if (t) {
        shaped = sft_set_tensor_at(x->model, t->tensor);
        uint64_t all = 0;
        (void)sfti_lora_shape(shaped, t->transposed ? &cols : &all,
                              t->transposed ? &all : &cols);
        for (rows = 0; t; t = next_target(x, t, m)) {
            if (t->from + t->rows > rows) rows = t->from + t->rows;
            f->blames = 1;
            if (!sfti_factored_readable(f, 0, x->model, t->tensor))
                return sfti_factored_not_readable(sft_set_tensor_at(x->model, t->tensor), err);
            f->blames = 0;
        }
    } else if (m->type != SFTI_TYPE_FULL && rows > SFTI_LORA_ELEMENTS / cols) {
        return sfti_fail_tensor(err, SFT_SIZE_MISMATCH, SFT_NO_OFFSET, m->name,
                                "expected factors of a layer of at most %llu elements, found "
                                "%llu x %llu", (unsigned long long)SFTI_LORA_ELEMENTS,
                                (unsigned long long)rows, (unsigned long long)cols);
    } else if (m->type == SFTI_TYPE_LOKR) {
        shaped = sfti_lora_tensor(x->lora, m, m->slot[SFTI_SLOT_KRON_2] ? SFTI_SLOT_KRON_2
                                              : m->tucker ? SFTI_SLOT_KRON_T2 : SFTI_SLOT_NONE);
    } else if (m->tucker) {
        shaped = sfti_lora_tensor(x->lora, m, m->type == SFTI_TYPE_LOHA ? SFTI_SLOT_HADA_T1
                                                                        : SFTI_SLOT_MID);
    }
    if (shaped && shaped->rank > 2 && shaped->rank <= SFTI_FACTORED_DIMS) dims = shaped->rank - 2;
    channels = cols;
    for (uint32_t k = 0; k < dims; k++) {
        kernel[k] = shaped->shape[2 + k];
        channels /= kernel[k];
    }
    const sft_tensor *first = NULL;
    for (int k = 1; k < SFTI_SLOTS && !first; k++)
        if (k != SFTI_SLOT_ALPHA && (m->type != SFTI_TYPE_IA3 || k != SFTI_SLOT_IA3_ON_INPUT))
            first = sfti_lora_tensor(x->lora, m, (sfti_adapter_slot)k);
    bool peft = (m->type == SFTI_TYPE_OFT && m->slot[SFTI_SLOT_OFT_PACKED])
             || (m->type == SFTI_TYPE_IA3 && m->slot[SFTI_SLOT_IA3_FACTOR])
             || sfti_begins(m->name, "base_model.");
    sfti_factor *layer = sfti_factor_add(f);
    if (!layer) return sfti_fail_memory(err, sizeof *layer);
    layer->number = i;
    layer->dtype = sfti_factored_dtype(f, first->dtype);
    return sfti_factor_named(f, layer, m->name, peft, rows, channels, kernel, dims)
               ? SFT_OK : sfti_fail_memory(err, m->name.len);
}

/* A plain module that a configuration scales, which the result has not: as it is, but for that. */
static sft_code fold_module(simplify *x, size_t i, sft_error *err) {
    sft_adapter_factors *f = x->f;
    const sfti_lora_module *m = &x->lora->modules[i];
    if (m->slot[SFTI_SLOT_BIAS])
        return sfti_factored_refuse(x->lora, m, "factors without a bias of theirs", err);
    sfti_factor *layer = sfti_factor_add(f);
    if (!layer) return sfti_fail_memory(err, sizeof *layer);
    layer->number = i;
    f->notes[SFT_ADAPTER_FOLDED]++;
    return sfti_factor_like(f, layer, x->lora, m, err);
}

static sft_code keep_module(simplify *x, const sfti_lora_module *m, bool all, sft_error *err) {
    sft_code code = SFT_OK;
    for (int k = 1; !code && k < SFTI_SLOTS; k++)
        if (m->slot[k] && (all || k == SFTI_SLOT_DIFF_BIAS))
            code = sfti_factored_keep(x->f, 0, m->slot[k] - 1, err);
    return code;
}

sft_code sfti_plan_simplify(sft_adapter_factors *f, sft_error *err) {
    sfti_merge_input *input = f->inputs[0];
    simplify *x = sfti_arena_array(&f->arena, 1, sizeof *x);
    sft_code code = SFT_OK;
    if (!x) return sfti_fail_memory(err, sizeof *x);
    *x = (simplify){ .f = f, .lora = &input->lora, .map = &input->map };
    size_t others = 0;
    for (size_t i = 0; i < x->lora->count; i++)
        others += !is_plain_lora(&x->lora->modules[i]) && !is_norm(x, &x->lora->modules[i]);
    if (f->input_count > 1) {
        x->model = f->inputs[1]->set;
        code = sfti_lora_map_model(&input->lora, x->model, &input->map, err);
        if (!code) code = sfti_lora_check_bases(x->lora, x->map, x->model, err);
        if (!code) code = sfti_factored_scales(f, 0, x->model, err);
    }
    f->keeps_metadata = true;
    f->plain = sfti_arena_array(&f->arena, x->lora->count, sizeof *f->plain);
    f->plain_count = 0;
    if (!code && !f->plain) code = sfti_fail_memory(err, x->lora->count * sizeof *f->plain);
    if (!code && others == 0)
        code = sfti_fail(err, SFT_TENSOR_NOT_FOUND,
                         "expected modules that are no plain LoRA, found none");
    for (size_t i = 0; !code && i < x->lora->unread_count; i++)
        code = sfti_factored_unmatched(f, sft_set_tensor_at(input->set, x->lora->unread[i])->name,
                                       err);
    for (size_t i = 0; !code && i < x->lora->base_count; i++)
        code = sfti_factored_keep(f, 0, x->lora->bases[i].tensor, err);
    for (size_t i = 0; !code && i < x->lora->count; i++) {
        const sfti_lora_module *m = &x->lora->modules[i];
        bool plain = is_plain_lora(m);
        bool scaled = plain && !m->slot[SFTI_SLOT_ALPHA] && (m->scale < 1 || m->scale > 1);
        bool whole = (plain && !scaled) || is_norm(x, m);
        if (scaled) code = fold_module(x, i, err);
        else if (!whole) code = add_module(x, i, err);
        else if (plain) f->plain[f->plain_count++] = m;
        if (!code) code = keep_module(x, m, whole, err);
    }
    f->ctx = x;
    f->compute = simplify_layer;
    return code;
}
