/* Files that name no model but speak for the only one in their folder. */
#include "info/sidecars/sidecars.h"

#include <string.h>

#define HUB_TRUST 90

/* ── config.json of transformers and diffusers ── */

typedef struct hub_config {
    const char *architecture, *kind;
    sft_span class_source;
    sft_span model_type, type_source;
    uint64_t layers, hidden, heads, kv_heads, vocab;
    uint64_t cross_attention, latent_channels, in_channels;
    int guidance;       /* guidance_embeds: 0, 1, -1 not told */
    int tied;           /* tie_word_embeddings likewise */
    sft_span method, quant_type, quant_source;
    uint64_t bits;
    int four_bit, eight_bit;
    bool blocks, mlx;
    bool head;          /* a class that ends in words */
} hub_config;

static void hub_take_class(sfti_cursor *at, const sfti_row *row) {
    hub_config *config = at->ctx;
    const char *kind;
    (void)row;
    if (!sfti_at_text(at)) return;
    config->head = config->head || sfti_contains(at->text, "causallm")
                || sfti_contains(at->text, "lmhead")
                || sfti_contains(at->text, "conditionalgeneration");
    if (config->class_source.len > 0) return;
    const char *architecture = sfti_map_class_name(at->text, &kind);
    if (!architecture && !kind) return;
    config->architecture = architecture;
    config->kind = kind;
    config->class_source = sfti_cursor_source(at);
}

static void hub_take_type(sfti_cursor *at, const sfti_row *row) {
    hub_config *config = at->ctx;
    sfti_take_slot(at, row);
    config->type_source = sfti_cursor_source(at);
}

static void hub_take_quantized(sfti_cursor *at, const sfti_row *row) {
    hub_config *config = at->ctx;
    if (at->json.type != SFTI_JSON_OBJECT) return;
    config->quant_source = sfti_cursor_source(at);
    config->mlx = row->word != NULL;
}

static void hub_take_blocks(sfti_cursor *at, const sfti_row *row) {
    hub_config *config = at->ctx;
    (void)row;
    config->blocks = at->json.type == SFTI_JSON_ARRAY;
}

#define HUB_AT(member) ((int)offsetof(hub_config, member))

static const sfti_row hub_config_rows[] = {
    { "/_class_name", hub_take_class, 0, 0, NULL },
    { "/model_class", hub_take_class, 0, 0, NULL },
    { "/architectures/*", hub_take_class, 0, 0, NULL },
    { "/model_type", hub_take_type, HUB_AT(model_type), 0, NULL },
    { "/num_hidden_layers", sfti_take_slot_uint, HUB_AT(layers), 0, NULL },
    { "/hidden_size", sfti_take_slot_uint, HUB_AT(hidden), 0, NULL },
    { "/num_attention_heads", sfti_take_slot_uint, HUB_AT(heads), 0, NULL },
    { "/num_key_value_heads", sfti_take_slot_uint, HUB_AT(kv_heads), 0, NULL },
    { "/vocab_size", sfti_take_slot_uint, HUB_AT(vocab), 0, NULL },
    { "/cross_attention_dim", sfti_take_slot_uint, HUB_AT(cross_attention), 0, NULL },
    { "/latent_channels", sfti_take_slot_uint, HUB_AT(latent_channels), 0, NULL },
    { "/in_channels", sfti_take_slot_uint, HUB_AT(in_channels), 0, NULL },
    { "/guidance_embeds", sfti_take_slot_bool, HUB_AT(guidance), 0, NULL },
    { "/tie_word_embeddings", sfti_take_slot_bool, HUB_AT(tied), 0, NULL },
    { "/quantization_config", hub_take_quantized, 0, 0, NULL },
    { "/quantization_config/quant_method", sfti_take_slot, HUB_AT(method), 0, NULL },
    { "/quantization_config/bits", sfti_take_slot_uint, HUB_AT(bits), 0, NULL },
    { "/quantization_config/load_in_4bit", sfti_take_slot_bool, HUB_AT(four_bit), 0, NULL },
    { "/quantization_config/load_in_8bit", sfti_take_slot_bool, HUB_AT(eight_bit), 0, NULL },
    { "/quantization_config/bnb_4bit_quant_type", sfti_take_slot, HUB_AT(quant_type), 0, NULL },
    { "/quantization_config/weight_block_size", hub_take_blocks, 0, 0, NULL },
    { "/quantization", hub_take_quantized, 0, 0, "mlx" },
    { "/quantization/bits", sfti_take_slot_uint, HUB_AT(bits), 0, NULL },
};

