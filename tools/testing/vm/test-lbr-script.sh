#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the guest, which has no LBR: lbr_call_stacks.sh says so. With a perf that takes the
# stacks by frame pointers, and one that cuts system-wide stacks, it counts and judges.
set -uo pipefail
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"

SCRIPT=$TOP/tools/testing/selftests/perf_events/lbr_call_stacks.sh
DIR=$(mktemp -d)
trap 'rm -rf "$DIR"' EXIT
LBR_CHAIN=$BUILD/patched/selftests/lbr_chain
REAL_PERF=$(command -v perf)
export LBR_CHAIN REAL_PERF

# A perf for which frame pointers are LBRs
cat >"$DIR/perf-fp" <<'END'
#!/bin/bash
args=("${@/#cycles:u/cpu-clock:u}")
exec "$REAL_PERF" "${args[@]/%lbr/fp}"
END

# And which loses, system-wide, main()'s caller from each third stack, and main() from another
cat >"$DIR/perf-cuts" <<'END'
#!/bin/bash
[[ "$*" == script*/wide* ]] || exec "${0%cuts}fp" "$@"
"${0%cuts}fp" "$@" | awk '
	/^[^ \t]/ { n++ }
	NF > 1 && $2 !~ /^f[123]$/ && (n % 3 == 1 || n % 3 == 0 && $2 != "main") { next }
	{ print }'
END
chmod +x "$DIR"/perf-*

# refuses WORDS COMMAND...: status 4, and the last line has the words
refuses()
{
	local words=$1 rc=0 text
	shift
	text=$("$@" 2>&1) || rc=$?
	echo "$text"
	[ $rc = 4 ] && [[ ${text##*$'\n'} == "lbr_call_stacks: "*"$words"* ]]
}

# judges PERF STATUS WORDS: that status, and the last line is the words
judges()
{
	local rc=0 text
	text=$(PERF=$DIR/$1 "$SCRIPT" 3 2>&1) || rc=$?
	echo "$text" | tee "$DIR/text"
	[ $rc = "$2" ] && [[ ${text##*$'\n'} == "$3" ]]
}

# share ROW: of the system-wide stacks, in percent, without its fraction
share()
{
	sed -nE "s/^$1[^ ]* .* ([0-9]+)\.[0-9]+ %\$/\1/p" "$DIR/text"
}

cuts_are_counted()
{
	judges perf-cuts 1 "system-wide stacks are shorter, or none are whole" || return 1
	[ "$(share whole,)" -le 34 ] && [ "$(share 'from main')" -ge 31 ] &&
		[ "$(share 'from f1')" -ge 31 ]
}

tap_run "refused without LBR" refuses "has no LBR call stacks" "$SCRIPT" 1
tap_run "refused without perf" refuses "there is no /no/perf" env PERF=/no/perf "$SCRIPT" 1
tap_run "refused without the program" refuses "/no/chain is missing" \
	env LBR_CHAIN=/no/chain "$SCRIPT" 1
tap_run "refused without root" refuses "run this as root" \
	setpriv --reuid 65534 --clear-groups "$SCRIPT" 1
tap_run "stacks of equal depth are found so" judges perf-fp 0 \
	"system-wide stacks are as deep as those per process"
tap_run "shorter ones are counted, and found" cuts_are_counted
tap_end
