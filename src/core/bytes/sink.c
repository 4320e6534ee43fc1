/* Sinks: memory, descriptors, callbacks, and two at once. Tests: test_sink.c. */
#include "base/checked.h"
#include "base/mem.h"
#include "base/options.h"
#include "bytes/source.h"
#include "safetensors_io.h"

#include <errno.h>
#include <string.h>

static sft_code no_place(sft_error *err) {
    return sfti_misuse(err, "expected a place for the sink, found NULL");
}

static sft_code out_of_order(uint64_t expected, uint64_t offset, sft_error *err) {
    return sfti_fail_byte(err, SFT_OUT_OF_ORDER, offset,
                          "expected the byte at offset %llu next, found offset %llu",
                          (unsigned long long)expected, (unsigned long long)offset);
}

/* ── Calls ── */

sft_code sft_sink_expect(const sft_sink *sink, uint64_t total, sft_error *err) {
    if (!SFTI_CAN(sink, sft_sink_vtable, expect)) return SFT_OK;
    return sink->vtable->expect(sink->ctx, total, err);
}

sft_code sft_sink_write(const sft_sink *sink, uint64_t offset, const void *bytes, size_t len,
                        sft_error *err) {
    if (SFTI_CAN(sink, sft_sink_vtable, write))
        return sink->vtable->write(sink->ctx, offset, bytes, len, err);
    return sfti_misuse(err, "expected a sink with write, found none");
}

sft_code sft_sink_finish(const sft_sink *sink, sft_error *err) {
    if (!SFTI_CAN(sink, sft_sink_vtable, finish)) return SFT_OK;
    return sink->vtable->finish(sink->ctx, err);
}

void sft_sink_abandon(const sft_sink *sink) {
    if (sink && SFTI_CAN(sink, sft_sink_vtable, abandon)) sink->vtable->abandon(sink->ctx);
}

sft_code sft_sink_limit_mode(const sft_sink *sink, uint32_t mode, sft_error *err) {
    if (mode == 0 || !SFTI_CAN(sink, sft_sink_vtable, limit_mode)) return SFT_OK;
    return sink->vtable->limit_mode(sink->ctx, mode, err);
}

/* ── Memory ── */

void sft_buffer_free(sft_buffer *buffer) {
    if (!buffer) return;
    sft_allocator alloc = sfti_allocator(&buffer->alloc);
    sfti_release(&alloc, buffer->data, buffer->cap);
    buffer->data = NULL;
    buffer->len = 0;
    buffer->cap = 0;
}

/* Room up to `end`, and nothing unwritten in between. */
static sft_code expect_memory(void *ctx, uint64_t end, sft_error *err) {
    sft_buffer *buffer = ctx;
    if (end <= buffer->len) return SFT_OK;
    uint64_t more = end - buffer->len;
    if (!sfti_fits_size(end) || !sfti_buffer_reserve(buffer, (size_t)more))
        return sfti_fail_memory(err, end);
    return SFT_OK;
}

static sft_code write_memory(void *ctx, uint64_t offset, const void *bytes, size_t len,
                             sft_error *err) {
    sft_buffer *buffer = ctx;
    uint64_t end;
    if (len == 0) return SFT_OK;
    if (!sfti_add(offset, len, &end)) return sfti_fail_memory(err, UINT64_MAX);
    sft_code code = expect_memory(buffer, end, err);
    if (code) return code;
    if (offset > buffer->len)
        memset(buffer->data + buffer->len, 0, (size_t)offset - buffer->len);
    memcpy(buffer->data + offset, bytes, len);
    if (end > buffer->len) buffer->len = (size_t)end;
    return SFT_OK;
}

static void abandon_memory(void *ctx) {
    sft_buffer_free(ctx);
}

static const sft_sink_vtable memory_sink_vtable = {
    sizeof(sft_sink_vtable), expect_memory, write_memory, NULL, abandon_memory, NULL, NULL
};

sft_sink sft_sink_memory(sft_buffer *buffer) {
    sft_sink sink = { buffer, &memory_sink_vtable, true };
    buffer->len = 0;
    return sink;
}

