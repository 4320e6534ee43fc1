#include "support/values.h"

#include "base/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ── Numbers to text ── */

static size_t special_text(double value, bool json, char *buffer) {
    const char *text = value != value ? "nan" : value > 0 ? "inf" : "-inf";
    if (json) {
        text = value != value ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
    }
    return (size_t)snprintf(buffer, CLI_VALUE_SIZE, "%s", text);
}

static bool is_finite(double value) {
    return value - value == 0;
}

static size_t float_text(double value, bool single, bool json, char *buffer) {
    double least = single ? 0x1p-126 : 0x1p-1022;
    bool subnormal = value < least && value > -least;
    int digits = subnormal ? 1 : single ? 6 : 15, most = single ? 9 : 17;
    if (!is_finite(value)) return special_text(value, json, buffer);
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

static uint64_t sign_extended(uint64_t value, uint32_t bits) {
    uint64_t sign = UINT64_C(1) << (bits - 1);
    return (value ^ sign) - sign;
}

static size_t integer_text(const sft_dtype_info *info, uint64_t value, char *buffer) {
    if (info->kind == SFT_KIND_UINT) {
        return (size_t)snprintf(buffer, CLI_VALUE_SIZE, "%" PRIu64, value);
    }
    value = sign_extended(value, info->bits);
    bool minus = value >> 63;
    return (size_t)snprintf(buffer, CLI_VALUE_SIZE, "%s%" PRIu64, minus ? "-" : "",
                            minus ? 0 - value : value);
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
    return integer_text(info, bits, buffer);
}
