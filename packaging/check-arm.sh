#!/bin/bash
# Builds for 64-bit Arm, and runs the tests of the engine, the rings and the links and the conformance tests of the library under
# qemu, which carries out the program instruction by instruction and hands its system calls on:
#
#   check-arm.sh [PACKAGE...]
#
# What qemu cannot do is skipped, each test by its name, with the reason. qemu keeps the order of this machine's accesses: that
# the program holds with the weaker order of an Arm processor is shown by the loom models, which run here and elsewhere alike.
set -euo pipefail
cd "$(dirname "$0")/.."
TARGET=aarch64-unknown-linux-gnu
SYSROOT=${SYSROOT:-/usr/aarch64-linux-gnu}
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=${LINKER:-aarch64-linux-gnu-gcc}
export CC_aarch64_unknown_linux_gnu=${LINKER:-aarch64-linux-gnu-gcc}
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L $SYSROOT"
CARGO=${CARGO:-cargo}

for tool in "$CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER" qemu-aarch64; do
    command -v "$tool" >/dev/null || { echo "SKIPPED: no $tool (apt-get install gcc-aarch64-linux-gnu qemu-user), so nothing is checked for Arm"; exit 0; }
done
if ! [ -d "$(rustc --print sysroot)/lib/rustlib/$TARGET" ]; then
    command -v rustup >/dev/null && rustup target add $TARGET \
        || { echo "SKIPPED: the target $TARGET cannot be had, so nothing is checked for Arm"; exit 0; }
fi

# Of which package, which test, why.
SKIPPED=(
    "hamlyn-ring export::tests::an_owner_chooses_the_address_and_never_where_something_is|qemu maps addresses that the kernel keeps for itself"
    "hamlyn-ring export::tests::only_pages_that_were_touched_take_memory_also_when_it_is_taken_back|qemu maps no 64 GiB, however sparse"
    "hamlyn-link udp::socket::tests::what_the_way_out_does_not_carry_is_too_long|qemu does not know IP_MTU"
    "hamlyn-link sealed_runs_cross_a_wire_of_any_width|qemu does not know IP_MTU"
    "hamlyn-link the_length_is_found_and_follows_the_wire|qemu does not know IP_MTU"
)

# Tests that start programs need a kernel that hands programs for Arm to qemu. Where root may tell it so, it does, as long as this runs.
export QEMU_LD_PREFIX=$SYSROOT
BINFMT=/proc/sys/fs/binfmt_misc
HANDLER=hamlyn-check-arm
starts_programs() { grep -qs '^flags\|^interpreter' $BINFMT/qemu-aarch64 $BINFMT/$HANDLER; }
if ! starts_programs && [ "$(id -u)" = 0 ]; then
    [ -e $BINFMT/register ] || mount -t binfmt_misc none $BINFMT 2>/dev/null || true
    if [ -w $BINFMT/register ]; then
        echo "== programs for Arm start by qemu until this ends ($BINFMT/$HANDLER)"
        trap 'echo -1 > $BINFMT/$HANDLER' EXIT
        # The first bytes of a program for little-endian aarch64, and which bits of them count.
        printf '%s' ":$HANDLER:M::\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\xb7\\x00:\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe\\xff\\xff\\xff:$(command -v qemu-aarch64):" > $BINFMT/register || true
    fi
fi
if ! starts_programs; then
    reason="this kernel does not start programs for Arm (as root it can be told to; or install qemu-user-binfmt)"
    SKIPPED+=("hamlyn processes|$reason")
fi

packages=("$@")
[ $# -gt 0 ] || packages=(hamlyn-engine hamlyn-ring hamlyn-link hamlyn)
echo "== building for $TARGET"
$CARGO build --locked --target $TARGET -p hamlyn-c "${packages[@]/#/-p}"
failed=()
for package in "${packages[@]}"; do
    echo "== $package, under qemu"
    options=()
    for line in "${SKIPPED[@]}"; do
        test=${line%%|*}
        [ "${test%% *}" = "$package" ] || continue
        echo "SKIPPED: ${test#* }: ${line#*|}"
        options+=(--skip "${test#* }")
    done
    targets=(--lib --tests)
    [ "$package" != hamlyn ] || targets=(--lib --test 'conformance_*')
    $CARGO test --locked --no-fail-fast --target $TARGET -p "$package" "${targets[@]}" -- "${options[@]}" || failed+=("$package")
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "check-arm: tests of ${failed[*]} failed" >&2
    exit 1
fi
echo "== all of it passed for $TARGET"
