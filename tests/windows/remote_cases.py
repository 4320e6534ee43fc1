"""URLs: libcurl is taken from beside safetensors.exe. A stub of it (stub_curl.c) stands there,
which answers from a file and notes what it is asked: nothing is sent."""
import os
import shutil

from world import BUILD, WINDOWS, case, demand, read, run, sft, small, write

URL = "https://models.example/some/folder/m.safetensors"


def beside(folder, library):
    """The command, copied to a folder of its own; with the stub there, or without."""
    path = os.path.join(folder, "bin", "safetensors.exe")
    os.makedirs(os.path.dirname(path))
    shutil.copy(WINDOWS[-1], path)
    if library:
        shutil.copy(os.path.join(BUILD, "tests", "stub", "libcurl-x64.dll"), os.path.dirname(path))
    return [*WINDOWS[:-1], path]


def asked(folder):
    """What the stub was asked since the last look."""
    path = os.path.join(folder, "asked")
    lines = read(path).decode().splitlines()
    os.remove(path)
    return lines


@case
def libcurl_beside_the_command(folder):
    command, content = beside(folder, True), small()
    write(os.path.join(folder, "answer"), content)
    done = run(command, ["cat", "--as", "raw", URL, "a"], folder)
    want = sft(["cat", "--as", "raw", "answer", "a"], folder).stdout
    demand(done.returncode == 0 and done.stdout == want and len(want) == 256,
           "exit", done.returncode, done.stdout[:80], done.stderr)
    lines = asked(folder)
    demand("url " + URL in lines, "asked for", lines)
    demand(any(line.lower().startswith("header range: bytes=") for line in lines), lines)
    demand(any(line.lower().startswith("header user-agent: ") for line in lines), lines)
    done = run(command, ["info", URL], folder)
    demand(done.returncode == 0 and b"364" in done.stdout, done.stdout, done.stderr)


@case
def authorities_of_the_system(folder):
    """A libcurl with OpenSSL knows none on Windows unless it is told to ask the system."""
    command = beside(folder, True)
    write(os.path.join(folder, "answer"), small())
    run(command, ["ls", URL], folder, CURL_CA_BUNDLE="", SSL_CERT_FILE="", AWS_CA_BUNDLE="")
    lines = asked(folder)
    demand("ssl_options 16" in lines and "ca_file none" in lines, lines)
    run(command, ["ls", URL], folder, CURL_CA_BUNDLE="own.pem")
    lines = asked(folder)
    demand("ssl_options 0" in lines and "ca_file own.pem" in lines, lines)


@case
def no_libcurl(folder):
    """None beside the command: not even one of the current folder is taken."""
    command = beside(folder, False)
    shutil.copy(os.path.join(BUILD, "tests", "stub", "libcurl-x64.dll"), folder)
    write(os.path.join(folder, "answer"), small())
    done = run(command, ["ls", URL], folder)
    demand(done.returncode not in (0, 1) and b"libcurl" in done.stderr, done.returncode,
           done.stderr)
    demand(not os.path.exists(os.path.join(folder, "asked")), "it was loaded")
