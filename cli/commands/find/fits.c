/* find --fits: what fits a model, best first. */
#include "base/order.h"
#include "commands/find/find.h"

#include <stdlib.h>
#include <string.h>

typedef struct find_row {
    find_found found;
    struct find_row *next;
} find_row;

/* ── Copies ── */

static const void *kept_bytes(find_fits *fits, const void *bytes, size_t len) {
    char *copy = sfti_arena_take(&fits->arena, len + 1);
    if (!copy) {
        fits->failed = true;
        return "";
    }
    if (len) memcpy(copy, bytes, len);
    copy[len] = '\0';
    return copy;
}

static sft_span kept_span(find_fits *fits, sft_span text) {
    return (sft_span){ kept_bytes(fits, text.data, text.len), text.len };
}

/* ── Collecting ── */

void find_fits_begin(find_fits *fits, cli *c, const sft_info *with) {
    *fits = (find_fits){ .c = c, .with = with, .arena = { .alloc = c->alloc } };
}

void find_fits_take(find_fits *fits, const sft_info *info, const find_found *found) {
    char reason[256];
    sft_fit fit = info ? sft_info_fits(fits->with, info, reason, sizeof reason) : SFT_FIT_NONE;
    bool good = fit >= SFT_FIT_LOADS;
    fits->unknown += fit == SFT_FIT_UNKNOWN;
    if (!good && (fit == SFT_FIT_NONE || !fits->c->set.all)) return;
    find_row *row = sfti_arena_take(&fits->arena, sizeof *row);
    if (!row) {
        fits->failed = true;
        return;
    }
    find_hit *hits = sfti_arena_take(&fits->arena, found->hit_count * sizeof *hits + 1);
    for (size_t i = 0; hits && i < found->hit_count; i++) {
        hits[i] = found->hits[i]; /* the names of fields are static */
        hits[i].value = kept_span(fits, hits[i].value);
        hits[i].source = kept_span(fits, hits[i].source);
    }
    fits->failed = fits->failed || !hits;
    row->found = (find_found){
        kept_bytes(fits, found->path, strlen(found->path)), kept_span(fits, found->name),
        hits, found->hit_count, fit, kept_bytes(fits, reason, strlen(reason))
    };
    row->next = fits->rows;
    fits->rows = row;
    fits->count++;
    fits->good += good;
}

/* ── Showing ── */

static int compare_rows(const void *a, const void *b) {
    const find_found *x = &(*(const find_row *const *)a)->found;
    const find_found *y = &(*(const find_row *const *)b)->found;
    if (x->fit != y->fit) return x->fit > y->fit ? -1 : 1;
    return sfti_natural_compare(sft_span_cstr(x->path), sft_span_cstr(y->path));
}

void find_fits_end(find_fits *fits) {
    const find_row **sorted = sfti_arena_take(&fits->arena, (fits->count + 1) * sizeof *sorted);
    size_t n = 0;
    if (fits->failed || !sorted) {
        sft_error err = SFT_ERROR_INIT;
        sfti_fail_memory(&err, sizeof(find_row));
        cli_complain(fits->c, NULL, &err);
    } else {
        for (const find_row *row = fits->rows; row; row = row->next) sorted[n++] = row;
        if (n > 0) qsort(sorted, n, sizeof *sorted, compare_rows);
        for (size_t i = 0; i < n; i++) find_show(fits->c, &sorted[i]->found);
    }
    if (fits->good == 0 && fits->unknown > 0 && !fits->c->set.all) {
        /* an empty answer does not say that nothing fits */
        cli_flush(&fits->c->out);
        cli_printf(&fits->c->err, "safetensors: note: of %zu model%s it is not known whether they "
                                  "fit: --all lists them\n", fits->unknown,
                   fits->unknown == 1 ? "" : "s");
        cli_flush(&fits->c->err);
    }
    sfti_arena_free(&fits->arena);
}
