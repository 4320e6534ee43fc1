/* A program of another project: built against an installed prefix in each way there is. */
#include <safetensors.h>
#include <safetensors_set.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    static const char text[] = "\x38\0\0\0\0\0\0\0"
                               "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}  "
                               "\0\0\x80\x3f\0\0\0\x40";
    sft_file *file;
    sft_error err = SFT_ERROR_INIT;
    if (sft_open_memory(text, sizeof text - 1, NULL, &file, &err) != SFT_OK) {
        printf("%s\n", err.message);
        return 1;
    }
    const sft_tensor *w = sft_file_find_cstr(file, "w");
    float values[2] = {0, 0};
    if (!w || sft_read_into(file, w, values, sizeof values, &err) != SFT_OK) return 1;
    printf("%s %g %g\n", sft_version(), (double)values[0], (double)values[1]);
    sft_close(file);
    return strcmp(sft_version(), SFT_VERSION_STRING) != 0;
}
