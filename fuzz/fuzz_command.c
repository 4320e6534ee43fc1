/* The whole command in process over a fuzzed folder (folder.h): models, the journal of an
 * edit, a cache of digests, sidecars, an index with its shards, a dataset, links. The input's
 * first line is one of the lines below, or chooses one by its sum. However it ends:
 *   - the exit status is 0, 1 or 2, nothing is left open or allocated, no temporary file stays;
 *   - outside the folder nothing is written, named or removed, and nothing is told of it;
 *   - a line that only reads changes nothing; one that failed leaves all models as they were,
 *     and so does the recovery of an edit whose journal is not the owner's;
 *   - what is made of a model is no more open to others than the model;
 *   - JSON is JSON, and no text moves the cursor or hides. */
#include "base/json.h"
#include "base/utf8.h"
#include "faults.h"
#include "folder.h"

typedef enum line_kind {
    READS,  /* changes nothing, but for /w/cache */
    COPIES, /* writes new files only */
    WHOLE,  /* one model: done, or nothing done */
    PIECES, /* several files: some may be done */
    TIDIES  /* removes, also what is hidden */
} line_kind;

typedef struct fuzz_line {
    const char *words;
    line_kind kind;
    bool raw; /* prints bytes as they are */
} fuzz_line;

#define M "/w/m.safetensors"
#define INDEX M ".index.json"
#define OUT "/w/o.safetensors"

