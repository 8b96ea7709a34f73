#!/bin/sh
# Makes the files of the C library from the archive that cargo built, and puts them where they belong:
#
#   install.sh ARCHIVE VERSION PREFIX [DESTDIR [LIBDIR]]
#
# Cargo cannot make the shared library that is installed: it hands the linker a list of symbols of its own, and linkers refuse
# to join that with versions of symbols (decision 0041). So the system's compiler links it, from the archive.
#
# Refused: an undefined symbol, a relative PREFIX. Of other symbols than hamlyn_* none is exported, nor global in the archive.
set -eu

usage() {
    echo "usage: install.sh ARCHIVE VERSION PREFIX [DESTDIR [LIBDIR]]" >&2
    exit 2
}
[ $# -ge 3 ] && [ $# -le 5 ] || usage
archive=$1 version=$2 prefix=$3 destdir=${4:-} libdir=${5:-$3/lib}
includedir=$prefix/include
case $prefix$libdir in /*) ;; *) echo "install.sh: PREFIX must begin with /, not be $prefix" >&2; exit 2 ;; esac
[ -f "$archive" ] || { echo "install.sh: no $archive: build it first (cargo build --release -p hamlyn-c)" >&2; exit 1; }

: "${CC:=cc}" "${LD:=ld}" "${OBJCOPY:=objcopy}" "${AR:=ar}"
here=$(cd "$(dirname "$0")" && pwd)
major=${version%%.*}
minor=${version#*.}
minor=${minor%%.*}
soname=libhamlyn.so.$major
# Of a program that is linked with the archive: what `rustc --print native-static-libs` says of it.
native_libraries="-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# Everything that no exported function reaches is left out.
$CC -shared -o "$work/libhamlyn.so" -Wl,-soname,"$soname" -Wl,--version-script="$here/hamlyn.map" \
    -Wl,--whole-archive "$archive" -Wl,--no-whole-archive -Wl,--gc-sections -Wl,-z,relro,-z,now -Wl,--no-undefined \
    -Wl,--as-needed $native_libraries

# The archive that is installed is one object, of which only our symbols are global: two archives of Rust libraries can be
# linked into one program, and no program comes to depend on what is inside. The compiler's notes to itself, which only
# a linker with exactly this LLVM can read, are left out.
$LD -r --whole-archive "$archive" -o "$work/all.o"
$OBJCOPY --wildcard --keep-global-symbol='hamlyn_*' --remove-section=.llvmbc --remove-section=.llvmcmd \
    "$work/all.o" "$work/hamlyn.o"
rm "$work/all.o"
$AR rcsD "$work/libhamlyn.a" "$work/hamlyn.o"

fill() {
    sed -e "s|@prefix@|$prefix|g" -e "s|@libdir@|$libdir|g" -e "s|@includedir@|$includedir|g" \
        -e "s|@version@|$version|g" -e "s|@major@|$major|g" -e "s|@minor@|$minor|g" -e "s|@soname@|$soname|g" \
        -e "s|@native_libraries@|$native_libraries|g" \
        -e "s|@includedir_from_libdir@|$(realpath -m --relative-to="$libdir" "$includedir")|g" "$here/$1.in"
}
fill hamlyn.pc > "$work/hamlyn.pc"
fill hamlyn-config.cmake > "$work/hamlyn-config.cmake"
fill hamlyn-config-version.cmake > "$work/hamlyn-config-version.cmake"

install -d "$destdir$libdir/pkgconfig" "$destdir$libdir/cmake/hamlyn" "$destdir$includedir"
install -m 644 "$work/libhamlyn.so" "$destdir$libdir/libhamlyn.so.$version"
ln -sf "libhamlyn.so.$version" "$destdir$libdir/$soname"
ln -sf "$soname" "$destdir$libdir/libhamlyn.so"
install -m 644 "$work/libhamlyn.a" "$destdir$libdir/libhamlyn.a"
install -m 644 "$work/hamlyn.pc" "$destdir$libdir/pkgconfig/hamlyn.pc"
install -m 644 "$work/hamlyn-config.cmake" "$work/hamlyn-config-version.cmake" "$destdir$libdir/cmake/hamlyn/"
(cd "$here/../include" && find . -type f -exec install -D -m 644 {} "$destdir$includedir/{}" \;)
