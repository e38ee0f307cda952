#!/bin/bash
# kernel.perf_persistent_freeze freezes sessions when its causes occur (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# Each cause is a real one: the OOM killer has a victim, and the module perf_stall makes a task
# oops, hang, lock up a CPU, or stall RCU. These are failures of the machine, so this runs in the
# test machine alone. PERF_STALL is the module. A panic is tested by tools/testing/vm/test-drgn.sh.
#
# What the kernel says of a cause is in the session as well, by the tracepoint printk:console. A
# session that is frozen at once lacks it. With a delay it is there, and the session is frozen
# after it.
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"
# shellcheck source=lib/stall.sh
. "$(dirname "$0")/lib/stall.sh"

FREEZE_ON=/proc/sys/kernel/perf_persistent_freeze
STATE=$PERSISTENT_SYSFS/sessions/causes/state
RCU=/sys/module/rcupdate/parameters
CGROUP=/sys/fs/cgroup/freeze-causes
STALL_MS=60000
DELAY_MS=1000

# What each event is to the sysctl, and what the kernel says of it behind the freeze
declare -A CAUSE=(
	[oom]=oom [hung]=hung [softirq]=lockup [preempt]=lockup [irqs]=lockup [rcu]=rcu-stall
	[oops]=oops
)
declare -A SAYS=(
	[oom]='Memory cgroup out of memory: Killed process'
	[hung]='INFO: task .* blocked for more than'
	[softirq]='BUG: soft lockup - CPU#1 stuck'
	[preempt]='BUG: soft lockup - CPU#1 stuck'
	[irqs]='Watchdog detected hard LOCKUP on cpu 1'
	[rcu]='rcu: INFO: rcu_.*detected'
	[oops]='---\[ end trace'
)
# PERF_PERSISTENT_FREEZE_*
declare -A REASON=([oops]=3 [oom]=5 [hung]=6 [rcu-stall]=7 [lockup]=8)

can_cause()
{
	case $1 in
	oom) grep -qw memory /sys/fs/cgroup/cgroup.controllers ;;
	hung) [ -e /proc/sys/kernel/hung_task_timeout_secs ] ;;
	softirq|preempt|irqs) [ -e /proc/sys/kernel/watchdog ] ;;
	# The parameter of the kernel's command line
	rcu) [ "$(cat $RCU/rcu_cpu_stall_notifiers 2>/dev/null)" = 1 ] ;;
	esac
}

# Only the detector of the event looks. The default of each is to look for none.
detect()
{
	case $1 in
	hung) sysctl -qw kernel.hung_task_warnings=1000 kernel.hung_task_timeout_secs=1 ;;
	softirq|preempt)
		sysctl -qw kernel.watchdog_thresh=1 kernel.nmi_watchdog=0 \
			kernel.soft_watchdog=1 kernel.watchdog=1
		;;
	irqs)
		sysctl -qw kernel.watchdog_thresh=1 kernel.soft_watchdog=0 \
			kernel.nmi_watchdog=1 kernel.watchdog=1
		;;
	rcu) echo 3 >$RCU/rcu_cpu_stall_timeout ;;
	oops) sysctl -qw kernel.panic_on_oops=0 ;;
	esac
}

detect_nothing()
{
	echo >$FREEZE_ON
	sysctl -qew kernel.hung_task_timeout_secs=0 kernel.watchdog=0 kernel.panic_on_oops=1
	echo 60 >$RCU/rcu_cpu_stall_timeout
}

use_up_memory()
{
	echo "$BASHPID" >$CGROUP/cgroup.procs
	exec tail /dev/zero
}

# cause EVENT: in the background, on CPU 1; sets CAUSER
cause()
{
	case $1 in
	oom) use_up_memory & ;;
	hung) taskset 2 bash -c "echo sleep $STALL_MS >/dev/perf_stall" & ;;
	*) taskset 2 bash -c "echo $1 $STALL_MS >/dev/perf_stall" & ;;
	esac
	CAUSER=$!
}