static const fuzz_line lines[] = {
    { "info " M, READS, false },
    { "info -v --deep " M, READS, false },
    { "info -r /w", READS, false },
    { "info -r --json /w", READS, false },
    { "info --jsonl --full " INDEX, READS, false },
    { "info --json --verify " M, READS, false },
    { "info --hash all --cache /w/cache --json " M, READS, false },
    { "info -r --tsv -f name,trigger_words,rank,architecture /w", READS, false },
    { "info -v " INDEX, READS, false },
    { "info -", READS, false },
    { "check " M, READS, false },
    { "check -r --explain /w", READS, false },
    { "check -r --json --deep --level strict /w", READS, false },
    { "check --legacy --level compat " M " " INDEX, READS, false },
    { "check --jsonl -", READS, false },
    { "ls -v " M, READS, false },
    { "ls -r --tsv /w", READS, false },
    { "ls -r --json --legacy /w", READS, false },
    { "ls --tree " INDEX, READS, false },
    { "ls --sort size --match *w* " M " " INDEX, READS, false },
    { "cat --as json " M " w", READS, false },
    { "cat " INDEX " w[0]", READS, false },
    { "cat --as npy " M " w", READS, true },
    { "hash --algo all --cache /w/cache -r --json /w", READS, false },
    { "hash --algo sha256,autov3 -r /w", READS, false },
    { "hash -c /w/sums", READS, false },
    { "hash -c /w/sums --cache /w/cache --json", READS, false },
    { "hash --algo content " INDEX, READS, false },
    { "dup -r /w", READS, false },
    { "dup --cache /w/cache --json -r /w", READS, false },
    { "diff " M " /w/n.safetensors", READS, false },
    { "diff --json --atol 1e-3 " M " " INDEX, READS, false },
    { "diff --header -v " M " /w/n.safetensors", READS, false },
    { "find --compute --cache /w/cache --json 0123456789 -r /w", READS, false },
    { "find neon -r /w", READS, false },
    { "find --where rank>1 --json -r /w", READS, false },
    { "meta list " M " " INDEX, READS, false },
    { "meta list --to-json " M, READS, true },
    { "meta get " M " title", READS, true },
    { "repair --dry-run " M " -o " OUT, READS, false },
    { "convert --dry-run " M " -o " OUT " --dtype F16", READS, false },
    { "dataset info --json /w/ds", READS, false },
    { "dataset info /w/ds", READS, false },
    { "dataset verify /w/ds", READS, false },
    { "dataset verify --deep --json /w/ds", READS, false },
    { "dataset ls /w/ds", READS, false },
    { "dataset ls --json /w/ds", READS, false },
    { "dataset gc --grace 0s --json /w/ds", READS, false },
    { "meta set " M " title new", WHOLE, false },
    { "meta set --json --keep-mtime " M " a b", WHOLE, false },
    { "meta set --safe " M " title new", WHOLE, false },
    { "meta set -o " OUT " " M " title new", WHOLE, false },
    { "meta set --from-json /w/pairs.json " M, WHOLE, false },
    { "meta set --thumbnail /w/m.preview.png " M, WHOLE, false },
    { "meta set " INDEX " title new", WHOLE, false },
    { "meta set --each-shard " INDEX " title new", PIECES, false },
    { "meta set --force --follow " M " title new", WHOLE, false },
    { "meta rm " M " title", WHOLE, false },
    { "meta scrub " M, WHOLE, false },
    { "meta scrub --json " M, WHOLE, false },
    { "meta recover --json " M, WHOLE, false },
    { "meta recover " INDEX, PIECES, false },
    { "meta recover --force " M, WHOLE, false },
    { "put " M " w", WHOLE, false },
    { "put --safe --json " M " w", WHOLE, false },
    { "put -o " OUT " " M " w", WHOLE, false },
    { "put " INDEX " w", WHOLE, false },
    { "rename " M " --map w=v", WHOLE, false },
    { "rename " M " --strip-prefix a. --add-prefix a.longer.prefix.", WHOLE, false },
    { "rename -o " OUT " " M " --add-prefix p.", WHOLE, false },
    { "rename " INDEX " --add-prefix p.", PIECES, false },
    { "rename --each-shard " INDEX " --add-prefix p.", PIECES, false },
    { "add " M " x=/w/x.npy", WHOLE, false },
    { "add --force " INDEX " w=/w/x.npy", PIECES, false },
    { "rm-tensor " M " w", WHOLE, false },
    { "rm-tensor " INDEX " w", PIECES, false },
    { "repair " M " -o " OUT, WHOLE, false },
    { "repair --json --force " M " -o " OUT, WHOLE, false },
    { "repair --in-place -v " M, WHOLE, false },
    { "repair " INDEX " -o /w/fixed", PIECES, false },
    { "repair --clean /w", TIDIES, false },
    { "repair --in-place --follow --force --legacy " M, WHOLE, false },
    { "select " M " -o " OUT " --keep w", WHOLE, false },
    { "select " M " --in-place --drop w", WHOLE, false },
    { "select " INDEX " -o /w/less --drop w", PIECES, false },
    { "split " M " -o /w/cut --count 2", PIECES, false },
    { "split " INDEX " -o /w/cut --max-size 16", PIECES, false },
    { "merge " INDEX " -o " OUT, WHOLE, false },
    { "merge --json " M " /w/n.safetensors -o " OUT, WHOLE, false },
    { "convert " M " -o " OUT " --dtype BF16", WHOLE, false },
    { "convert --in-place --saturate " M " --dtype F8_E4M3", WHOLE, false },
    { "convert " INDEX " -o /w/small --dtype F16", PIECES, false },
    { "dataset gc --delete --grace 0s /w/ds", TIDIES, false },
    { "dataset gc --delete --json /w/ds", TIDIES, false },
    { "dataset compact --target 1MB --json /w/ds", PIECES, false },
    { "dataset compact /w/ds", PIECES, false },
    { "info --save-as a1111 --dry-run --json -r /w", READS, false },
    { "info --save-as modelspec --dry-run " M, READS, false },
    { "info --save-as a1111 --force --json " M, WHOLE, false },
    { "info --save-as civitai --force --min-trust 0 --hash all " M, WHOLE, false },
    { "info --save-as lora-manager --force --min-trust 0 -r /w", PIECES, false },
    { "info --save-as modelspec --force --min-trust 0 --jsonl " M, WHOLE, false },
    { "info -r --group-by base --long --where rank>=1 /w", READS, false },
    { "ls --stats --histogram -r --json /w", READS, false },
    { "ls --stats --dequantize " M " " INDEX, READS, false },
    { "ls --stats --tsv --csv-safe --exclude *.y " M, READS, false },
    { "ls --fold --md " M " " INDEX, READS, false },
    { "ls --tree --depth 2 --dtype fp32,f16 -r /w", READS, false },
    { "meta header --pretty " M, READS, true },
    { "meta --pretty --json " M " " INDEX, READS, false },
    { "meta list -r --tsv --csv-safe /w", READS, false },
    { "meta get --pretty --json " M " ss_* title", READS, false },
    { "find --fits " M " -a -r /w", READS, false },
    { "find --where bytes>1 -r --tsv /w", READS, false },
    { "dataset ls --tsv --match *v /w/ds", READS, false },
    { "dataset compact --dry-run --json /w/ds", READS, false },
    { "rename --dry-run --json --map-file /w/pairs.json " M, READS, false },
    { "hash -c - --quiet", READS, false },
    { "meta set " M " k=@/w/pairs.json", WHOLE, false },
    { "rename " M " --map-file /w/pairs.json", WHOLE, false },
    { "rename " M " --map-file -", WHOLE, false },
    { "rename " M " --regex s/^a[.](x*)/b.&/g", WHOLE, false },
    { "convert --dequantize " M " -o " OUT, WHOLE, false },
    { "convert --dequantize --in-place " INDEX, PIECES, false },
    { "convert -r /w -o /w/all/ --dtype BF16", COPIES, false },
    { "select --json -r /w --drop w -o /w/all/", COPIES, false },
    { "repair -r /w -o /w/all/ --copy", COPIES, false },
    { "meta set -r --json -o /w/all/ /w title new", COPIES, false },
    { "meta scrub -r --keep title -o /w/all/ /w", COPIES, false },
    { "meta rm --copy -o /w/all/ " M " /w/n.safetensors ss_*", COPIES, false },
    { "select -r /w --keep * --copy -o /w", COPIES, false },
};
#define LINES (sizeof lines / sizeof *lines)

