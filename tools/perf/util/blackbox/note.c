// SPDX-License-Identifier: GPL-2.0
/*
 * perf data note: store with a session of a black box what its records do not tell
 *
 * After a reset, nothing tells any more which tasks there were, what they had mapped, which
 * modules were loaded, and the formats of tracepoints. These are stored as records of
 * perf.data:
 *
 *	formats of the session's tracepoints
 *	modules of the kernel
 *	cgroups, if the session's samples have them
 *	tasks, their names and mappings, with build-ids
 *
 * There is room for a part of the image only. If they do not fit, the mappings are left out;
 * then the cgroups, and then the tasks, too.
 *
 * To keep notes current, all of this is stored again after some time. In between, what
 * tasks become (note-changes.c) is added: a program that starts costs its own records. If there
 * is no room for them, all is stored again, which makes room.
 *
 *	note_changes__init()			from here on, no change is missed
 *	note_changes__take(), thrown away	older than what is read next
 *	note_once()				the state
 *	note_changes__take(), add()		changes since, some of which the state has
 *	...
 *
 * A flight recorder of a session has a child for it, the keeper, so that its own thread reads no
 * task and waits for no lock of the notes. The keeper closes all files of the recorder and opens
 * the session anew. It has no event open, and the file of the session does not keep that from
 * ending:
 *
 *	the recorder ends		it kills and reaps the keeper, before perf record waits
 *					for its workload
 *	the recorder is killed		the kernel kills the keeper (PR_SET_PDEATHSIG)
 *	the keeper is killed		recording goes on, and the notes stay as they are
 *	the session gets events		its file tells so, and all is stored with their formats
 *	the session ends		its file hangs up, and the keeper looks for one of that name
 *					which may replace it, until the recorder ends
 *	fork() fails			a warning, and recording goes on
 *	a CPU comes online		see note-changes.c
 *
 * For memory the keeper is as likely to be killed as the recorder is, not more: it lives as
 * long, and has next to none.
 */
#include "blackbox.h"
#include "note-changes.h"
#include "../base-api.h"
#include "../cloexec.h"
#include "../debug.h"
#include "../event.h"
#include "../evlist.h"
#include "../evsel.h"
#include "../flight/child.h"
#include "../flight/job.h"
#include "../flight/options.h"
#include "../flight/recorder.h"
#include "../flight/self.h"
#include "../machine.h"
#include "../persistent/persistent.h"
#include "../symbol.h"
#include "../synthetic-events.h"
#include "../time-utils.h"
#include "../tool.h"
#include "../trace-event.h"

#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/perf_blackbox.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <subcmd/parse-options.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

/* In s: how often a flight recorder stores all of it */
#define RECORDER_EVERY	60

/* In s: it is not stored more often for lack of room for changes. */
#define LEAST_EVERY	10U

/* In ms: changes are collected for that long. */
#define COLLECT_CHANGES	100

/* In ms: how often a session is looked for that replaces one */
#define LOOK_FOR_SESSION	100

/* In ms: a wait may end early. */
#define MAX_WAIT	((u64)(3600 * MSEC_PER_SEC))

/* On a machine with very many tasks they are read less often, to take this share of the time. */
#define PERCENT_OF_TIME	1

/* No slot is larger. Of very many tasks no more is kept in memory. */
#define MAX_BYTES	(8L << 20)

/* How much of it is stored, from everything to the least */
enum note_extent {
	NOTE_ALL,
	NOTE_WITHOUT_MAPS,
	NOTE_WITHOUT_CGROUPS,
	NOTE_WITHOUT_TASKS,
	NOTE_EXTENTS,
};

/**
 * struct note_writer - notes that are being collected
 * @tool: its callbacks get synthesized records
 * @f: where they go
 * @bytes: the notes, when @f is closed
 * @size: number of bytes
 */
struct note_writer {
	struct perf_tool	tool;
	FILE			*f;
	char			*bytes;
	size_t			size;
};

static int put_record(const struct perf_tool *tool, union perf_event *event,
		      struct perf_sample *sample __maybe_unused,
		      struct machine *machine __maybe_unused)
{
	struct note_writer *w = container_of(tool, struct note_writer, tool);

