#!/bin/bash
# perf record -M: reports of the kernel's detectors as triggers (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# Real stalls, by the module perf_stall, on both sides of what the detectors report. They are
# failures of the machine, so this runs in the test machine alone. PERF_STALL is the module.
# FLIGHT_TIMES: how often, see lib/flight_hits.sh. FLIGHT_HARD=only: hard lockups alone; =no: all
# but those, which want a CPU with its interrupts off to run on, see flight-quiet.sh.
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"
# shellcheck source=lib/flight_hits.sh
. "$(dirname "$0")/lib/flight_hits.sh"
# shellcheck source=lib/stall.sh
. "$(dirname "$0")/lib/stall.sh"

RCU_STALL_TIMEOUT=/sys/module/rcupdate/parameters/rcu_cpu_stall_timeout

# stall_until_hit KIND NAME STALL MS
stall_until_hit()
{
	local pid

	inside stall "${@:2}" | tee "$TMP/stall"
	pid=$(sed -n 's/^stalls as //p' "$TMP/stall")
	hit "$1"
	if [ "$1" != rcu-stall ] && [ "$3" != irqs ]; then
		grep -q "\"trigger_comm\": \"$2\"" "$DUMP.json"
		grep -q "\"trigger_pid\": $pid," "$DUMP.json"
		[ "$(json "$DUMP" trigger_cgroup)" = /flight-stalls ]
	fi
}

# sets SYSCTL=NUMBER...: until the end of the check
sets()
{
	local setting

	for setting; do
		sysctl -n "${setting%%=*}" | sed "s/^/${setting%%=*}=/" >>"$TMP/settings"
	done
	trap 'tac "$TMP/settings" | xargs sysctl -qw; : >"$TMP/settings"' EXIT
	sysctl -qw "$@"
}

# is_at_least KEY NUMBER UNIT: the number in the manifest is
is_at_least()
{
	[ "$(sed -nE "s/^  \"$1\": ([0-9]+),/\1/p" "$DUMP.json")" -ge "$2" ]
	grep -q "\"unit\": \"$3\"" "$DUMP.json"
}

hung()
{
	local stalled

	sets kernel.hung_task_warnings=1 kernel.hung_task_timeout_secs=1
	start stuck hung
	stall short sleep 700
	quiet
	# The reports begin late, so that the kernel tells more than its limit.
	sysctl -qw kernel.hung_task_warnings=0
	inside stall stuck sleep 9000 >"$TMP/stall" &
	stalled=$!
	wait_for grep -q 'stalls as' "$TMP/stall"
	sleep 4
	quiet
	sysctl -qw kernel.hung_task_warnings=1
	wait $stalled
	hit hung
	grep -q '"trigger_comm": "stuck"' "$DUMP.json"
	grep -qE '"trigger_pid": [0-9]+,' "$DUMP.json"
	[ "$(json "$DUMP" trigger_cgroup)" = /flight-stalls ]
	is_at_least value 2 s
	grep -q '"threshold": 1,' "$DUMP.json"
	end 1
}

soft_lockup()
{
	sets kernel.watchdog_thresh=1 kernel.nmi_watchdog=0 kernel.soft_watchdog=1 \
		kernel.watchdog=1
	start soft lockup 1h
	stall short preempt 1000
	quiet
	# The detector counts in units of 1.07 s and looks each 0.4 s: it reports after 1.7 to
	# 3.6 s, and again 2.1 s later at the earliest, which the cooldown swallows.
	stall_until_hit lockup spinner preempt 6000
	is_at_least value 2 s
	grep -q '"threshold": 2,' "$DUMP.json"
	end 1
}

# Linux 6.12 does not say which CPU found it.
hard_lockup()
{
	local told

	sets kernel.watchdog_thresh=1 kernel.soft_watchdog=0 kernel.nmi_watchdog=1 \
		kernel.watchdog=1
	start hard lockup
	# Else the recorder may wait on the run queue of the CPU that is locked up.
	taskset -p 1 "$RECORDER"
	stall short irqs 300
	quiet
	stall_until_hit lockup spinner irqs 5000
	told=$(dmesg | grep -oE 'watchdog: (CPU0: )?Watchdog detected hard LOCKUP on cpu 1$')
	[ "$(json "$DUMP" reason)" = "$(tail -n 1 <<<"$told")" ]
	end 1
}

# Until it is killed: the end of each process is freed after a grace period, so one begins.
begin_grace_periods()
{
	while sleep 0.2; do
		taskset 1 true
	done
}

rcu_stall()
{
	local before others

	before=$(cat $RCU_STALL_TIMEOUT)
	begin_grace_periods &
	others=$!
	# shellcheck disable=SC2064 # the values of now
	trap "kill $others; echo $before >$RCU_STALL_TIMEOUT" EXIT
	echo 3 >$RCU_STALL_TIMEOUT
	start rcu rcu-stall
	stall short rcu 1500
	quiet
	# Reported after three seconds of a grace period, and again after twelve
	stall_until_hit rcu-stall reader rcu 8000
	end 1
}

flight_begin
if ! may_stall; then
	echo "1..0 # SKIP a machine is stalled in the test machine alone"
	exit 2
fi
insmod "$PERF_STALL"
spare_devices
make_cgroup flight-stalls
[ "${FLIGHT_HARD-}" = no ] || check "lockup: hard" again hard_lockup
if [ "${FLIGHT_HARD-}" != only ]; then
	check "hung" again hung
	check "lockup: soft" again soft_lockup
	check "rcu-stall" again rcu_stall
fi
if [ "${FLIGHT_HARD-}" != only ] && ! cat /proc/pressure/cpu >/dev/null 2>&1; then
	check "psi without pressure" fails_somehow 'does not measure pressure: boot with psi=1' \
		perf record -M 4M -a -e cpu-clock -o "$TMP/q" \
		--trigger psi/resource=cpu,some,over=1s/ -- true
fi
rmmod perf_stall
[ ! -e "$TMP/figures" ] || cat "$TMP/figures"
persistent_end
