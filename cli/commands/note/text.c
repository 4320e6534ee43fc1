/* A note as text: changes of its facts, everything else as it was. Tests: tests/cli/note. */
#include "commands/note/note.h"

#include "base/utf8.h"
#include "support/hints.h"
#include "support/raw.h"
#include "support/words.h"

#include <stdlib.h>
#include <string.h>

const note_field note_fields[NOTE_FIELDS] = {
    { "name", NOTE_TEXT, 0, 0, NULL, NULL },
    { "base", NOTE_TEXT, 0, 0, NULL, NULL },
    { "words", NOTE_LIST, 0, 0, "trigger_words", "text" },
    { "tags", NOTE_LIST, 0, 0, "model.tags.value", NULL },
    { "rating", NOTE_NUMBER, 0, 5, NULL, NULL },
    { "favourite", NOTE_FLAG, 0, 0, NULL, NULL },
    { "weight", NOTE_NUMBER, -100, 100, NULL, NULL },
    { "note", NOTE_TEXT, 0, 0, NULL, NULL },
};

/* ── Changes ── */

static const note_field *field_named(sft_span name) {
    for (size_t i = 0; i < NOTE_FIELDS; i++)
        if (cli_is(name, note_fields[i].name)) return &note_fields[i];
    return cli_is(name, "favorite") ? field_named(sft_span_cstr("favourite")) : NULL;
}

static sft_span name_of(const char *word) {
    size_t len = strcspn(word, "=");
    if (word[len] && len > 0 && (word[len - 1] == '+' || word[len - 1] == '-')) len--;
    return (sft_span){ word, len };
}

bool note_is_change(const char *word) {
    sft_span name = name_of(word);
    if (field_named(name)) return true;
    if (!strchr(word, '=')) return false;
    for (size_t i = 0; i < name.len; i++)
        if (!(name.data[i] >= 'a' && name.data[i] <= 'z') && name.data[i] != '_') return false;
    return name.len > 0;
}

/* A NUL follows the text. */
static bool is_number(sft_span text, const note_field *field, double *out) {
    sfti_json json;
    char *end;
    sfti_json_begin(&json, text.data, text.len);
    sfti_json_type type = sfti_json_next(&json);
    if ((type != SFTI_JSON_UINT && type != SFTI_JSON_NUMBER)
        || sfti_json_next(&json) != SFTI_JSON_END)
        return false;
    *out = strtod(text.data, &end);
    return end == text.data + text.len && *out >= field->least && *out <= field->most;
}

sft_code note_change_read(const char *word, note_change *out, sft_error *err) {
    sft_span name = name_of(word), rest = sft_span_cstr(word + name.len);
    double number;
    *out = (note_change){ field_named(name), '=', { "", 0 } };
    if (!out->field) {
        sfti_guess guess = sfti_guess_begin(name);
        for (size_t i = 0; i < NOTE_FIELDS; i++)
            sfti_guess_try(&guess, sft_span_cstr(note_fields[i].name));
        return cli_usage_error(err, "expected name, base, words, tags, rating, favourite, weight "
                               "or note, found \"%.*s\"%s", SFTI_CLIP(name, (size_t)40),
                               sfti_guess_text(&guess, "\"", "\""));
    }
    bool is_flag = out->field->kind == NOTE_FLAG, is_list = out->field->kind == NOTE_LIST;
    if (rest.len == 0 && !is_flag)
        return cli_usage_error(err, "expected %s=VALUE, found no value", out->field->name);
    if (rest.len > 0 && *rest.data != '=') {
        out->how = *rest.data;
        rest.data++, rest.len--;
        if (!is_list)
            return cli_usage_error(err, "expected += and -= with words and tags alone, found it "
                                   "with %s", out->field->name);
    }
    out->value = rest.len ? (sft_span){ rest.data + 1, rest.len - 1 } : sft_span_cstr("yes");
    if (is_flag && out->value.len && !cli_is(out->value, "yes") && !cli_is(out->value, "no"))
        return cli_usage_error(err, "expected favourite, favourite=yes, favourite=no or "
                               "favourite=, found \"%.*s\"", SFTI_CLIP(out->value, (size_t)40));
    if (out->field->kind == NOTE_NUMBER && out->value.len
        && !is_number(out->value, out->field, &number))
        return cli_usage_error(err, "expected %s from %g to %g, found \"%.*s\"",
                               out->field->name, out->field->least, out->field->most,
                               SFTI_CLIP(out->value, (size_t)40));
    if (out->value.len > NOTE_TEXT_MOST / 4)
        return cli_usage_error(err, "expected a shorter value for %s", out->field->name);
    if (sfti_utf8_check(out->value.data, out->value.len) < out->value.len)
        return cli_usage_error(err, "expected UTF-8 for %s, found other bytes", out->field->name);
    return SFT_OK;
}

