"""A device that is none: memory of the CPU, and everything that a real one may do to a program
that is careless.

Copies are done late, from the slot as it is then; events happen late, in any order; of each
function the n-th call may fail. Freed memory is overwritten, and so is a slot that was given
back."""
import random
from contextlib import nullcontext

import torch

from libsafetensors import _device


class Failure(RuntimeError):
    """What a function raises that was told to fail."""


class Event:
    def __init__(self, number):
        self.number, self.asked = number, 0


class FakeDevice:
    """seed: of the delays. fail: (name of a function, n). kept: slots."""

    def __init__(self, seed=0, fail=None, kept=4, late=4):
        self.slots = _device.Slots(self._slot, kept * _device.SLOT_BYTES)
        self.random = random.Random(seed)
        self.fail, self.late = fail, late
        self.calls = {}
        self.log = []
        self.pending = []
        """(number of the event that will cover them, copies)"""
        self.happened = set()
        self.events = 0
        self.most = 0
        """Slots that were in use at once."""

    def _call(self, name):
        self.calls[name] = count = self.calls.get(name, 0) + 1
        self.log.append(name)
        if self.fail == (name, count):
            raise Failure("%s, call %d" % (name, count))

    def _slot(self, size):
        self._call("slot")
        memory = torch.full((size + 4096,), 0xA5, dtype=torch.uint8)
        return memory[-memory.data_ptr() % 4096:][:size]

    # ── What a load asks ──

    def room(self, size):
        self._call("room")

    def at_home(self):
        return nullcontext()

    def empty(self, shape, dtype):
        self._call("empty")
        made = torch.empty(shape, dtype=dtype)
        if made.nbytes:
            made.view(-1).view(torch.uint8).fill_(0x5A)
        return made

    def order(self):
        self._call("order")

    def copy(self, slot, copies):
        for one in copies:
            self._call("copy")
            self.pending.append((self.events, slot, one))

    def record(self):
        self._call("record")
        self.events += 1
        self.most = max(self.most, len({id(slot) for _, slot, _ in self.pending}))
        return Event(self.events - 1)

    def query(self, event):
        self._call("query")
        event.asked += 1
        if event.asked > self.random.randrange(self.late + 1):
            self._happen(event.number)
        elif self.pending:
            # Another one is done first.
            self._happen(self.random.choice(self.pending)[0])
        return event.number in self.happened

    def wait(self, event):
        self._call("wait")
        self._happen(event.number)

    def finish(self):
        self._call("finish")
        self._all()

    def drain(self):
        self._call("drain")
        self._all()

    def hand_out(self, tensor):
        self._call("hand_out")
        return tensor

    # ── What it does ──

    def _happen(self, number):
        now = [one for one in self.pending if one[0] == number]
        self.pending = [one for one in self.pending if one[0] != number]
        self.random.shuffle(now)
        for _, slot, (target, at, start, size) in now:
            target[at:at + size] = slot[start:start + size]
        self.happened.add(number)

    def _all(self):
        for number in {one[0] for one in self.pending}:
            self._happen(number)
