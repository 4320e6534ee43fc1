/* Elements and bytes as text; sizes, counts and dtypes out of it. Tests: tests/cli/cat. */
#include "support/values.h"

#include "base/checked.h"
#include "base/number.h"
#include "support/hints.h"
#include "support/options.h"
#include "support/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ── Numbers to text ── */

static size_t float_text(double value, bool single, bool json, char *buffer) {
    double least = single ? 0x1p-126 : 0x1p-1022;
    bool subnormal = value < least && value > -least;
    int digits = subnormal ? 1 : single ? 6 : 15, most = single ? 9 : 17;
    if (value - value != 0) {
        const char *text = value != value ? "nan" : value > 0 ? "inf" : "-inf";
        if (json) text = value != value ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
        return (size_t)snprintf(buffer, CLI_VALUE_SIZE, "%s", text);
    }
    for (;; digits++) {
        int len = snprintf(buffer, CLI_VALUE_SIZE / 2, "%.*g", digits, value);
        bool same = single ? (double)strtof(buffer, NULL) == value : strtod(buffer, NULL) == value;
        if (same || digits == most) return (size_t)len;
    }
}

static size_t complex_text(double real, double imaginary, bool json, char *buffer) {
    size_t n = 0;
    if (json) buffer[n++] = '[';
    n += float_text(real, true, json, buffer + n);
    if (json) buffer[n++] = ',';
    char *sign = buffer + n;
    n += float_text(imaginary, true, json, buffer + n);
    if (!json && *sign != '-') {
        memmove(sign + 1, sign, n - (size_t)(sign - buffer));
        *sign = '+';
        n++;
    }
    buffer[n++] = json ? ']' : 'j';
    return n;
}

size_t cli_value_text(sft_dtype dtype, const void *bytes, uint64_t i, bool json,
                      char buffer[CLI_VALUE_SIZE]) {
    const sft_dtype_info *info = sft_dtype_describe(dtype);
    const sfti_float_form *form = sfti_float_form_of(dtype);
    uint64_t bits = sfti_element_bits(dtype, bytes, i);
    if (info->kind == SFT_KIND_COMPLEX) {
        return complex_text(sfti_float_value(form, bits & UINT32_MAX),
                            sfti_float_value(form, bits >> 32), json, buffer);
    }
    if (info->kind == SFT_KIND_FLOAT) {
        return float_text(sfti_float_value(form, bits), dtype != SFT_F64, json, buffer);
    }
    if (info->kind == SFT_KIND_BOOL) {
        return (size_t)snprintf(buffer, CLI_VALUE_SIZE, "%s", bits ? "true" : "false");
    }
    uint64_t sign = UINT64_C(1) << (info->bits - 1);
    bool minus = info->kind != SFT_KIND_UINT && (bits & sign);
    return (size_t)snprintf(buffer, CLI_VALUE_SIZE, "%s%" PRIu64, minus ? "-" : "",
                            minus ? 0 - ((bits ^ sign) - sign) : bits);
}

/* ── Sizes and counts ── */

static sft_code bad_size(const char *text, sft_error *err) {
    return cli_usage_error(err, "expected a size such as 5GB, 512MiB or 1000, found \"%s\"", text);
}

/* Digits at *at, which moves past them; false when there are none or too many. */
static bool take_digits(const char **at, uint64_t *out) {
    const char *begin = *at;
    *out = 0;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        if (!sfti_mul(*out, 10, out) || !sfti_add(*out, (uint64_t)(**at - '0'), out)) return false;
    }
    return *at > begin;
}

static const struct {
    const char *unit;
    uint64_t bytes;
} size_units[] = {
    { "", 1 },
    { "B", 1 },
    { "K", 1000 },
    { "KB", 1000 },
    { "KiB", UINT64_C(1) << 10 },
    { "M", 1000000 },
    { "MB", 1000000 },
    { "MiB", UINT64_C(1) << 20 },
    { "G", 1000000000 },
    { "GB", 1000000000 },
    { "GiB", UINT64_C(1) << 30 },
    { "T", UINT64_C(1000000000000) },
    { "TB", UINT64_C(1000000000000) },
    { "TiB", UINT64_C(1) << 40 },
};

