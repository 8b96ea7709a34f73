#!/bin/bash
# Makes what a release publishes of the last commit, with its sums:
#
#   dist.sh DIRECTORY DEBIAN-PACKAGES
#
# the source archive, the crates, Python wheels for Linux with glibc 2.17 or musl 1.2 and later, the Debian packages that
# `make packages` has made, and SHA256SUMS. The source archive has the same bytes each time.
#
# Refused: changes that are not committed, unless ALLOW_DIRTY=1: archive and packages would differ. What cannot be made is said,
# and once more at the end.
set -euo pipefail
[ $# = 2 ] || { echo "usage: dist.sh DIRECTORY DEBIAN-PACKAGES" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
: "${CARGO:=cargo}" "${PYTHON:=python3}" "${WHEEL_PYTHONS:=python3.9 python3.10 python3.11}"
to=$(realpath -m "$1") packages=$(realpath -m "$2")
cd "$root"
git rev-parse --verify --quiet HEAD >/dev/null || { echo "dist.sh: no commit: a release is made of a clone, not of its source archive" >&2; exit 1; }
if [ -n "$(git status --porcelain)" ] && [ "${ALLOW_DIRTY:-}" != 1 ]; then
    git status --short >&2
    echo "dist.sh: these changes are not committed: commit them, or set ALLOW_DIRTY=1 to try out what is no release" >&2
    exit 1
fi
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
python_version=$(sed -n 's/^version = "\(.*\)"/\1/p' faces/python/Cargo.toml | head -1)
[ "$version" = "$python_version" ] || { echo "dist.sh: Cargo.toml has version $version, faces/python/Cargo.toml $python_version: a release has one" >&2; exit 1; }
grep -q "^## \[$version\]" CHANGELOG.md || { echo "dist.sh: CHANGELOG.md has no section [$version]" >&2; exit 1; }
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
lacking=()
lacks() { echo "SKIPPED: $*"; lacking+=("$1"); }
rm -rf "$to"
mkdir -p "$to"

echo "== the source archive"
git archive --format=tar --prefix="hamlyn-$version/" HEAD | gzip -9n > "$to/hamlyn-$version.tar.gz"

echo "== the crates"
# Of a workspace cargo packages also those that it does not publish. Each is built by `make check-publish`.
unpublished=$($CARGO metadata --no-deps --format-version 1 --locked --offline | $PYTHON -c '
import json, sys
print(" ".join("--exclude " + package["name"] for package in json.load(sys.stdin)["packages"] if package["publish"] == []))')
if [ "$($CARGO --version | sed -E 's/^cargo 1\.([0-9]+).*/\1/')" -ge 90 ]; then
    rm -f "${CARGO_TARGET_DIR:-target}"/package/*.crate
    $CARGO package --quiet --workspace $unpublished --no-verify --locked --offline --allow-dirty
    cp "${CARGO_TARGET_DIR:-target}"/package/*.crate "$to/"
else
    lacks "the crates" "need cargo 1.90 or later, this is $($CARGO --version)"
fi

echo "== the Python wheels"
room=$root/target/python/maturin-zig
if ! [ -x "$room/bin/maturin" ] && ! { $PYTHON -m venv "$room" && "$room/bin/python" -m pip install --quiet --disable-pip-version-check "maturin[zig]>=1.12,<2"; }; then
    rm -rf "$room"
    lacks "the Python wheels" "(no virtual environment, or no network to PyPI for maturin and zig)"
else
    # zig links for glibc 2.17 and for musl wherever this runs; maturin looks at the symbols, and refuses a wheel that needs others.
    for platform in x86_64-unknown-linux-gnu/manylinux_2_17 x86_64-unknown-linux-musl/musllinux_1_2; do
        target=${platform%/*}
        if ! [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] && ! { command -v rustup >/dev/null && echo "== adding the target $target with rustup" && rustup target add "$target"; }; then
            lacks "the Python wheels of ${platform#*/}" "(the target $target cannot be had)"
            continue
        fi
        (cd faces/python && PATH=$room/bin:$PATH CARGO_TARGET_DIR=$root/target/python/cargo "$room/bin/maturin" build --release --locked --quiet --zig --target "$target" \
            --compatibility "${platform#*/}" --interpreter $WHEEL_PYTHONS --out "$to")
    done
fi

echo "== the Debian packages"
if ls "$packages"/*.deb >/dev/null 2>&1; then
    cp "$packages"/*.deb "$to/"
else
    lacks "the Debian packages" "(none in $packages: they are made where there is dpkg-dev)"
fi

(cd "$to" && find . -type f ! -name SHA256SUMS -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum > SHA256SUMS)
echo "== $to: $(wc -l < "$to/SHA256SUMS") files and their sums"
[ ${#lacking[@]} = 0 ] || { printf '== it lacks %s\n' "${lacking[@]}"; }
