#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Let the flight recorder of the machine that an alert is about write a dump, and tell
# Alertmanager where it is. The hook perf-dump of hooks.json runs this.
#
# usage: dump-for-alert.sh INSTANCE RECORDER ALERT
#   INSTANCE   the label instance of the alert, HOST or HOST:PORT
#   RECORDER   the name of the recorder
#   ALERT      the name of the alert, for the manifest of the dump
#        dump-for-alert.sh --here
#   On that machine, for sshd. In authorized_keys of the user of the recorder, or of root:
#      restrict,command="/usr/local/bin/dump-for-alert.sh --here" ssh-ed25519 ...
#   The key can then do nothing else.
#
# In the environment: ALERTMANAGER (http://localhost:9093), its address; DUMPS, the address
# below which people find HOST/DUMP, such as that of the store of upload-dump.sh; PERF_SSH (ssh),
# with options. On the machine: PERF (perf).
#
# Prometheus sends its alerts again and again, each time with its own annotations: one that
# was added to them is gone a minute later. So the link is that of a new alert, PerfDump,
# which has the same instance, and the name of the first one as "for". It ends after a day.
# Words come from others: they are no patterns of file names.
set -uf

# is_word WORD...: all of them can be given to a shell, and be part of JSON.
is_word()
{
	for word; do
		case $word in
		'' | -* | *[!A-Za-z0-9._:@-]*) return 1 ;;
		esac
	done
}

# Print the name of the machine, as upload-dump.sh has it, and of the dump.
dump_here()
{
	# shellcheck disable=SC2086 # two words
	set -- ${SSH_ORIGINAL_COMMAND-}
	if [ $# != 2 ] || ! is_word "$@"; then
		echo "dump-for-alert.sh: not RECORDER ALERT: '${SSH_ORIGINAL_COMMAND-}'" >&2
		exit 2
	fi
	uname -n
	exec "${PERF:-perf}" ctl --dump="$1" --reason="alert $2"
}

# Escape what the text of another program can have, for JSON.
text_of()
{
	tr -d '\r\n' | LC_ALL=C tr -c 'A-Za-z0-9 ._:/@()=,%-' ' ' | cut -c 1-300
}

# tell ANNOTATION TEXT
tell()
{
	body=$(printf '[{"labels":{"alertname":"PerfDump","instance":"%s","for":"%s",%s' \
		"$instance" "$alert" "\"dump\":\"$dump\"},"
	       printf '"annotations":{"%s":"%s"},"endsAt":"%s"}]' "$1" "$2" \
		"$(date -u -d '+1 day' +%Y-%m-%dT%H:%M:%SZ)")
	curl --fail --silent --show-error --max-time 30 --retry 5 --retry-connrefused \
		--header 'Content-Type: application/json' --data "$body" \
		"${ALERTMANAGER:-http://localhost:9093}/api/v2/alerts"
}

[ "${1-}" != --here ] || dump_here
if [ $# != 3 ] || ! is_word "$@"; then
	echo "usage: dump-for-alert.sh INSTANCE RECORDER ALERT" >&2
	exit 2
fi
instance=$1 recorder=$2 alert=$3 dump=none

# shellcheck disable=SC2086 # PERF_SSH is a list of words
if said=$(${PERF_SSH:-ssh -o BatchMode=yes -o ConnectTimeout=10} "${instance%:*}" \
		"$recorder $alert" 2>&1 </dev/null); then
	host=$(printf '%s\n' "$said" | tail -n 2 | head -n 1 | text_of)
	dump=$(printf '%s\n' "$said" | tail -n 1 | text_of)
	dump=${dump##*/}
	tell link "${DUMPS:-}${DUMPS:+/}$host/$dump"
else
	echo "dump-for-alert.sh: no dump of $instance: $said" >&2
	tell error "no dump: $(printf '%s\n' "$said" | tail -n 1 | text_of)"
	exit 1
fi
