/* Tensors of an adapter by the ends of their names: what kind of one, of which rank. */
#include "label/tensors/adapters.h"

#include "base/checked.h"

#include <string.h>

/* ── Suffixes ── */

/* These are told by how a name begins: a kind of LoRA, a learned token. */
static const sfti_suffix beginnings[] = {
    { { "base_model.internal_xlora_classifier.", 37 }, SFTI_ADAPTER_TYPES, SFTI_ROLE_SHARED,
      SFTI_SLOT_NONE, "xlora", 0, 0 },
    { { "bundle_emb.", 11 }, SFTI_ADAPTER_TYPES, SFTI_ROLE_PART, SFTI_SLOT_NONE, "", 0, 0 },
};

/* The longest row that the name has, or NULL. No row's end is the end of another's. */
static const sfti_suffix *suffix_of(const sfti_suffixes *suffixes, sft_span name) {
    size_t found = sfti_suffixes_find(suffixes, name), count;
    const sfti_suffix *best = found ? &sfti_suffix_rows(&count)[found - 1] : NULL;
    for (size_t i = 0; i < SFTI_COUNT(beginnings); i++)
        if (sfti_begins_with(name, beginnings[i].end)
            && (!best || beginnings[i].end.len > best->end.len))
            best = &beginnings[i];
    return best;
}

/* ── Modules ── */

/* The tensor of a module with another suffix. */
static const sft_tensor *sibling(const sfti_view *view, const sfti_module *m, const char *suffix) {
    return view->count > 0 ? sfti_view_near(view, m->at, m->name, suffix)
                           : sfti_set_sibling(view->info->set, m->name, suffix);
}

static inline uint64_t size_at(const sfti_view *view, const sft_tensor *tensor, uint32_t axis) {
    if (!tensor || axis >= tensor->rank) return 0;
    if (!sfti_may_be_packed(tensor) || !sfti_ends(tensor->name, ".weight"))
        return tensor->shape[axis];
    return sfti_size_of(view->info->set, tensor, axis);
}

static bool has_kernel(const sft_tensor *tensor) {
    for (uint32_t i = 2; tensor && i < tensor->rank; i++)
        if (tensor->shape[i] > 1) return true;
    return false;
}

/* Flattened convolutions are told by their names, as U-Nets have them. */
static bool named_conv(sft_span name) {
    static const char *const ends[] = { "conv1", "conv2", "_conv", ".conv", "conv_in",
                                        "conv_out", "in_layers_2", "in_layers.2",
                                        "out_layers_3", "out_layers.3", "_op", ".op" };
    return SFTI_ONE_OF(name, ends, sfti_ends);
}

static void measure_lora(const sfti_view *view, sfti_module *m,
                         const sfti_suffix *row) {
    const sft_tensor *up = m->pair;
    bool transposed = sfti_is(row->end, ".lora_a");
    m->rank = size_at(view, m->tensor, row->rank ? row->rank - 1u : transposed);
    m->in = size_at(view, m->tensor, row->in ? row->in - 1u : !transposed);
    m->out = size_at(view, up, transposed ? 1 : 0);
    m->conv = has_kernel(m->tensor) || has_kernel(sibling(view, m, ".lora_mid.weight"));
}

static void measure_loha(const sfti_view *view, sfti_module *m) {
    const sft_tensor *core = sibling(view, m, ".hada_t1");
    const sft_tensor *a = sibling(view, m, ".hada_w1_a");
    m->rank = size_at(view, m->tensor, 0);
    m->in = size_at(view, m->tensor, 1);
    m->out = size_at(view, a, core ? 1 : 0);
    m->conv = has_kernel(core) || (!core && named_conv(m->name));
    m->folded = !core;
}

static uint64_t product_of(uint64_t a, uint64_t b) {
    uint64_t product;
    return sfti_mul(a, b, &product) ? product : 0;
}

