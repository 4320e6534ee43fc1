/* One new shard of a compaction. Tests: test_dataset_compact.c. */
#include "base/error.h"
#include "base/job.h"
#include "dataset/maintain/compact.h"

#include <stdio.h>
#include <string.h>

typedef struct intact_read {
    const sft_job *job;
    uint64_t done;
} intact_read;

static sft_code intact_tick(void *ctx, uint64_t bytes, sft_error *err) {
    intact_read *r = ctx;
    r->done += bytes;
    return sfti_job_tick(r->job, r->done, SFT_SIZE_UNKNOWN, err);
}

sft_code sfti_compact_intact(const compaction *c, const char *name, const char *sha256) {
    intact_read read = { .job = c->job };
    char found[65];
    sft_code code = sha256 ? sfti_ds_digest_file(c->storage, name, &c->alloc, intact_tick, &read,
                                                 found, c->err)
                           : SFT_OK;
    if (code || !sha256 || strcmp(found, sha256) == 0) return code;
    return sfti_fail(c->err, SFT_DATASET_SHARD,
                     "%s: expected the digest %s by the manifest, found %s: the file is damaged",
                     name, sha256, found);
}

sft_code sfti_compact_save(compaction *c, const sft_part *parts, size_t count, const char *mode,
                           uint64_t samples, uint64_t valid, sft_span order, const char *stored,
                           sfti_shard_sum *sum) {
    char number[24], whole[24];
    sft_sink sink;
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)samples);
    (void)snprintf(whole, sizeof whole, "%llu", (unsigned long long)valid);
    sft_pair metadata[5] = {
        { sft_span_cstr(SFTI_DATASET_MARK), sft_span_cstr("1") },
        { sft_span_cstr("mode"), sft_span_cstr(mode) },
        { sft_span_cstr("samples"), sft_span_cstr(number) },
    };
    size_t pairs = 3;
    if (samples != valid)
        metadata[pairs++] = (sft_pair){ sft_span_cstr("valid_samples"), sft_span_cstr(whole) };
    if (order.len > 0) metadata[pairs++] = (sft_pair){ sft_span_cstr(SFTI_DATASET_ORDER), order };
    sft_code code = sfti_call(c->storage, create, stored, false, &sink, c->err);
    if (!code) code = sfti_sum_sink(sink, sum, NULL, c->job->threads, &c->alloc, &sink, c->err);
    return code ? code : sft_save_parts(parts, count, metadata, pairs, NULL, sink, c->job, c->err);
}

sft_code sfti_compact_name(compaction *c, const sft_dataset_shard *first, char **name,
                           char stored[SFTI_STORED_NAME]) {
    uint64_t file = 0, shard = 0;
    if (!sfti_ds_shard_parse(sft_span_cstr(first->name), &file, &shard))
        return sfti_fail(c->err, SFT_MANIFEST_TYPE,
                         "expected names of shards as docs/dataset.md defines them, found %s",
                         first->name);
    *name = sfti_arena_take(&c->arena, SFTI_DATASET_NAME);
    if (!*name) return sfti_fail_memory(c->err, SFTI_DATASET_NAME);
    sfti_ds_shard_name(file, shard, c->uuid, *name);
    sfti_ds_stored_name(c->folder, *name, stored);
    return SFT_OK;
}

sft_code sfti_compact_facts(compaction *c, char *name, size_t tensors, uint64_t samples,
                            uint64_t valid, const sfti_shard_sum *sum) {
    char *digest = sfti_arena_take(&c->arena, 65);
    if (!digest) return sfti_fail_memory(c->err, 65);
    memcpy(digest, sum->sha256, 65);
    sfti_ds_shard *to = &c->shards[c->count++];
    to->known = true;
    to->facts = (sft_dataset_shard){ name, sum->bytes, samples, valid, 0, tensors, 0, digest, 0 };
    return SFT_OK;
}
