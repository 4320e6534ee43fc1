#include "info/render/render.h"

#include <string.h>

/* ── Values ── */

void sfti_put_text(sfti_json_writer *w, const char *key, sft_span text) {
    sfti_json_key(w, key);
    if (text.len == 0) sfti_json_null(w);
    else sfti_json_span(w, text);
}

void sfti_put_cstr(sfti_json_writer *w, const char *key, const char *text) {
    sfti_json_key(w, key);
    sfti_json_cstr(w, text);
}

void sfti_put_uint(sfti_json_writer *w, const char *key, uint64_t value) {
    sfti_json_key(w, key);
    sfti_json_uint(w, value);
}

void sfti_put_some(sfti_json_writer *w, const char *key, uint64_t value) {
    sfti_json_key(w, key);
    if (value == 0) sfti_json_null(w);
    else sfti_json_uint(w, value);
}

void sfti_put_bool(sfti_json_writer *w, const char *key, bool value) {
    sfti_json_key(w, key);
    sfti_json_bool(w, value);
}

void sfti_put_maybe(sfti_json_writer *w, const char *key, int value) {
    sfti_json_key(w, key);
    if (value < 0) sfti_json_null(w);
    else sfti_json_bool(w, value != 0);
}

void sfti_put_double(sfti_json_writer *w, const char *key, double value) {
    char digits[32];
    size_t end = sizeof digits, at = end;
    bool any = false, minus = value < 0;
    sfti_json_key(w, key);
    if (minus) value = -value;
    if (!(value < 1e12)) {
        sfti_json_null(w);
        return;
    }
    uint64_t scaled = (uint64_t)(value * 1e6 + 0.5);
    for (size_t i = 0; i < 6; i++, scaled /= 10) {
        any = any || scaled % 10;
        if (any) digits[--at] = (char)('0' + scaled % 10);
    }
    if (any) digits[--at] = '.';
    do digits[--at] = (char)('0' + scaled % 10);
    while (scaled /= 10);
    if (minus) digits[--at] = '-';
    sfti_json_raw(w, (sft_span){ digits + at, end - at });
}

void sfti_put_value(sfti_json_writer *w, const sfti_value *value) {
    switch (value->type) {
    case SFTI_TEXT: sfti_json_span(w, value->text); break;
    case SFTI_BOOL: sfti_json_raw(w, value->text); break;
    case SFTI_NUMBER:
        if (sfti_is_number(value->text)) sfti_json_raw(w, value->text);
        else sfti_json_span(w, value->text);
        break;
    case SFTI_LIST:
        sfti_json_open(w, '[');
        for (size_t i = 0; i < value->count; i++) sfti_json_span(w, value->items[i]);
        sfti_json_close(w, ']');
    }
}

void sfti_put_candidate(sfti_json_writer *w, const sfti_fact *fact) {
    sfti_json_key(w, "value");
    sfti_put_value(w, &fact->value);
    sfti_json_key(w, "source");
    sfti_json_span(w, fact->source);
    sfti_put_uint(w, "trust", (uint64_t)(fact->trust > 0 ? fact->trust : 0));
}

