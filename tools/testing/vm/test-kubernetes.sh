#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The DaemonSet among the examples is as the API of Kubernetes wants it, and what is not is
# refused. Needs no cluster and no network. Prints TAP.
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"

EXAMPLE=$TOP/tools/perf/examples/flight/perf-flight-daemonset.yaml
FILE=$(mktemp)
trap 'rm -f "$FILE"' EXIT

# Debian's python3, for which its package is
check()
{
	/usr/bin/python3 "$TOP/tools/testing/vm/check-kubernetes.py" "$1"
}

# refuses NAME SED MESSAGE: the example with that change
refuses()
{
	local said rc=0
	sed "$2" "$EXAMPLE" >"$FILE"
	said=$(check "$FILE") || rc=$?
	if [ $rc = 1 ] && ! cmp -s "$FILE" "$EXAMPLE" && grep -qF -e "$3" <<<"$said"; then
		tap_ok 0 "refuses $1"
	else
		printf '%s\n' "$said"
		tap_ok 1 "refuses $1"
	fi
}

if ! /usr/bin/python3 -c 'import kubernetes, yaml' 2>/dev/null; then
	echo "1..0 # SKIP no python3-kubernetes"
	exit 0
fi
rc=0
check "$EXAMPLE" || rc=$?
tap_ok $rc "the DaemonSet fits the schema"
refuses "an unknown field" 's/hostPID:/hostPid:/' 'hostPid: there is no such field'
refuses "a field that is missing" 's/name: recorder/image: recorder/' 'must not be'
refuses "a value of another type" 's/runAsUser: 0/runAsUser: root/' "'root' is no int"
refuses "a number for a word" 's/"99"/99/' '99 is no str'
refuses "an unknown object" 's/kind: DaemonSet/kind: Daemon/' 'there is no such object'
tap_end
