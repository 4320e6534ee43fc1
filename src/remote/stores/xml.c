/* Reads the XML of object stores. Tests: test_remote_s3.c. */
#include "remote/stores/xml.h"

#include "base/utf8.h"
#include "remote/http/text.h"

#include <string.h>

#define ENTITY_MOST 10 /* bytes of "&#x10FFFF;" */

static sfti_xml_type xml_fail(sfti_xml *xml, const char *at, const char *why) {
    xml->why = why;
    xml->error_at = (size_t)(at - xml->begin);
    return xml->type = SFTI_XML_ERROR;
}

static bool xml_begins(const sfti_xml *xml, const char *word) {
    size_t len = strlen(word);
    return (size_t)(xml->end - xml->at) >= len && memcmp(xml->at, word, len) == 0;
}

/* Go behind the next `word`, or to the end: false. */
static bool xml_pass(sfti_xml *xml, const char *word) {
    while (xml->at < xml->end && !xml_begins(xml, word)) xml->at++;
    if (xml->at == xml->end) return false;
    xml->at += strlen(word);
    return true;
}

static bool is_xml_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void xml_pass_blanks(sfti_xml *xml) {
    while (xml->at < xml->end && is_xml_blank(*xml->at)) xml->at++;
}

/* ── Tags ── */

/* The name of a tag without its prefix. */
static bool xml_name(sfti_xml *xml, sft_span *out) {
    const char *from = xml->at;
    for (; xml->at < xml->end; xml->at++) {
        char c = *xml->at;
        if (c == ':') from = xml->at + 1;
        else if (!sfti_is_letter(c) && !sfti_is_digit(c) && c != '_' && c != '-' && c != '.'
                 && (unsigned char)c < 0x80)
            break;
    }
    *out = (sft_span){ from, (size_t)(xml->at - from) };
    return out->len > 0;
}

static sfti_xml_type xml_close(sfti_xml *xml) {
    xml->name = xml->open[--xml->depth];
    return xml->type = SFTI_XML_CLOSE;
}

static sfti_xml_type xml_close_tag(sfti_xml *xml) {
    const char *from = xml->at;
    sft_span name;
    xml->at += 2;
    bool named = xml_name(xml, &name);
    xml_pass_blanks(xml);
    if (!named || xml->at == xml->end || *xml->at != '>')
        return xml_fail(xml, from, "the tag that ends an element");
    xml->at++;
    if (xml->depth == 0 || !sft_span_equal(name, xml->open[xml->depth - 1]))
        return xml_fail(xml, from, "the end of the element that began last");
    return xml_close(xml);
}

static sfti_xml_type xml_open_tag(sfti_xml *xml) {
    const char *from = xml->at++;
    char quote = '\0';
    if (!xml_name(xml, &xml->name)) return xml_fail(xml, from, "a tag");
    if (xml->depth == SFTI_XML_DEPTH) return xml_fail(xml, from, "at most 32 elements in another");
    for (; xml->at < xml->end && (quote || (*xml->at != '>' && *xml->at != '<')); xml->at++) {
        char c = *xml->at;
        if (quote && c == quote) quote = '\0';
        else if (!quote && (c == '"' || c == '\'')) quote = c;
    }
    if (xml->at == xml->end || *xml->at != '>') return xml_fail(xml, from, "a tag that ends");
    xml->empty = xml->at[-1] == '/';
    xml->at++;
    xml->rooted = true;
    xml->open[xml->depth++] = xml->name;
    return xml->type = SFTI_XML_OPEN;
}

/* ── Events ── */

/* Text up to the next tag or CDATA; false: only blanks. */
static bool xml_text(sfti_xml *xml) {
    const char *from = xml->at;
    bool blank = true;
    for (; xml->at < xml->end && *xml->at != '<'; xml->at++)
        if (!is_xml_blank(*xml->at)) blank = false;
    xml->text = (sft_span){ from, (size_t)(xml->at - from) };
    xml->plain = false;
    return !blank;
}

static sfti_xml_type xml_cdata(sfti_xml *xml) {
    const char *from = xml->at;
    if (!xml_pass(xml, "]]>")) return xml_fail(xml, from, "the end of CDATA");
    from += strlen("<![CDATA[");
    xml->text = (sft_span){ from, (size_t)(xml->at - from) - strlen("]]>") };
    xml->plain = true;
    return xml->type = SFTI_XML_TEXT;
}

void sfti_xml_begin(sfti_xml *xml, sft_span text) {
    if (text.len == 0) text.data = "";
    *xml = (sfti_xml){ .begin = text.data, .at = text.data, .end = text.data + text.len,
                       .type = SFTI_XML_END };
    if (xml_begins(xml, "\xef\xbb\xbf")) xml->at += 3;
}

