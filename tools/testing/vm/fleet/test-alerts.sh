#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# From metrics to a dump, by the files of tools/perf/examples/flight/fleet as they are:
# perf ctl --prometheus, node_exporter, Prometheus, Alertmanager, webhook with TLS and a token,
# ssh, perf ctl --dump on the machine of the alert, and the link to the dump in Alertmanager.
# Prints TAP.
set -uo pipefail
# shellcheck source=tools/testing/vm/fleet/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/fleet/sshd.sh
. "${BASH_SOURCE[0]%/*}/sshd.sh"

TOKEN=not-easily-guessed
MACHINES=(web1 web2)

# exporter NAME PORT: what the textfile collector of a machine has
exporter()
{
	serve "exporter-$1" "$DEBIAN/usr/bin/prometheus-node-exporter" \
		--web.listen-address="127.0.0.1:$2" --collector.disable-defaults \
		--collector.textfile --collector.textfile.directory="$TMP/ssh/$1/textfile"
}

# metrics NAME: as the timer of the guide does
metrics()
{
	XDG_RUNTIME_DIR=$TMP/ssh/$1/run perf ctl --prometheus >"$TMP/prom.new" &&
		mv "$TMP/prom.new" "$TMP/ssh/$1/textfile/perf.prom"
}

# asked_of_prometheus QUERY: the values
asked_of_prometheus()
{
	curl -sf --data-urlencode "query=$1" http://127.0.0.1:9090/api/v1/query |
		jq -r '.data.result[] | "\(.metric.instance) \(.value[1])"' | sort
}

has_recorders()
{
	[ "$(asked_of_prometheus perf_flight_recorders)" = $'web1:9100 1\nweb2:9100 1' ]
}

alerts()
{
	curl -sf http://127.0.0.1:9093/api/v2/alerts
}

# has_alert NAME JQ: one that JQ selects
has_alert()
{
	alerts | jq -e "any(.[]; .labels.alertname == \"$1\" and ($2))"
}

dumps_of()
{
	find "$TMP/ssh/$1/dumps" -name '*.sample.*Z' | sort
}

# Node_exporter of each machine by its name, which is what an alert has
start_monitoring()
{
	local name i=0
	mkdir "$TMP/fleet"
	cp "$EXAMPLES"/fleet/* "$TMP/fleet"
	printf '[ { "targets": ["127.0.0.1:9093"] } ]\n' >"$TMP/fleet/alertmanagers.json"
	for name in "${MACHINES[@]}"; do
		mkdir -p "$TMP/ssh/$name/textfile"
		metrics "$name"
		exporter "$name" "${PORTS[i]}"
		# Their ports differ here.
		printf '{ "targets": ["127.0.0.1:%s"], "labels": { "instance": "%s:9100" } }\n' \
			"${PORTS[i++]}" "$name"
	done | jq -s . >"$TMP/fleet/targets.json"
	serve prometheus "$DEBIAN/usr/bin/prometheus" --config.file="$TMP/fleet/prometheus.yml" \
		--web.listen-address=127.0.0.1:9090 --storage.tsdb.path="$TMP/tsdb" \
		--web.console.templates="$TMP" --web.console.libraries="$TMP"
	printf %s "$TOKEN" >"$TMP/fleet/hook-token"
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
		-subj /CN=localhost -addext subjectAltName=DNS:localhost \
		-keyout "$TMP/fleet/key.pem" -out "$TMP/fleet/ca.pem" 2>/dev/null || return 1
	serve alertmanager "$DEBIAN/usr/bin/prometheus-alertmanager" \
		--config.file="$TMP/fleet/alertmanager.yml" --storage.path="$TMP/alerts" \
		--web.listen-address=127.0.0.1:9093 --cluster.listen-address=
	if ! wait_for curl -sf http://127.0.0.1:9093/-/ready ||
	   ! wait_for curl -sf http://127.0.0.1:9090/-/ready || ! wait_for has_recorders; then
		tail -n 5 "$TMP"/{prometheus,alertmanager}.log
		return 1
	fi
}

start_webhook()
{
	PERF_FLEET=$TMP/fleet PERF_HOOK_TOKEN=$TOKEN DUMPS=https://dumps.example.com/perf \
	ALERTMANAGER=http://127.0.0.1:9093 \
		serve webhook "$DEBIAN/usr/bin/webhook" -hooks "$TMP/fleet/hooks.json" -template \
		-secure -cert "$TMP/fleet/ca.pem" -key "$TMP/fleet/key.pem" -ip 127.0.0.1 \
		-port 9000 -verbose
	wait_for listens 9000
}

# post TOKEN BODY: print the status of the answer
post()
{
	curl -s -o "$TMP/answer" -w '%{http_code}' --cacert "$TMP/fleet/ca.pem" \
		--header "Authorization: Bearer $1" --header 'Content-Type: application/json' \
		--data "$2" https://localhost:9000/hooks/perf-dump
}

# What the examples say to promtool and amtool
checks_files()
{
	promtool check rules "$TMP/fleet/perf-flight.rules.yml" &&
	promtool check config "$TMP/fleet/prometheus.yml" &&
	amtool check-config "$TMP/fleet/alertmanager.yml"
}

# Of a token that is wrong, an alert that is over, and names that are more than that
refuses()
{
	local labels='"instance":"web1:9100","perf_dump":"blackbox","alertname":"a"' firing

	firing='{"status":"firing","groupLabels":{'$labels'}}'
	[ "$(post wrong "$firing")" = 403 ] || return 1
	[ "$(post "$TOKEN" "${firing/firing/resolved}")" = 403 ] || return 1
	[ "$(post "$TOKEN" "${firing/blackbox/x\$(touch $TMP/harm)}")" = 200 ] || return 1
	[ "$(post "$TOKEN" "${firing/web1:9100/-oProxyCommand=touch $TMP/harm}")" = 200 ] ||
		return 1
	# The key of ssh is for nothing else.
	# shellcheck disable=SC2029 # the name is the same there
	ssh web1 "touch $TMP/harm" && return 1
	ssh web1 'blackbox a;touch' && return 1
	wait_for grep -q 'usage: dump-for-alert.sh' "$TMP/webhook.log" || return 1
	sleep 2
	[ ! -e "$TMP/harm" ] && [ -z "$(dumps_of web1)$(dumps_of web2)" ]
}

# From a slow job to the link, of the machine that the alert is about alone. The hook is down
# when the alert comes.
alert_makes_dump()
{
	local dump
	printf 'job_duration_seconds{job_name="backup"} 900\n' >"$TMP/job.prom"
	mv "$TMP/job.prom" "$TMP/ssh/web2/textfile"
	wait_for has_alert JobSlow '.labels.instance == "web2:9100"' || return 1
	sleep 3
	start_webhook
	wait_for has_alert PerfDump 'true' ||
		{ tail -n 20 "$TMP"/{webhook,alertmanager}.log; return 1; }
	dump=$(dumps_of web2)
	alerts | jq -c '.[] | [.labels, .annotations]'
	has_alert PerfDump ".labels.instance == \"web2:9100\" and .labels.for == \"JobSlow\" and
		.annotations.link == \"https://dumps.example.com/perf/$(uname -n)/${dump##*/}\"" ||
		return 1
	jq -e '.reason == "alert JobSlow"' "$dump.json" && [ -z "$(dumps_of web1)" ]
}

