/* The table of PyTorch's element types. */
#include "formats/pickle/globals.h"

#define NO_DTYPE SFT_U8

static const sfti_torch_dtype torch_dtypes[] = {
    { "float32", "FloatStorage", SFTI_TORCH_PLAIN, 4, 4, SFT_F32 },
    { "float16", "HalfStorage", SFTI_TORCH_PLAIN, 2, 2, SFT_F16 },
    { "bfloat16", "BFloat16Storage", SFTI_TORCH_PLAIN, 2, 2, SFT_BF16 },
    { "int64", "LongStorage", SFTI_TORCH_PLAIN, 8, 8, SFT_I64 },
    { "float64", "DoubleStorage", SFTI_TORCH_PLAIN, 8, 8, SFT_F64 },
    { "int32", "IntStorage", SFTI_TORCH_PLAIN, 4, 4, SFT_I32 },
    { "int16", "ShortStorage", SFTI_TORCH_PLAIN, 2, 2, SFT_I16 },
    { "int8", "CharStorage", SFTI_TORCH_PLAIN, 1, 0, SFT_I8 },
    { "uint8", "ByteStorage", SFTI_TORCH_PLAIN, 1, 0, SFT_U8 },
    { "bool", "BoolStorage", SFTI_TORCH_PLAIN, 1, 0, SFT_BOOL },
    { "uint16", NULL, SFTI_TORCH_PLAIN, 2, 2, SFT_U16 },
    { "uint32", NULL, SFTI_TORCH_PLAIN, 4, 4, SFT_U32 },
    { "uint64", NULL, SFTI_TORCH_PLAIN, 8, 8, SFT_U64 },
    { "float8_e4m3fn", NULL, SFTI_TORCH_PLAIN, 1, 0, SFT_F8_E4M3 },
    { "float8_e5m2", NULL, SFTI_TORCH_PLAIN, 1, 0, SFT_F8_E5M2 },
    { "float8_e4m3fnuz", NULL, SFTI_TORCH_PLAIN, 1, 0, SFT_F8_E4M3FNUZ },
    { "float8_e5m2fnuz", NULL, SFTI_TORCH_PLAIN, 1, 0, SFT_F8_E5M2FNUZ },
    { "float8_e8m0fnu", NULL, SFTI_TORCH_PLAIN, 1, 0, SFT_F8_E8M0 },
    { "float4_e2m1fn_x2", NULL, SFTI_TORCH_PAIRS, 1, 0, SFT_F4 },
    { "complex64", "ComplexFloatStorage", SFTI_TORCH_PLAIN, 8, 4, SFT_C64 },
    { "complex128", "ComplexDoubleStorage", SFTI_TORCH_NONE, 16, 8, NO_DTYPE },
    { "complex32", "ComplexHalfStorage", SFTI_TORCH_NONE, 4, 2, NO_DTYPE },
    { "qint8", "QInt8Storage", SFTI_TORCH_QUANTISED, 1, 0, SFT_I8 },
    { "quint8", "QUInt8Storage", SFTI_TORCH_QUANTISED, 1, 0, SFT_U8 },
    { "qint32", "QInt32Storage", SFTI_TORCH_QUANTISED, 4, 4, SFT_I32 },
    { "quint4x2", "QUInt4x2Storage", SFTI_TORCH_NONE, 1, 0, NO_DTYPE },
    { "quint2x4", "QUInt2x4Storage", SFTI_TORCH_NONE, 1, 0, NO_DTYPE },
    { "bits8", NULL, SFTI_TORCH_NONE, 1, 0, NO_DTYPE },
    { "bits16", NULL, SFTI_TORCH_NONE, 2, 2, NO_DTYPE },
    { "bits1x8", NULL, SFTI_TORCH_NONE, 1, 0, NO_DTYPE },
    { "bits2x4", NULL, SFTI_TORCH_NONE, 1, 0, NO_DTYPE },
    { "bits4x2", NULL, SFTI_TORCH_NONE, 1, 0, NO_DTYPE },
    { "int1", NULL, SFTI_TORCH_NONE, 1, 0, NO_DTYPE },
    { "int2", NULL, SFTI_TORCH_NONE, 1, 0, NO_DTYPE },
    { "int3", NULL, SFTI_TORCH_NONE, 1, 0, NO_DTYPE },
    { "int4", NULL, SFTI_TORCH_NONE, 1, 0, NO_DTYPE },
    { "int5", NULL, SFTI_TORCH_NONE, 1, 0, NO_DTYPE },
    { "int6", NULL, SFTI_TORCH_NONE, 1, 0, NO_DTYPE },
    { "int7", NULL, SFTI_TORCH_NONE, 1, 0, NO_DTYPE },
    { "uint1", NULL, SFTI_TORCH_NONE, 1, 0, NO_DTYPE },
    { "uint2", NULL, SFTI_TORCH_NONE, 1, 0, NO_DTYPE },
    { "uint3", NULL, SFTI_TORCH_NONE, 1, 0, NO_DTYPE },
    { "uint4", NULL, SFTI_TORCH_NONE, 1, 0, NO_DTYPE },
    { "uint5", NULL, SFTI_TORCH_NONE, 1, 0, NO_DTYPE },
    { "uint6", NULL, SFTI_TORCH_NONE, 1, 0, NO_DTYPE },
    { "uint7", NULL, SFTI_TORCH_NONE, 1, 0, NO_DTYPE },
    { "untyped", "UntypedStorage", SFTI_TORCH_UNTYPED, 1, 0, SFT_U8 },
};

const sfti_torch_dtype *sfti_torch_dtype_named(sft_span name) {
    for (size_t i = 0; i < sizeof torch_dtypes / sizeof *torch_dtypes; i++)
        if (sft_span_equal(name, sft_span_cstr(torch_dtypes[i].name))) return &torch_dtypes[i];
    return NULL;
}

const sfti_torch_dtype *sfti_torch_dtype_of_storage(sft_span name) {
    for (size_t i = 0; i < sizeof torch_dtypes / sizeof *torch_dtypes; i++)
        if (torch_dtypes[i].storage && sft_span_equal(name, sft_span_cstr(torch_dtypes[i].storage)))
            return &torch_dtypes[i];
    return NULL;
}

const sfti_torch_dtype *sfti_torch_dtype_of(sft_dtype dtype) {
    for (size_t i = 0; i < sizeof torch_dtypes / sizeof *torch_dtypes; i++)
        if (torch_dtypes[i].kind == SFTI_TORCH_PLAIN && torch_dtypes[i].dtype == dtype)
            return &torch_dtypes[i];
    return NULL;
}
