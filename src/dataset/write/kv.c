/* Rows as keyed tensors, gathered into files. Tests: test_dataset_keys.c. */
#include "base/checked.h"
#include "base/error.h"
#include "base/splice.h"
#include "base/utf8.h"
#include "dataset/write/writer.h"
#include "os/io.h"

#include <string.h>

#define KV_FRAME 300 /* upper bound of a header's braces, __metadata__ and padding */

/* A row that was read: its key and the bytes that its tensors take. */
typedef struct kv_row {
    shard_held *held;
    sft_span key;
    uint64_t row;        /* number for people */
    uint64_t text, data; /* of the header, of tensors */
    shard_value *values; /* by column */
} kv_row;

/* ── How long the header gets ── */

static uint64_t kv_digits(uint64_t value) {
    uint64_t count = 1;
    while (value >= 10) value /= 10, count++;
    return count;
}

/* Bytes of an entry, without the digits of its offsets. name: bytes of the spelled name, with
 * quotes. */
static uint64_t kv_entry_text(uint64_t name, sft_dtype dtype, const uint64_t *shape,
                              uint32_t rank) {
    uint64_t text = name + sizeof ":{\"dtype\":\"\",\"shape\":[],\"data_offsets\":[,]}," - 1 +
                    strlen(sft_dtype_describe(dtype)->name);
    for (uint32_t i = 0; i < rank; i++) text += kv_digits(shape[i]) + (i > 0);
    return text;
}

/* An upper bound of the header's bytes. */
static uint64_t kv_header(uint64_t text, uint64_t tensors, uint64_t data) {
    return KV_FRAME + text + 2 * tensors * kv_digits(data);
}

/* ── Reading a row ── */

static sft_dtype kv_dtype(const shard_column *c, const shard_value *v) {
    return c->asked->has_dtype ? c->asked->dtype : v->from;
}

static sft_code kv_key_fail(const sft_shard_writer *w, const kv_row *r, const char *what,
                            sft_error *err) {
    sft_span name = w->options->name_col;
    return sfti_fail(err, SFT_ROW_KEY, "column \"%.*s\", row %llu: expected %s",
                     SFTI_CLIP(name, 100), (unsigned long long)r->row, what);
}

/* Whether name, separator and column would be "__metadata__". */
static bool kv_reserved(const sft_shard_writer *w, sft_span key, sft_span column) {
    static const char reserved[] = "__metadata__";
    const sft_span parts[] = { key, w->options->separator, column };
    size_t at = 0;
    for (int i = 0; i < 3; i++) {
        if (parts[i].len > sizeof reserved - 1 - at ||
            (parts[i].len && memcmp(reserved + at, parts[i].data, parts[i].len) != 0))
            return false;
        at += parts[i].len;
    }
    return at == sizeof reserved - 1;
}

static sft_code kv_read_value(sft_shard_writer *w, kv_row *r, size_t k, uint64_t i,
                              sft_error *err) {
    shard_value *v = &r->values[k];
    const shard_column *c = &w->column[k];
    sft_error inner;
    sft_code code =
        sfti_shard_values(w, k, r->held, (uint64_t)r->held->array.offset + i, 1, v, &inner);
    if (code) return sfti_shard_row_fail(err, code, c->asked->name, w->rows + i, &inner);
    sft_dtype dtype = kv_dtype(c, v);
    code = sfti_shard_agrees(c, dtype, v->rank, v->shape, err);
    if (code) return code;
    if (sft_shape_size(dtype, v->shape, v->rank, NULL, &v->bytes, &inner))
        return sfti_shard_row_fail(err, SFT_ROW_SHAPE, c->asked->name, r->row, &inner);
    if (kv_reserved(w, r->key, c->asked->name))
        return kv_key_fail(w, r, "a key that makes a tensor's name, found the reserved "
                                 "__metadata__", err);
    /* Key, separator and column as spelled: each with its quotes. */
    uint64_t name = sfti_spell(r->key, NULL) + sfti_spell(w->options->separator, NULL) +
                    sfti_spell(c->asked->name, NULL) - 4;
    r->text += kv_entry_text(name, dtype, v->shape, v->rank);
    return sfti_add(r->data, v->bytes, &r->data) ? SFT_OK : sfti_ds_overflow("rows", err);
}

