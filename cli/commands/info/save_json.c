/* Sidecars of other programs: the keys of each, with the types they have there. Their readers are
 * src/label/sidecars. */
#include "commands/info/save_as.h"

#include "os/os.h"
#include "os/path.h"
#include "support/companions.h"
#include "support/files.h"
#include "support/models.h"
#include "support/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ── Values ── */

static void put_text(sfti_json_writer *w, const char *key, sft_span text) {
    if (text.len > 0) sfti_json_put_text(w, key, text);
}

static void put_known(cli_saving *saving, sfti_json_writer *w, const char *key,
                      const char *fact) {
    put_text(w, key, cli_known_text(saving, fact));
}
/* A number or boolean as it is spelled. */
static void put_raw(sfti_json_writer *w, const char *key, sft_span text) {
    if (text.len == 0) return;
    sfti_json_key(w, key);
    sfti_json_raw(w, text);
}

static void put_list(sfti_json_writer *w, const char *key, const sft_node *list) {
    if (!list || !list->first) return;
    sfti_json_put_open(w, key, '[');
    for (const sft_node *one = list->first; one; one = one->next) sfti_json_span(w, one->text);
    sfti_json_close(w, ']');
}

static void put_words(cli_saving *saving, sfti_json_writer *w, const char *key) {
    const sft_node *word = cli_known_word(saving, NULL);
    if (!word) return;
    sfti_json_put_open(w, key, '[');
    for (; word; word = cli_known_word(saving, word)) {
        sfti_json_span(w, sft_node_text(word, "text"));
        saving->count++;
    }
    sfti_json_close(w, ']');
}

static const char *html_of(char c) {
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\n': return "<br>";
    default: return NULL;
    }
}

/* Web pages show these texts: they must not become markup. */
static void put_html(cli_saving *saving, sfti_json_writer *w, const char *key, const char *fact) {
    sft_span text = cli_known_text(saving, fact);
    size_t len = sizeof "<p></p>" - 1;
    for (size_t i = 0; i < text.len; i++) {
        const char *html = html_of(text.data[i]);
        len += html ? strlen(html) : 1;
    }
    char *out = text.len > 0 ? sfti_arena_take(&saving->arena, len) : NULL, *at = out;
    saving->is_full = saving->is_full || (text.len > 0 && !out);
    if (!out) return;
    memcpy(at, "<p>", 3);
    at += 3;
    for (size_t i = 0; i < text.len; i++) {
        const char *html = html_of(text.data[i]);
        if (!html) *at++ = text.data[i];
        for (; html && *html; html++) *at++ = *html;
    }
    memcpy(at, "</p>", 4);
    sfti_json_put_text(w, key, (sft_span){ out, len });
}

static void put_capitals(sfti_json_writer *w, const char *key, sft_span hex, size_t digits) {
    char text[65];
    if (hex.len < digits || digits >= sizeof text) return;
    for (size_t i = 0; i < digits; i++) {
        char c = hex.data[i];
        text[i] = c >= 'a' && c <= 'f' ? (char)(c - 'a' + 'A') : c;
    }
    sfti_json_put_text(w, key, (sft_span){ text, digits });
}

/* What the object that is there has, and another program may have more of. */
static bool has_old(const cli_saving *saving, const char *key) {
    sft_span value;
    return cli_raw_member(saving->old, key, &value) && !cli_is(value, "null")
        && !cli_is(value, "[]") && !cli_is(value, "\"\"") && !cli_is(value, "\"{}\"");
}

static sft_span stem_of(const cli_saving *saving) {
    return cli_stem_of(cli_name_of(saving->model->path));
}

/* The length of the file itself, not of what another format would become. */
static uint64_t file_bytes(const cli_saving *saving) {
    uint64_t bytes = 0;
    if (!sft_node_uint(saving->root, "import.input_bytes", &bytes))
        (void)sft_node_uint(saving->root, "file.bytes", &bytes);
    return bytes;
}

