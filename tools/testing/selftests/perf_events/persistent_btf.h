/* SPDX-License-Identifier: GPL-2.0 */
/* BPF programs that are written out, for the tests of persistent events. */
#ifndef SELFTESTS_PERF_EVENTS_PERSISTENT_BTF_H
#define SELFTESTS_PERF_EVENTS_PERSISTENT_BTF_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/bpf.h>
#include <linux/btf.h>

#define VMLINUX		"/sys/kernel/btf/vmlinux"

static inline int bpf(int cmd, union bpf_attr *attr)
{
	return syscall(__NR_bpf, cmd, attr, sizeof(*attr));
}

/* Bytes after a struct btf_type, or -1. */
static inline long btf_extra(const struct btf_type *type)
{
	unsigned int nr = BTF_INFO_VLEN(type->info);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_DATASEC:
	case BTF_KIND_ENUM64:
		return nr * 12;
	case BTF_KIND_ENUM:
	case BTF_KIND_FUNC_PROTO:
		return nr * 8;
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return 0;
	default:
		return -1;
	}
}

/* The id of a function in the kernel's BTF, or 0. */
static inline int find_func(const char *name)
{
	const struct btf_header *hdr;
	const struct btf_type *type;
	const char *strings, *end;
	size_t size = 64 << 20;
	int fd = open(VMLINUX, O_RDONLY), id = 0, found = 0;
	char *btf = malloc(size);
	ssize_t len, got = 0;

	while (fd >= 0 && btf && (len = read(fd, btf + got, size - got)) > 0)
		got += len;
	close(fd);
	if (got < (ssize_t)sizeof(*hdr))
		goto out;

	hdr = (void *)btf;
	strings = btf + hdr->hdr_len + hdr->str_off;
	type = (void *)(btf + hdr->hdr_len + hdr->type_off);
	end = (char *)type + hdr->type_len;
	while ((char *)type < end) {
		long extra = btf_extra(type);

		id++;
		if (extra < 0)
			break;
		if (BTF_INFO_KIND(type->info) == BTF_KIND_FUNC &&
		    !strcmp(strings + type->name_off, name))
			found = id;
		type = (void *)((char *)(type + 1) + extra);
	}
out:
	free(btf);
	return found;
}

static char verifier_log[65536];

/* Loads the program; @attr has its type, and what it is attached to. */
static inline int load_insns(union bpf_attr *attr, const struct bpf_insn *insns, uint32_t nr)
{
	attr->insns = (uintptr_t)insns;
	attr->insn_cnt = nr;
	attr->license = (uintptr_t)"GPL";
	attr->log_level = 1;
	attr->log_buf = (uintptr_t)verifier_log;
	attr->log_size = sizeof(verifier_log);
	return bpf(BPF_PROG_LOAD, attr);
}

#endif /* SELFTESTS_PERF_EVENTS_PERSISTENT_BTF_H */
