#!/bin/bash
# perf verdict compares what changed (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# What perf verdict adds up, and compares between parts of a recording; that recordings without a
# change have none. INCIDENT, VERDICT_RUNS: see lib/verdict_judge.sh. It may record on one
# machine, and read on another, see lib/apart.sh. Prints TAP.
set -e

# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"
# shellcheck source=lib/apart.sh
. "$(dirname "$0")/lib/apart.sh"
# shellcheck source=lib/verdict_judge.sh
. "$(dirname "$0")/lib/verdict_judge.sh"
# shellcheck source=lib/verdict_counts.sh
. "$(dirname "$0")/lib/verdict_counts.sh"

# Where the one with a change is shorter, the part of some of the times that are tried is too
# short for a finding.
# shellcheck disable=SC2034 # for get
RECORDINGS=(
	[convoy]="records 0.3 convoy $SWITCH"
	[change]="records 13 change $SWITCH,$WAKING,$NEW -g"
	[calm]="records 10 calm $SWITCH,$WAKING,$NEW -g"
	[short]="records 0.2 change $SWITCH,$WAKING,$NEW -g"
	[samples]="records 7 change dummy -g"
)

# notes MANIFEST TEXT: it comes before the findings, in words and in JSON; TEXT may be empty
notes()
{
	echo "{ $1 }" >"$TMP/data.json"
	judges_both
	if [ -z "$2" ]; then
		not grep -q 'Not all was recorded' "$TMP/text"
		not grep -q '"overhead"' "$TMP/json"
	else
		head -n1 "$TMP/text" | grep -qE "^$2\$"
		grep -qE "^  \"overhead\": \"$2\",\$" "$TMP/json"
	fi
}