static const fuzz_line *choose_line(const uint8_t *text, size_t len) {
    uint32_t sum = 2166136261u;
    for (size_t i = 0; i < LINES; i++)
        if (strlen(lines[i].words) == len && memcmp(lines[i].words, text, len) == 0)
            return &lines[i];
    for (size_t i = 0; i < len; i++) sum = (sum ^ text[i]) * 16777619u;
    return &lines[sum % LINES];
}

/* ── The system ── */

enum {
    ON_TERMINAL = 1,
    CAN_INSERT = 2,  /* share blocks and take blocks in */
    NO_UNNAMED = 4,
    CAN_DIRECT = 8,
    SUPERUSER = 16,
    SHORT_READS = 32,
    NO_RENAME = 64,
    SMALL_DISK = 128
};

static void set_system(unsigned options) {
    os_fake_set_terminal(1, options & ON_TERMINAL ? 80 : 0);
    os_fake_can(options & CAN_INSERT, options & CAN_INSERT);
    os_fake_no_unnamed(options & NO_UNNAMED);
    os_fake_can_direct(options & CAN_DIRECT);
    if (options & SUPERUSER) os_fake_set_user(0);
    os_fake_short_reads(options & SHORT_READS ? 7 : 0);
    os_fake_no_rename(options & NO_RENAME ? EPERM : 0);
    os_fake_disk_space(options & SMALL_DISK ? 1000 : 1u << 26);
}

/* ── What is done to the disk ── */

static const picture *before;

/* Nothing is named, removed or written but in the folder. */
static void watch(const os_fake_op *op) {
    if (op->path) FUZZ_CHECK(is_inside(op->path));
    if (op->to) FUZZ_CHECK(is_inside(op->to));
    for (size_t i = 0; !op->path && i < before->count; i++)
        FUZZ_CHECK(before->all[i].inode != op->inode || is_inside(before->all[i].path));
}

static bool ends_with(const char *text, const char *end) {
    size_t len = strlen(text), tail = strlen(end);
    return len >= tail && strcmp(text + len - tail, end) == 0;
}

static bool is_journal(const char *path) { return ends_with(path, ".sft-journal"); }

/* A journal that may be obeyed: of the model's owner, whom all else belongs to. */
static bool is_honest(const was *w) {
    return w && w->kind == OS_FILE && w->owner == 1000 && (w->mode & 022) == 0;
}

/* What an edit that was interrupted changed may be recovered before anything is done. */
static bool is_being_edited(const was *w) {
    for (size_t i = 1; i < SLOTS; i++) {
        if (slots[i].kind != SLOT_JOURNAL) continue;
        if (!is_honest(picture_find(before, slots[i].path))) continue;
        if (strcmp(w->path, slots[i].path) == 0) return true;
        const fake_name *model = fake_name_find(slots[i - 1].path);
        if (model && model->node->inode == w->inode) return true;
        if (strcmp(w->path, slots[i - 1].path) == 0) return true;
    }
    return false;
}

static void check_old(const fuzz_line *line, int status) {
    bool recovers = strncmp(line->words, "meta recover ", 13) == 0;
    for (size_t i = 0; i < before->count; i++) {
        const was *w = &before->all[i];
        if (is_inside(w->path)) {
            bool done = line->kind != WHOLE || (status == 0 && !recovers);
            if (line->kind != READS && line->kind != COPIES && done) continue;
            if (strcmp(w->path, "/w/cache") == 0) continue;
            if (line->kind == WHOLE && is_being_edited(w)) continue;
        }
        FUZZ_CHECK(is_as_it_was(w));
    }
}

/* Litter, and what more people may read than could before. */
static void check_new(const fuzz_line *line, int status, unsigned options) {
    for (size_t i = 0; i < fake.name_count; i++) {
        const char *path = fake.names[i].path;
        const was *w = picture_find(before, path);
        if (ends_with(path, ".safetensors") && strncmp(path, "/w/ds/", 6) != 0)
            FUZZ_CHECK((fake.names[i].node->mode & 077) == (w ? w->mode & 077 : 0)
                       || fake.names[i].node->kind != OS_FILE);
        if (w || strcmp(path, "/w/cache") == 0) continue;
        FUZZ_CHECK(!strstr(path, ".sft-") || (is_journal(path) && options & SMALL_DISK));
        FUZZ_CHECK(line->kind != READS && (line->kind != WHOLE || status == 0));
    }
}

