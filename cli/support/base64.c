#include "support/base64.h"

#include <string.h>

size_t cli_base64(sft_span bytes, char *out) {
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *at = (const uint8_t *)bytes.data;
    size_t len = 0;
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        uint32_t three = (uint32_t)at[i] << 16 | (left > 1 ? (uint32_t)at[i + 1] << 8 : 0) |
                         (left > 2 ? at[i + 2] : 0u);
        for (int d = 0; d < 4; d++) out[len++] = digits[three >> (18 - 6 * d) & 63];
        if (left < 3) out[len - 1] = '=';
        if (left < 2) out[len - 2] = '=';
    }
    return len;
}

sft_span cli_data_url(const char *media_type, sft_span bytes, sfti_arena *arena) {
    static const char before[] = "data:", after[] = ";base64,";
    size_t type = strlen(media_type), head = sizeof before - 1 + type + sizeof after - 1;
    char *text = sfti_arena_take(arena, head + cli_base64_size(bytes.len));
    if (!text) return (sft_span){ NULL, 0 };
    memcpy(text, before, sizeof before - 1);
    memcpy(text + sizeof before - 1, media_type, type);
    memcpy(text + head - (sizeof after - 1), after, sizeof after - 1);
    return (sft_span){ text, head + cli_base64(bytes, text + head) };
}
