/* Shapes of packed tensors as the model has them: by each layout, what stands beside a weight
 * proves, and that nothing is told where it proves nothing. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/compose.h"

#include "label/tensors/signatures.h"

/* What a shape asked of a.weight is. */
static sfti_truth asked(const char *tensors, const char *shape) {
    char clause[128];
    bool hidden;
    composed *made = compose(tensors);
    sfti_view view;
    assert_true(sfti_view_open(&made->info, &view));
    snprintf(clause, sizeof clause, "a.weight%s", shape);
    bool holds = sfti_clauses_hold(&view, sft_span_cstr(clause), NULL, &hidden);
    compose_end(made);
    return !holds ? SFTI_FALSE : hidden ? SFTI_HIDDEN : SFTI_TRUE;
}

/* Three shapes each: one that is proved, one that may be, and one that is not; "" for none. */
static const struct packing { const char *tensors, *proved, *maybe, *wrong; } packings[] = {
    /* NVFP4: of ModelOpt, of ComfyUI, which pads, of compressed-tensors */
    { "a.weight:U8[96,64] a.weight_scale:F8_E4M3[96,8] a.weight_scale_2:F32[]", "[96,128]", "",
      "[96,64]" },
    { "a.weight:U8[96,64] a.weight_scale:F8_E4M3[128,8]", "[96,128]", "[90,120]", "[80,128]" },
    { "a.weight_packed:U8[96,64] a.weight_scale:F8_E4M3[96,8]", "[96,128]", "", "[95,128]" },
    { "a.weight:U8[4,96,64] a.weight_scale:F8_E4M3[4,96,8]", "[4,96,128]", "", "[96,128]" },
    { "a.weight:U8[96,64] a.weight_scale:F8_E4M3[96,7]", "", "[96,128]", "" },
    { "a.weight:U8[96,64] a.weight_scale:F32[]", "", "[1,2]", "" },
    /* MXFP4, MXFP8 */
    { "a.weight_packed:U8[96,64] a.weight_scale:U8[96,4]", "[96,128]", "", "[96,64]" },
    { "a.weight:U8[96,64] a.weight_scale:U8[96,2]", "[96,64]", "", "[96,128]" },
    { "a.weight:F8_E4M3[96,64] a.weight_scale:U8[128,4]", "[96,64]", "[70,64]", "[64,64]" },
    { "a.weight:F8_E4M3[96,64] a.weight_scale:F32[]", "[96,64]", "", "[95,64]" },
    { "a.weight:U8[96,64] a.weight_scale:U8[128,4]", "", "[96,128]", "" },
    /* GPTQ of 4, 8 and 3 bits, with and without g_idx; AWQ */
    { "a.qweight:I32[8,96] a.g_idx:I32[64] a.scales[1,96] a.qzeros:I32[1,12]", "[96,64]", "",
      "[64,96]" },
    { "a.qweight:I32[16,96] a.g_idx:I32[64]", "[96,64]", "", "[96,128]" },
    { "a.qweight:I32[6,96] a.g_idx:I32[64]", "[96,64]", "", "[96,48]" },
    { "a.qweight:I32[8,96] a.scales[1,96] a.qzeros:I32[1,12]", "[96,64]", "", "[96,32]" },
    { "a.qweight:I32[64,12] a.scales[1,96] a.qzeros:I32[1,12]", "[96,64]", "", "[64,96]" },
    { "a.qweight:I32[8,96] a.scales[1,96]", "", "[1,1]", "" },
    { "a.qweight:I32[8,96] a.g_idx:I32[7]", "", "[1,1]", "" },
    { "a.qweight:I32[8,96] a.g_idx:I32[0] a.scales[0,0] a.qzeros:I32[0,0]", "", "[1,1]", "" },
    /* compressed-tensors: codes along a row */
    { "a.weight_packed:I32[96,8] a.weight_scale[96,1] a.weight_shape:I64[2]", "[96,*]", "[96,64]",
      "[96,24]" },
    { "a.weight_packed:I32[96,8] a.weight_scale[96,1]", "", "[96,256]", "[96,257]" },
    { "a.weight_packed:I32[96,8] a.weight_g_idx:I32[64]", "[96,64]", "", "[96,32]" },
    { "a.weight_packed:I32[96,8] a.weight_zero_point:I32[12,1]", "[96,64]", "[96,60]", "[96,56]" },
    { "a.weight_packed:I32[2,192] a.scale_packed[1,96] a.meta:I16[2,192]", "", "[96,64]", "" },
    { "a.weight_packed:I32[2,192] a.weight_scale[96,1]", "", "[96,64]", "" },
    /* MXFP6; MXFP4 in I8 */
    { "a.weight_packed:U8[96,48] a.weight_scale:U8[96,2]", "[96,64]", "", "[96,48]" },
    { "a.weight:I8[96,32] a.scale:F8_E8M0[96,2]", "[96,64]", "", "[96,32]" },
    { "a.weight:I8[96,32] a.scale:F8_E8M0[96,3]", "", "[96,64]", "" },
    /* one factor a row in one dimension: a byte is one code, or two; of strange scales, and where
     * rows have others, not even which side is out */
    { "a.weight:I8[96,32] a.weight_scale:F32[96]", "[96,*]", "[96,64]", "[96,65]" },
    { "a.weight:I8[96,32] a.weight_scales:F32[32]", "", "[32,96]", "" },
    { "a.weight:I8[96,32] a.per_channel_scale[64]", "", "[64,96]", "" },
    { "a.weight:I8[96,32] a.weight_scale:F32[32]", "", "[32,96]", "" },
    { "a.weight:I16[24,64] a.scales[96,1] a.tables[16]", "", "[96,64]", "" },
    { "a.weight:I8[96,32] a.weight_scale:F32[]", "[96,32]", "", "[96,64]" },
    /* bitsandbytes: the number of elements, and by a bias the rows */
    { "a.weight:U8[3072,1] a.weight.absmax:F32[96]", "", "[96,64]", "[96,63]" },
    { "a.weight:U8[3072,1] a.weight.absmax:F32[96]", "", "[96|95,*]", "[7,*]" },
    { "a.weight:U8[3072,1] a.weight.absmax:F32[96]", "", "[...,64]", "[0,*]" },
    { "a.weight:U8[3072,1] a.weight.absmax:F32[96] a.bias[96]", "[96,64]", "", "[64,96]" },
    { "a.weight:U8[3072,1] a.weight.absmax:F32[96] a.bias[7]", "", "[96,64]", "[7,64]" },
    { "a.weight:BF16[1536,1] a.weight.absmax:U8[96] a.bias[96]", "[96,64]", "", "[1536,1]" },
    { "a.weight:BF16[1536,1]", "[1536,1]", "", "[96,64]" },
    { "a.weight:I8[96,64] a.SCB:F32[96]", "[96,64]", "", "[96,128]" },
    /* MLX: of which bits is not to be seen */
    { "a.weight:U32[96,8] a.scales[96,1] a.biases[96,1]", "[96|95,*]", "[96,64]", "[96,96]" },
    { "a.weight:U32[96,8] a.scales[96,1] a.biases[96,1]", "[...,*]", "[96,128]", "[96,256]" },
    { "a.weight:U32[96,8] a.scales[96,4] a.biases[96,4]", "[96,128]", "", "[96,64]" },
    { "a.weight:U32[96,8] a.scales:U8[96,2]", "[96,64]", "", "[96,128]" },
    { "a.weight:U32[96,8] a.scales:U8[96,1]", "[96,32]", "", "[96,64]" },
    { "a.weight:U32[96,8] a.scales[96,100]", "", "[1,1]", "" },
    /* ComfyUI's rotated and asymmetric codes, its AWQ; nunchaku's */
    { "a.weight:I8[96,32] a.weight_scale:F32[96] a.comfy_quant:U8[9]", "", "[96,64]", "[96,65]" },
    { "a.weight:I8[96,32] a.weight_scale:F32[96,1] a.comfy_quant:U8[9]", "[96,32]", "", "[96,64]" },
    { "a.weight:I8[96,32] a.weight_s_rel:F8_E4M3[96,4]", "[96,64]", "", "[96,32]" },
    { "a.weight:I8[96,48] a.weight_s_rel:F8_E4M3[96,4]", "[96,64]", "", "[96,48]" },
    { "a.weight:I8[96,47] a.weight_s_rel:F8_E4M3[96,4]", "", "[1,1]", "" },
    { "a.weight:I8[96,32] a.weight_zeros[1,96]", "[96,64]", "", "[96,32]" },
    { "a.qweight:I8[96,32] a.wscales[1,96]", "[96,64]", "", "[96,32]" },
    { "a.qweight:I8[96,32] a.wscales:F8_E4M3[4,96]", "[96,64]", "", "[96,32]" },
    { "a.qweight:I8[96,32]", "", "[1,1]", "" },
    { "a.qweight:I32[24,32] a.wscales[1,96] a.wzeros[1,96]", "[96,64]", "", "[24,32]" },
    /* HQQ, and bytes that nothing explains */
    { "a.W_q:U8[32,96] a.scale[1,96] a.zero[1,96]", "", "[96,64]", "" },
    { "a.weight:U8[96,64]", "", "[1,1]", "" },
    { "a.weight:I32[96,64]", "", "[1,1]", "" },
    { "a.weight:U8[96]", "", "[1,1]", "" },
    { "a.weight[96,64] a.weight_scale:F8_E4M3[96,8]", "[96,64]", "", "[96,128]" },
};

