/* Make a LoRA smaller: the best factors of at most RANK, layer by layer, and what that leaves out.
 *     example_resize ADAPTER RANK OUT */
#include <safetensors.h>
#include <safetensors_adapter.h>
#include <safetensors_set.h>
#include <stdio.h>
#include <stdlib.h>

static sft_code resize(const sft_set *set, uint64_t rank, const char *out, sft_error *err) {
    sft_adapter_factors_options options = SFT_ADAPTER_FACTORS_OPTIONS_INIT;
    sft_adapter_factors *factors;
    sft_sink sink;
    options.rank = rank;
    sft_code code = sft_adapter_factors_new(SFT_ADAPTER_RESIZE, &options, &factors, err);
    if (code != SFT_OK) return code;
    code = sft_adapter_factors_add(factors, set, NULL, err);
    if (code == SFT_OK) code = sft_adapter_factors_compute(factors, NULL, err);
    for (size_t i = 0; code == SFT_OK && i < sft_adapter_factors_count(factors); i++) {
        const sft_adapter_factor *layer = sft_adapter_factors_at(factors, i);
        printf("%.*s: rank %llu to %llu, error %.1f %%\n", (int)layer->name.len, layer->name.data,
               (unsigned long long)layer->rank_before, (unsigned long long)layer->rank,
               layer->norm > 0 ? 100 * layer->lost / layer->norm : 0);
    }
    if (code == SFT_OK) code = sft_sink_path(out, NULL, &sink, err);
    if (code == SFT_OK) code = sft_adapter_factors_save(factors, sink, NULL, err);
    sft_adapter_factors_free(factors);
    return code;
}

int main(int argc, char **argv) {
    char text[1024];
    sft_error err = SFT_ERROR_INIT;
    sft_set *set = NULL;
    if (argc != 4) return 2;
    sft_code code = sft_set_open(argv[1], NULL, &set, &err);
    if (code == SFT_OK) code = resize(set, strtoull(argv[2], NULL, 10), argv[3], &err);
    sft_set_close(set);
    if (code == SFT_OK) return 0;
    sft_error_text(&err, argv[1], text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return 1;
}