/* ── What a configuration says ── */

/* Quantisations whose name is the method's own. */
static const struct hub_method { const char *method, *ours; bool bits; } hub_methods[] = {
    { "gptq", "gptq", true }, { "awq", "awq", true }, { "fp8", "fp8", false },
    { "mxfp4", "mxfp4", false }, { "compressed-tensors", "compressed-tensors", false },
    { "compressed_tensors", "compressed-tensors", false },
};

static const char *bitsandbytes(const hub_config *config) {
    if (config->eight_bit) return "bnb-int8";
    if (!config->four_bit) return NULL;
    return sfti_same_letters(config->quant_type, "nf4") ? "bnb-nf4" : "bnb-fp4";
}

static void hub_quantization(sft_info *info, const hub_config *config) {
    sft_span source = config->quant_source;
    bool small = config->bits > 0 && config->bits <= 16;
    if (sfti_same_letters(config->method, "bitsandbytes") || config->method.len == 0)
        sfti_info_add_cstr(info, SFT_FACT_QUANTIZATION, bitsandbytes(config), source, HUB_TRUST);
    if (config->mlx && small)
        sfti_info_add_text(info, SFT_FACT_QUANTIZATION,
                           sfti_info_text(info, "mlx-%ubit", (unsigned)config->bits), source,
                           HUB_TRUST);
    for (size_t i = 0; i < SFTI_COUNT(hub_methods); i++) {
        const struct hub_method *row = &hub_methods[i];
        if (!sfti_same_letters(config->method, row->method) || (row->bits && !small)) continue;
        sft_span name = sft_span_cstr(row->ours);
        if (row->bits) name = sfti_info_text(info, "%s-%ubit", row->ours, (unsigned)config->bits);
        else if (config->blocks && strcmp(row->ours, "fp8") == 0) name = sft_span_cstr("fp8-block");
        sfti_info_add_text(info, SFT_FACT_QUANTIZATION, name, source, HUB_TRUST);
    }
}

/* Classes that several architectures share, told apart by a number. */
static const struct hub_number {
    const char *kind;
    size_t at;
    uint64_t value;
    const char *architecture;
} hub_numbers[] = {
    { "diffusion_model", offsetof(hub_config, cross_attention), 768, "sd-1" },
    { "diffusion_model", offsetof(hub_config, cross_attention), 1024, "sd-2" },
    { "diffusion_model", offsetof(hub_config, cross_attention), 1280, "sdxl-refiner" },
    { "diffusion_model", offsetof(hub_config, cross_attention), 2048, "sdxl" },
    { "vae", offsetof(hub_config, latent_channels), 4, "vae-sd" },
    { "vae", offsetof(hub_config, latent_channels), 16, "vae-flux" },
};

static void hub_refine(hub_config *config) {
    const char *guided[] = { "flux.1-schnell", "flux.1-dev" };
    bool flux = config->architecture && strcmp(config->architecture, "flux.1") == 0;
    if (flux && config->guidance >= 0 && strcmp(config->kind, "diffusion_model") == 0)
        config->architecture = guided[config->guidance];
    for (size_t i = 0; i < SFTI_COUNT(hub_numbers) && !config->architecture && config->kind; i++) {
        uint64_t value;
        memcpy(&value, (const char *)config + hub_numbers[i].at, sizeof value);
        if (strcmp(config->kind, hub_numbers[i].kind) == 0 && value == hub_numbers[i].value)
            config->architecture = hub_numbers[i].architecture;
    }
}

