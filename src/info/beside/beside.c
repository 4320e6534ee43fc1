#include "info/beside/beside.h"

#include "base/utf8.h"

#include <errno.h>
#include <string.h>

#define BESIDE_MOST ((uint64_t)64 << 20)
#define BESIDE_HASHES 1024 /* of one sidecar */
#define BESIDE_PATH 4096
#define BESIDE_ROWS 32

/* ── Reading ── */

sft_span sfti_beside_path(sft_info *info, sft_span folder_path, sft_span name) {
    if (folder_path.len == 0 || sft_span_equal(folder_path, sft_span_cstr(".")))
        return sfti_info_text(info, "%.*s", (int)name.len, name.data);
    const char *slash = folder_path.data[folder_path.len - 1] == '/' ? "" : "/";
    return sfti_info_text(info, "%.*s%s%.*s", (int)folder_path.len, folder_path.data, slash,
                          (int)name.len, name.data);
}

static bool beside_failed(sft_info *info, int error, const char *what, sft_span *out) {
    char text[128];
    *out = sfti_info_text(info, "cannot %s: %s", what,
                          os_error_text(error, text, sizeof text));
    return false;
}

static bool read_bytes(sft_info *info, int fd, char *into, size_t len, size_t *used,
                       sft_span *error) {
    size_t got = 1;
    *used = 0;
    while (*used < len && got > 0) {
        int failed = os_pread(fd, into + *used, len - *used, *used, &got);
        if (failed) return beside_failed(info, failed, "read", error);
        *used += got;
    }
    return true;
}

static bool read_open(sft_info *info, int fd, uint64_t most, sft_span *out, uint64_t *size,
                      sft_span *error) {
    os_info about;
    size_t used;
    int failed = os_info_fd(fd, &about);
    if (failed) return beside_failed(info, failed, "read", error);
    if (about.kind != OS_FILE) {
        *error = sft_span_cstr("expected a regular file, found something else");
        return false;
    }
    size_t len = (size_t)(about.size < most ? about.size : most);
    char *room = sfti_arena_take(&info->arena, len + 1);
    if (!room) {
        info->code = SFT_OUT_OF_MEMORY;
        return false;
    }
    if (!read_bytes(info, fd, room, len, &used, error)) return false;
    room[used] = '\0';
    *out = (sft_span){ room, used };
    *size = about.size;
    return true;
}

bool sfti_beside_read(sft_info *info, sft_span path, sft_span name, uint64_t most, sft_span *out,
                      uint64_t *size, sft_span *error) {
    int fd;
    sft_span folder = sfti_info_text(info, "%.*s", (int)(path.len - name.len), path.data);
    if (info->code) return false;
    int failed = os_open_beneath(folder.data, path.data + folder.len, OS_BENEATH_READ, &fd);
    if (failed == EXDEV) {
        *error = sft_span_cstr("expected a file in the model's folder, found a link that leads out "
                               "of it");
        return false;
    }
    if (failed) return beside_failed(info, failed, "open", error);
    bool read = read_open(info, fd, most, out, size, error);
    (void)os_close(fd);
    return read;
}

/* The whole of a text file, UTF-8, without a byte order mark. */
static bool read_text_file(sft_info *info, sft_span path, sft_span name, sft_span *out,
                           sft_span *error) {
    uint64_t size, most = info->options.max_file_bytes;
    if (most == 0) most = BESIDE_MOST;
    if (most > SIZE_MAX / 4) most = SIZE_MAX / 4;
    if (!sfti_beside_read(info, path, name, most, out, &size, error)) return false;
    if (size > most) {
        *error = sfti_info_text(info, "expected at most %llu bytes, found %llu",
                                (unsigned long long)most, (unsigned long long)size);
        return false;
    }
    size_t good = sfti_utf8_check(out->data, out->len);
    if (good < out->len) {
        *error = sfti_info_text(info, "expected UTF-8, found another byte at %zu", good);
        return false;
    }
    if (out->len >= 3 && memcmp(out->data, "\xEF\xBB\xBF", 3) == 0)
        *out = (sft_span){ out->data + 3, out->len - 3 };
    return true;
}

/* ── What sidecars record of the file ── */

uint64_t sfti_side_file_size(const sft_info *info) {
    if (!info->set || sft_set_shard_count(info->set) != 1) return 0;
    uint64_t size = sft_file_size(sft_set_shard(info->set, 0));
    return size == SFT_SIZE_UNKNOWN ? 0 : size;
}

