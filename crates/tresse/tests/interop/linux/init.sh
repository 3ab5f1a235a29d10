#!/bin/busybox sh
# What the virtual machine does: SCTP in UDP with all extensions, and on each serial port one peer at a time.
#
# A line "NUMBER SETTINGS..." from the host starts a peer, which has the port until it ends; "gone NUMBER" says that it has.
# The machine ends when the host lets go of a port.

. /boot

# 127.0.0.0/8 leads out of the machine: tresse has addresses of 127.0.0.0/16 on the host, the peers those of 127.1.0.0/16.
echo 1 >/proc/sys/net/ipv4/conf/eth0/route_localnet
ip link set eth0 arp off up
ip route add local 127.1.0.0/16 dev eth0 table local
ip route add 127.0.0.0/16 dev eth0

cd /proc/sys/net/sctp || poweroff -f
echo "$UDP_PORT" >udp_port
for extension in reconf_enable intl_enable auth_enable addip_enable; do
    echo 1 >$extension
done
# Losses are part of the tests, and so are hosts that stand still; longer timers would only make them long.
echo 200 >rto_initial
echo 100 >rto_min
echo 1000 >rto_max
echo 60 >association_max_retrans
echo 2 >path_max_retrans
echo 1000 >hb_interval
cd /

serve() {
    echo ready
    while read -r number settings; do
        # A command that came when its peer had ended already.
        case "$number" in '' | *[!0-9]*) continue ;; esac
        # shellcheck disable=SC2086
        /peer $settings
        echo "gone $number"
    done
    poweroff -f
}

for port in /dev/vport*; do
    serve <>"$port" >&0 &
done
wait
