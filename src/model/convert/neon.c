/* Casts with NEON, four elements at a time. Tests: test_convert.c. */
#include "base/cpu.h"
#include "convert/convert.h"

#if defined(SFTI_ARM)
#include <arm_neon.h>

/* Every processor of this kind has these instructions. What avx2.c does with eight elements is done
 * here with four, or twice four where the target is a byte; the rest is cast in portable C. */

static inline uint32x4_t neon_load(const uint8_t *at) {
    return vreinterpretq_u32_u8(vld1q_u8(at));
}

static inline uint16x4_t neon_load_halves(const uint8_t *at) {
    return vreinterpret_u16_u8(vld1_u8(at));
}

static inline void neon_store(uint8_t *at, uint32x4_t v) {
    vst1q_u8(at, vreinterpretq_u8_u32(v));
}

static inline void neon_store_halves(uint8_t *at, uint16x4_t v) {
    vst1_u8(at, vreinterpret_u8_u16(v));
}

static inline uint32x4_t neon_all(uint32_t value) {
    return vdupq_n_u32(value);
}

static inline uint32x4_t neon_magnitude(uint32x4_t v) {
    return vandq_u32(v, neon_all(0x7fffffff));
}

static size_t neon_bf16_to_f32(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        uint32x4_t v = vshll_n_u16(neon_load_halves(in + 2 * i), 16);
        uint32x4_t nan = vcgtq_u32(neon_magnitude(v), neon_all(0x7f800000));
        neon_store(out + 4 * i, vorrq_u32(v, vandq_u32(nan, neon_all(0x400000))));
    }
    return i + sfti_bf16_to_f32(cast, in + 2 * i, out + 4 * i, n - i);
}

static size_t neon_f16_to_f32(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        float16x4_t half = vreinterpret_f16_u16(neon_load_halves(in + 2 * i));
        neon_store(out + 4 * i, vreinterpretq_u32_f32(vcvt_f32_f16(half)));
    }
    return i + sfti_f16_to_f32(cast, in + 2 * i, out + 4 * i, n - i);
}

static size_t neon_f32_to_bf16(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    const uint32x4_t infinity = neon_all(0x7f800000), round = neon_all(0x7fff);
    const uint32x4_t over = neon_all(cast->saturate ? 0x7f7f : 0x7f80);
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        uint32x4_t v = neon_load(in + 4 * i), a = neon_magnitude(v), high = vshrq_n_u32(a, 16);
        uint32x4_t up = vaddq_u32(round, vandq_u32(high, neon_all(1)));
        uint32x4_t code = vshrq_n_u32(vaddq_u32(a, up), 16);
        uint32x4_t beyond = vandq_u32(vcltq_u32(a, infinity), vceqq_u32(code, neon_all(0x7f80)));
        code = vbslq_u32(beyond, over, code);
        code = vbslq_u32(vcgtq_u32(a, infinity), vorrq_u32(high, neon_all(0x40)), code);
        code = vorrq_u32(code, vandq_u32(vshrq_n_u32(v, 16), neon_all(0x8000)));
        neon_store_halves(out + 2 * i, vmovn_u32(code));
    }
    return i + sfti_f32_to_bf16(cast, in + 4 * i, out + 2 * i, n - i);
}

static size_t neon_f32_to_f16(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    const uint16x4_t most = vdup_n_u16(0x7bff), top = vdup_n_u16(0x7fff);
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        uint32x4_t v = neon_load(in + 4 * i);
        uint16x4_t code = vreinterpret_u16_f16(vcvt_f16_f32(vreinterpretq_f32_u32(v)));
        if (cast->saturate) {
            uint16x4_t finite = vmovn_u32(vcltq_u32(neon_magnitude(v), neon_all(0x7f800000)));
            uint16x4_t beyond = vceq_u16(vand_u16(code, top), vdup_n_u16(0x7c00));
            uint16x4_t limit = vorr_u16(vbic_u16(code, top), most);
            code = vbsl_u16(vand_u16(beyond, finite), limit, code);
        }
        neon_store_halves(out + 2 * i, code);
    }
    return i + sfti_f32_to_f16(cast, in + 4 * i, out + 2 * i, n - i);
}

/* x moved right by as many bits as `by` says. */
static inline uint32x4_t neon_right(uint32x4_t x, uint32x4_t by) {
    return vshlq_u32(x, vnegq_s32(vreinterpretq_s32_u32(by)));
}

/* See narrow_magnitude in floats.c. */
static inline uint32x4_t neon_narrow(const sfti_float *to, uint32x4_t a) {
    const uint32x4_t one = neon_all(1), least = neon_all(128 - to->bias);
    uint32x4_t exponent = vshrq_n_u32(a, 23);
    uint32x4_t below = vqsubq_u32(least, exponent), above = vqsubq_u32(exponent, least);
    uint32x4_t whole = vorrq_u32(vandq_u32(a, neon_all(0x7fffff)), neon_all(0x800000));
    uint32x4_t s = vminq_u32(vaddq_u32(below, neon_all(23 - to->mantissa)), neon_all(31));
    uint32x4_t half = vshlq_u32(one, vreinterpretq_s32_u32(vsubq_u32(s, one)));
    uint32x4_t odd = vandq_u32(neon_right(whole, s), one);
    whole = vaddq_u32(whole, vaddq_u32(vsubq_u32(half, one), odd));
    above = vshlq_u32(above, vdupq_n_s32((int32_t)to->mantissa));
    return vaddq_u32(neon_right(whole, s), above);
}

/* The codes of four elements, with their signs. */
static inline uint16x4_t neon_codes(const sfti_float *to, uint32x4_t v) {
    const uint32x4_t infinity = neon_all(0x7f800000);
    uint32x4_t a = neon_magnitude(v), code = neon_narrow(to, a);
    uint32x4_t sign = vshlq_u32(vshrq_n_u32(v, 31), vdupq_n_s32((int32_t)to->bits - 1));
    code = vbslq_u32(vcgtq_u32(code, neon_all(to->greatest)), neon_all(to->over), code);
    code = vbslq_u32(vceqq_u32(a, infinity), neon_all(to->infinity), code);
    code = vbslq_u32(vcgtq_u32(a, infinity), neon_all(to->nan), code);
    if (to->is_fnuz) sign = vbicq_u32(sign, vceqq_u32(code, neon_all(0)));
    return vmovn_u32(vorrq_u32(code, sign));
}

static size_t neon_f32_to_small(const sfti_cast *cast, const uint8_t *in, uint8_t *out, size_t n) {
    const sfti_float to = cast->small;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint32x4_t low = neon_load(in + 4 * i), high = neon_load(in + 4 * i + 16);
        uint32x4_t most = vmaxq_u32(neon_magnitude(low), neon_magnitude(high));
        if (to.nan == 0 && vmaxvq_u32(most) > 0x7f800000) break;
        vst1_u8(out + i, vmovn_u16(vcombine_u16(neon_codes(&to, low), neon_codes(&to, high))));
    }
    return i + sfti_f32_to_small(cast, in + 4 * i, out + i, n - i);
}

bool sfti_cast_kernels_neon(sfti_cast_kernels *kernels) {
    kernels->bf16_to_f32 = neon_bf16_to_f32;
    kernels->f16_to_f32 = neon_f16_to_f32;
    kernels->f32_to_bf16 = neon_f32_to_bf16;
    kernels->f32_to_f16 = neon_f32_to_f16;
    kernels->f32_to_small = neon_f32_to_small;
    return true;
}

#else

bool sfti_cast_kernels_neon(sfti_cast_kernels *kernels) {
    (void)kernels;
    return false;
}

#endif
