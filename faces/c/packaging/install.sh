#!/bin/sh
# Makes the files of the C library from the archive that cargo built, and puts them where they belong:
#
#   install.sh ARCHIVE VERSION PREFIX [DESTDIR [LIBDIR]]
#
# LIBRARY and FACE in the environment name another library than hamlyn, and the folder that has its headers (include) and templates
# (packaging).
#
# Cargo cannot make the shared library that is installed: it hands the linker a list of symbols of its own, and linkers refuse
# to join that with versions of symbols (decision 0041). So the system's compiler links it, from the archive.
#
# Refused: an undefined symbol, an executable stack, a relative PREFIX. Of other symbols than hamlyn_* none is exported, nor global in the archive.
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
library=${LIBRARY:-hamlyn} face=${FACE:-$here/..}
major=${version%%.*}
minor=${version#*.}
minor=${minor%%.*}
soname=lib$library.so.$major
# Of a program that is linked with the archive: what `rustc --print native-static-libs` says of it.
native_libraries="-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# Members with debug information alone (.dwo, of `split-debuginfo`) do not say that they run without an executable stack, so linkers
# would give programs one.
cp "$archive" "$work/code.a"
$AR t "$archive" | { grep '\.dwo$' || true; } | xargs -r $AR dD "$work/code.a"
archive=$work/code.a

# Everything that no exported function reaches is left out.
$CC -shared -o "$work/lib$library.so" -Wl,-soname,"$soname" -Wl,--version-script="$face/packaging/$library.map" \
    -Wl,--whole-archive "$archive" -Wl,--no-whole-archive -Wl,--gc-sections -Wl,-z,relro,-z,now -Wl,--no-undefined \
    -Wl,--as-needed $native_libraries
if readelf -lW "$work/lib$library.so" | grep -q 'GNU_STACK.*RWE'; then
    echo "install.sh: lib$library.so would have an executable stack: a member of $1 does not say that it needs none" >&2
    exit 1
fi

# The archive that is installed is one object, of which only our symbols are global: two archives of Rust libraries can be
# linked into one program, and no program comes to depend on what is inside. The compiler's notes to itself, which only
# a linker with exactly this LLVM can read, are left out.
$LD -r --whole-archive "$archive" -o "$work/all.o"
$OBJCOPY --wildcard --keep-global-symbol='hamlyn_*' --remove-section=.llvmbc --remove-section=.llvmcmd \
    "$work/all.o" "$work/$library.o"
rm "$work/all.o"
$AR rcsD "$work/lib$library.a" "$work/$library.o"

fill() {
    sed -e "s|@prefix@|$prefix|g" -e "s|@libdir@|$libdir|g" -e "s|@includedir@|$includedir|g" \
        -e "s|@library@|$library|g" -e "s|@header@|${library#hamlyn_}.h|g" \
        -e "s|@version@|$version|g" -e "s|@major@|$major|g" -e "s|@minor@|$minor|g" -e "s|@soname@|$soname|g" \
        -e "s|@native_libraries@|$native_libraries|g" \
        -e "s|@includedir_from_libdir@|$(realpath -m --relative-to="$libdir" "$includedir")|g" "$1"
}
fill "$face/packaging/$library.pc.in" > "$work/$library.pc"

install -d "$destdir$libdir/pkgconfig" "$destdir$includedir"
install -m 644 "$work/lib$library.so" "$destdir$libdir/lib$library.so.$version"
ln -sf "lib$library.so.$version" "$destdir$libdir/$soname"
ln -sf "$soname" "$destdir$libdir/lib$library.so"
install -m 644 "$work/lib$library.a" "$destdir$libdir/lib$library.a"
install -m 644 "$work/$library.pc" "$destdir$libdir/pkgconfig/$library.pc"
for module in config config-version; do
    fill "$here/library-$module.cmake.in" > "$work/$module"
    install -D -m 644 "$work/$module" "$destdir$libdir/cmake/$library/$library-$module.cmake"
done
(cd "$face/include" && find . -type f -exec install -D -m 644 {} "$destdir$includedir/{}" \;)
