// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of LBR call stacks, on simulated registers
 *
 * lbr.c is compiled a second time, into this file, with another x86_pmu, other per-CPU
 * data and other registers: what it reads and writes by rdmsrq(), wrmsrq(), xsaves() and
 * xrstors() is struct sim_lbr of the simulated CPU that "runs" the test. All of its
 * global names get a prefix, so that the kernel's own lbr.c is left alone.
 *
 * The simulated hardware is the call-stack mode of the SDM: a call pushes an entry, a
 * return pops the newest one, if recording is on. Tasks call and return at random, move
 * between CPUs, sleep, exit and are replaced. The order of the calls into lbr.c around a
 * switch is that of kernel/events/core.c.
 *
 * What must hold is told without looking at how lbr.c does it. Each task has, beside the
 * registers that it shares with all others, private ones that no switch touches. What
 * lbr.c reads at a sample must equal what the private registers hold, in depth and in
 * every entry. Private registers are cleared where the history of the task is not known:
 *
 *  - a task is scheduled in, and its history was not saved when it was scheduled out
 *    last, as it had no data then, or nobody recorded,
 *  - the last event that records the running task goes.
 *
 * A snapshot of lbr_snapshot.c must equal the same, or be none where nothing is known. NMIs
 * take some, too, between any two writes to a register: these may be short, but must not
 * have a call of another task.
 *
 * A sample is taken in a PMI. With FREEZE_LBRS_ON_PMI, that stops the LBRs.
 *
 * To lbr.c, fork() is a task without data in the place of another one, and exec() a call
 * stack that starts anew: they are no more here. That events are inherited, and what a
 * set-uid exec() leaves, is tested in the kselftest perf_ctx_data, on a software PMU.
 *
 * This shows neither timing nor what real processors do beyond the SDM.
 */

/* The names of lbr.c that the kernel has already. */
#define x86_pmu				sim_x86_pmu
#define vlbr_constraint			sim_vlbr_constraint
#define x86_perf_get_lbr		sim_x86_perf_get_lbr
#define x86_get_pmu			sim_get_pmu
#define branch_type			sim_branch_type
#define lbr_from_signext_quirk_wr	sim_lbr_from_signext_quirk_wr
#define release_lbr_buffers		sim_release_lbr_buffers
#define reserve_lbr_buffers		sim_reserve_lbr_buffers
#define intel_pmu_setup_lbr_filter	sim_setup_lbr_filter
#define intel_pmu_store_pebs_lbrs	sim_store_pebs_lbrs
#define intel_pmu_arch_lbr_init		sim_arch_lbr_init
#define intel_pmu_lbr_add		sim_lbr_add
#define intel_pmu_lbr_del		sim_lbr_del
#define intel_pmu_lbr_disable_all	sim_lbr_disable_all
#define intel_pmu_lbr_enable_all	sim_lbr_enable_all
#define intel_pmu_lbr_init		sim_lbr_init
#define intel_pmu_lbr_init_atom		sim_lbr_init_atom
#define intel_pmu_lbr_init_core		sim_lbr_init_core
#define intel_pmu_lbr_init_hsw		sim_lbr_init_hsw
#define intel_pmu_lbr_init_knl		sim_lbr_init_knl
#define intel_pmu_lbr_init_nhm		sim_lbr_init_nhm
#define intel_pmu_lbr_init_skl		sim_lbr_init_skl
#define intel_pmu_lbr_init_slm		sim_lbr_init_slm
#define intel_pmu_lbr_init_snb		sim_lbr_init_snb
#define intel_pmu_lbr_read		sim_lbr_read
#define intel_pmu_lbr_read_32		sim_lbr_read_32
#define intel_pmu_lbr_read_64		sim_lbr_read_64
#define intel_pmu_lbr_reset		sim_lbr_reset
#define intel_pmu_lbr_reset_32		sim_lbr_reset_32
#define intel_pmu_lbr_reset_64		sim_lbr_reset_64
#define intel_pmu_lbr_restore		sim_lbr_restore
#define intel_pmu_lbr_save		sim_lbr_save
#define intel_pmu_lbr_save_brstack	sim_lbr_save_brstack
#define intel_pmu_lbr_sched_task	sim_lbr_sched_task
#define intel_pmu_lbr_snapshot_init	sim_lbr_snapshot_init
#define intel_pmu_lbr_swap_task_ctx	sim_lbr_swap_task_ctx

#include <kunit/test.h>
#include <linux/cpufeature.h>
#include <linux/perf_event.h>
#include <linux/prandom.h>
#include <linux/slab.h>

#include <asm/cpu.h>
#include <asm/cpu_device_id.h>
#include <asm/fpu/xstate.h>
#include <asm/intel_ds.h>
#include <asm/microcode.h>		/* has cpuid(), in newer kernels */
#include <asm/msr.h>
#include <asm/perf_event.h>

/* Bases have neither snapshots nor data with tags. */
#ifdef PERF_ATTACH_CTX_DATA
#define SIM_IS_PATCHED		1
#else
#define SIM_IS_PATCHED		0
#endif

/* Where the data of a task lies, see sim_set_data(); in the event's context before 6.16. */
#if SIM_IS_PATCHED || defined(PERF_ATTACH_GLOBAL_DATA)
#define SIM_DATA_OF_TASK	1
#else
#define SIM_DATA_OF_TASK	0
#endif

#define SIM_CPUS	4
#define SIM_TASKS	50
#define SIM_SWITCHES	(IS_ENABLED(CONFIG_KASAN) ? 4000 : 100000)
#define SIM_MAX_LBR	32
#define SIM_MAX_DEPTH	60

struct cpu_hw_events;

static u64 sim_rdmsr(u32 msr);
static void sim_wrmsr(u32 msr, u64 val);
static bool sim_has(unsigned int feature);
static struct cpu_hw_events *sim_cpuc(int cpu);
static struct cpu_hw_events *sim_cpuc_of(const void __percpu *hw_events, int cpu);
static int sim_processor_id(void);
static int *sim_first_cpu(int *cpu);
static struct task_struct *sim_current(void);
static void sim_cpuid(unsigned int op, unsigned int *eax, unsigned int *ebx, unsigned int *ecx,
		      unsigned int *edx);
static int sim_xfeature_size(int nr);
static void sim_xsaves(struct xregs_state *xsave, u64 mask);
static void sim_xrstors(struct xregs_state *xsave, u64 mask);

