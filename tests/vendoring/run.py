#!/usr/bin/env python3
"""Copies of the library inside other projects. Two plugins with two versions in one program: each
runs its own and opens a file with it, whether it has the two-file form (hidden, static, with a
prefix) or the library by add_subdirectory, and whether the program loads or links them. A project
that adds this one gets the core in a few build steps, and no command, tests or installation.

    tests/vendoring/run.py [--fetch]     --fetch: by FetchContent, too
"""
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OTHER = "9.8.7"  # the version of the second copy
STEPS = 20  # of a build of the core
HEADER = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  '
MODEL = struct.pack("<Q", len(HEADER)) + HEADER + bytes(8)
PROJECT = """cmake_minimum_required(VERSION 3.22)
project(plugin C)
{add}
add_library(plugin MODULE {here}/plugin.c)
target_compile_definitions(plugin PRIVATE PLUGIN=${{PLUGIN}})
target_link_libraries(plugin PRIVATE safetensors::safetensors)
"""
ADD = {
    "add_subdirectory": "set(SFT_CORE_ONLY ON)\nadd_subdirectory({tree} safetensors)",
    "FetchContent": "set(SFT_CORE_ONLY ON)\ninclude(FetchContent)\n"
                    "FetchContent_Declare(safetensors URL file://{tree}.tar)\n"
                    "FetchContent_MakeAvailable(safetensors)",
}
passed = failed = 0


def check(ok, what, text=""):
    global passed, failed
    passed += bool(ok)
    failed += not ok
    if not ok:
        print(f"{what}\n{text[-3000:]}")
    return ok


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **more)
    return done.returncode, done.stdout


def version():
    with open(os.path.join(ROOT, "include", "safetensors.h"), encoding="utf-8") as file:
        return re.search(r'SFT_VERSION_STRING "([^"]+)"', file.read()).group(1)


def rename_version(header):
    with open(header, encoding="utf-8") as file:
        text = file.read()
    with open(header, "w", encoding="utf-8") as file:
        file.write(text.replace(f'SFT_VERSION_STRING "{version()}"',
                                f'SFT_VERSION_STRING "{OTHER}"'))


def compiler(*words):
    return run("cc", "-std=c11", "-O0", "-Wall", "-Wextra", "-Werror", *words)


def globals_of(path, *options):
    """Names that a library or an object offers to others."""
    text = run("nm", "-g", "--defined-only", *options, path)[1]
    return {line.split()[-1] for line in text.splitlines() if len(line.split()) == 3}


def try_pair(what, work, plugins):
    """Both plugins in one program, loaded and linked."""
    model = os.path.join(work, "model.safetensors")
    wanted = f"{version()} {version()} w\n{OTHER} {OTHER} w\n"
    source, program = os.path.join(HERE, "program.c"), os.path.join(work, "program")
    for how, words in (("loaded", ["-ldl"]), ("linked", ["-DLINKED", *plugins])):
        code, text = compiler(source, *words, "-o", program)
        if not check(not code, f"{what}, {how}: does not build", text):
            continue
        code, text = run(program, model, *plugins)
        check(not code and text == wanted, f"{what}, {how}: says", text)
    for path in plugins:
        left = {name for name in globals_of(path, "-D") if "sft" in name}
        check(not left, f"{what}: offers {sorted(left)[:5]}")


def test_bundle(work):
    copies = []
    for name in "first", "second":
        folder = os.path.join(work, name)
        code, text = run(sys.executable, os.path.join(ROOT, "tools", "bundle.py"), folder)
        if not check(not code, "bundle.py", text):
            return
        copies.append((name, folder))
    rename_version(os.path.join(work, "second", "safetensors.h"))
    plain, prefixed = [], []
    for what in "hidden", "static", "prefix":
        plugins, good = [], True
        for name, folder in copies:
            unit, plugin = os.path.join(folder, "safetensors.o"), os.path.join(folder, what + ".so")
            words = ["-fPIC", f"-DPLUGIN={name}_plugin", "-I", folder]
            prefix = [f"-DSFT_PREFIX={name}_"] if what == "prefix" else []
            if what == "static":
                words.append(f'-DUNIT="{folder}/safetensors.c"')
                unit = ""
            else:
                code, text = compiler("-fPIC", *prefix, "-c", os.path.join(folder, "safetensors.c"),
                                      "-o", unit)
                good &= check(not code, f"{what}: does not compile", text)
                (prefixed if prefix else plain).append(globals_of(unit))
            code, text = compiler("-shared", *words, *prefix, os.path.join(HERE, "plugin.c"),
                                  *filter(None, [unit]), "-o", plugin, "-pthread")
            good &= check(not code, f"{what}: does not link", text)
            plugins.append(plugin)
        if good:
            try_pair(f"two files, {what}", work, plugins)
    # What a unit defines for others: the functions of its header, by their prefixed names if asked.
    with open(os.path.join(work, "first", "safetensors.h"), encoding="utf-8") as file:
        header = re.sub(r"/\*.*?\*/|^[ \t]*#.*?$", " ", file.read(), flags=re.S | re.M)
    names = {re.search(r"\b(\w+)\s*\(", part).group(1)
             for part in re.findall(r"\bSFT_API\b([^;{]*)", header)}
    check(plain == [names, names], "two files: other functions than the header's",
          str(sorted(plain[0] ^ names)))
    for found, prefix in zip(prefixed, ("first_", "second_")):
        check(found == {prefix + name for name in names}, "two files: a name without the prefix",
              str(sorted(name for name in found if not name.startswith(prefix))))


