/* How many weights tensors hold: packed ones count as what they stand for, as far as their layer
 * proves it, and what accompanies them not at all. Tests: test_info_quantisation.c. */
#include "label/tensors/quantisation.h"

#include "base/checked.h"
#include "label/cursor.h"

#include <string.h>

#define NEAR_NAMES 32 /* in order of name, that may be of the same layer */

/* ── What holds codes ── */

static bool has_integers(sft_dtype dtype) {
    sft_kind kind = sft_dtype_describe(dtype)->kind;
    return kind == SFT_KIND_INT || kind == SFT_KIND_UINT;
}

static sft_span module_before(sft_span name) {
    while (name.len > 0 && name.data[name.len - 1] != '.') name.len--;
    return name;
}

/* Whether the last part of a name has one of the texts. */
static bool leaf_tells(sft_span leaf, const char *const *texts) {
    for (; *texts; texts++)
        if (sfti_contains(leaf, *texts)) return true;
    return false;
}

/* Whether a tensor of the same layer is called as what accompanies codes. A tensor that is not
 * called a weight holds codes beside more than one number only. */
static bool is_beside_scales(const sfti_view *view, size_t i,
                             const char *const *texts) {
    const sft_tensor *tensor = view->by_name[i];
    const sft_span module = module_before(tensor->name);
    const bool weight = sfti_ends(tensor->name, "weight") || sfti_ends(tensor->name, "_proj");
    size_t from = i, to = i;
    if (module.len == 0 || leaf_tells(sfti_from(tensor->name, module.len), texts)) return false;
    while (from > 0 && i - from < NEAR_NAMES) from--;
    while (to < view->count && to - i < NEAR_NAMES) to++;
    for (size_t k = from; k < to; k++) {
        const sft_tensor *other = view->by_name[k];
        sft_span name = other->name, head = { name.data, module.len };
        if (k == i || name.len <= module.len || !sft_span_equal(head, module)) continue;
        bool own = name.len > tensor->name.len && name.data[tensor->name.len] == '.'
                && memcmp(name.data, tensor->name.data, tensor->name.len) == 0;
        sft_span leaf = sfti_from(name, own ? tensor->name.len + 1 : module.len);
        if (memchr(leaf.data, '.', leaf.len)) continue;
        if ((weight || sft_tensor_elements(other) > 1) && leaf_tells(leaf, texts)) return true;
    }
    return false;
}

/* TensorRT keeps four codes of four bits in one, beside a scale for each group. */
static bool holds_halves(sft_dtype dtype) {
    return dtype == SFT_F16 || dtype == SFT_BF16;
}

static bool is_codes(const sfti_quant *quant, size_t i) {
    const sfti_codes *codes = quant->codes;
    const sfti_view *view = quant->view;
    const sft_tensor *tensor = view->by_name[i];
    for (size_t k = 0; k < codes->count; k++)
        if (sfti_ends(tensor->name, codes->ends[k])
            && (!codes->beside[k] || sfti_layer_tensor(view->info, tensor, codes->beside[k])))
            return true;
    if (tensor->rank == 2 && holds_halves(tensor->dtype)) {
        const sft_tensor *scales = sfti_layer_tensor(view->info, tensor, "weights_scaling_factor");
        return scales && scales->rank == 2 && sfti_ends(tensor->name, ".weight");
    }
    return tensor->rank > 1 && has_integers(tensor->dtype) && tensor->dtype != SFT_I64
        && tensor->dtype != SFT_U64 && is_beside_scales(view, i, codes->texts);
}

/* A column of bytes of bitsandbytes, in whatever dtype. */
static bool is_bytes_column(const sfti_quant *quant, const sft_tensor *tensor) {
    if (tensor->rank != 2 || tensor->shape[1] != 1) return false;
    return sfti_set_sibling(quant->info->set, tensor->name, ".absmax")
        || (tensor->dtype == SFT_U8 && quant->of_row && sfti_mark_weight(tensor));
}

/* Whether it accompanies packed weights: exponents, all that is listed where the file has any
 * layout that is known, else what is called as scales are and stands beside codes. */
static bool accompanies(const sfti_quant *quant, const sft_tensor *tensor) {
    static const char *const ends[] = { "", ".weight", ".qweight", ".weight_packed" };
    if (tensor->dtype == SFT_F8_E8M0 && sfti_ends(tensor->name, "scale")) return true;
    sft_span stem = module_before(tensor->name);
    bool listed = sfti_mark_beside(quant, tensor) != 0;
    if (listed && (quant->id || stem.len == 0)) return quant->id != NULL;
    if (stem.len == 0
        || (!listed && (quant->marks == 0
                        || !leaf_tells(sfti_from(tensor->name, stem.len), quant->codes->texts))))
        return false;
    stem.len--;
    for (size_t i = 0; i < SFTI_COUNT(ends); i++) {
        const sft_tensor *of = sfti_set_sibling(quant->info->set, stem, ends[i]);
        if (!of || of == tensor) continue;
        if (has_integers(of->dtype) || is_bytes_column(quant, of)
            || sfti_mark_weight(of) & SFTI_MARK_F8)
            return true;
    }
    return false;
}

/* ── How many weights codes are ── */

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
    size_t len = sfti_read_of_layer(quant->info, tensor, "comfy_quant", text, sizeof text);
    if (len <= strlen("{\"format\":\"nvfp4\"}")) return 0;
    (void)sfti_info_walk(quant->info, (sft_span){ text, len }, (sft_span){ "", 0 },
                         SFTI_ROWS(sides), shape);
    return sfti_mul(shape[0], shape[1], &elements) ? elements : 0;
}

