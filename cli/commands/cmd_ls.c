/* ls: the tensors of a model. */
#include "base/number.h"
#include "base/order.h"
#include "commands/commands.h"
#include "support/cli.h"
#include "support/files.h"
#include "support/words.h"

#include <inttypes.h>
#include <string.h>

#define NAME_COLUMNS 72
#define DTYPE_COLUMNS 5
#define SIZE_COLUMNS 8
#define TREE_DEPTH 16 /* what lies deeper stays one name */

static const cli_sort_key tree_key = (cli_sort_key)(CLI_SORT_SIZE + 1);

/* The tensors to show, in order. */
typedef struct listing {
    cli *c;
    const sft_set *set;
    const char *path;
    uint32_t *order; /* 2 * total: the second half is scratch */
    size_t count, total;
    int key;
} listing;

static bool is_wanted(void *ctx, const sft_tensor *tensor) {
    listing *l = ctx;
    if (!cli_is_matched(&l->c->set, tensor->name)) return false;
    l->count++;
    return true;
}

static int compare_tensors(const void *ctx, uint32_t a, uint32_t b) {
    const listing *l = ctx;
    const sft_tensor *x = sft_set_tensor_at(l->set, a), *y = sft_set_tensor_at(l->set, b);
    uint64_t size_x = x->end - x->begin, size_y = y->end - y->begin;
    if (l->key == CLI_SORT_NAME) return sfti_natural_compare(x->name, y->name);
    if (l->key != CLI_SORT_SIZE) return cli_dotted_compare(x->name, y->name);
    if (size_x != size_y) return size_x > size_y ? -1 : 1;
    return 0;
}

static sft_code gather(listing *l, sft_error *err) {
    l->total = sft_set_tensor_count(l->set);
    if (l->total >= UINT32_MAX || !l->total) return SFT_OK;
    uint64_t bytes = (uint64_t)l->total * 2 * sizeof *l->order;
    l->order = sfti_take(&l->c->alloc, (size_t)bytes);
    if (!l->order) return sfti_fail_memory(err, bytes);
    for (size_t i = 0; i < l->total; i++) {
        size_t at = l->count;
        if (is_wanted(l, sft_set_tensor_at(l->set, i))) l->order[at] = (uint32_t)i;
    }
    if (l->key != CLI_SORT_OFFSET) {
        sfti_sort(l->order, l->order + l->total, l->count, compare_tensors, l);
    }
    return SFT_OK;
}

static const sft_tensor *listed(const listing *l, size_t i) {
    return sft_set_tensor_at(l->set, l->order[i]);
}

static const char *shard_path(const listing *l, size_t i) {
    size_t shard = sft_set_tensor_shard(l->set, l->order[i]);
    return sft_set_index_path(l->set) ? sft_set_shard_path(l->set, shard) : l->path;
}

/* ── Columns for people ── */

static size_t number_columns(uint64_t value) {
    char digits[SFTI_UINT_SIZE];
    return sfti_uint_text(value, 0, digits);
}

typedef struct widths {
    size_t name, dtype, shape, bytes, offset;
} widths;

static void widen(size_t *width, size_t w, size_t cap) {
    if (w > *width) *width = w < cap ? w : cap;
}

static widths measure(const listing *l) {
    widths w = { 4, DTYPE_COLUMNS, 5, 5, 5 };
    char buffer[CLI_SHAPE_SIZE];
    for (size_t i = 0; i < l->count; i++) {
        const sft_tensor *t = listed(l, i);
        uint64_t bytes = t->end - t->begin;
        widen(&w.name, cli_escaped_width(t->name), NAME_COLUMNS);
        widen(&w.dtype, strlen(sft_dtype_describe(t->dtype)->name), 16);
        widen(&w.shape, cli_shape_text(t->shape, t->rank, buffer), 40);
        widen(&w.bytes, number_columns(bytes), 20);
        widen(&w.offset, number_columns(t->offset + bytes), 20);
    }
    return w;
}

static void left_column(cli_out *out, const char *text, size_t len, size_t shown, size_t width) {
    cli_put(out, text, len);
    cli_pad(out, (shown < width ? width - shown : 0) + 2);
}

static void head_line(const listing *l, const widths *w) {
    cli_out *out = &l->c->out;
    cli_style_on(out, CLI_DIM);
    left_column(out, "NAME", 4, 4, w->name);
    left_column(out, "DTYPE", 5, 5, w->dtype);
    left_column(out, "SHAPE", 5, 5, w->shape);
    cli_printf(out, "%*s", SIZE_COLUMNS, "SIZE");
    if (l->c->set.verbose) cli_printf(out, "  %*s", (int)w->bytes, "BYTES");
    cli_printf(out, "  %*s  %*s", (int)w->offset, "BEGIN", (int)w->offset, "END");
    if (sft_set_index_path(l->set)) cli_text(out, "  SHARD");
    cli_style_off(out, CLI_DIM);
    cli_text(out, "\n");
}

