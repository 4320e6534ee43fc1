#include "safetensors.h"

#include <string.h>

sft_span sft_span_cstr(const char *text) {
    sft_span span = { text, text ? strlen(text) : 0 };
    return span;
}

bool sft_span_equal(sft_span a, sft_span b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}
