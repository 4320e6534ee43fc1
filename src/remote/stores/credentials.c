/* Keys, region and endpoint for S3, from the environment and the AWS command's files.
 * Tests: test_remote_s3.c. */
#include "remote/stores/credentials.h"

#include "base/error.h"
#include "os/path.h"
#include "remote/http/text.h"

#include <string.h>

#define AWS_FILE_MOST ((size_t)1 << 20)

/* ── Settings of a profile ── */

typedef enum aws_setting {
    AWS_ID,
    AWS_SECRET,
    AWS_SESSION,
    AWS_REGION,
    AWS_ENDPOINT,
    AWS_S3_ENDPOINT, /* of the profile's services */
    AWS_ADDRESSING,
    AWS_SERVICES,    /* the NAME of such a section */
    AWS_IGNORE,      /* no endpoint that is configured counts */
    AWS_OTHER_KEYS,
    AWS_SETTINGS
} aws_setting;

static const struct aws_key {
    const char *parent, *key;
    aws_setting setting;
} aws_keys[] = {
    { NULL, "aws_access_key_id", AWS_ID },
    { NULL, "aws_secret_access_key", AWS_SECRET },
    { NULL, "aws_session_token", AWS_SESSION },
    { NULL, "region", AWS_REGION },
    { NULL, "endpoint_url", AWS_ENDPOINT },
    { NULL, "services", AWS_SERVICES },
    { NULL, "ignore_configured_endpoint_urls", AWS_IGNORE },
    { "s3", "addressing_style", AWS_ADDRESSING },
    { NULL, "sso_session", AWS_OTHER_KEYS },
    { NULL, "sso_start_url", AWS_OTHER_KEYS },
    { NULL, "credential_process", AWS_OTHER_KEYS },
    { NULL, "role_arn", AWS_OTHER_KEYS },
    { NULL, "web_identity_token_file", AWS_OTHER_KEYS },
    { NULL, "login_session", AWS_OTHER_KEYS },
};

/* What is being read, and what was found: values, of AWS_OTHER_KEYS the key. */
typedef struct aws_settings {
    sft_span value[AWS_SETTINGS]; /* data NULL: not there */
    bool found;                   /* the profile is in one of the files */
} aws_settings;

/* Whether a section is "[word name]"; the name may be quoted. */
static bool is_section(sft_span section, const char *word, sft_span name) {
    size_t len = strlen(word);
    if (len > 0) {
        if (!sfti_text_begins(section, word) || section.len == len) return false;
        if (section.data[len] != ' ' && section.data[len] != '\t') return false;
        section = sfti_text_trim(sfti_span_from(section, len));
    }
    char quote = section.len >= 2 ? *section.data : '\0';
    if ((quote == '"' || quote == '\'') && section.data[section.len - 1] == quote)
        section = (sft_span){ section.data + 1, section.len - 2 };
    return sft_span_equal(section, name);
}

static void take_profile(aws_settings *settings, sft_span text, sft_span profile, bool config) {
    sfti_ini ini;
    if (!text.data) return;
    sfti_ini_begin(&ini, text);
    while (sfti_ini_next(&ini)) {
        bool named = sft_span_equal(ini.section, profile);
        if (config)
            named = (named && sft_span_equal(profile, sft_span_cstr("default")))
                 || is_section(ini.section, "profile", profile);
        if (!named) continue;
        settings->found = true;
        for (size_t i = 0; i < sizeof aws_keys / sizeof *aws_keys; i++) {
            const struct aws_key *row = &aws_keys[i];
            bool here = row->parent ? sfti_text_is(ini.parent, row->parent) : ini.parent.len == 0;
            if (!here || !sfti_text_is(ini.key, row->key) || ini.value.len == 0) continue;
            settings->value[row->setting] = row->setting == AWS_OTHER_KEYS ? ini.key : ini.value;
        }
    }
}

/* Endpoints of services stand in a section that the profile names. */
static void take_services(aws_settings *settings, sft_span config) {
    sfti_ini ini;
    sft_span name = settings->value[AWS_SERVICES];
    if (!config.data || !name.data) return;
    sfti_ini_begin(&ini, config);
    while (sfti_ini_next(&ini))
        if (is_section(ini.section, "services", name) && sfti_text_is(ini.parent, "s3")
            && sfti_text_is(ini.key, "endpoint_url") && ini.value.len > 0)
            settings->value[AWS_S3_ENDPOINT] = ini.value;
}

/* ── Where they stand ── */

/* A reading of the environment. The first lack of memory is kept in failed. */
typedef struct aws_reader {
    sft_remote *remote;
    bool failed;
} aws_reader;

