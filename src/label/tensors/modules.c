/* Tensors of an adapter by the ends of their names: what kind of one, of which rank. */
#include "label/tensors/adapters.h"

#include "base/checked.h"

#include <string.h>

/* ── Suffixes ── */

/* FIRST: each module has one, so it is the one to count. */
typedef enum adapter_role {
    ROLE_PART = 0, ROLE_FIRST, ROLE_ALPHA, ROLE_DORA, ROLE_SHARED
} adapter_role;

#define SUFFIX(text, type, role, other, slot) \
    { { text, sizeof(text) - 1 }, SFTI_TYPE_##type, ROLE_##role, other, 0, 0, SFTI_SLOT_##slot }
#define METHOD(text, role, method, rank, in) \
    { { text, sizeof(text) - 1 }, SFTI_TYPE_OTHER, ROLE_##role, method, rank, in, SFTI_SLOT_NONE }
#define BEGINNING(text, role, method) \
    { { text, sizeof(text) - 1 }, SFTI_ADAPTER_TYPES, ROLE_##role, method, 0, 0, SFTI_SLOT_NONE }

/* A PEFT method needs one row a module: all else in its files begins with "base_model.". */
static const struct adapter_suffix {
    sft_span end;
    sfti_adapter_type type;
    adapter_role role;
    const char *other; /* up of a down; name of a PEFT method */
    uint8_t rank, in;  /* of a PEFT method, which axis, from 1; 0: none */
    uint8_t slot;      /* sfti_adapter_slot */
} adapter_suffixes[] = {
    SUFFIX(".lora_down.weight", LORA, FIRST, ".lora_up.weight", DOWN),
    SUFFIX(".lora_up.weight", LORA, PART, NULL, UP),
    SUFFIX(".lora_mid.weight", LORA, PART, NULL, MID),
    SUFFIX(".lora_A.weight", LORA, FIRST, ".lora_B.weight", DOWN),
    SUFFIX(".lora_B.weight", LORA, PART, NULL, UP),
    SUFFIX(".lora_A.default.weight", LORA, FIRST, ".lora_B.default.weight", DOWN),
    SUFFIX(".lora_B.default.weight", LORA, PART, NULL, UP),
    SUFFIX(".lora_B.bias", LORA, PART, NULL, BIAS),
    SUFFIX(".lora_A", LORA, FIRST, ".lora_B", DOWN),
    SUFFIX(".lora_B", LORA, PART, NULL, UP),
    SUFFIX(".lora_E", LORA, PART, "adalora", NONE),
    SUFFIX(".lora_embedding_A", LORA, FIRST, ".lora_embedding_B", UP),
    SUFFIX(".lora_embedding_B", LORA, PART, NULL, DOWN),
    SUFFIX(".lora_a", LORA, FIRST, ".lora_b", NONE), /* MLX: transposed */
    SUFFIX(".lora_b", LORA, PART, NULL, NONE),
    SUFFIX("_lora.down.weight", LORA, FIRST, "_lora.up.weight", DOWN),
    SUFFIX("_lora.up.weight", LORA, PART, NULL, UP),
    SUFFIX("_lora1.down.weight", LORA, FIRST, "_lora1.up.weight", DOWN), /* XLabs */
    SUFFIX("_lora1.up.weight", LORA, PART, NULL, UP),
    SUFFIX("_lora2.down.weight", LORA, FIRST, "_lora2.up.weight", DOWN),
    SUFFIX("_lora2.up.weight", LORA, PART, NULL, UP),
    SUFFIX(".lora.down.weight", LORA, FIRST, ".lora.up.weight", DOWN),
    SUFFIX(".lora.up.weight", LORA, PART, NULL, UP),
    SUFFIX(".lora_linear_layer.down.weight", LORA, FIRST, ".lora_linear_layer.up.weight", DOWN),
    SUFFIX(".lora_linear_layer.up.weight", LORA, PART, NULL, UP),
    SUFFIX(":down", LORA, FIRST, ":up", DOWN), /* the first scripts */
    SUFFIX(":up", LORA, PART, NULL, UP),
    SUFFIX(".down", LORA, FIRST, ".up", DOWN), /* control LoRAs */
    SUFFIX(".up", LORA, PART, NULL, UP),
    SUFFIX(".hada_w1_b", LOHA, FIRST, NULL, HADA_1B),
    SUFFIX(".hada_w1_a", LOHA, PART, NULL, HADA_1A),
    SUFFIX(".hada_w2_a", LOHA, PART, NULL, HADA_2A),
    SUFFIX(".hada_w2_b", LOHA, PART, NULL, HADA_2B),
    SUFFIX(".hada_t1", LOHA, PART, NULL, HADA_T1),
    SUFFIX(".hada_t2", LOHA, PART, NULL, HADA_T2),
    SUFFIX(".lokr_w1", LOKR, FIRST, NULL, KRON_1),
    SUFFIX(".lokr_w1_a", LOKR, FIRST, NULL, KRON_1A),
    SUFFIX(".lokr_w1_b", LOKR, PART, NULL, KRON_1B),
    SUFFIX(".lokr_w2", LOKR, PART, NULL, KRON_2),
    SUFFIX(".lokr_w2_a", LOKR, PART, NULL, KRON_2A),
    SUFFIX(".lokr_w2_b", LOKR, PART, NULL, KRON_2B),
    SUFFIX(".lokr_t2", LOKR, PART, NULL, KRON_T2),
    SUFFIX(".a1.weight", GLORA, FIRST, ".b1.weight", GLORA_A1),
    SUFFIX(".a2.weight", GLORA, PART, NULL, GLORA_A2),
    SUFFIX(".b1.weight", GLORA, PART, NULL, GLORA_B1),
    SUFFIX(".b2.weight", GLORA, PART, NULL, GLORA_B2),
    SUFFIX(".oft_blocks", OFT, FIRST, NULL, OFT_BLOCKS),
    SUFFIX(".oft_diag", OFT, FIRST, NULL, NONE),
    SUFFIX(".oft_R.weight", OFT, FIRST, NULL, OFT_PACKED),
    SUFFIX(".oft_R", OFT, FIRST, NULL, NONE),
    SUFFIX(".oft_r", OFT, FIRST, NULL, NONE),
    SUFFIX(".oft_s", OFT, PART, NULL, NONE),
    SUFFIX(".rescale", OFT, PART, NULL, OFT_RESCALE),
    SUFFIX(".boft_R", BOFT, FIRST, NULL, NONE),
    SUFFIX(".boft_s", BOFT, PART, NULL, NONE),
    SUFFIX(".on_input", IA3, FIRST, NULL, IA3_ON_INPUT),
    SUFFIX(".ia3_l", IA3, FIRST, NULL, IA3_FACTOR),
    SUFFIX(".diff", FULL, FIRST, NULL, DIFF),
    SUFFIX(".diff_b", FULL, PART, NULL, DIFF_BIAS),
    SUFFIX(".set_weight", FULL, FIRST, NULL, NONE),
    SUFFIX(".w_norm", FULL, FIRST, NULL, DIFF),
    SUFFIX(".b_norm", FULL, PART, NULL, DIFF_BIAS),
    SUFFIX(".dora_scale", LORA, DORA, NULL, MAGNITUDE),
    SUFFIX(".lora_magnitude_vector", LORA, DORA, NULL, MAGNITUDE),
    SUFFIX(".lora_magnitude_vector.weight", LORA, DORA, NULL, MAGNITUDE),
    SUFFIX(".lora_magnitude_vector.default.weight", LORA, DORA, NULL, MAGNITUDE),
    SUFFIX(".alpha", LORA, ALPHA, NULL, ALPHA),
    METHOD(".vera_lambda_b", PART, "vera", 0, 0),
    METHOD(".vera_lambda_d", FIRST, "vera", 1, 0),
    METHOD(".vera_A", SHARED, "vera", 0, 0),
    METHOD(".vera_B", SHARED, "vera", 0, 0),
    METHOD(".pvera_lambda_d", FIRST, "pvera", 0, 0),
    METHOD(".fourierft_spectrum", FIRST, "fourierft", 0, 0),
    METHOD(".waveft_spectrum", FIRST, "waveft", 0, 0),
    METHOD(".vblora_logits_A", FIRST, "vblora", 1, 0),
    METHOD(".vblora_logits_B", PART, "vblora", 0, 0),
    METHOD(".vblora_vector_bank", SHARED, "vblora", 0, 0),
    METHOD(".unilora_theta_d", SHARED, "unilora", 0, 0),
    METHOD(".hra_u", FIRST, "hra", 2, 1),
    METHOD(".bone_block", FIRST, "bone", 1, 0),
    METHOD(".miss_block", FIRST, "miss", 1, 0),
    METHOD(".randlora_lambda", FIRST, "randlora", 1, 0),
    METHOD(".randlora_gamma", PART, "randlora", 0, 0),
    METHOD(".shira_weight", FIRST, "shira", 0, 0),
    METHOD(".shira_indices", PART, "shira", 0, 0),
    METHOD(".c3a_kernel", FIRST, "c3a", 0, 0),
    METHOD(".road_theta", FIRST, "road", 0, 0),
    METHOD(".road_alpha", PART, "road", 0, 0),
    METHOD(".adaption_prompt", FIRST, "adaption_prompt", 0, 0),
    METHOD(".adaption_gate", PART, "adaption_prompt", 0, 0),
    METHOD(".hira_A", FIRST, "hira", 1, 2),
    METHOD(".delora_A", FIRST, "delora", 1, 2),
    METHOD(".deft_R", FIRST, "deft", 1, 2),
    METHOD(".gralora_A", FIRST, "gralora", 3, 0),
    METHOD(".lily_A.weight", FIRST, "lily", 1, 2),
    METHOD(".peanut_A.weight", FIRST, "peanut", 1, 0),
    METHOD(".poly_lora_A", FIRST, "poly", 4, 3),
    METHOD(".psoft_R.weight", FIRST, "psoft", 0, 0),
    METHOD(".tinylora_A", FIRST, "tinylora", 1, 2),
    METHOD(".adamss_newB", FIRST, "adamss", 0, 0),
    METHOD(".beft_bias", FIRST, "beft", 0, 0),
    METHOD(".frod_lambda_l", FIRST, "frod", 0, 0),
    METHOD(".osf_svd_params.S_low", FIRST, "osf", 1, 0),
    METHOD(".ln_tuning_layers.weight", FIRST, "ln_tuning", 0, 0),
    METHOD(".shadow_down.default.weight", FIRST, "shadow", 1, 2),
    METHOD(".supertuning_values", FIRST, "supertuning", 0, 0),
    METHOD(".trainable_tokens_delta", SHARED, "trainable_tokens", 0, 0),
    METHOD("prefix_task_rows", SHARED, "multitask_prompt_tuning", 0, 0),
    METHOD("prefix_task_cols", SHARED, "multitask_prompt_tuning", 0, 0),
    METHOD(".glora_A.Xu", FIRST, "glora", 1, 2),
    METHOD(".glora_A.X", FIRST, "glora", 0, 0),
    METHOD(".glora_A.zeros", FIRST, "glora", 0, 0),
    METHOD(".vblora_logits_A_topk_indices", FIRST, "vblora", 1, 0),
    METHOD("prompt_embeddings", SHARED, NULL, 0, 0), /* of several methods */
};

/* These are told by how a name begins. */
static const struct adapter_suffix adapter_beginnings[] = {
    BEGINNING("base_model.internal_xlora_classifier.", SHARED, "xlora"),
    BEGINNING("bundle_emb.", PART, NULL), /* a learned token */
};

/* The longest row that the name has, or NULL. No row's end is the end of another's. */
static const struct adapter_suffix *suffix_of(const sfti_suffixes *suffixes, sft_span name) {
    size_t found = sfti_suffixes_find(suffixes, name);
    const struct adapter_suffix *best = found ? &adapter_suffixes[found - 1] : NULL;
    for (size_t i = 0; i < SFTI_COUNT(adapter_beginnings); i++) {
        const struct adapter_suffix *row = &adapter_beginnings[i];
        if (name.len >= row->end.len && *name.data == *row->end.data
            && memcmp(name.data, row->end.data, row->end.len) == 0
            && (!best || row->end.len > best->end.len))
            best = row;
    }
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
                         const struct adapter_suffix *row) {
    const sft_tensor *up = m->pair;
    bool transposed = strcmp(row->end.data, ".lora_a") == 0;
    m->rank = size_at(view, m->tensor, transposed ? 1 : 0);
    m->in = size_at(view, m->tensor, transposed ? 0 : 1);
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
                    const struct adapter_suffix *row) {
    uint64_t first = size_at(view, m->tensor, 0), second = size_at(view, m->tensor, 1);
    switch (row->type) {
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
                      const struct adapter_suffix *row) {
    if (row->type == SFTI_TYPE_GLORA)
        return m->tensor->rank == 2 && sibling(view, m, ".a2.weight")
            && sibling(view, m, ".b1.weight") && sibling(view, m, ".b2.weight");
    if (row->type == SFTI_TYPE_LORA) {
        m->pair = m->tensor->rank >= 2 ? sibling(view, m, row->other) : NULL;
        return m->pair != NULL;
    }
    if (row->type == SFTI_TYPE_LOKR)
        return sibling(view, m, ".lokr_w2") || sibling(view, m, ".lokr_w2_a");
    if (row->type == SFTI_TYPE_LOHA) return sibling(view, m, ".hada_w1_a") != NULL;
    return true;
}

void sfti_adapter_suffixes(sfti_suffixes *suffixes) {
    sfti_suffixes_open(suffixes, &adapter_suffixes[0].end, sizeof adapter_suffixes[0],
                       SFTI_COUNT(adapter_suffixes));
}

bool sfti_adapter_name_of(const sfti_suffixes *suffixes, sft_span name, sfti_adapter_name *out) {
    const struct adapter_suffix *row = suffix_of(suffixes, name);
    if (!row) return false;
    bool whole = row->type == SFTI_ADAPTER_TYPES; /* told by how it begins */
    size_t cut = whole ? 0 : row->end.len;
    *out = (sfti_adapter_name){ { name.data, name.len - cut }, sfti_from(name, name.len - cut),
                                row->type, (sfti_adapter_slot)row->slot };
    return true;
}

bool sfti_adapter_layer(const sfti_view *view, const sfti_suffixes *suffixes,
                        const sft_tensor *tensor, sfti_module *out) {
    const struct adapter_suffix *row = suffix_of(suffixes, tensor->name);
    if (!row || row->role != ROLE_FIRST) return false;
    *out = (sfti_module){ .name = { tensor->name.data, tensor->name.len - row->end.len },
                          .tensor = tensor };
    if (!is_module(view, out, row)) return false;
    measure(view, out, row);
    return true;
}

static bool begin_forms(sfti_adapter_scan *scan) {
    sft_info *info = scan->view->info;
    if (!scan->forms && !info->code) {
        scan->prefix_of = sfti_forms_prefixes(scan->view);
        scan->forms = sfti_forms_new(info);
    }
    return !info->code;
}

static void scan_module(sfti_adapter_scan *scan, const sft_tensor *tensor,
                        const struct adapter_suffix *row) {
    sfti_module m = { .name = { tensor->name.data, tensor->name.len - row->end.len },
                      .tensor = tensor, .at = scan->at };
    if (!is_module(scan->view, &m, row) || !begin_forms(scan)) return;
    m.prefix = scan->prefix_of[scan->at];
    bool boft = row->type == SFTI_TYPE_OFT && tensor->rank == 4;
    measure(scan->view, &m, row);
    scan->of_type[boft ? SFTI_TYPE_BOFT : row->type]++;
    scan->modules++;
    if (row->end.data[0] == ':') scan->first_scripts = true;
    if (row->type == SFTI_TYPE_OTHER && row->other) scan->other = row->other;
    if (m.rank > 0) sfti_tally_put(&scan->ranks, (double)m.rank);
    if (m.conv && m.rank > 0) sfti_tally_put(&scan->conv_ranks, (double)m.rank);
    if (m.conv) scan->convs++;
    sfti_forms_put(scan->forms, &m);
}

/* A learned token, if its name is no layer's. */
static bool is_bare_token(const sft_tensor *tensor) {
    return tensor->rank == 1 && tensor->name.len > 2 && *tensor->name.data == '<';
}

static void scan_tensor(sfti_adapter_scan *scan, const sft_tensor *tensor) {
    const struct adapter_suffix *row = suffix_of(&scan->suffixes, tensor->name);
    if (row || is_bare_token(tensor)) scan->tensors++;
    if (!row) return;
    if (row->role == ROLE_ALPHA) scan->alphas++;
    if (row->role == ROLE_DORA) scan->dora = true;
    if (row->role == ROLE_PART && row->type == SFTI_TYPE_LORA && row->other)
        scan->lora = row->other;
    if (row->role == ROLE_FIRST) scan_module(scan, tensor, row);
    if (row->role == ROLE_SHARED && begin_forms(scan)) {
        scan->shared++;
        sfti_forms_begin(scan->forms, tensor);
        if (row->other) scan->other = row->other;
    }
}

void sfti_adapter_sum(sfti_adapter_scan *scan) {
    for (size_t i = 0; i < scan->view->count; i++) {
        const sft_tensor *tensor = sfti_view_at(scan->view, i);
        if (is_bare_token(tensor) && !suffix_of(&scan->suffixes, tensor->name)) continue;
        sfti_sum(&scan->parts[sfti_forms_part(scan->prefix_of[i])], scan->quant, tensor);
    }
}

/* Scales, packed weights and a low rank: nunchaku, a quantised model. */
static bool is_quantised_model(const sfti_quant *quant) {
    return quant->id && strncmp(quant->id, "svdquant", 8) == 0;
}

/* Every name begins as PEFT has them begin. */
static bool is_peft(const sfti_view *view) {
    return view->count > 0 && sfti_begins(sfti_view_at(view, 0)->name, "base_model.")
        && sfti_begins(sfti_view_at(view, view->count - 1)->name, "base_model.");
}

sfti_adapter_scan *sfti_adapter_scan_of(const sfti_view *view, const sfti_quant *quant,
                                        bool named) {
    sft_info *info = view->info;
    sfti_adapter_scan *scan = sfti_info_take_zeroed(info, sizeof *scan);
    if (!scan || is_quantised_model(quant)) return NULL;
    scan->view = view;
    scan->quant = quant;
    sfti_adapter_suffixes(&scan->suffixes);
    for (; scan->at < view->count; scan->at++) scan_tensor(scan, sfti_view_at(view, scan->at));
    bool most = scan->tensors >= view->count - scan->tensors;
    bool found = scan->modules + scan->shared > 0 && (most || named || is_peft(view))
              && !info->code;
    return found ? scan : NULL;
}
