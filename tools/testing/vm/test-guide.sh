#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run the commands of a guide: every line that begins with '    # ', in their order, in
# one shell, in an empty directory, as root. A command that fails is a failed check, in a
# pipeline, too, and so is a guide without commands. Where a line says
# '.. the text of FILE', the block behind it must be that file of $TOP, but for its
# comments. Prints TAP.
#
# usage: test-guide.sh FILE [SECTION [PREFIX]]
#   SECTION  of a .md file, by its heading: its commands alone
#   PREFIX   how the commands begin, '# ' unless given, which is not part of them; what
#            begins with another one ('make ') is run whole, in the tree
set -uo pipefail

guide=$(realpath "$1")
section=${2:-}
prefix=${3:-# }
directory=$(mktemp -d "${TMPDIR:-/tmp}/guide.XXXXXX")
if [ "$prefix" = '# ' ]; then
	cd "$directory" || exit 1
	export HOME=$directory
else
	cd "$TOP" || exit 1
	# What this was started with is not for them.
	unset VARIANT SMP ACCEL TIMEOUT CMD APPEND ONLY OUT MAKEFLAGS
fi

# What belongs to the section, without the four columns in front.
said_to_run()
{
	awk -v section="$section" '
		/^#+ / { title = $0; sub(/^#+ /, "", title); inside = title == section }
		(section == "" || inside) && sub(/^    /, "")' "$guide" |
		if [ "$prefix" = '# ' ]; then
			sed -n 's/^# //p'
		else
			grep "^$prefix"
		fi
}

# print_block FILE: what the guide has as its text
print_block()
{
	awk -v mark=".. the text of $1" '
		within && /^[^ ]/ { exit }
		marked && sub(/^    /, "") { within = 1 }
		within
		$0 == mark { marked = 1 }' "$guide"
}

clean_up()
{
	jobs -p | xargs -r kill -KILL 2>/dev/null
	# A daemon that was told to end may write there once more.
	rm -rf "$directory" 2>/dev/null || { sleep 2; rm -rf "$directory"; }
}
trap clean_up EXIT

# A reader waits for as long as it takes; a machine that is busy, or emulated, takes longer
# than the guide says.
sleep()
{
	command sleep $(($1 * 3))
}

timeout()
{
	command timeout $(($1 * 5)) "${@:2}"
}

mapfile -t commands < <(said_to_run)
n=0 bad=0
# Jobs have numbers as they have for who types the commands.
set -m
for command in "${commands[@]}"; do
	n=$((n + 1)) status=0 said=$directory/.said-$n end=$((SECONDS + 300))
	eval "$command" >"$said" 2>&1 </dev/null || status=$?
	# What a command finds after a pause may take even longer.
	while [ $status != 0 ] && [[ $command == sleep\ * ]] && [ $SECONDS -lt $end ]; do
		status=0
		eval "$command" >"$said" 2>&1 </dev/null || status=$?
	done
	# Nor is a signal for a recorder that is not ready.
	while [[ $command == *'perf record '*' -M '*'&' ]] && [ $SECONDS -lt $end ] &&
	      ! grep -q 'flight recorder [0-9]' "$said"; do
		command sleep 0.2
	done
	if [ $status = 0 ]; then
		echo "ok $n $command"
	else
		echo "# status $status"
		sed "s/^/# /" "$said" | tail -n 30
		bad=$((bad + 1))
		echo "not ok $n $command"
	fi
done
while read -r file; do
	n=$((n + 1))
	if diff -B <(grep -v '^#' "$TOP/$file") <(print_block "$file") >"$directory/.said"; then
		echo "ok $n the text of $file"
	else
		sed "s/^/# /" "$directory/.said"
		bad=$((bad + 1))
		echo "not ok $n the text of $file"
	fi
done < <(sed -n 's/^\.\. the text of //p' "$guide")
if [ $n = 0 ]; then
	n=1 bad=1
	echo "not ok 1 $guide has no commands"
fi
echo "1..$n"
[ $bad = 0 ]
