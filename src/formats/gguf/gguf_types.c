/* The table of GGUF's types. Tests: test_import_gguf.c,
 * test_import_blocks.c. */
#include "formats/gguf/gguf.h"

#define PLAIN(name, bytes, dtype) { { name, 1, bytes, NULL }, dtype, NULL }
#define BLOCK(name, elements, bytes, unpack) \
    { { name, elements, bytes, unpack }, SFT_F32, NULL }
#define REMOVED(name) { { name, 1, 0, NULL }, SFT_F32, "which ggml has removed" }
#define INSIDE(name, elements, bytes) \
    { { name, elements, bytes, NULL }, SFT_F32, "which ggml computes with, and never stores" }

/* By number. */
static const sfti_gguf_type gguf_types[] = {
    PLAIN("F32", 4, SFT_F32), PLAIN("F16", 2, SFT_F16),
    BLOCK("Q4_0", 32, 18, sfti_gguf_q4_0), BLOCK("Q4_1", 32, 20, sfti_gguf_q4_1),
    REMOVED("Q4_2"), REMOVED("Q4_3"),
    BLOCK("Q5_0", 32, 22, sfti_gguf_q5_0), BLOCK("Q5_1", 32, 24, sfti_gguf_q5_1),
    BLOCK("Q8_0", 32, 34, sfti_gguf_q8_0), INSIDE("Q8_1", 32, 36),
    BLOCK("Q2_K", 256, 84, sfti_gguf_q2_k), BLOCK("Q3_K", 256, 110, sfti_gguf_q3_k),
    BLOCK("Q4_K", 256, 144, sfti_gguf_q4_k), BLOCK("Q5_K", 256, 176, sfti_gguf_q5_k),
    BLOCK("Q6_K", 256, 210, sfti_gguf_q6_k), INSIDE("Q8_K", 256, 292),
    BLOCK("IQ2_XXS", 256, 66, sfti_gguf_iq2_xxs), BLOCK("IQ2_XS", 256, 74, sfti_gguf_iq2_xs),
    BLOCK("IQ3_XXS", 256, 98, sfti_gguf_iq3_xxs), BLOCK("IQ1_S", 256, 50, sfti_gguf_iq1_s),
    BLOCK("IQ4_NL", 32, 18, sfti_gguf_iq4_nl), BLOCK("IQ3_S", 256, 110, sfti_gguf_iq3_s),
    BLOCK("IQ2_S", 256, 82, sfti_gguf_iq2_s), BLOCK("IQ4_XS", 256, 136, sfti_gguf_iq4_xs),
    PLAIN("I8", 1, SFT_I8), PLAIN("I16", 2, SFT_I16), PLAIN("I32", 4, SFT_I32),
    PLAIN("I64", 8, SFT_I64), PLAIN("F64", 8, SFT_F64),
    BLOCK("IQ1_M", 256, 56, sfti_gguf_iq1_m), PLAIN("BF16", 2, SFT_BF16),
    REMOVED("Q4_0_4_4"), REMOVED("Q4_0_4_8"), REMOVED("Q4_0_8_8"),
    BLOCK("TQ1_0", 256, 54, sfti_gguf_tq1_0), BLOCK("TQ2_0", 256, 66, sfti_gguf_tq2_0),
    REMOVED("IQ4_NL_4_4"), REMOVED("IQ4_NL_4_8"), REMOVED("IQ4_NL_8_8"),
    BLOCK("MXFP4", 32, 17, sfti_gguf_mxfp4), BLOCK("NVFP4", 64, 36, sfti_gguf_nvfp4),
    BLOCK("Q1_0", 128, 18, sfti_gguf_q1_0), BLOCK("Q2_0", 64, 18, sfti_gguf_q2_0),
};
static const sfti_gguf_type newer = {
    { "a type", 1, 0, NULL }, SFT_F32, "which is newer than this program"
};

#undef PLAIN
#undef BLOCK
#undef REMOVED
#undef INSIDE

const sfti_gguf_type *sfti_gguf_type_of(uint32_t number) {
    bool known = number < sizeof gguf_types / sizeof *gguf_types;
    return known ? &gguf_types[number] : &newer;
}

sfti_gguf_unpack sfti_gguf_fastest(uint32_t number) {
    sfti_gguf_unpack fast = sfti_gguf_avx2(number);
    return fast ? fast : sfti_gguf_type_of(number)->codec.unpack;
}
