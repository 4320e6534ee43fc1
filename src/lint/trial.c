/* Rows of records tried on one model, clause by clause: what holds and what does not, for people
 * who write them. Tests: tests/cli/records/model.txt. */
#include "lint/lint.h"

#include "label/tensors/adapters.h"

#include "base/number.h"

#include <string.h>

#define TRIAL_NAME 512
#define TRIAL_BRACES 16
#define TRIAL_BEGINS 64
#define TRIAL_NAMES 200000 /* that the modules of a row stand for, at most */

struct sfti_trial {
    sft_info *info;
    sfti_view view;
    const sfti_forms *forms; /* of an adapter; else NULL */
    sfti_layers layers;
    const char *cut; /* what stands before the names of an adapter's layers */
};

/* ── Layers ── */

/* What stands before the names of an adapter's layers. */
static const char *layer_prefix(sft_span name) {
    static const char within[] = "base_model.model.model.";
    return sfti_begins(name, within) ? within : sfti_layout_cut(name);
}

/* False when out of memory. */
static bool list_layers(sfti_trial *t) {
    const sfti_view bare = { .info = t->info };
    const sft_set *set = t->info->set;
    sfti_suffixes suffixes;
    bool kept = sfti_layers_open(&t->layers, &t->info->arena, t->view.count);
    sfti_adapter_suffixes(&suffixes);
    for (size_t i = 0; kept && i < t->view.count; i++) {
        const sft_tensor *tensor = t->view.by_name[i];
        sfti_layer layer = { .name = tensor->name, .tensor = tensor };
        sfti_module module;
        if (t->forms) {
            if (!sfti_adapter_layer(&bare, &suffixes, tensor, &module)) continue;
            if (!*t->cut) t->cut = layer_prefix(tensor->name);
            layer.name = module.name;
            layer.in = module.in, layer.out = module.out, layer.folded = module.folded;
        } else if (sfti_ends(layer.name, ".weight") && tensor->rank > 1) {
            layer.name.len -= strlen(".weight");
            layer.in = sfti_size_of(set, tensor, 1), layer.out = sfti_size_of(set, tensor, 0);
        } else {
            continue;
        }
        kept = sfti_layers_put(&t->layers, &layer);
    }
    return kept;
}

sfti_trial *sfti_trial_new(sft_info *info) {
    sfti_trial *t = sfti_info_take_zeroed(info, sizeof *t);
    sfti_view view;
    if (!t || !info->set || !sfti_view_open(info, &view)) return NULL;
    const sfti_fact *kind = sfti_info_best(info, SFT_FACT_KIND);
    const sfti_quant quant = sfti_quantisation(&view);
    *t = (sfti_trial){ .info = info, .view = view, .cut = "" };
    if (kind && sfti_is(kind->value.text, "adapter")) {
        const sfti_adapter_scan *scan = sfti_adapter_scan_of(&t->view, &quant, true);
        t->forms = scan ? scan->forms : NULL;
    }
    if (!info->code && !list_layers(t)) info->code = SFT_OUT_OF_MEMORY;
    return info->code ? NULL : t;
}

/* ── Clauses ── */

/* An alternative of names, or of layers, and the tensor that shows it, or whose shape differs. */
static sfti_tried try_alternative(const sfti_trial *t, const sfti_view *view, sft_span one) {
    sfti_tried tried = { .text = one };
    sfti_evidence evidence;
    sft_span bare = one;
    bool packed = false;
    const char *bracket = memchr(one.data, '[', one.len);
    if (bracket) bare.len = (size_t)(bracket - one.data);
    if (!view) {
        for (int i = 0; i < 2 && !tried.tensor; i++, one = bare) {
            const sfti_form *form = sfti_forms_find(t->forms, one);
            if (!form) continue;
            if (i == 0) tried.holds = SFTI_HOLDS_YES;
            tried.tensor = form->tensor;
            tried.in = form->in, tried.out = form->out;
        }
        return tried;
    }
    if (sfti_clauses_hold(view, one, &evidence, &packed))
        tried.holds = packed ? SFTI_HOLDS_HIDDEN : SFTI_HOLDS_YES;
    else if (bracket) (void)sfti_clauses_hold(view, bare, &evidence, &packed);
    tried.tensor = evidence.count > 0 ? evidence.tensors[0] : NULL;
    return tried;
}

