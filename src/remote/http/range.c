/* Ranges of files: an answer counts by its Content-Range and its ETag, never by its status alone
 * (docs/remote.md has the table). Tests: test_remote_http.c. */
#include "remote/http/exchange.h"

#include "base/error.h"
#include "remote/http/http.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SMALL ((uint64_t)1 << 20)    /* files of that size are read from servers without ranges */
#define READ_ON ((uint64_t)64 << 10) /* so much more is read to keep a connection */
#define PARTS_MOST 16 /* answers that give less than was asked for, besides one for READ_ON bytes */

typedef struct range_taker {
    sfti_fetch *fetch;
    sfti_exchange *x;
    sfti_answer state;     /* of the first answer of this fetch, the one to compare with */
    bool has_state;
    bool again, restarted; /* the fetch begins again, once */
    sft_code code;         /* of what is wrong with an answer */
    sft_error err;
    uint64_t at;           /* position in the file of the body's next byte */
    uint64_t body_end;     /* where the body should end; SFT_SIZE_UNKNOWN */
    bool whole;            /* the body is the whole file */
    bool enough;           /* more was not wanted */
} range_taker;

static SFTI_COLD bool refuse(range_taker *t, sft_code code, const char *found) {
    char host[SFTI_HOST_SIZE];
    const sfti_fetch *fetch = t->fetch;
    (void)sfti_exchange_host(t->x, host);
    if (code == SFT_REMOTE_CHANGED)
        t->code = sfti_fail(&t->err, code, "%sthe file changed while it was read: %s", host, found);
    else
        t->code = sfti_fail(&t->err, code, "%sexpected bytes %" PRIu64 "-%" PRIu64 ", found %s",
                            host, fetch->begin + fetch->got, fetch->end - 1, found);
    return false;
}

/* ── Which answers are taken ── */

static const char other_state[] = "its ETag, date or size is another one";

/* The file ends before the first byte that was asked for; such answers have no ETag. */
static bool take_no_range(range_taker *t, const sfti_answer *answer) {
    const sfti_answer *before = t->x->same;
    if (before && before->total != SFT_SIZE_UNKNOWN && before->total != answer->total)
        return refuse(t, SFT_REMOTE_CHANGED, other_state);
    if (answer->total > t->fetch->begin + t->fetch->got)
        return refuse(t, SFT_REMOTE_RANGE, "status 416, though the file is longer");
    t->fetch->total = answer->total;
    t->enough = true;
    return false;
}

/* A server without ranges. */
static bool take_whole_file(range_taker *t, const sfti_answer *answer) {
    sfti_fetch *fetch = t->fetch;
    uint64_t total = answer->length;
    if (total == SFT_SIZE_UNKNOWN && fetch->same) total = fetch->same->total;
    if (!fetch->first && !t->x->remote->options.whole && total > SMALL)
        return refuse(t, SFT_REMOTE_RANGE, "the whole file: the server gives no ranges");
    fetch->no_ranges = true;
    fetch->total = total;
    t->at = 0;
    t->body_end = answer->length;
    t->whole = true;
    return true;
}

static bool range_head(void *ctx, const sfti_answer *answer, bool *accepted) {
    range_taker *t = ctx;
    sfti_fetch *fetch = t->fetch;
    char found[96];
    bool same = true;
    *accepted = answer->status == 200 || answer->status == 206
             || (answer->status == 416 && answer->total != SFT_SIZE_UNKNOWN);
    if (!*accepted) return false;
    t->code = SFT_OK;
    t->enough = false;
    if (*answer->encoding) {
        (void)snprintf(found, sizeof found, "Content-Encoding \"%s\"", answer->encoding);
        return refuse(t, SFT_REMOTE_RANGE, found);
    }
    if (answer->multipart) return refuse(t, SFT_REMOTE_RANGE, "several ranges (multipart)");
    if (answer->bad_range)
        return refuse(t, SFT_REMOTE_RANGE, "a Content-Range or Content-Length without sense");
    if (answer->status == 206 && !answer->has_range)
        return refuse(t, SFT_REMOTE_RANGE, "status 206 without Content-Range");
    if (answer->status == 416) return take_no_range(t, answer);

    /* The same state of the file as before? A fetch of which nobody has seen a byte begins
     * again. */
    sfti_answer sized = *answer; /* with the size that a whole file's length tells */
    if (answer->status == 200 && !answer->has_range) sized.total = answer->length;
    if (fetch->same) {
        bool elsewhere = fetch->same_url && !sfti_url_same_origin(fetch->same_url, t->x->at);
        same = elsewhere ? fetch->same->total == sized.total
                         : sfti_answer_same(fetch->same, &sized);
    } else if (t->has_state) {
        same = sfti_answer_same(&t->state, &sized);
        t->again = !same && !t->restarted;
    } else {
        t->state = sized;
        t->state.location = NULL;
        t->has_state = true;
        t->x->same = &t->state;
    }
    if (!same) return refuse(t, SFT_REMOTE_CHANGED, other_state);
    if (!answer->has_range) return take_whole_file(t, answer);

    const uint64_t wanted = fetch->begin + fetch->got;
    if (answer->begin > wanted || answer->end <= wanted) {
        (void)snprintf(found, sizeof found, "bytes %" PRIu64 "-%" PRIu64 " (Content-Range)",
                       answer->begin, answer->end - 1);
        return refuse(t, SFT_REMOTE_RANGE, found);
    }
    if (answer->length != SFT_SIZE_UNKNOWN && answer->length != answer->end - answer->begin)
        return refuse(t, SFT_REMOTE_RANGE, "a Content-Length that contradicts Content-Range");
    t->at = answer->begin;
    t->body_end = answer->end;
    t->whole = false;
    fetch->total = answer->total;
    return true;
}

