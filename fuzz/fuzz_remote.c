/* A URL, and what servers answer: "URL\n", then for each exchange "STATUS\nname: value\n\nBODY" up
 * to a byte 0x1E. Whatever they say, secrets go to those only whom they are for, and are not shown;
 * what opens can be read, and what is listed has plain names. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "fuzz.h"
#include "safetensors_io.h"
#include "safetensors_remote.h"

#include <pthread.h>
#include <string.h>
#include <strings.h>

#define END_OF_ANSWER 0x1e
#define HUB_TOKEN "hf_SecretOfTheHub"
#define CIVITAI_TOKEN "SecretOfCivitAI"
#define AWS_SECRET "SecretOfAmazon"

static struct script {
    pthread_mutex_t mutex;
    const uint8_t *at, *end;
} script = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static const char *variable_of(void *ctx, const char *name) {
    static const char *const variables[][2] = {
        { "HF_ENDPOINT", "http://hub.test" },    { "HF_TOKEN", HUB_TOKEN },
        { "CIVITAI_API_TOKEN", CIVITAI_TOKEN },  { "AWS_ACCESS_KEY_ID", "key" },
        { "AWS_SECRET_ACCESS_KEY", AWS_SECRET }, { "AWS_REGION", "eu-west-1" },
        { "HF_HUB_CACHE", "/proc/none" },
    };
    (void)ctx;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (!strcmp(variables[i][0], name)) return variables[i][1];
    return NULL;
}

/* ── Who is told what ── */

static bool holds(const char *text, size_t len, const char *secret) {
    return len > 0 && memmem(text, len, secret, strlen(secret)) != NULL;
}

static bool holds_secret(const char *text, size_t len) {
    return holds(text, len, HUB_TOKEN) || holds(text, len, CIVITAI_TOKEN) ||
           holds(text, len, AWS_SECRET);
}

static void check_shown(const char *text) {
    FUZZ_CHECK(!holds_secret(text, strlen(text)));
}

/* "scheme://host" and nothing, or the scheme's own port, before the path. */
static bool is_at(const char *url, const char *origin, const char *port) {
    size_t len = strlen(origin);
    if (strncasecmp(url, origin, len) != 0) return false;
    url += len;
    if (!strncmp(url, port, strlen(port))) url += strlen(port);
    return !*url || strchr("/?#", *url);
}

static void check_request(const sft_http_request *request) {
    bool hub = is_at(request->url, "http://hub.test", ":80") ||
               is_at(request->url, "https://huggingface.co", ":443") ||
               is_at(request->url, "https://hf.co", ":443");
    bool civitai = is_at(request->url, "https://civitai.com", ":443");
    FUZZ_CHECK(!strncasecmp(request->url, "http://", 7) ||
               !strncasecmp(request->url, "https://", 8));
    for (size_t i = 0; i < request->header_count; i++) {
        sft_span value = request->headers[i].value;
        FUZZ_CHECK(hub || !holds(value.data, value.len, HUB_TOKEN));
        FUZZ_CHECK(civitai || !holds(value.data, value.len, CIVITAI_TOKEN));
        FUZZ_CHECK(!holds(value.data, value.len, AWS_SECRET));
        FUZZ_CHECK(!memchr(value.data, '\n', value.len));
    }
}

static void note_exchange(void *ctx, const sft_exchange *exchange) {
    (void)ctx;
    check_shown(exchange->url);
}

/* ── Answers ── */

static sft_span next_answer(void) {
    pthread_mutex_lock(&script.mutex);
    const uint8_t *begin = script.at;
    size_t left = (size_t)(script.end - begin);
    const uint8_t *end = left ? memchr(begin, END_OF_ANSWER, left) : NULL;
    script.at = end ? end + 1 : script.end;
    pthread_mutex_unlock(&script.mutex);
    return (sft_span){ (const char *)begin, end ? (size_t)(end - begin) : left };
}

static sft_span take_line(sft_span *text) {
    const char *end = text->len ? memchr(text->data, '\n', text->len) : NULL;
    sft_span line = { text->data, end ? (size_t)(end - text->data) : text->len };
    size_t used = line.len + (end != NULL);
    *text = (sft_span){ text->data + used, text->len - used };
    return line;
}

