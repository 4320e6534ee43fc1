/* What to try next, in the words of the package: err.hint, and "hint" in results.
 * Tests: test_errors.py. */
#include "core.h"
#include "safetensors_codes.h"

typedef struct hint_row {
    int hint;
    const char *words;
} hint_row;

/* In the order of sft_hint; of those that are not here the library's own words do. */
static const hint_row hint_table[] = {
    { SFT_HINT_BROKEN_WRITER, "the program that wrote this file is at fault; "
                              "libsafetensors.check(path) lists all that is wrong with it" },
    { SFT_HINT_REPAIR, "the command \"safetensors repair\" writes a valid copy" },
    { SFT_HINT_REPAIR_PADDING, "the writer padded with NUL; the command \"safetensors repair\" "
                               "writes a valid copy if nothing else is wrong" },
    { SFT_HINT_LEVEL_COMPAT, "level=\"compat\" accepts what the official package accepts" },
    { SFT_HINT_LEVEL_STRICT, "only level=\"strict\" refuses this" },
    { SFT_HINT_LEGACY, "legacy=True reads it" },
    { SFT_HINT_HEADER_LIMIT, "this is probably not a safetensors file; max_header_bytes allows a "
                             "larger header" },
    { SFT_HINT_GIT_LFS, "run \"git lfs pull\"" },
    { SFT_HINT_XET, "fetch the file with a client that knows Xet, or run \"git xet install\" and "
                    "pull again" },
    { SFT_HINT_CONVERT_CHECKPOINT,
      "libsafetensors.import_model(path, output) makes it safetensors "
      "and runs nothing of it" },
    { SFT_HINT_PICKLE,
      "libsafetensors.import_model(path, output) makes it safetensors if it "
      "holds arrays; loading it can run code" },
    { SFT_HINT_USE_GGUF, "libsafetensors.import_model(path, output) makes it safetensors" },
    { SFT_HINT_USE_HDF5, "libsafetensors.h5.convert(path, output) makes it safetensors" },
    { SFT_HINT_USE_NUMPY,
      "libsafetensors.import_model(path, output) makes it "
      "safetensors; numpy.load(path) reads it" },
    { SFT_HINT_BUILD_64_BIT, "use a 64-bit Python" },
    { SFT_HINT_READ_NOT_MAP, "mode=\"read\", or backend=\"pread\", reads it" },
    { SFT_HINT_OPEN_FILES, "each open file and each shard takes a descriptor: close some, or raise "
                           "the limit (ulimit -n, resource.setrlimit)" },
    { SFT_HINT_LIST_TENSORS, "keys() of the open file lists the names" },
    { SFT_HINT_CHOOSE_TENSORS, "names=[...] chooses tensors" },
    { SFT_HINT_SATURATE, "saturate=True takes the nearest value there is" },
    { SFT_HINT_REPLACE, "overwrite=True replaces it" },
    { SFT_HINT_FOLLOW_LINK, "give the path it leads to, or link=\"follow\"" },
    { SFT_HINT_HUB_CACHE, "this is the Hugging Face cache, whose files are named by their digests: "
                          "write a copy with output=PATH" },
    { SFT_HINT_HARD_LINKS, "force=True changes it all the same" },
    { SFT_HINT_OBJECT_STORE, "if this is a mounted object store, write to a local disk and copy "
                             "the file, or overwrite it with in_place_unsafe=True" },
    { SFT_HINT_RECOVER, "libsafetensors.recover(path) recovers it" },
    { SFT_HINT_RECOVER_COPY,
      "the command \"safetensors meta recover --force FILE\" recovers a copy" },
    { SFT_HINT_RECOVER_OR_REMOVE,
      "the command \"safetensors meta recover --force FILE\" recovers a copy of the file, where "
      "every byte fits; or remove the journal .NAME.sft-journal, when the model is as it should "
      "be" },
    { SFT_HINT_RECOVER_UNLOCKED, "when no other program changes the file, use the command "
                                 "\"safetensors meta recover --force FILE\"" },
    { SFT_HINT_RECOVER_HOLE,
      "keep a copy of file and journal, take the hole out with \"fallocate --collapse-range\" (or, "
      "at the end, with os.truncate), then call libsafetensors.recover(path)" },
    { SFT_HINT_JOURNAL_OWNER,
      "this journal is not followed: ask whose file .NAME.sft-journal is, and have it removed if "
      "it is not the trace of an edit; output=PATH writes a changed copy" },
    { SFT_HINT_NO_MANIFEST, "an unfinished job has none; use_manifest=False reads all files of the "
                            "folder" },
    { SFT_HINT_VERIFY_DATASET, "libsafetensors.dataset.verify(path) checks all shards" },
    { SFT_HINT_LAST_WINS, "duplicatesStrategy=\"lastWin\" keeps the last" },
    { SFT_HINT_DATASET_EXISTS,
      "mode=\"append\" adds to a dataset, mode=\"overwrite\" replaces it" },
    { SFT_HINT_OVERWRITE_DATASET, "mode=\"overwrite\" replaces the dataset" },
    { SFT_HINT_DATASET_BEGIN, "mode=\"overwrite\" begins a new dataset there" },
    { SFT_HINT_ADOPT, "adopt=\"listing\" takes them in" },
    { SFT_HINT_SINGLE_WRITER, "single_writer=True, if nobody else commits meanwhile" },
    { SFT_HINT_IMPORT_SKIP, "skip=True leaves it out" },
    { SFT_HINT_IMPORT_SHARED, "shared=\"alias\" keeps one name, shared=\"copy\" copies "
                            "the bytes for each" },
    { SFT_HINT_IMPORT_BRANCH,
      "report[\"branches\"] of the import lists them, "
      "root= takes one, all=True takes all" },
    { SFT_HINT_IMPORT_AS, "as_={\"NAME\": \"DTYPE\"} tells it" },
    { SFT_HINT_MAX_OUTPUT, "if that is expected, raise it with max_output=" },
    { SFT_HINT_IMPORT_QUANTISED, "quantised=\"parts\" takes its integers and scales, "
                            "quantised=\"values\" its values" },
    { SFT_HINT_IMPORT_SPARSE, "sparse=\"parts\" takes its indices and values, "
                            "sparse=\"dense\" makes it dense" },
    { SFT_HINT_IMPORT_WIDER, "dequantised=\"BF16\" or dequantised=\"F32\" holds it" },
    { SFT_HINT_REMOTE_CREDENTIALS,
      "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_PROFILE and AWS_REGION; "
      "anonymous=True reads public objects" },
    { SFT_HINT_REMOTE_DOWNLOAD, "download the file, or read it whole with whole=True" },
    { SFT_HINT_REMOTE_OFFLINE,
      "allow the network (offline=False, HF_HUB_OFFLINE), or download the file first" },
    { SFT_HINT_REMOTE_PUBLIC, "leave out public_only if you trust whoever gave this URL" },
    { SFT_HINT_LOSSY, "\"BF16\" or \"F16\" keeps its values; lossy=True casts it all the same" },
    { SFT_HINT_VERSIONS, "dataset.versions() lists those that are kept" },
    { SFT_HINT_LORA_NAMES, "the command \"safetensors lora convert --to\" converts names and "
                           "configuration; or give the key in remove=" },

    { PYSFT_HINT_URL, "of URLs, those of https, hf, s3 and gs are read: download the file, or hand "
                      "over fsspec.open(url)" },
};

static const char *hint_words(sft_hint hint) {
    for (size_t i = 0; i < sizeof hint_table / sizeof *hint_table; i++)
        if (hint_table[i].hint == (int)hint) return hint_table[i].words;
    return NULL;
}

const char *pysft_hint_text(sft_hint hint) {
    const char *words = hint_words(hint);
    return words ? words : sft_hint_text(hint);
}

static const char *sink_words(void *Py_UNUSED(ctx), sft_hint hint) {
    return hint_words(hint);
}

void pysft_text_sink_begin(pysft_text_sink *sink, sft_buffer *into) {
    sink->sink = sft_sink_memory(into);
    sink->table = *sink->sink.vtable;
    sink->table.words = sink_words;
    sink->sink.vtable = &sink->table;
}
