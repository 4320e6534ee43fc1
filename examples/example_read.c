/* All tensors of a file to a device, here a block of memory, through two small slots. While one
 * slot is copied from, threads fill the other.
 *     example_read FILE */
#include <safetensors_read.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Alignas(4096) char slots[2][65536];

/* A real device would copy in the background and give the slot back later. */
static sft_code copy_slots(sft_reader *reader, char *device, size_t *copies, sft_error *err) {
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

static sft_code load(const sft_read_part *parts, size_t count, uint64_t bytes, char *device,
                     size_t *copies, sft_error *err) {
    const sft_read_block block = { NULL, bytes };
    sft_read_plan_options options = SFT_READ_PLAN_OPTIONS_INIT;
    sft_read_plan *plan;
    sft_reader *reader;
    options.slot_bytes = sizeof slots[0];
    sft_code code = sft_read_plan_new(parts, count, &block, 1, &options, &plan, err);
    if (code) return code;
    code = sft_reader_start(plan, 0, &reader, err);
    if (!code) code = copy_slots(reader, device, copies, err);
    sft_reader_close(reader);
    sft_read_plan_free(plan);
    return code;
}

static sft_code load_and_tell(const sft_file *file, sft_error *err) {
    size_t count = sft_file_tensor_count(file), copies = 0;
    uint64_t end = 0;
    sft_read_part *parts = calloc(count + 1, sizeof *parts);
    for (size_t i = 0; parts && i < count; i++) { /* each tensor at a multiple of 64 */
        const sft_tensor *tensor = sft_file_tensor_at(file, i);
        parts[i] = (sft_read_part){ file, tensor, NULL, 0, end };
        end = (end + sft_tensor_bytes(tensor) + 63) & ~(uint64_t)63;
    }
    char *device = end < SIZE_MAX ? calloc(1, (size_t)end + 1) : NULL;
    sft_code code = SFT_OK;
    if (!parts || !device)
        code = sft_error_set(err, SFT_OUT_OF_MEMORY, 0, "no memory for the tensors");
    else
        code = load(parts, count, end, device, &copies, err);
    for (size_t i = 0; !code && i < count; i++) {
        uint64_t sum = 0, bytes = sft_tensor_bytes(parts[i].tensor);
        for (uint64_t at = 0; at < bytes; at++) sum += (unsigned char)device[parts[i].at + at];
        printf("tensor %zu adds up to %llu\n", i, (unsigned long long)sum);
    }
    if (!code) printf("%zu tensors, %zu copies\n", count, copies);
    free(device);
    free(parts);
    return code;
}

int main(int argc, char **argv) {
    sft_file *file;
    sft_error err = SFT_ERROR_INIT;
    if (argc != 2) return 2;
    sft_code code = sft_open(argv[1], NULL, &file, &err);
    if (!code) code = load_and_tell(file, &err);
    sft_close(file);
    if (code) {
        char text[1024];
        sft_error_text(&err, argv[1], text, sizeof text);
        fprintf(stderr, "%s\n", text);
    }
    return code != SFT_OK;
}
