/* Adapters that operands name. */
#include "commands/lora/lora.h"
#include "os/io.h"
#include "support/files.h"
#include "support/models.h"
#include "support/remote.h"
#include "support/words.h"

#include <errno.h>
#include <string.h>

#define CONFIG_MOST ((uint64_t)4 << 20)

/* PEFT's configuration lies beside its file of a fixed name, and means no other. */
static sft_code read_config(cli *c, lora_adapter *adapter, sft_error *err) {
    sfti_arena arena = { .alloc = c->alloc };
    sft_span name = cli_name_of(adapter->path);
    int fd = -1;
    sft_code code = SFT_OK;
    if (cli_is_remote(c, adapter->path) || name.len < 13
        || memcmp(name.data, "adapter_model", 13) != 0)
        return SFT_OK;
    char *path = cli_join_path(&arena, cli_folder_of(adapter->path), "adapter_config.json");
    int error = path ? cli_open_beside(path, &fd) : 0;
    if (!path) code = sfti_fail_memory(err, name.len);
    else if (!error) code = cli_read_beside(c, fd, CONFIG_MOST, &adapter->config, err);
    else if (error != ENOENT) code = sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    if (path && !error) sfti_os_close(fd);
    sfti_arena_free(&arena);
    return code;
}

sft_code lora_open_set(cli *c, char *operand, bool strength, lora_adapter *out, sft_error *err) {
    const cli_input *input;
    out->operand = out->path = operand;
    out->strength = 1;
    out->config.alloc = out->lora.arena.alloc = c->alloc;
    const char *number;
    sft_code code = strength ? cli_cut_number(c, operand, &number, &out->strength, err) : SFT_OK;
    if (!code) code = cli_open_operand(c, operand, &out->inputs, &input, &out->set, err);
    if (code) return code;
    out->path = input->path;
    return read_config(c, out, err);
}

sft_code lora_open(cli *c, char *operand, bool strength, lora_adapter *out, sft_error *err) {
    sft_code code = lora_open_set(c, operand, strength, out, err);
    if (!code) code = sfti_lora_open(out->set, cli_read_text(&out->config), &out->lora, err);
    if (!code && out->lora.count == 0)
        code = sfti_fail(err, SFT_TENSOR_NOT_FOUND,
                         "expected an adapter (LoRA and its kin), found none of its tensors");
    return code;
}

void lora_close(lora_adapter *adapter) {
    sfti_lora_close(&adapter->lora);
    sft_buffer_free(&adapter->config);
    sft_set_close(adapter->set);
    cli_inputs_free(&adapter->inputs);
}

void lora_fail(cli *c, const char *path, sft_error *err) {
    static const sft_code refusals[] = { SFT_SIZE_MISMATCH, SFT_CAST_DTYPE, SFT_CAST_VALUE,
                                         SFT_INCOMPLETE, SFT_TENSOR_DUPLICATE };
    bool refused = err->code == SFT_TENSOR_NOT_FOUND;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        if (err->code != refusals[i]) continue;
        refused = true;
        /* those of the codes are about files that are wrong by themselves */
        if (err->hint < SFT_HINT_PROGRAM) err->hint = SFT_HINT_NONE;
    }
    if (refused) cli_refuse(c, path, err);
    else cli_fail_input(c, path, err);
}
