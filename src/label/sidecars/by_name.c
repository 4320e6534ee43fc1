/* Files that name no model but speak for the only one in their folder. */
#include "label/sidecars/sidecars.h"

#include <string.h>

#define HUB_TRUST 90

/* ── config.json of transformers and diffusers ── */

typedef struct hub_number {
    uint64_t value; /* 0: not told */
    sft_span source;
} hub_number;

typedef struct hub_config {
    const char *architecture, *kind;
    sft_span name, class_source;
    sft_span model_type, type_source;
    sft_span timm, timm_source;
    hub_number layers, hidden, heads, kv_heads, vocab;
    hub_number cross_attention, latent_channels, in_channels;
    double scaling;     /* of latents, or 0 */
    int guidance;       /* guidance_embeds: 0, 1, -1 not told */
    int tied;           /* tie_word_embeddings likewise */
    int multi_query;    /* one head for keys and values, but in grouped layers */
    int grouped;
    bool known;         /* the class */
    bool by_type;       /* the architecture is that of the type */
    bool head;          /* a class that ends in words */
    const sfti_record_row *said; /* the row that told the architecture */
} hub_config;

static void hub_take_class(sfti_cursor *at) {
    hub_config *config = at->ctx;
    if (!sfti_at_text(at)) return;
    config->head = config->head || sfti_contains(at->text, "causallm")
                || sfti_contains(at->text, "lmhead")
                || sfti_contains(at->text, "conditionalgeneration");
    if (config->name.len > 0) return;
    config->name = sfti_trim(at->text);
    config->known = sfti_map_class_name(at->info->records, at->text, &config->architecture,
                                        &config->kind, &config->said);
    config->class_source = sfti_cursor_source(at);
}

static void hub_take_type(sfti_cursor *at) {
    hub_config *config = at->ctx;
    sfti_take_slot(at);
    if (at->row->word) config->timm_source = sfti_cursor_source(at);
    else config->type_source = sfti_cursor_source(at);
}

static void hub_take_number(sfti_cursor *at) {
    hub_number *number = (hub_number *)(void *)((char *)at->ctx + at->row->field);
    uint64_t told = sfti_at_uint(at);
    if (told > 0) *number = (hub_number){ told, sfti_cursor_source(at) };
}

static void hub_take_scaling(sfti_cursor *at) {
    hub_config *config = at->ctx;
    if (sfti_at_number(at)) (void)sfti_parse_double(at->text, &config->scaling);
}

static const size_t config_types[] = {
    offsetof(hub_config, model_type), offsetof(hub_config, timm),
};
static const size_t config_numbers[] = {
    offsetof(hub_config, layers), offsetof(hub_config, hidden), offsetof(hub_config, heads),
    offsetof(hub_config, kv_heads), offsetof(hub_config, vocab),
    offsetof(hub_config, cross_attention), offsetof(hub_config, latent_channels),
    offsetof(hub_config, in_channels),
};
static const size_t config_switches[] = {
    offsetof(hub_config, guidance), offsetof(hub_config, tied),
    offsetof(hub_config, multi_query), offsetof(hub_config, grouped),
};
static const sfti_key_take config_takes[] = {
    { "class", hub_take_class, NULL, NULL }, { "type", hub_take_type, "type timm", config_types },
    { "number", hub_take_number, "layers hidden heads kv_heads vocab cross_attention_dim "
                                 "latent_channels in_channels", config_numbers },
    { "switch", sfti_take_slot_bool, "guidance tied multi_query grouped", config_switches },
    { "scaling", hub_take_scaling, NULL, NULL },
};
SFTI_KEYS_OF(sfti_config_keys, "config", config_takes);

/* ── What a configuration says ── */

/* Whether a configuration has every number that a row "config" has, and that has one. */
static bool hub_has_numbers(const hub_config *config, const sfti_record_row *row) {
    const struct { const char *name; double value; } numbers[] = {
        { "cross_attention_dim", (double)config->cross_attention.value },
        { "latent_channels", (double)config->latent_channels.value },
        { "scaling_factor", config->scaling },
    };
    bool any = false;
    for (size_t i = 0; i < SFTI_COUNT(numbers); i++) {
        sft_span told;
        double want;
        if (!sfti_row_has(row, numbers[i].name, &told)) continue;
        if (!sfti_parse_double(told, &want) || want != numbers[i].value) return false;
        any = true;
    }
    return any;
}

