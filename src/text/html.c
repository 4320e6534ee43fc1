/* Plain text of HTML as CivitAI's descriptions and model cards use it. Tests: test_text.c. */
#include "text/formats.h"
#include "text/text.h"

#include "base/json_lex.h"
#include "base/utf8.h"

#include <string.h>

#define PLAIN_MOST 65536
#define PLAIN_READ_MOST ((size_t)4 << 20)

typedef struct plain {
    char *data;
    size_t len, cap;
    unsigned lines; /* pending line ends */
    bool blank;     /* pending space */
    bool keep;      /* line ends and blanks as they stand */
    bool full;
    bool no_tags;   /* no '>' is left */
    sft_span href;  /* of the open link; data NULL when none is open */
    size_t link_at;
    size_t item_at; /* behind the last "- " */
} plain;

/* ── Writing ── */

static void plain_raw(plain *out, const char *bytes, size_t len) {
    size_t part = len > out->cap - out->len ? out->cap - out->len : len;
    memcpy(out->data + out->len, bytes, part);
    out->len += part;
    out->full = out->full || part < len;
}

static void plain_gap(plain *out) {
    if (out->len > 0 && out->lines > 0) plain_raw(out, "\n\n", out->lines > 1 ? 2 : 1);
    else if (out->len > 0 && out->blank) plain_raw(out, " ", 1);
    out->lines = 0;
    out->blank = false;
}

static void plain_line(plain *out, unsigned least, unsigned more) {
    if (out->len > 0 && out->len == out->item_at) return;
    unsigned lines = out->lines + more;
    if (lines < least) lines = least;
    out->lines = lines > 2 ? 2 : lines;
    out->blank = false;
}

static void plain_put(plain *out, const char *bytes, size_t len) {
    plain_gap(out);
    plain_raw(out, bytes, len);
}

static void plain_char(plain *out, char c) {
    if (c == '\n' && out->keep) {
        plain_line(out, 0, 1);
    } else if (c == ' ' || (c >= '\t' && c <= '\r')) {
        if (out->keep && out->lines == 0 && out->len > 0 && c != '\r') plain_put(out, " ", 1);
        else if (out->lines == 0) out->blank = !out->keep;
    } else {
        plain_put(out, &c, 1);
    }
}

/* ── Entities ── */

static const struct plain_entity { const char *name; uint32_t code; } plain_entities[] = {
    { "amp", '&' }, { "lt", '<' }, { "gt", '>' }, { "quot", '"' }, { "apos", '\'' },
    { "ndash", 0x2013 }, { "mdash", 0x2014 }, { "lsquo", 0x2018 }, { "rsquo", 0x2019 },
    { "sbquo", 0x201A }, { "ldquo", 0x201C }, { "rdquo", 0x201D }, { "bdquo", 0x201E },
    { "dagger", 0x2020 }, { "bull", 0x2022 }, { "hellip", 0x2026 }, { "prime", 0x2032 },
    { "lsaquo", 0x2039 }, { "rsaquo", 0x203A }, { "euro", 0x20AC }, { "trade", 0x2122 },
    { "larr", 0x2190 }, { "uarr", 0x2191 }, { "rarr", 0x2192 }, { "darr", 0x2193 },
    { "minus", 0x2212 }, { "ne", 0x2260 }, { "le", 0x2264 }, { "ge", 0x2265 },
    { "hearts", 0x2665 }, { "star", 0x2606 }, { "check", 0x2713 }, { "ensp", ' ' },
    { "emsp", ' ' }, { "thinsp", ' ' }, { "zwj", 0x200D }, { "OElig", 0x152 },
    { "oelig", 0x153 }, { "Scaron", 0x160 }, { "scaron", 0x161 },
};

