/* Candidates for the facts of a label: their memory, their texts, and how they are added. */
#include "label/info.h"

#include "base/json_lex.h"
#include "text/formats.h"
#include "text/links.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Candidates a field keeps, items a list fact keeps, records a list keeps: far above what
 * is shown, low enough that no file makes the work quadratic. */
#define COLLECT_CANDIDATES 64
#define COLLECT_ITEMS 512
#define COLLECT_TRIGGERS 4096
#define COLLECT_CLAIMS 256
#define COLLECT_PROSE ((size_t)1 << 20) /* bytes of a text that are looked through */

#define USER_TRUST 79 /* most of what a user says of a model that the library knows */

static const char *const fact_names[SFT_FACT_COUNT] = {
    "kind", "architecture", "variant", "base_model", "base_checkpoint", "repo", "name",
    "version_name", "description", "version_description", "author", "license", "tags", "date",
    "usage_hint", "prediction_type", "resolution", "clip_skip", "preferred_weight",
    "negative_prompt", "nsfw", "language", "quantization", "family",
};

const char *sft_fact_name(sft_fact fact) {
    return (unsigned)fact < SFT_FACT_COUNT ? fact_names[fact] : NULL;
}

/* ── Memory ── */

void *sfti_info_take(sft_info *info, size_t bytes) {
    if (info->code) return NULL;
    void *at = sfti_arena_take(&info->arena, bytes);
    if (!at) info->code = SFT_OUT_OF_MEMORY;
    return at;
}

void *sfti_info_take_zeroed(sft_info *info, size_t bytes) {
    void *at = sfti_info_take(info, bytes);
    return at ? memset(at, 0, bytes) : NULL;
}

void *sfti_info_push(sft_info *info, sfti_list *list, const void *record, size_t bytes) {
    void *copy = sfti_info_take(info, bytes);
    if (!copy) return NULL;
    memcpy(copy, record, bytes);
    if (list->last) memcpy(list->last, &copy, sizeof copy); /* its link is first */
    else list->first = copy;
    list->last = copy;
    list->count++;
    return copy;
}

sft_span sfti_info_text(sft_info *info, const char *format, ...) {
    char small[256];
    va_list args, again;
    sft_span none = { "", 0 };
    va_start(args, format);
    va_copy(again, args);
    int len = vsnprintf(small, sizeof small, format, args);
    char *at = len < 0 ? NULL : sfti_info_take(info, (size_t)len + 1);
    if (at && (size_t)len < sizeof small) memcpy(at, small, (size_t)len + 1);
    else if (at) vsnprintf(at, (size_t)len + 1, format, again);
    va_end(again);
    va_end(args);
    return at ? (sft_span){ at, (size_t)len } : none;
}

sft_span sfti_info_join(sft_info *info, const char *before, sft_span text) {
    size_t len = strlen(before);
    char *at = text.len > SIZE_MAX - len ? NULL : sfti_info_take(info, len + text.len);
    if (!at) return (sft_span){ "", 0 };
    memcpy(at, before, len);
    if (text.len > 0) memcpy(at + len, text.data, text.len);
    return (sft_span){ at, len + text.len };
}

sft_span sfti_info_copy(sft_info *info, sft_span text) {
    return sfti_info_join(info, "", text);
}

const char *sfti_info_cstr(sft_info *info, sft_span text) {
    const char *copy = info->code ? "" : sfti_arena_copy(&info->arena, text.data, text.len);
    if (!copy) info->code = SFT_OUT_OF_MEMORY;
    return copy ? copy : "";
}

sft_span sfti_info_joined(sft_info *info, const sft_span *words, size_t count,
                          const char *between) {
    size_t gap = strlen(between), len = 0;
    for (size_t i = 0; i < count; i++) len += words[i].len + gap;
    char *out = sfti_info_take(info, len + 1);
    if (!out) return (sft_span){ "", 0 };
    len = 0;
    for (size_t i = 0; i < count; i++) {
        memcpy(out + len, between, i ? gap : 0);
        len += i ? gap : 0;
        if (words[i].len > 0) memcpy(out + len, words[i].data, words[i].len);
        len += words[i].len;
    }
    return (sft_span){ out, len };
}

sft_span sfti_plain_text(sft_info *info, sft_span html) {
    sft_span text = { "", 0 };
    if (!info->code && !sfti_html_text(&info->arena, html, &text)) info->code = SFT_OUT_OF_MEMORY;
    return text;
}

bool sfti_info_metadata(const sft_info *info, const char *key, sft_span *out) {
    for (size_t i = 0; info->set && i < sft_set_shard_count(info->set); i++)
        if (sft_file_metadata_get_cstr(sft_set_shard_at(info->set, i), key, out))
            return !sfti_is_placeholder(*out);
    return false;
}

