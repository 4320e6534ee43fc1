/* The optimum of a lower rank of a matrix that is seen in blocks of rows, by a randomised range
 * finder (Halko, Martinsson, Tropp 2011, algorithm 4.4). Tests: test_lowrank.c,
 * tests/adapter/factors.py. */
#include "adapter/tall.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/number.h"

#include <string.h>

#define ITERATIONS 2
#define OVER 8        /* vectors beyond the rank, */
#define MULTIPLE 16   /* and up to a multiple of what products have in registers */
#define FIRST 48      /* where a rule decides */
#define INNER 224     /* of a product at a time: sums in F32 stay short, and rows are packed */
#define BLOCK_BYTES ((uint64_t)4 << 20)
#define VECTOR_LEAST 1e-6
#define AGAIN 1e-2    /* a direction below this is made orthogonal once more */
#define SEED UINT64_C(0x9e3779b97f4a7c15)

typedef struct finder {
    const sfti_row_matrix *rows;
    sfti_arena arena;
    uint64_t block_rows, width, found; /* vectors that are tried, and that are independent */
    float *kept;    /* all rows, or NULL */
    bool is_kept;   /* they are read */
    float *block;
    float *y, *q, *z; /* rows x width, width x rows, cols x width or width x cols */
    double *numbers, *by, *r, *g, *work, *result;
    double squares;
} finder;

static double absolute(double value) {
    return value < 0 ? -value : value;
}

/* ── Passes ── */

static sft_code rows_at(finder *f, uint64_t first, uint64_t count, float **out, sft_error *err) {
    float *into = f->kept ? f->kept + first * f->rows->cols : f->block;
    *out = into;
    if (f->is_kept) return SFT_OK;
    memset(into, 0, (size_t)(count * f->rows->cols) * sizeof *into);
    return f->rows->read(f->rows->ctx, first, count, into, err);
}

static sft_code beyond_floats(const char *what, sft_error *err) {
    return sfti_fail(err, SFT_CAST_VALUE,
                     "expected values whose sums F32 can hold, found %s ones", what);
}

/* y = A z (z of cols x width), or z = q A with q of width x rows. */
static sft_code pass(finder *f, bool forward, bool sums, sft_error *err) {
    uint64_t n = f->rows->cols, m = f->rows->rows, width = f->found;
    memset(forward ? f->y : f->z, 0, (size_t)((forward ? m : n) * width) * sizeof(float));
    for (uint64_t first = 0; first < m; first += f->block_rows) {
        uint64_t count = m - first < f->block_rows ? m - first : f->block_rows;
        float *a;
        sft_code code = rows_at(f, first, count, &a, err);
        if (code) return code;
        for (uint64_t i = 0; sums && i < count; i++) {
            double sum = 0;
            for (uint64_t j = 0; j < n; j++) {
                double one = (double)a[i * n + j];
                sum += one * one;
            }
            f->squares += sum;
        }
        for (uint64_t k = 0; k < (forward ? n : count); k += INNER) {
            uint64_t inner = (forward ? n : count) - k;
            if (inner > INNER) inner = INNER;
            if (forward)
                sfti_matrix_add_product(a + k, n, f->z + k * width, count, inner, width, 1,
                                        f->y + first * width);
            else
                sfti_matrix_add_product(f->q + first + k, m, a + k * n, width, inner, n, 1, f->z);
        }
    }
    if (f->kept) f->is_kept = true;
    return sfti_floats_greatest(forward ? f->y : f->z, (forward ? m : n) * width) < 0x7f800000
               ? SFT_OK : beyond_floats("larger", err);
}

/* x, whose columns become orthonormal, in into. Directions that are not there are left out. */
static void orthonormal(finder *f, sfti_tall x, bool across, float *into) {
    for (int round = 0; round < 2; round++) {
        size_t n = (size_t)x.width;
        sfti_tall_gram(&x, f->numbers, f->g);
        size_t found = sfti_dense_cholesky(f->g, n, VECTOR_LEAST, f->r, f->by, f->work);
        double most = 0, least = 0;
        for (size_t i = 0; i < found; i++) { /* the chosen one of a row is its greatest */
            double greatest = 0;
            for (size_t j = 0; j < n; j++)
                if (absolute(f->r[i * n + j]) > greatest) greatest = absolute(f->r[i * n + j]);
            if (i == 0) most = greatest;
            least = greatest;
        }
        sfti_tall_times(&x, f->by, found, f->numbers, f->result, across, into);
        f->found = found;
        if (least > AGAIN * most || found == 0) return;
        x = (sfti_tall){ into, x.length, found, across };
    }
}

/* About normal: the sum of four even numbers. */
static void draw_column(float *into, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        uint64_t x = SEED * (i + 1);
        x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
        x ^= x >> 31;
        int64_t sum = (int64_t)(x & 0xffff) + (int64_t)(x >> 16 & 0xffff)
                    + (int64_t)(x >> 32 & 0xffff) + (int64_t)(x >> 48) - 2 * 65535;
        into[i] = (float)sum / 65536;
    }
}

static sft_code find(finder *f, sft_error *err) {
    uint64_t m = f->rows->rows, n = f->rows->cols;
    f->found = f->width;
    draw_column(f->z, n * f->width);
    sft_code code = pass(f, true, !f->is_kept && !(f->squares > 0), err);
    if (!code) orthonormal(f, (sfti_tall){ f->y, m, f->found, false }, true, f->q);
    for (int i = 0; !code && f->found > 0 && i < ITERATIONS; i++) {
        code = pass(f, false, false, err);
        /* from width x cols to cols x width, through y's place if that is longer */
        float *turned = f->block + f->block_rows * n;
        if (!code) orthonormal(f, (sfti_tall){ f->z, n, f->found, true }, false, turned);
        if (!code) memcpy(f->z, turned, (size_t)(n * f->found) * sizeof *f->z);
        if (!code && f->found > 0) code = pass(f, true, false, err);
        if (!code) orthonormal(f, (sfti_tall){ f->y, m, f->found, false }, true, f->q);
    }
    return !code && f->found > 0 ? pass(f, false, false, err) : code;
}

