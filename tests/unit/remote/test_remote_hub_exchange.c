/* What is said to the Hub, request by request: over a transport that answers by a table and notes
 * who was asked, with or without the token. */
#include "unit/hub_case.h"

#include "unit/make_file.h"

#include <pthread.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define HUB "http://hub.test"
#define CDN "http://cdn.test"
#define MAIN HUB "/o/n/resolve/main/"
#define PINNED HUB "/o/n/resolve/" HUB_COMMIT "/"
#define TREE HUB "/api/models/o/n/tree/" HUB_COMMIT "?recursive=true"
#define REVISION HUB "/api/models/o/n/revision/main?expand%5B%5D=sha"
#define COMMIT_LINE "X-Repo-Commit: " HUB_COMMIT
#define SHA256_LINE "X-Linked-Etag: \"" HUB_SHA256 "\""

/* ── The transport ── */

typedef struct hub_rule {
    const char *url;
    int status;
    const char *lines[4]; /* "name: value" */
    const char *body;     /* NULL: the model, by ranges */
} hub_rule;

typedef struct fake_hub {
    pthread_mutex_t mutex;
    const hub_rule *rules;
    test_file model;
    char log[16384]; /* a line a request: URL, and "token" if it came along */
} fake_hub;

static fake_hub fake;

static sft_span header_of(const sft_http_request *request, const char *name) {
    for (size_t i = 0; i < request->header_count; i++)
        if (sft_span_equal(request->headers[i].key, sft_span_cstr(name)))
            return request->headers[i].value;
    return (sft_span){ NULL, 0 };
}

static void note_request(const sft_http_request *request) {
    sft_span token = header_of(request, "authorization");
    if (token.data) assert_true(sft_span_equal(token, sft_span_cstr("Bearer " HUB_TOKEN)));
    for (size_t i = 0; i < request->header_count; i++)
        if (!token.data || request->headers[i].value.data != token.data)
            assert_null(memmem(request->headers[i].value.data, request->headers[i].value.len,
                               HUB_TOKEN, strlen(HUB_TOKEN)));
    pthread_mutex_lock(&fake.mutex);
    size_t len = strlen(fake.log);
    (void)snprintf(fake.log + len, sizeof fake.log - len, "%s%s\n", request->url,
                   token.data ? " token" : "");
    pthread_mutex_unlock(&fake.mutex);
}

static sft_code fake_send(void *ctx, const sft_http_request *request,
                          const sft_http_receiver *receiver, sft_error *err) {
    static const hub_rule none = { "", 404, { NULL }, "no such page" };
    const hub_rule *rule = fake.rules;
    char range[80], length[40];
    sft_pair pairs[8];
    size_t count = 0;
    (void)ctx, (void)err;
    note_request(request);
    while (rule->url && strcmp(rule->url, request->url) != 0) rule++;
    if (!rule->url) rule = &none;
    for (; count < COUNT(rule->lines) && rule->lines[count]; count++) {
        const char *colon = strchr(rule->lines[count], ':');
        pairs[count].key = (sft_span){ rule->lines[count], (size_t)(colon - rule->lines[count]) };
        pairs[count].value = sft_span_cstr(colon + 2);
    }
    sft_span body = rule->body ? sft_span_cstr(rule->body)
                               : (sft_span){ (const char *)fake.model.bytes, fake.model.len };
    unsigned long long begin = 0, end = 0;
    if (!rule->body) {
        sft_span asked = header_of(request, "range");
        (void)snprintf(range, sizeof range, "%.*s", (int)asked.len, asked.data ? asked.data : "");
        assert_int_equal(sscanf(range, "bytes=%llu-%llu", &begin, &end), 2);
        if (end >= body.len) end = body.len - 1;
        (void)snprintf(range, sizeof range, "bytes %llu-%llu/%zu", begin, end, body.len);
        body = (sft_span){ body.data + begin, (size_t)(end + 1 - begin) };
        pairs[count++] = (sft_pair){ sft_span_cstr("Content-Range"), sft_span_cstr(range) };
        pairs[count++] = (sft_pair){ sft_span_cstr("ETag"), sft_span_cstr("\"e\"") };
    }
    (void)snprintf(length, sizeof length, "%zu", body.len);
    pairs[count++] = (sft_pair){ sft_span_cstr("Content-Length"), sft_span_cstr(length) };
    if (!receiver->head(receiver->ctx, rule->status, pairs, count)) return SFT_OK;
    (void)receiver->body(receiver->ctx, body.data, body.len);
    return SFT_OK;
}

