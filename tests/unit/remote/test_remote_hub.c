/* The Hub without a network: names, environment, who gets the token, answers, the local cache. */
#include "unit/hub_case.h"

#include "remote/hub/hub_state.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ── Names ── */

static const struct {
    const char *text;
    sfti_hub_type type;
    const char *id, *revision, *path, *again; /* again NULL: as text */
} names[] = {
    { "hf://o/n", SFTI_HUB_MODEL, "o/n", NULL, "", NULL },
    { "hf://models/o/n/a/b.json", SFTI_HUB_MODEL, "o/n", NULL, "a/b.json", "hf://o/n/a/b.json" },
    { "hf://datasets/o/n@v1/x", SFTI_HUB_DATASET, "o/n", "v1", "x", NULL },
    { "hf://spaces/o/n@refs/pr/12/x", SFTI_HUB_SPACE, "o/n", "refs/pr/12", "x", NULL },
    { "hf://kernels/o/n@refs/convert/p-1.x", SFTI_HUB_KERNEL, "o/n", "refs/convert/p-1.x", "",
      NULL },
    { "hf://buckets/o/n/a@b", SFTI_HUB_BUCKET, "o/n", NULL, "a@b", NULL },
    { "hf://o/n@feature%2Fx/a%20b", SFTI_HUB_MODEL, "o/n", "feature/x", "a%20b", NULL },
    { "hf://o/n@refs/heads/x", SFTI_HUB_MODEL, "o/n", "refs", "heads/x", NULL },
    { "hf://o/n@refs%2Fpr%2F1x", SFTI_HUB_MODEL, "o/n", "refs/pr/1x", "", NULL },
    { "hf://o/n@a%23b%25", SFTI_HUB_MODEL, "o/n", "a#b%", "", NULL },
    { "hf:///o/n/", SFTI_HUB_MODEL, "o/n", NULL, "", "hf://o/n" },
    { "hf://models/datasets/x", SFTI_HUB_MODEL, "datasets/x", NULL, "", NULL },
    { "hf://models/model/x", SFTI_HUB_MODEL, "model/x", NULL, "", NULL },
};

static void names_are_read(void **state) {
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        sfti_hub_name name;
        sft_error err = SFT_ERROR_INIT;
        if (sfti_hub_read_name(names[i].text, &arena, &name, &err))
            fail_msg("%s: %s", names[i].text, err.message);
        assert_int_equal(name.type, names[i].type);
        assert_string_equal(name.id, names[i].id);
        assert_string_equal(name.revision ? name.revision : "-",
                            names[i].revision ? names[i].revision : "-");
        assert_string_equal(name.path, names[i].path);
        assert_string_equal(sfti_hub_write_name(&name, &arena),
                            names[i].again ? names[i].again : names[i].text);
    }
    sfti_arena_free(&arena);
}

static void names_are_refused(void **state) {
    static const char *const refused[][2] = {
        { "hf:/o/n", "expected \"hf://\"" },
        { "hf://", "expected OWNER/NAME" },
        { "hf://gpt2", "expected OWNER/NAME" },
        { "hf://datasets/x", "expected OWNER/NAME" },
        { "hf://model/o/n", "expected \"models/\", found \"model/\"" },
        { "hf://o/n--x", "without \"--\"" },
        { "hf://o/n.git", "\".git\"" },
        { "hf://o/n@", "a revision without empty" },
        { "hf://o/n@a%2F..", "a revision without empty" },
        { "hf://o/n@a%00", "without control characters" },
        { "hf://o/n@%FF", "UTF-8" },
        { "hf://o/n/a//b", "a path without empty" },
        { "hf://o/n/../x", "\"..\" parts" },
        { "hf://o/n/a\\..\\x", "\"..\" parts" },
        { "hf://o/n/a?download=true", "without '?' and '#'" },
        { "hf://o/n/a#b", "without '?' and '#'" },
        { "hf://o/n/a\nb", "without control characters" },
        { "hf://buckets/o/n@main", "buckets have no revisions" },
    };
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    (void)state;
    for (size_t i = 0; i < COUNT(refused); i++) {
        sfti_hub_name name;
        sft_error err = SFT_ERROR_INIT;
        assert_int_equal(sfti_hub_read_name(refused[i][0], &arena, &name, &err), SFT_REMOTE_URL);
        if (!strstr(err.message, refused[i][1]))
            fail_msg("%s: %s", refused[i][0], err.message);
    }
    sfti_arena_free(&arena);
}

