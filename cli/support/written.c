/* What is printed of models that were written, or with --dry-run would be. */
#include "support/output.h"

#include "keys/digest_keys.h"

#include <inttypes.h>

cli_written_file cli_written_parts(const char *path, const sft_part *parts, size_t count,
                                   const uint32_t *shard_of, uint32_t shard) {
    cli_written_file file = { path, 0, 0 };
    for (size_t i = 0; i < count; i++) {
        if (shard_of && shard_of[i] != shard) continue;
        file.tensors++;
        file.bytes += cli_spec_bytes(&parts[i].spec);
    }
    return file;
}

static cli_written_file sum_files(const cli_written *w) {
    cli_written_file sum = { w->output, 0, 0 };
    for (size_t i = 0; i < w->file_count; i++) {
        sum.tensors += w->files[i].tensors;
        sum.bytes += w->files[i].bytes;
    }
    return sum;
}

/* ── A line ── */

static void say_size(cli *c, const cli_written_file *file) {
    char buffer[CLI_NUMBER_SIZE];
    cli_printf(&c->out, "%zu tensor%s, %s\n", file->tensors, file->tensors == 1 ? "" : "s",
               cli_size_text(file->bytes, buffer));
}

static void say_human(cli *c, const cli_written *w) {
    cli_written_file sum = sum_files(w);
    bool dry = c->set.dry_run != 0, converts = w->dtype < SFT_DTYPE_COUNT;
    if (dry && w->is_set && !converts) {
        for (size_t i = 0; i < w->file_count; i++) {
            const cli_written_file *file = &w->files[i];
            bool gone = w->fresh && file->tensors == 0;
            cli_path(&c->out, file->path, ": %s, ",
                     gone       ? "would be removed"
                     : w->fresh ? "would be rewritten under a new name"
                                : "would be written");
            if (gone) cli_text(&c->out, "no tensors left\n");
            else say_size(c, file);
        }
        return;
    }
    if (w->file_count == 0) {
        cli_path(&c->out, w->output, ": nothing to change%s\n",
                 c->set.output ? ", not written (--copy writes it all the same)" : "");
        return;
    }
    cli_path(&c->out, w->output, ": %s%s, ", dry ? "would be " : "",
             w->fresh ? "updated" : "written");
    if (w->fresh) {
        size_t kept = 0;
        for (size_t i = 0; i < w->file_count; i++) kept += w->files[i].tensors > 0;
        size_t gone = w->file_count - kept;
        if (kept > 0) cli_printf(&c->out, "%zu file%s rewritten, ", kept, kept == 1 ? "" : "s");
        if (gone > 0 && kept > 0) cli_printf(&c->out, "%zu removed, ", gone);
        if (kept == 0) cli_printf(&c->out, "%zu file%s removed\n", gone, gone == 1 ? "" : "s");
        if (kept == 0) return;
    }
    if (w->is_set && !w->fresh)
        cli_printf(&c->out, "%zu file%s and an index, ", w->file_count,
                   w->file_count == 1 ? "" : "s");
    if (!converts) {
        say_size(c, &sum);
        return;
    }
    char before[CLI_NUMBER_SIZE], after[CLI_NUMBER_SIZE];
    cli_printf(&c->out, "%" PRIu64 " of %zu tensor%s cast to %s, %s instead of %s\n", w->cast,
               sum.tensors, sum.tensors == 1 ? "" : "s",
               sft_dtype_describe((sft_dtype)w->dtype)->name, cli_size_text(sum.bytes, after),
               cli_size_text(w->bytes_before, before));
}

/* ── Digests of what was ── */

void cli_put_dropped(const cli *c, sfti_json_writer *w) {
    const char *key;
    unsigned bit;
    sfti_json_put_open(w, "dropped", '[');
    for (size_t i = 0; (key = sfti_digest_key_at(i, &bit)) != NULL; i++)
        if (c->dropped & bit) sfti_json_cstr(w, key);
    sfti_json_close(w, ']');
}

void cli_say_dropped(cli *c, const char *path) {
    const char *key, *comma = "";
    unsigned bit;
    cli_flush(&c->out);
    cli_text(&c->err, "safetensors: note: ");
    cli_path(&c->err, path, c->set.dry_run ? ": would leave out " : ": left out ");
    for (size_t i = 0; (key = sfti_digest_key_at(i, &bit)) != NULL; i++) {
        if (!(c->dropped & bit)) continue;
        cli_printf(&c->err, "%s%s", comma, key);
        comma = ", ";
    }
    cli_text(&c->err, ", recorded before the change\n");
    cli_flush(&c->err);
}

void cli_say_written(cli *c, const cli_written *written) {
    cli_object object;
    if (written->file_count > 0) c->changed++;
    else c->unchanged++;
    if (!cli_is_json(c)) {
        say_human(c, written);
        if (c->dropped) cli_say_dropped(c, written->output);
        c->dropped = 0;
        return;
    }
    cli_written_file sum = sum_files(written);
    sfti_json_writer *w = cli_object_begin(&object, c, written->input);
    sfti_json_put_cstr(w, "output", written->output);
    sfti_json_put_bool(w, "dry_run", c->set.dry_run != 0);
    sfti_json_put_uint(w, "tensors", sum.tensors);
    sfti_json_put_uint(w, "bytes", sum.bytes);
    sfti_json_put_open(w, "files", '[');
    for (size_t i = 0; i < written->file_count; i++) {
        if (written->fresh && written->files[i].tensors == 0) continue;
        sfti_json_open(w, '{');
        sfti_json_path(w, written->files[i].path);
        sfti_json_put_uint(w, "tensors", written->files[i].tensors);
        sfti_json_put_uint(w, "bytes", written->files[i].bytes);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
    if (written->fresh) sfti_json_put_open(w, "removed", '[');
    for (size_t i = 0; written->fresh && i < written->file_count; i++)
        if (written->files[i].tensors == 0) sfti_json_cstr(w, written->files[i].path);
    if (written->fresh) sfti_json_close(w, ']');
    if (written->dtype < SFT_DTYPE_COUNT) {
        sfti_json_put_cstr(w, "dtype", sft_dtype_describe((sft_dtype)written->dtype)->name);
        sfti_json_put_uint(w, "cast", written->cast);
        sfti_json_put_uint(w, "bytes_before", written->bytes_before);
    }
    if (c->dropped) cli_put_dropped(c, w);
    if (written->more) written->more(written->ctx, w);
    cli_object_end(&object);
    c->dropped = 0;
}
