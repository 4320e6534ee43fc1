/* What a model holds beyond its tensors. Tests: tests/cli/dup/tensors.txt, tests/cli/catalog. */
#include "support/only_tensors.h"

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

bool cli_is_only_tensors(const cli *c, const sft_set *set, const sft_import *import) {
    sfti_arena arena = { .alloc = c->alloc };
    cli_aliases aliases = { .count = 0 };
    bool tensors, more;
    cli_find_left(import, &tensors, &more);
    bool known = !set || !cli_aliases_of(set, &arena, &aliases, NULL);
    sfti_arena_free(&arena);
    return known && !tensors && !more && aliases.count == 0;
}
