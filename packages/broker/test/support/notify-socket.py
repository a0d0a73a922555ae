# The other end of sd_notify for the tests: prints each message that comes to the socket, and closes
# the descriptor of a barrier, for which systemd-notify waits.
import os
import socket
import sys

server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
server.bind(sys.argv[1])
print("listening", flush=True)
while True:
    message, descriptors, _, _ = socket.recv_fds(server, 4096, 4)
    for descriptor in descriptors:
        os.close(descriptor)
    print(message.decode(), flush=True)
