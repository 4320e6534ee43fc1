/* Digests in a label. */
#include "commands/info/label.h"
#include "support/nodes.h"
#include "support/words.h"

#include <string.h>

static const sft_node *next_part(const sft_node *root, const sft_node *part) {
    return part ? part->next : cli_first(root, "parts");
}

/* ── What there is ── */

const char *cli_not_hashed(const cli *c, const sft_node *root) {
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

/* ── Lines ── */

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
    bool many = sft_node_get(root, "shards") != NULL;
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
        cli_source_words(&c->out, sft_node_text(one, "source"));
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
