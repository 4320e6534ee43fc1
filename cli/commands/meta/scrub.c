/* What of a model's metadata may be private, by its key or what its value is. */
#include "commands/meta/meta.h"

#include "base/glob.h"
#include "support/words.h"

#include <string.h>

/* Keys that trainers and tools fill with what belongs to the machine they ran on; globs, in
 * lower case. */
#define SCRUB_GLOBS 16

static const struct scrub_keys {
    const char *reason, *globs[SCRUB_GLOBS]; /* NULL after the last */
    bool inside; /* members of JSON in a value, too */
} scrub_keys[] = {
    { "a session id",
      { "*session_id", "*run_id", "*job_id" }, true },
    { "names of folders",
      { "*_dir", "*_dirs", "*_path", "*_paths", "*_folder", "*_folders", "*_directory" }, false },
    { "a workflow",
      { "workflow", "prompt", "*_workflow", "extra_pnginfo", "invokeai_*", "sui_image_params" },
      false },
    { "a whole configuration",
      { "*_config_file", "ot_config", "train_config", "training_config", "trainer_config",
        "dataset_config", "job_config", "config_toml", "config_yaml", "*command_line*",
        "*cmdline*", "argv", "*_args_namespace" }, false },
    { "a name",
      { "user", "username", "user_name", "*_user", "*_username", "hostname", "host", "*_host",
        "*_hostname", "machine", "machine_name", "computer*", "email", "*_email" },
      true },
    { "an account",
      { "wandb*" }, true },
    { "a secret",
      { "*_api_key", "api_key", "*apikey", "*api-key", "*access_key*", "*private_key*", "*secret*",
        "*credential*", "authorization", "*_token", "*password*" },
      true },
};

/* Tokens that are words of a vocabulary; so is one whose value begins with < or [. */
static const char *const scrub_words[] = {
    "*bos_token", "*eos_token", "*pad_token", "*unk_token", "*sep_token", "*cls_token",
    "*mask_token", "*start_token", "*end_token", "*stop_token", "*placeholder_token",
    "*trigger_token", "*instance_token", "*class_token", "*initializer_token",
};

/* Keys from whose values the names of folders go; the counts stay, and the tags. */
static const struct scrub_folders {
    const char *key;
    bool whole;
} scrub_folders[] = {
    { "ss_tag_frequency", true },
    { "ss_dataset_dirs", true },
    { "ss_reg_dataset_dirs", true },
    { "ss_datasets", false },
};

static bool is_scrub_key(const char *const *globs, size_t count, sft_span lower) {
    for (size_t i = 0; i < count && globs[i]; i++)
        if (sfti_glob_match(sft_span_cstr(globs[i]), lower)) return true;
    return false;
}

/* key: in lower case. first: byte of its value. */
static const char *key_reason(sft_span key, char first, bool inside) {
    for (size_t i = 0; i < sizeof scrub_keys / sizeof *scrub_keys; i++) {
        const struct scrub_keys *row = &scrub_keys[i];
        if ((inside && !row->inside) || !is_scrub_key(row->globs, SCRUB_GLOBS, key)) continue;
        bool token = cli_ends_with(key, "_token")
                  && (first == '<' || first == '['
                      || is_scrub_key(scrub_words, sizeof scrub_words / sizeof *scrub_words, key));
        if (!token) return row->reason;
    }
    return NULL;
}

/* Members of JSON are found by their quotes, for it may be escaped, cut off or no JSON at all.
 * Those whose value is a text that is not empty count. */
static const char *members_reason(const char *text, size_t len) {
    char lower[128];
    const char *end = text + len, *quote = len ? memchr(text, '"', len) : NULL, *reason = NULL;
    while (quote && !reason) {
        const char *key = quote + 1;
        quote = memchr(key, '"', (size_t)(end - key));
        const char *at = quote ? quote + 1 : end;
        while (at < end && strchr(" \t\r\n", *at)) at++;
        if (at == end || *at++ != ':') continue;
        while (at < end && strchr(" \t\r\n", *at)) at++;
        size_t count = (size_t)(quote - key);
        if (end - at < 2 || *at != '"' || at[1] == '"' || count > sizeof lower) continue;
        for (size_t i = 0; i < count; i++) lower[i] = cli_lower(key[i]);
        reason = key_reason((sft_span){ lower, count }, at[1], true);
    }
    return reason;
}

/* Why a value may be private: as it stands, and what its escapes stand for, also of JSON in JSON;
 * false when out of memory. */
static bool value_reason(sft_span value, sfti_arena *arena, const char **reason) {
    size_t len = value.len;
    char *text = sfti_arena_take(arena, len + 1);
    if (!text) return false;
    if (len > 0) memcpy(text, value.data, len);
    for (int level = 0; level < 3 && !*reason; level++) {
        if (cli_scrub_pictures(text, len)) *reason = "a picture that carries metadata";
        else *reason = cli_scrub_text((sft_span){ text, len });
        if (!*reason) *reason = members_reason(text, len);
        if (!memchr(text, '\\', len)) break;
        len = cli_scrub_unescape(text, len);
    }
    return true;
}

bool cli_scrub(sft_span key, sft_span value, sfti_arena *arena, cli_scrubbed *out) {
    const struct scrub_folders *row = NULL;
    for (size_t i = 0; i < sizeof scrub_folders / sizeof *scrub_folders; i++)
        if (cli_is(key, scrub_folders[i].key)) row = &scrub_folders[i];
    *out = (cli_scrubbed){ NULL, { NULL, 0 } };
    if (row) {
        sft_span left;
        if (!cli_scrub_folders(value, row->whole, arena, &left)) return false;
        const char *more = left.data ? NULL : "names of folders";
        if (left.data && !value_reason(left, arena, &more)) return false;
        if (left.data && !more && sft_span_equal(left, value)) return true;
        out->reason = more ? more : "names of folders";
        if (!more) out->value = left;
        return true;
    }
    char *lower = sfti_arena_take(arena, key.len + 1);
    if (!lower) return false;
    for (size_t i = 0; i < key.len; i++) lower[i] = cli_lower(key.data[i]);
    out->reason = key_reason((sft_span){ lower, key.len }, value.len ? *value.data : '\0', false);
    if (!out->reason) out->reason = cli_scrub_text(key);
    if (out->reason) return true;
    return value_reason(value, arena, &out->reason);
}
