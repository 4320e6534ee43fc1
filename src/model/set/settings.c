/* Options of a set, and its tables of names. Tests: test_set.c. */
#include "base/error.h"
#include "base/options.h"
#include "os/io.h"
#include "set/set.h"

/* ── Options ── */

static SFTI_OPTIONS_TAKE(set_take, sft_set_options, SFT_SET_OPTIONS_INIT, open)

sft_code sfti_set_settle(const sft_set_options *from, sfti_set_how *out, sft_error *err) {
    sft_set_options own;
    sft_code code = set_take(from, &own, err);
    if (!code) code = sfti_take_open(own.open, &out->open, err);
    out->max_index_bytes = own.max_index_bytes ? own.max_index_bytes : SFT_MAX_INDEX_BYTES;
    out->max_shards = own.max_shards ? own.max_shards : SFT_MAX_SHARDS;
    return code;
}

sft_code sfti_set_path_fail(sft_error *err) {
    return sfti_misuse(err, "expected a path, found NULL");
}

sft_allocator sfti_set_allocator(const sft_allocator *alloc) {
    sft_allocator system = { sfti_os_resize, NULL };
    return alloc && alloc->resize ? *alloc : system;
}

/* ── Names ── */

sft_code sfti_set_names(sfti_names *names, size_t count, sfti_name_fn name, const void *ctx,
                        sfti_arena *arena, sft_error *err) {
    if (sfti_names_draw(names, count, name, ctx, arena)) return SFT_OK;
    return sfti_fail_memory(err, count * sizeof(sfti_slot));
}
