/* Texts to records: lines to rows, the lists and tables that they stand in. Nothing is copied but
 * ids: rows are where they stand in their text. Tests: test_records.c. */
#include "label/records/read.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/json_lex.h"
#include "label/info.h"

#include <string.h>

#define ROW_BYTES 65535
#define WORD_SLOTS 64
#define NO_KIND UINT16_MAX

typedef struct reader {
    sfti_arena *arena;
    sfti_records *out;
    const sfti_records_text *text;
    uint8_t text_index;
    const char *at, *end; /* of what is not read yet */
    size_t line;          /* from 1 */
    const char *begin;    /* of that line */
    size_t indent, lines; /* of the row at hand; lines 0: there is none */
    uint8_t words[WORD_SLOTS]; /* word + 1, by hash */
    sft_span kind;             /* that was looked up the last time */
    uint16_t kind_record;
    uint8_t kind_table;
    sft_error *err;
    sft_code code;
} reader;

static SFTI_COLD void refuse_line(reader *r, const char *at, const char *expected, sft_span found) {
    if (r->code) return;
    bool here = at >= r->begin && at <= r->end;
    r->code = sfti_fail(r->err, SFT_BAD_ARGUMENT,
                        "%s: line %zu, column %zu: expected %s, found \"%.*s\"", r->text->name,
                        r->line, here ? (size_t)(at - r->begin) + 1 : 1, expected,
                        (int)(found.len < 64 ? found.len : 64), found.data);
}

/* ── Words ── */

