#!/bin/bash
# perf verdict (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# Incidents with a known cause, of which perf verdict is to tell it; and a busy machine
# without one. INCIDENT, VERDICT_RUNS: see lib/verdict_judge.sh. PERF_STALL is the module
# perf_stall.ko of test_modules/ beside the program INCIDENT. It may record on one machine, and
# read on another, see lib/apart.sh; then it does without interrupts, as with VERDICT_HANDLERS=no.
# VERDICT_HANDLERS=only: interrupts alone; =no: all but those. Under QEMU's -icount, a CPU with its
# interrupts off can stand still for a second, so that its handlers are long. Prints TAP.
set -e

# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"
# shellcheck source=lib/apart.sh
. "$(dirname "$0")/lib/apart.sh"
# shellcheck source=lib/verdict_judge.sh
. "$(dirname "$0")/lib/verdict_judge.sh"
# shellcheck source=lib/verdict_missing.sh
. "$(dirname "$0")/lib/verdict_missing.sh"

USUAL=$SWITCH,$WAKING,$NEW
BLOCK=block:block_rq_issue,block:block_rq_complete
RECLAIM=vmscan:mm_vmscan_direct_reclaim_begin,vmscan:mm_vmscan_direct_reclaim_end
RECLAIM+=,vmscan:mm_vmscan_memcg_reclaim_begin,vmscan:mm_vmscan_memcg_reclaim_end
CONTENTION=lock:contention_begin,lock:contention_end
INTERRUPTS=irq:irq_handler_entry,irq:irq_handler_exit,irq:softirq_entry,irq:softirq_exit

records_nofp()
{
	INCIDENT=${INCIDENT}_nofp records "$@"
}

# has_cgroups CONTROLLER
has_cgroups()
{
	[ -w /sys/fs/cgroup/cgroup.subtree_control ] &&
		grep -qw "$1" /sys/fs/cgroup/cgroup.controllers
}

# container [conmon-]: sets ID and GROUP of a container of podman's, or of its monitor
container()
{
	ID=$(printf '%064x' 12648430)
	GROUP=libpod-$1$ID.scope
}

# The cgroup is made while the recording runs, so its name is recorded on kernels without
# CONFIG_FHANDLE, too.
records_container()
{
	container "${1-}"
	# Otherwise perf_event knows the root alone.
	echo +cpu >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null || true
	# shellcheck disable=SC2016 # for the shell in there
	perf record -q "${SYMBOLS[@]}" -a -m 4M -o "$TMP/data" -e cpu-clock/freq=199/ \
		-e "$USUAL" -g --all-cgroups -- \
		sh -c 'mkdir "$0"; echo $$ >"$0/cgroup.procs"; exec "$@"' "/sys/fs/cgroup/$GROUP" \
		"$INCIDENT" file_lock 1.5 "$TMP/truth"
	rmdir "/sys/fs/cgroup/$GROUP"
}

records_in_namespace()
{
	cat >"$TMP/record.sh" <<-END
		perf record -q ${SYMBOLS[*]} -a -m 4M -g -o "$TMP/data" -e cpu-clock/freq=199/ \
			-e $USUAL -- "$INCIDENT" convoy 1.5 "$TMP/truth"
	END
	unshare -pf --mount-proc sh "$TMP/record.sh"
	cat "$TMP/truth"
}

# The switches of some tasks alone
records_tasks()
{
	perf record -q "${SYMBOLS[@]}" -g -o "$TMP/data" -e $SWITCH,$WAKING -- \
		"$INCIDENT" convoy 1 "$TMP/truth"
}

# records_little OPTION...: events that tell nobody's waits
records_little()
{
	perf record -q "${SYMBOLS[@]}" -o "$TMP/data" "$@"
}