	if (ftell(w->f) > MAX_BYTES)
		return -ENOSPC;
	return fwrite(event, 1, event->header.size, w->f) == event->header.size ? 0 : -ENOMEM;
}

#ifdef HAVE_LIBTRACEEVENT
/* The size is known when all of them are there. */
static int put_formats(struct note_writer *w, struct evlist *evlist)
{
	struct perf_record_header_tracing_data record = {
		.header = { .type = PERF_RECORD_HEADER_TRACING_DATA, .size = sizeof(record) },
	};
	FILE *tmp = tmpfile();
	char *formats = NULL;
	long size;
	int err = -errno;

	if (!tmp)
		return err;
	err = read_tracing_data(fileno(tmp), &evlist__core(evlist)->entries);
	size = lseek(fileno(tmp), 0, SEEK_END);
	if (!err && size > 0)
		formats = zalloc(PERF_ALIGN(size, (long)sizeof(u64)));
	if (!formats || pread(fileno(tmp), formats, size, 0) != size) {
		err = -EIO;
	} else {
		record.size = size;
		fwrite(&record, 1, sizeof(record), w->f);
		fwrite(formats, 1, PERF_ALIGN(size, (long)sizeof(u64)), w->f);
	}
	free(formats);
	fclose(tmp);
	return err;
}
#else
static int put_formats(struct note_writer *w __maybe_unused,
		       struct evlist *evlist __maybe_unused)
{
	return -EOPNOTSUPP;
}
#endif

/* The records of a session name only the cgroups that were made after it. */
static void put_cgroups(struct note_writer *w, struct machine *machine)
{
	w->tool.cgroup_events = true;
	if (perf_event__synthesize_cgroups(&w->tool, put_record, machine) < 0)
		pr_warning("The names of cgroups cannot be stored: is there a cgroup file system with perf_event?\n");
}

static bool has_cgroups(struct evlist *evlist)
{
	struct evsel *evsel;

	evlist__for_each_entry(evlist, evsel) {
		if (evsel->core.attr.sample_type & PERF_SAMPLE_CGROUP)
			return true;
	}
	return false;
}

static bool has_tracepoints(struct evlist *evlist)
{
	struct evsel *evsel;

	evlist__for_each_entry(evlist, evsel) {
		if (evsel->core.attr.type == PERF_TYPE_TRACEPOINT)
			return true;
	}
	return false;
}

static int put_notes(struct note_writer *w, struct evlist *evlist, enum note_extent extent)
{
	struct machine *machine;
	struct perf_env env = {};
	int err = 0;

	perf_env__init(&env);
	machine = host_machine__new(&env);
	if (!machine) {
		perf_env__exit(&env);
		return -ENOMEM;
	}
	if (has_tracepoints(evlist) && put_formats(w, evlist))
		pr_warning("The formats of the tracepoints cannot be stored: is tracefs mounted, and may this user read it?\n");
	if (perf_event__synthesize_modules(&w->tool, put_record, machine) < 0)
		pr_warning("The modules of the kernel cannot be stored: see /proc/sys/kernel/kptr_restrict.\n");
	if (extent < NOTE_WITHOUT_CGROUPS && has_cgroups(evlist))
		put_cgroups(w, machine);
	/* It returns -1, whatever has failed. */
	if (extent < NOTE_WITHOUT_TASKS &&
	    perf_event__synthesize_threads(&w->tool, put_record, machine,
					   /*needs_mmap=*/extent == NOTE_ALL,
					   /*mmap_data=*/false,
					   /*nr_threads_synthesize=*/1) < 0)
		err = -EIO;
	machine__delete(machine);
	perf_env__exit(&env);
	return err;
}

static int collect(struct note_writer *w, struct evlist *evlist, enum note_extent extent)
{
	int err;

	perf_tool__init(&w->tool, /*ordered_events=*/false);
	w->f = open_memstream(&w->bytes, &w->size);
	if (!w->f)
		return -ENOMEM;
	err = put_notes(w, evlist, extent);
	if (ftell(w->f) > MAX_BYTES)
		err = -ENOSPC;
	if (fclose(w->f) && !err)
		err = -ENOMEM;
	return err;
}

