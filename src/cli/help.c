/* Help, the manual page and shell completion, all from the table of options. */
#include "commands.h"
#include "output.h"
#include <stdio.h>
#include <string.h>

void print_usage(FILE *out)
{
    fputs("squall: gridded weather and climate data between files and memory\n\nusage: squall COMMAND [OPTIONS]\n\n", out);
    for (size_t i = 0; i < command_count; i++)
        fprintf(out, "  %-11s %s\n", commands[i].name, commands[i].summary);
    fputs("\nsquall help COMMAND tells more. Exit codes: 0 done, 1 failed, 2 usage, 3 done but some inputs were bad or ignored,\n"
          "4 refused (in use, or planned differently), 5 damage found, 130 or 143 interrupted.\n"
          "squall --version tells the version.\n",
          out);
}

static void print_option(FILE *out, const struct option *o)
{
    char head[SHORT_TEXT_BYTES], letter[8] = "    ";
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(head, sizeof head, "%s--%s%s%s", letter, o->name, o->argument ? " " : "", o->argument ? o->argument : "");
    fprintf(out, "  %-34s %s\n", head, o->help);
}

void print_command_help(FILE *out, const struct command *c)
{
    fprintf(out, "usage: squall %s %s [OPTIONS]\n\n%s\n", c->name, c->operands, c->description);
    for (int common = 0; common < 2; common++) {
        if (common || c->option_names)
            fputs(common ? "\nEverywhere:\n" : "\n", out);
        for (size_t i = 0; i < option_count; i++)
            if (option_belongs(&options[i], c) && option_is_common(&options[i]) == common)
                print_option(out, &options[i]);
    }
}

/* Texts in a manual page: a dash is escaped, a line must not begin with a dot. */
static void print_roff(FILE *out, const char *text)
{
    for (const char *p = text; *p; p++) {
        if (*p == '-' || *p == '\\')
            fputc('\\', out);
        if (*p == '\n' && p[1] == '.')
            fputs("\n\\&", out);
        else
            fputc(*p, out);
    }
}

static void print_man_option(FILE *out, const struct option *o)
{
    fputs(".TP\n", out);
    if (o->letter)
        fprintf(out, "\\fB\\-%c\\fR, ", o->letter);
    fprintf(out, "\\fB\\-\\-");
    print_roff(out, o->name);
    fprintf(out, "\\fR %s\n", o->argument ? o->argument : "");
    print_roff(out, o->help);
    fputc('\n', out);
}

static void print_man_command(FILE *out, const struct command *c)
{
    fprintf(out, ".SS squall %s %s\n", c->name, c->operands);
    print_roff(out, c->description);
    fputc('\n', out);
    for (size_t i = 0; i < option_count; i++)
        if (option_belongs(&options[i], c) && !option_is_common(&options[i]))
            print_man_option(out, &options[i]);
}

static void print_man(FILE *out)
{
    fprintf(out,
            ".TH SQUALL 1 \"\" \"squall %s\" \"User Commands\"\n.SH NAME\nsquall \\- gridded weather and climate data between files and "
            "memory\n",
            SQUALL_VERSION);
    fputs(".SH SYNOPSIS\n\\fBsquall\\fR COMMAND [OPTIONS]\n.SH COMMANDS\n", out);
    for (size_t i = 0; i < command_count; i++)
        print_man_command(out, &commands[i]);
    fputs(".SH OPTIONS EVERYWHERE\n", out);
    for (size_t i = 0; i < option_count; i++)
        if (option_is_common(&options[i]))
            print_man_option(out, &options[i]);
    fputs(".SH EXIT STATUS\n0 done; 1 failed; 2 usage; 3 done, but some inputs were bad or ignored; 4 refused (in use, or planned "
          "differently);\n"
          "5 damage found; 130 or 143 interrupted (a conversion goes on when the same command is run again).\n",
          out);
    fputs(
        ".SH FILES\n$XDG_CACHE_HOME/squall, else ~/.cache/squall: what was found in the headers of 16 or more files that were opened as "
        "one, so "
        "that they open faster again. It may be removed at any time, is kept below 256 MiB, and nothing is kept where the folder cannot be "
        "written.\n.SH ENVIRONMENT\nSQUALL_INDEX_CACHE=0: nothing of that is kept or used. NO_COLOR: no colours.\n",
        out);
}

int run_help(const struct arguments *a)
{
    if (a->man) {
        print_man(stdout);
        return EXIT_DONE;
    }
    if (a->positional.count == 0) {
        print_usage(stdout);
        return EXIT_DONE;
    }
    const struct command *c = command_named(a->positional.items[0]);
    if (!c) {
        complain("squall help: no command %s (squall help lists them)", a->positional.items[0]);
        return EXIT_USAGE;
    }
    print_command_help(stdout, c);
    return EXIT_DONE;
}

