/* JSON on indented lines. */
#include "support/raw.h"

#include "os/os.h"

#include <string.h>

#define STEP 2

static void new_line(cli_out *out, size_t spaces) {
    cli_text(out, "\n");
    cli_pad(out, spaces);
}

static size_t skip_space(sft_span text, size_t at) {
    while (at < text.len && strchr(" \t\r\n", text.data[at]) && text.data[at]) at++;
    return at;
}

void cli_pretty(cli_out *out, sft_span text, size_t indent) {
    bool seen = sfti_os_is_terminal(out->fd);
    size_t spaces = indent;
    for (size_t at = skip_space(text, 0); at < text.len; at = skip_space(text, at)) {
        char c = text.data[at];
        size_t next = skip_space(text, at + 1);
        bool opens = c == '{' || c == '[', closes = c == '}' || c == ']';
        bool empty = opens && next < text.len && (text.data[next] == '}' || text.data[next] == ']');
        if (closes) new_line(out, spaces -= STEP);
        if (empty) {
            cli_text(out, c == '{' ? "{}" : "[]");
            at = next + 1;
            continue;
        }
        sft_span piece = { text.data + at, 1 };
        if (c == '"') {
            size_t left = text.len - at, i = 1;
            while (i < left && piece.data[i] != '"') i += piece.data[i] == '\\' ? 2 : 1;
            piece.len = i < left ? i + 1 : left;
        } else if (!opens && !closes && c != ',' && c != ':') {
            while (at + piece.len < text.len && !strchr(" \t\r\n,:]}", piece.data[piece.len]))
                piece.len++;
        }
        if (seen) cli_escaped(out, piece);
        else cli_put(out, piece.data, piece.len);
        if (opens) new_line(out, spaces += STEP);
        else if (c == ',') new_line(out, spaces);
        else if (c == ':') cli_text(out, " ");
        at += piece.len;
    }
}

bool cli_is_pretty(sft_span text) {
    size_t at = skip_space(text, 0);
    return at < text.len && (text.data[at] == '{' || text.data[at] == '[') && cli_raw_check(text);
}
