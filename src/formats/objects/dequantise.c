/* Quantised integers as numbers, computed when they are read. */
#include "formats/objects/rebuild_parts.h"

#include "base/endian.h"
#include "base/number.h"

#include <string.h>

#define AT_ONCE 512

/* Elements [first, first + count), count at most AT_ONCE. */
static sft_code numbers(const sfti_dequantise *how, uint64_t first, size_t count, uint8_t *out,
                        sft_error *err) {
    uint8_t stored[AT_ONCE * 4]; /* no dtype that is taken is wider */
    double values[AT_ONCE];
    size_t size = sft_dtype_describe(how->dtype)->bits / 8, got;
    sft_code code = sft_source_read(how->from, how->begin + first * size, stored, count * size,
                                    &got, err);
    if (!code && got < count * size)
        code = sfti_fail_byte(err, SFT_FOREIGN_TRUNCATED, how->begin + first * size,
                              "expected %zu bytes, found the end of the file", count * size);
    if (code) return code;
    sfti_to_doubles(how->dtype, stored, 0, count, values);
    for (size_t i = 0; i < count; i++) {
        uint64_t channel = (first + i) / how->inner % how->channels;
        double difference = values[i] - how->zeros[channel];
        if (how->one && !(difference >= INT32_MIN && difference <= INT32_MAX))
            return sfti_fail_byte(err, SFT_FOREIGN_OBJECT, how->begin + (first + i) * size,
                                  "expected a quantised integer whose difference from the zero "
                                  "point fits 32 bits, found %.0f", values[i]);
        float whole = how->one ? (float)difference
                               : (float)values[i] - (float)how->zeros[channel];
        float value = (float)(whole * how->scales[channel]); /* rounded once, as PyTorch does */
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        sfti_put_u32(out + 4 * i, bits);
    }
    return SFT_OK;
}

static sft_code dequantise_read(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                                sft_error *err) {
    const sfti_dequantise *how = ctx;
    uint8_t buffer[AT_ONCE * 4];
    for (size_t done = 0; done < len;) {
        uint64_t at = offset + done, first = at / 4, left = how->elements - first;
        size_t skip = (size_t)(at % 4), count = left < AT_ONCE ? (size_t)left : AT_ONCE;
        sft_code code = numbers(how, first, count, buffer, err);
        if (code) return code;
        size_t some = count * 4 - skip < len - done ? count * 4 - skip : len - done;
        memcpy((char *)into + done, buffer + skip, some);
        done += some;
    }
    *got = len;
    return SFT_OK;
}

bool sfti_dequantise_takes(sft_dtype dtype) {
    return dtype == SFT_U8 || dtype == SFT_I8 || dtype == SFT_I32;
}

sft_code sfti_dequantise_source(sfti_import *im, const sfti_dequantise *how,
                                const sft_source **out) {
    static const sft_source_vtable table = { sizeof table, dequantise_read, NULL, NULL,
                                             sfti_mode_inner };
    sfti_dequantise *kept = sfti_arena_take(&im->arena, sizeof *kept);
    if (!kept) return sfti_fail_memory(im->err, sizeof *kept);
    *kept = *how;
    sft_source source = { kept, &table, how->elements * 4, NULL, false };
    return sfti_import_own(im, &source, out);
}
