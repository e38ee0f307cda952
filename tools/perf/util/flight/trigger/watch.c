// SPDX-License-Identifier: GPL-2.0
/*
 * The BPF programs of the triggers 'latency' and 'syscall', as seen by the recorder
 *
 * The programs are in util/bpf_skel/flight_latency.bpf.c, and those of irqoff in
 * flight_irqoff.bpf.c. Of the first, only the two that a trigger needs are loaded. Each trigger
 * has its own.
 *
 *	flight_watch__prepare()		loads, and makes the thread that starts walks, before
 *					the events are opened, so that they leave it out
 *	flight_watch__start()		attaches; from here on there are hits
 *	flight_watch__hits()		reads their number, and the record of the first one
 *	flight_watch__stop()		ends the thread, and unloads
 *
 * The programs count all hits, and send a record of one per millisecond at most. If the record
 * of a hit is still to come, the hit is left to the next look, which that record is the reason
 * for.
 */
#include "terms.h"
#include "triggers.h"
#include "walker.h"
#include "watch.h"
#include "../../base-api.h"
#include "../../cap.h"
#include "../../debug.h"
#include "../../time-utils.h"

#include <api/fs/tracing_path.h>
#include <linux/capability.h>
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/magic.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifdef HAVE_BPF_SKEL
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include "bpf_skel/flight_hit.h"
#include "bpf_skel/flight_irqoff.skel.h"
#include "bpf_skel/flight_latency.skel.h"

/* For older systems */
#ifndef CAP_BPF
#define CAP_BPF			39
#endif

#define RECORDS_PER_PASS	1024

/* A task that has had the CPU for less than this part of the threshold, in ns, counts for none */
#define GRAIN_SHARE		128
#define MIN_GRAIN		((u64)(100 * NSEC_PER_USEC))

/**
 * struct watch_bpf - the programs of a trigger
 * @latency: these, or
 * @irqoff: these
 * @walk_prog: a program that walks, or -1
 * @walk_link: an iterator that does, or -1
 * @walker: starts it
 * @cgroup_at: CLOCK_MONOTONIC when the cgroup was looked for last
 * @hits: their number, and
 * @sent: that of their records, which programs write
 * @seen: hits that were returned
 * @received: records that were read
 * @record: the first one since hits were returned
 * @has_record: there is one
 * @records: reads them
 */
struct watch_bpf {
	struct flight_latency_bpf	*latency;
	struct flight_irqoff_bpf	*irqoff;
	int				walk_prog;
	int				walk_link;
	struct walker			walker;
	u64				cgroup_at;
	u64				*hits;
	u64				*sent;
	u64				seen;
	u64				received;
	struct flight_hit		record;
	bool				has_record;
	struct ring_buffer		*records;
};

int flight_watch__check(const struct flight_trigger *t __maybe_unused)
{
	return 0;
}

static int silence(enum libbpf_print_level level __maybe_unused,
		   const char *format __maybe_unused, va_list ap __maybe_unused)
{
	return 0;
}

/* Whether the scheduler keeps how long tasks wait: struct sched_info has members. */
static bool has_sched_info(const struct btf *btf)
{
	s32 id = btf__find_by_name_kind(btf, "sched_info", BTF_KIND_STRUCT);

	return id > 0 && btf_vlen(btf__type_by_id(btf, id));
}

static int check_types(const struct flight_trigger *t)
{
	const struct flight_watch *w = t->priv;
	struct btf *btf = btf__load_vmlinux_btf();
	int err = 0;

	if (!btf) {
		pr_err("--trigger %s: the kernel has no BTF (/sys/kernel/btf/vmlinux), which the BPF programs of perf require: it takes CONFIG_DEBUG_INFO_BTF.\n",
		       t->ops->name);
		return -ENOENT;
	}
	if (w->kind != WATCH_SYSCALL && !has_sched_info(btf)) {
		pr_err("--trigger %s: the scheduler of this kernel does not keep how long tasks wait: it takes CONFIG_SCHEDSTATS or CONFIG_TASK_DELAY_ACCT.\n",
		       t->ops->name);
		err = -ENOENT;
	}
	btf__free(btf);
	return err;
}

