/* Shapes, dtypes and companions that a quantised layout does not have, each refused with the tensor
 * and the reason, and odd ones that it has, with values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "quant_case.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define ONES_16 "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
#define CT(format, weights) \
    "{\"quant_method\":\"compressed-tensors\",\"format\":\"" format "\"," \
    "\"config_groups\":{\"g\":{\"weights\":{" weights "}}}}"
#define PACK(weights) CT("pack-quantized", "\"type\":\"int\",\"symmetric\":true," weights)
#define FLOATS(weights) CT("float-quantized", "\"type\":\"float\"," weights)
#define GPTQ "{\"quant_method\":\"gptq\",\"bits\":4}"
#define FP8(rest) "{\"quant_method\":\"fp8\"" rest "}"
#define NVFP4 "{\"quant_method\":\"modelopt\",\"quant_algo\":\"NVFP4\"}"

/* 56 is 1 in F8_E4M3, 64 is 2; 15360 is 1 in F16; 127 is 1 in F8_E8M0. */
static void fits_factors(void **unused) {
    static const quant_case cases[] = {
        /* as many factors as the shapes allow, and no others */
        { "w F8_E4M3 2,4 #56;w_scale F32 -  #2", NULL, "w", "=2,2,2,2,2,2,2,2" },
        { "w F8_E4M3 2,4 #56;w_scale F32 2 #2,3", NULL, "w", "=2,2,2,2,3,3,3,3" },
        { "w F8_E4M3 2,4 #56;w_scale F32 4 #2,3,4,5", NULL, "w", "=2,3,4,5,2,3,4,5" },
        { "w F8_E4M3 2,4 #56;w_scale F32 1,4 #2,3,4,5", NULL, "w", "=2,3,4,5,2,3,4,5" },
        { "w F8_E4M3 2,4 #56;w_scale F32 2,2 #2,3,4,5", NULL, "w", "=2,2,3,3,4,4,5,5" },
        { "w F8_E4M3 2,4 #56;w_scale F32 3", NULL, "w_scale", "expected the shape [2], found [3]" },
        { "w F8_E4M3 4,8 #56;w_scale F32 2,8", NULL, "w_scale",
          "a declaration of another block, found another shape" },
        { "w F8_E4M3 4,8 #56;w_scale F32 3,1", NULL, "w_scale",
          "values of the shape [4,8], found the shape [3,1]" },
        { "w F8_E4M3 4,8;w_scale F32 0", NULL, "w_scale", "expected the shape [4], found [0]" },
        { "w F8_E4M3 4,8;w_scale F32 0,0", NULL, "w_scale", "found the shape [0,0]" },
        { "w F8_E4M3 0,8;w_scale F32 -", NULL, "w", "=" },
        { "w F8_E4M3 0,1152921504606846976;w_scale F32 0,1152921504606846976", NULL, "w_scale",
          "expected a shape below 2^64, found another" },
        { "w F8_E4M3 2,4;w_scale F32 0,100000000000000000,100000000000000000,100000000000000000,"
          "100000000000000000", NULL, "w_scale",
          "found the shape [0,100000000000000000,100000000000000000,100000000000000000,"
          "100000000000000000]" },
        { "w F8_E4M3 2,4;w_scale F32 0,100000000000000000,100000000000000000,100000000000000000,"
          "100000000000000000,7", NULL, "w_scale", "100000000000000000,...]" },
        { "w F8_E4M3 4,4 #56;w_scale F32 2,2 #2,3,4,5", NULL, "w",
          "=2,2,3,3,2,2,3,3,4,4,5,5,4,4,5,5" },
        { "w F8_E4M3 0,8589934592,8589934592;w_scale F32 0,8589934592,8589934592", NULL, "w_scale",
          "expected the shape [8589934592,8589934592], found [0,8589934592,8589934592]" },
        { "w F8_E4M3 1099511627776,0,1099511627776;w_scale F32 1099511627776,0,1099511627776", NULL,
          "w_scale",
          "expected the shape [1,1099511627776], found [1099511627776,0,1099511627776]" },
        /* of several matrices: one, one each, one a row */
        { "w F8_E4M3 2,2,2 #56;w_scale F32 1 #3", NULL, "w", "=3,3,3,3,3,3,3,3" },
        { "w F8_E4M3 2,2,2 #56;w_scale F32 2,1,1 #2,3", NULL, "w", "=2,2,2,2,3,3,3,3" },
        { "w F8_E4M3 2,2,2 #56;w_scale F32 2,2,1 #2,3,4,5", NULL, "w", "=2,2,3,3,4,4,5,5" },
        { "w F8_E4M3 3,2,4 #56;w_scale F32 2,4 #2", NULL, "w_scale",
          "a factor for each matrix, found factors that may be shared by all or not" },
        { "w F8_E4M3 3,2,4 #56;w_scale F32 2,2,4", NULL, "w_scale", "expected the shape" },
        { "w F8_E4M3 3,1,4 #56;w_scale F32 3,1 #2,3,4", FLOATS("\"strategy\":\"channel\""), "w",
          "=2,2,2,2,3,3,3,3,4,4,4,4" },
        /* what is told of who shares a factor */
        { "w F8_E4M3 2,4 #56;w_scale F32 2,2 #2,3,4,5", FLOATS("\"strategy\":\"group\""), "w",
          "=2,2,3,3,4,4,5,5" },
        { "w F8_E4M3 2,4 #56;w_scale F32 2,2 #2,3,4,5", FLOATS("\"strategy\":\"block\""), "w",
          "=2,2,3,3,4,4,5,5" },
        { "w F8_E4M3 2,4;w_scale F32 2,2", FLOATS("\"strategy\":\"channel\""), "w_scale",
          "expected the shape [2,1], found [2,2]" },
        { "w F8_E4M3 2,4;w_scale F32 2,1", FLOATS("\"strategy\":\"tensor\""), "w_scale",
          "expected the shape [1,1], found [2,1]" },
        { "w F8_E4M3 2,4;w_scale F32 2,4",
          FLOATS("\"strategy\":\"group\",\"group_size\":2"), "w_scale",
          "expected the shape [2,2], found [2,4]" },
        { "w I8 2,4;w_scale F32 2,1",
          CT("int-quantized", "\"type\":\"float\",\"strategy\":\"channel\""), "w",
          "codes of the type that the quantization_config tells, found integers" },
        { "w F8_E4M3 2,4;w_scale F32 2,1", FLOATS("\"strategy\":\"channel\",\"num_bits\":4"), "w",
          "expected codes of as many bits as the quantization_config tells, found 8" },
        { "w I8 2,4 #3;w_scale F32 2,1 #1",
          CT("int-quantized", "\"symmetric\":false,\"strategy\":\"channel\""), "w",
          "expected zero points, as the quantization_config says (symmetric), found none" },
        { "w I8 2,4 #3;w_scale F32 2,1 #2;w_zero_point I8 2,1 #1,2",
          CT("int-quantized", "\"symmetric\":false,\"strategy\":\"channel\""), "w",
          "=4,4,4,4,2,2,2,2" },
        /* DeepSeek's blocks in one dimension only */
        { "w F8_E4M3 256,256;w_scale_inv F32 2,256", FP8(""), "w_scale_inv",
          "a factor for each block of 128 x 128, or another size in both dimensions" },
        { "w F8_E4M3 256,200;w_scale_inv F32 2,2", FP8(",\"group_size\":100"), "w_scale_inv",
          "a factor for each block of 128 x 128" },
        { "w F8_E4M3 256,200 #56;w_scale_inv F32 2,2 #3,4", FP8(""), "w", "=3,3,3" },
        { "w F8_E4M3 256,4 #56;w_scale_inv F32 2,1 #3,4", FP8(""), "w", "=3,3,3" },
        /* scales that may be in tiles */
        { "w F8_E4M3 128,128 #56;w_scale F8_E8M0 128,4 #127", NULL, "w",
          "the scales of blocks may be in rows or in tiles" },
        { "w F8_E4M3 64,128 #56;w_scale F8_E8M0 64,4 #128", NULL, "w", "=2,2,2" },
        { "w F8_E4M3 256,128 #56;w_scale F8_E8M0 256,2 #128", NULL, "w", "=2,2,2" },
        { "w F8_E4M3 4 #56;w_scale F8_E8M0 1 #128", NULL, "w", "=2,2,2,2" },
        { "w F8_E4M3 0,128;w_scale F8_E8M0 1,4", NULL, "w", "=" },
        { "w F8_E4M3 128,0;w_scale F8_E8M0 128,1", NULL, "w", "=" },
        { "w F8_E4M3 " ONES_16 ONES_16 ONES_16 ONES_16 "1 #56;w_scale F32 1 #1", NULL, "w",
          "expected at most 64 dimensions, found more" },
        /* what else changes values */
        { "w F8_E4M3 2,4;w_scale F32 1;w_scale_2 F32 1", NULL, "w", "found \"w_scale_2\" too" },
        { "m.w F8_E4M3 2,4;m.w_scale F32 1;m.input_scale F32 2", NULL, "m.input_scale",
          "expected the shape [1], found [2]" },
        { "m.w F8_E4M3 3,2,4 #56;m.w_scale F32 1 #2;m.input_scale F32 3", NULL, "m.w", "=2,2" },
        { "m.weight I8 2,2 #127;m.SCB F32 2 #2,3;m.weight_format U8 -", NULL, "m.weight",
          "=2,2,3,3" },
        { "m.weight I8 2,2 #127;m.SCB F32 2 #2,3;m.weight_format U8 - #1", NULL, "m.weight_format",
          "expected 0, found another number" },
    };
    (void)unused;
    cases_hold(cases, COUNT(cases));
}

