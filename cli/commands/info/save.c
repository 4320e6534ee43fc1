/* info --online --save: the answer as a sidecar, and the first picture. */
#include "commands/info/beside.h"
#include "commands/info/online.h"
#include "support/raw.h"
#include "support/words.h"

#include <string.h>

/* False where nothing was written: it is there already, or cannot be. */
static bool save_info(cli *c, const cli_model *model, sfti_arena *arena, sft_span answer) {
    sft_buffer merged = { .alloc = c->alloc };
    sft_error err = SFT_ERROR_INIT;
    cli_sidecar old;
    sft_span text = answer;
    bool done = false;
    sft_code code = cli_sidecar_open(c, model, arena, ".civitai.info", &old, &err);
    uint64_t a, b; /* ids: does it describe this version already? */
    bool is_same = !code && old.object.len > 0 && cli_raw_uint(old.object, "id", &a)
                   && cli_raw_uint(answer, "id", &b) && a == b;
    if (!code && old.object.len > 0 && c->set.force) {
        code = cli_merge_text(old.object, answer, cli_keep_civitai, &merged, &err);
        text = (sft_span){ merged.data, merged.len };
    }
    if (!code && (!is_same || c->set.force)) {
        code = cli_write_beside(c, model, NULL, old.path, text, c->set.force && old.exists, &err);
        done = !code;
    }
    if (code) cli_complain(c, old.path ? old.path : model->path, &err);
    sft_buffer_free(&merged);
    cli_sidecar_close(&old);
    return done;
}

/* ── The first picture ── */

static void write_picture(cli *c, const cli_model *model, sft_span bytes, const char *url) {
    sfti_arena arena = { .alloc = c->alloc };
    sft_error err = SFT_ERROR_INIT;
    char suffix[32] = ".preview.";
    const char *type = sft_info_image_type(bytes, NULL, NULL);
    const char *name = type && strncmp(type, "image/", 6) == 0 ? cli_picture_suffix(type) : NULL;
    char *path = NULL;
    if (name) {
        memcpy(suffix + 9, name, strlen(name) + 1);
        path = cli_path_beside(model, &arena, suffix);
        if (path) (void)cli_write_file(c, model, NULL, path, bytes);
    } else {
        sfti_fail(&err, SFT_IO_READ, "expected an image, found something else");
        cli_complain(c, url, &err);
    }
    sfti_arena_free(&arena);
}

void cli_save_answer(cli_online *online, const cli_model *model, sft_span answer) {
    sfti_arena arena = { .alloc = online->c->alloc };
    sft_buffer bytes = { .alloc = online->c->alloc };
    char url[CLI_CIVITAI_URL_SIZE];
    sft_preview preview;
    bool wanted = save_info(online->c, model, &arena, answer);
    for (size_t i = 0; !online->c->set.force && sft_info_preview_at(model->info, i, &preview); i++)
        wanted = wanted && preview.path.len == 0; /* a picture file is there */
    sft_span images, found, type;
    cli_raw image;
    bool any = false; /* the first picture of the answer, if it has one */
    if (wanted && cli_raw_member(answer, "images", &images)) {
        for (cli_raw_begin(&image, images); !any && cli_raw_next(&image);)
            any = cli_raw_string(image.value, "url", &found) && found.len < sizeof url
                  && (!cli_raw_string(image.value, "type", &type) || cli_is(type, "image"));
        if (any) memcpy(url, found.data, found.len);
        if (any) url[found.len] = 0;
    }
    if (any && cli_civitai_picture(&online->site, url, &bytes)) {
        write_picture(online->c, model, (sft_span){ bytes.data, bytes.len }, url);
        sft_buffer_free(&bytes);
    }
    sfti_arena_free(&arena);
}