static void tensor_line(const listing *l, const widths *w, size_t i) {
    cli_out *out = &l->c->out;
    const sft_tensor *t = listed(l, i);
    const char *dtype = sft_dtype_describe(t->dtype)->name;
    char shape[CLI_SHAPE_SIZE], size[CLI_NUMBER_SIZE];
    size_t len = cli_shape_text(t->shape, t->rank, shape);
    uint64_t bytes = t->end - t->begin;
    cli_escaped(out, t->name);
    left_column(out, "", 0, cli_escaped_width(t->name), w->name);
    left_column(out, dtype, strlen(dtype), strlen(dtype), w->dtype);
    left_column(out, shape, len, len, w->shape);
    cli_printf(out, "%*s", SIZE_COLUMNS, cli_size_text(bytes, size));
    if (l->c->set.verbose) cli_printf(out, "  %*" PRIu64, (int)w->bytes, bytes);
    cli_printf(out, "  %*" PRIu64 "  %*" PRIu64, (int)w->offset, t->offset, (int)w->offset,
               t->offset + bytes);
    if (sft_set_index_path(l->set)) cli_fill(out, "  %", cli_name_of(shard_path(l, i)));
    cli_text(out, "\n");
}

static void table_lines(const listing *l) {
    widths w = measure(l);
    head_line(l, &w);
    for (size_t i = 0; i < l->count && !cli_is_over(l->c); i++) tensor_line(l, &w, i);
}

/* ── TSV ── */

static void tsv_lines(const listing *l) {
    cli_out *out = &l->c->out;
    char shape[CLI_SHAPE_SIZE];
    if (!l->c->results++) cli_text(out, "path\tname\tdtype\tshape\tbytes\tbegin\tend\n");
    for (size_t i = 0; i < l->count && !cli_is_over(l->c); i++) {
        const sft_tensor *t = listed(l, i);
        uint64_t bytes = t->end - t->begin;
        cli_cell(l->c, sft_span_cstr(shard_path(l, i)));
        cli_text(out, "\t");
        cli_cell(l->c, t->name);
        cli_printf(out, "\t%s\t", sft_dtype_describe(t->dtype)->name);
        cli_put(out, shape, cli_shape_text(t->shape, t->rank, shape));
        cli_printf(out, "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", bytes, t->offset,
                   t->offset + bytes);
    }
}

/* ── The tree: parts of names between dots ── */

static size_t part_end(sft_span name, size_t at) {
    const char *dot = at < name.len ? memchr(name.data + at, '.', name.len - at) : NULL;
    return dot ? (size_t)(dot - name.data) : name.len;
}

/* Listed tensors from i on whose names begin with the first `len` bytes of i's and a dot. */
static size_t branch_size(const listing *l, size_t i, size_t len, uint64_t *parameters,
                          uint64_t *bytes) {
    sft_span head = { listed(l, i)->name.data, len + 1 };
    size_t n = 0;
    *parameters = *bytes = 0;
    for (; i + n < l->count; n++) {
        const sft_tensor *t = listed(l, i + n);
        uint64_t elements = 0;
        if (t->name.len < head.len || memcmp(t->name.data, head.data, head.len) != 0) break;
        if (sft_shape_size(t->dtype, t->shape, t->rank, &elements, NULL, NULL) == SFT_OK) {
            *parameters += elements;
        }
        *bytes += t->end - t->begin;
    }
    return n;
}

static void part_words(cli_out *out, sft_span part) {
    if (part.len) cli_escaped(out, part);
    else cli_text(out, "\"\"");
}

static void branch_line(const listing *l, size_t i, size_t from, size_t to, size_t depth) {
    cli_out *out = &l->c->out;
    uint64_t parameters, bytes;
    char count[CLI_NUMBER_SIZE], size[CLI_NUMBER_SIZE];
    size_t n = branch_size(l, i, to, &parameters, &bytes);
    cli_pad(out, 2 * depth + 2);
    cli_style_on(out, CLI_BOLD);
    part_words(out, (sft_span){ listed(l, i)->name.data + from, to - from });
    cli_style_off(out, CLI_BOLD);
    cli_printf(out, "  %zu tensor%s, %s parameter%s, %s\n", n, n == 1 ? "" : "s",
               cli_count_text(parameters, count), parameters == 1 ? "" : "s",
               cli_size_text(bytes, size));
}

static void leaf_line(const listing *l, size_t i, size_t from, size_t depth) {
    cli_out *out = &l->c->out;
    const sft_tensor *t = listed(l, i);
    char shape[CLI_SHAPE_SIZE], size[CLI_NUMBER_SIZE];
    size_t len = cli_shape_text(t->shape, t->rank, shape);
    cli_pad(out, 2 * depth + 2);
    size_t left = t->name.len - from;
    part_words(out, (sft_span){ left ? t->name.data + from : NULL, left });
    cli_printf(out, "  %s ", sft_dtype_describe(t->dtype)->name);
    cli_put(out, shape, len);
    cli_printf(out, " %s\n", cli_size_text(t->end - t->begin, size));
}

/* Bytes of the folders (parts with their dots) that name shares with the one before. */
static size_t shared_folders(sft_span before, sft_span name) {
    size_t shared = 0;
    for (size_t i = 0; i < before.len && i < name.len && before.data[i] == name.data[i]; i++) {
        if (name.data[i] == '.') shared = i + 1;
    }
    return shared;
}