/* All alternatives of a clause: the best. */
static sfti_tried try_clause(const sfti_trial *t, const sfti_view *view, sft_span clause) {
    bool denied = *clause.data == '!';
    sft_span rest = denied ? sfti_from(clause, 1) : clause;
    sfti_tried best = { .holds = SFTI_HOLDS_NO };
    while (rest.len > 0 && best.holds != SFTI_HOLDS_YES) {
        sfti_tried one = try_alternative(t, view, sfti_next_alternative(&rest));
        if (one.holds > best.holds || !best.tensor) best = one;
    }
    if (denied && best.holds == SFTI_HOLDS_NO) best = (sfti_tried){ .holds = SFTI_HOLDS_YES };
    else if (denied && best.holds == SFTI_HOLDS_YES) best.holds = SFTI_HOLDS_NO;
    best.text = clause;
    return best;
}

/* The names after the prefix by which most clauses hold, if those are more than *most. */
static void choose_prefix(const sfti_trial *t, unsigned table, sft_span clauses, size_t *most,
                          sfti_view *out) {
    const sfti_record_row *row = sfti_rows(t->info->records, SFTI_PREFIXES, table);
    sft_span prefixes = sfti_row_text(row), prefix;
    while (sfti_next_said(&prefixes, &prefix)) {
        sfti_view view = sfti_view_after(&t->view, "", prefix);
        sft_span rest = clauses, clause;
        size_t held = 0;
        if (!sfti_view_any(&view, "")) continue;
        while ((clause = sfti_next_clause(&rest)).len > 0)
            held += *clause.data != '!' && try_clause(t, &view, clause).holds != SFTI_HOLDS_NO;
        if (held <= *most) continue;
        *most = held;
        *out = view;
    }
}

/* ── Modules ── */

/* What "{0-18,20}" or "{q,k}" stands for, the nth; false: there are fewer. */
static bool nth_option(sft_span inside, size_t n, char *out, size_t *len) {
    for (sft_span piece; sfti_next_piece(&inside, ',', &piece);) {
        sft_span to = sfti_find_byte(piece, '-'), from = { piece.data, piece.len - to.len };
        uint64_t low, high;
        bool range = sfti_parse_uint(from, &low);
        high = range ? low : 0;
        if (range && to.len > 0) range = sfti_parse_uint(sfti_from(to, 1), &high);
        size_t count = range && high >= low && high < 1000 ? (size_t)(high - low) + 1 : 1;
        if (n >= count) {
            n -= count;
            continue;
        }
        if (range) {
            *len = sfti_uint_text(low + n, 1, out);
        } else {
            if (piece.len >= 200) return false;
            memcpy(out, piece.data, piece.len);
            *len = piece.len;
        }
        return true;
    }
    return false;
}

/* A text whose braces stand for what chosen says; false: it is too long, or *brace has no such
 * option. */
static bool write_name(sft_span text, const size_t *chosen, size_t *brace, char *out, size_t *len) {
    for (size_t i = 0; i < text.len; i++) {
        char option[SFTI_UINT_SIZE + 200];
        size_t more = 1;
        const char *from = text.data + i;
        if (*from == '{') {
            const char *end = memchr(from, '}', text.len - i);
            sft_span inside = { from + 1, end ? (size_t)(end - from) - 1 : 0 };
            if (!end || *brace == TRIAL_BRACES
                || !nth_option(inside, chosen[*brace], option, &more))
                return false;
            ++*brace;
            i += inside.len + 1;
            from = option;
        }
        if (*len + more > TRIAL_NAME) return false;
        memcpy(out + *len, from, more);
        *len += more;
    }
    return true;
}

static bool sizes_agree(const sfti_layer *layer, const uint64_t sizes[3]) {
    bool in = layer->in == 0 || layer->in == sizes[1]
           || (layer->folded && layer->in == sizes[1] * sizes[2]);
    return in && (layer->out == 0 || layer->out == sizes[0]);
}

