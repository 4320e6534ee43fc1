/* Links to models in texts. Tests: test_links.c. */
#include "text/links.h"

#include "base/json_lex.h"
#include "base/utf8.h"

#define LINK_LENGTH_MOST 2048
#define SENTENCE_MOST 400 /* bytes looked back for the words before a link */

/* ── A sentence's words before a link ── */

static bool ends_sentence(sft_span text, size_t i) {
    char c = text.data[i];
    if (c == '\n' || c == '\r') return true;
    if (c == '\\' && i + 1 < text.len && text.data[i + 1] == 'n') return true; /* in JSON */
    return (c == '.' || c == '!' || c == '?') && i + 1 < text.len
        && (text.data[i + 1] == ' ' || text.data[i + 1] == '<');
}

/* Whether words make the link at that place another model's, at the beginning of a word. */
static bool of_another(sft_span text, size_t at) {
    static const char *const words[] = { "base", "trained on", "merge", "require",
                                         "checkpoint" };
    size_t from = at;
    while (from > 0 && at - from < SENTENCE_MOST && !ends_sentence(text, from - 1)) from--;
    for (size_t i = from; i < at; i++) {
        sft_span rest = { text.data + i, at - i };
        if (i > from && sfti_word_byte(rest.data[-1])) continue;
        if (sfti_one_of(rest, words, SFTI_COUNT(words), sfti_starts_with)) return true;
    }
    return false;
}

/* ── URLs ── */

static bool url_byte(char c) {
    return (unsigned char)c > ' ' && c != 0x7F && !strchr("\"'<>\\`{}|^[]", c);
}

/* The URL that begins the text: up to what no URL holds, without punctuation at its end. */
static sft_span url_at(sft_span text) {
    size_t len = 0, open = 0;
    while (len < text.len && len < LINK_LENGTH_MOST && url_byte(text.data[len])
           && !sfti_utf8_mark(sfti_from(text, len))) {
        if (text.data[len] == '(') open++;
        if (text.data[len] == ')' && open-- == 0) break;
        len++;
    }
    while (len > 0 && strchr(".,;:!?*_", text.data[len - 1])) len--;
    return (sft_span){ text.data, len };
}

static uint64_t leading_id(sft_span *text) {
    uint64_t id = 0;
    while (text->len > 0 && sfti_lex_digit(*text->data)) {
        if (id > UINT64_MAX / 20) return 0;
        id = id * 10 + (uint64_t)(*text->data - '0');
        *text = sfti_from(*text, 1);
    }
    return text->len == 0 || !sfti_word_byte(*text->data) || (*text->data & 0x80) ? id : 0;
}

/* Ids in a CivitAI path, after the host's slash. */
static void ids_of_path(sft_span path, sfti_text_link *link) {
    sft_span rest = sfti_find_byte(path, '/');
    size_t len = rest.data ? path.len - rest.len : 0;
    if (len == 2 || (len == 5 && path.data[2] == '-')) path = sfti_from(rest, 1); /* "zh-CN/" */
    if (sfti_skip(&path, "api/download/models/") || sfti_skip(&path, "api/v1/model-versions/")
        || sfti_skip(&path, "model-versions/")) {
        link->version_id = leading_id(&path);
    } else if (sfti_skip(&path, "api/v1/models/") || sfti_skip(&path, "models/")) {
        link->model_id = leading_id(&path);
        sft_span version = sfti_find_letters(path, "modelversionid=");
        if (link->model_id && version.data && sfti_skip(&version, "modelversionid="))
            link->version_id = leading_id(&version);
    }
}

/* The path on a CivitAI host; data NULL for any other URL. */
static sft_span civitai_path(sft_span url) {
    static const char *const hosts[] = { "civitai.com/", "civitai.red/", "civitai.green/" };
    sft_span none = { NULL, 0 };
    if (!sfti_skip(&url, "https://")) sfti_skip(&url, "http://");
    sfti_skip(&url, "www.");
    for (size_t i = 0; i < SFTI_COUNT(hosts); i++)
        if (sfti_skip(&url, hosts[i])) return url;
    return none;
}

bool sfti_civitai_address(sft_span url, uint64_t *model_id, uint64_t *version_id) {
    sfti_text_link link = { .model_id = 0 };
    sft_span path = civitai_path(sfti_trim(url));
    if (path.data) ids_of_path(path, &link);
    *model_id = link.model_id;
    *version_id = link.version_id;
    return *model_id > 0 || *version_id > 0;
}

/* The URL that begins the text; its length, or 0. */
static size_t read_url(sft_span text, sfti_text_link *link) {
    sft_span url = url_at(text), path = civitai_path(url);
    bool whole = sfti_starts_with(url, "http");
    if (url.len < 10 || (!whole && !path.data)) return 0;
    *link = (sfti_text_link){ .text = url, .bare = !whole, .type = { "", 0 } };
    if (path.data) ids_of_path(path, link);
    return url.len;
}

/* "[urn:]air:ecosystem:type:civitai:123@456": its length, or 0. */
static size_t read_air(sft_span text, sfti_text_link *link) {
    sft_span rest = text, part[3];
    sfti_skip(&rest, "urn:");
    if (!sfti_skip(&rest, "air:")) return 0;
    for (size_t i = 0; i < 3; i++) {
        size_t len = 0;
        while (len < rest.len && len < 64
               && (sfti_word_byte(rest.data[len]) || strchr("._-", rest.data[len])))
            len++;
        if (len == 0 || len == rest.len || rest.data[len] != ':') return 0;
        part[i] = (sft_span){ rest.data, len };
        rest = sfti_from(rest, len + 1);
    }
    *link = (sfti_text_link){ .type = part[1] };
    if (!sfti_same_letters(part[2], "civitai")) return 0;
    link->model_id = leading_id(&rest);
    if (link->model_id == 0) return 0;
    if (sfti_skip(&rest, "@")) link->version_id = leading_id(&rest);
    link->text = (sft_span){ text.data, (size_t)(rest.data - text.data) };
    return link->text.len;
}

/* ── A text ── */

bool sfti_next_link(sft_span text, size_t *at, sfti_text_link *link) {
    for (size_t i = *at; i + 8 < text.len; i++) {
        sft_span rest = sfti_from(text, i);
        char c = (char)(*rest.data | 0x20), before = i > 0 ? rest.data[-1] : ' ';
        size_t len = 0;
        if ((c != 'h' && c != 'c' && c != 'u' && c != 'a' && c != 'w')
            || (sfti_word_byte(before) && (unsigned char)before < 0x80))
            continue;
        if (sfti_starts_with(rest, "http://") || sfti_starts_with(rest, "https://")
            || ((sfti_starts_with(rest, "civitai.") || sfti_starts_with(rest, "www.civitai."))
                && !strchr("./@-", before)))
            len = read_url(rest, link);
        else if (sfti_starts_with(rest, "urn:air:") || sfti_starts_with(rest, "air:"))
            len = read_air(rest, link);
        if (len == 0) continue;
        link->of_another = of_another(text, i);
        *at = i + len;
        return true;
    }
    return false;
}
