/* What models declare of how they are quantised: each declaration that is read, with the values,
 * and each that is refused, with the reason. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "quant_case.h"
#include "unit/make_file.h"
#include "unit/temp_dir.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define SCALED "w F8_E4M3 2,4 #56;w_scale F32 - #2"
#define BLOCKS "w F8_E4M3 2,4 #56;w_scale F32 2,2 #2,3,4,5"
#define PACKED "w_packed I32 2,1 #2576980377;w_scale F16 2,2 #15360;w_shape I64 2 #2,8"
#define CT(rest) "{\"quant_method\":\"compressed-tensors\"" rest "}"
#define WEIGHTS(text) ",\"config_groups\":{\"g\":{\"weights\":{" text "}}}"
#define TWO(a, b) ",\"config_groups\":{\"g\":{\"weights\":{" a "}},\"h\":{\"weights\":{" b "}}}"

#define GROUPS(block, size) "\"block_structure\":[" block "],\"group_size\":" size

/* Of w: 1 in F8_E4M3, factor 2; or four factors. */
static void reads_configurations(void **unused) {
    static const quant_case cases[] = {
        { SCALED, "{\"quant_method\":\"fp8\"}", "w", "=2,2,2" },
        { SCALED, "{\"quant_method\":\"fp8\",\"fmt\":null,\"more\":[{\"a\":1}]}", "w", "=2,2,2" },
        { SCALED, "{\"method\":\"fp8\",\"fmt\":\"e4m3\"}", "w", "=2,2,2" },
        { SCALED, "{\"quant_method\":\"compressed_tensors\"}", "w", "=2,2,2" },
        { SCALED, "{\"quant_method\":\"compressed+tensors\"}", NULL,
          "quant_method that is known in the quantization_config of the metadata, found "
          "\"compressed+tensors\"" },
        { SCALED, "{\"quant_method\":\"fp9\"}", NULL, "expected a quant_method that is known" },
        { SCALED, "{\"quant_method\":\"fp_\"}", NULL, "expected a quant_method that is known" },
        { BLOCKS, CT(",\"config_groups\":{\"g\":{\"weights\":{" GROUPS("9,9", "2") "}},\"h\":{"
          "\"weights\":{" GROUPS("1,2", "4") "}},\"i\":{\"weights\":{" GROUPS("1,2", "2") "}}}"),
          "w", "=2,2,3,3,4,4,5,5" },
        { SCALED, "{}", NULL, "expected a quant_method that is known in the quantization_config of "
          "the metadata, found \"none\"" },
        { SCALED, "[1]", NULL, "expected a quantization_config in JSON in the metadata" },
        { SCALED, "{\"quant_method\":\"fp8\"", NULL, "expected a quantization_config in JSON" },
        { SCALED, "{\"quant_method\":\"fp8\",\"a\":[}", NULL,
          "expected a quantization_config in JSON" },
        { SCALED, "{\"quant_method\":\"fp8\",\"fmt\":\"e5m2\"}", "w",
          "expected what the quantization_config's \"fp8\" stores, found another layout" },
        { SCALED, "{\"quant_method\":\"modelopt\",\"quant_algo\":\"FP9\"}", NULL,
          "a quant_algo that is known in the quantization_config of the metadata, found \"FP9\"" },
        { SCALED, "{\"quant_method\":\"modelopt\",\"quant_algo\":5}", NULL,
          "expected a quant_algo that is known in the quantization_config of the metadata" },
        { SCALED, "{\"quant_method\":\"modelopt\"}", "w", "=2,2,2" },
        /* what transforms values */
        { SCALED, CT(",\"transform_config\":{},\"sparsity_config\":{}"), "w", "=2,2,2" },
        { SCALED, CT(",\"transform_config\":null,\"sparsity_config\":{\"format\":\"dense\"}"), "w",
          "=2,2,2" },
        { SCALED, CT(",\"transform_config\":{\"a\":1}"), NULL,
          "expected a transform_config that is known" },
        { SCALED, CT(",\"transform_config\":5"), NULL,
          "expected a transform_config that is known" },
        { SCALED, CT(",\"sparsity_config\":{\"format\":\"sparse-24\"}"), NULL,
          "expected a sparsity_config that is known" },
        /* groups and blocks */
        { BLOCKS, CT(WEIGHTS("\"strategy\":\"block\",\"block_structure\":[1,2]")), "w",
          "=2,2,3,3,4,4,5,5" },
        { BLOCKS, CT(WEIGHTS("\"strategy\":\"block\",\"block_structure\":[2,2]")), "w_scale",
          "expected the shape [1,2], found [2,2]" },
        { BLOCKS, CT(WEIGHTS("\"strategy\":\"block\",\"block_structure\":[1,2,3]")), NULL,
          "expected a block_structure that is known" },
        { BLOCKS, CT(WEIGHTS("\"strategy\":\"block\",\"block_structure\":[0,2]")), NULL,
          "expected a block_structure that is known" },
        { BLOCKS, CT(WEIGHTS("\"strategy\":\"block\",\"block_structure\":[1]")), NULL,
          "expected a block_structure that is known" },
        { BLOCKS, CT(TWO("\"strategy\":\"block\",\"block_structure\":[1,2]",
                         "\"strategy\":\"block\",\"block_structure\":[1,2]")), "w",
          "=2,2,3,3,4,4,5,5" },
        { BLOCKS, CT(TWO("\"strategy\":\"block\",\"block_structure\":[9,9]",
                         "\"strategy\":\"block\",\"block_structure\":[1,2]")), "w",
          "=2,2,3,3,4,4,5,5" },
        { BLOCKS, CT(TWO("\"strategy\":\"block\",\"block_structure\":[9,9]",
                         "\"strategy\":\"block\",\"block_structure\":[2,2]")), "w",
          "(config_groups), found that it tells scales of other blocks" },
        { BLOCKS, CT(WEIGHTS("\"group_size\":2")), "w", "=2,2,3,3,4,4,5,5" },
        { BLOCKS, CT(WEIGHTS("\"group_size\":4")), "w_scale", "expected the shape [2,1], found" },
        { BLOCKS, CT(TWO("\"group_size\":4", "\"group_size\":2")), "w", "=2,2,3,3,4,4,5,5" },
        { BLOCKS, CT(TWO("\"group_size\":3", "\"group_size\":2")), "w", "scales of other blocks" },
        { BLOCKS, CT(TWO("\"group_size\":3", "\"group_size\":9")), "w", "=2,2,2,3,4,4,4,5" },
        { BLOCKS, CT(TWO("\"group_size\":1", "\"group_size\":9")), "w", "scales of other blocks" },
        { BLOCKS, CT(TWO("\"group_size\":2,\"strategy\":\"group\"", "\"group_size\":2")), "w",
          "=2,2,3,3,4,4,5,5" },
        { BLOCKS, CT(TWO("\"group_size\":2,\"strategy\":\"tensor_group\"",
                         "\"group_size\":2,\"strategy\":\"channel\"")), "w",
          "=2,2,3,3,4,4,5,5" },
        { BLOCKS, CT(TWO("\"strategy\":\"tensor\"", "\"strategy\":\"channel\"")), "w_scale",
          "expected the shape [2,1], found [2,2]" },
        { BLOCKS, CT(WEIGHTS("\"strategy\":\"row\"")), "w", "=2,2,3,3,4,4,5,5" },
        { BLOCKS, CT(",\"config_groups\":{\"g\":{\"weights\":null,\"group_size\":1}}"), "w",
          "=2,2,3,3,4,4,5,5" },
        { BLOCKS, CT(",\"config_groups\":{\"g\":{\"weights\":{\"a\":{\"group_size\":4}}}}"), "w",
          "=2,2,3,3,4,4,5,5" },
        { BLOCKS, CT(",\"config_groups\":{\"g\":{\"block_structure\":[1]}}"), "w",
          "=2,2,3,3,4,4,5,5" },
        { BLOCKS, CT(WEIGHTS("\"block_structure\":\"[1]\",\"more\":[1]")), "w",
          "=2,2,3,3,4,4,5,5" },
        /* kinds, widths and zero points */
        { SCALED, CT(WEIGHTS("\"type\":\"float\",\"num_bits\":8")), "w", "=2,2" },
        { SCALED, CT(WEIGHTS("\"type\":\"int\"")), "w", "tells, found floats" },
        { SCALED, CT(TWO("\"type\":\"int\"", "\"type\":\"float\"")), "w", "=2,2" },
        { SCALED, CT(TWO("\"type\":\"int\"", "\"num_bits\":8")), "w", "=2,2" },
        { SCALED, CT(TWO("\"type\":\"int\"", "\"num_bits\":4,\"type\":\"float\"")), "w",
          "as many bits as the" },
        { SCALED, CT(TWO("\"type\":\"int\",\"num_bits\":8", "\"num_bits\":4,\"type\":\"float\"")),
          "w", "another type" },
        { SCALED, CT(TWO("\"type\":\"float\"", "\"num_bits\":8")), "w", "=2,2" },
        { SCALED, CT(WEIGHTS("\"type\":\"real\"")), "w", "=2,2" },
        { SCALED, CT(WEIGHTS("\"num_bits\":4")), "w", "as many bits as the quantization_config" },
        { SCALED, CT(WEIGHTS("\"num_bits\":16")), "w", "=2,2" },
        { SCALED, CT(WEIGHTS("\"num_bits\":\"4\"")), "w", "=2,2" },
        { SCALED, CT(WEIGHTS("\"symmetric\":false")), "w", "=2,2" },
        { "w I8 2,4 #3;w_scale F32 - #2", CT(WEIGHTS("\"symmetric\":false")), "w",
          "expected zero points" },
        { "w I8 2,4 #3;w_scale F32 - #2", CT(TWO("\"symmetric\":false", "\"symmetric\":true")), "w",
          "(config_groups), found that it tells zero points" },
        { "w I8 2,4 #3;w_scale F32 - #2", CT(WEIGHTS("\"actorder\":\"weight\"")), "w", "=6,6" },
        { "w_packed I32 2,1;w_scale F16 2,2;w_shape I64 2 #2,8",
          CT(",\"format\":\"pack-quantized\"" WEIGHTS("\"num_bits\":4,\"actorder\":\"dynamic\"")),
          "w_packed", "a group for each column (g_idx), as desc_act or actorder says" },
        { PACKED, CT(",\"format\":\"pack-quantized\"" TWO("\"num_bits\":4,\"actorder\":\"group\"",
                     "\"num_bits\":4")), "w_packed", "tells a group for each column (g_idx)" },
        { PACKED, CT(",\"format\":\"pack-quantized\"" TWO("\"num_bits\":8,\"actorder\":\"group\"",
                     "\"num_bits\":4")), "w", "=1,1" },
        { PACKED, CT(",\"format\":\"pack-quantized\"" TWO("\"num_bits\":8,\"symmetric\":false",
                     "\"num_bits\":4")), "w", "=1,1" },
        { PACKED,
          CT(",\"format\":\"pack-quantized\"" WEIGHTS("\"num_bits\":4,\"actorder\":\"weight\"")),
          "w", "=1,1" },
        { PACKED,
          CT(",\"format\":\"pack-quantized\"" WEIGHTS("\"num_bits\":4,\"actorder\":null")),
          "w", "=1,1" },
        { BLOCKS, "{\"quant_method\":\"fp8\",\"weight_block_size\":[1,2]}", "w",
          "=2,2,3,3,4,4,5,5" },
        { BLOCKS, "{\"quant_method\":\"fp8\",\"weight_block_size\":2}", NULL,
          "expected a weight_block_size that is known" },
        { BLOCKS, "{\"quant_method\":\"fp8\",\"weight_block_size\":[1,0]}", NULL,
          "expected a weight_block_size that is known" },
        { BLOCKS, "{\"quant_method\":\"fp8\",\"group_size\":-1}", "w_scale",
          "expected the shape [2,1], found [2,2]" },
        { BLOCKS, "{\"quant_method\":\"fp8\",\"group_size\":-1,\"dynamic\":{}}", "w",
          "=2,2,3,3,4,4,5,5" },
        { BLOCKS, "{\"quant_method\":\"fp8\",\"group_size\":4,\"bits\":4,\"dynamic\":{}}", "w",
          "=2,2,3,3,4,4,5,5" },
        { SCALED, "{\"quant_method\":\"fp8\",\"bits\":4}", "w", "as many bits as" },
        { SCALED, "{\"quant_method\":\"fp8\",\"bits\":16}", "w", "=2,2" },
        { SCALED, "{\"quant_method\":\"fp8\",\"bits\":0}", "w", "=2,2" },
        /* modules that are left as they were */
        { "m.weight F8_E4M3 2,4 #56", CT(",\"ignore\":[\"m\"]"), "m.weight", "=as stored" },
        { "m.weight F8_E4M3 2,4 #56", CT(",\"ignore\":[1,\"n\",[\"m\"]]"), "m.weight",
          "=as stored" },
        { "m.weight F8_E4M3 2,4", CT(",\"ignore\":[\"n\"]"), "m.weight",
          "expected \"m.weight_scale\" beside it, found none" },
        { "m.weight F8_E4M3 2,4", CT(",\"ignore\":[]"), "m.weight", "beside it, found none" },
        { "m.weight F8_E4M3 2,4", CT(",\"ignore\":\"m\""), "m.weight", "beside it, found none" },
    };
    (void)unused;
    cases_hold(cases, COUNT(cases));
}