static void hub_by_type(hub_config *config) {
    const char *architecture, *kind;
    if (!sfti_map_model_type(config->model_type, &architecture, &kind)) return;
    if (!config->architecture) config->architecture = architecture;
    /* Without a head's class, only a tied head makes a decoder a language model. */
    if (config->class_source.len == 0 && config->tied == 1) config->kind = kind;
    if (config->class_source.len == 0) config->class_source = config->type_source;
}

/* A decoder without a head, of which nothing says that it has one, encodes. */
static void hub_headless(const sft_info *info, hub_config *config) {
    static const char *const decoders[] = {
        "llama", "mistral", "mixtral", "qwen2", "qwen2-moe", "qwen3", "qwen3-moe", "gemma",
        "gemma-2", "gemma-3", "phi", "phi-3", "deepseek-v3",
    };
    const sfti_fact *kind = sfti_info_best(info, SFT_FACT_KIND);
    if (config->head || config->tied == 1 || !config->architecture || !kind) return;
    if (kind->trust <= 70 && sfti_is(kind->value.text, "language_model")
        && SFTI_ONE_OF(sft_span_cstr(config->architecture), decoders, sfti_is))
        config->kind = "text_encoder";
}

static void hub_put(uint64_t *slot, uint64_t value, bool replace) {
    if (value > 0 && (*slot == 0 || replace)) *slot = value;
}

static void hub_sizes(sft_info *info, const hub_config *config) {
    const sfti_fact *kind = sfti_info_best(info, SFT_FACT_KIND);
    bool llm = kind && sfti_is(kind->value.text, "language_model");
    if (!info->has_llm && !(llm && config->layers > 0 && config->hidden > 0)) return;
    info->has_llm = true;
    hub_put(&info->llm.layers, config->layers, false);
    hub_put(&info->llm.hidden, config->hidden, false);
    hub_put(&info->llm.vocab, config->vocab, false);
    /* From tensors, heads are a guess. */
    hub_put(&info->llm.heads, config->heads, true);
    hub_put(&info->llm.kv_heads, config->kv_heads > 0 ? config->kv_heads : config->heads, true);
}

static bool hub_read(sft_info *info, sfti_sidecar *sidecar, sft_span text, hub_config *config) {
    memset(config, 0, sizeof *config);
    config->guidance = config->tied = -1;
    return sfti_sidecar_walk(info, sidecar, text, SFTI_ROWS(hub_config_rows), config);
}

/* An adapter's folder may hold its base's configuration: that is no word on its kind. */
static void read_config(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    hub_config config;
    if (!hub_read(info, sidecar, text, &config)) return;
    hub_by_type(&config);
    hub_refine(&config);
    hub_headless(info, &config);
    sfti_info_add_cstr(info, SFT_FACT_ARCHITECTURE, config.architecture, config.class_source,
                       HUB_TRUST);
    if (info->adapter.present) return;
    sfti_info_add_cstr(info, SFT_FACT_KIND, config.kind, config.class_source, HUB_TRUST);
    if (config.kind && strcmp(config.kind, "diffusion_model") == 0 && config.in_channels == 9)
        sfti_info_add_cstr(info, SFT_FACT_VARIANT, "inpaint", config.class_source, HUB_TRUST);
    hub_quantization(info, &config);
    hub_sizes(info, &config);
}

/* A pipeline's file in its root is one of its models: no kind. */
static void read_model_index(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    hub_config config;
    if (!hub_read(info, sidecar, text, &config)) return;
    sfti_info_add_cstr(info, SFT_FACT_ARCHITECTURE, config.architecture, config.class_source,
                       HUB_TRUST);
}

/* Nunchaku's old folder: {"model_class": "Flux", …}. */
static void read_comfy_config(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    static const char *const classes[][2] = {
        { "Flux", "flux.1" }, { "FluxInpaint", "flux.1" }, { "FluxSchnell", "flux.1-schnell" },
    };
    static const sfti_row rows[] = { { "/model_class", sfti_take_slot, 0, 0, NULL } };
    sft_span name = { "", 0 };
    if (!sfti_sidecar_walk(info, sidecar, text, SFTI_ROWS(rows), &name)) return;
    sft_span source = sfti_info_text(info, "%.*s:/model_class", (int)sidecar->source.len,
                                     sidecar->source.data);
    const char *architecture = SFTI_MAPPED(name, classes, sfti_same_letters);
    if (!architecture) return;
    sfti_info_add_cstr(info, SFT_FACT_ARCHITECTURE, architecture, source, HUB_TRUST);
    sfti_info_add_cstr(info, SFT_FACT_KIND, "diffusion_model", source, HUB_TRUST);
}

