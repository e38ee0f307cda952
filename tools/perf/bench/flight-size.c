// SPDX-License-Identifier: GPL-2.0
/*
 * What a flight recorder costs on a large machine: one of 512 CPUs with buffers of
 * 64 MiB, and of 100,000 processes with 50 maps each, which need not be there.
 *
 *	session	 a pass over the buffers of a persistent session, with nothing new, with
 *		 something new in one buffer, and in all of them; the window of the
 *		 session, as perf ctl lists it
 *	ring	 fork() of a recorder with a large ring, beside that of as much private
 *		 memory; memory and time while a child reads the ring, as it does for a
 *		 dump, and the recorder overwrites all of it
 *	sideband folding the records of the processes into the side-band store; bytes for
 *		 each map; a pass that looks for processes that are gone
 *
 * The buffers are files in memory, which the kernel fills page by page as they are
 * written, so that they take little of it. Their CPUs are offline, so that a reader has
 * nobody to ask what else was reserved; it then reads which CPUs are online, for each
 * copy. What is read is compared with what was written.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/kernel.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <internal/lib.h>
#include <perf/event.h>
#include <subcmd/parse-options.h>
#include "../util/base-api.h"
#include "../util/event.h"
#include "../util/evlist.h"
#include "../util/evsel.h"
#include "../util/flight/store/fair-store.h"
#include "../util/flight/store/ring-store.h"
#include "../util/flight/store/sideband-store.h"
#include "../util/persistent/persistent.h"
#include "../util/persistent/reader.h"
#include "../util/record.h"
#include "../util/time-utils.h"
#include "bench.h"

/* No machine has as many CPUs: these are offline. */
#define FIRST_CPU	1024

/* Files that the maps are of. */
#define NR_FILES	2000

static unsigned int nr_cpus = 512;
static unsigned int buffer_mib = 64;
static unsigned int nr_processes = 100000;
static unsigned int nr_maps = 50;
static unsigned int nr_records = 100;
static unsigned int nr_loops = 20;
static unsigned int ring_mib = 1024;

static const struct option options[] = {
	OPT_UINTEGER('c', "cpus", &nr_cpus, "number of CPUs, each with a buffer (default 512)"),
	OPT_UINTEGER('b', "buffer", &buffer_mib, "size of a buffer in MiB (default 64)"),
	OPT_UINTEGER('n', "records", &nr_records,
		     "number of new records in a buffer (default 100)"),
	OPT_UINTEGER('r', "ring", &ring_mib, "size of the ring in MiB (default 1024)"),
	OPT_UINTEGER('p', "processes", &nr_processes, "number of processes (default 100000)"),
	OPT_UINTEGER('m', "maps", &nr_maps, "number of maps of a process (default 50)"),
	OPT_UINTEGER('l', "loops", &nr_loops, "number of passes (default 20)"),
	OPT_END()
};

static const char *const bench_usage[] = {
	"perf bench internals flight-size <options>",
	NULL
};

/* Of its own: what it maps of the buffers does not count. */
static u64 resident_bytes(void)
{
	unsigned long pages = 0, shared = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f && fscanf(f, "%*u %lu %lu", &pages, &shared) != 2)
		pages = shared;
	if (f)
		fclose(f);
	return (u64)(pages - shared) * page_size;
}

/* A session of synthetic buffers */

struct sample {
	struct perf_event_header	header;
	u64				id;
	u32				pid;
	u32				tid;
	u64				time;
	u64				period;
};

struct synth_buffer {
	struct perf_event_mmap_page	*page;
	char				*data;
	u64				id;
	u64				nr;	/* records that were ever written */
};

struct synth_session {
	struct persistent_session	*ps;
	struct evlist			*evlist;
	struct synth_buffer		*buffers;
	size_t				size;
};

static u64 time_of(u64 nr)
{
	return NSEC_PER_SEC + nr * NSEC_PER_USEC;
}

/* Record number @nr, in a buffer that is written downwards from position 0. */
static void put_record(struct synth_session *s, struct synth_buffer *buf, u64 nr)
{
	struct sample sample = {
		.header = { .type = PERF_RECORD_SAMPLE, .size = sizeof(sample) },
		.id	= buf->id,
		.pid	= 1,
		.tid	= 1,
		.time	= time_of(nr),
		.period	= 1,
	};
	size_t offset = -(nr + 1) * sizeof(sample) & (s->size - 1);
	size_t first = min(sizeof(sample), s->size - offset);

	memcpy(buf->data + offset, &sample, first);
	memcpy(buf->data, (char *)&sample + first, sizeof(sample) - first);
}

