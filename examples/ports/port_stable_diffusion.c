/* The weights of an image model as stable-diffusion.cpp wants them: of several files, each under
 * its prefix, in one block of memory, with ggml's types and ggml's order of dimensions.
 *     port_stable_diffusion [PREFIX=]MODEL... */
#include <inttypes.h>
#include <safetensors_convert.h>
#include <safetensors_set.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIMS 4        /* as many as ggml has */
#define ALIGNMENT 32  /* of each tensor in the block */

typedef struct weight {
    char *name; /* with its prefix */
    const sft_file *file;
    const sft_tensor *tensor; /* of that file */
    sft_dtype type;           /* in the block */
    uint64_t ne[DIMS];        /* the fastest dimension first, then ones */
    size_t at, bytes;         /* in the block */
} weight;

typedef struct model {
    sft_set **sets; /* one for each argument */
    size_t set_count;
    weight *weights; /* sorted by name */
    size_t count;
    unsigned char *block;
} model;

static sft_code no_memory(sft_error *err) {
    return sft_error_set(err, SFT_OUT_OF_MEMORY, 0, "no memory for the weights");
}

/* ── What a tensor becomes ── */

/* ggml lacks some types: their values go to the next one that holds them. */
static bool type_of(sft_dtype dtype, sft_dtype *out) {
    static const sft_dtype rows[][2] = {
        { SFT_F32, SFT_F32 }, { SFT_F16, SFT_F16 },     { SFT_BF16, SFT_BF16 },
        { SFT_I32, SFT_I32 }, { SFT_F64, SFT_F32 },     { SFT_I64, SFT_I32 },
        { SFT_I8, SFT_I8 },   { SFT_F8_E4M3, SFT_F16 }, { SFT_F8_E5M2, SFT_F16 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        *out = rows[i][1];
        if (rows[i][0] == dtype) return true;
    }
    return false;
}

/* Of training, or computed anew by whoever runs the model. */
static bool is_unused(const char *name) {
    static const char *const parts[] = { "model_ema.", "position_ids", "num_batches_tracked",
                                         "alphas_cumprod", "logit_scale" };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(name, parts[i])) return true;
    return false;
}

static sft_code describe(weight *w, sft_error *err) {
    char text[512], name[200];
    const sft_tensor *t = w->tensor;
    const char *wrong = !type_of(t->dtype, &w->type) ? "a dtype that ggml holds"
                        : t->rank > DIMS             ? "at most 4 dimensions" : NULL;
    sft_span_escape(sft_span_cstr(w->name), name, sizeof name);
    snprintf(text, sizeof text, "%s: expected %s, found %s of %u dimensions", name,
             wrong ? wrong : "", sft_dtype_describe(t->dtype)->name, (unsigned)t->rank);
    if (wrong) return sft_error_set(err, SFT_CAST_DTYPE, 0, text);
    for (uint32_t d = 0; d < DIMS; d++) w->ne[d] = d < t->rank ? t->shape[t->rank - 1 - d] : 1;
    uint64_t bytes;
    sft_code code = sft_shape_size(w->type, t->shape, t->rank, NULL, &bytes, err);
    if (!code && bytes > SIZE_MAX - ALIGNMENT) code = no_memory(err);
    w->bytes = code ? 0 : (size_t)bytes;
    return code;
}

/* ── The list of all files ── */

static sft_code add_set(model *m, const sft_set *set, const char *prefix, sft_error *err) {
    size_t count = sft_set_tensor_count(set), before = strlen(prefix);
    weight *grown = realloc(m->weights, (m->count + count + 1) * sizeof *grown);
    if (!grown) return no_memory(err);
    m->weights = grown;
    for (size_t i = 0; i < count; i++) {
        const sft_tensor *tensor = sft_set_tensor_at(set, i);
        const sft_file *file = sft_set_shard_at(set, sft_set_tensor_shard(set, i));
        size_t cap = before + tensor->name.len + 1;
        weight w = { .name = malloc(cap), .file = file, .tensor = tensor };
        if (!w.name) return no_memory(err);
        memcpy(w.name, prefix, before);
        sft_span_copy(tensor->name, w.name + before, cap - before);
        sft_code code = is_unused(w.name) ? SFT_OK : describe(&w, err);
        if (code || is_unused(w.name)) free(w.name);
        else m->weights[m->count++] = w;
        if (code) return code;
    }
    return SFT_OK;
}

/* Equal names stay in the order of the files, which `at` is until the weights have places. */
static int by_name(const void *a, const void *b) {
    const weight *l = a, *r = b;
    int sign = strcmp(l->name, r->name);
    return sign != 0 ? sign : (l->at > r->at) - (l->at < r->at);
}

