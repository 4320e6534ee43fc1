#include "commands/info_label.h"

#include "base/number.h"
#include "support/fields.h"
#include "support/files.h"
#include "support/group.h"
#include "support/nodes.h"
#include "support/words.h"

#include <inttypes.h>
#include <string.h>

#define TITLE_COLUMNS 52
#define TEXT_COLUMNS 82
#define WORDS_SHOWN 12
#define LINES_SHOWN 4

static sft_span name_of(const cli_model *model, const sft_node *root) {
    sft_span name = sft_node_text(root, "model.name");
    return name.len ? name : cli_name_of(model->path);
}

static void grouped_number(cli_out *out, uint64_t value) {
    char digits[SFTI_UINT_SIZE];
    size_t len = sfti_uint_text(value, 0, digits);
    for (size_t i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0) cli_text(out, ",");
        cli_put(out, &digits[i], 1);
    }
}

static bool is_known(const sft_node *root) {
    sft_span kind = sft_node_text(root, "model.kind");
    return kind.len > 0 && !cli_is(kind, "unknown");
}

/* ── Lines of a label ── */

/* Text in words that are wrapped; with -v all of it, else a few lines. */
typedef struct flow {
    cli *c;
    size_t column, lines;
    bool cut;
} flow;

static void flow_line(flow *f) {
    f->lines++;
    if (!f->c->set.verbose && f->lines >= LINES_SHOWN) f->cut = true;
    if (f->cut) return;
    cli_text(&f->c->out, "\n");
    cli_pad(&f->c->out, CLI_LABEL_COLUMNS);
    f->column = 0;
}

static void flow_word(flow *f, sft_span word, const char *before) {
    size_t width = cli_escaped_width(word), gap = f->column ? strlen(before) : 0;
    if (f->column && f->column + gap + width > TEXT_COLUMNS) {
        flow_line(f);
        gap = 0;
    }
    if (f->cut) return;
    if (gap) cli_text(&f->c->out, before);
    if (f->c->set.verbose) cli_escaped(&f->c->out, word);
    else width = cli_escaped_cut(&f->c->out, word, TEXT_COLUMNS);
    f->column += gap + width;
}

static void flow_end(flow *f) {
    cli_text(&f->c->out, f->cut ? " …\n" : "\n");
}

static size_t word_end(sft_span text) {
    size_t n = 0;
    while (n < text.len && text.data[n] != ' ' && text.data[n] != '\n') n++;
    return n;
}

static void flow_text(flow *f, sft_span text) {
    while (text.len && !f->cut) {
        size_t len = word_end(text);
        if (len) flow_word(f, (sft_span){ text.data, len }, " ");
        if (len < text.len && text.data[len] == '\n' && f->column) flow_line(f);
        len += len < text.len;
        text.data += len;
        text.len -= len;
    }
}

static void text_section(cli *c, const char *key, sft_span text) {
    flow f = { c, 0, 0, false };
    if (!text.len) return;
    cli_label_key(c, key);
    flow_text(&f, text);
    flow_end(&f);
}

static void one_line(cli *c, const char *key, sft_span text) {
    if (!text.len) return;
    cli_label_key(c, key);
    cli_escaped_cut(&c->out, text, c->set.verbose ? SIZE_MAX / 64 : TEXT_COLUMNS);
    cli_text(&c->out, "\n");
}

/* ── What it is ── */

static void capital(cli_out *out, sft_span words) {
    char first = words.len ? words.data[0] : ' ';
    if (first >= 'a' && first <= 'z') {
        char upper = (char)(first - 'a' + 'A');
        cli_put(out, &upper, 1);
        words.data++;
        words.len--;
    }
    cli_escaped(out, words);
}

