/* What a model's file name hints at, where nothing better is known. */
#include "label/info.h"

#include "base/json_lex.h"

#define NAME_TRUST 20

/* Words of rows "file": in small letters as the name has it in any case, "-" for each of "-_. ";
 * in capitals as the name has it; "~" at the end: only where nothing else is said to be high or
 * low. */

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

static bool word_at(sft_span name, size_t at, sft_span word) {
    const size_t end = at + word.len;
    if (word.len > name.len - at || !word_begins(name, at)) return false;
    for (size_t i = 0; i < word.len; i++) {
        char have = name.data[at + i], want = word.data[i];
        if (name_capital(have) && !name_capital(want)) have = (char)(have | 0x20);
        if (want == '-' ? !name_gap(have) : have != want) return false;
    }
    if (end == name.len || !sfti_word_byte(name.data[end])) return true;
    /* It ends at a hump, too ("ponyXL", "4xNomos"), and where a number follows ("vPred10"). */
    char last = name.data[end - 1], next = name.data[end];
    if (sfti_lex_digit(next)) return !sfti_lex_digit(last);
    return name_capital(next) && !name_capital(last);
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

/* "in=wan,upscaler": what an architecture begins with that it makes sense for, or a kind. */
static bool fits_family(const sft_info *info, const sfti_record_row *row) {
    const sfti_fact *best = sfti_info_best(info, SFT_FACT_ARCHITECTURE);
    const sfti_fact *kind = sfti_info_best(info, SFT_FACT_KIND);
    sft_span rest, family;
    if (!sfti_row_has(row, "in", &rest)) return true;
    while (sfti_next_piece(&rest, ',', &family)) {
        if (kind && sft_span_equal(kind->value.text, family)) return true;
        if (best && best->value.text.len >= family.len
            && sfti_same_text((sft_span){ best->value.text.data, family.len }, family))
            return true;
    }
    return false;
}

void sfti_info_file_name(sft_info *info) {
    static const sft_fact fields[SFTI_RECORD_TYPES] = {
        [SFTI_MODEL] = SFT_FACT_ARCHITECTURE, [SFTI_VARIANT] = SFT_FACT_VARIANT,
        [SFTI_PREDICTION] = SFT_FACT_PREDICTION_TYPE,
    };
    sft_span source = sft_span_cstr("filename"), stem = info->stem;
    uint32_t firsts = 0; /* of words in the name */
    if (stem.len == 0) return;
    bool embedding = info->vectors > 0 && !sfti_generic_stem(stem);
    int trust = embedding ? 85 : sfti_telling_stem(stem) ? 45 : 30;
    sfti_info_add_text(info, SFT_FACT_NAME, stem, source, trust);
    for (size_t i = 0; i < stem.len; i++) {
        if (word_begins(stem, i)) firsts |= sfti_first_bit(stem.data[i]);
        if (name_gap(stem.data[i])) firsts |= sfti_first_bit('-');
    }
    SFTI_EACH_ROW(row, info->records, SFTI_FILE_WORDS, 0) {
        sft_span rest = sfti_row_text(row), word, label;
        bool found = false;
        while (row->firsts & firsts && !found && sfti_next_said(&rest, &word))
            found = name_has(stem, word);
        if (!found || !fits_family(info, row)) continue;
        const sfti_record *of = sfti_row_record(info->records, row);
        bool base = sfti_row_has(row, "label", &label);
        info->said = row;
        sfti_info_add_text(info, base ? SFT_FACT_BASE_MODEL : fields[of->type],
                           base ? label : sft_span_cstr(of->id), source, NAME_TRUST);
        info->said = NULL;
    }
}
