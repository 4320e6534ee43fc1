/* hash: digests as lines of text, as sha256sum writes and reads them. Tests: tests/cli/hash. */
#include "commands/hash/hash.h"

#include "base/json_lex.h"
#include "base/utf8.h"
#include "os/path.h"
#include "safetensors_set.h"
#include "support/files.h"
#include "support/hash.h"
#include "support/hints.h"
#include "support/remote.h"

#include <stdio.h>
#include <string.h>

#define SUMS_MOST ((uint64_t)256 << 20)

/* ── Writing ── */

static bool needs_escapes(const char *path) {
    char buffer[512];
    size_t len = strlen(path), used;
    for (size_t at = 0; at < len; at += used) {
        sft_span rest = { path + at, len - at };
        size_t put = sfti_path_escape(rest, buffer, sizeof buffer, &used);
        if (put != used || memcmp(buffer, path + at, used) != 0) return true;
        if (used == 0) break;
    }
    return false;
}

void cli_sum_line(cli *c, const char *path, sft_hash_algo algo, const char *hex, bool named) {
    bool seen = sfti_os_is_terminal(c->out.fd);
    if (seen ? needs_escapes(path) : path[strcspn(path, "\\\n\r")] != '\0')
        cli_text(&c->out, "\\");
    if (named) cli_printf(&c->out, "%s (", sft_hash_name(algo));
    else cli_printf(&c->out, "%s  ", hex);
    if (seen) cli_path_text(&c->out, sft_span_cstr(path)); /* a terminal obeys what is in a path */
    while (!seen && *path) { /* as sha256sum spells it, which reads nothing else */
        static const char unsafe[] = "\\\n\r", letters[] = "\\nr";
        size_t len = strcspn(path, unsafe);
        cli_put(&c->out, path, len);
        path += len;
        if (*path) cli_printf(&c->out, "\\%c", letters[strchr(unsafe, *path++) - unsafe]);
    }
    if (named) cli_printf(&c->out, ") = %s", hex);
    cli_text(&c->out, "\n");
}

/* ── Reading ── */

/* Digits from *at on, at most `most`; how many, and what they say. */
static size_t sum_hex(sft_span text, size_t at, size_t most, uint32_t *value) {
    size_t n = 0;
    for (*value = 0; n < most && at + n < text.len; n++) {
        int digit = sfti_lex_hex_digit(text.data[at + n]);
        if (digit < 0) break;
        *value = *value << 4 | (uint32_t)digit;
    }
    return n;
}