/* Within single quotes; `quote` is how the shell writes one there. */
static void print_quoted(const char *text, const char *quote)
{
    for (; *text; text++)
        if (*text == '\'')
            fputs(quote, stdout);
        else
            putchar(*text);
}

/* "error warn first", of "error|warn|first" */
static void print_choices(const char *choices)
{
    for (; *choices; choices++)
        putchar(*choices == '|' ? ' ' : *choices);
}

/* What completes the arguments of commands that take no paths: "completion" and "help". */
static void print_words(const struct command *c)
{
    if (!strcmp(c->name, "completion"))
        printf("bash zsh fish");
    for (size_t i = 0; i < command_count && !strcmp(c->name, "help"); i++)
        printf("%s%s", i ? " " : "", commands[i].name);
}

static bool has_words(const struct command *c)
{
    return !strcmp(c->name, "completion") || !strcmp(c->name, "help");
}

static void complete_bash(void)
{
    puts("_squall() {\n    local word=${COMP_WORDS[COMP_CWORD]} words= options=\n    if [ \"$COMP_CWORD\" -eq 1 ]; then");
    printf("        words=\"--version");
    for (size_t i = 0; i < command_count; i++)
        printf(" %s", commands[i].name);
    puts("\"\n    else\n        case ${COMP_WORDS[1]} in");
    for (size_t i = 0; i < command_count; i++) {
        printf("        %s) options=\"", commands[i].name);
        for (size_t k = 0; k < option_count; k++)
            if (option_belongs(&options[k], &commands[i]))
                printf(" --%s", options[k].name);
        printf("\" words=\"");
        print_words(&commands[i]);
        puts("\" ;;");
    }
    puts("        esac\n        case ${COMP_WORDS[COMP_CWORD-1]} in");
    for (size_t k = 0; k < option_count; k++)
        if (options[k].choices) {
            printf("        --%s) words=\"", options[k].name);
            print_choices(options[k].choices);
            puts("\" ;;");
        }
    puts("        esac\n        [[ $word != -* ]] || words=$options # else paths\n    fi");
    puts("    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\ncomplete -o default -F _squall squall");
}

static void complete_zsh_option(const struct option *o)
{
    printf(" '--%s", o->name);
    if (o->choices) {
        printf("=:value:(");
        print_choices(o->choices);
        putchar(')');
    } else if (o->argument) {
        printf("=:value:_files");
    }
    putchar('\'');
}

/* For a folder of $fpath, and for `source <(squall completion zsh)`. */
static void complete_zsh(void)
{
    puts("#compdef squall\n_squall() {\n    if (( CURRENT == 2 )); then\n        local -a commands=(");
    for (size_t i = 0; i < command_count; i++) {
        printf("            '%s:", commands[i].name);
        print_quoted(commands[i].summary, "'\\''");
        puts("'");
    }
    puts("        )\n        _describe command commands\n        return\n    fi\n    case $words[2] in");
    for (size_t i = 0; i < command_count; i++) {
        printf("    %s) _arguments '1: :' '*:argument:", commands[i].name); /* the first is the command */
        if (has_words(&commands[i])) {
            putchar('(');
            print_words(&commands[i]);
            putchar(')');
        } else {
            printf("_files");
        }
        putchar('\'');
        for (size_t k = 0; k < option_count; k++)
            if (option_belongs(&options[k], &commands[i]))
                complete_zsh_option(&options[k]);
        puts(" ;;");
    }
    puts("    esac\n}\nif [ \"$funcstack[1]\" = _squall ]; then\n    _squall \"$@\"\nelse\n    compdef _squall squall\nfi");
}

static void complete_fish_option(const struct command *c, const struct option *o)
{
    printf("complete -c squall -n '__fish_seen_subcommand_from %s' -l %s%s", c->name, o->name,
           o->choices    ? " -x -a '"
           : o->argument ? " -r"
                         : "");
    if (o->choices) {
        print_choices(o->choices);
        putchar('\'');
    }
    printf(" -d '");
    print_quoted(o->help, "\\'");
    puts("'");
}

static void complete_fish(void)
{
    for (size_t i = 0; i < command_count; i++) {
        printf("complete -c squall -n __fish_use_subcommand -a %s -d '", commands[i].name);
        print_quoted(commands[i].summary, "\\'");
        puts("'");
        if (has_words(&commands[i])) {
            printf("complete -c squall -n '__fish_seen_subcommand_from %s' -f -a '", commands[i].name);
            print_words(&commands[i]);
            puts("'");
        }
        for (size_t k = 0; k < option_count; k++)
            if (option_belongs(&options[k], &commands[i]))
                complete_fish_option(&commands[i], &options[k]);
    }
}

int run_completion(const struct arguments *a)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", complete_bash}, {"zsh", complete_zsh}, {"fish", complete_fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (!strcmp(a->positional.items[0], shells[i].name)) {
            shells[i].print();
            return EXIT_DONE;
        }
    complain("squall completion: no shell %s; bash, zsh and fish are known", a->positional.items[0]);
    return EXIT_USAGE;
}