# Those that take nothing but this program, and what this machine has got beside it
list_recordings()
{
	local name

	for name in convoy chain inversion runaway neighbour file_lock file_write deadlock; do
		RECORDINGS[$name]="records 1.5 $name $USUAL -g"
	done
	RECORDINGS+=(
		# A host that keeps the guest from running for a period makes the kernel complain:
		# it is long.
		[quota]="records 3 quota $USUAL -g"
		# A slow machine needs a while to make 200 tasks.
		[forks]="records 4 forks $USUAL -g"
		[calm1]="records 1.5 calm $USUAL -g"
		[calm2]="records 1.5 calm $USUAL -g"
		[yield]="records 3 calm_yield $USUAL -g"
		[yield_flat]="records 3 calm_yield $USUAL"
		[contention]="records 1.5 file_write $SWITCH,$WAKING,$CONTENTION"
		[contention_begin]="records 1 file_write $SWITCH,$WAKING,${CONTENTION%,*}"
		[tasks]=records_tasks
		[clocks]="records_little --sample-cpu -e cpu-clock/name=$WAKING/
			-e cpu-clock/name=$SWITCH/ -e cpu-clock/name=$NEW/ -- sleep 0.2"
		[dummy]="records_little -e dummy -- true"
		[sampled]="records_little -c 2 -e $SWITCH -- true"
	)
	[ ! -x "${INCIDENT}_nofp" ] || RECORDINGS+=(
		[nofp_convoy]="records_nofp 1.5 convoy $USUAL -g"
		[nofp_chain]="records_nofp 1.5 chain $USUAL -g"
	)
	! has_cgroups cpu || RECORDINGS+=(
		[cpu_max]="records 1.5 cpu_max $USUAL -g"
		[calm_cpu_max]="records 1.5 calm_cpu_max $USUAL -g"
	)
	[ ! -w /sys/fs/cgroup/cgroup.procs ] || RECORDINGS+=(
		[container]=records_container
		[monitor]="records_container conmon-"
	)
	! unshare -pf --mount-proc true 2>/dev/null || RECORDINGS+=(
		[namespace]=records_in_namespace
	)
	[ -w /sys/kernel/config ] && [ -d /sys/module/null_blk ] || return 0
	RECORDINGS+=(
		[slow_disk]="records 1.5 slow_disk $USUAL,$BLOCK -g"
		[calm_disk]="records 1.5 calm_disk $USUAL,$BLOCK -g"
	)
	! has_cgroups memory || RECORDINGS+=(
		[reclaim]="records 1.5 reclaim $USUAL,$RECLAIM -g --all-cgroups"
		[calm_memory]="records 1.5 calm_memory $USUAL,$RECLAIM -g"
		# The more it has got, the longer it waits each time. A slow machine needs a while.
		[memory_high]="records 4 memory_high $USUAL -g --all-cgroups"
		[dirty_pages]="records 1.5 dirty_pages $USUAL -g --all-cgroups"
	)
}

# tells NAME [EVENT...]: also, that it takes these
tells()
{
	for ((i = 0; i < ${VERDICT_RUNS:-1}; i++)); do
		get "$1"
		perf verdict -i "$TMP/data" --json | tee "$TMP/json" | grep '"sentence"' || true
		keep_json
		names
		takes "${@:2}"
	done
}

# Callers are unknown, or wrong. The culprits are found without them.
tells_without_frame_pointers()
{
	tells nofp_convoy
	tells nofp_chain
}

finds_nothing()
{
	for ((i = 0; i < 2 * ${VERDICT_RUNS:-1}; i++)); do
		get calm$((i % 2 + 1))
		judges
		grep -q '^Nothing was found that held tasks up' "$TMP/text"
	done
}

# A task with a deadline that ends its turn by itself is not held back.
finds_no_quota()
{
	get yield
	judges
	grep -q '^Nothing was found that held tasks up' "$TMP/text"
	get yield_flat
	judges
	grep -q '^Nothing was found that held tasks up' "$TMP/text"
}

