#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Test a second architecture: build the kernel for arm64 with Debian's cross compiler, boot
# it in QEMU, and run the kselftests. QEMU has a PMU for arm64, so cycles are sampled by its
# overflow interrupt. All programs are linked statically and are in the initramfs. Prints TAP.
#
# usage: test-arm64.sh [PROGRAM...]
#
# arm64 does not order stores, so RESERVED_HEAD reads rb->head on the CPU of the buffer. This
# does not test the ordering, because TCG runs on x86.
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/cross.sh
. "${BASH_SOURCE[0]%/*}/cross.sh"

export KBUILD_BUILD_USER=perf KBUILD_BUILD_HOST=vm KBUILD_BUILD_TIMESTAMP=@0
TRIPLET=aarch64-linux-gnu
WORK=$BUILD/arm64
SRC=$BUILD/patched/src
PROGRAMS=(rb_reserved rb_backward rb_live persistent persistent_hotplug persistent_pmu)
MAKE=(make ARCH=arm64 CROSS_COMPILE="$TRIPLET-" CC="ccache $TRIPLET-gcc" -j"$JOBS")

build_kernel()
{
	local out=$WORK/kernel config=$TOP/tools/testing/vm/config line
	mkdir -p "$out"
	sed -nE 's/^(CONFIG_[A-Z0-9_]+=.*)$/\1/p' "$config/arm64.config" "$config/$BASE.config" \
		>"$WORK/want.new"
	if ! cmp -s "$WORK/want.new" "$WORK/want" || [ ! -f "$out/.config" ] ||
	   [ "$out/.config" -ot "$SRC/kernel/events/Kconfig" ]; then
		"${MAKE[@]}" -s -C "$SRC" O="$out" KCONFIG_ALLCONFIG="$WORK/want.new" allnoconfig
		mv "$WORK/want.new" "$WORK/want"
	fi
	while read -r line; do
		grep -qxF "$line" "$out/.config" || die "arm64: $line did not take effect"
	done <"$WORK/want"
	"${MAKE[@]}" -C "$SRC" O="$out" Image headers
	cp "$out/arch/arm64/boot/Image" "$WORK/Image"
}

build_programs()
{
	mkdir -p "$WORK/selftests"
	"${MAKE[@]}" -C "$SRC/tools/testing/selftests/perf_events" OUTPUT="$WORK/selftests" \
		top_srcdir="$SRC" KHDR_INCLUDES="-isystem $WORK/kernel/usr/include" \
		USERLDFLAGS=-static "${@/#/$WORK/selftests/}"
}

# The initramfs contains init, which is also the shell, and the programs
make_root()
{
	local root=$WORK/root
	rm -rf "$root"
	mkdir -p "$root"/{bin,proc,sys,dev,tmp,run,root}
	"$TRIPLET-gcc" -DALONE -static -O1 -Wall -Wextra -Werror -o "$root/init" \
		"$TOP/tools/testing/vm/init.c"
	ln "$root/init" "$root/bin/bash"
	ln "$root/init" "$root/bin/true"
	install -m 755 "${@/#/$WORK/selftests/}" "$root/bin"
}

# "ok 1 name" becomes "ok 1 prog: name".
name_programs()
{
	sed -E -e '/^# \/bin\//{s//# /;h}' \
		-e '/^(not )?ok [0-9]+ /{G;s/^((not )?ok [0-9]+) (.*)\n# (.*)/\1 \4: \3/}'
}

main()
{
	local rc=0
	[ $# -gt 0 ] || set -- "${PROGRAMS[@]}"
	"$TOP/tools/testing/vm/build.sh" --stage-only
	unpack_compiler "$TRIPLET"
	unpack_libc "$TRIPLET" arm64
	run_logged "kernel arm64" "$WORK/kernel.log" build_kernel
	run_logged "selftests arm64" "$WORK/selftests.log" build_programs "$@"
	make_root "$@"
	export RB_LIVE_SNAPSHOTS=${RB_LIVE_SNAPSHOTS:-50} PASS_ENV=RB_LIVE_SNAPSHOTS
	VARIANT=arm64 ACCEL=${ACCEL:-multi} SMP=2 MEM=1G ICOUNT='' TIMEOUT=${TIMEOUT:-1500} \
		CMD=$(printf '/bin/%s\n' "$@") "$TOP/tools/testing/vm/vm.sh" >"$WORK/output" ||
		rc=$?
	name_programs <"$WORK/output"
	return $rc
}

main "$@"
