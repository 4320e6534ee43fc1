/* Writes the tensors of a plan, in any order if the sink can seek. Tests: test_writer.c. */
#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/options.h"
#include "bytes/source.h"
#include "file/file.h"
#include "format/format.h"

#include <string.h>

/* ── Of a plan or added one by one ── */

static size_t writer_count(const sft_writer *w) {
    return w->plan ? sft_plan_tensor_count(w->plan) : w->added.count;
}

static const sft_tensor *writer_tensor(const sft_writer *w, size_t i) {
    if (w->plan) return sft_plan_tensor_at(w->plan, i);
    return i < w->added.count ? &w->added.items[i].tensor : NULL;
}

static uint64_t *writer_done(sft_writer *w, size_t i) {
    return w->plan ? &w->done[i] : &w->added.items[i].done;
}

/* Every later call answers with the first failure. */
static sft_code writer_failed(const sft_writer *w, sft_error *err) {
    if (err && w->failure.code) *err = w->failure;
    return w->failure.code;
}

static sft_code remember(sft_writer *w, sft_code code, sft_error *err) {
    if (w->failure.code != code) sft_error_set(&w->failure, code, 0, NULL);
    return writer_failed(w, err);
}

static sft_writer *writer_take(const sft_plan *plan, sft_sink sink) {
    const sft_allocator *alloc = sfti_plan_allocator(plan);
    uint64_t bytes;
    if (!sfti_mul(sft_plan_tensor_count(plan), sizeof(uint64_t), &bytes)) return NULL;
    if (!sfti_add(bytes, sizeof(sft_writer), &bytes) || !sfti_fits_size(bytes)) return NULL;
    sft_writer *w = sfti_take(alloc, (size_t)bytes);
    if (!w) return NULL;
    memset(w, 0, (size_t)bytes);
    w->alloc = *alloc;
    w->bytes = (size_t)bytes;
    w->plan = plan;
    w->sink = sink;
    sfti_error_clear(&w->failure);
    return w;
}

static void writer_free(sft_writer *w) {
    sft_allocator alloc = w->alloc;
    if (!w->plan) sfti_arena_free(&w->added.arena);
    sfti_release(&alloc, w, w->bytes);
}

sft_code sft_writer_begin(const sft_plan *plan, sft_sink sink, sft_writer **out,
                        sft_error *err) {
    if (out) *out = NULL;
    if (!plan || !out) {
        sft_sink_abandon(&sink);
        return sfti_misuse(err, "expected a plan and a place for the writer, found NULL");
    }
    sft_writer *w = writer_take(plan, sink);
    if (!w) {
        sft_sink_abandon(&sink);
        return sfti_fail_memory(err, (uint64_t)sft_plan_tensor_count(plan) * sizeof(uint64_t));
    }
    sft_span head = sft_plan_head(plan);
    w->next = head.len;
    sft_code code = sft_sink_expect(&w->sink, sft_plan_total(plan), err);
    if (!code) code = sft_sink_write(&w->sink, 0, head.data, head.len, err);
    if (code) {
        sft_writer_abandon(w);
        return code;
    }
    *out = w;
    return SFT_OK;
}

static sft_code check_put(const sft_writer *w, const sft_tensor *tensor, uint64_t at,
                          uint64_t len, sft_error *err) {
    uint64_t left = tensor->end - tensor->begin - (at - tensor->offset);
    if (len > left)
        return sfti_fail_tensor(err, SFT_BUFFER_SIZE, SFT_NO_OFFSET, tensor->name,
                                "expected at most %llu more bytes of the tensor, found %llu",
                                (unsigned long long)left, (unsigned long long)len);
    if (len == 0 || w->sink.seekable || at == w->next) return SFT_OK;
    return sfti_fail_tensor(err, SFT_OUT_OF_ORDER, SFT_NO_OFFSET, tensor->name,
                            "expected the bytes for offset %llu next, found those for "
                            "offset %llu, which need a sink that can seek",
                            (unsigned long long)w->next, (unsigned long long)at);
}

static sft_code writer_put(sft_writer *w, size_t i, const void *bytes, size_t len,
                           sft_error *err) {
    const sft_tensor *tensor = writer_tensor(w, i);
    if (!tensor || (len > 0 && !bytes))
        return sfti_misuse(err, "expected bytes of one of %llu tensors, found %s",
                           (unsigned long long)writer_count(w),
                           tensor ? "NULL" : "a number past the last");
    uint64_t at = tensor->offset + *writer_done(w, i);
    sft_code code = check_put(w, tensor, at, len, err);
    if (code || len == 0) return code;
    code = sft_sink_write(&w->sink, at, bytes, len, err);
    if (code) return code;
    *writer_done(w, i) += len;
    w->next = at + len;
    return SFT_OK;
}

sft_code sft_writer_put(sft_writer *writer, size_t i, const void *bytes, size_t len,
                        sft_error *err) {
    if (writer->failure.code) return writer_failed(writer, err);
    sft_code code = writer_put(writer, i, bytes, len, &writer->failure);
    return code ? remember(writer, code, err) : SFT_OK;
}

static sft_code writer_copy(sft_writer *w, size_t i, const sft_source *from, uint64_t begin,
                            uint64_t len, const sft_job *job, sft_error *err) {
    const sft_tensor *tensor = writer_tensor(w, i);
    uint64_t end;
    if (!tensor || !from || !sfti_add(begin, len, &end))
        return sfti_misuse(err, "expected bytes of a source for one of %llu tensors, found %s",
                           (unsigned long long)writer_count(w),
                           !tensor ? "a number past the last" : "none");
    uint64_t at = tensor->offset + *writer_done(w, i);
    sft_code code = check_put(w, tensor, at, len, err);
    if (code || len == 0) return code;
    code = sfti_copy_into(from, begin, end, &w->sink, at, &w->alloc, job, err);
    if (code) return code;
    *writer_done(w, i) += len;
    w->next = at + len;
    return SFT_OK;
}

sft_code sft_writer_copy(sft_writer *writer, size_t i, const sft_source *from, uint64_t begin,
                         uint64_t len, const sft_job *job, sft_error *err) {
    sft_job own;
    if (writer->failure.code) return writer_failed(writer, err);
    sft_code code = sfti_take_job(job, &own, &writer->failure);
    if (!code)
        code = writer_copy(writer, i, from, begin, len, &own, &writer->failure);
    return code ? remember(writer, code, err) : SFT_OK;
}

static sft_code check_complete(sft_writer *w, sft_error *err) {
    for (size_t i = 0; i < writer_count(w); i++) {
        const sft_tensor *tensor = writer_tensor(w, i);
        if (*writer_done(w, i) == tensor->end - tensor->begin) continue;
        return sfti_fail_tensor(err, SFT_INCOMPLETE, SFT_NO_OFFSET, tensor->name,
                                "expected %llu bytes of the tensor, found %llu",
                                (unsigned long long)(tensor->end - tensor->begin),
                                (unsigned long long)*writer_done(w, i));
    }
    return SFT_OK;
}

sft_code sft_writer_finish(sft_writer *writer, sft_error *err) {
    sft_code code = writer_failed(writer, err);
    if (!code) code = check_complete(writer, err);
    if (!code && !writer->plan) code = sfti_writer_head(writer, err);
    if (!code) {
        code = sft_sink_finish(&writer->sink, err);
        writer_free(writer);
    } else {
        sft_writer_abandon(writer);
    }
    return code;
}

void sft_writer_abandon(sft_writer *writer) {
    if (!writer) return;
    sft_sink_abandon(&writer->sink);
    writer_free(writer);
}
