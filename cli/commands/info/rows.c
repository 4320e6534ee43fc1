/* Rows of the list: how wide its columns are, and what is cut. */
#include "commands/info/list.h"
#include "base/order.h"
#include "os/path.h"
#include "support/files.h"
#include "support/words.h"

#include <string.h>

#define MARK_COLUMNS 2 /* "! " */
#define GAP 2
#define PIPE_COLUMNS 160 /* of a cell; paths are never cut there */

static const struct column_row {
    const char *title;
    size_t most; /* columns on a terminal, however wide it is */
} column_rows[LIST_COLUMNS] = {
    [LIST_NAME] = { "NAME", 60 },   [LIST_WHAT] = { "WHAT", 60 },
    [LIST_BASE] = { "BASE", 32 },   [LIST_WORDS] = { "TRIGGER WORDS", 60 },
    [LIST_DATE] = { "DATE", 10 },   [LIST_SIZE] = { "SIZE", 8 },
    [LIST_PATH] = { "PATH", 120 },
};

/* How a list becomes narrower: a step is taken only as far as needed, and only if those before it
 * were not enough. Width 0: the column goes. */
static const struct fit_step { cli_list_column column; size_t width; } fit_steps[] = {
    { LIST_DATE, 0 },   { LIST_PATH, 40 },  { LIST_WORDS, 32 }, { LIST_BASE, 16 },
    { LIST_NAME, 44 },  { LIST_PATH, 24 },  { LIST_PATH, 0 },   { LIST_WORDS, 20 },
    { LIST_BASE, 0 },   { LIST_WORDS, 14 }, { LIST_NAME, 32 },  { LIST_WHAT, 32 },
    { LIST_WORDS, 0 },  { LIST_NAME, 26 },  { LIST_WHAT, 26 },  { LIST_NAME, 20 },
    { LIST_WHAT, 20 },  { LIST_NAME, 14 },  { LIST_WHAT, 10 },  { LIST_NAME, 10 },
    { LIST_WHAT, 0 },   { LIST_NAME, 4 },   { LIST_SIZE, 0 },
};

/* ── What a name tells ── */

static bool is_alnum(char c) {
    char low = cli_lower(c);
    return (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') || (unsigned char)c >= 0x80;
}

/* The characters of word among those of text, whatever stands between and in either case. */
static bool spells(sft_span text, sft_span word) {
    for (size_t from = 0; from < text.len; from++) {
        size_t at = from, got = 0;
        while (at < text.len && got < word.len) {
            if (is_alnum(text.data[at])) {
                if (cli_lower(text.data[at]) != cli_lower(word.data[got])) break;
                got++;
            }
            at++;
        }
        if (got == word.len) return true;
    }
    return false;
}

/* Three letters in a row, more than a version or a number of steps, and no word that many files
 * have in their names. */
static bool is_telling(sft_span word) {
    static const char *const generic[] = { "model", "models", "lora", "locon", "lokr", "loha",
        "adapter", "checkpoint", "safetensors", "pytorch", "diffusion", "weights", "fp16", "bf16",
        "fp32", "fp8", "pruned", "final", "index", "consolidated", "embeds", "learned" };
    size_t letters = 0;
    for (size_t i = 0; i < word.len && letters < 3; i++)
        letters = word.data[i] >= '0' && word.data[i] <= '9' ? 0 : letters + 1;
    for (size_t i = 0; i < sizeof generic / sizeof *generic && letters >= 3; i++)
        if (cli_same_letters(word, sft_span_cstr(generic[i]))) return false;
    return letters >= 3;
}

static sft_span without_extension(sft_span path) {
    static const char *const ends[] = { ".safetensors", ".sft", ".safetensors.index.json" };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (!cli_ends_with(path, ends[i])) continue;
        path.len -= strlen(ends[i]);
        break;
    }
    return path;
}

/* How many words of a stem tell something; SIZE_MAX if one of them is not in name. */
static size_t told_words(sft_span stem, sft_span name) {
    size_t told = 0;
    for (size_t at = 0, end; at < stem.len; at = end + 1) {
        for (end = at; end < stem.len && is_alnum(stem.data[end]);) end++;
        sft_span word = { stem.data + at, end - at };
        if (!is_telling(word)) continue;
        if (!spells(name, word)) return SIZE_MAX;
        told++;
    }
    return told;
}

bool cli_name_tells(sft_span name, const char *path) {
    size_t told = told_words(without_extension(cli_name_of(path)), name);
    return told > 0 && told < SIZE_MAX;
}

static sft_span file_name(const cli_row *row) {
    return sfti_path_name(row->cells[LIST_PATH]);
}

static int compare_names(const void *ctx, uint32_t a, uint32_t b) {
    const cli_row *rows = ctx;
    return sfti_bytes_compare(rows[a].cells[LIST_NAME], rows[b].cells[LIST_NAME]);
}

static int compare_files(const void *ctx, uint32_t a, uint32_t b) {
    const cli_row *rows = ctx;
    return sfti_bytes_compare(file_name(&rows[a]), file_name(&rows[b]));
}

/* Rows that are equal by that order need their paths. */
static void mark_equals(cli_list *list, cli_row *rows, size_t count,
                        int (*compare)(const void *ctx, uint32_t a, uint32_t b)) {
    uint32_t *order = sfti_arena_sorted(&list->arena, count, compare, rows);
    list->failed = list->failed || !order;
    for (size_t i = 1; order && i < count; i++)
        if (compare(rows, order[i - 1], order[i]) == 0)
            rows[order[i - 1]].needs_path = rows[order[i]].needs_path = true;
}

