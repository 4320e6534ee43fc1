#!/usr/bin/env python3
"""Install to a prefix, move the prefix, and build a small program against it by
pkg-config (shared and static), by find_package, and as a subproject; run each."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
SOURCE = os.path.join(HERE, "consumer.c")
sys.path.insert(0, os.path.join(ROOT, "tests", "examples"))
import ports

results = []


def check(ok, what, text=""):
    results.append(bool(ok))
    if not ok:
        print(f"failed: {what}\n{text}")
    return ok


def sh(script, env=None):
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False,
                          env=dict(os.environ, **(env or {})))
    return done.returncode == 0, done.stdout


def version():
    with open(os.path.join(ROOT, "include", "safetensors.h"), encoding="utf-8") as file:
        return re.search(r'SFT_VERSION_STRING "(.+)"', file.read()).group(1)


def soversion():
    major, minor = version().split(".")[:2]
    return major if major != "0" else f"0.{minor}"


def try_program(what, script, env=None):
    ok, text = sh(script, env)
    check(ok and text.splitlines()[-1:] == [f"{version()} 1 2"], what, text)


def installed(prefix):
    return sorted(os.path.relpath(p, prefix) for p in
                  glob.glob(prefix + "/**", recursive=True) if not os.path.isdir(p))


def check_files(prefix):
    files = installed(prefix)
    for path in sorted(glob.glob(os.path.join(ROOT, "include", "safetensors*"))):
        check("include/" + os.path.basename(path) in files, f"{os.path.basename(path)} installed")
    for path in ("share/man/man3/sft_open.3", "share/man/man3/safetensors_files.3"):
        check(path in files, f"{path} installed")
    for path in glob.glob(os.path.join(ROOT, "examples", "**", "*.c"), recursive=True):
        check("share/doc/safetensors/" + os.path.relpath(path, ROOT) in files,
              f"{os.path.basename(path)} installed")
    for end in ("libsafetensors.a", "libsafetensors.so", f"libsafetensors.so.{soversion()}", "safetensors.pc",
                "safetensorsConfig.cmake"):
        check(any(f.endswith("/" + end) for f in files), f"{end} installed", "\n".join(files))
    for path in files:
        if path.endswith((".pc", ".cmake")):
            with open(os.path.join(prefix, path), encoding="utf-8") as file:
                check(ROOT not in file.read(), f"{path} names the build's folder")
    if os.path.exists(os.path.join(BUILD, "safetensors")):
        ok, text = sh(f"'{prefix}/bin/safetensors' --version")
        check(ok and version() in text, "installed command --version", text)
        ok, text = sh(f"'{prefix}/bin/safetensors' help -a")
        for name in re.findall(r"^  ([a-z-]+)  +[^ ]", text, re.M):
            check(name == "help" or name.startswith("--")
                  or f"share/man/man1/safetensors-{name}.1" in files, f"man page of {name}")
        check("share/bash-completion/completions/safetensors" in files, "completion installed")
        named = set(re.findall(r"docs/([a-z_-]+\.md)", everything_said(prefix, text)))
        check(len(named) > 1, "help names documents")
        for name in named:
            check(any(f.endswith(f"/{name}") and "share/doc/" in f for f in files),
                  f"docs/{name}, which help names, installed")


LINK = re.compile(r"\]\([^)]*\)")


def words_of(path):
    """A document without its links."""
    with open(path, encoding="utf-8") as file:
        return LINK.sub("", file.read()).replace("[", "")


def check_links(prefix):
    """Documents are installed as they are but for links; none leads to what is not installed."""
    pages = glob.glob(prefix + "/share/doc/**/*.md", recursive=True)
    check(len(pages) > 20, "documents installed", pages)
    for path in pages:
        folder = "examples" if os.path.basename(os.path.dirname(path)) == "examples" else "docs"
        source = os.path.join(ROOT, folder, os.path.basename(path))
        check(words_of(path) == words_of(source), f"words of {os.path.basename(path)}, installed")
        with open(path, encoding="utf-8") as file:
            links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)\s]*)?\)", file.read())
        gone = [link for link in links
                if not os.path.exists(os.path.join(os.path.dirname(path), link))]
        check(not gone, f"links of {os.path.basename(path)}, installed", gone)


def check_ports(work, env):
    """The loaders of examples/ports/, built against what is installed."""
    for source in sorted(glob.glob(os.path.join(ROOT, "examples", "ports", "*.c"))):
        name = os.path.basename(source)[:-2]
        ok, text = sh(f"cd '{work}'; flags=$(pkg-config --cflags --libs safetensors); "
                      f"eval cc -std=c11 -Wall -Wextra -Werror -o {name} '{source}' \"$flags\"", env)
        check(ok, f"{name} builds", text)

    def program(name, *args, status=0, errors=False):
        done = subprocess.run([os.path.join(work, name), *args], check=False, text=True,
                              env=dict(os.environ, **env), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        check(done.returncode == status, f"{name}: exit {done.returncode}", done.stderr)
        return done.stderr if errors else done.stdout
    ports.run(program, check, work)


def everything_said(prefix, overview):
    """The help of all commands."""
    names = re.findall(r"^  ([a-z-]+)  +[^ ]", overview, re.M)
    return "\n".join(sh(f"'{prefix}/bin/safetensors' help {name}")[1] for name in names
                     if not name.startswith("-"))


def check_subproject(work):
    """Part of another build, by FetchContent: as the static library alone, which then has both
    names and is not installed unless that is asked for; then it is found under both. zlib by
    find_package, as package managers have it."""
    sub, prefix = os.path.join(work, "sub"), os.path.join(work, "static alone")
    os.mkdir(sub)
    with open(os.path.join(sub, "CMakeLists.txt"), "w", encoding="utf-8") as file:
        file.write("cmake_minimum_required(VERSION 3.22)\nproject(sub C)\n"
                   "set(SFT_ZLIB_PACKAGE ON)\n"
                   "include(FetchContent)\n"
                   f"FetchContent_Declare(safetensors SOURCE_DIR {ROOT})\n"
                   "FetchContent_MakeAvailable(safetensors)\n"
                   f"add_executable(consumer {SOURCE})\n"
                   "target_link_libraries(consumer safetensors::safetensors)\n")
    try_program("FetchContent", f"cmake -S '{sub}' -B '{sub}/build' -G Ninja -DSFT_UNITS=ON && "
                f"cmake --build '{sub}/build' --target consumer && '{sub}/build/consumer'")
    ok, text = sh(f"cmake --install '{sub}/build' --prefix '{prefix}'")
    check(ok and not os.path.exists(prefix), "a part of another build installs nothing", text)
    ok, text = sh(f"cmake -DSFT_INSTALL=ON '{sub}/build' && cmake --build '{sub}/build' && "
                  f"cmake --install '{sub}/build' --prefix '{prefix}'")
    libraries = [name for name in installed(prefix) if "libsafetensors" in name]
    check(ok and [os.path.basename(name) for name in libraries] == ["libsafetensors.a"],
          "SFT_INSTALL=ON installs the static library alone", text + str(libraries))
    build = (f"cmake -S '{HERE}' -B '{work}/alone' -G Ninja -DCMAKE_PREFIX_PATH='{prefix}' && "
             f"cmake --build '{work}/alone' && ")
    for kind in ("shared", "static"):
        try_program(f"find_package of the static library alone, by its {kind} name",
                    build + f"'{work}/alone/consumer_{kind}'")
    pc = glob.glob(prefix + "/lib*/**/safetensors.pc", recursive=True)
    ok, text = sh("pkg-config --print-requires-private safetensors",
                  {"PKG_CONFIG_PATH": os.path.dirname(pc[0]) if pc else ""})
    check(ok and "zlib" in text.split(), "safetensors.pc requires zlib of its package", text)


def main():
    with tempfile.TemporaryDirectory(prefix="sft-install-") as work:
        first, prefix = os.path.join(work, "first"), os.path.join(work, "moved here")
        ok, text = sh(f"cmake --install '{BUILD}' --prefix '{first}'")
        if not check(ok, "cmake --install", text):
            return finish()
        os.rename(first, prefix)
        check_files(prefix)
        check_links(prefix)
        libdir = os.path.dirname(glob.glob(prefix + "/lib*/**/libsafetensors.a", recursive=True)[0])
        env = {"PKG_CONFIG_PATH": os.path.join(libdir, "pkgconfig"), "LD_LIBRARY_PATH": libdir}
        shutil.copy(SOURCE, work)
        pc = ("flags=$(pkg-config --cflags --libs {} safetensors); "
              "eval cc -std=c11 -o a.out consumer.c \"$flags\"")
        try_program("pkg-config, shared", f"cd '{work}'; {pc.format('')}; ./a.out", env)
        try_program("pkg-config, static", f"cd '{work}'; " +
                    pc.format("--static").replace("-o a.out", "-static -o a.out") + "; ./a.out",
                    {"PKG_CONFIG_PATH": env["PKG_CONFIG_PATH"]})
        check_ports(work, env)
        ok, text = sh(f"pkg-config --modversion safetensors", env)
        check(ok and text.strip() == version(), "pkg-config --modversion", text)
        ok, text = sh(f"! cmake -S '{HERE}' -B '{work}/newer' -G Ninja -DVERSION=99 "
                      f"-DCMAKE_PREFIX_PATH='{prefix}'")
        check(ok and "considered but not accepted" in " ".join(text.split()),
              "find_package refuses another version", text)
        ok, text = sh(f"! cmake -S '{HERE}' -B '{work}/parts' -G Ninja -DPARTS=set "
                      f"-DCMAKE_PREFIX_PATH='{prefix}'")
        check(ok and "safetensors has no components (set was asked for)" in " ".join(text.split()),
              "find_package says that there are no components", text)
        cmake = (f"cmake -S '{HERE}' -B '{work}/cmake' -G Ninja -DCMAKE_PREFIX_PATH='{prefix}' && "
                 f"cmake --build '{work}/cmake' && ")
        for kind in ("shared", "static"):
            try_program(f"find_package, {kind}", cmake + f"'{work}/cmake/consumer_{kind}'")
        check_subproject(work)
    return finish()


def finish():
    print(f"{results.count(True)} passed, {results.count(False)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
