#!/bin/bash
# perf data convert: pprof, OpenTelemetry, Perfetto (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# What is written has the sums of perf report and the stacks of perf script. It is read by
# lib/read_profile.py, which has no code of perf's or of protobuf's, and by decoders that
# others wrote: go tool pprof, and pprof-format of npm in $NODE_PATH.
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"
# shellcheck source=lib/apart.sh
. "$(dirname "$0")/lib/apart.sh"
READ=$(dirname "$0")/lib/read_profile.py

# build_program: a program whose functions are inlined
build_program()
{
	cat >"$TMP/program.c" <<-'END'
		static volatile unsigned long sum;
		static inline __attribute__((always_inline)) void innermost(unsigned long i)
		{
			sum += i * i;
		}
		static inline __attribute__((always_inline)) void inner(unsigned long i)
		{
			for (int j = 0; j < 100; j++)
				innermost(i + j);
		}
		__attribute__((noinline)) void outer(unsigned long n)
		{
			for (unsigned long i = 0; i < n; i++)
				inner(i);
		}
		int main(void)
		{
			outer(300000);
			return 0;
		}
	END
	gcc -O2 -g -fno-omit-frame-pointer -o "$TMP/program" "$TMP/program.c"
}

# record_private: a program below a home directory, with its sources, that another one runs
# whose name is an argument of a tracepoint; a trigger with a reason
record_private()
{
	local home=$TMP/home/alice/secret

	mkdir -p "$home/src" "$home/bin"
	cp "$TMP/program.c" "$home/src/"
	gcc -O2 -g -fno-omit-frame-pointer -o "$home/bin/program" "$home/src/program.c"
	perf record -q -F 499 -e cpu-clock:u -e sched:sched_process_exec --call-graph dwarf,4096 \
		-k monotonic -o "$TMP/private" -- "$home/bin/program"
	printf '{\n  "host": "hushhost",\n  "trigger": "event",\n  "reason": "%s"\n}\n' \
		'hushhush' >"$TMP/private.json"
}

# in_container COMMAND...: in a cgroup with the name that containerd gives in Kubernetes
in_container()
{
	mkdir -p "/sys/fs/cgroup$GROUP"
	# Otherwise perf_event knows the root alone.
	echo +cpu >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null || true
	# shellcheck disable=SC2016 # the inner shell expands it
	bash -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "/sys/fs/cgroup$GROUP" "$@"
}

# add_cgroup ID PATH: add a PERF_RECORD_CGROUP to a recording in a pipe. perf record cannot
# write one where the kernel has no file handles (CONFIG_FHANDLE).
add_cgroup()
{
	python3 -c '
import struct, sys
data = sys.stdin.buffer.read()
at = struct.unpack_from("<Q", data, 8)[0]
while True:
    kind, _, size = struct.unpack_from("<IHH", data, at)
    if kind == 9:
        break
    if kind == 66:
        size += struct.unpack_from("<I", data, at + 8)[0]
    at += size
path = sys.argv[2].encode() + bytes(64)
path += bytes(-len(path) % 8)
record = struct.pack("<IHHQ", 19, 0, 16 + len(path), int(sys.argv[1])) + path
sys.stdout.buffer.write(data[:at] + record + data[at:])
' "$@"
}

record_all()
{
	# On a busy machine addr2line takes more than its second for a large file, and then there
	# are no inlined functions.
	printf '[core]\n\taddr2line-timeout = 300000\n' >"$HOME/.perfconfig"
	perf record -q -a -g --all-cgroups -F 499 -k monotonic -o "$TMP/all" \
		-e cpu-clock -e sched:sched_switch,sched:sched_waking,sched:sched_process_exec \
		-- perf test -w noploop 1
	in_container perf record -q -a -g --all-cgroups -F 499 -e task-clock,faults -o - -- \
		perf test -w noploop 1 >"$TMP/stream"
	add_cgroup "$(stat -c %i "/sys/fs/cgroup$GROUP")" "$GROUP" <"$TMP/stream" >"$TMP/container"
	perf record -q -a --switch-events -e dummy:u -e cpu-clock -o "$TMP/switches" -- sleep 1
	if build_program; then
		perf record -q -F 499 -e cpu-clock:u --call-graph dwarf,4096 -o "$TMP/inlined" -- \
			"$TMP/program"
		record_private
	fi
	start_recorder "$TMP/dumps" -M 4M -a -g -e cpu-clock -F 99 -k monotonic
	sleep 1
	dump
	stop_recorder INT
	DUMP=$(dumps "$TMP/dumps" | sed -n 1p)
	echo "$DUMP" >"$TMP/dump"
	perf record -q -a -e cpu-clock/time=0/ -e task-clock -o "$TMP/timeless" -- \
		perf test -w noploop 1
	uname -n >"$TMP/host"
	perf buildid-list -k >"$TMP/kernel"
	ls -l "$TMP"
}

