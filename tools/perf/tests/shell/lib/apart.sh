# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A test that records first and reads afterwards. To read is slow on an emulated machine, so
# another one can do that. RECORD_TO=DIRECTORY: the test records alone, there. READ_FROM=
# DIRECTORY: it reads what was recorded so, and needs no permissions. The directory has the same
# path on both machines. Sourced, not run; wants persistent.sh and flight.sh.

# shellcheck disable=SC2317 # called by the trap
apart_cleanup()
{
	trap - EXIT
	kill_recorders
}

# Like flight_begin
apart_begin()
{
	if [ -n "${READ_FROM-}" ]; then
		TMP=$READ_FROM
	else
		flight_begin
		[ -n "${RECORD_TO-}" ] || return 0
		rm -rf "$TMP"
		TMP=$RECORD_TO
		mkdir -p "$TMP"
		: >"$TMP/recorders"
		trap apart_cleanup EXIT
	fi
	export HOME=$TMP
}

# apart_record FUNCTION: unless that was done elsewhere
apart_record()
{
	[ -n "${READ_FROM-}" ] || check "there are recordings" "$@"
	[ -n "${RECORD_TO-}" ] || return 0
	persistent_end
	exit
}
