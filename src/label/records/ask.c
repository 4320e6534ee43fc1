/* Questions to records. Tests: test_records.c. */
#include "label/info.h"
#include "label/records/made.h"

#include <string.h>

/* ── Records and rows ── */

size_t sfti_record_count(const sfti_records *records) {
    return records->record_count;
}

const sfti_record *sfti_record_at(const sfti_records *records, size_t i) {
    return &records->records[i];
}

uint32_t sfti_record_hash(sfti_record_type type, sft_span id) {
    uint32_t hash = (uint32_t)type * 31u + (uint32_t)id.len;
    for (size_t i = 0; i < id.len; i++)
        hash = (hash ^ (uint8_t)(id.data[i] == '_' ? '-' : id.data[i])) * 0x01000193u;
    return hash ^ hash >> 15;
}

bool sfti_same_id(sft_span a, sft_span b) {
    if (a.len != b.len) return false;
    for (size_t i = 0; i < a.len; i++)
        if ((a.data[i] == '_' ? '-' : a.data[i]) != (b.data[i] == '_' ? '-' : b.data[i]))
            return false;
    return true;
}

const sfti_record *sfti_record_find(const sfti_records *records, sfti_record_type type,
                                    sft_span id) {
    uint32_t hash = sfti_record_hash(type, id), at = hash & records->slot_mask, slot;
    for (; (slot = records->slots[at]) != 0; at = (at + 1) & records->slot_mask) {
        if ((slot ^ hash) >> 16) continue;
        const sfti_record *record = &records->records[(slot & 0xFFFF) - 1];
        if (record->type == type && sfti_same_id(sft_span_cstr(record->id), id)) return record;
    }
    return NULL;
}

const sfti_record *sfti_model_record(const sfti_records *records, const char *id) {
    return id ? sfti_record_find(records, SFTI_MODEL, sft_span_cstr(id)) : NULL;
}

const sfti_record *sfti_row_record(const sfti_records *records, const sfti_record_row *row) {
    return &records->records[row->record];
}

static const sft_span *source_of(const sfti_records *records, uint8_t text) {
    return records->sources[text].len > 0 ? &records->sources[text] : NULL;
}

const sft_span *sfti_row_source(const sfti_records *records, const sfti_record_row *row) {
    return source_of(records, row->text);
}

const sft_span *sfti_record_source(const sfti_records *records, const sfti_record *record) {
    return source_of(records, record->text);
}

const char *sfti_records_place(const sfti_records *records, const char *at, size_t *line,
                               size_t *column) {
    *line = *column = 1;
    for (size_t i = 0; i < records->text_count; i++) {
        sft_span text = records->texts[i].text;
        if (text.len == 0 || at < text.data || at > text.data + text.len) continue;
        for (const char *p = text.data; p < at; p++) {
            bool ends = *p == '\n';
            *line += ends;
            *column = ends ? 1 : *column + (((uint8_t)*p & 0xC0) != 0x80);
        }
        return records->texts[i].name;
    }
    return NULL;
}

/* What was read of it before its clauses stands in the line of its word, or above that. */
sft_span sfti_row_written(const sfti_records *records, const sfti_record_row *row) {
    const char *begin = records->texts[row->text].text.data, *at = sfti_row_text(row).data;
    const char *end = at + row->len;
    sft_span word = sfti_word_rows[row->word].word;
    for (bool found = false; !found && at > begin;) {
        for (at--; at > begin && at[-1] != '\n';) at--;
        sft_span line = sfti_trim((sft_span){ at, (size_t)(end - at) });
        found = line.len >= word.len && memcmp(line.data, word.data, word.len) == 0;
    }
    return sfti_trim((sft_span){ at, (size_t)(end - at) });
}

sft_span sfti_row_word_name(sfti_word word, const char **about) {
    *about = sfti_word_rows[word].about;
    return sfti_word_rows[word].word;
}

sft_span sfti_record_type_name(sfti_record_type type) {
    return sfti_record_types[type];
}

const char *sfti_row_kind(const sfti_records *records, const sfti_record_row *row) {
    return row->kind == UINT16_MAX ? NULL : records->records[row->kind].id;
}

