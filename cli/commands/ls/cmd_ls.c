/* ls: the tensors of a model. Tests: tests/cli/ls. */
#include "base/number.h"
#include "base/order.h"
#include "base/result.h"
#include "commands/convert/layout.h"
#include "commands/commands.h"
#include "commands/ls/ls.h"
#include "safetensors_convert.h"
#include "support/files.h"
#include "support/print.h"
#include "support/remote.h"
#include "support/words.h"

#include <inttypes.h>
#include <string.h>

#define NAME_COLUMNS 72
#define DTYPE_COLUMNS 5
#define SIZE_COLUMNS 8
#define SHARD_COLUMNS 64
#define GAP 2

static const int tree_key = CLI_SORT_SIZE + 1;

/* The path of the file that holds it. */
static const char *shard_path(const ls_listing *l, size_t i) {
    size_t shard = sft_set_tensor_shard(l->set, l->order[i]);
    return sft_set_index_path(l->set) ? sft_set_shard_path(l->set, shard) : l->path;
}

/* ── Which tensors, in which order ── */

static int compare_tensors(const void *ctx, uint32_t a, uint32_t b) {
    const ls_listing *l = ctx;
    const sft_tensor *x = sft_set_tensor_at(l->set, a), *y = sft_set_tensor_at(l->set, b);
    uint64_t size_x = x->end - x->begin, size_y = y->end - y->begin;
    if (l->key == CLI_SORT_NAME) return sfti_natural_compare(x->name, y->name);
    if (l->key != CLI_SORT_SIZE) return cli_dotted_compare(x->name, y->name);
    if (size_x != size_y) return size_x > size_y ? -1 : 1;
    return 0;
}

static sft_code gather(ls_listing *l, sft_error *err) {
    l->total = sft_set_tensor_count(l->set);
    if (l->total >= UINT32_MAX || !l->total) return SFT_OK;
    uint64_t most = UINT64_MAX;
    l->order = sfti_arena_array(&l->arena, 2 * (uint64_t)l->total, sizeof *l->order);
    if (!l->order) return sfti_fail_memory(err, 2 * l->total * sizeof *l->order);
    for (size_t i = 0; i < l->total; i++)
        if (ls_is_wanted(l, sft_set_tensor_at(l->set, i)))
            l->order[l->count++] = (uint32_t)i;
    if (l->key != CLI_SORT_OFFSET)
        sfti_sort(l->order, l->order + l->total, l->count, compare_tensors, l);
    for (size_t i = 0; l->c->set.reverse && i < l->count / 2; i++) {
        uint32_t other = l->order[l->count - 1 - i];
        l->order[l->count - 1 - i] = l->order[i];
        l->order[i] = other;
    }
    l->c->matched += l->count;
    if (l->c->set.limit && !cli_parse_number(l->c->set.limit, UINT32_MAX, &most)) most = 0;
    if (l->count > most) l->count = (size_t)most;
    return l->c->set.fold ? ls_fold_rows(l, err) : SFT_OK;
}

/* What the values of tensors were computed from. */
static sft_code find_layouts(ls_listing *l, sft_error *err) {
    const sft_file *file = sft_set_shard_at(l->set, 0);
    l->layouts = sfti_arena_array(&l->arena, l->total, sizeof *l->layouts);
    if (!l->layouts) return sfti_fail_memory(err, l->total * sizeof *l->layouts);
    for (size_t i = 0; i < l->total; i++) l->layouts[i] = (sft_span){ "", 0 };
    for (size_t i = 0; i < l->c->values_count; i++) {
        sft_span layout = sft_conversion_layout(l->c->values, i);
        if (layout.len == 0) continue;
        sft_part part = sft_conversion_part(l->c->values, i);
        const sft_tensor *tensor = sft_set_find(l->set, part.spec.name, NULL);
        if (tensor) l->layouts[sft_file_tensor_index(file, tensor)] = layout;
    }
    return SFT_OK;
}

/* ── Columns for people ── */

static size_t number_columns(uint64_t value) {
    char digits[SFTI_UINT_SIZE];
    return sfti_uint_text(value, 0, digits);
}

typedef struct widths {
    size_t name, dtype, shape, bytes, offset, shard;
} widths;