marks()
{
	echo "<6>freeze-causes $1 $ROUND" >/dev/kmsg
}

# The kernel has told of the event in this round.
is_told()
{
	dmesg | sed "1,/freeze-causes before $ROUND\$/d" | grep -cE -e "${SAYS[$1]}" >/dev/null
}

# FREEZING comes on top of it until the CPU runs tasks again.
is_frozen()
{
	(($(cat "$STATE") & 8))
}

is_settled()
{
	[ "$(cat "$STATE")" = 8 ]
}

is_over()
{
	! kill -0 "$CAUSER" 2>/dev/null
}

# begin_round EVENT CAUSES: it occurs
begin_round()
{
	trap stop_causing EXIT
	! sessions | grep -x causes || perf ctl -d causes
	perf record -q -P causes -m 256K -e printk:console -a
	ROUND=$BASHPID-$RANDOM
	read -r BEGAN _ </proc/uptime
	echo "$2" >$FREEZE_ON
	detect "$1"
	marks before
	cause "$1"
	FLIGHT_WAIT=$((STALL_MS / 1000)) wait_for is_told "$1"
}

stop_causing()
{
	echo end 0 >/dev/perf_stall
	detect_nothing
}

end_round()
{
	stop_causing
	wait "$CAUSER" || true
}

