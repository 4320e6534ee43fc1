/* What servers and command lines say, as any bytes: the first one chooses what reads the rest, the
 * head and body of an answer, a Location at a URL, a URL, a host, XML, a configuration file, or a
 * name of the Hub. Nothing is sent. */
#include "fuzz.h"

#include "remote/http/answer.h"
#include "remote/hub/hub.h"
#include "remote/stores/credentials.h"
#include "remote/http/text.h"
#include "remote/http/url.h"
#include "remote/stores/xml.h"

#include <string.h>

#define HEADERS 32

static const sft_span empty = { "", 0 };

static char *as_string(sft_span bytes) {
    char *text = malloc(bytes.len + 1);
    FUZZ_CHECK(text);
    if (bytes.len > 0) memcpy(text, bytes.data, bytes.len);
    text[bytes.len] = '\0';
    return text;
}

/* The text before the next newline. */
static sft_span take_line(sft_span *rest) {
    size_t len = sfti_text_find(*rest, '\n');
    sft_span line = { rest->data, len };
    *rest = sfti_span_from(*rest, len + (len < rest->len));
    return line;
}

/* ── Answers ── */

static void check_text(const char *text, size_t cap) {
    const char *end = memchr(text, '\0', cap);
    FUZZ_CHECK(end);
    for (; text < end; text++) FUZZ_CHECK((unsigned char)*text >= ' ' && *text != 0x7f);
}

static void check_answer(const sfti_answer *answer) {
    if (answer->has_range) FUZZ_CHECK(answer->begin < answer->end);
    if (answer->has_range && answer->total != SFT_SIZE_UNKNOWN)
        FUZZ_CHECK(answer->end <= answer->total);
    FUZZ_CHECK(answer->wait_s >= -1 && sfti_answer_date(answer) >= 0);
    check_text(answer->etag, sizeof answer->etag);
    check_text(answer->modified, sizeof answer->modified);
    check_text(answer->encoding, sizeof answer->encoding);
    check_text(answer->type, sizeof answer->type);
    check_text(answer->commit, sizeof answer->commit);
    check_text(answer->linked_etag, sizeof answer->linked_etag);
    check_text(answer->error_code, sizeof answer->error_code);
    check_text(answer->error_message, sizeof answer->error_message);
    check_text(answer->region, sizeof answer->region);
    check_text(answer->next, sizeof answer->next);
    check_text(answer->file_name, sizeof answer->file_name);
    check_text(answer->line, sizeof answer->line);
    FUZZ_CHECK(!strpbrk(answer->file_name, "/\\") && strcmp(answer->file_name, "..") != 0);
    FUZZ_CHECK(sfti_answer_same(answer, answer));
}

/* Headers up to an empty line, then a body. */
static void read_answer(sft_span rest) {
    sft_pair headers[HEADERS];
    sfti_answer answer;
    size_t count = 0;
    while (rest.len > 0 && count < HEADERS) {
        sft_span line = take_line(&rest);
        size_t colon = sfti_text_find(line, ':');
        if (line.len == 0) break;
        if (colon == line.len) continue;
        headers[count++] = (sft_pair){ { line.data, colon }, sfti_span_from(line, colon + 1) };
    }
    sfti_answer_begin(&answer, NULL);
    FUZZ_CHECK(sfti_answer_read(&answer, 206, headers, count));
    sfti_answer_body(&answer, rest);
    check_answer(&answer);
    sfti_answer_free(&answer);
}

/* ── URLs ── */

/* What is shown tells neither user nor query. */
static void check_shown(const char *url, const sfti_url *parts) {
    char shown[4096];
    sfti_url again;
    sfti_url_show(url, shown, sizeof shown);
    FUZZ_CHECK(strlen(shown) < sizeof shown);
    if (strlen(url) < sizeof shown - 8) {
        FUZZ_CHECK(sfti_url_parse(shown, &again) && !again.user.data);
        FUZZ_CHECK(!again.query.data || sfti_text_is(again.query, "[...]"));
        FUZZ_CHECK(sfti_url_same_origin(url, shown));
        FUZZ_CHECK(sft_span_equal(again.path, parts->path));
    }
}