static void shapes_are_those_of_the_model(void **state) {
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(packings); i++) {
        const struct packing *p = &packings[i];
        if (*p->proved && asked(p->tensors, p->proved) != SFTI_TRUE)
            fail_msg("%s: %s is not proved", p->tensors, p->proved);
        if (*p->maybe && asked(p->tensors, p->maybe) != SFTI_HIDDEN)
            fail_msg("%s: %s is not hidden", p->tensors, p->maybe);
        if (*p->wrong && asked(p->tensors, p->wrong) != SFTI_FALSE)
            fail_msg("%s: %s is not denied", p->tensors, p->wrong);
    }
}

/* Sizes near 2^64 wrap nowhere. */
static void sizes_without_end(void **state) {
    static const char *const ends[] = { "weight:U8", "weight:U32", "weight:I32", "weight:I8",
                                        "qweight:I32", "qweight:I8", "weight_packed:I32" };
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(ends); i++) {
        char text[400];
        snprintf(text, sizeof text,
                 "a.%s[0,18446744073709551615] a.weight_scale:U8[0,18446744073709551615] "
                 "a.scales:U8[0,18446744073709551615] a.g_idx:I32[0] a.weight_zero_point:I32[0,0] "
                 "a.wscales[18446744073709551615,0] a.weight_s_rel:U8[0,18446744073709551615]",
                 ends[i]);
        assert_int_not_equal(asked(text, "[1,64]"), SFTI_TRUE);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_are_those_of_the_model),
        cmocka_unit_test(sizes_without_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