#define INT8 "m.a.w I8 2,4 #3;m.a.w_scale F32 - #2"
#define FP8 "m.a.w F8_E4M3 2,4 #56;m.a.w_scale F32 - #2"
#define TARGETS(a, b) ",\"config_groups\":{\"g\":{\"targets\":[" a "],\"weights\":{" \
    "\"symmetric\":false}},\"h\":{\"targets\":[" b "],\"weights\":{\"symmetric\":true}}}"
#define BITS(a, of_a, b, of_b) ",\"config_groups\":{\"g\":{\"targets\":[" a "],\"weights\":{" \
    "\"num_bits\":" of_a "}},\"h\":{\"targets\":[" b "],\"weights\":{\"num_bits\":" of_b "}}}"
#define IDLE(a, b, of_b) ",\"config_groups\":{\"g\":{\"targets\":[" a "],\"weights\":null}," \
    "\"h\":{\"targets\":[" b "],\"weights\":{\"num_bits\":" of_b "}}}"
#define GPTQ "m.a.qweight I32 1,8 #286331153;m.a.qzeros I32 1,1;m.a.scales F16 1,8 #15360"
#define DYNAMIC(text) "{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":8," \
    "\"checkpoint_format\":\"gptq_v2\",\"dynamic\":{" text "}}"