/* Classes that several architectures share, told apart by their numbers: rows "config". */
static void hub_refine(const sfti_records *records, hub_config *config) {
    for (const sfti_record_row *row = sfti_rows(records, SFTI_CONFIG, 0); row && config->kind;
         row = sfti_rows_next(records, row)) {
        const sfti_record *of = sfti_row_record(records, row);
        sft_span kind = sfti_row_word(row), told;
        if (!sfti_is(kind, config->kind)) continue;
        bool guided = sfti_row_has(row, "guidance_embeds", &told);
        if (guided && config->guidance >= 0 && config->architecture && of->parent
            && strcmp(config->architecture, of->parent->id) == 0
            && sfti_is(told, config->guidance ? "true" : "false")) {
            config->architecture = of->id;
            config->said = row;
            return;
        }
        if (!config->architecture && hub_has_numbers(config, row)) {
            config->architecture = of->id;
            config->said = row;
        }
    }
}

/* A decoder of which nothing says that it has a head encodes; a shard's may be in another. */
static bool hub_encodes(const sft_info *info, const hub_config *config, const char *architecture) {
    const sfti_record *of = sfti_model_record(info->records, architecture);
    return !config->head && config->tied != 1 && info->shard_of < 2
        && sfti_record_row_of(info->records, of, SFTI_DECODER, NULL) != NULL;
}

/* A class that stands for one architecture says more than the type; the type more than the
 * model's name in a class. */
static void hub_by_type(const sft_info *info, hub_config *config) {
    const char *architecture, *kind;
    const sfti_record_row *row;
    if (!sfti_map_model_type(info->records, config->model_type, &architecture, &kind, &row)) return;
    config->by_type = !config->known || !config->architecture;
    if (config->by_type) {
        config->architecture = architecture;
        config->said = row;
    }
    if (config->kind || hub_encodes(info, config, architecture)) return;
    config->kind = kind;
}

/* What is not known is given as written. */
static void hub_architecture(sft_info *info, const hub_config *config) {
    bool by_type = config->by_type || config->name.len == 0;
    sft_span source = by_type ? config->type_source : config->class_source;
    if (config->architecture)
        sfti_info_add_cstr(info, SFT_FACT_ARCHITECTURE, config->architecture, source, HUB_TRUST);
    else if (config->model_type.len > 0)
        sfti_info_add_written(info, config->model_type, config->type_source, HUB_TRUST);
    else if (config->name.len > 0)
        sfti_info_declared_class(info, config->name, source, HUB_TRUST);
    else sfti_info_add_written(info, config->timm, config->timm_source, HUB_TRUST);
}

/* What tensors show stays; what contradicts it is a conflict. */
static void hub_settle(sft_info *info, const char *field, uint64_t *seen, const hub_number *told) {
    const uint64_t values[] = { told->value, *seen };
    const sft_span sources[] = { told->source, sft_span_cstr("tensors") };
    sfti_fact *facts = NULL;
    if (*seen == 0) *seen = told->value;
    if (told->value == 0 || told->value == *seen) return;
    for (size_t i = 0; i < SFTI_COUNT(values); i++) {
        sft_span text = sfti_info_text(info, "%llu", (unsigned long long)values[i]);
        sfti_fact *fact = sfti_info_take_zeroed(info, sizeof *fact);
        if (!fact) return;
        *fact = (sfti_fact){ .value = sfti_number_value(text), .source = sources[i],
                             .trust = i == 0 ? HUB_TRUST : 100, .next = facts };
        facts = fact;
    }
    SFTI_PUSH(info, &info->conflicts, sfti_conflict, .field = field, .facts = facts);
}

/* Heads as they are told, if heads of queries and of keys then have one size; those of keys may
 * follow from it. False: they have not. */
static bool hub_heads_fit(const sft_info *info, uint64_t heads, uint64_t *kv_heads) {
    const uint64_t queries = info->llm.queries, keys = info->llm.keys;
    if (queries == SFTI_SIZES_DIFFER || heads == 0 || queries % heads != 0) return false;
    uint64_t head = queries / heads; /* 0: not told; of queries alone it may be twice as much */
    if (keys == SFTI_SIZES_DIFFER) {
        *kv_heads = 0;
    } else if (keys > 0 && *kv_heads > 0) {
        uint64_t of_keys = keys / *kv_heads;
        bool same = head == 0 || of_keys == head
                 || (!info->llm.heads_told && of_keys == head - of_keys);
        if (keys % *kv_heads != 0 || !same) return false;
    } else if (keys > 0 && head > 0 && info->llm.heads_told) {
        if (keys % head != 0) return false;
        *kv_heads = keys / head;
    }
    return *kv_heads == 0 || heads % *kv_heads == 0;
}

static void hub_heads(sft_info *info, const hub_config *config) {
    hub_number kv_heads = config->kv_heads;
    if (config->multi_query == 1 && config->grouped != 1) kv_heads.value = 1;
    bool seen = info->llm.heads > 0;
    if (!seen && !hub_heads_fit(info, config->heads.value, &kv_heads.value)) return;
    hub_settle(info, "llm.heads", &info->llm.heads, &config->heads);
    bool shared = kv_heads.value > 0 && info->llm.heads % kv_heads.value == 0;
    if (shared && info->llm.keys != SFTI_SIZES_DIFFER)
        hub_settle(info, "llm.kv_heads", &info->llm.kv_heads, &kv_heads);
}

