/* Names of files that any model may have. Tests: test_info_hub.c. */
#include "label/info.h"

#include <string.h>

/* ".fp16", "_rank4", "-00001-of-00003", "-500": what may follow a generic name. */
static sft_span without_ending(sft_span stem) {
    static const char *const endings[] = { "fp16", "fp32", "bf16", "fp8", "ema", "non_ema", "of" };
    size_t at = stem.len;
    while (at > 0 && !strchr("._-", stem.data[at - 1])) at--;
    if (at == 0) return stem;
    sft_span word = sfti_from(stem, at);
    (void)(sfti_skip(&word, "rank") || sfti_skip(&word, "steps") || sfti_skip(&word, "step")
           || sfti_skip(&word, "epoch"));
    size_t digits = 0;
    while (digits < word.len && word.data[digits] >= '0' && word.data[digits] <= '9') digits++;
    if (digits < word.len && !SFTI_ONE_OF(word, endings, sfti_same_letters)) return stem;
    return (sft_span){ stem.data, at - 1 };
}

bool sfti_generic_stem(sft_span stem) {
    static const char *const generic[] = {
        "model", "pytorch_model", "adapter_model", "diffusion_pytorch_model",
        "pytorch_lora_weights", "learned_embeds", "checkpoint", "lora", "adapters", "weights",
        "consolidated", "ip_adapter",
    };
    for (;;) {
        if (SFTI_ONE_OF(stem, generic, sfti_same_letters)) return true;
        sft_span shorter = without_ending(stem);
        if (shorter.len == stem.len) return false;
        stem = shorter;
    }
}

bool sfti_telling_stem(sft_span stem) {
    size_t letters = 0;
    for (size_t i = 0; i < stem.len; i++) letters += sfti_word_byte(stem.data[i]);
    return letters >= 3 && !sfti_generic_stem(stem);
}
