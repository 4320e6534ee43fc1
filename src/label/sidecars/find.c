/* Finds the sidecars of a model in its folder's listing and reads each once. */
#include "label/reads.h"
#include "label/sidecars/sidecars.h"

#include "base/files.h"
#include "base/json.h"

#include <string.h>

#define SIDECAR_PATH 4096
#define SIDECAR_ROWS 32

/* ── Finding ── */

typedef struct found_files {
    bool rows[2 * SIDECAR_ROWS]; /* of sfti_sidecar_rows, then of sfti_hub_rows */
    uint64_t previews;
} found_files;

static bool is_one_sidecar(sft_span a, sft_span b, sft_span stem) {
    const char *ending = sfti_sidecar_ending(a, stem);
    return sft_span_equal(a, b) || (ending && sfti_sidecar_ending(b, stem) == ending);
}

static bool is_in_list(sft_info *info, sft_span list, sft_span file) {
    sfti_json json;
    sfti_json_begin(&json, list.data, list.len);
    bool found = false;
    if (sfti_json_next(&json) != SFTI_JSON_ARRAY) return false;
    while (!found && sfti_json_next(&json) == SFTI_JSON_STRING)
        found = is_one_sidecar(sfti_json_string(&json, &info->arena), file, info->stem);
    return found;
}

/* A file that a mark names: whether it could be read, and its own mark. Each is looked at once, and
 * once for each file whose mark is being read. */
typedef struct sfti_origin {
    struct sfti_origin *next;
    const sfti_entry *entry;
    bool is_read, is_apart; /* from marked */
    sft_span mark, marked;
} sfti_origin;

static bool is_sound_json(sft_span text) {
    sfti_json json;
    sfti_json_begin(&json, text.data, text.len);
    return sfti_json_next(&json) == SFTI_JSON_OBJECT && sfti_json_skip(&json) != SFTI_JSON_ERROR
        && sfti_json_next(&json) == SFTI_JSON_END;
}

bool sfti_origin_there(sft_info *info, const sfti_sidecar_place *place, sft_span origin,
                       sft_span marked) {
    const char *ending = sfti_sidecar_ending(origin, place->stem);
    sft_span text, error, apart;
    /* a README, a configuration */
    if (!ending) return sfti_folder_at(place->folder, origin) != NULL;
    /* the file of the old name may be another model's by now */
    const sfti_entry *entry = sfti_folder_find(place->folder, place->stem, ending);
    if (!entry || info->options.header_only) return entry != NULL;
    sfti_origin *known = info->marked;
    while (known && known->entry != entry) known = known->next;
    if (!known) {
        known = sfti_info_take(info, sizeof *known);
        sft_span path = sfti_sidecar_path(info, place->path, entry->name);
        if (info->code || !known) return false;
        bool json = sfti_ends_with(entry->name, ".json") || sfti_ends_with(entry->name, ".info");
        *known = (sfti_origin){ .next = info->marked, .entry = entry };
        known->is_read = sfti_sidecar_text(info, path, entry->name, &text, &error)
                      && (!json || is_sound_json(text));
        if (known->is_read) (void)sfti_derived_member(text, SFTI_DERIVED, &known->mark);
        info->marked = known;
    }
    if (known->mark.data && !sft_span_equal(known->marked, marked)) {
        known->marked = marked;
        known->is_apart = sfti_derived_member(known->mark, "apart", &apart)
                       && is_in_list(info, apart, marked);
    }
    return known->is_read && !known->is_apart;
}

static const sfti_sidecar *sidecar_at(const sft_info *info, sft_span path) {
    const sfti_sidecar *one = info->sidecars.first;
    while (one && !sft_span_equal(one->path, path)) one = one->next;
    return one;
}

typedef struct sought_file {
    const sft_info *info;
    sft_span file;
    bool is_found;
} sought_file;

static bool look_for(void *ctx, sft_span origin) {
    sought_file *sought = ctx;
    sought->is_found |= is_one_sidecar(origin, sought->file, sought->info->stem);
    return true;
}

bool sfti_label_names(sft_info *info, sft_span path, sft_span file) {
    const sfti_sidecar *one = sidecar_at(info, path);
    sought_file sought = { info, file, false };
    sfti_derived all;
    sft_span origins;
    bool is_marked = one ? one->mark.data && sfti_derived_member(one->mark, "derived", &origins)
                         : path.len == 0 && sfti_info_metadata(info, SFTI_DERIVED_HEADER, &origins);
    if (is_marked) (void)sfti_derived_read(origins, &info->arena, look_for, &sought, &all);
    return sought.is_found;
}

