/* What in a text may be private: paths, addresses, secrets, whole configurations. */
#include "base/json_lex.h"
#include "base/utf8.h"
#include "commands/meta/meta.h"
#include "support/words.h"

#include <string.h>

/* A text looked at byte by byte; past its ends there are NULs. */
typedef struct scrub_look {
    const char *text;
    size_t len;
} scrub_look;

static char look_at(const scrub_look *l, size_t i) { return i < l->len ? l->text[i] : '\0'; }

static bool is_scrub_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_scrub_letter(char c) {
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'z';
}
static bool is_scrub_word(char c) {
    return is_scrub_letter(c) || is_scrub_digit(c) || c == '_' || c == '-' || (c & 0x80);
}

/* In a text without blanks between words, as Chinese is, words of ASCII begin and end beside
 * others: "地址10.0.0.1。" */
static bool is_ascii_word(char c) { return is_scrub_word(c) && !(c & 0x80); }

static bool look_has(const scrub_look *l, size_t i, const char *word) {
    for (; *word; word++, i++)
        if (cli_lower(look_at(l, i)) != *word) return false;
    return true;
}

static bool look_finds(const scrub_look *l, const char *word) {
    for (size_t i = 0; i < l->len; i++)
        if (look_has(l, i, word)) return true;
    return false;
}

/* ── Paths ── */

/* Beginnings that need nothing more to be a path. */
static const char *const path_roots[] = {
    "/home/", "/users/", "/root/", "/mnt/", "/media/", "/workspace", "/content/", "/tmp/",
    "/volumes/", "/kaggle/", "~/", "~\\", "file:", "$home", "${home", "%userprofile%", "%appdata%",
    "%localappdata%", "%username%",
};

/* "C:\" and "C:/", not the end of a word such as "http://". */
static bool is_drive(const scrub_look *l, size_t i) {
    char before = i > 0 ? l->text[i - 1] : '\0', third = look_at(l, i + 2);
    if (!is_scrub_letter(look_at(l, i)) || look_at(l, i + 1) != ':') return false;
    if (is_scrub_letter(before) || is_scrub_digit(before)) return false;
    return third == '\\' || (third == '/' && look_at(l, i + 3) != '/');
}

/* "\\server\share", its backslashes doubled or not. */
static bool is_share(const scrub_look *l, size_t i) {
    size_t at = i;
    while (look_at(l, at) == '\\') at++;
    size_t name = at;
    if (at - i < 2 || (at - i) % 2) return false;
    while (is_scrub_word(look_at(l, at)) || look_at(l, at) == '.' || look_at(l, at) == '$') at++;
    char next = look_at(l, at + 1);
    return at > name && look_at(l, at) == '\\' && (next == '\\' || is_scrub_word(next));
}

/* "/a/b": at least two names, and a letter in the first; "/・ω・/" is none. */
static bool is_rooted(const scrub_look *l, size_t i) {
    size_t at = i + 1;
    char first = look_at(l, at);
    bool letter = (first & 0x80) && first != '\xE2' && first != '\xEF'
               && !look_has(l, at, "\xE3\x83\xBB");
    for (; is_scrub_word(look_at(l, at)) || look_at(l, at) == '.'; at++)
        letter = letter || is_scrub_letter(look_at(l, at));
    return letter && look_at(l, at) == '/' && is_scrub_word(look_at(l, at + 1));
}

static bool is_behind_mark(const scrub_look *l, size_t i) {
    return i >= 3 && sfti_utf8_mark((sft_span){ l->text + i - 3, 3 });
}

static bool is_path(const scrub_look *l, size_t i) {
    if (is_drive(l, i)) return true;
    char before = i > 0 ? l->text[i - 1] : '\0';
    bool other = before & 0x80;
    bool begins = !before || other || strchr(" \t\r\n\"'`=:,;([{<>|@", before);
    if (!begins && !strchr(")]}*!?&#+^", before)) return false; /* no new word */
    for (size_t r = 0; r < sizeof path_roots / sizeof *path_roots; r++)
        if (look_has(l, i, path_roots[r])) return true;
    if (!begins) return false;
    if (look_at(l, i) == '\\') return is_share(l, i);
    return look_at(l, i) == '/' && (!other || is_behind_mark(l, i)) && is_rooted(l, i);
}

