/* Words and patterns of a command line of Windows. Tests: test_args.c. */
#include "os/args.h"
#include "base/portable.h"
#include "os/path.h"

#include <stdlib.h>

static bool args_put(sfti_args *args, char *word, bool pattern) {
    size_t cap = args->cap;
    bool *patterns = sfti_arena_grow(args->arena, args->patterns, args->count, 2, &cap,
                                     sizeof *patterns);
    cap = args->cap;
    char **words = sfti_arena_grow(args->arena, args->words, args->count, 2, &cap, sizeof *words);
    if (!words || !patterns || !word) return false;
    args->words = words;
    args->patterns = patterns;
    args->cap = cap;
    words[args->count] = word;
    patterns[args->count++] = pattern;
    words[args->count] = NULL;
    return true;
}

/* ── The line ── */

typedef struct args_word { char *text; size_t len; bool quoted, pattern; } args_word;

static void word_put(args_word *w, char c) {
    w->text[w->len++] = c;
    w->pattern |= !w->quoted && (c == '*' || c == '?');
}

/* The program's own name: a backslash is one, quotes only quote. */
static const char *word_first(args_word *w, const char *at) {
    for (; *at && (w->quoted || (*at != ' ' && *at != '\t')); at++) {
        if (*at == '"') w->quoted = !w->quoted;
        else word_put(w, *at);
    }
    return at;
}

static const char *word_next(args_word *w, const char *at) {
    while (*at && (w->quoted || (*at != ' ' && *at != '\t'))) {
        if (*at == '\\') {
            /* A run of backslashes and what is behind it. */
            size_t count = strspn(at, "\\"), kept = at[count] == '"' ? count / 2 : count;
            for (size_t i = 0; i < kept; i++) word_put(w, '\\');
            at += count;
            if (*at == '"' && count % 2) word_put(w, *at++);
        } else if (*at == '"') {
            bool doubled = w->quoted && at[1] == '"';
            if (doubled) word_put(w, '"');
            else w->quoted = !w->quoted;
            at += 1 + doubled;
        } else {
            word_put(w, *at++);
        }
    }
    return at;
}

bool sfti_args_split(sfti_args *args, const char *line) {
    char *text = sfti_arena_take(args->arena, 2 * strlen(line) + 2); /* a NUL behind each word */
    if (!text) return false;
    for (bool first = true; first || *line; first = false) {
        args_word w = { text, 0, false, false };
        line = first ? word_first(&w, line) : word_next(&w, line);
        text[w.len] = '\0';
        if (!args_put(args, text, w.pattern)) return false;
        text += w.len + 1;
        line += strspn(line, " \t");
    }
    return true;
}

/* ── Patterns ── */

static bool wild_same(char a, char b) {
    sft_span one = { &a, 1 }, other = { &b, 1 };
    return SFTI_OS_PATHS == SFTI_PATHS_WINDOWS ? !sfti_name_compare_folded(one, other)
                                                     : a == b;
}

/* The last star takes one character more wherever what is behind it does not match. */
static bool wild_matches(sft_span pattern, const char *name) {
    size_t at = 0, star = SIZE_MAX, behind = 0;
    for (size_t i = 0; name[i] || at < pattern.len;) {
        if (at < pattern.len && pattern.data[at] == '*') {
            star = at++;
            behind = i;
        } else if (name[i] && at < pattern.len
                   && (pattern.data[at] == '?' || wild_same(pattern.data[at], name[i]))) {
            at++, i++;
            while (pattern.data[at - 1] == '?' && ((uint8_t)name[i] & 0xc0) == 0x80) i++;
        } else if (star != SIZE_MAX && name[behind]) {
            at = star + 1;
            i = ++behind;
        } else {
            return false;
        }
    }
    return true;
}

typedef struct wild_pass {
    sfti_args *to;
    sft_span folder, part, joint; /* joint: the separators behind the part */
    bool failed;
} wild_pass;

/* Whoever named a file "--force" must not have given an option: it becomes "./--force". */
static bool wild_keep(wild_pass *pass, const char *name, size_t len) {
    bool option = pass->folder.len == 0 && name[0] == '-';
    sft_span before = option ? sft_span_cstr("./") : pass->folder;
    size_t folder = before.len, all = folder + len + pass->joint.len;
    char *path = sfti_arena_take(pass->to->arena, all + 1);
    if (path) {
        memcpy(path, before.data, folder);
        memcpy(path + folder, name, len);
        memcpy(path + folder + len, pass->joint.data, pass->joint.len);
        path[all] = '\0';
    }
    pass->failed |= !path || !args_put(pass->to, path, false);
    return !pass->failed;
}

static int wild_entry(void *ctx, const char *name, os_kind kind) {
    wild_pass *pass = ctx;
    bool hidden = name[0] == '.' && pass->part.data[0] != '.';
    if (hidden || (pass->joint.len && kind != OS_DIR && kind != OS_LINK)) return 0;
    if (!wild_matches(pass->part, name)) return 0;
    return !wild_keep(pass, name, strlen(name));
}

static bool wild_step(wild_pass *pass, const char *folder) {
    os_info info;
    pass->folder = sft_span_cstr(folder);
    if (memchr(pass->part.data, '*', pass->part.len)
        || memchr(pass->part.data, '?', pass->part.len)) {
        /* What cannot be listed has none. */
        (void)sfti_os_list(*folder ? folder : ".", wild_entry, pass);
        return !pass->failed;
    }
    size_t before = pass->to->count;
    if (!wild_keep(pass, pass->part.data, pass->part.len)) return false;
    if (sfti_os_info_path(pass->to->words[before], true, &info) != 0) pass->to->count = before;
    return true;
}

static int compare_words(const void *a, const void *b) {
    sft_span one = sft_span_cstr(*(char *const *)a), other = sft_span_cstr(*(char *const *)b);
    int folded = sfti_name_compare_folded(one, other);
    return folded ? folded : strcmp(one.data, other.data);
}

/* All paths that a pattern matches: part by part, from the folders found so far. */
static bool wild_find(sfti_args *found, const char *pattern) {
    size_t root = sfti_root_len(pattern);
    sfti_args folders = { .arena = found->arena };
    if (!args_put(&folders, sfti_arena_copy(found->arena, pattern, root), false)) return false;
    for (const char *at = pattern + root; *at;) {
        sfti_args next = { .arena = found->arena };
        size_t len = 0, behind;
        while (at[len] && !sfti_is_separator(at[len])) len++;
        for (behind = len; sfti_is_separator(at[behind]);) behind++;
        wild_pass pass = { .to = &next, .part = { at, len }, .joint = { at + len, behind - len } };
        for (size_t i = 0; i < folders.count; i++)
            if (!wild_step(&pass, folders.words[i])) return false;
        folders = next;
        at += behind;
    }
    if (folders.count > 1)
        qsort(folders.words, folders.count, sizeof *folders.words, compare_words);
    *found = folders;
    return true;
}

bool sfti_args_expand(sfti_args *args) {
    sfti_args all = { .arena = args->arena };
    for (size_t i = 0; i < args->count; i++) {
        sfti_args found = { .arena = args->arena };
        char *word = args->words[i];
        bool pattern = i > 0 && args->patterns[i] && word[0] != '-';
        if (pattern && !wild_find(&found, word)) return false;
        for (size_t k = 0; k < found.count; k++)
            if (!args_put(&all, found.words[k], false)) return false;
        if (found.count == 0 && !args_put(&all, word, false)) return false;
    }
    *args = all;
    return true;
}
