#include "remote/scheme.h"

static bool is_header_value(sft_span value) {
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.data[i];
        if (c < ' ' || c == 0x7f) return false;
    }
    return true;
}

bool sfti_headers_add(sfti_headers *headers, const char *name, sft_span value) {
    if (headers->count == SFTI_HEADERS_MOST || !is_header_value(value)) return false;
    char *copy = sfti_arena_copy(headers->arena, value.data, value.len);
    if (!copy) return false;
    headers->at[headers->count++] = (sft_pair){ sft_span_cstr(name), { copy, value.len } };
    return true;
}
