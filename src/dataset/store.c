/* Small conveniences over a storage, and the names out of its listings. */
#include "base/checked.h"
#include "base/endian.h"
#include "base/error.h"
#include "base/sink.h"
#include "bytes/source.h"
#include "dataset/dataset.h"
#include "safetensors_hash.h"

#include <string.h>

#define DIGEST_BYTES ((size_t)1 << 20)

sft_code sfti_ds_storage_check(const sft_storage *storage, sft_error *err) {
    if (storage && storage->vtable && sfti_can(storage, remove) && sfti_can(storage, create) &&
        sfti_can(storage, open) && sfti_can(storage, list))
        return SFT_OK;
    return sfti_misuse(err, "expected a storage with create, open, list and remove, found %s",
                       storage ? "one without" : "NULL");
}

sft_code sfti_ds_overflow(const char *what, sft_error *err) {
    return sfti_fail(err, SFT_SIZE_OVERFLOW, "expected %s within 64 bits, found more", what);
}

sft_code sfti_ds_header_bytes(const sft_source *source, uint64_t *out, sft_error *err) {
    char bytes[8];
    sft_code code = sfti_source_all(source, 0, bytes, sizeof bytes, err);
    if (!code) *out = sfti_get_u64(bytes);
    return code;
}

sft_code sfti_ds_digest(sft_span bytes, const sft_allocator *alloc, char out[65],
                        sft_error *err) {
    sft_hasher *hasher = NULL;
    sft_hashes hashes;
    sft_code code = sft_hasher_new(SFT_HASH_BIT(SFT_HASH_SHA256), alloc, &hasher, err);
    if (code) return code;
    if (bytes.len) sft_hasher_update(hasher, bytes.data, bytes.len);
    sft_hasher_result(hasher, &hashes);
    memcpy(out, sft_hashes_get(&hashes, SFT_HASH_SHA256), 65);
    sft_hasher_free(hasher);
    return SFT_OK;
}

sft_code sfti_ds_digest_file(const sft_storage *storage, const char *name,
                             const sft_allocator *alloc, sfti_ds_tick_fn tick, void *ctx,
                             char out[65], sft_error *err) {
    sft_source source;
    sft_hashes hashes;
    sft_hasher *hasher = NULL;
    char *buffer = sfti_take(alloc, DIGEST_BYTES);
    if (!buffer) return sfti_fail_memory(err, DIGEST_BYTES);
    sft_code code = sfti_call(storage, open, name, &source, err);
    if (!code) {
        code = sft_hasher_new(SFT_HASH_BIT(SFT_HASH_SHA256), alloc, &hasher, err);
        size_t want;
        for (uint64_t at = 0; !code && at < source.size; at += want) {
            uint64_t left = source.size - at;
            want = left < DIGEST_BYTES ? (size_t)left : DIGEST_BYTES;
            code = sfti_source_all(&source, at, buffer, want, err);
            if (!code && tick) code = tick(ctx, want, err);
            if (!code) sft_hasher_update(hasher, buffer, want);
        }
        if (!code) sft_hasher_result(hasher, &hashes);
        if (!code) memcpy(out, sft_hashes_get(&hashes, SFT_HASH_SHA256), 65);
        sft_hasher_free(hasher);
        sft_source_close(&source);
    }
    sfti_release(alloc, buffer, DIGEST_BYTES);
    return code;
}

sft_code sfti_ds_read_all(const sft_storage *storage, const char *name, uint64_t most,
                          sfti_arena *arena, sft_span *out, sft_error *err) {
    sft_source source;
    char *text = NULL;
    sft_code code = sfti_call(storage, open, name, &source, err);
    if (code) return code;
    if (source.size > most || !sfti_fits_size(source.size))
        code = sfti_fail(err, SFT_FILE_TOO_LARGE, "%s: expected at most %llu bytes, found %llu",
                         name, (unsigned long long)most, (unsigned long long)source.size);
    if (!code) {
        text = sfti_arena_take(arena, (size_t)source.size + 1);
        code = text ? sfti_source_all(&source, 0, text, (size_t)source.size, err)
                    : sfti_fail_memory(err, source.size);
    }
    if (!code) *out = (sft_span){ text, (size_t)source.size };
    sft_source_close(&source);
    return code;
}

sft_code sfti_ds_put(const sft_storage *storage, const char *name, sft_span bytes,
                     sft_error *err) {
    sft_sink sink;
    sft_code code = sfti_call(storage, create, name, true, &sink, err);
    return code ? code : sfti_sink_fill(&sink, bytes, err);
}

sft_code sfti_ds_open_shard(const sft_storage *storage, const char *name,
                            const sft_open_options *options, sft_file **out, sft_error *err) {
    sft_source source;
    sft_code code = sfti_call(storage, open, name, &source, err);
    return code ? code : sft_open_source(source, options, out, err);
}

/* ── Names out of a listing ── */

bool sfti_ds_listing_put(sfti_ds_listing *l, const char *folder, const char *name,
                         int64_t mtime_s) {
    size_t above = *folder ? strlen(folder) + 1 : 0, len = strlen(name) + 1;
    sfti_ds_listed *one = sfti_arena_take(&l->arena, sizeof *one + above + len);
    if (!one) {
        l->full = true; /* from now on, even if the storage goes on */
        return false;
    }
    one->next = NULL;
    one->mtime_s = mtime_s;
    if (above) {
        memcpy(one->name, folder, above - 1);
        one->name[above - 1] = '/';
    }
    memcpy(one->name + above, name, len);
    if (l->last) l->last->next = one;
    else l->first = one;
    l->last = one;
    return true;
}

sft_code sfti_ds_listing_fill(sfti_ds_listing *l, const sft_storage *storage, const char *folder,
                              sft_stored_fn each, void *ctx, sft_error *err) {
    sft_code code = sfti_call(storage, list, folder, each, ctx, err);
    return code || !l->full ? code : sfti_fail_memory(err, sizeof(sfti_ds_listed));
}
