/* What clauses say of one another, without a model: rows that can never hold, rows that hold
 * wherever another does, words that two records claim. Only what is proved is told. Tests:
 * test_records.c. */
#include "lint/lint.h"

#include "label/info.h"
#include "label/records/read.h"

#include <string.h>

/* One comparison: what is left of its steps, at 0 nothing more is proved. */
typedef struct compared { bool layers; uint64_t *left; } compared;

static bool take_steps(compared *with, uint64_t steps) {
    *with->left -= steps < *with->left ? steps : *with->left;
    return *with->left > 0;
}

/* ── Alternatives ── */

/* "^name[3,4]" in parts. Names are compared as they are written: "#" is as "#". */
typedef struct alternative {
    sft_span name, shape; /* shape empty: any */
    bool open;            /* "name*" */
} alternative;

static alternative parts_of(sft_span text) {
    alternative a = { text, { "", 0 }, false };
    const char *bracket = memchr(text.data, '[', text.len);
    if (bracket) {
        a.name.len = (size_t)(bracket - text.data);
        a.shape = (sft_span){ bracket + 1, text.len - a.name.len - 2 };
    }
    a.open = a.name.len > 0 && a.name.data[a.name.len - 1] == '*';
    a.name.len -= a.open;
    return a;
}

/* Whether what holds for a holds for b, of which "*" is any size and "9|8" either. */
static bool shape_within(sft_span a, sft_span b) {
    sft_span x, y;
    if (b.len == 0 || sft_span_equal(a, b)) return true;
    while (sfti_next_piece(&b, ',', &y)) {
        bool known = sfti_next_piece(&a, ',', &x) && !sfti_is(x, "...");
        uint64_t size;
        if (!known || (!sfti_is(y, "*") && !(sfti_parse_uint(x, &size) && sfti_size_fits(y, size))))
            return false;
    }
    return a.len == 0;
}

/* Beside names: compared as it is written. */
static bool asks_else(sft_span text) {
    sfti_predicate predicate;
    bool right;
    return sfti_predicate_of(text, &predicate, &right);
}

static bool implies(sft_span x, sft_span y, compared *with) {
    if (!take_steps(with, 4 + (x.len + y.len) / 8)) return false;
    if (sft_span_equal(x, y)) return true;
    if (with->layers || asks_else(x) || asks_else(y)) return false;
    alternative a = parts_of(x), b = parts_of(y);
    if (!b.open)
        return !a.open && sft_span_equal(a.name, b.name) && shape_within(a.shape, b.shape);
    return a.name.len >= b.name.len && memcmp(a.name.data, b.name.data, b.name.len) == 0;
}

/* ── Clauses ── */

static bool is_denied(sft_span clause) {
    return *clause.data == '!';
}

static sft_span without_denial(sft_span clause) {
    return is_denied(clause) ? sfti_from(clause, 1) : clause;
}

/* Whether every alternative of a is one of b's. */
static bool all_within(sft_span a, sft_span b, compared *with) {
    while (a.len > 0) {
        sft_span x = sfti_next_alternative(&a), rest = b;
        bool found = false;
        while (rest.len > 0 && !found) found = implies(x, sfti_next_alternative(&rest), with);
        if (!found) return false;
    }
    return true;
}

static sft_span clauses_of(const sfti_record_row *row) {
    sft_span clauses;
    if (sfti_word_rows[row->word].how != SFTI_READ_NAMED) return sfti_row_text(row);
    (void)sfti_row_name(row, &clauses);
    return clauses;
}

static bool clause_implies(sft_span a, sft_span b, compared *with) {
    if (!take_steps(with, a.len / 32) || is_denied(a) != is_denied(b)) return false;
    bool denied = is_denied(a);
    a = without_denial(a);
    b = without_denial(b);
    return denied ? all_within(b, a, with) : all_within(a, b, with);
}

static bool row_implies(const sfti_record_row *a, const sfti_record_row *b, compared *with) {
    sft_span rest = clauses_of(b), clause, others, one;
    while ((clause = sfti_next_clause(&rest)).len > 0) {
        bool found = false;
        others = clauses_of(a);
        while (!found && (one = sfti_next_clause(&others)).len > 0)
            found = clause_implies(one, clause, with);
        if (!found) return false;
    }
    return true;
}

/* An alternative that a clause of the row denies. */
static bool is_denied_in(const sfti_record_row *row, sft_span text, compared *with) {
    sft_span rest = clauses_of(row), clause;
    while ((clause = sfti_next_clause(&rest)).len > 0 && take_steps(with, 1 + clause.len / 32))
        if (is_denied(clause) && all_within(text, without_denial(clause), with)) return true;
    return false;
}