/* ── Descriptor ── */

typedef struct fd_sink {
    sft_allocator alloc;
    int fd;
    uint64_t position; /* of a forward sink */
} fd_sink;

static sft_code fd_write_failed(int error, uint64_t offset, sft_error *err) {
    sft_code code = sfti_io_fail(err, SFT_IO_WRITE, error, "write");
    if (err) err->offset = offset;
    return code;
}

static sft_code write_positioned(void *ctx, uint64_t offset, const void *bytes, size_t len,
                                 sft_error *err) {
    const fd_sink *sink = ctx;
    for (size_t done = 0; done < len;) {
        size_t put = 0;
        int error = sfti_os_pwrite(sink->fd, (const char *)bytes + done, len - done,
                                   offset + done, &put);
        if (!error && put == 0) error = EIO;
        if (error) return fd_write_failed(error, offset + done, err);
        done += put;
    }
    return SFT_OK;
}

static sft_code write_forward(void *ctx, uint64_t offset, const void *bytes, size_t len,
                              sft_error *err) {
    fd_sink *sink = ctx;
    if (offset != sink->position) return out_of_order(sink->position, offset, err);
    for (size_t done = 0; done < len;) {
        size_t put = 0;
        int error = sfti_os_write(sink->fd, (const char *)bytes + done, len - done, &put);
        if (!error && put == 0) error = EIO;
        if (error) return fd_write_failed(error, sink->position, err);
        done += put;
        sink->position += put;
    }
    return SFT_OK;
}

static void abandon_fd_sink(void *ctx) {
    fd_sink *sink = ctx;
    sft_allocator alloc = sink->alloc;
    sfti_release(&alloc, sink, sizeof *sink);
}

static sft_code finish_fd_sink(void *ctx, sft_error *err) {
    (void)err;
    abandon_fd_sink(ctx);
    return SFT_OK;
}

static const sft_sink_vtable positioned_sink_vtable = {
    sizeof(sft_sink_vtable), NULL, write_positioned, finish_fd_sink, abandon_fd_sink, NULL, NULL
};

static const sft_sink_vtable forward_sink_vtable = {
    sizeof(sft_sink_vtable), NULL, write_forward, finish_fd_sink, abandon_fd_sink, NULL, NULL
};

bool sfti_fd_pass(const sft_sink *sink, uint64_t at, int from, uint64_t begin, uint64_t len,
                  uint64_t *put) {
    *put = 0;
    if (sink->vtable != &positioned_sink_vtable) return false;
    const fd_sink *s = sink->ctx;
    return sfti_os_copy_range(from, begin, s->fd, at, len, put) == 0 && *put > 0;
}

sft_code sft_sink_fd(int fd, const sft_allocator *alloc, sft_sink *out, sft_error *err) {
    os_info info;
    if (!out) return no_place(err);
    memset(out, 0, sizeof *out);
    int error = sfti_os_info_fd(fd, &info);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "look at the open file");
    if (info.kind == OS_DIR)
        return sfti_fail(err, SFT_IO_NOT_FILE, "expected a file, found a folder");
    sft_allocator a = sfti_allocator(alloc);
    fd_sink *state = sfti_take(&a, sizeof *state);
    if (!state) return sfti_fail_memory(err, sizeof *state);
    state->alloc = a;
    state->fd = fd;
    state->position = 0;
    bool seekable = info.kind == OS_FILE && !sfti_os_is_append(fd);
    sft_sink sink = { state, seekable ? &positioned_sink_vtable : &forward_sink_vtable, seekable };
    *out = sink;
    return SFT_OK;
}

/* ── Callback ── */

typedef struct callback_sink {
    sft_allocator alloc;
    sft_write_fn write;
    void *ctx;
    uint64_t position;
} callback_sink;

static sft_code write_callback(void *ctx, uint64_t offset, const void *bytes, size_t len,
                               sft_error *err) {
    callback_sink *sink = ctx;
    if (offset != sink->position) return out_of_order(sink->position, offset, err);
    if (len == 0) return SFT_OK;
    sft_code code = sink->write(sink->ctx, bytes, len, err);
    if (!code) sink->position += len;
    return code;
}

