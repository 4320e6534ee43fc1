/* The tensors of an adapter by module, their shapes checked against one another. */
#include "adapter/adapter.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/number.h"
#include "convert/named.h"
#include "os/io.h"
#include "safetensors_codes.h"

#include <string.h>

/* ── Grouping ── */

static sft_span name_of_module(const void *ctx, uint32_t entry) {
    return ((const sfti_lora *)ctx)->modules[entry].name;
}

/* The type of a module is that of its matrices; tensors of two methods in one are refused. */
static sft_code put_tensor(sfti_lora *lora, sfti_lora_module *m, uint32_t i,
                           const sfti_adapter_name *name, sft_error *err) {
    const sft_tensor *tensor = sft_set_tensor_at(lora->set, i);
    bool typed = name->slot < SFTI_SLOT_ALPHA;
    sfti_adapter_type type = name->type == SFTI_TYPE_OFT && tensor->rank == 4
                                 && name->slot == SFTI_SLOT_OFT_BLOCKS
                             ? SFTI_TYPE_BOFT : name->type;
    bool rescale = type == SFTI_TYPE_OFT && name->slot == SFTI_SLOT_OFT_RESCALE;
    if (typed && m->type != SFTI_ADAPTER_TYPES && m->type != type
        && !(rescale && m->type == SFTI_TYPE_BOFT)
        && !(type == SFTI_TYPE_BOFT && m->type == SFTI_TYPE_OFT))
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, tensor->offset, tensor->name,
                                "expected one method in a module, found tensors of two");
    if (m->slot[name->slot])
        return sfti_fail_tensor(err, SFT_TENSOR_DUPLICATE, tensor->offset, tensor->name,
                                "expected one tensor of its kind in a module, found two");
    if (typed && !(rescale && m->type == SFTI_TYPE_BOFT)) m->type = type;
    m->slot[name->slot] = i + 1;
    return SFT_OK;
}

static sft_code group_tensors(sfti_lora *lora, sft_error *err) {
    size_t count = sft_set_tensor_count(lora->set), left = 0;
    sfti_suffixes suffixes;
    sfti_adapter_name name;
    sfti_names names;
    sft_code code = SFT_OK;
    if (!sfti_names_draw(&names, count, name_of_module, lora, &lora->arena))
        return sfti_fail_memory(err, count * sizeof *names.slots);
    sfti_adapter_suffixes(&suffixes);
    size_t capacity = 0;
    for (uint32_t i = 0; !code && i < count; i++) {
        const sft_tensor *tensor = sft_set_tensor_at(lora->set, i);
        if (!sfti_adapter_name_of(&suffixes, tensor->name, &name)
            || name.slot == SFTI_SLOT_NONE) {
            lora->unread[lora->unread_count++] = i;
            continue;
        }
        /* XLabs: one layer of two blocks */
        if (sfti_begins(name.end, "_lora1.") || sfti_begins(name.end, "_lora2."))
            name.module.len += strlen("_lora1");
        sfti_lora_module *grown = sfti_arena_grow(&lora->arena, lora->modules, lora->count, 1,
                                                  &capacity, sizeof *grown);
        if (!grown) return sfti_fail_memory(err, sizeof *grown);
        lora->modules = grown;
        grown[lora->count] = (sfti_lora_module){ .name = name.module, .type = SFTI_ADAPTER_TYPES,
                                                 .kernel = 1, .scale = 1 };
        uint32_t at = sfti_names_add(&names, name.module, (uint32_t)lora->count);
        if (at == lora->count) lora->count++;
        code = put_tensor(lora, &lora->modules[at], i, &name, err);
    }
    /* the ".weight" of (IA)^3 is told by its neighbour */
    for (size_t k = 0; !code && k < lora->unread_count; k++) {
        const sft_tensor *tensor = sft_set_tensor_at(lora->set, lora->unread[k]);
        uint32_t at = SFTI_NO_NAME;
        if (sfti_ends(tensor->name, ".weight"))
            at = sfti_names_find(&names, (sft_span){ tensor->name.data, tensor->name.len - 7 });
        bool claimed = at != SFTI_NO_NAME && lora->modules[at].slot[SFTI_SLOT_IA3_ON_INPUT]
                    && lora->modules[at].type == SFTI_TYPE_IA3;
        if (claimed) lora->modules[at].slot[SFTI_SLOT_IA3_WEIGHT] = lora->unread[k] + 1;
        else lora->unread[left++] = lora->unread[k];
    }
    lora->unread_count = left;
    return code;
}

