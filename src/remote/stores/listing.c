/* Folders of object stores: keys up to the next slash. Tests: test_remote_s3.c. */
#include "remote/stores/bucket.h"

#include "base/error.h"
#include "remote/http/http.h"
#include "remote/http/text.h"
#include "remote/stores/xml.h"

#include <string.h>

#define PAGE_MOST ((uint64_t)8 << 20) /* bytes: 1,000 keys of 1,024 bytes, each as %XX */
#define PAGES_MOST 1000
#define ENTRIES_MOST ((size_t)1000000)
#define KEYS_MOST ((uint64_t)64 << 20) /* bytes of what they are called */

/* An entry of a page: an object, or what keys have in common up to a slash. */
typedef struct page_entry {
    sft_span key; /* as it stands in the page */
    bool folder;
    uint64_t bytes;
} page_entry;

/* A page of a list as it is read. Texts are of its arena. */
typedef struct list_page {
    sfti_arena arena;
    sfti_xml xml;
    bool encoded;   /* keys are URL-encoded */
    bool truncated; /* more pages follow */
    sft_span token; /* the next one's */
    page_entry *entries;
    size_t count, cap;
} list_page;

/* What all pages had. */
typedef struct list_sums {
    size_t entries;
    uint64_t bytes; /* of names that were told */
} list_sums;

/* ── A page ── */

/* Adds the key and size of <Contents> or <CommonPrefixes>. False: no memory, or an error of XML. */
static bool page_take_entry(list_page *page, bool folder) {
    sfti_xml *xml = &page->xml;
    uint32_t depth = xml->depth;
    page_entry entry = { { NULL, 0 }, folder, SFT_SIZE_UNKNOWN };
    while (sfti_xml_next(xml) != SFTI_XML_ERROR && xml->depth >= depth) {
        if (xml->type != SFTI_XML_OPEN) continue;
        bool key = sfti_text_is(xml->name, folder ? "Prefix" : "Key");
        bool size = sfti_text_is(xml->name, "Size");
        sft_span text = { "", 0 };
        if (!key && !size) sfti_xml_skip(xml);
        else text = sfti_xml_element(xml, &page->arena);
        if (!text.data) return false;
        if (key) entry.key = text;
        if (size && (folder || !sfti_text_uint(text, &entry.bytes)))
            entry.bytes = SFT_SIZE_UNKNOWN;
    }
    if (xml->type == SFTI_XML_ERROR || !entry.key.data) return xml->type != SFTI_XML_ERROR;
    page_entry *more = sfti_arena_grow(&page->arena, page->entries, page->count, 1, &page->cap,
                                       sizeof *more);
    if (!more) return false;
    page->entries = more;
    page->entries[page->count++] = entry;
    return true;
}

/* One element of <ListBucketResult>. */
static bool page_take_element(list_page *page) {
    sfti_xml *xml = &page->xml;
    bool token = sfti_text_is(xml->name, "NextContinuationToken");
    bool more = sfti_text_is(xml->name, "IsTruncated");
    bool encoding = sfti_text_is(xml->name, "EncodingType");
    if (sfti_text_is(xml->name, "Contents")) return page_take_entry(page, false);
    if (sfti_text_is(xml->name, "CommonPrefixes")) return page_take_entry(page, true);
    if (!token && !more && !encoding) return sfti_xml_skip(xml) != SFTI_XML_ERROR;
    sft_span text = sfti_xml_element(xml, &page->arena);
    if (token) page->token = text;
    if (more) page->truncated = sfti_text_is(text, "true");
    if (encoding) page->encoded = sfti_text_is(text, "url");
    return text.data != NULL;
}

static sft_code page_read(list_page *page, sft_span body, sft_error *err) {
    sfti_xml *xml = &page->xml;
    bool memory = true;
    sfti_xml_begin(xml, body);
    if (sfti_xml_next(xml) == SFTI_XML_OPEN && !sfti_text_is(xml->name, "ListBucketResult"))
        return sfti_fail(err, SFT_REMOTE_STATUS, "expected the list of a bucket, found <%.*s>",
                         SFTI_CLIP(xml->name, 60));
    while (memory && sfti_xml_next(xml) != SFTI_XML_ERROR && xml->type != SFTI_XML_END)
        if (xml->type == SFTI_XML_OPEN) memory = page_take_element(page);
    if (xml->type == SFTI_XML_ERROR)
        return sfti_fail(err, SFT_REMOTE_STATUS,
                         "the list of the bucket is not XML: expected %s at byte %zu", xml->why,
                         xml->error_at);
    return memory ? SFT_OK : sfti_fail_memory(err, body.len);
}

/* ── Its entries ── */