/* ── scheduler_config.json ── */

static void hub_take_scheduler(sfti_cursor *at, const sfti_row *row) {
    bool *told = at->ctx;
    const char *type = NULL;
    if (!sfti_at_text(at)) return;
    if (row->word) type = sfti_map_prediction(at->text);
    else if (!*told && sfti_starts_with(at->text, "FlowMatch")) type = "flow";
    else if (!*told && sfti_starts_with(at->text, "EDM")) type = "edm";
    if (!type) return;
    *told = true;
    sfti_info_add_cstr(at->info, SFT_FACT_PREDICTION_TYPE, type, sfti_cursor_source(at), HUB_TRUST);
}

static void read_scheduler(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    static const sfti_row first[] = { { "/prediction_type", hub_take_scheduler, 0, 0, "" } };
    static const sfti_row second[] = { { "/_class_name", hub_take_scheduler, 0, 0, NULL } };
    bool told = false;
    if (sfti_sidecar_walk(info, sidecar, text, first, 1, &told))
        (void)sfti_sidecar_walk(info, sidecar, text, second, 1, &told);
}

/* ── adapter_config.json ── */

static void hub_take_peft(sfti_cursor *at, const sfti_row *row) {
    sft_info *info = at->info;
    (void)row;
    if (!sfti_at_text(at)) return;
    sfti_info_add_cstr(info, SFT_FACT_KIND, "adapter", sfti_cursor_source(at), HUB_TRUST);
    if (!info->adapter.present || info->adapter.type) return;
    int len = at->text.len < 32 ? (int)at->text.len : 32;
    sft_span copy = sfti_info_text(info, "%.*s", len, at->text.data);
    char *lower = (char *)copy.data;
    for (size_t i = 0; i < copy.len; i++)
        if (lower[i] >= 'A' && lower[i] <= 'Z') lower[i] = (char)(lower[i] + 32);
    if (copy.len > 0) info->adapter.type = lower;
}

static void read_adapter_config(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    static const sfti_row rows[] = {
        { "/peft_type", hub_take_peft, 0, 0, NULL },
        { "/base_model_name_or_path", sfti_take_base_file, 0, HUB_TRUST, NULL },
        { "/auto_mapping/base_model_class", sfti_take_class, 0, HUB_TRUST, NULL },
        { "/r", sfti_take_declared, 0, HUB_TRUST, NULL },
        { "/lora_alpha", sfti_take_declared, 1, HUB_TRUST, NULL },
        { "/alpha", sfti_take_declared, 1, HUB_TRUST, NULL },
        { "/use_dora", sfti_take_switch, 0, HUB_TRUST, NULL },
        { "/use_rslora", sfti_take_switch, 1, HUB_TRUST, NULL },
    };
    (void)sfti_sidecar_walk(info, sidecar, text, SFTI_ROWS(rows), NULL);
}

/* ── The table ── */

const sfti_sidecar_row sfti_hub_rows[] = {
    { "README", ".md", "readme", sfti_read_readme },
    { "readme", ".md", "readme", sfti_read_readme },
    { "config", ".json", "config.json", read_config },
    { "adapter_config", ".json", "adapter_config.json", read_adapter_config },
    { "model_index", ".json", "model_index.json", read_model_index },
    { "scheduler_config", ".json", "scheduler_config.json", read_scheduler },
    { "scheduler/scheduler_config", ".json", "scheduler_config.json", read_scheduler },
    { "comfy_config", ".json", "comfy_config.json", read_comfy_config },
};
const size_t sfti_hub_row_count = SFTI_COUNT(sfti_hub_rows);
