"""The consumer's half of the wire, as far as a hostile one needs it. Standard library only."""
import array
import json
import os
import socket
import struct
import time

HELLO, WELCOME, ERROR, RENEW, TAKEN, RESULTS, DRAIN, BYE, BATCH = range(1, 10)
PROTOCOL = 1
DATA, WCTL, RCTL, DATA_PIPE, SPACE_PIPE = range(5)
PASSED_MAX = 16


def frame(kind, body=b''):
    return struct.pack('<IBBH', 8 + len(body), kind, PROTOCOL, 0) + body


def hello(name, ring_abi, transport):
    contract = {'batchSize': 8, 'tokens': 512, 'inputLength': 64, 'model': 0}
    wishes = {
        'protocol': PROTOCOL, 'ringAbi': ring_abi, 'name': name, 'contract': contract,
        'transport': transport, 'pid': os.getpid(), 'host': 'hostile',
    }
    return frame(HELLO, json.dumps(wishes).encode())


def connect(path):
    """Waits while the kernel's queue of connections is full: to fill that needs no broker."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(20)
    until = time.monotonic() + 20
    while True:
        try:
            connection.connect(path)
            return connection
        except BlockingIOError:
            if time.monotonic() > until:
                raise
            time.sleep(0.005)


def register(path, name, ring_abi, transport='ring'):
    """Returns the connection, the welcome and the ring's descriptors."""
    connection = connect(path)
    connection.sendall(hello(name, ring_abi, transport))
    data, passed, _, _ = socket.recv_fds(connection, 1 << 16, PASSED_MAX)
    while len(data) < 4 or len(data) < struct.unpack_from('<I', data)[0]:
        more = connection.recv(1 << 16)
        if not more:
            raise ConnectionError('closed before the welcome')
        data += more
    length, kind = struct.unpack_from('<IB', data)
    body = json.loads(data[8:length])
    if kind != WELCOME:
        raise ConnectionError(f'refused: {body}')
    return connection, body, list(passed)


def send_descriptors(connection, data, passed):
    """Descriptors that nobody asked for, beside `data`."""
    part = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', passed))
    connection.sendmsg([data], [part], socket.MSG_DONTWAIT)
