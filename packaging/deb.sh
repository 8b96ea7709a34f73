#!/bin/sh
# Makes the Debian packages of the libraries, of the command and of Split-C from what `make library am udm build splitc` has built:
#
#   deb.sh DIRECTORY
#
# They are for the Debian (or Ubuntu) on which they are made, and newer ones. The same tree gives the same packages: times are
# those of the last commit, or SOURCE_DATE_EPOCH.
#
# Refused: a system without dpkg-deb and dpkg-shlibdeps, a library or command that was not built.
set -eu
[ $# = 1 ] || { echo "usage: deb.sh DIRECTORY" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
to=$(cd "$1" && pwd)
: "${TARGET:=$root/target/release}" "${REVISION:=1}"

for tool in dpkg-deb dpkg-shlibdeps; do
    command -v $tool >/dev/null || { echo "deb.sh: no $tool: packages can be made where there is dpkg-dev (apt-get install dpkg-dev)" >&2; exit 1; }
done
for file in libhamlyn_c.a libhamlyn_am_c.a libhamlyn_udm_c.a hamlyn splitcc libsplitc.so; do
    [ -f "$TARGET/$file" ] || { echo "deb.sh: no $TARGET/$file: build it first (make library am udm build splitc)" >&2; exit 1; }
done

upstream=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -1)
version=$upstream-$REVISION
soversion=${upstream%%.*}
architecture=$(dpkg --print-architecture)
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
libdir=usr/lib/$multiarch
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || stat -c %Y "$root/CHANGELOG.md")}
export SOURCE_DATE_EPOCH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
umask 022
# Others than root make packages, too: the archives say that root owns everything.
bin=$work/hamlyn splitc=$work/hamlyn-splitc

# A library, hamlyn or hamlyn_am or hamlyn_udm, with what compiles with it: the trees of libNAMEn and libNAME-dev.
library() {
    name=$1 face=$2
    package=lib$(echo "$name" | tr _ -)
    stage=$work/stage-$name lib=$work/$package$soversion dev=$work/$package-dev
    LIBRARY=$name FACE=$root/$face "$root/faces/c/packaging/install.sh" "$TARGET/lib${name}_c.a" "$upstream" /usr "$stage" "/$libdir"

    mkdir -p "$lib/$libdir" "$lib/DEBIAN"
    cp -a "$stage/$libdir/lib$name".so.* "$lib/$libdir/"
    strip --strip-unneeded --remove-section=.comment --remove-section=.note "$lib/$libdir/lib$name.so.$upstream"
    echo "lib$name $soversion $package$soversion (>= $upstream)" > "$lib/DEBIAN/shlibs"
    echo "activate-noawait ldconfig" > "$lib/DEBIAN/triggers"

    mkdir -p "$dev/$libdir"
    cp -a "$stage/usr/include" "$dev/usr/"
    cp -a "$stage/$libdir/lib$name.so" "$stage/$libdir/lib$name.a" "$stage/$libdir/pkgconfig" "$stage/$libdir/cmake" "$dev/$libdir/"
    strip --strip-debug --enable-deterministic-archives "$dev/$libdir/lib$name.a"
}
library hamlyn faces/c
library hamlyn_am faces/am
library hamlyn_udm faces/udm

# The command
"$root/packaging/command.sh" "$TARGET/hamlyn" /usr "$bin"
strip --strip-unneeded --remove-section=.comment --remove-section=.note "$bin/usr/bin/hamlyn"
mkdir -p "$bin/usr/share/zsh"
mv "$bin/usr/share/zsh/site-functions" "$bin/usr/share/zsh/vendor-completions"
gzip -9n "$bin/usr/share/man/man1"/*.1

# The compiler of Split-C with its runtime, in a folder of its own: the compiler looks for headers and runtime beside the folder that
# it lies in, also if it is started by a link, and programs find the runtime where they were linked with it.
home=usr/lib/splitc
"$root/packaging/splitc.sh" "$TARGET" "/$home" "$splitc"
strip --strip-unneeded --remove-section=.comment --remove-section=.note "$splitc/$home/bin/splitcc" "$splitc/$home/lib/libsplitc.so"
mkdir -p "$splitc/usr/bin"
ln -s ../lib/splitc/bin/splitcc "$splitc/usr/bin/splitcc"
mv "$splitc/$home/share" "$splitc/usr/share"
gzip -9n "$splitc/usr/share/man/man1"/*.1

# What every package has.
finish() {
    package=$1 tree=$2 section=$3 depends=$4 short=$5 long=$6
    documents=$tree/usr/share/doc/$package
    mkdir -p "$tree/DEBIAN" "$documents"
    cat > "$documents/copyright" <<TEXT
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: hamlyn

Files: *
Copyright: $(sed -n 's/^Copyright (c) *//Ip' "$root/LICENSE-MIT" | head -1)
License: MIT or Apache-2.0
 At your choice.

