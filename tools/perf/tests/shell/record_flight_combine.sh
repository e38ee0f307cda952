#!/bin/bash
# perf record -M: combine (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# FLIGHT_BROKEN: how many broken parts, FLIGHT_KILLS: how often it is killed
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

FIELDS=comm,pid,tid,cpu,time,event,ip,sym,dso,trace

# say FILE...: what a perf that knows nothing of this tells of its samples
say()
{
	other_perf script --ns -i "$1" -F "$FIELDS" 2>/dev/null
}

# The union of several such, made without any of perf: each line as often as the file
# with most of them has it; a line is known by all it says.
union()
{
	python3 - "$@" <<-'END'
		import collections, sys
		union = collections.Counter()
		for name in sys.argv[1:]:
		    union |= collections.Counter(open(name, errors='replace'))
		sys.stdout.writelines(sorted(union.elements()))
	END
}

# is_union OUT PART...: sample for sample, and in order
is_union()
{
	local out=$1 part n=0 said=()

	shift
	for part; do
		n=$((n + 1))
		say "$part" >"$TMP/said.$n"
		said+=("$TMP/said.$n")
	done
	union "${said[@]}" >"$TMP/union"
	say "$out" >"$TMP/combined"
	LC_ALL=C sort "$TMP/combined" >"$TMP/sorted"
	LC_ALL=C sort "$TMP/union" >"$TMP/expected"
	wc -l "${said[@]}" "$TMP/expected" "$TMP/sorted"
	[ -s "$TMP/expected" ]
	diff "$TMP/expected" "$TMP/sorted" | head -n 20
	cmp "$TMP/expected" "$TMP/sorted"
	other_perf script --ns -i "$out" -F time 2>/dev/null | tr -d ':' |
		awk '{ if ($1 < t) bad = 1; t = $1 } END { exit bad || !NR }'
}

# parts DIR: copied, as combine removes them
parts()
{
	mkdir -p "$1"
	cp -p "$TMP"/a.* "$1"
	rm -f "$1"/*.stderr
}

# Three dumps that overlap, a process that exits between them, and a second run. That
# one compresses what it holds; a dump is never compressed.
records_parts()
{
	start_recorder "$TMP/a" -M 8M -e cpu-clock -F 299 -a -e sched:sched_process_exec
	run_dead
	dump
	run_dead
	dump
	dump
	stop_recorder INT
	start_recorder "$TMP/a" -M 8M -z -e cpu-clock -F 299 -a -e sched:sched_process_exec
	run_dead
	dump
	kill -KILL "$RECORDER"
	wait "$RECORDER" 2>/dev/null || true
	[ "$(dumps "$TMP/a" | wc -l)" = 5 ]
	[ "$(json "$DUMP" stored)" -lt "$(json "$DUMP" raw)" ]
	"$BASE_PERF" report -i "$DUMP" --header-only >"$TMP/header"
	not grep '^# compressed' "$TMP/header"
	other_perf report -i "$DUMP" -D >"$TMP/raw" 2>/dev/null
	grep -q PERF_RECORD_SAMPLE "$TMP/raw"
	not grep -q PERF_RECORD_COMPRESSED "$TMP/raw"
}

combines()
{
	local before

	parts "$TMP/one"
	mapfile -t before < <(dumps "$TMP/a")
	perf record --combine -o "$TMP/one/a" --keep
	[ "$(dumps "$TMP/one/a" | wc -l)" = 5 ]
	[ "$(stat -c %a "$TMP/one/a")" = 600 ]
	opens "$TMP/one/a"
	is_union "$TMP/one/a" "${before[@]}"
	dead_have_names "$TMP/one/a"
	python3 -c 'import json, sys; m = json.load(open(sys.argv[1])); print(m)
assert len(m["parts"]) == 5 and m["duplicates"] > 100' "$TMP/one/a.json"
	cp "$TMP/one/a" "$TMP/one/before"
	# Doing it again changes nothing; now the parts go.
	perf record --combine -o "$TMP/one/a"
	cmp "$TMP/one/a" "$TMP/one/before"
	[ "$(find "$TMP/one" -type f -printf '%f\n' | sort | tr '\n' ' ')" = "a a.json before " ]
	fails 1 'no dumps of .* to combine' perf record --combine -o "$TMP/none"
}

# The header tells ids of all runs, and the time of all.
header_is_of_all()
{
	"$BASE_PERF" report -i "$TMP/one/a" --header-only >"$TMP/header"
	grep -E 'time of (first|last)|duration' "$TMP/header"
	other_perf report -i "$TMP/one/a" -D >"$TMP/raw" 2>/dev/null
	grep -q 'PERF_RECORD_FINISHED_ROUND' "$TMP/raw"
	has '^[0-9a-f]{40} .*/perf$' "$BASE_PERF" buildid-list -i "$TMP/one/a"
}

