/* Values of quantised tensors as F32: a tile at a time. The numbers of every part that the tile
 * needs are read into a region of its own; then they are combined. Tests: test_quant.c. */
#include "quant/quant.h"

#include "base/endian.h"
#include "base/error.h"
#include "base/number.h"

#include <string.h>

#define TILE_VALUES ((uint64_t)64 << 10)   /* values, which stay in a core's cache */
#define REGION_WINDOW ((uint64_t)256 << 10) /* bytes of a file that are kept */
#define REGION_RUN 4096                    /* elements that are read at once */
#define PANEL ((uint64_t)6 << 20)
#define STRIP 64

/* ── Memory ── */

/* An array of at least `bytes` bytes; its old contents are lost. */
static sft_code dequant_room(sfti_dequant *d, void *array, size_t *size, uint64_t bytes,
                             sft_error *err) {
    void **at = array;
    if (bytes <= *size) return SFT_OK;
    sfti_release(&d->alloc, *at, *size);
    *size = 0;
    *at = bytes <= SIZE_MAX / 2 ? sfti_take(&d->alloc, (size_t)bytes) : NULL;
    if (!*at) return sfti_fail_memory(err, bytes);
    *size = (size_t)bytes;
    return SFT_OK;
}

void sfti_dequant_begin(sfti_dequant *d, const sfti_quant *quant) {
    d->quant = quant;
    d->ready = false;
    d->panel.of = NULL;
    for (size_t k = 0; d->regions && k < SFTI_LAYOUT_PARTS; k++) {
        d->regions[k].loaded = false;
        d->regions[k].window_len = 0;
    }
}

void sfti_dequant_end(sfti_dequant *d) {
    sft_allocator alloc = d->alloc;
    for (size_t k = 0; d->regions && k < SFTI_LAYOUT_PARTS; k++) {
        sfti_release(&alloc, d->regions[k].values, d->regions[k].values_size);
        sfti_release(&alloc, d->regions[k].window, d->regions[k].window_size);
    }
    sfti_release(&alloc, d->regions, SFTI_LAYOUT_PARTS * sizeof *d->regions);
    sfti_release(&alloc, d->group_of, d->group_of_size);
    sfti_release(&alloc, d->panel.bytes, d->panel.size);
    memset(d, 0, sizeof *d);
    d->alloc = alloc;
}

/* ── Elements ── */

/* `count` elements of more than 8 bits. */
static void wide_values(sft_dtype dtype, const uint8_t *bytes, size_t count, float *out,
                        size_t step) {
    double values[512];
    uint32_t bits = sft_dtype_describe(dtype)->bits;
    for (size_t done = 0; done < count; done += 512) {
        size_t some = count - done < 512 ? count - done : 512;
        sfti_to_doubles(dtype, bytes + done * bits / 8, 0, some, values);
        for (size_t i = 0; i < some; i++) out[(done + i) * step] = (float)values[i];
    }
}

/* Numbers that are all finite; those that divide, not 0 either. */
static sft_code check_finite(const sfti_quant_part *part, const float *values, uint64_t count,
                             sft_error *err) {
    bool divides = part->how->divides, wrong = false;
    for (uint64_t i = 0; i < count; i++)
        wrong |= values[i] - values[i] != 0 || (divides && values[i] == 0);
    if (!wrong) return SFT_OK;
    return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, part->tensor->name,
                            "expected finite numbers%s, found another, which makes values infinite "
                            "or NaN", divides ? " other than 0" : "");
}

/* The values of a codebook, which has as many as its part has codes. */
static sft_code read_book(const sfti_quant_part *book, size_t count, float *table,
                          sft_error *err) {
    uint8_t bytes[256 * 8];
    uint32_t bits = sft_dtype_describe(book->tensor->dtype)->bits;
    sft_code code = sft_read_bytes(book->file, book->tensor->offset, bytes, count * bits / 8, err);
    if (!code) wide_values(book->tensor->dtype, bytes, count, table, 1);
    return code ? code : check_finite(book, table, count, err);
}

