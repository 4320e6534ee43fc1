/* What of JSON texts and pictures may be private. */
#include "base/json.h"
#include "base/number.h"
#include "commands/meta/meta.h"
#include "support/words.h"

#include <string.h>

/* Members that name folders or files. */
static const char *const folder_members[] = {
    "image_dir", "image_directory", "video_directory", "control_directory", "cache_directory",
    "conditioning_data_dir", "metadata_file", "image_jsonl_file", "video_jsonl_file",
};

/* A JSON text being copied without the names of folders. */
typedef struct folder_copy {
    sfti_json json;
    sfti_json_writer w;
    sfti_arena *arena;
    bool numbered[SFTI_JSON_DEPTH + 1]; /* by depth: the keys of this object are folders */
    uint64_t number[SFTI_JSON_DEPTH + 1];
    bool next; /* the object that may follow has folders for keys */
    bool memory;
} folder_copy;

static void copy_key(folder_copy *f) {
    uint32_t depth = f->json.depth;
    sft_span key = sfti_json_string(&f->json, f->arena);
    bool is_folder = false;
    for (size_t i = 0; i < sizeof folder_members / sizeof *folder_members; i++)
        is_folder = is_folder || (key.data && cli_is(key, folder_members[i]));
    if (!key.data) {
        f->memory = false;
    } else if (f->numbered[depth]) {
        char digits[SFTI_UINT_SIZE];
        size_t len = sfti_uint_text(++f->number[depth], 0, digits);
        sfti_json_key_span(&f->w, (sft_span){ digits, len });
    } else if (is_folder) {
        (void)sfti_json_skip(&f->json);
    } else {
        sfti_json_key_span(&f->w, key);
        f->next = cli_is(key, "tag_frequency");
    }
}

static void copy_event(folder_copy *f, sfti_json_type type) {
    const sfti_json *json = &f->json;
    sft_span text;
    switch (type) {
    case SFTI_JSON_OBJECT:
        f->numbered[json->depth] = f->next;
        f->number[json->depth] = 0;
        sfti_json_open(&f->w, '{');
        break;
    case SFTI_JSON_ARRAY: sfti_json_open(&f->w, '['); break;
    case SFTI_JSON_OBJECT_END: sfti_json_close(&f->w, '}'); break;
    case SFTI_JSON_ARRAY_END: sfti_json_close(&f->w, ']'); break;
    case SFTI_JSON_STRING:
        text = sfti_json_string(json, f->arena);
        if (text.data) sfti_json_span(&f->w, text);
        else f->memory = false;
        break;
    default: sfti_json_raw(&f->w, json->text);
    }
    f->next = false;
}

bool cli_scrub_folders(sft_span text, bool whole, sfti_arena *arena, sft_span *out) {
    folder_copy f;
    sft_buffer made = { .alloc = arena->alloc };
    sft_sink sink = sft_sink_memory(&made);
    *out = text;
    if (whole && sfti_json_is_numbered(text)) return true;
    memset(&f, 0, sizeof f);
    f.arena = arena;
    f.memory = true;
    f.next = whole;
    sfti_json_begin(&f.json, text.data, text.len);
    sfti_json_write(&f.w, &sink, 0, NULL);
    sfti_json_type type = SFTI_JSON_NULL;
    while (f.memory && type != SFTI_JSON_END && type != SFTI_JSON_ERROR) {
        type = sfti_json_next(&f.json);
        if (type == SFTI_JSON_KEY) copy_key(&f);
        else if (type != SFTI_JSON_END && type != SFTI_JSON_ERROR) copy_event(&f, type);
    }
    bool fine = type == SFTI_JSON_END && f.memory;
    *out = (sft_span){ NULL, 0 };
    if (sfti_json_done(&f.w)) f.memory = false;
    char *copy = fine && f.memory ? sfti_arena_copy(arena, made.data, made.len) : NULL;
    if (copy) *out = (sft_span){ copy, made.len };
    else if (fine) f.memory = false;
    sft_buffer_free(&made);
    return f.memory;
}

/* ── Pictures ── */

static size_t base64_bytes(sft_span text, uint8_t *out) {
    uint32_t bits = 0, have = 0;
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (c == '\\' && i + 1 < text.len && text.data[i + 1] != '/') i++; /* "\n" of JSON */
        int digit = c == '+' ? 62 : c == '/' ? 63 : -1;
        if (c >= 'A' && c <= 'Z') digit = c - 'A';
        if (c >= 'a' && c <= 'z') digit = c - 'a' + 26;
        if (c >= '0' && c <= '9') digit = c - '0' + 52;
        if (digit < 0) continue;
        bits = (bits << 6 | (uint32_t)digit) & 0xFFFFFF;
        have += 6;
        if (have < 8) continue;
        have -= 8;
        out[len++] = (uint8_t)(bits >> have);
    }
    return len;
}

/* Parts of PNG, JPEG, WebP and GIF files that hold words, and nothing to be seen. */
static bool picture_tells(const uint8_t *bytes, size_t len) {
    static const char *const words[] = { "tEXt", "iTXt", "zTXt", "eXIf", "Exif",
                                         "http://ns.adobe.com/", "Photoshop 3.0", "EXIF", "XMP " };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t most = strlen(words[i]);
        for (size_t at = 0; at + most <= len; at++)
            if (memcmp(bytes + at, words[i], most) == 0) return true;
    }
    return false;
}

/* Base64 of PNG, JPEG, WebP and GIF files, and of SVG. */
static const char *const picture_begins[] = { "iVBORw0KGgo", "/9j/", "UklGR", "R0lGOD", "PHN2Zy",
                                              "PD94bWwg" };
#define PICTURE_LEAST 64

static bool is_base64(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+'
        || c == '/';
}

/* The length of the picture that begins at i, or 0. */
static size_t picture_len(const char *text, size_t len, size_t i) {
    static const char url[] = ";base64,";
    size_t most = sizeof url - 1, end = i;
    if (i > 0 && is_base64(text[i - 1])) return 0;
    bool known = i >= most && memcmp(text + i - most, url, most) == 0;
    bool in_url = known;
    for (size_t k = 0; !known && k < sizeof picture_begins / sizeof *picture_begins; k++) {
        size_t begin = strlen(picture_begins[k]);
        known = len - i >= begin && memcmp(text + i, picture_begins[k], begin) == 0;
    }
    if (!known) return 0;
    while (end < len && (is_base64(text[end]) || text[end] == '\n' || text[end] == '\r'
                         || (text[end] == '\\' && end + 1 < len && strchr("/nr", text[end + 1]))))
        end++;
    return in_url || end - i >= PICTURE_LEAST ? end - i : 0;
}

bool cli_scrub_pictures(char *text, size_t len) {
    bool found = false;
    for (size_t i = 0; i < len && !found; i++) {
        size_t most = picture_len(text, len, i);
        if (most == 0) continue;
        uint8_t *bytes = (uint8_t *)text + i;
        size_t count = base64_bytes((sft_span){ text + i, most }, bytes);
        found = picture_tells(bytes, count)
             || (count > 0 && *bytes == '<' && cli_scrub_text((sft_span){ text + i, count }));
        memset(text + i, 'x', most);
        i += most - 1;
    }
    return found;
}