bool sfti_side_size_fits(const sft_info *info, uint64_t bytes) {
    uint64_t size = sfti_side_file_size(info);
    if (size == 0 || bytes == 0) return false;
    return (size > bytes ? size - bytes : bytes - size) <= 1024;
}

void sfti_side_size(const sft_info *info, sfti_sidecar *sidecar, uint64_t bytes) {
    if (bytes == 0 || sfti_side_size_fits(info, sidecar->size_claim)) return;
    if (sidecar->size_claim == 0 || sfti_side_size_fits(info, bytes)) sidecar->size_claim = bytes;
}

bool sfti_side_own_name(const sft_info *info, sft_span name) {
    name = sfti_base_name(sfti_trim(name));
    return name.len > 0 && sft_span_equal(name, sfti_base_name(info->path));
}

static size_t hash_digits(const char *algo) {
    static const struct { const char *algo; size_t digits; } known[] = {
        { "sha256", 64 }, { "autov2", 10 }, { "autov3", 12 }, { "sshs_model", 64 },
        { "crc32_civitai", 8 }, { "blake3", 64 },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].algo, algo) == 0) return known[i].digits;
    return 0;
}

void sfti_side_hash(sft_info *info, sfti_sidecar *sidecar, const char *algo, sft_span value,
                    sft_span source) {
    sft_span hex;
    if (sidecar->hashes.count >= BESIDE_HASHES) return;
    if (!sfti_info_hash(info, value, hash_digits(algo), &hex)) return;
    sfti_claim *claim = sfti_info_push(info, &sidecar->hashes, sizeof *claim);
    if (!claim) return;
    claim->algo = algo;
    claim->value = hex;
    claim->source = source;
}

/* ── Matching ── */

typedef struct beside_digests {
    sft_span sha256, autov2, autov3, crc32, crc32_civitai, blake3; /* empty: not computed */
} beside_digests;

static void take_digest(sfti_walk *walk, const sfti_walk_row *row) {
    sft_span *slot = (sft_span *)(void *)((char *)walk->ctx + row->field);
    sft_span hex;
    if (walk->json.type != SFTI_JSON_STRING || slot->len > 0) return;
    size_t digits = (size_t)row->trust;
    sft_span text = sfti_trim(walk->text);
    if (text.len > digits && row->word) text.len = digits;
    if (sfti_info_hash(walk->info, text, digits, &hex)) *slot = hex;
}

#define DIGEST_ROW(pattern, member, digits, word) \
    { pattern, take_digest, (int)offsetof(beside_digests, member), digits, word }

static void parse_digests(sft_info *info, sft_span computed, beside_digests *out) {
    static const sfti_walk_row rows[] = {
        DIGEST_ROW("/sha256", sha256, 64, NULL),
        DIGEST_ROW("/sha256", autov2, 10, "cut"),
        DIGEST_ROW("/autov2", autov2, 10, NULL),
        DIGEST_ROW("/autov3", autov3, 12, NULL),
        DIGEST_ROW("/sshs_model", autov3, 12, "cut"),
        DIGEST_ROW("/crc32", crc32, 8, NULL),
        DIGEST_ROW("/crc32_civitai", crc32_civitai, 8, NULL),
        DIGEST_ROW("/blake3", blake3, 64, NULL),
    };
    memset(out, 0, sizeof *out);
    if (computed.len > 0)
        (void)sfti_info_walk(info, sfti_info_copy(info, computed), sft_span_cstr("computed"),
                             rows, sizeof rows / sizeof *rows, out);
}

bool sfti_same_crc(sft_span a, sft_span b) {
    if (a.len != 8 || b.len != 8) return false;
    if (sft_span_equal(a, b)) return true;
    for (size_t i = 0; i < 8; i += 2)
        if (memcmp(a.data + i, b.data + 6 - i, 2) != 0) return false;
    return true;
}

typedef struct beside_verdict {
    bool same, same_weights;   /* a recorded hash equals */
    bool whole, weights;       /* one was compared */
    bool weights_recorded;
} beside_verdict;

