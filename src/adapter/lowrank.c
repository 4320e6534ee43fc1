/* The optimum of a lower rank of a product of factors, without the product. Tests: test_lowrank.c,
 * tests/adapter/factors.py.
 *
 * Both factors are made orthogonal by the Cholesky factors of their Gram matrices, which are summed
 * in F64 over blocks of rows, after their columns were balanced: what is lost by squaring is below
 * the F32 of the factors. What remains is a core of rank x rank. */
#include "adapter/tall.h"

#include "base/error.h"
#include "base/number.h"

#include <string.h>

#define BLOCK ((size_t)64) /* rows in F64 at a time */
#define TOLERANCE 1e-7     /* of a direction, of the greatest */

/* ── Tall matrices ── */

static void load_tall(const sfti_tall *x, uint64_t first, size_t count, double *into) {
    size_t width = (size_t)x->width, length = (size_t)x->length, begin = (size_t)first;
    if (!x->across) {
        const float *from = x->at + begin * width;
        for (size_t i = 0; i < count * width; i++) into[i] = (double)from[i];
        return;
    }
    for (size_t j = 0; j < width; j++)
        for (size_t i = 0; i < count; i++)
            into[i * width + j] = (double)x->at[j * length + begin + i];
}

void sfti_tall_gram(const sfti_tall *x, double *block, double *g) {
    size_t n = (size_t)x->width;
    memset(g, 0, n * n * sizeof *g);
    for (uint64_t first = 0; first < x->length; first += BLOCK) {
        size_t count = x->length - first < BLOCK ? (size_t)(x->length - first) : BLOCK;
        load_tall(x, first, count, block);
        for (size_t i = 0; i < n; i += 16) { /* the upper half, and what is near */
            sfti_dense_add(&(sfti_dense){
                .a = block + i, .row = 1, .step = n, .b = block + i, .b_row = n,
                .rows = n - i < 16 ? n - i : 16, .inner = count, .cols = n - i,
                .into = g + i * n + i, .into_row = n });
        }
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) g[i * n + j] = g[j * n + i];
}

void sfti_tall_times(const sfti_tall *x, const double *by, size_t cols, double *block,
                     double *result, bool across, float *into) {
    size_t n = (size_t)x->width, length = (size_t)x->length;
    for (uint64_t first = 0; first < x->length; first += BLOCK) {
        size_t count = x->length - first < BLOCK ? (size_t)(x->length - first) : BLOCK;
        size_t begin = (size_t)first;
        load_tall(x, first, count, block);
        memset(result, 0, count * cols * sizeof *result);
        sfti_dense_add(&(sfti_dense){
            .a = block, .row = n, .step = 1, .b = by, .b_row = cols, .rows = count, .inner = n,
            .cols = cols, .into = result, .into_row = cols });
        if (!across) {
            for (size_t i = 0; i < count * cols; i++) into[begin * cols + i] = (float)result[i];
            continue;
        }
        for (size_t j = 0; j < cols; j++)
            for (size_t i = 0; i < count; i++)
                into[j * length + begin + i] = (float)result[i * cols + j];
    }
}

double *sfti_tall_numbers(sfti_arena *work, uint64_t rows, uint64_t cols, sft_error *err) {
    /* at most SFTI_TALL_MOST or a block of rows each */
    double *at = sfti_arena_array(work, rows * cols, sizeof *at);
    if (!at) sfti_fail_memory(err, rows * cols * sizeof *at);
    return at;
}

/* ── The core ── */

typedef struct core {
    size_t rank, left, right; /* of the factors, and of their orthogonal parts */
    sfti_tall p, q;
    double *block, *result;
    double *balance;          /* of each column of p; its inverse of q */
    double *r1, *t1, *r2, *t2;
    double *c, *m;            /* left x right; m: its rows turned */
    double *norms;
} core;

