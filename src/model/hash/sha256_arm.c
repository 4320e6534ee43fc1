/* SHA-256 with the instructions of ARM. Tests: test_hash_sums.c. */
#include "base/cpu.h"
#include "hash/hash.h"

#if defined(SFTI_ARM)
#include <arm_neon.h>

#if defined(__clang__)
#define SHARM_TARGET SFTI_ARM_TARGET("sha2")
#define SHARM_UNROLL _Pragma("unroll")
#else
#define SHARM_TARGET SFTI_ARM_TARGET("crypto") /* as in gcc's arm_neon.h: AES, SHA-1 and SHA-2 */
#define SHARM_UNROLL _Pragma("GCC unroll 4")
#endif
#define SHARM_STREAMS 4
/* The same step for every stream: see sha256_x86.c. */
#define SHARM_EACH SHARM_UNROLL for (size_t i = 0; i < count; i++)

/* Words of the message for rounds 4g to 4g + 3 (m[g % 4]), then these rounds. */
#define SHARM_LOAD(g)                                                                        \
    SHARM_EACH m[g][i] =                                                                     \
        vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(data[i] + at + 16 * (g))));
#define SHARM_SCHEDULE(g)                                                                    \
    SHARM_EACH m[(g) & 3][i] =                                                               \
        vsha256su1q_u32(vsha256su0q_u32(m[(g) & 3][i], m[((g) + 1) & 3][i]),                 \
                        m[((g) + 2) & 3][i], m[((g) + 3) & 3][i]);
#define SHARM_ROUNDS(g)                                                                      \
    {                                                                                        \
        uint32x4_t k = vld1q_u32(sfti_sha256_k + 4 * (g));                                   \
        SHARM_EACH {                                                                         \
            uint32x4_t w = vaddq_u32(m[(g) & 3][i], k), before = abcd[i];                    \
            abcd[i] = vsha256hq_u32(abcd[i], efgh[i], w);                                    \
            efgh[i] = vsha256h2q_u32(efgh[i], before, w);                                    \
        }                                                                                    \
    }
#define SHARM_FIRST(g) SHARM_LOAD(g) SHARM_ROUNDS(g)
#define SHARM_NEXT(g) SHARM_SCHEDULE(g) SHARM_ROUNDS(g)

/* count is a constant wherever this is inlined. */
SHARM_TARGET static inline __attribute__((always_inline)) void
sharm_streams(uint32_t *const *states, const uint8_t *const *data, size_t blocks,
              const size_t count) {
    uint32x4_t abcd[SHARM_STREAMS], efgh[SHARM_STREAMS], m[4][SHARM_STREAMS];
    uint32x4_t abcd_before[SHARM_STREAMS], efgh_before[SHARM_STREAMS];
    SHARM_EACH {
        abcd[i] = vld1q_u32(states[i]);
        efgh[i] = vld1q_u32(states[i] + 4);
    }
    for (size_t at = 0; at < 64 * blocks; at += 64) {
        SHARM_EACH {
            abcd_before[i] = abcd[i];
            efgh_before[i] = efgh[i];
        }
        SHARM_FIRST(0) SHARM_FIRST(1) SHARM_FIRST(2) SHARM_FIRST(3)
        SHARM_NEXT(4) SHARM_NEXT(5) SHARM_NEXT(6) SHARM_NEXT(7)
        SHARM_NEXT(8) SHARM_NEXT(9) SHARM_NEXT(10) SHARM_NEXT(11)
        SHARM_NEXT(12) SHARM_NEXT(13) SHARM_NEXT(14) SHARM_NEXT(15)
        SHARM_EACH {
            abcd[i] = vaddq_u32(abcd[i], abcd_before[i]);
            efgh[i] = vaddq_u32(efgh[i], efgh_before[i]);
        }
    }
    SHARM_EACH {
        vst1q_u32(states[i], abcd[i]);
        vst1q_u32(states[i] + 4, efgh[i]);
    }
}

SHARM_TARGET static void sharm_blocks(const sfti_hash_impl *impl,
                                                 uint32_t *const *states,
                                                 const uint8_t *const *data, size_t blocks,
                                                 size_t count) {
    (void)impl;
    switch (count) {
    case 1: sharm_streams(states, data, blocks, 1); return;
    case 2: sharm_streams(states, data, blocks, 2); return;
    case 3: sharm_streams(states, data, blocks, 3); return;
    default: sharm_streams(states, data, blocks, 4); return;
    }
}

sfti_sha_blocks_fn sfti_sha_blocks_arm(void) {
    return sfti_cpu_has(SFTI_CPU_ARM_SHA2) ? sharm_blocks : NULL;
}

#else

sfti_sha_blocks_fn sfti_sha_blocks_arm(void) {
    return NULL;
}

#endif
