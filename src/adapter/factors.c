/* Matrices of adapters in memory, and their products. */
#include "adapter/adapter.h"

#include "base/checked.h"
#include "base/cpu.h"
#include "base/endian.h"
#include "base/error.h"
#include "label/info.h"
#include "safetensors_cast.h"

#include <string.h>

/* ── Reading ── */

static bool is_exchanged(const sft_tensor *tensor) {
    static const char *const ends[] = { ".lora_embedding_A", ".lora_embedding_B" };
    return tensor->rank == 2 && SFTI_ONE_OF(tensor->name, ends, sfti_ends);
}

bool sfti_lora_shape(const sft_tensor *tensor, uint64_t *rows, uint64_t *cols) {
    uint64_t first = tensor->rank > 0 ? tensor->shape[0] : 1, rest = 1, all;
    for (uint32_t i = 1; i < tensor->rank; i++)
        if (!sfti_mul(rest, tensor->shape[i], &rest)) return false;
    if (!sfti_mul(first, rest, &all) || all == 0) return false;
    bool exchanged = is_exchanged(tensor);
    *rows = exchanged ? rest : first;
    *cols = exchanged ? first : rest;
    return true;
}

void sfti_floats_turn(float *values, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        uint32_t word = sfti_get_u32(&values[i]);
        memcpy(&values[i], &word, sizeof word);
    }
}

sft_code sfti_lora_read(const sft_set *set, const sft_tensor *tensor, uint64_t first,
                        uint64_t count, float *into, sft_error *err) {
    uint64_t bits = sft_dtype_describe(tensor->dtype)->bits;
    uint8_t buffer[8192];
    size_t shard;
    (void)sft_set_find(set, tensor->name, &shard);
    const sft_file *file = sft_set_shard_at(set, shard);
    if (bits < 8 || !sft_cast_exists(tensor->dtype, SFT_F32))
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, tensor->offset, tensor->name,
                                "expected floats of 8 bits or more, found %s",
                                sft_dtype_describe(tensor->dtype)->name);
    uint64_t each = sizeof buffer / (bits / 8);
    for (uint64_t done = 0; done < count;) {
        uint64_t n = count - done < each ? count - done : each;
        uint64_t at = tensor->offset + (first + done) * (bits / 8);
        sft_code code = sft_read_bytes(file, at, buffer, (size_t)(n * (bits / 8)), err);
        if (!code) code = sft_cast(tensor->dtype, buffer, SFT_F32, into + done, n, NULL, NULL, err);
        if (code) {
            if (err) sfti_error_tensor(err, tensor->name);
            return code;
        }
        sfti_floats_turn(into + done, n);
        for (uint64_t i = done; i < done + n; i++) {
            uint32_t word;
            memcpy(&word, into + i, sizeof word);
            if ((word & 0x7f800000) != 0x7f800000) continue;
            return sfti_fail_tensor(err, SFT_CAST_VALUE, at + (i - done) * (bits / 8), tensor->name,
                                    "expected finite values, found %s at element %llu",
                                    word & 0x7fffff ? "NaN" : "an infinity",
                                    (unsigned long long)(first + i));
        }
        done += n;
    }
    return SFT_OK;
}

sft_code sfti_matrix_new(sfti_arena *arena, uint64_t rows, uint64_t cols, sfti_matrix *out,
                         sft_error *err) {
    uint64_t count = 0;
    if (!sfti_mul(rows, cols, &count) || count > SFTI_LORA_ELEMENTS)
        return sfti_fail(err, SFT_ADDRESS_SPACE,
                         "expected at most %llu elements in a matrix of an adapter, found %llu x "
                         "%llu", (unsigned long long)SFTI_LORA_ELEMENTS, (unsigned long long)rows,
                         (unsigned long long)cols);
    *out = (sfti_matrix){ rows, cols, sfti_arena_array(arena, count, sizeof(float)) };
    if (!out->at) return sfti_fail_memory(err, count * sizeof(float));
    memset(out->at, 0, (size_t)count * sizeof(float));
    return SFT_OK;
}

sft_code sfti_lora_load(const sft_set *set, const sft_tensor *tensor, sfti_arena *arena,
                        sfti_matrix *out, sft_error *err) {
    uint64_t rows = 0, cols = 0;
    sfti_matrix stored;
    (void)sfti_lora_shape(tensor, &rows, &cols);
    sft_code code = sfti_matrix_new(arena, rows, cols, out, err);
    if (!code) code = sfti_lora_read(set, tensor, 0, rows * cols, out->at, err);
    if (code || !is_exchanged(tensor)) return code;
    stored = *out;
    code = sfti_matrix_new(arena, rows, cols, out, err);
    for (uint64_t i = 0; !code && i < rows; i++)
        for (uint64_t j = 0; j < cols; j++)
            out->at[i * cols + j] = stored.at[j * rows + i];
    return code;
}

/* ── Products ── */

