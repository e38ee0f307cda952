// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin of QEMU's TCG that counts the instructions which a guest executes
 *
 * Each translated block has a counter, which QEMU increments inline when the block
 * runs. A visit of the address "mark" takes a copy of all counters; the next visit
 * writes what was added since to the file OUT.N, N from 1 on. One line is one block:
 * how often it ran, then the addresses of its instructions. profile-report.py reads it.
 *
 * The inline increments are not atomic, so the guest has one CPU. A block that QEMU
 * translates again, as after a change of its code, gets a second counter; the report
 * adds them.
 *
 * QEMU's Debian package has no header for plugins: see qemu-plugin.h.
 *
 * usage: qemu-system-x86_64 ... -plugin profile-plugin.so,mark=ADDRESS,out=FILE
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu-plugin.h"

#define EXPORT		__attribute__((visibility("default")))
#define MAX_PATH	4096

EXPORT int qemu_plugin_version = 1;

/**
 * struct block - a translated block, never freed: QEMU writes to its counter
 * @next: the block that was translated before
 * @executed: how often it ran
 * @marked: @executed at the last mark
 * @nr: entries of @address
 * @address: its instructions, by guest virtual address
 */
struct block {
	struct block	*next;
	uint64_t	executed;
	uint64_t	marked;
	size_t		nr;
	uint64_t	address[];
};

static struct block *blocks;
static uint64_t mark;
static char out[MAX_PATH];
static unsigned int visits;

static void fail(const char *what)
{
	fprintf(stderr, "profile-plugin: %s\n", what);
	exit(1);
}

static void begin(void)
{
	for (struct block *b = blocks; b; b = b->next)
		b->marked = b->executed;
}

static void end(unsigned int number)
{
	char path[MAX_PATH + 16];
	FILE *f;

	snprintf(path, sizeof(path), "%s.%u", out, number);
	f = fopen(path, "w");
	if (!f)
		fail("the file of the counts cannot be written");
	for (struct block *b = blocks; b; b = b->next) {
		if (b->executed == b->marked)
			continue;
		fprintf(f, "%llu", (unsigned long long)(b->executed - b->marked));
		for (size_t i = 0; i < b->nr; i++)
			fprintf(f, " %llx", (unsigned long long)b->address[i]);
		fputc('\n', f);
	}
	if (fclose(f))
		fail("the file of the counts could not be written whole");
}

static void at_mark(unsigned int vcpu, void *data)
{
	(void)vcpu;
	(void)data;
	visits++;
	if (visits % 2)
		begin();
	else
		end(visits / 2);
}

static void translated(uint64_t id, struct qemu_plugin_tb *tb)
{
	size_t nr = qemu_plugin_tb_n_insns(tb);
	struct block *b = calloc(1, sizeof(*b) + nr * sizeof(b->address[0]));

	(void)id;
	if (!b)
		fail("out of memory");
	b->nr = nr;
	for (size_t i = 0; i < nr; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		b->address[i] = qemu_plugin_insn_vaddr(insn);
		if (b->address[i] == mark)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, at_mark,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
	}
	b->next = blocks;
	blocks = b;
	qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &b->executed, 1);
}

EXPORT int qemu_plugin_install(uint64_t id, const struct qemu_info_t *info, int argc, char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "mark=", 5))
			mark = strtoull(argv[i] + 5, NULL, 16);
		else if (!strncmp(argv[i], "out=", 4))
			snprintf(out, sizeof(out), "%s", argv[i] + 4);
		else
			return -1;
	}
	if (!mark || !*out)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
