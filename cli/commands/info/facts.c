/* Which facts are known well enough to be written. */
#include "commands/info/facts.h"

#include "support/models.h"
#include "support/words.h"

#include <string.h>

/* ── Sources ── */

/* own is a sidecar, which a source names alone or with a place in it, or a prefix of keys. */
static bool is_from(sft_span source, sft_span own) {
    if (own.len == 0 || source.len < own.len) return false;
    if (memcmp(source.data, own.data, own.len) != 0) return false;
    bool is_prefix = own.data[own.len - 1] == '.';
    return is_prefix || source.len == own.len || source.data[own.len] == ':';
}

static bool is_own(const cli_saving *saving, sft_span source) {
    return is_from(source, saving->own) || is_from(source, saving->without);
}

static bool is_known(const cli_saving *saving, const sft_node *fact) {
    uint64_t trust;
    return sft_node_uint(fact, "trust", &trust) && trust >= saving->least
        && !is_own(saving, sft_node_text(fact, "source"));
}

const sft_node *cli_known(cli_saving *saving, const char *fact) {
    const sft_node *found = sft_node_find(saving->root, fact);
    if (!found || !is_known(saving, found)) return NULL;
    saving->count++;
    return sft_node_get(found, "value");
}

sft_span cli_known_text(cli_saving *saving, const char *fact) {
    return sft_node_text(cli_known(saving, fact), "");
}

/* Whether the destination already has this word, from whatever source. */
static bool is_there(const cli_saving *saving, const sft_node *word) {
    const sft_node *other = cli_first(word, "others");
    bool found = is_from(sft_node_text(word, "source"), saving->own);
    for (; other && !found; other = other->next)
        found = is_from(sft_node_text(other, "source"), saving->own);
    return found;
}

const sft_node *cli_known_word(const cli_saving *saving, const sft_node *after) {
    const sft_node *first = cli_first(saving->root, "trigger_words");
    const sft_node *word = after ? after->next : first;
    if (!after && first && is_own(saving, sft_node_text(first, "source"))) return NULL;
    /* a list is written whole: what only that place tells would go */
    for (const sft_node *one = after ? NULL : first; one; one = one->next)
        if (!is_known(saving, one) && is_there(saving, one)) return NULL;
    while (word && !is_known(saving, word)) word = word->next;
    return word;
}

const sft_node *cli_known_ids(const cli_saving *saving) {
    const sft_node *ids = sft_node_get(saving->root, "civitai");
    return ids && is_known(saving, ids) ? ids : NULL;
}

sft_span cli_known_digest(const cli_saving *saving, const char *algo) {
    return sft_node_text(sft_node_find(saving->root, "hashes.computed"), algo);
}

/* ── Joined texts ── */

typedef struct joined {
    sft_buffer text;
    sft_sink sink;
} joined;

static void begin(cli_saving *saving, joined *out) {
    out->text = (sft_buffer){ .alloc = saving->c->alloc };
    out->sink = sft_sink_memory(&out->text);
}

static void add(cli_saving *saving, joined *out, const char *separator, sft_span text) {
    sft_span before = sft_span_cstr(out->text.len > 0 ? separator : "");
    if (sft_sink_write(&out->sink, out->text.len, before.data, before.len, NULL)
        || sft_sink_write(&out->sink, out->text.len, text.data, text.len, NULL))
        saving->is_full = true;
    saving->count++;
}

static sft_span end(cli_saving *saving, joined *out) {
    size_t len = out->text.len;
    char *copy = len ? sfti_arena_copy(&saving->arena, out->text.data, len) : NULL;
    saving->is_full = saving->is_full || (len > 0 && !copy);
    sft_buffer_free(&out->text);
    return (sft_span){ copy ? copy : "", copy ? len : 0 };
}

/* Notes have no trust: people wrote them. */
sft_span cli_known_notes(cli_saving *saving) {
    joined out;
    const sft_node *note = cli_first(saving->root, "model.notes");
    begin(saving, &out);
    for (; note; note = note->next)
        if (!is_own(saving, sft_node_text(note, "source")))
            add(saving, &out, "\n\n", sft_node_text(note, "text"));
    return end(saving, &out);
}

bool cli_is_noted(const sft_node *root) {
    for (const sft_node *one = cli_first(root, "sidecars"); one; one = one->next)
        if (cli_is(sft_node_text(one, "kind"), "own.json")) return true;
    return false;
}

sft_span cli_known_words(cli_saving *saving, bool prompt) {
    joined out;
    const char *separator = ", ";
    const sft_node *prompted = prompt ? cli_known_word(saving, NULL) : NULL;
    for (; prompted; prompted = cli_known_word(saving, prompted))
        if (sft_node_count(sft_node_get(prompted, "words")) > 1)
            separator = " || "; /* entries with commas are whole prompts, as in Civitai Helper */
    const sft_node *word = cli_known_word(saving, NULL);
    begin(saving, &out);
    for (; word; word = cli_known_word(saving, word))
        add(saving, &out, separator, sft_node_text(word, prompt ? "prompt" : "text"));
    return end(saving, &out);
}
