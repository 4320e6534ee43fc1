"""How the command is started: from Explorer, with a console of its own."""
import os

from world import WINDOWS, case, demand, run, small, write

ALONE = [*WINDOWS[:-1], "--alone", WINDOWS[-1]]
ENTER = b"(Enter closes this window.)"


@case
def window_stays_open(folder):
    """A double click gives no word, a file that is dropped its whole path."""
    path = os.path.join(folder, "m.safetensors")
    write(path, small())
    for words, said in ([], b"safetensors help"), (["Z:" + path], b"parameters"):
        done = run(ALONE, words, folder)
        demand(done.returncode == (0 if words else 2), words, done.returncode, done.stderr)
        demand(said in done.stdout and done.stdout.rstrip().endswith(ENTER), words, done.stdout)


@case
def window_closes_after_commands(folder):
    """What is planned or started by a program waits for nobody."""
    write(os.path.join(folder, "m.safetensors"), small())
    done = run(ALONE, ["check", "m.safetensors"], folder)
    demand(done.returncode == 0 and not done.stdout, done.returncode, done.stdout, done.stderr)
