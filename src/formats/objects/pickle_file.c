/* Files that are one pickle of arrays. Tests: test_import_pickle.c. */
#include "formats/objects/rebuild.h"

#include <string.h>

/* A pickle of protocol 2 or newer, cut or whole; or of a dict, list, tuple or array in protocol 0
 * or 1, that ends with its STOP where the file does. */
bool sfti_is_pickle(sfti_import *im, const uint8_t *head, size_t len) {
    static const char *const old[] = { "(dp", "(lp", "}q", "]q", "(dq", "(lq", "ccollections\n",
                                       "cnumpy.", "(cnumpy." };
    static const char first[] = "}](c\x95)N\x8c\x8dXU";
    uint64_t size = im->input->size;
    uint8_t last;
    bool is = false;
    if (len >= 4 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5)
        return memchr(first, head[2], sizeof first - 1) != NULL;
    for (size_t i = 0; i < sizeof old / sizeof *old; i++) {
        size_t count = strlen(old[i]);
        is = is || (len >= 4 && len >= count && memcmp(head, old[i], count) == 0);
    }
    return is && !sfti_import_read(im, im->input, size - 1, &last, 1) && last == '.';
}

/* Texts of protocol 0 are lines of any length, with escapes: such a file is read as a whole. */
#define TEXT_PICKLE_BYTES ((uint64_t)256 << 20)

sft_code sfti_read_pickle(sfti_import *im) {
    const sft_source *source = im->input;
    sfti_pickle_input input = { source, 0, source->size, NULL };
    sfti_rebuild rebuild = { .im = im, .source = source };
    sfti_pickle pickle;
    sfti_arena values = { .alloc = im->arena.alloc };
    uint8_t *bytes;
    sft_code code = sfti_import_load(im, source, 0, 1, &bytes);
    if (!code && bytes[0] != 0x80 && source->size <= TEXT_PICKLE_BYTES) {
        code = sfti_import_load(im, source, 0, source->size, &bytes);
        input.bytes = bytes;
    }
    if (!code) code = sfti_pickle_read(&input, &values, &pickle, im->err);
    if (code) goto done;
    bool has_arrays = false;
    for (size_t i = 0; i < pickle.global_count && !has_arrays; i++) {
        uint8_t meaning = pickle.globals[i]->meaning;
        has_arrays = meaning == SFTI_MEANS_ARRAY || meaning == SFTI_MEANS_BUFFER ||
                     (meaning >= SFTI_MEANS_TENSOR && meaning <= SFTI_MEANS_NO_BYTES);
    }
    if (!has_arrays) {
        code = sfti_fail_byte(im->err, SFT_FOREIGN_KIND, 0,
                              "expected a pickle of arrays or tensors, found one without");
        goto done;
    }
    if (pickle.end != source->size)
        code = sfti_import_leave(im, SFT_IMPORT_LEFT_RECORD, (sft_span){ "", 0 }, 1,
                                 source->size - pickle.end, "bytes after the pickle");
    if (!code) code = sfti_rebuild_all(&rebuild, &pickle);
    if (!code) code = sfti_paddle_join(im, pickle.root);
    if (!code) code = sfti_roots_import(im, pickle.root, &rebuild.states);
done:
    sfti_arena_free(&values);
    return code;
}
