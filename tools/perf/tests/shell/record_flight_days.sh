#!/bin/bash
# perf record -M: days of recording at 100 times speed (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# lib/busy_days.py does in a second what an ordinary machine does in 100: it makes records,
# starts processes and cgroups, asks for the status, and hits a trigger. What the recorder does
# by time is told to do it 100 times as often, where an option tells it: the cooldown and the
# age of dumps. A look once a minute or once a second stays as it is.
#
# Once the memory of the recorder is full, after a tenth of the time and a minute at least, nothing
# of it grows.
#
# FLIGHT_SECONDS: how long at least, 2592 for 72 hours; FLIGHT_CHART: a file for what was measured
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

LENGTH=${FLIGHT_SECONDS:-180}
# A look at the recorder for each of so many parts of the time
LOOKS=60
FIRST=$((LENGTH / 10 > 60 ? LENGTH / 10 : 60))
# How much more than in the first part there may be later, in KiB and in open files
GROWS=256
FILES=2
# Three dumps and one that is written, each with its manifest, and the messages
MAX_FILES=9

start_load()
{
	python3 "$FLIGHT_LIB/busy_days.py" "$CGROUP" "$TMP/d.sock" "$LENGTH" >"$TMP/done" \
		2>"$TMP/load.stderr" &
	LOAD=$!
	echo $LOAD >>"$TMP/recorders"
}

# Seconds, Pss and private memory in KiB, open files, children, files in the directory, dumps so far
look()
{
	local pss anonymous

	read -r pss anonymous < <(awk '/^Pss:/ { pss = $2 } /^Pss_Anon:/ { anonymous = $2 }
		END { print pss, anonymous }' "/proc/$RECORDER/smaps_rollup")
	echo "$SECONDS $pss $anonymous $(find "/proc/$RECORDER/fd" -mindepth 1 | wc -l)" \
		"$(find "$TMP/out" -type f | wc -l) $(grep -c ': dump ' "$OUT_NAME.stderr" || true)"
}

# A child has a part of the memory while it writes, and files are made and go.
look_when_quiet()
{
	local i

	for ((i = 0; i < 50; i++)); do
		pgrep -P "$RECORDER" >/dev/null || break
		sleep 0.2
	done
	look
}

records_for_days()
{
	mkdir "$TMP/out"
	start_recorder "$TMP/out/d" -M 2M -a -e cpu-clock/freq=99/ -e sched:sched_process_exec \
		-e syscalls:sys_enter_close --max-files 3 --max-dump-age 60s \
		--trigger "socket:$TMP/d.sock" \
		--trigger 'event:syscalls:sys_enter_close/fd == 1999999999/,cooldown=18s'
	start_load
	until is_gone "$LOAD"; do
		sleep "$(awk "BEGIN { print $LENGTH / $LOOKS }")"
		look_when_quiet >>"$TMP/looks"
		[ -e "/proc/$RECORDER/exe" ]
	done
	wait "$LOAD"
	stop_recorder INT
	opens "$DUMP"
	cat "$TMP/done"
}

# grows COLUMN NAME BOUND: the most of the first part, and of the rest
grows()
{
	awk -v column="$1" -v name="$2" -v bound="$3" -v first="$FIRST" '
		NR == 1 { begin = $1 }
		$1 - begin <= first && $column > early { early = $column }
		$1 - begin > first && $column > late { late = $column }
		END { print name ": " early + 0 " in the first " first " s, " late + 0 " later"
		      exit late > early + bound }' "$TMP/looks"
}

memory_is_flat()
{
	grows 2 "Pss in KiB" $GROWS
	grows 3 "of it anonymous" $GROWS
}

files_are_few()
{
	grows 4 "open files" $FILES
	awk -v max=$MAX_FILES '$5 > max { print $5 " files"; bad = 1 } END { exit bad }' \
		"$TMP/looks"
}

# One per cooldown, or nearly; a slow machine takes its time for each.
dumps_came()
{
	local dumps

	dumps=$(tail -n1 "$TMP/looks" | cut -d' ' -f6)
	echo "$dumps dumps in $LENGTH s"
	[ "$dumps" -ge $((LENGTH / 60)) ]
	[ "$(find "$TMP/out" -name 'd.sample.*[0-9Z]' | wc -l)" -le 4 ]
}

# did NAME PER_DAY: the load was that of so many days
did()
{
	local want=$(($2 * LENGTH / 864)) count

	count=$(awk -v name="$1" '$1 == name { print $2 }' "$TMP/done")
	echo "$1: $count of $want"
	[ "$count" -ge $((want * 99 / 100)) ]
}

the_load_was_there()
{
	did records 864000
	did processes 17280
	did programs 1728
	did cgroups 288
	did requests 1440
}

flight_begin
if ! grep -q Pss_Anon /proc/self/smaps_rollup 2>/dev/null; then
	echo "1..0 # SKIP the kernel does not tell Pss"
	exit 2
fi
make_cgroup flight_days
echo "# $LENGTH s are $((LENGTH / 36)) hours"
check "records for $((LENGTH / 36)) hours" records_for_days
check "the load was that of so many hours" the_load_was_there
check "dumps came, and old ones went" dumps_came
check "memory is flat" memory_is_flat
check "files are few" files_are_few
[ -z "${FLIGHT_CHART-}" ] || cp "$TMP/looks" "$FLIGHT_CHART"
grows 2 "# Pss in KiB" 1000000
grows 4 "# open files" 1000000
sed -n '1s/^/# first look: /p; $s/^/# last look: /p' "$TMP/looks"
persistent_end
