#!/bin/bash
# Events are delivered in the order of the unchanged perf
# SPDX-License-Identifier: GPL-2.0
#
# perf script and perf report of made-up recordings print byte for byte what the
# perf in $BASE_PERF prints, warnings and exit status included: buffers read
# forward and backward, neighbours swapped, equal times, late events, no rounds,
# events without a time, several events and tasks, as a file, a pipe and a
# directory, with a limit on the memory of the queue that is not reached, and
# unordered, as perf report -D has it. And what is mapped of a recording is not more
# than the rounds that wait.
set -euo pipefail

PERF=${PERF:-perf}

if [ -z "${BASE_PERF:-}" ] || [ ! -x "$BASE_PERF" ]; then
	echo "skip: BASE_PERF does not name a perf to compare with"
	exit 2
fi

dir=$(mktemp -d /tmp/perf-ordered-events.XXXXXX)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
n=0

# print PERF FILE TAG: everything a user sees of a recording
print()
{
	local perf=$1 file=$2 tag=$3 status=0

	"$perf" script -F comm,tid,cpu,time,event,ip,period --show-task-events \
		-i "$file" >"$tag.script" 2>"$tag.script.err" || status=$?
	echo "exit $status" >>"$tag.script"
	status=0
	"$perf" report --stdio --sort cpu,comm -i "$file" \
		>"$tag.report" 2>"$tag.report.err" || status=$?
	# Each run ends with a tip of its own choice.
	sed -i '/^# (Tip: /d' "$tag.report"
	echo "exit $status" >>"$tag.report"
	# A tool that does not order, for which rounds mean nothing.
	status=0
	if [ -n "${raw:-}" ]; then
		"$perf" report -D -i "$file" >"$tag.raw" 2>"$tag.raw.err" || status=$?
	fi
	echo "exit $status" >>"$tag.raw"
}

# compare [GENERATOR OPTIONS]: the same recording, read by both
compare()
{
	local suffix lines

	n=$((n + 1))
	rm -rf recording ./*.raw
	"$PERF" bench internals ordered-events -o recording -S "$n" "$@" >/dev/null
	print "$BASE_PERF" recording base
	print "$PERF" recording own
	for suffix in script report raw script.err report.err; do
		if ! cmp "base.$suffix" "own.$suffix"; then
			diff "base.$suffix" "own.$suffix" | head -n 10
			echo "$suffix differs: $*"
			exit 1
		fi
	done
	lines=$(wc -l <own.script)
	if [ "$lines" -lt 20 ]; then
		cat own.script.err
		echo "only $lines lines: $*"
		exit 1
	fi
}

# All of these with every form.
for form in file pipe dir; do
	compare -f "$form" -c 1 -r 20 -n 50
	compare -f "$form" -c 8 -r 30 -n 20 -e 2 -p 3 -s 50 -T 9
	compare -f "$form" -c 8 -r 30 -n 20 -d 300 -p 3 -s 50
	compare -f "$form" -c 8 -r 30 -n 20 -t 1000 -e 3 -p 5
	compare -f "$form" -c 8 -r 30 -n 20 -t 30000 -d 200 -p 5 -s 20
	raw=1 compare -f "$form" -c 8 -r 30 -n 20 -L 30 -p 3
	compare -f "$form" -c 64 -r 8 -n 7 -t 500 -L 5 -d 100
	compare -f "$form" -c 200 -r 5 -n 3 -t 100
	compare -f "$form" -c 5 -r 3 -n 400 -b
	compare -f "$form" -c 5 -r 3 -n 400 -b -d 100 -t 700 -s 20 -T 3
	compare -f "$form" -c 40 -r 4 -n 9 -b -t 5000 -L 20
	compare -f "$form" -c 16 -r 6 -n 60 -R -d 50 -p 4
done

# More than one segment of a run, more than one chunk, more than one slice of a
# directory's file.
compare -c 3 -r 2 -n 5000 -d 20 -t 300
compare -c 3 -r 2 -n 5000 -d 20 -t 300 -b
compare -f dir -c 3 -r 1 -n 60000 -t 2000
compare -f dir -c 3 -r 1 -n 60000 -t 2000 -L 1 -d 10 -T 5

# A limit that is not reached changes nothing.
cat >config <<-END
	[report]
		queue-size = 100000000
END
export PERF_CONFIG=$dir/config
compare -c 8 -r 30 -n 20 -L 30 -d 100
compare -f pipe -c 8 -r 30 -n 20 -L 30 -d 100
unset PERF_CONFIG

# peak FILE: memory of perf report, in KiB
peak()
{
	command time -o peak -f %M "$PERF" report --stdio --sort cpu -i "$1" >/dev/null 2>&1
	tail -n 1 peak
}

# 1.3 MiB of 22 are mapped at a time.
if type -P time >/dev/null; then
	"$PERF" bench internals ordered-events -o small -c 1 -r 1 -n 1 >/dev/null
	"$PERF" bench internals ordered-events -o large -c 8 -r 500 -n 100 >/dev/null
	more=$(($(peak large) - $(peak small)))
	size=$(($(stat -c %s large) / 1024))
	if [ $((more * 4)) -gt "$size" ]; then
		echo "$more KiB for a recording of $size KiB"
		exit 1
	fi
else
	echo "no time(1): the memory of perf report is not measured"
fi

echo "$n recordings read alike"
