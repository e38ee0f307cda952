#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run the commands of a guide: every line that begins with '    # ', in their order, in
# one shell, in an empty directory, as root. A command that fails is a failed check, and
# so is a guide without commands. Prints TAP.
#
# usage: test-guide.sh FILE
set -u

guide=$(realpath "$1")
directory=$(mktemp -d "${TMPDIR:-/tmp}/guide.XXXXXX")
cd "$directory" || exit 1
export HOME=$directory

clean_up()
{
	jobs -p | xargs -r kill -KILL 2>/dev/null
	rm -rf "$directory"
}
trap clean_up EXIT

mapfile -t commands < <(sed -nE 's/^    # (.*)/\1/p' "$guide")
n=0 bad=0
# Jobs have numbers as they have for who types the commands.
set -m
for command in "${commands[@]}"; do
	n=$((n + 1))
	if eval "$command" >"$directory/.said" 2>&1 </dev/null; then
		echo "ok $n $command"
	else
		echo "# status $?"
		sed "s/^/# /" "$directory/.said" | tail -n 30
		bad=$((bad + 1))
		echo "not ok $n $command"
	fi
done
if [ $n = 0 ]; then
	n=1 bad=1
	echo "not ok 1 $guide has no commands"
fi
echo "1..$n"
[ $bad = 0 ]
