# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Incidents with a known cause, and what perf verdict says of them. INCIDENT is the program of
# tools/testing/selftests/perf_events/incidents/. VERDICT_RUNS: cause each so many times, and
# expect the right verdict each time. What was recorded elsewhere (see apart.sh) is read once.
# Sourced, not run; wants persistent.sh.
#
# RECORDINGS has the command for each recording that can be made here, by its name.

# For what is to be seen even if a check passes
exec 3>&1

# shellcheck disable=SC2034 # for the scripts that source this
SWITCH=sched:sched_switch WAKING=sched:sched_waking NEW=sched:sched_wakeup_new

declare -A RECORDINGS=()

# Another machine needs the symbols of this one's kernel.
SYMBOLS=(-B -N)
[ -z "${RECORD_TO-}" ] || SYMBOLS=()

# A guest waits for its host to open a file, and a clock that counts instructions jumps to the
# next timer meanwhile, by seconds if the host is busy: nothing of the host is to be opened while
# it records. What reads elsewhere finds the program at the same path.
keep_incident()
{
	cp "$INCIDENT" "$TMP/incident"
	[ ! -x "${INCIDENT}_nofp" ] || cp "${INCIDENT}_nofp" "$TMP/incident_nofp"
	INCIDENT=$TMP/incident
}

# records SECONDS NAME EVENTS [OPTION...]: the incident NAME, in $TMP/data and $TMP/truth
records()
{
	perf record -q "${SYMBOLS[@]}" -a -m 4M -o "$TMP/data" \
		-e cpu-clock/freq=199/ -e "$3" "${@:4}" -- \
		"$INCIDENT" "$2" "$(awk "BEGIN { print $1 * ${try:-1} }")" "$TMP/truth"
	cat "$TMP/truth"
}

# get RECORDING: in $TMP/data and $TMP/truth
get()
{
	if [ -n "${READ_FROM-}" ]; then
		cp "$TMP/$1.data" "$TMP/data"
		cp "$TMP/$1.truth" "$TMP/truth"
		return
	fi
	: >"$TMP/truth"
	# shellcheck disable=SC2086 # several words
	${RECORDINGS[$1]}
}

# has_recording RECORDING: it can be made here, or was made where that was done
has_recording()
{
	if [ -n "${READ_FROM-}" ]; then
		[ -e "$TMP/$1.data" ]
	else
		[ -n "${RECORDINGS[$1]-}" ]
	fi
}

# All that is read afterwards
record_all()
{
	local name

	for name in "${!RECORDINGS[@]}"; do
		echo "$name"
		get "$name"
		mv "$TMP/data" "$TMP/$name.data"
		mv "$TMP/truth" "$TMP/$name.truth"
	done
}

# once_of FUNCTION...: it succeeds in at least one of 3 tries, or TRIES. While the host does not
# run a guest, the tasks of the guest wait for each other without an incident, and a verdict that
# names such a wait is right. Try N is N times as long. With VERDICT_RUNS there is one
# try. Prints each try that failed.
once_of()
{
	local tries=${TRIES:-3} try text rc

	[ -z "${VERDICT_RUNS-}${READ_FROM-}" ] || tries=1
	for ((try = 1; try <= tries; try++)); do
		set +e
		text=$(set -eE; "$@" 2>&1)
		rc=$?
		set -e
		if [ $rc = 0 ]; then
			echo "$text"
			return 0
		fi
		printf '# try %s of %s: %s\n' "$try" "$tries" "$*" >&3
		printf '#   %s\n' "${text//$'\n'/$'\n#   '}" >&3
	done
	return 1
}

SCHEMA=$(dirname "$0")/../../../../Documentation/admin-guide/perf/perf-verdict.schema.json

# What was written is compared with the schema at the end: fields that it does not know, too.
keep_json()
{
	cp "$TMP/json" "$(mktemp "$TMP/kept.XXXXXX")"
}

# fits_schema WHAT...: there are findings of these kinds, or changes
fits_schema()
{
	python3 - "$SCHEMA" "$*" "$TMP"/kept.* <<-'END'
		import copy, json, sys
		from jsonschema import Draft202012Validator, ValidationError
		schema = json.load(open(sys.argv[1]))
		Draft202012Validator.check_schema(schema)
		def close(part):
		    if isinstance(part, dict):
		        if 'properties' in part and 'type' in part:
		            part['additionalProperties'] = False
		        for value in part.values():
		            close(value)
		close(schema)
		validator = Draft202012Validator(schema)
		seen, count = set(), 0
		for path in sys.argv[3:]:
		    verdict = json.load(open(path))
		    validator.validate(verdict)
		    seen |= {f['kind'] for f in verdict['findings']}
		    if verdict.get('comparison', {}).get('changes'):
		        seen.add('changes')
		    if verdict['findings']:
		        found = verdict
		    count += 1
		print(count, 'verdicts with', sorted(seen))
		if not seen.issuperset(sys.argv[2].split()):
		    sys.exit('too little to compare')
		for break_it in (lambda f: f.pop('cost_ns'), lambda f: f.update(kind='other'),
		                 lambda f: f.update(more=1)):
		    wrong = copy.deepcopy(found)
		    break_it(wrong['findings'][0])
		    try:
		        validator.validate(wrong)
		    except ValidationError:
		        continue
		    sys.exit('the schema takes anything')
	END
}

check_schema()
{
	if python3 -c 'import jsonschema' 2>/dev/null; then
		check "the JSON fits its schema" fits_schema "$@"
	else
		leave_out "the JSON fits its schema" "python3-jsonschema is not installed"
	fi
}

# What perf verdict says, in words; also in JSON
judges()
{
	perf verdict -i "$TMP/data" | tee "$TMP/text"
}

judges_both()
{
	judges
	perf verdict -i "$TMP/data" --json >"$TMP/json"
	keep_json
}

# The first finding against the truth
names()
{
	python3 - "$TMP/truth" "$TMP/json" <<-'END'
		import json, sys
		truth = [line.split() for line in open(sys.argv[1])]
		first = (json.load(open(sys.argv[2]))['findings'] or [None])[0]
		if not first:
		    sys.exit('nothing was found')
		names = lambda who: [t['comm'] for t in first[who]]
		for what, *values in truth:
		    if what == 'kind' and first['kind'] != values[0]:
		        sys.exit('kind %s' % first['kind'])
		    if what == 'culprit' and names('culprits')[:1] != values:
		        sys.exit('culprits %r' % names('culprits'))
		    if what == 'victim' and not set(values) & set(names('victims')):
		        sys.exit('victims %r' % names('victims'))
		    if what == 'device' and first.get('device') != values[0]:
		        sys.exit('device %r' % first.get('device'))
		    if what == 'cpu' and first.get('cpu') != int(values[0]):
		        sys.exit('cpu %r' % first.get('cpu'))
		    if what == 'source':
		        if values[0] not in (first.get('softirq'), first.get('handler')):
		            sys.exit('%r' % first)
		    if what == 'memory' and first.get('memory') != values[0]:
		        sys.exit('memory %r' % first.get('memory'))
		    if what == 'limit' and values[0] not in first['sentence']:
		        sys.exit('sentence %r' % first['sentence'])
		    if what == 'chain':
		        got = []
		        for link in first['chain']:
		            if link['task']['comm'] not in got[-1:]:
		                got.append(link['task']['comm'])
		        if got != values:
		            sys.exit('chain %r' % got)
	END
}
