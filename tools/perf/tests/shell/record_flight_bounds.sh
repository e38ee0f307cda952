#!/bin/bash
# perf record -M: what it leaves on disk (exclusive)
# SPDX-License-Identifier: GPL-2.0
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"
# shellcheck source=lib/on_disk.sh
. "$(dirname "$0")/lib/on_disk.sh"

has_only()
{
	[ "$(dumps "$1" | wc -l)" = "$2" ] && [ "$(samples_of "$1" | wc -l)" = "$2" ]
}

samples_of()
{
	find "$(dirname "$1")" -name "$(basename "$1").sample.*" ! -name '*.json'
}

# Those of earlier runs go first; what only looks like a dump stays.
bounds_files()
{
	local first i

	start_recorder "$TMP/a" -M 4M -e cpu-clock -F 99 -a
	dump_next
	first=$DUMP
	dump_next
	stop_recorder INT
	has_only "$TMP/a" 3
	for i in a.sample a.sample.mine a.sample.20200101T000000.000Z.mine \
		 aa.sample.20200101T000000.000Z \
		 a.sample.20200101T000000.000; do
		echo mine >"$TMP/$i"
	done
	start_recorder "$TMP/a" -M 4M -e cpu-clock -F 99 -a --max-files 3
	dump_next
	wait_for test ! -e "$first"
	not test -e "$first.json"
	dump_next
	dump_next
	dump_next
	opens "$DUMP"
	stop_recorder INT
	opens "$DUMP"
	[ "$(dumps "$TMP/a" | wc -l)" = 3 ]
	grep -l mine "$TMP"/a* | wc -l | grep -qx 5
}

# Whatever their number; the newest one stays even if it alone is too large.
bounds_disk()
{
	local i size

	start_recorder "$TMP/b" -M 4M -e cpu-clock -F 99 -a --max-disk 1M
	for i in 1 2 3; do
		dump_next
	done
	# One of a run before, larger than all that may stay.
	dd if=/dev/zero of="$TMP/b.sample.20200101T000000.000Z" bs=1M count=4 status=none
	: >"$TMP/b.sample.20200101T000000.000Z.json"
	dump_next
	wait_for test ! -e "$TMP/b.sample.20200101T000000.000Z"
	opens "$DUMP"
	stop_recorder INT
	size=$(find "$TMP" -name 'b.sample.*' -printf '%s\n' | awk '{ n += $1 } END { print n }')
	echo "$size bytes"
	[ "$size" -le $((1 << 20)) ] || has_only "$TMP/b" 1
}

# What is the newest is not asked of its size.
keeps_the_newest()
{
	start_recorder "$TMP/c" -M 16M -e syscalls:sys_enter_close -a -g --max-disk 1M
	close_files 20000
	dump_next
	[ "$(stat -c %s "$DUMP")" -gt $((1 << 20)) ]
	wait_for grep -q 'exceeds --max-disk' "$TMP/c.stderr"
	opens "$DUMP"
	stop_recorder INT
	opens "$DUMP"
}

# keeps_dump OUT LINK: there is one, which stays under another name; sets DUMP
keeps_dump()
{
	DUMP=$(dumps "$1")
	[ -n "$DUMP" ] && ln "$DUMP" "$2"
}

# Also those of earlier runs, and the newest one, with no dump that comes after it; not early.
bounds_age()
{
	local old=$TMP/m.sample.20200101T000000.000Z later=$TMP/m.sample.29990101T000000.000Z i
	local very=$TMP/m.sample.00010101T000000.000Z begun
	local -x FLIGHT_WAIT=180

	for i in '' .1 .json .tar.bz2 .mine; do
		echo mine >"$old$i"
	done
	echo mine >"$very"
	echo mine >"$later"
	echo mine >"$TMP/m.sample.20200140T000000.000Z"
	echo mine >"$TMP/m"
	start_recorder "$TMP/m" -M 4M -e cpu-clock -F 99 -a --max-dump-age 8s
	wait_for test ! -e "$old"
	wait_for test ! -e "$old.1"
	wait_for test ! -e "$very"
	not test -e "$old.json"
	not test -e "$old.tar.bz2"
	begun=$(date +%s%N)
	kill -USR1 "$RECORDER"
	wait_for keeps_dump "$TMP/m" "$TMP/kept"
	opens "$TMP/kept"
	wait_for test ! -e "$DUMP"
	not test -e "$DUMP.json"
	i=$((($(date +%s%N) - begun) / 1000000))
	echo "removed after $i ms"
	((i >= 8000))
	# It goes on.
	kill -USR1 "$RECORDER"
	wait_for has_dumps "$TMP/m" 1
	stop_recorder INT
	opens "$DUMP"
	grep -l mine "$TMP"/m* | wc -l | grep -qx 4
	cat "$TMP/m.stderr"
	not grep -i cannot "$TMP/m.stderr"
	# It is told where it cannot, and recording goes on.
	mkdir -p "$old.json/x"
	: >"$old"
	start_recorder "$TMP/m" -M 4M -e cpu-clock -F 99 -a --max-dump-age 1h
	wait_for grep -q "Cannot remove $old, which is older than --max-dump-age" "$TMP/m.stderr"
	dump_next
	stop_recorder INT
	opens "$DUMP"
}