# convert FORMAT RECORDING: sets CONVERTED
convert()
{
	CONVERTED=$TMP/converted.$1
	perf data convert --to-"$1" "$CONVERTED" -f -i "$2"
}

# report RECORDING: as read_profile.py sums, from perf report; what has no symbol is one row
report()
{
	perf report -i "$1" --stdio --no-children -g none -t '|' -F sample,period,pid,comm,sym \
		-w 12,24,40,40,300 2>"$TMP/report.err" |
	python3 -c '
import collections, sys
event, sums = None, collections.defaultdict(lambda: [0, 0])
for line in sys.stdin:
    if line.startswith("# Samples:"):
        event = line.split("of event")[1].strip().strip("\x27").split("\x27")[0]
    elif line.startswith("#") or not line.strip():
        continue
    else:
        samples, period, tid, comm, sym = [f.strip() for f in line.rstrip("\n").split("|", 4)]
        name = sym[4:] if sym[4:6] != "0x" else "[unknown]"
        row = sums["%s|%s|%s|%s" % (event, tid.split(":")[0], comm, name)]
        row[0] += int(samples)
        row[1] += int(period)
for key in sorted(sums):
    print(key, *sums[key])
'
}

# script RECORDING: as read_profile.py stacks, from perf script. Of a sample whose user stack
# cannot be unwound perf script shows nothing, and with -G its own address, as an export does.
script()
{
	perf script -i "$1" -G -F tid,event,ip,sym 2>"$TMP/script.err" >"$TMP/script.leaves"
	perf script -i "$1" -F tid,event,ip,sym 2>>"$TMP/script.err" |
	python3 -c '
import collections, re, sys
leaves = [line.split(None, 3)[3].strip() for line in open(sys.argv[1]) if line.strip()]
sums, key, stack, samples = collections.Counter(), None, [], 0
def done():
    if key:
        sums[key + ";".join(stack or [leaves[samples - 1]])] += 1
for line in sys.stdin:
    if line[0] not in "\t\n" and line.strip():
        done()
        tid, event = line.split(None, 1)
        key, stack = "%s|%s|" % (event.strip().rstrip(":"), tid), []
        samples += 1
    elif line.strip():
        name = re.sub(r" \(inlined\)$", "", line.split(None, 1)[1].strip())
        stack.append(name)
done()
assert samples == len(leaves), (samples, len(leaves))
for key in sorted(sums):
    print(key, sums[key])
' "$TMP/script.leaves"
}

same()
{
	wc -l "$1" "$2"
	[ -s "$1" ]
	diff "$1" "$2" | head -n 20
	cmp "$1" "$2"
}

# has_sums FORMAT RECORDING: those of perf report, for each event, task and function
has_sums()
{
	convert "$1" "$2"
	report "$2" >"$TMP/expected"
	"$READ" sums "$1" "$CONVERTED" >"$TMP/sums"
	if [ "$1" = perfetto ]; then
		# A thread's name changes; a trace has it by time, not by sample.
		python3 -c '
import collections, sys
sums = collections.defaultdict(lambda: [0, 0])
for line in sys.stdin:
    key, samples, period = line.rsplit(None, 2)
    event, tid, comm, name = key.split("|", 3)
    row = sums["%s|%s||%s" % (event, tid, name)]
    row[0] += int(samples)
    row[1] += int(period)
for key in sorted(sums):
    print(key, *sums[key])
' <"$TMP/expected" >"$TMP/by_tid"
		mv "$TMP/by_tid" "$TMP/expected"
	fi
	same "$TMP/expected" "$TMP/sums"
}

