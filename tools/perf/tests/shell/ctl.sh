#!/bin/bash
# perf ctl lists, describes and ends persistent sessions
# SPDX-License-Identifier: GPL-2.0
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"

TOOLS=$(cd "$(dirname "$0")/../../.." && pwd)

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
	grep -qE '^ta +[0-9]+ +0 +[0-9,-]+ +[0-9]+ +[0-9]+ +([0-9.]+|-) +runs$' "$TMP/list"
	[ "$(awk 'NR > 1 { print $1 }' "$TMP/list" | xargs)" = 'ta tb' ]
	[ "$(perf ctl -l | awk '{ print $1, $2 }')" = "$(perf ctl | awk '{ print $1, $2 }')" ]
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
	perf ctl -i "id=$(cat $PERSISTENT_SYSFS/sessions/ta/id)" | grep -q '^session ta,'
	fails 1 "No persistent session 'tx'. There are: ta tb" perf ctl -i tx
}

is_wrapped()
{
	perf ctl -i "$1" --json | json '
sys.exit(not all(e["wrapped"] for e in d["events"] if not e["sideband"]))'
}

# Each metric has its type, before its values, and the values of --json.
prints_metrics()
{
	perf ctl --prometheus >"$TMP/prom"
	cat "$TMP/prom"
	perf ctl --json >"$TMP/json"
	python3 - "$TMP" <<-'EOF'
	import json, re, sys
	typed, values = set(), {}
	for line in open(sys.argv[1] + "/prom"):
	    head = re.fullmatch(r"# TYPE (\w+) gauge\n", line)
	    value = re.fullmatch(r'(\w+)(?:\{session="([^"]+)"\})? ([0-9.]+)\n', line)
	    if head:
	        assert head[1] not in typed
	        typed.add(head[1])
	    elif value:
	        assert value[1] in typed
	        values[value[1], value[2]] = float(value[3])
	    else:
	        assert re.fullmatch(r"# HELP (\w+) \S.*\n", line), line
	d = json.load(open(sys.argv[1] + "/json"))
	assert values["perf_persistent_sessions", None] == len(d) == 2
	for s in d:
	    get = lambda key: values["perf_persistent_session_" + key, s["name"]]
	    assert get("events") == s["nr_events"] and get("memory_bytes") == s["memory"], s
	    assert get("running") == 1 and (s["window"] is None or get("window_seconds") >= 0), s
	EOF
	cp "$TMP/prom" "$TMP/sessions.prom"
	fails 129 'Usage: perf ctl' perf ctl --prometheus -i ta
}

# The samples' times, as perf script has them: the list's window is between the first
# and the last; it grows while the buffers are not full; and one that was overwritten
# does not reach back as far.
tells_the_window()
{
	local n

	# One page holds less than a second.
	perf record -q -P tv -e cpu-clock -F 99 -m 4K -C 0
	for _ in {1..60}; do
		perf test -w noploop 1
		! is_wrapped tv || break
	done
	is_wrapped tv
	perf ctl -l --json >"$TMP/before"
	perf record -e persistent/tv/ -N -o "$TMP/tv" 2>/dev/null
	perf ctl -l --json >"$TMP/after"
	perf script -i "$TMP/tv" --ns -F time 2>/dev/null | tr -d ' :' >"$TMP/times"
	n=$(wc -l <"$TMP/times")
	echo "$n samples, $(head -n 1 "$TMP/times") .. $(tail -n 1 "$TMP/times")"
	python3 - "$TMP" <<-'EOF'
	import json, sys
	tmp = sys.argv[1]
	times = [int(t.replace(".", "")) for t in open(tmp + "/times").read().split()]
	before, after = [next(s for s in json.load(open(tmp + "/" + f)) if s["name"] == "tv")
	                 for f in ("before", "after")]
	print(before, after)
	for s in before, after:
	    assert abs(s["window"] - (s["newest"] - s["oldest"]) / 1e9) < 0.001, s
	    assert s["newest"] > s["oldest"] > 0, s
	assert before["oldest"] <= times[0] <= after["oldest"], times[0]
	assert before["newest"] <= times[-1] <= after["newest"], times[-1]
	EOF
	perf ctl -i tv | awk '$NF == "cpu-clock" { exit !($5 > 0) }'
	perf ctl -d tv
}