/* Of weights that several files have, the last counts: a VAE of its own replaces the model's. */
static void sort_weights(model *m) {
    size_t kept = 0;
    for (size_t i = 0; i < m->count; i++) m->weights[i].at = i;
    if (m->count > 0) qsort(m->weights, m->count, sizeof *m->weights, by_name);
    for (size_t i = 0; i < m->count; i++) {
        bool again = i + 1 < m->count && !strcmp(m->weights[i].name, m->weights[i + 1].name);
        if (again) free(m->weights[i].name);
        else m->weights[kept++] = m->weights[i];
    }
    m->count = kept;
}

/* The first weight whose name begins so. */
static const weight *find(const model *m, const char *name) {
    size_t low = 0, high = m->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(m->weights[middle].name, name) < 0) low = middle + 1;
        else high = middle;
    }
    return low < m->count && !strncmp(m->weights[low].name, name, strlen(name))
               ? &m->weights[low] : NULL;
}

static const char *version_of(const model *m) {
    static const char *const rows[][2] = {
        { "model.diffusion_model.double_blocks.", "FLUX" },
        { "model.diffusion_model.joint_blocks.", "SD 3" },
        { "conditioner.embedders.1.", "SDXL" },
        { "cond_stage_model.model.", "SD 2" },
        { "cond_stage_model.transformer.", "SD 1" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (find(m, rows[i][0])) return rows[i][1];
    return "unknown";
}

/* ── Their bytes ── */

static sft_code load_one(const model *m, const weight *w, sft_error *err) {
    if (w->type == w->tensor->dtype)
        return sft_read_into(w->file, w->tensor, m->block + w->at, w->bytes, err);
    sft_loan loan;
    sft_code code = sft_borrow(w->file, w->tensor, &loan, err);
    if (code) return code;
    code = sft_cast(w->tensor->dtype, loan.data, w->type, m->block + w->at,
                    sft_tensor_elements(w->tensor), NULL, NULL, err);
    sft_return(w->file, &loan);
    return code;
}

static sft_code load(model *m, sft_error *err) {
    size_t end = 0;
    for (size_t i = 0; i < m->count; i++) {
        m->weights[i].at = end;
        if (m->weights[i].bytes > SIZE_MAX - ALIGNMENT - end) return no_memory(err);
        end = (end + m->weights[i].bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    }
    m->block = malloc(end + 1);
    if (!m->block) return no_memory(err);
    sft_code code = SFT_OK;
    for (size_t i = 0; i < m->count && !code; i++) code = load_one(m, &m->weights[i], err);
    return code;
}

/* ── The program ── */

static void tell(const model *m) {
    printf("%s, %zu weights\n", version_of(m), m->count);
    for (size_t i = 0; i < m->count; i++) {
        const weight *w = &m->weights[i];
        uint64_t hash = 5381;
        for (size_t b = 0; b < w->bytes; b++) hash = hash * 33 + m->block[w->at + b];
        char name[256];
        sft_span_escape(sft_span_cstr(w->name), name, sizeof name);
        printf("%s %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %016" PRIx64 "\n", name,
               sft_dtype_describe(w->type)->name, w->ne[0], w->ne[1], w->ne[2], w->ne[3], hash);
    }
}

static sft_code open_all(model *m, char **args, size_t count, const char **path, sft_error *err) {
    sft_code code = SFT_OK;
    m->sets = calloc(count + 1, sizeof *m->sets);
    if (!m->sets) return no_memory(err);
    for (size_t i = 0; i < count && !code; i++) {
        char *equals = strchr(args[i], '=');
        if (equals) *equals = '\0';
        *path = equals ? equals + 1 : args[i];
        code = sft_set_open(*path, NULL, &m->sets[i], err);
        if (!code) m->set_count++;
        if (!code) code = add_set(m, m->sets[i], equals ? args[i] : "", err);
    }
    return code;
}

int main(int argc, char **argv) {
    sft_error err = SFT_ERROR_INIT;
    const char *path = NULL;
    model m = { 0 };
    if (argc < 2) return 2;
    sft_code code = open_all(&m, argv + 1, (size_t)argc - 1, &path, &err);
    if (!code) sort_weights(&m);
    if (!code) code = load(&m, &err);
    if (!code) tell(&m);
    if (code) {
        char text[1024];
        sft_error_text(&err, path, text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    for (size_t i = 0; i < m.count; i++) free(m.weights[i].name);
    for (size_t i = 0; i < m.set_count; i++) sft_set_close(m.sets[i]);
    free(m.sets);
    free(m.weights);
    free(m.block);
    return code != SFT_OK;
}
