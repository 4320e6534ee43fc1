#include <safetensors.h>
#include <stdio.h>

int main(void) {
    static const char text[] = "\x38\0\0\0\0\0\0\0"
                               "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}  "
                               "\0\0\x80\x3f\0\0\0\x40";
    sft_file *file;
    if (sft_open_memory(text, sizeof text - 1, NULL, &file, NULL)) return 1;
    printf("libsafetensors %s opens %llu tensor\n", sft_version(),
           (unsigned long long)sft_file_tensor_count(file));
    sft_close(file);
    return 0;
}
