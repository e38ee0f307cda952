#!/bin/bash
# perf record and perf ctl say what is wrong with persistent sessions
# SPDX-License-Identifier: GPL-2.0
#
# What is checked before the kernel is asked; and, on a kernel without
# persistent events, that there is one sentence, a status other than 0, and
# nothing made.
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"

# Old habits: -P was --period.
names_period()
{
	fails 1 '--period' perf record -P true
	fails 1 '--period' perf record -P -e cpu-clock true
	fails 1 '--period' perf record -e cpu-clock -P true
	fails 1 '--period' perf record -e cpu-clock -a -P x true
	fails 1 '--period' perf record -a -P x
	fails 129 '--period' perf record -e cpu-clock -a -P
}

period_still_works()
{
	perf record --period -e cpu-clock -N -o "$TMP/p" true 2>&1
	perf evlist -v -i "$TMP/p" | grep -q 'PERIOD'
}

names_kill()
{
	fails 1 '--kill' perf record -e persistent/x/ -k mono
	fails 129 '--kill' perf record -e persistent/x/ -k
	fails 1 'perf ctl -d' perf record --kill true
}

refuses_bad_names()
{
	local name

	for name in 1x a/b 'a b' event7 -x "$(printf 'x%.0s' $(seq 64))"; do
		fails 1 'cannot be the name' perf record -P "$name" -e cpu-clock -a
	done
	# The kernel accepts these; the event parser reads them as words of its own.
	for name in period id cycles LLC-loads L2 r1a8; do
		fails 1 'the event parser' perf record -P "$name" -e cpu-clock -a
	done
}

reads_alone()
{
	local event

	for event in persistent/x/,cpu-clock cpu-clock,persistent/x/ persistent/x/u \
		     persistent/x,index=1/ persistent/index=1/ persistent/x/,persistent/y/; do
		fails 1 'together with other events' perf record -e $event
	done
	fails 1 'together with other events' perf record -e persistent/x/ -e cpu-clock
	fails 1 'only one of them' perf record -P x -e persistent/x/ -a
}

refuses_what_does_not_go()
{
	fails 1 'not (go|work) with' perf record -P x -e cpu-clock -a --switch-output
	fails 1 'either tasks .* or CPUs' perf record -P x -e cpu-clock -a -p $$
	fails 1 'either tasks .* or CPUs' perf record -P x -e cpu-clock -C 0 -t $$
	fails 1 'cannot be changed' perf record -e persistent/x/ -p $$
	fails 1 '-P does not write a file' perf record -P x -e cpu-clock -a -o "$TMP/x"
	[ ! -e "$TMP/x" ]
	fails 1 'not work with' perf record -P x -e cpu-clock -a -D 10
	fails 1 'sched:sched_switch' perf record -P x -e cpu-clock -a --switch-events
	fails 1 'not work with' perf record -e persistent/x/ --threads
	fails 1 'not work with' perf record -e persistent/x/ -z
	fails 1 'cannot be changed' perf record -e persistent/x/ -F 99
	fails 1 'cannot be changed' perf record -e persistent/x/ -m 1M
	fails 1 'in a group' perf record -P x -e '{cpu-clock,cs}' -a
	fails 1 'exclude each other' perf record -P x -e cpu-clock -a --add --replace
	fails 1 'require -P' perf record --add -e cpu-clock -a
}

refuses_pipes()
{
	fails 1 'pipe' perf record -e persistent/x/ -o -
}

# Whether or not this perf has them: a session could not keep one.
refuses_bpf_filters()
{
	local text

	if text=$(perf record -P x -e cpu-clock -a --filter 'period > 1' 2>&1); then
		perf ctl -d x
		return 1
	fi
	grep -q BPF <<<"$text"
}

# one_sentence STATUS COMMAND...
one_sentence()
{
	local status=$1 text rc=0

	shift
	text=$(timeout 60 "$@" 2>&1) || rc=$?
	printf '%s: status %s: %s\n' "$*" $rc "$text"
	[ $rc = "$status" ]
	one_line "$text"
	grep -q '^This kernel has no persistent events .*CONFIG_PERF_PERSISTENT=y' <<<"$text"
}

# -EOPNOTSUPP
NOT_SUPPORTED=161

# What does not depend on sessions works.
old_kernel_has_the_rest()
{
	cd "$TMP"
	[ "$(perf ctl --json)" = '[]' ]
	perf ctl --prometheus >prom
	grep -qx 'perf_flight_recorders 0' prom
	not grep perf_persistent prom
	perf list persistent >listed
	not grep persistent listed
	fails 129 "Unable to find PMU or event on a PMU of 'persistent'" \
		perf stat -e persistent/x/ true
	perf record -q -M 8M -e cpu-clock -o rest -- true
	rm prom listed rest*
}

old_kernel()
{
	cd "$TMP"
	one_sentence 1 perf record -P x -e cpu-clock -a
	one_sentence 1 perf record -P x --add -e cpu-clock -a
	one_sentence 1 perf record -P x --replace -e cpu-clock -a
	one_sentence 1 perf record -P x --reserve=perf -e cpu-clock -a
	one_sentence 1 perf record -e persistent/x/
	one_sentence 1 perf record -e persistent/x/ --kill
	one_sentence 1 perf record -e persistent/config=1/ -o "$TMP/out" true
	one_sentence 1 perf record -M 8M -e persistent/x/ -o "$TMP/out"
	one_sentence 1 perf record --daemon -M 8M -e persistent/x/ -o "$TMP/out"
	one_sentence 1 perf ctl
	one_sentence 1 perf ctl -l
	one_sentence 1 perf ctl -i x
	one_sentence 1 perf ctl -d x
	one_sentence 1 perf ctl --freeze x
	one_sentence 1 perf ctl --thaw x y
	one_sentence 1 perf ctl --join-cpu=0
	one_sentence 1 perf ctl --join-cpu=online x
	# Of these, the status is an errno.
	one_sentence $NOT_SUPPORTED perf data note x
	one_sentence $NOT_SUPPORTED perf data note -q --every 60 x
	one_sentence $NOT_SUPPORTED perf top -e persistent/x/
	one_sentence $NOT_SUPPORTED perf top --stdio -e persistent/x/
	[ "$(ls "$TMP")" = p ]
}

TMP=$(mktemp -d "${TMPDIR:-/tmp}/persistent.XXXXXX")
export HOME=$TMP
trap 'rm -rf "$TMP"' EXIT
check "the old use of -P names --period" names_period
check "--period records the period" period_still_works
check "-k and --kill are told apart" names_kill
check "a bad name for a session is refused" refuses_bad_names
check "a session is read by itself" reads_alone
check "options that do not go with sessions are refused by name" refuses_what_does_not_go
check "a filter that is a BPF program is refused" refuses_bpf_filters
if supported; then
	check "no pipe output" refuses_pipes
else
	check "an old kernel: one sentence, not status 0, nothing made" old_kernel
	check "an old kernel: what needs no session works" old_kernel_has_the_rest
fi
persistent_end
