/* What a row of a user's text may say: its words and marks, its clauses. Errors are told where they
 * stand. Rows that come with the library are held to it by test_records.c. */
#include "label/records/read.h"

#include "base/json_lex.h"
#include "label/info.h"

#include <string.h>

#define CLAUSE_NAME_BYTES 200 /* of a name or layer in a clause */
#define DIMS 8

typedef struct grammar {
    const sfti_records *records;
    const sfti_record_row *row;
    size_t *left; /* words and alternatives that may still follow */
    sfti_wrong *wrong;
} grammar;

/* The first that is wrong ends the check of a row. */
static bool wrong_at(grammar *g, sft_span found, const char *expected) {
    *g->wrong = (sfti_wrong){ found, expected, SFTI_SEVERAL };
    return false;
}

static bool is_right(grammar *g, bool right, sft_span found, const char *expected) {
    if (!right) (void)wrong_at(g, found, expected);
    return right;
}

static bool check_id(grammar *g, sfti_record_type type, sft_span word, const char *expected) {
    bool known = sfti_record_find(g->records, type, word) != NULL;
    if (!known) *g->wrong = (sfti_wrong){ word, expected, type };
    return known;
}

static bool spend(grammar *g, sft_span at) {
    if (*g->left == 0) return wrong_at(g, at, "50,000 words and alternatives at most");
    --*g->left;
    return true;
}

static bool all_digits(sft_span text) {
    for (size_t i = 0; i < text.len; i++)
        if (!sfti_lex_digit(text.data[i])) return false;
    return text.len > 0 && text.len < 16;
}

static size_t bytes_like(sft_span text, char byte) {
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++) count += text.data[i] == byte;
    return count;
}

/* "9|8" or "*". */
static bool is_size(sft_span text) {
    sft_span piece;
    size_t pieces = bytes_like(text, '|') + 1;
    if (sfti_is(text, "*")) return true;
    for (; sfti_next_piece(&text, '|', &piece); pieces--)
        if (!all_digits(piece)) return false;
    return pieces == 0;
}

/* ── Clauses ── */

/* "3072,64", "...,768": sizes, before the last of which dimensions may be left out. */
static bool is_shape(sft_span text) {
    size_t dims = bytes_like(text, ',') + 1, at = 0;
    if (dims > DIMS) return false;
    for (sft_span piece; sfti_next_piece(&text, ',', &piece); at++)
        if (!is_size(piece) && !(sfti_is(piece, "...") && at + 2 == dims)) return false;
    return at == dims;
}

static bool are_conditions(sft_span text) {
    static const char *const least[] = { "in>=", "n>=", "t>=" };
    size_t count = bytes_like(text, ',') + 1;
    for (sft_span one; sfti_next_piece(&text, ',', &one); count--) {
        bool known = sfti_is(one, "each");
        for (size_t i = 0; i < SFTI_COUNT(least); i++)
            known = known || (sfti_begins(one, least[i])
                              && all_digits(sfti_from(one, strlen(least[i]))));
        if (sfti_begins(one, "in=")) known = is_size(sfti_from(one, 3));
        if (sfti_begins(one, "out=")) known = is_size(sfti_from(one, 4));
        if (!known) return false;
    }
    return count == 0;
}

static bool is_name_byte(char c) {
    return (uint8_t)c > ' ' && !memchr("[]|!\"=,", c, 7);
}

/* Cuts [...] off its end; false where brackets are not closed or stand elsewhere. */
static bool cut_brackets(sft_span *text, sft_span *inner, bool *has) {
    const char *open = memchr(text->data, '[', text->len);
    *has = open != NULL;
    *inner = (sft_span){ "", 0 };
    if (!open) return true;
    *inner = sfti_from(*text, (size_t)(open - text->data) + 1);
    text->len = (size_t)(open - text->data);
    if (inner->len == 0 || inner->data[inner->len - 1] != ']') return false;
    inner->len--;
    return !memchr(inner->data, ']', inner->len) && !memchr(inner->data, '[', inner->len);
}

static bool check_name(grammar *g, sft_span text) {
    sft_span name = text, shape;
    sfti_predicate predicate;
    bool shaped, right;
    size_t numbers = 0;
    if (sfti_predicate_of(text, &predicate, &right))
        return is_right(g, right && text.len <= CLAUSE_NAME_BYTES, text,
                        "count(NAME.#) = N, or @KEY = VALUE, @KEY:/PLACE = VALUE");
    if (!cut_brackets(&name, &shape, &shaped))
        return wrong_at(g, text, "a shape between [ and ] at the end of a name");
    if (shaped && !is_shape(shape))
        return wrong_at(g, shape, "sizes such as 3072,* or 9|8 or ...,768");
    if (sfti_begins(name, "^")) name = sfti_from(name, 1);
    bool open = name.len > 0 && name.data[name.len - 1] == '*';
    if (open) name.len--;
    for (size_t i = 0; i < name.len; i++) {
        if (!is_name_byte(name.data[i]) || name.data[i] == '*' || name.data[i] == '^')
            return wrong_at(g, sfti_from(name, i), "a name; * stands at its end alone");
        numbers += name.data[i] == '#';
    }
    if (name.len == 0 || name.len > CLAUSE_NAME_BYTES)
        return wrong_at(g, text, "the name of a tensor, of 200 bytes at most");
    if (numbers > 1 || (numbers > 0 && open)) return wrong_at(g, text, "one # in a name without *");
    return is_right(g, !(open && shaped), text, "a name without * before a shape");
}

