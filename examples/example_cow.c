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

static sft_code negate(const sft_file *file, const sft_tensor *tensor, sft_error *err) {
    unsigned char *bytes;
    void *writable;
    sft_code code = sft_view_writable(file, tensor, &writable, err);
    if (code != SFT_OK) return code;
    bytes = writable;
    for (uint64_t at = 3; at < tensor->end - tensor->begin; at += 4) bytes[at] ^= 0x80;
    return SFT_OK;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    sft_error err = SFT_ERROR_INIT;
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    options.mode = SFT_MAP_COW;
    sft_file *file;
    if (sft_open(argv[1], &options, &file, &err) != SFT_OK) return raise_python(argv[1], &err);

    int status = 0;
    const sft_tensor *tensor = sft_file_find_cstr(file, argv[2]);
    if (!tensor || tensor->dtype != SFT_F32)
        status = raise_python(argv[1], (sft_error_set(&err, SFT_TENSOR_NOT_FOUND, 0,
                                                      "expected an F32 tensor of that name"),
                                        &err));
    else if (negate(file, tensor, &err) != SFT_OK)
        status = raise_python(argv[1], &err);
    const void *view;
    float value = 0;
    if (status == 0 && sft_view(file, tensor, &view, &err) == SFT_OK) {
        if (tensor->end - tensor->begin >= sizeof value) memcpy(&value, view, sizeof value);
        printf("%s[0] = %g, in this program only\n", argv[2], (double)value);
    }
    sft_close(file);
    return status;
}
