/* What a model's file name hints at, where nothing better is known. */
#include "label/info.h"

#include "base/json_lex.h"

#include <string.h>

#define NAME_TRUST 20

typedef struct name_row {
    /* In small letters as the name has it in any case, "-" for each of "-_. "; in capitals as the
     * name has it; "~" at the end: only where nothing else is said to be high or low. */
    const char *word;
    sft_fact field;
    const char *value;
    const char *family; /* begins the architecture, or is the kind, it makes sense for; "" = any */
} name_row;

static const name_row name_rows[] = {
    { "sd15", SFT_FACT_ARCHITECTURE, "sd-1", "" },
    { "sd1-5", SFT_FACT_ARCHITECTURE, "sd-1", "" },
    { "sd-1-5", SFT_FACT_ARCHITECTURE, "sd-1", "" },
    { "sd21", SFT_FACT_ARCHITECTURE, "sd-2", "" },
    { "sd2-1", SFT_FACT_ARCHITECTURE, "sd-2", "" },
    { "sdxl", SFT_FACT_ARCHITECTURE, "sdxl", "" },
    { "sd3", SFT_FACT_ARCHITECTURE, "sd-3", "" },
    { "sd3-5", SFT_FACT_ARCHITECTURE, "sd-3", "" },
    { "flux1", SFT_FACT_ARCHITECTURE, "flux.1", "" },
    { "flux-1", SFT_FACT_ARCHITECTURE, "flux.1", "" },
    { "flux2", SFT_FACT_ARCHITECTURE, "flux.2", "" },
    { "flux-2", SFT_FACT_ARCHITECTURE, "flux.2", "" },
    { "wan2-1", SFT_FACT_ARCHITECTURE, "wan-2.1", "" },
    { "wan21", SFT_FACT_ARCHITECTURE, "wan-2.1", "" },
    { "wan2-2", SFT_FACT_ARCHITECTURE, "wan-2.2", "" },
    { "wan22", SFT_FACT_ARCHITECTURE, "wan-2.2", "" },
    { "qwen-image", SFT_FACT_ARCHITECTURE, "qwen-image", "" },
    { "z-image", SFT_FACT_ARCHITECTURE, "z-image", "" },
    { "high-noise", SFT_FACT_VARIANT, "high-noise", "wan" },
    { "highnoise", SFT_FACT_VARIANT, "high-noise", "wan" },
    { "low-noise", SFT_FACT_VARIANT, "low-noise", "wan" },
    { "lownoise", SFT_FACT_VARIANT, "low-noise", "wan" },
    { "HIGH", SFT_FACT_VARIANT, "high-noise", "wan" },
    { "LOW", SFT_FACT_VARIANT, "low-noise", "wan" },
    { "high~", SFT_FACT_VARIANT, "high-noise", "wan" },
    { "low~", SFT_FACT_VARIANT, "low-noise", "wan" },
    { "i2v", SFT_FACT_VARIANT, "i2v", "wan" },
    { "t2v", SFT_FACT_VARIANT, "t2v", "wan" },
    { "i2v", SFT_FACT_VARIANT, "i2v", "hunyuan-video" },
    { "t2v", SFT_FACT_VARIANT, "t2v", "hunyuan-video" },
    { "i2v", SFT_FACT_VARIANT, "i2v", "ltx" },
    { "t2v", SFT_FACT_VARIANT, "t2v", "ltx" },
    { "i2v", SFT_FACT_VARIANT, "i2v", "cogvideox" },
    { "edit", SFT_FACT_VARIANT, "edit", "qwen-image" },
    { "edit", SFT_FACT_VARIANT, "edit", "z-image" },
    { "edit", SFT_FACT_VARIANT, "edit", "boogu" },
    { "edit", SFT_FACT_VARIANT, "edit", "mage-flow" },
    { "kontext", SFT_FACT_VARIANT, "kontext", "flux.1" },
    { "fill", SFT_FACT_VARIANT, "fill", "flux.1" },
    { "inpaint", SFT_FACT_VARIANT, "inpaint", "sd" },
    { "inpainting", SFT_FACT_VARIANT, "inpaint", "sd" },
    { "inpaint", SFT_FACT_VARIANT, "inpaint", "flux.1" },
    { "inpainting", SFT_FACT_VARIANT, "inpaint", "flux.1" },
    { "inpaint", SFT_FACT_VARIANT, "inpaint", "qwen-image" },
    { "turbo", SFT_FACT_VARIANT, "turbo", "" },
    { "lightning", SFT_FACT_VARIANT, "lightning", "sd" },
    { "lightning", SFT_FACT_VARIANT, "lightning", "qwen-image" },
    { "lightning", SFT_FACT_VARIANT, "lightning", "wan" },
    { "hyper", SFT_FACT_VARIANT, "hyper", "sd" },
    { "hyper", SFT_FACT_VARIANT, "hyper", "flux.1" },
    { "lcm", SFT_FACT_VARIANT, "lcm", "" },
    { "2x", SFT_FACT_VARIANT, "2x", "upscaler" },
    { "x2", SFT_FACT_VARIANT, "2x", "upscaler" },
    { "x2plus", SFT_FACT_VARIANT, "2x", "upscaler" },
    { "3x", SFT_FACT_VARIANT, "3x", "upscaler" },
    { "x3", SFT_FACT_VARIANT, "3x", "upscaler" },
    { "4x", SFT_FACT_VARIANT, "4x", "upscaler" },
    { "x4", SFT_FACT_VARIANT, "4x", "upscaler" },
    { "x4plus", SFT_FACT_VARIANT, "4x", "upscaler" },
    { "8x", SFT_FACT_VARIANT, "8x", "upscaler" },
    { "x8", SFT_FACT_VARIANT, "8x", "upscaler" },
    { "pony", SFT_FACT_BASE_MODEL, "Pony", "sdxl" },
    { "illustrious", SFT_FACT_BASE_MODEL, "Illustrious", "sdxl" },
    { "noobai", SFT_FACT_BASE_MODEL, "NoobAI", "sdxl" },
    { "vpred", SFT_FACT_PREDICTION_TYPE, "v", "sd" },
    { "v-pred", SFT_FACT_PREDICTION_TYPE, "v", "sd" },
    { "v-prediction", SFT_FACT_PREDICTION_TYPE, "v", "sd" },
};

