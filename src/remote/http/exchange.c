/* Exchanges: redirects by hand, retries, waits, and what a status means that nobody accepted.
 * Tests: test_remote_http.c. */
#include "remote/http/exchange.h"

#include "base/error.h"
#include "os/os.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define REDIRECTS_MOST 5
#define PROGRESS ((uint64_t)64 << 10) /* bytes after which failed tries are forgotten */
#define RETRIES 4
#define RETRIES_REFUSED 2 /* nobody listens there, so that waiting longer seldom helps */
#define WAIT_MOST_S 60 /* a server that asks for more is a failure */
#define WAIT_STEP_MS ((uint64_t)100)
#define DELAY_LOST_MS 300 /* a lost connection is often back at once */
#define DELAY_FIRST_MS 1000
#define DELAY_DOUBLINGS 3 /* 8 s at most */
#define SHOWN_URL_SIZE 256

/* ── Failures ── */

static const char *first_url(const sfti_exchange *x) {
    return x->target && x->target->url ? x->target->url : x->url;
}

/* Messages are shown with the file's name: they tell the host only if it is another one. */
const char *sfti_exchange_host(const sfti_exchange *x, char out[SFTI_HOST_SIZE]) {
    sfti_url url;
    *out = '\0';
    if (!sfti_url_same_origin(first_url(x), x->at) && sfti_url_parse(x->at, &url))
        (void)snprintf(out, SFTI_HOST_SIZE, "%.*s: ", (int)(url.path.data - url.host.data),
                       url.host.data);
    return out;
}

/* Rows with a status of 0 are of all others. */
static const struct status_row {
    int status;
    sft_code code;
    sft_hint hint;
    const char *meaning;
} status_rows[] = {
    { 401, SFT_REMOTE_DENIED, SFT_HINT_REMOTE_LOGIN, "not without authorization" },
    { 403, SFT_REMOTE_DENIED, SFT_HINT_REMOTE_LOGIN, "not allowed" },
    { 404, SFT_NOT_FOUND, SFT_HINT_NONE, "not there" },
    { 407, SFT_REMOTE_STATUS, SFT_HINT_REMOTE_PROXY, "the proxy wants a user and a password" },
    { 410, SFT_NOT_FOUND, SFT_HINT_NONE, "not there any more" },
    { 412, SFT_REMOTE_CHANGED, SFT_HINT_REMOTE_AGAIN, "the file changed while it was read" },
    { 429, SFT_REMOTE_BUSY, SFT_HINT_REMOTE_WAIT, "too many requests" },
    { 503, SFT_REMOTE_BUSY, SFT_HINT_REMOTE_WAIT, "the server is busy" },
    { 0, SFT_REMOTE_STATUS, SFT_HINT_NONE, NULL },
};

/* What a status means that nobody accepted. */
static sft_code fail_of_status(const sfti_exchange *x, sft_error *err) {
    const sfti_answer *answer = x->answer;
    const struct status_row *row = status_rows;
    const char *said = *answer->error_message ? answer->error_message : answer->line;
    char host[SFTI_HOST_SIZE];
    sfti_url url;
    while (row->status && row->status != answer->status) row++;
    sfti_fail(err, row->code, "%sstatus %d%s%s%s%s", sfti_exchange_host(x, host), answer->status,
              row->meaning ? ", " : "", row->meaning ? row->meaning : "", *said ? ": " : "", said);
    sft_hint hint = row->hint;
    if (row->code == SFT_REMOTE_DENIED && x->authorized) hint = SFT_HINT_REMOTE_BAD_TOKEN;
    else if (row->code == SFT_REMOTE_DENIED && sfti_url_parse(x->at, &url) && url.query.data)
        hint = SFT_HINT_REMOTE_SIGNED;
    sfti_hint(err, hint);
    return row->code;
}

/* ── Redirects ── */

static sft_code fail_redirect(const sfti_exchange *x, const char *to, const char *why,
                              sft_error *err) {
    char host[SFTI_HOST_SIZE], shown[SHOWN_URL_SIZE];
    sfti_exchange_show(x, to, true, shown, sizeof shown);
    return sfti_fail(err, SFT_REMOTE_REDIRECT, "%sredirected to %s: %s",
                     sfti_exchange_host(x, host), shown, why);
}

