#include "edit.h"

#include "os/os.h"
#include "output.h"

#include <errno.h>
#include <string.h>

/* A model with an index, getting other names for its tensors. */
typedef struct set_renaming {
    cli *c;
    const char *index;
    const sft_set *set;
    const sft_pair *names;
    size_t count;
    sfti_arena arena;
    uint32_t *shard_of; /* of each name */
    sft_pair *shards; /* file names, before and after, of those written */
    char **written;   /* their paths */
    size_t written_count;
} set_renaming;

static char *set_path(set_renaming *r, const char *folder, size_t folder_len, const char *name,
                      const char *more) {
    size_t len = strlen(name), rest = strlen(more);
    char *path = sfti_arena_take(&r->arena, folder_len + len + rest + 2);
    if (!path) return NULL;
    memcpy(path, folder, folder_len);
    memcpy(path + folder_len, name, len);
    memcpy(path + folder_len + len, more, rest + 1);
    return path;
}

static size_t folder_bytes(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Name of a shard as the index has it: its path beneath the index's folder. */
static const char *shard_name(const set_renaming *r, size_t i) {
    return sft_set_shard_path(r->set, i) + folder_bytes(r->index);
}

/* ── Fresh names: NAME-<8 hex>.safetensors ── */

static bool is_hex_tail(const char *at) {
    return at[0] == '-' && strspn(at + 1, "0123456789abcdef") == 8;
}

static char *fresh_name(set_renaming *r, const char *name) {
    static const char hex[] = "0123456789abcdef";
    uint8_t bits[4];
    char tail[24];
    const char *dot = strrchr(name, '.'), *slash = strrchr(name, '/');
    size_t stem = dot && (!slash || dot > slash) ? (size_t)(dot - name) : strlen(name);
    if (os_random(bits, sizeof bits)) return NULL;
    if (stem > 9 && is_hex_tail(name + stem - 9)) stem -= 9;
    tail[0] = '-';
    for (size_t i = 0; i < 4; i++) {
        tail[1 + 2 * i] = hex[bits[i] >> 4];
        tail[2 + 2 * i] = hex[bits[i] & 15];
    }
    memcpy(tail + 9, ".safetensors", 13);
    return set_path(r, name, stem, tail, "");
}

/* ── Shards ── */

static bool is_touched(const set_renaming *r, size_t shard) {
    for (size_t i = 0; i < r->count; i++)
        if (r->shard_of[i] == shard) return true;
    return false;
}

static sft_code ask_shard(const set_renaming *r, size_t shard, sft_edit *edit,
                          sft_error *err) {
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < r->count; i++) {
        if (r->shard_of[i] != shard) continue;
        code = sft_edit_rename(edit, r->names[i].key, r->names[i].value, err);
    }
    return code;
}

static sft_code save_shard(set_renaming *r, size_t shard, char *path, sft_error *err) {
    sft_edit_options options = cli_edit_options(r->c);
    sft_path_options to = SFT_PATH_OPTIONS_INIT;
    sft_edit *edit = NULL;
    options.link = SFT_LINK_FOLLOW;
    options.force = true; /* it is only read */
    to.no_sync = r->c->set.no_sync != 0;
    to.no_clobber = true;
    to.alloc = &r->c->alloc;
    sft_code code = sft_edit_open(sft_set_shard_path(r->set, shard), &options, &edit, err);
    if (!code) code = ask_shard(r, shard, edit, err);
    if (!code) code = sft_edit_save(edit, path, &to, NULL, NULL, err);
    /* Also after a failure: it may be there, and only not be synced. */
    if (code != SFT_EXISTS) r->written[r->written_count++] = path;
    sft_edit_close(edit);
    return code;
}

static void unwrite(const set_renaming *r) {
    for (size_t i = 0; i < r->written_count; i++) (void)os_unlink(r->written[i]);
}

/* ── What is no longer named ── */

/* Is a shard named by some index of the folder? */
typedef struct naming {
    set_renaming *r;
    size_t folder_len; /* of r->index */
    const char *shard;
    bool named;
    sft_code code;
    sft_error *err;
} naming;