/* All modules that a word behind a beginning stands for. */
static sfti_tried try_modules(const sfti_trial *t, sft_span prefix, sft_span begin, sft_span word,
                              size_t *left) {
    sfti_tried tried = { .text = word, .begin = begin };
    sft_span sizes_text = sfti_find_byte(word, '['), piece;
    sft_span name = { word.data, word.len - sizes_text.len };
    uint64_t sizes[3] = { 0, 0, 1 };
    size_t chosen[TRIAL_BRACES] = { 0 };
    bool wrong = false;
    sizes_text = (sft_span){ sizes_text.data + 1, sizes_text.len - 2 };
    for (size_t i = 0; i < 3 && sfti_next_piece(&sizes_text, ',', &piece); i++)
        (void)sfti_parse_uint(piece, &sizes[i]);
    while (*left > 0) {
        char text[TRIAL_NAME];
        size_t brace = 0, len = 0;
        --*left;
        bool right = write_name(begin, chosen, &brace, text, &len)
                  && write_name(name, chosen, &brace, text, &len);
        if (!right) { /* the brace at hand is through: the one before it goes on */
            if (brace == 0 || brace >= TRIAL_BRACES) break;
            chosen[brace] = 0;
            chosen[brace - 1]++;
            continue;
        }
        sfti_layer *layer = sfti_layers_find(&t->layers, prefix, (sft_span){ text, len });
        bool fits = layer && sizes_agree(layer, sizes);
        if (layer) layer->named = true;
        tried.of++;
        tried.had += fits;
        if (layer && (!tried.tensor || (!fits && !wrong))) {
            tried.tensor = layer->tensor;
            tried.in = layer->in, tried.out = layer->out;
        }
        wrong = wrong || (layer && !fits);
        if (!layer && !tried.missing[0] && len < sizeof tried.missing) {
            memcpy(tried.missing, text, len);
            tried.missing[len] = 0;
        }
        if (brace == 0) break;
        chosen[brace - 1]++;
    }
    bool none = t->forms && tried.had == 0 && !wrong;
    bool all = tried.of > 0 && (tried.had == tried.of || (t->forms && !wrong));
    tried.holds = *left == 0 || !all ? SFTI_HOLDS_NO : none ? SFTI_HOLDS_HIDDEN : SFTI_HOLDS_YES;
    return tried;
}

/* Layers of the adapter that no module of the row is; not those of text encoders. */
static void count_others(const sfti_trial *t, sfti_row_tried *out) {
    for (size_t i = 0; t->forms && i < t->layers.count; i++) {
        const sfti_layer *layer = &t->layers.at[i];
        const sfti_name_layout *layout = sfti_layout_of(layer->written);
        if (layer->named || !sfti_begins(layer->written, t->cut)
            || (layout && layout->part != SFTI_PART_MAIN))
            continue;
        if (out->others == 0 || layer->written.len < out->other.len) out->other = layer->written;
        out->others++;
    }
    if (out->others > 0) out->holds = SFTI_HOLDS_NO;
}

/* Each word of a row behind each of its beginnings; how many modules there are. each: NULL, if
 * nobody asks. */
static uint64_t try_words(sfti_trial *t, sft_span prefix, const sfti_record_row *row, size_t *left,
                          sfti_tried_fn *each, void *ctx, sfti_row_tried *out) {
    sft_span begins[TRIAL_BEGINS] = { { "", 0 } }, rest = sfti_row_text(row);
    size_t count = 1;
    uint64_t had = 0;
    while (rest.len > 0) {
        const char *end = sfti_row_line_end(rest.data, rest.len);
        sft_span line = { rest.data, end ? (size_t)(end - rest.data) : rest.len }, word;
        rest = end ? sfti_from(rest, line.len + 1) : (sft_span){ "", 0 };
        line = sfti_trim(line);
        if (line.len == 0 || sfti_begins(line, "of=")) continue;
        bool used = true;
        if (*line.data != '|') begins[0] = (sft_span){ "", 0 }, count = 1;
        while (sfti_next_said(&line, &word)) {
            if (sfti_is(word, "|")) continue;
            if (word.data[word.len - 1] == '.') {
                if (used) count = 0;
                used = false;
                if (count < TRIAL_BEGINS) begins[count++] = word;
                continue;
            }
            used = true;
            for (size_t i = 0; i < count; i++) {
                sfti_tried tried = try_modules(t, prefix, begins[i], word, left);
                had += tried.had;
                if (tried.holds == SFTI_HOLDS_NO) out->holds = SFTI_HOLDS_NO;
                if (each) each(ctx, &tried);
            }
        }
    }
    return had;
}

/* A row, and whether the adapter has layers that neither it nor the record's other rows, nor what
 * they say that it has, too, tell of. */
