/* Run a fuzz target on files, and on all files of folders, without libFuzzer: the corpus is a test of every build. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(size + !size);
    if (!file || !data || fread(data, 1, size, file) != size) {
        perror(path);
        return 1;
    }
    fclose(file);
    printf("%s\n", path);
    fflush(stdout); /* the last line names the input that crashed */
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

static int run_path(const char *path, unsigned *count)
{
    struct stat s;
    if (stat(path, &s)) {
        perror(path);
        return 1;
    }
    if (!S_ISDIR(s.st_mode)) {
        ++*count;
        return run_file(path, (size_t)s.st_size);
    }
    DIR *folder = opendir(path);
    int failed = folder == NULL;
    for (struct dirent *entry; folder && !failed && (entry = readdir(folder));) {
        char inner[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        failed = run_path(inner, count);
    }
    if (folder)
        closedir(folder);
    return failed;
}

int main(int argc, char **argv)
{
    unsigned count = 0;
    for (int i = 1; i < argc; i++)
        if (run_path(argv[i], &count))
            return 1;
    return count == 0;
}
