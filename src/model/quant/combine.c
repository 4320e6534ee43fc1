/* Formulas of quantised values. A row is cut into cells, the columns of which share a number of
 * every part. Tests: test_quant.c. */
#include "quant/quant.h"

#include <string.h>

#define CELLS 512 /* that are combined at once */

typedef struct quant_cells {
    uint64_t row, first, width; /* of the matrix; of cells; columns of a cell */
    uint64_t skip;              /* columns of the first that are not wanted */
    size_t count, columns;      /* cells, and columns of them */
} quant_cells;

static uint64_t cell_width(const sfti_quant *q) {
    uint64_t width = q->columns;
    if (q->group.tensor) return 1;
    for (size_t k = 1; k < q->count; k++)
        if (q->parts[k].columns > 1 && q->parts[k].column_block < width)
            width = q->parts[k].column_block;
    for (size_t k = 1; k < q->count; k++)
        if (q->parts[k].columns > 1 && q->parts[k].column_block % width) return 1;
    return width;
}

/* The numbers of part k for each cell. */
static void cell_numbers(const sfti_dequant *d, size_t k, const quant_cells *cells, float *out) {
    const sfti_quant_part *part = &d->quant->parts[k];
    const sfti_quant_region *r = &d->regions[k];
    const float *line = r->values + (cells->row / part->row_block - r->row) * r->columns;
    if (part->columns == 1) {
        for (size_t i = 0; i < cells->count; i++) out[i] = line[0];
    } else if (d->quant->group.tensor) {
        for (size_t i = 0; i < cells->count; i++) out[i] = line[d->group_of[cells->first + i]];
    } else {
        uint64_t each = part->column_block / cells->width, inside = cells->first % each;
        line += cells->first / each - r->column;
        if (each == 1) memcpy(out, line, cells->count * sizeof *out);
        for (size_t i = 0; each > 1 && i < cells->count; i++) {
            out[i] = *line;
            if (++inside == each) inside = 0, line++;
        }
    }
}

static inline float combined(float a, float b, char what) {
    return what == '-' ? a - b : what == '+' ? a + b : a * b;
}

static inline void with_cells(float *values, const quant_cells *cells, const float *numbers,
                              char what) {
    uint64_t skip = cells->skip;
    if (cells->width == 1) {
        for (size_t i = 0; i < cells->columns; i++)
            values[i] = combined(values[i], numbers[i], what);
        return;
    }
    for (size_t done = 0, c = 0; done < cells->columns; c++, skip = 0) {
        size_t left = cells->columns - done;
        size_t some = cells->width - skip < left ? (size_t)(cells->width - skip) : left;
        float number = numbers[c];
        if (some == 16)
            for (size_t i = 0; i < 16; i++)
                values[done + i] = combined(values[done + i], number, what);
        else
            for (size_t i = 0; i < some; i++)
                values[done + i] = combined(values[done + i], number, what);
        done += some;
    }
}

static void to_int8(float *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        float v = values[i] + 0x1.8p23f; /* which rounds to even what is below 2^22 */
        v = values[i] > -0x1p22f && values[i] < 0x1p22f ? v - 0x1.8p23f : values[i];
        values[i] = (v > 127 ? 127 : v < -127 ? -127 : v) + 0.0f; /* no -0 */
    }
}

static void combine_cells(const sfti_dequant *d, size_t parts, const quant_cells *cells,
                          float *values) {
    const sfti_quant *q = d->quant;
    float numbers[CELLS], factors[CELLS], nested[CELLS];
    bool pending = false; /* values are not multiplied by the factors yet */
    for (size_t k = 1; k < parts; k++) {
        const sfti_layout_part *how = q->parts[k].how;
        if (how->role == SFTI_PART_NESTED) continue;
        cell_numbers(d, k, cells, numbers);
        if (k + 1 < q->count && q->parts[k + 1].how->role == SFTI_PART_NESTED) {
            cell_numbers(d, k + 1, cells, nested);
            for (size_t i = 0; i < cells->count; i++) numbers[i] *= nested[i];
            for (size_t i = 0; i < cells->count; i++) numbers[i] += q->nested_offset;
        }
        if (how->role == SFTI_PART_ZERO) with_cells(values, cells, numbers, '-');
        if (how->role == SFTI_PART_SCALE) {
            for (size_t i = 0; i < cells->count; i++) {
                float before = pending ? factors[i] : 1;
                factors[i] = how->divides ? before / numbers[i] : before * numbers[i];
            }
            pending = !how->then && !how->to_int8;
            if (!pending) with_cells(values, cells, factors, '*');
        }
        if (how->role == SFTI_PART_ADD) {
            if (pending) with_cells(values, cells, factors, '*');
            pending = false;
            with_cells(values, cells, numbers, '+');
        }
        if (how->to_int8) to_int8(values, cells->columns);
    }
    if (pending) with_cells(values, cells, factors, '*');
}

