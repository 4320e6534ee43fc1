/* Which bytes of the file make up a slice: what a range request or a GPU copy needs.
 *     example_slice FILE TENSOR "[1:3, ::2]" */
#include <safetensors.h>
#include <stdio.h>

static sft_code show(const sft_tensor *tensor, const char *text, sft_error *err) {
    sft_slice slice;
    sft_runs runs;
    sft_run run;
    uint64_t shape[SFT_MAX_RANK], bytes;
    sft_code code = sft_slice_parse(tensor->shape, tensor->rank, sft_span_cstr(text), &slice, err);
    if (code == SFT_OK) code = sft_slice_size(&slice, tensor->dtype, NULL, &bytes, err);
    if (code == SFT_OK) code = sft_runs_begin(tensor, &slice, &runs, err);
    if (code != SFT_OK) return code;

    uint32_t rank = sft_slice_shape(&slice, shape);
    printf("shape");
    for (uint32_t d = 0; d < rank; d++) printf(" %llu", (unsigned long long)shape[d]);
    printf(", %llu bytes\n", (unsigned long long)bytes);
    while (sft_runs_next(&runs, &run))
        printf("%llu+%llu\n", (unsigned long long)(tensor->offset + run.offset),
               (unsigned long long)run.len);
    return SFT_OK;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    sft_file *file;
    sft_error err = SFT_ERROR_INIT;
    sft_code code = sft_open(argv[1], NULL, &file, &err);
    if (code == SFT_OK) {
        const sft_tensor *tensor = sft_file_find_cstr(file, argv[2]);
        code = tensor ? show(tensor, argv[3], &err)
                      : sft_error_set(&err, SFT_TENSOR_NOT_FOUND, 0, "no such tensor");
        sft_close(file);
    }
    if (code != SFT_OK) {
        char text[1024];
        sft_error_text(&err, argv[1], text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    return code != SFT_OK;
}