# Nor is one whose cgroup has a limit that it does not reach.
finds_no_cpu_max()
{
	for ((i = 0; i < ${VERDICT_RUNS:-1}; i++)); do
		get calm_cpu_max
		judges
		grep -q '^Nothing was found that held tasks up' "$TMP/text"
	done
}

# With the events of requests, the device; without them nothing, but what it would take.
tells_disk()
{
	for ((i = 0; i < ${VERDICT_RUNS:-1}; i++)); do
		get slow_disk
		judges_both
		names
		not grep -q '^Not recorded: for which block devices' "$TMP/text"
		python3 - "$TMP/json" <<-'END'
			import json, sys
			first = json.load(open(sys.argv[1]))['findings'][0]
			# It was made to take 60 ms for each request.
			if first['culprits'] or first['requests'] < 5 or first['slowest_ns'] < 59e6:
			    sys.exit('%r' % first)
		END
		takes $SWITCH $WAKING -g ${BLOCK/,/ }
		perf verdict -i "$TMP/less" | tee "$TMP/text"
		grep -q '^Nothing was found' "$TMP/text"
		grep -q '^Not recorded: for which block devices tasks waited (-e block:' \
			"$TMP/text"
	done
}

finds_no_disk()
{
	for ((i = 0; i < ${VERDICT_RUNS:-1}; i++)); do
		get calm_disk
		[ "$(perf script -i "$TMP/data" -F event 2>/dev/null |
			grep -c block_rq_complete)" -gt 20 ]
		judges
		grep -q '^Nothing was found that held tasks up' "$TMP/text"
	done
}

# Softirqs of 0.7 ms each
tells_storm()
{
	for ((i = 0; i < ${VERDICT_RUNS:-1}; i++)); do
		records 1.5 storm $USUAL,$INTERRUPTS -g
		judges_both
		names
		python3 - "$TMP/json" <<-'END'
			import json, sys
			first = json.load(open(sys.argv[1]))['findings'][0]
			if first['culprits'] or first['storm_ns'] < first['storms_ns'] / 2:
			    sys.exit('%r' % first)
		END
		takes irq:softirq_entry irq:softirq_exit
	done
}

# tells_interrupts NAME EVENT...: by what, and on which CPU; without one of the events nothing
tells_interrupts()
{
	for ((i = 0; i < ${VERDICT_RUNS:-1}; i++)); do
		records 1.5 "$1" $USUAL,$INTERRUPTS -g
		judges_both
		names
		not grep -q '^Not recorded: whether interrupts' "$TMP/text"
		python3 - "$TMP/json" <<-'END'
			import json, sys
			first = json.load(open(sys.argv[1]))['findings'][0]
			# It has the CPU for 30 ms each time.
			if (first['culprits'] or first['interrupts'] < 5 or
			    first['longest_ns'] < 29e6):
			    sys.exit('%r' % first)
		END
		takes "${@:2}"
		perf verdict -i "$TMP/less" | tee "$TMP/text"
		not grep -qE ' (softirq TIMER|\(perf_stall\))' "$TMP/text"
		grep -q '^Not recorded: whether interrupts .*(-e irq:' "$TMP/text"
	done
}

finds_no_interrupts()
{
	for ((i = 0; i < ${VERDICT_RUNS:-1}; i++)); do
		records 1.5 calm_irqs $USUAL,$INTERRUPTS -g
		perf script -i "$TMP/data" -F event >"$TMP/events" 2>/dev/null
		[ "$(grep -c softirq_exit "$TMP/events")" -gt 20 ]
		judges
		grep -q '^Nothing was found that held tasks up' "$TMP/text"
	done
}