/* What is told of some modules: of m.a, zero points by the first group, which it has not. */
static void reads_scopes(void **unused) {
    static const quant_case cases[] = {
        { INT8, CT(TARGETS("\"m.b\"", "\"m.a\"")), "m.a.w", "=6,6" },
        { INT8, CT(TARGETS("\"m.a\"", "\"m.b\"")), "m.a.w", "found that it tells zero points" },
        { INT8, CT(TARGETS("\"Linear\"", "\"m.a\"")), "m.a.w", "=6,6" },
        { INT8, CT(TARGETS("\"Linear\"", "\"re:.*a$\"")), "m.a.w", "=6,6" },
        { INT8, CT(TARGETS("\"re:m.*\"", "\"m.a\"")), "m.a.w", "=6,6" },
        { INT8, CT(TARGETS("\"re:.*\\\\.b$\",\"lm_head\"", "\"Linear\"")), "m.a.w", "=6,6" },
        { INT8, CT(TARGETS("\"re:(?:x|m)\\\\.[ab]*?\"", "\"Linear\"")), "m.a.w", "tells zero" },
        { INT8, CT(TARGETS("\"re:a\"", "\"re:m\"")), "m.a.w", "=6,6" },
        { INT8, CT(TARGETS("\"re:m\\\\.\\\\d\"", "\"re:m\\\\.\\\\w\"")), "m.a.w", "=6,6" },
        /* not decided: any that fits is enough, unless values may be those of another */
        { INT8, CT(TARGETS("\"re:(?!m)\"", "\"Linear\"")), "m.a.w", "tells zero points" },
        { INT8, CT(TARGETS("\"re:[\\\\w]\"", "\"Linear\"")), "m.a.w", "tells zero points" },
        { INT8, CT(TARGETS("\"re:m++\"", "\"Linear\"")), "m.a.w", "tells zero points" },
        { INT8, CT(TARGETS("\"re:\\\\1\"", "\"Linear\"")), "m.a.w", "tells zero points" },
        { INT8, CT(TARGETS("\"Linear\"", "\"Linear\"")), "m.a.w", "tells zero points" },
        { INT8, CT(TARGETS("\"m.b\"", "\"m.c\"")), "m.a.w", "tells zero points" },
        { INT8, CT(TARGETS("1,[2]", "\"m.a\"")), "m.a.w", "=6,6" },
        { FP8, CT(BITS("\"Linear\"", "4", "\"Embedding\"", "8")), "m.a.w", "=2,2" },
        { FP8, CT(BITS("\"Linear\"", "4", "\"Linear\"", "8")), "m.a.w", "=2,2" },
        { FP8, CT(BITS("\"Linear\"", "4", "\"re:x\"", "8")), "m.a.w", "=2,2" },
        { FP8, CT(BITS("\"re:m\"", "4", "\"Linear\"", "8")), "m.a.w", "another number of bits" },
        { FP8, CT(BITS("\"re:(?=m)\"", "4", "\"re:m\"", "8")), "m.a.w", "=2,2" },
        { FP8, CT(BITS("\"re:(?=m)\"", "8", "\"re:m\"", "4")), "m.a.w", "=2,2" },
        { FP8, CT(BITS("\"Linear\"", "4", "\"Embedding\"", "2")), "m.a.w",
          "as many bits as the quantization_config" },
        /* fewer bits in elements of 8 */
        { INT8, CT(BITS("\"re:m\"", "4", "\"Linear\"", "8")), "m.a.w", "=6,6" },
        { INT8, CT(BITS("\"re:m\"", "2", "\"Linear\"", "8")), "m.a.w",
          "expected codes of 2 bits, as the quantization_config tells, found 3" },
        { INT8, CT(BITS("\"re:(?=m)\"", "2", "\"Linear\"", "8")), "m.a.w", "=6,6" },
        { "w I8 2,4 #-8;w_scale F32 - #2", CT(WEIGHTS("\"num_bits\":4")), "w", "=-16,-16" },
        { "w I8 2,4 #-9;w_scale F32 - #2", CT(WEIGHTS("\"num_bits\":4")), "w",
          "expected codes of 4 bits, as the quantization_config tells, found -9" },
        { "w I8 2,4 #8;w_scale F32 - #2", CT(WEIGHTS("\"num_bits\":4")), "w", "found 8" },
        { "w I8 2,4 #7;w_scale F32 - #2", CT(WEIGHTS("\"num_bits\":1")), "w", "found 7" },
        /* without weights: of a module that nothing else may be told of */
        { FP8, CT(IDLE("\"m.a\"", "\"Linear\"", "8")), "m.a.w", "=2,2" },
        { FP8, CT(IDLE("\"m.a\"", "\"Linear\"", "4")), "m.a.w", "as many bits as the" },
        { FP8, CT(IDLE("\"re:.*a\"", "\"re:m\"", "8")), "m.a.w", "=2,2" },
        { FP8, CT(IDLE("\"Attention\"", "\"m.b\"", "8")), "m.a.w", "=2,2" },
        { FP8, CT(IDLE("\"m.a\"", "\"m.b\"", "8")), "m.a.w", "tells no quantised weights" },
        /* what a pattern has to hold is looked for before it is tried */
        { FP8, CT(BITS("\"re:m\\\\.(b|a)\"", "8", "\"re:m\"", "4")), "m.a.w", "=2,2" },
        { FP8, CT(BITS("\"re:mx?\\\\.x*a\"", "8", "\"m.b\"", "4")), "m.a.w", "=2,2" },
        { FP8, CT(BITS("\"re:m.a.*\"", "4", "\"Linear\"", "8")), "m.a.w", "another number" },
        { FP8, CT(BITS("\"re:^m\\\\.a+$\"", "4", "\"Linear\"", "8")), "m.a.w", "another number" },
        { FP8, CT(BITS("\"re:m\\\\..a\"", "4", "\"Linear\"", "8")), "m.a.w", "=2,2" },
        { FP8, CT(BITS("\"re:m.b\"", "4", "\"Linear\"", "8")), "m.a.w", "=2,2" },
        { "\xc3\xa9.a.w F8_E4M3 2,4 #56;\xc3\xa9.a.w_scale F32 - #2",
          CT(BITS("\"re:..a\"", "4", "\"Linear\"", "8")), "\xc3\xa9.a.w", "another number" },
        { FP8, CT(BITS("\"re:b|m\"", "4", "\"Linear\"", "8")), "m.a.w", "another number" },
        { FP8, CT(BITS("\"re:mx{0,2}.[xa]\"", "4", "\"Linear\"", "8")), "m.a.w",
          "another number" },
        { FP8, CT(BITS("\"re:m\\\\.\xc3\xa9*a\"", "4", "\"Linear\"", "8")), "m.a.w",
          "another number" },
        { FP8, CT(BITS("\"re:m\\\\Wa\\\\b\"", "4", "\"Linear\"", "8")), "m.a.w",
          "another number" },
        { INT8, CT(",\"config_groups\":{\"W8A8\":[\"m.a\"],\"h\":{\"targets\":[\"Linear\"],"
                   "\"weights\":{}}}"), "m.a.w", "=6,6" },
        /* GPTQModel: the first that matches counts */
        { GPTQ, DYNAMIC("\"+:m\\\\.b\":{\"bits\":8}"), "m.a.weight", "=1,1,1,1" },
        { GPTQ, DYNAMIC("\"+:.*\\\\.a\":{\"bits\":8}"), "m.a.qweight",
          "(dynamic), found that it tells another number of bits" },
        { GPTQ, DYNAMIC("\"m\":{\"group_size\":4}"), "m.a.qweight", "scales of other blocks" },
        { GPTQ, DYNAMIC("\"m\":{\"group_size\":-1,\"desc_act\":true}"), "m.a.weight", "=1,1,1,1" },
        { GPTQ, DYNAMIC("\"-:m\":{}"), "m.a.qweight", "tells no quantised weights" },
        { GPTQ, DYNAMIC("\"m\":false"), "m.a.qweight", "tells no quantised weights" },
        { GPTQ, DYNAMIC("\"+:m\":{\"bits\":4},\"-:m\":{}"), "m.a.weight", "=1,1,1,1" },
        { GPTQ, DYNAMIC("\"+:(?=m)\":{\"bits\":8}"), "m.a.weight", "=1,1,1,1" },
        { GPTQ, DYNAMIC("\"+:(?=m)\":{\"bits\":8},\"m\":{\"bits\":2}"), "m.a.qweight",
          "another number of bits" },
        { GPTQ, DYNAMIC("\"-:.*(?!b)\":{}"), "m.a.weight", "=1,1,1,1" },
        { GPTQ, DYNAMIC("\"+:(?=m)\":{\"bits\":4}"), "m.a.weight", "=1,1,1,1" },
    };
    (void)unused;
    cases_hold(cases, COUNT(cases));
}

