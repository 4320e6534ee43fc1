/* Conversions of quantised tensors: models as text_model.h writes them, and what becomes. */
#ifndef TEST_QUANT_CASE_H
#define TEST_QUANT_CASE_H

#include "safetensors_convert.h"
#include "unit/text_model.h"

typedef struct quant_case {
    const char *tensors; /* as case_tensor reads them */
    const char *config;  /* the quantization_config of the metadata, or NULL */
    const char *about;   /* the tensor of the refusal, or of the values; NULL: of none */
    const char *says;    /* a part of the message; "=1,2", the first values, or "=as stored" */
} quant_case;

/* The first values of the tensor, by a conversion to F32, are those of "1,2". */
static inline bool case_has_values(sft_conversion *conversion, const sft_set *set, const char *name,
                                   const char *values) {
    for (size_t i = 0; i < sft_set_tensor_count(set); i++) {
        sft_part part = sft_conversion_part(conversion, i);
        if (!part.source || !sft_span_equal(part.spec.name, sft_span_cstr(name))) continue;
        uint64_t at = part.begin;
        if (strcmp(values, "as stored") == 0)
            return sft_conversion_action(conversion, i, NULL) != SFT_CONVERT_DEQUANTIZE
                && part.spec.dtype == sft_set_tensor_at(set, i)->dtype;
        for (const char *v = values; *v; v += strcspn(v, ","), v += *v == ',') {
            float found;
            size_t got = 0;
            if (sft_source_read(part.source, at, &found, 4, &got, NULL) || got != 4) return false;
            if (found < strtof(v, NULL) || found > strtof(v, NULL)) {
                print_error("value %llu: %g\n", (unsigned long long)(at - part.begin) / 4,
                            (double)found);
                return false;
            }
            at += 4;
        }
        return true;
    }
    return false;
}

/* Whether the case is refused as it says, or has its values; else what was found is printed. */
static inline bool case_holds(const quant_case *c) {
    case_model m = case_open(c->tensors, c->config);
    sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_conversion *conversion = NULL;
    options.dequantize = true;
    sft_code code = sft_conversion_new(m.set, SFT_F32, &options, &conversion, &err);
    char about[2048] = "";
    size_t len = 0;
    for (const char *a = c->about ? c->about : ""; *a; a++) {
        size_t n = *a == '~' ? 200 : 1;
        memset(about + len, *a == '~' ? 'n' : *a, n);
        len += n;
    }
    bool fine = *c->says == '=' ? !code && case_has_values(conversion, m.set, c->about, c->says + 1)
              : code == SFT_CAST_DTYPE && strstr(err.message, c->says)
                && (c->about ? (err.tensor_len == len || (len > 255 && err.tensor_len >= 253))
                               && memcmp(err.tensor, about, err.tensor_len) == 0
                             : err.tensor_len == SFT_NO_TENSOR);
    if (!fine)
        print_error("%s\n  %s\n  expected %s: %s\n  found %d %.*s: %s\n", c->tensors,
                    c->config ? c->config : "", c->about ? c->about : "-", c->says, (int)code,
                    err.tensor_len == SFT_NO_TENSOR ? 0 : (int)err.tensor_len, err.tensor,
                    err.message);
    sft_conversion_free(conversion);
    case_close(&m);
    return fine;
}

static inline void cases_hold(const quant_case *cases, size_t count) {
    size_t failed = 0;
    for (size_t i = 0; i < count; i++) failed += !case_holds(&cases[i]);
    assert_int_equal(failed, 0);
}

#endif
