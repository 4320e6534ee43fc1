/* Common takes of rows: what a value becomes. */
#include "label/cursor.h"
#include "text/formats.h"

#include <string.h>

#define ELEMENTS_MOST 500 /* of a list: none of a file that means well is longer */

/* The fact that the row names. */
static void put_text(sfti_cursor *at, sft_span text) {
    sfti_put_span(at, (sft_fact)at->row->field, text);
}

static bool scalar(const sfti_cursor *at, sfti_fact_value *out) {
    if (at->json->type == SFTI_JSON_STRING) *out = sfti_text_value(at->text);
    else if (sfti_at_number(at)) *out = sfti_number_value(at->text);
    else if (sfti_at_bool(at) >= 0) *out = sfti_bool_value(sfti_at_bool(at) == 1);
    else return false;
    return true;
}

/* ── Lists in a text ── */

/* "['fox', 'wolf']" and '["fox", "wolf"]', as Python and JSON spell them, as JSON; empty if the
 * text is no list of texts. */
static sft_span list_of_texts(sft_info *info, sft_span text) {
    sft_span none = { "", 0 };
    size_t len = 0;
    char quote = '\0';
    text = sfti_trim(text);
    if (!sfti_begins(text, "[") || !sfti_ends(text, "]")) return none;
    char *out = sfti_info_take(info, 2 * text.len);
    if (!out) return none;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (quote == '\0') {
            if (c == '\0' || !strchr("[], '\"", c)) return none;
            if (c == '\'' || c == '"') quote = c;
            out[len++] = quote ? '"' : c;
        } else if (c == quote) {
            quote = '\0';
            out[len++] = '"';
        } else {
            if (c == '\\' && i + 1 < text.len) {
                c = text.data[++i];
                if (c != '\'') out[len++] = '\\';
            } else if (c == '"') {
                out[len++] = '\\';
            }
            out[len++] = c;
        }
    }
    return quote ? none : (sft_span){ out, len };
}

/* Hands the elements of such a list to a take, whose context is the cursor of the whole. */
static bool took_list(sfti_cursor *at, void (*take)(sfti_cursor *at)) {
    const sfti_row row = { "/*", take, at->row->field, at->row->trust, at->row->word };
    if (at->json->type != SFTI_JSON_STRING) return false;
    sft_span list = list_of_texts(at->info, at->text);
    return list.len > 0
        && sfti_info_walk(at->info, list, sfti_cursor_source(at), &row, 1, at);
}

/* ── Facts ── */

void sfti_take_fact(sfti_cursor *at) {
    sfti_fact_value value;
    if (scalar(at, &value))
        sfti_info_add(at->info, (sft_fact)at->row->field, value, sfti_cursor_source(at),
                      at->row->trust);
}

static void value_number(sfti_cursor *at) {
    sft_span text = sfti_trim(at->text);
    bool told = sfti_at_number(at) || at->json->type == SFTI_JSON_STRING;
    if (told && sfti_is_number(text))
        sfti_info_add(at->info, (sft_fact)at->row->field, sfti_number_value(text),
                  sfti_cursor_source(at), at->row->trust);
}

static void value_weight(sfti_cursor *at) {
    double weight;
    if (sfti_parse_double(at->text, &weight) && weight != 0) value_number(at);
}

static void value_bool(sfti_cursor *at) {
    if (sfti_at_bool(at) >= 0) sfti_take_fact(at);
}

void sfti_take_item(sfti_cursor *at) {
    if (at->index < ELEMENTS_MOST && sfti_at_text(at))
        sfti_info_add_item(at->info, (sft_fact)at->row->field, at->text,
                           sfti_cursor_source_above(at, 1), at->row->trust);
}

static void list_item(sfti_cursor *at) {
    if (at->index < ELEMENTS_MOST && sfti_at_text(at))
        sfti_info_add_item(at->info, (sft_fact)at->row->field, at->text,
                           sfti_cursor_source(at->ctx), at->row->trust);
}

static void value_commas(sfti_cursor *at) {
    if (sfti_at_text(at) && !took_list(at, list_item))
        sfti_info_add_commas(at->info, (sft_fact)at->row->field, at->text, sfti_cursor_source(at),
                             at->row->trust);
}

void sfti_take_html(sfti_cursor *at) {
    if (sfti_at_text(at)) put_text(at, sfti_plain_text(at->info, at->text));
}

static void value_size(sfti_cursor *at) {
    char size[SFTI_DATE_SIZE];
    sft_span text = { size, sfti_resolution(at->text, size) };
    put_text(at, sfti_info_copy(at->info, text));
}

