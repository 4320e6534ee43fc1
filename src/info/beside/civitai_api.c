/* Sidecars that are answers of CivitAI's interface: one version, or a model with versions. */
#include "info/beside/beside.h"

#include <string.h>

#define API_FILES 64   /* of one sidecar that are looked at */
#define API_PROMPTS 10
#define API_ROWS 160
#define API_HASHES 6

/* ── Addresses ── */

static uint64_t number_after(sft_span text, const char *mark) {
    uint64_t value = 0;
    size_t n = 0;
    sft_span at = sfti_find_letters(text, mark);
    if (!at.data) return 0;
    at = (sft_span){ at.data + strlen(mark), at.len - strlen(mark) };
    while (n < at.len && at.data[n] >= '0' && at.data[n] <= '9') n++;
    return sfti_parse_uint((sft_span){ at.data, n }, &value) ? value : 0;
}

bool sfti_civitai_address(sft_span url, uint64_t *model_id, uint64_t *version_id) {
    if (!sfti_contains(url, "civitai.com/") && !sfti_contains(url, "civitai.red/")
        && !sfti_contains(url, "civitai.green/"))
        return false;
    bool download = sfti_contains(url, "/api/download/models/");
    *model_id = download ? 0 : number_after(url, "/models/");
    *version_id = download ? number_after(url, "/api/download/models/")
                           : number_after(url, "modelversionid=");
    return *model_id > 0 || *version_id > 0;
}

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
    sfti_sidecar *sidecar;
    uint64_t model_id, version_id;
    sft_span id_source, air, published_at;
    sfti_prompt *prompt;
    size_t prompt_pointer; /* length of the image's pointer, 0: none */
    char prompt_at[64];
    size_t prompts, files;
    api_file file, best;
    sft_span type, type_source;
} api_state;

static void api_take_id(sfti_walk *walk, const sfti_walk_row *row) {
    api_state *api = walk->ctx;
    uint64_t id = sfti_walk_uint(walk);
    if (id == 0) return;
    if (row->field == 0 && api->model_id == 0) api->model_id = id;
    else if (row->field == 1 && api->version_id == 0) api->version_id = id;
    if (api->id_source.len == 0 || row->field == 1) api->id_source = sfti_walk_source(walk);
}

static void api_take_text(sfti_walk *walk, const sfti_walk_row *row) {
    sft_span *slot = (sft_span *)(void *)((char *)walk->ctx + row->field);
    if (walk->json.type != SFTI_JSON_STRING || slot->len > 0) return;
    if (!sfti_is_placeholder(walk->text)) *slot = sfti_trim(walk->text);
}

static void api_take_type(sfti_walk *walk, const sfti_walk_row *row) {
    api_state *api = walk->ctx;
    (void)row;
    if (walk->json.type != SFTI_JSON_STRING || api->type.len > 0) return;
    api->type = walk->text;
    api->type_source = sfti_walk_source(walk);
}

static void api_take_base(sfti_walk *walk, const sfti_walk_row *row) {
    (void)row;
    if (walk->json.type == SFTI_JSON_STRING)
        sfti_side_base(walk->info, walk->text, sfti_walk_source(walk));
}

static void api_take_nsfw(sfti_walk *walk, const sfti_walk_row *row) {
    bool told = walk->json.type == SFTI_JSON_TRUE || walk->json.type == SFTI_JSON_FALSE;
    if (told) sfti_take_fact(walk, row);
}

static void api_take_level(sfti_walk *walk, const sfti_walk_row *row) {
    api_state *api = walk->ctx;
    uint64_t level;
    (void)row;
    if (walk->json.type != SFTI_JSON_UINT || walk->info->nsfw_level >= 0) return;
    if (!sfti_parse_uint(walk->text, &level) || level > INT32_MAX) return;
    walk->info->nsfw_level = (int64_t)level;
    api->sidecar->gave_level = true;
}

/* ── Permissions ── */

enum { MAY_CREDIT, MAY_DERIVE, MAY_RELICENSE };

