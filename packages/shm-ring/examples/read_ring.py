#!/usr/bin/env python3
"""A consumer of the broker in Python, standard library only: what docs/shm-layout.md says, in code.

It says hello on the broker's Unix socket, receives the ring's descriptors, maps data and wctl
read-only, reads batches in place and answers each item with its length and the sum of its tokens.

    python3 read_ring.py /run/fabric/broker.sock --batches 10

One line of JSON for each batch goes to standard output.

Memory order. Python has no atomics, so this runs on x86-64 only, where every aligned load is an
acquire and every aligned store a release, and where a memoryview of 8-byte items reads or writes each
by one instruction. What x86 does not give is a load that stays behind an earlier store; the two places
that need it call full_fence().
"""
import argparse
import base64
import fcntl
import json
import mmap
import os
import platform
import select
import socket
import struct
import threading
import time

ABI = 2
MAGIC = 0x314E495246424146  # "FABFRIN1"
LINE = HEADER = 64
CONTROL_BYTES = 4096
COMMITTED, PAD = 2, 3
AWAKE, WAITS_ON_PIPE = 0, 1
F_GET_SEALS, SEAL_SHRINK, SEAL_GROW = 1034, 2, 4
HELLO, WELCOME, ERROR, RENEW, TAKEN, RESULTS, DRAIN, BYE, BATCH = range(1, 10)
# At most this long a wake-up could be missed, were full_fence() none.
LOOK_AGAIN_MS = 100

_fence = threading.Lock()


def full_fence():
    """Taking a lock is a locked instruction, which on x86 orders a store before a later load."""
    with _fence:
        pass