static sft_code index_names_shard(set_renaming *r, const char *path, const char *shard,
                                  bool *named, sft_error *err) {
    sft_set_options options = cli_set_options(r->c);
    sft_index_names *names = NULL;
    sft_code code = sft_index_read(path, &options, &names, err);
    if (code) return code;
    for (size_t i = 0; i < sft_index_shard_count(names); i++)
        *named = *named || strcmp(sft_index_shard(names, i), shard) == 0;
    sft_index_free(names);
    return SFT_OK;
}

static int look_at_index(void *ctx, const char *name, os_kind kind) {
    naming *n = ctx;
    if (!sft_is_index_path(name) || kind == OS_DIR) return 0;
    char *path = set_path(n->r, n->r->index, n->folder_len, name, "");
    n->code = path ? index_names_shard(n->r, path, n->shard, &n->named, n->err)
                   : sfti_fail_memory(n->err, strlen(name));
    return n->code ? EIO : 0;
}

static sft_code set_os_fail(sft_error *err, sft_code code, int error, const char *what) {
    char room[128];
    return sfti_fail_os(err, code, error, os_error_text(error, room, sizeof room), what);
}

static sft_code remove_old_shard(set_renaming *r, const char *folder, const char *shard,
                                 sft_error *err) {
    naming n = { r, folder_bytes(r->index), shard, false, SFT_OK, err };
    char *path = set_path(r, r->index, n.folder_len, shard, "");
    if (!path) return sfti_fail_memory(err, strlen(shard));
    int error = os_list(folder, look_at_index, &n);
    if (n.code || n.named) return n.code;
    if (error) return set_os_fail(err, SFT_IO_OPEN, error, "look for other indexes in the folder");
    error = os_unlink(path);
    return error ? set_os_fail(err, SFT_IO_WRITE, error, "remove what the index names no more")
                 : SFT_OK;
}

/* Old shards go, unless some index of the folder names them. The model is as it should be
 * whatever happens here. */
static void remove_old(set_renaming *r) {
    size_t len = folder_bytes(r->index);
    char *folder = set_path(r, len ? r->index : "./", len ? len : 2, "", "");
    for (size_t i = 0; i < r->written_count; i++) {
        sft_error err = SFT_ERROR_INIT;
        const char *shard = r->shards[i].key.data;
        sft_code code = folder ? remove_old_shard(r, folder, shard, &err)
                               : sfti_fail_memory(&err, len);
        if (code) cli_complain(r->c, shard, &err);
    }
}

/* ── In place ── */

static sft_code take_lists(set_renaming *r, sft_error *err) {
    size_t shards = sft_set_shard_count(r->set), at = 0;
    r->shards = sfti_arena_array(&r->arena, shards, sizeof *r->shards);
    r->written = sfti_arena_array(&r->arena, shards, sizeof *r->written);
    r->shard_of = sfti_arena_array(&r->arena, r->count, sizeof *r->shard_of);
    if (!r->shards || !r->written || !r->shard_of)
        return sfti_fail_memory(err, (shards + r->count) * sizeof *r->shards);
    for (size_t i = 0; i < r->count; i++) {
        (void)sft_set_find(r->set, r->names[i].key, &at);
        r->shard_of[i] = (uint32_t)at;
    }
    return SFT_OK;
}

static sft_code rewrite_index(const set_renaming *r, const char *to, bool only_look,
                              bool *changed, sft_error *err) {
    sft_index_changes changes = SFT_INDEX_CHANGES_INIT;
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    changes.tensors = r->names;
    changes.tensor_count = r->count;
    changes.shards = to ? NULL : r->shards;
    changes.shard_count = to ? 0 : r->written_count;
    changes.only_look = only_look;
    options.no_sync = r->c->set.no_sync != 0;
    options.link = r->c->set.follow ? SFT_LINK_FOLLOW : SFT_LINK_REFUSE;
    options.alloc = &r->c->alloc;
    return sft_index_rewrite(r->index, &changes, to, &options, changed, err);
}