static void pages_are_names(void **state) {
    static const char endpoint[] = "http://127.0.0.1:8080/mirror";
    static const char *const pages[][2] = { /* NULL: none of the Hub; "": refused */
        { "https://huggingface.co/o/n", "hf://o/n" },
        { "https://hf.co/o/n/blob/main/a%20b.json?download=true#L1", "hf://o/n@main/a b.json" },
        { "https://HuggingFace.co:443/datasets/o/n/resolve/refs%2Fpr%2F1/x",
          "hf://datasets/o/n@refs/pr/1/x" },
        { "https://u:p@huggingface.co/o/n/raw/a%2Fb/x", "hf://o/n@a%2Fb/x" },
        { "http://127.0.0.1:8080/mirror/o/n/tree/main/sub", "hf://o/n@main/sub" },
        { "https://huggingface.co/buckets/o/n/tree/a", "hf://buckets/o/n/a" },
        { "https://huggingface.co/o/n/tree", "hf://o/n" },
        { "https://huggingface.co/o/n/commit/abc", NULL },
        { "https://huggingface.co/o", NULL },
        { "https://huggingface.co/o/n--x", NULL },
        { "https://huggingface.co.example.com/o/n", NULL },
        { "https://example.com/?x=https://huggingface.co/o/n", NULL },
        { "http://127.0.0.1:8081/mirror/o/n", NULL },
        { "https://huggingface.co:444/o/n", NULL },
        { "https://huggingface.co/o/n/resolve/main/%2e%2e/x", "" },
        { "https://huggingface.co/o/n/resolve/main/a%3Fb", "" },
        { "https://huggingface.co/o/n--x/resolve/main/a", "" },
    };
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    (void)state;
    for (size_t i = 0; i < COUNT(pages); i++) {
        const char *name, *expected = pages[i][1];
        sft_error err = SFT_ERROR_INIT;
        sft_code code = sfti_hub_from_web(endpoint, pages[i][0], &arena, &name, &err);
        const char *found = code == SFT_REMOTE_URL ? "" : name;
        if (code && code != SFT_REMOTE_URL) fail_msg("%s: %s", pages[i][0], err.message);
        if (!expected != !found || (found && strcmp(found, expected) != 0))
            fail_msg("%s: %s", pages[i][0], found ? found : "none");
    }
    sfti_arena_free(&arena);
}

/* ── A remote of this file's own: the Hub's state is all that it has ── */

static void remote_begin(sft_remote *remote, const hub_variable *variables) {
    sft_remote_options options = SFT_REMOTE_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    hub_set_variables(variables);
    memset(remote, 0, sizeof *remote);
    remote->alloc = remote->arena.alloc = sfti_allocator(NULL);
    remote->options = options;
    remote->options.environment = hub_variable_of;
    assert_int_equal(sfti_os_mutex_init(&remote->mutex), 0);
    if (sfti_hub_open(remote, &err)) fail_msg("%s", err.message);
}

static void remote_end(sft_remote *remote) {
    sfti_hub_close(remote);
    sfti_arena_free(&remote->arena);
    sfti_os_mutex_free(&remote->mutex);
}

static sft_code target_begin(sft_remote *remote, const char *name, sfti_target *target,
                             sft_error *err) {
    *target = (sfti_target){ .remote = remote, .scheme = &sfti_hub_scheme, .name = name,
                             .arena = { .alloc = remote->alloc } };
    return sfti_hub_scheme.resolve(target, err);
}

static void target_end(sfti_target *target) {
    sfti_arena_free(&target->arena);
}

/* ── Environment ── */

static const struct {
    const char *about;
    hub_variable variables[HUB_VARIABLES];
    const char *endpoint, *token, *token_at, *cache; /* NULL: none */
    bool offline;
} environments[] = {
    { "nothing", { { NULL, NULL } }, "https://huggingface.co", NULL, NULL, NULL, false },
    { "a home", { { "HOME", "/h" } }, "https://huggingface.co", NULL, NULL,
      "/h/.cache/huggingface/hub", false },
    { "XDG", { { "HOME", "/h" }, { "XDG_CACHE_HOME", "/x" } }, "https://huggingface.co", NULL,
      NULL, "/x/huggingface/hub", false },
    { "HF_HOME with a tilde", { { "HOME", "/h" }, { "HF_HOME", "~/hf" } },
      "https://huggingface.co", NULL, NULL, "/h/hf/hub", false },
    { "variables in a path", { { "HF_HUB_CACHE", "/c/$A/${B}/$NONE/$" }, { "A", "a" },
      { "B", "b" } }, "https://huggingface.co", NULL, NULL, "/c/a/b/$NONE/$", false },
    { "no variables", { { "HF_HUB_CACHE", "$A_1/${A_1}x/${A_1/${}/$-/${A_1-b}" }, { "A_1", "a" } },
      "https://huggingface.co", NULL, NULL, "a/ax/${A_1/${}/$-/${A_1-b}", false },
    { "a home alone, and a query", { { "HF_HUB_CACHE", "~" }, { "HOME", "/h" },
      { "HF_ENDPOINT", "https://h?q" } }, NULL, NULL, NULL, "/h", false },
    { "the newer name first", { { "HF_HUB_CACHE", "/new" }, { "HUGGINGFACE_HUB_CACHE", "/old" } },
      "https://huggingface.co", NULL, NULL, "/new", false },
    { "the older name", { { "HUGGINGFACE_HUB_CACHE", "/old" }, { "HF_HOME", "/hf" } },
      "https://huggingface.co", NULL, NULL, "/old", false },
    { "an endpoint", { { "HF_ENDPOINT", "http://127.0.0.1:80/hf//" } },
      "http://127.0.0.1:80/hf", NULL, NULL, NULL, false },
    { "no endpoint", { { "HF_ENDPOINT", "huggingface.co" } }, NULL, NULL, NULL, NULL, false },
    { "an endpoint with a user", { { "HF_ENDPOINT", "https://u@h" } }, NULL, NULL, NULL, NULL,
      false },
    { "a token", { { "HF_TOKEN", " hf_a\n" }, { "HUGGING_FACE_HUB_TOKEN", "hf_b" } },
      "https://huggingface.co", "hf_a", "HF_TOKEN", NULL, false },
    { "the older name of it", { { "HUGGING_FACE_HUB_TOKEN", "hf_b" } },
      "https://huggingface.co", "hf_b", "HUGGING_FACE_HUB_TOKEN", NULL, false },
    { "a file of it", { { "HF_TOKEN_PATH", "token" } }, "https://huggingface.co", "hf_file",
      "token", NULL, false },
    { "a file at home", { { "HF_HOME", "hf" } }, "https://huggingface.co", "hf_home", "hf/token",
      "hf/hub", false },
    { "a variable before the file", { { "HF_HOME", "hf" }, { "HF_TOKEN", "hf_a" } },
      "https://huggingface.co", "hf_a", "HF_TOKEN", "hf/hub", false },
    { "blanks are no token", { { "HF_HOME", "hf" }, { "HF_TOKEN", " \n" } },
      "https://huggingface.co", "hf_home", "hf/token", "hf/hub", false },
    { "no implicit token", { { "HF_TOKEN", "hf_a" }, { "HF_HUB_DISABLE_IMPLICIT_TOKEN", "YES" } },
      "https://huggingface.co", NULL, NULL, NULL, false },
    { "an implicit token", { { "HF_TOKEN", "hf_a" }, { "HF_HUB_DISABLE_IMPLICIT_TOKEN", "0" } },
      "https://huggingface.co", "hf_a", "HF_TOKEN", NULL, false },
    { "offline", { { "HF_HUB_OFFLINE", "True" } }, "https://huggingface.co", NULL, NULL, NULL,
      true },
    { "offline by transformers", { { "TRANSFORMERS_OFFLINE", "1" } }, "https://huggingface.co",
      NULL, NULL, NULL, true },
    { "online first", { { "HF_HUB_OFFLINE", "0" }, { "TRANSFORMERS_OFFLINE", "1" } },
      "https://huggingface.co", NULL, NULL, NULL, false },
};