/* ── What it says ── */

static void check_json(const char *text, size_t len, bool lines_only) {
    while (len > 0) {
        const char *end = lines_only ? memchr(text, '\n', len) : text + len;
        FUZZ_CHECK(end);
        sfti_json json;
        sfti_json_begin(&json, text, (size_t)(end - text));
        while (sfti_json_next(&json) != SFTI_JSON_END) FUZZ_CHECK(json.type != SFTI_JSON_ERROR);
        len -= (size_t)(end - text);
        if (len > 0) len--;
        text = end + 1;
    }
}

/* Moves the cursor, reorders, or is there and cannot be seen. */
static bool is_hidden(uint32_t c) {
    return (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7f && c < 0xa0) || c == 0xad
           || c == 0x61c || c == 0x200b || c == 0x200e || c == 0x200f
           || (c >= 0x2028 && c <= 0x202e) || c == 0x2060 || (c >= 0x2066 && c <= 0x2069)
           || c == 0xfeff || (c >= 0xe0000 && c <= 0xe007f);
}

static void check_text(const char *text, size_t len, bool color) {
    const uint8_t *at = (const uint8_t *)text, *end = at + len;
    FUZZ_CHECK(sfti_utf8_check(text, len) == len);
    while (at < end) {
        uint32_t c = 0;
        at += sfti_utf8_decode(at, end, &c);
        FUZZ_CHECK(!is_hidden(c) || (c == 0x1b && color));
    }
}

static bool contains(const void *in, size_t len, const char *what) {
    const char *at = in;
    for (size_t n = strlen(what); len >= n; at++, len--)
        if (memcmp(at, what, n) == 0) return true;
    return false;
}

/* Who asks for all models of a tree asks for those that are links, too. */
static bool asks_outside(const fuzz_line *line) {
    if (!strstr(line->words, "-r ")) return false;
    for (size_t i = 0; i < before->count; i++)
        if (before->all[i].kind == OS_LINK && ends_with(before->all[i].path, ".safetensors"))
            return true;
    return false;
}

static void check_said(const fuzz_line *line, unsigned options) {
    size_t len, err_len;
    const char *text = os_fake_output(1, &len), *err = os_fake_output(2, &err_len);
    bool color = options & ON_TERMINAL;
    bool outside = contains(text, len, FUZZ_OUTSIDE) || contains(err, err_len, FUZZ_OUTSIDE);
    FUZZ_CHECK(!outside || asks_outside(line));
    if (!(options & SMALL_DISK)) check_text(err, err_len, color);
    if (line->raw || options & SMALL_DISK) return; /* what is said goes to that disk, too */
    bool json_lines = strstr(line->words, "--jsonl ") != NULL;
    bool json = json_lines || strstr(line->words, "--json ") || strstr(line->words, "--as json ");
    if (json) FUZZ_CHECK(sfti_utf8_check(text, len) == len);
    if (json && len > 0) check_json(text, len, json_lines);
    if (!json) check_text(text, len, color);
}

/* ── One run ── */

#define CALLS_MOST 3000000

static void check_left(void) {
    FUZZ_CHECK(os_fake_open_fds() == 0);
    FUZZ_CHECK(os_fake_maps() == 0);
    FUZZ_CHECK(os_fake_blocks() == 0);
    FUZZ_CHECK(os_fake_mutexes() == 0);
    FUZZ_CHECK(os_fake_calls() < CALLS_MOST);
}

static void run_line(const fuzz_line *line, unsigned options, rest records) {
    char words[256];
    (void)snprintf(words, sizeof words, "safetensors %s", line->words);
    os_fake_reset();
    os_fake_add_dir("/w");
    place_outside();
    place_all(records, false);
    place_all(records, true);
    picture was = take_picture();
    before = &was;
    set_system(options);
    os_fake_fail(0, 0, false); /* counts from here */
    os_fake_watch(watch);
    int status = fault_command(words);
    os_fake_watch(NULL);
    FUZZ_CHECK(status == 0 || status == 1 || status == 2);
    check_left();
    check_old(line, status);
    check_new(line, status, options);
    check_said(line, options);
    free_picture(&was);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    if (!end || end + 1 == data + size || contains(data, size, FUZZ_OUTSIDE)) return 0;
    size_t first = (size_t)(end - data);
    run_line(choose_line(data, first), end[1], (rest){ end + 2, size - first - 2 });
    return 0;
}
