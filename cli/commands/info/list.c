/* The list of several models: what is kept of each, order and groups. */
#include "commands/info/list.h"

#include "base/order.h"
#include "base/utf8.h"
#include "commands/info/label.h"
#include "os/path.h"
#include "support/files.h"
#include "support/models.h"
#include "support/print.h"
#include "support/titles.h"
#include "support/words.h"

#include <inttypes.h>
#include <string.h>

#define CELL_BYTES 384 /* kept of a name: twice what the widest column shows, in CJK */

/* ── What is kept of a model ── */

static sft_span copied(cli_list *list, sft_span text) {
    char *copy = text.len ? sfti_arena_copy(&list->arena, text.data, text.len) : NULL;
    list->failed = list->failed || (text.len && !copy);
    return copy ? (sft_span){ copy, text.len } : (sft_span){ "", 0 };
}

static sft_span small_letters(cli_list *list, sft_span text) {
    char *copy = text.len ? sfti_arena_copy(&list->arena, text.data, text.len) : NULL;
    list->failed = list->failed || (text.len && !copy);
    for (size_t i = 0; copy && i < text.len; i++) copy[i] = cli_lower(copy[i]);
    return copy ? (sft_span){ copy, text.len } : (sft_span){ "", 0 };
}

static sft_span date_of(const sft_node *root) {
    sft_span date = sft_node_text(root, "model.date");
    return date.len ? date : sft_node_text(root, "training.finished_at");
}

/* Without the mark of doubt. */
static sft_span sure_base(const sft_node *root, char buffer[CLI_TITLE_SIZE]) {
    sft_span base = cli_base_words(root, buffer);
    if (base.len && base.data[base.len - 1] == '?') base.len--;
    return base;
}

static void fill_cells(cli_list *list, cli_row *row, const cli_model *model,
                       const sft_node *root) {
    char cell[CELL_BYTES + 3];
    char buffer[CLI_TITLE_SIZE], size[CLI_NUMBER_SIZE];
    sft_span path = sft_span_cstr(model->path), below;
    bool sized = cli_model_bytes(root, &row->bytes);
    sft_span day = date_of(root);
    if (day.len > 10) day.len = 10;
    sft_span name = sft_node_text(root, "model.name");
    if (!name.len) name = cli_name_of(model->path);
    row->needs_path = !cli_name_tells(name, model->path);
    if (name.len > CELL_BYTES) { /* both ends of a long one */
        size_t head = CELL_BYTES * 2 / 3, tail = CELL_BYTES - head;
        while (head > 0 && ((unsigned char)name.data[head] & 0xC0) == 0x80) head--;
        while (tail > 0 && ((unsigned char)name.data[name.len - tail] & 0xC0) == 0x80) tail--;
        memcpy(cell, name.data, head);
        memcpy(cell + head, "\xE2\x80\xA6", 3);
        memcpy(cell + head + 3, name.data + name.len - tail, tail);
        name = (sft_span){ cell, head + 3 + tail };
    }
    row->cells[LIST_NAME] = copied(list, name);
    row->cells[LIST_WHAT] = copied(list, cli_title(root, buffer));
    row->cells[LIST_BASE] = copied(list, cli_base_words(root, buffer));
    size_t used = 0;
    for (const sft_node *one = cli_first(root, "trigger_words"); one; one = one->next) {
        sft_span text = sft_node_text(one, "text");
        size_t gap = used ? 2 : 0;
        bool whole = used + gap + text.len <= CELL_BYTES;
        if (!whole && used > 0) break;
        if (!whole) text.len = sfti_utf8_cut(text, CELL_BYTES); /* a whole prompt */
        memcpy(cell + used, ", ", gap);
        if (text.len) memcpy(cell + used + gap, text.data, text.len);
        used += gap + text.len;
    }
    row->cells[LIST_WORDS] = copied(list, (sft_span){ cell, used });
    row->cells[LIST_DATE] = copied(list, day);
    /* on a terminal without the folder that was given, or that stands above the group */
    if (list->columns && list->c->set.group_by == LIST_GROUP_FOLDER)
        path = cli_name_of(model->path);
    else if (list->columns && *list->folder
             && sfti_path_below(path, sft_span_cstr(list->folder), &below))
        path = below;
    row->cells[LIST_PATH] = copied(list, path);
    row->cells[LIST_SIZE] =
        copied(list, sft_span_cstr(sized ? cli_size_text(row->bytes, size) : "?"));
}

