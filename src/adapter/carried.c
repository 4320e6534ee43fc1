/* Which tensors of an adapter are the base model's own: PEFT saves a layer that it wraps with what
 * was there before ("base_layer"), of embeddings and heads by default. Tests:
 * tests/cli/lora/base.txt. */
#include "adapter/adapter.h"

#include "base/error.h"
#include "os/io.h"

#include <string.h>

static const char *const ends[] = { ".base_layer.weight", ".base_layer.bias" };

/* Which of the two ends, or 2. */
static size_t end_of(sft_span name) {
    size_t k = 0;
    while (k < SFTI_COUNT(ends) && !sfti_ends(name, ends[k])) k++;
    return k;
}

sft_code sfti_lora_take_bases(sfti_lora *lora, sft_error *err) {
    size_t count = 0, left = 0;
    sfti_names names;
    for (size_t k = 0; k < lora->unread_count; k++)
        count += end_of(sft_set_tensor_at(lora->set, lora->unread[k])->name) < SFTI_COUNT(ends);
    if (count == 0) return SFT_OK;
    lora->bases = sfti_arena_array(&lora->arena, count, sizeof *lora->bases);
    if (!lora->bases) return sfti_fail_memory(err, count * sizeof *lora->bases);
    sft_code code = sfti_lora_names(lora, &lora->arena, &names, err);
    if (code) return code;
    for (size_t k = 0; k < lora->unread_count; k++) {
        sft_span name = sft_set_tensor_at(lora->set, lora->unread[k])->name;
        size_t end = end_of(name);
        uint32_t at = SFTI_NO_NAME;
        if (end < SFTI_COUNT(ends))
            at = sfti_names_find(&names, (sft_span){ name.data, name.len - strlen(ends[end]) });
        if (at == SFTI_NO_NAME) lora->unread[left++] = lora->unread[k];
        else
            lora->bases[lora->base_count++] = (sfti_lora_base){ lora->unread[k], at, end == 1 };
    }
    lora->unread_count = left;
    return SFT_OK;
}