/* The value of every code of a part. */
static sft_code read_table(const sfti_quant *q, const sfti_quant_part *part, float *table,
                           sft_error *err) {
    const sfti_layout_part *how = part->how;
    uint32_t codes = 1u << part->bits;
    sft_dtype dtype = how->as < SFT_DTYPE_COUNT ? (sft_dtype)how->as : part->tensor->dtype;
    if (part == q->parts && q->book.tensor) return read_book(&q->book, codes, table, err);
    if (how->role == SFTI_PART_SCALE && q->nested_book.tensor)
        return read_book(&q->nested_book, codes, table, err);
    for (uint32_t i = 0; i < codes; i++) {
        int32_t number = (int32_t)((i + how->plus) % codes), half = (int32_t)codes / 2;
        bool is_signed = how->code == SFTI_CODE_INT
                      || (how->code == SFTI_CODE_DTYPE && dtype == SFT_I8);
        if (is_signed && number >= half) number -= (int32_t)codes;
        if (how->code == SFTI_CODE_OFFSET) number -= half;
        if (how->code == SFTI_CODE_DTYPE && sft_dtype_describe(dtype)->kind == SFT_KIND_FLOAT)
            table[i] = (float)sfti_float_value(sfti_float_form_of(dtype), i);
        else table[i] = (float)number;
    }
    return SFT_OK;
}

/* ── Regions ── */

/* Bytes [at, at + len) of a part's tensor; those behind them, up to `ahead`, will be needed soon.
 * len is at most REGION_WINDOW. */
static sft_code region_bytes(sfti_dequant *d, const sfti_quant_part *part, sfti_quant_region *r,
                             uint64_t at, uint64_t len, uint64_t ahead, const uint8_t **out,
                             sft_error *err) {
    uint64_t left = part->tensor->end - part->tensor->begin - at;
    if (r->window_len && at >= r->window_at && at - r->window_at <= r->window_len
        && r->window_len - (at - r->window_at) >= len) {
        *out = r->window + (at - r->window_at);
        return SFT_OK;
    }
    if (ahead < len) ahead = len;
    if (ahead > REGION_WINDOW) ahead = REGION_WINDOW;
    if (ahead > left) ahead = left;
    sft_code code = dequant_room(d, &r->window, &r->window_size, REGION_WINDOW + 1, err);
    r->window_len = 0;
    if (!code)
        code = sft_read_bytes(part->file, part->tensor->offset + at, r->window, (size_t)ahead, err);
    if (code) return code;
    r->window[ahead] = 0; /* an element may seem to go on */
    r->window_at = at;
    r->window_len = ahead;
    *out = r->window;
    return SFT_OK;
}