/* One size of a tensor and another of the same: a name without "#" alone in its clause. */
static bool shapes_differ(sft_span a, sft_span b) {
    if (asks_else(a) || asks_else(b)) return false;
    alternative x = parts_of(a), y = parts_of(b);
    sft_span p, q;
    uint64_t m, n;
    if (x.open || y.open || !sft_span_equal(x.name, y.name) || x.shape.len == 0 || y.shape.len == 0
        || memchr(x.name.data, '#', x.name.len) || sfti_find_byte(a, ' ').data
        || sfti_find_byte(b, ' ').data)
        return false;
    while (x.shape.len > 0 && y.shape.len > 0) {
        (void)sfti_next_piece(&x.shape, ',', &p);
        (void)sfti_next_piece(&y.shape, ',', &q);
        if (sfti_is(p, "...") || sfti_is(q, "...")) return false;
        if ((sfti_parse_uint(p, &m) && !sfti_size_fits(q, m))
            || (sfti_parse_uint(q, &n) && !sfti_size_fits(p, n)))
            return true;
    }
    return x.shape.len != y.shape.len;
}

bool sfti_row_never_holds(const sfti_record_row *row, uint64_t *left, sft_span *why) {
    bool layers = sfti_word_rows[row->word].values == SFTI_VALUE_LAYERS;
    compared with = { layers, left };
    if (!layers && sfti_word_rows[row->word].values != SFTI_VALUE_NAMES) return false;
    sft_span rest = clauses_of(row), clause;
    while ((clause = sfti_next_clause(&rest)).len > 0) {
        sft_span alternatives = clause, others = rest, other;
        bool possible = is_denied(clause);
        *why = clause;
        while (!possible && alternatives.len > 0)
            possible = !is_denied_in(row, sfti_next_alternative(&alternatives), &with);
        while (possible && !layers && !is_denied(clause)
               && (other = sfti_next_clause(&others)).len > 0)
            possible = is_denied(other) || !shapes_differ(clause, other);
        if (!possible) return true;
    }
    return false;
}

/* ── Rows of two records ── */

static bool are_related(const sfti_records *records, const sfti_record *a, const sfti_record *b) {
    return a == b || !a->id || !b->id || a->type != b->type
        || sfti_related_architectures(records, sft_span_cstr(a->id), sft_span_cstr(b->id))
        || sfti_record_over(records, a, b) || sfti_record_over(records, b, a);
}

/* A word that both rows have. */
static bool claims_word(const sfti_record_row *a, const sfti_record_row *b, compared *with,
                        sft_span *why) {
    sft_span rest = sfti_row_text(a), word, others, other;
    while (sfti_next_said(&rest, &word)) {
        others = sfti_row_text(b);
        while (sfti_next_said(&others, &other) && take_steps(with, 1 + other.len / 8))
            if (word.len > 0 && sfti_same_text(word, other)) {
                *why = word;
                return true;
            }
    }
    return false;
}

static const uint8_t claims[] = { SFTI_CLASS, SFTI_PIPELINE, SFTI_MODEL_TYPE, SFTI_SAYS,
                                  SFTI_FILE_WORDS };

bool sfti_rows_may_overlap(sfti_word word) {
    return word == SFTI_TENSORS || word == SFTI_ADAPTER_ROW
        || memchr(claims, (int)word, sizeof claims);
}

sfti_overlap sfti_rows_overlap(const sfti_records *records, const sfti_record_row *a,
                               const sfti_record_row *b, uint64_t *left, sft_span *why) {
    compared with = { a->word == SFTI_ADAPTER_ROW, left };
    sfti_overlap overlap = SFTI_OVERLAP_NONE;
    *why = sfti_trim(sfti_row_text(a));
    if (a->word != b->word || a->sub != b->sub || a->record == b->record
        || !sfti_rows_may_overlap((sfti_word)a->word) || !take_steps(&with, 4))
        return SFTI_OVERLAP_NONE;
    if (memchr(claims, a->word, sizeof claims)) {
        overlap = claims_word(a, b, &with, why) ? SFTI_OVERLAP_WORD : SFTI_OVERLAP_NONE;
    } else {
        bool forth = row_implies(a, b, &with), back = row_implies(b, a, &with);
        overlap = forth && back ? SFTI_OVERLAP_SAME
                : forth         ? SFTI_OVERLAP_WITHIN
                : back          ? SFTI_OVERLAP_AROUND
                                : SFTI_OVERLAP_NONE;
    }
    return overlap && take_steps(&with, 64)
        && !are_related(records, sfti_row_record(records, a), sfti_row_record(records, b))
         ? overlap : SFTI_OVERLAP_NONE;
}
