#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Instructions by function of what a command does in the guest. QEMU counts them as it
# executes them (profile-plugin.c), so the figures are exact. Guest time counts
# instructions, too: a second run differs by less than 0.1 %.
#
# usage: CMD='...' profile.sh     ("make profile CMD='...'" does the same)
#   VARIANT=patched|base|debug   the kernel
#   PER=N                        divide all figures by N
#   MARKS=own                    CMD marks begin and end itself (profile-mark.c); without
#                                it the whole of CMD is counted, with its start and end
#   APPEND, MEM, TIMEOUT         as for make vm
#
# The counts stay in build/profile/. The guest has one CPU.
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

VM=$TOP/tools/testing/vm
DIR=$BUILD/profile
VARIANT=${VARIANT:-patched}
MARK=__x64_sys_sched_rr_get_interval

# compile SOURCE PRODUCT FLAG...
compile()
{
	local source=$1 product=$2
	shift 2
	[[ $product -nt $source && $product -nt $VM/qemu-plugin.h ]] ||
		gcc -O2 -Wall -Wextra -Werror "$@" -o "$product" "$source"
}

main()
{
	local address runner=$DIR/profile-mark part
	[ -n "${CMD:-}" ] || die "CMD is empty: make profile CMD='...'"
	[[ ${PER:-1} =~ ^[1-9][0-9]*$ ]] || die "PER=$PER is not a positive number"
	case ${MARKS:-} in
	'') ;;
	own) runner= ;;
	*) die "MARKS=$MARKS: the only value is 'own'" ;;
	esac
	mkdir -p "$DIR"
	rm -f "$DIR"/counts.* "$DIR/kallsyms"
	compile "$VM/profile-plugin.c" "$DIR/profile-plugin.so" -shared -fPIC -fvisibility=hidden
	compile "$VM/profile-mark.c" "$DIR/profile-mark"
	compile "$VM/syscall-cost.c" "$DIR/syscall-cost"
	address=$(awk -v name=$MARK '$3 == name { print $1 }' "$BUILD/$VARIANT/kernel/System.map")
	[ -n "$address" ] || die "$VARIANT's kernel has no function $MARK"

	# The guest sees CMD as one argument: sh parses it, as for make vm.
	printf '%s\n' "$CMD" >"$DIR/command"
	export OUT=$DIR VARIANT ICOUNT=1 ACCEL=single SMP=1
	APPEND="nokaslr ${APPEND:-}" \
	QEMU_EXTRA="-plugin $DIR/profile-plugin.so,mark=$address,out=$DIR/counts" \
	CMD="$runner bash $DIR/command; rc=\$?; cat /proc/kallsyms >$DIR/kallsyms; exit \$rc" \
		"$VM/vm.sh"
	[ -e "$DIR/counts.1" ] ||
		die "nothing was counted: with MARKS=own, CMD calls sched_rr_get_interval() twice"
	for part in "$DIR"/counts.*; do
		"$VM/profile-report.py" "$DIR/kallsyms" "$part" "${PER:-1}"
	done
}

main "$@"
