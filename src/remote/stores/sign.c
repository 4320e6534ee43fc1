/* AWS Signature Version 4. Tests: test_remote_sign.c. */
#include "remote/stores/sign.h"

#include "base/calendar.h"
#include "base/error.h"
#include "base/number.h"
#include "base/order.h"
#include "remote/http/text.h"
#include "safetensors_hash.h"

#include <string.h>

#define SIGN_SUM 32   /* bytes of a SHA-256 */
#define SIGN_BLOCK 64 /* bytes of its blocks */

/* A signature being made. The first failure is kept in code; what follows does nothing. */
typedef struct signer {
    const sfti_sign_request *request;
    sfti_arena *arena;
    sft_error *err;
    sft_code code;
    sft_buffer text;  /* what is signed: first the canonical request, then the string to sign */
    char date[17];    /* 20261121T120000Z */
    char day[9];      /* of it: 20261121 */
    const char *signed_names;
} signer;

static void sign_memory(signer *s, bool enough) {
    if (!enough && !s->code) s->code = sfti_fail_memory(s->err, s->text.len);
}

static void sign_put(signer *s, sft_span text) {
    if (!s->code) sign_memory(s, sfti_buffer_put(&s->text, text.data, text.len));
}

static void sign_put_words(signer *s, const char *const *words) {
    for (; *words; words++) sign_put(s, sft_span_cstr(*words));
}
#define SIGN_PUT(s, ...) sign_put_words(s, (const char *const[]){ __VA_ARGS__, NULL })

/* ── HMAC-SHA-256 ── */

static void sum_of(signer *s, sft_span first, sft_span then, uint8_t out[SIGN_SUM]) {
    sft_hasher *hasher;
    sft_hashes sums;
    memset(out, 0, SIGN_SUM);
    if (s->code) return;
    s->code = sft_hasher_new(SFT_HASH_BIT(SFT_HASH_SHA256), &s->text.alloc, &hasher, s->err);
    if (s->code) return;
    sft_hasher_update(hasher, first.data, first.len);
    sft_hasher_update(hasher, then.data, then.len);
    sft_hasher_result(hasher, &sums);
    sft_hasher_free(hasher);
    const char *hex = sft_hashes_get(&sums, SFT_HASH_SHA256);
    for (size_t i = 0; i < SIGN_SUM; i++)
        out[i] = (uint8_t)(sfti_hex_digit(hex[2 * i]) << 4 | sfti_hex_digit(hex[2 * i + 1]));
}

static sft_span sum_span(const uint8_t sum[SIGN_SUM]) {
    return (sft_span){ (const char *)sum, SIGN_SUM };
}

static void hmac(signer *s, sft_span key, sft_span text, uint8_t out[SIGN_SUM]) {
    uint8_t short_key[SIGN_SUM], inner[SIGN_SUM];
    char inner_pad[SIGN_BLOCK], outer_pad[SIGN_BLOCK];
    if (key.len > SIGN_BLOCK) {
        sum_of(s, key, (sft_span){ "", 0 }, short_key);
        key = sum_span(short_key);
    }
    for (size_t i = 0; i < SIGN_BLOCK; i++) {
        char byte = i < key.len ? key.data[i] : '\0';
        inner_pad[i] = (char)(byte ^ 0x36);
        outer_pad[i] = (char)(byte ^ 0x5c);
    }
    sum_of(s, (sft_span){ inner_pad, SIGN_BLOCK }, text, inner);
    sum_of(s, (sft_span){ outer_pad, SIGN_BLOCK }, sum_span(inner), out);
}

static void sign_put_hex(signer *s, const uint8_t sum[SIGN_SUM]) {
    for (size_t i = 0; i < SIGN_SUM; i++) {
        char digits[2];
        sfti_hex_text(sum[i], 2, digits);
        sign_put(s, (sft_span){ digits, 2 });
    }
}

/* ── The canonical request ── */

