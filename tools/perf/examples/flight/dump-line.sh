#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Print a dump of the flight recorder as one line of JSON, for what indexes logs: its manifest
# and the findings of perf verdict.
#
#	perf record -M 64M ... --on-dump 'f() { dump-line.sh "$1" | systemd-cat -t perf-dump; }; f'
#
# usage: dump-line.sh DUMP
#
# The line is {"perf_dump": MANIFEST, "perf_verdict": VERDICT}: DUMP.json, and what perf verdict
# --json prints, whose schema is Documentation/admin-guide/perf/perf-verdict.schema.json. VERDICT
# is null if the dump cannot be judged; the reason is on standard error. PERF is the perf to
# run, LIMIT the seconds that it may take (600).
set -u

# Neither has a line break in a string: JSON forbids it.
one_line()
{
	tr -d '\n'
}

if [ $# != 1 ] || [ ! -r "${1-}.json" ]; then
	echo "usage: dump-line.sh DUMP, which has a manifest DUMP.json" >&2
	exit 2
fi
verdict=$(timeout "${LIMIT:-600}" "${PERF:-perf}" verdict --json -i "$1" </dev/null | one_line)
case $verdict in
*'}') ;;
*) verdict=null ;;
esac
printf '{"perf_dump": %s, "perf_verdict": %s}\n' "$(one_line <"$1.json")" "$verdict"
