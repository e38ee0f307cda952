#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Upload a dump of the flight recorder to object storage. For use with --on-dump:
#
#	perf record -M 64M ... --on-dump '/usr/local/bin/upload-dump.sh s3://bucket/dumps'
#
# usage: upload-dump.sh DESTINATION DUMP
#   s3://BUCKET/PREFIX   with aws s3 cp; set AWS_ENDPOINT_URL for MinIO and similar stores
#   https://HOST/PATH    with a PUT of curl; set CURL_OPTIONS='--aws-sigv4
#                        aws:amz:REGION:s3 --user KEY:SECRET' or '--netrc' to authenticate
#   REMOTE:PATH          with rclone; REMOTE is a remote of rclone config
#
# The objects are DESTINATION/HOST/DUMP, then DUMP.tar.bz2 if --archive has written it, and
# DUMP.json last: if it exists, the others are complete. "swallowed" in the uploaded copy
# counts triggers until the dump was written. Triggers during the cooldown come later and
# are only counted in the manifest on the local disk.
#
# Each upload is retried after PAUSES ("1 5 30 120" seconds). An attempt fails if nothing is
# transferred for STALL seconds (30), or after LIMIT seconds (3600). If all attempts fail, the
# exit status is 1, which perf reports. The dump stays on the local disk.
set -u

# Encode all bytes that can have a special meaning in a URL as %XX.
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
# Prevent that the name is taken as an option, or as a remote by rclone.
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
