/* Columns as JSON, and as a table. */
#include "base/calendar.h"
#include "catalog/catalog.h"
#include "catalog/places.h"

#include <inttypes.h>
#include <stdio.h>

#define TABLE_ROWS 1000

typedef struct row_writer {
    const catalog_rows *rows;
    sfti_json_writer *w;
    const int64_t *copies; /* by digest: a number of models that are copies, or -1 */
    const uint32_t *first; /* by what a model is: the first row */
} row_writer;

static void put_number(sfti_json_writer *w, int64_t number) {
    if (number < 0) sfti_json_raw(w, (sft_span){ "-1", 2 });
    else sfti_json_uint(w, (uint64_t)number);
}

static void put_known(sfti_json_writer *w, uint64_t number) {
    if (number == UINT64_MAX) put_number(w, -1);
    else sfti_json_uint(w, number);
}

/* ── Columns ── */

/* In the order in which they are written. */
typedef enum row_column {
    COLUMN_NAME, COLUMN_FILE, COLUMN_WHAT, COLUMN_BYTES, COLUMN_RANK, COLUMN_PARAMETERS,
    COLUMN_DATE, COLUMN_MODIFIED, COLUMN_WORDS, COLUMN_WORD_COUNT, COLUMN_TAGS, COLUMN_HASH,
    COLUMN_COPIES, COLUMN_FLAGS, COLUMN_PREVIEW, COLUMN_PICTURE_COUNT
} row_column;

static const char *const columns[] = {
    "name", "file", "what", "bytes", "rank", "parameters", "date", "modified", "words",
    "word_count", "tags", "hash", "copies", "flags", "preview", "picture_count",
};

static void put_column(const row_writer *to, row_column column, const catalog_row *row) {
    sfti_json_writer *w = to->w;
    const catalog_dict *dicts = to->rows->dicts;
    uint32_t what = row->in[ROWS_WHAT], digest = row->in[ROWS_WEIGHTS];
    bool both = row->hash[0][0] && row->hash[1][0];
    char text[32];
    switch (column) {
    case COLUMN_NAME: sfti_json_span(w, row->name); break;
    case COLUMN_FILE: sfti_json_span(w, row->file); break;
    case COLUMN_WHAT: /* words that a row before has: the number of that row */
        if (what == DICT_NONE) sfti_json_cstr(w, "");
        else if (to->first[what] != row->number) sfti_json_uint(w, to->first[what]);
        else sfti_json_span(w, dicts[ROWS_WHAT].entries[what].text);
        break;
    case COLUMN_BYTES: put_known(w, row->bytes); break;
    case COLUMN_RANK: put_known(w, row->rank); break;
    case COLUMN_PARAMETERS: put_known(w, row->parameters); break;
    case COLUMN_DATE: sfti_json_span(w, row->date); break;
    case COLUMN_MODIFIED: put_number(w, row->modified); break;
    case COLUMN_WORDS:
        sfti_json_open(w, '[');
        for (size_t i = 0; i < row->word_count && i < ROW_WORDS; i++)
            sfti_json_span(w, row->words[i]);
        sfti_json_close(w, ']');
        break;
    case COLUMN_WORD_COUNT: sfti_json_uint(w, row->word_count); break;
    case COLUMN_TAGS:
        sfti_json_open(w, '[');
        for (size_t i = 0; i < row->tag_count; i++)
            put_number(w, dict_place(&dicts[ROWS_TAG], row->tags[i]));
        sfti_json_close(w, ']');
        break;
    case COLUMN_HASH:
        snprintf(text, sizeof text, "%s%s%s", row->hash[0], both ? " " : "", row->hash[1]);
        sfti_json_cstr(w, text);
        break;
    case COLUMN_COPIES: put_number(w, digest == DICT_NONE ? -1 : to->copies[digest]); break;
    case COLUMN_FLAGS: sfti_json_uint(w, row->flags); break;
    case COLUMN_PREVIEW:
        if (row->picture_count) picture_json(w, &row->preview);
        else sfti_json_uint(w, 0);
        break;
    case COLUMN_PICTURE_COUNT: sfti_json_uint(w, row->picture_count); break;
    }
}

