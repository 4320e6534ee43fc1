/* Object stores: names, URLs, regions, signed requests and what refusals mean.
 * Tests: test_remote_s3.c. */
#include "remote/stores/bucket.h"

#include "base/error.h"
#include "remote/http/text.h"

#include <stdio.h>
#include <string.h>

#define BUCKET_LEAST 3
#define BUCKET_MOST 222 /* of S3 63, of Google Cloud Storage with dots in it 222 */

/* Buckets whose region was learnt. */
struct bucket_region {
    struct bucket_region *next;
    sft_span bucket;
    const char *region;
};

/* An object of a target, or a folder of objects.
 *
 * The region may change until the first success: the head of a file is fetched by one thread,
 * alone. From then on `settled` keeps it, whatever answers say, and threads read it freely. */
typedef struct object {
    sfti_store *store;
    sft_span bucket, key;
    const char *region; /* NULL: not known */
    sft_span token;     /* of a folder: continues its list; data NULL: its beginning */
    bool folder;
    bool settled;       /* guarded by the remote's mutex */
} object;

/* ── Names ── */

static bool is_bucket(sft_span name) {
    if (name.len < BUCKET_LEAST || name.len > BUCKET_MOST) return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        if (c == '.' && (i == 0 || i + 1 == name.len || name.data[i - 1] == '.')) return false;
        if (!sfti_is_letter(c) && !sfti_is_digit(c) && c != '.' && c != '-' && c != '_')
            return false;
    }
    return true;
}

/* SCHEME://BUCKET[/KEY]; keys stand for themselves, without any encoding. */
static bool split_object(const char *name, sft_span *bucket, sft_span *key) {
    const char *at = strstr(name, "://");
    if (!at) return false;
    sft_span rest = sft_span_cstr(at + 3);
    size_t slash = sfti_text_find(rest, '/');
    *bucket = (sft_span){ rest.data, slash };
    *key = sfti_span_from(rest, slash < rest.len ? slash + 1 : slash);
    return is_bucket(*bucket);
}

bool sfti_object_is_folder(const char *name) {
    sft_span bucket, key;
    return split_object(name, &bucket, &key) && (key.len == 0 || key.data[key.len - 1] == '/');
}

/* ── URLs ── */

static bool is_label_char(char c) {
    return (c >= 'a' && c <= 'z') || sfti_is_digit(c) || c == '-';
}

/* Whether the bucket is part of the host. */
static bool is_virtual(const object *own) {
    const sfti_store *store = own->store;
    const sft_span bucket = own->bucket;
    const char *how = store->addressing;
    sfti_url url;
    /* It must be a label that a certificate for "*.host" covers. */
    bool label = bucket.len <= 63 && *bucket.data != '-' && bucket.data[bucket.len - 1] != '-';
    for (size_t i = 0; i < bucket.len; i++) label &= is_label_char(bucket.data[i]);
    if (!label || (how && strcmp(how, "path") == 0)) return false;
    if (!store->endpoint) return true;
    return how && strcmp(how, "virtual") == 0 && sfti_url_parse(store->endpoint, &url)
        && *url.host.data != '[' && !sfti_is_digit(url.host.data[url.host.len - 1]);
}

static bool url_put_bucket(sft_buffer *out, const object *own) {
    return sfti_buffer_put(out, own->bucket.data, own->bucket.len);
}

/* Scheme and host, with the bucket where it is part of the host. */
static bool url_put_origin(sft_buffer *out, const object *own, bool bucket) {
    const char *endpoint = own->store->endpoint, *region = own->region;
    size_t scheme = endpoint ? (size_t)(strstr(endpoint, "://") + 3 - endpoint) : 0;
    bool ok = endpoint ? sfti_buffer_put(out, endpoint, scheme) : sfti_put_word(out, "https://");
    if (bucket)
        ok = ok && url_put_bucket(out, own) && sfti_put_word(out, ".");
    if (endpoint) return ok && sfti_put_word(out, endpoint + scheme);
    ok = ok && sfti_put_word(out, "s3.");
    if (region) ok = ok && sfti_put_word(out, region) && sfti_put_word(out, ".");
    ok = ok && sfti_put_word(out, "amazonaws.com");
    if (region && strncmp(region, "cn-", 3) == 0) ok = ok && sfti_put_word(out, ".cn");
    return ok;
}

