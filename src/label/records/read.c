/* Texts to records: lines to rows, the lists and tables that they stand in. Of what comes with the
 * library nothing is copied but ids: rows are where they stand in their text. Tests:
 * test_records.c. */
#include "label/records/read.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/utf8.h"
#include "label/info.h"

#include <stdio.h>
#include <string.h>

#define ROW_BYTES 65535
#define WORD_SLOTS 64
#define NO_KIND UINT16_MAX
#define NO_RECORD UINT16_MAX
#define LOST_RECORD (UINT16_MAX - 1) /* one that was refused: its rows are passed over */
#define REFUSED_TRUST 255

typedef struct reader {
    sfti_arena *arena;
    sfti_records *out;
    uint8_t text;         /* that is read */
    bool users;           /* it is a user's */
    bool extends;         /* the record at hand began in a text before it */
    const char *at, *end; /* of what is not read yet */
    size_t indent, lines; /* of the row at hand; lines 0: there is none */
    uint8_t words[WORD_SLOTS]; /* word + 1, by hash */
    uint32_t *slots;      /* as in sfti_records */
    uint64_t *seen;       /* of each record: words that it has */
    size_t fitting;       /* of SFTI_RECORDS_FITTING */
    uint16_t record;      /* at hand, or NO_RECORD */
    sft_span kind;             /* that was looked up the last time */
    uint16_t kind_record;
    uint8_t kind_table;
    sfti_refusals to;
    bool skips;           /* the row at hand was refused: its other lines are passed over */
    bool repeats;         /* a row may say again what its record has */
} reader;

/* ── Words ── */

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
        if (sft_span_equal(word, sfti_word_rows[r->words[at] - 1].word)) return r->words[at] - 1;
    return -1;
}

static int find_in(const sft_span *list, int count, sft_span word) {
    for (int i = 0; i < count; i++)
        if (sft_span_equal(word, list[i])) return i;
    return -1;
}

/* ── Records ── */

/* What only records that come with the library may begin: lists that are closed, and what the
 * engine is built on. */
static bool is_ours(sfti_record_type type) {
    return type != SFTI_MODEL && type != SFTI_VARIANT && type != SFTI_FAMILY
        && type != SFTI_QUANTISATION;
}

/* TYPE ID "Label" */
static void read_record(reader *r, sft_span line) {
    sfti_records *out = r->out;
    sft_span type = sfti_cut_word(&line), id = sfti_cut_word(&line), label = sfti_trim(line);
    int known = find_in(sfti_record_types, SFTI_RECORD_TYPES, type);
    r->lines = 0;
    if (known < 0)
        sfti_refuse_word(&r->to, "a type of records", type, sfti_record_types, SFTI_RECORD_TYPES);
    if ((known == SFTI_SEVERAL) != (id.len == 0)) sfti_refuse(&r->to, id.data, "an id", id);
    bool quoted = label.len > 1 && *label.data == '"' && label.data[label.len - 1] == '"'
               && !memchr(label.data + 1, '"', label.len - 2);
    if (label.len > 0 && !quoted)
        sfti_refuse(&r->to, label.data, "a label between quotes", label);
    for (size_t i = 0; i < id.len; i++) {
        if (memchr("\"*:=,|!#", id.data[i], 8))
            sfti_refuse(&r->to, id.data, "an id of letters", id);
        if (r->users && id.data[i] >= 'A' && id.data[i] <= 'Z')
            sfti_refuse(&r->to, id.data, "an id in lower case, as all are", id);
    }
    r->record = LOST_RECORD;
    if (r->to.refused) return;
    if (label.len > 0) label = sfti_from((sft_span){ label.data, label.len - 1 }, 1);
    const sfti_record *old = id.len > 0 ? sfti_record_find(out, (sfti_record_type)known, id) : NULL;
    r->extends = old && old->text != r->text;
    if (old && !r->extends) sfti_refuse(&r->to, id.data, "an id that has no record yet", id);
    char other[SFTI_FAULT_MORE] = "";
    if (old && old->label.len > 0)
        (void)snprintf(other, sizeof other, ", which has \"%.*s\"",
                       SFTI_CLIP(old->label, SFTI_FAULT_FOUND));
    if (old && label.len > 0 && !sft_span_equal(label, old->label))
        sfti_refuse_more(&r->to, label.data, "no label, or that of the record that there is", label,
                         other);
    if (!old && r->users && is_ours((sfti_record_type)known))
        sfti_refuse(&r->to, id.len > 0 ? id.data : type.data, "a record that the library has", id);
    if (r->to.refused) return;
    r->record = old ? (uint16_t)(old - out->records) : out->record_count;
    if (old) return;
    char *copy = id.len > 0 ? sfti_arena_copy(r->arena, id.data, id.len) : NULL;
    if (id.len > 0 && !copy) {
        r->to.code = sfti_fail_memory(r->to.err, id.len);
        return;
    }
    uint32_t hash = sfti_record_hash((sfti_record_type)known, id), at = hash & out->slot_mask;
    while (id.len > 0 && r->slots[at]) at = (at + 1) & out->slot_mask;
    if (id.len > 0) r->slots[at] = (hash & 0xFFFF0000u) | (out->record_count + 1u);
    out->records[out->record_count++] = (sfti_record){ .id = copy, .label = label,
                                                       .type = (sfti_record_type)known,
                                                       .text = r->text };
}

