/* Names of dtypes: those of the format and what other tools call them. */
#include "support/values.h"

#include "support/hints.h"
#include "support/options.h"
#include "support/words.h"

#include <string.h>

/* In small letters; those of the format are in sft_dtype_describe. */
typedef struct dtype_alias {
    const char *name;
    sft_dtype dtype;
} dtype_alias;

static const dtype_alias dtype_aliases[] = {
    { "fp64", SFT_F64 }, { "float64", SFT_F64 }, { "double", SFT_F64 },
    { "fp32", SFT_F32 }, { "float32", SFT_F32 }, { "float", SFT_F32 },
    { "fp16", SFT_F16 }, { "float16", SFT_F16 }, { "half", SFT_F16 },
    { "bfloat16", SFT_BF16 },
    { "fp8", SFT_F8_E4M3 }, { "f8", SFT_F8_E4M3 }, { "float8", SFT_F8_E4M3 },
    { "e4m3", SFT_F8_E4M3 }, { "e4m3fn", SFT_F8_E4M3 }, { "f8_e4m3fn", SFT_F8_E4M3 },
    { "fp8_e4m3", SFT_F8_E4M3 }, { "fp8_e4m3fn", SFT_F8_E4M3 },
    { "float8_e4m3", SFT_F8_E4M3 }, { "float8_e4m3fn", SFT_F8_E4M3 },
    { "e5m2", SFT_F8_E5M2 }, { "fp8_e5m2", SFT_F8_E5M2 }, { "float8_e5m2", SFT_F8_E5M2 },
    { "e4m3fnuz", SFT_F8_E4M3FNUZ }, { "fp8_e4m3fnuz", SFT_F8_E4M3FNUZ },
    { "float8_e4m3fnuz", SFT_F8_E4M3FNUZ },
    { "e5m2fnuz", SFT_F8_E5M2FNUZ }, { "fp8_e5m2fnuz", SFT_F8_E5M2FNUZ },
    { "float8_e5m2fnuz", SFT_F8_E5M2FNUZ },
    { "e8m0", SFT_F8_E8M0 }, { "e8m0fnu", SFT_F8_E8M0 }, { "f8_e8m0fnu", SFT_F8_E8M0 },
    { "float8_e8m0fnu", SFT_F8_E8M0 },
    { "e2m3", SFT_F6_E2M3 }, { "fp6_e2m3", SFT_F6_E2M3 }, { "float6_e2m3fn", SFT_F6_E2M3 },
    { "e3m2", SFT_F6_E3M2 }, { "fp6_e3m2", SFT_F6_E3M2 }, { "float6_e3m2fn", SFT_F6_E3M2 },
    { "fp4", SFT_F4 }, { "e2m1", SFT_F4 }, { "f4_e2m1", SFT_F4 }, { "fp4_e2m1", SFT_F4 },
    { "float4_e2m1fn", SFT_F4 }, { "float4_e2m1fn_x2", SFT_F4 },
    { "int8", SFT_I8 }, { "int16", SFT_I16 }, { "short", SFT_I16 }, { "int32", SFT_I32 },
    { "int", SFT_I32 }, { "int64", SFT_I64 }, { "long", SFT_I64 },
    { "uint8", SFT_U8 }, { "byte", SFT_U8 }, { "uint16", SFT_U16 }, { "uint32", SFT_U32 },
    { "uint64", SFT_U64 },
    { "complex64", SFT_C64 },
};

#define NAME_COLUMNS 13
#define PAGE 79
#define DTYPE_ALIASES (sizeof dtype_aliases / sizeof *dtype_aliases)

static sft_code unknown_dtype(sft_span found, sft_error *err) {
    cli_guess guess = cli_guess_begin(found);
    for (int i = SFT_DTYPE_COUNT - 1; i >= 0; i--)
        cli_guess_try(&guess, sft_span_cstr(sft_dtype_at((size_t)i)->name));
    for (size_t i = 0; i < DTYPE_ALIASES; i++)
        cli_guess_try(&guess, sft_span_cstr(dtype_aliases[i].name));
    const char *near = cli_guess_text(&guess, "", "");
    cli_usage_error(err, "expected a dtype such as F16, BF16 or F8_E4M3 for --dtype, found %.*s%s",
                    found.len ? (int)found.len : 4, found.len ? found.data : "none", near);
    if (!*near) cli_hint(err, CLI_HINT_HELP_DTYPES);
    return err ? err->code : SFT_BAD_ARGUMENT;
}

sft_code cli_dtype_read(sft_span name, sft_dtype *out, sft_error *err) {
    static const char torch[] = "torch.";
    sft_span word = name;
    if (name.len > sizeof torch && memcmp(name.data, torch, sizeof torch - 1) == 0)
        word = (sft_span){ name.data + sizeof torch - 1, name.len - (sizeof torch - 1) };
    for (int i = 0; i < SFT_DTYPE_COUNT; i++) {
        const sft_dtype_info *info = sft_dtype_describe((sft_dtype)i);
        *out = (sft_dtype)i;
        if (cli_same_letters(word, sft_span_cstr(info->name))) return SFT_OK;
    }
    for (size_t i = 0; i < DTYPE_ALIASES; i++) {
        *out = dtype_aliases[i].dtype;
        if (cli_same_letters(word, sft_span_cstr(dtype_aliases[i].name))) return SFT_OK;
    }
    return unknown_dtype(name, err);
}

void cli_dtypes_print(cli_out *out) {
    for (size_t i = 0; i < SFT_DTYPE_COUNT; i++) {
        const sft_dtype_info *info = sft_dtype_at(i);
        size_t at = strlen(info->name), known = 0;
        cli_text(out, info->name);
        for (size_t k = 0; k < DTYPE_ALIASES; k++) {
            const char *name = dtype_aliases[k].name;
            if (sft_dtype_describe(dtype_aliases[k].dtype) != info) continue;
            bool full = at + strlen(name) + 3 > PAGE;
            if (known++) cli_text(out, full ? ",\n" : ", ");
            if (full) at = 0;
            size_t blank = at < NAME_COLUMNS ? NAME_COLUMNS - at : 0;
            cli_pad(out, blank);
            cli_text(out, name);
            at += blank + strlen(name) + 2;
        }
        cli_text(out, "\n");
    }
}

sft_code cli_dtypes_read(const char *list, cli_dtypes *out, sft_error *err) {
    *out = 0;
    if (!list) *out = ~(cli_dtypes)0;
    while (list) {
        const char *comma = strchr(list, ',');
        sft_dtype dtype;
        sft_span name = { list, comma ? (size_t)(comma - list) : strlen(list) };
        sft_code code = cli_dtype_read(name, &dtype, err);
        if (code) return code;
        *out |= (cli_dtypes)1 << dtype;
        list = comma ? comma + 1 : NULL;
    }
    return SFT_OK;
}
