#include "commands/meta_scrub.h"

#include "support/words.h"

#include <string.h>

/* Keys that trainers and tools fill with what belongs to the machine they ran on; globs, in
 * lower case. */
static const struct scrub_key {
    const char *glob, *reason;
} scrub_keys[] = {
    { "*session_id", "a session id" },
    { "*run_id", "a session id" },
    { "*job_id", "a session id" },
    { "*_dir", "names of folders" },
    { "*_dirs", "names of folders" },
    { "*_path", "names of folders" },
    { "*_paths", "names of folders" },
    { "*_folder", "names of folders" },
    { "*_folders", "names of folders" },
    { "*_directory", "names of folders" },
    { "workflow", "a workflow" },
    { "prompt", "a workflow" },
    { "*_workflow", "a workflow" },
    { "extra_pnginfo", "a workflow" },
    { "invokeai_*", "a workflow" },
    { "sui_image_params", "a workflow" },
    { "*_config_file", "a whole configuration" },
    { "ot_config", "a whole configuration" },
    { "train_config", "a whole configuration" },
    { "training_config", "a whole configuration" },
    { "trainer_config", "a whole configuration" },
    { "dataset_config", "a whole configuration" },
    { "job_config", "a whole configuration" },
    { "config_toml", "a whole configuration" },
    { "config_yaml", "a whole configuration" },
    { "*command_line*", "a whole configuration" },
    { "*cmdline*", "a whole configuration" },
    { "argv", "a whole configuration" },
    { "*_args_namespace", "a whole configuration" },
    { "user", "a name" },
    { "username", "a name" },
    { "user_name", "a name" },
    { "*_user", "a name" },
    { "*_username", "a name" },
    { "hostname", "a name" },
    { "host", "a name" },
    { "*_host", "a name" },
    { "*_hostname", "a name" },
    { "machine", "a name" },
    { "machine_name", "a name" },
    { "computer*", "a name" },
    { "email", "a name" },
    { "*_email", "a name" },
    { "wandb*", "an account" },
    { "*_api_key", "a secret" },
    { "api_key", "a secret" },
    { "*_token", "a secret" },
    { "*password*", "a secret" },
};

/* Of these the names of folders go; the counts stay, and the tags. */
static const struct scrub_folders {
    const char *key;
    bool whole;
} scrub_folders[] = {
    { "ss_tag_frequency", true },
    { "ss_dataset_dirs", true },
    { "ss_reg_dataset_dirs", true },
    { "ss_datasets", false },
};

static const char *key_reason(sft_span key) {
    char lower[128];
    size_t len = key.len < sizeof lower ? key.len : sizeof lower;
    for (size_t i = 0; i < len; i++) lower[i] = cli_lower(key.data[i]);
    for (size_t i = 0; i < sizeof scrub_keys / sizeof *scrub_keys; i++) {
        if (cli_glob_match(sft_span_cstr(scrub_keys[i].glob), (sft_span){ lower, len }))
            return scrub_keys[i].reason;
    }
    return cli_scrub_text(key);
}

static const struct scrub_folders *folders_of(sft_span key) {
    for (size_t i = 0; i < sizeof scrub_folders / sizeof *scrub_folders; i++)
        if (cli_is(key, scrub_folders[i].key)) return &scrub_folders[i];
    return NULL;
}

static bool scrub_counts(const struct scrub_folders *row, sft_span value, sfti_arena *arena,
                         cli_scrubbed *out) {
    sft_span left;
    if (!cli_scrub_folders(value, row->whole, arena, &left)) return false;
    const char *more = left.data ? cli_scrub_text(left) : "names of folders";
    if (left.data && !more && sft_span_equal(left, value)) return true;
    out->reason = more ? more : "names of folders";
    if (!more) out->value = left;
    return true;
}

bool cli_scrub(sft_span key, sft_span value, sfti_arena *arena, cli_scrubbed *out) {
    static const char picture[] = "data:image/";
    const struct scrub_folders *row = folders_of(key);
    bool found = false;
    *out = (cli_scrubbed){ NULL, { NULL, 0 } };
    if (row) return scrub_counts(row, value, arena, out);
    out->reason = key_reason(key);
    if (out->reason) return true;
    if (value.len >= sizeof picture - 1 && memcmp(value.data, picture, sizeof picture - 1) == 0) {
        if (!cli_scrub_picture(value, arena, &found)) return false;
        if (found) out->reason = "a picture that carries metadata";
        return true;
    }
    out->reason = cli_scrub_text(value);
    return true;
}
