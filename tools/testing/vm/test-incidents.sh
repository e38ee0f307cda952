#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Each incident of the selftests has its section in the guide, and each that is calm its line.
# Prints TAP.
#
# usage: test-incidents.sh GUIDE
set -uo pipefail

n=0 bad=0
names=$("$BUILD/patched/selftests/incident" 2>&1 | sed -n 's/^\tNAME: //p')
for name in $names; do
	n=$((n + 1))
	if grep -q "^\`\`$name\`\`[: ]" "$1"; then
		echo "ok $n the guide shows $name"
	else
		bad=$((bad + 1))
		echo "not ok $n the guide shows $name"
	fi
done
if [ $n = 0 ]; then
	n=1 bad=1
	echo "not ok 1 there are no incidents"
fi
echo "1..$n"
[ $bad = 0 ]
