/* Convert a model in another format, and tell what else the file holds: a pickle's calls are named,
 * never made.
 *     example_import FILE OUT */
#include <inttypes.h>
#include <safetensors_import.h>
#include <stdio.h>

static void tell(const sft_import *import) {
    const sft_import_left *left;
    const sft_import_global *global;
    printf("%s, %zu tensors\n",
           sft_import_format_describe(sft_import_format_of(import))->title,
           sft_import_tensor_count(import));
    for (size_t i = 0; (left = sft_import_left_at(import, i)) != NULL; i++)
        printf("left out: " SFT_FMT " %s\n", SFT_ARG(left->path), left->text);
    for (size_t i = 0; (global = sft_import_global_at(import, i)) != NULL; i++)
        if (global->calls > 0)
            printf("not called: " SFT_FMT "." SFT_FMT ", %" PRIu64 " times\n",
                   SFT_ARG(global->module), SFT_ARG(global->name), global->calls);
}

static sft_code save(const sft_import *import, const char *path, sft_error *err) {
    sft_sink sink;
    sft_code code = sft_sink_path(path, NULL, &sink, err);
    return code ? code : sft_import_save(import, sink, NULL, NULL, err);
}

int main(int argc, char **argv) {
    sft_error err = SFT_ERROR_INIT;
    sft_import *import;
    if (argc != 3) return 2;
    sft_code code = sft_import_open(argv[1], NULL, &import, &err);
    if (!code) tell(import);
    if (!code) code = save(import, argv[2], &err);
    if (code) {
        char text[1024];
        sft_error_text(&err, argv[1], text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    sft_import_close(import);
    return code != 0;
}
