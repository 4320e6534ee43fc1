#!/usr/bin/env python3
"""Measures how finely the code is cut, and what a call goes through.

    tools/stairs.py                 lines of each part; functions; those with one caller by folder
    tools/stairs.py --list FOLDER   the short static functions of a folder that have one caller
    tools/stairs.py --calls         functions entered by whole tasks, built at -O0 in build/stairs
    tools/stairs.py --calls --names the same, and each function by folder, in the order in which
                                    they were entered first, with its depth then

A short one-caller function is static, has under 8 lines between its braces, and is called at one
place; what stands in a table has no caller. A task's functions are counted by
-finstrument-functions: each once, an inline one too, however many sources have a copy of it; and
how deep they were nested.
"""
import argparse
import collections
import http.server
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                "tests"))
import layers  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PARTS = {"src": "src", "cli": "cli", "bindings": "bindings", "page": "page", "include": "include"}
KINDS = (".c", ".h", ".py", ".pyi", ".js", ".css")
SHORT = 8
HEAD = re.compile(r"^(?!typedef|return|else|#)((?:[A-Za-z_][\w \t*]*?[ *])?)(\w+)\(", re.M)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def sources(*folders):
    names = subprocess.run(["git", "-C", ROOT, "ls-files", *folders], capture_output=True, text=True,
                           check=True).stdout.split()
    return [n for n in names if n.endswith(KINDS) and os.path.exists(os.path.join(ROOT, n))]


def functions(text):
    """(name, whether static, first line, lines) of each function defined in a bare text."""
    for match in HEAD.finditer(text):
        depth, at = 0, match.end() - 1
        while at < len(text):
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
            if not depth:
                break
        body = re.compile(r"\s*\{").match(text, at)
        end = body and text.find("\n}", at)
        if end and end > 0 and match.group(1).strip():
            first = text.count("\n", 0, match.start()) + 1
            yield (match.group(2), "static" in match.group(1), first,
                   text.count("\n", match.start(), end + 1) + 1)


def short_ones(path):
    text = layers.bare(read(path))
    for name, static, line, lines in functions(text):
        calls = len(re.findall(rf"\b{name}\(", text)) - 1
        if static and lines - 2 < SHORT and calls == len(re.findall(rf"\b{name}\b", text)) - 1 == 1:
            yield path, line, name, lines


def report_static(listed):
    total = 0
    for part, folder in PARTS.items():
        lines = sum(read(p).count("\n") for p in sources(folder))
        total += lines
        print(f"{lines:8,} lines  {part}")
    print(f"{total:8,} lines together\n")
    sizes, short, folders = [], collections.Counter(), collections.Counter()
    for path in sources("src", "cli", "bindings"):
        if path.endswith(".c"):
            folder = os.path.dirname(path)
            found = [lines for *_, lines in functions(layers.bare(read(path)))]
            sizes += found
            folders[folder] += len(found)
            for _, line, name, lines in short_ones(path):
                short[folder] += 1
                if listed and path.startswith(listed):
                    print(f"{path}:{line}: {name}, {lines} lines")
    for folder in sorted(folders) if not listed else []:
        print(f"{short[folder]:6} of {folders[folder]:4} functions  {folder}")
    print(f"{len(sizes):,} functions, median {statistics.median(sizes):g} lines; "
          f"{sum(short.values()):,} static ones under {SHORT} lines with one caller")


