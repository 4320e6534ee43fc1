/* Matrices of adapters in memory, and their products. */
#include "adapter/adapter.h"

#include "base/checked.h"
#include "base/cpu.h"
#include "base/endian.h"
#include "base/error.h"
#include "bytes/source.h"
#include "safetensors_cast.h"
#include "set/image.h"

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

uint64_t sfti_lora_width(const sft_tensor *tensor) {
    uint64_t bytes = sft_dtype_describe(tensor->dtype)->bits / 8;
    return bytes > sizeof(float) ? bytes : sizeof(float);
}

sft_code sfti_lora_elements(const sft_set *set, const sft_file *file, const sft_tensor *tensor,
                            uint64_t first, uint64_t count, uint8_t *raw, float *into,
                            sft_error *err) {
    const sft_source *values = sfti_image_values(set, tensor);
    sft_dtype dtype = values ? SFT_F32 : tensor->dtype;
    uint64_t bytes = sft_dtype_describe(dtype)->bits / 8, at = first * bytes;
    size_t len = (size_t)(count * bytes);
    sft_code code = values ? sfti_source_all(values, at, raw, len, err)
                           : sft_read_bytes(file, tensor->offset + at, raw, len, err);
    if (!code) code = sft_cast(dtype, raw, SFT_F32, into, count, NULL, NULL, err);
    if (code && err) sfti_error_tensor(err, tensor->name);
    if (!code) sfti_floats_turn(into, count);
    return code;
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
    uint64_t each = sizeof buffer / sfti_lora_width(tensor);
    for (uint64_t done = 0; done < count;) {
        uint64_t n = count - done < each ? count - done : each;
        uint64_t at = tensor->offset + (first + done) * (bits / 8);
        sft_code code = sfti_lora_elements(set, file, tensor, first + done, n, buffer, into + done,
                                           err);
        if (code) return code;
        bool finite = sfti_floats_greatest(into + done, n) < 0x7f800000;
        for (uint64_t i = done; !finite && i < done + n; i++) {
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

sft_code sfti_matrix_take(sfti_arena *arena, uint64_t rows, uint64_t cols, sfti_matrix *out,
                          sft_error *err) {
    uint64_t count = 0;
    if (!sfti_mul(rows, cols, &count) || count > SFTI_LORA_ELEMENTS)
        return sfti_fail(err, SFT_ADDRESS_SPACE,
                         "expected at most %llu elements in a matrix of an adapter, found %llu x "
                         "%llu", (unsigned long long)SFTI_LORA_ELEMENTS, (unsigned long long)rows,
                         (unsigned long long)cols);
    *out = (sfti_matrix){ rows, cols, sfti_arena_array(arena, count, sizeof(float)) };
    return out->at ? SFT_OK : sfti_fail_memory(err, count * sizeof(float));
}

sft_code sfti_matrix_new(sfti_arena *arena, uint64_t rows, uint64_t cols, sfti_matrix *out,
                         sft_error *err) {
    sft_code code = sfti_matrix_take(arena, rows, cols, out, err);
    if (!code) memset(out->at, 0, (size_t)(rows * cols) * sizeof(float));
    return code;
}

sft_code sfti_lora_load(const sft_set *set, const sft_tensor *tensor, sfti_arena *arena,
                        sfti_matrix *out, sft_error *err) {
    uint64_t rows = 0, cols = 0;
    sfti_matrix stored;
    (void)sfti_lora_shape(tensor, &rows, &cols);
    sft_code code = sfti_matrix_take(arena, rows, cols, out, err);
    if (!code) code = sfti_lora_read(set, tensor, 0, rows * cols, out->at, err);
    if (code || !is_exchanged(tensor)) return code;
    stored = *out;
    code = sfti_matrix_take(arena, rows, cols, out, err);
    for (uint64_t i = 0; !code && i < rows; i++)
        for (uint64_t j = 0; j < cols; j++)
            out->at[i * cols + j] = stored.at[j * rows + i];
    return code;
}

/* ── Products ── */

/* Columns of `b` are packed some at a time, so that they stay in a core's first cache for all rows
 * and do not fall upon one another in it. */
#define PACKED ((size_t)3072)       /* elements */
#define PANEL_COLUMNS ((size_t)128) /* columns at most */

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

static uint32_t greatest_portable(const float *values, size_t count) {
    int32_t most = 0;
    for (size_t i = 0; i < count; i++) {
        int32_t word;
        memcpy(&word, values + i, sizeof word);
        word &= 0x7fffffff;
        if (word > most) most = word;
    }
    return (uint32_t)most;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define A256 __attribute__((target("avx2")))
#define A512 __attribute__((target("avx512f")))

/* ROWS rows by twice LANES columns in registers; what is left over by REST. */
#define ADD_PRODUCT(NAME, TARGET, V, P, ROWS, LANES, REST)                                       \
    TARGET static void NAME(const float *a, size_t stride, const float *b, size_t b_stride,      \
                            size_t rows, size_t inner, size_t cols, float factor, float *into,   \
                            size_t into_stride) {                                                \
        const V by = P##_set1_ps(factor);                                                        \
        size_t whole = rows - rows % ROWS, wide = cols & ~(size_t)(2 * LANES - 1);               \
        for (size_t i = 0; i < whole; i += ROWS)                                                 \
            for (size_t j = 0; j < wide; j += 2 * LANES) {                                       \
                const float *from = b + j, *row = a + i * stride;                                \
                V low[ROWS], high[ROWS];                                                         \
                for (size_t l = 0; l < ROWS; l++) low[l] = high[l] = P##_setzero_ps();           \
                for (size_t k = 0; k < inner; k++, from += b_stride) {                           \
                    V one = P##_loadu_ps(from), two = P##_loadu_ps(from + LANES);                \
                    for (size_t l = 0; l < ROWS; l++) {                                          \
                        V by_row = P##_set1_ps(row[l * stride + k]);                             \
                        low[l] = P##_add_ps(low[l], P##_mul_ps(by_row, one));                    \
                        high[l] = P##_add_ps(high[l], P##_mul_ps(by_row, two));                  \
                    }                                                                            \
                }                                                                                \
                for (size_t l = 0; l < ROWS; l++) {                                              \
                    float *to = into + (i + l) * into_stride + j;                                \
                    V sum = P##_add_ps(P##_loadu_ps(to), P##_mul_ps(by, low[l]));                \
                    P##_storeu_ps(to, sum);                                                      \
                    sum = P##_add_ps(P##_loadu_ps(to + LANES), P##_mul_ps(by, high[l]));         \
                    P##_storeu_ps(to + LANES, sum);                                              \
                }                                                                                \
            }                                                                                    \
        if (wide < cols)                                                                         \
            REST(a, stride, b + wide, b_stride, whole, inner, cols - wide, factor, into + wide,  \
                 into_stride);                                                                   \
        if (whole < rows)                                                                        \
            REST(a + whole * stride, stride, b, b_stride, rows - whole, inner, cols, factor,     \
                 into + whole * into_stride, into_stride);                                       \
    }
ADD_PRODUCT(add_product_sse, , __m128, _mm, 4, 4, add_product_portable)
ADD_PRODUCT(add_product_avx2, A256, __m256, _mm256, 4, 8, add_product_sse)
ADD_PRODUCT(add_product_avx512, A512, __m512, _mm512, 8, 16, add_product_avx2)

A256 static uint32_t greatest_avx2(const float *values, size_t count) {
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    __m256i most[2] = { _mm256_setzero_si256(), _mm256_setzero_si256() };
    float found[16];
    size_t i = 0;
    for (; i + 16 <= count; i += 16)
        for (size_t l = 0; l < 2; l++) {
            __m256i word = _mm256_castps_si256(_mm256_loadu_ps(values + i + 8 * l));
            most[l] = _mm256_max_epi32(most[l], _mm256_and_si256(word, mask));
        }
    for (size_t l = 0; l < 2; l++) _mm256_storeu_ps(found + 8 * l, _mm256_castsi256_ps(most[l]));
    uint32_t rest = greatest_portable(values + i, count - i), all = greatest_portable(found, 16);
    return rest > all ? rest : all;
}
#else
#define add_product_avx2 add_product_portable
#define add_product_avx512 add_product_portable
#define greatest_avx2 greatest_portable
#endif

uint32_t sfti_floats_greatest(const float *values, uint64_t count) {
    return (sfti_cpu_has(SFTI_CPU_AVX2) ? greatest_avx2 : greatest_portable)(values, (size_t)count);
}

void sfti_matrix_add_product(const float *a, uint64_t stride, const float *b, uint64_t rows,
                             uint64_t inner, uint64_t cols, float factor, float *into) {
    /* the matrices are in memory, so that their sizes are sizes */
    size_t width = (size_t)cols, height = (size_t)rows, depth = (size_t)inner;
    float packed[PACKED];
    bool packs = depth > 0 && PACKED / depth >= 32 && height >= 16;
    size_t panel = packs ? PACKED / depth & ~(size_t)31 : PANEL_COLUMNS;
    if (panel > PANEL_COLUMNS) panel = PANEL_COLUMNS;
    for (size_t j = 0; j < width; j += panel) {
        size_t n = width - j < panel ? width - j : panel;
        const float *from = b + j;
        for (size_t k = 0; packs && k < depth; k++)
            memcpy(packed + k * n, from + k * width, n * sizeof *packed);
        (sfti_cpu_has(SFTI_CPU_AVX512F) ? add_product_avx512
         : sfti_cpu_has(SFTI_CPU_AVX2) ? add_product_avx2 : add_product_portable)(
            a, (size_t)stride, packs ? packed : from, packs ? n : width, height, depth, n, factor,
            into + j, width);
    }
}