# What is there of a dump that was cut off is taken; it stays.
takes_a_truncated_part()
{
	# Not the names: what tells them may be in the piece that is missing.
	local cut said FIELDS=tid,cpu,time,event,ip

	parts "$TMP/two"
	cut=$(dumps "$TMP/two/a" | sed -n 4p)
	truncate -s $(($(stat -c %s "$cut") * 2 / 3)) "$cut"
	rm "$(dumps "$TMP/two/a" | sed -n 2p)"* "$(dumps "$TMP/two/a" | sed -n 3p)"*
	said=$(perf record --combine -o "$TMP/two/a" 2>&1)
	echo "$said"
	grep -q "$(basename "$cut") is truncated" <<<"$said"
	[ "$(dumps "$TMP/two/a")" = "$cut" ]
	opens "$TMP/two/a"
	# All of the others is there, and nothing that was not in one of the dumps.
	mapfile -t before < <(dumps "$TMP/a")
	say "$TMP/two/a" | LC_ALL=C sort >"$TMP/combined"
	for i in 0 3 4; do
		say "${before[i]}" >"$TMP/said.$i"
	done
	union "$TMP"/said.{0,4} | LC_ALL=C sort >"$TMP/least"
	union "$TMP"/said.{0,3,4} | LC_ALL=C sort >"$TMP/most"
	wc -l "$TMP"/{least,combined,most}
	LC_ALL=C comm -23 "$TMP/least" "$TMP/combined" >"$TMP/missing"
	LC_ALL=C comm -13 "$TMP/most" "$TMP/combined" >"$TMP/strange"
	head -n 5 "$TMP/missing" "$TMP/strange"
	[ ! -s "$TMP/missing" ]
	[ ! -s "$TMP/strange" ]
	[ "$(wc -l <"$TMP/combined")" -gt "$(wc -l <"$TMP/least")" ]

	# Cut off anywhere at all, nothing breaks.
	parts "$TMP/cuts"
	cut=$(dumps "$TMP/cuts/a" | sed -n 2p)
	for size in 0 104 5000 -3000; do
		cp "$(dumps "$TMP/a" | sed -n 2p)" "$cut"
		truncate -s "$size" "$cut"
		rm -f "$TMP/cuts/a"
		perf record -q --combine --keep -o "$TMP/cuts/a"
		opens "$TMP/cuts/a"
	done
}

# Whatever is in a part: an error, or a file; never a crash. The seeds are fixed, but not how
# long a part is: they go on until one is not broken too much to be combined.
survives_broken_parts()
{
	local i rc part broken=0 most=${FLIGHT_BROKEN:-4}

	parts "$TMP/broken"
	for ((i = 0; i < most || broken == i && i < 10 * most; i++)); do
		rm -f "$TMP/broken/a"*
		for part in $(dumps "$TMP/a" | sed -n 1,2p); do
			cp -p "$part"* "$TMP/broken"
		done
		python3 - "$i" "$TMP/broken"/a.* <<-'END'
			import random, sys
			rng = random.Random(int(sys.argv[1]))
			for name in sys.argv[2:]:
			    if name.endswith('.json'):
			        continue
			    data = bytearray(open(name, 'rb').read())
			    limit = rng.choice([104, 600, 4000, len(data)])
			    for _ in range(rng.randrange(1, 20)):
			        where = rng.randrange(min(limit, len(data)))
			        data[where] = rng.choice([0, 1, 7, 8, 255, rng.randrange(256)])
			    open(name, 'wb').write(data)
		END
		rc=0
		timeout 300 perf record -q --combine --keep -o "$TMP/broken/a" 2>"$TMP/said" ||
			rc=$?
		[ $rc -le 1 ] || { cat "$TMP/said"; echo "seed $i: status $rc"; return 1; }
		broken=$((broken + rc))
	done
	echo "$broken of $i could not be combined"
	[ "$broken" -lt "$i" ]
}

