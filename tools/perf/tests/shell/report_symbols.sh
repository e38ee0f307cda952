#!/bin/bash
# perf report: files with symbols that are not here
# SPDX-License-Identifier: GPL-2.0
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"
# shellcheck source=lib/on_disk.sh
. "$(dirname "$0")/lib/on_disk.sh"

# record_victim DIR: DIR/data, with samples of DIR/victim, which then is DIR/served/victim
record_victim()
{
	mkdir -p "$1/served"
	make_victim "$1/victim"
	perf record -N -q -e cpu-clock -F 499 -g -o "$1/data" -- "$1/victim"
	mv "$1/victim" "$1/served"
	ID=$(perf buildid-list -i "$1/data" | awk '/victim$/ { print $1 }')
}

# names_victim DIR: of its data, with a build-id cache of its own
names_victim()
{
	perf --buildid-dir "$1/cache" report -i "$1/data" --stdio -g none --no-children \
		--sort comm,dso,sym >"$1/report" 2>"$1/said" || return 1
	cat "$1/said"
	grep -qE ' victim +victim +\[\.\] victim_loop' "$1/report"
}

# serve_files DIR: by debuginfod; sets DEBUGINFOD_URLS
serve_files()
{
	local port

	port=$(python3 - <<-'END'
		import socket
		s = socket.socket()
		s.bind(("127.0.0.1", 0))
		print(s.getsockname()[1])
	END
	)
	debuginfod -p "$port" -d "$TMP/server.sqlite" -F "$1" >"$TMP/server" 2>&1 &
	SERVER=$!
	echo $SERVER >>"$TMP/recorders"
	export DEBUGINFOD_URLS=http://127.0.0.1:$port
	export DEBUGINFOD_CACHE_PATH=$1.cache
	wait_for curl -fs -o /dev/null "$DEBUGINFOD_URLS/buildid/$ID/executable"
}

end_server()
{
	kill "$SERVER"
	wait "$SERVER" || true
	rm -f "$TMP/server.sqlite"*
}

# A file that is gone is fetched, once; without a server, what is missing is told.
asks_debuginfod()
{
	local dir=$TMP/gone

	record_victim "$dir"
	not names_victim "$dir"
	grep -E "^ *[0-9.]+%  $ID  $dir/victim\$" "$dir/said"
	grep -q 'Set DEBUGINFOD_URLS' "$dir/said"
	serve_files "$dir/served"
	names_victim "$dir"
	not grep "$ID" "$dir/said"
	end_server
	names_victim "$dir"
	# What is another file by now is not taken for it.
	rm -r "$dir/cache" "$DEBUGINFOD_CACHE_PATH"
	cp "$(type -P true)" "$dir/victim"
	not names_victim "$dir"
	serve_files "$dir/served"
	names_victim "$dir"
	end_server
}

# Of a stripped program, its debug file has the names.
asks_for_debug_files()
{
	local dir=$TMP/stripped

	record_victim "$dir"
	objcopy --only-keep-debug "$dir/served/victim" "$dir/served/victim.debug"
	strip "$dir/served/victim"
	serve_files "$dir/served"
	wait_for curl -fs -o /dev/null "$DEBUGINFOD_URLS/buildid/$ID/debuginfo"
	names_victim "$dir"
	end_server
}

