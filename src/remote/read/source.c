/* A remote file as a source. Tests: test_remote_source.c. */
#include "remote/read/files.h"

#include "bytes/source.h"
#include "remote/read/blocks.h"
#include "remote/http/http.h"

#include "base/endian.h"

#include <stdatomic.h>
#include <string.h>

#define HEAD_FIRST ((size_t)128 << 10) /* asked for first: holds 97 of 100 headers */
#define WHOLE_SMALL ((uint64_t)1 << 20) /* files that are read whole from servers without ranges */
#define WHOLE_MOST ((uint64_t)64 << 20) /* and those with options.whole */
#define HEAD_KEPT ((uint64_t)16 << 20)  /* bytes of a header that are cached */

typedef struct remote_source {
    sft_remote *remote;
    bool (*keep)(void *ctx, sft_source source); /* when it is closed; NULL: nobody keeps it */
    void *keep_ctx;
    atomic_bool used;   /* read past HEAD_FIRST, or it failed: it is not kept */
    bool offline;       /* a scheme that has a switch of its own for it gives no URL */
    sfti_target target; /* requests get copies of it */
    uint64_t total;
    char *head; /* the file's beginning */
    size_t head_len;
    bool no_ranges;
    bool keep_header;   /* the header is to be cached once it was read */
    sfti_stream stream; /* what follows the head */
    /* Guarded by the pool's mutex: */
    const char *final_url; /* where ranges are fetched; NULL: target.url. Old ones are kept */
    sfti_answer first;     /* what later answers are compared with */
    const char *first_url; /* where that was found */
    char *whole;           /* of no_ranges: all of it, once it was read */
    bool whole_busy;       /* a thread reads it */
    sfti_arena urls;
} remote_source;

/* ── Ranges ── */

static sft_code open_local(const remote_source *s, const char *path, sft_source *out,
                           sft_error *err) {
    sft_open_options how = SFT_OPEN_OPTIONS_INIT;
    how.alloc = &s->remote->alloc;
    return sfti_source_open(path, &how, out, NULL, NULL, err);
}

/* The Hub's cache has got the file meanwhile. */
static sft_code fetch_local(const remote_source *s, const char *path, sfti_fetch *fetch,
                            sft_error *err) {
    size_t len = (size_t)(fetch->end - fetch->begin);
    sft_source local;
    int fd, error = sfti_os_open_read(path, &fd); /* by a thread of the pool: nobody is told */
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    sft_code code = sft_source_fd(fd, &s->remote->alloc, &local, err);
    if (!code) {
        fetch->total = local.size;
        code = sft_source_read(&local, fetch->begin, fetch->into, len, &fetch->got, err);
        sft_source_close(&local);
    }
    (void)sfti_os_close(fd);
    return code;
}

/* With the mutex held: remember where a range was found, which changes when a signed URL has
 * expired, and what is to be compared with there. False: no memory, and what was known stays. */
static bool source_learn(remote_source *s, sfti_fetch *fetch) {
    const char *url = fetch->final_url, *old = s->final_url;
    if (!url || (old && strcmp(url, old) == 0)) return true;
    bool own = s->target.url && strcmp(url, s->target.url) == 0;
    const char *kept = own ? s->target.url : sfti_arena_copy(&s->urls, url, strlen(url));
    if (!kept) return false;
    s->final_url = own ? NULL : kept;
    if (s->first_url && sfti_url_same_origin(s->first_url, kept)) return true;
    s->first_url = kept;
    s->first = fetch->answer;
    fetch->answer.location = NULL;
    return true;
}

/* A range, at the URL where the last one was found; if that has expired, by the file's own. A
 * server without ranges is asked for all there is, by the file's own. The target is copied: its
 * arena is this request's. */