#undef rdmsrl
#undef rdmsrq
#undef wrmsrl
#undef wrmsrq
#undef wrmsrl_safe
#undef wrmsrq_safe
#undef static_cpu_has
#undef boot_cpu_has
#undef cpu_feature_enabled
#undef this_cpu_ptr
#undef per_cpu_ptr
#undef smp_processor_id
#undef cpu_to_node
#undef for_each_possible_cpu
#undef current
#undef cpuid
#undef pr_cont
#undef __init
#undef EXPORT_SYMBOL_GPL
#define rdmsrq(msr, val)		((val) = sim_rdmsr(msr))
#define wrmsrq(msr, val)		sim_wrmsr(msr, val)
#define wrmsrq_safe(msr, val)		({ sim_wrmsr(msr, val); 0; })
/* Their names until Linux 6.15 */
#define rdmsrl				rdmsrq
#define wrmsrl				wrmsrq
#define wrmsrl_safe			wrmsrq_safe
#define native_read_msr(msr)		sim_rdmsr(msr)
#define static_cpu_has(feature)		sim_has(feature)
#define boot_cpu_has(feature)		sim_has(feature)
#define cpu_feature_enabled(feature)	sim_has(feature)
#define this_cpu_ptr(...)		sim_cpuc(sim_processor_id())
#define per_cpu_ptr(...)		sim_cpuc_of(__VA_ARGS__)
#define smp_processor_id()		sim_processor_id()
#define cpu_to_node(...)		NUMA_NO_NODE
#define for_each_possible_cpu(cpu)	\
	for (int *sim_each = sim_first_cpu(&(cpu)); *sim_each < SIM_CPUS; ++*sim_each)
#define current				sim_current()
#define cpuid				sim_cpuid
#define pr_cont				no_printk
#define __init
#define EXPORT_SYMBOL_GPL		sim_nothing
#define sim_nothing(...)
#define setup_clear_cpu_cap(...)	do { } while (0)
#define perf_sched_cb_inc(...)		do { } while (0)
#define perf_sched_cb_dec(...)		do { } while (0)
#define xfeature_size			sim_xfeature_size
#define xsaves				sim_xsaves
#define xrstors				sim_xrstors

#include "lbr.c"
#if SIM_IS_PATCHED
#include "lbr_snapshot.c"
#endif

#undef current
#define current				get_current()

/**
 * struct sim_lbr - the registers of one CPU, or a task's private ones
 * @select: LBR_SELECT, or LBR_CTL
 * @debugctl: DEBUGCTL
 * @tos: index of the newest entry; 0 for Arch LBR, where that never changes
 * @frozen: a PMI has stopped them, where that does not clear DEBUGCTL.LBR
 * @entry: the entries, by the index of their registers
 */
struct sim_lbr {
	u64			select;
	u64			debugctl;
	u64			tos;
	bool			frozen;
	struct lbr_entry	entry[SIM_MAX_LBR];
};

/**
 * struct sim_model - what the processor is
 * @name: of the test case
 * @nr: depth of its LBRs
 * @version: of its performance monitoring
 * @arch: it has Arch LBR
 * @xsave: it saves them by XSAVES
 * @format: PERF_CAPABILITIES' LBR format, where it is not Arch LBR
 */
struct sim_model {
	const char	*name;
	unsigned int	nr;
	unsigned int	version;
	bool		arch;
	bool		xsave;
	unsigned int	format;
};

/**
 * struct sim_task - a task that calls and returns
 * @task: of it only perf_ctx_data and the number of switches are used
 * @private: what its LBRs would hold, had it a CPU of its own
 * @data: what the PMU saves of it, or NULL
 * @own: its per-task event, or NULL
 * @epc: that event's context
 * @cpu: where it runs, or NULL
 * @depth: of its call stack
 * @calls: how often it has called, for addresses that differ
 * @saved: its history was saved when it was scheduled out last
 */
struct sim_task {
	struct task_struct		*task;
	struct sim_lbr			private;
	void				*data;
	struct perf_event		*own;
	struct perf_event_pmu_context	*epc;
#if SIM_DATA_OF_TASK
	struct perf_ctx_data		ctx_data;
#endif
	struct sim_cpu			*cpu;
	unsigned int			depth;
	u64				calls;
	bool				saved;
};

/**
 * struct sim_cpu - a CPU
 * @hw: its registers
 * @cpuc: lbr.c's per-CPU data
 * @er: what the events on it select
 * @epc: the context of its events
 * @wide: its system-wide event
 * @wide_on: that is scheduled in
 * @running: the task that runs; NULL: it is idle
 */
struct sim_cpu {
	struct sim_lbr			hw;
	struct cpu_hw_events		*cpuc;
	struct er_account		er;
	struct perf_event_pmu_context	*epc;
	struct perf_event		*wide;
	bool				wide_on;
	struct sim_task			*running;
};

/* The whole machine. KUnit runs one case at a time. */
static struct {
	struct kunit		*test;
	const struct sim_model	*model;
	struct sim_cpu		cpus[SIM_CPUS];
	struct sim_cpu		*cpu;		/* the one that executes lbr.c */
	struct sim_task		tasks[SIM_TASKS];
	struct rnd_state	rnd;
	struct pmu		pmu;
	void			*freed[SIM_TASKS];	/* data of tasks that have exited */
	unsigned int		nr_freed;
	struct task_struct	idle;
	u64			samples;
	u64			entries;
	u64			nmis;		/* with a snapshot */
	u64			writes;		/* of registers */
	bool			immortal;	/* no task exits */
	unsigned int		wrong;
} sim;

struct x86_pmu sim_x86_pmu;

static struct cpu_hw_events *sim_cpuc(int cpu)
{
	return sim.cpus[cpu].cpuc;
}

static struct cpu_hw_events *sim_cpuc_of(const void __percpu *hw_events, int cpu)
{
	return sim_cpuc(cpu);
}

static int sim_processor_id(void)
{
	return sim.cpu - sim.cpus;
}

/* The kernel may have more CPUs than are simulated, or fewer. */
static int *sim_first_cpu(int *cpu)
{
	*cpu = 0;
	return cpu;
}

static __maybe_unused struct task_struct *sim_current(void)
{
	return sim.cpu->running ? sim.cpu->running->task : &sim.idle;
}

struct pmu *x86_get_pmu(unsigned int cpu)
{
	return &sim.pmu;
}

/* The real one reads the instruction at @from. */
int branch_type(unsigned long from, unsigned long to, int abort)
{
	return X86_BR_USER | X86_BR_CALL;
}