static bool check_layer(grammar *g, sft_span text) {
    static const char *const parts[] = { "te:", "te1:", "te2:", "te3:" };
    sft_span name = text, conditions;
    bool conditional;
    if (!cut_brackets(&name, &conditions, &conditional))
        return wrong_at(g, text, "conditions between [ and ] at the end of a layer");
    if (conditional && !are_conditions(conditions))
        return wrong_at(g, conditions, "in=, out=, in>=, n>=, t>= or each");
    size_t part = 0;
    for (size_t i = 0; i < SFTI_COUNT(parts) && part == 0; i++)
        if (sfti_begins(name, parts[i])) part = strlen(parts[i]);
    name = sfti_from(name, part);
    if (sfti_begins(name, "^")) name = sfti_from(name, 1);
    if (name.len > 0 && name.data[name.len - 1] == '$') name.len--;
    for (size_t i = 0; i < name.len; i++)
        if (!is_name_byte(name.data[i]) || memchr("*^$:", name.data[i], 4))
            return wrong_at(g, sfti_from(name, i), "the name of a layer");
    bool any = name.len == 0 && sfti_ends(text, ":"); /* of a part */
    return is_right(g, any || (name.len > 0 && name.len <= CLAUSE_NAME_BYTES), text,
                    "the name of a layer, of 200 bytes at most");
}

static bool check_clauses(grammar *g, sft_span clauses) {
    bool layers = sfti_word_rows[g->row->word].values == SFTI_VALUE_LAYERS;
    size_t count = 0;
    for (sft_span clause; (clause = sfti_next_clause(&clauses)).len > 0; count++) {
        sft_span whole = clause;
        if (*clause.data == '!') clause = sfti_from(clause, 1);
        if (*whole.data == '|' || whole.data[whole.len - 1] == '|' || clause.len == 0)
            return wrong_at(g, whole, "an alternative on each side of |");
        while (clause.len > 0) {
            sft_span one = sfti_next_alternative(&clause);
            if (!spend(g, one) || !(layers ? check_layer : check_name)(g, one)) return false;
        }
    }
    return is_right(g, count > 0, sfti_row_text(g->row), "clauses");
}

/* ── Words ── */

/* What "{0-18,20}" or "{q,k}" stands for: 1 for numbers that are a part of the name by themselves,
 * else each of them; 0 for what is wrong, and why. */
static size_t alternatives_in(sft_span inside, bool part, const char **expected) {
    size_t count = 0, pieces = bytes_like(inside, ',') + 1;
    bool numbers = true;
    *expected = "words or numbers between { and }, with , between them";
    for (sft_span piece; pieces > 0 && sfti_next_piece(&inside, ',', &piece); pieces--) {
        sft_span to = sfti_find_byte(piece, '-');
        sft_span from = { piece.data, piece.len - to.len };
        uint64_t low = 0, high = 0;
        bool range = all_digits(from) && (to.len == 0 || all_digits(sfti_from(to, 1)));
        if (range) {
            (void)sfti_parse_uint(from, &low);
            high = low;
            if (to.len > 0) (void)sfti_parse_uint(sfti_from(to, 1), &high);
            if (high > 127 || high < low) {
                *expected = high < low ? "the lower number of a range first"
                                       : "numbers below 128 between { and }";
                return 0;
            }
        }
        numbers = numbers && range;
        if (piece.len == 0 || memchr(piece.data, '{', piece.len)) return 0;
        count += range ? (size_t)(high - low) + 1 : 1;
    }
    return pieces > 0 ? 0 : numbers && part ? 1 : count;
}

/* "[OUT,IN]" or "[OUT,IN,KERNEL]". */
static bool are_module_sizes(sft_span sizes) {
    size_t dims = bytes_like(sizes, ',') + 1, at = 0;
    if (dims < 2 || dims > 3 || sizes.data[sizes.len - 1] != ']') return false;
    sizes = (sft_span){ sizes.data + 1, sizes.len - 2 };
    for (sft_span piece; sfti_next_piece(&sizes, ',', &piece); at++)
        if (!all_digits(piece)) return false;
    return at == dims;
}

