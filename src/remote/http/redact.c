/* Servers repeat in their errors what they were sent: tokens and signatures are taken out.
 * Tests: test_remote_http.c. */
#include "remote/http/exchange.h"
#include "remote/http/text.h"

#include <string.h>

#define SECRET_LEAST 6 /* bytes: shorter ones are words, and the mark must fit */

/* At the end its beginning is enough: texts are cut. */
static void redact_one(char *text, size_t *len, sft_span secret) {
    static const char mark[] = "[...]";
    const size_t mark_len = sizeof mark - 1;
    for (size_t at = 0; secret.len >= SECRET_LEAST && *len - at >= SECRET_LEAST; at++) {
        size_t left = *len - at, compared = left < secret.len ? left : secret.len;
        if (memcmp(text + at, secret.data, compared) != 0) continue;
        memcpy(text + at, mark, mark_len);
        memmove(text + at + mark_len, text + at + compared, left - compared);
        *len -= compared - mark_len;
        at += mark_len - 1;
    }
}

/* All of it, and the words in it: "Bearer TOKEN", "Credential=ID/day, Signature=HEX". */
static void redact_words(char *text, size_t *len, sft_span secret) {
    size_t at = 0;
    redact_one(text, len, secret);
    while (at < secret.len) {
        size_t end = at;
        while (end < secret.len && (!secret.data[end] || !strchr(" ,;:=&/", secret.data[end])))
            end++;
        /* Errors have words of their own like the name in "Signature=HEX". */
        size_t name = at;
        while (name < end && sfti_is_letter(secret.data[name])) name++;
        if (name < end || end + 1 >= secret.len || secret.data[end] != '='
            || secret.data[end + 1] == '=')
            redact_one(text, len, (sft_span){ secret.data + at, end - at });
        at = end + 1;
    }
}

/* A parameter of a query, as it is spelt and as servers show it. */
static void redact_parameter(char *text, size_t *len, sft_span value,
                             const sft_allocator *alloc) {
    sft_buffer decoded = { .alloc = *alloc };
    redact_one(text, len, value);
    if (sfti_text_find(value, '%') < value.len) {
        if (sfti_buffer_reserve(&decoded, value.len) && sfti_url_decode(&decoded, value))
            redact_one(text, len, (sft_span){ decoded.data, decoded.len });
        else *len = 0; /* nobody knows what is in it */
    }
    sft_buffer_free(&decoded);
}

/* User, password and query. */
static void redact_url(char *text, size_t *len, const char *url, const sft_allocator *alloc) {
    sfti_url parts;
    sft_span one;
    if (!sfti_url_parse(url, &parts)) return;
    while (sfti_text_split(&parts.query, '&', &one)) {
        size_t sign = sfti_text_find(one, '=');
        redact_parameter(text, len, sfti_span_from(one, sign + (sign < one.len)), alloc);
        if (sign == one.len) redact_parameter(text, len, one, alloc);
    }
    while (sfti_text_split(&parts.user, ':', &one)) redact_parameter(text, len, one, alloc);
}

size_t sfti_redact(const sfti_exchange *x, char *text, size_t len) {
    const sft_allocator *alloc = &x->remote->alloc;
    const char *name = x->target ? x->target->name : NULL;
    sfti_scheme_id id;
    for (size_t i = 0; i < x->secrets.count; i++)
        redact_words(text, &len, x->secrets.at[i].value);
    if (name && sfti_scheme_of(name, &id) && id == SFTI_SCHEME_WEB) {
        const char *typed = sfti_remote_url(x->remote, name);
        if (typed) redact_url(text, &len, typed, alloc);
        else len = 0; /* no memory */
    }
    redact_url(text, &len, x->url, alloc);
    for (unsigned i = 0; i < x->hop_count; i++) redact_url(text, &len, x->hops[i], alloc);
    redact_url(text, &len, x->at, alloc);
    return len;
}

void sfti_exchange_show(const sfti_exchange *x, const char *url, bool given, char *out,
                        size_t cap) {
    sfti_url_show(url, out, cap);
    if (given) out[sfti_redact(x, out, strlen(out))] = '\0';
}