static void sim_cpuid(unsigned int op, unsigned int *eax, unsigned int *ebx, unsigned int *ecx,
		      unsigned int *edx)
{
	union cpuid28_eax a = { .split = { .lbr_depth_mask = 1 << (sim.model->nr / 8 - 1),
					   .lbr_deep_c_reset = 1 } };
	union cpuid28_ebx b = { .split = { .lbr_cpl = 1, .lbr_filter = 1, .lbr_call_stack = 1 } };
	union cpuid28_ecx c = { .split = { .lbr_mispred = 1, .lbr_timed_lbr = 1,
					   .lbr_br_type = 1 } };

	*eax = a.full;
	*ebx = b.full;
	*ecx = c.full;
	*edx = 0;
}

static int sim_xfeature_size(int nr)
{
	return sim.model->xsave ? sizeof(struct arch_lbr_state) +
				  sim.model->nr * sizeof(struct lbr_entry) : 0;
}

static void sim_xsaves(struct xregs_state *xsave, u64 mask)
{
	struct arch_lbr_state *state;

	state = &container_of(xsave, struct x86_perf_task_context_arch_lbr_xsave, xsave)->lbr;
	KUNIT_EXPECT_EQ(sim.test, mask, (u64)XFEATURE_MASK_LBR);
	state->lbr_ctl = sim.cpu->hw.select;
	state->lbr_depth = sim.model->nr;
	memcpy(state->entries, sim.cpu->hw.entry, sim.model->nr * sizeof(state->entries[0]));
}

static void sim_xrstors(struct xregs_state *xsave, u64 mask)
{
	struct arch_lbr_state *state;

	state = &container_of(xsave, struct x86_perf_task_context_arch_lbr_xsave, xsave)->lbr;
	KUNIT_EXPECT_EQ(sim.test, mask, (u64)XFEATURE_MASK_LBR);
	sim.cpu->hw.select = state->lbr_ctl;
	memcpy(sim.cpu->hw.entry, state->entries, sim.model->nr * sizeof(state->entries[0]));
}

/* The registers */

static bool sim_has(unsigned int feature)
{
	switch (feature) {
	case X86_FEATURE_ARCH_LBR:
		return sim.model->arch;
	case X86_FEATURE_XSAVES:
		return sim.model->xsave;
	default:
		return false;
	}
}

static u64 *sim_register(u32 msr)
{
	struct sim_lbr *hw = &sim.cpu->hw;
	unsigned int nr = sim.model->nr;

	if (msr == MSR_IA32_DEBUGCTLMSR)
		return &hw->debugctl;
	if (msr == (sim.model->arch ? MSR_ARCH_LBR_CTL : MSR_LBR_SELECT))
		return &hw->select;
	if (!sim.model->arch && msr == MSR_LBR_TOS)
		return &hw->tos;
	if (msr - x86_pmu.lbr_from < nr)
		return &hw->entry[msr - x86_pmu.lbr_from].from;
	if (msr - x86_pmu.lbr_to < nr)
		return &hw->entry[msr - x86_pmu.lbr_to].to;
	if (x86_pmu.lbr_info && msr - x86_pmu.lbr_info < nr)
		return &hw->entry[msr - x86_pmu.lbr_info].info;
	KUNIT_FAIL(sim.test, "no such register: %#x", msr);
	return &hw->debugctl;
}

static u32 sim_random(u32 below)
{
	return prandom_u32_state(&sim.rnd) % below;
}

static u64 sim_first_address(const struct sim_task *t)
{
	return 0x10000000000ULL * (t - sim.tasks + 1);
}

static struct perf_branch_stack *sim_snapshot(void)
{
#if SIM_IS_PATCHED
	/* Not before sim_begin() has made them. */
	return sim.cpu->cpuc ? lbr_snapshot_take() : NULL;
#else
	return NULL;
#endif
}

/* An NMI that takes a snapshot: all of its calls are of the running task. */
static void sim_nmi(void)
{
	struct perf_branch_stack *stack = sim_snapshot();
	struct sim_task *t = sim.cpu->running;
	u64 i;

	if (!stack)
		return;
	sim.nmis++;
	for (i = 0; i < stack->nr; i++) {
		u64 from = stack->entries[i].from;

		if (t && from >= sim_first_address(t) && from < sim_first_address(t + 1))
			continue;
		if (!sim.wrong++)
			KUNIT_FAIL(sim.test, "NMI in task %td: from %#llx", t ? t - sim.tasks : -1,
				   from);
		return;
	}
}

static u64 sim_rdmsr(u32 msr)
{
	return *sim_register(msr);
}

static void sim_wrmsr(u32 msr, u64 val)
{
	if (SIM_IS_PATCHED && !sim_random(64))
		sim_nmi();
	sim.writes++;
	if (sim.model->arch && msr == MSR_ARCH_LBR_DEPTH) {
		KUNIT_EXPECT_EQ(sim.test, val, (u64)sim.model->nr);
		memset(sim.cpu->hw.entry, 0, sizeof(sim.cpu->hw.entry));
		return;
	}
	*sim_register(msr) = val;
}

static bool sim_is_recording(const struct sim_lbr *hw)
{
	if (hw->frozen)
		return false;
	return sim.model->arch ? hw->select & ARCH_LBR_CTL_LBREN : hw->debugctl & DEBUGCTLMSR_LBR;
}

/* With FREEZE_LBRS_ON_PMI the processor stops them, by DEBUGCTL.LBR before version 4. */
static void sim_begin_pmi(struct sim_lbr *hw)
{
	if (!(hw->debugctl & DEBUGCTLMSR_FREEZE_LBRS_ON_PMI))
		return;
	if (sim.model->version >= 4)
		hw->frozen = true;
	else
		hw->debugctl &= ~DEBUGCTLMSR_LBR;
}

/* The end of intel_pmu_handle_irq(). Since version 4, the acknowledgment unfreezes. */
static void sim_end_pmi(struct sim_lbr *hw)
{
	hw->frozen = false;
	intel_pmu_lbr_enable_all(true);
}

static void sim_push(struct sim_lbr *lbr, struct lbr_entry entry)
{
	if (sim.model->arch) {
		memmove(&lbr->entry[1], &lbr->entry[0],
			(sim.model->nr - 1) * sizeof(lbr->entry[0]));
	} else {
		lbr->tos = (lbr->tos + 1) % sim.model->nr;
	}
	lbr->entry[lbr->tos] = entry;
}