/* ── Widths ── */

static bool is_path(const cli_list *list, const cli_row *row, int column) {
    return column == LIST_NAME && row->needs_path && !list->widths[LIST_PATH];
}

static sft_span cell(const cli_list *list, const cli_row *row, int column) {
    return row->cells[is_path(list, row, column) ? LIST_PATH : column];
}

static void measure(cli_list *list, const cli_row *rows, size_t count, bool with_path) {
    size_t *widths = list->widths;
    memset(widths, 0, sizeof list->widths);
    widths[LIST_PATH] = with_path;
    for (int column = 0; column < LIST_COLUMNS; column++) {
        size_t most = list->columns ? column_rows[column].most : PIPE_COLUMNS, widest = 0;
        for (size_t i = 0; i < count && widest < most; i++) {
            sft_span text = cell(list, &rows[i], column);
            bool path = column == LIST_PATH || is_path(list, &rows[i], column);
            size_t w = path ? cli_path_width(text) : cli_escaped_width(text);
            if (w > widest) widest = w;
        }
        if (!widest || (column == LIST_PATH && !with_path)) continue;
        size_t head = strlen(column_rows[column].title);
        if (widest < head) widest = head;
        widths[column] = widest < most ? widest : most;
    }
    widths[LIST_SIZE] = column_rows[LIST_SIZE].most;
    if (list->c->set.group_by == LIST_GROUP_BASE) widths[LIST_BASE] = 0;
}

static void fit(cli_list *list) {
    int sort = list->c->set.sort;
    for (size_t i = 0; i < sizeof fit_steps / sizeof *fit_steps; i++) {
        const struct fit_step *step = &fit_steps[i];
        size_t total = MARK_COLUMNS - GAP, *width = &list->widths[step->column];
        for (int k = 0; k < LIST_COLUMNS; k++)
            total += list->widths[k] ? list->widths[k] + GAP : 0;
        if (total <= list->columns) return;
        bool sorted = (step->column == LIST_DATE && sort == LIST_BY_DATE)
                      || (step->column == LIST_BASE && sort == LIST_BY_BASE); /* which stays */
        if (*width <= step->width || (!step->width && sorted)) continue;
        size_t over = total - list->columns, most = *width - step->width;
        *width -= step->width && over < most ? over : most;
    }
}

static void head_line(const cli_list *list) {
    cli_out *out = &list->c->out;
    size_t blank = MARK_COLUMNS;
    cli_style_on(out, CLI_DIM);
    for (int i = 0; i < LIST_COLUMNS; i++) {
        const char *title = column_rows[i].title;
        size_t width = list->widths[i], len = strlen(title);
        if (!width) continue;
        if (i == LIST_SIZE) blank += width - len;
        cli_pad(out, blank);
        blank = GAP;
        size_t used = cli_escaped_cut(out, sft_span_cstr(title), width);
        if (i != LIST_SIZE) blank += width - used;
    }
    cli_style_off(out, CLI_DIM);
    cli_text(out, "\n");
}

void cli_rows_begin(cli_list *list, cli_row *rows, size_t count) {
    if (count == 0 || rows->is_text) return;
    mark_equals(list, rows, count, compare_names);
    mark_equals(list, rows, count, compare_files);
    measure(list, rows, count, true);
    if (list->columns) fit(list);
    if (!list->widths[LIST_PATH]) { /* some paths stand for names now */
        measure(list, rows, count, false);
        fit(list);
    }
    head_line(list);
}

/* ── A row ── */

/* The last part of a path from which on it fits, else both ends of its last: the file's name, or
 * its folder where the name tells nothing. */
static size_t put_path(cli_out *out, sft_span path, size_t width) {
    if (cli_path_width(path) <= width) return cli_path_ends(out, path, width, 0);
    path = without_extension(path);
    sft_span last = sfti_path_name(path);
    if (told_words(last, last) == 0) {
        size_t above = (size_t)(sfti_path_name(sfti_path_above(path)).data - path.data);
        last = (sft_span){ path.data + above, path.len - above };
    }
    bool whole = cli_path_width(last) < width;
    return cli_path_ends(out, whole ? path : last, width, whole ? width : width / 2);
}

static size_t put_cell(const cli_list *list, const cli_row *row, int column, size_t width) {
    cli_out *out = &list->c->out;
    sft_span text = cell(list, row, column);
    size_t used;
    if (column == LIST_PATH || is_path(list, row, column)) return put_path(out, text, width);
    if (column != LIST_NAME) return cli_escaped_cut(out, text, width);
    cli_style_on(out, CLI_BOLD);
    used = cli_escaped_ends(out, text, width, width / 3);
    cli_style_off(out, CLI_BOLD);
    return used;
}

void cli_row_print(const cli_list *list, const cli_row *row) {
    cli_out *out = &list->c->out;
    size_t blank = 0;
    if (!row->is_text) cli_text(out, row->is_wrong ? "! " : "  ");
    for (int i = 0; !row->is_text && i < LIST_COLUMNS; i++) {
        size_t width = list->widths[i];
        size_t most = list->columns ? width : i == LIST_PATH ? SIZE_MAX / 64 : PIPE_COLUMNS;
        if (!width) continue;
        if (i == LIST_SIZE) {
            size_t w = cli_escaped_width(row->cells[i]);
            blank += w < width ? width - w : 0;
        }
        cli_pad(out, blank);
        size_t used = put_cell(list, row, i, most);
        blank = GAP + (used < width && i != LIST_SIZE ? width - used : 0);
    }
    if (!row->is_text) cli_text(out, "\n");
    cli_put(out, row->text.data, row->text.len);
}
