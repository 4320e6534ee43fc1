/* CivitAI's answer, read as the sidecar that it can be saved as. */
#include "label/sidecars/sidecars.h"
#include "text/formats.h"

#include <string.h>

void sfti_info_online(sft_info *info) {
    sfti_sidecar *online = sfti_info_take_zeroed(info, sizeof *online);
    if (!online) return;
    online->path = online->error = (sft_span){ "", 0 };
    online->source = sft_span_cstr("online:civitai");
    info->online = online;
    sfti_sidecar_keys_ready();
    sfti_read_civitai_version(info, online, info->answer, "");
}

bool sfti_is_given_claim(const sft_info *info, const sfti_claim *claim) {
    for (size_t i = 0; i < info->options.claim_count; i++)
        if (sft_span_equal(claim->source, info->options.claims[i].source)) return true;
    return false;
}

bool sft_info_sized_hash(const sft_info *info, const char *algo, sft_span *value) {
    for (size_t i = 0; i < info->options.claim_count; i++) {
        if (strcmp(info->options.claims[i].algo, algo) != 0) continue;
        *value = info->options.claims[i].value;
        return true;
    }
    for (const sfti_sidecar *one = info->sidecars.first; one; one = one->next) {
        size_t len = one->source.len;
        if (!one->match || strcmp(one->match, "size") != 0 || len == 0) continue;
        for (const sfti_claim *claim = info->claims.first; claim; claim = claim->next) {
            if (strcmp(claim->algo, algo) != 0 || claim->source.len <= len
                || memcmp(claim->source.data, one->source.data, len) != 0
                || claim->source.data[len] != ':')
                continue;
            *value = claim->value;
            return true;
        }
    }
    return false;
}

const char *sft_info_image_type(sft_span bytes, uint32_t *width, uint32_t *height) {
    uint32_t w = 0, h = 0;
    const char *type = sfti_image_type(bytes, &w, &h);
    if (width) *width = w;
    if (height) *height = h;
    return type;
}