/* The path from the root, links to the folder resolved; as given where that cannot be. */
static sft_span full_path(cli_saving *saving, const char *path) {
    char real[4096], folder[4096];
    sft_span at = cli_folder_of(path), name = cli_name_of(path);
    bool is_root = at.len == 0 && sfti_is_separator(*path);
    if (at.len >= sizeof folder) return sft_span_cstr(path);
    memcpy(folder, at.len ? at.data : is_root ? "/" : ".", at.len ? at.len : 1);
    folder[at.len ? at.len : 1] = '\0';
    if (sfti_os_real_path(folder, real, sizeof real)) return sft_span_cstr(path);
    char *full = cli_join_path(&saving->arena, sft_span_cstr(real), name.data);
    saving->is_full = saving->is_full || !full;
    return sft_span_cstr(full ? full : path);
}

/* ── CivitAI: a model version as its interface answers ── */

static void put_file(cli_saving *saving, sfti_json_writer *w) {
    char kilobytes[32];
    uint64_t bytes = file_bytes(saving);
    const sft_import *import = saving->model->import;
    sft_import_format format = import ? sft_import_format_of(import) : SFT_IMPORT_NONE;
    if (has_old(saving, "files")) return;
    snprintf(kilobytes, sizeof kilobytes, "%" PRIu64 ".%04" PRIu64, bytes / 1024,
             bytes % 1024 * 10000 / 1024);
    sfti_json_put_open(w, "files", '[');
    sfti_json_open(w, '{');
    sfti_json_put_text(w, "name", cli_name_of(saving->model->path));
    put_raw(w, "sizeKB", sft_span_cstr(kilobytes));
    sfti_json_put_cstr(w, "type", "Model");
    sfti_json_put_bool(w, "primary", true);
    sfti_json_put_open(w, "metadata", '{');
    sfti_json_put_cstr(w, "format", !import                     ? "SafeTensor"
                                    : format == SFT_IMPORT_GGUF ? "GGUF"
                                    : format == SFT_IMPORT_ONNX ? "ONNX"
                                    : sft_import_format_describe(format)->is_pickle
                                        ? "PickleTensor" : "Other");
    sfti_json_close(w, '}');
    sft_span sha256 = cli_known_digest(saving, "sha256");
    sft_span weights = cli_known_digest(saving, "autov3");
    if (weights.len == 0) weights = cli_known_digest(saving, "sshs_model");
    sfti_json_put_open(w, "hashes", '{');
    put_capitals(w, "SHA256", sha256, 64);
    put_capitals(w, "AutoV1", cli_known_digest(saving, "autov1_civitai"), 8);
    put_capitals(w, "AutoV2", sha256, 10);
    put_capitals(w, "AutoV3", weights, 12);
    put_capitals(w, "CRC32", cli_known_digest(saving, "crc32_civitai"), 8);
    put_capitals(w, "BLAKE3", cli_known_digest(saving, "blake3"), 64);
    sfti_json_close(w, '}');
    sfti_json_close(w, '}');
    sfti_json_close(w, ']');
}

static void put_version(cli_saving *saving, sfti_json_writer *w) {
    sft_span author = cli_known_text(saving, "model.author");
    const sft_node *ids = cli_known_ids(saving);
    put_raw(w, "id", sft_node_text(ids, "version_id"));
    put_raw(w, "modelId", sft_node_text(ids, "model_id"));
    put_text(w, "air", sft_node_text(ids, "air"));
    put_text(w, "publishedAt", sft_node_text(ids, "published_at"));
    saving->count += ids != NULL;
    put_known(saving, w, "name", "model.version_name");
    put_html(saving, w, "description", "model.version_description");
    put_text(w, "baseModel", cli_civitai_base(saving));
    put_words(saving, w, "trainedWords");
    put_raw(w, "clipSkip", cli_known_text(saving, "model.clip_skip"));
    if (!has_old(saving, "nsfwLevel"))
        put_raw(w, "nsfwLevel", sft_node_text(saving->root, "model.nsfw_level"));
    sft_span type = cli_civitai_type(saving);
    sfti_json_put_open(w, "model", '{');
    put_known(saving, w, "name", "model.name");
    put_text(w, "type", type);
    put_raw(w, "nsfw", cli_known_text(saving, "model.nsfw"));
    put_html(saving, w, "description", "model.description");
    put_list(w, "tags", cli_known(saving, "model.tags"));
    const sft_node *may = sft_node_get(ids, "permissions");
    sft_span credit = sft_node_text(may, "credit");
    if (credit.len > 0) sfti_json_put_bool(w, "allowNoCredit", cli_is(credit, "false"));
    put_list(w, "allowCommercialUse", sft_node_get(may, "commercial"));
    put_raw(w, "allowDerivatives", sft_node_text(may, "derivatives"));
    put_raw(w, "allowDifferentLicense", sft_node_text(may, "relicense"));
    sfti_json_close(w, '}');
    if (author.len > 0) {
        sfti_json_put_open(w, "creator", '{');
        sfti_json_put_text(w, "username", author);
        sfti_json_close(w, '}');
    }
}