/* ── Rows ── */

/* No row has that word. Clauses that are indented like their row are the commonest mistake. */
static void refuse_row(reader *r, sft_span word, bool after_clauses) {
    sfti_record_type type = r->out->records[r->record].type;
    sfti_guess guess = sfti_guess_begin(word);
    for (size_t i = 0; i < SFTI_ROW_WORDS; i++)
        if (sfti_word_rows[i].where >> type & 1
            && !(r->users && sfti_word_rows[i].flags & SFTI_OURS))
            sfti_guess_try(&guess, sfti_word_rows[i].word);
    bool clause = after_clauses && *sfti_guess_text(&guess, "", "") == 0;
    sfti_refuse_guess(&r->to, clause ? "a clause that is indented further than its row"
                                     : "a word that such a record may have", word, &guess);
    if (clause) r->out->rows[r->out->row_count - 1].trust = REFUSED_TRUST; /* it is told here */
}

/* The word of a row, and what stands behind it in its line. */
static void read_row(reader *r, sft_span line) {
    sfti_records *out = r->out;
    sft_span word = sfti_cut_word(&line);
    int known = known_word(r, word);
    const sfti_record_row *before = out->row_count > 0 ? &out->rows[out->row_count - 1] : NULL;
    bool after_clauses = before && before->record == r->record && before->text == r->text
                      && before->word != SFTI_SAYS
                      && sfti_word_rows[before->word].how != SFTI_READ_WORDS;
    r->lines = 1;
    r->skips = true;
    if (r->record == NO_RECORD) sfti_refuse(&r->to, word.data, "a record before its rows", word);
    if (r->record >= LOST_RECORD) return;
    const sfti_word_row *how = known < 0 ? NULL : &sfti_word_rows[known];
    if (!how || !(how->where >> out->records[r->record].type & 1))
        refuse_row(r, word, after_clauses);
    if (r->to.refused) return;
    r->repeats = r->repeats || (r->users && how->flags & SFTI_OURS)
              || (!(how->flags & SFTI_REPEATS) && r->seen[r->record] >> known & 1);
    bool fits = known == SFTI_MODULES || known == SFTI_SIBLING;
    const uint64_t fitting = UINT64_C(1) << SFTI_MODULES | UINT64_C(1) << SFTI_SIBLING;
    if (fits && !(r->seen[r->record] & fitting)) r->fitting++;
    r->seen[r->record] |= UINT64_C(1) << known;
    sfti_record_row row = { .record = r->record, .kind = NO_KIND, .word = (uint8_t)known,
                            .text = r->text, .trust = 100 };
    bool producer = how->how == SFTI_READ_PRODUCER;
    if (producer || how->how == SFTI_READ_TABLE) {
        const sft_span *names = producer ? sfti_producers : sfti_tensor_tables;
        int count = producer ? (int)SFTI_PRODUCERS : (int)SFTI_TENSOR_TABLES;
        sft_span name = sfti_cut_word(&line);
        int of = find_in(names, count, name);
        if (of < 0) {
            sfti_refuse_word(&r->to, producer ? "a producer" : "a table of rows", name, names,
                             (size_t)count);
            return;
        }
        row.sub = (uint8_t)of;
    }
    if (how->how == SFTI_READ_NAMED) { /* [TRUST] NAME: */
        sft_span rest = line, trust = sfti_cut_word(&rest);
        uint64_t number;
        if (sfti_parse_uint(trust, &number) && number <= 100) {
            row.trust = (uint8_t)number;
            line = rest;
        }
    }
    const char *stop = line.data + line.len;
    while (line.data < stop && sfti_row_blank(*line.data)) line.data++;
    row.at = line.data;
    row.len = (uint32_t)(stop - line.data);
    if (fits && (known == SFTI_SIBLING || sfti_begins(sfti_row_text(&row), "of="))) r->fitting++;
    if (fits && r->fitting > SFTI_RECORDS_FITTING)
        sfti_refuse(&r->to, word.data, "512 models with modules or siblings at most", word);
    out->rows[out->row_count++] = row;
    r->skips = false;
}

