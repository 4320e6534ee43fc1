/* Change a tensor in place without touching the file: a private writable map, as a
 * binding lends it to NumPy or PyTorch; failures become the binding's exceptions.
 *     example_cow FILE TENSOR */
#include <safetensors.h>
#include <stdio.h>
#include <string.h>

/* FileNotFoundError, PermissionError… are chosen by errno; the rest by the code and its class. */
static int raise_python(const char *path, const sft_error *err) {
    const sft_code_info *info = sft_code_describe(err->code);
    const char *name = err->code == SFT_TENSOR_NOT_FOUND ? "KeyError"
                       : info->cls == SFT_CLASS_USAGE    ? "ValueError"
                                                         : "SafetensorError";
    if (info->cls == SFT_CLASS_IO && err->os_errno != 0)
        printf("OSError(%d, %s): '%s'\n", (int)err->os_errno, info->name, path);
    else
        printf("%s: %s: %s\n", name, path, err->message);
    return 1;
}

static sft_code negate(const sft_file *file, const char *name, float *first, sft_error *err) {
    void *writable;
    const sft_tensor *tensor = sft_file_find_cstr(file, name);
    if (!tensor || tensor->dtype != SFT_F32)
        return sft_error_set(err, SFT_TENSOR_NOT_FOUND, 0, "expected an F32 tensor of that name");
    sft_code code = sft_view_writable(file, tensor, &writable, err);
    if (code) return code;
    unsigned char *bytes = writable;
    for (uint64_t at = 3; at < sft_tensor_bytes(tensor); at += 4) bytes[at] ^= 0x80;
    if (sft_tensor_bytes(tensor) >= sizeof *first) memcpy(first, bytes, sizeof *first);
    return SFT_OK;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    sft_error err = SFT_ERROR_INIT;
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    options.mode = SFT_MAP_COW;
    sft_file *file;
    float first = 0;
    if (sft_open(argv[1], &options, &file, &err)) return raise_python(argv[1], &err);
    sft_code code = negate(file, argv[2], &first, &err);
    sft_close(file);
    if (code) return raise_python(argv[1], &err);
    printf("%s[0] = %g, in this program only\n", argv[2], (double)first);
    return 0;
}