/* ── Shapes ── */

typedef struct lora_shape {
    const sft_tensor *tensor; /* NULL: there is none */
    uint64_t rows, cols;
} lora_shape;

static sft_code shape_in(const sfti_lora *lora, const sfti_lora_module *m, int slot,
                         lora_shape *out, sft_error *err) {
    *out = (lora_shape){ sfti_lora_tensor(lora, m, (sfti_adapter_slot)slot), 0, 0 };
    if (!out->tensor || sfti_lora_shape(out->tensor, &out->rows, &out->cols)) return SFT_OK;
    return sfti_fail_tensor(err, SFT_SIZE_MISMATCH, out->tensor->offset, out->tensor->name,
                            "expected a matrix of an adapter, found one without elements");
}

static sft_code lacks(const sfti_lora *lora, const sfti_lora_module *m, const char *what,
                      sft_error *err) {
    const sft_tensor *one = sfti_lora_first(lora, m);
    return sfti_fail_tensor(err, SFT_INCOMPLETE, one->offset, one->name,
                            "expected %s of the same module, found none", what);
}

static sft_code agree(const lora_shape *shape, const char *what, uint64_t have, uint64_t want,
                      sft_error *err) {
    if (have == want) return SFT_OK;
    return sfti_fail_tensor(err, SFT_SIZE_MISMATCH, shape->tensor->offset, shape->tensor->name,
                            "expected %llu %s as its module's other tensors have, found %llu",
                            (unsigned long long)want, what, (unsigned long long)have);
}

/* The product of all dimensions but the first two, and those two. */
static sft_code core_shape(const lora_shape *core, uint64_t *first, uint64_t *second,
                           uint64_t *kernel, sft_error *err) {
    const sft_tensor *tensor = core->tensor;
    if (tensor->rank < 3)
        return sfti_fail_tensor(err, SFT_SIZE_MISMATCH, tensor->offset, tensor->name,
                                "expected the core of a convolution, found rank %u",
                                (unsigned)tensor->rank);
    *first = tensor->shape[0], *second = tensor->shape[1];
    *kernel = core->cols / tensor->shape[1];
    return SFT_OK;
}

static sft_code wide(const lora_shape *of, uint64_t a, uint64_t b, uint64_t *out, sft_error *err) {
    if (sfti_mul(a, b, out)) return SFT_OK;
    return sfti_fail_tensor(err, SFT_SIZE_OVERFLOW, of->tensor->offset, of->tensor->name,
                            "expected a layer of fewer than 2^64 columns or rows, found more");
}

static sft_code size_lora(const sfti_lora *lora, sfti_lora_module *m, sft_error *err) {
    lora_shape up, down, mid, bias;
    uint64_t first = 0, second = 0, kernel = 1;
    sft_code code = shape_in(lora, m, SFTI_SLOT_UP, &up, err);
    if (!code) code = shape_in(lora, m, SFTI_SLOT_DOWN, &down, err);
    if (!code) code = shape_in(lora, m, SFTI_SLOT_MID, &mid, err);
    if (!code) code = shape_in(lora, m, SFTI_SLOT_BIAS, &bias, err);
    if (code) return code;
    if (!up.tensor || !down.tensor)
        return lacks(lora, m, up.tensor ? "a down (A) matrix" : "an up (B) matrix", err);
    m->rank = down.rows;
    m->out = up.rows;
    m->in = down.cols;
    if (mid.tensor) {
        code = core_shape(&mid, &first, &second, &kernel, err);
        if (!code) code = agree(&up, "columns", up.cols, first, err);
        if (!code) code = agree(&down, "rows", down.rows, second, err);
        if (!code) code = wide(&mid, down.cols, kernel, &m->in, err);
        m->kernel = kernel;
        m->tucker = true;
    } else {
        code = agree(&up, "columns (the rank)", up.cols, down.rows, err);
        for (uint32_t i = 2; i < down.tensor->rank; i++) m->kernel *= down.tensor->shape[i];
    }
    if (!code && bias.tensor) code = agree(&bias, "elements", bias.rows * bias.cols, up.rows, err);
    return code;
}