bool sfti_label_is_apart(sft_info *info, sft_span path, sft_span file) {
    const sfti_sidecar *one = sidecar_at(info, path);
    sft_span apart;
    return one && one->mark.data && sfti_derived_member(one->mark, "apart", &apart)
        && is_in_list(info, apart, file);
}

typedef struct marked_file {
    sft_info *info;
    const sfti_sidecar_place *place;
    sft_span name;
} marked_file;

static bool is_origin_there(void *ctx, sft_span origin) {
    const marked_file *file = ctx;
    return sfti_origin_there(file->info, file->place, origin, file->name);
}

static void read_sidecar(sft_info *info, const sfti_sidecar_place *place,
                         const sfti_sidecar_row *row, sft_span name) {
    marked_file file = { info, place, name };
    sft_span text, origins;
    sft_span path = sfti_sidecar_path(info, place->path, name);
    sfti_sidecar *sidecar = info->code ? NULL : sfti_sidecar_new(info, path, row->kind);
    if (!sidecar) return;
    sidecar->source = row->keys == &sfti_own_keys ? sft_span_cstr("own")
                                                  : sfti_info_join(info, "sidecar:", name);
    if (info->code || !sfti_sidecar_text(info, path, name, &text, &sidecar->error)) return;
    if (sfti_derived_member(text, SFTI_DERIVED, &sidecar->mark)
        && sfti_derived_member(sidecar->mark, "derived", &origins)
        && !sfti_derived_read(origins, &info->arena, is_origin_there, &file, &info->derived))
        info->code = SFT_OUT_OF_MEMORY;
    sfti_sidecar_keys_ready();
    if (!info->code && row->keys) sfti_sidecar_read(info, sidecar, text, row->keys);
    else if (!info->code) row->read(info, sidecar, text);
    info->derived.count = 0;
}

/* "adapter_model_b": PEFT reads its configuration beside adapter_model alone, and its shards. */
static bool is_other_adapter(sft_span stem) {
    size_t begin, total, end;
    return sfti_starts_with(stem, "adapter_model") && stem.len > 13
        && !(sfti_shard_number(stem, &begin, &total, &end) && begin == 13);
}

/* The files that are there and were not found before: those named as the model, then, if these
 * speak for it, those with names of their own, one of a kind. */
static void read_place(sft_info *info, const sfti_sidecar_place *place, found_files *found) {
    const sfti_sidecar_row *rows[2 * SIDECAR_ROWS];
    sft_span names[2 * SIDECAR_ROWS];
    size_t own = sfti_sidecar_row_count, all = own + (place->speaks ? sfti_hub_row_count : 0);
    size_t count = 0;
    for (size_t i = 0; i < all && !info->code; i++) {
        const sfti_sidecar_row *row = i < own ? &sfti_sidecar_rows[i] : &sfti_hub_rows[i - own];
        bool had = found->rows[i];
        for (size_t k = own; k < own + sfti_hub_row_count && i >= own && !had; k++)
            had = found->rows[k] && strcmp(sfti_hub_rows[k - own].kind, row->kind) == 0;
        bool other = row->read == sfti_read_adapter_config && is_other_adapter(place->stem);
        if (had || other) continue;
        sft_span stem = row->stem ? sft_span_cstr(row->stem) : place->stem, name = { NULL, 0 };
        const char *slash = row->stem ? strchr(row->stem, '/') : NULL;
        const sfti_entry *entry = slash ? NULL : sfti_folder_find(place->folder, stem, row->suffix);
        if (entry) name = entry->name;
        /* One in a folder within is there if that folder is. */
        if (slash) stem.len = (size_t)(slash - stem.data);
        if (slash && sfti_folder_at(place->folder, stem))
            name = sfti_info_text(info, "%s%s", row->stem, row->suffix);
        if (!name.data) continue;
        found->rows[i] = true;
        rows[count] = row;
        names[count++] = name;
    }
    if (info->options.files && count > 1) { /* what is not the system's is fetched together */
        const char *paths[2 * SIDECAR_ROWS];
        sft_span folder = sfti_sidecar_path(info, place->path, (sft_span){ "", 0 });
        for (size_t i = 0; i < count; i++)
            paths[i] = sfti_sidecar_path(info, place->path, names[i]).data;
        if (!info->code && sfti_files_claim(info->options.files, folder.data, NULL))
            sfti_files_expect(info->options.files, paths, count, folder.data);
    }
    for (size_t i = 0; i < count && !info->code; i++)
        read_sidecar(info, place, rows[i], names[i]);
    sfti_info_previews(info, place->folder, place->path, place->stem, &found->previews);
}

/* ── The folder's own name ── */

