# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# An object store with the interface of S3: OpenStack Swift with one device, one replica.
# Sourced, behind lib.sh.

SWIFT=
OBJECT_SERVER=
# shellcheck disable=SC2034 # the sourcing scripts use them
STORE_KEY=fleet:perf STORE_SECRET=secret

# A program of Swift, with $SWIFT/etc in the place of /etc/swift
SWIFT_PYTHON=(
	env "${DEBIAN_ENV[@]}" /usr/bin/python3 -c '
import runpy, sys
import swift.common.utils
swift.common.utils.set_swift_dir(sys.argv[1])
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")'
)

# ring_builder ARGUMENT...
ring_builder()
{
	"${SWIFT_PYTHON[@]}" "$SWIFT/etc" "$DEBIAN/usr/bin/swift-ring-builder" "$@"
}

# backend NAME PORT: configure one of account, container, object
backend()
{
	local builder=$SWIFT/etc/$1.builder
	{
		ring_builder "$builder" create 4 1 1
		ring_builder "$builder" \
			add "r1z1-127.0.0.1:$2/device" 100
		ring_builder "$builder" rebalance
	} >"$TMP/ring.log" 2>&1 || { cat "$TMP/ring.log"; return 1; }
	cat >"$SWIFT/etc/$1-server.conf" <<-END
		[DEFAULT]
		bind_ip = 127.0.0.1
		bind_port = $2
		user = $(id -un)
		swift_dir = $SWIFT/etc
		devices = $SWIFT/devices
		mount_check = false
		workers = 0
		fallocate_reserve = 0
		[pipeline:main]
		pipeline = $1-server
		[app:$1-server]
		use = egg:swift#$1
	END
}

# swift_start: sets STORE_PORT. Skips the suite if the file system has no extended attributes.
swift_start()
{
	local name i=0 filter
	SWIFT=$TMP/swift
	mkdir -p "$SWIFT/etc" "$SWIFT/devices/device"
	python3 -c 'import os, sys; os.setxattr(sys.argv[1], "user.swift.metadata", b"x" * 200)' \
		"$SWIFT/devices" 2>/dev/null ||
		skip_all "$TMP has no extended attributes: set TMPDIR to a directory that has"
	free_ports 4
	cat >"$SWIFT/etc/swift.conf" <<-END
		[swift-hash]
		swift_hash_path_suffix = fleet
		[storage-policy:0]
		name = one
		default = yes
	END
	for name in account container object; do
		backend $name "${PORTS[i++]}"
	done
	STORE_PORT=${PORTS[3]}
	cat >"$SWIFT/etc/proxy-server.conf" <<-END
		[DEFAULT]
		bind_ip = 127.0.0.1
		bind_port = $STORE_PORT
		user = $(id -un)
		swift_dir = $SWIFT/etc
		workers = 0
		[pipeline:main]
		pipeline = catch_errors gatekeeper healthcheck cache
		 listing_formats s3api tempauth slo proxy-server
		[app:proxy-server]
		use = egg:swift#proxy
		account_autocreate = true
		# There is one device: a full disk does not take it out of service for a minute.
		error_suppression_interval = 1
		[filter:cache]
		use = egg:swift#memcache
		memcache_servers = 127.0.0.1:1
		[filter:s3api]
		use = egg:swift#s3api
		location = us-east-1
		[filter:tempauth]
		use = egg:swift#tempauth
		user_fleet_perf = secret .admin
	END
	for filter in catch_errors gatekeeper healthcheck listing_formats slo; do
		printf '[filter:%s]\nuse = egg:swift#%s\n' $filter $filter
	done >>"$SWIFT/etc/proxy-server.conf"
	for name in account container object proxy; do
		swift_serve $name
		# shellcheck disable=SC2034 # the sourcing scripts use it
		[ $name != object ] || OBJECT_SERVER=$SERVER
	done
	wait_for curl -sf "http://127.0.0.1:$STORE_PORT/healthcheck" ||
		{ tail -n 20 "$TMP"/*.log; return 1; }
	for i in "${PORTS[@]:0:3}"; do
		wait_for listens "$i"
	done
	export AWS_ACCESS_KEY_ID=$STORE_KEY AWS_SECRET_ACCESS_KEY=$STORE_SECRET \
	       AWS_DEFAULT_REGION=us-east-1 AWS_MAX_ATTEMPTS=1 \
	       AWS_ENDPOINT_URL=http://127.0.0.1:$STORE_PORT
	printf 'machine 127.0.0.1 login %s password %s\n' "$STORE_KEY" "$STORE_SECRET" >"$TMP/netrc"
	export CURL_OPTIONS="--aws-sigv4 aws:amz:us-east-1:s3 --netrc-file $TMP/netrc"
	rclone_config "$STORE_PORT"
}

# swift_serve NAME
swift_serve()
{
	serve "$1" "${SWIFT_PYTHON[@]}" "$SWIFT/etc" "$DEBIAN/usr/bin/swift-$1-server" \
		"$SWIFT/etc/$1-server.conf"
}

# rclone_config PORT
rclone_config()
{
	export RCLONE_CONFIG=$TMP/rclone.conf
	cat >"$RCLONE_CONFIG" <<-END
		[store]
		type = s3
		provider = Other
		access_key_id = $STORE_KEY
		secret_access_key = $STORE_SECRET
		endpoint = http://127.0.0.1:$1
		region = us-east-1
	END
}

# s3 PATH OPTION...: a request to the store itself, whatever is in front of it
s3()
{
	curl -sS --fail --aws-sigv4 aws:amz:us-east-1:s3 --netrc-file "$TMP/netrc" \
		--header 'x-amz-content-sha256: UNSIGNED-PAYLOAD' \
		"http://127.0.0.1:$STORE_PORT/$1" "${@:2}"
}

# get KEY FILE: an object
get()
{
	s3 "$1" -o "$2"
}

# make_bucket NAME
make_bucket()
{
	s3 "$1" -X PUT
}

# list BUCKET: the names of its objects, of which an answer has 1000
list()
{
	local last='' names
	while names=$(s3 "$1?list-type=2${last:+&start-after=${last//\//%2F}}") &&
	      names=$(grep -o '<Key>[^<]*' <<<"$names"); do
		echo "${names//<Key>/}"
		last=${names##*<Key>}
	done
}
