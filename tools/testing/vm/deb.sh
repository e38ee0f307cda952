#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Build Debian packages in build/deb: a kernel image with the series applied, built by the
# kernel's bindeb-pkg (with CONFIG also its headers), and perf-flight, the perf of the series.
# It can be installed together with Debian's linux-perf: its command is perf-flight, its files
# are below /usr/lib/perf-flight.
#
# usage: deb.sh [kernel|perf|all]
#   CONFIG=FILE     configuration of the kernel, also as .xz, instead of the trimmed one
#                   for QEMU; the options of the series are enabled in it
#   DEB_REVISION=1  revision of the packages' version, 6.12.y-REVISION
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

VM=$TOP/tools/testing/vm
SRC=$BUILD/patched/src
DEB=$BUILD/deb
CONFIG=${CONFIG:-}
DEB_REVISION=${DEB_REVISION:-1}
NAME=perf-flight
MAINTAINER="perf flight recorder <perf@localhost>"
export PATH=/usr/lib/ccache:$PATH
export CCACHE_DIR=${CCACHE_DIR:-$BUILD/ccache} CCACHE_BASEDIR=$BUILD CCACHE_NOHASHDIR=1
export KBUILD_BUILD_USER=perf KBUILD_BUILD_HOST=deb KBUILD_BUILD_TIMESTAMP=@0
export LC_ALL=C
# Do not pass the options of make to the makes that are called here.
export -n CONFIG
unset MAKEFLAGS MAKEOVERRIDES
umask 022

need()
{
	local command
	for command; do
		command -v "$command" >/dev/null ||
			die "$command is missing, which packages are made with: run 'make deps'"
	done
}

# Write the trimmed configuration, or CONFIG with our options, to $DEB/kernel/.config.
configure()
{
	local out=$DEB/kernel want
	mkdir -p "$out"
	if [ -z "$CONFIG" ]; then
		want=$(cat "$VM"/config/{boot,perf,patched,crash,deb}.config |
			sed -nE 's/^(CONFIG_[A-Z0-9_]+=.*)$/\1/p')
		printf '%s\n' "$want" | tac | awk -F= '!seen[$1]++' >"$out/.want.new"
	else
		[ -r "$CONFIG" ] || die "CONFIG=$CONFIG cannot be read"
		{
			if [[ $CONFIG == *.xz ]]; then
				xz -dc "$CONFIG"
			else
				cat "$CONFIG"
			fi
			cat "$VM/config/patched.config"
			# Keys that are files of the distribution's own tree.
			printf 'CONFIG_SYSTEM_TRUSTED_KEYS=""\n'
		} >"$out/.want.new"
	fi
	if ! cmp -s "$out/.want.new" "$out/.want" || [ ! -f "$out/.config" ]; then
		if [ -z "$CONFIG" ]; then
			make -s -C "$SRC" O="$out" KCONFIG_ALLCONFIG="$out/.want.new" allnoconfig
		else
			cp "$out/.want.new" "$out/.config"
			make -s -C "$SRC" O="$out" olddefconfig
		fi >"$DEB/config.log" 2>&1 ||
			{ cat "$DEB/config.log" >&2; die "configuring the kernel failed"; }
		mv "$out/.want.new" "$out/.want"
	fi
	# The trimmed configuration must be kept completely; of CONFIG, our options.
	check_config "$(if [ -z "$CONFIG" ]; then cat "$out/.want"; else
		grep '^CONFIG' "$VM/config/patched.config"; fi)"
}

check_config()
{
	local line
	while read -r line; do
		if [ "${line#*=}" = n ]; then
			! grep -q "^${line%%=*}=" "$DEB/kernel/.config" ||
				die "${line%%=*} cannot be switched off"
		else
			grep -qxF "$line" "$DEB/kernel/.config" || die "$line did not take effect"
		fi
	done <<<"$1"
}

kernel_version()
{
	make -s --no-print-directory -C "$SRC" kernelversion
}

# linux-image, and with CONFIG linux-headers, which the trimmed kernel does not need.
# linux-libc-dev is not built, because it would replace Debian's.
build_kernel()
{
	local profiles=pkg.linux-flight.nokerneldbg
	[ -n "$CONFIG" ] || profiles+=" pkg.linux-flight.nokernelheaders"
	need dpkg-buildpackage dh_builddeb fakeroot rsync
	configure
	rm -f "$DEB"/linux-*.deb
	KDEB_SOURCENAME=linux-flight KDEB_CHANGELOG_DIST=unstable KDEB_COMPRESS=xz \
	KDEB_PKGVERSION="$(kernel_version)-$DEB_REVISION" \
	DEBFULLNAME=${MAINTAINER% <*} DEBEMAIL=perf@localhost \
	DEB_BUILD_PROFILES=$profiles \
	run_logged "kernel package" "$DEB/kernel.log" \
		make -C "$SRC" O="$DEB/kernel" -j"$JOBS" LOCALVERSION=-flight bindeb-pkg
	rm -f "$DEB"/linux-libc-dev_*.deb "$DEB"/linux-flight_*
}

