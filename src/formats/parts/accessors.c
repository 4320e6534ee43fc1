/* What callers ask of an import that is open. */
#include "formats/parts/state.h"

sft_import_format sft_import_format_of(const sft_import *import) {
    return import->format;
}

size_t sft_import_tensor_count(const sft_import *import) {
    return import->parts.count;
}

sft_part sft_import_part(const sft_import *import, size_t i) {
    return i < import->parts.count ? import->parts.at[i] : (sft_part){ .source = NULL };
}

static const sfti_item *item_at(const sft_import *import, size_t i) {
    return i < import->parts.count ? &import->items.at[import->item_of[i]] : NULL;
}

const char *sft_import_note(const sft_import *import, size_t i) {
    const sfti_item *item = item_at(import, i);
    return item ? item->note : NULL;
}

size_t sft_import_shard(const sft_import *import, size_t i) {
    const sfti_item *item = item_at(import, i);
    return item ? item->shard : 0;
}

size_t sft_import_shard_count(const sft_import *import) {
    return import->shards;
}

size_t sfti_import_files(const sft_import *im, sft_span *names) {
    size_t count = 0, i = 0;
    for (const sfti_held *held = im->files; held; held = held->next_file) count++;
    for (const sfti_held *held = im->files; names && held; held = held->next_file)
        names[count - ++i] = held->name;
    return count;
}

size_t sft_import_metadata_count(const sft_import *import) {
    return import->metadata.count;
}

const sft_pair *sft_import_metadata(const sft_import *import) {
    return import->metadata.at;
}

size_t sft_import_branch_count(const sft_import *import) {
    return import->branches.count;
}

const sft_import_branch *sft_import_branch_at(const sft_import *import, size_t i) {
    return i < import->branches.count ? &import->branches.at[i] : NULL;
}

size_t sft_import_alias_count(const sft_import *import) {
    return import->aliases.count;
}

sft_import_alias sft_import_alias_at(const sft_import *import, size_t i) {
    return i < import->aliases.count ? import->aliases.at[i]
                                     : (sft_import_alias){ .copied = false };
}

size_t sft_import_left_count(const sft_import *import) {
    return import->left.count;
}

const sft_import_left *sft_import_left_at(const sft_import *import, size_t i) {
    return i < import->left.count ? &import->left.at[i] : NULL;
}

size_t sft_import_global_count(const sft_import *import) {
    return import->globals.count;
}

const sft_import_global *sft_import_global_at(const sft_import *import, size_t i) {
    return i < import->globals.count ? &import->globals.at[i] : NULL;
}
