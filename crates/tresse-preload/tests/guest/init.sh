#!/bin/busybox sh
# What the virtual machine does: the kernel's SCTP, raw and in UDP, and a shell for everybody who connects to port 7.

. /boot

ip link set lo up
ip addr add "$GUEST1/24" dev eth0
ip addr add "$GUEST2/24" dev eth0
ip link set eth0 up

# Who calls is answered as it called; `encap_port` says how the programs of this machine call.
cd /proc/sys/net/sctp || poweroff -f
echo "$SCTP_IN_UDP" >udp_port
cd /
export HOME=/tmp
nc -ll -p 7 -e /serve
