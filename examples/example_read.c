/* All tensors of a file to a device, here a block of memory, through two small slots. While one
 * slot is copied from, threads fill the other.
 *     example_read FILE */
#include <safetensors_read.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Alignas(4096) char slots[2][65536];

/* A real device would copy in the background and give the slot back later. */
static sft_code load(sft_reader *reader, char *device, size_t *copies, sft_error *err) {
    sft_filled filled;
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < 2; i++) code = sft_reader_add(reader, slots[i], err);
    while (!code) {
        code = sft_reader_next(reader, -1, &filled, err);
        if (code || filled.slot == SFT_SLOT_END) break;
        for (size_t i = 0; i < filled.copy_count; i++) {
            const sft_read_copy *c = &filled.copies[i];
            memcpy(device + c->at, (char *)filled.memory + c->from, c->len);
        }
        *copies += filled.copy_count;
        sft_reader_give_back(reader, filled.slot);
    }
    return code;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    sft_file *file;
    sft_error err = SFT_ERROR_INIT;
    if (sft_open(argv[1], NULL, &file, &err)) return fprintf(stderr, "%s\n", err.message), 1;
    size_t count = sft_file_tensor_count(file), copies = 0;
    sft_read_part *parts = calloc(count + 1, sizeof *parts);
    sft_read_block block = { NULL, 0 };
    for (size_t i = 0; parts && i < count; i++) { /* each tensor at a multiple of 64 */
        const sft_tensor *tensor = sft_file_tensor_at(file, i);
        parts[i] = (sft_read_part){ file, tensor, NULL, 0, block.bytes };
        block.bytes = (block.bytes + tensor->end - tensor->begin + 63) & ~(uint64_t)63;
    }
    sft_read_plan_options options = SFT_READ_PLAN_OPTIONS_INIT;
    options.slot_bytes = sizeof slots[0];
    sft_read_plan *plan = NULL;
    sft_reader *reader = NULL;
    char *device = calloc(1, (size_t)block.bytes + 1);
    sft_code code = parts && device ? SFT_OK : SFT_OUT_OF_MEMORY;
    if (!code) code = sft_read_plan_new(parts, count, &block, 1, &options, &plan, &err);
    if (!code) code = sft_reader_start(plan, 0, &reader, &err);
    if (!code) code = load(reader, device, &copies, &err);
    sft_reader_close(reader);
    for (size_t i = 0; !code && i < count; i++) {
        uint64_t end = i + 1 < count ? parts[i + 1].at : block.bytes, sum = 0;
        for (uint64_t at = parts[i].at; at < end; at++) sum += (unsigned char)device[at];
        printf("tensor %zu adds up to %llu\n", i, (unsigned long long)sum);
    }
    if (!code) printf("%zu tensors, %zu copies\n", count, copies);
    else fprintf(stderr, "%s\n", err.message);
    return free(parts), free(device), sft_read_plan_free(plan), sft_close(file), code != SFT_OK;
}
