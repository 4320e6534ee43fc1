/* Output: buffered bytes, escaped text and its width, numbers for people. */
#include "support/print.h"

#include "base/mem.h"
#include "base/number.h"
#include "base/utf8.h"
#include "os/path.h"
#include "support/hints.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ── Bytes out ── */

void cli_out_begin(cli_out *out, int fd) {
    out->fd = fd;
    out->error = 0;
    out->color = 2;
    out->capture = NULL;
    out->lost = false;
    out->used = 0;
    out->size = sizeof out->buffer;
    out->bytes = out->buffer;
}

static void write_all(cli_out *out, const char *bytes, size_t len) {
    if (out->capture) {
        out->lost = out->lost || !sfti_buffer_put(out->capture, bytes, len);
        return;
    }
    while (len && !out->error) {
        size_t put = 0;
        out->error = sfti_os_write(out->fd, bytes, len, &put);
        if (!out->error && put == 0) out->error = EIO;
        if (out->error) return;
        bytes += put;
        len -= put;
    }
}

int cli_flush(cli_out *out) {
    write_all(out, out->bytes, out->used);
    out->used = 0;
    return out->error;
}

void cli_capture(cli_out *out, sft_buffer *buffer) {
    cli_flush(out);
    out->capture = buffer;
    out->lost = false;
}

bool cli_captured(cli_out *out) {
    cli_flush(out);
    out->capture = NULL;
    return !out->lost;
}

void cli_put(cli_out *out, const void *bytes, size_t len) {
    if (len > out->size - out->used) cli_flush(out);
    if (len > out->size) {
        write_all(out, bytes, len);
    } else if (len) {
        memcpy(out->bytes + out->used, bytes, len);
        out->used += len;
    }
}

void cli_text(cli_out *out, const char *text) {
    cli_put(out, text, strlen(text));
}

static void put_format(cli_out *out, const char *format, va_list args) {
    char buffer[512];
    int len = vsnprintf(buffer, sizeof buffer, format, args);
    size_t most = sizeof buffer - 1;
    if (len > 0) cli_put(out, buffer, (size_t)len < most ? (size_t)len : most);
}

void cli_printf(cli_out *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    put_format(out, format, args);
    va_end(args);
}

void cli_path(cli_out *out, const char *path, const char *format, ...) {
    va_list args;
    cli_path_text(out, sft_span_cstr(path));
    va_start(args, format);
    put_format(out, format, args);
    va_end(args);
}

void cli_path_bold(cli_out *out, const char *path, const char *format, ...) {
    va_list args;
    cli_styled(out, CLI_BOLD, path);
    va_start(args, format);
    put_format(out, format, args);
    va_end(args);
}

void cli_pad(cli_out *out, size_t spaces) {
    static const char blank[] = "                                ";
    while (spaces) {
        size_t n = spaces < sizeof blank - 1 ? spaces : sizeof blank - 1;
        cli_put(out, blank, n);
        spaces -= n;
    }
}

static sft_code out_write_at(void *ctx, uint64_t offset, const void *bytes, size_t len,
                             sft_error *err) {
    cli_out *out = ctx;
    (void)offset;
    cli_put(out, bytes, len);
    if (!out->error) return SFT_OK;
    return sft_error_set(err, SFT_IO_WRITE, out->error, "cannot write the result");
}

static const sft_sink_vtable out_sink_vtable = { .size = sizeof(sft_sink_vtable),
                                                 .write = out_write_at };

sft_sink cli_out_sink(cli_out *out) {
    return (sft_sink){ out, &out_sink_vtable, false };
}

/* ── Escaped text ── */

typedef size_t escape_fn(sft_span text, char *into, size_t cap, size_t *used);

static size_t text_escape(sft_span text, char *into, size_t cap, size_t *used) {
    return sfti_escape(text.data, text.len, into, cap, used);
}

/* Printable ASCII without a backslash, as nearly all names are: nothing to escape. Looks at every
 * byte, so that compilers take many at once. */
static bool is_plain(sft_span text) {
    unsigned other = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        other |= (unsigned)(c < ' ') | (unsigned)(c > '~') | (unsigned)(c == '\\');
    }
    return other == 0;
}

static void put_escaped(cli_out *out, sft_span text, escape_fn *escape) {
    char buffer[512];
    if (is_plain(text)) {
        cli_put(out, text.data, text.len);
        return;
    }
    while (text.len) {
        size_t used = 0;
        size_t len = escape(text, buffer, sizeof buffer, &used);
        if (!used) return;
        cli_put(out, buffer, len);
        text.data += used;
        text.len -= used;
    }
}

void cli_escaped(cli_out *out, sft_span text) {
    put_escaped(out, text, text_escape);
}

