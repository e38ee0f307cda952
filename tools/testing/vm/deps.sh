#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Install the Debian packages (12 or 13) that the build and the tests need.
# Does nothing, and needs neither root nor the network, when none is missing.
# Adds Debian's security suite to apt's sources where the kernel's source is not in them.
#
# BASE=7.3 also fetches the source of that series, which no Debian has but the backports of
# Debian 13, with lists of its own: those of the machine stay as they are.
#
# usage: deps.sh [--list]
#        deps.sh fleet     what the suites fleet.* of make torture run, in build/fleet
set -euo pipefail

# What builds the kernel, what builds perf, what boots and checks them, what makes
# packages. A name with a ? may be missing from a suite: perf is then built without that feature.
packages=(
	linux-source-6.12 pkg-config
	bc bison flex cpio kmod libssl-dev xz-utils zstd rsync make patch git gcc g++
	gcc-multilib libc6-dev libc6-dev-i386 binutils ccache pahole perl python3
	libelf-dev libdw-dev libunwind-dev libtraceevent-dev libtracefs-dev
	libbpf-dev clang llvm '?libclang-rt-dev' libzstd-dev liblzma-dev zlib1g-dev libslang2-dev
	python3-dev python3-setuptools python3-jsonschema libcap-dev libnuma-dev
	'?libbabeltrace-dev' '?libbabeltrace-ctf-dev' '?libpfm4-dev' '?libcapstone-dev'
	'?systemtap-sdt-dev' libiberty-dev '?libprotobuf-c-dev' '?protobuf-c-compiler' '?golang-go'
	qemu-system-x86 qemu-system-arm procps iproute2 util-linux socat jq file systemd udev curl
	'?debuginfod' '?python3-kubernetes'
	sparse shellcheck strace valgrind '?babeltrace' '?chromium' '?chromium-driver'
	dpkg-dev debhelper fakeroot asciidoc-base xmlto debootstrap e2fsprogs
	kexec-tools makedumpfile '?libkdumpfile-dev' '?python3-drgn'
)

# Object stores, monitoring, and what reaches many machines. To install these would start
# servers and add users: they are taken out of their packages, with what they depend on.
fleet=(
	swift-account swift-container swift-object swift-proxy awscli rclone
	prometheus prometheus-alertmanager prometheus-node-exporter webhook
	clustershell openssh-client openssh-server
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

# promtool, for the test of perf ctl --prometheus, is taken out of its package: to install
# that of Debian 12, which is the server's, would start it. Without it that check is left out.
fetch_promtool()
{
	local dir=${TOP:+$TOP/build/promtool} package
	if [ -z "$dir" ] || [ -d "$dir" ] || command -v promtool >/dev/null; then
		return 0
	fi
	mkdir -p "$dir"
	for package in promtool prometheus; do
		(cd "$dir" && apt-get -qq download $package &&
			dpkg-deb --fsys-tarfile ${package}_*.deb |
			tar -x --strip-components=3 ./usr/bin/promtool) >/dev/null 2>&1 || continue
		break
	done
	[ -x "$dir/promtool" ] ||
		say "promtool could not be fetched: the metrics are not checked with it"
	rm -f "$dir"/*.deb
}

# pprof-format, for the test of perf data convert, which reads a profile with it as well.
fetch_pprof_format()
{
	local dir=${TOP:+$TOP/build/npm}
	if [ -z "$dir" ] || [ -d "$dir" ] || ! command -v npm >/dev/null; then
		return 0
	fi
	mkdir -p "$dir"
	(cd "$dir" && npm install --silent --no-audit --no-fund pprof-format) >/dev/null 2>&1 ||
		say "pprof-format could not be fetched: profiles are not read with it"
}

# The source of a newer series of kernels, in build/SERIES/source
fetch_source()
{
	local series=${BASE:-6.12} dir name uri key='' apt
	name=linux-source-$series
	dir=${TOP:+$TOP/build/$series/source}
	if [ "$series" = 6.12 ] || [ -z "$dir" ] || [ -f "$dir/$name.tar.xz" ]; then
		return 0
	fi
	read -r _ uri < <(debian_lists | grep -E '^[a-z]+ .*/debian/?$') || {
		say "apt has no mirror of Debian among its sources to fetch $name from"
		return 1
	}
	rm -rf "$dir"
	mkdir -p "$dir"/{lists,cache/archives}/partial
	[ ! -f /usr/share/keyrings/debian-archive-keyring.gpg ] ||
		key='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] '
	echo "deb $key$uri trixie-backports main" >"$dir/sources.list"
	apt=(apt-get -qq -o "Dir::Etc::SourceList=$dir/sources.list"
		-o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$dir/lists"
		-o "Dir::Cache=$dir/cache" -o "APT::Sandbox::User=$(id -un)")
	say "fetching $name from trixie-backports"
	if ! "${apt[@]}" -o APT::Update::Error-Mode=any update ||
	   ! (cd "$dir" && "${apt[@]}" download "$name"); then
		say "$name could not be fetched, see above: check the network, then run" \
		    "'make deps BASE=$series' again"
		return 1
	fi
	# It has its name at the end only.
	mkdir "$dir/new"
	dpkg-deb --fsys-tarfile "$dir/$name"_*.deb |
		tar -x -C "$dir/new" --strip-components=3 "./usr/src/$name.tar.xz"
	mv "$dir/new/$name.tar.xz" "$dir"
	rm -rf "$dir"/*.deb "$dir"/{lists,cache,new,sources.list}
}

# packages_of_fleet: those to unpack. apt-get names what is not installed here.
packages_of_fleet()
{
	apt-get -qq -s --no-install-recommends install "${fleet[@]}" | awk '/^Inst / { print $2 }'
	# What is installed here can be without its program, or be an older one of others.
	printf '%s\n' "${fleet[@]}"
}

# build/fleet is there when it is complete. About 80 MB are fetched, and 600 MB unpacked.
fetch_fleet()
{
	local dir=${TOP:?}/build/fleet new=$TOP/build/fleet.new packages package
	[ ! -d "$dir" ] || return 0
	if ! command -v dpkg-deb >/dev/null; then
		say "this is not Debian: the suites fleet.* have nothing to run"
		return 1
	fi
	rm -rf "$new"
	mkdir -p "$new/packages"
	if ! packages=$(packages_of_fleet); then
		as_root apt-get -qq update || true
		packages=$(packages_of_fleet) || {
			say "apt-get does not find all of ${fleet[*]}: check /etc/apt/sources.list"
			return 1
		}
	fi
	mapfile -t packages < <(sort -u <<<"$packages")
	say "fetching ${#packages[@]} packages for the suites fleet.*"
	if ! (cd "$new/packages" && apt-get -qq download "${packages[@]}") 2>"$new/said"; then
		cat "$new/said" >&2
		say "apt-get download failed: check the network, then run 'TOP=$TOP $0 fleet' again"
		return 1
	fi
	for package in "$new"/packages/*.deb; do
		dpkg-deb --fsys-tarfile "$package" |
			tar -x -C "$new" --exclude './usr/share/[dmfj]*' \
				--exclude './usr/lib/systemd'
	done
	rm -rf "$new/packages" "$new/said"
	mv "$new" "$dir"
}

available()
{
	[[ -n $(apt-cache madison "$1" 2>/dev/null) ]]
}

# RELEASE-SUITE URI of each of Debian's own lists that apt has
debian_lists()
{
	# shellcheck disable=SC2016 # apt's variables
	apt-get indextargets --format '$(CODENAME) $(REPO_URI)' \
		'Created-By: Packages' 'Origin: Debian' 2>/dev/null | sort -u
}

# What is not installed
fetch_others()
{
	fetch_promtool
	fetch_pprof_format
	fetch_source
}

# The kernel's source can be in the security suite alone, which not every machine has among
# its sources: what debootstrap made has not. It is then added, from the mirror that the
# machine has for the rest of Debian, in a file of its own; if that mirror has none, the file
# is removed again.
add_security_suite()
{
	local lists codename uri key='' parts file
	lists=$(debian_lists)
	! grep -qE '^[a-z]+-security ' <<<"$lists" || return 0
	read -r codename uri < <(grep -E '^[a-z]+ .*/debian/?$' <<<"$lists") || return 0
	uri=${uri%/}-security
	[ ! -f /usr/share/keyrings/debian-archive-keyring.gpg ] ||
		key='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] '
	eval "$(apt-config shell parts Dir::Etc::sourceparts/d)"
	file=${parts%/}/debian-security-of-make-deps.list
	say "linux-source-6.12 is not in this machine's suites: adding $codename-security of" \
	    "$uri, in $file"
	echo "deb $key$uri $codename-security main" | as_root tee "$file" >/dev/null
	if ! as_root apt-get -qq -o APT::Update::Error-Mode=any -o Dir::Etc::sourcelist="$file" \
		-o Dir::Etc::sourceparts=/dev/null -o APT::Get::List-Cleanup=0 update; then
		say "there is no security suite at $uri: $file is removed again"
		as_root rm -f "$file"
	fi
}

