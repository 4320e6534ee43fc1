/* What the headers of an answer say, and the body of a failure. Tests: test_remote_answer.c. */
#include "remote/http/answer.h"

#include "base/mem.h"
#include "base/siphash.h"
#include "os/os.h"
#include "remote/http/text.h"
#include "remote/http/url.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define RESET_MOST_S 1000000000
#define BODY_LOOKED_AT 4096

/* ── Texts ── */

/* Controls become blanks, and what does not fit is cut. exact: what is compared or sent again is
 * taken whole and as it is, or not at all. */
static void copy_value(sft_span value, bool exact, char *out, size_t cap) {
    size_t len = value.len < cap ? value.len : cap - 1;
    bool changed = len < value.len;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)value.data[i];
        bool control = c < ' ' || c == 0x7f;
        out[i] = control ? ' ' : (char)c;
        changed = changed || control;
    }
    out[exact && changed ? 0 : len] = '\0';
}

/* The same of what is only compared, or sent again if it begins with a quote: of one that cannot be
 * kept as it is, "#" and a digest, W/ before it or not. */
static void copy_state(sft_span value, char *out, size_t cap) {
    static const uint64_t seeds[2][2] = { { 1, 2 }, { 3, 4 } };
    copy_value(value, true, out, cap);
    if (*out || value.len == 0) return;
    bool weak = value.len > 2 && memcmp(value.data, "W/", 2) == 0;
    sft_span tag = sfti_span_from(value, weak ? 2 : 0);
    (void)snprintf(out, cap, "%s#%016" PRIx64 "%016" PRIx64, weak ? "W/" : "",
                   sfti_siphash(seeds[0], tag.data, tag.len),
                   sfti_siphash(seeds[1], tag.data, tag.len));
}

/* ── One header each ── */

typedef struct header_reader {
    sfti_answer *answer;
    sft_span retry_after;     /* data NULL: there is none */
    int64_t limit_s;          /* of RateLimit; -1 */
    uint64_t remaining, reset; /* of its older headers; UINT64_MAX */
    bool has_content_range, has_length, no_memory;
} header_reader;

/* "bytes a-b/total", "bytes a-b/ *" or "bytes * /total", without those blanks. */
static void read_content_range(header_reader *r, sft_span value) {
    sfti_answer *answer = r->answer;
    uint64_t begin = 0, last = 0, total = SFT_SIZE_UNKNOWN;
    bool ok = sfti_text_begins(value, "bytes") && value.len > 5
           && (value.data[5] == ' ' || value.data[5] == '\t');
    value = sfti_text_trim(sfti_span_from(value, ok ? 5 : 0));
    size_t slash = sfti_text_find(value, '/'), dash = sfti_text_find(value, '-');
    sft_span range = sfti_text_trim((sft_span){ value.data, slash });
    sft_span size = sfti_text_trim(sfti_span_from(value, slash + (slash < value.len)));
    bool open = sfti_text_is(size, "*"), stretch = !sfti_text_is(range, "*");
    ok = ok && slash < value.len && (open ? stretch : sfti_text_uint(size, &total))
      && (open || total != SFT_SIZE_UNKNOWN);
    if (stretch)
        ok = ok && dash < range.len && sfti_text_uint((sft_span){ range.data, dash }, &begin)
          && sfti_text_uint(sfti_span_from(range, dash + 1), &last) && begin <= last
          && last < total;
    bool has_range = ok && stretch;
    if (!ok) total = SFT_SIZE_UNKNOWN;
    if (!has_range) begin = 0;
    uint64_t end = has_range ? last + 1 : 0;
    bool same = has_range == answer->has_range && begin == answer->begin && end == answer->end
             && total == answer->total;
    if (!ok || (r->has_content_range && !same)) answer->bad_range = true;
    r->has_content_range = true;
    answer->has_range = has_range;
    answer->begin = begin;
    answer->end = end;
    answer->total = total;
}

/* "5, 5" is what an intermediary makes of two that are equal. */
static void read_length(header_reader *r, sft_span value) {
    uint64_t length;
    sft_span one;
    while (sfti_text_split(&value, ',', &one)) {
        bool ok = sfti_text_uint(one, &length) && length != SFT_SIZE_UNKNOWN
               && (!r->has_length || length == r->answer->length);
        if (!ok) r->answer->bad_range = true;
        else r->answer->length = length;
        r->has_length = true;
    }
}

static void read_encoding(header_reader *r, sft_span value) {
    if (value.len > 0 && !sfti_text_is(value, "identity"))
        copy_value(value, false, r->answer->encoding, sizeof r->answer->encoding);
}

static void read_media_type(header_reader *r, sft_span value) {
    sfti_answer *answer = r->answer;
    sft_span type = sfti_text_trim((sft_span){ value.data, sfti_text_find(value, ';') });
    copy_value(type, false, answer->type, sizeof answer->type);
    for (char *p = answer->type; *p; p++) *p = sfti_lower(*p);
    answer->multipart = strcmp(answer->type, "multipart/byteranges") == 0;
}