# With the file's name and the recorder's nice value; a failure is told, one that hangs holds
# nobody up.
runs_a_command()
{
	# shellcheck disable=SC2016 # for the shell that runs it
	start_recorder "$TMP/d e" -M 4M -e cpu-clock -F 99 -a \
		--on-dump "sh -c 'test -s \"\$2\" && echo \"\$1 \$(nice):\$2\" >>\"$TMP/told\"' \
			   sh \"an argument\""
	dump_next
	wait_for grep -qxF "an argument $(nice):$DUMP" "$TMP/told"
	stop_recorder INT
	wait_for grep -qxF "an argument $(nice):$DUMP" "$TMP/told"

	start_recorder "$TMP/f" -M 4M -e cpu-clock -F 99 -a --on-dump 'exit 3;'
	dump_next
	wait_for grep -q 'on-dump failed with status 3: exit 3' "$TMP/f.stderr"
	dump_next
	opens "$DUMP"
	stop_recorder INT

	start_recorder "$TMP/g" -M 4M -e cpu-clock -F 99 -a --on-dump \
		"echo \$\$ >>'$TMP/recorders'; sleep 600; :"
	dump_next
	dump_next
	stop_recorder INT
	opens "$DUMP"
	[ "$(dumps "$TMP/g" | wc -l)" = 3 ]

	STATUS=0
	# shellcheck disable=SC2016 # for the shell that runs it
	perf record -M 4M -o "$TMP/h" -e cpu-clock --on-dump "sleep 1; false" -- \
		sh -c 'kill -USR1 $PPID; sleep 2; exit 7' || STATUS=$?
	[ "$STATUS" = 7 ]
}

# Those that hang are few; dumps go on without them, and end with them.
few_hang()
{
	local i

	start_recorder "$TMP/k" -M 4M -e cpu-clock -F 99 -a --on-dump \
		"echo \$\$ >>'$TMP/recorders'; echo >>'$TMP/hang' x; exec sleep 600;"
	for ((i = 1; i <= 8; i++)); do
		dump
		wait_for has_lines "$TMP/hang" $i
	done
	not grep -q 'still running' "$TMP/k.stderr"
	dump
	wait_for grep -qF "8 --on-dump commands are still running: not starting one for $DUMP" \
		"$TMP/k.stderr"
	has_lines "$TMP/hang" 8
	# They hold nothing of the recorder's.
	find "/proc/$(tail -n1 "$TMP/recorders")/fd" -printf '%l\n' | not grep perf_event
	# However it ends, there is room for another one.
	kill -KILL "$(tail -n1 "$TMP/recorders")"
	dump
	wait_for has_lines "$TMP/hang" 9
	stop_recorder INT
	opens "$DUMP"
	[ "$(dumps "$TMP/k" | wc -l)" = 11 ]
}

has_lines()
{
	[ "$(wc -l <"$1")" = "$2" ]
}

