/* Output: buffered bytes to a descriptor through sfti_os_write, text from files escaped,
 * sizes for people, colour. Nothing fails half-way: the first failed write is kept and
 * what follows does nothing. */
#ifndef CLI_PRINT_H
#define CLI_PRINT_H

#include "base/error.h"
#include "safetensors.h"

struct cli;

typedef struct cli_out {
    int fd;
    int error; /* errno of the first failed write, or 0 */
    int color; /* 0 auto (by the environment and the terminal), 1 always, 2 never */
    bool measured;       /* columns is known: of a terminal, or 0 (cli_columns) */
    size_t columns;
    sft_buffer *capture; /* NULL: to the descriptor */
    bool lost;           /* that is out of memory */
    size_t used, size;
    char *bytes;       /* what waits: used of size of them; buffer, or the program's own */
    char buffer[4096]; /* small: two of them are on the stack, for nothing may fail here */
} cli_out;

typedef enum cli_style { CLI_PLAIN = 0, CLI_BOLD, CLI_DIM, CLI_RED, CLI_GREEN } cli_style;

void cli_out_begin(cli_out *out, int fd);
/* Everything to the descriptor; 0 or the errno of the first failure ever. */
int cli_flush(cli_out *out);

/* From now on to the end of a buffer. */
void cli_capture(cli_out *out, sft_buffer *buffer);
/* To the descriptor again. Whether the buffer has everything. */
bool cli_captured(cli_out *out);

void cli_put(cli_out *out, const void *bytes, size_t len);
void cli_text(cli_out *out, const char *text);
/* At most 511 bytes: numbers and fixed words. */
void cli_printf(cli_out *out, const char *format, ...) SFTI_FORMAT(2, 3);
/* Bytes from a file or the command line, escaped. */
void cli_escaped(cli_out *out, sft_span text);
/* The same of a path (sfti_path_escape). */
void cli_path_text(cli_out *out, sft_span path);
size_t cli_path_width(sft_span path);
size_t cli_path_ends(cli_out *out, sft_span path, size_t columns, size_t tail);
/* A path escaped, and what follows it. */
void cli_path(cli_out *out, const char *path, const char *format, ...) SFTI_FORMAT(3, 4);
/* The same, the path in bold. */
void cli_path_bold(cli_out *out, const char *path, const char *format, ...) SFTI_FORMAT(3, 4);
/* Fixed words with spans in them, escaped: one for each % in the format, of which there is no other
 * use. */
#define cli_fill(out, format, ...)                                                               \
    cli_fill_spans(out, format, (const sft_span[]){ __VA_ARGS__ })
void cli_fill_spans(cli_out *out, const char *format, const sft_span *spans);
/* Escaped, cut to `columns` with an ellipsis. Returns the columns used. */
size_t cli_escaped_cut(cli_out *out, sft_span text, size_t columns);
/* The same, but cut in the middle: `tail` columns of the end are kept. */
size_t cli_escaped_ends(cli_out *out, sft_span text, size_t columns, size_t tail);
/* Columns of a terminal the escaped text takes. */
size_t cli_escaped_width(sft_span text);
/* An apostrophe if a spreadsheet would run a cell of this text instead of showing it. It takes
 * quotes off first, so a cell that begins with one is guarded as well. */
void cli_cell_guard(cli_out *out, sft_span text);
/* In double quotes. */
void cli_quoted(cli_out *out, sft_span text);
void cli_pad(cli_out *out, size_t spaces);
void cli_style_on(cli_out *out, cli_style style);
void cli_style_off(cli_out *out, cli_style style);
/* A path or fixed words, styled and escaped. */
void cli_styled(cli_out *out, cli_style style, const char *text);

/* Forward sink into out; finish and abandon leave it open. */
sft_sink cli_out_sink(cli_out *out);

#define CLI_NUMBER_SIZE 32
/* "14.5 GB" (powers of 1000), "512 B". Returns buffer. */
char *cli_size_text(uint64_t bytes, char buffer[CLI_NUMBER_SIZE]);
/* One of a row of bars, a part of the highest: the least for few, a space for none. */
const char *cli_bar(double share);
/* "7.24 B" (thousands K, millions M, billions B, trillions T), "512". Returns buffer. */
char *cli_count_text(uint64_t count, char buffer[CLI_NUMBER_SIZE]);
/* "[4,5]" into buffer, which holds any shape of up to 64 dims; more end in ",...]".
 * Returns the length. */
#define CLI_SHAPE_SIZE 1400
size_t cli_shape_text(const uint64_t *shape, uint32_t rank, char buffer[CLI_SHAPE_SIZE]);

/* `[byte N: ][tensor "x": ]message[; hint]`, no newline. */
void cli_error_text(cli_out *out, const sft_error *err);

/* ── Lines that fit the terminal ── */

/* Columns of the terminal that the output goes to; 0 if it goes anywhere else, which gets lines as
 * long as they are. */
size_t cli_columns(cli_out *out);

typedef struct cli_fit {
    struct cli *c;
    sft_buffer text;
    size_t columns, indent;
} cli_fit;

/* What is printed to c->out from here to cli_fit_end is broken at spaces where a line would be
 * wider than the terminal, and continues after `indent` spaces. A word that is wider itself is cut
 * in the middle, with an ellipsis. */
void cli_fit_begin(cli_fit *fit, struct cli *c, size_t indent);
void cli_fit_end(cli_fit *fit);

/* Columns of a terminal that a character takes: 0, 1 or 2. */
size_t cli_code_width(uint32_t code);

#endif
