/* http:// and https://: users in URLs, CivitAI's downloads and pages, signed URLs. */
#include "unit/remote_script.h"

#define FILE_TEXT "the bytes of a file"
#define CIVITAI "https://civitai.com/api/download/models/"

static const script_variable civitai[] = { { "CIVITAI_API_TOKEN", "civ" }, { NULL, NULL } };

static sft_code read_url(const script_variable *variables, const char *url, const script_row *rows,
                         size_t count, sft_error *err) {
    script s;
    char text[100];
    script_begin(&s, variables, false);
    script_rows(&s, rows, count);
    sft_code code = script_read(&s, url, text, sizeof text, err);
    script_judge(&s);
    if (!code) assert_string_equal(text, FILE_TEXT);
    script_end(&s);
    return code;
}

static void must_read(const script_variable *variables, const char *url, const script_row *rows,
                      size_t count) {
    sft_error err;
    if (read_url(variables, url, rows, count, &err)) fail_msg("%s: %s", url, err.message);
}

static void must_fail(const script_variable *variables, const char *url, const script_row *rows,
                      size_t count, sft_code code, sft_hint hint, const char *part) {
    sft_error err;
    assert_int_equal(read_url(variables, url, rows, count, &err), code);
    if (!strstr(err.message, part)) fail_msg("expected \"%s\", found \"%s\"", part, err.message);
    assert_int_equal(err.hint, hint);
}

/* ── Users ── */

