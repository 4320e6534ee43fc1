#include "base/error.h"
#include "os/io.h"
#include "set/set.h"

sft_allocator sfti_set_allocator(const sft_allocator *alloc) {
    sft_allocator system = { os_resize, NULL };
    return alloc && alloc->resize ? *alloc : system;
}

sft_code sfti_set_names(sfti_names *names, size_t count, sfti_name_fn name, const void *ctx,
                        sfti_arena *arena, sft_error *err) {
    uint64_t seed[2];
    sfti_seed_draw(names, seed);
    if (sfti_names_begin(names, count, seed, name, ctx, arena)) return SFT_OK;
    return sfti_fail_memory(err, count * sizeof(sfti_slot));
}

uint32_t sfti_set_names_put(sfti_names *names, sft_span name, uint32_t entry) {
    return sfti_names_put(names, name, sfti_names_hash(name, names->seed), entry);
}
