#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf's own C suites give no worse verdict than on the base. They are run in the patched
# variant. What does not pass there is run in the base variant, and compared by name. What
# asks no kernel, and takes minutes under emulation, runs on the host.
#
# usage: perf-verdicts.sh [shell|selftests|kunit]
#	shell: the base's shell suites instead, one by one, each with a time-out (minutes
#	each under emulation); selftests: its perf_events kselftests, in debug as well;
#	kunit: KUnit suites, in small kernels that are built for it, see kunit.sh. Of these, all
#	are run in each variant, at the same time.
#
# The verdicts are in $OUT/table.md, side by side.
set -uo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"

export OUT=${OUT:-$BUILD/out/perf.verdicts}
KIND=${1:-c}
WHAT='perf test'
OTHERS=(patched)
# Those that the base has
SELFTESTS=(sigtrap_threads remove_on_exec watermark_signal mmap)
LIMIT=${LIMIT:-300}
# As an extended regular expression
ON_HOST='(PMU JSON event tests|Round merge|Flight recorder: .* store|Black box of a dead machine)'

# What the base's shell tests are called
shell_names()
{
	local f dir=$BUILD/base/src/tools/perf/tests/shell

	for f in "$dir"/*.sh "$dir"/*/*.sh; do
		sed -n '2s/^# *//p' "$f"
	done
}

# NUMBER NAME of each suite of a perf. Not from the project's root: perf would
# take the tests below it.
suites_of()
{
	(cd "$OUT" && "$1" test list) 2>&1 | sed -nE 's/^ *([0-9]+): (.*[^ ]) *$/\1 \2/p'
}

# Those in C: they come before the first in shell.
c_suites()
{
	local number name text
	text=$(shell_names)
	suites_of "$1" | while read -r number name; do
		! grep -qxF "$name" <<<"$text" || break
		echo "$number $name"
	done
}

shell_suites()
{
	local number name text
	text=$(shell_names)
	suites_of "$1" | while read -r number name; do
		! grep -qxF "$name" <<<"$text" || echo "$number $name"
	done
}

# verdicts VARIANT TIMEOUT COMMAND: in the guest, its output to $OUT/VARIANT.log
verdicts()
{
	VARIANT=$1 SMP=2 MEM='' ACCEL=single ICOUNT='' APPEND='' TIMEOUT=$2 \
		CMD="cd /tmp && $3; true" "$TOP/tools/testing/vm/vm.sh" \
		>"$OUT/$1.log" 2>&1
}

# run_c VARIANT [NUMBER...]: all, or these suites. One after another, as the perf of 6.12 runs
# them by default. That of 7.3 runs all at once, and some suites have time limits.
run_c()
{
	local variant=$1 perf=$BUILD/$1/bin/perf suites here
	shift
	suites=$(c_suites "$perf" | awk -v list="$*" '
		BEGIN { n = split(list, numbers, " "); for (i in numbers) wanted[numbers[i]] }
		!n || ($1 in wanted)')
	here=$(sed -nE "s/ $ON_HOST\$//p" <<<"$suites")
	suites=$(grep -vE " $ON_HOST\$" <<<"$suites" | cut -d' ' -f1 | tr '\n' ' ')
	: >"$OUT/$variant.log"
	[ -z "$suites" ] || verdicts "$variant" 3600 "perf test -S $suites" || return 1
	# shellcheck disable=SC2086 # numbers
	[ -z "$here" ] || (cd "$OUT" && "$perf" test -S $here) >>"$OUT/$variant.log" 2>&1
}

# The numbers of the base's suites with something that does not pass in the patched variant, or
# is not there any more. A suite that has parts has no verdict of its own.
c_suites_to_compare()
{
	(cd "$OUT" && "$BUILD/base/bin/perf" test list) 2>&1 |
		sed -nE 's/^ *([0-9.]+): (.*[^ ]) *$/\1 \2/p' |
		awk -v file="$OUT/patched" -v last="$(c_suites "$BUILD/base/bin/perf" | tail -n1)" '
			BEGIN {
				while ((getline line < file) > 0)
					if (sub(/: Ok$/, "", line))
						passed[line]
			}
			int($1) > int(last) { exit }
			{
				number[NR] = $1
				name[NR] = substr($0, length($1) + 2)
				if ($1 ~ /\./)
					has_parts[int($1)]
			}
			END {
				for (i = 1; i in number; i++)
					if (!(number[i] in has_parts) && !(name[i] in passed))
						print int(number[i])
			}' | uniq
}

compare_c()
{
	local numbers

	run_variant patched || return 1
	numbers=$(c_suites_to_compare)
	echo "# on the base as well: ${numbers//$'\n'/ }"
	: >"$OUT/base"
	# shellcheck disable=SC2086 # numbers
	[ -z "$numbers" ] || run_variant base $numbers || return 1
	try_again
}

run_shell()
{
	local numbers
	numbers=$(shell_suites "$BUILD/$1/bin/perf" | cut -d' ' -f1 | tr '\n' ' ')
	verdicts "$1" 10800 \
		"LIMIT=$LIMIT $TOP/tools/testing/vm/${BASH_SOURCE[0]##*/} in-guest $numbers"
}

run_selftests()
{
	verdicts "$1" 2400 "$TOP/tools/testing/vm/kselftests.sh ${SELFTESTS[*]}"
}

# Each case is "ok N suite: case" of what is read here.
run_kunit()
{
	"$TOP/tools/testing/vm/kunit.sh" "$1" >"$OUT/$1.kmsg" 2>&1 || return 1
	awk '/^    # Subtest: / { suite = $3 }
	     /^    (not )?ok [0-9]/ { sub(/ok [0-9]+ /, "&" suite ": "); sub(/^ +/, ""); print }' \
		"$OUT/$1.kmsg" >"$OUT/$1.log"
}

# in_guest NUMBER...: one by one. A time-out is a verdict, too.
in_guest()
{
	local number status
	for number in "$@"; do
		SECONDS=0 status=0
		timeout -k 5 "$LIMIT" perf test "$number" </dev/null || status=$?
		case $status in
		124|137)
			perf test list 2>&1 | sed -nE "s/^( *$number: .*[^ ]) *\$/\1 : Timeout/p"
			;;
		esac
		echo "# $number took $SECONDS s"
	done
}