const sfti_record_row *sfti_rows(const sfti_records *records, sfti_word word, unsigned sub) {
    uint16_t number = records->heads[sfti_row_list(word, sub)];
    return number ? &records->rows[number - 1] : NULL;
}

const sfti_record_row *sfti_rows_next(const sfti_records *records, const sfti_record_row *row) {
    return row->next ? &records->rows[row->next - 1] : NULL;
}

const sfti_record_row *sfti_record_row_of(const sfti_records *records, const sfti_record *record,
                                          sfti_word word, const sfti_record_row *after) {
    if (!record) return NULL;
    const sfti_record_row *row = after ? after + 1 : records->rows + record->first;
    const sfti_record_row *end = records->rows + record->first + record->count;
    while (row < end && row->word != word) row++;
    return row < end ? row : NULL;
}

const sfti_record_row *sfti_table_row(const sfti_records *records, sfti_table_id table, size_t i) {
    return i < records->table_counts[table] ? &records->rows[records->tables[table][i] - 1] : NULL;
}

/* ── What a row says ── */

static bool is_flag(sft_span word) {
    static const char flags[][6] = { "write", "plain", "fused" };
    for (size_t i = 0; word.len == 5 && i < SFTI_COUNT(flags); i++)
        if (memcmp(word.data, flags[i], 5) == 0) return true;
    return false;
}

bool sfti_next_item(sft_span *rest, sfti_record_item *item) {
    const char *at = rest->data, *end = at + rest->len;
    bool named = true;
    while (at < end && sfti_row_blank(*at)) at++;
    const char *begin = at;
    *item = (sfti_record_item){ { "", 0 }, { "", 0 } };
    if (at == end) return false;
    bool quoted = *at == '"';
    while (!quoted && at < end && !sfti_row_blank(*at)) {
        if (*at == '=' && named && at > begin) {
            item->name = (sft_span){ begin, (size_t)(at - begin) };
            begin = at + 1;
            quoted = begin < end && *begin == '"';
            named = false;
        }
        named = named && ((*at >= 'a' && *at <= 'z') || *at == '_');
        at++;
    }
    if (quoted) /* up to the quote that ends it, or the end of its line */
        for (at = ++begin; at < end && *at != '"' && *at != '\n' && *at != '\v';) at++;
    item->value = (sft_span){ begin, (size_t)(at - begin) };
    if (quoted && at < end) at++;
    *rest = (sft_span){ at, (size_t)(end - at) };
    if (named && !quoted && is_flag(item->value)) {
        item->name = item->value;
        item->value.len = 0;
    }
    return true;
}

/* Most are plain words. */
bool sfti_next_said(sft_span *rest, sft_span *word) {
    const char *at = rest->data, *end = at + rest->len;
    sfti_record_item item;
    while (at < end && sfti_row_blank(*at)) at++;
    const char *begin = at;
    while (at < end && (uint8_t)*at > ' ' && *at != '=' && *at != '"') at++;
    *word = (sft_span){ begin, (size_t)(at - begin) };
    if (at > begin && (at == end || sfti_row_blank(*at)) && !is_flag(*word)) {
        *rest = (sft_span){ at, (size_t)(end - at) };
        return true;
    }
    if (!sfti_next_item(rest, &item) || item.name.len > 0) return false;
    *word = item.value;
    return true;
}

bool sfti_row_has(const sfti_record_row *row, const char *name, sft_span *value) {
    sft_span rest = sfti_row_text(row);
    for (sfti_record_item item; sfti_next_item(&rest, &item);) {
        if (!sfti_is(item.name, name)) continue;
        if (value) *value = item.value;
        return true;
    }
    if (value) *value = (sft_span){ "", 0 };
    return false;
}

uint32_t sfti_row_firsts(const sfti_record_row *row) {
    sft_span rest = sfti_row_text(row), word;
    uint32_t firsts = 0;
    while (sfti_next_said(&rest, &word)) {
        size_t i = 0;
        while (i < word.len && (word.data[i] == '_' || word.data[i] == '-')) i++;
        if (i > 0) firsts |= sfti_first_bit('_') | sfti_first_bit('-');
        if (i < word.len) firsts |= sfti_first_bit(word.data[i]);
    }
    return firsts;
}

