#include "os/os.h"
#include "support/cli.h"

int main(int argc, char **argv) {
    int status = sft_cli_main(argc, argv);
    if (status > 128) os_raise(status - 128);
    return status;
}
