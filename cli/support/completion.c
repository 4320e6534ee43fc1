#include "support/field_table.h"
#include "support/manual.h"

#include <string.h>

typedef const cli_command *const *command_table;
typedef void (*command_fn)(cli_out *out, command_table commands, const cli_command *command);

static void for_commands(cli_out *out, command_table commands, command_fn each) {
    for (size_t i = 0; commands[i]; i++) each(out, commands, commands[i]);
}

static void command_names(cli_out *out, command_table commands) {
    for (; *commands; commands++) cli_printf(out, "%s ", (*commands)->name);
}

static bool takes_command(const cli_command *command) {
    return strstr(command->operands, "COMMAND") != NULL;
}

static void choice_words(cli_out *out, const cli_option *row) {
    sft_span word;
    for (size_t i = 0; cli_choice_at(row, i, &word); i++) {
        if (i) cli_text(out, " ");
        cli_put(out, word.data, word.len);
    }
}

/* -f LIST: names of fields with commas between. */
static bool takes_fields(const cli_option *row) {
    return row->kind == CLI_WORD && strcmp(row->name, "fields") == 0;
}

static void field_word(void *ctx, const char *name) {
    cli_text(ctx, " ");
    cli_text(ctx, name);
}

/* Inside single quotes of a shell; `also` are characters that want a backslash. */
static void single_quoted(cli_out *out, const char *text, const char *also) {
    for (; *text; text++) {
        if (*text == '\'') {
            cli_text(out, "'\\''");
            continue;
        }
        if (strchr(also, *text)) cli_text(out, "\\");
        cli_put(out, text, 1);
    }
}

/* ── bash ── */

static void bash_choices(cli_out *out, command_table commands, const cli_command *command) {
    (void)commands;
    const cli_option *row;
    for (size_t i = 0; (row = cli_option_at(command, i)) != NULL; i++) {
        if (takes_fields(row)) {
            cli_printf(out, "        %s,-%c|%s,--%s) list=1 words='", command->name, row->letter,
                       command->name, row->name);
            cli_field_each(field_word, out);
            cli_text(out, "' ;;\n");
        }
        if (row->kind != CLI_CHOICE) continue;
        cli_printf(out, "        %s,--%s) words='", command->name, row->name);
        choice_words(out, row);
        cli_text(out, "' ;;\n");
    }
}

static void bash_options(cli_out *out, command_table commands, const cli_command *command) {
    const cli_option *row;
    cli_printf(out, "        %s) words='", command->name);
    for (size_t i = 0; (row = cli_option_at(command, i)) != NULL; i++) {
        if (row->letter) cli_printf(out, "-%c ", row->letter);
        cli_printf(out, "--%s ", row->name);
    }
    if (takes_command(command)) command_names(out, commands);
    cli_text(out, "' ;;\n");
}

static void bash_script(cli_out *out, command_table commands) {
    cli_text(out, "# bash completion for safetensors\n"
                  "_safetensors() {\n"
                  "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                  "    local words='' list='' before=''\n"
                  "    COMPREPLY=()\n"
                  "    if [[ $cur == '=' ]]; then cur=''\n"
                  "    elif [[ $prev == '=' ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
                  "    case ${COMP_WORDS[1]},$prev in\n");
    for_commands(out, commands, bash_choices);
    cli_text(out, "    esac\n"
                  "    if [[ -z $words && $COMP_CWORD -eq 1 ]]; then\n        words='");
    command_names(out, commands);
    cli_text(out, "--help --version'\n"
                  "    elif [[ -z $words ]]; then\n"
                  "        case ${COMP_WORDS[1]} in\n");
    for_commands(out, commands, bash_options);
    cli_text(out, "        esac\n"
                  "        [[ ${COMP_WORDS[1]} == help || $cur == -* ]] || words=''\n"
                  "    fi\n"
                  "    if [[ -n $list && $cur == *,* ]]; then\n"
                  "        before=${cur%,*},\n"
                  "        cur=${cur##*,}\n"
                  "    fi\n"
                  "    [[ -n $words ]] &&\n"
                  "        COMPREPLY=($(compgen -P \"$before\" -W \"$words\" -- \"$cur\"))\n"
                  "}\n"
                  "complete -o bashdefault -o default -F _safetensors safetensors\n");
}

/* ── zsh ── */

static void zsh_command(cli_out *out, command_table commands, const cli_command *command) {
    (void)commands;
    cli_printf(out, "        '%s:", command->name);
    single_quoted(out, command->summary, ":");
    cli_text(out, "'\n");
}