/* How the table becomes narrower: each step only as far as needed. Width 0: without the column. */
static void fit_widths(const ls_listing *l, widths *w, size_t columns) {
    const struct { size_t *width, least; } steps[] = {
        { &w->shard, 24 }, { &w->name, 32 }, { &w->shard, 0 }, { &w->shape, 16 },
        { &w->offset, 0 }, { &w->name, 16 }, { &w->shape, 8 }, { &w->name, 8 },
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        size_t *width = steps[i].width;
        size_t total = w->name + w->dtype + w->shape + SIZE_COLUMNS + 3 * GAP;
        if (w->offset) total += 2 * (w->offset + GAP);
        if (w->shard) total += w->shard + GAP;
        if (l->c->set.verbose) total += w->bytes + GAP;
        if (total <= columns) return;
        if (*width <= steps[i].least) continue;
        size_t over = total - columns, most = *width - steps[i].least;
        *width -= steps[i].least && over < most ? over : most;
    }
}

static widths measure(const ls_listing *l) {
    widths w = { 4, DTYPE_COLUMNS, 5, 5, 5, 0 };
    size_t columns = cli_columns(&l->c->out), name_most = columns ? columns : NAME_COLUMNS;
    char buffer[CLI_SHAPE_SIZE];
    for (size_t i = 0; i < l->count; i++) {
        const sft_tensor *t = ls_listed(l, i);
        uint64_t bytes = t->end - t->begin;
        ls_widen(&w.name, cli_escaped_width(t->name), name_most);
        ls_widen(&w.dtype, strlen(sft_dtype_describe(t->dtype)->name), 16);
        ls_widen(&w.shape, cli_shape_text(t->shape, t->rank, buffer), 40);
        ls_widen(&w.bytes, number_columns(bytes), 20);
        ls_widen(&w.offset, number_columns(t->offset + bytes), 20);
        if (sft_set_index_path(l->set))
            ls_widen(&w.shard, cli_escaped_width(cli_name_of(shard_path(l, i))), SHARD_COLUMNS);
    }
    if (columns) fit_widths(l, &w, columns);
    return w;
}

static void head_line(const ls_listing *l, const widths *w) {
    cli_out *out = &l->c->out;
    cli_style_on(out, CLI_DIM);
    cli_text(out, "NAME");
    ls_pad(out, 4, w->name);
    cli_printf(out, "%-*s  %-*s  %*s", (int)w->dtype, "DTYPE", (int)w->shape, "SHAPE", SIZE_COLUMNS,
               "SIZE");
    if (l->c->set.verbose) cli_printf(out, "  %*s", (int)w->bytes, "BYTES");
    if (w->offset) cli_printf(out, "  %*s  %*s", (int)w->offset, "BEGIN", (int)w->offset, "END");
    if (w->shard) cli_text(out, "  SHARD");
    cli_style_off(out, CLI_DIM);
    cli_text(out, "\n");
}

/* Not by printf, which took an eighth of the whole command. */
static void right_column(cli_out *out, const char *text, size_t len, size_t width) {
    cli_pad(out, len < width ? width - len : 0);
    cli_put(out, text, len);
}

static void number_column(cli_out *out, uint64_t value, size_t width) {
    char digits[SFTI_UINT_SIZE];
    right_column(out, digits, sfti_uint_text(value, 0, digits), GAP + width);
}

static void tensor_line(const ls_listing *l, const widths *w, size_t i) {
    cli_out *out = &l->c->out;
    const sft_tensor *t = ls_listed(l, i);
    const char *dtype = sft_dtype_describe(t->dtype)->name;
    char shape[CLI_SHAPE_SIZE], size[CLI_NUMBER_SIZE];
    size_t len = cli_shape_text(t->shape, t->rank, shape);
    uint64_t bytes = t->end - t->begin;
    bool whole = !cli_columns(out);
    size_t most = whole ? SIZE_MAX / 64 : w->name;
    ls_pad(out, cli_escaped_ends(out, t->name, most, w->name / 2), w->name);
    cli_text(out, dtype);
    ls_pad(out, strlen(dtype), w->dtype);
    ls_pad(out, cli_escaped_cut(out, (sft_span){ shape, len }, whole ? SIZE_MAX / 64 : w->shape),
           w->shape);
    cli_size_text(bytes, size);
    right_column(out, size, strlen(size), SIZE_COLUMNS);
    if (l->c->set.verbose) number_column(out, bytes, w->bytes);
    if (w->offset) {
        number_column(out, t->offset, w->offset);
        number_column(out, t->offset + bytes, w->offset);
    }
    if (w->shard) {
        cli_text(out, "  ");
        (void)cli_escaped_ends(out, cli_name_of(shard_path(l, i)),
                               whole ? SIZE_MAX / 64 : w->shard, w->shard / 2);
    }
    cli_text(out, "\n");
}

