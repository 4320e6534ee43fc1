/* How weights are packed, from the tensors that accompany them. */
#include "label/tensors/quantisation.h"

#include "base/checked.h"
#include "base/endian.h"
#include "label/cursor.h"

#include <string.h>

#define MARKS_OF_WEIGHTS 12
#define MARKS_MOST 32

static const char *const mark_names[MARKS_OF_WEIGHTS] = {
    "qweight", "weight_packed", "f4", "f8", "i8", "u8", "u32", "mx_blocks", "scale_bytes",
    "scale_rows", "rows_packed", "scale_fours",
};

/* The ends of names of what accompanies packed weights, which is no parameter of the model. */
typedef struct quant_end {
    sft_span end;
    uint32_t mark;
} quant_end;

/* The bit of a mark, 0 for none of that name: of the rows "end" it is the number of the row. */
static uint32_t mark_of(const sfti_records *records, sft_span name) {
    unsigned bit = 0;
    for (; bit < MARKS_OF_WEIGHTS; bit++)
        if (sfti_is(name, mark_names[bit])) return 1u << bit;
    for (const sfti_record_row *row = sfti_rows(records, SFTI_END, 0); row && bit < MARKS_MOST;
         row = sfti_rows_next(records, row), bit++)
        if (sft_span_equal(sfti_row_word(row), name)) return 1u << bit;
    return 0;
}

/* Whether weights beside these scales are of two columns a byte. */
static bool are_of_fours(const sfti_quant *quant, const sft_tensor *scale) {
    const sft_tensor *codes = sfti_layer_tensor(quant->info, scale, "weight");
    sfti_shape shape;
    return codes && codes->rank > 1 && scale->dtype == SFT_F8_E4M3
        && sfti_shape_of(quant->info->set, codes, &shape) && shape.rank == codes->rank
        && shape.most[shape.rank - 1] / 2 == codes->shape[shape.rank - 1];
}

uint32_t sfti_mark_beside(const sfti_quant *quant, const sft_tensor *tensor) {
    const quant_end *ends = quant->ends;
    size_t row = sfti_suffixes_find(&quant->suffixes, tensor->name);
    uint32_t mark = row ? ends[row - 1].mark : 0;
    bool bytes = tensor->dtype == SFT_U8 || tensor->dtype == SFT_F8_E8M0;
    if (!(mark & quant->scale)) return mark;
    if (sfti_ends(tensor->name, ".weight_scale") && tensor->rank == 1 && tensor->shape[0] > 1)
        mark |= SFTI_MARK_SCALE_ROWS;
    if (are_of_fours(quant, tensor)) mark |= SFTI_MARK_SCALE_FOURS;
    return bytes ? mark | SFTI_MARK_SCALE_BYTES : mark;
}

static const uint32_t of_dtype[SFT_DTYPE_COUNT] = {
    [SFT_F8_E4M3] = SFTI_MARK_F8, [SFT_F8_E5M2] = SFTI_MARK_F8, [SFT_F8_E4M3FNUZ] = SFTI_MARK_F8,
    [SFT_F8_E5M2FNUZ] = SFTI_MARK_F8, [SFT_F4] = SFTI_MARK_F4, [SFT_I8] = SFTI_MARK_I8,
    [SFT_U32] = SFTI_MARK_U32, [SFT_U8] = SFTI_MARK_U8,
};

bool sfti_may_be_codes(const sft_tensor *tensor) {
    const sft_dtype_info *is = sft_dtype_describe(tensor->dtype);
    bool counts = is->kind != SFT_KIND_FLOAT && is->bits == 64
               && (tensor->rank < 2 || tensor->shape[0] < 2);
    bool wide = is->kind == SFT_KIND_FLOAT && is->bits >= 16;
    return !counts && !wide && is->kind != SFT_KIND_BOOL;
}