License: MIT
$(sed -n '/^Permission/,$p' "$root/LICENSE-MIT" | sed -e 's/^$/./' -e 's/^/ /')

License: Apache-2.0
 On Debian systems the text of this licence is in
 /usr/share/common-licenses/Apache-2.0.
TEXT
    gzip -9nc "$root/CHANGELOG.md" > "$documents/changelog.gz"
    {
        echo "hamlyn ($version) unstable; urgency=medium"
        echo
        echo "  * Version $upstream: see changelog.gz."
        echo
        echo " -- $maintainer  $(date -Ru -d "@$SOURCE_DATE_EPOCH")"
    } | gzip -9n > "$documents/changelog.Debian.gz"
    (cd "$tree" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | LC_ALL=C sort -z | xargs -0 md5sum) > "$tree/DEBIAN/md5sums"
    {
        echo "Package: $package"
        echo "Source: hamlyn"
        echo "Version: $version"
        echo "Section: $section"
        echo "Priority: optional"
        echo "Architecture: $architecture"
        case $package in lib*) echo "Multi-Arch: same" ;; esac
        echo "Maintainer: $maintainer"
        echo "Installed-Size: $(du -k --apparent-size -s "$tree" | cut -f1)"
        [ -z "$depends" ] || echo "Depends: $depends"
        echo "Description: $short"
        echo "$long" | sed 's/^/ /'
    } > "$tree/DEBIAN/control"
    find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group --build "$tree" "$to/${package}_${version}_$architecture.deb"
}
maintainer=${DEB_MAINTAINER:-The Hamlyn engineers <engineers@hamlyn.invalid>}

# dpkg-shlibdeps looks for a source package around it.
mkdir "$work/debian"
printf 'Source: hamlyn\n\nPackage: hamlyn\nArchitecture: any\n' > "$work/debian/control"
shared() { (cd "$work" && dpkg-shlibdeps -O "$@" 2>/dev/null | sed -n 's/^shlibs:Depends=//p'); }

# The two packages of a library: its summary, and what the first and the second have.
finish_library() {
    name=$1 summary=$2 about=$3 base=lib$(echo "$1" | tr _ -)
    finish "$base$soversion" "$work/$base$soversion" libs "$(shared "$work/$base$soversion/$libdir/lib$name.so.$upstream")" \
        "$summary" "$about
This package has the shared library."
    finish "$base-dev" "$work/$base-dev" libdevel "$base$soversion (= $version), libc6-dev" \
        "$summary (development files)" "$about
This package has the headers for C and C++, the static library, and what
pkg-config and CMake want."
}
what="Hamlyn is a network interface in software: programs that do not trust each
other exchange messages at memory speed, on one host without a kernel call
or a broker, across hosts encrypted over UDP. The sender names the place in
the receiver's memory, and a key guards it.
."
finish_library hamlyn "protected messages between programs at memory speed" "$what"
finish_library hamlyn_am "Active Messages II over protected messages" "Active Messages call a handler of the receiver, which may answer. Programs
open endpoints with tags; a message that cannot be delivered comes back to
its sender. Names and numbers are those of AMUDP and AMMPI.
."
finish_library hamlyn_udm "User Direct Messaging and C Region Library" "User Direct Messaging calls a handler that extracts its message, and lets a
program hold messages off in atomic sections. The C Region Library shares
memory in software over it.
."
finish hamlyn "$bin" net "$(shared "$bin/usr/bin/hamlyn")" \
    "protected messages between programs (command)" "$what
This package has the command, which shows, measures and traces it, makes
keys, carries pipes, and starts parallel programs."
finish hamlyn-splitc "$splitc" devel "$(shared "$splitc/$home/bin/splitcc" "$splitc/$home/lib/libsplitc.so"), gcc, libc6-dev, hamlyn (= $version)" \
    "Split-C compiler and runtime" "Split-C is C with a global address space: a program reads and writes the
memory of its other processes as it does its own, and says which accesses
may overlap.
.
This package has the compiler, the runtime and its headers for C, C++ and
Split-C. The command hamlyn starts programs, on one host or several."