static sft_code source_fetch(void *ctx, uint64_t begin, uint64_t end, void *into,
                             bool (*go_on)(void *ctx), void *go_on_ctx, sft_error *err) {
    remote_source *s = ctx;
    sfti_pool *pool = s->remote->pool;
    sfti_target target = s->target;
    sfti_answer same;
    sfti_fetch fetch = { .begin = begin, .end = end, .into = into, .same = &same,
                         .first = s->no_ranges, .go_on = go_on, .go_on_ctx = go_on_ctx };
    *target.sha256 = *target.commit = '\0';
    target.arena = (sfti_arena){ .alloc = s->remote->alloc };
    if (s->offline)
        return sfti_fail_byte(err, SFT_REMOTE_OFFLINE, begin,
                              "expected these bytes in a cache, found only the file's beginning");
    sft_code code = sfti_pool_connect(pool, err);
    if (code) return code;
    sfti_os_mutex_lock(&pool->mutex);
    same = s->first;
    fetch.same_url = s->no_ranges ? NULL : s->first_url;
    fetch.url = s->no_ranges ? NULL : s->final_url;
    sfti_os_mutex_unlock(&pool->mutex);
    code = sfti_http_range(&target, &fetch, err);
    sfti_pool_disconnect(pool);

    /* What was found at another host is this file by what the redirect says of it. */
    const char *sha256 = s->target.sha256, *commit = s->target.commit;
    bool is_same = *sha256 ? strcmp(sha256, target.sha256) == 0
                           : *commit && strcmp(commit, target.commit) == 0;
    if (!code && target.local) code = fetch_local(s, target.local, &fetch, err);
    else if (!code && fetch.same_url && !is_same
             && !sfti_url_same_origin(fetch.same_url, fetch.final_url))
        code = sfti_fail_byte(err, SFT_REMOTE_CHANGED, begin, "expected the file that was opened, "
                              "found one elsewhere of which nothing tells whether it is the same");
    if (!code && (fetch.got != end - begin || fetch.total != s->total))
        code = sfti_fail_byte(err, SFT_REMOTE_CHANGED, begin + fetch.got, "expected a file of %llu "
                              "bytes, as it was when it was opened, found %llu",
                              (unsigned long long)s->total, (unsigned long long)fetch.total);
    if (!code && !s->no_ranges) {
        sfti_os_mutex_lock(&pool->mutex);
        (void)source_learn(s, &fetch);
        sfti_os_mutex_unlock(&pool->mutex);
    }
    sfti_arena_free(&target.arena);
    sfti_fetch_free(&fetch);
    return code;
}

/* ── Servers without ranges ── */

/* Read it whole, once; s->whole then stays. Other readers wait for the one that does. */
static sft_code whole_read(remote_source *s, sft_error *err) {
    sfti_pool *pool = s->remote->pool;
    char *whole = NULL;
    sft_code code = SFT_OK;
    uint64_t most = s->remote->options.whole ? WHOLE_MOST : WHOLE_SMALL;
    if (s->total > most) {
        sfti_fail_byte(err, SFT_REMOTE_RANGE, s->head_len, "the server sends files whole, whatever "
                       "range is asked for: expected at most %llu bytes to read them so, found "
                       "%llu", (unsigned long long)most, (unsigned long long)s->total);
        sfti_hint(err, SFT_HINT_REMOTE_DOWNLOAD);
        return SFT_REMOTE_RANGE;
    }
    sfti_os_mutex_lock(&pool->mutex);
    while (!code && s->whole_busy)
        if (!sfti_pool_wait(pool)) code = sfti_fail_cancelled(err);
    if (!code && !s->whole) {
        s->whole_busy = true;
        sfti_os_mutex_unlock(&pool->mutex);
        whole = sfti_take(&s->remote->alloc, (size_t)s->total);
        code = whole ? source_fetch(s, 0, s->total, whole, NULL, NULL, err)
                     : sfti_fail_memory(err, s->total);
        if (code) sfti_release(&s->remote->alloc, whole, (size_t)s->total);
        if (code) whole = NULL;
        sfti_os_mutex_lock(&pool->mutex);
        s->whole = whole;
        s->whole_busy = false;
        sfti_os_cond_wake(&pool->done);
    }
    sfti_os_mutex_unlock(&pool->mutex);
    return code;
}

/* ── Headers that are kept ── */