/* ── Rotation ── */

static double rotation_root(uint32_t n) {
    double root = 1;
    while (root * root < n) root *= 2;
    return root;
}

/* A stage of the rotation takes fours that stand together, and puts the first of each together,
 * then the second of each and so on: after all stages, the order is as it was. */
static void rotate_fours(const float *restrict in, float *restrict out, uint32_t fours) {
    for (uint32_t i = 0; i < fours; i++) {
        float sum = in[4 * i] + in[4 * i + 1], less = in[4 * i] - in[4 * i + 1];
        float more = in[4 * i + 2] + in[4 * i + 3], rest = in[4 * i + 2] - in[4 * i + 3];
        out[i] = sum + rest;
        out[fours + i] = sum - rest;
        out[2 * fours + i] = less + more;
        out[3 * fours + i] = more - less;
    }
}

/* Integers of at most 8 bits, of which all sums are exact, then times a factor, rounded once. */
static void rotate_integers(float *values, size_t count, uint32_t n, double factor) {
    float other[SFTI_ROTATE_MOST];
    factor /= rotation_root(n);
    for (size_t g = 0; g + n <= count; g += n) {
        float *now = values + g, *next = other;
        for (uint32_t left = n; left > 1; left /= 4) {
            rotate_fours(now, next, n / 4);
            float *swap = now;
            now = next;
            next = swap;
        }
        for (uint32_t i = 0; i < n; i++) values[g + i] = (float)((double)now[i] * factor);
    }
}

/* The one factor of the row by which integers are multiplied last, or 0: there is none. */
static float last_factor(const sfti_dequant *d, uint64_t row) {
    const sfti_quant *q = d->quant;
    const sfti_quant_part *last = &q->parts[q->count - 1];
    sft_kind kind = sft_dtype_describe(q->parts[0].tensor->dtype)->kind;
    bool integers = q->count == 2 ? !q->book.tensor && kind != SFT_KIND_FLOAT
                                  : last[-1].how->to_int8;
    if (!integers || last->how->role != SFTI_PART_SCALE || last->columns != 1) return 0;
    const sfti_quant_region *r = &d->regions[q->count - 1];
    float factor = r->values[(row / last->row_block - r->row) * r->columns];
    return factor - factor == 0 ? factor : 0;
}

void sfti_quant_combine(const sfti_dequant *d, uint64_t row, uint64_t column, size_t count,
                        float *values) {
    const sfti_quant *q = d->quant;
    quant_cells cells = { .row = row, .width = cell_width(q) };
    float factor = q->rotate && q->count > 1 ? last_factor(d, row) : 0;
    size_t parts = q->count - (factor != 0);
    for (size_t done = 0; parts > 1 && done < count; done += cells.columns) {
        uint64_t at = column + done, all;
        cells.first = at / cells.width;
        cells.skip = at % cells.width;
        all = (column + count - 1) / cells.width - cells.first + 1;
        cells.count = all < CELLS ? (size_t)all : CELLS;
        cells.columns = all <= CELLS ? count - done
                                     : (size_t)((cells.first + CELLS) * cells.width - at);
        combine_cells(d, parts, &cells, values + done);
    }
    float over = q->layout->over ? (float)(1.0 / q->layout->over) : 1;
    for (size_t i = 0; q->layout->over && i < count; i++) values[i] *= over;
    if (factor != 0) rotate_integers(values, count, q->rotate, (double)factor);
    else if (q->rotate) sfti_quant_rotate(values, count, q->rotate);
}