static void measure_lokr(const sfti_view *view, sfti_module *m) {
    const sft_tensor *w1 = sibling(view, m, ".lokr_w1");
    const sft_tensor *w1_a = sibling(view, m, ".lokr_w1_a");
    const sft_tensor *w1_b = sibling(view, m, ".lokr_w1_b");
    const sft_tensor *w2 = sibling(view, m, ".lokr_w2");
    const sft_tensor *w2_a = sibling(view, m, ".lokr_w2_a");
    const sft_tensor *w2_b = sibling(view, m, ".lokr_w2_b");
    const sft_tensor *core = sibling(view, m, ".lokr_t2");
    m->rank = w2_b ? size_at(view, w2_b, 0) : w1_b ? size_at(view, w1_b, 0) : 0;
    m->in = product_of(w1 ? size_at(view, w1, 1) : size_at(view, w1_b, 1),
                       w2 ? size_at(view, w2, 1) : size_at(view, w2_b, 1));
    m->out = product_of(w1 ? size_at(view, w1, 0) : size_at(view, w1_a, 0),
                        w2 ? size_at(view, w2, 0) : size_at(view, w2_a, core ? 1 : 0));
    m->conv = has_kernel(w2) || has_kernel(core) || (!w2 && !core && named_conv(m->name));
    m->folded = !has_kernel(w2) && !core;
}

static void measure(const sfti_view *view, sfti_module *m,
                    const sfti_suffix *row) {
    uint64_t first = size_at(view, m->tensor, 0), second = size_at(view, m->tensor, 1);
    switch ((sfti_adapter_type)row->type) {
    case SFTI_TYPE_LORA: measure_lora(view, m, row); break;
    case SFTI_TYPE_LOHA: measure_loha(view, m); break;
    case SFTI_TYPE_LOKR: measure_lokr(view, m); break;
    case SFTI_TYPE_GLORA:
        m->rank = first < second ? first : second;
        m->in = first < second ? second : first;
        break;
    case SFTI_TYPE_FULL:
        m->out = first;
        m->in = second;
        break;
    case SFTI_TYPE_OFT:
        if (m->tensor->rank == 3 && sfti_ends(m->tensor->name, ".oft_blocks"))
            m->out = product_of(first, second);
        break;
    case SFTI_TYPE_OTHER:
        m->rank = row->rank ? size_at(view, m->tensor, row->rank - 1u) : 0;
        m->in = row->in ? size_at(view, m->tensor, row->in - 1u) : 0;
        break;
    case SFTI_TYPE_IA3: case SFTI_TYPE_BOFT: case SFTI_ADAPTER_TYPES: break;
    }
}

/* Two of a pair, or it is none. */
static bool is_module(const sfti_view *view, sfti_module *m,
                      const sfti_suffix *row) {
    if (row->type == SFTI_TYPE_GLORA)
        return m->tensor->rank == 2 && sibling(view, m, ".a2.weight")
            && sibling(view, m, ".b1.weight") && sibling(view, m, ".b2.weight");
    if (row->type == SFTI_TYPE_LORA) {
        m->pair = m->tensor->rank >= 2 ? sibling(view, m, row->other) : NULL;
        if (!m->pair || row->rank == 0 || row->in == 0) return m->pair != NULL;
        /* Where a row says which side of the first the rank is, that of the other is, too. */
        uint64_t rank = size_at(view, m->tensor, row->rank - 1u);
        return rank == size_at(view, m->pair, row->rank - 1u)
            && rank < size_at(view, m->tensor, row->in - 1u);
    }
    if (row->type == SFTI_TYPE_LOKR)
        return sibling(view, m, ".lokr_w2") || sibling(view, m, ".lokr_w2_a");
    if (row->type == SFTI_TYPE_LOHA) return sibling(view, m, ".hada_w1_a") != NULL;
    return true;
}

void sfti_adapter_suffixes(sfti_suffixes *suffixes) {
    size_t count;
    const sfti_suffix *rows = sfti_suffix_rows(&count);
    sfti_suffixes_open(suffixes, &rows->end, sizeof *rows, count);
}

bool sfti_adapter_name_of(const sfti_suffixes *suffixes, sft_span name, sfti_adapter_name *out) {
    const sfti_suffix *row = suffix_of(suffixes, name);
    if (!row) return false;
    bool whole = row->type == SFTI_ADAPTER_TYPES; /* told by how it begins */
    size_t cut = whole ? 0 : row->end.len;
    *out = (sfti_adapter_name){ { name.data, name.len - cut }, sfti_from(name, name.len - cut),
                                (sfti_adapter_type)row->type, row->slot };
    return true;
}

bool sfti_adapter_layer(const sfti_view *view, const sfti_suffixes *suffixes,
                        const sft_tensor *tensor, sfti_module *out) {
    const sfti_suffix *row = suffix_of(suffixes, tensor->name);
    if (!row || row->role != SFTI_ROLE_FIRST) return false;
    *out = (sfti_module){ .name = { tensor->name.data, tensor->name.len - row->end.len },
                          .tensor = tensor };
    if (!is_module(view, out, row)) return false;
    measure(view, out, row);
    return true;
}

