// SPDX-License-Identifier: GPL-2.0
/*
 * Every allocation and every access to user memory on the paths that make, join, complete,
 * open, map, describe, list, start and claim, that show the cgroup and set what freezes,
 * fails, the first, the second, and so on until none is left: what was refused is as if it
 * had not been tried, and can be tried again. It fails once; and, for what tries again by
 * itself (xarrays), with all that come after. So does each charge of a memory cgroup, which is
 * an injection point of its own: CONFIG_FAIL_FUNCTION.
 *
 * Needs CONFIG_FAULT_INJECTION, FAILSLAB, FAIL_PAGE_ALLOC, FAULT_INJECTION_USERCOPY. If
 * PERSISTENT_MODULE is the path of test_modules/persistent_module.ko, sessions that
 * the kernel starts are among it. With PERSISTENT_FAULTS_VERBOSE=2 each fault's stack is
 * in the log: tools/testing/vm/fault-sites.sh tells from them which calls were hit.
 */
#define _GNU_SOURCE

#include <sys/resource.h>

#include "../kselftest_harness.h"
#include "fail_nth.h"
#include "persistent_session.h"

#define CGROUPS	"/sys/fs/cgroup"
#define GROUP	"/persistent_faults"
#define CAUSES	"/proc/sys/kernel/perf_persistent_freeze"

FIXTURE(faults)
{
	struct balance	before;
	int		nth;
	struct fail_all	all;
	/* The kernel lets charges fail. */
	bool		charges;
	/* Events of CPU 0: one not given away yet, one of a session "other". */
	int		fd;
	int		other;
	int64_t		id;
	/* What an operation got. */
	int		got;
	void		*base;
};

FIXTURE_SETUP(faults)
{
	const char *missing;

	SKIP_WITHOUT_PERSISTENT(return);
	missing = allow_faults(&self->nth, getenv("PERSISTENT_FAULTS_VERBOSE") ?: "0");
	if (missing)
		SKIP(return, "no %s", missing);
	self->all = open_fail_all();
	self->charges = allow_charge_faults();
	pin_to_cpu(0);
	self->before = take_balance();
	self->other = open_comm(0);
	self->id = unclaim(self->other, 0, 0, "other");
	ASSERT_LT(0, self->id);
	self->fd = -1;
	self->got = -1;
	self->base = MAP_FAILED;
}

FIXTURE_TEARDOWN(faults)
{
	EXPECT_EQ(self->id, claim(self->other));
	close(self->other);
	close(self->fd);
	close(self->nth);
	close_fail_all(&self->all);
	rmdir(CGROUPS GROUP);
	write_text(DEBUGFS "/failslab/probability", "0");
	forbid_charge_faults();
	EXPECT_BALANCE();
}

struct operation {
	const char	*name;
	/* It has nothing that may fail. */
	bool		never_fails;
	/* Before each try; the try; and back to where it was, if it succeeded. */
	void		(*prepare)(struct _test_data_faults *self);
	int64_t		(*try)(struct _test_data_faults *self);
	void		(*undo)(struct _test_data_faults *self);
	/* How often the try charges the memory cgroup; 0: each_charge_fails leaves it out. */
	unsigned int	charges;
};

static void has_event(struct _test_data_faults *self)
{
	if (self->fd < 0)
		self->fd = open_comm(0);
}

static int64_t makes(struct _test_data_faults *self)
{
	return unclaim(self->fd, 0, 0, "faulty");
}

static void claims_event(struct _test_data_faults *self)
{
	claim(self->fd);
	close(self->fd);
	self->fd = -1;
}

static void has_mapped_event(struct _test_data_faults *self)
{
	if (self->fd < 0) {
		self->fd = open_comm(0);
		self->base = map(self->fd, PAGE, PROT_READ);
	}
}

static void claims_mapped_event(struct _test_data_faults *self)
{
	munmap(self->base, 2 * PAGE);
	claims_event(self);
}

static void has_task_event(struct _test_data_faults *self)
{
	struct perf_event_attr attr = comm_attr();

	if (self->fd < 0) {
		self->fd = event_open(&attr, 0, -1, -1, 0);
		self->base = map(self->fd, PAGE, PROT_READ);
	}
}

static void is_audited(struct _test_data_faults *self)
{
	has_mapped_event(self);
	set_audit(true);
}

/* The end is audited, too. */
static void claims_audited(struct _test_data_faults *self)
{
	claims_mapped_event(self);
	set_audit(false);
}

static int64_t joins(struct _test_data_faults *self)
{
	return unclaim(self->fd, 0, self->id, "");
}

static void has_part(struct _test_data_faults *self)
{
	if (self->fd < 0) {
		self->fd = open_comm(0);
		self->base = map(self->fd, PAGE, PROT_READ);
		unclaim(self->fd, PERF_PERSISTENT_PARTIAL, 0, "faulty");
	}
}