if [ "${1-}" = --list ]; then
	printf '%s\n' "${packages[@]#\?}"
	exit 0
fi

if [ "${1-}" = fleet ]; then
	fetch_fleet
	exit
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
if [ ${#hard[@]} = 0 ]; then
	fetch_others
	exit 0
fi

# Others' packages of Node.js hold it, too, and do not go with Debian's; and where all else
# is there, the want of a flame graph is no reason to ask for root and the network.
command -v npm >/dev/null || hard+=('?npm')

if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
	say "there is neither root nor sudo to install what is missing: as root, run" \
	    "apt-get install ${hard[*]#\?}"
	exit 1
fi
say "asking apt-get for the package lists"
# One source of many may fail, and what is wanted come from another.
lists_are_old=
# Without a network, fail at once, not after three tries for each package.
tries=()
if ! as_root apt-get -qq -o APT::Update::Error-Mode=any update; then
	lists_are_old=1
	tries=(-o Acquire::Retries=0)
	say "apt-get update failed: check the network, the proxy and /etc/apt/sources.list;" \
	    "going on with the lists that are there"
fi
if [[ " ${hard[*]} " == *' linux-source-6.12 '* ]] && ! available linux-source-6.12; then
	add_security_suite
fi
install=()
for p in "${hard[@]}"; do
	if available "${p#\?}"; then
		install+=("${p#\?}")
	elif [[ $p == \?* ]]; then
		say "${p#\?} is not in this suite: perf is built without it"
		if [ -n "$stamp" ]; then
			mkdir -p "${stamp%/*}"
			printf '%s\n' "$p" >>"$stamp"
		fi
	elif [ -n "$lists_are_old" ]; then
		say "$p is in none of the lists: mend what apt-get said above, then run this again"
		exit 1
	else
		say "$p is not in this machine's suites: this project needs Debian 12 or 13, with" \
		    "its main and its security suite (bookworm-security or trixie-security)" \
		    "among apt's sources"
		exit 1
	fi
done
if [ ${#install[@]} = 0 ]; then
	fetch_others
	exit 0
fi
say "installing ${#install[@]} packages: ${install[*]}"
if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends \
	"${tries[@]}" install "${install[@]}" >/dev/null; then
	say "apt-get install failed, see above: check the network and the space on the disk" \
	    "(about 3 GB), then run 'make deps' again"
	exit 1
fi
fetch_others
say "done"