/* ── Names of the file to come ── */

static sft_span kv_name_of(const void *ctx, uint32_t entry) {
    const shard_kv *kv = ctx;
    return kv->entries[entry].spec.name;
}

/* Doubles the table of names, without dead entries. */
static bool kv_names_grow(shard_kv *kv, const sft_allocator *alloc) {
    sfti_arena arena = { .alloc = *alloc };
    sfti_names names;
    size_t cap = kv->names_cap ? 2 * kv->names_cap : 256;
    if (!sfti_names_begin(&names, cap, kv->seed, kv_name_of, kv, &arena)) return false;
    for (size_t i = 0; i < kv->count; i++) {
        sft_span name = kv->entries[i].spec.name;
        if (!kv->entries[i].dead)
            (void)sfti_names_add(&names, name, (uint32_t)i);
    }
    sfti_arena_free(&kv->names_arena);
    kv->names_arena = arena;
    kv->names = names;
    kv->names_cap = cap;
    return true;
}

static bool kv_name(sft_shard_writer *w, const kv_row *r, size_t k, sft_span *out) {
    sft_span parts[] = { r->key, w->options->separator, w->column[k].asked->name };
    size_t len = parts[0].len + parts[1].len + parts[2].len, at = 0;
    char *name = sfti_arena_take(&w->kv.arena, len);
    if (!name) return false;
    for (int i = 0; i < 3; i++) {
        if (parts[i].len) memcpy(name + at, parts[i].data, parts[i].len);
        at += parts[i].len;
    }
    *out = (sft_span){ name, len };
    return true;
}

static bool kv_shape(shard_kv *kv, size_t k, const shard_value *v) {
    if (kv->shapes[k] && sfti_ds_shape_same(kv->shapes[k], kv->ranks[k], v->shape, v->rank))
        return true;
    uint64_t *shape = sfti_arena_array(&kv->arena, v->rank, sizeof *shape);
    if (!shape) return false;
    if (v->rank) memcpy(shape, v->shape, v->rank * sizeof *shape);
    kv->shapes[k] = shape;
    kv->ranks[k] = v->rank;
    return true;
}

/* ── Rows that lose their name to a later one ── */

static void kv_kill(sft_shard_writer *w, size_t at, const shard_held *but) {
    shard_kv *kv = &w->kv;
    kv_entry *e = &kv->entries[at];
    shard_held *held = e->held;
    e->dead = true;
    kv->tensors--;
    kv->data -= e->bytes;
    kv->text -= kv_entry_text(sfti_spell(e->spec.name, NULL), e->spec.dtype, e->spec.shape,
                              e->spec.rank);
    size_t columns = w->columns.count, first = at - at % columns, dead = 0;
    while (dead < columns && kv->entries[first + dead].dead) dead++;
    if (dead == columns) kv->samples--;
    if (--held->live == 0 && held != but) sfti_shard_release_one(held);
}

/* ── Adding a row ── */

static sft_code kv_put(sft_shard_writer *w, const kv_row *r, size_t k, sft_error *err) {
    shard_kv *kv = &w->kv;
    const shard_value *v = &r->values[k];
    size_t n = kv->count;
    sft_span name;
    if (!kv_name(w, r, k, &name) || !kv_shape(kv, k, v))
        return sfti_fail_memory(err, sizeof *kv->entries);
    sft_dtype dtype = kv_dtype(&w->column[k], v);
    kv->entries[n] = (kv_entry){ { name, dtype, v->rank, kv->shapes[k] }, v->piece,
                                 r->held, v->bytes, v->from, false };
    uint32_t before = sfti_names_add(&kv->names, name, (uint32_t)n);
    if (before != n && !w->options->last_win)
        return sfti_fail(err, SFT_DATASET_DUPLICATE, "expected each tensor's name once, found "
                         "\"%.*s\" in row %llu and row %llu",
                         SFTI_CLIP(kv->entries[before].spec.name, 200),
                         (unsigned long long)(kv->first_row + before / w->columns.count),
                         (unsigned long long)r->row);
    if (before != n) {
        kv_kill(w, before, r->held);
        sfti_names_replace(&kv->names, name, (uint32_t)n);
    }
    kv->count++;
    kv->tensors++;
    r->held->live++;
    return SFT_OK;
}