/* U+00A0 to U+00FF in order. */
static const char *const plain_latin[] = {
    "nbsp", "iexcl", "cent", "pound", "curren", "yen", "brvbar", "sect", "uml", "copy", "ordf",
    "laquo", "not", "shy", "reg", "macr", "deg", "plusmn", "sup2", "sup3", "acute", "micro",
    "para", "middot", "cedil", "sup1", "ordm", "raquo", "frac14", "frac12", "frac34", "iquest",
    "Agrave", "Aacute", "Acirc", "Atilde", "Auml", "Aring", "AElig", "Ccedil", "Egrave",
    "Eacute", "Ecirc", "Euml", "Igrave", "Iacute", "Icirc", "Iuml", "ETH", "Ntilde", "Ograve",
    "Oacute", "Ocirc", "Otilde", "Ouml", "times", "Oslash", "Ugrave", "Uacute", "Ucirc", "Uuml",
    "Yacute", "THORN", "szlig", "agrave", "aacute", "acirc", "atilde", "auml", "aring", "aelig",
    "ccedil", "egrave", "eacute", "ecirc", "euml", "igrave", "iacute", "icirc", "iuml", "eth",
    "ntilde", "ograve", "oacute", "ocirc", "otilde", "ouml", "divide", "oslash", "ugrave",
    "uacute", "ucirc", "uuml", "yacute", "thorn", "yuml",
};

static uint32_t named_entity(sft_span name) {
    for (size_t i = 0; i < SFTI_COUNT(plain_entities); i++)
        if (sft_span_equal(name, sft_span_cstr(plain_entities[i].name)))
            return plain_entities[i].code;
    for (size_t i = 0; i < SFTI_COUNT(plain_latin); i++)
        if (sft_span_equal(name, sft_span_cstr(plain_latin[i]))) return (uint32_t)(0xA0 + i);
    return 0;
}

