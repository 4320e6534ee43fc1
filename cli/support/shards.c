/* Shards by their numbers. Tests: tests/cli/info/shards.txt, tests/cli/convert/numbered.txt. */
#include "support/shards.h"

#include "base/error.h"
#include "os/path.h"
#include "support/files.h"
#include "support/words.h"
#include "safetensors_index.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static size_t digits_back(const char *text, size_t end) {
    size_t n = 0;
    while (n < end && text[end - 1 - n] >= '0' && text[end - 1 - n] <= '9') n++;
    return n;
}

static uint64_t number_at(const char *text, size_t len) {
    uint64_t value = 0;
    for (size_t i = 0; i < len; i++) value = value * 10 + (uint64_t)(text[i] - '0');
    return value;
}

bool cli_parse_shard(const char *path, cli_shard_name *out) {
    const char *dot = strrchr(path, '.');
    size_t end = dot ? (size_t)(dot - path) : 0, second = digits_back(path, end);
    if (second == 0 || second > 6 || end < second + 4) return false;
    size_t middle = end - second - 4;
    if (memcmp(path + middle, "-of-", 4) != 0) return false;
    size_t first = digits_back(path, middle);
    if (first != second || middle < first + 2 || path[middle - first - 1] != '-') return false;
    out->base = (sft_span){ path, middle - first - 1 };
    out->end = sft_span_cstr(dot);
    out->shard = number_at(path + middle - first, first);
    out->of = number_at(path + end - second, second);
    out->digits = (int)first;
    return out->shard > 0 && out->shard <= out->of && out->of <= SFT_MAX_SHARDS;
}

bool cli_shard_of(const char *path, uint64_t *shard, uint64_t *of, sft_span *base) {
    cli_shard_name name;
    if (!cli_parse_shard(path, &name)) return false;
    *shard = name.shard;
    *of = name.of;
    *base = name.base;
    return true;
}

size_t cli_shards_from(const cli_inputs *inputs, size_t i, bool *taken, const cli_input **list) {
    cli_shard_name first, next;
    size_t n = 0;
    if (inputs->items[i]->kind != CLI_FILE || !cli_parse_shard(inputs->items[i]->path, &first)
        || cli_is(first.end, ".gguf"))
        return 0;
    for (size_t k = i; k < inputs->count; k++) {
        const cli_input *input = inputs->items[k];
        if (strncmp(input->path, first.base.data, first.base.len) != 0) break;
        if (taken[k] || input->kind != CLI_FILE || !cli_parse_shard(input->path, &next)) continue;
        if (first.of != next.of || first.digits != next.digits
            || !sft_span_equal(first.base, next.base) || !sft_span_equal(first.end, next.end))
            continue;
        taken[k] = true;
        list[n++] = input;
    }
    return n;
}

/* ── What is not there ── */

bool cli_shards_missing(const cli_input *const *list, size_t count, const char **names,
                        size_t *missing, sfti_arena *arena) {
    cli_shard_name first;
    if (!cli_parse_shard(list[0]->path, &first)) return true;
    size_t at = 0, capacity = first.base.len + first.end.len + 32;
    for (uint64_t n = 1; n <= first.of; n++) {
        cli_shard_name have = { .shard = 0 };
        if (at < count) cli_parse_shard(list[at]->path, &have);
        if (have.shard == n) {
            at++;
            continue;
        }
        char *path = sfti_arena_take(arena, capacity);
        if (!path) return false;
        snprintf(path, capacity, "%.*s-%0*" PRIu64 "-of-%0*" PRIu64 "%s", (int)first.base.len,
                 first.base.data, first.digits, n, first.digits, first.of, first.end.data);
        names[(*missing)++] = cli_name_of(path).data;
    }
    return true;
}

sft_code cli_fail_missing(size_t have, const char *const *missing, size_t count, sft_error *err) {
    return sfti_fail(err, SFT_INDEX_SHARD_MISSING,
                     "expected %zu shards, found %zu: %s is missing%s", have + count, have,
                     missing[0], count > 1 ? ", and others" : "");
}

/* ── One input ── */

/* Why an index in the folder of path could not be read, which may name what is in it; or NULL. */
static const sft_error *unread_index(const cli_input *const *unread, size_t count,
                                     const char *path) {
    size_t folder = sfti_folder_len(path);
    for (size_t i = 0; i < count; i++) {
        const char *index = unread[i]->path;
        if (sfti_folder_len(index) == folder && memcmp(index, path, folder) == 0)
            return unread[i]->err;
    }
    return NULL;
}

/* The input becomes that of all these shards (join), or says which is missing. */
static bool join_shards(cli_input *input, const cli_input *const *list, size_t count, uint64_t of,
                        bool join, sfti_arena *arena) {
    const char **paths = sfti_arena_take(arena, (size_t)of * sizeof *paths);
    size_t missing = 0;
    if (!paths) return false;
    if (count < of) {
        sft_error *err = sfti_arena_take(arena, sizeof *err);
        if (!err || !cli_shards_missing(list, count, paths, &missing, arena)) return false;
        *err = (sft_error)SFT_ERROR_INIT;
        (void)cli_fail_missing(count, paths, missing, err);
        if (join) input->kind = CLI_BLOCKED;
        input->err = err;
        return true;
    }
    if (!join) return true;
    for (size_t i = 0; i < count; i++) paths[i] = list[i]->path;
    input->shards = paths;
    input->shard_count = count;
    return true;
}

bool cli_join_shards(cli_inputs *inputs, bool join) {
    sfti_arena *arena = &inputs->arena;
    bool *taken = sfti_arena_take(arena, inputs->count + 1);
    const cli_input **list = sfti_arena_take(arena, (inputs->count + 1) * sizeof *list);
    const cli_input **indices = sfti_arena_take(arena, (inputs->count + 1) * sizeof *indices);
    size_t kept = 0, unread_count = 0;
    cli_shard_name name;
    if (!taken || !list || !indices) return false;
    memset(taken, 0, inputs->count + 1);
    for (size_t i = 0; i < inputs->count; i++) {
        const cli_input *input = inputs->items[i];
        if (input->kind == CLI_BLOCKED && sft_path_is_index(input->path))
            indices[unread_count++] = input;
    }
    for (size_t i = 0; i < inputs->count; i++) {
        cli_input *input = inputs->items[i];
        if (taken[i] && join) continue;
        size_t count = taken[i] ? 0 : cli_shards_from(inputs, i, taken, list);
        inputs->items[kept++] = input;
        if (count == 0 || !cli_parse_shard(input->path, &name) || name.of == 1) continue;
        const sft_error *unread =
            count < name.of ? unread_index(indices, unread_count, input->path) : NULL;
        if (unread && join) {
            input->kind = CLI_BLOCKED;
            input->err = unread;
        }
        if (!unread && !join_shards(input, list, count, name.of, join, arena)) return false;
    }
    inputs->count = kept;
    return true;
}
