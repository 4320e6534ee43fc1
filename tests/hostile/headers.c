#include "headers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *text_more(text *t, size_t len) {
    if (t->cap - t->len < len) {
        size_t cap = (t->len + len) * 2;
        char *at = realloc(t->at, cap);
        if (!at) {
            fputs("hostile: out of memory\n", stderr);
            exit(3);
        }
        t->at = at;
        t->cap = cap;
    }
    t->len += len;
    return t->at + t->len - len;
}

void text_put(text *t, const void *bytes, size_t len) {
    memcpy(text_more(t, len), bytes, len);
}

void text_str(text *t, const char *string) {
    text_put(t, string, strlen(string));
}

void text_number(text *t, uint64_t value) {
    char digits[20];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + value % 10);
    while (value /= 10);
    text_put(t, digits + at, sizeof digits - at);
}

void text_free(text *t) {
    free(t->at);
    memset(t, 0, sizeof *t);
}

/* A short name that differs for each number: letters to the base 52. */
static void put_short_name(text *t, uint64_t number) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char name[12];
    size_t len = 0;
    do name[len++] = letters[number % 52];
    while (number /= 52);
    text_put(t, name, len);
}

static const char empty_object[] = "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}";
static const char ignored[] =
    "{\"t\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0],\"x\":";

static void repeat(text *t, const char *unit, size_t bytes) {
    size_t len = strlen(unit), count = bytes / len;
    char *at = text_more(t, count * len);
    for (size_t i = 0; i < count; i++) memcpy(at + i * len, unit, len);
}

void make_zeros(text *t, size_t bytes) {
    text_str(t, ignored);
    text_str(t, "[0");
    repeat(t, ",0", bytes - 80);
    text_str(t, "]}}");
}

void make_fields(text *t, size_t bytes) {
    text_str(t, ignored);
    text_str(t, "0");
    repeat(t, ",\"y\":0", bytes - 80);
    text_str(t, "}}");
}

void make_dims(text *t, size_t bytes) {
    text_str(t, "{\"t\":{\"dtype\":\"U8\",\"shape\":[0");
    repeat(t, ",0", bytes - 80);
    text_str(t, "],\"data_offsets\":[0,0]}}");
}

static void make_entries(text *t, size_t bytes, const char *open, const char *after) {
    text_str(t, open);
    for (uint64_t i = 0; t->len < bytes - 64; i++) {
        if (i) text_str(t, ",");
        text_str(t, "\"");
        put_short_name(t, i);
        text_str(t, after);
    }
}

void make_empty_arrays(text *t, size_t bytes) {
    make_entries(t, bytes, "{", "\":[\"U8\",[0],[0,0]]");
    text_str(t, "}");
}

void make_empty_objects(text *t, size_t bytes) {
    make_entries(t, bytes, "{", empty_object);
    text_str(t, "}");
}

void make_same_name(text *t, size_t bytes) {
    text_str(t, "{\"t");
    text_str(t, empty_object);
    while (t->len < bytes - 64) {
        text_str(t, ",\"t");
        text_str(t, empty_object);
    }
    text_str(t, "}");
}

void make_escaped_names(text *t, size_t bytes) {
    for (uint64_t i = 0; t->len < bytes - 256; i++) {
        text_str(t, i ? ",\"" : "{\"");
        for (uint64_t n = i, digit = 0; digit < 5; digit++, n /= 26) {
            char escape[8];
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned)('a' + n % 26));
            text_str(t, escape);
        }
        text_str(t, empty_object);
    }
    text_str(t, "}");
}

void make_reversed(text *t, size_t bytes) {
    uint64_t count = bytes / 72;
    for (uint64_t i = 0; i < count; i++) {
        text_str(t, i ? ",\"" : "{\"");
        put_short_name(t, i);
        text_str(t, "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[");
        text_number(t, count - i - 1);
        text_str(t, ",");
        text_number(t, count - i);
        text_str(t, "]}");
    }
    text_str(t, "}");
    t->data = count;
}