/* NAME[OUT,IN] or NAME[OUT,IN,KERNEL], with at most 64 alternatives; "NAME." begins others. NULL:
 * it is right, else what was expected. */
static const char *wrong_module(sft_span word) {
    sft_span sizes = sfti_find_byte(word, '['), name = { word.data, word.len - sizes.len };
    size_t count = 1;
    if (sfti_is(word, "|")) return NULL;
    if (name.len == 0 || (sizes.len == 0 && (word.len < 2 || word.data[word.len - 1] != '.')))
        return "NAME[OUT,IN] or NAME. before others";
    if (sizes.len > 0 && !are_module_sizes(sizes))
        return "NAME[OUT,IN] in numbers, or NAME[OUT,IN,KERNEL]";
    for (size_t i = 0; i < name.len; i++) {
        const char *expected, *end = memchr(name.data + i, '}', name.len - i);
        if (name.data[i] == '}' || (name.data[i] == '{' && !end))
            return "{ and } in pairs";
        if (name.data[i] != '{') continue;
        size_t close = (size_t)(end - name.data);
        bool part = (i == 0 || name.data[i - 1] == '.' || name.data[i - 1] == '_')
                 && close + 1 < name.len
                 && (name.data[close + 1] == '.' || name.data[close + 1] == '_');
        count *= alternatives_in((sft_span){ name.data + i + 1, close - i - 1 }, part, &expected);
        if (count == 0) return expected;
        if (count > 64) return "at most 64 alternatives in a word";
        i = close;
    }
    return NULL;
}

static bool is_encoder(const grammar *g, sft_span word) {
    SFTI_EACH_ROW(row, g->records, SFTI_VECTORS, 0)
        if (sft_span_equal(sfti_row_word(row), word)) return true;
    return false;
}

static bool check_word(grammar *g, sft_span word) {
    const char *expected;
    sft_span rest = word;
    bool of_kind = sfti_row_record(g->records, g->row)->type == SFTI_KIND;
    switch ((sfti_value_of)sfti_word_rows[g->row->word].values) {
    case SFTI_VALUE_EMPTY: return true;
    case SFTI_VALUE_MODELS:
        return sfti_is(word, "none") || check_id(g, SFTI_MODEL, word, "the id of a model");
    case SFTI_VALUE_FAMILIES: return check_id(g, SFTI_FAMILY, word, "the id of a family");
    case SFTI_VALUE_KINDS: return check_id(g, SFTI_KIND, word, "a kind");
    case SFTI_VALUE_PREDICTIONS: return check_id(g, SFTI_PREDICTION, word, "a prediction");
    case SFTI_VALUE_PATTERNS:
        if (of_kind && sfti_begins(rest, "!")) rest = sfti_from(rest, 1);
        if (sfti_begins(rest, "*")) rest = sfti_from(rest, 1);
        if (rest.len > 0 && rest.data[rest.len - 1] == '*') rest.len--;
        if (!of_kind && rest.len < word.len) rest.len = 0;
        return is_right(g, rest.len > 0 && !memchr(rest.data, '*', rest.len), word,
                        of_kind ? "a class, * at its ends alone" : "a class without *");
    case SFTI_VALUE_FILE_WORDS:
        if (rest.len > 0 && rest.data[rest.len - 1] == '~') rest.len--;
        return is_right(g, rest.len > 0, word, "a word of a file's name");
    case SFTI_VALUE_HEADS:
        rest = sfti_find_byte(word, ':');
        return is_right(g, all_digits((sft_span){ word.data, word.len - rest.len })
                               && (!rest.data || all_digits(sfti_from(rest, 1))), word,
                        "SIZE or HIDDEN:SIZE");
    case SFTI_VALUE_ENCODERS:
        return is_right(g, is_encoder(g, word) || all_digits(word), word,
                        "an encoder (l, g, t5, …), token or a width");
    case SFTI_VALUE_MODULES:
        expected = wrong_module(word);
        return is_right(g, !expected, word, expected);
    case SFTI_VALUE_SPARED:
        return is_right(g, word.len <= CLAUSE_NAME_BYTES && bytes_like(word, '*') < word.len, word,
                        "a name of 200 bytes at most, with * for any text");
    case SFTI_VALUE_ANY:
    case SFTI_VALUE_NAMES:
    case SFTI_VALUE_LAYERS: break;
    }
    return is_right(g, word.len > 0, word, "a word");
}

/* Whether marks have NAME= (or, of a flag, NAME). */
static bool has_mark(const char *marks, const sfti_record_item *item, bool flag) {
    sft_span rest = sft_span_cstr(marks ? marks : ""), mark;
    while (sfti_next_piece(&rest, ' ', &mark)) {
        bool valued = sfti_ends(mark, "=");
        mark.len -= valued;
        if (valued != flag && sft_span_equal(mark, item->name)) return true;
    }
    return false;
}

