/* Each pair of __metadata__ goes to the keys of the producers that know it. Tests:
 * test_info_header.c. */
#include "label/header/header.h"
#include "os/os.h"
#include "label/reads.h"
#include "label/sidecars/sidecars.h"
#include "text/formats.h"

#include <string.h>

/* ── A pair and its rows ── */

/* Keys behind a prefix. Of several families that know a key, the first takes it. */
typedef struct key_family {
    const char *prefix;
    const sfti_keys *keys;
    bool bare;     /* only beside sai_model_spec */
    bool any_case;
} key_family;

static const key_family families[] = {
    { "", &sfti_kohya_keys, false, false }, { "modelspec.", &sfti_modelspec_keys, false, false },
    { "", &sfti_trainer_keys, false, false }, { "ssmd_", &sfti_ssmd_keys, false, false },
    { "", &sfti_merge_keys, false, false }, { "", &sfti_graph_keys, false, false },
    { "gguf.general.", &sfti_gguf_keys, false, false }, { "", &sfti_modelspec_keys, true, false },
    { "", &sfti_generic_keys, false, true },
};

static void read_header_keys(void) {
    static const sfti_keys *const all[] = {
        &sfti_kohya_keys, &sfti_modelspec_keys, &sfti_trainer_keys, &sfti_ssmd_keys,
        &sfti_merge_keys, &sfti_recipe_keys, &sfti_graph_keys, &sfti_gguf_keys, &sfti_generic_keys,
        &sfti_header_quantiser_keys, &sfti_dataset_keys, &sfti_dirs_keys, &sfti_reg_dirs_keys,
        &sfti_bucket_keys, &sfti_merge_model_keys, &sfti_merge_made_keys, &sfti_prompt_keys,
        &sfti_workflow_keys,
    };
    for (size_t i = 0; i < SFTI_COUNT(all); i++) sfti_keys_read(all[i], &sfti_common_takes);
}

void sfti_header_keys_ready(void) {
    static bool ready;
    (void)sfti_records_built_in();
    sfti_os_once(&ready, read_header_keys);
}

/* Whether a row's key, which ends at ':' or the end, is the pair's without the prefix. */
static bool key_fits(const key_family *family, const char *pattern, sft_span name) {
    if (family->any_case) return sfti_same_letters(name, pattern);
    if (name.len == 0 || *name.data != *pattern) return false;
    size_t len = strcspn(pattern, ":");
    return len == name.len && memcmp(pattern, name.data, len) == 0;
}

/* known: some family's row may have the whole key. */
static bool take_pair(sfti_cursor *pair, const key_family *family, bool known) {
    const sfti_keys *keys = family->keys;
    size_t prefix = strlen(family->prefix);
    bool taken = false;
    if (!sfti_begins(pair->key, family->prefix)) return false;
    sft_span name = sfti_from(pair->key, prefix);
    if (prefix > 0) known = sfti_records_may_have_key(name);
    if (!known) return false;
    sfti_header_keys_ready();
    for (size_t i = 0; i < keys->made->row_count; i++) {
        const sfti_row *row = &keys->made->rows[i];
        if (!key_fits(family, row->pattern, name)) continue;
        if (!taken) pair->source = sfti_info_join(pair->info, "header:", pair->key);
        taken = true;
        if (!strchr(row->pattern, ':')) {
            pair->info->said = NULL;
            pair->row = row;
            row->take(pair);
            continue;
        }
        /* The rows of places in this key's value stand one after the other. */
        size_t inside = i;
        while (i + 1 < keys->made->row_count
               && key_fits(family, keys->made->rows[i + 1].pattern, name))
            i++;
        (void)sfti_info_walk(pair->info, pair->text, pair->source, row, i - inside + 1, NULL);
    }
    return taken;
}

/* ── The pass ── */

