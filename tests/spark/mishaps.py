"""What goes wrong in tasks: functions for mapInArrow that stand before the writer, in the same
stage. They run in Python workers of their own, beside the writer's."""
import glob
import os
import signal
import time


def first(folder, name):
    """True for one process only, whichever comes first."""
    try:
        os.close(os.open(os.path.join(folder, name), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        return True
    except FileExistsError:
        return False


def _context():
    from pyspark import TaskContext
    return TaskContext.get()


def note(folder):
    """Who runs: partition, attempts of the task and of the stage."""
    context = _context()
    name = "ran-%d-%d-%d-%d" % (context.stageId(), context.partitionId(),
                                context.attemptNumber(), context.taskAttemptId())
    open(os.path.join(folder, name), "w").close()


def ran(folder):
    """(stage, partition, attempt, task) of all that noted itself."""
    return [tuple(int(n) for n in name.split("-")[1:])
            for name in os.listdir(folder) if name.startswith("ran-")]


def parent(pid):
    with open("/proc/%d/stat" % pid) as file:
        return int(file.read().rpartition(")")[2].split()[1])


def children(pid):
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if parent(int(name)) == pid:
                    found.append(int(name))
            except OSError:
                pass
    return found


def await_shards(path, seconds=10):
    """Until the job's first shards lie in its folder; False when none came."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if glob.glob(os.path.join(glob.escape(path), "_job-*", "*.safetensors")):
            return True
        time.sleep(0.05)
    return False


def kill_reader():
    """This Python worker, which hands rows to the writer."""
    os.kill(os.getpid(), signal.SIGKILL)


def kill_writer():
    """The Python workers of this JVM but this one: the writer is among them, maybe under a
    daemon of its own."""
    for daemon in children(parent(os.getppid())):
        for pid in children(daemon):
            if pid != os.getpid():
                os.kill(pid, signal.SIGKILL)


def kill_executor():
    """The JVM of this executor: parent of the daemon that is parent of this worker."""
    os.kill(parent(os.getppid()), signal.SIGKILL)


DEEDS = {"reader": kill_reader, "writer": kill_writer, "executor": kill_executor}


def mishap(deed, path, flags, *, partition, times=1, after=2):
    """A function for mapInArrow: rows pass; in this partition, after so many batches and once
    shards lie on disk, the deed is done, as often as told."""
    def run(batches):
        note(flags)
        mine = _context().partitionId() == partition
        for number, batch in enumerate(batches):
            if mine and number == after:
                for turn in range(times):
                    if first(flags, "deed-%d" % turn):
                        if await_shards(path):
                            first(flags, "shards-seen-%d" % turn)
                        DEEDS[deed]()
                        time.sleep(5)  # till it has come through
                        break
            yield batch
    return run