static sft_code kv_reserve(sft_shard_writer *w, sft_error *err) {
    shard_kv *kv = &w->kv;
    size_t more = w->columns.count, each = sizeof *kv->entries;
    kv_entry *entries = NULL;
    if (kv->count + more <= UINT32_MAX / 4)
        entries = sfti_grow(&w->alloc, kv->entries, kv->count, more, &kv->cap, each);
    if (!entries) return sfti_fail_memory(err, more * each);
    kv->entries = entries;
    while (kv->names_cap < kv->cap)
        if (!kv_names_grow(kv, &w->alloc))
            return sfti_fail_memory(err, kv->names_cap * 2 * sizeof(sfti_slot));
    return SFT_OK;
}

static sft_code kv_add(sft_shard_writer *w, const kv_row *r, sft_error *err) {
    shard_kv *kv = &w->kv;
    sft_code code = kv_reserve(w, err);
    if (code) return code;
    if (kv->count == 0) kv->first_row = r->row;
    kv->samples++;
    kv->data += r->data;
    kv->text += r->text;
    kv->weight += r->data + r->text;
    for (size_t k = 0; !code && k < w->columns.count; k++) code = kv_put(w, r, k, err);
    return code;
}

/* ── A file ── */

/* A column's dtype and shape, where all its tensors have the same. */
static void kv_column(const sft_shard_writer *w, size_t k, sfti_ds_column *out) {
    sfti_ds_column is = *w->column[k].asked;
    bool any = false;
    *out = is;
    is.has_dtype = is.has_shape = true;
    for (size_t i = k; i < w->kv.count; i += w->columns.count) {
        const kv_entry *e = &w->kv.entries[i];
        if (e->dead) continue;
        is.dtype = e->spec.dtype;
        is.rank = e->spec.rank;
        is.shape = e->spec.shape;
        if (any) sfti_ds_column_join(out, &is, SFT_DATASET_KV);
        else *out = is;
        any = true;
    }
    if (!any) out->has_dtype = out->has_shape = false;
}

static sft_code kv_put_file(shard_file *file, size_t i, size_t at, sft_error *err) {
    sft_shard_writer *w = file->w;
    const kv_entry *e = &w->kv.entries[at];
    sft_error inner;
    uint64_t element = 0;
    sft_code code = sfti_shard_file_put(file, i, &e->piece, 1, e->from, &element, &inner);
    if (code == SFT_CAST_VALUE) {
        sfti_shard_element(&inner, element);
        return sfti_shard_row_fail(err, SFT_ROW_VALUE, w->column[at % w->columns.count].asked->name,
                                   w->kv.first_row + at / w->columns.count, &inner);
    }
    return code ? sfti_fail_as(err, code, &inner) : SFT_OK;
}

static sft_code kv_file(sft_shard_writer *w, const sft_job *job, sft_error *err) {
    shard_kv *kv = &w->kv;
    shard_file file;
    size_t n = (size_t)kv->tensors, at = 0;
    sft_spec *specs = sfti_arena_array(&kv->arena, n, sizeof *specs);
    uint32_t *living = sfti_arena_array(&kv->arena, n, sizeof *living);
    uint32_t *order = sfti_arena_array(&kv->arena, n, sizeof *order); /* in the file */
    sfti_ds_column *columns = sfti_arena_array(&kv->arena, w->columns.count, sizeof *columns);
    if (!specs || !living || !order || !columns) return sfti_fail_memory(err, n * sizeof *specs);
    for (size_t i = 0; i < kv->count; i++) {
        if (kv->entries[i].dead) continue;
        specs[at] = kv->entries[i].spec;
        living[at++] = (uint32_t)i;
    }
    sft_code code = sfti_shard_file_begin(w, specs, n, kv->samples, kv->samples, job, &file, err);
    if (code) return code;
    for (size_t i = 0; i < n; i++) order[sft_plan_position(file.plan, i)] = living[i];
    for (size_t i = 0; !code && i < n; i++) code = kv_put_file(&file, i, order[i], err);
    if (code) {
        sfti_shard_file_abandon(&file);
        return code;
    }
    for (size_t k = 0; k < w->columns.count; k++) kv_column(w, k, &columns[k]);
    return sfti_shard_file_end(&file, columns, err);
}