static sft_code follow_redirect(sfti_exchange *x, sft_error *err) {
    const char *location = x->answer->location;
    sfti_url url, first;
    if (!sfti_arena_reserve(&x->arena, SFTI_URL_MOST + 8)) /* so that NULL is no lack of it */
        return sfti_fail_memory(err, SFTI_URL_MOST);
    const char *next = sfti_url_join(&x->arena, x->at, sft_span_cstr(location));
    if (!next) return fail_redirect(x, location, "expected a URL of http or https", err);
    if (!sfti_url_parse(next, &url) || url.user.data)
        return fail_redirect(x, next, "expected a URL without a user", err);
    if (!url.https && (!sfti_url_parse(first_url(x), &first) || first.https))
        return fail_redirect(x, next, "expected https, as before", err);
    if (x->same_host && !sfti_url_same_origin(x->url, next))
        return fail_redirect(x, next, "expected the same host", err);
    for (unsigned i = 0; i <= x->hop_count; i++)
        if (strcmp(i < x->hop_count ? x->hops[i] : x->at, next) == 0)
            return fail_redirect(x, next, "the redirects go in a circle", err);
    if (x->hop_count == REDIRECTS_MOST)
        return fail_redirect(x, next, "expected at most 5 redirects, found more", err);
    x->hops[x->hop_count++] = x->at;
    x->at = next;
    x->asked_before = false;
    if (x->answer->status == 303) x->post = (sft_span){ NULL, 0 };
    return SFT_OK;
}

/* ── Retries ── */

/* What the scheme knows of an answer; false: nothing. */
static bool ask_scheme(const sfti_exchange *x, bool *again, sft_error *found) {
    sfti_target *target = x->target;
    *again = false;
    *found = (sft_error)SFT_ERROR_INIT;
    return target && target->scheme && target->scheme->explain
        && target->scheme->explain(target, x->at, x->answer, again, found);
}

/* Waits until it is over, the process is told to stop, or nobody wants the answer any more. */
static sft_code wait_for(const sfti_exchange *x, uint64_t ms, sft_error *err) {
    while (ms > 0) {
        const uint64_t step = ms < WAIT_STEP_MS ? ms : WAIT_STEP_MS;
        const uint64_t until = sfti_os_now_ns() + step * 1000000;
        uint32_t more = 0;
        if (sfti_os_wait_over()) return sfti_fail_cancelled(err);
        while (sfti_os_now_ns() < until)
            if (!sfti_os_wait_more(&more)) return sfti_fail_cancelled(err);
        if (x->go_on && !x->go_on(x->go_on_ctx)) return sfti_fail_cancelled(err);
        ms -= step;
    }
    return SFT_OK;
}

/* Milliseconds before the try after `tries` failed ones (from 1): what the server asked for
 * (asked_s, or -1), else longer each time, and up to half of it more: many that were turned away
 * together do not come back together. */
static uint64_t delay_of(unsigned tries, int64_t asked_s, bool lost) {
    uint32_t chance;
    uint64_t wait = DELAY_LOST_MS;
    if (asked_s >= 0) return (uint64_t)asked_s * 1000;
    if (lost && tries > 0) tries--;
    if (tries > 0)
        wait = (uint64_t)DELAY_FIRST_MS << (tries <= DELAY_DOUBLINGS ? tries - 1 : DELAY_DOUBLINGS);
    if (sfti_os_random(&chance, sizeof chance)) chance = 0;
    return wait + wait / 2 * (chance & 0xffff) / 0xffff;
}

/* No more tries. asks: the server wants more time than is waited. */
static sft_code give_up(const sfti_exchange *x, const sft_error *lost, bool asks,
                        sft_error *err) {
    char host[SFTI_HOST_SIZE];
    sft_error found;
    sft_code code;
    bool again;
    if (lost) {
        code = sfti_fail_as(err, lost->code, lost);
    } else if (ask_scheme(x, &again, &found)) {
        code = sfti_fail_as(err, found.code, &found);
    } else if (asks) {
        uint64_t minutes = ((uint64_t)x->answer->wait_s + 59) / 60;
        code = sfti_fail(err, SFT_REMOTE_BUSY,
                         "%sstatus %d, and the server asks to come back in %" PRIu64 " minute%s",
                         sfti_exchange_host(x, host), x->answer->status, minutes,
                         minutes == 1 ? "" : "s");
    } else {
        code = fail_of_status(x, err);
    }
    if (err && x->tries > 1) {
        size_t len = strlen(err->message);
        (void)snprintf(err->message + len, sizeof err->message - len, " (%u tries)", x->tries);
    }
    return code;
}