class Ring:
    """The reader's half. Descriptors: data, wctl, rctl, data pipe, space pipe."""

    def __init__(self, descriptors):
        if len(descriptors) != 5:
            raise ValueError(f"{len(descriptors)} descriptors are not those of a ring")
        if platform.machine() != "x86_64":
            raise OSError("Python gives the memory order that the ring needs on x86-64 only")
        data, wctl, rctl, self.data_pipe, self.space_pipe = descriptors
        # Without these seals the writer could cut the files short, which would end us by SIGBUS.
        for fd in (data, wctl, rctl):
            if fcntl.fcntl(fd, F_GET_SEALS) & (SEAL_SHRINK | SEAL_GROW) != SEAL_SHRINK | SEAL_GROW:
                raise ValueError("the size of the ring's memory is not sealed")
        if os.fstat(wctl).st_size != CONTROL_BYTES or os.fstat(rctl).st_size != CONTROL_BYTES:
            raise ValueError("a control page has a wrong size")
        self.maps = [
            mmap.mmap(data, os.fstat(data).st_size, prot=mmap.PROT_READ),
            mmap.mmap(wctl, CONTROL_BYTES, prot=mmap.PROT_READ),
            mmap.mmap(rctl, CONTROL_BYTES, prot=mmap.PROT_READ | mmap.PROT_WRITE),
        ]
        for fd in (data, wctl, rctl):
            os.close(fd)
        self.data = memoryview(self.maps[0])
        self.data_words = self.data.cast("Q")
        self.wctl_words = memoryview(self.maps[1]).cast("Q")
        self.rctl_words = memoryview(self.maps[2]).cast("Q")
        self.rctl_halves = memoryview(self.maps[2]).cast("I")
        self._check_identity()
        self.position = self.rctl_words[0]
        self.answered_wait = 0

    def _check_identity(self):
        magic, abi, header, _, capacity, self.key = struct.unpack_from("<QIIQQQ", self.maps[1])
        if magic != MAGIC:
            raise ValueError("the magic word is missing")
        if (abi, header) != (ABI, HEADER):
            raise ValueError(f"ring ABI {abi}, this reader knows {ABI}")
        if capacity != len(self.data) or capacity & (capacity - 1) or capacity < 4 << 20:
            raise ValueError("the capacity does not match the memory")
        self.mask = capacity - 1

    def next(self):
        """(batch sequence, payload in place) or None. One at a time: release() before the next."""
        while True:
            state = self._look()
            if state is None:
                # The store before the load: else we might sleep on a record whose writer saw us awake.
                self.rctl_halves[0x100 // 4] = WAITS_ON_PIPE
                full_fence()
                state = self._look()
                if state is None:
                    return None
                self.rctl_halves[0x100 // 4] = AWAKE
            offset = self.position & self.mask
            # Copied once, then checked: nothing of it is trusted to lie inside.
            length, payload, sequence = struct.unpack_from("<IIQ", self.data, offset + 8)
            if length < HEADER or length % LINE or length > len(self.data) - offset:
                raise ValueError(f"record at {self.position}: impossible length {length}")
            if payload > length - HEADER:
                raise ValueError(f"record at {self.position}: impossible payload {payload}")
            self.end = self.position + length & (1 << 64) - 1
            if state == COMMITTED:
                begin = offset + HEADER
                return sequence, self.data[begin : begin + payload]
            self.release()  # a gap, or a record that was aborted

    def _look(self):
        # acquire: what is read after this load was written before the stamp.
        stamp = self.data_words[(self.position & self.mask) // 8]
        for state in (COMMITTED, PAD):
            if stamp == (self.position | state) ^ self.key:
                return state
        return None

    def take(self):
        """Work on the record begins."""
        self.rctl_words[0x80 // 8] = self.end  # release

    def release(self):
        """The record's bytes may be overwritten from here on."""
        self.take()
        self.rctl_words[0] = self.position = self.end  # release: our reads come before it
        full_fence()
        # A writer that waits has stored its number and then looked at our position.
        wait = self.wctl_words[0x180 // 8]
        if wait not in (0, self.answered_wait):
            self.answered_wait = wait
            try:
                os.write(self.space_pipe, b"\1")
            except (BlockingIOError, BrokenPipeError):
                pass  # already signalled, or the writer is gone


class Batch:
    """The batch format of @fabric/protocol (batch.ts), read in place."""

    def __init__(self, raw):
        self.raw = raw
        head = struct.unpack_from("<IHBBQQIIIIIIIIII", raw)
        magic, version, self.layout, _, self.id, self.broker_life, self.model, self.size = head[:8]
        self.padded_length, self.attempt, tokens, ids_at, ends_at, _, total, _ = head[8:]
        if magic != 0x54414246 or version != 1 or total > len(raw):
            raise ValueError("no batch starts here")
        self.lengths = raw[64 : 64 + 4 * self.size].cast("i")
        slots = self.size * self.padded_length if self.layout == 0 else tokens
        self.input_ids = raw[ids_at : ids_at + 4 * slots].cast("i")
        ends = raw[ends_at : ends_at + 4 * self.size].cast("I")
        names = bytes(raw[ends_at + 4 * self.size : ends_at + 4 * self.size + ends[-1]])
        self.ids = [names[a:b].decode() for a, b in zip([0, *ends], ends)]

    def rows(self):
        at = 0
        for length in self.lengths:
            yield self.input_ids[at : at + length]
            at += self.padded_length if self.layout == 0 else length


def results_body(batch, rows):
    """results.ts: every item completed, its value a row of float32."""
    count = len(rows)
    values = [struct.pack(f"<{len(row)}f", *row) for row in rows]
    ends, end = [], 0
    for value in values:
        end += len(value)
        ends.append(end)
    body = struct.pack("<QQII", batch.id, batch.broker_life, count, 0)
    body += struct.pack(f"<{count}I", *range(count)) + bytes(4 * count)
    body += struct.pack(f"<{count}I", *ends) + bytes(count) + bytes([2]) * count
    return body + bytes(-len(body) % 8) + b"".join(values)


class Consumer:
    """A connection to the broker: frames in, frames out, and the ring that came with the welcome."""

    def __init__(self, path, contract, name="python", transport="auto"):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.buffer = b""
        hello = {
            "protocol": 1,
            "ringAbi": ABI,
            "name": name,
            "contract": contract,
            "transport": transport,
            "pid": os.getpid(),
            "host": socket.gethostname(),
        }
        self.send(HELLO, json.dumps(hello).encode())
        # The descriptors come with the first bytes of the welcome; read frames only after them.
        self.buffer, descriptors, _, _ = socket.recv_fds(self.socket, 65536, 16)
        kind, body = self._frame(wait=True)
        message = json.loads(body)
        if kind != WELCOME:
            raise ConnectionError(message)
        self.welcome = message
        self.ring = Ring(descriptors) if descriptors else None

    def send(self, kind, body=b""):
        try:
            self.socket.sendall(struct.pack("<IBBH", 8 + len(body), kind, 1, 0) + body)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the broker has closed: what it said about that can still be read

    def _frame(self, wait):
        """One frame, (None, b"") if there is none whole and `wait` is false."""
        while True:
            if len(self.buffer) >= 8:
                length, kind, _, _ = struct.unpack_from("<IBBH", self.buffer)
                if len(self.buffer) >= length:
                    body, self.buffer = self.buffer[8:length], self.buffer[length:]
                    return kind, body
            if not wait and not select.select([self.socket], [], [], 0)[0]:
                return None, b""
            received = self.socket.recv(1 << 20)
            if not received:
                raise ConnectionError("the broker closed the connection")
            self.buffer += received

    def batches(self):
        """(how it came, batch) until the broker drains. The batch ends when the next is asked for."""
        renew_at = 0.0
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        if self.ring:
            poll.register(self.ring.data_pipe, select.POLLIN)
        while True:
            if time.monotonic() >= renew_at:
                self.send(RENEW)
                renew_at = time.monotonic() + self.welcome["renewEveryMs"] / 1000
            record = self.ring.next() if self.ring else None
            if record:
                self.ring.take()
                try:
                    yield "ring", Batch(record[1])
                finally:
                    self.ring.release()
                continue
            kind, body = self._frame(wait=False)
            if kind == BATCH:
                # A large one, or one that found the ring full.
                yield "socket", Batch(memoryview(body))
            elif kind == ERROR:
                raise ConnectionError(json.loads(body))
            elif kind == DRAIN:
                return
            else:
                left_ms = max(0, 1000 * (renew_at - time.monotonic()))
                ready = poll.poll(min(LOOK_AGAIN_MS, left_ms))
                if self.ring and any(fd == self.ring.data_pipe for fd, _ in ready):
                    try:
                        os.read(self.ring.data_pipe, 4096)
                    except BlockingIOError:
                        pass


def main():
    parser = argparse.ArgumentParser(description="reads batches of a broker")
    parser.add_argument("socket")
    parser.add_argument("--batches", type=int, default=0, help="end after so many (0: never)")
    parser.add_argument("--bytes", action="store_true", help="print each batch's bytes as base64")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--input-length", type=int, default=64)
    parser.add_argument("--model", type=int, default=0)
    parser.add_argument("--transport", default="auto", choices=["auto", "ring", "socket"])
    args = parser.parse_args()
    contract = {
        "batchSize": args.batch_size,
        "tokens": args.tokens,
        "inputLength": args.input_length,
        "model": args.model,
    }
    consumer = Consumer(args.socket, contract, transport=args.transport)
    print(json.dumps({"welcome": consumer.welcome}), flush=True)
    done = 0
    batches = consumer.batches()
    for via, batch in batches:
        consumer.send(TAKEN, struct.pack("<Q", batch.id))
        rows = [(len(row), sum(row)) for row in batch.rows()]
        line = {"batch": batch.id, "via": via, "size": batch.size, "ids": batch.ids}
        if args.bytes:
            line["bytes"] = base64.b64encode(batch.raw).decode()
        print(json.dumps(line), flush=True)
        consumer.send(RESULTS, results_body(batch, rows))
        done += 1
        if done == args.batches:
            break
    batches.close()
    consumer.send(BYE)


if __name__ == "__main__":
    main()