static void weigh_hash(const sfti_claim *claim, const beside_digests *digests,
                       beside_verdict *verdict) {
    sft_span value = claim->value, mine = { NULL, 0 };
    bool weights = strcmp(claim->algo, "autov3") == 0 || strcmp(claim->algo, "sshs_model") == 0;
    bool crc = strcmp(claim->algo, "crc32_civitai") == 0, equal;
    if (weights) mine = digests->autov3;
    else if (crc) mine = digests->crc32.len > 0 ? digests->crc32 : digests->crc32_civitai;
    else if (strcmp(claim->algo, "autov2") == 0) mine = digests->autov2;
    else if (strcmp(claim->algo, "blake3") == 0) mine = digests->blake3;
    else mine = digests->sha256;
    if (weights) verdict->weights_recorded = true;
    if (mine.len == 0) return;
    if (weights && value.len > mine.len) value.len = mine.len;
    equal = crc ? sfti_same_crc(value, mine) : sft_span_equal(value, mine);
    if (weights) {
        verdict->weights = true;
        verdict->same_weights = verdict->same_weights || equal;
    } else {
        verdict->whole = true;
        verdict->same = verdict->same || equal;
    }
}

static const char *verdict_of(const sft_info *info, const sfti_sidecar *sidecar,
                            const beside_digests *digests) {
    beside_verdict verdict = { false, false, false, false, false };
    for (const sfti_claim *claim = sidecar->hashes.first; claim; claim = claim->next)
        weigh_hash(claim, digests, &verdict);
    if (verdict.same) return "sha256";
    if (verdict.same_weights) return "weights";
    if (verdict.whole && (verdict.weights || !verdict.weights_recorded)) return "differs";
    if (verdict.whole || verdict.weights) return NULL;
    if (sidecar->size_claim == 0 || sfti_side_file_size(info) == 0) return NULL;
    return sfti_side_size_fits(info, sidecar->size_claim) ? "size" : "size-differs";
}

/* ── Demoting ── */

typedef struct beside_demotion {
    struct beside_demotion *next;
    int *trust;
    int was;
} beside_demotion;

static void restore_trust(sfti_sidecar *sidecar) {
    for (const beside_demotion *d = sidecar->demoted.first; d; d = d->next) *d->trust = d->was;
    memset(&sidecar->demoted, 0, sizeof sidecar->demoted);
}

/* What comes from a sidecar: its name, and a place in it or nothing. */
static bool comes_from(sft_span source, sft_span sidecar) {
    if (source.len < sidecar.len || memcmp(source.data, sidecar.data, sidecar.len) != 0)
        return false;
    return source.len == sidecar.len || source.data[sidecar.len] == ':';
}

static void demote(sft_info *info, sfti_sidecar *sidecar, sft_span source, int *trust,
                   bool differs) {
    int now = differs ? (*trust < 10 ? *trust : 10) : (*trust > 30 ? *trust - 30 : 0);
    if (now == *trust || !comes_from(source, sidecar->source)) return;
    beside_demotion *d = sfti_info_push(info, &sidecar->demoted, sizeof *d);
    if (!d) return;
    d->trust = trust;
    d->was = *trust;
    *trust = now;
}

static void demote_all(sft_info *info, sfti_sidecar *sidecar, bool differs) {
    for (size_t i = 0; i < SFT_FACT_COUNT; i++)
        for (sfti_fact *fact = info->facts[i]; fact; fact = fact->next)
            demote(info, sidecar, fact->source, &fact->trust, differs);
    for (sfti_trigger *word = info->triggers.first; word; word = word->next)
        demote(info, sidecar, word->source, &word->trust, differs);
    for (sfti_civitai *claim = info->civitai.first; claim; claim = claim->next)
        demote(info, sidecar, claim->source, &claim->trust, differs);
    if (differs && sidecar->gave_permissions)
        memset(&info->permissions, 0, sizeof info->permissions);
    if (differs && sidecar->gave_level) info->nsfw_level = -1;
}

/* How much a match lowers what the sidecar told. */
static int lowering(const char *match) {
    if (!match) return 0;
    return strcmp(match, "differs") == 0 ? 2 : strcmp(match, "size-differs") == 0;
}

static bool is_matched(const sfti_sidecar *sidecar) {
    return sidecar->error.len == 0 && sidecar->source.len > 0;
}

static void match_sidecar(sft_info *info, sfti_sidecar *sidecar,
                          const beside_digests *digests) {
    restore_trust(sidecar);
    if (!is_matched(sidecar)) return;
    sidecar->match = verdict_of(info, sidecar, digests);
    int lower = lowering(sidecar->match);
    if (lower) demote_all(info, sidecar, lower == 2);
}

