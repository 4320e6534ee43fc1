/* Folders that were given, real paths, and paths from the page on; texts, ids and numbers;
 * previews, as links to what lies below those folders, or data: URLs. Tests: tests/cli/catalog. */
#include "catalog/catalog.h"

#include "base/error.h"
#include "os/os.h"
#include "os/path.h"
#include "remote/http/url.h"
#include "safetensors_hash.h"
#include "support/files.h"
#include "support/remote.h"
#include "support/values.h"
#include "support/words.h"

#include <stdio.h>
#include <string.h>

/* ── Roots ── */

/* Files in one folder have one root. */
static bool add_root(catalog_places *places, const char *operand) {
    char real[CLI_REAL_SIZE];
    os_info info;
    bool is_folder = sfti_os_info_path(operand, true, &info) == 0 && info.kind == OS_DIR;
    sft_span folder = is_folder ? sfti_path_trimmed(sft_span_cstr(operand))
                                : sfti_path_above(sft_span_cstr(operand));
    for (size_t i = 0; i < places->count; i++)
        if (sft_span_equal(places->roots[i].folder, folder)) return true;
    char *path = folder.len ? sfti_arena_copy(&places->arena, folder.data, folder.len)
                            : sfti_arena_copy(&places->arena, ".", 1);
    if (!path) return false;
    if (sfti_os_real_path(path, real, sizeof real)) real[0] = 0; /* not there: no files */
    char *copy = sfti_arena_copy(&places->arena, real, strlen(real));
    if (!copy) return false;
    places->roots[places->count++] =
        (catalog_root){ is_folder ? operand : path, folder, copy, cli_name_of(copy) };
    return true;
}

/* Whether the folder was given before. */
static bool is_again(const catalog_places *places, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (strcmp(places->roots[i].real, places->roots[k].real) == 0) return true;
    return false;
}

sft_span places_label(const catalog_places *places, size_t i) {
    size_t at = 0;
    for (;; at++)
        if (!is_again(places, at) && i-- == 0) return places->roots[at].label;
}

sft_code places_begin(catalog_places *places, cli *c, char **operands, size_t count,
                      const char *output, sft_error *err) {
    char folder[CLI_REAL_SIZE], real[CLI_REAL_SIZE];
    memset(places, 0, sizeof *places);
    places->arena.alloc = c->alloc;
    places->roots = sfti_arena_array(&places->arena, count, sizeof *places->roots);
    if (!places->roots) return sfti_fail_memory(err, count * sizeof *places->roots);
    for (size_t i = 0; i < count; i++) {
        if (cli_is_remote(c, operands[i]) || strcmp(operands[i], "-") == 0) continue;
        if (!add_root(places, operands[i]))
            return sfti_fail_memory(err, CLI_REAL_SIZE);
    }
    /* Different folders of one name are told apart by what was given. */
    for (size_t i = 0; i < places->count; i++) {
        catalog_root *root = &places->roots[i];
        for (size_t k = 0; k < i; k++) {
            catalog_root *other = &places->roots[k];
            if (strcmp(root->real, other->real) == 0) root->label = other->label;
            else if (sft_span_equal(root->label, other->label)) root->label = root->folder;
        }
        places->labels += !is_again(places, i);
    }
    if (!sfti_folder_copy(output, folder, sizeof folder)
        || sfti_os_real_path(folder, real, sizeof real)) return SFT_OK;
    places->page = sfti_arena_copy(&places->arena, real, strlen(real));
    return places->page ? SFT_OK : sfti_fail_memory(err, strlen(real));
}

void places_free(catalog_places *places) { sfti_arena_free(&places->arena); }

const catalog_root *places_root(const catalog_places *places, const char *path,
                                sft_span *folder) {
    const catalog_root *best = NULL;
    sft_span rest;
    *folder = cli_folder_of(path);
    for (size_t i = 0; i < places->count; i++) {
        const catalog_root *root = &places->roots[i];
        bool is_root = sft_span_equal(sfti_path_trimmed(sft_span_cstr(path)), root->folder);
        if (is_root) rest = (sft_span){ "", 0 };
        else if (!sfti_path_below(sft_span_cstr(path), root->folder, &rest)) continue;
        if (best && best->folder.len >= root->folder.len) continue;
        best = root;
        *folder = sfti_path_above(rest);
    }
    return best;
}