uint32_t sfti_mark_weight(const sft_tensor *tensor) {
    sft_span name = tensor->name;
    if (sfti_ends(name, ".qweight")) return SFTI_MARK_QWEIGHT;
    if (sfti_ends(name, ".weight_packed")) return SFTI_MARK_WEIGHT_PACKED;
    if (!of_dtype[tensor->dtype]) return 0;
    if (tensor->dtype == SFT_U8 && sfti_ends(name, "_blocks") && tensor->rank >= 3)
        return SFTI_MARK_MX_BLOCKS;
    if (tensor->rank < 2 || (!sfti_ends(name, "weight") && !sfti_ends(name, "_proj"))) return 0;
    return of_dtype[tensor->dtype];
}

/* ── What the marks mean together: the first row "marks" that holds ── */

static bool marks_hold(const sfti_records *records, const sfti_record_row *row, uint32_t marks) {
    sft_span rest = sfti_row_text(row), name;
    while (sfti_next_said(&rest, &name)) {
        bool denied = name.len > 1 && *name.data == '!';
        uint32_t mark = mark_of(records, denied ? sfti_from(name, 1) : name);
        if (mark == 0 || !!(marks & mark) == denied) return false;
    }
    return true;
}

/* Bits of a packed weight, from the tensor that tells its unpacked size. */
static uint32_t bits_of(const sft_tensor *packed, uint64_t packed_size, uint64_t whole) {
    uint64_t bits;
    if (packed->rank < 2 || whole == 0 || !sfti_mul(packed_size, 32, &bits)) return 0;
    bits /= whole;
    return bits >= 1 && bits <= 8 ? (uint32_t)bits : 0;
}

const sft_tensor *sfti_layer_tensor(const sft_info *info, const sft_tensor *tensor,
                                    const char *last) {
    sft_span layer = tensor->name;
    while (layer.len > 0 && layer.data[layer.len - 1] != '.') layer.len--;
    return layer.len > 0 ? sfti_set_sibling(info->set, layer, last) : NULL;
}

/* By the index of groups, or by zero points, which are packed along the rows. */
static uint32_t bits_gptq(const sfti_quant *quant, const sft_tensor *packed) {
    const sft_tensor *group = sfti_layer_tensor(quant->info, packed, "g_idx");
    const sft_tensor *zeros = sfti_layer_tensor(quant->info, packed, "qzeros");
    const sft_tensor *scales = sfti_layer_tensor(quant->info, packed, "scales");
    if (packed->rank == 2 && group && group->rank == 1)
        return bits_of(packed, packed->shape[0], group->shape[0]);
    if (!zeros || zeros->rank != 2 || !scales || scales->rank != 2) return 0;
    return bits_of(packed, zeros->shape[1], scales->shape[1]);
}

static uint32_t bits_awq(const sfti_quant *quant, const sft_tensor *packed) {
    const sft_tensor *scales = sfti_layer_tensor(quant->info, packed, "scales");
    if (packed->rank < 2 || !scales || scales->rank != 2) return 0;
    return bits_of(packed, packed->shape[1], scales->shape[1]);
}

/* Columns of MLX that share a scale, as the final norm tells them, which has the hidden size; or
 * 0. */
static uint64_t group_mlx(const sfti_view *view) {
    static const char end[] = "embed_tokens.weight";
    const sft_tensor *embed = NULL;
    for (size_t i = 0; i < view->count && !embed; i++)
        if (sfti_ends(view->by_name[i]->name, end)) embed = view->by_name[i];
    if (!embed || embed->dtype != SFT_U32) return 0;
    sft_span model = { embed->name.data, embed->name.len - (sizeof end - 1) };
    const sft_tensor *norm = sfti_set_sibling(view->info->set, model, "norm.weight");
    const sft_tensor *scales = sfti_layer_tensor(view->info, embed, "scales");
    if (!norm || norm->rank != 1 || !scales || scales->rank != 2 || scales->shape[1] == 0
        || norm->shape[0] % scales->shape[1] != 0)
        return 0;
    return norm->shape[0] / scales->shape[1];
}