/* \\, \n, \r, \t, \xHH or \u{H...} at text[at]; the length of the escape, 0 if it is none. */
static size_t unescape(sft_span text, size_t at, char *out, size_t *put) {
    static const char letters[] = "\\nrt", meant[] = "\\\n\r\t";
    char kind = at + 1 < text.len ? text.data[at + 1] : '\0';
    const char *letter = kind ? strchr(letters, kind) : NULL;
    uint32_t value;
    *put = 1;
    if (letter) {
        *out = meant[letter - letters];
        return 2;
    }
    if (kind == 'x' && sum_hex(text, at + 2, 2, &value) == 2) {
        *out = (char)value;
        return 4;
    }
    if (kind != 'u' || at + 2 >= text.len || text.data[at + 2] != '{') return 0;
    size_t digits = sum_hex(text, at + 3, 6, &value);
    bool ends = at + 3 + digits < text.len && text.data[at + 3 + digits] == '}';
    if (digits == 0 || !ends || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return 0;
    *put = sfti_utf8_encode(value, out);
    return digits + 4;
}

/* The path with a NUL into copy[text.len + 1]; false when an escape is none, or it can be no
 * path. */
static bool path_copy(char *copy, sft_span text, bool escaped) {
    size_t len = 0;
    for (size_t at = 0; at < text.len;) {
        size_t put = 1, used = 1;
        if (escaped && text.data[at] == '\\') used = unescape(text, at, copy + len, &put);
        else copy[len] = text.data[at];
        if (used == 0) return false;
        at += used;
        len += put;
    }
    copy[len] = '\0';
    return strlen(copy) == len && len > 0;
}

typedef struct sum_line {
    sft_span hex, path;
    unsigned algo;
    bool escaped;
} sum_line;

static bool is_sum(sft_span hex, size_t digits) {
    uint32_t value;
    for (size_t at = 0; at < hex.len; at++)
        if (sum_hex(hex, at, 1, &value) != 1) return false;
    return hex.len == digits;
}

/* "HEX  PATH", or "HEX *PATH" */
static bool parse_plain(sft_span text, unsigned algo, sum_line *out) {
    const char *space = memchr(text.data, ' ', text.len);
    size_t digits = space ? (size_t)(space - text.data) : 0;
    if (digits == 0 || digits + 2 >= text.len) return false;
    if (text.data[digits + 1] != ' ' && text.data[digits + 1] != '*') return false;
    out->hex = (sft_span){ text.data, digits };
    out->path = (sft_span){ text.data + digits + 2, text.len - digits - 2 };
    out->algo = algo < SFT_HASH_COUNT ? algo : digits == 64 ? SFT_HASH_SHA256
                : digits == 12 ? SFT_HASH_AUTOV3 : digits == 10 ? SFT_HASH_AUTOV2 : SFT_HASH_COUNT;
    return is_sum(out->hex, sft_hash_digits((sft_hash_algo)out->algo));
}

/* "ALGO (PATH) = HEX"; the path may hold what looks alike. */
static bool parse_named(sft_span text, sum_line *out) {
    const char *open = memchr(text.data, ' ', text.len);
    size_t name = open ? (size_t)(open - text.data) : 0, end = text.len;
    while (end > 0 && sfti_lex_hex_digit(text.data[end - 1]) >= 0) end--;
    if (name == 0 || end < name + 6 || text.data[name + 1] != '(') return false;
    if (memcmp(text.data + end - 4, ") = ", 4) != 0) return false;
    out->hex = (sft_span){ text.data + end, text.len - end };
    out->path = (sft_span){ text.data + name + 2, end - 4 - (name + 2) };
    out->algo = cli_algo_named((sft_span){ text.data, name });
    return is_sum(out->hex, sft_hash_digits((sft_hash_algo)out->algo));
}

/* ── All lines ── */

static void add_sum(cli_sums *sums, const sum_line *line, const char *path) {
    cli_sums_of *last = sums->path_count ? &sums->paths[sums->path_count - 1] : NULL;
    bool is_text = sft_path_is_index(path) && line->algo != SFT_HASH_CONTENT
                && !cli_is_url(path);
    if (!last || strcmp(last->ask.path, path) != 0 || last->is_text != is_text) {
        last = &sums->paths[sums->path_count++];
        *last = (cli_sums_of){ { path, 0 }, sums->claim_count, 0, is_text };
    }
    last->ask.algos |= SFT_HASH_BIT(line->algo);
    last->count++;
    sums->claims[sums->claim_count++] =
        (sft_hash_claim){ (sft_hash_algo)line->algo, line->hex };
}

static void add_bad(cli_sums *sums, sft_span line, size_t number) {
    if (sums->bad_count == 0) sums->bad = line;
    if (sums->bad_count < CLI_SUMS_TOLD) sums->bad_lines[sums->bad_count] = number;
    sums->bad_count++;
}

/* False only when memory runs out. */
static bool read_line(cli_sums *sums, sft_span line, size_t number, unsigned algo) {
    sum_line found;
    bool is_blank = line.len == 0 || (line.len == 1 && line.data[0] == '\r');
    if (is_blank || line.data[0] == '#') return true;
    sums->line_count++;
    sft_span text = line;
    if (text.data[text.len - 1] == '\r') text.len--;
    found.escaped = text.data[0] == '\\';
    if (found.escaped) text = (sft_span){ text.data + 1, text.len - 1 };
    bool fine = text.len > 0 && (parse_named(text, &found) || parse_plain(text, algo, &found));
    if (!fine || found.algo >= SFT_HASH_COUNT) {
        add_bad(sums, line, number);
        return true;
    }
    char *path = sfti_arena_take(&sums->arena, found.path.len + 1);
    if (!path) return false;
    if (path_copy(path, found.path, found.escaped)) add_sum(sums, &found, path);
    else add_bad(sums, line, number);
    return true;
}

sft_code cli_sums_bad(const cli_sums *sums, sft_error *err) {
    /* "3, 7, ...": the first of them */
    char numbers[CLI_SUMS_TOLD * 24 + 8];
    size_t told = sums->bad_count < CLI_SUMS_TOLD ? sums->bad_count : CLI_SUMS_TOLD, len = 0;
    for (size_t i = 0; i < told; i++)
        len += (size_t)snprintf(numbers + len, 24, "%s%zu", i ? ", " : "", sums->bad_lines[i]);
    if (told < sums->bad_count) (void)snprintf(numbers + len, 8, ", ...");
    cli_usage_error(err, "%zu of %zu lines cannot be read (line%s %s): expected \"HEX  PATH\" or "
                    "\"ALGO (PATH) = HEX\", found \"%.*s\"", sums->bad_count, sums->line_count,
                    sums->bad_count == 1 ? "" : "s", numbers,
                    sums->bad.len < 80 ? (int)sums->bad.len : 80, sums->bad.data);
    uint32_t value;
    size_t digits = 0; /* a HEX of another length? */
    while (sum_hex(sums->bad, digits, 1, &value) == 1) digits++;
    bool is_hex = digits >= 6 && digits < sums->bad.len && sums->bad.data[digits] == ' ';
    if (is_hex && !sums->is_algo_known) cli_hint(err, CLI_HINT_ALGO);
    return SFT_BAD_ARGUMENT;
}

static size_t line_length(sft_span text, size_t at) {
    const char *end = memchr(text.data + at, '\n', text.len - at);
    return end ? (size_t)(end - text.data) - at : text.len - at;
}

sft_code cli_sums_read(cli *c, const char *path, unsigned algo, cli_sums *out, sft_error *err) {
    memset(out, 0, sizeof *out);
    out->arena.alloc = c->alloc;
    char *list = (char *)(uintptr_t)path;
    sft_code code = cli_remote_take(c, &list, 1, CLI_URLS_NONE, "-c", err);
    if (!code) code = cli_read_file(c, path, SUMS_MOST, &out->text, err);
    if (code) return code;
    sft_span text = cli_read_text(&out->text);
    size_t lines = 0, number = 0;
    for (size_t at = 0; at < text.len; at += line_length(text, at) + 1) lines++;
    out->claims = sfti_arena_take(&out->arena, (lines + 1) * sizeof *out->claims);
    out->paths = sfti_arena_take(&out->arena, (lines + 1) * sizeof *out->paths);
    if (!out->claims || !out->paths) return sfti_fail_memory(err, lines);
    out->is_algo_known = algo != SFT_HASH_COUNT;
    for (size_t at = 0; at < text.len;) {
        sft_span line = { text.data + at, line_length(text, at) };
        at += line.len + 1;
        if (!read_line(out, line, ++number, algo)) return sfti_fail_memory(err, line.len);
    }
    if (out->claim_count > 0) return SFT_OK;
    if (out->bad_count > 0) return cli_sums_bad(out, err);
    return cli_usage_error(err,
                           "expected lines \"HEX  PATH\" or \"ALGO (PATH) = HEX\", found none");
}

void cli_sums_free(cli_sums *sums) {
    sft_buffer_free(&sums->text);
    sfti_arena_free(&sums->arena);
}
