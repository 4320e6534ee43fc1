/* s3:// and gs://: which requests they make, with whose signature, and what failures mean. */
#define _GNU_SOURCE
#include "unit/remote_script.h"
#include "unit/temp_dir.h"
#include "safetensors_io.h"

#include <stdatomic.h>

#define FILE_TEXT "the bytes of an object"
#define AWS4(id) "AWS4-HMAC-SHA256 Credential=" id
#define XML_ERROR(code, message) \
    "<?xml version=\"1.0\"?><Error><Code>" code "</Code><Message>" message "</Message></Error>"

static const script_variable keys[] = {
    { "AWS_ACCESS_KEY_ID", "AKID" }, { "AWS_SECRET_ACCESS_KEY", "secret" }, { NULL, NULL },
};

/* One request, which succeeds. */
static void check_request(const script_variable *variables, const char *url, const char *asked,
                          const char *sent) {
    script s;
    script_row row = { asked, sent, 206, NULL, FILE_TEXT };
    char text[100];
    sft_error err;
    script_begin(&s, variables, false);
    script_rows(&s, &row, 1);
    sft_code code = script_read(&s, url, text, sizeof text, &err);
    script_judge(&s);
    if (code) fail_msg("%s: %s", url, err.message);
    assert_string_equal(text, FILE_TEXT);
    script_end(&s);
}

/* ── URLs ── */

#define ENV(...) (const script_variable[]){ __VA_ARGS__, { NULL, NULL } }

