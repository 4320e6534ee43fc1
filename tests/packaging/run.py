#!/usr/bin/env python3
"""Files for package managers and releases: packaging/, tools/source_archive.py, sbom.py, dist.py.

usage: tests/packaging/run.py [--full]

Versions and symbols agree with the headers; filled manifests are well-formed and have the fields
that their programs demand; the source archive is the same twice, also from its own contents.
--full (make test-packages): `conan create`, the portfile of vcpkg, and the bill of materials
through the validator of spdx-tools; run it with build/packaging/bin/python.
"""
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

sys.dont_write_bytecode = True
import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, folder) for folder in ("tools", "packaging", "tests")]
import exports
import manifests
import sbom
import source_archive
import symbols

VERSION = source_archive.version()
HOMEPAGE = "https://home.invalid/"
results = []


def check(ok, what, text=""):
    results.append(bool(ok))
    if not ok:
        print(f"failed: {what}\n{text}".rstrip())
    return ok


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **more)
    return done.returncode == 0, done.stdout


# ── Debian ──

def check_debian():
    changelog = read("packaging", "debian", "changelog")
    named = re.match(r"libsafetensors \(([0-9.]+)-\S+\) ", changelog)
    check(named and named.group(1) == VERSION, f"debian/changelog is of {VERSION}",
          changelog.splitlines()[0])
    control = read("packaging", "debian", "control")
    packages = re.findall(r"^Package: (.*)$", control, re.M)
    check(packages == [f"libsafetensors{exports.soversion()}", "libsafetensors-dev", "safetensors",
                       "python3-libsafetensors"], "packages of debian/control", str(packages))
    for name in packages:
        path = os.path.join(ROOT, "packaging", "debian", name + ".install")
        check(os.path.exists(path), f"{name}.install")
    library = read("packaging", "debian", packages[0] + ".install")
    check(f"libsafetensors.so.{exports.soversion()}" in library, "soname of the .install file")
    check(read("packaging", "debian", "source", "format") == "3.0 (quilt)\n", "source format")
    for name in re.findall(r"^Tests: (.*)$", read("packaging", "debian", "tests", "control"), re.M):
        path = os.path.join(ROOT, "packaging", "debian", "tests", name)
        check(os.access(path, os.X_OK), f"debian/tests/{name} can be run")


def check_symbols():
    """The symbols file is what the headers declare, what the library exports, and, where a symbol
    is stable, what the baseline of the ABI promises."""
    rows = symbols.rows(symbols.read(symbols.path()))
    check(symbols.read(symbols.path()) == symbols.wanted(), "symbols: run packaging/symbols.py")
    exported = {name for name in exports.symbols(
        "nm", "-D", "--defined-only", os.path.join(exports.BUILD, "libsafetensors.so"))}
    check(set(rows) == exported, "symbols file and libsafetensors.so",
          str(sorted(set(rows) ^ exported)))
    promised = set(re.findall(r"<elf-symbol name='(sft_\w+)'", read("tests", "abi",
                                                                   "stable.abi.xml")))
    stable = {name for name, (_, experimental) in rows.items() if not experimental}
    check(stable == promised | {symbols.NODE}, "stable symbols and tests/abi/stable.abi.xml",
          str(sorted(stable ^ promised)))
    check(len(promised) > 100 and len(stable) < len(rows), "there are symbols of both kinds")


def check_metadata(work):
    """Of a Python package that CMake installs (SFT_PYTHON_DIR): as pip would write it."""
    import email
    import tomllib
    folder = os.path.join(work, "x.dist-info")
    ok, text = run(sys.executable, os.path.join(ROOT, "cmake", "metadata.py"), VERSION, folder)
    if not check(ok, "cmake/metadata.py", text):
        return
    with open(os.path.join(folder, "METADATA"), encoding="utf-8") as file:
        written = email.message_from_file(file)
    project = tomllib.loads(read("pyproject.toml"))["project"]
    check((written["Name"], written["Version"]) == ("libsafetensors", VERSION), "name and version")
    check(set(written.get_all("Provides-Extra")) == set(project["optional-dependencies"]),
          "extras of the metadata")
    for extra, needs in project["optional-dependencies"].items():
        for one in needs:
            check(f'{one}; extra == "{extra}"' in written.get_all("Requires-Dist"),
                  f"extra {extra} requires {one}")