# Without what called do_exit(): perf script forgets the maps of a task with the record of its
# exit, and samples of the task may follow.
until_exit()
{
	python3 -c '
import collections, sys
sums = collections.Counter()
for line in sys.stdin:
    key, samples = line.rsplit(None, 1)
    head, found, rest = key.partition("do_exit;")
    sums[head + found] += int(samples)
for key in sorted(sums):
    print(key, sums[key])
'
}

# has_stacks FORMAT RECORDING: those of perf script, frame by frame
has_stacks()
{
	convert "$1" "$2"
	script "$2" | until_exit >"$TMP/expected"
	"$READ" stacks "$1" "$CONVERTED" | until_exit >"$TMP/stacks"
	same "$TMP/expected" "$TMP/stacks"
}

# has_inlined FORMAT: a function that was inlined is a frame, before its caller
has_inlined()
{
	has_stacks "$1" "$TMP/inlined"
	grep -q 'innermost;inner;outer;main' "$TMP/stacks"
}

# What go tool pprof adds up for each function
read_by_pprof()
{
	local event=cpu-clock

	convert pprof "$TMP/all"
	PPROF_BINARY_PATH=$TMP go tool pprof -symbolize=none -top -noinlines -nodecount=1000000 \
		-nodefraction=0 -sample_index="$event.samples" "$CONVERTED" >"$TMP/top"
	head -n 12 "$TMP/top"
	sed -nE '/^ +flat /,$s/^ *([1-9][0-9]*)( +[^ ]+){4} +(.*)$/\3 \1/p' "$TMP/top" |
		grep -v '^\[\|^0x\|^<' | LC_ALL=C sort >"$TMP/go"
	report "$TMP/all" | sed -n "s/^$event|[^|]*|[^|]*|//p" | python3 -c '
import collections, sys
sums = collections.Counter()
for line in sys.stdin:
    name, samples, period = line.rsplit(None, 2)
    if name[0] != "[":
        sums[name] += int(samples)
for name in sums:
    print(name, sums[name])
' | LC_ALL=C sort >"$TMP/expected"
	same "$TMP/expected" "$TMP/go"
	go tool pprof -symbolize=none -tags -sample_index="$event.samples" "$CONVERTED" >"$TMP/tags"
	grep -q '^ *comm: Total' "$TMP/tags"
	grep -q '^ *host: Total' "$TMP/tags"
	grep -q ' 0$' <(sed -n '/^ *cpu: /,/^ *[a-z]*: /p' "$TMP/tags")
}

# The same sums from a decoder of npm
read_by_npm()
{
	convert pprof "$TMP/all"
	node - "$CONVERTED" >"$TMP/npm" <<-'END'
		const { Profile } = require('pprof-format');
		const p = Profile.decode(require('fs').readFileSync(process.argv[2]));
		const str = i => p.stringTable.strings[Number(i)];
		const names = new Map(p.function.map(f => [f.id, str(f.name)]));
		const name = l => l.line.length ?
			names.get(l.line[l.line.length - 1].functionId) : '[unknown]';
		const at = new Map(p.location.map(l => [l.id, name(l)]));
		const sums = new Map();
		for (const s of p.sample) {
			const label = k => str(s.label.find(l => str(l.key) === k).str);
			p.sampleType.forEach((t, i) => {
				if (i % 2 || !Number(s.value[i]))
					return;
				const key = `${str(p.sampleType[i + 1].type)}|${label('tid')}|` +
					`${label('comm')}|${at.get(s.locationId[0])}`;
				const old = sums.get(key) || [0n, 0n];
				sums.set(key, [old[0] + BigInt(s.value[i]),
					       old[1] + BigInt(s.value[i + 1])]);
			});
		}
		for (const [k, v] of sums)
			console.log(k, v[0].toString(), v[1].toString());
	END
	report "$TMP/all" | LC_ALL=C sort >"$TMP/expected"
	LC_ALL=C sort -o "$TMP/npm" "$TMP/npm"
	same "$TMP/expected" "$TMP/npm"
}

# labels FORMAT RECORDING
labels()
{
	convert "$1" "$2"
	"$READ" labels "$1" "$CONVERTED" >"$TMP/labels"
	cat "$TMP/labels"
}