static void hub_sizes(sft_info *info, const hub_config *config) {
    const sfti_fact *kind = sfti_info_best(info, SFT_FACT_KIND);
    bool llm = kind && sfti_is(kind->value.text, "language_model");
    if (!info->has_llm && !(llm && config->layers.value > 0 && config->hidden.value > 0)) return;
    info->has_llm = true;
    /* A part of the layers has numbers below how many there are. */
    if (info->llm.layers > 0 || info->llm.least_layers <= config->layers.value)
        hub_settle(info, "llm.layers", &info->llm.layers, &config->layers);
    hub_settle(info, "llm.hidden", &info->llm.hidden, &config->hidden);
    if (info->llm.vocab == 0) info->llm.vocab = config->vocab.value;
    hub_heads(info, config);
}

static bool hub_read(sft_info *info, sfti_sidecar *sidecar, sft_span text, hub_config *config) {
    memset(config, 0, sizeof *config);
    config->guidance = config->tied = config->multi_query = config->grouped = -1;
    return sfti_sidecar_walk(info, sidecar, text, SFTI_KEY_ROWS(sfti_config_keys), config);
}

/* An adapter's folder may hold its base's configuration: that is no word on its kind. */
static void read_config(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    hub_config config;
    if (!hub_read(info, sidecar, text, &config)) return;
    hub_by_type(info, &config);
    hub_refine(info->records, &config);
    const sfti_fact *best = sfti_info_best(info, SFT_FACT_KIND);
    if (best && best->trust <= 70 && sfti_is(best->value.text, "language_model")
        && hub_encodes(info, &config, config.architecture))
        config.kind = "text_encoder";
    info->said = config.said;
    hub_architecture(info, &config);
    info->said = NULL;
    if (info->adapter.present) return;
    sft_span source = config.name.len > 0 ? config.class_source : config.type_source;
    sfti_info_add_cstr(info, SFT_FACT_KIND, config.kind, source, HUB_TRUST);
    if (config.kind && strcmp(config.kind, "diffusion_model") == 0 && config.in_channels.value == 9)
        sfti_info_add_cstr(info, SFT_FACT_VARIANT, "inpaint", source, HUB_TRUST);
    (void)sfti_quantiser_declared(info, text, sidecar->source, &sfti_quantiser_keys,
                                  SFTI_SAYS_QUANTISER, HUB_TRUST);
    hub_sizes(info, &config);
}

/* A pipeline's file in its root is one of its models: no kind. */
static void read_model_index(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    hub_config config;
    if (!hub_read(info, sidecar, text, &config) || config.name.len == 0) return;
    sfti_info_declared_class(info, config.name, config.class_source, HUB_TRUST);
}

/* Nunchaku's old folder: {"model_class": "Flux", …}. */
static void read_comfy_config(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    static const sfti_row rows[] = { { "/model_class", sfti_take_slot, 0, 0, NULL } };
    sft_span name = { "", 0 };
    if (!sfti_sidecar_walk(info, sidecar, text, SFTI_ROWS(rows), &name)) return;
    sft_span source = sfti_info_text(info, "%.*s:/model_class", (int)sidecar->source.len,
                                     sidecar->source.data);
    const char *architecture = sfti_said_model(info->records, SFTI_SAYS_NUNCHAKU, name,
                                               &info->said);
    if (!architecture) return;
    sfti_info_add_cstr(info, SFT_FACT_ARCHITECTURE, architecture, source, HUB_TRUST);
    info->said = NULL;
    sfti_info_add_cstr(info, SFT_FACT_KIND, "diffusion_model", source, HUB_TRUST);
}

/* ── scheduler_config.json ── */

static void hub_take_scheduler(sfti_cursor *at) {
    bool *told = at->ctx;
    const char *type = NULL;
    if (!sfti_at_text(at)) return;
    if (at->row->word) type = sfti_map_prediction(at->info->records, at->text, &at->info->said);
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

/* ── The table ── */

const sfti_sidecar_row sfti_hub_rows[] = {
    { "README", ".md", "readme", sfti_read_readme, NULL },
    { "readme", ".md", "readme", sfti_read_readme, NULL },
    { "adapter_config", ".json", "adapter_config.json", sfti_read_adapter_config, NULL },
    { "config", ".json", "config.json", read_config, NULL },
    { "model_index", ".json", "model_index.json", read_model_index, NULL },
    { "scheduler_config", ".json", "scheduler_config.json", read_scheduler, NULL },
    { "scheduler/scheduler_config", ".json", "scheduler_config.json", read_scheduler, NULL },
    { "comfy_config", ".json", "comfy_config.json", read_comfy_config, NULL },
};
const size_t sfti_hub_row_count = SFTI_COUNT(sfti_hub_rows);