/* ── Addresses ── */

/* At an "@": name@host.tld */
static bool is_email(const scrub_look *l, size_t i) {
    size_t at = i + 1, dot = 0;
    char before = i > 0 ? l->text[i - 1] : '\0';
    if (!is_scrub_word(before) || before == '-' || is_behind_mark(l, i)) return false;
    while (is_scrub_letter(look_at(l, at)) || is_scrub_digit(look_at(l, at))
           || look_at(l, at) == '-' || (look_at(l, at) == '.' && at > i + 1)) {
        if (look_at(l, at) == '.') dot = at;
        at++;
    }
    if (dot && at == dot + 1) { /* the full stop of a sentence */
        at = dot;
        for (dot = 0; at > i + 1 && !dot; at--) dot = look_at(l, at - 1) == '.' ? at - 1 : 0;
    }
    return dot > 0 && is_scrub_letter(look_at(l, dot + 1)) && is_scrub_letter(look_at(l, dot + 2));
}

/* What stands in the part of a URL behind "?" and gives access. */
static const char *const url_keys[] = {
    "token=", "key=", "apikey=", "secret=", "signature=", "sig=", "password=", "passwd=",
    "x-amz-", "x-goog-", "auth=", "session=", "access_token=", "credential=",
};

static bool ends_url(char c) { return c == '\0' || strchr(" \t\r\n\"'`<>\\", c) != NULL; }

static bool has_url_key(const scrub_look *l, size_t i) {
    for (; !ends_url(look_at(l, i)); i++) {
        char c = look_at(l, i);
        if (c != '?' && c != '&' && c != '#' && c != ';' && c != '_' && c != '-') continue;
        for (size_t k = 0; k < sizeof url_keys / sizeof *url_keys; k++)
            if (look_has(l, i + 1, url_keys[k])) return true;
    }
    return false;
}

/* A host of this house only: localhost, an address of numbers, a name without a dot, *.local. */
static bool is_near_host(const scrub_look *l, size_t i) {
    static const char *const ends[] = { ".local", ".lan", ".internal", ".home", ".localdomain" };
    size_t at = i, letters = 0, dots = 0;
    while (is_scrub_word(look_at(l, at)) || look_at(l, at) == '.') {
        if (l->len - at > 2 && is_behind_mark(l, at + 3)) break; /* "，" and the like */
        letters += is_scrub_letter(look_at(l, at)) || (look_at(l, at) & 0x80);
        dots += look_at(l, at) == '.';
        at++;
    }
    if (look_at(l, i) == '[') return true;
    while (at > i && look_at(l, at - 1) == '.') at--, dots--; /* of a sentence */
    if (at == i) return false;
    if (letters == 0 || dots == 0) return true;
    for (size_t e = 0; e < sizeof ends / sizeof *ends; e++) {
        size_t tail = strlen(ends[e]);
        for (size_t end = i + tail + 1; end <= at; end++)
            if ((end == at || (look_at(l, end) & 0x80)) && look_has(l, end - tail, ends[e]))
                return true;
    }
    return false;
}

/* At "://". */
static const char *url_reason(const scrub_look *l, size_t i) {
    size_t at = i + 3;
    while (!ends_url(look_at(l, at)) && look_at(l, at) != '/' && look_at(l, at) != '@') at++;
    if (look_at(l, at) == '@') return "a secret";
    if (has_url_key(l, i + 3)) return "a secret";
    return is_near_host(l, i + 3) ? "a name of a machine" : NULL;
}

/* 10.0.0.1, 192.168.1.2, 172.16.0.1, 127.0.0.1: four numbers, alone. */
static bool is_near_address(const scrub_look *l, size_t i) {
    static const char *const begins[] = { "10.", "192.168.", "127.", "172.16.", "172.17.",
                                          "172.18.", "172.19.", "172.2", "172.30.", "172.31." };
    size_t at = i, dots = 0;
    char before = i > 0 ? l->text[i - 1] : '\0';
    if (is_ascii_word(before) || before == '.') return false;
    bool near = false;
    for (size_t b = 0; b < sizeof begins / sizeof *begins; b++)
        near = near || look_has(l, i, begins[b]);
    for (; near && (is_scrub_digit(look_at(l, at)) || look_at(l, at) == '.'); at++)
        dots += look_at(l, at) == '.';
    /* the full stop of a sentence, or "..."; "." and a word go on a version: 10.2.89.0.post1 */
    while (near && look_at(l, at - 1) == '.' && !is_ascii_word(look_at(l, at))) at--, dots--;
    return near && dots == 3 && !is_ascii_word(look_at(l, at));
}

