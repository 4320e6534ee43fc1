#include "catalog/text.h"

#include <string.h>

#define ELLIPSIS "\xE2\x80\xA6"

sft_span text_cut(sft_span text, size_t most, char *buffer) {
    size_t len = most - (sizeof ELLIPSIS - 1);
    if (text.len <= most) return text;
    while (len > 0 && ((unsigned char)text.data[len] & 0xC0) == 0x80) len--;
    memmove(buffer, text.data, len);
    memcpy(buffer + len, ELLIPSIS, sizeof ELLIPSIS - 1);
    return (sft_span){ buffer, len + sizeof ELLIPSIS - 1 };
}

sft_span text_stem(sft_span name) {
    for (size_t i = name.len; i > 1; i--)
        if (name.data[i - 1] == '.') return (sft_span){ name.data, i - 1 };
    return name;
}
