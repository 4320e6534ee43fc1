#include "remote/http/answer.h"

#include "base/mem.h"
#include "os/os.h"
#include "remote/http/answer_lists.h"
#include "remote/http/text.h"
#include "remote/http/url.h"

#include <string.h>

#define WAIT_MOST_S 1000000000

/* ── Texts ── */

/* Controls become blanks. False: it was cut. */
static bool copy_shown(sft_span value, char *out, size_t cap) {
    size_t len = value.len < cap ? value.len : cap - 1;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)value.data[i];
        out[i] = c < ' ' || c == 0x7f ? ' ' : (char)c;
    }
    out[len] = '\0';
    return len == value.len;
}

/* What is compared or sent again is taken whole or not at all. */
static void copy_exact(sft_span value, char *out, size_t cap) {
    if (!copy_shown(value, out, cap) || !sft_span_equal(value, sft_span_cstr(out))) *out = '\0';
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
static bool parse_content_range(sft_span value, sfti_answer *out) {
    uint64_t begin, last, total = SFT_SIZE_UNKNOWN;
    if (!sfti_text_begins(value, "bytes") || value.len < 6) return false;
    if (value.data[5] != ' ' && value.data[5] != '\t') return false;
    value = sfti_text_trim(sfti_span_from(value, 5));
    size_t slash = sfti_text_find(value, '/');
    if (slash == value.len) return false;
    sft_span range = sfti_text_trim((sft_span){ value.data, slash });
    sft_span size = sfti_text_trim(sfti_span_from(value, slash + 1));
    bool open = sfti_text_is(size, "*");
    if (!open && (!sfti_text_uint(size, &total) || total == SFT_SIZE_UNKNOWN)) return false;
    if (sfti_text_is(range, "*")) {
        out->total = total;
        return !open;
    }
    size_t dash = sfti_text_find(range, '-');
    if (dash == range.len || !sfti_text_uint((sft_span){ range.data, dash }, &begin)
        || !sfti_text_uint(sfti_span_from(range, dash + 1), &last)
        || begin > last || last >= total)
        return false;
    out->has_range = true;
    out->begin = begin;
    out->end = last + 1;
    out->total = total;
    return true;
}

static void read_content_range(header_reader *r, sft_span value) {
    sfti_answer *answer = r->answer, one = { .total = SFT_SIZE_UNKNOWN };
    bool ok = parse_content_range(value, &one);
    if (r->has_content_range)
        ok = ok && one.has_range == answer->has_range && one.begin == answer->begin
          && one.end == answer->end && one.total == answer->total;
    r->has_content_range = true;
    if (!ok) answer->bad_range = true;
    answer->has_range = one.has_range;
    answer->begin = one.begin;
    answer->end = one.end;
    answer->total = one.total;
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

static void read_etag(header_reader *r, sft_span value) {
    copy_exact(value, r->answer->etag, sizeof r->answer->etag);
}

static void read_modified(header_reader *r, sft_span value) {
    copy_exact(value, r->answer->modified, sizeof r->answer->modified);
}

static void read_encoding(header_reader *r, sft_span value) {
    if (value.len > 0 && !sfti_text_is(value, "identity"))
        (void)copy_shown(value, r->answer->encoding, sizeof r->answer->encoding);
}

static void read_media_type(header_reader *r, sft_span value) {
    sfti_answer *answer = r->answer;
    sft_span type = sfti_text_trim((sft_span){ value.data, sfti_text_find(value, ';') });
    (void)copy_shown(type, answer->type, sizeof answer->type);
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
    (void)copy_shown(value, answer->location, value.len + 1);
}

static void read_retry_after(header_reader *r, sft_span value) {
    r->retry_after = value;
}

static void read_date(header_reader *r, sft_span value) {
    if (!sfti_http_date(value, &r->answer->date_s)) r->answer->date_s = 0;
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
    copy_exact(value, commit, sizeof r->answer->commit);
    for (char *p = commit; *p; p++) {
        *p = sfti_lower(*p);
        if (sfti_hex_digit(*p) < 0) *commit = '\0';
    }
}

static void read_linked_etag(header_reader *r, sft_span value) {
    if (value.len >= 2 && memcmp(value.data, "W/", 2) == 0) value = sfti_span_from(value, 2);
    if (value.len >= 2 && value.data[0] == '"' && value.data[value.len - 1] == '"')
        value = (sft_span){ value.data + 1, value.len - 2 };
    copy_exact(value, r->answer->linked_etag, sizeof r->answer->linked_etag);
}

static void read_linked_size(header_reader *r, sft_span value) {
    if (!sfti_text_uint(value, &r->answer->linked_size))
        r->answer->linked_size = SFT_SIZE_UNKNOWN;
}

static void read_error_code(header_reader *r, sft_span value) {
    (void)copy_shown(value, r->answer->error_code, sizeof r->answer->error_code);
}

static void read_error_message(header_reader *r, sft_span value) {
    (void)copy_shown(value, r->answer->error_message, sizeof r->answer->error_message);
}

static void read_region(header_reader *r, sft_span value) {
    copy_exact(value, r->answer->region, sizeof r->answer->region);
}

static void read_link(header_reader *r, sft_span value) {
    sft_span next = sfti_link_next(value);
    if (next.data && !*r->answer->next)
        copy_exact(next, r->answer->next, sizeof r->answer->next);
}

static void read_disposition(header_reader *r, sft_span value) {
    if (!sfti_disposition_name(value, r->answer->file_name))
        r->answer->file_name[0] = '\0';
}

static const struct header_row {
    const char *name;
    void (*read)(header_reader *r, sft_span value);
} header_rows[] = {
    { "content-range", read_content_range },
    { "content-length", read_length },
    { "content-encoding", read_encoding },
    { "x-goog-stored-content-encoding", read_encoding },
    { "content-type", read_media_type },
    { "content-disposition", read_disposition },
    { "etag", read_etag },
    { "last-modified", read_modified },
    { "location", read_redirect },
    { "date", read_date },
    { "retry-after", read_retry_after },
    { "ratelimit", read_rate_limit },
    { "ratelimit-remaining", read_remaining },
    { "x-ratelimit-remaining", read_remaining },
    { "ratelimit-reset", read_reset },
    { "x-ratelimit-reset", read_reset },
    { "link", read_link },
    { "x-repo-commit", read_commit },
    { "x-linked-etag", read_linked_etag },
    { "x-linked-size", read_linked_size },
    { "x-error-code", read_error_code },
    { "x-error-message", read_error_message },
    { "x-amz-bucket-region", read_region },
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

/* A time in seconds since 1970, or a number of seconds. */
static int64_t seconds_until(uint64_t value, bool absolute, int64_t now) {
    if (absolute) value = value > (uint64_t)now ? value - (uint64_t)now : 0;
    return value < WAIT_MOST_S ? (int64_t)value : WAIT_MOST_S;
}

static int64_t wait_asked_for(const header_reader *r) {
    uint64_t seconds;
    int64_t at, wait = r->limit_s, other = -1;
    int64_t now = r->answer->date_s > 0 ? r->answer->date_s : (int64_t)sfti_os_time_s();
    if (r->retry_after.data && sfti_text_uint(r->retry_after, &seconds))
        other = seconds_until(seconds, false, now);
    else if (r->retry_after.data && sfti_http_date(r->retry_after, &at))
        other = seconds_until((uint64_t)at, true, now);
    if (other > wait) wait = other;
    if (r->remaining == 0 && r->reset != UINT64_MAX) {
        /* Some tell a time of the calendar. */
        other = seconds_until(r->reset, r->reset > WAIT_MOST_S, now) + 1;
        if (other > wait) wait = other;
    }
    return wait;
}

bool sfti_answer_read(sfti_answer *answer, int status, const sft_pair *headers, size_t count) {
    header_reader r = { .answer = answer, .limit_s = -1, .remaining = UINT64_MAX,
                        .reset = UINT64_MAX };
    sft_allocator alloc = answer->alloc;
    sfti_answer_free(answer);
    sfti_answer_begin(answer, &alloc);
    answer->status = status;
    for (size_t i = 0; i < count; i++)
        for (size_t row = 0; row < sizeof header_rows / sizeof *header_rows; row++)
            if (sfti_text_is(headers[i].key, header_rows[row].name))
                header_rows[row].read(&r, sfti_text_trim(headers[i].value));
    answer->wait_s = wait_asked_for(&r);
    return !r.no_memory;
}

/* ── Whether two are of one state ── */

static bool is_strong(const char *etag) {
    return *etag && strncmp(etag, "W/", 2) != 0;
}

static const char *opaque_part(const char *etag) {
    return is_strong(etag) ? etag : etag + 2;
}

bool sfti_answer_same(const sfti_answer *a, const sfti_answer *b) {
    bool both_known = a->total != SFT_SIZE_UNKNOWN && b->total != SFT_SIZE_UNKNOWN;
    if (both_known && a->total != b->total) return false;
    if (is_strong(a->etag) && is_strong(b->etag)) return strcmp(a->etag, b->etag) == 0;
    /* Weak ones tell more than nothing where there are no dates. */
    if (!*a->modified && !*b->modified && *a->etag && *b->etag)
        return strcmp(opaque_part(a->etag), opaque_part(b->etag)) == 0;
    return strcmp(a->modified, b->modified) == 0;
}
