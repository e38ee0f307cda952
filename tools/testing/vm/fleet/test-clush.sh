#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# One command for the recorders of many machines: ClusterShell, by ssh. A machine that is down
# does not keep the others from their dumps, and is named. Prints TAP.
set -uo pipefail
# shellcheck source=tools/testing/vm/fleet/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/fleet/sshd.sh
. "${BASH_SOURCE[0]%/*}/sshd.sh"

MACHINES=(web1 web2 web3 web4)

dumps_of()
{
	find "$TMP/ssh/$1/dumps" -name '*.sample.*Z'
}

# Each has one more, with the reason
dumps_all()
{
	local name
	clush -S -w 'web[1-4]' "perf ctl --dump=blackbox --reason='checkout was slow'" \
		>"$TMP/said" ||
		{ cat "$TMP/said"; tail -n 4 "$TMP"/sshd-web1.log; return 1; }
	sort "$TMP/said"
	for name in "${MACHINES[@]}"; do
		grep -qxF "$name: $(dumps_of "$name")" "$TMP/said" || return 1
		grep -q '"checkout was slow"' "$(dumps_of "$name").json" || return 1
	done
}

# By the name of a group, as the guide has it; one of its machines is down.
names_who_is_down()
{
	local rc=0 name
	end_server "$(cat "$TMP/web3.pid")"
	clush -S -g web "perf ctl --dump=blackbox" >"$TMP/said" 2>&1 || rc=$?
	cat "$TMP/said"
	[ $rc != 0 ] && grep -q '^clush: web3: exited with exit code 255' "$TMP/said" || return 1
	for name in web1 web2 web4; do
		[ "$(dumps_of $name | wc -l)" = 2 ] || return 1
	done
	[ "$(dumps_of web3 | wc -l)" = 1 ]
}

# What each recorder says, by who says the same
gathers()
{
	clush -b -w 'web[1-2,4]' "perf ctl --status=blackbox | grep '^  dumps'" | tee "$TMP/said"
	grep -q 'web\[1-2,4\]' "$TMP/said"
}

fleet_begin "$@"
free_ports 4
sshd_begin || exit 1
for name in "${MACHINES[@]}"; do
	sshd_start "$name" "${PORTS[${name#web}-1]}" || exit 1
	echo "$SERVER" >"$TMP/$name.pid"
	recorder_on "$name" blackbox || exit 1
done
export CLUSTERSHELL_CFGDIR=$TMP/clustershell
mkdir -p "$CLUSTERSHELL_CFGDIR/groups.d"
printf 'web: web[1-4]\n' >"$CLUSTERSHELL_CFGDIR/groups.d/local.cfg"
# As Debian's, which has /etc/clustershell/groups.d/local.cfg
# shellcheck disable=SC2016 # for ClusterShell
printf '[Main]\ndefault: local\n[local]\nmap: sed -n "s/^$GROUP: *//p" %s\n' \
	"$CLUSTERSHELL_CFGDIR/groups.d/local.cfg" >"$CLUSTERSHELL_CFGDIR/groups.conf"
printf '[Main]\nconnect_timeout: 10\nssh_path: %s\n' "$TMP/bin/ssh" \
	>"$CLUSTERSHELL_CFGDIR/clush.conf"
echo "# $(clush --version), $("$TMP/bin/ssh" -V 2>&1)"
tap_run "dumps of four machines" dumps_all
tap_run "a machine that is down" names_who_is_down
tap_run "what they say, together" gathers
tap_end
