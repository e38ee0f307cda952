#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# With the series' options off, its hooks vanish: kernel/events builds, core.o
# refers to nothing of ours (but per-task data and the memory of ring buffers, which
# replace what the base always has, and have no option), and the ioctl entry is the
# base's, instruction by instruction, so that each of our ioctls ends in the base's ENOTTY.
set -uo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"

OFF=$BUILD/off/kernel
OPTIONS=$(sed -nE 's/^(CONFIG_[A-Z0-9_]+)=y$/\1/p' "$TOP/tools/testing/vm/config/patched.config")
export PATH=/usr/lib/ccache:$PATH LC_ALL=C
export CCACHE_DIR=${CCACHE_DIR:-$BUILD/ccache} CCACHE_BASEDIR=$BUILD CCACHE_NOHASHDIR=1

compile()
{
	mkdir -p "$OFF"
	cat "$TOP"/tools/testing/vm/config/{boot,perf}.config |
		sed -nE 's/^(CONFIG_[A-Z0-9_]+=.*)$/\1/p' >"$OFF/.want"
	printf '%s\n' "${OPTIONS//$'\n'/=n$'\n'}=n" >>"$OFF/.want"
	make -s -C "$BUILD/patched/src" O="$OFF" KCONFIG_ALLCONFIG="$OFF/.want" allnoconfig &&
		make -C "$BUILD/patched/src" O="$OFF" -j"$JOBS" kernel/events/
}

options_are_off()
{
	local option
	for option in $OPTIONS; do
		! grep -q "^$option=" "$OFF/.config" || { echo "$option is on"; return 1; }
	done
	! compgen -G "$OFF/kernel/events/persistent/*.o" &&
		[ ! -e "$OFF/kernel/events/rb_seal.o" ] &&
		[ ! -e "$OFF/kernel/events/rb_snapshot.o" ]
}

no_symbols()
{
	! nm "$OFF/kernel/events/core.o" "$OFF/kernel/events/ring_buffer.o" |
		grep -E -e 'perf_(persistent|rb_reserved|rb_seal|rb_allow|rb_toggle)' \
			-e 'perf_event_(reinstall|.*away)'
}

# A function's instructions without their addresses
instructions()
{
	objdump -d --no-show-raw-insn --no-addresses --disassemble="$2" "$1" |
		sed -nE '/^<'"$2"'>:/,$p' | sed -E 's/\+0x[0-9a-f]+//; s/0x[0-9a-f]+//'
}

same_ioctl()
{
	diff <(instructions "$BUILD/base/kernel/kernel/events/core.o" perf_ioctl) \
		<(instructions "$OFF/kernel/events/core.o" perf_ioctl) &&
		[ -n "$(instructions "$OFF/kernel/events/core.o" perf_ioctl)" ]
}

tap_run "kernel/events builds with our options off" compile
tap_run "our objects are left out" options_are_off
tap_run "nothing in the host's objects refers to ours" no_symbols
tap_run "perf_ioctl() is the base's" same_ioctl
tap_end
