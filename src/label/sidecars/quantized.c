/* How config.json says that weights are packed. */
#include "label/sidecars/sidecars.h"

#include <stddef.h>
#include <string.h>

#define QUANT_TRUST 90

typedef struct quant_config {
    sft_span source;
    sft_span method, format, type; /* type: of bitsandbytes, quanto and torchao */
    double bits;
    uint64_t weight_bits, activation_bits; /* compressed-tensors; 0 = not packed */
    int four_bit, eight_bit;
    bool blocks, mlx;
} quant_config;

static void take_object(sfti_cursor *at, const sfti_row *row) {
    quant_config *config = at->ctx;
    if (at->json.type != SFTI_JSON_OBJECT) return;
    config->source = sfti_cursor_source(at);
    config->mlx = row->word != NULL;
}

static void take_blocks(sfti_cursor *at, const sfti_row *row) {
    quant_config *config = at->ctx;
    (void)row;
    config->blocks = at->json.type == SFTI_JSON_ARRAY;
}

/* EXL2 counts in fractions of bits. */
static void take_bits(sfti_cursor *at, const sfti_row *row) {
    quant_config *config = at->ctx;
    double bits;
    (void)row;
    if (sfti_at_number(at) && sfti_parse_double(at->text, &bits) && bits > 0 && bits <= 16)
        config->bits = bits;
}

#define QUANT_AT(member) ((int)offsetof(quant_config, member))
#define QUANT_KEY "/quantization_config/"

static const sfti_row quant_config_rows[] = {
    { "/quantization_config", take_object, 0, 0, NULL },
    { QUANT_KEY "quant_method", sfti_take_slot, QUANT_AT(method), 0, NULL },
    { QUANT_KEY "bits", take_bits, 0, 0, NULL },
    { QUANT_KEY "quant_config/weight_quant_params/nbits", take_bits, 0, 0, NULL },
    { QUANT_KEY "load_in_4bit", sfti_take_slot_bool, QUANT_AT(four_bit), 0, NULL },
    { QUANT_KEY "load_in_8bit", sfti_take_slot_bool, QUANT_AT(eight_bit), 0, NULL },
    { QUANT_KEY "bnb_4bit_quant_type", sfti_take_slot, QUANT_AT(type), 0, NULL },
    { QUANT_KEY "weights", sfti_take_slot, QUANT_AT(type), 0, NULL },
    { QUANT_KEY "weights_dtype", sfti_take_slot, QUANT_AT(type), 0, NULL },
    { QUANT_KEY "quant_type", sfti_take_slot, QUANT_AT(type), 0, NULL },
    { QUANT_KEY "quant_type/default/_type", sfti_take_slot, QUANT_AT(type), 0, NULL },
    { QUANT_KEY "format", sfti_take_slot, QUANT_AT(format), 0, NULL },
    { QUANT_KEY "config_groups/*/weights/num_bits", sfti_take_slot_uint, QUANT_AT(weight_bits), 0,
      NULL },
    { QUANT_KEY "config_groups/*/input_activations/num_bits", sfti_take_slot_uint,
      QUANT_AT(activation_bits), 0, NULL },
    { QUANT_KEY "weight_block_size", take_blocks, 0, 0, NULL },
    { "/quantization", take_object, 0, 0, "mlx" },
    { "/quantization/bits", take_bits, 0, 0, NULL },
};

/* ── Methods ── */

static sft_span bitsandbytes(sft_info *info, const quant_config *config) {
    (void)info;
    if (config->eight_bit == 1) return sft_span_cstr("bnb-int8");
    if (config->four_bit != 1) return (sft_span){ "", 0 };
    return sft_span_cstr(sfti_same_letters(config->type, "nf4") ? "bnb-nf4" : "bnb-fp4");
}

static sft_span fp8(sft_info *info, const quant_config *config) {
    (void)info;
    return sft_span_cstr(config->blocks ? "fp8-block" : "fp8");
}

/* "gptq-4bit", "exl2-4.25bit"; nothing without bits */
static sft_span by_bits(sft_info *info, const quant_config *config) {
    char digits[SFTI_DECIMALS_SIZE];
    sft_span method = config->mlx ? sft_span_cstr("mlx") : config->method;
    int len = (int)sfti_decimals(config->bits, digits);
    if (config->bits <= 0) return (sft_span){ "", 0 };
    return sfti_info_text(info, "%.*s-%.*sbit", (int)method.len, method.data, len, digits);
}

/* Numbers that a type's name has: "int4_weight_only", "Float8WeightOnlyConfig". */
static sft_span by_type(sft_info *info, const quant_config *config) {
    static const char *const types[] = { "int2", "int4", "int8", "float8", "fp8" };
    for (size_t i = 0; i < SFTI_COUNT(types); i++)
        if (sfti_contains(config->type, types[i]))
            return sfti_info_text(info, "%.*s-%s", (int)config->method.len, config->method.data,
                                  types[i]);
    return config->method;
}

static sft_span compressed_tensors(sft_info *info, const quant_config *config) {
    uint64_t bits = config->weight_bits;
    uint64_t activations = config->activation_bits ? config->activation_bits : 16;
    if (sfti_starts_with(config->format, "nvfp4")) return sft_span_cstr("nvfp4");
    if (sfti_starts_with(config->format, "mxfp4")) return sft_span_cstr("mxfp4");
    if (bits == 0 || bits > 16 || activations > 16) return sft_span_cstr("compressed-tensors");
    return sfti_info_text(info, "compressed-tensors-w%ua%u", (unsigned)bits,
                          (unsigned)activations);
}

static const struct quant_config_method {
    const char *method;
    sft_span (*name)(sft_info *info, const quant_config *config);
} quant_config_methods[] = {
    { "bitsandbytes", bitsandbytes }, { "fp8", fp8 }, { "gptq", by_bits }, { "awq", by_bits },
    { "exl2", by_bits }, { "exl3", by_bits }, { "hqq", by_bits }, { "quanto", by_type },
    { "torchao", by_type }, { "compressed-tensors", compressed_tensors },
    { "compressed_tensors", compressed_tensors },
};

/* A method that is not known is given as written. */
void sfti_config_quantization(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    quant_config config;
    memset(&config, 0, sizeof config);
    if (!sfti_sidecar_walk(info, sidecar, text, SFTI_ROWS(quant_config_rows), &config)) return;
    sft_span name = config.method;
    if (config.mlx && name.len == 0) name = by_bits(info, &config);
    else if (name.len == 0) name = bitsandbytes(info, &config);
    for (size_t i = 0; i < SFTI_COUNT(quant_config_methods); i++)
        if (sfti_same_letters(config.method, quant_config_methods[i].method))
            name = quant_config_methods[i].name(info, &config);
    sfti_info_add_text(info, SFT_FACT_QUANTIZATION, name, config.source, QUANT_TRUST);
}
