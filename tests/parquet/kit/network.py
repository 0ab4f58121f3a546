"""Simulated remote store, and threads that a seeded scheduler runs one at a time."""

import random
import threading

import pyarrow as pa

from tests.parquet.kit.log import MemoryStore
from zadapter.errors import StoreError
from zadapter_parquet.log.commit_entries import current_time
from zadapter_parquet.store import guard_files


class Died(BaseException):
    """The actor's process has died."""


class Scheduler:
    """Scheduler that runs one actor at a time, chosen by a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.turns, self.errors = {}, []

    def run(self, actors):
        """Run *actors*, a mapping by name, until all are done."""
        self.turns = {name: threading.Semaphore(0) for name in actors}
        threads = [threading.Thread(target=self._act, args=item) for item in actors.items()]
        for thread in threads:
            thread.start()
        self._choose()
        for thread in threads:
            thread.join()

    def _act(self, name, action):
        threading.current_thread().name = name
        self.turns[name].acquire()
        try:
            action()
        except (Died, FileNotFoundError):
            pass  # a vacuum without retention deletes files of versions that are being read
        except Exception as error:  # noqa: BLE001 - told by check()
            self.errors.append(error)
        finally:
            del self.turns[name]
            self._choose()

    def step(self):
        """Yield to another actor, and wait for the next turn."""
        mine = self.turns.get(threading.current_thread().name)
        if mine is not None:
            self._choose()
            mine.acquire()

    def _choose(self):
        if self.turns:
            self.turns[self.random.choice(sorted(self.turns))].release()


class Network(MemoryStore):
    """Remote store."""

    uri = "memory:"

    def __init__(self, scheduler, faults, rows):
        super().__init__()
        self.scheduler, self.faults = scheduler, faults
        self.rows, self.copying, self.seen = rows, [], set()
        self.bad = scheduler.random.choice([0.1, 0.5, 0.9])

    def _step(self):
        self.scheduler.step()
        if self.faults and self.scheduler.random.random() < 0.01:
            raise Died
        if self.late and self.scheduler.random.random() < 0.1:
            self.deliver()

    def create(self, path, data):
        self._step()
        bad = self.faults and self.scheduler.random.random() < self.bad
        # in the worst case, nearly all outcomes stay unknown
        lost = ["never", "late"] if self.bad > 0.5 else ["lost", "never", "late"]
        fates = lost if bad else ["fine"]
        self.fates = iter([self.scheduler.random.choice(fates)])
        return super().create(path, data)

    def read(self, path):
        self._step()
        return super().read(path)

    def write(self, path, data):
        self._step()
        super().write(path, data)
        self.look()

    def delete(self, paths):
        for path in paths:
            self._step()
            super().delete([path])
            self.look()

    def move(self, names):
        """Copy and delete, as an object store does; the copy may be late, or its answer lost."""
        for old, new in names.items():
            self._step()
            fate = "fine"
            if self.faults and self.scheduler.random.random() < self.bad / 4:
                fate = self.scheduler.random.choice(["lost", "never", "late"])
            if fate == "late":
                self.copying.append((old, new))
            if fate in {"fine", "lost"}:
                self._copy(old, new)
            if fate != "fine":
                raise StoreError("no answer")
            self._step()
            self.held.pop(old, None)

    def _copy(self, old, new):
        if old in self.held:
            self.held[new], self.made[new] = self.held[old], current_time()
            self.look()

    def deliver(self):
        super().deliver()
        for old, new in self.copying:
            self._copy(old, new)
        self.copying.clear()

    def look(self):
        """Record the rows that an engine reads by walking the folder; None: it fails at a guard."""
        visible = sorted(path for path in self.held if path.endswith(".parquet"))
        guarded = any(guard_files.stands_for(path) for path in visible)
        rows = [row for path in visible if not guarded for row in self.rows[path]]
        found = None if guarded else tuple(sorted(rows))
        self.seen.add(found)
        return found

    def has(self, path):
        self._step()
        return super().has(path)

    def size(self, path):
        return len(self.held[path]) if path in self.held else None

    def open_file(self, path):
        self._step()
        if path not in self.held:
            raise FileNotFoundError(path)
        return pa.BufferReader(self.held[path])

    def sync(self, paths):
        for path in paths:
            if path not in self.held:
                raise FileNotFoundError(path)