# By whom, and for which cgroup; without the events nothing, but what it would take
tells_reclaim()
{
	for ((i = 0; i < ${VERDICT_RUNS:-1}; i++)); do
		get reclaim
		judges_both
		names
		not grep -q '^Not recorded: which tasks reclaimed' "$TMP/text"
		python3 - "$TMP/json" <<-'END'
			import json, sys
			first = json.load(open(sys.argv[1]))['findings'][0]
			if not first['cgroup'].startswith('/incident-') or first['reclaims'] < 20:
			    sys.exit('%r' % first)
		END
		takes vmscan:mm_vmscan_memcg_reclaim_begin vmscan:mm_vmscan_memcg_reclaim_end
		perf verdict -i "$TMP/less" | tee "$TMP/text"
		not grep -q ' reclaim memory' "$TMP/text"
		grep -q '^Not recorded: which tasks reclaimed memory (-e vmscan:' "$TMP/text"
	done
}

# The cache fits.
finds_no_reclaim()
{
	for ((i = 0; i < ${VERDICT_RUNS:-1}; i++)); do
		get calm_memory
		judges
		grep -q '^Nothing was found that held tasks up' "$TMP/text"
	done
}

# Which limit it is, whatever other events were recorded
tells_throttled()
{
	for ((i = 0; i < ${VERDICT_RUNS:-1}; i++)); do
		get "$1"
		judges_both
		names
		python3 - "$TMP/json" "$1" <<-'END'
			import json, sys
			first = json.load(open(sys.argv[1]))['findings'][0]
			if first['culprits'] or first['cost_ns'] < 500e6:
			    sys.exit('%r' % first)
			if first['chain'][-1]['root'] != 'throttled':
			    sys.exit('%r' % first)
			if sys.argv[2] == 'memory_high':
			    if not first['cgroup'].startswith('/incident-'):
			        sys.exit('%r' % first)
			elif 'cgroup' in first:
			    sys.exit('%r' % first)
		END
		takes -g
	done
}