static void kind_phrase(cli_out *out, const sft_node *root, bool title) {
    sft_span kind = sft_node_text(root, "model.kind");
    sft_span type = sft_node_text(root, "adapter.type");
    bool adapter = cli_is(kind, "adapter");
    if (adapter && type.len) cli_escaped(out, cli_kind_words(type));
    if (adapter && type.len && sft_span_equal(sft_node_text(root, "adapter.dora"),
                                              sft_span_cstr("true"))) cli_text(out, " (DoRA)");
    if (adapter && type.len) cli_text(out, " ");
    if (!kind.len) kind = sft_span_cstr("unknown");
    if (title && !(adapter && type.len)) capital(out, cli_kind_words(kind));
    else cli_escaped(out, cli_kind_words(kind));
}

static void precision_phrase(cli_out *out, const sft_node *root) {
    sft_span quantization = sft_node_text(root, "model.quantization");
    sft_span precision = sft_node_text(root, "model.precision");
    sft_span words = quantization.len ? quantization : precision;
    if (!words.len) return;
    cli_fill(out, ", %", words);
}

static void what_it_is(cli_out *out, const sft_node *root) {
    char buffer[CLI_NUMBER_SIZE];
    sft_span architecture = sft_node_text(root, "model.architecture");
    sft_span variant = sft_node_text(root, "model.variant");
    sft_span rank = sft_node_text(root, "adapter.rank.mode");
    uint64_t parameters;
    kind_phrase(out, root, true);
    if (architecture.len) {
        cli_text(out, sft_node_get(root, "adapter")->type == SFT_NODE_OBJECT ? " for " : ", ");
        cli_escaped(out, cli_architecture_words(architecture));
    }
    if (variant.len) cli_fill(out, " %", variant);
    if (rank.len) {
        cli_fill(out, ", rank %", rank);
        return;
    }
    if (is_known(root) && sft_node_uint(root, "model.parameters", &parameters) &&
        parameters >= 1000000)
        cli_printf(out, ", %s parameters", cli_count_text(parameters, buffer));
    if (is_known(root)) precision_phrase(out, root);
}

static void title_line(cli *c, const cli_model *model, const sft_node *root) {
    sft_span name = name_of(model, root);
    size_t width;
    cli_style_on(&c->out, CLI_BOLD);
    width = cli_escaped_cut(&c->out, name, c->set.verbose ? SIZE_MAX / 64 : TEXT_COLUMNS);
    cli_style_off(&c->out, CLI_BOLD);
    cli_pad(&c->out, width + 2 < TITLE_COLUMNS ? TITLE_COLUMNS - width : 2);
    what_it_is(&c->out, root);
    cli_text(&c->out, "\n");
}

/* ── Trigger words ── */

static void trust_words(cli *c, const sft_node *fact) {
    cli_style_on(&c->out, CLI_DIM);
    cli_fill(&c->out, "  [%, trust %]", sft_node_text(fact, "source"),
             sft_node_text(fact, "trust"));
    cli_style_off(&c->out, CLI_DIM);
}

static void trigger_lines(cli *c, const sft_node *words) {
    for (const sft_node *one = words->first; one; one = one->next) {
        cli_label_key(c, one == words->first ? "trigger words" : "");
        cli_escaped(&c->out, sft_node_text(one, "text"));
        trust_words(c, one);
        cli_text(&c->out, "\n");
    }
}

static void trigger_section(cli *c, const sft_node *root) {
    const sft_node *words = sft_node_get(root, "trigger_words"), *one;
    flow f = { c, 0, 0, false };
    size_t shown = 0;
    if (!words || !words->first) return;
    if (c->set.verbose) {
        trigger_lines(c, words);
        return;
    }
    cli_label_key(c, "trigger words");
    for (one = words->first; one && shown < WORDS_SHOWN && !f.cut; one = one->next, shown++)
        flow_word(&f, sft_node_text(one, "text"), "  ·  ");
    if (one && !f.cut) cli_printf(&c->out, "  … %zu more", sft_node_count(words) - shown);
    flow_end(&f);
}

/* ── Where it comes from ── */

static bool by_name_only(const sft_node *root) {
    uint64_t trust;
    return sft_node_uint(sft_node_find(root, "model.base_model"), "trust", &trust) && trust <= 40;
}