static int64_t completes(struct _test_data_faults *self)
{
	struct perf_persistent_info inf;

	/* Its id is known before. */
	if (self->got < 0) {
		memset(&inf, 0, sizeof(inf));
		inf.size = sizeof(inf);
		if (ioctl(self->fd, PERF_EVENT_IOC_PERSISTENT_INFO, &inf))
			return -1;
		self->got = inf.id;
	}
	return unclaim(self->fd, 0, self->got, "");
}

static void claims_completed(struct _test_data_faults *self)
{
	self->got = -1;
	claims_mapped_event(self);
}

static int64_t opens(struct _test_data_faults *self)
{
	self->got = reopen(self->id, 0, 0);
	return self->got;
}

static void closes(struct _test_data_faults *self)
{
	close(self->got);
	self->got = -1;
}

/* As many fds as the task's table has room for: the next one wants a larger table. */
static unsigned int table_size;
static int table[65536];

static void knows_table(struct _test_data_faults *self)
{
	const struct rlimit limit = { ARRAY_SIZE(table), ARRAY_SIZE(table) };
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];

	/* It grows with each try that gets so far. */
	setrlimit(RLIMIT_NOFILE, &limit);
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "FDSize: %u", &table_size) == 1)
			break;
	}
	if (f)
		fclose(f);
}

static int64_t opens_beyond_table(struct _test_data_faults *self)
{
	int nr = 0, err;

	do {
		table[nr] = dup(self->nth);
	} while (table[nr] >= 0 && table[nr] < (int)table_size - 1 &&
		 ++nr < (int)ARRAY_SIZE(table) - 1);
	self->got = reopen(self->id, 0, 0);
	err = errno;
	for (; nr >= 0; nr--)
		close(table[nr]);
	errno = err;
	return self->got;
}

static void has_reader(struct _test_data_faults *self)
{
	if (self->got < 0)
		self->got = reopen(self->id, 0, 0);
}

static int64_t maps(struct _test_data_faults *self)
{
	self->base = map(self->got, DEFAULT_SIZE, PROT_READ);
	return self->base == MAP_FAILED ? -1 : 0;
}

static void unmaps(struct _test_data_faults *self)
{
	munmap(self->base, DEFAULT_SIZE + PAGE);
	closes(self);
}

static int64_t describes(struct _test_data_faults *self)
{
	struct perf_event_attr attr;
	struct perf_persistent_info inf = {
		.size		= sizeof(inf),
		.attr_ptr	= (uintptr_t)&attr,
		.attr_size	= sizeof(attr),
	};

	return ioctl(self->got, PERF_EVENT_IOC_PERSISTENT_INFO, &inf);
}

static int64_t reserves(struct _test_data_faults *self)
{
	struct perf_rb_reserved reserved = {};

	return ioctl(self->got, PERF_EVENT_IOC_RESERVED_HEAD, &reserved);
}

static int64_t reads(struct _test_data_faults *self)
{
	uint64_t count;

	return read(self->got, &count, sizeof(count)) == sizeof(count) ? 0 : -1;
}

static void has_session(struct _test_data_faults *self)
{
	if (self->fd < 0) {
		self->fd = open_comm(0);
		self->base = map(self->fd, PAGE, PROT_READ);
		unclaim(self->fd, 0, 0, "faulty");
	}
}

static int64_t claims(struct _test_data_faults *self)
{
	return claim(self->fd);
}

static int64_t lists(struct _test_data_faults *self)
{
	return *sysfs("sessions/%s/cpus", "other") && *sysfs("sessions/%s/state", "other") ? 0 : -1;
}

static int64_t opens_session(struct _test_data_faults *self)
{
	self->got = open_session(self->id);
	return self->got;
}

static void has_session_fd(struct _test_data_faults *self)
{
	if (self->got < 0)
		opens_session(self);
}

static int64_t describes_session(struct _test_data_faults *self)
{
	struct perf_persistent_session_info inf;

	return session_info(self->got, &inf);
}

static int64_t lists_session(struct _test_data_faults *self)
{
	struct perf_persistent_entry entry;

	return session_list(self->got, &entry, 1);
}

/* As a caller that knows more of it than this kernel */
static int64_t lists_large_entries(struct _test_data_faults *self)
{
	char entry[sizeof(struct perf_persistent_entry) + 8];
	struct perf_persistent_list list = {
		.size		= sizeof(list),
		.entry_size	= sizeof(entry),
		.nr		= 1,
		.entries	= (uintptr_t)entry,
	};

	return ioctl(self->got, PERF_EVENT_IOC_SESSION_LIST, &list);
}

