/* Models in memory, as lines of a test write them. */
#ifndef TEST_TEXT_MODEL_H
#define TEST_TEXT_MODEL_H

#include "safetensors_set.h"
#include "unit/make_file.h"

#include <stdio.h>

/* One of "w F8_E4M3 2,4 #56,57": a shape of "-" has no dimension. DATA is nothing (zeros), "#1,2",
 * numbers of the dtype that repeat, or "=text", as many bytes as a shape of "?" has. "@key =text"
 * is a pair of the metadata; "~" in a name stands for 200 letters. Lines are parted by ';'. */
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
    assert_int_equal(sscanf(line, "%63s %15s %255[^ ;]%n", name, dtype, shape, &used), 3);
    const char *given = line + used;
    while (*given == ' ') given++;
    if (*shape == '-') *shape = '\0';
    if (*shape == '?') (void)snprintf(shape, sizeof shape, "%d", (int)(end - given - 1));
    for (const char *d = shape; *d; d += strcspn(d, ","), d += *d == ',')
        sizes[rank++] = strtoull(d, NULL, 10);
    const sft_dtype_info *info = NULL;
    int dt = 0;
    while (!(info = sft_dtype_describe((sft_dtype)dt)) || strcmp(info->name, dtype) != 0) dt++;
    assert_true(!sft_shape_size((sft_dtype)dt, sizes, rank, NULL, &bytes, NULL));
    m->data = realloc(m->data, m->at + (size_t)bytes + 1);
    memset(m->data + m->at, 0, (size_t)bytes);
    if (*given == '#') case_numbers(m->data + m->at, bytes, given + 1, end, dtype);
    if (*given == '=') {
        assert_true(bytes == (uint64_t)(end - given - 1));
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

/* config: the quantization_config of the metadata, or NULL. */
static inline case_model case_open(const char *tensors, const char *config) {
    sft_open_options how = SFT_OPEN_OPTIONS_INIT;
    sft_file *file;
    case_model m = { malloc(1 << 18), malloc(1), 0, 0, { NULL, 0, 0 }, NULL };
    case_words(&m, "{\"__metadata__\":{\"a\":\"b\"");
    for (const char *line = tensors, *end; *line; line = end + (*end == ';')) {
        end = line + strcspn(line, ";");
        if (*line != '@') continue;
        const char *text = strstr(line, " =");
        case_words(&m, ",\"");
        case_put(&m, line + 1, (size_t)(text - line) - 1, false);
        case_words(&m, "\":\"");
        case_put(&m, text + 2, (size_t)(end - text) - 2, true);
        case_words(&m, "\"");
    }
    if (config) {
        case_words(&m, ",\"quantization_config\":\"");
        case_put(&m, config, strlen(config), true);
        case_words(&m, "\"");
    }
    case_words(&m, "}");
    for (const char *line = tensors, *end; *line; line = end + (*end == ';')) {
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

#endif
