// SPDX-License-Identifier: GPL-2.0
/*
 * Per-task PMU data: nodes for tasks that wait for their task_work
 *
 * A task without data has no place for the callback_head of its task_work, and memory
 * cannot be allocated with the runqueue locked. So nodes come from a pool of this CPU, a
 * llist. Creating a system-wide event fills the pools. The hook of the scheduler is the
 * only one that takes nodes, with interrupts disabled, and only from the pool of its own
 * CPU. The work returns its node to the pool that it is from. A task that sleeps in the
 * kernel before the work ran keeps its node. So a hook that takes the last node of a pool
 * has a kernel thread fill it again, by way of an irq_work. A task that finds no node stays
 * in its state until it is scheduled in again. There are about PERF_CTX_NODES for each
 * CPU, twice as many if an event is created as a pool is filled again, and one for each
 * task that was PENDING at one time.
 *
 * Closing the last system-wide event frees the pools, when no hook takes nodes any more.
 * Works that run later free their nodes.
 *
 * The caller of perf_ctx_nodes_fill(), perf_ctx_nodes_refill() and perf_ctx_nodes_free()
 * knows whether there are system-wide events, see ctx_data.c.
 */
#include <linux/cpumask.h>
#include <linux/irq_work.h>
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "ctx_data.h"

/* Nodes of a full pool */
#define PERF_CTX_NODES	32

/**
 * struct perf_ctx_pool - nodes for the tasks of a CPU
 * @nodes:	those that are free
 * @refill:	has an empty pool filled, by
 * @work:	which calls perf_ctx_nodes_refill()
 * @used:	there was a system-wide event on the CPU since the pools were freed
 * @retry:	when the pool may be filled again, in jiffies
 */
struct perf_ctx_pool {
	struct llist_head	nodes;
	struct irq_work		refill;
	struct work_struct	*work;
	bool			used;
	unsigned long		retry;
};

static void perf_ctx_pool_is_empty(struct irq_work *work)
{
	schedule_work(container_of(work, struct perf_ctx_pool, refill)->work);
}

static DEFINE_PER_CPU(struct perf_ctx_pool, perf_ctx_pools) = {
	.refill	= IRQ_WORK_INIT_HARD(perf_ctx_pool_is_empty),
};

/**
 * perf_ctx_nodes_fill - fill the pool of a CPU, if it is empty
 * @cpu: the CPU
 * @work: what is to be scheduled when it is empty again
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int perf_ctx_nodes_fill(int cpu, struct work_struct *work)
{
	struct perf_ctx_pool *pool = per_cpu_ptr(&perf_ctx_pools, cpu);
	struct perf_ctx_node *node;
	int i;

	if (!llist_empty(&pool->nodes))
		return 0;
	WRITE_ONCE(pool->retry, jiffies);
	WRITE_ONCE(pool->work, work);
	WRITE_ONCE(pool->used, true);
	for (i = 0; i < PERF_CTX_NODES; i++) {
		node = kmalloc(sizeof(*node), GFP_KERNEL);
		if (!node)
			return -ENOMEM;
		node->cpu = cpu;
		llist_add(&node->entry, &pool->nodes);
	}
	return 0;
}

/**
 * perf_ctx_nodes_refill - fill all empty pools of CPUs with system-wide events
 *
 * Context: may sleep.
 */
void perf_ctx_nodes_refill(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct perf_ctx_pool *pool = per_cpu_ptr(&perf_ctx_pools, cpu);

		if (READ_ONCE(pool->used))
			perf_ctx_nodes_fill(cpu, pool->work);
	}
}

/**
 * perf_ctx_node_take - take a node from the pool of this CPU
 *
 * Context: the hook of the scheduler alone. Interrupts are disabled, the runqueue locked.
 * Return: the node, or NULL.
 */
struct perf_ctx_node *perf_ctx_node_take(void)
{
	struct perf_ctx_pool *pool = this_cpu_ptr(&perf_ctx_pools);
	struct llist_node *entry;

	lockdep_assert_irqs_disabled();

	entry = llist_del_first(&pool->nodes);
	/* Without memory the pool stays empty: do not ask at each switch. */
	if (pool->used && llist_empty(&pool->nodes) &&
	    time_after_eq(jiffies, READ_ONCE(pool->retry))) {
		WRITE_ONCE(pool->retry, jiffies + HZ);
		irq_work_queue(&pool->refill);
	}
	return entry ? llist_entry(entry, struct perf_ctx_node, entry) : NULL;
}

/**
 * perf_ctx_node_return - return a node to its pool
 * @node: the node
 *
 * Context: any.
 */
void perf_ctx_node_return(struct perf_ctx_node *node)
{
	llist_add(&node->entry, &per_cpu_ptr(&perf_ctx_pools, node->cpu)->nodes);
}

/**
 * perf_ctx_nodes_free - free what is in the pools
 *
 * No hook takes nodes, and no work returns one.
 */
void perf_ctx_nodes_free(void)
{
	struct perf_ctx_node *node, *next;
	int cpu;

	for_each_possible_cpu(cpu) {
		struct perf_ctx_pool *pool = per_cpu_ptr(&perf_ctx_pools, cpu);

		WRITE_ONCE(pool->used, false);
		llist_for_each_entry_safe(node, next, llist_del_all(&pool->nodes), entry)
			kfree(node);
	}
}
