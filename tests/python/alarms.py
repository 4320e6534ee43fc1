"""A signal's handler that is called while something else works."""
import _thread
import contextlib
import os
import signal
import threading


def interrupt():
    """Ctrl-C for this process, from any thread. On Windows os.kill would only end it."""
    if hasattr(signal, "setitimer"):
        os.kill(os.getpid(), signal.SIGINT)
    else:
        _thread.interrupt_main(signal.SIGINT)


@contextlib.contextmanager
def alarm(handler, seconds, every=0.0):
    """Calls handler(number, frame) in the main thread after some seconds, and again every so many.
    Windows has no timers that signal: a thread does as Ctrl-C would."""
    if hasattr(signal, "setitimer"):
        old = signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, seconds, every)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old)
        return
    old, over = signal.signal(signal.SIGINT, handler), threading.Event()
    begun = threading.Event()  # not while start() waits for the thread

    def ring():
        begun.wait()
        wait = seconds
        while not over.wait(wait):
            _thread.interrupt_main(signal.SIGINT)
            if not every:
                return
            wait = every
    thread = threading.Thread(target=ring)
    thread.start()
    begun.set()
    try:
        yield
    finally:
        over.set()
        thread.join()
        signal.signal(signal.SIGINT, old)
