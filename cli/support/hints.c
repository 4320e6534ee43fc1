/* What to try next, in the words of the command; hints without a row have the library's. */
#include "support/hints.h"
#include "safetensors_codes.h"

typedef struct hint_row {
    int hint;
    const char *words;
} hint_row;

#define HINT_ROW(name, words) { CLI_HINT_##name, words },

static const hint_row hint_table[] = {
    { SFT_HINT_BROKEN_WRITER, "the program that wrote this file is at fault; \"safetensors check "
                              "--explain\" shows the rule" },
    { SFT_HINT_REPAIR, "\"safetensors repair\" writes a valid copy" },
    { SFT_HINT_REPAIR_PADDING, "the writer padded with NUL; \"safetensors repair\" writes a valid "
                               "copy if nothing else is wrong" },
    { SFT_HINT_LEVEL_COMPAT, "--level compat accepts what the official package accepts" },
    { SFT_HINT_LEVEL_STRICT, "only --level strict refuses this" },
    { SFT_HINT_LEGACY, "--legacy reads it" },
    { SFT_HINT_HEADER_LIMIT, "this is probably not a safetensors file" },
    { SFT_HINT_GIT_LFS, "run \"git lfs pull\"" },
    { SFT_HINT_XET, "fetch the file with a client that knows Xet, or run \"git xet install\" and "
                    "pull again" },
    { SFT_HINT_CONVERT_CHECKPOINT,
      "\"safetensors convert\" makes it safetensors and runs nothing of it" },
    { SFT_HINT_PICKLE, "\"safetensors convert\" makes it safetensors if it holds arrays; "
                       "loading it can run code" },
    { SFT_HINT_USE_GGUF, "\"safetensors convert\" makes it safetensors" },
    { SFT_HINT_USE_HDF5, "\"python -m libsafetensors convert\" makes it safetensors" },
    { SFT_HINT_GUNZIP, "run \"gunzip\" first" },
    { SFT_HINT_UNZSTD, "run \"unzstd\" first" },
    { SFT_HINT_USE_NUMPY, "\"safetensors convert\" makes it safetensors; numpy.load reads it" },
    { SFT_HINT_OPEN_FILES, "each open file and each shard takes a descriptor: raise the limit "
                           "(ulimit -n)" },
    { SFT_HINT_LIST_TENSORS, "\"safetensors ls\" lists the names" },
    { SFT_HINT_CHOOSE_TENSORS, "--match chooses tensors" },
    { SFT_HINT_SATURATE, "--saturate takes the nearest value there is" },
    { SFT_HINT_REPLACE, "--force replaces it" },
    { SFT_HINT_FOLLOW_LINK, "give the path it leads to, or --follow" },
    { SFT_HINT_HUB_CACHE, "this is the Hugging Face cache, whose files are named by their digests: "
                          "write a copy with -o" },
    { SFT_HINT_HARD_LINKS, "--force changes it all the same" },
    { SFT_HINT_OBJECT_STORE, "if this is a mounted object store, write to a local disk and copy "
                             "the file, or overwrite it with --in-place-unsafe" },
    { SFT_HINT_RECOVER, "\"safetensors meta recover FILE\" recovers it" },
    { SFT_HINT_RECOVER_COPY, "\"safetensors meta recover --force FILE\" recovers a copy" },
    { SFT_HINT_RECOVER_OR_REMOVE,
      "--force recovers a copy of the file, where every byte fits; or remove the journal "
      ".NAME.sft-journal, when the model is as it should be" },
    { SFT_HINT_RECOVER_UNLOCKED, "when no other program changes the file, \"safetensors meta "
                                 "recover --force FILE\"" },
    { SFT_HINT_RECOVER_HOLE,
      "keep a copy of file and journal, take the hole out with \"fallocate --collapse-range\" (or, "
      "at the end, with \"truncate\"), then \"safetensors meta recover FILE\"" },
    { SFT_HINT_JOURNAL_OWNER,
      "this journal is not followed: ask whose file .NAME.sft-journal is, and have it removed if "
      "it is not the trace of an edit; -o OUT writes a changed copy" },
    { SFT_HINT_NO_MANIFEST, "an unfinished job has none; \"safetensors ls\" reads its files one by "
                            "one" },
    { SFT_HINT_VERIFY_DATASET, "\"safetensors dataset verify\" checks all shards" },
    { SFT_HINT_SINGLE_WRITER, "copy the dataset to a local disk first" },
    { SFT_HINT_IMPORT_SKIP, "convert --skip leaves it out" },
    { SFT_HINT_IMPORT_SHARED, "convert --shared alias keeps one name, --shared copy "
                              "copies the bytes for each" },
    { SFT_HINT_IMPORT_BRANCH, "convert --list shows the branches, --root takes one, --all takes "
                              "all" },
    { SFT_HINT_IMPORT_AS, "convert --as 'NAME=DTYPE' tells it, for example --as '*=BF16'" },
    { SFT_HINT_MAX_OUTPUT, "if that is expected, raise it with convert --max-output" },
    { SFT_HINT_IMPORT_QUANTISED, "convert --quantised parts takes its integers and scales, "
                                 "--quantised values its values" },
    { SFT_HINT_IMPORT_SPARSE, "convert --sparse parts takes its indices and values, "
                              "--sparse dense makes it dense" },
    { SFT_HINT_IMPORT_WIDER, "convert --dtype BF16 or --dtype F32 holds it" },
    { SFT_HINT_REMOTE_TOKEN,
      "a private file needs a token in the environment (HF_TOKEN, CIVITAI_API_TOKEN); else the "
      "name may be misspelt" },
    { SFT_HINT_REMOTE_BAD_TOKEN,
      "renew the token; --no-sign-request reads what is public without one" },
    { SFT_HINT_REMOTE_CREDENTIALS,
      "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_PROFILE and AWS_REGION; "
      "--no-sign-request reads public objects" },
    { SFT_HINT_REMOTE_DOWNLOAD, "download the file, or read it whole with --whole" },
    { SFT_HINT_REMOTE_OFFLINE,
      "leave out --offline (and HF_HUB_OFFLINE), or download the file first" },
    { SFT_HINT_REMOTE_CURL, "install libcurl (Debian: apt-get install libcurl4; Windows: "
                            "libcurl-x64.dll beside safetensors.exe)" },
    { SFT_HINT_REMOTE_PUBLIC, "leave out --public-only if you trust whoever gave this URL" },
    { SFT_HINT_LOSSY, "--dtype BF16 or F16 keeps its values; --lossy casts it all the same" },
    { SFT_HINT_VERSIONS, "\"safetensors dataset versions\" lists those that are kept" },
    { SFT_HINT_LORA_NAMES, "\"safetensors lora convert --to\" converts names and configuration; or "
                           "\"safetensors meta rm FILE lora_adapter_metadata\" first" },
    { SFT_HINT_DECLARED_NAMES, "\"safetensors convert --dequantize\" computes the values first" },
    { SFT_HINT_ADAPTER_TENSOR, "\"safetensors rm-tensor\" leaves it out if it is not meant" },
    CLI_HINTS(HINT_ROW)
};

void cli_hint(sft_error *err, int hint) {
    sfti_hint(err, (sft_hint)hint);
}

const char *cli_hint_words(sft_hint hint) {
    for (size_t i = 0; i < sizeof hint_table / sizeof *hint_table; i++)
        if (hint_table[i].hint == (int)hint) return hint_table[i].words;
    return NULL;
}

const char *cli_sink_words(void *ctx, sft_hint hint) {
    (void)ctx;
    return cli_hint_words(hint);
}

const char *cli_hint_text(sft_hint hint) {
    const char *words = cli_hint_words(hint);
    return words ? words : sft_hint_text(hint);
}