void sfti_put_components(sfti_json_writer *w, const char *key, const sfti_list *list) {
    sfti_json_key(w, key);
    sfti_json_open(w, '[');
    for (const sfti_component *one = list->first; one; one = one->next) {
        sfti_json_open(w, '{');
        sfti_put_cstr(w, "part", one->part);
        sfti_put_cstr(w, "architecture", one->architecture);
        sfti_put_cstr(w, "dtype", one->dtype);
        sfti_put_uint(w, "bytes", one->bytes);
        sfti_put_uint(w, "parameters", one->parameters);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

void sfti_put_json(sfti_json_writer *w, const char *key, sft_span text) {
    sfti_json_key(w, key);
    sfti_json_text(w, text);
}

/* ── The model ── */

static void put_fact(sfti_json_writer *w, const sft_info *info, sft_fact field) {
    const sfti_fact *fact = info->facts[field];
    sfti_json_key(w, sft_fact_name(field));
    if (!fact) {
        sfti_json_null(w);
        return;
    }
    sfti_json_open(w, '{');
    sfti_put_candidate(w, fact);
    sfti_json_key(w, "others");
    sfti_json_open(w, '[');
    for (fact = fact->next; fact; fact = fact->next) {
        sfti_json_open(w, '{');
        sfti_put_candidate(w, fact);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
    sfti_json_close(w, '}');
}

static void put_facts(sfti_json_writer *w, const sft_info *info, sft_fact first, sft_fact last) {
    for (int i = (int)first; i <= (int)last; i++) put_fact(w, info, (sft_fact)i);
}

static void put_model_notes(sfti_json_writer *w, const sft_info *info) {
    sfti_json_key(w, "notes");
    sfti_json_open(w, '[');
    for (const sfti_note *note = info->notes.first; note; note = note->next) {
        sfti_json_open(w, '{');
        sfti_put_text(w, "text", note->text);
        sfti_put_text(w, "source", note->source);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

static void put_texts(sfti_json_writer *w, const char *key, const sfti_list *list) {
    sfti_json_key(w, key);
    sfti_json_open(w, '[');
    for (const sfti_note *note = list->first; note; note = note->next)
        sfti_json_span(w, note->text);
    sfti_json_close(w, ']');
}

static void put_llm(sfti_json_writer *w, const sft_info *info) {
    sfti_json_key(w, "llm");
    if (!info->has_llm) {
        sfti_json_null(w);
        return;
    }
    sfti_json_open(w, '{');
    sfti_put_some(w, "layers", info->llm.layers);
    sfti_put_some(w, "hidden", info->llm.hidden);
    sfti_put_some(w, "heads", info->llm.heads);
    sfti_put_some(w, "kv_heads", info->llm.kv_heads);
    sfti_put_some(w, "vocab", info->llm.vocab);
    sfti_json_close(w, '}');
}

static void put_not_negative(sfti_json_writer *w, const char *key, double value) {
    sfti_put_double(w, key, value >= 0 ? value : 1e12); /* too large for one: null */
}

static void put_nsfw_level(sfti_json_writer *w, const sft_info *info) {
    sfti_json_key(w, "nsfw_level");
    if (info->nsfw_level < 0) sfti_json_null(w);
    else sfti_json_uint(w, (uint64_t)info->nsfw_level);
}

void sfti_render_model(sfti_json_writer *w, const sft_info *info) {
    sfti_json_key(w, "model");
    sfti_json_open(w, '{');
    put_facts(w, info, SFT_FACT_KIND, SFT_FACT_USAGE_HINT);
    put_model_notes(w, info);
    put_not_negative(w, "rating", info->rating);
    put_facts(w, info, SFT_FACT_PREDICTION_TYPE, SFT_FACT_NSFW);
    put_nsfw_level(w, info);
    put_fact(w, info, SFT_FACT_LANGUAGE);
    sfti_put_components(w, "components", &info->components);
    put_fact(w, info, SFT_FACT_QUANTIZATION);
    sfti_put_cstr(w, "precision", info->precision);
    sfti_put_some(w, "parameters", info->parameters);
    sfti_put_cstr(w, "size", info->size);
    sfti_put_some(w, "vectors", info->vectors);
    sfti_put_maybe(w, "negative", info->negative);
    put_llm(w, info);
    put_texts(w, "evidence", &info->evidence);
    sfti_json_close(w, '}');
}

/* ── The adapter ── */

static void put_range(sfti_json_writer *w, const char *key, const sfti_span_of *range,
                      int sampled) {
    sfti_json_key(w, key);
    if (!range->known) {
        sfti_json_null(w);
        return;
    }
    sfti_json_open(w, '{');
    sfti_put_double(w, "min", range->min);
    sfti_put_double(w, "max", range->max);
    sfti_put_double(w, "mode", range->mode);
    if (sampled >= 0) sfti_put_bool(w, "sampled", sampled != 0);
    sfti_json_close(w, '}');
}

void sfti_render_adapter(sfti_json_writer *w, const sft_info *info) {
    const sfti_adapter *adapter = &info->adapter;
    sfti_json_key(w, "adapter");
    if (!adapter->present) {
        sfti_json_null(w);
        return;
    }
    sfti_json_open(w, '{');
    sfti_put_cstr(w, "type", adapter->type);
    sfti_put_bool(w, "dora", adapter->dora);
    sfti_put_bool(w, "rslora", adapter->rslora);
    sfti_put_cstr(w, "format", adapter->format);
    put_range(w, "rank", &adapter->rank, -1);
    put_range(w, "alpha", &adapter->alpha, adapter->alpha_sampled);
    put_not_negative(w, "scale", adapter->scale);
    sfti_put_some(w, "conv_rank", adapter->conv_rank);
    sfti_put_uint(w, "modules", adapter->modules);
    sfti_put_components(w, "components", &adapter->components);
    put_texts(w, "targets", &adapter->targets);
    put_texts(w, "blocks", &adapter->blocks);
    sfti_json_close(w, '}');
}
