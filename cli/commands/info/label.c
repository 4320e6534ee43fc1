/* The label of a model, without -v. */
#include "commands/info/label.h"
#include "os/path.h"

#include "support/files.h"
#include "support/models.h"
#include "support/where.h"
#include "support/words.h"

#include <inttypes.h>
#include <string.h>

#define TITLE_COLUMNS 52
#define WORDS_SHOWN 12
#define NOTES_SHOWN 3
#define PREVIEWS_SHOWN 3

static bool is_known(const sft_node *root) {
    sft_span kind = sft_node_text(root, "model.kind");
    return kind.len > 0 && !cli_is(kind, "unknown");
}

/* ── What it is ── */

static void title_line(cli *c, const cli_model *model, const sft_node *root) {
    char buffer[CLI_TITLE_SIZE];
    sft_span name = sft_node_text(root, "model.name"), title = cli_title(root, buffer);
    sft_span id = sft_node_text(root, "model.architecture");
    if (!name.len) name = cli_name_of(model->path);
    size_t width;
    cli_style_on(&c->out, CLI_BOLD);
    width = cli_escaped_cut(&c->out, name, c->set.verbose ? SIZE_MAX / 64 : CLI_TEXT_COLUMNS);
    cli_style_off(&c->out, CLI_BOLD);
    cli_pad(&c->out, width + 2 < TITLE_COLUMNS ? TITLE_COLUMNS - width : 2);
    /* an id that has no other words keeps its letters */
    bool is_id = id.len && title.len >= id.len && memcmp(title.data, id.data, id.len) == 0;
    if (!is_id && title.len && *title.data >= 'a' && *title.data <= 'z') {
        char upper = (char)(*title.data - 'a' + 'A');
        cli_put(&c->out, &upper, 1);
        title = (sft_span){ title.data + 1, title.len - 1 };
    }
    cli_escaped(&c->out, title);
    cli_text(&c->out, "\n");
}

static void value_line(cli *c, const char *key, sft_span text, const sft_node *fact) {
    if (!text.len) return;
    cli_label_key(c, key);
    cli_escaped_cut(&c->out, text, CLI_TEXT_COLUMNS);
    cli_line_guess(c, fact);
    cli_text(&c->out, "\n");
}

static void fact_line(cli *c, const char *key, const sft_node *root, const char *path) {
    value_line(c, key, sft_node_text(root, path), sft_node_find(root, path));
}

/* "7.6B parameters, GPTQ 4-bit"; "20B parameters, mixed precision with FP8 scaled" */
static void weights_line(cli *c, const sft_node *root) {
    static const struct { uint64_t unit; const char *letter; } units[] = {
        { UINT64_C(1000000000000), "T" }, { 1000000000, "B" }, { 1000000, "M" },
    };
    char buffer[CLI_TITLE_SIZE];
    uint64_t parameters;
    static const char *const others[] = { "mixed", "bf16", "fp16", "fp32" };
    sft_span id = sft_node_text(root, "model.quantization");
    sft_span precision = sft_node_text(root, "model.precision");
    sft_span words = id.len ? cli_quantization_words(id, buffer) : precision;
    bool part = false; /* not all weights are quantised, or not alike */
    for (size_t i = 0; id.len && i < sizeof others / sizeof *others; i++)
        part = part || cli_is(precision, others[i]);
    bool is_adapter = sft_node_get(root, "adapter")->type == SFT_NODE_OBJECT;
    bool known = sft_node_uint(root, "model.parameters", &parameters) && parameters >= 1000000;
    if (is_adapter || !is_known(root) || !known) return;
    cli_label_key(c, "weights");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        uint64_t unit = units[i].unit, tenth = unit / 10;
        uint64_t whole = parameters / unit + (parameters % unit >= unit / 2);
        uint64_t tenths = parameters / tenth + (parameters % tenth >= tenth / 2);
        if (parameters < unit - unit / 2000) continue; /* 999.5M is 1B */
        cli_printf(&c->out, "%" PRIu64, tenths < 1000 ? tenths / 10 : whole);
        if (tenths < 1000 && tenths % 10) cli_printf(&c->out, ".%" PRIu64, tenths % 10);
        cli_printf(&c->out, "%s parameters", units[i].letter);
        break;
    }
    if (part) cli_fill(&c->out, ", %% with ", precision,
                       sft_span_cstr(cli_is(precision, "mixed") ? " precision" : ""));
    else if (words.len) cli_text(&c->out, ", ");
    cli_escaped(&c->out, words);
    cli_text(&c->out, "\n");
}

