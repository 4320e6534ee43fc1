/* Save arrays that are in memory by one call, and say on standard error what went wrong.
 *     example_arrays OUT */
#include <safetensors.h>
#include <stdio.h>

int main(int argc, char **argv) {
    static const uint64_t matrix[] = { 2, 3 }, vector[] = { 3 };
    const float weight[6] = { 1, 2, 3, 4, 5, 6 }, bias[3] = { 7, 8, 9 };
    const sft_array arrays[] = {
        { { SFT_SPAN_INIT("fc.weight"), SFT_F32, 2, matrix }, weight, sizeof weight },
        { { SFT_SPAN_INIT("fc.bias"), SFT_F32, 1, vector }, bias, sizeof bias },
    };
    const sft_pair format = { SFT_SPAN_INIT("format"), SFT_SPAN_INIT("pt") };
    sft_error err = SFT_ERROR_INIT;
    if (argc != 2) return 2;
    if (sft_save_arrays(argv[1], arrays, 2, &format, 1, NULL, NULL, &err)) {
        char line[1024];
        sft_error_text(&err, argv[1], line, sizeof line);
        fprintf(stderr, "%s\n", line);
        return 1;
    }
    return 0;
}