sft_span sfti_row_word(const sfti_record_row *row) {
    sft_span rest = sfti_row_text(row), word;
    return sfti_next_said(&rest, &word) ? word : (sft_span){ "", 0 };
}

sft_span sfti_record_word(const sfti_records *records, const sfti_record *record, sfti_word word) {
    return sfti_row_word(sfti_record_row_of(records, record, word, NULL));
}

sft_span sfti_row_name(const sfti_record_row *row, sft_span *clauses) {
    sft_span text = sfti_row_text(row), colon = sfti_find_byte(text, ':');
    *clauses = colon.data ? sfti_from(colon, 1) : (sft_span){ "", 0 };
    text.len -= colon.len;
    return text;
}

/* ── Clauses ── */

static sft_span skip_gaps(sft_span text) {
    while (text.len > 0 && sfti_row_blank(*text.data)) text.data++, text.len--;
    return text;
}

sft_span sfti_next_clause(sft_span *rest) {
    sft_span text = skip_gaps(*rest), next;
    const char *end = text.data + text.len, *line = sfti_row_line_end(text.data, text.len);
    /* mostly there is nothing but the clause */
    if (line && end - line > 1 && !sfti_row_blank(line[1]) && line[1] != '|'
        && !sfti_row_blank(line[-1])) {
        *rest = (sft_span){ line + 1, (size_t)(end - line) - 1 };
        return (sft_span){ text.data, (size_t)(line - text.data) };
    }
    sft_span clause = { text.data, 0 };
    do {
        next = sfti_from(text, clause.len);
        if (next.len > 0 && clause.len > 0) next = sfti_from(next, 1);
        const char *stop = sfti_row_line_end(next.data, next.len);
        clause.len = stop ? (size_t)(stop - text.data) : text.len;
        next = skip_gaps(sfti_from(text, clause.len));
    } while (next.len > 0 && *next.data == '|');
    *rest = next;
    while (clause.len > 0 && sfti_row_blank(clause.data[clause.len - 1])) clause.len--;
    return clause;
}

sft_span sfti_next_alternative(sft_span *rest) {
    sft_span piece = *rest;
    const char *at = rest->len ? rest->data + 1 : NULL, *end = rest->data + rest->len;
    while (at && (at = memchr(at, '|', (size_t)(end - at))) && !sfti_row_blank(at[-1])) at++;
    if (at) piece.len = (size_t)(at - rest->data);
    *rest = at ? skip_gaps(sfti_from(*rest, piece.len + 1)) : (sft_span){ NULL, 0 };
    while (piece.len > 0 && sfti_row_blank(piece.data[piece.len - 1])) piece.len--;
    return piece;
}

bool sfti_predicate_of(sft_span text, sfti_predicate *out, bool *right) {
    const bool counts = sfti_begins(text, "count(");
    *out = (sfti_predicate){ .compare = 0 };
    *right = false;
    if (!counts && !sfti_begins(text, "@")) return false;
    size_t at = 0;
    while (at < text.len && !sfti_row_blank(text.data[at])) at++;
    sft_span asked = { text.data, at }, rest = skip_gaps(sfti_from(text, at));
    for (at = 0; at < rest.len && !sfti_row_blank(rest.data[at]);) at++;
    sft_span sign = { rest.data, at };
    out->value = skip_gaps(sfti_from(rest, at));
    if (sfti_is(sign, "=")) out->compare = '=';
    else if (sfti_is(sign, ">=")) out->compare = '>';
    else if (sfti_is(sign, "<=")) out->compare = '<';
    if (!out->compare || out->value.len == 0) return true;
    if (counts) {
        asked = sfti_from(asked, strlen("count("));
        if (!sfti_ends(asked, ".#)") || asked.len < 4) return true;
        out->begin = (sft_span){ asked.data, asked.len - 2 };
        *right = !memchr(out->begin.data, '#', out->begin.len)
              && sfti_parse_uint(out->value, &out->number);
        return true;
    }
    asked = sfti_from(asked, 1);
    out->pointer = sfti_find_byte(asked, ':');
    while (out->pointer.len > 1 && out->pointer.data[1] != '/')
        out->pointer = sfti_find_byte(sfti_from(out->pointer, 1), ':');
    if (out->pointer.len == 1) out->pointer = (sft_span){ NULL, 0 };
    out->key = (sft_span){ asked.data, asked.len - out->pointer.len };
    if (out->pointer.len > 0) out->pointer = sfti_from(out->pointer, 1);
    size_t steps = 0;
    for (size_t i = 0; i < out->pointer.len; i++) steps += out->pointer.data[i] == '/';
    *right = out->compare == '=' && out->key.len > 0 && steps <= SFTI_PREDICATE_STEPS;
    return true;
}

