#!/bin/sh
# Installs the Debian packages and the Python wheel of what `make dist` made into a fresh root, uses them there as their users would,
# purges them, and compares the root with what it was before:
#
#   check-packages.sh DIRECTORY-OF-DIST WORK
#
# The root is a minimal Debian of the release and from the mirror of this machine, made once with debootstrap and kept as an
# archive in WORK. Each run unpacks it anew, in namespaces of its own, so nothing stays mounted however this ends. Needs root.
set -eu
[ $# = 2 ] || { echo "usage: check-packages.sh DIRECTORY-OF-DIST WORK" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
packages=$(cd "$1" && pwd)
mkdir -p "$2"
work=$(cd "$2" && pwd)
[ "$(id -u)" = 0 ] || { echo "check-packages.sh: a fresh root can be made by root only" >&2; exit 1; }
. /etc/os-release
release=${VERSION_CODENAME:?}
base=$work/base-$ID-$release.tar
# What users of the packages have: compilers, CMake, pkg-config, Python; and ip, for the demonstration's hosts.
tools=ca-certificates,gcc,g++,libc6-dev,cmake,make,pkg-config,iproute2,man-db,bash-completion,python3,python3-venv,python3-pip

ls "$packages"/*.deb >/dev/null 2>&1 || { echo "check-packages.sh: no Debian packages in $packages: make them first (make dist)" >&2; exit 1; }
if command -v lintian >/dev/null; then
    echo "== lintian"
    lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "$packages"/*.deb
else
    echo "SKIPPED: no lintian (apt-get install lintian), which looks for what Debian would refuse"
fi

if [ ! -f "$base" ]; then
    mirror=$(sed -n -e 's/^URIs: *//p' /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -1)
    [ -n "$mirror" ] || mirror=$(sed -n -e "s/^deb \(\[[^]]*\] \)\?\([^ ]*\) $release .*/\2/p" /etc/apt/sources.list | head -1)
    echo "== a minimal $ID $release from ${mirror:-the default mirror}"
    rm -rf "$work/base"
    unshare --mount --pid --fork debootstrap --variant=minbase --include=$tools "$release" "$work/base" $mirror > "$work/debootstrap.log" 2>&1 \
        || { tail -5 "$work/debootstrap.log" >&2; echo "check-packages.sh: no fresh root could be made ($work/debootstrap.log)" >&2; exit 1; }
    tar -C "$work/base" --one-file-system --numeric-owner -cf "$base.part" .
    mv "$base.part" "$base"
    rm -rf --one-file-system "$work/base"
fi

echo "== a fresh root"
fresh=$work/root
rm -rf --one-file-system "$fresh"
mkdir "$fresh"
trap 'rm -rf --one-file-system "$fresh"' EXIT
trap 'exit 1' HUP INT TERM
tar -C "$fresh" -xf "$base"
mkdir "$fresh/packages" "$fresh/programs"
cp "$packages"/*.deb "$fresh/packages/"
cp -R "$root/examples/c" "$root/examples/python" "$root/examples/am" "$root/examples/udm" "$fresh/programs/"
cp "$root/faces/udm/tests/programs/installed.c" "$fresh/programs/udm/"
# The program of docs/split-c.md.
sed -n '/^```c$/,/^```$/p' "$root/docs/split-c.md" | sed -e 1d -e '/^```$/,$d' > "$fresh/programs/sum.sc"
cp -R "$root/faces/c/tests/programs/installed.c" "$root/faces/c/tests/programs/installed.cpp" "$root/faces/c/tests/programs/cmake" "$fresh/programs/"
if ls "$packages"/*.whl >/dev/null 2>&1; then
    cp "$packages"/*.whl "$fresh/packages/"
else
    echo "SKIPPED: no Python wheel in $packages, so none is installed"
fi
install -m 755 "$root/packaging/use-packages.sh" "$fresh/programs/"

# The mounts end with the namespace. The network is the namespace's own: nothing is fetched from here on.
unshare --mount --pid --net --ipc --uts --fork sh -eu -c '
    mount --make-rprivate /
    mount -t proc proc "$1/proc"
    mount -t sysfs sysfs "$1/sys"
    mount -t tmpfs tmpfs "$1/dev"
    mount -t tmpfs tmpfs "$1/run"
    for device in null zero full random urandom tty; do : > "$1/dev/$device"; mount --bind "/dev/$device" "$1/dev/$device"; done
    mkdir "$1/dev/shm"
    ip link set lo up 2>/dev/null || true
    exec chroot "$1" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        sh /programs/use-packages.sh
' sh "$fresh"