static int check_tracepoint(const struct flight_trigger *t)
{
	char *path = get_events_file("preemptirq/irq_disable");
	int err = path && access(path, F_OK) && errno == ENOENT ? -ENOENT : 0;

	put_events_file(path);
	if (err)
		pr_err("--trigger %s: the kernel has no tracepoint preemptirq:irq_disable, which 'irqoff' requires: it takes CONFIG_PREEMPTIRQ_TRACEPOINTS, which CONFIG_IRQSOFF_TRACER selects.\n",
		       t->ops->name);
	return err;
}

/* Without them, libbpf has reasons of its own. */
static bool is_permitted(void)
{
	return perf_cap__has(CAP_SYS_ADMIN) ||
	       (perf_cap__has(CAP_BPF) && perf_cap__has(CAP_PERFMON));
}

static int refuse_permission(const struct flight_trigger *t)
{
	pr_err("--trigger %s: no permission to load BPF programs: be root, or set the capabilities: setcap cap_bpf,cap_perfmon+ep PERF\n",
	       t->ops->name);
	return -EPERM;
}

static int refuse_to_load(const struct flight_trigger *t, int err)
{
	const struct flight_watch *w = t->priv;
	char text[128];

	if (err == -EPERM)
		return refuse_permission(t);
	if (err == -ENOENT && (w->kind == WATCH_RUNQ || w->kind == WATCH_OFFCPU)) {
		pr_err("--trigger %s: the kernel does not tell where its run queues are: it takes CONFIG_KALLSYMS_ALL.\n",
		       t->ops->name);
		return err;
	}
	if (err == -ESRCH) {
		pr_err("--trigger %s: the kernel lacks what it watches: it takes %s.\n",
		       t->ops->name, w->kind == WATCH_SYSCALL ? "CONFIG_FTRACE_SYSCALLS" :
		       "Linux 6.2 or later, with CONFIG_KALLSYMS_ALL");
		return err;
	}
	libbpf_strerror(err, text, sizeof(text));
	pr_err("--trigger %s: the kernel rejects the BPF program: %s. With -v, perf shows its reason.\n",
	       t->ops->name, text);
	return err;
}

/* Return: the id of the cgroup, or 0 if there is none. */
static u64 cgroup_of_path(const char *path)
{
	struct statfs fs;
	struct stat st;

	/* Programs know no cgroups of version 1. */
	if (statfs(path, &fs) || fs.f_type != CGROUP2_SUPER_MAGIC || stat(path, &st))
		return 0;
	return st.st_ino;
}

static u64 find_cgroup(const char *cgroup)
{
	char root[PATH_MAX], path[PATH_MAX];
	u64 id = *cgroup == '/' ? cgroup_of_path(cgroup) : 0;

	if (id)
		return id;
	scnprintf(path, sizeof(path), "%s/%s", flight_cause__cgroup_root(root, sizeof(root)),
		  cgroup);
	return cgroup_of_path(path);
}

static void run_program(int fd)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	bpf_prog_test_run_opts(fd, &opts);
}

static void run_iterator(int link)
{
	int fd = bpf_iter_create(link);
	char text[16];

	if (fd < 0)
		return;
	while (read(fd, text, sizeof(text)) > 0)
		;
	close(fd);
}

/* A service that is started again has another cgroup, of the same name. */
static void follow_cgroup(const struct flight_watch *w)
{
	struct watch_bpf *b = w->bpf;
	u64 now = rdclock();

	if (now - b->cgroup_at < NSEC_PER_SEC)
		return;
	b->cgroup_at = now;
	WRITE_ONCE(b->latency->bss->cgroup_id, find_cgroup(w->cgroup));
}

static void walk(void *data)
{
	const struct flight_watch *w = data;

	if (w->cgroup)
		follow_cgroup(w);
	if (w->kind == WATCH_RUNQ)
		run_program(w->bpf->walk_prog);
	else
		run_iterator(w->bpf->walk_link);
}

