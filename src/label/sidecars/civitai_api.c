/* Sidecars that are answers of CivitAI's interface: one version, or a model with versions. */
#include "label/sidecars/sidecars.h"

#include <string.h>

#define API_FILES 64 /* of one sidecar that are looked at */
#define API_ROWS 160
#define API_HASHES 6

/* ── What one walk gathers ── */

typedef struct api_hash {
    const char *algo;
    sft_span value, source;
} api_hash;

typedef struct api_file {
    api_hash hashes[API_HASHES];
    size_t count;
    int score; /* how well it fits this file; -1: none */
    bool vae;
} api_file;

typedef struct api_state {
    sfti_sidecar_walked side;
    size_t files;
    api_file file, best;
    sft_span type, type_source;
} api_state;

static void api_take_type(sfti_cursor *at) {
    api_state *api = at->ctx;
    if (at->json->type != SFTI_JSON_STRING || api->type.len > 0) return;
    api->type = at->text;
    api->type_source = sfti_cursor_source(at);
}

static void api_take_level(sfti_cursor *at) {
    sfti_sidecar_walked *side = at->ctx;
    if (at->json->type != SFTI_JSON_UINT || at->info->nsfw_level >= 0) return;
    if (at->json->value > INT32_MAX) return;
    at->info->nsfw_level = (int64_t)at->json->value;
    side->sidecar->gave_level = true;
}

/* ── Permissions ── */

/* Whether this sidecar is the one that tells them: the first. */
static bool api_may(sfti_cursor *at) {
    sft_info *info = at->info;
    sfti_sidecar *sidecar = ((sfti_sidecar_walked *)at->ctx)->sidecar;
    if (info->permissions.known) return sidecar->gave_permissions;
    info->permissions.credit = info->permissions.derivatives = info->permissions.relicense = -1;
    info->permissions.known = true;
    sidecar->gave_permissions = true;
    return true;
}

enum { MAY_OMIT_CREDIT, MAY_DERIVE, MAY_RELICENSE };

static void api_take_may(sfti_cursor *at) {
    int yes = sfti_at_bool(at);
    if (yes < 0 || !api_may(at)) return;
    switch (at->row->field) {
    case MAY_OMIT_CREDIT: at->info->permissions.credit = !yes; break;
    case MAY_DERIVE: at->info->permissions.derivatives = yes; break;
    default: at->info->permissions.relicense = yes;
    }
}

static void api_put_use(sft_info *info, sft_span use) {
    sfti_list *list = &info->permissions.commercial;
    use = sfti_trim(use);
    if (sfti_is_placeholder(use) || list->count == 16) return;
    for (const sfti_note *note = list->first; note; note = note->next)
        if (sft_span_equal(note->text, use)) return;
    SFTI_PUSH(info, list, sfti_note, .text = use);
}

/* "Sell", ["Image", "Sell"] or "{Image,Sell}". */
static void api_take_use(sfti_cursor *at) {
    sft_span text = sfti_trim(at->text), piece;
    if (at->json->type == SFTI_JSON_ARRAY) (void)api_may(at);
    if (at->json->type != SFTI_JSON_STRING || !api_may(at)) return;
    if (text.len >= 2 && *text.data == '{') text = (sft_span){ text.data + 1, text.len - 2 };
    while (sfti_next_piece(&text, ',', &piece)) api_put_use(at->info, piece);
}

/* ── Files: the hashes of the one that fits best are claims ── */

static void api_end_file(api_state *api) {
    if (api->file.score > api->best.score) api->best = api->file;
    api->file.score = -1;
    api->file.count = 0;
}

static void api_take_file(sfti_cursor *at) {
    api_state *api = at->ctx;
    api_end_file(api);
    if (api->files++ >= API_FILES) return;
    api->file.score = 0;
    api->file.vae = false;
}

/* The size told here in KiB, in bytes; 0 for none. */
static uint64_t api_size(const sfti_cursor *at) {
    double kilobytes;
    bool told = sfti_parse_double(at->text, &kilobytes) && kilobytes > 0 && kilobytes <= 1e15;
    return told ? (uint64_t)(kilobytes * 1024 + 0.5) : 0;
}

enum { FILE_NAME, FILE_SIZE, FILE_TYPE, FILE_PRIMARY };

static void api_take_file_fact(sfti_cursor *at) {
    api_state *api = at->ctx;
    bool text = at->json->type == SFTI_JSON_STRING;
    if (api->file.score < 0) return;
    switch (at->row->field) {
    case FILE_NAME:
        if (text && sfti_sidecar_own_name(at->info, at->text)) api->file.score += 8;
        break;
    case FILE_SIZE:
        sfti_sidecar_size(at->info, api->side.sidecar, api_size(at));
        if (sfti_sidecar_size_fits(at->info, api_size(at))) api->file.score += 16;
        break;
    case FILE_TYPE:
        if (text && sfti_contains(at->text, "model")) api->file.score += 2;
        api->file.vae = text && sfti_same_letters(at->text, "VAE");
        break;
    default:
        if (sfti_at_bool(at) == 1) api->file.score += 1;
    }
}

static void api_take_hash(sfti_cursor *at) {
    api_state *api = at->ctx;
    if (!sfti_at_text(at) || api->file.score < 0 || api->file.count == API_HASHES) return;
    sft_span source = sfti_cursor_source(at);
    api->file.hashes[api->file.count++] = (api_hash){ at->row->word, at->text, source };
    sfti_sidecar_hash(at->info, api->side.sidecar, at->row->word, at->text, source);
}

