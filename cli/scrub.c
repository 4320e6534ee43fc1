#include "scrub.h"

#include "words.h"

#include <string.h>

/* Keys that trainers and tools fill with what belongs to the machine they ran on; globs, in
 * lower case. */
static const struct scrub_key {
    const char *glob, *reason;
} scrub_keys[] = {
    { "*session_id", "a session id" },
    { "ss_dataset_dirs", "names of folders" },
    { "ss_reg_dataset_dirs", "names of folders" },
    { "ss_datasets", "names of folders" },
    { "ss_tag_frequency", "names of folders" },
    { "*_dir", "names of folders" },
    { "*_dirs", "names of folders" },
    { "*_path", "names of folders" },
    { "*_paths", "names of folders" },
    { "workflow", "a workflow" },
    { "prompt", "a workflow" },
    { "*_workflow", "a workflow" },
    { "extra_pnginfo", "a workflow" },
    { "*_config_file", "a whole configuration" },
    { "ot_config", "a whole configuration" },
    { "train_config", "a whole configuration" },
    { "training_config", "a whole configuration" },
    { "job_config", "a whole configuration" },
    { "config_toml", "a whole configuration" },
    { "*command_line*", "a whole configuration" },
    { "*cmdline*", "a whole configuration" },
    { "argv", "a whole configuration" },
    { "*_args_namespace", "a whole configuration" },
    { "user", "a name" },
    { "username", "a name" },
    { "*_user", "a name" },
    { "hostname", "a name" },
    { "host", "a name" },
    { "*_hostname", "a name" },
    { "machine", "a name" },
    { "email", "a name" },
    { "wandb*", "an account" },
    { "*_api_key", "a secret" },
    { "hf_token", "a secret" },
    { "*_access_token", "a secret" },
};

/* Beginnings of absolute paths, wherever a word begins. */
static const char *const path_roots[] = {
    "/home/", "/users/", "/root/", "/mnt/", "/media/", "/workspace/", "/data/", "/content/",
    "/tmp/", "/var/", "/opt/", "/srv/", "/etc/", "/volumes/", "/kaggle/", "/notebooks/",
    "/storage/", "/runpod", "/scratch/", "/private/", "/app/", "~/", "file://", "\\\\",
};

static char scrub_lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static bool is_letter(char c) {
    c = scrub_lower(c);
    return c >= 'a' && c <= 'z';
}

static bool begins_with(const char *at, size_t left, const char *root) {
    size_t len = strlen(root);
    if (left < len) return false;
    for (size_t i = 0; i < len; i++)
        if (scrub_lower(at[i]) != root[i]) return false;
    return true;
}

/* "C:\" and "C:/", not the end of a word such as "http://". */
static bool is_drive(const char *at, size_t left, char before) {
    if (left < 4 || !is_letter(at[0]) || at[1] != ':') return false;
    if (is_letter(before) || (before >= '0' && before <= '9')) return false;
    return at[2] == '\\' || (at[2] == '/' && at[3] != '/');
}

static bool starts_word(char before) {
    return before == '\0' || strchr(" \t\r\n\"'`=:,;([{<>|", before) != NULL;
}

static bool has_path(sft_span value) {
    for (size_t i = 0; i < value.len; i++) {
        const char *at = value.data + i;
        char before = i > 0 ? at[-1] : '\0';
        size_t left = value.len - i;
        if (is_drive(at, left, before)) return true;
        if ((*at != '/' && *at != '~' && *at != '\\' && scrub_lower(*at) != 'f')
            || !starts_word(before))
            continue;
        for (size_t r = 0; r < sizeof path_roots / sizeof *path_roots; r++)
            if (begins_with(at, left, path_roots[r])) return true;
    }
    return false;
}

/* A picture is no text. */
static bool is_picture(sft_span value) {
    return begins_with(value.data, value.len, "data:image/");
}

const char *cli_scrub_reason(sft_span key, sft_span value) {
    char lower[128];
    size_t len = key.len < sizeof lower ? key.len : sizeof lower;
    for (size_t i = 0; i < len; i++) lower[i] = scrub_lower(key.data[i]);
    for (size_t i = 0; i < sizeof scrub_keys / sizeof *scrub_keys; i++) {
        if (cli_glob_match(sft_span_cstr(scrub_keys[i].glob), (sft_span){ lower, len }))
            return scrub_keys[i].reason;
    }
    return !is_picture(value) && has_path(value) ? "an absolute path" : NULL;
}
