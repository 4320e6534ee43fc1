/* The index of tensors as a stream of Arrow batches. Tests: test_dataset_index.c. */
#include "base/error.h"
#include "dataset/commit/commit.h"

#include <errno.h>
#include <string.h>

#define BATCH_ROWS 65536
#define BATCH_BYTES (UINT64_C(1) << 26) /* of keys: a batch ends before its 32-bit offsets
                                           overflow */
#define FIELDS_MAX 7
#define BUFFERS_MOST 3

/* ── Columns ── */

enum { COL_KEY, COL_FILE, COL_SHAPE, COL_DTYPE, COL_BEGIN, COL_END, COL_SHADOWED };

typedef struct index_field {
    const char *name, *format;
} index_field;

static const index_field index_fields[FIELDS_MAX] = {
    { "tensor_key", "u" }, { "file_name", "u" }, { "shape", "+l" },   { "dtype", "u" },
    { "begin", "l" },      { "end", "l" },       { "shadowed", "b" },
};

/* ── Schema ── */

typedef struct index_schema {
    sft_allocator alloc;
    struct ArrowSchema fields[FIELDS_MAX], element;
    struct ArrowSchema *field[FIELDS_MAX], *elements[1];
} index_schema;

/* Children are part of their parent's block and are freed with it. */
static void schema_child_release(struct ArrowSchema *schema) { schema->release = NULL; }

static void schema_release(struct ArrowSchema *schema) {
    index_schema *all = schema->private_data;
    sft_allocator alloc = all->alloc;
    for (int64_t i = 0; i < schema->n_children; i++)
        if (schema->children[i]->release) schema->children[i]->release(schema->children[i]);
    schema->release = NULL;
    sfti_release(&alloc, all, sizeof *all);
}

/* ── One batch ── */

typedef struct index_batch {
    sft_allocator alloc;
    sft_buffer data[FIELDS_MAX];    /* bytes of strings, dimensions, numbers, bits */
    sft_buffer offsets[FIELDS_MAX]; /* int32, of strings and shapes */
    struct ArrowArray arrays[FIELDS_MAX], dims;
    struct ArrowArray *array[FIELDS_MAX], *dim[1];
    const void *buffers[FIELDS_MAX][BUFFERS_MOST], *dim_buffers[2], *none[1];
    int64_t rows;
} index_batch;

static void batch_free(index_batch *b) {
    sft_allocator alloc = b->alloc;
    for (size_t i = 0; i < FIELDS_MAX; i++) {
        sft_buffer_free(&b->data[i]);
        sft_buffer_free(&b->offsets[i]);
    }
    sfti_release(&alloc, b, sizeof *b);
}

static index_batch *batch_new(const sft_allocator *alloc) {
    static const int32_t zero = 0;
    index_batch *b = sfti_take(alloc, sizeof *b);
    if (!b) return NULL;
    memset(b, 0, sizeof *b);
    b->alloc = *alloc;
    bool good = true;
    for (size_t i = 0; i < FIELDS_MAX; i++) {
        b->data[i].alloc = b->offsets[i].alloc = *alloc;
        good = good && sfti_buffer_put(&b->offsets[i], &zero, sizeof zero) &&
               sfti_buffer_reserve(&b->data[i], 1);
    }
    if (good) return b;
    batch_free(b);
    return NULL;
}

static bool batch_mark(index_batch *b, size_t column, size_t count) {
    int32_t offset = (int32_t)count;
    return sfti_buffer_put(&b->offsets[column], &offset, sizeof offset);
}

static bool batch_text(index_batch *b, size_t column, const char *text, size_t len) {
    return sfti_buffer_put(&b->data[column], text, len) &&
           batch_mark(b, column, b->data[column].len);
}

static bool batch_dims(index_batch *b, const sfti_ds_row *row, bool wide) {
    sft_buffer *to = &b->data[COL_SHAPE];
    for (uint32_t i = 0; i < row->rank; i++) {
        int64_t dim = (int64_t)row->shape[i];
        int32_t narrow = (int32_t)dim;
        const void *from = wide ? (const void *)&dim : (const void *)&narrow;
        if (!sfti_buffer_put(to, from, wide ? 8 : 4)) return false;
    }
    return batch_mark(b, COL_SHAPE, to->len / (wide ? 8 : 4));
}

static bool batch_number(index_batch *b, size_t column, uint64_t value) {
    int64_t number = (int64_t)value;
    return sfti_buffer_put(&b->data[column], &number, sizeof number);
}

static bool batch_row(index_batch *b, const sft_commit *c, const sfti_ds_row *row) {
    const char *file = c->sources[row->source].name;
    const char *dtype = sft_dtype_describe(row->dtype)->name;
    sft_buffer *bits = &b->data[COL_SHADOWED];
    bool good = batch_text(b, COL_KEY, row->key.data, row->key.len) &&
                batch_text(b, COL_FILE, file, strlen(file)) &&
                batch_text(b, COL_DTYPE, dtype, strlen(dtype)) && batch_dims(b, row, c->wide) &&
                batch_number(b, COL_BEGIN, row->begin) && batch_number(b, COL_END, row->end) &&
                (b->rows % 8 || sfti_buffer_put(bits, "", 1));
    if (good && (row->shadowed || row->deleted))
        bits->data[b->rows / 8] = (char)(bits->data[b->rows / 8] | 1 << (b->rows % 8));
    b->rows += good;
    return good;
}

/* ── As an Arrow array ── */