static bool api_may(sfti_walk *walk) {
    sft_info *info = walk->info;
    api_state *api = walk->ctx;
    if (info->permissions.known) return api->sidecar->gave_permissions;
    info->permissions.credit = info->permissions.derivatives = info->permissions.relicense = -1;
    info->permissions.known = true;
    api->sidecar->gave_permissions = true;
    return true;
}

static void api_take_may(sfti_walk *walk, const sfti_walk_row *row) {
    bool yes = walk->json.type == SFTI_JSON_TRUE;
    if (!yes && walk->json.type != SFTI_JSON_FALSE) return;
    if (!api_may(walk)) return;
    switch (row->field) {
    case MAY_CREDIT: walk->info->permissions.credit = !yes; break;
    case MAY_DERIVE: walk->info->permissions.derivatives = yes; break;
    default: walk->info->permissions.relicense = yes;
    }
}

static void api_put_use(sft_info *info, sft_span use) {
    sfti_list *list = &info->permissions.commercial;
    use = sfti_trim(use);
    if (sfti_is_placeholder(use) || list->count == 16) return;
    for (const sfti_note *note = list->first; note; note = note->next)
        if (sft_span_equal(note->text, use)) return;
    sfti_note *note = sfti_info_push(info, list, sizeof *note);
    if (note) note->text = use;
}

/* "Sell", ["Image", "Sell"] or "{Image,Sell}". */
static void api_take_use(sfti_walk *walk, const sfti_walk_row *row) {
    sft_span text = sfti_trim(walk->text), piece;
    (void)row;
    if (walk->json.type == SFTI_JSON_ARRAY) (void)api_may(walk);
    if (walk->json.type != SFTI_JSON_STRING || !api_may(walk)) return;
    if (text.len >= 2 && *text.data == '{') text = (sft_span){ text.data + 1, text.len - 2 };
    while (sfti_next_piece(&text, ',', &piece)) api_put_use(walk->info, piece);
}

/* ── Images ── */

static void api_take_image(sfti_walk *walk, const sfti_walk_row *row) {
    api_state *api = walk->ctx;
    size_t len = strlen(walk->pointer);
    (void)row;
    api->prompt = NULL;
    api->prompt_pointer = len < sizeof api->prompt_at ? len : 0;
    memcpy(api->prompt_at, walk->pointer, api->prompt_pointer);
}

static sfti_prompt *api_prompt(sfti_walk *walk) {
    api_state *api = walk->ctx;
    if (api->prompt || api->prompt_pointer == 0 || api->prompts == API_PROMPTS)
        return api->prompt;
    api->prompt = sfti_info_push(walk->info, &walk->info->prompts, sizeof *api->prompt);
    if (!api->prompt) return NULL;
    api->prompts++;
    api->prompt->source = walk->source;
    if (walk->info->online != api->sidecar)
        api->prompt->source =
            sfti_info_text(walk->info, "%.*s:%.*s", (int)walk->source.len, walk->source.data,
                           (int)api->prompt_pointer, api->prompt_at);
    return api->prompt;
}

/* row->field: where in an sfti_prompt. */
static void api_take_prompt(sfti_walk *walk, const sfti_walk_row *row) {
    bool number = walk->json.type == SFTI_JSON_UINT || walk->json.type == SFTI_JSON_NUMBER;
    if (!number && walk->json.type != SFTI_JSON_STRING) return;
    if (sfti_is_placeholder(walk->text)) return;
    sfti_prompt *prompt = api_prompt(walk);
    if (prompt) *(sft_span *)(void *)((char *)prompt + row->field) = walk->text;
}

/* ── Files ── */

static void api_end_file(api_state *api) {
    if (api->file.score > api->best.score) api->best = api->file;
    api->file.score = -1;
    api->file.count = 0;
}

static void api_take_file(sfti_walk *walk, const sfti_walk_row *row) {
    api_state *api = walk->ctx;
    (void)row;
    api_end_file(api);
    if (api->files++ >= API_FILES) return;
    api->file.score = 0;
    api->file.vae = false;
}

enum { FILE_NAME, FILE_SIZE, FILE_TYPE, FILE_PRIMARY };