static void known_civitai(cli_saving *saving, sfti_json_writer *w) {
    put_version(saving, w);
    put_file(saving, w);
}

static void default_civitai(cli_saving *saving, sfti_json_writer *w) {
    static const char *const texts[] = { "name", "baseModel" }, *const lists[] = {
        "trainedWords", "files", "images",
    };
    (void)saving;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) sfti_json_put_cstr(w, texts[i], "");
    sfti_json_put_null(w, "description");
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        put_raw(w, lists[i], sft_span_cstr("[]"));
    put_raw(w, "model", sft_span_cstr("{\"name\":\"\",\"type\":\"\"}"));
}

/* ── A1111 and Forge ── */

static void known_a1111(cli_saving *saving, sfti_json_writer *w) {
    sft_span version = cli_a1111_version(saving);
    put_known(saving, w, "description", "model.description");
    put_text(w, "sd version", version);
    put_text(w, "activation text", cli_known_words(saving, true));
    put_raw(w, "preferred weight", cli_known_text(saving, "model.preferred_weight"));
    put_known(saving, w, "negative text", "model.negative_prompt");
    if (!has_old(saving, "notes")) put_text(w, "notes", cli_known_notes(saving));
}

static void default_a1111(cli_saving *saving, sfti_json_writer *w) {
    (void)saving;
    sfti_json_put_cstr(w, "description", "");
    sfti_json_put_cstr(w, "sd version", "Unknown");
    sfti_json_put_cstr(w, "activation text", "");
    sfti_json_put_uint(w, "preferred weight", 0);
    sfti_json_put_cstr(w, "negative text", "");
    sfti_json_put_cstr(w, "notes", "");
}

/* ── ComfyUI-LoRA-Manager ── */

/* JSON in a string. */
static void put_tips(cli_saving *saving, sfti_json_writer *w) {
    sft_buffer text = { .alloc = saving->c->alloc };
    sft_sink sink = sft_sink_memory(&text);
    sfti_json_writer tips;
    size_t before = saving->count;
    if (has_old(saving, "usage_tips")) return;
    sfti_json_write(&tips, &sink, 0, NULL);
    sfti_json_open(&tips, '{');
    put_raw(&tips, "strength", cli_known_text(saving, "model.preferred_weight"));
    put_raw(&tips, "clip_skip", cli_known_text(saving, "model.clip_skip"));
    sfti_json_close(&tips, '}');
    if (sfti_json_done(&tips)) saving->is_full = true;
    else if (saving->count > before)
        sfti_json_put_text(w, "usage_tips", (sft_span){ text.data, text.len });
    sft_buffer_free(&text);
}