/* A text of a URL in the one spelling that is signed. What is not encoded well stands for
 * itself. */
static sft_span canonical_text(signer *s, sft_span text, const char *keep) {
    sft_buffer plain = { .alloc = s->text.alloc }, coded = { .alloc = s->text.alloc };
    char *copy = NULL;
    if (sfti_buffer_reserve(&plain, text.len)) { /* so that only what is malformed fails */
        if (sfti_url_decode(&plain, text)) text = (sft_span){ plain.data, plain.len };
        if (sfti_url_encode(&coded, text, keep))
            copy = sfti_arena_copy(s->arena, coded.data, coded.len);
    }
    sign_memory(s, copy != NULL);
    sft_span out = { copy, copy ? coded.len : 0 };
    sft_buffer_free(&plain);
    sft_buffer_free(&coded);
    return out;
}

static int parameters_compare(const void *ctx, uint32_t a, uint32_t b) {
    const sft_pair *pairs = ctx;
    int order = sfti_bytes_compare(pairs[a].key, pairs[b].key);
    return order != 0 ? order : sfti_bytes_compare(pairs[a].value, pairs[b].value);
}

static void canonical_query(signer *s, sft_span query) {
    size_t count = 0, cap = 0;
    sft_pair *pairs = NULL;
    sft_span part;
    while (!s->code && sfti_text_split(&query, '&', &part)) {
        size_t equals = sfti_text_find(part, '=');
        if (part.len == 0) continue;
        sft_pair *more = sfti_arena_grow(s->arena, pairs, count, 1, &cap, sizeof *pairs);
        sign_memory(s, more != NULL);
        if (!more) return;
        pairs = more;
        pairs[count].key = canonical_text(s, (sft_span){ part.data, equals }, "");
        if (equals < part.len) equals++;
        pairs[count++].value = canonical_text(s, sfti_span_from(part, equals), "");
    }
    uint32_t *order = sfti_arena_sorted(s->arena, count, parameters_compare, pairs);
    sign_memory(s, order != NULL);
    for (size_t i = 0; !s->code && i < count; i++) {
        if (i > 0) SIGN_PUT(s, "&");
        sign_put(s, pairs[order[i]].key);
        SIGN_PUT(s, "=");
        sign_put(s, pairs[order[i]].value);
    }
}

/* As it is sent: in lower case, with the port unless it is the scheme's own. */
static void canonical_host(signer *s, const sfti_url *url) {
    char port[SFTI_UINT_SIZE];
    for (size_t i = 0; i < url->host.len; i++) {
        char c = sfti_lower(url->host.data[i]);
        sign_put(s, (sft_span){ &c, 1 });
    }
    if (url->port == (url->https ? 443 : 80)) return;
    SIGN_PUT(s, ":");
    sign_put(s, (sft_span){ port, sfti_uint_text(url->port, 0, port) });
}

static void canonical_request(signer *s, const sfti_url *url) {
    const char *session = s->request->keys.session;
    SIGN_PUT(s, s->request->method, "\n");
    sign_put(s, url->path.len > 0 ? canonical_text(s, url->path, "/") : sft_span_cstr("/"));
    SIGN_PUT(s, "\n");
    canonical_query(s, url->query);
    SIGN_PUT(s, "\nhost:");
    canonical_host(s, url);
    SIGN_PUT(s, "\nx-amz-content-sha256:UNSIGNED-PAYLOAD\nx-amz-date:", s->date);
    if (session) SIGN_PUT(s, "\nx-amz-security-token:", session);
    SIGN_PUT(s, "\n\n", s->signed_names, "\nUNSIGNED-PAYLOAD");
}

/* ── The signature ── */