# One of other events, of another boot, or of a machine of the other byte order stays as it
# is; so does an OUT of another kind.
leaves_out_what_does_not_fit()
{
	local other said

	parts "$TMP/three"
	other=$(dumps "$TMP/three/a" | sed -n 1p)
	sed -i 's/"boot_id": "./"boot_id": "x/' "$other.json"
	perf record -q -o "$TMP/three/a" -e cpu-clock -- true 2>/dev/null
	cp "$TMP/three/a" "$TMP/three/mine"
	start_recorder "$TMP/other" -M 4M -e context-switches -a
	stop_recorder INT
	cp "$DUMP" "$TMP/three/a.sample.20200101T000000.000Z"
	{ printf 2ELIFREP; head -c 96 /dev/zero; } >"$TMP/three/a.sample.20200101T000001.000Z"
	said=$(perf record --combine -o "$TMP/three/a" 2>&1)
	echo "$said"
	grep -q "$(basename "$other") was skipped: it is from another boot" <<<"$said"
	grep -q "a.sample.20200101T000000.000Z was skipped: it has events" <<<"$said"
	grep -q "a.sample.20200101T000001.000Z was skipped: .* other byte order" <<<"$said"
	[ "$(find "$TMP/three" -name 'a.sample.*' ! -name '*.json' | wc -l)" = 3 ]
	cmp "$TMP/three/a.old" "$TMP/three/mine"
	mapfile -t before < <(dumps "$TMP/a" | tail -n4)
	is_union "$TMP/three/a" "${before[@]}"
	# It is still there if that was interrupted before it had a manifest, and is repeated.
	rm "$TMP/three/a.json"
	parts "$TMP/three"
	perf record --combine -o "$TMP/three/a"
	cmp "$TMP/three/a.old" "$TMP/three/mine"
	[ -s "$TMP/three/a.old.2" ]
}

# Whenever it is killed, doing it again makes up for it.
survives_sigkill()
{
	local i before pid

	mapfile -t before < <(dumps "$TMP/a")
	for ((i = 0; i < ${FLIGHT_KILLS:-2}; i++)); do
		rm -rf "$TMP/four"
		parts "$TMP/four"
		perf record -q --combine -o "$TMP/four/a" &
		pid=$!
		sleep "$(python3 -c "import random; print(random.random() * 0.5 * ($i % 3 + 1))")"
		kill -KILL $pid 2>/dev/null || true
		wait $pid 2>/dev/null || true
		echo "killed: $(find "$TMP/four" -type f -printf '%f ')"
		if [ -e "$TMP/four/a" ]; then
			opens "$TMP/four/a"
		fi
		if [ "$(dumps "$TMP/four/a" | wc -l)" -gt 0 ] || [ ! -e "$TMP/four/a" ]; then
			perf record -q --combine -o "$TMP/four/a"
		fi
		cmp "$TMP/four/a" "$TMP/one/a"
		[ -z "$(find "$TMP/four" -name '.*.tmp')" ]
	done
}

# At SIGUSR2, on the socket, by the action: a last dump, then all of them, then the end.
combines_at_the_end()
{
	local how options text

	for how in signal socket action; do
		options=(--trigger signal)
		[ $how != action ] || options=(--trigger "signal,action=combine")
		[ $how != socket ] || options+=(--keep)
		start_recorder "$TMP/five$how" -M 8M -e cpu-clock -F 299 -a --trigger socket \
			"${options[@]}"
		run_dead
		case $how in
		signal)	dump
			run_dead
			kill -USR2 "$RECORDER" ;;
		socket)	dump
			text=$(echo combine | socat -t 90 - "UNIX-CONNECT:$TMP/five$how.sock")
			grep -q '"combine": "accepted"' <<<"$text" ;;
		action)	kill -USR1 "$RECORDER" ;;
		esac
		wait "$RECORDER"
		RECORDER=
		cat "$TMP/five$how.stderr"
		opens "$TMP/five$how"
		dead_have_names "$TMP/five$how"
		[ ! -e "$TMP/five$how.sock" ]
		if [ $how = socket ]; then
			has_dumps "$TMP/five$how" 2
			mapfile -t before < <(dumps "$TMP/five$how")
			is_union "$TMP/five$how" "${before[@]}"
		else
			not has_dumps "$TMP/five$how" 1
			not test -e "$TMP/five$how.auxiliary"
		fi
	done
}

refuses()
{
	fails 1 'combine records nothing' perf record --combine -a true
	fails 1 'combine records nothing' perf record --combine -M 4M
	fails 1 'keep is for a flight recorder' perf record --keep true
}

flight_begin
check "five dumps of two runs" records_parts
check "combine is the union of them, and may be repeated" combines
check "header" header_is_of_all
check "a part that was cut off" takes_a_truncated_part
check "parts that are broken" survives_broken_parts
check "what does not fit is left out" leaves_out_what_does_not_fit
check "kill -9" survives_sigkill
check "SIGUSR2, combine, action=combine" combines_at_the_end
check "refuses what makes no sense" refuses
persistent_end