static int api_size_score(sfti_walk *walk) {
    api_state *api = walk->ctx;
    double kilobytes;
    if (!sfti_parse_double(walk->text, &kilobytes) || kilobytes <= 0 || kilobytes > 1e15) return 0;
    uint64_t bytes = (uint64_t)(kilobytes * 1024 + 0.5);
    sfti_side_size(walk->info, api->sidecar, bytes);
    return sfti_side_size_fits(walk->info, bytes) ? 16 : 0;
}

static void api_take_file_fact(sfti_walk *walk, const sfti_walk_row *row) {
    api_state *api = walk->ctx;
    bool text = walk->json.type == SFTI_JSON_STRING;
    if (api->file.score < 0) return;
    switch (row->field) {
    case FILE_NAME:
        if (text && sfti_side_own_name(walk->info, walk->text)) api->file.score += 8;
        break;
    case FILE_SIZE:
        api->file.score += api_size_score(walk);
        break;
    case FILE_TYPE:
        if (text && sfti_contains(walk->text, "model")) api->file.score += 2;
        api->file.vae = text && sfti_same_letters(walk->text, "VAE");
        break;
    default:
        if (walk->json.type == SFTI_JSON_TRUE) api->file.score += 1;
    }
}

static void api_take_hash(sfti_walk *walk, const sfti_walk_row *row) {
    api_state *api = walk->ctx;
    if (walk->json.type != SFTI_JSON_STRING || api->file.score < 0) return;
    if (api->file.count == API_HASHES || sfti_is_placeholder(walk->text)) return;
    sft_span source = sfti_walk_source(walk);
    api->file.hashes[api->file.count++] = (api_hash){ row->word, walk->text, source };
    sfti_side_hash(walk->info, api->sidecar, row->word, walk->text, source);
}

/* ── Tables ── */

#define AT_PROMPT(member) ((int)offsetof(sfti_prompt, member))
#define AT_STATE(member) ((int)offsetof(api_state, member))

/* Members of a version. */
static const sfti_walk_row api_version_rows[] = {
    { "/id", api_take_id, 1, 90, NULL },
    { "/modelId", api_take_id, 0, 90, NULL },
    { "/name", sfti_take_fact, SFT_FACT_VERSION_NAME, 95, NULL },
    { "/description", sfti_take_html, SFT_FACT_VERSION_DESCRIPTION, 90, NULL },
    { "/baseModel", api_take_base, 0, 70, NULL },
    { "/trainedWords/*", sfti_take_side_word, 0, 95, NULL },
    { "/air", api_take_text, AT_STATE(air), 90, NULL },
    { "/publishedAt", api_take_text, AT_STATE(published_at), 90, NULL },
    { "/nsfwLevel", api_take_level, 0, 95, NULL },
    { "/clipSkip", sfti_take_fact, SFT_FACT_CLIP_SKIP, 95, NULL },
    { "/creator/username", sfti_take_fact, SFT_FACT_AUTHOR, 95, NULL },
    { "/model/name", sfti_take_fact, SFT_FACT_NAME, 95, NULL },
    { "/model/type", api_take_type, 0, 70, NULL },
    { "/model/nsfw", api_take_nsfw, SFT_FACT_NSFW, 95, NULL },
    { "/model/description", sfti_take_html, SFT_FACT_DESCRIPTION, 90, NULL },
    { "/model/tags/*", sfti_take_side_item, SFT_FACT_TAGS, 95, NULL },
    { "/model/creator/username", sfti_take_fact, SFT_FACT_AUTHOR, 95, NULL },
    { "/model/allowNoCredit", api_take_may, MAY_CREDIT, 95, NULL },
    { "/model/allowDerivatives", api_take_may, MAY_DERIVE, 95, NULL },
    { "/model/allowDifferentLicense", api_take_may, MAY_RELICENSE, 95, NULL },
    { "/model/allowCommercialUse", api_take_use, 0, 95, NULL },
    { "/model/allowCommercialUse/*", api_take_use, 0, 95, NULL },
    { "/files/*", api_take_file, 0, 0, NULL },
    { "/files/*/name", api_take_file_fact, FILE_NAME, 0, NULL },
    { "/files/*/sizeKB", api_take_file_fact, FILE_SIZE, 0, NULL },
    { "/files/*/type", api_take_file_fact, FILE_TYPE, 0, NULL },
    { "/files/*/primary", api_take_file_fact, FILE_PRIMARY, 0, NULL },
    { "/files/*/hashes/SHA256", api_take_hash, 0, 0, "sha256" },
    { "/files/*/hashes/AutoV1", api_take_hash, 0, 0, "autov1" },
    { "/files/*/hashes/AutoV2", api_take_hash, 0, 0, "autov2" },
    { "/files/*/hashes/AutoV3", api_take_hash, 0, 0, "autov3" },
    { "/files/*/hashes/CRC32", api_take_hash, 0, 0, "crc32_civitai" },
    { "/files/*/hashes/BLAKE3", api_take_hash, 0, 0, "blake3" },
    { "/images/*", api_take_image, 0, 0, NULL },
    { "/images/*/meta/prompt", api_take_prompt, AT_PROMPT(positive), 0, NULL },
    { "/images/*/meta/negativePrompt", api_take_prompt, AT_PROMPT(negative), 0, NULL },
    { "/images/*/meta/seed", api_take_prompt, AT_PROMPT(seed), 0, NULL },
    { "/images/*/meta/steps", api_take_prompt, AT_PROMPT(steps), 0, NULL },
    { "/images/*/meta/sampler", api_take_prompt, AT_PROMPT(sampler), 0, NULL },
    { "/images/*/meta/cfgScale", api_take_prompt, AT_PROMPT(cfg), 0, NULL },
};