static bool header_len(const char *bytes, size_t len, uint64_t *out) {
    if (len < 8) return false;
    uint64_t text = sfti_get_u64(bytes);
    *out = text + 8;
    return text <= HEAD_KEPT;
}

static void header_keep(remote_source *s, char *bytes, size_t len) {
    sfti_cached cached = { .answer = s->first, .data = bytes, .len = len };
    cached.answer.total = s->total;
    memcpy(cached.sha256, s->target.sha256, sizeof cached.sha256);
    memcpy(cached.commit, s->target.commit, sizeof cached.commit);
    const char *url = sfti_remote_url(s->remote, s->target.name);
    if (url) sfti_header_cache_put(s->remote, url, &cached);
}

/* ── The source ── */

static sft_code source_read(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                            sft_error *err) {
    remote_source *s = ctx;
    uint64_t header;
    sft_code code = sfti_remote_check_process(s->remote, err);
    if (code || offset > HEAD_FIRST || len > HEAD_FIRST - offset) atomic_store(&s->used, true);
    *got = 0;
    if (code || offset >= s->total) return code;
    if (len > s->total - offset) len = (size_t)(s->total - offset);
    size_t known = offset < s->head_len ? s->head_len - (size_t)offset : 0;
    if (known > len) known = len;
    if (known > 0) memcpy(into, s->head + offset, known);
    const uint64_t from = offset + known, end = offset + len;
    char *rest = (char *)into + known;
    if (from < end && !s->no_ranges) {
        code = sfti_stream_read(&s->stream, from, rest, (size_t)(end - from), err);
    } else if (from < end) {
        code = whole_read(s, err);
        if (!code) memcpy(rest, s->whole + from, (size_t)(end - from));
    }
    if (code) {
        atomic_store(&s->used, true);
        return code;
    }
    *got = len;
    if (!s->keep_header || from != s->head_len || from == end
        || !header_len(s->head, s->head_len, &header) || header != end)
        return SFT_OK;
    /* A header longer than the head was read to its end: all of it is kept. */
    char *bytes = sfti_take(&s->remote->alloc, (size_t)header);
    if (!bytes) return SFT_OK;
    memcpy(bytes, s->head, s->head_len);
    memcpy(bytes + s->head_len, rest, (size_t)(end - from));
    header_keep(s, bytes, (size_t)header);
    sfti_release(&s->remote->alloc, bytes, (size_t)header);
    return SFT_OK;
}

static void source_expect(void *ctx, const sft_run *runs, size_t count) {
    remote_source *s = ctx;
    bool here = !sfti_remote_check_process(s->remote, NULL);
    if (here && !s->no_ranges && !s->offline) sfti_stream_expect(&s->stream, runs, count);
}

static const sft_source_vtable remote_source_vtable;

static void source_close(void *ctx) {
    remote_source *s = ctx;
    sft_allocator alloc = s->remote->alloc;
    bool (*keep)(void *ctx, sft_source source) = s->keep;
    sft_source own = { s, &remote_source_vtable, s->total, NULL, false };
    s->keep = NULL;
    if (keep && !atomic_load(&s->used) && keep(s->keep_ctx, own)) return;
    if (s->stream.blocks) sfti_stream_end(&s->stream);
    sfti_release(&alloc, s->head, s->head_len);
    sfti_release(&alloc, s->whole, (size_t)s->total);
    sfti_answer_free(&s->first);
    sfti_arena_free(&s->urls);
    sfti_arena_free(&s->target.arena);
    sfti_release(&alloc, s, sizeof *s);
}

static const sft_source_vtable remote_source_vtable = {
    sizeof(sft_source_vtable), source_read, source_close, source_expect, NULL
};

void sfti_source_on_close(const sft_source *source, bool (*keep)(void *ctx, sft_source source),
                          void *ctx) {
    remote_source *s = source->ctx;
    s->keep = keep;
    s->keep_ctx = ctx;
}

/* ── Opening ── */

