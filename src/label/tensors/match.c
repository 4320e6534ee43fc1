/* Names and shapes of a model against the clauses of a row. Tests: test_info_tensors.c. */
#include "label/tensors/signatures.h"

#include "base/checked.h"
#include "base/number.h"
#include "base/order.h"

#include <string.h>

#define MATCH_NUMBERS 128 /* what "#" stands for: 0 to 127 */
#define MATCH_VARIANTS 8

/* ── Names ── */

#define TAIL 8
#define TAIL_WORDS 64

/* The bit of what a name ends with before "weight" and what stands for it; bit 0 where that is too
 * short to tell. */
static unsigned tail_bit(sft_span name) {
    static const sft_span ends[] = { { "_packed", 7 }, { "W_q", 3 }, { "weight", 6 }, { "q", 1 } };
    uint64_t tail;
    for (size_t i = 0; i < SFTI_COUNT(ends); i++) {
        size_t len = ends[i].len, at = name.len - len;
        if (name.len >= len && name.data[name.len - 1] == ends[i].data[len - 1]
            && memcmp(name.data + at, ends[i].data, len) == 0)
            name.len = at;
    }
    if (name.len < TAIL) return 0;
    memcpy(&tail, name.data + (name.len - TAIL), TAIL);
    return (unsigned)(tail * UINT64_C(0x9E3779B97F4A7C15) >> 52);
}

/* Whether some name may end so: most that are asked for have an end that none has. */
static bool may_end(const sfti_view *view, sft_span end) {
    unsigned bit = tail_bit(end);
    return view->tails[bit / 64] >> bit % 64 & 1;
}

bool sfti_view_open(sft_info *info, sfti_view *view) {
    size_t count = sft_set_tensor_count(info->set);
    uint32_t *order = sfti_info_take(info, count * sizeof *order + 1);
    const sft_tensor **by_name = sfti_info_take(info, count * sizeof *by_name + 1);
    uint64_t *tails = sfti_info_take_zeroed(info, TAIL_WORDS * sizeof *tails);
    *view = (sfti_view){ .info = info, .by_name = by_name, .count = count, .tails = tails };
    if (!info->code) info->code = sft_set_order(info->set, SFT_ORDER_NAME, order, NULL);
    if (info->code) return false;
    tails[0] = 1;
    for (size_t i = 0; i < count; i++) {
        by_name[i] = sft_set_tensor_at(info->set, order[i]);
        unsigned bit = tail_bit(by_name[i]->name);
        tails[bit / 64] |= UINT64_C(1) << bit % 64;
    }
    return true;
}

/* False if it is too long. */
static bool set_prefix(sfti_view *view, sft_span prefix, sft_span more) {
    if (prefix.len + more.len >= sizeof view->prefix) return false;
    memcpy(view->prefix, prefix.data, prefix.len);
    memcpy(view->prefix + prefix.len, more.data, more.len);
    view->prefix[prefix.len + more.len] = 0;
    return true;
}

sfti_view sfti_view_after(const sfti_view *view, const char *prefix, sft_span more) {
    sfti_view after = *view;
    if (!set_prefix(&after, sft_span_cstr(prefix), more)) after.count = 0;
    return after;
}

/* prefix + name into the buffer; the whole length, or 0 if it does not fit. */
static size_t full_name(const char *prefix, sft_span name, char *buffer, size_t size) {
    size_t len = strlen(prefix);
    if (len + name.len >= size) return 0;
    memcpy(buffer, prefix, len);
    memcpy(buffer + len, name.data, name.len);
    return len + name.len;
}

static const sft_tensor *find_name(const sfti_view *view, const char *prefix, sft_span name) {
    static const char packed[] = "_packed";
    char buffer[512];
    if (!may_end(view, name)) return NULL;
    size_t len = full_name(prefix, name, buffer, sizeof buffer - sizeof packed);
    if (len == 0 || view->count == 0) return NULL;
    const sft_set *set = view->info->set;
    const sft_tensor *found = sft_set_find(set, (sft_span){ buffer, len }, NULL);
    sft_span whole = { buffer, len };
    if (found || !sfti_ends(whole, ".weight")) return found;
    memcpy(buffer + len, packed, sizeof packed - 1);
    found = sft_set_find(set, (sft_span){ buffer, len + sizeof packed - 1 }, NULL);
    if (found) return found;
    memcpy(buffer + len - 6, "qweight", 7);
    found = sft_set_find(set, (sft_span){ buffer, len + 1 }, NULL);
    if (found) return found;
    memcpy(buffer + len - 6, "W_q", 3);
    return sft_set_find(set, (sft_span){ buffer, len - 3 }, NULL);
}