def check_releasing():
    """Ten steps, of commands that exist."""
    text = read("RELEASING.md")
    check(re.findall(r"^(\d+)\. ", text, re.M) == [str(n) for n in range(1, 11)], "ten steps")
    targets = set(re.findall(r"^([a-z0-9-]+(?: [a-z0-9-]+)*):(?!=)", read("Makefile"), re.M))
    targets = {name for row in targets for name in row.split()}
    used = {name for line in re.findall(r"(?:^ *|`|&& )make ([^`&\n]+)", text, re.M)
            for name in line.split() if re.fullmatch("[a-z0-9-]+", name)}
    check(used <= targets, "targets of RELEASING.md", str(used - targets))
    programs = re.findall(r"\b((?:tests|tools|packaging)/[\w/]+\.(?:py|sh))\b", text)
    for path in programs:
        check(os.access(os.path.join(ROOT, path), os.X_OK), f"RELEASING.md: {path} can be run")
    check(len(used) > 15 and len(programs) > 1, "commands of RELEASING.md are found")


# ── Source archive and bill of materials ──

def check_archive(work):
    paths = [os.path.join(work, name) for name in ("one.tar.gz", "two.tar.gz", "three.tar.gz")]
    source_archive.write(paths[0])
    source_archive.write(paths[1])
    with tarfile.open(paths[0]) as archive:
        names = archive.getnames()
        archive.extractall(work, filter="data")
    tree = os.path.join(work, f"libsafetensors-{VERSION}")
    top = os.path.commonpath(names)
    check(top == os.path.basename(tree), "one folder in the archive", top)
    ok, text = run(os.path.join(tree, "tools", "source_archive.py"), paths[2],
                   env={k: v for k, v in os.environ.items() if k != "SOURCE_DATE_EPOCH"})
    check(ok, "an archive from the archive", text)
    sums = {hashlib.sha256(open(path, "rb").read()).hexdigest() for path in paths}
    check(len(sums) == 1, "the archive is the same twice, and from its own contents")
    for needed in ("CMakeLists.txt", "packaging/debian/rules", "tests/run.py", "LICENSE"):
        check(f"{top}/{needed}" in names, f"{needed} in the archive")
    check(not [name for name in names if "/build/" in name or "__pycache__" in name],
          "nothing that was built in the archive")
    return paths[0]


def check_sbom(work, full):
    path = os.path.join(work, "libsafetensors.spdx.json")
    sbom.write(path)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    document = json.loads(text)
    ours = document["packages"][0]
    check(ours["versionInfo"] == VERSION, "version of the bill of materials")
    named = {file["fileName"]: file["checksums"][1]["checksumValue"] for file in document["files"]}
    with open(os.path.join(ROOT, "LICENSE"), "rb") as file:
        check(named.get("./LICENSE") == hashlib.sha256(file.read()).hexdigest(), "hash of LICENSE")
    check(len(named) == sum(1 for _ in source_archive.files()), "every file has its hash")
    loaded = {"libcurl": "src/remote/http/curl_load.c", "libcrypto": "src/model/hash/sha256_crypto.c"}
    for name, source in loaded.items():
        check(name in read(source), f"{source} loads {name}")
    packages = {package["name"] for package in document["packages"][1:]}
    check(packages == set(loaded) | {"zlib"}, "libraries of the bill of materials", str(packages))
    header = os.path.join(work, "zlib.h")
    check(sbom.bundled(header) == {}, "no version of a zlib that is not there")
    with open(header, "w", encoding="ascii") as file:
        file.write('/* zlib.h */\n#define ZLIB_VERSION "1.2.99.f"\n#define ZLIB_VERNUM 0x1299\n')
    check(sbom.bundled(header) == {"zlib": "1.2.99.f"}, "version of the zlib in wheels")
    told = {package["name"]: package.get("versionInfo") for package in document["packages"][1:]}
    check({name: version for name, version in told.items() if version} == sbom.bundled(),
          "versions of bundled libraries", str(told))
    sbom.write(path + ".again")
    with open(path + ".again", encoding="utf-8") as file:
        check(file.read() == text, "the bill of materials is the same twice")
    if full:
        validate_sbom(path)


