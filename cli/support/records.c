/* The user's records: found, held to who may write them, and read once a run. Tests:
 * tests/cli/records. */
#include "support/records.h"

#include "base/order.h"
#include "os/io.h"
#include "os/os.h"
#include "support/files.h"
#include "support/hints.h"
#include "support/words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const cli_option cli_records_options[] = {
    CLI_TAKES_MANY(0, "records", "PATH", records,
      "also know the models of these records (safetensors help records): a file, or those of a "
      "folder that end in .txt"),
    CLI_ON(0, "no-user-records", no_user_records,
      "do not read the records of your configuration folder"),
    CLI_OPTIONS_END,
};

/* The run's own records: titles and words ask them, too. */
static const sfti_records *in_force;

const sfti_records *cli_records(void) {
    return in_force ? in_force : sfti_records_built_in();
}

/* ── Files ── */

static bool keep_text(cli_record_files *files, const char *path, const sft_buffer *bytes) {
    sft_records_text *texts = sfti_arena_grow(&files->arena, files->texts, files->count, 1,
                                              &files->cap, sizeof *texts);
    if (texts) files->texts = texts;
    char *name = sfti_arena_copy(&files->arena, path, strlen(path));
    char *text = sfti_arena_copy(&files->arena, bytes->data ? bytes->data : "", bytes->len);
    if (!texts || !name || !text) return false;
    texts[files->count++] = (sft_records_text){ { text, bytes->len }, name };
    return true;
}

static sft_code add_file(cli *c, cli_record_files *files, const char *path, sft_error *err) {
    sft_buffer bytes;
    sft_code code = cli_read_file(c, path, SFTI_RECORDS_BYTES, &bytes, err);
    if (!code && !keep_text(files, path, &bytes)) code = sfti_fail_memory(err, bytes.len);
    sft_buffer_free(&bytes);
    return code;
}

/* A file of the user's own folder: through no link, and written by nobody else. */
static sft_code add_own(cli *c, cli_record_files *files, const char *folder, const char *name,
                        sft_error *err) {
    int fd;
    os_info info;
    sft_buffer bytes = { .alloc = c->alloc };
    int error = sfti_os_open_beneath(folder, name, OS_BENEATH_OWN, &fd);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    sft_code code = SFT_OK;
    error = sfti_os_info_fd(fd, &info);
    if (error) code = sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    else if (info.kind == OS_FILE && (info.owner != sfti_os_user() || info.mode & 022))
        code = sfti_fail(err, SFT_BAD_ARGUMENT,
                         "expected a file of yours that nobody else may write to");
    if (!code) code = cli_read_beside(c, fd, SFTI_RECORDS_BYTES, &bytes, err);
    (void)sfti_os_close(fd);
    char *path = code ? NULL : cli_join_path(&files->arena, sft_span_cstr(folder), name);
    if (!code && (!path || !keep_text(files, path, &bytes)))
        code = sfti_fail_memory(err, bytes.len);
    sft_buffer_free(&bytes);
    return code;
}

typedef struct record_names {
    sfti_arena *arena;
    const char **names;
    size_t count, cap;
} record_names;

static int take_name(void *ctx, const char *name, os_kind kind) {
    record_names *all = ctx;
    sft_span text = sft_span_cstr(name);
    if (kind == OS_DIR || *name == '.' || !cli_ends_with(text, ".txt")) return 0;
    const char **names = sfti_arena_grow(all->arena, all->names, all->count, 1, &all->cap,
                                         sizeof *names);
    if (names) all->names = names;
    char *copy = sfti_arena_copy(all->arena, name, text.len);
    if (!names || !copy) return ENOMEM;
    size_t at = all->count++;
    for (; at > 0 && sfti_bytes_compare(sft_span_cstr(names[at - 1]), text) > 0; at--)
        names[at] = names[at - 1];
    names[at] = copy;
    return all->count > SFTI_RECORDS_TEXTS ? E2BIG : 0;
}