static void read_url(sft_span bytes) {
    char *text = as_string(bytes), shown[64];
    sfti_url url;
    sft_buffer coded = { 0 }, back = { 0 };
    sfti_url_show(text, shown, sizeof shown);
    if (sfti_url_parse(text, &url)) {
        FUZZ_CHECK(url.host.len > 0 && url.port >= 1 && url.port <= UINT16_MAX);
        FUZZ_CHECK(sfti_url_same_origin(text, text) && sfti_url_same_site(text, text));
        check_shown(text, &url);
    }
    FUZZ_CHECK(sfti_url_encode(&coded, bytes, "/"));
    FUZZ_CHECK(sfti_url_decode(&back, (sft_span){ coded.data, coded.len }));
    FUZZ_CHECK(sft_span_equal((sft_span){ back.data, back.len }, bytes));
    back.len = 0;
    (void)sfti_url_decode(&back, bytes);
    sft_buffer_free(&coded);
    sft_buffer_free(&back);
    free(text);
}

static void read_redirect(sft_span bytes) {
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sfti_url from, to;
    sft_span line = take_line(&bytes);
    char *base = as_string(line);
    const char *url = sfti_url_join(&arena, base, bytes);
    if (url) {
        FUZZ_CHECK(sfti_url_parse(base, &from) && sfti_url_parse(url, &to));
        bool elsewhere = sfti_text_find(bytes, ':') < bytes.len
                      || sfti_text_begins(sfti_text_trim(bytes), "//");
        FUZZ_CHECK(elsewhere || sfti_url_same_origin(base, url));
    }
    sfti_arena_free(&arena);
    free(base);
}

static void read_host(sft_span bytes) {
    sft_span host = take_line(&bytes);
    char *list = as_string(bytes);
    (void)sfti_host_is_public(host);
    (void)sfti_no_proxy(list, host, 80);
    if (bytes.len >= 16)
        FUZZ_CHECK(sfti_address_is_public((const uint8_t *)bytes.data, 4)
                   || !sfti_address_is_public((const uint8_t *)bytes.data, 3));
    free(list);
}

/* ── The rest ── */

static void read_date(sft_span bytes) {
    int64_t seconds = -1;
    if (sfti_http_date(bytes, &seconds)) FUZZ_CHECK(seconds >= 0);
    else FUZZ_CHECK(seconds == -1);
}

static void read_xml(sft_span bytes) {
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sfti_xml xml;
    sfti_xml_begin(&xml, bytes);
    for (size_t steps = 0; xml.type != SFTI_XML_END; steps++) {
        FUZZ_CHECK(steps <= bytes.len + 1);
        sfti_xml_type type = sfti_xml_next(&xml);
        FUZZ_CHECK(xml.depth <= SFTI_XML_DEPTH);
        if (type == SFTI_XML_ERROR) break;
        if (type == SFTI_XML_OPEN && xml.name.len == 3) (void)sfti_xml_element(&xml, &arena);
        else if (type == SFTI_XML_OPEN && xml.name.len == 4) (void)sfti_xml_skip(&xml);
    }
    if (xml.type == SFTI_XML_ERROR) FUZZ_CHECK(xml.why && xml.error_at <= bytes.len);
    sfti_arena_free(&arena);
}

static void read_ini(sft_span bytes) {
    sfti_ini ini;
    sfti_ini_begin(&ini, bytes);
    for (size_t lines = 0; sfti_ini_next(&ini); lines++) FUZZ_CHECK(lines <= bytes.len);
}

/* A name that is read is written as one that means the same. */
static void read_hub_name(sft_span bytes) {
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    char *text = as_string(bytes);
    const char *from_page = NULL;
    sfti_hub_name name, again;
    sft_error err = SFT_ERROR_INIT;
    if (!sfti_hub_read_name(text, &arena, &name, &err)) {
        const char *written = sfti_hub_write_name(&name, &arena);
        FUZZ_CHECK(written && !sfti_hub_read_name(written, &arena, &again, &err));
        FUZZ_CHECK(strcmp(sfti_hub_write_name(&again, &arena), written) == 0);
    }
    (void)sfti_hub_from_web("https://huggingface.co", text, &arena, &from_page, &err);
    if (from_page) FUZZ_CHECK(!sfti_hub_read_name(from_page, &arena, &name, &err));
    sfti_arena_free(&arena);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static void (*const readers[])(sft_span bytes) = {
        read_answer, read_redirect, read_url, read_host, read_date, read_xml, read_ini,
        read_hub_name,
    };
    if (size == 0) return 0;
    sft_span bytes = size > 1 ? (sft_span){ (const char *)data + 1, size - 1 } : empty;
    readers[data[0] % (sizeof readers / sizeof *readers)](bytes);
    return 0;
}
