/* Models of quantised tensors, as lines of a test write them. */
#ifndef TEST_QUANT_CASE_H
#define TEST_QUANT_CASE_H

#include "safetensors_convert.h"
#include "unit/make_file.h"

#include <stdio.h>

typedef struct quant_case {
    const char *tensors; /* "NAME DTYPE SHAPE DATA", parted by ';': below */
    const char *config;  /* the quantization_config of the metadata, or NULL */
    const char *about;   /* the tensor of the refusal, or of the values; NULL: of none */
    const char *says;    /* a part of the message; "=1,2", the first values, or "=as stored" */
} quant_case;

/* One of "w F8_E4M3 2,4 #56,57": a shape of "-" has no dimension. DATA is nothing (zeros), "#1,2",
 * numbers of the dtype that repeat, or "=text",
 * as many bytes as a shape of "?" has. "@key =text" is a pair of the metadata; "~" in a
 * name stands for 200 letters. */
typedef struct case_model {
    char *header;
    uint8_t *data;
    size_t len, at; /* of the header; of the data */
    test_file file;
    sft_set *set;
} case_model;

static inline void case_put(case_model *m, const char *text, size_t len, bool quoted) {
    for (size_t i = 0; i < len; i++) {
        if (quoted && (text[i] == '"' || text[i] == '\\')) m->header[m->len++] = '\\';
        for (size_t k = 0; text[i] == '~' && k < 199; k++) m->header[m->len++] = 'n';
        m->header[m->len++] = text[i] == '~' ? 'n' : text[i];
    }
}

static inline void case_words(case_model *m, const char *text) {
    case_put(m, text, strlen(text), false);
}

/* The numbers of "1,2", over and over. */
static inline void case_numbers(uint8_t *out, uint64_t bytes, const char *text, const char *end,
                                const char *dtype) {
    size_t size = strstr(dtype, "64") ? 8 : strstr(dtype, "32") ? 4 : strstr(dtype, "16") ? 2 : 1;
    const char *at = text;
    for (uint64_t i = 0; i + size <= bytes; i += size) {
        char *next;
        float real = strtof(at, NULL);
        uint64_t whole = strtoull(at, &next, 10);
        if (*dtype == 'F' && size == 4) memcpy(out + i, &real, 4);
        else memcpy(out + i, &whole, size); /* of F16 and the like the bits */
        next += strcspn(next, ",;");
        at = *next == ',' && next < end ? next + 1 : text;
    }
}

static inline void case_tensor(case_model *m, const char *line, const char *end) {
    char name[64], dtype[16], shape[256], offsets[64];
    int used = 0;
    uint64_t bytes = 1;
    uint32_t rank = 0;
    uint64_t sizes[80];
    assert(sscanf(line, "%63s %15s %255[^ ;]%n", name, dtype, shape, &used) == 3);
    const char *given = line + used;
    while (*given == ' ') given++;
    if (*shape == '-') *shape = '\0';
    if (*shape == '?') (void)snprintf(shape, sizeof shape, "%d", (int)(end - given - 1));
    for (const char *d = shape; *d; d += strcspn(d, ","), d += *d == ',')
        sizes[rank++] = strtoull(d, NULL, 10);
    const sft_dtype_info *info = NULL;
    int dt = 0;
    while (!(info = sft_dtype_describe((sft_dtype)dt)) || strcmp(info->name, dtype) != 0) dt++;
    assert(!sft_shape_size((sft_dtype)dt, sizes, rank, NULL, &bytes, NULL));
    m->data = realloc(m->data, m->at + (size_t)bytes + 1);
    memset(m->data + m->at, 0, (size_t)bytes);
    if (*given == '#') case_numbers(m->data + m->at, bytes, given + 1, end, dtype);
    if (*given == '=') {
        assert(bytes == (uint64_t)(end - given - 1));
        memcpy(m->data + m->at, given + 1, (size_t)bytes);
    }
    case_words(m, ",\"");
    case_words(m, name);
    case_words(m, "\":{\"dtype\":\"");
    case_words(m, dtype);
    case_words(m, "\",\"shape\":[");
    case_words(m, shape);
    (void)snprintf(offsets, sizeof offsets, "],\"data_offsets\":[%zu,%zu]}", m->at,
                   m->at + (size_t)bytes);
    case_words(m, offsets);
    m->at += (size_t)bytes;
}

static inline case_model case_open(const quant_case *c) {
    sft_open_options how = SFT_OPEN_OPTIONS_INIT;
    sft_file *file;
    case_model m = { malloc(1 << 18), malloc(1), 0, 0, { NULL, 0, 0 }, NULL };
    case_words(&m, "{\"__metadata__\":{\"a\":\"b\"");
    for (const char *line = c->tensors, *end; *line; line = end + (*end == ';')) {
        end = line + strcspn(line, ";");
        if (*line != '@') continue;
        const char *text = strstr(line, " =");
        case_words(&m, ",\"");
        case_put(&m, line + 1, (size_t)(text - line) - 1, false);
        case_words(&m, "\":\"");
        case_put(&m, text + 2, (size_t)(end - text) - 2, true);
        case_words(&m, "\"");
    }
    if (c->config) {
        case_words(&m, ",\"quantization_config\":\"");
        case_put(&m, c->config, strlen(c->config), true);
        case_words(&m, "\"");
    }
    case_words(&m, "}");
    for (const char *line = c->tensors, *end; *line; line = end + (*end == ';')) {
        end = line + strcspn(line, ";");
        while (*line == ' ') line++;
        if (*line != '@') case_tensor(&m, line, end);
    }
    case_words(&m, "}");
    m.header[m.len] = '\0';
    m.file = make_file(m.header, m.data, m.at);
    how.level = SFT_LEVEL_COMPAT;
    assert_int_equal(sft_open_memory(m.file.bytes, m.file.len, &how, &file, NULL), SFT_OK);
    assert_int_equal(sft_set_from_file(file, NULL, &m.set, NULL), SFT_OK);
    return m;
}

static inline void case_close(case_model *m) {
    sft_set_close(m->set);
    free_file(&m->file);
    free(m->header);
    free(m->data);
}

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
    case_model m = case_open(c);
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