static void sim_pop(struct sim_lbr *lbr)
{
	if (sim.model->arch) {
		memmove(&lbr->entry[0], &lbr->entry[1],
			(sim.model->nr - 1) * sizeof(lbr->entry[0]));
		memset(&lbr->entry[sim.model->nr - 1], 0, sizeof(lbr->entry[0]));
	} else {
		memset(&lbr->entry[lbr->tos], 0, sizeof(lbr->entry[0]));
		lbr->tos = (lbr->tos + sim.model->nr - 1) % sim.model->nr;
	}
}

static void sim_clear(struct sim_lbr *lbr)
{
	memset(lbr->entry, 0, sizeof(lbr->entry));
}

/* The tasks */

static void sim_call(struct sim_task *t)
{
	u64 from = sim_first_address(t) + ++t->calls * 16;
	struct lbr_entry entry = { .from = from, .to = from + 0x1000000 };

	/* A call, by its type in LBR_INFO. */
	if (x86_pmu.lbr_info)
		entry.info = (u64)ARCH_LBR_BR_TYPE_NEAR_REL_CALL << LBR_INFO_BR_TYPE_OFFSET;
	t->depth++;
	if (!sim_is_recording(&t->cpu->hw))
		return;
	sim_push(&t->private, entry);
	/* How long it took since the branch before */
	if (x86_pmu.lbr_to_cycles)
		entry.to |= (t->calls * 0x4321) << 48;
	sim_push(&t->cpu->hw, entry);
}

static void sim_return(struct sim_task *t)
{
	t->depth--;
	if (!sim_is_recording(&t->cpu->hw))
		return;
	sim_pop(&t->cpu->hw);
	sim_pop(&t->private);
}

/* Calls and returns that lead somewhere, not a walk around one depth. */
static void sim_execute(struct sim_task *t)
{
	unsigned int want = sim_random(SIM_MAX_DEPTH), steps = sim_random(24);

	while (steps--) {
		if (!t->depth || (t->depth < SIM_MAX_DEPTH && t->depth <= want))
			sim_call(t);
		else
			sim_return(t);
	}
}

static void sim_set_data(struct sim_task *t, void *data)
{
	t->data = data;
#if SIM_DATA_OF_TASK
	t->ctx_data.data = data;
#if SIM_IS_PATCHED
	t->ctx_data.cache = sim.pmu.task_ctx_cache;
#else
	t->ctx_data.ctx_cache = sim.pmu.task_ctx_cache;
#endif
	RCU_INIT_POINTER(t->task->perf_ctx_data, data ? &t->ctx_data : NULL);
#else
	if (t->own)
		t->epc->task_ctx_data = data;
#endif
}

/* As ctx_data.c does it: for a per-task event when it is made, else on the way to user space. */
static void sim_give_data(struct sim_task *t)
{
	void *data;

	if (t->data)
		return;
	/* The memory of the task that exited last, as a slab's would be. */
	if (sim.nr_freed) {
		data = sim.freed[--sim.nr_freed];
		memset(data, 0, kmem_cache_size(sim.pmu.task_ctx_cache));
	} else {
		data = kmem_cache_zalloc(sim.pmu.task_ctx_cache, GFP_KERNEL);
	}
	KUNIT_ASSERT_NOT_NULL(sim.test, data);
	sim_set_data(t, data);
}

static void sim_take_data(struct sim_task *t)
{
	if (!t->data)
		return;
	sim.freed[sim.nr_freed++] = t->data;
	sim_set_data(t, NULL);
}

/* Scheduling, with the calls into lbr.c that core.c makes, in its order */

static bool sim_is_recorded(struct sim_cpu *c)
{
	return c->wide_on || (c->running && c->running->own);
}

static void sim_sched_cb(struct sim_cpu *c, struct sim_task *t, bool sched_in)
{
	if (t && t->own)
		intel_pmu_lbr_sched_task(t->epc, t->task, sched_in);
	else if (c->wide_on)
		intel_pmu_lbr_sched_task(c->epc, t ? t->task : &sim.idle, sched_in);
}

static void sim_add(struct sim_cpu *c, struct perf_event *event)
{
	c->er.config = event->hw.branch_reg.config;
	c->cpuc->lbr_sel = &c->er;
	intel_pmu_lbr_add(event);
	event->total_time_running = 1;
}

static void sim_sched_out(struct sim_cpu *c)
{
	struct sim_task *t = c->running;

	if (t)
		t->task->nvcsw++;
	intel_pmu_lbr_disable_all();
	sim_sched_cb(c, t, false);
	if (t) {
		t->saved = sim_is_recorded(c) && t->data;
		if (t->own)
			intel_pmu_lbr_del(t->own);
		t->cpu = NULL;
	}
	c->running = NULL;
	intel_pmu_lbr_enable_all(false);
}

static void sim_sched_in(struct sim_cpu *c, struct sim_task *t)
{
	intel_pmu_lbr_disable_all();
	c->running = t;
	if (t) {
		t->cpu = c;
		if (t->own)
			sim_add(c, t->own);
		if (sim_is_recorded(c)) {
			if (!t->saved)
				sim_clear(&t->private);
			t->saved = false;
		}
	}
	sim_nmi();
	sim_sched_cb(c, t, true);
	intel_pmu_lbr_enable_all(false);
}

/* Two tasks with contexts that are clones swap these, and their events stay. */
static void sim_swap_contexts(struct sim_cpu *c, struct sim_task *next)
{
	struct sim_task *t = c->running;

	t->task->nivcsw++;
	intel_pmu_lbr_disable_all();
	sim_sched_cb(c, t, false);
	t->saved = t->data;
#if !SIM_DATA_OF_TASK
	intel_pmu_lbr_swap_task_ctx(t->epc, next->epc);
#endif
	swap(t->own, next->own);
	swap(t->epc, next->epc);
	t->cpu = NULL;
	c->running = next;
	next->cpu = c;
	if (!next->saved)
		sim_clear(&next->private);
	next->saved = false;
	sim_nmi();
	sim_sched_cb(c, next, true);
	intel_pmu_lbr_enable_all(false);
}