static const sft_transport_vtable fake_vtable = { sizeof fake_vtable, fake_send, NULL };
static const sft_transport fake_transport = { NULL, &fake_vtable };

/* ── Remotes over it ── */

static const hub_variable usual[] = { { "HF_ENDPOINT", HUB }, { "HF_TOKEN", HUB_TOKEN },
                                      { "HF_HUB_CACHE", "hub" }, { NULL, NULL } };

static sft_remote *remote_open(const hub_rule *rules, const hub_variable *variables,
                               bool offline) {
    sft_remote_options options = SFT_REMOTE_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_remote *remote;
    hub_set_variables(variables);
    fake.rules = rules;
    fake.log[0] = '\0';
    options.transport = &fake_transport;
    options.environment = hub_variable_of;
    options.offline = offline;
    options.retries = UINT32_MAX;
    if (sft_remote_open(&options, &remote, &err)) fail_msg("%s", err.message);
    return remote;
}

static sft_code open_name(sft_remote *remote, const char *url, const char **name,
                          sft_error *err) {
    const sft_files *files = sft_remote_files(remote);
    sft_file *file = NULL;
    sft_source source;
    sft_code code = sft_remote_name(remote, url, name, err);
    if (!code) code = files->vtable->open(files->ctx, *name, NULL, &source, err);
    if (!code) code = sft_open_source(source, NULL, &file, err);
    if (!code) {
        assert_int_equal(sft_file_tensor_count(file), 1);
        assert_int_equal(sft_file_size(file), fake.model.len);
    }
    sft_close(file);
    return code;
}

static void expect_open(sft_remote *remote, const char *url, sft_remote_claim *claim) {
    sft_error err = SFT_ERROR_INIT;
    const char *name;
    if (open_name(remote, url, &name, &err)) fail_msg("%s: %s\n%s", url, err.message, fake.log);
    assert_true(sft_remote_claims(remote, name, claim));
}

static void expect_log(const char *log) {
    if (strcmp(fake.log, log) != 0) fail_msg("expected\n%sfound\n%s", log, fake.log);
    fake.log[0] = '\0';
}

static int begin_case(void **state) {
    fake.model = make_file("{\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", NULL,
                           4);
    return hub_temp_make(state);
}

static int end_case(void **state) {
    free_file(&fake.model);
    return hub_temp_remove(state);
}

/* ── Files ── */

static const hub_rule large[] = {
    { MAIN "model.safetensors", 302,
      { COMMIT_LINE, SHA256_LINE, "Location: " CDN "/x?Signature=s" }, "Found" },
    { PINNED "second.safetensors", 302, { COMMIT_LINE, "Location: " CDN "/y" }, "Found" },
    { CDN "/x?Signature=s", 206, { NULL }, NULL },
    { CDN "/y", 206, { "X-Repo-Commit: " HUB_OTHER }, NULL },
    { NULL, 0, { NULL }, NULL },
};

static void redirects_lose_the_token(void **state) {
    sft_remote_claim claim;
    sft_remote *remote = remote_open(large, usual, false);
    (void)state;
    expect_open(remote, "hf://o/n/model.safetensors", &claim);
    expect_log(MAIN "model.safetensors token\n" CDN "/x?Signature=s\n");
    assert_string_equal(claim.sha256, HUB_SHA256);
    assert_string_equal(claim.commit, HUB_COMMIT);
    assert_int_equal(claim.bytes, fake.model.len);
    assert_false(claim.local);
    /* A later file is of the commit of the first. */
    expect_open(remote, "hf://o/n@main/second.safetensors", &claim);
    expect_log(PINNED "second.safetensors token\n" CDN "/y\n");
    assert_string_equal(claim.commit, HUB_COMMIT);
    assert_string_equal(claim.sha256, "");
    sft_remote_close(remote);
}

