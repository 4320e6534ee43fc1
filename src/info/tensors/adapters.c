/* Adapters: what kind of one, of which rank and alpha, trained how. */
#include "info/tensors/adapters.h"

#include "base/checked.h"

#include <string.h>

/* ── Suffixes ── */

typedef enum adapter_type {
    TYPE_LORA = 0, TYPE_LOHA, TYPE_LOKR, TYPE_GLORA, TYPE_IA3, TYPE_OFT, TYPE_BOFT, TYPE_FULL,
    TYPE_OTHER, /* another PEFT type: see its name */
    TYPES
} adapter_type;

/* FIRST: each module has one, so it is the one to count. */
typedef enum adapter_role {
    ROLE_PART = 0, ROLE_FIRST, ROLE_ALPHA, ROLE_DORA, ROLE_SHARED
} adapter_role;

#define ADAPTER_END(text) { text, sizeof(text) - 1 }

static const struct adapter_suffix {
    sft_span end;
    adapter_type type;
    adapter_role role;
    const char *other; /* up of a down; name of a PEFT type */
} adapter_suffixes[] = {
    { ADAPTER_END(".lora_down.weight"), TYPE_LORA, ROLE_FIRST, ".lora_up.weight" },
    { ADAPTER_END(".lora_up.weight"), TYPE_LORA, ROLE_PART, NULL },
    { ADAPTER_END(".lora_mid.weight"), TYPE_LORA, ROLE_PART, NULL },
    { ADAPTER_END(".lora_A.weight"), TYPE_LORA, ROLE_FIRST, ".lora_B.weight" },
    { ADAPTER_END(".lora_B.weight"), TYPE_LORA, ROLE_PART, NULL },
    { ADAPTER_END(".lora_A.default.weight"), TYPE_LORA, ROLE_FIRST, ".lora_B.default.weight" },
    { ADAPTER_END(".lora_B.default.weight"), TYPE_LORA, ROLE_PART, NULL },
    { ADAPTER_END(".lora_B.bias"), TYPE_LORA, ROLE_PART, NULL },
    { ADAPTER_END(".lora_A"), TYPE_LORA, ROLE_FIRST, ".lora_B" },
    { ADAPTER_END(".lora_B"), TYPE_LORA, ROLE_PART, NULL },
    { ADAPTER_END(".lora_E"), TYPE_LORA, ROLE_PART, "adalora" },
    { ADAPTER_END(".lora_embedding_A"), TYPE_LORA, ROLE_FIRST, ".lora_embedding_B" },
    { ADAPTER_END(".lora_embedding_B"), TYPE_LORA, ROLE_PART, NULL },
    { ADAPTER_END(".lora_a"), TYPE_LORA, ROLE_FIRST, ".lora_b" }, /* MLX: transposed */
    { ADAPTER_END(".lora_b"), TYPE_LORA, ROLE_PART, NULL },
    { ADAPTER_END("_lora.down.weight"), TYPE_LORA, ROLE_FIRST, "_lora.up.weight" },
    { ADAPTER_END("_lora.up.weight"), TYPE_LORA, ROLE_PART, NULL },
    { ADAPTER_END("_lora1.down.weight"), TYPE_LORA, ROLE_FIRST, "_lora1.up.weight" }, /* XLabs */
    { ADAPTER_END("_lora1.up.weight"), TYPE_LORA, ROLE_PART, NULL },
    { ADAPTER_END("_lora2.down.weight"), TYPE_LORA, ROLE_FIRST, "_lora2.up.weight" },
    { ADAPTER_END("_lora2.up.weight"), TYPE_LORA, ROLE_PART, NULL },
    { ADAPTER_END(".lora.down.weight"), TYPE_LORA, ROLE_FIRST, ".lora.up.weight" },
    { ADAPTER_END(".lora.up.weight"), TYPE_LORA, ROLE_PART, NULL },
    { ADAPTER_END(".lora_linear_layer.down.weight"), TYPE_LORA, ROLE_FIRST,
      ".lora_linear_layer.up.weight" },
    { ADAPTER_END(".lora_linear_layer.up.weight"), TYPE_LORA, ROLE_PART, NULL },
    { ADAPTER_END(":down"), TYPE_LORA, ROLE_FIRST, ":up" }, /* the first scripts */
    { ADAPTER_END(":up"), TYPE_LORA, ROLE_PART, NULL },
    { ADAPTER_END(".down"), TYPE_LORA, ROLE_FIRST, ".up" }, /* control LoRAs */
    { ADAPTER_END(".up"), TYPE_LORA, ROLE_PART, NULL },
    { ADAPTER_END(".hada_w1_b"), TYPE_LOHA, ROLE_FIRST, NULL },
    { ADAPTER_END(".hada_w1_a"), TYPE_LOHA, ROLE_PART, NULL },
    { ADAPTER_END(".hada_w2_a"), TYPE_LOHA, ROLE_PART, NULL },
    { ADAPTER_END(".hada_w2_b"), TYPE_LOHA, ROLE_PART, NULL },
    { ADAPTER_END(".hada_t1"), TYPE_LOHA, ROLE_PART, NULL },
    { ADAPTER_END(".hada_t2"), TYPE_LOHA, ROLE_PART, NULL },
    { ADAPTER_END(".lokr_w1"), TYPE_LOKR, ROLE_FIRST, NULL },
    { ADAPTER_END(".lokr_w1_a"), TYPE_LOKR, ROLE_FIRST, NULL },
    { ADAPTER_END(".lokr_w1_b"), TYPE_LOKR, ROLE_PART, NULL },
    { ADAPTER_END(".lokr_w2"), TYPE_LOKR, ROLE_PART, NULL },
    { ADAPTER_END(".lokr_w2_a"), TYPE_LOKR, ROLE_PART, NULL },
    { ADAPTER_END(".lokr_w2_b"), TYPE_LOKR, ROLE_PART, NULL },
    { ADAPTER_END(".lokr_t2"), TYPE_LOKR, ROLE_PART, NULL },
    { ADAPTER_END(".a1.weight"), TYPE_GLORA, ROLE_FIRST, ".b1.weight" },
    { ADAPTER_END(".a2.weight"), TYPE_GLORA, ROLE_PART, NULL },
    { ADAPTER_END(".b1.weight"), TYPE_GLORA, ROLE_PART, NULL },
    { ADAPTER_END(".b2.weight"), TYPE_GLORA, ROLE_PART, NULL },
    { ADAPTER_END(".oft_blocks"), TYPE_OFT, ROLE_FIRST, NULL },
    { ADAPTER_END(".oft_diag"), TYPE_OFT, ROLE_FIRST, NULL },
    { ADAPTER_END(".oft_R.weight"), TYPE_OFT, ROLE_FIRST, NULL },
    { ADAPTER_END(".oft_R"), TYPE_OFT, ROLE_FIRST, NULL },
    { ADAPTER_END(".oft_r"), TYPE_OFT, ROLE_FIRST, NULL },
    { ADAPTER_END(".oft_s"), TYPE_OFT, ROLE_PART, NULL },
    { ADAPTER_END(".rescale"), TYPE_OFT, ROLE_PART, NULL },
    { ADAPTER_END(".boft_R"), TYPE_BOFT, ROLE_FIRST, NULL },
    { ADAPTER_END(".boft_s"), TYPE_BOFT, ROLE_PART, NULL },
    { ADAPTER_END(".on_input"), TYPE_IA3, ROLE_FIRST, NULL },
    { ADAPTER_END(".ia3_l"), TYPE_IA3, ROLE_FIRST, NULL },
    { ADAPTER_END(".diff"), TYPE_FULL, ROLE_FIRST, NULL },
    { ADAPTER_END(".diff_b"), TYPE_FULL, ROLE_PART, NULL },
    { ADAPTER_END(".set_weight"), TYPE_FULL, ROLE_FIRST, NULL },
    { ADAPTER_END(".w_norm"), TYPE_FULL, ROLE_FIRST, NULL },
    { ADAPTER_END(".b_norm"), TYPE_FULL, ROLE_PART, NULL },
    { ADAPTER_END(".dora_scale"), TYPE_LORA, ROLE_DORA, NULL },
    { ADAPTER_END(".lora_magnitude_vector"), TYPE_LORA, ROLE_DORA, NULL },
    { ADAPTER_END(".lora_magnitude_vector.weight"), TYPE_LORA, ROLE_DORA, NULL },
    { ADAPTER_END(".lora_magnitude_vector.default.weight"), TYPE_LORA, ROLE_DORA, NULL },
    { ADAPTER_END(".alpha"), TYPE_LORA, ROLE_ALPHA, NULL },
    { ADAPTER_END(".vera_lambda_b"), TYPE_OTHER, ROLE_FIRST, "vera" },
    { ADAPTER_END(".vera_lambda_d"), TYPE_OTHER, ROLE_PART, "vera" },
    { ADAPTER_END(".vera_A"), TYPE_OTHER, ROLE_SHARED, "vera" },
    { ADAPTER_END(".vera_B"), TYPE_OTHER, ROLE_SHARED, "vera" },
    { ADAPTER_END(".fourierft_spectrum"), TYPE_OTHER, ROLE_FIRST, "fourierft" },
    { ADAPTER_END(".waveft_spectrum"), TYPE_OTHER, ROLE_FIRST, "waveft" },
    { ADAPTER_END(".vblora_logits_A"), TYPE_OTHER, ROLE_FIRST, "vblora" },
    { ADAPTER_END(".vblora_logits_B"), TYPE_OTHER, ROLE_PART, "vblora" },
    { ADAPTER_END(".vblora_vector_bank"), TYPE_OTHER, ROLE_SHARED, "vblora" },
    { ADAPTER_END(".unilora_theta_d"), TYPE_OTHER, ROLE_SHARED, "unilora" },
    { ADAPTER_END(".hra_u"), TYPE_OTHER, ROLE_FIRST, "hra" },
    { ADAPTER_END(".bone_block"), TYPE_OTHER, ROLE_FIRST, "bone" },
    { ADAPTER_END(".miss_block"), TYPE_OTHER, ROLE_FIRST, "miss" },
    { ADAPTER_END(".randlora_lambda"), TYPE_OTHER, ROLE_FIRST, "randlora" },
    { ADAPTER_END(".randlora_gamma"), TYPE_OTHER, ROLE_PART, "randlora" },
    { ADAPTER_END(".shira_weight"), TYPE_OTHER, ROLE_FIRST, "shira" },
    { ADAPTER_END(".c3a_kernel"), TYPE_OTHER, ROLE_FIRST, "c3a" },
    { ADAPTER_END(".road_theta"), TYPE_OTHER, ROLE_FIRST, "road" },
    { ADAPTER_END(".road_alpha"), TYPE_OTHER, ROLE_PART, "road" },
    { ADAPTER_END(".adaption_prompt"), TYPE_OTHER, ROLE_FIRST, "adaption_prompt" },
    { ADAPTER_END(".adaption_gate"), TYPE_OTHER, ROLE_PART, "adaption_prompt" },
    { ADAPTER_END("prompt_embeddings"), TYPE_OTHER, ROLE_SHARED, NULL }, /* of several PEFT types */
};

