#!/usr/bin/env python3
"""What a newcomer meets first: README's first screen and its picture, `make demo`, `make install`,
and environments that two clones make at once."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
results = []


def check(ok, what, text=""):
    results.append(bool(ok))
    if not ok:
        print(f"failed: {what}\n{text}".rstrip())


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def run(command, **more):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, **more)


def check_readme():
    readme = read("README.md")
    screen = readme.splitlines()[:40]
    for words in ("make demo", "make test"):
        check(any(line.startswith(words) for line in screen), f"README's first screen: {words}")
    check("not affiliated with Hugging Face" in readme, "README: whose project it is not")
    # words at one height are a line
    lines = {}
    for y, text in re.findall(r'<text y="(\d+)">(.*?)</text>', read("docs", "pictures", "tour.svg")):
        lines[y] = re.sub(r"<[^>]*>", " ", text)
    shown = "\n".join(lines.values())
    check("nknown" not in shown, "README's picture: unknown models", shown)
    for name, base, words in (("Aurora Sky", "Flux.1 dev", "aurora sky"),
                              ("Velvet Night", "SDXL (Pony)", "vlvtnight")):
        check(any(name in line and base in line and words in line for line in lines.values()),
              f"README's picture: {name}, {base}, {words}", shown)


def check_demo():
    """Each line that the demo prints runs when it is pasted, and says the same."""
    with tempfile.TemporaryDirectory(prefix="sft-front-") as folder:
        for name in ("examples", "tools", "tests/info", "docs"):
            shutil.copytree(os.path.join(ROOT, name), os.path.join(folder, name))
        bin_folder = os.path.join(folder, "build")
        os.mkdir(bin_folder)
        os.symlink(os.path.join(BUILD, "safetensors"), os.path.join(bin_folder, "safetensors"))
        env = dict(os.environ, SFT_BUILD="build", PATH=bin_folder + ":" + os.environ["PATH"])
        done = run(["tools/demo.sh"], cwd=folder, env=env)
        check(done.returncode == 0, "make demo", done.stdout)
        check("nknown kind" not in done.stdout, "make demo shows a model that info does not know",
              done.stdout)
        parts = re.split(r"^\$ (.+)\n", done.stdout, flags=re.M)
        check(len(parts) > 15, "lines of make demo", done.stdout)
        for line, said in zip(parts[1::2], parts[2::2]):
            again = run(["bash", "-c", line], cwd=folder, env=env)
            said = said.split("\nA browser shows it:")[0].replace("(nothing to say: all is well)\n", "")
            check(again.returncode == 0
                  and again.stdout.strip() == said.strip(),
                  f"pasted: {line}", f"{again.returncode}\n{again.stdout}\ninstead of\n{said}")
        one = run(["tools/demo.sh", "examples/models/lora/neon-city.safetensors"], cwd=folder, env=env)
        check(one.returncode == 0 and one.stdout.count("\n$ safetensors ") == 3, "make demo MODEL",
              one.stdout)
        mine = os.path.join(folder, "my models")
        shutil.copytree(os.path.join(folder, "examples", "models"), os.path.join(mine, "deeper"))
        open(os.path.join(mine, "deeper", "broken.safetensors"), "wb").close()
        shutil.copy(os.path.join(ROOT, "Makefile"), folder)
        all_of = run(["make", "-o", "build", "demo", "MODEL=" + mine], cwd=folder, env=env)
        check(all_of.returncode == 0 and all_of.stdout.count("\n$ safetensors ") == 3
              and "4 models, 1 unreadable" in all_of.stdout, "make demo MODEL=FOLDER", all_of.stdout)


def check_install():
    """A prefix that cannot be written is told before anything is built."""
    begin = time.monotonic()
    done = run(["make", "--no-print-directory", "install", "PREFIX=/proc/none"], cwd=ROOT,
               env=dict(os.environ, PATH="/usr/bin:/bin"))
    lines = done.stdout.splitlines()
    check(done.returncode != 0 and lines[:1] == [
        "install: cannot write to /proc: use sudo, or PREFIX=~/.local"]
        and "cmake" not in done.stdout.lower(), f"make install, {time.monotonic() - begin:.1f} s",
        done.stdout)
    home = run(["make", "-n", "install", "PREFIX=~/x"], cwd=ROOT,
               env=dict(os.environ, HOME="/proc/home"))
    check('install_prefix.sh "/proc/home/x"' in home.stdout, "a ~ that the shell left", home.stdout)
    with tempfile.TemporaryDirectory(prefix="sft-front-") as folder:
        prefix = os.path.join(folder, "a b")
        done = run([os.path.join(ROOT, "tools", "install_prefix.sh"), prefix])
        check(done.returncode == 0 and not os.listdir(folder), "a prefix that is not there yet",
              done.stdout)


# An environment of one package, with a pip that takes its time.
FETCH = r"""
set -euo pipefail
name=toy locks=(lock.txt) fetch="download" download_size="1 MB"
source tools/environment.sh
pip() {
    local dest
    for word in "$@"; do
        [[ $word != */new-*/ ]] || echo "unfinished: $word"
        dest=$word
    done
    echo fetched >>"$cache/count"
    echo half >"$dest/toy.whl"
    sleep 1
    echo whole >"$dest/toy.whl"
}
find_python
settle_names
[[ -d $wheels ]] || fetch_wheels
cat "$wheels/toy.whl"
"""


def check_environments():
    with tempfile.TemporaryDirectory(prefix="sft-front-") as folder:
        running = []
        for clone in ("one", "two", "other"):
            os.makedirs(os.path.join(folder, clone, "tools"))
            shutil.copy(os.path.join(ROOT, "tools", "environment.sh"),
                        os.path.join(folder, clone, "tools"))
            with open(os.path.join(folder, clone, "lock.txt"), "w", encoding="utf-8") as file:
                file.write("other==1\n" if clone == "other" else "toy==1\n")
            running.append(subprocess.Popen(
                ["bash", "-c", FETCH, "toy.sh"], cwd=os.path.join(folder, clone), text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                env=dict(os.environ, XDG_CACHE_HOME=folder)))
            time.sleep(0.3)
        for one in running:
            said = one.communicate()[0]
            check(one.returncode == 0 and said.splitlines()[-1:] == ["whole"]
                  and "unfinished" not in said, "environments made at once", said)
        with open(os.path.join(folder, "libsafetensors", "count"), encoding="utf-8") as file:
            check(len(file.readlines()) == 2, "the same wheels are fetched once")


# One environment that two makes of one clone want, and what the cache keeps of others.
SAME = r"""
set -euo pipefail
name=toy locks=(lock.txt) fetch="download" download_size="1 MB"
source tools/environment.sh
is_old() { [[ ! -e $1 ]]; }
make_venv() {
    echo venv >>"$root/steps"
    mkdir -p "$venv/bin" "$wheels" "$packages"
    ln -s "$(type -P true)" "$venv/bin/python"
    install_packages
    sleep 0.3
    echo "$key" >"$venv/key"
}
pip() {
    echo "$1" >>"$root/steps"
    sleep 0.3
    [[ $1 != wheel ]] || touch "$package/toy.whl"
    [[ $1 != install || -e $package/toy.whl ]] || echo "lost" >>"$root/steps"
}
make_environment
"""


def check_same_environment():
    with tempfile.TemporaryDirectory(prefix="sft-front-") as folder:
        cache = os.path.join(folder, "libsafetensors")
        os.makedirs(os.path.join(folder, "tools"))
        os.makedirs(os.path.join(cache, "packages-old"))
        shutil.copy(os.path.join(ROOT, "tools", "environment.sh"), os.path.join(folder, "tools"))
        for path in ("lock.txt", "libsafetensors/packages-old.lock",
                     "libsafetensors/packages-used.lock"):
            with open(os.path.join(folder, path), "w", encoding="utf-8"):
                pass
        for name in ("packages-old", "packages-old.lock"):
            os.utime(os.path.join(cache, name), (time.time() - 90 * 86400,) * 2)
        running = [subprocess.Popen(["bash", "-c", SAME, "toy.sh"], cwd=folder, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    env=dict(os.environ, XDG_CACHE_HOME=folder))
                   for _ in range(2)]
        said = "".join(one.communicate()[0] for one in running)
        with open(os.path.join(folder, "steps"), encoding="utf-8") as file:
            steps = file.read().split()
        check(not any(one.returncode for one in running)
              and steps == ["venv", "wheel", "install"], "one environment, two makes",
              said + str(steps))
        left = sorted(os.listdir(cache))
        check("packages-old" not in left and "packages-old.lock" not in left
              and "packages-used.lock" in left, "stale packages and their locks go", str(left))


check_readme()
check_demo()
check_install()
check_environments()
check_same_environment()
print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
sys.exit(0 if all(results) else 1)
