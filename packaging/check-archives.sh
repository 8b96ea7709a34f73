#!/bin/bash
# Checks what `make dist` made, and uses what needs no root: the sums, the source archive, the crates, and whom the wheels serve:
#
#   check-archives.sh DIRECTORY-OF-DIST WORK
#
# The source archive is unpacked and built; a program is built against the crates alone. Both are without optimisation,
# and without a network: dependencies come from cargo's own store, which a build of the tree has filled.
set -euo pipefail
[ $# = 2 ] || { echo "usage: check-archives.sh DIRECTORY-OF-DIST WORK" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
dist=$(cd "$1" && pwd)
mkdir -p "$2"
work=$(cd "$2" && pwd)
: "${CARGO:=cargo}" "${PYTHON:=python3}"
fail() { echo "check-archives: $*" >&2; exit 1; }
has() { ls "$dist"/$1 >/dev/null 2>&1; }
listening=
trap '[ -z "$listening" ] || kill $listening 2>/dev/null || true' EXIT

echo "== the sums"
(cd "$dist" && sha256sum --check --strict --quiet SHA256SUMS) || fail "a file of $dist is not as its sum says"
unsummed=$(cd "$dist" && { find . -type f ! -name SHA256SUMS -printf '%P\n'; sed 's/^[0-9a-f]*  //' SHA256SUMS; } | sort | uniq -u)
[ -z "$unsummed" ] || fail "SHA256SUMS does not name $unsummed"

# Nothing is taken from an earlier run but dependencies of the registry: the files of this one are newer.
export CARGO_TARGET_DIR=$work/cargo CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_DEV_DEBUG=none
export HAMLYN_NAMESPACE=check-archives-$$

echo "== the source archive: its bytes"
source=$(ls "$dist"/hamlyn-*.tar.gz)
version=$(basename "$source" .tar.gz)
version=${version#hamlyn-}
# It stops reading after the name, at which gzip complains.
commit=$({ gzip -dc "$source" 2>/dev/null || true; } | git get-tar-commit-id) || fail "$source does not name its commit"
git -C "$root" archive --format=tar --prefix="hamlyn-$version/" "$commit" | gzip -9n | cmp - "$source" || fail "the source archive of $commit has other bytes when it is made again"

echo "== the source archive: built and used"
rm -rf "$work/source"
mkdir "$work/source"
tar -C "$work/source" -xmzf "$source"
(cd "$work/source/hamlyn-$version" && $CARGO build --quiet --locked --offline -p hamlyn-cli)
hamlyn=$CARGO_TARGET_DIR/debug/hamlyn
[ "$($hamlyn --version)" = "hamlyn $version" ] || fail "the command of the source archive says $($hamlyn --version)"
timeout 60 "$hamlyn" pipe --listen backup > "$work/piped" &
listening=$!
echo "from the archive" | timeout 60 "$hamlyn" pipe backup || fail "the command of the source archive cannot send"
wait $listening || fail "the command of the source archive cannot receive"
listening=
[ "$(cat "$work/piped")" = "from the archive" ] || fail "the command of the source archive received $(cat "$work/piped")"
rm -rf "$work/source"

if has '*.crate'; then
    echo "== the crates: a program"
    rm -rf "$work/crates" "$work/program"
    mkdir -p "$work/crates" "$work/program/src"
    for crate in "$dist"/*.crate; do tar -C "$work/crates" -xmzf "$crate"; done
    for file in LICENSE-APACHE LICENSE-MIT Cargo.toml; do
        for crate in "$work/crates"/*; do [ -s "$crate/$file" ] || fail "$(basename "$crate") has no $file"; done
    done
    {
        printf '[workspace]\n[package]\nname = "program"\nversion = "0.0.0"\nedition = "2024"\n[dependencies]\nhamlyn = "%s"\n[patch.crates-io]\n' "$version"
        for crate in "$work/crates"/*-"$version"; do
            name=$(basename "$crate" "-$version")
            printf '%s = { path = "%s" }\n' "$name" "$crate"
        done
    } > "$work/program/Cargo.toml"
    # It is the example that also programs in C and in Python are (use-packages.sh).
    sed 's/^use hamlyn_examples::Outcome;/type Outcome = Result<(), Box<dyn std::error::Error>>;/' "$root/examples/src/bin/log.rs" > "$work/program/src/main.rs"
    # The dependencies of our lock file: the newest ones need not be in the store.
    cp "$root/Cargo.lock" "$work/program/"
    (cd "$work/program" && $CARGO build --quiet --offline 2> "$work/program.log") || { cat "$work/program.log" >&2; fail "a program cannot be built with the crates"; }
    timeout 60 "$CARGO_TARGET_DIR/debug/program" collect > "$work/collected" &
    listening=$!
    echo "from the crates" | timeout 60 "$CARGO_TARGET_DIR/debug/program" send || fail "a program that was built with the crates cannot send"
    wait $listening || fail "a program that was built with the crates cannot receive"
    listening=
    [ "$(cat "$work/collected")" = "from the crates" ] || fail "a program that was built with the crates received $(cat "$work/collected")"
else
    echo "SKIPPED: no crates in $dist, so none is used"
fi

has '*.whl' || { echo "SKIPPED: no Python wheels in $dist, so none is checked"; exit 0; }
for wheel in "$dist"/*.whl; do
    echo "== $(basename "$wheel")"
    rm -rf "$work/wheel"
    $PYTHON -m zipfile -e "$wheel" "$work/wheel"
    extension=$(ls "$work"/wheel/hamlyn/_hamlyn*.so) || fail "it has no extension"
    # Whom the name says that it serves, the wheel itself must say.
    tags=$(basename "$wheel" .whl)
    platform=${tags##*-}
    for tag in ${platform//./ }; do
        grep -qx "Tag: .*-$tag" "$work"/wheel/*.dist-info/WHEEL || fail "its WHEEL does not have the tag $tag"
    done
    case $platform in
        *manylinux_2_17*)
            newest=$(readelf --dyn-syms -W "$extension" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)
            [ "$(printf '%s\nGLIBC_2.17\n' "$newest" | sort -V | tail -1)" = GLIBC_2.17 ] || fail "it needs $newest, which glibc 2.17 does not have"
            case $tags in
                *-abi3-*) echo "it needs $newest; Debian's Python runs it below, where packages are checked" ;;
                *) echo "it needs $newest. SKIPPED: it runs under none of Debian's Pythons, so it is not run" ;;
            esac ;;
        *musllinux*)
            needed=$(readelf -d "$extension" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
            [ "$needed" = libc.so ] || fail "it needs $(echo $needed): of musl there is libc.so"
            if ! command -v musl-gcc >/dev/null; then
                echo "SKIPPED: no musl-gcc (apt-get install musl-tools), so it is not loaded"
                continue
            fi
            # The loader of musl finds each symbol, but those of Python, for which there are stand-ins.
            readelf --dyn-syms -W "$extension" | awk '$7 == "UND" && $8 ~ /^_?Py/ { print "void *" $8 "[64];" }' > "$work/load.c"
            [ -s "$work/load.c" ] || fail "it uses nothing of Python"
            cat >> "$work/load.c" <<'C'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
    void *extension = argc == 2 ? dlopen(argv[1], RTLD_NOW) : 0;
    if (extension && dlsym(extension, "PyInit__hamlyn")) return 0;
    fprintf(stderr, "%s\n", dlerror());
    return 1;
}
C
            musl-gcc -rdynamic "$work/load.c" -o "$work/load"
            "$work/load" "$extension" || fail "the loader of musl refuses it"
            echo "the loader of musl takes it. SKIPPED: no registry at hand has a Python of musl, so it is not run" ;;
        *) fail "a release has no wheel of $platform" ;;
    esac
done
rm -rf "$work/wheel" "$work/crates" "$work/program"