has_containers()
{
	local name=container pod=pod_uid

	if [ "$1" = otlp ]; then
		name=container.id
		pod=k8s.pod.uid
	fi
	labels "$1" "$TMP/container" | tail -n 30
	grep -q "^$name=$ID " "$TMP/labels"
	grep -q "^$pod=$POD " "$TMP/labels"
	grep -q "cgroup=$GROUP " "$TMP/labels"
	# All samples but those of other cgroups
	! grep "^$name=" "$TMP/labels" | grep -v "=$ID "
}

# The manifest of the dump $TMP/named names its container.
name_container()
{
	local kept='{"name": "web", "pod": "shop-7d9", "pod_namespace": "shop"}'

	cp "$TMP/container" "$TMP/named"
	echo "{\"containers\": {\"$ID\": $kept}}" >"$TMP/named.json"
}

# The names come from the manifest next to a dump. They go with the name of the machine.
has_names()
{
	local want=(container_name=web pod=shop-7d9 pod_namespace=shop)

	[ "$1" != otlp ] || want=(container.name=web k8s.pod.name=shop-7d9 k8s.namespace.name=shop)
	name_container
	labels "$1" "$TMP/named" | grep -e name -e pod
	for label in "${want[@]}"; do
		[ "$(grep "^$label " "$TMP/labels" | cut -d' ' -f2)" = \
			"$(grep "=$ID " "$TMP/labels" | cut -d' ' -f2)" ]
	done
	perf data convert "--to-$1" "$TMP/redacted" -f --redact=host -i "$TMP/named"
	"$READ" labels "$1" "$TMP/redacted" >"$TMP/labels"
	grep "=$ID " "$TMP/labels"
	! grep -e =web -e =shop "$TMP/labels"
}

# Once for the process, although it has many samples
tells_container()
{
	local program

	convert perfetto "$TMP/container"
	"$READ" notes perfetto "$CONVERTED" | grep "$ID" | tee "$TMP/notes"
	[ "$(sort "$TMP/notes" | uniq -d | wc -l)" = 0 ]
	program=$(perf script -f -i "$TMP/container" -F pid,comm,cgroup | grep "$ID" |
		awk '/perf/ { print $2 }' | sort | uniq -c | sort -n | awk 'END { print $2 }')
	grep -q "^container {'pid': '$program', 'cgroup': '$GROUP', 'container.id': '$ID', $(
		)'k8s.pod.uid': '$POD'}" "$TMP/notes"
	name_container
	convert perfetto "$TMP/named"
	"$READ" notes perfetto "$CONVERTED" >"$TMP/notes"
	grep "'container.id': '$ID', 'container.name': 'web', $(
		)'k8s.pod.uid': '$POD', 'k8s.pod.name': 'shop-7d9', $(
		)'k8s.namespace.name': 'shop'}" "$TMP/notes"
}

has_origin()
{
	local dump host trigger

	dump=$(cat "$TMP/dump")
	host=$(cat "$TMP/host")
	trigger=$(json "$dump" trigger)
	[ -n "$trigger" ]
	labels pprof "$dump" | tail -n 20
	grep -q "^host=$host " "$TMP/labels"
	grep -q "^trigger=$trigger " "$TMP/labels"
	labels otlp "$dump" >"$TMP/out"
	grep -q "^host.name=$host " "$TMP/labels"
	grep -q "^perf.trigger=$trigger " "$TMP/labels"
	convert perfetto "$dump"
	"$READ" notes perfetto "$CONVERTED" | tee "$TMP/notes"
	grep -q "'host': '$host', 'trigger': '$trigger'" "$TMP/notes"
}

# build_id FILE: as the file itself has it
build_id()
{
	if [ "$1" = '[kernel.kallsyms]' ]; then
		cat "$TMP/kernel"
	else
		readelf -n "$1" 2>/dev/null | sed -n 's/^ *Build ID: //p'
	fi
}

has_build_ids()
{
	local file id n=0

	convert "$1" "$TMP/all"
	"$READ" mappings "$1" "$CONVERTED" >"$TMP/mappings"
	while read -r file id; do
		[[ -f $file || $file = '[kernel.kallsyms]' ]] || continue
		echo "$file $id $(build_id "$file")"
		[ "$id" = "$(build_id "$file")" ]
		n=$((n + 1))
	done <"$TMP/mappings"
	[ "$n" -ge 3 ]
}