static void zsh_option(cli_out *out, const cli_option *row) {
    cli_text(out, " \\\n            ");
    if (row->letter) {
        cli_printf(out, "'(-%c --%s)'{-%c,--%s}'[", row->letter, row->name, row->letter,
                   row->name);
    } else {
        cli_printf(out, "'--%s%s[", row->name, row->kind == CLI_FLAG ? "" : "=");
    }
    single_quoted(out, row->help, "[]:");
    cli_text(out, "]");
    if (row->kind != CLI_FLAG) cli_printf(out, ":%s:", row->name);
    if (row->kind == CLI_CHOICE) {
        cli_text(out, "(");
        choice_words(out, row);
        cli_text(out, ")");
    }
    if (takes_fields(row)) {
        cli_text(out, "_values -s , field");
        cli_field_each(field_word, out);
    }
    cli_text(out, "'");
}

static void zsh_case(cli_out *out, command_table commands, const cli_command *command) {
    const cli_option *row;
    cli_printf(out, "    %s)\n        _arguments", command->name);
    for (size_t i = 0; (row = cli_option_at(command, i)) != NULL; i++) zsh_option(out, row);
    if (takes_command(command)) {
        cli_text(out, " \\\n            '*:command:(");
        command_names(out, commands);
        cli_text(out, ")'\n        ;;\n");
    } else {
        cli_text(out, " \\\n            '*:file:_files'\n        ;;\n");
    }
}

static void zsh_script(cli_out *out, command_table commands) {
    cli_text(out, "#compdef safetensors\n"
                  "_safetensors() {\n"
                  "    local -a commands\n"
                  "    commands=(\n");
    for_commands(out, commands, zsh_command);
    cli_text(out, "    )\n"
                  "    if (( CURRENT == 2 )); then\n"
                  "        _describe command commands\n"
                  "        _arguments '--help[show an overview]' '--version[version]' "
                  "'*:file:_files'\n"
                  "        return\n"
                  "    fi\n"
                  "    local name=$words[2]\n"
                  "    shift words\n"
                  "    (( CURRENT-- ))\n"
                  "    case $name in\n");
    for_commands(out, commands, zsh_case);
    cli_text(out, "    *) _files ;;\n"
                  "    esac\n"
                  "}\n"
                  "_safetensors \"$@\"\n");
}

/* ── fish ── */

static void fish_command(cli_out *out, command_table commands, const cli_command *command) {
    (void)commands;
    cli_printf(out, "complete -c safetensors -n __fish_use_subcommand -a %s -d '",
               command->name);
    single_quoted(out, command->summary, "");
    cli_text(out, "'\n");
}

static void fish_field(void *ctx, const char *name) {
    cli_text(ctx, ",");
    cli_text(ctx, name);
}

static void fish_options(cli_out *out, command_table commands, const cli_command *command) {
    const cli_option *row;
    for (size_t i = 0; (row = cli_option_at(command, i)) != NULL; i++) {
        cli_printf(out, "complete -c safetensors -n '__fish_seen_subcommand_from %s'",
                   command->name);
        if (row->letter) cli_printf(out, " -s %c", row->letter);
        cli_printf(out, " -l %s", row->name);
        if (row->kind == CLI_WORD || row->kind == CLI_MANY) cli_text(out, " -r");
        if (row->kind == CLI_CHOICE) {
            cli_text(out, " -x -a '");
            choice_words(out, row);
            cli_text(out, "'");
        }
        if (takes_fields(row)) {
            cli_text(out, " -x -a '(__fish_complete_list , \"string split -n , ");
            cli_field_each(fish_field, out);
            cli_text(out, "\")'");
        }
        cli_text(out, " -d '");
        single_quoted(out, row->help, "");
        cli_text(out, "'\n");
    }
    if (!takes_command(command)) return;
    cli_printf(out, "complete -c safetensors -n '__fish_seen_subcommand_from %s' -f -a '",
               command->name);
    command_names(out, commands);
    cli_text(out, "'\n");
}

static void fish_script(cli_out *out, command_table commands) {
    cli_text(out, "# fish completion for safetensors\n");
    for_commands(out, commands, fish_command);
    cli_text(out, "complete -c safetensors -n __fish_use_subcommand -l help -d "
                  "'show an overview'\n"
                  "complete -c safetensors -n __fish_use_subcommand -l version -d "
                  "'library, build options and limits'\n");
    for_commands(out, commands, fish_options);
}

bool cli_completion(cli_out *out, const cli_command *const *commands, const char *shell) {
    static const struct {
        const char *name;
        void (*write)(cli_out *out, command_table commands);
    } shells[] = { { "bash", bash_script }, { "zsh", zsh_script }, { "fish", fish_script } };
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(shells[i].name, shell) != 0) continue;
        shells[i].write(out, commands);
        return true;
    }
    return false;
}