void cli_path_text(cli_out *out, sft_span path) {
    put_escaped(out, path, sfti_path_escape);
}

void cli_fill_spans(cli_out *out, const char *format, const sft_span *spans) {
    while (*format) {
        size_t len = strcspn(format, "%");
        cli_put(out, format, len);
        format += len;
        if (!*format) return;
        cli_escaped(out, *spans++);
        format++;
    }
}

/* Columns of text that is already escaped (valid UTF-8, nothing that moves a cursor). */
static size_t shown_width(const char *text, size_t len) {
    const uint8_t *p = (const uint8_t *)text, *end = p + len;
    size_t width = 0;
    while (p < end) {
        uint32_t code = '?';
        size_t step = sfti_utf8_decode(p, end, &code);
        p += step ? step : 1;
        width += cli_code_width(code);
    }
    return width;
}

static size_t escaped_width(sft_span text, escape_fn *escape) {
    char buffer[512];
    size_t width = 0;
    if (is_plain(text)) return text.len;
    while (text.len) {
        size_t used = 0;
        size_t len = escape(text, buffer, sizeof buffer, &used);
        if (!used) break;
        width += shown_width(buffer, len);
        text.data += used;
        text.len -= used;
    }
    return width;
}

size_t cli_escaped_width(sft_span text) {
    return escaped_width(text, text_escape);
}

size_t cli_path_width(sft_span path) {
    return escaped_width(path, sfti_path_escape);
}

static size_t character_bytes(sft_span text) {
    uint32_t code;
    const uint8_t *p = (const uint8_t *)text.data;
    size_t len = sfti_utf8_decode(p, p + text.len, &code);
    return len ? len : 1;
}

/* Bytes of the longest beginning that fits into columns; marks without a width of their
 * own can't make it endless. */
static size_t fitting_bytes(sft_span text, size_t columns, escape_fn *escape, size_t *width) {
    sft_span rest = text;
    for (*width = 0; rest.len;) {
        sft_span one = { rest.data, character_bytes(rest) };
        size_t w = escaped_width(one, escape);
        if (*width + w > columns || text.len - rest.len > 16 * columns) break;
        *width += w;
        rest.data += one.len;
        rest.len -= one.len;
    }
    return text.len - rest.len;
}

size_t cli_escaped_cut(cli_out *out, sft_span text, size_t columns) {
    if (text.len <= columns && is_plain(text)) {
        cli_put(out, text.data, text.len);
        return text.len;
    }
    size_t width, whole = fitting_bytes(text, columns, text_escape, &width);
    if (whole == text.len) {
        cli_escaped(out, text);
        return width;
    }
    text.len = fitting_bytes(text, columns - 1, text_escape, &width);
    cli_escaped(out, text);
    cli_text(out, "\xE2\x80\xA6");
    return width + 1;
}

/* Bytes of the beginning that can go so that the rest fits into columns. */
static size_t spare_bytes(sft_span text, size_t width, size_t columns, escape_fn *escape) {
    sft_span rest = text;
    while (rest.len && width > columns) {
        sft_span one = { rest.data, character_bytes(rest) };
        width -= escaped_width(one, escape);
        rest.data += one.len;
        rest.len -= one.len;
    }
    while (rest.len) { /* marks whose character is gone */
        sft_span one = { rest.data, character_bytes(rest) };
        if (escaped_width(one, escape)) break;
        rest.data += one.len;
        rest.len -= one.len;
    }
    return text.len - rest.len;
}

static size_t put_ends(cli_out *out, sft_span text, size_t columns, size_t tail,
                       escape_fn *escape) {
    size_t width = escaped_width(text, escape), head, used;
    if (width <= columns && text.len <= 16 * columns) {
        put_escaped(out, text, escape);
        return width;
    }
    if (columns == 0) return 0;
    if (tail > columns - 1) tail = columns - 1;
    head = fitting_bytes(text, columns - 1 - tail, escape, &used);
    put_escaped(out, (sft_span){ text.data, head }, escape);
    cli_text(out, "\xE2\x80\xA6");
    sft_span rest = { text.data + head, text.len - head };
    size_t gone = spare_bytes(rest, escaped_width(rest, escape), tail, escape);
    rest = (sft_span){ rest.data + gone, rest.len - gone };
    if (rest.len > 16 * columns) rest.len = 0; /* a flood of marks */
    put_escaped(out, rest, escape);
    return used + 1 + escaped_width(rest, escape);
}

size_t cli_escaped_ends(cli_out *out, sft_span text, size_t columns, size_t tail) {
    return put_ends(out, text, columns, tail, text_escape);
}

size_t cli_path_ends(cli_out *out, sft_span path, size_t columns, size_t tail) {
    return put_ends(out, path, columns, tail, sfti_path_escape);
}