static sft_code kv_write(sft_shard_writer *w, shard_held *but, const sft_job *job,
                         sft_error *err) {
    shard_kv *kv = &w->kv;
    sft_code code = kv_file(w, job, err);
    sfti_arena_free(&kv->arena);
    sfti_arena_free(&kv->names_arena);
    memset(&kv->names, 0, sizeof kv->names);
    for (size_t k = 0; k < w->columns.count; k++) kv->shapes[k] = NULL;
    kv->count = kv->names_cap = 0;
    kv->tensors = kv->samples = kv->data = kv->text = kv->weight = 0;
    sfti_shard_release(w, but);
    if (but) but->live = 0;
    return code;
}

/* ── Rows ── */

static sft_code kv_take(sft_shard_writer *w, kv_row *r, uint64_t i, const sft_job *job,
                        sft_error *err) {
    shard_kv *kv = &w->kv;
    const struct ArrowArray *batch = &r->held->array;
    r->row = w->rows + i;
    r->text = r->data = 0;
    if (!sfti_arrow_bytes(&kv->key, batch->children[w->columns.name_child],
                          (uint64_t)batch->offset + i, &r->key))
        return kv_key_fail(w, r, "a key, found null", err);
    if (sfti_utf8_check(r->key.data, r->key.len) != r->key.len)
        return kv_key_fail(w, r, "a key in UTF-8, found other bytes", err);
    sft_code code = SFT_OK;
    for (size_t k = 0; !code && k < w->columns.count; k++)
        code = kv_read_value(w, r, k, i, err);

    /* A header does not get longer than readers accept. */
    if (!code && kv->count &&
        kv_header(kv->text + r->text, kv->tensors + w->columns.count, kv->data + r->data) >
            SFT_MAX_HEADER_BYTES)
        code = kv_write(w, r->held, job, err);
    if (!code) code = kv_add(w, r, err);
    if (code) return code;

    /* The file ends when it has the target's size, or replaced rows hold twice as much memory. */
    uint64_t target = w->options->shard_bytes;
    if (kv->data < target && kv->weight / 2 < target &&
        kv->data + kv_header(kv->text, kv->tensors, kv->data) < target)
        return SFT_OK;
    code = kv_write(w, r->held, job, err);
    r->held->loose.len = 0;
    return code;
}

sft_code sfti_kv_append(sft_shard_writer *w, shard_held *held, const sft_job *job,
                        sft_error *err) {
    kv_row r = { .held = held, .values = w->kv.values };
    for (uint64_t i = 0; i < (uint64_t)held->array.length; i++) {
        sft_code code = kv_take(w, &r, i, job, err);
        if (code) return code;
    }
    if (held->live == 0) sfti_shard_release_one(held);
    return SFT_OK;
}

sft_code sfti_kv_end(sft_shard_writer *w, const sft_job *job, sft_error *err) {
    return w->kv.count ? kv_write(w, NULL, job, err) : SFT_OK;
}

/* ── Begin and end ── */

sft_code sfti_kv_begin(sft_shard_writer *w, const struct ArrowSchema *schema, sft_error *err) {
    shard_kv *kv = &w->kv;
    size_t n = w->columns.count;
    int failed = sfti_os_random(kv->seed, sizeof kv->seed);
    kv->arena.alloc = w->alloc;
    kv->names_arena.alloc = w->alloc;
    if (failed) return sfti_io_fail(err, SFT_IO_READ, failed, "get random bytes");
    kv->shapes = sfti_arena_array(&w->arena, n, sizeof *kv->shapes);
    kv->ranks = sfti_arena_array(&w->arena, n, sizeof *kv->ranks);
    kv->values = sfti_arena_array(&w->arena, n, sizeof *kv->values);
    if (!kv->shapes || !kv->ranks || !kv->values)
        return sfti_fail_memory(err, n * sizeof *kv->values);
    for (size_t k = 0; k < n; k++) kv->shapes[k] = NULL;
    return sfti_arrow_type_read(schema->children[w->columns.name_child], &w->arena, &kv->key, err);
}

void sfti_kv_free(sft_shard_writer *w) {
    shard_kv *kv = &w->kv;
    sfti_arena_free(&kv->arena);
    sfti_arena_free(&kv->names_arena);
    sfti_release(&w->alloc, kv->entries, kv->cap * sizeof *kv->entries);
}