/* ── How it is used ── */

static void trigger_section(cli *c, const sft_node *root) {
    const sft_node *words = sft_node_get(root, "trigger_words"), *one;
    cli_flow flow = { c, 0, 0, false };
    size_t shown = 0;
    if (!words || !words->first) return;
    cli_label_key(c, "trigger words");
    for (one = words->first; one && shown < WORDS_SHOWN && !flow.cut; one = one->next, shown++)
        cli_flow_word(&flow, sft_node_text(one, "text"), "  ·  ");
    if (one && !flow.cut) cli_printf(&c->out, "  … %zu more", sft_node_count(words) - shown);
    cli_flow_end(&flow);
}

/* "0.8", "0.8 (0.6 to 0.9)", "at most 0.9". */
static void weight_line(cli *c, const sft_node *root) {
    const sft_node *range = sft_node_find(root, "model.preferred_weight_range");
    sft_span weight = sft_node_text(root, "model.preferred_weight");
    sft_span least = sft_node_text(range, "min"), most = sft_node_text(range, "max");
    bool has_range = least.len || most.len;
    if (!weight.len && !has_range) return;
    cli_label_key(c, "weight");
    cli_escaped_cut(&c->out, weight, 20);
    if (weight.len && has_range) cli_text(&c->out, " (");
    if (least.len && most.len) cli_fill(&c->out, "% to %", least, most);
    else if (least.len) cli_fill(&c->out, "at least %", least);
    else if (most.len) cli_fill(&c->out, "at most %", most);
    if (weight.len && has_range) cli_text(&c->out, ")");
    cli_line_guess(c, weight.len ? sft_node_find(root, "model.preferred_weight") : range);
    cli_text(&c->out, "\n");
}

/* ── Where it comes from ── */

static void base_section(cli *c, const sft_node *root) {
    sft_span label = sft_node_text(root, "model.base_model");
    sft_span file = sft_node_text(root, "model.base_checkpoint");
    sft_span architecture = sft_node_text(root, "model.architecture");
    const sft_node *fact = sft_node_find(root, "model.base_model");
    uint64_t trust = 0;
    if (!label.len && !file.len) return;
    cli_label_key(c, "base model");
    if (!file.len) {
        cli_escaped_cut(&c->out, label, 64);
        cli_line_guess(c, fact);
    } else {
        cli_escaped_cut(&c->out, file, 64);
        architecture = cli_id_words(SFTI_MODEL, architecture);
        if (cli_is_unsure(root, "model.architecture")) architecture.len = 0; /* in the title */
        if (label.len >= architecture.len
            && memcmp(label.data, architecture.data, architecture.len) == 0)
            architecture.len = 0; /* "SDXL 1.0" says SDXL */
        if (architecture.len || label.len) cli_text(&c->out, " (");
        cli_escaped(&c->out, architecture);
        if (architecture.len && label.len) cli_text(&c->out, "; ");
        cli_escaped_cut(&c->out, label, 40);
        if (label.len && sft_node_uint(fact, "trust", &trust) && trust <= 40)
            cli_text(&c->out, " by name");
        if (architecture.len || label.len) cli_text(&c->out, ")");
    }
    cli_text(&c->out, "\n");
}

static void author_section(cli *c, const sft_node *root) {
    sft_span author = sft_node_text(root, "model.author");
    sft_span licence = sft_node_text(root, "model.license");
    if (!author.len) {
        fact_line(c, "licence", root, "model.license");
        return;
    }
    cli_label_key(c, "author");
    size_t width = cli_escaped_cut(&c->out, author, 40);
    cli_line_guess(c, sft_node_find(root, "model.author"));
    if (licence.len) {
        cli_pad(&c->out, width < 22 ? 24 - width : 2);
        cli_styled(&c->out, CLI_DIM, "licence");
        cli_text(&c->out, "  ");
        cli_escaped_cut(&c->out, licence, 40);
    }
    cli_text(&c->out, "\n");
}

