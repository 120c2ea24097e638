/* The `squall` command: finds the command that is meant, parses what follows, and runs it. */
#include "commands.h"
#include "output.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})
enum { ANY_NUMBER = 1 << 30 };

const struct command commands[] = {
    {"info", "PATH", 1, 1, "what a file or store is: dimensions, variables, grid, attributes",
     "Opens a Zarr store (also in a zip file), an HDF5, NetCDF or GRIB file, a folder of GRIB files, or a\n"
     "pattern in quotes ('era5/*.nc') as one dataset, and prints its structure; of the data only\n"
     "coordinates are read. A dimension: its length, first and last coordinate (dates for times), and\n"
     "their spacing where it is even. A grid (of GRIB, or of a store made of it): its type,\n"
     "rows x columns, its CRS where that is known, its axes. Groups follow, each with its arrays and\n"
     "attributes. With -v each array's fill value and attributes, too, and long types whole. Long\n"
     "attributes are cut; --json has them whole.",
     NAMES("concat-dim", "drift"), run_info},
    {"ls", "PATH...", 1, ANY_NUMBER, "a line per array, or per GRIB field",
     "Lists the fields of GRIB files, or the arrays of Zarr stores, HDF5 and NetCDF files. A\n"
     "pattern in quotes is every path that matches; with --concat-dim or --drift the arrays are those\n"
     "of all files as one.\n"
     "On a terminal a line with the columns' names comes first.\n"
     "Keys for -w and -p, of arrays: name type shape chunks codecs size (bytes in memory) stored (bytes\n"
     "on disk) ratio reason path. Of fields: number offset size shortName name paramId units cfName\n"
     "typeOfLevel level stepType step date member centre edition packing bits grid points path reason.\n"
     "A step is in hours (or 90m, 10s), an interval is 0-6; a level is in the units of its\n"
     "type, a layer is 0-10. With --json both are numbers: step (the end) and startStep in\n"
     "hours, level and bottomLevel, which is null where there is no layer.",
     NAMES("where", "print", "concat-dim", "drift"), run_ls},
    {"get", "PATH [NAME]", 1, 2, "values of an array, or of one GRIB field",
     "Prints values as CSV, or writes them to a file. NAME is a variable; with --field N it is left out.\n"
     "A column for each dimension that is not chosen by one index: dates as\n"
     "2022-01-01T06:00:00 in any of CF's calendars, steps with their unit (6h, 90m, 45s), as --nearest\n"
     "takes them. Values that count time (\"hours since ...\") are dates, too; others are as they are\n"
     "stored: neither scaled nor masked. Enumerations go by their names; structures have a column a\n"
     "field, sequences are lists. A .npy file has the numbers themselves.",
     NAMES("selection", "nearest", "field", "output", "concat-dim", "drift"), run_get},
    {"convert", "SRC... DST", 2, ANY_NUMBER, "an archive of GRIB, HDF5 or NetCDF files, or a store, into one Zarr store",
     "SRC are GRIB, HDF5 or NetCDF files, folders of them, Zarr stores, globs (quoted or not), or - for a\n"
     "list of paths on stdin. Running the same command again does only what is missing or has changed, so it\n"
     "can follow an archive that grows, and go on after an interruption.",
     NAMES("chunks", "shards", "dtype", "bitround", "on-overflow", "codec", "select", "rename", "coarsen", "y-order", "every", "stack",
           "stack-name", "append-dim", "concat-dim", "drift", "group", "zarr-format", "schema", "dry-run", "part", "finish", "prepend",
           "overwrite", "lock-timeout", "strict", "keep-going", "log", "config", "print-config"),
     run_convert},
    {"status", "DST", 1, 1, "what a converted store holds and lacks",
     "A calendar of the runs, what is missing or failed and why, and the command that goes on.\n"
     "Of NetCDF files that squall.create_many has begun (a file, or a folder of them): the\n"
     "regions that nobody has written, and exit code 3 until finish() has given all files their\n"
     "names.",
     NAMES("html"), run_status},
    {"verify", "PATH", 1, 1, "check every chunk of a store or file",
     "Compares each chunk's length and checksum with its record; without records (stores of others, GRIB,\n"
     "HDF5 and NetCDF files, patterns in quotes) each chunk is decoded. Chunks that were never written, which\n"
     "read as the fill value, are named, but for patterns.\n"
     "Exit code 5 where one is damaged or missing, 3 where an array cannot be checked. Damage is noted in the\n"
     "store, if that can be written: chunk_exists is false there until `squall convert` has made it anew.",
     NULL, run_verify},
    {"bench", "PATH", 1, 1, "how fast this machine reads a file or store",
     "Reads everything three times and reports the best: of a GRIB file each field, of Zarr stores, HDF5\n"
     "and NetCDF files, and patterns in quotes each array.",
     NAMES("array", "concat-dim", "drift"), run_bench},
    {"completion", "bash|zsh|fish", 1, 1, "completion for a shell", "For example: squall completion bash > /etc/bash_completion.d/squall",
     NULL, run_completion},
    {"help", "[COMMAND]", 0, 1, "this text, or a command's", "Prints what the commands are, or what one of them takes.", NAMES("man"),
     run_help},
};
const size_t command_count = sizeof commands / sizeof *commands;

static int usage_error(const char *name)
{
    complain("squall: no command %s (squall help lists them)", name);
    return EXIT_USAGE;
}

static int run_command(const struct command *c, int argc, char **argv)
{
    struct arguments a;
    int code = EXIT_USAGE;
    if (arguments_parse(c, argc, argv, &a)) {
        if (a.help) {
            print_command_help(stdout, c);
            code = EXIT_DONE;
        } else {
            code = c->run(&a);
        }
    }
    arguments_done(&a);
    if (fflush(stdout) != 0 && code == EXIT_DONE) {
        complain("squall: the results could not be written to stdout");
        code = EXIT_FAILED;
    }
    return code;
}

int main(int argc, char **argv)
{
    catch_interrupts();
    const char *first = argc > 1 ? argv[1] : "";
    if (!strcmp(first, "--version")) {
        printf("squall %s\n", squall_version());
        return EXIT_DONE;
    }
    if (argc < 2) {
        print_usage(stderr);
        return EXIT_USAGE;
    }
    if (!strcmp(first, "--help") || !strcmp(first, "-h")) {
        print_usage(stdout);
        return EXIT_DONE;
    }
    const struct command *c = command_named(first);
    return c ? run_command(c, argc - 2, argv + 2) : usage_error(first);
}