/* Return: the extent that was stored, or a negative errno. */
static int store(int fd, struct evlist *evlist, struct perf_persistent_notes *arg)
{
	int err = -ENOSPC;

	for (int extent = NOTE_ALL; extent < NOTE_EXTENTS && err == -ENOSPC; extent++) {
		struct note_writer w = {};

		err = collect(&w, evlist, extent);
		*arg = (struct perf_persistent_notes) {
			.size		= sizeof(*arg),
			.data		= (unsigned long)w.bytes,
			.data_size	= w.size,
		};
		if (!err && ioctl(fd, PERF_EVENT_IOC_SESSION_NOTES, arg))
			err = -errno;
		free(w.bytes);
		if (!err)
			return extent;
	}
	return err;
}

/* This process is the child of a flight recorder. */
static bool of_recorder;

static void print_error(const char *name, int err)
{
	switch (err) {
	case -EPERM:
	case -EACCES:
		pr_err("Notes of session %s can be stored by its owner, or with CAP_SYS_ADMIN: run perf as root.\n",
		       name);
		break;
	case -ENOTTY:
	case -EINVAL:
		if (of_recorder)
			break;
		pr_err("This kernel has no black boxes: boot one with CONFIG_PERF_PERSISTENT_BLACKBOX.\n");
		break;
	case -ENOENT:
		/* The recorder tells of it. */
		if (!of_recorder)
			pr_err("Session %s has ended.\n", name);
		break;
	case -EIO:
		pr_err("Notes of session %s cannot be stored, as the tasks cannot be read: is /proc mounted, and is there memory?\n",
		       name);
		break;
	case -ENOSPC:
		pr_err("There is no room for notes of session %s: if it lies in a region, make that larger.\n",
		       name);
		break;
	default:
		pr_err("Notes of session %s cannot be stored: %s.\n", name, strerror(-err));
		break;
	}
}

static int note_once(const char *name, int fd, struct evlist *evlist)
{
	static const char *const stored[NOTE_EXTENTS] = {
		[NOTE_ALL]		= "",
		[NOTE_WITHOUT_MAPS]	= ", without what tasks have mapped",
		[NOTE_WITHOUT_CGROUPS]	= ", without what tasks have mapped, and cgroups",
		[NOTE_WITHOUT_TASKS]	= ", without tasks and cgroups",
	};
	struct perf_persistent_notes arg;
	int ret = store(fd, evlist, &arg);

	if (ret < 0) {
		print_error(name, ret);
		return ret;
	}
	if (ret != NOTE_ALL)
		pr_warning("There is no room for all notes: %llu bytes fit.\n",
			   (unsigned long long)arg.slot_size);
	if (!quiet)
		fprintf(stderr, "[ perf data note: stored %llu bytes with session %s%s ]\n",
			(unsigned long long)arg.data_size, name, stored[ret]);
	return 0;
}

static bool has_ended(int fd)
{
	struct pollfd session = { .fd = fd };

	return poll(&session, 1, 0) > 0 && session.revents & POLLHUP;
}

static int add(const char *name, int fd, struct note_changes *c)
{
	struct perf_persistent_notes arg = {
		.size		= sizeof(arg),
		.flags		= PERF_PERSISTENT_NOTES_ADD,
		.data		= (unsigned long)c->taken.buf,
		.data_size	= c->taken.len,
	};

	if (!c->taken.len || !ioctl(fd, PERF_EVENT_IOC_SESSION_NOTES, &arg))
		return 0;
	if (errno != ENOSPC && errno != ENODATA && errno != ENOMEM) {
		print_error(name, -errno);
		return -errno;
	}
	c->lost = true;
	return 0;
}

static struct evlist *open_evlist(const char *what, char name[PERF_PERSISTENT_NAME_LEN],
				  struct perf_persistent_session_info *info)
{
	struct persistent_session *ps = persistent_session__open(what);
	struct evlist *evlist;

	if (IS_ERR(ps)) {
		errno = -PTR_ERR(ps);
		return NULL;
	}
	scnprintf(name, PERF_PERSISTENT_NAME_LEN, "%s", ps->name);
	info->id = ps->id;
	info->nr_events = ps->nr_events;
	evlist = persistent_session__new_evlist(ps);
	if (!evlist)
		print_error(name, -errno);
	/* Events that are open would not end with their session. */
	persistent_session__close(ps);
	return evlist;
}