static void expect_text(const char *about, const char *found, const char *expected) {
    if (!found != !expected || (found && strcmp(found, expected) != 0))
        fail_msg("%s: expected %s, found %s", about, expected ? expected : "none",
                 found ? found : "none");
}

static void environment_is_read(void **state) {
    (void)state;
    hub_put("token", "hf_file\r\n");
    hub_put("hf/token", "\n hf_home \n");
    for (size_t i = 0; i < COUNT(environments); i++) {
        sft_remote remote;
        remote_begin(&remote, environments[i].variables);
        const sfti_hub *hub = sfti_hub_of(&remote);
        expect_text(environments[i].about, hub->endpoint, environments[i].endpoint);
        expect_text(environments[i].about, hub->token, environments[i].token);
        expect_text(environments[i].about, hub->token_at, environments[i].token_at);
        expect_text(environments[i].about, hub->cache, environments[i].cache);
        assert_int_equal(hub->offline, environments[i].offline);
        remote_end(&remote);
    }
}

static void anonymous_reads_no_token(void **state) {
    static const hub_variable variables[] = { { "HF_TOKEN", HUB_TOKEN }, { NULL, NULL } };
    sft_error err = SFT_ERROR_INIT;
    sft_remote remote;
    (void)state;
    remote_begin(&remote, variables);
    remote.options.anonymous = true;
    assert_int_equal(sfti_hub_open(&remote, &err), SFT_OK);
    assert_null(sfti_hub_of(&remote)->token);
    remote_end(&remote);
}

/* ── Who gets the token ── */

static const struct {
    const char *endpoint, *url;
    bool token;
} origins[] = {
    { NULL, "https://huggingface.co/o/n/resolve/main/x", true },
    { NULL, "https://hf.co/o/n/resolve/main/x", true },
    { NULL, "https://HUGGINGFACE.co:443/x", true },
    { NULL, "http://huggingface.co/x", false },
    { NULL, "https://huggingface.co:444/x", false },
    { NULL, "https://huggingface.co.example.com/x", false },
    { NULL, "https://example.com/huggingface.co?x=huggingface.co", false },
    { NULL, "https://huggingface.co@example.com/x", false },
    { NULL, "https://cdn-lfs.huggingface.co/x", false },
    { NULL, "https://cdn-lfs.hf.co/x", false },
    { NULL, "https://cas-bridge.xethub.hf.co/x", false },
    { "http://127.0.0.1:8080/hf", "http://127.0.0.1:8080/elsewhere", true },
    { "http://127.0.0.1:8080/hf", "http://127.0.0.1:8081/hf", false },
    { "http://127.0.0.1:8080/hf", "https://127.0.0.1:8080/hf", false },
    { "https://mirror.example", "http://mirror.example/x", false },
    { "https://mirror.example", "https://mirror.example/x", true },
    { "https://mirror.example", "https://huggingface.co/x", true },
};

static void token_goes_to_the_hub_alone(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(origins); i++) {
        const hub_variable variables[] = { { "HF_TOKEN", HUB_TOKEN },
                                           { "HF_ENDPOINT", origins[i].endpoint },
                                           { NULL, NULL } };
        sft_error err = SFT_ERROR_INIT;
        sfti_target target;
        sft_remote remote;
        remote_begin(&remote, variables);
        assert_int_equal(target_begin(&remote, "hf://o/n/x", &target, &err), SFT_OK);
        sfti_headers headers = { .arena = &target.arena };
        assert_int_equal(sfti_hub_scheme.authorize(&target, origins[i].url, &headers, &err),
                         SFT_OK);
        if (headers.count != origins[i].token) fail_msg("%s", origins[i].url);
        if (headers.count) {
            assert_true(sft_span_equal(headers.at[0].key, sft_span_cstr("authorization")));
            assert_true(sft_span_equal(headers.at[0].value,
                                       sft_span_cstr("Bearer " HUB_TOKEN)));
        }
        target_end(&target);
        remote_end(&remote);
    }
}