static void publish(struct synth_buffer *buf)
{
	__atomic_store_n(&buf->page->data_head, -buf->nr * sizeof(struct sample),
			 __ATOMIC_RELEASE);
}

static void write_records(struct synth_session *s, struct synth_buffer *buf, u64 nr)
{
	for (u64 i = 0; i < nr; i++)
		put_record(s, buf, buf->nr++);
	publish(buf);
}

/* As if the buffer had been written for one and a half times: only both ends are. */
static void fill(struct synth_session *s, struct synth_buffer *buf)
{
	u64 nr = (s->size + s->size / 2) / sizeof(struct sample), some = 2048;
	u64 oldest = nr - s->size / sizeof(struct sample);

	for (u64 i = 0; i < some; i++) {
		put_record(s, buf, oldest - 1 + i);
		put_record(s, buf, nr - some + i);
	}
	buf->nr = nr;
	publish(buf);
}

static int buffer__init(struct synth_session *s, struct synth_buffer *buf,
			struct persistent_event *event)
{
	char *base;

	event->fd = memfd_create("perf-bench", MFD_CLOEXEC);
	if (event->fd < 0 || ftruncate(event->fd, page_size + s->size))
		return -errno;
	base = mmap(NULL, page_size + s->size, PROT_READ | PROT_WRITE, MAP_SHARED, event->fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	buf->page = (struct perf_event_mmap_page *)base;
	buf->page->data_offset = page_size;
	buf->page->data_size = s->size;
	buf->data = base + page_size;
	buf->id = event->id;
	return 0;
}

static void session__delete(struct synth_session *s)
{
	for (unsigned int i = 0; s->buffers && i < nr_cpus; i++) {
		if (s->buffers[i].page)
			munmap(s->buffers[i].page, page_size + s->size);
	}
	free(s->buffers);
	evlist__put(s->evlist);
	persistent_session__close(s->ps);
}

static int session__init(struct synth_session *s)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_SOFTWARE,
		.config		= PERF_COUNT_SW_CPU_CLOCK,
		.size		= sizeof(attr),
		.sample_type	= PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				  PERF_SAMPLE_PERIOD,
		.sample_id_all	= 1,
		.write_backward	= 1,
	};
	int err = 0;

	s->size = (size_t)buffer_mib << 20;
	s->buffers = calloc(nr_cpus, sizeof(*s->buffers));
	s->ps = zalloc(sizeof(*s->ps));
	if (s->ps)
		s->ps->events = calloc(nr_cpus, sizeof(*s->ps->events));
	if (!s->buffers || !s->ps || !s->ps->events)
		return -ENOMEM;

	for (unsigned int i = 0; i < nr_cpus && !err; i++) {
		s->ps->events[i] = (struct persistent_event) {
			.cpu	   = FIRST_CPU + i,
			.id	   = 1 + i,
			.data_size = s->size,
			.attr	   = attr,
		};
		s->ps->nr_events++;
		err = buffer__init(s, &s->buffers[i], &s->ps->events[i]);
	}
	if (err)
		return err;
	s->evlist = persistent_session__new_evlist(s->ps);
	return s->evlist ? 0 : -errno;
}

/* Passes */

struct pass_reader {
	struct persistent_reader	reader;
	u64				bytes;
};

static int count_bytes(struct persistent_reader *r, void *buf __maybe_unused, size_t size)
{
	container_of(r, struct pass_reader, reader)->bytes += size;
	return 0;
}

/* @nr_written: buffers with new records in each pass; returns ns of a pass. */
static int measure_passes(struct synth_session *s, struct pass_reader *pr,
			  unsigned int nr_written, u64 *nsec)
{
	u64 samples = pr->reader.samples, start, shortest = -1ULL;

	for (unsigned int loop = 0; loop < nr_loops; loop++) {
		for (unsigned int i = 0; i < nr_written; i++)
			write_records(s, &s->buffers[i], nr_records);
		start = rdclock();
		if (persistent_reader__take(&pr->reader, PERF_SNAPSHOT_INCREMENTAL) ||
		    persistent_reader__put_pass(&pr->reader))
			return -EIO;
		shortest = min(shortest, (u64)rdclock() - start);
	}
	*nsec = shortest;
	samples = pr->reader.samples - samples;
	if (samples == (u64)nr_loops * nr_written * nr_records)
		return 0;
	fprintf(stderr, "%" PRIu64 " records were read, not %" PRIu64 "\n", samples,
		(u64)nr_loops * nr_written * nr_records);
	return -EBADMSG;
}

