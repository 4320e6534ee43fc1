/* What ids of results are called for people, and the key at the beginning of a line. */
#include "commands/info/label.h"
#include "support/words.h"

#include <string.h>

const char *cli_tool_words(sft_span tool) {
    static const struct tool_name { const char *id, *words; } names[] = {
        { "sd-scripts", "kohya sd-scripts" }, { "webui", "web UI" },
        { "onetrainer", "OneTrainer" }, { "simpletuner", "SimpleTuner" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (cli_is(tool, names[i].id)) return names[i].words;
    return NULL;
}

/* "header:modelspec.description" is "the description", "sidecar:x.json:/id" is "x.json". */
void cli_source_words(cli_out *out, sft_span source) {
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