/* Make the target's URL from what is known now. */
static bool place_object(sfti_target *target) {
    const object *own = target->own;
    bool in_host = is_virtual(own);
    sft_buffer url = { .alloc = target->arena.alloc };
    bool ok = url_put_origin(&url, own, in_host);
    if (!in_host)
        ok = ok && sfti_put_word(&url, "/") && url_put_bucket(&url, own);
    if (in_host || !own->folder) ok = ok && sfti_put_word(&url, "/");
    if (own->folder)
        ok = ok && sfti_put_word(&url, "?list-type=2&delimiter=%2F&encoding-type=url&prefix=");
    ok = ok && sfti_url_encode(&url, own->key, own->folder ? "" : "/");
    if (own->token.data)
        ok = ok && sfti_put_word(&url, "&continuation-token=")
          && sfti_url_encode(&url, own->token, "");
    const char *copy = ok ? sfti_arena_copy(&target->arena, url.data, url.len) : NULL;
    if (copy) target->url = copy;
    sft_buffer_free(&url);
    return copy != NULL;
}

/* ── Regions ── */

static bool is_region(const char *text) {
    size_t len = 0;
    for (; text[len]; len++)
        if (!is_label_char(text[len])) return false;
    return len > 0 && len < 40;
}

static const char *region_of(sft_remote *remote, const object *own) {
    const char *found = NULL;
    sfti_os_mutex_lock(&remote->mutex);
    struct bucket_region *at = own->store->regions;
    while (at && !sft_span_equal(at->bucket, own->bucket)) at = at->next;
    if (at) found = at->region;
    sfti_os_mutex_unlock(&remote->mutex);
    return found ? found : own->store->region;
}

/* Remember a region for all targets of the bucket. Without memory it is learnt again. */
static void learn_region(sft_remote *remote, const object *own, const char *region) {
    if (!is_region(region)) return;
    sfti_os_mutex_lock(&remote->mutex);
    struct bucket_region *at = own->store->regions;
    while (at && !sft_span_equal(at->bucket, own->bucket)) at = at->next;
    const char *copy = at && strcmp(at->region, region) == 0
                           ? at->region : sfti_arena_copy(&remote->arena, region, strlen(region));
    if (!at && copy && (at = sfti_arena_take(&remote->arena, sizeof *at))) {
        *at = (struct bucket_region){ .next = own->store->regions };
        at->bucket.data = sfti_arena_copy(&remote->arena, own->bucket.data, own->bucket.len);
        at->bucket.len = own->bucket.len;
        if (at->bucket.data) own->store->regions = at;
    }
    if (at && copy) at->region = copy;
    sfti_os_mutex_unlock(&remote->mutex);
}

/* "...; the region 'a' is wrong; expecting 'b'", as S3 and those like it say it. */
static void told_region(const sfti_answer *answer, char out[40]) {
    static const char *const marks[] = { "expecting '", "expecting &#39;", "expecting &apos;" };
    memcpy(out, answer->region, sizeof answer->region);
    for (size_t i = 0; !*out && i < sizeof marks / sizeof *marks; i++) {
        const char *at = strstr(answer->line, marks[i]);
        if (!at) continue;
        at += strlen(marks[i]);
        size_t len = strcspn(at, "'&");
        if (len >= 40) continue;
        memcpy(out, at, len);
        out[len] = '\0';
    }
}

/* Whether a URL is at the place that requests are signed for. */
static bool is_signed_for(const object *own, const char *url) {
    sft_buffer origin = { .alloc = own->store->alloc };
    bool same = url_put_origin(&origin, own, is_virtual(own)) && sfti_buffer_put(&origin, "", 1)
             && sfti_url_same_origin(origin.data, url);
    sft_buffer_free(&origin);
    return same;
}

/* Whether the bucket turned out to be in another region than that of the target's URL, which is
 * then made anew. */
static bool move_region(sfti_target *target, const sfti_answer *answer) {
    object *own = target->own;
    char told[40];
    told_region(answer, told);
    learn_region(target->remote, own, told);
    const char *now = region_of(target->remote, own);
    sfti_os_mutex_lock(&target->remote->mutex);
    bool moves = !own->settled && now && (!own->region || strcmp(now, own->region) != 0);
    if (moves) own->region = now;
    sfti_os_mutex_unlock(&target->remote->mutex);
    return (moves || !is_signed_for(own, target->url)) && place_object(target);
}

/* ── Targets ── */