def test_one_program(work):
    """Two versions in one executable, by their prefixes."""
    source = os.path.join(work, "both.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write('#include <stdio.h>\nconst char *first_sft_version(void);\n'
                   'const char *second_sft_version(void);\nint main(void) {\n'
                   '    printf("%s %s\\n", first_sft_version(), second_sft_version());\n}\n')
    units = [os.path.join(work, name, "safetensors.o") for name in ("first", "second")]
    program = os.path.join(work, "both")
    code, text = compiler(source, *units, "-o", program, "-pthread")
    if check(not code, "one program: does not link", text):
        code, text = run(program)
        check(text == f"{version()} {OTHER}\n", "one program: says", text)


def test_foreign_header(work):
    """Another library's safetensors.h is named, not misread."""
    folder = os.path.join(work, "foreign")
    os.mkdir(folder)
    with open(os.path.join(folder, "safetensors.h"), "w", encoding="utf-8") as file:
        file.write("#ifndef SAFETENSORS_H\n#define SAFETENSORS_H\nint foreign;\n#endif\n")
    source = os.path.join(folder, "a.c")
    include = os.path.join(ROOT, "include")
    for text, wanted in (
            ('#include "safetensors.h"\n#include "SET"\n', "another library's"),
            ('#include "safetensors.h"\n#include "OURS"\nint a = SFT_VERSION_MAJOR;\n', "")):
        with open(source, "w", encoding="utf-8") as file:
            file.write(text.replace("OURS", include + "/safetensors.h")
                       .replace("SET", "safetensors_stats.h"))
        # A quoted include looks beside its own file first: a copy of ours beside the foreign one.
        shutil.copy(os.path.join(include, "safetensors_stats.h"), folder)
        code, said = compiler("-fsyntax-only", source)
        check(bool(code) == bool(wanted) and wanted in said, "a foreign safetensors.h", said)


def copy_tree(work, name):
    tree = os.path.join(work, name)
    for part in "include", "src", "cmake":
        shutil.copytree(os.path.join(ROOT, part), os.path.join(tree, part))
    shutil.copy(os.path.join(ROOT, "CMakeLists.txt"), tree)
    if name == "other":
        rename_version(os.path.join(tree, "include", "safetensors.h"))
    run("tar", "-cf", tree + ".tar", "-C", work, name)
    return tree


def test_subproject(work, how):
    plugins = []
    for tree, name in (("this", "first"), ("other", "second")):
        folder = os.path.join(work, how, name)
        os.makedirs(folder)
        with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as file:
            file.write(PROJECT.format(add=ADD[how].format(tree=os.path.join(work, tree)),
                                      here=HERE))
        built = os.path.join(folder, "build")
        code, text = run("cmake", "-S", folder, "-B", built, "-G", "Ninja", "-DCMAKE_BUILD_TYPE="
                         "Release", f"-DPLUGIN={name}_plugin",
                         env=dict(os.environ, CMAKE_C_COMPILER_LAUNCHER=""))
        if not check(not code, f"{how}: does not configure", text):
            return
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        code, text = run("cmake", "--build", built)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if not check(not code, f"{how}: does not build", text):
            return
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        steps = int(re.findall(r"^\[\d+/(\d+)\]", text, re.M)[-1])
        print(f"{how}: {steps} build steps, {seconds:.1f} s of processor time")
        check(steps <= STEPS, f"{how}: {steps} build steps, {STEPS} at most")
        made = {name for _, _, names in os.walk(built) for name in names}
        check(not made & {"safetensors", "made", "libsafetensors.so", "test_error"},
              f"{how}: builds {sorted(made)}")
        code, text = run("cmake", "--install", built, "--prefix", os.path.join(folder, "installed"))
        check(not code and not os.path.exists(os.path.join(folder, "installed", "include")),
              f"{how}: installs", text)
        plugins.append(os.path.join(built, "libplugin.so"))
    try_pair(how, work, plugins)


def test_prefix(work):
    """The shared library of a build with a prefix."""
    built = os.path.join(work, "prefixed")
    code, text = run("cmake", "-S", os.path.join(work, "this"), "-B", built, "-G", "Ninja",
                     "-DSFT_CORE_ONLY=ON", "-DSFT_TESTS=OFF", "-DSFT_PREFIX=mine_")
    if not code:
        code, text = run("cmake", "--build", built)
    if not check(not code, "a prefix: does not build", text):
        return
    found = globals_of(os.path.join(built, "libsafetensors.so"), "-D") - {"SAFETENSORS_0"}
    wrong = {name for name in found if not name.startswith("mine_sft_")}
    check(not wrong and "mine_sft_open@@SAFETENSORS_0" in found, "a prefix: exports", str(wrong))
    with open(os.path.join(built, "safetensors.pc"), encoding="utf-8") as file:
        check("-DSFT_PREFIX=mine_" in file.read(), "a prefix: safetensors.pc does not have it")


def main():
    with tempfile.TemporaryDirectory() as work:
        with open(os.path.join(work, "model.safetensors"), "wb") as file:
            file.write(MODEL)
        test_bundle(work)
        test_one_program(work)
        test_foreign_header(work)
        for name in "this", "other":
            copy_tree(work, name)
        for how in ADD if "--fetch" in sys.argv else ("add_subdirectory",):
            test_subproject(work, how)
        test_prefix(work)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
