/* Merge two models, half of each or as a share of the second one, in a few MiB of memory, and tell
 * which mixture of them the result is.
 *     example_merge A B SHARE OUT */
#include <safetensors.h>
#include <safetensors_merge.h>
#include <safetensors_set.h>
#include <stdio.h>
#include <stdlib.h>

static sft_code merge(sft_set *const *models, double share, const char *out, sft_error *err) {
    sft_merge_options options = SFT_MERGE_OPTIONS_INIT;
    char weights[2][32];
    sft_merge *merge;
    sft_sink sink;
    options.method = "linear";
    snprintf(weights[0], sizeof weights[0], "%.6f", 1 - share);
    snprintf(weights[1], sizeof weights[1], "%.6f", share);
    sft_code code = sft_merge_new(&options, &merge, err);
    for (int i = 0; code == SFT_OK && i < 2; i++)
        code = sft_merge_add(merge, models[i], NULL, weights[i], err);
    if (code == SFT_OK) code = sft_merge_plan(merge, err);
    if (code == SFT_OK) code = sft_sink_path(out, NULL, &sink, err);
    if (code == SFT_OK) code = sft_merge_save(merge, sink, NULL, err);
    if (code == SFT_OK) printf("%zu tensors merged\n", sft_merge_notes(merge)->computed);
    sft_merge_free(merge);
    return code;
}

static sft_code tell(sft_set *const *models, const char *out, sft_error *err) {
    const sft_set *both[2] = { models[0], models[1] };
    sft_mixture *mixture;
    sft_set *result;
    sft_code code = sft_set_open(out, NULL, &result, err);
    if (code != SFT_OK) return code;
    code = sft_mixture_new(result, both, 2, NULL, NULL, &mixture, NULL, err);
    sft_set_close(result);
    if (code != SFT_OK) return code;
    const sft_mixture_block *all = sft_mixture_at(mixture, sft_mixture_count(mixture) - 1);
    printf("%.3f and %.3f%s\n", all->weights[0], all->weights[1],
           all->fits ? "" : ", but for what is left");
    sft_mixture_free(mixture);
    return SFT_OK;
}

int main(int argc, char **argv) {
    char text[1024];
    sft_error err = SFT_ERROR_INIT;
    sft_set *models[2] = { NULL, NULL };
    const char *about = NULL;
    sft_code code = SFT_OK;
    if (argc != 5) return 2;
    for (int i = 0; code == SFT_OK && i < 2; i++)
        code = sft_set_open(about = argv[1 + i], NULL, &models[i], &err);
    if (code == SFT_OK) code = merge(models, strtod(argv[3], NULL), about = argv[4], &err);
    if (code == SFT_OK) code = tell(models, argv[4], &err);
    sft_set_close(models[0]);
    sft_set_close(models[1]);
    if (code == SFT_OK) return 0;
    sft_error_text(&err, about, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return 1;
}