static void odd_tokens_are_not_sent(void **state) {
    static const hub_variable variables[] = { { "HF_TOKEN", "hf_a\x01Secret" }, { NULL, NULL } };
    sft_error err = SFT_ERROR_INIT;
    sfti_target target;
    sft_remote remote;
    (void)state;
    remote_begin(&remote, variables);
    assert_int_equal(target_begin(&remote, "hf://o/n/x", &target, &err), SFT_OK);
    sfti_headers headers = { .arena = &target.arena };
    assert_int_equal(sfti_hub_scheme.authorize(&target, target.url, &headers, &err),
                     SFT_REMOTE_DENIED);
    assert_int_equal(err.hint, SFT_HINT_REMOTE_BAD_TOKEN);
    assert_non_null(strstr(err.message, "HF_TOKEN"));
    assert_null(strstr(err.message, "Secret"));
    target_end(&target);
    remote_end(&remote);
}

/* ── Resolving and learning ── */

static void urls_are_made(void **state) {
    static const char *const urls[][2] = {
        { "hf://o/n/x", "http://h/hf/o/n/resolve/main/x" },
        { "hf://datasets/o/n@refs/pr/1/a b/\xC3\xA9",
          "http://h/hf/datasets/o/n/resolve/refs%2Fpr%2F1/a%20b/%C3%A9" },
        { "hf://spaces/o/n@v1/a%20b+c", "http://h/hf/spaces/o/n/resolve/v1/a%2520b%2Bc" },
        { "hf://kernels/o/n/x", "http://h/hf/kernels/o/n/resolve/main/x" },
        { "hf://buckets/o/n/a/x", "http://h/hf/buckets/o/n/resolve/a/x" },
    };
    static const hub_variable variables[] = { { "HF_ENDPOINT", "http://h/hf" }, { NULL, NULL } };
    sft_remote remote;
    (void)state;
    remote_begin(&remote, variables);
    for (size_t i = 0; i < COUNT(urls); i++) {
        sft_error err = SFT_ERROR_INIT;
        sfti_target target;
        assert_int_equal(target_begin(&remote, urls[i][0], &target, &err), SFT_OK);
        assert_string_equal(target.url, urls[i][1]);
        assert_null(target.local);
        target_end(&target);
    }
    remote_end(&remote);
}

static void repositories_are_no_files(void **state) {
    static const hub_variable wrong[] = { { "HF_ENDPOINT", "ftp://h" }, { NULL, NULL } };
    sft_error err = SFT_ERROR_INIT;
    sfti_target target;
    sft_remote remote;
    (void)state;
    remote_begin(&remote, NULL);
    assert_int_equal(target_begin(&remote, "hf://o/n@main", &target, &err), SFT_IO_NOT_FILE);
    target_end(&target);
    assert_int_equal(target_begin(&remote, "hf://gpt2", &target, &err), SFT_REMOTE_URL);
    target_end(&target);
    remote_end(&remote);
    remote_begin(&remote, wrong);
    assert_int_equal(target_begin(&remote, "hf://o/n/x", &target, &err), SFT_REMOTE_URL);
    assert_non_null(strstr(err.message, "HF_ENDPOINT"));
    target_end(&target);
    remote_end(&remote);
    assert_true(sfti_hub_scheme.is_folder("hf://o/n"));
    assert_true(sfti_hub_scheme.is_folder("hf://datasets/o/n@refs/pr/1"));
    assert_true(sfti_hub_scheme.is_folder("hf://o/n/sub/"));
    assert_false(sfti_hub_scheme.is_folder("hf://o/n/sub"));
    assert_false(sfti_hub_scheme.is_folder("hf://gpt2"));
}

/* An answer of headers "name: value", up to NULL. */
static void answer_of(sfti_answer *answer, int status, const char *const *lines) {
    const sft_allocator libc = sfti_allocator(NULL);
    sft_pair pairs[8];
    size_t count = 0;
    for (; lines[count]; count++) {
        const char *colon = strchr(lines[count], ':');
        pairs[count].key = (sft_span){ lines[count], (size_t)(colon - lines[count]) };
        pairs[count].value = sft_span_cstr(colon + 2);
    }
    sfti_answer_begin(answer, &libc);
    assert_true(sfti_answer_read(answer, status, pairs, count));
}

static bool learn(sfti_target *target, const char *url, int status, const char *const *lines) {
    sfti_answer answer;
    answer_of(&answer, status, lines);
    bool done = sfti_hub_scheme.learn(target, url, &answer);
    sfti_answer_free(&answer);
    return done;
}

static const char *const redirect[] = { "X-Repo-Commit: " HUB_COMMIT, "X-Linked-Size: 5",
                                        "X-Linked-Etag: \"" HUB_SHA256 "\"",
                                        "Location: https://cdn.example/x?s=1", NULL };
static const char *const other_commit[] = { "X-Repo-Commit: " HUB_OTHER, NULL };