# What a recorder had given up is not to be taken for what did not happen.
tells_of_overhead()
{
	local all='Not all was recorded: for --max-overhead,' end=' when the dump was written\.'
	local inside change=' The last change was at [0-9]+\.[0-9]{6}: what is before and after it '
	change+='cannot be compared\.'

	get convoy
	inside=$(perf verdict -i "$TMP/data" --json | awk -F'[ ,]+' '
		/^  "oldest"/ { a = $3 } /^  "newest"/ { printf "%.9f", (a + $3) / 2e9 }')
	notes '"max_overhead": 1.000' ''
	notes '"rate_divisor": 1, "nr_events_given_up": 0, "overhead_acted": 0.000000001' ''
	notes '"rate_divisor": 8' "$all the sampling rates were divided by 8$end"
	notes '"rate_divisor": 1, "events_given_up": "a:b"' "$all a:b was disabled$end"
	notes '"rate_divisor": 2, "events_given_up": "a:b,c"' \
		"$all a:b,c were disabled, and the sampling rates were divided by 2$end"
	notes "\"rate_divisor\": 2, \"overhead_acted\": $inside" \
		"$all the sampling rates were divided by 2$end$change"
	notes "\"rate_divisor\": 1, \"overhead_acted\": $inside" \
		"$all events were disabled or rates lowered for a part of the time\.$change"
	perf verdict -i "$TMP/data" --compare | head -n1 | grep '^Not all was recorded'
	rm "$TMP/data.json"
}

# What changed in $TMP/data, as text and in $TMP/json
compares()
{
	perf verdict -i "$TMP/data" --compare | tee "$TMP/text"
	perf verdict -i "$TMP/data" --compare --json >"$TMP/json"
	keep_json
}

# The call chain of each switch leads through __schedule(), wherever it is read.
names_the_kernel()
{
	get change
	perf script -i "$TMP/data" -F event,ip,sym >"$TMP/lines"
	# A record for each sample, up to an empty line
	awk -v RS= '/sched_switch/ { of++; named += / __schedule(\n|$)/ }
		END { print of, "switches,", named, "in __schedule()"; exit !of || of != named }' \
		"$TMP/lines"
}

# Who began to run, in which function, and who waited for it; also as a finding.
tells_a_change()
{
	for ((i = 0; i < ${VERDICT_RUNS:-1}; i++)); do
		get change
		judges
		compares
		names
		names_the_change
	done
}

names_the_change()
{
	python3 - "$TMP/truth" "$TMP/json" <<-'END'
		import json, sys
		truth = dict(line.split(None, 1) for line in open(sys.argv[1]))
		compared = json.load(open(sys.argv[2]))['comparison']
		top = {}
		for change in compared['changes']:
		    top.setdefault(change['figure'], change)
		rest = (compared['part']['from'] - compared['since']) / 11.7e9
		if not 0.9 < rest < 1.3:
		    sys.exit('%.2f of what is before it' % rest)
		# The clock ticks late where interrupts were off, as at the end of a switch: for
		# such a sample, the function itself is the kernel's.
		selves = [c for c in compared['changes'] if c['figure'] == 'self']
		own = [c for c in selves if c['dso'] == 'incident'][:1]
		# It can begin within a slice that still belongs to a calm part.
		for burn in [top['total']] + own:
		    if burn.get('function') != 'burn' or burn['most'] > burn['now'] / 10:
		        sys.exit('%r' % burn)
		if not own or own[0] not in selves[:2]:
		    sys.exit('%r' % selves[:3])
		if top['on_cpu']['comm'] != truth['culprit'].strip():
		    sys.exit('%r' % top['on_cpu'])
		if 'runnable' not in top:
		    sys.exit('nobody waited more')
	END
}

# What the user names, and when the manifest says that it was triggered
compares_what_is_named()
{
	perf verdict -i "$TMP/data" --compare='90%-100%' --against='0%-60%' | tee "$TMP/text"
	grep -qE '^Compared: 1\.[0-9]+ s, from .* with (5|6) calm parts ' "$TMP/text"
	grep -qE ' burn  \(incident\)$' "$TMP/text"
	perf verdict -i "$TMP/data" --compare='70%-100%' | tee "$TMP/text"
	grep -q '^What changed is not told: it takes 5 calm parts .*, and there are 2\.' "$TMP/text"
	oldest=$(sed -nE 's/^  "oldest": ([0-9]+),/\1/p' "$TMP/json")
	awk "BEGIN { printf \"{\n  \\\"trigger_time\\\": %.9f,\n}\n\", $oldest / 1e9 + 7 }" \
		>"$TMP/data.json"
	compares
	rm "$TMP/data.json"
	grep -q '^Compared: .* s before the trigger, from ' "$TMP/text"
	[ "$(grep -c ' burn  ' "$TMP/text")" = 0 ]
	fails 1 'There are no records in 1,2: they are from' \
		perf verdict -i "$TMP/data" --compare=1,2
	fails 1 'takes one range' perf verdict -i "$TMP/data" --compare='0%-10%,20%-30%'
	fails 1 'overlap' perf verdict -i "$TMP/data" --compare='0%-10%' --against='5%-60%'
	fails 1 'needs the part' perf verdict -i "$TMP/data" --against='0%-10%'
}

finds_no_change()
{
	for ((i = 0; i < ${VERDICT_RUNS:-1}; i++)); do
		get calm
		judges_both
		not grep '"kind": "changed"' "$TMP/json"
		compares
		grep -q '^Nothing changed by more than calm parts differ, of ' "$TMP/text"
	done
}

# Too little to know what is usual
says_what_is_too_short()
{
	get short
	compares
	grep -q '^What changed is not told: it takes 5 calm parts .* of 0.200 s or more' "$TMP/text"
	grep -q '"compared": false' "$TMP/json"
}

# Without switches, functions are compared alone, and tasks by their samples: nobody waited.
compares_samples()
{
	get samples
	compares
	grep -qE ' burn  \(incident\)$' "$TMP/text"
	[ "$(grep -c '^Tasks, by seconds of waiting' "$TMP/text")" = 0 ]
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
[ -n "${READ_FROM-}" ] || keep_incident
[ -z "${RECORD_TO-}" ] || apart_record record_all
check "tells what --max-overhead had given up" tells_of_overhead
check "names functions of the kernel that was recorded" names_the_kernel
TRIES=6 check "tells what changed before the end" once_of tells_a_change
check "counts what changed as perf script does" counts_changes
check "adds up waits for CPUs as perf sched timehist does" counts_delays
check "compares what it is told to" compares_what_is_named
TRIES=6 check "finds no change on a busy machine" once_of finds_no_change
check "says that a recording is too short to compare" once_of says_what_is_too_short
check "compares samples without switches" once_of compares_samples
check_schema changes
persistent_end