# What --archive has kept is served as it is, and where upload-dump.sh has put it.
serves_what_was_kept()
{
	local dir=$TMP/kept

	record_victim "$dir"
	cp "$dir/served/victim" "$dir/victim"
	perf record --archive -o "$dir/data"
	rm "$dir/victim"
	serve_files "$dir/perf-symbols"
	names_victim "$dir"
	end_server
	rm -r "$dir/cache"
	mkdir -p "$dir/www/buildid/$ID"
	cp "$dir/served/victim" "$dir/www/buildid/$ID/executable"
	python3 -u -m http.server -b 127.0.0.1 -d "$dir/www" 0 >"$dir/port" 2>&1 &
	SERVER=$!
	echo $SERVER >>"$TMP/recorders"
	wait_for grep -q 'port [0-9]' "$dir/port"
	export DEBUGINFOD_URLS DEBUGINFOD_CACHE_PATH=$dir/www.cache
	DEBUGINFOD_URLS=http://127.0.0.1:$(sed -n 's/.*port \([0-9]*\).*/\1/p' "$dir/port" | head -n1)
	names_victim "$dir"
	end_server
	# Without a server, the files beside the recording are told.
	unset DEBUGINFOD_URLS
	rm -r "$dir/cache"
	not names_victim "$dir"
	grep -qF "perf --buildid-dir $dir/perf-symbols report -i $dir/data" "$dir/said"
	perf --buildid-dir "$dir/perf-symbols" report -i "$dir/data" --stdio 2>&1 |
		grep victim_loop
}

# listen MODE: sets DEBUGINFOD_URLS. silent: accepts, and says nothing; full: does not accept,
# and what connects is not answered
listen()
{
	rm -f "$TMP/port"
	python3 - "$1" >"$TMP/port" <<-'END' &
		import socket, sys, time
		s = socket.socket()
		s.bind(('127.0.0.1', 0))
		s.listen(0 if sys.argv[1] == 'full' else 100)
		others = []
		if sys.argv[1] == 'full':
		    for i in range(4):
		        others.append(socket.socket())
		        others[-1].setblocking(False)
		        others[-1].connect_ex(s.getsockname())
		    time.sleep(1)
		print(s.getsockname()[1], flush=True)
		time.sleep(600)
	END
	SERVER=$!
	echo $SERVER >>"$TMP/recorders"
	wait_for test -s "$TMP/port"
	DEBUGINFOD_URLS=http://127.0.0.1:$(cat "$TMP/port")
}

# A server that is down is told, and asked once: there are two files to ask for.
bears_servers_that_are_down()
{
	local dir=$TMP/down began mode

	export DEBUGINFOD_URLS DEBUGINFOD_TIMEOUT=3 DEBUGINFOD_CACHE_PATH=$dir/client
	mkdir "$dir"
	make_victim "$dir/victim"
	make_victim "$dir/other" -Wl,--build-id=0x0123456789abcdef0123456789abcdef01234567
	# shellcheck disable=SC2016 # for the shell that runs it
	perf record -N -q -e cpu-clock -F 499 -g -o "$dir/data" -- \
		sh -c '"$0" & "$1"; wait' "$dir/victim" "$dir/other"
	rm "$dir/victim" "$dir/other"
	for mode in refused silent full; do
		if [ "$mode" = refused ]; then
			DEBUGINFOD_URLS=http://127.0.0.1:1
		else
			listen "$mode"
		fi
		began=$SECONDS
		not names_victim "$dir"
		echo "$mode: $((SECONDS - began)) s"
		# For a connection, the library alone waits for more than two minutes.
		[ $((SECONDS - began)) -lt 90 ]
		[ "$(grep -c 'is not asked again' "$dir/said")" = 1 ]
		[ "$(grep -cE "^ *[0-9.]+%  [0-9a-f]{40}  $dir/(victim|other)\$" "$dir/said")" = 2 ]
		[ "$mode" = refused ] || end_server
	done
}

flight_begin
if command -v debuginfod >/dev/null && command -v curl >/dev/null &&
   python3 -c 'import ctypes; ctypes.CDLL("libdebuginfod.so.1")' 2>/dev/null; then
	check "a file that is gone is fetched from debuginfod" asks_debuginfod
	check "the debug file of a stripped program" asks_for_debug_files
	check "what --archive has kept, and uploads, are served" serves_what_was_kept
	check "servers that are down are told, and not waited for" bears_servers_that_are_down
else
	leave_out "files from debuginfod" "no debuginfod, libdebuginfod or curl"
fi
persistent_end
