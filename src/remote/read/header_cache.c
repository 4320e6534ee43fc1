/* The folder of options.cache: beginnings of files. Tests: test_remote_source.c. */
#include "remote/read/files.h"

#include "base/endian.h"
#include "base/sink.h"
#include "os/io.h"
#include "remote/http/text.h"
#include "safetensors_hash.h"

#include <errno.h>
#include <string.h>

/*   "safetensors head 1\n"   what it is
 *   64 bytes                 SHA-256 of the rest, hexadecimal
 *   8 bytes                  size of the file
 *   130, 40, 65, 65 bytes    ETag, Last-Modified, SHA-256 and commit, with NULs behind them
 *   ...                      the file's beginning
 *
 * A file is named by the SHA-256 of its URL, without user and what signs it: names tell nothing. */

static const char head_magic[] = "safetensors head 1\n";
#define HEAD_MAGIC (sizeof head_magic - 1)
#define HEAD_DIGEST 64
#define HEAD_FIELDS (8 + 130 + 40 + 65 + 65)
#define HEAD_BEFORE (HEAD_MAGIC + HEAD_DIGEST + HEAD_FIELDS)
#define HEAD_MOST ((uint64_t)32 << 20) /* bytes of such a file */

/* ── The folder ── */

static sft_code head_folder_refuse(sft_error *err, const char *found) {
    sfti_fail(err, SFT_IO_OPEN,
              "expected a folder for cached headers that only you can write to, found %s", found);
    sfti_hint(err, SFT_HINT_NONE);
    return SFT_IO_OPEN;
}

static bool is_own(const os_info *info) {
    return (info->owner == sfti_os_user() || info->owner == 0) && !(info->mode & 022);
}

sft_code sfti_header_cache_open(const char *folder, sft_error *err) {
    os_info info;
    int error = sfti_os_make_folder(folder, 0700);
    if (error && error != EEXIST)
        return sfti_io_fail(err, SFT_IO_WRITE, error, "make the folder of cached headers");
    error = sfti_os_info_path(folder, false, &info);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "look at the folder of cached headers");
    if (info.kind == OS_LINK) return head_folder_refuse(err, "a symbolic link");
    if (info.kind != OS_DIR) return head_folder_refuse(err, "a file");
    if (!is_own(&info)) return head_folder_refuse(err, "one that others can write to");
    return SFT_OK;
}

/* ── Names ── */

/* Parameters of queries that sign a URL, by their beginnings, in lower case; "=" ends a name. */
static const char *const signing_words[] = {
    "x-amz-", "x-goog-", "signature=", "expires=", "policy=", "key-pair-id=", "token=",
    "access_token=", "sig=", "se=", "st=", "ske=", "skt=", "awsaccesskeyid=", "googleaccessid=",
};

/* The URL without user, fragment and what signs it. */
static bool put_plain_url(sft_buffer *out, const char *url) {
    sfti_url parts;
    if (!sfti_url_parse(url, &parts)) return sfti_buffer_put(out, url, strlen(url));
    const char *host = parts.user.data ? parts.host.data : NULL;
    size_t scheme = parts.https ? 8 : 7;
    bool ok = sfti_buffer_put(out, url, scheme);
    const char *from = host ? host : url + scheme;
    const char *end = from + strcspn(from, "?#");
    ok = ok && sfti_buffer_put(out, from, (size_t)(end - from)) && sfti_buffer_put(out, "?", 1);
    for (sft_span rest = parts.query; ok && rest.data && rest.len > 0;) {
        sft_span one = { rest.data, sfti_text_find(rest, '&') };
        size_t word = 0, words = sizeof signing_words / sizeof *signing_words;
        while (word < words && !sfti_text_begins(one, signing_words[word])) word++;
        if (word == words)
            ok = sfti_buffer_put(out, one.data, one.len) && sfti_buffer_put(out, "&", 1);
        rest = sfti_span_from(rest, one.len + (one.len < rest.len));
    }
    return ok;
}

static bool head_digest(const sft_allocator *alloc, const void *bytes, size_t len,
                        char out[HEAD_DIGEST + 1]) {
    sft_hashes hashes;
    sft_hasher *hasher;
    if (sft_hasher_new(SFT_HASH_BIT(SFT_HASH_SHA256), alloc, &hasher, NULL)) return false;
    sft_hasher_update(hasher, bytes, len);
    sft_hasher_result(hasher, &hashes);
    sft_hasher_free(hasher);
    const char *text = sft_hashes_get(&hashes, SFT_HASH_SHA256);
    if (!text || strlen(text) != HEAD_DIGEST) return false;
    memcpy(out, text, HEAD_DIGEST + 1);
    return true;
}

/* "FOLDER/DIGEST" with a NUL; freed by the caller. */
static bool head_path(const sft_remote *remote, const char *url, sft_buffer *out) {
    sft_buffer plain = { .alloc = remote->alloc };
    char name[HEAD_DIGEST + 1];
    const char *folder = remote->options.cache;
    *out = (sft_buffer){ .alloc = remote->alloc };
    bool ok = put_plain_url(&plain, url)
              && head_digest(&remote->alloc, plain.data, plain.len, name);
    sft_buffer_free(&plain);
    return ok && sfti_buffer_put(out, folder, strlen(folder)) && sfti_buffer_put(out, "/", 1)
           && sfti_buffer_put(out, name, sizeof name);
}

/* ── Files ── */