static bool check_mark(grammar *g, const sfti_record_item *item, bool flag) {
    static const struct { const char *name; sfti_record_type type; } ids[] = {
        { "kind", SFTI_KIND }, { "covers", SFTI_KIND }, { "prediction", SFTI_PREDICTION },
        { "of", SFTI_MODEL },
    };
    static const char *const numbers[] = { "bits", "trust", "latent_channels",
                                           "cross_attention_dim" };
    if (!has_mark(sfti_word_rows[g->row->word].marks, item, flag))
        return wrong_at(g, item->name, "a mark that such a row may have");
    if (!flag && item->value.len == 0) return wrong_at(g, item->name, "a value behind =");
    for (size_t i = 0; i < SFTI_COUNT(ids); i++)
        if (sfti_is(item->name, ids[i].name)
            && !check_id(g, ids[i].type, item->value, "the id of a record"))
            return false;
    if (SFTI_ONE_OF(item->name, numbers, sfti_is) && !all_digits(item->value))
        return wrong_at(g, item->value, "a number");
    double factor;
    if (sfti_is(item->name, "scaling_factor") && !sfti_parse_double(item->value, &factor))
        return wrong_at(g, item->value, "a number");
    return true;
}

/* Quotes come in pairs in each line, and words begin and end with them. */
static bool check_quotes(grammar *g, sft_span text) {
    bool quoted = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i], before = i ? text.data[i - 1] : ' ';
        char after = i + 1 < text.len ? text.data[i + 1] : ' ';
        if (quoted && (c == '\n' || c == '\v')) break;
        if (!quoted && c == '#' && (uint8_t)before <= ' ' && (uint8_t)after <= ' ')
            return wrong_at(g, sfti_from(text, i), "comments in lines of their own");
        if (c != '"') continue;
        if (quoted ? (uint8_t)after > ' ' : (uint8_t)before > ' ' && before != '=')
            return wrong_at(g, sfti_from(text, i), "quotes around a whole word");
        quoted = !quoted;
    }
    return is_right(g, !quoted, text, "quotes that are closed in their line");
}

static bool check_words(grammar *g) {
    const sfti_word_row *how = &sfti_word_rows[g->row->word];
    sft_span rest = sfti_row_text(g->row), whole = rest;
    size_t words = 0;
    bool marks = false;
    const sft_span tab = sfti_find_byte(whole, '\t');
    if (!check_quotes(g, rest)) return false;
    if (tab.len > 0 && g->row->word == SFTI_MODULES)
        return wrong_at(g, tab, "blanks between modules");
    for (sfti_record_item item; sfti_next_item(&rest, &item);) {
        const char *end = item.name.data + item.name.len;
        bool flag = item.name.len > 0 && (end == whole.data + whole.len || *end != '=');
        if (!spend(g, item.value)) return false;
        if (g->row->word == SFTI_MODULES && item.name.len > 0 && item.name.data != whole.data)
            return wrong_at(g, item.name, "of= first in the row, in the line of modules");
        if (item.name.len > 0) marks = true;
        if (item.name.len > 0 ? !check_mark(g, &item, flag) : !check_word(g, item.value))
            return false;
        if (item.name.len == 0 && marks && g->row->word != SFTI_MODULES)
            return wrong_at(g, item.value, "words before marks");
        if (item.name.len == 0 && ++words > how->most && how->most < SFTI_MANY)
            return wrong_at(g, item.value, how->most ? "fewer words" : "nothing behind the word");
    }
    return is_right(g, words >= how->least, whole, "a word, or more, behind the first");
}

bool sfti_row_is_right(const sfti_records *records, const sfti_record_row *row, size_t *left,
                       sfti_wrong *wrong) {
    grammar g = { records, row, left, wrong };
    sft_span clauses, name = sfti_row_name(row, &clauses); /* "NAME: clauses" */
    wrong->expected = NULL;
    switch ((sfti_word_how)sfti_word_rows[row->word].how) {
    case SFTI_READ_CLAUSES:
    case SFTI_READ_TRUST:
    case SFTI_READ_TENSORS: return check_clauses(&g, sfti_row_text(row));
    case SFTI_READ_NAMED:
        for (size_t i = 0; i < name.len; i++)
            if ((uint8_t)name.data[i] <= ' ') name.len = 0;
        if (name.len == 0 || name.len == sfti_row_text(row).len)
            return wrong_at(&g, sfti_row_text(row), "a variant's name and a colon");
        return check_clauses(&g, clauses);
    case SFTI_READ_WORDS:
    case SFTI_READ_PRODUCER:
    case SFTI_READ_TABLE: break;
    }
    return check_words(&g);
}