/* The first counts. */
static void read_redirect(header_reader *r, sft_span value) {
    sfti_answer *answer = r->answer;
    if (answer->location || value.len == 0 || value.len > SFTI_URL_MOST) return;
    answer->location = sfti_take(&answer->alloc, value.len + 1);
    if (!answer->location) {
        r->no_memory = true;
        return;
    }
    copy_value(value, false, answer->location, value.len + 1);
}

static void read_retry_after(header_reader *r, sft_span value) {
    r->retry_after = value;
}

static void read_rate_limit(header_reader *r, sft_span value) {
    int64_t wait = sfti_rate_limit_wait(value);
    if (wait > r->limit_s) r->limit_s = wait;
}

static void read_remaining(header_reader *r, sft_span value) {
    if (!sfti_text_uint(value, &r->remaining)) r->remaining = UINT64_MAX;
}

static void read_reset(header_reader *r, sft_span value) {
    if (!sfti_text_uint(value, &r->reset)) r->reset = UINT64_MAX;
}

static void read_commit(header_reader *r, sft_span value) {
    char *commit = r->answer->commit;
    copy_value(value, true, commit, sizeof r->answer->commit);
    for (char *p = commit; *p; p++) {
        *p = sfti_lower(*p);
        if (sfti_hex_digit(*p) < 0) *commit = '\0';
    }
}

static void read_linked_etag(header_reader *r, sft_span value) {
    if (value.len >= 2 && memcmp(value.data, "W/", 2) == 0) value = sfti_span_from(value, 2);
    if (value.len >= 2 && value.data[0] == '"' && value.data[value.len - 1] == '"')
        value = (sft_span){ value.data + 1, value.len - 2 };
    copy_value(value, true, r->answer->linked_etag, sizeof r->answer->linked_etag);
}

static void read_linked_size(header_reader *r, sft_span value) {
    if (!sfti_text_uint(value, &r->answer->linked_size))
        r->answer->linked_size = SFT_SIZE_UNKNOWN;
}

static void read_link(header_reader *r, sft_span value) {
    sft_span next = sfti_link_next(value);
    if (next.data && !*r->answer->next)
        copy_value(next, true, r->answer->next, sizeof r->answer->next);
}

static void read_disposition(header_reader *r, sft_span value) {
    if (!sfti_disposition_name(value, r->answer->file_name))
        r->answer->file_name[0] = '\0';
}

/* A header that is read by a function, or taken as a text of `size` bytes: exactly, or as shown. */
static const struct header_row {
    const char *name;
    void (*read)(header_reader *r, sft_span value);
    size_t at, size;
    bool exact, is_state;
} header_rows[] = {
#define TEXT(field) .at = offsetof(sfti_answer, field), .size = sizeof((sfti_answer *)0)->field
    { "content-range", .read = read_content_range },
    { "content-length", .read = read_length },
    { "content-encoding", .read = read_encoding },
    { "x-goog-stored-content-encoding", .read = read_encoding },
    { "content-type", .read = read_media_type },
    { "content-disposition", .read = read_disposition },
    { "etag", TEXT(etag), .is_state = true },
    { "last-modified", TEXT(modified), .is_state = true },
    { "location", .read = read_redirect },
    { "date", TEXT(date), .exact = true },
    { "retry-after", .read = read_retry_after },
    { "ratelimit", .read = read_rate_limit },
    { "ratelimit-remaining", .read = read_remaining },
    { "x-ratelimit-remaining", .read = read_remaining },
    { "ratelimit-reset", .read = read_reset },
    { "x-ratelimit-reset", .read = read_reset },
    { "link", .read = read_link },
    { "x-repo-commit", .read = read_commit },
    { "x-linked-etag", .read = read_linked_etag },
    { "x-linked-size", .read = read_linked_size },
    { "x-error-code", TEXT(error_code) },
    { "x-error-message", TEXT(error_message) },
    { "x-amz-bucket-region", TEXT(region), .exact = true },
#undef TEXT
};

/* ── All headers ── */

void sfti_answer_begin(sfti_answer *answer, const sft_allocator *alloc) {
    memset(answer, 0, sizeof *answer);
    answer->total = answer->length = answer->linked_size = SFT_SIZE_UNKNOWN;
    answer->wait_s = -1;
    answer->alloc = sfti_allocator(alloc);
}

void sfti_answer_free(sfti_answer *answer) {
    if (answer->location)
        sfti_release(&answer->alloc, answer->location, strlen(answer->location) + 1);
    answer->location = NULL;
}

int64_t sfti_answer_date(const sfti_answer *answer) {
    int64_t found;
    return sfti_http_date(sft_span_cstr(answer->date), &found) ? found : 0;
}

/* A time in seconds since 1970, or a number of seconds. */
static int64_t seconds_until(const sfti_answer *answer, uint64_t value, bool absolute) {
    int64_t date = absolute ? sfti_answer_date(answer) : 0;
    uint64_t now = date > 0 ? (uint64_t)date : sfti_os_time_s();
    if (absolute) value = value > now ? value - now : 0;
    return value < RESET_MOST_S ? (int64_t)value : RESET_MOST_S;
}