def validate_sbom(path):
    from spdx_tools.spdx.parser.parse_anything import parse_file
    from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
    messages = validate_full_spdx_document(parse_file(path))
    check(not messages, "spdx-tools accepts the bill of materials",
          "\n".join(message.validation_message for message in messages[:10]))
    with open(path, encoding="utf-8") as file:
        broken = json.load(file)
    broken["packages"][0]["packageVerificationCode"]["packageVerificationCodeValue"] = "0"
    with open(path, "w", encoding="utf-8") as file:
        json.dump(broken, file)
    check(validate_full_spdx_document(parse_file(path)), "spdx-tools refuses a broken one")


# ── Manifests ──

def windows_zip(work):
    """An archive as `make windows` leaves it: only names and checksums are taken from it."""
    name = os.path.join(work, f"libsafetensors-{VERSION}-windows-x86_64.zip")
    with zipfile.ZipFile(name, "w") as archive:
        archive.writestr(f"libsafetensors-{VERSION}/bin/safetensors.exe", "MZ")
    return name


def check_manifests(work, archive):
    """The folder of the filled manifests; their addresses are files of `work`."""
    out = os.path.join(work, "manifests")
    shutil.copy(archive, os.path.join(work, f"libsafetensors-{VERSION}-source.tar.gz"))
    left_out = manifests.fill(manifests.values("file://" + work, HOMEPAGE, work), out)
    check(set(left_out) == {"winget", "scoop"}, "manifests without an archive for Windows",
          str(left_out))
    zipped = windows_zip(work)
    known = manifests.values("file://" + work, HOMEPAGE, work)
    check(manifests.fill(known, out) == {}, "all manifests are filled")
    for path in glob.glob(out + "/**/*", recursive=True):
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                found = manifests.PLACEHOLDER.search(file.read())
            check(not found, f"{path} has a placeholder", str(found))
    ok, text = run(os.path.join(ROOT, "tools", "manifests.py"))
    check(not ok and "--download" in text, "addresses are demanded", text)
    with open(zipped, "rb") as file:
        check_windows(out, hashlib.sha256(file.read()).hexdigest())
    return out


def loaded(path):
    with open(path, encoding="utf-8") as file:
        return yaml.safe_load(file)


def check_windows(out, sha256):
    # Required by the schemas of winget 1.6 and of scoop.
    required = {"": {"DefaultLocale"}, ".installer": {"Installers"},
                ".locale.en-US": {"PackageLocale", "Publisher", "PackageName", "License",
                                  "ShortDescription"}}
    identifier = "libsafetensors.safetensors"
    for kind, fields in required.items():
        data = loaded(os.path.join(out, "winget", f"{identifier}{kind}.yaml"))
        fields = fields | {"PackageIdentifier", "PackageVersion", "ManifestType", "ManifestVersion"}
        check(fields <= set(data), f"winget{kind}", str(fields - set(data)))
        check((data["PackageIdentifier"], data["PackageVersion"]) == (identifier, VERSION),
              f"identifier and version of winget{kind}")
    data = loaded(os.path.join(out, "winget", identifier + ".installer.yaml"))
    one = data["Installers"][0]
    check(one["InstallerSha256"] == sha256.upper(), "winget: checksum")
    check(one["NestedInstallerFiles"][0]["RelativeFilePath"] ==
          f"libsafetensors-{VERSION}\\bin\\safetensors.exe", "winget: path of the command")
    with open(os.path.join(out, "scoop", "libsafetensors.json"), encoding="utf-8") as file:
        scoop = json.load(file)
    check({"version", "homepage", "license", "architecture", "bin"} <= set(scoop), "scoop: fields")
    check(scoop["architecture"]["64bit"]["hash"] == sha256, "scoop: checksum")


