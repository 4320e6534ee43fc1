/* Sidecars that say where the model lies. Tests: tests/cli/mv/managers, tests/move/managers.py. */
#include "support/moves.h"

#include "base/splice.h"
#include "base/utf8.h"
#include "support/files.h"
#include "support/words.h"

#include <string.h>

/* The model that the sidecar is of, and what moves with it. */
typedef struct follow {
    sft_span stem; /* of its old name */
    const cli_move *model;
    const cli_moves *moves;
    sfti_arena *arena;
    bool failed; /* out of memory */
} follow;

static bool same_path(sft_span said, const char *path) {
    size_t len = strlen(path);
    if (said.len != len) return false;
    for (size_t i = 0; i < len; i++) {
        char a = said.data[i], b = path[i];
        bool slashes = (a == '/' || a == '\\') && sfti_is_separator(b);
        if (SFTI_OS_PATHS == SFTI_PATHS_WINDOWS) a = cli_lower(a), b = cli_lower(b);
        if (a != b && !slashes) return false;
    }
    return true;
}

/* A path as a sidecar spells it: with the slashes that it had. */
static sft_span spelled_path(follow *f, const char *path, sft_span like) {
    size_t len = strlen(path);
    char *copy = sfti_arena_copy(f->arena, path, len);
    f->failed = f->failed || !copy;
    bool forward = memchr(like.data, '/', like.len) != NULL;
    for (size_t i = 0; copy && i < len; i++)
        if (sfti_is_separator(copy[i])) copy[i] = forward ? '/' : '\\';
    return (sft_span){ copy, copy ? len : 0 };
}

static sft_span new_stem(const follow *f) {
    sft_span name = cli_name_of(f->model->to);
    size_t ending = cli_name_of(f->model->from).len - f->stem.len;
    return (sft_span){ name.data, name.len > ending ? name.len - ending : name.len };
}

/* What a value at the top of a sidecar is to become; data NULL: it stays. */
static sft_span new_value(follow *f, sft_span key, sft_span value) {
    if (cli_is(key, "file_name") && sft_span_equal(value, f->stem)) return new_stem(f);
    if (!cli_is(key, "file_path") && !cli_is(key, "preview_url")) return (sft_span){ NULL, 0 };
    if (same_path(value, f->model->from)) return spelled_path(f, f->model->to, value);
    for (size_t i = 0; i < f->moves->count; i++)
        if (same_path(value, f->moves->items[i].from))
            return spelled_path(f, f->moves->items[i].to, value);
    return (sft_span){ NULL, 0 };
}

static bool put_edit(sfti_arena *arena, cli_move *move, size_t *cap, const cli_move_edit *edit) {
    cli_move_edit *edits = sfti_arena_grow(arena, move->edits, move->edit_count, 1, cap,
                                           sizeof *edits);
    if (!edits) return false;
    edits[move->edit_count++] = *edit;
    move->edits = edits;
    return true;
}

bool cli_follow(cli *c, sfti_arena *arena, sft_span stem, const cli_move *model,
                const cli_moves *moves, cli_move *move) {
    follow f = { stem, model, moves, arena, false };
    sft_buffer bytes;
    sft_error err = SFT_ERROR_INIT, why = SFT_ERROR_INIT;
    sfti_json json;
    size_t cap = 0;
    bool fine = true;
    if (!cli_ends_with(sft_span_cstr(move->from), ".json")
        || cli_is_one_name(model->from, model->to)) /* the old path leads there */
        return true;
    sft_code code = cli_read_file(c, move->from, CLI_MOVE_TEXT_MOST, &bytes, &why);
    sft_span text = { code ? "" : bytes.data, code ? 0 : bytes.len };
    size_t mark = text.len > 3 && memcmp(text.data, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    if (code && code != SFT_OUT_OF_MEMORY) {
        (void)sfti_fail(&err, code, "moves unread, with the old paths if it has any: %s",
                        why.message);
        cli_warn(c, move->from, &err);
    }
    if (text.len == mark || sfti_utf8_check(text.data, text.len) != text.len) {
        sft_buffer_free(&bytes);
        return code != SFT_OUT_OF_MEMORY;
    }
    sfti_json_begin(&json, text.data + mark, text.len - mark);
    bool is_object = sfti_json_next(&json) == SFTI_JSON_OBJECT;
    while (fine && is_object && sfti_json_next(&json) == SFTI_JSON_KEY) {
        sft_span key = sfti_json_string(&json, arena);
        sfti_json_type type = sfti_json_next(&json);
        size_t begin = json.start;
        if (type == SFTI_JSON_ERROR) break;
        if (type != SFTI_JSON_STRING) {
            (void)sfti_json_skip(&json);
            continue;
        }
        sft_span value = sfti_json_string(&json, arena);
        fine = key.data && value.data;
        sft_span after = fine ? new_value(&f, key, value) : value;
        fine = fine && !f.failed;
        if (!fine || !after.data || sfti_utf8_check(after.data, after.len) != after.len) continue;
        uint64_t len = sfti_spell(after, NULL);
        char *spelled = sfti_arena_take(arena, (size_t)len + 1);
        char *was = sfti_arena_copy(arena, text.data + mark + begin, json.text.len + 2);
        fine = spelled && was;
        if (fine) (void)sfti_spell(after, spelled);
        fine = fine && put_edit(arena, move, &cap,
                                &(cli_move_edit){ mark + begin, { was, json.text.len + 2 },
                                                  { spelled, (size_t)len } });
    }
    if (sfti_json_next(&json) != SFTI_JSON_END) move->edit_count = 0;
    sft_buffer_free(&bytes);
    return fine;
}
