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
 * Locking: box->notes_lock serialises writers. The bytes are copied from user space before
 * it is taken.
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

/* The slot of base number @seq */
static void *perf_blackbox_slot(struct perf_blackbox *box, struct perf_blackbox_session *session,
				u32 seq)
{
	return perf_blackbox_at(box, session->notes + (seq & 1) * session->notes_size);
}

static int perf_blackbox_write_base(struct perf_blackbox *box, u32 nr, const void *data,
				    size_t size)
{
	struct perf_blackbox_session *session = perf_blackbox_session(box, nr);
	struct perf_blackbox_notes_end *end = &box->notes_end[nr];
	struct perf_blackbox_notes *notes = perf_blackbox_slot(box, session, end->seq + 1);

	lockdep_assert_held(&box->notes_lock);

	if (size > session->notes_size - sizeof(*notes))
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

static int perf_blackbox_add_to_base(struct perf_blackbox *box, u32 nr, const void *data,
				     size_t size)
{
	struct perf_blackbox_session *session = perf_blackbox_session(box, nr);
	struct perf_blackbox_notes_end *end = &box->notes_end[nr];
	struct perf_blackbox_addition *addition;

	lockdep_assert_held(&box->notes_lock);

	if (!end->seq)
		return -ENODATA;

	if (end->offset + sizeof(*addition) + size > session->notes_size)
		return -ENOSPC;

	addition = perf_blackbox_slot(box, session, end->seq) + end->offset;
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

/* Tell how much there is room for. */
static void perf_blackbox_fill_room(struct perf_blackbox *box, u32 nr,
				    struct perf_persistent_notes *arg)
{
	u64 slot = perf_blackbox_session(box, nr)->notes_size;
	u64 used = box->notes_end[nr].offset + sizeof(struct perf_blackbox_addition);

	arg->slot_size = slot - sizeof(struct perf_blackbox_notes);
	arg->room = box->notes_end[nr].seq && used < slot ? slot - used : 0;
}

static int perf_blackbox_store_notes(struct perf_blackbox *box, u32 nr, const void *data,
				     struct perf_persistent_notes *arg)
{
	int err = -ENOSPC;

	guard(mutex)(&box->notes_lock);

	/* A second base would go to the slot that was the current one at the last act. */
	if (perf_blackbox_has_died())
		return -ESHUTDOWN;

	if (data && (arg->flags & PERF_PERSISTENT_NOTES_ADD))
		err = perf_blackbox_add_to_base(box, nr, data, arg->data_size);
	else if (data)
		err = perf_blackbox_write_base(box, nr, data, arg->data_size);
	perf_blackbox_fill_room(box, nr, arg);
	return err;
}

static int perf_blackbox_write_notes(struct perf_persistent_session *s,
				     struct perf_persistent_notes *arg)
{
	struct perf_blackbox *box = s->box;
	void *data;
	int err;

	/* It fits into no slot: only tell how much does. */
	if (arg->data_size > perf_blackbox_session(box, s->box_entry)->notes_size)
		return perf_blackbox_store_notes(box, s->box_entry, NULL, arg);

	data = vmemdup_user(u64_to_user_ptr(arg->data), arg->data_size);
	if (IS_ERR(data))
		return PTR_ERR(data);

	err = perf_blackbox_store_notes(box, s->box_entry, data, arg);
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
		return -EINVAL;
	if (!s->box)
		return -ENXIO;
	/* Its members may stay for as long as somebody has them open. */
	if (READ_ONCE(s->state) == PERF_PERSISTENT_ENDED)
		return -ENOENT;

	err = perf_blackbox_write_notes(s, &arg);
	if (err && err != -ENOSPC)
		return err;
	if (copy_to_user(uarg, &arg, min_t(size_t, size, sizeof(arg))))
		return -EFAULT;
	return err;
}
