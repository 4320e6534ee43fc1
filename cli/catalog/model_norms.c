/* Norms of the modules of a LoRA, of the product of each pair of matrices. */
#include "catalog/catalog.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/number.h"
#include "catalog/places.h"
#include "os/os.h"
#include "support/models.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK ((size_t)1 << 19) /* values in memory at a time */

/* How the two tensors of a module end, down before up. */
static const char *const ends[][2] = {
    { ".lora_down.weight", ".lora_up.weight" },
    { ".lora_A.weight", ".lora_B.weight" },
    { ".lora_A.default.weight", ".lora_B.default.weight" },
    { ".lora.down.weight", ".lora.up.weight" },
    { "_lora.down.weight", "_lora.up.weight" },
};

/* With one of these in it a module is more than the product of two matrices. */
static const char *const extras[] = {
    ".dora_scale", ".lora_mid.weight", ".lora_magnitude_vector", ".lora_magnitude_vector.weight",
    ".lora_magnitude_vector.default.weight", ".w_norm", ".b_norm", ".diff",
};

typedef struct lora_pair {
    sft_span module;
    const sft_tensor *down, *up;
    const sft_file *down_file, *up_file;
    uint64_t rank, in, out;
} lora_pair;

typedef struct norm_run {
    const sft_set *set;
    const sft_node *root; /* the result object */
    double *values;       /* BLOCK */
    char *bytes;          /* as many, of 8 bytes at most */
    double *grams[2];     /* lower triangles, rank * rank, of up and down */
    char *name;           /* of a tensor; holds the longest one and an ending */
    size_t name_size;
} norm_run;

/* ── Pairs ── */

static const sft_tensor *find_ending(const norm_run *run, sft_span module, const char *end,
                                     const sft_file **file) {
    size_t len = strlen(end), shard = 0;
    if (module.len + len > run->name_size) return NULL;
    if (module.len) memcpy(run->name, module.data, module.len);
    memcpy(run->name + module.len, end, len);
    const sft_tensor *found = sft_set_find(run->set, (sft_span){ run->name, module.len + len },
                                           &shard);
    if (found && file) *file = sft_set_shard_at(run->set, shard);
    return found;
}

static bool is_real(const sft_tensor *tensor) {
    sft_kind kind = sft_dtype_describe(tensor->dtype)->kind;
    return kind == SFT_KIND_FLOAT && sft_dtype_describe(tensor->dtype)->bits >= 8;
}

/* rank x in, where in is all of a convolution's filter; out x rank, and ones behind. */
static bool take_shapes(lora_pair *pair) {
    const sft_tensor *down = pair->down, *up = pair->up;
    if (down->rank < 2 || up->rank < 2 || !is_real(down) || !is_real(up)) return false;
    pair->rank = down->shape[0];
    pair->in = 1;
    for (uint32_t d = 1; d < down->rank; d++)
        if (!sfti_mul(pair->in, down->shape[d], &pair->in)) return false;
    pair->out = up->shape[0];
    for (uint32_t d = 2; d < up->rank; d++)
        if (up->shape[d] != 1) return false;
    return up->shape[1] == pair->rank && pair->rank > 0 && pair->rank <= NORMS_RANK_MOST
        && pair->in > 0 && pair->out > 0;
}

/* Whether tensor i is the first of a plain pair. */
static bool find_pair(const norm_run *run, size_t i, lora_pair *pair) {
    sft_span name = sft_set_tensor_at(run->set, i)->name;
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
        size_t len = strlen(ends[k][0]);
        if (name.len < len || memcmp(name.data + name.len - len, ends[k][0], len) != 0) continue;
        *pair = (lora_pair){ .module = { name.data, name.len - len } };
        pair->down = sft_set_tensor_at(run->set, i);
        pair->down_file = sft_set_shard_at(run->set, sft_set_tensor_shard(run->set, i));
        pair->up = find_ending(run, pair->module, ends[k][1], &pair->up_file);
        if (!pair->up || !take_shapes(pair)) return false;
        for (size_t e = 0; e < sizeof extras / sizeof *extras; e++)
            if (find_ending(run, pair->module, extras[e], NULL)) return false;
        return true;
    }
    return false;
}

