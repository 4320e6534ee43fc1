/* Completion scripts for bash, zsh and fish, made of the tables of options. */
#include "safetensors_hash.h"
#include "support/fields.h"
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

/* The operands behind the first one are tensors of it. */
static bool takes_tensors(const cli_command *command) {
    return strstr(command->operands, "TENSOR") != NULL;
}

/* "list|get|set" of the operands "[list|get|set] FILE...": the verbs of a command, or nothing. */
static sft_span verbs_of(const cli_command *command) {
    const char *at = command->operands + (*command->operands == '[');
    size_t len = strcspn(at, "] ");
    return memchr(at, '|', len) ? (sft_span){ at, len } : (sft_span){ at, 0 };
}

static void put_words(cli_out *out, sft_span bars) {
    for (size_t i = 0; i < bars.len; i++)
        cli_put(out, bars.data[i] == '|' ? " " : bars.data + i, 1);
}

/* ── Values of options ── */

static void dtype_words(cli_out *out) {
    for (size_t i = SFT_DTYPE_COUNT; i-- > 0;) cli_printf(out, " %s", sft_dtype_at(i)->name);
}

static void algo_words(cli_out *out) {
    for (unsigned i = 0; i < SFT_HASH_COUNT; i++)
        cli_printf(out, " %s", sft_hash_name((sft_hash_algo)i));
    cli_text(out, " all");
}

static void put_field(void *ctx, const char *name) {
    cli_text(ctx, " ");
    cli_text(ctx, name);
}

static void field_words(cli_out *out) { cli_field_each(put_field, out); }

typedef struct value_list {
    const char *option;
    void (*words)(cli_out *out); /* a blank before each */
    bool many;                   /* several, between commas */
} value_list;

static const value_list value_lists[] = {
    { "dtype", dtype_words, false }, { "algo", algo_words, true },    { "hash", algo_words, true },
    { "fields", field_words, true }, { "where", field_words, false },
};

static const value_list *values_of(const cli_option *row) {
    for (size_t i = 0; i < sizeof value_lists / sizeof *value_lists; i++)
        if (row->kind != CLI_FLAG && strcmp(value_lists[i].option, row->name) == 0)
            return &value_lists[i];
    return NULL;
}