def check_syntax(out):
    with open(os.path.join(out, "vcpkg", "vcpkg.json"), encoding="utf-8") as file:
        port = json.load(file)
    check((port["name"], port["version"]) == ("libsafetensors", VERSION), "vcpkg.json")
    data = loaded(os.path.join(out, "conan", "conandata.yml"))
    check(set(data["sources"][VERSION]) == {"url", "sha256"}, "conandata.yml")
    for path in glob.glob(out + "/conan/**/*.py", recursive=True):
        with open(path, encoding="utf-8") as file:
            compile(file.read(), path, "exec")
    with open(os.path.join(out, "conda", "meta.yaml"), encoding="utf-8") as file:
        recipe = re.sub(r"\{\{ (.*?) \}\}", lambda m: m.group(1).replace('"', ""),
                        re.sub(r"^\{%.*%\}$", "", file.read(), flags=re.M))
    recipe = yaml.safe_load(recipe)
    check({"package", "source", "build", "requirements", "test", "about"} <= set(recipe),
          "conda: sections", str(set(recipe)))
    formula = os.path.join(out, "homebrew", "libsafetensors.rb")
    if shutil.which("ruby"):
        ok, text = run("ruby", "-wc", formula)
        check(ok and text.strip() == "Syntax OK", "ruby -wc of the formula", text)
    else:
        print("no ruby (Debian: ruby): the formula is not checked")
    with open(formula, encoding="utf-8") as file:
        text = file.read()
    for line in ("  homepage ", "  url ", "  sha256 ", "  license ", "  test do"):
        check("\n" + line in text, f"formula:{line}")


# ── With their programs ──

def vcpkg(work, out):
    for linkage, library in (("dynamic", f"libsafetensors.so.{VERSION}"),
                             ("static", "libsafetensors.a")):
        here = os.path.join(work, "vcpkg-" + linkage)
        ok, text = run("cmake", f"-DPORTFILE={out}/vcpkg/portfile.cmake", f"-DWORK={here}",
                       f"-DLINKAGE={linkage}", "-DFEATURES=tools", "-P",
                       os.path.join(HERE, "vcpkg.cmake"))
        if not check(ok, f"portfile, {linkage}", text):
            continue
        package = os.path.join(here, "packages")
        libraries = {os.path.basename(path) for path in glob.glob(package + "/lib/libsafe*")
                     if not os.path.islink(path)}
        check(libraries == {library}, f"libraries of the {linkage} package", str(libraries))
        for path in ("share/libsafetensors/copyright", "share/libsafetensors/usage",
                     "tools/libsafetensors/safetensors", "include/safetensors.h"):
            check(os.path.exists(os.path.join(package, path)), f"{linkage}: {path}")
        build = os.path.join(here, "consumer")
        ok, text = run("bash", "-euo", "pipefail", "-c",
                       f"cmake -S '{out}/conan/test_package' -B '{build}' -G Ninja "
                       f"-DCMAKE_PREFIX_PATH='{package}' && cmake --build '{build}' && "
                       f"'{build}/test_package'")
        check(ok and text.endswith(f"libsafetensors {VERSION} opens 1 tensor\n"),
              f"a program with the {linkage} package", text)


def conan(work, out):
    env = dict(os.environ, CONAN_HOME=os.path.join(work, "conan-home"))
    program = os.path.join(os.path.dirname(sys.executable), "conan")
    ok, text = run(program, "profile", "detect", env=env)
    ok = ok and run(program, "export", os.path.join(HERE, "conan_zlib"), env=env)[0]
    if not check(ok, "conan starts", text):
        return
    for options in (["shared=True", "tools=True"], ["shared=False"],
                    ["shared=False", "with_zlib=False"]):
        ok, text = run(program, "create", out + "/conan", f"--version={VERSION}", "--no-remote",
                       "--build=missing",
                       *(word for one in options for word in ("-o", "libsafetensors/*:" + one)),
                       env=env)
        check(ok and f"libsafetensors {VERSION} opens 1 tensor" in text,
              "conan create " + " ".join(options), text[-4000:])


def main():
    full = sys.argv[1:] == ["--full"]
    if sys.argv[1:] and not full:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(prefix="sft-packaging-") as work:
        check_debian()
        check_symbols()
        check_releasing()
        check_metadata(work)
        archive = check_archive(work)
        check_sbom(work, full)
        out = check_manifests(work, archive)
        check_syntax(out)
        if full:
            vcpkg(work, out)
            conan(work, out)
    print(f"{results.count(True)} passed, {results.count(False)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