static void base_section(cli *c, const sft_node *root) {
    sft_span label = sft_node_text(root, "model.base_model");
    sft_span file = sft_node_text(root, "model.base_checkpoint");
    sft_span architecture = sft_node_text(root, "model.architecture");
    if (!label.len && !file.len) return;
    cli_label_key(c, "base model");
    if (!file.len) {
        cli_escaped(&c->out, label);
    } else {
        cli_escaped_cut(&c->out, file, 64);
        architecture = cli_architecture_words(architecture);
        if (label.len >= architecture.len
            && memcmp(label.data, architecture.data, architecture.len) == 0)
            architecture.len = 0; /* "SDXL 1.0" says SDXL */
        if (architecture.len || label.len) cli_text(&c->out, " (");
        cli_escaped(&c->out, architecture);
        if (architecture.len && label.len) cli_text(&c->out, "; ");
        cli_escaped(&c->out, label);
        if (label.len && by_name_only(root)) cli_text(&c->out, " by name");
        if (architecture.len || label.len) cli_text(&c->out, ")");
    }
    cli_text(&c->out, "\n");
}

static void author_section(cli *c, const sft_node *root) {
    sft_span author = sft_node_text(root, "model.author");
    sft_span licence = sft_node_text(root, "model.license");
    if (!author.len) {
        one_line(c, "licence", licence);
        return;
    }
    cli_label_key(c, "author");
    size_t width = cli_escaped_cut(&c->out, author, 40);
    if (licence.len) {
        cli_pad(&c->out, width < 22 ? 24 - width : 2);
        cli_styled(&c->out, CLI_DIM, "licence");
        cli_text(&c->out, "  ");
        cli_escaped_cut(&c->out, licence, 40);
    }
    cli_text(&c->out, "\n");
}

static void civitai_section(cli *c, const sft_node *root) {
    const sft_node *civitai = sft_node_get(root, "civitai");
    sft_span version = sft_node_text(civitai, "version_id");
    sft_span model = sft_node_text(civitai, "model_id");
    sft_span fits = sft_node_text(civitai, "matches_file");
    if (!civitai || civitai->type != SFT_NODE_OBJECT) return;
    cli_label_key(c, "CivitAI");
    if (model.len) cli_text(&c->out, "model ");
    cli_escaped(&c->out, model);
    if (model.len && version.len) cli_text(&c->out, ", ");
    if (version.len) cli_text(&c->out, "version ");
    cli_fill(&c->out, "% (from ", version);
    cli_source_words(&c->out, sft_node_text(civitai, "source"));
    cli_text(&c->out, fits.len == 4 ? ", its hash fits)\n"
                      : fits.len ? ", of another file)\n" : ", not verified)\n");
}

typedef struct parts_line {
    cli *c;
    const char *key;
    size_t count;
} parts_line;

static cli_out *next_part(parts_line *line) {
    if (line->count++ == 0) cli_label_key(line->c, line->key);
    else cli_text(&line->c->out, ", ");
    return &line->c->out;
}

static void part_text(parts_line *line, const char *before, sft_span text, const char *after) {
    if (!text.len) return;
    cli_out *out = next_part(line);
    cli_text(out, before);
    cli_escaped_cut(out, text, 60);
    cli_text(out, after);
}

static void images_part(parts_line *line, const sft_node *training) {
    uint64_t images, repeated;
    if (!sft_node_uint(training, "images", &images) || images == 0) return;
    cli_out *out = next_part(line);
    cli_printf(out, "%" PRIu64 " image%s", images, images == 1 ? "" : "s");
    if (sft_node_uint(training, "images_with_repeats", &repeated) && repeated > images &&
        repeated % images == 0) cli_printf(out, " × %" PRIu64, repeated / images);
}

