/* Alphas of adapters: numbers that say how the factors beside them are read, which no method may
 * mix. Tests: tests/cli/merge/methods. */
#include "label/tensors/adapters.h"
#include "merge/work.h"

#include "base/error.h"

typedef struct adapter_modules {
    const sfti_merge_plan *plan;
    const sfti_merge_rows *rows;
    sfti_suffixes suffixes;
    sfti_adapter_name *named; /* of each row */
    sfti_names alphas;        /* rows, by their modules */
    bool any;
    size_t *blame;
} adapter_modules;

static sft_span module_of_row(const void *ctx, uint32_t row) {
    return ((const adapter_modules *)ctx)->named[row].module;
}

static bool is_factor(const sfti_adapter_name *name) {
    return name->slot > SFTI_SLOT_NONE && name->slot < SFTI_SLOT_ALPHA;
}

static sft_code refuse_alpha(const adapter_modules *all, size_t model, sft_span name,
                             const char *found, sft_error *err) {
    *all->blame = model;
    return sfti_fail_tensor(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET, name,
                            "expected one alpha in all models, found %s: factors of one would be "
                            "read with another's; \"lora stack\" adds adapters as they are", found);
}

static sft_code find_modules(adapter_modules *all, sfti_arena *arena, sft_error *err) {
    size_t count = all->rows->count;
    all->named = sfti_arena_array(arena, count, sizeof *all->named);
    if (!all->named || !sfti_names_draw(&all->alphas, count, module_of_row, all, arena))
        return sfti_fail_memory(err, count * sizeof *all->named);
    sfti_adapter_suffixes(&all->suffixes);
    for (uint32_t i = 0; i < count; i++) {
        const sfti_merge_row *row = &all->rows->rows[i];
        sfti_adapter_name *name = &all->named[i];
        if (!sfti_adapter_name_of(&all->suffixes, row->spec.name, name))
            *name = (sfti_adapter_name){ .slot = SFTI_SLOT_NONE };
        if (name->slot == SFTI_SLOT_ALPHA && row->elements == 1)
            (void)sfti_names_add(&all->alphas, name->module, i);
        all->any = all->any || is_factor(name);
    }
    return SFT_OK;
}

/* The same number in all models that have it. */
static sft_code compare_alpha(const adapter_modules *all, const sfti_merge_row *row,
                              sft_error *err) {
    const sfti_merge_plan *plan = all->plan;
    uint8_t raw[8];
    float single;
    double first = 0, other;
    bool any = false;
    for (size_t m = 0; m < plan->count; m++) {
        if (row->of[m] == SFTI_MERGE_ALL) continue;
        *all->blame = m;
        sft_code code = sfti_merge_read(&plan->models[m], row->of[m], 0, 1, raw, &single, &other,
                                        err);
        if (code) return code;
        if (any && (first < other || first > other))
            return refuse_alpha(all, m, row->spec.name, "different ones", err);
        first = other;
        any = true;
    }
    return SFT_OK;
}

/* A factor's alpha is in each model that has the factor, or in none of them. */
static sft_code check_factor(const adapter_modules *all, size_t i, sft_error *err) {
    const sfti_merge_row *row = &all->rows->rows[i], *alpha;
    uint32_t at = sfti_names_find(&all->alphas, all->named[i].module);
    if (at == SFTI_NO_NAME) return SFT_OK;
    alpha = &all->rows->rows[at];
    for (size_t m = 0; m < all->plan->count; m++)
        if (row->of[m] != SFTI_MERGE_ALL && alpha->of[m] == SFTI_MERGE_ALL)
            return refuse_alpha(all, m, alpha->spec.name, "none in this one", err);
    return alpha->is_alpha ? SFT_OK : compare_alpha(all, alpha, err);
}

/* --ignore-missing would leave out the alpha of a factor that is merged. */
static sft_code check_left_out(const adapter_modules *all, sfti_arena *arena, sft_error *err) {
    const sfti_merge_plan *plan = all->plan;
    sfti_adapter_name name;
    sfti_names factors;
    if (!sfti_names_draw(&factors, all->rows->count, module_of_row, all, arena))
        return sfti_fail_memory(err, all->rows->count);
    for (uint32_t i = 0; i < all->rows->count; i++)
        if (is_factor(&all->named[i])) (void)sfti_names_add(&factors, all->named[i].module, i);
    for (size_t m = 0; m < plan->count; m++)
        for (size_t i = 0; i < sft_set_tensor_count(plan->models[m].set); i++) {
            const sft_tensor *tensor = sft_set_tensor_at(plan->models[m].set, i);
            if (sfti_adapter_name_of(&all->suffixes, tensor->name, &name)
                && name.slot == SFTI_SLOT_ALPHA
                && sfti_names_find(&factors, name.module) != SFTI_NO_NAME
                && sfti_names_find(&all->alphas, name.module) == SFTI_NO_NAME)
                return refuse_alpha(all, m, tensor->name, "one in this model alone", err);
        }
    return SFT_OK;
}

sft_code sfti_merge_alphas_check(const sfti_merge_plan *plan, sfti_merge_rows *rows, size_t *blame,
                                 sft_error *err) {
    sfti_arena arena = { .alloc = sfti_allocator(plan->alloc) };
    adapter_modules all = { .plan = plan, .rows = rows, .blame = blame };
    sft_code code = find_modules(&all, &arena, err);
    for (size_t i = 0; !code && i < rows->count; i++) {
        if (!is_factor(&all.named[i])) continue;
        code = check_factor(&all, i, err);
        uint32_t at = sfti_names_find(&all.alphas, all.named[i].module);
        if (!code && at != SFTI_NO_NAME) rows->rows[at].is_alpha = true;
    }
    if (!code && all.any && plan->ignore_missing && plan->slice_count == 0)
        code = check_left_out(&all, &arena, err);
    sfti_arena_free(&arena);
    return code;
}