/* Whether nobody listens at that port. */
static bool nobody_listens(const sft_error *lost) {
    const int of_windows = 10061; /* WSAECONNREFUSED, which sockets have there */
    return lost && (lost->os_errno == ECONNREFUSED || lost->os_errno == of_windows);
}

/* Wait before one more try. lost: what became of the connection. */
static sft_code wait_to_retry(sfti_exchange *x, const sft_error *lost, sft_error *err) {
    const int64_t asked = lost ? -1 : x->answer->wait_s;
    const uint32_t retries = x->remote->options.retries;
    const uint32_t usual = nobody_listens(lost) ? RETRIES_REFUSED : RETRIES;
    const uint32_t most = retries == UINT32_MAX ? 1 : (retries ? retries : usual) + 1;
    const bool asks = asked > WAIT_MOST_S;
    x->tries++;
    const uint64_t delay = delay_of(x->tries, asked, lost != NULL);
    if (asks || x->tries >= most || delay >= sfti_exchange_left_ms(x))
        return give_up(x, lost, asks, err);
    x->is_retry = x->asked_before = true;
    return wait_for(x, delay, err);
}

/* ── The exchange ── */

/* What an answer means that is neither wanted nor a redirect. SFT_OK: all is to begin again at a
 * URL. */
static sft_code explain_failure(sfti_exchange *x, const char **begin_at, sft_error *err) {
    sft_error found;
    bool again;
    /* This hop's signed URL, which was learnt earlier or before a retry, may have expired. */
    const int status = x->answer->status;
    const char *retried = x->hop_count > 0 && x->asked_before ? x->url : NULL;
    *begin_at = NULL;
    if (!x->restarted && (status == 400 || status == 401 || status == 403 || status == 404
                          || status == 410))
        *begin_at = x->fresh_url ? x->fresh_url : retried;
    if (*begin_at) {
        x->restarted = true;
        return SFT_OK;
    }
    bool explained = ask_scheme(x, &again, &found);
    if (again && !x->explained_again) {
        x->explained_again = true;
        *begin_at = x->target->url;
        return SFT_OK;
    }
    return explained ? sfti_fail_as(err, found.code, &found) : fail_of_status(x, err);
}

/* Whether the same request may succeed a little later. */
static bool is_busy(int status) {
    return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504);
}

sft_code sfti_exchange_run(sfti_exchange *x, sft_error *err) {
    const sft_wait *before = sfti_os_wait_as(x->remote->options.wait);
    sft_code code = SFT_OK;
    x->arena.alloc = x->failure.alloc = x->remote->alloc;
    x->began_ns = sfti_os_now_ns();
    const char *begin_at = x->url;
    while (!code) {
        sft_error found = SFT_ERROR_INIT;
        const uint64_t begin = x->begin;
        if (begin_at) {
            x->at = begin_at;
            x->hop_count = 0;
            x->asked_before = false;
            begin_at = NULL;
        }
        code = sfti_exchange_hop(x, &found);
        if (x->begin > begin && x->begin - begin >= PROGRESS) x->tries = 0;
        if (!code && (x->local || x->use == SFTI_BODY_TAKEN)) break;
        if (code == SFT_REMOTE_NETWORK) code = wait_to_retry(x, &found, err);
        else if (code) code = sfti_fail_as(err, code, &found);
        else if (x->use == SFTI_BODY_REDIRECT) code = follow_redirect(x, err);
        else if (is_busy(x->answer->status)) code = wait_to_retry(x, NULL, err);
        else code = explain_failure(x, &begin_at, err);
    }
    (void)sfti_os_wait_as(before);
    return code;
}
