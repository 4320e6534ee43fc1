/* List the tensors of a file that comes through a pipe: only its header is read.
 *     head -c 100000 model.safetensors | example_pipe */
#include <safetensors.h>
#include <stdio.h>

int main(void) {
    sft_file *file;
    sft_error err = SFT_ERROR_INIT;
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    options.header_only = true;
    if (sft_open_fd(0, &options, &file, &err) != SFT_OK) {
        char text[1024];
        sft_error_text(&err, "standard input", text, sizeof text);
        fprintf(stderr, "%s\n", text);
        return 1;
    }
    for (size_t i = 0; i < sft_file_tensor_count(file); i++) {
        const sft_tensor *t = sft_file_tensor_at(file, i);
        printf(SFT_FMT "\t%s\t[", SFT_ARG(t->name), sft_dtype_describe(t->dtype)->name);
        for (uint32_t d = 0; d < t->rank; d++)
            printf("%s%llu", d > 0 ? "," : "", (unsigned long long)t->shape[d]);
        printf("]\t%llu\n", (unsigned long long)sft_tensor_bytes(t));
    }
    printf("%s\n", sft_file_complete(file) ? "all data is there" : "data not looked at");
    sft_close(file);
    return 0;
}
