/* What a model holds beyond its tensors. Tests: tests/cli/dup/tensors.txt, tests/cli/catalog. */
#include "support/only_tensors.h"

#include "keys/digest_keys.h"
#include "support/renamed.h"

void cli_find_left(const sft_import *import, bool *tensors, bool *more) {
    const sft_import_left *left;
    *tensors = *more = false;
    for (size_t i = 0; import && (left = sft_import_left_at(import, i)) != NULL; i++) {
        bool is_note = left->reason == SFT_IMPORT_LEFT_NOTE;
        bool is_tensors = left->reason == SFT_IMPORT_LEFT_BRANCH
                       || left->reason == SFT_IMPORT_LEFT_SKIPPED;
        *(is_tensors ? tensors : more) |= !is_note;
    }
}

bool cli_reading_at(const sft_set *set, size_t i, sft_pair *out) {
    const char *key;
    for (size_t k = 0; (key = sfti_reading_key_at(k)) != NULL; k++) {
        *out = (sft_pair){ sft_span_cstr(key), { NULL, 0 } };
        for (size_t s = 0; s < sft_set_shard_count(set); s++) {
            sft_span before = out->value;
            if (!sft_file_metadata_get(sft_set_shard_at(set, s), out->key, &out->value)
                || (before.data && sft_span_equal(before, out->value)))
                continue;
            if (i-- == 0) return true;
        }
    }
    return false;
}

bool cli_is_only_tensors(const cli *c, const sft_set *set, const sft_import *import) {
    sfti_arena arena = { .alloc = c->alloc };
    cli_aliases aliases = { .count = 0 };
    bool tensors, more;
    cli_find_left(import, &tensors, &more);
    bool known = !set || !cli_aliases_of(set, &arena, &aliases, NULL);
    sfti_arena_free(&arena);
    sft_pair reading;
    return known && !tensors && !more && aliases.count == 0
        && !(set && cli_reading_at(set, 0, &reading));
}
