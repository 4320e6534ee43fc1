/* Digests of bytes that a caller feeds. Tests: test_hash_sums.c. */
#include "base/error.h"
#include "base/mem.h"
#include "hash/hash.h"

#include <string.h>

struct sft_hasher {
    sft_allocator alloc;
    sfti_hash_impl impl;
    sfti_pass pass;
    sfti_sha_queue queue;
};

sft_code sft_hasher_new(uint32_t algos, const sft_allocator *alloc, sft_hasher **out,
                        sft_error *err) {
    sft_allocator own = sfti_allocator(alloc);
    sft_hasher *hasher = NULL;
    *out = NULL;
    if (algos & ~SFT_HASH_ALL)
        return sfti_misuse(err, "expected bits of algorithms, found 0x%x", (unsigned)algos);
    hasher = sfti_take(&own, sizeof *hasher);
    if (!hasher) return sfti_fail_memory(err, sizeof *hasher);
    hasher->alloc = own;
    hasher->queue.impl = &hasher->impl;
    hasher->queue.count = 0;
    sfti_hash_impl_fill(&hasher->impl, 0);
    sft_code code = sfti_pass_begin(&hasher->pass, &hasher->impl, algos, SFT_SIZE_UNKNOWN,
                                       NULL, NULL, &own, err);
    if (!code) *out = hasher;
    else sft_hasher_free(hasher);
    return code;
}

void sft_hasher_update(sft_hasher *hasher, const void *bytes, size_t len) {
    if (len == 0) return;
    sfti_pass_feed(&hasher->pass, &hasher->queue, hasher->pass.at, bytes, len);
    sfti_queue_run(&hasher->queue);
}

void sft_hasher_result(const sft_hasher *hasher, sft_hashes *out) {
    memset(out, 0, sizeof *out);
    out->asked = hasher->pass.algos;
    sfti_pass_result(&hasher->pass, out);
}

void sft_hasher_free(sft_hasher *hasher) {
    if (!hasher) return;
    sft_allocator alloc = hasher->alloc;
    sfti_release(&alloc, hasher, sizeof *hasher);
}