static bool scales_are_bytes(const sfti_quant *quant, const sft_tensor *packed) {
    const sft_tensor *scales = sfti_layer_tensor(quant->info, packed, "scales");
    return scales && scales->dtype == SFT_U8;
}

/* By the group that all layers of the model have; scales that are bytes go with floats, of 8 bits
 * in groups of 32, or of 4 in groups of 32 or 16. */
static uint32_t bits_mlx(const sfti_quant *quant, const sft_tensor *packed) {
    const sft_tensor *scales = sfti_layer_tensor(quant->info, packed, "scales");
    uint64_t whole;
    if (packed->rank < 2 || !scales || scales->rank < 2) return 0;
    uint64_t groups = scales->shape[scales->rank - 1], words = packed->shape[packed->rank - 1];
    if (scales->dtype == SFT_U8) {
        uint64_t each = groups > 0 && words % groups == 0 ? words / groups : 0;
        return each == 8 ? 8 : each == 4 || each == 2 ? 4 : 0;
    }
    if (!sfti_mul(groups, quant->group, &whole)) return 0;
    return bits_of(packed, words, whole);
}

size_t sfti_read_of_layer(const sft_info *info, const sft_tensor *tensor, const char *last,
                          char *bytes, size_t room) {
    const sft_tensor *found = sfti_layer_tensor(info, tensor, last);
    size_t shard;
    if (info->options.header_only || info->options.no_data || !found
        || found->end - found->begin > room
        || sft_set_find(info->set, found->name, &shard) != found)
        return 0;
    size_t size = (size_t)(found->end - found->begin);
    const sft_file *file = sft_set_shard_at(info->set, shard);
    return sft_read_bytes(file, found->offset, bytes, size, NULL) == SFT_OK ? size : 0;
}

/* compressed-tensors: of bytes the size of a group follows from the scales' dtype. Of words, the
 * shape is read of the first layer; the bits of others follow from its group of columns, unless
 * zero points, which are packed along the rows into whole words, say otherwise. */
static uint32_t bits_packed(const sfti_quant *quant, const sft_tensor *packed) {
    const sft_tensor *scale = sfti_layer_tensor(quant->info, packed, "weight_scale");
    const sft_tensor *zeros = sfti_layer_tensor(quant->info, packed, "weight_zero_point");
    bool bytes = packed->dtype == SFT_U8;
    uint64_t whole, group = quant->group, packed_rows;
    char shape[16];
    if (packed->rank != 2) return 0;
    if (!quant->first_read && packed->dtype == SFT_I32
        && sfti_read_of_layer(quant->info, packed, "weight_shape", shape, sizeof shape)
               == sizeof shape)
        return bits_of(packed, packed->shape[1], sfti_get_u64((const uint8_t *)shape + 8));
    if (!scale || scale->rank != 2) return 0;
    if (bytes) group = scale->dtype == SFT_F8_E4M3 ? 64 : 128;
    else if (scale->shape[1] == 1) group = 0;
    uint32_t bits = sfti_mul(scale->shape[1], group, &whole)
                  ? bits_of(packed, packed->shape[1], whole) : 0;
    if (bytes || !zeros || zeros->rank != 2) return bits;
    bool agrees = sfti_mul(scale->shape[0], bits, &packed_rows)
               && packed_rows / 32 + (packed_rows % 32 != 0) == zeros->shape[0];
    return agrees && bits ? bits : bits_of(packed, zeros->shape[0], scale->shape[0]);
}

/* The columns of words that share a scale, once the bits are known; 0: not told. */
static uint64_t group_packed(const sfti_quant *quant, const sft_tensor *packed) {
    const sft_tensor *scale = sfti_layer_tensor(quant->info, packed, "weight_scale");
    uint64_t bits;
    if (packed->rank != 2 || !scale || scale->rank != 2 || scale->shape[1] == 0
        || quant->bits == 0 || !sfti_mul(packed->shape[1], 32, &bits))
        return 0;
    return bits / quant->bits / scale->shape[1];
}