/*
 * With other events, there are other formats of tracepoints. Of a session that gets as many as it
 * loses, that is not seen.
 */
static void renew_evlist(struct evlist **evlist, struct perf_persistent_session_info *info)
{
	char what[32], name[PERF_PERSISTENT_NAME_LEN];
	struct evlist *news;

	scnprintf(what, sizeof(what), "id=%llu", (unsigned long long)info->id);
	news = open_evlist(what, name, info);
	if (!news)
		return;
	evlist__put(*evlist);
	*evlist = news;
}

static bool has_other_events(int fd, struct perf_persistent_session_info *info)
{
	u32 before = info->nr_events;

	return !ioctl(fd, PERF_EVENT_IOC_SESSION_INFO, info) && info->nr_events != before;
}

/* Until the session ends. They have been stored once. */
static int keep(const char *name, int fd, struct evlist **evlist,
		struct perf_persistent_session_info *info, struct note_changes *c,
		unsigned int every)
{
	const u64 least = (u64)min(every, LEAST_EVERY) * NSEC_PER_SEC;
	u64 stored = rdclock(), due = stored + (u64)every * NSEC_PER_SEC, took = 0, t;
	int err = 0;

	while (!err) {
		t = rdclock();
		note_changes__wait(c, due > t ? min((due - t) / NSEC_PER_MSEC + 1, MAX_WAIT) : 0);
		if (has_ended(fd)) {
			print_error(name, -ENOENT);
			return -ENOENT;
		}
		poll(NULL, 0, COLLECT_CHANGES);
		note_changes__take(c);
		if (has_other_events(fd, info)) {
			renew_evlist(evlist, info);
			c->lost = true;
		}
		t = rdclock();
		if (c->lost)
			due = min(due, stored + max(least, took * 100 / PERCENT_OF_TIME));
		if (t < due) {
			err = add(name, fd, c);
			continue;
		}
		note_changes__open(c);
		c->lost = false;
		err = note_once(name, fd, *evlist);
		/* There may be memory next time. */
		if (err == -ENOMEM || err == -EIO)
			err = 0;
		stored = rdclock();
		took = stored - t;
		due = stored + max(every * (u64)NSEC_PER_SEC, took * 100 / PERCENT_OF_TIME);
	}
	return err;
}

static void be_silent(void)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	fflush(NULL);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	close(fd);
}

static int note_session(const char *name, int fd, struct evlist **evlist,
			struct perf_persistent_session_info *info, unsigned int every)
{
	struct note_changes changes;
	int err;

	if (!every)
		return note_once(name, fd, *evlist);
	/* Their times are of perf's clock: see names.c. */
	err = note_changes__init(&changes, fd, !evlist__first(*evlist)->core.attr.use_clockid);
	if (err)
		pr_warning("Programs that start are noted every %u seconds only, as their start cannot be recorded: %s. See /proc/sys/kernel/perf_event_paranoid.\n",
			   every, strerror(-err));
	err = note_once(name, fd, *evlist);
	/* The file that the recorder prints to may be another one later. */
	if (of_recorder)
		be_silent();
	if (!err) {
		err = keep(name, fd, evlist, info, &changes, every);
		/* That is what it waits for. */
		if (err == -ENOENT)
			err = 0;
	}
	note_changes__exit(&changes);
	return err;
}

static bool outlives_kernel(const char *name)
{
	char *region = persistent__region(name);
	bool outlives = region || persistent__has_crash_kernel();

	free(region);
	return outlives;
}

/*
 * A recorder of a session that ends with the kernel waits for a crash kernel. Of somebody else's
 * session it stores nothing. Return: whether there is to be a note.
 */
static bool wait_for_use(const char *name, int fd)
{
	struct perf_persistent_session_info info = { .size = sizeof(info) };
	struct pollfd session = { .fd = fd };

	while (!has_ended(fd) && !ioctl(fd, PERF_EVENT_IOC_SESSION_INFO, &info) &&
	       persistent__may_control(&info)) {
		if (outlives_kernel(name))
			return true;
		poll(&session, 1, RECORDER_EVERY * MSEC_PER_SEC);
	}
	return false;
}

