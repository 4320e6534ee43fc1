/* How weights are packed, as headers and config.json declare it: which record of a quantisation a
 * quantiser's words stand for. */
#include "label/cursor.h"

#include <stddef.h>
#include <string.h>

enum { TEXT_METHOD, TEXT_FORMAT, TEXT_TYPE, TEXT_DTYPE, TEXTS };
enum { FLAG_FOUR_BIT, FLAG_EIGHT_BIT, FLAGS };
enum { WIDTH_WEIGHTS, WIDTH_ACTIVATIONS, WIDTHS };

typedef struct quantiser {
    sft_span source;
    sft_span texts[TEXTS];  /* type: of bitsandbytes, quanto and torchao */
    double bits, of_layers;  /* of all layers but some, and of these */
    uint64_t widths[WIDTHS]; /* of compressed-tensors; 0 = not packed */
    uint32_t groups[WIDTHS]; /* that have them */
    bool mixed;              /* layers differ */
    bool flags[FLAGS];
    bool blocks;
    const char *alone; /* the method, where the object itself says which */
} quantiser;

static void take_object(sfti_cursor *at) {
    quantiser *config = at->ctx;
    if (at->json->type != SFTI_JSON_OBJECT) return;
    config->source = sfti_cursor_source(at);
    if (at->row->word) config->alone = at->row->word;
}

static void take_flag(sfti_cursor *at) {
    int told = sfti_at_bool(at);
    if (told >= 0) ((quantiser *)at->ctx)->flags[at->row->field] = told == 1;
}

static void take_blocks(sfti_cursor *at) {
    ((quantiser *)at->ctx)->blocks = at->json->type == SFTI_JSON_ARRAY;
}

/* EXL2 counts in fractions of bits. */
static void take_bits(sfti_cursor *at) {
    quantiser *config = at->ctx;
    double bits;
    if (!sfti_at_number(at) || !sfti_parse_double(at->text, &bits) || !(bits > 0) || bits > 16)
        return;
    if (at->row->word) {
        config->mixed = config->mixed || (config->of_layers > 0 && config->of_layers != bits);
        config->of_layers = bits;
    } else {
        config->bits = bits;
    }
}

static void take_width(sfti_cursor *at) {
    quantiser *config = at->ctx;
    uint64_t *width = &config->widths[at->row->field], told = sfti_at_uint(at);
    config->mixed = config->mixed || (*width > 0 && *width != told);
    *width = told;
    config->groups[at->row->field]++;
}

static bool is_mixed(const quantiser *config) {
    const uint32_t *groups = config->groups; /* one without activations keeps them whole */
    return config->mixed || (config->of_layers > 0 && config->of_layers != config->bits)
        || (groups[WIDTH_ACTIVATIONS] > 0 && groups[WIDTH_ACTIVATIONS] != groups[WIDTH_WEIGHTS]);
}

static const size_t text_places[TEXTS] = {
    offsetof(quantiser, texts[0]), offsetof(quantiser, texts[1]), offsetof(quantiser, texts[2]),
    offsetof(quantiser, texts[3]),
};
static const sfti_key_take quantiser_takes[] = {
    { "object", take_object, NULL, NULL },
    { "word", sfti_take_slot, "method format type dtype", text_places },
    { "flag", take_flag, "four_bit eight_bit", NULL },
    { "width", take_width, "weights activations", NULL },
    { "blocks", take_blocks, NULL, NULL },
    { "bits", take_bits, NULL, NULL },
};
SFTI_KEYS_OF(sfti_quantiser_keys, "quantiser", quantiser_takes);
SFTI_KEYS_OF(sfti_header_quantiser_keys, "header-quantiser", quantiser_takes);

/* The row of a producer that has the word, with the first of what is told beside it that any such
 * row asks for, else with nothing; *known: some row has the word. */
