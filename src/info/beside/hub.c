/* Files that name no model but speak for the only one in their folder. */
#include "info/beside/beside.h"

#include <string.h>

#define HUB_COUNT(rows) (sizeof(rows) / sizeof *(rows))
#define HUB_TRUST 90

static void hub_add(sft_info *info, sft_fact fact, const char *text, sft_span source) {
    if (text) sfti_info_add_text(info, fact, sft_span_cstr(text), source, HUB_TRUST);
}

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
    bool four_bit, eight_bit, blocks, mlx;
    bool head;          /* a class that ends in words */
} hub_config;

/* model_type, where no class tells. */
static const struct hub_type { const char *type, *architecture, *kind; } hub_types[] = {
    { "llama", "llama", "language_model" }, { "mistral", "mistral", "language_model" },
    { "mixtral", "mixtral", "language_model" }, { "qwen2", "qwen2", "language_model" },
    { "qwen2_moe", "qwen2-moe", "language_model" }, { "qwen3", "qwen3", "language_model" },
    { "qwen3_moe", "qwen3-moe", "language_model" }, { "gemma", "gemma", "language_model" },
    { "gemma2", "gemma-2", "language_model" }, { "gemma3_text", "gemma-3", "language_model" },
    { "gemma3", "gemma-3", "language_model" }, { "phi", "phi", "language_model" },
    { "phi3", "phi-3", "language_model" }, { "deepseek_v3", "deepseek-v3", "language_model" },
    { "gpt2", "gpt-2", "language_model" }, { "gpt_neox", "gpt-neox", "language_model" },
    { "falcon", "falcon", "language_model" }, { "bert", "bert", "language_model" },
    { "roberta", "roberta", "language_model" }, { "distilbert", "distilbert", "language_model" },
    { "modernbert", "modernbert", "language_model" }, { "bart", "bart", "language_model" },
    { "mamba", "mamba", "language_model" }, { "rwkv", "rwkv", "language_model" },
    { "whisper", "whisper", "audio_model" }, { "vit", "vit", "vision_model" },
    { "siglip", "siglip", NULL }, { "dinov2", "dinov2", "image_encoder" },
    { "umt5", "umt5", NULL }, { "t5", NULL, NULL },
};

static void hub_take_class(sfti_walk *walk, const sfti_walk_row *row) {
    hub_config *config = walk->ctx;
    const char *kind;
    (void)row;
    if (!sfti_walk_is_text(walk)) return;
    config->head = config->head || sfti_contains(walk->text, "causallm")
                || sfti_contains(walk->text, "lmhead")
                || sfti_contains(walk->text, "conditionalgeneration");
    if (config->class_source.len > 0) return;
    const char *architecture = sfti_map_class_name(walk->text, &kind);
    if (!architecture && !kind) return;
    config->architecture = architecture;
    config->kind = kind;
    config->class_source = sfti_walk_source(walk);
}

static void hub_take_text(sfti_walk *walk, const sfti_walk_row *row) {
    if (!sfti_walk_is_text(walk)) return;
    *(sft_span *)(void *)((char *)walk->ctx + row->field) = sfti_trim(walk->text);
}

static void hub_take_uint(sfti_walk *walk, const sfti_walk_row *row) {
    *(uint64_t *)(void *)((char *)walk->ctx + row->field) = sfti_walk_uint(walk);
}

static void hub_take_flag(sfti_walk *walk, const sfti_walk_row *row) {
    bool *flag = (bool *)(void *)((char *)walk->ctx + row->field);
    *flag = walk->json.type == SFTI_JSON_TRUE;
}

static void hub_take_answer(sfti_walk *walk, const sfti_walk_row *row) {
    int *answer = (int *)(void *)((char *)walk->ctx + row->field);
    if (walk->json.type == SFTI_JSON_TRUE) *answer = 1;
    if (walk->json.type == SFTI_JSON_FALSE) *answer = 0;
}

static void hub_take_type(sfti_walk *walk, const sfti_walk_row *row) {
    hub_config *config = walk->ctx;
    hub_take_text(walk, row);
    config->type_source = sfti_walk_source(walk);
}

static void hub_take_quantized(sfti_walk *walk, const sfti_walk_row *row) {
    hub_config *config = walk->ctx;
    if (walk->json.type != SFTI_JSON_OBJECT) return;
    config->quant_source = sfti_walk_source(walk);
    config->mlx = row->word != NULL;
}

static void hub_take_blocks(sfti_walk *walk, const sfti_walk_row *row) {
    hub_config *config = walk->ctx;
    (void)row;
    config->blocks = walk->json.type == SFTI_JSON_ARRAY;
}

