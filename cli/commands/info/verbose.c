/* A label with -v: every fact with its sources, in groups. */
#include "commands/info/label.h"

#include "support/fields.h"
#include "support/models.h"
#include "support/words.h"

#include <string.h>

static void heading(cli *c, const char *title) {
    cli_styled(&c->out, CLI_BOLD, title);
    cli_text(&c->out, "\n");
}

/* The beginning of a line: a member's name. */
static void member_key(cli *c, const sft_node *node) {
    char key[32] = { 0 };
    size_t len = node->key.len < sizeof key ? node->key.len : sizeof key - 1;
    if (len) memcpy(key, node->key.data, len);
    cli_label_key(c, key);
}

/* Null, or nothing but nulls. */
static bool is_empty(const sft_node *node) {
    const sft_node *one = node->first;
    bool holds = node->type == SFT_NODE_LIST || node->type == SFT_NODE_OBJECT;
    while (one && one->type == SFT_NODE_NULL) one = one->next;
    return node->type == SFT_NODE_NULL || (holds && !one);
}

static bool holds_scalars(const sft_node *node) {
    const sft_node *one = node->first;
    while (one && one->type != SFT_NODE_LIST && one->type != SFT_NODE_OBJECT) one = one->next;
    return node->first && !one;
}

/* "min 4, max 32"; "a, b"; "part vae, architecture vae-flux?" where that is not sure; JSON where it
 * goes deeper. */
static void value_words(cli *c, const sft_node *node) {
    sft_buffer buffer = { .len = 0 };
    cli_flow flow = { c, 0, 0, false };
    bool component = sft_node_get(node, "part") != NULL;
    for (const sft_node *one = holds_scalars(node) ? node->first : NULL; one; one = one->next) {
        bool keyed = one->key.len > 0;
        if (one->type == SFT_NODE_NULL || (component && cli_is(one->key, "trust"))) continue;
        if (keyed) cli_flow_word(&flow, one->key, ", ");
        cli_flow_word(&flow, one->text, keyed ? " " : ", ");
        if (component && cli_is(one->key, "architecture") && cli_is_unsure(node, ""))
            cli_flow_word(&flow, sft_span_cstr("?"), "");
    }
    if (holds_scalars(node)) return;
    cli_escaped_cut(&c->out, cli_node_words(c, node, &buffer), CLI_TEXT_COLUMNS);
    sft_buffer_free(&buffer);
}

/* ── Facts ── */

/* A fact, a list of records or a setting. */
static void member_lines(cli *c, const sft_node *node) {
    bool records = node->type == SFT_NODE_LIST && node->first
                && node->first->type == SFT_NODE_OBJECT;
    if (is_empty(node)) return;
    if (sft_node_get(node, "value")) {
        const sft_node *value = sft_node_get(node, "value");
        cli_flow flow = { c, 0, 0, false };
        member_key(c, node);
        if (value->type == SFT_NODE_TEXT) cli_flow_text(&flow, value->text);
        else value_words(c, value);
        cli_line_trust(c, node);
        cli_text(&c->out, "\n");
        for (const sft_node *one = cli_first(node, "others"); one; one = one->next) {
            cli_label_key(c, "");
            value_words(c, sft_node_get(one, "value"));
            cli_line_trust(c, one);
            cli_text(&c->out, "\n");
        }
    } else if (records) {
        for (const sft_node *one = node->first; one; one = one->next) {
            if (one == node->first) member_key(c, node);
            else cli_label_key(c, "");
            value_words(c, one);
            cli_text(&c->out, "\n");
        }
    } else {
        member_key(c, node);
        value_words(c, node);
        cli_text(&c->out, "\n");
    }
}

static void all_members(cli *c, const sft_node *node) {
    for (const sft_node *one = node ? node->first : NULL; one; one = one->next)
        member_lines(c, one);
}

/* ── Groups ── */