const sft_tensor *sfti_view_find(const sfti_view *view, const char *name) {
    return find_name(view, view->prefix, sft_span_cstr(name));
}

#define NEAR_STEPS 8

/* Names that begin alike stand together. */
const sft_tensor *sfti_view_near(const sfti_view *view, size_t i, sft_span begin,
                                 const char *end) {
    sft_span wanted = sft_span_cstr(end);
    if (!may_end(view, wanted)) return NULL;
    int from = sfti_bytes_compare(sfti_from(view->by_name[i]->name, begin.len), wanted);
    for (int n = 0; n < NEAR_STEPS; n++) {
        const sft_tensor *tensor = view->by_name[i];
        sft_span name = tensor->name, head = { name.data, begin.len };
        if (name.len < begin.len || (n > 0 && !sft_span_equal(head, begin))) return NULL;
        int order = sfti_bytes_compare(sfti_from(name, begin.len), wanted);
        if (order == 0) return tensor;
        if (from < 0 ? order > 0 || ++i == view->count : order < 0 || i-- == 0) return NULL;
    }
    return sfti_set_sibling(view->info->set, begin, end);
}

/* First place whose name is not before the text; with past, not before all that begin so. */
static size_t place_of(const sfti_view *view, sft_span text, bool past) {
    size_t low = 0, high = view->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        sft_span name = view->by_name[middle]->name;
        sft_span head = { name.data, name.len < text.len ? name.len : text.len };
        int order = sfti_bytes_compare(past ? head : name, text);
        if (order < 0 || (past && order == 0)) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* to: NULL where only the first is asked for. */
static bool range_of(const sfti_view *view, const char *prefix, sft_span begin, size_t *from,
                     size_t *to) {
    char buffer[512];
    size_t len = full_name(prefix, begin, buffer, sizeof buffer);
    if (len == 0 && begin.len + strlen(prefix) > 0) return false;
    *from = place_of(view, (sft_span){ buffer, len }, false);
    if (*from == view->count) return false;
    sft_span name = view->by_name[*from]->name;
    if (name.len < len || memcmp(name.data, buffer, len) != 0) return false;
    if (to) *to = place_of(view, (sft_span){ buffer, len }, true);
    return true;
}

bool sfti_view_range(const sfti_view *view, const char *begin, size_t *from, size_t *to) {
    return range_of(view, view->prefix, sft_span_cstr(begin), from, to);
}

bool sfti_view_any(const sfti_view *view, const char *begin) {
    size_t from;
    return range_of(view, view->prefix, sft_span_cstr(begin), &from, NULL);
}

uint8_t *sfti_view_rows(const sfti_view *view, const void *rows, size_t stride, size_t count) {
    uint8_t *row_of = sfti_info_take_zeroed(view->info, view->count + 1);
    for (size_t i = 0; row_of && i < count; i++) {
        const char *const *begin = (const void *)((const char *)rows + i * stride);
        size_t from, to;
        if (!range_of(view, "", sft_span_cstr(*begin), &from, &to)) continue;
        for (; from < to; from++)
            if (row_of[from] == 0) row_of[from] = (uint8_t)(i + 1);
    }
    return row_of;
}

/* ── Shapes ── */

/* Whether a size is one of "9|8". */
static sfti_truth packed_size_fits(sft_span wanted, const sfti_shape *shape, uint32_t at) {
    uint64_t least = shape->least[at], most = shape->most[at], size;
    sft_span piece;
    if (sfti_is(wanted, "*")) return SFTI_TRUE;
    if ((least == most || shape->padded) && sfti_size_fits(wanted, most)) return SFTI_TRUE;
    while (least < most && sfti_next_piece(&wanted, '|', &piece)) {
        uint64_t one = least;
        if (!sfti_parse_uint(piece, &size)) continue;
        while (shape->twofold && one < size) one *= 2;
        if (size >= least && size <= most && (!shape->twofold || one == size)) return SFTI_HIDDEN;
    }
    return SFTI_FALSE;
}

/* Where nothing but the number of elements is to be seen. */
static sfti_truth elements_fit(sft_span wanted, uint64_t elements) {
    uint64_t known = 1, size;
    bool all = true;
    sft_span piece;
    while (elements > 0 && sfti_next_piece(&wanted, ',', &piece))
        if (!sfti_parse_uint(piece, &size)) all = false;
        else if (size == 0 || !sfti_mul(known, size, &known)) return SFTI_FALSE;
    bool fits = elements == 0 || (all ? elements == known : elements % known == 0);
    return fits ? SFTI_HIDDEN : SFTI_FALSE;
}

static sfti_truth tensor_fits(const sfti_view *view, const sft_tensor *tensor, sft_span wanted) {
    sfti_shape shape;
    sfti_truth all = SFTI_TRUE;
    sft_span piece;
    uint32_t at = 0;
    if (!tensor) return SFTI_FALSE;
    if (wanted.len == 0) return SFTI_TRUE;
    bool packed = sfti_shape_of(view->info->set, tensor, &shape);
    const uint32_t rank = packed ? shape.rank : tensor->rank;
    if (rank == SFTI_SHAPE_HIDDEN) return elements_fit(wanted, shape.elements);
    while (sfti_next_piece(&wanted, ',', &piece)) {
        if (sfti_is(piece, "...")) {
            if (rank == 0) return SFTI_FALSE;
            at = rank - 1;
            continue;
        }
        if (at >= rank) return SFTI_FALSE;
        sfti_truth so = packed ? packed_size_fits(piece, &shape, at)
                      : sfti_size_fits(piece, tensor->shape[at]) ? SFTI_TRUE : SFTI_FALSE;
        if (so == SFTI_FALSE) return so;
        if (so < all) all = so;
        at++;
    }
    return at == rank ? all : SFTI_FALSE;
}

/* ── Clauses ── */

/* A name with "#": the numbers one after the other. */
static sfti_truth numbered_fits(const sfti_view *view, const char *prefix, sft_span name,
                           sft_span shape, const sft_tensor **found) {
    const char *hash = memchr(name.data, '#', name.len);
    sft_span before = { name.data, (size_t)(hash - name.data) };
    size_t after = name.len - before.len - 1, from, to;
    sfti_truth best = SFTI_FALSE;
    char buffer[256];
    if (!may_end(view, sfti_from(name, before.len + 1))) return SFTI_FALSE;
    if (name.len + SFTI_UINT_SIZE > sizeof buffer || !range_of(view, prefix, before, &from, &to))
        return SFTI_FALSE;
    memcpy(buffer, name.data, before.len);
    for (unsigned n = 0; n < MATCH_NUMBERS && best != SFTI_TRUE; n++) {
        size_t len = before.len + sfti_uint_text(n, 1, buffer + before.len);
        memcpy(buffer + len, hash + 1, after);
        const sft_tensor *tensor = find_name(view, prefix, (sft_span){ buffer, len + after });
        sfti_truth so = tensor_fits(view, tensor, shape);
        if (so > best) best = so, *found = tensor;
    }
    return best;
}

/* How many numbers stand behind the text. */
static uint64_t count_numbers(const sfti_view *view, sft_span begin) {
    sfti_view after = sfti_view_after(view, view->prefix, begin);
    uint64_t count = 0;
    for (unsigned n = 0; n < MATCH_NUMBERS && sfti_view_any(&after, ""); n++) {
        char number[SFTI_UINT_SIZE + 2];
        size_t len = sfti_uint_text(n, 1, number);
        memcpy(number + len, ".", 2);
        count += sfti_view_any(&after, number);
    }
    return count;
}

static sfti_truth name_fits(const void *ctx, sft_span text, const sft_tensor **found) {
    const sfti_view *view = ctx;
    const char *prefix = view->prefix;
    sft_span name = text, shape = { NULL, 0 };
    const bool counts = sfti_begins(text, "count(");
    if (counts || *name.data == '@') {
        sfti_predicate asked;
        bool right;
        (void)sfti_predicate_of(text, &asked, &right);
        uint64_t count = right && counts ? count_numbers(view, asked.begin) : 0;
        bool holds = !right  ? false
                   : !counts ? sfti_metadata_says(view->info, &asked)
                   : asked.compare == '=' ? count == asked.number
                   : asked.compare == '>' ? count >= asked.number : count <= asked.number;
        return holds ? SFTI_TRUE : SFTI_FALSE;
    }
    if (*name.data == '^') name.data++, name.len--, prefix = "";
    const char *bracket = memchr(name.data, '[', name.len);
    if (bracket) {
        shape.data = bracket + 1;
        shape.len = name.len - (size_t)(bracket - name.data) - 2;
        name.len = (size_t)(bracket - name.data);
    }
    if (name.data[name.len - 1] == '*') {
        size_t from;
        name.len--;
        if (!range_of(view, prefix, name, &from, NULL)) return SFTI_FALSE;
        *found = view->by_name[from];
        return SFTI_TRUE;
    }
    if (memchr(name.data, '#', name.len)) return numbered_fits(view, prefix, name, shape, found);
    *found = find_name(view, prefix, name);
    return tensor_fits(view, *found, shape);
}

bool sfti_hold(const void *ctx, sfti_alternative *fits, sft_span clauses,
               sfti_evidence *evidence, bool *packed) {
    if (evidence) evidence->count = 0;
    if (packed) *packed = false;
    for (sft_span clause; (clause = sfti_next_clause(&clauses)).len > 0;) {
        const bool not = *clause.data == '!';
        sfti_truth best = SFTI_FALSE;
        const sft_tensor *seen = NULL;
        if (not) clause.data++, clause.len--;
        while (clause.len > 0 && best != SFTI_TRUE) {
            const sft_tensor *found = NULL;
            sfti_truth so = fits(ctx, sfti_next_alternative(&clause), &found);
            if (so > best) best = so, seen = found;
        }
        if (best == SFTI_HIDDEN && packed) *packed = true;
        else if (best != (not ? SFTI_FALSE : SFTI_TRUE)) return false;
        size_t i = 0;
        while (evidence && i < evidence->count && evidence->tensors[i] != seen) i++;
        if (!not && evidence && seen && i == evidence->count && i < SFTI_EVIDENCE)
            evidence->tensors[evidence->count++] = seen;
    }
    return true;
}

bool sfti_clauses_hold(const sfti_view *view, sft_span clauses, sfti_evidence *evidence,
                       bool *packed) {
    return sfti_hold(view, name_fits, clauses, evidence, packed);
}

/* ── Rows ── */

/* The row that is more particular than all others that hold; where none is, what they have in
 * common, at 60. */
static bool match_rows(const sfti_view *view, sfti_table_id table, sfti_matched *out) {
    const sfti_records *records = view->info->records;
    const sfti_record_row *row;
    sfti_held_rows held = { .count = 0 };
    bool packed;
    for (size_t i = 0; (row = sfti_table_row(records, table, i)); i++)
        if (sfti_clauses_hold(view, sfti_row_text(row), NULL, &packed))
            sfti_held_add(&held, row, packed || view->info->shard_of > 1);
    if (held.count == 0) return false;
    const sfti_chosen chosen = sfti_held_choose(records, &held);
    row = chosen.row;
    const char *kind = row ? sfti_row_kind(records, row) : sfti_held_kind(records, &held);
    if (!kind) return false;
    *out = (sfti_matched){ .kind = kind, .trust = row ? row->trust : SFTI_GUESS,
                           .row = row ? row : held.rows[0] };
    if (row) out->architecture = sfti_row_record(records, row)->id;
    else if (chosen.common) out->architecture = chosen.common->id;
    for (size_t i = 0; i < 2 && !out->architecture && chosen.tops[i]; i++)
        out->rivals[i] = sfti_row_record(records, chosen.tops[i])->id;
    (void)sfti_clauses_hold(view, sfti_row_text(row ? row : held.rows[0]), &out->evidence, &packed);
    return true;
}

/* Two models behind two prefixes: neither is what the other is, both are told as rivals. */
static void match_strangers(const sfti_records *records, sfti_matched *out,
                            const sfti_matched *other) {
    if (!out->architecture || !other->architecture
        || sfti_architecture_kin(records, sft_span_cstr(out->architecture),
                                 sft_span_cstr(other->architecture)) != SFTI_KIN_NONE)
        return;
    out->rivals[0] = out->architecture;
    out->rivals[1] = other->architecture;
    out->architecture = NULL;
}

bool sfti_match_after(const sfti_view *view, const char *before, sft_span prefixes,
                      sfti_table_id table, sfti_matched *out, sfti_view *at) {
    char first[sizeof view->prefix]; /* *at may be the view, and before its prefix */
    sft_span begin = { first, strlen(before) };
    sfti_view seen = *view;
    bool found = false;
    if (begin.len >= sizeof first) return false;
    memcpy(first, before, begin.len);
    for (sft_span prefix; sfti_next_said(&prefixes, &prefix);) {
        sfti_matched matched;
        if (!set_prefix(&seen, begin, prefix) || !sfti_view_any(&seen, "")
            || !match_rows(&seen, table, &matched))
            continue;
        if (found) {
            match_strangers(view->info->records, out, &matched);
            continue;
        }
        *out = matched;
        *at = seen;
        found = true;
        if (table != SFTI_DENOISERS) break; /* encoders stand in others of their table */
    }
    return found;
}

bool sfti_match_table(const sfti_view *view, const char *before, sfti_table_id table,
                      sfti_matched *out, sfti_view *at) {
    const sfti_record_row *row = sfti_rows(view->info->records, SFTI_PREFIXES, table);
    return row && sfti_match_after(view, before, sfti_row_text(row), table, out, at);
}

/* ── Variants ── */

void sfti_add_variants(sft_info *info, const void *ctx, sfti_alternative *fits, sfti_word word,
                       const char *architecture, int trust) {
    const sfti_records *records = info->records;
    const sfti_record *of = sfti_model_record(records, architecture);
    sft_span sure[MATCH_VARIANTS], guessed[MATCH_VARIANTS], clauses;
    size_t count = 0, guesses = 0;
    int least = trust; /* of the guesses */
    for (int i = 0; of && i < 2; i++) { /* its own, and those of the record that it is like */
        const sfti_record_row *row = NULL;
        while (count + guesses < MATCH_VARIANTS
               && (row = sfti_record_row_of(records, of, word, row))) {
            sft_span name = sfti_row_name(row, &clauses);
            if (!sfti_hold(ctx, fits, clauses, NULL, NULL)) continue;
            if (row->trust >= trust) (void)sfti_put_sorted(sure, &count, MATCH_VARIANTS, name);
            else if (sfti_put_sorted(guessed, &guesses, MATCH_VARIANTS, name)
                     && row->trust < least)
                least = row->trust;
            if (sfti_row_source(records, row)) info->said = row;
        }
        of = sfti_record_find(records, SFTI_MODEL, sfti_record_word(records, of, SFTI_LIKE));
    }
    const sft_span source = sft_span_cstr("tensors");
    sfti_info_add_text(info, SFT_FACT_VARIANT, sfti_info_joined(info, sure, count, "+"), source,
                       trust);
    sfti_info_add_text(info, SFT_FACT_VARIANT, sfti_info_joined(info, guessed, guesses, "+"),
                       source, least);
    info->said = NULL;
}

void sfti_match_variants(const sfti_view *view, const char *architecture, int trust) {
    sfti_add_variants(view->info, view, name_fits, SFTI_VARIANT_ROW, architecture, trust);
}

/* ── Telling ── */

void sfti_add_evidence(sft_info *info, const sft_tensor *tensor) {
    char shape[128];
    size_t used = 0;
    if (!tensor || info->evidence.count >= SFTI_EVIDENCE) return;
    for (uint32_t i = 0; i < tensor->rank && used + 24 < sizeof shape; i++) {
        if (i > 0) shape[used++] = ',';
        used += sfti_uint_text(tensor->shape[i], 1, shape + used);
    }
    size_t len = tensor->name.len < 512 ? tensor->name.len : 512;
    sft_span text = sfti_info_text(info, "%.*s [%.*s]", (int)len, tensor->name.data, (int)used,
                                   shape);
    SFTI_PUSH(info, &info->evidence, sfti_note, .text = text);
}

void sfti_add_tensor_fact(sft_info *info, sft_fact fact, const char *value, int trust) {
    sfti_info_add_cstr(info, fact, value, sft_span_cstr("tensors"), trust);
}

void sfti_add_row_fact(sft_info *info, sft_fact fact, const char *value, int trust,
                       const sfti_record_row *row) {
    info->said = row;
    sfti_add_tensor_fact(info, fact, value, trust);
    info->said = NULL;
}
