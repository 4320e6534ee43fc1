/* Records of other names (aliases) in quantised models: what only they name would be read without
 * its scale. Tests: tests/cli/convert/aliases.txt. */
#include "convert/conversion.h"
#include "convert/named.h"
#include "set/aliases.h"

/* What rows and names say of each tensor of the model with its aliases as tensors. */
typedef struct alias_check {
    sfti_quant_search search;
    uint32_t *of;    /* of each tensor: that whose bytes it has; itself if it is no alias */
    uint32_t *parts; /* of codes: how many tensors belong to them */
} alias_check;

static bool is_beside(const alias_check *check, uint32_t i) {
    return check->search.near[i] != SFTI_NO_NAME || check->search.odd[i] != SFTI_NO_NAME
        || check->search.scaled[i];
}

/* Whether an alias is as good as the tensor: neither belongs to codes, or it is, in a layer of
 * aliases, what the tensor is in a layer of tensors. */
static bool is_same_content(const alias_check *check, uint32_t i) {
    const sfti_quant_search *search = &check->search;
    uint32_t of = check->of[i], codes = search->near[i];
    if (!is_beside(check, i) && !is_beside(check, of)) return true;
    if (search->odd[i] != SFTI_NO_NAME || search->odd[of] != SFTI_NO_NAME
        || search->scaled[i] != search->scaled[of] || codes == SFTI_NO_NAME)
        return false;
    if (search->scaled[i]) return check->parts[i] == check->parts[of];
    return check->of[codes] != codes && search->near[of] == check->of[codes];
}

/* Codes that are an alias have aliases alone for parts, others have none. */
static bool has_all_or_none(const alias_check *check, uint32_t i) {
    uint32_t codes = check->search.near[i];
    return check->search.scaled[i] || codes == SFTI_NO_NAME
        || (check->of[i] != i) == (check->of[codes] != codes);
}

static sft_code fail_alias(sft_span name, sft_span of, sft_error *err) {
    sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, name,
                     "expected a quantised layer whose tensors are all there, found one that is "
                     "only another name of \"%.*s\", by the metadata: copy its bytes for each name "
                     "first", SFTI_CLIP(of, 200));
    sfti_hint(err, SFT_HINT_IMPORT_SHARED);
    return SFT_CAST_DTYPE;
}

static sft_code check_image(const sft_set *set, const sft_set *image, sfti_arena *arena,
                            sft_error *err) {
    size_t count = sft_set_tensor_count(image);
    sfti_declared declared;
    alias_check check = { .of = sfti_arena_array(arena, count, sizeof *check.of),
                          .parts = sfti_arena_array(arena, count, sizeof *check.parts) };
    if (!check.of || !check.parts) return sfti_fail_memory(err, count * sizeof *check.of);
    sft_code code = sfti_declared_read(image, false, NULL, arena, &declared, err);
    if (!code) code = sfti_quant_begin(&check.search, image, &declared, arena, err);
    if (code) return code;
    for (uint32_t i = 0; i < count; i++) {
        check.of[i] = i;
        check.parts[i] = 0;
    }
    for (size_t s = 0; s < sft_set_shard_count(set); s++) {
        const sft_file *file = sft_set_shard_at(set, s);
        for (size_t i = 0; i < sft_file_metadata_count(file); i++) {
            sft_pair pair = sft_file_metadata_at(file, i);
            if (!sfti_set_is_alias(set, pair)) continue;
            /* The first of a key counts; without a tensor it is a digest, or no alias. */
            uint32_t at = sfti_names_find(&check.search.names, pair.key);
            if (at == SFTI_NO_NAME || check.of[at] != at) continue;
            check.of[at] = sfti_names_find(&check.search.names, pair.value);
        }
    }
    for (uint32_t i = 0; i < count; i++)
        if (!check.search.scaled[i] && check.search.near[i] != SFTI_NO_NAME)
            check.parts[check.search.near[i]]++;
    for (uint32_t i = 0; i < count; i++)
        if (!has_all_or_none(&check, i) || (check.of[i] != i && !is_same_content(&check, i))) {
            uint32_t one = check.of[i] != i ? i : check.search.near[i];
            return fail_alias(sft_set_tensor_at(image, one)->name,
                              sft_set_tensor_at(image, check.of[one])->name, err);
        }
    return SFT_OK;
}

sft_code sfti_convert_check_aliases(const sft_set *set, const sft_allocator *alloc,
                                    sft_error *err) {
    sfti_arena work = { .alloc = *alloc };
    sft_set *image;
    if (!sfti_declared_may(set)) return SFT_OK;
    sft_code code = sfti_set_named(set, NULL, alloc, &image, err);
    if (!code && image) code = check_image(set, image, &work, err);
    sft_set_close(image);
    sfti_arena_free(&work);
    return code;
}

/* The row of the tensor that a record is about, or SFTI_NO_NAME. */
static uint32_t alias_row(const sft_conversion *c, sft_pair pair) {
    if (!c->quants || !sfti_set_is_alias(c->set, pair)) return SFTI_NO_NAME;
    return sfti_names_find(&c->search.names, pair.value);
}

sft_code sfti_convert_rename_alias(const sft_conversion *c, sft_pair pair, sft_error *err) {
    uint32_t i = alias_row(c, pair);
    if (i == SFTI_NO_NAME || c->rows[i].action != SFT_CONVERT_DEQUANTIZE
        || sft_span_equal(c->quants[i]->spec.name, pair.value))
        return SFT_OK;
    return fail_alias(pair.key, pair.value, err);
}

bool sfti_convert_ends_alias(const sft_conversion *c, sft_pair pair) {
    uint32_t i = alias_row(c, pair);
    return i != SFTI_NO_NAME && c->rows[i].action == SFT_CONVERT_DROP;
}