sfti_xml_type sfti_xml_next(sfti_xml *xml) {
    if (xml->why) return SFTI_XML_ERROR;
    if (xml->empty) {
        xml->empty = false;
        return xml_close(xml);
    }
    for (;;) {
        const char *from = xml->at;
        if (xml->depth == 0) xml_pass_blanks(xml);
        if (xml->at == xml->end) {
            if (xml->depth > 0) return xml_fail(xml, from, "the end of an element");
            return xml->rooted ? (xml->type = SFTI_XML_END) : xml_fail(xml, from, "an element");
        }
        if (xml_begins(xml, "<!--")) {
            if (!xml_pass(xml, "-->")) return xml_fail(xml, from, "the end of a comment");
        } else if (xml_begins(xml, "<?")) {
            if (!xml_pass(xml, "?>")) return xml_fail(xml, from, "the end of an instruction");
        } else if (xml->depth == 0 && (xml->rooted || xml_begins(xml, "<!") || *xml->at != '<')) {
            return xml_fail(xml, from, xml->rooted ? "nothing after the element" : "an element");
        } else if (xml_begins(xml, "</")) {
            return xml_close_tag(xml);
        } else if (xml_begins(xml, "<![CDATA[")) {
            return xml_cdata(xml);
        } else if (*xml->at == '<') {
            return xml_open_tag(xml);
        } else if (xml_text(xml)) {
            return xml->type = SFTI_XML_TEXT;
        }
    }
}

sfti_xml_type sfti_xml_skip(sfti_xml *xml) {
    uint32_t depth = xml->depth;
    if (xml->type != SFTI_XML_OPEN) return xml->type;
    while (sfti_xml_next(xml) != SFTI_XML_ERROR && xml->depth >= depth) continue;
    return xml->type;
}

/* ── Text ── */

/* The character that an entity stands for, as UTF-8: how many bytes of it; 0: none. */
static size_t entity_text(sft_span entity, char out[4]) {
    static const struct { const char *name; char c; } known[] = {
        { "&amp", '&' }, { "&lt", '<' }, { "&gt", '>' }, { "&quot", '"' }, { "&apos", '\'' },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!sft_span_equal(entity, sft_span_cstr(known[i].name))) continue;
        out[0] = known[i].c;
        return 1;
    }
    if (!sfti_text_begins(entity, "&#")) return 0;
    bool hex = sfti_text_begins(entity, "&#x");
    uint32_t code = 0;
    for (size_t i = hex ? 3 : 2; i < entity.len; i++) {
        int digit = sfti_hex_digit(entity.data[i]);
        if (digit < 0 || (!hex && digit > 9)) return 0;
        code = code * (hex ? 16u : 10u) + (uint32_t)digit; /* at most 8 digits */
    }
    bool scalar = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    return scalar && entity.len > (hex ? 3 : 2) ? sfti_utf8_encode(code, out) : 0;
}

/* Append decoded text, which is never longer than it is spelled; false: an error was told. */
static bool xml_decode(sfti_xml *xml, char *out, size_t *len) {
    for (size_t at = 0; at < xml->text.len;) {
        sft_span rest = sfti_span_from(xml->text, at);
        if (xml->plain || *rest.data != '&') {
            out[(*len)++] = *rest.data;
            at++;
            continue;
        }
        size_t end = sfti_text_find(rest, ';');
        bool ends = end < rest.len && end < ENTITY_MOST;
        size_t put = ends ? entity_text((sft_span){ rest.data, end }, out + *len) : 0;
        if (put == 0) {
            xml_fail(xml, rest.data, "one of XML's own entities");
            return false;
        }
        *len += put;
        at += end + 1;
    }
    return true;
}

sft_span sfti_xml_element(sfti_xml *xml, sfti_arena *arena) {
    sft_span none = { NULL, 0 };
    uint32_t depth = xml->depth;
    const char *from = xml->at;
    size_t len = 0;
    sfti_xml ahead = *xml;
    if (sfti_xml_skip(&ahead) == SFTI_XML_ERROR) {
        *xml = ahead;
        return none;
    }
    char *out = sfti_arena_take(arena, (size_t)(ahead.at - from) + 1);
    if (!out) return none;
    while (sfti_xml_next(xml) != SFTI_XML_ERROR && xml->depth >= depth)
        if (xml->type == SFTI_XML_TEXT && xml->depth == depth && !xml_decode(xml, out, &len))
            return none;
    if (sfti_utf8_check(out, len) != len) {
        xml_fail(xml, from, "UTF-8");
        return none;
    }
    out[len] = '\0';
    return (sft_span){ out, len };
}