static int bench_passes(struct synth_session *s)
{
	struct record_opts opts = {};
	struct pass_reader pr = {
		.reader = { .put = count_bytes, .opts = &opts, .ps = s->ps, .evlist = s->evlist },
	};
	u64 before, idle, one, all;
	int err;

	err = persistent_reader__map(&pr.reader);
	if (!err)
		err = persistent_reader__take(&pr.reader, 0);
	if (!err)
		err = persistent_reader__put_pass(&pr.reader);
	before = resident_bytes();
	if (!err)
		err = measure_passes(s, &pr, 0, &idle);
	if (!err)
		err = measure_passes(s, &pr, 1, &one);
	if (!err)
		err = measure_passes(s, &pr, nr_cpus, &all);
	if (!err) {
		printf("    pass, nothing new: %.3f usec per buffer\n",
		       (double)idle / nr_cpus / NSEC_PER_USEC);
		printf("    pass, %u new records in one buffer: %.3f usec per buffer\n",
		       nr_records, (double)one / nr_cpus / NSEC_PER_USEC);
		printf("    pass, %u new records in each buffer: %.3f usec per buffer\n",
		       nr_records, (double)all / nr_cpus / NSEC_PER_USEC);
		printf("    memory for the copies: %.1f KiB per buffer\n",
		       (double)(s64)(resident_bytes() - before) / nr_cpus / 1024);
	}
	/* The session and the evlist are not the reader's. */
	pr.reader.ps = NULL;
	persistent_reader__exit(&pr.reader);
	return err;
}

static int bench_window(struct synth_session *s)
{
	u64 nr = (s->size + s->size / 2) / sizeof(struct sample);
	u64 oldest = nr - s->size / sizeof(struct sample), start;
	struct persistent_window window;
	int err;

	for (unsigned int i = 0; i < nr_cpus; i++)
		fill(s, &s->buffers[i]);
	start = rdclock();
	err = persistent_session__window(s->ps, s->evlist, &window);
	if (err)
		return err;
	printf("    window of the session: %.3f msec\n",
	       (double)(rdclock() - start) / NSEC_PER_MSEC);
	if (window.wrapped && window.oldest == time_of(oldest) && window.newest == time_of(nr - 1))
		return 0;
	fprintf(stderr, "the window is %" PRIu64 "-%" PRIu64 ", not %" PRIu64 "-%" PRIu64 "\n",
		(u64)window.oldest, (u64)window.newest, time_of(oldest), time_of(nr - 1));
	return -EBADMSG;
}

static int bench_session(void)
{
	struct synth_session s = {};
	int err = session__init(&s);

	if (!err)
		err = bench_passes(&s);
	if (!err)
		err = bench_window(&s);
	session__delete(&s);
	return err;
}

/* The ring and its child */

static u64 shared_bytes(void)
{
	unsigned long shared = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f && fscanf(f, "%*u %*u %lu", &shared) != 1)
		shared = 0;
	if (f)
		fclose(f);
	return (u64)shared * page_size;
}

/* A child that does nothing; returns ns of fork(). */
static u64 time_fork(void)
{
	u64 start = rdclock(), end;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	end = rdclock();
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return end - start;
}

static u64 time_private_fork(size_t size)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	u64 nsec = 0;

	if (p == MAP_FAILED)
		return 0;
	madvise(p, size, MADV_NOHUGEPAGE);
	memset(p, 1, size);
	for (unsigned int i = 0; i < 5; i++)
		nsec = i ? min(nsec, time_fork()) : time_fork();
	munmap(p, size);
	return nsec;
}

static void store_rounds(struct ring_store *rs, u64 bytes)
{
	static struct sample samples[1000];
	u64 end = ring_store__head(rs) + bytes;

	for (unsigned int i = 0; i < ARRAY_SIZE(samples); i++)
		samples[i].header = (struct perf_event_header) {
			.type = PERF_RECORD_SAMPLE, .size = sizeof(samples[i]),
		};
	while (ring_store__head(rs) < end) {
		ring_store__append(rs, samples, sizeof(samples));
		ring_store__close_round(rs, 1);
	}
}

