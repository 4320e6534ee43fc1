#include "base/error.h"
#include "base/options.h"
#include "remote/exchange.h"
#include "remote/http.h"

#define ANSWER_MOST ((uint64_t)64 << 20)

static SFTI_OPTIONS_TAKE(take_request, sft_remote_request, SFT_REMOTE_REQUEST_INIT, same_host)

static bool is_printable(const char *text) {
    while (*text >= ' ' && *text <= '~') text++;
    return !*text;
}

sft_code sft_remote_fetch(sft_remote *remote, const sft_remote_request *given, int *status,
                          sft_buffer *body, sft_error *err) {
    sft_remote_request request;
    sfti_answer answer;
    *status = 0;
    sft_code code = take_request(given, &request, err);
    if (code) return code;
    if (!request.url)
        return sfti_fail(err, SFT_REMOTE_URL, SFT_NO_OFFSET, "expected a URL, found none");
    if (request.accept && !is_printable(request.accept))
        return sfti_fail(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET,
                         "expected a media type of printable characters, found others");
    sfti_ask ask = {
        .url = request.url, .accept = request.accept, .body = request.body,
        .most = request.most ? request.most : ANSWER_MOST, .total_ms = request.total_ms,
        .same_host = request.same_host, .missing_ok = true,
    };
    code = sfti_ask_of(remote, NULL, &ask, body, &answer, err);
    *status = answer.status;
    sfti_answer_free(&answer);
    return code;
}
