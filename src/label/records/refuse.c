/* What is wrong with a text of records, told with its place. Tests: test_records_own.c. */
#include "label/records/read.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

SFTI_COLD void sfti_refuse_more(sfti_refusals *r, const char *at, const char *expected,
                                sft_span found, const char *more) {
    sfti_records_faults *all = r->faults;
    sfti_records_fault one = { .expected = expected };
    if (r->code || r->refused) return;
    r->refused = true;
    const char *name = sfti_records_place(r->records, at, &one.line, &one.column);
    while (name && r->records->texts[one.text].name != name) one.text++;
    const char *end = found.len > 0 ? memchr(found.data, '\n', found.len) : NULL;
    if (end) found.len = (size_t)(end - found.data);
    (void)snprintf(one.found, sizeof one.found, "%.*s", SFTI_CLIP(found, SFTI_FAULT_FOUND));
    (void)snprintf(one.more, sizeof one.more, "%s", more);
    if (all && all->count < all->room) all->items[all->count] = one;
    if (!all || all->count == 0)
        (void)sfti_fail(r->err, SFT_BAD_ARGUMENT,
                        "%.*s: line %zu, column %zu: expected %s, found \"%s\"%s",
                        SFTI_RECORDS_NAME, name ? name : "records", one.line, one.column, expected,
                        one.found, one.more);
    if (all) all->count++;
    else r->code = SFT_BAD_ARGUMENT;
}

void sfti_refuse(sfti_refusals *r, const char *at, const char *expected, sft_span found) {
    sfti_refuse_more(r, at, expected, found, "");
}

void sfti_refuse_guess(sfti_refusals *r, const char *expected, sft_span found, sfti_guess *guess) {
    sfti_refuse_more(r, found.data, expected, found, sfti_guess_text(guess, "\"", "\""));
}

void sfti_refuse_word(sfti_refusals *r, const char *expected, sft_span found,
                      const sft_span *known, size_t count) {
    sfti_guess guess = sfti_guess_begin(found);
    for (size_t i = 0; i < count; i++) sfti_guess_try(&guess, known[i]);
    sfti_refuse_guess(r, expected, found, &guess);
}

/* Tries at most so many ids in all: a text may have thousands that are wrong. */
#define GUESSES_MOST 200000

void sfti_refuse_id(sfti_refusals *r, const char *expected, sft_span found, sfti_record_type type) {
    sfti_guess guess = sfti_guess_begin(found);
    const sfti_records *records = r->records;
    for (size_t i = 0; i < records->record_count && r->guesses < GUESSES_MOST; i++) {
        if (records->records[i].type != type || !records->records[i].id) continue;
        sfti_guess_try(&guess, sft_span_cstr(records->records[i].id));
        r->guesses++;
    }
    sfti_refuse_guess(r, expected, found, &guess);
}

/* A row's text as words, however they are spaced. */
static bool same_said(sft_span a, sft_span b) {
    sft_span x, y;
    do {
        x = sfti_cut_word(&a);
        y = sfti_cut_word(&b);
        if (!sft_span_equal(x, y)) return false;
    } while (x.len > 0);
    return true;
}

static void refuse_again(sfti_refusals *r, const sfti_record_row *row, const sfti_record_row *had) {
    sft_span found = sfti_row_written(r->records, row), old = sfti_row_written(r->records, had);
    char more[SFTI_FAULT_MORE];
    size_t line, column;
    const char *end = memchr(old.data, '\n', old.len);
    if (end) old.len = (size_t)(end - old.data);
    const char *name = sfti_records_place(r->records, old.data, &line, &column);
    if (r->records->texts[had->text].lines > 0)
        (void)snprintf(more, sizeof more, ", which the library has as \"%.*s\"",
                       SFTI_CLIP(old, SFTI_FAULT_FOUND));
    else
        (void)snprintf(more, sizeof more, ", which %.80s line %zu has as \"%.*s\"", name, line,
                       SFTI_CLIP(old, SFTI_FAULT_FOUND));
    r->refused = false;
    sfti_refuse_more(r, found.data, "a word that this record does not have yet", found, more);
}

/* A row of that word among some: of words that only the library has, one that says the same. */
static const sfti_record_row *earlier_row(const sfti_record_row *rows, size_t count,
                                          const sfti_record_row *row, bool ours) {
    for (size_t i = 0; i < count && !(ours && rows[i].text > 0); i++)
        if (rows[i].word == row->word
            && (!ours || same_said(sfti_row_text(&rows[i]), sfti_row_text(row))))
            return &rows[i];
    return NULL;
}

void sfti_drop_repeated(sfti_refusals *r, sfti_records *out) {
    uint16_t kept = 0;
    for (uint16_t i = 0; i < out->record_count; i++) {
        sfti_record *record = &out->records[i];
        uint16_t begin = kept, end = (uint16_t)(record->first + record->count);
        for (uint16_t n = record->first; n < end; n++) {
            const sfti_record_row row = out->rows[n];
            unsigned flags = sfti_word_rows[row.word].flags;
            bool ours = (flags & SFTI_OURS) && row.text > 0, again = !(flags & SFTI_REPEATS);
            const sfti_record_row *old = !ours && !again ? NULL
                : earlier_row(out->rows + begin, (size_t)(kept - begin), &row, ours);
            if (!old && !ours) {
                out->rows[kept++] = row;
            } else if (!old) {
                sft_span found = sfti_row_written(out, &row);
                r->refused = false;
                sfti_refuse(r, found.data, "a word that a user's file may have", found);
            } else if (!same_said(sfti_row_text(&row), sfti_row_text(old))) {
                refuse_again(r, &row, old);
            }
        }
        record->first = begin;
        record->count = (uint16_t)(kept - begin);
    }
    out->row_count = kept;
}
