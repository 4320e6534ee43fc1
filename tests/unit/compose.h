/* Models of names and shapes alone, composed from one text:
 *   "a.weight[3072,64] b.{0-18}.w:U8[4] c:F32[]"
 * names, an optional dtype (F16 otherwise) and shapes, separated by blanks; {0-18} is a name
 * for each number. No tensor has bytes unless `bytes` says so: the file is opened by its
 * header only. */
#ifndef COMPOSE_H
#define COMPOSE_H

#include "label/info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct composed {
    sft_info info;
    sft_set *set;
    sft_plan *plan;
    char *bytes;
} composed;

typedef struct composing {
    sft_spec specs[4096];
    uint64_t shapes[4096][6];
    char names[4096][160];
    size_t count;
} composing;

static void compose_one(composing *c, const char *name, const char *dtype, const char *shape) {
    sft_spec *spec = &c->specs[c->count];
    uint32_t rank = 0;
    snprintf(c->names[c->count], sizeof *c->names, "%s", name);
    *spec = (sft_spec){ sft_span_cstr(c->names[c->count]), SFT_F16, 0, c->shapes[c->count] };
    if (*dtype) assert_true(sft_dtype_parse(sft_span_cstr(dtype), &spec->dtype));
    for (char *end; *shape && *shape != ']'; shape = *end == ',' ? end + 1 : end) {
        c->shapes[c->count][rank++] = strtoull(shape, &end, 10);
        assert_true(end > shape);
    }
    spec->rank = rank;
    c->count++;
    assert_true(c->count < 4096);
}

/* One word, "{0-18}" in its name for each number. */
static void compose_word(composing *c, const char *word) {
    char name[160], dtype[16] = "", made[200];
    const char *bracket = strchr(word, '['), *colon = NULL, *brace;
    unsigned from, to;
    assert_non_null(bracket);
    for (const char *p = word; p < bracket; p++)
        if (*p == ':' && p + 1 < bracket && p[1] >= 'A' && p[1] <= 'Z') colon = p;
    const char *end = colon ? colon : bracket;
    snprintf(name, sizeof name, "%.*s", (int)(end - word), word);
    if (colon) snprintf(dtype, sizeof dtype, "%.*s", (int)(bracket - colon - 1), colon + 1);
    brace = strchr(name, '{');
    if (!brace || sscanf(brace, "{%u-%u}", &from, &to) != 2) {
        compose_one(c, name, dtype, bracket + 1);
        return;
    }
    for (unsigned n = from; n <= to; n++) {
        snprintf(made, sizeof made, "%.*s%u%s", (int)(brace - name), name, n,
                 strchr(brace, '}') + 1);
        compose_one(c, made, dtype, bracket + 1);
    }
}

/* metadata: pairs, NULL for none. data: bytes of the tensors in file order, NULL for none. */
static inline composed *compose_with(const char *tensors, const sft_pair *metadata, size_t pairs,
                              const void *data, size_t data_len, const char *path) {
    composed *made = calloc(1, sizeof *made);
    composing *c = calloc(1, sizeof *c);
    char *text = strdup(tensors), *rest = text;
    for (char *word; (word = strtok_r(rest, " \n", &rest));) compose_word(c, word);
    assert_int_equal(sft_plan_new(c->specs, c->count, metadata, pairs, NULL, &made->plan, NULL),
                     SFT_OK);
    sft_span head = sft_plan_head(made->plan);
    made->bytes = malloc(head.len + data_len);
    memcpy(made->bytes, head.data, head.len);
    if (data_len) memcpy(made->bytes + head.len, data, data_len);
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    options.header_only = data_len == 0;
    sft_file *file;
    assert_int_equal(sft_open_memory(made->bytes, head.len + data_len, &options, &file, NULL),
                     SFT_OK);
    assert_int_equal(sft_set_from_file(file, NULL, &made->set, NULL), SFT_OK);
    free(text);
    free(c);
    sft_info *info = &made->info;
    info->arena.alloc = sfti_allocator(NULL);
    info->records = sfti_records_built_in();
    info->set = made->set;
    info->options = (sft_info_options)SFT_INFO_OPTIONS_INIT;
    info->adapter.scale = -1;
    info->negative = -1;
    info->folder = sft_span_cstr(".");
    if (path) {
        const char *slash = strrchr(path, '/');
        if (slash) info->folder = (sft_span){ path, (size_t)(slash - path) };
        info->path = sft_span_cstr(path);
        info->stem = sft_span_cstr(slash ? slash + 1 : path);
    }
    return made;
}

static inline composed *compose(const char *tensors) {
    composed *made = compose_with(tensors, NULL, 0, NULL, 0, NULL);
    sfti_info_tensors(&made->info);
    assert_int_equal(made->info.code, SFT_OK);
    return made;
}

static inline void compose_end(composed *made) {
    sfti_arena_free(&made->info.arena);
    sft_set_close(made->set);
    sft_plan_free(made->plan);
    free(made->bytes);
    free(made);
}

static inline size_t compose_fact(const sft_info *info, sft_fact field, char *out, size_t size) {
    const sfti_fact *best = sfti_info_best(info, field);
    if (!best) return (size_t)snprintf(out, size, "-");
    size_t len = (size_t)snprintf(out, size, "%.*s", (int)best->value.text.len,
                                  best->value.text.data);
    if (best->trust != 100 && best->trust != 0)
        len += (size_t)snprintf(out + len, size - len, "@%d", best->trust);
    return len;
}

/* "adapter flux.1@70 kontext" */
static inline const char *compose_facts(const sft_info *info, char *out, size_t size) {
    size_t len = compose_fact(info, SFT_FACT_KIND, out, size);
    len += (size_t)snprintf(out + len, size - len, " ");
    len += compose_fact(info, SFT_FACT_ARCHITECTURE, out + len, size - len);
    len += (size_t)snprintf(out + len, size - len, " ");
    compose_fact(info, SFT_FACT_VARIANT, out + len, size - len);
    return out;
}

#endif