static int count_sample(union perf_event *event, void *data)
{
	*(u64 *)data += event->header.size;
	return 0;
}

/* In the child: twice, as for a dump. Return: what could not be read in the second walk. */
static u64 walk_ring(struct ring_store *rs)
{
	struct ring_store_round round;
	u64 bytes = 0;

	ring_store__forked(rs);
	for (unsigned int walk = 0; walk < 2; walk++) {
		if (walk)
			ring_store__walk_last(rs);
		for (bool more = ring_store__first(rs, &round); more;
		     more = ring_store__next(rs, &round)) {
			ring_store__walk(rs, &round, count_sample, &bytes);
			if (walk)
				ring_store__passed(rs, &round);
		}
	}
	return ring_store__stolen(rs);
}

static int bench_ring(void)
{
	u64 size = (u64)ring_mib << 20, before = shared_bytes(), most, stolen = 0;
	u64 start, shared = -1ULL;
	struct ring_store *rs = ring_store__new(size, NULL, NULL);
	int fds[2], err = -ENOMEM;
	pid_t pid;

	if (!rs || pipe(fds))
		return err;
	store_rounds(rs, size + size / 2);
	most = shared_bytes() - before;
	for (unsigned int i = 0; i < 5; i++)
		shared = min(shared, time_fork());
	start = rdclock();
	ring_store__fence(rs);
	pid = fork();
	if (!pid) {
		stolen = walk_ring(rs);
		_exit(write(fds[1], &stolen, sizeof(stolen)) != sizeof(stolen));
	}
	/* All of the ring at most, as long as the child reads it */
	for (unsigned int i = 0; i < 100 && !waitpid(pid, NULL, WNOHANG); i++) {
		store_rounds(rs, size / 100);
		most = max(most, shared_bytes() - before);
		usleep(ring_mib * 10);
	}
	err = read(fds[0], &stolen, sizeof(stolen)) == sizeof(stolen) ? 0 : -EIO;
	waitpid(pid, NULL, 0);
	ring_store__unfence(rs);
	start = rdclock() - start;
	printf("    fork: %.3f msec, with as much private memory %.3f msec\n",
	       (double)shared / NSEC_PER_MSEC,
	       (double)time_private_fork(size) / NSEC_PER_MSEC);
	printf("    a child reads it twice, while the recorder goes on: %.3f msec\n",
	       (double)start / NSEC_PER_MSEC);
	printf("    memory meanwhile: %.3f of the size, %.3f of it was taken from the child\n",
	       (double)most / size, (double)stolen / size);
	ring_store__delete(rs);
	close(fds[0]);
	close(fds[1]);
	return err;
}

/* Division among cgroups */

#define NR_CGROUPS	12

struct cgroup_sample {
	struct sample		sample;
	u64			cgroup;
};

static int ignore_record(union perf_event *event __maybe_unused, void *data __maybe_unused)
{
	return 0;
}

static int ignore_group(u32 group __maybe_unused, void *data __maybe_unused)
{
	return 0;
}

static struct evlist *new_sampling_evlist(void)
{
	struct perf_event_attr attr = {
		.size		= sizeof(attr),
		.sample_type	= PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				  PERF_SAMPLE_PERIOD | PERF_SAMPLE_CGROUP,
		.sample_id_all	= 1,
	};
	struct evlist *evlist = evlist__new();
	struct evsel *evsel = evlist ? evsel__new(&attr) : NULL;

	if (evsel)
		evlist__add(evlist, evsel);
	return evlist;
}

/* Twice the size, in both stores. Return: ns for a record. */
static double time_store(struct ring_store *rs, struct fair_store *fs, u64 size)
{
	static struct cgroup_sample samples[1000];
	u64 start, rounds = 2 * size / sizeof(samples) + 1;

	for (unsigned int i = 0; i < ARRAY_SIZE(samples); i++) {
		samples[i].sample.header = (struct perf_event_header) {
			.type = PERF_RECORD_SAMPLE, .size = sizeof(samples[i]),
		};
		/* As many as a task makes before the next one runs */
		samples[i].cgroup = 1 + i / 10 % NR_CGROUPS;
	}
	start = rdclock();
	for (u64 i = 1; i <= rounds; i++) {
		if (fs) {
			fair_store__append(fs, samples, sizeof(samples));
			fair_store__close_round(fs, i);
		} else {
			ring_store__append(rs, samples, sizeof(samples));
			ring_store__close_round(rs, i);
		}
	}
	return (double)(rdclock() - start) / (rounds * ARRAY_SIZE(samples));
}

