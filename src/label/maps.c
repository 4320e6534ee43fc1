/* What producers call architectures, kinds and predictions, in our words. What the words are stands
 * in records; here is how each is read. */
#include "label/info.h"

#include <string.h>

/* The id of a record that a row names, or NULL. */
static const char *row_id(const sfti_records *records, const sfti_record_row *row,
                          sfti_record_type type, const char *name) {
    sft_span value;
    if (!sfti_row_has(row, name, &value)) return NULL;
    const sfti_record *record = sfti_record_find(records, type, value);
    return record ? record->id : NULL;
}

/* ── What trainers and sites declare ── */

const char *sfti_map_onetrainer(const sfti_records *records, sft_span text, sft_span *variant,
                                const sfti_record_row **row) {
    const sfti_record *of = sfti_said(records, SFTI_MODEL, SFTI_SAYS_ONETRAINER, text, true, row);
    *variant = (sft_span){ "", 0 };
    if (of) (void)sfti_row_has(*row, "variant", variant);
    return of ? of->id : NULL;
}

bool sfti_map_derivative(const sfti_records *records, sft_span text, sft_span *variant,
                         sft_span *label, const sfti_record_row **row) {
    *variant = *label = (sft_span){ "", 0 };
    if (!sfti_said(records, SFTI_MODEL, SFTI_SAYS_USE, text, false, row)) return false;
    (void)sfti_row_has(*row, "label", label);
    return sfti_row_has(*row, "variant", variant);
}

const char *sfti_map_modelspec(const sfti_records *records, sft_span text, const char **kind,
                               sft_span *variant, const sfti_record_row **row) {
    sft_span id = sfti_trim(text), suffix = sfti_find_byte(id, '/'), label;
    *kind = NULL;
    *variant = (sft_span){ "", 0 };
    id.len -= suffix.len;
    if (suffix.data) {
        const sfti_record *of = sfti_said(records, SFTI_KIND, SFTI_SAYS_MODELSPEC,
                                          sfti_from(suffix, 1), true, row);
        *kind = of ? of->id : NULL;
    }
    const sfti_record_row *use;
    const sfti_record *of = sfti_said(records, SFTI_MODEL, SFTI_SAYS_MODELSPEC, id, false, row);
    if (!of) of = sfti_said(records, SFTI_MODEL, SFTI_SAYS_BASE_VERSION, id, true, row);
    if (!of) return NULL;
    if (!sfti_map_derivative(records, id, variant, &label, &use))
        (void)sfti_row_has(*row, "variant", variant);
    if (!*kind || strcmp(*kind, "vae") != 0) return of->id;
    sft_span first = sfti_record_word(records, of, SFTI_VAES);
    const sfti_record *vae = sfti_record_find(records, SFTI_MODEL, first);
    return vae ? vae->id : NULL;
}

const char *sfti_map_civitai_base(const sfti_records *records, sft_span text,
                                  const sfti_record_row **row) {
    if (sfti_find_byte(text, '/').data) return NULL; /* a repository: OWNER/NAME */
    return sfti_said_model(records, SFTI_SAYS_CIVITAI, text, row);
}

const char *sfti_map_prediction(const sfti_records *records, sft_span text,
                                const sfti_record_row **row) {
    const sfti_record *of = sfti_said(records, SFTI_PREDICTION, SFTI_SAYS_ANY, text, true, row);
    return of ? of->id : NULL;
}

/* ── model_type of config.json ── */

/* The first row of a word that says what fits the text; not of a kind. */
static const sfti_record_row *row_saying(const sfti_records *records, sfti_word word, sft_span text,
                                         bool (*fits)(sft_span text, sft_span word)) {
    SFTI_EACH_ROW(row, records, word, 0) {
        sft_span rest = sfti_row_text(row), said;
        if (!sfti_row_may_say(row, text) || sfti_row_record(records, row)->type == SFTI_KIND)
            continue;
        while (sfti_next_said(&rest, &said))
            if (fits(text, said)) return row;
    }
    return NULL;
}

bool sfti_map_model_type(const sfti_records *records, sft_span text, const char **architecture,
                         const char **kind, const sfti_record_row **row) {
    *row = row_saying(records, SFTI_MODEL_TYPE, text, sfti_same_text);
    const sfti_record *of = *row ? sfti_row_record(records, *row)
                                 : sfti_record_find(records, SFTI_MODEL, text);
    if (!of) return false;
    *architecture = of->id;
    *kind = *row ? row_id(records, *row, SFTI_KIND, "kind") : NULL;
    return true;
}

/* ── Classes of diffusers and transformers ── */

