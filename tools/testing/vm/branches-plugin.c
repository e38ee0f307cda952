// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin of QEMU's TCG that counts the branches which a guest takes from one function to
 * others
 *
 * A translated block that does not follow the one before it in memory was branched to. The
 * count begins at each visit of the address "from", until "sure" is visited after it. At the
 * first visit of "to" after that, the file OUT is written: one line for each address that was
 * passed since, with the branches up to it.
 * The branch to "from" is not counted, that to the address is. A "rep" that QEMU executes as
 * several blocks is no branch, and a branch to the next instruction is none.
 *
 * The guest has one CPU. See profile-plugin.c for the other plugin.
 *
 * usage: qemu-system-x86_64 ... -plugin \
 *	branches-plugin.so,from=ADDRESS,sure=ADDRESS,to=ADDRESS,out=FILE,at=ADDRESS,...
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu-plugin.h"

#define EXPORT		__attribute__((visibility("default")))
#define MAX_PATH	4096
#define MAX_PASSED	16

EXPORT int qemu_plugin_version = 1;

/**
 * struct block - a translated block, never freed: QEMU has its address
 * @start: its first instruction, by guest virtual address
 * @last: its last instruction
 * @end: the address behind that
 */
struct block {
	uint64_t	start;
	uint64_t	last;
	uint64_t	end;
};

/**
 * struct passed - an address that is looked for
 * @address: the address, that of a function
 * @branches: up to the first visit since "from"
 * @visited: there was one
 */
struct passed {
	uint64_t	address;
	uint64_t	branches;
	bool		visited;
};

static uint64_t from, sure, to, branches;
static struct passed passed[MAX_PASSED];
static unsigned int nr_passed;
static char out[MAX_PATH];
static const struct block *before;
static bool counting, is_sure, written;

static void fail(const char *what)
{
	fprintf(stderr, "branches-plugin: %s\n", what);
	exit(1);
}

static void begin(void)
{
	branches = 0;
	counting = true;
	for (unsigned int i = 0; i < nr_passed; i++)
		passed[i].visited = false;
}

static void write_passed(void)
{
	FILE *f = fopen(out, "w");

	if (!f)
		fail("the file of the counts cannot be written");
	for (unsigned int i = 0; i < nr_passed; i++) {
		if (passed[i].visited)
			fprintf(f, "%llx %llu\n", (unsigned long long)passed[i].address,
				(unsigned long long)passed[i].branches);
	}
	if (fclose(f))
		fail("the file of the counts could not be written whole");
	written = true;
}

static void executed(unsigned int vcpu, void *data)
{
	const struct block *b = data;

	(void)vcpu;
	if (before && b->start != before->end && b->start != before->last)
		branches++;
	before = b;
}

static void visited(unsigned int vcpu, void *data)
{
	uint64_t address = *(uint64_t *)data;

	(void)vcpu;
	if (address == from && !is_sure)
		begin();
	if (!counting || written)
		return;
	for (unsigned int i = 0; i < nr_passed; i++) {
		if (passed[i].address != address || passed[i].visited)
			continue;
		passed[i].branches = branches;
		passed[i].visited = true;
	}
	is_sure |= address == sure;
	if (address == to && is_sure)
		write_passed();
}

static void translated(uint64_t id, struct qemu_plugin_tb *tb)
{
	size_t nr = qemu_plugin_tb_n_insns(tb);
	struct qemu_plugin_insn *insn;
	struct block *b = calloc(1, sizeof(*b));

	(void)id;
	if (!b)
		fail("out of memory");
	b->start = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0));
	insn = qemu_plugin_tb_get_insn(tb, nr - 1);
	b->last = qemu_plugin_insn_vaddr(insn);
	b->end = b->last + qemu_plugin_insn_size(insn);
	qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, QEMU_PLUGIN_CB_NO_REGS, b);

	for (size_t i = 0; i < nr; i++) {
		uint64_t address;

		insn = qemu_plugin_tb_get_insn(tb, i);
		address = qemu_plugin_insn_vaddr(insn);
		for (unsigned int j = 0; j < nr_passed; j++) {
			if (address == passed[j].address)
				qemu_plugin_register_vcpu_insn_exec_cb(insn, visited,
								       QEMU_PLUGIN_CB_NO_REGS,
								       &passed[j].address);
		}
	}
}

static void pass(uint64_t address)
{
	if (nr_passed == MAX_PASSED)
		fail("too many addresses");
	passed[nr_passed++].address = address;
}

EXPORT int qemu_plugin_install(uint64_t id, const struct qemu_info_t *info, int argc, char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "from=", 5))
			from = strtoull(argv[i] + 5, NULL, 16);
		else if (!strncmp(argv[i], "sure=", 5))
			sure = strtoull(argv[i] + 5, NULL, 16);
		else if (!strncmp(argv[i], "to=", 3))
			to = strtoull(argv[i] + 3, NULL, 16);
		else if (!strncmp(argv[i], "at=", 3))
			pass(strtoull(argv[i] + 3, NULL, 16));
		else if (!strncmp(argv[i], "out=", 4))
			snprintf(out, sizeof(out), "%s", argv[i] + 4);
		else
			return -1;
	}
	if (!from || !sure || !to || !*out)
		return -1;
	pass(from);
	if (sure != from && sure != to)
		pass(sure);
	pass(to);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