/* ── Values ── */

sfti_fact_value sfti_text_value(sft_span text) {
    return (sfti_fact_value){ SFTI_TEXT, text, NULL, 0 };
}

sfti_fact_value sfti_number_value(sft_span text) {
    return (sfti_fact_value){ SFTI_NUMBER, text, NULL, 0 };
}

sfti_fact_value sfti_bool_value(bool value) {
    return (sfti_fact_value){ SFTI_BOOL, sft_span_cstr(value ? "true" : "false"), NULL, 0 };
}

static bool same_value(const sfti_fact_value *a, const sfti_fact_value *b) {
    if (a->type != b->type || a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++)
        if (!sft_span_equal(a->items[i], b->items[i])) return false;
    return sft_span_equal(a->text, b->text);
}

bool sfti_is_placeholder(sft_span text) {
    static const char *const any_case[] = { "none", "null", "undefined", "nofile",
                                            "isadirectory" };
    text = sfti_trim(text);
    return text.len == 0 || SFTI_ONE_OF(text, any_case, sfti_same_letters)
        || sfti_is(text, "nan") || sfti_is(text, "(unknown)");
}

/* ── Facts ── */

/* NULL when it is there already or there are enough. */
sfti_fact *sfti_info_add(sft_info *info, sft_fact field, sfti_fact_value value, sft_span source,
                         int trust) {
    sfti_fact **link = &info->facts[field];
    if (value.type == SFTI_TEXT) {
        value.text = sfti_trim(value.text);
        if (sfti_is_placeholder(value.text)) return NULL;
    }
    if (value.type == SFTI_LIST && value.count == 0) return NULL;
    for (size_t count = 0; *link; link = &(*link)->next)
        if (++count == COLLECT_CANDIDATES
            || (same_value(&(*link)->value, &value) && sft_span_equal((*link)->source, source)))
            return NULL;
    sfti_fact *fact = sfti_info_take(info, sizeof *fact);
    if (!fact) return NULL;
    *fact = (sfti_fact){ value, source, trust, NULL, false, false, NULL };
    *link = fact;
    const sfti_record_row *row = info->said;
    fact->by = row ? sfti_row_source(info->records, row) : NULL;
    if (fact->by && trust > USER_TRUST
        && !sfti_record_source(info->records, sfti_row_record(info->records, row)))
        fact->trust = USER_TRUST;
    return fact;
}

void sfti_info_add_text(sft_info *info, sft_fact field, sft_span text, sft_span source,
                        int trust) {
    sfti_info_add(info, field, (sfti_fact_value){ .text = text }, source, trust);
}

void sfti_info_add_written(sft_info *info, sft_span text, sft_span source, int trust) {
    const sfti_fact_value value = sfti_text_value(sfti_trim(text));
    if (sfti_same_letters(value.text, "unknown")) return;
    sfti_fact *fact = sfti_info_add(info, SFT_FACT_ARCHITECTURE, value, source, trust);
    if (fact) fact->as_written = !sfti_record_find(info->records, SFTI_MODEL, value.text);
}

void sfti_info_add_cstr(sft_info *info, sft_fact field, const char *text, sft_span source,
                        int trust) {
    if (text) sfti_info_add_text(info, field, sft_span_cstr(text), source, trust);
}

static void item_put(sft_info *info, sfti_fact_value *list, sft_span text) {
    text = sfti_trim(text);
    if (sfti_is_placeholder(text) || list->count >= COLLECT_ITEMS) return;
    for (size_t i = 0; i < list->count; i++)
        if (sft_span_equal(list->items[i], text)) return;
    if (list->count != 1 && (list->count & (list->count - 1)) == 0) { /* full: twice as many */
        sft_span *items = sfti_info_take(info, (list->count ? list->count * 2 : 2) * sizeof *items);
        if (!items) return;
        if (list->count > 0) memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
    }
    ((sft_span *)list->items)[list->count++] = text;
}

void sfti_info_add_item(sft_info *info, sft_fact field, sft_span text, sft_span source,
                        int trust) {
    sfti_fact_value list = { SFTI_LIST, { NULL, 0 }, NULL, 0 };
    sfti_fact *fact = info->facts[field];
    while (fact && (fact->value.type != SFTI_LIST || !sft_span_equal(fact->source, source)))
        fact = fact->next;
    if (fact) {
        item_put(info, &fact->value, text);
        return;
    }
    item_put(info, &list, text);
    sfti_info_add(info, field, list, source, trust);
}

void sfti_info_add_commas(sft_info *info, sft_fact field, sft_span text, sft_span source,
                          int trust) {
    sfti_fact_value list = { SFTI_LIST, { NULL, 0 }, NULL, 0 };
    sft_span piece;
    while (list.count < COLLECT_ITEMS && sfti_next_piece(&text, ',', &piece))
        item_put(info, &list, piece);
    sfti_info_add(info, field, list, source, trust);
}