# Each switch of perf script, in the order of the trace
has_switches()
{
	convert perfetto "$TMP/all"
	"$READ" switches perfetto "$CONVERTED" >"$TMP/own"
	cat >"$TMP/switches.py" <<-'END'
		def sched__sched_switch(name, context, cpu, s, ns, pid, comm, chain, prev_comm,
		                        prev_pid, prev_prio, prev_state, next_comm, next_pid,
		                        next_prio, *rest):
		    print(s * 1000000000 + ns, cpu, prev_comm, prev_pid, prev_state, next_comm,
		          next_pid)
	END
	perf script -i "$TMP/all" -s "$TMP/switches.py" >"$TMP/expected"
	same "$TMP/expected" "$TMP/own"
}

has_other_tracepoints()
{
	local n

	convert perfetto "$TMP/all"
	"$READ" events perfetto "$CONVERTED" >"$TMP/events"
	n=$(perf script -i "$TMP/all" -F event -G 2>/dev/null | grep -c sched_waking) || true
	echo "$n"
	[ "$n" -gt 0 ]
	[ "$(grep -c '^sched_waking ' "$TMP/events")" = "$n" ]
	grep -q "^sched_process_exec {'filename': '.*perf', 'pid': [0-9]*, 'old_pid': [0-9]*}" \
		"$TMP/events"
	[ "$("$READ" clocks perfetto "$CONVERTED")" = 1 ]
}

# Each record of a CPU is one switch, from the task that it names to the next one
has_switch_records()
{
	convert perfetto "$TMP/switches"
	"$READ" switches perfetto "$CONVERTED" | awk '{ print $2, $4, $NF }' >"$TMP/own"
	perf script -i "$TMP/switches" --show-switch-events -F tid,cpu,time -G 2>/dev/null |
		grep 'SWITCH_CPU_WIDE OUT' | sed -nE -e 's/next pid.tid: *[0-9]+./next /' \
			-e 's/^ *(-?[0-9]+) +\[0*([0-9]+)\].*next ([0-9]+).*/\2 \1 \3/p' \
			>"$TMP/expected"
	same "$TMP/expected" "$TMP/own"
}

# A stack of an event is written once, however many samples have it.
writes_stacks_once()
{
	local stacks samples

	convert perfetto "$TMP/all"
	"$READ" interned perfetto "$CONVERTED" >"$TMP/n"
	stacks=$(cat "$TMP/n")
	samples=$("$READ" sums perfetto "$CONVERTED" | awk '{ n += $(NF - 1) } END { print n }')
	echo "$stacks stacks, $samples samples"
	[ "$stacks" -lt "$samples" ]
}

# Memory follows the stacks: four times the samples of the same stacks
bounds_memory()
{
	local n kb=()

	for n in 200 800; do
		perf bench internals ordered-events -o "$TMP/many" -c 4 -r $n -n 100 -p 3 >/dev/null
		kb+=("$(command time -f %M perf data convert -f --to-"$1" "$TMP/out" \
			-i "$TMP/many" 2>&1 >/dev/null | tail -n1)")
	done
	echo "${kb[*]} KB"
	((kb[1] < kb[0] + 4096))
}

compresses()
{
	perf data convert --to-pprof "$TMP/p.pb.gz" -f -i "$TMP/all"
	perf data convert --to-pprof "$TMP/p.pb" -f -i "$TMP/all"
	gzip -dc "$TMP/p.pb.gz" | cmp - "$TMP/p.pb"
	perf data convert --to-pprof - -i "$TMP/all" | cmp - "$TMP/p.pb"
	perf bench internals ordered-events -o "$TMP/pipe" -f pipe -c 4 -r 10 -n 100 >/dev/null
	# shellcheck disable=SC2002 # a pipe is meant
	cat "$TMP/pipe" | perf data convert --to-pprof - -i - | "$READ" stdin pprof >"$TMP/out"
	grep '4000 samples' "$TMP/out"
}

