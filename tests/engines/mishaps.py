"""What goes wrong, once or always."""
import os
import signal


def first(flags, name="done"):
    """Whether nobody has asked before."""
    try:
        os.close(os.open(os.path.join(flags, name), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def die():
    os.kill(os.getpid(), signal.SIGKILL)
