#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# With the series' options off, its hooks vanish: kernel/events builds, core.o
# refers to nothing of ours (but per-task data and the memory of ring buffers, which
# replace what the base always has, and have no option), and the ioctl entry is the
# base's, instruction by instruction, so that each of our ioctls ends in the base's ENOTTY.
#
# task_struct grows by one pointer for per-task PMU data, and by nothing on a kernel for
# processors whose PMUs have none. Persistent events build without CONFIG_MEMCG and without
# the black box.
set -uo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"

OFF=$BUILD/off/kernel
NO_MEMCG=$BUILD/off/no-memcg
OPTIONS=$(sed -nE 's/^(CONFIG_[A-Z0-9_]+)=y$/\1/p' "$TOP/tools/testing/vm/config/patched.config")
export PATH=/usr/lib/ccache:$PATH LC_ALL=C
export CCACHE_DIR=${CCACHE_DIR:-$BUILD/ccache} CCACHE_BASEDIR=$BUILD CCACHE_NOHASHDIR=1

# compile_without OUT OPTION...: kernel/events, with all options of the test machine but these
compile_without()
{
	local out=$1
	shift
	mkdir -p "$out"
	cat "$TOP"/tools/testing/vm/config/{boot,perf,patched,crash}.config |
		sed -nE 's/^(CONFIG_[A-Z0-9_]+=.*)$/\1/p' |
		grep -vxF "$(printf '%s=y\n' "$@")" >"$out/.want"
	printf '%s=n\n' "$@" >>"$out/.want"
	make -s -C "$BUILD/patched/src" O="$out" KCONFIG_ALLCONFIG="$out/.want" allnoconfig &&
		make -C "$BUILD/patched/src" O="$out" -j"$JOBS" kernel/events/
}

compile()
{
	# shellcheck disable=SC2086 # a list of words
	compile_without "$OFF" $OPTIONS
}

# Without memory cgroups and black boxes: persistent events are there, and use neither.
compile_without_memcg()
{
	compile_without "$NO_MEMCG" CONFIG_MEMCG CONFIG_PERF_PERSISTENT_BLACKBOX &&
		! grep '^CONFIG_MEMCG=' "$NO_MEMCG/.config" &&
		! compgen -G "$NO_MEMCG/kernel/events/persistent/blackbox*.o" &&
		[ -e "$NO_MEMCG/kernel/events/persistent/owner.o" ] &&
		[ ! -e "$NO_MEMCG/kernel/events/persistent/memory.o" ]
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
		grep -E -e 'perf_(persistent|rb_reserved|rb_seal|rb_allow|rb_check|rb_toggle)' \
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

# members SOURCE OUTPUT: the members of task_struct, one a line with its size, and their number
# of bytes
members()
{
	local dir=$BUILD/off/members
	rm -rf "$dir"
	mkdir -p "$dir"
	printf '#include <linux/sched.h>\nstruct task_struct members;\n' >"$dir/members.c"
	printf 'obj-m := members.o\nccflags-y := -g\nOBJECT_FILES_NON_STANDARD := y\n' \
		>"$dir/Makefile"
	if ! make -s -C "$1" O="$2" M="$dir" members.o >"$dir.log" 2>&1; then
		cat "$dir.log" >&2
		return 1
	fi
	# Those of its members' members have more tabs before them.
	pahole -C task_struct "$dir/members.o" | sed -nE '
		s|^\t([^\t].*;) +/\* +[0-9: ]+ +([0-9]+) .*\*/$|\1 \2|
		t print
		d
		:print
		s/[ \t]+/ /g
		p'
}

# without_intel VARIANT OUTPUT: configured for processors whose PMUs have no per-task data
without_intel()
{
	mkdir -p "$2"
	{
		sed 's/^CONFIG_CPU_SUP_INTEL=.*//' "$BUILD/$1/kernel/.config"
		printf '%s\n' CONFIG_EXPERT=y CONFIG_PROCESSOR_SELECT=y CONFIG_CPU_SUP_INTEL=n
	} >"$2/.config"
	if ! make -s -C "$BUILD/$1/src" O="$2" -j"$JOBS" olddefconfig prepare0 >"$2.log" 2>&1; then
		tail "$2.log"
		return 1
	fi
	! grep '^CONFIG_PERF_CTX_DATA=' "$2/.config"
}

# differ_by DIFF PATTERN: in that line alone
differ_by()
{
	[ "$(grep -c '^[<>]' "$1")" = 1 ] && grep -qE "^$2" "$1"
}

task_struct_size()
{
	local variant dir pointer='struct perf_ctx_data \* ?perf_ctx_data; 8$'
	for variant in base patched; do
		dir=$BUILD/off/$variant-amd
		without_intel $variant "$dir" &&
			members "$BUILD/$variant/src" "$dir" >"$dir.members" &&
			members "$BUILD/$variant/src" "$BUILD/$variant/kernel" \
				>"$BUILD/off/$variant.members" || return 1
	done
	wc -l "$BUILD/off/base-amd.members"
	[ "$(wc -l <"$BUILD/off/base-amd.members")" -gt 100 ] || return 1
	echo "without the option, < base, > patched:"
	diff "$BUILD/off/base-amd.members" "$BUILD/off/patched-amd.members" |
		tee "$BUILD/off/members-amd.diff"
	echo "with the option:"
	diff "$BUILD/off/base.members" "$BUILD/off/patched.members" | tee "$BUILD/off/members.diff"
	# Linux 7 has the pointer always. There it goes with the option.
	if grep -qE "^$pointer" "$BUILD/off/base-amd.members"; then
		differ_by "$BUILD/off/members-amd.diff" "< $pointer" &&
			[ ! -s "$BUILD/off/members.diff" ]
	else
		differ_by "$BUILD/off/members.diff" "> $pointer" &&
			[ ! -s "$BUILD/off/members-amd.diff" ]
	fi
}

tap_run "kernel/events builds with our options off" compile
tap_run "our objects are left out" options_are_off
tap_run "nothing in the host's objects refers to ours" no_symbols
tap_run "perf_ioctl() is the base's" same_ioctl
tap_run "task_struct grows by a pointer, and by nothing without per-task data" task_struct_size
tap_run "kernel/events builds without memory cgroups and black boxes" compile_without_memcg
tap_end