# -f replaces a file when the new one is complete, and what a failure finds it leaves.
replaces()
{
	perf data convert --to-pprof "$TMP/new" -i "$TMP/all"
	: >"$TMP/old"
	chmod 640 "$TMP/old"
	ln -s old "$TMP/link"
	perf data convert --to-pprof "$TMP/link" -f -i "$TMP/all"
	cmp "$TMP/old" "$TMP/new"
	[ -L "$TMP/link" ] && [ "$(stat -c %a "$TMP/old")" = 640 ]
	# Its header can be read, and half of its records.
	cp "$TMP/all" "$TMP/broken"
	dd if=/dev/zero of="$TMP/broken" bs=4096 count=1 conv=notrunc \
		seek="$(($(stat -c %s "$TMP/all") / 8192))" 2>"$TMP/dd"
	fails_somehow 'cannot be read to its end' \
		perf data convert --to-pprof "$TMP/link" -f -i "$TMP/broken"
	cmp "$TMP/old" "$TMP/new"
	not ls "$TMP"/old.*
}

# A new file has a name when it is complete, and only its owner can read it.
names_whole_files()
{
	local pid

	perf data convert --to-perfetto "$TMP/whole" -i "$TMP/container"
	[ "$(stat -c %a "$TMP/whole")" = 600 ]
	mkdir "$TMP/dir"
	mkfifo "$TMP/slow"
	perf data convert --to-perfetto "$TMP/dir/part" -i - <"$TMP/slow" &
	pid=$!
	exec 8>"$TMP/slow"
	# Many times what a buffer of stdio has, but not all
	head -c "$(($(stat -c %s "$TMP/container") / 2))" "$TMP/container" >&8
	[ -z "$(ls -A "$TMP/dir")" ]
	kill -KILL $pid
	wait $pid || true
	exec 8>&-
	[ -z "$(ls -A "$TMP/dir")" ]
	: >"$TMP/dir/part"
	fails_somehow 'part exists. Use --force' \
		perf data convert --to-perfetto "$TMP/dir/part" -i "$TMP/container"
	[ ! -s "$TMP/dir/part" ]
}

# A pipe is read without -i, and one that was saved is not overwritten.
reads_pipes()
{
	perf data convert --to-pprof "$TMP/direct" -f -i "$TMP/container"
	# shellcheck disable=SC2002 # a pipe is meant
	cat "$TMP/container" | perf data convert --to-pprof "$TMP/piped" -f
	"$READ" sums pprof "$TMP/direct" >"$TMP/expected"
	"$READ" sums pprof "$TMP/piped" >"$TMP/sums"
	same "$TMP/expected" "$TMP/sums"
	cp "$TMP/container" "$TMP/saved"
	fails_somehow 'is the recording: choose another name' \
		perf data convert --to-otlp "$TMP/saved" -f -i "$TMP/saved"
	cmp "$TMP/container" "$TMP/saved"
}

# Whatever perf report is to show first, a profile has the last call first.
has_one_order()
{
	printf '[call-graph]\n\torder = caller\n' >"$TMP/config"
	PERF_CONFIG=$TMP/config perf data convert --to-pprof "$TMP/ordered" -f -i "$TMP/all"
	convert pprof "$TMP/all"
	"$READ" stacks pprof "$CONVERTED" >"$TMP/expected"
	"$READ" stacks pprof "$TMP/ordered" >"$TMP/stacks"
	same "$TMP/expected" "$TMP/stacks"
}

# Samples without a time are added up, and make no trace.
needs_times()
{
	convert pprof "$TMP/timeless"
	"$READ" sums pprof "$CONVERTED" | tee "$TMP/sums"
	grep -q '^cpu-clock' "$TMP/sums"
	fails_somehow 'have no time.*perf record -T' \
		perf data convert --to-perfetto "$TMP/x" -f -i "$TMP/timeless"
	[ ! -e "$TMP/x" ]
}

# told FORMAT OPTION WORD...: converts, and prints which of the words the output has
told()
{
	local format=$1 option=$2 word

	shift 2
	perf data convert --to-"$format" "$TMP/told" -f -i "$TMP/private" ${option:+"$option"}
	for word; do
		! grep -qaF "$word" "$TMP/told" || printf '%s ' "$word"
	done
}

