// SPDX-License-Identifier: GPL-2.0
/*
 * Black box: notes that user space leaves with a session
 *
 * Records name tasks and addresses by numbers. What they mean, user space writes into the
 * image as notes, since after a reset nothing else is left to tell: which tasks there are,
 * what they have mapped, build-ids, modules. The kernel does not look at notes.
 *
 * A session has two slots. A slot holds a base, and additions behind it. Additions make it
 * possible to note an exec without writing everything again:
 *
 *	struct perf_blackbox_notes | base | struct perf_blackbox_addition | bytes | ..
 *
 * Order of stores
 * ---------------
 *
 * A write may be cut short by the death of the kernel, and must not damage earlier notes. A
 * new base goes to the other slot, whose header is invalidated first and written last. Its
 * seq is greater by one, which makes the slot the current one. An addition is written behind
 * what is valid in the current slot, its bytes first, its header last. Leftovers of an
 * earlier use of the slot are no additions: they have another seq.
 *
 * In a region the slots are there as long as the session. In the kernel's memory, a slot is
 * allocated for a base, and freed when the next base for it needs another size: it is never the
 * current one.
 *
 * Locking: box->notes_lock, or parts->lock, serialises writers. The bytes are copied from user
 * space before it is taken.
 */
#include <linux/align.h>
#include <linux/cleanup.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "blackbox.h"

static void perf_blackbox_check_notes_abi(void)
{
	BUILD_BUG_ON(sizeof(struct perf_persistent_notes) != PERF_PERSISTENT_NOTES_SIZE_VER0);
	CHECK_OFFSET(perf_persistent_notes, size, 0);
	CHECK_OFFSET(perf_persistent_notes, flags, 4);
	CHECK_OFFSET(perf_persistent_notes, data, 8);
	CHECK_OFFSET(perf_persistent_notes, data_size, 16);
	CHECK_OFFSET(perf_persistent_notes, room, 24);
	CHECK_OFFSET(perf_persistent_notes, slot_size, 32);
}

/**
 * struct perf_blackbox_slots - the two slots of a session, wherever they are
 * @slot: the slots
 * @size: of each in bytes
 * @end: how far they are written
 */
struct perf_blackbox_slots {
	void				*slot[2];
	size_t				size[2];
	struct perf_blackbox_notes_end	*end;
};

static struct mutex *perf_blackbox_notes_lock(struct perf_persistent_session *s)
{
	return s->box ? &s->box->notes_lock : &s->parts->lock;
}

static void perf_blackbox_get_slots(struct perf_persistent_session *s,
				    struct perf_blackbox_slots *slots)
{
	struct perf_blackbox_session *session;
	unsigned int i;

	lockdep_assert_held(perf_blackbox_notes_lock(s));

	slots->end = s->box ? &s->box->notes_end[s->box_entry] : &s->parts->notes_end;
	for (i = 0; i < ARRAY_SIZE(slots->slot); i++) {
		if (s->box) {
			session = perf_blackbox_session(s->box, s->box_entry);
			slots->size[i] = session->notes_size;
			slots->slot[i] = perf_blackbox_at(s->box, session->notes +
							  i * session->notes_size);
		} else {
			slots->size[i] = s->parts->slot[i].size;
			slots->slot[i] = s->parts->slot[i].bytes;
		}
	}
}

static int perf_blackbox_write_base(const struct perf_blackbox_slots *slots, const void *data,
				    size_t size)
{
	struct perf_blackbox_notes_end *end = slots->end;
	unsigned int nr = (end->seq + 1) & 1;
	struct perf_blackbox_notes *notes = slots->slot[nr];

	if (size + sizeof(*notes) > slots->size[nr])
		return -ENOSPC;

	WRITE_ONCE(notes->magic, 0);
	/* A in blackbox_image.c */
	smp_wmb();
	memcpy(notes + 1, data, size);
	notes->seq = end->seq + 1;
	notes->data_crc = perf_blackbox_crc(data, size);
	notes->size = size;
	perf_blackbox_now(&notes->clock);
	memset(notes->__reserved, 0, sizeof(notes->__reserved));
	notes->crc = perf_blackbox_crc(&notes->seq, sizeof(*notes) -
				       offsetof(struct perf_blackbox_notes, seq));
	/* B in blackbox_image.c */
	smp_wmb();
	WRITE_ONCE(notes->magic, PERF_BLACKBOX_NOTES_MAGIC);

	end->seq++;
	end->nr = 0;
	end->offset = ALIGN(sizeof(*notes) + size, sizeof(u64));
	return 0;
}

static int perf_blackbox_add_to_base(const struct perf_blackbox_slots *slots, const void *data,
				     size_t size)
{
	struct perf_blackbox_notes_end *end = slots->end;
	unsigned int nr = end->seq & 1;
	struct perf_blackbox_addition *addition;

	if (!end->seq)
		return -ENODATA;

	if (end->offset + sizeof(*addition) + size > slots->size[nr])
		return -ENOSPC;

	addition = slots->slot[nr] + end->offset;
	WRITE_ONCE(addition->magic, 0);
	/* A in blackbox_image.c */
	smp_wmb();
	memcpy(addition + 1, data, size);
	addition->seq = end->seq;
	addition->nr = end->nr + 1;
	addition->data_crc = perf_blackbox_crc(data, size);
	addition->__reserved = 0;
	addition->size = size;
	perf_blackbox_now(&addition->clock);
	addition->crc = perf_blackbox_crc(&addition->seq, sizeof(*addition) -
					  offsetof(struct perf_blackbox_addition, seq));
	/* B in blackbox_image.c */
	smp_wmb();
	WRITE_ONCE(addition->magic, PERF_BLACKBOX_ADDITION_MAGIC);

	end->nr++;
	end->offset = ALIGN(end->offset + sizeof(*addition) + size, sizeof(u64));
	return 0;
}

