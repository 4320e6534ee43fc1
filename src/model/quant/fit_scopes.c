/* Whether a tensor is as a quantization_config tells of its module. Tests:
 * test_quant_declared.c. */
#include "base/error.h"
#include "quant/fit.h"

/* Whether a dimension has as many numbers as there are blocks of that size, and they are it. */
static bool has_blocks_of(uint64_t size, uint64_t block, uint64_t numbers, uint64_t found,
                          bool any) {
    return numbers == sfti_divide_up(size, block) && (any || found == block || block >= size);
}

/* What of it the tensor has not; NULL: nothing. */
static const char *misfit(const sfti_quant_fit *f, const sfti_declared_scope *s) {
    const sfti_quant *q = f->q;
    const sfti_quant_part *codes = &q->parts[0], *scale = &q->parts[1];
    sft_dtype dtype = codes->how->as < SFT_DTYPE_COUNT ? (sft_dtype)codes->how->as
                                                       : codes->tensor->dtype;
    bool whole = codes->how->code != SFTI_CODE_DTYPE
              || sft_dtype_describe(dtype)->kind != SFT_KIND_FLOAT, has_zeros = false;
    if (s->excludes) return "no quantised weights";
    if (s->widths && !(s->widths >> codes->bits & 1)) return "another number of bits";
    if (s->kinds && !(s->kinds >> (whole ? SFT_KIND_INT : SFT_KIND_FLOAT) & 1))
        return "another type";
    for (size_t k = 0; k < q->layout->count; k++)
        has_zeros = has_zeros || q->layout->parts[k].role == SFTI_PART_ZERO;
    if (s->asymmetric && whole && has_zeros && !sfti_fit_role(f, SFTI_PART_ZERO, NULL))
        return "zero points";
    uint64_t rows = s->shares == SFTI_SHARE_ALL ? q->rows
                  : s->shares == SFTI_SHARE_BLOCK ? s->blocks[0] : 1;
    uint64_t columns = s->shares == SFTI_SHARE_GROUP ? s->group
                     : s->shares == SFTI_SHARE_BLOCK ? s->blocks[1] : q->columns;
    if (!s->shares || rows == 0 || columns == 0 || q->count < 2) return NULL;
    bool fits = has_blocks_of(q->rows, rows, scale->rows, scale->row_block, false)
             && has_blocks_of(q->columns, columns, scale->columns, scale->column_block,
                              q->group.tensor != NULL);
    return fits ? NULL : "scales of other blocks";
}

sft_code sfti_scopes_check(const sfti_quant_fit *f, sft_error *err) {
    const sfti_declared *d = f->search->declared;
    const sft_tensor *t = f->q->parts[0].tensor;
    if (!f->match->told || f->format || d->scope_count == 0) return SFT_OK;
    sfti_scopes_choose(d, t->name);
    for (size_t i = 0; i < d->scope_count; i++) {
        const char *why = d->scopes[i].meant ? misfit(f, &d->scopes[i]) : NULL;
        if (why)
            return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, t->name,
                                    "expected what the quantization_config may tell of its module "
                                    "(%s), found that it tells %s", d->ordered ? "dynamic"
                                                                     : "config_groups", why);
    }
    return SFT_OK;
}
