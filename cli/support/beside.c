/* What declares quantised layers beside models. Tests: tests/cli/convert/beside.txt. */
#include "support/beside.h"

#include "keys/digest_keys.h"
#include "quant/beside.h"
#include "support/remote.h"

#include <errno.h>

/* advice: what can be done instead. */
static sft_code check_one(cli *c, const char *model, const char *to, const char *advice,
                          sft_error *err) {
    sfti_arena arena = { .alloc = c->alloc };
    sfti_beside is = SFTI_BESIDE_SAME;
    /* Another server is not asked for what would only be told. */
    sft_code code = sfti_beside_compare(cli_is_remote(c, model) ? NULL : model, to, c->open.files,
                                        &arena, &is, err);
    sfti_arena_free(&arena);
    if (code || is == SFTI_BESIDE_SAME) return code;
    if (is == SFTI_BESIDE_NONE) {
        c->beside.bare = model;
    } else if (c->set.force) {
        c->beside.forced = to;
        c->beside.forced_by = SFTI_QUANTISER_KEY;
    } else {
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected beside a new file what declares the "
                         "quantised layers of %s, or nothing, found a quantization_config of "
                         "others, by which they would be read: %s", model, advice);
    }
    return SFT_OK;
}

static const char elsewhere[] = "write to another folder, or give --force";

sft_code cli_check_quantiser(cli *c, const cli_parts *parts, const char *to, sft_error *err) {
    bool may = !parts->parts;
    sft_code code = SFT_OK;
    for (size_t i = 0; i < parts->count && !may; i++)
        may = sfti_may_hold_codes(parts->parts[i].spec.dtype);
    for (size_t i = 0; !code && may && i < parts->set_count; i++)
        if (sfti_declared_may(parts->sets[i]))
            code = check_one(c, parts->opened[i], to, elsewhere, err);
    return code;
}

sft_code cli_check_file_quantiser(cli *c, const sft_file *file, const char *path, const char *to,
                                  sft_error *err) {
    for (size_t i = 0; i < sft_file_tensor_count(file); i++)
        if (sfti_may_hold_codes(sft_file_tensor_at(file, i)->dtype))
            return check_one(c, path, to, elsewhere, err);
    return SFT_OK;
}

sft_code cli_check_repaired_quantiser(cli *c, const sft_repair *repair, const char *path,
                                      const char *to, sft_error *err) {
    for (size_t i = 0; i < sft_repair_tensor_count(repair); i++)
        if (sfti_may_hold_codes(sft_repair_tensor_at(repair, i).dtype))
            return check_one(c, path, to, elsewhere, err);
    return SFT_OK;
}

sft_code cli_check_moved_quantiser(cli *c, const char *path, const char *to, sft_error *err) {
    sft_set_options options = cli_set_options(c);
    sft_set *set = NULL;
    sft_code code = check_one(c, path, to, "move its whole folder, or to another one", err);
    if (code == SFT_IO_OPEN && err->os_errno == EACCES) return SFT_OK; /* nor can it go there */
    if (code != SFT_BAD_ARGUMENT && !c->beside.bare) return code;
    if (sft_set_open(path, &options, &set, NULL) || !sfti_declared_may(set))
        code = SFT_OK, c->beside.bare = NULL;
    sft_set_close(set);
    return code;
}
