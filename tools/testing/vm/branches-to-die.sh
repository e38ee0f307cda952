#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# How many branches the kernel takes from a fault of its own to die() and panic(): with more
# than the LBRs hold, a snapshot there has nothing of what led to the fault. QEMU counts them
# (branches-plugin.c) while a module reads from NULL, from an unmapped and from a
# non-canonical address, or calls BUG(), and while sysrq-c calls panic() itself.
#
# Fails where a snapshot by die() would be of use after all.
#
# usage: branches-to-die.sh
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

VM=$TOP/tools/testing/vm
DIR=$BUILD/branches
KERNEL=$BUILD/patched/kernel
PLUGIN=$DIR/branches-plugin.so
LBRS=32
few=

make_module()
{
	mkdir -p "$DIR/module"
	cat >"$DIR/module/die_here.c" <<-'END'
		#include <linux/module.h>
		static unsigned long address;
		module_param(address, ulong, 0);
		static int __init die_here(void)
		{
			BUG_ON(address == 1);
			return *(volatile int *)address;
		}
		module_init(die_here);
		MODULE_DESCRIPTION("A fault of the kernel");
		MODULE_LICENSE("GPL");
	END
	echo 'obj-m := die_here.o' >"$DIR/module/Makefile"
	make -s -C "$BUILD/patched/src" O="$KERNEL" M="$DIR/module" modules \
		>"$DIR/module.log" 2>&1 ||
		die "the module cannot be built: $DIR/module.log"
}

address()
{
	local address
	address=$(awk -v name="$1" '$3 == name { print $1 }' "$KERNEL/System.map")
	[ -n "$address" ] || die "the kernel has no function $1"
	echo "$address"
}

# count COMMAND FROM SURE TO FUNCTION...: print "FUNCTION BRANCHES" lines, in their order. The
# guest dies of it. SURE is what only the fault leads to that is counted: others are fixed up.
count()
{
	local command=$1 from=$2 sure=$3 to=$4 options name
	shift 4
	options=from=$(address "$from"),sure=$(address "$sure"),to=$(address "$to")
	options+=,out=$DIR/counts
	for name; do
		options+=,at=$(address "$name")
	done
	rm -f "$DIR/counts"
	ICOUNT=1 ACCEL=single SMP=1 VARIANT=patched APPEND=nokaslr TIMEOUT=300 CMD=$command \
		QEMU_EXTRA="-plugin $PLUGIN,$options" "$VM/vm.sh" >"$DIR/vm.log" 2>&1 || true
	[ -s "$DIR/counts" ] || die "nothing was counted: $DIR/vm.log"
	for name in "$from" "$@" "$sure" "$to"; do
		awk -v address="$(address "$name")" -v name="$name" \
			'$1 == address { print name, $2 }' "$DIR/counts"
	done | sort -snk2,2 | uniq
}

say_counts()
{
	echo "$1, branches up to:"
	awk '{ printf "  %-28s %8d\n", $1, $2 }' <<<"$2"
}

# fault NAME ADDRESS ENTRY DIE FUNCTION...
fault()
{
	local what=$1 address=$2 entry=$3 die=$4 lines
	shift 4
	lines=$(count "insmod $DIR/module/die_here.ko address=$address" "$entry" "$die" panic "$@")
	say_counts "$what" "$lines"
	awk -v die="$die" -v lbrs=$LBRS '$1 == die { exit $2 <= lbrs }' <<<"$lines" ||
		few+=" $what"
}

main()
{
	mkdir -p "$DIR"
	gcc -O2 -Wall -Wextra -Werror -shared -fPIC -fvisibility=hidden -o "$PLUGIN" \
		"$VM/branches-plugin.c"
	make_module
	fault "a read from NULL" 0 asm_exc_page_fault __die \
		exc_page_fault page_fault_oops _printk
	fault "a read from an unmapped address of the kernel" 0xffffc8ff00000000 \
		asm_exc_page_fault __die exc_page_fault fixup_exception page_fault_oops _printk
	fault "a read from a non-canonical address" 0xdead000000000000 \
		asm_exc_general_protection die_addr exc_general_protection fixup_exception
	fault "BUG()" 1 asm_exc_invalid_op die exc_invalid_op report_bug _printk
	say_counts "sysrq-c" "$(count "echo c >/proc/sysrq-trigger" \
		sysrq_handle_crash panic panic)"
	[ -z "$few" ] || die "die() comes after no more than $LBRS branches:$few"
}

main "$@"
