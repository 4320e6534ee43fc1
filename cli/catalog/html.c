/* The shell of a page, its policy, and blocks of JSON in which nothing can end the block. */
#include "catalog/html.h"

#include "base/json_lex.h"
#include "base/utf8.h"
#include "safetensors_hash.h"
#include "support/values.h"

#include <stdio.h>
#include <string.h>

#define DIGEST_BYTES 32

static void flush(html_page *page) {
    if (!page->code && page->used)
        page->code = sft_sink_write(&page->sink, page->at - page->used, page->buffer, page->used,
                                    page->err);
    page->used = 0;
}

/* Much of a page comes in pieces of a few bytes. */
static void put(html_page *page, const void *bytes, size_t len) {
    if (len > sizeof page->buffer - page->used) flush(page);
    if (page->code || !len) return;
    if (len > sizeof page->buffer) {
        page->code = sft_sink_write(&page->sink, page->at, bytes, len, page->err);
    } else {
        memcpy(page->buffer + page->used, bytes, len);
        page->used += len;
    }
    page->at += len;
}

void html_markup(html_page *page, const char *markup) { put(page, markup, strlen(markup)); }

/* ── Text ── */

/* What the code point stands for in markup; "" where it is itself. What cannot be seen is shown as
 * visible() of page/text.js shows it. */
static const char *markup_of(uint32_t code, char buffer[16]) {
    switch (code) {
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '&': return "&amp;";
    case '"': return "&quot;";
    default: break;
    }
    if (sfti_utf8_unsafe(code)) snprintf(buffer, 16, "\\u{%x}", (unsigned)code);
    else buffer[0] = 0;
    return buffer;
}

void html_text(html_page *page, sft_span text) {
    const uint8_t *at = (const uint8_t *)text.data, *end = at + text.len, *from = at;
    char buffer[16];
    while (at < end) {
        uint32_t code;
        size_t len = sfti_utf8_decode(at, end, &code);
        const char *instead = len ? markup_of(code, buffer) : "\xEF\xBF\xBD";
        if (*instead) {
            put(page, from, (size_t)(at - from));
            html_markup(page, instead);
            from = at + (len ? len : 1);
        }
        at += len ? len : 1;
    }
    if (text.len) put(page, from, (size_t)(end - from));
}

/* ── The policy ── */

/* 'sha256-…' of two texts, one behind the other. */
static void put_digest(html_page *page, page_text a, page_text b) {
    sft_hasher *hasher = NULL;
    sft_hashes hashes;
    char bytes[DIGEST_BYTES], text[64];
    if (page->code) return;
    page->code = sft_hasher_new(SFT_HASH_BIT(SFT_HASH_SHA256), page->alloc, &hasher, page->err);
    if (page->code) return;
    sft_hasher_update(hasher, a.bytes, a.len);
    sft_hasher_update(hasher, b.bytes, b.len);
    sft_hasher_result(hasher, &hashes);
    sft_hasher_free(hasher);
    const char *hex = sft_hashes_get(&hashes, SFT_HASH_SHA256);
    for (size_t i = 0; i < DIGEST_BYTES; i++)
        bytes[i] = (char)(sfti_lex_hex_digit(hex[2 * i]) << 4 | sfti_lex_hex_digit(hex[2 * i + 1]));
    size_t len = cli_base64((sft_span){ bytes, sizeof bytes }, text);
    html_markup(page, "'sha256-");
    put(page, text, len);
    html_markup(page, "'");
}

static page_text script_of(html_kind kind) {
    return kind == HTML_CATALOG ? page_catalog : page_model;
}

/* ── The shell ── */

void html_begin(html_page *page, html_kind kind, sft_sink sink, const char *title,
                const sft_allocator *alloc, sft_error *err) {
    page_text style = kind == HTML_CATALOG ? page_style_catalog : page_style_model;
    memset(page, 0, sizeof *page);
    page->kind = kind;
    page->sink = sink;
    page->alloc = alloc;
    page->err = err;
    html_markup(page, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    /* The policy, before anything that it is about. */
    html_markup(page, "<meta http-equiv=\"Content-Security-Policy\" content=\""
                      "default-src 'none'; script-src ");
    put_digest(page, page_shared, script_of(page->kind));
    html_markup(page, "; style-src ");
    put_digest(page, page_style, style);
    html_markup(page, "; img-src 'self' file: data:; media-src 'self' file: data:; "
                      "base-uri 'none'; form-action 'none'; "
                      "require-trusted-types-for 'script'; trusted-types 'none'\">\n");
    html_markup(page, "<meta name=\"referrer\" content=\"no-referrer\">\n"
                      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
    html_text(page, sft_span_cstr(title));
    html_markup(page, "</title>\n<style>");
    put(page, page_style.bytes, page_style.len);
    put(page, style.bytes, style.len);
    html_markup(page, "</style>\n</head>\n<body>\n");
}

sft_code html_end(html_page *page) {
    page_text script = script_of(page->kind);
    html_markup(page, "<script type=\"module\">");
    put(page, page_shared.bytes, page_shared.len);
    put(page, script.bytes, script.len);
    html_markup(page, "</script>\n</body>\n</html>\n");
    flush(page);
    return page->code;
}

/* ── Blocks ── */

static sft_code write_block(void *ctx, uint64_t offset, const void *bytes, size_t len,
                            sft_error *err) {
    html_page *page = ctx;
    const char *at = bytes, *end = at + len, *from = at;
    (void)offset, (void)err;
    for (; at < end; at++) {
        /* In JSON these are inside of strings only. */
        const char *escape = *at == '<' ? "\\u003c" : *at == '>' ? "\\u003e" : "\\u0026";
        if (*at != '<' && *at != '>' && *at != '&') continue;
        put(page, from, (size_t)(at - from));
        html_markup(page, escape);
        from = at + 1;
    }
    put(page, from, (size_t)(end - from));
    return page->code;
}

static const sft_sink_vtable block_table = { .size = sizeof block_table, .write = write_block };

sfti_json_writer *html_block_begin(html_page *page, const char *id) {
    page->block = (sft_sink){ page, &block_table, false };
    html_markup(page, "<script type=\"application/json\" id=\"");
    html_markup(page, id);
    html_markup(page, "\">");
    sfti_json_write(&page->json, &page->block, 0, page->err);
    page->json.code = page->code;
    return &page->json;
}

void html_block_end(html_page *page) {
    sft_code code = sfti_json_done(&page->json);
    if (!page->code) page->code = code;
    html_markup(page, "</script>\n");
}