/* Bytes that a slot may have */
static size_t perf_blackbox_slot_limit(struct perf_persistent_session *s)
{
	if (!s->box)
		return PERF_BLACKBOX_NOTES_MAX;
	return perf_blackbox_session(s->box, s->box_entry)->notes_size;
}

/* Tell how much there is room for. */
static void perf_blackbox_fill_room(struct perf_persistent_session *s,
				    struct perf_persistent_notes *arg)
{
	struct perf_blackbox_slots slots;
	u64 slot, used;

	perf_blackbox_get_slots(s, &slots);
	slot = slots.size[slots.end->seq & 1];
	used = slots.end->offset + sizeof(struct perf_blackbox_addition);

	arg->slot_size = perf_blackbox_slot_limit(s) - sizeof(struct perf_blackbox_notes);
	arg->room = slots.end->seq && used < slot ? slot - used : 0;
}

static int perf_blackbox_store_base(struct perf_persistent_session *s, const void *data,
				    size_t size)
{
	struct perf_blackbox_slots slots;
	int err;

	perf_blackbox_get_slots(s, &slots);
	if (!s->box) {
		err = perf_blackbox_make_slot(s->parts, (slots.end->seq + 1) & 1,
					      size + sizeof(struct perf_blackbox_notes));
		if (err)
			return err;
		perf_blackbox_get_slots(s, &slots);
	}
	return perf_blackbox_write_base(&slots, data, size);
}

static int perf_blackbox_store_addition(struct perf_persistent_session *s, const void *data,
					size_t size)
{
	struct perf_blackbox_slots slots;

	perf_blackbox_get_slots(s, &slots);
	return perf_blackbox_add_to_base(&slots, data, size);
}

static int perf_blackbox_store_notes(struct perf_persistent_session *s, const void *data,
				     struct perf_persistent_notes *arg)
{
	int err = -ENOSPC;

	guard(mutex)(perf_blackbox_notes_lock(s));

	/* Its members may stay for as long as somebody has them open. */
	if (READ_ONCE(s->state) == PERF_PERSISTENT_ENDED)
		return -ENOENT;

	/* A second base would go to the slot that was the current one at the last act. */
	if (perf_blackbox_has_died())
		return -ESHUTDOWN;

	if (data && (arg->flags & PERF_PERSISTENT_NOTES_ADD))
		err = perf_blackbox_store_addition(s, data, arg->data_size);
	else if (data)
		err = perf_blackbox_store_base(s, data, arg->data_size);
	perf_blackbox_fill_room(s, arg);
	return err;
}

static int perf_blackbox_write_notes(struct perf_persistent_session *s,
				     struct perf_persistent_notes *arg)
{
	void *data;
	int err;

	/* It fits into no slot: only tell how much does. */
	if (arg->data_size > perf_blackbox_slot_limit(s))
		return perf_blackbox_store_notes(s, NULL, arg);

	data = vmemdup_user(u64_to_user_ptr(arg->data), arg->data_size);
	if (IS_ERR(data))
		return PTR_ERR(data);

	err = perf_blackbox_store_notes(s, data, arg);
	kvfree(data);
	return err;
}

/**
 * perf_blackbox_ioctl - an ioctl of the file of a session that may be in a black box
 * @s: the session
 * @cmd: the ioctl
 * @uarg: its argument
 *
 * Return: 0, -ENOTTY for other ioctls, or the error of PERF_EVENT_IOC_SESSION_NOTES
 */
long perf_blackbox_ioctl(struct perf_persistent_session *s, unsigned int cmd, void __user *uarg)
{
	struct perf_persistent_notes arg = { };
	u32 size;
	int err;

	perf_blackbox_check_notes_abi();

	if (_IOC_NR(cmd) != _IOC_NR(PERF_EVENT_IOC_SESSION_NOTES))
		return -ENOTTY;

	err = perf_persistent_may_control(s);
	if (err)
		return err;

	err = perf_persistent_copy_in(&arg, sizeof(arg), PERF_PERSISTENT_NOTES_SIZE_VER0, uarg,
				      &size);
	if (err)
		return err;
	if (arg.flags & ~PERF_PERSISTENT_NOTES_ADD)
		return perf_persistent_refuse(-EINVAL, "an unknown flag");
	/* Created while the kernel died */
	if (!s->box && !s->parts)
		return -ESHUTDOWN;

	err = perf_blackbox_write_notes(s, &arg);
	if (err && err != -ENOSPC)
		return err;
	if (copy_to_user(uarg, &arg, min_t(size_t, size, sizeof(arg))))
		return -EFAULT;
	return err;
}
