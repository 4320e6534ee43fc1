#include "support/raw.h"

#include "os/os.h"

#include <string.h>

#define STEP 2

/* The length of the string, number or word at text[0]. */
static size_t scalar_length(sft_span text) {
    size_t i = 1;
    if (text.data[0] != '"') {
        while (i < text.len && !strchr(" \t\r\n,:]}", text.data[i])) i++;
        return i;
    }
    while (i < text.len && text.data[i] != '"') i += text.data[i] == '\\' ? 2 : 1;
    return i < text.len ? i + 1 : text.len;
}

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
        size_t next = skip_space(text, at + 1), len = 1;
        bool opens = c == '{' || c == '[', closes = c == '}' || c == ']';
        bool empty = opens && next < text.len && (text.data[next] == '}' || text.data[next] == ']');
        if (closes) new_line(out, spaces -= STEP);
        if (empty) {
            cli_text(out, c == '{' ? "{}" : "[]");
            at = next + 1;
            continue;
        }
        if (!opens && !closes && c != ',' && c != ':')
            len = scalar_length((sft_span){ text.data + at, text.len - at });
        sft_span piece = { text.data + at, len };
        if (seen) cli_escaped(out, piece);
        else cli_put(out, piece.data, piece.len);
        if (opens) new_line(out, spaces += STEP);
        else if (c == ',') new_line(out, spaces);
        else if (c == ':') cli_text(out, " ");
        at += len;
    }
}

bool cli_is_pretty(sft_span text) {
    size_t at = skip_space(text, 0);
    return at < text.len && (text.data[at] == '{' || text.data[at] == '[') && cli_raw_check(text);
}
