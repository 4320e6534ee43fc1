/* A remote whose answers stand in a table: which requests are sent, in which order, with which
 * headers, and what comes back. */
#ifndef REMOTE_SCRIPT_H
#define REMOTE_SCRIPT_H

#include "safetensors_remote.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* A request that is expected, and its answer. */
typedef struct script_row {
    const char *url;
    const char *sent;    /* the authorization header begins with this; "": there is none; NULL:
                            whatever it says */
    int status;
    const char *headers; /* lines "name: value" */
    const char *body;    /* of a 206 the whole file, of which the range is sent */
} script_row;

typedef struct script_variable { const char *name, *value; } script_variable;

typedef struct script {
    const script_row *rows;
    size_t count, at;
    size_t lost; /* the request with this number, from 1, is lost on its way; 0: none */
    const script_variable *variables; /* the last has no name; NULL: none */
    char problem[4096]; /* what was not as expected; threads of the library do not fail tests */
    char last_date[32]; /* x-amz-date of the last request */
    char last_session[128], last_authorization[512];
    sft_transport transport;
    sft_remote *remote;
} script;

static const char *script_header(const sft_http_request *request, const char *name) {
    for (size_t i = 0; i < request->header_count; i++)
        if (sft_span_equal(request->headers[i].key, sft_span_cstr(name)))
            return request->headers[i].value.data;
    return NULL;
}

static void script_copy(char *to, size_t cap, const char *text) {
    snprintf(to, cap, "%s", text ? text : "");
}

static void script_check(script *s, const script_row *row, const sft_http_request *request) {
    const char *sent = script_header(request, "authorization");
    bool same = strcmp(request->url, row->url) == 0 && strcmp(request->method, "GET") == 0;
    bool begins = sent && row->sent && strncmp(sent, row->sent, strlen(row->sent)) == 0;
    bool right = !row->sent || (*row->sent ? begins : !sent);
    script_copy(s->last_date, sizeof s->last_date, script_header(request, "x-amz-date"));
    script_copy(s->last_authorization, sizeof s->last_authorization, sent);
    script_copy(s->last_session, sizeof s->last_session,
                script_header(request, "x-amz-security-token"));
    if (!same || !right)
        snprintf(s->problem, sizeof s->problem,
                 "request %zu:\n  expected %s\n           %s\n  found    %s\n           %s\n",
                 s->at, row->url, row->sent ? row->sent : "(any)", request->url, sent ? sent : "");
}

static size_t script_headers(const char *lines, sft_pair *pairs, size_t most) {
    size_t count = 0;
    while (lines && *lines && count < most) {
        size_t end = strcspn(lines, "\n"), colon = strcspn(lines, ":");
        pairs[count].key = (sft_span){ lines, colon };
        pairs[count++].value = (sft_span){ lines + colon + 2, end - colon - 2 };
        lines += end + (lines[end] == '\n');
    }
    return count;
}

static sft_code script_send(void *ctx, const sft_http_request *request,
                            const sft_http_receiver *receiver, sft_error *err) {
    script *s = ctx;
    sft_pair pairs[16];
    char range[100];
    if (s->at == s->count) {
        snprintf(s->problem, sizeof s->problem, "unexpected request of %s\n", request->url);
        return SFT_REMOTE_TRANSPORT;
    }
    const script_row *row = &s->rows[s->at++];
    if (s->at == s->lost) return sft_error_set(err, SFT_REMOTE_NETWORK, 0, "lost");
    script_check(s, row, request);
    size_t count = script_headers(row->headers, pairs, COUNT(pairs) - 1);
    const char *body = row->body ? row->body : "", *asked = script_header(request, "range");
    size_t begin = 0, end = strlen(body);
    if (row->status == 206 && asked) {
        char *dash;
        size_t total = end;
        begin = strtoul(asked + strlen("bytes="), &dash, 10);
        end = strtoul(dash + 1, NULL, 10) + 1;
        if (end > total) end = total;
        int len = snprintf(range, sizeof range, "bytes %zu-%zu/%zu", begin, end - 1, total);
        pairs[count].key = sft_span_cstr("Content-Range");
        pairs[count++].value = (sft_span){ range, (size_t)len };
    }
    if (receiver->head(receiver->ctx, row->status, pairs, count) && end > begin)
        (void)receiver->body(receiver->ctx, body + begin, end - begin);
    return SFT_OK;
}

static void script_close(void *ctx) {
    (void)ctx;
}

static const sft_transport_vtable script_table = { sizeof script_table, script_send, script_close };

static const char *script_variable_of(void *ctx, const char *name) {
    const script *s = ctx;
    for (const script_variable *v = s->variables; v && v->name; v++)
        if (strcmp(v->name, name) == 0) return v->value;
    return NULL;
}

static sft_code script_open(script *s, const script_variable *variables, bool anonymous,
                            const sft_allocator *alloc, sft_error *err) {
    sft_remote_options options = SFT_REMOTE_OPTIONS_INIT;
    memset(s, 0, sizeof *s);
    options.alloc = alloc;
    s->variables = variables;
    s->transport = (sft_transport){ s, &script_table };
    options.transport = &s->transport;
    options.environment = script_variable_of;
    options.environment_ctx = s;
    options.anonymous = anonymous;
    options.retries = UINT32_MAX;
    options.connections = 1;
    return sft_remote_open(&options, &s->remote, err);
}

static void script_begin(script *s, const script_variable *variables, bool anonymous) {
    sft_error err = { 0 };
    if (script_open(s, variables, anonymous, NULL, &err)) fail_msg("%s", err.message);
}

static void script_rows(script *s, const script_row *rows, size_t count) {
    s->rows = rows;
    s->count = count;
    s->at = 0;
    *s->problem = '\0';
}

static void script_judge(const script *s) {
    if (*s->problem) fail_msg("%s", s->problem);
    assert_int_equal(s->at, s->count);
}

static void script_end(script *s) {
    sft_remote_close(s->remote);
}

/* Open a URL as a source and read all of it, at most cap - 1 bytes. */
static sft_code script_read(script *s, const char *url, char *out, size_t cap, sft_error *err) {
    sft_open_options how = SFT_OPEN_OPTIONS_INIT;
    sft_source source;
    const char *name;
    size_t got = 0;
    *out = '\0';
    memset(err, 0, sizeof *err);
    how.files = sft_remote_files(s->remote);
    sft_code code = sft_remote_name(s->remote, url, &name, err);
    if (!code) code = sft_source_path(name, &how, &source, err);
    if (code) return code;
    code = sft_source_read(&source, 0, out, cap - 1, &got, err);
    out[got] = '\0';
    sft_source_close(&source);
    return code;
}

#endif