static void array_child_release(struct ArrowArray *array) { array->release = NULL; }

static void array_release(struct ArrowArray *array) {
    index_batch *b = array->private_data;
    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->release) array->children[i]->release(array->children[i]);
    array->release = NULL;
    batch_free(b);
}

/* Takes the batch. */
static void array_fill(index_batch *b, const sft_commit *c, struct ArrowArray *out) {
    for (size_t i = 0; i < FIELDS_MAX; i++) {
        bool offsets = i == COL_KEY || i == COL_FILE || i == COL_DTYPE || i == COL_SHAPE;
        b->buffers[i][1] = offsets ? b->offsets[i].data : b->data[i].data;
        b->buffers[i][2] = b->data[i].data;
        b->array[i] = &b->arrays[i];
        b->arrays[i] = (struct ArrowArray){ .length = b->rows,
                                            .n_buffers = offsets && i != COL_SHAPE ? 3 : 2,
                                            .buffers = b->buffers[i],
                                            .release = array_child_release };
    }
    b->dim_buffers[1] = b->data[COL_SHAPE].data;
    b->dim[0] = &b->dims;
    b->dims = (struct ArrowArray){ .length = (int64_t)(b->data[COL_SHAPE].len / (c->wide ? 8 : 4)),
                                   .n_buffers = 2, .buffers = b->dim_buffers,
                                   .release = array_child_release };
    b->arrays[COL_SHAPE].n_children = 1;
    b->arrays[COL_SHAPE].children = b->dim;
    *out = (struct ArrowArray){ .length = b->rows, .n_buffers = 1, .buffers = b->none,
                                .n_children = c->shadowing ? FIELDS_MAX : FIELDS_MAX - 1,
                                .children = b->array, .release = array_release,
                                .private_data = b };
}

/* ── The stream ── */

typedef struct index_stream {
    sft_allocator alloc;
    const sft_commit *c;
    sfti_ds_merge *merge;
    sft_error error;
} index_stream;

static int stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
    const index_stream *s = stream->private_data;

    index_schema *all = sfti_take(&s->c->alloc, sizeof *all);
    if (!all) return ENOMEM;
    memset(all, 0, sizeof *all);
    all->alloc = s->c->alloc;
    for (size_t i = 0; i < FIELDS_MAX; i++) {
        all->field[i] = &all->fields[i];
        all->fields[i] = (struct ArrowSchema){ .format = index_fields[i].format,
                                               .name = index_fields[i].name,
                                               .release = schema_child_release };
    }
    all->element = (struct ArrowSchema){ .format = s->c->wide ? "l" : "i", .name = "element",
                                         .release = schema_child_release };
    all->elements[0] = &all->element;
    all->fields[COL_SHAPE].n_children = 1;
    all->fields[COL_SHAPE].children = all->elements;
    *out = (struct ArrowSchema){ .format = "+s", .name = "",
                                 .n_children = s->c->shadowing ? FIELDS_MAX : FIELDS_MAX - 1,
                                 .children = all->field, .release = schema_release,
                                 .private_data = all };
    return 0;
}

static int stream_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    index_stream *s = stream->private_data;
    index_batch *b = batch_new(&s->alloc);
    const sfti_ds_row *row = NULL;
    bool starved = !b;
    int failed = 0;
    memset(out, 0, sizeof *out);
    while (!starved && !failed && b->rows < BATCH_ROWS && b->data[COL_KEY].len < BATCH_BYTES) {
        if (sfti_ds_merge_next(s->merge, &row, &s->error)) failed = EIO;
        else if (row) starved = !batch_row(b, s->c, row);
        if (!row) break; /* the end, or a failure */
    }
    if (starved) {
        (void)sfti_fail_memory(&s->error, BATCH_ROWS);
        failed = ENOMEM;
    }
    if (!failed && b->rows) array_fill(b, s->c, out);
    else if (b) batch_free(b);
    return failed;
}

static const char *stream_error(struct ArrowArrayStream *stream) {
    index_stream *s = stream->private_data;
    return s->error.message[0] ? s->error.message : NULL;
}

static void stream_release(struct ArrowArrayStream *stream) {
    index_stream *s = stream->private_data;
    sft_allocator alloc = s->alloc;
    sfti_ds_merge_close(s->merge);
    stream->release = NULL;
    sfti_release(&alloc, s, sizeof *s);
}

sft_code sft_commit_index(sft_commit *c, struct ArrowArrayStream *out, sft_error *err) {
    if (c->state != COMMIT_PREPARED)
        return sfti_fail(err, SFT_OUT_OF_ORDER, "expected a commit that is prepared");
    index_stream *s = sfti_take(&c->alloc, sizeof *s);
    if (!s) return sfti_fail_memory(err, sizeof *s);
    memset(s, 0, sizeof *s);
    s->alloc = c->alloc;
    s->c = c;
    s->merge = c->merge; /* prepare has looked at the headers */
    c->merge = NULL;
    sft_code code = s->merge ? sfti_ds_merge_rewind(s->merge, err)
                             : sfti_ds_merge_open(c->storage, c->sources, c->shard_count, NULL,
                                                  &c->alloc, NULL, &s->merge, err);
    if (code) {
        sfti_ds_merge_close(s->merge);
        sfti_release(&c->alloc, s, sizeof *s);
        return code;
    }
    *out = (struct ArrowArrayStream){ stream_schema, stream_next, stream_error, stream_release,
                                      s };
    return SFT_OK;
}
