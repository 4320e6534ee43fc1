/* How weights are packed, from the tensors that accompany them. */
#include "label/tensors/signatures.h"

#include "base/checked.h"
#include "base/endian.h"
#include "label/cursor.h"

#include <string.h>

/* Marks of weights themselves; those of tensors that accompany them follow, in the order of the
 * rows "end". */
enum {
    MARK_QWEIGHT = 1u << 0, MARK_WEIGHT_PACKED = 1u << 1, MARK_F4 = 1u << 2, MARK_F8 = 1u << 3,
    MARK_I8 = 1u << 4, MARK_U8 = 1u << 5, MARK_U32 = 1u << 6, MARK_MX_BLOCKS = 1u << 7,
    MARK_SCALE_BYTES = 1u << 8, /* weight_scale as exponents: U8 or F8_E8M0 */
    MARK_SCALE_ROWS = 1u << 9,  /* weight_scale in one dimension */
    MARKS_OF_WEIGHTS = 10, MARKS_MOST = 32
};

static const char *const mark_names[MARKS_OF_WEIGHTS] = {
    "qweight", "weight_packed", "f4", "f8", "i8", "u8", "u32", "mx_blocks", "scale_bytes",
    "scale_rows",
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

/* The mark of a tensor that accompanies weights, or 0. */
static uint32_t mark_scale(const sfti_quant *quant, const sft_tensor *tensor) {
    const quant_end *ends = quant->ends;
    size_t row = sfti_suffixes_find(&quant->suffixes, tensor->name);
    uint32_t mark = row ? ends[row - 1].mark : 0;
    bool bytes = tensor->dtype == SFT_U8 || tensor->dtype == SFT_F8_E8M0;
    if (!mark || mark != quant->scale) return mark;
    if (tensor->rank == 1 && tensor->shape[0] > 1) mark |= MARK_SCALE_ROWS;
    return bytes ? mark | MARK_SCALE_BYTES : mark;
}

static const uint32_t of_dtype[SFT_DTYPE_COUNT] = {
    [SFT_F8_E4M3] = MARK_F8, [SFT_F8_E5M2] = MARK_F8, [SFT_F8_E4M3FNUZ] = MARK_F8,
    [SFT_F8_E5M2FNUZ] = MARK_F8, [SFT_F4] = MARK_F4, [SFT_I8] = MARK_I8,
    [SFT_U32] = MARK_U32, [SFT_U8] = MARK_U8,
};

/* The mark of weights themselves. */
static uint32_t mark_weight(const sft_tensor *tensor) {
    sft_span name = tensor->name;
    if (sfti_ends(name, ".qweight")) return MARK_QWEIGHT;
    if (sfti_ends(name, ".weight_packed")) return MARK_WEIGHT_PACKED;
    if (!of_dtype[tensor->dtype]) return 0;
    if (tensor->dtype == SFT_U8 && sfti_ends(name, "_blocks") && tensor->rank >= 3)
        return MARK_MX_BLOCKS;
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

/* The tensor of the same layer whose name has another last part. */
static const sft_tensor *layer_tensor(const sft_info *info, const sft_tensor *tensor,
                                      const char *last) {
    sft_span layer = tensor->name;
    while (layer.len > 0 && layer.data[layer.len - 1] != '.') layer.len--;
    return layer.len > 0 ? sfti_set_sibling(info->set, layer, last) : NULL;
}

/* By the index of groups, or by zero points, which are packed along the rows. */
static uint32_t bits_gptq(const sfti_quant *quant, const sft_tensor *packed) {
    const sft_tensor *group = layer_tensor(quant->info, packed, "g_idx");
    const sft_tensor *zeros = layer_tensor(quant->info, packed, "qzeros");
    const sft_tensor *scales = layer_tensor(quant->info, packed, "scales");
    if (packed->rank == 2 && group && group->rank == 1)
        return bits_of(packed, packed->shape[0], group->shape[0]);
    if (!zeros || zeros->rank != 2 || !scales || scales->rank != 2) return 0;
    return bits_of(packed, zeros->shape[1], scales->shape[1]);
}

static uint32_t bits_awq(const sfti_quant *quant, const sft_tensor *packed) {
    const sft_tensor *scales = layer_tensor(quant->info, packed, "scales");
    if (packed->rank < 2 || !scales || scales->rank != 2) return 0;
    return bits_of(packed, packed->shape[1], scales->shape[1]);
}

/* Columns of MLX that share a scale, as the final norm tells them, which has the hidden size; or
 * 0. */
static uint64_t group_mlx(const sfti_view *view) {
    const sft_tensor *embed = sfti_view_find(view, "model.embed_tokens.weight");
    const sft_tensor *norm = sfti_view_find(view, "model.norm.weight");
    const sft_tensor *scales = embed ? layer_tensor(view->info, embed, "scales") : NULL;
    if (!norm || norm->rank != 1 || !scales || scales->rank != 2 || scales->shape[1] == 0
        || embed->dtype != SFT_U32 || norm->shape[0] % scales->shape[1] != 0)
        return 0;
    return norm->shape[0] / scales->shape[1];
}

static bool scales_are_bytes(const sfti_quant *quant, const sft_tensor *packed) {
    const sft_tensor *scales = layer_tensor(quant->info, packed, "scales");
    return scales && scales->dtype == SFT_U8;
}

/* By the group that all layers of the model have; scales that are bytes go with floats, of 8 bits
 * in groups of 32, or of 4. */
static uint32_t bits_mlx(const sfti_quant *quant, const sft_tensor *packed) {
    const sft_tensor *scales = layer_tensor(quant->info, packed, "scales");
    uint64_t whole;
    if (packed->rank < 2 || !scales || scales->rank < 2) return 0;
    uint64_t groups = scales->shape[scales->rank - 1], words = packed->shape[packed->rank - 1];
    if (scales->dtype == SFT_U8) return groups > 0 && words / groups >= 8 ? 8 : 4;
    if (!sfti_mul(groups, quant->group, &whole)) return 0;
    return bits_of(packed, words, whole);
}

/* What the tensor of the same layer holds, if it has no more than `room` bytes; else 0. */
static size_t read_of_layer(const sft_info *info, const sft_tensor *tensor, const char *last,
                            char *bytes, size_t room) {
    const sft_tensor *found = layer_tensor(info, tensor, last);
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
    const sft_tensor *scale = layer_tensor(quant->info, packed, "weight_scale");
    const sft_tensor *zeros = layer_tensor(quant->info, packed, "weight_zero_point");
    bool bytes = packed->dtype == SFT_U8;
    uint64_t whole, group = quant->group, packed_rows;
    char shape[16];
    if (packed->rank != 2) return 0;
    if (quant->bits == 0 && packed->dtype == SFT_I32
        && read_of_layer(quant->info, packed, "weight_shape", shape, sizeof shape) == sizeof shape)
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
    const sft_tensor *scale = layer_tensor(quant->info, packed, "weight_scale");
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
} quant_bits[] = {
    { "gptq", bits_gptq, true }, { "awq", bits_awq, true }, { "mlx", bits_mlx, true },
    { "compressed-tensors", bits_packed, false },
};

static void quant_found(sfti_quant *quant, const sfti_record_row *row, const sfti_view *view,
                        const sft_tensor *packed) {
    sft_span told;
    uint64_t bits;
    quant->id = sfti_row_record(view->info->records, row)->id;
    if (sfti_row_has(row, "bits", &told) && sfti_parse_uint(told, &bits) && bits <= 32) {
        quant->bits = (uint32_t)bits;
        return;
    }
    bool is_named = true;
    quant->group = group_mlx(view);
    bool is_usual = quant->group == 0; /* words in groups of 64 and of 32 may look alike */
    if (is_usual) quant->group = 64;
    for (size_t i = 0; packed && i < SFTI_COUNT(quant_bits); i++)
        if (strcmp(quant->id, quant_bits[i].method) == 0) {
            quant->by = &quant_bits[i];
            quant->bits = quant->by->bits(quant, packed);
            is_named = quant->by->is_named;
        }
    if (!is_named) quant->group = group_packed(quant, packed);
    quant->guessed = quant->bits == 0
                  || (is_usual && quant->by && quant->by->bits == bits_mlx
                      && !scales_are_bytes(quant, packed));
    quant->floats = !is_named && packed && packed->dtype == SFT_U8;
    if (quant->bits == 0) quant->bits = 4;
    if (!is_named) return;
    quant->id_guessed = quant->guessed;
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
        if (of_dtype[tensor->dtype] == MARK_F8) f8 += elements / 2;
    }
    return f8 > 0 && f8 >= all / 2;
}

sfti_quant sfti_quantisation(const sfti_view *view) {
    const sfti_records *records = view->info->records;
    sfti_quant quant = { .id = NULL };
    const sft_tensor *packed = NULL;
    size_t count = 0;
    quant_end *ends = sfti_info_take(view->info, SFTI_SUFFIXES * sizeof *ends);
    if (!ends) return quant;
    unsigned bit = MARKS_OF_WEIGHTS;
    quant.info = view->info;
    for (const sfti_record_row *row = sfti_rows(records, SFTI_END, 0); row && bit < MARKS_MOST;
         row = sfti_rows_next(records, row), bit++) {
        sft_span rest = sfti_row_text(row), end;
        if (sfti_next_said(&rest, &end) && sfti_is(end, "scale")) quant.scale = 1u << bit;
        if (sfti_is(end, "comfy")) quant.declared = 1u << bit;
        while (count < SFTI_SUFFIXES && sfti_next_said(&rest, &end))
            if (end.len >= 2) ends[count++] = (quant_end){ end, 1u << bit };
    }
    quant.ends = ends;
    sfti_suffixes_open(&quant.suffixes, &ends[0].end, sizeof ends[0], count);
    for (size_t i = 0; i < view->count; i++) {
        const sft_tensor *tensor = view->by_name[i];
        quant.marks |= mark_scale(&quant, tensor) | mark_weight(tensor);
    }
    const uint32_t words = MARK_QWEIGHT | MARK_WEIGHT_PACKED | MARK_U32;
    for (size_t i = 0; quant.marks & words && i < view->count && !packed; i++) { /* by offset */
        const sft_tensor *tensor = sft_set_tensor_at(view->info->set, i);
        if (mark_weight(tensor) & words) packed = tensor;
    }
    for (const sfti_record_row *row = sfti_rows(records, SFTI_MARKS, 0);
         row && quant.marks && !quant.id; row = sfti_rows_next(records, row))
        if (marks_hold(records, row, quant.marks)) quant_found(&quant, row, view, packed);
    if (!quant.id && quant.marks & MARK_F8 && mostly_f8(view)) quant.id = "fp8";
    return quant;
}

/* ── Sizes ── */

static void take_side(sfti_cursor *at) {
    ((uint64_t *)at->ctx)[at->row->field] = sfti_at_uint(at);
}

/* Elements before rows and columns were padded, as ComfyUI's declaration of the layer says; 0: it
 * does not. */
static uint64_t elements_declared(const sfti_quant *quant, const sft_tensor *tensor) {
    static const sfti_row sides[] = { { "/orig_shape/0", take_side, 0, 0, NULL },
                                      { "/orig_shape/1", take_side, 1, 0, NULL } };
    char text[512];
    uint64_t shape[2] = { 0, 0 }, elements;
    if (!(quant->marks & quant->declared) || tensor->rank != 2) return 0;
    size_t len = read_of_layer(quant->info, tensor, "comfy_quant", text, sizeof text);
    if (len <= strlen("{\"format\":\"nvfp4\"}")) return 0;
    (void)sfti_info_walk(quant->info, (sft_span){ text, len }, (sft_span){ "", 0 },
                         SFTI_ROWS(sides), shape);
    return sfti_mul(shape[0], shape[1], &elements) ? elements : 0;
}

/* Scales and the like count nothing, packed weights what they stand for. */
static uint64_t parameters_of(const sfti_quant *quant, const sft_tensor *tensor) {
    uint64_t elements = sft_tensor_elements(tensor);
    if (!quant->id) return elements;
    if (mark_scale(quant, tensor)) return 0;
    uint32_t width = sft_dtype_describe(tensor->dtype)->bits, weight = mark_weight(tensor);
    bool packed = weight & (MARK_QWEIGHT | MARK_WEIGHT_PACKED | MARK_U32 | MARK_U8 | MARK_I8
                            | MARK_MX_BLOCKS);
    if (weight & MARK_I8 && quant->marks & quant->declared) {
        /* A byte is one code of ComfyUI's, in a file that has others of 4 bits: no zero points, and
         * a factor for all or one a row in two dimensions. */
        const sft_tensor *scale = layer_tensor(quant->info, tensor, "weight_scale");
        if (scale && (scale->rank != 1 || scale->shape[0] == 1)
            && !layer_tensor(quant->info, tensor, "weight_zeros"))
            packed = false;
    }
    uint64_t bits, whole = weight ? elements_declared(quant, tensor) : 0;
    const uint32_t words = MARK_QWEIGHT | MARK_WEIGHT_PACKED | MARK_U32;
    uint32_t own = weight & words && quant->by ? quant->by->bits(quant, tensor) : 0;
    if (own == 0) own = quant->bits;
    if (packed && own > 0 && own < width && sfti_mul(elements, width, &bits))
        elements = bits / own;
    /* asym_w4a8_int8 of 6 bits, in groups of 16 */
    const sft_tensor *six = packed && weight & MARK_I8
                          ? layer_tensor(quant->info, tensor, "weight_s_rel") : NULL;
    if (six && six->rank == 2 && sfti_mul(six->shape[1], 16, &bits)
        && sfti_mul(bits, tensor->shape[0], &bits) && elements / 2 == bits / 4 * 3)
        elements = bits;
    return whole > 0 && whole < elements ? whole : elements;
}

void sfti_sum(sfti_sums *sums, const sfti_quant *quant, const sft_tensor *tensor) {
    uint64_t parameters = parameters_of(quant, tensor);
    uint64_t bytes = tensor->end - tensor->begin;
    sums->tensors++;
    if (!sfti_add(sums->parameters, parameters, &sums->parameters))
        sums->parameters = UINT64_MAX;
    sums->bytes += bytes;
    sums->by_dtype[tensor->dtype] += bytes;
}

void sfti_sum_all(sfti_sums *sums, const sfti_sums *more) {
    sums->tensors += more->tensors;
    if (!sfti_add(sums->parameters, more->parameters, &sums->parameters))
        sums->parameters = UINT64_MAX;
    sums->bytes += more->bytes;
    for (int i = 0; i < SFT_DTYPE_COUNT; i++) sums->by_dtype[i] += more->by_dtype[i];
}

/* The dtype that holds nine tenths of the bytes, or SFT_DTYPE_COUNT. */
static int main_dtype(const sfti_sums *sums) {
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
    static const char *const by_bits[9] = { "mixed", "int1", "int2", "int3", "int4",
                                            "int5", "int6", "int7", "int8" };
    if (sums->bytes == 0) return NULL;
    const char *told = quant->id ? sfti_told_precision(info, sft_span_cstr(quant->id)) : NULL;
    if (told) return told;
    info->guesses_bits = quant->id && quant->guessed;
    if (info->guesses_bits) return NULL;
    if (quant->id && quant->floats) return sfti_info_text(info, "fp%u", quant->bits).data;
    if (quant->id && quant->bits <= 8) return by_bits[quant->bits];
    int dtype = main_dtype(sums);
    return dtype == SFT_DTYPE_COUNT ? "mixed" : precision_names[dtype];
}

/* ── Components ── */

void sfti_add_component(sft_info *info, sfti_list *list, const char *part,
                        const char *architecture, const sfti_sums *sums) {
    if (sums->tensors == 0) return;
    int dtype = main_dtype(sums);
    const char *name = dtype == SFT_DTYPE_COUNT ? "mixed"
                                                : sft_dtype_describe((sft_dtype)dtype)->name;
    SFTI_PUSH(info, list, sfti_component, .part = part, .architecture = architecture,
              .dtype = name, .bytes = sums->bytes, .parameters = sums->parameters);
}

const char *sfti_denoiser_part(const sft_info *info, const char *architecture) {
    const sfti_record *of = sfti_model_record(info->records, architecture);
    bool unet = of && sfti_record_row_of(info->records, of, SFTI_DENOISER_PART, NULL);
    return unet ? "unet" : "transformer";
}