# serve STORE: an HTTP server that takes what is PUT, and tells in STORE/log. Below /no it
# takes no list of files; below /stall it says nothing, and below /trickle no end of it.
serve()
{
	python3 - "$1" >"$1/said" 2>&1 <<-'END' &
		import http.server, os, socketserver, sys, time, urllib.parse
		store = sys.argv[1].encode()

		class Handler(http.server.BaseHTTPRequestHandler):
		    def do_PUT(self):
		        body = self.rfile.read(int(self.headers['Content-Length']))
		        path = urllib.parse.unquote_to_bytes(self.path)
		        if path.startswith(b'/stall/'):
		            time.sleep(600)
		        while path.startswith(b'/trickle/'):
		            self.wfile.write(b'HTTP/1.1 100 Continue\r\n\r\n')
		            time.sleep(0.1)
		        status = 201
		        if path.startswith(b'/no/') and path.endswith(b'.symbols'):
		            status = 500
		        else:
		            os.makedirs(os.path.dirname(store + path), exist_ok=True)
		            with open(store + path, 'wb') as f:
		                f.write(body)
		            with open(store + b'/log', 'ab') as f:
		                f.write(path + b'\n')
		        self.send_response(status)
		        self.send_header('Content-Length', '0')
		        self.end_headers()

		    def do_HEAD(self):
		        path = store + urllib.parse.unquote_to_bytes(self.path)
		        there = os.path.isfile(path)
		        self.send_response(200 if there else 404)
		        self.send_header('Content-Length', os.path.getsize(path) if there else 0)
		        self.end_headers()

		    def log_message(self, *args):
		        pass

		class Server(http.server.ThreadingHTTPServer):
		    daemon_threads = True

		server = Server(('127.0.0.1', 0), Handler)
		with open(store + b'/port.new', 'w') as f:
		    print(server.server_port, file=f)
		os.rename(store + b'/port.new', store + b'/port')
		server.serve_forever()
	END
	echo $! >>"$TMP/recorders"
	wait_for test -s "$1/port"
}

# make_upload NAME: a dump with all that may be beside it, in the working directory
make_upload()
{
	local suffix

	for suffix in '' .symbols .json; do
		printf '%s\n' "$1$suffix" >"./$1$suffix"
	done
}

# is_uploaded NAME STORE: byte for byte, under that name
is_uploaded()
{
	local suffix

	for suffix in '' .symbols .json; do
		cmp "./$1$suffix" "$2/$(uname -n)/$1$suffix"
	done
}

# Names that mean something to a shell, to curl, in a URL; one that looks like an option.
uploads()
{
	local store=$TMP/store name names=(
		$'-a [1-3]{x,y}#?%41+&\xc3\xbc\xff.sample.20261121T093650.275Z'
		'#1' '#2' 'a?1' 'a?2'
	)

	mkdir -p "$TMP/up" "$store/$(uname -n)"
	cd "$TMP/up"
	serve "$store"
	for name in "${names[@]}"; do
		make_upload "$name"
		PAUSES='' "$UPLOAD" "file://$store/" "$name"
		PAUSES='' "$UPLOAD" "http://127.0.0.1:$(cat "$store/port")/web" "$PWD/$name"
	done
	for name in "${names[@]}"; do
		is_uploaded "$name" "$store"
		is_uploaded "$name" "$store/web"
	done
	# The manifest comes last: when it is there, so is all else.
	cat "$store/log"
	[ "$(LC_ALL=C sed -n '1,3s/.*Z//p' "$store/log" | xargs)" = '.symbols .json' ]
	fails 1 'symbols is not in .*; it stays on this disk' env PAUSES= \
		"$UPLOAD" "http://127.0.0.1:$(cat "$store/port")/no" '#1'
	[ "$(ls "$store/no/$(uname -n)")" = '#1' ]
	fails 2 'is no s3://, https:// or REMOTE:' "$UPLOAD" nowhere '#1'
}

# To a server that says nothing, and to one that always says that it is about to.
uploads_end()
{
	local store=$TMP/stalled what

	mkdir "$store"
	cd "$store"
	serve "$store"
	make_upload dump
	for what in 'stall STALL=2' 'trickle LIMIT=2'; do
		fails 1 'dump is not in .*; it stays on this disk' timeout 300 \
			env PAUSES=1 "${what#* }" "$UPLOAD" \
			"http://127.0.0.1:$(cat "$store/port")/${what% *}" dump
	done
	not is_uploaded dump .
}

