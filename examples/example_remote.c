/* List the tensors of a model where it is, and tell how little of it was fetched.
 *     example_remote URL */
#include <inttypes.h>
#include <safetensors_remote.h>
#include <stdio.h>
#include <stdlib.h>

/* The program decides what of its environment is read: tokens, proxies. */
static const char *variable(void *ctx, const char *name) {
    (void)ctx;
    return getenv(name);
}

static void list(const sft_file *file) {
    for (size_t i = 0; i < sft_file_tensor_count(file); i++) {
        const sft_tensor *tensor = sft_file_tensor_at(file, i);
        printf(SFT_FMT " %s %" PRIu64 "\n", SFT_ARG(tensor->name),
               sft_dtype_describe(tensor->dtype)->name, sft_tensor_bytes(tensor));
    }
}

static sft_code open_and_list(sft_remote *remote, const char *url, sft_error *err) {
    sft_open_options how = SFT_OPEN_OPTIONS_INIT;
    sft_file *file = NULL;
    const char *name; /* which may be shown, as the URL may not: it can hold secrets */
    sft_code code = sft_remote_name(remote, url, &name, err);
    if (code) return code;
    how.files = sft_remote_files(remote);
    code = sft_open(name, &how, &file, err);
    if (!code) list(file);
    sft_close(file);
    return code;
}

int main(int argc, char **argv) {
    sft_remote_options options = SFT_REMOTE_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_remote *remote = NULL;
    if (argc != 2) return 2;
    options.environment = variable;
    sft_code code = sft_remote_open(&options, &remote, &err);
    if (!code) code = open_and_list(remote, argv[1], &err);
    if (code) {
        char text[1024]; /* without the URL */
        sft_error_text(&err, "example_remote", text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    if (remote) {
        sft_remote_sums sums = sft_remote_sums_of(remote);
        fprintf(stderr, "%" PRIu64 " requests, %" PRIu64 " bytes\n", sums.requests, sums.bytes);
    }
    sft_remote_close(remote);
    return code != 0;
}