/* ── TSV ── */

static void tsv_lines(const ls_listing *l) {
    cli_out *out = &l->c->out;
    char shape[CLI_SHAPE_SIZE];
    if (!l->c->results++)
        cli_printf(out, "path\tname\tdtype\tshape\tbytes\tbegin\tend%s\n",
                   l->stats ? ls_stats_tsv_head : "");
    for (size_t i = 0; i < l->count && !cli_is_over(l->c); i++) {
        const sft_tensor *t = ls_listed(l, i);
        uint64_t bytes = t->end - t->begin;
        cli_cell(l->c, sft_span_cstr(shard_path(l, i)));
        cli_text(out, "\t");
        cli_cell(l->c, t->name);
        cli_printf(out, "\t%s\t", sft_dtype_describe(t->dtype)->name);
        cli_put(out, shape, cli_shape_text(t->shape, t->rank, shape));
        cli_printf(out, "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64, bytes, t->offset,
                   t->offset + bytes);
        if (l->stats) ls_stats_tsv(l, i);
        cli_text(out, "\n");
    }
}

/* ── JSON ── */

static void ls_json(const ls_listing *l) {
    cli_object object;
    sfti_json_writer *w = cli_object_begin(&object, l->c, l->path);
    bool many = sft_set_shard_count(l->set) > 1, complete = true;
    for (size_t i = 0; i < sft_set_shard_count(l->set); i++)
        complete = complete && sft_file_complete(sft_set_shard_at(l->set, i));
    sfti_json_put_bool(w, "complete", complete);
    sfti_json_put_open(w, "tensors", '[');
    for (size_t i = 0; i < l->count && !w->code; i++) {
        sfti_json_open(w, '{');
        sfti_result_listed(w, ls_listed(l, i), many ? shard_path(l, i) : NULL);
        if (l->stats) ls_stats_json(l, w, i);
        sft_span layout = l->layouts ? l->layouts[l->order[i]] : (sft_span){ "", 0 };
        if (layout.len > 0) sfti_json_put_text(w, "layout", layout);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
    if (l->stats) ls_stats_json(l, w, SIZE_MAX);
    cli_object_end(&object);
}

/* ── The command ── */

static void show_listing(const ls_listing *l) {
    cli *c = l->c;
    bool chosen = cli_is_matching(&c->set) || c->set.dtype;
    if (cli_is_json(c)) {
        ls_json(l);
        return;
    }
    if (chosen && l->count == 0) return;
    if (c->set.format == CLI_TSV) {
        tsv_lines(l);
        return;
    }
    if (c->results++) cli_text(&c->out, "\n");
    if (c->set.format == CLI_MARKDOWN) {
        cli_fill(&c->out, "### %\n\n", cli_name_of(l->path));
        ls_markdown(l);
        return;
    }
    cli_fit fit;
    cli_fit_begin(&fit, c, 0);
    cli_path_bold(&c->out, l->path, "\n");
    cli_fit_end(&fit);
    if (l->key == tree_key) {
        ls_tree(l);
    } else if (l->stats) {
        ls_stats_table(l);
    } else {
        widths w = measure(l);
        head_line(l, &w);
        for (size_t i = 0; i < l->count && !cli_is_over(c); i++) tensor_line(l, &w, i);
    }
}

static bool wants_tree(const cli *c) {
    bool flat = c->set.format == CLI_MARKDOWN;
    return c->set.tree || (!flat && (c->set.depth || c->set.fold));
}

static void ls_input(cli *c, const cli_input *input) {
    sft_error err = SFT_ERROR_INIT;
    sft_set *set = NULL;
    if (cli_open_model(c, input, &set, &err)) {
        cli_fail_found(c, input, input->path, &err);
        return;
    }
    if (c->import) cli_say_left(c, input->path, c->import, false);
    int key = wants_tree(c) || c->set.fold ? tree_key : c->set.sort;
    ls_listing l = { .c = c, .set = set, .path = input->path, .key = key };
    l.arena.alloc = c->alloc;
    sft_code code = cli_dtypes_read(c->set.dtype, &l.dtypes, &err);
    if (!code) code = gather(&l, &err);
    if (!code && c->values && cli_is_json(c)) code = find_layouts(&l, &err);
    bool stats = c->set.stats || c->set.histogram;
    uint64_t threads = 0;
    if (c->set.threads && !cli_parse_number(c->set.threads, UINT32_MAX, &threads)) threads = 0;
    if (!code && stats && input->kind == CLI_STDIN)
        code = sfti_fail(&err, SFT_IO_NOT_FILE,
                         "expected a file for --stats, found standard input");
    else if (!code && stats)
        code = ls_stats_read(&l, (uint32_t)threads, &err);
    if (code) cli_fail_input(c, input->path, &err);
    else show_listing(&l);
    sft_statistics_free(l.stats);
    sfti_arena_free(&l.arena);
    sft_set_close(set);
}

/* What does not go together, and numbers that are none. */
static sft_code check_usage(const cli *c, sft_error *err) {
    const cli_settings *set = &c->set;
    bool stats = set->stats || set->histogram;
    const struct { const char *option, *text; } numbers[] = {
        { "-n", set->limit }, { "--depth", set->depth }, { "--threads", set->threads } };
    const struct { bool clash; const char *text; } rules[] = {
        { set->format != CLI_HUMAN && (set->tree || set->depth),
          "expected a tree without --json, --jsonl, --tsv and --md, found both" },
        { set->fold && set->format != CLI_HUMAN && set->format != CLI_MARKDOWN,
          "expected --fold without --json, --jsonl and --tsv, found both" },
        { stats && (set->fold || wants_tree(c)),
          "expected --stats without --tree, --depth and --fold, found both" },
        { set->fold && set->reverse, "expected --fold without --reverse, found both" },
        { set->sort == CLI_SORT_SIZE && (set->fold || wants_tree(c)),
          "expected --sort size without --tree, --depth and --fold, found both" },
        { set->parts && (cli_is_matching(set) || set->dtype || set->limit),
          "expected --parts without --match, --exclude, --dtype and -n, found both" },
        { set->parts && (set->sort || set->reverse),
          "expected --parts without --sort and --reverse, found both" },
        { set->parts && (stats || set->values),
          "expected --parts without --stats, --histogram and --values, found both" },
        { set->parts && (set->fold || wants_tree(c)),
          "expected --parts without --tree, --depth and --fold, found both" },
        { set->parts && set->format != CLI_HUMAN && !cli_is_json(c),
          "expected --parts without --tsv and --md, found both" },
        { set->parts && set->recursive, "expected --parts without -r, found both" },
        { !stats && set->threads, "expected --stats or --histogram with --threads, found none" },
        { !set->parts && set->architecture, "expected --parts with --architecture, found none" },
    };
    cli_dtypes dtypes;
    uint64_t value;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].clash) return cli_usage_error(err, "%s", rules[i].text);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].text && !cli_parse_number(numbers[i].text, UINT32_MAX, &value))
            return cli_usage_error(err, "expected a whole number for %s, found \"%s\"",
                                   numbers[i].option, numbers[i].text);
    return cli_dtypes_read(set->dtype, &dtypes, err);
}

