/* Adapters that operands name. */
#include "commands/lora/lora.h"
#include "support/adapters.h"
#include "support/files.h"
#include "support/models.h"

#include <string.h>

sft_code lora_borrow(cli *c, sft_set *set, const char *path, lora_adapter *out, sft_error *err) {
    out->path = path;
    out->strength = 1;
    out->set = set;
    out->borrowed = true;
    out->config.alloc = out->lora.arena.alloc = c->alloc;
    return cli_read_adapter_config(c, path, &out->config, err);
}

sft_code lora_open(cli *c, char *operand, bool strength, lora_adapter *out, sft_error *err) {
    const cli_input *input;
    out->operand = out->path = operand;
    out->strength = 1;
    out->config.alloc = out->lora.arena.alloc = c->alloc;
    out->lora.describes = out->describes;
    const char *number;
    sft_code code = strength ? cli_cut_number(c, operand, &number, &out->strength, err) : SFT_OK;
    if (!code) code = cli_open_operand(c, operand, &out->inputs, &input, &out->set, err);
    if (!code) out->path = input->path;
    if (!code) code = cli_read_adapter_config(c, out->path, &out->config, err);
    if (!code) code = sfti_lora_open(out->set, cli_read_text(&out->config), &out->lora, err);
    if (!code && out->lora.count == 0)
        code = sfti_fail(err, SFT_TENSOR_NOT_FOUND,
                         "expected an adapter (LoRA and the like), found none of its tensors");
    return code;
}

void lora_warn_of_alpha(cli *c, const lora_adapter *adapter) {
    size_t count = 0;
    for (size_t i = 0; i < adapter->lora.count; i++) {
        const sfti_lora_module *m = &adapter->lora.modules[i];
        count += m->rank > 0 && !m->has_alpha && m->name.len > 11
              && memcmp(m->name.data, "base_model.", 11) == 0;
    }
    if (count == 0) return;
    cli_flush(&c->out);
    cli_text(&c->err, "safetensors: ");
    cli_path(&c->err, adapter->path,
             ": warning: no adapter_config.json of PEFT says what alpha is: taken as the rank\n");
    cli_flush(&c->err);
}

void lora_close(lora_adapter *adapter) {
    sfti_lora_close(&adapter->lora);
    sft_buffer_free(&adapter->config);
    if (!adapter->borrowed) sft_set_close(adapter->set);
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
        if (err->hint == sft_code_describe(err->code)->hint) err->hint = SFT_HINT_NONE;
    }
    if (refused) cli_refuse(c, path, err);
    else cli_fail_input(c, path, err);
}
