#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Upload a dump of the flight recorder to object storage. For use with --on-dump:
#
#	perf record -M 64M ... --on-dump '/usr/local/bin/upload-dump.sh s3://bucket/dumps'
#
# usage: upload-dump.sh DESTINATION DUMP
#        upload-dump.sh --unsent DESTINATION OUT   the dumps of record -o OUT that were not sent
#   s3://BUCKET/PREFIX   with aws s3 cp; set AWS_ENDPOINT_URL for Swift, MinIO and other stores
#   https://HOST/PATH    with a PUT of curl; set CURL_OPTIONS='--aws-sigv4
#                        aws:amz:REGION:s3 --netrc-file FILE' or '--netrc' to authenticate
#   REMOTE:PATH          with rclone; REMOTE is a remote of rclone config
#
# The objects are DESTINATION/HOST/DUMP, and DESTINATION/HOST/DUMP.json last: if it exists, the
# others are complete. With PROFILE='perf data convert', or with its options, such as --redact,
# DUMP.pb.gz is a profile in the format of pprof; it is not kept on the local disk.
# With --archive, what the symbols are in comes before the manifest. Of the files
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
# exit status is 1, which perf reports. The dump stays on the local disk. perf-sent, in the
# directory of the dumps, has a file for each dump: it is locked during an upload, and then
# contains DESTINATION. When the store takes a dump again, the dumps of the same recorder that
# it did not get before are sent, the oldest first; so does --unsent, for a timer. The names of
# the objects depend on the host and the dump only: a dump that is sent twice replaces itself.
set -u

unsent=
if [ "${1-}" = --unsent ]; then
	unsent=1
	shift
fi
if [ $# != 2 ]; then
	echo "usage: upload-dump.sh DESTINATION DUMP | --unsent DESTINATION OUT" >&2
	exit 2
fi

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

sum_of()
{
	sha256sum <"$1" | cut -d ' ' -f 1
}

stall=${STALL:-30} limit=${LIMIT:-3600} name=same

# shellcheck disable=SC2086 # CURL_OPTIONS is a list of words
case $1 in
s3://*)
	# aws 2.9 does not know AWS_ENDPOINT_URL.
	run_aws()
	{
		timeout "$limit" aws ${AWS_ENDPOINT_URL:+--endpoint-url "$AWS_ENDPOINT_URL"} \
			--cli-connect-timeout "$stall" --cli-read-timeout "$stall" "$@"
	}
	put()
	{
		run_aws s3 cp --only-show-errors "$1" "$2"
	}
	size_there()
	{
		key=${1#s3://}
		run_aws s3api head-object --bucket "${key%%/*}" --key "${key#*/}" \
			--query ContentLength --output text
	}
	;;
*://*)
	name=encode
	put()
	{
		# S3 wants the sum with a signature, and curl 7.88 does not send it. With
		# it, the store refuses what was changed on the way.
		timeout "$limit" curl --fail --silent --show-error --globoff \
			--connect-timeout "$stall" --speed-limit 1 --speed-time "$stall" \
			--header "x-amz-content-sha256: $(sum_of "$1")" \
			${CURL_OPTIONS-} --upload-file "$1" "$2"
	}
	size_there()
	{
		timeout "$limit" curl --fail --silent --head --globoff \
			--connect-timeout "$stall" --max-time "$stall" \
			--header "x-amz-content-sha256: $(sum_of /dev/null)" \
			${CURL_OPTIONS-} "$1" |
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
sent=${dump%/*}/perf-sent
pauses=${PAUSES-1 5 30 120}

# put_or_retry FILE OBJECT
put_or_retry()
{
	for pause in $pauses end; do
		if put "$1" "$2" </dev/null; then
			return 0
		fi
		if [ ! -e "$1" ]; then
			echo "upload-dump.sh: $1 was removed before it was sent" \
			     "(see --max-files, --max-disk and --max-dump-age)" >&2
			return 1
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

# put_profile: without one, the dump is more useful than nothing.
put_profile()
{
	[ -n "${PROFILE-}" ] && [ -w "$sent" ] || return 0
	# shellcheck disable=SC2086 # PROFILE is a list of words
	if ! timeout "$limit" $PROFILE --force -i "$dump" --to-pprof "$profile" \
		</dev/null >&2; then
		echo "upload-dump.sh: no profile of $dump: '$PROFILE' failed" >&2
		return 0
	fi
	put_or_retry "$profile" "$destination/$($name "${dump##*/}.pb.gz")"
}

# put_dump: all of it, the manifest last
put_dump()
{
	manifest=
	[ ! -e "$dump.json" ] || manifest=$dump.json
	put_beside "$dump" || return 1
	[ ! -e "$dump.symbols" ] || put_symbols || return 1
	profile=$sent/.${dump##*/}.pb.gz
	put_profile
	status=$?
	rm -f "$profile"
	[ $status = 0 ] || return 1
	[ ! -e "$dump.symbols" ] || put_beside "$dump.symbols" || return 1
	[ -z "$manifest" ] || put_beside "$manifest"
}

is_sent()
{
	grep -sqxF -e "$base" "$sent/${dump##*/}"
}

# send WAIT: not while another process sends it; if WAIT is set, look then whether it has
send()
{
	(
		if ! flock -n 9; then
			[ -n "$1" ] && flock 9 || exit 0
			! is_sent || exit 0
		fi
		put_dump && printf '%s\n' "$base" >&9
	) 9>>"$sent/${dump##*/}"
}

# Send what the store did not get. One process does so. What cannot be sent, for whatever
# reason, does not keep back the others; but a store that is down is not asked for each.
send_others()
{
	out=${dump%.sample.*} failed=0
	exec 8>>"$sent/.others"
	flock -n 8 || return 0
	for known in "$sent/$out_name".sample.* "$sent/.$out_name".sample.*.pb.gz; do
		dump=${known##*/}
		dump=${dump#.}
		[ -e "${out%/*}/${dump%.pb.gz}" ] || rm -f "$known"
	done
	pauses=
	for known in "$out".sample.*Z.json; do
		dump=${known%.json}
		if [ -e "$dump" ] && ! is_sent; then
			send '' || failed=$((failed + 1))
		fi
		[ $failed -lt 3 ] || break
	done
	[ $failed = 0 ]
}

[ -z "$unsent" ] || dump=$dump.sample.
out_name=${dump##*/}
out_name=${out_name%.sample.*}
mkdir -m 700 "$sent" 2>/dev/null
if [ ! -w "$sent" ]; then
	if [ -n "$unsent" ]; then
		echo "upload-dump.sh: cannot write to $sent: run as the user of the recorder" >&2
		exit 1
	fi
	put_dump
	exit
fi
if [ -n "$unsent" ]; then
	send_others
	exit
fi
if [ ! -e "$dump" ]; then
	echo "upload-dump.sh: there is no $dump" >&2
	exit 1
fi
send wait || exit 1
# Their failures have been told, and this dump was sent.
send_others || true