/* Methods whose rows say no bits: how those of a layer are found out. */
static const struct quant_bits {
    const char *method;
    uint32_t (*bits)(const sfti_quant *quant, const sft_tensor *packed);
    bool is_named; /* by the bits, too */
    bool by_layer; /* what stands beside a layer proves its bits */
} quant_bits[] = {
    { "gptq", bits_gptq, true, true }, { "awq", bits_awq, true, true },
    { "mlx", bits_mlx, true, false }, { "compressed-tensors", bits_packed, false, false },
};

uint32_t sfti_bits_proved(const sfti_quant *quant, const sft_tensor *packed) {
    if (!quant->by) return 0;
    bool bytes = packed->dtype == SFT_U8 || scales_are_bytes(quant, packed);
    bool proved = quant->by->by_layer || !quant->guessed || bytes;
    return proved ? quant->by->bits(quant, packed) : 0;
}

/* ── Layers of several widths ── */

#define WIDTH_MOST 8

/* Sets the bits to those that nine tenths of the packed bytes have, or to 0 for several; they stay
 * as they are where too few layers tell theirs. */
static void set_common_bits(sfti_quant *quant, const sfti_view *view) {
    uint64_t bytes[WIDTH_MOST + 1] = { 0 }, all = 0; /* [0]: not told */
    uint32_t most = 1;
    for (size_t i = 0; i < view->count; i++) {
        const sft_tensor *tensor = view->by_name[i];
        uint32_t weight = sfti_mark_weight(tensor), bits = 0;
        if (weight & SFTI_MARK_WORDS) bits = quant->by->bits(quant, tensor);
        else if (weight & (SFTI_MARK_F8 | SFTI_MARK_I8)) bits = 8;
        else continue;
        uint64_t size = (tensor->end - tensor->begin) / 2; /* sums of halves are below 2^64 */
        bytes[bits] += size;
        all += size;
    }
    for (uint32_t bits = 2; bits <= WIDTH_MOST; bits++)
        if (bytes[bits] > bytes[most]) most = bits;
    if (bytes[most] >= all - all / 10) {
        quant->bits = most;
        quant->guessed = quant->guessed && !quant->by->by_layer;
    } else if (bytes[most] + bytes[0] < all - all / 10) {
        quant->bits = 0;
    }
}

static void quant_found(sfti_quant *quant, const sfti_record_row *row, const sfti_view *view,
                        const sft_tensor *packed) {
    sft_span told;
    uint64_t bits;
    quant->id = sfti_row_record(view->info->records, row)->id;
    quant->id_guessed = sfti_row_has(row, "trust", NULL);
    if (sfti_row_has(row, "bits", &told) && sfti_parse_uint(told, &bits) && bits <= 32) {
        quant->bits = (uint32_t)bits;
        quant->of_row = true;
        quant->guessed = quant->id_guessed;
        return;
    }
    bool is_named = true;
    quant->group = group_mlx(view);
    bool is_usual = quant->group == 0; /* words in groups of 64 and of 32 may look alike */
    if (is_usual) quant->group = 64;
    for (size_t i = 0; packed && i < SFTI_COUNT(quant_bits); i++)
        if (strcmp(quant->id, quant_bits[i].method) == 0) {
            quant->by = &quant_bits[i];
            if (quant->by->bits != bits_mlx) quant->group = 0;
            quant->bits = quant->by->bits(quant, packed);
            is_named = quant->by->is_named;
        }
    bool bytes = packed && (packed->dtype == SFT_U8 || scales_are_bytes(quant, packed));
    if (!is_named) quant->group = group_packed(quant, packed);
    quant->guessed = quant->bits == 0
                  || (is_usual && quant->by && quant->by->bits == bits_mlx && !bytes);
    quant->floats = bytes && quant->by && !quant->by->by_layer;
    if (quant->bits == 0) quant->bits = 4;
    quant->first_read = true;
    if (quant->by) set_common_bits(quant, view);
    if (!is_named) return;
    quant->id_guessed = quant->id_guessed || quant->guessed;
    if (quant->bits == 0) return;
    sft_span text = sfti_info_text(view->info, "%s-%ubit", quant->id, quant->bits);
    quant->id = text.len ? text.data : NULL;
}

