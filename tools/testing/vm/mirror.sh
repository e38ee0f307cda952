# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For tests that make a Debian of their own. Sourced, not run.

# The mirror from which this machine has Debian's packages
debian_mirror()
{
	# shellcheck disable=SC2016 # apt's variables
	apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' |
		grep -E '/debian/?$' | head -n1
}
