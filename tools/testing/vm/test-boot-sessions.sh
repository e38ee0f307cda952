#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Sessions from the kernel's command line: they record before there is a user space, and
# what cannot be started is named, and stops nothing. A machine check that is injected
# by QEMU's monitor is read back through persistent/mce_record/, and so is one that the machine
# had before the kernel started, which is delivered by a late_initcall. The commands of the
# guide to sessions are run beside them: it has one of the command line, too.
#
# usage: test-boot-sessions.sh		on the host
#	 test-boot-sessions.sh guest	in the guest
set -uo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"

SESSIONS=/sys/bus/event_source/devices/persistent/sessions
# A corrected error in bank 2 of CPU 0: valid, enabled, with an address.
MCE='mce 0 2 0x9400000000000000 0 0x12340 0'
# One in bank 3 that is there when the kernel starts.
EARLY_MCE='mce 0 3 0x9400000000000000 0 0x56780 0'
# shellcheck disable=SC2054 # the commas are the parameters'
PARAMS=(
	mce_record:mce:mce_record
	boot:sched:sched_process_fork,context-switches,cpu-clock:64K
	bad_event:no:such_event
	bad_size:cpu-clock:64Q
	too_large:cpu-clock:2G
	mce_record:cpu-clock
	event7:cpu-clock
	no_events
	last:cpu-clock:5000
)

# Both of the first, and the last one, on all CPUs.
are_started()
{
	local name
	for name in mce_record boot last; do
		cat "$SESSIONS/$name/"{owner,cpus,nr_events,memory,state} | xargs echo "$name" ||
			return 1
		[ "$(cat "$SESSIONS/$name/owner")" = 0 ] || return 1
		[ "$(cat "$SESSIONS/$name/cpus")" = 0-1 ] || return 1
		[ "$(cat "$SESSIONS/$name/state")" = 0 ] || return 1
	done
	[ "$(find "$SESSIONS" -mindepth 1 -maxdepth 1 | wc -l)" = 3 ]
}

sizes()
{
	[ "$(cat $SESSIONS/mce_record/memory)" = $((2 * (524288 + 4096))) ] &&
		[ "$(cat $SESSIONS/boot/memory)" = $((6 * (65536 + 4096))) ] &&
		[ "$(cat $SESSIONS/boot/nr_events)" = 6 ] &&
		[ "$(cat $SESSIONS/last/memory)" = $((2 * (8192 + 4096))) ]
}

# Each with its text and an error.
bad_ones_are_named()
{
	local param
	for param in bad_event:no:such_event bad_size:cpu-clock:64Q too_large:cpu-clock:2G \
		     mce_record:cpu-clock event7:cpu-clock no_events; do
		dmesg | grep -F "perf_persistent: cannot start perf_persistent=$param: -" ||
			return 1
	done
	dmesg | grep -F "session 'bad_event': there is no event 'no:such_event'"
}

# pid 1 was forked off when this had begun to record: what it runs is in there.
records_from_boot()
{
	timeout 3000 perf record -e persistent/boot/ -N -o /tmp/boot.data || return 1
	timeout 3000 perf script -i /tmp/boot.data -F comm,event,trace >/tmp/boot.txt || return 1
	wc -l /tmp/boot.txt
	grep -q 'sched_process_fork.*comm=init' /tmp/boot.txt &&
		grep -q context-switches /tmp/boot.txt && grep -q cpu-clock /tmp/boot.txt
}

# tells_of_check FILE STATUS ADDRESS: a record has them. That of Linux 7.3 has an array that
# libtraceevent 1.7 cannot print: perf script prints its fields as they are, in decimal.
tells_of_check()
{
	grep "mce_record.*${2#0x}.*${3#0x}" "$1" ||
		grep "mce_record.* status=$(printf %u "$2") addr=$(printf %u "$3") " "$1"
}