static void fits_packed_codes(void **unused) {
    static const quant_case cases[] = {
        /* compressed-tensors: the shape is a tensor */
        { "w_packed I32 2,1 #2557891634,0;w_scale F16 2,1 #15360;w_shape I32 2 #2,8",
          PACK("\"num_bits\":4,\"strategy\":\"channel\""), "w", "=-6,-5,-4,-3,-2,-1,0,1,-8,-8" },
        { "w_packed I32 2,1;w_scale F16 2,1;w_shape I64 3",
          PACK("\"num_bits\":4,\"strategy\":\"channel\""), "w_shape",
          "expected two integers for a shape, found another tensor" },
        { "w_packed I32 2,1;w_scale F16 2,1;w_shape I64 2,1",
          PACK("\"num_bits\":4,\"strategy\":\"channel\""), "w_shape", "two integers for a shape" },
        { "w_packed I32 2,1;w_scale F16 2,1;w_shape F32 2 #2,8",
          PACK("\"num_bits\":4,\"strategy\":\"channel\""), "w_shape", "two integers for a shape" },
        { "w_packed I32 2,1;w_scale F16 2,1;w_shape I64 2 #3,8",
          PACK("\"num_bits\":4,\"strategy\":\"channel\""), "w_packed",
          "expected the shape [3,1], found [2,1]" },
        { "w_packed I32 2,1;w_scale F16 2,1;w_shape I64 2 #2,9",
          PACK("\"num_bits\":4,\"strategy\":\"channel\""), "w_packed",
          "its shape and a quantization_config tell, found none" },
        { "w_packed I32 2,1;w_scale F16 2,1;w_shape I64 2 #2,18446744073709551615",
          PACK("\"num_bits\":4,\"strategy\":\"channel\""), "w_packed", "tell, found none" },
        { "w_packed I32 2,1;w_scale F16 2,1;w_shape I64 2 #2,8",
          PACK("\"strategy\":\"channel\""), "w_packed", "tell, found several" },
        { "w_packed I32 2,1;w_scale F16 2,1;w_shape I64 2 #2,11",
          PACK("\"strategy\":\"channel\""), "w_packed", "tell, found several" },
        { "w_packed I32 1,2,1;w_scale F16 2,1;w_shape I64 2 #2,8",
          PACK("\"num_bits\":4,\"strategy\":\"channel\""), "w_packed",
          "expected a matrix, found another number of dimensions" },
        { "w_packed I32 2,1;w_scale F16 2,1;w_shape I64 2 #2,8;w F32 1",
          PACK("\"num_bits\":4,\"strategy\":\"channel\""), "w_packed",
          "expected no \"w\", which its values would be named, found one" },
        { "w_packed I32 2,1;w_scale F16 2,2;w_shape I64 2 #2,8",
          PACK("\"num_bits\":4,\"strategy\":\"group\",\"actorder\":\"group\""), "w_packed",
          "a group for each column (g_idx), as desc_act or actorder says, found none" },
        { "w_packed I32 2,1;w_scale F16 2,2;w_shape I64 2 #2,8",
          PACK("\"num_bits\":4,\"strategy\":\"gr\\u006fup\",\"actorder\":\"gr\\u006fup\""),
          "w_packed",
          "a group for each column (g_idx), as desc_act or actorder says, found none" },
        { "w_packed I32 2,1 #2290649224;w_scale F16 2,2 #15360,16384;w_shape I64 2 #2,8;"
          "w_g_idx I32 8 #0,1",
          PACK("\"num_bits\":4,\"strategy\":\"group\",\"actorder\":true"), "w",
          "=0,0,0,0,0,0,0,0" },
        { "w_packed I32 2,1 #2576980377;w_scale F16 2,2 #15360,16384;w_shape I64 2 #2,8;"
          "w_g_idx I32 8 #0,1",
          PACK("\"num_bits\":4,\"strategy\":\"group\""), "w", "=1,2,1,2,1,2,1,2" },
        { "w_packed I32 2,1;w_scale F16 2,2;w_shape I64 2 #2,8;w_g_idx I32 7",
          PACK("\"num_bits\":4,\"strategy\":\"group\""), "w_g_idx",
          "expected the shape [8], found [7]" },
        { "w_packed I32 2,1;w_scale F16 2,2;w_shape I64 2 #2,8;w_g_idx I32 8,1",
          PACK("\"num_bits\":4,\"strategy\":\"group\""), "w_g_idx",
          "expected the shape [8], found [8,1]" },
        { "w_packed I32 2,1;w_scale F16 2,9;w_shape I64 2 #2,8;w_g_idx I32 8",
          PACK("\"num_bits\":4,\"strategy\":\"group\""), "w_scale",
          "expected the shape [2,8], found [2,9]" },
        { "w_packed I32 2,1;w_scale F16 2,0;w_shape I64 2 #2,8;w_g_idx I32 8",
          PACK("\"num_bits\":4,\"strategy\":\"group\""), "w_scale",
          "expected the shape [2,8], found [2,0]" },
        { "w_packed I32 1,32769;w_scale F16 1,2;w_shape I64 2 #1,262145;w_g_idx I32 262145",
          PACK("\"num_bits\":4,\"strategy\":\"group\""), "w_g_idx",
          "expected at most 262144 columns with groups, found more" },
        /* GPTQ: 8 rows of 8 columns; 1 and the stored zero point of 7 make 8 */
        { "m.qweight I32 1,8 #2576980377;m.scales F16 1,8 #15360;m.qzeros I32 1,1 #2004318071",
          GPTQ, "m.weight", "=1,1,1,1,1,1,1,1,1" },
        { "m.qweight I32 1,8;m.scales F16 1,8;m.qzeros I32 1,3", GPTQ, "m.qweight",
          "expected 1 to 8 bits a code, found another number" },
        { "m.qweight I32 1,8;m.scales F16 1,8;m.qzeros I32 1,0", GPTQ, "m.qweight",
          "expected 1 to 8 bits a code" },
        { "m.qweight I32 1,5;m.scales F16 1,5;m.qzeros I32 1,1", GPTQ, "m.qweight",
          "expected 1 to 8 bits a code" },
        { "m.qweight I32 1,8;m.scales F16 1,8;m.qzeros I32 1", GPTQ, "m.qweight",
          "expected 1 to 8 bits a code" },
        { "m.qweight I32 1,0;m.scales F16 1,0;m.qzeros I32 1,0", GPTQ, "m.qweight",
          "expected 1 to 8 bits a code" },
        { "m.qweight I32 1,8;m.scales F16 1,8;m.qzeros I32 0,1152921504606846976", GPTQ,
          "m.qweight", "expected 1 to 8 bits a code" },
        { "m.qweight I32 8;m.scales F16 1,8;m.qzeros I32 1,1", GPTQ, "m.qweight",
          "expected a matrix, found fewer dimensions" },
        { "m.qweight I32 1,1,8;m.scales F16 1,8;m.qzeros I32 1,1", GPTQ, "m.qweight",
          "expected a matrix, found another number of dimensions" },
        { "m.qweight I32 1,8;m.scales F16 2,8;m.qzeros I32 1,1", GPTQ, "m.qzeros",
          "expected numbers for as many groups as there are scales, found another shape" },
        { "m.qweight I32 1,8;m.scales F16 2,8;m.qzeros I32 2,1",
          "{\"quant_method\":\"gptq\",\"bits\":4,\"desc_act\":true}", "m.qweight",
          "a group for each column (g_idx)" },
        { "m.qweight I32 1,8;m.scales F16 1,8;m.qzeros I32 1,1", "{\"quant_method\":\"gptq\","
          "\"bits\":8}", "m.qweight", "as many bits as the quantization_config tells, found 4" },
        /* without a declaration, of 3 bits: 31 zero points are in the middle, and one is not */
        { "m.qweight I32 3,32 #2454267026;m.scales F16 1,32 #15360;"
          "m.qzeros I32 1,3 #3681400539,3067833782,1840700269", NULL, "m.weight", "=-2,-2,-2" },
        { "m.qweight I32 3,32;m.scales F16 1,32 #15360;"
          "m.qzeros I32 1,3 #3681400539,3067833782,1840700268", NULL, "m.qweight",
          "whether zero points are stored less one (checkpoint_format), found none" },
        /* AWQ */
        { "m.qweight I32 8;m.scales F16 1,8;m.qzeros I32 1,1", "{\"quant_method\":\"awq\"}",
          "m.qweight", "expected a matrix, found fewer dimensions" },
        { "m.qweight I32 8,1 #2004318071;m.scales F16 2,8 #15360;m.qzeros I32 2,1 #1717986918",
          "{\"quant_method\":\"awq\",\"desc_act\":true}", "m.weight", "=1,1,1" },
        /* gpt-oss */
        { "w_blocks U8 2,16;w_scales U8 2", NULL, "w_blocks",
          "expected at least three dimensions, below 2^64, found another shape" },
        { "w_blocks U8 0,4294967296,4294967296;w_scales U8 0,4294967296", NULL, "w_blocks",
          "expected at least three dimensions, below 2^64" },
        /* NVFP4 of ModelOpt */
        { "w U8 -;w_scale F8_E4M3 1;w_scale_2 F32 1", NVFP4, "w",
          "expected at least one dimension for codes of fewer bits, found none" },
        { "w U8 0,2305843009213693952;w_scale F8_E4M3 0,1;w_scale_2 F32 1", NVFP4, "w",
          "expected a shape below 2^64, found another" },
        { "w U8 1,8 #34;w_scale F8_E4M3 1,1 #56;w_scale_2 F32 1 #2;w_scale_inv F32 1", NVFP4, "w",
          "found \"w_scale_inv\" too" },
        { "w U8 1,8 #34;w_scale F8_E4M3 1,1 #56;w_scale_2 F32 1 #2", NVFP4, "w", "=2,2,2,2" },
        { "w U8 1,8;w_scale F32 1,1;w_scale_2 F32 1", NVFP4, "w",
          "expected what the quantization_config's \"modelopt\" stores, found another layout" },
        { "w U8 1,8;w_scale F8_E4M3 1,1", NVFP4, "w",
          "expected \"w_scale_2\" beside it, found none" },
    };
    (void)unused;
    cases_hold(cases, COUNT(cases));
}

