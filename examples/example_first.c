#include <safetensors.h>
#include <stdio.h>
int main(int argc, char **argv) {
    sft_file *file;
    sft_error err = SFT_ERROR_INIT;
    if (argc < 2 || sft_open(argv[1], NULL, &file, &err) != SFT_OK) return puts(err.message), 1;
    for (size_t i = 0; i < sft_file_tensor_count(file); i++) {
        const sft_tensor *t = sft_file_tensor_at(file, i);
        printf("%.*s %s\n", (int)t->name.len, t->name.data, sft_dtype_describe(t->dtype)->name);
    }
    sft_close(file);
}
