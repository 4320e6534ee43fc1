/* Shards of a manifest one by one, and the set of their names. */
#include "dataset/read/stream.h"
#include "dataset/read/places.h"

#include "base/endian.h"
#include "base/error.h"
#include "base/order.h"

#include <string.h>

/* ── Shards ── */

/* The next segment, or all of a whole manifest. */
static sft_code stream_fill(sfti_ds_stream *s, sft_error *err) {
    s->at = s->count = 0;
    if (s->m->segmented) {
        const sfti_ds_segment *segment = &s->m->segments[s->segment++];
        sfti_ds_shard *shards = NULL;
        sfti_arena_free(&s->texts);
        sfti_arena_free(&s->array);
        s->texts = (sfti_arena){ .alloc = s->texts.alloc };
        s->array = (sfti_arena){ .alloc = s->array.alloc };
        sft_code code =
            sfti_ds_segment_read(s->storage, segment, &s->texts, &s->array, &shards, err);
        s->shards = shards;
        if (!code) s->count = (size_t)segment->shards;
        return code;
    }
    s->segment = 1;
    s->shards = s->m->shards;
    s->order = sfti_arena_sorted(&s->array, s->m->shard_count, sfti_ds_by_sample, s->shards);
    if (!s->order) return sfti_fail_memory(err, s->m->shard_count * sizeof *s->order);
    s->count = s->m->shard_count;
    return SFT_OK;
}

sft_code sfti_ds_stream_next(sfti_ds_stream *s, const sft_dataset_shard **out, sft_error *err) {
    const size_t parts = s->m->segmented ? s->m->segment_count : 1;
    *out = NULL;
    while (s->at == s->count) {
        if (s->segment == parts)
            return s->m->segmented ? sfti_ds_sums_check(&s->sums, &s->m->sums, err) : SFT_OK;
        sft_code code = stream_fill(s, err);
        if (code) return code;
    }
    size_t i = s->at++;
    const sft_dataset_shard *shard = &s->shards[s->order ? s->order[i] : i].facts;
    sft_code code = SFT_OK;
    if (s->m->segmented) {
        if (shard->first_sample < s->last) return sfti_ds_order_fail(shard->name, err);
        s->last = shard->first_sample;
        code = sfti_ds_shard_check(&s->sums, shard, err);
    }
    if (!code) *out = shard;
    return code;
}

void sfti_ds_stream_close(sfti_ds_stream *s) {
    sfti_arena_free(&s->texts);
    sfti_arena_free(&s->array);
}

/* ── Names ── */

/* 32 hexadecimal digits, which dashes may separate. */
static void names_hex(const char *text, char out[16]) {
    for (size_t i = 0; i < 32; text++) {
        if (*text == '-') continue;
        unsigned digit = (unsigned)(*text > '9' ? *text - 'a' + 10 : *text - '0');
        out[i / 2] = (char)(i % 2 ? (uint8_t)out[i / 2] | digit : digit << 4);
        i++;
    }
}

/* The uuid of our own names, and FNV-1a of the numbers before it: enough to tell names apart that
 * were not made to be alike. Half of a SHA-256 of other names. */
static sft_code names_digest(const sfti_ds_names *names, const char *name, char out[16],
                             sft_error *err) {
    char digest[65];
    uint64_t file, shard, sum = UINT64_C(14695981039346656037);
    const sft_span text = sft_span_cstr(name);
    if (!sfti_ds_shard_parse(text, &file, &shard)) {
        sft_code code = sfti_ds_digest(text, &names->alloc, digest, err);
        if (!code) names_hex(digest, out);
        return code;
    }
    const size_t uuid = text.len - strlen(".safetensors") - 36;
    for (size_t i = 0; i < uuid; i++) sum = (sum ^ (uint8_t)name[i]) * UINT64_C(1099511628211);
    names_hex(name + uuid, out);
    sfti_put_u64(out, sfti_get_u64(out) ^ sum);
    return SFT_OK;
}