static void pages_of_the_web_are_read_as_files(void **state) {
    sft_remote_claim claim;
    sft_remote *remote = remote_open(large, usual, false);
    (void)state;
    expect_open(remote, "https://huggingface.co/o/n/blob/main/model.safetensors?download=true",
                &claim);
    expect_log(MAIN "model.safetensors token\n" CDN "/x?Signature=s\n");
    sft_remote_close(remote);
}

static void renamed_repositories_keep_the_token(void **state) {
    static const hub_rule rules[] = {
        { MAIN "model.safetensors", 307, { "Location: /new/n/resolve/main/model.safetensors" },
          "Temporary Redirect" },
        { HUB "/new/n/resolve/main/model.safetensors", 206, { COMMIT_LINE }, NULL },
        { NULL, 0, { NULL }, NULL },
    };
    sft_remote_claim claim;
    sft_remote *remote = remote_open(rules, usual, false);
    (void)state;
    expect_open(remote, "hf://o/n/model.safetensors", &claim);
    expect_log(MAIN "model.safetensors token\n" HUB
               "/new/n/resolve/main/model.safetensors token\n");
    assert_string_equal(claim.commit, HUB_COMMIT);
    sft_remote_close(remote);
}

/* Hosts that look like the Hub's are not, nor is the Hub by another scheme or port. */
static void lookalikes_get_no_token(void **state) {
    static const char *const hosts[] = {
        "http://hub.test.example/x", "http://evil.test/hub.test?u=http://hub.test/",
        "http://hub.test:81/x", "http://hub.testing/x", "http://cdn.hub.test/x",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(hosts); i++) {
        char location[200], log[400];
        sft_remote_claim claim;
        (void)snprintf(location, sizeof location, "Location: %s", hosts[i]);
        (void)snprintf(log, sizeof log, MAIN "model.safetensors token\n%s\n", hosts[i]);
        const hub_rule rules[] = { { MAIN "model.safetensors", 302, { location }, "Found" },
                                   { hosts[i], 206, { NULL }, NULL },
                                   { NULL, 0, { NULL }, NULL } };
        sft_remote *remote = remote_open(rules, usual, false);
        expect_open(remote, "hf://o/n/model.safetensors", &claim);
        expect_log(log);
        sft_remote_close(remote);
    }
}

static void plant_model(void) {
    hub_put("hub/models--o--n/refs/main", HUB_COMMIT);
    hub_link("hub/models--o--n/snapshots/" HUB_COMMIT "/model.safetensors",
             "../../blobs/" HUB_SHA256);
    hub_put("hub/models--o--n/blobs/" HUB_SHA256, "");
    FILE *file = fopen("hub/models--o--n/blobs/" HUB_SHA256, "wb");
    assert_int_equal(fwrite(fake.model.bytes, 1, fake.model.len, file), fake.model.len);
    assert_int_equal(fclose(file), 0);
}

static void cache_saves_the_bytes(void **state) {
    sft_remote_claim claim;
    (void)state;
    plant_model();
    sft_remote *remote = remote_open(large, usual, false);
    expect_open(remote, "hf://o/n/model.safetensors", &claim);
    expect_log(MAIN "model.safetensors token\n");
    assert_true(claim.local);
    assert_string_equal(claim.sha256, HUB_SHA256);
    assert_string_equal(claim.commit, HUB_COMMIT);
    sft_remote_close(remote);
    /* A commit needs no request at all. */
    remote = remote_open(large, usual, false);
    expect_open(remote, "hf://o/n@" HUB_COMMIT "/model.safetensors", &claim);
    expect_log("");
    assert_true(claim.local);
    sft_remote_close(remote);
}