static int load_irqoff(struct watch_bpf *b, const struct flight_watch *w)
{
	b->irqoff = flight_irqoff_bpf__open();
	if (!b->irqoff)
		return -errno;
	b->irqoff->rodata->over = w->over;
	return flight_irqoff_bpf__load(b->irqoff);
}

static void choose_programs(struct flight_latency_bpf *skel, enum flight_watch_kind kind)
{
	bpf_program__set_autoload(skel->progs.runq_switch, kind == WATCH_RUNQ);
	bpf_program__set_autoload(skel->progs.runq_walk, kind == WATCH_RUNQ);
	bpf_program__set_autoload(skel->progs.offcpu_begin, kind == WATCH_OFFCPU);
	bpf_program__set_autoload(skel->progs.offcpu_switch, kind == WATCH_OFFCPU);
	bpf_program__set_autoload(skel->progs.offcpu_walk, kind == WATCH_OFFCPU);
	bpf_program__set_autoload(skel->progs.syscall_enter, kind == WATCH_SYSCALL);
	bpf_program__set_autoload(skel->progs.syscall_exit, kind == WATCH_SYSCALL);
	bpf_program__set_autoload(skel->progs.syscall_walk, kind == WATCH_SYSCALL);
}

static int load_latency(struct watch_bpf *b, const struct flight_watch *w)
{
	int err, nr_cpus = libbpf_num_possible_cpus();
	struct flight_latency_bpf *skel;

	skel = flight_latency_bpf__open();
	if (!skel)
		return -errno;
	b->latency = skel;
	choose_programs(skel, w->kind);
	skel->rodata->over = w->over;
	skel->rodata->grain = max(w->over / GRAIN_SHARE, MIN_GRAIN);
	skel->rodata->syscall_nr = w->nr;
	skel->rodata->nr_cpus = max(nr_cpus, 1);
	skel->rodata->has_comm = w->comm;
	skel->rodata->has_cgroup = w->cgroup;
	if (w->comm)
		scnprintf((char *)skel->rodata->comm, FLIGHT_COMM_LEN, "%s", w->comm);
	err = flight_latency_bpf__load(skel);
	if (err)
		return err;
	b->walk_prog = bpf_program__fd(skel->progs.runq_walk);
	return 0;
}

static int load(struct flight_trigger *t)
{
	const struct flight_watch *w = t->priv;
	libbpf_print_fn_t print = NULL;
	int err;

	if (verbose <= 0)
		print = libbpf_set_print(silence);
	err = w->kind == WATCH_IRQOFF ? load_irqoff(w->bpf, w) : load_latency(w->bpf, w);
	if (verbose <= 0)
		libbpf_set_print(print);
	return err ? refuse_to_load(t, err) : 0;
}

/**
 * flight_watch__prepare - load the programs
 * @t: the trigger
 *
 * Return: 0, or a negative errno after an error message.
 */
int flight_watch__prepare(struct flight_trigger *t)
{
	struct flight_watch *w = t->priv;
	int err;

	err = w->kind == WATCH_IRQOFF ? check_tracepoint(t) : check_types(t);
	if (err)
		return err;
	if (!is_permitted())
		return refuse_permission(t);
	if (w->cgroup && !find_cgroup(w->cgroup)) {
		pr_err("--trigger %s: there is no cgroup %s: give its path below the mount point of cgroups of version 2.\n",
		       t->ops->name, w->cgroup);
		return -ENOENT;
	}
	w->bpf = zalloc(sizeof(*w->bpf));
	if (!w->bpf)
		return -ENOMEM;
	err = load(t);
	if (err || w->kind == WATCH_IRQOFF)
		return err;
	w->bpf->walker = (struct walker) {
		.walk	= walk,
		.data	= w,
		.period	= walker__period(w->over),
	};
	err = walker__prepare(&w->bpf->walker);
	t->tid = w->bpf->walker.tid;
	return err;
}

