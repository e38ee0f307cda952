#!/bin/bash
# perf ctl --join-cpu lets persistent sessions record on CPUs that come later
# SPDX-License-Identifier: GPL-2.0
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"

CPU1=/sys/devices/system/cpu/cpu1/online
CPU2=/sys/devices/system/cpu/cpu2/online
EXAMPLES=$(dirname "$0")/../../examples/flight

# without_cpu1 COMMAND...: it runs while CPU 1 is offline
without_cpu1()
{
	local rc=0

	echo 0 >$CPU1
	"$@" || rc=$?
	echo 1 >$CPU1
	return $rc
}

# The joiners of root take turns by it.
LOCK=/run/perf/0/join.lock

# in_own_sysfs COMMAND...: as in a unit with PrivateNetwork=, whose network namespace has a
# sysfs of its own
in_own_sysfs()
{
	unshare --net --mount sh -c 'mount -t sysfs none /sys && exec "$@"' - "$@"
}

nr_events()
{
	cat $PERSISTENT_SYSFS/sessions/"$1"/nr_events
}

# Without a name, whatever the number of sessions
joins_all()
{
	without_cpu1 perf record -q -P ja -m 256K -e cpu-clock,sched:sched_switch -a
	without_cpu1 perf record -q -P jb -e cpu-clock -a
	lacks '^ *1 ' perf ctl -i ja
	has "'ja' records on CPU 1: 3 events, 392 KiB of memory" perf ctl --join-cpu=1
	[ "$(cat $PERSISTENT_SYSFS/sessions/ja/cpus)" = "$(cat /sys/devices/system/cpu/online)" ]
	has '^ *1 .*cpu-clock' perf ctl -i jb
}

# They share a buffer, as on the other CPUs; side-band comes last.
joins_alike()
{
	has '^ *1 +0 +0 +256 .* runs +cpu-clock' perf ctl -i ja
	has '^ *1 +1 +0 +256 .* runs +sched:sched_switch' perf ctl -i ja
	has '^ *1 +2 +2 +128 .* runs .*side-band' perf ctl -i ja
}

records_there()
{
	cp /bin/true "$TMP/late-cpu"
	taskset -c 1 perf test -w noploop 1
	taskset -c 1 "$TMP/late-cpu"
	perf record -e persistent/ja/ -N -o "$TMP/ja" 2>/dev/null
	has '^ *perf(-noploop)? .*001.*cpu-clock' perf script -i "$TMP/ja" -F comm,cpu,event
	# Stock perf reads it, with the names that the side-band gave.
	other_perf script -i "$TMP/ja" --show-mmap-events >"$TMP/script" 2>/dev/null
	grep -q '^ *late-cpu .*\[001\].*MMAP2.*/late-cpu' "$TMP/script"
}

joins_once()
{
	local before

	before=$(nr_events ja)
	lacks . perf ctl --join-cpu=1
	has 'records on CPU 1 already' perf ctl --join-cpu 1 ja
	[ "$(nr_events ja)" = "$before" ]
	perf ctl -d ja jb
}

# What was sampled on some CPUs is not sampled on more.
leaves_other_cpus()
{
	without_cpu1 perf record -q -P jc -C 0 -e cpu-clock
	has "'jc' records on CPU 1: 1 events, 132 KiB" perf ctl --join-cpu=1 jc
	has '^ *1 .*side-band' perf ctl -i jc
	lacks '^ *1 .*cpu-clock' perf ctl -i jc
	perf ctl -d jc

	# Nor if those on which it was not are offline now.
	echo 0 >$CPU2
	perf record -q -P jd -C 0 -e cpu-clock
	echo 0 >$CPU1
	echo 1 >$CPU2
	perf ctl --join-cpu=2
	echo 1 >$CPU1
	has '^ *2 .*side-band' perf ctl -i jd
	lacks '^ *2 .*cpu-clock' perf ctl -i jd
	perf ctl -d jd
}