bool sfti_store_at(sft_remote *remote, sfti_store *store, const char *url) {
    sfti_url parts;
    size_t len = strlen(url);
    while (len > 0 && url[len - 1] == '/') len--;
    char *copy = sfti_arena_copy(&remote->arena, url, len);
    if (!copy) return false;
    bool good = sfti_url_parse(copy, &parts) && !parts.user.data && !parts.query.data;
    for (size_t i = 0; good && i < parts.origin.len; i++) copy[i] = sfti_lower(copy[i]);
    store->endpoint = copy;
    if (!good) store->problem = "the endpoint is not an http or https URL without user and query";
    return true;
}

static sft_code open_object(sfti_target *target, bool folder, sft_error *err) {
    sfti_store *store = target->remote->state[target->scheme->id];
    if (store->problem) {
        (void)sfti_fail(err, SFT_REMOTE_DENIED, "%s", store->problem);
        sfti_hint(err, store->denied);
        return SFT_REMOTE_DENIED;
    }
    object *own = sfti_arena_take(&target->arena, sizeof *own);
    if (!own) return sfti_fail_memory(err, sizeof *own);
    *own = (object){ .store = store, .folder = folder };
    target->own = own;
    if (!split_object(target->name, &own->bucket, &own->key))
        return sfti_fail(err, SFT_REMOTE_URL, "expected %s://BUCKET/KEY", store->scheme->name);
    if (!folder && sfti_object_is_folder(target->name))
        return sfti_fail(err, SFT_IO_NOT_FILE, "expected an object, found the name of a folder");
    own->region = region_of(target->remote, own);
    if (!store->endpoint && own->region && !is_region(own->region))
        return sfti_fail(err, SFT_REMOTE_URL, "expected the name of a region in AWS_REGION or the "
                         "profile, such as eu-west-1, found \"%.80s\"", own->region);
    return SFT_OK;
}

sft_code sfti_object_resolve(sfti_target *target, sft_error *err) {
    sft_code code = open_object(target, false, err);
    if (!code && !place_object(target)) code = sfti_fail_memory(err, SFTI_URL_MOST);
    return code;
}

sft_code sfti_folder_resolve(sfti_target *target, sft_error *err) {
    sft_code code = open_object(target, true, err);
    if (code) return code;
    object *own = target->own;
    if (own->key.len > 0 && own->key.data[own->key.len - 1] != '/') {
        char *key = sfti_arena_copy(&target->arena, own->key.data, own->key.len + 1);
        if (!key) return sfti_fail_memory(err, own->key.len);
        key[own->key.len++] = '/';
        own->key.data = key;
    }
    return place_object(target) ? SFT_OK : sfti_fail_memory(err, SFTI_URL_MOST);
}

sft_span sfti_folder_prefix(const sfti_target *target) {
    const object *own = target->own;
    return own->key;
}

bool sfti_folder_continue(sfti_target *target, sft_span token) {
    object *own = target->own;
    own->token = (sft_span){ sfti_arena_copy(&target->arena, token.data, token.len), token.len };
    return own->token.data && place_object(target);
}

/* ── Requests ── */

sft_code sfti_object_authorize(sfti_target *target, const char *url, sfti_headers *headers,
                               sft_error *err) {
    const object *own = target->own;
    const sfti_store *store = own->store;
    if (!is_signed_for(own, url)) return SFT_OK;
    if (store->bearer)
        return sfti_headers_add(headers, "authorization", store->bearer)
                   ? SFT_OK : sfti_misuse(err, "the access token cannot be sent: expected plain "
                                          "text");
    if (!store->keys.id) return SFT_OK;
    sfti_os_mutex_lock(&target->remote->mutex);
    int64_t skew = store->skew_s;
    sfti_os_mutex_unlock(&target->remote->mutex);
    sfti_sign_request request = { store->keys, own->region ? own->region : "us-east-1", "s3",
                                  "GET", url, sfti_os_time_s() + (uint64_t)skew };
    return sfti_sign(&request, headers, err);
}

bool sfti_object_learn(sfti_target *target, const char *url, const sfti_answer *answer) {
    object *own = target->own;
    (void)url;
    if (answer->status >= 200 && answer->status < 300) {
        sfti_os_mutex_lock(&target->remote->mutex);
        own->settled = true;
        sfti_os_mutex_unlock(&target->remote->mutex);
    } else if (*answer->region) {
        learn_region(target->remote, own, answer->region);
    }
    return false;
}

/* ── Failures ── */

