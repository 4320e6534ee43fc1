/* dataset: what its verbs say to people. Tests: tests/cli/dataset. */
#include "commands/dataset/dataset.h"
#include "support/models.h"
#include "support/print.h"
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

static void info_column(cli_out *out, const sft_node *column, bool first) {
    sft_span dtype = sft_node_text(column, "dtype"), type = sft_node_text(column, "type");
    put_label(out, first ? "columns" : "");
    cli_fill(out, "%  ", column->key);
    if (type.len) {
        cli_fill(out, "%\n", type);
        return;
    }
    if (dtype.len) cli_escaped(out, dtype);
    else cli_text(out, "any dtype");
    cli_text(out, " ");
    const sft_node *shape = sft_node_get(column, "shape");
    bool any = !shape || shape->type != SFT_NODE_LIST;
    for (const sft_node *one = any ? NULL : shape->first; one; one = one->next) {
        cli_text(out, one == shape->first ? "[" : ",");
        cli_put(out, one->text.data, one->text.len);
    }
    cli_text(out, any ? "any shape\n" : shape->first ? "]\n" : "[]\n");
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

void dataset_label(cli *c, const char *path, const sft_node *result) {
    cli_out *out = &c->out;
    sft_span mode = sft_node_text(result, "mode");
    cli_path_bold(out, path, "  ");
    if (mode.len) cli_escaped(out, mode);
    if (mode.len) cli_printf(out, " dataset, version %" PRIu64 "\n", number_of(result, "version"));
    else cli_text(out, "dataset of the Scala connector\n");
    uint64_t padded = number_of(result, "padded_samples");
    uint64_t dropped = number_of(result, "dropped_samples");
    uint64_t deleted = number_of(result, "deleted_samples");
    put_label(out, "samples");
    cli_printf(out, "%" PRIu64, number_of(result, "samples"));
    if (padded) cli_printf(out, ", %" PRIu64 " of them padding", padded);
    if (deleted) cli_printf(out, "; %" PRIu64 " deleted", deleted);
    if (dropped) cli_printf(out, "; %" PRIu64 " dropped by tail_strategy", dropped);
    cli_text(out, "\n");
    uint64_t shadowed = number_of(result, "shadowed");
    put_label(out, "shards");
    cli_printf(out, "%" PRIu64 ", ", number_of(result, "shards"));
    size_of(out, number_of(result, "bytes"));
    cli_text(out, "\n");
    if (sft_node_text(result, "tensors").len > 0) {
        put_label(out, "tensors");
        cli_printf(out, "%" PRIu64, number_of(result, "tensors"));
        if (shadowed) cli_printf(out, ", %" PRIu64 " of them shadowed by later ones", shadowed);
        cli_text(out, "\n");
    }
    info_how(out, result);
    const sft_node *columns = cli_first(result, "columns");
    for (const sft_node *one = columns; one; one = one->next)
        info_column(out, one, one == columns);
    if (sft_node_text(result, "segments").len > 0) {
        put_label(out, "manifest");
        count_of(out, number_of(result, "segments"), "segment");
        cli_text(out, "\n");
    }
    sft_span generator = sft_node_text(result, "generator"), index = sft_node_text(result, "index");
    put_label(out, "index");
    if (index.len) cli_escaped(out, index);
    else cli_text(out, generator.len ? "none" : "not told");
    cli_text(out, "\n");
    if (!generator.len) return;
    put_label(out, "written by");
    cli_fill(out, "%, commit %\n", generator, sft_node_text(result, "commit"));
}

void dataset_print_info(cli *c, const char *path, const sft_node *result) {
    if (c->results++) cli_text(&c->out, "\n");
    dataset_label(c, path, result);
}

/* ── verify ── */

static void verify_lines(cli_out *out, const char *path, const sft_node *result, const char *key,
                         uint64_t count) {
    uint64_t shown = 0;
    for (const sft_node *one = cli_first(result, key); one; one = one->next, shown++) {
        cli_path_bold(out, path, ": ");
        cli_escaped(out, sft_node_text(one, "shard"));
        cli_text(out, strcmp(key, "orphans") == 0 ? ": note: " : ": ");
        sft_span message = sft_node_text(one, "message"); /* escaped already */
        cli_put(out, message.data, message.len);
        cli_text(out, "\n");
    }
    if (shown == count) return;
    cli_path_bold(out, path, ": and ");
    cli_printf(out, "%" PRIu64 " more\n", count - shown);
}

void dataset_print_verify(cli *c, const char *path, const sft_node *result) {
    cli_out *out = &c->out;
    verify_lines(out, path, result, "findings", number_of(result, "finding_count"));
    verify_lines(out, path, result, "orphans", number_of(result, "orphan_count"));
    if (!sft_node_true(result, "ok")) return;
    cli_path_bold(out, path, ": intact: ");
    count_of(out, number_of(result, "samples"), "sample");
    cli_text(out, " in ");
    count_of(out, number_of(result, "shards"), "shard");
    cli_text(out, ", ");
    size_of(out, number_of(result, "bytes"));
    if (sft_node_true(result, "deep")) {
        cli_text(out, ", ");
        count_of(out, number_of(result, "digests"), "digest");
        cli_text(out, " compared");
    }
    cli_text(out, "\n");
}

/* ── gc ── */

/* ── versions ── */

/* A day since 1970 as year, month and day (Howard Hinnant's civil_from_days). */
static void put_day(cli_out *out, uint64_t day) {
    uint64_t z = day + 719468, era = z / 146097, doe = z % 146097;
    uint64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    uint64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    uint64_t month = mp < 10 ? mp + 3 : mp - 9, year = yoe + era * 400 + (month <= 2);
    cli_printf(out, "%04" PRIu64 "-%02" PRIu64 "-%02" PRIu64, year, month,
               doy - (153 * mp + 2) / 5 + 1);
}

void dataset_print_versions(cli *c, const char *path, const sft_node *result) {
    cli_out *out = &c->out;
    for (const sft_node *one = cli_first(result, "versions"); one; one = one->next) {
        uint64_t s = number_of(one, "committed");
        cli_path_bold(out, path, ": ");
        cli_printf(out, "%" PRIu64 "  ", number_of(one, "version"));
        if (s) {
            put_day(out, s / 86400);
            cli_printf(out, " %02" PRIu64 ":%02" PRIu64 ":%02" PRIu64 " UTC", s / 3600 % 24,
                       s / 60 % 60, s % 60);
        } else {
            cli_text(out, "at an unknown time");
        }
        cli_text(out, "  ");
        count_of(out, number_of(one, "samples"), "sample");
        cli_text(out, ", ");
        count_of(out, number_of(one, "shards"), "shard");
        cli_text(out, ", ");
        size_of(out, number_of(one, "bytes"));
        cli_text(out, one->next ? "\n" : ", in force\n");
    }
}

void dataset_print_gc(cli *c, const char *path, const sft_node *result) {
    cli_out *out = &c->out;
    uint64_t old = 0;
    for (const sft_node *one = cli_first(result, "garbage"); one; one = one->next) {
        bool young = sft_node_true(one, "young"), removed = sft_node_true(one, "removed");
        cli_path_bold(out, path, young ? ": young: " : removed ? ": removed: " : ": garbage: ");
        cli_fill(out, "%, ", sft_node_text(one, "name"));
        size_of(out, number_of(one, "bytes"));
        cli_text(out, "\n");
        old += !young;
    }
    const bool dry = c->set.dry_run != 0;
    const char *did = !c->set.remove ? ": " : dry ? ": would remove " : ": removed ";
    cli_path_bold(out, path, "%s", old ? did : ": nothing to remove\n");
    if (!old) return;
    size_of(out, number_of(result, "bytes"));
    cli_text(out, c->set.remove ? "\n" : " of garbage; --delete removes it\n");
}

/* ── compact ── */

static void compact_form(cli_out *out, const sft_node *result, const char *key) {
    if (sft_node_text(result, key).len) count_of(out, number_of(result, key), "segment");
    else cli_text(out, "one list of shards");
}

/* Whether the manifest changes its segments. */
static bool compact_manifest_line(cli *c, const char *path, const sft_node *result) {
    cli_out *out = &c->out;
    sft_span before = sft_node_text(result, "segments_before");
    if (sft_span_equal(before, sft_node_text(result, "segments_after"))) return false;
    cli_path_bold(out, path, sft_node_true(result, "dry_run") ? ": the manifest would go from "
                                                         : ": manifest: from ");
    compact_form(out, result, "segments_before");
    cli_text(out, " to ");
    compact_form(out, result, "segments_after");
    cli_text(out, "\n");
    return true;
}

void dataset_print_compact(cli *c, const char *path, const sft_node *result) {
    cli_out *out = &c->out;
    bool rewritten = number_of(result, "rewritten") != 0, dry = sft_node_true(result, "dry_run");
    if (compact_manifest_line(c, path, result) && !rewritten) return;
    if (!rewritten) {
        sft_span left = sft_node_text(result, "left");
        cli_path_bold(out, path, ": nothing to do");
        if (left.len) cli_text(out, ": ");
        if (left.len) cli_escaped(out, left);
        cli_text(out, "\n");
        return;
    }
    const sft_node *groups = dry ? cli_first(result, "groups") : NULL;
    for (const sft_node *group = groups; group; group = group->next) {
        uint64_t into = number_of(group, "into");
        cli_path_bold(out, path, into ? ": would become " : ": would be removed:\n");
        if (into) count_of(out, into, "shard");
        if (into) cli_text(out, ":\n");
        for (const sft_node *one = cli_first(group, "shards"); one; one = one->next)
            cli_fill(out, "  %\n", one->text);
    }
    cli_path_bold(out, path, dry ? ": would go from " : ": from ");
    count_of(out, number_of(result, "shards_before"), "shard");
    cli_text(out, " of ");
    size_of(out, number_of(result, "bytes_before"));
    cli_printf(out, " to %" PRIu64, number_of(result, "shards_after"));
    if (!dry) cli_text(out, " of ");
    if (!dry) size_of(out, number_of(result, "bytes_after"));
    cli_text(out, ", ");
    count_of(out, number_of(result, "tensors_dropped"), "shadowed tensor");
    cli_text(out, " dropped");
    const uint64_t deleted = number_of(result, "deleted_dropped");
    if (deleted) cli_text(out, ", ");
    if (deleted) count_of(out, deleted, "deleted row");
    if (deleted) cli_text(out, " removed");
    const uint64_t merged = number_of(result, "columns_merged");
    if (merged) cli_text(out, ", ");
    if (merged) count_of(out, merged, "column");
    if (merged) cli_text(out, " of shards merged into them");
    if (sft_node_true(result, "index_removed"))
        cli_text(out, dry ? "; the index would be removed"
                          : "; the index was removed: write a new one");
    cli_text(out, "\n");
}

/* ── delete ── */

void dataset_print_delete(cli *c, const char *path, const sft_node *result) {
    cli_out *out = &c->out;
    const uint64_t deleted = number_of(result, "deleted");
    const bool dry = sft_node_true(result, "dry_run");
    cli_path_bold(out, path, !deleted ? ": nothing to delete"
                             : dry    ? ": would delete " : ": deleted ");
    if (deleted) {
        count_of(out, deleted, "row");
        cli_printf(out, " of %" PRIu64, number_of(result, "rows_before"));
        if (!dry) cli_printf(out, ", now version %" PRIu64, number_of(result, "version"));
    }
    cli_text(out, "\n");
}

/* ── add-column ── */

void dataset_print_add(cli *c, const char *path, const sft_node *result) {
    cli_out *out = &c->out;
    const bool dry = sft_node_true(result, "dry_run");
    cli_path_bold(out, path, dry ? ": would add " : ": added ");
    for (const sft_node *one = cli_first(result, "columns"); one; one = one->next)
        cli_fill(out, one->next ? "%, " : "%", one->text);
    cli_text(out, " to ");
    count_of(out, number_of(result, "rows"), "row");
    cli_text(out, " in ");
    count_of(out, number_of(result, "files"), "file");
    if (!dry) cli_text(out, " of ");
    if (!dry) size_of(out, number_of(result, "bytes"));
    if (!dry) cli_printf(out, ", now version %" PRIu64, number_of(result, "version"));
    if (sft_node_true(result, "index_removed"))
        cli_text(out, dry ? "; the index would be removed" : "; the index was removed");
    cli_text(out, "\n");
}

/* ── ls ── */

static void ls_row(cli *c, const dataset_listed *l, size_t i) {
    const sft_tensor *t = sft_file_tensor_at(l->file, i);
    uint64_t bytes = t->end - t->begin;
    char shape[CLI_SHAPE_SIZE];
    cli_cell(c, sft_span_cstr(l->path));
    cli_text(&c->out, "\t");
    cli_cell(c, sft_span_cstr(l->name));
    cli_text(&c->out, "\t");
    cli_cell(c, t->name);
    cli_printf(&c->out, "\t%s\t", sft_dtype_describe(t->dtype)->name);
    cli_put(&c->out, shape, cli_shape_text(t->shape, t->rank, shape));
    bool replaced = sft_dataset_is_replaced(l->replaced, l->shard, i);
    bool deleted = sft_dataset_is_deleted(l->replaced, l->shard, i);
    cli_printf(&c->out, "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%s\t%" PRIu64 "\n", bytes,
               t->offset, t->offset + bytes, replaced ? "yes" : "no",
               deleted ? 1 : l->deleted);
}

typedef struct ls_widths {
    size_t name, shape;
} ls_widths;

static void put_cell(cli_out *out, sft_span text, size_t width) {
    size_t used = cli_escaped_width(text);
    cli_escaped(out, text);
    cli_pad(out, (used < width ? width - used : 0) + 2);
}

static void ls_tensor(cli *c, const dataset_listed *l, size_t i, const ls_widths *w) {
    const sft_tensor *t = sft_file_tensor_at(l->file, i);
    char shape[CLI_SHAPE_SIZE];
    cli_out *out = &c->out;
    put_cell(out, t->name, w->name);
    cli_printf(out, "%-5s  ", sft_dtype_describe(t->dtype)->name);
    size_t len = cli_shape_text(t->shape, t->rank, shape);
    put_cell(out, (sft_span){ shape, len }, w->shape);
    cli_printf(out, "%" PRIu64 "-%" PRIu64 "  ", t->offset, t->offset + (t->end - t->begin));
    bool replaced = sft_dataset_is_replaced(l->replaced, l->shard, i);
    bool deleted = sft_dataset_is_deleted(l->replaced, l->shard, i);
    cli_path(out, l->name, replaced ? "  (replaced)\n" : deleted ? "  (deleted)\n"
                           : "");
    if (replaced || deleted) return;
    if (l->deleted) cli_text(out, "  (");
    if (l->deleted) count_of(out, l->deleted, "row");
    cli_text(out, l->deleted ? " deleted)\n" : "\n");
}

void dataset_print_shard(cli *c, const dataset_listed *shard) {
    ls_widths w = { 4, 5 };
    char shape[CLI_SHAPE_SIZE];
    bool tsv = c->set.format == CLI_TSV;
    for (size_t i = 0; i < sft_file_tensor_count(shard->file); i++) {
        const sft_tensor *t = sft_file_tensor_at(shard->file, i);
        if (!cli_is_matched(&c->set, t->name)) continue;
        size_t name = cli_escaped_width(t->name), len = cli_shape_text(t->shape, t->rank, shape);
        if (name > w.name) w.name = name < 72 ? name : 72;
        if (len > w.shape) w.shape = len < 40 ? len : 40;
    }
    cli_fit fit;
    if (!tsv) cli_fit_begin(&fit, c, 4);
    for (size_t i = 0; i < sft_file_tensor_count(shard->file) && !cli_is_over(c); i++) {
        if (!cli_is_matched(&c->set, sft_file_tensor_at(shard->file, i)->name)) continue;
        bool first = c->matched++ == 0;
        if (first && tsv) {
            cli_text(&c->out, "path\tshard\tname\tdtype\tshape\tbytes\tbegin\tend\treplaced\t"
                              "deleted_samples\n");
        } else if (first) {
            cli_style_on(&c->out, CLI_DIM);
            put_cell(&c->out, sft_span_cstr("NAME"), w.name);
            put_cell(&c->out, sft_span_cstr("DTYPE"), 5);
            put_cell(&c->out, sft_span_cstr("SHAPE"), w.shape);
            cli_text(&c->out, "BYTES  SHARD");
            cli_style_off(&c->out, CLI_DIM);
            cli_text(&c->out, "\n");
        }
        if (tsv) ls_row(c, shard, i);
        else ls_tensor(c, shard, i, &w);
    }
    if (!tsv) cli_fit_end(&fit);
}
