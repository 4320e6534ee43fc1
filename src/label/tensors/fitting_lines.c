/* Rows "modules" of the records, cut into lines: whose each is and how its modules' names begin, so
 * that for an adapter few are read. Those that come with the library are cut when it is built.
 * Tests: test_info_targets.c. */
#include "label/tensors/fitting.h"

#include "label/records/read.h"

#include "base/json_lex.h"

#include <string.h>

/* The "#" that stands in forms for a number, or for braces that hold numbers alone: how long it is
 * in the word, 0 where there is none. */
static size_t number_len(sft_span word) {
    size_t i = 0;
    unsigned value = 0;
    if (word.len > 0 && *word.data == '{') {
        do i++;
        while (i < word.len && (sfti_lex_digit(word.data[i]) || strchr(",-", word.data[i])));
        if (i == word.len || word.data[i++] != '}') return 0;
    } else {
        for (; i < word.len && i < 3 && sfti_lex_digit(word.data[i]); i++)
            value = value * 10 + (unsigned)(word.data[i] - '0');
    }
    return value < 128 && i < word.len && (word.data[i] == '.' || word.data[i] == '_') ? i : 0;
}

/* Notes how a name begins: up to the last dot or "_" before what may be several texts, or, without
 * any, as a whole. */
static void put_begin(sfti_fit_line *line, sft_span word) {
    uint64_t hash = 0, part = 0;
    bool begins = true, any = false;
    for (; word.len > 0 && *word.data != '['; word = sfti_from(word, 1)) {
        size_t number = begins ? number_len(word) : 0;
        if (*word.data == '{' && number == 0) break;
        if (number > 0) word = sfti_from(word, number - 1);
        begins = *word.data == '.' || *word.data == '_';
        hash = sfti_fit_hash(hash, number > 0 ? '#' : *word.data);
        if (begins) part = hash, any = true;
    }
    if (!any && hash != 0 && word.len > 0 && *word.data == '[') part = hash, any = true;
    if (any) sfti_fit_begins_put(line->begins, part);
    else memset(line->begins, 0xFF, sizeof line->begins);
}

size_t sfti_fit_read_sizes(sft_span word, sfti_fit_sizes *sizes) {
    uint64_t values[3] = { 0, 0, 1 }, value = 0;
    size_t count = 0, bracket = word.len;
    while (bracket > 0 && word.data[bracket - 1] != '[') bracket--;
    for (size_t i = bracket; i < word.len && count < 3 && value < UINT32_MAX; i++) {
        char c = word.data[i];
        if (sfti_lex_digit(c)) {
            value = value * 10 + (uint64_t)(c - '0');
        } else {
            values[count++] = value;
            value = 0;
        }
    }
    *sizes = (sfti_fit_sizes){ values[0], values[1], values[2] };
    return bracket > 1 && count >= 2 ? bracket - 1 : 0;
}

static void put_sizes(sfti_fit_line *line, sft_span word) {
    sfti_fit_sizes sizes;
    if (sfti_fit_read_sizes(word, &sizes) == 0) return;
    uint32_t places[2] = { sfti_fit_sizes_place(sizes.out, sizes.in),
                           sfti_fit_sizes_place(sizes.out, sizes.in * sizes.kernel) };
    for (int i = 0; i < 2; i++)
        line->sizes[places[i] / 64 % 2] |= UINT64_C(1) << places[i] % 64;
}

/* What its words are; of names those that stand before others count, or, where there are none, nor
 * were in the line that it goes on with, all. */
static void cut_words(sfti_fit_line *line, sft_span text, bool *behind) {
    for (bool first = true; text.len > 0;) {
        sft_span rest = sfti_find_byte(text, ' ');
        sft_span word = { text.data, text.len - rest.len };
        text = rest.len > 0 ? sfti_from(rest, 1) : rest;
        if (word.len < 2) continue; /* also "|" */
        bool begins = word.data[word.len - 1] == '.';
        if (first && begins) *behind = true;
        if (begins || (!*behind && word.data[word.len - 1] == ']'))
            put_begin(line, word);
        if (!begins) put_sizes(line, word);
        first = false;
    }
}

/* ── Models ── */

typedef struct cut_lines {
    sfti_arena *arena;
    const sfti_records *records;
    sfti_fit_lines *out;
    sfti_fit_line *lines;
    size_t cap;
    sfti_fit_base models[SFTI_FIT_MODELS];
    uint16_t heirs[SFTI_FIT_MODELS];
    bool bits;
} cut_lines;

