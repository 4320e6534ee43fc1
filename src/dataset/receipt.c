/* Receipts of tasks as JSON. Tests: test_dataset_shards.c. */
#include "base/error.h"
#include "base/sink.h"
#include "dataset/fields.h"

#include <string.h>

/* ── Writing ── */

/* A memory sink empties its buffer; this one appends. */
static sft_code receipt_append(void *ctx, const void *bytes, size_t len, sft_error *err) {
    return sfti_buffer_put(ctx, bytes, len) ? SFT_OK : sfti_fail_memory(err, len);
}

static void receipt_facts(sfti_json_writer *w, const sfti_ds_receipt *r, sft_span job) {
    sfti_json_put_text(w, "job", job);
    if (!r->name.data) {
        sfti_json_put_uint(w, "partition", r->partition);
        sfti_json_put_uint(w, "dropped", r->dropped);
        return;
    }
    sfti_json_put_text(w, "name", r->name);
    sfti_json_put_text(w, "stored", r->stored);
    sfti_json_put_uint(w, "partition", r->partition);
    sfti_json_put_uint(w, "shard", r->shard);
    sfti_json_put_uint(w, "bytes", r->bytes);
    sfti_json_put_uint(w, "header_bytes", r->header_bytes);
    sfti_json_put_uint(w, "samples", r->samples);
    sfti_json_put_uint(w, "valid_samples", r->valid_samples);
    sfti_json_put_uint(w, "tensors", r->tensors);
    sfti_json_put_uint(w, "dropped", r->dropped);
    sfti_json_put_text(w, "sha256", sft_span_cstr(r->sha256));
}