static void test_user(void **state) {
    (void)state;
    static const struct { const char *url, *asked, *sent; } rows[] = {
        { "https://a:b@host.example/f", "https://host.example/f", "Basic YTpi" },
        { "http://u:p%40ss%20word@127.0.0.1:8080/f?q=1", "http://127.0.0.1:8080/f?q=1",
          "Basic dTpwQHNzIHdvcmQ=" },
        { "https://user@host.example/", "https://host.example/", "Basic dXNlcjo=" },
        { "https://:@host.example/f", "https://host.example/f", "Basic Og==" },
        { "https://host.example/f", "https://host.example/f", "" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        script_row row = { rows[i].asked, rows[i].sent, 206, NULL, FILE_TEXT };
        must_read(civitai, rows[i].url, &row, 1);
    }
    must_fail(NULL, "https://a%zz:b@host.example/f", NULL, 0, SFT_REMOTE_URL, SFT_HINT_REMOTE_NAME,
              "expected USER:PASSWORD");
}

/* A password goes along within the origin, and nowhere else. */
static void test_user_redirected(void **state) {
    (void)state;
    static const script_row rows[] = {
        { "https://host.example/f", "Basic YTpi", 302, "Location: /g", NULL },
        { "https://host.example/g", "Basic YTpi", 307,
          "Location: https://host.example:444/h", NULL },
        { "https://host.example:444/h", "", 302, "Location: https://www.host.example/i", NULL },
        { "https://www.host.example/i", "", 206, NULL, FILE_TEXT },
    };
    must_read(NULL, "https://a:b@host.example/f", rows, COUNT(rows));
}

static void test_user_refused(void **state) {
    (void)state;
    static const script_row row = { "https://host.example/f", "Basic YTpi", 401, NULL, NULL };
    must_fail(NULL, "https://a:b@host.example/f", &row, 1, SFT_REMOTE_DENIED, SFT_HINT_NONE,
              "the server does not accept the URL's user and password (status 401)");
}

/* ── CivitAI ── */

static void test_civitai(void **state) {
    (void)state;
    static const script_row storage[] = {
        { CIVITAI "12?type=Model", "Bearer civ", 307,
          "Location: https://store.example/f?X-Amz-Signature=1", NULL },
        { "https://store.example/f?X-Amz-Signature=1", "", 206, NULL, FILE_TEXT },
    };
    must_read(civitai, CIVITAI "12?type=Model", storage, COUNT(storage));
    static const struct { const char *url, *asked, *sent; } rows[] = {
        { CIVITAI "12?token=mine", CIVITAI "12?token=mine", "" },
        { "https://civitai.com/api/v1/models", "https://civitai.com/api/v1/models", "" },
        { "https://civitai.red/api/download/models/12",
          "https://civitai.red/api/download/models/12", "" },
        { "https://civitai.com.evil.example/api/download/models/12",
          "https://civitai.com.evil.example/api/download/models/12", "" },
        { "http://civitai.com/api/download/models/12",
          "http://civitai.com/api/download/models/12", "" },
        { "https://civitai.com:8443/api/download/models/12",
          "https://civitai.com:8443/api/download/models/12", "" },
        { "https://civitai.com/models/7?modelVersionId=12", CIVITAI "12", "Bearer civ" },
        { "https://civitai.com/models/7/some-name?a=b&modelVersionId=12", CIVITAI "12",
          "Bearer civ" },
        { "https://civitai.red/de/models/7/x?modelVersionId=12", CIVITAI "12", "Bearer civ" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        script_row row = { rows[i].asked, rows[i].sent, 206, NULL, FILE_TEXT };
        must_read(civitai, rows[i].url, &row, 1);
    }
}

static void test_civitai_variables(void **state) {
    (void)state;
    static const script_variable rows[][3] = {
        { { "CIVITAI_TOKEN", "civ\n" }, { NULL, NULL } },
        { { "CIVITAI_API_KEY", " civ" }, { NULL, NULL } },
        { { "CIVITAI_API_KEY", "no" }, { "CIVITAI_API_TOKEN", "civ" }, { NULL, NULL } },
    };
    static const script_row row = { CIVITAI "12", "Bearer civ", 206, NULL, FILE_TEXT };
    for (size_t i = 0; i < COUNT(rows); i++) must_read(rows[i], CIVITAI "12", &row, 1);
}

static void test_civitai_pages(void **state) {
    (void)state;
    static const char *const urls[] = {
        "https://civitai.com/models/7", "https://civitai.com/models/7/name?x=1",
        "https://civitai.red/models/7?modelVersionId=",
        "https://civitai.com/models/7?modelVersionId=1/../2",
    };
    for (size_t i = 0; i < COUNT(urls); i++)
        must_fail(civitai, urls[i], NULL, 0, SFT_REMOTE_URL, SFT_HINT_REMOTE_NAME,
                  CIVITAI "VERSION");
}

static void test_civitai_failures(void **state) {
    (void)state;
    static const struct {
        const script_variable *variables;
        const char *url;
        int status;
        sft_code code;
        sft_hint hint;
        const char *part;
    } rows[] = {
        { NULL, CIVITAI "12", 401, SFT_REMOTE_DENIED, SFT_HINT_REMOTE_TOKEN, "requires a token" },
        { civitai, CIVITAI "12", 401, SFT_REMOTE_DENIED, SFT_HINT_REMOTE_BAD_TOKEN,
          "does not accept the token" },
        { civitai, "https://civitai.red/api/download/models/12", 401, SFT_REMOTE_DENIED,
          SFT_HINT_NONE, "sent to https://civitai.com alone" },
        { civitai, CIVITAI "12", 403, SFT_REMOTE_DENIED, SFT_HINT_NONE, "early access" },
        { NULL, CIVITAI "12", 403, SFT_REMOTE_DENIED, SFT_HINT_REMOTE_TOKEN, "early access" },
        { civitai, CIVITAI "12", 404, SFT_NOT_FOUND, SFT_HINT_NONE, "no such version" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        script_row row = { rows[i].url, NULL, rows[i].status, NULL, NULL };
        must_fail(rows[i].variables, rows[i].url, &row, 1, rows[i].code, rows[i].hint,
                  rows[i].part);
    }
}

/* ── Signed URLs ── */

static void test_signed_url(void **state) {
    (void)state;
    static const char *const queries[] = { "X-Amz-Signature=1", "a=b&X-Goog-Signature=1",
                                           "Signature=1", "sv=1&sig=1" };
    for (size_t i = 0; i < COUNT(queries); i++) {
        char url[100];
        snprintf(url, sizeof url, "https://store.example/f?%s", queries[i]);
        script_row row = { url, "", 403, NULL,
                           "<Error><Code>AccessDenied</Code><Message>Request has expired</Message>"
                           "</Error>" };
        must_fail(NULL, url, &row, 1, SFT_REMOTE_DENIED, SFT_HINT_REMOTE_SIGNED,
                  "AccessDenied: Request has expired");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_user),
        cmocka_unit_test(test_user_redirected),
        cmocka_unit_test(test_user_refused),
        cmocka_unit_test(test_civitai),
        cmocka_unit_test(test_civitai_variables),
        cmocka_unit_test(test_civitai_pages),
        cmocka_unit_test(test_civitai_failures),
        cmocka_unit_test(test_signed_url),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
