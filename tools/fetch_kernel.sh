#!/usr/bin/env bash
# Brings Debian's kernel for virtual machines into target/kernel, without installing it: its package wants to be started
# from, and this one is for the tests against its SCTP alone (crates/tresse/tests/interop/linux.rs). Needs apt-get.
set -euo pipefail
cd "$(dirname "$0")/.."

if compgen -G 'target/kernel/boot/vmlinuz-*' >/dev/null; then
    exit 0
fi
# The package of the latest kernel is empty: it names the one that is meant.
package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
if [[ -z $package ]]; then
    echo "tools/fetch_kernel.sh: linux-image-cloud-amd64 is not known here: apt-get update, on Debian for amd64" >&2
    exit 1
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
(cd "$folder" && apt-get download -qq -o APT::Sandbox::User=root "$package")
mkdir -p target/kernel
dpkg-deb --extract "$folder"/*.deb target/kernel