void sfti_info_match_sidecars(sft_info *info, sft_span computed) {
    beside_digests digests;
    parse_digests(info, computed, &digests);
    if (info->online) match_sidecar(info, info->online, &digests);
    for (sfti_sidecar *sidecar = info->sidecars.first; sidecar; sidecar = sidecar->next)
        match_sidecar(info, sidecar, &digests);
}

bool sfti_info_match_again(sft_info *info, sft_span computed) {
    beside_digests digests;
    parse_digests(info, computed, &digests);
    if (info->code || info->online) return false;
    for (const sfti_sidecar *one = info->sidecars.first; one; one = one->next)
        if (is_matched(one) && lowering(verdict_of(info, one, &digests)) != lowering(one->match))
            return false;
    for (sfti_sidecar *one = info->sidecars.first; one; one = one->next)
        if (is_matched(one)) one->match = verdict_of(info, one, &digests);
    return true;
}

/* ── Finding ── */

/* One folder to look in: the path's own, or that of the link's target. */
typedef struct beside_place {
    const sft_info_folder *folder;
    sft_span path, stem;
    bool speaks; /* rule 7 */
} beside_place;

typedef struct beside_found {
    bool sidecars[BESIDE_ROWS], hub[BESIDE_ROWS];
    uint64_t previews;
} beside_found;

static sfti_sidecar *new_sidecar(sft_info *info, sft_span path, const char *kind) {
    sfti_sidecar *sidecar = sfti_info_push(info, &info->sidecars, sizeof *sidecar);
    if (!sidecar) return NULL;
    sidecar->path = path;
    sidecar->kind = kind;
    sidecar->error = sidecar->source = (sft_span){ "", 0 };
    return sidecar;
}

static void read_sidecar(sft_info *info, const beside_place *place, const sfti_side_row *row,
                         sft_span name) {
    sft_span text;
    sft_span path = sfti_beside_path(info, place->path, name);
    sfti_sidecar *sidecar = info->code ? NULL : new_sidecar(info, path, row->kind);
    if (!sidecar) return;
    sidecar->source = sfti_info_join(info, "sidecar:", name);
    if (info->code || !read_text_file(info, path, name, &text, &sidecar->error)) return;
    row->read(info, sidecar, text, sidecar->source);
}

static void read_named_by_model(sft_info *info, const beside_place *place,
                                beside_found *found) {
    for (size_t i = 0; i < sfti_sidecar_row_count; i++) {
        const sfti_side_row *row = &sfti_sidecar_rows[i];
        const sfti_entry *entry = NULL;
        if (!found->sidecars[i]) entry = sfti_folder_find(place->folder, place->stem, row->suffix);
        if (!entry || info->code) continue;
        found->sidecars[i] = true;
        read_sidecar(info, place, row, entry->name);
    }
}

static bool hub_kind_found(const beside_found *found, const char *kind) {
    for (size_t i = 0; i < sfti_hub_row_count; i++)
        if (found->hub[i] && strcmp(sfti_hub_rows[i].kind, kind) == 0) return true;
    return false;
}

/* The name of a row's file; one in a folder within is there if that folder is. */
static sft_span hub_name(sft_info *info, const beside_place *place, const sfti_side_row *row) {
    const char *slash = strchr(row->stem, '/');
    sft_span none = { NULL, 0 };
    if (slash) {
        sft_span inner = { row->stem, (size_t)(slash - row->stem) };
        if (!sfti_folder_at(place->folder, inner)) return none;
        return sfti_info_text(info, "%s%s", row->stem, row->suffix);
    }
    const sfti_entry *entry = sfti_folder_find(place->folder, sft_span_cstr(row->stem),
                                               row->suffix);
    return entry ? entry->name : none;
}

static void read_named_by_itself(sft_info *info, const beside_place *place,
                                 beside_found *found) {
    for (size_t i = 0; i < sfti_hub_row_count && place->speaks; i++) {
        const sfti_side_row *row = &sfti_hub_rows[i];
        if (info->code || hub_kind_found(found, row->kind)) continue;
        sft_span name = hub_name(info, place, row);
        if (!name.data || info->code) continue;
        found->hub[i] = true;
        read_sidecar(info, place, row, name);
    }
}