static sft_code size_loha(const sfti_lora *lora, sfti_lora_module *m, sft_error *err) {
    lora_shape a[2], b[2], t[2];
    uint64_t out[2] = { 0, 0 }, in[2] = { 0, 0 }, kernel = 1, first = 0, second = 0;
    static const int slots[2][3] = {
        { SFTI_SLOT_HADA_1A, SFTI_SLOT_HADA_1B, SFTI_SLOT_HADA_T1 },
        { SFTI_SLOT_HADA_2A, SFTI_SLOT_HADA_2B, SFTI_SLOT_HADA_T2 },
    };
    sft_code code = SFT_OK;
    for (int i = 0; !code && i < 2; i++) {
        code = shape_in(lora, m, slots[i][0], &a[i], err);
        if (!code) code = shape_in(lora, m, slots[i][1], &b[i], err);
        if (!code) code = shape_in(lora, m, slots[i][2], &t[i], err);
        if (code) return code;
        if (!a[i].tensor || !b[i].tensor)
            return lacks(lora, m, "hada_w1_a, hada_w1_b, hada_w2_a and hada_w2_b", err);
        kernel = 1;
        out[i] = t[i].tensor ? a[i].cols : a[i].rows;
        if (t[i].tensor) {
            code = core_shape(&t[i], &first, &second, &kernel, err);
            if (!code) code = agree(&a[i], "rows", a[i].rows, first, err);
            if (!code) code = agree(&b[i], "rows", b[i].rows, second, err);
        } else {
            code = agree(&a[i], "columns (the rank)", a[i].cols, b[i].rows, err);
        }
        if (!code) code = wide(&b[i], b[i].cols, kernel, &in[i], err);
    }
    if (!code && !t[0].tensor != !t[1].tensor) return lacks(lora, m, "hada_t1 and hada_t2", err);
    if (!code) code = agree(&a[1], "rows of the layer", out[1], out[0], err);
    if (!code) code = agree(&b[1], "columns of the layer", in[1], in[0], err);
    m->rank = b[0].rows;
    m->out = out[0];
    m->in = in[0];
    m->kernel = kernel;
    m->tucker = t[0].tensor != NULL;
    return code;
}

/* What is read from w1 and w2: rows, columns for each kernel element, elements of the kernel; the
 * rank of one that is decomposed, or 0. */
static sft_code kron_factor(const sfti_lora *lora, const sfti_lora_module *m, bool second,
                            uint64_t *rows, uint64_t *cols, uint64_t *kernel, uint64_t *rank,
                            sft_error *err) {
    lora_shape whole, a, b, t = { NULL, 0, 0 };
    int base = second ? SFTI_SLOT_KRON_2 : SFTI_SLOT_KRON_1;
    uint64_t first = 0, other = 0;
    *kernel = 1;
    *rank = 0;
    sft_code code = shape_in(lora, m, base, &whole, err);
    if (!code) code = shape_in(lora, m, base + 1, &a, err);
    if (!code) code = shape_in(lora, m, base + 2, &b, err);
    if (!code && second) code = shape_in(lora, m, SFTI_SLOT_KRON_T2, &t, err);
    if (code) return code;
    if (whole.tensor ? a.tensor || b.tensor || t.tensor : !a.tensor || !b.tensor)
        return lacks(lora, m, second ? "either lokr_w2, or lokr_w2_a and lokr_w2_b"
                                     : "either lokr_w1, or lokr_w1_a and lokr_w1_b", err);
    if (whole.tensor) {
        *rows = whole.rows;
        *cols = whole.tensor->rank > 1 ? whole.tensor->shape[1] : 1;
        *kernel = whole.cols / *cols;
        return SFT_OK;
    }
    *rank = b.rows;
    if (t.tensor) {
        code = core_shape(&t, &first, &other, kernel, err);
        if (!code) code = agree(&a, "rows", a.rows, first, err);
        if (!code) code = agree(&b, "rows", b.rows, other, err);
        *rows = a.cols;
    } else {
        code = agree(&a, "columns (the rank)", a.cols, b.rows, err);
        *rows = a.rows;
    }
    *cols = b.cols;
    return code;
}

static bool is_told_lokr(const sfti_lora *lora, const sfti_lora_module *m) {
    for (size_t i = 0; i < lora->config_count; i++)
        if (lora->configs[i].type == SFTI_TYPE_LOKR
            && sfti_lora_config_covers(&lora->configs[i], m->name))
            return true;
    return false;
}

