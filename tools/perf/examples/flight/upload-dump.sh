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
# The objects are DESTINATION/HOST/DUMP, and DESTINATION/HOST/DUMP.json last: if it exists, the
# others are complete. With --archive, what the symbols are in comes before it. Of the files
# in perf-symbols, those are sent that DESTINATION does not have in the same size, whichever
# host has sent them:
#   buildid/ID/executable, buildid/ID/debuginfo   programs, and their debug files
#   kallsyms/ID                                   names of the kernel
#   HOST/jit/VERSION/perf-PID.map, HOST/DUMP.symbols
# The first two are the paths of debuginfod: if DESTINATION can be read by https, it is a
# server for DEBUGINFOD_URLS. "swallowed" in the uploaded copy
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
	size_there()
	{
		key=${1#s3://}
		timeout "$limit" aws s3api head-object --cli-connect-timeout "$stall" \
			--cli-read-timeout "$stall" --bucket "${key%%/*}" --key "${key#*/}" \
			--query ContentLength --output text
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
	size_there()
	{
		timeout "$limit" curl --fail --silent --head --globoff \
			--connect-timeout "$stall" --max-time "$stall" ${CURL_OPTIONS-} "$1" |
			tr -d '\r' | sed -n 's/^[Cc]ontent-[Ll]ength: *//p'
	}
	;;
*:*)
	put()
	{
		timeout "$limit" rclone copyto --contimeout "${stall}s" --timeout "${stall}s" \
			"$1" "$2"
	}
	size_there()
	{
		timeout "$limit" rclone lsf --format s --contimeout "${stall}s" \
			--timeout "${stall}s" "$1"
	}
	;;
*)
	echo "upload-dump.sh: '$1' is no s3://, https:// or REMOTE:" >&2
	exit 2
	;;
esac

base=${1%/}
destination=$base/$($name "$(uname -n)")
# Prevent that the name is taken as an option, or as a remote by rclone.
case $2 in
/*) dump=$2 ;;
*) dump=./$2 ;;
esac
store=${dump%/*}/perf-symbols

# put_or_retry FILE OBJECT
put_or_retry()
{
	for pause in ${PAUSES-1 5 30 120} end; do
		if put "$1" "$2" </dev/null; then
			return 0
		fi
		[ "$pause" = end ] || sleep "$pause"
	done
	echo "upload-dump.sh: $1 is not in $destination; it stays on this disk" >&2
	return 1
}

# put_beside FILE: under its own name
put_beside()
{
	put_or_retry "$1" "$destination/$($name "${1##*/}")"
}

# put_once FILE OBJECT: if it is there. An upload that was cut off has another size.
put_once()
{
	[ -f "$1" ] || return 0
	[ "$(size_there "$2" 2>/dev/null </dev/null)" != "$(wc -c <"$1" | tr -d ' ')" ] ||
		return 0
	put_or_retry "$1" "$2"
}

put_symbols()
{
	while read -r line; do
		id=${line#.build-id/}
		id=${id%/*}${id#*/}
		case $line in
		.build-id/*)
			put_once "$store/$line/elf" "$base/buildid/$id/executable" &&
			put_once "$store/$line/vdso" "$base/buildid/$id/executable" &&
			put_once "$store/$line/debug" "$base/buildid/$id/debuginfo" &&
			put_once "$store/$line/kallsyms" "$base/kallsyms/$id" || return 1
			;;
		jit/*)
			put_once "$store/$line" "$destination/$line" || return 1
			;;
		esac
	done <"$dump.symbols"
}

put_beside "$dump" || exit 1
[ ! -e "$dump.symbols" ] || put_symbols || exit 1
for beside in "$dump.symbols" "$dump.json"; do
	[ ! -e "$beside" ] || put_beside "$beside" || exit 1
done