bool sfti_answer_read(sfti_answer *answer, int status, const sft_pair *headers, size_t count) {
    header_reader r = { .answer = answer, .limit_s = -1, .remaining = UINT64_MAX,
                        .reset = UINT64_MAX };
    sft_allocator alloc = answer->alloc;
    sfti_answer_free(answer);
    sfti_answer_begin(answer, &alloc);
    answer->status = status;
    for (size_t i = 0; i < count; i++) {
        const struct header_row *row = header_rows;
        const struct header_row *end = header_rows + sizeof header_rows / sizeof *header_rows;
        while (row < end && !sfti_text_is(headers[i].key, row->name)) row++;
        if (row == end) continue;
        sft_span value = sfti_text_trim(headers[i].value);
        char *out = (char *)answer + row->at;
        if (row->read) row->read(&r, value);
        else if (row->is_state) copy_state(value, out, row->size);
        else copy_value(value, row->exact, out, row->size);
    }

    /* How long the server asks to wait: the longest time it tells. */
    uint64_t seconds;
    int64_t at, waits[3] = { r.limit_s, -1, -1 };
    if (r.retry_after.data && sfti_text_uint(r.retry_after, &seconds))
        waits[1] = seconds_until(answer, seconds, false);
    else if (r.retry_after.data && sfti_http_date(r.retry_after, &at))
        waits[1] = seconds_until(answer, (uint64_t)at, true);
    if (r.remaining == 0 && r.reset != UINT64_MAX) /* some tell a time of the calendar */
        waits[2] = seconds_until(answer, r.reset, r.reset > RESET_MOST_S) + 1;
    for (int i = 0; i < 3; i++)
        if (waits[i] > answer->wait_s) answer->wait_s = waits[i];
    return !r.no_memory;
}

/* ── What the body of a failure says, in a line ── */

/* Position of `word` in any case from `at` on, or the length. */
static size_t find_word(sft_span body, size_t at, const char *word) {
    while (at < body.len && !sfti_text_begins(sfti_span_from(body, at), word)) at++;
    return at;
}

/* The text of an XML element without children; empty if there is none. `<` and > included in the
 * names. */
static sft_span element_text(sft_span body, const char *begin, const char *end) {
    size_t from = find_word(body, 0, begin);
    if (from == body.len) return (sft_span){ "", 0 };
    from += strlen(begin);
    size_t to = find_word(body, from, end);
    return to < body.len ? (sft_span){ body.data + from, to - from } : (sft_span){ "", 0 };
}

static bool is_blank(char c) {
    return (unsigned char)c <= ' ' || c == 0x7f;
}

/* Append in one line: controls and runs of blanks become one blank. */
static void line_put(sfti_answer *answer, sft_span text) {
    size_t len = strlen(answer->line);
    for (size_t i = 0; i < text.len && len + 1 < sizeof answer->line; i++) {
        bool blank = is_blank(text.data[i]);
        if (blank && (len == 0 || answer->line[len - 1] == ' ')) continue;
        answer->line[len++] = blank ? ' ' : text.data[i];
    }
    answer->line[len] = '\0';
}

void sfti_answer_body(sfti_answer *answer, sft_span body) {
    answer->line[0] = '\0';
    if (body.len > BODY_LOOKED_AT) body.len = BODY_LOOKED_AT;
    sft_span code = element_text(body, "<Code>", "</Code>");
    sft_span message = element_text(body, "<Message>", "</Message>");
    sft_span title = element_text(body, "<title>", "</title>");
    sft_span first = body; /* its first line of text */
    while (first.len > 0 && is_blank(*first.data)) first = sfti_span_from(first, 1);
    first.len = sfti_text_find(first, '\n');
    first.len = sfti_text_find(first, '\r');
    if (code.len > 0 || message.len > 0) {
        line_put(answer, code);
        if (code.len > 0 && message.len > 0) line_put(answer, sft_span_cstr(": "));
        line_put(answer, message);
    } else if (first.len > 0 && *first.data == '<') {
        line_put(answer, title); /* tags say nothing */
    } else {
        line_put(answer, first);
    }
    size_t len = strlen(answer->line);
    if (len > 0 && answer->line[len - 1] == ' ') answer->line[len - 1] = '\0';
}

/* ── Whether two are of one state ── */

bool sfti_answer_same(const sfti_answer *a, const sfti_answer *b) {
    bool both_known = a->total != SFT_SIZE_UNKNOWN && b->total != SFT_SIZE_UNKNOWN;
    if (both_known && a->total != b->total) return false;
    bool weak_a = strncmp(a->etag, "W/", 2) == 0, weak_b = strncmp(b->etag, "W/", 2) == 0;
    bool both_tagged = *a->etag && *b->etag;
    /* also weak ones that differ: a date has a second, and two files may share it */
    if (both_tagged && strcmp(a->etag + (weak_a ? 2 : 0), b->etag + (weak_b ? 2 : 0)) != 0)
        return false;
    if (both_tagged && !weak_a && !weak_b) return true;
    return strcmp(a->modified, b->modified) == 0;
}