# tells_names ID: those in the manifest of a dump, cleaned of what a terminal would obey
tells_names()
{
	local kept='{"name": "we\u001b[2Jb", "pod": "shop-7d9", "pod_namespace": "shop"}'

	printf '{"containers": {"%s": %s}}\n' "$1" "$kept" >"$TMP/data.json"
	judges_both
	rm "$TMP/data.json"
	[ "$(grep -c " is in container we?\[2Jb ($1) in namespace shop\$" "$TMP/text")" -ge 2 ]
	python3 - "$TMP/json" <<-'END'
		import json, sys
		first = json.load(open(sys.argv[1]))['findings'][0]
		for task in first['victims'][0], first['culprits'][0]:
		    if [task.get(key) for key in ('container_name', 'pod', 'pod_namespace')] != \
		       ['we\x1b[2Jb', 'shop-7d9', 'shop']:
		        sys.exit('%r' % task)
	END
}

# tells_containers RECORDING: victim and culprit are in a container, or watch one
tells_containers()
{
	local prefix=

	[ "$1" != monitor ] || prefix=conmon-
	container "$prefix"
	get "$1"
	judges_both
	names
	python3 - "$TMP/json" "/$GROUP" "${prefix:-$ID}" <<-'END'
		import json, sys
		first = json.load(open(sys.argv[1]))['findings'][0]
		for task in first['victims'][0], first['culprits'][0]:
		    container = None if sys.argv[3] == 'conmon-' else sys.argv[3]
		    if (task['cgroup'], task.get('container')) != (sys.argv[2], container):
		        sys.exit('%r' % task)
	END
	if [ -z "$prefix" ]; then
		[ "$(grep -c "^   .* ([0-9]*) is in container $ID\$" "$TMP/text")" -ge 2 ]
		tells_names "$ID"
	else
		not grep -q " is in container " "$TMP/text"
	fi
}

# Without call chains, the events of contention tell who waits for a lock of the kernel.
tells_contention()
{
	get contention
	judges_both
	names
	grep -q '^Not recorded: in what tasks waited' "$TMP/text"
	# Nor do those that begin, without those that end.
	get contention_begin
	judges
	grep -q '^Nothing was found' "$TMP/text"
}

# Without an event, no culprit is made up, and what it would take is told.
tells_what_it_takes()
{
	get convoy
	without $WAKING
	mv "$TMP/less" "$TMP/data"
	judges_both
	grep -q '^Not recorded: who was woken by whom.*sched:sched_waking' "$TMP/text"
	python3 - "$TMP/truth" "$TMP/json" <<-'END'
		import json, sys
		truth = dict(line.split(None, 1) for line in open(sys.argv[1]))
		found = json.load(open(sys.argv[2]))['findings']
		waits = [f for f in found if f['kind'] == 'wait']
		if not waits or any(f['culprits'] or f['root'] != 'unknown' for f in waits):
		    sys.exit('%r' % [f['sentence'] for f in found])
		if truth['victim'].strip() not in [t['comm'] for t in waits[0]['victims']]:
		    sys.exit('%r' % waits[0]['victims'])
	END
	without $SWITCH
	mv "$TMP/less" "$TMP/data"
	judges
	grep -q '^Not recorded: who waited .*sched:sched_switch' "$TMP/text"
	grep -q '^Nothing was found' "$TMP/text"
}

# The switches of some tasks are not all: nothing is claimed of the CPUs of others.
names_who_is_incomplete()
{
	get tasks
	judges
	grep -qE '^Not every switch is here. Unknown are up to .* of [0-9]+ tasks: ' "$TMP/text"
}

refuses()
{
	fails 1 'cannot read from a pipe' perf verdict -i - </dev/null
	fails 1 'No such file' perf verdict -i "$TMP/none"
	get dummy
	judges
	grep -q '^Not recorded: who waited ' "$TMP/text"
	get sampled
	judges
	grep -q '^Not recorded: who waited: it was sampled; use cpu-clock/freq=99/' "$TMP/text"
}

# In a PID namespace, samples have other numbers of tasks than the fields of tracepoints.
tells_in_namespace()
{
	get namespace
	judges_both
	names
	python3 - "$TMP/json" <<-'END'
		import json, sys
		first = json.load(open(sys.argv[1]))['findings'][0]
		if 'function' not in first['chain'][-1]:
		    sys.exit('no function: %r' % first['chain'])
	END
	[ "$(perf script -i "$TMP/data" -F tid,event,trace 2>/dev/null |
		awk '$2 == "sched:sched_switch:" && $0 !~ "prev_pid=" $1 " "' | wc -l)" -gt 0 ]
}

# Names prove nothing: a clock that is named like a tracepoint is a clock.
believes_no_names()
{
	get clocks
	judges
	grep -q '^Nothing was found' "$TMP/text"
	grep -q '^Not recorded: who waited .*sched:sched_switch' "$TMP/text"
}

apart_begin
if ! perf version --build-options | grep -qE 'libtraceevent: \[ on'; then
	echo "1..0 # SKIP perf was built without libtraceevent"
	exit 2
fi
if [ -z "${READ_FROM-}" ] && [ ! -x "$INCIDENT" ]; then
	echo "1..0 # SKIP INCIDENT names no program: build tools/testing/selftests/perf_events"
	exit 2
fi

tell_of_interrupts()
{
	if [ -n "${TEST_MACHINE:-}" ] && [ -e "${PERF_STALL:-/none}" ] && insmod "$PERF_STALL"; then
		check "tells that softirqs have a CPU" \
			once_of tells_interrupts softirq irq:softirq_entry irq:softirq_exit
		check "tells that the handler of an interrupt has a CPU" \
			once_of tells_interrupts handler irq:irq_handler_entry irq:irq_handler_exit
		check "tells a storm of short softirqs" once_of tells_storm
		check "finds nothing where interrupts are short" once_of finds_no_interrupts
		rmmod perf_stall
		return
	fi
	leave_out "tells that softirqs have a CPU" "PERF_STALL is for the test machine"
	leave_out "tells that the handler of an interrupt has a CPU" \
		"PERF_STALL is for the test machine"
	leave_out "tells a storm of short softirqs" "PERF_STALL is for the test machine"
	leave_out "finds nothing where interrupts are short" "PERF_STALL is for the test machine"
}

if [ -z "${READ_FROM-}" ]; then
	keep_incident
	list_recordings
	note_ids
fi
if [ "${VERDICT_HANDLERS-}" = only ]; then
	tell_of_interrupts
	persistent_end
	exit
fi
[ -z "${RECORD_TO-}" ] || apart_record record_all
check "tells who has a lock that others wait for" once_of tells convoy $SWITCH $WAKING -g
check "tells a chain over three tasks" once_of tells chain $SWITCH $WAKING -g
if has_recording nofp_convoy; then
	check "tells a lock and a chain without frame pointers" once_of tells_without_frame_pointers
else
	leave_out "tells a lock and a chain without frame pointers" "incident_nofp was not built"
fi
check "tells an inversion of priorities" once_of tells inversion $SWITCH $WAKING -g
check "tells a runaway thread" once_of tells runaway $SWITCH $WAKING
check "tells a noisy neighbour" once_of tells neighbour $SWITCH
check "tells that the CPU time of a task is used up" once_of tells quota $SWITCH
if has_recording cpu_max; then
	check "tells that cpu.max holds a task back" once_of tells cpu_max $SWITCH -g
	check "finds nothing where cpu.max is not reached" once_of finds_no_cpu_max
else
	leave_out "tells that cpu.max holds a task back" "no cgroup can get a cpu.max"
	leave_out "finds nothing where cpu.max is not reached" "no cgroup can get a cpu.max"
fi
if has_recording slow_disk; then
	check "tells which block device tasks wait for" once_of tells_disk
	TRIES=6 check "finds nothing where a block device is quick" once_of finds_no_disk
else
	leave_out "tells which block device tasks wait for" "null_blk is not there"
	leave_out "finds nothing where a block device is quick" "null_blk is not there"
fi
if has_recording reclaim; then
	check "tells that memory.max makes a task reclaim memory" once_of tells_reclaim
	check "finds nothing where memory.max is not reached" once_of finds_no_reclaim
	check "tells that memory.high holds a task back" once_of tells_throttled memory_high
	check "tells that dirty pages hold writers back" once_of tells_throttled dirty_pages
else
	leave_out "tells that memory.max makes a task reclaim memory" \
		"null_blk or memory.max is not there"
	leave_out "finds nothing where memory.max is not reached" \
		"null_blk or memory.max is not there"
	leave_out "tells that memory.high holds a task back" "memory.high is not there"
	leave_out "tells that dirty pages hold writers back" "null_blk is not there"
fi
[ "${VERDICT_HANDLERS-}" = no ] || [ -n "${READ_FROM-}" ] || tell_of_interrupts
check "tells who has the lock of a file" once_of tells file_lock
if has_recording container; then
	check "tells in which container tasks are" once_of tells_containers container
	check "takes no monitor for a container" once_of tells_containers monitor
else
	leave_out "tells in which container tasks are" "no cgroup can be made"
	leave_out "takes no monitor for a container" "no cgroup can be made"
fi
check "tells who has a lock of the kernel" once_of tells file_write
check "tells a deadlock" once_of tells deadlock
check "tells who makes new tasks all the time" once_of tells forks $SWITCH $NEW
check "finds nothing on a busy machine" once_of finds_nothing
check "finds nothing where a task ends its turn by itself" once_of finds_no_quota
check "tells who has a lock of the kernel without call chains" once_of tells_contention
check "tells which events it would take" once_of tells_what_it_takes
check "names the tasks whose switches are missing" once_of names_who_is_incomplete
if has_recording namespace; then
	check "tells who it was in a PID namespace" once_of tells_in_namespace
else
	leave_out "tells who it was in a PID namespace" "no PID namespace can be made"
fi
check "knows events by what they are, not by their names" believes_no_names
check "refuses what it cannot read" refuses
check_schema wait cpu quota stuck forks
persistent_end
