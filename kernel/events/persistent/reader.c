// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: an event that was opened again
 *
 * perf_event_open() with type PERF_TYPE_PERSISTENT returns a file that is called a
 * consumer. It can read, and it can claim the event. Everything that other readers
 * would notice is refused: consumers share the event and its buffer.
 *
 * The file is open for reading only, and its mappings lose VM_MAYWRITE, so that
 * neither mprotect() nor ptrace() can make them writable. Their pages come from pe->rb,
 * which does not change while the file is there; a mapping holds the file. So nothing
 * needs to be counted when a mapping is forked, split, moved or cut.
 *
 * poll() is per consumer. The buffer counts its wakeups, each after data_head was
 * published. A consumer stores the count that it reported last:
 *
 *    writer                              reader, perf_persistent_poll()
 *
 *    STORE rb->user_page->data_head      poll_wait() on event->waitq
 *    (A) smp_mb__before_atomic()         (B) LOAD rb->wakeups, acquire
 *    STORE rb->wakeups                   user space: LOAD data_head
 *    irq_work: wake up event->waitq
 *
 * A, in perf_persistent_wakeup(), pairs with B: after poll() has reported a wakeup, the
 * reader sees the data_head that caused it. The count is incremented before the waitq is
 * woken, and read after the reader has registered on the waitq, so no wakeup is missed. A
 * CPU that goes offline or returns counts as a wakeup as well, since the state has changed.
 * CLAIM causes EPOLLHUP, and so does the end of the target task or cgroup. Disabling the
 * event causes no wakeup.
 */
#include <linux/anon_inodes.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/perf_rb_snapshot.h>
#include <linux/poll.h>
#include <linux/security.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/syscalls.h>

#include "internal.h"

/**
 * struct perf_persistent_consumer - a reader's file
 * @pe: the event, with a reference
 * @wakeups: the buffer's count when poll() last reported EPOLLIN
 * @again: EPOLLIN is to be reported once more, see perf_persistent_woken()
 */
struct perf_persistent_consumer {
	struct perf_persistent_event	*pe;
	atomic_t			wakeups;
	atomic_t			again;
};

static int perf_persistent_file_release(struct inode *inode, struct file *file)
{
	struct perf_persistent_consumer *consumer = file->private_data;

	perf_persistent_put(consumer->pe);
	kfree(consumer);
	return 0;
}

static ssize_t perf_persistent_read(struct file *file, char __user *buf, size_t count,
				    loff_t *ppos)
{
	struct perf_persistent_consumer *consumer = file->private_data;

	return perf_event_read_user(consumer->pe->event, buf, count);
}

static __poll_t perf_persistent_poll(struct file *file, poll_table *wait)
{
	struct perf_persistent_consumer *consumer = file->private_data;
	struct perf_persistent_event *pe = consumer->pe;
	__poll_t events = 0;
	int wakeups;

	poll_wait(file, &pe->event->waitq, wait);

	/* It left its session and ends with its last file, or it records no more. */
	if (READ_ONCE(pe->claimed) || perf_persistent_gone(pe))
		events |= EPOLLHUP;

	/* B, matches A in perf_persistent_wakeup(): see above */
	wakeups = atomic_read_acquire(&pe->rb->wakeups);
	if (perf_persistent_woken(&consumer->wakeups, &consumer->again, wakeups, wait))
		events |= EPOLLIN | EPOLLRDNORM;

	return events;
}

static long perf_persistent_file_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct perf_persistent_consumer *consumer = file->private_data;
	struct perf_persistent_event *pe = consumer->pe;
	void __user *uarg = (void __user *)arg;
	int err;

	if (_IOC_TYPE(cmd) != _IOC_TYPE(PERF_EVENT_IOC_CLAIM))
		return -ENOTTY;

	if (_IOC_NR(cmd) == _IOC_NR(PERF_EVENT_IOC_CLAIM)) {
		if (!perf_persistent_may_end(pe->session))
			return -EPERM;
		err = security_perf_event_write(pe->event);
	} else {
		err = security_perf_event_read(pe->event);
	}
	if (err)
		return err;

	switch (_IOC_NR(cmd)) {
	case _IOC_NR(PERF_EVENT_IOC_ID):
		return put_user(pe->event->id, (u64 __user *)uarg);
	case _IOC_NR(PERF_EVENT_IOC_RESERVED_HEAD):
		return perf_rb_reserved_ioctl(pe->event, cmd, uarg);
	case _IOC_NR(PERF_EVENT_IOC_PERSISTENT_INFO):
		return perf_persistent_info(pe, uarg);
	case _IOC_NR(PERF_EVENT_IOC_CLAIM):
		return perf_persistent_claim(pe);
	case _IOC_NR(PERF_EVENT_IOC_ENABLE) ... _IOC_NR(PERF_EVENT_IOC_SET_FILTER):
	case _IOC_NR(PERF_EVENT_IOC_SET_BPF) ... _IOC_NR(PERF_EVENT_IOC_MODIFY_ATTRIBUTES):
	case _IOC_NR(PERF_EVENT_IOC_UNCLAIM):
		return perf_persistent_refuse(-EPERM, "all readers of the event would notice");
	default:
		return -ENOTTY;
	}
}

static vm_fault_t perf_persistent_fault(struct vm_fault *vmf)
{
	struct perf_persistent_consumer *consumer = vmf->vma->vm_file->private_data;
	struct page *page;

	if (vmf->flags & FAULT_FLAG_WRITE)
		return VM_FAULT_SIGBUS;

	page = perf_mmap_to_page(consumer->pe->rb, vmf->pgoff);
	if (!page)
		return VM_FAULT_SIGBUS;

	get_page(page);
	/*
	 * perf_mmap_fault() sets page->mapping, which a page that is written needs. This one is
	 * never written by way of this file, and is on no LRU list.
	 */
	vmf->page = page;
	return 0;
}