static void sign_date(signer *s) {
    uint64_t days = s->request->now_s / 86400, of_day = s->request->now_s % 86400;
    int64_t year;
    unsigned month, day;
    sfti_date_of_days((int64_t)days, &year, &month, &day);
    const uint64_t parts[] = { (uint64_t)year, month, day, of_day / 3600, of_day / 60 % 60,
                               of_day % 60 };
    char digits[SFTI_UINT_SIZE], *at = s->date;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t width = i == 0 ? 4 : 2;
        if (i == 3) *at++ = 'T';
        (void)sfti_uint_text(parts[i], width, digits);
        memcpy(at, digits, width);
        at += width;
    }
    memcpy(at, "Z", 2);
    memcpy(s->day, s->date, 8);
}

/* What the key is made for, of which the credential tells, too. */
static void sign_put_scope(signer *s) {
    SIGN_PUT(s, s->day, "/", s->request->region, "/", s->request->service, "/aws4_request");
}

static void sign_key(signer *s, uint8_t out[SIGN_SUM]) {
    sft_buffer secret = { .alloc = s->text.alloc };
    const char *words[] = { s->request->region, s->request->service, "aws4_request" };
    sign_memory(s, sfti_buffer_put(&secret, "AWS4", 4)
                       && sfti_buffer_put(&secret, s->request->keys.secret,
                                          strlen(s->request->keys.secret)));
    hmac(s, (sft_span){ secret.data, secret.len }, sft_span_cstr(s->day), out);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hmac(s, sum_span(out), sft_span_cstr(words[i]), out);
    sft_buffer_free(&secret);
}

static void sign_text(signer *s, const sfti_url *url, uint8_t signature[SIGN_SUM]) {
    uint8_t sum[SIGN_SUM], key[SIGN_SUM];
    canonical_request(s, url);
    sum_of(s, (sft_span){ s->text.data, s->text.len }, (sft_span){ "", 0 }, sum);
    s->text.len = 0;
    SIGN_PUT(s, "AWS4-HMAC-SHA256\n", s->date, "\n");
    sign_put_scope(s);
    SIGN_PUT(s, "\n");
    sign_put_hex(s, sum);
    sign_key(s, key);
    hmac(s, sum_span(key), (sft_span){ s->text.data, s->text.len }, signature);
}

static void sign_add(signer *s, sfti_headers *headers, const char *name, sft_span value) {
    const char *copy = s->code ? NULL : sfti_arena_copy(headers->arena, value.data, value.len);
    if (!s->code && (!copy || !sfti_headers_add(headers, name, copy)))
        s->code = sfti_misuse(s->err, "the keys to sign with cannot be sent: expected plain text "
                              "in %s", name);
}

sft_code sfti_sign(const sfti_sign_request *request, sfti_headers *headers, sft_error *err) {
    signer s = { .request = request, .arena = headers->arena, .err = err };
    uint8_t signature[SIGN_SUM];
    sfti_url url;
    s.text.alloc = headers->arena->alloc;
    s.signed_names = request->keys.session
                         ? "host;x-amz-content-sha256;x-amz-date;x-amz-security-token"
                         : "host;x-amz-content-sha256;x-amz-date";
    if (!sfti_url_parse(request->url, &url))
        return sfti_fail(err, SFT_REMOTE_URL, "expected a URL to sign");
    sign_date(&s);
    sign_text(&s, &url, signature);
    s.text.len = 0;
    SIGN_PUT(&s, "AWS4-HMAC-SHA256 Credential=", request->keys.id, "/");
    sign_put_scope(&s);
    SIGN_PUT(&s, ", SignedHeaders=", s.signed_names, ", Signature=");
    sign_put_hex(&s, signature);
    sign_add(&s, headers, "x-amz-content-sha256", sft_span_cstr("UNSIGNED-PAYLOAD"));
    sign_add(&s, headers, "x-amz-date", sft_span_cstr(s.date));
    if (request->keys.session)
        sign_add(&s, headers, "x-amz-security-token", sft_span_cstr(request->keys.session));
    sign_add(&s, headers, "authorization", (sft_span){ s.text.data, s.text.len });
    sft_buffer_free(&s.text);
    return s.code;
}
