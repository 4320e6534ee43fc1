/* What the lines of a label are made of, and those that the label and -v share. */
#include "commands/info/label.h"

#include "base/number.h"
#include "support/models.h"
#include "support/words.h"

#include <string.h>

#define MERGED_SHOWN 6
#define LINES_SHOWN 4
#define GUESS_TRUST 40 /* and less is no more than a guess */
#define OTHER_TRUST 10 /* and less is of another file */

/* ── Words ── */

/* "header:modelspec.description" is "the description", "sidecar:x.json:/id" is "x.json". */
static void source_words(cli_out *out, sft_span source) {
    static const struct source_name { const char *end, *words; } names[] = {
        { "description", "the description" }, { "ssmd_source", "the metadata" },
        { "filename", "the file's name" }, { "online:civitai", "CivitAI itself" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t len = strlen(names[i].end);
        if (source.len < len) continue;
        if (memcmp(source.data + source.len - len, names[i].end, len) != 0) continue;
        cli_text(out, names[i].words);
        return;
    }
    const char *colon = source.len ? memchr(source.data, ':', source.len) : NULL;
    if (colon) {
        size_t used = (size_t)(colon - source.data) + 1;
        source = (sft_span){ source.data + used, source.len - used };
    }
    for (size_t i = 0; i + 1 < source.len; i++)
        if (source.data[i] == ':' && source.data[i + 1] == '/') source.len = i;
    cli_escaped_cut(out, source, 60);
}

void cli_label_key(cli *c, const char *text) {
    size_t len = strlen(text);
    cli_text(&c->out, "  ");
    cli_styled(&c->out, CLI_DIM, text);
    cli_pad(&c->out, len < CLI_LABEL_COLUMNS - 2 ? CLI_LABEL_COLUMNS - 2 - len : 1);
}

/* ── Wrapped text ── */

static void flow_line(cli_flow *f) {
    f->lines++;
    if (!f->c->set.verbose && f->lines >= LINES_SHOWN) f->cut = true;
    if (f->cut) return;
    cli_text(&f->c->out, "\n");
    cli_pad(&f->c->out, CLI_LABEL_COLUMNS);
    f->column = 0;
}

void cli_flow_word(cli_flow *f, sft_span word, const char *before) {
    size_t width = cli_escaped_width(word), gap = f->column ? strlen(before) : 0;
    if (f->column && f->column + gap + width > CLI_TEXT_COLUMNS) {
        if (!f->cut && *before == ',') cli_text(&f->c->out, ",");
        flow_line(f);
        gap = 0;
    }
    if (f->cut) return;
    if (gap) cli_text(&f->c->out, before);
    if (f->c->set.verbose) cli_escaped(&f->c->out, word);
    else width = cli_escaped_cut(&f->c->out, word, CLI_TEXT_COLUMNS);
    f->column += gap + width;
}

void cli_flow_end(cli_flow *f) {
    cli_text(&f->c->out, f->cut ? " …\n" : "\n");
}

void cli_flow_text(cli_flow *f, sft_span text) {
    while (text.len && !f->cut) {
        size_t len = 0;
        while (len < text.len && text.data[len] != ' ' && text.data[len] != '\n') len++;
        if (len) cli_flow_word(f, (sft_span){ text.data, len }, " ");
        if (len < text.len && text.data[len] == '\n' && f->column) flow_line(f);
        len += len < text.len;
        text.data += len;
        text.len -= len;
    }
}

void cli_line_text(cli *c, const char *key, sft_span text) {
    cli_flow flow = { c, 0, 0, false };
    if (!text.len) return;
    cli_label_key(c, key);
    cli_flow_text(&flow, text);
    cli_flow_end(&flow);
}

void cli_line_one(cli *c, const char *key, sft_span text) {
    if (!text.len) return;
    cli_label_key(c, key);
    cli_escaped_cut(&c->out, text, c->set.verbose ? SIZE_MAX / 64 : CLI_TEXT_COLUMNS);
    cli_text(&c->out, "\n");
}

/* ── Parts of a line ── */

/* With -v what may be copied, as digests and addresses, is whole. */
static size_t part_columns(const cli *c) {
    return c->set.verbose ? SIZE_MAX / 64 : 60;
}

cli_out *cli_phrase_next(cli_phrase *phrase) {
    if (phrase->count++ == 0) cli_label_key(phrase->c, phrase->key);
    else cli_text(&phrase->c->out, ", ");
    return &phrase->c->out;
}

void cli_phrase_part(cli_phrase *phrase, const char *before, sft_span text, const char *after) {
    if (!text.len) return;
    cli_out *out = cli_phrase_next(phrase);
    cli_text(out, before);
    cli_escaped_cut(out, text, part_columns(phrase->c));
    cli_text(out, after);
}

void cli_phrase_end(cli_phrase *phrase) {
    if (phrase->count) cli_text(&phrase->c->out, "\n");
}

void cli_line_list(cli *c, const sft_node *list, const char *key, const char *text,
                   const char *more) {
    for (const sft_node *one = list ? list->first : NULL; one; one = one->next) {
        sft_span beside = sft_node_text(one, more);
        cli_label_key(c, one == list->first ? key : "");
        cli_escaped_cut(&c->out, sft_node_text(one, text), part_columns(c));
        if (beside.len) {
            cli_text(&c->out, "  ");
            cli_escaped_cut(&c->out, beside, part_columns(c));
        }
        cli_text(&c->out, "\n");
    }
}

/* ── Trust ── */

void cli_line_trust(cli *c, const sft_node *fact) {
    cli_style_on(&c->out, CLI_DIM);
    cli_fill(&c->out, "  [%, trust %]", sft_node_text(fact, "source"),
             sft_node_text(fact, "trust"));
    cli_style_off(&c->out, CLI_DIM);
}

bool cli_is_guess(const sft_node *fact) {
    uint64_t trust;
    return sft_node_uint(fact, "trust", &trust) && trust <= GUESS_TRUST;
}

void cli_line_guess(cli *c, const sft_node *fact) {
    uint64_t trust;
    sft_span source = sft_node_text(fact, "source");
    if (!cli_is_guess(fact)) return;
    sft_node_uint(fact, "trust", &trust);
    cli_style_on(&c->out, CLI_DIM);
    if (trust <= OTHER_TRUST) {
        cli_text(&c->out, " (by ");
        source_words(&c->out, source);
        cli_text(&c->out, ", of another file)");
    } else {
        cli_text(&c->out, cli_is(source, "filename") ? " (by file name)"
                        : cli_is(source, "folder")   ? " (by folder name)" : " (a guess)");
    }
    cli_style_off(&c->out, CLI_DIM);
}

/* ── Digests ── */

static const sft_node *next_part(const sft_node *root, const sft_node *part) {
    return part ? part->next : cli_first(root, "parts");
}

/* ", not hashed (...)", or "" where there is something to show. */
static const char *not_hashed(const cli *c, const sft_node *root) {
    const sft_node *part = NULL;
    bool hashed = cli_first(root, "hashes.computed") != NULL;
    while (!hashed && (part = next_part(root, part)) != NULL)
        hashed = cli_first(part, "hashes.computed") != NULL;
    if (hashed) return "";
    if (c->set.verify) return ", no hash recorded";
    return ", not hashed (--verify, --hash sha256)";
}

static bool has_own_mismatch(const sft_node *root) {
    const sft_node *one = cli_first(root, "hashes.mismatches");
    while (one && sft_node_text(one, "known").len > 0) one = one->next;
    return one != NULL;
}

bool cli_has_mismatch(const sft_node *root) {
    const sft_node *part = NULL;
    bool wrong = has_own_mismatch(root);
    while ((part = next_part(root, part)) != NULL) wrong = wrong || has_own_mismatch(part);
    return wrong;
}

static void key_of(cli *c, const char *before, sft_span algo) {
    char buffer[32];
    size_t len = strlen(before);
    memcpy(buffer, before, len);
    if (algo.len > sizeof buffer - len - 1) algo.len = sizeof buffer - len - 1;
    memcpy(buffer + len, algo.data, algo.len);
    buffer[len + algo.len] = 0;
    cli_label_key(c, buffer);
}

/* part: path of a component, or NULL. */
static void digest_lines(cli *c, const sft_node *root, bool in_list, const char *part) {
    bool shown = !in_list || c->set.hash;
    const sft_node *one = shown ? cli_first(root, "hashes.computed") : NULL;
    bool many = sft_node_get(root, "shards")
             || (sft_node_get(root, "import") && sft_node_find(root, "set.of"));
    for (; one; one = one->next) {
        bool recorded = false;
        const sft_node *claim = cli_first(root, "hashes.recorded");
        for (; claim && !recorded; claim = claim->next)
            recorded = sft_span_equal(sft_node_text(claim, "algo"), one->key)
                       && sft_span_equal(sft_node_text(claim, "value"), one->text);
        cli_pad(&c->out, in_list ? 2 : 0);
        key_of(c, "", one->key);
        if (one->type != SFT_NODE_NULL) cli_escaped(&c->out, one->text);
        else cli_text(&c->out, many ? "of each file: safetensors hash" : "none");
        if (part) cli_text(&c->out, "  ");
        if (part) cli_escaped_cut(&c->out, sft_span_cstr(part), 40);
        if (recorded) cli_styled(&c->out, CLI_DIM, "  as recorded");
        cli_text(&c->out, "\n");
    }
    for (one = cli_first(root, "hashes.mismatches"); one; one = one->next) {
        sft_span known = sft_node_text(one, "known");
        cli_pad(&c->out, in_list ? 2 : 0);
        key_of(c, known.len ? "" : "! ", sft_node_text(one, "algo"));
        cli_fill(&c->out, "% by ", sft_node_text(one, "recorded"));
        source_words(&c->out, sft_node_text(one, "source"));
        if (part) cli_text(&c->out, " of ");
        if (part) cli_escaped_cut(&c->out, sft_span_cstr(part), 40);
        cli_text(&c->out, known.len ? ": " : ": another file, or changed since");
        cli_fill(&c->out, "%\n", known);
    }
}

void cli_label_digests(cli *c, const sft_node *root, bool in_list) {
    char buffer[512];
    const sft_node *part = NULL;
    digest_lines(c, root, in_list, NULL);
    while ((part = next_part(root, part)) != NULL) {
        sft_span path = sft_node_text(part, "path"); /* its end, if it is long */
        size_t len = path.len < sizeof buffer - 1 ? path.len : sizeof buffer - 1;
        if (len) memcpy(buffer, path.data + (path.len - len), len);
        buffer[len] = 0;
        digest_lines(c, part, in_list, buffer);
    }
}

/* ── Shared lines ── */

void cli_line_civitai(cli *c, const sft_node *root) {
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
    source_words(&c->out, sft_node_text(civitai, "source"));
    cli_text(&c->out, fits.len == 4 ? ", its hash fits)\n"
                      : fits.len ? ", of another file)\n" : ", not verified)\n");
    cli_line_one(c, "page", sft_node_text(civitai, "url"));
}

void cli_line_merge(cli *c, const sft_node *root) {
    const sft_node *merge = sft_node_get(root, "merge");
    cli_phrase line = { c, "merged", 0 };
    cli_phrase_part(&line, "", sft_node_text(merge, "tool"), "");
    cli_phrase_part(&line, "", sft_node_text(merge, "method"), "");
    size_t shown = 0;
    for (const sft_node *one = cli_first(merge, "sources"); one; one = one->next) {
        sft_span made = sft_node_text(one, "made_from"), weight = sft_node_text(one, "weight");
        sft_span name = sft_node_text(one, "name"), sha256 = sft_node_text(one, "sha256");
        if (!name.len && sha256.len) name = (sft_span){ sha256.data, 10 }; /* as AutoV2 */
        if (!name.len || sft_node_true(one, "ancestor")) continue;
        if (shown == MERGED_SHOWN) {
            cli_text(&c->out, ", …");
            break;
        }
        cli_phrase_part(&line, shown++ ? "" : "from ", name, "");
        if (weight.len) cli_fill(&c->out, " (%)", weight);
        if (made.len) cli_fill(&c->out, " [% of ", sft_node_text(one, "method"));
        if (made.len) cli_fill(&c->out, "%]", made);
    }
    cli_phrase_end(&line);
}

void cli_line_file(cli *c, const sft_node *root) {
    char buffer[CLI_NUMBER_SIZE], digits[SFTI_UINT_SIZE];
    uint64_t bytes, tensors;
    cli_out *out = &c->out;
    cli_label_key(c, "file");
    if (cli_model_bytes(root, &bytes)) cli_text(out, cli_size_text(bytes, buffer));
    else cli_text(out, "size not known");
    sft_node_uint(root, "file.tensors", &tensors);
    cli_text(out, ", ");
    size_t len = sfti_uint_text(tensors, 0, digits);
    for (size_t i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0) cli_text(out, ",");
        cli_put(out, &digits[i], 1);
    }
    cli_text(out, tensors == 1 ? " tensor" : " tensors");
    const sft_node *dtypes = sft_node_find(root, "file.dtypes"), *most = NULL;
    uint64_t part, best = 0;
    for (const sft_node *one = dtypes ? dtypes->first : NULL; one; one = one->next) {
        sft_node_uint(one, "bytes", &part);
        if (most && part <= best) continue;
        most = one;
        best = part;
    }
    if (most) cli_fill(out, " %", most->key);
    if (most && sft_node_count(dtypes) > 1) cli_text(out, " and others");
    size_t shards = sft_node_count(sft_node_get(root, "shards"));
    if (shards) cli_printf(out, ", %zu shard%s", shards, shards == 1 ? "" : "s");
    if (!sft_node_true(root, "complete")) cli_text(out, ", data not seen");
    else if (c->set.verbose || c->set.verify) cli_text(out, not_hashed(c, root));
    cli_text(out, "\n");
}

void cli_line_conflicts(cli *c, const sft_node *root) {
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
