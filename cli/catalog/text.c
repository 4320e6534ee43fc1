/* Texts, paths, ids and numbers as pages have them. */
#include "catalog/text.h"

#include "base/error.h"
#include "safetensors_hash.h"
#include "support/words.h"

#include <stdio.h>
#include <string.h>

#define ELLIPSIS "\xE2\x80\xA6"

sft_span text_cut(sft_span text, size_t most, char *buffer) {
    if (text.len <= most) return text;
    text = cli_cut(text, most - (sizeof ELLIPSIS - 1));
    memmove(buffer, text.data, text.len);
    memcpy(buffer + text.len, ELLIPSIS, sizeof ELLIPSIS - 1);
    return (sft_span){ buffer, text.len + sizeof ELLIPSIS - 1 };
}

sft_span text_stem(sft_span name) {
    for (size_t i = name.len; i > 1; i--)
        if (name.data[i - 1] == '.') return (sft_span){ name.data, i - 1 };
    return name;
}

sft_code catalog_path(catalog_places *places, const char *path, sfti_arena *arena, sft_span *out,
                      sft_error *err) {
    char real[CLI_REAL_SIZE];
    *out = sft_span_cstr(path);
    if (!places_named(places, path, real)) return SFT_OK;
    *out = places_relative(places, real, arena);
    return out->data ? SFT_OK : sfti_fail_memory(err, strlen(real));
}

sft_code catalog_put_id(sfti_json_writer *w, const catalog_places *places, const char *title,
                        const sft_allocator *alloc, sft_error *err) {
    sft_hasher *hasher = NULL;
    sft_hashes hashes;
    sft_code code = sft_hasher_new(SFT_HASH_BIT(SFT_HASH_SHA256), alloc, &hasher, err);
    if (code) return code;
    sft_hasher_update(hasher, title, strlen(title) + 1);
    for (size_t i = 0; i < places->count; i++)
        sft_hasher_update(hasher, places->roots[i].given, strlen(places->roots[i].given) + 1);
    sft_hasher_result(hasher, &hashes);
    sft_hasher_free(hasher);
    sfti_json_put_text(w, "id", (sft_span){ sft_hashes_get(&hashes, SFT_HASH_SHA256), 16 });
    sfti_json_put_cstr(w, "generator", "libsafetensors " SFT_VERSION_STRING);
    return SFT_OK;
}

void catalog_double(sfti_json_writer *w, double value) {
    char text[32];
    if (value != value) {
        sfti_json_cstr(w, "NaN");
    } else if (value - value != 0) {
        sfti_json_cstr(w, value > 0 ? "Infinity" : "-Infinity");
    } else {
        int len = snprintf(text, sizeof text, "%.9g", value);
        sfti_json_raw(w, (sft_span){ text, (size_t)len });
    }
}
