/* A sink that hashes what it forwards, and may be finished later. */
#include "base/error.h"
#include "dataset/write/sink.h"
#include "os/os.h"
#include "safetensors_hash.h"
#include "safetensors_io.h"

#include <string.h>

/* Written at once, at multiples of itself: the page cache then holds the file in large pages,
 * which readers map with a seventh of the page faults. For 2 MiB at once, the system may have to
 * move memory about first, which costs more than it gains. */
#define SINK_PIECE ((size_t)512 << 10)
#define SINK_BESIDE (2 * SINK_PIECE) /* worth a thread */

/* ── Finishing later ── */

void sfti_finish_queue_abandon(sfti_finish_queue *queue) {
    for (size_t i = 0; i < queue->count; i++) sft_sink_abandon(&queue->sink[i]);
    queue->count = 0;
}

sft_code sfti_finish_queue_run(sfti_finish_queue *queue, size_t most, sft_error *err) {
    while (queue->count > most) {
        sft_sink oldest = queue->sink[0];
        queue->count--;
        memmove(queue->sink, queue->sink + 1, queue->count * sizeof oldest);
        sft_code code = sft_sink_finish(&oldest, err);
        if (!code) continue;
        sfti_finish_queue_abandon(queue);
        return code;
    }
    return SFT_OK;
}

/* ── The sink ── */

typedef struct hash_sink {
    sft_allocator alloc;
    sft_sink inner;
    sfti_finish_queue *queue;
    sft_hasher *hasher;
    sfti_shard_sum *sum;
    uint64_t at; /* bytes forwarded: a multiple of SINK_PIECE until the end */
    size_t used;
    uint32_t threads;
    const char *beside; /* what the second thread hashes */
    size_t beside_len;
    char buffer[SINK_PIECE];
} hash_sink;

static sft_code hash_put(hash_sink *s, const char *bytes, size_t len, sft_error *err) {
    sft_code code = sft_sink_write(&s->inner, s->at, bytes, len, err);
    s->at += len;
    return code;
}

/* Hashed bytes are still in the processor's cache when written. */
static sft_code hash_forward(hash_sink *s, const char *bytes, size_t len, sft_error *err) {
    sft_hasher_update(s->hasher, bytes, len);
    return hash_put(s, bytes, len, err);
}

/* ── Hashing on a second thread ── */

static void hash_beside(void *ctx) {
    const hash_sink *s = ctx;
    sft_hasher_update(s->hasher, s->beside, s->beside_len);
}

/* Whole pieces, hashed by a thread while they are written. It ends with the call. False where
 * there is none: nothing is done. */
static bool hash_together(hash_sink *s, const char *bytes, size_t len, sft_code *code,
                          sft_error *err) {
    os_thread thread;
    if (s->threads < 2 || len < SINK_BESIDE) return false;
    s->beside = bytes;
    s->beside_len = len;
    if (sfti_os_thread_start(&thread, hash_beside, s)) return false;
    for (size_t at = 0; !*code && at < len; at += SINK_PIECE)
        *code = hash_put(s, bytes + at, SINK_PIECE, err);
    sfti_os_thread_join(&thread);
    return true;
}

static sft_code hash_flush(hash_sink *s, sft_error *err) {
    size_t len = s->used;
    s->used = 0;
    return len ? hash_forward(s, s->buffer, len, err) : SFT_OK;
}

static sft_code hash_write(void *ctx, uint64_t offset, const void *bytes, size_t len,
                           sft_error *err) {
    hash_sink *s = ctx;
    sft_code code = SFT_OK;
    (void)offset; /* always the next byte: the sink cannot seek */
    for (const char *next = bytes; !code && len > 0;) {
        size_t some = SINK_PIECE - s->used < len ? SINK_PIECE - s->used : len;
        size_t whole = s->used ? 0 : len - len % SINK_PIECE;
        if (hash_together(s, next, whole, &code, err)) {
            some = whole;
        } else if (some == SINK_PIECE) {
            code = hash_forward(s, next, some, err);
        } else {
            memcpy(s->buffer + s->used, next, some);
            s->used += some;
            if (s->used == SINK_PIECE) code = hash_flush(s, err);
        }
        next += some;
        len -= some;
    }
    return code;
}

static sft_code hash_expect(void *ctx, uint64_t total, sft_error *err) {
    hash_sink *s = ctx;
    return sft_sink_expect(&s->inner, total, err);
}

static void hash_free(hash_sink *s) {
    sft_allocator alloc = s->alloc;
    sft_hasher_free(s->hasher);
    sfti_release(&alloc, s, sizeof *s);
}

static void hash_abandon(void *ctx) {
    hash_sink *s = ctx;
    sft_sink_abandon(&s->inner);
    hash_free(s);
}

static sft_code hash_finish(void *ctx, sft_error *err) {
    hash_sink *s = ctx;
    sft_hashes hashes;
    sft_code code = hash_flush(s, err);
    if (code) {
        hash_abandon(s);
        return code;
    }
    sft_hasher_result(s->hasher, &hashes);
    memcpy(s->sum->sha256, sft_hashes_get(&hashes, SFT_HASH_SHA256), 65);
    s->sum->bytes = s->at;
    sfti_finish_queue *queue = s->queue;
    if (queue && queue->most) {
        code = sfti_finish_queue_run(queue, queue->most - 1, err);
        if (!code) queue->sink[queue->count++] = s->inner;
        else sft_sink_abandon(&s->inner);
    } else {
        code = sft_sink_finish(&s->inner, err);
    }
    hash_free(s);
    return code;
}

static sft_code hash_limit(void *ctx, uint32_t mode, sft_error *err) {
    hash_sink *s = ctx;
    return sft_sink_limit_mode(&s->inner, mode, err);
}

static const sft_sink_vtable hash_sink_vtable = {
    sizeof(sft_sink_vtable), hash_expect, hash_write, hash_finish, hash_abandon, hash_limit, NULL
};

sft_code sfti_sum_sink(sft_sink inner, sfti_shard_sum *sum, sfti_finish_queue *queue,
                       uint32_t threads, const sft_allocator *alloc, sft_sink *out,
                       sft_error *err) {
    hash_sink *s = sfti_take(alloc, sizeof *s);
    sft_code code = s ? SFT_OK : sfti_fail_memory(err, sizeof *s);
    if (s) {
        memset(s, 0, offsetof(hash_sink, buffer));
        s->alloc = *alloc;
        s->inner = inner;
        s->sum = sum;
        s->queue = queue;
        s->threads = threads ? threads : sfti_os_cpu_count();
        code = sft_hasher_new(SFT_HASH_BIT(SFT_HASH_SHA256), alloc, &s->hasher, err);
    }
    if (!code) {
        *out = (sft_sink){ s, &hash_sink_vtable, false };
        return SFT_OK;
    }
    sft_sink_abandon(&inner);
    sfti_release(alloc, s, sizeof *s);
    return code;
}
