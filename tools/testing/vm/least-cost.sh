# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What a command costs, for benchmarks. Sourced, not run, after lib.sh.

# least_cost COMMAND...: its CPU seconds and its peak of memory in KB, the least of $RUNS runs. Its
# files are in the current directory.
least_cost()
{
	local i

	for ((i = 0; i < ${RUNS:-3}; i++)); do
		command time -a -o measured."$i" -f '%U %S %M' "$@" >/dev/null 2>said ||
			{ tail -n 5 said >&2; die "failed: $*"; }
	done
	cat measured.* | awk '{ print $1 + $2, $3 }' | sort -n | head -n1
	rm -f measured.*
}
