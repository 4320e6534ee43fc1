/* Casts as chains of stages over packed little-endian elements. The source is converted exactly to
 * a hub that holds all its values (F32, F64, I64 or U64), then the hub to the target with one
 * rounding. Elements under 8 bits are unpacked to bytes first and packed last. */
#ifndef SFTI_CONVERT_H
#define SFTI_CONVERT_H

#include "quant/declared.h"
#include "safetensors_convert.h"

typedef struct sfti_cast sfti_cast;

/* Casts n elements from `in` to `out`, which do not overlap. Returns n, or the index of the first
 * element that the target cannot represent. */
typedef size_t (*sfti_cast_fn)(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);

/* How many of n F32 at `in` are zero, at most `tiny`, at least `over`, by the bits of their
 * magnitude. */
typedef void (*sfti_bounds_fn)(const uint8_t *in, size_t n, uint32_t tiny, uint32_t over,
                               uint32_t counts[3]);

/* Stages with variants for some processors. */
typedef struct sfti_cast_kernels {
    sfti_cast_fn f16_to_f32, bf16_to_f32;
    sfti_cast_fn f32_to_f16, f32_to_bf16, f32_to_small;
    sfti_cast_fn look_8, look_16, look_32;
    sfti_bounds_fn f32_bounds;
} sfti_cast_kernels;

/* Variants a test can disable. */
enum {
    SFTI_CAST_NO_AVX512 = 1,
    SFTI_CAST_NO_VBMI = 2,
    SFTI_CAST_NO_AVX2 = 4,
    SFTI_CAST_NO_NEON = 8,
    SFTI_CAST_PORTABLE = SFTI_CAST_NO_AVX512 | SFTI_CAST_NO_AVX2 | SFTI_CAST_NO_NEON
};

void sfti_cast_kernels_fill(sfti_cast_kernels *kernels, unsigned forbid);
/* Replaces the stages for which the processor has faster instructions; false if there are none. */
bool sfti_cast_kernels_avx2(sfti_cast_kernels *kernels);
bool sfti_cast_kernels_avx512(sfti_cast_kernels *kernels, bool vbmi);
bool sfti_cast_kernels_neon(sfti_cast_kernels *kernels);

/* A float of at most 16 bits. Codes exclude the sign, which is the bit above them. */
typedef struct sfti_float {
    uint32_t bits, mantissa, bias;
    uint32_t greatest; /* finite */
    uint32_t over;     /* the code for values that round beyond it */
    uint32_t infinity; /* the code for an infinity */
    uint32_t nan;      /* 0: there is none */
    bool is_fnuz;      /* no negative zero: its code is NaN */
} sfti_float;

/* NULL for dtypes that are not floats of at most 16 bits, and for F8_E8M0. */
const sfti_float *sfti_float_of(sft_dtype dtype);

#define SFTI_CAST_STAGES 5
#define SFTI_CAST_BLOCK 512 /* elements; a multiple of 8; 16 bytes of stack for each */

/* What a cast lost: of `nonzero` finite values. */
typedef struct sfti_losses {
    uint64_t nonzero, zeros, infinite, saturated;
} sfti_losses;

/* How it is counted: from what goes into one stage (loss.c). */
typedef struct sfti_losses_plan {
    size_t stage;
    uint32_t tiny, over;
    sfti_bounds_fn bounds;
    uint8_t kind;    /* 0: nothing can be lost, or nobody counts */
    bool clamps;     /* what is too large becomes the greatest */
    uint8_t of[256]; /* codes */
} sfti_losses_plan;

struct sfti_cast {
    sft_dtype from, to;
    bool saturate;
    sfti_float small; /* the target of f32_to_f16 and f32_to_small */
    size_t count;     /* stages; 0: a copy */
    sfti_cast_fn stages[SFTI_CAST_STAGES];
    uint32_t out_bits[SFTI_CAST_STAGES]; /* of an element after each stage */
    uint16_t table[256];                 /* for the look_... stages */
    sfti_losses_plan losses;
};

/* Whether the dtype can be cast from and to; for a number outside the enum, false. */
bool sfti_cast_has_stages(sft_dtype dtype);
/* The cast must exist. */
void sfti_cast_begin(sfti_cast *cast, const sfti_cast_kernels *kernels, sft_dtype from,
                     sft_dtype to, bool saturate);
/* Whether memory, not the processor, limits the cast: its stages are vector code that does little
 * with each element. kernels: as they were given to sfti_cast_begin. */
bool sfti_cast_is_light(const sfti_cast *cast, const sfti_cast_kernels *kernels);
/* The n elements fill whole bytes on both sides. Returns what a stage returns. losses: what is lost
 * is added, of a cast that sfti_losses_begin has had; or NULL. */
uint64_t sfti_cast_run(const sfti_cast *cast, const uint8_t *in, uint8_t *out, uint64_t n,
                       sfti_losses *losses);
/* After sfti_cast_begin, with the same kernels: losses will be counted. */
void sfti_losses_begin(sfti_cast *cast, const sfti_cast_kernels *kernels);
/* Adds what is lost of n elements that go into cast->losses.stage. */
void sfti_losses_count(const sfti_cast *cast, const uint8_t *in, size_t n, sfti_losses *losses);
void sfti_losses_add(sfti_losses *sum, const sfti_losses *more);
/* Fails for the element at index `at` of `in`, element number `element` of the tensor, which the
 * target cannot represent. */
sft_code sfti_cast_refuse(const sfti_cast *cast, const uint8_t *in, uint64_t at,
                          uint64_t element, sft_error *err);

/* ── Stages in portable C ── */

void sfti_f32_bounds(const uint8_t *in, size_t n, uint32_t tiny, uint32_t over,
                     uint32_t counts[3]);

size_t sfti_f16_to_f32(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_bf16_to_f32(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
/* To cast->small, in 16 bits. */
size_t sfti_f32_to_f16(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_f32_to_bf16(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
/* To cast->small, a byte each. */
size_t sfti_f32_to_small(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_f32_to_e8m0(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_f32_to_f64(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
/* Each byte is an index into cast->table; out is the entry's low byte, all of it, or all of it as
 * the high half of an F32. */
size_t sfti_look_8(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_look_16(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_look_32(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);

/* The code of an F32 in a target of at most 16 bits, by the portable stages. */
uint16_t sfti_cast_code(const sfti_cast *cast, uint32_t f32);
/* The value of a code of a float of at most 8 bits (F8_E8M0 too) as BF16, which is exact. */
uint16_t sfti_code_to_bf16(sft_dtype dtype, uint8_t code);

size_t sfti_unpack_4(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_unpack_6(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_pack_4(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_pack_6(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);

/* A 64-bit hub to F32, rounded to nearest or to odd. From a value rounded to odd, rounding on to a
 * float of at most 22 bits of precision gives what rounding once would have given. */
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
/* Whether the value is not zero; -0 is zero. */
size_t sfti_f32_to_bool(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_f64_to_bool(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);
size_t sfti_i64_to_bool(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n);

#endif
