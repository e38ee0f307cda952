#!/bin/bash
# perf ctl lists, describes and ends persistent sessions
# SPDX-License-Identifier: GPL-2.0
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"

json()
{
	python3 -c "import json, sys; d = json.load(sys.stdin); $1"
}

lists_none()
{
	perf ctl -l | grep -q 'perf record -P NAME'
	[ "$(perf ctl -l --json)" = '[]' ]
}

lists()
{
	perf record -q -P ta -e cpu-clock -a
	perf record -q -P tb -e cpu-clock -C 0
	perf ctl | tee "$TMP/list"
	grep -qE '^ta +[0-9]+ +[0-9,-]+ +[0-9]+ +[0-9]+ +0 +runs$' "$TMP/list"
	[ "$(awk 'NR > 1 { print $1 }' "$TMP/list" | xargs)" = 'ta tb' ]
	[ "$(perf ctl -l)" = "$(perf ctl)" ]
}

lists_json()
{
	perf ctl -l --json | json '
assert [s["name"] for s in d] == ["ta", "tb"], d
for s in d:
    assert s["nr_events"] > 0 and s["memory"] > 0 and s["owner"] == 0, s
    assert s["state"] == "runs" and s["cpus"], s'
}

describes()
{
	perf ctl -i ta | grep -q '^session ta, id [0-9]*, owner 0$'
	perf ctl -i ta --json | json '
assert d["name"] == "ta" and d["owner"] == 0
cpus = sorted({e["cpu"] for e in d["events"]})
for c in cpus:
    own = [e for e in d["events"] if e["cpu"] == c]
    assert [e["sideband"] for e in own] == [True, False], own
    assert own[1]["event"] == "cpu-clock" and own[1]["data_size"] == 512 * 1024, own'
	[ "$(perf ctl -i "id=$(cat $PERSISTENT_SYSFS/sessions/ta/id)")" = "$(perf ctl -i ta)" ]
	fails 1 "No persistent session 'tx'. There are: ta tb" perf ctl -i tx
}

strangers_see_names_alone()
{
	setpriv --reuid=65534 --clear-groups --inh-caps=-all perf ctl -l | tee "$TMP/list"
	grep -qE '^ta +[0-9]+ +- +- +- +- +-$' "$TMP/list"
	setpriv --reuid=65534 --clear-groups --inh-caps=-all perf ctl --json | json '
assert d[0]["name"] == "ta" and d[0]["cpus"] is None and d[0]["memory"] is None, d'
	fails 1 'No permission' setpriv --reuid=65534 --clear-groups --inh-caps=-all perf ctl -i ta
}

ends_several()
{
	perf record -q -P tc -e cpu-clock -C 0
	perf ctl -d ta tc
	[ "$(sessions)" = tb ]
}

# A wrong name among them does not keep the others.
ends_the_others()
{
	fails 1 "No persistent session 'tx'" perf ctl -d tx tb
	[ -z "$(sessions)" ]
	[ -z "$(ls $PERSISTENT_SYSFS/events)" ]
}

usage()
{
	fails 129 'Usage: perf ctl' perf ctl -d
	fails 129 'Usage: perf ctl' perf ctl -l -d ta
	fails 129 'Usage: perf ctl' perf ctl ta
}

# The examples of a man page are commands that work, one after the other.
examples_work()
{
	local page=$1 from=$2 line

	cd "$TMP"
	sed -n "/^$from\$/,/^SEE ALSO/s/^  \\\$ //p" "$page" >examples
	[ -s examples ]
	while read -r line; do
		echo "\$ $line"
		sh -c "$line" </dev/null
	done <examples
	sessions | xargs -r perf ctl -d
}

DOC=$(cd "$(dirname "$0")/../../Documentation" 2>/dev/null && pwd) || DOC=

persistent_begin
check "without sessions it says how to make one" lists_none
check "-l lists the sessions" lists
check "-l --json is JSON" lists_json
check "-i describes the events of a session" describes
check "of others' sessions one sees the names alone" strangers_see_names_alone
check "-d ends several sessions" ends_several
check "-d ends the others if one cannot be ended" ends_the_others
check "wrong usage is told" usage
if [ -e "$DOC/perf-ctl.txt" ]; then
	check "the examples of perf-ctl(1) work" examples_work "$DOC/perf-ctl.txt" EXAMPLES
	check "the examples of perf-record(1) work" examples_work "$DOC/perf-record.txt" EXAMPLES
fi
persistent_end