static bool is_header_origin(void *ctx, sft_span origin) {
    sft_info *info = ctx;
    const sfti_sidecar_place place = { info->listed, info->folder, info->stem, false };
    return info->listed
        && sfti_origin_there(info, &place, origin, sft_span_cstr(SFTI_DERIVED_MODEL));
}

void sfti_info_header(sft_info *info) {
    sfti_json string = { .type = SFTI_JSON_STRING };
    sfti_cursor pair = { .info = info, .json = &string, .pointer = "" };
    sfti_derived derived = { .count = 0 };
    sft_span version, origins;
    const size_t shards = sft_set_shard_count(info->set);
    const sft_file *file = NULL;
    size_t pairs = 0;
    for (size_t i = 0; i < shards && pairs == 0; i++) { /* the first that has any */
        file = sft_set_shard_at(info->set, i);
        pairs = sft_file_metadata_count(file);
    }
    if (pairs == 0 || info->code) return;
    bool spec = sfti_info_metadata(info, "sai_model_spec", &version);
    bool kohya = shards > 1, merged = shards > 1; /* another may have such keys */
    /* Keys that --save-as modelspec wrote, of what is still told where it is from. */
    if (sfti_info_metadata(info, SFTI_DERIVED_HEADER, &origins)
        && !sfti_derived_read(origins, &info->arena, is_header_origin, info, &derived))
        info->code = SFT_OUT_OF_MEMORY;
    for (size_t i = 0; i < pairs && !info->code; i++) {
        sft_pair one = sft_file_metadata_at(file, i);
        pair.key = one.key;
        pair.text = one.value;
        if (sfti_is_placeholder(one.value)) continue;
        bool user;
        if (sfti_private_path(one.value, &user)) sfti_info_private(info, one.key, "path");
        if (user) sfti_info_private(info, one.key, "user");
        if (derived.count > 0) {
            sft_span place = sfti_info_join(info, "/", one.key);
            uint64_t digest = sfti_derived_digest(place, SFTI_JSON_STRING, one.value);
            if (!info->code && sfti_derived_has(&derived, digest)) continue;
        }
        /* The first LoRA scripts: "<s1>": "<embed>" is a learned word. */
        if (one.key.len >= 3 && sfti_begins(one.key, "<") && sfti_ends(one.key, ">")
            && sfti_is(one.value, "<embed>"))
            sfti_info_trigger(info, one.key, sfti_info_join(info, "header:", one.key), 90, -1);
        /* Some values of kohya's scripts are read without a row for their key. */
        bool scripts = sfti_begins(one.key, "ss_");
        bool known = scripts || sfti_records_may_have_key(one.key);
        kohya = kohya || scripts;
        merged = merged || sfti_begins(one.key, "sshs_");
        /* Its value, then what other shards say instead: claims like any others. */
        for (size_t s = 0; s <= shards && !info->code; s++) {
            const sft_file *shard = s > 0 ? sft_set_shard_at(info->set, s - 1) : file;
            if (s > 0
                && (shard == file || !sft_file_metadata_get(shard, one.key, &pair.text)
                    || sft_span_equal(pair.text, one.value) || sfti_is_placeholder(pair.text)))
                continue;
            for (size_t f = 0; f < SFTI_COUNT(families); f++)
                if ((!families[f].bare || spec) && take_pair(&pair, &families[f], known)) break;
        }
    }
    if (kohya) sfti_kohya_finish(info);
    if (merged || info->merge_sources.count > 0) sfti_merges_finish(info);
    if (!info->code) sfti_header_copied(info);
}

bool sfti_header_reads(sft_span key) {
    for (size_t f = 0; f < SFTI_COUNT(families); f++)
        if (sfti_begins(key, families[f].prefix)
            && sfti_records_may_have_key(sfti_from(key, strlen(families[f].prefix))))
            return true;
    /* A learned word; and what sources may spell like a place in the value of another key. */
    return sfti_begins(key, "<") || (key.len > 0 && memchr(key.data, ':', key.len));
}
