// SPDX-License-Identifier: GPL-2.0
/*
 * Trigger: a BPF program of the user, --trigger bpf:PINNED_MAP
 *
 * The program decides when to trigger. It writes a reason, text of any length, to a map of
 * type BPF_MAP_TYPE_RINGBUF that is pinned in a BPF file system. Each record is a hit. The
 * program and the map belong to the user who loaded them. The recorder opens the map as its
 * only reader, and leaves it in place when it ends. Records that were written before the
 * recorder started are ignored.
 *
 * tools/perf/examples/flight/ has an example program and its loader.
 */
#include "triggers.h"
#include "../../debug.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef HAVE_LIBBPF_SUPPORT
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#define RECORDS_PER_PASS	1024

/**
 * struct pinned - the map of a BPF trigger
 * @path: where it is pinned
 * @fd: the map
 * @hits: records since the last call
 * @rb: the reader of the map
 */
struct pinned {
	char			*path;
	int			fd;
	unsigned int		hits;
	struct ring_buffer	*rb;
};

static int bpf_parse(struct flight_trigger *t, const char *arg)
{
	struct pinned *p;

	if (!arg || !*arg) {
		pr_err("--trigger: 'bpf' requires the path of a pinned ring buffer map after a colon. Use bpf:PINNED_MAP\n");
		return -EINVAL;
	}
	p = zalloc(sizeof(*p));
	if (!p)
		return -ENOMEM;
	t->priv = p;
	p->fd = -1;
	p->path = strdup(arg);
	return p->path ? 0 : -ENOMEM;
}

static void bpf_free(struct flight_trigger *t)
{
	struct pinned *p = t->priv;

	if (p)
		free(p->path);
	free(p);
	t->priv = NULL;
}

static int take_record(void *ctx, void *data, size_t size)
{
	struct flight_trigger *t = ctx;
	struct pinned *p = t->priv;
	char reason[sizeof(t->reason)];

	if (!p->hits++ && trigger_is_ready(&t->state)) {
		size = min(size, sizeof(reason) - 1);
		memcpy(reason, data, size);
		reason[size] = '\0';
		flight_trigger__set_reason(t, *reason ? reason : "a BPF program");
	}
	return 0;
}

static int open_map(struct pinned *p)
{
	struct bpf_map_info info = {};
	__u32 len = sizeof(info);
	int err;

	p->fd = bpf_obj_get(p->path);
	if (p->fd < 0) {
		err = -errno;
		pr_err("--trigger: cannot open the map %s: %s\n", p->path, strerror(-err));
		return err;
	}
	if (bpf_map_get_info_by_fd(p->fd, &info, &len) || info.type != BPF_MAP_TYPE_RINGBUF) {
		pr_err("--trigger: %s is not a BPF ring buffer map.\n", p->path);
		return -EINVAL;
	}
	return 0;
}

static void bpf_close(struct pinned *p)
{
	ring_buffer__free(p->rb);
	p->rb = NULL;
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

static int bpf_start(struct flight_trigger *t)
{
	struct pinned *p = t->priv;
	int err = open_map(p);

	if (err)
		goto out_close;
	p->rb = ring_buffer__new(p->fd, take_record, t, NULL);
	if (!p->rb) {
		err = -errno;
		pr_err("--trigger: cannot read the map %s: %s\n", p->path, strerror(-err));
		goto out_close;
	}
	ring_buffer__consume_n(p->rb, RECORDS_PER_PASS);
	p->hits = 0;
	t->fd = ring_buffer__epoll_fd(p->rb);
	return 0;

out_close:
	bpf_close(p);
	return err;
}

static unsigned int bpf_hits(struct flight_trigger *t)
{
	struct pinned *p = t->priv;
	unsigned int hits;

	t->more = ring_buffer__consume_n(p->rb, RECORDS_PER_PASS) == RECORDS_PER_PASS;
	hits = p->hits;
	p->hits = 0;
	return hits;
}

static void bpf_stop(struct flight_trigger *t)
{
	/* The reader owns the file descriptor. */
	t->fd = -1;
	bpf_close(t->priv);
}

#else /* HAVE_LIBBPF_SUPPORT */

static int bpf_parse(struct flight_trigger *t __maybe_unused, const char *arg __maybe_unused)
{
	pr_err("--trigger: 'bpf' is not supported: this perf was built without libbpf.\n");
	return -EINVAL;
}

#define bpf_free	NULL
#define bpf_start	NULL
#define bpf_hits	NULL
#define bpf_stop	NULL

#endif

const struct flight_trigger_ops flight_trigger_bpf = {
	.name	= "bpf",
	.by_itself = true,
	.parse	= bpf_parse,
	.start	= bpf_start,
	.hits	= bpf_hits,
	.stop	= bpf_stop,
	.free	= bpf_free,
};
