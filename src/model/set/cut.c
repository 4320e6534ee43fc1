/* Cutting a list of tensors into shards. Tests: test_set.c. */
#include "base/checked.h"
#include "base/error.h"
#include "set/set.h"

uint64_t sfti_part_bytes(const sft_part *part) {
    uint64_t bytes = 0;
    const sft_spec *spec = &part->spec;
    return sft_shape_size(spec->dtype, spec->shape, spec->rank, NULL, &bytes, NULL) ? 0 : bytes;
}

/* Counts the shards when a new one begins wherever the next part would take it beyond `most` and,
 * with `shards` not 0, wherever no more parts are left than shards to come. */
static uint32_t cut_at(const sft_part *parts, size_t count, uint64_t most, uint32_t shards,
                       uint32_t *shard_of) {
    uint32_t used = 1;
    uint64_t have = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t size = sfti_part_bytes(&parts[i]);
        bool full = have > most || size > most - have;
        bool forced = shards > used && count - i <= shards - used;
        if (i > 0 && (full || forced)) {
            used++;
            have = 0;
        }
        have += size; /* the sum of all was checked */
        if (shard_of) shard_of[i] = used - 1;
    }
    return used;
}

static sft_code cut_check(const sft_part *parts, size_t count, uint64_t *total, sft_error *err) {
    *total = 0;
    if (count >= UINT32_MAX) {
        return sfti_fail(err, SFT_TOO_MANY_TENSORS,
                         "expected fewer than 4294967295 tensors, found %llu",
                         (unsigned long long)count);
    }
    for (size_t i = 0; i < count; i++) {
        const sft_spec *spec = &parts[i].spec;
        uint64_t bytes;
        sft_code code = sft_shape_size(spec->dtype, spec->shape, spec->rank, NULL, &bytes, err);
        if (!code && sfti_add(*total, bytes, total)) continue;
        if (!code) {
            code = sfti_fail(err, SFT_SIZE_OVERFLOW,
                             "expected tensors of at most 2^64 - 1 bytes, found more");
        }
        sfti_error_tensor(err, spec->name);
        return code;
    }
    return SFT_OK;
}

sft_code sft_cut_parts(const sft_part *parts, size_t count, uint64_t max_bytes,
                       uint32_t *shard_of, uint32_t *shards, sft_error *err) {
    uint64_t total;
    uint32_t asked = max_bytes > 0 ? 0 : *shards;
    sft_code code = cut_check(parts, count, &total, err);
    if (code) return code;
    if (max_bytes == 0 && (asked == 0 || asked > (count > 0 ? count : 1))) {
        return sfti_misuse(err, "expected 1 to %llu shards, one tensor or more in each, found %u",
                           (unsigned long long)(count > 0 ? count : 1), (unsigned)asked);
    }
    if (asked > 0) { /* the least that gives at most so many shards */
        uint64_t low = 0;
        max_bytes = total;
        while (low < max_bytes) {
            uint64_t middle = low + (max_bytes - low) / 2;
            if (cut_at(parts, count, middle, 0, NULL) <= asked) max_bytes = middle;
            else low = middle + 1;
        }
    }
    *shards = cut_at(parts, count, max_bytes, asked, shard_of);
    return SFT_OK;
}