void make_pairs(text *t, size_t bytes) {
    make_entries(t, bytes, "{\"__metadata__\":{", "\":\"\"");
    text_str(t, "}}");
}

void make_same_key(text *t, size_t bytes) {
    text_str(t, "{\"__metadata__\":{\"k\":\"\"");
    repeat(t, ",\"k\":\"\"", bytes - 64);
    text_str(t, "}}");
}

void make_value(text *t, size_t bytes) {
    text_str(t, "{\"__metadata__\":{\"k\":\"");
    repeat(t, "\\n", bytes - 64);
    text_str(t, "\"}}");
}

void make_brackets(text *t, size_t bytes) {
    text_str(t, ignored);
    repeat(t, "[", bytes - 80);
}

void make_deep(text *t, size_t depth) {
    text_str(t, ignored);
    repeat(t, "[", depth - 2);
    repeat(t, "]", depth - 2);
    text_str(t, "}}");
}

void make_digits(text *t, size_t bytes) {
    text_str(t, ignored);
    repeat(t, "7", bytes - 80);
    text_str(t, "}}");
}

void make_blank(text *t, size_t bytes) {
    text_str(t, "{}");
    repeat(t, " ", bytes - 2);
}

void make_backslashes(text *t, size_t bytes) {
    text_str(t, "{\"");
    repeat(t, "\\\\", bytes - 2);
}

void make_quotes(text *t, size_t bytes) {
    text_str(t, "{");
    repeat(t, "\"", bytes - 1);
}

void make_no_entries(text *t, size_t bytes) {
    make_entries(t, bytes, "{", "\":[]");
    text_str(t, "}");
}

void make_modules(text *t, size_t bytes) {
    for (uint64_t i = 0; t->len < bytes - 128; i++) {
        text_str(t, i ? ",\"lora_unet_" : "{\"lora_unet_");
        put_short_name(t, i);
        text_str(t, ".lora_down.weight");
        text_str(t, empty_object);
    }
    text_str(t, "}");
}

void make_long_names(text *t, size_t bytes) {
    for (uint64_t i = 0; t->len < bytes - 4096; i++) {
        text_str(t, i ? ",\"" : "{\"");
        repeat(t, "x.", 3200);
        put_short_name(t, i);
        text_str(t, empty_object);
    }
    text_str(t, "}");
}

void make_tag_counts(text *t, size_t bytes) {
    text_str(t, "{\"__metadata__\":{\"ss_tag_frequency\":\"{\\\"d\\\":{\\\"a\\\":1");
    for (uint64_t i = 52; t->len < bytes - 64; i++) {
        text_str(t, ",\\\"");
        put_short_name(t, i);
        text_str(t, "\\\":1");
    }
    text_str(t, "}}\"}}");
}

/* As DeepSeek names its experts; U8 weights of one byte range after another. */
void make_real(text *t, size_t tensors) {
    static const char *const part[] = { "gate_proj", "up_proj", "down_proj" };
    for (size_t i = 0; i < tensors; i++) {
        size_t scale = i % 2, which = i / 2 % 3, expert = i / 6 % 256, layer = i / 1536;
        uint64_t bytes = scale ? UINT64_C(16) * 56 * 4 : UINT64_C(2048) * 7168;
        char entry[256];
        snprintf(entry, sizeof entry,
                 "%s\"model.layers.%zu.mlp.experts.%zu.%s.%s\":"
                 "{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[",
                 i ? "," : "{", layer, expert, part[which], scale ? "weight_scale_inv" : "weight",
                 scale ? "F32" : "F8_E4M3", scale ? "16,56" : "2048,7168");
        text_str(t, entry);
        text_number(t, t->data);
        text_str(t, ",");
        text_number(t, t->data += bytes);
        text_str(t, "]}");
    }
    text_str(t, "}");
}