/* 4 bits in groups of 8: 1 and 2 in turn; a factor of 2 for the first row, 4 for the second. */
#define MLX "m.weight U32 2,1 #571548177;m.scales F32 2,1 #2,4;m.biases F32 2,1 #0.5,1"
#define BYTES "m.weight U32 2,2 #16843009;m.scales F32 2,1 #2,4;m.biases F32 2,1 #0.5,1"

static void reads_mlx(void **unused) {
    static const char values[] = "=2.5,2.5,4.5,4.5,2.5,2.5,4.5,4.5,5,5,9,9,5,5,9,9";
    static const quant_case cases[] = {
        { MLX, "{\"bits\":4,\"group_size\":8}", "m.weight", values },
        { MLX, "{\"quant_method\":\"mlx\",\"bits\":4,\"group_size\":8}", "m.weight", values },
        { MLX, "{\"bits\":4,\"group_size\":8,\"mode\":\"affine\",\"n\":{\"bits\":2}}", "m.weight",
          values },
        { MLX, "{\"bits\":8,\"group_size\":64,\"m\":{\"bits\":4,\"group_size\":8}}", "m.weight",
          values },
        { MLX, "{\"bits\":4,\"group_size\":64,\"m\":{\"group_size\":8}}", "m.weight", values },
        { MLX, "{\"bits\":4,\"group_size\":8,\"m\":true}", "m.weight", values },
        { BYTES, "{\"bits\":8,\"group_size\":8}", "m.weight", "=2.5,2.5,2.5" },
        { MLX, "{\"bits\":4,\"group_size\":8,\"mode\":\"mxfp4\"}", NULL,
          "expected a mode that is known" },
        { MLX, "{\"bits\":4,\"group_size\":8,\"m\":{\"mode\":\"mxfp4\"}}", "m.weight",
          "as a configuration tells of its layer, found another mode" },
        { MLX, "{\"bits\":4,\"group_size\":8,\"m\":{\"mode\":4}}", "m.weight",
          "as a configuration tells of its layer, found another mode" },
        { MLX, "{\"bits\":4,\"group_size\":8,\"m\":false}", "m.weight",
          "of its layer, found false" },
        { MLX, "{\"bits\":4,\"group_size\":8,\"x.m\":{\"bits\":8}}", "m.weight", values },
        { MLX, "{\"bits\":4,\"group_size\":8,\"x.m\":{\"bits\":4,\"group_size\":8}}", "m.weight",
          values },
        { MLX, "{\"bits\":4,\"group_size\":8,\"x.m\":{\"mode\":\"mxfp4\"}}", "m.weight", values },
        { MLX, "{\"bits\":4,\"group_size\":8,\"m\":{\"bits\":4},\"x.m\":{\"bits\":8,"
          "\"group_size\":4}}", "m.weight", values },
        { MLX, "{\"bits\":4,\"group_size\":8,\"x.m\":{\"bits\":8,\"group_size\":4}}", "m.weight",
          "of its layer, found sizes of a layer that there is not: x.m" },
        { MLX, "{\"bits\":4,\"group_size\":8,\"x.m\":false}", "m.weight", values },
        { MLX, "{\"bits\":4,\"group_size\":8,\"m\":null}", "m.weight",
          "of its layer, found false" },
        { MLX, "{\"bits\":4,\"group_size\":8,\"m\":{\"bits\":4},\"m\":{\"bits\":4}}", "m.weight",
          "of its layer, found two" },
        { MLX, "{\"bits\":4,\"bits\":4,\"group_size\":8}", "m.weight", "of its layer, found two" },
        { MLX, "{\"bits\":0,\"group_size\":8}", "m.weight", "of its layer, found no number" },
        { MLX, "{\"bits\":-4,\"group_size\":8}", "m.weight", "of its layer, found no number" },
        { MLX, "{\"bits\":9,\"group_size\":8}", "m.weight", "of its layer, found another number" },
        { MLX, "{\"quant_method\":\"mlx\",\"group_size\":8}", "m.weight",
          "of its layer, found no configuration" },
        { MLX, "{\"bits\":8,\"group_size\":8}", "m.weight", "expected whole groups of columns" },
        { MLX, "{\"bits\":3,\"group_size\":8}", "m.weight", "expected whole groups of columns" },
        { MLX, "{\"bits\":4,\"group_size\":4}", "m.scales",
          "found the shape [2,1]" },
    };
    (void)unused;
    cases_hold(cases, COUNT(cases));
}

