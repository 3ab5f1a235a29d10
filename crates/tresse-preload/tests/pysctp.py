"""Both ends of associations of both styles, by pysctp: prints "served" when all is as it should be."""

import socket
import sctp

# One-to-one: both ends in this process.
server = sctp.sctpsocket_tcp(socket.AF_INET)
server.initparams.num_ostreams = 7
server.bind(("127.0.0.1", 0))
server.listen(5)
client = sctp.sctpsocket_tcp(socket.AF_INET)
client.connect(server.getsockname())
near, name = server.accept()
near.events.data_io = True
assert name == client.getsockname(), name
assert client.sctp_send(b"forth", ppid=socket.htonl(5), stream=3) == 5
_, flags, text, info = near.sctp_recv(100)
assert text == b"forth" and flags & sctp.FLAG_EOR, (flags, text)
assert info.stream == 3 and info.ppid == 5, vars(info)
assert near.send(b"back") == 4 and client.recv(100) == b"back"
assert near.get_status().outstrms == 7, vars(near.get_status())
assert client.getpaddrs(0) == (server.getsockname(),)
client.close()
assert near.recv(100) == b""
near.close()
server.close()

# One-to-many: a message sets the association up, and notifications tell of it.
many = sctp.sctpsocket_udp(socket.AF_INET)
many.events.data_io = many.events.association = True
many.bind(("127.0.0.1", 0))
many.listen(5)
other = sctp.sctpsocket_udp(socket.AF_INET)
other.sctp_send(b"implicit", to=many.getsockname())
_, _, _, told = many.sctp_recv(2000)
assert isinstance(told, sctp.assoc_change) and told.state == sctp.assoc_change.state_COMM_UP, told
sender, _, text, info = many.sctp_recv(2000)
assert text == b"implicit" and sender[1] == other.getsockname()[1], (sender, text)
alone = many.peeloff(told.assoc_id)
assert alone.send(b"mine") == 4
assert other.recv(100) == b"mine"
print("served")