# session_info: what froze it, and when by CLOCK_MONOTONIC, in ns; the other times agree with that
session_info()
{
	python3 -SE - "$(cat "${STATE%/*}/id")" "$BEGAN" <<-'END'
		import ctypes, fcntl, os, struct, sys, time
		PERF_EVENT_OPEN = 241 if os.uname().machine == "aarch64" else 298
		PERF_TYPE_PERSISTENT, INFO_SIZE = 6, 144
		SESSION_INFO = 3 << 30 | INFO_SIZE << 16 | ord("$") << 8 | 36
		attr = struct.pack("IIQ40xQ", PERF_TYPE_PERSISTENT, 64, int(sys.argv[1]), 2**64 - 1)
		fd = ctypes.CDLL(None).syscall(PERF_EVENT_OPEN, attr, -1, -1, ctypes.c_long(-1), 8)
		info = bytearray(struct.pack("I140x", INFO_SIZE))
		fcntl.ioctl(fd, SESSION_INFO, info)
		reason, = struct.unpack_from("I", info, 28)
		begin, frozen, mono, real = struct.unpack_from("4Q", info, 48)
		if mono:
		    assert begin <= frozen
		    assert float(sys.argv[2]) - 0.02 <= mono / 1e9 <= time.monotonic()
		    assert abs(real - mono - time.time_ns() + time.monotonic_ns()) < 1e9
		print(reason, mono)
	END
}

# What has been recorded, of any process: the time in ns, and the message
reads_session()
{
	perf record -q -e persistent/causes/ -o "$TMP/data"
	perf script -i "$TMP/data" --ns -F time,trace >"$TMP/text"
	cat "$TMP/text"
	grep -q "freeze-causes before $ROUND" "$TMP/text"
	not grep -q "freeze-causes after $ROUND" "$TMP/text"
}

named_causes()
{
	local causes=oops,panic,oom,hung,lockup

	! can_cause rcu || causes+=,rcu-stall
	echo "$causes"
}

# With each other cause named, the session goes on.
is_not_asked_for()
{
	local others

	others=,$(named_causes),
	others=${others/,${CAUSE[$1]},/,}
	others=${others#,}
	begin_round "$1" "${others%,}"
	end_round
	session_info
	[ "$(session_info)" = '0 0' ]
	[ "$(cat "$STATE")" = 0 ]
	has '^causes .* runs$' perf ctl -l
}

# freezes EVENT MS: after MS. A stall that the event comes from goes on meanwhile.
freezes()
{
	local reason mono

	begin_round "$1" "${CAUSE[$1]}:$2"
	FLIGHT_WAIT=20 wait_for is_frozen
	[ "$1" = oom ] || [ "$1" = oops ] || not is_over
	marks after
	end_round
	FLIGHT_WAIT=20 wait_for is_settled
	has '^causes .* frozen$' perf ctl -l
	read -r reason mono < <(session_info)
	echo "reason $reason, frozen at $mono"
	[ "$reason" = "${REASON[${CAUSE[$1]}]}" ]
	reads_session
	awk -v mono="$mono" -v delay="$2" -v says="${SAYS[$1]//\\/\\\\}" '
		{ time = $1 * 1e9 }
		# Of two CPUs
		time > mono + 1e6 { print "late: " $0; bad = 1 }
		$0 ~ says && !said { said = time }
		END {
			if (delay && (!said || said + delay * 1e6 / 2 > mono))
				bad = 1
			if (!delay && said)
				bad = 1
			if (bad)
				print "the kernel said so at " said
			exit bad
		}' "$TMP/text"
}

# hard_after_soft MS: a hard lockup within the delay of a soft one. The CPU on which the delay has
# begun takes no interrupts then: another one freezes, when that delay is over. Sets FOUND to
# "in time", or to what was seen.
hard_after_soft()
{
	local reason mono

	FOUND=late
	begin_round softirq "lockup:$1"
	echo end 0 >/dev/perf_stall
	wait "$CAUSER" || true
	detect irqs
	cause irqs
	FLIGHT_WAIT=$((STALL_MS / 1000)) wait_for is_told irqs
	if is_frozen; then
		end_round
		return
	fi
	FLIGHT_WAIT=$(($1 / 1000 + 10)) wait_for is_frozen
	not is_over
	end_round
	FLIGHT_WAIT=20 wait_for is_settled
	read -r reason mono < <(session_info)
	[ "$reason" = "${REASON[lockup]}" ]
	reads_session
	FOUND=$(awk -v mono="$mono" -v ms="$1" -v soft="${SAYS[softirq]}" -v hard="${SAYS[irqs]}" '
		$0 ~ soft && !first { first = $1 * 1e9 }
		$0 ~ hard && !second { second = $1 * 1e9 }
		END {
			if (first && second && mono < (first + second) / 2 + ms * 1e6)
				print "in time"
			else
				print "at", first, "and", second, "and frozen at", mono
		}' "$TMP/text")
}

# A busy machine takes longer to find the second one, and to freeze.
delay_is_not_prolonged()
{
	hard_after_soft 6000
	[ "$FOUND" = 'in time' ] || hard_after_soft 25000
	echo "found $FOUND"
	[ "$FOUND" = 'in time' ]
}

begin()
{
	insmod "$PERF_STALL"
	spare_devices
	# What this starts is not to wait for a CPU that is locked up.
	taskset -p 1 $$ >/dev/null
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	mkdir -p $CGROUP
	echo 8M >$CGROUP/memory.max
	detect_nothing
}

# check_event WORDS EVENT [EVENT]: the second one freezes at once
check_event()
{
	if ! can_cause "$2"; then
		leave_out "$1" "this kernel does not report it, or not to perf"
		return
	fi
	check "$1: freezes nothing unless it is asked for" is_not_asked_for "$2"
	check "$1: after a second" freezes "$2" $DELAY_MS
	[ -z "${3-}" ] || check "$1: at once" freezes "$3" 0
}

persistent_begin
if ! may_stall; then
	echo "1..0 # SKIP a machine is stalled in the test machine alone"
	exit 2
fi
begin
check_event "OOM killer" oom 'oom'
check_event "hung task" hung 'hung'
check_event "soft lockup" softirq preempt
check_event "hard lockup" irqs
if can_cause irqs; then
	check "hard lockup after a soft one: when the first delay is over" delay_is_not_prolonged
else
	leave_out "hard lockup after a soft one: when the first delay is over" \
		"this kernel does not report it"
fi
check_event "RCU stall" rcu 'rcu'
# Behind an oops the kernel looks for hung tasks no more.
check_event "oops" oops 'oops'
rmmod perf_stall
persistent_end
