/* What one sidecar tells, whoever wrote it: takes and endings that its tables share. */
#include "label/sidecars/sidecars.h"
#include "text/formats.h"

#include <string.h>

#define SIDECAR_HASHES 1024 /* of one sidecar */
#define SIDECAR_PROMPTS 10

sfti_sidecar *sfti_sidecar_new(sft_info *info, sft_span path, const char *kind) {
    return SFTI_PUSH(info, &info->sidecars, sfti_sidecar, .path = path, .kind = kind,
                     .error = { "", 0 }, .source = { "", 0 });
}

void sfti_sidecar_fail(sft_info *info, sfti_sidecar *sidecar, const char *why) {
    if (!info->code && sidecar->error.len == 0) sidecar->error = sft_span_cstr(why);
}

bool sfti_sidecar_walk(sft_info *info, sfti_sidecar *sidecar, sft_span text, const sfti_row *rows,
                    size_t row_count, void *ctx) {
    if (sfti_info_walk(info, text, sidecar->source, rows, row_count, ctx)) return true;
    sfti_sidecar_fail(info, sidecar, "expected JSON, found text that is none");
    return false;
}

/* ── What it records of the file ── */

uint64_t sfti_sidecar_file_size(const sft_info *info) {
    if (!info->set || sft_set_shard_count(info->set) != 1) return 0;
    uint64_t size = sft_file_size(sft_set_shard_at(info->set, 0));
    return size == SFT_SIZE_UNKNOWN ? 0 : size;
}

bool sfti_sidecar_size_fits(const sft_info *info, uint64_t bytes) {
    uint64_t size = sfti_sidecar_file_size(info);
    if (size == 0 || bytes == 0) return false;
    return (size > bytes ? size - bytes : bytes - size) <= 1024;
}

void sfti_sidecar_size(const sft_info *info, sfti_sidecar *sidecar, uint64_t bytes) {
    if (bytes == 0 || sfti_sidecar_size_fits(info, sidecar->size_claim)) return;
    if (sidecar->size_claim == 0 || sfti_sidecar_size_fits(info, bytes))
        sidecar->size_claim = bytes;
}

bool sfti_sidecar_own_name(const sft_info *info, sft_span name) {
    name = sfti_path_name(sfti_trim(name));
    return name.len > 0 && sft_span_equal(name, sfti_path_name(info->path));
}

void sfti_sidecar_hash(sft_info *info, sfti_sidecar *sidecar, const char *algo, sft_span value,
                    sft_span source) {
    sft_span hex;
    size_t digits = strcmp(algo, "autov1") == 0 ? 0 : sfti_claim_digits(algo);
    if (sidecar->hashes.count >= SIDECAR_HASHES) return;
    if (sfti_info_hash(info, value, digits, &hex))
        SFTI_PUSH(info, &sidecar->hashes, sfti_claim, .algo = algo, .value = hex,
                  .source = source);
}

static void walked_hash(sfti_cursor *at) {
    sfti_sidecar_walked *side = at->ctx;
    sfti_take_claim(at);
    if (sfti_at_text(at))
        sfti_sidecar_hash(at->info, side->sidecar, at->row->word, at->text, sfti_cursor_source(at));
}

static void walked_bytes(sfti_cursor *at) {
    sfti_sidecar_size(at->info, ((sfti_sidecar_walked *)at->ctx)->sidecar, sfti_at_uint(at));
}

/* ── Ids ── */

static void walked_id(sfti_cursor *at) {
    sfti_sidecar_walked *side = at->ctx;
    uint64_t id = sfti_at_uint(at), *slot = at->row->field ? &side->version_id : &side->model_id;
    if (id == 0) return;
    if (*slot == 0) *slot = id;
    if (side->id_source.len == 0 || at->row->field == 1) side->id_source = sfti_cursor_source(at);
}

void sfti_sidecar_ids(sft_info *info, const sfti_sidecar_walked *side) {
    if (side->origin.len > 0 && !sfti_same_letters(side->origin, "Civitai")) return;
    sfti_civitai *claim = sfti_info_civitai(info, side->model_id, side->version_id,
                                            side->id_source, 90);
    char date[SFTI_DATE_SIZE];
    if (!claim) return;
    claim->air = side->air;
    size_t len = sfti_iso_date(side->published_at, date);
    claim->published_at = sfti_info_copy(info, (sft_span){ date, len });
}

void sfti_sidecar_read(sft_info *info, sfti_sidecar *sidecar, sft_span text,
                       const sfti_keys *keys) {
    sfti_sidecar_walked side = { .sidecar = sidecar };
    if (sfti_sidecar_walk(info, sidecar, text, SFTI_KEY_ROWS(*keys), &side))
        sfti_sidecar_ids(info, &side);
}

/* ── Base model, kind, prompts ── */

static void walked_base(sfti_cursor *at) {
    if (sfti_at_text(at))
        sfti_info_declared_label(at->info, at->text, sfti_cursor_source(at), at->row->trust);
}

static void walked_kind(sfti_cursor *at) {
    if (sfti_at_text(at))
        sfti_info_declared_kind(at->info, at->text, sfti_cursor_source(at), at->row->trust);
}

static const size_t prompt_at[] = {
    offsetof(sfti_prompt, positive), offsetof(sfti_prompt, negative), offsetof(sfti_prompt, seed),
    offsetof(sfti_prompt, steps), offsetof(sfti_prompt, sampler), offsetof(sfti_prompt, cfg),
};

void sfti_sidecar_take_prompt(sfti_cursor *at) {
    sfti_sidecar_walked *side = at->ctx;
    if (!sfti_at_number(at) && !sfti_at_text(at)) return;
    if (!side->prompt || side->prompt_index != at->index) {
        if (side->prompts == SIDECAR_PROMPTS) return;
        side->prompt = SFTI_PUSH(at->info, &at->info->prompts, sfti_prompt,
                                 .source = sfti_cursor_source_above(at, at->row->trust));
        if (!side->prompt) return;
        side->prompt_index = at->index;
        side->prompts++;
    }
    *(sft_span *)(void *)((char *)side->prompt + prompt_at[at->row->field]) = at->text;
}

static void walked_told(sfti_cursor *at) {
    sfti_sidecar_walked *side = at->ctx;
    sft_span *const slots[] = { &side->air, &side->published_at, &side->origin };
    sft_span *slot = slots[at->row->field];
    if (sfti_at_text(at) && slot->len == 0) *slot = sfti_trim(at->text);
}

const sfti_key_take sfti_sidecar_takes[SFTI_SIDECAR_TAKES] = {
    { "id", walked_id, "model version", NULL },
    { "base", walked_base, NULL, NULL },  /* CivitAI's label */
    { "kind", walked_kind, NULL, NULL },  /* CivitAI's type */
    { "hash", walked_hash, NULL, NULL },  /* its word: the algorithm */
    { "bytes", walked_bytes, NULL, NULL },
    { "told", walked_told, "air published_at origin", NULL },
    { "prompt", sfti_sidecar_take_prompt, SFTI_PROMPT_NAMES, NULL },
    { "image", sfti_sidecar_take_image, SFTI_IMAGE_NAMES, NULL },
    { "preview_file", sfti_sidecar_take_preview, "path - - level", NULL },
};