static void test_s3_urls(void **state) {
    (void)state;
    static const struct { const char *name, *url; } rows[] = {
        { "s3://bucket/key", "https://bucket.s3.amazonaws.com/key" },
        { "s3://bucket/a b/\xc3\xa4+=&;,:@()~%41", "https://bucket.s3.amazonaws.com/"
          "a%20b/%C3%A4%2B%3D%26%3B%2C%3A%40%28%29~%2541" },
        { "s3://bucket//a//b", "https://bucket.s3.amazonaws.com//a//b" },
        { "s3://-bucket/k", "https://s3.amazonaws.com/-bucket/k" },
        { "s3://bucket-/k", "https://s3.amazonaws.com/bucket-/k" },
        { "s3://buc_ket/k", "https://s3.amazonaws.com/buc_ket/k" },
        { "s3://with.dots/key", "https://s3.amazonaws.com/with.dots/key" },
        { "s3://Upper_case/key", "https://s3.amazonaws.com/Upper_case/key" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) check_request(NULL, rows[i].name, rows[i].url, "");
}

static void test_s3_endpoints(void **state) {
    (void)state;
    check_request(ENV({ "AWS_REGION", "eu-west-1" }, { "AWS_DEFAULT_REGION", "no" }),
                  "s3://bucket/k", "https://bucket.s3.eu-west-1.amazonaws.com/k", "");
    check_request(ENV({ "AWS_DEFAULT_REGION", "cn-north-1" }), "s3://bucket/k",
                  "https://bucket.s3.cn-north-1.amazonaws.com.cn/k", "");
    check_request(ENV({ "AWS_ENDPOINT_URL", "http://Minio.Example:9000//" }), "s3://bucket/k",
                  "http://minio.example:9000/bucket/k", "");
    check_request(ENV({ "AWS_ENDPOINT_URL", "http://no.example" },
                      { "AWS_ENDPOINT_URL_S3", "https://store.example/Prefix" }),
                  "s3://bucket/k", "https://store.example/Prefix/bucket/k", "");
    check_request(ENV({ "AWS_ENDPOINT_URL", "http://no.example" },
                      { "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true" }),
                  "s3://bucket/k", "https://bucket.s3.amazonaws.com/k", "");
}

static void test_gs_urls(void **state) {
    (void)state;
    check_request(NULL, "gs://bucket/a b/k", "https://storage.googleapis.com/bucket/a%20b/k", "");
    check_request(NULL, "gs://with.dots/k", "https://storage.googleapis.com/with.dots/k", "");
    check_request(ENV({ "STORAGE_EMULATOR_HOST", "127.0.0.1:4443" }), "gs://bucket/k",
                  "http://127.0.0.1:4443/bucket/k", "");
    check_request(ENV({ "STORAGE_EMULATOR_HOST", "https://emulator.example/" }), "gs://bucket/k",
                  "https://emulator.example/bucket/k", "");
    check_request(keys, "gs://bucket/k", "https://storage.googleapis.com/bucket/k", "");
}

static void test_bad_names(void **state) {
    (void)state;
    static const struct { const char *name; sft_code code; } rows[] = {
        { "s3://", SFT_REMOTE_URL },        { "s3:///key", SFT_REMOTE_URL },
        { "s3://ab/key", SFT_REMOTE_URL },  { "s3://a..b/key", SFT_REMOTE_URL },
        { "s3://.../key", SFT_REMOTE_URL }, { "s3://b%20b/key", SFT_REMOTE_URL },
        { "s3://bucket", SFT_IO_NOT_FILE }, { "s3://bucket/folder/", SFT_IO_NOT_FILE },
        { "gs://bucket/", SFT_IO_NOT_FILE },  { "s3://.bucket/key", SFT_REMOTE_URL },
        { "s3://bucket./key", SFT_REMOTE_URL }, { "s3://buc{ket/key", SFT_REMOTE_URL },
        { "s3://buc`ket/key", SFT_REMOTE_URL }, { "s3://b\xc3\xa4" "ket/key", SFT_REMOTE_URL },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        script s;
        sft_error err;
        char text[10];
        script_begin(&s, NULL, false);
        assert_int_equal(script_read(&s, rows[i].name, text, sizeof text, &err), rows[i].code);
        script_judge(&s);
        script_end(&s);
    }
}

/* ── Who asks ── */

static void test_signed(void **state) {
    (void)state;
    check_request(keys, "s3://bucket/k", "https://bucket.s3.amazonaws.com/k",
                  AWS4("AKID/20"));
    check_request(ENV({ "GOOGLE_OAUTH_ACCESS_TOKEN", "ya29.x" }), "gs://bucket/k",
                  "https://storage.googleapis.com/bucket/k", "Bearer ya29.x");
    check_request(ENV({ "GS_ACCESS_KEY_ID", "GOOG1" }, { "GS_SECRET_ACCESS_KEY", "s" }),
                  "gs://bucket/k", "https://storage.googleapis.com/bucket/k", AWS4("GOOG1/20"));
    check_request(ENV({ "GOOGLE_OAUTH_ACCESS_TOKEN", "ya29.x" }), "s3://bucket/k",
                  "https://bucket.s3.amazonaws.com/k", "");
}

static void test_session(void **state) {
    (void)state;
    script s;
    script_row row = { "https://bucket.s3.amazonaws.com/k", AWS4("ASIA/20"), 206, NULL, FILE_TEXT };
    char text[100];
    sft_error err;
    script_begin(&s, ENV({ "AWS_ACCESS_KEY_ID", "ASIA" }, { "AWS_SECRET_ACCESS_KEY", "s" },
                         { "AWS_SESSION_TOKEN", "token+/=" }), false);
    script_rows(&s, &row, 1);
    assert_int_equal(script_read(&s, "s3://bucket/k", text, sizeof text, &err), SFT_OK);
    script_judge(&s);
    assert_string_equal(s.last_session, "token+/=");
    script_end(&s);
}

static void test_anonymous(void **state) {
    (void)state;
    script s;
    static const script_row rows[] = {
        { "https://bucket.s3.amazonaws.com/k", "", 206, NULL, FILE_TEXT },
        { "https://storage.googleapis.com/bucket/k", "", 206, NULL, FILE_TEXT },
    };
    char text[100];
    sft_error err;
    script_begin(&s, ENV(keys[0], keys[1], { "GOOGLE_OAUTH_ACCESS_TOKEN", "ya29.x" }), true);
    script_rows(&s, rows, COUNT(rows));
    assert_int_equal(script_read(&s, "s3://bucket/k", text, sizeof text, &err), SFT_OK);
    assert_int_equal(script_read(&s, "gs://bucket/k", text, sizeof text, &err), SFT_OK);
    script_judge(&s);
    script_end(&s);
}

/* A redirect leads elsewhere without the signature, also to a host that only begins like it. */
static void test_redirect(void **state) {
    (void)state;
    script s;
    static const script_row rows[] = {
        { "https://bucket.s3.amazonaws.com/k", AWS4("AKID/20"), 302,
          "Location: https://bucket.s3.amazonaws.com.evil.example/k", NULL },
        { "https://bucket.s3.amazonaws.com.evil.example/k", "", 206, NULL, FILE_TEXT },
    };
    char text[100];
    sft_error err;
    script_begin(&s, keys, false);
    script_rows(&s, rows, COUNT(rows));
    assert_int_equal(script_read(&s, "s3://bucket/k", text, sizeof text, &err), SFT_OK);
    script_judge(&s);
    script_end(&s);
}

/* ── Regions and clocks ── */

static void check_twice(const char *url, const script_row *rows, size_t count) {
    script s;
    char text[100];
    sft_error err;
    script_begin(&s, keys, false);
    script_rows(&s, rows, count);
    sft_code code = script_read(&s, url, text, sizeof text, &err);
    script_judge(&s);
    if (code) fail_msg("%s", err.message);
    assert_string_equal(text, FILE_TEXT);
    script_end(&s);
}

#define REGIONAL(host) host ".s3.eu-central-1.amazonaws.com/k"

static void test_region(void **state) {
    (void)state;
    static const script_row told[] = {
        { "https://bucket.s3.amazonaws.com/k", AWS4("AKID/20"), 301,
          "x-amz-bucket-region: eu-central-1", XML_ERROR("PermanentRedirect", "elsewhere") },
        { "https://" REGIONAL("bucket"), AWS4("AKID/20"), 206, NULL, FILE_TEXT },
    };
    check_twice("s3://bucket/k", told, COUNT(told));
    static const script_row malformed[] = {
        { "https://bucket.s3.amazonaws.com/k", AWS4("AKID/20"), 400, NULL,
          XML_ERROR("AuthorizationHeaderMalformed", "The authorization header is malformed; the "
                    "region 'us-east-1' is wrong; expecting 'eu-central-1'") },
        { "https://" REGIONAL("bucket"), AWS4("AKID/20"), 206, NULL, FILE_TEXT },
    };
    check_twice("s3://bucket/k", malformed, COUNT(malformed));
    static const script_row moved[] = {
        { "https://bucket.s3.amazonaws.com/k", AWS4("AKID/20"), 307,
          "x-amz-bucket-region: eu-central-1\nLocation: https://" REGIONAL("bucket"), NULL },
        { "https://" REGIONAL("bucket"), "", 403, NULL, XML_ERROR("AccessDenied", "no") },
        { "https://" REGIONAL("bucket"), AWS4("AKID/20"), 206, NULL, FILE_TEXT },
    };
    check_twice("s3://bucket/k", moved, COUNT(moved));
}

/* The region is learnt once for a bucket, whatever file asked; a region is tried once. */
static void test_region_kept(void **state) {
    (void)state;
    script s;
    static const script_row rows[] = {
        { "https://bucket.s3.amazonaws.com/k", "", 301, "x-amz-bucket-region: eu-central-1", NULL },
        { "https://" REGIONAL("bucket"), "", 206, NULL, FILE_TEXT },
        { "https://bucket.s3.eu-central-1.amazonaws.com/other", "", 206, NULL, FILE_TEXT },
        { "https://tekcub.s3.amazonaws.com/k", "", 301, "x-amz-bucket-region: eu-central-1", NULL },
        { "https://" REGIONAL("tekcub"), "", 301, "x-amz-bucket-region: eu-west-1",
          XML_ERROR("PermanentRedirect", "elsewhere") },
        { "https://gniyl.s3.amazonaws.com/k", "", 301, "x-amz-bucket-region: evil.example/?",
          NULL },
    };
    char text[100];
    sft_error err;
    script_begin(&s, NULL, false);
    script_rows(&s, rows, COUNT(rows));
    assert_int_equal(script_read(&s, "s3://bucket/k", text, sizeof text, &err), SFT_OK);
    assert_int_equal(script_read(&s, "s3://bucket/other", text, sizeof text, &err), SFT_OK);
    assert_int_not_equal(script_read(&s, "s3://tekcub/k", text, sizeof text, &err), SFT_OK);
    assert_non_null(strstr(err.message, "eu-west-1"));
    assert_int_not_equal(script_read(&s, "s3://gniyl/k", text, sizeof text, &err), SFT_OK);
    script_judge(&s);
    script_end(&s);
}

static void test_clock(void **state) {
    (void)state;
    script s;
    static const script_row rows[] = {
        { "https://bucket.s3.amazonaws.com/k", AWS4("AKID/20"), 403,
          "Date: Wed, 01 Jan 2031 00:00:00 GMT", XML_ERROR("RequestTimeTooSkewed", "skewed") },
        { "https://bucket.s3.amazonaws.com/k", AWS4("AKID/20310101/"), 206, NULL, FILE_TEXT },
        { "https://bucket.s3.amazonaws.com/other", AWS4("AKID/20310101/"), 403, NULL,
          XML_ERROR("RequestTimeTooSkewed", "skewed") },
    };
    char text[100];
    sft_error err;
    script_begin(&s, keys, false);
    script_rows(&s, rows, COUNT(rows));
    assert_int_equal(script_read(&s, "s3://bucket/k", text, sizeof text, &err), SFT_OK);
    assert_memory_equal(s.last_date, "20310101T0000", 13);
    assert_int_equal(script_read(&s, "s3://bucket/other", text, sizeof text, &err),
                     SFT_REMOTE_DENIED);
    assert_int_equal(err.hint, SFT_HINT_REMOTE_CLOCK);
    script_judge(&s);
    script_end(&s);
}

/* ── Failures ── */

static void test_failures(void **state) {
    (void)state;
    static const struct {
        const char *url;
        bool keys;
        int status;
        const char *body;
        sft_code code;
        sft_hint hint;
        const char *part;
    } rows[] = {
        { "s3://bucket/k", false, 404, XML_ERROR("NoSuchKey", "x"), SFT_NOT_FOUND, SFT_HINT_NONE,
          "no such object in the bucket (NoSuchKey); the name of a folder ends in a slash" },
        { "s3://bucket/k", false, 404, XML_ERROR("NoSuchBucket", "x"), SFT_NOT_FOUND,
          SFT_HINT_NONE, "no such bucket (NoSuchBucket)" },
        { "s3://bucket/k", false, 403, XML_ERROR("AccessDenied", "x"), SFT_REMOTE_DENIED,
          SFT_HINT_REMOTE_CREDENTIALS,
          "access denied to requests without credentials (AccessDenied)" },
        { "s3://bucket/k", true, 403, XML_ERROR("AccessDenied", "x"), SFT_REMOTE_DENIED,
          SFT_HINT_REMOTE_CREDENTIALS, "access denied (AccessDenied)" },
        { "s3://bucket/k", true, 403, "", SFT_REMOTE_DENIED, SFT_HINT_REMOTE_CREDENTIALS,
          "access denied (status 403)" },
        { "s3://bucket/k", true, 401, "", SFT_REMOTE_DENIED, SFT_HINT_REMOTE_CREDENTIALS,
          "access denied (status 401)" },
        { "s3://bucket/k", true, 403, XML_ERROR("SignatureDoesNotMatch", "x"), SFT_REMOTE_DENIED,
          SFT_HINT_REMOTE_CREDENTIALS, "the secret key is not that of the access key" },
        { "s3://bucket/k", true, 403, XML_ERROR("InvalidAccessKeyId", "x"), SFT_REMOTE_DENIED,
          SFT_HINT_REMOTE_CREDENTIALS, "does not know the access key" },
        { "s3://bucket/k", true, 400, XML_ERROR("ExpiredToken", "x"), SFT_REMOTE_DENIED,
          SFT_HINT_REMOTE_CREDENTIALS, "the session token has expired" },
        { "s3://bucket/k", true, 403, XML_ERROR("InvalidObjectState", "x"), SFT_REMOTE_DENIED,
          SFT_HINT_NONE, "archived" },
        { "s3://bucket/k", true, 400, XML_ERROR("Whatever", "it says"), SFT_REMOTE_STATUS,
          SFT_HINT_NONE, "it says" },
        { "gs://bucket/k", true, 403, XML_ERROR("AccessDenied", "x"), SFT_REMOTE_DENIED,
          SFT_HINT_NONE, "GOOGLE_OAUTH_ACCESS_TOKEN" },
        { "gs://bucket/k", true, 404, XML_ERROR("NoSuchKey", "x"), SFT_NOT_FOUND,
          SFT_HINT_NONE, "no such object" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        script s;
        script_row row = { NULL, NULL, rows[i].status, NULL, rows[i].body };
        row.url = *rows[i].url == 's' ? "https://bucket.s3.amazonaws.com/k"
                                      : "https://storage.googleapis.com/bucket/k";
        sft_error err;
        char text[10];
        script_begin(&s, rows[i].keys ? keys : NULL, false);
        script_rows(&s, &row, 1);
        sft_code code = script_read(&s, rows[i].url, text, sizeof text, &err);
        script_judge(&s);
        if (!strstr(err.message, rows[i].part))
            fail_msg("expected \"%s\", found \"%s\"", rows[i].part, err.message);
        assert_int_equal(code, rows[i].code);
        assert_int_equal(err.code, rows[i].code);
        assert_int_equal(err.hint, rows[i].hint);
        script_end(&s);
    }
}

/* What is stored compressed is unpacked on its way: its ranges are not those of the file. */
static void test_gs_compressed(void **state) {
    (void)state;
    script s;
    static const script_row row = { "https://storage.googleapis.com/bucket/k", "", 206,
                                    "X-Goog-Stored-Content-Encoding: gzip", FILE_TEXT };
    char text[100];
    sft_error err;
    script_begin(&s, NULL, false);
    script_rows(&s, &row, 1);
    assert_int_equal(script_read(&s, "gs://bucket/k", text, sizeof text, &err), SFT_REMOTE_RANGE);
    assert_non_null(strstr(err.message, "gzip"));
    script_judge(&s);
    script_end(&s);
}

/* What is wrong with the settings is told when an object of that store is opened, not before. */
static void test_bad_settings(void **state) {
    (void)state;
    static const struct { script_variable variable; const char *url, *part; } rows[] = {
        { { "AWS_ACCESS_KEY_ID", "AKID" }, "s3://bucket/k", "AWS_SECRET_ACCESS_KEY is not" },
        { { "AWS_SECRET_ACCESS_KEY", "x" }, "s3://bucket/k", "AWS_ACCESS_KEY_ID is not" },
        { { "AWS_PROFILE", "nobody" }, "s3://bucket/k", "AWS_PROFILE names a profile" },
        { { "AWS_ENDPOINT_URL", "ftp://x" }, "s3://bucket/k", "the endpoint is not" },
        { { "AWS_ENDPOINT_URL", "http://u:p@x" }, "s3://bucket/k", "the endpoint is not" },
        { { "GS_ACCESS_KEY_ID", "GOOG" }, "gs://bucket/k", "GS_SECRET_ACCESS_KEY is not" },
        { { "STORAGE_EMULATOR_HOST", "a b" }, "gs://bucket/k", "the endpoint is not" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        script s;
        script_row row = { "https://x.example/k", "", 206, NULL, FILE_TEXT };
        sft_error err;
        char text[100];
        script_begin(&s, ENV(rows[i].variable), false);
        script_rows(&s, &row, 1);
        assert_int_equal(script_read(&s, rows[i].url, text, sizeof text, &err), SFT_REMOTE_DENIED);
        if (!strstr(err.message, rows[i].part))
            fail_msg("expected \"%s\", found \"%s\"", rows[i].part, err.message);
        assert_int_equal(script_read(&s, "https://x.example/k", text, sizeof text, &err), SFT_OK);
        script_judge(&s);
        script_end(&s);
    }
}

/* ── Files of the AWS command ── */

static const char config_text[] =
    "[default]\n"
    "region = eu-west-3\n"
    "[profile work]\n"
    "region = us-west-2\n"
    "aws_access_key_id = CONFIGKEY\n"
    "aws_secret_access_key = x\n"
    "s3 =\n"
    "    addressing_style = path\n"
    "[profile \"lab rat\"]\n"
    "services = local\n"
    "s3 =\n"
    "    addressing_style = virtual\n"
    "[services local]\n"
    "dynamodb =\n"
    "    endpoint_url = http://no.example\n"
    "s3 =\n"
    "    endpoint_url = https://lab.example:9000\n"
    "[profile sso]\n"
    "sso_session = corp\n"
    "[profile half]\n"
    "aws_access_key_id = HALF\n";
static const char credentials_text[] =
    "[default]\n"
    "aws_access_key_id = DEFAULTKEY\n"
    "aws_secret_access_key = x\n"
    "[lab rat]\n"
    "aws_access_key_id = LABKEY\n"
    "aws_secret_access_key = x\n"
    "aws_session_token = labtoken\n"
    "[profile work]\n"
    "aws_access_key_id = NOTTHIS\n"
    "aws_secret_access_key = x\n";

static void write_files(void) {
    if (mkdir(temp_path(".aws"), 0700) != 0) abort();
    temp_write(".aws/config", config_text, sizeof config_text - 1);
    temp_write(".aws/credentials", credentials_text, sizeof credentials_text - 1);
}

static void remove_files(void) {
    if (unlink(temp_path(".aws/config")) || unlink(temp_path(".aws/credentials"))) abort();
    if (rmdir(temp_path(".aws"))) abort();
}

static void test_files(void **state) {
    (void)state;
    write_files();
    script_variable home = { "HOME", temp_dir };
    check_request(ENV(home), "s3://bucket/k", "https://bucket.s3.eu-west-3.amazonaws.com/k",
                  AWS4("DEFAULTKEY/20"));
    check_request(ENV(home, { "AWS_PROFILE", "work" }), "s3://bucket/k",
                  "https://s3.us-west-2.amazonaws.com/bucket/k", AWS4("CONFIGKEY/20"));
    check_request(ENV(home, { "AWS_PROFILE", "lab rat" }, { "AWS_REGION", "mars" }),
                  "s3://bucket/k", "https://bucket.lab.example:9000/k", AWS4("LABKEY/20"));
    check_request(ENV(home, keys[0], keys[1]), "s3://bucket/k",
                  "https://bucket.s3.eu-west-3.amazonaws.com/k", AWS4("AKID/20"));
    check_request(ENV(home, keys[0], keys[1], { "AWS_PROFILE", "nobody" }), "s3://bucket/k",
                  "https://bucket.s3.amazonaws.com/k", AWS4("AKID/20"));
    check_request(ENV({ "AWS_CONFIG_FILE", temp_path(".aws/config") },
                      { "AWS_SHARED_CREDENTIALS_FILE", temp_path("none") }),
                  "s3://bucket/k", "https://bucket.s3.eu-west-3.amazonaws.com/k", "");
    check_request(ENV(home, { "AWS_CONFIG_FILE", temp_path("none") },
                      { "AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials" }),
                  "s3://bucket/k", "https://bucket.s3.amazonaws.com/k", AWS4("DEFAULTKEY/20"));
    static const char *const numbers[] = { "http://[::1]:9000", "http://10.0.0.1:9" };
    for (size_t i = 0; i < 2; i++) { /* no bucket is part of a number */
        char url[64];
        (void)snprintf(url, sizeof url, "%s/bucket/k", numbers[i]);
        check_request(ENV(home, { "AWS_PROFILE", "lab rat" }, { "AWS_REGION", "mars" },
                          { "AWS_ENDPOINT_URL_S3", numbers[i] }),
                      "s3://bucket/k", url, AWS4("LABKEY/20"));
    }
    static const char sections[] =
        "\xef\xbb\xbf[profile]\nregion = a-1\n[profileq]\nregion = b-1\n[profile 'q']\n"
        "region = c-1\r\n[profile\ttab]\n; region = x\nregion: d-1\n[profile \"open]\n"
        "region = e-1\n[profile x]\nregion =\n[services s]\ns3 =\n"
        "  endpoint_url = http://f.example\n"
        "[profile s]\nservices = s\nregion = g-1\n"
        "[profile i]\nignore_configured_endpoint_urls = True\nservices = s\nregion = h-1\n"
        "endpoint_url = http://f.example\n";
    static const struct { const char *profile, *url; } named[] = {
        { "q", "https://bucket.s3.c-1.amazonaws.com/k" },
        { "tab", "https://bucket.s3.d-1.amazonaws.com/k" },
        { "\"open", "https://bucket.s3.e-1.amazonaws.com/k" },
        { "x", "https://bucket.s3.amazonaws.com/k" },
        { "s", "http://f.example/bucket/k" },
        { "i", "https://bucket.s3.h-1.amazonaws.com/k" },
    };
    temp_write(".aws/config", sections, sizeof sections - 1);
    for (size_t i = 0; i < COUNT(named); i++)
        check_request(ENV(keys[0], keys[1], { "AWS_PROFILE", named[i].profile },
                          { "AWS_CONFIG_FILE", temp_path(".aws/config") }),
                      "s3://bucket/k", named[i].url, AWS4("AKID/20"));
    check_request(ENV(keys[0], keys[1], { "AWS_PROFILE", "i" },
                      { "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "false" },
                      { "AWS_CONFIG_FILE", temp_path(".aws/config") }),
                  "s3://bucket/k", "http://f.example/bucket/k", AWS4("AKID/20"));
    remove_files();
}

/* The scope of a signature names the profile's region. */
static void test_scope(void **state) {
    (void)state;
    script s;
    script_row row = { "https://bucket.s3.eu-west-3.amazonaws.com/k", NULL, 206, NULL, FILE_TEXT };
    char text[100];
    sft_error err;
    write_files();
    script_begin(&s, ENV({ "HOME", temp_dir }), false);
    script_rows(&s, &row, 1);
    assert_int_equal(script_read(&s, "s3://bucket/k", text, sizeof text, &err), SFT_OK);
    script_judge(&s);
    assert_non_null(strstr(s.last_authorization, "/eu-west-3/s3/aws4_request, SignedHeaders="
                                                 "host;x-amz-content-sha256;x-amz-date, "));
    script_end(&s);
    remove_files();
}

/* A profile whose keys would have to be asked for elsewhere reads what is public, and says so where
 * that is not enough. */
static void test_other_keys(void **state) {
    (void)state;
    script s;
    static const script_row rows[] = {
        { "https://bucket.s3.amazonaws.com/k", "", 206, NULL, FILE_TEXT },
        { "https://bucket.s3.amazonaws.com/no", "", 403, NULL, XML_ERROR("AccessDenied", "x") },
    };
    char text[100];
    sft_error err;
    write_files();
    script_begin(&s, ENV({ "HOME", temp_dir }, { "AWS_PROFILE", "sso" }), false);
    script_rows(&s, rows, COUNT(rows));
    assert_int_equal(script_read(&s, "s3://bucket/k", text, sizeof text, &err), SFT_OK);
    assert_int_equal(script_read(&s, "s3://bucket/no", text, sizeof text, &err), SFT_REMOTE_DENIED);
    assert_non_null(strstr(err.message, "sso_session"));
    assert_non_null(strstr(err.message, "export-credentials"));
    script_judge(&s);
    script_end(&s);
    script_begin(&s, ENV({ "HOME", temp_dir }, { "AWS_PROFILE", "half" }), false);
    assert_int_equal(script_read(&s, "s3://bucket/k", text, sizeof text, &err), SFT_REMOTE_DENIED);
    assert_non_null(strstr(err.message, "one half of a pair of keys"));
    script_end(&s);
    remove_files();
}

/* ── Folders ── */

#define LIST "?list-type=2&delimiter=%2F&encoding-type=url&prefix="
#define BUCKET "https://bucket.s3.amazonaws.com/"
#define PAGE(inside) "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"http://s3.amazonaws.com/" \
                     "doc/2006-03-01/\"><Name>bucket</Name>" inside "</ListBucketResult>"
#define OBJECT(key, size) "<Contents><Key>" key "</Key><LastModified>x</LastModified><ETag>&quot;" \
                          "1&quot;</ETag><Size>" size "</Size><Owner><ID>z</ID></Owner></Contents>"
#define PREFIX(key) "<CommonPrefixes><Prefix>" key "</Prefix></CommonPrefixes>"

typedef struct listing_text {
    char text[1000];
    size_t len, most, count;
} listing_text;

static bool take_entry(void *ctx, const sft_listed *entry) {
    listing_text *to = ctx;
    char size[30] = "/";
    if (!entry->folder) snprintf(size, sizeof size, " %lld", (long long)entry->bytes);
    to->len += (size_t)snprintf(to->text + to->len, sizeof to->text - to->len, "%s%s\n",
                                entry->name, size);
    return ++to->count < to->most;
}

static sft_code list_folder(const char *folder, const script_row *rows, size_t count, size_t most,
                            listing_text *to, sft_error *err) {
    script s;
    const char *name;
    memset(err, 0, sizeof *err);
    *to = (listing_text){ .most = most };
    script_begin(&s, keys, false);
    script_rows(&s, rows, count);
    assert_int_equal(sft_remote_name(s.remote, folder, &name, err), SFT_OK);
    const sft_files *files = sft_remote_files(s.remote);
    sft_code code = files->vtable->list(files->ctx, name, take_entry, to, err);
    script_judge(&s);
    script_end(&s);
    return code;
}

static void test_list(void **state) {
    (void)state;
    static const struct {
        const char *folder, *url, *body, *entries;
    } rows[] = {
        { "s3://bucket", BUCKET LIST, PAGE(OBJECT("a", "1") PREFIX("f/") OBJECT("z", "99")),
          "a 1\nf/\nz 99\n" },
        { "s3://bucket/", BUCKET LIST, PAGE(""), "" },
        { "s3://bucket/a b/\xc3\xa4", BUCKET LIST "a%20b%2F%C3%A4%2F",
          PAGE("<EncodingType>url</EncodingType>" OBJECT("a+b/%C3%A4/", "0")
               OBJECT("a+b/%C3%A4/x%2By%20z", "5") PREFIX("a+b/%C3%A4/sub%3F/")),
          "x+y z 5\nsub?/\n" },
        { "s3://bucket/p/", BUCKET LIST "p%2F",
          PAGE(OBJECT("p/a&amp;b", "18446744073709551614") OBJECT("p/a+b%20", "?")),
          "a&b -2\na+b%20 -1\n" },
        /* Keys that are no names of entries: empty, of dots, of controls, of another folder. */
        { "s3://bucket/p/", BUCKET LIST "p%2F",
          PAGE(OBJECT("p/", "0") PREFIX("p//") PREFIX("p/../") OBJECT("p/..", "1")
               OBJECT("p/.", "1") OBJECT("q/x", "1") OBJECT("p/a&#10;b", "1") OBJECT("p/a/b", "1")
               OBJECT("p/ok", "1")),
          "ok 1\n" },
        { "gs://bucket/p/", "https://storage.googleapis.com/bucket" LIST "p%2F",
          PAGE(OBJECT("p/x", "1")), "x 1\n" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        script_row row = { rows[i].url, NULL, 200, NULL, rows[i].body };
        listing_text found;
        sft_error err;
        sft_code code = list_folder(rows[i].folder, &row, 1, 100, &found, &err);
        if (code) fail_msg("%s: %s", rows[i].folder, err.message);
        assert_string_equal(found.text, rows[i].entries);
    }
}

static void test_list_pages(void **state) {
    (void)state;
    static const script_row rows[] = {
        { BUCKET LIST "p%2F", AWS4("AKID/20"), 301, "x-amz-bucket-region: eu-west-1", NULL },
        { "https://bucket.s3.eu-west-1.amazonaws.com/" LIST "p%2F", AWS4("AKID/20"), 200, NULL,
          PAGE("<IsTruncated>true</IsTruncated><NextContinuationToken>1+a/=&amp;"
               "</NextContinuationToken>" OBJECT("p/a", "1")) },
        { "https://bucket.s3.eu-west-1.amazonaws.com/" LIST "p%2F"
          "&continuation-token=1%2Ba%2F%3D%26", AWS4("AKID/20"), 200, NULL,
          PAGE("<IsTruncated>false</IsTruncated>" OBJECT("p/b", "2")) },
    };
    listing_text found;
    sft_error err;
    assert_int_equal(list_folder("s3://bucket/p", rows, 3, 100, &found, &err), SFT_OK);
    assert_string_equal(found.text, "a 1\nb 2\n");
    /* Who wants no more is asked no more. */
    assert_int_equal(list_folder("s3://bucket/p", rows, 2, 1, &found, &err), SFT_OK);
    assert_string_equal(found.text, "a 1\n");
}

static void test_list_failures(void **state) {
    (void)state;
    static const struct {
        int status;
        const char *body;
        sft_code code;
        const char *part;
    } rows[] = {
        { 200, PAGE(""), SFT_NOT_FOUND, "this folder has no objects" },
        { 200, "<html></html>", SFT_REMOTE_STATUS, "found <html>" },
        { 200, "no XML", SFT_REMOTE_STATUS, "expected an element at byte 0" },
        { 200, "<ListBucketResult><Contents><Key>p/x</Contents></ListBucketResult>",
          SFT_REMOTE_STATUS, "the end of the element that began last at byte 36" },
        { 200, PAGE("<EncodingType>url</EncodingType>" OBJECT("p/%zz", "1")), SFT_REMOTE_STATUS,
          "expected URL-encoded keys" },
        { 200, PAGE("<IsTruncated>true</IsTruncated>" OBJECT("p/x", "1")), SFT_REMOTE_STATUS,
          "no continuation token" },
        { 403, XML_ERROR("AccessDenied", "x"), SFT_REMOTE_DENIED, "access denied" },
        { 404, XML_ERROR("NoSuchBucket", "x"), SFT_NOT_FOUND, "no such bucket" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        script_row row = { BUCKET LIST "p%2F", NULL, rows[i].status, NULL, rows[i].body };
        listing_text found;
        sft_error err;
        sft_code code = list_folder("s3://bucket/p/", &row, 1, 100, &found, &err);
        if (!strstr(err.message, rows[i].part))
            fail_msg("expected \"%s\", found \"%s\"", rows[i].part, err.message);
        assert_int_equal(code, rows[i].code);
    }
}

/* Every request in turn is lost: what was told before it stays told, and the failure is its own. */
static void test_lost(void **state) {
    (void)state;
    static const script_row rows[] = {
        { BUCKET LIST "p%2F", NULL, 301, "x-amz-bucket-region: eu-west-1", NULL },
        { "https://bucket.s3.eu-west-1.amazonaws.com/" LIST "p%2F", NULL, 200, NULL,
          PAGE("<IsTruncated>true</IsTruncated><NextContinuationToken>1</NextContinuationToken>"
               OBJECT("p/a", "1")) },
        { "https://bucket.s3.eu-west-1.amazonaws.com/" LIST "p%2F&continuation-token=1", NULL, 200,
          NULL, PAGE(OBJECT("p/b", "2")) },
    };
    static const char *const told[] = { "a 1\nb 2\n", "", "", "a 1\n" };
    for (size_t lost = 0; lost < COUNT(told); lost++) {
        script s;
        listing_text found = { .most = 100 };
        sft_error err = { 0 };
        script_begin(&s, keys, false);
        script_rows(&s, rows, lost > 0 ? lost : COUNT(rows));
        s.lost = lost;
        const sft_files *files = sft_remote_files(s.remote);
        sft_code code = files->vtable->list(files->ctx, "s3://bucket/p/", take_entry, &found, &err);
        assert_int_equal(code, lost > 0 ? SFT_REMOTE_NETWORK : SFT_OK);
        assert_string_equal(found.text, told[lost]);
        script_judge(&s);
        script_end(&s);
    }
}

static void test_is_folder(void **state) {
    (void)state;
    assert_true(sft_remote_is_folder("s3://bucket"));
    assert_true(sft_remote_is_folder("s3://bucket/a/"));
    assert_true(sft_remote_is_folder("gs://bucket/"));
    assert_false(sft_remote_is_folder("s3://bucket/a"));
    assert_false(sft_remote_is_folder("s3://x"));
    assert_false(sft_remote_is_folder("https://host/a/"));
}

/* ── Memory ── */

typedef struct rationed { atomic_long left; } rationed;

/* The first `left` allocations succeed. */
static void *rationed_resize(void *ctx, void *ptr, size_t old_size, size_t size) {
    rationed *ration = ctx;
    (void)old_size;
    if (size == 0) {
        free(ptr);
        return NULL;
    }
    return atomic_fetch_sub(&ration->left, 1) > 0 ? realloc(ptr, size) : NULL;
}

/* Every allocation fails once: an error that says so, and nothing is lost. */
static void test_memory(void **state) {
    (void)state;
    static const script_row rows[] = {
        { BUCKET LIST "p%2F", NULL, 200, NULL,
          PAGE("<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
               "<NextContinuationToken>1</NextContinuationToken>" OBJECT("p/a+b", "1")) },
        { BUCKET LIST "p%2F&continuation-token=1", NULL, 200, NULL, PAGE(PREFIX("p/b/")) },
        { BUCKET "p/k", NULL, 206, NULL, FILE_TEXT },
    };
    long most = 0;
    write_files();
    for (bool done = false; !done; most++) {
        rationed ration;
        script s;
        char text[100];
        const char *name;
        listing_text found = { .most = 9 };
        sft_error err = { 0 };
        atomic_init(&ration.left, most);
        sft_allocator alloc = { rationed_resize, &ration };
        sft_code code = script_open(&s, ENV({ "HOME", temp_dir }, { "AWS_PROFILE", "lab rat" },
                                            { "AWS_ENDPOINT_URL_S3", "https://s3.amazonaws.com" }),
                                    false, &alloc, &err);
        if (!code) {
            script_rows(&s, rows, COUNT(rows));
            const sft_files *files = sft_remote_files(s.remote);
            code = sft_remote_name(s.remote, "s3://bucket/p", &name, &err);
            if (!code) code = files->vtable->list(files->ctx, name, take_entry, &found, &err);
            if (!code) code = script_read(&s, "s3://bucket/p/k", text, sizeof text, &err);
            done = !code;
            script_end(&s);
        }
        if (code) assert_int_equal(code, SFT_OUT_OF_MEMORY);
        assert_string_equal(s.problem, "");
    }
    assert_in_range(most, 50, 1000);
    remove_files();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_s3_urls),
        cmocka_unit_test(test_s3_endpoints),
        cmocka_unit_test(test_gs_urls),
        cmocka_unit_test(test_bad_names),
        cmocka_unit_test(test_signed),
        cmocka_unit_test(test_session),
        cmocka_unit_test(test_anonymous),
        cmocka_unit_test(test_redirect),
        cmocka_unit_test(test_region),
        cmocka_unit_test(test_region_kept),
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_gs_compressed),
        cmocka_unit_test(test_bad_settings),
        cmocka_unit_test_setup_teardown(test_files, temp_dir_make, temp_dir_remove),
        cmocka_unit_test_setup_teardown(test_scope, temp_dir_make, temp_dir_remove),
        cmocka_unit_test_setup_teardown(test_other_keys, temp_dir_make, temp_dir_remove),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_list_pages),
        cmocka_unit_test(test_list_failures),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_is_folder),
        cmocka_unit_test_setup_teardown(test_memory, temp_dir_make, temp_dir_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
