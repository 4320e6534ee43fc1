/* What rows say that can be read but is surely not meant. Tests: tests/cli/records. */
#include "lint/lint.h"

#include "label/layouts.h"
#include "label/records/read.h"

#include <string.h>

#define USUAL_LEAST 3

typedef struct slip_finder {
    const sfti_records *records;
    const sfti_record_row *row;
    sfti_slip *slips;
    size_t most, count;
} slip_finder;

static void add_slip(slip_finder *f, sfti_slip_kind kind, sft_span at, sft_span detail) {
    if (f->count < f->most) f->slips[f->count++] = (sfti_slip){ kind, at, detail };
}

/* ── Names ── */

/* An alternative, a layer or a module without what is no part of its name; empty: it is no name, or
 * stands for the name as it is. */
static sft_span slip_name(sft_span text, bool layer) {
    sfti_predicate predicate;
    bool right;
    if (!layer && (sfti_begins(text, "^") || sfti_predicate_of(text, &predicate, &right)))
        return (sft_span){ "", 0 };
    if (sfti_begins(text, "te")) {
        sft_span after = sfti_find_byte(text, ':');
        if (layer && after.len > 0) text = sfti_from(after, 1);
    }
    if (layer && sfti_begins(text, "^")) text = sfti_from(text, 1);
    sft_span sizes = sfti_find_byte(text, '[');
    text.len -= sizes.len;
    if (layer && text.len > 0 && text.data[text.len - 1] == '$') text.len--;
    return text;
}

typedef bool slip_test(void *ctx, sft_span name, sft_span whole);

/* Each name of a row, until one is what is looked for. */
static bool any_name(const sfti_record_row *row, slip_test *test, void *ctx) {
    const sfti_word_row *how = &sfti_word_rows[row->word];
    sft_span rest = sfti_row_text(row), clause, word;
    if (row->word == SFTI_MODULES) {
        while ((word = sfti_cut_word(&rest)).len > 0)
            if (test(ctx, slip_name(word, false), word)) return true;
        return false;
    }
    if (how->how == SFTI_READ_NAMED) (void)sfti_row_name(row, &rest);
    while ((clause = sfti_next_clause(&rest)).len > 0) {
        if (*clause.data == '!') clause = sfti_from(clause, 1);
        while (clause.len > 0) {
            word = sfti_next_alternative(&clause);
            if (test(ctx, slip_name(word, how->values == SFTI_VALUE_LAYERS), word)) return true;
        }
    }
    return false;
}

static bool begins_so(void *ctx, sft_span name, sft_span whole) {
    sft_span begin = *(const sft_span *)ctx;
    (void)whole;
    return name.len >= begin.len && memcmp(name.data, begin.data, begin.len) == 0;
}

/* How many rows of the library, of that word and table, have names that begin so; no more are
 * counted than make it usual. */
static size_t library_rows(const sfti_records *records, const sfti_record_row *like, unsigned sub,
                           sft_span begin) {
    size_t count = 0;
    for (const sfti_record_row *row = sfti_rows(records, (sfti_word)like->word, 0);
         row && count < USUAL_LEAST; row = sfti_rows_next(records, row))
        count += row->text == 0 && (row->word != SFTI_TENSORS || row->sub == sub)
              && any_name(row, begins_so, &begin);
    return count;
}

/* ── Prefixes ── */

typedef struct prefix_search {
    slip_finder *finder;
    unsigned table;
} prefix_search;

/* Whether it belongs to the names of such models: those of several in the library, or the part
 * behind it, too, those of one. */
static bool is_usual(const slip_finder *f, unsigned table, sft_span name, size_t prefix) {
    sft_span begin = { name.data, prefix };
    if (library_rows(f->records, f->row, table, begin) >= USUAL_LEAST) return true;
    while (begin.len < name.len && name.data[begin.len] != '.') begin.len++;
    return library_rows(f->records, f->row, table, begin) > 0;
}

/* The longest prefix that is taken off such names. */
static bool slip_prefix(void *ctx, sft_span name, sft_span whole) {
    const prefix_search *search = ctx;
    slip_finder *f = search->finder;
    const sfti_record_row *row = sfti_rows(f->records, SFTI_PREFIXES, search->table);
    sft_span rest = sfti_row_text(row), prefix, best = { "", 0 };
    while (sfti_next_said(&rest, &prefix))
        if (prefix.len > best.len && name.len > prefix.len && begins_so(&prefix, name, whole)
            && !is_usual(f, search->table, name, prefix.len))
            best = prefix;
    if (best.len > 0) add_slip(f, SFTI_SLIP_PREFIX, whole, best);
    return false;
}