static void value_date(sfti_cursor *at) {
    char date[SFTI_DATE_SIZE];
    sft_span text = { date, sfti_iso_date(at->text, date) };
    put_text(at, sfti_info_copy(at->info, text));
}

void sfti_take_prose(sfti_cursor *at) {
    sft_span text = at->text, source;
    if (!sfti_at_text(at)) return;
    bool html = !at->row->word || strcmp(at->row->word, "plain") != 0 || sfti_contains(text, "</")
             || sfti_contains(text, "<br");
    if (html) text = sfti_plain_text(at->info, text);
    put_text(at, text);
    source = sfti_cursor_source(at);
    sfti_info_scan_text(at->info, at->text, source, false);
    if (at->row->word && strcmp(at->row->word, "words") == 0)
        sfti_info_trigger_sentence(at->info, text, source, 70);
}

void sfti_take_prediction(sfti_cursor *at) {
    if (sfti_at_text(at))
        sfti_put_here(at, SFT_FACT_PREDICTION_TYPE,
                      sfti_map_prediction(at->info->records, at->text, &at->info->said));
}

static void value_spec(sfti_cursor *at) {
    const char *kind;
    sft_span id = sfti_trim(at->text), variant;
    if (!sfti_at_text(at)) return;
    const char *architecture = sfti_map_modelspec(at->info->records, id, &kind, &variant,
                                                  &at->info->said);
    id.len -= sfti_find_byte(id, '/').len;
    sfti_put_here(at, SFT_FACT_KIND, kind);
    bool vae = kind && strcmp(kind, "vae") == 0; /* then id is what it was made for */
    if (architecture || vae)
        sfti_info_declared_base(at->info, architecture, id, sfti_cursor_source(at), at->row->trust);
    else sfti_info_add_written(at->info, id, sfti_cursor_source(at), at->row->trust);
    if (variant.len > 0)
        sfti_put_span(at, SFT_FACT_VARIANT, variant);
}

static void value_class(sfti_cursor *at) {
    const char *architecture, *kind;
    if (!sfti_at_text(at)) return;
    sfti_info_declared_class(at->info, at->text, sfti_cursor_source(at), at->row->trust);
    (void)sfti_map_class_name(at->info->records, at->text, &architecture, &kind, &at->info->said);
    if (at->row->field == 1) sfti_put_here(at, SFT_FACT_KIND, kind);
}

/* Within one class it may be a variant: "vace" of WanModel. */
static void value_model_type(sfti_cursor *at) {
    const char *architecture, *kind;
    const sfti_record *variant = sfti_record_find(at->info->records, SFTI_VARIANT, at->text);
    if (!sfti_at_text(at)) return;
    if (sfti_map_model_type(at->info->records, at->text, &architecture, &kind,
                            &at->info->said)) {
        sfti_put_here(at, SFT_FACT_ARCHITECTURE, architecture);
        if (at->row->field == 1) sfti_put_here(at, SFT_FACT_KIND, kind);
    } else if (variant) {
        sfti_put_here(at, SFT_FACT_VARIANT, variant->id);
    }
}

void sfti_take_base_file(sfti_cursor *at) {
    if (sfti_at_text(at))
        sfti_info_base_checkpoint(at->info, at->text, sfti_cursor_source(at), at->row->trust);
}

void sfti_take_declared(sfti_cursor *at) {
    sft_info *info = at->info;
    if (sfti_at_number(at) || sfti_at_text(at))
        sfti_info_declare(info, at->row->field ? &info->declared_alpha : &info->declared_rank,
                          at->text, sfti_cursor_source(at), at->row->trust);
}

void sfti_take_alpha_pattern(sfti_cursor *at) {
    double alpha, *least = &at->info->adapter.alpha_pattern[0], *most = least + 1;
    if (!sfti_at_number(at) || !sfti_parse_double(at->text, &alpha) || !(alpha > 0)) return;
    if (*least == 0 || alpha < *least) *least = alpha;
    if (alpha > *most) *most = alpha;
}

/* ── Training ── */

void sfti_take_train(sfti_cursor *at) {
    sfti_fact_value value;
    if (scalar(at, &value)) sfti_info_train(at->info, (sfti_training_key)at->row->field, value);
}

static void value_train_size(sfti_cursor *at) {
    char size[SFTI_DATE_SIZE];
    sft_span text = { size, sfti_resolution(at->text, size) };
    sfti_info_train(at->info, (sfti_training_key)at->row->field,
                    sfti_text_value(sfti_info_copy(at->info, text)));
}

static void value_train_word(sfti_cursor *at) {
    sfti_info_train(at->info, (sfti_training_key)at->row->field,
                    sfti_text_value(sft_span_cstr(at->row->word)));
}

/* ── Records ── */

