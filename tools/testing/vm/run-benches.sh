#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# make bench: run the commands of tools/testing/vm/benches one after the other, for base
# and patched. Their output also goes to build/bench/NAME.txt.
#
# usage: run-benches          ONLY=PATTERN (shell pattern) runs part of them
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

ONLY=${ONLY:-*}
bad=0 n=0
mkdir -p "$BUILD/bench"
while read -r name command <&3; do
	[[ -n $name && $name != \#* ]] || continue
	# shellcheck disable=SC2053 # ONLY is a pattern
	[[ $name == $ONLY ]] || continue
	n=$((n + 1))
	say "$name"
	start=$SECONDS
	if ! (cd "$TOP" && bash -c "$command" </dev/null) | tee "$BUILD/bench/$name.txt"; then
		say "$name failed"
		bad=1
	fi
	say "$name took $((SECONDS - start)) s"
done 3<"$TOP/tools/testing/vm/benches"
[ $n -gt 0 ] || die "no benchmark is called $ONLY"
exit $bad