static void offline_sends_nothing(void **state) {
    static const hub_variable variables[] = { { "HF_ENDPOINT", HUB }, { "HF_HUB_CACHE", "hub" },
                                              { "HF_HUB_OFFLINE", "1" }, { NULL, NULL } };
    (void)state;
    plant_model();
    for (int by_option = 0; by_option < 2; by_option++) {
        sft_error err = SFT_ERROR_INIT;
        sft_remote_claim claim;
        const char *name;
        sft_remote *remote = remote_open(large, by_option ? usual : variables, by_option);
        expect_open(remote, "hf://o/n/model.safetensors", &claim);
        assert_true(claim.local);
        assert_int_equal(open_name(remote, "hf://o/n/second.safetensors", &name, &err),
                         SFT_REMOTE_OFFLINE);
        assert_non_null(strstr(err.message, "no such file"));
        expect_log("");
        sft_remote_close(remote);
    }
}

/* ── Failures ── */

static void failures_are_sentences(void **state) {
    static const struct {
        hub_rule rule;
        sft_code code;
        const char *words;
    } cases[] = {
        { { MAIN "x", 401, { "X-Error-Code: RepoNotFound",
            "X-Error-Message: Invalid username or password." }, "" }, SFT_REMOTE_DENIED,
          "no repository \"o/n\", or none that may be read with the token of HF_TOKEN" },
        { { MAIN "x", 401, { "X-Error-Message: Invalid credentials in Authorization header" }, "" },
          SFT_REMOTE_DENIED, "does not accept the token of HF_TOKEN" },
        { { MAIN "x", 403, { "X-Error-Code: GatedRepo" }, "" }, SFT_REMOTE_DENIED,
          "accepted its terms, at " HUB "/o/n" },
        { { MAIN "x", 404, { "X-Error-Code: EntryNotFound" }, "" }, SFT_NOT_FOUND,
          "\"o/n\" has no \"x\" at \"main\"" },
        { { MAIN "x", 404, { "X-Error-Code: RevisionNotFound" }, "" }, SFT_NOT_FOUND,
          "has no revision \"main\"" },
        { { MAIN "x", 429, { "RateLimit: \"resolvers\";r=0;t=3950" }, "" }, SFT_REMOTE_BUSY,
          "66 minutes" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const hub_rule rules[] = { cases[i].rule, { NULL, 0, { NULL }, NULL } };
        sft_error err = SFT_ERROR_INIT;
        const char *name;
        sft_remote *remote = remote_open(rules, usual, false);
        sft_code code = open_name(remote, "hf://o/n/x", &name, &err);
        if (code != cases[i].code || !strstr(err.message, cases[i].words))
            fail_msg("%zu: %d: %s", i, code, err.message);
        assert_null(strstr(err.message, HUB_TOKEN));
        expect_log(MAIN "x token\n");
        sft_remote_close(remote);
    }
}

/* ── Folders ── */

static bool note_entry(void *ctx, const sft_listed *entry) {
    char *all = ctx;
    size_t len = strlen(all);
    (void)snprintf(all + len, 1024 - len, "%s%s %lld\n", entry->name, entry->folder ? "/" : "",
                   (long long)entry->bytes);
    return true;
}

static sft_code list_name(sft_remote *remote, const char *name, char all[1024], sft_error *err) {
    const sft_files *files = sft_remote_files(remote);
    all[0] = '\0';
    return files->vtable->list(files->ctx, name, note_entry, all, err);
}

static void expect_list(sft_remote *remote, const char *name, const char *expected) {
    sft_error err = SFT_ERROR_INIT;
    char all[1024];
    if (list_name(remote, name, all, &err)) fail_msg("%s: %s\n%s", name, err.message, fake.log);
    assert_string_equal(all, expected);
}

static const hub_rule tree[] = {
    { REVISION, 200, { NULL }, "{\"_id\":\"1\",\"siblings\":[{}],\"sha\":\"" HUB_COMMIT "\"}" },
    { TREE, 200, { "Link: <" TREE "&cursor=2>; rel=\"next\"" },
      "[{\"type\":\"directory\",\"oid\":\"x\",\"size\":0,\"path\":\"sub\"},"
      "{\"type\":\"file\",\"path\":\"sub/b\",\"size\":7,\"lfs\":{\"oid\":\"" HUB_SHA256
      "\",\"size\":7,\"pointerSize\":135},\"xetHash\":\"x\"},"
      "{\"type\":\"file\",\"path\":\"../evil\",\"size\":1},"
      "{\"type\":\"file\",\"path\":\"a?b\",\"size\":1},"
      "{\"type\":\"file\",\"path\":17,\"size\":{\"x\":[1]}}]" },
    { TREE "&cursor=2", 200, { NULL },
      "[{\"path\":\"a\",\"type\":\"file\",\"size\":-5},{\"path\":\"sub/b\",\"type\":\"file\"}]" },
    { PINNED "sub/b", 302, { COMMIT_LINE, "Location: " CDN "/x" }, "Found" },
    { CDN "/x", 206, { NULL }, NULL },
    { NULL, 0, { NULL }, NULL },
};

static void folders_are_listed_once(void **state) {
    sft_remote_claim claim;
    sft_error err = SFT_ERROR_INIT;
    const char *name;
    char all[1024];
    sft_remote *remote = remote_open(tree, usual, false);
    (void)state;
    expect_list(remote, "hf://o/n", "a -1\nsub/ -1\n");
    expect_log(REVISION " token\n" TREE " token\n" TREE "&cursor=2 token\n");
    expect_list(remote, "hf://o/n@main/sub/", "b 7\n");
    assert_int_equal(list_name(remote, "hf://o/n/none", all, &err), SFT_NOT_FOUND);
    assert_int_equal(list_name(remote, "hf://o/n/a", all, &err), SFT_IO_NOT_FILE);
    /* It says what there is, and with which digest. */
    assert_int_equal(open_name(remote, "hf://o/n/README.md", &name, &err), SFT_NOT_FOUND);
    expect_log("");
    expect_open(remote, "hf://o/n/sub/b", &claim);
    expect_log(PINNED "sub/b token\n" CDN "/x\n");
    assert_string_equal(claim.sha256, HUB_SHA256);
    assert_string_equal(claim.commit, HUB_COMMIT);
    sft_remote_close(remote);
}

/* Fields of another type than they have are as if they were not there. */
static void odd_fields_are_passed_over(void **state) {
    static const hub_rule odd[] = {
        { TREE, 200, { NULL },
          "[{\"type\":{\"x\":1},\"path\":\"t1\"},{\"type\":[\"file\"],\"path\":\"t2\"},"
          "{\"type\":\"file\",\"path\":\"n\\u0000ul\"},{\"type\":\"file\",\"path\":\"c\","
          "\"size\":[1,2]},{\"type\":\"file\",\"path\":\"d\",\"size\":3,\"lfs\":[1]},"
          "{\"type\":\"file\",\"path\":\"e\",\"size\":3,\"lfs\":null},"
          "{\"type\":\"file\",\"path\":\"f\",\"lfs\":{\"oid\":7,\"size\":4}},"
          "{\"type\":\"file\",\"path\":\"g\",\"lfs\":{\"oid\":\"short\",\"size\":{\"x\":1}}},"
          "{\"type\":\"file\",\"path\":\"h\",\"lfs\":{\"oid\":\"" HUB_COMMIT
          "zzzzzzzzzzzzzzzzzzzzzzzz\",\"size\":5}}]" },
        { NULL, 0, { NULL }, NULL },
    };
    static const char *const answers[] = { "[]", "{\"sha\":7}", "{\"sha\":\"short\"}", "{}", "",
                                           "{\"sha\":{\"x\":[]}}", "{\"sha\":null,\"x\":1}" };
    sft_remote *remote = remote_open(odd, usual, false);
    (void)state;
    expect_list(remote, "hf://o/n@" HUB_COMMIT, "c -1\nd 3\ne 3\nf 4\ng -1\nh 5\n");
    sft_remote_close(remote);
    for (size_t i = 0; i < COUNT(answers); i++) { /* no commit: the branch is listed as it is */
        const hub_rule rules[] = {
            { REVISION, 200, { NULL }, answers[i] },
            { HUB "/api/models/o/n/tree/main?recursive=true", 200, { NULL },
              "[{\"type\":\"file\",\"path\":\"a\",\"size\":1}]" },
            { NULL, 0, { NULL }, NULL },
        };
        remote = remote_open(rules, usual, false);
        expect_list(remote, "hf://o/n", "a 1\n");
        sft_remote_close(remote);
    }
}

static void a_known_commit_is_not_asked_for(void **state) {
    sft_remote_claim claim;
    static const hub_rule rules[] = {
        { MAIN "model.safetensors", 206, { COMMIT_LINE }, NULL },
        { TREE, 200, { NULL }, "[]" },
        { NULL, 0, { NULL }, NULL },
    };
    sft_remote *remote = remote_open(rules, usual, false);
    (void)state;
    expect_open(remote, "hf://o/n/model.safetensors", &claim);
    expect_list(remote, "hf://o/n", "");
    expect_log(MAIN "model.safetensors token\n" TREE " token\n");
    expect_list(remote, "hf://o/n@" HUB_COMMIT, "");
    expect_log(TREE " token\n");
    sft_remote_close(remote);
}

/* A Hub that tells no commit is listed all the same, but not believed about what is not there. */
static void hubs_without_commits_are_listed(void **state) {
    static const hub_rule rules[] = {
        { HUB "/api/datasets/o/n/tree/main?recursive=true", 200, { NULL },
          "[{\"type\":\"file\",\"path\":\"a\",\"size\":3}]" },
        { HUB "/api/buckets/o/n/tree?recursive=true", 200, { NULL },
          "[{\"type\":\"file\",\"path\":\"sub/b\",\"size\":4}]" },
        { HUB "/datasets/o/n/resolve/main/b", 206, { NULL }, NULL },
        { NULL, 0, { NULL }, NULL },
    };
    sft_remote_claim claim;
    sft_remote *remote = remote_open(rules, usual, false);
    (void)state;
    expect_list(remote, "hf://datasets/o/n", "a 3\n");
    expect_list(remote, "hf://buckets/o/n/sub", "b 4\n");
    expect_open(remote, "hf://datasets/o/n/b", &claim);
    expect_log(HUB "/api/datasets/o/n/revision/main?expand%5B%5D=sha token\n" HUB
               "/api/datasets/o/n/tree/main?recursive=true token\n" HUB
               "/api/buckets/o/n/tree?recursive=true token\n" HUB
               "/datasets/o/n/resolve/main/b token\n");
    sft_remote_close(remote);
}

static void odd_listings_are_refused(void **state) {
    static const struct {
        hub_rule rule;
        sft_code code;
        const char *words;
    } cases[] = {
        { { TREE, 200, { NULL }, "<html>" }, SFT_REMOTE_STATUS, "list of files" },
        { { TREE, 200, { NULL }, "{\"error\":1}" }, SFT_REMOTE_STATUS, "list of files" },
        { { TREE, 200, { NULL }, "[1]" }, SFT_REMOTE_STATUS, "list of files" },
        { { TREE, 200, { NULL }, "[{\"path\":\"a\"},]" }, SFT_REMOTE_STATUS, "list of files" },
        { { TREE, 200, { NULL }, "[{\"path\":\"\xFF\"}]" }, SFT_REMOTE_STATUS, "list of files" },
        { { TREE, 200, { NULL }, "[] []" }, SFT_REMOTE_STATUS, "list of files" },
        { { TREE, 200, { "Link: <http://evil.test/" ">; rel=\"next\"" }, "[]" },
          SFT_REMOTE_REDIRECT, "another server" },
        { { TREE, 200, { "Link: <file:///etc/passwd>; rel=\"next\"" }, "[]" }, SFT_REMOTE_STATUS,
          "next page" },
        { { TREE, 200, { "Link: <" TREE ">; rel=\"next\"" }, "[]" }, SFT_FILE_TOO_LARGE,
          "at most 100 pages" },
        { { TREE, 404, { "X-Error-Code: RevisionNotFound" }, "" }, SFT_NOT_FOUND,
          "no revision \"" HUB_COMMIT "\"" },
        { { TREE, 401, { NULL }, "" }, SFT_REMOTE_DENIED, "no repository \"o/n\"" },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const hub_rule rules[] = { cases[i].rule, { NULL, 0, { NULL }, NULL } };
        sft_error err = SFT_ERROR_INIT;
        char all[1024];
        sft_remote *remote = remote_open(rules, usual, false);
        sft_code code = list_name(remote, "hf://o/n@" HUB_COMMIT, all, &err);
        if (code != cases[i].code || !strstr(err.message, cases[i].words))
            fail_msg("%zu: %d: %s", i, code, err.message);
        assert_string_equal(all, "");
        assert_null(strstr(fake.log, "evil"));
        sft_remote_close(remote);
    }
}

/* ── Memory ── */

typedef struct short_memory {
    int left;  /* allocations that work; -1: all */
    bool over; /* one has failed */
    long held;
} short_memory;

static void *short_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    short_memory *memory = ctx;
    void *at = NULL;
    pthread_mutex_lock(&fake.mutex);
    bool fails = new_size > old_size && memory->left == 0;
    if (new_size > old_size && memory->left > 0) memory->left--;
    memory->over = memory->over || fails;
    memory->held += fails ? 0 : (long)new_size - (long)old_size;
    pthread_mutex_unlock(&fake.mutex);
    if (fails) return NULL;
    if (new_size > 0) at = realloc(ptr, new_size);
    else free(ptr);
    return at;
}

