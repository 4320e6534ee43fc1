/* Names of files and folders of models. Tests: test_info_hub.c, test_info_folder.c. */
#include "text/stems.h"

#include "base/json_lex.h"

sft_span sfti_stem(sft_span name) {
    if (sfti_ends_with(name, ".safetensors")) name.len -= strlen(".safetensors");
    else if (sfti_ends_with(name, ".sft")) name.len -= strlen(".sft");
    else
        for (size_t i = name.len; i > 1; i--)
            if (name.data[i - 1] == '.') return (sft_span){ name.data, i - 1 };
    return name;
}

/* Digits from i on; their count. */
static size_t digits_at(sft_span text, size_t i) {
    size_t n = 0;
    while (i + n < text.len && sfti_lex_digit(text.data[i + n])) n++;
    return n;
}

bool sfti_shard_number(sft_span name, size_t *begin, size_t *total, size_t *end) {
    for (size_t i = 0; i + 6 < name.len; i++) {
        size_t n = name.data[i] == '-' ? digits_at(name, i + 1) : 0;
        size_t of = i + 1 + n;
        if (n == 0 || name.len - of < 5 || memcmp(name.data + of, "-of-", 4) != 0) continue;
        size_t m = digits_at(name, of + 4);
        if (m == 0) continue;
        *begin = i;
        *total = of;
        *end = of + 4 + m;
        return true;
    }
    return false;
}

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

/* ── Repositories ── */

sft_span sfti_repo_of_cache(sfti_arena *arena, sft_span path) {
    static const char mark[] = "models--";
    sft_span before = { "", 0 }, name;
    while (sfti_next_piece(&path, '/', &name)) {
        if (name.len == 0) continue;
        if (sfti_is(name, "snapshots") && sfti_begins(before, mark) && before.len >= sizeof mark) {
            sft_span org = sfti_from(before, sizeof mark - 1), rest = sfti_find_letters(org, "--");
            org.len -= rest.len; /* its first double hyphen is a slash */
            rest = rest.data ? sfti_from(rest, 1) : (sft_span){ "", 0 };
            char *repo = sfti_arena_join(arena, org, rest);
            if (repo && rest.len > 0) repo[org.len] = '/';
            return (sft_span){ repo ? repo : "", repo ? org.len + rest.len : 0 };
        }
        before = name;
    }
    return (sft_span){ "", 0 };
}

sft_span sfti_repo_of_url(sft_span path, bool *inner) {
    static const char *const others[] = { "datasets", "spaces", "kernels", "buckets" };
    sft_span none = { "", 0 }, org, name;
    *inner = false;
    if (!sfti_skip(&path, "hf://")) return none;
    (void)sfti_skip(&path, "models/");
    if (!sfti_next_piece(&path, '/', &org) || !sfti_next_piece(&path, '/', &name)) return none;
    *inner = path.len > 0 && !sfti_ends(name, "@refs");
    name.len -= sfti_find_byte(name, '@').len;
    if (org.len == 0 || name.len == 0 || SFTI_ONE_OF(org, others, sfti_is)) return none;
    return (sft_span){ org.data, (size_t)(name.data + name.len - org.data) };
}