static sft_code size_lokr(const sfti_lora *lora, sfti_lora_module *m, sft_error *err) {
    uint64_t rows[2] = { 1, 1 }, cols[2] = { 1, 1 }, kernels[2], ranks[2], flat = 0;
    lora_shape of = { NULL, 0, 0 };
    sft_code code = kron_factor(lora, m, false, &rows[0], &cols[0], &kernels[0], &ranks[0], err);
    if (!code) code = kron_factor(lora, m, true, &rows[1], &cols[1], &kernels[1], &ranks[1], err);
    if (code) return code;
    for (int i = 1; i < SFTI_SLOT_ALPHA && !of.tensor; i++)
        of.tensor = sfti_lora_tensor(lora, m, (sfti_adapter_slot)i);
    const sft_tensor *second = sfti_lora_tensor(lora, m, SFTI_SLOT_KRON_2);
    bool peft = sfti_begins(m->name, "base_model.") || is_told_lokr(lora, m);
    if (peft && second && second->rank == 3 && (rows[0] > 1 || cols[0] > 1)) {
        code = sfti_fail_tensor(err, SFT_CAST_DTYPE, second->offset, second->name,
                                "expected LoKr of linear layers and 2-D convolutions, found a "
                                "whole w2 of a 1-D one, whose product PEFT forms in another order");
        return sfti_lora_hint(code, SFT_HINT_ADAPTER_PROGRAM, err);
    }
    if (kernels[0] > 1) return agree(&of, "elements of a kernel in w1", kernels[0], 1, err);
    code = wide(&of, rows[0], rows[1], &m->out, err);
    if (!code) code = wide(&of, cols[0], cols[1], &flat, err);
    if (!code) code = wide(&of, flat, kernels[1], &m->in, err);
    m->kernel = kernels[1];
    m->tucker = m->slot[SFTI_SLOT_KRON_T2] != 0;
    m->rank = ranks[0] ? ranks[0] : ranks[1];
    return code;
}

/* a1 [in, rank], a2 [rank, in], b1 [out, rank], b2 [rank, in]; which way round is seen beside the
 * model's weight. */
static sft_code size_glora(const sfti_lora *lora, sfti_lora_module *m, sft_error *err) {
    lora_shape s[4];
    sft_code code = SFT_OK;
    for (int i = 0; !code && i < 4; i++) {
        code = shape_in(lora, m, SFTI_SLOT_GLORA_A1 + i, &s[i], err);
        if (!code && !s[i].tensor) return lacks(lora, m, "all of a1, a2, b1 and b2", err);
    }
    if (code) return code;
    if (sfti_set_sibling(lora->set, m->name, ".bm.weight"))
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, s[0].tensor->offset, s[0].tensor->name,
                                "expected GLoRA without a core, found bm.weight");
    bool is_new = s[0].cols == s[1].rows && s[2].cols == s[3].rows && s[0].cols == s[2].cols;
    bool is_old = s[1].cols == s[0].rows && s[3].cols == s[2].rows && s[1].cols == s[3].cols;
    m->rank = s[1].rows < s[1].cols ? s[1].rows : s[1].cols;
    if (is_new != is_old) m->rank = is_new ? s[1].rows : s[1].cols;
    return SFT_OK;
}

static sft_code size_oft(const sfti_lora *lora, sfti_lora_module *m, sft_error *err) {
    lora_shape blocks, packed, rescale;
    sft_code code = shape_in(lora, m, SFTI_SLOT_OFT_BLOCKS, &blocks, err);
    if (!code) code = shape_in(lora, m, SFTI_SLOT_OFT_PACKED, &packed, err);
    if (!code) code = shape_in(lora, m, SFTI_SLOT_OFT_RESCALE, &rescale, err);
    if (code) return code;
    if (!blocks.tensor && !packed.tensor) return lacks(lora, m, "oft_blocks", err);
    if (packed.tensor) return SFT_OK;
    uint32_t rank = blocks.tensor->rank;
    const uint64_t *shape = blocks.tensor->shape;
    if (rank < 3 || rank > 4 || shape[rank - 1] != shape[rank - 2])
        return sfti_fail_tensor(err, SFT_SIZE_MISMATCH, blocks.tensor->offset, blocks.tensor->name,
                                "expected square blocks, found other shapes");
    code = wide(&blocks, shape[rank - 3], shape[rank - 1], &m->out, err);
    if (!code && rescale.tensor)
        code = agree(&rescale, "elements", rescale.rows * rescale.cols, m->out, err);
    return code;
}

