#include "base/error.h"
#include "dataset/shard_writer.h"
#include "safetensors_hash.h"

#include <string.h>

#define SINK_ROOM ((size_t)1 << 20)   /* gathered */
#define SINK_LARGE ((size_t)256 << 10) /* is forwarded as it is */

/* ── Finishing later ── */

void sfti_shard_late_abandon(shard_late *late) {
    for (size_t i = 0; i < late->count; i++) sft_sink_abandon(&late->sink[i]);
    late->count = 0;
}

sft_code sfti_shard_late_finish(shard_late *late, size_t most, sft_error *err) {
    while (late->count > most) {
        sft_sink oldest = late->sink[0];
        late->count--;
        memmove(late->sink, late->sink + 1, late->count * sizeof oldest);
        sft_code code = sft_sink_finish(&oldest, err);
        if (code == SFT_OK) continue;
        sfti_shard_late_abandon(late);
        return code;
    }
    return SFT_OK;
}

static sft_code late_put(shard_late *late, sft_sink sink, sft_error *err) {
    if (late->most == 0) return sft_sink_finish(&sink, err);
    sft_code code = sfti_shard_late_finish(late, late->most - 1, err);
    if (code == SFT_OK) late->sink[late->count++] = sink;
    else sft_sink_abandon(&sink);
    return code;
}

/* ── The sink ── */

typedef struct hash_sink {
    sft_allocator alloc;
    sft_sink inner;
    shard_late *late;
    sft_hasher *hasher;
    char *digest;
    uint64_t at; /* bytes forwarded */
    size_t used;
    char room[SINK_ROOM];
} hash_sink;

/* Piece by piece, so that what is hashed is still at hand when it is written: a second thread
 * that hashes beside is slower. */
static sft_code hash_forward(hash_sink *s, const char *bytes, size_t len, sft_error *err) {
    sft_code code = SFT_OK;
    for (size_t at = 0; code == SFT_OK && at < len;) {
        size_t some = len - at < SINK_LARGE ? len - at : SINK_LARGE;
        sft_hasher_update(s->hasher, bytes + at, some);
        code = sft_sink_write(&s->inner, s->at, bytes + at, some, err);
        at += some;
        s->at += some;
    }
    return code;
}

static sft_code hash_flush(hash_sink *s, sft_error *err) {
    size_t len = s->used;
    s->used = 0;
    return len ? hash_forward(s, s->room, len, err) : SFT_OK;
}

static sft_code hash_write(void *ctx, uint64_t offset, const void *bytes, size_t len,
                           sft_error *err) {
    hash_sink *s = ctx;
    sft_code code = SFT_OK;
    (void)offset; /* the next byte: it cannot seek */
    if (len > SINK_ROOM - s->used || len >= SINK_LARGE) code = hash_flush(s, err);
    if (code) return code;
    if (len >= SINK_LARGE) return hash_forward(s, bytes, len, err);
    if (len) memcpy(s->room + s->used, bytes, len);
    s->used += len;
    return SFT_OK;
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
    memcpy(s->digest, sft_hashes_get(&hashes, SFT_HASH_SHA256), 65);
    code = late_put(s->late, s->inner, err);
    hash_free(s);
    return code;
}

static const sft_sink_vtable hash_sink_vtable = {
    sizeof(sft_sink_vtable), hash_expect, hash_write, hash_finish, hash_abandon
};

sft_code sfti_shard_sink(sft_sink inner, char *digest, shard_late *late,
                         const sft_allocator *alloc, sft_sink *out, sft_error *err) {
    hash_sink *s = sfti_take(alloc, sizeof *s);
    sft_code code = s ? SFT_OK : sfti_fail_memory(err, sizeof *s);
    if (s) {
        memset(s, 0, offsetof(hash_sink, room));
        s->alloc = *alloc;
        s->inner = inner;
        s->digest = digest;
        s->late = late;
        code = sft_hasher_new(SFT_HASH_BIT(SFT_HASH_SHA256), alloc, &s->hasher, err);
    }
    if (code == SFT_OK) {
        *out = (sft_sink){ s, &hash_sink_vtable, false };
        return SFT_OK;
    }
    sft_sink_abandon(&inner);
    sfti_release(alloc, s, sizeof *s);
    return code;
}