#define AO(text) "@m.weight =" text ";m._weight_qdata F8_E4M3 2,4 #56;m._weight_scale F32 2,1 #2,3"
#define AO_IS(rest) AO("{\"_type\":\"Float8Tensor\",\"_data\":{" rest "},\"_tensor_data_names\":" \
                       "[\"qdata\",\"scale\"]}")

static void reads_torchao(void **unused) {
    static const quant_case cases[] = {
        { AO_IS(""), NULL, "m.weight", "=2,2,2,2,3,3,3,3" },
        { AO_IS("\"block_size\":[1,4],\"dtype\":{\"_data\":\"float32\"}"), NULL, "m.weight",
          "=2,2,2,2,3,3,3,3" },
        { AO_IS("\"block_size\":4"), NULL, "m.weight", "=2,2,2,2,3,3,3,3" },
        { AO("{\"_type\":{\"_data\":\"Float8Tensor\",\"a\":{\"b\":1}}}"), NULL, "m.weight",
          "=2,2,2,2,3,3,3,3" },
        { AO_IS("\"block_size\":2"), NULL, "m._weight_qdata",
          "that the metadata gives (block_size), found another number" },
        { AO_IS("\"block_size\":[2,4]"), NULL, "m._weight_qdata", "(block_size), found another" },
        { AO_IS("\"block_size\":[1,2]"), NULL, "m._weight_qdata", "(block_size), found another" },
        { AO_IS("\"block_size\":[1,4,1]"), NULL, "m._weight_qdata", "(block_size), found another" },
        { AO_IS("\"block_size\":[1]"), NULL, "m._weight_qdata", "(block_size), found another" },
        { AO_IS("\"block_size\":[1,\"4\"]"), NULL, "m._weight_qdata",
          "(block_size), found another" },
        { AO_IS("\"block_size\":[9223372036854775808,4]"), NULL, "m._weight_qdata",
          "(block_size), found another" },
        { AO_IS("\"block_size\":\"4\""), NULL, "m._weight_qdata", "(block_size), found another" },
        { AO_IS("\"block_size\":4,\"a\":{\"block_size\":2}"), NULL, "m.weight", "=2,2" },
        { "@m.weight ={\"_type\":\"Float8Tensor\",\"block_size\":[1,2,2]};"
          "m._weight_qdata F8_E4M3 2,2,2;m._weight_scale F32 2,1,1", NULL, "m._weight_qdata",
          "(block_size), found another" },
        { AO("{\"_type\":\"Float8Tensor\",\"_tensor_data_names\":[\"qdata\"]}"), NULL,
          "m._weight_qdata",
          "that the metadata lists (_tensor_data_names), found others beside it" },
        { AO("{\"_type\":\"Float8Tensor\",\"_tensor_data_names\":[]}"), NULL, "m._weight_qdata",
          "that the metadata lists (_tensor_data_names)" },
        { AO("{\"_type\":\"Float8Tensor\",\"_tensor_data_names\":\"qdata\"}"), NULL, "m.weight",
          "=2,2" },
        { AO("{\"_type\":\"Float8Tensor\",\"_tensor_data_names\":[\"qdata\",\"scale\",\"zero\"]}"),
          NULL, "m._weight_qdata",
          "expected its \"zero\" too, as the metadata says, found none that belongs to" },
        { AO("{\"_type\":\"Float8Tensor\",\"_tensor_data_names\":[\"qdata\",\"scale\",\"\"]}"),
          NULL,
          "m._weight_qdata", "expected its \"\" too" },
        { AO("{\"_type\":\"Float8Tensor\",\"_tensor_data_names\":[\"qdata\",\"scale\",\"b\"]};"
          "m._weight_b F32 1"), NULL, "m._weight_qdata",
          "expected its \"b\" too" },
        { AO("{\"_type\":\"NoTensor\"}"), NULL, "m._weight_qdata",
          "expected a class of torchao that is known, found" },
        { AO("{\"_type\":\"Float8Tensor\",\"a\":{\"_type\":\"Float9Tensor\"}}"), NULL, "m.weight",
          "=2,2" },
        { AO("{\"_type\":\"Float8Tensor\",\"_type\":\"Int8Tensor\"}"), NULL, "m._weight_qdata",
          "expected a class of torchao that is known" },
        { AO("{\"_type\":{\"a\":1}}"), NULL, "m._weight_qdata",
          "a class of torchao that is known" },
        { AO("{\"_type\":{\"a\":["), NULL, "m._weight_qdata", "a class of torchao that is known" },
        { AO("{\"_type\":{\"_data\":\"Float8Tensor\""), NULL, "m._weight_qdata",
          "a class of torchao that is known" },
        { AO("{\"_type\":\"Float8Tensor\""), NULL, "m._weight_qdata",
          "a class of torchao that is known" },
        { AO("{\"a\":1}"), NULL, "m._weight_qdata", "a class of torchao that is known" },
        { AO("\"Float8Tensor\""), NULL, "m._weight_qdata", "a class of torchao that is known" },
        { "@m.weight ={\"_type\":\"MXTensor\",\"is_swizzled_scales\":false,\"block_size\":16};"
          "m._weight_qdata F8_E4M3 2,32;m._weight_scale U8 2,1", NULL, "m._weight_qdata",
          "a class of torchao that is known" },
        /* names that are no flattened tensor's */
        { "_qdata F8_E4M3 2,4 #56", NULL, "_qdata", "=as stored" },
        { "m.qdata F8_E4M3 2,4 #56", NULL, "m.qdata", "=as stored" },
        { "m._qdata F8_E4M3 2,4 #56", NULL, "m._qdata", "=as stored" },
        { "m.a_qdata F8_E4M3 2,4 #56", NULL, "m.a_qdata", "=as stored" },
    };
    (void)unused;
    cases_hold(cases, COUNT(cases));
}

