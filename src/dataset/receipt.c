#include "base/error.h"
#include "base/result.h"
#include "base/sink.h"
#include "base/utf8.h"
#include "dataset/dataset.h"

#include <string.h>

#define UUID_LEN_OF_JOB 36
#define JOB_FOLDER_LEN (5 + UUID_LEN_OF_JOB + 1) /* "_job-<uuid>/" */

/* ── Writing ── */

static void receipt_column(sfti_json_writer *w, const sfti_ds_column *c) {
    sfti_json_open(w, '{');
    sfti_json_put_text(w, "name", c->name);
    if (c->has_dtype) sfti_json_put_cstr(w, "dtype", sft_dtype_describe(c->dtype)->name);
    if (c->has_shape) sfti_json_put_shape(w, "shape", c->shape, c->rank);
    sfti_json_close(w, '}');
}

void sfti_ds_put_column(sfti_json_writer *w, const sfti_ds_column *c) {
    sfti_json_put_cstr(w, "dtype", c->has_dtype ? sft_dtype_describe(c->dtype)->name : NULL);
    if (c->has_shape) sfti_json_put_shape(w, "shape", c->shape, c->rank);
    else sfti_json_put_cstr(w, "shape", NULL);
}

void sfti_ds_put_columns(sfti_json_writer *w, const sfti_ds_column *columns, size_t count) {
    sfti_json_key(w, "columns");
    sfti_json_open(w, '{');
    for (size_t i = 0; i < count; i++) {
        sfti_json_key_span(w, columns[i].name);
        sfti_json_open(w, '{');
        sfti_ds_put_column(w, &columns[i]);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, '}');
}

/* A memory sink empties its buffer; this one goes on where it ends. */
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

sft_code sfti_ds_receipt_write(const sfti_ds_receipt *r, sft_span job, sft_buffer *out,
                               sft_error *err) {
    sft_sink sink;
    sfti_json_writer w;
    sft_code code = sft_sink_callback(receipt_append, out, &out->alloc, &sink, err);
    if (code) return code;
    sfti_json_write(&w, &sink, 0, err);
    sfti_json_open(&w, '{');
    receipt_facts(&w, r, job);
    sfti_json_key(&w, "columns");
    sfti_json_open(&w, '[');
    for (size_t i = 0; i < r->column_count; i++) receipt_column(&w, &r->columns[i]);
    sfti_json_close(&w, ']');
    sfti_json_close(&w, '}');
    return sfti_sink_end(&sink, sfti_json_done(&w), err);
}

/* ── Reading ── */

typedef struct receipt_reader {
    sfti_arena *arena;
    sfti_json json;
    sft_span job;
    sft_error *err;
} receipt_reader;

static sft_code receipt_wrong(const receipt_reader *r, const char *expected) {
    sft_span text = { r->json.begin, (size_t)(r->json.end - r->json.begin) };
    return sfti_fail_at(r->err, SFT_DATASET_RECEIPT, 0, text,
                        r->json.type == SFTI_JSON_ERROR ? r->json.error_at : r->json.start,
                        expected);
}

static sft_code receipt_string(receipt_reader *r, sft_span *out) {
    if (r->json.type != SFTI_JSON_STRING) return receipt_wrong(r, "a string");
    char *copy = sfti_arena_take(r->arena, r->json.text.len + 1);
    if (!copy) return sfti_fail_memory(r->err, r->json.text.len + 1);
    size_t len = sfti_json_decode(r->json.text, copy);
    copy[len] = '\0';
    *out = (sft_span){ copy, len };
    return SFT_OK;
}

static sft_code receipt_dims(receipt_reader *r, sfti_ds_column *c) {
    uint64_t dims[SFT_MAX_RANK];
    if (r->json.type != SFTI_JSON_ARRAY) return receipt_wrong(r, "an array");
    while (sfti_json_next(&r->json) == SFTI_JSON_UINT && c->rank < SFT_MAX_RANK)
        dims[c->rank++] = r->json.value;
    if (r->json.type != SFTI_JSON_ARRAY_END) return receipt_wrong(r, "a shape");
    uint64_t *shape = sfti_arena_array(r->arena, c->rank, sizeof *shape);
    if (!shape) return sfti_fail_memory(r->err, c->rank * sizeof *shape);
    memcpy(shape, dims, c->rank * sizeof *shape);
    c->shape = shape;
    c->has_shape = true;
    return SFT_OK;
}

static sft_code receipt_column_field(receipt_reader *r, sfti_ds_column *c) {
    sft_span key = r->json.text, text;
    sft_code code;
    sfti_json_next(&r->json);
    if (sft_span_equal(key, sft_span_cstr("name"))) return receipt_string(r, &c->name);
    if (sft_span_equal(key, sft_span_cstr("shape"))) return receipt_dims(r, c);
    if (!sft_span_equal(key, sft_span_cstr("dtype"))) return receipt_wrong(r, "a column's field");
    code = receipt_string(r, &text);
    if (code == SFT_OK && !sft_dtype_parse(text, &c->dtype)) return receipt_wrong(r, "a dtype");
    c->has_dtype = code == SFT_OK;
    return code;
}

static size_t receipt_count(const sfti_json *at) {
    sfti_json json = *at;
    size_t count = 0;
    while (sfti_json_next(&json) == SFTI_JSON_OBJECT) {
        sfti_json_skip(&json);
        count++;
    }
    return count;
}