static void training_section(cli *c, const sft_node *root) {
    static const struct tool_name { const char *id, *words; } names[] = {
        { "sd-scripts", "kohya sd-scripts" }, { "webui", "web UI" },
        { "onetrainer", "OneTrainer" }, { "simpletuner", "SimpleTuner" },
    };
    const sft_node *training = sft_node_get(root, "training");
    cli_phrase line = { c, "trained", 0 };
    sft_span tool = sft_node_text(training, "tool"), day = sft_node_text(training, "finished_at");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (cli_is(tool, names[i].id)) {
            tool = sft_span_cstr(names[i].words);
            break;
        }
    if (!day.len) day = sft_node_text(root, "model.date");
    if (day.len > 10) day.len = 10;
    cli_phrase_part(&line, "", tool, "");
    cli_phrase_part(&line, "epoch ", sft_node_text(training, "epoch"), "");
    if (!sft_node_text(training, "epoch").len)
        cli_phrase_part(&line, "", sft_node_text(training, "step"), " steps");
    uint64_t images, repeated;
    if (sft_node_uint(training, "images", &images) && images > 0) {
        cli_out *out = cli_phrase_next(&line);
        cli_printf(out, "%" PRIu64 " image%s", images, images == 1 ? "" : "s");
        if (sft_node_uint(training, "images_with_repeats", &repeated) && repeated > images &&
            repeated % images == 0) cli_printf(out, " × %" PRIu64, repeated / images);
    }
    cli_phrase_part(&line, "", day, "");
    cli_phrase_end(&line);
}

/* The page of a repository, whose name may be anything. */
static void repo_section(cli *c, const sft_node *root) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789._-/";
    sft_span repo = sft_node_text(root, "model.repo");
    size_t len = 0;
    if (!repo.len || sft_node_text(root, "civitai.url").len) return;
    while (len < repo.len && repo.data[len] && strchr(plain, repo.data[len])) len++;
    if (len < repo.len) {
        cli_line_one(c, "repository", repo);
        return;
    }
    cli_label_key(c, "page");
    cli_fill(&c->out, "https://huggingface.co/%\n", repo);
}

/* ── Files ── */

/* ── The label ── */

/* Counts what is not read for this reason; no other line does. */
static void say_left(cli *c, const sft_import *import, sft_import_reason reason,
                     const char *key) {
    const sft_import_left *left, *first = NULL;
    size_t count = 0;
    for (size_t i = 0; (left = sft_import_left_at(import, i)) != NULL; i++) {
        if (left->reason != reason) continue;
        if (!first) first = left;
        count++;
    }
    if (!first) return;
    cli_label_key(c, key);
    cli_fill(&c->out, first->path.len ? "%: %" : "%%", first->path, sft_span_cstr(first->text));
    if (count > 1) cli_printf(&c->out, ", and %zu more", count - 1);
    cli_text(&c->out, "\n");
}

/* What it is. */
static void kind_section(cli *c, const cli_model *model, const sft_node *root) {
    char buffer[CLI_TITLE_SIZE];
    sft_span format = sft_node_text(root, "import.title");
    if (model->import && format.len) {
        const sft_import_global *first = sft_import_global_at(model->import, 0);
        cli_label_key(c, "format");
        cli_fill(&c->out, "%; \"safetensors convert\" makes it safetensors\n", format);
        if (first && first->calls > 0) {
            cli_label_key(c, "! pickle");
            cli_text(&c->out, "a pickle loader would call ");
            (void)cli_say_globals(&c->out, model->import, NOTES_SHOWN);
            cli_text(&c->out, "; not run\n");
        }
        say_left(c, model->import, SFT_IMPORT_LEFT_SKIPPED, "! left out");
        say_left(c, model->import, SFT_IMPORT_LEFT_BRANCH, "left out");
    }
    sft_span shard = sft_node_text(root, "set.shard"), of = sft_node_text(root, "set.of");
    if (shard.len && of.len) {
        bool all = model->import && sft_import_shard_count(model->import) > 1; /* parts of GGUF */
        cli_label_key(c, "shard");
        cli_fill(&c->out, "% of %: ", shard, of);
        cli_text(&c->out, all ? "the facts are of all parts\n"
                              : "the facts are of this file alone\n");
    }
    fact_line(c, "version", root, "model.version_name");
    /* titles such as "SDXL" leave out what people expect of that name */
    sft_span words = cli_kind_words(sft_node_text(root, "model.kind"));
    bool is_told = sft_node_get(root, "adapter")->type == SFT_NODE_OBJECT || !is_known(root)
                || cli_text_has(cli_title(root, buffer), words);
    if (!is_told) value_line(c, "kind", words, sft_node_find(root, "model.kind"));
    /* the title marks what is guessed; these tell by what */
    const sft_node *architecture = sft_node_find(root, "model.architecture");
    const sft_node *variant = sft_node_find(root, "model.variant");
    if (cli_is_guess(architecture))
        value_line(c, "architecture", cli_id_words(SFTI_MODEL, sft_node_text(architecture, "")),
                   architecture);
    if (cli_is_guess(variant))
        value_line(c, "variant", cli_variant_words(sft_node_text(variant, ""), buffer), variant);
    /* where tensors tell only how a model is built */
    sft_span family = sft_node_text(root, "model.family");
    if (family.len && !sft_node_text(root, "model.architecture").len) {
        cli_label_key(c, "family");
        cli_fill(&c->out, "% (not told apart by its tensors)\n", family);
    }
    /* the title tells the range of ranks; this tells which is the commonest */
    sft_span least = sft_node_text(root, "adapter.rank.min");
    sft_span most = sft_node_text(root, "adapter.rank.max");
    if (least.len && !sft_span_equal(least, most)) {
        cli_label_key(c, "rank");
        cli_fill(&c->out, "%–%, mostly %\n", least, most,
                 sft_node_text(root, "adapter.rank.mode"));
    }
    /* tokens of a prompt that an embedding takes the place of */
    cli_line_one(c, "vectors", sft_node_text(root, "model.vectors"));
    weights_line(c, root);
}

