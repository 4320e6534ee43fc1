/* Changes members of a JSON text and leaves every other byte. Tests: test_edit.c. */
#include "base/splice.h"

#include "base/error.h"
#include "base/number.h"

#include <string.h>

/* ── Spelling ── */

static size_t spell_escape(unsigned char c, char *out) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *found = c != 0 ? strchr(from, c) : NULL;
    size_t len = found ? 2 : 6;
    char text[6] = { '\\', 'u', '0', '0' };
    sfti_hex_text(c, 2, text + 4);
    if (found) text[1] = to[found - from];
    if (out) memcpy(out, text, len);
    return len;
}

static void spell_put(char *out, uint64_t at, const char *bytes, size_t len) {
    if (out) memcpy(out + at, bytes, len);
}

uint64_t sfti_spell(sft_span text, char *out) {
    uint64_t len = 1;
    size_t i = 0;
    spell_put(out, 0, "\"", 1);
    while (i < text.len) {
        size_t begin = i;
        for (; i < text.len; i++) {
            unsigned char c = (unsigned char)text.data[i];
            if (c < 0x20 || c == '"' || c == '\\') break;
        }
        if (i > begin) spell_put(out, len, text.data + begin, i - begin);
        len += i - begin;
        if (i == text.len) break;
        len += spell_escape((unsigned char)text.data[i++], out ? out + len : NULL);
    }
    spell_put(out, len, "\"", 1);
    return len + 1;
}

/* ── Cuts ── */

bool sfti_cuts_put(sfti_cuts *cuts, size_t begin, size_t end, sft_span text) {
    sfti_cut *cut = sfti_arena_take(cuts->arena, sizeof *cut);
    if (!cut) return false;
    *cut = (sfti_cut){ begin, end, text, NULL };
    *(cuts->last ? &cuts->last->next : &cuts->first) = cut;
    cuts->last = cut;
    return true;
}

uint64_t sfti_cuts_length(const sfti_cuts *cuts, size_t text_len) {
    uint64_t len = text_len;
    for (const sfti_cut *cut = cuts->first; cut; cut = cut->next)
        len = len - (cut->end - cut->begin) + cut->text.len;
    return len;
}

bool sfti_cuts_differ(const sfti_cuts *cuts, const char *text) {
    for (const sfti_cut *cut = cuts->first; cut; cut = cut->next) {
        sft_span old = { text + cut->begin, cut->end - cut->begin };
        if (!sft_span_equal(old, cut->text)) return true;
    }
    return false;
}

void sfti_cuts_apply(const sfti_cuts *cuts, sft_span text, char *out) {
    size_t at = 0;
    for (const sfti_cut *cut = cuts->first; cut; cut = cut->next) {
        memcpy(out, text.data + at, cut->begin - at);
        out += cut->begin - at;
        if (cut->text.len > 0) memcpy(out, cut->text.data, cut->text.len);
        out += cut->text.len;
        at = cut->end;
    }
    if (text.len > at) memcpy(out, text.data + at, text.len - at);
}

/* ── Changes ── */

bool sfti_changes_spell(sfti_change *items, size_t count, sfti_arena *arena) {
    for (size_t i = 0; i < count; i++) {
        sft_span text = items[i].value;
        if (!text.data) continue;
        uint64_t len = sfti_spell(text, NULL);
        char *spelled = sfti_arena_array(arena, len, 1);
        if (!spelled) return false;
        (void)sfti_spell(text, spelled);
        items[i].value = (sft_span){ spelled, (size_t)len };
    }
    return true;
}

static sft_span change_name(const void *ctx, uint32_t entry) {
    return ((const sfti_change *)ctx)[entry].key;
}

bool sfti_changes_begin(sfti_changes *changes, sfti_change *items, size_t count,
                        const uint64_t seed[2], sfti_arena *arena) {
    sfti_names *names = &changes->names;
    changes->items = items;
    changes->count = 0;
    if (count >= UINT32_MAX / 4) return false;
    if (!sfti_names_begin(names, count, seed, change_name, items, arena)) return false;
    for (size_t i = 0; i < count; i++) {
        sfti_change one = items[i];
        uint32_t next = (uint32_t)changes->count;
        items[next] = one;
        uint32_t at = sfti_names_put(names, one.key, sfti_names_hash(one.key, seed), next);
        if (at == next) changes->count++;
        else items[at].value = one.value;
    }
    return true;
}

/* ── Members ── */

static sft_code splice_memory(sft_error *err) {
    return sfti_fail_memory(err, sizeof(sfti_cut));
}