static void first_commit_counts(void **state) {
    static const char page[] = "https://huggingface.co/o/n/resolve/main/x";
    sft_error err = SFT_ERROR_INIT;
    sfti_target index, shard, other;
    sft_remote remote;
    (void)state;
    remote_begin(&remote, NULL);
    assert_int_equal(target_begin(&remote, "hf://o/n/x", &index, &err), SFT_OK);
    assert_string_equal(index.url, page);
    /* A CDN says nothing about repositories. */
    assert_false(learn(&index, "https://cdn.example/x", 206, other_commit));
    assert_string_equal(index.commit, "");
    assert_false(learn(&index, page, 302, redirect));
    assert_string_equal(index.commit, HUB_COMMIT);
    assert_string_equal(index.sha256, HUB_SHA256);
    assert_string_equal(index.url, "https://huggingface.co/o/n/resolve/" HUB_COMMIT "/x");
    /* Files that are opened later are of the same commit, of other revisions not. */
    assert_int_equal(target_begin(&remote, "hf://models/o/n@main/y", &shard, &err), SFT_OK);
    assert_string_equal(shard.url, "https://huggingface.co/o/n/resolve/" HUB_COMMIT "/y");
    assert_string_equal(shard.commit, HUB_COMMIT);
    assert_int_equal(target_begin(&remote, "hf://o/n@v2/y", &other, &err), SFT_OK);
    assert_string_equal(other.url, "https://huggingface.co/o/n/resolve/v2/y");
    assert_false(learn(&other, other.url, 200, other_commit));
    assert_string_equal(other.commit, HUB_OTHER);
    target_end(&index);
    target_end(&shard);
    target_end(&other);
    remote_end(&remote);
}

static void failures_teach_nothing(void **state) {
    static const char *const odd[] = { "X-Repo-Commit: main", "X-Linked-Etag: W/\"abc\"", NULL };
    sft_error err = SFT_ERROR_INIT;
    sfti_target target;
    sft_remote remote;
    (void)state;
    remote_begin(&remote, NULL);
    assert_int_equal(target_begin(&remote, "hf://o/n/x", &target, &err), SFT_OK);
    assert_false(learn(&target, target.url, 404, other_commit));
    assert_false(learn(&target, target.url, 302, odd));
    assert_string_equal(target.commit, "");
    assert_string_equal(target.sha256, "");
    target_end(&target);
    remote_end(&remote);
}

/* ── Failures as sentences ── */

static const struct {
    const char *name, *token;
    int status;
    const char *lines[3];
    sft_code code;
    sft_hint hint;
    const char *words[2];
} failures[] = {
    { "hf://o/n/x", NULL, 401, { "X-Error-Code: RepoNotFound",
      "X-Error-Message: Invalid username or password." }, SFT_REMOTE_DENIED,
      SFT_HINT_REMOTE_TOKEN, { "\"o/n\"", "without a token" } },
    { "hf://datasets/o/n/x", HUB_TOKEN, 404, { "X-Error-Code: RepoNotFound" }, SFT_NOT_FOUND,
      SFT_HINT_REMOTE_TOKEN, { "\"datasets/o/n\"", "the token of HF_TOKEN" } },
    { "hf://o/n@v9/x", NULL, 404, { "X-Error-Code: RevisionNotFound" }, SFT_NOT_FOUND,
      SFT_HINT_NONE, { "no revision \"v9\"", "\"o/n\"" } },
    { "hf://o/n/a/x", NULL, 404, { "X-Error-Code: EntryNotFound" }, SFT_NOT_FOUND, SFT_HINT_NONE,
      { "no \"a/x\"", "\"main\"" } },
    { "hf://o/n/x", NULL, 404, { NULL }, SFT_NOT_FOUND, SFT_HINT_NONE, { "no \"x\"", "\"o/n\"" } },
    { "hf://o/n/x", NULL, 401, { "X-Error-Code: GatedRepo" }, SFT_REMOTE_DENIED,
      SFT_HINT_REMOTE_GATED, { "terms", "https://huggingface.co/o/n" } },
    { "hf://o/n/x", HUB_TOKEN, 403, { "X-Error-Code: GatedRepo" }, SFT_REMOTE_DENIED,
      SFT_HINT_REMOTE_GATED, { "terms", "https://huggingface.co/o/n" } },
    { "hf://o/n/x", NULL, 403, { "X-Error-Message: Access to this resource is disabled." },
      SFT_REMOTE_DENIED, SFT_HINT_NONE, { "disabled", "\"o/n\"" } },
    { "hf://o/n/x", HUB_TOKEN, 401,
      { "X-Error-Message: Invalid credentials in Authorization header" }, SFT_REMOTE_DENIED,
      SFT_HINT_REMOTE_BAD_TOKEN, { "does not accept", "token of HF_TOKEN" } },
    { "hf://o/n/x", HUB_TOKEN, 403, { "X-Error-Message: Forbidden: storage limit" },
      SFT_REMOTE_DENIED, SFT_HINT_REMOTE_TOKEN, { "token of HF_TOKEN", "storage limit" } },
    { "hf://o/n/x", NULL, 429, { "RateLimit: \"resolvers\";r=0;t=3950" }, SFT_REMOTE_BUSY,
      SFT_HINT_REMOTE_LIMIT, { "limit of requests", "66 minutes" } },
    { "hf://o/n/x", NULL, 429, { "Retry-After: 60" }, SFT_REMOTE_BUSY, SFT_HINT_REMOTE_LIMIT,
      { "limit of requests", "1 minute more" } },
};

static void failures_are_explained(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(failures); i++) {
        const hub_variable variables[] = { { "HF_TOKEN", failures[i].token }, { NULL, NULL } };
        sft_error err = SFT_ERROR_INIT;
        sfti_target target;
        sft_remote remote;
        sfti_answer answer;
        bool again = true;
        remote_begin(&remote, variables);
        assert_int_equal(target_begin(&remote, failures[i].name, &target, &err), SFT_OK);
        answer_of(&answer, failures[i].status, failures[i].lines);
        assert_true(sfti_hub_scheme.explain(&target, target.url, &answer, &again, &err));
        for (size_t k = 0; k < 2; k++)
            if (!strstr(err.message, failures[i].words[k])) fail_msg("%zu: %s", i, err.message);
        if (err.code != failures[i].code || err.hint != failures[i].hint)
            fail_msg("%s: %d, hint %d", err.message, err.code, (int)err.hint);
        const char *hint = sft_hint_text(err.hint);
        if (hint && strstr(err.message, "accept the token") && strstr(hint, "accept"))
            fail_msg("twice the same: %s; %s", err.message, hint);
        assert_false(again);
        assert_null(strstr(err.message, HUB_TOKEN));
        /* What another server answers is not the Hub's. */
        assert_false(sfti_hub_scheme.explain(&target, "https://cdn.example/x", &answer, &again,
                                             &err));
        sfti_answer_free(&answer);
        target_end(&target);
        remote_end(&remote);
    }
}