static void training_section(cli *c, const sft_node *root) {
    const sft_node *training = sft_node_get(root, "training");
    parts_line line = { c, "trained", 0 };
    sft_span tool = sft_node_text(training, "tool"), day = sft_node_text(training, "finished_at");
    const char *words = cli_tool_words(tool);
    if (!day.len) day = sft_node_text(root, "model.date");
    if (day.len > 10) day.len = 10;
    part_text(&line, "", words ? sft_span_cstr(words) : tool, "");
    part_text(&line, "epoch ", sft_node_text(training, "epoch"), "");
    if (!sft_node_text(training, "epoch").len)
        part_text(&line, "", sft_node_text(training, "step"), " steps");
    images_part(&line, training);
    part_text(&line, "", day, "");
    if (line.count) cli_text(&c->out, "\n");
}

static void merge_section(cli *c, const sft_node *root) {
    const sft_node *merge = sft_node_get(root, "merge");
    parts_line line = { c, "merged", 0 };
    part_text(&line, "", sft_node_text(merge, "tool"), "");
    part_text(&line, "", sft_node_text(merge, "method"), "");
    size_t shown = 0;
    for (const sft_node *one = cli_first(merge, "sources"); one && shown < 6; one = one->next)
        part_text(&line, shown++ ? "" : "from ", sft_node_text(one, "name"), "");
    if (line.count) cli_text(&c->out, "\n");
}

/* ── The file ── */

static void dtype_words(cli_out *out, const sft_node *root) {
    const sft_node *dtypes = sft_node_find(root, "file.dtypes"), *most = NULL;
    uint64_t bytes, best = 0;
    for (const sft_node *one = cli_first(root, "file.dtypes"); one; one = one->next) {
        sft_node_uint(one, "bytes", &bytes);
        if (most && bytes <= best) continue;
        most = one;
        best = bytes;
    }
    if (!most) return;
    cli_fill(out, " %", most->key);
    if (sft_node_count(dtypes) > 1) cli_text(out, " and others");
}

static void file_section(cli *c, const cli_model *model, const sft_node *root) {
    char buffer[CLI_NUMBER_SIZE];
    uint64_t bytes, tensors, header;
    cli_out *out = &c->out;
    cli_label_key(c, "file");
    if (sft_node_uint(root, "file.bytes", &bytes)) cli_text(out, cli_size_text(bytes, buffer));
    else cli_text(out, "size not known");
    sft_node_uint(root, "file.tensors", &tensors);
    cli_text(out, ", ");
    grouped_number(out, tensors);
    cli_text(out, tensors == 1 ? " tensor" : " tensors");
    dtype_words(out, root);
    sft_node_uint(root, "file.header_bytes", &header);
    cli_printf(out, ", header %s", cli_size_text(header, buffer));
    size_t shards = sft_node_count(sft_node_get(root, "shards"));
    if (shards) cli_printf(out, ", %zu shard%s", shards, shards == 1 ? "" : "s");
    size_t pairs = cli_pair_count(model);
    if (pairs && !c->set.verbose) cli_printf(out, ", %zu metadata pair%s", pairs,
                                             pairs == 1 ? "" : "s");
    if (!cli_is(sft_node_text(root, "complete"), "true"))
        cli_text(out, ", data not seen");
    else cli_text(out, cli_not_hashed(c, root));
    cli_text(out, "\n");
}

static void list_section(cli *c, const sft_node *list, const char *key, const char *text,
                         const char *more) {
    for (const sft_node *one = list ? list->first : NULL; one; one = one->next) {
        sft_span beside = sft_node_text(one, more);
        cli_label_key(c, one == list->first ? key : "");
        cli_escaped_cut(&c->out, sft_node_text(one, text), 60);
        if (beside.len) {
            cli_text(&c->out, "  ");
            cli_escaped_cut(&c->out, beside, 60);
        }
        cli_text(&c->out, "\n");
    }
}

