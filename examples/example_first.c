#include <safetensors.h>
#include <stdio.h>

int main(int argc, char **argv) {
    sft_file *file;
    sft_error err = SFT_ERROR_INIT;
    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    if (sft_open(argv[1], NULL, &file, &err)) {
        char text[1024];
        sft_error_text(&err, argv[1], text, sizeof text);
        fprintf(stderr, "%s\n", text);
        return 1;
    }
    for (size_t i = 0; i < sft_file_tensor_count(file); i++) {
        const sft_tensor *t = sft_file_tensor_at(file, i);
        char name[256];
        sft_span_escape(t->name, name, sizeof name); /* a file may hold a terminal's commands */
        printf("%s %s\n", name, sft_dtype_describe(t->dtype)->name);
    }
    sft_close(file);
    return 0;
}