#define COMFY(text) "m.weight F8_E4M3 2,4 #56;m.weight_scale F32 - #2;m.comfy_quant U8 ? =" text
#define LAYERS(text) \
    "m.weight F8_E4M3 2,4 #56;m.weight_scale F32 - #2;@_quantization_metadata =" text
#define F8 "\"format\":\"float8_e4m3fn\""

static void reads_comfy(void **unused) {
    static const quant_case cases[] = {
        { COMFY("{" F8 "}"), NULL, "m.weight", "=2,2" },
        { COMFY("\"float8_e4m3fn\""), NULL, "m.weight", "=2,2" },
        { COMFY("\"float8_e4m3fn\" 1"), NULL, "m.comfy_quant",
          "a format in JSON, found other bytes" },
        { COMFY("{" F8 ",\"params\":{\"orig_dtype\":\"float16\"}}"), NULL, "m.weight", "=2,2" },
        { COMFY("{" F8 "," F8 "}"), NULL, "m.weight", "=2,2" },
        { COMFY("{" F8 ",\"params\":{},\"params\":{}}"), NULL, "m.weight",
          "found \"params\" declared too" },
        { COMFY("{" F8 ",\"params\":{\"params\":{}}}"), NULL, "m.weight",
          "and nothing that changes values, found \"params\" declared too" },
        { COMFY("{" F8 ",\"format\":\"float8_e5m2\"}"), NULL, "m.weight",
          "found \"float8_e5m2\" declared too" },
        { COMFY("{" F8 ",\"format\":\"\"}"), NULL, "m.weight", "found \"format\" declared too" },
        { COMFY("{" F8 ",\"format\":5}"), NULL, "m.weight", "found \"format\" declared too" },
        { COMFY("{" F8 ",\"convrot\":true}"), NULL, "m.weight", "found \"convrot\" declared too" },
        { COMFY("{" F8 ",\"convrot\":false}"), NULL, "m.weight", "=2,2" },
        { COMFY("{" F8 ",\"convrot\":false,\"convrot\":true}"), NULL, "m.weight",
          "found \"convrot\" declared too" },
        { COMFY("{" F8 ",\"convrot\":1}"), NULL, "m.weight", "found \"convrot\" declared too" },
        { COMFY("{" F8 ",\"convrot_groupsize\":0}"), NULL, "m.weight",
          "found \"convrot_groupsize\" declared too" },
        { COMFY("{" F8 ",\"convrot_groupsize\":16,\"convrot\":false}"), NULL, "m.weight", "=2,2" },
        { COMFY("{" F8 ",\"convrot_groupsize\":16}"), NULL, "m.weight",
          "\"convrot\" declared too" },
        { COMFY("{" F8 ",\"group_size\":16}"), NULL, "m.weight", "\"group_size\" declared too" },
        { COMFY("{" F8 ",\"group_size\":\"a\"}"), NULL, "m.weight", "\"group_size\" declared too" },
        { COMFY("{" F8 ",\"group_size\":16,\"group_size\":32}"), NULL, "m.weight",
          "\"group_size\" declared too" },
        { COMFY("{" F8 ",\"orig_shape\":[2,4],\"orig_shape\":[2,4]}"), NULL, "m.weight", "=2,2" },
        { COMFY("{" F8 ",\"orig_shape\":[2,4],\"orig_shape\":[2,5]}"), NULL, "m.weight",
          "found \"orig_shape\" declared too" },
        { COMFY("{" F8 ",\"orig_shape\":[2]}"), NULL, "m.weight", "\"orig_shape\" declared too" },
        { COMFY("{" F8 ",\"orig_shape\":[2,0]}"), NULL, "m.weight", "\"orig_shape\" declared too" },
        { COMFY("{" F8 ",\"orig_shape\":8}"), NULL, "m.weight", "\"orig_shape\" declared too" },
        { COMFY("{" F8 ",\"orig_shape\":[2,4,1]}"), NULL, "m.weight",
          "\"orig_shape\" declared too" },
        { COMFY("{" F8 ",\"per_row\":false}"), NULL, "m.weight", "=2,2" },
        { COMFY("{" F8 ",\"per_row\":5}"), NULL, "m.weight", "\"per_row\" declared too" },
        { COMFY("{" F8 ",\"more\":{\"a\":[1]}}"), NULL, "m.weight", "\"more\" declared too" },
        { COMFY("{\"format\":\"float9\"}"), NULL, "m.weight",
          "expected a declared format that is known, found \"float9\"" },
        { COMFY("{}"), NULL, "m.weight", "a declared format that is known, found \"\"" },
        { COMFY("\"\""), NULL, "m.weight", "a declared format that is known, found \"\"" },
        { COMFY("[1]"), NULL, "m.comfy_quant", "a format in JSON, found other bytes" },
        { COMFY("{" F8 ",\"a\":[}"), NULL, "m.comfy_quant", "a format in JSON, found other bytes" },
        { COMFY("{" F8 ",\"a\":\"\xff\"}"), NULL, "m.comfy_quant", "found other bytes" },
        { "m.weight F8_E4M3 2,4;m.weight_scale F32 -;m.comfy_quant U8 65537 #32", NULL,
          "m.comfy_quant", "found other bytes" },
        { "m.weight I8 4,2;m.weight_scale F32 4;m.comfy_quant U8 ? ="
          "{\"format\":\"convrot_w4a4\",\"convrot\":false}", NULL, "m.weight",
          "found \"convrot\" declared too" },
        /* a marker of no weight */
        { "n.a F8_E4M3 2,4 #56;m.comfy_quant U8 ? ={" F8 "}", NULL, "n.a", "=as stored" },
        { "n.a F8_E4M3 2,4;m.comfy_quant U8 ? ={\"format\":\"nvfp4\"}", NULL, "m",
          "expected a weight of the layer, found \"nvfp4\"" },
        { "n.a F8_E4M3 2,4;m.comfy_quant U8 ? ={\"format\":\"int8_tensorwise\",\"convrot\":true}",
          NULL, "m", "expected a weight of the layer, found \"int8_tensorwise\"" },
        { "n.a F8_E4M3 2,4;m.comfy_quant U8 ? ={\"format\":\"awq_w4a16\"}", NULL, "m",
          "expected a weight of the layer, found \"awq_w4a16\"" },
        { "n.a F8_E4M3 2,4;m.comfy_quant U8 ? ={\"format\":\"float9\"}", NULL, "m",
          "a declared format that is known, found \"float9\"" },
        { "n.a F8_E4M3 2,4;m.comfy_quant U8 ? ={" F8 ",\"more\":1}", NULL, "m",
          "found \"more\" declared too" },
        /* its codes are not there if all others are declared */
        { "n.a F32 2;m.comfy_quant U8 ? ={\"format\":\"nvfp4\"}", NULL, "m",
          "expected a weight of the layer, found \"nvfp4\"" },
        { ".comfy_quant U8 2 ={};n.a F8_E4M3 2,4 #56", NULL, "n.a", "=as stored" },
        /* the metadata */
        { LAYERS("{\"format_version\":\"1.0\",\"layers\":{\"m\":{" F8 "}}}"), NULL, "m.weight",
          "=2,2" },
        { LAYERS("{\"layers\":{\"m\":{" F8 "},\"m\":{" F8 "}}}"), NULL, "m.weight", "=2,2" },
        { LAYERS("{\"layers\":{\"m\":{" F8 "},\"m\":{" F8 ",\"per_row\":false}}}"), NULL,
          "m.weight",
          "=2,2" },
        { LAYERS("{\"layers\":{\"m\":{" F8 ",\"per_row\":true},\"m\":{" F8 ",\"per_row\":false}}}"),
          NULL, "m.weight", "expected one declared format, found \"two\"" },
        { LAYERS("{\"layers\":{\"m\":{" F8 "},\"m\":{\"format\":\"mxfp8\"}}}"), NULL, "m.weight",
          "expected one declared format, found \"two\"" },
        { LAYERS("{\"layers\":{\"m\":{" F8 "},\"m\":{" F8 ",\"more\":1}}}"), NULL, "m.weight",
          "expected one declared format, found \"two\"" },
        { LAYERS("{\"layers\":{\"m\":{" F8 "},\"m\":{" F8 ",\"group_size\":8}}}"), NULL, "m.weight",
          "expected one declared format, found \"two\"" },
        { LAYERS("{\"layers\":{\"m\":{" F8 "},\"m\":{" F8 ",\"convrot\":true}}}"), NULL, "m.weight",
          "expected one declared format, found \"two\"" },
        { LAYERS("{\"layers\":{\"m\":{" F8 ",\"convrot\":true},"
          "\"m\":{" F8 ",\"convrot_groupsize\":16}}}"), NULL, "m.weight",
          "expected one declared format, found \"two\"" },
        { LAYERS("{\"layers\":{\"m\":{" F8 "},\"m\":{" F8 ",\"orig_shape\":[3,4]}}}"), NULL,
          "m.weight", "expected one declared format, found \"two\"" },
        { LAYERS("{\"layers\":{\"m\":{" F8 ",\"orig_shape\":[2,5]},"
          "\"m\":{" F8 ",\"orig_shape\":[2,4]}}}"), NULL, "m.weight",
          "expected one declared format, found \"two\"" },
        { LAYERS("{\"layers\":{\"m\":5}}"), NULL, "m.weight", "a declared format that is known" },
        { LAYERS("{\"layers\":{\"m\":{" F8 ",\"convrot\":{}}}}"), NULL, "m.weight",
          "found \"convrot\" declared too" },
        { LAYERS("{\"layers\":{\"\":{" F8 "},\"m\":{" F8 "}}}"), NULL, "m.weight", "=2,2" },
        { LAYERS("{\"layers\":{\"m\":{" F8 "}}}") ";m.comfy_quant U8 ? ={" F8 "}", NULL, "m.weight",
          "=2,2" },
        { LAYERS("{\"layers\":{\"m\":{" F8 "}}}") ";m.comfy_quant U8 ? ={\"format\":\"mxfp8\"}",
          NULL, "m.weight", "the same format in the tensor and in the metadata, found" },
        { LAYERS("{\"a\":1}"), NULL, NULL,
          "expected layers in JSON in the metadata's _quantization_metadata, found another text" },
        { LAYERS("{\"layers\":[]}"), NULL, NULL, "expected layers in JSON" },
        { LAYERS("{\"layers\":{},\"layers\":{}}"), NULL, NULL, "expected layers in JSON" },
        { LAYERS("{\"layers\":{\"m\":{" F8), NULL, NULL, "expected layers in JSON" },
        { LAYERS("{\"layers\":{\"m\":{" F8 "}}"), NULL, NULL, "expected layers in JSON" },
    };
    (void)unused;
    cases_hold(cases, COUNT(cases));
}

