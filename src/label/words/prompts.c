/* How a model is called in a prompt: `prompts` of docs/json-info.md. */
#include "base/utf8.h"
#include "label/words/triggers.h"

#include <string.h>

#define PROMPT_MOST 8192 /* bytes; what is longer is no prompt to be pasted */
#define WEIGHT_TRUST 40 /* a weight trusted less is of another file */

static bool is_control(char c) { return (unsigned char)c < ' ' || c == 0x7F; }

/* ── The weight ── */

static bool bound_of(const sfti_fact *told, double *out) {
    return told && told->trust >= WEIGHT_TRUST && sfti_parse_double(told->value.text, out);
}

/* The preferred weight, the middle of its range, or 1, which a single bound may change. */
static double weight_of(const sft_info *info) {
    double weight = 1, low, high;
    if (bound_of(info->facts[SFT_FACT_PREFERRED_WEIGHT], &weight)) return weight;
    bool has_low = bound_of(info->weight_bounds[0], &low);
    bool has_high = bound_of(info->weight_bounds[1], &high);
    if (has_low && has_high) return (low + high) / 2;
    if (has_low && weight < low) return low;
    return has_high && weight > high ? high : weight;
}

/* ── The words ── */

/* "<lora:other:1>" would load another model. */
static bool has_tag(sft_span text) {
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] != '<') continue;
        size_t j = i + 1;
        while (j < text.len && (sfti_word_byte(text.data[j]) || text.data[j] == '_')) j++;
        if (j < text.len && text.data[j] == ':') return true;
    }
    return false;
}

/* "sidecar:x.json:/trainedWords/1" without the number of the element. */
static sft_span list_of(sft_span source) {
    size_t len = source.len;
    while (len > 0 && source.data[len - 1] >= '0' && source.data[len - 1] <= '9') len--;
    return len < source.len && len > 0 && source.data[len - 1] == '/'
               ? (sft_span){ source.data, len } : source;
}

/* Words of the best source belong together. An element with commas is a whole prompt: further
 * elements are alternatives to it, as are words of other folders. */
static bool goes_with(const sfti_trigger *one, const sfti_trigger *best) {
    if (one == best) return true;
    return one->trust >= SFTI_WORD_TRUST && !sfti_find_byte(best->text, ',').data
        && !sfti_find_byte(one->text, ',').data
        && sft_span_equal(one->folder, best->folder)
        && sft_span_equal(list_of(one->source), list_of(best->source));
}

/* Words to be pasted, ", " before each; as many as there is space for. */
static size_t prompt_words(const sft_info *info, char *out) {
    const sfti_trigger *best = info->triggers.count > 0 ? info->ordered[0] : NULL;
    size_t used = 0;
    if (!best || best->trust < SFTI_WORD_TRUST) return 0;
    for (size_t i = 0; i < info->triggers.count; i++) {
        const sfti_trigger *one = info->ordered[i];
        sft_span text = one->prompt;
        if (!goes_with(one, best) || has_tag(text) || text.len + 2 > PROMPT_MOST - used)
            continue;
        if (used > 0) {
            out[used++] = ',';
            out[used++] = ' ';
        }
        for (size_t k = 0; k < text.len; k++)
            out[used++] = is_control(text.data[k]) ? ' ' : text.data[k];
    }
    return used;
}

/* ── The lines ── */

void sfti_info_prompts(sft_info *info) {
    /* Adapters that loaders of `<lora:…>` take; not those of language models. */
    static const char types[] = "lora locon loha lokr glora ia3 oft boft full mixed";
    sft_span none = { "", 0 };
    const char *type = info->adapter.type;
    bool network = type && !info->has_llm && sfti_number_among(types, sft_span_cstr(type)) >= 0;
    const sfti_fact *kind = info->facts[SFT_FACT_KIND];
    bool embedding = kind && sfti_is(kind->value.text, "embedding");
    network = network && kind && sfti_is(kind->value.text, "adapter");
    info->a1111 = info->comfy = none;
    const sft_span stem = info->stem;
    if ((!network && !embedding) || stem.len == 0 || stem.len > PROMPT_MOST
        || sfti_utf8_check(stem.data, stem.len) != stem.len)
        return;
    /* A name ends at these in a tag; neither they nor control bytes can be escaped there. */
    for (size_t i = 0; i < stem.len; i++)
        if (is_control(stem.data[i]) || strchr("<>:", stem.data[i])) return;
    if (network) {
        char digits[SFTI_DECIMALS_SIZE], words[PROMPT_MOST];
        size_t weight = sfti_decimals(weight_of(info), digits), len = prompt_words(info, words);
        if (weight == 0) digits[weight++] = '1';
        info->a1111 = info->comfy = sfti_info_text(
            info, "<lora:%.*s:%.*s>%s%.*s", (int)stem.len, stem.data, (int)weight, digits,
            len ? " " : "", (int)len, words);
    } else {
        info->a1111 = sfti_prompt_of(info, stem);
        /* ComfyUI takes an embedding's name up to a blank. */
        if (!sfti_find_byte(stem, ' ').data && !sfti_ends(stem, ","))
            info->comfy = sfti_info_join(info, "embedding:", info->a1111);
    }
}