static sft_code size_rest(const sfti_lora *lora, sfti_lora_module *m, sft_error *err) {
    lora_shape one;
    if (m->type == SFTI_TYPE_IA3) {
        bool peft = m->slot[SFTI_SLOT_IA3_FACTOR] != 0;
        const sft_tensor *diff = sfti_lora_tensor(lora, m, SFTI_SLOT_DIFF_BIAS);
        if (!peft && !m->slot[SFTI_SLOT_IA3_WEIGHT]) return lacks(lora, m, "a weight", err);
        if (peft && diff)
            return sfti_fail_tensor(err, SFT_CAST_DTYPE, diff->offset, diff->name,
                                    "expected (IA)^3 of PEFT, whose factors are of biases, too, "
                                    "without a difference of the bias, found one");
        return shape_in(lora, m, peft ? SFTI_SLOT_IA3_FACTOR : SFTI_SLOT_IA3_WEIGHT, &one, err);
    }
    sft_code code = shape_in(lora, m, SFTI_SLOT_DIFF_BIAS, &one, err);
    if (!code && one.tensor) m->out = one.rows * one.cols;
    if (!code) code = shape_in(lora, m, SFTI_SLOT_DIFF, &one, err);
    if (code || !one.tensor) return code;
    m->out = one.rows;
    m->in = one.cols;
    return SFT_OK;
}

/* ── Alpha ── */

bool sfti_lora_is_whole(const sfti_lora *lora, const sfti_lora_module *m) {
    return m->type == SFTI_TYPE_LOKR && m->rank == 0 && !m->slot[SFTI_SLOT_ALPHA]
        && is_told_lokr(lora, m);
}

static sft_code read_alpha(const sfti_lora *lora, sfti_lora_module *m, sft_error *err) {
    const sft_tensor *tensor = sfti_lora_tensor(lora, m, SFTI_SLOT_ALPHA);
    float value = 0;
    uint64_t rows, cols;
    if (!tensor) return SFT_OK;
    if (!sfti_lora_shape(tensor, &rows, &cols) || rows * cols != 1)
        return sfti_fail_tensor(err, SFT_SIZE_MISMATCH, tensor->offset, tensor->name,
                                "expected one number as alpha, found another shape");
    sft_code code = sfti_lora_read(lora->set, tensor, 0, 1, &value, err);
    m->alpha = (double)value;
    m->has_alpha = true;
    if (m->rank > 0) m->scale = m->alpha / (double)m->rank;
    return code;
}

/* What a configuration says that the product is multiplied with; false: nothing. */
static bool told_scale(const sfti_lora_config *config, const sfti_lora_module *m, double *alpha,
                       double *scale) {
    bool whole = m->rank == 0 && m->type == SFTI_TYPE_LOKR && config->type == SFTI_TYPE_LOKR;
    double rank = (double)(whole ? config->rank : m->rank);
    if ((m->rank == 0 && !whole) || !sfti_lora_config_alpha(config, m->name, alpha)) return false;
    *scale = rank > 0 ? *alpha / (config->rslora ? sfti_root(rank) : rank) : 1;
    return true;
}

/* But for what the dtype of an alpha rounds away. */
static bool is_near(double a, double b, const sft_tensor *tensor) {
    bool narrow = tensor && sft_dtype_describe(tensor->dtype)->bits < 32;
    double off = a - b, size = b < 0 ? -b : b, most = size * (narrow ? 1.0 / 256 : 1e-6);
    return off <= most && -off <= most;
}

/* Programs read one of those that tell it, and not all the same one. */
static sft_code scale_module(const sfti_lora *lora, sfti_lora_module *m, sft_error *err) {
    const sft_tensor *tensor = sfti_lora_tensor(lora, m, SFTI_SLOT_ALPHA);
    const sft_tensor *first = tensor ? tensor : sfti_lora_first(lora, m);
    const char *by = "its alpha";
    sft_code code = read_alpha(lora, m, err);
    for (size_t i = 0; !code && i < lora->config_count; i++) {
        const sfti_lora_config *config = &lora->configs[i];
        const char *name = config->beside ? "adapter_config.json" : SFTI_LORA_CONFIG_KEY;
        double alpha, scale;
        if (!sfti_lora_config_covers(config, m->name) || !told_scale(config, m, &alpha, &scale))
            continue;
        if (m->has_alpha && !is_near(m->scale, scale, tensor))
            return sfti_fail_tensor(err, SFT_CAST_DTYPE, first->offset, first->name,
                                    "expected one scale for its module, found %g by %s and %g by "
                                    "%s, of which some programs read one and some the other: "
                                    "correct one, or leave it out", m->scale, by, scale, name);
        if (m->has_alpha) continue;
        m->alpha = alpha;
        m->scale = scale;
        m->has_alpha = true;
        by = name;
    }
    return code;
}

