/* Arrow schemas and arrays by hand, for the C Data Interface: from a pool, without malloc. */
#ifndef ARROW_MAKE_H
#define ARROW_MAKE_H

#include "safetensors_dataset.h"

#include <stdio.h>
#include <string.h>

#define AM_MOST 512
#define AM_CHILDREN 8

typedef struct am_array {
    struct ArrowArray a;
    const void *buffers[8];
    struct ArrowArray *children[AM_CHILDREN];
} am_array;

typedef struct am_schema {
    struct ArrowSchema s;
    struct ArrowSchema *children[AM_CHILDREN];
} am_schema;

static am_array am_arrays[AM_MOST];
static am_schema am_schemas[AM_MOST];
static size_t am_array_count, am_schema_count;
static int am_given, am_released; /* top arrays */

static inline void am_reset(void) {
    am_array_count = am_schema_count = 0;
    am_given = am_released = 0;
}

static inline void am_release_array(struct ArrowArray *array) {
    am_released++;
    array->release = NULL;
}

static inline void am_release_schema(struct ArrowSchema *schema) {
    schema->release = NULL;
}

/* ── Schemas ── */

static inline struct ArrowSchema *am_type(const char *format, const char *name) {
    am_schema *made = &am_schemas[am_schema_count++];
    memset(made, 0, sizeof *made);
    made->s = (struct ArrowSchema){ .format = format, .name = name, .flags = ARROW_FLAG_NULLABLE,
                                    .children = made->children, .release = am_release_schema };
    return &made->s;
}

static inline struct ArrowSchema *am_of(struct ArrowSchema *parent, struct ArrowSchema *child) {
    parent->children[parent->n_children++] = child;
    return parent;
}

/* A list of a type, with a new name for the child. */
static inline struct ArrowSchema *am_list(const char *format, const char *name,
                                          struct ArrowSchema *child) {
    child->name = "item";
    return am_of(am_type(format, name), child);
}

static inline struct ArrowSchema *am_dictionary(const char *keys, struct ArrowSchema *values) {
    struct ArrowSchema *schema = am_type(keys, values->name);
    schema->dictionary = values;
    return schema;
}

/* Names an extension type; buffer holds the metadata. */
static inline struct ArrowSchema *am_extension(struct ArrowSchema *schema, const char *name,
                                               const char *text, char buffer[512]) {
    const char *const words[] = { "ARROW:extension:name", name, "ARROW:extension:metadata", text };
    int32_t count = 2, len;
    char *at = buffer;
    memcpy(at, &count, 4), at += 4;
    for (int i = 0; i < 4; i++) {
        len = (int32_t)strlen(words[i]);
        memcpy(at, &len, 4), at += 4;
        memcpy(at, words[i], (size_t)len), at += len;
    }
    schema->metadata = buffer;
    return schema;
}

static inline struct ArrowSchema *am_tensor_type(const char *name) {
    struct ArrowSchema *schema = am_type("+s", name);
    am_of(schema, am_type("z", "data"));
    am_of(schema, am_list("+l", "shape", am_type("i", "item")));
    return am_of(schema, am_type("u", "dtype"));
}

/* ── Arrays ── */

/* Buffers end with am_end; NULL may be one of them. The nulls are not counted where there is a
 * validity buffer. */
static const char am_end_mark;
#define am_end ((const void *)&am_end_mark)
#define am_make(length, offset, ...) \
    am_make_from(length, offset, (const void *const[]){ __VA_ARGS__, am_end })

static inline struct ArrowArray *am_make_from(int64_t length, int64_t offset,
                                              const void *const *buffers) {
    am_array *made = &am_arrays[am_array_count++];
    memset(made, 0, sizeof *made);
    made->a = (struct ArrowArray){ .length = length, .offset = offset, .buffers = made->buffers,
                                   .children = made->children, .release = am_release_array };
    for (; *buffers != am_end; buffers++) made->buffers[made->a.n_buffers++] = *buffers;
    made->a.null_count = made->buffers[0] ? -1 : 0;
    return &made->a;
}

static inline struct ArrowArray *am_with(struct ArrowArray *parent, struct ArrowArray *child) {
    parent->children[parent->n_children++] = child;
    return parent;
}

static inline struct ArrowArray *am_look_up(struct ArrowArray *keys, struct ArrowArray *values) {
    keys->dictionary = values;
    return keys;
}

/* A batch whose ownership passes on. */
static inline struct ArrowArray am_give(struct ArrowArray *top) {
    am_given++;
    return *top;
}

#endif
