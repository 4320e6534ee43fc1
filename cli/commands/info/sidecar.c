/* Sidecars that info writes: what is there is merged with what is known. */
#include "commands/info/beside.h"

#include "base/error.h"
#include "os/io.h"
#include "support/files.h"
#include "support/words.h"

#include <errno.h>
#include <string.h>

#define OLD_MOST ((uint64_t)64 << 20)

char *cli_path_beside(const cli_model *model, sfti_arena *arena, const char *suffix) {
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

sft_code cli_sidecar_open(cli *c, const cli_model *model, sfti_arena *arena, const char *suffix,
                          cli_sidecar *out, sft_error *err) {
    int fd;
    *out = (cli_sidecar){ .object = { "", 0 }, .text = { .alloc = c->alloc } };
    out->path = cli_path_beside(model, arena, suffix);
    if (!out->path) return sfti_fail_memory(err, strlen(model->path));
    int error = cli_open_beside(out->path, &fd);
    out->exists = error != ENOENT;
    /* The writer refuses links, whatever they lead to. */
    if (error == ENOENT || error == EXDEV || error == ELOOP) return SFT_OK;
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    sft_code code = cli_read_beside(c, fd, OLD_MOST, &out->text, err);
    sfti_os_close(fd);
    /* the text without a byte order mark and blanks before it, if it is a JSON object */
    sft_span found = code ? out->object : cli_read_text(&out->text);
    while (found.len > 0 && *found.data && strchr(" \t\r\n", *found.data))
        found = (sft_span){ found.data + 1, found.len - 1 };
    if (found.len > 0 && *found.data == '{' && cli_raw_check(found)) out->object = found;
    return code;
}

void cli_sidecar_close(cli_sidecar *sidecar) {
    sft_buffer_free(&sidecar->text);
}

/* ── Merging ── */

bool cli_keep_civitai(sft_span key, sft_span value) {
    if (cli_is(key, "id") || cli_is(key, "modelId")) return !cli_is(value, "\"\"");
    return !cli_is(key, "skeleton_file");
}

sft_code cli_merge_text(sft_span under, sft_span over, cli_raw_keep *keep,
                        sft_buffer *out, sft_error *err) {
    sft_sink sink = sft_sink_memory(out);
    sfti_json_writer w;
    sfti_json_write(&w, &sink, 0, err);
    cli_raw_merge(&w, under, over, keep);
    return sfti_json_done(&w);
}