/* fp8 without scales: most bytes of the matrices. */
static bool mostly_f8(const sfti_view *view) {
    uint64_t f8 = 0, all = 0;
    for (size_t i = 0; i < view->count; i++) {
        const sft_tensor *tensor = view->by_name[i];
        uint64_t elements = sft_tensor_elements(tensor);
        if (tensor->rank < 2) continue;
        all += elements / 2;
        if (of_dtype[tensor->dtype] == SFTI_MARK_F8) f8 += elements / 2;
    }
    return f8 > 0 && f8 >= all / 2;
}

/* The rows "end" and "codes", as they are looked for. */
static bool read_ends(sfti_quant *quant, const sfti_records *records) {
    quant_end *ends = sfti_info_take(quant->info, SFTI_SUFFIXES * sizeof *ends);
    sfti_codes *codes = sfti_info_take_zeroed(quant->info, sizeof *codes);
    unsigned bit = MARKS_OF_WEIGHTS;
    size_t count = 0, texts = 0;
    if (!ends || !codes) return false;
    SFTI_EACH_ROW(row, records, SFTI_CODES, 0) {
        sft_span rest = sfti_row_text(row), word, text;
        while (codes->count < SFTI_CODES_MOST && sfti_next_said(&rest, &word)) {
            sft_span beside = sfti_find_byte(word, ':');
            word.len -= beside.len;
            if (beside.len > 0) beside = sfti_from(beside, 1);
            if (sfti_is(word, "*")) {
                while (texts < SFTI_CODES_MOST && sfti_next_piece(&beside, '|', &text))
                    codes->texts[texts++] = sfti_info_cstr(quant->info, text);
                continue;
            }
            codes->beside[codes->count] =
                beside.len > 0 ? sfti_info_cstr(quant->info, beside) : NULL;
            codes->ends[codes->count] = sfti_info_cstr(quant->info, word);
            if (!quant->info->code) codes->count++;
        }
    }
    quant->codes = codes;
    for (const sfti_record_row *row = sfti_rows(records, SFTI_END, 0); row && bit < MARKS_MOST;
         row = sfti_rows_next(records, row), bit++) {
        sft_span rest = sfti_row_text(row), end;
        if (sfti_next_said(&rest, &end) && (sfti_is(end, "scale") || sfti_is(end, "scales")))
            quant->scale |= 1u << bit;
        if (sfti_is(end, "comfy")) quant->declared = 1u << bit;
        while (count < SFTI_SUFFIXES && sfti_next_said(&rest, &end))
            if (end.len >= 2) ends[count++] = (quant_end){ end, 1u << bit };
    }
    quant->ends = ends;
    sfti_suffixes_open(&quant->suffixes, &ends[0].end, sizeof ends[0], count);
    return true;
}