/* Columns of numbers in dictionaries, whose entries are [id, label], or texts. */
static const struct dict_column {
    const char *name; /* of the dictionary */
    rows_dict which;
    bool has_labels, has_column;
} dict_columns[] = {
    { "kind", ROWS_KIND, true, true },
    { "base", ROWS_BASE, true, true },
    { "architecture", ROWS_ARCHITECTURE, true, true },
    { "precision", ROWS_PRECISION, true, true },
    { "folder", ROWS_FOLDER, false, true },
    { "tag", ROWS_TAG, false, false },
    { "licence", ROWS_LICENCE, false, true },
    { "author", ROWS_AUTHOR, false, true },
};
#define DICT_COLUMNS (sizeof dict_columns / sizeof *dict_columns)

/* ── Dictionaries ── */

static sft_span folder_text(sft_span text) {
    return text.len == 1 && *text.data == '.' ? (sft_span){ "", 0 } : text;
}

static void put_dict(const row_writer *to, const struct dict_column *column) {
    const catalog_dict *dict = &to->rows->dicts[column->which];
    sfti_json_put_open(to->w, column->name, '[');
    for (size_t i = 0; i < dict->count; i++) {
        const dict_entry *entry = &dict->entries[dict->order[i]];
        if (column->has_labels) sfti_json_open(to->w, '[');
        sfti_json_span(to->w, folder_text(entry->text));
        if (!column->has_labels) continue;
        sfti_json_span(to->w, entry->label.len ? entry->label : entry->text);
        sfti_json_close(to->w, ']');
    }
    sfti_json_close(to->w, ']');
}

/* ── All ── */

static sft_code put_rows(const row_writer *to, const char *title, size_t block, sft_error *err) {
    const catalog_rows *rows = to->rows;
    sfti_json_writer *w = to->w;
    sfti_json_open(w, '{');
    sfti_json_put_uint(w, "format", 1);
    sfti_json_put_cstr(w, "title", title);
    sft_code code = catalog_put_id(w, rows->places, title, &rows->c->alloc, err);
    if (code) return code;
    char newest[48] = "";
    int64_t year;
    unsigned month, day;
    if (rows->newest >= 0) {
        sfti_date_of_days(rows->newest, &year, &month, &day);
        snprintf(newest, sizeof newest, "%04" PRId64 "-%02u-%02u", year, month, day);
    }
    sfti_json_put_cstr(w, "newest", newest);
    sfti_json_put_open(w, "roots", '[');
    for (size_t i = 0; i < rows->places->count; i++)
        sfti_json_cstr(w, rows->places->roots[i].given);
    sfti_json_close(w, ']');
    sfti_json_put_uint(w, "count", rows->count);
    sfti_json_put_uint(w, "block", block);
    sfti_json_put_open(w, "dict", '{');
    for (size_t i = 0; i < DICT_COLUMNS; i++) put_dict(to, &dict_columns[i]);
    sfti_json_close(w, '}');
    for (size_t k = 0; k < sizeof columns / sizeof *columns; k++) {
        sfti_json_put_open(w, columns[k], '[');
        for (size_t i = 0; i < rows->count; i++) put_column(to, (row_column)k, rows->rows[i]);
        sfti_json_close(w, ']');
    }
    for (size_t k = 0; k < DICT_COLUMNS; k++) {
        rows_dict which = dict_columns[k].which;
        if (!dict_columns[k].has_column) continue;
        sfti_json_put_open(w, dict_columns[k].name, '[');
        for (size_t i = 0; i < rows->count; i++)
            put_number(w, dict_place(&rows->dicts[which], rows->rows[i]->in[which]));
        sfti_json_close(w, ']');
    }
    char number[24];
    sfti_json_put_open(w, "error", '{');
    for (size_t i = 0; i < rows->count; i++) {
        if (!(rows->rows[i]->flags & ROW_BROKEN)) continue;
        snprintf(number, sizeof number, "%zu", i);
        sfti_json_put_text(w, number, rows->rows[i]->error);
    }
    sfti_json_close(w, '}');
    sfti_json_put_open(w, "fault", '{');
    for (size_t i = 0; i < rows->count; i++) {
        const catalog_fault *fault = rows->rows[i]->fault;
        if (!fault) continue;
        snprintf(number, sizeof number, "%zu", i);
        sfti_json_put_open(w, number, '[');
        sfti_json_cstr(w, fault->id);
        sfti_json_cstr(w, fault->label);
        sfti_json_close(w, ']');
    }
    sfti_json_close(w, '}');
    sfti_json_close(w, '}');
    return SFT_OK;
}