COUNTER = r"""
#include <stdio.h>
#include <stdlib.h>
#define SEEN 65536
#define QUIET __attribute__((no_instrument_function))
static void *seen[SEEN], *order[SEEN];
static int depths[SEEN], count, deepest, started;
static _Thread_local int depth;
QUIET static void told(void) {
    const char *path = getenv("STAIRS_OUT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    fprintf(file, "%d %d\n", count, deepest);
    for (int i = 0; i < count; i++) fprintf(file, "%p %d\n", order[i], depths[i]);
    fclose(file);
}
QUIET void stairs_begin(void) { started = 1; depth = 0; atexit(told); }
QUIET void __cyg_profile_func_enter(void *at, void *from) {
    (void)from;
    if (!started) { if (getenv("STAIRS_ALL")) stairs_begin(); else return; }
    if (started == 2) return;
    if (++depth > deepest) deepest = depth;
    size_t slot = ((size_t)at >> 2) % SEEN;
    while (seen[slot] && seen[slot] != at) slot = (slot + 1) % SEEN;
    if (seen[slot]) return;
    order[count] = seen[slot] = at;
    depths[count++] = depth;
}
QUIET void __cyg_profile_func_exit(void *at, void *from) { (void)at; (void)from; depth--; }
QUIET void stairs_end(void) { started = 2; }
"""
COMMITTER = r"""
#include <safetensors_dataset.h>
void stairs_begin(void); void stairs_end(void);
#define TRY(call) if (call) return 1
static void schema_free(struct ArrowSchema *schema) { schema->release = NULL; }
static void array_free(struct ArrowArray *array) { array->release = NULL; }
int main(int argc, char **argv) {
    const int32_t numbers[] = { 1, 2, 3, 4 };
    const void *numbers_at[] = { NULL, numbers }, *none[] = { NULL };
    struct ArrowSchema field = { .format = "i", .name = "x", .release = schema_free };
    struct ArrowSchema *fields[] = { &field };
    struct ArrowSchema schema = { .format = "+s", .name = "", .n_children = 1, .children = fields,
                                  .release = schema_free };
    struct ArrowArray column = { .length = 4, .n_buffers = 2, .buffers = numbers_at,
                                 .release = array_free };
    struct ArrowArray *columns[] = { &column };
    struct ArrowArray batch = { .length = 4, .n_buffers = 1, .buffers = none, .n_children = 1,
                                .children = columns, .release = array_free };
    sft_pair pairs[] = { { sft_span_cstr("batch_size"), sft_span_cstr("4") } };
    sft_dataset_options *options;
    sft_storage storage;
    sft_commit *commit;
    sft_shard_writer *writer;
    sft_buffer receipts = { 0 };
    (void)argc;
    TRY(sft_dataset_options_new(pairs, 1, NULL, &options, NULL));
    TRY(sft_storage_local(argv[1], false, NULL, &storage, NULL));
    TRY(sft_commit_open(options, &storage, &schema, NULL, &commit, NULL));
    TRY(sft_shard_writer_begin(options, &storage, sft_commit_job(commit), 0, &schema, NULL,
                               &writer, NULL));
    TRY(sft_shard_writer_append(writer, &batch, NULL, NULL));
    TRY(sft_shard_writer_finish(writer, &receipts, NULL, NULL));
    sft_span text = { receipts.data, receipts.len };
    stairs_begin();
    TRY(sft_commit_add(commit, text, NULL));
    TRY(sft_commit_prepare(commit, NULL, NULL));
    TRY(sft_commit_publish(commit, NULL, NULL, NULL, NULL, NULL));
    stairs_end();
    sft_commit_close(commit);
    return 0;
}
"""
OPENER = r"""
#include <safetensors.h>
void stairs_begin(void); void stairs_end(void);
int main(int argc, char **argv) {
    sft_file *file;
    (void)argc;
    stairs_begin();
    sft_code code = sft_open(argv[1], NULL, &file, NULL);
    stairs_end();
    sft_close(file);
    return code != SFT_OK;
}
"""

RANGER = r"""
#include <safetensors_io.h>
#include <safetensors_remote.h>
#include <stdio.h>
void stairs_begin(void); void stairs_end(void);
int main(int argc, char **argv) {
    static char bytes[1 << 20];
    sft_remote *remote;
    sft_source source;
    const char *name;
    sft_error err = SFT_ERROR_INIT;
    size_t got = 0;
    sft_code code = argc < 2 ? SFT_BAD_ARGUMENT : sft_remote_open(NULL, &remote, &err);
    if (!code) code = sft_remote_name(remote, argv[1], &name, &err);
    const sft_files *files = code ? NULL : sft_remote_files(remote);
    if (files) code = files->vtable->open(files->ctx, name, NULL, &source, &err);
    if (!code) { /* what follows the file's beginning, which was fetched when it was opened */
        stairs_begin();
        code = sft_source_read(&source, source.size - sizeof bytes, bytes, sizeof bytes, &got, &err);
        stairs_end();
        sft_source_close(&source);
    }
    if (code) fprintf(stderr, "%s\n", err.message);
    if (files) sft_remote_close(remote);
    return code || got != sizeof bytes;
}
"""


class Ranges(http.server.BaseHTTPRequestHandler):
    """Answers requests for ranges of one file of zeros."""
    protocol_version = "HTTP/1.1"
    BYTES = 4 << 20

    def do_GET(self):
        first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups())
        last = min(last, self.BYTES - 1)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{self.BYTES}")
        self.send_header("Content-Length", str(last - first + 1))
        self.send_header("ETag", '"1"')
        self.end_headers()
        self.wfile.write(bytes(last - first + 1))

    def log_message(self, *_):
        pass


def run(*words, **more):
    subprocess.run(words, check=True, **more)