static void receipt_put_columns(sfti_json_writer *w, const sfti_ds_column *columns,
                                size_t count) {
    sfti_json_open(w, '[');
    for (size_t i = 0; i < count; i++) {
        const sfti_ds_column *c = &columns[i];
        sfti_json_open(w, '{');
        sfti_json_put_text(w, "name", c->name);
        if (c->has_dtype) sfti_json_put_cstr(w, "dtype", sft_dtype_describe(c->dtype)->name);
        if (c->has_shape) sfti_json_put_shape(w, "shape", c->shape, c->rank);
        if (c->encoding) sfti_json_put_cstr(w, "encoding", sfti_ds_encoding_name(c->encoding));
        if (c->nullable) sfti_json_put_bool(w, "nullable", true);
        if (c->optional) sfti_json_put_bool(w, "optional", true);
        if (c->type.data) sfti_json_put_text(w, "type", c->type);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

sft_code sfti_ds_columns_write(const sfti_ds_column *columns, size_t count, sft_buffer *out,
                               sft_error *err) {
    sft_sink sink;
    sfti_json_writer w;
    sft_code code = sft_sink_callback(receipt_append, out, &out->alloc, &sink, err);
    if (code) return code;
    sfti_json_write(&w, &sink, 0, err);
    receipt_put_columns(&w, columns, count);
    return sfti_sink_end(&sink, sfti_json_done(&w), err);
}

sft_code sfti_ds_receipt_write(const sfti_ds_receipt *r, sft_span job, sft_buffer *out,
                               sft_error *err) {
    sft_sink sink;
    sfti_json_writer w;
    sfti_ds_job of;
    sft_code code = sfti_ds_job_parse(job, &of, err);
    if (!code) code = sft_sink_callback(receipt_append, out, &out->alloc, &sink, err);
    if (code) return code;
    sfti_json_write(&w, &sink, 0, err);
    sfti_json_open(&w, '{');
    receipt_facts(&w, r, of.id);
    sfti_json_key(&w, "columns");
    receipt_put_columns(&w, r->columns, r->column_count);
    sfti_json_close(&w, '}');
    return sfti_sink_end(&sink, sfti_json_done(&w), err);
}

/* ── Reading ── */

/* The ctx of sfti_fields. */
typedef struct receipt_reader {
    sft_span job;
    sfti_ds_column *columns; /* of any receipt while they are read */
    size_t cap;
} receipt_reader;

static sft_code receipt_columns(sfti_fields *r, void *out) {
    sfti_ds_receipt *receipt = out;
    receipt_reader *reader = r->ctx;
    size_t count = 0;
    if (sfti_json_next(&r->json) != SFTI_JSON_ARRAY) return sfti_fields_wrong(r, "an array");
    while (sfti_json_next(&r->json) == SFTI_JSON_OBJECT) {
        sfti_ds_entry entry;
        sfti_ds_column *all = sfti_arena_grow(r->arena, reader->columns, count, 1, &reader->cap,
                                              sizeof *all);
        if (!all) return sfti_fail_memory(r->err, sizeof *all);
        reader->columns = all;
        sft_code code = sfti_fields_entry(r, &entry);
        if (!code) code = sfti_fields_column(r, &entry, &all[count++]);
        if (code) return code;
    }
    if (r->json.type != SFTI_JSON_ARRAY_END) return sfti_fields_wrong(r, "']'");
    sfti_ds_column *columns = sfti_arena_array(r->arena, count, sizeof *columns);
    if (!columns) return sfti_fail_memory(r->err, count * sizeof *columns);
    if (count) memcpy(columns, reader->columns, count * sizeof *columns);
    receipt->columns = columns;
    receipt->column_count = count;
    return SFT_OK;
}

sft_code sfti_ds_columns_read(sft_span text, sfti_arena *arena, const sfti_ds_column **out,
                              size_t *count, sft_error *err) {
    receipt_reader reader = { .cap = 0 };
    sfti_ds_receipt read = { .column_count = 0 };
    sfti_fields r = { .arena = arena, .code = SFT_BAD_ARGUMENT, .strict = true, .ctx = &reader,
                      .err = err };
    sft_code code = sfti_fields_begin(&r, text);
    if (!code) code = receipt_columns(&r, &read);
    *out = read.columns;
    *count = read.column_count;
    if (code || sfti_json_next(&r.json) == SFTI_JSON_END) return code;
    return sfti_fields_wrong(&r, "the end of the columns");
}

static sft_code receipt_job(sfti_fields *r, void *out) {
    const receipt_reader *reader = r->ctx;
    sft_span job;
    sft_code code = sfti_fields_text(r, false, &job);
    (void)out;
    if (code || sft_span_equal(job, reader->job)) return code;
    return sfti_fields_wrong(r, "a receipt of this job");
}

#define OF_RECEIPT(member) offsetof(sfti_ds_receipt, member)
static const sfti_field receipt_rows[] = {
    { "job", SFTI_FIELD_TAKEN, 0, true, receipt_job },
    { "name", SFTI_FIELD_TEXT, OF_RECEIPT(name), false, NULL },
    { "stored", SFTI_FIELD_TEXT, OF_RECEIPT(stored), false, NULL },
    { "partition", SFTI_FIELD_UINT, OF_RECEIPT(partition), false, NULL },
    { "shard", SFTI_FIELD_UINT, OF_RECEIPT(shard), false, NULL },
    { "bytes", SFTI_FIELD_UINT, OF_RECEIPT(bytes), false, NULL },
    { "header_bytes", SFTI_FIELD_UINT, OF_RECEIPT(header_bytes), false, NULL },
    { "samples", SFTI_FIELD_UINT, OF_RECEIPT(samples), false, NULL },
    { "valid_samples", SFTI_FIELD_UINT, OF_RECEIPT(valid_samples), false, NULL },
    { "tensors", SFTI_FIELD_UINT, OF_RECEIPT(tensors), false, NULL },
    { "dropped", SFTI_FIELD_UINT, OF_RECEIPT(dropped), false, NULL },
    { "sha256", SFTI_FIELD_SHA256, OF_RECEIPT(sha256), false, NULL },
    { "columns", SFTI_FIELD_TAKEN, 0, false, receipt_columns },
};

sft_code sfti_ds_receipts_read(sft_span text, const sfti_ds_job *job, sfti_arena *arena,
                               sfti_ds_receipt **all, size_t *count, size_t *cap,
                               sft_error *err) {
    receipt_reader reader = { .job = job->id };
    sfti_fields r = { .arena = arena, .code = SFT_DATASET_RECEIPT, .strict = true, .ctx = &reader,
                      .err = err };
    sft_code code = sfti_fields_begin(&r, text);
    if (code) return code;
    if (sfti_json_next(&r.json) != SFTI_JSON_ARRAY) return sfti_fields_wrong(&r, "an array");
    while (sfti_json_next(&r.json) == SFTI_JSON_OBJECT) {
        sfti_ds_receipt *grown = sfti_arena_grow(arena, *all, *count, 1, cap, sizeof *grown);
        if (!grown) return sfti_fail_memory(err, sizeof *grown);
        *all = grown;
        sfti_ds_receipt *one = &grown[*count];
        memset(one, 0, sizeof *one);
        code = sfti_fields_read(&r, SFTI_FIELDS(receipt_rows), one, NULL);
        if (code) return code;
        /* Only the names that a shard writer makes. */
        char stored[SFTI_STORED_NAME];
        uint64_t file, shard;
        bool good = one->name.data && one->stored.data && one->name.len < SFTI_DATASET_NAME &&
                    sfti_ds_shard_parse(one->name, &file, &shard);
        if (!one->name.data && !one->stored.data) {
            good = one->dropped && !one->bytes && !one->tensors;
        } else if (good && !sft_span_equal(one->name, one->stored)) {
            sfti_ds_stored_name(job->folder, one->name.data, stored);
            good = sft_span_equal(one->stored, sft_span_cstr(stored));
        }
        if (!good) return sfti_fields_wrong(&r, "a shard of this job");
        ++*count;
    }
    if (r.json.type != SFTI_JSON_ARRAY_END || sfti_json_next(&r.json) != SFTI_JSON_END)
        return sfti_fields_wrong(&r, "the end of the receipts");
    return SFT_OK;
}