/* ── Without scripts ── */

static void put_cell(html_page *page, sft_span text) {
    html_markup(page, "<td><bdi>");
    html_text(page, text);
    html_markup(page, "</bdi>");
}

static void put_table_row(const catalog_rows *rows, html_page *page, const catalog_row *row) {
    const dict_entry *bases = rows->dicts[ROWS_BASE].entries;
    uint32_t base = row->in[ROWS_BASE];
    sft_span folder = rows->dicts[ROWS_FOLDER].entries[row->in[ROWS_FOLDER]].text;
    html_markup(page, "<tr>");
    put_cell(page, row->name);
    html_markup(page, "<td><bdi>");
    html_text(page, folder_text(folder));
    if (folder_text(folder).len) html_markup(page, "/");
    html_text(page, row->file);
    html_markup(page, "</bdi>");
    put_cell(page, base == DICT_NONE ? (sft_span){ "", 0 } : bases[base].text);
    html_markup(page, "<td>");
    if (row->fault) html_text(page, sft_span_cstr(row->fault->label));
    for (size_t i = 0; i < row->word_count && i < ROW_WORDS; i++) {
        html_markup(page, i ? ", <bdi>" : "<bdi>");
        html_text(page, row->words[i]);
        html_markup(page, "</bdi>");
    }
    html_markup(page, "\n");
}

sft_code rows_write(catalog_rows *rows, html_page *page, const char *title, size_t block,
                    sft_error *err) {
    const catalog_dict *weights = &rows->dicts[ROWS_WEIGHTS], *words = &rows->dicts[ROWS_WHAT];
    int64_t *copies = sfti_arena_array(&rows->arena, weights->count, sizeof *copies), next = 0;
    uint32_t *first = sfti_arena_array(&rows->arena, words->count, sizeof *first);
    row_writer to = { .rows = rows, .copies = copies, .first = first };
    for (int i = 0; i < ROWS_DICTS; i++)
        if (!dict_sort(&rows->dicts[i], i == ROWS_FOLDER))
            return sfti_fail_memory(err, rows->count);
    if (!copies || !first) return sfti_fail_memory(err, rows->count);
    /* Copies are numbered in the order of the first of them. */
    for (size_t i = 0; i < weights->count; i++)
        copies[i] = weights->entries[i].uses > 1 ? next++ : -1;
    for (size_t i = rows->count; i-- > 0;) {
        uint32_t number = rows->rows[i]->in[ROWS_WHAT];
        if (number != DICT_NONE) first[number] = rows->rows[i]->number;
    }
    char text[96];
    size_t count = rows->count < TABLE_ROWS ? rows->count : TABLE_ROWS;
    html_markup(page, "<noscript>\n<table>\n<caption>");
    snprintf(text, sizeof text, "%zu of %zu models; the rest of this page needs JavaScript", count,
             rows->count);
    html_markup(page, text);
    html_markup(page, "</caption>\n<tr><th>Name<th>File<th>Base model<th>Trigger words\n");
    for (size_t i = 0; i < count; i++) put_table_row(rows, page, rows->rows[i]);
    html_markup(page, "</table>\n</noscript>\n");
    to.w = html_block_begin(page, "rows");
    sft_code code = put_rows(&to, title, block, err);
    html_block_end(page);
    return code ? code : page->code;
}
