// SPDX-License-Identifier: GPL-2.0
/*
 * Have patched kernel text reach every CPU of a machine that QEMU translates on several
 * threads.
 *
 * What is wrong
 * -------------
 * A thread of QEMU's TCG that translates a page of code reads the bytes, and a while later
 * makes the translation known. A store of another CPU into that page drops the translations
 * that are known, and then stores. Whoever reads before the store and makes known behind
 * the drop leaves a translation of the old bytes, which stays until somebody writes to them
 * once more. Real CPUs never do this: a serialising instruction behind the store makes them
 * fetch anew, and text_poke_bp_batch() has each CPU execute one. A static key that is
 * switched while another CPU runs over it then leaves the breakpoint of the middle step for
 * good, and the next one who comes there dies of "Oops: int3". Seen with QEMU 7.2 and 10.0
 * (tcg,thread=multi), in the unpatched kernel within 3 seconds, 7 of 7 times.
 *
 * What is done
 * ------------
 * Behind each step of text_poke_bp_batch() the bytes are stored once more, with the value
 * that they have by now, when every CPU has answered the interrupt that followed the first
 * store. A CPU is one thread: while it answers it does not translate, so what it read before
 * the first store it has made known, and the second store drops it; what it reads from here
 * on are the new bytes. The breakpoint's handler is still armed meanwhile, so the old
 * translation may be run until then.
 *
 *	text_poke_bp_batch()		batch_begins(): nothing is to be stored again
 *	  __text_poke() ...		note_poke(): note where
 *	  on_each_cpu(do_sync_core)	poke_again(): do that; store again; go on with the same
 *	  ... two more such steps
 *	  returns			batch_ends()
 *
 * All of it runs under text_mutex, which also orders what is noted here. The probes stand at
 * the entries of functions, where ftrace calls them; the calls that poke_again() makes of
 * the same functions are nested in a probe and therefore reach none.
 *
 * Text that is patched otherwise is not looked after: breakpoints of kprobes in the middle
 * of a function, BPF programs while nobody runs them yet.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/smp.h>
#include <linux/uaccess.h>

/* The longest instruction that is patched, and how many text_poke_bp_batch() may take. */
#define MAX_INSN	16
#define MAX_BATCH	512

static void *(*text_poke_fn)(void (*copy)(void *dst, const void *src, size_t len),
			     void *addr, const void *src, size_t len);
static smp_call_func_t sync_core_fn;

static struct {
	void *addr;
	size_t len;
} poked[MAX_BATCH];

static unsigned int nr_poked;
static bool in_batch;
static unsigned long nr_again;

static int batch_begins(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	nr_poked = 0;
	in_batch = true;
	return 0;
}

static int batch_ends(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	in_batch = false;
	return 0;
}

static int note_poke(struct kprobe *kp, struct pt_regs *regs)
{
	void *addr = (void *)regs_get_kernel_argument(regs, 1);
	size_t len = regs_get_kernel_argument(regs, 3);

	if (!in_batch)
		return 0;
	if (WARN_ON_ONCE(nr_poked == MAX_BATCH || len > MAX_INSN))
		return 0;
	poked[nr_poked].addr = addr;
	poked[nr_poked++].len = len;
	return 0;
}

static void copy_insn(void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
}

static int poke_again(struct kprobe *kp, struct pt_regs *regs)
{
	u8 insn[MAX_INSN];
	unsigned int i;

	if (!in_batch || regs_get_kernel_argument(regs, 1) != (unsigned long)sync_core_fn)
		return 0;
	on_each_cpu(sync_core_fn, NULL, 1);
	for (i = 0; i < nr_poked; i++) {
		memcpy(insn, poked[i].addr, poked[i].len);
		text_poke_fn(copy_insn, poked[i].addr, insn, poked[i].len);
	}
	nr_again += nr_poked;
	nr_poked = 0;
	return 0;
}

static struct kretprobe batch_probe = {
	.kp.symbol_name	= "text_poke_bp_batch",
	.entry_handler	= batch_begins,
	.handler	= batch_ends,
};

static struct kprobe poke_probe = {
	.symbol_name	= "__text_poke",
	.pre_handler	= note_poke,
};

static struct kprobe sync_probe = {
	.symbol_name	= "on_each_cpu_cond_mask",
	.pre_handler	= poke_again,
};

/* Where a function is that modules cannot call by its name. */
static void *find_function(const char *name)
{
	struct kprobe kp = { .symbol_name = name };

	if (register_kprobe(&kp))
		return NULL;
	unregister_kprobe(&kp);
	return kp.addr;
}

static int __init poke_again_init(void)
{
	struct kprobe *probes[] = { &poke_probe, &sync_probe };
	int err;

	text_poke_fn = find_function("__text_poke");
	sync_core_fn = find_function("do_sync_core");
	if (!text_poke_fn || !sync_core_fn)
		return -ENOENT;
	/* Its name since Linux 6.16 */
	if (!find_function(batch_probe.kp.symbol_name))
		batch_probe.kp.symbol_name = "smp_text_poke_batch_finish";
	err = register_kprobes(probes, ARRAY_SIZE(probes));
	if (err)
		return err;
	/* The last one: it lets the others work. */
	err = register_kretprobe(&batch_probe);
	if (err)
		unregister_kprobes(probes, ARRAY_SIZE(probes));
	return err;
}

static void __exit poke_again_exit(void)
{
	struct kprobe *probes[] = { &poke_probe, &sync_probe };

	unregister_kretprobe(&batch_probe);
	unregister_kprobes(probes, ARRAY_SIZE(probes));
	pr_info("%lu times\n", nr_again);
}

module_init(poke_again_init);
module_exit(poke_again_exit);
MODULE_DESCRIPTION("Store patched kernel text twice, for multi-threaded TCG");
MODULE_LICENSE("GPL");