static int attach_irqoff(struct flight_trigger *t, struct watch_bpf *b)
{
	struct flight_irqoff_bpf *skel = b->irqoff;

	skel->data->clockid = t->host->clockid;
	b->hits = (u64 *)&skel->bss->hits;
	b->sent = (u64 *)&skel->bss->sent;
	run_program(bpf_program__fd(skel->progs.begin));
	return flight_irqoff_bpf__attach(skel);
}

static int attach_latency(struct flight_trigger *t, struct watch_bpf *b)
{
	const struct flight_watch *w = t->priv;
	struct flight_latency_bpf *skel = b->latency;
	struct bpf_link *link;
	int err;

	skel->data->clockid = t->host->clockid;
	skel->bss->cgroup_id = w->cgroup ? find_cgroup(w->cgroup) : 0;
	b->hits = (u64 *)&skel->bss->hits;
	b->sent = (u64 *)&skel->bss->sent;
	run_program(bpf_program__fd(skel->progs.begin));
	if (w->kind == WATCH_OFFCPU)
		run_program(bpf_program__fd(skel->progs.offcpu_begin));
	err = flight_latency_bpf__attach(skel);
	link = w->kind == WATCH_SYSCALL ? skel->links.syscall_walk : skel->links.offcpu_walk;
	b->walk_link = link ? bpf_link__fd(link) : -1;
	return err;
}

/* Records are read in the order in which they were sent. */
static int take_record(void *ctx, void *data, size_t size)
{
	struct watch_bpf *b = ctx;

	b->received++;
	if (size < sizeof(b->record) || b->has_record)
		return 0;
	memcpy(&b->record, data, sizeof(b->record));
	b->has_record = true;
	return 0;
}

/**
 * flight_watch__start - attach the programs
 * @t: the trigger
 *
 * Return: 0, or a negative errno after an error message.
 */
int flight_watch__start(struct flight_trigger *t)
{
	struct flight_watch *w = t->priv;
	struct watch_bpf *b = w->bpf;
	int err;

	b->records = ring_buffer__new(bpf_map__fd(b->irqoff ? b->irqoff->maps.records :
						  b->latency->maps.records),
				      take_record, b, NULL);
	err = b->records ? 0 : -errno;
	if (!err)
		err = b->irqoff ? attach_irqoff(t, b) : attach_latency(t, b);
	if (err)
		return refuse_to_load(t, err);
	t->fd = ring_buffer__epoll_fd(b->records);
	walker__start(&b->walker);
	return 0;
}

static int put_wait(const struct flight_watch *w, const struct flight_hit *h, char *text,
		    size_t size)
{
	switch (w->kind) {
	case WATCH_RUNQ:
		return scnprintf(text, size, "%.16s (%u) %s for a CPU", h->comm, h->pid,
				 h->waits ? "is waiting" : "waited");
	case WATCH_OFFCPU:
		return scnprintf(text, size, "%.16s (%u) %s off the CPU", h->comm, h->pid,
				 h->waits ? "is" : "was");
	case WATCH_IRQOFF:
		return scnprintf(text, size, "interrupts were off on CPU %u in %.16s (%u)", h->cpu,
				 h->comm, h->pid);
	case WATCH_SYSCALL:
		return scnprintf(text, size, "%.16s (%u) %s in %s", h->comm, h->pid,
				 h->waits ? "is" : "was", w->syscall);
	default:
		return 0;
	}
}

static u64 skips_of(const struct bpf_program *prog)
{
	struct bpf_prog_info info = {};
	u32 size = sizeof(info);

	return bpf_prog_get_info_by_fd(bpf_program__fd(prog), &info, &size) ? 0 :
	       info.recursion_misses;
}

/* How often the kernel has not run a program at a system call, as it could not be run twice */
static u64 skips(const struct flight_watch *w)
{
	const struct flight_latency_bpf *skel = w->bpf->latency;

	return w->kind != WATCH_SYSCALL ? 0 :
	       skips_of(skel->progs.syscall_enter) + skips_of(skel->progs.syscall_exit);
}