/* Members of a model, but its versions. */
static const sfti_walk_row api_model_rows[] = {
    { "/id", api_take_id, 0, 90, NULL },
    { "/name", sfti_take_fact, SFT_FACT_NAME, 95, NULL },
    { "/description", sfti_take_html, SFT_FACT_DESCRIPTION, 90, NULL },
    { "/type", api_take_type, 0, 70, NULL },
    { "/nsfw", api_take_nsfw, SFT_FACT_NSFW, 95, NULL },
    { "/tags/*", sfti_take_side_item, SFT_FACT_TAGS, 95, NULL },
    { "/creator/username", sfti_take_fact, SFT_FACT_AUTHOR, 95, NULL },
    { "/allowNoCredit", api_take_may, MAY_CREDIT, 95, NULL },
    { "/allowDerivatives", api_take_may, MAY_DERIVE, 95, NULL },
    { "/allowDifferentLicense", api_take_may, MAY_RELICENSE, 95, NULL },
    { "/allowCommercialUse", api_take_use, 0, 95, NULL },
    { "/allowCommercialUse/*", api_take_use, 0, 95, NULL },
};

#define API_COUNT(rows) (sizeof(rows) / sizeof *(rows))

/* Rows with a prefix before their patterns; how many were made. */
static size_t put_rows(sft_info *info, sfti_walk_row *out, const char *prefix,
                       const sfti_walk_row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        out[i] = rows[i];
        if (*prefix)
            out[i].pattern = sfti_info_text(info, "%s%s", prefix, rows[i].pattern).data;
    }
    return info->code ? 0 : count;
}

/* ── After the walk ── */

static void api_claims(sft_info *info, const api_state *api) {
    for (size_t i = 0; i < api->best.count; i++)
        sfti_info_claim(info, api->best.hashes[i].algo, api->best.hashes[i].value,
                        api->best.hashes[i].source, NULL);
}

static void api_ids(sft_info *info, const api_state *api, sft_span source) {
    if (api->model_id == 0 && api->version_id == 0) return;
    sfti_civitai *claim = sfti_info_push(info, &info->civitai, sizeof *claim);
    if (!claim) return;
    claim->model_id = api->model_id;
    claim->version_id = api->version_id;
    claim->source = api->id_source.len > 0 ? api->id_source : source;
    claim->air = api->air;
    claim->published_at = sfti_iso_date(info, api->published_at);
    claim->trust = 90;
}

