/* Whether a tensor is as a quantization_config tells of its module. Tests:
 * test_quant_declared.c. */
#include "base/error.h"
#include "quant/fit.h"

/* Whether a tensor may be one of which something is told. */
typedef enum fitting {
    FITS_NOT,   /* for it would have other tensors */
    FITS_OTHER, /* with other values than those that are computed, or where one was lost */
    FITS
} fitting;

static fitting fit_blocks(uint64_t size, uint64_t block, uint64_t numbers, uint64_t found,
                          bool any) {
    if (numbers != sfti_divide_up(size, block)) return FITS_NOT;
    return any || found == block || block >= size ? FITS : FITS_OTHER;
}

/* *why: what of it the tensor has not. */
static fitting fit_scope(const sfti_quant_fit *f, const sfti_declared_scope *s, const char **why) {
    const sfti_quant *q = f->q;
    const sfti_quant_part *codes = &q->parts[0], *scale = &q->parts[1];
    sft_dtype dtype = codes->how->as < SFT_DTYPE_COUNT ? (sft_dtype)codes->how->as
                                                       : codes->tensor->dtype;
    bool whole = codes->how->code != SFTI_CODE_DTYPE
              || sft_dtype_describe(dtype)->kind != SFT_KIND_FLOAT;
    *why = s->excludes ? "no quantised weights"
         : !sfti_fit_width(codes, s->widths) ? "another number of bits"
         : s->kinds && !(s->kinds >> (whole ? SFT_KIND_INT : SFT_KIND_FLOAT) & 1) ? "another type"
         : NULL;
    if (*why) return FITS_NOT;
    uint64_t rows = s->shares == SFTI_SHARE_ALL ? q->rows
                  : s->shares == SFTI_SHARE_BLOCK ? s->blocks[0] : 1;
    uint64_t columns = s->shares == SFTI_SHARE_GROUP ? s->group
                     : s->shares == SFTI_SHARE_BLOCK ? s->blocks[1] : q->columns;
    if (s->shares && rows > 0 && columns > 0 && q->count > 1) {
        fitting a = fit_blocks(q->rows, rows, scale->rows, scale->row_block, false);
        fitting b = fit_blocks(q->columns, columns, scale->columns, scale->column_block,
                               q->group.tensor != NULL);
        *why = "scales of other blocks";
        if (a != FITS || b != FITS) return a < b ? a : b;
    }
    bool grouped = s->disordered && q->count > 1 && scale->columns > 1;
    const char *lost = NULL;
    for (size_t k = 0; k < q->layout->count; k++) {
        uint8_t role = q->layout->parts[k].role;
        bool told = role == SFTI_PART_ZERO ? s->asymmetric && whole
                                           : role == SFTI_PART_GROUP && grouped;
        if (told && !sfti_fit_role(f, role, NULL))
            lost = role == SFTI_PART_ZERO ? "zero points" : "a group for each column (g_idx)";
    }
    *why = lost;
    return lost ? FITS_OTHER : FITS;
}

/* Whether one that is meant fits, and none with other values; all: any may be meant. NULL, or what
 * is told instead. */
static const char *fit_meant(const sfti_quant_fit *f, bool all) {
    const sfti_declared *d = f->search->declared;
    const char *first = NULL, *why;
    bool fits = false;
    for (size_t i = 0; i < d->scope_count; i++) {
        if (all ? d->scopes[i].excludes : !d->scopes[i].meant) continue;
        fitting one = fit_scope(f, &d->scopes[i], &why);
        if (one == FITS_OTHER) return why;
        fits = fits || one == FITS;
        if (one == FITS_NOT && !first) first = why;
    }
    return fits ? NULL : first;
}

sft_code sfti_scopes_check(const sfti_quant_fit *f, sft_error *err) {
    const sfti_declared *d = f->search->declared;
    const char *why = fit_meant(f, false);
    if (why && !d->matching->sure && !fit_meant(f, true)) why = NULL; /* under another name */
    if (!why) return SFT_OK;
    return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, f->q->parts[0].tensor->name,
                            "expected what the quantization_config may tell of its module (%s), "
                            "found that it tells %s", d->ordered ? "dynamic" : "config_groups",
                            why);
}
