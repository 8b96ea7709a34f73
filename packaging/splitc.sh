#!/bin/sh
# Puts the Split-C compiler, its runtime and its headers into a folder:
#
#   splitc.sh DIRECTORY-OF-WHAT-CARGO-BUILT HOME [DESTDIR]
#
# HOME gets bin, include and lib, and the manual page in share/man. The compiler finds the folders by itself, whatever HOME is.
#
# Refused: a compiler or a runtime that was not built, a relative HOME.
set -eu
[ $# = 2 ] || [ $# = 3 ] || { echo "usage: splitc.sh DIRECTORY-OF-WHAT-CARGO-BUILT HOME [DESTDIR]" >&2; exit 2; }
built=$1 home=$2 destdir=${3:-}
case $home in /*) ;; *) echo "splitc.sh: HOME must begin with /, not be $home" >&2; exit 2 ;; esac
for file in splitcc libsplitc.so; do
    [ -f "$built/$file" ] || { echo "splitc.sh: no $built/$file: build it first (make splitc)" >&2; exit 1; }
done
here=$(cd "$(dirname "$0")" && pwd)

install -D -m 755 "$built/splitcc" "$destdir$home/bin/splitcc"
install -d "$destdir$home/share/man/man1"
"$built/splitcc" --manual > "$destdir$home/share/man/man1/splitcc.1"
chmod 644 "$destdir$home/share/man/man1/splitcc.1"
install -D -m 644 "$built/libsplitc.so" "$destdir$home/lib/libsplitc.so"
(cd "$here/../faces/splitc/include" && find . -type f -exec install -D -m 644 {} "$destdir$home/include/{}" \;)