def entered(program, words, whole, folder):
    """What a run enters: {function: (file, line, depth)} in order, and how deep it went."""
    out = os.path.join(folder, "out")
    env = dict(os.environ, STAIRS_OUT=out, **({"STAIRS_ALL": "1"} if whole else {}))
    subprocess.run([program, *words], env=env, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    with open(out) as file:
        deepest = int(file.readline().split()[1])
        places = [line.split() for line in file]
    found = subprocess.run(["addr2line", "-f", "-e", program],
                           input="\n".join(place for place, _ in places),
                           capture_output=True, text=True, check=True).stdout.split("\n")
    functions = {}
    for name, at, (_, depth) in zip(found[0::2], found[1::2], places):
        path, line = at.split(" ")[0].rsplit(":", 1)
        functions.setdefault(name, (os.path.relpath(path, ROOT), line, int(depth)))
    return functions, deepest


def print_names(functions):
    folders = {}
    for name, (path, line, depth) in functions.items():
        folders.setdefault(os.path.dirname(path), []).append((depth, name, path, line))
    for folder, rows in folders.items():
        print(f"  {folder}: {len(rows)}")
        for depth, name, path, line in rows:
            print(f"    {depth:2}  {name}  {os.path.basename(path)}:{line}")


def write_model(path, metadata, shapes):
    """A model of zeros in F16."""
    table, at = {"__metadata__": metadata}, 0
    for name, shape in shapes.items():
        end = at + 2 * math.prod(shape)
        table[name] = {"dtype": "F16", "shape": shape, "data_offsets": [at, end]}
        at = end
    header = json.dumps(table, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header + bytes(at))


def report_calls(names):
    build = os.path.join(ROOT, "build", "stairs")
    os.makedirs(build, exist_ok=True)
    for name, text in (("counter.c", COUNTER), ("opener.c", OPENER), ("ranger.c", RANGER),
                       ("committer.c", COMMITTER)):
        with open(os.path.join(build, name), "w") as file:
            file.write(text)
    run("cc", "-c", "counter.c", "-o", "counter.o", cwd=build)
    flags = "-O0 -g -finstrument-functions -no-pie"
    run("cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-Wno-dev",
        f"-DCMAKE_C_FLAGS={flags} -fno-pie", f"-DCMAKE_EXE_LINKER_FLAGS=-no-pie {build}/counter.o",
        "-DBUILD_SHARED_LIBS=OFF", stdout=subprocess.DEVNULL)
    run("cmake", "--build", build, "--target", "safetensors_command", stdout=subprocess.DEVNULL)
    library = os.path.join(build, "libsafetensors.a")
    with open(os.path.join(build, "safetensors.pc")) as file:
        needed = re.search(r"^Libs.private:(.*)$", file.read(), re.M)[1].split()
    for name in "opener", "ranger", "committer":
        run("cc", *flags.split(), "-I", os.path.join(ROOT, "include"), f"{name}.c", "counter.o",
            library, "-lm", *needed, "-o", name, cwd=build)
    command, opener, ranger, committer = (
        os.path.join(build, n) for n in ("safetensors", "opener", "ranger", "committer"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ranges)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        small, lora = (os.path.join(folder, n) for n in ("small.safetensors", "lora.safetensors"))
        module = "lora_unet_double_blocks_0_img_attn_qkv"
        write_model(small, {"a": "b"}, {"x.weight": [2, 2]})
        write_model(lora, {"a": "b"}, {module + ".lora_down.weight": [4, 3072],
                                       module + ".lora_up.weight": [9216, 4],
                                       module + ".alpha": []})
        rows = [("sft_open of a small file", opener, [small], False),
                ("meta set in place", command, ["meta", "set", small, "a", "c"], True),
                ("info of one LoRA", command, ["info", lora], True),
                ("a range of an open URL", ranger,
                 [f"http://127.0.0.1:{server.server_port}/file"], False),
                ("a dataset's commit", committer, [os.path.join(folder, "dataset")], False)]
        for what, program, words, whole in rows:
            functions, deepest = entered(program, words, whole, folder)
            files = {path for path, *_ in functions.values()}
            print("%-28s %4d functions in %3d files, %2d deep" % (
                what, len(functions), len(files), deepest))
            if names:
                print_names(functions)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", metavar="FOLDER")
    parser.add_argument("--calls", action="store_true")
    parser.add_argument("--names", action="store_true")
    args = parser.parse_args()
    if args.calls:
        report_calls(args.names)
    else:
        report_static(args.list)
    return 0


if __name__ == "__main__":
    sys.exit(main())