/* Files beside the model. size: how long the file is made. */
static void reads_files_beside(void **unused) {
    static const struct { const char *file, *text, *says; uint64_t size; } cases[] = {
        { "config.json", "{\"a\":1}", "=2.5", 0 },
        { "config.json", "\xEF\xBB\xBF{\"quantization\":{\"bits\":4,\"group_size\":8}}", "=2.5",
          0 },
        { "config.json", "{\"quantization\":null,\"quantization\":{\"bits\":4,\"group_size\":8}}",
          "=2.5", 0 },
        { "config.json", "{\"quantization\":5}", "=2.5", 0 },
        { "config.json", "{\"quantization\":{\"bits\":4}}", "=2.5", 0 },
        { "config.json", "{\"quantization\":{\"bits\":4,\"group_size\":8,\"m\":{\"bits\":4}}}",
          "expected a single bits and group_size that is known", 0 },
        { "config.json",
          "{\"quantization\":{\"quant_method\":\"fp8\",\"bits\":4,\"group_size\":8}}",
          "expected a single quant_method that is known", 0 },
        { "quantize_config.json", "{\"bits\":4,\"group_size\":8}",
          "expected a single quant_method that is known", 0 },
        { "hf_quant_config.json", "{\"quantization\":{\"quant_algo\":\"FP8\"}}",
          "expected a single quant_method that is known", 0 },
        { "config.json", "[1]", "expected a quantization_config in JSON in config.json", 0 },
        { "config.json", "{\"a\":1", "expected a quantization_config in JSON in config.json", 0 },
        { "config.json", "{\"a\":[}", "expected a quantization_config in JSON in config.json", 0 },
        { "config.json", "{\"a\":\"\xff\"}",
          "expected a quantization_config in JSON in config.json",
          0 },
        { "config.json", "", "expected a quantization_config in JSON in config.json", 0 },
        { "hf_quant_config.json", "{}", "expected hf_quant_config.json of at most 16777216 bytes, "
          "found more", 16777217 },
    };
    case_model m = case_open(MLX, "{\"bits\":4,\"group_size\":8}");
    size_t failed = 0;
    (void)unused;
    for (size_t i = 0; i < COUNT(cases); i++) {
        sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
        sft_error err = SFT_ERROR_INIT;
        sft_conversion *conversion = NULL;
        sft_set *set;
        const char *path = temp_path("model.safetensors");
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(m.file.bytes, 1, m.file.len, file), m.file.len);
        assert_int_equal(fclose(file), 0);
        file = fopen(temp_path(cases[i].file), "wb");
        assert_non_null(file);
        assert_true(fputs(cases[i].text, file) >= 0);
        assert_int_equal(fclose(file), 0);
        if (cases[i].size)
            assert_int_equal(truncate(temp_path(cases[i].file), (off_t)cases[i].size), 0);
        assert_int_equal(sft_set_open(path, NULL, &set, NULL), SFT_OK);
        options.dequantize = true;
        sft_code code = sft_conversion_new(set, SFT_F32, &options, &conversion, &err);
        bool fine = *cases[i].says == '='
                  ? !code && case_has_values(conversion, set, "m.weight", cases[i].says + 1)
                  : code == SFT_CAST_DTYPE && strstr(err.message, cases[i].says);
        if (!fine)
            print_error("%s %s: expected %s, found %d %s\n", cases[i].file, cases[i].text,
                        cases[i].says, (int)code, err.message);
        failed += !fine;
        sft_conversion_free(conversion);
        sft_set_close(set);
        assert_int_equal(remove(temp_path(cases[i].file)), 0);
    }
    case_close(&m);
    assert_int_equal(failed, 0);
}

