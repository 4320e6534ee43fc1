/* meta list, get and header: what a model has, without changing it. */
#include "commands/meta/meta.h"

#include "os/os.h"
#include "support/edit.h"
#include "support/fields.h"
#include "support/hints.h"
#include "support/raw.h"
#include "support/remote.h"
#include "support/words.h"

#include <string.h>

/* ── Pairs ── */

static bool is_pretty(const cli *c, sft_span value) {
    return c->set.pretty && cli_is_pretty(value);
}

static void show_pair(cli *c, sft_span key, sft_span value) {
    cli_style_on(&c->out, CLI_BOLD);
    cli_escaped(&c->out, key);
    cli_style_off(&c->out, CLI_BOLD);
    if (is_pretty(c, value)) {
        cli_text(&c->out, ": ");
        cli_pretty(&c->out, value, 0);
        cli_text(&c->out, "\n");
    } else {
        cli_fill(&c->out, ": %\n", value);
    }
}

static void json_pairs(const cli *c, sfti_json_writer *w, const meta_pairs *pairs) {
    sfti_json_open(w, '{');
    for (size_t i = 0; i < pairs->count; i++) {
        sft_pair pair = meta_pair_at(pairs, i);
        sfti_json_key_span(w, pair.key);
        if (pairs->is_json || is_pretty(c, pair.value)) sfti_json_raw(w, pair.value);
        else sfti_json_span(w, pair.value);
    }
    sfti_json_close(w, '}');
}

/* --to-json: nothing but the pairs. */
static void json_list(cli *c, const char *path, const meta_pairs *pairs) {
    sft_error err = SFT_ERROR_INIT;
    sfti_json_writer plain;
    sft_sink sink = cli_out_sink(&c->out);
    cli_object object;
    if (!c->set.to_json) {
        sfti_json_writer *w = cli_object_begin(&object, c, path);
        sfti_json_key(w, "metadata");
        json_pairs(c, w, pairs);
        cli_object_end(&object);
        return;
    }
    sfti_json_write(&plain, &sink, 0, &err);
    json_pairs(c, &plain, pairs);
    if (sfti_json_done(&plain)) cli_complain(c, path, &err);
    cli_text(&c->out, "\n");
}

/* ── list ── */

/* Several models are told apart by a line of their path. */
static void show_path(cli *c, const char *path) {
    if (!c->several) return;
    if (c->results++ > 0) cli_text(&c->out, "\n");
    cli_styled(&c->out, CLI_BOLD, path);
    cli_text(&c->out, "\n");
}

static void list_input(cli *c, const cli_input *input) {
    sft_error err = SFT_ERROR_INIT;
    meta_pairs pairs;
    if (meta_read(c, input, &pairs, &err)) {
        cli_fail_found(c, input, input->path, &err);
    } else if (c->set.format == CLI_TSV) {
        if (c->results++ == 0) cli_text(&c->out, "path\tkey\tvalue\n");
        for (size_t i = 0; i < pairs.count && !cli_is_over(c); i++) {
            cli_field_text(&c->out, sft_span_cstr(input->path));
            cli_text(&c->out, "\t");
            cli_field_text(&c->out, meta_pair_at(&pairs, i).key);
            cli_text(&c->out, "\t");
            cli_field_text(&c->out, meta_value(&pairs, i));
            cli_text(&c->out, "\n");
        }
    } else if (cli_is_json(c) || c->set.to_json) {
        json_list(c, input->path, &pairs);
    } else {
        show_path(c, input->path);
        for (size_t i = 0; i < pairs.count && !cli_is_over(c); i++)
            show_pair(c, meta_pair_at(&pairs, i).key, meta_value(&pairs, i));
    }
    meta_free(&pairs);
}

/* A folder may stand for several. */
static bool are_several(const cli *c, char **operands, size_t count) {
    os_info info;
    bool folder = cli_is_remote_folder(c, operands[0])
               || (sfti_os_info_path(operands[0], true, &info) == 0 && info.kind == OS_DIR);
    return count > 1 || folder || c->set.recursive;
}

void meta_list(cli *c, char **operands, size_t count) {
    c->several = are_several(c, operands, count);
    c->counts_unread = true;
    cli_each_input(c, operands, count, list_input);
}

/* ── get ── */

/* To a terminal escaped; to a program as it is. */
static void show_value(cli *c, sft_span value, bool pretty) {
    if (pretty) cli_pretty(&c->out, value, 0);
    else if (sfti_os_is_terminal(1)) cli_escaped(&c->out, value);
    else cli_put(&c->out, value.data, value.len);
    cli_text(&c->out, "\n");
}