static void others_are_left_to_http(void **state) {
    static const int statuses[] = { 400, 416, 429, 500, 503 };
    static const char *const none[] = { NULL };
    sft_error err = SFT_ERROR_INIT;
    sfti_target target;
    sft_remote remote;
    (void)state;
    remote_begin(&remote, NULL);
    assert_int_equal(target_begin(&remote, "hf://o/n/x", &target, &err), SFT_OK);
    for (size_t i = 0; i < COUNT(statuses); i++) {
        sfti_answer answer;
        bool again;
        answer_of(&answer, statuses[i], none);
        assert_false(sfti_hub_scheme.explain(&target, target.url, &answer, &again, &err));
        sfti_answer_free(&answer);
    }
    target_end(&target);
    remote_end(&remote);
}

/* ── The local cache ── */

#define REPO "hub/models--o--n"
#define SNAPSHOT REPO "/snapshots/" HUB_COMMIT
#define DOUBLE "bbbbbbbbcccccccc" HUB_COMMIT "01234567"

/* plain: a copy; link: to a blob; double: by a shared blob; git: a blob that is no LFS file. */
static void plant_cache(void) {
    hub_put(REPO "/refs/main", HUB_COMMIT);
    hub_put(REPO "/refs/refs/pr/1", HUB_COMMIT);
    hub_put(REPO "/refs/bad", "../../../secret");
    hub_put(REPO "/refs/gone", HUB_OTHER);
    hub_put(SNAPSHOT "/plain", "plain");
    hub_put(REPO "/blobs/" HUB_SHA256, "12345");
    hub_link(SNAPSHOT "/link", "../../blobs/" HUB_SHA256);
    hub_link(SNAPSHOT "/sub/deep/link", "../../../../blobs/" HUB_SHA256);
    hub_put("hub/blobs/11/" HUB_XET, "shared");
    hub_link(REPO "/blobs/" DOUBLE, "../../blobs/11/" HUB_XET);
    hub_link(SNAPSHOT "/double", "../../blobs/" DOUBLE);
    hub_put(REPO "/blobs/" HUB_COMMIT, "{}");
    hub_link(SNAPSHOT "/git", "../../blobs/" HUB_COMMIT);
    hub_link(SNAPSHOT "/broken", "../../blobs/none");
    hub_put("secret", "secret");
    hub_link(SNAPSHOT "/out", "../../../../secret");
    hub_link(SNAPSHOT "/absolute", "/etc/passwd");
    hub_put("hub/models--o--m/blobs/x", "another repository's");
    hub_link(SNAPSHOT "/neighbour", "../../../models--o--m/blobs/x");
    hub_link(REPO "/blobs/out", "../../../secret");
    hub_link(SNAPSHOT "/blob_out", "../../blobs/out");
    hub_put(REPO "/.no_exist/" HUB_COMMIT "/absent", "");
}

static const struct {
    const char *name, *text; /* NULL: it is not read */
    const char *sha256;
    sft_code code;
    const char *words;
} cached[] = {
    { "hf://o/n/plain", "plain", "", SFT_OK, "" },
    { "hf://o/n@main/link", "12345", HUB_SHA256, SFT_OK, "" },
    { "hf://o/n@refs/pr/1/sub/deep/link", "12345", HUB_SHA256, SFT_OK, "" },
    { "hf://o/n@" HUB_COMMIT "/double", "shared", DOUBLE, SFT_OK, "" },
    { "hf://o/n/git", "{}", "", SFT_OK, "" },
    { "hf://o/n/broken", NULL, "", SFT_REMOTE_OFFLINE, "its blob is missing" },
    { "hf://o/n/none", NULL, "", SFT_REMOTE_OFFLINE, "no such file" },
    { "hf://o/n/sub", NULL, "", SFT_IO_NOT_FILE, "found a folder" },
    { "hf://o/n/absent", NULL, "", SFT_NOT_FOUND, "no such file" },
    { "hf://o/n/out", NULL, "", SFT_REMOTE_OFFLINE, "its link leads elsewhere" },
    { "hf://o/n/absolute", NULL, "", SFT_REMOTE_OFFLINE, "its link leads elsewhere" },
    { "hf://o/n/neighbour", NULL, "", SFT_REMOTE_OFFLINE, "its link leads elsewhere" },
    { "hf://o/n/blob_out", NULL, "", SFT_REMOTE_OFFLINE, "its link leads elsewhere" },
    { "hf://o/n@v2/link", NULL, "", SFT_REMOTE_OFFLINE, "no such revision" },
    { "hf://o/n@gone/link", NULL, "", SFT_REMOTE_OFFLINE, "no such revision" },
    { "hf://o/n@bad/link", NULL, "", SFT_REMOTE_OFFLINE, "no such revision" },
    { "hf://o/n@a%2Fb/link", NULL, "", SFT_REMOTE_OFFLINE, "no such revision" },
    { "hf://o/none/link", NULL, "", SFT_REMOTE_OFFLINE, "nothing of this repository" },
    { "hf://datasets/o/n/link", NULL, "", SFT_REMOTE_OFFLINE, "nothing of this repository" },
    { "hf://buckets/o/n/link", NULL, "", SFT_REMOTE_OFFLINE, "buckets are not cached" },
};