static sft_span without_tasks(const sfti_records *records, sft_span rest) {
    const sfti_record_row *row = sfti_rows(records, SFTI_SAYS, SFTI_SAYS_TASK);
    bool found = row != NULL;
    while (rest.len > 0 && found) {
        sft_span tasks = sfti_row_text(row), task;
        found = false;
        while (!found && sfti_next_said(&tasks, &task))
            found = sfti_begins_with(rest, task);
        if (found) rest = sfti_from(rest, task.len);
    }
    return rest;
}

/* Stems of pipelines: what follows says what they are used for. The longest that fits. */
static const sfti_record_row *row_of_pipeline(const sfti_records *records, sft_span name) {
    sft_span stem = { name.data, name.len - strlen("Pipeline") };
    const sfti_record_row *found = NULL;
    size_t most = 0;
    SFTI_EACH_ROW(row, records, SFTI_PIPELINE, 0) {
        sft_span rest = sfti_row_text(row), begin;
        while (sfti_next_said(&rest, &begin)) {
            if (begin.len <= most || !sfti_begins_with(stem, begin)
                || without_tasks(records, sfti_from(stem, begin.len)).len > 0)
                continue;
            most = begin.len;
            found = row;
        }
    }
    return found;
}

/* "UNet*", "*Pipeline", "*controlnet*"; in small letters it stands for any case. */
static bool class_fits(sft_span name, sft_span pattern) {
    bool before = *pattern.data == '*', after = pattern.data[pattern.len - 1] == '*';
    sft_span part = { pattern.data + before, pattern.len - before - after };
    bool small = true;
    if (part.len > name.len) return false;
    for (size_t i = 0; i < part.len; i++)
        small = small && (part.data[i] < 'A' || part.data[i] > 'Z');
    size_t room = name.len - part.len, from = before && !after ? room : 0, last = before ? room : 0;
    if (!before && !after && room > 0) return false;
    for (; from <= last; from++) {
        sft_span here = { name.data + from, part.len };
        if (small ? sfti_same_text(here, part) : sft_span_equal(here, part)) return true;
    }
    return false;
}

/* What part of a class's name says, where that is clear. */
static const sfti_record_row *row_of_kind(const sfti_records *records, sft_span name) {
    SFTI_EACH_ROW(row, records, SFTI_CLASS, 0) {
        if (sfti_row_record(records, row)->type != SFTI_KIND) continue;
        sft_span rest = sfti_row_text(row), pattern;
        bool fits = false, denied = false;
        while (sfti_next_said(&rest, &pattern) && pattern.len > 1) {
            bool not = *pattern.data == '!';
            if (not) denied = denied || class_fits(name, sfti_from(pattern, 1));
            else fits = fits || class_fits(name, pattern);
        }
        if (fits && !denied) return row;
    }
    return NULL;
}

/* Equal but for case and underscores: "GPTNeoX" and "gpt_neox". */
static bool same_model_name(sft_span name, sft_span type) {
    size_t at = 0;
    for (size_t i = 0; i < type.len; i++) {
        if (type.data[i] == '_') continue;
        if (at == name.len || (name.data[at] | 0x20) != (type.data[i] | 0x20)) return false;
        at++;
    }
    return at == name.len;
}

/* "Qwen2MoeForCausalLM": a model of transformers and a head. */
static const sfti_record_row *row_of_model(const sfti_records *records, sft_span name) {
    sft_span head = sfti_find_letters(name, "for");
    while (head.len > 3 && !(head.data[0] == 'F' && head.data[3] >= 'A' && head.data[3] <= 'Z'))
        head = sfti_find_letters(sfti_from(head, 1), "for");
    if (head.len > 3) name.len -= head.len;
    else if (sfti_ends(name, "LMHeadModel")) name.len -= strlen("LMHeadModel");
    else if (sfti_ends(name, "Model")) name.len -= strlen("Model");
    return row_saying(records, SFTI_MODEL_TYPE, name, same_model_name);
}

bool sfti_map_class_name(const sfti_records *records, sft_span name, const char **architecture,
                         const char **kind, const sfti_record_row **row) {
    name = sfti_trim(name);
    *architecture = NULL;
    (void)sfti_skip(&name, "Nunchaku");
    const sfti_record_row *of = row_of_kind(records, name);
    *kind = of ? sfti_row_record(records, of)->id : NULL;
    if (of) *row = of;
    /* whole names; of a class of many models there is no architecture */
    of = row_saying(records, SFTI_CLASS, name, sfti_same_text);
    if (!of && sfti_ends(name, "Pipeline")) of = row_of_pipeline(records, name);
    else if (!of) of = row_of_model(records, name);
    if (!of) return false;
    *row = of;
    *architecture = sfti_row_record(records, of)->id;
    return true;
}