#define COMFY(text) ";m.comfy_quant U8 ? =" text

#define ASYM "m.weight I8 "

static void fits_what_comfy_declares(void **unused) {
    static const quant_case cases[] = {
        { "m.weight F8_E4M3 2,4 #56;m.weight_scale F32 - #2"
          COMFY("{\"format\":\"float8_e4m3fn\",\"orig_shape\":[2,4]}"), NULL, "m.weight", "=2,2" },
        { "m.weight F8_E4M3 2,4;m.weight_scale F32 -"
          COMFY("{\"format\":\"float8_e4m3fn\",\"orig_shape\":[3,4]}"), NULL, "m.weight",
          "expected the shape [3,4], found [2,4]" },
        { "m.weight F8_E4M3 2,4;m.weight_scale F32 -"
          COMFY("{\"format\":\"float8_e4m3fn\",\"orig_shape\":[2,3]}"), NULL, "m.weight",
          "expected the shape [2,3], found [2,4]" },
        { "m.weight F8_E4M3 1,2,4;m.weight_scale F32 -"
          COMFY("{\"format\":\"float8_e4m3fn\",\"orig_shape\":[2,4]}"), NULL, "m.weight",
          "expected the shape [2,4], found [1,2,4]" },
        { "m.weight F8_E4M3 8" COMFY("{\"format\":\"float8_e4m3fn\"}"), NULL, "m.weight",
          "expected the tensors of \"float8_e4m3fn\", as which it is declared, found others" },
        { "m.weight F32 2,4" COMFY("{\"format\":\"float8_e4m3fn\"}"), NULL, "m.weight",
          "expected quantised values, as which it is declared, found F32" },
        { "m.weight I8 2,4;m.weight_scale F32 -" COMFY("{\"format\":\"float8_e4m3fn\"}"), NULL,
          "m.weight", "expected U8 or F8_E4M3, as \"float8_e4m3fn\" has it, found I8" },
        { "m.weight F8_E4M3 2,4;m.weight_scale F32 -;m.lora F32 1"
          COMFY("{\"format\":\"float8_e4m3fn\"}"), NULL, "m.weight",
          "as which it is declared, found \"m.lora\" too" },
        { "m.weight F8_E4M3 2,4 #56;m.weight_scale F32 - #2;m.bias F32 2"
          COMFY("{\"format\":\"float8_e4m3fn\"}"), NULL, "m.weight", "=2,2" },
        /* with a quantization_config that says the same, or not */
        { "m.weight F8_E4M3 2,4 #56;m.weight_scale F32 - #2"
          COMFY("{\"format\":\"float8_e4m3fn\"}"), FP8(""), "m.weight", "=2,2" },
        { "m.weight F8_E4M3 2,4;m.weight_scale F32 -"
          COMFY("{\"format\":\"float8_e4m3fn\"}"), GPTQ, "m.weight",
          "expected what the quantization_config's \"gptq\" stores, found \"float8_e4m3fn\"" },
        { "m.weight U8 16,8;m.weight_scale F8_E4M3 128,4;m.weight_scale_2 F32 -"
          COMFY("{\"format\":\"nvfp4\"}"), NVFP4, "m.weight",
          "expected what the quantization_config's \"modelopt\" stores, found \"nvfp4\" declared" },
        /* padding */
        { "m.weight F8_E4M3 32,32 #56;m.weight_scale U8 128,4 #128;m.bias F32 30"
          COMFY("{\"format\":\"mxfp8\"}"), NULL, "m.weight", "=2,2,2" },
        { "m.weight F8_E4M3 32,32 #56;m.weight_scale U8 128,4 #128;m.bias F32 30,1"
          COMFY("{\"format\":\"mxfp8\"}"), NULL, "m.weight", "=2,2,2" },
        { "m.weight F8_E4M3 32,32 #56;m.weight_scale U8 128,4 #128;m.bias F32 30"
          COMFY("{\"format\":\"mxfp8\",\"orig_shape\":[30,32]}"), NULL, "m.weight", "=2,2,2" },
        { "m.weight F8_E4M3 32,32;m.weight_scale U8 128,4;m.bias F32 29"
          COMFY("{\"format\":\"mxfp8\",\"orig_shape\":[30,32]}"), NULL, "m.bias",
          "expected the shape [30], found [29]" },
        { "m.weight F8_E4M3 32,32;m.weight_scale U8 128,4;m.bias F32 30,1"
          COMFY("{\"format\":\"mxfp8\",\"orig_shape\":[30,32]}"), NULL, "m.bias",
          "expected the shape [30], found [30,1]" },
        { "m.weight F8_E4M3 32,32;m.weight_scale U8 128,4"
          COMFY("{\"format\":\"mxfp8\",\"orig_shape\":[33,32]}"), NULL, "m.weight",
          "expected the shape [33,32], found [32,32]" },
        { "m.weight F8_E4M3 32,32;m.weight_scale U8 128,4"
          COMFY("{\"format\":\"mxfp8\",\"orig_shape\":[32,65]}"), NULL, "m.weight",
          "expected the shape [32,65], found [32,32]" },
        { "m.weight F8_E4M3 32,32;m.weight_scale U8 128,4"
          COMFY("{\"format\":\"mxfp8\",\"orig_shape\":[18446744073709551615,32]}"), NULL,
          "m.weight", "expected the shape [18446744073709551615,32]" },
        { "m.weight F8_E4M3 32,32;m.weight_scale U8 128,4"
          COMFY("{\"format\":\"mxfp8\",\"orig_shape\":[32,18446744073709551615]}"), NULL,
          "m.weight", "expected the shape [32,18446744073709551615]" },
        { "m.weight F8_E4M3 1,32,32;m.weight_scale U8 128,4"
          COMFY("{\"format\":\"mxfp8\"}"), NULL, "m.weight",
          "expected a matrix, found another number of dimensions" },
        /* rotated columns */
        { "m.weight I8 4;m.weight_scale F32 4" COMFY("{\"format\":\"convrot_w4a4\"}"), NULL,
          "m.weight", "expected a matrix, found fewer dimensions" },
        { "m.weight I8 4,6;m.weight_scale F32 -"
          COMFY("{\"format\":\"int8_tensorwise\",\"convrot\":true,\"convrot_groupsize\":4}"),
          NULL, "m.weight", "expected rotated groups of a power of 4, at most 1024, that divides" },
        { "m.weight I8 4,8;m.weight_scale F32 -"
          COMFY("{\"format\":\"int8_tensorwise\",\"convrot\":true,\"convrot_groupsize\":8}"),
          NULL, "m.weight", "expected rotated groups of a power of 4" },
        { "m.weight I8 4,8;m.weight_scale F32 -"
          COMFY("{\"format\":\"int8_tensorwise\",\"convrot\":true,\"convrot_groupsize\":1}"),
          NULL, "m.weight", "expected rotated groups of a power of 4" },
        { "m.weight I8 1,4096;m.weight_scale F32 -"
          COMFY("{\"format\":\"int8_tensorwise\",\"convrot\":true,\"convrot_groupsize\":4096}"),
          NULL, "m.weight", "expected rotated groups of a power of 4, at most 1024" },
        { "m.weight I8 1,4,4;m.weight_scale F32 -"
          COMFY("{\"format\":\"int8_tensorwise\",\"convrot\":true,\"convrot_groupsize\":4}"),
          NULL, "m.weight", "that divides the columns of a matrix, found" },
        { "m.weight I8 1,4 #2,0,0,0;m.weight_scale F32 - #1"
          COMFY("{\"format\":\"int8_tensorwise\",\"convrot\":true,\"convrot_groupsize\":4}"),
          NULL, "m.weight", "=1,1,1,-1" },
        { "m.weight I8 2,4 #2;m.weight_scale F32 2 #1,2"
          COMFY("{\"format\":\"int8_tensorwise\"}"), NULL, "m.weight", "=2,2,2,2,4,4" },
        /* rows of 6 bits, or of 4, as the number of scales tells; 32 and 8 are in the middle */
        { ASYM "1,24 #0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,170,170,170,170,170,170,170,170;"
          "m.weight_s_rel F32 1,2 #1;m.weight_s_channel F32 1 #1"
          COMFY("{\"format\":\"asym_w4a8_int8\",\"convrot_groupsize\":16}"), NULL, "m.weight",
          "=0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0" },
        { ASYM "1,24 #136;m.weight_s_rel F32 1,6 #1;m.weight_s_channel F32 1 #1"
          COMFY("{\"format\":\"asym_w4a8_int8\",\"convrot_groupsize\":16,\"group_size\":8}"), NULL,
          "m.weight", "=0,0,0,0,0,0,0,0" },
        { ASYM "1,24;m.weight_s_rel F32 1,1;m.weight_s_channel F32 1"
          COMFY("{\"format\":\"asym_w4a8_int8\",\"convrot_groupsize\":16}"), NULL,
          "m.weight_s_rel", "values of the shape [1,48], found the shape [1,1]" },
        { ASYM "1,24;m.weight_s_rel F32 2;m.weight_s_channel F32 1"
          COMFY("{\"format\":\"asym_w4a8_int8\",\"convrot_groupsize\":16}"), NULL,
          "m.weight_s_rel", "values of the shape [1,48], found the shape [2]" },
        { ASYM "0,24;m.weight_s_rel F32 0,1152921504606846976;m.weight_s_channel F32 1"
          COMFY("{\"format\":\"asym_w4a8_int8\",\"convrot_groupsize\":16}"), NULL,
          "m.weight_s_rel", "found the shape [0,1152921504606846976]" },
        /* another declaration of what is read by its names */
        { "m.w_packed I32 2,1;m.w_scale F16 2,1;m.w_shape I64 2 #2,8;m.comfy_quant U8 ? ="
          "{\"format\":\"float8_e4m3fn\"}",
          PACK("\"num_bits\":4,\"strategy\":\"channel\""), "m.w_packed",
          "no declaration of its layer but that by which it is read, found one of ComfyUI" },
        /* a scale that is quantised itself */
        { "w F8_E4M3 2,4;w_scale F8_E4M3 2,4;w_scale_scale F32 -", NULL, "w_scale",
          "expected numbers that are as they are stored, found some that are quantised" },
    };
    (void)unused;
    cases_hold(cases, COUNT(cases));
}

