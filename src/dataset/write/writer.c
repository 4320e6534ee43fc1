/* The shard writer, from its schema to its receipts. Tests: test_dataset_shards.c. */
#include "dataset/write/writer.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/options.h"

#include <string.h>

/* ── Opening ── */

static sft_code open_column(sft_shard_writer *w, shard_column *c, sft_error *err) {
    const sfti_ds_column *asked = c->asked;
    const struct ArrowSchema *schema = c->node->schema;
    sft_code code = SFT_OK;
    c->listed = asked->form == SFTI_FORM_BYTES || asked->form == SFTI_FORM_LIST;
    if (asked->form == SFTI_FORM_STRUCT || asked->form == SFTI_FORM_LIST) return SFT_OK;
    if (asked->form == SFTI_FORM_TENSOR)
        return sfti_arrow_tensor_read(schema, &w->arena, &c->tensor, err);
    if (asked->has_shape)
        code = sft_shape_size(SFT_U8, asked->shape, asked->rank, &c->elements, NULL, err);
    if (!code) code = sfti_arrow_type_read(schema, &w->arena, &c->type, err);
    c->listed = c->listed || (!asked->has_shape && c->type.depth == 1);
    c->runs = c->listed && sfti_arrow_has_runs(&c->type);
    return code;
}

static sft_code open_columns(sft_shard_writer *w, const struct ArrowSchema *schema,
                             sft_error *err) {
    sft_code code =
        sfti_ds_columns_resolve(w->options, schema, &w->arena, &w->columns, err);
    if (code) return code;
    size_t n = w->columns.node_count;
    w->children = (size_t)schema->n_children;
    w->column = sfti_arena_array(&w->arena, n, sizeof *w->column);
    if (!w->column) return sfti_fail_memory(err, n * sizeof *w->column);
    if (n) memset(w->column, 0, n * sizeof *w->column);
    for (size_t k = 0; !code && k < n; k++) {
        shard_column *c = &w->column[k];
        c->node = &w->columns.node[k];
        c->asked = &c->node->column;
        c->ask = UINT64_MAX;
        c->ends.alloc = c->valid.alloc = w->alloc;
        code = open_column(w, c, err);
    }
    if (!code && w->columns.mode == SFT_DATASET_KV)
        code = sfti_kv_begin(w, schema, err);
    return code;
}

static sft_code open_job(sft_shard_writer *w, sft_span job, sft_error *err) {
    char *text = sfti_arena_take(&w->arena, job.len);
    if (!text) return sfti_fail_memory(err, job.len);
    if (job.len) memcpy(text, job.data, job.len);
    w->job_text = (sft_span){ text, job.len };
    sft_code code = sfti_ds_job_parse(w->job_text, &w->job, err);
    if (code) return code;
    if (!sfti_add(w->job.first, w->partition, &w->file))
        return sfti_misuse(err, "expected numbers of partitions within 64 bits, found %llu",
                           (unsigned long long)w->partition);
    return sfti_ds_uuid(w->uuid, err);
}

/* Whether the rows fit the dataset that is appended to, as far as the schema tells. */
static sft_code open_agrees(sft_shard_writer *w, sft_error *err) {
    const sfti_ds_column *was = NULL;
    size_t count = 0;
    if (w->job.columns.len == 0) return SFT_OK;
    sft_code code = sfti_ds_columns_read(w->job.columns, &w->arena, &was, &count, err);
    if (!code)
        code = sfti_ds_columns_agree(was, count, w->columns.column, w->columns.count,
                                     w->options->merges, err);
    for (size_t k = 0; !code && k < w->columns.node_count; k++)
        if (w->column[k].node->parent == SFTI_NO_NODE)
            w->column[k].was = sfti_ds_column_find(was, count, w->column[k].asked->name);
    return code;
}

static void shard_free(sft_shard_writer *w) {
    sft_allocator alloc = w->alloc;
    sfti_shard_release(w, NULL);
    for (size_t k = 0; w->column && k < w->columns.node_count; k++) {
        shard_column *c = &w->column[k];
        sfti_pieces_free(&c->pieces, &alloc);
        sfti_release(&alloc, c->ranges, c->range_cap * sizeof *c->ranges);
        sft_buffer_free(&c->ends);
        sft_buffer_free(&c->valid);
    }
    if (w->columns.mode == SFT_DATASET_KV) sfti_kv_free(w);
    sfti_release(&alloc, w->receipts, w->receipt_cap * sizeof *w->receipts);
    sfti_release(&alloc, w->cast_buffer, SHARD_CAST_BYTES);
    sft_buffer_free(&w->scratch);
    sfti_arena_free(&w->arena);
    sfti_release(&alloc, w, sizeof *w);
}

