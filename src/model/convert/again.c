/* How the parts of a quantised tensor are written again. Tests: tests/adapter/quantised.py. */
#include "convert/again.h"

#include "base/error.h"
#include "convert/conversion.h"
#include "convert/targets.h"

/* The elements' dtype: as the layout says, or the tensor's own. */
static sft_dtype held_as(const sfti_layout_part *how, sft_dtype stored) {
    return how->as < SFT_DTYPE_COUNT ? (sft_dtype)how->as : stored;
}

/* Whether two parts store numbers in the same way, but for their names and blocks. */
static bool is_stored_so(const sfti_quant_part *have, const sfti_layout_part *want,
                         sft_dtype stored) {
    const sfti_layout_part *how = have->how;
    int differ = (how->role ^ want->role) | (how->code ^ want->code) | (how->bits ^ want->bits)
               | (how->plus ^ want->plus) | (how->high ^ want->high) | (how->awq ^ want->awq)
               | (how->across ^ want->across) | (how->words ^ want->words)
               | (how->tiled ^ want->tiled) | (how->joined ^ want->joined)
               | (how->planes ^ want->planes) | (how->divides ^ want->divides)
               | (how->to_int8 ^ want->to_int8) | (how->then ^ want->then);
    return differ == 0 && held_as(how, have->tensor->dtype) == held_as(want, stored);
}

/* Whether the target's encoding of the same matrix has the quantised tensor's numbers, each for the
 * same values. */
static bool takes(const sfti_quant *quant, const sfti_encoding *how, sfti_again *out) {
    const sfti_quant_layout *layout = how->layout;
    sfti_encoded *m = &out->matrix;
    size_t count = 0;
    *out = (sfti_again){ .how = *how, .codes = held_as(&layout->parts[0], how->codes),
                         .count = sfti_encoded_parts(how) };
    if (out->count != quant->count || layout->over != quant->layout->over
        || sfti_encoded_begin(how, quant->rows, quant->columns, m)
        || m->rotate != quant->rotate)
        return false;
    for (size_t p = 0; p < layout->count; p++) {
        const sfti_layout_part *want = &layout->parts[p];
        if (want->role > SFTI_PART_SCALE) continue;
        const sfti_quant_part *have = &quant->parts[count];
        uint64_t shape[2], size = 0;
        sft_dtype stored = count == 0 ? how->codes : count == 1 ? how->scale : SFT_F32;
        uint32_t rank;
        if (!is_stored_so(have, want, stored)) return false;
        uint64_t rows = (m->rows - 1) / m->row_block + 1; /* without what pads */
        uint64_t columns = (m->columns - 1) / m->column_block + 1;
        if (count == 1 && (have->rows != rows || have->columns != columns
                           || (rows > 1 && have->row_block != m->row_block)
                           || (columns > 1 && have->column_block != m->column_block)))
            return false;
        if (count == 2 && have->rows * have->columns != 1) return false;
        sfti_encoded_spec(how, m, count, &stored, shape, &rank);
        const sft_tensor *tensor = have->tensor;
        if (sft_shape_size(stored, shape, rank, NULL, &size, NULL)
            || size != tensor->end - tensor->begin)
            return false;
        out->parts[count++] = tensor;
    }
    return count == out->count;
}

sft_code sfti_quantise_again(const sft_conversion *conversion, size_t i, sfti_again *out,
                             sft_error *err) {
    const sfti_quant *quant = conversion->quants[i];
    const sft_tensor *tensor = sft_set_tensor_at(conversion->set, i);
    const sfti_layouts *layouts = &conversion->declared.layouts;
    bool plain = quant->matrices == 1 && !quant->group.tensor && !quant->book.tensor
              && !quant->nested_book.tensor;
    for (size_t k = 0; plain && k < layouts->count; k++) {
        sft_span lines = layouts->rows[k].writes;
        sfti_quant_target target;
        bool good;
        while (sfti_quant_target_next(&layouts->rows[k], &lines, &target, &good))
            if (takes(quant, &target.how, out)) return SFT_OK;
    }
    sft_span id = quant->layout->id;
    return sfti_fail_tensor(err, SFT_CAST_DTYPE, tensor->offset, tensor->name,
                            "expected a layout that can also be written (FP8, INT8, MXFP8 and "
                            "NVFP4, with scales in F32), found \"%.*s\" as it is stored here, "
                            "which can only be read", SFTI_CLIP(id, 100));
}
