/* What stands beside tensors that may be codes: what rows of layouts name, and what a name alone
 * says to change their meaning. Tests: test_convert.c, tests/quant/near.py. */
#include "base/error.h"
#include "os/io.h"
#include "quant/quant.h"

bool sfti_quant_has(const sft_tensor *tensor) {
    const sft_dtype_info *info = sft_dtype_describe(tensor->dtype);
    return info->kind == SFT_KIND_INT || info->kind == SFT_KIND_UINT
        || (info->kind == SFT_KIND_FLOAT && info->bits <= 8);
}

static uint32_t near_named(const sfti_quant_search *search, sft_span begin, sft_span end) {
    char buffer[2 * SFTI_PART_NAME];
    if (begin.len > SFTI_PART_NAME || end.len > SFTI_PART_NAME) return SFTI_NO_NAME;
    if (begin.len > 0) memcpy(buffer, begin.data, begin.len);
    if (end.len > 0) memcpy(buffer + begin.len, end.data, end.len);
    return sfti_names_find(&search->names, (sft_span){ buffer, begin.len + end.len });
}

/* The module, with the dot behind it. */
static sft_span module_of(sft_span name) {
    while (name.len > 0 && name.data[name.len - 1] != '.') name.len--;
    return name;
}

static sft_span leaf_of(sft_span name) {
    size_t module = module_of(name).len;
    return (sft_span){ name.data + module, name.len - module };
}

static bool leaf_begins(sft_span text, const char *begin) {
    return text.len >= strlen(begin) && memcmp(text.data, begin, strlen(begin)) == 0;
}

/* Whether one of the words is in the text; letters in lower case are that in any. */
static bool tells_of(sft_span text, sft_span words) {
    sft_span word;
    while (sfti_layout_word(&words, '|', &word))
        for (size_t at = 0; at + word.len <= text.len; at++) {
            size_t same = 0;
            while (same < word.len) {
                char c = text.data[at + same];
                if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
                if (c != word.data[same]) break;
                same++;
            }
            if (same == word.len) return true;
        }
    return false;
}

/* ── By rows ── */

/* Whether a part of that name belongs to codes that tensor `to` may be. Floats of more than 8 bits
 * were codes only if the name is one that plain models have not. */
static bool may_belong(const sfti_quant_search *search, const sfti_quant_layout *layout,
                       const sfti_layout_part *part, sft_span pattern, uint32_t to) {
    const sft_tensor *tensor = sft_set_tensor_at(search->set, to);
    if (sfti_quant_has(tensor)) return true;
    bool told = part->role == SFTI_PART_SCALE && memchr(pattern.data, '_', pattern.len);
    return told || (layout->parts[0].flat && layout->parts[0].dtypes >> tensor->dtype & 1);
}

/* The codes of any name of a layout that tensor i, of a name that fits a part's pattern, is beside;
 * or SFTI_NO_NAME. */
static uint32_t codes_of(const sfti_quant_search *search, const sfti_quant_layout *layout,
                         const sfti_layout_part *part, sft_span pattern, uint32_t i) {
    sft_span stem = sft_set_tensor_at(search->set, i)->name, names = layout->parts[0].names, name;
    bool starred = *pattern.data == '*';
    char buffer[SFTI_PART_NAME];
    if (starred) stem.len -= pattern.len - 1;
    while (sfti_layout_word(&names, '|', &name)) {
        if (!starred && *name.data == '*') continue;
        sft_span codes = sfti_layout_name(name, stem, buffer);
        if (starred && *name.data != '*' && !sft_span_equal(codes, stem)) continue;
        uint32_t to = codes.len ? sfti_names_find(&search->names, codes) : SFTI_NO_NAME;
        if (to != SFTI_NO_NAME && to != i && may_belong(search, layout, part, pattern, to))
            return to;
    }
    return SFTI_NO_NAME;
}

/* A name of a part, without its star. */
typedef struct beside_end {
    const sfti_quant_layout *layout;
    const sfti_layout_part *part;
    sft_span pattern, end;
} beside_end;

/* All names of parts beside codes, in `out` if that is not NULL; how many there are. */
static size_t list_ends(const sfti_layouts *layouts, beside_end *out) {
    size_t count = 0;
    for (size_t k = 0; k < layouts->count; k++)
        for (size_t p = k > 0; p < layouts->rows[k].count; p++) {
            const sfti_layout_part *part = &layouts->rows[k].parts[p];
            sft_span names = part->names, one;
            for (; sfti_layout_word(&names, '|', &one); count++) {
                size_t star = *one.data == '*';
                if (out)
                    out[count] = (beside_end){ &layouts->rows[k], part, one,
                                             { one.data + star, one.len - star } };
            }
        }
    return count;
}

/* The codes of all rows whose part has the tensor's name. *named: the last such part that was
 * looked at, or NULL. drops: of parts that mean nothing alone. */