/* Store them again after @every seconds, as long as the session lives; 0: only once. */
static int note(const char *what, unsigned int every)
{
	struct perf_persistent_session_info info = { .size = sizeof(info) };
	char name[PERF_PERSISTENT_NAME_LEN];
	int fd, err = persistent__check_support();
	struct evlist *evlist;

	if (err)
		return err;
	evlist = open_evlist(what, name, &info);
	if (!evlist)
		return -errno ?: -ENOMEM;
	fd = persistent__open_session(info.id);
	if (of_recorder && (fd < 0 || !wait_for_use(name, fd)))
		goto out;
	err = fd < 0 ? fd : symbol__init(NULL) ? -ENOMEM : 0;
	if (err) {
		print_error(name, err);
	} else {
		symbol_conf__set_buildid_mmap2(true, false);
		err = note_session(name, fd, &evlist, &info, every);
	}
out:
	evlist__put(evlist);
	if (fd >= 0)
		close(fd);
	return err;
}

/**
 * blackbox__note - store notes with a session that was just created
 * @id: its id
 *
 * The session records in any case. If its notes cannot be stored, a message tells why.
 */
void blackbox__note(u64 id)
{
	char what[32];

	scnprintf(what, sizeof(what), "id=%llu", (unsigned long long)id);
	if (note(what, 0))
		pr_warning("The session records, but without notes: store them with perf data note NAME.\n");
}

static bool lives(u64 id)
{
	int fd = persistent__open_session(id);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* If the recorder does not follow a session that replaces this one, it ends, and so do we. */
static int note_each(const char *name)
{
	u64 noted, id;
	int err;

	if (!persistent__find_id(name, &id))
		return -ENOENT;
	do {
		noted = id;
		err = note(name, RECORDER_EVERY);
		if (lives(noted))
			return err;
		while (!persistent__find_id(name, &id) || id == noted)
			poll(NULL, 0, LOOK_FOR_SESSION);
	} while (true);
}

static void run_keeper(const char *what, pid_t recorder)
{
	const struct sched_param ordinary = {};
	int err;

	flight_child__begin();
	/* It has more time than a recorder with -r. */
	sched_setscheduler(0, SCHED_OTHER, &ordinary);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != recorder)
		_exit(1);
	flight_child__close_but(-1, -1);
	quiet = true;
	of_recorder = true;
	err = strstarts(what, "id=") ? note(what, RECORDER_EVERY) : note_each(what);
	_exit(err ? 1 : 0);
}

/**
 * blackbox__keep_notes - keep the notes of a session current as long as a flight recorder lives
 * @fr: the recorder, which drops what the keeper causes as it drops its own doing
 * @what: the session that it reads, or NULL: it has events of its own
 *
 * If the session does not outlive the kernel, or is not this user's, nothing is stored; nor by a
 * recorder in a pid namespace of its own, or with --dry-run.
 */
void blackbox__keep_notes(struct flight_recorder *fr, const char *what)
{
	pid_t recorder = getpid(), pid;

	if (!what || flight_recorder__get_job(fr)->opts->dry_run)
		return;
	/* What /proc tells in another pid namespace would replace what is right. */
	if (!flight_self__knows_pids())
		return;
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		pr_warning("There is no process to keep the notes of session %s: %m. Use perf data note --every 60.\n",
			   what);
	else if (!pid)
		run_keeper(what, recorder);
	else
		flight_recorder__get_self(fr)->keeper = pid;
}

static unsigned int note_every;

static const char *const note_usage[] = {
	"perf data note [<options>] <session>",
	NULL
};

static const struct option note_options[] = {
	OPT_UINTEGER(0, "every", &note_every,
		     "Store the notes again after so many seconds, until the session ends"),
	OPT_BOOLEAN('q', "quiet", &quiet, "Print warnings and errors only"),
	OPT_INCR('v', "verbose", &verbose, "be more verbose"),
	OPT_END()
};

/**
 * cmd_data_note - perf data note
 * @argc: number of arguments
 * @argv: "note", its options, and the name of a session
 *
 * Return: 0 or a negative errno after a message.
 */
int cmd_data_note(int argc, const char **argv)
{
	argc = parse_options(argc, argv, note_options, note_usage, 0);
	if (argc != 1) {
		pr_err("perf data note takes the name of a session.\n");
		return -1;
	}
	return note(argv[0], note_every);
}