/* ── Real paths ── */

/* The path of a file in the real path of its folder: it may be a link; false if it cannot be told,
 * or is too long. Most models are in the folder of the one before, and few files are links. */
static bool places_named(catalog_places *places, const char *path, char out[CLI_REAL_SIZE]) {
    char folder[CLI_REAL_SIZE];
    sft_span name = cli_name_of(path);
    if (!name.len || !sfti_folder_copy(path, folder, sizeof folder)) return false;
    if (strcmp(folder, places->folder) != 0 || !places->real[0]) {
        places->real[0] = 0;
        if (sfti_os_real_path(folder, places->real, sizeof places->real)) return false;
        memcpy(places->folder, folder, strlen(folder) + 1);
    }
    size_t len = strlen(places->real);
    if (len + 1 + name.len >= CLI_REAL_SIZE) return false;
    memcpy(out, places->real, len);
    if (out[len - 1] != '/') out[len++] = '/';
    memcpy(out + len, name.data, name.len);
    out[len + name.len] = 0;
    return true;
}

bool places_real(catalog_places *places, const char *path, char out[CLI_REAL_SIZE]) {
    os_info info;
    if (sfti_os_info_path(path, false, &info)) return false;
    if (info.kind == OS_LINK) return sfti_os_real_path(path, out, CLI_REAL_SIZE) == 0;
    return places_named(places, path, out);
}

bool places_has(const catalog_places *places, const char *real) {
    sft_span rest;
    for (size_t i = 0; i < places->count; i++) {
        sft_span root = sft_span_cstr(places->roots[i].real);
        if (root.len && sfti_path_below(sft_span_cstr(real), root, &rest) && rest.len) return true;
    }
    return false;
}

/* ── From the page ── */

/* Bytes that two real paths of folders share, up to the end of a part. */
static size_t shared_parts(const char *page, const char *real) {
    size_t at = 0, shared = 0;
    for (;; at++) {
        bool ends = !page[at] || page[at] == '/';
        if (ends && (real[at] == '/' || (at && real[at - 1] == '/'))) shared = at;
        if (!page[at] || page[at] != real[at]) return shared;
    }
}

/* A real path from the page's folder on, in the arena; data NULL when memory ran out. */
static sft_span relative_to_page(const catalog_places *places, const char *real,
                                 sfti_arena *arena) {
    const char *page = places->page ? places->page : "/";
    size_t shared = shared_parts(page, real), up = 0;
    const char *rest = real + shared + (real[shared] == '/');
    for (size_t i = shared; page[i]; i++) up += page[i] == '/' && page[i + 1];
    size_t len = strlen(rest);
    char *out = sfti_arena_take(arena, 3 * up + len + 1);
    if (!out) return (sft_span){ NULL, 0 };
    for (size_t i = 0; i < up; i++) memcpy(out + 3 * i, "../", 3);
    memcpy(out + 3 * up, rest, len + 1);
    return (sft_span){ out, 3 * up + len };
}

/* A relative path as a reference: with %XX for all but RFC 3986's unreserved characters and '/'.
 * NULL when memory ran out. */
static char *href_of(sft_span relative, sfti_arena *arena) {
    sft_buffer text = { .alloc = arena->alloc };
    bool whole = sfti_url_encode(&text, relative, "/");
    char *out = whole ? sfti_arena_copy(arena, text.len ? text.data : "", text.len) : NULL;
    sft_buffer_free(&text);
    return out;
}

/* ── Texts ── */

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
    *out = relative_to_page(places, real, arena);
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

/* ── Pictures ── */

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
    sft_span relative = relative_to_page(all->places, real, arena);
    picture->href = relative.data ? href_of(relative, arena) : NULL;
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