static uint32_t codes_by_rows(const sfti_quant_search *search, const beside_end *ends, size_t count,
                              uint32_t i, bool drops, const beside_end **named) {
    const sfti_layouts *layouts = &search->declared->layouts;
    const sft_span tensor = sft_set_tensor_at(search->set, i)->name;
    for (size_t e = 0; e < count; e++) {
        const beside_end *at = &ends[e];
        if (tensor.len <= at->end.len || drops != (at->part->role == SFTI_PART_DROP)
            || memcmp(tensor.data + tensor.len - at->end.len, at->end.data, at->end.len) != 0
            || !sfti_layout_inside(at->part, tensor))
            continue;
        *named = at;
        bool any = at->layout == layouts->rows; /* its parts belong to the codes of any */
        size_t first = any ? 1 : (size_t)(at->layout - layouts->rows);
        for (size_t k = first; k < (any ? layouts->count : first + 1); k++) {
            uint32_t to = codes_of(search, &layouts->rows[k], at->part, at->pattern, i);
            if (to != SFTI_NO_NAME) return to;
        }
    }
    return SFTI_NO_NAME;
}

/* ── By names ── */

/* Whether the tensor may be codes of a layout that is not known: at most 8 bits, or words that are
 * called weights. */
static bool may_be_codes(const sft_tensor *tensor) {
    const sft_dtype_info *info = sft_dtype_describe(tensor->dtype);
    if (!sfti_quant_has(tensor) || tensor->dtype == SFT_F8_E8M0) return false;
    return info->bits <= 8
        || (info->bits == 32 && tensor->rank == 2
            && tells_of(leaf_of(tensor->name), sft_span_cstr("weight")));
}

/* Whether the codes of that name, behind what a tensor's name begins with, are what it belongs to:
 * those of its own layout's names, whole weights, or, of another module, a matrix. */
static bool continues(const sfti_quant_search *search, sft_span codes, bool told, uint32_t i,
                      uint32_t to) {
    const sft_tensor *tensor = sft_set_tensor_at(search->set, to);
    if (to == i || (!told && tensor->dtype == sft_set_tensor_at(search->set, i)->dtype))
        return false;
    if (search->scaled[to]) return true;
    return search->near[to] == SFTI_NO_NAME && may_be_codes(tensor)
        && (*codes.data == '*' || tensor->rank > 1);
}

/* The codes whose name the tensor's continues: "M.weight" of "M.weight_block_scale", "M.q.scale"
 * and "M_scale". What stands behind whole weights, in another dtype, need not say what it is. */
static uint32_t codes_by_name(const sfti_quant_search *search, uint32_t i) {
    const sfti_layouts *layouts = &search->declared->layouts;
    const sft_span name = sft_set_tensor_at(search->set, i)->name;
    sft_span begin = name;
    for (unsigned dots = 0; begin.len > 1 && dots < 2;) {
        char last = begin.data[--begin.len];
        if (last != '.' && last != '_') continue;
        dots += last == '.';
        sft_span more = { name.data + begin.len, name.len - begin.len };
        bool told = tells_of(more, layouts->rows[0].odd);
        if (!told && !sfti_name_ends(begin, "weight")) continue;
        for (size_t k = 0; k < layouts->count; k++) {
            sft_span names = layouts->rows[k].count ? layouts->rows[k].parts[0].names
                                                    : (sft_span){ "", 0 }, one;
            while (sfti_layout_word(&names, '|', &one)) {
                size_t star = *one.data == '*';
                uint32_t to = near_named(search, begin,
                                         (sft_span){ one.data + star, one.len - star });
                if (to != SFTI_NO_NAME && continues(search, one, told, i, to)) return to;
            }
        }
    }
    return SFTI_NO_NAME;
}

static sft_span module_at(const void *ctx, uint32_t entry) {
    return module_of(sft_set_tensor_at(ctx, entry)->name);
}

/* Whether what stands in the same module may belong to the tensor: to a weight, or to the integers
 * of PyTorch's quantised tensors, whose module is the tensor and which can thus have any rank. */
static bool are_module_codes(const sft_tensor *tensor) {
    sft_span leaf = leaf_of(tensor->name);
    if (sft_span_equal(leaf, sft_span_cstr("int_repr"))) return sfti_quant_has(tensor);
    bool weight = leaf_begins(leaf, "weight") || leaf_begins(leaf, "qweight")
               || leaf_begins(leaf, "W_q");
    return weight && tensor->rank >= 2 && leaf.len < tensor->name.len && may_be_codes(tensor);
}

/* Assigns tensors that no row explains, and whose names say that they change codes, to those whose
 * names they continue, or to the weights of the same module, as scales are. */