/* ── All ── */

static sft_code is_alike(const sfti_lora *lora, const sfti_lora_module *m,
                         const sfti_lora_config *config, sft_error *err) {
    const sft_tensor *tensor = sfti_lora_first(lora, m);
    const sfti_lora_config *first = sfti_lora_config_of(lora, m->name);
    if (config->fan_in_fan_out != first->fan_in_fan_out || config->rslora != first->rslora
        || config->cayley != first->cayley || config->terms != first->terms)
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, tensor->offset, tensor->name,
                                "expected configurations that agree on its module, found "
                                "different ones (adapter_config.json, "
                                SFTI_LORA_CONFIG_KEY ")");
    if (config->unlike.len > 0)
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, tensor->offset, tensor->name,
                                "expected an adapter as PEFT has it by default, found \"%.*s\" in "
                                "its configuration", SFTI_CLIP(config->unlike, 80));
    bool other = config->type != SFTI_ADAPTER_TYPES && config->type != m->type;
    bool plain = config->dora && !m->slot[SFTI_SLOT_MAGNITUDE];
    if (!config->dora && m->slot[SFTI_SLOT_MAGNITUDE])
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, tensor->offset, tensor->name,
                                "expected \"use_dora\" in the configuration of a module with "
                                "magnitudes, which PEFT ignores without it and others apply, "
                                "found none");
    if (other || plain)
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, tensor->offset, tensor->name,
                                "expected tensors of the method that the adapter's configuration "
                                "tells, found %s without %s", sfti_lora_method(lora, m),
                                other ? "that \"peft_type\"" : "DoRA's magnitudes");
    bool whole = config->type == SFTI_TYPE_LOKR && sfti_lora_is_whole(lora, m);
    if (whole && (config->ranks || (m->has_alpha && !config->rank)))
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, tensor->offset, tensor->name,
                                "expected one rank in the adapter's configuration, by which "
                                "factors that are whole are scaled, too, found %s",
                                config->ranks ? "several" : "none");
    if (m->rank && config->rank && !config->ranks && config->rank != m->rank)
        return sfti_fail_tensor(err, SFT_SIZE_MISMATCH, tensor->offset, tensor->name,
                                "expected a rank of %llu as the adapter's configuration tells, "
                                "found %llu", (unsigned long long)config->rank,
                                (unsigned long long)m->rank);
    return SFT_OK;
}

sft_code sfti_lora_alike(const sfti_lora *lora, const sfti_lora_module *m, sft_error *err) {
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < lora->config_count; i++)
        if (sfti_lora_config_covers(&lora->configs[i], m->name))
            code = is_alike(lora, m, &lora->configs[i], err);
    return code;
}

static sft_code size_by_method(const sfti_lora *lora, sfti_lora_module *m, sft_error *err) {
    switch (m->type) {
    case SFTI_TYPE_LORA: return size_lora(lora, m, err);
    case SFTI_TYPE_LOHA: return size_loha(lora, m, err);
    case SFTI_TYPE_LOKR: return size_lokr(lora, m, err);
    case SFTI_TYPE_GLORA: return size_glora(lora, m, err);
    case SFTI_TYPE_OFT: case SFTI_TYPE_BOFT: return size_oft(lora, m, err);
    case SFTI_TYPE_IA3: case SFTI_TYPE_FULL: case SFTI_TYPE_OTHER: case SFTI_ADAPTER_TYPES: break;
    }
    return size_rest(lora, m, err);
}

static sft_code size_module(const sfti_lora *lora, sfti_lora_module *m, sft_error *err) {
    lora_shape bias;
    sft_code code = size_by_method(lora, m, err);
    if (!code) code = shape_in(lora, m, SFTI_SLOT_DIFF_BIAS, &bias, err);
    if (!code && m->out == 0) m->out = bias.rows * bias.cols; /* it has one for each row */
    return code;
}