sft_code sfti_ds_names_add(sfti_ds_names *names, const char *name, sft_error *err) {
    if (!names->m->segmented && sfti_ds_manifest_names(names->m, name)) return SFT_OK;
    char (*all)[16] = sfti_grow(&names->alloc, names->digests, names->count, 1, &names->cap,
                                sizeof *all);
    if (!all) return sfti_fail_memory(err, sizeof *all);
    names->digests = all;
    return names_digest(names, name, all[names->count++], err);
}

sft_code sfti_ds_names_add_all(sfti_ds_names *names, const sft_storage *storage,
                               const sfti_ds_manifest *m, sft_error *err) {
    sft_code code = SFT_OK;
    if (!m->segmented) {
        for (size_t i = 0; !code && m != names->m && i < m->shard_count; i++)
            code = sfti_ds_names_add(names, m->shards[i].facts.name, err);
        return code;
    }
    sfti_ds_stream stream = { .storage = storage, .m = m, .texts = { .alloc = names->alloc },
                              .array = { .alloc = names->alloc } };
    const sft_dataset_shard *shard = NULL;
    code = sfti_ds_stream_next(&stream, &shard, err);
    while (!code && shard) {
        code = sfti_ds_names_add(names, shard->name, err);
        if (!code) code = sfti_ds_stream_next(&stream, &shard, err);
    }
    sfti_ds_stream_close(&stream);
    return code;
}

sft_code sfti_ds_names_add_columns(sfti_ds_names *names, const sft_storage *storage,
                                   const sfti_ds_manifest *m, sft_error *err) {
    sfti_arena arena = { .alloc = names->alloc };
    sfti_ds_places places = m->places;
    sft_code code = places.place ? SFT_OK : sfti_ds_places_read(storage, &arena, &places, err);
    for (size_t i = 0; !code && places.place && i < places.count; i++)
        if (places.place[i].file) code = sfti_ds_names_add(names, places.place[i].file, err);
    sfti_arena_free(&arena);
    return code;
}

static int names_order(const void *ctx, uint32_t a, uint32_t b) {
    const char (*all)[16] = ctx;
    return memcmp(all[a], all[b], 16);
}

sft_code sfti_ds_names_sort(sfti_ds_names *names, sft_error *err) {
    const size_t n = names->count;
    if (n > UINT32_MAX / 2) return sfti_fail_memory(err, SIZE_MAX);
    names->order = sfti_take(&names->alloc, 2 * n * sizeof *names->order + 1);
    if (!names->order) return sfti_fail_memory(err, 2 * n * sizeof *names->order);
    for (size_t i = 0; i < n; i++) names->order[i] = (uint32_t)i;
    sfti_sort(names->order, names->order + n, n, names_order, names->digests);
    for (size_t i = 1; i < n; i++)
        if ((!names->several || names->order[i] < names->own) &&
            names_order(names->digests, names->order[i - 1], names->order[i]) == 0)
            return sfti_fail(err, SFT_MANIFEST_TYPE,
                             "expected each shard once, found number %lu again",
                             (unsigned long)names->order[i]);
    return SFT_OK;
}

sft_code sfti_ds_names_has(const sfti_ds_names *names, const char *name, bool *has,
                           sft_error *err) {
    char digest[16];
    size_t low = 0, high = names->count;
    *has = !names->m->segmented && sfti_ds_manifest_names(names->m, name);
    if (*has || !names->count) return SFT_OK;
    sft_code code = names_digest(names, name, digest, err);
    while (!code && low < high && !*has) {
        size_t middle = low + (high - low) / 2;
        int order = memcmp(names->digests[names->order[middle]], digest, 16);
        *has = order == 0;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return code;
}

void sfti_ds_names_free(sfti_ds_names *names) {
    if (names->order)
        sfti_release(&names->alloc, names->order, 2 * names->count * sizeof *names->order + 1);
    sfti_release(&names->alloc, names->digests, names->cap * sizeof *names->digests);
    names->order = NULL;
    names->digests = NULL;
    names->count = names->cap = 0;
}