/* *failed: the file that could not be read, if it is one. */
static sft_code add_folder(cli *c, cli_record_files *files, const char *folder, bool own,
                           const char **failed, sft_error *err) {
    record_names all = { .arena = &files->arena };
    int error = sfti_os_list(folder, take_name, &all);
    if (error == E2BIG)
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected at most %d files of records, found more",
                         SFTI_RECORDS_TEXTS - 1);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "list");
    for (size_t i = 0; i < all.count; i++) {
        char *path = cli_join_path(&files->arena, sft_span_cstr(folder), all.names[i]);
        os_info info;
        if (!path) return sfti_fail_memory(err, 1);
        /* A pipe is nobody's file, and would be waited for. */
        if (!own && !sfti_os_info_path(path, true, &info) && info.kind != OS_FILE) continue;
        sft_code code = own ? add_own(c, files, folder, all.names[i], err)
                            : add_file(c, files, path, err);
        if (code) {
            *failed = path;
            return code;
        }
    }
    return SFT_OK;
}

sft_code cli_record_files_add(cli *c, cli_record_files *files, const char *path,
                              const char **failed, sft_error *err) {
    os_info info;
    *failed = path;
    files->arena.alloc = c->alloc;
    int error = sfti_os_info_path(path, true, &info);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    return info.kind == OS_DIR ? add_folder(c, files, path, false, failed, err)
                               : add_file(c, files, path, err);
}

void cli_record_files_free(cli_record_files *files) {
    sfti_arena_free(&files->arena);
    *files = (cli_record_files){ .texts = NULL };
}

/* ── The user's folder ── */

/* None is no failure; one that others may write to is not read, which is told. */
static bool add_own_folder(cli *c, cli_record_files *files) {
    char folder[4096];
    os_info info;
    sft_error err = SFT_ERROR_INIT;
    const char *failed = folder;
    bool windows = SFTI_OS_PATHS == SFTI_PATHS_WINDOWS;
    const char *base = sfti_os_env(windows ? "APPDATA" : "XDG_CONFIG_HOME"), *more = "";
    if (!windows && (!base || *base != '/')) {
        base = sfti_os_env("HOME");
        more = "/.config";
    }
    if (!base || !*base) return true;
    int len = snprintf(folder, sizeof folder, "%s%s/safetensors/records", base, more);
    if (len < 0 || (size_t)len >= sizeof folder || sfti_os_info_path(folder, false, &info))
        return true;
    sft_code code = SFT_OK;
    char *last = folder + len - strlen("/records");
    for (int part = 0; !code && part < 2; part++) {
        *last = part ? '/' : 0;
        if (sfti_os_info_path(folder, false, &info) || info.kind != OS_DIR
            || info.owner != sfti_os_user() || info.mode & 022)
            code = sfti_fail(&err, SFT_BAD_ARGUMENT,
                             "expected a folder of yours, no link, that nobody else may write to");
    }
    if (!code) code = add_folder(c, files, folder, true, &failed, &err);
    if (code) {
        cli_hint(&err, CLI_HINT_USER_RECORDS);
        cli_complain(c, failed, &err);
    }
    return !code;
}

/* ── A run ── */

void cli_records_end(cli *c) {
    sft_records_close(c->records);
    c->records = NULL;
    in_force = NULL;
}

bool cli_records_begin(cli *c) {
    bool asked = false;
    for (size_t i = 0; i < CLI_TABLES_MOST && c->command->tables[i]; i++)
        asked = asked || c->command->tables[i] == cli_records_options;
    if (!asked) return true;
    cli_record_files files = { .texts = NULL };
    sft_error err = SFT_ERROR_INIT;
    files.arena.alloc = c->alloc;
    bool fine = c->set.no_user_records || add_own_folder(c, &files);
    size_t own = files.count;
    for (size_t i = 0; fine && i < c->set.records.count; i++) {
        const char *failed;
        fine = !cli_record_files_add(c, &files, c->set.records.items[i], &failed, &err);
        if (!fine) cli_complain(c, failed, &err);
    }
    if (fine && files.count > 0
        && sft_records_open(files.texts, files.count, &c->alloc, &c->records, &err)) {
        /* whether those that are named can be read alone */
        if (own > 0
            && !sft_records_open(files.texts + own, files.count - own, &c->alloc, &c->records,
                                 NULL))
            cli_hint(&err, CLI_HINT_USER_RECORDS);
        cli_records_end(c);
        cli_complain(c, NULL, &err);
        fine = false;
    }
    cli_record_files_free(&files);
    in_force = c->records ? sfti_records_of(c->records) : NULL;
    return fine;
}
