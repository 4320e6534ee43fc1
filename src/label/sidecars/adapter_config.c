/* adapter_config.json of PEFT and of MLX: what an adapter is where its tensors do not tell. */
#include "label/sidecars/sidecars.h"

#include <stddef.h>
#include <string.h>

#define ADAPTER_TRUST 90
#define TARGETS_MOST 64
#define TYPE_MOST 32

enum { NUMBER_RANK, NUMBER_SCALE };

typedef struct adapter_config {
    sft_span type, type_source;
    double numbers[2]; /* NUMBER_…; 0 = not told */
    sft_span targets[TARGETS_MOST];
    size_t target_count;
    bool of_parameters; /* ranks that tensors show may be those of all experts together */
    bool ranks_differ;
} adapter_config;

static void take_type(sfti_cursor *at) {
    adapter_config *config = at->ctx;
    if (!sfti_at_text(at) || at->text.len > TYPE_MOST || config->type.len > 0) return;
    config->type = at->text;
    config->type_source = sfti_cursor_source(at);
}

static void take_positive(sfti_cursor *at) {
    adapter_config *config = at->ctx;
    double value;
    if (sfti_at_number(at) && sfti_parse_double(at->text, &value) && value > 0 && value < 1e9)
        config->numbers[at->row->field] = value;
}

static void take_target(sfti_cursor *at) {
    adapter_config *config = at->ctx;
    if (sfti_at_text(at))
        (void)sfti_put_sorted(config->targets, &config->target_count, TARGETS_MOST,
                              sfti_info_copy(at->info, at->text));
}

static void take_parameter(sfti_cursor *at) {
    adapter_config *config = at->ctx;
    if (at->row->word) config->ranks_differ = true;
    else config->of_parameters = config->of_parameters || sfti_at_text(at);
}

static void take_base(sfti_cursor *at) {
    sfti_take_base_file(at);
    if (sfti_at_text(at))
        sfti_info_declared_repository(at->info, at->text, sfti_cursor_source(at));
}

static const sfti_key_take peft_takes[] = {
    { "peft_type", take_type, NULL, NULL },
    { "base_model", take_base, NULL, NULL },
    { "positive", take_positive, "rank scale", NULL },
    { "target", take_target, NULL, NULL },
    { "parameter", take_parameter, NULL, NULL },
    { "alpha_pattern", sfti_take_alpha_pattern, NULL, NULL },
};
SFTI_KEYS_OF(sfti_adapter_config_keys, "adapter-config", peft_takes);

/* Tensors tell LoRA's shapes; several methods have them. */
static void declared_type(sft_info *info, const adapter_config *config) {
    sfti_adapter *adapter = &info->adapter;
    bool dora = sfti_same_letters(config->type, "dora"), lora = adapter->type
             && strcmp(adapter->type, "lora") == 0;
    if (adapter->type && !lora) return;
    adapter->dora = adapter->dora || dora;
    if (dora) adapter->type = "lora";
    else {
        char lower[TYPE_MOST];
        for (size_t i = 0; i < config->type.len; i++)
            lower[i] = sfti_lower_case(config->type.data[i]);
        adapter->type = sfti_info_cstr(info, (sft_span){ lower, config->type.len });
    }
}

void sfti_read_adapter_config(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    sfti_adapter *adapter = &info->adapter;
    adapter_config config;
    memset(&config, 0, sizeof config);
    if (!sfti_sidecar_walk(info, sidecar, text, SFTI_KEY_ROWS(sfti_adapter_config_keys), &config))
        return;
    if (config.type.len == 0) return;
    sfti_info_add_cstr(info, SFT_FACT_KIND, "adapter", config.type_source, ADAPTER_TRUST);
    adapter->present = true;
    declared_type(info, &config);
    double rank = config.numbers[NUMBER_RANK], scale = config.numbers[NUMBER_SCALE];
    if (config.of_parameters && (!adapter->rank.known || adapter->rank.max > rank))
        adapter->rank.known = false;
    if (config.of_parameters && config.ranks_differ) rank = 0;
    if (!adapter->rank.known && rank > 0) adapter->rank = (sfti_bounds){ true, rank, rank, rank };
    if (adapter->scale < 0 && scale > 0) adapter->scale = scale;
    bool seen = adapter->targets.count > 0;
    for (size_t i = 0; i < config.target_count && !seen; i++)
        SFTI_PUSH(info, &adapter->targets, sfti_note, .text = config.targets[i]);
}
