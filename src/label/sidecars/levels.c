/* Content levels of previews. LoRA Manager tells the level of the one file it names; answers of
 * CivitAI list the images of its site with theirs, and which of them a file is must be shown:
 * programs that save such an answer save its first image as NAME.preview.*, scaled down or not. */
#include "label/sidecars/sidecars.h"

#include <string.h>

#define SIDECAR_IMAGES 64
#define LEVEL_BITS 63 /* PG 1, PG13 2, R 4, X 8, triple X 16, blocked 32 */

/* ── Reading ── */

static uint32_t level_here(const sfti_cursor *at) {
    static const struct { const char *word; uint32_t level; } words[] = {
        { "None", 1 }, { "Soft", 2 }, { "Mature", 4 }, { "X", 8 },
    };
    if (at->json->type == SFTI_JSON_UINT && at->json->value <= LEVEL_BITS)
        return (uint32_t)at->json->value;
    for (size_t i = 0; at->json->type == SFTI_JSON_STRING && i < SFTI_COUNT(words); i++)
        if (sfti_same_letters(at->text, words[i].word)) return words[i].level;
    return 0;
}

void sfti_sidecar_take_image(sfti_cursor *at) {
    sfti_sidecar_walked *side = at->ctx;
    uint64_t size = sfti_at_uint(at);
    uint32_t level = level_here(at);
    if (!side->image || side->image_index != at->index) {
        if (side->sidecar->images.count == SIDECAR_IMAGES) return;
        side->image = SFTI_PUSH(at->info, &side->sidecar->images, sfti_image, .width = 0);
        if (!side->image) return;
        side->image_index = at->index;
    }
    switch (at->row->field) {
    case SFTI_IMAGE_TYPE:
        side->image->video = at->json->type == SFTI_JSON_STRING
            && sfti_same_letters(at->text, "video");
        break;
    case SFTI_IMAGE_WIDTH: side->image->width = size <= UINT32_MAX ? (uint32_t)size : 0; break;
    case SFTI_IMAGE_HEIGHT: side->image->height = size <= UINT32_MAX ? (uint32_t)size : 0; break;
    case SFTI_IMAGE_LEVEL: side->image->level = level; break;
    default: side->image->old_level = level;
    }
}

void sfti_sidecar_take_preview(sfti_cursor *at) {
    sfti_sidecar *sidecar = ((sfti_sidecar_walked *)at->ctx)->sidecar;
    if (at->row->field == SFTI_IMAGE_LEVEL) {
        sidecar->preview_level = level_here(at);
    } else if (at->json->type == SFTI_JSON_STRING) {
        size_t begin = at->text.len;
        while (begin > 0 && at->text.data[begin - 1] != '/' && at->text.data[begin - 1] != '\\')
            begin--;
        sidecar->preview_name = sfti_from(at->text, begin);
    }
}

/* ── Which image a file is ── */

/* Whether it may be the image, at its size or scaled down with its sides rounded. */
static bool has_proportions(const sfti_preview *preview, const sfti_image *image) {
    uint64_t a = (uint64_t)preview->width * image->height;
    uint64_t b = (uint64_t)preview->height * image->width;
    uint32_t longest = image->width > image->height ? image->width : image->height;
    return preview->width > 0 && preview->height > 0 && preview->width <= image->width
        && preview->height <= image->height && (a > b ? a - b : b - a) <= longest;
}

/* The level that all images with the file's proportions share; 0: none, or not the same.
 * leading: only of the first image, and of videos before it, which some programs skip. */
static uint32_t shared_level(const sfti_sidecar *sidecar, const sfti_preview *preview,
                             bool leading) {
    uint32_t shared = 0;
    for (const sfti_image *image = sidecar->images.first; image; image = image->next) {
        uint32_t level = image->level ? image->level : image->old_level;
        if (has_proportions(preview, image)) {
            if (level == 0 || (shared && level != shared)) return 0;
            shared = level;
        }
        if (leading && !image->video) break;
    }
    return shared;
}

static bool is_differing(const sfti_sidecar *sidecar) {
    return sidecar->match && strcmp(sidecar->match, "differs") == 0;
}

/* Its only preview file, if the sidecar names none. */
static uint32_t named_level(const sft_info *info, const sfti_sidecar *sidecar,
                            const sfti_preview *preview, sft_span name) {
    size_t files = 0;
    if (sidecar->preview_name.len > 0)
        return sft_span_equal(sidecar->preview_name, name) ? sidecar->preview_level : 0;
    for (const sfti_preview *one = info->previews.first; one; one = one->next)
        files += one->path.len > 0;
    return preview->path.len > 0 && files == 1 ? sidecar->preview_level : 0;
}

static uint32_t listed_level(const sfti_sidecar *sidecar, const sfti_preview *preview,
                             sft_span name) {
    sft_span stem = sfti_stem(name);
    if (stem.len < 8 || !sfti_same_letters(sfti_from(stem, stem.len - 8), ".preview")) return 0;
    uint32_t level = shared_level(sidecar, preview, true);
    return level ? level : shared_level(sidecar, preview, false);
}

void sfti_info_preview_levels(sft_info *info) {
    for (sfti_preview *one = info->previews.first; one; one = one->next) {
        const sfti_sidecar *side = info->sidecars.first;
        sft_span name = sfti_path_name(one->path);
        one->nsfw_level = 0;
        for (; side && one->path.len > 0 && !one->nsfw_level; side = side->next)
            if (!is_differing(side)) one->nsfw_level = named_level(info, side, one, name);
        side = info->online ? info->online : info->sidecars.first;
        for (; side && one->path.len > 0 && !one->nsfw_level;
             side = side == info->online ? info->sidecars.first : side->next)
            if (!is_differing(side)) one->nsfw_level = listed_level(side, one, name);
    }
}
