/* PEFT's adapters, and the configuration beside them. Tests: tests/cli/lora/beside.txt,
 * tests/cli/mv/adapters.txt, tests/cli/dup/adapters.txt. */
#include "support/adapters.h"

#include "keys/adapter_told.h"
#include "os/io.h"
#include "os/path.h"
#include "support/companions.h"
#include "support/files.h"
#include "support/remote.h"
#include "support/words.h"

#include <errno.h>
#include <string.h>

#define CONFIG_MOST ((uint64_t)4 << 20)

static size_t skip_chars(sft_span text, size_t at, const char *chars) {
    while (at < text.len && text.data[at] && strchr(chars, text.data[at])) at++;
    return at;
}

/* "-00001-of-00002", and what is behind it in the new name of a shard that was changed. */
static bool is_shard_number(sft_span text) {
    static const char digits[] = "0123456789", of[] = "-of-";
    size_t at = skip_chars(text, 1, digits), len = sizeof of - 1;
    if (text.len == 0 || text.data[0] != '-' || at == 1) return false;
    if (text.len - at < len || memcmp(text.data + at, of, len) != 0) return false;
    size_t end = skip_chars(text, at + len, digits);
    if (end == at + len) return false;
    return end == text.len
        || (text.len == end + 9 && text.data[end] == '-'
            && skip_chars(text, end + 1, "0123456789abcdef") == text.len);
}

bool cli_is_adapter_model(const char *path) {
    static const char fixed[] = "adapter_model";
    size_t len = sizeof fixed - 1;
    sft_span stem = cli_stem_of(cli_name_of(path));
    if (stem.len < len || memcmp(stem.data, fixed, len) != 0) return false;
    return stem.len == len || is_shard_number((sft_span){ stem.data + len, stem.len - len });
}

/* PEFT's configuration lies beside its file of a fixed name, and means no other. */
sft_code cli_read_adapter_config(cli *c, const char *model, sft_buffer *out, sft_error *err) {
    sfti_arena arena = { .alloc = c->alloc };
    int fd = -1;
    sft_code code = SFT_OK;
    if (!cli_is_adapter_model(model)) return SFT_OK;
    char *path = cli_join_path(&arena, cli_folder_of(model), CLI_ADAPTER_CONFIG);
    if (path && cli_is_remote(c, model)) {
        code = cli_remote_read(c, path, CONFIG_MOST, out, err);
        sfti_arena_free(&arena);
        return code == SFT_NOT_FOUND ? SFT_OK : code;
    }
    int error = path ? cli_open_beside(path, &fd) : 0;
    if (!path) code = sfti_fail_memory(err, strlen(model));
    else if (!error) code = cli_read_beside(c, fd, CONFIG_MOST, out, err);
    else if (error != ENOENT) code = sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    if (path && !error) sfti_os_close(fd);
    sfti_arena_free(&arena);
    return code;
}

sft_code cli_digest_adapter_config(cli *c, const char *model, char hex[SFT_HASH_TEXT_SIZE],
                                   sft_error *err) {
    sft_buffer text = { .alloc = c->alloc };
    sft_hasher *hasher = NULL;
    sft_hashes hashes;
    hex[0] = '\0';
    sft_code code = cli_read_adapter_config(c, model, &text, err);
    if (!code && text.len > 0)
        code = sft_hasher_new(SFT_HASH_BIT(SFT_HASH_SHA256), &c->alloc, &hasher, err);
    if (hasher) {
        sft_hasher_update(hasher, text.data, text.len);
        sft_hasher_result(hasher, &hashes);
        memcpy(hex, sft_hashes_get(&hashes, SFT_HASH_SHA256), 65);
    }
    sft_hasher_free(hasher);
    sft_buffer_free(&text);
    return code;
}

/* ── What is written ── */

void cli_say_beside(cli *c) {
    const cli_beside told = c->beside;
    if (!told.left && !told.bare && !told.forced) return;
    c->beside = (cli_beside){ .left = NULL };
    cli_flush(&c->out);
    if (told.left) {
        cli_text(&c->err, "safetensors: note: ");
        cli_path(&c->err, told.left, ": its adapter_config.json, which tells its alpha, is not "
                                     "copied, and is read only beside a file called "
                                     "adapter_model.*\n");
    }
    if (told.bare) {
        cli_text(&c->err, "safetensors: note: ");
        cli_path(&c->err, told.bare, ": the quantization_config beside it, which declares how its "
                                     "layers are read, does not go with it\n");
    }
    if (told.forced) {
        cli_text(&c->err, "safetensors: note: ");
        cli_path(&c->err, told.forced, ": is read by the %s beside it, whatever that is of\n",
                 told.forced_by);
    }
    cli_flush(&c->err);
}

sft_code cli_check_adapter_config(cli *c, const char *const *models, size_t count, const char *to,
                                  sft_error *err) {
    sft_buffer there = { .alloc = c->alloc }, first = { .alloc = c->alloc };
    const char *configured = NULL, *left = NULL;
    bool fits = count > 0, alike = true;
    c->beside = (cli_beside){ .left = NULL };
    sft_code code = to ? cli_read_adapter_config(c, to, &there, err) : SFT_OK;
    for (size_t i = 0; !code && i < count; i++) {
        sft_buffer own = { .alloc = c->alloc };
        code = cli_read_adapter_config(c, models[i], i ? &own : &first, err);
        sft_span text = cli_read_text(i ? &own : &first);
        if (!configured && text.len > 0) configured = models[i];
        if (!left && sfti_adapter_told_of(text).alpha) left = models[i];
        alike = alike && sfti_adapter_told_alike(text, cli_read_text(&first));
        fits = fits && (sfti_adapter_told_alike(text, cli_read_text(&there))
                        || (text.len == 0 && there.len > 0 && strcmp(models[i], "-") != 0
                            && !cli_is_remote(c, models[i])
                            && cli_in_one_folder(c, models[i], to)));
        sft_buffer_free(&own);
    }
    if (!code && !fits && configured && !alike)
        code = sfti_fail(err, SFT_BAD_ARGUMENT, "expected models that hold their alphas, found "
                         "that adapter_config.json tells those of %s: \"lora stack\" joins "
                         "adapters, and puts the alphas of a single one into its factors",
                         configured);
    else if (!code && !fits && there.len > 0 && !c->set.force)
        code = sfti_fail(err, SFT_BAD_ARGUMENT, "expected no adapter_config.json beside a new file "
                         "of this name, which would be read with its alpha, found one: --force "
                         "writes it all the same");
    else if (!code && !fits && there.len > 0)
        c->beside.forced = to, c->beside.forced_by = CLI_ADAPTER_CONFIG;
    else if (!code && !fits)
        c->beside.left = left;
    sft_buffer_free(&there);
    sft_buffer_free(&first);
    return code;
}