sft_code cli_parse_size(const char *text, uint64_t *out, sft_error *err) {
    const char *at = text;
    uint64_t whole, part = 0, scale = 1;
    if (!take_digits(&at, &whole)) return bad_size(text, err);
    if (*at == '.') {
        const char *begin = ++at;
        if (!take_digits(&at, &part) || at - begin > 6) return bad_size(text, err);
        for (ptrdiff_t i = at - begin; i > 0; i--) scale *= 10;
    }
    if (*at == ' ') at++;
    for (size_t i = 0; i < sizeof size_units / sizeof *size_units; i++) {
        if (!cli_same_letters(sft_span_cstr(at), sft_span_cstr(size_units[i].unit))) continue;
        /* whole + part / scale units, a fraction of a byte left out */
        uint64_t unit = size_units[i].bytes, more;
        bool fits = sfti_mul(whole, unit, out) && sfti_mul(part, unit, &more)
                 && sfti_add(*out, more / scale, out);
        return fits && *out > 0 ? SFT_OK : bad_size(text, err);
    }
    return bad_size(text, err);
}

sft_code cli_parse_count(const char *text, const char *what, uint32_t *out, sft_error *err) {
    uint64_t value;
    if (cli_parse_number(text, UINT32_MAX, &value) && value > 0) {
        *out = (uint32_t)value;
        return SFT_OK;
    }
    return cli_usage_error(err, "expected a number of %s, found \"%s\"", what, text);
}

/* ── Base64 ── */

size_t cli_base64(sft_span bytes, char *out) {
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *at = (const uint8_t *)bytes.data;
    size_t len = 0;
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        uint32_t three = (uint32_t)at[i] << 16 | (left > 1 ? (uint32_t)at[i + 1] << 8 : 0) |
                         (left > 2 ? at[i + 2] : 0u);
        for (int d = 0; d < 4; d++) out[len++] = digits[three >> (18 - 6 * d) & 63];
        if (left < 3) out[len - 1] = '=';
        if (left < 2) out[len - 2] = '=';
    }
    return len;
}

sft_span cli_data_url(const char *media_type, sft_span bytes, sfti_arena *arena) {
    static const char before[] = "data:", after[] = ";base64,";
    size_t type = strlen(media_type), head = sizeof before - 1 + type + sizeof after - 1;
    char *text = sfti_arena_take(arena, head + cli_base64_size(bytes.len));
    if (!text) return (sft_span){ NULL, 0 };
    memcpy(text, before, sizeof before - 1);
    memcpy(text + sizeof before - 1, media_type, type);
    memcpy(text + head - (sizeof after - 1), after, sizeof after - 1);
    return (sft_span){ text, head + cli_base64(bytes, text + head) };
}

/* ── Dtypes by name ── */

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
    sfti_guess guess = sfti_guess_begin(name);
    for (size_t i = SFT_DTYPE_COUNT; i-- > 0;)
        sfti_guess_try(&guess, sft_span_cstr(sft_dtype_at(i)->name));
    for (size_t i = 0; i < DTYPE_ALIASES; i++)
        sfti_guess_try(&guess, sft_span_cstr(dtype_aliases[i].name));
    const char *near = sfti_guess_text(&guess, "", "");
    cli_usage_error(err, "expected a dtype such as F16, BF16 or F8_E4M3 for --dtype, found %.*s%s",
                    name.len ? (int)name.len : 4, name.len ? name.data : "none", near);
    if (!*near) cli_hint(err, CLI_HINT_HELP_DTYPES);
    return SFT_BAD_ARGUMENT;
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