static void conflict_section(cli *c, const sft_node *root) {
    for (const sft_node *one = cli_first(root, "conflicts"); one; one = one->next) {
        const sft_node *first = cli_first(one, "candidates");
        cli_label_key(c, "! conflict");
        cli_escaped(&c->out, sft_node_text(one, "field"));
        for (const sft_node *each = first; each; each = each->next) {
            cli_text(&c->out, each == first ? ": " : ", but ");
            cli_escaped_cut(&c->out, sft_node_text(each, "value"), 40);
            cli_text(&c->out, " by ");
            cli_escaped_cut(&c->out, sft_node_text(each, "source"), 60);
        }
        cli_text(&c->out, "\n");
    }
}

static void beside_sections(cli *c, const sft_node *root) {
    const sft_node *components = sft_node_find(root, "model.components");
    bool verbose = c->set.verbose != 0;
    if (verbose || sft_node_count(components) > 1)
        list_section(c, components, "parts", "part", "architecture");
    for (const sft_node *one = cli_first(root, "sidecars"); one; one = one->next) {
        sft_span error = sft_node_text(one, "error");
        if (!error.len && !verbose) continue;
        cli_label_key(c, error.len ? "! sidecar" : "sidecar");
        cli_escaped_cut(&c->out, sft_node_text(one, "path"), 60);
        part_text(&(parts_line){ c, "", 1 }, "", error, "");
        cli_text(&c->out, "\n");
    }
    if (!verbose) return;
    list_section(c, sft_node_get(root, "previews"), "previews", "source", "media_type");
    list_section(c, sft_node_get(root, "links"), "links", "url", "source");
    list_section(c, sft_node_get(root, "privacy"), "private", "key", "what");
}

/* ── With -v: every fact and setting ── */

static void words_cut(cli *c, const sft_node *node) {
    sft_buffer buffer = { .len = 0 };
    cli_escaped_cut(&c->out, cli_node_words(c, node, &buffer), TEXT_COLUMNS);
    sft_buffer_free(&buffer);
}

static void fact_lines(cli *c, const sft_node *root) {
    for (const sft_node *fact = cli_first(root, "model"); fact; fact = fact->next) {
        const sft_node *others = sft_node_get(fact, "others");
        char key[32] = { 0 };
        if (!sft_node_get(fact, "value") || fact->key.len >= sizeof key) continue;
        memcpy(key, fact->key.data, fact->key.len);
        for (const sft_node *one = fact; one; one = one == fact ? others->first : one->next) {
            const sft_node *value = sft_node_get(one, "value");
            cli_label_key(c, one == fact ? key : "");
            words_cut(c, value);
            trust_words(c, one);
            cli_text(&c->out, "\n");
        }
    }
}

static void setting_lines(cli *c, const sft_node *root) {
    for (const sft_node *one = cli_first(root, "training"); one; one = one->next) {
        char key[32] = { 0 };
        if (one->type == SFT_NODE_NULL || one->key.len >= sizeof key) continue;
        if (one->type == SFT_NODE_LIST && !one->first) continue;
        memcpy(key, one->key.data, one->key.len);
        cli_label_key(c, key);
        words_cut(c, one);
        cli_text(&c->out, "\n");
    }
}

/* ── The label ── */

void cli_label(cli *c, const cli_model *model, const sft_node *root, bool with_path) {
    bool known = is_known(root);
    title_line(c, model, root);
    if (with_path || c->set.verbose) one_line(c, "path", sft_span_cstr(model->path));
    trigger_section(c, root);
    base_section(c, root);
    author_section(c, root);
    civitai_section(c, root);
    training_section(c, root);
    merge_section(c, root);
    one_line(c, "use", sft_node_text(root, "model.usage_hint"));
    text_section(c, "about", sft_node_text(root, "model.description"));
    beside_sections(c, root);
    conflict_section(c, root);
    if (known || c->set.verbose) file_section(c, model, root);
    cli_label_digests(c, root, false);
    if (c->set.verbose) {
        fact_lines(c, root);
        setting_lines(c, root);
    }
    /* For a model of unknown kind the header is all there is to show. */
    if (model->set && (!known || c->set.verbose)) cli_header_lines(c, model->set);
}