# What a store did not take comes with the next dump, or when asked for, and once; that of
# another recorder does not.
uploads_later()
{
	local store=$TMP/late dir=$TMP/up-late d=d.sample.20260101T00000 url

	mkdir -p "$store" "$dir"
	cd "$dir"
	make_upload ${d}0.000Z
	fails 1 'it stays on this disk' env PAUSES= "$UPLOAD" http://127.0.0.1:1/x ${d}0.000Z
	serve "$store"
	url=http://127.0.0.1:$(cat "$store/port")
	make_upload ${d}1.000Z
	make_upload e.sample.20260101T000000.000Z
	fails 1 'it stays on this disk' env PAUSES= "$UPLOAD" "$url/no" ${d}1.000Z
	make_upload ${d}2.000Z
	PAUSES='' "$UPLOAD" "$url" ${d}2.000Z
	cat "$store/log"
	[ "$(grep -c 'json$' "$store/log")" = 3 ]
	not grep -q 'e[.]sample' "$store/log"
	make_upload ${d}3.000Z
	rm ${d}0.000Z ${d}0.000Z.json
	"$UPLOAD" --unsent "$url" d
	"$UPLOAD" --unsent "$url" d
	[ "$(grep -c 'json$' "$store/log")" = 4 ]
	not test -e perf-sent/${d}0.000Z
	is_uploaded ${d}3.000Z "$store"
}

# What --archive keeps is there when the command runs. What the server has is not sent again,
# unless it is another one in part; debuginfod's clients find it there.
uploads_symbols()
{
	local store=$TMP/whole dir=$TMP/symbols url id there

	mkdir -p "$store" "$dir"
	serve "$store"
	url=http://127.0.0.1:$(cat "$store/port")/x
	make_victim "$dir/victim"
	perf record -o "$dir/l" -M 8M -e cpu-clock -F 499 -g --archive \
		--on-dump "PAUSES= '$UPLOAD' '$url'" -- "$dir/victim"
	DUMP=$(dumps "$dir/l")
	wait_for test -s "$store/x/$(uname -n)/${DUMP##*/}.json"
	cd "$dir"
	is_uploaded "${DUMP##*/}" "$store/x"
	cat "$store/log"
	id=$(perf buildid-list -i "$DUMP" | awk '/victim$/ { print $1 }')
	there=$store/x/buildid/$id/executable
	cmp "$dir/victim" "$there"
	id=$(perf buildid-list -i "$DUMP" | awk '/kernel.kallsyms/ { print $1 }')
	[ -z "$id" ] || [ -s "$store/x/kallsyms/$id" ]
	[ "$(grep -c '^\.build-id' "$DUMP.symbols")" = \
		"$(find "$store/x/buildid" "$store/x/kallsyms" -type f ! -name debuginfo | wc -l)" ]
	: >"$store/log"
	truncate -s -1 "$there"
	PAUSES='' "$UPLOAD" "$url" "$DUMP"
	cat "$store/log"
	[ "$(wc -l <"$store/log")" = 4 ]
	cmp "$dir/victim" "$there"
}

refuses()
{
	fails 1 'max-files is for a flight recorder' perf record --max-files 3 -a true
	fails 1 'max-disk is for a flight recorder' perf record --max-disk 3M -a true
	fails 1 'on-dump is for a flight recorder' perf record --on-dump true -a true
	fails 1 'max-dump-age is for a flight recorder' perf record --max-dump-age 1d -a true
	fails 129 'max-dump-age 20ms: invalid time' perf record -M 4M --max-dump-age 20ms -a
	fails 129 'max-disk 3: invalid size' perf record -M 4M --max-disk 3 -a
}

# With a server on the loopback device
check_uploads()
{
	UPLOAD=$(cd "$(dirname "$0")/../../examples/flight" 2>/dev/null && pwd)/upload-dump.sh
	if ! command -v curl >/dev/null || [ ! -x "$UPLOAD" ]; then
		leave_out "upload-dump.sh" "no curl, or no sources of perf"
		return
	fi
	check "upload-dump.sh: any name, the manifest last" uploads
	check "upload-dump.sh: it ends, whatever a server does" uploads_end
	check "upload-dump.sh: symbols, each once" uploads_symbols
	check "upload-dump.sh: what failed is sent later" uploads_later
}

# FLIGHT_UPLOADS=only: those alone; =no: all else, where the kernel has no IPv4
flight_begin
if [ "${FLIGHT_UPLOADS-}" != only ]; then
	check "max-files, those of earlier runs as well" bounds_files
	check "max-disk" bounds_disk
	check "the newest dump stays" keeps_the_newest
	check "max-dump-age" bounds_age
	check "on-dump" runs_a_command
	check "on-dump: those that hang are few" few_hang
	check "refuses what makes no sense" refuses
fi
[ "${FLIGHT_UPLOADS-}" = no ] || check_uploads
persistent_end
