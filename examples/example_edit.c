/* Change one key of a file's metadata where it stands, or remove it; the tensors' bytes are
 * not touched, whatever the size of the file.
 *     example_edit FILE KEY [VALUE] */
#include <safetensors.h>
#include <safetensors_edit.h>
#include <stdio.h>

static sft_code change(const char *path, const char *key, const char *value,
                       sft_edit_report *report, sft_error *err) {
    sft_edit *edit;
    sft_code code = sft_edit_open(path, NULL, &edit, err);
    if (code != SFT_OK) return code;
    if (value)
        code = sft_edit_set(edit, sft_span_cstr(key), sft_span_cstr(value), err);
    else
        code = sft_edit_remove(edit, sft_span_cstr(key), err);
    if (code == SFT_OK) code = sft_edit_apply(edit, NULL, report, err);
    sft_edit_close(edit);
    return code;
}

int main(int argc, char **argv) {
    sft_error err = SFT_ERROR_INIT;
    sft_edit_report report;
    if (argc < 3 || argc > 4) return 2;
    if (change(argv[1], argv[2], argc > 3 ? argv[3] : NULL, &report, &err) != SFT_OK) {
        char text[1024];
        sft_error_text(&err, argv[1], text, sizeof text);
        fprintf(stderr, "%s\n", text);
        return 1;
    }
    printf("%s, header %llu to %llu bytes, %llu of them spare\n",
           sft_edit_method_name(report.method), (unsigned long long)report.header_before,
           (unsigned long long)report.header_after, (unsigned long long)report.spare);
    return 0;
}
