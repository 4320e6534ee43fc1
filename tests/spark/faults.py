"""Faults injected into tasks: functions for mapInArrow that run before the writer in the same
stage, in Python workers of their own. The tests of other engines use some, too."""
import glob
import json
import os
import signal
import time


def first(folder, name):
    """True for the first process that calls it with this name."""
    try:
        os.close(os.open(os.path.join(folder, name), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        return True
    except FileExistsError:
        return False


def _context():
    from pyspark import TaskContext
    return TaskContext.get()


def note(folder):
    """Records this attempt: stage, partition, attempt number and task."""
    context = _context()
    name = "ran-%d-%d-%d-%d" % (context.stageId(), context.partitionId(),
                                context.attemptNumber(), context.taskAttemptId())
    open(os.path.join(folder, name), "w").close()


def ran(folder):
    """(stage, partition, attempt, task) of all recorded attempts."""
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
    """Waits for the job's first shards; False if none were written in time."""
    return waited_for(lambda: shards_there(path), seconds)


def kill_self():
    """Kills this Python worker, which passes rows to the writer."""
    os.kill(os.getpid(), signal.SIGKILL)


def kill_writer():
    """Kills the other Python workers of this JVM: the writer is among them, possibly under a
    daemon of its own."""
    for daemon in children(parent(os.getppid())):
        for pid in children(daemon):
            if pid != os.getpid():
                os.kill(pid, signal.SIGKILL)


def kill_executor():
    """Kills the JVM of this executor, the parent of the daemon that started this worker."""
    os.kill(parent(os.getppid()), signal.SIGKILL)


KILL = {"reader": kill_self, "writer": kill_writer, "executor": kill_executor}


def killing(process, path, flags, *, partition, times=1, after=2):
    """A function for mapInArrow that passes rows on; in this partition, after so many batches
    and once shards are on disk, it kills the process, as many times as given."""
    def run(batches):
        note(flags)
        mine = _context().partitionId() == partition
        for number, batch in enumerate(batches):
            if mine and number == after:
                for turn in range(times):
                    if first(flags, "killed-%d" % turn):
                        if await_shards(path):
                            first(flags, "shards-seen-%d" % turn)
                        KILL[process]()
                        time.sleep(5)  # until the kill takes effect
                        break
            yield batch
    return run


# ── Two attempts of one task ──

def shards_there(path):
    """Names of the shards in the folders of jobs."""
    return sorted(os.path.basename(name) for name in
                  glob.glob(os.path.join(glob.escape(path), "_job-*", "*.safetensors")))


def old_is_whole(path):
    """Whether all files of the manifest exist with their sizes."""
    with open(os.path.join(path, "dataset_manifest.json"), encoding="utf-8") as file:
        shards = json.load(file)["shards"]
    sizes = [os.path.getsize(os.path.join(path, one["shard_path"])) for one in shards]
    return sizes == [one["bytes"] for one in shards]


def write_down(folder, name, value):
    """Writes a value to a file of this name, atomically."""
    part = os.path.join(folder, ".%s-%d" % (name, os.getpid()))
    with open(part, "w") as file:
        json.dump(value, file)
    os.rename(part, os.path.join(folder, name))


def waited_for(found, seconds):
    """Whether the condition became true in time."""
    end = time.monotonic() + seconds
    while not found():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def stalled(path, flags, *, partition, number, after=2, seconds=120):
    """For mapInArrow: the first attempt of this partition stops in the middle, once its shards
    (part-{number}-…) are on disk, until it is killed; then the second one starts."""
    def written():
        return any(name.startswith("part-%05d-" % number) for name in shards_there(path))

    def run(batches):
        note(flags)
        mine = _context().partitionId() == partition
        stalls = mine and first(flags, "stalled")
        if mine and not stalls:
            waited_for(lambda: os.path.exists(os.path.join(flags, "seen")), 30)
        for turn, batch in enumerate(batches):
            if stalls and turn == after:
                waited_for(written, 20)
                write_down(flags, "seen", {"shards": shards_there(path), "pid": os.getpid(),
                                           "old": old_is_whole(path)})
                time.sleep(seconds)
            yield batch
    return run


def side_by_side(path, flags, *, partitions, seconds=60):
    """For mapInArrow: two attempts of each of these partitions end at the same moment."""
    def run(batches):
        note(flags)
        part = _context().partitionId()
        yield from batches
        if part in partitions:
            number = 0 if first(flags, "end-%d-0" % part) else 1
            first(flags, "end-%d-1" % part) if number else None
            if not number:
                write_down(flags, "seen-%d" % part, old_is_whole(path))
            end = time.monotonic() + seconds
            both = os.path.join(flags, "end-%d-1" % part)
            while not os.path.exists(both) and time.monotonic() < end:
                time.sleep(0.0005)
            # Both wait for the second one's file and continue at the same time after it.
            if os.path.exists(both):
                time.sleep(max(0.0, os.stat(both).st_mtime + 0.3 - time.time()))
    return run
