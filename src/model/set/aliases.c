/* Other names of tensors. Tests: tests/cli/lora/aliases.txt, tests/cli/merge, tests/cli/add. */
#include "set/aliases.h"

#include "base/names.h"

bool sfti_set_is_alias(const sft_set *set, sft_pair pair) {
    return sfti_may_be_alias(pair) && !sft_set_find(set, pair.key, NULL)
        && sft_set_find(set, pair.value, NULL);
}

sft_span sfti_set_alias_of(const sft_set *set, sft_span name) {
    sft_pair pair = { name, { NULL, 0 } };
    for (size_t s = 0; s < sft_set_shard_count(set); s++)
        if (sft_file_metadata_get(sft_set_shard_at(set, s), name, &pair.value)
            && sfti_set_is_alias(set, pair))
            return pair.value;
    return (sft_span){ NULL, 0 };
}
