/* Tell what a LoRA holds, and write a model with it merged in at a strength; a few MiB of memory
 * beside one layer's matrices, whatever the size of the model.
 *     example_adapter MODEL ADAPTER STRENGTH OUT */
#include <safetensors.h>
#include <safetensors_adapter.h>
#include <safetensors_set.h>
#include <stdio.h>
#include <stdlib.h>

static sft_code tell(const sft_set *set, sft_error *err) {
    sft_adapter *adapter;
    sft_code code = sft_adapter_open(set, NULL, &adapter, err);
    if (code != SFT_OK) return code;
    for (size_t i = 0; i < sft_adapter_module_count(adapter); i++) {
        const sft_adapter_module *m = sft_adapter_module_at(adapter, i);
        printf("%.*s: %s, rank %llu, scale %g\n", (int)m->name.len, m->name.data, m->method,
               (unsigned long long)m->rank, m->scale);
    }
    sft_adapter_close(adapter);
    return SFT_OK;
}

static sft_code merge(const sft_set *model, const sft_set *set, double strength, const char *out,
                      sft_error *err) {
    sft_adapter_use use = SFT_ADAPTER_USE_INIT;
    sft_adapter_merge *merge;
    sft_sink sink;
    sft_code code = sft_adapter_merge_new(model, NULL, &merge, err);
    if (code != SFT_OK) return code;
    use.strength = strength;
    code = sft_adapter_merge_add(merge, set, &use, err);
    for (size_t i = 0; i < sft_adapter_merge_unmatched(merge, 0); i++) {
        sft_span name = sft_adapter_merge_unmatched_at(merge, 0, i);
        printf("not in the model: %.*s\n", (int)name.len, name.data);
    }
    if (code == SFT_OK) code = sft_adapter_merge_plan(merge, err);
    if (code == SFT_OK) code = sft_sink_path(out, NULL, &sink, err);
    if (code == SFT_OK) code = sft_adapter_merge_save(merge, sink, NULL, err);
    if (code == SFT_OK) printf("%zu tensors changed\n", sft_adapter_merge_changed(merge));
    sft_adapter_merge_free(merge);
    return code;
}

int main(int argc, char **argv) {
    char text[1024];
    sft_error err = SFT_ERROR_INIT;
    sft_set *model = NULL, *adapter = NULL;
    const char *about = argc == 5 ? argv[1] : NULL;
    if (argc != 5) return 2;
    sft_code code = sft_set_open(argv[1], NULL, &model, &err);
    if (code == SFT_OK) {
        about = argv[2];
        code = sft_set_open(argv[2], NULL, &adapter, &err);
    }
    if (code == SFT_OK) code = tell(adapter, &err);
    if (code == SFT_OK) code = merge(model, adapter, strtod(argv[3], NULL), argv[4], &err);
    sft_set_close(adapter);
    sft_set_close(model);
    if (code == SFT_OK) return 0;
    sft_error_text(&err, about, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return 1;
}