/* Folders that programs keep models of a kind in, and parts of a pipeline: no names. */
static bool shelf_name(sft_span name) {
    static const char *const shelves[] = {
        "models", "model", "checkpoints", "checkpoint", "stable-diffusion", "lora", "loras",
        "lycoris", "embeddings", "textual_inversion", "vae", "vae_approx", "controlnet", "unet",
        "diffusion_models", "text_encoders", "text_encoder", "text_encoder_2", "text_encoder_3",
        "transformer", "transformer_2", "scheduler", "tokenizer", "image_encoder", "clip",
        "clip_vision", "upscale_models", "esrgan", "hypernetworks", "ipadapter", "prior",
        "decoder", "downloads", "download", "desktop", "documents", "output", "outputs", "tmp",
        "temp", "home", "root", "snapshots", "blobs", "safety_checker", "feature_extractor",
    };
    return name.len == 0 || SFTI_ONE_OF(name, shelves, sfti_same_letters)
        || (name.len > 11 && sfti_starts_with(name, "checkpoint-"));
}

/* ── Links ── */

static bool hex_name(sft_span name) {
    for (size_t i = 0; i < name.len; i++)
        if (!strchr("0123456789abcdef", name.data[i]) || !name.data[i]) return false;
    return name.len == 64 || name.len == 40;
}

static sft_info_folder *list_other_folder(sft_info *info, sft_span path) {
    sft_info_folder *folder = NULL;
    sft_error error = SFT_ERROR_INIT;
    sft_span name = sfti_info_text(info, "%.*s", (int)path.len, path.data);
    if (info->code) return NULL;
    sft_code code = sfti_folder_open(name.data, info->options.files, false, info->options.alloc,
                                     &folder, &error);
    if (code == SFT_OUT_OF_MEMORY) info->code = code;
    if (!code || info->code) return folder;
    sfti_sidecar *record = sfti_sidecar_new(info, name, "folder");
    if (record) record->error = sfti_info_text(info, "%s", error.message);
    return NULL;
}

/* A model that is a link: its target's name in a Hub cache is its SHA-256; else the sidecars of
 * the target count too. */
static void follow_link(sft_info *info, found_files *found) {
    char target[SIDECAR_PATH];
    sft_span path = sfti_info_text(info, "%.*s", (int)info->path.len, info->path.data);
    int failed = info->code ? 0 : sfti_os_real_path(path.data, target, sizeof target);
    if (failed) {
        sfti_sidecar *record = sfti_sidecar_new(info, path, "folder");
        if (record) (void)sfti_sidecar_failed(info, failed, "follow this link", &record->error);
    }
    if (failed || info->code) return;
    sft_span whole = sft_span_cstr(target), name = sfti_path_name(whole);
    bool alone = info->set && sft_set_shard_count(info->set) == 1;
    if (hex_name(name)) {
        if (name.len == 64 && alone)
            sfti_info_claim(info, "sha256", name, sft_span_cstr("filename"), NULL);
        return;
    }
    if (whole.len == name.len) return;
    path = (sft_span){ target, whole.len - name.len - (whole.len > name.len + 1) };
    sft_info_folder *other = list_other_folder(info, path);
    if (!other) return;
    sfti_sidecar_place place = { other, sfti_info_copy(info, path), sfti_stem(name), false };
    place.speaks = sfti_folder_speaks(other, info, place.stem);
    read_place(info, &place, found);
    sft_info_folder_close(other);
}

void sfti_info_sidecars(sft_info *info, const sft_info_folder *folder) {
    sft_info_folder *own = NULL;
    found_files found;
    memset(&found, 0, sizeof found);
    if (info->code || info->options.header_only || info->path.len == 0) return;
    if (!folder) folder = own = list_other_folder(info, info->folder);
    if (folder) {
        const sfti_entry *model = sfti_folder_at(folder, sfti_path_name(info->path));
        sfti_sidecar_place place = { folder, info->folder, info->stem, false };
        if (!model) place.stem = sfti_folder_stem(folder, info);
        place.speaks = info->one_model = sfti_folder_speaks(folder, info, info->stem);
        sft_span source = sft_span_cstr("folder"), name = folder->name, repo = folder->repo;
        if (repo.len > 0) {
            repo = sfti_info_copy(info, repo);
            sfti_info_add_text(info, SFT_FACT_REPO, repo, source, 90);
            if (!folder->inner || shelf_name(name)) name = sfti_path_name(repo);
        }
        bool file_is_named = info->part_count == 0 && sfti_telling_stem(info->stem);
        if (place.speaks && !file_is_named && !shelf_name(name))
            sfti_info_add_text(info, SFT_FACT_NAME, sfti_info_copy(info, name), source, 40);
        read_place(info, &place, &found);
        if (model && model->kind == OS_LINK) follow_link(info, &found);
    }
    sft_info_folder_close(own);
    if (info->online || info->sidecars.first) sfti_info_match_sidecars(info, &info->computed);
}
