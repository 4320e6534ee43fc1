/* An import as a set: the file that saving would write. */
#include "base/options.h"
#include "formats/parts/state.h"
#include "set/image.h"

static void close_owner(void *owner) { sft_import_close(owner); }

static uint32_t mode_of_owner(const void *owner) { return sfti_import_mode(owner); }

/* Values of blocks, for what computes with them. */
static sft_code exact_values(sft_import *import, const sft_source ***out) {
    size_t count = import->parts.count;
    const sft_source **values = sfti_arena_array(&import->arena, count, sizeof *values);
    sft_code code = values ? SFT_OK : sfti_fail_memory(import->err, count * sizeof *values);
    for (size_t i = 0; !code && i < count; i++) {
        const sfti_item *item = &import->items.at[import->item_of[i]];
        const sft_part *part = &import->parts.at[i];
        values[i] = NULL;
        if (item->codec && part->spec.dtype != SFT_F32 && part->source != item->source)
            code = sfti_codec_source(import, item, SFT_F32, &values[i]);
    }
    *out = values;
    return code;
}

sft_code sft_import_set(sft_import *import, const char *path, sft_set **out, sft_error *err) {
    sft_plan_options plan = SFT_PLAN_OPTIONS_INIT;
    const sft_source **values;
    plan.alloc = &import->budget.own;
    *out = NULL;
    import->err = err;
    sft_code code = exact_values(import, &values);
    import->err = NULL;
    if (code) {
        sft_import_close(import);
        return code;
    }
    sfti_image_of of = { .parts = import->parts.at, .count = import->parts.count,
                         .values = values,
                         .metadata = import->metadata.at,
                         .metadata_count = import->metadata.count, .plan = &plan,
                         .arena = &import->arena, .owner = import, .close = close_owner,
                         .mode = mode_of_owner, .input_bytes = import->input_bytes };
    const sft_import_left *left;
    for (size_t i = 0; (left = sft_import_left_at(import, i)) != NULL; i++)
        of.is_partial |= left->reason == SFT_IMPORT_LEFT_BRANCH
                      || left->reason == SFT_IMPORT_LEFT_SKIPPED;
    return sfti_image_set(&of, path, out, err);
}

sft_code sft_import_open_set(const char *path, const sft_open_options *options, sft_set **out,
                             sft_error *err) {
    sft_import_options own = SFT_IMPORT_OPTIONS_INIT;
    sft_open_options open;
    sft_import *import;
    *out = NULL;
    sft_code code = sfti_take_open(options, &open, err);
    own.alloc = open.alloc;
    own.files = open.files;
    if (!code) code = sft_import_open(path, &own, &import, err);
    return code ? code : sft_import_set(import, path, out, err);
}
