// SPDX-License-Identifier: GPL-2.0
/*
 * Every allocation and every access to user memory on the paths that make, join, complete,
 * open, map, describe and claim fails once, the first, the second, and so on until none
 * is left: what was refused is as if it had not been tried, and can be tried again.
 *
 * Needs CONFIG_FAULT_INJECTION, FAILSLAB, FAIL_PAGE_ALLOC, FAULT_INJECTION_USERCOPY.
 */
#define _GNU_SOURCE

#include "../kselftest_harness.h"
#include "persistent_util.h"

#define DEBUGFS	"/sys/kernel/debug"

/* Also what may sleep; and without a word in the log. */
static const struct {
	const char	*path;
	const char	*value;
} settings[] = {
	{ DEBUGFS "/failslab/ignore-gfp-wait",		"N" },
	{ DEBUGFS "/failslab/verbose",			"0" },
	{ DEBUGFS "/fail_page_alloc/ignore-gfp-wait",	"N" },
	{ DEBUGFS "/fail_page_alloc/ignore-gfp-highmem", "N" },
	{ DEBUGFS "/fail_page_alloc/min-order",		"0" },
	{ DEBUGFS "/fail_page_alloc/verbose",		"0" },
	{ DEBUGFS "/fail_usercopy/verbose",		"0" },
};

FIXTURE(faults)
{
	struct balance	before;
	int		nth;
	/* Events of CPU 0: one not given away yet, one of a session "other". */
	int		fd;
	int		other;
	int64_t		id;
	/* What an operation got. */
	int		got;
	void		*base;
};

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), ret;

	ret = write(fd, text, strlen(text));
	close(fd);
	return ret < 0 ? -1 : 0;
}

FIXTURE_SETUP(faults)
{
	size_t i;

	if (geteuid())
		SKIP(return, "must be root");
	if (!have_persistent())
		SKIP(return, "no CONFIG_PERF_PERSISTENT");
	self->nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (self->nth < 0)
		SKIP(return, "no CONFIG_FAULT_INJECTION");
	for (i = 0; i < ARRAY_SIZE(settings); i++) {
		if (write_text(settings[i].path, settings[i].value))
			SKIP(return, "no %s", settings[i].path);
	}
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
	EXPECT_BALANCE();
}

/* The nth from now on fails. */
static void arm(int nth, unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	if (pwrite(nth, text, len, 0) != len)
		fprintf(stderr, "# fail-nth is not armed\n");
}

/* Did it fail? */
static bool disarm(int nth)
{
	char text[16] = "";
	bool failed;

	/* Reading is an access to user memory as well: then it has failed here. */
	failed = pread(nth, text, sizeof(text) - 1, 0) > 0 && !atoi(text);
	while (pwrite(nth, "0", 1, 0) != 1)
		;
	return failed;
}

struct operation {
	const char	*name;
	/* Before each try; the try; and back to where it was, if it succeeded. */
	void		(*prepare)(struct _test_data_faults *self);
	int64_t		(*try)(struct _test_data_faults *self);
	void		(*undo)(struct _test_data_faults *self);
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

static void nothing(struct _test_data_faults *self)
{
}

static const struct operation operations[] = {
	{ "make, with a buffer of its own", has_event, makes, claims_event },
	{ "make", has_mapped_event, makes, claims_mapped_event },
	{ "make, of a task", has_task_event, makes, claims_mapped_event },
	{ "join", has_mapped_event, joins, claims_mapped_event },
	{ "complete", has_part, completes, claims_completed },
	{ "open", nothing, opens, closes },
	{ "map", has_reader, maps, unmaps },
	{ "describe", has_reader, describes, closes },
	{ "reserved head", has_reader, reserves, closes },
	{ "read", has_reader, reads, closes },
	{ "list", nothing, lists, nothing },
	{ "claim", has_session, claims, claims_mapped_event },
};

/* Sessions but "other", and the one that is being built has no entry. */
static bool is_listed_alone(void)
{
	return nr_entries(DEVICE "/sessions") == 1 && nr_entries(DEVICE "/events") == 1;
}

TEST_F_TIMEOUT(faults, each_fails_once, 600)
{
	unsigned int i, n, refused;
	int64_t ret = -1;
	bool failed;

	for (i = 0; i < ARRAY_SIZE(operations); i++) {
		const struct operation *op = &operations[i];

		for (n = 1, refused = 0, failed = true; failed; n++) {
			/* Each counts from a quiet state, and none takes that many. */
			ASSERT_GT(2000, n) TH_LOG("%s", op->name);
			op->prepare(self);
			arm(self->nth, n);
			ret = op->try(self);
			failed = disarm(self->nth);
			if (ret < 0) {
				refused++;
				EXPECT_TRUE(failed) TH_LOG("%s, %u", op->name, n);
			} else {
				op->undo(self);
			}
			/* What is claimed only now is listed until it is. */
			if (ret >= 0 || op->try != claims)
				EXPECT_TRUE(is_listed_alone()) TH_LOG("%s, %u", op->name, n);
		}
		/* Without a fault it is done. */
		EXPECT_LE(0, ret) TH_LOG("%s", op->name);
		TH_LOG("%s: %u faults, %u refusals", op->name, n - 2, refused);
	}
}

TEST_HARNESS_MAIN