static sft_code send_scripted(void *ctx, const sft_http_request *request,
                              const sft_http_receiver *receiver, sft_error *err) {
    sft_pair headers[16];
    size_t count = 0;
    (void)ctx;
    check_request(request);
    sft_span text = next_answer();
    if (text.len < 3) return sft_error_set(err, SFT_REMOTE_NETWORK, 0, "no answer is left");
    sft_span line = take_line(&text);
    int status = 200;
    if (line.len == 3 && line.data[0] >= '2' && line.data[0] <= '5')
        status = (line.data[0] - '0') * 100 + line.data[1] % 10 * 10 + line.data[2] % 10;
    while ((line = take_line(&text)).len > 0 && count < 16) {
        const char *colon = memchr(line.data, ':', line.len);
        size_t name = colon ? (size_t)(colon - line.data) : line.len;
        size_t skip = name + (name < line.len);
        skip += skip < line.len && line.data[skip] == ' ';
        headers[count].key = (sft_span){ line.data, name };
        headers[count++].value = (sft_span){ line.data + skip, line.len - skip };
    }
    if (!receiver->head(receiver->ctx, status, headers, count)) return SFT_OK;
    size_t half = text.len / 2;
    if (half && !receiver->body(receiver->ctx, text.data, half)) return SFT_OK;
    if (text.len) (void)receiver->body(receiver->ctx, text.data + half, text.len - half);
    return SFT_OK;
}

/* ── What is made of them ── */

static bool check_listed(void *ctx, const sft_listed *entry) {
    (void)ctx;
    FUZZ_CHECK(*entry->name && !strchr(entry->name, '/'));
    FUZZ_CHECK(strcmp(entry->name, ".") && strcmp(entry->name, ".."));
    return true;
}

static void read_source(sft_source *source) {
    static uint8_t bytes[4096];
    uint64_t size = source->size;
    size_t got, some = size < sizeof bytes ? (size_t)size : sizeof bytes;
    FUZZ_CHECK(size != SFT_SIZE_UNKNOWN);
    if (!sft_source_read(source, 0, bytes, some, &got, NULL)) FUZZ_CHECK(got == some);
    if (!sft_source_read(source, size - some, bytes, some, &got, NULL)) FUZZ_CHECK(got == some);
    sft_source_close(source);
}

static void try_url(sft_remote *remote, const char *url) {
    const sft_files *files = sft_remote_files(remote);
    sft_error err = SFT_ERROR_INIT;
    sft_remote_claim claim;
    sft_source source;
    const char *name;
    sft_code code = sft_remote_name(remote, url, &name, &err);
    if (code) {
        FUZZ_CHECK(err.code == code && err.message[0]);
        return;
    }
    check_shown(name);
    FUZZ_CHECK(strncmp(name, "http", 4) || !strchr(name, '?') || strstr(name, "?["));
    bool folder = sft_remote_is_folder(name);
    if (folder) code = files->vtable->list(files->ctx, name, check_listed, NULL, &err);
    else code = files->vtable->open(files->ctx, name, NULL, &source, &err);
    if (code) {
        FUZZ_CHECK(err.code == code && err.message[0]);
        check_shown(err.message);
    } else if (!folder) {
        FUZZ_CHECK(sft_remote_claims(remote, name, &claim) && claim.bytes == source.size);
        read_source(&source);
    }
    if (!folder) (void)files->vtable->list(files->ctx, name, check_listed, NULL, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const sft_transport_vtable vtable = { sizeof vtable, send_scripted, NULL };
    const sft_transport transport = { NULL, &vtable };
    sft_remote_options options = SFT_REMOTE_OPTIONS_INIT;
    sft_remote *remote;
    sft_span text = { (const char *)data, size };
    char url[1024];
    if (holds_secret(text.data, text.len)) return 0; /* the fuzzer has guessed it */
    sft_span line = take_line(&text);
    options.transport = &transport;
    options.connections = 1;
    options.retries = UINT32_MAX;
    options.environment = variable_of;
    options.on_exchange = note_exchange;
    if (line.len >= sizeof url || sft_remote_open(&options, &remote, NULL)) return 0;
    if (line.len) memcpy(url, line.data, line.len);
    url[line.len] = '\0';
    script.at = (const uint8_t *)text.data;
    script.end = script.at + text.len;
    try_url(remote, url);
    sft_remote_close(remote);
    return 0;
}