static void read_lines(reader *r) {
    while (r->at < r->end && !r->to.code) {
        const char *at = r->at, *begin = at, *stop = memchr(at, '\n', (size_t)(r->end - at));
        if (!stop) stop = r->end;
        r->at = stop < r->end ? stop + 1 : stop;
        while (at < stop && sfti_row_blank(*at)) at++;
        size_t indent = (size_t)(at - begin);
        if (at == stop) continue;
        sft_span line = { at, (size_t)(stop - at) };
        r->to.refused = false;
        if (line.len > ROW_BYTES) {
            sfti_refuse(&r->to, at, "lines of 64 KiB at most", line);
        } else if (indent == 0) {
            read_record(r, line);
        } else if (r->lines == 0 || indent == r->indent) {
            r->indent = indent;
            read_row(r, line);
        } else if (indent < r->indent) {
            sfti_refuse(&r->to, at, "the indentation of the rows above", line);
        } else if (!r->skips) {
            sfti_record_row *row = &r->out->rows[r->out->row_count - 1];
            row->len = (uint32_t)(stop - row->at);
            if (++r->lines > SFTI_RECORDS_CLAUSES + 1 || row->len > ROW_BYTES)
                sfti_refuse(&r->to, at, "rows of 64 lines and 64 KiB at most", line);
            r->skips = r->to.refused;
        }
    }
}

