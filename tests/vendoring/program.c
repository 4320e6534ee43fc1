/* A program with two plugins, first_plugin and second_plugin, each with a copy of the library.
 * Linked with both (-DLINKED), or loading both so that each sees the other's symbols. */
#include <dlfcn.h>
#include <stdio.h>

typedef int plugin(const char *path, char *said, size_t cap);

#ifdef LINKED
plugin first_plugin, second_plugin;

static plugin *load(const char *library, const char *name) {
    (void)library;
    return name[0] == 'f' ? first_plugin : second_plugin;
}
#else
static plugin *load(const char *library, const char *name) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    if (!handle) {
        fprintf(stderr, "%s\n", dlerror());
        return NULL;
    }
    return (plugin *)dlsym(handle, name);
}
#endif

int main(int argc, char **argv) {
    const char *names[2] = { "first_plugin", "second_plugin" };
    if (argc != 4) return 2;
    for (int i = 0; i < 2; i++) {
        char said[600];
        plugin *run = load(argv[2 + i], names[i]);
        if (!run || run(argv[1], said, sizeof said)) return 1;
        puts(said);
    }
    return 0;
}