/* Columns at a time: so many of `b` stay in a core's cache for all rows. */
#define PRODUCT_COLUMNS 512
#define PACKED_ROWS 224 /* of sixteen columns of `b`, side by side: 14 KiB */
#define PACKED_FOR 128  /* rows of `a` */

/* A multiplication and an addition apart, in every variant: contracted, the sums would depend on
 * the processor. */
static void add_product_portable(const float *a, size_t stride, const float *b, size_t b_stride,
                                 size_t rows, size_t inner, size_t cols, float factor, float *into,
                                 size_t into_stride) {
    float sums[16];
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j += 16) {
            size_t n = cols - j < 16 ? cols - j : 16;
            memset(sums, 0, sizeof sums);
            for (size_t k = 0; k < inner; k++) {
                float one = a[i * stride + k];
                const float *from = b + k * b_stride + j;
                for (size_t l = 0; l < n; l++) {
                    float product = one * from[l];
                    sums[l] += product;
                }
            }
            for (size_t l = 0; l < n; l++) {
                float product = factor * sums[l];
                into[i * into_stride + j + l] += product;
            }
        }
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define A256 __attribute__((target("avx2")))

A256 static inline __m256 a256_step(__m256 sum, __m256 a, __m256 b) {
    return _mm256_add_ps(sum, _mm256_mul_ps(a, b));
}

A256 static inline void a256_store(float *into, __m256 factor, __m256 sum) {
    _mm256_storeu_ps(into, a256_step(_mm256_loadu_ps(into), factor, sum));
}

/* Four rows by sixteen columns in registers. */
A256 static void add_tiles(const float *a, size_t stride, const float *b, size_t b_stride,
                           size_t rows, size_t inner, __m256 by, float *into, size_t into_stride) {
    for (size_t i = 0; i < rows; i += 4) {
        const float *from = b, *row = a + i * stride;
        float *to = into + i * into_stride;
        __m256 s[8];
        for (int l = 0; l < 8; l++) s[l] = _mm256_setzero_ps();
        for (size_t k = 0; k < inner; k++, from += b_stride) {
            __m256 low = _mm256_loadu_ps(from), high = _mm256_loadu_ps(from + 8);
            for (size_t l = 0; l < 4; l++) {
                __m256 one = _mm256_broadcast_ss(row + l * stride + k);
                s[2 * l] = a256_step(s[2 * l], one, low);
                s[2 * l + 1] = a256_step(s[2 * l + 1], one, high);
            }
        }
        for (size_t l = 0; l < 4; l++) {
            a256_store(to + l * into_stride, by, s[2 * l]);
            a256_store(to + l * into_stride + 8, by, s[2 * l + 1]);
        }
    }
}

/* Strips of sixteen columns are copied: rows far apart would drive one another out of the cache. */
A256 static void add_product_avx2(const float *a, size_t stride, const float *b, size_t b_stride,
                                  size_t rows, size_t inner, size_t cols, float factor, float *into,
                                  size_t into_stride) {
    const __m256 by = _mm256_set1_ps(factor);
    size_t whole = rows & ~(size_t)3, wide = cols & ~(size_t)15;
    float packed[PACKED_ROWS * 16];
    for (size_t i = 0; i < whole; i += PACKED_FOR)
        for (size_t j = 0; j < wide; j += 16) {
            size_t count = whole - i < PACKED_FOR ? whole - i : PACKED_FOR;
            bool pack = inner <= PACKED_ROWS && count >= 16;
            for (size_t k = 0; pack && k < inner; k++)
                memcpy(packed + k * 16, b + k * b_stride + j, 16 * sizeof *b);
            add_tiles(a + i * stride, stride, pack ? packed : b + j, pack ? 16 : b_stride, count,
                      inner, by, into + i * into_stride + j, into_stride);
        }
    if (wide < cols)
        add_product_portable(a, stride, b + wide, b_stride, whole, inner, cols - wide, factor,
                             into + wide, into_stride);
    if (whole < rows)
        add_product_portable(a + whole * stride, stride, b, b_stride, rows - whole, inner, cols,
                             factor, into + whole * into_stride, into_stride);
}
#else
#define add_product_avx2 add_product_portable
#endif

void sfti_matrix_add_product(const float *a, uint64_t stride, const float *b, uint64_t rows,
                             uint64_t inner, uint64_t cols, float factor, float *into) {
    /* the matrices are in memory, so that their sizes are sizes */
    size_t width = (size_t)cols, height = (size_t)rows;
    bool wide = sfti_cpu_has(SFTI_CPU_AVX2);
    for (size_t j = 0; j < width; j += PRODUCT_COLUMNS) {
        size_t n = width - j < PRODUCT_COLUMNS ? width - j : PRODUCT_COLUMNS;
        (wide ? add_product_avx2 : add_product_portable)(a, (size_t)stride, b + j, width, height,
                                                         (size_t)inner, n, factor, into + j, width);
    }
}