/* The words of an option with a choice or a list; a list's have a blank before each. */
static void option_words(cli_out *out, const cli_option *row, const value_list *list) {
    if (list) list->words(out);
    else put_words(out, sft_span_cstr(row->value));
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

/* Names of tensors are a stranger's: a shell is given plain ones only, and runs none of them.
 * Only files and folders are read: a pipe or the terminal would keep the shell waiting, and
 * nothing is sent. */
#define TENSOR_NAMES_OF(file)                                                                      \
    "safetensors ls --offline --tsv -- " file " 2>/dev/null | tail -n +2 | cut -f2 |"              \
    " grep -E \"^[A-Za-z0-9_.:/][A-Za-z0-9_.:/-]*\\$\" | head -n 5000"

/* ── bash ── */

/* "ls,--sort) words='offset name size' ;;", for the letter as well. */
static void bash_values(cli_out *out, command_table commands, const cli_command *command) {
    (void)commands;
    const cli_option *row;
    for (size_t i = 0; (row = cli_option_at(command, i)) != NULL; i++) {
        const value_list *list = values_of(row);
        if (row->kind != CLI_CHOICE && !list) continue;
        cli_text(out, "        ");
        if (row->letter) cli_printf(out, "%s,-%c|", command->name, row->letter);
        cli_printf(out, "%s,--%s) %swords='", command->name, row->name,
                   list && list->many ? "list=1 " : "");
        option_words(out, row, list);
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
    cli_text(out, "'");
    sft_span verbs = verbs_of(command);
    if (verbs.len) {
        cli_text(out, " verbs='");
        put_words(out, verbs);
        cli_text(out, "'");
    }
    if (takes_tensors(command)) cli_text(out, " tensors=1");
    cli_text(out, " ;;\n");
}

static void bash_script(cli_out *out, command_table commands) {
    cli_text(out, "# bash completion for safetensors\n"
                  "_safetensors_tensors() {\n"
                  "    local name file='' i\n"
                  "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
                  "        [[ ${COMP_WORDS[i]} == -* ]] && continue\n"
                  "        file=${COMP_WORDS[i]/#\\~/$HOME}\n"
                  "        break\n"
                  "    done\n"
                  "    [[ -f $file || -d $file ]] || return\n"
                  "    while IFS= read -r name; do\n"
                  "        [[ $name == \"$1\"* ]] && COMPREPLY+=(\"$name\")\n"
                  "    done < <(" TENSOR_NAMES_OF("\"$file\"") ")\n"
                  "}\n"
                  "_safetensors() {\n"
                  "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                  "    local words='' verbs='' list='' tensors='' before=''\n"
                  "    COMPREPLY=()\n"
                  "    if [[ $cur == '=' ]]; then cur=''\n"
                  "    elif [[ $prev == '=' ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
                  "    case ${COMP_WORDS[1]},$prev in\n");
    for_commands(out, commands, bash_values);
    cli_text(out, "    esac\n"
                  "    if [[ -n $list && $cur == *,* ]]; then\n"
                  "        before=${cur%,*},\n"
                  "        cur=${cur##*,}\n"
                  "    fi\n"
                  "    if [[ -z $words && $COMP_CWORD -eq 1 ]]; then\n        words='");
    command_names(out, commands);
    cli_text(out, "--help --version'\n"
                  "    elif [[ -z $words ]]; then\n"
                  "        case ${COMP_WORDS[1]} in\n");
    for_commands(out, commands, bash_options);
    cli_text(out, "        esac\n"
                  "        [[ ${COMP_WORDS[1]} == help || $cur == -* ]] || words=''\n"
                  "        [[ -n $verbs && $COMP_CWORD -eq 2 && $cur != -* ]] && words=$verbs\n"
                  "        [[ -n $tensors && $cur != -* ]] && _safetensors_tensors \"$cur\"\n"
                  "    fi\n"
                  "    [[ -n $words ]] && "
                  "COMPREPLY=($(compgen -P \"$before\" -W \"$words\" -- \"$cur\"))\n"
                  "}\n"
                  "complete -o bashdefault -o default -F _safetensors safetensors\n");
}

/* ── zsh ── */

static void zsh_option(cli_out *out, const cli_option *row) {
    cli_text(out, " \\\n            ");
    if (row->letter) {
        cli_printf(out, "'(-%c --%s)'{-%c,--%s}'[", row->letter, row->name, row->letter,
                   row->name);
    } else {
        cli_printf(out, "'--%s%s[", row->name, row->kind == CLI_FLAG    ? ""
                                               : row->kind == CLI_MAYBE ? "=-"
                                                                        : "=");
    }
    single_quoted(out, row->help, "[]:");
    cli_text(out, row->kind == CLI_MAYBE ? "]:" : "]");
    const value_list *list = values_of(row);
    if (row->kind != CLI_FLAG) cli_printf(out, ":%s:", row->name);
    if (list && list->many) {
        cli_printf(out, "_values -s , %s", row->name);
        list->words(out);
    } else if (list || row->kind == CLI_CHOICE) {
        cli_text(out, "(");
        option_words(out, row, list);
        cli_text(out, ")");
    }
    cli_text(out, "'");
}

static void zsh_case(cli_out *out, command_table commands, const cli_command *command) {
    const cli_option *row;
    cli_printf(out, "    %s)\n        _arguments", command->name);
    for (size_t i = 0; (row = cli_option_at(command, i)) != NULL; i++) zsh_option(out, row);
    sft_span verbs = verbs_of(command);
    if (verbs.len) {
        cli_text(out, " \\\n            '1:verb:(");
        put_words(out, verbs);
        cli_text(out, ")'");
    }
    if (takes_command(command)) {
        cli_text(out, " \\\n            '*:command:(");
        command_names(out, commands);
        cli_text(out, ")'");
    } else if (takes_tensors(command)) {
        cli_text(out, " \\\n            '1:file:_files' '*:tensor:_safetensors_tensors'");
    } else {
        cli_text(out, " \\\n            '*:file:_files'");
    }
    cli_text(out, "\n        ;;\n");
}

static void zsh_script(cli_out *out, command_table commands) {
    cli_text(out, "#compdef safetensors\n"
                  "_safetensors_tensors() {\n"
                  "    local word\n"
                  "    local -a names\n"
                  "    for word in $words[2,-1]; do\n"
                  "        [[ $word == -* ]] && continue\n"
                  "        word=${(Q)word/#\\~/$HOME}\n"
                  "        [[ -f $word || -d $word ]] || return\n"
                  "        names=(${(f)\"$(" TENSOR_NAMES_OF("$word") ")\"})\n"
                  "        compadd -a names\n"
                  "        return\n"
                  "    done\n"
                  "}\n"
                  "_safetensors() {\n"
                  "    local -a commands\n"
                  "    commands=(\n");
    for (size_t i = 0; commands[i]; i++) {
        cli_printf(out, "        '%s:", commands[i]->name);
        single_quoted(out, commands[i]->summary, ":");
        cli_text(out, "'\n");
    }
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

static void fish_options(cli_out *out, command_table commands, const cli_command *command) {
    const cli_option *row;
    for (size_t i = 0; (row = cli_option_at(command, i)) != NULL; i++) {
        cli_printf(out, "complete -c safetensors -n '__fish_seen_subcommand_from %s'",
                   command->name);
        if (row->letter) cli_printf(out, " -s %c", row->letter);
        cli_printf(out, " -l %s", row->name);
        const value_list *list = values_of(row);
        if (list && list->many) {
            cli_text(out, " -x -a '(__fish_complete_list , \"string split -n \\\" \\\" \\\"");
            list->words(out);
            cli_text(out, "\\\"\")'");
        } else if (list || row->kind == CLI_CHOICE) {
            cli_text(out, " -x -a '");
            option_words(out, row, list);
            cli_text(out, "'");
        } else if (cli_wants_value(row)) {
            cli_text(out, " -r");
        }
        cli_text(out, " -d '");
        single_quoted(out, row->help, "");
        cli_text(out, "'\n");
    }
    sft_span verbs = verbs_of(command);
    if (takes_tensors(command))
        cli_printf(out, "complete -c safetensors -n '__safetensors_at %s 4' -f "
                        "-a '(__safetensors_tensors)'\n", command->name);
    if (verbs.len) {
        cli_printf(out, "complete -c safetensors -n '__safetensors_at %s 3' -a '", command->name);
        put_words(out, verbs);
        cli_text(out, "'\n");
    }
    if (!takes_command(command)) return;
    cli_printf(out, "complete -c safetensors -n '__fish_seen_subcommand_from %s' -f -a '",
               command->name);
    command_names(out, commands);
    cli_text(out, "'\n");
}

static void fish_script(cli_out *out, command_table commands) {
    cli_text(out, "# fish completion for safetensors\n"
                  "function __safetensors_words\n"
                  "    for word in (commandline -opc)[3..-1]\n"
                  "        string match -q -- '-*' $word; or echo $word\n"
                  "    end\n"
                  "end\n"
                  "# Whether the word at the cursor is an operand of the command: 3 the first, 4 a "
                  "later one.\n"
                  "function __safetensors_at -a name place\n"
                  "    set -l line (commandline -opc)\n"
                  "    test \"$line[2]\" = $name; or return 1\n"
                  "    set -l count (count (__safetensors_words))\n"
                  "    test $place -eq 3 -a $count -eq 0 -o $place -eq 4 -a $count -gt 0\n"
                  "end\n"
                  "function __safetensors_tensors\n"
                  "    set -l file (__safetensors_words)[1]\n"
                  "    set file (string replace -r '^~' $HOME -- $file)\n"
                  "    test -f \"$file\" -o -d \"$file\"; or return\n"
                  "    " TENSOR_NAMES_OF("$file") "\n"
                  "end\n");
    for (size_t i = 0; commands[i]; i++) {
        cli_printf(out, "complete -c safetensors -n __fish_use_subcommand -a %s -d '",
                   commands[i]->name);
        single_quoted(out, commands[i]->summary, "");
        cli_text(out, "'\n");
    }
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