static void run_ls(cli *c, char **operands, size_t count) {
    c->others = CLI_ELSE_OTHERS;
    c->counts_unread = true;
    sft_error err = SFT_ERROR_INIT;
    if (check_usage(c, &err)) {
        cli_fail_usage(c, &err);
        return;
    }
    if (c->set.parts) {
        layout_list(c, operands, count);
        return;
    }
    cli_each_input(c, operands, count, ls_input);
    if ((cli_is_matching(&c->set) || c->set.dtype) && c->matched == 0) cli_status(c, CLI_NO);
}

const cli_command cli_ls_command = {
    "ls", "PATH...", "list the tensors of a model",
    "Shows name, dtype, shape and size of every tensor, and where its bytes begin and end in the "
    "file; for another format, in the safetensors file that it would become. For a model with an "
    "index, the tensors of all shards are listed with their shard. On a narrow terminal long names "
    "are cut in the middle, and columns that do not fit are left out; a pipe gets everything.\n"
    "--stats counts NaN and infinities but leaves them out of everything else; the standard "
    "deviation is that of the population. Sums are exact: the mean is the true mean, rounded once, "
    "whatever the number of threads. Each half of a complex number counts as a value. Quantised "
    "tensors are read as the integers they hold unless --values is given. The last line covers all "
    "listed tensors together.\n"
    CLI_VALUES_TEXT "\n"
    "A histogram shows magnitudes, whatever their sign: a column for each power of two, as high as "
    "the share of values from it up to the next.",
    CLI_EXAMPLES(
        { "safetensors ls model.safetensors", "every tensor, in file order" },
        { "safetensors ls --sort size model.safetensors", "largest first" },
        { "safetensors ls --match \"*.bias\" model.safetensors", "only the biases" },
        { "safetensors ls --tree model.safetensors", "grouped by module, with totals" },
        { "safetensors ls --fold model.safetensors", "equal layers as one" },
        { "safetensors ls --stats --match \"*.weight\" model.safetensors",
          "what the values are like" },
        { "safetensors ls --stats --values model.safetensors",
          "what the values of quantised tensors are like" },
        { "safetensors ls --sort size -n 10 --dtype fp32 model.safetensors",
          "the ten largest tensors of that dtype" },
        { "safetensors ls --fold --md model.safetensors", "for a model card" },
        { "safetensors ls --json model.safetensors", "for programs" },
        { "safetensors ls https://example.org/model.safetensors",
          "of a URL only the header is read" }),
    { CLI_OPTIONS(
        CLI_ON('v', "verbose", verbose,
          "also show sizes in bytes, and list models in folders that cannot be read"),
        { 0, "sort", "offset|name|size", CLI_CHOICE, 0, offsetof(cli_settings, sort),
          "order: as in the file, by name (2 before 10), largest first" },
        CLI_ON(0, "reverse", reverse, "reverse the order"),
        CLI_TAKES('n', "limit", "N", limit, "only the first N tensors of each model"),
        CLI_TAKES(0, "dtype", "LIST", dtype,
          "only tensors of these dtypes, separated by commas; " CLI_DTYPE_HELP),
        CLI_ON(0, "tree", tree, "names as a tree, split at dots, with totals"),
        CLI_TAKES(0, "depth", "N", depth, "a tree of the first N levels"),
        CLI_ON(0, "fold", fold,
          "a tree in which equal layers are one: layers.{0..31}; with --md, rows of such names"),
        CLI_ON(0, "stats", stats,
          "read all data: minimum, maximum, mean, standard deviation, mean of absolute values, and "
          "counts of zeros, NaN and infinities"),
        CLI_ON(0, "histogram", histogram,
          "--stats, and how many values are of which magnitude, by powers of two"),
        CLI_ON(0, "parts", parts,
          "instead: the components (unet, VAE, text encoders, EMA, stray training state), with "
          "bytes and the SHA-256 of their tensors, which is the same wherever they are; reads all "
          "data"),
        CLI_TAKES(0, "architecture", "ID", architecture,
          "with --parts: what model it is, where tensors do not tell (sdxl, flux.1, wan)"),
        CLI_VALUES,
        CLI_ON(0, "dequantize", values, "an older name of --values"),
        CLI_TAKES(0, "threads", "N", threads,
          "with --stats or --histogram: at most this many threads; 0 (the default): one per "
          "processor"),
        { 0, "md", NULL, CLI_FLAG, CLI_MARKDOWN, offsetof(cli_settings, format),
          "a table in Markdown, for a model card" },
        { 0, "tsv", NULL, CLI_FLAG, CLI_TSV, offsetof(cli_settings, format),
          "columns separated by tabs: path, name, dtype, shape, bytes, begin, end" },
        CLI_ON(0, "csv-safe", csv_safe, CLI_CSV_SAFE_HELP)),
      cli_match_options, cli_input_options, cli_json_options, cli_reading_options,
      cli_remote_options, cli_network_options, cli_common_options },
    { "every model that was named was read, and of those in folders at least one",
      "--match and --dtype found no tensor",
      CLI_UNREAD_STATUS ", or a usage error" },
    1, SIZE_MAX, run_ls, CLI_URLS_ALL,
};