static void expect_bytes(const char *path, uint64_t size, const char *text) {
    char bytes[64] = "";
    int fd = open(path, O_RDONLY | O_NOFOLLOW);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, bytes, sizeof bytes - 1), (long)strlen(text));
    close(fd);
    assert_string_equal(bytes, text);
    assert_int_equal(size, strlen(text));
}

static void cache_is_read_offline(void **state) {
    static const hub_variable variables[] = { { "HF_HUB_CACHE", "hub" }, { "HF_HUB_OFFLINE", "1" },
                                              { NULL, NULL } };
    sft_remote remote;
    (void)state;
    plant_cache();
    remote_begin(&remote, variables);
    for (size_t i = 0; i < COUNT(cached); i++) {
        sft_error err = SFT_ERROR_INIT;
        sfti_target target;
        sft_code code = target_begin(&remote, cached[i].name, &target, &err);
        if (code != cached[i].code || !strstr(err.message, cached[i].words))
            fail_msg("%s: %d: %s", cached[i].name, code, err.message);
        assert_int_equal(target.local != NULL, cached[i].text != NULL);
        assert_null(target.url);
        if (target.local) {
            expect_bytes(target.local, target.local_size, cached[i].text);
            assert_string_equal(target.commit, HUB_COMMIT);
        }
        assert_string_equal(target.sha256, cached[i].sha256);
        target_end(&target);
    }
    remote_end(&remote);
}

static void cache_without_a_home(void **state) {
    static const hub_variable variables[] = { { "HF_HUB_OFFLINE", "1" }, { NULL, NULL } };
    sft_error err = SFT_ERROR_INIT;
    sfti_target target;
    sft_remote remote;
    (void)state;
    remote_begin(&remote, variables);
    assert_int_equal(target_begin(&remote, "hf://o/n/x", &target, &err), SFT_REMOTE_OFFLINE);
    assert_non_null(strstr(err.message, "HF_HOME and HOME"));
    target_end(&target);
    remote_end(&remote);
}

/* Online the cache counts by the commit alone: of a revision that is one, or that a server told. */
static void cache_is_read_by_commit(void **state) {
    static const hub_variable variables[] = { { "HF_HUB_CACHE", "hub" }, { NULL, NULL } };
    static const char *const other_size[] = { "X-Repo-Commit: " HUB_COMMIT, "X-Linked-Size: 6",
                                              NULL };
    static const char *const other_digest[] = { "X-Repo-Commit: " HUB_COMMIT,
                                                "X-Linked-Etag: " HUB_XET, NULL };
    sft_error err = SFT_ERROR_INIT;
    sfti_target target;
    sft_remote remote;
    (void)state;
    plant_cache();
    remote_begin(&remote, variables);
    assert_int_equal(target_begin(&remote, "hf://o/n@" HUB_COMMIT "/link", &target, &err), SFT_OK);
    expect_bytes(target.local, target.local_size, "12345");
    target_end(&target);
    assert_int_equal(target_begin(&remote, "hf://o/n@" HUB_COMMIT "/none", &target, &err), SFT_OK);
    assert_null(target.local);
    assert_non_null(target.url);
    target_end(&target);
    assert_int_equal(target_begin(&remote, "hf://o/n/link", &target, &err), SFT_OK);
    assert_null(target.local);
    assert_false(learn(&target, target.url, 302, other_commit));
    assert_null(target.local);
    target_end(&target);
    remote_end(&remote);
    static const struct {
        const char *const *lines;
        bool local;
    } answers[] = { { redirect, true }, { other_size, false }, { other_digest, false } };
    for (size_t i = 0; i < COUNT(answers); i++) {
        remote_begin(&remote, variables);
        assert_int_equal(target_begin(&remote, "hf://o/n/link", &target, &err), SFT_OK);
        assert_int_equal(learn(&target, target.url, 302, answers[i].lines), answers[i].local);
        assert_int_equal(target.local != NULL, answers[i].local);
        /* A file that is being read already is not exchanged for another one. */
        assert_false(learn(&target, target.url, 302, redirect));
        target_end(&target);
        /* The next one is found at the commit, without a request. */
        assert_int_equal(target_begin(&remote, "hf://o/n/plain", &target, &err), SFT_OK);
        expect_bytes(target.local, target.local_size, "plain");
        target_end(&target);
        remote_end(&remote);
    }
}

/* ── Listings ── */

static bool note_entry(void *ctx, const sft_listed *entry) {
    char line[128], *all = ctx;
    (void)snprintf(line, sizeof line, "%s%s %lld\n", entry->name, entry->folder ? "/" : "",
                   (long long)entry->bytes);
    strcat(all, line);
    return strcmp(entry->name, "stop") != 0;
}

static void expect_list(sft_remote *remote, const char *folder, const char *expected) {
    char all[1024] = "";
    sft_error err = SFT_ERROR_INIT;
    if (sfti_hub_scheme.list(remote, folder, note_entry, all, &err))
        fail_msg("%s: %s", folder, err.message);
    assert_string_equal(all, expected);
}

