#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Are there data races in our kernel code? Builds the variant kcsan, runs kselftests on it, and
# looks at what the detector has reported: an access of a function of ours, to what another CPU
# or an interrupt has at the same time, is a failure. Other races of the kernel are listed.
# Prints TAP.
#
# usage: test-kcsan.sh [PROGRAM...]	on the host; all kselftests of PROGRAMS without one
#	 test-kcsan.sh guest PROGRAM...	in the guest
#
# KCSAN delays an access now and then, and looks whether another comes meanwhile. While it
# delays, it executes PAUSE, at which QEMU goes on to the next CPU. So a thread for each CPU is
# not needed. The model of weak memory delays a store until the next barrier: so a missing
# barrier shows on x86, too.
set -uo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"

KCSAN=/sys/kernel/debug/kcsan
PROGRAMS=(rb_live rb_reserved tp_records persistent persistent_tasks persistent_inherit
	persistent_cgroup persistent_hotplug persistent_session persistent_freeze persistent_notify
	persistent_duels persistent_freeze_duels persistent_races perf_ctx_data perf_ctx_scope)
WORK=$BUILD/out/kcsan
SECS=${KCSAN_SECS:-3600}

# counter NAME
counter()
{
	sed -n "s/^$1: //p" $KCSAN
}

is_on()
{
	dmesg | grep -E 'kcsan: (strict|selftest|enabled)' || return 1
	# Without -q, which would leave dmesg a broken pipe.
	dmesg | grep -E 'kcsan: selftest: ([0-9]+)/\1 tests passed$' >/dev/null || return 1
	[ "$(counter enabled)" = 1 ]
}

# Prints the programs that had no end, or that failed more often than they passed: a time-out
# leaves sessions behind, at which each test of the next one fails at once.
idle_programs()
{
	local program
	for program; do
		awk -v name="$program" '/^# Totals: pass:/ { split($3, pass, ":"); split($4, fail, ":")
			good = pass[2] > fail[2] } END { if (!good) print "# did not run: " name }' \
			"$OUT/$program"
	done
}

# In the guest. What a single test finds on a kernel that is so slow is not asked here: other
# suites do. The program has to run.
run_programs()
{
	local before program log idle modules=$BUILD/kcsan/test_modules
	export TEST_PMU_MODULE=$modules/perf_test_pmu.ko KSELFTEST_LIMIT=900
	export PERSISTENT_WINDOW=$modules/persistent_window.ko
	export PERSISTENT_CAUSE=$modules/persistent_cause.ko
	mountpoint -q /sys/kernel/debug ||
		mount -t debugfs none /sys/kernel/debug
	tap_run "KCSAN is on, and has passed its test of itself" is_on
	before=$(counter setup_watchpoints)
	# To the host as it comes: the machine may die, and the log may wrap.
	dmesg --follow >"$OUT/dmesg" &
	log=$!
	for program; do
		"$TOP/tools/testing/vm/kselftests.sh" "$program" >"$OUT/$program"
		sed 's/^/# /' "$OUT/$program"
	done
	idle=$(idle_programs "$@")
	[ -z "$idle" ] || echo "$idle"
	[ -z "$idle" ]
	tap_ok $? "each program has run"
	echo "# watchpoints: $before before, $(counter setup_watchpoints) after;" \
		"data races: $(counter data_races)"
	[ "$(counter setup_watchpoints)" -gt $((before + 1000)) ]
	tap_ok $? "KCSAN has watched the programs"
	sleep 2
	kill $log
	tap_end
}

# The files of the base that have hooks, one a line
hooked_files()
{
	cat "$TOP"/patches/[0-9]*-*/*.patch | sed -nE 's,^\+\+\+ b/((kernel|arch/x86)/.*\.c)$,\1,p' |
		sort -u
}

# symbols OBJECT: its functions, one a line
symbols()
{
	nm "$1" | sed -nE 's/^[0-9a-f]+ [tTW] ([a-zA-Z0-9_]+)(\..*)?$/\1/p' |
		grep -v '^__\(pfx\|cfi\|ksym\)' | sort -u
}

# The functions of the base that have hooks, and those that hooks add to a file of the base
hooked()
{
	local file
	hooked_files | while read -r file; do
		diff -p -U0 "$BUILD/base/src/$file" "$BUILD/patched/src/$file" || true
	done | sed -nE 's/^@@ .* @@ ([^(]*[ *])?(\w+)\(.*/\2/p' | grep -v '[A-Z]' | sort -u
	hooked_files | while read -r file; do
		file=kernel/${file%.c}.o
		[ ! -f "$BUILD/kcsan/$file" ] || [ ! -f "$BUILD/base/$file" ] ||
			comm -13 <(symbols "$BUILD/base/$file") <(symbols "$BUILD/kcsan/$file")
	done
}

# The functions of our files, one a line
functions()
{
	local file object
	cut -f2 "$TOP/patches/manifest" | grep -E '^(kernel|arch/x86)/.*\.c$' |
	while read -r file; do
		object=$BUILD/kcsan/kernel/${file%.c}.o
		[ ! -f "$object" ] || symbols "$object"
	done | sort -u
}

no_race_of_ours()
{
	{ functions && hooked; } >"$WORK/functions"
	[ "$(wc -l <"$WORK/functions")" -gt 100 ] || return 1
	grep -qx perf_mmap_attach "$WORK/functions" || return 1
	"${BASH_SOURCE[0]%/*}/kcsan-reports.py" "$WORK/functions" "$WORK/dmesg"
}

main()
{
	local rc=0
	if [ "${1-}" = guest ]; then
		shift
		run_programs "$@"
		return
	fi
	[ $# -gt 0 ] || set -- "${PROGRAMS[@]}"
	rm -rf "$WORK"
	mkdir -p "$WORK"
	"$TOP/tools/testing/vm/build.sh" kernel kcsan || die "the variant kcsan does not build"
	VARIANT=kcsan ACCEL=single SMP=2 MEM=3G TIMEOUT=$((SECS * ${SLACK:-1})) OUT=$WORK \
		PASS_ENV='SLACK PERSISTENT_ROUNDS RB_LIVE_SNAPSHOTS KSELFTEST_DIR' \
		PERSISTENT_ROUNDS=${PERSISTENT_ROUNDS:-100} \
		RB_LIVE_SNAPSHOTS=${RB_LIVE_SNAPSHOTS:-20} \
		CMD="$TOP/tools/testing/vm/${0##*/} guest $*" \
		"$TOP/tools/testing/vm/vm.sh" >"$WORK/tap" || rc=$?
	sed 's/\r$//; /^1\.\./d' "$WORK/tap"
	TAP_N=$(grep -cE '^(not )?ok ' "$WORK/tap")
	TAP_BAD=$(grep -c '^not ok ' "$WORK/tap")
	tap_ok $rc "the machine survives"
	"${BASH_SOURCE[0]%/*}/kcsan-reports.py" --list "$WORK/dmesg" | sed 's/^/# /'
	tap_run "no report has an access of our code" no_race_of_ours
	tap_end
}

main "$@"