# Which of two sets of annotations an alert has: the newest. So a link would not last there.
annotations_do_not_last()
{
	local labels
	labels=$(alerts | jq -c '.[] | select(.labels.alertname == "JobSlow") | .labels')
	curl -sf --header 'Content-Type: application/json' --data \
		"[{\"labels\":$labels,\"annotations\":{\"link\":\"x\"}}]" \
		http://127.0.0.1:9093/api/v2/alerts || return 1
	has_alert JobSlow '.annotations.link == "x"' || return 1
	wait_for has_alert JobSlow '.annotations.summary and (.annotations.link | not)'
}

# A machine that does not answer, and a recorder that is not there
tells_of_no_dump()
{
	DUMPS='' ALERTMANAGER=http://127.0.0.1:9093 "$TMP/fleet/dump-for-alert.sh" \
		web1:9100 nobodys Test && return 1
	has_alert PerfDump '.labels.for == "Test" and (.annotations.error | startswith("no dump"))'
	end_server "$(cat "$TMP/web1.pid")"
	DUMPS='' ALERTMANAGER=http://127.0.0.1:9093 "$TMP/fleet/dump-for-alert.sh" \
		web1:9100 blackbox Down && return 1
	alerts | jq -c '.[] | [.labels, .annotations]'
	has_alert PerfDump '.labels.for == "Down" and (.annotations.error | contains("refused"))'
}

fleet_begin "$@"
for port in 9000 9090 9093; do
	! listens $port || skip_all "port $port is in use: run as root, or stop what uses it"
done
free_ports 4
sshd_begin || exit 1
for name in "${MACHINES[@]}"; do
	sshd_start "$name" "${PORTS[${name#web}+1]}" \
		"$EXAMPLES/fleet/dump-for-alert.sh --here" || exit 1
	echo "$SERVER" >"$TMP/$name.pid"
	recorder_on "$name" blackbox || exit 1
done
echo "# $("$DEBIAN/usr/bin/prometheus" --version 2>&1 | head -n 1)," \
     "$("$DEBIAN/usr/bin/prometheus-alertmanager" --version 2>&1 | head -n 1)," \
     "$("$DEBIAN/usr/bin/webhook" -version)," \
     "$("$DEBIAN/usr/bin/prometheus-node-exporter" --version 2>&1 | head -n 1)"
tap_run "metrics of two machines in Prometheus" start_monitoring
tap_run "promtool and amtool take the examples" checks_files
start_webhook
HOOK=$SERVER
tap_run "refuses what is no alert of ours" refuses
end_server "$HOOK"
tap_run "an alert makes a dump on its machine, and the link comes back" alert_makes_dump
tap_run "annotations of an alert do not last" annotations_do_not_last
tap_run "tells that there is no dump" tells_of_no_dump
tap_end
