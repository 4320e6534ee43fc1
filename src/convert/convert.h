/* Casts as chains of stages over packed little-endian elements. A source is brought to a hub
 * that holds all its values exactly (F32, F64, I64 or U64), a hub to the target with one
 * rounding; elements under 8 bits are unpacked to bytes before and packed after. */
#ifndef SFTI_CONVERT_H
#define SFTI_CONVERT_H

#include "safetensors_convert.h"

typedef struct sfti_cast sfti_cast;

/* n elements from `in` to `out`, which do not overlap. Returns n, or the place of the first
 * that has no place in the target. */
typedef size_t (*sfti_cast_fn)(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);

/* What there is more than one variant of. */
typedef struct sfti_cast_kernels {
    sfti_cast_fn f16_to_f32, bf16_to_f32;
    sfti_cast_fn f32_to_f16, f32_to_bf16, f32_to_small;
    sfti_cast_fn look_8, look_16, look_32;
} sfti_cast_kernels;

/* What a test can forbid. */
enum { SFTI_CAST_NO_AVX512 = 1, SFTI_CAST_NO_VBMI = 2, SFTI_CAST_NO_AVX2 = 4 };

void sfti_cast_kernels_fill(sfti_cast_kernels *kernels, unsigned forbid);
/* Replace what the processor has something better for; false where it has nothing. */
bool sfti_cast_kernels_avx2(sfti_cast_kernels *kernels);
bool sfti_cast_kernels_avx512(sfti_cast_kernels *kernels, bool vbmi);

/* A float of at most 16 bits. Codes are without the sign, which is the bit above. */
typedef struct sfti_float {
    uint32_t bits, mantissa, bias;
    uint32_t greatest; /* finite */
    uint32_t over;     /* what is rounded beyond it becomes */
    uint32_t infinity; /* what an infinity becomes */
    uint32_t nan;      /* 0: there is none */
    bool is_fnuz;      /* no negative zero; NaN is the code that it would have */
} sfti_float;

/* NULL for what is no float of at most 16 bits; F8_E8M0 is none of these. */
const sfti_float *sfti_float_of(sft_dtype dtype);

#define SFTI_CAST_STAGES 5
#define SFTI_CAST_BLOCK 512 /* elements; a multiple of 8; 16 bytes of stack for each */

struct sfti_cast {
    sft_dtype from, to;
    bool saturate;
    sfti_float small; /* the target of f32_to_f16 and f32_to_small */
    size_t count;     /* stages; 0: a copy */
    sfti_cast_fn stages[SFTI_CAST_STAGES];
    uint32_t out_bits[SFTI_CAST_STAGES]; /* of an element behind each stage */
    uint16_t table[256];                 /* of look_... */
};

/* Whether the dtype can be cast from and to; for a number outside the enum, false. */
bool sfti_cast_has_stages(sft_dtype dtype);
/* The cast must exist. */
void sfti_cast_begin(sfti_cast *cast, const sfti_cast_kernels *kernels, sft_dtype from,
                     sft_dtype to, bool saturate);
/* n elements that fill whole bytes on both sides. Returns as a stage does. */
uint64_t sfti_cast_run(const sfti_cast *cast, const uint8_t *in, uint8_t *out, uint64_t n);
/* What stands at `element` of `in` has no place in the target. */
sft_code sfti_cast_refuse(const sfti_cast *cast, const uint8_t *in, uint64_t at,
                          uint64_t element, sft_error *err);

/* ── Stages in portable C ── */

size_t sfti_f16_to_f32(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_bf16_to_f32(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
/* To cast->small, in 16 bits. */
size_t sfti_f32_to_f16(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_f32_to_bf16(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
/* To cast->small, a byte each. */
size_t sfti_f32_to_small(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_f32_to_e8m0(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_f32_to_f64(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
/* Bytes to cast->table: its low byte, all of it, all of it as the high half. */
size_t sfti_look_8(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_look_16(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_look_32(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);

/* A code of a float of at most 8 bits (F8_E8M0 too) as BF16, which holds all of them. */
uint16_t sfti_code_to_bf16(sft_dtype dtype, uint8_t code);

size_t sfti_unpack_4(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_unpack_6(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_pack_4(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_pack_6(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);

/* Hub to hub of 32 bits: rounded to the nearest, or to the odd neighbour, from which a float
 * of at most 22 bits of precision is then rounded as if there had been no step between. */
size_t sfti_f64_to_f32(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_f64_to_odd(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_i64_to_f32(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_i64_to_odd(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_u64_to_f32(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_u64_to_odd(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_i64_to_f64(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_u64_to_f64(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);

/* BOOL and integers to their hub; the hubs to cast->to, an integer. */
size_t sfti_int_to_i64(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_i64_to_int(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_u64_to_int(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_f64_to_int(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
/* Not zero: of four bytes with a sign, of eight with a sign, of eight. */
size_t sfti_f32_to_bool(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_f64_to_bool(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_i64_to_bool(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);

/* ── Scales ── */

/* What a tensor of a set belongs to: its scale, or the tensor that it scales; NULL, and the
 * action untouched, for a tensor by itself. */
const sft_tensor *sfti_scale_find(const sft_set *set, const sft_tensor *tensor,
                                    sft_convert_action *action);

#endif