/* Rows of a record stand together, those of a text before it first; then the lists. */
static void list_rows(reader *r) {
    sfti_records *out = r->out;
    for (uint16_t i = 0; i < out->row_count; i++) out->records[out->rows[i].record].count++;
    for (uint16_t i = 1; i < out->record_count; i++)
        out->records[i].first = (uint16_t)(out->records[i - 1].first + out->records[i - 1].count);
    if (r->out->text_count > 1) {
        sfti_record_row *sorted = sfti_arena_array(r->arena, out->row_count + 1u, sizeof *sorted);
        uint16_t *next = sfti_arena_array(r->arena, out->record_count + 1u, sizeof *next);
        if (!sorted || !next) {
            r->to.code = sfti_fail_memory(r->to.err, out->row_count * sizeof *sorted);
            return;
        }
        for (uint16_t i = 0; i < out->record_count; i++) next[i] = out->records[i].first;
        for (uint16_t i = 0; i < out->row_count; i++)
            sorted[next[out->rows[i].record]++] = out->rows[i];
        out->rows = sorted;
    }
    if (r->repeats) sfti_drop_repeated(&r->to, out);
    for (uint16_t n = 1; n <= out->row_count; n++) {
        const uint8_t how = sfti_word_rows[out->rows[n - 1].word].how;
        if (how == SFTI_READ_PRODUCER
            || (how == SFTI_READ_WORDS && out->rows[n - 1].word != SFTI_MODULES))
            out->rows[n - 1].firsts = sfti_row_firsts(&out->rows[n - 1]);
        size_t list = sfti_row_list(out->rows[n - 1].word, out->rows[n - 1].sub);
        if (out->tails[list]) out->rows[out->tails[list] - 1].next = n;
        else out->heads[list] = n;
        out->tails[list] = n;
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

/* [KIND] TRUST [NAME=VALUE…]; what is left of the row is its clauses. */
static void read_head(reader *r, sfti_record_row *row) {
    const char *stop = sfti_row_line_end(row->at, row->len);
    sft_span line = { row->at, stop ? (size_t)(stop - row->at) : row->len }, whole = line;
    uint64_t number;
    row->sub = SFTI_ADAPTERS;
    if (row->word != SFTI_ADAPTER_ROW) {
        sft_span kind = sfti_cut_word(&line);
        if (kind.len == 0 || !sft_span_equal(kind, r->kind)) { /* mostly that of the row before */
            const sfti_record *of = sfti_record_find(r->out, SFTI_KIND, kind);
            if (!of && (!sfti_is(kind, "-") || row->word == SFTI_TENSORS))
                sfti_refuse_id(&r->to, "a kind", kind, SFTI_KIND);
            r->kind = kind;
            r->kind_record = of ? (uint16_t)(of - r->out->records) : NO_KIND;
            r->kind_table = (uint8_t)table_of(kind);
        }
        row->kind = r->kind_record;
        row->sub = row->word == SFTI_TENSORS ? r->kind_table : SFTI_OF_MODELS;
    }
    sft_span trust = sfti_cut_word(&line);
    if (!sfti_parse_uint(trust, &number) || number > 100)
        sfti_refuse(&r->to, trust.data, "a trust of 0 to 100", trust);
    else row->trust = (uint8_t)number;
    for (sft_span word; (word = sfti_cut_word(&line)).len > 0 && !r->to.refused;) {
        sft_span name = { word.data, 0 };
        while (name.len < word.len && name.data[name.len] != '=') name.len++;
        sft_span value = sfti_from(word, name.len < word.len ? name.len + 1 : name.len);
        int of = find_in(structure_of, 3, value);
        int table = find_in(sfti_tensor_tables, SFTI_TENSOR_TABLES, value);
        if (sft_span_equal(name, head_names[0]) && table >= 0 && row->word == SFTI_TENSORS)
            row->sub = (uint8_t)table;
        else if (sft_span_equal(name, head_names[1]) && of >= 0 && row->word == SFTI_STRUCTURE)
            row->sub = (uint8_t)(of + 1);
        else
            sfti_refuse(&r->to, word.data, name.len < word.len ? "table= or of="
                                                           : "clauses in the lines below", word);
    }
    size_t head = stop ? (size_t)(stop - row->at) + 1 : row->len;
    row->at += head;
    row->len -= (uint32_t)head;
    if (row->len == 0) sfti_refuse(&r->to, row->at, "clauses in the lines below", whole);
}

/* ── Tables ── */

static unsigned table_of_row(const sfti_record_row *row) {
    return row->word == SFTI_STRUCTURE ? SFTI_STRUCTURES : row->sub;
}

static void fill_tables(reader *r) {
    static const sfti_word words[] = { SFTI_TENSORS, SFTI_ADAPTER_ROW, SFTI_STRUCTURE };
    sfti_records *out = r->out;
    uint16_t *tables[SFTI_TABLES] = { NULL }, next[SFTI_TABLES] = { 0 };
    for (size_t w = 0; w < SFTI_COUNT(words); w++)
        for (uint16_t n = out->heads[words[w]]; n && !r->to.code; n = out->rows[n - 1].next) {
            r->to.refused = false;
            if (out->rows[n - 1].trust != REFUSED_TRUST) read_head(r, &out->rows[n - 1]);
            if (r->to.refused) out->rows[n - 1].trust = REFUSED_TRUST;
            out->table_counts[table_of_row(&out->rows[n - 1])]++;
        }
    for (unsigned t = 0; t < SFTI_TABLES && !r->to.code; t++) {
        size_t count = (size_t)out->table_counts[t] + 1;
        out->tables[t] = tables[t] = sfti_arena_array(r->arena, count, sizeof **tables);
        if (!tables[t]) r->to.code = sfti_fail_memory(r->to.err, count);
    }
    for (size_t w = 0; w < SFTI_COUNT(words); w++)
        for (uint16_t n = out->heads[words[w]]; n && !r->to.code; n = out->rows[n - 1].next) {
            unsigned t = table_of_row(&out->rows[n - 1]);
            tables[t][next[t]++] = n;
        }
}

/* What rows "over" name has records. */
static void check_over(reader *r) {
    const sfti_records *out = r->out;
    for (uint16_t n = out->heads[SFTI_OVER]; n && !r->to.code; n = out->rows[n - 1].next) {
        const sfti_record_row *row = &out->rows[n - 1];
        sft_span rest = sfti_row_text(row), id;
        r->to.refused = false;
        while (!r->to.refused && (id = sfti_cut_word(&rest)).len > 0)
            if (!sfti_record_find(out, out->records[row->record].type, id))
                sfti_refuse_id(&r->to, "the id of a record", id, out->records[row->record].type);
    }
}

static const sft_span parent_hows[] = { { "derived", 7 }, { "other-layers", 12 } };

static void find_parents(reader *r) {
    sfti_records *out = r->out;
    for (uint16_t n = out->heads[SFTI_PARENT]; n && !r->to.code; n = out->rows[n - 1].next) {
        const sfti_record_row *row = &out->rows[n - 1];
        sfti_record *record = &out->records[row->record];
        sft_span line = sfti_row_text(row), id = sfti_cut_word(&line), how = sfti_cut_word(&line);
        r->to.refused = false;
        record->parent = sfti_record_find(out, record->type, id);
        record->kin = sfti_is(how, "derived")      ? SFTI_KIN_DERIVED
                    : sfti_is(how, "other-layers") ? SFTI_KIN_UNSURE
                                                   : SFTI_KIN_MEMBER;
        if (!record->parent) sfti_refuse_id(&r->to, "the id of a record", id, record->type);
        if (how.len > 0 && record->kin == SFTI_KIN_MEMBER)
            sfti_refuse_word(&r->to, "derived or other-layers", how, parent_hows,
                             SFTI_COUNT(parent_hows));
    }
}

/* No record is its own ancestor, which is told of the first in a ring; none has more than 8. */
static void check_parents(reader *r) {
    const sfti_records *out = r->out;
    for (uint16_t n = out->heads[SFTI_PARENT]; n && !r->to.code; n = out->rows[n - 1].next) {
        const sfti_record_row *row = &out->rows[n - 1];
        const sfti_record *record = &out->records[row->record], *at = record, *first = record;
        int steps = 0;
        for (; at && steps++ <= SFTI_RECORDS_PARENTS && (at = at->parent) != record;)
            if (at < first) first = at;
        if (!at || (at == record && first < record)) continue;
        r->to.refused = false;
        char ring[512] = "";
        int used = at == record ? snprintf(ring, sizeof ring, "%.50s", record->id) : 0;
        for (at = used ? record->parent : NULL; at; at = at == record ? NULL : at->parent)
            used += snprintf(ring + used, sizeof ring - (size_t)used, " > %.50s", at->id);
        sfti_refuse(&r->to, row->at, "at most 8 parents one above the other, and no ring",
                    used > 0 ? sft_span_cstr(ring) : sfti_row_text(row));
    }
}

static void check_rows(reader *r) {
    size_t left = SFTI_RECORDS_WORDS;
    for (uint16_t i = 0; i < r->out->row_count && !r->to.code; i++) {
        const sfti_record_row *row = &r->out->rows[i];
        sfti_wrong wrong;
        if (r->out->texts[row->text].lines > 0 || row->trust == REFUSED_TRUST
            || sfti_row_is_right(r->out, row, &left, &wrong))
            continue;
        r->to.refused = false;
        if (wrong.type) sfti_refuse_id(&r->to, wrong.expected, wrong.found, wrong.type);
        else sfti_refuse(&r->to, wrong.found.data, wrong.expected, wrong.found);
        if (left == 0) return;
    }
}

/* ── All ── */

/* Comments and carriage returns become blanks, so that all else stays where it is. */
static void blank_comments(char *text, size_t len) {
    for (size_t i = 0, stop; i < len; i = stop + 1) {
        char *end = memchr(text + i, '\n', len - i);
        stop = end ? (size_t)(end - text) : len;
        if (stop > i && text[stop - 1] == '\r') text[stop - 1] = ' ';
        while (i < stop && sfti_row_blank(text[i])) i++;
        if (i < stop && text[i] == '#' && (i + 1 == stop || sfti_row_blank(text[i + 1])))
            memset(text + i, ' ', stop - i);
    }
}

/* A user's text: UTF-8, of which no byte is a control character but for tabs and the ends of lines;
 * a mark of the byte order before it is left out. */
static void copy_records_text(reader *r, sfti_records_text *text) {
    char *copy = sfti_arena_copy(r->arena, text->text.data, text->text.len);
    if (!copy) {
        r->to.code = sfti_fail_memory(r->to.err, text->text.len);
        return;
    }
    text->text.data = copy;
    size_t end = sfti_utf8_check(copy, text->text.len);
    r->to.refused = false;
    if (end < text->text.len)
        sfti_refuse(&r->to, copy + end, "UTF-8", (sft_span){ copy + end, 1 });
    if (sfti_begins(text->text, "\xEF\xBB\xBF")) text->text = sfti_from(text->text, 3);
    blank_comments(copy + (text->text.data - copy), text->text.len);
    for (const char *at = text->text.data; at < text->text.data + text->text.len; at++)
        if (((uint8_t)*at < ' ' && *at != '\t' && *at != '\n') || *at == 0x7F)
            sfti_refuse(&r->to, at, "a text without control characters", (sft_span){ at, 1 });
}

static bool take_room(reader *r, size_t lines) {
    sfti_records *out = r->out;
    uint32_t slots = 64;
    while (slots <= lines) slots *= 2; /* each line may begin a record; one stays free */
    out->slot_mask = slots - 1;
    out->rows = sfti_arena_array(r->arena, lines, sizeof *out->rows);
    out->records = sfti_arena_array(r->arena, lines, sizeof *out->records);
    out->slots = r->slots = sfti_arena_array(r->arena, slots, sizeof *r->slots);
    r->seen = sfti_arena_array(r->arena, lines, sizeof *r->seen);
    if (r->slots) memset(r->slots, 0, slots * sizeof *r->slots);
    if (r->seen) memset(r->seen, 0, lines * sizeof *r->seen);
    return out->rows && out->records && out->slots && r->seen;
}

/* Copies what is a user's and counts all lines. */
static sft_code take_records_texts(reader *r, const sfti_records_text *texts, size_t count,
                                   size_t *lines) {
    sfti_records_text *copies = sfti_arena_array(r->arena, count + 1, sizeof *copies);
    sft_span *sources = sfti_arena_array(r->arena, count + 1, sizeof *sources);
    size_t own = 0;
    uint64_t bytes = 0;
    if (!copies || !sources) return sfti_fail_memory(r->to.err, count * sizeof *copies);
    r->out->texts = copies;
    r->out->sources = sources;
    r->out->text_count = count;
    if (count > 0) memcpy(copies, texts, count * sizeof *copies);
    sources[0] = (sft_span){ "", 0 };
    for (size_t i = 0; i < count; i++) {
        sfti_records_text *text = &copies[i];
        sources[i] = (sft_span){ "", 0 };
        *lines += text->lines;
        if (text->lines > 0) continue;
        if (!sfti_add(bytes, text->text.len, &bytes) || bytes > SFTI_RECORDS_BYTES)
            return sfti_fail(r->to.err, SFT_BAD_ARGUMENT,
                             "%s: expected records of at most 4 MiB in all files", text->name);
        own += text->text.len > 0 && text->text.data[text->text.len - 1] != '\n';
        for (size_t k = 0; k < text->text.len; k++) own += text->text.data[k] == '\n';
        if (own > SFTI_RECORDS_LINES)
            return sfti_fail(r->to.err, SFT_BAD_ARGUMENT,
                             "%s: expected records of at most 20,000 lines in all files",
                             text->name);
        sft_span source = { sfti_arena_join(r->arena, sft_span_cstr("records:"),
                                            sft_span_cstr(text->name)), 8 + strlen(text->name) };
        if (!source.data) return sfti_fail_memory(r->to.err, source.len);
        sources[i] = source;
    }
    for (size_t i = 0; i < count && !r->to.code; i++)
        if (copies[i].lines == 0) copy_records_text(r, &copies[i]);
    *lines += own;
    return r->to.code;
}

sft_code sfti_records_read_all(sfti_arena *arena, const sfti_records_text *texts, size_t count,
                               sfti_records_faults *faults, const sfti_records **out,
                               sft_error *err) {
    reader r = { .arena = arena, .to = { .faults = faults, .err = err } };
    size_t lines = 0, none = 0, *wrong = faults ? &faults->count : &none;
    if (faults) faults->count = 0;
    *out = NULL;
    if (count > SFTI_RECORDS_TEXTS)
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected at most %d files of records, found %zu",
                         SFTI_RECORDS_TEXTS, count);
    r.out = sfti_arena_take(arena, sizeof *r.out);
    if (!r.out) return sfti_fail_memory(err, sizeof *r.out);
    memset(r.out, 0, sizeof *r.out);
    r.to.records = r.out;
    sft_code code = take_records_texts(&r, texts, count, &lines);
    if (!code && *wrong > 0) code = SFT_BAD_ARGUMENT; /* what is no text is read no further */
    if (code) return code;
    if (!take_room(&r, lines + 1)) return sfti_fail_memory(err, lines * sizeof(sfti_record));
    place_words(&r);
    for (size_t i = 0; i < count && !r.to.code; i++) {
        r.text = (uint8_t)i;
        r.users = i > 0 && r.out->texts[i].lines == 0;
        r.at = r.out->texts[i].text.data;
        r.end = r.at + r.out->texts[i].text.len;
        r.lines = 0;
        r.record = NO_RECORD;
        read_lines(&r);
    }
    if (!r.to.code) list_rows(&r);
    if (!r.to.code) fill_tables(&r);
    if (!r.to.code) check_rows(&r);
    if (!r.to.code) find_parents(&r);
    if (!r.to.code) check_over(&r);
    if (!r.to.code) check_parents(&r);
    if (!r.to.code && *wrong > 0) r.to.code = SFT_BAD_ARGUMENT;
    if (!r.to.code) *out = r.out;
    return r.to.code;
}

sft_code sfti_records_read(sfti_arena *arena, const sfti_records_text *texts, size_t count,
                           const sfti_records **out, sft_error *err) {
    return sfti_records_read_all(arena, texts, count, NULL, out, err);
}