#define HUB_AT(member) ((int)offsetof(hub_config, member))

static const sfti_walk_row hub_config_rows[] = {
    { "/_class_name", hub_take_class, 0, HUB_TRUST, NULL },
    { "/model_class", hub_take_class, 0, HUB_TRUST, NULL },
    { "/architectures/*", hub_take_class, 0, HUB_TRUST, NULL },
    { "/model_type", hub_take_type, HUB_AT(model_type), HUB_TRUST, NULL },
    { "/num_hidden_layers", hub_take_uint, HUB_AT(layers), HUB_TRUST, NULL },
    { "/hidden_size", hub_take_uint, HUB_AT(hidden), HUB_TRUST, NULL },
    { "/num_attention_heads", hub_take_uint, HUB_AT(heads), HUB_TRUST, NULL },
    { "/num_key_value_heads", hub_take_uint, HUB_AT(kv_heads), HUB_TRUST, NULL },
    { "/vocab_size", hub_take_uint, HUB_AT(vocab), HUB_TRUST, NULL },
    { "/cross_attention_dim", hub_take_uint, HUB_AT(cross_attention), HUB_TRUST, NULL },
    { "/latent_channels", hub_take_uint, HUB_AT(latent_channels), HUB_TRUST, NULL },
    { "/in_channels", hub_take_uint, HUB_AT(in_channels), HUB_TRUST, NULL },
    { "/guidance_embeds", hub_take_answer, HUB_AT(guidance), HUB_TRUST, NULL },
    { "/tie_word_embeddings", hub_take_answer, HUB_AT(tied), HUB_TRUST, NULL },
    { "/quantization_config", hub_take_quantized, 0, HUB_TRUST, NULL },
    { "/quantization_config/quant_method", hub_take_text, HUB_AT(method), HUB_TRUST, NULL },
    { "/quantization_config/bits", hub_take_uint, HUB_AT(bits), HUB_TRUST, NULL },
    { "/quantization_config/load_in_4bit", hub_take_flag, HUB_AT(four_bit), HUB_TRUST, NULL },
    { "/quantization_config/load_in_8bit", hub_take_flag, HUB_AT(eight_bit), HUB_TRUST, NULL },
    { "/quantization_config/bnb_4bit_quant_type", hub_take_text, HUB_AT(quant_type), HUB_TRUST,
      NULL },
    { "/quantization_config/weight_block_size", hub_take_blocks, 0, HUB_TRUST, NULL },
    { "/quantization", hub_take_quantized, 0, HUB_TRUST, "mlx" },
    { "/quantization/bits", hub_take_uint, HUB_AT(bits), HUB_TRUST, NULL },
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
        hub_add(info, SFT_FACT_QUANTIZATION, bitsandbytes(config), source);
    if (config->mlx && small)
        sfti_info_add_text(info, SFT_FACT_QUANTIZATION,
                           sfti_info_text(info, "mlx-%ubit", (unsigned)config->bits), source,
                           HUB_TRUST);
    for (size_t i = 0; i < HUB_COUNT(hub_methods); i++) {
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
    for (size_t i = 0; i < HUB_COUNT(hub_numbers) && !config->architecture && config->kind; i++) {
        uint64_t value;
        memcpy(&value, (const char *)config + hub_numbers[i].at, sizeof value);
        if (strcmp(config->kind, hub_numbers[i].kind) == 0 && value == hub_numbers[i].value)
            config->architecture = hub_numbers[i].architecture;
    }
}

static void hub_by_type(hub_config *config) {
    for (size_t i = 0; i < HUB_COUNT(hub_types); i++) {
        if (!sfti_same_letters(config->model_type, hub_types[i].type)) continue;
        if (!config->architecture) config->architecture = hub_types[i].architecture;
        /* Without a head's class, only a tied head makes a decoder a language model. */
        if (config->class_source.len == 0 && config->tied == 1)
            config->kind = hub_types[i].kind;
        if (config->class_source.len == 0) config->class_source = config->type_source;
    }
}

/* A decoder without a head, of which nothing says that it has one, encodes. */
static void hub_headless(const sft_info *info, hub_config *config) {
    static const char *const decoders[] = {
        "llama", "mistral", "mixtral", "qwen2", "qwen2-moe", "qwen3", "qwen3-moe", "gemma",
        "gemma-2", "gemma-3", "phi", "phi-3", "deepseek-v3",
    };
    const sfti_fact *kind = sfti_info_best(info, SFT_FACT_KIND);
    if (config->head || config->tied == 1 || !config->architecture || !kind) return;
    if (kind->trust > 70 || !sft_span_equal(kind->value.text, sft_span_cstr("language_model")))
        return;
    for (size_t i = 0; i < HUB_COUNT(decoders); i++)
        if (strcmp(config->architecture, decoders[i]) == 0) config->kind = "text_encoder";
}

static void hub_put(uint64_t *slot, uint64_t value, bool replace) {
    if (value > 0 && (*slot == 0 || replace)) *slot = value;
}

static void hub_sizes(sft_info *info, const hub_config *config) {
    const sfti_fact *kind = sfti_info_best(info, SFT_FACT_KIND);
    bool llm = kind && sft_span_equal(kind->value.text, sft_span_cstr("language_model"));
    if (!info->has_llm && !(llm && config->layers > 0 && config->hidden > 0)) return;
    info->has_llm = true;
    hub_put(&info->llm.layers, config->layers, false);
    hub_put(&info->llm.hidden, config->hidden, false);
    hub_put(&info->llm.vocab, config->vocab, false);
    /* From tensors, heads are a guess. */
    hub_put(&info->llm.heads, config->heads, true);
    hub_put(&info->llm.kv_heads, config->kv_heads > 0 ? config->kv_heads : config->heads, true);
}

static bool hub_read(sft_info *info, sfti_sidecar *sidecar, sft_span text, sft_span source,
                     hub_config *config) {
    memset(config, 0, sizeof *config);
    config->guidance = config->tied = -1;
    if (sfti_info_walk(info, text, source, hub_config_rows, HUB_COUNT(hub_config_rows), config))
        return true;
    sfti_side_not_json(info, sidecar);
    return false;
}

/* An adapter's folder may hold its base's configuration: that is no word on its kind. */
static void read_config(sft_info *info, sfti_sidecar *sidecar, sft_span text, sft_span source) {
    hub_config config;
    if (!hub_read(info, sidecar, text, source, &config)) return;
    hub_by_type(&config);
    hub_refine(&config);
    hub_headless(info, &config);
    hub_add(info, SFT_FACT_ARCHITECTURE, config.architecture, config.class_source);
    if (info->adapter.present) return;
    hub_add(info, SFT_FACT_KIND, config.kind, config.class_source);
    if (config.kind && strcmp(config.kind, "diffusion_model") == 0 && config.in_channels == 9)
        hub_add(info, SFT_FACT_VARIANT, "inpaint", config.class_source);
    hub_quantization(info, &config);
    hub_sizes(info, &config);
}

/* A pipeline's file in its root is one of its models: no kind. */
static void read_model_index(sft_info *info, sfti_sidecar *sidecar, sft_span text,
                             sft_span source) {
    hub_config config;
    if (!hub_read(info, sidecar, text, source, &config)) return;
    hub_add(info, SFT_FACT_ARCHITECTURE, config.architecture, config.class_source);
}

/* Nunchaku's old folder: {"model_class": "Flux", …}. */
static void read_comfy_config(sft_info *info, sfti_sidecar *sidecar, sft_span text,
                              sft_span source) {
    static const struct { const char *name, *architecture; } classes[] = {
        { "Flux", "flux.1" }, { "FluxInpaint", "flux.1" }, { "FluxSchnell", "flux.1-schnell" },
    };
    static const sfti_walk_row rows[] = { { "/model_class", hub_take_text, 0, 0, NULL } };
    sft_span name = { "", 0 };
    if (!sfti_info_walk(info, text, source, rows, HUB_COUNT(rows), &name)) {
        sfti_side_not_json(info, sidecar);
        return;
    }
    source = sfti_info_text(info, "%.*s:/model_class", (int)source.len, source.data);
    for (size_t i = 0; i < HUB_COUNT(classes); i++)
        if (sfti_same_letters(name, classes[i].name)) {
            hub_add(info, SFT_FACT_ARCHITECTURE, classes[i].architecture, source);
            hub_add(info, SFT_FACT_KIND, "diffusion_model", source);
        }
}

/* ── scheduler_config.json ── */

static void hub_take_scheduler(sfti_walk *walk, const sfti_walk_row *row) {
    bool *told = walk->ctx;
    const char *type = NULL;
    if (!sfti_walk_is_text(walk)) return;
    if (row->word) type = sfti_map_prediction(walk->text);
    else if (!*told && sfti_starts_with(walk->text, "FlowMatch")) type = "flow";
    else if (!*told && sfti_starts_with(walk->text, "EDM")) type = "edm";
    if (!type) return;
    *told = true;
    hub_add(walk->info, SFT_FACT_PREDICTION_TYPE, type, sfti_walk_source(walk));
}

static void read_scheduler(sft_info *info, sfti_sidecar *sidecar, sft_span text,
                           sft_span source) {
    static const sfti_walk_row first[] = { { "/prediction_type", hub_take_scheduler, 0, 0, "" } };
    static const sfti_walk_row second[] = { { "/_class_name", hub_take_scheduler, 0, 0, NULL } };
    bool told = false;
    if (!sfti_info_walk(info, text, source, first, 1, &told)) sfti_side_not_json(info, sidecar);
    else (void)sfti_info_walk(info, text, source, second, 1, &told);
}

/* ── adapter_config.json ── */

static bool hub_number(const sfti_walk *walk) {
    return walk->json.type == SFTI_JSON_UINT || walk->json.type == SFTI_JSON_NUMBER;
}

static void hub_take_rank(sfti_walk *walk, const sfti_walk_row *row) {
    sfti_fact **list = row->field == 0 ? &walk->info->declared_rank
                                       : &walk->info->declared_alpha;
    if (hub_number(walk))
        sfti_info_declare(walk->info, list, walk->text, sfti_walk_source(walk), HUB_TRUST);
}

static void hub_take_switch(sfti_walk *walk, const sfti_walk_row *row) {
    if (walk->json.type != SFTI_JSON_TRUE) return;
    if (row->field == 0) walk->info->adapter.dora = true;
    else walk->info->adapter.rslora = true;
}

static void hub_take_base(sfti_walk *walk, const sfti_walk_row *row) {
    (void)row;
    if (sfti_walk_is_text(walk))
        sfti_info_base_checkpoint(walk->info, walk->text, sfti_walk_source(walk), HUB_TRUST);
}

static void hub_take_peft(sfti_walk *walk, const sfti_walk_row *row) {
    sft_info *info = walk->info;
    (void)row;
    if (!sfti_walk_is_text(walk)) return;
    hub_add(info, SFT_FACT_KIND, "adapter", sfti_walk_source(walk));
    if (!info->adapter.present || info->adapter.type) return;
    int len = walk->text.len < 32 ? (int)walk->text.len : 32;
    sft_span copy = sfti_info_text(info, "%.*s", len, walk->text.data);
    char *lower = (char *)copy.data;
    for (size_t i = 0; i < copy.len; i++)
        if (lower[i] >= 'A' && lower[i] <= 'Z') lower[i] = (char)(lower[i] + 32);
    if (copy.len > 0) info->adapter.type = lower;
}

static void hub_take_adapted(sfti_walk *walk, const sfti_walk_row *row) {
    const char *kind, *architecture = NULL;
    (void)row;
    if (sfti_walk_is_text(walk)) architecture = sfti_map_class_name(walk->text, &kind);
    hub_add(walk->info, SFT_FACT_ARCHITECTURE, architecture, sfti_walk_source(walk));
}

static void read_adapter_config(sft_info *info, sfti_sidecar *sidecar, sft_span text,
                                sft_span source) {
    static const sfti_walk_row rows[] = {
        { "/peft_type", hub_take_peft, 0, HUB_TRUST, NULL },
        { "/base_model_name_or_path", hub_take_base, 0, HUB_TRUST, NULL },
        { "/auto_mapping/base_model_class", hub_take_adapted, 0, HUB_TRUST, NULL },
        { "/r", hub_take_rank, 0, HUB_TRUST, NULL },
        { "/lora_alpha", hub_take_rank, 1, HUB_TRUST, NULL },
        { "/alpha", hub_take_rank, 1, HUB_TRUST, NULL },
        { "/use_dora", hub_take_switch, 0, HUB_TRUST, NULL },
        { "/use_rslora", hub_take_switch, 1, HUB_TRUST, NULL },
    };
    if (!sfti_info_walk(info, text, source, rows, HUB_COUNT(rows), NULL))
        sfti_side_not_json(info, sidecar);
}

/* ── The table ── */

const sfti_side_row sfti_hub_rows[] = {
    { "README", ".md", "readme", sfti_read_readme },
    { "readme", ".md", "readme", sfti_read_readme },
    { "config", ".json", "config.json", read_config },
    { "adapter_config", ".json", "adapter_config.json", read_adapter_config },
    { "model_index", ".json", "model_index.json", read_model_index },
    { "scheduler_config", ".json", "scheduler_config.json", read_scheduler },
    { "scheduler/scheduler_config", ".json", "scheduler_config.json", read_scheduler },
    { "comfy_config", ".json", "comfy_config.json", read_comfy_config },
};
const size_t sfti_hub_row_count = HUB_COUNT(sfti_hub_rows);