/* ── Words of a name ── */

static bool name_capital(char c) {
    return c >= 'A' && c <= 'Z';
}

static bool name_gap(char c) {
    return c == '_' || c == '.' || c == ' ' || c == '-';
}

/* After a gap, or at a hump of "camelCase": "foxTurbo", "v21Turbo", "XLTurbo". */
static bool word_begins(sft_span name, size_t at) {
    if (at == 0 || !sfti_word_byte(name.data[at - 1])) return true;
    if (!name_capital(name.data[at])) return false;
    char after = at + 1 < name.len ? name.data[at + 1] : '\0';
    return !name_capital(name.data[at - 1]) || (after >= 'a' && after <= 'z');
}

/* Before a gap, at a hump ("ponyXL", "4xNomos"), or where a number follows ("vPred10"). */
static bool word_ends(sft_span name, size_t end) {
    if (end == name.len || !sfti_word_byte(name.data[end])) return true;
    char last = name.data[end - 1], next = name.data[end];
    if (sfti_lex_digit(next)) return !sfti_lex_digit(last);
    return name_capital(next) && !name_capital(last);
}

static bool word_at(sft_span name, size_t at, sft_span word) {
    if (word.len > name.len - at || !word_begins(name, at) || !word_ends(name, at + word.len))
        return false;
    for (size_t i = 0; i < word.len; i++) {
        char have = name.data[at + i], want = word.data[i];
        if (name_capital(have) && !name_capital(want)) have = (char)(have | 0x20);
        if (want == '-' ? !name_gap(have) : have != want) return false;
    }
    return true;
}

/* What may follow "high" and "low" that is no matter of them: "high_lora_v2", not "high_heels". */
static bool ends_or_counts(sft_span rest) {
    static const char *const words[] = { "lora", "model", "noise", "fp", "bf", "v", "r", "rank",
                                         "e", "epoch", "step", "steps", "k" };
    if (rest.len == 0) return true;
    for (size_t i = 0; i < SFTI_COUNT(words); i++)
        if (word_at(rest, 1, sft_span_cstr(words[i]))) return name_gap(*rest.data);
    return sfti_lex_digit(rest.data[name_gap(*rest.data) && rest.len > 1]);
}

static bool name_has(sft_span name, sft_span word) {
    bool alone = word.data[word.len - 1] == '~';
    if (alone) word.len--;
    for (size_t at = 0; at + word.len <= name.len; at++)
        if (word_at(name, at, word) && (!alone || ends_or_counts(sfti_from(name, at + word.len))))
            return true;
    return false;
}

static bool fits_family(const sft_info *info, const char *family) {
    const sfti_fact *best = sfti_info_best(info, SFT_FACT_ARCHITECTURE);
    const sfti_fact *kind = sfti_info_best(info, SFT_FACT_KIND);
    if (*family == '\0' || (best && sfti_starts_with(best->value.text, family))) return true;
    return kind && sfti_is(kind->value.text, family);
}

void sfti_info_file_name(sft_info *info) {
    sft_span source = sft_span_cstr("filename");
    if (info->stem.len == 0) return;
    bool embedding = info->vectors > 0 && !sfti_generic_stem(info->stem);
    int trust = embedding ? 85 : sfti_telling_stem(info->stem) ? 45 : 30;
    sfti_info_add_text(info, SFT_FACT_NAME, info->stem, source, trust);
    for (size_t i = 0; i < SFTI_COUNT(name_rows); i++) {
        const name_row *row = &name_rows[i];
        if (!fits_family(info, row->family) || !name_has(info->stem, sft_span_cstr(row->word)))
            continue;
        sfti_info_add_text(info, row->field, sft_span_cstr(row->value), source, NAME_TRUST);
    }
}