/* ── Bytes ── */

static bool range_body(void *ctx, const void *bytes, size_t len) {
    range_taker *t = ctx;
    sfti_fetch *fetch = t->fetch;
    const char *from = bytes;
    const uint64_t wanted = fetch->begin + fetch->got;
    if (t->body_end != SFT_SIZE_UNKNOWN && len > t->body_end - t->at)
        return refuse(t, SFT_REMOTE_RANGE, "more bytes than the answer's headers say");
    if (t->at + len > wanted && wanted < fetch->end) {
        const size_t skip = wanted > t->at ? (size_t)(wanted - t->at) : 0;
        const uint64_t left = fetch->end - wanted;
        const size_t taken = len - skip < left ? len - skip : (size_t)left;
        memcpy((char *)fetch->into + fetch->got, from + skip, taken);
        fetch->got += taken;
        t->x->begin = fetch->begin + fetch->got;
    }
    t->at += len;
    t->enough = t->x->begin == fetch->end
             && (t->body_end == SFT_SIZE_UNKNOWN || t->body_end - t->at > READ_ON);
    return !t->enough;
}

static sft_code range_end(void *ctx, sft_error *err) {
    range_taker *t = ctx;
    sfti_fetch *fetch = t->fetch;
    if (t->code) return sfti_fail_as(err, t->code, &t->err);
    if (t->enough || fetch->begin + fetch->got == fetch->end) return SFT_OK;
    /* A whole body without a length ends where the file does. */
    if (t->body_end == SFT_SIZE_UNKNOWN) fetch->total = t->body_end = t->at;
    if (t->at == t->body_end) return SFT_OK;
    return sfti_fail(err, SFT_REMOTE_NETWORK,
                     "the answer was cut off at byte %" PRIu64 ", before byte %" PRIu64, t->at,
                     t->body_end);
}

/* ── Fetching ── */

sft_code sfti_http_range(sfti_target *target, sfti_fetch *fetch, sft_error *err) {
    sfti_exchange x = {
        .remote = target->remote, .target = target, .url = fetch->url ? fetch->url : target->url,
        .begin = fetch->begin, .end = fetch->end, .same = fetch->same, .answer = &fetch->answer,
        .go_on = fetch->go_on, .go_on_ctx = fetch->go_on_ctx,
    };
    range_taker taker = { .fetch = fetch, .x = &x };
    x.taker = (sfti_taker){ &taker, range_head, range_body, range_end };
    if (fetch->url && strcmp(fetch->url, target->url) != 0) x.fresh_url = target->url;
    sfti_answer_begin(&fetch->answer, &target->remote->alloc);
    fetch->got = 0;
    fetch->total = SFT_SIZE_UNKNOWN;
    fetch->no_ranges = false;
    fetch->final_url = NULL;
    const uint64_t parts_most = PARTS_MOST + (fetch->end - fetch->begin) / READ_ON;
    sft_code code;
    for (uint64_t parts = 0;; parts++) {
        code = sfti_exchange_run(&x, err);
        x.url = x.at;
        if (strcmp(x.url, target->url) != 0) x.fresh_url = target->url;
        const uint64_t reached = fetch->begin + fetch->got;
        if (code == SFT_REMOTE_CHANGED && taker.again) { /* nothing of it was given out */
            taker.again = taker.has_state = false;
            taker.restarted = true;
            fetch->got = 0;
            x.begin = fetch->begin;
            x.same = NULL;
            x.tries = 0;
        } else if (code || x.local || reached == fetch->end || taker.whole || taker.enough
                   || (fetch->total != SFT_SIZE_UNKNOWN && reached >= fetch->total)) {
            break;
        }
        if (parts < parts_most) continue;
        (void)refuse(&taker, SFT_REMOTE_RANGE, "less than that in every answer");
        code = sfti_fail_as(err, taker.code, &taker.err);
        break;
    }
    if (!code && !x.local) {
        const size_t size = strlen(x.at) + 1;
        fetch->final_url = sfti_take(&x.remote->alloc, size);
        if (fetch->final_url) memcpy(fetch->final_url, x.at, size);
        else code = sfti_fail_memory(err, size);
    }
    sfti_arena_free(&x.arena);
    return code;
}

void sfti_fetch_free(sfti_fetch *fetch) {
    if (fetch->final_url)
        sfti_release(&fetch->answer.alloc, fetch->final_url, strlen(fetch->final_url) + 1);
    fetch->final_url = NULL;
    sfti_answer_free(&fetch->answer);
}