static const char *aws_text(aws_reader *reader, sft_span text) {
    if (!text.data || text.len == 0) return NULL;
    char *copy = sfti_arena_copy(&reader->remote->arena, text.data, text.len);
    if (!copy) reader->failed = true;
    return copy;
}

/* The first of two variables that is set (the second may be NULL), or a setting of the profile. */
static const char *aws_choose(aws_reader *reader, const char *first, const char *second,
                              sft_span setting) {
    const char *text = sfti_remote_environment(reader->remote, first);
    if (!text && second) text = sfti_remote_environment(reader->remote, second);
    return aws_text(reader, text ? sft_span_cstr(text) : setting);
}

/* The text of a file that a variable names, or that is in the home folder. */
static sft_span aws_file(aws_reader *reader, const char *variable, const char *below_home) {
    sft_remote *remote = reader->remote;
    sft_buffer path = { .alloc = remote->alloc };
    sft_span text = { NULL, 0 };
    const char *named = sfti_remote_environment(remote, variable);
    const char *name = aws_text(reader, sft_span_cstr(named ? named : below_home));
    if (!name) return text;
    bool at_home = name[0] == '~' && sfti_is_separator(name[1]);
    const char *home = at_home ? sfti_remote_environment(remote, "HOME") : NULL;
    if (at_home && !home) return text;
    if (home && !sfti_buffer_put(&path, home, strlen(home))) reader->failed = true;
    if (at_home) name++;
    if (!sfti_buffer_put(&path, name, strlen(name) + 1)) reader->failed = true;
    if (!reader->failed) text = sfti_remote_small_file(&remote->arena, path.data, AWS_FILE_MOST);
    sft_buffer_free(&path);
    return text;
}

/* Both halves come from one place: a pair of the environment counts, or that of the profile. */
static void take_keys(aws_reader *reader, const aws_settings *settings, sfti_aws *out) {
    sfti_sign_keys *keys = &out->keys;
    sft_span none = { NULL, 0 };
    keys->id = aws_choose(reader, "AWS_ACCESS_KEY_ID", NULL, none);
    keys->secret = aws_choose(reader, "AWS_SECRET_ACCESS_KEY", NULL, none);
    if (keys->id || keys->secret) {
        keys->session = aws_choose(reader, "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN", none);
        if (!keys->secret) out->problem = "AWS_ACCESS_KEY_ID is set, AWS_SECRET_ACCESS_KEY is not";
        if (!keys->id) out->problem = "AWS_SECRET_ACCESS_KEY is set, AWS_ACCESS_KEY_ID is not";
        return;
    }
    keys->id = aws_text(reader, settings->value[AWS_ID]);
    keys->secret = aws_text(reader, settings->value[AWS_SECRET]);
    keys->session = aws_text(reader, settings->value[AWS_SESSION]);
    if (!keys->id != !keys->secret)
        out->problem = "the profile has one half of a pair of keys: expected aws_access_key_id and "
                       "aws_secret_access_key";
    else if (!keys->id)
        out->other_keys = aws_text(reader, settings->value[AWS_OTHER_KEYS]);
}

sft_code sfti_aws_read(sft_remote *remote, sfti_aws *out, sft_error *err) {
    aws_reader reader = { remote, false };
    aws_settings settings = { .found = false };
    sft_span none = { NULL, 0 };
    *out = (sfti_aws){ .problem = NULL };
    const char *named = aws_choose(&reader, "AWS_PROFILE", "AWS_DEFAULT_PROFILE", none);
    out->profile = named ? named : "default";
    sft_span profile = sft_span_cstr(out->profile);
    sft_span config = aws_file(&reader, "AWS_CONFIG_FILE", "~/.aws/config");
    sft_span secrets = aws_file(&reader, "AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials");
    take_profile(&settings, config, profile, true);
    take_services(&settings, config);
    take_profile(&settings, secrets, profile, false);
    take_keys(&reader, &settings, out);
    if (named && !settings.found && !out->keys.id)
        out->problem = "AWS_PROFILE names a profile that is in no file of the AWS command";
    static const char ignore[] = "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS";
    const bool ignored = sfti_remote_environment(remote, ignore)
                             ? sfti_remote_environment_is(remote, ignore)
                             : sfti_text_is(settings.value[AWS_IGNORE], "true");
    if (!ignored) {
        sft_span *own = &settings.value[AWS_S3_ENDPOINT];
        if (!own->data) *own = settings.value[AWS_ENDPOINT];
        out->endpoint = aws_choose(&reader, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", *own);
    }
    out->region = aws_choose(&reader, "AWS_REGION", "AWS_DEFAULT_REGION",
                             settings.value[AWS_REGION]);
    out->addressing = aws_text(&reader, settings.value[AWS_ADDRESSING]);
    return reader.failed ? sfti_fail_memory(err, 0) : SFT_OK;
}