/* ── Lists ── */

typedef struct note_list {
    sft_span items[NOTE_WORDS_MOST];
    size_t count;
    bool full, lost; /* lost: for want of memory */
} note_list;

static sft_span trimmed(sft_span text) {
    while (text.len && strchr(" \t", *text.data)) text.data++, text.len--;
    while (text.len && strchr(" \t", text.data[text.len - 1])) text.len--;
    return text;
}

static void list_take(note_list *list, sft_span item, bool goes) {
    size_t i = 0;
    item = trimmed(item);
    if (item.len == 0) return;
    while (i < list->count && !sft_span_equal(list->items[i], item)) i++;
    if (goes && i < list->count) {
        memmove(&list->items[i], &list->items[i + 1],
                (--list->count - i) * sizeof *list->items);
    } else if (!goes && i == list->count) {
        if (i == NOTE_WORDS_MOST) list->full = true;
        else list->items[list->count++] = item;
    }
}

/* What += adds to: the note's own list, else what others say. */
static void list_begin(note_list *list, const note_field *field, sft_span old,
                       const sft_node *root, sfti_arena *arena) {
    sft_span own, item;
    cli_raw raw;
    list->count = 0;
    if (cli_raw_member(old, field->name, &own)) {
        char *parts = *own.data == '"' ? sfti_arena_take(arena, own.len) : NULL;
        if (parts) { /* a text that somebody wrote: "a, b" */
            sft_span rest = { own.data + 1, own.len - 2 };
            rest = (sft_span){ parts, sfti_json_decode(rest, parts) };
            while (cli_next_part(&rest, ',', &item)) list_take(list, item, false);
        }
        list->lost |= *own.data == '"' && !parts;
        for (cli_raw_begin(&raw, own); cli_raw_next(&raw);) {
            char *text = sfti_arena_take(arena, raw.value.len + 1);
            list->lost |= !text;
            if (raw.value.len < 2 || *raw.value.data != '"' || !text) continue;
            sft_span inner = { raw.value.data + 1, raw.value.len - 2 };
            item = (sft_span){ text, sfti_json_decode(inner, text) };
            list_take(list, item, false);
        }
        return;
    }
    for (const sft_node *one = cli_first(root, field->fact); one; one = one->next)
        list_take(list, field->items ? sft_node_text(one, field->items) : one->text, false);
}

/* ── The text ── */

typedef struct note_values {
    note_list lists[NOTE_FIELDS];
    sft_span texts[NOTE_FIELDS];
    bool set[NOTE_FIELDS], gone[NOTE_FIELDS];
} note_values;

static void apply(note_values *values, const note_change *change, sft_span old,
                  const sft_node *root, sfti_arena *arena) {
    size_t at = (size_t)(change->field - note_fields);
    note_list *list = &values->lists[at];
    sft_span rest = change->value, item;
    if (change->how != '=' && rest.len == 0) return; /* nothing is added or taken off */
    if (change->field->kind == NOTE_LIST && change->value.len > 0) {
        if (change->how == '=') list->count = 0;
        else if (!values->set[at]) list_begin(list, change->field, old, root, arena);
        while (cli_next_part(&rest, ',', &item)) list_take(list, item, change->how == '-');
    }
    values->texts[at] = change->value;
    values->set[at] = true;
    values->gone[at] = change->how == '=' && change->value.len == 0;
}