void cli_cell_guard(cli_out *out, sft_span text) {
    if (text.len > 0 && text.data[0] && strchr("=+-@\"\t\r", text.data[0])) cli_text(out, "'");
}

void cli_quoted(cli_out *out, sft_span text) {
    cli_text(out, "\"");
    cli_escaped(out, text);
    cli_text(out, "\"");
}

static const char *const style_codes[] = { "", "\x1b[1m", "\x1b[2m", "\x1b[1;31m", "\x1b[32m" };

/* What auto comes to is asked for once, when something is to be coloured. */
static bool has_color(cli_out *out) {
    if (out->color == 0) {
        const char *none = sfti_os_env("NO_COLOR"), *force = sfti_os_env("CLICOLOR_FORCE");
        const char *term = sfti_os_env("TERM");
        bool forced = force && force[0] && strcmp(force, "0") != 0;
        bool dumb = term && strcmp(term, "dumb") == 0;
        bool colored = forced || (!dumb && sfti_os_terminal_escapes(out->fd));
        out->color = colored && !(none && none[0]) ? 1 : 2;
    }
    return out->color == 1;
}

void cli_style_on(cli_out *out, cli_style style) {
    if (style && has_color(out)) cli_text(out, style_codes[style]);
}

void cli_style_off(cli_out *out, cli_style style) {
    if (style && has_color(out)) cli_text(out, "\x1b[0m");
}

void cli_styled(cli_out *out, cli_style style, const char *text) {
    cli_style_on(out, style);
    cli_path_text(out, sft_span_cstr(text));
    cli_style_off(out, style);
}

/* ── Numbers ── */

/* Three significant digits of value in the largest fitting power of 1000. */
static char *scaled_text(uint64_t value, const char *const units[], size_t unit_count,
                         const char *plain, char buffer[CLI_NUMBER_SIZE]) {
    uint64_t unit = 1000, q = 0;
    size_t u = 0;
    unsigned decimals = 2;
    if (value < 1000) {
        size_t len = sfti_uint_text(value, 0, buffer);
        memcpy(buffer + len, plain, strlen(plain) + 1);
        return buffer;
    }
    while (u + 1 < unit_count && value / unit >= 1000) unit *= 1000, u++;
    for (uint64_t step = unit / 100;; step *= 10, decimals--) {
        q = value / step + (value % step >= step / 2);
        if (q < 1000 || decimals == 0) break;
    }
    if (q >= 1000 && u + 1 < unit_count) q = 100, decimals = 2, u++;
    uint64_t base = decimals == 2 ? 100 : decimals == 1 ? 10 : 1;
    size_t len = sfti_uint_text(q / base, 0, buffer);
    if (decimals > 0) {
        buffer[len++] = '.';
        len += sfti_uint_text(q % base, decimals, buffer + len);
    }
    buffer[len++] = ' ';
    memcpy(buffer + len, units[u], strlen(units[u]) + 1);
    return buffer;
}

char *cli_size_text(uint64_t bytes, char buffer[CLI_NUMBER_SIZE]) {
    static const char *const units[] = { "KB", "MB", "GB", "TB", "PB", "EB" };
    return scaled_text(bytes, units, 6, " B", buffer);
}

char *cli_count_text(uint64_t count, char buffer[CLI_NUMBER_SIZE]) {
    static const char *const units[] = { "K", "M", "B", "T" };
    return scaled_text(count, units, 4, "", buffer);
}

size_t cli_shape_text(const uint64_t *shape, uint32_t rank, char buffer[CLI_SHAPE_SIZE]) {
    size_t used = 0;
    buffer[used++] = '[';
    for (uint32_t d = 0; d < rank; d++) {
        if (used + 32 > CLI_SHAPE_SIZE) {
            used += (size_t)snprintf(buffer + used, 8, ",...");
            break;
        }
        if (d > 0) buffer[used++] = ',';
        used += sfti_uint_text(shape[d], 0, buffer + used);
    }
    buffer[used++] = ']';
    buffer[used] = 0;
    return used;
}

void cli_error_text(cli_out *out, const sft_error *err) {
    char text[2560]; /* the longest message, name and hint, escaped */
    sft_error_text_as(err, NULL, cli_hint_words, text, sizeof text);
    cli_text(out, text);
}

const char *cli_bar(double share) {
    static const char *const heights[] = {
        " ", "\xe2\x96\x81", "\xe2\x96\x82", "\xe2\x96\x83", "\xe2\x96\x84",
        "\xe2\x96\x85", "\xe2\x96\x86", "\xe2\x96\x87", "\xe2\x96\x88"
    };
    return heights[share > 0 ? 1 + (size_t)(share * 7) : 0];
}