static void sim_switch(struct sim_cpu *c)
{
	struct sim_task *next = &sim.tasks[sim_random(SIM_TASKS)];

	/* One switch in eight is to the idle task, whose CPU may sleep deeply. */
	if (next->cpu || !sim_random(8))
		next = NULL;
	if (next && next->own && c->running && c->running->own && !sim_random(2)) {
		sim_swap_contexts(c, next);
	} else {
		sim_sched_out(c);
		if (!sim_random(4)) {
			sim_sched_in(c, NULL);
			if (!sim_random(2))
				sim_clear(&c->hw);
			sim_sched_out(c);
		}
		sim_sched_in(c, next);
	}
	/* The allocation fails now and then. */
	if (next && c->wide_on && sim_random(8))
		sim_give_data(next);
}

static void sim_wide(struct sim_cpu *c, bool on)
{
	bool recorded = sim_is_recorded(c);

	if (c->wide_on == on)
		return;
	intel_pmu_lbr_disable_all();
	if (on)
		sim_add(c, c->wide);
	else
		intel_pmu_lbr_del(c->wide);
	c->wide_on = on;
	intel_pmu_lbr_enable_all(false);
	if (c->running && recorded != sim_is_recorded(c))
		sim_clear(&c->running->private);
}

/* A task exits, and another one is made in its place. */
static void sim_replace(struct sim_task *t)
{
	struct sim_cpu *c = t->cpu;

	/* What it had is freed before it is scheduled out for the last time. */
	sim_take_data(t);
	if (c) {
		sim.cpu = c;
		sim_sched_out(c);
		sim_sched_in(c, NULL);
	}
	sim_clear(&t->private);
	t->depth = 0;
	t->saved = false;
	if (t->own) {
		t->own->total_time_running = 0;
		sim_give_data(t);
	}
}

static void sim_expect(struct sim_task *t, const char *what, u64 nr,
		       const struct perf_branch_entry *entries)
{
	struct sim_lbr *want = &t->private;
	unsigned int i, wanted = 0;
	bool same = true;

	for (i = 0; i < sim.model->nr; i++) {
		unsigned int at = sim.model->arch ? i : (want->tos - i) % sim.model->nr;

		if (!want->entry[at].from)
			break;
		wanted++;
		same &= i < nr && entries[i].from == want->entry[at].from &&
			entries[i].to == want->entry[at].to;
	}
	same &= nr == wanted;
	if (same)
		return;
	if (!sim.wrong++)
		KUNIT_FAIL(sim.test, "task %td on CPU %d: %s%llu entries, %u expected; sample %llu",
			   t - sim.tasks, smp_processor_id(), what, nr, wanted, sim.samples);
}

/* What a sample holds is what the task's private registers hold. So does a snapshot. */
static void sim_sample(struct sim_cpu *c)
{
	struct perf_branch_stack *stack;

	sim.cpu = c;
	sim_begin_pmi(&c->hw);
	intel_pmu_lbr_read();
	sim_end_pmi(&c->hw);
	sim.samples++;
	sim.entries += c->cpuc->lbr_stack.nr;
	sim_expect(c->running, "", c->cpuc->lbr_stack.nr, c->cpuc->lbr_entries);
	if (!SIM_IS_PATCHED)
		return;
	stack = sim_snapshot();
	sim_expect(c->running, "snapshot of ", stack ? stack->nr : 0,
		   stack ? stack->entries : NULL);
}

/* A sample, or no snapshot where nobody records */
static void sim_look(struct sim_cpu *c)
{
	if (!c->running)
		return;
	if (sim_is_recorded(c))
		sim_sample(c);
	else if (sim_snapshot() && !sim.wrong++)
		KUNIT_FAIL(sim.test, "task %td on CPU %td is not recorded, but has a snapshot",
			   c->running - sim.tasks, c - sim.cpus);
}

/* The machine */

static struct perf_event *
sim_new_event_of(struct kunit *test, struct perf_event_pmu_context *epc,
		 struct task_struct *target, u64 branch_type)
{
	struct perf_event *event = kunit_kzalloc(test, sizeof(*event), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, event);
	event->pmu = &sim.pmu;
	event->pmu_ctx = epc;
	event->group_leader = event;
	event->hw.target = target;
	event->attach_state = target ? PERF_ATTACH_TASK : 0;
	event->attr.branch_sample_type = branch_type;
	KUNIT_ASSERT_EQ(test, intel_pmu_setup_lbr_filter(event), 0);
	return event;
}

static struct perf_event *sim_new_event(struct kunit *test, struct perf_event_pmu_context *epc,
					struct task_struct *target)
{
	return sim_new_event_of(test, epc, target,
				PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK);
}

static struct perf_event_pmu_context *sim_new_epc(struct kunit *test)
{
	struct perf_event_pmu_context *epc = kunit_kzalloc(test, sizeof(*epc), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, epc);
	epc->pmu = &sim.pmu;
	return epc;
}

static void sim_init_model(const struct sim_model *model)
{
	memset(&sim_x86_pmu, 0, sizeof(sim_x86_pmu));
	x86_pmu.version = model->version;
	if (model->arch) {
		intel_pmu_arch_lbr_init();
		return;
	}
	x86_pmu.intel_cap.lbr_format = model->format;
	x86_pmu.lbr_reset = intel_pmu_lbr_reset_64;
	x86_pmu.lbr_read = intel_pmu_lbr_read_64;
	x86_pmu.lbr_save = intel_pmu_lbr_save;
	x86_pmu.lbr_restore = intel_pmu_lbr_restore;
	if (model->nr == 16)
		intel_pmu_lbr_init_hsw();
	else
		intel_pmu_lbr_init_skl();
	intel_pmu_lbr_init();
}

static void sim_begin(struct kunit *test, const struct sim_model *model)
{
	unsigned int i;

	memset(&sim, 0, sizeof(sim));
	sim.test = test;
	sim.model = model;
	sim.cpu = &sim.cpus[0];
	prandom_seed_state(&sim.rnd, 20261123);
	sim_init_model(model);
	KUNIT_ASSERT_EQ(test, x86_pmu.lbr_nr, model->nr);
	KUNIT_ASSERT_NOT_NULL(test, sim.pmu.task_ctx_cache);
	for (i = 0; i < SIM_CPUS; i++) {
		sim.cpus[i].cpuc = kunit_kzalloc(test, sizeof(*sim.cpus[i].cpuc), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, sim.cpus[i].cpuc);
		sim.cpus[i].epc = sim_new_epc(test);
		sim.cpus[i].wide = sim_new_event(test, sim.cpus[i].epc, NULL);
	}
	for (i = 0; i < SIM_TASKS; i++) {
		sim.tasks[i].task = kunit_kzalloc(test, sizeof(*sim.tasks[i].task), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, sim.tasks[i].task);
	}
	reserve_lbr_buffers();
#if SIM_IS_PATCHED
	KUNIT_ASSERT_EQ(test, lbr_snapshot_prepare(), 0);
#endif
}