/* ── Secrets ── */

static const struct secret_kind {
    const char *begin; /* in lower case */
    size_t least;      /* letters and digits behind it */
} secret_kinds[] = {
    { "hf_", 24 }, { "sk-", 24 }, { "ghp_", 30 }, { "gho_", 30 }, { "github_pat_", 30 },
    { "glpat-", 18 }, { "xoxb-", 20 }, { "akia", 16 }, { "eyj", 60 }, { "r8_", 30 },
};

static bool is_secret(const scrub_look *l, size_t i) {
    char before = i > 0 ? l->text[i - 1] : '\0';
    if (is_ascii_word(before)) return false;
    for (size_t k = 0; k < sizeof secret_kinds / sizeof *secret_kinds; k++) {
        if (!look_has(l, i, secret_kinds[k].begin)) continue;
        size_t begin = i + strlen(secret_kinds[k].begin), at = begin;
        while (is_ascii_word(look_at(l, at))) at++;
        if (at - begin >= secret_kinds[k].least) return true;
    }
    return false;
}

/* ── Whole texts ── */

/* Words of a text that only a workflow or a configuration has. */
static const struct scrub_mark {
    const char *word, *with, *reason;
} scrub_marks[] = {
    { "\"class_type", NULL, "a workflow" },
    { "\\\"class_type", NULL, "a workflow" },
    { "last_node_id", NULL, "a workflow" },
    { "\"nodes\"", "\"links\"", "a workflow" },
    { "\"nodes\"", "\"edges\"", "a workflow" },
    { "train_data_dir", NULL, "a whole configuration" },
    { "output_dir", NULL, "a whole configuration" },
    { "logging_dir", NULL, "a whole configuration" },
    { "workspace_dir", NULL, "a whole configuration" },
    { "cache_dir", NULL, "a whole configuration" },
    { "training_folder", NULL, "a whole configuration" },
    { "folder_path", NULL, "a whole configuration" },
    { "image_directory", NULL, "a whole configuration" },
    { "pretrained_model_name_or_path", NULL, "a whole configuration" },
};

static const char *reason_at(const scrub_look *l, size_t i) {
    char c = look_at(l, i);
    if (is_path(l, i)) return "an absolute path";
    if (c == '@' && is_email(l, i)) return "an e-mail address";
    if (c == ':' && look_has(l, i, "://")) return url_reason(l, i);
    if (c == '1' && is_near_address(l, i)) return "a name of a machine";
    return is_secret(l, i) ? "a secret" : NULL;
}

size_t cli_scrub_unescape(char *text, size_t len) {
    size_t to = 0;
    for (size_t i = 0; i < len; i++) {
        int32_t code = -1;
        if (text[i] != '\\' || i + 1 == len) {
            text[to++] = text[i];
            continue;
        }
        char c = text[++i];
        if (c == 'u' && len - i > 4) code = sfti_lex_hex4(text + i + 1, text + len);
        if (code >= 0) to += sfti_utf8_encode((uint32_t)code, text + to), i += 4;
        else text[to++] = strchr("nrtbf", c) ? ' ' : c;
    }
    return to;
}

const char *cli_scrub_text(sft_span text) {
    scrub_look l = { text.data, text.len };
    const char *reason = NULL;
    for (size_t i = 0; !reason && i < l.len; i++) reason = reason_at(&l, i);
    for (size_t i = 0; !reason && i < sizeof scrub_marks / sizeof *scrub_marks; i++) {
        const struct scrub_mark *mark = &scrub_marks[i];
        if (look_finds(&l, mark->word) && (!mark->with || look_finds(&l, mark->with)))
            reason = mark->reason;
    }
    return reason;
}
