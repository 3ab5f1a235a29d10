# Start of the machine, which both of its first programs have in common: programs, file systems, modules.

/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev

for module in /modules/*; do
    insmod "$module"
done
