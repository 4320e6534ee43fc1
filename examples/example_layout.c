/* Turn a model in one file into a folder as diffusers has it: what it is made of, what is lost on
 * the way, and the files.
 *     example_layout MODEL FOLDER [ARCHITECTURE] */
#include <safetensors.h>
#include <safetensors_layout.h>
#include <safetensors_set.h>
#include <stdio.h>

static int width(sft_span text) { return (int)text.len; }

static void tell(const sft_layout_conversion *model) {
    const sft_layout_component *part;
    const sft_layout_file *file;
    sft_span note;
    bool lost = false;
    for (size_t i = 0; (part = sft_layout_conversion_component_at(model, i)) != NULL; i++)
        printf("%.*s: %zu tensors, %zu before\n", width(part->name), part->name.data,
               part->tensors, part->tensors_before);
    for (size_t i = 0; (file = sft_layout_conversion_file_at(model, i)) != NULL; i++)
        printf("%s: %llu bytes\n", file->path, (unsigned long long)file->bytes);
    for (size_t i = 0; (note = sft_layout_conversion_note_at(model, i, &lost)).len > 0; i++)
        printf("%s: %.*s\n", lost ? "lost" : "needed", width(note), note.data);
    for (size_t i = 0; (note = sft_layout_conversion_unmatched_at(model, i, NULL)).len > 0; i++)
        printf("not known: %.*s\n", width(note), note.data);
}

int main(int argc, char **argv) {
    char text[1024];
    sft_error err = SFT_ERROR_INIT;
    sft_layout_options options = SFT_LAYOUT_OPTIONS_INIT;
    sft_layout_conversion *model = NULL;
    sft_set *set = NULL;
    if (argc != 3 && argc != 4) return 2;
    options.to = SFT_LAYOUT_DIFFUSERS;
    options.architecture = argc > 3 ? argv[3] : NULL;
    sft_code code = sft_set_open(argv[1], NULL, &set, &err);
    if (code == SFT_OK) {
        const sft_set *sets[] = { set };
        code = sft_layout_conversion_new(sets, 1, &options, &model, NULL, &err);
    }
    if (code == SFT_OK) {
        tell(model);
        code = sft_layout_conversion_save_folder(model, argv[2], NULL, NULL, &err);
    }
    sft_layout_conversion_free(model);
    sft_set_close(set);
    if (code == SFT_OK) return 0;
    sft_error_text(&err, argv[1], text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return 1;
}
