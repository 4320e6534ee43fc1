"""What goes wrong in tasks: functions for mapInArrow that stand before the writer, in the same
stage. They run in Python workers of their own, beside the writer's."""
import glob
import json
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
    return waited_for(lambda: shards_there(path), seconds)


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


# ── Two attempts of one task ──

def shards_there(path):
    """Names of the shards that lie in folders of jobs."""
    return sorted(os.path.basename(name) for name in
                  glob.glob(os.path.join(glob.escape(path), "_job-*", "*.safetensors")))


def old_is_whole(path):
    """Whether all that the manifest names is there."""
    with open(os.path.join(path, "dataset_manifest.json"), encoding="utf-8") as file:
        told = json.load(file)
    sizes = [os.path.getsize(os.path.join(path, one["shard_path"])) for one in told["shards"]]
    return sizes == [one["bytes"] for one in told["shards"]]


def write_down(folder, name, value):
    """A value in a file of this name, whole or not at all."""
    part = os.path.join(folder, ".%s-%d" % (name, os.getpid()))
    with open(part, "w") as file:
        json.dump(value, file)
    os.rename(part, os.path.join(folder, name))


def waited_for(found, seconds):
    """Whether it came true in time."""
    end = time.monotonic() + seconds
    while not found():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def stalled(path, flags, *, partition, number, after=2, seconds=120):
    """For mapInArrow: the first attempt of this partition stops in the middle, once shards of
    it (part-{number}-…) lie on disk, until it is killed; the second begins then."""
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
    """For mapInArrow: two attempts of each of these partitions come to their end at the same
    moment."""
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
            # Both see the second one's file, and go on at the same time after it.
            if os.path.exists(both):
                time.sleep(max(0.0, os.stat(both).st_mtime + 0.3 - time.time()))
    return run