void cli_label(cli *c, const cli_model *model, const sft_node *root, bool with_path) {
    const sft_node *components = sft_node_find(root, "model.components");
    title_line(c, model, root);
    if (with_path || c->set.verbose) cli_line_one(c, "path", sft_span_cstr(model->path));
    if (c->set.verbose) {
        cli_label_groups(c, model, root);
        return;
    }
    kind_section(c, model, root);
    trigger_section(c, root);
    cli_line_text(c, "negative prompt", sft_node_text(root, "model.negative_prompt"));
    weight_line(c, root);
    value_line(c, "prediction",
               cli_id_words(SFTI_PREDICTION, sft_node_text(root, "model.prediction_type")),
               sft_node_find(root, "model.prediction_type"));
    base_section(c, root);
    author_section(c, root);
    cli_line_civitai(c, root);
    repo_section(c, root);
    training_section(c, root);
    cli_line_merge(c, root);
    fact_line(c, "use", root, "model.usage_hint");
    cli_line_text(c, "about", sft_node_text(root, "model.description"));
    sft_span rating = sft_node_text(root, "model.rating");
    bool is_favourite = cli_is(sft_node_text(root, "model.favourite"), "true");
    if (rating.len || is_favourite) {
        cli_label_key(c, "rating");
        if (rating.len) cli_fill(&c->out, "% of 5", rating);
        cli_text(&c->out, rating.len && is_favourite ? "  ·  " : "");
        cli_text(&c->out, is_favourite ? "favourite\n" : "\n");
    }
    const sft_node *note = cli_first(root, "model.notes");
    for (size_t i = 0; note && i < NOTES_SHOWN; i++, note = note->next)
        cli_line_text(c, i ? "" : "notes", sft_node_text(note, "text"));
    cli_phrase previews = { c, "previews", 0 };
    const sft_node *preview = cli_first(root, "previews");
    for (; preview && previews.count < PREVIEWS_SHOWN; preview = preview->next) {
        sft_span path = sft_node_text(preview, "path");
        path = path.len ? sfti_path_name(path) : sft_span_cstr("in the header");
        cli_phrase_part(&previews, "", path, "");
    }
    if (preview) cli_text(&c->out, ", …");
    cli_phrase_end(&previews);
    const sft_node *part = sft_node_count(components) > 1 ? components->first : NULL;
    for (; part; part = part->next) {
        sft_span id = sft_node_text(part, "architecture");
        cli_label_key(c, part == components->first ? "parts" : "");
        cli_escaped(&c->out, sft_node_text(part, "part"));
        if (id.len) cli_fill(&c->out, "  %", cli_id_words(SFTI_MODEL, id));
        if (cli_is_unsure(part, "")) cli_text(&c->out, "?");
        cli_text(&c->out, "\n");
    }
    for (const sft_node *one = cli_first(root, "sidecars"); one; one = one->next) {
        cli_phrase line = { c, "! sidecar", 0 };
        if (!sft_node_text(one, "error").len) continue;
        cli_phrase_part(&line, "", sft_node_text(one, "path"), "");
        cli_phrase_part(&line, "", sft_node_text(one, "error"), "");
        cli_phrase_end(&line);
    }
    cli_line_conflicts(c, root);
    if (is_known(root)) cli_line_file(c, root);
    cli_label_digests(c, root, false);
    /* For a model of unknown kind the header is all there is to show. */
    if (model->set && !is_known(root)) {
        cli_header_lines(c, model->set, root);
        cli_metadata_lines(c, model->set);
    }
}