/* Neither can fail. */
static int64_t freezes_and_thaws(struct _test_data_faults *self)
{
	return session_freeze(self->got) || session_thaw(self->got) ? -1 : 0;
}

static void has_session_to_end(struct _test_data_faults *self)
{
	has_session(self);
	if (self->got < 0)
		self->got = open_session(listed_id("faulty"));
}

static int64_t ends(struct _test_data_faults *self)
{
	return session_end(self->got);
}

static void closes_ended(struct _test_data_faults *self)
{
	closes(self);
	claims_mapped_event(self);
}

static void has_reader_of_cgroup(struct _test_data_faults *self)
{
	struct perf_event_attr attr = comm_attr();
	struct perf_persistent_info inf;
	int dir;

	if (self->got >= 0)
		return;
	/* Until a controller was given to cgroups once, they do not have perf's either. */
	write_text(CGROUPS "/cgroup.subtree_control", "+memory");
	mkdir(CGROUPS GROUP, 0755);
	dir = open(CGROUPS GROUP, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	self->fd = event_open(&attr, dir, 0, -1, PERF_FLAG_PID_CGROUP);
	close(dir);
	joins(self);
	/* Those that have joined before were others. */
	if (!info(self->fd, &inf))
		self->got = reopen(self->id, 0, inf.index);
}

/* The name needs memory of its own. */
static int64_t shows_cgroup(struct _test_data_faults *self)
{
	static char text[4096];
	char path[64];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", self->got);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len < 0)
		return -1;
	text[len] = '\0';
	if (strstr(text, "\ncgroup:\t" GROUP "\n") || strstr(text, "\ncgroup:\t?\n"))
		return 0;
	return -1;
}

static void leaves_cgroup(struct _test_data_faults *self)
{
	closes(self);
	claims_event(self);
	rmdir(CGROUPS GROUP);
}

static int64_t sets_cause(struct _test_data_faults *self)
{
	return write_text(CAUSES, "oom");
}

static void unsets_cause(struct _test_data_faults *self)
{
	write_text(CAUSES, "\n");
}

static bool has_cause(void)
{
	FILE *f = fopen(CAUSES, "r");
	int first = f ? fgetc(f) : EOF;

	if (f)
		fclose(f);
	return first != '\n' && first != EOF;
}

#define MODULE		"persistent_module"
#define AGAIN		"/sys/module/" MODULE "/parameters/again"

static bool have_module(void)
{
	return !access(getenv("PERSISTENT_MODULE") ?: "", R_OK);
}

static void has_module(struct _test_data_faults *self)
{
	if (self->got >= 0)
		return;
	load_module(getenv("PERSISTENT_MODULE"), "events=cpu-clock,sched:sched_process_fork");
	self->got = open(AGAIN, O_WRONLY | O_CLOEXEC);
}

static int64_t starts(struct _test_data_faults *self)
{
	return pwrite(self->got, "1", 1, 0) == 1 ? 0 : -1;
}

static void unloads(struct _test_data_faults *self)
{
	closes(self);
	unload_module(MODULE);
}

static void nothing(struct _test_data_faults *self)
{
}

static const struct operation operations[] = {
	{ "make, with a buffer of its own", false, has_event, makes, claims_event, 3 },
	{ "make", false, has_mapped_event, makes, claims_mapped_event, 3 },
	{ "make, audited", false, is_audited, makes, claims_audited, 3 },
	{ "make, of a task", false, has_task_event, makes, claims_mapped_event, 3 },
	{ "join", false, has_mapped_event, joins, claims_mapped_event, 2 },
	{ "complete", false, has_part, completes, claims_completed },
	{ "open", false, nothing, opens, closes },
	{ "open, with a larger table", false, knows_table, opens_beyond_table, closes },
	{ "map", false, has_reader, maps, unmaps },
	{ "describe", false, has_reader, describes, closes },
	{ "reserved head", false, has_reader, reserves, closes },
	{ "read", false, has_reader, reads, closes },
	{ "list", false, nothing, lists, nothing },
	{ "open the session", false, nothing, opens_session, closes },
	{ "describe the session", false, has_session_fd, describes_session, closes },
	{ "list the session", false, has_session_fd, lists_session, closes },
	{ "list the session, larger", false, has_session_fd, lists_large_entries, closes },
	{ "show the cgroup", false, has_reader_of_cgroup, shows_cgroup, leaves_cgroup },
	{ "set a cause to freeze", false, nothing, sets_cause, unsets_cause },
	{ "freeze", false, has_session_fd, freezes_and_thaws, closes },
	{ "end", true, has_session_to_end, ends, closes_ended },
	{ "start", false, has_module, starts, unloads },
	/* If CLAIM could fail, an event could stay for ever: it allocates and copies nothing. */
	{ "claim", true, has_session, claims, claims_mapped_event },
};

/* Sessions but "other", and the one that is being built has no entry. */
static bool is_listed_alone(void)
{
	return nr_entries(DEVICE "/sessions") == 1 && nr_entries(DEVICE "/events") == 1;
}

static bool is_possible(struct _test_data_faults *self, const struct operation *op)
{
	if (op->try == starts)
		return have_module();
	if (op->try == shows_cgroup)
		return !access(CGROUPS "/cgroup.procs", W_OK);
	if (op->undo == claims_audited)
		return !set_audit(false);
	return true;
}

/* Tried with a fault, or without one at last: what holds after each. */
static void judge(struct __test_metadata *_metadata, struct _test_data_faults *self,
		  const struct operation *op, unsigned int n, bool failed, int64_t ret)
{
	EXPECT_TRUE(ret >= 0 || failed) TH_LOG("%s, %u", op->name, n);
	if (ret >= 0)
		op->undo(self);
	/* What is claimed, or stopped, only now is listed until it is. */
	if (ret >= 0 || (op->try != claims && op->try != ends && op->try != starts))
		EXPECT_TRUE(is_listed_alone()) TH_LOG("%s, %u", op->name, n);
	EXPECT_FALSE(has_cause()) TH_LOG("%s, %u", op->name, n);
}

/* The smallest object that is tried for more than once (a node of an xarray) is larger. */
#define STEP	256
/* What watches for causes is allocated once since the boot: no small object is to be missed. */
#define SMALL_STEP	8

TEST_F_TIMEOUT(faults, all_fail_from_there_on, 900)
{
	unsigned int i, bytes, refused, step;
	int64_t ret;

	for (i = 0; i < ARRAY_SIZE(operations); i++) {
		const struct operation *op = &operations[i];

		if (!is_possible(self, op))
			continue;
		step = op->try == sets_cause ? SMALL_STEP : STEP;
		for (bytes = 0, refused = 0, ret = -1; ret < 0; bytes += step) {
			ASSERT_GT(1 << 20, bytes) TH_LOG("%s", op->name);
			op->prepare(self);
			arm_all_after(&self->all, bytes);
			ret = op->try(self);
			disarm_all(&self->all);
			refused += ret < 0;
			judge(_metadata, self, op, bytes, true, ret);
		}
		if (op->never_fails)
			EXPECT_EQ(0, refused) TH_LOG("%s", op->name);
		TH_LOG("%s: %u refusals, done with %u bytes", op->name, refused, bytes - step);
	}
}

TEST_F_TIMEOUT(faults, each_fails_once, 900)
{
	unsigned int i, n, refused;
	int64_t ret = -1;
	bool failed;

	for (i = 0; i < ARRAY_SIZE(operations); i++) {
		const struct operation *op = &operations[i];

		/* A table grows with each try that gets so far: these do not come to an end. */
		if (!is_possible(self, op) || op->try == opens_beyond_table)
			continue;
		for (n = 1, refused = 0, failed = true; failed; n++) {
			/* Each counts from a quiet state, and none takes that many. */
			ASSERT_GT(2000, n) TH_LOG("%s", op->name);
			op->prepare(self);
			arm(self->nth, n);
			ret = op->try(self);
			failed = disarm(self->nth);
			refused += ret < 0;
			judge(_metadata, self, op, n, failed, ret);
		}
		/* Without a fault it is done. */
		EXPECT_LE(0, ret) TH_LOG("%s", op->name);
		if (op->never_fails)
			EXPECT_EQ(0, refused) TH_LOG("%s", op->name);
		TH_LOG("%s: %u faults, %u refusals", op->name, n - 2, refused);
	}
}

/* The session's, the event's and the buffer's, which it allocates or brings along */
TEST_F_TIMEOUT(faults, each_charge_fails, 300)
{
	unsigned int i, n;
	int64_t ret;
	bool failed;
	int err;

	if (!self->charges)
		SKIP(return, "no CONFIG_FAIL_FUNCTION");
	for (i = 0; i < ARRAY_SIZE(operations); i++) {
		const struct operation *op = &operations[i];

		if (!op->charges || !is_possible(self, op))
			continue;
		for (n = 0; n <= op->charges; n++) {
			op->prepare(self);
			ASSERT_TRUE(arm_charge_after(&self->all, n));
			ret = op->try(self);
			err = errno;
			failed = disarm_charge(&self->all);
			EXPECT_EQ(n < op->charges, failed) TH_LOG("%s, %u", op->name, n);
			EXPECT_EQ(failed, ret < 0) TH_LOG("%s, %u", op->name, n);
			if (ret < 0)
				EXPECT_EQ(ENOMEM, err) TH_LOG("%s, %u", op->name, n);
			judge(_metadata, self, op, n, failed, ret);
		}
	}
}

TEST_HARNESS_MAIN
