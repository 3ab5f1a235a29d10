"""One end of associations of both styles, by pysctp: `one_end.py serve|call ADDRESS PORT`; the callee says "served"."""

import socket
import sctp
import sys

role, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])


def one_to_one():
    sock = sctp.sctpsocket_tcp(socket.AF_INET)
    sock.initparams.num_ostreams = 7
    return sock


def one_to_many():
    sock = sctp.sctpsocket_udp(socket.AF_INET)
    sock.events.data_io = sock.events.association = True
    return sock


def words_of(sock):
    """The next message, whatever is told before it."""
    while True:
        sender, _, text, info = sock.sctp_recv(1 << 17)
        if isinstance(info, sctp.sndrcvinfo):
            return sender, text, info


LONG = bytes(range(256)) * 256

if role == "serve":
    waiting, many = one_to_one(), one_to_many()
    waiting.bind((address, port))
    many.bind((address, port + 1))
    waiting.listen(5)
    many.listen(5)
    near, _ = waiting.accept()
    near.events.data_io = True
    _, text, info = words_of(near)
    assert text == b"forth" and info.stream == 3 and info.ppid == 5, (text, vars(info))
    assert near.get_status().outstrms == 7, vars(near.get_status())
    assert near.sctp_send(b"back", stream=6) == 4
    assert near.sctp_send(LONG, stream=6) == len(LONG)
    sender, text, info = words_of(many)
    assert text == b"implicit", text
    alone = many.peeloff(info.assoc_id)
    assert alone.send(b"mine") == 4
    assert near.recv(100) == b""
    print("served")
else:
    client = one_to_one()
    client.connect((address, port))
    client.events.data_io = True
    assert client.sctp_send(b"forth", ppid=socket.htonl(5), stream=3) == 5
    _, text, info = words_of(client)
    assert text == b"back" and info.stream == 6, (text, vars(info))
    long = b""
    while len(long) < len(LONG):
        long += client.recv(1 << 17)
    assert long == LONG, len(long)
    other = one_to_many()
    other.sctp_send(b"implicit", to=(address, port + 1))
    assert words_of(other)[1] == b"mine"
    client.close()
    other.close()