/* Members of `model` that tell how it is used; the others tell what it is. */
static bool tells_use(const sft_node *node) {
    static const char *const keys[] = {
        "prediction_type", "resolution", "clip_skip", "preferred_weight",
        "preferred_weight_range", "negative_prompt", "usage_hint", "description",
        "version_description", "notes",
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (cli_is(node->key, keys[i])) return true;
    return false;
}

static void pasted_line(cli *c, const char *key, sft_span text) {
    if (!text.len) return;
    cli_label_key(c, key);
    cli_pasted(&c->out, text);
    cli_text(&c->out, "\n");
}

static void use_group(cli *c, const sft_node *root) {
    static const char *const lists[] = { "trigger_words", "frequent_tags", "example_prompts" };
    bool any = sft_node_text(root, "prompts.a1111").len > 0;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        any = any || cli_first(root, lists[i]);
    for (const sft_node *one = cli_first(root, "model"); one; one = one->next)
        any = any || (tells_use(one) && !is_empty(one));
    if (!any) return;
    heading(c, "use");
    const sft_node *words = sft_node_get(root, "trigger_words");
    for (const sft_node *one = words->first; one; one = one->next) {
        cli_flow flow = { c, 0, 0, false };
        cli_label_key(c, one == words->first ? "trigger words" : "");
        cli_flow_text(&flow, sft_node_text(one, "text"));
        cli_line_trust(c, one);
        cli_text(&c->out, "\n");
    }
    pasted_line(c, "a1111", sft_node_text(root, "prompts.a1111"));
    pasted_line(c, "comfy", sft_node_text(root, "prompts.comfy"));
    for (const sft_node *one = cli_first(root, "model"); one; one = one->next)
        if (tells_use(one)) member_lines(c, one);
    const sft_node *tag = cli_first(root, "frequent_tags");
    cli_flow flow = { c, 0, 0, false };
    if (tag) cli_label_key(c, "frequent tags");
    for (const sft_node *one = tag; one; one = one->next)
        cli_flow_word(&flow, sft_node_text(one, "tag"), ", ");
    if (tag) cli_flow_end(&flow);
    cli_line_list(c, sft_node_get(root, "example_prompts"), "examples", "positive", "");
}

static void files_group(cli *c, const cli_model *model, const sft_node *root) {
    heading(c, "files");
    cli_line_file(c, root);
    if (model->set) cli_header_lines(c, model->set, root);
    all_members(c, sft_node_get(root, "set"));
    for (const sft_node *one = cli_first(root, "previews"); one; one = one->next) {
        cli_phrase line = { c, "preview", 0 };
        cli_phrase_part(&line, "", sft_node_text(one, "source"), "");
        cli_phrase_part(&line, "", sft_node_text(one, "media_type"), "");
        cli_phrase_part(&line, "nsfw level: ", sft_node_text(one, "nsfw_level"), "");
        cli_phrase_end(&line);
    }
    for (const sft_node *one = cli_first(root, "sidecars"); one; one = one->next) {
        cli_phrase line = { c, sft_node_text(one, "error").len ? "! sidecar" : "sidecar", 0 };
        cli_phrase_part(&line, "", sft_node_text(one, "path"), "");
        cli_phrase_part(&line, "match: ", sft_node_text(one, "match"), "");
        cli_phrase_part(&line, "", sft_node_text(one, "error"), "");
        cli_phrase_end(&line);
    }
    cli_label_digests(c, root, false);
}

static void provenance_group(cli *c, const sft_node *root) {
    static const char *const keys[] = { "civitai", "links", "merge", "provenance", "privacy",
                                        "hashes.recorded" };
    bool any = false;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        any = any || !is_empty(sft_node_find(root, keys[i]));
    if (!any) return;
    heading(c, "provenance");
    cli_line_civitai(c, root);
    cli_line_list(c, sft_node_get(root, "links"), "links", "url", "source");
    cli_line_merge(c, root);
    all_members(c, sft_node_get(root, "provenance"));
    const sft_node *claims = sft_node_find(root, "hashes.recorded"); /* two may claim the same */
    for (const sft_node *one = claims ? claims->first : NULL; one; one = one->next) {
        cli_label_key(c, one == claims->first ? "recorded" : "");
        cli_fill(&c->out, "%  %", sft_node_text(one, "algo"), sft_node_text(one, "value"));
        cli_style_on(&c->out, CLI_DIM);
        cli_fill(&c->out, "  [%]\n", sft_node_text(one, "source"));
        cli_style_off(&c->out, CLI_DIM);
    }
    cli_line_list(c, sft_node_get(root, "privacy"), "private", "key", "what");
}

void cli_label_groups(cli *c, const cli_model *model, const sft_node *root) {
    const sft_node *training = sft_node_get(root, "training");
    heading(c, "identity");
    for (const sft_node *one = cli_first(root, "model"); one; one = one->next)
        if (!tells_use(one)) member_lines(c, one);
    all_members(c, sft_node_get(root, "adapter"));
    cli_line_list(c, sft_node_get(root, "parts"), "parts", "path", "");
    cli_line_conflicts(c, root);
    use_group(c, root);
    if (!is_empty(training)) {
        heading(c, "training");
        all_members(c, training);
    }
    files_group(c, model, root);
    provenance_group(c, root);
    if (!model->set) return;
    heading(c, "metadata");
    cli_metadata_lines(c, model->set);
}
