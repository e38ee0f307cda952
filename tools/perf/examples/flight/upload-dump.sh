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
# The objects are DESTINATION/HOST/DUMP, and DUMP.json after it: who sees that has the whole
# dump. Each is tried again after the PAUSES (seconds). If all fail, the status is 1, which
# perf reports; the dump stays where it is, and nothing else is touched.
set -u

destination=${1%/}/$(uname -n)
dump=$2

# shellcheck disable=SC2086 # CURL_OPTIONS is a list of words
case $destination in
s3://*) put() { aws s3 cp --only-show-errors "$1" "$2"; } ;;
*://*) put() { curl --fail --silent --show-error ${CURL_OPTIONS-} --upload-file "$1" "$2"; } ;;
*:*) put() { rclone copyto "$1" "$2"; } ;;
*)
	echo "upload-dump.sh: '$1' is no s3://, https:// or REMOTE:" >&2
	exit 2
	;;
esac

put_or_retry()
{
	for pause in ${PAUSES-1 5 30 120} end; do
		if put "$1" "$destination/${1##*/}"; then
			return 0
		fi
		[ "$pause" = end ] || sleep "$pause"
	done
	echo "upload-dump.sh: $1 is not in $destination; it stays on this disk" >&2
	return 1
}

put_or_retry "$dump" && { [ ! -e "$dump.json" ] || put_or_retry "$dump.json"; }