# None takes the other CPU for one on which cpu-clock is not wanted, nor joins one twice.
joins_at_once()
{
	local first second third

	for _ in {1..5}; do
		echo 0 >$CPU2
		without_cpu1 perf record -q -P jm -e cpu-clock -a
		echo 1 >$CPU2
		perf ctl --join-cpu=1 &
		first=$!
		perf ctl --join-cpu=2 &
		second=$!
		in_own_sysfs perf ctl --join-cpu=1 &
		third=$!
		wait $first
		wait $second
		wait $third
		[ "$(nr_events jm)" = 6 ]
		has '^ *1 .*cpu-clock' perf ctl -i jm
		has '^ *2 .*cpu-clock' perf ctl -i jm
		perf ctl -d jm
	done
}

# hold_lock FILE NAME: of the session, until $holder is killed
hold_lock()
{
	cat >"$TMP/hold.py" <<-'EOF'
	import fcntl, sys, time
	with open(sys.argv[1], "r+b") as file:
	    fcntl.lockf(file, fcntl.LOCK_EX, 1, int(sys.argv[2]))
	    open(sys.argv[3], "w").close()
	    time.sleep(1000)
	EOF
	rm -f "$TMP/held"
	python3 "$TMP/hold.py" "$1" "$(cat $PERSISTENT_SYSFS/sessions/"$2"/id)" "$TMP/held" &
	holder=$!
	# It has the output of the check: do not leave it if that fails.
	# shellcheck disable=SC2064 # the value of now
	trap "kill $holder 2>/dev/null || true" EXIT
	for _ in {1..300}; do
		[ ! -e "$TMP/held" ] || break
		pause 0.1
	done
	[ -e "$TMP/held" ]
}

# The one that has the lock may never give it back: perf names it, and ends.
waits_its_turn()
{
	local before began holder

	without_cpu1 perf record -q -P jk -e cpu-clock -a
	without_cpu1 perf record -q -P jl -e cpu-clock -a
	perf ctl --join-cpu=0
	before=$(nr_events jl)
	hold_lock $LOCK jl
	began=$SECONDS
	fails 1 "'jl' gets no CPU now: process $holder .* perf ctl --join-cpu=online jl\$" \
		timeout 60 perf ctl --join-cpu=1
	[ $((SECONDS - began)) -ge 10 ]
	[ $((SECONDS - began)) -lt 40 ]
	[ "$(nr_events jl)" = "$before" ]
	# Nobody holds the lock of the other one.
	has '^ *1 .*cpu-clock' perf ctl -i jk
	fails 1 "'jl' gets no CPU now: process $holder " \
		in_own_sysfs timeout 60 perf ctl --join-cpu=1 jl

	# It waits, and gets its turn.
	(pause 3 && kill "$holder") &
	has "'jl' records on CPU 1" timeout 60 perf ctl --join-cpu=1
	perf ctl -d jk jl
}

# Root of a container has these files of sysfs as well, and is not to keep root waiting.
waits_for_nobody_in_sysfs()
{
	local holder

	without_cpu1 perf record -q -P jv -e cpu-clock -a
	flock -F $PERSISTENT_SYSFS/sessions/jv/nr_events sleep 1000 &
	holder=$!
	# shellcheck disable=SC2064 # the value of now
	trap "kill $holder 2>/dev/null || true" EXIT
	pause 1
	has "'jv' records on CPU 1" timeout 60 perf ctl --join-cpu=1
	kill $holder
	perf ctl -d jv
}