/* The second time, with memory that is resident */
static int bench_fair(void)
{
	u64 size = (u64)ring_mib << 20;
	struct evlist *evlist = new_sampling_evlist();
	struct ring_store *rs = ring_store__new(size, ignore_record, NULL);
	struct fair_store *fs = fair_store__new(size, evlist, ignore_record, ignore_group, NULL);
	double plain, fair;

	if (!evlist || !rs || !fs)
		return -ENOMEM;
	ring_store__evict_unseen(rs, PERF_RECORD_SAMPLE);
	time_store(rs, NULL, size);
	time_store(NULL, fs, size);
	plain = time_store(rs, NULL, size);
	fair = time_store(NULL, fs, size);
	printf("    a record: %.1f nsec, divided among %d cgroups %.1f nsec\n", plain, NR_CGROUPS,
	       fair);
	ring_store__delete(rs);
	fair_store__delete(fs);
	evlist__put(evlist);
	return 0;
}

/* Side-band */

struct synth_sideband {
	struct sideband_store	*ss;
	union perf_event	*event;
	u64			nr_records;
	u64			state;
};

static u64 random_number(struct synth_sideband *sb)
{
	sb->state = sb->state * 6364136223846793005ULL + 1442695040888963407ULL;
	return sb->state >> 33;
}

static void fold(struct synth_sideband *sb, u32 type, u16 misc, size_t size)
{
	sb->event->header = (struct perf_event_header) {
		.type = type,
		.misc = misc,
		.size = PERF_ALIGN(size, sizeof(u64)),
	};
	sideband_store__fold(sb->ss, sb->event);
	sb->nr_records++;
}

/* These pids are higher than any that a machine has. */
static u32 pid_of(u32 nr)
{
	return (1 << 30) + nr;
}

static void fold_map(struct synth_sideband *sb, u32 pid, u64 start, unsigned int file)
{
	struct perf_record_mmap2 *mmap = &sb->event->mmap2;
	int len = snprintf(mmap->filename, sizeof(mmap->filename),
			   "/usr/lib/x86_64-linux-gnu/libsomething%u.so.%u", file / 4, file % 4);

	mmap->pid = pid;
	mmap->tid = pid;
	mmap->start = start;
	mmap->len = 0x10000;
	mmap->pgoff = file % 4 << 16;
	mmap->maj = 8;
	mmap->min = 1;
	mmap->ino = 1000 + file / 4;
	mmap->ino_generation = 1;
	mmap->prot = 5;
	mmap->flags = 2;
	memset(mmap->filename + len, 0, sizeof(u64));
	fold(sb, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER,
	     offsetof(struct perf_record_mmap2, filename) + len + 1);
}

static void start_process(struct synth_sideband *sb, u32 pid)
{
	u64 base = random_number(sb) << 20;
	unsigned int file = random_number(sb) % NR_FILES;

	sb->event->fork = (struct perf_record_fork) {
		.pid = pid, .tid = pid, .ppid = 1, .ptid = 1,
	};
	fold(sb, PERF_RECORD_FORK, 0, sizeof(sb->event->fork));
	sb->event->comm.pid = pid;
	sb->event->comm.tid = pid;
	snprintf(sb->event->comm.comm, 16, "process%u", pid & 0xffff);
	fold(sb, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, sizeof(sb->event->comm));
	for (unsigned int i = 0; i < nr_maps; i++)
		fold_map(sb, pid, base + i * 0x20000ULL, (file + i) % NR_FILES);
}

static void exit_process(struct synth_sideband *sb, u32 pid)
{
	sb->event->fork = (struct perf_record_fork) { .pid = pid, .tid = pid };
	fold(sb, PERF_RECORD_EXIT, 0, sizeof(sb->event->fork));
}

