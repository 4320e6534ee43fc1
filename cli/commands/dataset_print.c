#include "commands/dataset.h"
#include "support/nodes.h"
#include "support/words.h"

#include <inttypes.h>
#include <string.h>

#define LABEL_COLUMNS 16

/* ── Pieces ── */

static uint64_t number_of(const sft_node *result, const char *key) {
    uint64_t value = 0;
    (void)sft_node_uint(result, key, &value);
    return value;
}

static void size_of(cli_out *out, uint64_t bytes) {
    char buffer[CLI_NUMBER_SIZE];
    cli_text(out, cli_size_text(bytes, buffer));
}

static void count_of(cli_out *out, uint64_t count, const char *what) {
    cli_printf(out, "%" PRIu64 " %s%s", count, what, count == 1 ? "" : "s");
}

static void put_label(cli_out *out, const char *label) {
    cli_printf(out, "  %s", label);
    cli_pad(out, LABEL_COLUMNS - strlen(label));
}

/* ── info ── */

static void info_shape(cli_out *out, const sft_node *shape) {
    if (!shape || shape->type != SFT_NODE_LIST) {
        cli_text(out, "any shape");
        return;
    }
    for (const sft_node *one = shape->first; one; one = one->next) {
        cli_text(out, one == shape->first ? "[" : ",");
        cli_put(out, one->text.data, one->text.len);
    }
    cli_text(out, shape->first ? "]" : "[]");
}

static void info_column(cli_out *out, const sft_node *column, bool first) {
    sft_span dtype = sft_node_text(column, "dtype");
    put_label(out, first ? "columns" : "");
    cli_fill(out, "%  ", column->key);
    if (dtype.len) cli_escaped(out, dtype);
    else cli_text(out, "any dtype");
    cli_text(out, " ");
    info_shape(out, sft_node_get(column, "shape"));
    cli_text(out, "\n");
}

static void info_columns(cli_out *out, const sft_node *result) {
    const sft_node *one = cli_first(result, "columns");
    for (bool first = true; one; one = one->next, first = false) info_column(out, one, first);
}

static void info_how(cli_out *out, const sft_node *result) {
    sft_span mode = sft_node_text(result, "mode"), tail = sft_node_text(result, "tail_strategy");
    if (cli_is(mode, "batch")) {
        put_label(out, "batches");
        cli_printf(out, "of %" PRIu64 " samples", number_of(result, "batch_size"));
        if (tail.len) cli_text(out, ", tail: ");
        cli_fill(out, "%\n", tail);
    } else if (mode.len) {
        put_label(out, "keys");
        cli_text(out, "column ");
        cli_quoted(out, sft_node_text(result, "name_col"));
        cli_text(out, ", separator ");
        cli_quoted(out, sft_node_text(result, "kv_separator"));
        cli_text(out, "\n");
    }
}

static void info_samples(cli_out *out, const sft_node *result) {
    uint64_t padded = number_of(result, "padded_samples");
    uint64_t dropped = number_of(result, "dropped_samples");
    put_label(out, "samples");
    cli_printf(out, "%" PRIu64, number_of(result, "samples"));
    if (padded) cli_printf(out, ", %" PRIu64 " of them padding", padded);
    if (dropped) cli_printf(out, "; %" PRIu64 " dropped by tail_strategy", dropped);
    cli_text(out, "\n");
}

static void info_shards(cli_out *out, const sft_node *result) {
    uint64_t shadowed = number_of(result, "shadowed");
    put_label(out, "shards");
    cli_printf(out, "%" PRIu64 ", ", number_of(result, "shards"));
    size_of(out, number_of(result, "bytes"));
    cli_text(out, "\n");
    if (sft_node_text(result, "tensors").len == 0) return;
    put_label(out, "tensors");
    cli_printf(out, "%" PRIu64, number_of(result, "tensors"));
    if (shadowed) cli_printf(out, ", %" PRIu64 " of them shadowed by later ones", shadowed);
    cli_text(out, "\n");
}

static void info_origin(cli_out *out, const sft_node *result) {
    sft_span generator = sft_node_text(result, "generator"), index = sft_node_text(result, "index");
    put_label(out, "index");
    if (index.len) cli_escaped(out, index);
    else cli_text(out, generator.len ? "none" : "not told");
    cli_text(out, "\n");
    if (!generator.len) return;
    put_label(out, "written by");
    cli_fill(out, "%, commit %\n", generator, sft_node_text(result, "commit"));
}

void dataset_label(cli *c, const char *path, const sft_node *result) {
    cli_out *out = &c->out;
    sft_span mode = sft_node_text(result, "mode");
    cli_styled(out, CLI_BOLD, path);
    cli_text(out, "  ");
    if (mode.len) cli_escaped(out, mode);
    if (mode.len) cli_printf(out, " dataset, version %" PRIu64 "\n", number_of(result, "version"));
    else cli_text(out, "dataset of the Scala connector\n");
    info_samples(out, result);
    info_shards(out, result);
    info_how(out, result);
    info_columns(out, result);
    info_origin(out, result);
}

void dataset_print_info(cli *c, const char *path, const sft_node *result) {
    if (c->results++) cli_text(&c->out, "\n");
    dataset_label(c, path, result);
}

/* ── verify ── */