static sft_code write_fresh(set_renaming *r, sft_error *err) {
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < sft_set_shard_count(r->set); i++) {
        if (!is_touched(r, i)) continue;
        const char *name = shard_name(r, i);
        char *fresh = fresh_name(r, name);
        char *path = fresh ? set_path(r, r->index, folder_bytes(r->index), fresh, "") : NULL;
        if (!path) return sfti_fail_memory(err, strlen(name));
        r->shards[r->written_count] = (sft_pair){ sft_span_cstr(name), sft_span_cstr(fresh) };
        code = save_shard(r, i, path, err);
    }
    return code;
}

/* After a failure: whether the new index is there, only not synced. It may be the old one
 * tomorrow, so that all shards stay. */
static bool is_published(set_renaming *r, sft_code code) {
    bool named = false;
    if (code != SFT_IO_SYNC || r->written_count == 0) return false;
    return index_names_shard(r, r->index, r->shards[0].value.data, &named, NULL) || named;
}

static sft_code rename_here(set_renaming *r, bool *changed, sft_error *err) {
    sft_code code = rewrite_index(r, NULL, true, changed, err); /* are the names free? */
    if (code || r->c->set.dry_run || !*changed) return code;
    code = write_fresh(r, err);
    if (!code) code = rewrite_index(r, NULL, false, changed, err);
    if (!code) remove_old(r);
    else if (!is_published(r, code)) unwrite(r);
    return code;
}

/* ── To a new folder ── */

static int any_entry(void *ctx, const char *name, os_kind kind) {
    (void)name, (void)kind;
    *(bool *)ctx = true;
    return 1;
}

static sft_code make_folder(const char *path, bool *made, sft_error *err) {
    bool taken = false;
    int error = os_make_folder(path, 0777);
    *made = error == 0;
    if (error == EEXIST) error = os_list(path, any_entry, &taken) == 1 || taken ? EEXIST : 0;
    if (!error) return SFT_OK;
    if (error == EEXIST) {
        sfti_fail(err, SFT_EXISTS, SFT_NO_OFFSET,
                  "expected a new or empty folder for -o, found one with files");
        err->hint = "a model of several files is never overwritten file by file: name a new "
                    "folder";
        return SFT_EXISTS;
    }
    return set_os_fail(err, SFT_IO_OPEN, error, "make the folder");
}

static sft_code rename_to_folder(set_renaming *r, const char *folder, sft_error *err) {
    bool made, changed;
    size_t from = folder_bytes(r->index);
    char *base = set_path(r, folder, strlen(folder), "/", "");
    char *index = base ? set_path(r, base, strlen(base), r->index + from, "") : NULL;
    if (!index) return sfti_fail_memory(err, strlen(folder));
    sft_code code = make_folder(folder, &made, err);
    if (code) return code;
    for (size_t i = 0; !code && i < sft_set_shard_count(r->set); i++) {
        char *path = set_path(r, base, strlen(base), shard_name(r, i), "");
        code = path ? save_shard(r, i, path, err) : sfti_fail_memory(err, strlen(base));
    }
    if (!code) code = rewrite_index(r, index, false, &changed, err);
    if (!code) return code;
    (void)os_unlink(index);
    unwrite(r);
    if (made) (void)os_remove_folder(folder);
    return code;
}

sft_code cli_edit_rename_set(cli *c, const char *index, const sft_set *set,
                             const sft_pair *names, size_t count, sft_error *err) {
    set_renaming r = { .c = c, .index = index, .set = set, .names = names, .count = count,
                       .arena.alloc = c->alloc };
    bool changed = count > 0;
    sft_code code = take_lists(&r, err);
    if (!code && c->set.output && !c->set.dry_run)
        code = rename_to_folder(&r, c->set.output, err);
    else if (!code)
        code = rename_here(&r, &changed, err);
    if (!code) {
        cli_edit_result result = { index, NULL, changed, NULL, NULL, 0, NULL };
        cli_edit_say(c, &result);
    }
    sfti_arena_free(&r.arena);
    return code;
}
