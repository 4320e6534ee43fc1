/* Write a model, of one file or many, with its floating tensors in another dtype; a few MiB
 * of memory, whatever its size.
 *     example_convert IN OUT DTYPE */
#include <safetensors.h>
#include <safetensors_convert.h>
#include <safetensors_set.h>
#include <stdio.h>

static sft_code convert(const sft_set *set, sft_dtype to, const char *out, sft_error *err) {
    sft_conversion *conversion;
    sft_sink sink;
    sft_code code = sft_conversion_new(set, to, NULL, &conversion, err);
    if (code != SFT_OK) return code;
    uint64_t cast = sft_conversion_count(conversion, SFT_CONVERT_CAST);
    uint64_t before = sft_conversion_bytes_before(conversion);
    uint64_t after = sft_conversion_bytes_after(conversion);
    code = sft_sink_path(out, NULL, &sink, err);
    if (code == SFT_OK) code = sft_conversion_save(conversion, sink, NULL, err);
    sft_conversion_free(conversion);
    if (code != SFT_OK) return code;
    printf("%llu tensors cast, %llu to %llu bytes\n",
           (unsigned long long)cast, (unsigned long long)before, (unsigned long long)after);
    return SFT_OK;
}

int main(int argc, char **argv) {
    char text[1024];
    sft_error err = SFT_ERROR_INIT;
    sft_dtype to;
    sft_set *set;
    if (argc != 4 || !sft_dtype_parse(sft_span_cstr(argv[3]), &to)) return 2;
    sft_code code = sft_set_open(argv[1], NULL, &set, &err);
    if (code == SFT_OK) {
        code = convert(set, to, argv[2], &err);
        sft_set_close(set);
    }
    if (code == SFT_OK) return 0;
    sft_error_text(&err, argv[1], text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return 1;
}