# opens_of COMMAND...: prints its calls of perf_event_open(); its output is in $TMP/list
opens_of()
{
	perf stat -x, -e syscalls:sys_enter_perf_event_open -o "$TMP/opens" -- "$@" >"$TMP/list"
	awk -F, '/perf_event_open/ { print $1 }' "$TMP/opens"
}

# The events of a CPU share a buffer. What the list shows of the window needs one of them.
opens_buffers_alone()
{
	local one three

	perf record -q -P tw -e cpu-clock -C 0
	perf test -w noploop 1
	one=$(opens_of perf ctl -l)
	perf record -q -P tw --replace -e cpu-clock -e task-clock,page-faults -C 0
	perf test -w noploop 1
	three=$(opens_of perf ctl -l)
	echo "opened: $one with one event, $three with three"
	grep -qE '^tw +[0-9]+ +0 +[0-9,-]+ +[0-9]+ +[0-9]+ +[0-9]+\.[0-9]+ +runs$' "$TMP/list"
	[ "$one" -gt 0 ]
	[ "$three" = "$one" ]
	perf ctl -d tw
}

strangers_see_names_alone()
{
	setpriv --reuid=65534 --clear-groups --inh-caps=-all perf ctl -l | tee "$TMP/list"
	grep -qE '^ta +[0-9]+ +- +- +- +- +- +-$' "$TMP/list"
	setpriv --reuid=65534 --clear-groups --inh-caps=-all perf ctl --json | json '
s = d[0]
assert s["name"] == "ta" and s["cpus"] is None and s["memory"] is None, s
assert s["window"] is None and "oldest" not in s, s'
	# In the metrics what is not known is left out: it is not 0.
	setpriv --reuid=65534 --clear-groups --inh-caps=-all perf ctl --prometheus >"$TMP/prom"
	grep -qx 'perf_persistent_sessions 2' "$TMP/prom"
	lacks '{session=' cat "$TMP/prom"
	fails 1 'No permission' setpriv --reuid=65534 --clear-groups --inh-caps=-all perf ctl -i ta
}

ends_several()
{
	perf record -q -P tc -e cpu-clock -C 0
	perf ctl -d ta tc
	[ "$(sessions)" = tb ]
}

# It ends at once, also for those who read it: they keep what they have, and with it
# the memory, and -d says who they are.
names_the_readers()
{
	local reader text

	perf record -q -P tr -e cpu-clock -C 0
	mkfifo "$TMP/go"
	perf record -e persistent/tr/ -o "$TMP/tr" -- cat "$TMP/go" >/dev/null 2>&1 &
	reader=$!
	for _ in {1..3000}; do
		! pgrep -P $reader -x cat >/dev/null || break
		pause 0.2
	done
	text=$(perf ctl -d tr)
	echo "$text"
	lacks '^tr$' sessions
	timeout 300 sh -c "echo >'$TMP/go'"
	wait $reader
	grep -q "^session 'tr' ended; .* these processes have closed it: $reader (perf)$" <<<"$text"
	has . perf script -i "$TMP/tr" -F time
	perf record -q -P tr -e cpu-clock -C 0
	[ "$(perf ctl -d tr)" = "session 'tr' ended" ]
}

nr_opens()
{
	perf stat -x, -o "$TMP/opens" -e syscalls:sys_enter_perf_event_open -- "$@" >/dev/null
	sed -n 's/,.*sys_enter_perf_event_open.*//p' "$TMP/opens"
}

# Whatever the number of events, one file is opened.
ends_in_one_call()
{
	perf record -q -P td -e cpu-clock -a
	[ "$(nr_opens perf ctl -d td)" = 1 ]
	lacks '^td$' sessions
}