void sfti_drop_facts(sfti_fact **link, sft_span source) {
    while (*link)
        if (sft_span_equal((*link)->source, source)) *link = (*link)->next;
        else link = &(*link)->next;
}

const sfti_fact *sfti_info_best(const sft_info *info, sft_fact field) {
    const sfti_fact *best = info->facts[field];
    for (const sfti_fact *fact = best; fact; fact = fact->next)
        if (fact->trust > best->trust) best = fact;
    return best;
}

/* ── Training ── */

const sfti_training_slot sfti_training_slots[TRAIN_KEYS] = {
    [TRAIN_TOOL] = { "tool", SFTI_TEXT }, [TRAIN_TOOL_VERSION] = { "tool_version", SFTI_TEXT },
    [TRAIN_STARTED_AT] = { "started_at", SFTI_TEXT },
    [TRAIN_FINISHED_AT] = { "finished_at", SFTI_TEXT },
    [TRAIN_DURATION_S] = { "duration_s", SFTI_NUMBER }, [TRAIN_EPOCH] = { "epoch", SFTI_NUMBER },
    [TRAIN_EPOCHS] = { "epochs", SFTI_NUMBER }, [TRAIN_STEP] = { "step", SFTI_NUMBER },
    [TRAIN_STEPS] = { "steps", SFTI_NUMBER }, [TRAIN_IMAGES] = { "images", SFTI_NUMBER },
    [TRAIN_IMAGES_WITH_REPEATS] = { "images_with_repeats", SFTI_NUMBER },
    [TRAIN_REGULARISATION_IMAGES] = { "regularisation_images", SFTI_NUMBER },
    [TRAIN_BATCH_SIZE] = { "batch_size", SFTI_NUMBER },
    [TRAIN_LEARNING_RATE] = { "learning_rate", SFTI_NUMBER },
    [TRAIN_UNET_LR] = { "unet_lr", SFTI_NUMBER },
    [TRAIN_TEXT_ENCODER_LR] = { "text_encoder_lr", SFTI_NUMBER },
    [TRAIN_OPTIMIZER] = { "optimizer", SFTI_TEXT }, [TRAIN_SCHEDULER] = { "scheduler", SFTI_TEXT },
    [TRAIN_RESOLUTION] = { "resolution", SFTI_TEXT },
    [TRAIN_NETWORK_MODULE] = { "network_module", SFTI_TEXT },
    [TRAIN_NETWORK_ARGS] = { "network_args", SFTI_TEXT }, [TRAIN_SEED] = { "seed", SFTI_NUMBER },
    [TRAIN_CLIP_SKIP] = { "clip_skip", SFTI_NUMBER },
    [TRAIN_MIXED_PRECISION] = { "mixed_precision", SFTI_TEXT },
    [TRAIN_NOISE_OFFSET] = { "noise_offset", SFTI_NUMBER },
    [TRAIN_COMMENT] = { "comment", SFTI_TEXT }, [TRAIN_SESSION_ID] = { "session_id", SFTI_TEXT },
    [TRAIN_BASE_FILE] = { "file", SFTI_TEXT }, [TRAIN_BASE_SHA256] = { "sha256", SFTI_TEXT },
    [TRAIN_BASE_AUTOV1] = { "autov1", SFTI_TEXT }, [TRAIN_VAE_FILE] = { "file", SFTI_TEXT },
    [TRAIN_VAE_SHA256] = { "sha256", SFTI_TEXT }, [TRAIN_VAE_AUTOV1] = { "autov1", SFTI_TEXT },
};

void sfti_info_train(sft_info *info, sfti_training_key key, sfti_fact_value value) {
    sfti_fact_value *slot = &info->training[key];
    if (slot->text.len > 0 || slot->count > 0) return;
    if (value.type != SFTI_LIST) {
        value.text = sfti_trim(value.text);
        if (sfti_is_placeholder(value.text)) return;
        value.type = sfti_training_slots[key].type;
        if (value.type == SFTI_NUMBER && !sfti_is_number(value.text)) return;
    } else if (value.count == 0) {
        return;
    }
    *slot = value;
    info->has_training = true;
}

void sfti_info_train_uint(sft_info *info, sfti_training_key key, uint64_t value) {
    sft_span text = sfti_info_text(info, "%llu", (unsigned long long)value);
    sfti_info_train(info, key, sfti_number_value(text));
}

/* ── Records ── */

