/* Lines that fit the terminal. */
#include "support/print.h"

#include "base/utf8.h"
#include "os/os.h"
#include "support/cli.h"

#include <string.h>

size_t cli_columns(cli_out *out) {
    if (!out->measured && sfti_os_is_terminal(out->fd)) {
        out->columns = sfti_os_terminal_columns(out->fd);
        if (out->columns == 0) out->columns = 80;
    }
    out->measured = true;
    return out->capture ? 0 : out->columns;
}

/* Bytes of the character, or of the escape sequence of a colour, that the text begins with. */
static size_t glyph_bytes(sft_span text, size_t *width) {
    uint32_t code;
    const uint8_t *at = (const uint8_t *)text.data;
    *width = 0;
    if (*text.data == '\x1b') {
        const char *end = memchr(text.data, 'm', text.len);
        return end ? (size_t)(end - text.data) + 1 : text.len;
    }
    size_t len = sfti_utf8_decode(at, at + text.len, &code);
    *width = len ? cli_code_width(code) : 1;
    return len ? len : 1;
}

static size_t text_width(sft_span text) {
    size_t total = 0, width;
    while (text.len) {
        size_t len = glyph_bytes(text, &width);
        text.data += len;
        text.len -= len;
        total += width;
    }
    return total;
}

/* Half of the columns for each end; colours stay. */
static size_t put_ends(cli_out *out, sft_span word, size_t width, size_t columns) {
    size_t tail = (columns - 1) / 2, head = columns - 1 - tail, left = width, used = 0, w;
    bool cut = false;
    while (word.len) {
        size_t len = glyph_bytes(word, &w);
        bool shown = w == 0 ? !cut || left < tail : (!cut && used + w <= head) || left <= tail;
        if (!shown && !cut && w) {
            cut = true;
            used++;
            cli_text(out, "\xE2\x80\xA6");
        }
        if (shown || *word.data == '\x1b') cli_put(out, word.data, len);
        if (shown) used += w;
        left -= w;
        word.data += len;
        word.len -= len;
    }
    return used;
}

static void put_line(const cli_fit *fit, sft_span line) {
    cli_out *out = &fit->c->out;
    size_t at = 0;
    while (line.len) {
        size_t blank = 0, len;
        while (blank < line.len && line.data[blank] == ' ') blank++;
        for (len = blank; len < line.len && line.data[len] != ' ';) len++;
        sft_span word = { line.data + blank, len - blank };
        size_t width = text_width(word);
        line = (sft_span){ line.data + len, line.len - len };
        if (word.len == 0) break;
        if (at > fit->indent && at + blank + width > fit->columns) {
            cli_text(out, "\n");
            at = 0;
            blank = fit->indent;
        }
        if (blank >= fit->columns) blank = fit->columns - 1;
        cli_pad(out, blank);
        at += blank;
        size_t room = fit->columns > at ? fit->columns - at : 1;
        if (width > room) at += put_ends(out, word, width, room);
        else cli_put(out, word.data, word.len);
        at += width > room ? 0 : width;
    }
    cli_text(out, "\n");
}

void cli_fit_begin(cli_fit *fit, cli *c, size_t indent) {
    size_t columns = cli_columns(&c->out);
    *fit = (cli_fit){ c, { .alloc = c->alloc }, columns, indent < columns ? indent : 0 };
    if (columns) cli_capture(&c->out, &fit->text);
}

void cli_fit_end(cli_fit *fit) {
    cli *c = fit->c;
    if (!fit->columns) return;
    if (!cli_captured(&c->out)) cli_complain_memory(c, fit->text.len);
    for (size_t at = 0; at < fit->text.len;) {
        const char *line = fit->text.data + at;
        const char *end = memchr(line, '\n', fit->text.len - at);
        size_t len = end ? (size_t)(end - line) : fit->text.len - at;
        put_line(fit, (sft_span){ line, len });
        at += len + 1;
    }
    sft_buffer_free(&fit->text);
}
