#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Install the Debian packages (12 or 13) that the build and the tests need.
# Does nothing, and needs neither root nor the network, when none is missing.
#
# usage: deps.sh [--list]
set -euo pipefail

# What builds the kernel, what builds perf, what boots and checks them. A name
# with a ? may be missing from a suite: perf is then built without that feature.
packages=(
	linux-source-6.12 pkg-config
	bc bison flex cpio kmod libssl-dev xz-utils zstd rsync make patch git gcc g++
	gcc-multilib libc6-dev libc6-dev-i386 binutils ccache pahole perl python3
	libelf-dev libdw-dev libunwind-dev libtraceevent-dev libtracefs-dev
	libbpf-dev clang llvm '?libclang-rt-dev' libzstd-dev liblzma-dev zlib1g-dev libslang2-dev
	python3-dev python3-setuptools libcap-dev libnuma-dev
	'?libbabeltrace-dev' '?libbabeltrace-ctf-dev' '?libpfm4-dev' '?libcapstone-dev'
	'?systemtap-sdt-dev' libiberty-dev
	qemu-system-x86 procps iproute2 util-linux socat jq file systemd
	sparse shellcheck valgrind '?chromium' '?chromium-driver'
)

say()
{
	printf 'deps: %s\n' "$*" >&2
}

missing()
{
	local p
	for p in "$@"; do
		case "$(dpkg-query -W -f '${db:Status-Abbrev}' "${p#\?}" 2>/dev/null || true)" in
		ii*) ;;
		*) printf '%s\n' "$p" ;;
		esac
	done
}

as_root()
{
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

if [ "${1-}" = --list ]; then
	printf '%s\n' "${packages[@]#\?}"
	exit 0
fi

if ! command -v dpkg-query >/dev/null; then
	say "this is not Debian: install the counterparts of these yourself: ${packages[*]#\?}"
	exit 1
fi
mapfile -t want < <(missing "${packages[@]}")
stamp=${TOP:+$TOP/build/.deps-unavailable}
hard=()
for p in "${want[@]}"; do
	# A package known to be missing from this suite is not asked for again.
	if [[ $p == \?* ]] && [ -n "$stamp" ] && grep -qxF "$p" "$stamp" 2>/dev/null; then
		continue
	fi
	hard+=("$p")
done
[ ${#hard[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
	say "there is neither root nor sudo to install what is missing: ${hard[*]#\?}"
	exit 1
fi
say "asking apt-get for the package lists"
if ! as_root apt-get -qq update; then
	say "apt-get update failed: check the network and /etc/apt/sources.list"
	exit 1
fi
install=()
for p in "${hard[@]}"; do
	if [[ -n $(apt-cache madison "${p#\?}" 2>/dev/null) ]]; then
		install+=("${p#\?}")
	elif [[ $p == \?* ]]; then
		say "${p#\?} is not in this suite: perf is built without it"
		if [ -n "$stamp" ]; then
			mkdir -p "${stamp%/*}"
			printf '%s\n' "$p" >>"$stamp"
		fi
	else
		say "$p is not in this machine's suites; this project needs Debian 12" \
		    "(with bookworm-security) or 13"
		exit 1
	fi
done
[ ${#install[@]} -gt 0 ] || exit 0
say "installing ${#install[@]} packages: ${install[*]}"
as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends \
	install "${install[@]}" >/dev/null
say "done"
