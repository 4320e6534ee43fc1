/* rm-tensor: remove tensors by name. Tests: tests/cli/rm-tensor. */
#include "commands/commands.h"
#include "support/remote.h"

const cli_command cli_rm_tensor_command = {
    "rm-tensor", "FILE TENSOR...", "remove tensors from a model",
    "Tensors are given by their whole names; if one of them does not exist, nothing is done. "
    "\"select --drop\" takes patterns. All other bytes, metadata and mode are kept; digests of the "
    "old data (sshs_model_hash, sshs_legacy_hash, modelspec.hash_*) are dropped. FILE is replaced "
    "atomically; with -o it stays as it is. Of a name that the metadata gives as another one of a "
    "tensor (an alias) only the record goes; a tensor goes with all its names.\n"
    "For a model with an index, the shards that lose tensors are written under new names, then the "
    "index, then the old shards are removed unless another index in the folder names them. With "
    "-o, OUT is one file if it ends in .safetensors or .sft; otherwise a new or empty folder.",
    CLI_EXAMPLES(
        { "safetensors rm-tensor model.safetensors model_ema.decay model_ema.num_updates",
          "remove two tensors" },
        { "safetensors rm-tensor model.safetensors -o lean.safetensors \"extra[0]\"",
          "FILE itself is not changed; names are literal" }),
    { cli_output_options, cli_writing_options, cli_json_options, cli_reading_options,
      cli_remote_options, cli_network_options, cli_common_options },
    { "the tensors were removed",
      "no tensor has one of the names, or none would be left; nothing was written",
      "the model could not be read or written, or a usage error" },
    2, SIZE_MAX, cli_select_without, CLI_URLS_COPY_FIRST,
};