/* ── Products ── */

/* count values of a tensor from value `first` on. */
static sft_code read_values(norm_run *run, const sft_file *file, const sft_tensor *tensor,
                            uint64_t first, size_t count, double *out, sft_error *err) {
    size_t size = sft_dtype_describe(tensor->dtype)->bits / 8;
    sft_code code = sft_read_bytes(file, tensor->offset + first * size, run->bytes, count * size,
                                   err);
    if (!code) sfti_to_doubles(tensor->dtype, run->bytes, 0, count, out);
    return code;
}

/* up' up. */
static sft_code gram_of_up(norm_run *run, const lora_pair *pair, sft_error *err) {
    size_t rank = (size_t)pair->rank;
    uint64_t step = BLOCK / rank;
    sft_code code = SFT_OK;
    for (uint64_t row = 0; !code && row < pair->out; row += step) {
        size_t rows = (size_t)(pair->out - row < step ? pair->out - row : step);
        code = read_values(run, pair->up_file, pair->up, row * rank, rows * rank, run->values,
                           err);
        const double *values = run->values;
        for (size_t k = 0; !code && k < rows; k++, values += rank)
            for (size_t i = 0; i < rank; i++)
                for (size_t j = 0; j <= i; j++)
                    run->grams[0][i * rank + j] += values[i] * values[j];
    }
    return code;
}

