/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of QEMU's plugin interface that the plugins here use: version 1, see "TCG
 * Plugins" in QEMU's documentation
 */
#ifndef _TOOLS_TESTING_VM_QEMU_PLUGIN_H
#define _TOOLS_TESTING_VM_QEMU_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

struct qemu_info_t;
struct qemu_plugin_insn;
struct qemu_plugin_tb;

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };

typedef void (*qemu_plugin_tb_cb)(uint64_t id, struct qemu_plugin_tb *tb);
typedef void (*qemu_plugin_insn_cb)(unsigned int vcpu, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, qemu_plugin_tb_cb cb);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, qemu_plugin_insn_cb cb,
					  enum qemu_plugin_cb_flags flags, void *data);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, enum qemu_plugin_op op,
					      void *counter, uint64_t value);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_plugin_insn_cb cb,
					    enum qemu_plugin_cb_flags flags, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

/* What QEMU calls. */
extern int qemu_plugin_version;
int qemu_plugin_install(uint64_t id, const struct qemu_info_t *info, int argc, char **argv);

#endif /* _TOOLS_TESTING_VM_QEMU_PLUGIN_H */