bool sfti_size_fits(sft_span wanted, uint64_t size) {
    sft_span piece;
    if (wanted.len == 1 && *wanted.data == '*') return true;
    while (sfti_next_piece(&wanted, '|', &piece)) {
        uint64_t value;
        if (sfti_parse_uint(piece, &value) && value == size) return true;
    }
    return false;
}

/* ── Producers' words ── */

const sfti_record *sfti_said(const sfti_records *records, sfti_record_type type,
                             sfti_producer producer, sft_span text, bool whole,
                             const sfti_record_row **row) {
    const sfti_record *found = NULL;
    size_t most = 0;
    text = sfti_trim(text);
    SFTI_EACH_ROW(at, records, SFTI_SAYS, producer) {
        const sfti_record *record = sfti_row_record(records, at);
        sft_span rest = sfti_row_text(at), word;
        if (!sfti_row_may_say(at, text)
            || (record->type != type && (type != SFTI_MODEL || record->type != SFTI_SEVERAL)))
            continue;
        while (sfti_next_said(&rest, &word)) {
            size_t len = word.len; /* with its star */
            bool open = len > 1 && word.data[len - 1] == '*';
            word.len -= open;
            if (len <= most || word.len > text.len || (whole && !open && word.len != text.len)
                || !sfti_same_text(word, (sft_span){ text.data, word.len }))
                continue;
            /* it goes on, if at all, with no letter or digit */
            char next = word.len < text.len ? text.data[word.len] : ' ';
            if (!open && !(next & 0x80) && sfti_word_byte(next)) continue;
            found = record;
            most = len;
            if (row) *row = at;
        }
    }
    return found;
}

const char *sfti_said_model(const sfti_records *records, sfti_producer producer, sft_span text,
                            const sfti_record_row **row) {
    bool whole = producer != SFTI_SAYS_MODELSPEC && producer != SFTI_SAYS_CIVITAI;
    const sfti_record *record = sfti_said(records, SFTI_MODEL, producer, text, whole, row);
    return record ? record->id : NULL;
}

sft_span sfti_written(const sfti_records *records, const sfti_record *of, sfti_producer producer,
                      sft_span variant, sft_span prediction) {
    const sfti_record_row *row = NULL;
    sft_span best = { "", 0 }, text, told;
    while ((row = sfti_record_row_of(records, of, SFTI_SAYS, row))) {
        if (row->sub != producer || !sfti_row_has(row, "write", &text)) continue;
        if (text.len == 0) text = sfti_row_word(row);
        if (sfti_row_has(row, "prediction", &told) && !sft_span_equal(told, prediction)) continue;
        bool any = !sfti_row_has(row, "variant", &told);
        if (!any && sft_span_equal(told, variant)) return text;
        if (any && best.len == 0) best = text;
    }
    return best;
}

/* ── Keys ── */

void sfti_made_key_bits(const sfti_records *records, uint32_t bits[SFTI_MADE_KEY_BITS / 32]) {
    SFTI_EACH_ROW(row, records, SFTI_KEY, 0) {
        sft_span key = sfti_row_word(row);
        uint32_t bit = sfti_made_key_bit(key);
        if (key.len > 0 && *key.data != '/') bits[bit / 32] |= UINT32_C(1) << bit % 32;
    }
}