/* 0: not to be seen. */
static uint64_t elements_seen(const sfti_shape *shape) {
    uint64_t product = 1;
    if (shape->rank == SFTI_SHAPE_HIDDEN) return shape->elements;
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (!shape->padded && shape->least[i] != shape->most[i]) return 0;
        if (!sfti_mul(product, shape->most[i], &product)) return 0;
    }
    return product;
}

/* The bits of each of its codes, if its layer or the layout proves them; else 0. */
static uint32_t bits_known(const sfti_quant *quant, const sft_tensor *tensor, uint32_t weight) {
    bool words = tensor->dtype == SFT_I32 || tensor->dtype == SFT_U32;
    uint32_t bits = weight & SFTI_MARK_WEIGHT_PACKED || (words && weight & SFTI_MARK_WORDS)
                  ? sfti_bits_proved(quant, tensor) : 0;
    bool unnamed = weight & SFTI_MARK_MX_BLOCKS || is_bytes_column(quant, tensor)
                || sfti_ends(tensor->name, "_proj");
    bool row = quant->of_row && !quant->guessed
            && (tensor->dtype == SFT_U8 ? unnamed
                                        : weight & SFTI_MARK_I8
                                              && sfti_layer_tensor(quant->info, tensor,
                                                                   "comfy_quant"));
    return bits == 0 && row ? quant->bits : bits;
}

/* Whether the bits alone tell how many weights it holds: words with scales that are no tiles of
 * sparse weights, or bytes that hold one code or two. */
static bool is_undecided(const sfti_quant *quant, const sft_tensor *tensor,
                         const sfti_shape *shape) {
    const sft_info *info = quant->info;
    if (tensor->dtype == SFT_I8)
        return shape && (shape->rank == SFTI_SHAPE_HIDDEN
                             ? shape->twofold
                             : shape->rank == 2 && shape->least[1] == tensor->shape[1]);
    return (tensor->dtype == SFT_I32 || tensor->dtype == SFT_U32)
        && (sfti_ends(tensor->name, ".qweight") || sfti_layer_tensor(info, tensor, "scales")
            || sfti_layer_tensor(info, tensor, "weight_scale"))
        && !sfti_layer_tensor(info, tensor, "meta");
}

/* Adds what the tensor holds; whether those are codes in whole numbers. */
static bool count_codes(sfti_weights *weights, const sfti_quant *quant, size_t i) {
    const sft_tensor *tensor = quant->view->by_name[i];
    uint32_t weight = sfti_mark_weight(tensor), width = sft_dtype_describe(tensor->dtype)->bits;
    uint64_t elements = sft_tensor_elements(tensor), bits, all;
    sfti_shape shape;
    bool column = is_bytes_column(quant, tensor), whole = has_integers(tensor->dtype);
    bool shaped = (whole || column) && sfti_shape_of(quant->info->set, tensor, &shape);
    uint64_t seen = shaped ? elements_seen(&shape) : 0;
    if (elements == 0) return false;
    if (seen > 0) {
        elements = seen;
    } else if (column || weight & SFTI_MARK_MX_BLOCKS || is_codes(quant, i)) {
        uint32_t own = bits_known(quant, tensor, weight);
        if (!sfti_mul(elements, width, &bits)) weights->hidden = true;
        else if (own > 0) elements = bits / own;
        else if (!is_undecided(quant, tensor, shaped ? &shape : NULL)) weights->hidden = true;
        else if (!sfti_add(weights->undecided, bits, &weights->undecided)) weights->hidden = true;
        if (own == 0) return true;
    }
    all = weight ? elements_declared(quant, tensor) : 0;
    if (all > 0 && all < elements) elements = all;
    if (!sfti_add(weights->known, elements, &weights->known)) weights->hidden = true;
    return whole || column;
}

void sfti_sum(sfti_sums *sums, const sfti_quant *quant, size_t i) {
    const sft_tensor *tensor = quant->view->by_name[i];
    uint64_t bytes = tensor->end - tensor->begin;
    /* Tokenizers, which ComfyUI keeps in text encoders, are files. */
    bool is_file = tensor->dtype == SFT_U8 && tensor->rank == 1
                && (sfti_ends(tensor->name, "spiece_model")
                    || sfti_ends(tensor->name, "tekken_model"));
    if (accompanies(quant, tensor) || (!is_file && count_codes(&sums->weights, quant, i)))
        sums->packed += bytes;
    sums->tensors++;
    sums->bytes += bytes;
    sums->by_dtype[tensor->dtype] += bytes;
}

void sfti_sum_all(sfti_sums *sums, const sfti_sums *more) {
    sfti_weights *all = &sums->weights;
    bool fits = sfti_add(all->known, more->weights.known, &all->known)
             && sfti_add(all->undecided, more->weights.undecided, &all->undecided);
    all->hidden = all->hidden || more->weights.hidden || !fits;
    sums->tensors += more->tensors;
    sums->bytes += more->bytes;
    sums->packed += more->packed;
    for (int i = 0; i < SFT_DTYPE_COUNT; i++) sums->by_dtype[i] += more->by_dtype[i];
}

/* ── Components ── */

void sfti_add_component(sft_info *info, sfti_list *list, const char *part,
                        const char *architecture, int trust, const sfti_sums *sums) {
    if (sums->tensors == 0) return;
    int dtype = sfti_main_dtype(sums);
    const char *name = dtype == SFT_DTYPE_COUNT ? "mixed"
                                                : sft_dtype_describe((sft_dtype)dtype)->name;
    SFTI_PUSH(info, list, sfti_component, .part = part, .architecture = architecture,
              .trust = architecture ? trust : -1, .dtype = name, .bytes = sums->bytes,
              .weights = sums->weights);
}
