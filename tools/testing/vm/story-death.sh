#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The second story of 'make run': the machine is reset under load, boots again, and its last
# moments are there: a recording that names the hot function of a program that died with it.
#
# usage: story-death.sh		on the host
#	 story-death.sh guest	in the guest, at each of its two boots
#
# A reset of QEMU keeps the memory, as a warm reset of a machine does that has firmware which
# leaves memory alone. Each step is checked. If a check fails, the story ends with status 1.
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/story-hot.sh
. "${BASH_SOURCE[0]%/*}/story-hot.sh"

SESSION=flight
REGION=blackbox
PARAMS="reserve_mem=16M:4096:$REGION perf_persistent=@$REGION nokaslr"

# In the guest

# The host resets the machine when it is told that the program has run for a while.
before()
{
	local i

	echo "Linux $(uname -r), $(nproc) CPUs, $(perf --version)"
	# Sampling is slow in an emulator. Prevent the kernel from reducing the rate.
	echo 0 >/proc/sys/kernel/perf_cpu_time_max_percent
	chapter "1. A recorder in memory that survives a reset: reserve_mem=16M:4096:$REGION"
	show perf record -P $SESSION --reserve $REGION -e cpu-clock/freq=499/ -g -a -m 2M
	chapter "2. Load, and a reset from outside, as by a watchdog"
	for ((i = 0; i < 2; i++)); do
		while :; do
			gzip -c "$BUILD"/patched/src/kernel/events/*.c >/tmp/real-files.gz
		done &
	done
	"$HOT" 600 &
	echo "a program runs, pid $!"
	sleep 8
	echo $! >"$OUT/now.new"
	mv "$OUT/now.new" "$OUT/now"
	sleep 600
	fail "nobody has reset the machine"
}

after()
{
	local image data=$OUT/dead.data percent

	chapter "3. The next boot: what has the machine left?"
	show perf ctl -l
	perf ctl -l | grep -q '^blackbox.* yes  *reset ' || fail "the death is not listed"
	image=$(perf ctl -l --json |
		sed -nE 's/.*"kind": "image", "name": "([^"]*)".*/\1/p' | head -n1)
	[ -n "$image" ] || fail "the region has no image of the boot before"
	chapter "4. Recover it, and give the memory back"
	rm -f "$data" "$data.json"
	show perf data recover --release -o "$data" --last "$image"
	chapter "5. What ran when it died? (the first lines)"
	show_report "$data" "$OUT/dead.report" 12
	percent=$(hot_percent "$OUT/dead.report")
	[ "${percent%.*}" -ge 5 ] || fail "the report lacks the function of the dead program"
	chapter "Report"
	printf 'Died with the machine:  pid %s, %s() of story-hot: %s %% of all samples\n' \
		"$(cat "$OUT/now")" $HOT_FUNCTION "$percent"
	echo "Recording:              $data ($(stat -c %s "$data") bytes)"
}

guest()
{
	if [ ! -e "$OUT/now" ]; then
		before
	else
		touch "$OUT/back"
		after
		touch "$OUT/done"
	fi
}

# On the host

# wait_for FILE VM: of the guest; fails if the machine ends first
wait_for()
{
	while [ ! -e "$1" ]; do
		kill -0 "$2" 2>/dev/null || return
		sleep 0.2
	done
}

# At its end, a machine of the tests restarts: the second time is the end.
reset_once()
{
	wait_for "$OUT/now" "$1" || return 0
	qmp "system_reset "
	wait_for "$OUT/back" "$1" || return 0
	qmp "set-action \"reboot\": \"shutdown\""
}

host()
{
	local vm rc=0

	mkdir -p "$OUT"
	rm -f "$OUT"/{now,back,done,qmp,qmp.log}
	build_hot
	CMD="exec $TOP/tools/testing/vm/${0##*/} guest" VARIANT=patched SMP=2 ACCEL=single \
		APPEND="$PARAMS" \
		QEMU_EXTRA="-action reboot=reset -qmp unix:$OUT/qmp,server=on,wait=off" \
		"$TOP/tools/testing/vm/vm.sh" &
	vm=$!
	# shellcheck disable=SC2064 # it is known now
	trap "kill $vm 2>/dev/null || true" EXIT
	reset_once $vm
	wait $vm || rc=$?
	if [ $rc != 0 ] || [ ! -e "$OUT/done" ]; then
		die "the story of the death ends with status $rc"
	fi
}

if [ "${1-}" = guest ]; then
	guest
else
	export OUT=${OUT:-$BUILD/out/story-death} TIMEOUT=${TIMEOUT:-300}
	host
fi
