#include "os/os.h"
#include "support/cli.h"

int main(int argc, char **argv) {
    (void)os_program_begin(&argc, &argv); /* without memory for its words it has those it was given */
    int status = sft_cli_main(argc, argv);
    if (status > 128) os_raise(status - 128);
    return status;
}