/* A learned token, by its beginning. */
static const struct adapter_suffix bundle_row = { ADAPTER_END("bundle_emb."), TYPES, ROLE_PART,
                                                  NULL };

/* Longest suffix of the name, or NULL. */
static const struct adapter_suffix *suffix_of(const sfti_suffixes *suffixes, sft_span name) {
    const struct adapter_suffix *best = NULL;
    for (size_t i = 0; (i = sfti_suffixes_find(suffixes, name, i)) > 0;) {
        const struct adapter_suffix *row = &adapter_suffixes[i - 1];
        if (!best || row->end.len > best->end.len) best = row;
    }
    bool bundled = sfti_begins(name, bundle_row.end.data);
    return bundled && (!best || best->end.len < bundle_row.end.len) ? &bundle_row : best;
}

/* ── Modules ── */

typedef struct adapter_scan {
    const sfti_view *view;
    const sfti_quant *quant;
    sfti_forms *forms;        /* once there is a module */
    sfti_suffixes suffixes;   /* of adapter_suffixes */
    const uint8_t *prefix_of; /* of each tensor, once there is a module */
    size_t at;                /* the tensor that is looked at */
    uint64_t of_type[TYPES];
    uint64_t modules, tensors, alphas, convs, shared;
    bool dora, first_scripts; /* the ":down" of the first LoRA scripts */
    const char *other;
    sfti_tally ranks, conv_ranks;
    sfti_sums parts[SFTI_ADAPTER_PARTS];
} adapter_scan;