sfti_quant sfti_quantisation(const sfti_view *view) {
    const sfti_records *records = view->info->records;
    sfti_quant quant = { .id = NULL, .info = view->info, .view = view };
    const sft_tensor *packed = NULL;
    if (!read_ends(&quant, records)) return quant;
    for (size_t i = 0; i < view->count; i++) {
        const sft_tensor *tensor = view->by_name[i];
        quant.marks |= sfti_mark_beside(&quant, tensor) | sfti_mark_weight(tensor);
    }
    for (size_t i = 0; quant.marks & SFTI_MARK_WORDS && i < view->count && !packed; i++) {
        const sft_tensor *tensor = sft_set_tensor_at(view->info->set, i); /* by offset */
        if (sfti_mark_weight(tensor) & SFTI_MARK_WORDS) packed = tensor;
    }
    /* A layer of GPTQ, whose rows are packed: its columns are those of the model. */
    const sft_tensor *scales = packed ? sfti_layer_tensor(view->info, packed, "scales") : NULL;
    if (scales && scales->rank == 2 && packed->rank == 2 && sfti_ends(packed->name, ".qweight")
        && packed->shape[1] == scales->shape[1])
        quant.marks |= SFTI_MARK_ROWS_PACKED;
    for (const sfti_record_row *row = sfti_rows(records, SFTI_MARKS, 0);
         row && quant.marks && !quant.id; row = sfti_rows_next(records, row))
        if (marks_hold(records, row, quant.marks)) quant_found(&quant, row, view, packed);
    if (!quant.id && quant.marks & SFTI_MARK_F8 && mostly_f8(view)) quant.id = "fp8";
    return quant;
}

/* ── Precision ── */

/* The dtype that holds nine tenths of the bytes, or SFT_DTYPE_COUNT. */
int sfti_main_dtype(const sfti_sums *sums) {
    for (int i = 0; i < SFT_DTYPE_COUNT; i++)
        if (sums->by_dtype[i] > 0 && sums->by_dtype[i] >= sums->bytes - sums->bytes / 10) return i;
    return SFT_DTYPE_COUNT;
}

static const char *const precision_names[SFT_DTYPE_COUNT] = {
    [SFT_BOOL] = "bool", [SFT_F4] = "fp4", [SFT_F6_E2M3] = "fp6", [SFT_F6_E3M2] = "fp6",
    [SFT_U8] = "uint8", [SFT_I8] = "int8", [SFT_F8_E5M2] = "fp8", [SFT_F8_E4M3] = "fp8",
    [SFT_F8_E8M0] = "fp8", [SFT_F8_E4M3FNUZ] = "fp8", [SFT_F8_E5M2FNUZ] = "fp8",
    [SFT_I16] = "int16", [SFT_U16] = "uint16", [SFT_F16] = "fp16", [SFT_BF16] = "bf16",
    [SFT_I32] = "int32", [SFT_U32] = "uint32", [SFT_F32] = "fp32", [SFT_C64] = "complex64",
    [SFT_F64] = "fp64", [SFT_I64] = "int64", [SFT_U64] = "uint64",
};

const char *sfti_told_precision(sft_info *info, sft_span id) {
    const sfti_record *of = sfti_record_find(info->records, SFTI_QUANTISATION, id);
    sft_span told = sfti_record_word(info->records, of, SFTI_PRECISION);
    return told.len > 0 ? sfti_info_cstr(info, told) : NULL;
}

const char *sfti_precision(sft_info *info, const sfti_sums *sums, const sfti_quant *quant) {
    if (sums->bytes == 0) return NULL;
    bool unknown = sums->weights.hidden || sums->weights.undecided > 0;
    info->guesses_bits = quant->id ? quant->guessed : unknown;
    if (info->guesses_bits) return NULL;
    if (quant->id) {
        const char *told = sfti_told_precision(info, sft_span_cstr(quant->id));
        if (!told && quant->bits == 0) told = "mixed";
        if (!told)
            told = sfti_info_text(info, quant->floats ? "fp%u" : "int%u", quant->bits).data;
        uint64_t bytes = sums->packed; /* and floats that are called so */
        for (int i = 0; told && *told == 'f' && i < SFT_DTYPE_COUNT; i++)
            if (i != SFT_F8_E8M0 && strcmp(precision_names[i], told) == 0)
                bytes += sums->by_dtype[i];
        if (bytes > sums->bytes / 2) return told;
    }
    int dtype = sfti_main_dtype(sums);
    return dtype == SFT_DTYPE_COUNT ? "mixed" : precision_names[dtype];
}