# It is asked for again until it is there: the monitor may not get what it is told. A
# second one that finds the first says so in its status (d4).
machine_check_is_read()
{
	local end=$((SECONDS + 600))
	echo 1 >/sys/devices/system/machinecheck/machinecheck0/check_interval || return 1
	while ((SECONDS < end)); do
		echo "# ready for the machine check" >&3
		sleep 2
		timeout 300 perf record -q -e persistent/mce_record/ -N -o /tmp/mce.data || return 1
		timeout 300 perf script -i /tmp/mce.data -F cpu,event,trace >/tmp/mce.txt
		if tells_of_check /tmp/mce.txt 0x9400000000000000 0x12340 ||
		   tells_of_check /tmp/mce.txt 0xd400000000000000 0x12340; then
			return 0
		fi
	done
	tail -n 3 /tmp/mce.txt
	dmesg | grep -i mce
	return 1
}

early_machine_check_is_read()
{
	timeout 300 perf record -q -e persistent/mce_record/ -N -o /tmp/early.data || return 1
	timeout 300 perf script -i /tmp/early.data -F cpu,event,trace >/tmp/early.txt
	if ! tells_of_check /tmp/early.txt 0x9400000000000000 0x56780; then
		tail -n 3 /tmp/early.txt
		dmesg | grep -i mce
		return 1
	fi
}

# CPUs 2 and 3 have never been online: the kernel was booted with two of four.
new_cpus_join()
{
	local name cpu
	[ "$(cat /sys/devices/system/cpu/online)" = 0-1 ] || return 1
	for cpu in 2 3; do
		echo 1 >/sys/devices/system/cpu/cpu$cpu/online || return 1
		timeout 300 perf ctl --join-cpu=$cpu || return 1
	done
	for name in mce_record boot last; do
		[ "$(cat "$SESSIONS/$name/cpus")" = 0-3 ] || return 1
		[ "$(cat "$SESSIONS/$name/state")" = 0 ] || return 1
	done
	[ "$(cat $SESSIONS/boot/memory)" = $((12 * (65536 + 4096))) ]
}

are_claimed()
{
	timeout 3000 perf ctl -d mce_record boot last && [ -z "$(ls -A $SESSIONS)" ]
}

guest()
{
	exec 3>&1
	tap_run "sessions of the command line are started, and no others" are_started
	tap_run "with buffers of the size that was asked for" sizes
	tap_run "what cannot be started is reported by name" bad_ones_are_named
	tap_run "they record from boot" records_from_boot
	tap_run "a machine check from before the boot is in mce_record" early_machine_check_is_read
	tap_run "an injected machine check is in mce_record" machine_check_is_read
	tap_run "the commands of persistent-events.rst work" "$TOP/tools/testing/vm/test-guide.sh" \
		"$TOP/Documentation/admin-guide/perf/persistent-events.rst"
	tap_run "CPUs that are online for the first time join them" new_cpus_join
	tap_run "they are claimed as any other" are_claimed
	tap_end
}

# Tell the monitor when the guest says that it is ready. QEMU forgets what it was told by
# who hung up before it was read: it hangs up itself at the end of its input, for which a
# busy machine gets time.
inject()
{
	local line
	while read -r line; do
		printf '%s\n' "$line"
		[[ $line != *"ready for the machine check"* ]] ||
			echo "$MCE" |
				timeout 300 socat -t 100 - "UNIX-CONNECT:$1" >/dev/null || true
	done
}

# The machine waits until it is told to go on.
inject_early()
{
	local tries
	for ((tries = 0; tries < 3000; tries++)); do
		[ ! -S "$1" ] || break
		sleep 0.1
	done
	printf '%s\ncont\n' "$EARLY_MCE" |
		timeout 300 socat -t 100 - "UNIX-CONNECT:$1" >/dev/null
}

host()
{
	local socket=$OUT/monitor
	mkdir -p "$OUT"
	rm -f "$socket"
	inject_early "$socket" &
	CMD="$TOP/tools/testing/vm/${0##*/} guest" VARIANT=patched SMP=4 ACCEL=single MEM='' \
		ICOUNT='' APPEND="mce=bootlog maxcpus=2 ${PARAMS[*]/#/perf_persistent=}" \
		QEMU_EXTRA="-S -monitor unix:$socket,server=on,wait=off" \
		"$TOP/tools/testing/vm/vm.sh" | inject "$socket"
}

if [ "${1-}" = guest ]; then
	guest
else
	OUT=${OUT:-$BUILD/out/boot-sessions}
	export OUT TIMEOUT=${TIMEOUT:-1100}
	host
fi