/* The bytes of a file of ours; false: there is none, or it is not to be trusted. */
static bool head_read(const sft_remote *remote, const char *path, char **bytes, size_t *len) {
    os_info info;
    int fd;
    *bytes = NULL;
    if (sfti_os_open_no_link(path, false, &fd)) return false;
    bool ok = !sfti_os_info_fd(fd, &info) && info.kind == OS_FILE && is_own(&info)
              && info.size >= HEAD_BEFORE && info.size <= HEAD_MOST;
    *len = ok ? (size_t)info.size : 0;
    if (ok) *bytes = sfti_take(&remote->alloc, *len);
    size_t got = 0;
    ok = *bytes && !sfti_read_all(fd, *bytes, *len, 0, &got) && got == *len;
    (void)sfti_os_close(fd);
    if (!ok) sfti_release(&remote->alloc, *bytes, *len);
    return ok;
}

static const char *get_field(const char *at, char *into, size_t cap) {
    memcpy(into, at, cap);
    into[cap - 1] = '\0';
    return at + cap;
}

static bool head_parse(const sft_remote *remote, const char *bytes, size_t len, sfti_cached *out) {
    char digest[HEAD_DIGEST + 1];
    const char *rest = bytes + HEAD_MAGIC + HEAD_DIGEST;
    if (memcmp(bytes, head_magic, HEAD_MAGIC)) return false;
    if (!head_digest(&remote->alloc, rest, len - HEAD_MAGIC - HEAD_DIGEST, digest)) return false;
    if (memcmp(bytes + HEAD_MAGIC, digest, HEAD_DIGEST)) return false;
    sfti_answer_begin(&out->answer, &remote->alloc);
    out->answer.total = sfti_get_u64(rest);
    rest = get_field(rest + 8, out->answer.etag, sizeof out->answer.etag);
    rest = get_field(rest, out->answer.modified, sizeof out->answer.modified);
    rest = get_field(rest, out->sha256, sizeof out->sha256);
    rest = get_field(rest, out->commit, sizeof out->commit);
    out->len = len - HEAD_BEFORE;
    return out->len <= out->answer.total;
}

bool sfti_header_cache_get(sft_remote *remote, const char *url, sfti_cached *out) {
    sft_buffer path;
    char *bytes = NULL;
    size_t len = 0;
    memset(out, 0, sizeof *out);
    bool found = head_path(remote, url, &path) && head_read(remote, path.data, &bytes, &len);
    sft_buffer_free(&path);
    if (!found) return false;
    found = head_parse(remote, bytes, len, out);
    if (found) out->data = sfti_take(&remote->alloc, out->len ? out->len : 1);
    found = found && out->data;
    if (found) memcpy(out->data, bytes + HEAD_BEFORE, out->len);
    sfti_release(&remote->alloc, bytes, len);
    return found;
}

void sfti_header_cache_free(sft_remote *remote, sfti_cached *cached) {
    sfti_release(&remote->alloc, cached->data, cached->len ? cached->len : 1);
    cached->data = NULL;
}

static char *put_field(char *at, const char *text, size_t cap) {
    size_t len = strlen(text);
    memcpy(at, text, len < cap ? len : cap - 1);
    return at + cap;
}

static void head_write(const sft_remote *remote, const char *path, sft_span bytes) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    sft_sink sink;
    os_info info;
    int error = sfti_os_info_path(path, false, &info);
    if (error ? error != ENOENT : info.kind != OS_FILE || !is_own(&info)) return; /* a stranger's */
    options.no_sync = true; /* what is lost is fetched again */
    options.mode = 0600;
    options.link = SFT_LINK_REFUSE;
    options.alloc = &remote->alloc;
    if (!sft_sink_path(path, &options, &sink, NULL)) (void)sfti_sink_fill(&sink, bytes, NULL);
}

void sfti_header_cache_put(sft_remote *remote, const char *url, const sfti_cached *cached) {
    sft_buffer path = { .alloc = remote->alloc };
    char digest[HEAD_DIGEST + 1];
    size_t len = HEAD_BEFORE + cached->len;
    if (!*cached->answer.etag && !*cached->answer.modified) return; /* nothing to compare */
    if (cached->len > HEAD_MOST - HEAD_BEFORE) return;
    char *bytes = sfti_take(&remote->alloc, len);
    if (!bytes) return;
    memset(bytes, 0, HEAD_BEFORE);
    memcpy(bytes, head_magic, HEAD_MAGIC);
    char *rest = bytes + HEAD_MAGIC + HEAD_DIGEST, *at = rest + 8;
    sfti_put_u64(rest, cached->answer.total);
    at = put_field(at, cached->answer.etag, sizeof cached->answer.etag);
    at = put_field(at, cached->answer.modified, sizeof cached->answer.modified);
    at = put_field(at, cached->sha256, sizeof cached->sha256);
    at = put_field(at, cached->commit, sizeof cached->commit);
    if (cached->len > 0) memcpy(at, cached->data, cached->len);
    if (head_digest(&remote->alloc, rest, len - HEAD_MAGIC - HEAD_DIGEST, digest)) {
        memcpy(bytes + HEAD_MAGIC, digest, HEAD_DIGEST);
        if (head_path(remote, url, &path)) head_write(remote, path.data, (sft_span){ bytes, len });
    }
    sft_buffer_free(&path);
    sfti_release(&remote->alloc, bytes, len);
}