static void put_value(sfti_json_writer *w, const note_values *values, size_t at) {
    const note_field *field = &note_fields[at];
    sft_span text = values->texts[at];
    switch (field->kind) {
    case NOTE_TEXT: sfti_json_put_text(w, field->name, text); break;
    case NOTE_FLAG: sfti_json_put_bool(w, field->name, cli_is(text, "yes")); break;
    case NOTE_NUMBER:
        sfti_json_key(w, field->name);
        sfti_json_raw(w, text);
        break;
    case NOTE_LIST:
        sfti_json_put_open(w, field->name, '[');
        for (size_t i = 0; i < values->lists[at].count; i++)
            sfti_json_span(w, values->lists[at].items[i]);
        sfti_json_close(w, ']');
    }
}

/* Which of a note's facts, or of the two that follow them, a key is; NOTE_KEYS: somebody else's. */
#define NOTE_KEYS (NOTE_FIELDS + 2)
static const char *name_at(size_t i) {
    return i < NOTE_FIELDS ? note_fields[i].name : i == NOTE_FIELDS ? NOTE_WEIGHTS : NOTE_BYTES;
}

static size_t place_of(sft_span key) {
    size_t i = 0;
    while (i < NOTE_KEYS && !cli_raw_is_key(key, sft_span_cstr(name_at(i)))) i++;
    return i;
}

/* One of two values would be lost. */
static sft_code check_once(sft_span old, sft_error *err) {
    bool seen[NOTE_KEYS] = { false };
    cli_raw raw;
    for (cli_raw_begin(&raw, old); cli_raw_next(&raw);) {
        size_t at = place_of(raw.key);
        if (at == NOTE_KEYS) continue;
        if (seen[at])
            return cli_fail_hint(err, SFT_EXISTS, SFT_HINT_NONE, "expected the key \"%s\" once in "
                                 "the note, found it again: the note stays", name_at(at));
        seen[at] = true;
    }
    return SFT_OK;
}

sft_code note_text(cli *c, sft_span old, const sft_node *root, const note_change *changes,
                   size_t count, const char *digest, uint64_t bytes, sft_buffer *out,
                   sft_error *err) {
    sfti_arena arena = { .alloc = c->alloc };
    note_values *values = sfti_arena_take(&arena, sizeof *values);
    sft_sink sink = sft_sink_memory(out);
    sfti_json_writer w;
    cli_raw raw;
    sft_code code = values ? check_once(old, err) : sfti_fail_memory(err, sizeof *values);
    if (code) {
        sfti_arena_free(&arena);
        return code;
    }
    memset(values, 0, sizeof *values);
    for (size_t i = 0; i < count; i++) apply(values, &changes[i], old, root, &arena);
    sfti_json_write(&w, &sink, 0, err);
    sfti_json_open(&w, '{');
    for (size_t i = 0; i < NOTE_FIELDS; i++) {
        sft_span kept;
        if (values->set[i] && !values->gone[i]) put_value(&w, values, i);
        else if (!values->set[i] && cli_raw_member(old, note_fields[i].name, &kept))
            cli_raw_write(&w, sft_span_cstr(note_fields[i].name), kept);
    }
    for (cli_raw_begin(&raw, old); cli_raw_next(&raw);) {
        if (place_of(raw.key) == NOTE_KEYS) cli_raw_write(&w, raw.key, raw.value);
    }
    if (digest) {
        sfti_json_put_cstr(&w, NOTE_WEIGHTS, digest);
        sfti_json_put_uint(&w, NOTE_BYTES, bytes);
    }
    for (size_t i = NOTE_FIELDS; !digest && i < NOTE_KEYS; i++) {
        sft_span kept, key = sft_span_cstr(name_at(i));
        if (cli_raw_member(old, key.data, &kept)) cli_raw_write(&w, key, kept);
    }
    sfti_json_close(&w, '}');
    code = sfti_json_done(&w);
    for (size_t i = 0; !code && i < NOTE_FIELDS; i++)
        if (values->lists[i].lost) code = sfti_fail_memory(err, old.len);
        else if (values->lists[i].full)
            code = cli_usage_error(err, "expected at most %d %s, found more", NOTE_WORDS_MOST,
                                   note_fields[i].name);
    if (!code && !sfti_buffer_put(out, "\n", 1)) code = sfti_fail_memory(err, out->len);
    sfti_arena_free(&arena);
    return code;
}
