#!/bin/bash
# perf record -M, sessions and perf ctl on a machine with many CPUs (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# Each CPU makes records that only it can have made, and each of them is looked for.
#
# FLIGHT_COSTS=FILE: measure what each step costs instead. FILE gets a line "CPUS STEP NS" for
# each, in ns of CPU time. In a guest whose time counts instructions, that is their number.
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

CPUS=$(online_cpus | wc -l)
LAST=$(online_cpus | tail -n1)

# CPU n closes descriptor n + 1,000,000, which is not open.
close_on_each_cpu()
{
	python3 - <<-'END'
		import os
		for cpu in sorted(os.sched_getaffinity(0)):
		    os.sched_setaffinity(0, [cpu])
		    try:
		        os.close(1000000 + cpu)
		    except OSError:
		        pass
	END
}

# has_each_cpu FILE [TIMES]: each CPU that is online has its own record so many times, and no other
has_each_cpu()
{
	perf script -i "$1" -F cpu,event,trace >"$TMP/text" 2>"$TMP/said" ||
		{ cat "$TMP/said"; return 1; }
	sed -nE 's/^ *\[0*([0-9]+)\].*fd: (0x[0-9a-f]+).*/\1 \2/p' "$TMP/text" |
		while read -r cpu fd; do
			echo "$((cpu)) $((fd - 1000000))"
		done | sort -n >"$TMP/found"
	online_cpus | awk -v times="${2-1}" '
		{ for (i = 0; i < times; i++) print $1, $1 }' >"$TMP/wanted"
	diff "$TMP/wanted" "$TMP/found"
}

EVENT=(-e syscalls:sys_enter_close --filter 'fd >= 1000000 && fd < 2000000')

dumps_each_cpu()
{
	start_recorder "$TMP/a" -M 16M -a "${EVENT[@]}"
	close_on_each_cpu
	dump
	opens "$DUMP"
	has_each_cpu "$DUMP"
	# The other one has them as well: a dump takes nothing away.
	close_on_each_cpu
	stop_recorder INT
	opens "$DUMP"
	has_each_cpu "$DUMP" 2
	[ "$(json "$DUMP" lost)" = 0 ]
}

is_told_of()
{
	start_recorder "$TMP/b" -M 16M -a "${EVENT[@]}" --trigger socket
	has "$TMP/b" perf ctl
	close_on_each_cpu
	DUMP=$(perf ctl --dump=b)
	opens "$DUMP"
	has_each_cpu "$DUMP"
	stop_recorder INT
}

reads_a_session_of_each_cpu()
{
	perf record -q -P ca -m 64K -a "${EVENT[@]}"
	[ "$(cat "$PERSISTENT_SYSFS/sessions/ca/cpus")" = "$(cat /sys/devices/system/cpu/online)" ]
	[ "$(perf ctl -i ca | grep -c 'runs .*sys_enter_close')" = "$CPUS" ]
	close_on_each_cpu
	perf record -e persistent/ca/ -o "$TMP/ca.data"
	has_each_cpu "$TMP/ca.data"
	# It wants four times what the buffers have.
	start_recorder "$TMP/c" -M $((CPUS > 16 ? CPUS : 16))M -e persistent/ca/
	close_on_each_cpu
	stop_recorder INT
	[ "$(grep -c '"way": "ioctl"' "$DUMP.json")" = "$CPUS" ]
	has_each_cpu "$DUMP" 2
	perf ctl -d ca
	[ -z "$(sessions)" ]
}

# The last one goes, and comes back.
outlives_a_cpu()
{
	perf record -q -P cb -m 64K -a "${EVENT[@]}"
	start_recorder "$TMP/d" -M 16M -a "${EVENT[@]}"
	close_on_each_cpu
	echo 0 >"/sys/devices/system/cpu/cpu$LAST/online"
	dump
	echo 1 >"/sys/devices/system/cpu/cpu$LAST/online"
	has_each_cpu "$DUMP"
	perf record -e persistent/cb/ -o "$TMP/cb.data"
	has_each_cpu "$TMP/cb.data"
	close_on_each_cpu
	stop_recorder INT
	opens "$DUMP"
	perf record -e persistent/cb/ -o "$TMP/cb.data"
	has_each_cpu "$TMP/cb.data" 2
	perf ctl -d cb
}

# What comes between freeze and thaw is on no CPU.
freezes_each_cpu()
{
	perf record -q -P cc -m 64K -a "${EVENT[@]}"
	close_on_each_cpu
	perf ctl --freeze cc
	close_on_each_cpu
	perf record -e persistent/cc/ -o "$TMP/cc.data"
	has_each_cpu "$TMP/cc.data"
	perf ctl --thaw cc
	close_on_each_cpu
	perf record -e persistent/cc/ -o "$TMP/cc.data"
	has_each_cpu "$TMP/cc.data" 2
	perf ctl -d cc
}

# cost STEP COMMAND...: write what all tasks of a command cost
cost()
{
	local step=$1

	shift
	perf stat -x, -o "$TMP/stat" -e task-clock "$@" >"$TMP/said" 2>&1 ||
		{ cat "$TMP/said"; return 1; }
	awk -F, -v cpus="$CPUS" -v step="$step" '
		/task-clock/ { printf "%d %s %.0f\n", cpus, step, 1000000 * $1 }' "$TMP/stat" |
		tee -a "$FLIGHT_COSTS"
}

costs()
{
	# Programs and libraries come from the disk first.
	perf stat -e task-clock perf record -M 16M -a "${EVENT[@]}" -o "$TMP/e" true
	cost record "$BASE_PERF" record -a "${EVENT[@]}" -o "$TMP/e" true
	cost recorder perf record -M 16M -a "${EVENT[@]}" -o "$TMP/e" true
	cost create perf record -q -P ce -m 64K -a "${EVENT[@]}"
	cost list perf ctl -l
	cost describe perf ctl -i ce
	cost read perf record -e persistent/ce/ -o "$TMP/ce.data"
	cost delete perf ctl -d ce
}

flight_begin_sessions
if [ -n "${FLIGHT_COSTS-}" ]; then
	check "what each step costs on $CPUS CPUs" costs
	persistent_end
	exit
fi
check "a dump has the records of each of $CPUS CPUs" dumps_each_cpu
check "perf ctl tells of a recorder of $CPUS CPUs, and asks it for a dump" is_told_of
check "a session of each CPU is listed, read, recorded and ended" reads_a_session_of_each_cpu
check "the last CPU may go and come back" outlives_a_cpu
check "a session of each CPU is frozen, and goes on" freezes_each_cpu
persistent_end