/* Give every @nth task an event of its own. */
static void sim_own_events(struct kunit *test, unsigned int nth)
{
	unsigned int i;

	for (i = 0; i < SIM_TASKS; i += nth) {
		struct sim_task *t = &sim.tasks[i];

		t->epc = sim_new_epc(test);
		t->own = sim_new_event(test, t->epc, t->task);
		sim_give_data(t);
	}
}

static void sim_wide_all(bool on)
{
	for (sim.cpu = sim.cpus; sim.cpu < sim.cpus + SIM_CPUS; sim.cpu++)
		sim_wide(sim.cpu, on);
	sim.cpu = sim.cpus;
}

/* @toggle: system-wide events go and come back; @data: system-wide events give data */
static void sim_run(bool toggle, bool data)
{
	unsigned int i;

	for (i = 0; i < SIM_SWITCHES && !sim.wrong; i++) {
		struct sim_cpu *c = &sim.cpus[sim_random(SIM_CPUS)];

		sim.cpu = c;
		sim_switch(c);
		if (!data && c->running)
			sim_take_data(c->running);
		if (c->running) {
			sim_execute(c->running);
			if (!sim_random(16))
				c->running->depth = 0;	/* exec() */
			sim_look(c);
		}
		if (toggle && !sim_random(16)) {
			sim_wide(c, !c->wide_on);
			sim_look(c);
		}
		if (c->running && sim_is_recorded(c)) {
			sim_execute(c->running);
			sim_sample(c);
		}
		if (!sim_random(32) && !sim.immortal)
			sim_replace(&sim.tasks[sim_random(SIM_TASKS)]);
		if (!(i % 1024))
			cond_resched();
	}
}

static void sim_end(struct kunit *test)
{
	unsigned int i;

	for (sim.cpu = sim.cpus; sim.cpu < sim.cpus + SIM_CPUS; sim.cpu++)
		sim_sched_out(sim.cpu);
	sim_wide_all(false);
	for (i = 0; i < SIM_CPUS; i++) {
		KUNIT_EXPECT_EQ(test, sim.cpus[i].cpuc->lbr_users, 0);
		KUNIT_EXPECT_FALSE(test, sim_is_recording(&sim.cpus[i].hw));
#if SIM_IS_PATCHED
		KUNIT_EXPECT_EQ(test, sim.cpus[i].cpuc->lbr_callstack_users, 0);
		KUNIT_EXPECT_EQ(test, sim.cpus[i].cpuc->lbr_kernel_users, 0);
		KUNIT_EXPECT_NULL(test, sim.cpus[i].cpuc->lbr_owner);
#endif
	}
}

static void lbr_test_exit(struct kunit *test)
{
	unsigned int i;

	if (!sim.pmu.task_ctx_cache)
		return;
	release_lbr_buffers();
#if SIM_IS_PATCHED
	for (i = 0; i < SIM_CPUS; i++) {
		kfree(sim.cpus[i].cpuc->lbr_snapshot);
		sim.cpus[i].cpuc->lbr_snapshot = NULL;
	}
#endif
	for (i = 0; i < SIM_TASKS; i++) {
		if (sim.tasks[i].task)
			sim_take_data(&sim.tasks[i]);
	}
	while (sim.nr_freed)
		kmem_cache_free(sim.pmu.task_ctx_cache, sim.freed[--sim.nr_freed]);
	/* Says what is left in it. */
	kmem_cache_destroy(sim.pmu.task_ctx_cache);
	sim.pmu.task_ctx_cache = NULL;
	static_branch_disable(&lbr_from_quirk_key);
	static_branch_disable(&x86_lbr_mispred);
	static_branch_disable(&x86_lbr_cycles);
	static_branch_disable(&x86_lbr_type);
}

/* The cases */

static const struct sim_model sim_models[] = {
	{ "Haswell, 16 deep", 16, 3, .format = LBR_FORMAT_EIP_FLAGS2 },
	{ "Goldmont, 32 deep", 32, 4, .format = LBR_FORMAT_TIME },
	{ "Skylake, 32 deep", 32, 4, .format = LBR_FORMAT_INFO },
	{ "Arch LBR, 32 deep", 32, 5, .arch = true },
	{ "Arch LBR, 16 deep", 16, 5, .arch = true },
	{ "Arch LBR, 32 deep, by XSAVES", 32, 5, .arch = true, .xsave = true },
};

