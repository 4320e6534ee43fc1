/* rm-tensor: tensors by their names, taken out of a model. */
#include "commands/commands.h"
#include "commands/select.h"
#include "support/output.h"

static const cli_example rm_tensor_examples[] = {
    { "safetensors rm-tensor model.safetensors model_ema.decay model_ema.num_updates",
      "two tensors less" },
    { "safetensors rm-tensor model.safetensors -o lean.safetensors 'extra[0]'",
      "the file itself stays as it is; a name is taken letter by letter" },
    { NULL, NULL },
};

const cli_command cli_rm_tensor_command = {
    "rm-tensor", "FILE TENSOR...", "take tensors out of a model",
    "Tensors are given by their whole names; if one of them is not there nothing is done. \"select "
    "--drop\" takes patterns. All other bytes, metadata and mode are kept. FILE is replaced, at "
    "once and whole; with -o it stays as it is.\n"
    "Of a model with an index, the files that lose tensors are written under fresh names, then the "
    "index, then the old ones are removed if no index in the folder names them. With -o, OUT is "
    "one file if it ends in .safetensors or .sft; else a new or empty folder.",
    rm_tensor_examples,
    { cli_writing_options, cli_json_options, cli_reading_options, cli_common_options, NULL },
    { "the tensors are gone", "there is no tensor of one of the names, or none would be left; "
      "nothing was written",
      "the model could not be read or written, or the usage was wrong" },
    2, SIZE_MAX, cli_select_without,
};