run_variant()
{
	"run_$KIND" "$@" || return 1
	sed -nE -e 's/^ *[0-9]+(\.[0-9]+)?: (.*[^ ]) *: (Ok|Skip|FAILED!|Timeout).*/\2: \3/p' \
		-e 's/^ok [0-9]+ (.*) # *SKIP.*/\1: Skip/p;t' -e 's/^ok [0-9]+ (.*)/\1: Ok/p' \
		-e 's/^not ok [0-9]+ (.*)/\1: FAILED!/p' "$OUT/$1.log" >"$OUT/$1"
}

verdict_of()
{
	grep -m1 -F "$2: " "$OUT/$1" | sed 's/.*: //'
}

names()
{
	sed 's/: [^:]*$//' "$OUT/base" "${OTHERS[@]/#/$OUT/}" | sort -u
}

# is_worse BEFORE AFTER
is_worse()
{
	case "$1>$2" in
	*'>Ok'|'Skip>Skip'|'FAILED!>FAILED!'|'FAILED!>Skip'|'Timeout>Timeout') return 1 ;;
	esac
}

worse_names()
{
	local name
	names | while IFS= read -r name; do
		! is_worse "$(verdict_of base "$name")" "$(verdict_of patched "$name")" ||
			printf '%s\n' "$name"
	done
}

# Some of perf's own suites fail now and then on a machine that is busy, base or not: what has
# a worse verdict than on the base is tried twice more, and fails if it fails each time.
try_again()
{
	local worse
	for _ in 1 2; do
		worse=$(worse_names)
		[ -n "$worse" ] || return 0
		echo "# once more, as on the base it was better: ${worse//$'\n'/, }"
		mv "$OUT/patched" "$OUT/patched.before"
		run_variant patched || return 1
		mv "$OUT/patched" "$OUT/patched.again"
		WORSE=$worse awk '
			BEGIN {
				n = split(ENVIRON["WORSE"], list, "\n")
				while (n)
					again[list[n--]] = 1
			}
			{ name = $0; sub(/: [^:]*$/, "", name) }
			(name in again) == (FILENAME ~ /again$/)' \
			"$OUT/patched.before" "$OUT/patched.again" >"$OUT/patched"
	done
}

# compare VARIANT: with the base
compare()
{
	local name before after
	while IFS= read -r name; do
		before=$(verdict_of base "$name")
		after=$(verdict_of "$1" "$name")
		# Of debug alone
		[ "$before$after" ] || continue
		case "$before>$after" in
		'FAILED!>FAILED!') echo "# fails on the base as well: $name" ;;
		'Timeout>Timeout') echo "# takes over $LIMIT s on the base as well: $name" ;;
		esac
		if is_worse "$before" "$after"; then
			echo "# base: ${before:-none}, $1: ${after:-none}"
			tap_ok 1 "$WHAT: $name${2-}"
		else
			tap_ok 0 "$WHAT: $name${2-}"
		fi
	done < <(names)
}

write_table()
{
	local name variant
	{
		printf '| %s | base |' "$WHAT"
		printf ' %s |' "${OTHERS[@]}"
		printf '\n| --- | --- |'
		printf ' --- |%.0s' "${OTHERS[@]}"
		echo
		names | while IFS= read -r name; do
			printf '| %s |' "$name"
			for variant in base "${OTHERS[@]}"; do
				printf ' %s |' "$(verdict_of "$variant" "$name")"
			done
			echo
		done
	} >"$OUT/table.md"
}

if [ "$KIND" = in-guest ]; then
	shift
	in_guest "$@"
	exit
fi
case $KIND in
selftests) WHAT=selftest OTHERS=(patched debug) ;;
kunit) WHAT=KUnit OTHERS=(patched debug) ;;
esac
mkdir -p "$OUT"
rc=0
if [ "$KIND" = c ]; then
	compare_c || rc=1
else
	run_variant base &
	pid=$!
	for variant in "${OTHERS[@]}"; do
		run_variant "$variant" || rc=1
	done
	wait $pid || rc=1
fi
if [ $rc != 0 ]; then
	tail -n 5 "$OUT"/*.log
	tap_ok 1 "they run to their end on base and ${OTHERS[*]}"
fi
compare patched
[ ${#OTHERS[@]} = 1 ] || compare debug " (debug)"
write_table
tap_end
