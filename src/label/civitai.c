/* CivitAI's links in a model's texts: the addresses of its pages and the ids in them. */
#include "label/info.h"

#include "base/json_lex.h"

#include <string.h>

#define SCAN_LINKS_MOST 256
#define LINK_LENGTH_MOST 2048
#define SENTENCE_MOST 400 /* bytes looked back for the words before a link */
#define CLAIMS_MOST 256
#define TRUST_DEMOTED 10 /* of a file found to be another model's */
#define SCAN_MOST ((size_t)8 << 20)

/* ── Claims ── */

sfti_civitai *sfti_info_civitai(sft_info *info, uint64_t model_id, uint64_t version_id,
                                sft_span source, int trust) {
    if ((model_id == 0 && version_id == 0) || info->civitai.count >= CLAIMS_MOST) return NULL;
    for (const sfti_civitai *old = info->civitai.first; old; old = old->next)
        if (old->model_id == model_id && old->version_id == version_id
            && sft_span_equal(old->source, source))
            return NULL;
    return SFTI_PUSH(info, &info->civitai, sfti_civitai, .model_id = model_id,
                     .version_id = version_id, .source = source, .trust = trust);
}

/* ── A sentence's words before a link ── */

static bool ends_sentence(sft_span text, size_t i) {
    char c = text.data[i];
    if (c == '\n' || c == '\r') return true;
    if (c == '\\' && i + 1 < text.len && text.data[i + 1] == 'n') return true; /* in JSON */
    return (c == '.' || c == '!' || c == '?') && i + 1 < text.len
        && (text.data[i + 1] == ' ' || text.data[i + 1] == '<');
}

/* From the beginning of the sentence to the link at that place. */
static sft_span sentence_before(sft_span text, size_t at) {
    size_t from = at;
    while (from > 0 && at - from < SENTENCE_MOST && !ends_sentence(text, from - 1)) from--;
    return (sft_span){ text.data + from, at - from };
}

