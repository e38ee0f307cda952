// SPDX-License-Identifier: GPL-2.0
/*
 * Trigger: a deadline that was not disarmed in time
 *
 * A program arms a deadline before a step, and disarms it behind that:
 *
 *	arm checkout-17 500ms cart of 3 items
 *	disarm checkout-17
 *
 * If the step takes too long, or never ends, there is a dump of the time before. The
 * requests come over the socket (socket.c), so this trigger is there with any socket, and
 * --trigger deadline,cooldown=T only changes its times. It fires by itself, hence it has a
 * cooldown, and the dumps are bounded on the disk.
 *
 * A deadline has an owner, the connection, and a name that is its own. With the connection go
 * its deadlines, unless it has asked to keep them; those have no owner. Each is in two trees: one
 * by time, whose first sets the timer, and one by owner and name. Arming, disarming and
 * passing take O(log n). A name that is armed again gets the new time and text.
 *
 * The socket is before this trigger in the list, so in a pass requests are read before
 * deadlines are looked at. What had passed when the pass began has passed. A request to
 * disarm that came in time counts as in time, even if the recorder was busy meanwhile: while
 * the socket has more than is read in a pass, what passes is held back, for MAX_HOLD at most.
 *
 * A deadline that has passed is disarmed, and is one hit. If several have passed, one is
 * the reason of the dump, and the others are merged into it.
 */
#include "deadline.h"
#include "triggers.h"
#include "../../clockid.h"
#include "../../debug.h"
#include "../../time-utils.h"

#include <linux/kernel.h>
#include <linux/rbtree.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Somebody who writes requests without end cannot hold deadlines back for longer. */
#define MAX_HOLD	((u64)NSEC_PER_SEC)

/**
 * struct deadline - one of them
 * @by_time: in the tree by @due
 * @by_name: in the tree by @owner and @id
 * @due: when it passes, CLOCK_MONOTONIC in ns
 * @in: ns from arming to that
 * @owner: the connection that armed it, or NULL
 * @text: of the client, or NULL
 * @id: its name
 */
struct deadline {
	struct rb_node	by_time;
	struct rb_node	by_name;
	u64		due;
	u64		in;
	const void	*owner;
	char		*text;
	char		id[];
};

/**
 * struct deadlines - all that are armed
 * @by_time: in the order of time
 * @by_name: by owner and name
 * @nr: how many
 * @held: requests that were not read yet may disarm some
 */
struct deadlines {
	struct rb_root_cached	by_time;
	struct rb_root		by_name;
	unsigned int		nr;
	bool			held;
};

struct key {
	const void	*owner;
	const char	*id;
};

static bool passes_before(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct deadline, by_time)->due <
	       rb_entry(b, struct deadline, by_time)->due;
}

static int compare_key(const void *data, const struct rb_node *node)
{
	const struct deadline *d = rb_entry(node, struct deadline, by_name);
	const struct key *key = data;

	if (key->owner != d->owner)
		return key->owner < d->owner ? -1 : 1;
	return strcmp(key->id, d->id);
}

static bool is_named_before(struct rb_node *a, const struct rb_node *b)
{
	const struct deadline *d = rb_entry(a, struct deadline, by_name);
	const struct key key = { .owner = d->owner, .id = d->id };

	return compare_key(&key, b) < 0;
}

static struct deadline *find(const struct deadlines *all, const void *owner, const char *id)
{
	const struct key key = { .owner = owner, .id = id };
	struct rb_node *node = rb_find(&key, &all->by_name, compare_key);

	return node ? rb_entry(node, struct deadline, by_name) : NULL;
}

static struct deadline *first(const struct deadlines *all)
{
	struct rb_node *node = rb_first_cached(&all->by_time);

	return node ? rb_entry(node, struct deadline, by_time) : NULL;
}

static void delete(struct deadlines *all, struct deadline *d)
{
	rb_erase_cached(&d->by_time, &all->by_time);
	rb_erase(&d->by_name, &all->by_name);
	all->nr--;
	free(d->text);
	free(d);
}

/* To the first one, or off. */
static void set_timer(const struct flight_trigger *t)
{
	const struct deadline *d = first(t->priv);
	struct itimerspec its = {};

	if (d) {
		/* A time of 0 would turn it off. */
		its.it_value.tv_sec  = d->due / NSEC_PER_SEC;
		its.it_value.tv_nsec = max_t(u64, d->due % NSEC_PER_SEC, 1);
	}
	timerfd_settime(t->fd, TFD_TIMER_ABSTIME, &its, NULL);
}

/**
 * flight_deadline__arm - arm a deadline, or give it another time
 * @t: the trigger
 * @owner: the connection that it goes with, or NULL
 * @id: its name; at most FLIGHT_MAX_ID bytes
 * @in: when it passes, in ns from now
 * @text: for the reason of the dump, may be empty
 *
 * Return: 0; 1 if it was armed before; -ENOSPC if there are too many; -ENOMEM.
 */