static void try_module_row(sfti_trial *t, sft_span prefix, const sfti_record_row *row,
                           sfti_tried_fn *each, void *ctx, sfti_row_tried *out) {
    const sfti_records *records = t->info->records;
    const sfti_record *of = sfti_row_record(records, row);
    size_t left = TRIAL_NAMES, more = TRIAL_NAMES;
    sfti_row_tried unasked;
    out->holds = SFTI_HOLDS_YES;
    for (size_t i = 0; i < t->layers.count; i++) t->layers.at[i].named = false;
    if (try_words(t, prefix, row, &left, each, ctx, out) == 0) out->holds = SFTI_HOLDS_NO;
    for (int n = 0; t->forms && of && n < 3; n++) {
        const sfti_record *next = NULL;
        const sfti_record_row *one = NULL;
        while ((one = sfti_record_row_of(records, of, SFTI_MODULES, one))) {
            sft_span id;
            if (one != row) (void)try_words(t, prefix, one, &more, NULL, NULL, &unasked);
            if (sfti_begins(sfti_row_text(one), "of=") && sfti_row_has(one, "of", &id))
                next = sfti_record_find(records, SFTI_MODEL, id);
        }
        of = next;
    }
    count_others(t, out);
}

/* What modules begin with in the model: the prefix by which most layers are found. */
static sft_span module_prefix(const sfti_trial *t, const sfti_record_row *row) {
    if (t->forms) return sft_span_cstr(t->cut);
    const sfti_record_row *known = sfti_rows(t->info->records, SFTI_PREFIXES, SFTI_DENOISERS);
    sft_span prefixes = sfti_row_text(known), prefix;
    sft_span rest = sfti_row_text(row), word, best = { "", 0 };
    char first[64];
    size_t len = 0, most = 0;
    while ((word = sfti_trim(rest)).len > 0 && sfti_begins(word, "of=")) {
        const char *end = sfti_row_line_end(word.data, word.len);
        rest = end ? sfti_from(word, (size_t)(end - word.data)) : (sft_span){ "", 0 };
    }
    while (len < word.len && len < sizeof first - 1 && !memchr("{[. ", word.data[len], 4))
        first[len] = word.data[len], len++;
    first[len] = 0;
    while (sfti_next_said(&prefixes, &prefix)) {
        const sfti_view view = sfti_view_after(&t->view, "", prefix);
        size_t from, to;
        if (!sfti_view_range(&view, first, &from, &to) || to - from <= most) continue;
        most = to - from;
        best = prefix;
    }
    return best;
}

/* ── Rows ── */

bool sfti_trial_row(sfti_trial *t, const sfti_record_row *row, sfti_tried_fn *each, void *ctx,
                    sfti_row_tried *out) {
    const sfti_records *records = t->info->records;
    bool layers = row->word == SFTI_ADAPTER_ROW || row->word == SFTI_ADAPTER_VARIANT;
    bool names = row->word == SFTI_TENSORS || row->word == SFTI_VARIANT_ROW;
    *out = (sfti_row_tried){ .holds = SFTI_HOLDS_YES };
    if (row->word == SFTI_MODULES) {
        try_module_row(t, module_prefix(t, row), row, each, ctx, out);
        return true;
    }
    if ((!layers && !names) || layers != (t->forms != NULL)) return false;
    sft_span clauses = sfti_row_text(row), clause;
    if (row->word == SFTI_VARIANT_ROW || row->word == SFTI_ADAPTER_VARIANT)
        (void)sfti_row_name(row, &clauses);
    const sfti_record *of = sfti_row_record(records, row);
    const sfti_record_row *tensors = row->word == SFTI_TENSORS ? row : NULL;
    sfti_view view = t->view;
    size_t most = 0;
    if (tensors) choose_prefix(t, row->sub, clauses, &most, &view);
    while (row->word == SFTI_VARIANT_ROW
           && (tensors = sfti_record_row_of(records, of, SFTI_TENSORS, tensors)))
        choose_prefix(t, tensors->sub, sfti_row_text(tensors), &most, &view);
    while ((clause = sfti_next_clause(&clauses)).len > 0) {
        sfti_tried tried = try_clause(t, names ? &view : NULL, clause);
        if (tried.holds < out->holds) out->holds = tried.holds;
        each(ctx, &tried);
    }
    return true;
}