static void abandon_callback(void *ctx) {
    callback_sink *sink = ctx;
    sft_allocator alloc = sink->alloc;
    sfti_release(&alloc, sink, sizeof *sink);
}

static sft_code finish_callback(void *ctx, sft_error *err) {
    (void)err;
    abandon_callback(ctx);
    return SFT_OK;
}

static const sft_sink_vtable callback_sink_vtable = {
    sizeof(sft_sink_vtable), NULL, write_callback, finish_callback, abandon_callback, NULL, NULL
};

sft_code sft_sink_callback(sft_write_fn write, void *ctx, const sft_allocator *alloc,
                           sft_sink *out, sft_error *err) {
    if (!out) return no_place(err);
    memset(out, 0, sizeof *out);
    if (!write) return sfti_misuse(err, "expected a function to write with, found NULL");
    sft_allocator a = sfti_allocator(alloc);
    callback_sink *state = sfti_take(&a, sizeof *state);
    if (!state) return sfti_fail_memory(err, sizeof *state);
    state->alloc = a;
    state->write = write;
    state->ctx = ctx;
    state->position = 0;
    sft_sink sink = { state, &callback_sink_vtable, false };
    *out = sink;
    return SFT_OK;
}

/* ── Tee ── */

typedef struct tee_sink {
    sft_allocator alloc;
    sft_sink first, second;
    uint64_t position;
} tee_sink;

static sft_code expect_tee(void *ctx, uint64_t total, sft_error *err) {
    tee_sink *tee = ctx;
    sft_code code = sft_sink_expect(&tee->first, total, err);
    return code ? code : sft_sink_expect(&tee->second, total, err);
}

static sft_code write_tee(void *ctx, uint64_t offset, const void *bytes, size_t len,
                          sft_error *err) {
    tee_sink *tee = ctx;
    if (offset != tee->position) return out_of_order(tee->position, offset, err);
    sft_code code = sft_sink_write(&tee->first, offset, bytes, len, err);
    if (code) return code;
    code = sft_sink_write(&tee->second, offset, bytes, len, err);
    if (!code) tee->position += len;
    return code;
}

static sft_code finish_tee(void *ctx, sft_error *err) {
    tee_sink *tee = ctx;
    sft_allocator alloc = tee->alloc;
    sft_code code = sft_sink_finish(&tee->first, err);
    if (!code) {
        code = sft_sink_finish(&tee->second, err);
    } else {
        sft_sink_abandon(&tee->second);
    }
    sfti_release(&alloc, tee, sizeof *tee);
    return code;
}

static void abandon_tee(void *ctx) {
    tee_sink *tee = ctx;
    sft_allocator alloc = tee->alloc;
    sft_sink_abandon(&tee->first);
    sft_sink_abandon(&tee->second);
    sfti_release(&alloc, tee, sizeof *tee);
}

static sft_code limit_tee(void *ctx, uint32_t mode, sft_error *err) {
    tee_sink *tee = ctx;
    sft_code code = sft_sink_limit_mode(&tee->first, mode, err);
    return code ? code : sft_sink_limit_mode(&tee->second, mode, err);
}

static const sft_sink_vtable tee_sink_vtable = {
    sizeof(sft_sink_vtable), expect_tee, write_tee, finish_tee, abandon_tee, limit_tee, NULL
};

sft_code sft_sink_tee(sft_sink first, sft_sink second, const sft_allocator *alloc,
                      sft_sink *out, sft_error *err) {
    sft_allocator a = sfti_allocator(alloc);
    tee_sink *tee = out ? sfti_take(&a, sizeof *tee) : NULL;
    if (out) memset(out, 0, sizeof *out);
    if (!tee) {
        sft_sink_abandon(&first);
        sft_sink_abandon(&second);
        return out ? sfti_fail_memory(err, sizeof *tee) : no_place(err);
    }
    tee->alloc = a;
    tee->first = first;
    tee->second = second;
    tee->position = 0;
    sft_sink sink = { tee, &tee_sink_vtable, false };
    *out = sink;
    return SFT_OK;
}