/* ── All ── */

static sft_code size_blocks(finder *f, sft_error *err) {
    uint64_t m = f->rows->rows, n = f->rows->cols, width = f->width, all = 0, wide = 0;
    if (!sfti_mul(m, n, &all) || !sfti_mul(m > n ? m : n, width, &wide)
        || wide > SFTI_LORA_ELEMENTS || n > SFTI_LORA_ELEMENTS)
        return sfti_fail(err, SFT_ADDRESS_SPACE, "expected a layer whose factors have at most %llu "
                         "elements, found %llu x %llu", (unsigned long long)SFTI_LORA_ELEMENTS,
                         (unsigned long long)m, (unsigned long long)n);
    f->block_rows = BLOCK_BYTES / sizeof(float) / n & ~UINT64_C(3);
    if (f->block_rows < 4) f->block_rows = 4;
    if (f->block_rows > m) f->block_rows = m;
    if (!f->kept && all <= SFTI_ROWS_KEPT) {
        f->kept = sfti_arena_array(&f->arena, all, sizeof *f->kept);
        if (!f->kept) return sfti_fail_memory(err, all * sizeof *f->kept);
    }
    return SFT_OK;
}

static sft_code take_vectors(finder *f, sfti_arena *arena, sft_error *err) {
    uint64_t m = f->rows->rows, n = f->rows->cols, width = f->width;
    uint64_t block = f->block_rows * n; /* and behind it a turned z */
    f->block = sfti_arena_array(arena, block + n * width, sizeof *f->block);
    f->y = sfti_arena_array(arena, m * width, sizeof *f->y);
    f->q = sfti_arena_array(arena, m * width, sizeof *f->q);
    f->z = sfti_arena_array(arena, n * width, sizeof *f->z);
    f->numbers = sfti_tall_numbers(arena, 64, width, err);
    f->result = sfti_tall_numbers(arena, 64, width, err);
    f->by = sfti_tall_numbers(arena, width, width, err);
    f->r = sfti_tall_numbers(arena, width, width, err);
    f->g = sfti_tall_numbers(arena, width, width, err);
    f->work = sfti_tall_numbers(arena, 2, width, err);
    if (f->block && f->y && f->q && f->z && f->numbers && f->result && f->by && f->r && f->g
        && f->work)
        return SFT_OK;
    return sfti_fail_memory(err, (2 * m + 2 * n) * width * sizeof *f->y);
}

static sft_code zeros(const finder *f, sfti_arena *arena, sfti_lowrank *out, sft_error *err) {
    sft_code code = sfti_matrix_new(arena, f->rows->rows, 1, &out->up, err);
    if (!code) code = sfti_matrix_new(arena, 1, f->rows->cols, &out->down, err);
    out->spectrum.at = sfti_arena_array(arena, 1, sizeof *out->spectrum.at);
    if (!code && !out->spectrum.at) return sfti_fail_memory(err, sizeof *out->spectrum.at);
    if (!code) out->spectrum.at[0] = 0;
    out->spectrum.count = (size_t)(out->spectrum.all = 1);
    out->spectrum.norm = out->lost = 0;
    return code;
}

sft_code sfti_lowrank_of_rows(const sfti_row_matrix *rows, const sfti_rank_rule *rule,
                              sfti_arena *arena, sfti_lowrank *out, sft_error *err) {
    finder f = { .rows = rows, .arena = { .alloc = arena->alloc } };
    uint64_t least = rows->rows < rows->cols ? rows->rows : rows->cols;
    uint64_t rank = rule->most && rule->most < least ? rule->most : least;
    uint64_t start = rule->by == SFTI_RANK_ALL || rank + OVER < FIRST ? rank + OVER : FIRST;
    bool decided = false;
    sft_code code = SFT_OK;
    memset(out, 0, sizeof *out);
    for (f.width = start; !code && !decided; f.width *= 2) {
        sfti_arena vectors = { .alloc = arena->alloc };
        f.width = (f.width + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
        if (f.width > least) f.width = least;
        if (f.width > SFTI_RANK_MOST + OVER + MULTIPLE) {
            code = sfti_fail(err, SFT_CAST_VALUE, "expected a rule that %d singular values "
                             "answer, found one that asks for more; a rank beside it limits it",
                             SFTI_RANK_MOST);
            break;
        }
        code = size_blocks(&f, err);
        if (!code) code = take_vectors(&f, &vectors, err);
        if (!code) code = find(&f, err);
        if (!code && f.found == 0 && f.squares > 0) code = beyond_floats("smaller", err);
        else if (!code && f.found == 0) {
            code = zeros(&f, arena, out, err);
            decided = true;
        } else if (!code) {
            sfti_tall p = { f.q, rows->rows, f.found, true };
            sfti_tall q = { f.z, rows->cols, f.found, true };
            /* fewer directions than were tried: there are no more */
            bool exact = f.found < f.width || f.width == least;
            code = sfti_tall_product(&p, &q, sfti_root(f.squares), exact, rule, arena, &decided,
                                     out, err);
        }
        sfti_arena_free(&vectors);
    }
    sfti_arena_free(&f.arena);
    return code;
}