/* No program has magnitudes beside a whole difference, (IA)^3 or a rotation. */
static sft_code check_magnitude(const sfti_lora *lora, const sfti_lora_module *m, sft_error *err) {
    const sft_tensor *tensor = sfti_lora_tensor(lora, m, SFTI_SLOT_MAGNITUDE);
    bool takes = m->type == SFTI_TYPE_LORA || m->type == SFTI_TYPE_LOHA
              || m->type == SFTI_TYPE_LOKR || m->type == SFTI_TYPE_GLORA;
    if (!tensor || takes) return SFT_OK;
    sft_code code = sfti_fail_tensor(err, SFT_CAST_DTYPE, tensor->offset, tensor->name,
                                     "expected DoRA's magnitudes beside LoRA, LoHa or LoKr, found "
                                     "them beside %s", sfti_lora_method(lora, m));
    return sfti_lora_hint(code, SFT_HINT_ADAPTER_TENSOR, err);
}

/* Modules of an alpha or a magnitude alone are none: their tensors are not read. */
static sft_code drop_empty(sfti_lora *lora, sft_error *err) {
    size_t left = 0;
    for (size_t i = 0; i < lora->count; i++) {
        sfti_lora_module *m = &lora->modules[i];
        bool full = m->slot[SFTI_SLOT_DIFF] || m->slot[SFTI_SLOT_DIFF_BIAS];
        if (m->type == SFTI_ADAPTER_TYPES && full) m->type = SFTI_TYPE_FULL;
        if (m->type != SFTI_ADAPTER_TYPES && m->type != SFTI_TYPE_FULL && m->slot[SFTI_SLOT_DIFF]) {
            const sft_tensor *diff = sfti_lora_tensor(lora, m, SFTI_SLOT_DIFF);
            return sfti_fail_tensor(err, SFT_CAST_DTYPE, diff->offset, diff->name,
                                    "expected one method in a module, found tensors of two");
        }
        if (m->type != SFTI_ADAPTER_TYPES) {
            lora->modules[left++] = *m;
            continue;
        }
        for (int k = SFTI_SLOT_ALPHA; k <= SFTI_SLOT_MAGNITUDE; k++)
            if (m->slot[k]) lora->unread[lora->unread_count++] = m->slot[k] - 1;
    }
    lora->count = left;
    return SFT_OK;
}

sft_code sfti_lora_open(const sft_set *set, sft_span config, sfti_lora *out, sft_error *err) {
    sft_code code = sfti_set_named(set, NULL, &out->arena.alloc, &out->named, err);
    out->set = out->named ? out->named : set;
    if (code) return code;
    size_t count = sft_set_tensor_count(out->set);
    out->unread = sfti_arena_array(&out->arena, count, sizeof *out->unread);
    if (!out->unread) return sfti_fail_memory(err, count * sizeof *out->unread);
    sft_span inside = { NULL, 0 }, value;
    for (size_t s = 0; s < sft_set_shard_count(set); s++) {
        if (!sft_file_metadata_get(sft_set_shard_at(set, s), sft_span_cstr(SFTI_LORA_CONFIG_KEY),
                                   &value))
            continue;
        if (inside.data && !sft_span_equal(inside, value))
            return sfti_fail(err, SFT_CAST_DTYPE, SFTI_LORA_CONFIGS_DIFFER);
        inside = value;
    }
    code = sfti_lora_config_read(out, config, false, err);
    if (!code && inside.data) code = sfti_lora_config_read(out, inside, true, err);
    if (!code) code = group_tensors(out, err);
    if (!code) code = drop_empty(out, err);
    if (!code) code = sfti_lora_take_bases(out, err);
    if (!code) code = sfti_lora_config_work(out, out->count, err);
    if (!code) code = sfti_lora_check_codes(out, err);
    for (size_t i = 0; !code && i < out->count; i++) {
        code = check_magnitude(out, &out->modules[i], err);
        if (!code) code = size_module(out, &out->modules[i], err);
        if (!code) code = scale_module(out, &out->modules[i], err);
    }
    return code || out->describes ? code : sfti_lora_check_components(out, err);
}

void sfti_lora_close(sfti_lora *lora) {
    sft_set_close(lora->named);
    lora->named = NULL;
    sfti_arena_free(&lora->arena);
}