# What is left out is nowhere in the file, and what is counted stays the same.
redacts()
{
	local all=(alice secret hushhost hushhush program)

	[ "$(told "$1" '' "${all[@]}")" = 'alice secret hushhost hushhush program ' ]
	"$READ" sums "$1" "$TMP/told" >"$TMP/expected"
	"$READ" mappings "$1" "$TMP/told" >"$TMP/mappings"
	grep -q "/home/alice/secret/bin/program " "$TMP/mappings"
	[ "$(told "$1" --redact "${all[@]}")" = 'hushhost program ' ]
	"$READ" sums "$1" "$TMP/told" >"$TMP/sums"
	same "$TMP/expected" "$TMP/sums"
	"$READ" mappings "$1" "$TMP/told" >"$TMP/mappings"
	grep -q "/home/-/program " "$TMP/mappings"
	[ "$(told "$1" --redact=home "${all[@]}")" = 'hushhost hushhush program ' ]
	[ "$(told "$1" --redact=host,home "${all[@]}")" = 'hushhush program ' ]
	[ "$(told "$1" --redact=args "${all[@]}")" = 'alice secret hushhost program ' ]
	[ "$(told "$1" --redact=host "${all[@]}")" = 'alice secret hushhush program ' ]
	[ "$(told "$1" --redact=all "${all[@]}")" = 'program ' ]
}

# Words of a program's memory that the kernel has taken for return addresses
redacts_words()
{
	local hush=68737568 hushhush=6873756868737568

	python3 "$(dirname "$0")/lib/recording.py" make-words "$TMP/words"
	perf data convert --to-"$1" "$TMP/told" -f -i "$TMP/words"
	"$READ" unmapped "$1" "$TMP/told" | tee "$TMP/addresses"
	grep -qw $hush "$TMP/addresses"
	grep -qw $hushhush "$TMP/addresses"
	"$READ" sums "$1" "$TMP/told" >"$TMP/expected"
	perf data convert --to-"$1" "$TMP/told" -f -i "$TMP/words" --redact=args
	[ "$("$READ" unmapped "$1" "$TMP/told")" = 0 ]
	"$READ" sums "$1" "$TMP/told" >"$TMP/sums"
	same "$TMP/expected" "$TMP/sums"
}

# The arguments of a tracepoint: a path in one, or all of them
redacts_arguments()
{
	local event='^sched_process_exec'

	told perfetto --redact=home
	"$READ" events perfetto "$TMP/told" >"$TMP/events"
	cat "$TMP/events"
	grep -q "$event {'filename': '.*/home/-/program', 'pid': [0-9]*" "$TMP/events"
	told perfetto --redact
	"$READ" events perfetto "$TMP/told" >"$TMP/events"
	cat "$TMP/events"
	grep -q "$event {}" "$TMP/events"
	perf data convert --to-perfetto "$TMP/told" -f --redact -i "$TMP/all"
	"$READ" switches perfetto "$TMP/told" >"$TMP/own"
	perf data convert --to-perfetto "$TMP/told" -f -i "$TMP/all"
	"$READ" switches perfetto "$TMP/told" >"$TMP/expected"
	same "$TMP/expected" "$TMP/own"
}

tells_errors()
{
	: >"$TMP/exists"
	fails_somehow 'exists exists. Use --force' \
		perf data convert --to-pprof "$TMP/exists" -i "$TMP/all"
	[ ! -s "$TMP/exists" ]
	fails_somehow 'is the recording: choose another name' \
		perf data convert --to-otlp "$TMP/all" -f -i "$TMP/all"
	perf report -i "$TMP/all" --stdio >/dev/null 2>&1
	fails_somehow 'Only one --to-' \
		perf data convert --to-otlp "$TMP/a" --to-pprof "$TMP/b" -i "$TMP/all"
	fails_somehow "redact: 'pid' is unknown: use args" \
		perf data convert --to-otlp "$TMP/a" --redact=home,pid -i "$TMP/all"
	fails_somehow "redact: '' is unknown" \
		perf data convert --to-otlp "$TMP/a" --redact=home, -i "$TMP/all"
	fails_somehow 'redact is only supported with' \
		perf data convert --to-json "$TMP/a" --redact -i "$TMP/all"
	fails_somehow '--all is not supported with --to-perfetto' \
		perf data convert --to-perfetto "$TMP/a" --all -i "$TMP/all"
	fails_somehow 'You must specify one of .*--to-pprof' perf data convert -i "$TMP/all"
	fails_somehow '/none/a cannot be written: No such file' \
		perf data convert --to-pprof "$TMP/none/a" -i "$TMP/all"
	for format in pprof otlp perfetto; do
		fails_somehow '/dev/full cannot be written: No space' \
			perf data convert --to-$format /dev/full -f -i "$TMP/all"
	done
	[ -c /dev/full ]
	# What was cut short leaves no file that looks complete.
	head -c $(($(stat -c %s "$TMP/all") / 2)) "$TMP/all" >"$TMP/cut"
	fails_somehow . perf data convert --to-perfetto "$TMP/a" -i "$TMP/cut"
	[ ! -e "$TMP/a" ]
}

