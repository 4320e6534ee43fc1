/* What a model is, in a line for people, made of the ids of its facts. Tests: tests/cli/info. */
#include "support/titles.h"

#include "support/records.h"
#include "support/print.h"
#include "support/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNSURE 60        /* trust up to which a fact is marked */
#define LABEL_BYTES 64   /* of one text out of a file */
#define SAID_BYTES 1024  /* of each of two such texts that are compared word by word */

/* ── Text ── */

typedef struct title {
    char *text;
    size_t len;
} title;

static void put(title *t, sft_span text) {
    text = cli_cut(text, CLI_TITLE_SIZE - t->len);
    if (text.len) memcpy(t->text + t->len, text.data, text.len);
    t->len += text.len;
}

static void say(title *t, const char *words) {
    put(t, sft_span_cstr(words));
}

/* What a file says, in as many bytes as a title has for it. */
static void put_label(title *t, sft_span label) {
    sft_span some = cli_cut(label, LABEL_BYTES);
    put(t, some);
    if (some.len < label.len) say(t, "\xE2\x80\xA6");
}

/* "a" after nothing, " a" after something. */
static void piece(title *t, const char *before, sft_span text) {
    if (!text.len) return;
    if (t->len) say(t, before);
    put(t, text);
}

static bool is_letter(char c) {
    char low = cli_lower(c);
    return (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') || (unsigned char)c >= 0x80;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Letters and digits, and points between digits. */
static bool next_word(sft_span *rest, sft_span *word) {
    size_t at = 0, end;
    while (at < rest->len && !is_letter(rest->data[at])) at++;
    for (end = at; end < rest->len; end++) {
        bool point = rest->data[end] == '.' && end > at && end + 1 < rest->len
                  && is_digit(rest->data[end - 1]) && is_digit(rest->data[end + 1]);
        if (!is_letter(rest->data[end]) && !point) break;
    }
    *word = (sft_span){ rest->data + at, end - at };
    *rest = (sft_span){ rest->data + end, rest->len - end };
    return word->len > 0;
}

/* Whether every word of it stands in text, of which SAID_BYTES are looked at. */
static bool says(sft_span text, sft_span words) {
    sft_span one;
    if (words.len > SAID_BYTES) return false;
    if (text.len > SAID_BYTES) text.len = SAID_BYTES;
    while (next_word(&words, &one)) {
        sft_span rest = text, word;
        bool said = false;
        while (!said && next_word(&rest, &word)) {
            /* "1" is also said by "1.5". */
            bool longer = word.len > one.len && word.data[one.len] == '.';
            if (longer && is_digit(one.data[0])) word.len = one.len;
            said = cli_same_letters(word, one);
        }
        if (!said) return false;
    }
    return true;
}

/* ── Facts ── */

bool cli_is_unsure(const sft_node *root, const char *path) {
    uint64_t trust;
    const sft_node *fact = sft_node_find(root, path);
    return sft_node_uint(fact, "trust", &trust) && trust <= UNSURE;
}

static void doubt(title *t, const sft_node *root, const char *path) {
    if (cli_is_unsure(root, path)) say(t, "?");
}

/* The size that a name states ("8B", "1.3b"), if it is about what was counted. */
static bool stated_size(sft_span name, uint64_t parameters, sft_span *out) {
    while (next_word(&name, out)) {
        char digits[16], *end;
        size_t len = out->len - 1;
        if (len == 0 || len >= sizeof digits || cli_lower(out->data[len]) != 'b') continue;
        memcpy(digits, out->data, len);
        digits[len] = 0;
        double stated = strtod(digits, &end) * 1e9, counted = (double)parameters;
        if (end == digits + len && stated > counted * 0.75 && stated < counted * 1.33) {
            out->len = len;
            return true;
        }
    }
    return false;
}

/* " 8B": as its name or path states it, else rounded. */
static void size_piece(title *t, const sft_node *root) {
    uint64_t parameters;
    sft_span size;
    if (!sft_node_uint(root, "model.parameters", &parameters) || parameters < 1000000) return;
    if (t->len) say(t, " ");
    if (stated_size(sft_node_text(root, "model.name"), parameters, &size)
        || stated_size(cli_base_label_words(sft_node_text(root, "path")), parameters, &size)) {
        put(t, size);
        say(t, "B");
        return;
    }
    /* "8.2B", "14B", "732M" */
    char buffer[CLI_NUMBER_SIZE];
    uint64_t unit = parameters >= 999500000 ? 1000000000 : 1000000;
    uint64_t tenths = parameters / (unit / 10) + (parameters % (unit / 10) >= unit / 20);
    uint64_t whole = parameters / unit + (parameters % unit >= unit / 2);
    if (tenths >= 100 || tenths % 10 == 0)
        snprintf(buffer, sizeof buffer, "%" PRIu64, whole);
    else
        snprintf(buffer, sizeof buffer, "%" PRIu64 ".%" PRIu64, tenths / 10, tenths % 10);
    say(t, buffer);
    say(t, unit == 1000000 ? "M" : "B");
}

static bool is_language(const sft_node *root, sft_span kind) {
    const sft_node *llm = sft_node_find(root, "model.llm");
    return cli_is(kind, "language_model") || (llm && llm->type == SFT_NODE_OBJECT);
}

/* ── What it is made for, or of ── */

/* How a kind is said. */
typedef enum form {
    FORM_OF,     /* "VAE (Wan 2.1)" */
    FORM_FOR,    /* "ControlNet for SDXL (canny)" */
    FORM_ITSELF, /* "SDXL v-pred (NoobAI)": the architecture says what it is */
} form;

static form form_of(sft_span kind) {
    static const struct kind_form { const char *id; form form; } forms[] = {
        { "adapter", FORM_FOR }, { "embedding", FORM_FOR }, { "controlnet", FORM_FOR },
        { "control_lora", FORM_FOR }, { "ip_adapter", FORM_FOR }, { "t2i_adapter", FORM_FOR },
        { "motion_module", FORM_FOR }, { "checkpoint", FORM_ITSELF },
        { "diffusion_model", FORM_ITSELF }, { "pipeline", FORM_ITSELF },
        { "language_model", FORM_ITSELF },
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (cli_is(kind, forms[i].id)) return forms[i].form;
    return FORM_OF;
}

/* "Wan" for "vae-wan", whose words are "Wan VAE". */
static sft_span vae_words(sft_span id) {
    sft_span words = cli_id_words(SFTI_MODEL, id);
    if (cli_ends_with(words, " VAE")) {
        words.len -= 4;
    } else if (id.len > 4 && memcmp(id.data, "vae-", 4) == 0) {
        words = cli_id_words(SFTI_MODEL, (sft_span){ id.data + 4, id.len - 4 });
    }
    return words;
}

/* The architecture with its variant and size. A base that says all of the architecture and more
 * stands for it; *base becomes what is left to be told of the base. */
static void subject(title *t, const sft_node *root, sft_span kind, bool variants, sft_span *base) {
    char buffer[CLI_TITLE_SIZE];
    sft_span id = sft_node_text(root, "model.architecture");
    sft_span words = cli_is(kind, "vae") ? vae_words(id) : cli_id_words(SFTI_MODEL, id);
    sft_span variant = cli_variant_words(sft_node_text(root, "model.variant"), buffer);
    size_t begin = t->len;
    bool more = base->len && words.len && says(*base, words) && !says(words, *base);
    if (more) put_label(t, *base);
    else put(t, words);
    bool unsure = cli_is_unsure(root, "model.architecture");
    if (unsure || (more && cli_is_unsure(root, "model.base_model"))) say(t, "?");
    sft_span done = { t->text + begin, t->len - begin };
    if (variants && variant.len && !says(done, variant)) {
        bool apart = memcmp(variant.data, "high", 4) == 0 || memcmp(variant.data, "low", 3) == 0;
        piece(t, apart ? ", " : " ", variant);
        doubt(t, root, "model.variant");
    }
    if (id.len && form_of(kind) != FORM_FOR && is_language(root, kind)) size_piece(t, root);
    done.len = t->len - begin;
    if (more || (done.len && says(done, *base)) || cli_is(*base, "Other")) base->len = 0;
}

/* Whether the record of an architecture has a row of that word. */
static bool has_row(sft_span architecture, sfti_word word) {
    const sfti_records *records = cli_records();
    const sfti_record *record = sfti_record_find(records, SFTI_MODEL, architecture);
    return record && sfti_record_row_of(records, record, word, NULL);
}

static void prediction_piece(title *t, const sft_node *root) {
    sft_span id = sft_node_text(root, "model.prediction_type");
    sft_span architecture = sft_node_text(root, "model.architecture");
    sft_span predicted = sfti_predicted(cli_records(), architecture);
    bool is_default = cli_is(id, "epsilon");
    if (cli_is(id, "flow")) /* what nearly everything predicts now */
        is_default = predicted.len == 0 || sft_span_equal(predicted, id);
    if (!id.len || is_default) return;
    piece(t, " ", cli_id_words(SFTI_PREDICTION, id));
    doubt(t, root, "model.prediction_type");
}

static void quantization_piece(title *t, const sft_node *root) {
    char buffer[CLI_TITLE_SIZE];
    sft_span id = sft_node_text(root, "model.quantization");
    if (!id.len) return;
    piece(t, ", ", cli_quantization_words(id, buffer));
    doubt(t, root, "model.quantization");
}

/* " (canny, NoobAI)" */
static void brackets(title *t, const sft_node *root, sft_span first, sft_span base) {
    if (!first.len && !base.len) return;
    say(t, " (");
    put(t, first);
    if (first.len) doubt(t, root, "model.variant");
    if (first.len && base.len) say(t, ", ");
    put_label(t, base);
    if (base.len) doubt(t, root, "model.base_model");
    say(t, ")");
}

/* ── Kinds ── */

/* "LoRA r4-16", "mixed adapter r8" */
static void adapter_words(title *t, const sft_node *root) {
    sft_span type = sft_node_text(root, "adapter.type");
    sft_span words = cli_kind_words(type), least = sft_node_text(root, "adapter.rank.min");
    sft_span most = sft_node_text(root, "adapter.rank.max");
    bool dora = sft_node_true(root, "adapter.dora"), lora = cli_is(type, "lora");
    if (dora && lora) words = sft_span_cstr("DoRA");
    put(t, words);
    if (dora && !lora) say(t, " (DoRA)");
    if (!words.len || (words.data[0] >= 'a' && words.data[0] <= 'z')) {
        if (words.len) say(t, " ");
        say(t, "adapter");
    }
    if (!least.len) return;
    say(t, " r");
    put(t, least);
    if (sft_span_equal(least, most)) return;
    say(t, "-");
    put(t, most);
}

static void for_title(title *t, const sft_node *root, sft_span kind, sft_span base) {
    char buffer[CLI_TITLE_SIZE];
    sft_span architecture = sft_node_text(root, "model.architecture");
    sft_span family = sft_node_text(root, "model.family");
    sft_span variant = cli_variant_words(sft_node_text(root, "model.variant"), buffer);
    bool adapter = cli_is(kind, "adapter");
    if (sft_node_true(root, "model.negative")) say(t, "negative ");
    if (adapter || cli_is(kind, "control_lora")) {
        if (!adapter) say(t, "Control-");
        adapter_words(t, root);
    } else {
        put(t, cli_kind_words(kind));
        doubt(t, root, "model.kind");
    }
    if (architecture.len) {
        say(t, " for ");
        subject(t, root, kind, adapter, &base);
    } else if (family.len) {
        sft_span words = cli_id_words(SFTI_FAMILY, family);
        say(t, " for a ");
        put(t, words);
        if (cli_ends_with(words, "-like")) say(t, " model");
        doubt(t, root, "model.family");
    }
    if ((adapter && architecture.len) || cli_is(variant, "Control")) variant.len = 0;
    prediction_piece(t, root);
    quantization_piece(t, root);
    brackets(t, root, variant, base);
}

/* "SDXL", "SDXL, U-Net only": of some architectures people expect a file with all parts. */
static void extent_piece(title *t, sft_span kind, sft_span architecture) {
    bool expected = has_row(architecture, SFTI_WHOLE);
    if (cli_is(kind, "diffusion_model") && expected) say(t, ", U-Net only");
    if (cli_is(kind, "checkpoint") && !expected) say(t, ", all in one");
    if (cli_is(kind, "pipeline")) say(t, ", pipeline");
}

static void itself_title(title *t, const sft_node *root, sft_span kind, sft_span base) {
    sft_span architecture = sft_node_text(root, "model.architecture");
    if (architecture.len) {
        subject(t, root, kind, true, &base);
    } else {
        sft_span words = cli_id_words(SFTI_FAMILY, sft_node_text(root, "model.family"));
        put(t, words);
        if (words.len) doubt(t, root, "model.family");
        piece(t, " ", cli_kind_words(kind));
        doubt(t, root, "model.kind");
        if (is_language(root, kind)) size_piece(t, root);
    }
    prediction_piece(t, root);
    if (architecture.len) extent_piece(t, kind, architecture);
    quantization_piece(t, root);
    brackets(t, root, (sft_span){ NULL, 0 }, base);
}

static void of_title(title *t, const sft_node *root, sft_span kind, sft_span base) {
    sft_span architecture = sft_node_text(root, "model.architecture");
    sft_span family = sft_node_text(root, "model.family");
    bool told = cli_is(kind, "vae") && cli_is(family, "autoencoder");
    put(t, cli_kind_words(kind));
    doubt(t, root, "model.kind");
    if (architecture.len || base.len || (family.len && !told)) {
        say(t, " (");
        if (architecture.len) subject(t, root, kind, true, &base);
        else if (!told) put(t, cli_id_words(SFTI_FAMILY, family));
        if (base.len && (architecture.len || (family.len && !told))) say(t, ", ");
        put_label(t, base);
        if (base.len) doubt(t, root, "model.base_model");
        say(t, ")");
    }
    quantization_piece(t, root);
}

/* The format of a model in another one: what kind it is comes first. */
static void format_piece(title *t, const sft_node *root, bool known) {
    sft_span format = sft_node_text(root, "import.title");
    if (!format.len) return;
    const char *blank = memchr(format.data, ' ', format.len);
    if (!known) t->len = 0;
    else say(t, " (");
    /* "PyTorch" of "PyTorch checkpoint". */
    if (known && blank) format.len = (size_t)(blank - format.data);
    put(t, format);
    say(t, known ? ")" : ", unknown kind");
}

sft_span cli_title(const sft_node *root, char buffer[CLI_TITLE_SIZE]) {
    title t = { buffer, 0 };
    sft_span kind = sft_node_text(root, "model.kind"), family;
    sft_span base = cli_base_label_words(sft_node_text(root, "model.base_model"));
    if (!kind.len || cli_is(kind, "unknown")) {
        family = cli_id_words(SFTI_FAMILY, sft_node_text(root, "model.family"));
        sft_span architecture = sft_node_text(root, "model.architecture");
        if (architecture.len) subject(&t, root, kind, true, &base);
        else put(&t, family);
        if (t.len) say(&t, " of ");
        say(&t, "unknown kind");
        quantization_piece(&t, root);
        format_piece(&t, root, architecture.len || family.len);
        return (sft_span){ t.text, t.len };
    }
    form how = form_of(kind);
    if (how == FORM_FOR) for_title(&t, root, kind, base);
    else if (how == FORM_OF) of_title(&t, root, kind, base);
    else itself_title(&t, root, kind, base);
    format_piece(&t, root, true);
    return (sft_span){ t.text, t.len };
}

sft_span cli_base_words(const sft_node *root, char buffer[CLI_TITLE_SIZE]) {
    /* A name that every trainer's base checkpoint may have tells nothing of it. */
    static const char *const any[] = { "model", "base", "base_model", "checkpoint",
                                       "pytorch_model", "diffusion_pytorch_model" };
    static const char *const declared[] = { "model.base_model", "model.base_checkpoint" };
    title t = { buffer, 0 };
    sft_span kind = sft_node_text(root, "model.kind");
    sft_span architecture = sft_node_text(root, "model.architecture");
    for (size_t i = 0; i < sizeof declared / sizeof *declared && t.len == 0; i++) {
        sft_span value = sft_node_text(root, declared[i]);
        if (!value.len || cli_is(value, "Other")) continue;
        sft_span label = cli_base_label_words(value);
        size_t k = 0;
        while (k < sizeof any / sizeof *any && !cli_same_letters(label, sft_span_cstr(any[k]))) k++;
        if (k < sizeof any / sizeof *any) continue;
        put_label(&t, label);
        doubt(&t, root, declared[i]);
    }
    /* The architecture of what stands for itself (a text encoder, an upscaler) is no base. */
    bool has_base = form_of(kind) != FORM_OF || cli_is(kind, "vae") || !kind.len;
    if (t.len || !has_base) return (sft_span){ t.text, t.len };
    put(&t, cli_is(kind, "vae") ? vae_words(architecture) : cli_id_words(SFTI_MODEL, architecture));
    doubt(&t, root, "model.architecture");
    return (sft_span){ t.text, t.len };
}