static sft_code find_odd(sfti_quant_search *search, uint8_t *explained, sft_error *err) {
    const sft_set *set = search->set;
    sft_span words = search->declared->layouts.rows[0].odd;
    uint32_t count = (uint32_t)sft_set_tensor_count(set);
    sfti_names modules;
    size_t odd = 0;
    for (uint32_t i = 0; i < count; i++) {
        sft_span name = sft_set_tensor_at(set, i)->name;
        explained[i] = explained[i] || (!tells_of(leaf_of(name), words)
                                        && !tells_of(name, sft_span_cstr("weight_|weight.")));
        odd += !explained[i];
    }
    if (odd == 0) return SFT_OK;
    if (!sfti_names_draw(&modules, odd, module_at, set, search->arena))
        return sfti_fail_memory(err, odd * sizeof(sfti_slot));
    uint32_t *of = sfti_arena_array(search->arena, count, sizeof *of); /* their codes */
    if (!of) return sfti_fail_memory(err, count * sizeof *of);
    for (uint32_t i = 0; i < count; i++) {
        of[i] = SFTI_NO_NAME;
        if (explained[i]) continue;
        uint32_t to = of[i] = codes_by_name(search, i);
        if (to != SFTI_NO_NAME && search->odd[to] == SFTI_NO_NAME) search->odd[to] = i;
        sft_span name = sft_set_tensor_at(set, i)->name;
        if (tells_of(leaf_of(name), words)) (void)sfti_names_add(&modules, module_of(name), i);
    }
    for (uint32_t i = 0; i < count; i++) {
        const sft_tensor *tensor = sft_set_tensor_at(set, i);
        if (!are_module_codes(tensor)) continue;
        uint32_t beside = sfti_names_find(&modules, module_of(tensor->name));
        if (beside == SFTI_NO_NAME || beside == i) continue;
        if (search->odd[i] == SFTI_NO_NAME) search->odd[i] = beside;
        if (of[beside] == SFTI_NO_NAME) of[beside] = i;
    }
    for (uint32_t i = 0; i < count; i++) {
        sft_span name = sft_set_tensor_at(set, i)->name;
        if (explained[i] || search->near[i] != SFTI_NO_NAME) continue;
        uint32_t first = of[i] != SFTI_NO_NAME || !tells_of(leaf_of(name), words)
                       ? i : sfti_names_find(&modules, module_of(name));
        if (first != SFTI_NO_NAME && of[first] != i) search->near[i] = of[first];
    }
    return SFT_OK;
}

/* ── All together ── */

/* In a layer that is declared to be quantised, and is, all but the bias belongs to the weight. */
static void find_declared_parts(sfti_quant_search *search, uint32_t i) {
    const sft_tensor *tensor = sft_set_tensor_at(search->set, i);
    sft_span leaf;
    const sfti_declared_layer *layer = sfti_declared_of(search->declared, tensor->name, &leaf);
    if (!layer || !layer->weight || !sfti_quant_has(layer->weight)
        || sft_span_equal(leaf, sft_span_cstr("bias")))
        return;
    bool codes = tensor == layer->weight;
    const sft_tensor *other = !codes ? layer->weight : layer->marker ? layer->marker : tensor;
    if (codes && search->near[i] != SFTI_NO_NAME) return;
    search->near[i] = sfti_names_find(&search->names, other->name);
    search->scaled[i] = codes;
}

sft_code sfti_quant_look(sfti_quant_search *search, sft_error *err) {
    uint32_t count = (uint32_t)sft_set_tensor_count(search->set);
    if (!sfti_declared_may(search->set)) return SFT_OK;
    search->near = sfti_arena_array(search->arena, count, 2 * sizeof *search->near);
    search->scaled = sfti_arena_array(search->arena, count, 2);
    size_t named = list_ends(&search->declared->layouts, NULL);
    beside_end *ends = sfti_arena_array(search->arena, named, sizeof *ends);
    if (!search->near || !search->scaled || !ends)
        return sfti_fail_memory(err, 10 * (uint64_t)count);
    (void)list_ends(&search->declared->layouts, ends);
    search->odd = search->near + count;
    uint8_t *explained = search->scaled + count;
    memset(search->scaled, 0, 2 * (size_t)count);
    for (uint32_t i = 0; i < count; i++) search->near[i] = search->odd[i] = SFTI_NO_NAME;
    for (size_t i = 0; i < 2 * (size_t)count; i++) {
        uint32_t of = (uint32_t)(i < count ? i : i - count);
        bool drops = i >= count;
        const beside_end *name = NULL;
        uint32_t to = codes_by_rows(search, ends, named, of, drops, &name);
        bool bare = drops && name && name->part->scaled && to != SFTI_NO_NAME
                 && !search->scaled[to];
        explained[of] = explained[of] || (!bare && (to != SFTI_NO_NAME || (drops && name)));
        if (to == SFTI_NO_NAME || (drops && !search->scaled[to])) continue;
        if (search->near[of] == SFTI_NO_NAME) search->near[of] = to;
        if (!search->scaled[to]) search->near[to] = of;
        if (!search->scaled[to]) search->scaled[to] = SFTI_NEAR_SCALED;
        if (name->layout->parts[0].flat) search->scaled[to] = SFTI_NEAR_FLAT;
    }
    for (uint32_t i = 0; i < count; i++) find_declared_parts(search, i);
    return find_odd(search, explained, err);
}