static void fail_no_key(sft_span key, sfti_guess *guess, sft_error *err) {
    const char *near = sfti_guess_text(guess, "\"", "\"");
    sfti_fail(err, SFT_NOT_FOUND, "no such key: \"%.*s\"%s", key.len < 160 ? (int)key.len : 160,
              key.data, near);
    if (!*near) cli_hint(err, CLI_HINT_LIST_KEYS);
}

void meta_tell_missing(cli *c, const char *path, const sft_file *file, sft_span key) {
    sft_error err = SFT_ERROR_INIT;
    sfti_guess guess = sfti_guess_begin(key);
    for (size_t i = 0; i < sft_file_metadata_count(file); i++)
        sfti_guess_try(&guess, sft_file_metadata_at(file, i).key);
    fail_no_key(key, &guess, &err);
    cli_status(c, CLI_NO);
    cli_warn(c, path, &err);
}

/* Those of the keys that are there, in their order, in *out; the others are told. */
static sft_code pick_pairs(cli *c, const char *path, const meta_pairs *pairs, char **keys,
                           size_t count, meta_pairs *out, sft_error *err) {
    out->items = sfti_arena_array(&out->arena, count, sizeof *out->items);
    out->is_json = pairs->is_json;
    if (!out->items) return sfti_fail_memory(err, count);
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        sfti_guess guess = sfti_guess_begin(sft_span_cstr(keys[i]));
        for (; at < pairs->count && !cli_is(meta_pair_at(pairs, at).key, keys[i]); at++)
            sfti_guess_try(&guess, meta_pair_at(pairs, at).key);
        if (at < pairs->count) {
            out->items[out->count++] = meta_pair_at(pairs, at);
        } else {
            sft_error missing = SFT_ERROR_INIT;
            fail_no_key(sft_span_cstr(keys[i]), &guess, &missing);
            cli_refuse(c, path, &missing);
        }
    }
    return SFT_OK;
}

static sft_code get_keys(cli *c, const cli_input *input, char **keys, size_t count,
                         sft_error *err) {
    meta_pairs pairs, picked = { .arena.alloc = c->alloc };
    sft_code code = meta_read(c, input, &pairs, err);
    if (!code) code = pick_pairs(c, input->path, &pairs, keys, count, &picked, err);
    if (!code && cli_is_json(c) && picked.count > 0) {
        json_list(c, input->path, &picked);
    } else {
        for (size_t i = 0; !code && !cli_is_json(c) && i < picked.count; i++) {
            sft_span value = meta_value(&picked, i);
            if (count == 1) show_value(c, value, is_pretty(c, value));
            else show_pair(c, picked.items[i].key, value);
        }
    }
    meta_free(&picked);
    meta_free(&pairs);
    return code;
}

void meta_get(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    sfti_arena arena = { .alloc = c->alloc };
    cli_input input = { .kind = CLI_FILE, .path = operands[0] };
    sft_code code = SFT_OK;
    if (strcmp(operands[0], "-") == 0) input.kind = CLI_STDIN;
    else code = cli_edit_operand(c, &arena, operands[0], &input.path, &err);
    if (sft_path_is_index(input.path)) input.kind = CLI_INDEX;
    if (!code) code = get_keys(c, &input, operands + 1, count - 1, &err);
    if (code) cli_fail_input(c, input.path, &err);
    sfti_arena_free(&arena);
}

/* ── header ── */

/* The header, for a model with an index those of all its files. */
static void header_input(cli *c, const cli_input *input) {
    sft_error err = SFT_ERROR_INIT;
    sft_set *set = NULL;
    if (cli_open_model(c, input, &set, &err)) {
        cli_fail_input(c, input->path, &err);
        return;
    }
    bool shards = sft_set_index_path(set) != NULL;
    for (size_t i = 0; i < sft_set_shard_count(set) && !cli_is_over(c); i++) {
        const char *path = shards ? sft_set_shard_path(set, i) : input->path;
        const sft_file *file = sft_set_shard_at(set, i);
        sft_span text = sft_file_header(file);
        if (cli_is_json(c)) {
            cli_object object;
            sfti_json_writer *w = cli_object_begin(&object, c, path);
            sfti_json_put_uint(w, "bytes", sft_file_header_bytes(file));
            sfti_json_key(w, "header");
            sfti_json_raw(w, text);
            cli_object_end(&object);
            continue;
        }
        c->several = c->several || shards;
        show_path(c, path);
        while (text.len > 0 && text.data[text.len - 1] == ' ') text.len--;
        show_value(c, text, c->set.pretty != 0);
    }
    sft_set_close(set);
}

void meta_header(cli *c, char **operands, size_t count) {
    c->several = are_several(c, operands, count);
    cli_each_input(c, operands, count, header_input);
}