static bool begin_forms(sfti_adapter_scan *scan) {
    sft_info *info = scan->view->info;
    if (!scan->forms && !info->code) {
        size_t count;
        const sfti_name_layout *rows = sfti_layout_rows(&count);
        scan->prefix_of = sfti_view_rows(scan->view, rows, sizeof *rows, count);
        scan->forms = sfti_forms_new(info);
    }
    return !info->code;
}

/* A learned token, if its name is no layer's. */
static bool is_bare_token(const sft_tensor *tensor) {
    return tensor->rank == 1 && tensor->name.len > 2 && *tensor->name.data == '<';
}

void sfti_adapter_sum(sfti_adapter_scan *scan) {
    size_t count;
    const sfti_name_layout *rows = sfti_layout_rows(&count);
    for (size_t i = 0; i < scan->view->count; i++) {
        const sft_tensor *tensor = scan->view->by_name[i];
        if (is_bare_token(tensor) && !suffix_of(&scan->suffixes, tensor->name)) continue;
        uint8_t prefix = scan->prefix_of[i];
        sfti_sum(&scan->parts[prefix ? rows[prefix - 1].part : SFTI_PART_MAIN], scan->quant, i);
    }
}

/* Every name begins as PEFT has them begin. */
static bool is_peft(const sfti_view *view) {
    return view->count > 0 && sfti_begins(view->by_name[0]->name, "base_model.")
        && sfti_begins(view->by_name[view->count - 1]->name, "base_model.");
}

sfti_adapter_scan *sfti_adapter_scan_of(const sfti_view *view, const sfti_quant *quant,
                                        bool named) {
    /* PEFT's adapters of a parameter (target_parameters) that is no layer's weight, as stacked
     * experts have them: the rank is that of all experts together. Of two parameters of a module
     * one is under base_layer. */
    static const char *const parameters[] = { ".experts", ".base_layer" };
    sft_info *info = view->info;
    sfti_adapter_scan *scan = sfti_info_take_zeroed(info, sizeof *scan);
    /* Scales, packed weights and a low rank: nunchaku, a quantised model. */
    if (!scan || (quant->id && strncmp(quant->id, "svdquant", 8) == 0)) return NULL;
    scan->view = view;
    scan->quant = quant;
    sfti_adapter_suffixes(&scan->suffixes);
    for (size_t i = 0; i < view->count; i++) {
        const sft_tensor *tensor = view->by_name[i];
        const sfti_suffix *row = suffix_of(&scan->suffixes, tensor->name);
        if (row || is_bare_token(tensor)) scan->tensors++;
        if (!row) continue;
        if (row->role == SFTI_ROLE_ALPHA) scan->alphas++;
        if (row->role == SFTI_ROLE_DORA) scan->dora = true;
        if (row->role == SFTI_ROLE_PART && row->type == SFTI_TYPE_LORA && *row->other)
            scan->lora = row->other;
        if (row->role == SFTI_ROLE_SHARED && begin_forms(scan)) {
            scan->shared++;
            sfti_forms_begin(scan->forms, tensor);
            if (*row->other) scan->other = row->other;
        }
        if (row->role != SFTI_ROLE_FIRST) continue;
        sfti_module m = { .name = { tensor->name.data, tensor->name.len - row->end.len },
                          .tensor = tensor, .at = i };
        if (!is_module(view, &m, row) || !begin_forms(scan)) continue;
        m.prefix = scan->prefix_of[i];
        bool boft = row->type == SFTI_TYPE_OFT && tensor->rank == 4;
        measure(view, &m, row);
        scan->of_type[boft ? SFTI_TYPE_BOFT : row->type]++;
        scan->modules++;
        if (row->end.data[0] == ':') scan->first_scripts = true;
        if (row->type == SFTI_TYPE_OTHER && *row->other) scan->other = row->other;
        bool ranked = m.rank > 0 && !(row->type == SFTI_TYPE_LORA
                                      && SFTI_ONE_OF(m.name, parameters, sfti_ends));
        if (ranked) sfti_tally_put(&scan->ranks, (double)m.rank);
        if (m.conv && ranked) sfti_tally_put(&scan->conv_ranks, (double)m.rank);
        sfti_forms_put(scan->forms, &m);
    }
    bool most = scan->tensors >= view->count - scan->tensors;
    bool found = scan->modules + scan->shared > 0 && (most || named || is_peft(view))
              && !info->code;
    return found ? scan : NULL;
}