static void api_finish(sft_info *info, api_state *api, sft_span source) {
    api_end_file(api);
    if (info->online != api->sidecar) api_claims(info, api);
    api_ids(info, api, source);
    if (api->best.vae) sfti_side_kind(info, sft_span_cstr("VAE"), api->type_source);
    else if (api->type.len > 0) sfti_side_kind(info, api->type, api->type_source);
}

static void api_begin(api_state *api, sfti_sidecar *sidecar) {
    memset(api, 0, sizeof *api);
    api->sidecar = sidecar;
    api->file.score = api->best.score = -1;
}

void sfti_read_civitai_version(sft_info *info, sfti_sidecar *sidecar, sft_span text,
                               sft_span source, const char *prefix) {
    sfti_walk_row rows[API_ROWS];
    api_state api;
    api_begin(&api, sidecar);
    size_t count = put_rows(info, rows, prefix, api_version_rows, API_COUNT(api_version_rows));
    if (sfti_info_walk(info, text, source, rows, count, &api)) api_finish(info, &api, source);
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

static void choose_version(sfti_walk *walk, const sfti_walk_row *row) {
    api_choice *choice = walk->ctx;
    (void)row;
    api_weigh(choice);
    choice->at = walk->index;
    choice->score = 0;
    choice->versions++;
}

enum { CHOOSE_ID, CHOOSE_NAME, CHOOSE_SIZE };

static void choose_by(sfti_walk *walk, const sfti_walk_row *row) {
    api_choice *choice = walk->ctx;
    double kilobytes;
    bool fits = false;
    switch (row->field) {
    case CHOOSE_ID: fits = choice->known > 0 && sfti_walk_uint(walk) == choice->known; break;
    case CHOOSE_NAME:
        fits = walk->json.type == SFTI_JSON_STRING && sfti_side_own_name(walk->info, walk->text);
        break;
    default:
        fits = sfti_parse_double(walk->text, &kilobytes) && kilobytes > 0 && kilobytes < 1e15
            && sfti_side_size_fits(walk->info, (uint64_t)(kilobytes * 1024 + 0.5));
    }
    if (fits) choice->score |= row->trust;
}

/* Index of the version this file is of, or -1. */
static int64_t api_choose(sft_info *info, sft_span text, sft_span source) {
    static const sfti_walk_row rows[] = {
        { "/modelVersions/*", choose_version, 0, 0, NULL },
        { "/modelVersions/*/id", choose_by, CHOOSE_ID, 4, NULL },
        { "/modelVersions/*/files/*/name", choose_by, CHOOSE_NAME, 1, NULL },
        { "/modelVersions/*/files/*/sizeKB", choose_by, CHOOSE_SIZE, 2, NULL },
    };
    api_choice choice = { 0, -1, 0, 0, 0, -1, false };
    for (const sfti_civitai *claim = info->civitai.first; claim; claim = claim->next)
        if (claim->trust >= 90 && claim->version_id > 0) choice.known = claim->version_id;
    if (!sfti_info_walk(info, text, source, rows, API_COUNT(rows), &choice)) return -1;
    api_weigh(&choice);
    if (choice.versions == 1) return 0;
    return choice.best > 0 && !choice.tie ? choice.chosen : -1;
}

void sfti_read_civitai_model(sft_info *info, sfti_sidecar *sidecar, sft_span text,
                             sft_span source) {
    sfti_walk_row rows[API_ROWS];
    api_state api;
    char prefix[64] = "/modelVersions/";
    int64_t version = api_choose(info, text, source);
    size_t count = put_rows(info, rows, "", api_model_rows, API_COUNT(api_model_rows));
    if (version >= 0) {
        sft_span digits = sfti_info_text(info, "%lld", (long long)version);
        memcpy(prefix + strlen(prefix), digits.data, digits.len + 1);
        count += put_rows(info, rows + count, prefix, api_version_rows,
                          API_COUNT(api_version_rows));
    }
    api_begin(&api, sidecar);
    if (sfti_info_walk(info, text, source, rows, count, &api)) api_finish(info, &api, source);
}
