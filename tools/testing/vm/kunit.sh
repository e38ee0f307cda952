#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run the KUnit suites of config/kunit-suites.config on a variant, and print the kernel's
# log, which is KTAP. They run before there is an init. Of base and patched a small kernel is
# built, which has them, and of patched ours that take long: the variants themselves are
# without. Debug has all of them, ours with smaller counts.
# Status 99: the log has a splat, or no end.
#
# base-lbr: the base's lbr.c, unchanged, under the tests of patches/4-task-data alone.
#
# usage: kunit.sh [base|patched|debug|base-lbr]
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

CONFIG=$TOP/tools/testing/vm/config
VARIANT=${1:-debug}
WORK=$BUILD/kunit/$VARIANT
SRC=$BUILD/$VARIANT/src
export PATH=/usr/lib/ccache:$PATH LC_ALL=C
export CCACHE_DIR=${CCACHE_DIR:-$BUILD/ccache} CCACHE_BASEDIR=$BUILD CCACHE_NOHASHDIR=1

configure()
{
	local small=("$CONFIG/kunit.config" "$CONFIG/$BASE.config") line
	local files=("${small[@]}" "$CONFIG/kunit-suites.config")
	case $VARIANT in
	patched)
		files+=("$CONFIG/patched.config" "$CONFIG/kunit-ours.config"
			"$CONFIG/kunit-patched.config")
		;;
	base-lbr) files=("${small[@]}" "$CONFIG/kunit-ours.config") ;;
	esac
	cat "${files[@]}" | sed -nE 's/^(CONFIG_[A-Z0-9_]+=.*)$/\1/p' >"$WORK/.want.new"
	if ! cmp -s "$WORK/.want.new" "$WORK/.want"; then
		make -s -C "$SRC" O="$WORK" \
			KCONFIG_ALLCONFIG="$WORK/.want.new" allnoconfig >"$WORK.config.log" 2>&1 ||
			die "configuring failed: $WORK.config.log"
		mv "$WORK/.want.new" "$WORK/.want"
	fi
	while read -r line; do
		grep -qxF "$line" "$WORK/.config" || die "$VARIANT: $line did not take effect"
	done < <(grep -v '=n$' "$WORK/.want")
}

# A copy of the base, by links, with the tests of lbr.c. patch(1) does not write to a file,
# but replaces it.
add_lbr_tests()
{
	local mail=4-task-data/perf-x86-intel-lbr-test-call-stacks-on-simulated-registers.patch
	SRC=$BUILD/kunit/base-lbr.src
	# .made is the mail, and the base, that it was made of.
	if ! cat "$BUILD/base/.unpacked" "$TOP/patches/$mail" | cmp -s - "$SRC/.made"; then
		rm -rf "$SRC"
		cp -al "$BUILD/base/src" "$SRC"
		sed '1,/^---$/d' "$TOP/patches/$mail" | patch -s -p1 -d "$SRC" ||
			die "$mail does not apply to the base"
		cat "$BUILD/base/.unpacked" "$TOP/patches/$mail" >"$SRC/.made"
	fi
	cmp -s {"$TOP","$SRC"}/arch/x86/events/intel/lbr_kunit.c ||
		cp --remove-destination {"$TOP","$SRC"}/arch/x86/events/intel/lbr_kunit.c
}

# boot KERNEL MEMORY: it ends by a reset, at which QEMU ends, too. CPUs and timer of a kernel
# without ACPI: see vm.sh.
# Without LA57, for the reason that vm.sh gives.
boot()
{
	local log=$WORK.log
	timeout "${TIMEOUT:-1400}" setpriv --pdeathsig KILL qemu-system-x86_64 -machine pc \
		-cpu max,la57=off -accel tcg,thread=single -m "$2" -smp 2,sockets=2 -nodefaults \
		-no-user-config -no-reboot -display none -monitor none -serial stdio -kernel "$1" \
		-append "console=ttyS0 panic=-1 pmtmr=0x608 no_timer_check kunit.enable=1 \
			kunit.autorun=1 kunit_shutdown=reboot" </dev/null |
		tr -d '\r' | sed -uE 's/^\[ *[0-9.]+\] //' | tee "$log"
	! grep -qE '^(BUG|WARNING|INFO|Kernel panic)\>' "$log" || exit 99
	grep -qx 'reboot: machine restart' "$log" || exit 99
}

mkdir -p "$WORK"
case $VARIANT in
base|patched|base-lbr)
	"$TOP/tools/testing/vm/build.sh" --stage-only
	[ "$VARIANT" != base-lbr ] || add_lbr_tests
	configure
	run_logged "KUnit kernel $VARIANT" "$WORK.build.log" \
		make -C "$SRC" O="$WORK" -j"$JOBS" bzImage
	boot "$WORK/arch/x86/boot/bzImage" 1G
	;;
debug)
	[ -f "$BUILD/debug/bzImage" ] ||
		die "debug is not built: make ${BUILD#"$TOP/"}/debug/bzImage"
	boot "$BUILD/debug/bzImage" 3G
	;;
*)
	die "there are base, patched, debug and base-lbr"
	;;
esac