static sft_code core_memory(core *k, sfti_arena *work, sft_error *err) {
    uint64_t n = k->rank;
    struct { double **at; uint64_t rows, cols; } all[] = {
        { &k->block, BLOCK, n }, { &k->result, BLOCK, n }, { &k->balance, 3, n },
        { &k->r1, n, n }, { &k->t1, n, n }, { &k->r2, n, n }, { &k->t2, n, n },
        { &k->c, n, n }, { &k->m, n, n }, { &k->norms, 1, n },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        *all[i].at = sfti_tall_numbers(work, all[i].rows, all[i].cols, err);
        if (!*all[i].at) return SFT_OUT_OF_MEMORY;
    }
    return SFT_OK;
}

/* Balances the columns: sum i of the product has the same norm on both sides. */
static void balance(core *k, double *g1, double *g2) {
    size_t n = k->rank;
    for (size_t i = 0; i < n; i++) {
        double a = sfti_root(g1[i * n + i]), b = sfti_root(g2[i * n + i]);
        k->balance[i] = a > 0 && b > 0 ? sfti_root(b / a) : 0; /* 0: the sum adds nothing */
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double by = k->balance[i] * k->balance[j];
            g1[i * n + j] *= by;
            g2[i * n + j] = by > 0 ? g2[i * n + j] / by : 0;
        }
}

/* m is the core with rows turned, whose norms are the singular values. */
static void solve(core *k) {
    size_t n = k->rank;
    double *g1 = k->c, *g2 = k->m;
    sfti_tall_gram(&k->p, k->block, g1);
    sfti_tall_gram(&k->q, k->block, g2);
    balance(k, g1, g2);
    k->left = sfti_dense_cholesky(g1, n, TOLERANCE, k->r1, k->t1, k->balance + n);
    k->right = sfti_dense_cholesky(g2, n, TOLERANCE, k->r2, k->t2, k->balance + n);
    memset(k->c, 0, n * n * sizeof *k->c);
    for (size_t i = 0; i < k->left; i++)
        for (size_t j = 0; j < k->right; j++)
            k->c[i * k->right + j] = sfti_dense_dot(k->r1 + i * n, k->r2 + j * n, n);
    memcpy(k->m, k->c, k->left * k->right * sizeof *k->m);
    sfti_dense_jacobi(k->m, k->left, k->right, k->norms);
}

/* p t1 a, with a the left singular vectors times the roots of the values (kohya: the values), and
 * the same of the right ones. */