static void sim_describe(const struct sim_model *model, char *desc)
{
	strscpy(desc, model->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(lbr, sim_models, sim_describe);

static void sim_per_task(struct kunit *test, bool immortal)
{
	sim_begin(test, test->param_value);
	kunit_info(test, "%u bytes for a task\n", kmem_cache_size(sim.pmu.task_ctx_cache));
	sim.immortal = immortal;
	sim_own_events(test, 1);
	sim_run(false, true);
	sim_end(test);
	KUNIT_EXPECT_GT(test, sim.samples, (u64)SIM_SWITCHES);
}

/* Each task has an event of its own: what the base could do as well. */
static void lbr_per_task(struct kunit *test)
{
	sim_per_task(test, true);
}

/*
 * Tasks exit, and new ones get the memory of their data. That was saved as often as the old
 * one now and then: what a CPU has left of the old task is not the new one's.
 */
static void lbr_per_task_exits(struct kunit *test)
{
	sim_per_task(test, false);
}

/* System-wide call stacks are those of per-task events, in depth and content. */
static void lbr_wide(struct kunit *test)
{
	sim_begin(test, test->param_value);
	sim_wide_all(true);
	sim_run(false, true);
	sim_end(test);
	KUNIT_EXPECT_GT(test, sim.samples, (u64)SIM_SWITCHES);
	if (SIM_IS_PATCHED)
		KUNIT_EXPECT_GT(test, sim.nmis, (u64)SIM_SWITCHES / 100);
}

/* Both at once, and system-wide events that go and come back. */
static void lbr_both(struct kunit *test)
{
	sim_begin(test, test->param_value);
	sim_own_events(test, 3);
	sim_wide_all(true);
	sim_run(true, true);
	sim_end(test);
	KUNIT_EXPECT_GT(test, sim.samples, (u64)SIM_SWITCHES / 2);
}

/*
 * On some CPUs only. What a task does on the others is not recorded, and must not leave it
 * with the stack that it had before.
 */
static void lbr_cpu_list(struct kunit *test)
{
	sim_begin(test, test->param_value);
	for (sim.cpu = sim.cpus; sim.cpu < sim.cpus + SIM_CPUS / 2; sim.cpu++)
		sim_wide(sim.cpu, true);
	sim.cpu = sim.cpus;
	sim_run(false, true);
	sim_end(test);
	KUNIT_EXPECT_GT(test, sim.samples, (u64)SIM_SWITCHES / 2);
}

/* Without data each switch loses the stack. That is what the data is there for. */
static void lbr_without_data(struct kunit *test)
{
	u64 with, without;

	sim_begin(test, test->param_value);
	sim_wide_all(true);
	sim_run(false, true);
	with = div64_u64(100 * sim.entries, sim.samples);
	sim_end(test);
	lbr_test_exit(test);

	sim_begin(test, test->param_value);
	sim_wide_all(true);
	sim_run(false, false);
	without = div64_u64(100 * sim.entries, sim.samples);
	sim_end(test);
	kunit_info(test, "entries of a sample, of 100 samples: %llu, without data %llu\n",
		   with, without);
	KUNIT_EXPECT_LT(test, 3 * without, 2 * with);
}

#define SIM_DEPTH	5

/* A task on a CPU, with an event of its own, in a function SIM_DEPTH calls deep */
static struct sim_task *sim_begin_deep(struct kunit *test)
{
	struct sim_task *t = &sim.tasks[1];
	unsigned int i;

	sim_begin(test, test->param_value);
	t->epc = sim_new_epc(test);
	t->own = sim_new_event(test, t->epc, t->task);
	sim_give_data(t);
	sim_sched_in(sim.cpu, t);
	for (i = 0; i < SIM_DEPTH; i++)
		sim_call(t);
	return t;
}

/* The entry of the call before the last @at ones */
static struct lbr_entry *sim_entry(unsigned int at)
{
	struct sim_lbr *hw = &sim.cpu->hw;

	return &hw->entry[sim.model->arch ? at : (hw->tos - at) % sim.model->nr];
}

/* The branch that is recorded last stays last in a PMI, and a call stack goes on after it. */
static void lbr_freeze(struct kunit *test)
{
	struct sim_task *t = sim_begin_deep(test);
	struct sim_lbr *hw = &sim.cpu->hw;
	u64 select = hw->select, writes, last;
	struct perf_event *any;

	/* It would damage call stacks, see __intel_pmu_lbr_enable(). */
	KUNIT_EXPECT_FALSE(test, hw->debugctl & DEBUGCTLMSR_FREEZE_LBRS_ON_PMI);
	writes = sim.writes;
	sim_sample(sim.cpu);
	KUNIT_EXPECT_EQ(test, sim.writes, writes);
	KUNIT_EXPECT_TRUE(test, sim_is_recording(hw));
	KUNIT_EXPECT_EQ(test, hw->select, select);
	sim_call(t);
	sim_sample(sim.cpu);
	KUNIT_EXPECT_EQ(test, sim.cpu->cpuc->lbr_stack.nr, SIM_DEPTH + 1);

	/* Any branches, in the place of the call stack */
	any = sim_new_event_of(test, t->epc, t->task,
			       PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY);
	intel_pmu_lbr_disable_all();
	intel_pmu_lbr_del(t->own);
	sim_add(sim.cpu, any);
	intel_pmu_lbr_enable_all(false);
	KUNIT_EXPECT_TRUE(test, hw->debugctl & DEBUGCTLMSR_FREEZE_LBRS_ON_PMI);
	KUNIT_EXPECT_NE(test, hw->select, select);
	sim_call(t);
	last = sim_entry(0)->from;

	sim_begin_pmi(hw);
	KUNIT_EXPECT_FALSE(test, sim_is_recording(hw));
	sim_call(t);
	intel_pmu_lbr_read();
	KUNIT_EXPECT_EQ(test, sim.cpu->cpuc->lbr_entries[0].from, last);
	writes = sim.writes;
	sim_end_pmi(hw);
	KUNIT_EXPECT_EQ(test, sim.writes - writes, sim.model->version >= 4 ? 0 : 1);
	KUNIT_EXPECT_TRUE(test, sim_is_recording(hw));
	KUNIT_EXPECT_TRUE(test, hw->debugctl & DEBUGCTLMSR_FREEZE_LBRS_ON_PMI);
	sim_call(t);
	KUNIT_EXPECT_NE(test, sim_entry(0)->from, last);

	/* And back */
	intel_pmu_lbr_disable_all();
	intel_pmu_lbr_del(any);
	sim_add(sim.cpu, t->own);
	intel_pmu_lbr_enable_all(false);
	KUNIT_EXPECT_FALSE(test, hw->debugctl & DEBUGCTLMSR_FREEZE_LBRS_ON_PMI);
	KUNIT_EXPECT_EQ(test, hw->select, select);
	sim_end(test);
}

#if SIM_IS_PATCHED
static u64 sim_snapshot_nr(void)
{
	struct perf_branch_stack *stack = sim_snapshot();

	return stack ? stack->nr : 0;
}

/* What a snapshot consists of */
static void lbr_snapshot_content(struct kunit *test)
{
	struct sim_task *t = sim_begin_deep(test);
	struct perf_branch_stack *stack;
	struct lbr_entry saved;
	unsigned int i;

	sim_sample(sim.cpu);
	stack = sim_snapshot();
	KUNIT_ASSERT_NOT_NULL(test, stack);
	KUNIT_EXPECT_EQ(test, stack->nr, SIM_DEPTH);
	KUNIT_EXPECT_EQ(test, stack->hw_idx, sim.model->arch ? -1ULL : sim.cpu->hw.tos);

	/* In a PMI, before and after it has stopped the LBRs */
	intel_pmu_lbr_disable_all();
	KUNIT_EXPECT_FALSE(test, sim_is_recording(&sim.cpu->hw));
	KUNIT_EXPECT_EQ(test, sim_snapshot_nr(), SIM_DEPTH);
	intel_pmu_lbr_enable_all(false);

	/* Each of these calls is left out, and no other one. */
	for (i = 0; i < SIM_DEPTH; i++) {
		struct lbr_entry *entry = sim_entry(i);

		saved = *entry;
		entry->from = PAGE_OFFSET + 0x1000;
		KUNIT_EXPECT_EQ(test, sim_snapshot_nr(), SIM_DEPTH - 1);
		*entry = saved;
		entry->to = PAGE_OFFSET + 0x1000;
		KUNIT_EXPECT_EQ(test, sim_snapshot_nr(), SIM_DEPTH - 1);
		entry->to = entry->from + LBR_CALL_LENGTH;
		KUNIT_EXPECT_EQ(test, sim_snapshot_nr(), SIM_DEPTH - 1);
		*entry = saved;
	}

	/* Flags are no part of the address. */
	if (x86_pmu.lbr_from_flags) {
		sim_entry(0)->from |= LBR_FROM_FLAG_MISPRED;
		if (x86_pmu.lbr_has_tsx)
			sim_entry(0)->from |= LBR_FROM_FLAG_IN_TX;
		sim_sample(sim.cpu);
	}

	/* Full */
	for (i = 0; i < sim.model->nr + SIM_DEPTH; i++)
		sim_call(t);
	sim_sample(sim.cpu);
	KUNIT_EXPECT_EQ(test, sim_snapshot_nr(), sim.model->nr);
	sim_end(test);
}

/* The LBRs have calls, but not the call stack of this task, or nobody knows. */
static void lbr_snapshot_none(struct kunit *test)
{
	struct sim_task *t = sim_begin_deep(test), *other = &sim.tasks[2];
	struct cpu_hw_events *cpuc = sim.cpu->cpuc;
	struct perf_event *event;

	/* A guest has them. */
	__set_bit(INTEL_PMC_IDX_FIXED_VLBR, (unsigned long *)&cpuc->intel_ctrl_guest_mask);
	KUNIT_EXPECT_NULL(test, sim_snapshot());
	__clear_bit(INTEL_PMC_IDX_FIXED_VLBR, (unsigned long *)&cpuc->intel_ctrl_guest_mask);
	KUNIT_EXPECT_EQ(test, sim_snapshot_nr(), SIM_DEPTH);

	/* The kernel's branches are recorded, too. */
	event = sim_new_event_of(test, t->epc, NULL, PERF_SAMPLE_BRANCH_USER |
				 PERF_SAMPLE_BRANCH_KERNEL | PERF_SAMPLE_BRANCH_CALL_STACK);
	intel_pmu_lbr_add(event);
	KUNIT_EXPECT_NULL(test, sim_snapshot());
	intel_pmu_lbr_del(event);
	KUNIT_EXPECT_EQ(test, sim_snapshot_nr(), SIM_DEPTH);

	/* The last event has gone. What it recorded is still there. */
	intel_pmu_lbr_disable_all();
	intel_pmu_lbr_del(t->own);
	KUNIT_EXPECT_NE(test, sim_entry(0)->from, 0);
	KUNIT_EXPECT_NULL(test, sim_snapshot());

	/* It comes back, and has missed what the task did, until that is switched. */
	sim_add(sim.cpu, t->own);
	intel_pmu_lbr_enable_all(false);
	KUNIT_EXPECT_NE(test, sim_entry(0)->from, 0);
	KUNIT_EXPECT_NULL(test, sim_snapshot());
	sim_sched_out(sim.cpu);
	sim_sched_in(sim.cpu, t);
	KUNIT_EXPECT_EQ(test, sim_snapshot_nr(), SIM_DEPTH);

	/* A task without an event */
	sim_sched_out(sim.cpu);
	sim_sched_in(sim.cpu, other);
	KUNIT_EXPECT_NE(test, sim_entry(0)->from, 0);
	KUNIT_EXPECT_NULL(test, sim_snapshot());

	/* Any branches, not a call stack */
	event = sim_new_event_of(test, t->epc, NULL,
				 PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY);
	sim_add(sim.cpu, event);
	intel_pmu_lbr_enable_all(false);
	sim_call(other);
	KUNIT_EXPECT_NE(test, sim_entry(0)->from, 0);
	KUNIT_EXPECT_NULL(test, sim_snapshot());
	intel_pmu_lbr_disable_all();
	intel_pmu_lbr_del(event);
	sim_end(test);
}

/* A snapshot that is being written stays as it is, whatever an interrupt does. */
static void lbr_snapshot_stays(struct kunit *test)
{
	struct sim_task *t = sim_begin_deep(test);
	struct perf_branch_stack *stack = sim_snapshot();
	size_t size = struct_size(stack, entries, SIM_DEPTH);
	void *copy;

	KUNIT_ASSERT_NOT_NULL(test, stack);
	copy = kunit_kzalloc(test, size, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, copy);
	memcpy(copy, stack, size);

	/* It takes one of its own. */
	KUNIT_EXPECT_PTR_EQ(test, sim_snapshot(), stack);
	KUNIT_EXPECT_MEMEQ(test, (void *)stack, copy, size);

	/* An event comes, and takes the LBRs. */
	intel_pmu_lbr_reset();
	KUNIT_EXPECT_NULL(test, sim_snapshot());
	KUNIT_EXPECT_MEMEQ(test, (void *)stack, copy, size);

	/* What the task does afterwards is in the next one. */
	sim_call(t);
	KUNIT_EXPECT_EQ(test, sim_snapshot_nr(), 1);
	sim_end(test);
}
#endif /* SIM_IS_PATCHED */

static struct kunit_case lbr_cases[] = {
	KUNIT_CASE_PARAM(lbr_per_task, lbr_gen_params),
	KUNIT_CASE_PARAM(lbr_per_task_exits, lbr_gen_params),
	KUNIT_CASE_PARAM(lbr_wide, lbr_gen_params),
	KUNIT_CASE_PARAM(lbr_both, lbr_gen_params),
	KUNIT_CASE_PARAM(lbr_cpu_list, lbr_gen_params),
	KUNIT_CASE_PARAM(lbr_without_data, lbr_gen_params),
	KUNIT_CASE_PARAM(lbr_freeze, lbr_gen_params),
#if SIM_IS_PATCHED
	KUNIT_CASE_PARAM(lbr_snapshot_content, lbr_gen_params),
	KUNIT_CASE_PARAM(lbr_snapshot_none, lbr_gen_params),
	KUNIT_CASE_PARAM(lbr_snapshot_stays, lbr_gen_params),
#endif
	{ }
};

static struct kunit_suite lbr_suite = {
	.name		= "intel_lbr_callstack",
	.test_cases	= lbr_cases,
	.exit		= lbr_test_exit,
};

kunit_test_suite(lbr_suite);

MODULE_DESCRIPTION("KUnit tests of LBR call stacks");
MODULE_LICENSE("GPL");
