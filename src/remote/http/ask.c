/* Whole, small answers, and sft_remote_fetch. Tests: test_remote_http.c. */
#include "remote/http/exchange.h"

#include "base/error.h"
#include "base/options.h"
#include "remote/http/http.h"

#include <inttypes.h>
#include <string.h>

#define ANSWER_MOST ((uint64_t)64 << 20)

typedef struct ask_taker {
    const sfti_ask *ask;
    sft_buffer *body;
    const sfti_answer *answer;
    bool too_large, no_memory;
} ask_taker;

static bool ask_head(void *ctx, const sfti_answer *answer, bool *accepted) {
    ask_taker *t = ctx;
    *accepted = (answer->status >= 200 && answer->status < 300)
             || (answer->status == 404 && t->ask->missing_ok);
    if (!*accepted) return false;
    t->body->len = 0;
    t->answer = answer;
    t->too_large = answer->length != SFT_SIZE_UNKNOWN && answer->length > t->ask->most;
    return !t->too_large && !*answer->encoding;
}

static bool ask_body(void *ctx, const void *bytes, size_t len) {
    ask_taker *t = ctx;
    t->too_large = len > t->ask->most - t->body->len;
    t->no_memory = !t->too_large && !sfti_buffer_put(t->body, bytes, len);
    return !t->too_large && !t->no_memory;
}

static sft_code ask_end(void *ctx, sft_error *err) {
    const ask_taker *t = ctx;
    if (t->no_memory) return sfti_fail_memory(err, t->body->len);
    if (*t->answer->encoding)
        return sfti_fail(err, SFT_REMOTE_STATUS,
                         "expected an answer without Content-Encoding, found \"%s\"",
                         t->answer->encoding);
    if (t->too_large)
        return sfti_fail(err, SFT_FILE_TOO_LARGE,
                         "expected an answer of at most %" PRIu64 " bytes, found more",
                         t->ask->most);
    uint64_t length = t->answer->length;
    if (length != SFT_SIZE_UNKNOWN && t->body->len < length)
        return sfti_fail(err, SFT_REMOTE_NETWORK,
                         "the answer was cut off after %zu of %" PRIu64 " bytes", t->body->len,
                         length);
    return SFT_OK;
}

/* As sfti_http_ask; target NULL: without any authorization. */
static sft_code ask_of(sft_remote *remote, sfti_target *target, const sfti_ask *ask,
                       sft_buffer *body, sfti_answer *answer, sft_error *err) {
    ask_taker taker = { .ask = ask, .body = body };
    sfti_exchange x = {
        .remote = remote, .target = target, .url = ask->url ? ask->url : target->url,
        .accept = ask->accept, .post = ask->body, .total_ms = ask->total_ms,
        .same_host = ask->same_host, .answer = answer,
        .taker = { &taker, ask_head, ask_body, ask_end },
    };
    sfti_answer_begin(answer, &remote->alloc);
    body->len = 0;
    sft_code code = sfti_exchange_run(&x, err);
    if (code) body->len = 0;
    sfti_arena_free(&x.arena);
    return code;
}

sft_code sfti_http_ask(sfti_target *target, const sfti_ask *ask, sft_buffer *body,
                       sfti_answer *answer, sft_error *err) {
    return ask_of(target->remote, target, ask, body, answer, err);
}

static SFTI_OPTIONS_TAKE(take_request, sft_remote_request, SFT_REMOTE_REQUEST_INIT, same_host)

sft_code sft_remote_fetch(sft_remote *remote, const sft_remote_request *given, int *status,
                          sft_buffer *body, sft_error *err) {
    sft_remote_request request;
    sfti_answer answer;
    *status = 0;
    sft_code code = take_request(given, &request, err);
    if (code) return code;
    if (!request.url)
        return sfti_fail(err, SFT_REMOTE_URL, "expected a URL, found none");
    const char *accept = request.accept ? request.accept : "";
    while (*accept >= ' ' && *accept <= '~') accept++;
    if (*accept)
        return sfti_misuse(err, "expected a media type of printable characters, found others");
    sfti_ask ask = {
        .url = request.url, .accept = request.accept, .body = request.body,
        .most = request.most ? request.most : ANSWER_MOST, .total_ms = request.total_ms,
        .same_host = request.same_host, .missing_ok = true,
    };
    code = ask_of(remote, NULL, &ask, body, &answer, err);
    *status = answer.status;
    sfti_answer_free(&answer);
    return code;
}