locks_file_of_its_own()
{
	perf record -q -P jx -e cpu-clock -a
	perf ctl --join-cpu=0
	perf ctl -d jx
	[ "$(stat -c '%a %u %F %s' $LOCK)" = '600 0 regular empty file 0' ]
	[ "$(stat -c '%a %u %F' ${LOCK%/*})" = '700 0 directory' ]
	without_cpu1 perf record -q -P jx -e cpu-clock -a
	# In a directory of others, it could be theirs.
	chmod 777 ${LOCK%/*}
	perf ctl --join-cpu=1 2>"$TMP/said" || true
	chmod 700 ${LOCK%/*}
	cat "$TMP/said"
	grep 'keeps two of them apart (/run/perf/0: others may write to it)' "$TMP/said"
	has '^ *1 .*cpu-clock' perf ctl -i jx
	perf ctl -d jx
}

leaves_tasks()
{
	local pid

	sleep 100 &
	pid=$!
	without_cpu1 perf record -q -P jt -e cpu-clock -p $pid
	has 'of tasks' perf ctl -i jt
	lacks . perf ctl --join-cpu=1
	fails 1 'none of its events records on all of a CPU' perf ctl --join-cpu=1 jt
	kill $pid
	perf ctl -d jt
}

# What some tasks did is not what all did: nor is it left out without a word.
refuses_cgroups()
{
	local before group=/sys/fs/cgroup/perf_persistent_join

	echo +memory >/sys/fs/cgroup/cgroup.subtree_control || true
	mkdir $group
	without_cpu1 perf record -q -P jg -a -e cpu-clock -G perf_persistent_join
	before=$(nr_events jg)
	fails 1 'follows a cgroup.* perf record -P jg --add -C 1 -e .* -G' perf ctl --join-cpu=1
	[ "$(nr_events jg)" = "$before" ]
	# Of a cgroup that has gone, there is nothing more to record.
	rmdir $group
	for _ in {1..300}; do
		! has 'cgroup gone .*in cgroup' perf ctl -i jg >/dev/null || break
		pause 0.2
	done
	has "'jg' records on CPU 1: 1 events" perf ctl --join-cpu=1
	perf ctl -d jg
}

# perf cannot copy it: all of the session stays as it is.
refuses_filters()
{
	local before

	without_cpu1 perf record -q -P jf -a -e cpu-clock -e sched:sched_switch \
		--filter 'prev_pid > 1'
	has 'sched:sched_switch \(filter\)' perf ctl -i jf
	has '"filter": true' perf ctl -i jf --json
	before=$(nr_events jf)
	fails 1 'perf record -P jf --add -C 1 -e .* --filter' perf ctl --join-cpu=1
	[ "$(nr_events jf)" = "$before" ]
	perf ctl -d jf
}

waits_for_thaw()
{
	local before

	without_cpu1 perf record -q -P jz -e cpu-clock -a
	before=$(nr_events jz)
	perf ctl --freeze jz
	fails 1 'perf ctl --thaw jz' perf ctl --join-cpu=1 jz
	[ "$(nr_events jz)" = "$before" ]
	perf ctl --thaw jz
	perf ctl --join-cpu=1 jz
	[ "$(nr_events jz)" = $((before + 2)) ]
	perf ctl -d jz
}

# Its memory cgroup has room for the first buffer, not for the second: both are taken back.
joins_whole_or_not()
{
	local before cgroup=$TMP/cgroup rc=0

	without_cpu1 perf record -q -P jw -m 256K -e cpu-clock -a
	without_cpu1 perf record -q -P jw --add -m 32M -e sched:sched_switch -a
	before=$(nr_events jw)
	mkdir "$cgroup"
	mount -t cgroup2 none "$cgroup"
	echo +memory >"$cgroup/cgroup.subtree_control"
	mkdir "$cgroup/small"
	echo 24M >"$cgroup/small/memory.max"
	fails 1 "'jw' does not get CPU 1: there is no room for .* KiB of buffers" bash -c \
		"echo \$\$ >$cgroup/small/cgroup.procs && exec perf ctl --join-cpu=1 jw" || rc=$?
	rmdir "$cgroup/small"
	umount "$cgroup"
	[ $rc = 0 ]
	[ "$(nr_events jw)" = "$before" ]
	perf ctl --join-cpu=1 jw
	[ "$(nr_events jw)" = $((before + 3)) ]
	perf ctl -d jw
}

refuses_what_does_not_go()
{
	perf record -q -P jr -e cpu-clock -a
	fails 1 'CPU 4095 is not online' perf ctl --join-cpu=4095
	fails 1 'not a list of CPUs' perf ctl --join-cpu=x
	fails 1 'not a list of CPUs' perf ctl --join-cpu=
	fails 1 "No persistent session 'none'" perf ctl --join-cpu=1 none
	fails 129 'Usage' perf ctl --join-cpu=1 --json
	fails 129 'Usage' perf ctl --join-cpu=1 -d jr
	perf ctl -d jr
}

users_join_their_own()
{
	perf record -q -P ju -e cpu-clock -C 0
	chmod 755 "$TMP"
	# Of all, none is theirs; a named one is refused.
	lacks . as_user perf ctl --join-cpu=1
	fails 1 'No permission' as_user perf ctl --join-cpu=1 ju
	perf ctl -d ju
}

# Root joins those of users only if they are named: they would be charged to root.
root_joins_its_own()
{
	users_may_make 2
	without_cpu1 as_user perf record -q -P jo -m 64K -e cpu-clock:u -a
	lacks . perf ctl --join-cpu=1
	install -d -m 700 -o nobody "$TMP/xdg"
	has "'u65534.jo' records on CPU 1" \
		as_user env XDG_RUNTIME_DIR="$TMP/xdg" perf ctl --join-cpu=1
	[ "$(stat -c '%a %U' "$TMP/xdg/perf/join.lock")" = '600 nobody' ]
	perf ctl -d u65534.jo
}

joins_all_online()
{
	local before

	without_cpu1 perf record -q -P jp -e cpu-clock -a
	without_cpu1 perf record -q -P jq -e cpu-clock -a
	before=$(nr_events jp)
	has "'jp' records on CPU 1: 2 events" perf ctl --join-cpu=online
	[ "$(nr_events jp)" = $((before + 2)) ]
	[ "$(nr_events jq)" = $((before + 2)) ]
	lacks . perf ctl --join-cpu=online
	perf ctl -d jp jq

	# Several CPUs, one of them on its own
	echo 0 >$CPU2
	without_cpu1 perf record -q -P jp -e cpu-clock -a
	echo 1 >$CPU2
	before=$(nr_events jp)
	has "'jp' records on CPU 2: 2 events" perf ctl --join-cpu=1-2
	[ "$(nr_events jp)" = $((before + 4)) ]
	perf ctl -d jp
}

# run_rules ACTION DEVICE: what udev would run
run_rules()
{
	udevadm test --action="$1" "$2" >"$TMP/rule" 2>&1
	cat "$TMP/rule" >&2
	sed -n "s/.*run: '\(.*\)'$/\1/p" "$TMP/rule"
}

# Rules of udev start the unit of a CPU that comes, and the one of all CPUs after a thaw.
rules_start_units()
{
	local rules=/run/udev/rules.d device monitor step systemctl='/usr/bin/systemctl --no-block'

	mkdir -p $rules
	# shellcheck disable=SC2064 # the values of now
	trap "rm -f $rules/90-perf-flight.rules $rules/89-uevent.rules" EXIT
	cp "$EXAMPLES/90-perf-flight.rules" $rules
	[ "$(run_rules online /devices/system/cpu/cpu1)" = \
		"$systemctl start perf-flight-join@1.service" ]

	# What the kernel says
	perf record -q -P jy -e cpu-clock -a
	SYSTEMD_IGNORE_CHROOT=1 udevadm monitor --kernel --property >"$TMP/uevents" &
	monitor=$!
	for _ in {1..20}; do
		perf ctl --freeze jy
		perf ctl --thaw jy
		! grep -q SESSION_EVENT=thaw "$TMP/uevents" || break
		pause 0.5
	done
	kill $monitor
	perf ctl -d jy
	# The paragraph of the first thaw
	awk -v RS= '/SESSION_EVENT=thaw/ { print; exit }' "$TMP/uevents" >"$TMP/thaw"
	cat "$TMP/thaw"
	grep -qx ACTION=change "$TMP/thaw"
	grep -qx SUBSYSTEM=event_source "$TMP/thaw"
	device=$(sed -n 's/^DEVPATH=//p' "$TMP/thaw")
	# udevadm reads no more than action and device: a rule before ours tells the rest.
	grep -qx SESSION=jy "$TMP/thaw"
	for step in 'thaw jy' 'freeze jy' 'thaw u1000.jy'; do
		# shellcheck disable=SC2086 # two words
		printf 'ENV{SESSION_EVENT}="%s", ENV{SESSION}="%s"\n' $step >$rules/89-uevent.rules
		run_rules change "$device" >"$TMP/after $step"
	done
	[ "$(cat "$TMP/after thaw jy")" = "$systemctl restart perf-flight-join@online.service" ]
	[ ! -s "$TMP/after freeze jy" ]
	# Whoever may freeze sessions of their own cannot have root's unit run for each.
	[ ! -s "$TMP/after thaw u1000.jy" ]
}

# What the unit runs, with its capabilities
unit_joins()
{
	local unit=$EXAMPLES/perf-flight-join@.service caps command

	caps=$(sed -n 's/^CapabilityBoundingSet=//p' "$unit" | tr '[:upper:]' '[:lower:]' |
		sed 's/cap_/+/g; s/ /,/g')
	command=$(sed -n 's|^ExecStart=/usr/bin/||p' "$unit")
	without_cpu1 perf record -q -P jn -e cpu-clock,sched:sched_switch -a
	without_cpu1 perf record -q -P jo -e cpu-clock -a
	perf ctl --freeze jo
	rm -f $LOCK
	# shellcheck disable=SC2086 # a list of words
	fails 1 "'jo' is frozen" \
		setpriv --no-new-privs --bounding-set="-all,$caps" ${command/\%i/1}
	has '^ *1 .*sched:sched_switch' perf ctl -i jn
	[ -e $LOCK ]
	# After the thaw, it is started again.
	perf ctl --thaw jo
	# shellcheck disable=SC2086
	setpriv --no-new-privs --bounding-set="-all,$caps" ${command/\%i/online}
	has '^ *1 .*cpu-clock' perf ctl -i jo
	perf ctl -d jn jo
}

persistent_begin
if [ ! -w $CPU1 ]; then
	echo "1..0 # SKIP CPU 1 cannot go offline"
	exit 2
fi
check "all sessions of all CPUs get one that came later" joins_all
check "its events share buffers as on the other CPUs" joins_alike
check "what happens there is recorded, and named" records_there
check "a CPU joins once" joins_once
if [ -w $CPU2 ]; then
	check "events of some CPUs stay there" leaves_other_cpus
	check "CPUs join at once" joins_at_once
	check "all CPUs that are online join" joins_all_online
else
	leave_out "events of some CPUs stay there" "there is no third CPU"
	leave_out "CPUs join at once" "there is no third CPU"
	leave_out "all CPUs that are online join" "there is no third CPU"
fi
check "one that never ends its turn is named" waits_its_turn
check "who locks a file in sysfs keeps nobody waiting" waits_for_nobody_in_sysfs
check "the lock is in a directory of the user" locks_file_of_its_own
check "sessions of tasks are left alone" leaves_tasks
check "an event with a filter is not made without it" refuses_filters
check "an event of a cgroup is not made without it" refuses_cgroups
check "a frozen session gets no CPU, until it is thawed" waits_for_thaw
check "a CPU joins whole or not at all" joins_whole_or_not
check "what does not go is refused" refuses_what_does_not_go
check "users do nothing to the sessions of others" users_join_their_own
check "without a name, root joins its own sessions" root_joins_its_own
if command -v udevadm >/dev/null; then
	check "rules of udev start the unit, also after a thaw" rules_start_units
else
	leave_out "rules of udev start the unit, also after a thaw" "udevadm is not installed"
fi
check "the capabilities of the unit suffice" unit_joins
persistent_end