/* ── Tables ── */

static const sfti_key_take api_takes[] = {
    { "model_type", api_take_type, NULL, NULL },
    { "level", api_take_level, NULL, NULL },
    { "may", api_take_may, "omit_credit derive relicense", NULL },
    { "use", api_take_use, NULL, NULL },
    { "file", api_take_file, NULL, NULL },
    { "file_fact", api_take_file_fact, "name size type primary", NULL },
    { "file_hash", api_take_hash, NULL, NULL },
};
SFTI_SIDECAR_KEYS(sfti_civitai_model_keys, "civitai-model", api_takes);
SFTI_SIDECAR_KEYS(sfti_civitai_version_keys, "civitai-version", api_takes);

/* ── A version ── */

/* Rows with a place before their patterns; how many were made. */
static size_t put_rows(sft_info *info, sfti_row *out, const char *place, const sfti_row *rows,
                       size_t count) {
    for (size_t i = 0; i < count; i++) {
        out[i] = rows[i];
        if (*place) out[i].pattern = sfti_info_text(info, "%s%s", place, rows[i].pattern).data;
    }
    return info->code ? 0 : count;
}

static void read_answer(sft_info *info, sfti_sidecar *sidecar, sft_span text,
                        const sfti_row *rows, size_t count) {
    api_state api;
    memset(&api, 0, sizeof api);
    api.side.sidecar = sidecar;
    api.side.id_source = sidecar->source;
    api.file.score = api.best.score = -1;
    if (!sfti_info_walk(info, text, sidecar->source, rows, count, &api)) return;
    api_end_file(&api);
    for (size_t i = 0; info->online != sidecar && i < api.best.count; i++)
        sfti_info_claim(info, api.best.hashes[i].algo, api.best.hashes[i].value,
                        api.best.hashes[i].source, NULL);
    sfti_sidecar_ids(info, &api.side);
    if (api.best.vae) api.type = sft_span_cstr("VAE");
    if (api.type.len > 0) sfti_info_declared_kind(info, api.type, api.type_source, 70);
}

void sfti_read_civitai_version(sft_info *info, sfti_sidecar *sidecar, sft_span text,
                               const char *place) {
    sfti_row rows[API_ROWS];
    size_t count = put_rows(info, rows, place, SFTI_KEY_ROWS(sfti_civitai_version_keys));
    read_answer(info, sidecar, text, rows, count);
}

/* ── A model: which of its versions is this file? ── */

typedef struct api_choice {
    uint64_t known;     /* version id told by another sidecar, or 0 */
    int64_t at;         /* version at hand */
    uint64_t versions;
    int score, best;
    int64_t chosen;     /* -1: none */
    bool tie;
} api_choice;

static void api_weigh(api_choice *choice) {
    if (choice->at < 0 || choice->score < choice->best) return;
    choice->tie = choice->score == choice->best;
    choice->best = choice->score;
    choice->chosen = choice->at;
}

static void choose_version(sfti_cursor *at) {
    api_choice *choice = at->ctx;
    api_weigh(choice);
    choice->at = at->index;
    choice->score = 0;
    choice->versions++;
}

enum { CHOOSE_ID = 4, CHOOSE_SIZE = 2, CHOOSE_NAME = 1 };

static void choose_by(sfti_cursor *at) {
    api_choice *choice = at->ctx;
    bool fits = false;
    switch (at->row->field) {
    case CHOOSE_ID: fits = choice->known > 0 && sfti_at_uint(at) == choice->known; break;
    case CHOOSE_SIZE: fits = sfti_sidecar_size_fits(at->info, api_size(at)); break;
    default: fits = sfti_at_text(at) && sfti_sidecar_own_name(at->info, at->text);
    }
    if (fits) choice->score |= at->row->field;
}

static const sfti_key_take choice_takes[] = {
    { "begin", choose_version, NULL, NULL },
    { "by", choose_by, "- name size - id", NULL },
};
SFTI_SIDECAR_KEYS(sfti_civitai_choice_keys, "civitai-choice", choice_takes);

/* Index of the version this file is of, or -1. */
static int64_t api_choose(sft_info *info, sft_span text, sft_span source) {
    api_choice choice = { 0, -1, 0, 0, 0, -1, false };
    for (const sfti_civitai *claim = info->civitai.first; claim; claim = claim->next)
        if (claim->trust >= 90 && claim->version_id > 0) choice.known = claim->version_id;
    if (!sfti_info_walk(info, text, source, SFTI_KEY_ROWS(sfti_civitai_choice_keys), &choice))
        return -1;
    api_weigh(&choice);
    if (choice.versions == 1) return 0;
    return choice.best > 0 && !choice.tie ? choice.chosen : -1;
}

void sfti_read_civitai_model(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    sfti_row rows[API_ROWS];
    int64_t version = api_choose(info, text, sidecar->source);
    size_t count = put_rows(info, rows, "", SFTI_KEY_ROWS(sfti_civitai_model_keys));
    if (version >= 0) {
        sft_span place = sfti_info_text(info, "/modelVersions/%lld", (long long)version);
        count += put_rows(info, rows + count, place.data, SFTI_KEY_ROWS(sfti_civitai_version_keys));
    }
    read_answer(info, sidecar, text, rows, count);
}
