# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Machines that are reached by ssh: sshd on a port each, each with recorders of its own, as
# these register in XDG_RUNTIME_DIR. Sourced, behind lib.sh.

# sshd_begin: the keys of the machines, and of who asks. SSH_CONFIG is for ssh -F.
sshd_begin()
{
	mkdir -p "$TMP/ssh"
	ssh_keygen -f "$TMP/ssh/host" && ssh_keygen -f "$TMP/ssh/client" || return 1
	SSH_CONFIG=$TMP/ssh/config
	cat >"$SSH_CONFIG" <<-END
		Host *
		HostName 127.0.0.1
		User $(id -un)
		IdentityFile $TMP/ssh/client
		IdentitiesOnly yes
		UserKnownHostsFile $TMP/ssh/known
	END
	printf '#!/bin/sh\nexec "%s" -F "%s" "$@"\n' "$DEBIAN/usr/bin/ssh" "$SSH_CONFIG" \
		>"$TMP/bin/ssh"
	chmod +x "$TMP/bin/ssh"
}

ssh_keygen()
{
	env "${DEBIAN_ENV[@]}" "$DEBIAN/usr/bin/ssh-keygen" -q -t ed25519 -N '' "$@"
}

# sshd_start NAME PORT [COMMAND]: a machine; with COMMAND, the key is for this alone
sshd_start()
{
	local dir=$TMP/ssh/$1
	mkdir -p "$dir/run"
	chmod 700 "$dir/run"
	{
		[ -z "${3-}" ] || printf 'restrict,command="%s" ' "$3"
		cat "$TMP/ssh/client.pub"
	} >"$dir/authorized_keys"
	cat >"$dir/config" <<-END
		ListenAddress 127.0.0.1
		Port $2
		HostKey $TMP/ssh/host
		AuthorizedKeysFile $dir/authorized_keys
		StrictModes no
		UsePAM no
		PasswordAuthentication no
		KbdInteractiveAuthentication no
		PidFile none
		SetEnv XDG_RUNTIME_DIR=$dir/run PATH=$TMP/bin:/usr/bin:/bin
	END
	# What is asked of one port is the answer of this machine.
	printf '[127.0.0.1]:%s %s\n' "$2" "$(cut -d ' ' -f 1,2 "$TMP/ssh/host.pub")" \
		>>"$TMP/ssh/known"
	sed -i "1i Host $1\nPort $2" "$SSH_CONFIG"
	serve "sshd-$1" env "${DEBIAN_ENV[@]}" "$DEBIAN/usr/sbin/sshd" -D -e -f "$dir/config"
	wait_for listens "$2"
}

# recorder_on NAME OUT [OPTION...]: of its own task
recorder_on()
{
	local dir=$TMP/ssh/$1 name=$2
	shift 2
	mkdir -p "$dir/dumps"
	XDG_RUNTIME_DIR=$dir/run perf record --daemon -M 4M -e cpu-clock:u -o "$dir/dumps/$name" \
		"$@" -- sleep 3600 >"$dir/said" 2>&1 || { cat "$dir/said"; return 1; }
	cat "$dir/dumps/$name.pid" >>"$TMP/pids"
}