/* @h: the first of the hits */
static void set_reason(struct flight_trigger *t, const struct flight_hit *h)
{
	const struct flight_watch *w = t->priv;
	char text[sizeof(t->reason)];
	int len = put_wait(w, h, text, sizeof(text));
	u64 skipped = skips(w);

	len += scnprintf(text + len, sizeof(text) - len, ": %s%" PRIu64 " us, over %" PRIu64 " us",
			 h->at_least ? "at least " : "", (u64)h->value / NSEC_PER_USEC,
			 w->over / NSEC_PER_USEC);
	if (skipped)
		scnprintf(text + len, sizeof(text) - len, "; skipped: %" PRIu64, skipped);
	flight_trigger__set_reason(t, text);
	t->hit_at = h->at;
	t->cause.unit = "us";
	t->cause.value = h->value / NSEC_PER_USEC;
	t->cause.threshold = w->over / NSEC_PER_USEC;
	t->cause.pid = h->pid;
	scnprintf(t->cause.comm, sizeof(t->cause.comm), "%.16s", h->comm);
	flight_cause__set_cgroup(&t->cause, h->cgroup);
}

/* They came within a millisecond of one whose dump has begun. */
static void set_further_reason(struct flight_trigger *t, u64 hits)
{
	char text[sizeof(t->reason)];

	scnprintf(text, sizeof(text), "%" PRIu64 " more of '%s' at once", hits, t->ops->name);
	flight_trigger__set_reason(t, text);
}

/**
 * flight_watch__hits - how many hits there were since the last call
 * @t: the trigger
 *
 * Return: their number.
 */
unsigned int flight_watch__hits(struct flight_trigger *t)
{
	struct flight_watch *w = t->priv;
	struct watch_bpf *b = w->bpf;
	u64 hits;

	ring_buffer__consume_n(b->records, RECORDS_PER_PASS);
	hits = READ_ONCE(*b->hits) - b->seen;
	if (hits && !b->has_record && READ_ONCE(*b->sent) != b->received)
		return 0;
	if (hits && trigger_is_ready(&t->state)) {
		if (b->has_record)
			set_reason(t, &b->record);
		else
			set_further_reason(t, hits);
	}
	/* Its hit was counted before, so it is among these, or was returned without it. */
	b->has_record = false;
	b->seen += hits;
	return hits;
}

static void unload(struct flight_watch *w)
{
	struct watch_bpf *b = w->bpf;

	if (!b)
		return;
	walker__end(&b->walker);
	ring_buffer__free(b->records);
	flight_latency_bpf__destroy(b->latency);
	flight_irqoff_bpf__destroy(b->irqoff);
	zfree(&w->bpf);
}

void flight_watch__stop(struct flight_trigger *t)
{
	t->fd = -1;
	unload(t->priv);
}

#else /* HAVE_BPF_SKEL */

int flight_watch__check(const struct flight_trigger *t)
{
	pr_err("--trigger: '%s' is not supported: this perf was built without BPF skeletons, which require clang and BUILD_BPF_SKEL=1.\n",
	       t->ops->name);
	return -EINVAL;
}

int flight_watch__prepare(struct flight_trigger *t __maybe_unused)
{
	return -EOPNOTSUPP;
}

int flight_watch__start(struct flight_trigger *t __maybe_unused)
{
	return -EOPNOTSUPP;
}

unsigned int flight_watch__hits(struct flight_trigger *t __maybe_unused)
{
	return 0;
}

void flight_watch__stop(struct flight_trigger *t __maybe_unused)
{
}

static void unload(struct flight_watch *w __maybe_unused)
{
}

#endif

/* Free the trigger's private data. */
void flight_watch__free(struct flight_trigger *t)
{
	struct flight_watch *w = t->priv;

	if (w) {
		unload(w);
		free(w->comm);
		free(w->cgroup);
		free(w->syscall);
	}
	free(w);
	t->priv = NULL;
}