static sft_code write_factors(core *k, size_t rank, bool all_up, bool narrow, sfti_arena *work,
                              sfti_lowrank *out, sft_error *err) {
    size_t n = k->rank, kept = rank;
    float *half = narrow ? sfti_arena_array(work, n * kept, sizeof *half) : NULL;
    if (narrow && !half) return sfti_fail_memory(err, n * kept * sizeof *half);
    double *vectors = k->r1, *by = k->r2; /* no longer needed */
    for (size_t i = 0; i < kept; i++) /* rows of m become unit vectors, or 0 */
        for (size_t j = 0; j < k->right; j++)
            k->m[i * k->right + j] = i < k->left && k->norms[i] > 0
                                       ? k->m[i * k->right + j] / k->norms[i] : 0;
    /* left vectors: c v / sigma, times the part of sigma that goes up */
    for (size_t i = 0; i < k->left; i++)
        for (size_t j = 0; j < kept; j++) {
            double sigma = j < k->left ? k->norms[j] : 0, root = sfti_root(sigma);
            double dot = sfti_dense_dot(k->c + i * k->right, k->m + j * k->right, k->right);
            vectors[i * kept + j] = sigma > 0 ? (all_up ? dot : dot / root) : 0;
        }
    memset(by, 0, n * kept * sizeof *by);
    sfti_dense_add(&(sfti_dense){ .a = k->t1, .row = k->left, .step = 1, .b = vectors,
                                  .b_row = kept, .rows = n, .inner = k->left, .cols = kept,
                                  .into = by, .into_row = kept });
    for (size_t i = 0; i < n * kept; i++) by[i] *= k->balance[i / kept];
    for (size_t i = 0; narrow && i < n * kept; i++) half[i] = (float)by[i];
    if (narrow) {
        memset(out->up.at, 0, (size_t)k->p.length * kept * sizeof *half);
        sfti_matrix_add_product(k->p.at, n, half, k->p.length, n, kept, 1, out->up.at);
    } else {
        sfti_tall_times(&k->p, by, kept, k->block, k->result, false, out->up.at);
    }
    for (size_t i = 0; i < k->right; i++)
        for (size_t j = 0; j < kept; j++)
            vectors[i * kept + j] = k->m[j * k->right + i]
                                  * (all_up ? 1 : sfti_root(j < k->left ? k->norms[j] : 0));
    memset(by, 0, n * kept * sizeof *by);
    sfti_dense_add(&(sfti_dense){ .a = k->t2, .row = k->right, .step = 1, .b = vectors,
                                  .b_row = kept, .rows = n, .inner = k->right, .cols = kept,
                                  .into = by, .into_row = kept });
    for (size_t i = 0; i < n * kept; i++)
        by[i] = k->balance[i / kept] > 0 ? by[i] / k->balance[i / kept] : 0;
    for (size_t i = 0; narrow && i < n * kept; i++) half[i % kept * n + i / kept] = (float)by[i];
    if (narrow) {
        memset(out->down.at, 0, (size_t)k->q.length * kept * sizeof *half);
        sfti_matrix_add_product(half, n, k->q.at, kept, n, k->q.length, 1, out->down.at);
    } else {
        sfti_tall_times(&k->q, by, kept, k->block, k->result, true, out->down.at);
    }
    return SFT_OK;
}

sft_code sfti_tall_product(const sfti_tall *p, const sfti_tall *q, double norm, bool exact,
                           const sfti_rank_rule *rule, sfti_arena *arena, bool *decided,
                           sfti_lowrank *out, sft_error *err) {
    sfti_arena work = { .alloc = arena->alloc };
    uint64_t least = p->length < q->length ? p->length : q->length, kept = 0;
    core k = { .rank = (size_t)p->width, .p = *p, .q = *q };
    if (p->width > SFTI_TALL_MOST)
        return sfti_fail(err, SFT_ADDRESS_SPACE, "expected factors of a rank of at most %llu, "
                         "found %llu", (unsigned long long)SFTI_TALL_MOST,
                         (unsigned long long)p->width);
    sft_code code = core_memory(&k, &work, err);
    sfti_spectrum *s = &out->spectrum;
    if (!code) {
        solve(&k);
        uint64_t most = exact && k.rank < least ? k.rank + 1 : k.rank; /* beyond it all are 0 */
        s->count = (size_t)(most < least ? most : least);
        s->all = exact ? s->count : least;
        s->at = sfti_arena_array(arena, s->count, sizeof *s->at);
        if (!s->at) code = sfti_fail_memory(err, s->count * sizeof *s->at);
        double squares = 0;
        for (size_t i = 0; !code && i < s->count; i++) {
            s->at[i] = i < k.left ? k.norms[i] : 0;
            squares += s->at[i] * s->at[i];
        }
        s->norm = exact ? sfti_root(squares) : norm;
        if (!code) *decided = !rule || sfti_rank_choose(rule, s, &kept);
    }
    if (!code && rule && *decided) {
        double found = 0;
        bool narrow = rule->narrow && !p->across && q->across; /* as the product of F32 has them */
        uint64_t width = kept < k.rank ? kept : k.rank;
        sft_code (*take)(sfti_arena *, uint64_t, uint64_t, sfti_matrix *, sft_error *) =
            width < kept ? sfti_matrix_new : sfti_matrix_take;
        code = take(arena, p->length, kept, &out->up, err);
        if (!code) code = take(arena, kept, q->length, &out->down, err);
        if (!code && width < kept) { /* columns of zeros, of kohya's one more */
            sfti_lowrank whole = *out;
            code = sfti_matrix_new(&work, p->length, width, &whole.up, err);
            if (!code)
                code = write_factors(&k, (size_t)width, rule->kohya, narrow, &work, &whole, err);
            for (uint64_t i = 0; !code && i < p->length; i++)
                memcpy(out->up.at + i * kept, whole.up.at + i * width,
                       (size_t)width * sizeof(float));
        } else if (!code) {
            code = write_factors(&k, (size_t)kept, rule->kohya, narrow, &work, out, err);
        }
        for (size_t i = 0; i < kept && i < s->count; i++) found += s->at[i] * s->at[i];
        double rest = s->norm * s->norm - found, tail = 0;
        for (size_t i = (size_t)kept; i < s->count; i++) tail += s->at[i] * s->at[i];
        out->lost = sfti_root(exact ? tail : rest > 0 ? rest : 0);
    }
    sfti_arena_free(&work);
    return code;
}

