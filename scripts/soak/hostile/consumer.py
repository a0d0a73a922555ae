"""A consumer that does all it can to the broker of its own machine.

    python3 consumer.py SOCKET RING_ABI SECONDS SEED

It registers as an honest one would, misbehaves in one way after another until it is cut off, and
comes back. At the end it prints one line of JSON: what it did and how often it was cut off.
"""
import fcntl
import json
import mmap
import os
import random
import select
import sys
import threading
import time

import wire

PAGE = 4096
# Twice leaseMax, which the run sets to 4 s (a batch that was taken, then the channel behind it), and
# slack for a machine that is busy.
HOLD_SECONDS_MAX = 25
READ_POSITION, TAKEN_POSITION, WAITING = 0x000, 0x080, 0x100
counts = {}


def count_of(what):
    return counts.get(what, 0)


def count(what, by=1):
    counts[what] = count_of(what) + by


class Ring:
    """What a consumer is given: its page to write, the rest to look at."""

    def __init__(self, descriptors):
        self.descriptors = descriptors
        self.page = mmap.mmap(descriptors[wire.RCTL], PAGE)
        self.control = mmap.mmap(descriptors[wire.WCTL], PAGE, prot=mmap.PROT_READ)
        self.data = mmap.mmap(descriptors[wire.DATA], 0, prot=mmap.PROT_READ)

    def write(self, offset, value, size=8):
        self.page[offset:offset + size] = (value % 2**(8 * size)).to_bytes(size, 'little')

    def tail(self):
        return int.from_bytes(self.control[0x80:0x88], 'little')

    def batch(self):
        """The number of any batch that came, or None."""
        at = self.data.find(b'FBAT')
        return None if at < 0 else self.data[at + 8:at + 16]

    def close(self):
        for mapped in (self.page, self.control, self.data):
            mapped.close()
        for fd in self.descriptors:
            os.close(fd)


def clear_flags(fd):
    """O_NONBLOCK is the one that would block a broker which shared the description."""
    for command, value in ((fcntl.F_SETFL, 0), (fcntl.F_SETFD, 0), (fcntl.F_SETFL, os.O_APPEND)):
        try:
            fcntl.fcntl(fd, command, value)
            count('flags cleared')
        except OSError:
            count('flags refused')


def other_end(fd, flags):
    """A pipe's other end, by its file in /proc: a description of its own."""
    try:
        return os.open(f'/proc/self/fd/{fd}', flags | os.O_NONBLOCK)
    except OSError:
        return -1


def write_quietly(fd, data):
    try:
        return os.write(fd, data)
    except OSError:
        return 0


def tamper_memory(ring):
    """Each of these must fail, or hurt nobody but us."""
    for fd in ring.descriptors[:3]:
        for attempt in (
            lambda: os.ftruncate(fd, 0),
            lambda: os.ftruncate(fd, 1 << 40),
            lambda: os.pwrite(fd, b'\xff' * 64, 0) if fd != ring.descriptors[wire.RCTL] else None,
            lambda: mmap.mmap(fd, PAGE) if fd != ring.descriptors[wire.RCTL] else None,
            lambda: fcntl.fcntl(fd, 1033, 0x8),  # seal it against the broker's writes
        ):
            try:
                if attempt() is not None:
                    count('MEMORY WAS CHANGED')
            except (OSError, ValueError):
                count('memory refused')


def garbage_page(ring, chance):
    ring.page[0:PAGE] = chance.randbytes(PAGE)


def lie_about_reading(ring, chance):
    tail = ring.tail()
    lies = (tail, tail + 64, tail - 64, tail + 1, chance.getrandbits(64), 2**63, 0, chance.getrandbits(12) * 64)
    ring.write(READ_POSITION, chance.choice(lies))
    ring.write(TAKEN_POSITION, chance.choice(lies))


def flood(ring):
    """Wake-ups for nothing, and a data pipe that is always full."""
    for _ in range(2000):
        write_quietly(ring.descriptors[wire.SPACE_PIPE], b'\x01' * 512)
    end = other_end(ring.descriptors[wire.DATA_PIPE], os.O_WRONLY)
    if end >= 0:
        while write_quietly(end, b'\x00' * PAGE) > 0:
            pass
        os.close(end)
    for _ in range(2000):
        ring.write(WAITING, 0xFFFFFFFF, 4)


def garbage_socket(connection, chance):
    kind = chance.randrange(5)
    if kind == 0:
        data = chance.randbytes(chance.randrange(1, 5000))
    elif kind == 1:
        data = wire.frame(chance.randrange(0, 12), chance.randbytes(chance.randrange(0, 300)))
    elif kind == 2:  # results that lie about their counts
        data = wire.frame(wire.RESULTS, chance.randbytes(16) + chance.randbytes(2) + bytes(6))
    elif kind == 3:
        data = wire.frame(wire.TAKEN, chance.randbytes(8))
    else:
        data = b''.join(wire.frame(wire.RENEW) for _ in range(2000))
    connection.sendall(data)
    count('socket garbage')