/* The line and the lines of groups of bitsandbytes and HQQ. */
#define STATE(text) ";w.quant_state.bitsandbytes__nf4 U8 ? =" text
#define BNB "w U8 4,1 #16;w.absmax F32 2 #2,3;w.quant_map F32 16 #0,1,2,3,4,5,6,7,8,9,10,11,12,13"
#define NESTED "w U8 4,1 #16;w.absmax U8 2 #1,2;w.quant_map F32 16 #0,1,2,3;" \
    "w.nested_absmax F32 1 #2;w.nested_quant_map F32 256 #0,1,2"

static void fits_lines(void **unused) {
    static const quant_case cases[] = {
        { BNB STATE("{\"blocksize\":4,\"shape\":[2,4]}"), NULL, "w", "=2,0,2,0,3,0,3,0" },
        { BNB STATE("{\"blocksize\":4,\"shape\":[8],\"dtype\":\"float16\",\"more\":{\"a\":[1]}}"),
          NULL, "w", "=2,0,2,0,3,0,3,0" },
        { NESTED STATE("{\"blocksize\":4,\"shape\":[8],\"nested_blocksize\":256,"
          "\"nested_offset\":0.5}"), NULL, "w", "=2.5,0,2.5,0,4.5,0,4.5,0" },
        { NESTED STATE("{\"blocksize\":4,\"shape\":[8],\"nested_blocksize\":256,"
          "\"nested_offset\":-25e-2}"), NULL, "w", "=1.75,0,1.75,0,3.75,0" },
        { NESTED STATE("{\"blocksize\":4,\"shape\":[8],\"nested_blocksize\":256,"
          "\"nested_offset\":0.0025E+2}"), NULL, "w", "=2.25,0,2.25,0,4.25,0" },
        { NESTED STATE("{\"blocksize\":4,\"shape\":[8],\"nested_blocksize\":256,"
          "\"nested_offset\":250000000000000000000000e-24}"), NULL, "w", "=2.25,0,2.25,0,4.25,0" },
        { NESTED STATE("{\"blocksize\":4,\"shape\":[8],\"nested_blocksize\":256,"
          "\"nested_offset\":0.25000000000000000000000000}"), NULL, "w", "=2.25,0,2.25,0,4.25,0" },
        { NESTED STATE("{\"blocksize\":4,\"shape\":[8],\"nested_blocksize\":256,"
          "\"nested_offset\":1e-99999}"), NULL, "w", "=2,0,2,0,4,0" },
        { NESTED STATE("{\"blocksize\":4,\"shape\":[8],\"nested_blocksize\":256,"
          "\"nested_offset\":-1e39}"), NULL, "w.quant_state.bitsandbytes__nf4",
          "expected a nested offset that is finite in F32, found a greater one" },
        { NESTED STATE("{\"blocksize\":4,\"shape\":[8],\"nested_blocksize\":256}"), NULL,
          "w.quant_state.bitsandbytes__nf4",
          "expected a nested offset that is finite in F32, found none" },
        { NESTED STATE("{\"blocksize\":4,\"shape\":[8],\"nested_blocksize\":256,"
          "\"nested_offset\":null}"), NULL, "w.quant_state.bitsandbytes__nf4",
          "expected a nested offset that is finite in F32, found none" },
        { NESTED STATE("{\"blocksize\":4,\"shape\":[8]}"), NULL, "w.nested_absmax",
          "expected a nested block size, found none" },
        { NESTED STATE("{\"blocksize\":4,\"shape\":[8],\"nested_blocksize\":9223372036854775808}"),
          NULL, "w.nested_absmax", "expected a nested block size" },
        { NESTED STATE("{\"blocksize\":4,\"shape\":[8],\"nested_blocksize\":-1}"), NULL,
          "w.nested_absmax", "expected a nested block size" },
        { NESTED STATE("{\"blocksize\":4,\"shape\":[8],\"nested_blocksize\":1}"), NULL,
          "w.nested_absmax", "expected the shape [2], found [1]" },
        { BNB STATE("{\"blocksize\":0,\"shape\":[8]}"), NULL, "w.quant_state.bitsandbytes__nf4",
          "expected a shape and a block size in JSON, found other bytes" },
        { BNB STATE("{\"blocksize\":4}"), NULL, "w.quant_state.bitsandbytes__nf4",
          "a shape and a block size in JSON" },
        { BNB STATE("{\"blocksize\":4,\"shape\":8}"), NULL, "w.quant_state.bitsandbytes__nf4",
          "a shape and a block size in JSON" },
        { BNB STATE("{\"blocksize\":4,\"shape\":[8,"), NULL, "w.quant_state.bitsandbytes__nf4",
          "a shape and a block size in JSON" },
        { BNB STATE("{\"blocksize\":4,\"shape\":[8]} 1"), NULL, "w.quant_state.bitsandbytes__nf4",
          "a shape and a block size in JSON" },
        { BNB STATE("{\"blocksize\":4,\"shape\":[1,1,1,1,1,1,1,1,8]}"), NULL,
          "w.quant_state.bitsandbytes__nf4", "a shape and a block size in JSON" },
        { BNB STATE("[4,8]"), NULL, "w.quant_state.bitsandbytes__nf4", "a shape and a block size" },
        { BNB STATE("{\"blocksize\":4,\"shape\":[8],\"a\":\"\xff\"}"), NULL,
          "w.quant_state.bitsandbytes__nf4", "a shape and a block size in JSON" },
        { BNB ";w.quant_state.bitsandbytes__nf4 U8 65537 #32", NULL,
          "w.quant_state.bitsandbytes__nf4", "a shape and a block size in JSON" },
        { BNB STATE("{\"blocksize\":4,\"shape\":[2,5]}"), NULL, "w",
          "expected the shape [5,1], found [4,1]" },
        { BNB STATE("{\"blocksize\":4,\"shape\":[4294967296,4294967296]}"), NULL, "w",
          "expected the shape [4294967296,4294967296], found [4,1]" },
        { BNB STATE("{\"blocksize\":8,\"shape\":[2,4]}"), NULL, "w.absmax",
          "expected the shape [1], found [2]" },
        { "w U8 4,1;w.absmax F32 2,1;w.quant_map F32 16" STATE("{\"blocksize\":4,\"shape\":[8]}"),
          NULL, "w.absmax", "expected the shape [2], found [2,1]" },
        { "w U8 4,1;w.absmax F32 2;w.quant_map F32 15" STATE("{\"blocksize\":4,\"shape\":[8]}"),
          NULL, "w.quant_map", "expected the shape [16], found [15]" },
        { "w U8 4,1;w.absmax F32 2;w.quant_map F32 16,1" STATE("{\"blocksize\":4,\"shape\":[8]}"),
          NULL, "w.quant_map", "expected the shape [16], found [16,1]" },
        { "w U8 4,1;w.absmax U8 2;w.quant_map F32 16" STATE("{\"blocksize\":4,\"shape\":[8]}"),
          NULL, "w.absmax", "nested statistics for those that are codes only, found others" },
        { "w U8 4,1;w.absmax F32 2;w.quant_map F32 16;w.nested_absmax F32 1;"
          "w.nested_quant_map F32 256"
          STATE("{\"blocksize\":4,\"shape\":[8],\"nested_blocksize\":256}"),
          NULL, "w.absmax", "nested statistics for those that are codes only" },
        { "w U8 4,1;w.absmax U8 2;w.quant_map F32 16;w.nested_absmax F32 1"
          STATE("{\"blocksize\":4,\"shape\":[8],\"nested_blocksize\":256}"),
          NULL, "w.absmax", "nested statistics for those that are codes only" },
        { "w U8 4,1;w.absmax F32 2;w.quant_map F32 16;w.nested_quant_map F32 256"
          STATE("{\"blocksize\":4,\"shape\":[8]}"), NULL, "w.absmax",
          "nested statistics for those that are codes only" },
        /* HQQ: two rows in each byte, the first in the high half */
        { "m.W_q U8 1,2 #33,67;m.zero F32 2,1 #1,0;m.scale F32 2,1 #1,2;m.shape I64 2 #2,2", NULL,
          "m.weight", "=1,3,2,6" },
        { "m.W_q U8 1,2 #33,67;m.zero F32 1,2 #1,0;m.scale F32 1,2 #1,2;m.shape I64 2 #2,2", NULL,
          "m.weight", "=1,8,0,6" },
        { "m.W_q U8 1,2;m.zero F32 2;m.scale F32 2,1;m.shape I64 2 #2,2", NULL, "m.zero",
          "expected the shape [2,1], found [2]" },
        { "m.W_q U8 1,2;m.zero F32 2,1;m.scale F32 2,2;m.shape I64 2 #2,2", NULL, "m.scale",
          "expected the shape [2,1], found [2,2]" },
        { "m.W_q U8 1,2;m.zero F32 3,1;m.scale F32 2,1;m.shape I64 2 #2,2", NULL, "m.zero",
          "expected the shape [2,1], found [3,1]" },
        { "m.W_q U8 1,2;m.zero F32 1,3;m.scale F32 2,1;m.shape I64 2 #2,2", NULL, "m.zero",
          "expected the shape [2,1], found [1,3]" },
        { "m.W_q U8 2;m.zero F32 2,1;m.scale F32 2,1;m.shape I64 2 #2,2", NULL, "m.W_q",
          "expected the shape [2,2], found [2]" },
        { "m.W_q U8 0,2;m.zero F32 2,1;m.scale F32 2,1;m.shape I64 2 #2,2", NULL, "m.W_q",
          "expected the shape [2,2], found [0,2]" },
        { "m.W_q U8 1,3;m.zero F32 2,1;m.scale F32 2,1;m.shape I64 2 #2,2", NULL, "m.W_q",
          "expected the shape [2,2], found [1,3]" },
        { "m.W_q U8 1,2;m.zero F32 2,1;m.scale F32 2,1;m.shape I64 2 #4294967296,4294967296", NULL,
          "m.W_q", "expected the shape [4294967296,4294967296]" },
        { "m.W_q U8 1,2;m.zero F32 2,1;m.scale F32 2,1;m.shape I64 3", NULL, "m.shape",
          "expected two integers for a shape, found another tensor" },
        { "m.W_q U8 1,2;m.zero F32 3,1;m.scale F32 3,1;m.shape I64 2 #3,2", NULL, "m.W_q",
          "rows of 1, 2, 4 or 8 bits in bytes, or of 3 in words, found others" },
        { "m.W_q U8 2,2;m.zero F32 3,1;m.scale F32 3,1;m.shape I64 2 #3,2", NULL, "m.W_q",
          "rows of 1, 2, 4 or 8 bits in bytes" },
        { "m.W_q U8 2,1 #1,2;m.zero F32 2,1 #0;m.scale F32 2,1 #3;m.shape I64 2 #2,1", NULL,
          "m.weight", "=3,6" },
        { "m.W_q U8 1,1 #27;m.zero F32 4,1 #0;m.scale F32 4,1 #1;m.shape I64 2 #4,1", NULL,
          "m.weight", "=0,1,2,3" },
        { "m.W_q U8 1,1 #160;m.zero F32 8,1 #0;m.scale F32 8,1 #1;m.shape I64 2 #8,1", NULL,
          "m.weight", "=1,0,1,0,0,0,0,0" },
        { "m.W_q I32 2,1 #134217728,268435456;m.zero F32 11,1 #0;m.scale F32 11,1 #1;"
          "m.shape I64 2 #11,1", NULL, "m.weight", "=1,2,0,0,0,0,0,0,0,0,0" },
        { "m.W_q I32 1,1;m.zero F32 11,1;m.scale F32 11,1;m.shape I64 2 #11,1", NULL, "m.W_q",
          "or of 3 in words, found others" },
        /* only the name of the values is longer than companions' names may be */
        { "~~~~~mmmmmmmmmmmmmmmmmm.W_q U8 1,2;~~~~~mmmmmmmmmmmmmmmmmm.zero F32 2,1;"
          "~~~~~mmmmmmmmmmmmmmmmmm.scale F32 2,1;~~~~~mmmmmmmmmmmmmmmmmm.shape I64 2 #2,2", NULL,
          "~~~~~mmmmmmmmmmmmmmmmmm.W_q",
          "expected a name of at most 1024 bytes for its values, found a longer one" },
    };
    (void)unused;
    cases_hold(cases, COUNT(cases));
}