static void print_fold(struct synth_sideband *sb, const char *what, u64 start)
{
	printf("    %s: %" PRIu64 " records, %.3f usec for each\n", what, sb->nr_records,
	       (double)(rdclock() - start) / sb->nr_records / NSEC_PER_USEC);
	sb->nr_records = 0;
}

/* The child of a dump has a copy of this memory, too. */
static void print_fork(void)
{
	u64 shortest = time_fork();

	for (unsigned int i = 1; i < nr_loops; i++)
		shortest = min(shortest, time_fork());
	printf("    with the fork() of a child %.3f msec\n", (double)shortest / NSEC_PER_MSEC);
}

/* All processes are gone, and their exits were lost. */
static int bench_search(struct synth_sideband *sb)
{
	const struct sideband_stats *stats = sideband_store__stats(sb->ss);
	u64 start, longest = 0;
	unsigned int nr;

	sideband_store__doubt_all(sb->ss);
	for (nr = 0; stats->processes && nr < nr_processes + 10; nr++) {
		start = rdclock();
		sideband_store__settle(sb->ss, nr, SIDEBAND_SETTLE_SHARE);
		sideband_store__doubt(sb->ss, nr, SIDEBAND_DOUBT_SHARE);
		longest = max(longest, (u64)rdclock() - start);
	}
	printf("    search for processes that are gone: %u passes, the longest %.3f msec\n", nr,
	       (double)longest / NSEC_PER_MSEC);
	if (!stats->processes && !stats->used)
		return 0;
	fprintf(stderr, "%" PRIu64 " processes and %zu bytes are left\n", stats->processes,
		stats->used);
	return -EBADMSG;
}

static int bench_sideband(void)
{
	struct synth_sideband sb = {
		.ss	= sideband_store__new(-1UL, 0),
		.event	= zalloc(PERF_SAMPLE_MAX_SIZE),
	};
	u64 before = resident_bytes(), start = rdclock();
	const struct sideband_stats *stats;
	int err;

	if (!sb.ss || !sb.event)
		return -ENOMEM;
	stats = sideband_store__stats(sb.ss);
	for (unsigned int i = 0; i < nr_processes; i++)
		start_process(&sb, pid_of(i));
	print_fold(&sb, "folding, processes that start", start);
	printf("    memory: %.1f bytes per map as counted, %.1f resident\n",
	       (double)stats->used / stats->maps,
	       (double)(resident_bytes() - before) / stats->maps);
	print_fork();

	start = rdclock();
	for (unsigned int i = 0; i < nr_processes / 2; i++) {
		u32 pid = pid_of(random_number(&sb) % nr_processes);

		exit_process(&sb, pid);
		start_process(&sb, pid);
	}
	print_fold(&sb, "folding, processes that come and go", start);

	err = 0;
	if (stats->processes != nr_processes || stats->maps != (u64)nr_processes * nr_maps ||
	    stats->dropped) {
		fprintf(stderr, "%" PRIu64 " processes with %" PRIu64 " maps are known\n",
			stats->processes, stats->maps);
		err = -EBADMSG;
	}
	if (!err)
		err = bench_search(&sb);
	sideband_store__delete(sb.ss);
	free(sb.event);
	return err;
}

int bench_flight_size(int argc, const char **argv)
{
	struct rlimit nofile;
	int err;

	if (parse_options(argc, argv, options, bench_usage, 0))
		usage_with_options(bench_usage, options);
	if (!nr_cpus || nr_cpus > 1000 || !nr_loops || !nr_maps || !nr_processes ||
	    !nr_records || !ring_mib || !buffer_mib || buffer_mib & (buffer_mib - 1)) {
		fprintf(stderr, "At most 1000 CPUs, a power of two of MiB, and nothing is 0.\n");
		return 1;
	}
	if (!getrlimit(RLIMIT_NOFILE, &nofile)) {
		nofile.rlim_cur = nofile.rlim_max;
		setrlimit(RLIMIT_NOFILE, &nofile);
	}

	printf("  %u buffers of %u MiB:\n", nr_cpus, buffer_mib);
	err = bench_session();
	if (!err) {
		printf("  a ring of %u MiB:\n", ring_mib);
		err = bench_ring() ?: bench_fair();
	}
	if (!err) {
		printf("  %u processes with %u maps each:\n", nr_processes, nr_maps);
		err = bench_sideband();
	}
	if (err)
		fprintf(stderr, "failed: %s\n", strerror(-err));
	return err ? 1 : 0;
}
