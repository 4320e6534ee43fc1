/* What lies beside a model and says how its tensors are read. Tests: tests/cli/convert/beside.txt,
 * tests/cli/dup/adapters.txt, tests/cli/dup/quantised.txt. */
#include "support/beside.h"

#include "keys/digest_keys.h"
#include "quant/beside.h"
#include "support/adapters.h"

#include <string.h>

sft_code cli_digest_beside(cli *c, const char *model, const sft_set *set,
                           char hex[SFT_HASH_TEXT_SIZE], sft_error *err) {
    sft_buffer text = { .alloc = c->alloc };
    sfti_arena arena = { .alloc = c->alloc };
    sft_span declared = { NULL, 0 };
    sft_hasher *hasher = NULL;
    sft_hashes hashes;
    hex[0] = '\0';
    sft_code code = cli_read_adapter_config(c, model, &text, err);
    if (!code && set && sfti_declared_may(set))
        code = sfti_declared_beside(model, c->open.files, &arena, &declared, err);
    if (!code && text.len + declared.len > 0)
        code = sft_hasher_new(SFT_HASH_BIT(SFT_HASH_SHA256), &c->alloc, &hasher, err);
    if (hasher) {
        sft_hasher_update(hasher, text.data, text.len);
        sft_hasher_update(hasher, declared.data, declared.len);
        sft_hasher_result(hasher, &hashes);
        memcpy(hex, sft_hashes_get(&hashes, SFT_HASH_SHA256), 65);
    }
    sft_hasher_free(hasher);
    sft_buffer_free(&text);
    sfti_arena_free(&arena);
    return code;
}

static sft_code check_all(cli *c, const char *const *models, size_t count, const char *to,
                          sft_error *err) {
    sfti_arena arena = { .alloc = c->alloc };
    sft_span there = { NULL, 0 }, own;
    sft_code code = to ? sfti_declared_beside(to, c->open.files, &arena, &there, err) : SFT_OK;
    for (size_t i = 0; !code && i < count; i++) {
        code = sfti_declared_beside(models[i], c->open.files, &arena, &own, err);
        bool other = !code && !sft_span_equal(own, there);
        if (other && there.len == 0) {
            c->bare = models[i];
        } else if (other && c->set.force) {
            c->forced = to;
            c->forced_by = SFTI_QUANTISER_KEY;
        } else if (other)
            code = sfti_fail(err, SFT_BAD_ARGUMENT, "expected beside a new file what declares the "
                             "quantised layers of %s, or nothing, found a quantization_config of "
                             "others, by which they would be read: write to another folder, "
                             "or give --force",
                             models[i]);
    }
    sfti_arena_free(&arena);
    return code;
}

sft_code cli_check_quantiser(cli *c, const cli_parts *parts, const char *to, sft_error *err) {
    bool may = false;
    for (size_t i = 0; i < parts->count; i++)
        may |= sfti_may_hold_codes(parts->parts[i].spec.dtype);
    for (size_t i = 0; i < parts->set_count && !parts->parts; i++)
        may |= sfti_declared_may(parts->sets[i]);
    return may ? check_all(c, parts->opened, parts->set_count, to, err) : SFT_OK;
}

sft_code cli_check_file_quantiser(cli *c, const sft_file *file, const char *path, const char *to,
                                  sft_error *err) {
    for (size_t i = 0; i < sft_file_tensor_count(file); i++)
        if (sfti_may_hold_codes(sft_file_tensor_at(file, i)->dtype))
            return check_all(c, &path, 1, to, err);
    return SFT_OK;
}

sft_code cli_check_moved_quantiser(cli *c, const char *path, const char *to, sft_error *err) {
    sft_set_options options = cli_set_options(c);
    sft_set *set = NULL;
    sft_code code = check_all(c, &path, 1, to, err);
    if (code != SFT_BAD_ARGUMENT && !c->bare) return code;
    if (sft_set_open(path, &options, &set, NULL) || !sfti_declared_may(set))
        code = SFT_OK, c->bare = NULL;
    sft_set_close(set);
    return code;
}
