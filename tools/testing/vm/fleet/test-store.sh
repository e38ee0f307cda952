#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# upload-dump.sh with aws, curl and rclone to OpenStack Swift, by its interface of S3: every
# byte arrives; and whatever happens to the store or on the way to it, no dump is lost as
# long as it may stay on the disk, and none is doubled. Prints TAP.
#
# HOSTS   machines that upload at once (1000)
set -uo pipefail
# shellcheck source=tools/testing/vm/fleet/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/fleet/swift.sh
. "${BASH_SOURCE[0]%/*}/swift.sh"

HOSTS=${HOSTS:-1000}
HOST=$(uname -n)


# destination ENGINE BUCKET: as upload-dump.sh has it
destination()
{
	case $1 in
	aws) echo "s3://$2/x" ;;
	curl) echo "http://127.0.0.1:$FRONT_PORT/$2/x" ;;
	rclone) echo "store:$2/x" ;;
	esac
}

# upload ENGINE BUCKET DUMP
upload()
{
	"$UPLOAD" "$(destination "$1" "$2")" "$3"
}

# fault LINE: from now on
fault()
{
	: >"$FAULT.log"
	echo "$*" >"$FAULT.new"
	mv "$FAULT.new" "$FAULT"
}

# make_dump DIRECTORY NAME KIB: what has the form of a dump
make_dump()
{
	local dump=$1/$2.sample.$3
	mkdir -p "$1"
	head -c "$(($4 * 1024))" /dev/urandom >"$dump"
	printf '{ "file": "%s" }\n' "${dump##*/}" >"$dump.json"
	echo "$dump"
}

# arrived BUCKET DUMP...: byte for byte, and nothing else is there
arrived()
{
	local bucket=$1 file
	shift
	for file in "$@" "${@/%/.json}"; do
		get "$bucket/x/$HOST/${file##*/}" "$TMP/got" || return 1
		cmp "$TMP/got" "$file" || return 1
		echo "x/$HOST/${file##*/}"
	done | sort >"$TMP/expected" || return 1
	list "$bucket" | diff "$TMP/expected" -
}