static void known_manager(cli_saving *saving, sfti_json_writer *w) {
    static const char *const types[] = { "checkpoint", "diffusion_model", "embedding" };
    const sft_node *ids = cli_known_ids(saving);
    sft_span sha256 = cli_known_digest(saving, "sha256");
    sft_span weights = cli_known_digest(saving, "autov3");
    if (weights.len > 12) weights.len = 12;
    put_known(saving, w, "model_name", "model.name");
    put_text(w, "base_model", cli_civitai_base(saving));
    put_text(w, "autov3", weights);
    put_text(w, "sha256", sha256);
    if (sha256.len > 0) sfti_json_put_cstr(w, "hash_status", "completed");
    sft_preview preview;
    char *path = NULL; /* of the first that is a file */
    for (size_t i = 0; !path && !has_old(saving, "preview_url")
                       && sft_info_preview_at(saving->model->info, i, &preview); i++)
        if (preview.path.len > 0)
            path = sfti_arena_copy(&saving->arena, preview.path.data, preview.path.len);
    if (path) sfti_json_put_text(w, "preview_url", full_path(saving, path));
    if (path && preview.nsfw_level)
        sfti_json_put_uint(w, "preview_nsfw_level", preview.nsfw_level);
    if (!has_old(saving, "notes")) put_text(w, "notes", cli_known_notes(saving));
    if (cli_is_noted(saving->root)) /* else it may be its own */
        put_raw(w, "favorite", sft_node_text(saving->root, "model.favourite"));
    put_list(w, "tags", cli_known(saving, "model.tags"));
    put_html(saving, w, "modelDescription", "model.description");
    put_words(saving, w, "trainedWords");
    put_tips(saving, w);
    size_t before = saving->count; /* the kind is not written itself */
    sft_span kind = cli_known_text(saving, "model.kind");
    saving->count = before;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (cli_is(kind, types[i])) sfti_json_put_cstr(w, "sub_type", types[i]);
    if (!ids) return;
    sfti_json_put_bool(w, "from_civitai", true);
    sfti_json_put_open(w, "civitai", '{');
    put_version(saving, w);
    sfti_json_close(w, '}');
}

/* Its reader needs the first eight. */
static void default_manager(cli_saving *saving, sfti_json_writer *w) {
    static const char *const no[] = { "from_civitai", "civitai_deleted", "favorite", "exclude",
                                      "db_checked", "skip_metadata_refresh" };
    char modified[32];
    uint64_t bytes = file_bytes(saving);
    os_info info = { .mtime_ns = 0 };
    if (sfti_os_info_path(saving->model->path, true, &info)) info.mtime_ns = 0;
    uint64_t ns = info.mtime_ns > 0 ? (uint64_t)info.mtime_ns : 0;
    snprintf(modified, sizeof modified, "%" PRIu64 ".%06" PRIu64, ns / 1000000000,
             ns % 1000000000 / 1000);
    sfti_json_put_text(w, "file_name", stem_of(saving));
    sfti_json_put_text(w, "model_name", stem_of(saving));
    sfti_json_put_text(w, "file_path", full_path(saving, saving->model->path));
    sfti_json_put_uint(w, "size", bytes);
    put_raw(w, "modified", sft_span_cstr(modified));
    sfti_json_put_cstr(w, "sha256", "");
    sfti_json_put_cstr(w, "base_model", "Unknown");
    sfti_json_put_cstr(w, "preview_url", "");
    sfti_json_put_uint(w, "preview_nsfw_level", 0);
    sfti_json_put_cstr(w, "notes", "");
    put_raw(w, "civitai", sft_span_cstr("{}"));
    put_raw(w, "tags", sft_span_cstr("[]"));
    sfti_json_put_cstr(w, "modelDescription", "");
    sfti_json_put_cstr(w, "usage_tips", "{}");
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) sfti_json_put_bool(w, no[i], false);
    sfti_json_put_uint(w, "last_checked_at", 0);
    sfti_json_put_cstr(w, "hash_status", "pending");
}

/* ── The table ── */

const cli_sidecar_format *cli_sidecar_format_of(int save_as) {
    static const cli_sidecar_format formats[] = {
        { ".civitai.info", "Civitai Helper", "civitai.info", cli_keep_civitai, known_civitai,
          default_civitai },
        { ".metadata.json", "ComfyUI-LoRA-Manager", "metadata.json", NULL, known_manager,
          default_manager },
        { ".json", "A1111", "a1111.json", NULL, known_a1111, default_a1111 },
    };
    return &formats[save_as - CLI_SAVE_CIVITAI];
}