static void fill_order(cli_list *list, cli_row *row, const cli_model *model,
                       const sft_node *root) {
    char buffer[CLI_TITLE_SIZE];
    sft_span text = { "", 0 };
    if (list->holds) row->tie = small_letters(list, sft_span_cstr(model->path));
    switch ((cli_list_sort)list->c->set.sort) {
    case LIST_BY_PATH: return;
    case LIST_BY_NAME:
        text = sft_node_text(root, "model.name");
        if (!text.len) text = cli_name_of(model->path);
        break;
    case LIST_BY_DATE: text = date_of(root); break;
    case LIST_BY_BASE: text = sure_base(root, buffer); break;
    case LIST_BY_SIZE:
        row->is_known = cli_model_bytes(root, &row->number);
        return;
    case LIST_BY_RANK:
        row->is_known = sft_node_uint(root, "adapter.rank.max", &row->number);
        return;
    }
    if (text.len > CELL_BYTES) text.len = CELL_BYTES;
    row->key = small_letters(list, text);
    row->is_known = text.len > 0;
}

static void fill_group(cli_list *list, cli_row *row, const cli_model *model,
                       const sft_node *root) {
    char buffer[CLI_TITLE_SIZE];
    sft_span text = { "", 0 };
    switch ((cli_list_group)list->c->set.group_by) {
    case LIST_NO_GROUPS: return;
    case LIST_GROUP_BASE: text = sure_base(root, buffer); break;
    case LIST_GROUP_KIND:
        text = sft_node_text(root, "model.kind");
        text = cli_is(text, "unknown") ? (sft_span){ "", 0 } : cli_kind_words(text);
        break;
    case LIST_GROUP_FOLDER:
        text = cli_folder_of(model->path);
        if (!text.len) text = sft_span_cstr(sfti_is_separator(model->path[0]) ? "/" : ".");
        break;
    }
    row->group = copied(list, text);
    row->group_key = small_letters(list, text);
}

/* ── Order ── */

static int compare_rows(const void *ctx, uint32_t a, uint32_t b) {
    const cli_list *list = ctx;
    const cli_row *x = &list->rows[a], *y = &list->rows[b];
    sft_span one = x->group_key, other = y->group_key;
    if (!one.len != !other.len) return one.len ? -1 : 1; /* unknown ones last */
    int way = sfti_natural_compare(one, other);
    if (way) return way;
    if (x->is_known != y->is_known) return x->is_known ? -1 : 1; /* so are unknown values */
    switch ((cli_list_sort)list->c->set.sort) {
    case LIST_BY_PATH: break;
    case LIST_BY_NAME:
    case LIST_BY_BASE: way = sfti_natural_compare(x->key, y->key); break;
    case LIST_BY_DATE: way = sfti_bytes_compare(y->key, x->key); break;
    case LIST_BY_SIZE:
    case LIST_BY_RANK: way = (x->number < y->number) - (x->number > y->number); break;
    }
    if (way) return list->c->set.reverse ? -way : way;
    way = sfti_natural_compare(x->tie, y->tie);
    if (!way) way = a < b ? -1 : a > b;
    return list->c->set.sort == LIST_BY_PATH && list->c->set.reverse ? -way : way;
}

/* ── Groups ── */

static void group_line(const cli_list *list, const uint32_t *order, size_t from, size_t count) {
    char buffer[CLI_NUMBER_SIZE];
    cli_out *out = &list->c->out;
    uint64_t bytes = 0;
    for (size_t i = from; i < from + count; i++) bytes += list->rows[order[i]].bytes;
    size_t most = list->columns > 40 ? list->columns - 30 : list->columns ? 10 : SIZE_MAX / 64;
    sft_span text = list->rows[order[from]].group;
    if (!text.len)
        text = sft_span_cstr(list->c->set.group_by == LIST_GROUP_KIND ? "unknown kind"
                                                                      : "unknown base");
    if (from) cli_text(out, "\n");
    cli_style_on(out, CLI_BOLD);
    cli_escaped_ends(out, text, most, most / 2);
    cli_style_off(out, CLI_BOLD);
    cli_printf(out, "  %zu model%s, %s\n", count, count == 1 ? "" : "s",
               cli_size_text(bytes, buffer));
}