/* Words that make a link another model's, at the beginning of a word. */
static bool of_another(sft_span sentence) {
    static const char *const words[] = { "base", "trained on", "merge", "require",
                                         "checkpoint" };
    for (size_t w = 0; w < SFTI_COUNT(words); w++)
        for (size_t i = 0; i < sentence.len; i++) {
            sft_span rest = { sentence.data + i, sentence.len - i };
            if ((i == 0 || !sfti_word_byte(rest.data[-1])) && sfti_starts_with(rest, words[w]))
                return true;
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
    while (len < text.len && len < LINK_LENGTH_MOST && url_byte(text.data[len])) {
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
    return text->len == 0 || !sfti_word_byte(*text->data) ? id : 0;
}

/* Ids in a CivitAI path, after the host's slash. */
static void ids_of_path(sft_span path, sfti_link *link) {
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
    sfti_link link = { 0 };
    sft_span path = civitai_path(sfti_trim(url));
    if (path.data) ids_of_path(path, &link);
    *model_id = link.model_id;
    *version_id = link.version_id;
    return *model_id > 0 || *version_id > 0;
}

static sfti_link *add_link(sft_info *info, sft_span url, sft_span source) {
    if (info->links.count >= SCAN_LINKS_MOST) return NULL;
    for (const sfti_link *link = info->links.first; link; link = link->next)
        if (sft_span_equal(link->url, url) && sft_span_equal(link->source, source)) return NULL;
    return SFTI_PUSH(info, &info->links, sfti_link, .url = url, .source = source);
}

/* A URL at that place of the text; the bytes it takes, at least 1. */
static size_t scan_url(sft_info *info, sft_span text, size_t at, sft_span source,
                       bool only_link) {
    sft_span rest = { text.data + at, text.len - at }, url = url_at(rest);
    bool whole = sfti_starts_with(url, "http");
    sft_span path = civitai_path(url);
    if (url.len < 10 || (!whole && !path.data)) return 1;
    size_t used = url.len;
    if (!whole) url = sfti_info_join(info, "https://", url);
    sfti_link *link = add_link(info, url, source);
    if (!link) return used;
    if (path.data) ids_of_path(path, link);
    link->only_link = only_link || of_another(sentence_before(text, at));
    return used;
}

/* ── AIR ── */

static const struct air_kind { const char *type, *kind; } air_kinds[] = {
    { "checkpoint", "checkpoint" }, { "checkpoint", "diffusion_model" },
    { "checkpoint", "pipeline" }, { "embedding", "embedding" }, { "motion", "motion_module" },
    { "upscaler", "upscaler" }, { "vae", "vae" }, { "lora", "adapter" }, { "dora", "adapter" },
    { "lycoris", "adapter" }, { "controlnet", "controlnet" }, { "controlnet", "control_lora" },
    { "text_encoders", "text_encoder" }, { "unet", "diffusion_model" },
    { "clipvision", "image_encoder" }, { "clip", "text_encoder" },
    { "visionlanguage", "language_model" }, { "diffusionmodel", "diffusion_model" },
    { "controlnet", "ip_adapter" }, { "controlnet", "t2i_adapter" },
};

/* Whether an AIR's type may be of a model of this kind; unknown ones may. */
static bool air_fits(const sft_info *info, sft_span type) {
    const sfti_fact *kind = sfti_info_best(info, SFT_FACT_KIND);
    bool known = false;
    if (!kind || sft_span_equal(kind->value.text, sft_span_cstr("unknown"))) return true;
    for (size_t i = 0; i < SFTI_COUNT(air_kinds); i++) {
        if (!sfti_same_letters(type, air_kinds[i].type)) continue;
        known = true;
        if (sft_span_equal(kind->value.text, sft_span_cstr(air_kinds[i].kind))) return true;
    }
    return !known;
}

/* "[urn:]air:ecosystem:type:civitai:123@456": its length, or 0. */
static size_t parse_air(sft_span text, sfti_link *link, sft_span *type) {
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
    *type = part[1];
    if (!sfti_same_letters(part[2], "civitai")) return 0;
    link->model_id = leading_id(&rest);
    if (link->model_id == 0) return 0;
    if (sfti_skip(&rest, "@")) link->version_id = leading_id(&rest);
    return (size_t)(rest.data - text.data);
}

static size_t scan_air(sft_info *info, sft_span text, size_t at, sft_span source,
                       bool only_link) {
    sfti_link found = { 0 };
    sft_span rest = { text.data + at, text.len - at }, type;
    size_t len = parse_air(rest, &found, &type);
    if (len == 0) return 1;
    rest.len = len;
    sfti_link *link = add_link(info, rest, source);
    if (!link) return len;
    link->model_id = found.model_id;
    link->version_id = found.version_id;
    link->only_link = only_link || !air_fits(info, type)
                   || of_another(sentence_before(text, at));
    return len;
}

/* ── A text ── */

void sfti_info_scan_text(sft_info *info, sft_span text, sft_span source, bool only_link) {
    size_t i = 0;
    if (text.len > SCAN_MOST) text.len = SCAN_MOST;
    while (i + 8 < text.len && info->links.count < SCAN_LINKS_MOST && !info->code) {
        sft_span rest = { text.data + i, text.len - i };
        char c = (char)(*rest.data | 0x20);
        if ((c != 'h' && c != 'c' && c != 'u' && c != 'a' && c != 'w')
            || (i > 0 && sfti_word_byte(rest.data[-1]) && (unsigned char)rest.data[-1] < 0x80)) {
            i++;
        } else if (sfti_starts_with(rest, "http://") || sfti_starts_with(rest, "https://")) {
            i += scan_url(info, text, i, source, only_link);
        } else if ((sfti_starts_with(rest, "civitai.") || sfti_starts_with(rest, "www.civitai."))
                   && (i == 0 || !strchr("./@-", rest.data[-1]))) {
            i += scan_url(info, text, i, source, only_link);
        } else if (sfti_starts_with(rest, "urn:air:") || sfti_starts_with(rest, "air:")) {
            i += scan_air(info, text, i, source, only_link);
        } else {
            i++;
        }
    }
}

/* Two links agree unless both tell an id and tell it differently. */
static bool links_agree(uint64_t a, uint64_t b) {
    return a == 0 || b == 0 || a == b;
}

/* Where a sidecar states the ids, links in its prose are to other models. */
static bool may_claim(const sft_info *info, const sfti_link *link) {
    if (link->only_link || (link->model_id == 0 && link->version_id == 0)) return false;
    if (!sfti_starts_with(link->source, "sidecar:")) return true;
    for (const sfti_civitai *claim = info->civitai.first; claim; claim = claim->next)
        if (claim->trust > TRUST_DEMOTED && sfti_starts_with(claim->source, "sidecar:"))
            return false;
    return true;
}

void sfti_info_civitai_links(sft_info *info) {
    uint64_t model = 0, version = 0;
    bool one_version = true;
    const sfti_link *first = NULL;
    for (const sfti_link *link = info->links.first; link; link = link->next) {
        if (!may_claim(info, link)) continue;
        if (!links_agree(model, link->model_id)) return;
        one_version = one_version && links_agree(version, link->version_id);
        if (!first || (first->model_id == 0 && link->model_id)) first = link;
        if (link->model_id) model = link->model_id;
        if (link->version_id) version = link->version_id;
    }
    if (!first || (model == 0 && !one_version)) return;
    (void)sfti_info_civitai(info, model, one_version ? version : 0, first->source, 50);
}
