/* Which tensors of a model are quantised, and whose values cannot be computed; torchao's list of
 * them. Tests: test_convert.c, test_losses.c, test_values.c. */
#include "convert/conversion.h"

#include "base/json.h"
#include "convert/dropped.h"
#include "convert/named.h"
#include "keys/listed.h"

#include <string.h>

const sft_tensor *sfti_conversion_beside(const sft_conversion *c, size_t i,
                                         sft_convert_action *action) {
    const sfti_quant_search *search = &c->search;
    if (!search->near) return NULL;
    bool odd = search->odd[i] != SFTI_NO_NAME;
    uint32_t beside = odd ? search->odd[i] : search->near[i];
    if (beside == SFTI_NO_NAME) return NULL;
    *action = odd || search->scaled[i] ? SFT_CONVERT_SCALED : SFT_CONVERT_SCALE;
    return sft_set_tensor_at(c->set, beside);
}

sft_code sfti_conversion_find(const sft_conversion *c, sfti_quant_search *search, size_t i,
                              sfti_quant **out, sft_error *err) {
    const sft_tensor *tensor = sft_set_tensor_at(c->set, i);
    sft_convert_action action = SFT_CONVERT_OTHER;
    *out = NULL;
    if (c->options.match && !c->options.match(c->options.match_ctx, tensor)) return SFT_OK;
    sft_code code = sfti_quant_find(search, i, out, err);
    bool flat = search->near && search->scaled[i] == SFTI_NEAR_FLAT;
    if (code || (!sfti_quant_has(tensor) && !flat)) return code;
    const sft_tensor *beside = sfti_conversion_beside(c, i, &action);
    if (!beside || action != SFT_CONVERT_SCALED || search->taken[i] == SFTI_QUANT_TAKEN)
        return SFT_OK;
    if (search->odd[i] != SFTI_NO_NAME) {
        *out = NULL;
        sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, tensor->name,
                         "expected nothing beside codes that no known layout has and that may "
                         "change their values, found \"%.*s\"", SFTI_CLIP(beside->name, 200));
        sfti_hint(err, SFT_HINT_CHOOSE_TENSORS);
        return SFT_CAST_DTYPE;
    }
    if (*out) return SFT_OK;
    sft_span method = c->declared.method;
    search->unfit = method.len > 0;
    if (method.len)
        sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, tensor->name,
                         "expected what the quantization_config's \"%.*s\" stores, found another "
                         "layout", SFTI_CLIP(method, 100));
    else
        sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, tensor->name,
                         "expected a layout of quantised values that is known, found another");
    sfti_hint(err, SFT_HINT_CHOOSE_TENSORS);
    return SFT_CAST_DTYPE;
}

/* Whether a key of torchao's, M.weight, is of a tensor M._weight_qdata that is computed. */
static bool is_computed_class(const sft_conversion *c, sft_span key) {
    char name[SFTI_PART_NAME + 8];
    size_t dot = key.len;
    while (dot > 0 && key.data[dot - 1] != '.') dot--;
    if (dot == 0 || key.len > SFTI_PART_NAME) return false;
    memcpy(name, key.data, dot);
    name[dot] = '_';
    memcpy(name + dot + 1, key.data + dot, key.len - dot);
    memcpy(name + key.len + 1, "_qdata", 6);
    uint32_t found = sfti_names_find(&c->search.names, (sft_span){ name, key.len + 7 });
    return found != SFTI_NO_NAME && c->quants[found];
}

bool sfti_conversion_classed(const sft_conversion *c, sft_pair pair) {
    return is_computed_class(c, pair.key) && sfti_names_class(pair.value);
}

bool sfti_conversion_is_declared(const sft_set *set, const sft_files *files,
                                 const sft_allocator *alloc) {
    sfti_arena arena = { .alloc = *alloc };
    sfti_declared declared;
    sft_span name, object;
    sft_code code = sfti_declared_read(set, true, files, &arena, &declared, NULL);
    bool found = !code && (declared.method.len > 0 || declared.count > 0);
    for (size_t i = 0; !code && !found && i < sft_set_tensor_count(set); i++)
        found = sfti_declared_torchao(set, i, &arena, &name, &object);
    sfti_arena_free(&arena);
    return found;
}

sft_code sft_conversion_refusal(const sft_conversion *conversion, size_t i, bool *unfit,
                                sft_error *err) {
    const sft_conversion *c = conversion;
    sfti_arena work = { .alloc = c->alloc };
    sfti_quant_search search = c->search;
    sfti_quant *quant;
    if (unfit) *unfit = false;
    if (i >= c->count || c->rows[i].action != SFT_CONVERT_REFUSED) return SFT_OK;
    search.arena = &work;
    search.unfit = false;
    sft_code code = sfti_conversion_find(c, &search, i, &quant, err);
    if (unfit) *unfit = search.unfit;
    sfti_arena_free(&work);
    if (code) return code;
    return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET,
                            sft_set_tensor_at(c->set, i)->name,
                            "expected what it was when the model was opened, found another");
}

sft_span sft_conversion_layout(const sft_conversion *conversion, size_t i) {
    const sft_conversion *c = conversion;
    if (i >= c->count || c->rows[i].action != SFT_CONVERT_DEQUANTIZE) return (sft_span){ "", 0 };
    return c->quants[i]->layout->id;
}

sft_code sfti_conversion_join_lists(sft_conversion *c, sft_error *err) {
    sft_span *joined = sfti_arena_take(&c->arena, sizeof *joined);
    if (!joined || !sfti_set_listed(c->set, &c->arena, joined))
        return sfti_fail_memory(err, sizeof *joined);
    for (size_t i = 0; i < c->metadata_count && joined->data; i++) {
        const sft_file *file = sft_set_shard_at(c->set, c->picks[i].shard);
        sft_pair pair = sft_file_metadata_at(file, c->picks[i].pair);
        if (sft_span_equal(pair.key, sft_span_cstr(SFTI_LISTED_KEY))) c->picks[i].value = joined;
    }
    return SFT_OK;
}