static void cache_is_listed(void **state) {
    static const hub_variable variables[] = { { "HF_HUB_CACHE", "hub" }, { "HF_HUB_OFFLINE", "1" },
                                              { NULL, NULL } };
    static const char *const refused[][2] = {
        { "hf://o/n/plain", "found a file" }, { "hf://o/n/none", "no such folder" },
        { "hf://o/n@v2", "no such revision" }, { "hf://o/m", "no such revision" },
    };
    sft_remote remote;
    (void)state;
    plant_cache();
    remote_begin(&remote, variables);
    expect_list(&remote, "hf://o/n",
                "double 6\ngit 2\nlink 5\nplain 5\nsub/ -1\n");
    expect_list(&remote, "hf://o/n@refs/pr/1/sub/", "deep/ -1\n");
    expect_list(&remote, "hf://o/n@" HUB_COMMIT "/sub/deep", "link 5\n");
    for (size_t i = 0; i < COUNT(refused); i++) {
        char all[1024] = "";
        sft_error err = SFT_ERROR_INIT;
        assert_int_not_equal(sfti_hub_scheme.list(&remote, refused[i][0], note_entry, all, &err),
                             SFT_OK);
        if (!strstr(err.message, refused[i][1])) fail_msg("%s: %s", refused[i][0], err.message);
    }
    remote_end(&remote);
}

/* A listing as if it had been asked for. */
static void plant_listing(sft_remote *remote, const char *commit) {
    static const sfti_hub_entry entries[] = {
        { "a-b", 1, NULL }, { "a/x", 2, HUB_SHA256 }, { "a/y/1", 3, NULL }, { "a/y/2", 4, NULL },
        { "a/z", 5, NULL }, { "a0", SFT_SIZE_UNKNOWN, NULL }, { "stop", 6, NULL },
        { "zz", 7, NULL },
    };
    const sfti_hub_name name = { SFTI_HUB_MODEL, "o/n", "main", "" };
    sfti_hub_listing listing = { .arena = { .alloc = remote->alloc }, .count = COUNT(entries) };
    listing.entries = sfti_arena_take(&listing.arena, sizeof entries);
    memcpy(listing.entries, entries, sizeof entries);
    (void)snprintf(listing.commit, sizeof listing.commit, "%s", commit);
    sfti_hub_repo *repo = sfti_hub_repo_of(remote, &name);
    sfti_hub_pin(remote, repo, HUB_COMMIT);
    assert_non_null(sfti_hub_keep(remote, repo, &listing));
}

static void listings_are_told(void **state) {
    char all[256] = "";
    sft_error err = SFT_ERROR_INIT;
    sft_remote remote;
    (void)state;
    remote_begin(&remote, NULL);
    plant_listing(&remote, HUB_COMMIT);
    expect_list(&remote, "hf://o/n", "a-b 1\na/ -1\na0 -1\nstop 6\n");
    expect_list(&remote, "hf://o/n@main/a", "x 2\ny/ -1\nz 5\n");
    expect_list(&remote, "hf://o/n/a/y/", "1 3\n2 4\n");
    assert_int_equal(sfti_hub_scheme.list(&remote, "hf://o/n/a/x", note_entry, all, &err),
                     SFT_IO_NOT_FILE);
    assert_int_equal(sfti_hub_scheme.list(&remote, "hf://o/n/b", note_entry, all, &err),
                     SFT_NOT_FOUND);
    assert_string_equal(all, "");
    remote_end(&remote);
}

/* A listing at the commit that is read says what there is; one that may be older does not. */
static void listings_save_requests(void **state) {
    sft_error err = SFT_ERROR_INIT;
    sfti_target target;
    sft_remote remote;
    (void)state;
    remote_begin(&remote, NULL);
    plant_listing(&remote, HUB_COMMIT);
    assert_int_equal(target_begin(&remote, "hf://o/n/a/x", &target, &err), SFT_OK);
    assert_string_equal(target.sha256, HUB_SHA256);
    assert_string_equal(target.commit, HUB_COMMIT);
    target_end(&target);
    assert_int_equal(target_begin(&remote, "hf://o/n/b", &target, &err), SFT_NOT_FOUND);
    target_end(&target);
    assert_int_equal(target_begin(&remote, "hf://o/n/a", &target, &err), SFT_IO_NOT_FILE);
    target_end(&target);
    remote_end(&remote);
    remote_begin(&remote, NULL);
    plant_listing(&remote, "");
    assert_int_equal(target_begin(&remote, "hf://o/n/b", &target, &err), SFT_OK);
    assert_string_equal(target.sha256, "");
    target_end(&target);
    remote_end(&remote);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_read),
        cmocka_unit_test(names_are_refused),
        cmocka_unit_test(pages_are_names),
        cmocka_unit_test_setup_teardown(environment_is_read, hub_temp_make, hub_temp_remove),
        cmocka_unit_test(anonymous_reads_no_token),
        cmocka_unit_test(token_goes_to_the_hub_alone),
        cmocka_unit_test(odd_tokens_are_not_sent),
        cmocka_unit_test(urls_are_made),
        cmocka_unit_test(repositories_are_no_files),
        cmocka_unit_test(first_commit_counts),
        cmocka_unit_test(failures_teach_nothing),
        cmocka_unit_test(failures_are_explained),
        cmocka_unit_test(others_are_left_to_http),
        cmocka_unit_test_setup_teardown(cache_is_read_offline, hub_temp_make, hub_temp_remove),
        cmocka_unit_test(cache_without_a_home),
        cmocka_unit_test_setup_teardown(cache_is_read_by_commit, hub_temp_make, hub_temp_remove),
        cmocka_unit_test_setup_teardown(cache_is_listed, hub_temp_make, hub_temp_remove),
        cmocka_unit_test(listings_are_told),
        cmocka_unit_test(listings_save_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
