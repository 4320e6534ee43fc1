/* Hints: what to try next, in words that fit every program. None names an option: a front end
 * has a table of its own where it has better ones. */
#include "safetensors_codes.h"
#include "safetensors_io.h"

typedef struct hint_row {
    sft_hint hint;
    const char *words;
} hint_row;

static const hint_row hint_table[] = {
    { SFT_HINT_DOWNLOAD_AGAIN, "download the file again" },
    { SFT_HINT_BROKEN_WRITER, "the program that wrote this file is at fault" },
    { SFT_HINT_REPAIR, "a repair writes a valid copy" },
    { SFT_HINT_REPAIR_PADDING,
      "the writer padded with NUL; a repair writes a valid copy if nothing else is wrong" },
    { SFT_HINT_LEVEL_COMPAT, "level compat accepts what the official package accepts" },
    { SFT_HINT_LEVEL_STRICT, "only level strict refuses this" },
    { SFT_HINT_LEGACY, "the open options can allow this layout" },
    { SFT_HINT_HEADER_LIMIT, "this is probably not a safetensors file; the open options can "
                             "allow a larger header" },
    { SFT_HINT_NEWER_VERSION, "a newer version may know this dtype" },
    { SFT_HINT_DO_NOT_TRUST, "do not trust this model" },
    { SFT_HINT_DOWNLOAD_SHARD, "download what is missing" },
    { SFT_HINT_VERSIONS_DIFFER, "index and shards are of different versions" },
    { SFT_HINT_READ_AS_TEXT, "this is not a safetensors file; read it as text to see why" },
    { SFT_HINT_GIT_LFS, "fetch the file with Git LFS" },
    { SFT_HINT_XET, "fetch the file with a client that knows Xet" },
    { SFT_HINT_WEB_PAGE, "the download was answered by a web page (login, error); open it in a "
                         "browser, then download again" },
    { SFT_HINT_UNPACK, "unpack the archive first" },
    { SFT_HINT_CONVERT_CHECKPOINT, "convert it to safetensors, which runs nothing of it" },
    { SFT_HINT_PICKLE, "convert it to safetensors if it holds arrays; loading it can run code" },
    { SFT_HINT_USE_GGUF, "convert it to safetensors" },
    { SFT_HINT_USE_HDF5, "use a program that reads HDF5" },
    { SFT_HINT_GUNZIP, "decompress it first" },
    { SFT_HINT_UNZSTD, "decompress it first" },
    { SFT_HINT_USE_NUMPY, "convert it to safetensors, or use NumPy, which reads it" },
    { SFT_HINT_NAME_INDEX, "name it *.safetensors.index.json, in the folder of its shards" },
    { SFT_HINT_BUILD_64_BIT, "use a 64-bit build" },
    { SFT_HINT_READ_NOT_MAP, "open it for reading instead" },
    { SFT_HINT_FILE_CHANGES, "another program is writing this file" },
    { SFT_HINT_OPEN_FILES, "each open file and each shard takes a descriptor: close some, or raise "
                           "the limit of open files" },
    { SFT_HINT_LINK_LEAVES, "put the file itself there; only links of a Hub cache to its own "
                            "blobs may leave the folder" },
    { SFT_HINT_LINK_NAMED, "nothing is changed through a link that a model's files name" },
    { SFT_HINT_LIST_TENSORS, "list the tensors to see their names" },
    { SFT_HINT_BORROW_OR_COPY, "borrow or copy the tensor instead" },
    { SFT_HINT_SLICE_EXAMPLE, "for example [0, 2:8, ::-1, ...]" },
    { SFT_HINT_SLICE_BYTES, "slice outer dimensions, or in multiples that fill bytes" },
    { SFT_HINT_CHOOSE_TENSORS, "choose the tensors to convert" },
    { SFT_HINT_SATURATE, "saturation takes the nearest value there is" },
    { SFT_HINT_REPLACE, "the options can allow replacing it" },
    { SFT_HINT_NEW_FOLDER, "a model of several files is never overwritten file by file: name a "
                           "new folder" },
    { SFT_HINT_FOLLOW_LINK, "give the path it leads to, or follow links" },
    { SFT_HINT_HUB_CACHE, "this is the Hugging Face cache, whose files are named by their "
                          "digests: write a copy" },
    { SFT_HINT_HARD_LINKS, "the change can be forced" },
    { SFT_HINT_OBJECT_STORE, "if this is a mounted object store, write to a local disk and copy "
                             "the file, or allow unsafe writes in place" },
    { SFT_HINT_TRY_LATER, "try again when it is done" },
    { SFT_HINT_RECOVER, "recover the file" },
    { SFT_HINT_RECOVER_COPY, "a copy can be recovered by force" },
    { SFT_HINT_RECOVER_OR_REMOVE,
      "a copy of the file can be recovered by force, where every byte fits; or remove the journal "
      ".NAME.sft-journal, when the model is as it should be" },
    { SFT_HINT_RECOVER_UNLOCKED, "when no other program changes the file, recover it by force" },
    { SFT_HINT_RECOVER_HOLE, "keep a copy of file and journal, take the hole out (or, at the end, "
                             "cut the file), then recover it" },
    { SFT_HINT_JOURNAL_REMOVE, "look at the journal .NAME.sft-journal in the file's folder; remove "
                               "it when the model is as it should be" },
    { SFT_HINT_JOURNAL_OWNER,
      "this journal is not followed: ask whose file .NAME.sft-journal is, and have it removed if "
      "it is not the trace of an edit; or write a changed copy" },
    { SFT_HINT_CACHE_OTHER_FILE, "nothing was written; name another file" },
    { SFT_HINT_CACHE_OWNER, "its digests cannot be trusted; name another file" },
    { SFT_HINT_CACHE_MODE, "its digests cannot be trusted; take write permission from group and "
                           "others, or name another file" },
    { SFT_HINT_CACHE_KEPT, "it is left as it is; name another file" },
    { SFT_HINT_NO_MANIFEST, "an unfinished job has none; the files can be read without it" },
    { SFT_HINT_VERIFY_DATASET, "verify the dataset to check all its shards" },
    { SFT_HINT_LAST_WINS, "the strategy lastWin for duplicates keeps the last" },
    { SFT_HINT_DATASET_EXISTS, "append to the dataset, or overwrite it" },
    { SFT_HINT_OVERWRITE_DATASET, "an overwrite replaces the dataset" },
    { SFT_HINT_DATASET_BEGIN, "an overwrite begins a new dataset there" },
    { SFT_HINT_DATASET_LINKS, "a dataset's files are no links, except links of a Hub cache to its "
                              "own blobs" },
    { SFT_HINT_ADOPT, "an append can adopt the shards that are listed" },
    { SFT_HINT_SINGLE_WRITER, "write as the only writer, if nobody else commits meanwhile" },
    { SFT_HINT_BEGIN_AGAIN, "begin again" },
    { SFT_HINT_IMPORT_SKIP, "the import can leave it out" },
    { SFT_HINT_IMPORT_SHARED, "keep one name, or copy the bytes for each" },
    { SFT_HINT_IMPORT_BRANCH, "list the branches, and name one" },
    { SFT_HINT_IMPORT_AS, "tell its dtype" },
    { SFT_HINT_MAX_OUTPUT, "if that is expected, raise the limit" },
    { SFT_HINT_IMPORT_QUANTISED, "take its integers and scales, or its values" },
    { SFT_HINT_IMPORT_SPARSE, "take its indices and values, or make it dense" },
    { SFT_HINT_IMPORT_WIDER, "compute the values in a wider dtype" },
    { SFT_HINT_REMOTE_TOKEN,
      "a private file needs a token (HF_TOKEN, CIVITAI_API_TOKEN), and spelling counts" },
    { SFT_HINT_REMOTE_BAD_TOKEN, "renew the token, or read without one" },
    { SFT_HINT_REMOTE_GATED,
      "accept the model's terms on its page, then use a token of that account" },
    { SFT_HINT_REMOTE_CREDENTIALS,
      "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_PROFILE and the region, or read "
      "without signing" },
    { SFT_HINT_REMOTE_CLOCK, "this machine's clock differs from the server's: set it" },
    { SFT_HINT_REMOTE_PROXY,
      "check the address, the connection and the proxy (https_proxy, no_proxy)" },
    { SFT_HINT_REMOTE_CA,
      "if the server is yours, name its certificate authority in CURL_CA_BUNDLE or "
      "SSL_CERT_FILE" },
    { SFT_HINT_REMOTE_DOWNLOAD, "download the file, or allow it to be read whole" },
    { SFT_HINT_REMOTE_AGAIN, "nothing of the two was mixed: run it again" },
    { SFT_HINT_REMOTE_WAIT, "try again later" },
    { SFT_HINT_REMOTE_OFFLINE, "allow the network, or download the file first" },
    { SFT_HINT_REMOTE_CURL, "install libcurl (Debian: libcurl4; Windows: libcurl-x64.dll)" },
    { SFT_HINT_REMOTE_PUBLIC, "private addresses are refused here on purpose" },
    { SFT_HINT_REMOTE_NAME,
      "expected https://HOST/FILE, hf://OWNER/NAME[@REVISION][/FILE], s3://BUCKET/KEY or "
      "gs://BUCKET/KEY" },
    { SFT_HINT_REMOTE_SIGNED, "a signed URL ends after some time: get a new one" },
    { SFT_HINT_REMOTE_LOGIN,
      "if the server wants a user, write https://USER:PASSWORD@HOST/FILE" },
    { SFT_HINT_REMOTE_LIMIT,
      "try again after that time; a token raises the limit of the Hugging Face Hub" },
    { SFT_HINT_LOSSY, "16 bits keep its values; the convert options can allow fewer" },
    { SFT_HINT_TENSOR_SHARD, "take the file of the tensor's shard (sft_set_shard_at)" },
    { SFT_HINT_FOLDER, "name a model's file or its index in the folder" },
    { SFT_HINT_VERSIONS, "list the versions that are kept" },
    { SFT_HINT_LORA_NAMES, "convert the adapter's names and its configuration together, or remove "
                           "the key first" },
    { SFT_HINT_DECLARED_NAMES, "compute the values of the quantised layers first" },
    { SFT_HINT_ADAPTER_CONFIG, "tell it in adapter_config.json beside the adapter: "
                               "\"fan_in_fan_out\": false for nn.Linear, "
                               "\"feedforward_modules\" as a list of names" },
    { SFT_HINT_ADAPTER_PROGRAM, "merge it with the program that wrote it" },
    { SFT_HINT_ADAPTER_TENSOR, "leave the tensor out if it is not meant" },
};

/* The process's own, set before other threads use the library. */
static sft_words_fn program_words;

void sft_on_hint(sft_words_fn words) {
    program_words = words;
}

const char *sft_hint_text(sft_hint hint) {
    if (hint == SFT_HINT_NONE) return NULL;
    const char *words = program_words ? program_words(hint) : NULL;
    for (size_t i = 0; !words && i < sizeof hint_table / sizeof *hint_table; i++)
        if (hint_table[i].hint == hint) words = hint_table[i].words;
    return words;
}