/* The table of the row's record: that of denoisers, or that of its first row about tensors. */
static unsigned table_of_record(const slip_finder *f) {
    const sfti_record *of = sfti_row_record(f->records, f->row);
    const sfti_record_row *first = sfti_record_row_of(f->records, of, SFTI_TENSORS, NULL);
    for (const sfti_record_row *row = first; row;
         row = sfti_record_row_of(f->records, of, SFTI_TENSORS, row))
        if (row->sub == SFTI_DENOISERS) return SFTI_DENOISERS;
    return first ? first->sub : SFTI_DENOISERS;
}

/* Layouts have words of their own before the names of layers. */
static bool slip_layout(void *ctx, sft_span name, sft_span whole) {
    slip_finder *f = ctx;
    const sfti_name_layout *layout = sfti_layout_of(name);
    if (layout && sfti_ends(sft_span_cstr(layout->prefix), "_")) {
        add_slip(f, SFTI_SLIP_LAYOUT, whole, sft_span_cstr(layout->prefix));
        return false;
    }
    const sfti_record_row *row = sfti_rows(f->records, SFTI_PREFIXES, SFTI_DENOISERS);
    sft_span rest = sfti_row_text(row), prefix;
    while (sfti_next_said(&rest, &prefix)) {
        char folded[64];
        sft_span begin = { folded, prefix.len };
        if (prefix.len == 0 || prefix.len >= sizeof folded || name.len <= prefix.len) continue;
        for (size_t i = 0; i < prefix.len; i++)
            folded[i] = prefix.data[i] == '.' ? '_' : prefix.data[i];
        if (!begins_so(&prefix, name, whole)
            && (!begins_so(&begin, name, whole)
                || library_rows(f->records, f->row, 0, begin) > 0))
            continue;
        add_slip(f, SFTI_SLIP_LAYOUT, whole, (sft_span){ name.data, prefix.len });
        return false;
    }
    return false;
}

/* ── Ends ── */

static bool slip_weight(void *ctx, sft_span name, sft_span whole) {
    if (sfti_ends(name, ".weight") || sfti_ends(name, "_weight"))
        add_slip(ctx, SFTI_SLIP_WEIGHT, whole, whole);
    return false;
}

static void slip_extensions(slip_finder *f) {
    static const char *const ends[] = { ".safetensors", ".sft", ".ckpt", ".gguf", ".pth", ".pt",
                                        ".bin" };
    sft_span rest = sfti_row_text(f->row), word;
    while (sfti_next_said(&rest, &word))
        for (size_t i = 0; i < SFTI_COUNT(ends); i++)
            if (sfti_ends(word, ends[i]))
                add_slip(f, SFTI_SLIP_EXTENSION, word, sft_span_cstr(ends[i]));
}

/* A variant that neither has a record nor is one of the model's in the library. */
static void slip_variant(slip_finder *f) {
    const sfti_records *records = f->records;
    const sfti_record *of = sfti_row_record(records, f->row);
    sft_span clauses, name = sfti_row_name(f->row, &clauses);
    if (sfti_record_find(records, SFTI_VARIANT, name)) return;
    for (const sfti_record_row *row = NULL;
         (row = sfti_record_row_of(records, of, (sfti_word)f->row->word, row)) && row < f->row;)
        if (sft_span_equal(sfti_row_name(row, &clauses), name)) return;
    add_slip(f, SFTI_SLIP_VARIANT, name, name);
}

/* ── All ── */

size_t sfti_row_slips(const sfti_records *records, const sfti_record_row *row, sfti_slip *slips,
                      size_t most) {
    slip_finder f = { records, row, slips, most, 0 };
    prefix_search search = { &f, SFTI_DENOISERS };
    switch ((sfti_word)row->word) {
    case SFTI_TENSORS:
        search.table = row->sub;
        (void)any_name(row, slip_prefix, &search);
        break;
    case SFTI_VARIANT_ROW:
        search.table = table_of_record(&f);
        (void)any_name(row, slip_prefix, &search);
        slip_variant(&f);
        break;
    case SFTI_MODULES:
        if (table_of_record(&f) == SFTI_DENOISERS) (void)any_name(row, slip_prefix, &search);
        (void)any_name(row, slip_weight, &f);
        break;
    case SFTI_ADAPTER_VARIANT: slip_variant(&f); /* fall through */
    case SFTI_ADAPTER_ROW:
        (void)any_name(row, slip_layout, &f);
        (void)any_name(row, slip_weight, &f);
        break;
    case SFTI_FILE_WORDS: slip_extensions(&f); break;
    default: break;
    }
    return f.count;
}