/* What the first answer says of the file; `bytes` become its head. */
static sft_code open_take_first(remote_source *s, sfti_fetch *fetch, char *bytes, size_t cap,
                                sft_error *err) {
    const sft_allocator *alloc = &s->remote->alloc;
    s->total = fetch->total;
    if (s->total == SFT_SIZE_UNKNOWN && fetch->got < cap) s->total = fetch->got;
    if (fetch->got > s->total) {
        sfti_release(alloc, bytes, cap);
        return sfti_fail(err, SFT_REMOTE_RANGE, "expected a file of %llu bytes, found more",
                         (unsigned long long)s->total);
    }
    s->no_ranges = fetch->no_ranges;
    s->head_len = fetch->got;
    if (!source_learn(s, fetch)) {
        sfti_release(alloc, bytes, cap);
        s->head_len = 0;
        return sfti_fail_memory(err, strlen(fetch->final_url));
    }
    if (s->head_len == cap) {
        s->head = bytes;
        return SFT_OK;
    }
    if (s->head_len > 0) s->head = alloc->resize(alloc->ctx, bytes, cap, s->head_len);
    if (!s->head) sfti_release(alloc, bytes, cap);
    return s->head || s->head_len == 0 ? SFT_OK : sfti_fail_memory(err, s->head_len);
}

/* Ask for the first `cap` bytes. */
static sft_code open_ask(remote_source *s, size_t cap, sfti_fetch *fetch, sft_error *err) {
    sfti_pool *pool = s->remote->pool;
    fetch->end = cap;
    fetch->first = true;
    fetch->total = SFT_SIZE_UNKNOWN;
    sft_code code = sfti_pool_connect(pool, err);
    if (code) return code;
    code = sfti_http_range(&s->target, fetch, err);
    sfti_pool_disconnect(pool);
    return code;
}

static sft_code open_first(remote_source *s, const sfti_fetch *given, size_t cap, sft_error *err) {
    const sft_allocator *alloc = &s->remote->alloc;
    sfti_fetch fetch = *given;
    char *bytes = sfti_take(alloc, cap);
    if (!bytes) return sfti_fail_memory(err, cap);
    fetch.into = bytes;
    sft_code code = open_ask(s, cap, &fetch, err);
    if (code || s->target.local) sfti_release(alloc, bytes, cap);
    else code = open_take_first(s, &fetch, bytes, cap, err);
    sfti_fetch_free(&fetch);
    return code;
}

/* A server that tells no size is asked again for all that may be read of such a file. */
static sft_code open_sent(remote_source *s, const sfti_fetch *fetch, sft_error *err) {
    size_t whole = (size_t)(s->remote->options.whole ? WHOLE_MOST : WHOLE_SMALL) + 1;
    uint64_t header;
    sft_code code = open_first(s, fetch, HEAD_FIRST, err);
    if (!code && s->no_ranges && s->total == SFT_SIZE_UNKNOWN) {
        sfti_release(&s->remote->alloc, s->head, s->head_len);
        s->head = NULL;
        s->head_len = 0;
        code = open_first(s, fetch, whole, err);
    }
    if (!code && !s->target.local && s->total == SFT_SIZE_UNKNOWN)
        code = sfti_fail(err, SFT_REMOTE_RANGE,
                         "expected the file's size in the answer, found none");
    if (code || s->target.local || !s->remote->options.cache) return code;
    s->keep_header = header_len(s->head, s->head_len, &header) && header > s->head_len
                     && header <= s->total;
    if (!s->keep_header && s->head_len > 0) header_keep(s, s->head, s->head_len);
    return SFT_OK;
}

/* Whether what is cached is of the file's state now: by what the Hub's redirect says, or by one
 * byte. */
static sft_code open_compare(remote_source *s, sfti_fetch *fetch, const sfti_cached *cached,
                             bool *same, sft_error *err) {
    char byte;
    fetch->into = &byte;
    if (*cached->sha256) s->target.known = cached->sha256;
    sft_code code = open_ask(s, 1, fetch, err);
    s->target.known = NULL;
    *same = !code && !s->target.local;
    if (!*same || s->target.is_known) return code;
    *same = !fetch->no_ranges && fetch->got == 1 && fetch->total == cached->answer.total
            && byte == cached->data[0] && sfti_answer_same(&fetch->answer, &cached->answer);
    return SFT_OK;
}