sft_code sft_shard_writer_begin(const sft_dataset_options *options, const sft_storage *storage,
                                sft_span job, uint64_t partition,
                                const struct ArrowSchema *schema, const sft_allocator *alloc,
                                sft_shard_writer **out, sft_error *err) {
    if (out) *out = NULL;
    if (!options || !out)
        return sfti_misuse(err, "expected options and a place for the writer, found NULL");
    sft_code code = sfti_ds_storage_check(storage, err);
    if (code) return code;
    sft_allocator own = sfti_allocator(alloc);
    sft_shard_writer *w = sfti_take(&own, sizeof *w);
    if (!w) return sfti_fail_memory(err, sizeof *w);
    memset(w, 0, sizeof *w);
    w->alloc = own;
    w->options = options;
    w->storage = storage;
    w->arena.alloc = own;
    w->kv.arena.alloc = own;
    w->kv.names_arena.alloc = own;
    w->scratch.alloc = own;
    /* An object store's sink holds memory until it is finished. */
    w->unfinished.most = sfti_can(storage, move) ? SFTI_UNFINISHED : 0;
    w->partition = partition;
    w->held_end = &w->held;
    code = open_job(w, job, err);
    if (!code) code = open_columns(w, schema, err);
    if (!code) code = open_agrees(w, err);
    if (!code) *out = w;
    else shard_free(w);
    return code;
}

/* ── Rows ── */

static sft_code shard_take(sft_shard_writer *w, struct ArrowArray *batch, const sft_job *job,
                           sft_error *err) {
    shard_held *held = NULL;
    sft_code code = sfti_shard_check(w, batch, err);
    if (code || batch->length == 0) return code;
    uint64_t length = (uint64_t)batch->length;
    code = sfti_shard_hold(w, batch, &held, err);
    if (code) return code;
    if (w->columns.mode == SFT_DATASET_KV) code = sfti_kv_append(w, held, job, err);
    else code = sfti_batch_append(w, held, job, err);
    w->rows += length;
    return code;
}

sft_code sft_shard_writer_append(sft_shard_writer *writer, struct ArrowArray *batch,
                                 const sft_job *job, sft_error *err) {
    if (!batch || !batch->release)
        return sfti_misuse(err, "expected a batch of rows, found none");
    sft_job own;
    sft_code code = writer->failed;
    if (code)
        sfti_fail(err, code, "the writer failed before; it can only be abandoned");
    else code = sfti_take_job(job, &own, err);
    if (!code) code = shard_take(writer, batch, &own, err);
    if (batch->release) batch->release(batch);
    batch->release = NULL;
    writer->failed = code;
    return code;
}

/* ── Ends ── */

static sft_code close_all(sft_shard_writer *w, sft_buffer *out, const sft_job *job,
                          sft_error *err) {
    if (w->failed)
        return sfti_fail(err, w->failed, "the writer failed before; nothing it wrote was kept");
    sft_code code = w->columns.mode == SFT_DATASET_KV ? sfti_kv_end(w, job, err)
                                                      : sfti_batch_end(w, job, err);
    if (!code) code = sfti_finish_queue_run(&w->unfinished, 0, err);

    if (code) return code;
    const sfti_ds_receipt none = { .partition = w->partition, .dropped = w->dropped };
    code = SFT_OK;
    if (!sfti_buffer_put(out, "[", 1)) return sfti_fail_memory(err, 1);
    if (w->receipt_count) w->receipts[w->receipt_count - 1].dropped = w->dropped;
    else if (w->dropped) code = sfti_ds_receipt_write(&none, w->job_text, out, err);
    for (size_t i = 0; !code && i < w->receipt_count; i++) {
        if (i > 0 && !sfti_buffer_put(out, ",", 1)) return sfti_fail_memory(err, 1);
        code = sfti_ds_receipt_write(&w->receipts[i], w->job_text, out, err);
    }
    if (code) return code;
    return sfti_buffer_put(out, "]", 1) ? SFT_OK : sfti_fail_memory(err, 1);
}

sft_code sft_shard_writer_finish(sft_shard_writer *writer, sft_buffer *receipts,
                                 const sft_job *job, sft_error *err) {
    sft_buffer text = { NULL, 0, 0, writer->alloc };
    if (receipts) memset(receipts, 0, sizeof *receipts);
    sft_job own;
    sft_code code = sfti_take_job(job, &own, err);
    if (!code) code = close_all(writer, &text, &own, err);
    if (!code && !receipts)
        code = sfti_misuse(err, "expected a place for the receipts, found NULL");
    if (!code) {
        *receipts = text;
        shard_free(writer);
        return SFT_OK;
    }
    sft_buffer_free(&text);
    sft_shard_writer_abandon(writer);
    return code;
}

void sft_shard_writer_abandon(sft_shard_writer *writer) {
    if (!writer) return;
    const sft_storage *storage = writer->storage;
    sft_error ignored;
    sft_code unused = SFT_OK;
    sfti_finish_queue_abandon(&writer->unfinished);
    for (size_t i = 0; i < writer->receipt_count; i++)
        unused = sfti_call(storage, remove, writer->receipts[i].stored.data, false,
                           &ignored);
    if (writer->pending)
        unused = sfti_call(storage, remove, writer->pending, false, &ignored);
    (void)unused;
    shard_free(writer);
}
