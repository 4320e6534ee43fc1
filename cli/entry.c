/* main() of the command. */
#include "os/os.h"
#include "support/cli.h"

/* For mingw's C library: no patterns are expanded before main, which would do it in quotes, too. */
extern int _CRT_glob;
int _CRT_glob = 0;

int main(int argc, char **argv) {
    /* Without memory for its words the program has those that it was given. */
    (void)sfti_os_program_begin(&argc, &argv);
    int status = sft_cli_main(argc, argv);
    if (status > 128) sfti_os_raise(status - 128);
    return status;
}
