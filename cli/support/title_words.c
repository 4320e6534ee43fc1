/* What people call the ids of a result object: labels of records. */
#include "support/titles.h"

#include "support/records.h"
#include "support/words.h"

#include <string.h>

sft_span cli_id_words(sfti_record_type type, sft_span id) {
    const sfti_record *record = sfti_record_find(cli_records(), type, id);
    return record && record->label.len ? record->label : id;
}

/* An adapter's type has words, too. */
sft_span cli_kind_words(sft_span id) {
    sft_span words = cli_id_words(SFTI_KIND, id);
    return words.data == id.data ? cli_id_words(SFTI_METHOD, id) : words;
}

/* On whatever system it was written. */
static bool ends_folder(char c) {
    return c == '/' || c == '\\';
}

sft_span cli_base_label_words(sft_span label) {
    while (label.len > 1 && ends_folder(label.data[label.len - 1])) label.len--;
    size_t name = label.len;
    while (name > 0 && !ends_folder(label.data[name - 1])) name--;
    if (name < label.len) label = (sft_span){ label.data + name, label.len - name };
    if (cli_ends_with(label, ".safetensors")) label.len -= sizeof ".safetensors" - 1;
    else if (cli_ends_with(label, ".ckpt")) label.len -= sizeof ".ckpt" - 1;
    const sfti_record_row *row;
    sft_span words;
    return sfti_said(cli_records(), SFTI_MODEL, SFTI_SAYS_CIVITAI, label, true, &row)
        && sfti_row_has(row, "title", &words) ? words : label;
}

/* ── Composed ids ── */

static void put_words(char buffer[CLI_TITLE_SIZE], size_t *used, const char *before,
                          sft_span words) {
    size_t room = CLI_TITLE_SIZE - *used, gap = *used ? strlen(before) : 0;
    if (gap + words.len < room) {
        memcpy(buffer + *used, before, gap);
        memcpy(buffer + *used + gap, words.data, words.len);
        *used += gap + words.len;
    }
}

/* The part of a variant that is that one. */
static bool has_variant(sft_span variant, const char *id) {
    sft_span one;
    while (variant.len && cli_next_part(&variant, '+', &one))
        if (cli_is(one, id)) return true;
    return false;
}

/* In the order of the records: the task, what makes it special, the size; noise behind a comma. */
sft_span cli_variant_words(sft_span variant, char buffer[CLI_TITLE_SIZE]) {
    const sfti_records *records = cli_records();
    sft_span one, rest = variant;
    size_t used = 0;
    for (size_t i = 0; variant.len && i < sfti_record_count(records); i++) {
        const sfti_record *record = sfti_record_at(records, i);
        if (record->type != SFTI_VARIANT || !record->label.len || !has_variant(variant, record->id))
            continue;
        bool apart = cli_is(sfti_record_group(records, SFTI_VARIANT, sft_span_cstr(record->id)),
                            "noise");
        put_words(buffer, &used, apart ? ", " : " ", record->label);
    }
    while (rest.len && cli_next_part(&rest, '+', &one))
        if (cli_id_words(SFTI_VARIANT, one).data == one.data) put_words(buffer, &used, " ", one);
    return (sft_span){ buffer, used };
}

/* "GPTQ" for "gptq", "GPTQ 4-bit" for "gptq-4bit": the method's name, "Nbit" as "N-bit", all else
 * in capitals. */
sft_span cli_quantization_words(sft_span id, char buffer[CLI_TITLE_SIZE]) {
    sft_span words = cli_id_words(SFTI_QUANTISATION, id), method = id;
    size_t used = 0;
    if (words.data == id.data) words = cli_id_words(SFTI_METHOD, id);
    if (words.data != id.data) return words;
    while (method.len > 0 && words.data == id.data) {
        while (method.len > 0 && method.data[method.len - 1] != '-') method.len--;
        if (method.len > 0) method.len--;
        words = cli_id_words(SFTI_METHOD, method);
    }
    if (method.len == 0) return id;
    sft_span rest = { id.data + method.len + 1, id.len - method.len - 1 };
    bool bits = cli_ends_with(rest, "bit");
    put_words(buffer, &used, "", words);
    if (bits) rest.len -= 3;
    for (size_t k = 0; k < rest.len; k++) {
        char c = bits ? rest.data[k] : cli_upper(rest.data[k]);
        put_words(buffer, &used, k ? "" : " ", (sft_span){ &c, 1 });
    }
    if (bits) put_words(buffer, &used, "-", sft_span_cstr("bit"));
    return (sft_span){ buffer, used };
}
