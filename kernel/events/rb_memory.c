// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of ring buffers
 *
 * A ring buffer is struct perf_buffer, a header page (struct perf_event_mmap_page) and
 * data pages. struct perf_rb_memory is the set of operations on the memory of all three:
 *
 *	alloc		rb_alloc()
 *	to_page		perf_mmap_to_page(): a page of a mapping. Linux 6.12 asks when it is
 *			touched, and takes a reference on it; 7.3 when the mapping is made,
 *			and relies on the counts that a mapping has in rb->mmap_count
 *	charge		perf_mmap() and persistent sessions, before alloc
 *	uncharge	perf_mmap_put(), after the last mapping
 *	free		ring_buffer_put(), an RCU grace period after the last reference
 *
 * rb->memory is set by rb_alloc() and never changes. None of the operations is used to
 * write a record: writers use only rb->data_pages and rb->user_page.
 *
 * This file implements the memory that the kernel allocates: pages, or, if the data cache
 * has aliases (CONFIG_PERF_USE_VMALLOC), a range of vmalloc() memory that is one data
 * page of a higher order. Both are charged as locked memory, see rb_charge.c.
 *
 * Memory of another kind, such as a reserved region, has its own operations. alloc gets the
 * struct perf_rb_memory, which may be embedded in the structure that describes the region.
 * The pages need a struct page and a kernel address. charge may leave the charge empty.
 * free returns the memory to the region and, as here, must reset page->mapping, which
 * page faults of Linux 6.12 have set.
 *
 * Context: alloc and charge sleep. free runs from an RCU callback, in softirq context.
 * to_page runs in an RCU read-side critical section or with a reference on the buffer.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/perf_event.h>
#include <linux/slab.h>
#include <linux/topology.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include "internal.h"

#ifndef CONFIG_PERF_USE_VMALLOC

/*
 * Back perf_mmap() with regular GFP_KERNEL-0 pages.
 */

static struct page *perf_rb_to_page(struct perf_buffer *rb, unsigned long pgoff)
{
	if (pgoff > rb->nr_pages)
		return NULL;

	if (pgoff == 0)
		return virt_to_page(rb->user_page);

	return virt_to_page(rb->data_pages[pgoff - 1]);
}

static void *perf_rb_alloc_page(int cpu)
{
	struct page *page;
	int node;

	node = (cpu == -1) ? cpu : cpu_to_node(cpu);
	page = alloc_pages_node(node, GFP_KERNEL | __GFP_ZERO, 0);
	if (!page)
		return NULL;

	return page_address(page);
}

static void perf_rb_free_page(void *addr)
{
	struct page *page = virt_to_page(addr);

	page->mapping = NULL;
	__free_page(page);
}

static struct perf_buffer *perf_rb_alloc(const struct perf_rb_memory *memory,
					 unsigned long nr_pages, int cpu)
{
	struct perf_buffer *rb;
	unsigned long size;
	int i, node;

	size = sizeof(struct perf_buffer);
	size += nr_pages * sizeof(void *);

	if (order_base_2(size) > PAGE_SHIFT + MAX_PAGE_ORDER)
		return NULL;

	node = (cpu == -1) ? cpu : cpu_to_node(cpu);
	rb = kzalloc_node(size, GFP_KERNEL, node);
	if (!rb)
		return NULL;

	rb->user_page = perf_rb_alloc_page(cpu);
	if (!rb->user_page)
		goto err_rb;

	for (i = 0; i < nr_pages; i++) {
		rb->data_pages[i] = perf_rb_alloc_page(cpu);
		if (!rb->data_pages[i])
			goto err_data_pages;
		cond_resched();
	}

	rb->nr_pages = nr_pages;

	return rb;

err_data_pages:
	for (i--; i >= 0; i--)
		perf_rb_free_page(rb->data_pages[i]);

	perf_rb_free_page(rb->user_page);
err_rb:
	kfree(rb);
	return NULL;
}

static void perf_rb_free(struct perf_buffer *rb)
{
	int i;

	perf_rb_free_page(rb->user_page);
	for (i = 0; i < rb->nr_pages; i++)
		perf_rb_free_page(rb->data_pages[i]);
	kfree(rb);
}

#else /* CONFIG_PERF_USE_VMALLOC */

static struct page *perf_rb_to_page(struct perf_buffer *rb, unsigned long pgoff)
{
	/* The '>' counts in the user page. */
	if (pgoff > data_page_nr(rb))
		return NULL;

	return vmalloc_to_page((void *)rb->user_page + pgoff * PAGE_SIZE);
}

static void perf_rb_unmark_page(void *addr)
{
	struct page *page = vmalloc_to_page(addr);

	page->mapping = NULL;
}

/* vfree() of a large area is not for softirq context. */
static void perf_rb_free_work(struct work_struct *work)
{
	struct perf_buffer *rb = container_of(work, struct perf_buffer, work);
	void *base = rb->user_page;
	int i, nr = data_page_nr(rb);

	/* The '<=' counts in the user page. */
	for (i = 0; i <= nr; i++)
		perf_rb_unmark_page(base + i * PAGE_SIZE);

	vfree(base);
	kfree(rb);
}

static struct perf_buffer *perf_rb_alloc(const struct perf_rb_memory *memory,
					 unsigned long nr_pages, int cpu)
{
	struct perf_buffer *rb;
	unsigned long size;
	void *all_buf;
	int node;

	size = sizeof(struct perf_buffer);
	size += sizeof(void *);

	node = (cpu == -1) ? cpu : cpu_to_node(cpu);
	rb = kzalloc_node(size, GFP_KERNEL, node);
	if (!rb)
		return NULL;

	INIT_WORK(&rb->work, perf_rb_free_work);

	all_buf = vmalloc_user((nr_pages + 1) * PAGE_SIZE);
	if (!all_buf) {
		kfree(rb);
		return NULL;
	}

	rb->user_page = all_buf;
	rb->data_pages[0] = all_buf + PAGE_SIZE;
	if (nr_pages) {
		rb->nr_pages = 1;
		rb->page_order = ilog2(nr_pages);
	}

	return rb;
}

static void perf_rb_free(struct perf_buffer *rb)
{
	schedule_work(&rb->work);
}

#endif /* CONFIG_PERF_USE_VMALLOC */

/* Memory that the kernel allocates, charged as locked memory. */
const struct perf_rb_memory perf_rb_kernel_memory = {
	.alloc		= perf_rb_alloc,
	.free		= perf_rb_free,
	.to_page	= perf_rb_to_page,
	.charge		= perf_rb_charge,
	.uncharge	= perf_rb_uncharge,
};