/* The tensor of a module with another suffix. */
static const sft_tensor *sibling(const adapter_scan *scan, sft_span module, const char *suffix) {
    return sfti_view_near(scan->view, scan->at, module, suffix);
}

static uint64_t size_at(const sft_tensor *tensor, uint32_t axis) {
    return tensor && axis < tensor->rank ? tensor->shape[axis] : 0;
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

static void measure_lora(const adapter_scan *scan, sfti_module *m,
                         const struct adapter_suffix *row) {
    const sft_tensor *up = m->pair;
    bool transposed = strcmp(row->end.data, ".lora_a") == 0;
    m->rank = size_at(m->tensor, transposed ? 1 : 0);
    m->in = size_at(m->tensor, transposed ? 0 : 1);
    m->out = size_at(up, transposed ? 1 : 0);
    m->conv = has_kernel(m->tensor) || has_kernel(sibling(scan, m->name, ".lora_mid.weight"));
}

static void measure_loha(const adapter_scan *scan, sfti_module *m) {
    const sft_tensor *core = sibling(scan, m->name, ".hada_t1");
    const sft_tensor *a = sibling(scan, m->name, ".hada_w1_a");
    m->rank = size_at(m->tensor, 0);
    m->in = size_at(m->tensor, 1);
    m->out = size_at(a, core ? 1 : 0);
    m->conv = has_kernel(core) || (!core && named_conv(m->name));
}

static uint64_t product_of(uint64_t a, uint64_t b) {
    uint64_t product;
    return sfti_mul(a, b, &product) ? product : 0;
}

static void measure_lokr(const adapter_scan *scan, sfti_module *m) {
    const sft_tensor *w1 = sibling(scan, m->name, ".lokr_w1");
    const sft_tensor *w1_a = sibling(scan, m->name, ".lokr_w1_a");
    const sft_tensor *w1_b = sibling(scan, m->name, ".lokr_w1_b");
    const sft_tensor *w2 = sibling(scan, m->name, ".lokr_w2");
    const sft_tensor *w2_a = sibling(scan, m->name, ".lokr_w2_a");
    const sft_tensor *w2_b = sibling(scan, m->name, ".lokr_w2_b");
    const sft_tensor *core = sibling(scan, m->name, ".lokr_t2");
    m->rank = w2_b ? size_at(w2_b, 0) : w1_b ? size_at(w1_b, 0) : 0;
    m->in = product_of(w1 ? size_at(w1, 1) : size_at(w1_b, 1),
                       w2 ? size_at(w2, 1) : size_at(w2_b, 1));
    m->out = product_of(w1 ? size_at(w1, 0) : size_at(w1_a, 0),
                        w2 ? size_at(w2, 0) : size_at(w2_a, core ? 1 : 0));
    m->conv = has_kernel(w2) || has_kernel(core) || (!w2 && !core && named_conv(m->name));
}

static void measure(const adapter_scan *scan, sfti_module *m, const struct adapter_suffix *row) {
    uint64_t first = size_at(m->tensor, 0), second = size_at(m->tensor, 1);
    switch (row->type) {
    case TYPE_LORA: measure_lora(scan, m, row); break;
    case TYPE_LOHA: measure_loha(scan, m); break;
    case TYPE_LOKR: measure_lokr(scan, m); break;
    case TYPE_GLORA:
        m->rank = first < second ? first : second;
        m->in = first < second ? second : first;
        break;
    case TYPE_FULL:
        m->out = first;
        m->in = second;
        break;
    case TYPE_OFT:
        if (m->tensor->rank == 3 && sfti_ends(m->tensor->name, ".oft_blocks"))
            m->out = product_of(first, second);
        break;
    case TYPE_IA3: case TYPE_BOFT: case TYPE_OTHER: case TYPES: break;
    }
}

/* Two of a pair, or it is none. */
static bool is_module(const adapter_scan *scan, sfti_module *m,
                      const struct adapter_suffix *row) {
    if (row->type == TYPE_GLORA)
        return m->tensor->rank == 2 && sibling(scan, m->name, ".a2.weight")
            && sibling(scan, m->name, ".b1.weight") && sibling(scan, m->name, ".b2.weight");
    if (row->type == TYPE_LORA) {
        m->pair = m->tensor->rank >= 2 ? sibling(scan, m->name, row->other) : NULL;
        return m->pair != NULL;
    }
    if (row->type == TYPE_LOKR)
        return sibling(scan, m->name, ".lokr_w2") || sibling(scan, m->name, ".lokr_w2_a");
    if (row->type == TYPE_LOHA) return sibling(scan, m->name, ".hada_w1_a") != NULL;
    return true;
}

static bool begin_forms(adapter_scan *scan) {
    sft_info *info = scan->view->info;
    if (!scan->forms && !info->code) {
        scan->prefix_of = sfti_forms_prefixes(scan->view);
        scan->forms = sfti_forms_new(info);
    }
    return !info->code;
}

static void scan_module(adapter_scan *scan, const sft_tensor *tensor,
                        const struct adapter_suffix *row) {
    sfti_module m = { .name = { tensor->name.data, tensor->name.len - row->end.len },
                      .tensor = tensor };
    if (!is_module(scan, &m, row) || !begin_forms(scan)) return;
    m.prefix = scan->prefix_of[scan->at];
    bool boft = row->type == TYPE_OFT && tensor->rank == 4;
    measure(scan, &m, row);
    scan->of_type[boft ? TYPE_BOFT : row->type]++;
    scan->modules++;
    if (row->end.data[0] == ':') scan->first_scripts = true;
    if (row->type == TYPE_OTHER && row->other) scan->other = row->other;
    if (m.rank > 0) sfti_tally_put(&scan->ranks, (double)m.rank);
    if (m.conv && m.rank > 0) sfti_tally_put(&scan->conv_ranks, (double)m.rank);
    if (m.conv) scan->convs++;
    sfti_forms_put(scan->forms, &m);
}

/* A learned token, if its name is no layer's. */
static bool is_bare_token(const sft_tensor *tensor) {
    return tensor->rank == 1 && tensor->name.len > 2 && *tensor->name.data == '<';
}

static void scan_tensor(adapter_scan *scan, const sft_tensor *tensor) {
    const struct adapter_suffix *row = suffix_of(&scan->suffixes, tensor->name);
    if (row || is_bare_token(tensor)) scan->tensors++;
    if (!row) return;
    if (row->role == ROLE_ALPHA) scan->alphas++;
    if (row->role == ROLE_DORA) scan->dora = true;
    if (row->role == ROLE_PART && row->other) scan->other = row->other;
    if (row->role == ROLE_FIRST) scan_module(scan, tensor, row);
    if (row->role == ROLE_SHARED && begin_forms(scan)) {
        scan->shared++;
        sfti_forms_begin(scan->forms, tensor);
        if (row->other) scan->other = row->other;
    }
}

static void sum_parts(adapter_scan *scan) {
    for (size_t i = 0; i < scan->view->count; i++) {
        const sft_tensor *tensor = sfti_view_at(scan->view, i);
        if (is_bare_token(tensor) && !suffix_of(&scan->suffixes, tensor->name)) continue;
        sfti_sum(&scan->parts[sfti_forms_part(scan->prefix_of[i])], scan->quant, tensor);
    }
}

/* ── Telling ── */

static const char *type_of(const adapter_scan *scan) {
    static const char *const names[TYPES] = { "lora", "loha", "lokr", "glora", "ia3", "oft",
                                              "boft", "full", NULL };
    int only = -1;
    for (int i = 0; i < TYPES; i++) {
        if (scan->of_type[i] == 0 || i == TYPE_FULL) continue;
        if (only >= 0) return "mixed";
        only = i;
    }
    if (only == TYPE_LORA && scan->other) return scan->other;
    if (only == TYPE_LORA && scan->conv_ranks.any) return "locon";
    if (only >= 0 && only != TYPE_OTHER) return names[only];
    return only < 0 && scan->of_type[TYPE_FULL] > 0 ? "full" : scan->other;
}

static bool type_has_alpha(const adapter_scan *scan) {
    return scan->of_type[TYPE_LORA] + scan->of_type[TYPE_LOHA] + scan->of_type[TYPE_LOKR]
             + scan->of_type[TYPE_GLORA] > 0;
}

static void tell_numbers(const adapter_scan *scan) {
    sft_info *info = scan->view->info;
    sfti_adapter *adapter = &info->adapter;
    bool peft = adapter->format && strcmp(adapter->format, "peft") == 0;
    bool mlx = adapter->format && strcmp(adapter->format, "mlx") == 0;
    adapter->rank = sfti_tally_range(&scan->ranks);
    if (scan->conv_ranks.any)
      adapter->conv_rank = (uint64_t)sfti_tally_range(&scan->conv_ranks).mode;
    adapter->modules = scan->modules;
    if (scan->alphas > 0 && type_has_alpha(scan) && !info->options.header_only)
        sfti_adapter_alphas(info, scan->alphas);
    if (scan->alphas == 0 && type_has_alpha(scan) && !peft && !mlx && adapter->rank.known) {
        adapter->alpha = adapter->rank;
        adapter->alpha_assumed = true;
    }
    sfti_adapter_scale(info);
    if (adapter->alpha_assumed) adapter->scale = 1;
}

static void tell_components(const adapter_scan *scan, const char *architecture, bool language) {
    static const char *const parts[SFTI_ADAPTER_PARTS] = { NULL, "text_encoder", "text_encoder",
                                                   "text_encoder_2", "text_encoder_3" };
    sft_info *info = scan->view->info;
    const char *main_part = architecture ? sfti_denoiser_part(architecture) : NULL;
    if (!architecture)
        main_part = sfti_forms_hold(scan->forms, "^down_blocks_ | ^up_blocks_ | ^mid_block_ | "
                                                 "^input_blocks_ | ^output_blocks_ | ^#$")
                        ? "unet" : "transformer";
    for (int i = 0; i < SFTI_ADAPTER_PARTS && !language; i++)
        sfti_add_component(info, &info->adapter.components, parts[i] ? parts[i] : main_part,
                           i == SFTI_PART_MAIN ? architecture : NULL, &scan->parts[i]);
}

/* bundle_emb.<token>.<encoder>: the token is between the first and the last dots, or what
 * A1111 adds. */
static sft_span bundled_token(sft_span name) {
    static const char *const ends[] = { ".clip_l", ".clip_g", ".t5", ".t5_out", ".clip_l_out",
                                        ".clip_g_out", ".qwen", ".emb_params" };
    sft_span token = sfti_from(name, strlen("bundle_emb."));
    for (size_t i = 0; i + 17 <= token.len; i++)
        if (memcmp(token.data + i, ".string_to_param.", 17) == 0)
        return (sft_span){ token.data, i };
    for (size_t i = 0; i < SFTI_COUNT(ends); i++)
        if (sfti_ends(token, ends[i])) return (sft_span){ token.data, token.len - strlen(ends[i]) };
    while (token.len > 0 && token.data[token.len - 1] != '.') token.len--;
    if (token.len > 0) token.len--;
    return token;
}

static void tell_tokens(const adapter_scan *scan) {
    sft_info *info = scan->view->info;
    size_t from, to;
    sfti_view whole = sfti_view_after(scan->view, "", "");
    if (sfti_view_range(&whole, "bundle_emb.", &from, &to))
        for (size_t i = from; i < to && i < from + 256; i++)
            sfti_add_token(info, bundled_token(sfti_view_at(&whole, i)->name),
                           sft_span_cstr("tensors"));
    if (sfti_view_range(&whole, "<", &from, &to))
        for (size_t i = from; i < to && i < from + 256; i++) {
            const sft_tensor *tensor = sfti_view_at(&whole, i);
            if (tensor->rank <= 2 && sfti_ends(tensor->name, ">"))
                sfti_add_token(info, tensor->name, sft_span_cstr("tensors"));
        }
}

/* The first scripts name learned tokens in the metadata too. */
static void tell_metadata_tokens(const adapter_scan *scan) {
    sft_info *info = scan->view->info;
    const sft_file *file = sft_set_shard_at(info->set, 0);
    size_t count = file && scan->first_scripts ? sft_file_metadata_count(file) : 0;
    for (size_t i = 0; i < count; i++) {
        sft_pair pair = sft_file_metadata_at(file, i);
        if (!sfti_begins(pair.key, "<") || !sfti_ends(pair.key, ">") || pair.key.len < 3) continue;
        sfti_add_token(info, pair.key,
                       sfti_info_text(info, "header:%.*s", (int)(pair.key.len & 255),
                                      pair.key.data));
    }
}

static bool is_language(const char *architecture) {
    for (const sfti_signature *row = sfti_language_rows; architecture && row->kind; row++)
        if (row->architecture && strcmp(row->architecture, architecture) == 0) return true;
    return architecture && strcmp(architecture, "t5-seq2seq") == 0;
}

static void tell_language(const sfti_forms *forms, sft_info *info) {
    const sfti_form *query = sfti_forms_find(forms, "layers_#_self_attn_q_proj[in>=1]");
    info->has_llm = query != NULL;
    if (query) info->llm.hidden = query->in;
}

/* FLUX.1's own control LoRAs bring norms of their own and a wider input. */
static bool is_flux_control(const adapter_scan *scan) {
    return sfti_forms_hold(scan->forms, "^img_in$")
        && sfti_view_find(scan->view, "double_blocks.0.img_attn.norm.key_norm.scale");
}

static void tell_adapter(adapter_scan *scan) {
    sft_info *info = scan->view->info;
    info->adapter.present = true;
    info->adapter.dora = scan->dora;
    info->adapter.type = type_of(scan);
    info->adapter.format = sfti_forms_format(scan->forms);
    if (!sfti_info_best(info, SFT_FACT_KIND))
        sfti_add_tensor_fact(info, SFT_FACT_KIND,
                             is_flux_control(scan) ? "control_lora" : "adapter", 100);
    const char *architecture = sfti_forms_target(scan->forms);
    (void)sfti_forms_family(scan->forms);
    bool language = is_language(architecture)
                 || (scan->shared > 0 && scan->modules == 0);
    tell_numbers(scan);
    sum_parts(scan);
    tell_components(scan, architecture, language);
    if (language) tell_language(scan->forms, info);
    sfti_forms_lists(scan->forms);
    tell_tokens(scan);
    tell_metadata_tokens(scan);
}

/* Scales, packed weights and a low rank: nunchaku, a quantised model. */
static bool is_quantised_model(const sfti_quant *quant) {
    return quant->id && strncmp(quant->id, "svdquant", 8) == 0;
}

bool sfti_info_adapter(const sfti_view *view, const sfti_quant *quant) {
    sft_info *info = view->info;
    bool control = sfti_info_best(info, SFT_FACT_KIND) != NULL;
    adapter_scan *scan = sfti_info_take_zeroed(info, sizeof *scan);
    if (!scan) return false;
    scan->view = view;
    scan->quant = quant;
    sfti_suffixes_open(&scan->suffixes, &adapter_suffixes[0].end, sizeof adapter_suffixes[0],
                   SFTI_COUNT(adapter_suffixes));
    for (; scan->at < view->count && !is_quantised_model(quant); scan->at++)
        scan_tensor(scan, sfti_view_at(view, scan->at));
    bool most = scan->tensors >= view->count - scan->tensors;
    bool found = scan->modules + scan->shared > 0 && (most || control) && !info->code;
    if (found) tell_adapter(scan);
    return found;
}