static void read_place(sft_info *info, const beside_place *place, beside_found *found) {
    read_named_by_model(info, place, found);
    read_named_by_itself(info, place, found);
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
    for (size_t i = 0; i < sizeof shelves / sizeof *shelves; i++)
        if (sfti_same_letters(name, shelves[i])) return true;
    return name.len == 0 || (name.len > 11 && sfti_starts_with(name, "checkpoint-"));
}

static void folder_facts(sft_info *info, const beside_place *place) {
    sft_span source = sft_span_cstr("folder"), name = place->folder->name;
    sft_span repo = place->folder->repo;
    if (repo.len > 0) {
        repo = sfti_info_copy(info, repo);
        sfti_info_add_text(info, SFT_FACT_REPO, repo, source, 90);
        name = sfti_base_name(repo);
    }
    if (place->speaks && !shelf_name(name))
        sfti_info_add_text(info, SFT_FACT_NAME, sfti_info_copy(info, name), source, 40);
}

/* ── Links ── */

static bool hex_name(sft_span name) {
    for (size_t i = 0; i < name.len; i++)
        if (!strchr("0123456789abcdef", name.data[i]) || !name.data[i]) return false;
    return name.len == 64 || name.len == 40;
}

static sft_info_folder *beside_list(sft_info *info, sft_span path) {
    sft_info_folder *folder = NULL;
    sft_error error = SFT_ERROR_INIT;
    sft_span name = sfti_info_text(info, "%.*s", (int)path.len, path.data);
    if (info->code) return NULL;
    sft_code code = sft_info_folder_open(name.data, info->options.alloc, &folder, &error);
    if (code == SFT_OUT_OF_MEMORY) info->code = code;
    if (!code || info->code) return folder;
    sfti_sidecar *record = new_sidecar(info, name, "folder");
    if (record) record->error = sfti_info_text(info, "%s", error.message);
    return NULL;
}

static void read_beside_target(sft_info *info, const char *target, beside_found *found) {
    sft_span whole = sft_span_cstr(target), name = sfti_base_name(whole);
    if (whole.len == name.len) return;
    sft_span path = { target, whole.len - name.len - (whole.len > name.len + 1) };
    sft_info_folder *folder = beside_list(info, path);
    if (!folder) return;
    beside_place place = { folder, sfti_info_copy(info, path), sfti_stem(name), false };
    place.speaks = sfti_folder_speaks(folder, info, place.stem);
    read_place(info, &place, found);
    sft_info_folder_close(folder);
}

/* A model that is a link: its target's name in a Hub cache is its SHA-256; else what lies
 * beside the target counts too. */
static void follow_link(sft_info *info, const sft_info_folder *folder, beside_found *found) {
    char target[BESIDE_PATH];
    const sfti_entry *entry = folder ? sfti_folder_at(folder, sfti_base_name(info->path)) : NULL;
    if (!entry || entry->kind != OS_LINK) return;
    sft_span path = sfti_info_text(info, "%.*s", (int)info->path.len, info->path.data);
    int failed = info->code ? 0 : os_real_path(path.data, target, sizeof target);
    if (failed) {
        sfti_sidecar *record = new_sidecar(info, path, "folder");
        if (record) (void)beside_failed(info, failed, "follow this link", &record->error);
    }
    if (failed || info->code) return;
    sft_span name = sfti_base_name(sft_span_cstr(target));
    bool alone = info->set && sft_set_shard_count(info->set) == 1;
    if (!hex_name(name)) read_beside_target(info, target, found);
    else if (name.len == 64 && alone)
        sfti_info_claim(info, "sha256", name, sft_span_cstr("filename"), NULL);
}

void sfti_info_beside(sft_info *info, const sft_info_folder *folder) {
    sft_info_folder *own = NULL;
    beside_found found;
    memset(&found, 0, sizeof found);
    if (info->code || info->options.header_only || info->path.len == 0) return;
    if (!folder) folder = own = beside_list(info, info->folder);
    if (folder) {
        beside_place place = { folder, info->folder, info->stem, false };
        place.speaks = info->one_model = sfti_folder_speaks(folder, info, info->stem);
        folder_facts(info, &place);
        read_place(info, &place, &found);
        follow_link(info, folder, &found);
    }
    sft_info_folder_close(own);
    sfti_info_match_sidecars(info, info->computed);
}