sft_code sfti_lowrank_of_product(const sfti_matrix *up, const sfti_matrix *down,
                                 const sfti_rank_rule *rule, sfti_arena *arena, sfti_lowrank *out,
                                 sft_error *err) {
    sfti_tall p = { up->at, up->rows, up->cols, false };
    sfti_tall q = { down->at, down->cols, down->rows, true };
    bool decided;
    return sfti_tall_product(&p, &q, 0, true, rule, arena, &decided, out, err);
}

/* ── Modules ── */

sft_code sfti_lora_factors(const sfti_lora *lora, const sfti_lora_module *m, sfti_arena *arena,
                           sfti_matrix *up, sfti_matrix *down, sft_error *err) {
    const sft_tensor *tensor = sfti_lora_tensor(lora, m, SFTI_SLOT_UP);
    if (m->type != SFTI_TYPE_LORA || !tensor)
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, m->name,
                                "expected a LoRA, found %s", sfti_lora_method(lora, m));
    sft_code code = sfti_lora_alike(lora, m, err);
    if (code) return code;
    if (m->tucker) {
        uint64_t shape[3] = { m->out, m->in / m->kernel, m->kernel };
        const sft_tensor layer = { .name = m->name, .shape = shape, .rank = 3, .dtype = SFT_F32 };
        sfti_lora_op op = { .module = m, .lora = lora, .tensor = &layer, .rows = m->out };
        code = sfti_lora_op_open(&op, arena, err);
        *up = op.a;
        *down = op.b;
        return code;
    }
    code = sfti_lora_load(lora->set, tensor, arena, up, err);
    if (!code)
        code = sfti_lora_load(lora->set, sfti_lora_tensor(lora, m, SFTI_SLOT_DOWN), arena, down,
                              err);
    return code;
}

sft_code sfti_lora_spectrum(const sfti_lora *lora, const sfti_lora_module *m, sfti_arena *arena,
                            sfti_spectrum *out, sft_error *err) {
    sfti_arena work = { .alloc = arena->alloc };
    sfti_matrix up, down;
    sfti_lowrank found = { .lost = 0 };
    double size = m->scale < 0 ? -m->scale : m->scale;
    *out = (sfti_spectrum){ .count = 0 };
    if (m->type != SFTI_TYPE_LORA) return SFT_OK;
    sft_code code = sfti_lora_factors(lora, m, &work, &up, &down, err);
    if (!code) code = sfti_lowrank_of_product(&up, &down, NULL, arena, &found, err);
    sfti_arena_free(&work);
    if (code) return code;
    *out = found.spectrum;
    for (size_t k = 0; k < out->count; k++) out->at[k] *= size;
    out->norm *= size;
    if (out->count > m->rank) out->count = (size_t)m->rank;
    return SFT_OK;
}
