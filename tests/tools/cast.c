/* Casts what comes in on standard input: cast FROM TO [saturate]. Packed elements in, packed
 * elements out. Exit 1 and a line "ELEMENT MESSAGE" on stderr when one is refused. */
#include "safetensors_convert.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void stop(const char *why) {
    fprintf(stderr, "cast: %s\n", why);
    exit(2);
}

static char *read_all(size_t *len) {
    size_t cap = 1 << 20;
    char *bytes = malloc(cap);
    *len = 0;
    for (;;) {
        if (!bytes) stop("out of memory");
        size_t got = fread(bytes + *len, 1, cap - *len, stdin);
        if (got == 0) return bytes;
        *len += got;
        if (*len < cap) continue;
        cap *= 2;
        bytes = realloc(bytes, cap);
    }
}

int main(int argc, char **argv) {
    sft_dtype from = SFT_U8, to = SFT_U8;
    sft_cast_options options = SFT_CAST_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    if (argc < 3 || !sft_dtype_parse(sft_span_cstr(argv[1]), &from)
        || !sft_dtype_parse(sft_span_cstr(argv[2]), &to))
        stop("usage: cast FROM TO [saturate]");
    options.saturate = argc > 3;
    size_t len;
    char *in = read_all(&len);
    uint64_t count = (uint64_t)len * 8 / sft_dtype_describe(from)->bits, element, bytes;
    bytes = count * sft_dtype_describe(to)->bits / 8;
    char *out = malloc((size_t)bytes + 1);
    if (!out) stop("out of memory");
    sft_code code = sft_cast(from, in, to, out, count, &options, &element, &err);
    if (code == SFT_OK) {
        fwrite(out, 1, (size_t)bytes, stdout);
    } else {
        fprintf(stderr, "%" PRIu64 " %s: %s\n", element, sft_code_describe(code)->name,
                err.message);
    }
    free(in);
    free(out);
    return code != SFT_OK || fflush(stdout) != 0;
}
