/* Write a model, of one file or many, with its floating tensors in another dtype; a few MiB
 * of memory, whatever its size.
 *     example_convert IN OUT DTYPE */
#include <safetensors.h>
#include <safetensors_convert.h>
#include <safetensors_set.h>
#include <stdio.h>

static sft_code convert(const sft_set *set, sft_dtype to, const char *out, sft_error *err) {
    sft_conversion *conversion;
    sft_convert_totals totals;
    sft_sink sink;
    sft_code code = sft_conversion_new(set, to, NULL, &conversion, err);
    if (code != SFT_OK) return code;
    sft_conversion_totals(conversion, &totals);
    code = sft_sink_path(out, NULL, &sink, err);
    if (code == SFT_OK) code = sft_conversion_save(conversion, sink, NULL, err);
    sft_conversion_free(conversion);
    if (code != SFT_OK) return code;
    printf("%llu tensors cast, %llu to %llu bytes\n",
           (unsigned long long)totals.tensors[SFT_CONVERT_CAST],
           (unsigned long long)totals.bytes_before, (unsigned long long)totals.bytes_after);
    return SFT_OK;
}

int main(int argc, char **argv) {
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
    fprintf(stderr, "%s: %s\n", argv[1], err.message);
    return 1;
}
