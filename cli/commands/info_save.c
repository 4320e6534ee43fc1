#include "commands/info_export.h"
#include "commands/info_online.h"
#include "os/os.h"
#include "support/files.h"
#include "support/group.h"
#include "support/raw.h"
#include "support/words.h"

#include <string.h>

#define OLD_MOST ((uint64_t)64 << 20)

/* ── Names ── */

/* The model's path with another suffix; NULL when out of memory. */
static char *path_beside(const cli_model *model, sfti_arena *arena, const char *suffix) {
    sft_span path = sft_span_cstr(model->path);
    size_t more = strlen(suffix);
    if (cli_ends_with(path, ".safetensors")) path.len -= 12;
    else if (cli_ends_with(path, ".sft")) path.len -= 4;
    char *out = sfti_arena_take(arena, path.len + more + 1);
    if (!out) return NULL;
    memcpy(out, path.data, path.len);
    memcpy(out + path.len, suffix, more + 1);
    return out;
}

/* ── What is there ── */

static bool read_old(cli *c, const char *path, sft_buffer *out) {
    int fd;
    if (cli_open_beside(path, &fd)) return false;
    bool done = cli_read_fd(c, fd, OLD_MOST, out, NULL) == SFT_OK;
    os_close(fd);
    return done;
}

/* Members of the old object that the new one lacks: added by users or tools. */
static void keep_members(sfti_json_writer *w, sft_span old, sft_span answer) {
    sft_span skeleton = { "skeleton_file", 13 };
    cli_raw mine, theirs;
    for (cli_raw_begin(&mine, old); cli_raw_next(&mine);) {
        bool known = sft_span_equal(mine.key, skeleton);
        for (cli_raw_begin(&theirs, answer); !known && cli_raw_next(&theirs);)
            known = sft_span_equal(mine.key, theirs.key);
        if (!known) cli_raw_write(w, mine.key, mine.value);
    }
}

static void write_merged_model(sfti_json_writer *w, sft_span model, sft_span old) {
    cli_raw member;
    sfti_json_key(w, "model");
    sfti_json_open(w, '{');
    for (cli_raw_begin(&member, model); cli_raw_next(&member);)
        cli_raw_write(w, member.key, member.value);
    keep_members(w, old, model);
    sfti_json_close(w, '}');
}

static sft_code write_merged(sft_span old, sft_span answer, sft_buffer *out) {
    sft_sink sink = sft_sink_memory(out);
    sft_span old_model, key = { "model", 5 };
    bool has_model = cli_raw_member(old, "model", &old_model) && *old_model.data == '{';
    sfti_json_writer w;
    cli_raw member;
    sfti_json_write(&w, &sink, 0, NULL);
    sfti_json_open(&w, '{');
    for (cli_raw_begin(&member, answer); cli_raw_next(&member);)
        if (has_model && sft_span_equal(member.key, key) && *member.value.data == '{')
            write_merged_model(&w, member.value, old_model);
        else cli_raw_write(&w, member.key, member.value);
    keep_members(&w, old, answer);
    sfti_json_close(&w, '}');
    return sfti_json_done(&w);
}

/* Whether the sidecar already describes this version. */
static bool tells_same(sft_span old, sft_span answer) {
    uint64_t a, b;
    return cli_raw_uint(old, "id", &a) && cli_raw_uint(answer, "id", &b) && a == b;
}

static bool save_info(cli *c, const cli_model *model, const char *path, sft_span answer) {
    sft_buffer old = { .alloc = c->alloc }, text = { .alloc = c->alloc };
    sft_error err = SFT_ERROR_INIT;
    sft_span was = { "", 0 }, now = answer;
    bool done = false;
    if (read_old(c, path, &old)) was = (sft_span){ old.data, old.len };
    bool is_object = was.len > 0 && *was.data == '{' && cli_raw_check(was);
    if (is_object && !c->set.force && tells_same(was, answer)) {
        sft_buffer_free(&old);
        return false;
    }
    if (is_object && c->set.force) {
        if (write_merged(was, answer, &text)) sfti_fail_memory(&err, answer.len);
        else now = (sft_span){ text.data, text.len };
    }
    if (err.code) cli_complain(c, path, &err);
    else done = cli_write_file(c, model, NULL, path, now);
    sft_buffer_free(&text);
    sft_buffer_free(&old);
    return done;
}

/* ── The first picture ── */

/* Its URL into buffer; false when the answer has none that may be one. */
static bool first_picture(sft_span answer, char buffer[CLI_URL_SIZE]) {
    sft_span images, url, type;
    cli_raw image;
    if (!cli_raw_member(answer, "images", &images)) return false;
    for (cli_raw_begin(&image, images); cli_raw_next(&image);) {
        if (!cli_raw_string(image.value, "url", &url) || url.len >= CLI_URL_SIZE) continue;
        if (cli_raw_string(image.value, "type", &type)
            && !cli_is(type, "image"))
            continue;
        memcpy(buffer, url.data, url.len);
        buffer[url.len] = 0;
        return true;
    }
    return false;
}

static bool has_picture_file(const cli_model *model) {
    sft_preview preview;
    for (size_t i = 0; sft_info_preview_at(model->info, i, &preview); i++)
        if (preview.path.len > 0) return true;
    return false;
}

static void write_picture(cli *c, const cli_model *model, sft_span bytes, const char *url) {
    sfti_arena arena = { .alloc = c->alloc };
    sft_error err = SFT_ERROR_INIT;
    char suffix[32] = ".preview.";
    const char *type = sft_info_image_type(bytes, NULL, NULL);
    const char *name = type && strncmp(type, "image/", 6) == 0 ? cli_picture_suffix(type) : NULL;
    char *path = NULL;
    if (name) {
        memcpy(suffix + 9, name, strlen(name) + 1);
        path = path_beside(model, &arena, suffix);
        if (path) (void)cli_write_file(c, model, NULL, path, bytes);
    } else {
        sfti_fail(&err, SFT_IO_READ, SFT_NO_OFFSET, "expected an image, found something else");
        cli_complain(c, url, &err);
    }
    sfti_arena_free(&arena);
}

static void save_picture(cli_online *online, const cli_model *model, sft_span answer) {
    sft_buffer bytes = { .alloc = online->c->alloc };
    char url[CLI_URL_SIZE];
    if (has_picture_file(model) && !online->c->set.force) return;
    if (!first_picture(answer, url)) return;
    if (!cli_civitai_picture(&online->site, url, &bytes)) return;
    write_picture(online->c, model, (sft_span){ bytes.data, bytes.len }, url);
    sft_buffer_free(&bytes);
}

void cli_save_answer(cli_online *online, const cli_model *model, sft_span answer) {
    sfti_arena arena = { .alloc = online->c->alloc };
    char *path = path_beside(model, &arena, ".civitai.info");
    if (path && save_info(online->c, model, path, answer)) save_picture(online, model, answer);
    sfti_arena_free(&arena);
}