# A kernel without the file of a session says that there is no such event.
ends_on_an_older_kernel()
{
	cat >"$TMP/older.c" <<-'EOF'
	#include <errno.h>
	#include <stdarg.h>
	#include <dlfcn.h>
	#include <sys/syscall.h>
	#include <linux/perf_event.h>

	long syscall(long nr, ...)
	{
		static long (*next)(long nr, ...);
		struct perf_event_attr *attr;
		long arg[6];
		va_list ap;

		va_start(ap, nr);
		for (int i = 0; i < 6; i++)
			arg[i] = va_arg(ap, long);
		va_end(ap);
		attr = (void *)arg[0];
		if (nr == __NR_perf_event_open && attr->type == 6 && !~attr->config1) {
			errno = ENOENT;
			return -1;
		}
		if (!next)
			next = dlsym(RTLD_NEXT, "syscall");
		return next(nr, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
	}
	EOF
	gcc -D_GNU_SOURCE -Wall -shared -fPIC -o "$TMP/older.so" "$TMP/older.c" -ldl
	perf record -q -P td -e cpu-clock -a
	perf test -w noploop 1
	LD_PRELOAD=$TMP/older.so perf ctl -l | grep -E '^td .* [0-9]+\.[0-9]+ +runs$'
	fails 1 'this kernel cannot freeze' env LD_PRELOAD="$TMP/older.so" perf ctl --freeze td
	LD_PRELOAD=$TMP/older.so perf ctl -d td | grep -qx "session 'td' ended"
	lacks '^td$' sessions
}

newest() { perf ctl -i "$1" --json | json 'print(max(e.get("newest", 0) for e in d["events"]))'; }

freezes()
{
	local before

	perf ctl --freeze ta | grep -q "^session 'ta' frozen; "
	perf ctl -l | grep -qE '^ta .* frozen$'
	perf ctl -l | grep -qE '^tb .* runs$'
	perf ctl -i ta | grep -q ' frozen  *cpu-clock'
	fails 1 "'ta' is frozen already" perf ctl --freeze ta
	before=$(newest ta)
	perf test -w noploop 1
	[ "$before" = "$(newest ta)" ]
	perf record -e persistent/ta/ -o "$TMP/frozen" 2>"$TMP/said"
	grep -c ': samples: .* records, frozen \]$' "$TMP/said"
	has . perf script -i "$TMP/frozen" -F time
	fails 1 "'ta' while it is frozen.*perf ctl --thaw ta" \
		perf record -P ta --add -e context-switches -a
	fails 1 'No permission to thaw' \
		setpriv --reuid=65534 --clear-groups --inh-caps=-all perf ctl --thaw ta
	perf ctl --thaw ta | grep -qx "session 'ta' goes on"
	fails 1 "'ta' is running already" perf ctl --thaw ta
	perf ctl -l | grep -qE '^ta .* runs$'
	perf test -w noploop 1
	[ "$before" -lt "$(newest ta)" ]
	fails 1 "No persistent session 'tx'" perf ctl --freeze tx
}

# It is not an event that can be counted: what to do is said.
is_not_counted()
{
	local text

	text=$(not perf stat -e persistent/ta/ true 2>&1)
	grep -q 'Read it: perf record -e persistent/ta/' <<<"$text"
}

# complete WORD...: what bash would offer for the last of them
complete_words()
{
	# shellcheck disable=SC2034 # for the script that is sourced
	bash -c '
		. "$0"
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
		_perf
		printf "%s\n" "${COMPREPLY[@]}"' "$TOOLS/perf/perf-completion.sh" "$@" |
		sort | xargs
}

completes_names()
{
	[ "$(complete_words perf ctl -d t)" = 'ta tb' ]
	[ "$(complete_words perf ctl -d ta t)" = 'ta tb' ]
	[ "$(complete_words perf ctl -i '')" = 'ta tb' ]
	[ "$(complete_words perf ctl --freeze t)" = 'ta tb' ]
	[ "$(complete_words perf ctl --js)" = --json ]
	[ "$(complete_words perf ctl --tha)" = --thaw ]
	[ "$(complete_words perf record --add -P tb)" = tb ]
	complete_words perf record -e persistent/t | grep -q persistent/ta/
	complete_words perf ct | grep -qw ctl
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
	fails 129 'Usage: perf ctl' perf ctl --freeze
	fails 129 'Usage: perf ctl' perf ctl --freeze --thaw ta
	fails 129 'Usage: perf ctl' perf ctl --thaw --json ta
	fails 129 'Usage: perf ctl' perf ctl ta
}

# A man page with the files that it includes.
# The program of a document compiles without a warning, and does what is said there.
program_works()
{
	local rst=$1 cpu

	sed -n '/^The program, .*::$/,/^[^ ]*=$/s/^    //p' "$rst" >"$TMP/example.c"
	gcc -Wall -Wextra -Werror -I"$TOOLS/include/uapi" -o "$TMP/example" "$TMP/example.c"
	"$TMP/example" make td
	has '^td ' perf ctl -l
	perf test -w noploop 1
	"$TMP/example" read td | tee "$TMP/list"
	for cpu in $(online_cpus); do
		grep -qE "^CPU $cpu, event 0: [1-9][0-9]* samples, [0-9]+ other records" "$TMP/list"
	done
	# Another reader finds the same: no fewer samples, later.
	perf record -e persistent/td/ -N -o "$TMP/td" 2>/dev/null
	perf script -i "$TMP/td" -F time 2>/dev/null | awk -v list="$TMP/list" '
		BEGIN { while ((getline <list) > 0) { sub(/.*: /, ""); want += $1 } }
		END { print NR, "samples, before", want; exit !(want > 0 && NR >= want) }'
	"$TMP/example" freeze td | grep -qE "^frozen, all buffers within [0-9]+ us$"
	perf ctl -l | grep -qE '^td .* frozen$'
	"$TMP/example" list td | tee "$TMP/list"
	for cpu in $(online_cpus); do
		grep -qE "^CPU $cpu, event 0, buffer 0: state 0x8$" "$TMP/list"
	done
	"$TMP/example" read td | grep -q intact
	"$TMP/example" thaw td
	"$TMP/example" list td | grep -q 'state 0x0$'
	[ "$(nr_opens "$TMP/example" end td)" = 1 ]
	[ -z "$(sessions)" ]
	not "$TMP/example" read td
}

DOC=$(cd "$(dirname "$0")/../../Documentation" 2>/dev/null && pwd) || DOC=

persistent_begin
check "without sessions it says how to make one" lists_none
check "-l lists the sessions" lists
check "-l --json is JSON" lists_json
check "--prometheus prints metrics" prints_metrics
check_metrics
check "-i describes the events of a session" describes
check "-l, -i and --json tell from when to when the samples are" tells_the_window
check "-l opens one event of each buffer" opens_buffers_alone
check "of others' sessions one sees the names alone" strangers_see_names_alone
if [ -e "$TOOLS/perf/perf-completion.sh" ]; then
	check "the shell completes the names of sessions" completes_names
else
	leave_out "the shell completes the names of sessions" "no sources of perf"
fi
check "--freeze keeps a session as it is, --thaw lets it go on" freezes
check "perf stat says why a session cannot be counted" is_not_counted
check "-d ends a session in one call" ends_in_one_call
check "-d ends a session of an older kernel event by event" ends_on_an_older_kernel
check "-d ends several sessions" ends_several
check "-d says who still holds the memory" names_the_readers
check "-d ends the others if one cannot be ended" ends_the_others
check "wrong usage is told" usage
if [ -e "$DOC/perf-ctl.txt" ]; then
	check "the examples of perf-ctl(1) work" man_examples_work "$DOC/perf-ctl.txt"
else
	leave_out "the examples of perf-ctl(1) work" "no sources of perf"
fi
RST=$TOOLS/../Documentation/userspace-api/perf_persistent.rst
if [ -e "$RST" ] && command -v gcc >/dev/null; then
	check "the program of perf_persistent.rst compiles and works" program_works "$RST"
else
	leave_out "the program of perf_persistent.rst compiles and works" "no sources, or no gcc"
fi
persistent_end
