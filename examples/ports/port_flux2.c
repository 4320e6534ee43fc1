/* The weights of a transformer as flux2.c wants them: the model stays mapped, BF16 weights are used
 * where they lie, others become floats, and one block after another is taken and left. Each block
 * here is x = W x + b.
 *     port_flux2 MODEL VALUE... */
#include <inttypes.h>
#include <safetensors_convert.h>
#include <safetensors_set.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Weights in use: bytes of the map, or memory of their own. */
typedef struct weight {
    const sft_file *file;
    sft_loan loan;
    const uint16_t *bf16; /* or */
    float *f32;
} weight;

typedef struct block {
    weight matrix, bias;
} block;

static sft_code fail(sft_error *err, sft_code code, const char *name, const char *expected) {
    char text[400];
    snprintf(text, sizeof text, "%s: expected %s, found none", name, expected);
    return sft_error_set(err, code, 0, text);
}

static void leave_weight(weight *w) {
    if (w->file) sft_return(w->file, &w->loan);
    free(w->f32);
    memset(w, 0, sizeof *w);
}

/* rows 0: a vector of columns. *shard: whose file an error is about, or as before. */
static sft_code take_weight(const sft_set *set, const char *name, uint64_t rows, uint64_t columns,
                            weight *out, size_t *shard, sft_error *err) {
    memset(out, 0, sizeof *out);
    const sft_tensor *t = sft_set_find(set, sft_span_cstr(name), shard);
    if (!t) return fail(err, SFT_TENSOR_NOT_FOUND, name, "a tensor of that name");
    bool fits = rows == 0 ? t->rank == 1 && t->shape[0] == columns
                          : t->rank == 2 && t->shape[0] == rows && t->shape[1] == columns;
    if (!fits) return fail(err, SFT_BAD_ARGUMENT, name, "a tensor of that shape");
    const sft_file *file = sft_set_shard_at(set, *shard);
    sft_code code = sft_borrow(file, t, &out->loan, err);
    if (code) return code;
    out->file = file;
    if (t->dtype == SFT_BF16 && (uintptr_t)out->loan.data % sizeof *out->bf16 == 0) {
        out->bf16 = out->loan.data;
        return SFT_OK;
    }
    uint64_t count = sft_tensor_elements(t);
    if (count < SIZE_MAX / sizeof *out->f32)
        out->f32 = malloc((size_t)(count + 1) * sizeof *out->f32);
    code = out->f32 ? sft_cast(t->dtype, out->loan.data, SFT_F32, out->f32, count, NULL, NULL, err)
                    : sft_error_set(err, SFT_OUT_OF_MEMORY, 0, "no memory for a weight");
    sft_return(file, &out->loan);
    out->file = NULL;
    if (code) leave_weight(out);
    return code;
}

static float at(const weight *w, size_t i) {
    if (!w->bf16) return w->f32[i];
    uint32_t bits = (uint32_t)w->bf16[i] << 16; /* the upper half of a float */
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void leave_block(block *b) {
    leave_weight(&b->matrix);
    leave_weight(&b->bias);
}

static sft_code take_block(const sft_set *set, size_t number, size_t size, block *out,
                           size_t *shard, sft_error *err) {
    char name[80];
    memset(out, 0, sizeof *out);
    snprintf(name, sizeof name, "transformer_blocks.%zu.attn.to_q.weight", number);
    sft_code code = take_weight(set, name, size, size, &out->matrix, shard, err);
    snprintf(name, sizeof name, "transformer_blocks.%zu.attn.to_q.bias", number);
    if (!code) code = take_weight(set, name, 0, size, &out->bias, shard, err);
    if (code) leave_block(out);
    return code;
}

static size_t block_count(const sft_set *set) {
    char name[80];
    size_t count = 0;
    do snprintf(name, sizeof name, "transformer_blocks.%zu.attn.to_q.weight", count++);
    while (sft_set_find(set, sft_span_cstr(name), NULL));
    return count - 1;
}

static void run_block(const block *b, float *x, float *scratch, size_t size) {
    for (size_t r = 0; r < size; r++) {
        scratch[r] = at(&b->bias, r);
        for (size_t c = 0; c < size; c++) scratch[r] += at(&b->matrix, r * size + c) * x[c];
    }
    memcpy(x, scratch, size * sizeof *x);
}

static sft_code run(const sft_set *set, float *x, float *scratch, size_t size, const char **path,
                    sft_error *err) {
    for (size_t i = 0; i < block_count(set); i++) {
        block b;
        size_t shard = 0;
        sft_code code = take_block(set, i, size, &b, &shard, err);
        if (code) {
            if (err->offset != SFT_NO_OFFSET) *path = sft_set_shard_path(set, shard);
            return code;
        }
        printf("block %zu: %s, bias %s\n", i, b.matrix.bf16 ? "in place" : "as floats",
               b.bias.bf16 ? "in place" : "as floats");
        run_block(&b, x, scratch, size);
        leave_block(&b);
    }
    return SFT_OK;
}

int main(int argc, char **argv) {
    sft_open_options open = SFT_OPEN_OPTIONS_INIT;
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_set *set;
    if (argc < 3) return 2;
    const char *path = argv[1];
    size_t size = (size_t)argc - 2;
    float *x = calloc(2 * size, sizeof *x);
    if (!x) return 1;
    for (size_t i = 0; i < size; i++) x[i] = strtof(argv[2 + i], NULL);
    open.mode = SFT_AUTO; /* mapped where the system can */
    options.open = &open;
    sft_code code = sft_set_open(path, &options, &set, &err);
    if (!code) {
        code = run(set, x, x + size, size, &path, &err);
        sft_set_close(set);
    }
    for (size_t i = 0; i < size && !code; i++)
        printf("%g%c", (double)x[i], i + 1 < size ? ' ' : '\n');
    if (code) {
        char text[1024];
        sft_error_text(&err, path, text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    free(x);
    return code != SFT_OK;
}