static void tree_lines(const listing *l) {
    sft_span before = { NULL, 0 };
    for (size_t i = 0; i < l->count && !cli_is_over(l->c); i++) {
        sft_span name = listed(l, i)->name;
        size_t shared = shared_folders(before, name), depth = 0, from = 0;
        for (size_t end; (end = part_end(name, from)) < name.len; from = end + 1, depth++) {
            if (depth == TREE_DEPTH) break;
            if (from >= shared) branch_line(l, i, from, end, depth);
        }
        leaf_line(l, i, from, depth);
        before = name;
    }
}

/* ── The command ── */

static void show_listing(listing *l) {
    cli *c = l->c;
    if (cli_is_matching(&c->set) && l->count == 0) return;
    if (c->set.format == CLI_TSV) {
        tsv_lines(l);
        return;
    }
    if (c->results++) cli_text(&c->out, "\n");
    cli_styled(&c->out, CLI_BOLD, l->path);
    cli_text(&c->out, "\n");
    if (c->set.tree) tree_lines(l);
    else table_lines(l);
}

static void ls_json(listing *l, sft_error *err) {
    cli *c = l->c;
    sft_sink sink = cli_result_begin(c);
    sft_order order = c->set.sort == CLI_SORT_NAME ? SFT_ORDER_NATURAL : SFT_ORDER_OFFSET;
    if (sft_set_ls_json(l->set, l->path, order, is_wanted, l, &sink, err))
        cli_fail_result(c, l->path, err);
    cli_result_end(c, l->path, SFT_OK, err);
}

static void ls_input(cli *c, const cli_input *input) {
    sft_error err = SFT_ERROR_INIT;
    sft_set *set = NULL;
    if (cli_open_model(c, input, &set, &err)) {
        cli_fail_input(c, input->path, &err);
        return;
    }
    listing l = { c, set, input->path, NULL, 0, 0, c->set.tree ? (int)tree_key : c->set.sort };
    if (cli_is_json(c)) {
        ls_json(&l, &err);
    } else if (gather(&l, &err)) {
        cli_fail_input(c, input->path, &err);
    } else {
        show_listing(&l);
    }
    c->matched += l.count;
    sfti_release(&c->alloc, l.order, l.total * 2 * sizeof *l.order);
    sft_set_close(set);
}

static void run_ls(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    const char *clash = NULL;
    if (cli_is_json(c) && c->set.sort == CLI_SORT_SIZE) {
        clash = "expected --sort offset or name with --json and --jsonl, found size";
    }
    if (c->set.format != CLI_HUMAN && c->set.tree) {
        clash = "expected --tree without --json, --jsonl and --tsv, found both";
    }
    if (clash) {
        cli_usage_error(&err, "%s", clash);
        cli_fail_usage(c, &err);
        return;
    }
    cli_each_input(c, operands, count, ls_input);
    if (cli_is_matching(&c->set) && c->matched == 0) cli_status(c, CLI_NO);
}

static const cli_option ls_options[] = {
    { 'v', "verbose", NULL, CLI_FLAG, 1, offsetof(cli_settings, verbose),
      "also show sizes in bytes" },
    { 0, "sort", "offset|name|size", CLI_CHOICE, 0, offsetof(cli_settings, sort),
      "order: as in the file, by name (2 before 10), largest first" },
    { 0, "tree", NULL, CLI_FLAG, 1, offsetof(cli_settings, tree),
      "names as a tree, split at dots, with totals" },
    { 0, "tsv", NULL, CLI_FLAG, CLI_TSV, offsetof(cli_settings, format),
      "columns separated by tabs: path, name, dtype, shape, bytes, begin, end" },
    { 0, "csv-safe", NULL, CLI_FLAG, 1, offsetof(cli_settings, csv_safe), CLI_CSV_SAFE_HELP },
    { 0, NULL, NULL, CLI_FLAG, 0, 0, NULL },
};

static const cli_example ls_examples[] = {
    { "safetensors ls model.safetensors", "every tensor, in file order" },
    { "safetensors ls --sort size model.safetensors", "largest first" },
    { "safetensors ls --match '*.bias' model.safetensors", "only the biases" },
    { "safetensors ls --tree model.safetensors", "grouped by module, with totals" },
    { "safetensors ls --json model.safetensors", "for programs" },
    { NULL, NULL },
};

const cli_command cli_ls_command = {
    "ls", "PATH...", "list the tensors of a model",
    "Shows name, dtype, shape and size of every tensor, and where its bytes begin and end in the "
    "file. For a model with an index, the tensors of all shards are listed with their shard.\n"
    "JSON is in file order, or in natural order of names with --sort name; --sort size and "
    "--tree do not apply to it.",
    ls_examples,
    { ls_options, cli_match_options, cli_input_options, cli_json_options, cli_reading_options,
      cli_common_options },
    { "every model was read", "--match found no tensor",
      "a model could not be read, or a usage error" },
    1, SIZE_MAX, run_ls,
};