/* More rows and columns than are computed at once, read from the last on. */
static void reads_wide_matrices(void **unused) {
#define STRETCH 30001
    static const struct {
        const char *tensors, *config, *name;
        size_t count, first; /* so many are of the one value, all others of the other */
        float values[2];
    } cases[] = {
        { "m.W_q U8 1,70000 #33;m.zero F32 1,70000 #0;m.scale F32 1,70000 #1;"
          "m.shape I64 2 #2,70000", NULL, "m.weight", 140000, 70000, { 2, 1 } },
        { "m.W_q I32 1,70000 #153391689;m.zero F32 1,70000 #0;m.scale F32 1,70000 #3;"
          "m.shape I64 2 #10,70000", NULL, "m.weight", 700000, 700000, { 3, 3 } },
        { "m.qweight I32 1,70000 #2576980377;m.scales F16 1,70000 #15360;"
          "m.qzeros I32 1,8750 #2004318071", GPTQ, "m.weight", 560000, 560000, { 1, 1 } },
        { "m.qweight I32 9000,8 #2576980377;m.scales F16 1,8 #15360;m.qzeros I32 1,1 #2004318071",
          GPTQ, "m.weight", 576000, 576000, { 1, 1 } },
        { "m.qweight I32 8,9000 #2576980377;m.scales F16 1,72000 #15360;m.qzeros I32 1,9000 "
          "#2290649224", "{\"quant_method\":\"awq\"}", "m.weight", 576000, 576000, { 1, 1 } },
        { "m.weight U32 2,8750 #286331153;m.scales F32 2,8750 #2;m.biases F32 2,8750 #0.5",
          "{\"bits\":4,\"group_size\":8}", "m.weight", 140000, 140000, { 2.5F, 2.5F } },
    };
    float *found = malloc(STRETCH * sizeof *found);
    (void)unused;
    assert_non_null(found);
    for (size_t i = 0; i < COUNT(cases); i++) {
        case_model m = case_open(cases[i].tensors, cases[i].config);
        sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
        sft_error err = SFT_ERROR_INIT;
        sft_conversion *conversion;
        sft_part part = { .source = NULL };
        options.dequantize = true;
        if (sft_conversion_new(m.set, SFT_F32, &options, &conversion, &err))
            fail_msg("%s: %s", cases[i].tensors, err.message);
        for (size_t k = 0; k < sft_set_tensor_count(m.set) && !part.source; k++) {
            part = sft_conversion_part(conversion, k);
            if (!sft_span_equal(part.spec.name, sft_span_cstr(cases[i].name))) part.source = NULL;
        }
        assert_non_null(part.source);
        for (size_t at = cases[i].count; at > 0;) {
            size_t n = at < STRETCH ? at : STRETCH, got = 0;
            at -= n;
            for (size_t done = 0; done < 4 * n; done += got)
                assert_int_equal(sft_source_read(part.source, part.begin + 4 * at + done,
                                                 (char *)found + done, 4 * n - done, &got, NULL),
                                 SFT_OK);
            for (size_t k = 0; k < n; k++) {
                float want = cases[i].values[at + k >= cases[i].first];
                if (found[k] < want || found[k] > want)
                    fail_msg("case %zu, value %zu: %g", i, at + k, (double)found[k]);
            }
        }
        sft_conversion_free(conversion);
        case_close(&m);
    }
    free(found);
}