completes()
{
	{ perf data convert --list-opts || true; } | tr ' ' '\n' >"$TMP/opts"
	grep -qx -e --to-pprof "$TMP/opts"
	grep -qx -e --to-otlp "$TMP/opts"
	grep -qx -e --to-perfetto "$TMP/opts"
	grep -qx -e --redact "$TMP/opts"
}

apart_begin
if perf data convert --to-pprof /dev/null -f -i /dev/null 2>&1 | grep -q 'without protobuf-c'; then
	echo "1..0 # SKIP perf was built without protobuf-c"
	exit 2
fi
ID=$(printf '%064x' 12648430)
POD=6f2c1d3e-0a4b-4c5d-8e9f-123456789abc
GROUP=/kubepods.slice/kubepods-pod${POD//-/_}.slice/cri-containerd-$ID.scope
apart_record record_all
for format in pprof otlp perfetto; do
	check "$format: the sums are those of perf report" has_sums $format "$TMP/all"
	check "$format: without tracepoints" has_sums $format "$TMP/container"
	check "$format: the stacks are those of perf script" has_stacks $format "$TMP/all"
	if [ -s "$TMP/inlined" ]; then
		check "$format: inlined functions" has_inlined $format
		check "$format: what does not leave the machine" redacts $format
	else
		leave_out "$format: inlined functions" "there is no compiler"
		leave_out "$format: what does not leave the machine" "there is no compiler"
	fi
	check "$format: words of memory are left out" redacts_words $format
	check "$format: files and build-ids" has_build_ids $format
done
# The record that add_cgroup() adds is found only if the samples have the same number.
perf report -i "$TMP/container" --stdio -g none -s cgroup >"$TMP/cgroups" 2>/dev/null || true
if grep -q "$GROUP" "$TMP/cgroups"; then
	check "pprof: cgroup and container" has_containers pprof
	check "otlp: cgroup and container" has_containers otlp
	check "pprof: names of the container" has_names pprof
	check "otlp: names of the container" has_names otlp
	check "perfetto: cgroup and container" tells_container
else
	leave_out "cgroup and container" "perf report finds no cgroup in such a recording either"
fi
check "machine and trigger of a dump" has_origin
if [ -s "$TMP/private" ]; then
	check "perfetto: arguments of tracepoints are left out" redacts_arguments
else
	leave_out "perfetto: arguments of tracepoints are left out" "there is no compiler"
fi
check "perfetto: sched_switch" has_switches
check "perfetto: other tracepoints and the clock" has_other_tracepoints
check "perfetto: records of context switches" has_switch_records
check "perfetto: a stack is written once" writes_stacks_once
check "pprof: memory follows the stacks" bounds_memory pprof
check "otlp: memory follows the stacks" bounds_memory otlp
check "perfetto: memory follows the stacks" bounds_memory perfetto
check "compressed, and by pipes" compresses
check "a file is replaced as a whole" replaces
check "a file has a name when it is complete" names_whole_files
check "pipes, without -i and saved" reads_pipes
check "stacks in one order" has_one_order
check "samples without a time" needs_times
check "errors" tells_errors
check "completion" completes
if command -v go >/dev/null && go tool -n pprof >/dev/null 2>&1; then
	check "go tool pprof reads it" read_by_pprof
else
	leave_out "go tool pprof reads it" "there is no go"
fi
if command -v node >/dev/null && node -e 'require("pprof-format")' 2>/dev/null; then
	check "pprof-format of npm reads it" read_by_npm
else
	leave_out "pprof-format of npm reads it" "there is no pprof-format in NODE_PATH"
fi
persistent_end
