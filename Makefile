# SPDX-License-Identifier: GPL-2.0
# Perf flight recorder: a patch series for Linux 6.12 and its perf. 'make help' lists the commands.

VM := tools/testing/vm
export BASE VARIANT SMP MEM ACCEL ICOUNT ASLR TIMEOUT MINUTES BISECT TOPIC JOBS CROSS PER MARKS
# Taken to the letter: a $ in them is the shell's, not make's.
override export CMD := $(value CMD)
override export APPEND := $(value APPEND)
override export ONLY := $(value ONLY)
export TOP := $(CURDIR)

help:
	@sed -n 's/^#: //p' Makefile

#: BASE=7.3 is for that series of kernels in place of 6.12.
#: make run      set-up, build, then the main job in the VM: a story with a report at its end
run: set-up
	@$(VM)/build.sh all patched
	@$(VM)/run-story.sh

#: make test [ONLY=PATTERN]  set-up, build, every test; last line: 'N passed, N failed, N skipped'
test: set-up
	@$(VM)/build.sh
	@BESIDE=$(VM)/build-newer.sh $(VM)/run-tests.sh

#: make torture [MINUTES=N]  long counts: races, faults, fuzz, kills; N minutes (60)
torture: set-up
	@$(VM)/deps.sh fleet || true
	@$(VM)/build.sh
	@SUITES=$(VM)/tortures $(VM)/build-newer.sh
	@MINUTES=$(or $(MINUTES),60) SUITES=$(VM)/tortures $(VM)/run-tests.sh

#: make bench [ONLY=PATTERN] every benchmark, patched beside base in one run; table of ratios
bench: set-up
	@$(VM)/build.sh all base patched
	@$(VM)/run-benches.sh

#: make pictures  take those of media/ anew: an incident in the VM, its page in headless Chromium
pictures: set-up
	@$(VM)/build.sh all patched
	@$(VM)/take-pictures.sh

#: make vm CMD='...' [VARIANT=patched|base|debug] [SMP=2] [MEM=2G] [ACCEL=single|multi|kvm]
#:         [ICOUNT=1] [ASLR=1] [APPEND='...'] [TIMEOUT=600]   boot, run CMD as root, exit with
#:         its status
vm: set-up
	@$(VM)/build.sh kernel $(or $(VARIANT),patched)
	@$(VM)/build.sh perf $(or $(VARIANT),patched)
	@$(VM)/vm.sh

#: make profile CMD='...' [VARIANT=patched] [PER=N] [MARKS=own]   instructions by function of
#:         what CMD does in the VM, divided by N; MARKS=own: CMD says where it begins and ends
profile: set-up
	@$(VM)/build.sh kernel $(or $(VARIANT),patched)
	@$(VM)/build.sh perf $(or $(VARIANT),patched)
	@$(VM)/profile.sh

#: make check [CROSS=1]  checkpatch --strict, topics and manifest checks, sparse, shellcheck;
#:         CROSS=1: PMU drivers of arm64 and powerpc, with Debian's cross compilers
check: set-up
	@$(VM)/build.sh --stage-only
	@patches/check

#: make series [BISECT=1] [TOPIC=NAME]   the emailable patches in build/series/TOPIC, of all topics
#:         or one; with BISECT=1 each step is built
series: set-up
	@$(VM)/build.sh --stage-only
	@patches/mail

#: make deb [CONFIG=FILE]    packages of kernel and perf in build/deb; CONFIG: of the kernel
deb: override export CONFIG := $(value CONFIG)
deb: set-up
	@$(VM)/deb.sh

#: make build    the three variants: build/VARIANT/bzImage, build/VARIANT/bin/perf
build: set-up
	@$(VM)/build.sh

#: make deps     install the Debian packages that all of this needs
deps set-up:
	@$(VM)/deps.sh

# The products by their paths: make build/debug/bzImage, make build/7.3/base/bin/perf
build/%/bzImage build/%/bin/perf: series = $(patsubst %/,%,$(filter-out ./,$(dir $*)))
build/%/bzImage: set-up
	@$(if $(series),BASE=$(series) $(VM)/deps.sh)
	@$(if $(series),BASE=$(series)) $(VM)/build.sh kernel $(notdir $*)
build/%/bin/perf: set-up
	@$(if $(series),BASE=$(series) $(VM)/deps.sh)
	@$(if $(series),BASE=$(series)) $(VM)/build.sh perf $(notdir $*)

#: make clean    remove build/
clean:
	rm -rf build

.PHONY: help run test torture bench pictures vm profile check series deb build deps set-up clean