static const sfti_record_row *row_with(const sfti_records *records, sfti_producer producer,
                                       sft_span word, const sft_span *beside, size_t count,
                                       bool *known) {
    *known = false;
    for (size_t i = 0; i <= count; i++)
        SFTI_EACH_ROW(row, records, SFTI_SAYS, producer) {
            sft_span rest = sfti_row_text(row), one, with;
            if (!sfti_row_may_say(row, word)) continue;
            bool found = false, asks = sfti_row_has(row, "with", &with);
            while (!found && sfti_next_said(&rest, &one)) found = sfti_same_text(one, word);
            *known = *known || found;
            if (!found || asks != (i < count)) continue;
            if (!asks || (beside[i].len >= with.len
                          && sfti_same_text((sft_span){ beside[i].data, with.len }, with)))
                return row;
        }
    return NULL;
}

/* "gptq-4bit", "exl2-4.25bit"; nothing without bits. */
static sft_span by_bits(sft_info *info, const char *id, double bits) {
    char digits[SFTI_DECIMALS_SIZE];
    int len = (int)sfti_decimals(bits, digits);
    if (bits <= 0) return (sft_span){ "", 0 };
    return sfti_info_text(info, "%s-%.*sbit", id, len, digits);
}

/* by=bits, by=widths, or words that a type's name may have: "int4_weight_only". */
static sft_span name_by(sft_info *info, const quantiser *config, const char *id, sft_span by) {
    uint64_t weights = config->widths[WIDTH_WEIGHTS], ours = config->widths[WIDTH_ACTIVATIONS];
    sft_span piece;
    if (is_mixed(config)) return sft_span_cstr(id);
    if (sfti_is(by, "bits")) return by_bits(info, id, config->bits);
    if (ours == 0) ours = 16;
    if (sfti_is(by, "widths") && weights > 0 && weights <= 16 && ours <= 16)
        return sfti_info_text(info, "%s-w%ua%u", id, (unsigned)weights, (unsigned)ours);
    while (sfti_next_piece(&by, ',', &piece))
        if (sfti_contains(config->texts[TEXT_TYPE], sfti_info_cstr(info, piece)))
            return sfti_info_text(info, "%s-%.*s", id, (int)piece.len, piece.data);
    return sft_span_cstr(id);
}

bool sfti_quantiser_declared(sft_info *info, sft_span text, sft_span source,
                             const sfti_keys *keys, sfti_producer producer, int trust) {
    static const sft_span none = { "", 0 };
    quantiser config = { .source = source };
    if (!sfti_info_walk(info, text, source, SFTI_KEY_ROWS(*keys), &config)) return false;
    const bool four = config.flags[FLAG_FOUR_BIT], eight = config.flags[FLAG_EIGHT_BIT];
    sft_span method = config.texts[TEXT_METHOD], by, name = none;
    if (method.len == 0) method = sft_span_cstr(config.alone ? config.alone : "bitsandbytes");
    const sft_span beside[] = {
        eight ? sft_span_cstr("8bit") : none, four ? config.texts[TEXT_TYPE] : none,
        four ? sft_span_cstr("4bit") : none, config.blocks ? sft_span_cstr("blocks") : none,
        config.texts[TEXT_FORMAT], config.texts[TEXT_DTYPE],
    };
    bool known;
    const sfti_record_row *row = row_with(info->records, producer, method, beside,
                                          SFTI_COUNT(beside), &known);
    if (row && sfti_row_has(row, "by", &by))
        name = name_by(info, &config, sfti_row_record(info->records, row)->id, by);
    else if (row) name = sft_span_cstr(sfti_row_record(info->records, row)->id);
    else if (producer == SFTI_SAYS_QUANTISER && (!known || config.texts[TEXT_FORMAT].len > 0))
        name = config.texts[TEXT_METHOD]; /* as written */
    sfti_info_add_text(info, SFT_FACT_QUANTIZATION, name, config.source, trust);
    return true;
}

const char *sfti_map_format(sft_info *info, sft_span text) {
    text = sfti_trim(text);
    const sfti_record *of = sfti_said(info->records, SFTI_QUANTISATION, SFTI_SAYS_MODELSPEC, text,
                                      true, NULL);
    if (of) return of->id;
    of = sfti_said(info->records, SFTI_METHOD, SFTI_SAYS_MODELSPEC, text, true, NULL);
    size_t at = of ? strlen(of->id) + 1 : 0; /* "gptq-4bit" */
    return of && at < text.len ? by_bits(info, of->id, text.data[at] - '0').data : NULL;
}