static const struct store_error {
    const char *word; /* of the answer's <Code> */
    sft_code code;
    bool hinted;      /* with the store's hint and advice */
    const char *text;
} store_errors[] = {
    { "NoSuchKey", SFT_NOT_FOUND, false, "no such object in the bucket" },
    { "NoSuchBucket", SFT_NOT_FOUND, false, "no such bucket" },
    { "AllAccessDisabled", SFT_REMOTE_DENIED, false, "all access to the bucket is disabled" },
    { "InvalidObjectState", SFT_REMOTE_DENIED, false,
      "the object is archived: restore it, then read it" },
    { "InvalidAccessKeyId", SFT_REMOTE_DENIED, true, "the store does not know the access key" },
    { "SignatureDoesNotMatch", SFT_REMOTE_DENIED, true,
      "the signature is not accepted: the secret key is not that of the access key" },
    { "ExpiredToken", SFT_REMOTE_DENIED, true, "the session token has expired" },
    { "InvalidToken", SFT_REMOTE_DENIED, true, "the session token is not accepted" },
    { "TokenRefreshRequired", SFT_REMOTE_DENIED, true, "the session token must be renewed" },
    { "PermanentRedirect", SFT_REMOTE_STATUS, true, "the bucket is in another region" },
    { "AuthorizationHeaderMalformed", SFT_REMOTE_STATUS, true,
      "the request is signed for another region than the bucket's" },
};

static bool is_error(const sfti_answer *answer, const char *word) {
    size_t len = strlen(word);
    return strncmp(answer->line, word, len) == 0
        && (answer->line[len] == '\0' || answer->line[len] == ':');
}

static void explain_clock(sfti_target *target, const sfti_answer *answer, bool *again,
                          sft_error *err) {
    const object *own = target->own;
    const int64_t date = sfti_answer_date(answer);
    if (date > 0) {
        sfti_os_mutex_lock(&target->remote->mutex);
        own->store->skew_s = date - (int64_t)sfti_os_time_s();
        sfti_os_mutex_unlock(&target->remote->mutex);
        *again = true;
    }
    (void)sfti_fail(err, SFT_REMOTE_DENIED, "the time of the signature is too far from the "
                    "server's (RequestTimeTooSkewed)");
    sfti_hint(err, SFT_HINT_REMOTE_CLOCK);
}

bool sfti_object_explain(sfti_target *target, const char *url, const sfti_answer *answer,
                         bool *again, sft_error *err) {
    const object *own = target->own;
    const sfti_store *store = own->store;
    if (move_region(target, answer)) {
        *again = true;
        (void)sfti_fail(err, SFT_REMOTE_STATUS, "the bucket is in region %s", own->region);
        return true;
    }
    if (!is_signed_for(own, url)) return false;
    if (is_error(answer, "RequestTimeTooSkewed")) {
        explain_clock(target, answer, again, err);
        return true;
    }
    size_t part = own->key.len; /* whether the key's last part has no extension, as a folder's */
    while (part > 0 && own->key.data[part - 1] != '/' && own->key.data[part - 1] != '.') part--;
    bool bare = own->key.len > 0 && (part == 0 || own->key.data[part - 1] == '/');
    for (size_t i = 0; i < sizeof store_errors / sizeof *store_errors; i++) {
        const struct store_error *row = &store_errors[i];
        if (!is_error(answer, row->word)) continue;
        bool advised = row->hinted && store->advice;
        const char *more = advised ? store->advice : row->code == SFT_NOT_FOUND && bare
                               ? "the name of a folder ends in a slash" : NULL;
        (void)sfti_fail(err, row->code, "%s (%s)%s%s", row->text, row->word, more ? "; " : "",
                        more ? more : "");
        sfti_hint(err, row->hinted ? store->denied : SFT_HINT_NONE);
        return true;
    }
    if (answer->status != 401 && answer->status != 403) return false;
    bool asked = store->keys.id || store->bearer;
    size_t word = strcspn(answer->line, ":");
    char status[20];
    (void)snprintf(status, sizeof status, "status %d", answer->status);
    (void)sfti_fail(err, SFT_REMOTE_DENIED, "access denied%s (%s%.*s)%s%s",
                    asked ? "" : " to requests without credentials", word ? "" : status,
                    word < 60 ? (int)word : 60, answer->line, store->advice ? "; " : "",
                    store->advice ? store->advice : "");
    sfti_hint(err, store->denied);
    return true;
}