# perf is built for its installed location.
build_perf()
{
	local out=$DEB/perf
	need asciidoc xmlto dpkg-shlibdeps dpkg-deb
	mkdir -p "$out"
	rm -rf "$DEB/root"
	run_logged "perf of the package" "$DEB/perf.log" \
		make -C "$SRC/tools/perf" O="$out" -j"$JOBS" prefix=/usr/lib/$NAME \
		DESTDIR="$DEB/root" WERROR=0 \
		PYTHON=/usr/bin/python3 PYTHON_CONFIG=/usr/bin/python3-config \
		BUILD_BPF_SKEL=1 NO_LIBPERL=1 NO_JVMTI=1 NO_GTK2=1 install-bin
	# Debian's asciidoc needs Debian's python.
	PATH=/usr/bin:/bin:$PATH run_logged "man pages" "$DEB/man.log" \
		make -C "$SRC/tools/perf" O="$out" -j"$JOBS" prefix=/usr/lib/$NAME \
		DESTDIR="$DEB/root" install-man
	arrange
	pack
}

# The files outside of /usr/lib/perf-flight have names of their own.
arrange()
{
	local root=$DEB/root lib=$DEB/root/usr/lib/$NAME page unit
	install -d "$root"/usr/{bin,share/man/man1,share/doc/$NAME/examples} \
		"$root/usr/share/bash-completion/completions" "$root/usr/lib/systemd/system" \
		"$root/usr/lib/tmpfiles.d"
	# perf takes what follows 'perf-' in its own name for a command: hence no link.
	printf '#!/bin/sh\nexec /usr/lib/%s/bin/perf "$@"\n' $NAME >"$root/usr/bin/$NAME"
	chmod 755 "$root/usr/bin/$NAME"
	strip --strip-unneeded "$lib/bin/perf" "$lib"/libexec/perf-core/perf-read-vdso*
	gzip -9n "$lib"/share/man/man1/*.1
	for page in "$lib"/share/man/man1/perf*.1.gz; do
		page=${page##*/}
		ln -s "../../../lib/$NAME/share/man/man1/$page" \
			"$root/usr/share/man/man1/$NAME${page#perf}"
	done
	sed 's/-F _perf perf\b/-F _perf perf-flight/; s/^compdef _perf perf$/&-flight/' \
		"$lib/etc/bash_completion.d/perf" \
		>"$root/usr/share/bash-completion/completions/$NAME"
	rm -rf "${lib:?}/etc"
	install -m 755 "$SRC/tools/perf/examples/flight/recover-blackbox.sh" \
		"$lib/libexec/perf-core"
	for unit in $NAME{,-recover,-note@,-join@}.service; do
		sed "s|/usr/bin/perf |/usr/bin/$NAME |; s|man:perf-|man:$NAME-|
			s|/usr/libexec/|/usr/lib/$NAME/libexec/|" \
			"$SRC/tools/perf/examples/flight/$unit" \
			>"$root/usr/lib/systemd/system/$unit"
	done
	install -D -m 644 "$SRC/tools/perf/examples/flight/90-perf-flight.rules" \
		"$root/usr/lib/udev/rules.d/90-$NAME.rules"
	install -m 644 "$SRC/tools/perf/examples/flight/perf-flight.conf" \
		"$root/usr/lib/tmpfiles.d/$NAME.conf"
	install -m 644 "$SRC"/tools/perf/examples/flight/{Makefile,*.[chps]*,*.yaml} \
		"$root/usr/share/doc/$NAME/examples"
	install -D -m 644 -t "$root/usr/share/doc/$NAME/examples/fleet" \
		"$SRC"/tools/perf/examples/flight/fleet/*
	rm "$root/usr/share/doc/$NAME/examples"/{*.service,"$NAME.conf",recover-blackbox.sh}
	for page in flight-recorder persistent-events black-box perf-export perf-verdict \
		perf-incidents perf-redact perf-fleet packages; do
		install -m 644 "$SRC/Documentation/admin-guide/perf/$page.rst" \
			"$root/usr/share/doc/$NAME"
	done
	install -m 644 "$SRC/Documentation/admin-guide/perf/perf-verdict.schema.json" \
		"$root/usr/share/doc/$NAME"
	cat >"$root/usr/share/doc/$NAME/copyright" <<-END
		perf of Linux $(kernel_version), with the series of the perf flight recorder.
		Licence: GPL-2.0, see /usr/share/common-licenses/GPL-2.
		d3 and d3-flame-graph, which the page of 'perf script report incident' holds:
		see the LICENSE files below /usr/lib/$NAME, in scripts/python/incident/lib.
	END
}

# postinst enables nothing: the administrator decides whether a machine records itself.
maintainer_scripts()
{
	local control=$DEB/root/DEBIAN
	cat >"$control/postinst" <<-'END'
		#!/bin/sh
		set -e
		if [ -d /run/systemd/system ]; then
			systemctl daemon-reload
			systemd-tmpfiles --create perf-flight.conf
		fi
	END
	cat >"$control/prerm" <<-'END'
		#!/bin/sh
		set -e
		if [ "$1" = remove ]; then
			units='perf-flight.service perf-flight-recover.service'
			[ ! -d /run/systemd/system ] ||
				systemctl stop $units 'perf-flight-note@*.service' \
					'perf-flight-join@*.service'
			! command -v systemctl >/dev/null ||
				systemctl --quiet disable $units perf-flight-note@.service
			# Python has put these beside the scripts that root has run.
			find /usr/lib/perf-flight -name __pycache__ -prune -exec rm -r {} +
		fi
	END
	cat >"$control/postrm" <<-'END'
		#!/bin/sh
		set -e
		[ ! -d /run/systemd/system ] || systemctl daemon-reload
		# The dumps, and what was recovered, are kept until the package is purged.
		if [ "$1" = purge ]; then
			rm -rf /var/lib/private/perf-flight /var/lib/perf-flight
			rm -rf /var/lib/perf/blackbox
			[ ! -d /var/lib/perf ] || rmdir --ignore-fail-on-non-empty /var/lib/perf
			rm -f /run/perf/0/join.lock
			for dir in /run/perf/0 /run/perf; do
				[ ! -d $dir ] || rmdir --ignore-fail-on-non-empty $dir
			done
		fi
	END
	chmod 755 "$control"/{postinst,prerm,postrm}
}

pack()
{
	local root=$DEB/root version arch depends
	version=$(kernel_version)-$DEB_REVISION
	arch=$(dpkg --print-architecture)
	install -d "$root/DEBIAN" "$DEB/shlibs/debian"
	printf 'Source: %s\n\nPackage: %s\nArchitecture: any\n' $NAME $NAME \
		>"$DEB/shlibs/debian/control"
	depends=$(cd "$DEB/shlibs" &&
		dpkg-shlibdeps -O "$root/usr/lib/$NAME/bin/perf" 2>"$DEB/shlibs.log" |
		sed -n 's/^shlibs:Depends=//p')
	[ -n "$depends" ] || { cat "$DEB/shlibs.log" >&2; die "dpkg-shlibdeps found nothing"; }
	maintainer_scripts
	cat >"$root/DEBIAN/control" <<-END
		Package: $NAME
		Version: $version
		Section: devel
		Priority: optional
		Architecture: $arch
		Maintainer: $MAINTAINER
		Depends: $depends
		Recommends: python3
		Suggests: linux-image-$(kernel_version)-flight, libdebuginfod1
		Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
		Description: perf with a flight recorder
		 A machine records itself all the time, into memory; a signal, a request on a
		 socket, an event or a BPF program writes what happened before to a file. With the
		 kernel linux-image-$(kernel_version)-flight, events also outlive the recorder.
		 .
		 The command is perf-flight. It lies beside the perf of linux-perf, and shares no
		 file with it. Its systemd units are not enabled by the installation.
	END
	(cd "$root" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z |
		xargs -0 md5sum) >"$root/DEBIAN/md5sums"
	rm -f "$DEB/${NAME}_"*.deb
	dpkg-deb --root-owner-group -Zxz --build "$root" \
		"$DEB/${NAME}_${version}_$arch.deb" >/dev/null
}

main()
{
	local what=${1:-all}
	"$VM/build.sh" --stage-only
	mkdir -p "$DEB"
	case $what in kernel|all) build_kernel ;; esac
	case $what in perf|all) build_perf ;; esac
	say "the packages:"
	(cd "$BUILD/.." && ls -s --block-size=K build/deb/*.deb)
}

main "$@"
