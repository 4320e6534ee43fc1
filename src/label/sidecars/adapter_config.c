/* adapter_config.json of PEFT and of MLX: what an adapter is where its tensors do not tell. */
#include "label/sidecars/sidecars.h"

#include "base/order.h"

#include <stddef.h>
#include <string.h>

#define ADAPTER_TRUST 90
#define TARGETS_MOST 64
#define TYPE_MOST 32

typedef struct adapter_config {
    sft_span type, type_source;
    double rank, alpha, scale; /* 0 = not told */
    sft_span targets[TARGETS_MOST];
    size_t target_count;
} adapter_config;

static void take_type(sfti_cursor *at, const sfti_row *row) {
    adapter_config *config = at->ctx;
    (void)row;
    if (!sfti_at_text(at) || at->text.len > TYPE_MOST || config->type.len > 0) return;
    config->type = at->text;
    config->type_source = sfti_cursor_source(at);
}

static void take_positive(sfti_cursor *at, const sfti_row *row) {
    double value, *slot = (double *)(void *)((char *)at->ctx + row->field);
    if (sfti_at_number(at) && sfti_parse_double(at->text, &value) && value > 0 && value < 1e9)
        *slot = value;
}

/* Sorted, no name twice. */
static void take_target(sfti_cursor *at, const sfti_row *row) {
    adapter_config *config = at->ctx;
    size_t i = config->target_count;
    (void)row;
    if (!sfti_at_text(at) || i == TARGETS_MOST) return;
    while (i > 0 && sfti_bytes_compare(config->targets[i - 1], at->text) > 0) i--;
    if (i > 0 && sft_span_equal(config->targets[i - 1], at->text)) return;
    memmove(&config->targets[i + 1], &config->targets[i],
            (config->target_count - i) * sizeof *config->targets);
    config->targets[i] = sfti_info_copy(at->info, at->text);
    config->target_count++;
}

static void take_base(sfti_cursor *at, const sfti_row *row) {
    sfti_take_base_file(at, row);
    if (sfti_at_text(at))
        sfti_info_declared_repository(at->info, at->text, sfti_cursor_source(at));
}

#define ADAPTER_AT(member) ((int)offsetof(adapter_config, member))

static const sfti_row adapter_config_rows[] = {
    { "/peft_type", take_type, 0, 0, NULL },
    { "/fine_tune_type", take_type, 0, 0, NULL },
    { "/base_model_name_or_path", take_base, 0, ADAPTER_TRUST, NULL },
    { "/model", take_base, 0, ADAPTER_TRUST, NULL },
    { "/auto_mapping/base_model_class", sfti_take_class, 0, ADAPTER_TRUST, NULL },
    { "/r", sfti_take_declared, 0, ADAPTER_TRUST, NULL },
    { "/r", take_positive, ADAPTER_AT(rank), 0, NULL },
    { "/init_r", take_positive, ADAPTER_AT(rank), 0, NULL },
    { "/effective_rank", take_positive, ADAPTER_AT(rank), 0, NULL },
    { "/num_ranks", take_positive, ADAPTER_AT(rank), 0, NULL },
    { "/lora_parameters/rank", sfti_take_declared, 0, ADAPTER_TRUST, NULL },
    { "/lora_parameters/rank", take_positive, ADAPTER_AT(rank), 0, NULL },
    { "/lora_alpha", sfti_take_declared, 1, ADAPTER_TRUST, NULL },
    { "/alpha", sfti_take_declared, 1, ADAPTER_TRUST, NULL },
    { "/randlora_alpha", sfti_take_declared, 1, ADAPTER_TRUST, NULL },
    { "/psoft_alpha", sfti_take_declared, 1, ADAPTER_TRUST, NULL },
    { "/scaling", take_positive, ADAPTER_AT(scale), 0, NULL },
    { "/lora_parameters/scale", take_positive, ADAPTER_AT(scale), 0, NULL },
    { "/target_modules/*", take_target, 0, 0, NULL },
    { "/lora_parameters/keys/*", take_target, 0, 0, NULL },
    { "/use_dora", sfti_take_switch, 0, ADAPTER_TRUST, NULL },
    { "/use_rslora", sfti_take_switch, 1, ADAPTER_TRUST, NULL },
};

static const char *lower_case(sft_info *info, sft_span text) {
    sft_span copy = sfti_info_text(info, "%.*s", (int)text.len, text.data);
    char *lower = (char *)copy.data;
    for (size_t i = 0; i < copy.len; i++)
        if (lower[i] >= 'A' && lower[i] <= 'Z') lower[i] = (char)(lower[i] + 32);
    return copy.data;
}

/* Tensors tell LoRA's shapes; several methods have them. */
static void declared_type(sft_info *info, const adapter_config *config) {
    sfti_adapter *adapter = &info->adapter;
    bool dora = sfti_same_letters(config->type, "dora"), lora = adapter->type
             && strcmp(adapter->type, "lora") == 0;
    if (adapter->type && !lora) return;
    adapter->dora = adapter->dora || dora;
    if (dora) adapter->type = "lora";
    else if (config->type.len > 0) adapter->type = lower_case(info, config->type);
}

void sfti_read_adapter_config(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    sfti_adapter *adapter = &info->adapter;
    adapter_config config;
    memset(&config, 0, sizeof config);
    if (!sfti_sidecar_walk(info, sidecar, text, SFTI_ROWS(adapter_config_rows), &config)) return;
    if (config.type.len == 0) return;
    sfti_info_add_cstr(info, SFT_FACT_KIND, "adapter", config.type_source, ADAPTER_TRUST);
    adapter->present = true;
    declared_type(info, &config);
    if (!adapter->rank.known && config.rank > 0)
        adapter->rank = (sfti_bounds){ true, config.rank, config.rank, config.rank };
    if (adapter->scale < 0 && config.scale > 0) adapter->scale = config.scale;
    bool seen = adapter->targets.count > 0;
    for (size_t i = 0; i < config.target_count && !seen; i++)
        SFTI_PUSH(info, &adapter->targets, sfti_note, .text = config.targets[i]);
}