/* SFTI_FIT_MODELS: no place. */
static uint16_t add_model(cut_lines *cut, const sfti_record *record) {
    if (cut->out->model_count == SFTI_FIT_MODELS) return SFTI_FIT_MODELS;
    uint16_t number = (uint16_t)(record - cut->records->records);
    cut->models[cut->out->model_count] = (sfti_fit_base){ number, SFTI_FIT_MODELS };
    return cut->out->model_count++;
}

static uint16_t model_number(cut_lines *cut, const sfti_record *record) {
    for (uint16_t i = 0; i < cut->out->model_count; i++)
        if (&cut->records->records[cut->models[i].record] == record) return i;
    return add_model(cut, record);
}

static void find_heirs(cut_lines *cut) {
    const sfti_records *records = cut->records;
    sfti_fit_lines *out = cut->out;
    SFTI_EACH_ROW(row, records, SFTI_MODULES, 0) {
        sft_span of;
        if (!sfti_begins(sfti_row_text(row), "of=")) continue;
        (void)sfti_row_has(row, "of", &of);
        const sfti_record *parent = sfti_record_find(records, SFTI_MODEL, of);
        uint16_t child = model_number(cut, sfti_row_record(records, row));
        if (parent && child < SFTI_FIT_MODELS) cut->models[child].of = model_number(cut, parent);
    }
    SFTI_EACH_ROW(row, records, SFTI_SIBLING, 0) {
        const sfti_record *sibling = sfti_record_find(records, SFTI_MODEL, sfti_row_word(row));
        size_t had = out->model_count;
        uint16_t model = model_number(cut, sfti_row_record(records, row));
        if (sibling && model == had && model < SFTI_FIT_MODELS)
            cut->models[model].of = model_number(cut, sibling);
    }
    for (uint16_t i = 0; i < out->model_count; i++)
        if (cut->models[i].of < out->model_count) cut->heirs[out->heir_count++] = i;
}

/* ── Lines ── */

/* Those of a row; false when out of memory. */
static bool put_lines(cut_lines *cut, const sfti_record_row *row, uint16_t model) {
    sfti_fit_lines *out = cut->out;
    const char *text = sfti_row_text(row).data, *at = text, *end = at + row->len;
    bool behind = false;
    for (sfti_fit_line *last = NULL; at < end;) {
        const char *stop = sfti_row_line_end(at, (size_t)(end - at));
        if (!stop) stop = end;
        while (at < stop && (uint8_t)*at <= ' ') at++;
        if (at < stop && (*at != '|' || !last)) {
            last = sfti_arena_grow(cut->arena, cut->lines, out->count, 1, &cut->cap, sizeof *last);
            if (!last) return false;
            cut->lines = last;
            last += out->count++;
            *last = (sfti_fit_line){ .at = (uint16_t)(at - text), .model = model,
                                     .row = (uint16_t)(row - cut->records->rows) };
            if (!cut->bits) memset(last->begins, 0xFF, sizeof last->begins);
            if (!cut->bits) last->sizes[0] = last->sizes[1] = UINT64_MAX;
            behind = false;
        }
        if (at < stop) {
            if (cut->bits) cut_words(last, (sft_span){ at, (size_t)(stop - at) }, &behind);
            last->len = (uint16_t)(stop - text - last->at);
        }
        at = stop + 1;
    }
    return true;
}

const sfti_fit_lines *sfti_fit_lines_cut(sfti_arena *arena, const sfti_records *records,
                                         bool bits) {
    sfti_fit_lines *out = sfti_arena_take(arena, sizeof *out);
    cut_lines *cut = sfti_arena_take(arena, sizeof *cut);
    const sfti_record *last = NULL;
    uint16_t model = 0;
    if (!out || !cut) return NULL;
    *out = (sfti_fit_lines){ .models = cut->models, .heirs = cut->heirs };
    *cut = (cut_lines){ .arena = arena, .records = records, .out = out, .bits = bits };
    SFTI_EACH_ROW(row, records, SFTI_MODULES, 0) {
        const sfti_record *record = sfti_row_record(records, row);
        if (record != last) model = add_model(cut, record); /* its rows are neighbours */
        last = record;
        if (model == SFTI_FIT_MODELS) continue; /* read.c refuses so many */
        if (!put_lines(cut, row, model)) return NULL;
    }
    out->lines = cut->lines;
    find_heirs(cut);
    return out;
}