static void verify_line(cli *c, const char *path, const sft_node *one, bool orphan) {
    cli_styled(&c->out, CLI_BOLD, path);
    cli_fill(&c->out, ": %", sft_node_text(one, "shard"));
    cli_text(&c->out, orphan ? ": note: " : ": ");
    sft_span message = sft_node_text(one, "message"); /* escaped already */
    cli_put(&c->out, message.data, message.len);
    cli_text(&c->out, "\n");
}

static void verify_lines(cli *c, const char *path, const sft_node *result, const char *key,
                         uint64_t count) {
    uint64_t shown = 0;
    for (const sft_node *one = cli_first(result, key); one; one = one->next, shown++)
        verify_line(c, path, one, strcmp(key, "orphans") == 0);
    if (shown == count) return;
    cli_styled(&c->out, CLI_BOLD, path);
    cli_printf(&c->out, ": and %" PRIu64 " more\n", count - shown);
}

void dataset_print_verify(cli *c, const char *path, const sft_node *result) {
    verify_lines(c, path, result, "findings", number_of(result, "finding_count"));
    verify_lines(c, path, result, "orphans", number_of(result, "orphan_count"));
    if (!sft_node_true(result, "ok")) return;
    cli_styled(&c->out, CLI_BOLD, path);
    cli_text(&c->out, ": whole: ");
    count_of(&c->out, number_of(result, "samples"), "sample");
    cli_text(&c->out, " in ");
    count_of(&c->out, number_of(result, "shards"), "shard");
    cli_text(&c->out, ", ");
    size_of(&c->out, number_of(result, "bytes"));
    if (!sft_node_true(result, "deep")) {
        cli_text(&c->out, "\n");
        return;
    }
    cli_text(&c->out, ", ");
    count_of(&c->out, number_of(result, "digests"), "digest");
    cli_text(&c->out, " compared\n");
}

/* ── gc ── */

static void gc_line(cli *c, const char *path, const sft_node *one) {
    cli_out *out = &c->out;
    bool young = sft_node_true(one, "young"), removed = sft_node_true(one, "removed");
    cli_styled(out, CLI_BOLD, path);
    cli_text(out, young ? ": young: " : removed ? ": removed: " : ": garbage: ");
    cli_fill(out, "%, ", sft_node_text(one, "name"));
    size_of(out, number_of(one, "bytes"));
    cli_text(out, "\n");
}

void dataset_print_gc(cli *c, const char *path, const sft_node *result) {
    uint64_t old = 0;
    for (const sft_node *one = cli_first(result, "garbage"); one; one = one->next) {
        gc_line(c, path, one);
        old += !sft_node_true(one, "young");
    }
    cli_styled(&c->out, CLI_BOLD, path);
    if (!old) {
        cli_text(&c->out, ": nothing to remove\n");
        return;
    }
    cli_text(&c->out, c->set.remove ? ": removed " : ": ");
    size_of(&c->out, number_of(result, "bytes"));
    cli_text(&c->out, c->set.remove ? "\n" : " of garbage; --delete removes it\n");
}

/* ── compact ── */

void dataset_print_compact(cli *c, const char *path, const sft_node *result) {
    cli_out *out = &c->out;
    cli_styled(out, CLI_BOLD, path);
    if (!number_of(result, "rewritten")) {
        sft_span left = sft_node_text(result, "left");
        cli_text(out, ": nothing to do");
        if (left.len) cli_text(out, ": ");
        if (left.len) cli_escaped(out, left);
        cli_text(out, "\n");
        return;
    }
    cli_text(out, ": from ");
    count_of(out, number_of(result, "shards_before"), "shard");
    cli_text(out, " of ");
    size_of(out, number_of(result, "bytes_before"));
    cli_printf(out, " to %" PRIu64 " of ", number_of(result, "shards_after"));
    size_of(out, number_of(result, "bytes_after"));
    cli_text(out, ", ");
    count_of(out, number_of(result, "tensors_dropped"), "shadowed tensor");
    bool removed = sft_node_true(result, "index_removed");
    cli_text(out, removed ? " dropped; the index was removed: write a new one\n" : " dropped\n");
}

/* ── ls ── */

static void ls_tensor(cli *c, const char *shard, const sft_tensor *t, size_t width) {
    char shape[CLI_SHAPE_SIZE];
    cli_out *out = &c->out;
    size_t used = cli_escaped_width(t->name);
    cli_escaped(out, t->name);
    cli_pad(out, (used < width ? width - used : 0) + 2);
    cli_printf(out, "%-5s  ", sft_dtype_describe(t->dtype)->name);
    cli_put(out, shape, cli_shape_text(t->shape, t->rank, shape));
    cli_printf(out, "  %" PRIu64 "-%" PRIu64 "  ", t->offset, t->offset + (t->end - t->begin));
    cli_path(out, shard, "\n");
}

void dataset_print_shard(cli *c, const char *name, const sft_file *file) {
    size_t width = 0;
    for (size_t i = 0; i < sft_file_tensor_count(file); i++) {
        const sft_tensor *t = sft_file_tensor_at(file, i);
        size_t used = cli_is_matched(&c->set, t->name) ? cli_escaped_width(t->name) : 0;
        if (used > width) width = used < 72 ? used : 72;
    }
    for (size_t i = 0; i < sft_file_tensor_count(file) && !cli_is_over(c); i++) {
        const sft_tensor *t = sft_file_tensor_at(file, i);
        if (!cli_is_matched(&c->set, t->name)) continue;
        ls_tensor(c, name, t, width);
        c->matched++;
    }
}
