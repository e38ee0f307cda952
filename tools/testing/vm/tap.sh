# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# TAP for shell tests. Sourced. A test is a function that returns a non-zero status on
# failure. Its output is printed as diagnostics.

TAP_N=0
TAP_BAD=0

# tap_ok STATUS NAME
tap_ok()
{
	TAP_N=$((TAP_N + 1))
	if [ "$1" = 0 ]; then
		echo "ok $TAP_N $2"
	else
		TAP_BAD=$((TAP_BAD + 1))
		echo "not ok $TAP_N $2"
	fi
}

# tap_skip NAME REASON
tap_skip()
{
	TAP_N=$((TAP_N + 1))
	echo "ok $TAP_N $1 # SKIP $2"
}

# tap_run NAME COMMAND...: status 0 passes, 2 with a last line "skip: REASON"
# skips, anything else fails and shows the output.
tap_run()
{
	local name=$1 rc=0 text
	shift
	text=$("$@" 2>&1 </dev/null) || rc=$?
	if [ "$rc" = 2 ] && [[ ${text##*$'\n'} == skip:* ]]; then
		tap_skip "$name" "${text##*skip: }"
		return
	fi
	[ "$rc" = 0 ] || printf '# %s\n' "${text//$'\n'/$'\n'# }"
	tap_ok "$rc" "$name"
}

tap_end()
{
	echo "1..$TAP_N"
	[ "$TAP_BAD" = 0 ]
}
