/* Values of blocks, computed as they are read: F32 first, then rounded once. Any range can be
 * read; what is computed at once is a piece of a few thousand elements, which stays in a core's
 * cache. Tests: test_import_blocks.c. */
#include "base/announce.h"
#include "base/endian.h"
#include "formats/parts/blocks.h"
#include "formats/parts/state.h"

#include "safetensors_convert.h"

#include <string.h>

#define PIECE_ELEMENTS ((size_t)4096)

typedef struct codec_source {
    const sft_source *from; /* first: see sfti_mode_inner */
    sfti_import *im;
    const sfti_codec *codec;
    uint64_t begin, elements;
    sft_dtype to;
    size_t width; /* bytes of an element of `to` */
    sft_span name, factor;
} codec_source;

/* Whether all round to finite numbers of F16. */
static bool fits_f16(const float *values, size_t count) {
    uint32_t over = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        over |= (uint32_t)((bits & UINT32_C(0x7fffffff)) >= UINT32_C(0x477ff000));
    }
    return over == 0;
}

static sft_code fail_range(const codec_source *s, uint64_t first, const float *values,
                           size_t count, sft_error *err) {
    size_t i = 0;
    while (i + 1 < count && fits_f16(values + i, 1)) i++;
    uint64_t block = (first + i) / s->codec->elements;
    sft_code code = sfti_fail_tensor(err, SFT_CAST_VALUE, s->begin + block * s->codec->stored,
                                     s->name, "expected values within F16, found %g in element "
                                     "%llu (block %llu of %s)", (double)values[i],
                                     (unsigned long long)(first + i), (unsigned long long)block,
                                     s->codec->name);
    sfti_hint(err, SFT_HINT_IMPORT_WIDER);
    return code;
}

static sft_code fail_factor(const codec_source *s, sft_error *err) {
    sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, s->name, "expected values that its blocks "
                     "of %s alone tell, found \"%.*s\", a factor of them", s->codec->name,
                     SFTI_CLIP(s->factor, 200));
    sfti_hint(err, SFT_HINT_CHOOSE_TENSORS);
    return SFT_CAST_DTYPE;
}

/* As little-endian bytes, which they are on most hosts. */
static void store_values(float *values, size_t count) {
    const uint16_t one = 1;
    uint8_t *at = (uint8_t *)values, low;
    memcpy(&low, &one, sizeof low);
    for (size_t i = 0; low != 1 && i < count; i++, at += 4) {
        uint32_t bits;
        memcpy(&bits, at, sizeof bits);
        sfti_put_u32(at, bits);
    }
}

/* At most one piece from element `first` on, the first of a block; *count: how many. */
static sft_code compute_piece(codec_source *s, uint64_t first, size_t *count, uint8_t *out,
                              sft_error *err) {
    uint64_t left = s->elements - first;
    size_t block = s->codec->elements, most = PIECE_ELEMENTS / block * block;
    *count = left < most ? (size_t)left : most;
    size_t bytes = *count / block * s->codec->stored;
    uint8_t *in = s->im->work.in;
    sft_code code = sfti_import_exact(s->from, s->begin + first / block * s->codec->stored, in,
                                      bytes, err);
    float *values = (float *)(void *)(in + SFTI_WORK_BYTES / 2);
    if (code) return code;
    s->codec->unpack(in, values, *count / block);
    if (s->to == SFT_F16 && !fits_f16(values, *count))
        return fail_range(s, first, values, *count, err);
    store_values(values, *count);
    return sft_cast(SFT_F32, values, s->to, out, *count, NULL, NULL, err);
}

static sft_code read_codec(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                           sft_error *err) {
    codec_source *s = ctx;
    *got = 0;
    if (s->factor.len > 0) return fail_factor(s, err);
    sft_code code = sfti_work_begin(s->im, err);
    if (code) return code;
    s->im->work.of = NULL; /* `out` is used here, too */
    while (!code && *got < len) {
        uint64_t at = offset + *got, block = s->codec->elements * s->width;
        uint64_t first = at / block * s->codec->elements;
        size_t count = 0, skip = (size_t)(at % block), some;
        uint8_t *out = s->im->work.out;
        code = compute_piece(s, first, &count, out, err);
        if (code) break;
        some = count * s->width - skip;
        if (some > len - *got) some = len - *got;
        memcpy((char *)into + *got, out + skip, some);
        *got += some;
    }
    sfti_work_end(s->im);
    return code;
}

static void expect_codec(void *ctx, const sft_run *runs, size_t count) {
    const codec_source *s = ctx;
    sfti_announcement all = { .count = 0 };
    uint64_t block = s->codec->elements * s->width;
    for (size_t i = 0; i < count; i++) {
        uint64_t first = runs[i].offset / block;
        uint64_t last = (runs[i].offset + runs[i].len + block - 1) / block;
        sfti_announce(&all, s->from, s->begin + first * s->codec->stored,
                      (last - first) * s->codec->stored);
    }
    sfti_announce_end(&all);
}

static const sft_source_vtable codec_source_vtable = {
    sizeof(sft_source_vtable), read_codec, NULL, expect_codec, sfti_mode_inner
};

sft_code sfti_codec_source(sfti_import *im, const sfti_item *item, sft_dtype to,
                           const sft_source **out) {
    codec_source *s = sfti_arena_take(&im->arena, sizeof *s);
    uint64_t elements, bytes;
    if (!s) return sfti_fail_memory(im->err, sizeof *s);
    sft_code code = sft_shape_size(to, item->shape, item->rank, &elements, &bytes, im->err);
    if (code) return code;
    *s = (codec_source){ item->source, im, item->codec, item->begin, elements, to,
                         sft_dtype_describe(to)->bits / 8, item->name, item->factor };
    sft_source source = { s, &codec_source_vtable, bytes, NULL, false };
    return sfti_import_own(im, &source, out);
}

static const sfti_item *blocks_at(const sft_import *im, size_t i) {
    const sfti_item *item = i < im->parts.count ? &im->items.at[im->item_of[i]] : NULL;
    return item && item->codec ? item : NULL;
}

bool sfti_import_is_computed(const sft_import *import, size_t i) {
    const char *note = sft_import_note(import, i);
    return blocks_at(import, i) || (note && strcmp(note, SFTI_NOTE_VALUES) == 0);
}

sft_code sfti_import_blocks_to(sft_import *import, size_t i, sft_dtype to, sft_error *err) {
    const sfti_item *item = blocks_at(import, i);
    if (!item || import->parts.at[i].spec.dtype == to) return SFT_OK;
    sft_part *part = &import->parts.at[i];
    part->spec.dtype = to;
    if (part->source == item->source) return SFT_OK; /* there are no elements */
    import->err = err;
    sft_code code = sfti_codec_source(import, item, to, &part->source);
    import->err = NULL;
    return code;
}
