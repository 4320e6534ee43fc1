/* BLAKE3 of four inputs at once, with NEON. Tests: test_hash_sums.c. */
#include "hash/blake3_lanes.h"

#if defined(SFTI_ARM)
#include <arm_neon.h>

#define V_ADD vaddq_u32
#define V_KEEP(x) ((void)(x))
#define V_XOR veorq_u32
#define V_ROTATE(x, n) vsriq_n_u32(vshlq_n_u32(x, 32 - (n)), x, n)
#define V_ROTATE16(x) vreinterpretq_u32_u16(vrev32q_u16(vreinterpretq_u16_u32(x)))
#define V_ROTATE8(x) vreinterpretq_u32_u8(vqtbl1q_u8(vreinterpretq_u8_u32(x), by8))

static inline uint32x4_t b3n_load(const uint8_t *at) {
    return vreinterpretq_u32_u8(vld1q_u8(at));
}

/* A quarter of a block of four lanes into four words. */
static inline void b3n_turn(const uint8_t *const in[4], size_t at, uint32x4_t m[4]) {
    uint32x4_t a[4];
    for (int i = 0; i < 4; i += 2) {
        uint32x4_t even = b3n_load(in[i] + at), odd = b3n_load(in[i + 1] + at);
        a[i] = vtrn1q_u32(even, odd);
        a[i + 1] = vtrn2q_u32(even, odd);
    }
    for (int i = 0; i < 2; i++) {
        uint64x2_t low = vreinterpretq_u64_u32(a[i]), high = vreinterpretq_u64_u32(a[i + 2]);
        m[i] = vreinterpretq_u32_u64(vtrn1q_u64(low, high));
        m[i + 2] = vreinterpretq_u32_u64(vtrn2q_u64(low, high));
    }
}

static void b3n_lanes4(const sfti_blake3_call *call) {
    static const uint8_t order[16] = { 1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12 };
    const uint8x16_t by8 = vld1q_u8(order);
    const uint8_t *in[4];
    uint32_t low[4], high[4], words[32];
    uint32x4_t h[8], v[16], m[16];
    b3x_inputs(call, 4, in);
    b3x_counters(call, 4, low, high);
    for (int w = 0; w < 8; w++) h[w] = vdupq_n_u32(b3x_iv[w]);
    for (size_t block = 0; block < call->blocks; block++) {
        for (size_t part = 0; part < 4; part++) b3n_turn(in, 64 * block + 16 * part, m + 4 * part);
        for (int w = 0; w < 8; w++) v[w] = h[w];
        for (int w = 0; w < 4; w++) v[8 + w] = vdupq_n_u32(b3x_iv[w]);
        v[12] = vld1q_u32(low);
        v[13] = vld1q_u32(high);
        v[14] = vdupq_n_u32(64);
        v[15] = vdupq_n_u32((uint32_t)b3x_flags(call, block));
        B3X_ROUNDS
        for (int w = 0; w < 8; w++) h[w] = V_XOR(v[w], v[w + 8]);
    }
    for (int w = 0; w < 8; w++) vst1q_u32(words + 4 * w, h[w]);
    b3x_store(call, 4, words);
}

#undef V_ADD
#undef V_XOR
#undef V_ROTATE
#undef V_ROTATE16
#undef V_ROTATE8

sfti_blake3_lanes_fn sfti_blake3_lanes_neon(size_t *lanes) {
    *lanes = 4;
    return b3n_lanes4;
}

#else

sfti_blake3_lanes_fn sfti_blake3_lanes_neon(size_t *lanes) {
    (void)lanes;
    return NULL;
}

#endif