int flight_deadline__arm(struct flight_trigger *t, const void *owner, const char *id, u64 in,
			 const char *text)
{
	struct deadlines *all = t->priv;
	struct deadline *d, *old = find(all, owner, id);

	if (!old && all->nr == FLIGHT_MAX_DEADLINES)
		return -ENOSPC;
	d = zalloc(sizeof(*d) + strlen(id) + 1);
	if (!d)
		return -ENOMEM;
	if (*text) {
		d->text = strdup(text);
		if (!d->text) {
			free(d);
			return -ENOMEM;
		}
	}
	memcpy(d->id, id, strlen(id) + 1);
	d->owner = owner;
	d->in = in;
	d->due = rdclock() + in;
	if (old)
		delete(all, old);
	rb_add_cached(&d->by_time, &all->by_time, passes_before);
	rb_add(&d->by_name, &all->by_name, is_named_before);
	all->nr++;
	set_timer(t);
	return !!old;
}

/* Return: 0 or -ENOENT. */
int flight_deadline__disarm(struct flight_trigger *t, const void *owner, const char *id)
{
	struct deadline *d = find(t->priv, owner, id);

	if (!d)
		return -ENOENT;
	delete(t->priv, d);
	set_timer(t);
	return 0;
}

static int compare_owner(const void *owner, const struct rb_node *node)
{
	const void *other = rb_entry(node, struct deadline, by_name)->owner;

	return owner == other ? 0 : owner < other ? -1 : 1;
}

/* Is a deadline armed that goes with this owner? */
bool flight_deadline__has(const struct flight_trigger *t, const void *owner)
{
	const struct deadlines *all = t->priv;

	return all && rb_find(owner, &all->by_name, compare_owner);
}

/* The owner goes, and so do its deadlines. */
void flight_deadline__forget(struct flight_trigger *t, const void *owner)
{
	struct deadlines *all = t->priv;
	struct rb_node *node = all ? all->by_name.rb_node : NULL, *from = NULL;

	while (node) {
		struct deadline *d = rb_entry(node, struct deadline, by_name);

		if (d->owner >= owner)
			from = node;
		node = d->owner >= owner ? node->rb_left : node->rb_right;
	}
	while (from) {
		struct deadline *d = rb_entry(from, struct deadline, by_name);

		if (d->owner != owner)
			break;
		from = rb_next(from);
		delete(all, d);
	}
	if (all)
		set_timer(t);
}

/* In this pass, do not count what has passed a moment ago. */
void flight_deadline__hold(struct flight_trigger *t)
{
	struct deadlines *all = t->priv;

	if (all)
		all->held = true;
}

unsigned int flight_deadline__nr(const struct flight_trigger *t)
{
	return t->priv ? ((const struct deadlines *)t->priv)->nr : 0;
}

static void set_reason(struct flight_trigger *t, const struct deadline *d, u64 now)
{
	char reason[sizeof(t->reason)];
	u64 here, then;

	scnprintf(reason, sizeof(reason), "deadline %s of %" PRIu64 " ms passed%s%s", d->id,
		  d->in / NSEC_PER_MSEC, d->text ? ": " : "", d->text ?: "");
	flight_trigger__set_reason(t, reason);
	t->cause.unit = "ms";
	t->cause.value = (now - d->due + d->in) / NSEC_PER_MSEC;
	t->cause.threshold = d->in / NSEC_PER_MSEC;
	if (!clockid__read_both(t->host->clockid, &here, CLOCK_MONOTONIC, &then))
		t->hit_at = here - (then - d->due);
}

static unsigned int deadline_hits(struct flight_trigger *t)
{
	struct deadlines *all = t->priv;
	/*
	 * The socket was read after looked_at, so what was withdrawn by then is not here any
	 * more. Later it may have been: this process may have been stopped since.
	 */
	u64 until = t->looked_at - (all->held ? MAX_HOLD : 0), now = rdclock(), expirations;
	unsigned int hits = 0;
	struct deadline *d;

	if (read(t->fd, &expirations, sizeof(expirations)) < 0 && errno != EAGAIN)
		pr_debug("reading the timer of deadlines: %m\n");
	while ((d = first(all)) != NULL && d->due <= until) {
		if (!hits++ && trigger_is_ready(&t->state))
			set_reason(t, d, now);
		delete(all, d);
	}
	/* One that is held back, or too new, expires at once, and is looked at in the next pass. */
	if (hits || (d && d->due <= now))
		set_timer(t);
	all->held = false;
	return hits;
}

static int deadline_start(struct flight_trigger *t)
{
	struct deadlines *all = zalloc(sizeof(*all));

	if (!all)
		return -ENOMEM;
	all->by_time = RB_ROOT_CACHED;
	all->by_name = RB_ROOT;
	t->priv = all;
	t->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return t->fd < 0 ? -errno : 0;
}

static void deadline_free(struct flight_trigger *t)
{
	struct deadlines *all = t->priv;
	struct deadline *d;

	while (all && (d = first(all)) != NULL)
		delete(all, d);
	free(all);
	t->priv = NULL;
}

static void deadline_stop(struct flight_trigger *t)
{
	close(t->fd);
	t->fd = -1;
}

const struct flight_trigger_ops flight_trigger_deadline = {
	.name	= "deadline",
	.by_itself = true,
	.start	= deadline_start,
	.hits	= deadline_hits,
	.stop	= deadline_stop,
	.free	= deadline_free,
};
