/* Names of files that any model may have. Tests: test_info_hub.c. */
#include "label/info.h"

#include <string.h>

bool sfti_generic_stem(sft_span stem) {
    static const char *const generic[] = {
        "model", "pytorch_model", "adapter_model", "diffusion_pytorch_model",
        "pytorch_lora_weights", "learned_embeds", "checkpoint", "lora", "adapters", "weights",
        "consolidated", "ip_adapter",
    };
    static const char *const endings[] = { "fp16", "fp32", "bf16", "fp8", "ema", "non_ema", "of" };
    static const char *const counted[] = { "rank", "steps", "step", "epoch" };
    while (!SFTI_ONE_OF(stem, generic, sfti_same_letters)) {
        /* ".fp16", "_rank4", "-00001-of-00003", "-500": what may follow a generic name */
        size_t at = stem.len, digits = 0;
        while (at > 0 && !strchr("._-", stem.data[at - 1])) at--;
        if (at == 0) return false;
        sft_span word = sfti_from(stem, at);
        for (size_t i = 0; i < SFTI_COUNT(counted) && word.len == stem.len - at; i++)
            (void)sfti_skip(&word, counted[i]);
        while (digits < word.len && word.data[digits] >= '0' && word.data[digits] <= '9') digits++;
        if (digits < word.len && !SFTI_ONE_OF(word, endings, sfti_same_letters)) return false;
        stem.len = at - 1;
    }
    return true;
}

bool sfti_telling_stem(sft_span stem) {
    size_t letters = 0;
    for (size_t i = 0; i < stem.len; i++) letters += sfti_word_byte(stem.data[i]);
    return letters >= 3 && !sfti_generic_stem(stem);
}
