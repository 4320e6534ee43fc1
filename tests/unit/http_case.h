/* A transport that plays a script of answers, and a remote over it. */
#ifndef HTTP_CASE_H
#define HTTP_CASE_H

#include "remote/http/http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(list) (sizeof(list) / sizeof *(list))
#define NONE SFT_SIZE_UNKNOWN
#define URL "https://a.example/f"
#define STEPS 12
#define FILE_SIZE ((size_t)3 << 20)
#define NEVER SIZE_MAX

/* ── The transport ── */

typedef struct step {
    const char *url;     /* that must be asked for; NULL: any */
    const char *range;   /* that must be asked for, without "bytes="; NULL: any */
    sft_code code;       /* of the transport, after what is below */
    int status;          /* 0: no answer */
    const char *lines;   /* of its head */
    size_t begin, end;   /* of the body, in the file */
    const char *text;    /* instead of them */
} step;

typedef struct script {
    const step *steps;
    size_t count, sent, fail_at; /* NEVER, or which send is the last that is answered, and fails */
    char headers[STEPS + 1][1024];
    char urls[STEPS + 1][256];
    char methods[STEPS + 1][8];
    char posts[STEPS + 1][64];
    char proxies[STEPS + 1][64];
    size_t unwanted; /* bodies that were not taken to their end */
    sft_http_request last;
} script;

static char content[FILE_SIZE];

static inline void fill_content(void) {
    uint32_t x = 1;
    for (size_t i = 0; i < FILE_SIZE; i++) {
        x = x * 1664525u + 1013904223u;
        content[i] = (char)(x >> 24);
    }
}

static inline void note_request(script *s, size_t i, const sft_http_request *request) {
    char *to = s->headers[i];
    for (size_t h = 0; h < request->header_count; h++)
        to += snprintf(to, (size_t)(s->headers[i] + sizeof s->headers[i] - to), "%.*s: %.*s\n",
                       (int)request->headers[h].key.len, request->headers[h].key.data,
                       (int)request->headers[h].value.len, request->headers[h].value.data);
    snprintf(s->urls[i], sizeof s->urls[i], "%s", request->url);
    snprintf(s->methods[i], sizeof s->methods[i], "%s", request->method);
    snprintf(s->posts[i], sizeof s->posts[i], "%.*s", (int)request->body.len,
             request->body.data ? request->body.data : "");
    snprintf(s->proxies[i], sizeof s->proxies[i], "%s", request->proxy ? request->proxy : "");
    s->last = *request;
}

static inline size_t split_headers(const char *lines, sft_pair *pairs) {
    size_t count = 0;
    for (const char *at = lines ? lines : ""; *at;) {
        size_t end = strcspn(at, "\n"), colon = strcspn(at, ":");
        pairs[count++] = (sft_pair){ { at, colon }, { at + colon + 1, end - colon - 1 } };
        at += end + (at[end] == '\n');
    }
    return count;
}

/* In pieces, as libcurl does. */
static inline bool play_body(const step *now, const sft_http_receiver *receiver) {
    const char *body = now->text ? now->text : content + now->begin;
    size_t len = now->text ? strlen(now->text) : now->end - now->begin;
    for (size_t at = 0; at < len;) {
        size_t piece = len - at < 1000 ? len - at : 1000;
        if (!receiver->body(receiver->ctx, body + at, piece)) return false;
        at += piece;
    }
    return true;
}

static inline sft_code play_step(void *ctx, const sft_http_request *request,
                          const sft_http_receiver *receiver, sft_error *err) {
    script *s = ctx;
    sft_pair pairs[16];
    size_t i = s->sent++;
    assert_true(i <= STEPS);
    note_request(s, i, request);
    if (i == s->fail_at)
        return sfti_fail(err, SFT_REMOTE_TRANSPORT, "the script says so");
    assert_true(i < s->count);
    const step *now = &s->steps[i];
    if (now->url) assert_string_equal(request->url, now->url);
    if (now->range) {
        char range[64];
        snprintf(range, sizeof range, "\nrange: bytes=%s\n", now->range);
        if (!strstr(s->headers[i], range)) fail_msg("step %zu: %s", i, s->headers[i]);
    }
    if (now->status) {
        size_t count = split_headers(now->lines, pairs);
        if (!receiver->head(receiver->ctx, now->status, pairs, count)
            || !play_body(now, receiver)) {
            s->unwanted++;
            return SFT_OK;
        }
    }
    return now->code ? sfti_fail(err, now->code, "lost") : SFT_OK;
}

static inline void close_nothing(void *ctx) { (void)ctx; }

static const sft_transport_vtable script_table = { sizeof script_table, play_step, close_nothing };

/* ── A remote and a target ── */

typedef struct world {
    sft_remote remote;
    sfti_target target;
    sfti_scheme scheme;
    script script;
} world;

static inline world *new_world(const step *steps) {
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->script.steps = steps;
    while (w->script.count < STEPS && (steps[w->script.count].status
                                       || steps[w->script.count].code))
        w->script.count++;
    w->script.fail_at = NEVER;
    w->remote.alloc = sfti_allocator(NULL);
    w->remote.options = (sft_remote_options)SFT_REMOTE_OPTIONS_INIT;
    w->remote.options.retries = 1;
    w->remote.transport = (sft_transport){ &w->script, &script_table };
    assert_int_equal(sfti_os_mutex_init(&w->remote.mutex), 0);
    assert_int_equal(sfti_os_mutex_init(&w->remote.log), 0);
    w->scheme.name = "test";
    w->target.remote = &w->remote;
    w->target.scheme = &w->scheme;
    w->target.url = URL;
    w->target.arena.alloc = w->remote.alloc;
    return w;
}

static inline void free_world(world *w) {
    sfti_os_mutex_free(&w->remote.mutex);
    sfti_os_mutex_free(&w->remote.log);
    sfti_arena_free(&w->target.arena);
    free(w);
}

static char into[FILE_SIZE];

static inline sft_code fetch_range(world *w, sfti_fetch *fetch, sft_error *err) {
    memset(into, 0x55, sizeof into);
    fetch->into = into;
    *err = (sft_error)SFT_ERROR_INIT;
    return sfti_http_range(&w->target, fetch, err);
}

static inline sfti_answer answer_with(const char *lines) {
    sft_pair pairs[16];
    sfti_answer answer;
    size_t count = split_headers(lines, pairs);
    sfti_answer_begin(&answer, NULL);
    assert_true(sfti_answer_read(&answer, 206, pairs, count));
    return answer;
}

/* ── What each answer to a range means ── */

#define X "ETag:\"x\"\n"
#define R(range, total) X "Content-Range: bytes " range "/" total

#endif
