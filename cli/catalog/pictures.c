/* Previews of models: links to files below the folders that were given, or data: URLs. */
#include "catalog/catalog.h"

#include "os/os.h"
#include "support/files.h"
#include "support/models.h"
#include "support/remote.h"
#include "support/values.h"
#include "support/words.h"

#include <stdio.h>
#include <string.h>

#define IMAGE_BYTES ((uint64_t)64 << 20)
#define VIDEO_BYTES ((uint64_t)1 << 30)
#define SIDE_MOST 32767
#define PIXELS_MOST ((uint64_t)1 << 27)
#define EMBED_KB_MOST 65536 /* of one; what a browser takes as a URL */

sft_code pictures_begin(catalog_pictures *all, cli *c, sft_error *err) {
    uint64_t kb;
    const char *asked = c->set.embed;
    *all = (catalog_pictures){ .c = c, .embeds = asked != NULL, .most = PICTURES_EMBED };
    if (!asked || !*asked) return SFT_OK;
    if (!cli_parse_number(asked, EMBED_KB_MOST, &kb))
        return cli_usage_error(err, "expected --embed=KB, a number up to %d, found \"%s\"",
                               EMBED_KB_MOST, asked);
    all->most = kb << 10;
    return SFT_OK;
}

/* ── Bytes ── */

static bool is_too_large(const catalog_picture *picture) {
    uint64_t w = picture->width, h = picture->height;
    return picture->bytes > (picture->is_video ? VIDEO_BYTES : IMAGE_BYTES) || w > SIDE_MOST
        || h > SIDE_MOST || w * h > PIXELS_MOST;
}

/* The media type is that of the very bytes; what is neither image nor video is not embedded. */
static sft_code embed(catalog_pictures *all, sft_span bytes, sfti_arena *arena,
                      catalog_picture *picture, sft_error *err) {
    uint32_t width, height;
    char id[32];
    const char *type = sft_info_image_type(bytes, &width, &height);
    if (!type) return SFT_OK;
    sft_span url = cli_data_url(type, bytes, arena);
    if (!url.data) return sfti_fail_memory(err, bytes.len);
    picture->number = all->count++;
    picture->why = NULL;
    all->bytes += bytes.len;
    snprintf(id, sizeof id, "embed-%zu", picture->number);
    sfti_json_span(html_block_begin(all->page, id), url);
    html_block_end(all->page);
    return all->page->code;
}

/* A file that cannot be read is still linked to. */
static sft_code embed_file(catalog_pictures *all, const char *path, sfti_arena *arena,
                           catalog_picture *picture, sft_error *err) {
    sft_buffer bytes = { .alloc = all->c->alloc };
    int fd;
    if (cli_open_beside(path, &fd)) return SFT_OK;
    sft_code code = cli_read_beside(all->c, fd, all->most, &bytes, NULL);
    sfti_os_close(fd);
    if (!code) {
        size_t before = all->count;
        code = embed(all, (sft_span){ bytes.data, bytes.len }, arena, picture, err);
        if (all->count > before) picture->href = NULL;
    } else if (code != SFT_OUT_OF_MEMORY) {
        code = SFT_OK;
    } else {
        code = sfti_fail_memory(err, bytes.cap);
    }
    sft_buffer_free(&bytes);
    return code;
}

/* ── One picture ── */

/* What a sidecar says of a path is not looked at: info lists what is in the model's folder. */
static sft_code take_file(catalog_pictures *all, const char *path, sfti_arena *arena,
                          catalog_picture *picture, sft_error *err) {
    char real[CLI_REAL_SIZE];
    if (is_too_large(picture)) {
        picture->why = "too large";
        return SFT_OK;
    }
    if (!places_real(all->places, path, real) || !places_has(all->places, real)) {
        picture->why = "outside the folder";
        return SFT_OK;
    }
    sft_span relative = places_relative(all->places, real, arena);
    picture->href = relative.data ? places_href(relative, arena) : NULL;
    if (!picture->href) return sfti_fail_memory(err, sizeof real);
    if (!all->embeds || picture->bytes > all->most) return SFT_OK;
    return embed_file(all, real, arena, picture, err);
}

sft_code pictures_of(catalog_pictures *all, const cli_model *model, sfti_arena *arena,
                     catalog_picture **out, size_t *count, sft_error *err) {
    const sft_node *list = sft_node_get(sft_tree_root(model->tree), "previews"), *node;
    size_t most = sft_node_count(list), i = 0;
    sft_code code = SFT_OK;
    *count = 0;
    if (most == 0 || !model->info || cli_is_remote(all->c, model->path)) return SFT_OK;
    if (most > PICTURES_MOST) most = PICTURES_MOST;
    *out = sfti_arena_array(arena, most, sizeof **out);
    if (!*out) return sfti_fail_memory(err, most * sizeof **out);
    for (node = list->first; node && i < most && !code; node = node->next, i++) {
        catalog_picture *picture = &(*out)[*count];
        sft_preview preview;
        if (!sft_info_preview_at(model->info, i, &preview)) break;
        sft_span type = sft_node_text(node, "media_type");
        memset(picture, 0, sizeof *picture);
        picture->is_video = type.len > 6 && memcmp(type.data, "video/", 6) == 0;
        (void)sft_node_uint(node, "bytes", &picture->bytes);
        (void)sft_node_uint(node, "width", &picture->width);
        (void)sft_node_uint(node, "height", &picture->height);
        (void)sft_node_uint(node, "nsfw_level", &picture->level);
        char *path = preview.path.len ? sfti_arena_copy(arena, preview.path.data,
                                                        preview.path.len) : NULL;
        if (preview.path.len && !path) return sfti_fail_memory(err, preview.path.len);
        bool fits = preview.data.len <= all->most && !is_too_large(picture);
        if (!path) picture->why = fits ? "unknown format" : "too large";
        if (path) code = take_file(all, path, arena, picture, err);
        else if (fits) code = embed(all, preview.data, arena, picture, err);
        ++*count;
    }
    return code;
}

/* ── JSON ── */

void picture_json(sfti_json_writer *w, const catalog_picture *picture) {
    sfti_json_open(w, '{');
    if (picture->why) sfti_json_put_cstr(w, "href", "");
    else if (picture->href) sfti_json_put_cstr(w, "href", picture->href);
    else sfti_json_put_uint(w, "href", picture->number);
    if (picture->is_video) sfti_json_put_bool(w, "video", true);
    if (picture->width) sfti_json_put_uint(w, "width", picture->width);
    if (picture->height) sfti_json_put_uint(w, "height", picture->height);
    if (picture->level) sfti_json_put_uint(w, "level", picture->level);
    if (picture->bytes) sfti_json_put_uint(w, "bytes", picture->bytes);
    if (picture->why) sfti_json_put_cstr(w, "why", picture->why);
    sfti_json_close(w, '}');
}