/* ── Memory ── */

/* One allocation fails; those after it do not. */
typedef struct one_failure {
    size_t left;
    bool failed;
} one_failure;

static void *fail_once(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    one_failure *f = ctx;
    (void)old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    if (f->left-- > 0) return realloc(ptr, new_size);
    f->left = SIZE_MAX;
    f->failed = true;
    return NULL;
}

static bool is_of_a(void *ctx, const sft_tensor *tensor) {
    (void)ctx;
    return *tensor->name.data == 'a';
}

#define LONG_NAME 8000 /* characters, for which an arena takes a piece from the allocator */

/* What is left of a declaration whose names are spelled with escapes, or out of memory. */
static void keeps_declarations_whole(void **unused) {
    static const char before[] =
        "{\"__metadata__\":{\"_quantization_metadata\":\"{\\\"layers\\\":{"
        "\\\"\\\\u0061\\\":\\\"float8_e4m3fn\\\",\\\"";
    static const char after[] =
        "\\\":\\\"float8_e4m3fn\\\",\\\"b\\\":\\\"float8_e4m3fn\\\"}}\"},"
        "\"a.weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[1,4],\"data_offsets\":[0,4]},"
        "\"a.weight_scale\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[4,8]},"
        "\"b.weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[1,4],\"data_offsets\":[8,12]},"
        "\"b.weight_scale\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[12,16]}}";
    static const float values[4] = { 0, 2, 0, 2 };
    static char header[sizeof before + 7 * LONG_NAME + sizeof after];
    strcpy(header, before);
    for (size_t i = 0; i < LONG_NAME; i++)
        strcpy(header + sizeof before - 1 + 7 * i, "\\\\u0063");
    strcat(header, after);
    test_file file = make_file(header, values, sizeof values);
    sft_file *opened;
    sft_set *set;
    sft_buffer whole = { .len = 0 };
    size_t failures = 0;
    (void)unused;
    assert_int_equal(sft_open_memory(file.bytes, file.len, NULL, &opened, NULL), SFT_OK);
    assert_int_equal(sft_set_from_file(opened, NULL, &set, NULL), SFT_OK);
    for (size_t n = SIZE_MAX;; n = n == SIZE_MAX ? 0 : n + 1) { /* first without a failure */
        one_failure f = { n, false };
        sft_allocator alloc = { fail_once, &f };
        sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
        sft_conversion *conversion = NULL;
        sft_buffer out = { .len = 0 };
        options.dequantize = true;
        options.match = is_of_a;
        options.alloc = &alloc;
        sft_code code = sft_conversion_new(set, SFT_F32, &options, &conversion, NULL);
        if (!code) code = sft_conversion_save(conversion, sft_sink_memory(&out), NULL, NULL);
        sft_conversion_free(conversion);
        if (n == SIZE_MAX) {
            whole = out;
            assert_int_equal(code, SFT_OK);
            continue;
        }
        bool same = out.len == whole.len && memcmp(out.data, whole.data, whole.len) == 0;
        if (!(code ? code == SFT_OUT_OF_MEMORY : same)) print_error("allocation %zu\n", n);
        assert_true(code ? code == SFT_OUT_OF_MEMORY : same);
        sft_buffer_free(&out);
        failures += f.failed;
        if (!f.failed) break;
    }
    assert_true(failures > 10);
    sft_buffer_free(&whole);
    sft_set_close(set);
    free_file(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_configurations), cmocka_unit_test(reads_scopes),
        cmocka_unit_test(reads_mlx),
        cmocka_unit_test(reads_torchao), cmocka_unit_test(reads_comfy),
        cmocka_unit_test(keeps_declarations_whole),
        cmocka_unit_test_setup_teardown(reads_files_beside, temp_dir_make, temp_dir_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