/* Take what is cached, if it is of the same state, or if nothing may be sent. *taken: it was. */
static sft_code open_cached(remote_source *s, sfti_fetch fetch, bool *taken, sft_error *err) {
    sft_remote *remote = s->remote;
    const char *url = sfti_remote_url(remote, s->target.name);
    sfti_cached cached;
    *taken = false;
    if (!url) return sfti_fail_memory(err, strlen(s->target.name));
    bool found = sfti_header_cache_get(remote, url, &cached) && cached.len > 0;
    sft_code code = SFT_OK;
    if (found && !s->offline) code = open_compare(s, &fetch, &cached, &found, err);
    if (found) {
        s->total = cached.answer.total;
        s->head = cached.data;
        s->head_len = cached.len;
        cached.data = NULL;
        s->first = cached.answer;
        s->first_url = ""; /* nowhere yet */
        if (!source_learn(s, &fetch)) code = sfti_fail_memory(err, strlen(fetch.final_url));
        if (!*s->target.sha256) memcpy(s->target.sha256, cached.sha256, sizeof cached.sha256);
        if (!*s->target.commit) memcpy(s->target.commit, cached.commit, sizeof cached.commit);
        *taken = true;
    }
    sfti_header_cache_free(remote, &cached);
    sfti_fetch_free(&fetch);
    return code;
}

/* Fill the target, and the head unless the file is on this machine. */
static sft_code open_head(remote_source *s, const char *name, sfti_fetch fetch, sft_error *err) {
    sft_remote *remote = s->remote;
    bool taken = false;
    sft_code code = sfti_remote_target_open(remote, name, &s->target, err);
    bool offline = code == SFT_REMOTE_OFFLINE && s->target.name;
    if (code && !offline) return code;
    if (s->target.local) return SFT_OK;
    s->offline = remote->options.offline || !s->target.url;
    if (remote->options.cache) {
        sft_code cached = open_cached(s, fetch, &taken, err);
        if (cached || taken || s->target.local) return cached;
    }
    if (offline) return code;
    if (remote->options.offline)
        return sfti_fail(err, SFT_REMOTE_OFFLINE, "expected the file in a cache, found none");
    return open_sent(s, &fetch, err);
}

static void copy_text(char *to, size_t cap, const char *text) {
    size_t len = strlen(text);
    if (len >= cap) len = cap - 1;
    memcpy(to, text, len);
    to[len] = '\0';
}

sft_code sfti_remote_source(sft_remote *remote, const char *name, bool (*go_on)(void *ctx),
                            void *go_on_ctx, sft_source *out, sft_remote_claim *claim,
                            sft_error *err) {
    sfti_fetch fetch = { .go_on = go_on, .go_on_ctx = go_on_ctx };
    memset(out, 0, sizeof *out);
    remote_source *s = sfti_take(&remote->alloc, sizeof *s);
    if (!s) return sfti_fail_memory(err, sizeof *s);
    memset(s, 0, sizeof *s);
    s->remote = remote;
    s->urls.alloc = remote->alloc;
    sfti_answer_begin(&s->first, &remote->alloc);
    sft_code code = open_head(s, name, fetch, err);
    if (!code && s->target.local) code = open_local(s, s->target.local, out, err);
    if (!code) {
        *claim = (sft_remote_claim){ .local = s->target.local != NULL };
        claim->bytes = claim->local ? out->size : s->total;
        copy_text(claim->sha256, sizeof claim->sha256, s->target.sha256);
        copy_text(claim->commit, sizeof claim->commit, s->target.commit);
        bool is_digest = strncmp(s->first.etag, "W/#", 3) == 0 || *s->first.etag == '#';
        copy_text(claim->etag, sizeof claim->etag, is_digest ? "" : s->first.etag);
    }
    if (code || s->target.local) {
        source_close(s);
        return code;
    }
    sfti_stream_begin(&s->stream, remote->blocks, s->head_len, s->total, source_fetch, s);
    *out = (sft_source){ s, &remote_source_vtable, s->total, NULL, false };
    return SFT_OK;
}