def unasked_descriptors(connection):
    null = os.open('/dev/null', os.O_RDONLY)
    wire.send_descriptors(connection, wire.frame(wire.RENEW), [null] * wire.PASSED_MAX)
    os.close(null)
    count('descriptors pressed on the broker', wire.PASSED_MAX)


def hold(connection, seconds):
    """Takes batches and renews like a good one, and settles nothing; until cut off."""
    until = time.monotonic() + seconds
    connection.settimeout(0.05)
    while time.monotonic() < until:
        connection.sendall(wire.frame(wire.RENEW))
        try:
            if connection.recv(1 << 16) == b'':
                return
        except TimeoutError:
            pass


def take_and_hold(connection, ring):
    """Longer than the broker lets anyone keep a batch."""
    number = ring.batch()
    if number is None:
        return
    connection.sendall(wire.frame(wire.TAKEN, number))
    count('batches held')
    hold(connection, 6)


def hold_for_ever(path, ring_abi, take, until):
    """Registers, renews, and settles nothing: with `take` it works on a batch for ever, without it
    leaves all in its channel. The ring's space is never released. Comes back when it is cut off."""
    number = 0
    what = 'taken' if take else 'left in the channel'
    while time.monotonic() < until:
        number += 1
        try:
            connection, _, descriptors = wire.register(path, f'holder-{what[:4]}{number}', ring_abi)
        except OSError:
            time.sleep(0.05)
            continue
        count(f'holders, {what}')
        ring = Ring(descriptors) if descriptors else None
        end = time.monotonic() + HOLD_SECONDS_MAX
        try:
            connection.settimeout(0.05)
            taken = not take
            while time.monotonic() < until:
                connection.sendall(wire.frame(wire.RENEW))
                if not taken and ring and ring.batch() is not None:
                    connection.sendall(wire.frame(wire.TAKEN, ring.batch()))
                    taken = True
                try:
                    if connection.recv(1 << 16) == b'':
                        raise ConnectionError
                except TimeoutError:
                    pass
                if time.monotonic() > end:
                    count('HELD FOR EVER')
                    break
        except ConnectionError:
            count(f'holders cut off, {what}')
        except TimeoutError:
            count('holders that the broker does not read')
        finally:
            connection.close()
            if ring:
                ring.close()


def one_life(path, ring_abi, number, chance):
    connection, _, descriptors = wire.register(path, f'hostile{number}', ring_abi)
    count('registered')
    ring = Ring(descriptors) if descriptors else None
    acts = [lambda: garbage_socket(connection, chance), lambda: unasked_descriptors(connection),
            lambda: hold(connection, chance.random())]
    if ring:
        for fd in descriptors:
            clear_flags(fd)
        tamper_memory(ring)
        acts += [lambda: garbage_page(ring, chance), lambda: lie_about_reading(ring, chance),
                 lambda: flood(ring), lambda: take_and_hold(connection, ring)]
    clear_flags(connection.fileno())
    connection.settimeout(20)
    try:
        for _ in range(chance.randrange(1, 12)):
            chance.choice(acts)()
        if chance.random() < 0.5:  # wait for the verdict; the other half just goes
            connection.settimeout(2)
            while connection.recv(1 << 16):
                pass
            count('cut off by the broker')
    except TimeoutError:
        count('still connected')
    except (ConnectionError, BrokenPipeError):
        count('cut off by the broker')
    finally:
        connection.close()
        if ring:
            ring.close()


def strangers(path, total, until):
    """Connections that never say what they are; some say nonsense. All at once, and kept open for as
    long as the broker lets them; again and again."""
    chance = random.Random(total)
    while time.monotonic() < until:
        crowd = select.poll()
        open_now = {}
        for _ in range(total):
            try:
                stranger = wire.connect(path)
            except OSError:
                count('strangers refused')
                continue
            count('strangers')
            if chance.random() < 0.3:
                write_quietly(stranger.fileno(), chance.randbytes(chance.randrange(1, 64)))
            open_now[stranger.fileno()] = stranger
            crowd.register(stranger, select.POLLIN | select.POLLHUP)
        leave = min(until, time.monotonic() + 3)
        while open_now and time.monotonic() < leave:
            for fd, _ in crowd.poll(50):
                crowd.unregister(fd)
                open_now.pop(fd).close()
                count('strangers sent away')
        for stranger in open_now.values():
            stranger.close()


def main():
    path, ring_abi = sys.argv[1], int(sys.argv[2])
    seconds, seed = float(sys.argv[3]), int(sys.argv[4])
    until = time.monotonic() + seconds
    others = [threading.Thread(target=strangers, args=(path, 1000, until))]
    for take in (True, False):
        others.append(threading.Thread(target=hold_for_ever, args=(path, ring_abi, take, until)))
    for other in others:
        other.start()
    chance = random.Random(seed)
    number = 0
    while time.monotonic() < until:
        number += 1
        try:
            one_life(path, ring_abi, number, chance)
        except (ConnectionError, TimeoutError, BlockingIOError) as error:
            count('refused')
            if count_of('registered') == 0:
                print(f'never let in: {error}', file=sys.stderr)
    for other in others:
        other.join()
    print(json.dumps(counts))


main()