/* In four sums, which a processor can add up at the same time. */
static double product(const double *a, const double *b, size_t count) {
    double sums[4] = { 0, 0, 0, 0 };
    size_t k = 0;
    for (; count - k >= 4; k += 4)
        for (size_t s = 0; s < 4; s++) sums[s] += a[k + s] * b[k + s];
    for (; k < count; k++) sums[0] += a[k] * b[k];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* down down', by strips of columns: all of it at once if that fits. */
static sft_code gram_of_down(norm_run *run, const lora_pair *pair, sft_error *err) {
    size_t rank = (size_t)pair->rank;
    uint64_t step = BLOCK / rank;
    sft_code code = SFT_OK;
    for (uint64_t at = 0; !code && at < pair->in; at += step) {
        size_t wide = (size_t)(pair->in - at < step ? pair->in - at : step);
        for (size_t i = 0; !code && i < rank; i++)
            code = read_values(run, pair->down_file, pair->down, i * pair->in + at, wide,
                               run->values + i * wide, err);
        for (size_t i = 0; !code && i < rank; i++) {
            for (size_t j = 0; j <= i; j++) {
                const double *a = run->values + i * wide, *b = run->values + j * wide;
                run->grams[1][i * rank + j] += product(a, b, wide);
            }
        }
    }
    return code;
}

/* |up down|^2 = trace(down' up' up down) = trace((up' up)(down down')). */
static sft_code product_norm(norm_run *run, const lora_pair *pair, double *norm, sft_error *err) {
    size_t rank = (size_t)pair->rank;
    double sum = 0;
    memset(run->grams[0], 0, rank * rank * sizeof *run->grams[0]);
    memset(run->grams[1], 0, rank * rank * sizeof *run->grams[1]);
    sft_code code = gram_of_up(run, pair, err);
    if (!code) code = gram_of_down(run, pair, err);
    for (size_t i = 0; !code && i < rank; i++)
        for (size_t j = 0; j <= i; j++)
            sum += (i == j ? 1 : 2) * run->grams[0][i * rank + j] * run->grams[1][i * rank + j];
    *norm = sum < 0 ? 0 : sfti_root(sum);
    return code;
}

/* ── Scale ── */

static bool number_at(const sft_node *root, const char *path, double *out) {
    char text[64];
    sft_span found = sft_node_text(root, path);
    if (!found.len || found.len >= sizeof text) return false;
    memcpy(text, found.data, found.len);
    text[found.len] = 0;
    *out = strtod(text, NULL);
    return true;
}

/* alpha / rank, of rsLoRA alpha / sqrt(rank): by the module's own alpha, else by the one that is
 * known for all; 1 without any. */
static sft_code scale_of(norm_run *run, const lora_pair *pair, double *scale, sft_error *err) {
    const sft_file *file = NULL;
    const sft_tensor *tensor = find_ending(run, pair->module, ".alpha", &file);
    double alpha = 0, most = 0, rank = (double)pair->rank;
    uint64_t values = 0;
    sft_code code = SFT_OK;
    bool known = false;
    if (tensor && is_real(tensor)
        && !sft_shape_size(tensor->dtype, tensor->shape, tensor->rank, &values, NULL, NULL)
        && values == 1) {
        code = read_values(run, file, tensor, 0, 1, &alpha, err);
        known = true;
    } else if (!tensor) {
        known = number_at(run->root, "adapter.alpha.min", &alpha)
             && number_at(run->root, "adapter.alpha.max", &most) && alpha >= most;
    }
    bool is_root = sft_node_true(run->root, "adapter.rslora");
    *scale = known ? alpha / (is_root ? sfti_root(rank) : rank) : 1;
    return code;
}

/* ── All ── */

static sft_code put_norms(norm_run *run, sfti_json_writer *w, sft_error *err) {
    size_t count = sft_set_tensor_count(run->set), done = 0;
    sft_code code = SFT_OK;
    lora_pair pair;
    for (size_t i = 0; !code && i < count; i++) {
        double norm = 0, scale = 1;
        if (!find_pair(run, i, &pair)) continue;
        if (sfti_os_stop_signal()) return sfti_fail(err, SFT_CANCELLED, "cancelled");
        code = product_norm(run, &pair, &norm, err);
        if (!code) code = scale_of(run, &pair, &scale, err);
        if (code) break;
        if (done++ == 0) sfti_json_put_open(w, "norms", '[');
        sfti_json_open(w, '{');
        sfti_json_put_text(w, "module", pair.module);
        sfti_json_key(w, "norm");
        catalog_double(w, norm * (scale < 0 ? -scale : scale));
        sfti_json_put_uint(w, "rank", pair.rank);
        sfti_json_close(w, '}');
    }
    if (done) sfti_json_close(w, ']');
    return code ? code : w->code;
}

/* The highest rank of a pair and the longest name; whether there is a pair. */
static bool find_sizes(norm_run *run, sfti_arena *work, size_t *rank, sft_error *err) {
    size_t count = sft_set_tensor_count(run->set), longest = 0;
    lora_pair pair;
    for (size_t i = 0; i < count; i++) {
        sft_span name = sft_set_tensor_at(run->set, i)->name;
        if (name.len > longest) longest = name.len;
    }
    run->name_size = longest + 64;
    run->name = sfti_arena_take(work, run->name_size);
    if (!run->name) {
        sfti_fail_memory(err, longest);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        if (find_pair(run, i, &pair) && pair.rank > *rank) *rank = (size_t)pair.rank;
    return *rank > 0;
}

sft_code model_norms_write(const cli_model *model, cli *c, sfti_json_writer *w, sft_error *err) {
    sfti_arena work = { .alloc = c->alloc };
    norm_run run = { .set = model->set, .root = sft_tree_root(model->tree) };
    size_t rank = 0;
    sft_code code = SFT_OK;
    if (!run.set || !sft_node_count(sft_node_get(run.root, "adapter"))) return SFT_OK;
    err->code = SFT_OK;
    if (!find_sizes(&run, &work, &rank, err)) {
        code = err->code;
        goto done;
    }
    run.values = sfti_arena_array(&work, BLOCK, sizeof *run.values);
    run.bytes = sfti_arena_array(&work, BLOCK, 8);
    run.grams[0] = sfti_arena_array(&work, rank * rank, sizeof *run.grams[0]);
    run.grams[1] = sfti_arena_array(&work, rank * rank, sizeof *run.grams[1]);
    if (!run.values || !run.bytes || !run.grams[0] || !run.grams[1])
        code = sfti_fail_memory(err, BLOCK * sizeof *run.values);
    else
        code = put_norms(&run, w, err);
done:
    sfti_arena_free(&work);
    return code;
}