/* A key without its encoding, in which stores spell a space as '+'. */
static sft_code decode_key(list_page *page, sft_span *key, sft_error *err) {
    sft_buffer plain = { .alloc = page->arena.alloc };
    sft_code code = SFT_OK;
    char *copy = sfti_arena_copy(&page->arena, key->data, key->len);
    if (!copy || !sfti_buffer_reserve(&plain, key->len)) {
        code = sfti_fail_memory(err, key->len);
        goto done;
    }
    for (size_t i = 0; i < key->len; i++)
        if (copy[i] == '+') copy[i] = ' ';
    if (!sfti_url_decode(&plain, (sft_span){ copy, key->len }))
        code = sfti_fail(err, SFT_REMOTE_STATUS,
                         "expected URL-encoded keys in the list, found another one");
    key->len = plain.len;
    if (plain.len > 0) memcpy(copy, plain.data, plain.len);
    key->data = copy;
done:
    sft_buffer_free(&plain);
    return code;
}

/* Whether a name can be that of one entry: keys may hold anything. */
static bool is_entry(sft_span name) {
    return name.len > 0 && !sfti_text_has_control(name) && sfti_text_find(name, '/') == name.len
        && !sft_span_equal(name, sft_span_cstr(".")) && !sft_span_equal(name, sft_span_cstr(".."));
}

static sft_code fail_too_many(sft_error *err) {
    return sfti_fail(err, SFT_FILE_TOO_LARGE, "expected a folder of at most %d pages with %zu "
                     "objects and %llu MiB of names, found more", PAGES_MOST, ENTRIES_MOST,
                     (unsigned long long)(KEYS_MOST >> 20));
}

/* *go_on: whether the caller wants more. */
static sft_code page_tell(list_page *page, sft_span prefix, list_sums *sums, sft_listed_fn each,
                          void *each_ctx, bool *go_on, sft_error *err) {
    for (size_t i = 0; i < page->count && *go_on; i++) {
        const page_entry *entry = &page->entries[i];
        sft_span name = entry->key;
        sft_code code = page->encoded ? decode_key(page, &name, err) : SFT_OK;
        if (code) return code;
        if (name.len < prefix.len || memcmp(name.data, prefix.data, prefix.len) != 0) continue;
        name = sfti_span_from(name, prefix.len);
        if (entry->folder && name.len > 0 && name.data[name.len - 1] == '/') name.len--;
        if (!is_entry(name)) continue;
        sums->bytes += name.len;
        if (sums->bytes > KEYS_MOST) return fail_too_many(err);
        char *text = sfti_arena_copy(&page->arena, name.data, name.len);
        if (!text) return sfti_fail_memory(err, name.len);
        sft_listed listed = { text, entry->folder, entry->bytes };
        *go_on = each(each_ctx, &listed);
    }
    return SFT_OK;
}

/* ── All pages ── */

/* One page. The sums grow by it; *go_on: whether there is to be another. */
static sft_code list_one(sfti_target *target, sft_listed_fn each, void *each_ctx, list_sums *sums,
                         bool *go_on, sft_error *err) {
    list_page page = { .arena = { .alloc = target->arena.alloc } };
    sft_buffer body = { .alloc = target->arena.alloc };
    sfti_answer answer;
    sfti_ask ask = { .accept = "application/xml", .most = PAGE_MOST };
    sft_code code = sfti_http_ask(target, &ask, &body, &answer, err);
    sfti_answer_free(&answer);
    if (!code) code = page_read(&page, (sft_span){ body.data, body.len }, err);
    if (code) goto done;
    sums->entries += page.count;
    code = sums->entries > ENTRIES_MOST
             ? fail_too_many(err)
             : page_tell(&page, sfti_folder_prefix(target), sums, each, each_ctx, go_on, err);
    *go_on = *go_on && page.truncated;
    if (code || !*go_on) goto done;
    if (page.token.len == 0)
        code = sfti_fail(err, SFT_REMOTE_STATUS,
                         "the list of the bucket is truncated, but has no continuation token");
    else if (!sfti_folder_continue(target, page.token))
        code = sfti_fail_memory(err, page.token.len);
done:
    sfti_arena_free(&page.arena);
    sft_buffer_free(&body);
    return code;
}

sft_code sfti_store_list(sft_remote *remote, const char *folder, sft_listed_fn each,
                         void *each_ctx, sft_error *err) {
    sfti_target target = { .remote = remote, .name = folder };
    sfti_scheme_id id;
    list_sums sums = { 0, 0 };
    size_t pages = 0;
    bool go_on = true;
    target.arena.alloc = remote->alloc;
    target.scheme = remote->schemes[sfti_scheme_of(folder, &id) ? id : SFTI_SCHEME_S3];
    sft_code code = sfti_folder_resolve(&target, err);
    for (; !code && go_on && pages < PAGES_MOST; pages++)
        code = list_one(&target, each, each_ctx, &sums, &go_on, err);
    if (!code && go_on) code = fail_too_many(err);
    if (!code && sums.entries == 0 && sfti_folder_prefix(&target).len > 0)
        code = sfti_fail(err, SFT_NOT_FOUND, "this folder has no objects");
    sfti_arena_free(&target.arena);
    return code;
}