/* Where the elements of eight stand. */
static const uint8_t in_order[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
static const uint8_t in_awq[8] = { 0, 4, 1, 5, 2, 6, 3, 7 };
static const uint8_t in_high_4[8] = { 1, 0, 3, 2, 5, 4, 7, 6 };

/* Eight elements of 4 bits, the first one lowest. */
static uint32_t nibbles_in_order(const sfti_quant_part *part, uint32_t word) {
    if (part->how->high) return (word >> 4 & 0x0f0f0f0f) | (word & 0x0f0f0f0f) << 4;
    if (!part->how->awq) return word;
    uint32_t even = word & 0xffff, odd = word >> 16;
    even = (even | even << 8) & 0x00ff00ff;
    odd = (odd | odd << 8) & 0x00ff00ff;
    even = (even | even << 4) & 0x0f0f0f0f;
    odd = (odd | odd << 4) & 0x0f0f0f0f;
    return even | odd << 4;
}

static void eight_values(const float *table, uint32_t nibbles, float *out) {
    for (uint32_t n = 0; n < 8; n++) out[n] = table[nibbles >> 4 * n & 15];
}

/* Elements [from, from + count) of bytes that begin with element 0. */
static void packed_values(const sfti_quant_part *part, const float *table, const uint8_t *bytes,
                          size_t from, size_t count, float *out, size_t step) {
    uint32_t bits = part->bits, mask = (1u << bits) - 1;
    const uint8_t *place = part->how->awq ? in_awq : part->how->high ? in_high_4 : in_order;
    if (bits == 8) {
        size_t i = 0;
        bytes += from;
        for (; step == 1 && i + 8 <= count; i += 8) {
            uint64_t word = sfti_get_u64(bytes + i);
            for (uint32_t n = 0; n < 8; n++) out[i + n] = table[word >> 8 * n & 255];
        }
        for (; i < count; i++) out[i * step] = table[bytes[i]];
        return;
    }
    size_t i = 0;
    if (bits == 4 && step == 1 && from % 8 == 0)
        for (; i + 8 <= count; i += 8) {
            uint32_t word = sfti_get_u32(bytes + (from + i) / 2);
            eight_values(table, nibbles_in_order(part, word), out + i);
        }
    for (; i < count; i++) {
        size_t element = from + i, bit = (element - element % 8 + place[element % 8]) * bits;
        uint32_t two = bytes[bit / 8];
        if (bit % 8 + bits > 8) two |= (uint32_t)bytes[bit / 8 + 1] << 8;
        out[i * step] = table[two >> bit % 8 & mask];
    }
}

/* Elements [from, from + count) of one line. */
static sft_code read_stored_line(sfti_dequant *d, const sfti_quant_part *part, sfti_quant_region *r,
                          uint64_t line, uint64_t from, uint64_t count, float *out, size_t step,
                          sft_error *err) {
    uint64_t base = r->matrix * part->matrix_bytes + line * part->line_bytes;
    bool whole = from == 0 && count == (part->how->across ? part->rows : part->columns);
    for (uint64_t done = 0; done < count;) {
        uint64_t first = (from + done) / 8 * 8, end = first + REGION_RUN;
        if (end > from + count) end = from + count;
        uint64_t at = first / 8 * part->bits, to = (end + 7) / 8 * part->bits;
        if (to > part->line_bytes) to = part->line_bytes;
        const uint8_t *bytes;
        size_t skip = (size_t)(from + done - first), some = (size_t)(end - first) - skip;
        uint64_t ahead = whole ? REGION_WINDOW : part->how->across ? 0 : part->line_bytes - at;
        sft_code code = region_bytes(d, part, r, base + at, to - at, ahead, &bytes, err);
        if (code) return code;
        if (part->bits <= 8) packed_values(part, r->table, bytes, skip, some, out, step);
        else wide_values(part->tensor->dtype, bytes + skip * (part->bits / 8), some, out, step);
        out += some * step;
        done += some;
    }
    return SFT_OK;
}

/* The region of rows of 6 bits that are stored as 4 and 2; it begins at a multiple of 4. */
static sft_code read_split(sfti_dequant *d, const sfti_quant_part *part, sfti_quant_region *r,
                           sft_error *err) {
    uint8_t low[REGION_RUN / 2];
    const uint8_t *bytes;
    for (uint64_t i = 0; i < r->rows; i++)
        for (uint64_t done = 0; done < r->columns; done += REGION_RUN) {
            uint64_t at = (r->row + i) * part->line_bytes, from = r->column + done;
            uint64_t some = r->columns - done < REGION_RUN ? r->columns - done : REGION_RUN;
            float *out = r->values + i * r->columns + done;
            sft_code code = region_bytes(d, part, r, at + from / 2, (some + 1) / 2, 0, &bytes, err);
            if (code) return code;
            memcpy(low, bytes, (size_t)(some + 1) / 2);
            at += part->line_bytes / 3 * 2 + from / 4;
            code = region_bytes(d, part, r, at, (some + 3) / 4, 0, &bytes, err);
            if (code) return code;
            for (uint64_t k = 0; k < some; k++) {
                uint32_t four = low[k / 2] >> 4 * (k % 2) & 15u, two = bytes[k / 4] >> 2 * (k % 4);
                out[k] = r->table[four | (two & 3) << 4];
            }
        }
    return SFT_OK;
}

/* The region of rows that share units of 8 or 32 bits, those of the first part in the highest. */
static sft_code read_planes(sfti_dequant *d, const sfti_quant_part *part, sfti_quant_region *r,
                            sft_error *err) {
    uint32_t unit = sft_dtype_describe(part->tensor->dtype)->bits / 8;
    uint32_t mask = (1u << part->bits) - 1;
    uint64_t planes = part->planes;
    for (uint64_t i = 0; i < r->rows; i++)
        for (uint64_t done = 0; done < r->columns;) {
            uint64_t row = r->row + i, some = r->columns - done;
            uint32_t shift = (uint32_t)(planes - 1 - row / part->lines) * part->bits;
            uint64_t at = row % part->lines * part->line_bytes + (r->column + done) * unit;
            const uint8_t *bytes;
            if (some > REGION_RUN) some = REGION_RUN;
            sft_code code = region_bytes(d, part, r, at, some * unit, REGION_WINDOW, &bytes, err);
            if (code) return code;
            float *out = r->values + i * r->columns + done;
            for (uint64_t k = 0; k < some; k++) {
                uint32_t bits = unit == 1 ? bytes[k] : sfti_get_u32(bytes + 4 * k);
                out[k] = r->table[bits >> shift & mask];
            }
            done += some;
        }
    return SFT_OK;
}

/* Brings in what is stored for the rows of a region and, up to PANEL bytes, for those below it: a
 * run of each stored row. */
static sft_code load_panel(sfti_dequant *d, const sfti_quant_part *part,
                           const sfti_quant_region *r, sft_error *err) {
    bool words = part->how->words, across = part->how->across;
    uint64_t rows = across && words ? r->columns : r->rows, row = across && words ? r->column
                                                                                  : r->row;
    uint64_t line = across ? words ? r->row : r->column : r->column, whole;
    uint64_t lines = across && words ? r->rows : r->columns;
    if (words) {
        uint64_t end = ((line + lines) * part->bits + 31) / 32;
        line = line * part->bits / 32;
        lines = end - line;
    }
    uint64_t unit = words ? 4 : part->bits, per_unit = words ? 1 : 8; /* bytes, and rows of them */
    uint64_t first = row / per_unit, units = (row + rows + per_unit - 1) / per_unit - first;
    sfti_quant_panel *p = &d->panel;
    if (p->of == part && p->matrix == r->matrix && p->line == line && p->lines == lines
        && first >= p->first && first + units <= p->first + p->units)
        return SFT_OK;
    p->of = NULL;
    whole = words ? part->lines : (part->line_bytes + unit - 1) / unit;
    uint64_t most = PANEL / (lines * unit);
    /* Runs of an odd number of 64 bytes: the same place in each is in another set of the cache. */
    if (most * unit >= 128) most -= most * unit / 64 % 2 ? 0 : 64 / unit;
    if (units < most) units = most;
    if (units > whole - first) units = whole - first;
    sft_code code = dequant_room(d, &p->bytes, &p->size, units * unit * lines + 4, err);
    uint64_t base = part->tensor->offset + r->matrix * part->matrix_bytes;
    uint64_t stride = words ? part->lines * 4 : part->line_bytes, run = units * unit, runs = lines;
    if (run > stride - first * unit) run = stride - first * unit;
    p->run = run;
    if (run == stride) run *= runs, runs = 1;
    for (uint64_t i = 0; !code && i < runs; i++)
        code = sft_read_bytes(part->file, base + (line + i) * stride + first * unit,
                              p->bytes + i * run, (size_t)run, err);
    p->matrix = r->matrix;
    p->line = line;
    p->lines = lines;
    p->first = first;
    p->units = units;
    if (!code) p->of = part;
    if (!code) memset(p->bytes + p->run * lines, 0, 4); /* which words may reach into */
    return code;
}

/* A row of words that stand in columns: `count` elements from `from` on. */
static void word_values(const sfti_dequant *d, const sfti_quant_part *part, const float *table,
                        uint64_t row, uint64_t from, uint64_t count, float *out, size_t step) {
    const sfti_quant_panel *p = &d->panel;
    uint64_t bit = from * part->bits - p->line * 32;
    const uint8_t *at = p->bytes + (row - p->first) * 4 + bit / 32 * p->run;
    uint32_t bits = part->bits, mask = (1u << bits) - 1, shift = bit % 32;
    uint64_t i = 0;
    if (bits == 4 && shift == 0 && step == 1)
        for (; i + 8 <= count; i += 8, at += p->run) eight_values(table, sfti_get_u32(at), out + i);
    uint32_t word = i < count ? sfti_get_u32(at) : 0;
    for (; i < count; i++) {
        uint32_t code = word >> shift;
        shift += bits;
        if (shift >= 32 && (shift > 32 || i + 1 < count)) {
            at += p->run;
            word = sfti_get_u32(at);
            shift -= 32;
            if (shift > 0) code |= word << (bits - shift);
        }
        out[i * step] = table[code & mask];
    }
}

/* The region of lines that are columns of values, of 4 bits: some columns at a time, eight rows of
 * them. */
static void across_values(const sfti_dequant *d, const sfti_quant_part *part,
                          sfti_quant_region *r) {
    const sfti_quant_panel *p = &d->panel;
    size_t width = (size_t)r->columns;
    for (size_t j = 0; j < width; j += STRIP)
        for (uint64_t i = 0; i < r->rows; i += 8) {
            const uint8_t *at = p->bytes + j * p->run + (r->row + i - p->first * 8) / 2;
            float eight[8], *out = r->values + i * width + j;
            size_t columns = width - j < STRIP ? width - j : STRIP;
            size_t rows = r->rows - i < 8 ? (size_t)(r->rows - i) : 8;
            for (size_t k = 0; k < columns; k++, at += p->run) {
                eight_values(r->table, nibbles_in_order(part, sfti_get_u32(at)), eight);
                for (size_t n = 0; rows == 8 && n < 8; n++) out[n * width + k] = eight[n];
                for (size_t n = 0; rows < 8 && n < rows; n++) out[n * width + k] = eight[n];
            }
        }
}

/* The region of a part of which stored rows have only some bytes each. */
static sft_code read_panel(sfti_dequant *d, const sfti_quant_part *part, sfti_quant_region *r,
                           sft_error *err) {
    sft_code code = load_panel(d, part, r, err);
    if (code) return code;
    if (!part->how->words) across_values(d, part, r);
    else if (part->how->across)
        for (uint64_t j = 0; j < r->columns; j++)
            word_values(d, part, r->table, r->column + j, r->row, r->rows, r->values + j,
                        (size_t)r->columns);
    else
        for (uint64_t i = 0; i < r->rows; i++)
            word_values(d, part, r->table, r->row + i, r->column, r->columns,
                        r->values + i * r->columns, 1);
    return SFT_OK;
}

/* The region of tiles of 128 x 4 bytes: row 32 a + b of a tile has its four at 16 b + 4 a. */
static sft_code read_tiles(sfti_dequant *d, const sfti_quant_part *part, sfti_quant_region *r,
                           sft_error *err) {
    uint64_t strip = (part->columns + 3) / 4 * 512;
    for (uint64_t i = 0; i < r->rows; i++)
        for (uint64_t j = 0; j < r->columns;) {
            uint64_t row = r->row + i, column = r->column + j;
            uint64_t at = r->matrix * part->matrix_bytes + row / 128 * strip + column / 4 * 512;
            const uint8_t *tile;
            sft_code code = region_bytes(d, part, r, at, 512, REGION_WINDOW, &tile, err);
            if (code) return code;
            tile += row % 32 * 16 + row % 128 / 32 * 4;
            for (; j < r->columns && (r->column + j) / 4 == column / 4; j++)
                r->values[i * r->columns + j] = r->table[tile[(r->column + j) % 4]];
        }
    return SFT_OK;
}

/* Brings in the numbers for values [row, row + rows) x [column, column + columns). */
static sft_code load_region(sfti_dequant *d, size_t k, uint64_t matrix, uint64_t row,
                            uint64_t rows, uint64_t column, uint64_t columns, sft_error *err) {
    const sfti_quant *q = d->quant;
    const sfti_quant_part *part = &q->parts[k];
    sfti_quant_region *r = &d->regions[k];
    uint64_t first = row / part->row_block, end = (row + rows - 1) / part->row_block + 1;
    uint64_t left = column / part->column_block;
    uint64_t right = (column + columns - 1) / part->column_block + 1;
    if (q->group.tensor && part->how->role != SFTI_PART_CODES) left = 0, right = part->columns;
    if (part->matrix_bytes == 0) matrix = 0;
    if (r->loaded && r->matrix == matrix && r->row == first && r->rows == end - first
        && r->column == left && r->columns == right - left && part->how->role != SFTI_PART_CODES)
        return SFT_OK;
    r->loaded = false;
    r->matrix = matrix;
    r->row = first;
    r->rows = end - first;
    r->column = left;
    r->columns = right - left;
    sft_code code = dequant_room(d, &r->values, &r->values_size,
                                 r->rows * r->columns * sizeof(float), err);
    if (code) return code;
    bool across = part->how->across;
    if (part->how->tiled) code = read_tiles(d, part, r, err);
    else if (part->how->words || (part->how->across && k == 0))
        code = read_panel(d, part, r, err);
    else if (part->how->planes) code = read_planes(d, part, r, err);
    else if (part->how->split && part->bits == 6) code = read_split(d, part, r, err);
    else
        for (uint64_t l = 0; !code && l < (across ? r->columns : r->rows); l++)
            code = read_stored_line(d, part, r, (across ? r->column : r->row) + l,
                             across ? r->row : r->column, across ? r->rows : r->columns,
                             r->values + l * (across ? 1 : r->columns),
                             across ? (size_t)r->columns : 1, err);
    if (!code && k > 0) code = check_finite(part, r->values, r->rows * r->columns, err);
    r->loaded = !code;
    return code;
}

/* g_idx: the group of each column. All -1, as compressed-tensors has them, are groups in order. */
static sft_code read_groups(sfti_dequant *d, sft_error *err) {
    const sfti_quant *q = d->quant;
    const sft_tensor *tensor = q->group.tensor;
    uint8_t bytes[4 * 512];
    uint64_t groups = q->parts[1].columns, unset = 0;
    sft_code code = dequant_room(d, &d->group_of, &d->group_of_size,
                                 q->columns * sizeof *d->group_of, err);
    for (uint64_t done = 0; !code && done < q->columns; done += 512) {
        size_t some = q->columns - done < 512 ? (size_t)(q->columns - done) : 512;
        code = sft_read_bytes(q->group.file, tensor->offset + 4 * done, bytes, 4 * some, err);
        for (size_t i = 0; !code && i < some; i++) {
            uint32_t group = d->group_of[done + i] = sfti_get_u32(bytes + 4 * i);
            unset += group == UINT32_MAX;
            if (group >= groups && unset <= done + i)
                code = sfti_fail_tensor(err, SFT_CAST_DTYPE, tensor->offset + 4 * (done + i),
                                        tensor->name, "expected a group below %llu, found %lu",
                                        (unsigned long long)groups, (unsigned long)group);
        }
    }
    if (!code && unset > 0 && unset < q->columns)
        code = sfti_fail_tensor(err, SFT_CAST_DTYPE, tensor->offset, tensor->name,
                                "expected a group for each column or none, found both");
    uint64_t each = q->parts[1].column_block;
    if (!code && unset > 0 && (q->columns - 1) / each + 1 != groups)
        code = sfti_fail_tensor(err, SFT_CAST_DTYPE, tensor->offset, tensor->name,
                                "expected groups that are told, or of one size, found neither");
    for (uint64_t c = 0; !code && unset > 0 && c < q->columns; c++)
        d->group_of[c] = (uint32_t)(c / each);
    return code;
}

static sft_code make_ready(sfti_dequant *d, sft_error *err) {
    const sfti_quant *q = d->quant;
    sft_code code = SFT_OK;
    if (d->ready) return SFT_OK;
    if (!d->regions) {
        d->regions = sfti_take(&d->alloc, SFTI_LAYOUT_PARTS * sizeof *d->regions);
        if (!d->regions) return sfti_fail_memory(err, SFTI_LAYOUT_PARTS * sizeof *d->regions);
        memset(d->regions, 0, SFTI_LAYOUT_PARTS * sizeof *d->regions);
    }
    for (size_t k = 0; !code && k < q->count; k++)
        if (q->parts[k].bits <= 8) code = read_table(q, &q->parts[k], d->regions[k].table, err);
    if (!code && q->group.tensor) code = read_groups(d, err);
    d->ready = !code;
    return code;
}

/* ── Values ── */

/* The tile that has this value, and its place there. */
static sft_code load_tile(sfti_dequant *d, uint64_t value, sft_error *err) {
    const sfti_quant *q = d->quant;
    const sfti_quant_region *codes = d->regions;
    uint64_t column = value % q->columns, row = value / q->columns, matrix = row / q->rows;
    row %= q->rows;
    if (codes->loaded && codes->matrix == matrix && row >= codes->row
        && row - codes->row < codes->rows && column >= codes->column
        && column - codes->column < codes->columns)
        return SFT_OK;
    uint64_t columns = q->columns < TILE_VALUES ? q->columns : TILE_VALUES;
    uint64_t rows = TILE_VALUES / columns;
    if (q->parts[0].how->across || q->parts[0].how->words)
        rows = (rows * 4 + 7) / 8 * 8; /* eight of AWQ's rows stand in no order */
    column -= column % columns;
    row -= row % rows;
    if (columns > q->columns - column) columns = q->columns - column;
    if (rows > q->rows - row) rows = q->rows - row;
    d->regions[0].loaded = false;
    sft_code code = SFT_OK;
    for (size_t k = q->count; !code && k > 0; k--)
        code = load_region(d, k - 1, matrix, row, rows, column, columns, err);
    d->regions[0].matrix = matrix;
    for (uint64_t i = 0; !code && i < rows; i++) {
        float *values = d->regions[0].values + i * columns;
        sfti_quant_combine(d, row + i, column, (size_t)columns, values);
    }
    return code;
}

sft_code sfti_dequant_read(sfti_dequant *d, uint64_t first, size_t count, uint8_t *out,
                           sft_error *err) {
    const sfti_quant *q = d->quant;
    sft_code code = make_ready(d, err);
    for (size_t done = 0; !code && done < count;) {
        uint64_t value = first + done, row = value / q->columns % q->rows;
        code = load_tile(d, value, err);
        if (code) break;
        const sfti_quant_region *tile = d->regions;
        uint64_t column = value % q->columns, left = tile->column + tile->columns - column;
        size_t some = count - done < left ? count - done : (size_t)left;
        const float *values = tile->values + (row - tile->row) * tile->columns
                              + (column - tile->column);
        for (size_t i = 0; i < some; i++) {
            uint32_t bits;
            memcpy(&bits, &values[i], sizeof bits);
            sfti_put_u32(out + 4 * (done + i), bits);
        }
        done += some;
    }
    if (code && err && err->tensor_len == SFT_NO_TENSOR)
        sfti_error_tensor(err, q->parts[0].tensor->name);
    return code;
}
