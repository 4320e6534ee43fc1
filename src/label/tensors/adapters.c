/* Adapters: what is told of one. */
#include "label/tensors/fitting.h"

#include <string.h>

static const char *type_of(const sfti_adapter_scan *scan) {
    static const char *const names[SFTI_ADAPTER_TYPES] = {
        "lora", "loha", "lokr", "glora", "ia3", "oft", "boft", "full", NULL
    };
    int only = -1;
    for (int i = 0; i < SFTI_ADAPTER_TYPES; i++) {
        if (scan->of_type[i] == 0 || i == SFTI_TYPE_FULL) continue;
        if (only >= 0) return "mixed";
        only = i;
    }
    if (only == SFTI_TYPE_LORA && scan->lora) return scan->lora;
    if (only == SFTI_TYPE_LORA && scan->conv_ranks.any) return "locon";
    if (only >= 0 && only != SFTI_TYPE_OTHER) return names[only];
    return only < 0 && scan->of_type[SFTI_TYPE_FULL] > 0 ? "full" : scan->other;
}

/* Ranks of modules without an alpha, which is their rank then. */
static void tally_bare(const sfti_adapter_scan *scan, sfti_tally *ranks) {
    const sft_set *set = scan->view->info->set;
    const sfti_view bare = { .info = scan->view->info };
    sfti_module m;
    for (size_t i = 0; i < scan->view->count; i++)
        if (sfti_adapter_layer(&bare, &scan->suffixes, scan->view->by_name[i], &m) && m.rank > 0
            && !sfti_set_sibling(set, m.name, ".alpha"))
            sfti_tally_put(ranks, (double)m.rank);
}

static void tell_numbers(const sfti_adapter_scan *scan) {
    sft_info *info = scan->view->info;
    sfti_adapter *adapter = &info->adapter;
    bool peft = adapter->format && strcmp(adapter->format, "peft") == 0;
    bool mlx = adapter->format && strcmp(adapter->format, "mlx") == 0;
    uint64_t has_alpha = scan->of_type[SFTI_TYPE_LORA] + scan->of_type[SFTI_TYPE_LOHA]
                       + scan->of_type[SFTI_TYPE_LOKR] + scan->of_type[SFTI_TYPE_GLORA];
    adapter->rank = sfti_tally_range(&scan->ranks);
    if (scan->conv_ranks.any && !(scan->conv_ranks.min < scan->conv_ranks.max))
        adapter->conv_rank = (uint64_t)scan->conv_ranks.min;
    /* a tensor that modules share does not tell their number; a prompt changes none */
    bool unknown = scan->modules == 0 && scan->shared > 0 && adapter->type;
    adapter->modules = unknown ? UINT64_MAX : scan->modules;
    sfti_tally *bare = sfti_info_take_zeroed(info, sizeof *bare);
    if (bare && scan->alphas < has_alpha && !peft && !mlx) tally_bare(scan, bare);
    if (bare && scan->alphas > 0 && has_alpha && !info->options.header_only
        && !info->options.no_data)
        sfti_adapter_alphas(info, scan->alphas, bare);
    if (scan->alphas == 0 && has_alpha && !peft && !mlx && adapter->rank.known) {
        adapter->alpha = adapter->rank;
        adapter->alpha_assumed = true;
    }
    sfti_adapter_scale(info);
    if (adapter->alpha_assumed) adapter->scale = 1;
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

static void tell_tokens(const sfti_adapter_scan *scan) {
    sft_info *info = scan->view->info;
    size_t from, to;
    sfti_view whole = sfti_view_after(scan->view, "", (sft_span){ "", 0 });
    if (sfti_view_range(&whole, "bundle_emb.", &from, &to))
        for (size_t i = from; i < to && i < from + 256; i++)
            sfti_add_token(info, bundled_token(whole.by_name[i]->name),
                           sft_span_cstr("tensors"));
    if (sfti_view_range(&whole, "<", &from, &to))
        for (size_t i = from; i < to && i < from + 256; i++) {
            const sft_tensor *tensor = whole.by_name[i];
            if (tensor->rank <= 2 && sfti_ends(tensor->name, ">"))
                sfti_add_token(info, tensor->name, sft_span_cstr("tensors"));
        }
    /* The first scripts name learned tokens in the metadata too. */
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

static bool is_language(const sfti_records *records, const char *architecture) {
    const sfti_record *of = sfti_model_record(records, architecture);
    const sfti_record_row *row = NULL;
    while (of && (row = sfti_record_row_of(records, of, SFTI_TENSORS, row)))
        if (strcmp(sfti_row_kind(records, row), "language_model") == 0) return true;
    return false;
}

bool sfti_info_adapter(const sfti_view *view, const sfti_quant *quant) {
    static const char *const parts[SFTI_ADAPTER_PARTS] = { NULL, "text_encoder", "text_encoder",
                                                           "text_encoder_2", "text_encoder_3" };
    static const char unets[] = "^down_blocks_ | ^up_blocks_ | ^mid_block_ | ^input_blocks_ | "
                                "^output_blocks_ | ^#$";
    sft_info *info = view->info;
    sfti_adapter_scan *scan = sfti_adapter_scan_of(view, quant,
                                                   sfti_info_best(info, SFT_FACT_KIND) != NULL);
    if (!scan) return false;
    info->adapter.present = true;
    info->adapter.dora = scan->dora;
    info->adapter.type = type_of(scan);
    info->adapter.format = sfti_forms_format(scan->forms);
    /* FLUX.1's own control LoRAs bring norms of their own and a wider input. */
    bool control = sfti_forms_hold(scan->forms, sft_span_cstr("^img_in$"))
                && sfti_view_find(scan->view, "double_blocks.0.img_attn.norm.key_norm.scale");
    if (!sfti_info_best(info, SFT_FACT_KIND))
        sfti_add_tensor_fact(info, SFT_FACT_KIND, control ? "control_lora" : "adapter", 100);
    sfti_fitting_find(scan->forms);
    int trust;
    const char *architecture = sfti_forms_target(scan->forms, &trust);
    (void)sfti_forms_family(scan->forms, true);
    bool language = is_language(info->records, architecture)
                 || (scan->shared > 0 && scan->modules == 0);
    tell_numbers(scan);
    sfti_adapter_sum(scan);
    const char *denoiser = sfti_denoiser_part(info->records,
                                              sfti_model_record(info->records, architecture));
    if (!architecture)
        denoiser = sfti_forms_hold(scan->forms, sft_span_cstr(unets)) ? "unet" : "transformer";
    for (int i = 0; i < SFTI_ADAPTER_PARTS && !language; i++)
        sfti_add_component(info, &info->adapter.components, parts[i] ? parts[i] : denoiser,
                           i == SFTI_PART_MAIN ? architecture : NULL, trust, &scan->parts[i]);
    const sfti_form *query = language
        ? sfti_forms_find(scan->forms, sft_span_cstr("layers_#_self_attn_q_proj[in>=1]")) : NULL;
    if (language) info->has_llm = query != NULL;
    if (query) info->llm.hidden = query->in;
    sfti_forms_lists(scan->forms);
    tell_tokens(scan);
    return true;
}
