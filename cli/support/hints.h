/* What to try next, in the words of the command: one table for the hints of the library and for
 * those that only the command gives. */
#ifndef CLI_HINTS_H
#define CLI_HINTS_H

#include "base/error.h"

/* Those that only the command gives: name and words. */
#define CLI_HINTS(X) \
    X(RECURSIVE, "-r looks into its folders too") \
    X(NEW_FOLDER, "give the path it leads to, or a new folder with -o") \
    X(COPY, "write a copy with -o") \
    X(ONE_NAME, "--force changes this name only; the others keep the old file") \
    X(DASH_FILE, "./- names a file") \
    X(EACH_FILE, "give each file by name") \
    X(DROP_ONE, "\"safetensors select --drop\" leaves one of them out, "\
      "--method computes one model from several") \
    X(COMPONENT, "of a pipeline name the folder of a component: PATH/unet, PATH/transformer, ...") \
    X(ONE_FILE, "a model in one file stays one: put its name behind the folder") \
    X(LIST_KEYS, "\"safetensors meta list\" lists the keys") \
    X(ALGO, "--algo tells what a bare HEX is") \
    X(STDIN, "the bytes come from standard input") \
    X(FORWARD, "a pipe is read once, from its beginning to its end: save it to a file first") \
    X(REDIRECT, "redirect it with > FILE, or use --to-terminal") \
    X(AS_RAW, "--as raw gives its bytes") \
    X(FROM_QUANTISED, "--from-quantised quantises the values that its codes stand for") \
    X(SPARE, "--spare GLOB leaves a matrix as it is") \
    X(QUANTIZE_LOSSY, "merge it into a model first; --lossy quantises it all the same") \
    X(NOT_CAST, "what --match and --exclude leave out becomes F16: cast it, too, with " \
      "--dtype BF16 or F32") \
    X(EXPORT_DTYPE, "--dtype F32 writes its values") \
    X(DEQUANTIZE, "\"safetensors convert\" computes its values first: --dequantize those of "\
      "codes, --dtype F32 those of F64") \
    X(EXPORT_NAME, "safetensors rename gives it another name; a .pt holds any") \
    X(ONLINE_OVER, "nothing more is asked online") \
    X(MERGE, "--force adds what is known and keeps the rest") \
    X(DATASET, "\"safetensors dataset\" changes datasets, whole folders are moved") \
    X(MOVE_AWAY, "move it away first") \
    X(URL_READ_ONLY, "it is not read over the network: download it first") \
    X(URL_COPY, "URLs are only read: -o OUT writes the result to a file") \
    X(URL_UPLOAD, "write to a file, and upload that") \
    X(URL_INDEX, "an index names the files beside it, which stay where they are: download the " \
      "model first") \
    X(HUB_URL, "did you mean hf://OWNER/NAME (a URL)?") \
    X(WEB_URL, "did you mean https://HOST/FILE (a URL)?") \
    X(URL_READ, "--read reads all of the file and computes it") \
    X(PATTERN, "patterns are not expanded in quotes: change to the folder first and leave the " \
      "quotes out") \
    X(SINGLE_QUOTE, "in cmd.exe only double quotation marks keep words together") \
    X(EXTENSION, "did you mean this name with .safetensors?") \
    X(QUOTE, "a backslash before a quotation mark makes it part of the name: leave the " \
      "backslash out") \
    X(HELP, "\"safetensors help\" lists the commands") \
    X(USER_RECORDS, "--no-user-records leaves them out") \
    X(CHECK_RECORDS, "\"safetensors records check FILE\" checks a file, --records FILE uses it") \
    X(HELP_RENAME, "safetensors help rename") \
    X(HELP_META, "safetensors help meta") \
    X(HELP_DATASET, "safetensors help dataset") \
    X(HELP_LORA, "safetensors help lora") \
    X(STACK_NAMES, "--to gives all of them the names of one program") \
    X(TELL_MODEL, "--architecture or --model tells their model") \
    X(IGNORE_MISSING, "--ignore-missing merges tensors without the models that lack them, and " \
      "leaves out those of other models") \
    X(MERGE_BASE, "--base names one, and base_model in a recipe") \
    X(MERGE_DTYPE, "--dtype tells it") \
    X(NO_TRASH, "remove it with the system's own means") \
    X(NUMBERED, "--number puts a number behind the name") \
    X(REPLACE_TENSOR, "--replace replaces it") \
    X(OTHER_NAME, "drop that name, too, or \"safetensors rename --map TENSOR=NAME\" first") \
    X(HELP_DTYPES, "\"safetensors help dtypes\" lists them")

#define CLI_HINT_NUMBER(name, words) CLI_HINT_##name,
enum { CLI_HINT_BEFORE = SFT_HINT_PROGRAM - 1, CLI_HINTS(CLI_HINT_NUMBER) };

/* hint: of the command or of the library; err may be NULL. */
void cli_hint(sft_error *err, int hint);

/* The command's words, or the library's, or NULL. */
const char *cli_hint_text(sft_hint hint);
/* The command's alone: for sft_error_text_as, and for sinks that JSON is written to. */
const char *cli_hint_words(sft_hint hint);
const char *cli_sink_words(void *ctx, sft_hint hint);

#endif