/* "#38" or "#x26"; U+FFFD for what is no character. */
static uint32_t numbered_entity(sft_span name) {
    bool hex = name.len > 1 && (name.data[1] | 0x20) == 'x';
    uint32_t code = 0;
    size_t from = hex ? 2 : 1;
    if (name.len <= from) return 0;
    for (size_t i = from; i < name.len; i++) {
        int digit = sfti_lex_hex_digit(name.data[i]);
        if (digit < 0 || (!hex && digit > 9)) return 0;
        if (code < 0x1000000) code = code * (hex ? 16 : 10) + (uint32_t)digit;
    }
    if (code == 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return 0xFFFD;
    return code;
}

/* At '&': the character and the bytes it is spelled with; 0 when it is but an ampersand. */
static size_t entity(sft_span text, uint32_t *code) {
    size_t len = 1;
    while (len < text.len && len < 12 && text.data[len] != ';') len++;
    if (len == text.len || text.data[len] != ';' || len == 1) return 0;
    sft_span name = { text.data + 1, len - 1 };
    *code = *name.data == '#' ? numbered_entity(name) : named_entity(name);
    return *code ? len + 1 : 0;
}

static size_t plain_entity_at(plain *out, sft_span text) {
    char bytes[4];
    uint32_t code = 0;
    size_t len = entity(text, &code);
    if (len == 0) plain_put(out, "&", 1);
    else if (code == 0xA0 || code == ' ') plain_char(out, ' ');
    else if (code < 0x80) plain_char(out, (char)code);
    else plain_put(out, bytes, sfti_utf8_encode(code, bytes));
    return len ? len : 1;
}

/* ── Tags ── */

typedef enum plain_tag_kind { TAG_LINE, TAG_PARAGRAPH, TAG_BREAK, TAG_ITEM, TAG_LINK,
                              TAG_DROP } plain_tag_kind;

static const struct plain_tag { const char *name; plain_tag_kind kind; } plain_tags[] = {
    { "p", TAG_PARAGRAPH }, { "h1", TAG_PARAGRAPH }, { "h2", TAG_PARAGRAPH },
    { "h3", TAG_PARAGRAPH }, { "h4", TAG_PARAGRAPH }, { "h5", TAG_PARAGRAPH },
    { "h6", TAG_PARAGRAPH }, { "blockquote", TAG_PARAGRAPH }, { "pre", TAG_PARAGRAPH },
    { "div", TAG_LINE }, { "ul", TAG_LINE }, { "ol", TAG_LINE }, { "tr", TAG_LINE },
    { "table", TAG_LINE }, { "section", TAG_LINE }, { "article", TAG_LINE },
    { "header", TAG_LINE }, { "footer", TAG_LINE }, { "hr", TAG_LINE }, { "dl", TAG_LINE },
    { "dt", TAG_LINE }, { "dd", TAG_LINE }, { "figure", TAG_LINE }, { "details", TAG_LINE },
    { "summary", TAG_LINE }, { "br", TAG_BREAK }, { "li", TAG_ITEM }, { "a", TAG_LINK },
    { "script", TAG_DROP }, { "style", TAG_DROP },
};

static const struct plain_tag *known_tag(sft_span name) {
    for (size_t i = 0; i < SFTI_COUNT(plain_tags); i++)
        if (sfti_same_letters(name, plain_tags[i].name)) return &plain_tags[i];
    return NULL;
}

/* The value of href in a tag's inside. */
static sft_span href_of(sft_span tag) {
    sft_span at = sfti_find_letters(tag, "href"), none = { NULL, 0 };
    if (!at.data) return none;
    at = sfti_trim((sft_span){ at.data + 4, at.len - 4 });
    if (at.len < 2 || *at.data != '=') return none;
    at = sfti_trim((sft_span){ at.data + 1, at.len - 1 });
    char quote = at.len > 0 ? *at.data : '\0';
    if (quote != '"' && quote != '\'') {
        for (size_t i = 0; i < at.len; i++)
            if (at.data[i] == ' ' || (at.data[i] >= '\t' && at.data[i] <= '\r')) at.len = i;
        return at;
    }
    sft_span value = { at.data + 1, at.len - 1 }, end = sfti_find_byte(value, quote);
    if (!end.data) return none;
    value.len = (size_t)(end.data - value.data);
    return sfti_trim(value);
}

static void put_decoded(plain *out, sft_span text) {
    for (size_t i = 0; i < text.len && !out->full;) {
        sft_span rest = { text.data + i, text.len - i };
        if (text.data[i] == '&') i += plain_entity_at(out, rest);
        else plain_put(out, &text.data[i++], 1);
    }
}

static void end_link(plain *out) {
    sft_span href = out->href;
    out->href.data = NULL;
    if (!href.data || href.len == 0 || *href.data == '#') return;
    size_t from = out->link_at < out->len ? out->link_at : out->len;
    sft_span text = sfti_trim((sft_span){ out->data + from, out->len - from });
    if (sft_span_equal(text, href) || sfti_starts_with(href, "javascript:")) return;
    size_t before = out->len;
    bool blank = out->len > 0 && out->lines == 0;
    out->blank = blank;
    plain_put(out, "(", 1);
    size_t url = out->len;
    put_decoded(out, href);
    sft_span spelled = { out->data + url, out->len - url };
    if (sft_span_equal(text, spelled)) out->len = before; /* differed by entities only */
    else plain_put(out, ")", 1);
}

static void begin_link(plain *out, sft_span tag) {
    end_link(out);
    out->href = href_of(tag);
    out->link_at = out->len;
}

/* At '<'. */
static bool tag_begins(sft_span text) {
    if (text.len < 3) return false;
    char c = text.data[1] == '/' ? text.data[2] : text.data[1];
    return ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '!';
}

/* The bytes of a tag from '<' to '>', or 0: then it is text. A '>' in quotes ends none, but
 * where the quote has no end. */
static size_t tag_length(sft_span text, bool *none_left) {
    char quote = '\0';
    if (*none_left || !tag_begins(text)) return 0;
    for (size_t i = 1; i < text.len; i++) {
        char c = text.data[i];
        if (quote) quote = c == quote ? '\0' : quote;
        else if (c == '>') return i + 1;
        else if ((c == '"' || c == '\'') && text.data[i - 1] == '=') quote = c;
    }
    sft_span end = sfti_find_byte(text, '>');
    *none_left = !end.data;
    return end.data ? (size_t)(end.data - text.data) + 1 : 0;
}

/* Bytes up to and with the end of what begins here ("</script>"), all if it has no end. */
static size_t past(sft_span text, const char *end) {
    sft_span at = sfti_find_letters(text, end);
    if (!at.data) return text.len;
    sft_span close = sfti_find_byte(at, '>');
    return close.data ? (size_t)(close.data - text.data) + 1 : text.len;
}

static void act_on(plain *out, plain_tag_kind kind, bool closing, sft_span inside) {
    switch (kind) {
    case TAG_PARAGRAPH: plain_line(out, 1, closing ? 1 : (out->lines > 0)); break;
    case TAG_LINE: plain_line(out, 1, 0); break;
    case TAG_BREAK: plain_line(out, 0, 1); break;
    case TAG_ITEM:
        plain_line(out, 1, 0);
        if (!closing) plain_put(out, "- ", 2);
        out->item_at = out->len;
        break;
    case TAG_LINK:
        if (closing) end_link(out);
        else begin_link(out, inside);
        break;
    case TAG_DROP: break;
    }
}

/* A tag at '<'; the bytes used. */
static size_t plain_tag_at(plain *out, sft_span text) {
    if (sfti_starts_with(text, "<!--")) return past(text, "-->");
    size_t len = tag_length(text, &out->no_tags);
    if (len == 0) {
        plain_put(out, "<", 1);
        return 1;
    }
    bool closing = text.data[1] == '/';
    sft_span inside = { text.data + 1 + closing, len - 2 - closing }, name = inside;
    for (name.len = 0; name.len < inside.len; name.len++) {
        char c = (char)(name.data[name.len] | 0x20);
        if ((c < 'a' || c > 'z') && !sfti_lex_digit(name.data[name.len])) break;
    }
    const struct plain_tag *tag = known_tag(name);
    if (!tag) return len;
    if (tag->kind == TAG_DROP && !closing)
        return past(text, (name.data[1] | 0x20) == 'c' ? "</script" : "</style");
    act_on(out, tag->kind, closing, inside);
    return len;
}

/* ── All of it ── */

static bool has_tags(sft_span html) {
    for (sft_span at = sfti_find_byte(html, '<'); at.data; at = sfti_find_byte(at, '<')) {
        if (tag_begins(at)) return sfti_find_byte(at, '>').data != NULL;
        at.data++;
        at.len--;
    }
    return false;
}

static void plain_all(plain *out, sft_span html) {
    while (html.len > 0 && !out->full) {
        size_t used = 1;
        if (*html.data == '<' && !out->keep) used = plain_tag_at(out, html);
        else if (*html.data == '&') used = plain_entity_at(out, html);
        else plain_char(out, *html.data);
        html.data += used;
        html.len -= used;
    }
    end_link(out);
}

bool sfti_html_text(sfti_arena *arena, sft_span html, sft_span *text) {
    plain out = { 0 };
    *text = (sft_span){ "", 0 };
    html = sfti_trim(html);
    html.len = sfti_utf8_cut(html, PLAIN_READ_MOST);
    if (html.len == 0) return true;
    out.cap = html.len < PLAIN_MOST / 2 ? html.len * 2 + 64 : PLAIN_MOST;
    if (out.cap > PLAIN_MOST) out.cap = PLAIN_MOST;
    out.data = sfti_arena_take(arena, out.cap + 3);
    if (!out.data) return false;
    out.keep = !has_tags(html);
    plain_all(&out, html);
    if (out.full) {
        out.len = sfti_utf8_check(out.data, out.len);
        memcpy(out.data + out.len, "\xE2\x80\xA6", 3);
        out.len += 3;
    }
    *text = sfti_trim((sft_span){ out.data, out.len });
    return true;
}