static void one_trigger(sfti_cursor *at) {
    if (at->index < ELEMENTS_MOST && sfti_at_text(at))
        sfti_info_trigger(at->info, at->text, sfti_cursor_source(at), at->row->trust,
                          (int)at->index);
}

void sfti_take_trigger(sfti_cursor *at) {
    if (!took_list(at, one_trigger)) one_trigger(at);
}

void sfti_take_claim(sfti_cursor *at) {
    if (sfti_at_text(at))
        sfti_info_claim(at->info, at->row->word, at->text, sfti_cursor_source(at), NULL);
}

void sfti_take_note(sfti_cursor *at) {
    if (sfti_at_text(at)) sfti_info_note(at->info, at->text, sfti_cursor_source(at));
}

static void value_links(sfti_cursor *at) {
    if (sfti_at_text(at))
        sfti_info_scan_text(at->info, at->text, sfti_cursor_source(at), at->row->field == 1);
}

static void value_preview(sfti_cursor *at) {
    if (sfti_at_text(at)) sfti_info_preview(at->info, at->text, sfti_cursor_source(at));
}

static void value_private(sfti_cursor *at) {
    sft_span text = sfti_trim(at->text);
    bool empty = sft_span_equal(text, sft_span_cstr("{}"))
              || sft_span_equal(text, sft_span_cstr("[]"));
    bool numbered = at->row->field && sfti_json_is_numbered(text);
    if (!empty && !numbered) sfti_info_private(at->info, at->key, at->row->word);
}

static void value_negative(sfti_cursor *at) {
    int told = sfti_at_bool(at);
    if (sfti_at_text(at) && sfti_same_letters(sfti_trim(at->text), "true")) told = 1;
    if (sfti_at_text(at) && sfti_same_letters(sfti_trim(at->text), "false")) told = 0;
    if (told >= 0) at->info->negative = told;
}

void sfti_take_switch(sfti_cursor *at) {
    if (sfti_at_bool(at) == 1)
        *(at->row->field ? &at->info->adapter.rslora : &at->info->adapter.dora) = true;
}

static const sfti_key_take common_takes[] = {
    { "fact", sfti_take_fact, SFTI_TAKES_FACT, NULL },
    { "number", value_number, SFTI_TAKES_FACT, NULL },
    { "weight", value_weight, SFTI_TAKES_FACT, NULL },
    { "bool", value_bool, SFTI_TAKES_FACT, NULL },
    { "item", sfti_take_item, SFTI_TAKES_FACT, NULL },
    { "commas", value_commas, SFTI_TAKES_FACT, NULL },
    { "html", sfti_take_html, SFTI_TAKES_FACT, NULL },
    { "size", value_size, SFTI_TAKES_FACT, NULL },
    { "date", value_date, SFTI_TAKES_FACT, NULL },
    { "prose", sfti_take_prose, SFTI_TAKES_FACT, NULL },
    { "prediction", sfti_take_prediction, NULL, NULL },
    { "spec", value_spec, NULL, NULL },
    { "class", value_class, "- kind", NULL },
    { "type", value_model_type, "- kind", NULL },
    { "base_file", sfti_take_base_file, NULL, NULL },
    { "declared", sfti_take_declared, "rank alpha", NULL },
    { "train", sfti_take_train, SFTI_TAKES_TRAINING, NULL },
    { "train_size", value_train_size, SFTI_TAKES_TRAINING, NULL },
    { "train_word", value_train_word, SFTI_TAKES_TRAINING, NULL },
    { "trigger", sfti_take_trigger, NULL, NULL },
    { "claim", sfti_take_claim, NULL, NULL },
    { "note", sfti_take_note, NULL, NULL },
    { "links", value_links, "- only", NULL },
    { "preview", value_preview, NULL, NULL },
    { "private", value_private, "- numbered", NULL },
    { "negative", value_negative, NULL, NULL },
    { "switch", sfti_take_switch, "dora rslora", NULL },
};
const sfti_key_takes sfti_common_takes = { SFTI_ROWS(common_takes) };

/* ── Slots ── */

static void *slot_at(const sfti_cursor *at) {
    return (char *)at->ctx + at->row->field;
}

void sfti_take_slot(sfti_cursor *at) {
    sft_span *slot = slot_at(at);
    if (sfti_at_text(at) && slot->len == 0) *slot = sfti_trim(at->text);
}

void sfti_take_slot_uint(sfti_cursor *at) {
    uint64_t told = sfti_at_uint(at);
    if (told > 0) *(uint64_t *)slot_at(at) = told;
}

void sfti_take_slot_bool(sfti_cursor *at) {
    if (sfti_at_bool(at) >= 0) *(int *)slot_at(at) = sfti_at_bool(at);
}