static sft_code receipt_columns(receipt_reader *r, sfti_ds_receipt *out) {
    if (r->json.type != SFTI_JSON_ARRAY) return receipt_wrong(r, "an array");
    size_t count = receipt_count(&r->json);
    sfti_ds_column *all = sfti_arena_array(r->arena, count, sizeof *all);
    if (!all) return sfti_fail_memory(r->err, count * sizeof *all);
    memset(all, 0, count * sizeof *all);
    for (size_t i = 0; i < count; i++) {
        sfti_json_next(&r->json);
        while (sfti_json_next(&r->json) == SFTI_JSON_KEY) {
            sft_code code = receipt_column_field(r, &all[i]);
            if (code) return code;
        }
        if (r->json.type != SFTI_JSON_OBJECT_END) return receipt_wrong(r, "'}'");
    }
    out->columns = all;
    out->column_count = count;
    return sfti_json_next(&r->json) == SFTI_JSON_ARRAY_END ? SFT_OK : receipt_wrong(r, "']'");
}

static sft_code receipt_job(receipt_reader *r) {
    sft_span job;
    sft_code code = receipt_string(r, &job);
    if (code || sft_span_equal(job, r->job)) return code;
    return receipt_wrong(r, "a receipt of this job");
}

static sft_code receipt_digest(receipt_reader *r, sfti_ds_receipt *out) {
    sft_span text;
    sft_code code = receipt_string(r, &text);
    if (code) return code;
    if (text.len != 64) return receipt_wrong(r, "64 hexadecimal digits");
    memcpy(out->sha256, text.data, 65);
    return SFT_OK;
}

static sft_code receipt_number(receipt_reader *r, sft_span key, sfti_ds_receipt *out) {
    static const char *const names[] = { "partition", "shard",         "bytes",   "header_bytes",
                                         "samples",   "valid_samples", "tensors", "dropped" };
    uint64_t *const places[] = { &out->partition, &out->shard,         &out->bytes,
                                 &out->header_bytes, &out->samples, &out->valid_samples,
                                 &out->tensors,   &out->dropped };
    if (r->json.type != SFTI_JSON_UINT) return receipt_wrong(r, "a whole number");
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++)
        if (sft_span_equal(key, sft_span_cstr(names[i]))) {
            *places[i] = r->json.value;
            return SFT_OK;
        }
    return receipt_wrong(r, "a receipt's field");
}

static sft_code receipt_field(receipt_reader *r, sfti_ds_receipt *out, bool *of_job) {
    sft_span key = r->json.text;
    sfti_json_next(&r->json);
    if (sft_span_equal(key, sft_span_cstr("name"))) return receipt_string(r, &out->name);
    if (sft_span_equal(key, sft_span_cstr("stored"))) return receipt_string(r, &out->stored);
    if (sft_span_equal(key, sft_span_cstr("sha256"))) return receipt_digest(r, out);
    if (sft_span_equal(key, sft_span_cstr("columns"))) return receipt_columns(r, out);
    if (!sft_span_equal(key, sft_span_cstr("job"))) return receipt_number(r, key, out);
    *of_job = true;
    return receipt_job(r);
}

/* The names that a shard writer gives, and no others. */
static bool receipt_names_good(const sfti_ds_receipt *r, sft_span job) {
    uint64_t file, shard;
    if (!r->name.data && !r->stored.data) return r->dropped && !r->bytes && !r->tensors;
    if (!r->name.data || !r->stored.data || !sfti_ds_shard_parse(r->name, &file, &shard))
        return false;
    if (sft_span_equal(r->name, r->stored)) return true;
    if (r->stored.len != r->name.len + JOB_FOLDER_LEN) return false;
    sft_span folder = { r->stored.data, JOB_FOLDER_LEN };
    return job.len > UUID_LEN_OF_JOB && memcmp(folder.data, "_job-", 5) == 0 &&
           folder.data[folder.len - 1] == '/' &&
           memcmp(folder.data + 5, job.data, UUID_LEN_OF_JOB) == 0 &&
           memcmp(folder.data + folder.len, r->name.data, r->name.len) == 0;
}

static sft_code receipt_one(receipt_reader *r, sfti_ds_receipt *out) {
    bool of_job = false;
    memset(out, 0, sizeof *out);
    while (sfti_json_next(&r->json) == SFTI_JSON_KEY) {
        sft_code code = receipt_field(r, out, &of_job);
        if (code) return code;
    }
    if (r->json.type != SFTI_JSON_OBJECT_END) return receipt_wrong(r, "'}'");
    if (!of_job || !receipt_names_good(out, r->job)) return receipt_wrong(r, "a shard of this job");
    return SFT_OK;
}

sft_code sfti_ds_receipts_read(sft_span text, sft_span job, sfti_arena *arena,
                               sfti_ds_receipt **out, size_t *count, sft_error *err) {
    receipt_reader r = { arena, { 0 }, job, err };
    if (sfti_utf8_check(text.data, text.len) != text.len)
        return sfti_fail(err, SFT_DATASET_RECEIPT, SFT_NO_OFFSET, "expected UTF-8");
    sfti_json_begin(&r.json, text.data, text.len);
    if (sfti_json_next(&r.json) != SFTI_JSON_ARRAY) return receipt_wrong(&r, "an array");
    *count = receipt_count(&r.json);
    *out = sfti_arena_array(arena, *count, sizeof **out);
    if (!*out) return sfti_fail_memory(err, *count * sizeof **out);
    for (size_t i = 0; i < *count; i++) {
        sfti_json_next(&r.json);
        sft_code code = receipt_one(&r, &(*out)[i]);
        if (code) return code;
    }
    if (sfti_json_next(&r.json) != SFTI_JSON_ARRAY_END || sfti_json_next(&r.json) != SFTI_JSON_END)
        return receipt_wrong(&r, "the end of the receipts");
    return SFT_OK;
}