static bool same_word(sft_span a, sft_span b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static size_t word_hash(sft_span word) {
    return ((uint8_t)word.data[0] * 5u + (uint8_t)word.data[word.len - 1] * 3u + word.len * 11u)
         % WORD_SLOTS;
}

static void place_words(reader *r) {
    for (unsigned i = 0; i < SFTI_ROW_WORDS; i++) {
        size_t at = word_hash(sfti_word_rows[i].word);
        while (r->words[at]) at = (at + 1) % WORD_SLOTS;
        r->words[at] = (uint8_t)(i + 1);
    }
}

static int known_word(const reader *r, sft_span word) {
    size_t at = word_hash(word);
    for (; r->words[at]; at = (at + 1) % WORD_SLOTS)
        if (same_word(word, sfti_word_rows[r->words[at] - 1].word)) return r->words[at] - 1;
    return -1;
}

static int find_in(const sft_span *list, int count, sft_span word) {
    for (int i = 0; i < count; i++)
        if (same_word(word, list[i])) return i;
    return -1;
}

static bool is_row_blank(char c) {
    return (uint8_t)c <= ' ';
}

/* The next word of a line, up to a blank. */
static sft_span cut_word(sft_span *line) {
    const char *at = line->data, *end = at + line->len;
    while (at < end && is_row_blank(*at)) at++;
    const char *begin = at;
    while (at < end && !is_row_blank(*at)) at++;
    *line = (sft_span){ at, (size_t)(end - at) };
    return (sft_span){ begin, (size_t)(at - begin) };
}

/* ── Records ── */

/* False if there is one of that id. */
static bool index_record(reader *r, sfti_record_type type, sft_span id) {
    sfti_records *out = r->out;
    uint32_t hash = sfti_record_hash(type, id), at = hash & out->slot_mask, slot;
    for (; (slot = out->slots[at]) != 0; at = (at + 1) & out->slot_mask) {
        const sfti_record *record = &out->records[(slot & 0xFFFF) - 1];
        if (!((slot ^ hash) >> 16) && record->type == type
            && sfti_same_id(sft_span_cstr(record->id), id))
            return false;
    }
    out->slots[at] = (hash & 0xFFFF0000u) | (out->record_count + 1u);
    return true;
}

/* TYPE ID "Label" */
static void read_record(reader *r, sft_span line) {
    sfti_records *out = r->out;
    sft_span type = cut_word(&line), id = cut_word(&line), label = sfti_trim(line);
    int known = find_in(sfti_record_types, SFTI_RECORD_TYPES, type);
    r->lines = 0;
    if (known < 0) refuse_line(r, type.data, "a type of records", type);
    if ((known == SFTI_SEVERAL) != (id.len == 0)) refuse_line(r, id.data, "an id", id);
    bool quoted = label.len > 1 && *label.data == '"' && label.data[label.len - 1] == '"';
    if (label.len > 0 && !quoted)
        refuse_line(r, label.data, "a label between quotes", label);
    if (r->code) return;
    if (id.len > 0 && !index_record(r, (sfti_record_type)known, id))
        refuse_line(r, id.data, "an id that has no record yet", id);
    if (r->code) return;
    char *copy = id.len > 0 ? sfti_arena_copy(r->arena, id.data, id.len) : NULL;
    if (id.len > 0 && !copy) {
        r->code = sfti_fail_memory(r->err, id.len);
        return;
    }
    if (label.len > 0) label = (sft_span){ label.data + 1, label.len - 2 };
    out->records[out->record_count] = (sfti_record){ .id = copy, .label = label,
                                                     .type = (sfti_record_type)known,
                                                     .first = out->row_count };
    out->record_count++;
}

/* ── Rows ── */

static void list_row(sfti_records *out, size_t list, uint16_t number) {
    if (out->tails[list]) out->rows[out->tails[list] - 1].next = number;
    else out->heads[list] = number;
    out->tails[list] = number;
}

/* The word of a row, and what stands behind it in its line. */
static void read_row(reader *r, sft_span line) {
    sfti_records *out = r->out;
    sft_span word = cut_word(&line);
    int known = known_word(r, word);
    if (out->record_count == 0) refuse_line(r, word.data, "a record before its rows", word);
    else if (known < 0
             || !(sfti_word_rows[known].where >> out->records[out->record_count - 1].type & 1))
        refuse_line(r, word.data, "a word that such a record may have", word);
    if (r->code) return;
    sfti_record *record = &out->records[out->record_count - 1];
    sfti_record_row row = { .record = (uint16_t)(out->record_count - 1), .kind = NO_KIND,
                            .word = (uint8_t)known, .text = r->text_index, .trust = 100 };
    bool producer = sfti_word_rows[known].how == SFTI_READ_PRODUCER;
    if (producer || sfti_word_rows[known].how == SFTI_READ_TABLE) {
        sft_span name = cut_word(&line);
        int of = producer ? find_in(sfti_producers, SFTI_PRODUCERS, name)
                          : find_in(sfti_tensor_tables, SFTI_TENSOR_TABLES, name);
        if (of < 0) {
            refuse_line(r, name.data, producer ? "a producer" : "a table of rows", name);
            return;
        }
        row.sub = (uint8_t)of;
    }
    const char *stop = line.data + line.len;
    while (line.data < stop && is_row_blank(*line.data)) line.data++;
    row.at = line.data;
    row.len = (uint32_t)(stop - line.data);
    out->rows[out->row_count++] = row;
    list_row(out, sfti_row_list(row.word, row.sub), out->row_count);
    record->count++;
    r->lines = 1;
}

static void read_lines(reader *r) {
    while (r->at < r->end && !r->code) {
        const char *at = r->begin = r->at;
        const char *stop = memchr(at, '\n', (size_t)(r->end - at));
        if (!stop) stop = r->end;
        r->at = stop < r->end ? stop + 1 : stop;
        if (++r->line > SFTI_RECORDS_LINES)
            refuse_line(r, at, "20,000 lines at most", (sft_span){ at, 0 });
        while (at < stop && is_row_blank(*at)) at++;
        size_t indent = (size_t)(at - r->begin);
        if (at == stop || (*at == '#' && (at + 1 == stop || at[1] == ' '))) continue;
        if ((size_t)(stop - at) > ROW_BYTES)
            refuse_line(r, at, "shorter lines", (sft_span){ at, 64 });
        sft_span line = { at, (size_t)(stop - at) };
        if (r->code) return;
        if (indent == 0) {
            read_record(r, line);
        } else if (r->lines == 0 || indent == r->indent) {
            r->indent = indent;
            read_row(r, line);
        } else if (indent < r->indent) {
            refuse_line(r, at, "the indentation of the rows above", line);
        } else {
            sfti_record_row *row = &r->out->rows[r->out->row_count - 1];
            row->len = (uint32_t)(stop - row->at);
            if (++r->lines > SFTI_RECORDS_CLAUSES + 1 || row->len > ROW_BYTES)
                refuse_line(r, at, "64 clauses at most", line);
        }
    }
}

/* ── What rows tell before their clauses ── */

static const sft_span head_names[] = { { "table", 5 }, { "of", 2 } };
static const sft_span structure_of[] = { { "models", 6 }, { "adapters", 8 }, { "both", 4 } };

/* Kinds whose rows are tried together. */
static sfti_table_id table_of(sft_span kind) {
    static const struct { const char *kind; sfti_table_id table; } rows[] = {
        { "diffusion_model", SFTI_DENOISERS }, { "language_model", SFTI_LANGUAGE },
        { "vae", SFTI_VAE_TABLE }, { "image_encoder", SFTI_IMAGES },
        { "text_encoder", SFTI_ENCODERS }, { "upscaler", SFTI_OTHERS },
        { "detector", SFTI_OTHERS }, { "vision_model", SFTI_OTHERS },
        { "audio_model", SFTI_OTHERS },
    };
    for (size_t i = 0; i < SFTI_COUNT(rows); i++)
        if (sfti_is(kind, rows[i].kind)) return rows[i].table;
    return SFTI_SPECIAL;
}

static bool small_number(sft_span text, unsigned most, unsigned *out) {
    *out = 0;
    for (size_t i = 0; i < text.len && *out <= most; i++) {
        if (!sfti_lex_digit(text.data[i])) return false;
        *out = *out * 10 + (unsigned)(text.data[i] - '0');
    }
    return text.len > 0 && *out <= most;
}

/* [KIND] TRUST [NAME=VALUE…]; what is left of the row is its clauses. */
static void read_head(reader *r, sfti_record_row *row) {
    const char *stop = sfti_row_line_end(row->at, row->len);
    sft_span line = { row->at, stop ? (size_t)(stop - row->at) : row->len }, whole = line;
    unsigned number;
    row->sub = SFTI_ADAPTERS;
    if (row->word != SFTI_ADAPTER_ROW) {
        sft_span kind = cut_word(&line);
        if (kind.len == 0 || !same_word(kind, r->kind)) { /* mostly that of the row before */
            const sfti_record *of = sfti_record_find(r->out, SFTI_KIND, kind);
            if (!of && (!sfti_is(kind, "-") || row->word == SFTI_TENSORS))
                refuse_line(r, kind.data, "a kind", kind);
            r->kind = kind;
            r->kind_record = of ? (uint16_t)(of - r->out->records) : NO_KIND;
            r->kind_table = (uint8_t)table_of(kind);
        }
        row->kind = r->kind_record;
        row->sub = row->word == SFTI_TENSORS ? r->kind_table : SFTI_OF_MODELS;
    }
    sft_span trust = cut_word(&line);
    if (!small_number(trust, 100, &number))
        refuse_line(r, trust.data, "a trust of 0 to 100", trust);
    row->trust = (uint8_t)number;
    for (sft_span word; (word = cut_word(&line)).len > 0 && !r->code;) {
        sft_span name = { word.data, 0 };
        while (name.len < word.len && name.data[name.len] != '=') name.len++;
        sft_span value = sfti_from(word, name.len < word.len ? name.len + 1 : name.len);
        int of = find_in(structure_of, 3, value);
        if (same_word(name, head_names[0])) row->sub = (uint8_t)table_of(value);
        else if (same_word(name, head_names[1]) && of >= 0 && row->word == SFTI_STRUCTURE)
            row->sub = (uint8_t)(of + 1);
        else refuse_line(r, word.data, "table= or of=", word);
    }
    size_t head = stop ? (size_t)(stop - row->at) + 1 : row->len;
    row->at += head;
    row->len -= (uint32_t)head;
    if (row->len == 0) refuse_line(r, row->at, "clauses in the lines below", whole);
}

/* ── Tables ── */

static unsigned table_of_row(const sfti_record_row *row) {
    return row->word == SFTI_STRUCTURE ? SFTI_STRUCTURES : row->sub;
}

static void fill_tables(reader *r) {
    static const sfti_word words[] = { SFTI_TENSORS, SFTI_ADAPTER_ROW, SFTI_STRUCTURE };
    sfti_records *out = r->out;
    for (size_t w = 0; w < SFTI_COUNT(words); w++)
        for (uint16_t n = out->heads[words[w]]; n && !r->code; n = out->rows[n - 1].next) {
            read_head(r, &out->rows[n - 1]);
            out->table_counts[table_of_row(&out->rows[n - 1])]++;
        }
    for (unsigned t = 0; t < SFTI_TABLES && !r->code; t++) {
        size_t count = (size_t)out->table_counts[t] + 1;
        out->tables[t] = sfti_arena_array(r->arena, count, sizeof **out->tables);
        if (!out->tables[t]) r->code = sfti_fail_memory(r->err, count);
    }
    uint16_t next[SFTI_TABLES] = { 0 };
    for (size_t w = 0; w < SFTI_COUNT(words); w++)
        for (uint16_t n = out->heads[words[w]]; n && !r->code; n = out->rows[n - 1].next) {
            unsigned t = table_of_row(&out->rows[n - 1]);
            out->tables[t][next[t]++] = n;
        }
}

/* What rows "over" name has records. */
static void check_over(reader *r) {
    const sfti_records *out = r->out;
    for (uint16_t n = out->heads[SFTI_OVER]; n && !r->code; n = out->rows[n - 1].next) {
        const sfti_record_row *row = &out->rows[n - 1];
        sft_span rest = sfti_row_text(row), id;
        while (!r->code && (id = cut_word(&rest)).len > 0)
            if (!sfti_record_find(out, out->records[row->record].type, id))
                refuse_line(r, id.data, "the id of a record", id);
    }
}

static void find_parents(reader *r) {
    sfti_records *out = r->out;
    for (uint16_t n = out->heads[SFTI_PARENT]; n && !r->code; n = out->rows[n - 1].next) {
        const sfti_record_row *row = &out->rows[n - 1];
        sfti_record *record = &out->records[row->record];
        sft_span line = sfti_row_text(row), id = cut_word(&line), how = cut_word(&line);
        record->parent = sfti_record_find(out, record->type, id);
        record->kin = sfti_is(how, "derived")      ? SFTI_KIN_DERIVED
                    : sfti_is(how, "other-layers") ? SFTI_KIN_UNSURE
                                                   : SFTI_KIN_MEMBER;
        if (!record->parent) refuse_line(r, id.data, "the id of a record", id);
        if (how.len > 0 && record->kin == SFTI_KIN_MEMBER)
            refuse_line(r, how.data, "derived or other-layers", how);
    }
}

/* ── All ── */

static size_t count_lines(const sfti_records_text *text) {
    const char *at = text->text.data, *end = at + text->text.len;
    size_t lines = text->lines ? 0 : 1;
    while (!text->lines && at < end && (at = memchr(at, '\n', (size_t)(end - at)))) at++, lines++;
    return text->lines ? text->lines : lines;
}

static bool take_room(reader *r, size_t lines) {
    sfti_records *out = r->out;
    uint32_t slots = 64;
    while (slots <= lines) slots *= 2; /* each line may begin a record; one stays free */
    out->slot_mask = slots - 1;
    out->rows = sfti_arena_array(r->arena, lines, sizeof *out->rows);
    out->records = sfti_arena_array(r->arena, lines, sizeof *out->records);
    out->slots = sfti_arena_array(r->arena, slots, sizeof *out->slots);
    if (out->slots) memset(out->slots, 0, slots * sizeof *out->slots);
    return out->rows && out->records && out->slots;
}

sft_code sfti_records_read(sfti_arena *arena, const sfti_records_text *texts, size_t count,
                           const sfti_records **out, sft_error *err) {
    reader r = { .arena = arena, .err = err };
    size_t lines = 0;
    *out = NULL;
    for (size_t i = 0; i < count; i++) {
        bool fits = texts[i].text.len <= SFTI_RECORDS_BYTES && i < 256;
        if (fits) lines += count_lines(&texts[i]);
        if (!fits || lines > UINT16_MAX - 1)
            return sfti_fail(err, SFT_BAD_ARGUMENT, "%s: expected 4 MiB and 20,000 lines at most",
                             texts[i].name);
    }
    r.out = sfti_arena_take(arena, sizeof *r.out);
    if (!r.out) return sfti_fail_memory(err, sizeof *r.out);
    memset(r.out, 0, sizeof *r.out);
    if (!take_room(&r, lines + 1)) return sfti_fail_memory(err, lines * sizeof(sfti_record));
    place_words(&r);
    for (size_t i = 0; i < count && !r.code; i++) {
        r.text = &texts[i];
        r.text_index = (uint8_t)i;
        r.at = r.begin = texts[i].text.data;
        r.end = r.at + texts[i].text.len;
        r.line = r.lines = 0;
        read_lines(&r);
    }
    if (!r.code) fill_tables(&r);
    if (!r.code) find_parents(&r);
    if (!r.code) check_over(&r);
    if (!r.code) *out = r.out;
    return r.code;
}