/* Opens, lists and reads; the first failure. */
static sft_code read_repository(const sft_allocator *alloc, sft_error *err) {
    sft_remote_options options = SFT_REMOTE_OPTIONS_INIT;
    const char *name = NULL;
    char all[1024];
    sft_remote *remote;
    options.alloc = alloc;
    options.transport = &fake_transport;
    options.environment = hub_variable_of;
    options.retries = UINT32_MAX;
    sft_code code = sft_remote_open(&options, &remote, err);
    if (code) return code;
    code = list_name(remote, "hf://o/n/", all, err);
    if (!code) assert_string_equal(all, "a -1\nsub/ -1\n");
    if (!code) code = open_name(remote, "hf://o/n/sub/b", &name, err);
    sft_remote_close(remote);
    return code;
}

static void memory_may_end_anywhere(void **state) {
    short_memory memory = { .over = true };
    (void)state;
    hub_set_variables(usual);
    fake.rules = tree;
    for (int n = 0; memory.over; n++) {
        const sft_allocator alloc = { short_resize, &memory };
        sft_error err = SFT_ERROR_INIT;
        memory = (short_memory){ .left = n };
        fake.log[0] = '\0';
        sft_code code = read_repository(&alloc, &err);
        if (code && code != SFT_OUT_OF_MEMORY) fail_msg("%d: %d: %s", n, code, err.message);
        if (code && !memory.over) fail_msg("%d: %s", n, err.message);
        if (memory.held != 0) fail_msg("%d: %ld bytes are held", n, memory.held);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(redirects_lose_the_token, begin_case, end_case),
        cmocka_unit_test_setup_teardown(pages_of_the_web_are_read_as_files, begin_case, end_case),
        cmocka_unit_test_setup_teardown(renamed_repositories_keep_the_token, begin_case, end_case),
        cmocka_unit_test_setup_teardown(lookalikes_get_no_token, begin_case, end_case),
        cmocka_unit_test_setup_teardown(cache_saves_the_bytes, begin_case, end_case),
        cmocka_unit_test_setup_teardown(offline_sends_nothing, begin_case, end_case),
        cmocka_unit_test_setup_teardown(failures_are_sentences, begin_case, end_case),
        cmocka_unit_test_setup_teardown(folders_are_listed_once, begin_case, end_case),
        cmocka_unit_test_setup_teardown(odd_fields_are_passed_over, begin_case, end_case),
        cmocka_unit_test_setup_teardown(a_known_commit_is_not_asked_for, begin_case, end_case),
        cmocka_unit_test_setup_teardown(hubs_without_commits_are_listed, begin_case, end_case),
        cmocka_unit_test_setup_teardown(odd_listings_are_refused, begin_case, end_case),
        cmocka_unit_test_setup_teardown(memory_may_end_anywhere, begin_case, end_case),
    };
    (void)pthread_mutex_init(&fake.mutex, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