/* "no trigger word(s)", "(none)", "-": that there are none. */
static bool is_refusal(sft_span text) {
    static const char *const told[] = {
        "n/a", "n.a", "none", "none needed", "none required", "no", "no trigger", "no triggers",
        "no trigger word", "no trigger words", "no trigger word(s", "no trigger needed",
        "no trigger required", "no triggers needed", "no trigger word needed",
        "no trigger words needed", "no trigger words required", "no trigger word required",
        "no keyword", "no keywords", "not needed", "not required", "not necessary", "unnecessary",
        "optional", "tbd", "tba", "\xE6\x97\xA0", "\xE6\xB2\xA1\xE6\x9C\x89",
    };
    static const char marks[] = "-.?!()[]_/* ";
    while (text.len > 0 && *text.data && strchr(marks, *text.data)) text = sfti_from(text, 1);
    while (text.len > 0 && text.data[text.len - 1] && strchr(marks, text.data[text.len - 1]))
        text.len--;
    return text.len == 0 || SFTI_ONE_OF(text, told, sfti_same_letters);
}

sfti_trigger *sfti_info_trigger_in(sft_info *info, sft_span text, sft_span source, int trust,
                                   int group, sft_span folder) {
    text = sfti_trim(text);
    if (sfti_is_placeholder(text) || is_refusal(text)
        || info->triggers.count >= COLLECT_TRIGGERS)
        return NULL;
    return SFTI_PUSH(info, &info->triggers, sfti_trigger, .text = text, .source = source,
                     .folder = folder, .trust = trust, .group = group, .coverage = -1);
}

void sfti_info_trigger(sft_info *info, sft_span text, sft_span source, int trust, int group) {
    sft_span none = { "", 0 };
    sfti_info_trigger_in(info, text, source, trust, group, none);
}

void sfti_info_trigger_sentence(sft_info *info, sft_span text, sft_span source, int trust) {
    sft_span words;
    size_t at = 0;
    if (text.len > COLLECT_PROSE) text.len = COLLECT_PROSE;
    while (!info->code && sfti_next_introduced(text, &at, &words))
        sfti_info_trigger(info, words, source, trust, -1);
}

static const struct claim_length { const char *algo; size_t digits; } claim_lengths[] = {
    { "sha256", 64 }, { "autov1", 8 }, { "autov2", 10 }, { "autov3", 12 },
    { "sshs_model", 64 }, { "sshs_legacy", 8 }, { "crc32", 8 }, { "crc32_civitai", 8 },
    { "blake3", 64 },
};

size_t sfti_claim_digits(const char *algo) {
    for (size_t i = 0; i < SFTI_COUNT(claim_lengths); i++)
        if (strcmp(claim_lengths[i].algo, algo) == 0) return claim_lengths[i].digits;
    return 0;
}

/* SHA-256 of nothing, or a beginning of it, and zeros are what tools write for none. */
static bool empty_hash(const char *hex, size_t len) {
    static const char nothing[] =
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    if (memcmp(hex, nothing, len) == 0) return true;
    for (size_t i = 0; i < len; i++)
        if (hex[i] != '0') return false;
    return true;
}

bool sfti_info_hash(sft_info *info, sft_span text, size_t digits, sft_span *out) {
    char hex[64];
    text = sfti_trim(text);
    (void)sfti_skip(&text, "0x");
    if (digits == 0 || digits > sizeof hex || text.len != digits) return false;
    for (size_t i = 0; i < digits; i++) {
        if (sfti_lex_hex_digit(text.data[i]) < 0) return false;
        hex[i] = (char)(sfti_lex_digit(text.data[i]) ? text.data[i] : text.data[i] | 0x20);
    }
    if (empty_hash(hex, digits)) return false;
    *out = sfti_info_copy(info, (sft_span){ hex, digits });
    return out->len == digits;
}

void sfti_info_claim(sft_info *info, const char *algo, sft_span value, sft_span source,
                     const char *known) {
    sft_span hex;
    if (info->claims.count >= COLLECT_CLAIMS) return;
    if (!sfti_info_hash(info, value, sfti_claim_digits(algo), &hex)) return;
    for (const sfti_claim *claim = info->claims.first; claim; claim = claim->next)
        if (strcmp(claim->algo, algo) == 0 && sft_span_equal(claim->value, hex)
            && sft_span_equal(claim->source, source))
            return;
    SFTI_PUSH(info, &info->claims, sfti_claim, .algo = algo, .value = hex, .source = source,
              .known = known);
}

void sfti_info_private(sft_info *info, sft_span key, const char *what) {
    SFTI_PUSH(info, &info->privates, sfti_private, .key = key, .what = what);
}

void sfti_info_note(sft_info *info, sft_span text, sft_span source) {
    text = sfti_trim(text);
    if (!sfti_is_placeholder(text))
        SFTI_PUSH(info, &info->notes, sfti_note, .text = text, .source = source);
}