/* Members that are not there yet, spelled, with commas before all but the first. */
static uint64_t fresh_text(const sfti_changes *changes, const bool *met, bool first, char *out) {
    uint64_t len = 0;
    for (size_t i = 0; i < changes->count; i++) {
        const sfti_change *change = &changes->items[i];
        if (!change->value.data || (met && met[i])) continue;
        if (!first) spell_put(out, len++, ",", 1);
        first = false;
        len += sfti_spell(change->key, out ? out + len : NULL);
        spell_put(out, len++, ":", 1);
        spell_put(out, len, change->value.data, change->value.len);
        len += change->value.len;
    }
    return len;
}

/* A new object with the changes that are no removals, behind `begin` and before `end`. */
static sft_span splice_fresh(const sfti_changes *changes, const char *begin, const char *end,
                             sfti_arena *arena) {
    uint64_t fresh = fresh_text(changes, NULL, true, NULL);
    size_t before = strlen(begin), after = strlen(end);
    char *text = sfti_arena_array(arena, before + fresh + after, 1);
    if (!text) return (sft_span){ NULL, 0 };
    memcpy(text, begin, before);
    (void)fresh_text(changes, NULL, true, text + before);
    memcpy(text + before + fresh, end, after);
    return (sft_span){ text, before + (size_t)fresh + after };
}

bool sfti_changes_set(const sfti_changes *changes) {
    for (size_t i = 0; i < changes->count; i++)
        if (changes->items[i].value.data) return true;
    return false;
}

sft_code sfti_splice_value(sfti_json *json, const sfti_changes *changes, sfti_cuts *cuts,
                           sft_error *err) {
    static const sft_span nothing = { "", 0 };
    if (sfti_json_next(json) != SFTI_JSON_OBJECT) {
        size_t begin = json->start;
        (void)sfti_json_skip(json);
        if (!sfti_changes_set(changes)) return SFT_OK;
        sft_span fresh = splice_fresh(changes, "{", "}", cuts->arena);
        size_t end = (size_t)(json->at - json->begin);
        bool put = fresh.data && sfti_cuts_put(cuts, begin, end, fresh);
        return put ? SFT_OK : splice_memory(err);
    }
    sfti_arena *arena = cuts->arena;
    bool ok = true, *met = sfti_arena_take(arena, changes->count + 1); /* by change */
    size_t kept = 0, end = json->start + 1; /* members that stay; where the last one ended */
    size_t pending = SIZE_MAX; /* begin of a cut that ends at the next member that stays */
    if (!met) return splice_memory(err);
    memset(met, 0, changes->count + 1);
    while (ok && sfti_json_next(json) == SFTI_JSON_KEY) {
        size_t begin = json->start;
        sft_span key = sfti_json_string(json, arena);
        if (!key.data) return splice_memory(err);
        uint32_t found = sfti_names_find(&changes->names, key);
        sfti_json_next(json);
        size_t value_at = json->start;
        sfti_json_skip(json);
        size_t value_end = (size_t)(json->at - json->begin);
        const sfti_change *change = found == SFTI_NO_NAME ? NULL : &changes->items[found];
        bool goes = change && !change->value.data;
        if (change) met[found] = true;
        if (goes && kept > 0) {
            /* With the comma before it; a first member with the one behind. */
            ok = sfti_cuts_put(cuts, end, value_end, nothing);
        } else if (goes) {
            if (pending == SIZE_MAX) pending = begin;
        } else {
            if (pending != SIZE_MAX) ok = sfti_cuts_put(cuts, pending, begin, nothing);
            pending = SIZE_MAX;
            if (ok && change) ok = sfti_cuts_put(cuts, value_at, value_end, change->value);
            kept++;
        }
        end = value_end;
    }
    if (ok && json->type == SFTI_JSON_ERROR) return sfti_json_fail(json, 0, err);
    if (ok && pending != SIZE_MAX) ok = sfti_cuts_put(cuts, pending, end, nothing);
    uint64_t len = ok ? fresh_text(changes, met, kept == 0, NULL) : 0;
    if (ok && len == 0) return SFT_OK;
    char *text = ok ? sfti_arena_array(arena, len, 1) : NULL;
    if (!text) return splice_memory(err);
    (void)fresh_text(changes, met, kept == 0, text);
    ok = sfti_cuts_put(cuts, end, end, (sft_span){ text, (size_t)len });
    return ok ? SFT_OK : splice_memory(err);
}

sft_code sfti_splice_first(const char *name, const sfti_changes *changes, size_t at, bool alone,
                           sfti_cuts *cuts, sft_error *err) {
    sft_span fresh = splice_fresh(changes, name, alone ? "}" : "},", cuts->arena);
    sfti_cut *cut = sfti_arena_take(cuts->arena, sizeof *cut);
    if (!cut || !fresh.data) return splice_memory(err);
    *cut = (sfti_cut){ at, at, fresh, cuts->first };
    cuts->first = cut;
    return SFT_OK;
}