/* Whatever of a layer cannot be read, its values are not told. */
static void tells_of_failed_reads(void **unused) {
    static const struct { const char *tensors, *config; } cases[] = {
        { "w F8_E4M3 2,4 #56;w_scale F32 2,1 #2", NULL },
        { "w U8 1,8 #34;w_scale F8_E4M3 1,1 #56;w_scale_2 F32 1 #2", NVFP4 },
        { "m.W_q U8 1,2 #33;m.zero F32 2,1;m.scale F32 2,1 #1;m.shape I64 2 #2,2", NULL },
        { "m.qweight I32 1,8 #1;m.scales F16 1,8 #15360;m.qzeros I32 1,1 #1", GPTQ },
        { "m.qweight I32 8,1 #1;m.scales F16 2,8 #15360;m.qzeros I32 2,1 #1",
          "{\"quant_method\":\"awq\"}" },
        { "m.weight U32 2,1 #1;m.scales F32 2,1 #2;m.biases F32 2,1 #0.5",
          "{\"bits\":4,\"group_size\":8}" },
        { "w_packed I32 2,1;w_scale F16 2,2 #15360;w_shape I64 2 #2,8;w_g_idx I32 8 #0,1",
          PACK("\"num_bits\":4,\"strategy\":\"group\"") },
        { NESTED STATE("{\"blocksize\":4,\"shape\":[8],\"nested_blocksize\":256,"
          "\"nested_offset\":0}"), NULL },
        { ASYM "1,24 #0;m.weight_s_rel F32 1,2 #1;m.weight_s_channel F32 1 #1"
          COMFY("{\"format\":\"asym_w4a8_int8\",\"convrot_groupsize\":16}"), NULL },
    };
    (void)unused;
    for (size_t i = 0; i < COUNT(cases); i++) {
        case_model m = case_open(cases[i].tensors, cases[i].config);
        for (size_t t = 0; t < sft_set_tensor_count(m.set); t++) {
            test_source bytes = make_source(&m.file);
            sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
            sft_error err = SFT_ERROR_INIT;
            sft_conversion *conversion = NULL;
            sft_file *file;
            sft_set *set;
            assert_int_equal(sft_open_source(source_of(&bytes, m.file.len), NULL, &file, NULL),
                             SFT_OK);
            assert_int_equal(sft_set_from_file(file, NULL, &set, NULL), SFT_OK);
            bytes.fail_at = sft_set_tensor_at(set, t)->offset;
            options.dequantize = true;
            sft_code code = sft_conversion_new(set, SFT_F32, &options, &conversion, &err);
            for (size_t k = 0; !code && k < sft_set_tensor_count(set); k++) {
                sft_part part = sft_conversion_part(conversion, k);
                float value;
                size_t got;
                if (sft_conversion_action(conversion, k, NULL) != SFT_CONVERT_DEQUANTIZE) continue;
                code = sft_source_read(part.source, part.begin, &value, 4, &got, &err);
            }
            if (code != SFT_IO_READ)
                fail_msg("%s, tensor %zu: %d %s", cases[i].tensors, t, (int)code, err.message);
            sft_conversion_free(conversion);
            sft_set_close(set);
        }
        case_close(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fits_factors), cmocka_unit_test(fits_packed_codes),
        cmocka_unit_test(fits_what_comfy_declares), cmocka_unit_test(fits_lines),
        cmocka_unit_test(reads_wide_matrices), cmocka_unit_test(tells_of_failed_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