static void print_sorted(cli_list *list, const uint32_t *order) {
    bool groups = list->c->set.group_by != LIST_NO_GROUPS;
    for (size_t i = 0, next = 0; i < list->count && !cli_is_over(list->c); i++) {
        const cli_row *row = &list->rows[order[i]];
        bool begins = groups && i == next;
        if (begins) {
            sft_span key = row->group_key;
            size_t n = 1;
            while (i + n < list->count
                   && sft_span_equal(list->rows[order[i + n]].group_key, key)) n++;
            group_line(list, order, i, n);
            next += n;
        } else if (list->labels && i > 0) {
            cli_text(&list->c->out, "\n");
        }
        cli_row_print(list, row);
    }
    if (groups && !list->labels) cli_text(&list->c->out, "\n");
}

/* ── The list ── */

void cli_list_begin(cli_list *list, cli *c, char **operands, size_t count) {
    memset(list, 0, sizeof *list);
    list->c = c;
    list->arena.alloc = c->alloc;
    list->folder = count == 1 ? operands[0] : "";
    list->holds = c->set.sort || c->set.reverse || c->set.group_by;
    (void)cli_progress_begin(&list->progress, c, list->folder);
    list->columns = cli_columns(&c->out);
}

static void forget_rows(cli_list *list) {
    sfti_arena_free(&list->arena);
    list->arena = (sfti_arena){ .alloc = list->c->alloc };
    list->rows = NULL;
    list->count = list->capacity = 0;
}

static void complain_of_memory(cli_list *list) {
    sft_error err = SFT_ERROR_INIT;
    sfti_fail_memory(&err, sizeof *list->rows);
    cli_complain(list->c, list->c->command->name, &err);
}

static void begin_rows(cli_list *list) {
    list->failed = false;
    cli_rows_begin(list, list->rows, list->count);
    if (list->failed) complain_of_memory(list);
    list->begun = true;
}

/* Rows that need not be held any longer. */
static void print_rows(cli_list *list) {
    if (!list->begun) begin_rows(list);
    for (size_t i = 0; i < list->count; i++) cli_row_print(list, &list->rows[i]);
    forget_rows(list);
    if (list->columns) cli_flush(&list->c->out);
}

void cli_list_add(cli_list *list, const cli_model *model, const sft_node *root, sft_span text,
                  bool is_text) {
    cli_row *rows = sfti_arena_grow(&list->arena, list->rows, list->count, 1, &list->capacity,
                                    sizeof *rows);
    list->failed = !rows;
    if (rows) {
        cli_row *row = &rows[list->count];
        list->rows = rows;
        memset(row, 0, sizeof *row);
        row->is_text = is_text;
        row->is_wrong = sft_node_count(sft_node_get(root, "conflicts")) > 0
                     || cli_has_mismatch(root);
        row->text = copied(list, text);
        fill_cells(list, row, model, root);
        fill_order(list, row, model, root);
        fill_group(list, row, model, root);
    }
    if (list->failed) {
        complain_of_memory(list);
        return;
    }
    list->wrong += list->rows[list->count++].is_wrong;
    if (list->holds) cli_progress_count(&list->progress, list->count, 0);
    else if (list->begun || list->count == LIST_SAMPLE) print_rows(list);
}

void cli_list_end(cli_list *list) {
    cli_progress_end(&list->progress);
    if (list->count && !list->holds) {
        print_rows(list);
    } else if (list->count && !cli_is_over(list->c)) {
        uint32_t *order = sfti_arena_sorted(&list->arena, list->count, compare_rows, list);
        if (order) begin_rows(list);
        if (order) print_sorted(list, order);
        else complain_of_memory(list);
    }
    sfti_arena_free(&list->arena);
}