static const struct vm_operations_struct perf_persistent_vmops = {
	.fault		= perf_persistent_fault,
};

static int perf_persistent_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct perf_persistent_consumer *consumer = file->private_data;
	struct perf_persistent_event *pe = consumer->pe;
	unsigned long nr_pages = vma_pages(vma);
	int err;

	/* The file is read-only, which turned VM_SHARED off. */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return perf_persistent_refuse(-EINVAL, "the mapping is private");

	if (vma->vm_flags & VM_WRITE)
		return perf_persistent_refuse(-EACCES, "the mapping is writable");

	if (vma->vm_pgoff || (nr_pages != 1 && nr_pages != data_page_nr(pe->rb) + 1))
		return perf_persistent_refuse(-EINVAL, "map the header page, or all of the buffer");

	err = security_perf_event_read(pe->event);
	if (err)
		return err;

	vm_flags_mod(vma, VM_DONTEXPAND | VM_DONTDUMP, VM_MAYWRITE);
	vma->vm_ops = &perf_persistent_vmops;
	return 0;
}

/* Which processes still hold the memory of a session? */
static void perf_persistent_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct perf_persistent_consumer *consumer = file->private_data;
	struct perf_persistent_event *pe = consumer->pe;

	seq_printf(m, "perf_persistent_id:\t%u\ncpu:\t%d\nindex:\t%u\n",
		   pe->session->id, pe->cpu, pe->index);
	perf_persistent_show_cgroup(m, pe->event);
}

static const struct file_operations perf_persistent_fops = {
	.owner		= THIS_MODULE,
	.release	= perf_persistent_file_release,
	.read		= perf_persistent_read,
	.poll		= perf_persistent_poll,
	.unlocked_ioctl	= perf_persistent_file_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.mmap		= perf_persistent_mmap,
	.show_fdinfo	= perf_persistent_show_fdinfo,
};

/* Only the session's id and the event's index may be set. */
static bool perf_persistent_attr_valid(const struct perf_event_attr *attr)
{
	const struct perf_event_attr want = {
		.type			= PERF_TYPE_PERSISTENT,
		.size			= attr->size,
		.config			= attr->config,
		.config1		= attr->config1,
		/* perf_copy_attr() turns 0 into the default. */
		.sample_max_stack	= sysctl_perf_event_max_stack,
	};

	return !memcmp(attr, &want, sizeof(want));
}

static struct file *perf_persistent_getfile(struct perf_persistent_event *pe, int f_flags)
{
	struct perf_persistent_consumer *consumer;
	struct file *file;

	consumer = kzalloc(sizeof(*consumer), PERF_PERSISTENT_GFP);
	if (!consumer)
		return ERR_PTR(-ENOMEM);

	consumer->pe = pe;
	atomic_set(&consumer->wakeups, atomic_read(&pe->rb->wakeups));

	file = anon_inode_getfile("[perf_persistent]", &perf_persistent_fops, consumer, f_flags);
	if (IS_ERR(file))
		kfree(consumer);
	return file;
}

/**
 * perf_persistent_open - perf_event_open() of an event that belongs to a session
 * @attr: id of the session (config), number of the event on its CPU (config1), or
 *	PERF_PERSISTENT_SESSION for the session itself
 * @pid: -1
 * @cpu: the CPU, -1 for an event that follows a task
 * @group_fd: -1
 * @flags: PERF_FLAG_FD_CLOEXEC or 0
 *
 * Return: a consumer's fd
 */
int perf_persistent_open(const struct perf_event_attr *attr, pid_t pid, int cpu,
			 int group_fd, unsigned long flags)
{
	int f_flags = O_RDONLY | (flags & PERF_FLAG_FD_CLOEXEC ? O_CLOEXEC : 0);
	struct perf_persistent_event *pe;
	struct file *file;
	int fd, err;

	if (!perf_persistent_attr_valid(attr))
		return perf_persistent_refuse(-EINVAL, "a field of the attr is not 0");

	if (pid != -1 || group_fd != -1 || (flags & ~PERF_FLAG_FD_CLOEXEC))
		return perf_persistent_refuse(-EINVAL, "a task, a group, or an unknown flag");

	if (attr->config1 == PERF_PERSISTENT_SESSION && cpu != -1)
		return perf_persistent_refuse(-EINVAL, "the CPU of a session is -1");

	if (attr->config1 == PERF_PERSISTENT_SESSION)
		return perf_persistent_open_session(attr, f_flags);

	pe = perf_persistent_find(attr->config, cpu, attr->config1);
	if (IS_ERR(pe))
		return PTR_ERR(pe);

	/* The buffer is sealed: once all writers are members, no other one joins. */
	if (!perf_persistent_all_members(pe->session, pe->rb, NULL)) {
		err = perf_persistent_refuse(-EBUSY, "an event that is no member writes to it");
		goto err_put;
	}

	err = perf_persistent_may_read(pe);
	if (err)
		goto err_put;

	fd = get_unused_fd_flags(f_flags);
	if (fd < 0) {
		err = fd;
		goto err_put;
	}

	file = perf_persistent_getfile(pe, f_flags);
	if (IS_ERR(file)) {
		err = PTR_ERR(file);
		goto err_fd;
	}

	fd_install(fd, file);
	return fd;

err_fd:
	put_unused_fd(fd);
err_put:
	perf_persistent_put(pe);
	return err;
}
