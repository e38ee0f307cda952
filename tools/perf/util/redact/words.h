/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_REDACT_WORDS_H
#define __PERF_REDACT_WORDS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/* Bytes of the longest text that can stay as it is, with its NUL */
#define REDACT_TEXT_MAX		4096

/* Bytes of the longest token, with its NUL: /redacted/f-xxxxxxxxxxxx */
#define REDACT_TOKEN_MAX	32

/**
 * enum redact_keep - what stays as it is
 * @REDACT_KEEP_COMM: names of tasks
 * @REDACT_KEEP_FILES: names of files of the system, and of the kernel's modules
 * @REDACT_KEEP_BUILD_IDS: build-ids of files
 * @REDACT_KEEP_CGROUPS: paths of cgroups
 * @REDACT_KEEP_HOST: name of the machine
 * @REDACT_KEEP_KERNEL: all of the kernel's release, not the version alone
 */
enum redact_keep {
	REDACT_KEEP_COMM	= 1 << 0,
	REDACT_KEEP_FILES	= 1 << 1,
	REDACT_KEEP_BUILD_IDS	= 1 << 2,
	REDACT_KEEP_CGROUPS	= 1 << 3,
	REDACT_KEEP_HOST	= 1 << 4,
	REDACT_KEEP_KERNEL	= 1 << 5,
};

/**
 * enum redact_kind - what a text is; texts of different kinds have different tokens
 * @REDACT_COMM: name of a task
 * @REDACT_FILE: name of a file
 * @REDACT_MODULE: name of a module of the kernel, or of its file
 * @REDACT_SYMBOL: name of a function that the kernel has made, such as a BPF program
 * @REDACT_CGROUP: path of a cgroup
 * @REDACT_DEVICE: name that a driver has given to its interrupt
 * @REDACT_EVENT: name of a tracepoint or of its system
 * @REDACT_HOST: name of the machine
 * @REDACT_OTHER: any other text
 * @REDACT_ADDRESS: an address
 */
enum redact_kind {
	REDACT_COMM,
	REDACT_FILE,
	REDACT_MODULE,
	REDACT_SYMBOL,
	REDACT_CGROUP,
	REDACT_DEVICE,
	REDACT_EVENT,
	REDACT_HOST,
	REDACT_OTHER,
	REDACT_ADDRESS,
};

/**
 * struct redact_words - what turns texts into tokens
 * @key: drawn anew for each file, and not stored
 * @keep: bits of enum redact_keep
 * @hosts: name of the machine as the file and its manifest have it, without the domain
 */
struct redact_words {
	u64		key[2];
	unsigned int	keep;
	char		hosts[2][65];
};

int redact_words__init(struct redact_words *w, const char *keep);
void redact_words__hide_host(struct redact_words *w, int which, const char *name, size_t len);
size_t redact_words__put(const struct redact_words *w, enum redact_kind kind,
			 const char *text, size_t len, char *out);
size_t redact_words__release(const struct redact_words *w, const char *text, size_t len,
			     char *out);
u64 redact_words__address(const struct redact_words *w, u64 address);

#endif /* __PERF_REDACT_WORDS_H */
