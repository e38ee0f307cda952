#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Put a dump of the flight recorder into object storage. For --on-dump:
#
#	perf record -M 64M ... --on-dump '/usr/local/bin/upload-dump.sh s3://bucket/dumps'
#
# usage: upload-dump.sh DESTINATION DUMP
#   s3://BUCKET/PREFIX   by aws s3 cp; for MinIO and the like set AWS_ENDPOINT_URL
#   https://HOST/PATH    by curl, as PUT; CURL_OPTIONS='--aws-sigv4 aws:amz:REGION:s3
#                        --user KEY:SECRET', or '--netrc', says who asks
#   REMOTE:PATH          by rclone, with REMOTE as rclone config made it
#
# The objects are DESTINATION/HOST/DUMP; DUMP.tar.bz2 after it, if --archive has made it; and
# DUMP.json last: who sees that has all of it. "swallowed" in that copy counts the triggers
# until the dump was written. Those of the cooldown behind it come later, and are in the
# manifest on this disk alone.
#
# Each is tried again after the PAUSES (seconds, "1 5 30 120"). A try ends when nothing has
# moved for STALL seconds (30), and after LIMIT seconds (3600) whatever moves. If all fail, the
# status is 1, which perf reports; the dump stays where it is, and nothing else is touched.
set -u

# In a URL other bytes than these are written as %XX, or they would mean something.
encode()
{
	printf %s "$1" | od -An -v -tu1 | LC_ALL=C awk '
		{ for (i = 1; i <= NF; i++) {
			c = sprintf("%c", $i + 0)
			printf "%s", c ~ /^[A-Za-z0-9._~-]$/ ? c : sprintf("%%%02X", $i)
		} }'
}

same()
{
	printf %s "$1"
}

stall=${STALL:-30} limit=${LIMIT:-3600} name=same

# shellcheck disable=SC2086 # CURL_OPTIONS is a list of words
case $1 in
s3://*)
	put()
	{
		timeout "$limit" aws s3 cp --only-show-errors --cli-connect-timeout "$stall" \
			--cli-read-timeout "$stall" "$1" "$2"
	}
	;;
*://*)
	name=encode
	put()
	{
		timeout "$limit" curl --fail --silent --show-error --globoff \
			--connect-timeout "$stall" --speed-limit 1 --speed-time "$stall" \
			${CURL_OPTIONS-} --upload-file "$1" "$2"
	}
	;;
*:*)
	put()
	{
		timeout "$limit" rclone copyto --contimeout "${stall}s" --timeout "${stall}s" \
			"$1" "$2"
	}
	;;
*)
	echo "upload-dump.sh: '$1' is no s3://, https:// or REMOTE:" >&2
	exit 2
	;;
esac

destination=${1%/}/$($name "$(uname -n)")
# Neither an option nor, to rclone, a remote.
case $2 in
/*) dump=$2 ;;
*) dump=./$2 ;;
esac

put_or_retry()
{
	for pause in ${PAUSES-1 5 30 120} end; do
		if put "$1" "$destination/$($name "${1##*/}")"; then
			return 0
		fi
		[ "$pause" = end ] || sleep "$pause"
	done
	echo "upload-dump.sh: $1 is not in $destination; it stays on this disk" >&2
	return 1
}

put_or_retry "$dump" || exit 1
for beside in "$dump.tar.bz2" "$dump.json"; do
	[ ! -e "$beside" ] || put_or_retry "$beside" || exit 1
done