# A real dump with its profile and its manifest
uploads_whole()
{
	local bucket=whole-$1 dir=$TMP/whole-$1 dump
	make_bucket "$bucket"
	mkdir "$dir"
	# shellcheck disable=SC2016 # for the shell that runs it
	(cd "$dir" && PROFILE='perf data convert' perf record -M 8M -e cpu-clock:u -o d -g \
		--on-dump "$UPLOAD $(destination "$1" "$bucket")" -- \
		sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done') || return 1
	dump=$(ls "$dir"/d.sample.*Z)
	wait_for get "$bucket/x/$HOST/${dump##*/}.json" "$TMP/got"
	arrived_with_profile "$bucket" "$dump"
}

arrived_with_profile()
{
	local file
	perf data convert -i "$2" --to-pprof "$2.pb.gz"
	for file in "$2" "$2.json" "$2.pb.gz"; do
		get "$1/x/$HOST/${file##*/}" "$TMP/got" && cmp "$TMP/got" "$file" || return 1
	done
	[ "$(list "$1" | wc -l)" = 3 ]
	# No profile stays on the disk.
	rm "$2.pb.gz"
	! find "${2%/*}" -name '*.pb.gz' | grep .
}

# More than the tools send in one piece; aws begins to cut at 8 MB.
uploads_large()
{
	local dump
	make_bucket "large-$1"
	dump=$(make_dump "$TMP/large-$1" d 20260101T000000.000Z 20480)
	upload "$1" "large-$1" "$dump" && arrived "large-$1" "$dump"
}

# survives ENGINE FAULT...: which a retry overcomes
survives()
{
	local engine=$1 bucket=$1-${2// /-} dump
	bucket=${bucket//_/-}
	make_bucket "$bucket"
	dump=$(make_dump "$TMP/$bucket" d 20260101T000000.000Z 1024)
	shift
	fault "$*"
	upload "$engine" "$bucket" "$dump"; echo "status $?"
	cat "$FAULT.log"
	[ -s "$FAULT.log" ] || { echo "the fault did not occur"; return 1; }
	fault pass
	arrived "$bucket" "$dump"
}

# Each attempt fails: the dump stays. The next upload sends it, too; so does --unsent.
sends_later()
{
	local engine=$1 bucket=later-$1 dir=$TMP/later-$1 dumps=() i
	make_bucket "$bucket"
	fault refuse
	for i in 1 2 3; do
		dumps+=("$(make_dump "$dir" d 2026010${i}T000000.000Z 64)")
		PAUSES=1 upload "$engine" "$bucket" "${dumps[-1]}" 2>"$TMP/said" && return 1
		cat "$TMP/said"
		grep -q 'it stays on this disk' "$TMP/said" || return 1
	done
	"$UPLOAD" --unsent "$(destination "$engine" "$bucket")" "$dir/d" && return 1
	fault pass
	dumps+=("$(make_dump "$dir" d 20260104T000000.000Z 64)")
	upload "$engine" "$bucket" "${dumps[-1]}" || return 1
	arrived "$bucket" "${dumps[@]}" || return 1
	# One for which no command was started, and one that belongs to another recorder.
	dumps+=("$(make_dump "$dir" d 20260105T000000.000Z 64)")
	make_dump "$dir" other 20260105T000000.000Z 64
	rm -f "${dumps[0]}" "${dumps[0]}.json"
	"$UPLOAD" --unsent "$(destination "$engine" "$bucket")" "$dir/d" || return 1
	list "$bucket" | grep -c 'Z$' | grep -qx 5 || return 1
	[ ! -e "$dir/perf-sent/${dumps[0]##*/}" ] || return 1
	# Nothing is sent twice.
	fault answer 500
	"$UPLOAD" --unsent "$(destination "$engine" "$bucket")" "$dir/d" && [ ! -s "$FAULT.log" ]
}

# The device of the store has no room: Swift refuses what is new.
full_store()
{
	local conf=$SWIFT/etc/object-server.conf engine dump rc=0
	fault pass
	for engine in "${ENGINES[@]}"; do
		make_bucket "full-$engine"
	done
	end_server "$OBJECT_SERVER"
	sed -i 's/^fallocate_reserve.*/fallocate_reserve = 100%/' "$conf"
	swift_serve object
	OBJECT_SERVER=$SERVER
	wait_for listens "${PORTS[2]}"
	for engine in "${ENGINES[@]}"; do
		dump=$(make_dump "$TMP/full-$engine" d 20260101T000000.000Z 64)
		PAUSES=1 upload "$engine" "full-$engine" "$dump" && rc=1
	done
	end_server "$OBJECT_SERVER"
	sed -i 's/^fallocate_reserve.*/fallocate_reserve = 0/' "$conf"
	swift_serve object
	OBJECT_SERVER=$SERVER
	wait_for listens "${PORTS[2]}"
	for engine in "${ENGINES[@]}"; do
		"$UPLOAD" --unsent "$(destination "$engine" "full-$engine")" \
			"$TMP/full-$engine/d" || return 1
		arrived "full-$engine" "$TMP/full-$engine/d.sample.20260101T000000.000Z" || return 1
	done
	return $rc
}

# The machine, or whoever ends the unit, kills it in the middle. Nothing is half there.
killed()
{
	local dump bucket=killed-$1
	make_bucket "$bucket"
	dump=$(make_dump "$TMP/$bucket" d 20260101T000000.000Z 1024)
	fault slow 100000
	setsid "$UPLOAD" "$(destination "$1" "$bucket")" "$dump" &
	wait_for test -s "$FAULT.log"
	sleep 2
	kill -KILL -- -$!
	wait $! 2>/dev/null
	fault pass
	list "$bucket" | grep json && return 1
	# timeout has a process group of its own: what it runs may go on, and is waited for.
	wait_for sent_by_now "$1" "$bucket" "$dump"
}

sent_by_now()
{
	"$UPLOAD" --unsent "$(destination "$1" "$2")" "${3%.sample.*}" && arrived "$2" "$3"
}

# Two at once: one of them sends.
at_once()
{
	local dump i
	make_bucket at-once
	dump=$(make_dump "$TMP/at-once" d 20260101T000000.000Z 256)
	fault slow 200000
	for i in 1 2 3; do
		upload curl at-once "$dump" &
	done
	for i in 1 2 3; do
		wait -n || return 1
	done
	grep -c slow "$FAULT.log"
	[ "$(grep -c slow "$FAULT.log")" = 2 ] || return 1
	fault pass
	arrived at-once "$dump"
}

has_dumps()
{
	[ "$(find "$1" -maxdepth 1 -name 'd.sample.*Z' | wc -l)" = "$2" ]
}

# A recorder whose store is down for 12 dumps keeps to --max-files. What was on the disk when
# the store came back is there once, and the dumps that were not are told of.
keeps_to_its_bounds()
{
	local dir=$TMP/bounds i recorder dumps
	make_bucket bounds
	mkdir "$dir"
	fault refuse
	export PAUSES='1 1'
	perf record --daemon -M 4M -e cpu-clock:u -o "$dir/d" --max-files 5 \
		--on-dump "$UPLOAD $(destination curl bounds)" -- sleep 600 >"$TMP/said" 2>&1 ||
		{ cat "$TMP/said"; return 1; }
	recorder=$(cat "$dir/d.pid")
	echo "$recorder" >>"$TMP/pids"
	for ((i = 0; i < 12; i++)); do
		perf ctl --dump="$recorder" >/dev/null || return 1
	done
	wait_for has_dumps "$dir" 5 || return 1
	wait_for sh -c "grep -q 'failed with status 1' '$dir/d.log'" || return 1
	fault pass
	perf ctl --stop="$recorder" || return 1
	wait_for has_dumps "$dir" 5 || return 1
	mapfile -t dumps < <(find "$dir" -maxdepth 1 -name 'd.sample.*Z' | sort)
	wait_for get "bounds/x/$HOST/${dumps[0]##*/}.json" "$TMP/got" ||
		{ cat "$dir/d.log"; list bounds; return 1; }
	wait_for get "bounds/x/$HOST/${dumps[-1]##*/}.json" "$TMP/got" || return 1
	# The process of the last dump may still be sending the others.
	wait_for arrived bounds "${dumps[@]}" || return 1
	grep 'was removed before it was sent' "$dir/d.log" | head -n 3
	# Those of dumps that are gone go with the next upload.
	"$UPLOAD" --unsent "$(destination curl bounds)" "$dir/d" || return 1
	[ "$(find "$dir/perf-sent" -type f -name '[!.]*' | wc -l)" = 5 ]
}

# A small dump of each of HOSTS machines, 16 at a time. The name of the machine is that which
# uname prints.
many_hosts()
{
	local begin bytes
	make_bucket many
	fault pass
	mkdir -p "$TMP/many/bin"
	# shellcheck disable=SC2016 # for the shell that runs it
	printf '#!/bin/sh\necho "$FLEET_HOST"\n' >"$TMP/many/bin/uname"
	chmod +x "$TMP/many/bin/uname"
	begin=$(date +%s%N)
	# shellcheck disable=SC2016 # for the shell that runs it
	seq -w 1 "$HOSTS" | UPLOAD=$UPLOAD TMP=$TMP TO=http://127.0.0.1:$STORE_PORT/many/x \
		xargs -P 16 -n 1 sh -c '
			dir=$TMP/many/host$1 dump=d.sample.20260101T000000.000Z
			mkdir "$dir"
			head -c 16384 /dev/urandom >"$dir/$dump"
			echo "{ \"host\": \"host$1\" }" >"$dir/$dump.json"
			export FLEET_HOST=host$1 PATH=$TMP/many/bin:$PATH
			exec "$UPLOAD" "$TO" "$dir/$dump"' \
		sh || return 1
	begin=$((($(date +%s%N) - begin) / 1000000))
	list many >"$TMP/names"
	echo "$HOSTS hosts, $(wc -l <"$TMP/names") objects in $begin ms" | tee "$TMP/load"
	[ "$(wc -l <"$TMP/names")" = $((HOSTS * 2)) ] || return 1
	[ "$(uniq <"$TMP/names" | wc -l)" = $((HOSTS * 2)) ] || return 1
	# Every 50th of them, byte for byte
	bytes=$(seq -w 1 50 "$HOSTS" | while read -r i; do
		get "many/x/host$i/d.sample.20260101T000000.000Z" "$TMP/got" &&
		cmp "$TMP/got" "$TMP/many/host$i/d.sample.20260101T000000.000Z" && echo same
	done | grep -c same)
	[ "$bytes" = $(((HOSTS + 49) / 50)) ]
}

fleet_begin "$@"
FAULT=$TMP/fault
read -ra ENGINES <<<"${ENGINES:-aws curl rclone}"
swift_start || exit 1
echo "# Swift, $(aws --version), $(curl --version | head -n1 | cut -d' ' -f1,2)," \
     "$(rclone version | head -n1)"
BACKEND=("${PORTS[@]}")
free_ports 1
FRONT_PORT=${PORTS[0]}
PORTS=("${BACKEND[@]}")
fault pass
serve proxy-of-faults python3 "$TOP/tools/testing/vm/fleet/faulty-proxy.py" "$FRONT_PORT" \
	"$STORE_PORT" "$FAULT"
wait_for listens "$FRONT_PORT"
export AWS_ENDPOINT_URL=http://127.0.0.1:$FRONT_PORT PAUSES='1 1 1' STALL=10
rclone_config "$FRONT_PORT"

for engine in "${ENGINES[@]}"; do
	tap_run "$engine: dump, profile and manifest, byte for byte" uploads_whole "$engine"
	tap_run "$engine: a dump of 20 MB" uploads_large "$engine"
	tap_run "$engine: the store answers 500" survives "$engine" answer 500 2
	tap_run "$engine: the connection is lost half-way" survives "$engine" cut 300000 2
	tap_run "$engine: the answer is lost" survives "$engine" mute 1
	tap_run "$engine: the store says nothing" survives "$engine" stall 1
	tap_run "$engine: the store is slow" survives "$engine" slow 600000
	tap_run "$engine: the store is down, then not" sends_later "$engine"
	tap_run "$engine: it is killed" killed "$engine"
done
tap_run "the store is full" full_store
tap_run "one dump, uploaded three times at once" at_once
tap_run "a recorder keeps to --max-files while the store is down" keeps_to_its_bounds
tap_run "a dump of each of $HOSTS hosts" many_hosts
sed 's/^/# /' "$TMP/load" 2>/dev/null
tap_end
