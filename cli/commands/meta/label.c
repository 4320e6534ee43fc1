/* What info says of a model whose metadata meta changed. */
#include "commands/meta/meta.h"

#include "base/glob.h"
#include "keys/digest_keys.h"
#include "label/reads.h"
#include "support/models.h"
#include "support/words.h"

#include <string.h>

#define STILL_MOST 32
#define BESIDE_MOST 64

static sft_span keep_text(sfti_arena *arena, sft_span text) {
    char *copy = sfti_arena_copy(arena, text.data ? text.data : "", text.len);
    return (sft_span){ copy ? copy : "", copy ? text.len : 0 };
}

/* ── What info goes on showing ── */

static bool is_of_key(sft_span source, sft_span key) {
    static const char begin[] = "header:";
    size_t len = sizeof begin - 1;
    if (source.len < len + key.len || memcmp(source.data, begin, len) != 0) return false;
    if (memcmp(source.data + len, key.data, key.len) != 0) return false;
    return source.len == len + key.len || source.data[len + key.len] == ':';
}

static bool is_same_value(const sft_node *a, const sft_node *b) {
    const sft_node *x = a ? a->first : NULL, *y = b ? b->first : NULL;
    if (!a || !b || !sft_span_equal(a->text, b->text)) return false;
    for (; x && y; x = x->next, y = y->next)
        if (!sft_span_equal(x->text, y->text)) return false;
    return !x && !y;
}

/* Texts of a list, joined. */
static sft_span value_text(sfti_arena *arena, const sft_node *value) {
    size_t len = 0;
    if (!value || !value->first) return keep_text(arena, value ? value->text : (sft_span){ "", 0 });
    for (const sft_node *one = value->first; one; one = one->next) len += one->text.len + 2;
    char *text = sfti_arena_take(arena, len), *at = text;
    for (const sft_node *one = value->first; text && one; one = one->next) {
        if (at > text) memcpy(at, ", ", 2), at += 2;
        if (one->text.len) memcpy(at, one->text.data, one->text.len);
        at += one->text.len;
    }
    return (sft_span){ text ? text : "", text ? (size_t)(at - text) : 0 };
}

void meta_still_shown(cli *c, const char *path, const sft_pair *pairs, size_t count,
                      sfti_arena *arena, cli_edit_result *result) {
    static const cli_edit_still none[1];
    cli_told label;
    size_t found = 0;
    bool reads = false;
    result->still = none;
    for (size_t i = 0; i < count; i++)
        reads = reads || (pairs[i].value.data && sfti_header_reads(pairs[i].key));
    cli_edit_still *list = reads ? sfti_arena_array(arena, STILL_MOST, sizeof *list) : NULL;
    if (!list) return;
    cli_told_open(c, path, &label);
    const sft_node *fact = label.tree ? cli_first(sft_tree_root(label.tree), "model") : NULL;
    for (; fact; fact = fact->next) {
        const sft_node *value = sft_node_get(fact, "value"), *other = cli_first(fact, "others");
        sft_span source = sft_node_text(fact, "source");
        for (; value && other; other = other->next)
            for (size_t i = 0; i < count && found < STILL_MOST; i++) {
                sft_span key = pairs[i].key;
                if (!pairs[i].value.data || is_of_key(source, key)) continue;
                if (!is_of_key(sft_node_text(other, "source"), key)
                    || is_same_value(value, sft_node_get(other, "value")))
                    continue;
                list[found++] = (cli_edit_still){ key, keep_text(arena, fact->key),
                                                  value_text(arena, value),
                                                  keep_text(arena, source) };
            }
    }
    cli_told_close(&label);
    result->still = list;
    result->still_count = found;
}

/* ── What scrub leaves ── */

void meta_beside(cli *c, const char *path, sfti_arena *arena, cli_edit_result *result) {
    static const char *const lists[] = { "sidecars", "previews" };
    sft_span *paths = sfti_arena_array(arena, BESIDE_MOST, sizeof *paths);
    cli_told label = { .set = NULL };
    size_t count = 0;
    if (paths) cli_told_open(c, path, &label);
    for (size_t i = 0; label.tree && i < sizeof lists / sizeof *lists; i++) {
        const sft_node *one = cli_first(sft_tree_root(label.tree), lists[i]);
        for (; one && count < BESIDE_MOST; one = one->next)
            if (sft_node_text(one, "path").len > 0)
                paths[count++] = keep_text(arena, sft_node_text(one, "path"));
    }
    cli_told_close(&label);
    result->beside = paths;
    result->beside_count = count;
}

#define KEPT_GLOBS 6

const char *meta_kept_reason(sft_span key, sft_span value) {
    static const struct kept_keys {
        const char *what, *globs[KEPT_GLOBS];
    } rows[] = {
        { "an author", { "*author*", "*creator*", "*artist*", "*copyright*" } },
        { "a name that was given", { "*output_name", "*title", "name", "*display_name" } },
        { "a picture", { "*thumbnail*", "*cover_image*", "*preview_image*" } },
        { "a comment", { "*comment*", "*notes*", "*description*" } },
        { "a time", { "*_started_at", "*_finished_at", "*date" } },
        { "tags of the training images", { "ss_tag_frequency", "ss_datasets" } },
        { "the name of a file", { "ss_sd_model_name", "ss_vae_name", "*merged_from*" } },
    };
    char lower[128];
    size_t len = key.len < sizeof lower ? key.len : sizeof lower;
    for (size_t i = 0; i < len; i++) lower[i] = cli_lower(key.data[i]);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t g = 0; g < KEPT_GLOBS && rows[i].globs[g]; g++)
            if (sfti_glob_match(sft_span_cstr(rows[i].globs[g]), (sft_span){ lower, len }))
                return rows[i].what;
    if (sfti_is_reading_key(key)) return "how tensors are read";
    return value.len > 11 && memcmp(value.data, "data:image/", 11) == 0 ? "a picture" : NULL;
}
