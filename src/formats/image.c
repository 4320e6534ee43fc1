/* An import as a set: the file that saving would write. */
#include "base/options.h"
#include "formats/parts/state.h"
#include "set/image.h"

static void close_owner(void *owner) { sft_import_close(owner); }

static uint32_t mode_of_owner(const void *owner) { return sfti_import_mode(owner); }

sft_code sft_import_set(sft_import *import, const char *path, sft_set **out, sft_error *err) {
    sft_plan_options plan = SFT_PLAN_OPTIONS_INIT;
    plan.alloc = &import->budget.own;
    sfti_image_of of = { .parts = import->parts.at, .count = import->parts.count,
                         .metadata = import->metadata.at,
                         .metadata_count = import->metadata.count, .plan = &plan,
                         .arena = &import->arena, .owner = import, .close = close_owner,
                         .mode = mode_of_owner, .input_bytes = import->input_bytes };
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
